"""The only importer of pygit2: objects and refs of one bare repository, in plain values.

Object ids are 40 hex digits. libgit2's errors leave here as errors of `sessgit.errors`. Objects are written first; a
ref is then moved by compare-and-swap. If a store is to survive a power loss, new objects are pending until just before
that, and are then synced together.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import pygit2
from pygit2.enums import ObjectType, Option

from sessgit.errors import ROOM, DamageError, MovedError, NotFoundError, StoreError, UnreadableError
from sessgit.model.line_list import Bytes
from sessgit.store import locks, objects, private_files, refs
from sessgit.store.layout import StorePaths
from sessgit.store.objects import Commit, Entry, ObjectSource

if TYPE_CHECKING:
    from sessgit.store.pack_file import Pack

T = TypeVar("T")
AUTHOR = ("sessgit", "sessgit@localhost")
_LOCK_TRIES = 300
_LOCK_WAIT = 0.01
_UNBORN_HEAD = "refs/heads/HEAD-stays-unborn"
_PACK_PRIORITY = 2
"""The priority that libgit2 gives packs."""
_KINDS = {kind.name.lower(): kind for kind in (ObjectType.COMMIT, ObjectType.TREE, ObjectType.BLOB, ObjectType.TAG)}
_NAMES: dict[int, str] = {int(number): name for name, number in _KINDS.items()}
_FSYNC_OPTION_LOCK = Lock()
_READ_ERRORS = (KeyError, ValueError, pygit2.GitError)
_MADE = (
    *("HEAD", "config", "description", "hooks", "hooks/README.sample", "info", "info/exclude"),
    *("objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"),
)
"""What libgit2 makes in a new repository."""
_CONFIG = {"gc.auto": "0", "core.logAllRefUpdates": "false", "receive.denyDeletes": "true"}

# For commits and trees. The default is 256 MB, and a larger cache pays less.
pygit2.settings.cache_max_size(16 << 20)


def create(path: Path) -> None:
    """Create a bare repository, or complete an existing one; wait for others that do the same."""
    is_new = not (path / "HEAD").exists()
    for tries_left in reversed(range(_LOCK_TRIES)):
        try:
            repo = pygit2.init_repository(str(path), bare=True, initial_head=_UNBORN_HEAD)
            for key, value in _CONFIG.items():
                repo.config[key] = value
            break
        except (pygit2.GitError, OSError, KeyError, ValueError) as error:
            if "lock" not in str(error) or not tries_left:
                hint = refs.move_error_hint(str(error), refs.LOCK_HINT if _is_locked(error) else ROOM)
                raise StoreError(f"cannot create a store at {path}: {error}", hint) from error
            refs.delete_stale_locks(path, ["config", "HEAD"])
        time.sleep(_LOCK_WAIT)
    if is_new:  # libgit2 goes by the umask; nothing else is touched, as another process may be writing by now
        for name in _MADE:
            if (part := path / name).exists():
                part.chmod(0o700 if part.is_dir() else 0o600)


def _object_folders(path: Path) -> list[str]:
    """Return the repository's folder of objects, and those that it borrows from (gitrepository-layout(5))."""
    own = path / "objects"
    try:
        borrowed = (own / "info" / "alternates").read_bytes().splitlines()
    except OSError:
        borrowed = []
    return [str(own), *(str(own / os.fsdecode(line)) for line in borrowed)]


def is_trusted(path: Path) -> bool:
    """Return whether git would work in a repository of this owner, by the user's settings and sudo."""
    try:
        pygit2.Repository(str(path))
    except pygit2.GitError as error:
        return "not owned by" not in str(error)
    return True


class _LooseBackend(pygit2.OdbBackend):
    """libgit2's view of a folder of loose objects: its own reader never ends at one that is truncated."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def read_cb(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        return self._read(objects.read_loose, str(oid))

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        return self._read(objects.loose_header, str(oid))

    def _read(self, read: Callable[[str, str], tuple[str, T] | None], oid: str) -> tuple[int, T]:
        try:
            found = read(self._folder, oid)
        except ValueError as error:
            raise pygit2.GitError(str(error)) from error
        if found is None:
            raise KeyError(oid)
        return int(_KINDS[found[0]]), found[1]

    def read_prefix_cb(self, oid: str) -> tuple[int, bytes, pygit2.Oid]:
        kind, data = self.read_cb(oid)
        return kind, data, pygit2.Oid(hex=oid)

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        name = str(oid)
        return os.path.exists(f"{self._folder}/{name[:2]}/{name[2:]}")  # noqa: PTH110 - as in `read_loose`

    def exists_prefix_cb(self, oid: object) -> object:
        raise KeyError(oid)

    def refresh_cb(self) -> None:
        """Do nothing: nothing is remembered."""


class _PackBackend(pygit2.OdbBackend):
    """libgit2's view of the objects of a pack that is being written."""

    def __init__(self, pack: Pack) -> None:
        super().__init__()
        self._pack = pack

    def read_cb(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        kind, data = self._pack.read(str(oid))
        return int(_KINDS[kind]), data

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        kind, size = self._pack.header(str(oid))
        return int(_KINDS[kind]), size

    def read_prefix_cb(self, oid: str) -> tuple[int, bytes, pygit2.Oid]:
        """Read an object by its whole id: pygit2's `Repository.read` asks here for objects that it has not cached."""
        kind, data = self._pack.read(oid)
        return int(_KINDS[kind]), data, pygit2.Oid(hex=oid)

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        return str(oid) in self._pack

    def exists_prefix_cb(self, oid: object) -> object:
        raise KeyError(oid)

    def refresh_cb(self) -> None:
        """Do nothing: only this process writes the pack."""


class Repository(ObjectSource):
    """One open repository, not to be shared between threads.

    With `fsync`, each ref that it moves is on the disk with all objects that were written before.
    """

    def __init__(self, path: Path, *, fsync: bool = False) -> None:
        super().__init__()
        self.path = path
        self._paths = StorePaths(path)
        self._pending = objects.PendingObjects(path) if fsync else None
        self._generation, self.was_reopened = locks.prune_generation(self._paths), False
        with _translate_errors(f"cannot open the store at {path}", "`sessgit doctor` shows the cause."):
            self._open()
        self._lock: weakref.finalize[..., Repository] | None = None

    def begin_write(self) -> None:
        """Keep other processes from pruning until `release`. Every write does so."""
        if self._lock is not None:
            return
        self._lock = weakref.finalize(self, locks.release, locks.hold_off_prune(self._paths))
        if locks.prune_generation(self._paths) != self._generation:
            # libgit2 still believes in packs that are gone, and would base commits on objects in them.
            self.refresh_packs()

    def release(self) -> None:
        """End the write: refs lead to all objects that were written, or never will."""
        if self._pending is not None:
            self._pending.drop()
        if self._lock is not None:
            self._lock()
            self._lock = None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Write under the prune lock, which the caller holds. At the end, pruned objects are known to be gone."""
        self.release()
        self.refresh_packs()
        self._lock = weakref.finalize(self, lambda: None)
        try:
            yield
        finally:
            self.release()
            self.refresh_packs()

    def refresh_packs(self) -> None:
        """Forget all packs, and what was read from them: a new one may have the name of an old one."""
        self._repo.free()
        self._open()
        self._generation, self.was_reopened = locks.prune_generation(self._paths), True

    def _open(self) -> None:
        repo = pygit2.Repository(str(self.path))
        self._trees.clear()
        odb = pygit2.Odb()
        own, *_ = packs = [pygit2.OdbBackendPack(folder) for folder in _object_folders(self.path)]
        for backend in (*packs, *map(_LooseBackend, _object_folders(self.path))):
            odb.add_backend(backend, _PACK_PRIORITY)
        repo.set_odb(odb)
        if self._pending is not None:
            odb.add_backend(_LooseBackend(str(self._pending.folder)), _PACK_PRIORITY)
            # libgit2 looks at the option when it opens the refs, and at each object. Only refs are to be synced.
            with _FSYNC_OPTION_LOCK:
                pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
                repo.references.get("HEAD")
                pygit2.option(Option.ENABLE_FSYNC_GITDIR, False)
        self._read_packed = own.read  # a part of `odb`, so it must be released before that
        self._repo, self._odb = repo, odb

    def flush(self) -> None:
        """Sync all objects that were written and name them, before refs are moved by other means than `move`."""
        if self._pending is not None:
            with _translate_errors("cannot write to the store", ROOM):
                self._pending.flush()

    # Objects

    def write_blob(self, data: Bytes) -> str:
        return self._write("blob", data)

    def _write(self, kind: str, data: Bytes) -> str:
        """Write an object unless it exists, and return its id."""
        self.begin_write()
        oid = objects.object_id(kind, data)
        with _translate_errors("cannot write to the store", ROOM):
            folder = self.path / "objects"
            if self._pending is not None:
                self._pending.begin()
                folder = self._pending.folder
            if not self.has(oid):
                objects.write_object_file(folder, oid, kind, data)
            if self._pending is not None:
                self._pending.add(oid)
        return oid

    def edit_tree(self, base: str | None, changes: Mapping[str, Entry | None]) -> str:
        """Return the tree `base` with an entry at each path replaced, or removed; folders left empty go too.

        Raises StoreError for an entry whose object is missing, or whose name git refuses.
        """
        self.begin_write()
        with _translate_errors("cannot write to the store", ROOM):
            entries = dict(self._tree(base)) if base else {}
            nested: dict[bytes, dict[str, Entry | None]] = {}
            for path, entry in changes.items():
                first, _, rest = path.partition("/")
                name = first.encode()
                if rest:
                    nested.setdefault(name, {})[rest] = entry
                elif entry is None:
                    entries.pop(name, None)
                else:
                    self._check_written(entry[0])
                    entries[name] = objects.tree_entry(name, *entry)
            for name, inner in nested.items():
                mode, raw = entries.pop(name, (b"", b""))
                oid = self.edit_tree(raw.hex() if mode == objects.FOLDER_MODE else None, inner)
                if oid != objects.EMPTY_TREE:
                    entries[name] = objects.tree_entry(name, oid, True)
        oid = self._write("tree", objects.encode_tree(entries))
        self._keep_tree(oid, entries)
        return oid

    def _check_written(self, oid: str) -> None:
        """Raise KeyError for a missing object: nothing is written that leads to it."""
        if not self.has(oid):
            raise KeyError(oid)

    def write_commit(self, tree: str, parents: list[str], message: str, time: int) -> str:
        """Write a commit with the author and committer date `time`, in UTC; return its id. No ref points to it yet."""
        with _translate_errors("cannot write to the store", ROOM):
            for oid in (tree, *parents):
                self._check_written(oid)
            data = objects.encode_commit(tree, parents, AUTHOR, max(0, time), message)
        return self._write("commit", data)

    def data(self, kind: str, oid: str) -> bytes:
        try:
            actual, data = self._read(oid)
        except _READ_ERRORS as error:
            raise _unreadable_error(oid, error) from error
        if actual == kind:
            return data
        if kind == "commit":
            raise NotFoundError(f"{oid} is not a commit")
        raise StoreError(f"object {oid} is not a {'file' if kind == 'blob' else kind}")

    def _read(self, oid: str) -> tuple[str, bytes]:
        """Return the kind and the bytes of an object, verified by its id; libgit2 takes longer to verify it."""
        with suppress(*_READ_ERRORS):
            number, data = self._read_packed(oid)
            if objects.object_id(_NAMES[number], data) == oid:
                return _NAMES[number], data
        try:
            if loose := objects.read_loose(f"{self.path}/objects", oid):
                return loose
        except ValueError as error:
            raise pygit2.GitError(str(error)) from error
        number, data = self._repo.read(oid)  # for pending objects, and for what is wrong with others
        return _NAMES.get(number, ""), data

    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        with suppress(*_READ_ERRORS):
            kind, size = self._odb.read_header(oid)
            if kind == ObjectType.BLOB and size > objects.LARGE_SIZE:
                lines = objects.large_file_lines(self.path, oid, size, longest)
                if lines is not None:
                    return lines
        return self.blob(oid).split(b"\n")

    def peel(self, oid: str) -> str | None:
        """Return the commit that an object is, or that an annotated tag leads to, or None."""
        try:
            return str(self._repo[oid].peel(pygit2.Commit).id)
        except _READ_ERRORS:
            return None

    def has(self, oid: str) -> bool:
        return oid in self._odb

    def read_problem(self, oid: str) -> str:
        """Return ``"missing"`` or ``"damaged"`` if an object cannot be read, else ``""``."""
        try:
            self._read(oid)
        except (KeyError, ValueError):
            return "missing"
        except pygit2.GitError:
            return "damaged"
        return ""

    def first_parents(self, tip: str) -> Iterator[Commit]:
        """Yield the commit `tip` and its first parents, newest first.

        libgit2's own walk reads the whole history before it gives the first commit.
        """
        next_id: str | None = tip
        while next_id is not None:
            commit = self.commit(next_id)
            yield commit
            next_id = commit.parents[0] if commit.parents else None

    def since(self, tips: Iterable[str], known: Iterable[str]) -> Iterator[Commit]:
        """Yield the commits in the histories of `tips` that are in none of `known`, newest first."""
        with _translate_errors("cannot read the history of the store"):
            walk = self._repo.walk(None)
            for tip in tips:
                walk.push(tip)
            for tip in known:
                walk.hide(tip)
            for commit in walk:
                yield self.commit(str(commit.id))

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether `old` is the commit `new` or in its history."""
        if old == new:
            return True
        try:
            return self._repo.descendant_of(new, old)
        except _READ_ERRORS:  # one of them is missing, or no commit
            return False

    def merge_bases(self, a: str, b: str) -> list[str]:
        """Return the sorted common ancestors of two commits that are not ancestors of other common ones."""
        with _translate_errors("cannot read the history of the store"):
            parents = {commit.id: commit.parent_ids for commit in self._repo.walk(a)}
            common = {commit.id for commit in self._repo.walk(b) if commit.id in parents}
        # Every ancestor of a common ancestor is common too, so an older one is the parent of a common one.
        return sorted(map(str, common.difference(*(parents[oid] for oid in common))))

    # Refs

    def ref(self, name: str) -> str | None:
        """Return the object that a ref holds, or None."""
        return refs.read(self.path, name)

    def move(self, name: str, old: str | None, new: str | None) -> None:
        """Move a ref from `old` to `new`; None is no ref. Raises MovedError if it does not hold `old`, DamageError if
        its file holds no object id.

        All objects are flushed before. Another process that moves or packs the ref holds its lock file for a moment;
        the lock file of a killed process is deleted.
        """
        if new is not None:
            self.flush()
        for tries_left in reversed(range(_LOCK_TRIES)):
            try:
                with locks.ref_move_lock(self._paths):
                    self._move(name, old, new)
                    if self._pending is not None:
                        objects.flush_drive(self.path)
                    return
            except (pygit2.GitError, pygit2.AlreadyExistsError, OSError, ValueError) as error:
                locked = _is_locked(error) and not refs.is_denied(str(error))
                if refs.is_damaged(self.path, name):
                    raise DamageError(f"{name} is damaged: `sessgit doctor --fix` restores it") from error
                if (now := self.ref(name)) != old:
                    if now == new and isinstance(error, OSError) and not locked:
                        raise StoreError(f"{name} was moved, but may not be saved to disk: {error}", ROOM) from error
                    raise MovedError(f"another process moved {name}", "Try again.") from error
                if not locked or not tries_left:
                    hint = refs.LOCK_HINT if locked else refs.move_error_hint(str(error), ROOM)
                    raise StoreError(f"cannot move {name}: {error}", hint) from error
                refs.delete_stale_locks(self.path, [name])
                # After a delete that met a locked `packed-refs`, libgit2 skips the next one and reports success.
                self._open()
            time.sleep(_LOCK_WAIT)

    def _move(self, name: str, old: str | None, new: str | None) -> None:
        if old is None and new is not None:
            private_files.make_folder((self.path / name).parent)
            self._repo.create_reference_direct(name, new, False)
        else:
            reference = self._repo.references.get(name)
            if reference is None or str(reference.target) != old:
                raise MovedError(f"another process moved {name}", "Try again.")
            if new is None:
                reference.delete()
            else:
                reference.set_target(new)
        for path in (self.path / name, self.path / refs.PACKED):  # libgit2 goes by the umask
            with suppress(FileNotFoundError):
                path.chmod(0o600)


class PackedRepository(Repository):
    """A new repository whose objects all go into a pack, which the caller finishes."""

    def __init__(self, path: Path, pack: Pack) -> None:
        self._pack = pack
        super().__init__(path)

    def begin_write(self) -> None:
        """Do nothing: no other process writes here."""

    def has(self, oid: str) -> bool:
        return oid in self._pack

    def _open(self) -> None:
        # The only backend: libgit2 would look through the files of its own before each write.
        backend, self._odb = _PackBackend(self._pack), pygit2.Odb()
        self._odb.add_backend(backend, _PACK_PRIORITY)
        self._repo, self._read_packed = pygit2.Repository(str(self.path)), backend.read_cb
        self._repo.set_odb(self._odb)

    def _write(self, kind: str, data: Bytes) -> str:
        return self._pack.add(kind, data)


class Overlay(Repository):
    """A repository to which nothing is written: new objects stay in memory."""

    def __init__(self, path: Path) -> None:
        self._added = dict[str, tuple[str, bytes]]()
        super().__init__(path)

    def begin_write(self) -> None:
        """Do nothing: no other process needs to wait."""

    def has(self, oid: str) -> bool:
        return oid in self._added or super().has(oid)

    def data(self, kind: str, oid: str) -> bytes:
        added, data = self._added.get(oid, ("", b""))
        return data if added == kind else super().data(kind, oid)

    def _write(self, kind: str, data: Bytes) -> str:
        oid = objects.object_id(kind, data)
        if not super().has(oid):
            self._added[oid] = kind, bytes(data)
        return oid


def _is_locked(error: Exception) -> bool:
    """Return whether libgit2 met another process's lock file, when it looked for one or when it created its own."""
    words = str(error)
    return "failed to lock file" in words or ("failed to create locked file" in words and "File exists" in words)


def _unreadable_error(oid: str, error: Exception) -> UnreadableError:
    if isinstance(error, KeyError | ValueError):
        return UnreadableError(f"the store lacks the object {oid}", objects.VERIFY_HINT)
    return UnreadableError(f"cannot read the store: {error}", objects.VERIFY_HINT)


@contextmanager
def _translate_errors(message: str, hint: str = "") -> Iterator[None]:
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        raise StoreError(f"{message}: {error}", hint) from error
