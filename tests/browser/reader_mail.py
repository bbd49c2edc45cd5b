"""Mail of the cloud that the reader of `serve` is to show, and what the cloud itself says of it: `stage.ids` has its messages by name."""
import base64
import json
import urllib.request

from stage import USER, until


def letter(name, text="", file=None):
    """`file`: bytes that do not pack."""
    head = f"From: Ben Ochoa <ben@harbour.example>\r\nTo: {USER}\r\nSubject: {name}\r\nMessage-ID: <{name.replace(' ', '.')}@harbour.example>\r\nMIME-Version: 1.0\r\n"
    body = f"Text of {name}. {text}\r\n"
    if file is None:
        return f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n{body}"
    packed = base64.encodebytes(file).decode().replace("\n", "\r\n")
    return (f"{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n{body}\r\n--b\r\nContent-Type: application/octet-stream\r\n"
            f"Content-Disposition: attachment; filename=chart.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n{packed}\r\n--b--\r\n")


def gmail(stage, path, token="tok", method=None, body=None):
    """What the server itself says to who has this token, or does for another program of theirs."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{stage.origin}/gmail/v1/users/me/{path}", data=data, method=method,
                                     headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as told:
        return json.loads(told.read() or b"null")


def label_make(stage, name, token="tok"):
    """Its id."""
    return gmail(stage, "labels", token, body={"name": name})["id"]


def message_of(raw):
    """As the API takes it."""
    return {"raw": base64.urlsafe_b64encode(raw.encode()).decode()}


def labels(stage, name, token="tok"):
    return set(gmail(stage, f"messages/{stage.ids[name]}?format=minimal", token).get("labelIds", []))


def fetched(stage):
    """How often the body of each message was fetched."""
    return stage.ask_cloud("/_cloud/stats?fetched=1")["users"][USER]["fetched"]["ids"]


def opens(page, name):
    page.sees(name, ".talk-subject")
    page.reads(f"Text of {name}.")
    until(lambda: page.count(".no-body") == 0, "its body, not what the list says of it")
