"""hostile_test.py TIDEMARK CLOUD FIXTURES: what other people send or put on their pages does nothing in a real browser (M9).

Hostile mails are read on the page, as it is and with the HTML unwashed; pages of another port and another host attack the
API.  The browser's proxy is a sink that counts every connection, and Chromium's own log every request and navigation."""
import collections
import contextlib
import http.server
import json
import sqlite3
import sys
import threading

import hostile
from reader_page import address_of
from stage import Failed, Page, Stage, USER, run_stories, until
from walls import Between, Sink

HOST = "evil.example"
REBOUND = "rebound.example"
MAILS_MIN = 300
AT_ONCE = 25
# Hosts that the browser asks by itself; nothing here names them, and they resolve to nothing.
CHROMIUMS = ("google.com", "googleapis.com", "gstatic.com", "duckduckgo.com")

# A script that runs calls one of these, or asks the sink for something.
TRAP = """for (const name of ['alert', 'confirm', 'prompt', 'print'])
  window[name] = () => { try { top.scriptsRan = (top.scriptsRan ?? 0) + 1 } catch { console.log('a script ran') } }"""

# Opens each mail on the page, waits until its frame has loaded and was painted, touches all in it, and looks.
READ = """
const [mails, account, where, done] = arguments
const [route, title, inside] = {
  message: [(id) => `#/message/${account}/${id}`, 'article h2', 'article'],
  reader: [(id) => `#/reader/${account}/ALL?m=${encodeURIComponent(account + '/' + id)}`, '.talk-subject', '.turn.open'],
}[where]
const turn = () => new Promise((go) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => go(); port2.postMessage(0) })
const painted = () => new Promise((go) => requestAnimationFrame(() => void turn().then(go)))
const loads = new WeakMap()
document.addEventListener('load', (event) => loads.set(event.target, (loads.get(event.target) ?? 0) + 1), true)
const shown = async ([id, subject]) => {
  location.replace(route(id))
  for (const end = performance.now() + 30000; performance.now() < end; await new Promise((go) => setTimeout(go, 3))) {
    if (document.querySelector(title)?.textContent !== subject) continue
    const frame = document.querySelector(inside + ' iframe')
    if (frame ? loads.has(frame) : document.querySelector(inside + ' pre')) return frame
  }
  throw new Error(subject + ' is not shown')
}
const touch = (inside) => {
  for (const at of inside.querySelectorAll('*')) {
    for (const name of ['mouseover', 'focus', 'pointerdown']) at.dispatchEvent(new Event(name))
    if (at.matches('a, area, button, summary, input, label') && !/^https?:/i.test(at.getAttribute('href') ?? at.getAttribute('xlink:href') ?? '')) at.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))
    if (at.localName === 'form' && at.requestSubmit) at.requestSubmit()
  }
}
const went = (frame) => { try { return frame.contentWindow.location.href !== frame.src } catch { return true } }
const readAll = async () => {
  const found = { frames: 0, navigated: [] }
  for (const mail of mails) {
    const frame = await shown(mail)
    if (!frame) continue
    found.frames++
    await painted()
    if (frame.contentDocument) touch(frame.contentDocument)
    await painted()
    if (went(frame) || loads.get(frame) > 1 || !location.hash.includes(mail[0])) found.navigated.push(mail[1])
  }
  return found
}
readAll().then(done, (error) => done({ error: String(error) }))
"""


class Counts(collections.Counter):
    """scripts, popups, navigations, connections, requests; blocked: what the browser itself refused to send."""
    NAMES = ("scripts", "popups", "navigations", "requests", "connections")

    def __str__(self):
        return ", ".join(f"{self[name]} {name}" for name in self.NAMES)

    def any(self):
        return any(self[name] for name in self.NAMES)


def entries(page):
    return [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]


def is_local(url, base):
    return url.startswith((base, "data:", "about:", "blob:", "chrome-error:"))


def count_log(log, base):
    """Requests that were sent and what was navigated, by Chromium's account."""
    counts = Counts()
    asked = {}
    for entry in log:
        method, params = entry["method"], entry.get("params", {})
        if method == "Network.requestWillBeSent" and not is_local(params["request"]["url"], base):
            asked[params["requestId"]] = params.get("type")
        elif method == "Network.loadingFailed" and params.get("blockedReason") and asked.pop(params["requestId"], None):  # by a policy
            counts["blocked"] += 1
        elif method == "Page.frameNavigated" and not is_local(params["frame"]["url"], base):
            counts["navigations"] += 1
        elif method in ("Page.windowOpen", "Page.javascriptDialogOpening"):
            counts["popups"] += 1
    counts["requests"] = len(asked)
    counts["navigations"] += list(asked.values()).count("Document")
    return counts


class Reading:
    """A browser whose every way out but `base` leads into the sink."""

    def __init__(self, stage, sink, address, name, more=""):
        self.base = address
        self.sink = sink
        self.navigated = []
        own = [f"*.{host}" for host in CHROMIUMS]
        hosts = ";".join(["<-loopback>", address.split("/")[2], *own, *([more] if more else [])])
        rules = ",".join([f"MAP {REBOUND} 127.0.0.1", *(f"MAP {host} ~NOTFOUND" for host in own)])
        self.page = Page(stage, 480, 320, name=name, logs=("browser", "performance"), flags=[
            f"--proxy-server=http://127.0.0.1:{sink.port}", f"--proxy-bypass-list={hosts}", f"--host-resolver-rules={rules}",
            # Its own walls against pages that ask this machine would hide ours.
            "--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessRespectPreflightResults,BlockInsecurePrivateNetworkRequests,"
            "OptimizationHints,MediaRouter,Translate"])
        self.page.driver.set_script_timeout(300)
        self.page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": TRAP})

    def enter(self, key):
        self.page.driver.get(self.base)
        self.page.script("localStorage.setItem('tidemark.key', arguments[0])", key)
        self.page.driver.get(self.base)
        until(lambda: self.page.text("#live") == "live", "the page is live")
        entries(self.page)

    def read(self, mails, where="message"):
        """Counts what they did; `frames`: how many of them have HTML.  `where`: the view that shows them."""
        before = self.sink.counts()
        self.page.script("delete window.scriptsRan")
        counts = Counts()
        for i in range(0, len(mails), AT_ONCE):
            found = self.page.driver.execute_async_script(READ, mails[i:i + AT_ONCE], USER, where)
            if "error" in found:
                raise Failed(found["error"])
            counts["frames"] += found["frames"]
            counts["navigations"] += len(found["navigated"])
            self.navigated += found["navigated"]
            counts.update(count_log(entries(self.page), self.base))
        after = self.sink.counts()
        counts["connections"] = after[0] - before[0]
        counts["requests"] = max(counts["requests"], after[1] - before[1])
        counts["scripts"] = self.page.script("return window.scriptsRan ?? 0") + sum(
            "a script ran" in entry["message"] for entry in self.page.driver.get_log("browser"))
        counts["popups"] += self.popups()
        return counts

    def popups(self):
        return len(self.page.driver.window_handles) - 1

    def end(self):
        self.page.end()


class Mails:
    """Hostile mails in the archive, by number."""

    def __init__(self, stage, fixtures):
        # Of those that run or fetch something two in three: each takes the browser a moment, and the washer's tests see all.
        active = [html for html in hostile.fixtures(fixtures) if b"alert(" in html or b"evil" in html]
        self.inputs = [html for i, html in enumerate(active) if i % 3 < 2] + hostile.made(HOST)
        assert not any(host.encode() in html.lower() for html in self.inputs for host in CHROMIUMS)
        for number, html in enumerate(self.inputs):
            stage.deliver(hostile.mail(number, html, USER))
        stage.run("mail", "sync", "--quiet")
        self.by_subject = {hostile.subject(number): html for number, html in enumerate(self.inputs)}
        self.list = []
        found = stage.json("mail", "search", "from:mallory", "--account", USER, "--limit", "1000")
        for message in found["messages"]:
            self.list.append([message["id"], message["subject"]])
        assert len(self.list) == len(self.inputs) >= MAILS_MIN, (len(self.list), len(self.inputs))

    def only(self, words):
        return [mail for mail in self.list if any(word in self.by_subject[mail[1]] for word in words)]


# ---- stories

MAILS = None
SINK = None
KEY = ""


def hostile_mails_do_nothing(stage, reading):
    counts = reading.read(MAILS.list)
    print(f"{len(MAILS.list)} hostile mails, washed: {counts}, {counts['blocked']} blocked", flush=True)
    assert not counts.any() and counts["blocked"] == 0, (SINK.asked, [MAILS.by_subject[subject] for subject in reading.navigated])
    assert counts["frames"] >= MAILS_MIN


def unwashed_they_do_nothing_either(stage, reading):
    between = Between(stage.port(), MAILS.by_subject)
    second = Reading(stage, SINK, between.address, "unwashed")
    try:
        second.enter(KEY)
        counts = second.read(MAILS.list)
        print(f"{len(MAILS.list)} hostile mails, unwashed: {counts}, {counts['blocked']} blocked", flush=True)
        # A policy does not keep a browser from connecting ahead, without a request; the wash does.
        counts["connections"] = 0
        assert not counts.any(), (SINK.asked, [MAILS.by_subject[subject] for subject in second.navigated])
        assert between.shown >= MAILS_MIN and counts["blocked"] > 0
    finally:
        second.end()
        between.shutdown()


def in_the_reader_they_do_nothing(stage, reading):
    """The reader marks them as read, shows their conversations and measures their frames (K14); unwashed every third of them."""
    counts = reading.read(MAILS.list, "reader")
    print(f"{len(MAILS.list)} hostile mails in the reader, washed: {counts}, {counts['blocked']} blocked", flush=True)
    assert not counts.any() and counts["blocked"] == 0, (SINK.asked, [MAILS.by_subject[subject] for subject in reading.navigated])
    assert counts["frames"] >= MAILS_MIN
    between = Between(stage.port(), MAILS.by_subject)
    second = Reading(stage, SINK, between.address, "unwashed in the reader")
    try:
        second.enter(KEY)
        counts = second.read(MAILS.list[::3], "reader")
        print(f"{len(MAILS.list[::3])} hostile mails in the reader, unwashed: {counts}, {counts['blocked']} blocked", flush=True)
        counts["connections"] = 0
        assert not counts.any(), (SINK.asked, [MAILS.by_subject[subject] for subject in second.navigated])
        assert between.shown >= MAILS_MIN // 3 and counts["blocked"] > 0
    finally:
        second.end()
        between.shutdown()


def without_walls_the_counters_see_them(stage, reading):
    between = Between(stage.port(), MAILS.by_subject, walls=False)
    second = Reading(stage, SINK, between.address, "bare")
    try:
        second.enter(KEY)
        # Those that only one kind of counter sees.
        for words, name in (((b"<script>alert(1);",), "scripts"), ((b'<img src="http://evil',), "requests"), ((b"http-equiv=refresh content=\"0;url=http://",), "navigations")):
            counts = second.read(MAILS.only(words)[:2])
            print(f"without walls, {words[0].decode()}: {counts}", flush=True)
            assert counts[name] > 0 and counts["connections"] > 0, (words, counts)
        second.page.script("window.open('about:blank')")
        assert second.popups() > 0
    finally:
        second.end()
        between.shutdown()


ATTACK = """<!doctype html><title>attack</title><body><script>
const target = %(target)s, frame = target + %(frame)s, key = %(key)s, halt = target + 'api/v1/accounts/%(user)s/halt', state = target + 'api/v1/state'
const body = JSON.stringify({ reason: 'attack' })
const made = (name, attributes) => new Promise((done) => {
  const at = document.createElement(name)
  at.onload = () => done('loaded')
  at.onerror = () => done('refused')
  Object.assign(at, attributes)
  document.body.append(at)
})
const asked = (url, options) => fetch(url, options).then(async (answer) => (answer.type === 'opaque' ? 'opaque' : 'read ' + (await answer.text()).slice(0, 80)), () => 'refused')
const posted = (url, enctype) => new Promise((done) => {
  const at = document.createElement('iframe')
  at.name = 'f' + Math.random()
  document.body.append(at)
  const form = document.createElement('form')
  Object.assign(form, { action: url, method: 'post', enctype, target: at.name })
  const field = document.createElement('input')
  Object.assign(field, { name: '{"reason":"attack","x":"', value: '"}' })
  form.append(field)
  document.body.append(form)
  at.onload = () => { if (form.sent) done('sent') }
  form.sent = true
  form.submit()
})
const streamed = () => new Promise((done) => { const from = new EventSource(target + 'api/v1/stream?topics=state'); from.onmessage = from.onopen = () => done('read'); from.onerror = () => { from.close(); done('refused') } })
const socket = () => new Promise((done) => { const to = new WebSocket(target.replace('http', 'ws') + 'api/v1/stream'); to.onopen = () => done('open'); to.onerror = () => done('refused') })
const bearer = { Authorization: 'Bearer ' + key }
const json = { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID?.() ?? 'attack-0123456789abcdef' }
async function attack() {
  const result = {}
  const tries = {
    'image of the state': () => made('img', { src: state }), 'image of a message': () => made('img', { src: frame + 'cid/0' }),
    'icon of the page': () => made('img', { src: target + %(icon)s }), 'script of the page': () => made('script', { src: target + %(script)s }),
    'state as a script': () => made('script', { src: state }), 'message as a script': () => made('script', { src: frame + 'html' }),
    'message as a style': () => made('link', { rel: 'stylesheet', href: frame + 'html' }), 'message as an object': () => made('embed', { src: frame + 'html' }).then(() => 'refused'),
    'fetch the state': () => asked(state), 'fetch the state with a key': () => asked(state, { headers: bearer }), 'fetch a message': () => asked(frame + 'html'),
    'fetch the page': () => asked(target), 'fetch blindly': () => asked(state, { mode: 'no-cors' }), 'post blindly': () => asked(halt, { mode: 'no-cors', method: 'POST', body }),
    'post JSON': () => asked(halt, { method: 'POST', body, headers: json }), 'post JSON with a key': () => asked(halt, { method: 'POST', body, headers: { ...json, ...bearer } }),
    'ask to be let in': () => asked(target + 'api/v1/pairings', { method: 'POST', body: '{}', headers: json }),
    'ask blindly to be let in': () => asked(target + 'api/v1/pairings', { mode: 'no-cors', method: 'POST', body: '{}' }),
    'form': () => posted(halt, 'application/x-www-form-urlencoded'), 'form of text': () => posted(halt, 'text/plain'), 'form of parts': () => posted(halt, 'multipart/form-data'),
    'beacon': async () => (navigator.sendBeacon(halt, new Blob([body], { type: 'text/plain' })) ? 'sent' : 'refused'), 'stream': streamed, 'socket': socket,
    'frame of the page': () => made('iframe', { src: target, id: 'page' }), 'frame of a message': () => made('iframe', { src: frame + 'html', id: 'message' }),
  }
  for (const [name, one] of Object.entries(tries)) result[name] = await one()
  return result
}
const opened = async () => { // a page that opened ours does not hold it
  const other = open(target)
  for (let i = 0; i < 2000 && !other.closed; i++) await new Promise((go) => setTimeout(go, 5))
  return other.closed
}
</script>"""

# What the one who tries sees of an answer it cannot read.
SEEN = {"refused", "opaque", "sent"}


def facts(stage):
    """What a person can change: not what the reader does by itself, as looking for new mail."""
    status = stage.json("status")
    with contextlib.closing(sqlite3.connect(f"file:{stage.home}/state.db?mode=ro", uri=True)) as ledger:
        made = ledger.execute("SELECT (SELECT count(*) FROM job WHERE kind NOT IN (SELECT rowid FROM kind WHERE name LIKE 'reader.%')), (SELECT count(*) FROM reader_action)").fetchone()
    return [(one["account"], one["now"]) for one in status["accounts"]], made


def pages_of_others_read_and_change_nothing(stage, reading):
    between = Between(stage.port(), {})
    page = reading.page
    view = reading.page.driver.execute_async_script("""
        const [account, id, key, done] = arguments
        fetch(`api/v1/mail/${account}/messages/${id}`, { headers: { Authorization: 'Bearer ' + key } }).then((answer) => answer.json()).then((one) => done(one.view.path))""",
        USER, MAILS.list[0][0], KEY)
    files = page.script("return ['script', 'link[rel=icon]'].map((name) => { const at = document.querySelector(name); return at.getAttribute('src') ?? at.getAttribute('href') })")
    text = (ATTACK % {"target": json.dumps(between.address), "frame": json.dumps(view[1:]), "key": json.dumps(KEY), "user": USER,
                      "script": json.dumps(files[0]), "icon": json.dumps(files[1])}).encode()
    SINK.sites[(HOST, "/attack")] = ("text/html", text)
    other = Neighbour(text)
    before = facts(stage)
    third = Reading(stage, SINK, between.address, "foreign", f"127.0.0.1:{other.server_address[1]};{REBOUND};localhost")
    try:
        for origin, site in ((f"http://127.0.0.1:{other.server_address[1]}", "same-site"), (f"http://{HOST}", "cross-site")):
            attacked_from(third, between, origin, site)
        assert facts(stage) == before, (facts(stage), before)
        rebound(third, between)
        assert facts(stage) == before
        # The same request is good where it belongs: what refused the others was where they came from.
        third.enter(KEY)
        code = post_halt(third.page)
        assert code == 200 and facts(stage) != before, code
        stage.run("account", "resume", USER)
    finally:
        third.end()
        between.shutdown()
        other.shutdown()


def attacked_from(third, between, origin, site):
    del between.foreign[:]
    third.page.driver.get(origin + "/attack")
    result = third.page.driver.execute_async_script("const done = arguments[0]; attack().then(done, (error) => done({ error: String(error) }))")
    framed = {name: frame_text(third.page, name) for name in ("page", "message")}
    result = {name: seen for name, seen in result.items() if not name.startswith("frame of")}
    wrong = {name: seen for name, seen in result.items() if seen not in SEEN}
    assert not wrong, (origin, wrong)
    assert not any(framed.values()), (origin, framed)
    until(lambda: ("POST", f"/api/v1/accounts/{USER}/halt", site) in [one[:3] for one in between.foreign], "the requests arrive")
    answered = [one for one in between.foreign if one[3] < 400 and one[1] != "/"]
    assert not answered, (origin, answered)
    arrived = [one for one in between.foreign if one[2] == site and one[1] != "/"]
    print(f"from {site}: {len(result)} attacks, {len(arrived)} requests arrived, {len(answered)} were answered", flush=True)
    assert len(arrived) >= 12, arrived
    assert third.page.driver.execute_async_script("opened().then(arguments[0])"), f"{origin} holds the page it opened"
    for handle in third.page.driver.window_handles[1:]:
        third.page.driver.switch_to.window(handle)
        third.page.driver.close()
    third.page.driver.switch_to.window(third.page.driver.window_handles[0])


def frame_text(page, name):
    """What of ours a foreign page has in a frame."""
    page.driver.switch_to.frame(page.find("#" + name))
    try:
        return page.script("return document.title === 'Tidemark' || location.href.startsWith('http') ? document.documentElement.innerText : ''")
    finally:
        page.driver.switch_to.default_content()


def rebound(third, between):
    """A name that led to its owner, who gave the browser a page, and now leads here: what that page asks for is of its own origin."""
    between.pages["/owner"] = b"<!doctype html><title>owner</title>"
    for host in (REBOUND, "localhost"):
        third.page.driver.get(f"http://{host}:{between.server_address[1]}/owner")
        codes = third.page.driver.execute_async_script("""
            const [key, done] = arguments
            const code = (path, options) => fetch(path, options).then((answer) => answer.status, String)
            Promise.all([code('/'), code('/api/v1/state', { headers: { Authorization: 'Bearer ' + key } })]).then(done)""", KEY)
        assert codes == [421, 421] and post_halt(third.page) == 421, (host, codes)


def post_halt(page):
    return page.driver.execute_async_script("""
        const [user, key, done] = arguments
        fetch(`/api/v1/accounts/${user}/halt`, { method: 'POST', body: '{"reason":"test"}', headers: { Authorization: 'Bearer ' + key, 'Content-Type': 'application/json',
          'Idempotency-Key': 'halt-0123456789abcdef0123' } }).then((answer) => done(answer.status), (error) => done(String(error)))""", USER, KEY)


class Neighbour(http.server.ThreadingHTTPServer):
    """A page of somebody else on another port of this machine."""
    daemon_threads = True

    def __init__(self, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def main():
    global MAILS, SINK, KEY
    stage = Stage(sys.argv[1], sys.argv[2])
    reading = None
    SINK = Sink()
    try:
        stage.start_cloud("--seed", "7", "--mailbox", f"{USER}=1", "--token", f"tok={USER}")
        stage.start_serve()
        stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
        KEY = stage.json("token", "add", "test", "--scope", "work")["key"]
        MAILS = Mails(stage, sys.argv[3])
        reading = Reading(stage, SINK, address_of(stage), "washed")
        reading.enter(KEY)
        return run_stories([hostile_mails_do_nothing, unwashed_they_do_nothing_either, in_the_reader_they_do_nothing, without_walls_the_counters_see_them,
                            pages_of_others_read_and_change_nothing], stage, reading, reading.page, begin=0)
    finally:
        if reading is not None:
            reading.end()
        SINK.close()
        stage.end()


if __name__ == "__main__":
    sys.exit(main())
