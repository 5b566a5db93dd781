"""What a forked child does: one command, recorder or program, behind a gate where it is told to.

A server forks them, which has everything loaded: each is there in milliseconds and nothing of the tests is in it.
"""

from __future__ import annotations

import itertools
import os
import runpy
import socket
import sys
import tempfile
import uuid
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import NoReturn
from unittest import mock

import gate

from sessgit.cli import app, invocation

for _name in app.COMMANDS:
    with suppress(ImportError):
        import_module(f"sessgit.cli.commands.{app.MODULES.get(_name, _name)}")
for _name in ("pygit2", "tomlkit", "sqlite3", "sessgit.api.store", "sessgit.api.session", "sessgit.recorder.drain",
              "sessgit.history.search", "sessgit.record.imports",
              "sessgit.store.fulltext"):  # fmt: skip
    import_module(_name)


@dataclass(frozen=True)
class Job:
    """What is run: a command's words after `cli`, the store after `recorder`, or a program after `program`."""

    what: str
    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    now: float = 0.0
    """0 is the real time."""
    seed: str = "f"
    """One hexadecimal digit: new ids begin with it."""


def run(job: Job, said: str, address: str) -> None:
    """Does the job and leaves with its exit code; what it prints goes to the file `said`."""
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(job.env)
    os.chdir(job.cwd)
    tempfile.tempdir = None  # the server has its own
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    if address:
        with socket.socket(socket.AF_UNIX) as way:
            way.connect(address)
            listener = gate.enter()
            socket.send_fds(way, [b"+"], [listener])
        os.close(listener)
    else:
        _note_the_end(said)
    code = 70
    try:
        code = _do(job)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _note_the_end(said: str) -> None:
    """Writes the exit code down: the server of a busy crowd sometimes loses one, and tells 255 for it."""
    leave = os._exit

    def left(code: int) -> NoReturn:
        with suppress(OSError):
            note = os.open(f"{said}.code", os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(note, str(code).encode())
        leave(code)

    os._exit = left


def _do(job: Job) -> int:
    numbers = itertools.count(1)
    ids = lambda: uuid.UUID(f"{job.seed}{next(numbers):07x}-0000-4000-8000-{job.seed * 12}")  # noqa: E731
    with mock.patch("uuid.uuid4", ids):
        if job.what == "cli":
            read = invocation.read
            now = {"now": job.now} if job.now else {}
            with mock.patch.object(invocation, "read", lambda: replace(read(), **now)):
                sys.argv = ["sessgit", *job.words]
                app.main()
        elif job.what == "recorder":
            sys.argv = ["recorder", *job.words]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is loaded already
                runpy.run_module("sessgit.recorder", run_name="__main__")
        else:
            sys.argv = ["program", *job.words[1:]]
            runpy.run_path(job.words[0], run_name="__main__")
    return 0
