"""git's objects as plain values, read and written without libgit2.

libgit2 verifies what it reads by a slow SHA-1 that also finds forged collisions, which takes as long as finding and
unpacking the object. git looked for collisions when the objects entered the store, so a plain SHA-1 proves a file here.
Loose files are read here too: libgit2 looks for each three times. And large files are read and written in pieces, of
which libgit2 makes several copies.

A writer that finds an object under its name does not write it again. So no new object may get its name before its bytes
are on the disk: a power loss would leave an empty file for good. Until then they are in a folder whose name git's prune
recognizes (as with `core.fsyncMethod=batch`). Each file and folder is synced, since only that works on every file
system: git syncs one file on behalf of all, which is enough on ext4, xfs and APFS, but not on btrfs. Syncs at the same
time share one commit of the file system's journal and one flush of the disk.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import time
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from pathlib import Path
from signal import SIGKILL
from threading import Thread
from typing import IO, Final

from sessgit.errors import StoreError, UnreadableError
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes, file_pieces
from sessgit.store.private_files import sync

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
LARGE_SIZE: Final = 4 << 20
"""Size in bytes above which a file is large."""
_LEVEL = 1
"""The level at which git compresses loose objects."""
_CHUNK_SIZE = 1 << 20

Entry = tuple[str, bool]
"""An object's id and whether it is a tree."""
Tree = dict[bytes, tuple[bytes, bytes]]
"""A tree as git stores it: the mode and the binary id of each entry by name."""
FOLDER_MODE: Final = b"40000"
_FILE_MODE = b"100644"
_TREE_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0/]+)\0(.{20})", re.DOTALL)
_MOST_TREES = 256
_HEADER, _PACKED_HEADER = 64, 4096
"""Bytes that hold the header of an object, and such that hold it compressed, behind the codes that it needs."""
VERIFY_HINT = "`sessgit verify` names the damaged conversations, `sessgit repair` repairs each of them."
_REFUSED_NAMES = frozenset((b"", b".", b"..", b".git"))


@frozen
class Commit:
    """A commit as git has it; `time` is in seconds since 1970."""

    id: str
    tree: str
    parents: tuple[str, ...]
    message: str
    time: int


def object_id(kind: str, data: Bytes) -> str:
    """Return the id that git gives an object."""
    digest = hashlib.sha1(b"%s %d\0" % (kind.encode("ascii"), len(data)), usedforsecurity=False)
    for piece in file_pieces(data):
        digest.update(piece)
    return digest.hexdigest()


def encode_commit(tree: str, parents: Iterable[str], author: tuple[str, str], time: int, message: str) -> bytes:
    """Return the bytes of a commit as git writes it; raises ValueError for a message that UTF-8 cannot encode."""
    signature = f"{author[0]} <{author[1]}> {time} +0000"
    head = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    head += [f"author {signature}", f"committer {signature}"]
    return "\n".join((*head, "", message)).encode()


def tree_entry(name: bytes, oid: str, is_tree: bool) -> tuple[bytes, bytes]:
    """Return an entry as a tree holds it. Raises ValueError for a name that git refuses in a tree."""
    if name.lower() in _REFUSED_NAMES or b"\0" in name:
        raise ValueError(f"{os.fsdecode(name)!r} cannot be a name in a tree")
    return FOLDER_MODE if is_tree else _FILE_MODE, bytes.fromhex(oid)


def encode_tree(entries: Tree) -> bytes:
    """Return the bytes of a tree; git sorts a folder as if its name ended in a slash."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1][0] == FOLDER_MODE else item[0])
    return b"".join([b"%b %b\0%b" % (mode, name, oid) for name, (mode, oid) in ordered])


def _decode_tree(oid: str, data: bytes) -> Tree:
    entries = _TREE_ENTRY.findall(data)
    if sum(len(mode) + len(name) + len(raw) + 2 for mode, name, raw in entries) != len(data):
        raise UnreadableError(f"cannot read the store: the tree {oid} is damaged", VERIFY_HINT)
    return {name: (mode, raw) for mode, name, raw in entries}


def _decode_commit(oid: str, data: bytes) -> Commit:
    head, _, message = data.partition(b"\n\n")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    values = {key: value.decode("ascii", "replace") for key, value in reversed(fields)}
    parents = tuple(value.decode("ascii", "replace") for key, value in fields if key == b"parent")
    try:
        time = int(canonical.nearest_time(int(values[b"committer"].split()[-2])))
        return Commit(oid, values[b"tree"], parents, message.decode("utf-8", "replace"), time)
    except (KeyError, ValueError, IndexError) as error:
        raise UnreadableError(f"cannot read the store: the commit {oid} is damaged", VERIFY_HINT) from error


def _entry(mode: bytes, raw: bytes) -> Entry:
    return raw.hex(), mode == FOLDER_MODE


def _entries(tree: Tree) -> dict[str, Entry]:
    return {os.fsdecode(name): _entry(*value) for name, value in tree.items()}


def tree_entries(oid: str, data: bytes) -> dict[str, Entry]:
    """Return the entries of a tree by name from its bytes. Raises UnreadableError."""
    return _entries(_decode_tree(oid, data))


class ObjectSource(ABC):
    """A repository whose commits and trees are parsed from the bytes that `data` returns."""

    def __init__(self) -> None:
        self._trees = dict[str, Tree]()
        """The trees that were read or written last."""

    @abstractmethod
    def data(self, kind: str, oid: str) -> bytes:
        """Return the bytes of an object, verified by its id. Raises UnreadableError, and StoreError or, for a commit,
        NotFoundError if the object is of another kind."""

    def commit(self, oid: str) -> Commit:
        """Return a commit. Raises as `data` does."""
        return _decode_commit(oid, self.data("commit", oid))

    def tree(self, oid: str) -> dict[str, Entry]:
        """Return the entries of a tree by name."""
        return _entries(self._tree(oid))

    def irregular_entries(self, oid: str) -> list[str]:
        """Return the names of a tree's entries other than plain files and folders: links, programs, submodules."""
        modes = {os.fsdecode(name): mode for name, (mode, _) in self._tree(oid).items()}
        return [name for name, mode in modes.items() if mode not in (_FILE_MODE, FOLDER_MODE)]

    def entry(self, tree: str, path: str) -> Entry | None:
        """Return the entry at a path below a tree, or None."""
        first, _, rest = path.partition("/")
        mode, raw = self._tree(tree).get(first.encode(), (b"", b""))
        if not rest or not mode:
            return _entry(mode, raw) if mode else None
        return self.entry(raw.hex(), rest) if mode == FOLDER_MODE else None

    def files(self, tree: str, prefix: str = "") -> dict[str, Entry]:
        """Return every file below a tree by path, as `edit_tree` takes them."""
        found: dict[str, Entry] = {}
        for name, (oid, is_tree) in self.tree(tree).items():
            path = f"{prefix}/{name}" if prefix else name
            found |= self.files(oid, path) if is_tree else {path: (oid, False)}
        return found

    def blob(self, oid: str) -> bytes:
        """Return the bytes of a file."""
        return self.data("blob", oid)

    @abstractmethod
    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        """Return what `split` makes of a file at its newlines; lines over `longest` bytes of a large file are empty."""

    def _tree(self, oid: str) -> Tree:
        return self._trees.get(oid) or self._keep_tree(oid, _decode_tree(oid, self.data("tree", oid)))

    def _keep_tree(self, oid: str, entries: Tree) -> Tree:
        self._trees[oid] = entries
        if len(self._trees) > _MOST_TREES:
            del self._trees[next(iter(self._trees))]
        return entries


def read_loose(folder: str, oid: str) -> tuple[str, bytes] | None:
    """Return the kind and the bytes of an object in a folder of loose ones, or None. Raises ValueError if it is
    damaged."""
    try:
        # There may be thousands: `Path` takes four times as long.
        with open(f"{folder}/{oid[:2]}/{oid[2:]}", "rb", buffering=0) as file:  # noqa: PTH123
            packed = file.read()
    except OSError:
        return None
    try:
        whole = zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"{oid}: {error}") from error
    actual = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    header, _, data = whole.partition(b"\0")
    kind, _, size = header.decode("ascii", "replace").partition(" ")
    if actual != oid or size != str(len(data)):
        raise ValueError(f"mismatch - expected {oid} but got {actual}")
    return kind, data


def loose_header(folder: str, oid: str) -> tuple[str, int] | None:
    """Return the kind and the size of an object in a folder of loose ones, or None; the rest of it is not read. Raises
    ValueError if this much is damaged."""
    try:
        with open(f"{folder}/{oid[:2]}/{oid[2:]}", "rb", buffering=0) as file:  # noqa: PTH123 - as in `read_loose`
            start = zlib.decompressobj().decompress(file.read(_PACKED_HEADER), _HEADER)
    except OSError:
        return None
    except zlib.error as error:
        raise ValueError(f"{oid}: {error}") from error
    kind, size = start.partition(b"\0")[0].split()
    return kind.decode("ascii"), int(size)


def write_object_file(folder: Path, oid: str, kind: str, data: Bytes, *, durable: bool = False) -> None:
    """Write an object to a folder of loose objects in one step. Raises OSError."""
    temporary = f"{folder}/tmp_obj_{os.urandom(6).hex()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    try:
        with os.fdopen(handle, "wb") as file:
            compressor = zlib.compressobj(_LEVEL)
            file.write(compressor.compress(b"%s %d\0" % (kind.encode("ascii"), len(data))))
            file.writelines(map(compressor.compress, chunks(file_pieces(data))))
            file.write(compressor.flush())
            file.flush()
            if durable:
                os.fsync(handle)
        name_object(temporary, folder, oid)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink(missing_ok=True)
        raise


def chunks(pieces: Iterable[bytes]) -> Iterator[memoryview]:
    """Yield the same bytes in pieces of at most 1 MB, without a copy."""
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _CHUNK_SIZE):
            yield view[start : start + _CHUNK_SIZE]


def large_file_lines(store: Path, oid: str, size: int, longest: float) -> list[bytes] | None:
    """Return what `split` makes of a file at its newlines, read in pieces; None if git cannot read it.

    Lines over `longest` bytes are replaced by empty ones, a last one without newline by its first byte.
    """
    from sessgit.store import git  # which loads modules for processes

    splitter, digest = LineSplitter(longest), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with suppress(StoreError, OSError), git.reading(store, ["cat-file", "blob", oid]) as output:
        while piece := output.read(_CHUNK_SIZE):
            digest.update(piece)
            splitter.add(piece)
    return splitter.lines() if digest.hexdigest() == oid else None


class LineSplitter:
    """Splits a file that comes in pieces into lines. A BytesIO hands its bytes out without a copy."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._lines: list[bytes] = []
        self._last = BytesIO()

    def add(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        if self._last.tell() <= self._longest:
            self._last.write(first)
        if others:
            self._lines.append(self._shortened(self._last.getvalue()))
            self._lines += map(self._shortened, others[:-1])
            self._last = BytesIO()
            self._last.write(others[-1])

    def lines(self) -> list[bytes]:
        last = self._last.getvalue()
        return [*self._lines, self._shortened(last) or last[:1]]

    def _shortened(self, line: bytes) -> bytes:
        return line if len(line) <= self._longest else b""


# Reading through git
#
# A command that reads a few objects asks `git cat-file --batch` for them: loading libgit2 takes ten times as long as
# starting git. libgit2 reads what cannot be read here: large files, and objects that git does not have. And it says
# what is wrong with an object.

_ENV = {"PATH": os.defpath, "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
"""git sees no settings but the store's own."""
_PIPE_SIZE = 1 << 20
"""The largest that Linux allows everyone: with the usual 64 kB a third of the time goes to changing between the two
processes."""
_AHEAD = 150
"""Two times as many ids fit into a pipe everywhere, so that git and this program never wait for each other."""


class ObjectReader(ObjectSource):
    """Reads objects of a repository; `repository` is the same, opened with libgit2."""

    def __init__(self, path: Path, repository: Callable[[], ObjectSource]) -> None:
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


# New objects

_PENDING_PREFIX = "tmp_objdir-sessgit-"
_SYNC_THREADS = 8
"""More threads sync hardly faster."""
_TRIES = 5
_WAIT = 0.001
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS, fsync leaves the bytes in the drive's cache; this flushes it."""


class PendingObjects:
    """The objects of one process that are not flushed yet, in a folder that other processes do not look into."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._objects = store / "objects"
        self.folder = self._objects / f"{_PENDING_PREFIX}{os.urandom(6).hex()}"
        self._oids: dict[str, None] = {}
        self._remove: weakref.finalize[..., PendingObjects] | None = None

    def begin(self) -> None:
        """Make the folder, locked against other processes that delete stale ones. Raises OSError."""
        if self._remove is None:
            delete_stale_folders(self._store)
            lock = _make_folder(self.folder)
            self._remove = weakref.finalize(self, _delete_folder, self.folder, lock, os.getpid())

    def add(self, oid: str) -> None:
        """Include an object in the next flush: it was written here, or existed already."""
        self._oids[oid] = None

    def flush(self) -> None:
        """Return once all added objects are on the disk under their names. Raises OSError.

        This includes existing objects: their writer may not have synced them yet, and git does not sync what it
        unpacks from a fetch.
        """
        if not self._oids:
            return
        paths = {oid: _object_path(self.folder, oid) for oid in self._oids}
        new = {path: _object_path(self._objects, oid) for oid, path in paths.items() if path.exists()}
        old = {_object_path(self._objects, oid) for oid in self._oids}.difference(new.values())
        loose = old.intersection(_sync_existing([*new, *old]))
        flush_drive(self._objects)
        for path, name in new.items():  # in the order of writing: an object comes after those that it refers to
            _rename(path, name)
        folders = {path.parent for path in (*new.values(), *loose)}
        if len(loose) < len(old):  # the others are in packs: git syncs these, but not their names
            folders.add(self._objects / "pack")
        _sync_existing(sorted(folders))
        flush_drive(self._objects)
        self._oids.clear()

    def drop(self) -> None:
        """Delete the folder with all objects that were not flushed: no ref will lead to them."""
        self._oids.clear()
        if self._remove is not None:
            self._remove()
            self._remove = None


def delete_stale_folders(store: Path) -> int:
    """Delete the folders of processes that ended; return how many."""
    count = 0
    for folder in (store / "objects").glob(f"{_PENDING_PREFIX}*"):
        lock = _lock_folder(folder)
        if lock:
            _delete_folder(folder, lock, os.getpid())
            count += 1
    return count


def name_object(path: str, folder: Path, oid: str) -> None:
    """Rename a complete file to the place of an object in a folder of objects. Raises OSError."""
    _rename(path, f"{folder}/{oid[:2]}/{oid[2:]}")


def flush_drive(folder: Path) -> None:
    """Flush the drive's own cache where fsync does not do so, on macOS. Raises OSError."""
    if _FULL_FSYNC is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.fcntl(handle, _FULL_FSYNC)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a network file system has no drive here
            raise
    finally:
        os.close(handle)


def _object_path(folder: Path, oid: str) -> Path:
    return folder / oid[:2] / oid[2:]


def _make_folder(folder: Path) -> int:
    """Make the folder, and return the descriptor that locks it."""
    for _ in range(_TRIES):
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = _lock_folder(folder)
        if lock and folder.is_dir():
            return lock
        if lock:
            os.close(lock)
        time.sleep(_WAIT)  # another process deleted it before it was locked
    raise OSError(errno.EAGAIN, "the folder is deleted as soon as it is made", str(folder))


def _rename(path: str | Path, name: str | Path) -> None:
    for tries_left in reversed(range(_TRIES)):
        try:
            os.rename(path, name)  # noqa: PTH104 - of each object that is written
        except FileNotFoundError:  # packing deletes the folders that it has emptied
            if not tries_left:
                raise
            Path(name).parent.mkdir(mode=0o700, exist_ok=True)
        else:
            return


def _lock_folder(folder: Path) -> int:
    """Return the descriptor that locks the folder, or 0 if another process holds the lock or there is no folder."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return 0
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return 0
    return handle


def _delete_folder(folder: Path, lock: int, process: int) -> None:
    """Delete the folder and release its lock, unless this is a forked child of its process."""
    if os.getpid() != process:
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _sync_existing(paths: Iterable[Path]) -> list[Path]:
    """Sync those files and folders that exist, at the same time, and return them. Raises OSError."""
    waiting, synced, failures = list(paths), list[Path](), list[OSError]()
    waiting.reverse()

    def work() -> None:
        while not failures:
            try:
                path = waiting.pop()
            except IndexError:
                return
            try:
                sync(path)
                synced.append(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(error)

    threads = list[Thread]()
    with suppress(RuntimeError):  # no more threads can be started: fewer work too
        for _ in range(min(_SYNC_THREADS, len(waiting)) - 1):
            thread = Thread(target=work, daemon=True)
            thread.start()
            threads.append(thread)
    work()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return synced
