"""A session back as the files that the agent wrote, byte for byte, save what was redacted.

The side files are written first and the transcript last: it is what the client, `resume` and `restore` go by. So
whatever stops this, a transcript that is there is whole and has all that lies beside it, and doing it again
completes it. Nothing is ever written over a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit.agents.claude import home, transcript
from sessgit.agents.claude.reader import opened
from sessgit.agents.claude.statedir import Place
from sessgit.errors import ConflictError, DamageError, MovedError, NotFoundError, StoreError
from sessgit.model.message import Extent, Message
from sessgit.model.session import Origin, Session
from sessgit.ops import operations, places, sidefiles
from sessgit.ops.recording import family
from sessgit.ops.sidefiles import WrittenFile
from sessgit.store import layout, locks, refs
from sessgit.store.recorder import cursor as cursors
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_TRIES = 5
_LOCK_WAIT = 10.0


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
    """What `restore` did: `already` says that the transcript was there with the same bytes.

    `files` are the side files; `named` says that a line with the session's name stands behind what the client wrote.
    """

    path: Path
    restored: Restored
    already: bool = False
    files: tuple[WrittenFile, ...] = ()
    named: bool = False
    project: str = ""
    """The folder from which the client finds it."""
    moved: bool = False
    """Whether the transcript lay in the client's folder for a project that is gone, and was moved from there."""


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


def restore(store: Store, session: str, config: Path, project: str = "", now: float = 0) -> Outcome:
    """Writes the session's files where the agent looks for them; never over one that holds anything else.

    `config` is the agent's folder. With `project`, a folder, they are written for the agent started there, and the
    session is of that project from `now` on.
    """
    state = store.state(_head(store, session))
    target = places.target(config, state, project)
    moved = bool(project) and places.move_along(config, state, target)
    places.check_alone(config, target)
    restored = rebuild(store, session)
    name = _name_line(state, restored.data)
    there = _there(target, restored.data, state.agent_id)
    if project:
        with locks.session(store.beside, session, _LOCK_WAIT):
            state = _moved(store, session, project, target, now)
    place = Place(config, target.parent, state.agent_id, state.agent_version)
    kept = sidefiles.of_session(store, session, branches(store, session))
    files = sidefiles.write(kept, place, sidefiles.rules_of(state))
    if there is None:
        transcript.write(target, restored.data + name)
        return Outcome(target, restored, False, tuple(files), bool(name), state.project)
    # A line that an earlier restoring added counts as missing until it is recorded.
    restored = replace(restored, missing=max(0, restored.missing - len(there)))
    return Outcome(target, restored, True, tuple(files), bool(there), state.project, moved)


def write_to(store: Store, session: str, path: Path) -> Outcome:
    """Writes the session's transcript alone to `path`; never over a file that holds anything else."""
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", "Make it first, or name another place.")
    restored = rebuild(store, session)
    already = _there(path, restored.data, "") is not None
    if not already:
        transcript.write(path, restored.data)
    return Outcome(path, restored, already)


def _there(target: Path, data: bytes, agent_id: str) -> bytes | None:
    """The lines with a name that stand behind the recorded bytes in a file that is there; None where there is none.

    Raises ConflictError where it holds anything else.
    """
    try:
        with opened(target) as source:
            found = source.file.read()
    except NotFoundError:
        return None
    rest = found[len(data) :]
    if found.startswith(data) and (not rest or (agent_id and transcript.is_titles(rest, agent_id))):
        return rest
    if found.startswith(data):
        raise ConflictError(f"{target} is there, and has gone on since it was recorded", "Nothing of it is lost.")
    raise ConflictError(
        f"there is a file at {target} already, and it holds something else",
        "It was left as it is. --output FILE writes the recorded one elsewhere.",
    )


def _name_line(state: Session, data: bytes) -> bytes:
    """The line that tells the client the session's name, where its own lines do not: empty, if none is needed.

    A torn last line is left alone: what came behind it would be a part of it.
    """
    if not state.name or not data.endswith(b"\n") or transcript.title_of(data) == state.name:
        return b""
    return transcript.title_line(state.name, state.agent_id) + b"\n"


def _moved(store: Store, session: str, project: str, target: Path, now: float) -> Session:
    """The session's state with another project, by a commit of its own."""
    for tries_left in reversed(range(_TRIES)):
        ref = layout.head(session)
        if refs.read(store.path, ref) is None:
            ref = layout.ARCHIVE + session
        head = _head(store, session)
        old = store.state(head)
        state = replace(old, project=project, transcript=str(target))
        if state == old:
            return state
        message = Message(f"edit: project {project}", (("Session", session), ("Event", "edit")))
        commit = store.write_commit(head, {}, state, message, [head], max(int(now), store.commit(head).time))
        try:
            operations.perform(store, "restore", f"{session[:8]}: project {project}", [Move(ref, head, commit)], now)
            return state
        except MovedError:
            if not tries_left:
                raise
    raise AssertionError


def rebuild(store: Store, session: str) -> Restored:
    """The bytes of the session's file, out of all its branches, in the order in which they stood in it."""
    tips = branches(store, session)
    head = tips[session]
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


def branches(store: Store, session: str) -> dict[str, str]:
    """The session's head and what rewinds left, live or archived, and their tips; raises NotFoundError for none."""
    own: dict[str, str] = {}
    for space in (layout.ARCHIVE, layout.HEADS):
        for ref, tip in refs.read_all(store.path, space + session).items():
            name = ref.removeprefix(space)
            if name == session or (layout.is_rewound(name) and layout.session_of(name) == session):
                own[name] = tip
    if session not in own:
        raise NotFoundError(f"{session} has no branch", "sessgit ls --all shows all conversations.")
    return own


def _head(store: Store, session: str) -> str:
    return branches(store, session)[session]


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
        only_edits = only_edits and event in ("edit", "merge")


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
    if not state.transcript or not home.is_there(path):
        return Verified(restored, state.turns, None, None)
    with opened(path) as source:
        return Verified(restored, state.turns, path, source.file.read() == restored.data)
