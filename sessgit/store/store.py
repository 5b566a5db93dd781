"""An open store: sessions and turns read from commits, and commits made of them.

Reading goes by commit: what a commit holds never changes, so readers need no lock.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
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
from sessgit.model import json_strings, stored_fields
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell
from sessgit.model.frozen import frozen
from sessgit.model.line_list import Bytes
from sessgit.store import layout, locks, objects, owner, private_files, refs
from sessgit.store.objects import Commit, Entry, ObjectReader

if TYPE_CHECKING:
    from sessgit.store import backend


_LOST_KEY_HINT = "`sessgit doctor --fix` creates a new one; then purge those values again."
_UNREADABLE_KEY_HINT = "sessgit doctor --fix makes a new one where it is gone."
_MOST_DIGITS = 10
_MOST_STATES = 256
_MOST_READS = 500
_MOST_FOLDERS = 4096
_MANY = 100
"""So many turns are read faster by a git that runs ahead, though it must be started twice."""
_OTHER_FOLDER_HINT = "Name another folder in SESSGIT_STORE."
HEAD = b"ref: refs/heads/HEAD-stays-unborn\n"
"""The content of `HEAD` in every store."""


@frozen
class TurnLines:
    """The whole lines of a recorded turn, without their newlines."""

    before: list[bytes]
    body: list[bytes]

    @property
    def whole(self) -> list[bytes]:
        """All lines, in order."""
        return [*self.before, *self.body]


def create_store(path: Path) -> None:
    """Create an empty store at `path`, readable by its owner alone, or complete an existing one.

    Raises ConflictError for another git repository or its work tree.
    """
    from sessgit.store import backend

    if (path / ".git").exists() or ((path / "HEAD").exists() and not _is_sessgit_store(path)):
        raise ConflictError(f"{path} is a git repository, but not a store", _OTHER_FOLDER_HINT)
    try:
        private_files.make_folder(path)
        owner.check_owner(path)
        path.chmod(0o700)
        backend.create(path)
        (path / "config").chmod(0o600)  # libgit2 makes it executable
        paths = layout.StorePaths(path)
        for folder in (paths.spool, paths.state, paths.locks):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not paths.ignore.exists():
            private_files.write_private(paths.ignore, b"*\n")
        if not paths.key.exists():
            if paths.forbidden.exists():
                raise StoreError("the store's key is missing, so purged values cannot be recognized", _LOST_KEY_HINT)
            with locks.settings_lock(paths):
                if not paths.key.exists():  # another process may have made it meanwhile
                    private_files.write_private(paths.key, os.urandom(32), durable=True)
    except OSError as error:
        hint = _OTHER_FOLDER_HINT if isinstance(error, FileExistsError | NotADirectoryError) else ROOM
        raise StoreError(f"cannot create a store at {path}: {error.strerror or error}", hint) from error


def _is_sessgit_store(path: Path) -> bool:
    try:
        return "HEAD-stays-unborn" in (path / "HEAD").read_text("utf-8", "replace")
    except OSError:
        return False


class Store:
    """An open store."""

    def __init__(self, path: Path, repo: backend.Repository | None = None, *, fsync: bool = False) -> None:
        if not owner.store_exists(path):
            raise NotFoundError(f"there is no store at {path}", "sessgit install makes one and turns recording on.")
        owner.check_owner(path)
        self.path = path
        self.paths = layout.StorePaths(path)
        self._fsync = fsync
        if repo is not None:
            self.repo = repo
        self._reader = ObjectReader(path, lambda: self.repo)
        self._known_format = set[str]()
        """The ids of files with the format number: all are alike."""
        self._states = dict[str, Session]()
        """The states of the last commits that were written here: the next commit is based on one of them."""
        self._agents = dict[str, str]()
        self.commit = lru_cache(maxsize=4096)(self._commit)
        self.tree = lru_cache(maxsize=4096)(self._tree)
        """Returns the tree of a commit, once its format is known to be one that this program reads."""
        self._folders = dict[str, Mapping[str, Entry]]()
        """The entries of the folders of turns: a fork reads one for its lines, and then for its sidecar files."""
        self.message = lru_cache(maxsize=4096)(lambda oid: messages.parse_message(self.commit(oid).message))

    @cached_property
    def repo(self) -> backend.Repository:
        """The repository, opened with libgit2: it writes objects, walks through histories and moves refs."""
        from sessgit.store import backend

        return backend.Repository(self.path, fsync=self._fsync)

    @property
    def objects(self) -> ObjectReader | backend.Repository:
        """What reads objects: libgit2 where it is loaded, or worth loading."""
        is_loaded = "repo" in self.__dict__
        return self.repo if is_loaded or self._reader.count > _MOST_READS else self._reader

    @contextmanager
    def still_there(self) -> Iterator[None]:
        """Raise ConflictError if an object is missing inside, and the store was pruned or purged since it was opened:
        a caller may have chosen its commits before it had to wait for that."""
        try:
            yield
        except StoreError as error:
            is_missing = isinstance(error, UnreadableError) or isinstance(error.__cause__, KeyError)
            if not is_missing or not self.repo.was_reopened:
                raise
            raise ConflictError("the data was just purged or pruned", "Try again.") from error

    # Reading

    def branches(self, session: str) -> dict[str, str]:
        """Return the branches of a session that are not archived, and their tips."""
        return refs.session_tips(self.path, session)

    def ref(self, name: str) -> str | None:
        """Return the object that a ref holds, or None."""
        return refs.read(self.path, name)

    def state(self, commit: str) -> Session:
        """Return the state of the session as of a commit."""
        if commit in self._states:
            return self._states[commit]
        text = self._file_at(commit, layout.STATE)
        if text is None:
            raise DamageError(f"commit {commit} has no {layout.STATE}")
        try:
            return sessions.loads(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise DamageError(f"{layout.STATE} of commit {commit} is not JSON: {error}") from error

    def agent(self, session: str, commit: str) -> str:
        """Return the name of a session's agent, which any commit of it tells."""
        if session not in self._agents:
            self._agents[session] = self.state(commit).agent
        return self._agents[session]

    def _commit(self, oid: str) -> Commit:
        return self.objects.commit(oid)

    def _tree(self, commit: str) -> str:
        tree = self.commit(commit).tree
        entry = self.objects.entry(tree, layout.FORMAT_FILE)
        if entry and entry[0] in self._known_format:
            return tree
        version = self.objects.blob(entry[0]).strip() if entry else b"none"
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
        """Return the lines of turn `number` as of a commit, with long strings filled in. In a large turn, stored lines
        over `longest` bytes are empty."""
        folder = self.folder(commit, number)
        return self._filled(folder, self._stored_lines(folder, layout.BODY, longest), longest)

    def lines_of_turns(self, commit: str, numbers: Sequence[int]) -> Iterator[TurnLines]:
        """Yield what `lines` returns for each of these turns; of many, git reads the next ones meanwhile."""
        for first in range(0, len(numbers), _MOST_FOLDERS):
            folders = self.folders(commit, numbers[first : first + _MOST_FOLDERS])
            oids = [folder[layout.BODY][0] for folder in folders if layout.BODY in folder]
            bodies = self._reader.many("blob", oids) if len(oids) >= _MANY else iter(())
            for folder in folders:
                data = next(bodies, None) if layout.BODY in folder else None
                body = self._stored_lines(folder, layout.BODY) if data is None else data.split(b"\n")[:-1]
                yield self._filled(folder, body)

    def folders(self, commit: str, numbers: Sequence[int]) -> list[Mapping[str, Entry]]:
        """Return what `folder` returns for each of these turns."""
        if len(numbers) >= _MANY:
            known = self.turn_folders(commit, min(numbers), max(numbers))
            oids = [known.get(layout.turn_folder(number), "") for number in numbers]
        if len(numbers) < _MANY or "" in oids:
            oids = [self._folder_id(commit, number) for number in numbers]
        unread = [oid for oid in oids if oid not in self._folders]
        if len(unread) >= _MANY:
            for oid, data in zip(unread, self._reader.many("tree", unread), strict=False):
                self._keep_folder(oid, objects.tree_entries(oid, data))
        return [self._folder(oid) for oid in oids]

    def _stored_lines(self, folder: Mapping[str, Entry], name: str, longest: float = float("inf")) -> list[bytes]:
        return self.objects.lines(folder[name][0], longest)[:-1] if name in folder else []

    def _filled(self, folder: Mapping[str, Entry], body: list[bytes], longest: float = float("inf")) -> TurnLines:
        """Return the lines of a turn's folder with their long strings filled in."""
        before = self._stored_lines(folder, layout.BEFORE, longest)
        stored = self.objects.tree(folder[layout.TEXTS][0]) if layout.TEXTS in folder else {}
        if not stored:
            return TurnLines(before, body)
        texts = {
            oid: self.objects.blob(oid) for oid in {oid for oid, _ in stored.values()}
        }  # a text may have two names
        filling = {name: texts[oid] for name, (oid, _) in stored.items()}
        return TurnLines(json_strings.fill_long_strings(before, filling), json_strings.fill_long_strings(body, filling))

    def cells(self, commit: str, number: int) -> list[Cell]:
        """Return the cells of turn `number` as of a commit. Raises DamageError."""
        entry = self.folder(commit, number).get(layout.CELLS)
        lines = self.objects.blob(entry[0]).split(b"\n")[:-1] if entry else []
        try:
            return [stored_fields.load(Cell, json.loads(line)) for line in lines]
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DamageError(
                f"{layout.CELLS} of turn {number} is damaged: {error}", "sessgit restore --verify checks the rest."
            ) from error

    def history(self, tip: str) -> Iterator[tuple[str, Message]]:
        """Yield the commits from a tip back along first parents, each with its message."""
        parents: tuple[str, ...] = (tip,)
        while parents:
            commit, parents = parents[0], self.commit(parents[0]).parents
            yield commit, self.message(commit)

    def side_files(self, folder: Mapping[str, Entry]) -> dict[str, Entry]:
        """Return the entries of the subagents' files and large tool results in a turn's folder, by path."""
        files = dict[str, Entry]()
        for top in (layout.SUBAGENTS, layout.FILES):
            files |= self.objects.files(folder[top][0], top) if top in folder else {}
        return files

    def entry(self, commit: str, path: str) -> Entry | None:
        """Return what is at a path of a commit's tree, None if there is nothing, or for ``""`` as the commit."""
        return self.objects.entry(self.tree(commit), path) if commit else None

    def entries(self, commit: str, path: str) -> dict[str, Entry]:
        """Return the entries of the folder at a path of a commit's tree, none if there is no folder."""
        entry = self.entry(commit, path)
        return self.objects.tree(entry[0]) if entry and entry[1] else {}

    def files(self, commit: str, path: str) -> dict[str, Entry]:
        """Return all files below the folder at a path of a commit's tree, by their paths in it."""
        entry = self.entry(commit, path)
        return self.objects.files(entry[0]) if entry and entry[1] else {}

    def folder(self, commit: str, number: int) -> Mapping[str, tuple[str, bool]]:
        """Return the entries of a turn's folder as of a commit."""
        return self._folder(self._folder_id(commit, number))

    def _folder_id(self, commit: str, number: int) -> str:
        entry = self.entry(commit, layout.turn_folder(number))
        if entry is None:
            raise NotFoundError(f"commit {commit[:12]} has no turn {number}")
        return entry[0]

    def _folder(self, oid: str) -> Mapping[str, Entry]:
        return self._folders.get(oid) or self._keep_folder(oid, self.objects.tree(oid))

    def _keep_folder(self, oid: str, entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
        self._folders[oid] = entries
        if len(self._folders) > _MOST_FOLDERS:
            del self._folders[next(iter(self._folders))]
        return entries

    def turn_folders(self, commit: str, first: int = 0, last: int | None = None) -> dict[str, str]:
        """Return the object ids of the folders of turns as of a commit, by path, in order: from the first to the last,
        and of the others in the same groups."""
        top = self.entry(commit, layout.TURNS)
        groups = sorted(self.objects.tree(top[0]).items()) if top else []
        lowest = layout.turn_folder(first).rpartition("/")[0] if first else ""
        highest = layout.turn_folder(last).rpartition("/")[0] if last is not None else "~"
        wanted = ((path, oid) for name, (oid, _) in groups if lowest <= (path := f"{layout.TURNS}/{name}") <= highest)
        return {
            f"{path}/{name}": turn for path, oid in wanted for name, (turn, _) in sorted(self.objects.tree(oid).items())
        }

    def tail(self, commit: str) -> bytes:
        """Return the recorded bytes after the last turn's body."""
        return self._file_at(commit, layout.TAIL) or b""

    def tail_lines(self, commit: str) -> list[bytes]:
        """Return what `split` makes of these bytes at their newlines."""
        entry = self.entry(commit, layout.TAIL)
        return self.objects.lines(entry[0]) if entry else [b""]

    def _file_at(self, commit: str, path: str) -> bytes | None:
        entry = self.entry(commit, path)
        return self.objects.blob(entry[0]) if entry else None

    # Writing

    def write_folder(self, files: Mapping[str, Bytes], kept: Mapping[str, tuple[str, bool]] | None = None) -> str:
        """Write a tree of files by path, with the entries `kept`; return its id."""
        entries: dict[str, tuple[str, bool] | None] = dict(kept or {})
        entries.update({path: (self.repo.write_blob(data), False) for path, data in files.items()})
        return self.repo.edit_tree(None, entries)

    def write_commit(
        self,
        base: str | None,
        changes: Mapping[str, tuple[str, bool] | None],
        state: Session,
        message: Message,
        parents: Sequence[str],
        time: int,
    ) -> str:
        """Write a commit whose tree is that of the commit `base` with changes and a new state; no ref is moved."""
        files = {layout.STATE: (self.repo.write_blob(sessions.dumps(state)), False)}
        if base is None:
            files[layout.FORMAT_FILE] = (self.repo.write_blob(b"%d\n" % layout.FORMAT), False)
        tree = self.repo.edit_tree(self.commit(base).tree if base else None, {**changes, **files})
        commit = self.repo.write_commit(tree, list(parents), messages.format_message(message), time)
        if sessions.survives_round_trip(state):
            self._states[commit] = state
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]
        return commit

    def hmac(self, parts: Iterable[bytes]) -> str:
        """Return a keyed hash that only this machine can make: it proves original bytes without revealing them.

        Raises StoreError if the key cannot be read.
        """
        import hmac

        try:
            key = self.paths.key.read_bytes()
        except OSError as error:
            raise StoreError(f"cannot read the store's key: {error.strerror or error}", _UNREADABLE_KEY_HINT) from error
        digest = hmac.new(key, digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest()


def lines_hash(lines: Iterable[bytes]) -> str:
    """Return the SHA-256 of a file of these lines, each with its newline."""
    digest = hashlib.sha256()
    for part in with_newlines(lines):
        digest.update(part)
    return digest.hexdigest()


def with_newlines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines, each followed by a newline, without copying them."""
    for line in lines:
        yield line
        yield b"\n"
