"""reader_page_bench.py TIDEMARK CLOUD [PART...]: the mail reader of `tidemark serve` in a browser (K15, K14).

  open    a message that is not here is opened with a key: until its call reaches the server, and until its body is shown,
          less what the server took; first without a backfill, then while one uses the whole quota
  stored  a message that is here: the next one with a key, and any one with a click; until it is shown

TIDE_BENCH_OPENS: how many of each (100).  Other programs of the machine delay all of this: machine_late is by how much a timer
of the page came late at most."""
import json
import os
import re
import subprocess
import sys
import time

BROWSER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "browser")
sys.path.insert(0, BROWSER)
from selenium.webdriver.common.keys import Keys
from reader_mail import label_make
from reader_page import Reading
from stage import Stage, USER, until

OPENS = int(os.environ.get("TIDE_BENCH_OPENS", "100"))
BACKFILL = int(os.environ.get("TIDE_BENCH_MESSAGES", "12000"))
UNITS = 60000  # a minute: as in reader_bench.c
PRESSED_MS = 60  # a button of the mouse is down for at least as long
STORED = "ben@example.com"
DAY_MS = 86400000
LINE = re.compile(r"GET /gmail/v1/users/me/messages/(\w+)\S* 200 \d+ bytes (\d+) ms at (\d+\.\d+)$", re.M)

# Opens one message, by `act`, and waits until its text is painted.  The time of the act is by the wall clock, as in the log of the cloud.
ONE = """
const [act, row, done] = arguments, list = document.querySelector('.vlist')
const subject = document.querySelector('.talk-subject')?.textContent
const shown = () => {
  const now = document.querySelector('.talk-subject')?.textContent
  return now && now !== subject && document.querySelector('.turn.open pre.mail-text')?.textContent.includes(`Text of ${now.replace(/ [0-9]+ messages$/, '')}.`)
}
const { port1, port2 } = new MessageChannel()
let beat = performance.now(), late = 0
const timer = setInterval(() => { late = Math.max(late, performance.now() - beat - 5); beat = performance.now() }, 5)
const end = (told) => { watch.disconnect(); clearTimeout(never); clearInterval(timer); done(told) }
let found = false
port1.onmessage = () => end({ at_ms: performance.timeOrigin + began, took_ms: performance.now() - began, late_ms: late, id: decodeURIComponent(location.hash).replace(/^.*[/]/, '') })
const look = () => {
  if (found || !shown()) return
  found = true
  requestAnimationFrame(() => port2.postMessage(0))
}
const watch = new MutationObserver(look)
watch.observe(document.querySelector('.talk'), { subtree: true, childList: true, characterData: true, attributes: true })
const never = setTimeout(() => end({ error: `not shown after ${subject}: ${location.hash} ${document.querySelector('.talk').textContent.slice(0, 200)} ${document.querySelector('.now').textContent}` }), 50000)
const target = document.querySelector(`.mrow[aria-rowindex="${row}"]`)
let began = 0
const begin = (run) => { beat = began = performance.now(); late = 0; run() }
if (act === 'click') {
  target.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }))
  setTimeout(() => begin(() => target.click()), PRESSED_MS)
} else begin(() => list.dispatchEvent(new KeyboardEvent('keydown', { key: act, bubbles: true, cancelable: true })))
"""


def say(name, values):
    for part in (50, 95, 99):
        value = sorted(values)[min(len(values) - 1, len(values) * part // 100)]
        print(json.dumps({"name": f"reader_page_{name}_p{part}", "value": round(value, 3), "unit": "ms"}), flush=True)


def letter(user, name):
    return f"From: Ben Ochoa <ben@harbour.example>\r\nTo: {user}\r\nSubject: {name}\r\nMessage-ID: <{name.replace(' ', '.')}@harbour.example>\r\n" \
           f"Content-Type: text/plain; charset=utf-8\r\n\r\nText of {name}.\r\n" + "It is quiet at the quay today.\r\n" * 40


def begin(stage):
    """A mailbox whose backfill, oldest first, takes minutes; what will be opened is what it comes to last, and older than the reader's window."""
    process = stage.start([stage.cloud_program, "--listen", "127.0.0.1:0", "--verbose", "--seed", "5", "--mailbox", f"{USER}={BACKFILL},size=2000",
                           "--token", f"tok={USER}", "--mailbox", f"{STORED}=0", "--token", f"tok-ben={STORED}"], "cloud")
    until(lambda: stage.read("cloud.out").startswith("ready ") or process.poll() is not None, "the cloud serves", 120)
    stage.origin = stage.read("cloud.out").split()[1]
    stage.ask_cloud("/_cloud/quota", {"user_units_per_minute": UNITS})
    now = int(time.time() * 1000)
    stage.label = label_make(stage, "Quay")  # nothing else has it
    for number in range(2 * OPENS + 10):
        stage.deliver(letter(USER, f"old {number}"), date_ms=now - 40 * DAY_MS + number * 60000, labels=(stage.label,))
    for number in range(OPENS + 10):
        stage.deliver(letter(STORED, f"new {number}"), STORED, date_ms=now - DAY_MS - number * 60000, labels=("INBOX",))
    stage.start_serve()
    for user, token in ((USER, "tok"), (STORED, "tok-ben")):
        stage.run("account", "add", "gmail", user, "--endpoint", stage.origin, "--bearer", token)
    return stage.json("token", "add", "bench", "--scope", "work")["key"]


def enter(page, stage, key):
    page.driver.get(stage.page)
    page.script("localStorage.setItem('tidemark.key', arguments[0])", key)
    page.driver.get(stage.page)
    until(lambda: page.text("#live") == "live", "the page is live")
    page.driver.set_script_timeout(60)


def listed(page, route, many):
    """Shows a list, and reads on until so many rows are known."""
    page.go(route)

    def known():
        page.script("const list = document.querySelector('.vlist'); if (list) { list.focus(); list.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true })) }")
        return page.count(".vlist:not([hidden])") and page.total() >= many
    until(known, f"{many} rows of {route}", 300)
    page.script("document.querySelector('.vlist').dispatchEvent(new KeyboardEvent('keydown', { key: 'Home', bubbles: true }))")
    page.loaded()


def one(page, act, row=0):
    told = page.driver.execute_async_script(ONE.replace("PRESSED_MS", str(PRESSED_MS)), act, row)
    assert "error" not in told, told
    return told


def measure_opens(stage, page, how):
    """Sixty a minute at most: they are in the reserve of the quota."""
    opened = []
    while len(opened) < OPENS:
        begun = time.monotonic()
        opened.append(one(page, "j" if page.count(".talk-subject") else "Enter"))
        time.sleep(max(0, begun + 1 - time.monotonic()))  # the pace of the measurement, nothing waits for it
    calls = {}
    for id, took, at in LINE.findall(stage.read("cloud.log")):
        calls[id] = (float(at) * 1000, float(took))
    told = [(one_["at_ms"], one_["took_ms"], *calls[one_["id"]]) for one_ in opened if one_["id"] in calls]
    assert len(told) >= 0.9 * OPENS, f"{len(told)} of {OPENS} were fetched by their own call"
    say(f"open_call_{how}", [max(0, call - at) for at, _, call, _ in told])
    say(f"open_body_{how}", [max(0, shown - took) for _, shown, _, took in told])
    print(json.dumps({"name": f"reader_page_machine_late_{how}", "value": round(max(one_["late_ms"] for one_ in opened), 3), "unit": "ms"}), flush=True)


def units(stage):
    return stage.ask_cloud("/_cloud/stats")["users"][USER]["units"]


def measure_open(stage, page):
    listed(page, f"/reader/{USER}/{stage.label}", 2 * OPENS + 10)
    measure_opens(stage, page, "idle")
    sync = subprocess.Popen([stage.tidemark, "--home", stage.home, "mail", "sync", USER, "--quiet"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=stage.env)
    try:
        before = units(stage)
        until(lambda: units(stage) - before > UNITS // 2, "the backfill runs", 300)
        before, begun = units(stage), time.monotonic()
        measure_opens(stage, page, "backfill")
        used = (units(stage) - before) / (time.monotonic() - begun) * 60 / UNITS
        print(json.dumps({"name": "reader_page_quota_used", "value": round(100 * used, 1), "unit": "%"}), flush=True)
        assert sync.poll() is None, "the backfill ended before the measurement"
    finally:
        sync.terminate()
        sync.wait()


def paced(page, act, row=0):
    """Ten a second: Chromium ignores new addresses of a page that sets more than two hundred in ten seconds."""
    begun = time.monotonic()
    told = one(page, act, row)
    time.sleep(max(0, begun + 0.1 - time.monotonic()))  # the pace of the measurement, nothing waits for it
    return told


def measure_stored(stage, page):
    stage.run("mail", "sync", STORED, "--quiet")
    listed(page, f"/reader/{STORED}/INBOX", OPENS + 10)
    paced(page, "Enter")
    say_stored("stored_next", [paced(page, "j") for _ in range(OPENS)])
    page.script("document.querySelector('.vlist').focus()")
    page.keys(Keys.HOME)
    until(lambda: page.count('.mrow[aria-rowindex="2"]:not([hidden])'), "the first rows")
    say_stored("stored_click", [paced(page, "click", 1 + 3 * (number % 5) + number // 5 % 3) for number in range(OPENS)])


def say_stored(name, opened):
    say(name, [one_["took_ms"] for one_ in opened])
    print(json.dumps({"name": f"reader_page_machine_late_{name}", "value": round(max(one_["late_ms"] for one_ in opened), 3), "unit": "ms"}), flush=True)


def main():
    parts = sys.argv[3:] or ["stored", "open"]
    stage = Stage(sys.argv[1], sys.argv[2])
    page = None
    try:
        key = begin(stage)
        page = Reading(stage)
        enter(page, stage, key)
        for part in parts:
            {"stored": measure_stored, "open": measure_open}[part](stage, page)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    main()
