#!/usr/bin/python3
"""Google's Python client (Debian's python3-googleapi), unchanged: it builds itself
from the cloud's own discovery document, then lists, gets and batches.
Usage: client.py http://127.0.0.1:PORT TOKEN"""
import base64
import sys

import httplib2
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

origin, token = sys.argv[1:]


class Signed(httplib2.Http):
    """Bearer token on every request; the library asks for no more."""

    def request(self, uri, method="GET", body=None, headers=None, **rest):
        headers = dict(headers or {}, authorization="Bearer " + token)
        return super().request(uri, method, body=body, headers=headers, **rest)


http = Signed()
gmail = build("gmail", "v1", http=http, cache_discovery=False,
              discoveryServiceUrl=origin + "/discovery/v1/apis/{api}/{apiVersion}/rest")
users = gmail.users()
profile = users.getProfile(userId="me").execute()

ids = []
request = users.messages().list(userId="me", maxResults=500, includeSpamTrash=True)
while request is not None:
    page = request.execute()
    ids += [message["id"] for message in page.get("messages", [])]
    request = users.messages().list_next(request, page)
assert len(ids) == len(set(ids)) == profile["messagesTotal"], (len(ids), profile)

message = users.messages().get(userId="me", id=ids[0], format="raw").execute()
single = base64.urlsafe_b64decode(message["raw"])
assert len(single) == message["sizeEstimate"]

# ---- a batch: as many parts as are allowed at once, one of them wrong ----
answers = {}


def answered(name, answer, error):
    answers[name] = error if error is not None else answer


wanted = ids[:8]
batch = gmail.new_batch_http_request(callback=answered)
for message_id in wanted + ["0000000000000000"]:
    batch.add(users.messages().get(userId="me", id=message_id, format="raw"),
              request_id=message_id)
batch.execute(http=http)
assert len(answers) == 9
for message_id in wanted:
    assert answers[message_id]["id"] == message_id
assert base64.urlsafe_b64decode(answers[ids[0]]["raw"]) == single
wrong = answers["0000000000000000"]
assert isinstance(wrong, HttpError) and wrong.resp.status == 404

history = users.history().list(userId="me", startHistoryId=profile["historyId"]).execute()
assert history["historyId"] == profile["historyId"] and "history" not in history

console = build("searchconsole", "v1", http=http, cache_discovery=False,
                discoveryServiceUrl=origin + "/discovery/v1/apis/{api}/{apiVersion}/rest")
sites = console.sites().list().execute()["siteEntry"]
rows = console.searchanalytics().query(siteUrl=sites[0]["siteUrl"], body={
    "startDate": "2026-06-01", "endDate": "2026-06-01", "dimensions": ["query"],
    "rowLimit": 10}).execute()
print("python: %d messages listed, 8 of 9 parts of a batch given, %d sites, %d rows"
      % (len(ids), len(sites), len(rows.get("rows", []))))
