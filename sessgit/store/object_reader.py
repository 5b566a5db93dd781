"""Reads objects through `git cat-file --batch`, so that a command that reads a few does not load libgit2.

Loading it takes ten times as long as starting git. It reads what cannot be read here: large files, and objects that git
does not have. And it says what is wrong with an object.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from signal import SIGKILL
from typing import IO, TYPE_CHECKING

from sessgit.store.objects import LARGE_SIZE, ObjectSource, object_id

if TYPE_CHECKING:
    from sessgit.store.backend import Repository

_ENV = {"PATH": os.defpath, "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
"""git sees no settings but the store's own."""
_PIPE_SIZE = 1 << 20
"""The largest that Linux allows everyone: with the usual 64 kB a third of the time goes to changing between the two
processes."""
_AHEAD = 150
"""Two times as many ids fit into a pipe everywhere, so that git and this program never wait for each other."""


class ObjectReader(ObjectSource):
    """Reads objects of a repository; `repository` is the same, opened with libgit2."""

    def __init__(self, path: Path, repository: Callable[[], Repository]) -> None:
        super().__init__()
        self._path, self._repository = path, repository
        self.count = 0
        """Number of objects that were read."""

    def data(self, kind: str, oid: str) -> bytes:
        data = self._read(kind, oid)
        return self._repository().data(kind, oid) if data is None else data

    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        data = self._read("blob", oid)
        return self._repository().lines(oid, longest) if data is None else data.split(b"\n")

    def _read(self, kind: str, oid: str) -> bytes | None:
        """Return an object's bytes; None if it is large, or cannot be read here, or is not of this kind."""
        self.count += 1
        with suppress(ValueError, OSError):
            self._git.ask([oid])
            return self._git.answer(kind, oid)
        vars(self).pop("_git", None)  # it ended at damage, or is about to send a large file
        return None

    def many(self, kind: str, oids: Sequence[str]) -> Iterator[bytes]:
        """Yield the bytes of objects, while git reads the next ones. It ends before one that cannot be read here."""
        with suppress(ValueError, OSError):
            git = _CatFile(self._path)
            git.ask(oids[:_AHEAD])
            for number, oid in enumerate(oids):
                if number % _AHEAD == 0:
                    git.ask(oids[number + _AHEAD : number + 2 * _AHEAD])
                yield git.answer(kind, oid)

    @cached_property
    def _git(self) -> _CatFile:
        return _CatFile(self._path)


class _CatFile:
    """`git cat-file --batch`, which ends with this object."""

    def __init__(self, path: Path) -> None:
        (input_end, stdin), (stdout, output_end) = os.pipe(), os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(stdout, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", _PIPE_SIZE)
        actions = [
            (os.POSIX_SPAWN_DUP2, input_end, 0), (os.POSIX_SPAWN_DUP2, output_end, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]  # fmt: skip
        command = ["git", "--git-dir", str(path), "cat-file", "--batch"]
        try:
            child = os.posix_spawnp("git", command, _ENV, file_actions=actions)
        except OSError:
            self.stdin.close()
            self.stdout.close()
            raise
        finally:
            os.close(input_end)
            os.close(output_end)
        weakref.finalize(self, _end, child, os.getpid(), (self.stdin, self.stdout))

    def ask(self, oids: Iterable[str]) -> None:
        """Ask for objects, of which each must be taken by `answer` in this order. Raises OSError."""
        self.stdin.write("".join([f"{oid}\n" for oid in oids]).encode())

    def answer(self, kind: str, oid: str) -> bytes:
        """Return the bytes of the next object. Raises ValueError or OSError for one that is missing, damaged, large or
        of another kind; nothing can be read after it."""
        _, actual, size = self.stdout.readline().split()
        if int(size) <= LARGE_SIZE and actual == kind.encode():
            data = self.stdout.read(int(size))
            self.stdout.read(1)
            if object_id(kind, data) == oid:
                return data
        raise ValueError(oid)


def _end(child: int, parent: int, pipes: Iterable[IO[bytes]]) -> None:
    for pipe in pipes:
        pipe.close()
    if os.getpid() == parent:  # not in a forked child
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)
