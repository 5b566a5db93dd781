"""Recording what a transcript holds because a command asks, hooks or no hooks."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.agents import Transcript, is_packed
from sessgit.errors import AmbiguousError, NotFoundError, SessgitError
from sessgit.history import client_files, resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.ids import Address
from sessgit.store import layout, recorder_state
from sessgit.store.context import Context, Homes
from sessgit.store.recorder_state import Cursor

_OFF_HINT = "To record the project again: `sessgit on`"

LOCK_TIMEOUT = 1.0
"""Seconds that a command waits for a recorder that is at work on the session already."""

QUIET_SECONDS = 60.0
"""Seconds after which a transcript that no living client holds is taken as finished."""


@frozen
class CatchUpResult:
    """Whether the store is level with the transcript; if not, why, in words for a person. `off` says that it must
    not be: the settings, the environment or a person say so; `hint` is then what to do."""

    level: bool
    why: str = ""
    off: bool = False
    hint: str = ""


def is_level(paths: layout.StorePaths, session: str, path: Path, *, final: bool = False) -> bool:
    """Return whether the cursor says that the file, as long as it is now, is recorded; a file that is gone is.

    With `final`, the lines after its last turn count too: they are recorded once the client has closed the file.
    """
    try:
        size = path.stat().st_size
    except (OSError, ValueError):  # ValueError: a state can name what is no path
        return True
    known = recorder_state.load_cursor(paths, session)
    if is_packed(path):
        return known is not None and known.path == str(path)
    if known is None or known.offset + known.torn != size or not known.proof:
        return False
    if known.path != str(path) and not _is_moved_copy(known, path):
        return False
    return not final or known.final or not (known.pending or known.torn)


def _is_moved_copy(known: Cursor, path: Path) -> bool:
    """Return whether a file that was read at another path, as in a home that was moved since, ends as that one did."""
    from sessgit.agents.line import opened

    try:
        with opened(path) as source:
            return recorder_state.prefix_proof(source.file, known.offset) == known.proof
    except SessgitError:
        return False


def catch_up(context: Context, state: Session) -> CatchUpResult:
    """Record what is new in the session's transcript, if its project is recorded; load no git library if nothing is.

    Only a file that lies where the client's transcripts lie is read, whatever the state says.
    """
    paths = layout.StorePaths(context.index.path)
    path = client_files.transcript_place(context.homes, state, paths)
    if path is None:
        return CatchUpResult(True)
    if not paths.waiting_cells(state.id).exists():
        return _catch_up_file(context, state, path)
    from sessgit.record import program_turns

    program_turns.wait_for_client(paths, state.id)
    result = _catch_up_file(context, state, path)
    if result.level:
        program_turns.record_waiting(context, state.id)
    return result


def _catch_up_file(context: Context, state: Session, path: Path) -> CatchUpResult:
    paths = layout.StorePaths(context.index.path)
    if is_level(paths, state.id, path, final=True):
        return CatchUpResult(True)
    final = _seems_closed(paths, context.homes, path, state)
    file = None if is_level(paths, state.id, path, final=final) else agents.transcript_at(context.homes, path)
    if file is None:
        return CatchUpResult(True)
    return record_file(context, file, project=state.project, final=final)


def _seems_closed(paths: layout.StorePaths, homes: Homes, path: Path, state: Session) -> bool:
    """Return whether no process seems to write the file, though no event said so: a killed client sends none."""
    from sessgit.record import program_turns

    try:
        quiet = time.time() - path.stat().st_mtime > QUIET_SECONDS
    except OSError:
        return False
    return quiet and not agents.is_open(homes, state.agent_id) and not program_turns.is_open(paths, state.id)


def record_file(
    context: Context,
    file: Transcript,
    *,
    project: str = "",
    final: bool = False,
) -> CatchUpResult:
    """Record one transcript, waiting a little for its lock, unless the settings or the environment say no.

    `project` is that of the session, if it is recorded already.
    """
    privacy = context.privacy
    if privacy.off:
        return CatchUpResult(False, "SESSGIT_OFF=1 is set here", off=True, hint=_OFF_HINT)
    from sessgit.record import privacy as private

    verdict = private.transcript_verdict(privacy, file.path, project)
    if not verdict.recorded:
        return CatchUpResult(False, f"its project is off ({verdict.why})", off=True, hint=_OFF_HINT)
    from sessgit.record.recording import record
    from sessgit.record.source import TranscriptSource
    from sessgit.store import locks

    folder = context.homes.folders[file.agent]
    source = TranscriptSource(file.path, file.agent_id, folder, client=file.agent, final=final)
    try:
        store = context.store
        with locks.session_lock(store.paths, source.session, LOCK_TIMEOUT) as is_locked:
            if not is_locked:
                return CatchUpResult(False, "a recorder is writing it; this may be an older state")
            done = record(context, source)
    except SessgitError as error:
        return CatchUpResult(False, f"cannot read its transcript: {error}")
    if done.skipped == "deleted":
        again = f"To record it again: `sessgit import --id {source.session}`"
        return CatchUpResult(False, "it was deleted here", off=True, hint=again)
    if done.skipped == "archived" and not is_level(store.paths, source.session, file.path):
        return CatchUpResult(False, "it is archived, and has new turns: sessgit unarchive")
    return CatchUpResult(True)


def find_session(
    context: Context, address: str, caller: CallerContext, *, changes: bool = False
) -> tuple[ResolvedTarget, CatchUpResult]:
    """Return the session that an address without its turn names, before and after recording what is new in its
    transcript. One that is not recorded at all is recorded from the client's file."""
    named = Address(address)
    try:
        target = resolve.resolve_target(context.index, named, caller, changes=changes)
    except AmbiguousError:
        raise
    except NotFoundError:
        file = _unrecorded_transcript(context, address, caller)
        if file is None:
            raise
        result = record_file(context, file)
        if result.off:
            raise NotFoundError(f"{file.agent_id[:8]} is not recorded: {result.why}", result.hint) from None
        context.index.sync()
        target = resolve.resolve_target(context.index, named, caller, changes=changes)
    else:
        result = catch_up(context, target.state)
        context.index.sync(target.session)
    return target, result


def _unrecorded_transcript(context: Context, prefix: str, caller: CallerContext) -> Transcript | None:
    """Return the clients' transcript whose id starts with `prefix`, or None if there is none or several."""
    with suppress(NotFoundError):
        prefix = prefix or resolve.current_branch(context.index, caller)[0]
    if len(prefix) < resolve.SHORTEST_PREFIX:
        return None
    matches = [file for file in agents.transcripts(context.homes) if file.agent_id.startswith(prefix)]
    return matches[0] if len({file.session for file in matches}) == 1 else None
