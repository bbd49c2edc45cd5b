#!/usr/bin/env python3
"""first_run_test.py TIDEMARK CLOUD: what a new user stumbles over, each on an empty home (M16, M6b, E9.3).

A wrong token, another one's mailbox, a host that does not answer, no room on the disk, no terminal; then the whole way from
nothing to the first hit on a terminal of 80 columns, in the locale C, with mail in wide and right-to-left letters."""
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from stage import Failed, Stage, USER  # noqa: E402
from terminal import Person, columns_of, expect  # noqa: E402

OTHER = "bob@example.com"
WIDE = "旅行の写真をお送りしますのでご確認くださいませ、よろしくお願いいたします"
LEFTWARDS = "שלום, החשבונית של חודש נובמבר מצורפת"
OVERRIDE = "\u202eexe.gpj invoice\u202c"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def add(stage, *more, email=USER, code=0):
    """`account add` as its user would run it; what it says."""
    done = stage.command("account", "add", "gmail", email, *more)
    expect(done.returncode == code, f"account add ended with {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def is_empty(stage, what):
    """Nothing was added or kept, and the next step is still the first."""
    expect(stage.json("account", "list")["accounts"] == [], f"{what}: it was added")
    secrets = os.path.join(stage.home, "secrets")
    expect(not os.path.isdir(secrets) or os.listdir(secrets) == [], f"{what}: a secret was kept")
    expect(stage.json()["next"]["command"] == "account add gmail EMAIL", f"{what}: the next step is another")


# ---- refusals

def wrong_token(stage):
    said = add(stage, "--endpoint", stage.origin, "--bearer", "nonsense", code=4)
    expect("does not accept this sign-in" in said and "Nothing was added" in said, said)
    expect("nonsense" not in said, f"the token is shown: {said}")
    is_empty(stage, "a wrong token")


def wrong_mailbox(stage):
    said = add(stage, "--endpoint", stage.origin, "--bearer", "tok-bob", code=4)
    expect(f"the mailbox of {OTHER}, not of {USER}" in said and f"account add gmail {OTHER}" in said, said)
    is_empty(stage, "another mailbox")


def unreachable(stage):
    with socket.socket() as unused:  # bound, but nobody listens
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
        said = add(stage, "--endpoint", f"http://{host}", "--bearer", "tok", code=1)
    expect(f"{host} cannot be reached" in said and "Nothing was added" in said, said)
    is_empty(stage, "a host that does not answer")
    add(stage, "--endpoint", "https://no-such-host.invalid", "--bearer", "tok", code=1)
    is_empty(stage, "a host that does not exist")
    add(stage, "--endpoint", "mail.example.com", "--bearer", "tok", code=2)
    add(stage, "--endpoint", stage.origin, "--bearer", "tok", email="ada", code=2)
    is_empty(stage, "words that are no address")


def no_room(stage):
    """Less room than is to be kept free: said before anything is fetched."""
    add(stage, "--endpoint", stage.origin, "--bearer", "tok")
    stage.env["TIDEMARK_DISK_FREE_MIN"] = "1000TiB"
    done = stage.command("mail", "sync", "--quiet")
    del stage.env["TIDEMARK_DISK_FREE_MIN"]
    said = done.stdout + done.stderr
    expect(done.returncode == 1 and "Free disk space" in said and "disk.free_min" in said, f"{done.returncode}: {said}")
    expect(stage.json("mail", "status")["accounts"][0]["stored"] == 0, "it fetched")
    shutil.rmtree(stage.home)


def full_disk(stage):
    """A disk without a single free page; in a mount namespace of its own, where this machine allows one."""
    disk = stage.path("disk")
    os.mkdir(disk)
    apart = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    mounted = 'mount -t tmpfs -o size=64k none "$1" 2>/dev/null || exit 77; shift; exec "$@"'
    done = subprocess.run([*apart, "sh", "-c", mounted, "sh", disk, stage.tidemark, "--home", os.path.join(disk, "home"), "account", "add",
                           "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok"],
                          capture_output=True, text=True, env=stage.env, timeout=60, check=False)
    said = done.stdout + done.stderr
    if done.returncode == 77 or "unshare" in said:
        print("a full disk: left out, no mounts here")
        return
    expect(done.returncode == 1 and re.search("space|full", said), f"a full disk: {done.returncode}: {said}")
    expect("added" not in said.replace("Nothing was added", ""), said)


def not_a_directory(stage):
    path = stage.path("file")
    with open(path, "w", encoding="utf-8"):
        pass
    done = subprocess.run([stage.tidemark, "--home", path, "account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok"],
                          capture_output=True, text=True, env=stage.env, timeout=60, check=False)
    expect(done.returncode == 1 and path in done.stderr, f"a home that is a file: {done.returncode}: {done.stderr}")


# ---- no terminal

def no_terminal(stage):
    """Nothing waits for an answer that cannot come, and no escape sequence goes into a file."""
    for more, code in (((), 1), (("--guide",), 5), (("--guide", "--endpoint", stage.origin), 5),
                       (("--headless", "--endpoint", stage.origin), 5)):
        done = subprocess.run([stage.tidemark, "--home", stage.home, "account", "add", "gmail", USER, *more], capture_output=True,
                              text=True, env=stage.env, stdin=subprocess.DEVNULL, timeout=60, check=False)
        expect(done.returncode == code and "\x1b" not in done.stdout + done.stderr, f"{more}: {done.returncode}: {done.stderr}")
        expect("tidemark: " in done.stderr and "\n          " in done.stderr, f"{more}: no reason with a way on: {done.stderr}")
    is_empty(stage, "no terminal")
    add(stage, "--endpoint", stage.origin, "--bearer", "tok")
    done = stage.command("mail", "sync")
    expect(done.returncode == 0 and "\x1b" not in done.stdout + done.stderr, f"a sync without a terminal: {done}")
    for words in ((), ("status",), ("mail", "status"), ("mail", "search", "in:anywhere"), ("--help",)):
        done = stage.command(*words)
        expect(done.returncode == 0 and "\x1b" not in done.stdout, f"{words}: {done}")
    shutil.rmtree(stage.home)


# ---- the whole way, on a terminal

def fitted(text, what, columns=80):
    for line in text.split("\n"):
        expect(columns_of(line) <= columns, f"{what}: {columns_of(line)} columns: {line!r}")


def deliver(stage, subject, name, text):
    stage.deliver(f"From: {name} <x@example.org>\r\nTo: {USER}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
                  f"Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n")


def on_terminal(stage, *arguments, code=0, **env):
    return Person(stage, *arguments, **env).ends(code)


def whole_way(stage, **env):
    """Each step that bare `tidemark` names, until the first hit; what the hit looks like."""
    said = on_terminal(stage, **env)
    fitted(said, "tidemark")
    expect("tidemark account add gmail EMAIL" in said, said)
    said = on_terminal(stage, "account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok", **env)
    fitted(said, "account add")
    fitted(on_terminal(stage, **env), "tidemark with an account")
    said = on_terminal(stage, "mail", "sync", **env)
    # Frames are as wide as the terminal; what is left at the end is the summary.
    fitted(said.split("\x1b[?25h")[-1], "mail sync")
    fitted(on_terminal(stage, **env), "tidemark after a sync")
    for words in (("status",), ("--help",), ("mail", "--help"), ("account", "add", "--help"), ("mail", "labels"), ("account", "list")):
        fitted(on_terminal(stage, *words, PAGER="cat", **env), " ".join(words))
    hits = on_terminal(stage, "mail", "search", "in:anywhere", "--limit", "50", PAGER="cat", **env)
    fitted(hits, "mail search")
    return hits


def letters(stage, hits):
    """Wide and right-to-left letters are there; what would turn the line around is not."""
    expect(WIDE[:6] in hits, f"no wide letters: {hits}")
    expect(LEFTWARDS[:4] in hits, f"no right-to-left letters: {hits}")
    expect("exe.gpj" in hits, f"the third message is missing: {hits}")
    expect(not re.search("[\u202a-\u202e\u2066-\u2069]", hits), f"marks that turn text around: {hits!r}")
    for word, text in (("写真", WIDE), ("החשבונית", LEFTWARDS)):
        found = stage.json("mail", "search", word)["messages"]
        expect(len(found) == 1 and found[0]["subject"] == text, f"{word}: {found}")
        said = stage.run("mail", "show", found[0]["id"])
        expect(text in said and not re.search("[\u202a-\u202e\u2066-\u2069]", said), f"mail show: {said!r}")


def at_a_terminal(stage):
    deliver(stage, WIDE, "中村太郎", WIDE)
    deliver(stage, LEFTWARDS, "דנה", LEFTWARDS)
    deliver(stage, OVERRIDE, "x", OVERRIDE)
    hits = whole_way(stage)
    letters(stage, hits)
    said = on_terminal(stage, "mail", "search", "写真", PAGER="cat")
    expect(COLOUR.search(said), f"no marks at a terminal: {said!r}")
    # The locale C, no colours, and a home whose name is not ASCII: the same words.
    stage.home = stage.path("דואר 邮件")
    plain = whole_way(stage, LANG="C", LC_ALL="C", NO_COLOR="1")
    stage.env.update(LANG="C", LC_ALL="C")
    letters(stage, plain)
    expect(not COLOUR.search(plain), f"NO_COLOR: {plain!r}")
    expect(COLOUR.sub("", hits) == plain, f"the locale C says {plain!r}, not {hits!r}")
    for words in (("status",), ("mail", "search", "写真"), ("mail", "sync")):
        said = on_terminal(stage, *words, PAGER="cat", NO_COLOR="1")
        expect(not COLOUR.search(said), f"NO_COLOR, {words}: {said!r}")


def run(stage):
    stage.start_cloud("--seed", "7", "--mailbox", f"{USER}=12", "--token", f"tok={USER}", "--mailbox", f"{OTHER}=3", "--token", f"tok-bob={OTHER}")
    # $COLUMNS would count instead of the terminal's size.
    for name in ("COLUMNS", "NO_COLOR", "LC_ALL", "PAGER", "BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        stage.env.pop(name, None)
    stage.env.update(LANG="C.UTF-8", TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS="60000")
    for friction in (wrong_token, wrong_mailbox, unreachable, no_room, full_disk, not_a_directory, no_terminal, at_a_terminal):
        friction(stage)
        print(f"{friction.__name__}: fine")


def main():
    stage = Stage(*sys.argv[1:3])
    try:
        run(stage)
    except Failed as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        return 1
    finally:
        stage.end()
    return 0


sys.exit(main())
