"""The interactive client in a terminal of our own: type to it, read its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from clients import UNASKED, Client, environment

ROWS, COLUMNS = 50, 120
ESCAPE, ENTER, UP, DOWN, CTRL_E, CTRL_U = "\x1b", "\r", "\x1b[A", "\x1b[B", "\x05", "\x15"
# What pyte would take for text, or refuse: keyboard protocols, queries, device control strings.
UNKNOWN = re.compile(rb"\x1b\[[<>=?][0-9;:]*[a-gi-km-zA-Z]|\x1b\[[0-9;]*[ $!][a-zA-Z]|\x1b[P_^][^\x1b]*\x1b\\")


class Terminal:
    """`with Terminal(client, home=…, cwd=…, base_url=…) as tui:` starts it and waits for its prompt box."""

    def __init__(
        self,
        client: Client,
        arguments: Sequence[str] = (),
        *,
        home: Path,
        cwd: Path,
        base_url: str,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.client = client
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._changed = time.monotonic()
        self.output = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        try:
            self.process = subprocess.Popen(
                [*client.command, *UNASKED, *arguments],
                cwd=cwd,
                env=environment(home, base_url, env),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
        finally:
            os.close(slave)
        self._reader = threading.Thread(target=self._read, name="terminal-reader", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def text(self) -> str:
        """The screen as it is now, without blank lines and blank ends of lines."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    def cells(self) -> list[list[pyte.screens.Char]]:
        """The characters of each line of the screen as it is now, with their colours."""
        with self._lock:
            return [[self._screen.buffer[row][column] for column in range(COLUMNS)] for row in range(ROWS)]

    def wait_for(self, wanted: str | Callable[[str], bool], timeout: float = 30) -> str:
        """Wait until the screen matches (a regular expression or a function of its text); gives the text."""
        match = wanted if callable(wanted) else (lambda text: re.search(wanted, text) is not None)
        end = time.monotonic() + timeout
        while not match(text := self.text()):
            if time.monotonic() > end or not self._reader.is_alive():
                state = "shows" if self._reader.is_alive() else "ended with"
                raise TimeoutError(f"claude {self.client.version}: no {wanted!r}, the screen {state}\n{text}")
            time.sleep(0.05)
        return text

    def settle(self, quiet: float = 0.4, timeout: float = 30) -> str:
        """Wait until nothing has been written for a while, counted from now."""
        start = time.monotonic()
        while time.monotonic() < min(start + timeout, max(start, self._changed) + quiet):
            time.sleep(0.05)
        return self.text()

    def wait_ready(self, timeout: float = 30) -> None:
        self.wait_for(r"(?m)^\W*[>❯]", timeout)
        self.settle()

    # Writing

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def type(self, text: str) -> None:
        """Text into the prompt box. It must be there before Enter follows, or both are taken for pasted."""
        end = "".join(text.split())[-20:]
        self.send(text)
        self.wait_for(lambda screen: end in "".join(screen.split()))
        self.settle(0.2)

    def submit(self, text: str) -> None:
        self.type(text)
        self.send(ENTER)

    def clear(self) -> None:
        """Empty the prompt box."""
        self.settle()
        self.send(CTRL_E)
        self.settle()
        self.send(CTRL_U)
        self.wait_for(lambda text: _box(text) == "")
        self.settle()

    def interrupt(self) -> None:
        """Esc in mid-turn; the client needs a moment, or it takes Esc and the next key for one."""
        self.send(ESCAPE)
        self.wait_for("(?i)interrupted")
        self.settle()

    def ask(self, prompt: str, timeout: float = 60) -> None:
        """A whole turn: the prompt, and the mock's answer to it."""
        self.submit(prompt)
        self.wait_for(lambda text: f"Echo: {prompt}" in text, timeout)
        self.wait_ready()

    def rewind(self, prompt: str) -> None:
        """/rewind the conversation to before that prompt (the last of its text), and empty the prompt box."""
        self.submit("/rewind")
        self.wait_for("Restore the code and/or conversation")
        self._choose(re.escape(prompt), UP)
        self.wait_for("point before you sent this message")
        self._choose(r"\d\. Restore conversation", DOWN)
        self.wait_for(lambda text: "point before you sent this message" not in text)
        self.wait_for(lambda text: _box(text) == prompt)
        self.clear()

    def _choose(self, wanted: str, key: str) -> None:
        """Move in a menu until the wanted line is marked, then Enter."""
        self.settle()
        for _ in range(20):
            menu = re.split(r"(?m)^ +Rewind$", self.text())[-1]
            if re.search(rf"(?m)^\W*❯ +{wanted}\s*$", menu):
                self.send(ENTER)
                return
            self.send(key)
            self.settle()
        raise TimeoutError(f"claude {self.client.version}: no {wanted!r} in the menu\n{self.text()}")

    def quit(self, timeout: float = 20) -> int:
        """Leave as a user does, with /exit."""
        self.submit("/exit")
        return self.process.wait(timeout)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._reader.join(5)
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if not ready:
                if self.process.poll() is not None:
                    return
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            self.output += data
            with self._lock:
                self._stream.feed(UNKNOWN.sub(b"", data))
                self._changed = time.monotonic()


def _box(screen: str) -> str | None:
    """What stands in the prompt box: between the last two rules, after the prompt sign."""
    parts = re.split(r"(?m)^─{20,}.*$", screen)
    found = re.match(r"\s*[>❯]\s*(.*)", parts[-2], re.S) if len(parts) > 2 else None
    return found[1].strip() if found else None
