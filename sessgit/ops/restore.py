"""A session back as the file that the agent wrote, byte for byte, save what was redacted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.agents.claude import home, transcript
from sessgit.agents.claude.reader import opened
from sessgit.errors import ConflictError, DamageError, SessgitError, StoreError
from sessgit.model.message import Extent, Message
from sessgit.model.session import Origin, Session
from sessgit.ops.recording import family
from sessgit.store import cursor as cursors
from sessgit.store import layout, refs
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class Restored:
    """What the store holds of an agent's file.

    `missing` counts bytes of the file that were never recorded, as far as the store can tell; `redacted` the
    secrets that stand replaced in it; `checked` the hashes that were recomputed and found right. `rewritten` says that
    a fork's beginning could be written anew, though not to the same bytes.
    """

    data: bytes
    redacted: int
    missing: int
    checked: int
    rewritten: bool = False

    @property
    def exact(self) -> bool:
        return not (self.redacted or self.missing or self.rewritten)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `restore` did: `already` says that the file was there with the same bytes."""

    path: Path
    restored: Restored
    already: bool = False


@dataclass
class _Pieces:
    """Pieces of the file by where they stood: their bytes as stored, and how long they were there."""

    by_offset: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    redacted: int = 0
    checked: int = 0
    rewritten: bool = False

    def put(self, extent: Extent, data: bytes) -> None:
        """Keeps the longer of two that begin at the same place: lines can stand before two turns."""
        if extent.length > self.by_offset.get(extent.offset, (b"", 0))[1]:
            self.by_offset[extent.offset] = (data, extent.length)


def restore(store: Store, session: str, config: Path, path: Path | None = None) -> Outcome:
    """Writes the session's file where the agent looks for it, or to `path`; never over one that holds anything else.

    `config` is the agent's folder.
    """
    state = store.state(_head(store, session))
    target = path or home.transcript_place(config, state.transcript, state.agent_id, state.project)
    if target is None:
        raise SessgitError(f"it is not known where the file of {session} was", "--output FILE writes it to a place.")
    restored = rebuild(store, session)
    if target.exists():
        with opened(target) as source:
            same = source.file.read() == restored.data
        if same:
            return Outcome(target, restored, already=True)
        raise ConflictError(
            f"there is a file at {target} already, and it holds something else",
            "It was left as it is. --output FILE writes the recorded one elsewhere.",
        )
    transcript.write(target, restored.data)
    return Outcome(target, restored)


def rebuild(store: Store, session: str) -> Restored:
    """The bytes of the session's file, out of all its branches, in the order in which they stood in it."""
    tips = refs.of_session(store.path, session)
    head = _head(store, session)
    state = store.state(head)
    pieces = _Pieces()
    if state.origin is not None and state.origin.prefix:
        first = [commit for commit, _ in _own_commits(store, session, head)][-1]
        _put_prefix(store, state, state.origin, first, pieces)
    for branch, tip in sorted(tips.items(), key=lambda item: layout.is_rewound(item[0])):
        _collect(store, session, tip, pieces, is_head=branch == session)
    data, missing, end = _laid_out(pieces)
    known = cursors.load(store.beside, session)
    missing += max(0, known.offset - end) if known else 0
    return Restored(data, pieces.redacted, missing, pieces.checked, pieces.rewritten)


def turn_lines(store: Store, commit: str, state: Session, number: int) -> list[bytes]:
    """The lines of a turn as the session's own file has them."""
    stored = store.lines(commit, number)
    lines = [*stored.before, *stored.body]
    return [family.own(raw, state) for raw in lines] if family.is_shared(store, commit, state, number) else lines


def _head(store: Store, session: str) -> str:
    head = refs.read(store.path, layout.head(session))
    if head is None:
        raise SessgitError(f"{session} has no branch")
    return head


def _collect(store: Store, session: str, tip: str, pieces: _Pieces, *, is_head: bool) -> None:
    """Takes the lines of every commit of the session from a tip backwards."""
    seen: set[str] = set()
    state = store.state(tip)
    only_edits = True
    for commit, message in _own_commits(store, session, tip):
        number, key, event = message.number("Turn"), message.get("Prompt"), message.get("Event")
        if number and key not in seen:
            seen.add(key)
            stored = store.lines(commit, number)
            _take(pieces, message, [*stored.before, *stored.body])
        elif event == "end" and is_head and only_edits:
            _take_tail(store, commit, message, pieces)
        elif event == "fork" and state.origin is not None and not state.origin.prefix:
            turns = (turn_lines(store, commit, state, n) for n in range(1, state.origin.turn + 1))
            _take(pieces, message, [line for lines in turns for line in lines])
        only_edits = only_edits and event == "edit"


def _own_commits(store: Store, session: str, tip: str) -> Iterator[tuple[str, Message]]:
    for commit in store.repo.first_parents(tip):
        message = store.message(commit.id)
        if message.get("Session") != session:
            return
        yield commit.id, message


def _take(pieces: _Pieces, message: Message, lines: list[bytes]) -> None:
    """Lays the last lines of the folder where the extents say; those before them stand elsewhere as well."""
    extents = message.extents
    count = sum(extent.lines for extent in extents)
    if count > len(lines):
        raise DamageError(f"turn {message.get('Turn')} has {len(lines)} lines, its extents speak of {count}")
    placed = lines[len(lines) - count :]
    _check(message, placed, pieces)
    pieces.redacted += message.number("Redacted") or 0
    for extent in extents:
        pieces.put(extent, b"".join(line + b"\n" for line in placed[: extent.lines]))
        placed = placed[extent.lines :]


def _check(message: Message, lines: list[bytes], pieces: _Pieces) -> None:
    expected = message.get("Lines-SHA256")
    if not expected or not lines:
        return
    found = hashlib.sha256(b"".join(line + b"\n" for line in lines)).hexdigest()
    if found != expected:
        raise DamageError(
            f"the lines of turn {message.get('Turn') or '@0'} are not those that were recorded",
            "git fsck in the store tells whether an object is damaged.",
        )
    pieces.checked += 1


def _take_tail(store: Store, commit: str, message: Message, pieces: _Pieces) -> None:
    data = store.tail(commit)
    pieces.redacted += message.number("Redacted") or 0
    lines = data.split(b"\n")
    torn = lines.pop()
    rest = [line + b"\n" for line in lines] + ([torn] if torn else [])
    _check(message, [line.removesuffix(b"\n") for line in rest], pieces)
    for extent in message.extents:
        pieces.put(extent, b"".join(rest[: extent.lines]))
        rest = rest[extent.lines :]


def _put_prefix(store: Store, state: Session, origin: Origin, first: str, pieces: _Pieces) -> None:
    """The beginning that this program wrote when it made the fork, written anew; `first` is the fork's first commit.

    The turns are read from there: the fork point has the shared ones, the first commit also one cut at a cell.
    """
    parent = store.state(origin.commit)
    turns = origin.turn + bool(origin.cell)
    lines = [turn_lines(store, first, parent, number) for number in range(1, turns + 1)]
    data = transcript.resumable(lines, state.agent_id, store.state(first).name).data
    if hashlib.sha256(data).hexdigest() == origin.prefix_sha256:
        pieces.checked += 1
    else:
        pieces.rewritten = True
    pieces.put(Extent(0, origin.prefix), data)


def _laid_out(pieces: _Pieces) -> tuple[bytes, int, int]:
    """The pieces in order, how many bytes between them are missing, and where they end; overlaps stand once."""
    out: list[bytes] = []
    position = missing = 0
    for offset, (data, length) in sorted(pieces.by_offset.items()):
        if offset < position:
            continue
        missing += offset - position
        out.append(data)
        position = offset + length
    return b"".join(out), missing, position


@dataclass(frozen=True, slots=True)
class Verified:
    """A file rebuilt with every hash proved; `same` says whether the agent's own file, if it is there, holds it."""

    restored: Restored
    turns: int
    file: Path | None
    same: bool | None


def verify(store: Store, session: str) -> Verified:
    """Rebuilds the session's file; raises DamageError where a hash is not the one that was recorded."""
    state = store.state(_head(store, session))
    try:
        restored = rebuild(store, session)
    except StoreError as error:
        raise DamageError(f"{session} is damaged: {error}", error.hint) from error
    path = Path(state.transcript)
    if not state.transcript or not path.exists():
        return Verified(restored, state.turns, None, None)
    with opened(path) as source:
        return Verified(restored, state.turns, path, source.file.read() == restored.data)
