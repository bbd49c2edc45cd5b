#!/usr/bin/env python3
"""serve_abuse_test.py TIDEMARK CLOUD: clients that are slow, many, large or lie, at the listener of the page and at that of
pushes, all at the same time; a person at the page notices nothing.  The person asks for `state` and holds a live stream: every
answer is right and comes about as soon as before, and the stream goes on.  The memory of the process is bounded, all its
descriptors come back, and no request that lied about its length had an effect.

A connection of the person that is kept is never cut.  A new one, which nobody knows yet, may have to make room, and is then
opened again, as a browser does."""
import http.client
import json
import multiprocessing
import os
import re
import resource
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from stage import Failed, Stage, USER, until  # noqa: E402

CROWD = 1000  # connections at each listener
LORIS = 50
ASKED = 60  # answers that are compared
TRIES = 20  # of a new connection
MEMORY_MAX = 64 << 20  # more than before
KEPT_MAX = 64  # files of the archive that readers at the same time opened, and that stay open for a minute or two
ANSWER_MAX = 5  # seconds; far from starving, on a loaded machine that also runs the attack (script/bench measures speed)
GIGABYTE = 1 << 30
IDLE_S = 10  # half of what an idle connection is given


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def quietly(call, argument):
    """None if this side was cut off, which is right."""
    try:
        return call(argument)
    except OSError:
        return None


class Attack:
    """Processes that go on until the end; what they get back does not matter, but that they reached the server does."""

    def __init__(self, port, head):
        self.port, self.head = port, head
        ways = (self.crowd, self.loris, self.giant, self.giant_without_length, self.liar)
        self.over = multiprocessing.Event()
        self.turns = {way.__name__: multiprocessing.Value("i", 0) for way in ways}
        self.processes = [multiprocessing.Process(target=self.go_on, args=(way,), daemon=True) for way in ways]

    def go_on(self, way):
        while not self.over.is_set():
            try:
                way()
            except OSError:
                pass  # cut off, which is right
            self.turns[way.__name__].value += 1
            self.over.wait(0.01)

    def crowd(self):
        """So many connections, of which every second one sends half a head."""
        held = []
        try:
            for i in range(CROWD):
                if self.over.is_set():
                    break
                held.append(connect(self.port))
                if i % 2 == 0:
                    quietly(held[-1].sendall, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        finally:
            for one in held:
                one.close()

    def loris(self):
        """Heads that come a byte at a time."""
        held = [connect(self.port) for _ in range(LORIS)]
        try:
            for one in held:
                one.sendall(self.head("GET", "").encode()[:-2] + b"X-Slow: ")
            while not self.over.is_set():
                for one in held:
                    one.sendall(b"a")
                time.sleep(0.02)  # the pace of a slow client
        finally:
            for one in held:
                one.close()

    def giant(self):
        """A gigabyte that is announced."""
        with connect(self.port) as one:
            one.sendall(self.head("POST", f"Content-Length: {GIGABYTE}\r\n").encode())
            for _ in range(GIGABYTE >> 16):
                one.sendall(bytes(1 << 16))
                if self.over.is_set():
                    break

    def giant_without_length(self):
        with connect(self.port) as one:
            one.sendall(self.head("POST", "Transfer-Encoding: chunked\r\n").encode())
            for _ in range(GIGABYTE >> 16):
                one.sendall(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
                if self.over.is_set():
                    break

    def liar(self):
        body = '{"reason":"forged"}'
        for lengths, sent in [("Content-Length: 1000\r\n", body), ("Content-Length: 5\r\n", body), ("Content-Length: -1\r\n", body),
                              ("Content-Length: 19\r\nContent-Length: 20\r\n", body), ("Content-Length: 99999999999999999999\r\n", body),
                              ("Content-Length: 19\r\nTransfer-Encoding: chunked\r\n", body),
                              ("Transfer-Encoding: chunked\r\n", "zz\r\n" + body), ("Transfer-Encoding: chunked\r\n", "13\r\n" + body),
                              ("Transfer-Encoding: chunked\r\n", "ffffffffffffffff\r\n" + body),
                              ("Transfer-Encoding: gzip\r\n", body)]:
            with connect(self.port) as one:
                quietly(one.sendall, (self.head("POST", lengths) + sent).encode())
                quietly(one.shutdown, socket.SHUT_WR)
                while quietly(one.recv, 1 << 16):
                    pass
            self.turns["liar"].value += 1

    def start(self):
        for process in self.processes:
            process.start()

    def reached(self):
        return self.turns["crowd"].value > 0 and self.turns["liar"].value > 0

    def stop(self):
        self.over.set()
        for process in self.processes:
            process.join(60)
            process.kill()

    def told(self):
        return ", ".join(f"{name} {turns.value}" for name, turns in self.turns.items())


class Person:
    """A browser: one connection that is kept for requests, and one with the stream."""

    def __init__(self, port, key):
        self.port, self.headers = port, {"Authorization": "Bearer " + key}
        self.events = self.cut = 0
        self.ended = False
        self.last = None
        self.kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        threading.Thread(target=self.watch, daemon=True).start()
        until(lambda: self.events > 0, "the stream begins")

    def watch(self):
        stream = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        stream.request("GET", "/api/v1/stream?topics=state", headers=self.headers)
        for line in stream.getresponse():
            if line.startswith(b"data:"):
                self.last = json.loads(line[5:])
                self.events += 1
        self.ended = True

    def ask(self, connection):
        """How long an answer took.  A reader that is late on a loaded machine says so, and is asked again."""
        began = time.monotonic()
        tries = TRIES if connection is not self.kept else 1
        while True:
            try:
                connection.request("GET", "/api/v1/state", headers=self.headers)
                answer = connection.getresponse()
                found = json.loads(answer.read())
            except (http.client.RemoteDisconnected, ConnectionError):
                connection.close()
                if time.monotonic() - began > IDLE_S:  # this machine stood still, and the connection was idle for too long
                    began = time.monotonic()
                    continue
                tries -= 1
                if tries == 0:
                    raise Failed(f"a person was cut off on {'the kept' if connection is self.kept else 'a new'} connection after {time.monotonic() - began:.3f} s; {self.cut} were cut before") from None
                self.cut += 1
                continue
            if answer.status == 200:
                if found["accounts"][0]["account"] != USER or found["accounts"][0]["halted_unix_ms"]:
                    raise Failed(f"the state is {found}")
                return time.monotonic() - began
            if answer.status != 503 or found["code"] != "slow":
                raise Failed(f"state was answered with {answer.status}: {found}")
            began = time.monotonic()

    def measure(self):
        """p99 of answers on the connection that is kept, and, each third time, on a new one."""
        took = []
        for i in range(ASKED):
            took.append(self.ask(self.kept))
            if i % 3 == 0:
                fresh = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                took.append(self.ask(fresh))
                fresh.close()
        return sorted(took)[len(took) * 99 // 100]


def descriptors(stage):
    return len(os.listdir(f"/proc/{stage.serve_process.pid}/fd"))


def memory(stage):
    with open(f"/proc/{stage.serve_process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) << 10


def check(stage):
    stage.start_cloud("--seed", "5", "--mailbox", f"{USER}=20", "--token", f"tok={USER}")
    stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
    if not stage.start_serve("--set", "serve.webhook.listen=127.0.0.1:0", "--set", "serve.webhook.audience=x",
                             "--set", "serve.webhook.sender=push@example.com", "--set", f"serve.webhook.keys={stage.origin}/oauth2/v3/certs"):
        raise Failed("serve does not start: " + stage.read("serve.log"))
    stage.run("mail", "sync", "--quiet")
    key = stage.json("token", "add", "person", "--scope", "work")["key"]
    page_port = int(re.search(r":(\d+)/$", stage.page).group(1))
    hook_port = int(re.search(r"takes pushes.*http://127.0.0.1:(\d+)/", stage.read("serve.log")).group(1))
    person = Person(page_port, key)
    before = person.measure()
    files_before, memory_before = descriptors(stage), memory(stage)

    # One attacker has a key, the worst case: his bodies are read.
    page = Attack(page_port, lambda method, more: (
        f"{method} /api/v1/accounts/{USER}/halt HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: {time.monotonic_ns()}\r\n{more}\r\n"))
    hook = Attack(hook_port, lambda method, more: (
        f"{method} /webhook/gmail HTTP/1.1\r\nHost: mail.example.org\r\nAuthorization: Bearer a.b.c\r\n"
        f"Content-Type: application/json\r\n{more}\r\n"))
    attacks = [page, hook]
    for attack in attacks:
        attack.start()
    try:
        until(lambda: person.ask(person.kept) and page.reached() and hook.reached(), "the attack goes on", 120)
        during = person.measure()
        memory_during = memory(stage)
    finally:
        for attack in attacks:
            attack.stop()
    print(f"p99 of state {before * 1000:.1f} ms before, {during * 1000:.1f} ms during; memory {memory_before >> 20} MiB, then "
          f"{memory_during >> 20} MiB; new connections cut {person.cut}; turns at the page {page.told()}; at the listener of pushes {hook.told()}")
    if during > ANSWER_MAX:
        raise Failed(f"answers took {during:.3f} s instead of {before:.3f} s")
    if memory_during > memory_before + MEMORY_MAX:
        raise Failed(f"memory grew from {memory_before} to {memory_during} bytes")
    until(lambda: descriptors(stage) <= files_before + KEPT_MAX, f"descriptors come back: {descriptors(stage)}, {files_before} before", 60)
    if person.ended:
        raise Failed("the stream has ended")
    stage.run("account", "halt", USER)
    until(lambda: person.last["accounts"][0]["halted_unix_ms"], "the stream goes on")
    stage.stop_serve()


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CROWD
    if hard != resource.RLIM_INFINITY and hard < wanted:
        print(f"skipped: only {hard} descriptors for {wanted}")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    stage = Stage(sys.argv[1], sys.argv[2], TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS="60000")
    try:
        check(stage)
    except Failed as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        sys.exit(1)
    finally:
        stage.end()


main()
