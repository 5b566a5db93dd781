"""What tests share that is no fixture: plain git in a store, somebody else at work on it, the types of the fixtures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from sessgit.record.file_pass import RecordingResult
from sessgit.store.backend import Repository

Git = Callable[..., str]
Keep = Callable[..., RecordingResult]


WITHOUT_CACHES = ("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false")
"""A store has neither, and `git fsck` starts two more processes to check them: they are two thirds of its time."""


def run_git(path: Path, *arguments: str) -> str:
    """What git prints in the repository at `path`; fails where git does."""
    done = subprocess.run(["git", "-C", str(path), *WITHOUT_CACHES, *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def objects(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield the id, the kind and the content of every object in the repository at `path`."""
    command = ["git", "-C", str(path), "cat-file", "--batch-all-objects", "--batch"]
    data, start = subprocess.run(command, capture_output=True, check=True).stdout, 0
    while start < len(data):
        end = data.index(b"\n", start)
        oid, kind, size = data[start:end].decode().split()
        start = end + int(size) + 2
        yield oid, kind, data[end + 1 : start - 1]


class Rivalled(Repository):
    """A real repository in which someone else acts just before each of our moves of a ref, as often as told."""

    def __init__(self, path: Path, act: Callable[[], object], times: int = 1) -> None:
        super().__init__(path)
        self.act, self.times = act, times

    def move(self, name: str, old: str | None, new: str | None) -> None:
        if self.times:
            self.times -= 1
            self.act()
        super().move(name, old, new)
