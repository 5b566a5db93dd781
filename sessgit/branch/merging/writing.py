"""Turns behind the last one of a session: appended to the agent's file, and recorded out of it.

The file first, then the store: a kill leaves a file that holds more than the store, which any recording mends, and
never a store with lines that the agent's file lacks. The recorder itself cuts the new lines, so that they are the
turns that it would cut from the whole file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.agents.reader import Reader, no_redaction, opened
from sessgit.agents.values import NewTurn, Seam, SideFile
from sessgit.branch import file_append, sidecars
from sessgit.branch.restore import write_copy
from sessgit.errors import ConflictError
from sessgit.history import client_files, reassemble
from sessgit.model.homes import Homes
from sessgit.record import catch_up, open_turns
from sessgit.record.privacy import transcript_verdict
from sessgit.record.recorded_turns import is_at_commit
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, rules_from_settings
from sessgit.store import recorder_state, tempdirs
from sessgit.store.context import Context
from sessgit.store.index import Branch
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import AppendIntent, MergeOrigins
from sessgit.store.store import Store

_MILLISECONDS_LATER = 2
_OTHER_FOLDER_HINT = "Or use `--new` to merge into a new conversation."


@dataclass(frozen=True, slots=True)
class SessionFileEnd:
    """The end of a session's file, recorded in `branch`: its size in bytes, and the lines behind its last turn. The
    last line has no newline if `unended`.

    `place` is where the agent looks for it; if the agent has deleted it, `path` is a copy out of the store.
    """

    branch: Branch
    path: Path
    size: int
    pending: tuple[Line, ...]
    place: Path
    unended: bool = False

    @property
    def is_there(self) -> bool:
        return self.path == self.place


@contextmanager
def session_file_end(context: Context, branch: Branch) -> Iterator[SessionFileEnd]:
    """Yield the end of the session's file; the caller holds the session's lock.

    Raises ConflictError if a client has the session open, or if its file is not level with the store.
    """
    state, homes = branch.state, context.homes
    path = client_files.transcript_place(homes, state, context.store.paths)
    if path is None or not state.transcript:
        raise ConflictError(f"{branch.name[:8]} has no file here", f"Write it: `sessgit restore {branch.name[:8]}`")
    check_closed(branch, homes)
    if path_exists(path):
        yield _end_of_file(context.store, branch, path)
        return
    if others := client_files.other_copies(homes, state, path):
        raise ConflictError(f"the file of {branch.name[:8]} is in another folder: {others[0]}", _OTHER_FOLDER_HINT)
    with tempdirs.make_folder("sessgit-") as folder:
        copy = write_copy(context.store, state, folder)
        _record(context, branch, copy)
        yield replace(_end_of_file(context.store, branch, copy), place=path)


def prepare_file(context: Context, branch: Branch) -> None:
    """Complete what a kill left half appended, end cells that a program left pending, and record the session's file,
    if it may be recorded.

    The caller holds the session's lock.
    """
    state, store, privacy = branch.state, context.store, context.privacy
    path = client_files.transcript_place(context.homes, state, store.paths)
    if path is None or not agents.of(state).home.is_transcript(context.homes.of(state), path):
        return
    check_closed(branch, context.homes)
    file_append.finish_append(store.paths, branch.name, path)
    is_on = not privacy.off and transcript_verdict(privacy, path, state.project).recorded
    if is_on and not open_turns.is_open(store.paths, branch.name):
        agents.of(state).programs.give_up(path, state)
    level = catch_up.is_level(store.paths, branch.name, path) and _is_recorded_file(store, branch.name, path)
    if not level and is_on:
        _record(context, branch, path)
    context.index.sync(branch.name)


def _record(context: Context, branch: Branch, path: Path, origins: MergeOrigins | None = None) -> None:
    state = branch.state
    source = TranscriptSource(path, state.agent_id, context.homes.of(state), client=state.agent, origins=origins or {})
    record(context, source, rules_from_settings(context.privacy.rules))
    context.index.sync(branch.name)


def _is_recorded_file(store: Store, session: str, path: Path) -> bool:
    """Return whether the file is the one that was recorded, and no copy in its place."""
    cursor = recorder_state.load_cursor(store.paths, session)
    if cursor is None:
        return False
    with opened(path) as source:
        return recorder_state.matches_file(cursor, path, source.file, source.inode, source.size)


def find_seam(store: Store, end: SessionFileEnd) -> Seam:
    """Return the line that the new lines follow, out of all that is recorded of the session, rewound turns too."""
    branch = end.branch
    tips = set(reassemble.session_branches(store, branch.name).values()) - {branch.tip}
    last = store.lines(branch.tip, branch.state.turns)
    agent = agents.of(branch.state)

    def lines(tips: Iterable[str]) -> Iterator[list[Line]]:
        for tip in tips:
            for number in range(1, store.state(tip).turns + 1):
                stored = store.lines(tip, number)
                yield agent.parsed([*stored.before, *stored.body])

    seam = agent.writer.seam(lines([branch.tip]), lines(tips), agent.parsed(last.body), end.pending)
    # In the beginning that a fork of ours wrote the last line may be so much later than where it is recorded.
    return replace(seam, latest=seam.latest + _MILLISECONDS_LATER)


def append_turns(
    context: Context,
    end: SessionFileEnd,
    turns: Sequence[NewTurn],
    origins: MergeOrigins,
    sidecar_files: Sequence[SideFile],
    command: str,
) -> None:
    """Append the turns to the session's file in one write, with the sidecar files next to it, and record them.

    `origins` has the event and origin of each turn by its prompt. The append stays noted until `delete_intent`.
    """
    branch, store, state = end.branch, context.store, end.branch.state
    agent = agents.of(state)
    place = agent.sidecars.place(context.homes.of(state), end.path.parent, state.agent_id, state.agent_version)
    own = sidecars.rename_session(agent, sidecar_files, state.agent_id, state.agent_version)
    written = sidecars.write_sidecars(own, place, sidecars.session_redaction(store, state))
    check_closed(branch, context.homes)  # making the turns may have taken a while
    if open_turns.is_open(store.paths, branch.name):
        raise ConflictError(
            f"a program has an open turn of {branch.name[:8]}, which the merge would end",
            f"Wait for it. {_OTHER_FOLDER_HINT}",
        )
    data = b"\n" * end.unended + b"".join(line + b"\n" for turn in turns for line in turn.lines)
    new = [file.path for file in written if file.outcome == sidecars.WRITTEN and end.is_there]
    files = {str(path): bytes_hash(path) for path in new}
    intent = AppendIntent(str(end.place), end.size, data, branch.tip, command, origins, files)
    file_append.append_lines(store.paths, branch.name, end.path, intent)
    _record(context, branch, end.path, origins)


def bytes_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(sidecars.read_file(path) or b"").hexdigest()


def check_closed(branch: Branch, homes: Homes) -> None:
    """Raise ConflictError if a client has the session open."""
    hint = f"Close it first. {_OTHER_FOLDER_HINT}"
    file_append.check_closed(branch.state.agent_id, homes, "appended turns", hint)


def _end_of_file(store: Store, branch: Branch, path: Path) -> SessionFileEnd:
    short, cursor = branch.name[:8], recorder_state.load_cursor(store.paths, branch.name)
    if cursor is None or cursor.torn or not catch_up.is_level(store.paths, branch.name, path):
        raise ConflictError(
            f"the file of {short} has unrecorded lines, or ends in the middle of one",
            f"`sessgit log {short}` records it if its project is on. {_OTHER_FOLDER_HINT}",
        )
    if cursor.current is None or not is_at_commit(store, branch.tip, cursor.commit):
        raise ConflictError(
            f"{short} was continued elsewhere, and its file here lacks those turns",
            f"Append them: `sessgit restore {short}`",
        )
    with opened(path) as source:
        if not recorder_state.matches_file(cursor, path, source.file, source.inode, source.size):
            raise ConflictError(f"the file of {short} is not the one that was recorded", _OTHER_FOLDER_HINT)
        reader = Reader(source, 0, no_redaction, agents.of(branch.state).lines.make)
        pending = [line for extent in cursor.pending for line in reader.again(extent)]
    return SessionFileEnd(branch, path, cursor.offset, tuple(pending), path, cursor.unended)
