"""reader_views_test.py TIDEMARK CLOUD AXE.JS: what the reader of `tidemark serve` shows, tells, saves and prints (K14), with two
accounts: counts, files, inline images, one inbox of all, notifications, a screen reader; AXE.JS judges every state."""
import base64
import os
import re
import struct
import sys
import time
import zipfile
import zlib

from selenium.webdriver.common.keys import Keys

import page_test
from page_test import answer, judge, paired
from reader_mail import labels, letter, opens
from reader_page import Reading, address_of
from stage import Stage, USER, run_stories, until

BEN = "ben@example.com"
TOKENS = {USER: "tok", BEN: "tok2"}
ADAS, BENS = 30, 12  # letters
INBOX = f"/reader/{USER}/INBOX"
FILES = {"plan.txt": b"the first plan" * 100, "plän.txt": "plän".encode() * 100, "plan (2).txt": bytes(range(256)) * 40}


def png(width=8, height=8):
    """A blue one."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + b"\x0a\x6a\x8a" * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def part(kind, data, more=""):
    return f"--b\r\nContent-Type: {kind}\r\n{more}Content-Transfer-Encoding: base64\r\n\r\n{base64.encodebytes(data).decode()}\r\n".replace("\r\n", "\n").replace("\n", "\r\n")


def parts(name, kind, *of):
    return (f"From: Mia Lund <mia@lund.example>\r\nTo: {USER}\r\nCc: crew@harbour.example\r\nSubject: {name}\r\nMessage-ID: <{name}@lund.example>\r\nMIME-Version: 1.0\r\n"
            f"Content-Type: {kind}; boundary=b\r\n\r\n{''.join(of)}--b--\r\n")


def plans():
    """Two files have the same name."""
    names = ("plan.txt", "pl%C3%A4n.txt", "plan.txt")
    return parts("plans", "multipart/mixed", part("text/plain; charset=utf-8", b"Text of plans."),
                 *(part("text/plain", data, f"Content-Disposition: attachment; filename*=UTF-8''{name}\r\n") for name, data in zip(names, FILES.values())))


def postcard():
    html = ('<html lang="en"><p>Text of postcard. <a href="mailto:crew@harbour.example?subject=Crew">the crew</a></p><img src="cid:quay" alt="the quay" width="80" height="80">'
            '<img src="http://pictures.example/1.png" alt="one"><img src="http://pictures.example/2.png" alt="two">' + "<p>A line of the card.</p>" * 60)
    return parts("postcard", "multipart/related", part("text/html; charset=utf-8", html.encode()), part("image/png", png(), "Content-ID: <quay>\r\nContent-Disposition: inline\r\n"))


def read(page, stage, name, folder=INBOX):
    page.go(f"{folder}?m={USER}/{stage.ids[name]}", "Inbox")
    opens(page, name)


# ---- stories

def the_inbox_opens(stage, page):
    page.open(INBOX)
    page.sees("This browser is not known. Run: tidemark open")
    answer(stage, page, "y")
    paired(page)
    page.sees("Inbox", "h1")
    until(lambda: page.count(".vlist:not([hidden])") and page.total() == ADAS + 2, "all of it is listed")
    page.loaded()
    until(lambda: page.text(".now").startswith("Active."), "the first sync is over")
    until(lambda: page.count_of("Inbox") == ADAS + 2 + BENS, "all are unread, of both accounts")
    until(lambda: page.driver.title.startswith(f"({ADAS + 2 + BENS}) Inbox"), "their count is in the title")
    judge(page, "the inbox")


def files_are_saved_as_one(stage, page):
    read(page, stage, "plans")
    page.sees("plan.txt", ".files")
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": stage.dir})
    page.click("Save all")
    saved = os.path.join(stage.dir, "plans.zip")
    until(lambda: os.path.exists(saved), "all as one file")
    with zipfile.ZipFile(saved) as files:
        assert files.testzip() is None and {name: files.read(name) for name in files.namelist()} == FILES, files.namelist()
    judge(page, "files")


def own_images_are_shown_and_others_asked_for(stage, page):
    read(page, stage, "postcard")
    page.sees("2 remote images not loaded.", ".remote")
    assert page.find("iframe.mail").get_attribute("sandbox") == "allow-same-origin"

    def wide(alt):
        return page.script("return document.querySelector('iframe.mail')?.contentDocument?.querySelector(`img[alt=\"${arguments[0]}\"]`)?.naturalWidth ?? 0", alt)
    until(lambda: wide("the quay") == 8, "the image that came with it")
    assert wide("one") == 0 and wide("two") == 0
    until(lambda: page.script("return document.querySelector('iframe.mail').getBoundingClientRect().height") > 1000, "all of it, without a second scroll bar")
    judge(page, "an HTML message")
    page.script("document.querySelector('iframe.mail').contentDocument.querySelector('a').click()")
    until(lambda: page.count("#write-to") == 1 and page.find("#write-to").get_attribute("value") == "crew@harbour.example", "mailto composes")
    judge(page, "composing")
    page.click("Throw away")
    until(lambda: page.count(".write") == 0 or page.count("dialog"), "thrown away, or asked")
    if page.count("dialog"):
        page.click("Throw it away", "dialog button")
    until(lambda: page.count(".write") == 0, "thrown away")


def the_print_view_has_the_message_alone(stage, page):
    for name, inside in (("postcard", "iframe.mail"), ("plans", "pre.mail-text")):
        read(page, stage, name)
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        until(lambda: page.script("return ['header', '.folders', '.box', '.now', '.talk-tools'].every((one) => getComputedStyle(document.querySelector(one)).display === 'none')"), "nothing else")
        assert page.script("return document.querySelector(arguments[0]).getBoundingClientRect().height", inside) > 10, name
        printed = page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
        assert base64.b64decode(printed).startswith(b"%PDF-"), name
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen"})
    page.keys("u")


def one_inbox_of_all_accounts(stage, page):
    page.go("/reader/all/INBOX", "Inbox")
    until(lambda: page.total() == ADAS + 2 + BENS, "the messages of both")
    page.loaded()
    times = page.script("return [...document.querySelectorAll('.mrow:not([hidden]):not(.ghost)')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((one) => one.querySelector('.label').textContent.slice(0, 3))")
    assert times[2:8] == ["ada", "ben"] * 3, times  # by their time
    page.sees("ada: Active.", ".now")
    page.sees("ben: Active.", ".now")
    judge(page, "all accounts")
    page.focus_list()
    page.top()
    page.keys("j", "j", *(["x", "j"] * 6))
    page.sees("6 selected of", ".count")
    page.keys("e")
    page.sees("Archived 6.", "#told")
    both = [(f"letter {number}", "tok") for number in range(3)] + [(f"ben {number}", "tok2") for number in range(3)]
    until(lambda: all("INBOX" not in labels(stage, *one) for one in both), "each server gets its part")
    page.keys("z")
    until(lambda: all("INBOX" in labels(stage, *one) for one in both), "and both are taken back")
    until(lambda: page.total() == ADAS + 2 + BENS, "the list as it was")
    page.row("ben 5,").click()
    opens(page, "ben 5")
    page.keys("u")


def new_mail_is_told_to_who_asked(stage, page):
    """A notification of the desktop is asked for; the title counts for everybody."""
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"origin": page.address.rstrip("/"), "permissions": ["notifications"]})
    page.go(INBOX, "Inbox")
    page.driver.refresh()
    paired(page)
    page.loaded()
    page.script("window.told = []; window.Notification = Object.assign(function (name, more) { window.told.push([name, more.body]) }, { permission: 'granted', requestPermission: async () => 'granted' }); document.hasFocus = () => false")
    assert not page.find(".folders input[type=checkbox]").is_selected(), "off until somebody asks"
    until(lambda: re.match(r"\(\d+\) Inbox", page.driver.title), "a count in the title")
    unread = int(re.match(r"\((\d+)\) Inbox", page.driver.title)[1])
    stage.ids["news 1"] = stage.deliver(letter("news 1"))
    until(lambda: page.row("news 1,"), "it appears")
    until(lambda: page.driver.title.startswith(f"({unread + 1}) Inbox"), "and is counted")
    assert page.script("return window.told.length") == 0, "nobody asked"
    page.find(".folders input[type=checkbox]").click()
    until(lambda: page.find(".folders input[type=checkbox]").is_selected(), "somebody asks")
    stage.ids["news 2"] = stage.deliver(letter("news 2"))
    told = until(lambda: page.script("return window.told"), "a notification")
    assert told == [["Ben Ochoa", "news 2"]], told
    until(lambda: page.driver.title.startswith(f"({unread + 2}) Inbox"), "and it is counted")
    page.find(".folders input[type=checkbox]").click()
    until(lambda: not page.find(".folders input[type=checkbox]").is_selected(), "off again")
    stage.ids["news 3"] = stage.deliver(letter("news 3"))
    until(lambda: page.row("news 3,"), "it appears")
    assert len(page.script("return window.told")) == 1


def a_screen_reader_is_told(stage, page):
    page.go(INBOX, "Inbox")
    page.driver.refresh()
    paired(page)
    page.loaded()
    page.focus_list()
    page.top()
    page.driver.execute_cdp_cmd("Accessibility.enable", {})
    assert page.names("grid") == ["Messages"] and "Folders" in page.names("navigation") and "List of messages" in page.names("region")
    rows = page.names("row")
    assert len(rows) > 15 and all(re.fullmatch(r"(Unread, )?(starred, )?.+: .+, [^,]+(, has attachments)?(, waits for Gmail)?", row) for row in rows), rows
    for role in ("button", "link", "checkbox", "textbox", "searchbox", "combobox", "Date"):
        assert all(page.names(role)), (role, page.names(role))
    page.keys("s")
    page.sees("Starred 1.", "#say")
    page.keys("z")
    page.sees("Undone: Starred 1.", "#say")
    page.script("document.hasFocus = () => true")
    stage.ids["spoken"] = stage.deliver(letter("spoken"))
    page.sees("New mail from Ben Ochoa: spoken", "#say")
    until(lambda: page.row("spoken,"), "it is in the list")
    page.top()
    page.keys(Keys.ENTER)
    opens(page, "spoken")
    until(lambda: page.focused() == "talk-subject", "the focus is at the subject, which is read out")
    until(lambda: any("Text of spoken." in name for name in page.names("StaticText")), "the text")
    read(page, stage, "postcard")
    named = page.names("article", "Iframe", "button", "link")
    assert "Conversation" in page.names("region") and "Message" in page.names("Iframe") and all(named), named
    page.script("document.querySelector('.talk-subject').focus()")
    page.keys("r")
    until(lambda: page.focused() == "write-text", "a form")
    fields = set(page.names("textbox", "combobox"))
    assert {"To", "Cc", "Bcc", "Subject", "Text"} <= fields, fields
    page.click("Throw away")
    until(lambda: page.count(".write") == 0 or page.count("dialog"), "thrown away, or asked")
    if page.count("dialog"):
        page.click("Throw it away", "dialog button")
    until(lambda: page.count(".write") == 0, "thrown away")
    page.keys("u")
    page.driver.execute_cdp_cmd("Accessibility.disable", {})


def both_themes_and_small_screens(stage, page):
    routes = [INBOX, f"{INBOX}?m={USER}/{stage.ids['plans']}", f"{INBOX}?m={USER}/{stage.ids['postcard']}", f"{INBOX}?q=letter", f"/reader/{USER}/TRASH", "/reader/all/INBOX"]
    for width, theme in ((1280, "dark"), (1280, "light"), (360, "light"), (320, "dark")):
        page.size(width, 740)
        page.theme(theme)
        for route in routes:
            page.go(route)
            until(lambda: page.count(".grey") == 0 and page.count(".mrow.ghost:not([hidden])") == 0, "it is loaded")
            wide = page.script("return document.scrollingElement.scrollWidth")
            assert wide <= width, f"{route} is {wide} px wide at {width}"
            judge(page, f"{route} at {width} in {theme}")
    page.size(1280, 860)


def nothing_from_elsewhere_and_no_complaint(stage, page):
    names = page.script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    foreign = [name for name in names if not name.startswith(page.address)]
    assert names and not foreign, foreign
    complaints = page.complaints()
    assert not complaints, complaints


def fill(stage, now):
    """Letters of two people, one hour apart; those of Ben half an hour later."""
    for number in range(ADAS - 1, -1, -1):
        stage.ids[f"letter {number}"] = stage.deliver(letter(f"letter {number}"), date_ms=now - 3600000 * (number + 1))
    for number in range(BENS - 1, -1, -1):
        stage.ids[f"ben {number}"] = stage.deliver(letter(f"ben {number}"), user=BEN, date_ms=now - 3600000 * (number + 1) - 1800000)
    stage.ids["plans"] = stage.deliver(plans(), date_ms=now - 120000)
    stage.ids["postcard"] = stage.deliver(postcard(), date_ms=now - 60000)


def main():
    if sys.argv[3]:
        with open(sys.argv[3], encoding="utf-8") as file:
            page_test.AXE = file.read()
    else:
        print("skipped: axe-core is missing; no view is judged for accessibility", flush=True)
    stage = Stage(sys.argv[1], sys.argv[2])
    stage.ids = {}
    page = None
    try:
        now = int(time.time() * 1000)
        boxes = [option for user, token in TOKENS.items() for option in ("--mailbox", f"{user}=0", "--token", f"{token}={user}")]
        stage.start_cloud("--seed", "5", *boxes, clock=now)
        fill(stage, now)
        for user, token in TOKENS.items():
            stage.run("account", "add", "gmail", user, "--endpoint", stage.origin, "--bearer", token)
        stage.start_serve()
        page = Reading(stage)
        page.address = address_of(stage)
        return run_stories([the_inbox_opens, files_are_saved_as_one, own_images_are_shown_and_others_asked_for, the_print_view_has_the_message_alone, one_inbox_of_all_accounts,
                            new_mail_is_told_to_who_asked, a_screen_reader_is_told, both_themes_and_small_screens, nothing_from_elsewhere_and_no_complaint], stage, page)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    sys.exit(main())
