#!/usr/bin/env python3
"""serve_kill.py TIDEMARK CLOUD --preload LIBRARY [--points N] [--random N] [--seed N]

`tidemark serve` runs a sync, a backup and an archiver on schedules, a browser and programs come and go, a client asks for
runs over the API, mail arrives and a command hands a sync over, and an alert is to be told by mail.  Meanwhile the process
is killed with SIGKILL: at operations on its ledger's files, evenly spread (kill_preload.c), and at random moments.  Shown, from
the files after each kill and from the next process:
  - each time of a schedule starts one run; a run that was interrupted is repeated, once (serve_trace.py, E8.1)
  - a POST that is repeated with its Idempotency-Key has one effect
  - a key that was given out is valid, and one that was revoked is not
  - an alert is told once an hour, and only what was in flight at a kill is told again, as the same message (E6.4)
  - in the end the archive is the mailbox byte for byte, with no message twice; what the archiver took away is stored (M15)
Kills that strike after a life's work are counted apart; too few that strike before are a failure."""
import argparse
import base64
import collections
import email
import glob
import http.client
import json
import mmap
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from serve_trace import Trace  # noqa: E402
from stage import Failed, Stage, USER, until  # noqa: E402

GONE = (OSError, http.client.HTTPException, json.JSONDecodeError)
MODES = ("after", "before", "torn")
SCHEDULES = [("mail-sync", "every 1s", ["mail", "sync"]),
             ("archiver", "every 2s", ["mail", "archive", "--mode", "trash", "--no-sync", "--yes", "subject:outdated"])]
HOUR_MS = 3600 * 1000


class Campaign:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.stage = Stage(options.tidemark, options.cloud, TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS="6000000")
        self.delivered = 0
        self.posts, self.post_open = 0, None  # Idempotency-Keys so far; the one that is not settled
        self.keys = {}  # text: (id, "valid", "revoked" or "unsure")
        self.hours = 1
        self.sync = None
        self.over = threading.Event()
        self.failures = []
        self.counts = collections.Counter()

    # ---- before the first life

    def prepare(self):
        stage = self.stage
        stage.start_cloud("--seed", "5", "--mailbox", f"{USER}=60", "--token", f"tok={USER}", "--latency", "2")
        self.trash = set(self.on_server("in:trash"))
        stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
        smtp = stage.start([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/smtp_server.py"),
                            stage.path("post")], "smtp")
        until(lambda: "listening" in stage.read("smtp.out") or smtp.poll() is not None, "the mail server listens")
        stage.run("alerts", "setup", "--to", "ops@example.com", "--server", "smtp://127.0.0.1:" + stage.read("smtp.out").split()[1])
        stage.run("config", "set", "alerts.metadata_budget", "1KiB")
        for name, at, words in SCHEDULES + [("backup", "every 2s", ["backup", stage.path("copy")]),
                                            ("asked", "0 0 29 2 *", ["backup", stage.path("asked")])]:
            stage.run("schedule", "add", "--at", at, "--name", name, "--", *words)
        self.trace = Trace(os.path.join(stage.home, "state.db"))
        with open(stage.path("count"), "wb") as file:
            file.write(bytes(8))
        with open(stage.path("count"), "r+b") as file:
            self.count = mmap.mmap(file.fileno(), 8)
        if not stage.start_serve():
            raise Failed("serve does not start: " + stage.read("serve.log"))
        self.key = stage.json("token", "add", "client", "--scope", "work")["key"]
        stage.run("mail", "sync", "--quiet")
        stage.stop_serve(0, 5)  # a schedule may have jobs
        self.trace.mark()

    # ---- who uses it in a life; each returns when it has done its part, or raises one of GONE

    def post(self, number):
        while True:
            status, answer = self.stage.ask_page("/api/v1/schedules/asked/run", self.key, {}, Idempotency_Key=f"post-{number}")
            if status == 202:
                return
            if status not in (429, 503):
                raise Failed(f"POST {number} was answered with {status}: {answer}")
            time.sleep(0.02)

    def get(self, path):
        while True:
            status, answer = self.stage.ask_page(path, self.key)
            if status == 200:
                return answer
            if status != 503:
                raise Failed(f"{path} was answered with {status}: {answer}")
            time.sleep(0.02)

    def settled(self):
        asked = next(one for one in self.get("/api/v1/schedules")["schedules"] if one["name"] == "asked")
        return asked["wanted_unix_ms"] is None and asked["last"] in ("done", "failed")

    def client(self):
        """Asks for runs, one after the other; a request that got no answer is sent again."""
        if self.posts > 0:
            self.post(self.posts)
            until(self.settled, f"run {self.posts} is over")
        self.posts += 1
        self.post(self.posts)
        self.post(self.posts)
        until(self.settled, f"run {self.posts} is over")
        self.post(self.posts)

    def owner(self):
        """Gives keys to programs and takes them away."""
        for text, (number, state) in self.keys.items():
            if state == "valid" and self.random.random() < 0.5:
                self.keys[text] = (number, "unsure")
                if self.stage.command("token", "revoke", str(number)).returncode == 0:
                    self.keys[text] = (number, "revoked")
                break
        done = self.stage.command("token", "add", f"program-{len(self.keys)}", "--scope", "look", "--json")
        if done.returncode == 0:
            made = json.loads(done.stdout)
            self.keys[made["key"]] = (made["id"], "valid")

    def browser(self):
        status, pairing = self.stage.ask_page("/api/v1/pairings", body={})
        if status != 200 and status != 201:
            raise Failed(f"a pairing was answered with {status}: {pairing}")
        terminal = threading.Thread(target=lambda: self.stage.command("open", text="y\n"))
        terminal.start()
        try:
            status, answer = self.stage.ask_page("/api/v1/pairings", pairing["ticket"], scheme="Pairing")
            if status == 200 and "key" in answer:
                self.keys[answer["key"]] = (None, "valid")
        finally:
            terminal.join()

    def sender(self):
        """Mail arrives, and a command hands a sync over; it outlives the process and ends by itself."""
        for _ in range(3):
            subject = "outdated" if self.delivered % 3 == 0 else "kept"
            self.stage.deliver(f"From: b@example.org\r\nSubject: {subject} {self.delivered}\r\n\r\nnumber {self.delivered}\r\n")
            self.delivered += 1
        if self.sync is None or self.sync.poll() is not None:
            self.sync = self.stage.start([self.stage.tidemark, "--home", self.stage.home, "mail", "sync", "--quiet"], "sync")
        while self.sync.poll() is None and not self.over.is_set():
            time.sleep(0.02)

    def take_part(self, part):
        try:
            part()
        except (Failed, *GONE) as error:
            # A process that was killed answers no more, and is gone a moment later.
            try:
                until(lambda: self.over.is_set() or self.stage.serve_process.poll() is not None, "it ends", 20)
            except Failed:
                self.failures.append(f"{part.__name__}: {error!r} while serve runs")

    # ---- one life

    def start(self, at, mode):
        env = dict(self.stage.env, LD_PRELOAD=os.path.realpath(self.options.preload), TIDE_KILL_COUNT=self.stage.path("count"),
                   TIDE_KILL_FILE="/home/state.db", TIDE_KILL_AT=str(at), TIDE_KILL_MODE=mode)
        self.count[:] = bytes(8)
        if self.stage.start_serve(env=env):
            return True
        if self.stage.serve_process.wait() == -9:
            return False
        if self.sync is not None and self.sync.poll() is None:
            self.sync.wait(120)  # the command took the home over: it is refused until that ends
            return self.start(at, mode)
        raise Failed("serve does not start: " + self.stage.read("serve.log"))

    def check_keys(self):
        for text, (number, state) in self.keys.items():
            if state != "unsure":
                status, _ = self.stage.ask_page("/api/v1/alerts", text)
                if (status == 401) != (state == "revoked") and status != 503:
                    raise Failed(f"key {number} is {state} and was answered with {status}")

    def life(self, at=0, mode="after", after_s=None):
        """Returns whether the kill struck before the work of this life was done."""
        began = time.monotonic()
        self.over.clear()
        struck = False
        if self.start(at, mode):
            try:
                self.check_keys()
            except GONE:
                pass
            parts = [threading.Thread(target=self.take_part, args=(part,))
                     for part in (self.client, self.owner, self.browser, self.sender)]
            for part in parts:
                part.start()
            while any(part.is_alive() for part in parts) and self.stage.serve_process.poll() is None and \
                    (after_s is None or time.monotonic() - began < after_s):
                time.sleep(0.005)
            struck = any(part.is_alive() for part in parts)
            if not struck:  # what a whole life is, on this machine and now
                self.whole_s, self.operations = time.monotonic() - began, int.from_bytes(self.count[:], "little")
            if self.stage.serve_process.poll() is None:
                self.stage.kill_serve()
            self.over.set()
            for part in parts:
                part.join()
        else:
            struck = True
        if self.stage.serve_process.wait() != -9:
            raise Failed(f"serve ended by itself: {self.stage.read('serve.log')}")
        self.trace.mark()
        if self.failures:
            raise Failed("; ".join(self.failures))
        self.trace.check()
        self.counts["struck" if struck else "at rest"] += 1
        return struck

    def an_hour_passes(self):
        with sqlite3.connect(os.path.join(self.stage.home, "state.db"), timeout=30) as database:
            database.execute("UPDATE notice_state SET sent = sent - ? WHERE sent > ?", (HOUR_MS, HOUR_MS))
        self.hours += 1

    def run(self):
        self.prepare()
        self.life()  # without a kill: how many operations there are, and how long they take
        self.counts.clear()
        lives = [("point", i / self.options.points) for i in range(self.options.points)]
        lives += [("random", self.random.random()) for _ in range(self.options.random)]
        self.random.shuffle(lives)
        for i, (kind, part) in enumerate(lives):
            if i % 4 == 3:
                self.an_hour_passes()
            if kind == "point":
                self.life(at=1 + int(part * self.operations), mode=MODES[i % 3])
            else:
                self.life(after_s=part * self.whole_s)
            self.counts[kind] += 1
            if self.options.verbose:
                print(f"life {i}: {kind} {part:.3f}, {dict(self.counts)}", file=sys.stderr)
        if self.counts["struck"] * 3 < len(lives):
            raise Failed(f"only {self.counts['struck']} of {len(lives)} kills struck a life at work")
        figures = self.finish()
        print(f"serve kills {len(lives)} ({self.counts['point']} at points of about {self.operations} operations, {self.counts['random']} random; "
              f"{self.counts['struck']} before the work of a life was done), {figures}")

    # ---- the end

    def finish(self):
        """Everything comes to rest without a kill, and is compared."""
        stage = self.stage
        if not self.start(0, "after"):
            raise Failed("serve does not start")
        self.check_keys()
        if self.posts > 0:
            self.post(self.posts)
            until(self.settled, "the last run is over")
        if self.sync is not None:
            self.sync.wait(120)
        stage.run("mail", "sync", "--quiet")
        outdated = self.on_server("subject:outdated")
        until(lambda: not self.on_server("subject:outdated%20-in:trash"), f"the archiver is done: {len(outdated)} messages", 120)
        for name in ("mail-sync", "archiver", "backup"):
            until(lambda name=name: self.is_done(name), f"{name} is done", 120)
        rows = self.trace.check()
        for name in ("mail-sync", "archiver", "backup"):
            stage.run("schedule", "remove", name)
        until(lambda: all(one["jobs_running"] + one["jobs_waiting"] == 0 for one in stage.json("status")["accounts"]), "it rests")
        stage.stop_serve()
        if rows["asked"]["asked"] != self.posts:
            raise Failed(f"{self.posts} POSTs had {rows['asked']['asked']} effects")
        stage.run("mail", "sync", "--quiet")
        self.compare(outdated)
        stage.run("ledger", "check")
        stage.run("mail", "verify")
        done = subprocess.run([stage.tidemark, "--home", stage.path("copy"), "ledger", "check"], capture_output=True, env=stage.env,
                              text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise Failed("the copy: " + done.stdout + done.stderr)
        runs = sum(one["runs"] for one in rows.values())
        return (f"{runs} runs of {sum(one['slots'] for one in rows.values())} times and {self.posts} POSTs, "
                f"{sum(one['repeated'] for one in rows.values())} repeated, {len(self.keys)} keys, {self.check_mail()}, "
                f"{len(self.on_server(''))} messages")

    def is_done(self, name):
        return any(one["name"] == name and one["last"] == "done" for one in self.get("/api/v1/schedules")["schedules"])

    def check_mail(self):
        """Distinct notices: one an hour at most; the same one again: at most once for each kill."""
        seen = collections.Counter()
        for path in glob.glob(self.stage.path("post", "mail.[0-9]*")):
            if not path.endswith(".new"):
                with open(path, "rb") as file:
                    seen[email.message_from_bytes(file.read().split(b"\n", 1)[1])["Message-ID"]] += 1
        again = sum(seen.values()) - len(seen)
        if not 1 <= len(seen) <= self.hours or again > self.counts["point"] + self.counts["random"]:
            raise Failed(f"{len(seen)} notices in {self.hours} hours, {again} repeated: {seen}")
        return f"{len(seen)} notices in {self.hours} hours, {again} repeated"

    def on_server(self, query):
        ids, token = [], ""
        while True:
            page = self.gmail(f"messages?maxResults=500&includeSpamTrash=true&q={query}&pageToken={token}")
            ids += [one["id"] for one in page.get("messages", [])]
            token = page.get("nextPageToken")
            if not token:
                return ids

    def gmail(self, path):
        done = subprocess.run(["curl", "-sSf", "-H", "Authorization: Bearer tok", f"{self.stage.origin}/gmail/v1/users/me/{path}"],
                              capture_output=True, check=True, timeout=60)
        return json.loads(done.stdout)

    def compare(self, outdated):
        stored = collections.Counter()
        for shard in glob.glob(os.path.join(self.stage.home, "archive", USER, "*.db")):
            with sqlite3.connect(shard) as database:
                stored.update(row[0] for row in database.execute("SELECT gmail_id FROM message"))
        server = self.on_server("")
        if sorted(stored) != sorted(server) or set(stored.values()) != {1}:
            raise Failed(f"{len(stored)} messages are stored ({sum(stored.values())} rows), {len(server)} are on the server")
        self.stage.run("mail", "export", self.stage.path("eml"))
        for message in server:
            raw = self.gmail(f"messages/{message}?format=raw")
            with open(self.stage.path("eml", message + ".eml"), "rb") as file:
                if file.read() != base64.urlsafe_b64decode(raw["raw"] + "=="):
                    raise Failed(f"message {message} differs")
            if ("TRASH" in raw["labelIds"]) != (message in outdated or message in self.trash):
                raise Failed(f"message {message} has the labels {raw['labelIds']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tidemark")
    parser.add_argument("cloud")
    parser.add_argument("--preload", required=True)
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--random", type=int, default=4)
    parser.add_argument("--seed", type=int, default=os.getpid())
    parser.add_argument("--verbose", action="store_true")
    campaign = Campaign(parser.parse_args())
    try:
        campaign.run()
    except Failed as failed:
        print(f"FAILED: seed {campaign.options.seed}: {failed}", file=sys.stderr)
        campaign.failures.append(str(failed))
    finally:
        if campaign.failures and os.environ.get("TIDE_KEEP"):
            print(f"kept: {campaign.stage.dir}", file=sys.stderr)
            campaign.stage.serve_process.kill()
        else:
            campaign.stage.end()
    sys.exit(1 if campaign.failures else 0)


main()
