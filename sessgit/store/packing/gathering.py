"""A store whose new objects are gathered in a pack, and whose refs stay as they are until they are moved together.

Whoever records into it sees what it wrote; nobody else does before the pack is in its place and the refs have moved.
It begins with no branch at all, and holds only new sessions that leave none which are there.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from sessgit.errors import MovedError, StoreError
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.unjoined import Bytes
from sessgit.store import backend, layout, proving
from sessgit.store.backend import AUTHOR, Commit, Entry
from sessgit.store.index import Index
from sessgit.store.indexed import derived, tables
from sessgit.store.packing.pack import BLOB, COMMIT, TREE, Pack
from sessgit.store.store import Store

Rows = Mapping[str, list[tuple[Any, ...]]]
"""By the name of a table of the index all its rows."""

_FILE = b"100644"
_FOLDER = b"40000"
_REMEMBERED = 1024
_SMALL = 16 << 10

_Tree = dict[bytes, bytes]
"""The entries of a tree as git writes them, by name; that of a folder has a slash behind it, as git sorts them."""
T = TypeVar("T")


class Gathering(backend.Repository):
    """A repository whose new objects go into a pack in a folder."""

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__(path)
        self._pack = Pack(folder / "gathered.pack")
        self._trees = _Recent[_Tree](_REMEMBERED)
        self._blobs = _Recent[bytes](_REMEMBERED)
        self._commits: dict[str, Commit] = {}
        self.branches: dict[str, str] = {}
        """The refs that were made, and the commits that they hold."""

    def hold(self) -> None:
        """Nothing: whoever moves the refs keeps others from pruning until then."""

    def release(self) -> None:
        """Nothing, likewise."""

    def finish(self) -> str:
        """Ends the pack, on the disk with its index when it returns; its name, or ``""`` where nothing was written."""
        if len(self._pack):
            return self._pack.finish()
        self._pack.close()
        return ""

    # Objects

    def write_blob(self, data: Bytes) -> str:
        self.written += 1
        oid = self._pack.add(BLOB, data)
        if isinstance(data, bytes) and len(data) <= _SMALL:
            self._blobs.keep(oid, data)
        return oid

    def edit_tree(self, base: str | None, changes: Mapping[str, Entry | None]) -> str:
        nested: dict[str, dict[str, Entry | None]] = {}
        known = self._tree(base) if base else {}
        entries = dict(known)
        for path, value in changes.items():
            name, _, rest = path.partition("/")
            if rest:
                nested.setdefault(name, {})[rest] = value
            else:
                _put(entries, name, value)
        for name, inner in nested.items():
            below = _entry(known, name)
            oid = self.edit_tree(below[0] if below and below[1] else None, inner)
            _put(entries, name, (oid, True) if self._tree(oid) else None)
        self.written += 1
        oid = self._pack.add(TREE, b"".join([entries[key] for key in sorted(entries)]))
        self._trees.keep(oid, entries)
        return oid

    def write_commit(self, tree: str, parents: list[str], message: str, time: int) -> str:
        self.written += 1
        try:
            data = proving.commit(tree, parents, AUTHOR, max(0, time), message)
        except UnicodeEncodeError as error:
            raise StoreError(f"cannot write to the store: {error}") from error
        oid = self._pack.add(COMMIT, data)
        self._commits[oid] = Commit(oid, tree, tuple(parents), message, time)
        return oid

    def tree(self, oid: str) -> dict[str, Entry]:
        return {key.rstrip(b"/").decode(): _read(raw) for key, raw in self._tree(oid).items()}

    def entry(self, tree: str, path: str) -> Entry | None:
        found: Entry | None = (tree, True)
        for name in path.split("/"):
            if found is None or not found[1]:
                return None
            found = _entry(self._tree(found[0]), name)
        return found

    def blob(self, oid: str) -> bytes:
        known = self._blobs.get(oid)
        if known is not None:
            return known
        kind, data = self._read(oid)
        if kind != BLOB:
            raise StoreError(f"object {oid} is not a file")
        return data

    def commit(self, oid: str) -> Commit:
        return self._commits[oid] if oid in self._commits else super().commit(oid)

    def has(self, oid: str) -> bool:
        return oid in self._pack or super().has(oid)

    def is_ancestor(self, old: str, new: str) -> bool:
        waiting, met = [new], set[str]()
        while waiting:
            oid = waiting.pop()
            if oid == old:
                return True
            if oid not in met and oid in self._commits:
                met.add(oid)
                waiting += self._commits[oid].parents
        return False

    def _tree(self, oid: str) -> _Tree:
        """The entries of a tree, which are not to be changed."""
        known = self._trees.get(oid)
        if known is None:
            if oid not in self._pack:
                entries: _Tree = {}
                for name, entry in super().tree(oid).items():
                    _put(entries, name, entry)
                return entries
            kind, data = self._read(oid)
            if kind != TREE:
                raise StoreError(f"object {oid} is not a tree")
            known = _parsed(data)
            self._trees.keep(oid, known)
        return known

    def _read(self, oid: str) -> tuple[str, bytes]:
        return self._pack.read(oid) if oid in self._pack else (BLOB, super().blob(oid))

    # Refs

    def ref(self, name: str) -> str | None:
        return self.branches.get(name)

    def move(self, name: str, old: str | None, new: str | None) -> None:
        if self.branches.get(name) != old:
            raise MovedError(f"{name} was moved by someone else", "Try again.")
        if new is None:
            del self.branches[name]
        else:
            self.branches[name] = new


class GatheringStore(Store):
    """A store that is written so. What the recorder keeps beside it goes into `folder` as well."""

    repo: Gathering

    def __init__(self, path: Path, folder: Path) -> None:
        super().__init__(path, Gathering(path, folder))
        self.beside.state = folder
        self._states: dict[str, Session] = {}

    def branches(self, session: str) -> dict[str, str]:
        own = {ref.removeprefix(layout.HEADS): tip for ref, tip in self.repo.branches.items()}
        return {branch: tip for branch, tip in own.items() if layout.session_of(branch) == session}

    def ref(self, name: str) -> str | None:
        return self.repo.branches.get(name)

    def state(self, commit: str) -> Session:
        return self._states.get(commit) or super().state(commit)

    def write_commit(
        self,
        base: str | None,
        changes: Mapping[str, Entry | None],
        state: Session,
        message: Message,
        parents: Sequence[str],
        time: int,
    ) -> str:
        commit = super().write_commit(base, changes, state, message, parents, time)
        if sessions.is_kept_whole(state):
            self._states[commit] = state
            if len(self._states) > _REMEMBERED:
                del self._states[next(iter(self._states))]
        return commit


class GatheringIndex(Index):
    """The index of just what such a store gathers, in memory."""

    def __init__(self, store: GatheringStore) -> None:
        self.path = store.path
        self.damaged = {}
        self.open_store = lambda: store
        self.tips = partial(_tips, store)
        self.tags = partial(dict[str, str])
        self.here = str
        self._db = derived.in_memory(tables.INDEX)
        weakref.finalize(self, self._db.close)

    def rows(self) -> Rows:
        """All of it, for the index that lasts."""
        return {table: self._db.execute(f"SELECT * FROM {table}").fetchall() for table in tables.INDEX.tables}

    def first_prompts(self) -> set[str]:
        """The uuids of the prompts with which branches begin."""
        return {prompt for (prompt,) in self._db.execute("SELECT prompt FROM turns WHERE turn = 1")}


def take(index: Index, rows: Rows) -> None:
    """Adds the rows to the index, where their branches are in the store now; what cannot be added is read from there
    when it is asked for."""
    with suppress(sqlite3.Error), index._db as db:
        db.execute("BEGIN IMMEDIATE")
        for table, values in rows.items():
            if values:
                places = ",".join("?" * len(values[0]))
                db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", values)


def _tips(store: GatheringStore, session: str | None = None) -> dict[str, tuple[str, bool]]:
    own = {ref.removeprefix(layout.HEADS): (tip, False) for ref, tip in store.repo.branches.items()}
    return {branch: at for branch, at in own.items() if session is None or layout.session_of(branch) == session}


class _Recent(Generic[T]):
    """What was kept last, by its id."""

    def __init__(self, most: int) -> None:
        self._most, self._known = most, OrderedDict[str, T]()

    def get(self, oid: str) -> T | None:
        return self._known.get(oid)

    def keep(self, oid: str, value: T) -> None:
        self._known[oid] = value
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _put(entries: _Tree, name: str, entry: Entry | None) -> None:
    """Gives a tree an entry of this name, or none."""
    plain = name.encode("utf-8", "surrogatepass")
    entries.pop(plain, None)
    entries.pop(plain + b"/", None)
    if entry is None:
        return
    plain = _checked(name)
    oid, is_tree = entry
    entries[plain + b"/" if is_tree else plain] = b"%s %s\0%s" % (
        _FOLDER if is_tree else _FILE, plain, bytes.fromhex(oid),
    )  # fmt: skip


def _entry(entries: _Tree, name: str) -> Entry | None:
    plain = name.encode("utf-8", "surrogatepass")
    raw = entries.get(plain) or entries.get(plain + b"/")
    return None if raw is None else _read(raw)


def _read(raw: bytes) -> Entry:
    return raw[-20:].hex(), raw.startswith(_FOLDER)


def _parsed(data: bytes) -> _Tree:
    entries: _Tree = {}
    start = 0
    while start < len(data):
        end = data.index(b"\0", start)
        mode, _, name = data[start:end].partition(b" ")
        entries[name + b"/" if mode == _FOLDER else name] = data[start : end + 21]
        start = end + 21
    return entries


def _checked(name: str) -> bytes:
    """The name in UTF-8, if git takes it for an entry of a tree."""
    if name in ("", ".", "..") or name.lower() == ".git" or "\0" in name:
        raise StoreError(f"cannot write to the store: “{name}” is no name for a file")
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise StoreError(f"cannot write to the store: {error}") from error
