#!/usr/bin/env python3
"""mail_display_test.py TIDEMARK CLOUD: the block of `mail sync` on a terminal that changes its size (M6b).

Goal: nothing that was on the terminal before is overwritten, whether the terminal wraps lines that
became too long or cuts them.  Method: a pseudo terminal; every frame moves up by exactly the lines of
the frame before, and no line is as wide as the terminal was when the frame was written."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from stage import Failed, Stage, USER  # noqa: E402
from terminal import Terminal  # noqa: E402

BEGIN, END = b"\x1b[?25l\r", b"\x1b[?25h"
WIDTHS = [100, 50, 120, 30, 80]


class Screen:
    """Frames as they come, each with the widths that the terminal had around it."""

    def __init__(self, terminal):
        self.terminal, self.bytes, self.frames, self.widths = terminal, b"", [], set()

    def read(self):
        """False: the program has ended."""
        if self.terminal.speaks(0.05):
            more = self.terminal.take()
            if not more:
                return False
            self.bytes += more
        while END in self.bytes:
            frame, self.bytes = self.bytes.split(END, 1)
            if BEGIN not in frame:
                raise Failed(f"a frame without a beginning: {frame!r}")
            before, frame = frame.split(BEGIN, 1)
            self.frames.append((before, frame, max(self.widths)))
        return True


def check(frames):
    lines = 0
    for number, (before, frame, width) in enumerate(frames):
        if number > 0 and before:
            raise Failed(f"text between two frames: {before!r}")
        up = re.match(rb"\x1b\[(\d+)A", frame)
        if (int(up.group(1)) if up else 0) != lines:
            raise Failed(f"frame {number} goes up by {up and up.group(1)}, and {lines} lines were there: {frame!r}")
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", frame).replace(b"\r", b"")
        lines = text.count(b"\n")
        for line in text.split(b"\n"):
            if len(line.decode()) >= width:
                raise Failed(f"a line of {len(line)} in {width} columns: {line!r}")


def run(stage):
    stage.start_cloud("--mailbox", f"{USER}=12", "--token", f"tok={USER}")
    stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
    for method, ms in (("list", 1500), ("get", 9000)):
        stage.ask_cloud("/_cloud/faults", {"method": f"gmail.users.messages.{method}", "rate": 1, "fault": "latency", "ms": ms})
    terminal = Terminal(stage, "mail", "sync", columns=WIDTHS[0])
    screen = Screen(terminal)
    # A frame that is on its way while the size changes may have either width.
    screen.widths = {WIDTHS[0]}
    seen, step, end = 0, 0, time.monotonic() + 90
    while screen.read():
        if len(screen.frames) > seen + 1:
            screen.widths = {WIDTHS[step]}
        if len(screen.frames) > seen + 2 and step + 1 < len(WIDTHS):
            screen.widths = {WIDTHS[step], WIDTHS[step + 1]}
            step, seen = step + 1, len(screen.frames)
            terminal.resize(WIDTHS[step])
        if time.monotonic() > end:
            os.kill(terminal.pid, signal.SIGKILL)
            raise Failed("the sync does not end")
    code = terminal.leaves()
    if code != 0:
        raise Failed(f"mail sync ended with {code}: {screen.bytes!r}")
    if step + 1 < len(WIDTHS):
        raise Failed(f"only {len(screen.frames)} frames: not every width was tried")
    check(screen.frames)
    if not any(b"fetching" in frame for _, frame, _ in screen.frames):
        raise Failed("no frame names the phase")
    print(f"{len(screen.frames)} frames in {len(WIDTHS)} widths: fine")


def main():
    stage = Stage(*sys.argv[1:3])
    try:
        run(stage)
    except Failed as failed:
        print(f"FAILED: {failed}", file=sys.stderr)
        return 1
    finally:
        stage.end()
    return 0


sys.exit(main())
