"""A store, opened: sessions and turns read from commits, and commits made of them.

Reading goes by commit: what a commit holds never changes, so whoever has its id needs no lock.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.errors import (
    ROOM,
    ConflictError,
    DamageError,
    NewerStoreError,
    NotFoundError,
    StoreError,
    UnreadableError,
)
from sessgit.model import long_strings
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from sessgit.model.line_list import Bytes
from sessgit.store import layout, refs
from sessgit.store.files import owner, private

if TYPE_CHECKING:
    from sessgit.store import backend


_LOST_KEY_HINT = "`sessgit doctor --fix` creates a new one; then purge those values again."
_UNREADABLE_KEY_HINT = "sessgit doctor --fix makes a new one where it is gone."
_MOST_DIGITS = 10
_MOST_STATES = 256
_OTHER_FOLDER_HINT = "Name another folder in SESSGIT_STORE."
HEAD = b"ref: refs/heads/HEAD-stays-unborn\n"
"""What the file of that name holds in every store."""


@dataclass(frozen=True, slots=True)
class TurnLines:
    """The lines of a recorded turn, whole, without their newlines."""

    before: list[bytes]
    body: list[bytes]


def create_store(path: Path) -> None:
    """Makes an empty store at `path`, readable by its owner alone; one that is there is made complete.

    Somebody's own repository, or the work tree of one, is refused.
    """
    import secrets

    from sessgit.store import backend

    if (path / ".git").exists() or ((path / "HEAD").exists() and not _is_sessgit_store(path)):
        raise ConflictError(f"{path} is a git repository, but not a store", _OTHER_FOLDER_HINT)
    try:
        private.folder(path)
        owner.check_owner(path)
        path.chmod(0o700)
        backend.create(path)
        (path / "config").chmod(0o600)  # the library makes it one that can be run
        beside = layout.StorePaths(path)
        for folder in (beside.spool, beside.state, beside.locks):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not beside.ignore.exists():
            write_private(beside.ignore, b"*\n")
        if not beside.key.exists():
            if beside.forbidden.exists():
                raise StoreError("the store's key is missing, so purged values cannot be recognized", _LOST_KEY_HINT)
            write_private(beside.key, secrets.token_bytes(32), lasting=True, first=True)
    except OSError as error:
        hint = _OTHER_FOLDER_HINT if isinstance(error, FileExistsError | NotADirectoryError) else ROOM
        raise StoreError(f"cannot create a store at {path}: {error.strerror or error}", hint) from error


def _is_sessgit_store(path: Path) -> bool:
    try:
        return "HEAD-stays-unborn" in (path / "HEAD").read_text("utf-8", "replace")
    except OSError:
        return False


def store_exists(path: Path) -> bool:
    """Whether git would take the folder for a repository; raises OSError where that may not be asked."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir()


def missing_parts(path: Path) -> list[str]:
    """What of `HEAD` and `objects` is missing where the rest of a store is there, or can be none of a repository."""
    if not any((path / name).exists() for name in ("objects", "refs/heads", "packed-refs", "operations.jsonl")):
        return []
    try:
        held = (path / "HEAD").read_bytes()
    except OSError:
        held = b""
    lacks = [] if held.startswith(b"ref: refs/") else ["HEAD"]
    return lacks if (path / "objects").is_dir() else [*lacks, "objects"]


def write_private(path: Path, data: bytes, *, lasting: bool = False, first: bool = False) -> None:
    """Puts the bytes in the place of a file in one step, readable by its owner alone; with `lasting` they are on the
    disk then. Without, a loss of power may leave the file empty: that is for what can be made anew. With `first` the
    file of whoever was first stays."""
    beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(handle)
        if not first or not _is_in_place(beside, path):
            beside.replace(path)
        if lasting:
            _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror or error}", ROOM) from error


def _is_in_place(beside: Path, path: Path) -> bool:
    """Whether a file stands in its place now, this one or one that was there; not where there are no hard links."""
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP):
            return False
        raise
    beside.unlink()
    return True


def _sync_folder(path: Path) -> None:
    with suppress(OSError):  # a folder cannot be synced everywhere
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Store:
    """An open store. `repo` moves its refs; everything else here reads or makes objects."""

    def __init__(self, path: Path, repo: backend.Repository | None = None, *, fsync: bool = False) -> None:
        if not store_exists(path):
            raise NotFoundError(f"there is no store at {path}", "sessgit install makes one and turns recording on.")
        # Loaded where a repository is opened: what only asks the index goes without the library.
        from sessgit.store import backend

        owner.check_owner(path)
        self.path = path
        self.beside = layout.StorePaths(path)
        self.repo = repo or backend.Repository(path, fsync=fsync)
        self._known_format = set[str]()
        """The files that say so: they are all alike."""
        self._states = dict[str, Session]()
        """The states of the last commits that were written here: the next commit is made from one of them."""
        self._agents = dict[str, str]()
        self.commit = lru_cache(maxsize=4096)(self.repo.commit)
        self.tree = lru_cache(maxsize=4096)(self._tree)
        """The tree of a commit, once its format is known to be one that this program reads."""
        self.message = lru_cache(maxsize=4096)(lambda oid: messages.parse_message(self.commit(oid).message))

    @contextmanager
    def still_there(self) -> Iterator[None]:
        """Raises ConflictError where something is missing inside and the store was pruned, or purged, since it was
        opened: for who had to wait for that, and was told before what to work on."""
        try:
            yield
        except StoreError as error:
            is_missing = isinstance(error, UnreadableError) or isinstance(error.__cause__, KeyError)
            if not is_missing or not self.repo.was_reopened:
                raise
            raise ConflictError("the data was just purged or pruned", "Try again.") from error

    # Reading

    def branches(self, session: str) -> dict[str, str]:
        """The branches of a session that are not archived, and their tips."""
        return refs.session_tips(self.path, session)

    def ref(self, name: str) -> str | None:
        """The object that a ref holds, or None."""
        return refs.read(self.path, name)

    def state(self, commit: str) -> Session:
        """The state of the session as of a commit."""
        if commit in self._states:
            return self._states[commit]
        tree = self.tree(commit)
        entry = self.repo.entry(tree, layout.STATE)
        if entry is None:
            raise DamageError(f"commit {commit} has no {layout.STATE}")
        try:
            return sessions.loads(json.loads(self.repo.blob(entry[0])))
        except (ValueError, RecursionError) as error:
            raise DamageError(f"{layout.STATE} of commit {commit} is not JSON: {error}") from error

    def agent(self, session: str, commit: str) -> str:
        """The name of the agent that a session was held with, as any commit of it says."""
        if session not in self._agents:
            self._agents[session] = self.state(commit).agent
        return self._agents[session]

    def _tree(self, commit: str) -> str:
        tree = self.commit(commit).tree
        entry = self.repo.entry(tree, layout.FORMAT_FILE)
        if entry and entry[0] in self._known_format:
            return tree
        version = self.repo.blob(entry[0]).strip() if entry else b"none"
        if entry and version == str(layout.FORMAT).encode():
            self._known_format.add(entry[0])
            return tree
        if version.isdigit() and len(version) < _MOST_DIGITS and int(version) > layout.FORMAT:
            raise NewerStoreError(
                f"the store is in format {version.decode()}, this sessgit knows format {layout.FORMAT}",
                "Install a newer sessgit.",
            )
        raise DamageError(f"commit {commit} has no known format")

    def lines(self, commit: str, number: int, longest: float = float("inf")) -> TurnLines:
        """The lines of turn `number` as of a commit, long strings filled in; in the place of one of a large turn that
        is longer than that, as it is stored, there is an empty one."""
        folder = self.folder(commit, number)
        texts_tree = folder.get(layout.TEXTS)
        stored = self.repo.tree(texts_tree[0]) if texts_tree else {}
        before, body = (self._lines(folder, name, longest) for name in (layout.BEFORE, layout.BODY))
        if not stored:
            return TurnLines(before, body)
        held = {oid: self.repo.blob(oid) for oid in {oid for oid, _ in stored.values()}}  # a text may have two names
        filling = {name: held[oid] for name, (oid, _) in stored.items()}
        return TurnLines(long_strings.fill_long_strings(before, filling), long_strings.fill_long_strings(body, filling))

    def cells(self, commit: str, number: int) -> list[Cell]:
        """The cells of turn `number` as of a commit; raises DamageError where they are no cells."""
        lines = _split_lines(self._file(self.folder(commit, number), layout.CELLS))
        try:
            return [Cell.from_json(json.loads(line)) for line in lines]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise DamageError(
                f"{layout.CELLS} of turn {number} is damaged: {error}", "sessgit restore --verify checks the rest."
            ) from error

    def folder(self, commit: str, number: int) -> dict[str, tuple[str, bool]]:
        """The entries of a turn's folder as of a commit."""
        entry = self.repo.entry(self.tree(commit), layout.turn_folder(number))
        if entry is None:
            raise NotFoundError(f"commit {commit[:12]} has no turn {number}")
        return self.repo.tree(entry[0])

    def tail(self, commit: str) -> bytes:
        """The bytes behind the last turn's body, as far as they are recorded."""
        entry = self.repo.entry(self.tree(commit), layout.TAIL)
        return self.repo.blob(entry[0]) if entry else b""

    def tail_lines(self, commit: str) -> list[bytes]:
        """What `split` makes of them at their newlines."""
        entry = self.repo.entry(self.tree(commit), layout.TAIL)
        return self.repo.lines(entry[0]) if entry else [b""]

    def _file(self, folder: Mapping[str, tuple[str, bool]], name: str) -> bytes:
        entry = folder.get(name)
        return self.repo.blob(entry[0]) if entry else b""

    def _lines(self, folder: Mapping[str, tuple[str, bool]], name: str, longest: float) -> list[bytes]:
        entry = folder.get(name)
        return self.repo.lines(entry[0], longest)[:-1] if entry else []

    # Writing

    def write_folder(self, files: Mapping[str, Bytes], kept: Mapping[str, tuple[str, bool]] | None = None) -> str:
        """A tree of files by path; `kept` are entries taken over as they are."""
        changes: dict[str, tuple[str, bool] | None] = dict(kept or {})
        changes.update({path: (self.repo.write_blob(data), False) for path, data in files.items()})
        return self.repo.edit_tree(None, changes)

    def write_commit(
        self,
        base: str | None,
        changes: Mapping[str, tuple[str, bool] | None],
        state: Session,
        message: Message,
        parents: Sequence[str],
        time: int,
    ) -> str:
        """A commit whose tree is that of the commit `base` with changes and a new state; no ref is moved."""
        blobs = {layout.STATE: (self.repo.write_blob(sessions.dumps(state)), False)}
        if base is None:
            blobs[layout.FORMAT_FILE] = (self.repo.write_blob(b"%d\n" % layout.FORMAT), False)
        tree = self.repo.edit_tree(self.commit(base).tree if base else None, {**changes, **blobs})
        commit = self.repo.write_commit(tree, list(parents), messages.format_message(message), time)
        if sessions.survives_round_trip(state):
            self._states[commit] = state
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]
        return commit

    def hmac(self, parts: Iterable[bytes]) -> str:
        """A keyed hash that only this machine can make: it proves original bytes without telling them.

        Raises StoreError where the key cannot be read.
        """
        import hmac

        try:
            key = self.beside.key.read_bytes()
        except OSError as error:
            raise StoreError(f"cannot read the store's key: {error.strerror or error}", _UNREADABLE_KEY_HINT) from error
        digest = hmac.new(key, digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest()


def join_lines(lines: Iterable[bytes]) -> bytes:
    """The bytes of a file of these lines, each with its newline."""
    return b"".join(line + b"\n" for line in lines)


def lines_hash(lines: Iterable[bytes]) -> str:
    """The SHA-256 of a file of these lines, each with its newline."""
    digest = hashlib.sha256()
    for part in with_newlines(lines):
        digest.update(part)
    return digest.hexdigest()


def with_newlines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with their newlines between them, none of them copied."""
    for line in lines:
        yield line
        yield b"\n"


def _split_lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]
