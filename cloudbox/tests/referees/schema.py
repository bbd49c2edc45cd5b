#!/usr/bin/python3
"""Every method of the cloud is called and every answer held against the schemas:
those of the cloud's own discovery documents, and Google's where they are at hand.
The cloud's documents themselves are held against Google's: same paths, verbs,
parameters, types and scopes.

Usage: schema.py http://127.0.0.1:PORT TOKEN [FOLDER WITH GOOGLE'S DOCUMENTS]"""
import base64
import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

origin, token = sys.argv[1:3]
folder = sys.argv[3] if len(sys.argv) > 3 else ""
problems = []


def ask(verb, path, body=None, kind="application/json", raw=None):
    data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
    request = urllib.request.Request(origin + path, data=data, method=verb)
    request.add_header("Authorization", "Bearer " + token)
    if data is not None:
        request.add_header("Content-Type", kind)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


# ---- an answer against a schema ----
TEXTS = {"uint64": r"\d+", "int64": r"-?\d+", "byte": r"[A-Za-z0-9_-]*={0,2}"}


def check(value, schema, document, where):
    """A field the schema does not know is a mistake too: we are stricter than Google."""
    if "$ref" in schema:
        schema = document["schemas"][schema["$ref"]]
    kind = schema.get("type")
    if kind == "object":
        if not isinstance(value, dict):
            problems.append("%s: not an object" % where)
            return
        known = schema.get("properties", {})
        for name, inner in value.items():
            if name in known:
                check(inner, known[name], document, where + "." + name)
            else:
                problems.append("%s: unknown field %s" % (where, name))
    elif kind == "array":
        if not isinstance(value, list):
            problems.append("%s: not a list" % where)
        elif not value:
            problems.append("%s: an empty list, which Google leaves out" % where)
        else:
            for inner in value:
                check(inner, schema["items"], document, where + "[]")
    elif kind == "string":
        if not isinstance(value, str):
            problems.append("%s: not a string: %r" % (where, value))
        elif schema.get("format") in TEXTS and not re.fullmatch(TEXTS[schema["format"]], value):
            problems.append("%s: not %s: %.40r" % (where, schema["format"], value))
        elif "enum" in schema and value not in schema["enum"]:
            spelled = re.sub(r"([a-z])([A-Z])", r"\1_\2", value).upper()
            if spelled not in schema["enum"]:
                problems.append("%s: %r is not one of its values" % (where, value))
    elif kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool):
            problems.append("%s: not an integer: %r" % (where, value))
    elif kind == "number":
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            problems.append("%s: not a number: %r" % (where, value))
    elif kind == "boolean" and not isinstance(value, bool):
        problems.append("%s: not a truth value: %r" % (where, value))


# ---- documents ----
def methods_of(document):
    found = {}

    def walk(holder):
        for method in holder.get("methods", {}).values():
            found[method["id"]] = method
        for inner in holder.get("resources", {}).values():
            walk(inner)

    walk(document)
    return found


def own(api):
    status, body = ask("GET", "/discovery/v1/apis/%s/v1/rest" % api)
    assert status == 200, (api, status)
    return json.loads(body)


def googles(api):
    path = os.path.join(folder, api + ".v1.json")
    if folder and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    print("Google's document of %s is not at hand: its comparison is skipped" % api)
    return None


def type_name(schema):
    if "$ref" in schema:
        return schema["$ref"]
    if schema.get("type") == "array":
        return type_name(schema["items"]) + "*"
    # int32 and uint32 differ in nothing a JSON number shows.
    return schema.get("type", "") + ":" + schema.get("format", "").replace("uint32", "int32")


def compare(ours, theirs, api):
    reference = methods_of(theirs)
    for name, method in methods_of(ours).items():
        real = reference.get(name)
        if real is None:
            problems.append("%s: Google has no such method" % name)
            continue
        for key in ("path", "httpMethod"):
            if method[key] != real[key]:
                problems.append("%s: %s is %s, not %s" % (name, key, real[key], method[key]))
        for key in ("request", "response"):
            if method.get(key, {}).get("$ref") != real.get(key, {}).get("$ref"):
                problems.append("%s: another %s" % (name, key))
        if set(method["scopes"]) != set(s for s in real["scopes"] if "addons" not in s):
            problems.append("%s: other scopes: %s" % (name, set(method["scopes"]) ^ set(real["scopes"])))
        for param, shape in method["parameters"].items():
            if param not in real.get("parameters", {}):
                problems.append("%s: Google has no parameter %s" % (name, param))
            elif type_name(shape) != type_name(real["parameters"][param]):
                problems.append("%s: parameter %s has another type" % (name, param))
        missing = set(real.get("parameters", {})) - set(method["parameters"])
        if missing:
            problems.append("%s: parameters missing: %s" % (name, missing))
    for name, schema in ours["schemas"].items():
        real = theirs["schemas"].get(name, {}).get("properties", {})
        for field, shape in schema["properties"].items():
            if field not in real:
                problems.append("%s.%s: unknown to Google" % (name, field))
            elif type_name(shape) not in (type_name(real[field]), type_name(real[field]).replace("google-datetime", "")):
                problems.append("%s.%s: %s, not %s" % (name, field, type_name(real[field]), type_name(shape)))
    print("%s: %d methods and %d schemas compared with Google's" %
          (api, len(methods_of(ours)), len(ours["schemas"])))


# ---- the calls ----
called = {}
documents = {}


def call(method_id, args=None, body=None, expect=(200, 204), **query):
    """One call by its id in the document; its answer is checked and returned."""
    document, real = documents[method_id.split(".")[0]]
    method = methods_of(document)[method_id]
    args = dict(args or {})
    if "{userId}" in method["path"]:
        args.setdefault("userId", "me")
    path = re.sub(r"{(\w+)}", lambda m: urllib.parse.quote(args[m.group(1)], safe=""), method["path"])
    if query:
        path += "?" + urllib.parse.urlencode(query, doseq=True)
    status, answer = ask(method["httpMethod"], "/" + path, body)
    called[method_id] = called.get(method_id, 0) + 1
    if status not in expect:
        problems.append("%s: status %d: %.200s" % (method_id, status, answer))
        return {}
    if status >= 400:
        return {}
    if "response" not in method:
        if answer.strip() not in (b"", b"{}"):
            problems.append("%s: a body where none belongs" % method_id)
        return {}
    value = json.loads(answer)
    for source in (document, real):
        if source is not None:
            check(value, methods_of(source)[method_id]["response"], source, method_id)
    return value


def mail(text):
    return {"raw": base64.urlsafe_b64encode(text.replace("\n", "\r\n").encode()).decode()}


def gmail_calls():
    users = "gmail.users."
    call(users + "getProfile")
    page = call(users + "messages.list", maxResults=500, includeSpamTrash="true")
    ids = [m["id"] for m in page["messages"]]
    for message_id in ids[:150]:
        full = call(users + "messages.get", {"id": message_id}, format="full")
        stack = [full.get("payload", {})]
        while stack:
            part = stack.pop()
            stack += part.get("parts", [])
            if "attachmentId" in part.get("body", {}):
                file = call(users + "messages.attachments.get",
                            {"messageId": message_id, "id": part["body"]["attachmentId"]})
                if file.get("size") != part["body"]["size"]:
                    problems.append("%s: an attachment of another size" % message_id)
    for style in ("raw", "metadata", "minimal"):
        for message_id in ids[:20]:
            call(users + "messages.get", {"id": message_id}, format=style)
    start = call(users + "getProfile")["historyId"]
    label = call(users + "labels.create", body={"name": "Tide"})["id"]
    put = call(users + "messages.insert", body=mail("To: ada@example.com\nSubject: s\n\nt\n"))["id"]
    call(users + "messages.import", body=mail("To: ada@example.com\nSubject: s\n\nt\n"))
    call(users + "messages.send", body=mail("To: bob@example.com\nSubject: s\n\nt\n"))
    call(users + "messages.modify", {"id": put}, {"addLabelIds": [label], "removeLabelIds": []})
    call(users + "messages.batchModify", body={"ids": [put], "addLabelIds": ["STARRED"]})
    call(users + "messages.trash", {"id": put})
    call(users + "messages.untrash", {"id": put})
    for verb in ("get", "patch", "update"):
        body = {"id": label, "name": "Tide"} if verb != "get" else None
        call(users + "labels." + verb, {"id": label}, body)
    call(users + "labels.list")
    call(users + "labels.delete", {"id": label})
    for thread in call(users + "threads.list", maxResults=30)["threads"][:10]:
        for style in ("full", "metadata", "minimal"):
            call(users + "threads.get", {"id": thread["id"]}, format=style)
    call(users + "threads.modify", {"id": thread["id"]}, {"addLabelIds": ["STARRED"]})
    call(users + "threads.trash", {"id": thread["id"]})
    call(users + "threads.untrash", {"id": thread["id"]})
    call(users + "threads.delete", {"id": thread["id"]})
    draft = call(users + "drafts.create", body={"message": mail("To: b@example.com\nSubject: s\n\nt\n")})
    call(users + "drafts.update", {"id": draft["id"]}, {"message": mail("To: b@example.com\nSubject: u\n\nt\n")})
    call(users + "drafts.get", {"id": draft["id"]}, format="full")
    call(users + "drafts.list")
    call(users + "drafts.send", body={"id": draft["id"]})
    draft = call(users + "drafts.create", body={"message": mail("Subject: s\n\nt\n")})
    call(users + "drafts.delete", {"id": draft["id"]})
    call(users + "messages.delete", {"id": put})
    call(users + "messages.batchDelete", body={"ids": [put]})
    call(users + "history.list", startHistoryId=start, maxResults=500)
    call(users + "watch", body={"topicName": "projects/p/topics/t"})
    call(users + "stop")


def console_calls():
    for site in call("webmasters.sites.list")["siteEntry"]:
        at = {"siteUrl": site["siteUrl"]}
        call("webmasters.sites.get", at)
        call("webmasters.sitemaps.list", at)
        call("webmasters.sitemaps.get", dict(at, feedpath="https://example.com/sitemap.xml"), expect=(200, 404))
        for kind in ("web", "image", "video", "news", "discover", "googleNews"):
            for dimensions in ([], ["date"], ["query", "page"], ["country", "device"], ["date", "query", "page", "country", "device"]):
                if kind in ("discover", "googleNews") and {"query", "device"} & set(dimensions):
                    continue
                call("webmasters.searchanalytics.query", at, {
                    "startDate": "2026-06-01", "endDate": "2026-06-03", "type": kind,
                    "dimensions": dimensions, "rowLimit": 100, "dataState": "all"})


for name, api in (("gmail", "gmail"), ("webmasters", "searchconsole")):
    documents[name] = (own(api), googles(api))
    if documents[name][1] is not None:
        compare(*documents[name], api)
gmail_calls()
console_calls()
for name in documents:
    for method_id in methods_of(documents[name][0]):
        if method_id not in called:
            problems.append("%s was never called" % method_id)
for problem in sorted(set(problems))[:60]:
    print(problem)
print("schema: %d methods, %d answers, %d problems" % (len(called), sum(called.values()), len(problems)))
sys.exit(1 if problems else 0)
