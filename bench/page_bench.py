"""page_bench.py TIDEMARK CLOUD: the budgets of the page that need a browser, one object a line.

Size of all files as they travel; first paint with an empty cache; from a key to the paint that shows it, in a list of 100
jobs while states arrive; the heap after as many states as come in an hour, with all views visited."""
import http.client
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "browser"))
from stage import Page, Stage, USER, until
from walls import Between

LOADS = 20
KEYS = 100
STATES = 3600
SPEED = 90  # of the hour
VIEWS = ("/", "/mail", f"/mail/{USER}", "/jobs", "/bad", "/alerts", "/schedules", "/settings", "/log", "/search?q=invoice")


def say(name, value, unit):
    print(json.dumps({"name": "serve_page_" + name, "value": round(value, 3), "unit": unit}), flush=True)


def p95(values):
    return sorted(values)[int(0.95 * (len(values) - 1))]


class Hour(Between):
    """Its stream brings a state every second of a clock that is SPEED times as fast as ours."""

    def __init__(self, port, key):
        super().__init__(port, {})
        self.sent = 0
        ask = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        ask.request("GET", "/api/v1/state", headers={"Host": f"127.0.0.1:{port}", "Authorization": "Bearer " + key})
        self.state = json.loads(ask.getresponse().read())

    def stream(self, answer, out):
        for account in self.state["accounts"]:
            account["now"] = "running"
        end = time.monotonic()
        while self.sent < STATES:
            end += 1 / SPEED
            time.sleep(max(0, end - time.monotonic()))
            self.sent += 1
            for account in self.state["accounts"]:
                account.update(stored=account["stored"] + 37, left=STATES - self.sent, quota_used_units=(self.sent * 997) % 6000)
            out.write(b"event: state\ndata: " + json.dumps(self.state).encode() + b"\n\n")
            out.flush()
        while not out.closed:
            out.write(b": nothing new\n\n")
            out.flush()
            time.sleep(1)


def enter(page, address, key):
    page.driver.get(address)
    page.script("localStorage.setItem('tidemark.key', arguments[0])", key)
    page.driver.get(address)
    until(lambda: page.text("#live") == "live", "the page is live")


def measure_loads(stage, page):
    paints = []
    for _ in range(LOADS):
        page.driver.get("about:blank")
        page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        page.driver.get(stage.page)
        paints.append(until(lambda: page.script("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"), "a paint"))
    packed = page.script("""return [...performance.getEntriesByType('resource').filter((one) => one.name.includes('/app/')), ...performance.getEntriesByType('navigation')]
        .reduce((sum, one) => sum + one.encodedBodySize, 0)""")
    say("gzip", packed / 1000, "kB")
    say("first_paint_p95", p95(paints), "ms")


def measure_keys(page):
    page.go("/jobs", "Jobs")
    until(lambda: page.count(".jobs > .row") == 100, "a hundred jobs")
    page.script("""window.painted = []
        document.addEventListener('keydown', (event) => requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel()
          port1.onmessage = () => window.painted.push(performance.now() - event.timeStamp)
          port2.postMessage(0)
        }), true)""")
    for i in range(KEYS):
        page.keys("j")
        until(lambda: page.script("return window.painted.length") > i, "it is painted")
    say("key_to_paint_p95", p95(page.script("return window.painted")), "ms")


def measure_heap(stage, page, key):
    hour = Hour(stage.port(), key)
    page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
        "source": f"const began = Date.now(); Date.now = () => began + Math.round(performance.now() * {SPEED})"})
    enter(page, hour.address, key)
    i = 0
    while hour.sent < STATES:
        i += 1
        page.go(VIEWS[i % len(VIEWS)])
        until(lambda: page.count(".grey") == 0 and page.text("main").strip(), "it is shown")
    page.go("/", "Home")
    page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    page.driver.execute_cdp_cmd("Performance.enable", {})
    found = {one["name"]: one["value"] for one in page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]}
    say("heap_hour", found["JSHeapUsedSize"] / 1e6, "MB")
    say("nodes_hour", found["Nodes"], "nodes")
    hour.shutdown()


def main():
    stage = Stage(sys.argv[1], sys.argv[2])
    page = None
    try:
        stage.start_cloud("--seed", "5", "--mailbox", f"{USER}=4000", "--token", f"tok={USER}")
        stage.start_serve()
        stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
        stage.run("mail", "sync", "--quiet")
        key = stage.json("token", "add", "bench", "--scope", "work")["key"]
        page = Page(stage)
        enter(page, stage.page, key)
        measure_loads(stage, page)
        measure_keys(page)
        measure_heap(stage, page, key)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    main()
