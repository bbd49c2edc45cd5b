"""A program on a pseudo terminal, and a person at it: what it says, and what is typed."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
import unicodedata

from stage import Failed


def expect(holds, what):
    if not holds:
        raise Failed(what)


def columns_of(line):
    """The columns that a line takes: wide characters two, marks none, escape sequences none."""
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line)
    return sum(0 if unicodedata.combining(c) or unicodedata.category(c) in ("Cf", "Cc") else
               2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


class Terminal:
    """The program on a terminal of so many columns."""

    def __init__(self, stage, *arguments, columns=80, **env):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # The size is set before the program begins, which may ask for it once.
            self._size(0, columns)
            os.execve(stage.tidemark, [stage.tidemark, "--home", stage.home, *arguments], {**stage.env, "TERM": "xterm", **env})

    @staticmethod
    def _size(terminal, columns):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def resize(self, columns):
        self._size(self.terminal, columns)

    def speaks(self, seconds):
        """Whether there is something to read, or it has ended."""
        return bool(select.select([self.terminal], [], [], seconds)[0])

    def take(self):
        """The bytes that came; none: it has ended."""
        try:
            return os.read(self.terminal, 65536)
        except OSError:
            return b""

    def leaves(self):
        """Waits for its end, and returns its exit code."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.terminal)
        return code


class Person(Terminal):
    def __init__(self, stage, *arguments, columns=80, **env):
        self.text, self.said = "", ""
        super().__init__(stage, *arguments, columns=columns, **env)

    def _read(self):
        """False: it has ended."""
        more = self.take()
        self.text += more.decode(errors="replace").replace("\r\n", "\n")
        return bool(more)

    def reads(self, text, seconds=60):
        """Waits for it to say this, and returns all that came before."""
        end = time.monotonic() + seconds
        while text not in self.text:
            expect(time.monotonic() < end, f"it does not say {text!r}: {self.text!r}")
            if self.speaks(0.1):
                expect(self._read() or text in self.text, f"it ended, and did not say {text!r}: {self.text!r}")
        before, self.text = self.text.split(text, 1)
        self.said += before + text
        return before

    def types(self, line):
        os.write(self.terminal, (line + "\n").encode())

    def ends(self, code):
        """Waits for its end, and returns what was not read yet."""
        while self._read():
            pass
        ended = self.leaves()
        expect(ended == code, f"it ended with {ended}, not {code}: {self.said}{self.text}")
        return self.text
