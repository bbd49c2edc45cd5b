"""The mail that the kill campaign of the assistant has dealt with, and what became of it.

A round is one thread for each part below.  In its first act mail arrives; in its second the user does something with what the
assistant made of it.  Rounds differ in a number in every subject and text, and in nothing else: what an undisturbed round leaves,
every other one must leave, too."""
import json
import urllib.request

from stage import USER, Failed

OURS = "🤖 AI/"
CATEGORIES = {"Needs Response", "Outbox", "Action Required", "Payment Requests", "FYI", "Waiting"}
# part: (what the mail says, the category that the model gives it, the user's act)
PARTS = {
    "fyi": ("The tower is closed", "fyi", None),
    "bill": ("Here is the invoice", "payment_request", None),
    "reworked": ("Shall we meet", "needs_response", "rework"),
    "done": ("Shall we dine", "needs_response", "done"),
    "sent": ("Shall we walk", "needs_response", "send"),
    "discarded": ("Shall we dance", "needs_response", "discard"),
    "manual": ("The lake is frozen", "fyi", "needs_response"),
    "waiting": ("I shall ask my brother", "waiting", "reply"),
    "agent": ("A case for the helpdesk", None, None),
    "escalated": ("A case for a person", None, None),
}
AGENTS = """
rules:
  - name: cases
    when: {subject_contains: case}
    route: agent
    profile: support
  - name: everything
    when: {all: true}
    route: pipeline
profiles:
  support:
    system_prompt: You help customers.
    tools: [search_archive, read_thread, create_draft, add_label, escalate]
"""
REPLY = "My brother says yes"


def verdict(category):
    return json.dumps({"category": category, "confidence": "high", "reasoning": "so", "detected_language": "en",
                       "resolved_style": "business"})


class Cast:
    """A round on a stage whose cloud runs."""

    def __init__(self, stage, number):
        self.stage = stage
        self.number = number
        self.threads = {}

    # ---- the server

    @staticmethod
    def teach(stage):
        """What the model answers; the first that fits counts."""
        said = [{"contains": REPLY, "reply": verdict("needs_response")},
                {"contains": PARTS["agent"][0], "tool": {"name": "create_draft", "arguments": {"text": "We look into it."}},
                 "reply": "Drafted."},
                {"contains": PARTS["escalated"][0], "tool": {"name": "escalate", "arguments": {"reason": "not mine"}},
                 "reply": "Escalated."}]
        said += [{"contains": text, "reply": verdict(category)} for text, category, _ in PARTS.values() if category is not None]
        for one in said:
            stage.ask_cloud("/_cloud/chat", one)

    @staticmethod
    def gmail(stage, path, body=None, method=None):
        request = urllib.request.Request(f"{stage.origin}/gmail/v1/users/me/{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", "Bearer tok")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def ask(self, path, body=None, method=None):
        return self.gmail(self.stage, path, body, method)

    def labels(self):
        return {one["id"]: one["name"] for one in self.ask("labels")["labels"]}

    def history_id(self):
        return int(self.ask("profile")["historyId"])

    # ---- the acts

    def subject(self, part):
        return f"{'A case' if part in ('agent', 'escalated') else 'Number'} {self.number} {part}"

    def deliver(self, part, text, reply_to=None):
        message_id = f"<{part}.{self.number}.{'again' if reply_to else 'first'}@example.org>"
        head = [f"From: Bob <bob@example.org>\r\nTo: {USER}\r\nSubject: {'Re: ' if reply_to else ''}{self.subject(part)}",
                f"Message-ID: {message_id}"]
        if reply_to:
            head += [f"In-Reply-To: {reply_to}", f"References: {reply_to}"]
        return self.stage.deliver("\r\n".join(head) + f"\r\n\r\n{text} {self.number}.\r\n")

    def arrive(self):
        for part, (text, _, _) in PARTS.items():
            message = self.deliver(part, text)
            self.threads[part] = self.ask(f"messages/{message}?format=minimal")["threadId"]

    def draft_of(self, part):
        found = [one["id"] for one in self.drafts() if one["message"]["threadId"] == self.threads[part]]
        if len(found) != 1:
            raise Failed(f"{self.subject(part)} has {len(found)} drafts")
        return found[0]

    def put_label(self, part, name):
        label = next(key for key, value in self.labels().items() if value == OURS + name)
        first = self.ask(f"threads/{self.threads[part]}?format=minimal")["messages"][0]["id"]
        self.ask(f"messages/{first}/modify", {"addLabelIds": [label]})

    def act(self):
        for part, (_, _, act) in PARTS.items():
            if act == "rework":
                self.put_label(part, "Rework")
            elif act == "done":
                self.put_label(part, "Done")
            elif act == "needs_response":
                self.put_label(part, "Needs Response")
            elif act == "send":
                self.ask("drafts/send", {"id": self.draft_of(part)})
            elif act == "discard":
                self.ask("drafts/" + self.draft_of(part), method="DELETE")
            elif act == "reply":
                self.deliver(part, REPLY, f"<{part}.{self.number}.first@example.org>")

    # ---- what is there

    def drafts(self):
        return self.ask("drafts?maxResults=500").get("drafts", [])

    def drafts_by_thread(self):
        count = {}
        for one in self.drafts():
            count[one["message"]["threadId"]] = count.get(one["message"]["threadId"], 0) + 1
        return count

    def on_server(self, part, names, drafts):
        """Labels of ours of each message, drafts and sent messages; raises if there is one too many."""
        thread = self.ask(f"threads/{self.threads[part]}?format=minimal")
        messages, sent = [], 0
        for one in thread["messages"]:
            labels = {names.get(label, label) for label in one.get("labelIds", [])}
            if "DRAFT" in labels or "TRASH" in labels:
                continue
            sent += "SENT" in labels
            ours = {name.removeprefix(OURS) for name in labels if name.startswith(OURS)}
            if len(ours & CATEGORIES) > (1 if part != "manual" else 2):  # there the user put one on
                raise Failed(f"{self.subject(part)} has the labels {sorted(ours)}")
            messages.append(sorted(ours) + ["INBOX"] * ("INBOX" in labels))
        count = drafts.get(self.threads[part], 0)
        if count > 1:
            raise Failed(f"{self.subject(part)} has {count} drafts")
        return {"messages": messages, "drafts": count, "sent": sent}

    def look(self):
        names, drafts = self.labels(), self.drafts_by_thread()
        return {part: self.on_server(part, names, drafts) for part in self.threads}
