"""A session back as the files that the agent wrote, byte for byte, save what was redacted.

The side files are written first and the transcript last: it is what the client, `resume` and `restore` go by. So
whatever stops this, a transcript that is there is whole and has all that lies beside it, and doing it again
completes it. Nothing is ever written over a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from sessgit.agents.claude import home
from sessgit.agents.claude.beside.folders import Place
from sessgit.agents.claude.reader import opened
from sessgit.agents.claude.writing import transcript
from sessgit.errors import ConflictError, DamageError, MovedError, NotFoundError, StoreError
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.ops import operations
from sessgit.ops.files import behind, laying, sidefiles
from sessgit.ops.files.laying import Laid
from sessgit.ops.files.sidefiles import WrittenFile
from sessgit.ops.finding import places
from sessgit.ops.finding.places import Here
from sessgit.store import layout, locks, refs
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor
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
    """What `restore` did: `already` says that the transcript was there with the same lines.

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
    appended: int = 0
    """How many turns the transcript got that came from elsewhere."""
    same: bool = True
    """Whether it holds the bytes that the store has, or is another file with the same turns, which was there."""


def restore(
    store: Store, session: str, config: Path, project: str = "", now: float = 0, *, here: Here = str
) -> Outcome:
    """Writes the session's files where the agent looks for them; never over one that holds anything else. A transcript
    that is level with an earlier point of the session gets the turns that it lacks.

    `config` is the agent's folder. With `project`, a folder, they are written for the agent started there, and the
    session is of that project from `now` on. `here` says which folders stand for those of other machines.
    """
    state = places.localized(store.state(_head(store, session)), here)
    target = places.target(config, state, project, store.beside)
    moved = bool(project) and places.move_along(config, state, target)
    places.check_alone(config, target)
    restored, laid = _rebuilt(store, session)
    found = _bytes(target)
    holds_all = found is None or found.startswith(restored.data)
    appended = 0 if holds_all else behind.bring_level(store, session, config, target)
    name = _name_line(state, restored.data)
    there = _there(store, state, laid, target)
    if project:
        with locks.session(store.beside, session, _LOCK_WAIT):
            state = _moved(store, session, project, target, now)
    place = Place(config, target.parent, state.agent_id, state.agent_version)
    files = sidefiles.write(behind.beside(store, session), place, sidefiles.rules_of(store, state))
    if there is None:
        transcript.write(target, restored.data, name)
        return Outcome(target, restored, False, tuple(files), bool(name), state.project)
    # A line that an earlier restoring added counts as missing until it is recorded.
    restored = replace(restored, missing=max(0, restored.missing - there.named))
    return Outcome(target, restored, True, tuple(files), bool(there.named), state.project, moved, appended, there.same)


def write_to(store: Store, session: str, path: Path) -> Outcome:
    """Writes the session's transcript alone to `path`; never over a file that holds anything else."""
    if not path.parent.is_dir():
        raise NotFoundError(f"there is no folder {path.parent}", "Make it first, or name another place.")
    restored = rebuild(store, session)
    found = _bytes(path)
    if found is None:
        transcript.write(path, restored.data)
    elif found != restored.data:
        raise _gone_on(path) if found.startswith(restored.data) else _other(path)
    return Outcome(path, restored, found is not None)


@dataclass(frozen=True, slots=True)
class _There:
    """A file that holds all that is recorded: how many bytes of lines with a name stand behind it, and whether it is
    the `same` bytes, or another file of the session, with other words or more lines in it."""

    named: int = 0
    same: bool = True


def _there(store: Store, state: Session, laid: Laid, target: Path) -> _There | None:
    """The file, if there is one.

    Raises ConflictError where it holds anything else.
    """
    found = _bytes(target)
    if found is None:
        return None
    data = laid.data
    rest = found[len(data) :]
    if found.startswith(data) and (not rest or transcript.is_titles(rest, state.agent_id)):
        return _There(len(rest))
    if found.startswith(data):
        raise _gone_on(target)
    stands = behind.standing(store, state.id, laid, target)
    if not stands.known:
        raise _other(target)
    if stands.ahead or stands.lacks:
        raise _gone_on(target)
    return _There(same=False)


def _bytes(path: Path) -> bytes | None:
    try:
        with opened(path) as source:
            return source.file.read()
    except NotFoundError:
        return None


def _gone_on(path: Path) -> ConflictError:
    return ConflictError(f"{path} is there, and has gone on since it was recorded", "Nothing of it is lost.")


def _other(path: Path) -> ConflictError:
    return ConflictError(
        f"there is a file at {path} already, and it holds something else",
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
    return _rebuilt(store, session)[0]


def _rebuilt(store: Store, session: str) -> tuple[Restored, Laid]:
    found = laying.pieces(store, session, laying.branches(store, session))
    laid = laying.lay_out(found.found)
    missing = laid.missing + _unrecorded(cursors.load(store.beside, session), laid)
    return Restored(laid.data, found.redacted, missing, found.checked, found.rewritten), laid


def _unrecorded(known: Cursor | None, laid: Laid) -> int:
    """How many bytes the agent's file had behind what is recorded of it."""
    if known is None:
        return 0
    if known.file == laid.file:
        return max(0, known.offset - laid.end)
    return 0 if known.final else sum(extent.length for extent in known.pending)


def _head(store: Store, session: str) -> str:
    return laying.branches(store, session)[session]


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
