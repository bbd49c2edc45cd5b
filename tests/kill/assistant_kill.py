#!/usr/bin/env python3
"""assistant_kill.py TIDEMARK CLOUD --preload LIBRARY [--kills N] [--seed N] [--ledger sqlite|postgres] [--verbose]

The mail assistant works on rounds of mail (assistant_cast.py) that have each of its kinds of jobs run, in `tidemark serve` on
SQLite, or in two workers on PostgreSQL.  Meanwhile the process is killed with SIGKILL: at operations on its ledger's files and at
requests that it sends, evenly spread (kill_preload.c), and at random moments.  Shown (J17):
  - after each kill no thread has two drafts, and none two labels of categories
  - each round ends as one that was not disturbed: labels, drafts, sent mail, records, events, runs of agents
  - a question was asked of the model at most once more than processes died while it was open
Kinds of jobs that ran when a kill struck are counted; in a long campaign each must have been struck."""
import argparse
import collections
import json
import mmap
import os
import random
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from assistant_cast import AGENTS, Cast  # noqa: E402
from stage import Failed, Stage, USER, until  # noqa: E402

KINDS = ("sync", "classify", "draft", "manual_draft", "rework", "cleanup", "agent", "ask")
MODES = ("after", "before", "torn")
POINTS = {"ledger": "state.db", "send": "socket:"}
KILLS_IN_ACT = 2  # a job has three attempts (J1)
LONG = 100        # kills, from which on each kind must have been struck
KEY = "key-0a1B2c3D4e5F6a7B8c9D"


class File:
    """`tidemark serve` on a ledger in a file."""
    ways = ("ledger", "random", "send")
    prefix = ""

    def __init__(self, stage):
        self.stage = stage
        self.homes = [stage.home]
        self.path = os.path.join(stage.home, "state.db")

    def prepare(self):
        pass

    def rows(self, sql):
        database = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)
        try:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(sql)]
        finally:
            database.close()

    def command(self, *arguments, home=None):
        return [self.stage.tidemark, "--home", home or self.stage.home, *arguments]

    def ask(self):
        """Nobody asks: serve looks for mail when it starts.  A command would take the home over from a process that died, and be
        one more that is killed."""
        return None

    def start(self, env):
        """False: it ended before it served."""
        return self.stage.start_serve(env=env)

    def died(self):
        return self.stage.serve_process.poll() is not None

    def kill(self):
        self.stage.kill_serve()

    def was_killed(self):
        return self.stage.serve_process.wait() == -9

    def rest(self):
        self.stage.stop_serve(0, 5)

    def log(self):
        return self.stage.read("serve.log")

    def end(self):
        pass


class Fleet:
    """Two workers on a ledger in PostgreSQL, of which one is killed, in turns; the other goes on."""
    ways = ("send", "random")
    prefix = "tidemark."

    def __init__(self, stage):
        self.stage = stage
        self.homes = [stage.home, stage.path("two")]
        self.workers = [None, None]
        self.armed = 0
        self.url = None
        self.cluster = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/pg_cluster.sh")
        stage.env.update(TIDEMARK_FLEET_LEASE="3s", TIDEMARK_FLEET_LOOK="1s", TIDEMARK_FLEET_POLL="200ms")

    def prepare(self):
        done = subprocess.run([self.cluster, "start", "--fast"], capture_output=True, text=True, check=False)
        if done.returncode == 77:
            print(done.stderr.strip() or done.stdout.strip())
            raise SystemExit(77)
        self.url = done.stdout.strip()
        subprocess.run(self.command("ledger", "migrate"), capture_output=True, env=self.stage.env, check=True)

    def rows(self, sql):
        done = subprocess.run(["psql", "-qtAX", self.url, "-c", f"SELECT coalesce(json_agg(t), '[]') FROM ({sql}) t"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{sql}: {done.stderr}")
        return json.loads(done.stdout)

    def command(self, *arguments, home=None):
        return [self.stage.tidemark, "--home", home or self.stage.home, "--ledger", self.url, *arguments]

    def ask(self):
        return self.stage.start(self.command("assistant", "sync", home=self.homes[1 - self.armed]), "asking")

    def start(self, env):
        self.armed = 1 - self.armed
        for i, home in enumerate(self.homes):
            if i == self.armed and self.workers[i] is not None and self.workers[i].poll() is None:
                self.workers[i].terminate()
                self.workers[i].wait(60)
            if self.workers[i] is None or self.workers[i].poll() is not None:
                self.workers[i] = self.stage.start(self.command("worker", home=home), f"worker{i}", env if i == self.armed else None)
        for i in (0, 1):
            until(lambda i=i: "joined" in self.stage.read(f"worker{i}.log") or self.workers[i].poll() is not None, "a worker joins")
        return not self.died()

    def died(self):
        return self.workers[self.armed].poll() is not None

    def kill(self):
        self.workers[self.armed].kill()
        self.workers[self.armed].wait()

    def was_killed(self):
        return self.workers[self.armed].wait() == -9 and self.workers[1 - self.armed].poll() is None

    def rest(self):
        pass

    def log(self):
        return self.stage.read("worker0.log") + self.stage.read("worker1.log")

    def end(self):
        for worker in self.workers:
            if worker is not None and worker.poll() is None:
                worker.kill()
                worker.wait()
        if self.url is not None:
            subprocess.run([self.cluster, "stop", self.url], check=False)


class Campaign:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.stage = Stage(options.tidemark, options.cloud, TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS="6000000",
                           TIDEMARK_GOVERNOR_GMAIL_PROJECT_UNITS="0")
        for name in [name for name in self.stage.env if name.startswith("GMA_")]:
            del self.stage.env[name]
        self.ledger = (File if options.ledger == "sqlite" else Fleet)(self.stage)
        self.counts = collections.Counter()
        self.struck = collections.Counter()
        self.expected = {}  # act: what is there after it
        self.measure = {}   # act: how long it takes, and how many operations of each kind
        self.rounds = 0

    # ---- before the first life

    def prepare(self):
        stage = self.stage
        stage.start_cloud("--clock", str(int(time.time() * 1000)), "--mailbox", f"{USER}=0", "--token", f"tok={USER}")
        Cast.teach(stage)
        self.ledger.prepare()
        with open(stage.path("key"), "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(KEY + "\n")
        # With two homes, the mailbox belongs to one and the model to the other: each waits for the other.
        self.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
        self.run("account", "add", "chat", "model", "--key-file", stage.path("key"), "--model", "tide-good", "--fast-model", "tide-fast",
                 "--endpoint", stage.origin, home=self.ledger.homes[-1])
        for home in self.ledger.homes:
            with open(os.path.join(home, "assistant.yaml"), "w", encoding="utf-8") as file:
                file.write("models: {fast: tide-fast, better: tide-good}\ndrafts: {context_searches: 1}\nbudget: {tokens_per_day: 0}\n" + AGENTS)
        self.run("assistant", "onboard", USER)
        with open(stage.path("count"), "wb") as file:
            file.write(bytes(8))
        with open(stage.path("count"), "r+b") as file:
            self.count = mmap.mmap(file.fileno(), 8)

    def run(self, *arguments, home=None):
        done = subprocess.run(self.ledger.command(*arguments, home=home), capture_output=True, env=self.stage.env, text=True, timeout=120,
                              check=False)
        if done.returncode != 0:
            raise Failed(f"tidemark {' '.join(arguments)} ended with {done.returncode}: {done.stdout} {done.stderr}")

    # ---- what is there

    def open_jobs(self):
        prefix = self.ledger.prefix
        return self.ledger.rows(f"SELECT k.name AS kind, j.state AS state FROM {prefix}job j JOIN {prefix}kind k ON k.id = j.kind "
                                "WHERE k.name LIKE 'assistant.%' AND j.state < 2")

    def synced(self):
        rows = self.ledger.rows(f"SELECT history_id FROM {self.ledger.prefix}assistant_sync")
        return int(rows[0]["history_id"]) if rows and rows[0]["history_id"] else 0

    def records(self, cast):
        """By part: record, events and runs, without what differs from round to round."""
        found = {}
        prefix = self.ledger.prefix
        for part, thread in cast.threads.items():
            record = self.ledger.rows(f"SELECT category, confidence, status, messages, reworks FROM {prefix}assistant_email "
                                      f"WHERE thread_id = '{thread}'")
            events = self.ledger.rows(f"SELECT kind FROM {prefix}assistant_event WHERE thread_id = '{thread}' ORDER BY id")
            runs = self.ledger.rows(f"SELECT status, iterations, final FROM {prefix}assistant_run WHERE thread_id = '{thread}'")
            calls = self.ledger.rows(f"SELECT kind, error FROM {prefix}assistant_call WHERE thread_id = '{thread}' ORDER BY id")
            found[part] = {"record": record, "events": [one["kind"] for one in events], "runs": runs,
                           "calls": sorted(f"{one['kind']} {one['error']}".strip() for one in calls)}
        return found

    def everything(self, cast):
        server, records = cast.look(), self.records(cast)
        return {part: {**server[part], **records[part]} for part in cast.threads}

    def model(self):
        """The record of the model's answers."""
        return self.stage.ask_cloud("/_cloud/stats")["chat"][KEY]

    # ---- one life

    def armed(self, points, at, mode):
        self.count[:] = bytes(8)
        return dict(self.stage.env, LD_PRELOAD=os.path.realpath(self.options.preload), TIDE_KILL_COUNT=self.stage.path("count"),
                    TIDE_KILL_FILE=POINTS[points], TIDE_KILL_AT=str(at), TIDE_KILL_MODE=mode)

    def rests(self, wanted):
        return self.synced() >= wanted and not self.open_jobs()

    def life(self, wanted, points="ledger", at=0, mode="after", after_s=None):
        """Runs until the history up to `wanted` was dealt with, or it was killed: then False."""
        began = time.monotonic()
        if not self.ledger.start(self.armed(points, at, mode)):
            return self.ended()
        asking = self.ledger.ask()
        try:
            while not self.ledger.died():
                asked = 0 if asking is None else asking.poll()
                if asked not in (None, 0):
                    raise Failed("assistant sync: " + self.stage.read("asking.log"))
                if after_s is not None and time.monotonic() - began >= after_s:
                    self.ledger.kill()
                elif asked == 0 and self.rests(wanted):
                    if at == 0 and after_s is None:
                        self.ledger.rest()
                    else:
                        self.ledger.kill()
                    self.took_s = time.monotonic() - began
                    return True
                elif time.monotonic() - began > 120:
                    raise Failed(f"it does not come to rest: {self.open_jobs()}, {self.ledger.log()}")
                time.sleep(0.02)
        finally:
            if asking is not None and asking.poll() is None:
                asking.kill()
                asking.wait()
        return self.ended()

    def ended(self):
        if not self.ledger.was_killed():
            raise Failed(f"it ended by itself: {self.ledger.log()}")
        for job in self.open_jobs():
            if job["state"] == 1:
                self.struck[job["kind"].removeprefix("assistant.")] += 1
        return False

    # ---- a round

    def act(self, cast, name, kills):
        """One act of a round, with so many kills; what is there after it."""
        (cast.arrive if name == "arrive" else cast.act)()
        wanted = cast.history_id()
        before = self.model()
        for nth in range(kills):
            took_s, operations = self.measure[name]
            i = self.counts["kills"]
            how = self.ledger.ways[i % len(self.ledger.ways)]
            # Even in the end: with each kill another point, the whole life after so many kills.
            part = (i * 0.6180339887 + self.random.random() / 50) % 1
            if how == "random":
                rested = self.life(wanted, after_s=self.random.random() * took_s)
            else:
                rested = self.life(wanted, how, 1 + int(part * operations[how]), MODES[(i // len(self.ledger.ways)) % 3])
            self.counts["kills"] += 1
            self.counts[how] += 1
            self.counts["struck"] += not rested
            cast.look()
            if self.options.verbose:
                print(f"round {cast.number} {name} kill {nth}: {how} {part:.3f} {'at rest' if rested else 'struck'} {dict(self.struck)}",
                      file=sys.stderr)
        if not self.life(wanted):
            raise Failed("killed, and nobody did it")
        after = self.model()
        self.counts["asked again"] += after["repeated"] - before["repeated"]
        if after["most"] > max(before["most"], 1 + kills):
            raise Failed(f"a question was asked {after['most']} times, with {kills} kills")
        return self.everything(cast)

    def compare(self, cast, name, found):
        for part, expected in self.expected[name].items():
            if found[part] != expected:
                raise Failed(f"round {cast.number}, {part} after {name}:\n  it is      {found[part]}\n  it must be {expected}")

    def undisturbed(self):
        """The first round: what must be there, how long it takes, and how many operations there are."""
        cast = Cast(self.stage, 0)
        for name in ("arrive", "act"):
            operations = {}
            (cast.arrive if name == "arrive" else cast.act)()
            self.life(cast.history_id())
            operations["ledger"] = int.from_bytes(self.count[:], "little")
            self.expected[name] = self.everything(cast)
            self.measure[name] = (self.took_s, operations)
        # Requests are counted in a second one, which must end as the first did.
        cast = Cast(self.stage, 1)
        for name in ("arrive", "act"):
            (cast.arrive if name == "arrive" else cast.act)()
            self.life(cast.history_id(), "send")
            self.measure[name][1]["send"] = int.from_bytes(self.count[:], "little")
            self.compare(cast, name, self.everything(cast))
        self.rounds = 2
        if self.options.verbose:
            print(json.dumps(self.expected["act"], indent=1, ensure_ascii=False), self.measure, file=sys.stderr)
        if self.model()["repeated"] != 0:
            raise Failed(f"questions were repeated without a kill: {self.model()}")

    def go(self):
        self.prepare()
        self.undisturbed()
        while self.counts["kills"] < self.options.kills:
            cast = Cast(self.stage, self.rounds)
            for name in ("arrive", "act"):
                self.compare(cast, name, self.act(cast, name, 1 + (self.counts["kills"] % KILLS_IN_ACT)))
            self.rounds += 1
        if self.counts["struck"] * 3 < self.counts["kills"]:
            raise Failed(f"only {self.counts['struck']} of {self.counts['kills']} kills struck a life at work")
        missed = [kind for kind in KINDS if self.struck[kind] == 0]
        if missed and self.counts["kills"] >= LONG:
            raise Failed(f"no kill struck {', '.join(missed)}")
        self.run("ledger", "check")
        kinds = ", ".join(f"{self.struck[kind]} {kind}" for kind in KINDS)
        print(f"assistant kills {self.counts['kills']} ({self.counts['ledger']} at operations of the ledger, {self.counts['send']} at requests, "
              f"{self.counts['random']} random; {self.counts['struck']} at work), {self.rounds} rounds the same; running then: {kinds}; "
              f"{self.counts['asked again']} questions asked again")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tidemark")
    parser.add_argument("cloud")
    parser.add_argument("--preload", required=True)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=os.getpid())
    parser.add_argument("--ledger", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--verbose", action="store_true")
    campaign = Campaign(parser.parse_args())
    failed = False
    try:
        campaign.go()
    except Failed as error:
        print(f"FAILED: seed {campaign.options.seed}: {error}", file=sys.stderr)
        failed = True
    finally:
        campaign.ledger.end()
        if failed and os.environ.get("TIDE_KEEP"):
            print(f"kept: {campaign.stage.dir}", file=sys.stderr)
        else:
            campaign.stage.end()
    sys.exit(1 if failed else 0)


main()
