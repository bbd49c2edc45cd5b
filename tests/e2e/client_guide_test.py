#!/usr/bin/env python3
"""client_guide_test.py TIDEMARK CLOUD: a person without an OAuth client, at a terminal (M16).

`account add` says each step with the address of its page; the local cloud has these pages.  The person opens each, creates a
client on the last one, first of the wrong type, and names its file after some garbage; the browser is curl."""
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from stage import Failed, Stage, USER  # noqa: E402
from terminal import Person, expect  # noqa: E402

PROMPT = "Path of the JSON file, or the client id: "


def page(address):
    with urllib.request.urlopen(address, timeout=20) as answer:
        expect(answer.status == 200, f"{address}: {answer.status}")
        return answer.read().decode()


def create(stage, address, kind, name):
    """The form of the last page: a client file, where a browser would put it."""
    with urllib.request.urlopen(address, urllib.parse.urlencode({"type": kind}).encode(), timeout=20) as answer:
        text = answer.read().decode()
    with open(stage.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return text


def write(stage, name, text, mode=0o644):
    with open(stage.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(stage.path(name), mode)
    return stage.path(name)


def guided(stage):
    add = ("account", "add", "gmail", USER, "--endpoint", stage.origin, "--guide")
    person = Person(stage, *add, HOME=stage.dir)
    said = person.reads(PROMPT)
    expect(all(len(line) < 80 for line in said.split("\n")), f"wider than the terminal: {said}")
    addresses = re.findall(r"^ +(http\S+)$", said, re.M)
    expect(len(addresses) == 5, f"five steps: {said}")
    expect("Search Console" not in said, f"a step of another system: {said}")
    expect([int(n) for n in re.findall(r"^ *(\d)\. ", said, re.M)] == [1, 2, 3, 4, 5], f"numbered: {said}")
    titles = [re.search("<title>(.*?)</title>", page(address)).group(1) for address in addresses]
    expect(titles == ["New project", "Enable API", "Google Auth Platform", "Audience", "Create OAuth client"], f"{titles}")

    # Garbage, nothing, a file that is not there: each is named, and asked for again.
    create(stage, addresses[4], "web", "web.json")
    person.types(stage.path("web.json"))
    expect("Web application" in person.reads(PROMPT), "the wrong type is not named")
    person.types(stage.path("nowhere.json"))
    expect("No: " in person.reads(PROMPT), "a missing file is not named")
    person.types(write(stage, "notes.txt", "client_secret: QUOTED-SECRET\n"))
    said = person.ends(1)
    expect("not JSON" in said and "QUOTED" not in said, said)
    expect("--client FILE" in said, f"no way on: {said}")
    expect(stage.json("account", "list")["accounts"] == [], "it was added")

    # The file at the first try, as a terminal quotes what is dropped on it.
    create(stage, addresses[4], "desktop", "Client One.json")
    person = Person(stage, *add, HOME=stage.dir)
    person.reads(PROMPT)
    person.types(" '~/Client One.json' ")
    said = person.ends(0)
    expect(f"added {USER}" in said, said)
    return addresses


def entered(stage, addresses):
    """The content of the file, and an id with its secret, serve as well."""
    text = create(stage, addresses[4], "desktop", "two.json")
    person = Person(stage, "account", "add", "gmail", USER, "--endpoint", stage.origin, "--guide")
    person.reads(PROMPT)
    person.types(text)
    expect(f"added {USER}" in person.ends(0), person.text)
    client_id = re.search(r'"client_id": ?"([^"]+)"', text).group(1)
    secret = re.search(r'"client_secret": ?"([^"]+)"', text).group(1)
    person = Person(stage, "account", "add", "gmail", USER, "--endpoint", stage.origin, "--guide")
    person.reads(PROMPT)
    person.types(client_id)
    person.reads("The client secret")
    person.types("")
    expect("secret is missing" in person.reads(PROMPT), "no secret")
    person.types(client_id)
    person.reads("The client secret")
    person.types(secret)
    expect(f"added {USER}" in person.ends(0), person.text)


def by_default(stage):
    """Without a client a terminal gets the guide, with Google's own addresses; a pipe gets an error."""
    person = Person(stage, "account", "add", "gmail", "bob@example.com")
    said = person.reads(PROMPT)
    for path in ("projectcreate", "apis/library/gmail.googleapis.com", "auth/overview", "auth/audience", "auth/clients/create"):
        expect(f"    https://console.cloud.google.com/{path}\n" in said, f"no {path}: {said}")
    expect(all(len(line) < 80 for line in said.split("\n")), f"wider than the terminal: {said}")
    for _ in range(2):
        person.types("")
        expect("nothing was entered" in person.reads(PROMPT), "nothing")
    person.types("")
    expect("--client FILE" in person.ends(1), person.text)
    # The end of the input is the end.
    person = Person(stage, "account", "add", "gmail", "bob@example.com")
    person.reads(PROMPT)
    os.write(person.terminal, b"\x04")
    expect("no client was named" in person.ends(5), person.text)


def no_browser(stage):
    """Where no browser can be opened, or one that nobody sits at, the link is to be pasted, at once; without a terminal that is said."""
    add = ("account", "add", "gmail", USER, "--endpoint", stage.origin)
    home, stage.home = stage.home, stage.path("no-browser")
    away = {"BROWSER": "", "DISPLAY": ":0", "SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}
    for env in ({"BROWSER": ""}, {"BROWSER": "nosuch-browser"}, {"BROWSER": write(stage, "w3m", "#!/bin/sh\n", 0o755)}, away):
        person = Person(stage, *add, **{"DISPLAY": "", "WAYLAND_DISPLAY": "", **env})
        said = person.reads("Paste that address here: ", seconds=20)
        expect("No browser can be opened here" in said, f"{env}: {said}")
        link = re.search(r"http\S+code_challenge\S+", said).group(0)
        answer = subprocess.run(["curl", "-sS", "-o", os.devnull, "-w", "%{redirect_url}", link], capture_output=True, text=True, check=True)
        person.types(answer.stdout)
        expect(f"added {USER}" in person.ends(0), person.text)
    # Arguments, and the place of the address, are BROWSER's.
    shown = stage.path("shown")
    script = write(stage, "with-words", f'#!/bin/sh\nprintf "%s\\n" "$@" >{shown}\nexec curl -sS -L --max-time 20 -o /dev/null "${{2#page=}}"\n', 0o755)
    person = Person(stage, *add, BROWSER=f"nosuch-browser:{script} --new-window page=%s last")
    expect(f"added {USER}" in person.ends(0), person.text)
    words = open(shown, encoding="utf-8").read().split("\n")
    expect(words[0] == "--new-window" and words[1].startswith("page=http") and words[2] == "last", f"{words}")
    with subprocess.Popen([stage.tidemark, "--home", stage.home, *add], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, env={**stage.env, "BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}) as process:
        said = ""
        while "--headless" not in said:
            line = process.stderr.readline()
            expect(line != "", f"no word about the browser: {said}")
            said += line
        process.kill()
    expect("No browser could be opened" in said, said)
    stage.home = home


def run(stage):
    stage.start_cloud("--seed", "7", "--auto-consent", "--mailbox", f"{USER}=12", "--mailbox", "bob@example.com=3")
    browser = write(stage, "browser", '#!/bin/sh\nexec curl -sS -L --max-time 20 -o /dev/null "$1"\n', 0o755)
    stage.env["BROWSER"] = browser
    by_default(stage)
    no_browser(stage)  # before a client is made: then the cloud refuses others
    addresses = guided(stage)
    entered(stage, addresses)
    stage.run("mail", "sync", "--quiet")
    print("guide: fine")


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
