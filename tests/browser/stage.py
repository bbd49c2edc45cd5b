"""A cloud, a `tidemark serve` and a browser for the stories of the page.

Nothing here waits for a fixed time: `until` asks again until something holds, and says what did not."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

USER = "ada@example.com"
PATIENCE_S = 180  # a machine that does other things is slow; what is wrong only fails later
CLOCK = 1794700000000  # of the cloud: generated mail is dated back from it


class Failed(Exception):
    pass


def until(holds, what, seconds=PATIENCE_S):
    """Returns what `holds` returned once it was true."""
    end = time.monotonic() + seconds
    error = None
    while True:
        try:
            value = holds()
            if value:
                return value
        except (NoSuchElementException, StaleElementReferenceException) as gone:
            error = gone
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}" + (f" ({type(error).__name__})" if error else ""))
        time.sleep(0.05)


class Stage:
    def __init__(self, tidemark, cloud):
        self.tidemark = os.path.realpath(tidemark)
        self.cloud_program = os.path.realpath(cloud)
        self.dir = tempfile.mkdtemp(prefix="tidemark-page-")
        self.home = os.path.join(self.dir, "home")
        self.env = {name: value for name, value in os.environ.items()
                    if name not in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")}
        self.env.update(TZ="UTC", TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS="60000", TIDEMARK_RETRY_ATTEMPTS_MAX="2")
        self.processes = []
        self.serve_process = None
        self.page = None

    # ---- processes

    def start(self, arguments, name):
        out = open(os.path.join(self.dir, name + ".out"), "wb")
        log = open(os.path.join(self.dir, name + ".log"), "wb")
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=self.env)
        self.processes.append(process)
        return process

    def read(self, name):
        with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def start_cloud(self, *options, clock=CLOCK):
        process = self.start([self.cloud_program, "--listen", "127.0.0.1:0", "--quiet", "--clock", str(clock),
                              "--quota", "off", *options], "cloud")
        until(lambda: self.read("cloud.out").startswith("ready ") or process.poll() is not None, "the cloud serves")
        self.origin = self.read("cloud.out").split()[1]

    def start_serve(self):
        """On the port it had before, so that the page finds it again.  Those below 32768 are given to no other program that
        asks for a free one."""
        for _ in range(1 if self.page else 100):
            port = self.port() if self.page else random.randrange(20000, 32000)
            self.serve_process = self.start([self.tidemark, "--home", self.home, "serve", "--listen", f"127.0.0.1:{port}"], "serve")
            found = until(lambda: re.search(r"serving address=(\S+)", self.read("serve.log")) or
                          self.serve_process.poll() is not None, "it serves")
            if found is not True:
                self.page = found.group(1)
                return
            if "is taken" not in self.read("serve.log"):
                break
        raise Failed("serve ended: " + self.read("serve.log"))

    def port(self):
        return int(re.search(r":(\d+)/$", self.page).group(1))

    def kill_serve(self):
        self.serve_process.send_signal(signal.SIGKILL)
        self.serve_process.wait()

    def run(self, *arguments, code=0, text=None):
        done = subprocess.run([self.tidemark, "--home", self.home, *arguments], capture_output=True, env=self.env,
                              input=text, text=True, timeout=120)
        if done.returncode != code:
            raise Failed(f"tidemark {' '.join(arguments)} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def ask_cloud(self, path, body=None, method=None, kind="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def deliver(self, message, user=USER, date_ms=None, labels=()):
        """Arrives now, in the inbox and unread, unless something else is said."""
        more = (f"&date={date_ms}" if date_ms else "") + "".join(f"&labels={label}" for label in labels)
        return self.ask_cloud(f"/_cloud/mail?user={user}{more}", message.encode(), kind="message/rfc822")["id"]

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


# Keeps what the page tells from now on: its lines go away by themselves, while a busy machine still looks for them.
LISTEN = """if (!window.testTold)
  for (const place of ['told', 'say'].map((id) => document.getElementById(id)).filter(Boolean))
    new MutationObserver(() => { window.testTold.push([place.id, place.innerText]) }).observe(place, { childList: true, subtree: true, characterData: true })
window.testTold = []"""


class Page:
    """One browser with one window."""

    def __init__(self, stage, width=1280, height=860, name="browser", flags=(), logs=("browser",)):
        """`name`: of its profile, which no other has.  `flags`: more of Chromium's.  `logs`: what it keeps."""
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-device-scale-factor=1",
                     "--user-data-dir=" + os.path.join(stage.dir, name), *flags):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {log: "ALL" for log in logs})
        self.stage = stage
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(PATIENCE_S)
        self.size(width, height)

    def end(self):
        self.driver.quit()

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def theme(self, name):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def open(self, route=""):
        self.driver.get(self.stage.page + ("#" + route if route else ""))

    def go(self, route, heading=None):
        self.script("location.hash = arguments[0]", "#" + route)
        if heading:
            until(lambda: heading in self.text("h1"), f"{route} shows {heading}")

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector):
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector="body"):
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def told(self, selector):
        """What was told at this place since the last key or click, if that is kept of it."""
        return self.script("return (window.testTold ?? []).filter(([id]) => '#' + id === arguments[0]).map(([, words]) => words).join('\\n')", selector)

    def sees(self, words, selector="body", seconds=PATIENCE_S):
        try:
            until(lambda: words in self.text(selector) or words in self.told(selector), f'"{words}" in {selector}', seconds)
        except Failed as failed:
            raise Failed(f"{failed}; it shows: {self.text(selector)[:1500]}") from None

    def lacks(self, words, selector="body", seconds=PATIENCE_S):
        until(lambda: words not in self.text(selector), f'no "{words}" in {selector}', seconds)

    def click(self, words, selector="button"):
        """The control that begins with these words."""
        self.script(LISTEN)

        def press():
            for element in self.driver.find_elements(By.CSS_SELECTOR, selector):
                if (element.text.startswith(words) or (element.get_attribute("aria-label") or "").startswith(words)) and element.is_enabled():
                    element.click()
                    return True
            return False
        until(press, f"a {selector} {words}")

    def keys(self, *keys):
        """As typed: to whatever has the focus."""
        self.script(LISTEN)
        ActionChains(self.driver).send_keys(*keys).perform()

    def chord(self, held, key):
        self.script(LISTEN)
        ActionChains(self.driver).key_down(held).send_keys(key).key_up(held).perform()

    def complaints(self):
        """What the browser itself complained about, but for a server that was away."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and not re.search(r"ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|"
                                                                r"/v/[0-9a-f]+/img/|status of (401|403|404|409|429|503)|network error", entry["message"])]


def run_stories(stories, stage, given, page=None, begin=1):
    """Runs them in order; each builds on those before it.  `given`: what each gets; `page`: what is shown when one fails.
    PAGE_STORIES=REGEX: those whose names match, for who works on one of them, and the first `begin`, which they need."""
    page = page or given
    only = os.environ.get("PAGE_STORIES")
    for i, story in enumerate(stories):
        if only and i >= begin and not re.search(only, story.__name__):
            continue
        began = time.monotonic()
        try:
            story(stage, given)
        except Exception as failed:  # whatever it is, what was shown tells more
            lines = [frame.lineno for frame in traceback.extract_tb(failed.__traceback__) if frame.name == story.__name__]
            print(f"FAILED: {story.__name__}, line {lines[-1:]}: {failed}", file=sys.stderr)
            print(f"the page: {page.text()[:2000]}\nserve: {stage.read('serve.log')[-2000:]}", file=sys.stderr)
            print(f"the browser: {page.complaints()}", file=sys.stderr)
            where = os.environ.get("PAGE_SHOT")
            if where:
                page.driver.save_screenshot(where)
            return 1
        print(f"ok: {story.__name__.replace('_', ' ')} ({time.monotonic() - began:.1f} s)", flush=True)
    return 0
