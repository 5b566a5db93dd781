"""At a terminal: what is said before somebody is asked, what they answer, and whose Ctrl-C is."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from shell import Shell
from transcripts import SESSION

CONTROL = re.compile(r"\x1b\[[0-9;]*m")


class Seat:
    """The program on a terminal, as the one that is in front there."""

    def __init__(self, *arguments: str, **more: str) -> None:
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.environ.update({"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24", **more})
            os.execv(sys.executable, [sys.executable, "-m", "sessgit", *arguments])
        self.said = b""

    def until(self, word: bytes) -> None:
        """Reads until the word was said."""
        end = time.monotonic() + 60
        while word not in self.said:
            assert time.monotonic() < end, self.said
            if select.select([self.terminal], [], [], 0.1)[0]:
                self.said += os.read(self.terminal, 65_536)

    def types(self, keys: bytes) -> None:
        os.write(self.terminal, keys)

    def left(self) -> int:
        """Reads to the end, and returns the exit code."""
        while True:
            try:
                piece = os.read(self.terminal, 65_536)
            except OSError:  # what Linux says when the other side is closed
                break
            if not piece:
                break
            self.said += piece
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def lines(said: bytes) -> list[str]:
    return said.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")


@pytest.fixture
def one(sessgit: Shell) -> Shell:
    sessgit.recorded(sessgit.talk().turns("one", "hunter2hunter2"))
    return sessgit


@pytest.mark.parametrize(
    ("arguments", "asked"), [(("delete", SESSION), b"Delete?"), (("purge", "hunter2hunter2"), b"Purge it for good?")]
)
def test_a_question_has_no_broken_colours(one: Shell, arguments: Sequence[str], asked: bytes) -> None:
    seat = Seat(*arguments)
    seat.until(asked)
    seat.types(b"n\n")
    assert seat.left() == 1
    first = lines(seat.said)[0] if arguments[0] == "delete" else lines(seat.said)[1]
    assert first.split()[0] == SESSION[:8]
    assert "\ufffd" not in seat.said.decode()


def test_the_remark_above_a_list_of_addresses_has_no_broken_colours(one: Shell) -> None:
    one.out("tag", "v1", f"{SESSION}@1")
    operation = one.json("ops")["operations"][0]["id"]
    seat = Seat("log", SESSION, "--oneline", "--at-op", operation)
    assert seat.left() == 0
    head, *rest = (CONTROL.sub("", line) for line in lines(seat.said))
    assert re.fullmatch(r"As of .*, after “tag v1 at 5e551011@1” \(the last operation\)", head)
    assert [line.split(maxsplit=1)[0] for line in rest if line] == ["5e551011@2", "5e551011@1"]


def test_an_answer_in_another_encoding_is_no(one: Shell) -> None:
    seat = Seat("delete", SESSION, PYTHONIOENCODING="utf-8")
    seat.until(b"Delete?")
    seat.types(b"\xff\n")
    assert seat.left() == 1
    assert lines(seat.said)[-2] == "Nothing was deleted."


PAGER = """\
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: print("INTERRUPTED", flush=True))
os.read(0, 4000)
print("A SCREEN", flush=True)
with open("/dev/tty") as keys:
    keys.readline()
while os.read(0, 1 << 20):
    pass
print("DONE", flush=True)
"""


def test_ctrl_c_is_the_pagers_while_it_has_not_read_all(sessgit: Shell, tmp_path: Path) -> None:
    long = "\n".join(f"line {number} of a text that no pipe holds" for number in range(6000))
    sessgit.recorded(sessgit.talk().prompt("one").answer(long))
    pager = tmp_path / "pager.py"
    pager.write_text(PAGER)
    seat = Seat("show", "--full", f"{SESSION}@1", SESSGIT_PAGER=f"exec {sys.executable} {pager}")
    seat.until(b"A SCREEN")
    seat.types(b"\x03")
    seat.until(b"INTERRUPTED")
    seat.types(b"q\n")
    assert seat.left() == 0
    assert lines(seat.said)[-2] == "DONE"


def test_ctrl_c_ends_a_command_again_after_a_pager(one: Shell) -> None:
    code = (
        "import os, signal\n"
        "from sessgit.cli import render\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "assert render._paged('cat >/dev/null', 'text')\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    print('deaf')\n"
        "except KeyboardInterrupt:\n    print('heard')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "heard\n"
