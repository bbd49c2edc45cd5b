"""The reader's part of the API in front of a real `tidemark serve`, with mailboxes whose rows are a function of their index: a
million messages cost nothing.  All else is passed on."""
import http.client
import json
import re
import threading
import time
import urllib.parse

from walls import Between, _Pass

DAY_MS = 86400000
NAMES = {"INBOX": "INBOX", "STARRED": "STARRED", "SENT": "SENT", "DRAFT": "DRAFT", "ALL": "ALL", "SPAM": "SPAM", "TRASH": "TRASH", "UNREAD": "UNREAD",
         "Label_1": "Harbour", "Label_2": "Family"}
EFFECTS = {"archive": ((), ("INBOX",)), "inbox": (("INBOX",), ()), "trash": (("TRASH",), ("INBOX",)), "untrash": (("INBOX",), ("TRASH",)), "spam": (("SPAM",), ("INBOX", "TRASH")),
           "unspam": (("INBOX",), ("SPAM",)), "read": ((), ("UNREAD",)), "unread": (("UNREAD",), ()), "star": (("STARRED",), ()), "unstar": ((), ("STARRED",)),
           "label": (("@",), ()), "unlabel": ((), ("@",)), "move": (("@",), ("INBOX",)), "delete": (("GONE",), ("INBOX",)), "send": ((), ())}
DENSE = 1000  # the newest have labels and states of many kinds; all others are alike
PEOPLE = ["Ben Ochoa <ben@harbour.example>", "Mia Lund <mia@lund.example>", "Calloway & Sons <post@calloway.example>", "\"Zoë, of the board\" <zoe@board.example>"]
ARCHIVED = [("Ben Ochoa", "ben@harbour.example"), ("Master, Harbour", "master@harbour.example")]  # who is known of old
SUBJECTS = ["harbour plan", "Photos of the quay", "Invoice", "<b>not markup</b>", "Minutes"]
HTML = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Message</title></head><body><p id="words">Words of {id}.</p><p><a href="mailto:crew@harbour.example?subject=Crew">write</a></p>
{image}<p style="height: {height}px">tall</p></body></html>"""


class Mailbox:
    """Message 0 is the newest of the beginning; those that arrive have negative numbers."""

    def __init__(self, user, many, known=None, step_ms=600000):
        self.user, self.many, self.step_ms = user, many, step_ms
        self.known = many if known is None else known  # what is here; the server has `many`
        self.newest = int(time.time() * 1000) // 60000 * 60000 - 60000
        self.arrived = 0
        self.version = 1
        self.log = []
        self.labels_of = {}
        self.bodies = set()
        self.actions = []
        self.kept = []  # drafts that were closed
        self.drafts = {}
        self.files = {}
        self.sent = []
        self.offline_since = None
        self.doing = None
        self.initial = None  # how many headers of the first sync are here
        self.refuse = None  # why the next action is refused
        self.found = {}
        self.asked = []
        self.read = []  # messages that were asked for in full
        self.pinned = set()
        self.refused = {}  # why Gmail does not give a message
        self.asked_refused = 0  # how often the page asked what was refused
        self.slow_s = 0  # how long a draft takes to be saved
        self.uncontinued = None  # why a draft of Gmail's is not continued
        self.held = None  # bodies that come when the test wants them; None: soon
        self.rows = threading.Event()  # pages of lists come while it is set
        self.rows.set()
        self.opened = threading.Event()  # and messages and conversations
        self.opened.set()
        self.archived = 0  # how often the mirror has stored something
        self.asked_changes = 0
        self.lock = threading.RLock()

    def changed(self, *indices):
        self.version += 1
        self.log.extend((self.version, index) for index in indices)

    def time(self, index):
        return self.newest - index * self.step_ms if index >= 0 else self.newest + -index * 1000

    def labels(self, index):
        if index in self.labels_of:
            return self.labels_of[index]
        labels = ["INBOX"]
        if index < 0 or (index % 7 == 0 and index < DENSE):
            labels.append("UNREAD")
        if 0 <= index < DENSE and index % 10 == 3:
            labels.append("Label_1")
        return labels

    def named(self, index):
        """As a message has them."""
        return [{"id": one, "name": NAMES.get(one, one)} for one in self.labels(index)]

    def has(self, index, name):
        labels = self.labels(index)
        return "GONE" not in labels and ("SPAM" not in labels and "TRASH" not in labels if name == "ALL" else name in labels)

    def reach(self, name):
        return self.known if name in ("INBOX", "ALL") else min(self.known, DENSE)

    def row(self, index):
        labels = self.labels(index)
        return {"id": f"m{index}", "thread": f"t{index // 3}", "internal_unix_ms": self.time(index), "from": PEOPLE[index % 4], "to": self.user,
                "subject": ("Re: " if index % 3 else "") + f"{SUBJECTS[index // 3 % 5]} {index // 3}", "snippet": f"Words of m{index}.", "labels": labels, "unread": "UNREAD" in labels,
                "starred": "STARRED" in labels, "pinned": index in self.pinned, "files": index % 5 == 0, "bytes": 2000, "body": "cache" if self.stored(index) else "none",
                "pending": any(index in one["indices"] and one["state"] == "waiting" for one in self.actions[-20:])}

    def stored(self, index):
        return index % 11 != 5 or index in self.bodies

    def list(self, name, after, before, limit):
        index = int(after) if after else -self.arrived if before is None else max(-self.arrived, -(-(self.newest - before + 1) // self.step_ms) if before <= self.newest else -self.arrived)
        while before is not None and not after and index < self.known and self.time(index) >= before:
            index += 1
        items, reach = [], self.reach(name)
        while index < reach and len(items) < limit:
            if self.has(index, name):
                items.append(self.row(index))
            index += 1
        done = index >= reach
        return {"items": items, "next": None if done else str(index), "more_online": done and name in ("INBOX", "ALL") and self.known < self.many, "total": self.total(name)}

    def days(self, name):
        counts = {}
        if name in ("INBOX", "ALL"):
            start = 0
            while start < self.known:  # the messages of a day are successive
                day = self.time(start) // DAY_MS
                end = min(self.known, (self.newest - day * DAY_MS) // self.step_ms + 1)
                counts[day] = end - start
                start = end
            for index in range(-self.arrived, 0):
                counts[self.time(index) // DAY_MS] = counts.get(self.time(index) // DAY_MS, 0) + 1
            for index in self.labels_of:
                if index < self.known and not self.has(index, name):
                    counts[self.time(index) // DAY_MS] -= 1
        else:
            for index in range(-self.arrived, self.reach(name)):
                if self.has(index, name):
                    counts[self.time(index) // DAY_MS] = counts.get(self.time(index) // DAY_MS, 0) + 1
        return {"days": [{"day": time.strftime("%Y-%m-%d", time.gmtime(day * 86400)), "count": many} for day, many in sorted(counts.items(), reverse=True) if many > 0]}

    def total(self, name):
        return sum(day["count"] for day in self.days(name)["days"])

    def lists(self):
        unread = [index for index in range(-self.arrived, min(DENSE, self.known)) if self.has(index, "UNREAD")]
        return {"account": self.user, "state": "active", "window_days": 30, "version": self.versions(), "lists": [
            {"id": name, "name": words, "type": "user" if name.startswith("Label") else "system", "total": self.total(name),
             "unread": sum(self.has(index, name) for index in unread), "known_unix_ms": 0} for name, words in NAMES.items() if name != "UNREAD"]}

    def versions(self):
        return f"{self.version}.0.{self.archived}"

    def changes(self, since):
        self.asked_changes += 1
        indices = {index for version, index in self.log if version > int(since.partition(".")[0])}
        return {"version": self.versions(), "reset": False, "archive": since.rpartition(".")[2] != str(self.archived), "items": [self.row(index) for index in sorted(indices) if "GONE" not in self.labels(index)],
                "gone": [f"m{index}" for index in indices if "GONE" in self.labels(index)]}

    def message(self, index, images=False):
        row, html = self.row(index), index % 4 == 0
        return {**row, "labels": self.named(index), "gone": "GONE" in self.labels(index), "refused": None if self.stored(index) else self.refused.get(index), "cc": "crew@harbour.example" if index % 2 else "", "bcc": "", "reply_to": "",
                "date_unix_ms": row["internal_unix_ms"], "message_id": f"m{index}@harbour.example", "references": "", "in_reply_to": "", "html": html and self.stored(index),
                "text": f"Words of m{index}.\nhttp://harbour.example/ is not a link.\n" if self.stored(index) else "", "problem": None, "remote_images": 2 if html else 0, "fetching": not self.stored(index),
                "attachments": [{"number": number + 1, "name": name, "file": name, "type": "application/pdf", "bytes": 340000, "inline": False}
                                for number, name in enumerate(["plan.pdf", "plän.pdf", "plan.pdf"][:1 if index % 2 else 3] if index % 5 == 0 else [])],
                "view": {"path": f"/v/{'a' if images else 'b'}{index % (1 << 60):031x}/"}}

    def thread(self, name):
        first = int(name[1:]) * 3
        return {"thread": name, "more": False, "messages": [self.message(index) for index in range(first + 2, first - 1, -1) if -self.arrived <= index < self.known]}

    # ---- what a person does

    def act(self, body):
        if body["do"] == "keep":  # it is closed: nothing to undo, nothing to show
            self.kept.append(body["draft"])
            return {"id": 0, "changed": 0, "due_unix_ms": 0}
        indices = [int(one[1:]) for one in body["messages"]]
        if body["do"] in ("pin", "unpin"):  # no server is told
            (self.pinned.update if body["do"] == "pin" else self.pinned.difference_update)(indices)
            self.changed(*indices)
            return {"id": 0, "changed": 0, "due_unix_ms": 0}
        gives, takes = ([body.get("label") if one == "@" else one for one in part] for part in EFFECTS[body["do"]])
        before = {index: self.labels(index) for index in indices}
        for index in indices:
            self.labels_of[index] = [one for one in before[index] if one not in takes and one not in gives] + list(gives)
        held = body["do"] in ("send", "delete")
        now = int(time.time() * 1000)
        one = {"id": len(self.actions) + 1, "do": body["do"], "state": "waiting", "error": None, "messages": len(indices), "made_unix_ms": now, "due_unix_ms": now + (10000 if held else 0),
               "indices": indices, "before": before, "draft": body.get("draft")}
        self.actions.append(one)
        self.changed(*indices)
        return {"id": one["id"], "changed": len(indices), "due_unix_ms": one["due_unix_ms"], "undo": True}

    def put_back(self, one, state):
        one["state"] = state
        self.labels_of.update(one["before"])
        self.changed(*one["indices"])

    def undo(self, number):
        one = self.actions[number - 1]
        if one["state"] == "done" and one["do"] in ("send", "delete"):
            return 409, {"title": "Too late", "status": 409, "code": "gone_out", "detail": "it has gone out"}
        if one["state"] in ("undone", "refused"):
            return 409, {"title": "No effect", "status": 409, "code": "stale", "detail": "this action has no effect any more"}
        self.put_back(one, "undone")
        return 200, {"id": number, "undone": True, "inverse": None}

    def tick(self):
        """What the server would do meanwhile."""
        for one in self.actions:
            if one["state"] != "waiting" or self.offline_since or time.time() * 1000 < one["due_unix_ms"] + 300:
                continue
            if self.refuse and one["do"] != "read":
                one["error"], self.refuse = self.refuse, None
                self.put_back(one, "refused")
            else:
                one["state"] = "done"
                if one["do"] == "send":
                    self.sent.append({**self.drafts.pop(one["draft"]), "files": self.files.pop(one["draft"], {})})
                self.changed(*one["indices"])

    def refresh(self, body):
        self.asked.append(body)
        if "message" in body and not self.offline_since:
            index = int(body["message"][1:])
            if self.held is None:
                threading.Timer(0.4, self.bring, [index]).start()
            else:
                self.held.append(index)
        elif "more" in body and not self.offline_since and self.initial is None:
            before, self.known = self.known, min(self.many, self.known + 200)
            self.changed(*range(before, self.known))
        elif "query" in body:
            self.found[body["query"]] = time.time() + 0.5
        return {"job": 1, "account": self.user}

    def bring(self, index):
        self.bodies.add(index)
        self.changed(index)

    def bring_held(self):
        for index in self.held:
            self.bring(index)
        self.held = None

    def store(self, many):
        """The mirror fills the archive: no message of the reader's changes."""
        self.known += many
        self.archived += 1

    def arrive(self):
        self.arrived += 1
        self.changed(-self.arrived)

    def status(self):
        waiting = sum(one["state"] == "waiting" for one in self.actions)
        return {"account": self.user, "state": "active" if self.initial is None else "initial", "doing": self.doing, "waiting": {"level1": 0, "level2": waiting, "level3": 0, "level4": 412 if self.doing else 0},
                "actions": {"waiting": waiting, "refused": sum(one["state"] == "refused" for one in self.actions)}, "offline_since": self.offline_since, "next_poll_unix_ms": None,
                "initial": None if self.initial is None else {"done": self.initial, "total": self.many}, "version": self.versions()}


class Stub(Between):
    def __init__(self, stage, *boxes):
        self.boxes = {box.user: box for box in boxes}
        self.stage = stage
        self.streams = 0
        self.topics = []
        super().__init__(stage.port(), {})
        self.RequestHandlerClass = _Answer

    def gone(self):
        return self.stage.serve_process.poll() is not None

    def stream(self, answer, out):
        """The state as it is, with a system more; and the reader's topic."""
        lock, ended = threading.Lock(), threading.Event()
        with_reader = "reader" in self.topics[-1]

        def write(text):
            with lock:
                out.write(text)
                out.flush()

        def follow():
            last = None
            self.streams += 1
            while not ended.is_set() and not self.gone():
                boxes = list(self.boxes.values())
                for box in boxes:
                    with box.lock:
                        box.tick()
                now = json.dumps({"accounts": [box.status() for box in boxes]})
                try:
                    write(f"event: reader\ndata: {now}\n\n".encode() if now != last else b": \n\n")
                except OSError:
                    break
                last = now
                ended.wait(0.2)
            self.streams -= 1
        if with_reader:
            threading.Thread(target=follow, daemon=True).start()
        text = b""
        try:
            while piece := answer.read1(65536):
                *events, text = (text + piece).split(b"\n\n")
                for event in events:
                    lines = event.decode().split("\n")
                    data = "\n".join(line[6:] for line in lines if line.startswith("data: "))
                    write(("\n".join(line for line in lines if not line.startswith("data: ")) + f"\ndata: {json.dumps(more(json.loads(data)))}\n\n").encode() if data else event + b"\n\n")
        except (OSError, http.client.HTTPException):
            pass
        ended.set()


OUTAGE = {}  # what `serve` says of its accounts while nobody answers


def more(state):
    for account in state["accounts"]:
        account.update(OUTAGE)
    if not any(one["name"] == "reader" for one in state["systems"]):
        state["systems"].append({"name": "reader", "provider": "gmail", "unit": "messages", "subject": "account"})
    return state


class _Answer(_Pass):
    def _pass(self):
        server, url = self.server, urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if server.gone():
            self.close_connection = True
            self.connection.close()
            return
        if url.path == "/api/v1/stream":
            server.topics.append(query["topics"])
            self.path = "/api/v1/stream?topics=state"
        frame = re.fullmatch(r"/v/([ab])([0-9a-f]{31})/(html|att/\d|img/\d)", url.path)
        part = re.fullmatch(r"/api/v1/mail/([^/]+)/(\w+)(?:/([^/]+))?(?:/([^/]+))?(?:/([^/]+))?", url.path)
        box = server.boxes.get(urllib.parse.unquote(part[1])) if part else None
        if frame:
            self._frame(*frame.groups())
        elif box:
            if self.command == "PUT" and part[2] == "drafts" and part[4] is None:
                time.sleep(box.slow_s)
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "GET" and part[2] == "lists" and part[3] and not part[4]:
                box.rows.wait()
            if self.command == "GET" and part[2] in ("messages", "threads"):
                box.opened.wait()
            with box.lock:
                code, answer = self._box(box, [urllib.parse.unquote(one) for one in part.groups()[1:] if one], query, sent)
            self._send(code, json.dumps(answer).encode())
        else:
            super()._pass()

    do_GET = do_POST = do_PUT = do_DELETE = _pass

    def _changed(self, body):
        return json.dumps(more(json.loads(body))).encode() if self.path == "/api/v1/state" else body

    def _frame(self, images, index, what):
        if what != "html":
            self._send(200, b"%PDF-" + what.encode(), "application/octet-stream")
            return
        image = '<img src="img/0" alt="a remote image">' if images == "a" else ""
        self._send(200, HTML.format(id=f"m{int(index, 16)}", image=image, height=40 if int(index, 16) % 8 else 2000).encode(), "text/html; charset=utf-8",
                   "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin")

    def _search(self, box, query):
        rows = [box.row(index) for index in range(-box.arrived, min(300, box.known))
                if query["q"].lower() in (box.row(index)["subject"] + box.row(index)["from"]).lower() and box.stored(index)]
        at = int(query.get("after") or 0)
        return {"items": rows[at:at + 50], "next": str(at + 50) if at + 50 < len(rows) else None}

    def _box(self, box, parts, query, sent):
        """What an answer is: its status and its content."""
        what, rest = (self.command, parts[0], len(parts)), parts[1:]
        body = json.loads(sent) if sent and self.command in ("POST", "PUT") and what != ("PUT", "drafts", 4) else None
        draft = rest[0] if parts[0] == "drafts" and rest else None
        if what == ("GET", "lists", 1):
            return 200, box.lists()
        if what == ("GET", "lists", 2):
            return 200, box.list(rest[0], query.get("after"), int(query["before"]) if "before" in query else None, int(query.get("limit", 50)))
        if what == ("GET", "lists", 3):
            return 200, box.days(rest[0])
        if what == ("GET", "changes", 1):
            return 200, box.changes(query["since"])
        if what == ("GET", "messages", 2):
            box.read.append(rest[0])
            return 200, box.message(int(rest[0][1:]), "images" in query)
        if what == ("GET", "threads", 2):
            return 200, box.thread(rest[0])
        if what == ("GET", "search", 1):
            return 200, self._search(box, query)
        if what == ("GET", "found", 1):
            done = time.time() > box.found.get(query["q"], 0)
            missing = [index for index in range(min(300, box.known)) if not box.stored(index) and query["q"].lower() in (box.row(index)["subject"] + box.row(index)["from"]).lower()]
            return 200, {"items": [box.row(index) for index in missing[:7]] if done else [], "done": done}
        if what == ("POST", "refresh", 1):
            return 202, box.refresh(body)
        if what == ("POST", "actions", 1):
            return 200, box.act(body)
        if what == ("GET", "actions", 1):
            box.asked_refused += query.get("state") == "refused"
            return 200, {"items": [{name: value for name, value in one.items() if name not in ("indices", "before")} for one in reversed(box.actions) if query.get("state") in (None, one["state"])][:int(query.get("limit", 50))]}
        if what == ("DELETE", "actions", 2):
            return box.undo(int(rest[0]))
        if what == ("GET", "people", 1):
            return 200, {"items": [{"name": name, "address": address} for name, address in ARCHIVED if query["q"].lower() in f"{name} {address}".lower()]}
        if what == ("POST", "drafts", 1) and box.uncontinued:
            return 404, {"title": "Not found", "status": 404, "code": "not_found", "detail": box.uncontinued}
        if what == ("GET", "drafts", 1):
            sending = {one["draft"]: one["id"] for one in box.actions if one["state"] == "waiting" and one["draft"]}
            return 200, {"items": [{"id": id, "sending": sending.get(id, 0), **letter} for id, letter in box.drafts.items()]}
        if what == ("GET", "drafts", 2) and draft in box.drafts:
            return 200, {"id": draft, **box.drafts[draft], "attachments": [{"name": name, "bytes": len(data)} for name, data in box.files.get(draft, {}).items()]}
        if what == ("PUT", "drafts", 2):
            created = draft not in box.drafts
            box.drafts[draft] = {**body, "saved_unix_ms": int(time.time() * 1000), "saves": box.drafts.get(draft, {}).get("saves", 0) + 1}
            return 200, {"id": draft, "saved_unix_ms": box.drafts[draft]["saved_unix_ms"], "created": created}
        if what == ("PUT", "drafts", 4) and draft in box.drafts:
            box.files.setdefault(draft, {})[rest[2]] = sent
            return 200, {"name": rest[2], "bytes": len(sent)}
        if what == ("DELETE", "drafts", 4):
            return 200, {"removed": box.files[draft].pop(rest[2], None) is not None}
        if what == ("DELETE", "drafts", 2):
            box.files.pop(draft, None)
            return 200, {"removed": box.drafts.pop(draft, None) is not None}
        return 404, {"title": "Not found", "status": 404, "code": "not_found", "detail": "there is no such thing"}
