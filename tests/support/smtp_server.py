#!/usr/bin/env python3
"""smtp_server.py DIR [--host HOST] [--cert FILE --key FILE] [--smtps] [--login USER:PASSWORD]

A small mail server for tests.  It prints "listening PORT", and keeps in DIR
  mail.N   each message that it took, as it came, after a line with the envelope
  log      each line of a client, after "tls" or "plain"; of AUTH only whether it was right
What it does with the next message is the first line of DIR/mode, read each time:
  ok             takes it
  rcpt CODE TEXT, data CODE TEXT   refuses the recipient, or the message after its end
  hang           accepts connections and says nothing
  hold           takes the message and does not answer until the mode is another one
  drop           takes the message and closes the connection without an answer
  cut            closes the connection when the message begins"""
import argparse
import base64
import os
import socketserver
import ssl
import threading
import time

LOCK = threading.Lock()


class Session(socketserver.StreamRequestHandler):
    tls = False

    def setup(self):
        if self.server.context is not None and self.server.smtps:
            self.secure()
        super().setup()

    def secure(self):
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        self.tls = True

    def mode(self):
        with open(os.path.join(self.server.dir, "mode"), encoding="ascii") as file:
            return file.readline().strip()

    def note(self, line):
        with LOCK, open(os.path.join(self.server.dir, "log"), "a", encoding="utf-8") as file:
            file.write(("tls " if self.tls else "plain ") + line + "\n")

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")
        self.wfile.flush()

    def line(self):
        return self.rfile.readline().decode("utf-8", "replace").rstrip("\r\n")

    def handle(self):
        self.sender, self.recipients, self.signed_in = "", [], self.server.login is None
        if self.mode() == "hang":
            self.note("hang")
            while self.request.recv(1024):
                pass
            return
        self.say("220 mail.example.com ESMTP")
        while True:
            line = self.line()
            if line == "":
                return
            verb = line.split(" ")[0].upper()
            self.note(verb if verb == "AUTH" else line)
            if not getattr(self, "on_" + verb.lower(), self.unknown)(line):
                return

    def unknown(self, _line):
        self.say("502 5.5.2 what is that")
        return True

    def on_ehlo(self, _line):
        lines = ["mail.example.com"]
        if self.server.context is not None and not self.tls:
            lines.append("STARTTLS")
        if self.server.login is not None:
            lines.append("AUTH PLAIN")
        for i, text in enumerate(lines):
            self.say("250%s%s" % (" " if i + 1 == len(lines) else "-", text))
        return True

    on_helo = on_ehlo

    def on_starttls(self, _line):
        self.say("220 go ahead")
        self.secure()
        super().setup()
        return True

    def on_auth(self, line):
        words = line.split(" ")
        if len(words) < 3:
            self.say("334 ")
            words = ["AUTH", "PLAIN", self.line()]
        given = base64.b64decode(words[2]).decode().split("\0")
        self.signed_in = ":".join(given[1:]) == self.server.login
        self.note("AUTH right" if self.signed_in else "AUTH wrong")
        self.say("235 welcome" if self.signed_in else "535 5.7.8 wrong user or password")
        return True

    def on_mail(self, line):
        self.sender, self.recipients = line[10:], []
        self.say("250 sender" if self.signed_in else "530 5.7.0 sign in first")
        return True

    def on_rcpt(self, line):
        mode = self.mode()
        if mode.startswith("rcpt "):
            self.say(mode[5:])
            return True
        self.recipients.append(line[8:])
        self.say("250 recipient")
        return True

    def on_data(self, _line):
        mode = self.mode()
        if mode == "cut":
            return False
        self.say("354 write")
        message = b""
        while True:
            line = self.rfile.readline()
            if line in (b".\r\n", b""):
                break
            message += line[1:] if line.startswith(b"..") else line
        if line == b"":
            self.note("message cut")
            return False
        if mode.startswith("data "):
            self.say(mode[5:])
            return True
        self.keep(message)
        while self.mode() == "hold":
            time.sleep(0.05)
        if mode in ("drop", "hold"):
            return False
        self.say("250 2.0.0 queued as %d" % self.server.count)
        return True

    def keep(self, message):
        with LOCK:
            path = os.path.join(self.server.dir, "mail.%d" % self.server.count)
            with open(path + ".new", "wb") as file:
                file.write(("%s -> %s\n" % (self.sender, ",".join(self.recipients))).encode())
                file.write(message)
            os.rename(path + ".new", path)
            self.server.count += 1

    def on_rset(self, _line):
        self.say("250 ok")
        return True

    on_noop = on_rset

    def on_quit(self, _line):
        self.say("221 bye")
        return False


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # a client that goes away is what tests do


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dir")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--smtps", action="store_true")
    parser.add_argument("--login")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    with open(os.path.join(args.dir, "mode"), "w", encoding="ascii") as file:
        file.write("ok\n")
    server = Server((args.host, 0), Session)
    server.dir, server.login, server.smtps, server.count = args.dir, args.login, args.smtps, 0
    server.context = None
    if args.cert:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(args.cert, args.key)
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()


main()
