"""Operations: what users' commands do to the refs, written to the journal first, and undone later.

How several refs are moved at once, and packed, is here too. A recording is no operation, since nothing that was said is
undone. The journal has one JSON object on each line, appended; an unreadable line is ignored. `docs/format.md`,
"Operations", has the format.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from sessgit.errors import ROOM, ConflictError, MovedError, NotFoundError, StoreError
from sessgit.model import canonical, stored_fields
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import OPTIONAL, Count, EntryId, Hash, Number, Time
from sessgit.store import layout, locks, private_files, refs
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

if TYPE_CHECKING:
    from sessgit.store.store import Store

OperationState = Literal["done", "undone", "not done"]

BACKGROUND = "background"
"""The command of an operation that no user ran: `undo` needs its id."""
PURGE = "purge"
"""The command of an operation that cannot be undone, since the purged data is gone."""
_TRIES = 5
_Result = TypeVar("_Result")
_TAIL_SIZE = 1 << 20
"""Bytes of the journal's end that are read for its last line."""
_REMOVED_NAME_MARK = "@"
"""First character of the names that replace those of removed tags."""
_COMMANDS_WITHOUT_TEXT = ("archive", "unarchive", "delete", "import", "pull", "background")
"""The commands whose summaries hold no words of a conversation."""
_RECORDED_LINE = re.compile(r"^([0-9a-f]{40}) ([0-9]{1,18}) (refs/[^\s]+)$", re.MULTILINE)
_SETTLING_TRIES, _SETTLING_WAIT = 20, 0.05
_RECORDED_SPACES = (*layout.REF_SPACES, layout.KEEP)


# Moving several refs at once: all of them or none
#
# pygit2 moves one ref at a time, so this is git's own transaction (git-update-ref(1), `--stdin`): it locks every ref,
# checks every old value, and only then writes.

MANY_MOVES = 1000
"""From this number on, moved refs are packed: each is a file of its own before, and every command reads them."""
_MOVE_TRIES = 150
_MOVE_WAIT = 0.02
_CONCURRENT_MOVE = re.compile("but expected|already exists|unable to resolve reference|reference is missing")
"""git's messages about a ref that does not hold its old value."""


class Move(NamedTuple):
    """A ref and the commits that it holds before and after; None is no ref."""

    ref: str
    old: str | None
    new: str | None


def move_refs(store: Path, moves: Sequence[Move], *, durable: bool = True) -> None:
    """Move refs in one transaction. Raises MovedError, with nothing moved, if one does not hold its old value.

    Another process that moves or packs a ref holds a lock file for a moment. If not `durable`, a power loss may undo
    the moves.
    """
    if not moves:
        return
    from sessgit.store import git  # most commands start no child process

    # Else git would first look for each commit's id among the refs, in seven places.
    settings = ["-c", "core.warnAmbiguousRefs=false", "-c", f"core.fsync={'' if durable else '-'}reference"]
    script = "".join(("start\n", *map(_update_line, moves), "prepare\n", "commit\n")).encode()
    for tries_left in reversed(range(_MOVE_TRIES)):
        with locks.ref_move_lock(StorePaths(store)):
            code, _, message = git.call(store, [*settings, "update-ref", "--no-deref", "--stdin"], script)
        if not code:
            return
        now = refs.read_all(store)
        moved = [move for move in moves if now.get(move.ref) != move.old]
        if moved and (_CONCURRENT_MOVE.search(message) or any(now.get(move.ref) != move.new for move in moved)):
            raise MovedError(f"{moved[0].ref} was moved by someone else", "Try again.")
        if moved:
            raise StoreError(f"only some refs were moved: {message}", refs.move_error_hint(message, ROOM))
        locked = (".lock" in message or refs.NEW_PACKED in message) and not refs.is_denied(message)
        if not locked or not tries_left:
            hint = refs.LOCK_HINT if locked else refs.move_error_hint(message, ROOM)
            raise StoreError(f"cannot move the refs: {message}", hint)
        refs.delete_stale_locks(store, [move.ref for move in moves])
        time.sleep(_MOVE_WAIT)


def _update_line(move: Move) -> str:
    if move.old is None:
        return f"create {move.ref} {move.new}\n"
    if move.new is None:
        return f"delete {move.ref} {move.old}\n"
    return f"update {move.ref} {move.new} {move.old}\n"


# The journal


class FileRange(NamedTuple):
    """A range of bytes in a file, and their SHA-256."""

    offset: Count
    length: Number
    sha256: Hash


@frozen
class FileWrites:
    """What an operation does to the agent's files, by path: those that it writes whole, with the SHA-256 of the bytes,
    what it appends to existing ones, and what it cuts off at their ends."""

    files: Mapping[str, str] = field(default_factory=dict)
    appended: Mapping[str, FileRange] = field(default_factory=dict)
    cut: Mapping[str, FileRange] = field(default_factory=dict)


@frozen
class Operation:
    """A line of operations.jsonl: what a command does to refs and files."""

    time: Time
    command: str
    """The command; background for what no user asked for."""
    summary: str
    """One line for the user."""
    refs: Mapping[str, tuple[str | None, str | None]]
    """By full name of the ref: the commit before and after; null for no ref."""
    files: Mapping[str, Hash] = field(default_factory=dict)
    """By path the SHA-256 of each file that the command writes next; only files in the agent's folder count."""
    undoes: str = ""
    """The id of the operation that this one reverts, or empty."""
    appended: Mapping[str, FileRange] = field(default_factory=dict, metadata=OPTIONAL)
    """By path what was appended to a file: offset, length, SHA-256."""
    cut: Mapping[str, FileRange] = field(default_factory=dict, metadata=OPTIONAL)
    """By path what was removed from the end of a file: offset, length, SHA-256."""
    completes: str = field(default="", metadata=OPTIONAL)
    """The id of the fork that created the session of a merge or pick. Then refs begin with null."""
    id: EntryId = field(default="", metadata=OPTIONAL)
    """Eight hex digits of the hash of the line's offset and its other content."""

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves of the refs."""
        return tuple(Move(ref, old, new) for ref, (old, new) in self.refs.items())

    @property
    def wrote(self) -> FileWrites:
        """What it did to the agent's files."""
        return FileWrites(self.files, self.appended, self.cut)


def append(paths: StorePaths, operation: Operation) -> Operation:
    """Write the operation durably, and return it with its id, eight hexadecimal digits. Raises StoreError."""
    operation = replace(operation, summary=canonical.one_line(operation.summary, 200))
    document = stored_fields.to_json(operation)
    try:
        with private_files.open_file(paths.journal, os.O_RDWR | os.O_CREAT | os.O_APPEND) as file:
            locks.append_lock(file.fileno())  # so that no two operations get one id
            size = os.fstat(file.fileno()).st_size
            document["id"] = hashlib.sha256(json.dumps([size, document]).encode()).hexdigest()[:8]
            # A line that was torn by a full disk must not swallow this one.
            is_torn = size > 0 and os.pread(file.fileno(), 1, size - 1) != b"\n"
            private_files.write_all(file, b"\n" * is_torn + json.dumps(document).encode() + b"\n")
            os.fsync(file.fileno())
    except OSError as error:
        message = f"cannot write the journal: {error.strerror or error}"
        raise StoreError(message, f"Nothing was changed. {ROOM}") from error
    return replace(operation, id=document["id"])


def read(paths: StorePaths, start: int = 0) -> list[Operation]:
    """Return the operations that were written from byte `start` on, oldest first. Raises StoreError."""
    try:
        lines = paths.journal.read_bytes()[start:].split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {paths.journal}: {error.strerror or error}", "Is the file yours?") from error
    operations = (parse_line(line) for line in lines if line)
    return [operation for operation in operations if operation is not None]


def last_operation(paths: StorePaths) -> Operation | None:
    """Return the newest operation without reading all others."""
    try:
        size = paths.journal.stat().st_size
        with paths.journal.open("rb") as file:
            file.seek(max(0, size - _TAIL_SIZE))
            lines = file.read().rstrip(b"\n").split(b"\n")
    except OSError:
        return None
    if len(lines) > 1 or size <= _TAIL_SIZE:
        return parse_line(lines[-1])
    return next(reversed(read(paths)), None)


def redact_sessions(paths: StorePaths, sessions: Collection[str]) -> None:
    """Remove the words, such as names, from the summaries of operations on these sessions.

    They are overwritten in place, so that other processes can append meanwhile.
    """

    def redacted(line: bytes) -> bytes:
        operation = parse_line(line)
        if operation is None or operation.command in _COMMANDS_WITHOUT_TEXT:
            return line
        if not any(layout.session_of_ref(move.ref) in sessions for move in operation.moves):
            return line
        summary = json.dumps(operation.summary).encode()
        session = json.dumps(operation.summary.partition(":")[0] if ":" in operation.summary else "").encode()
        return line.replace(b'"summary": ' + summary, b'"summary": ' + session.ljust(len(summary)), 1)

    if sessions:
        _overwrite_lines(paths, redacted)


def redact_tags(paths: StorePaths, exists: Callable[[str], bool]) -> None:
    """Replace the names of tags of which no commit exists any more by names that no tag can have."""
    commits: dict[str, set[str]] = {}
    for operation in read(paths):
        for move in operation.moves:
            if move.ref.startswith(layout.TAGS):
                name = move.ref.removeprefix(layout.TAGS)
                commits.setdefault(name, set()).update(oid for oid in (move.old, move.new) if oid)
    removed = [name for name in commits if name.startswith(_REMOVED_NAME_MARK)]
    gone = [name for name in commits if name not in removed and not any(map(exists, commits[name]))]
    if not gone:
        return
    replacements: dict[bytes, bytes] = {}
    for number, name in enumerate(gone, start=len(removed) + 1):
        escaped = json.dumps(name)[1:-1].encode()
        digits = str(number).zfill(len(escaped) - 1)[1 - len(escaped) :] if len(escaped) > 1 else ""
        replacements[escaped] = f"{_REMOVED_NAME_MARK}{digits}".encode()
    names = b"|".join(map(re.escape, replacements))
    pattern = b'(?<="%s)(?:%s)(?=")|(?:(?<="tag )|(?<=: tag ))(?:%s)(?= at | deleted")'
    words = re.compile(pattern % (layout.TAGS.encode(), names, names))
    _overwrite_lines(paths, lambda line: words.sub(lambda match: replacements[match[0]], line))


def _overwrite_lines(paths: StorePaths, change: Callable[[bytes], bytes]) -> None:
    """Overwrite lines by others of the same length."""
    try:
        with paths.journal.open("r+b", buffering=0) as file:
            offset = 0
            for line in file.read().split(b"\n"):
                if (new := change(line)) != line:
                    file.seek(offset)
                    file.write(new)
                offset += len(line) + 1
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot write {paths.journal}: {error.strerror or error}", ROOM) from error


def parse_line(line: bytes) -> Operation | None:
    """Return the operation on a line of the journal, or None."""
    try:
        return stored_fields.load(Operation, json.loads(line))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


# Performing an operation


def perform_operation(  # noqa: PLR0913, PLR0917 - what an operation is
    store: Store,
    command: str,
    summary: str,
    moves: Sequence[Move],
    now: float,
    files: Mapping[str, bytes] | None = None,
    undoes: str = "",
    *,
    wrote: FileWrites | None = None,
    held: Mapping[str, str] | None = None,
    completes: str = "",
) -> Operation:
    """Append the operation to the journal and move the refs, all or none. Raises MovedError if one was moved meanwhile.

    `files` are those that the command writes next, by path with their bytes, `wrote` is what it did to others before.
    `held` has the present values of refs that recording has moved since the operation began, `completes` the id of the
    operation that was its first step. A tip that becomes unreachable stays under `refs/keep/`. Raises ConflictError if
    a commit for a ref was pruned meanwhile.
    """
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in (files or {}).items()}
    wrote = replace(wrote or FileWrites(), files={**(wrote.files if wrote else {}), **hashes})
    planned = Operation(
        canonical.rfc3339(now), command, summary, {move.ref: (move.old, move.new) for move in moves}, wrote.files,
        undoes, wrote.appended, wrote.cut, completes,
    )  # fmt: skip
    store.repo.begin_write()
    try:
        finish_interrupted(store, but={move.ref for move in moves})
        return _perform_locked(store, planned, held or {})
    finally:
        store.repo.release()


def retry_moved(store: Store, message: str, attempt: Callable[[], _Result]) -> _Result:
    """Return what `attempt` returns, which is called again if another process moves its refs. Raises StoreError with
    the message if that happens again and again."""
    for _ in range(_TRIES):
        store.repo.begin_write()  # waits for a purge: `attempt` must know the purged values
        try:
            return attempt()
        except MovedError:
            continue
        finally:
            store.repo.release()
    raise StoreError(message, "Try again.")


def drop_tombstone(store: Store, session: str, now: float) -> None:
    """Remove the tombstone of a session that is recorded again, if it has one."""
    ref = layout.tombstone_ref(session)
    with suppress(MovedError):
        tombstone = refs.read(store.path, ref)
        if tombstone is not None:
            perform_operation(store, "import", f"{session[:8]}: recorded again", [Move(ref, tombstone, None)], now)


def finish_interrupted(store: Store, *, but: Collection[str] = ()) -> bool:
    """Finish the last operation if a kill left only some of its refs moved; return whether it did.

    An operation on one of the refs `but` is left alone: the caller relies on what they hold.
    """
    last = last_operation(store.paths)
    moves = [move for move in last.moves if move.old != move.new] if last else []
    if len(moves) < 2 or any(move.ref in but for move in moves):
        return False
    current = refs.read_all(store.path)
    left = [move for move in moves if current.get(move.ref) == move.old]
    done = [move for move in moves if current.get(move.ref) == move.new]
    if not left or not done or len(left) + len(done) < len(moves):
        return False
    with suppress(MovedError):  # another process is doing it
        move_refs(store.path, left)
    return True


def _perform_locked(store: Store, planned: Operation, held: Mapping[str, str]) -> Operation:
    moves = planned.moves
    problems = {store.repo.read_problem(move.new) for move in moves if move.new is not None}
    if "damaged" in problems:
        raise StoreError("a commit that it needs is damaged", "Nothing was changed. `sessgit verify` names the commit.")
    if "missing" in problems:
        raise ConflictError("the data it needs was deleted for good by sessgit gc --prune", "Nothing was changed.")
    store.repo.flush()
    size = _journal_size(store.paths)
    operation = append(store.paths, planned)
    kept = [
        Move(layout.kept_ref(operation.id, number), None, tip)
        for number, tip in enumerate(_unreachable_tips(store, moves), start=1)
        if not store.repo.read_problem(tip)  # git keeps none that it cannot read
    ]
    steps = [
        move._replace(old=held.get(move.ref, move.old))
        for move in moves
        if move.ref not in held or held[move.ref] != move.new
    ]
    if len(steps) == 1 and not kept:
        store.repo.move(*steps[0])
    else:
        move_refs(store.path, [*kept, *steps])  # in this order: after a kill every tip is kept
    record_new_refs(store.path, {move.ref: move.new for move in moves if not move.old and move.new}, size)
    pack_moved_refs(store.path, len(moves))
    return operation


# The operations and their states


@frozen
class ListedOperation:
    """An operation and its state: one that was interrupted, or whose refs had moved, is `not done`."""

    operation: Operation
    standing: OperationState


def find_operation(every: Sequence[ListedOperation], prefix: str) -> ListedOperation:
    """Return the operation whose id begins with `prefix`. Raises NotFoundError if there is none, or several."""
    matches = [listed for listed in every if listed.operation.id.startswith(prefix)]
    if len(matches) != 1:
        what = f"“{prefix}” matches {len(matches)} operations" if matches else f"there is no operation “{prefix}”"
        raise NotFoundError(what, "`sessgit ops` lists the operations.")
    return matches[0]


def list_operations(store: Store) -> list[ListedOperation]:
    """Return the operations, newest first, with their states; the first step of another one is left out."""
    later, undone, steps = _LaterOperations(store), set[str](), set[str]()
    listed = []
    for operation in reversed(read(store.paths)):
        if operation.id in steps:
            continue
        state: OperationState = "done"
        if operation.id in undone:
            state = "undone"
        elif later.repeat(operation) or not all(map(later.took_effect, operation.moves)):
            state = "not done"
        if state == "done" and operation.undoes:
            undone.add(operation.undoes)
        if state != "not done":
            steps.add(operation.completes)
            later.add(operation)
        listed.append(ListedOperation(operation, state))
    return listed


class _LaterOperations:
    """What is known of an operation's refs from the store and from the operations after it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._current = refs.read_all(store.path)
        self._old: dict[str, dict[str | None, None]] = {}
        """The values from which later operations moved each ref, the next one last."""
        self._next: dict[str, Operation] = {}
        self._tips: dict[str, list[str]] = {}
        """The tips of each session's branches, also of those that were deleted later."""
        self._recorded_again = set[str]()
        """The sessions that were deleted and recorded again later."""
        for ref, tip in self._current.items():
            self._add_tip(ref, tip)

    def add(self, operation: Operation) -> None:
        for move in operation.moves:
            self._next[move.ref] = operation
            old = self._old.setdefault(move.ref, {})
            old.pop(move.old, None)
            old[move.old] = None
            if move.new is None and move.old is not None:
                self._add_tip(move.ref, move.old)
            if move.new is None and move.ref.startswith(layout.DELETED):
                self._recorded_again.add(move.ref.removeprefix(layout.DELETED))

    def _add_tip(self, ref: str, tip: str) -> None:
        if ref.startswith(layout.BRANCH_SPACES):
            self._tips.setdefault(layout.session_of_ref(ref), []).append(tip)

    def repeat(self, operation: Operation) -> bool:
        """Return whether an operation was interrupted and then done again."""
        again = self._next.get(operation.moves[0].ref) if operation.moves else None
        return again is not None and again.moves == operation.moves and again.command == operation.command

    def took_effect(self, move: Move) -> bool:
        """Return whether the ref, or a later operation, has what the move left there, or a commit based on that.

        After a rewind this is on another branch of the session.
        """
        repo, now, later = self._store.repo, self._current.get(move.ref), self._old.get(move.ref, {})
        session = layout.session_of_ref(move.ref)
        if now == move.new or move.new in later:
            return True
        if move.new is None:
            return session in self._recorded_again
        if layout.tombstone_ref(session) in self._current and not repo.has(move.new):
            return True  # after a prune nothing more can be known
        sides = self._tips.get(session, ()) if move.ref.startswith(layout.BRANCH_SPACES) else ()
        tips = dict.fromkeys(tip for tip in (next(reversed(later), None), now, *sides) if tip is not None)
        based = [tip for tip in tips if repo.is_ancestor(move.new, tip)]
        # A move back has no effect as long as what it leads away from is there.
        if based and move.old is not None and repo.is_ancestor(move.new, move.old):
            based = [tip for tip in based if not repo.is_ancestor(move.old, tip)]
        return bool(based)


def has_only_end_commits(store: Store, after: str | None, tip: str | None) -> bool:
    """Return whether nothing came after a commit but the notes that the agent has ended the session."""
    if after is None or tip is None or after == tip:
        return after == tip
    for commit in store.repo.first_parents(tip):
        if commit.id == after:
            return True
        if store.message(commit.id).get("Event") != "end":
            return False
    return False


def _unreachable_tips(store: Store, moves: Sequence[Move]) -> Iterator[str]:
    """Yield the tips that the moves make unreachable, except tombstones."""
    moves = [move for move in moves if not move.ref.startswith(layout.DELETED)]
    new = {move.new for move in moves if move.new is not None}
    for old, own in {move.old: move.new for move in moves if move.old is not None}.items():
        # First the ref itself, which usually went forward: each of a thousand is not compared with all others.
        if old in new or (own is not None and store.repo.is_ancestor(old, own)):
            continue
        if not any(store.repo.is_ancestor(old, tip) for tip in new):
            yield old


# Packing the refs, and a record of them
#
# git keeps most refs in one file. A power loss may truncate it: if that happens at the end of a line, git sees a store
# with fewer refs. So all refs are recorded next to the repository before they are packed.


def pack_refs(store: Path, lock: int = 0) -> None:
    """Move all refs into one file, which is read faster than many."""
    from sessgit.store import git  # most commands start no child process

    refs.delete_stale_locks(store, [])
    record_refs(store)
    with locks.ref_move_lock(StorePaths(store)):
        # Without this setting git deletes the files of the refs before the new one is on the disk.
        git.run(store, ["-c", "core.fsync=reference", "pack-refs", "--all"], [lock])


def pack_moved_refs(store: Path, moved: int) -> None:
    """Pack the refs after so many were moved, unless that is few, or another process packs the store."""
    if moved > MANY_MOVES:
        with locks.maintenance_lock(StorePaths(store)) as lock:
            if lock:
                pack_refs(store, lock)


def record_refs(store: Path) -> None:
    """Record all refs durably, before git packs them. A recorded ref that is gone stays recorded until `forget_refs`,
    since it may be lost."""
    paths = StorePaths(store)
    size = _journal_size(paths)
    current = {name: (oid, size) for name, oid in _settled_refs(store).items() if name.startswith(_RECORDED_SPACES)}
    _write_record(paths.refs, {**recorded_refs(store), **current})


def _settled_refs(store: Path) -> dict[str, str]:
    """Return all refs, as soon as the last operation has deleted those that it deletes, after a second at the latest:
    it is in the journal before."""
    for _ in range(_SETTLING_TRIES):
        current, last = refs.read_all(store), last_operation(StorePaths(store))
        if last is None or not any(move.new is None and current.get(move.ref) == move.old for move in last.moves):
            break
        time.sleep(_SETTLING_WAIT)
    return current


def record_new_refs(store: Path, new: Mapping[str, str], size: int) -> None:
    """Record refs that an operation has created: before they are packed, nothing else tells a lost one from one that
    never existed. `size` is the journal's size before the operation."""
    lines = "".join(f"{oid} {size} {ref}\n" for ref, oid in new.items() if ref.startswith(layout.REF_SPACES))
    with suppress(OSError), private_files.open_append(StorePaths(store).refs) as file:
        private_files.write_all(file, lines.encode())


def _journal_size(paths: StorePaths) -> int:
    """Return the size of the journal of operations in bytes."""
    return paths.journal.stat().st_size if paths.journal.exists() else 0


def recorded_refs(store: Path) -> dict[str, tuple[str, int]]:
    """Return each recorded ref with the object that it held, and the journal's size then."""
    try:
        text = StorePaths(store).refs.read_text("utf-8", "replace")
    except OSError:
        return {}
    return {name: (oid, int(size)) for oid, size, name in _RECORDED_LINE.findall(text)}


def forget_refs(store: Path, names: Iterable[str]) -> None:
    """Remove refs from the record."""
    known, gone = recorded_refs(store), set(names)
    if gone & known.keys():
        _write_record(StorePaths(store).refs, {name: at for name, at in known.items() if name not in gone})


def _write_record(path: Path, recorded: Mapping[str, tuple[str, int]]) -> None:
    with suppress(StoreError):  # there is no room: the last record stays
        lines = (f"{oid} {size} {name}\n" for name, (oid, size) in sorted(recorded.items()))
        write_private(path, "".join(lines).encode(), durable=True)


def branches_without_tips(store: Path) -> set[str]:
    """Return the branches of which only the names are known."""
    current = refs.read_all(store)
    lost = [*refs.refs_without_id(store), *(ref for ref in recorded_refs(store) if ref not in current)]
    return {ref.removeprefix(space) for ref in lost for space in layout.BRANCH_SPACES if ref.startswith(space)}
