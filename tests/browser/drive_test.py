"""drive_test.py TIDEMARK CLOUD [AXE.JS]: drives on the page of `tidemark serve`, as stories of a person (D9, D21, S16).  The
stories run in order on one home; AXE.JS is axe-core, which judges every state."""
import glob
import json
import os
import shutil
import subprocess
import sys
import urllib.request

import page_test
from page_test import answer, judge, paired
from stage import Page, Stage, USER, run_stories, until

ROUTE = f"/drive/{USER}/One"


def graph(stage, path, body=None, method="GET"):
    request = urllib.request.Request(stage.origin + "/v1.0/me/drive/" + path, data=body, method=method, headers={"Authorization": "Bearer tok"})
    with urllib.request.urlopen(request, timeout=30) as got:
        return got.read().decode()


def put(stage, name, text):
    graph(stage, f"root:/{name}:/content", text.encode(), "PUT")


def write(stage, name, text):
    with open(os.path.join(stage.one, name), "w", encoding="utf-8") as file:
        file.write(text)


def read(stage, name):
    with open(os.path.join(stage.one, name), encoding="utf-8") as file:
        return file.read()


def run(stage, *arguments):
    """A command that ends with 0, or with 3 if something needs a person."""
    done = subprocess.run([stage.tidemark, "--home", stage.home, *arguments], capture_output=True, env=stage.env, text=True, timeout=120)
    assert done.returncode in (0, 3), done
    return done


def sync(stage, *codes):
    """`drive sync`, which ends with 3 if something needs a person."""
    stage.run("drive", "sync", "--quiet", code=codes[0] if codes else 0)


# ---- stories

def an_account_without_a_drive_says_what_to_do(stage, page):
    page.open()
    page.sees("This browser is not known. Run: tidemark open")
    answer(stage, page, "y")
    paired(page)
    page.go("/drive", "Drive")
    page.sees("No account yet. Run: tidemark account add onedrive")
    judge(page, "no account")
    stage.run("account", "add", "onedrive", USER, "--endpoint", stage.origin, "--bearer", "tok")
    page.go(f"/drive/{USER}", "Drive /")
    page.sees("No drive yet. Run: tidemark drive add DIR")
    judge(page, "no drive")


def a_drive_that_is_empty(stage, page):
    stage.run("drive", "add", stage.one)
    page.sees("open One", "main")
    page.click("open One", "a")
    page.sees("Drive / One", "h1")
    page.sees("none yet", ".facts")
    for words in ("None.", "Nothing is owed.", "None yet.", "Everything is synced."):
        page.sees(words, "main")
    judge(page, "an empty drive")


def a_sync_is_watched_by_direction(stage, page):
    for i in range(3):
        write(stage, f"up {i}.txt", "x" * 3000)
    stage.ask_cloud("/_cloud/faults", {"method": "graph.download.get", "fault": "held"})
    page.script("document.querySelector('h1').focus()")
    page.keys("s")
    page.sees("Syncing One.", "#told")
    page.sees("downloading ", ".facts")
    judge(page, "a drive at work")
    stage.ask_cloud("/_cloud/faults", method="DELETE")
    page.sees("up to date", ".bar-line")
    page.sees("15 files", ".facts")
    page.sees("downloaded", "main")
    page.sees("uploaded", "main")


def conflicts_are_resolved(stage, page):
    for name in "abc":
        write(stage, f"{name}.txt", "old")
    sync(stage)
    for name in "abc":
        write(stage, f"{name}.txt", f"mine {name}")
        put(stage, f"{name}.txt", f"theirs {name}")
    sync(stage, 3)
    page.sees("3 conflicts", ".bar-line")
    page.sees("was edited on both sides: both are kept", ".decisions")
    judge(page, "conflicts")
    page.click("Keep theirs: a.txt")
    page.sees("The version from OneDrive stays", "#told")
    page.sees("2 conflicts", ".bar-line")
    page.click("Keep mine: b.txt")
    page.sees("1 conflict", ".bar-line")
    # By keyboard: the control is reached with Tab, like any button.
    page.script("[...document.querySelectorAll('.decisions button')].find((b) => b.getAttribute('aria-label') === 'Keep both: c.txt').focus()")
    page.keys("\ue007")
    page.sees("Both stay.", "#told")
    page.lacks("conflict", ".bar-line")
    sync(stage)
    assert read(stage, "a.txt") == "theirs a"
    assert graph(stage, "root:/b.txt:/content") == "mine b"
    assert len(glob.glob(os.path.join(stage.one, "c.conflict-*"))) == 1


def an_owed_item_is_named(stage, page):
    stage.ask_cloud("/_cloud/drive", {"user": USER, "total": 10})
    write(stage, "refused.txt", "no")
    stage.run("drive", "sync", "--quiet", code=3)
    page.sees("1 owed", ".bar-line")
    page.sees("refused.txt", ".drive-table")
    judge(page, "an owed item")
    stage.ask_cloud("/_cloud/drive", {"user": USER, "total": 1000000000})
    os.unlink(os.path.join(stage.one, "refused.txt"))
    until(lambda: run(stage, "drive", "sync", "--quiet").returncode == 0, "what is gone here is no longer owed", 150)
    page.lacks("owed", ".bar-line")


def names_that_onedrive_refuses_are_listed(stage, page):
    write(stage, "what?.txt", "x")
    os.symlink("a.txt", os.path.join(stage.one, "link"))
    sync(stage)
    page.sees("what?.txt", "main")
    page.sees("is a link", "main")
    os.unlink(os.path.join(stage.one, "what?.txt"))
    os.unlink(os.path.join(stage.one, "link"))


def deletions_wait_and_are_decided(stage, page):
    gone = [os.path.join(top, name)[len(stage.one) + 1:] for top, _, names in os.walk(stage.one) for name in names
            if ".tidemark" not in top + name and name[1:] != ".txt"]
    assert len(gone) >= 12, gone
    for name in gone:
        os.unlink(os.path.join(stage.one, name))

    def waiting():
        """Whether the ten seconds have passed, after which a file that is missing counts as deleted; both commands then end with 3."""
        run(stage, "drive", "sync", "--quiet")
        return json.loads(run(stage, "drive", "deletions", "list", "--json").stdout)["drives"][0]["deletions"]
    until(lambda: len(waiting()) == len(gone), "they wait")
    page.sees(f"{len(gone)} deletions wait for you", ".bar-line")
    page.sees(f"{len(gone)} items would be deleted. Everything else goes on.", "main")
    judge(page, "deletions that wait")
    page.click("Bring them back")
    page.sees("Bringing", "#told")
    until(lambda: all(os.path.exists(os.path.join(stage.one, name)) for name in gone), "they are back")
    page.lacks("wait for you", ".bar-line")
    for name in gone:
        os.unlink(os.path.join(stage.one, name))
    until(lambda: len(waiting()) == len(gone), "they wait again")
    page.sees(f"{len(gone)} deletions wait for you", ".bar-line")
    page.click(f"Delete {len(gone)}")
    page.sees("They go to the trash here", "dialog")
    judge(page, "the question")
    page.click("Leave it", "dialog button")
    page.sees(f"{len(gone)} deletions wait for you", ".bar-line")
    page.click(f"Delete {len(gone)}")
    page.click("Delete them", "dialog button")
    page.sees("Deleting", "#told")
    page.lacks("wait for you", ".bar-line")
    until(lambda: "up 0.txt" not in graph(stage, "root/children?$top=200"), "it is gone online")


def a_mode_is_changed(stage, page):
    page.script("const s = document.querySelector('.bar-line select'); s.value = 'upload-only'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    page.click("Make it upload-only", "dialog button")
    page.sees("One is upload-only from its next sync on.", "#told")
    assert stage.json("drive", "list")["drives"][0]["mode"] == "upload-only"
    stage.run("drive", "mode", "One", "two-way")


def a_folder_that_is_not_there_is_told(stage, page):
    away = stage.one + ".away"
    shutil.move(stage.one, away)
    page.keys(".")
    page.sees("Stopped: ", "main")
    page.sees("its folder is not mounted", ".bar-line")
    judge(page, "not mounted")
    shutil.move(away, stage.one)
    page.keys(".")
    page.lacks("Stopped: ", "main")


def both_themes_and_small_screens(stage, page):
    for theme in ("dark", "light"):
        page.theme(theme)
        for route in (f"/drive/{USER}", ROUTE):
            page.go(route, "Drive /")
            until(lambda: page.count(".grey") == 0 and page.count(".facts") > 0, f"{route} is loaded")
            judge(page, f"{route} in {theme}")
    for width in (360, 320):
        page.size(width, 740)
        for route in (f"/drive/{USER}", ROUTE):
            page.go(route, "Drive /")
            until(lambda: page.count(".grey") == 0, f"{route} is loaded")
            wide = page.script("return document.scrollingElement.scrollWidth")
            assert wide <= width, f"{route} is {wide} px wide at {width}"
    page.size(1280, 860)
    packed = page.script("return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/app/')).reduce((sum, entry) => sum + entry.encodedBodySize, 0)")
    assert 0 < packed <= 90000, packed
    complaints = page.complaints()
    assert not complaints, complaints


def main():
    if len(sys.argv) > 3 and sys.argv[3]:
        with open(sys.argv[3], encoding="utf-8") as file:
            page_test.AXE = file.read()
    else:
        print("skipped: axe-core is missing; no view is judged for accessibility", flush=True)
    stage = Stage(sys.argv[1], sys.argv[2])
    stage.one = os.path.join(stage.dir, "One")
    stage.env["XDG_DATA_HOME"] = os.path.join(stage.dir, "data")
    stage.env["TIDEMARK_DRIVE_WATCH"] = "false"  # each story says when to sync
    page = None
    try:
        stage.start_cloud("--seed", "5", "--drive", f"{USER}=12,size=2000", "--token", f"tok={USER}")
        stage.start_serve()
        page = Page(stage)
        return run_stories([
            an_account_without_a_drive_says_what_to_do, a_drive_that_is_empty, a_sync_is_watched_by_direction, conflicts_are_resolved, an_owed_item_is_named,
            names_that_onedrive_refuses_are_listed, deletions_wait_and_are_decided, a_mode_is_changed, a_folder_that_is_not_there_is_told, both_themes_and_small_screens,
        ], stage, page)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    sys.exit(main())
