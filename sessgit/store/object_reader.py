"""Reads objects through `git cat-file --batch`, so that a command that reads a few does not load libgit2.

Loading it takes ten times as long as starting git. It reads what cannot be read here: large files, and objects that git
does not have. And it says what is wrong with an object.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from signal import SIGKILL
from typing import IO, TYPE_CHECKING, TypeVar

from sessgit.model import canonical
from sessgit.store import objects
from sessgit.store.objects import Commit, Entry

if TYPE_CHECKING:
    from sessgit.store.backend import Repository

_T = TypeVar("_T")
_MOST_TREES = 64
_ENV = {"PATH": os.defpath, "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
"""git sees no settings but the store's own."""
_UNREADABLE = (KeyError, ValueError, IndexError, OSError)


class ObjectReader:
    """Reads objects of a repository, each verified by its id; `repository` is the same, opened with libgit2."""

    def __init__(self, path: Path, repository: Callable[[], Repository]) -> None:
        self._path, self._repository = path, repository
        self.count = 0
        """Number of objects that were read."""
        self._tree = lru_cache(maxsize=_MOST_TREES)(self._read_tree)

    def commit(self, oid: str) -> Commit:
        """Return a commit. Raises NotFoundError if the object is no commit, UnreadableError."""
        return self._or_libgit2(lambda: _decode_commit(oid, self._read("commit", oid)), lambda repo: repo.commit(oid))

    def tree(self, oid: str) -> dict[str, Entry]:
        """Return the entries of a tree by name."""
        return self._or_libgit2(
            lambda: {name.decode(): _entry(*value) for name, value in self._tree(oid).items()},
            lambda repo: repo.tree(oid),
        )

    def entry(self, tree: str, path: str) -> Entry | None:
        """Return the entry at a path below a tree, or None."""
        return self._or_libgit2(lambda: self._entry_at(tree, path.encode()), lambda repo: repo.entry(tree, path))

    def files(self, tree: str, prefix: str = "") -> dict[str, Entry]:
        """Return every file below a tree by path, as `edit_tree` takes them."""
        return objects.files(self.tree, tree, prefix)

    def blob(self, oid: str) -> bytes:
        """Return the bytes of a file, verified by its id."""
        return self._or_libgit2(lambda: self._read("blob", oid), lambda repo: repo.blob(oid))

    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        """Return what `split` makes of a file at its newlines; lines over `longest` bytes of a large file are empty."""
        return self._or_libgit2(lambda: self._read("blob", oid).split(b"\n"), lambda repo: repo.lines(oid, longest))

    def _or_libgit2(self, read: Callable[[], _T], reread: Callable[[Repository], _T]) -> _T:
        try:
            return read()
        except _UNREADABLE:
            vars(self).pop("_git", None)  # it ended at damage, or is about to send a large file
            return reread(self._repository())

    def _entry_at(self, tree: str, path: bytes) -> Entry | None:
        first, _, rest = path.partition(b"/")
        mode, raw = self._tree(tree).get(first, (b"", b""))
        if not rest or not mode:
            return _entry(mode, raw) if mode else None
        return self._entry_at(raw.hex(), rest) if mode == objects.FOLDER_MODE else None

    def _read_tree(self, oid: str) -> objects.Tree:
        return objects.decode_tree(self._read("tree", oid))

    def _read(self, kind: str, oid: str) -> bytes:
        """Return an object's bytes. Raises one of `_UNREADABLE` if it is not readable here, or not of this kind."""
        self.count += 1
        self._git.stdin.write(f"{oid}\n".encode())
        _, actual, size = self._git.stdout.readline().split()
        if int(size) > objects.LARGE_SIZE:
            raise ValueError("a large file")
        data = self._git.stdout.read(int(size) + 1)[:-1]
        if actual != kind.encode() or objects.object_id(kind, data) != oid:
            raise ValueError(oid)
        return data

    @cached_property
    def _git(self) -> _CatFile:
        return _CatFile(self._path)


class _CatFile:
    """`git cat-file --batch`, which ends with this object."""

    def __init__(self, path: Path) -> None:
        (input_end, stdin), (stdout, output_end) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb")
        actions = [
            (os.POSIX_SPAWN_DUP2, input_end, 0), (os.POSIX_SPAWN_DUP2, output_end, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]  # fmt: skip
        command = ["git", "--git-dir", str(path), "cat-file", "--batch"]
        try:
            child = os.posix_spawnp("git", command, _ENV, file_actions=actions)
        finally:
            os.close(input_end)
            os.close(output_end)
        weakref.finalize(self, _end, child, os.getpid(), (self.stdin, self.stdout))


def _end(child: int, parent: int, pipes: Iterable[IO[bytes]]) -> None:
    for pipe in pipes:
        pipe.close()
    if os.getpid() == parent:  # not in a forked child
        os.kill(child, SIGKILL)
        os.waitpid(child, 0)


def _entry(mode: bytes, raw: bytes) -> Entry:
    return raw.hex(), mode == objects.FOLDER_MODE


def _decode_commit(oid: str, data: bytes) -> Commit:
    head, _, message = data.partition(b"\n\n")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    values = {key: value.decode() for key, value in reversed(fields)}
    parents = tuple(value.decode() for key, value in fields if key == b"parent")
    time = int(canonical.nearest_time(int(values[b"committer"].split()[-2])))
    return Commit(oid, values[b"tree"], parents, message.decode("utf-8", "replace"), time)
