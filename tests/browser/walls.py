"""What stands between the programs and others: a sink, which is the browser's proxy for every address but that of the page
while hostile mail is read; a server in front of `tidemark serve`, which takes walls down; a line to the cloud that can be cut.
PAGE_WEB=DIR: what stands in front of `serve` takes the page's files from there, without a build."""
import http.client
import http.server
import json
import os
import re
import socket
import threading


class Sink:
    """Everything that leaves the browser ends here and is counted.  `sites`: pages of hosts that answer."""

    def __init__(self):
        self.sites = {}
        self.connections = 0
        self.asked = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one):
        with one, one.makefile("rb") as lines:
            try:
                line = lines.readline(8000).decode("latin-1").strip()
                if line == "":
                    return  # connected, and asked for nothing
                while lines.readline(8000).strip():
                    pass
                found = re.match(r"\w+ http://([^/:]+)(?::\d+)?(/\S*)", line)
                page = self.sites.get((found[1], found[2].split("?")[0])) if found else None
                if page is None:
                    with self.lock:
                        self.asked.append(line)
                    kind, body = "text/plain", b""
                else:
                    kind, body = page
                one.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: {len(body)}\r\n"
                            "Connection: close\r\n\r\n".encode() + body)
            except OSError:
                return

    def counts(self):
        """Connections, and requests that could be read; one to a host with TLS is a CONNECT, with whatever follows."""
        with self.lock:
            return self.connections, sum(not line.startswith("CONNECT ") for line in self.asked)

    def close(self):
        self.listener.close()


class Between(http.server.ThreadingHTTPServer):
    """Passes all on to `serve`.  `unwashed`: the HTML of a message by its subject, sent instead of the washed one with the
    headers of the washed one.  Without `walls` the frame has no sandbox and no policy.  `pages`: what it answers itself."""
    daemon_threads = True

    def __init__(self, serve, unwashed, walls=True):
        super().__init__(("127.0.0.1", 0), _Pass)
        self.serve = serve
        self.unwashed = unwashed
        self.walls = walls
        self.pages = {}
        self.frames = {}
        self.address = f"http://127.0.0.1:{self.server_address[1]}/"
        self.shown = 0
        self.foreign = []  # (method, path, Sec-Fetch-Site, status) of requests that other sites made
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stream(self, answer, out):
        while piece := answer.read1(65536):
            out.write(piece)
            out.flush()

    def handle_error(self, request, client_address):
        pass  # a browser that goes away


class _Pass(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _send(self, code, body, kind="application/json", csp=None):
        self.send_response_only(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if csp:
            self.send_header("Content-Security-Policy", csp)
        self.end_headers()
        self.wfile.write(body)

    def _pass(self):
        file = os.environ.get("PAGE_WEB") and re.fullmatch(r"/app/\w+/([\w.]+)", self.path)
        if self.path in self.server.pages:
            self._send(200, self.server.pages[self.path], "text/html")
            return
        if file:
            with open(os.path.join(os.environ["PAGE_WEB"], file[1]), "rb") as text:
                self._send(200, self._changed(text.read()), {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[file[1].rpartition(".")[2]])
            return
        length = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(length) if length else None
        ask = http.client.HTTPConnection("127.0.0.1", self.server.serve, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("connection", "accept-encoding")}
        ask.request(self.command, self.path, sent, headers)
        answer = ask.getresponse()
        if self.headers.get("Sec-Fetch-Site") in ("same-site", "cross-site"):
            self.server.foreign.append((self.command, self.path, self.headers["Sec-Fetch-Site"], answer.status))
        kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in ("connection", "content-length", "transfer-encoding")]
        if not self.server.walls:
            kept = [(name, value) for name, value in kept if name.lower() != "content-security-policy"]
        if "event-stream" in (answer.getheader("Content-Type") or ""):
            self._stream(answer, kept)
        else:
            body = self._changed(answer.read())
            self._head(answer, kept + [("Content-Length", str(len(body)))])
            self.wfile.write(body)
        ask.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_HEAD = _pass

    def _changed(self, body):
        server = self.server
        if re.match(r"/api/v1/mail/[^/]+/messages/", self.path):
            message = json.loads(body)
            server.frames[message["view"]["path"]] = message["subject"]
        frame = re.fullmatch(r"(/v/[0-9a-f]+/)html", self.path)
        if frame and server.frames[frame[1]] in server.unwashed:
            server.shown += 1
            return server.unwashed[server.frames[frame[1]]]
        if not server.walls and self.path.endswith("/view_mail.js"):
            return body.replace(b"sandbox: 'allow-same-origin', ", b"")
        return body

    def _head(self, answer, headers):
        self.send_response_only(answer.status, answer.reason)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, answer, headers):
        self.close_connection = True
        self._head(answer, headers + [("Connection", "close")])
        self.server.stream(answer, self.wfile)

    def log_message(self, *_):
        pass


class Line:
    """Leads to a port of this machine, until it is cut: then nobody answers at this address."""

    def __init__(self, port):
        self.to = port
        self.open = set()
        self.lock = threading.Lock()
        self.left = None  # bytes that may still come from there; None: any number
        self.is_cut = False
        self.port = 0
        self._bind()
        self.mend()

    def _bind(self):
        """A socket that is bound and does not listen keeps its port, and refuses."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]

    def mend(self, cut_after=None):
        """`cut_after`: it cuts itself when so many bytes have come from there, however slow the machine is."""
        with self.lock:
            self.left = cut_after
            self.is_cut = False
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self._bind()
        with self.lock:
            for one in self.open:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended already
                one.close()
            self.open.clear()
            self.is_cut = True

    def _was_last(self, count):
        """Whether these bytes are the last that may come."""
        with self.lock:
            if self.left is None:
                return False
            self.left -= count
            if self.left > 0:
                return False
            self.left = None
            return True

    def _accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            with self.lock:
                self.open.update((near, far))
            for way in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._copy, args=way, daemon=True).start()

    def _copy(self, from_, to, counts):
        try:
            while piece := from_.recv(65536):
                to.sendall(piece)
                if counts and self._was_last(len(piece)):
                    self.cut()
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass
