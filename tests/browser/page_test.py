"""page_test.py TIDEMARK CLOUD [AXE.JS]: the page of `tidemark serve` in a real browser, as stories of a person (E9.1,
E9.3, E12.1).  The stories run in order on one home; AXE.JS is axe-core, which judges every view."""
import json
import re
import subprocess
import signal
import sys

from selenium.webdriver.common.keys import Keys

from stage import Failed, Page, Stage, USER, run_stories, until
from walls import Line, Sink

VIEWS = [("/", "Home"), ("/mail", "Mail"), (f"/mail/{USER}", "Mail /"), ("/console", "Console"), ("/console/console", "Console /"),
         ("/jobs", "Jobs"), ("/bad", "Bad items"), ("/alerts", "Alerts"), ("/schedules", "Schedules"), ("/settings", "Settings"),
         ("/log", "Log")]


def views(stage):
    """Those that need something to show come last."""
    message = stage.json("mail", "search", "quokka from:mallory", "--account", USER)["messages"][0]["id"]
    job = stage.json("jobs", "list")["items"][0]["id"]
    return [*VIEWS, (f"/jobs/{job}", "Job"), ("/search?q=quokka", "Search"), (f"/message/{USER}/{message}", "Message"), ("/nothing", "Not found")]


def answer(stage, page, word):
    """Answers `tidemark open`; the code in the terminal is the one on the page."""
    code = until(lambda: re.fullmatch(r"[0-9A-Z]{3}-[0-9A-Z]{3}", page.text(".code").strip()), "a code").group(0)
    done = subprocess.run([stage.tidemark, "--home", stage.home, "open"], input=word + "\n", capture_output=True, text=True,
                          env=stage.env, timeout=60)
    if code not in done.stdout + done.stderr:
        raise Failed(f"the terminal does not show {code}: {done.stdout} {done.stderr}")


def paired(page):
    until(lambda: page.text("#live") == "live", "the page is live")


def post_sync(stage):
    """Asks for a sync, and does not wait for its end."""
    subprocess.run([stage.tidemark, "--home", stage.home, "mail", "sync", "--quiet", "--timeout", "1s"], capture_output=True, env=stage.env, timeout=60)


# ---- stories

def a_first_visit_and_its_pairing(stage, page):
    page.open()
    page.sees("This browser is not known. Run: tidemark open")
    judge(page, "pairing")
    answer(stage, page, "n")
    page.sees("The terminal did not let this browser in.")
    page.click("Ask again")
    page.sees("Compare this code with your terminal")
    answer(stage, page, "y")
    paired(page)
    page.sees("No account yet. Run: tidemark account add gmail you@example.com")
    judge(page, "no account")
    assert "key" not in page.driver.current_url and not page.driver.get_cookies()


def a_sync_is_watched_live(stage, page):
    stage.run("account", "add", "gmail", USER, "--endpoint", f"http://127.0.0.1:{stage.line.port}", "--bearer", "tok")
    page.sees(USER, ".accounts")
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.users.messages.get", "fault": "latency", "ms": 60})
    page.go(f"/mail/{USER}", "Mail /")
    page.click("Sync")
    page.sees("Syncing " + USER, "#told")
    page.go("/", "Home")
    page.sees("running", ".account")
    page.sees("to go", ".account-facts")
    seen = set()

    def grows():
        seen.add(page.text(".account-facts b"))
        return len(seen) >= 3
    until(grows, "the count grows while nobody touches the page")
    page.sees("Working on 1 account", ".summary")
    assert page.count(".tide-gap") > 0 and page.count(".tide-mark") > 0
    assert "bulk running" in page.text(".lanes")


def a_killed_serve_is_told_and_heals(stage, page):
    stage.kill_serve()
    page.sees("tidemark serve does not answer. Start it; this page goes on by itself.", "#banner")
    assert page.text("#live") == "not connected"
    page.sees(USER, ".accounts")  # what was known is still shown
    stage.ask_cloud("/_cloud/faults", method="DELETE")
    stage.start_serve()
    page.lacks("does not answer", "#banner")
    paired(page)
    page.sees("up to date", ".account")
    page.sees("All is stored and up to date.", ".summary")
    assert stage.json("status")["accounts"][0]["left"] == 0
    page.sees("300", ".account-facts b")


def a_restarted_serve_is_followed(stage, page):
    stage.serve_process.send_signal(signal.SIGTERM)
    assert stage.serve_process.wait(60) == 0
    page.sees("tidemark serve does not answer.", "#banner")
    stage.start_serve()
    page.lacks("does not answer", "#banner")
    paired(page)


def two_pages_tell_the_same(stage, page):
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("window")
    second = page.driver.current_window_handle
    page.open(f"mail/{USER}")
    paired(page)
    page.open("/")
    page.sees("up to date", ".account")
    stage.run("account", "halt", USER, "--reason", "lunch")
    for window in (first, second):
        page.driver.switch_to.window(window)
        page.sees(": lunch.", ".account-words")
    page.click("Resume " + USER)
    page.sees("up to date", ".account")
    page.driver.close()
    page.driver.switch_to.window(first)
    page.sees("up to date", ".account")


def trouble_with_the_provider_is_told_and_ends(stage, page):
    page.go("/", "Home")
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.*", "fault": "429", "retry_after": 4, "count": 1})
    post_sync(stage)
    until(lambda: re.search(r"Gmail asked to wait until \d\d:\d\d\. Nothing is lost\.", page.text(".account-words")), "the words of a wait")
    page.sees("up to date", ".account")
    stage.line.cut()
    post_sync(stage)
    until(lambda: re.search(r"Offline since \d\d:\d\d\. What is stored here works;", page.text("#banner")), "the words of a network that is gone")
    judge(page, "offline")
    stage.line.mend()
    page.lacks("Offline", "#banner")
    page.sees("up to date", ".account")
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.*", "fault": "401"})
    stage.run("mail", "sync", "--quiet", code=4)
    page.sees("ada must sign in again: tidemark account add gmail " + USER, ".account-words")
    stage.ask_cloud("/_cloud/faults", method="DELETE")
    stage.run("account", "add", "gmail", USER, "--endpoint", f"http://127.0.0.1:{stage.line.port}", "--bearer", "tok2")  # the refused one stays refused
    stage.run("mail", "sync", "--quiet")
    page.sees("up to date", ".account")


def a_halted_account_says_so_and_its_job_explains_itself(stage, page):
    page.go(f"/mail/{USER}", "Mail /")
    page.script("document.querySelector('h1').focus()")
    page.keys("h")
    page.sees("Halt " + USER, "dialog")
    page.click("Halt it", "dialog button")
    until(lambda: re.search(r"Halted at \d\d:\d\d: halted on the page\.", page.text(".words")), "the words of a halt")
    page.keys("s")
    until(lambda: any(job["state"] == "pending" for job in stage.json("jobs", "list")["items"]), "a job waits")
    page.go("/jobs?state=pending", "Jobs")
    page.sees("mail.", ".jobs")
    page.keys("j", "w")
    page.sees("WHY IS THIS NOT DONE?".capitalize(), ".why")
    page.sees("is halted since", ".why")
    page.sees("It waits for you.", ".why")
    page.sees("tidemark account resume " + USER, ".why code")
    page.keys("u")
    page.sees("Jobs", "h1")
    page.keys("g", "h")
    page.sees("1 account needs you.", ".summary")
    page.click("Resume " + USER)
    page.sees("up to date", ".account")


def a_bad_item_is_retried(stage, page):
    bad = stage.deliver(f"From: b@example.org\r\nTo: {USER}\r\nSubject: poison\r\n\r\nx\r\n")
    stage.deliver(f"From: b@example.org\r\nTo: {USER}\r\nSubject: good\r\n\r\nx\r\n")
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.users.messages.get", "id": bad, "fault": "500"})
    stage.run("mail", "sync", "--quiet", code=3)
    page.sees("1 bad", ".account-facts")
    page.go("/bad", "Bad items")
    page.sees(bad, ".bad-items")
    stage.ask_cloud("/_cloud/faults", method="DELETE")
    page.keys("j", "x")
    page.sees("Retry 1", ".filters")
    page.keys("r")
    page.sees("Retrying 1 item.", "#told")
    page.sees("No bad item.", "main")
    page.go("/", "Home")
    page.sees("302", ".account-facts b")
    page.lacks("bad", ".account-facts")


def all_that_match_is_refused_when_another_count_matches(stage, page):
    page.go("/jobs?state=done", "Jobs")
    page.sees(" of ", ".count")
    shown = stage.json("jobs", "list", "--state", "done")["total"]
    code = page.driver.execute_async_script("""
        const [expect, done] = arguments
        fetch('api/v1/jobs/retry', { method: 'POST', headers: { Authorization: 'Bearer ' + localStorage.getItem('tidemark.key'),
          'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() },
          body: JSON.stringify({ filter: { state: 'done' }, expect: expect - 1 }) }).then((answer) => done(answer.status))""", shown)
    assert code == 409, code


def an_alert_appears_and_clears(stage, page):
    page.go("/", "Home")
    stage.run("config", "set", "alerts.metadata_budget", "1KiB", "--quiet")
    stage.run("mail", "sync", "--quiet")
    page.sees("Metadata uses", ".alerts")
    page.sees("1", ".badge")
    page.keys("g", "l")
    page.sees("Metadata uses", ".alert-list")
    page.sees("tidemark bad list --account " + USER, ".alert-list code")
    until(lambda: re.search(r"alerts\.metadata_budget\s+1KiB\s+\S+config\.yaml:1\s", page.text(".thresholds")), "the threshold and its origin")
    judge(page, "an alert")
    stage.run("config", "set", "alerts.metadata_budget", "64MiB", "--quiet")
    stage.run("mail", "sync", "--quiet")
    page.sees("No alert.", "main")
    page.sees("cleared", ".alert-list")
    until(lambda: page.count(".badge") == 0, "no badge")


def schedules_run_from_the_page(stage, page):
    stage.run("schedule", "add", "--at", "daily 03:30", "mail", "sync")
    page.go("/schedules", "Schedules")
    page.sees("mail-sync", ".schedules")
    page.sees("never", ".schedules")
    page.click("Run now")
    page.sees("done", ".schedules")
    assert stage.json("schedule", "list")["schedules"][0]["runs"] == 1


def a_system_of_another_kind_has_its_page(stage, page):
    stage.run("account", "add", "console", "sc-domain:example.org", "--endpoint", stage.origin, "--bearer", "tok")
    stage.run("console", "backfill", "sc-domain:example.org", "--quiet", "--from", "2026-10-01", "--to", "2026-10-20")
    page.go("/console/console", "Console /")
    page.sees("20 final", ".calendar")
    assert page.count(".calendar rect") == 20
    # All 20 days are final: the line is at the end of the last one, not at its beginning.
    until(lambda: page.script("const svg = document.querySelector('.tide.large svg'); return +svg.querySelector('.tide-mark').getAttribute('x') + 3 === svg.viewBox.baseVal.width"), "the line is at the end")
    assert "complete to 2026-10-20" in page.find(".tide.large svg").get_attribute("aria-label")
    page.sees("searchanalytics.query", ".calls")  # and how long its calls take
    until(lambda: re.search(r"searchanalytics\.query\s+\d+\s+\d+ ms\s+\d+ ms\s+\d+ ms", page.text(".calls")), "three quantiles")


def settings_are_shown(stage, page):
    page.go("/settings", "Settings")
    page.sees("governor.gmail.window_units", ".settings")
    page.find("main input[type=search]").send_keys("window_units")
    until(lambda: page.count(".settings > .row") < 6, "the list is narrowed")
    page.sees("env TIDEMARK_GOVERNOR", ".settings")
    page.script("document.querySelector('.settings > .row').click()")
    page.sees("tidemark config set governor.", "main")


def the_log_is_followed(stage, page):
    def write(*events, level="info"):
        with open(f"{stage.home}/tidemark.log", "a", encoding="utf-8") as log:
            for event in events:
                log.write(json.dumps({"time": "2026-11-16T00:00:00.000Z", "level": level, "run": "r", "event": event}) + "\n")

    def at_end():
        return page.script("const at = document.querySelector('.tail'); return at.scrollTop + at.clientHeight >= at.scrollHeight - 4")
    page.go("/log", "Log")
    page.sees("serving", ".log")
    write(*[f"story {i}" for i in range(60)])
    page.sees("story 59", ".log")
    until(at_end, "it shows the end")
    page.script("document.querySelector('.tail').scrollTop = 0")
    page.sees("To the newest", "main")
    write("while it is read")
    page.sees("while it is read", ".log")
    assert not at_end(), "it takes the place from who reads"
    page.click("To the newest")
    until(at_end, "it follows again")
    write(*[f"flood {i}" for i in range(500)])
    page.sees("flood 499", ".log")
    until(at_end, "it still follows")
    assert page.count(".log > .row") <= 200, page.count(".log > .row")
    write("a failure", level="error")
    page.sees("a failure", ".log")
    page.script("const s = document.querySelector('label.field select'); s.value = 'error'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    page.lacks("flood", ".log")
    page.sees("a failure", ".log")
    write("harmless")
    write("another failure", level="error")
    page.sees("another failure", ".log")
    assert "harmless" not in page.text(".log")
    judge(page, "the log")


def a_kind_is_paused_by_its_key(stage, page):
    stage.run("account", "halt", USER, "--reason", "so that jobs wait")
    page.go(f"/mail/{USER}", "Mail /")
    page.click("Sync")
    page.go("/jobs?state=pending", "Jobs")
    page.sees("mail.", ".jobs")
    page.script("document.querySelector('h1').focus()")
    page.keys("j", "p")
    page.click("Pause it", "dialog button")
    page.sees("Paused mail.", "#told")
    page.keys("w")
    page.sees("is paused; resume it with", ".why")
    page.sees("Resume kind", ".bar-line")
    page.keys("p")
    page.lacks("is paused", ".why")
    page.sees("Pause kind", ".bar-line")
    stage.run("account", "resume", USER)
    page.go("/", "Home")
    page.sees("up to date", ".account")


HOSTILE = """From: Mallory <mallory@evil.example>\r
To: {user}\r
Subject: quokka <b>invoice</b>\r
Message-ID: <one@evil.example>\r
MIME-Version: 1.0\r
Content-Type: multipart/mixed; boundary=b\r
\r
--b\r
Content-Type: text/html; charset=utf-8\r
\r
<html><head><base href="{sink}/"><meta http-equiv="refresh" content="0;url={sink}/meta"><link rel="stylesheet" href="{sink}/css">
<link rel="preconnect" href="{sink}"><style>@import url({sink}/import); body {{ background: url({sink}/background) }}</style>
<script>top.pwned = 1; fetch("{sink}/script")</script></head>
<body onload="top.pwned = 2"><p id="words">Read me, I am harmless.</p>
<img src="{sink}/image" onerror="top.pwned = 3"><svg onload="top.pwned = 4"><image href="{sink}/svg"/></svg>
<iframe src="{sink}/frame"></iframe><object data="{sink}/object"></object><video src="{sink}/video" autoplay></video>
<form action="{sink}/form"><button>press</button></form><a id="out" href="{sink}/link">a link</a><a href="javascript:top.pwned=5">x</a>
<p style="background: url({sink}/style)">styled</p></body></html>\r
--b\r
Content-Type: text/html; name="run.html"\r
Content-Disposition: attachment; filename="run.html"\r
\r
<script>alert(1)</script>\r
--b--\r
"""


def hostile_mail_is_found_and_read(stage, page):
    sink = Sink()
    stage.deliver(HOSTILE.format(user=USER, sink=f"http://127.0.0.1:{sink.port}"))
    stage.deliver(f"From: b@example.org\r\nTo: {USER}\r\nSubject: Re: quokka <b>invoice</b>\r\nIn-Reply-To: <one@evil.example>\r\n"
                  "References: <one@evil.example>\r\n\r\nwhat is this quokka?\r\n")
    stage.run("mail", "sync", "--quiet")
    until(lambda: len(stage.json("mail", "search", "quokka", "--account", USER)["messages"]) == 2, "it is indexed")
    page.go("/", "Home")
    page.script("document.querySelector('h1').focus()")
    page.keys("/")
    page.sees("Search", "h1")
    until(lambda: page.count("#q") == 1, "a field")
    page.find("#q").send_keys("quokka from:mallory", Keys.ENTER)
    page.sees("quokka <b>invoice</b>", ".messages")
    judge(page, "search")
    page.script("document.activeElement.blur()")
    page.keys("j", Keys.ENTER)
    page.sees("Message", "h1")
    until(lambda: page.count("iframe.mail") == 1, "a frame")
    assert page.find("iframe.mail").get_attribute("sandbox") == "allow-same-origin"
    page.sees("not loaded.", ".remote")
    inside = until(lambda: page.script("const d = document.querySelector('iframe.mail').contentDocument; return d?.getElementById('words') || d?.body?.innerText.includes('harmless') ? d.body.innerText : ''"), "the words")
    assert "I am harmless" in inside
    assert page.script("return document.querySelector('iframe.mail').contentDocument.querySelectorAll('script, form, iframe, object, svg, link, meta[http-equiv]').length") == 0
    until(lambda: page.script("return document.querySelector('iframe.mail').style.height"), "the frame has its height")
    page.sees("run.html", ".files")
    page.sees("Re: quokka", ".messages")
    judge(page, "message")
    page.keys("j")  # marks the other message of the thread: the page is drawn again
    until(lambda: page.count(".row.marked") == 1, "a mark")
    assert page.script("return document.querySelector('iframe.mail').style.height"), "the height is lost when the page is drawn again"
    head = page.driver.execute_async_script("""
        const done = arguments[0]
        fetch(document.querySelector('.files a').href).then(async (answer) => done([answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition'), await answer.text()]))""")
    assert head[0] == 200 and head[1] == "application/octet-stream" and head[2].startswith("attachment"), head
    page.keys("i")  # the server is asked to load it, and refuses an address of this machine
    until(lambda: page.count(".remote") == 0, "loaded")
    until(lambda: page.script("return document.querySelector('iframe.mail').contentDocument?.body?.innerText.includes('harmless')"), "the words again")
    assert page.script("return window.pwned === undefined && document.title.startsWith('Message')")
    assert len(page.driver.window_handles) == 1
    assert sink.counts() == (0, 0), sink.asked
    sink.close()


def everything_by_keyboard(stage, page):
    page.go("/", "Home")
    page.driver.refresh()  # the focus is nowhere
    paired(page)
    page.sees(USER, ".accounts")
    page.keys(Keys.TAB)
    assert page.script("return document.activeElement.id") == "skip"
    page.keys(Keys.ENTER)
    assert page.script("return document.activeElement.id") == "main"
    page.keys("j", "j", "k")
    label = page.script("return document.activeElement.getAttribute('aria-label')")
    page.keys(Keys.ENTER)
    until(lambda: " / " in page.text("h1"), "an account opens")
    page.keys("u")
    until(lambda: " / " not in page.text("h1"), "back")
    page.keys("g", "h")
    until(lambda: page.script("return document.activeElement.getAttribute('aria-label')") == label, "back at its row")
    page.keys("?")
    page.sees("Single keys", "dialog")
    judge(page, "keys")
    page.keys(Keys.ESCAPE)
    until(lambda: page.count("dialog") == 0, "closed")
    page.chord(Keys.CONTROL, "k")
    page.sees("Go to Jobs", "dialog")
    page.keys("jobs", Keys.ENTER)
    page.sees("Jobs", "h1")
    page.keys("g", "e")
    page.sees("Settings", "h1")
    page.find("label.check input").click()
    page.script("document.activeElement.blur()")
    page.keys("g", "h")
    page.keys(Keys.TAB)
    assert page.text("h1") == "Settings", "single keys are off"
    page.find("label.check input").click()


def every_view_is_judged_in_light_and_dark(stage, page):
    for theme, ground in (("light", "rgb(246, 248, 250)"), ("dark", "rgb(13, 20, 26)")):
        page.theme(theme)
        until(lambda: page.script("return getComputedStyle(document.documentElement).backgroundColor") == ground, theme)
        for route, heading in views(stage):
            page.go(route, heading)
            until(lambda: page.count(".grey") == 0 and page.text("main").strip() != heading, f"{route} is loaded")
            judge(page, f"{route} in {theme}")
    page.go("/settings", "Settings")
    page.script("const s = document.querySelector('label.field select'); s.value = 'light'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    until(lambda: page.script("return getComputedStyle(document.documentElement).backgroundColor") == "rgb(246, 248, 250)", "the switch wins")
    page.script("localStorage.removeItem('tidemark.theme')")
    page.theme("light")


def it_fits_a_small_screen(stage, page):
    for width in (360, 320):  # 320: 1280 at 400 %
        page.size(width, 740)
        for route, heading in views(stage):
            page.go(route, heading)
            until(lambda: page.count(".grey") == 0, f"{route} is loaded")
            wide = page.script("return document.scrollingElement.scrollWidth")
            assert wide <= width, f"{route} is {wide} px wide"
            # Nothing is cut off but what says so with dots.
            cut = page.script("""return [...document.querySelectorAll('header *, main *')].filter((at) => at instanceof HTMLElement && at.scrollWidth > at.clientWidth + 1 &&
                !['visible', 'clip'].includes(getComputedStyle(at).overflowX) && !at.closest('.unseen') && getComputedStyle(at).textOverflow !== 'ellipsis').map((at) => at.outerHTML.slice(0, 120))""")
            assert not cut, f"{route} at {width} px: {cut}"
    page.size(1280, 860)


def nothing_from_elsewhere_and_no_complaint(stage, page):
    names = page.script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    foreign = [name for name in names if not name.startswith(stage.page)]
    assert not foreign, foreign
    packed = page.script("return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/app/')).reduce((sum, entry) => sum + entry.encodedBodySize, 0)")
    assert 0 < packed <= 90000, packed
    print(f"the page: {packed / 1000:.1f} kB gzip (90)", flush=True)
    complaints = page.complaints()
    assert not complaints, complaints


def a_revoked_browser_is_out_at_once(stage, page):
    page.go("/", "Home")
    token = next(one for one in stage.json("token", "list")["tokens"] if one["scope"] == "page" and not one["revoked_unix_ms"])
    stage.run("token", "revoke", str(token["id"]))
    stage.run("mail", "sync", "--quiet")  # something to tell
    page.sees("its key no longer holds", ".pair")
    page.sees("This browser is not known. Run: tidemark open", ".pair")
    assert USER not in page.text()


# ---- the judge

AXE = None


def judge(page, where):
    """Of a long list the first rows: all are made alike, and a thousand cells take a minute."""
    if AXE is None:
        return
    if not page.script("return typeof axe !== 'undefined'"):
        page.script(AXE)
    options = {"resultTypes": ["violations"], "iframes": False}
    found = page.driver.execute_async_script(
        "const done = arguments[1]; axe.run({ include: [['html']], exclude: [['.grid > .row:nth-child(n+8)']] }, arguments[0]).then((r) => done(r.violations), (e) => done([{id: String(e), nodes: []}]))", options)
    assert not found, f"{where}: " + json.dumps([{"rule": one["id"], "nodes": [node["html"][:200] + " " + (node.get("failureSummary") or "")[:200] for node in one["nodes"][:3]]} for one in found])


def main():
    global AXE
    if len(sys.argv) > 3 and sys.argv[3]:
        with open(sys.argv[3], encoding="utf-8") as file:
            AXE = file.read()
    else:
        print("skipped: axe-core is missing; no view is judged for accessibility", flush=True)
    stage = Stage(sys.argv[1], sys.argv[2])
    page = None
    try:
        stage.start_cloud("--seed", "5", "--mailbox", f"{USER}=300", "--token", f"tok={USER}", "--token", f"tok2={USER}", "--site", f"sc-domain:example.org={USER},rows=5")
        stage.line = Line(int(stage.origin.rpartition(":")[2]))
        stage.start_serve()
        page = Page(stage)
        return run_stories([
            a_first_visit_and_its_pairing, a_sync_is_watched_live, a_killed_serve_is_told_and_heals, a_restarted_serve_is_followed, two_pages_tell_the_same,
            trouble_with_the_provider_is_told_and_ends, a_halted_account_says_so_and_its_job_explains_itself, a_bad_item_is_retried,
            all_that_match_is_refused_when_another_count_matches, an_alert_appears_and_clears, schedules_run_from_the_page,
            a_system_of_another_kind_has_its_page, settings_are_shown, the_log_is_followed, a_kind_is_paused_by_its_key, hostile_mail_is_found_and_read, everything_by_keyboard,
            every_view_is_judged_in_light_and_dark, it_fits_a_small_screen, nothing_from_elsewhere_and_no_complaint,
            a_revoked_browser_is_out_at_once,
        ], stage, page)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    sys.exit(main())
