"""A cloud and a `tidemark serve` for tests in Python.

Nothing here waits for a fixed time: `until` asks again until something holds, and says what did not."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

USER = "ada@example.com"
CLOCK = 1794700000000  # of the cloud: generated mail is dated back from it


class Failed(Exception):
    pass


def until(holds, what, seconds=60, gone=()):
    """Returns what `holds` returned once it was true; exceptions of `gone` count as not yet."""
    end = time.monotonic() + seconds
    error = None
    while True:
        try:
            value = holds()
            if value:
                return value
        except gone as one:
            error = one
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}" + (f" ({type(error).__name__})" if error else ""))
        time.sleep(0.05)


class Stage:
    def __init__(self, tidemark, cloud, **settings):
        """`settings` are variables of the environment of every tidemark."""
        self.tidemark = os.path.realpath(tidemark)
        self.cloud_program = os.path.realpath(cloud)
        self.dir = tempfile.mkdtemp(prefix="tidemark-stage-")
        self.home = os.path.join(self.dir, "home")
        self.env = {name: value for name, value in os.environ.items()
                    if name not in ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")}
        self.env.update(TZ="UTC", **settings)
        self.processes = []
        self.serve_process = None
        self.page = None

    # ---- processes

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def start(self, arguments, name, env=None):
        with open(self.path(name + ".out"), "wb") as out, open(self.path(name + ".log"), "wb") as log:
            process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=env or self.env)
        self.processes = [one for one in self.processes if one.poll() is None] + [process]
        return process

    def read(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def start_cloud(self, *options):
        process = self.start([self.cloud_program, "--listen", "127.0.0.1:0", "--quiet", "--clock", str(CLOCK),
                              "--quota", "off", *options], "cloud")
        until(lambda: self.read("cloud.out").startswith("ready ") or process.poll() is not None, "the cloud serves")
        self.origin = self.read("cloud.out").split()[1]

    def start_serve(self, *arguments, env=None):
        """On the port it had before, so that a page finds it again.  False: it ended before it served."""
        port = re.search(r":(\d+)/$", self.page).group(1) if self.page else "0"
        self.serve_process = self.start([self.tidemark, "--home", self.home, "serve", "--listen", "127.0.0.1:" + port, *arguments],
                                        "serve", env)
        found = until(lambda: re.search(r"serving address=(\S+)", self.read("serve.log")) or
                      self.serve_process.poll() is not None, "it serves")
        if found is True:
            return False
        self.page = found.group(1)
        return True

    def kill_serve(self):
        """Whether it ran until then."""
        self.serve_process.send_signal(signal.SIGKILL)
        return self.serve_process.wait() == -signal.SIGKILL

    def stop_serve(self, *codes):
        self.serve_process.send_signal(signal.SIGTERM)
        ended = self.serve_process.wait(60)
        if ended not in (codes or (0,)):
            raise Failed(f"serve ended with {ended}: {self.read('serve.log')}")

    def command(self, *arguments, text=None):
        return subprocess.run([self.tidemark, "--home", self.home, *arguments], capture_output=True, env=self.env,
                              input=text, text=True, timeout=120, check=False)

    def run(self, *arguments, code=0, text=None):
        done = self.command(*arguments, text=text)
        if done.returncode != code:
            raise Failed(f"tidemark {' '.join(arguments)} ended with {done.returncode}: {done.stdout} {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    # ---- HTTP

    def ask_cloud(self, path, body=None, method=None, kind="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.origin + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def deliver(self, message, user=USER):
        return self.ask_cloud(f"/_cloud/mail?user={user}", message.encode(), kind="message/rfc822")["id"]

    def ask_page(self, path, key=None, body=None, scheme="Bearer", **headers):
        """The status of an answer of the page, and its object; OSError: there is no page."""
        request = urllib.request.Request(self.page.rstrip("/") + path, data=None if body is None else json.dumps(body).encode())
        if key is not None:
            request.add_header("Authorization", f"{scheme} {key}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"null")

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
