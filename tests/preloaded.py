"""Starts programs in processes that a server forks with sessgit loaded: each is there in milliseconds.

Where the start of Python itself is what a test is about, it starts one with `subprocess`.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import IO
from unittest import mock

from sessgit.cli import app

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["preloaded", "crashchild"])
_SHORT = 60
"""Of a folder's name, with which a socket in it can still be named."""
PROGRAM = "from sessgit.cli import app; app.main()"
"""The code that `python -m sessgit` runs."""

if __name__ != "__main__" and "pytest" not in sys.modules:  # in the server
    for _name in app.COMMANDS:
        with suppress(ImportError):
            import_module(f"sessgit.cli.commands.{app.MODULES.get(_name, _name)}")
    for _name in ("pygit2", "tomlkit", "sqlite3", "sessgit.api.store", "sessgit.api.session", "sessgit.recorder.drain"):
        import_module(_name)


@cache
def serve() -> None:
    """Start the server that forks; before Python 3.13 it looks for what it loads in its own path alone.

    Its socket lies in a temporary folder, and the address of one has room for a hundred bytes.
    """
    short = "/tmp" if len(os.fsencode(tempfile.gettempdir())) > _SHORT else tempfile.gettempdir()
    with (
        mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        mock.patch.object(tempfile, "tempdir", short),
    ):
        forkserver.ensure_running()


class Started:
    """A process that runs Python code; `stdout` is what it prints, and ends when the process does."""

    def __init__(
        self, code: str, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        serve()
        reading, writing = SERVER.Pipe(duplex=False)
        place = str(cwd or Path.cwd())
        words = (code, arguments, dict(os.environ if env is None else env), place, writing)
        self._process = SERVER.Process(target=_run, args=words)
        self._process.start()
        writing.close()
        self.stdout: IO[str] = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
        reading.close()

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> str:
        """Kill the process if it still runs, and return what of its output is not read yet."""
        self._process.kill()
        return self.end()

    def end(self) -> str:
        """Wait for the end of the process, and return what of its output is not read yet."""
        with self.stdout:
            rest = self.stdout.read()
        self._process.join()
        return rest


def _run(code: str, arguments: tuple[str, ...], env: dict[str, str], cwd: str, said: Connection) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    tempfile.tempdir = None  # the server has its own
    os.dup2(said.fileno(), 1)
    said.close()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.argv = ["sessgit", *arguments]
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit:
        pass
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        for thread in set(threading.enumerate()) - {threading.current_thread()}:
            if not thread.daemon:
                thread.join()
        os._exit(0)
