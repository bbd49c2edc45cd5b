#!/usr/bin/python3
"""Google's own sign-in libraries (Debian's python3-oauth2client and
python3-google-auth), unchanged: the installed-app flow with PKCE, refresh, the
signature of the id token, a service account, revocation.
Usage: signin.py ORIGIN KEYFILE MEMORY
MEMORY is a file; the second run finds the first one's refresh token there and
uses it at the same cloud, which was started anew."""
import http.server
import json
import os
import sys
import threading
import urllib.parse
import urllib.request

import google.auth.exceptions
import google.auth.transport
import google.oauth2.credentials
import google.oauth2.service_account
import httplib2
from google.auth import jwt
from oauth2client.client import OAuth2WebServerFlow

origin, key_file, memory = sys.argv[1:]
CLIENT = "123-abc.apps.googleusercontent.com"
READONLY = "https://www.googleapis.com/auth/gmail.readonly"


class Response(google.auth.transport.Response):
    def __init__(self, response, data):
        self.status, self.headers, self.data = response.status, response, data

    status = headers = data = None


class Request(google.auth.transport.Request):
    """google-auth brings no transport of its own; this one is httplib2."""

    def __call__(self, url, method="GET", body=None, headers=None, timeout=None, **rest):
        return Response(*httplib2.Http().request(url, method, body=body, headers=headers or {}))


def profile(token):
    answer, body = httplib2.Http().request(origin + "/gmail/v1/users/me/profile",
                                           headers={"authorization": "Bearer " + token})
    assert answer.status == 200, body
    return json.loads(body)["emailAddress"]


def refreshed(refresh_token):
    credentials = google.oauth2.credentials.Credentials(
        None, refresh_token=refresh_token, token_uri=origin + "/token", client_id=CLIENT,
        client_secret="any")
    credentials.refresh(Request())
    return credentials


# ---- a program on this machine, a browser that consents, a loopback redirect ----
brought = {}


class Back(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        brought.update(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


back = http.server.HTTPServer(("127.0.0.1", 0), Back)
waiting = threading.Thread(target=back.handle_request)
waiting.start()
flow = OAuth2WebServerFlow(
    CLIENT, "secret", READONLY + " openid email", pkce=True,
    redirect_uri="http://127.0.0.1:%d/" % back.server_port, auth_uri=origin + "/o/oauth2/v2/auth",
    token_uri=origin + "/token", revoke_uri=origin + "/revoke")
urllib.request.urlopen(flow.step1_get_authorize_url(state="a b&c")).read()
waiting.join()
assert brought["state"] == "a b&c"
signed_in = flow.step2_exchange(brought["code"])
assert profile(signed_in.access_token) == signed_in.id_token["email"] == "ada@example.com"
signed_in.refresh(httplib2.Http())
assert profile(signed_in.access_token) == "ada@example.com"

# ---- the other library: refresh, and the id token's signature ----
credentials = refreshed(signed_in.refresh_token)
certs = json.loads(urllib.request.urlopen(origin + "/oauth2/v1/certs").read())
claims = jwt.decode(credentials.id_token, certs=certs, audience=CLIENT)
assert claims["iss"] == "https://accounts.google.com" and claims["email"] == "ada@example.com"

# ---- a service account that acts for a user ----
robot = google.oauth2.service_account.Credentials.from_service_account_file(
    key_file, scopes=[READONLY], subject="bob@example.com")
robot.refresh(Request())
assert profile(robot.token) == "bob@example.com"

# ---- what the last cloud gave is good at this one; what is revoked is not ----
if os.path.exists(memory):
    with open(memory, encoding="ascii") as file:
        assert profile(refreshed(file.read()).token) == "ada@example.com"
    signed_in.revoke(httplib2.Http())
    try:
        refreshed(signed_in.refresh_token)
        raise AssertionError("a revoked token was refreshed")
    except google.auth.exceptions.RefreshError as error:
        assert "Token has been expired or revoked." in str(error)
with open(memory, "w", encoding="ascii") as file:
    file.write(signed_in.refresh_token)
