"""Recording what a transcript holds because a command asks, hooks or no hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents.reader import opened
from sessgit.errors import SessgitError
from sessgit.history import client_files
from sessgit.model import ids
from sessgit.model.conversation.session import Session
from sessgit.record import privacy as private
from sessgit.record.privacy import Privacy
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor

if TYPE_CHECKING:
    from sessgit.store.store import Store

_OFF_HINT = "To record the project again: `sessgit on`"

LOCK_TIMEOUT = 1.0
"""Seconds that a command waits for a recorder that is at work on the session already."""

QUIET_SECONDS = 60.0
"""Seconds after which a transcript that no living client holds is taken as finished."""


@dataclass(frozen=True, slots=True)
class CatchUpResult:
    """Whether the store is level with the transcript; if not, why, in words for a person. `off` says that it must
    not be: the settings, the environment or a person say so; `hint` is then what to do."""

    level: bool
    why: str = ""
    off: bool = False
    hint: str = ""


def is_level(beside: layout.StorePaths, session: str, path: Path, *, final: bool = False) -> bool:
    """Whether the cursor says that the file, as long as it is now, is recorded; a file that is gone is.

    With `final` what stands behind its last turn counts too, which is recorded once the client has let go of it.
    """
    try:
        size = path.stat().st_size
    except (OSError, ValueError):  # ValueError: a state can name what is no path
        return True
    known = cursors.load_cursor(beside, session)
    if known is None or known.offset + known.torn != size or not known.proof:
        return False
    if known.path != str(path) and not _is_moved_copy(known, path):
        return False
    return not final or known.final or not (known.pending or known.torn)


def _is_moved_copy(known: Cursor, path: Path) -> bool:
    """Whether a file that was read at another place, as in a home that was moved since, ends as that one did."""

    try:
        with opened(path) as source:
            return cursors.prefix_proof(source.file, known.offset) == known.proof
    except SessgitError:
        return False


def catch_up(
    open_store: Callable[[], Store], index: Index, state: Session, config: Path, privacy: Privacy, now: float
) -> CatchUpResult:
    """Brings the session level with its transcript, if its project is recorded; loads no git library where it is
    level already.

    Only a file that lies where the client's transcripts lie is read, whatever the state says.
    """
    beside = layout.StorePaths(index.path)
    path = client_files.transcript_place(config, state, beside)
    if path is None:
        return CatchUpResult(True)
    final = _seems_closed(beside, config, path, state, now)
    if is_level(beside, state.id, path, final=final) or not agents.of(state).home.is_transcript(config, path):
        return CatchUpResult(True)
    return record_file(open_store, index, path, config, privacy, project=state.project, final=final)


def _seems_closed(beside: layout.StorePaths, config: Path, path: Path, state: Session, now: float) -> bool:
    """Whether nobody seems to write the file any more, though no event said so: a killed client sends none."""
    from sessgit.record import open_turns

    try:
        quiet = now - path.stat().st_mtime > QUIET_SECONDS
    except OSError:
        return False
    return (
        quiet and not agents.of(state).home.is_open(config, state.agent_id) and not open_turns.is_open(beside, state.id)
    )


def record_file(  # noqa: PLR0913 - what to record, where to, and how
    open_store: Callable[[], Store],
    index: Index,
    path: Path,
    config: Path,
    privacy: Privacy,
    *,
    project: str = "",
    final: bool = False,
) -> CatchUpResult:
    """Records one transcript, waiting a little for its lock; not where the settings or the environment say no.

    `project` is the session's where it is recorded already.
    """
    if privacy.off:
        return CatchUpResult(False, "SESSGIT_OFF=1 is set here", off=True, hint=_OFF_HINT)
    verdict = private.transcript_verdict(privacy, path, project)
    if not verdict.recorded:
        return CatchUpResult(False, f"its project is off ({verdict.why})", off=True, hint=_OFF_HINT)
    from sessgit.record.recording import record
    from sessgit.record.source import TranscriptSource, rules_from_settings
    from sessgit.store import locks

    source = TranscriptSource(path, path.stem, config, final=final)
    try:
        store = open_store()
        with locks.session_lock(store.beside, source.session, LOCK_TIMEOUT) as held:
            if not held:
                return CatchUpResult(False, "a recorder is writing it; this may be an older state")
            done = record(store, index, source, rules_from_settings(privacy.rules))
    except SessgitError as error:
        return CatchUpResult(False, f"cannot read its transcript: {error}")
    if done.aside == "deleted":
        again = f"To record it again: `sessgit import --id {source.session}`"
        return CatchUpResult(False, "it was deleted here", off=True, hint=again)
    if done.aside == "archived" and not is_level(store.beside, source.session, path):
        return CatchUpResult(False, "it is archived, and has new turns: sessgit unarchive")
    return CatchUpResult(True)


def find_unrecorded(config: Path, prefix: str) -> Path | None:
    """The one transcript of the client whose id starts with `prefix`, if there is just one."""
    if not prefix or len(prefix) < 4:
        return None
    found = [path for path in agents.at(config).home.transcripts(config) if path.stem.startswith(prefix)]
    return found[0] if len({ids.session_id(path.stem) for path in found}) == 1 else None
