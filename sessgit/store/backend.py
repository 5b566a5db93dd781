"""The only importer of pygit2: objects and refs of one bare repository, in plain values.

Object ids are 40 hex digits. Every error of the library leaves here as one of `sessgit.errors`. Objects are
written first; a ref is then moved by compare-and-swap, from the value that was read to the value that was written.
Where a store shall outlast a loss of power, they lie aside until just before that, and are then made to last at once.
"""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pygit2
from pygit2.enums import FileMode, ObjectType, Option

from sessgit.errors import ROOM, MovedError, NotFoundError, StoreError, UnreadableError
from sessgit.model import canonical
from sessgit.model.line_list import Bytes
from sessgit.store import locks, object_verify, refs
from sessgit.store.files import durable_write, large, private
from sessgit.store.layout import StorePaths

if TYPE_CHECKING:
    from sessgit.store.packing.pack_file import Pack

AUTHOR = ("sessgit", "sessgit@localhost")
_WRITE_TRIES = 5
_LOCK_TRIES = 300
_LOCK_WAIT = 0.01
_UNBORN_HEAD = "refs/heads/HEAD-stays-unborn"
_VERIFY_HINT = "`sessgit verify` names the damaged conversations, `sessgit repair` repairs each of them."
_BACKEND_PRIORITY = 5
"""The priority of the backend that new objects go to: libgit2 writes to the first one. Its own have 1 and 2."""
_KINDS = {"commit": ObjectType.COMMIT, "tree": ObjectType.TREE, "blob": ObjectType.BLOB}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_MOST_CACHED = 1024
_REFS_LOCK = Lock()
_READ_ERRORS = (KeyError, ValueError, pygit2.GitError)
_CONFIG = {"gc.auto": "0", "core.logAllRefUpdates": "false", "receive.denyDeletes": "true"}

# Of commits and trees: else it grows to 256 MB, and the larger it is, the less it pays.
pygit2.settings.cache_max_size(16 << 20)

Commit = object_verify.Commit
Entry = object_verify.Entry


def create(path: Path) -> None:
    """A new bare repository at `path`, or the one that is there made complete; who else is at it is waited for."""
    for tries_left in reversed(range(_LOCK_TRIES)):
        try:
            with private.files():
                repo = pygit2.init_repository(str(path), bare=True, initial_head=_UNBORN_HEAD)
                for key, value in _CONFIG.items():
                    repo.config[key] = value
            return
        except (pygit2.GitError, OSError, KeyError, ValueError) as error:
            if "lock" not in str(error) or not tries_left:
                hint = refs.move_error_hint(str(error), refs.LOCK_HINT if "lock" in str(error) else ROOM)
                raise StoreError(f"cannot create a store at {path}: {error}", hint) from error
            refs.delete_stale_locks(path, ["config", "HEAD"])
        time.sleep(_LOCK_WAIT)


def is_trusted(path: Path) -> bool:
    """Whether git would work in a repository of this owner, as the user's settings and sudo say."""
    try:
        pygit2.Repository(str(path))
    except pygit2.GitError as error:
        return "not owned by" not in str(error)
    return True


class _PackBackend(pygit2.OdbBackend):
    """libgit2's view of a pack that is being written: it writes objects there and reads them again."""

    def __init__(self, pack: Pack) -> None:
        super().__init__()
        self._pack = pack
        self._recent = OrderedDict[str, tuple[int, bytes]]()
        """The last trees and commits: the next commit is made from them."""

    def write_cb(self, oid: pygit2.Oid, data: bytes, kind: int) -> None:
        self._pack.add(_NAMES[ObjectType(kind)], bytes(data))
        self._recent[str(oid)] = kind, bytes(data)
        if len(self._recent) > _MOST_CACHED:
            self._recent.popitem(last=False)

    def read_cb(self, oid: pygit2.Oid | str) -> tuple[int, bytes]:
        name = str(oid)
        if name in self._recent:
            return self._recent[name]
        kind, data = self._pack.read(name)
        return int(_KINDS[kind]), data

    def read_header_cb(self, oid: pygit2.Oid) -> tuple[int, int]:
        kind, size = self._pack.header(str(oid))
        return int(_KINDS[kind]), size

    def read_prefix_cb(self, oid: object) -> tuple[int, bytes, object]:
        raise KeyError(oid)

    def exists_cb(self, oid: pygit2.Oid) -> bool:
        return str(oid) in self._pack

    def exists_prefix_cb(self, oid: object) -> object:
        raise KeyError(oid)

    def refresh_cb(self) -> None:
        """Nothing: only this process writes the pack."""


class Repository:
    """One open repository. Not to be shared between threads. With `fsync` each ref that it moves is on the disk then,
    and all that was written before. With `pack` all objects of a new repository are in that pack, which the caller
    finishes."""

    def __init__(self, path: Path, *, fsync: bool = False, pack: Pack | None = None) -> None:
        self.path = path
        self._beside = StorePaths(path)
        self._pack = pack
        self._aside = durable_write.PendingObjects(path) if fsync else None
        self._pruned, self.was_reopened = locks.prune_generation(self._beside), False
        with _translate_errors(f"cannot open the store at {path}", "`sessgit doctor` shows the cause."):
            self._open()
        self.written = 0
        """Objects that this process asked to be written: the measure of work of a recording."""
        self._lock: weakref.finalize[..., Repository] | None = None

    def begin_write(self) -> None:
        """Keeps others from pruning until `release`; whatever is written does so too."""
        if self._lock is not None:
            return
        self._lock = weakref.finalize(self, locks.release, locks.hold_off_prune(self._beside))
        if locks.prune_generation(self._beside) != self._pruned:
            # libgit2 goes on to believe in packs that are no more, and lets commits stand on what they held.
            self.refresh_packs()

    def release(self) -> None:
        """Tells that refs lead to all that was written, or never will."""
        if self._aside is not None:
            self._aside.drop()
        if self._lock is not None:
            self._lock()
            self._lock = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """For who holds the lock of whoever prunes: what is written inside needs no other one, and what was pruned is
        known to be gone at the end."""
        self.release()
        self.refresh_packs()
        self._lock = weakref.finalize(self, lambda: None)
        try:
            yield
        finally:
            self.release()
            self.refresh_packs()

    def refresh_packs(self) -> None:
        """Forgets which packs there were."""
        self._open()
        self._pruned, self.was_reopened = locks.prune_generation(self._beside), True

    def _open(self) -> None:
        repo = pygit2.Repository(str(self.path))
        if self._pack is not None:
            # Alone: before each write libgit2 would look through the files of its own backends once more.
            written, self._odb, self._repo = _PackBackend(self._pack), pygit2.Odb(), repo
            self._odb.add_backend(written, _BACKEND_PRIORITY)
            repo.set_odb(self._odb)
            self._sources: list[object_verify.ObjectSource] = [written.read_cb]
            return
        if self._aside is not None:
            repo.odb.add_backend(pygit2.OdbBackendLoose(str(self._aside.folder), -1, False), _BACKEND_PRIORITY)
            # Looked at when the first ref is read, by what writes refs, and at each object, by what writes those.
            with _REFS_LOCK:
                pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
                repo.references.get("HEAD")
                pygit2.option(Option.ENABLE_FSYNC_GITDIR, False)
        odb = repo.odb
        sources = [backend.read for backend in odb.backends]  # parts of what `odb` holds: to be gone before it
        packs = sources.pop(self._aside is not None)  # what is aside is little, and comes first there
        self._sources = [packs, object_verify.loose_source(self.path / "objects"), *sources]
        self._repo, self._odb = repo, odb

    def flush(self) -> None:
        """All that was written is on the disk, and everybody's: goes before refs that others move. Without `fsync`
        nothing."""
        if self._aside is not None:
            with _translate_errors("cannot write to the store", ROOM):
                self._aside.flush()

    def _write(self, make: Callable[[], object]) -> str:
        """The id of the object that `make` makes; done again where git took its folder away, as packing does with those
        that it has emptied."""
        self.written += 1
        if self._pack is not None:
            with _translate_errors("cannot write to the store", ROOM):
                return str(make())
        self.begin_write()
        with _translate_errors("cannot write to the store", ROOM), private.files():
            if self._aside is not None:
                self._aside.begin()
            for tries_left in reversed(range(_WRITE_TRIES)):
                try:
                    oid = str(make())
                    break
                except pygit2.GitError as error:
                    if "failed to rename lockfile" not in str(error) or not tries_left:
                        raise
            if self._aside is not None:
                self._aside.note(oid)
            return oid

    # Objects

    def write_blob(self, data: Bytes) -> str:
        if self._pack is not None:  # past the library, which would hash and copy it once more
            self.written += 1
            return self._pack.add("blob", data)
        if len(data) <= large.LARGE_SIZE:
            return self._write(lambda: self._repo.create_blob(bytes(data)))
        folder = self._aside.folder if self._aside is not None else self.path / "objects"
        return self._write(lambda: large.write_blob(folder, data, self.has))

    def edit_tree(self, base: str | None, changes: Mapping[str, Entry | None]) -> str:
        """The tree `base` with each path replaced by an object, or taken out; folders left empty go too."""
        nested: dict[str, dict[str, Entry | None]] = {}
        direct: dict[str, Entry | None] = {}
        for path, value in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                direct[name] = value
        for name, inner in nested.items():
            below = self.entry(base, name) if base else None
            oid = self.edit_tree(below[0] if below and below[1] else None, inner)
            direct[name] = (oid, True) if oid != object_verify.EMPTY_TREE else None
        self.begin_write()
        with _translate_errors("cannot write to the store", ROOM):
            builder = self._repo.TreeBuilder(base) if base else self._repo.TreeBuilder()
            for name, value in direct.items():
                if value is not None:
                    builder.insert(name, value[0], FileMode.TREE if value[1] else FileMode.BLOB)
                elif builder.get(name) is not None:
                    builder.remove(name)
        return self._write(builder.write)

    def write_commit(self, tree: str, parents: list[str], message: str, time: int) -> str:
        """A commit that no ref points to yet; author and committer date are `time`, in UTC, and never before 1970."""
        if time >> 32:  # the library would write 32 bits of it
            said = (tree, parents, AUTHOR, max(0, time), message)
            return self._write(lambda: self._repo.write(ObjectType.COMMIT, object_verify.encode_commit(*said)))
        who = pygit2.Signature(*AUTHOR, time, 0)
        return self._write(lambda: self._repo.create_commit(None, who, who, message, tree, list(parents)))

    def tree(self, oid: str) -> dict[str, Entry]:
        """The entries of a tree as `name: (object id, is a tree)`."""
        found = self._object(oid)
        if not isinstance(found, pygit2.Tree):
            raise StoreError(f"object {oid} is not a tree")
        return {str(e.name): (str(e.id), isinstance(e, pygit2.Tree)) for e in found}

    def irregular_entries(self, tree: str) -> list[str]:
        """The names in a tree of what is neither a plain file nor a folder: a link, a program, a submodule."""
        found = self._object(tree)
        entries = found if isinstance(found, pygit2.Tree) else ()
        return [str(e.name) for e in entries if e.filemode not in (FileMode.BLOB, FileMode.TREE)]

    def files(self, tree: str, prefix: str = "") -> dict[str, Entry]:
        """Every file below a tree by its path, in the form that `edit_tree` takes."""
        out: dict[str, Entry] = {}
        for name, (oid, is_tree) in self.tree(tree).items():
            path = f"{prefix}/{name}" if prefix else name
            out |= self.files(oid, path) if is_tree else {path: (oid, False)}
        return out

    def entry(self, tree: str, path: str) -> Entry | None:
        """The object at a path below a tree and whether it is a tree, or None."""
        found = self._object(tree)
        if not isinstance(found, pygit2.Tree):
            return None
        try:
            entry = found[path]
        except KeyError:
            return None
        except _READ_ERRORS as error:
            raise _unreadable_error(tree, error) from error
        return str(entry.id), isinstance(entry, pygit2.Tree)

    def blob(self, oid: str) -> bytes:
        """The bytes of a file."""
        proved = object_verify.verified_file(self._sources, oid, _READ_ERRORS)
        if proved is not None:
            return proved
        try:
            kind, data = self._repo.read(oid)  # which tells what is wrong
        except _READ_ERRORS as error:
            raise _unreadable_error(oid, error) from error
        if kind != ObjectType.BLOB:
            raise StoreError(f"object {oid} is not a file")
        return data

    def lines(self, oid: str, longest: float = float("inf")) -> list[bytes]:
        """What `split` makes of a file at its newlines, of a large one with nothing in the place of longer lines."""
        found = large.read_lines(self.path, self._odb.read_header, oid, longest, _READ_ERRORS)
        return self.blob(oid).split(b"\n") if found is None else found

    def commit(self, oid: str) -> Commit:
        """The commit; raises NotFoundError where the object is none, UnreadableError."""
        found = self._object(oid)
        if not isinstance(found, pygit2.Commit):
            raise NotFoundError(f"{oid} is not a commit")
        return _commit_from_pygit2(found)

    def signatures(self, oid: str) -> list[bytes]:
        """Who made a commit and who put it there, each with the time, as git has it."""
        head = self._repo.read(oid)[1].partition(b"\n\n")[0].split(b"\n")
        return [line.partition(b" ")[2] for line in head if line.startswith((b"author ", b"committer "))]

    def peel(self, oid: str) -> str | None:
        """The commit that an object is, or that an annotated tag leads to; None where there is none."""
        try:
            return str(self._repo[oid].peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def has(self, oid: str) -> bool:
        return oid in self._repo

    def forget(self) -> None:
        """Believes nothing of what was read before: of a pack made anew, which has the same name, neither."""
        self._repo.free()
        self.refresh_packs()

    def read_problem(self, oid: str) -> str:
        """``"missing"`` or ``"damaged"`` where an object cannot be read, else ``""``."""
        try:
            self._repo.read(oid)
        except (KeyError, ValueError):
            return "missing"
        except pygit2.GitError:
            return "damaged"
        return ""

    def first_parents(self, tip: str) -> Iterator[Commit]:
        """The commit `tip` and its first parents, newest first, read one at a time as they are asked for.

        libgit2's own walk reads the whole history before it gives the first commit.
        """
        following: str | None = tip
        while following is not None:
            commit = self.commit(following)
            yield commit
            following = commit.parents[0] if commit.parents else None

    def since(self, tips: Iterable[str], known: Iterable[str]) -> Iterator[Commit]:
        """The commits in the histories of the tips that those of the known ones lack, each once, newest first."""
        with _translate_errors("cannot read the history of the store"):
            walk = self._repo.walk(None)
            for tip in tips:
                walk.push(tip)
            for tip in known:
                walk.hide(tip)
            for commit in walk:
                yield _commit_from_pygit2(commit)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether the history of the commit `new` leads to `old`; also of the commit itself."""
        if old == new:
            return True
        try:
            return self._repo.descendant_of(new, old)
        except (pygit2.GitError, KeyError, ValueError):  # one of them is missing, or no commit
            return False

    def merge_bases(self, a: str, b: str) -> list[str]:
        """The newest commits that the histories of both lead to, sorted; none of them leads to another."""
        with _translate_errors("cannot read the history of the store"):
            found = object_verify.first_known_commits(b, {str(c.id) for c in self._repo.walk(a)}, self.commit)
        return sorted(one for one in found if not any(one != other and self.is_ancestor(one, other) for other in found))

    def _object(self, oid: str) -> pygit2.Object:
        try:
            return self._repo[oid]
        except _READ_ERRORS as error:
            raise _unreadable_error(oid, error) from error

    # Refs

    def ref(self, name: str) -> str | None:
        """The commit that a ref points to, or None."""
        with _translate_errors("cannot read the refs of the store"):
            found = self._repo.references.get(name)
            return None if found is None else str(found.resolve().target)

    def move(self, name: str, old: str | None, new: str | None) -> None:
        """Moves a ref from `old` to `new`, where None is no ref; raises MovedError if it no longer holds `old`.

        Who else is just moving the ref, or git packing it, holds its lock file for a moment: that is waited for. The
        lock of a process that was killed is taken away. What was written is settled before.
        """
        if new is not None:
            self.flush()
        for tries_left in reversed(range(_LOCK_TRIES)):
            try:
                with locks.ref_move_lock(self._beside), private.files():
                    self._move(name, old, new)
                    if self._aside is not None:
                        durable_write.flush_drive(self.path)
                    return
            except (pygit2.GitError, pygit2.AlreadyExistsError, OSError, ValueError) as error:
                if (now := self.ref(name)) != old:
                    if now == new and isinstance(error, OSError):
                        raise StoreError(f"{name} was moved, but may not be saved to disk: {error}", ROOM) from error
                    raise MovedError(f"another process moved {name}", "Try again.") from error
                locked = "lock" in str(error) and not refs.is_denied(str(error))
                if not locked or not tries_left:
                    hint = refs.LOCK_HINT if locked else refs.move_error_hint(str(error), ROOM)
                    raise StoreError(f"cannot move {name}: {error}", hint) from error
                refs.delete_stale_locks(self.path, [name])
                # Where a delete found `packed-refs` locked, libgit2 passes over the next one and calls it done.
                self._open()
            time.sleep(_LOCK_WAIT)

    def _move(self, name: str, old: str | None, new: str | None) -> None:
        if old is None and new is not None:
            self._repo.create_reference_direct(name, new, False)
            return
        reference = self._repo.references.get(name)
        if reference is None or str(reference.target) != old:
            raise MovedError(f"another process moved {name}", "Try again.")
        if new is None:
            reference.delete()
        else:
            reference.set_target(new)


def _commit_from_pygit2(found: pygit2.Commit) -> Commit:
    parents, message = tuple(map(str, found.parent_ids)), found.raw_message.decode("utf-8", "replace")
    return Commit(str(found.id), str(found.tree_id), parents, message, int(canonical.nearest_time(found.commit_time)))


def _unreadable_error(oid: str, error: Exception) -> UnreadableError:
    if isinstance(error, KeyError | ValueError):
        return UnreadableError(f"the store lacks the object {oid}", _VERIFY_HINT)
    return UnreadableError(f"cannot read the store: {error}", _VERIFY_HINT)


@contextmanager
def _translate_errors(message: str, hint: str = "") -> Iterator[None]:
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        raise StoreError(f"{message}: {error}", hint) from error
