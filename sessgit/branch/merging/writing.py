"""Turns behind the last one of a session: appended to the agent's file, and recorded out of it.

The file first, then the store: what a kill leaves is a file that holds more than the store, which any recording makes
good, and never a store with lines that the agent's file lacks. The recorder itself cuts the new lines, so that they
are the turns that it would find in the whole file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.agents import file_end
from sessgit.agents.base import Agent
from sessgit.agents.line import Line, parse
from sessgit.agents.reader import Reader, no_redaction, opened
from sessgit.agents.values import NewTurn, Seam, SideFile
from sessgit.branch import sidecars
from sessgit.branch.sidecars import WrittenFile
from sessgit.errors import ConflictError, SessgitError
from sessgit.history import client_files, reassemble
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Extent
from sessgit.model.line_list import file_lines
from sessgit.record import catch_up, open_turns
from sessgit.record.privacy import Privacy, transcript_verdict
from sessgit.record.recorded_turns import is_at_commit
from sessgit.record.recording import record
from sessgit.record.source import RecordRules, TranscriptSource, rules_from_settings
from sessgit.store.files import paths, tempdirs
from sessgit.store.index import Index
from sessgit.store.recorder import append_intent
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.append_intent import AppendIntent, MergeOrigins
from sessgit.store.recorder.cursor import Cursor
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store, TurnLines

_MILLISECONDS_LATER = 2
"""Milliseconds."""
_OTHER_FOLDER_HINT = "Or use `--new` to merge into a new conversation."


@dataclass(frozen=True, slots=True)
class SessionFileEnd:
    """Where the file of a session ends, recorded in `branch`: its place, so many bytes, and the lines behind its last
    turn. The last line has no newline if `unended`.

    `place` is where the agent looks for it; `is_there` is False where it is gone from there, and a file of ours at
    `path` stands in for its end.
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


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """The turns that are appended at once. `brought` says of their prompts by which event and from where they come,
    `beside` is what was just put beside the file, `command` what it is done for."""

    turns: Sequence[NewTurn]
    brought: MergeOrigins
    beside: Sequence[WrittenFile]
    command: str


@contextmanager
def session_file_end(store: Store, branch: Branch, config: Path) -> Iterator[SessionFileEnd]:
    """The end of the session's file, which nobody else writes; whoever calls holds the session's lock.

    Raises ConflictError where a client holds the session, or where its file is not level with the store.
    """
    state = branch.state
    path = client_files.transcript_place(config, state, store.beside)
    if path is None or not state.transcript:
        raise ConflictError(f"{branch.name[:8]} has no file here", f"Write it: `sessgit restore {branch.name[:8]}`")
    check_closed(branch, config)
    if paths.is_there(path):
        yield _end_of_file(store, branch, path)
        return
    if others := client_files.other_copies(config, path):
        raise ConflictError(f"the file of {branch.name[:8]} is in another folder: {others[0]}", _OTHER_FOLDER_HINT)
    with tempdirs.make_folder("sessgit-") as folder:
        yield _placeholder_file(store, branch, path, folder)


def prepare_file(store: Store, index: Index, branch: Branch, config: Path, privacy: Privacy) -> None:
    """Completes what a kill left half appended, ends cells that a program left pending, and records what the session's
    file holds, where that may be.

    Whoever calls holds the session's lock.
    """
    state = branch.state
    path = client_files.transcript_place(config, state, store.beside)
    if path is None or not agents.of(branch.state).home.is_transcript(config, path):
        return
    check_closed(branch, config)
    finish_append(store, branch.name, path)
    is_on = not privacy.off and transcript_verdict(privacy, path, state.project).recorded
    if is_on and not open_turns.is_open(store.beside, branch.name):
        agents.of(state).programs.give_up(path, state)
    level = catch_up.is_level(store.beside, branch.name, path) and _is_recorded_file(store, branch.name, path)
    if not level and is_on:
        record(store, index, TranscriptSource(path, state.agent_id, config), rules_from_settings(privacy.rules))
    index.sync(branch.name)


def _is_recorded_file(store: Store, session: str, path: Path) -> bool:
    """Whether the file is the one that was recorded, and no copy that stands in its place."""
    known = cursors.load_cursor(store.beside, session)
    if known is None:
        return False
    with opened(path) as source:
        return cursors.matches_file(known, path, source.file, source.inode, source.size)


def find_seam(store: Store, at: SessionFileEnd) -> Seam:
    """Where the new lines hang on, out of all that is recorded of the session, rewound turns too."""
    branch = at.branch
    tips = set(reassemble.session_branches(store, branch.name).values()) - {branch.tip}
    last = store.lines(branch.tip, branch.state.turns)
    agent = agents.of(branch.state)
    lines = partial(_all_lines, agent, store)
    found = agent.grafting.seam(lines([branch.tip]), lines(tips), agent.lines.parsed(last.body), at.pending)
    # In the beginning that a fork of ours wrote the last line may be so much later than where it is recorded.
    return replace(found, latest=found.latest + _MILLISECONDS_LATER)


def write_sidecars(store: Store, at: SessionFileEnd, config: Path, files: Sequence[SideFile]) -> list[WrittenFile]:
    """Puts what lay beside the brought turns beside the session's file; never over a file."""
    state = at.branch.state
    place = agents.of(state).sidecars.place(config, at.path.parent, state.agent_id, state.agent_version)
    own = sidecars.rename_session(agents.of(state), files, state.agent_id, state.agent_version)
    return sidecars.write_sidecars(agents.of(state), own, place, sidecars.session_redaction(store, state))


def append_batch(
    store: Store, index: Index, at: SessionFileEnd, batch: AppendBatch, config: Path, rules: RecordRules
) -> None:
    """Appends the turns to the session's file in one write, and records them.

    It is noted until `appending.forget`: `is_only_intent` tells by it where it began.
    """
    branch, brought = at.branch, batch.brought
    check_closed(branch, config)  # telling may have taken a while
    if open_turns.is_open(store.beside, branch.name):
        raise ConflictError(
            f"a program has an open turn of {branch.name[:8]}, which the merge would end",
            f"Wait for it. {_OTHER_FOLDER_HINT}",
        )
    data = b"\n" * at.unended + b"".join(line + b"\n" for turn in batch.turns for line in turn.lines)
    written = [file.path for file in batch.beside if file.outcome == sidecars.WRITTEN and at.is_there]
    files = {str(path): bytes_hash(path) for path in written}
    note = AppendIntent(str(at.place), at.size, data, branch.tip, batch.command, brought, files)
    append_intent.save_intent(store.beside, branch.name, note)
    try:
        file_end.append(at.path, at.size, data)
    except SessgitError:  # it is as it was
        append_intent.delete_intent(store.beside, branch.name)
        raise
    record(store, index, TranscriptSource(at.path, branch.state.agent_id, config, brought=brought), rules)
    index.sync(branch.name)


def bytes_hash(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    return hashlib.sha256(sidecars.read_file(path) or b"").hexdigest()


def is_only_intent(store: Store, note: AppendIntent, head: str) -> bool:
    """Whether the head came of what is noted alone: nothing was said, and nothing was edited, since it was begun."""
    for commit in store.repo.first_parents(head):
        if commit.id == note.head:
            return commit.id != head
        message = store.message(commit.id)
        if message.get("Event") not in ("compact", "end") and message.get("Prompt") not in note.brought:
            return False
    return False


def check_closed(branch: Branch, config: Path) -> None:
    """Raises ConflictError where a client has the session open."""
    if agents.of(branch.state).home.is_open(config, branch.state.agent_id):
        raise ConflictError(
            f"{branch.name[:8]} is open in a client that would not see the appended turns",
            f"Close it first. {_OTHER_FOLDER_HINT}",
        )


def _end_of_file(store: Store, branch: Branch, path: Path) -> SessionFileEnd:
    known = cursors.load_cursor(store.beside, branch.name)
    if not catch_up.is_level(store.beside, branch.name, path) or (known and known.torn):
        raise ConflictError(
            f"the file of {branch.name[:8]} has unrecorded lines, or ends in the middle of one",
            f"`sessgit log {branch.name[:8]}` records it if its project is on. {_OTHER_FOLDER_HINT}",
        )
    assert known is not None
    if known.current is None or not is_at_commit(store, branch.tip, known.commit):
        raise ConflictError(
            f"{branch.name[:8]} was continued elsewhere, and its file here lacks those turns",
            f"Append them: `sessgit restore {branch.name[:8]}`",
        )
    with opened(path) as source:
        if not cursors.matches_file(known, path, source.file, source.inode, source.size):
            raise ConflictError(f"the file of {branch.name[:8]} is not the one that was recorded", _OTHER_FOLDER_HINT)
        reader = Reader(source, 0, no_redaction, agents.of(branch.state).lines.make)
        pending = [line for extent in known.pending for line in reader.again(extent)]
    return SessionFileEnd(branch, path, known.offset, tuple(pending), path, known.unended)


def _placeholder_file(store: Store, branch: Branch, place: Path, folder: Path) -> SessionFileEnd:
    """A file as long as the agent's was, which holds the lines behind its last turn and nothing before them, and a
    cursor that says so: what is appended to it is recorded at the places that it will have when it is restored."""
    state, known = branch.state, cursors.load_cursor(store.beside, branch.name)
    path = folder / "projects" / "stand-in" / f"{state.agent_id}.jsonl"
    path.parent.mkdir(parents=True)
    size, pieces, number, unended = _file_layout(store, branch, known.offset if known else 0)
    last = agents.of(state).lines.parsed(store.lines(branch.tip, state.turns).body)
    with path.open("w+b") as file:
        file.truncate(size)
        for extent, data in pieces:
            file.seek(extent.offset)
            file.write(data)
        file.flush()
        cursor = Cursor(
            str(path), os.fstat(file.fileno()).st_ino, size, cursors.prefix_proof(file, size), branch.tip, "",
            uuids=[line.uuid for line in last if line.uuid],
            pending=messages.join_extents(extent for extent, _ in pieces),
            facts=known.facts if known and known.facts else agents.of(state).facts(state).kept(), file=number,
            unended=unended,
            hash=known.hash if known and known.offset == size and known.file == number else "",
        )  # fmt: skip
    cursors.save_cursor(store.beside, branch.name, cursor)
    tail = agents.of(branch.state).lines.parsed(file_lines(store.tail_lines(branch.tip)))
    return SessionFileEnd(branch, path, size, tuple(tail), place, unended)


def _file_layout(store: Store, branch: Branch, known: int) -> tuple[int, list[tuple[Extent, bytes]], int, bool]:
    """How long the file was, each piece of its tail with its place, which of the session's files it was, and whether
    its last line had no newline.

    A tail in which secrets were replaced has another length than in the file: then it stands at its beginning, and
    what follows comes right behind it. Where there were several files it begins one more.
    """
    ends, number = [(known, False)], 1
    for tip in reassemble.session_branches(store, branch.name).values():
        state = store.state(tip)
        ends.append((state.origin.prefix if state.origin else 0, False))
        for commit in store.repo.first_parents(tip):
            message = store.message(commit.id)
            if message.get("Session") != branch.name:
                break
            ends += [(extent.end, message.is_unended) for extent in message.extents]
            number = max(number, message.file)
    end, unended = max(ends)
    if tail := store.tail(branch.tip):
        unended = not tail.endswith(b"\n")
    size, pieces = _tail_pieces(store, branch, end if number == 1 else 0)
    if number == 1:
        return size, pieces, 1, unended
    size, pieces = _close_gaps(pieces, 0)
    return size, pieces, number + 1, unended and bool(pieces)


def _tail_pieces(store: Store, branch: Branch, end: int) -> tuple[int, list[tuple[Extent, bytes]]]:
    extents, tail = _tail_extents(store, branch), store.tail(branch.tip)
    if not extents or not tail:
        return end, []
    if not tail.endswith(b"\n") and parse(tail.rpartition(b"\n")[2]) is None:
        raise ConflictError(f"the file of {branch.name[:8]} ended in the middle of a line", _OTHER_FOLDER_HINT)
    *ended, rest = tail.split(b"\n")
    lines, pieces = [*(line + b"\n" for line in ended), rest], list[tuple[Extent, bytes]]()
    for extent in extents:
        data = b"".join(lines[: extent.lines])
        lines = lines[extent.lines :]
        pieces.append((extent, data))
    if all(len(data) == extent.length for extent, data in pieces):
        return end, pieces
    return _close_gaps(pieces, extents[0].offset)


def _close_gaps(pieces: list[tuple[Extent, bytes]], at: int) -> tuple[int, list[tuple[Extent, bytes]]]:
    """The pieces one right behind the other, and where the last one ends."""
    close = list[tuple[Extent, bytes]]()
    for extent, data in pieces:
        close.append((Extent(at, len(data), extent.lines), data))
        at += len(data)
    return at, close


def _tail_extents(store: Store, branch: Branch) -> list[Extent]:
    """Where the lines of the tail stood."""
    for commit in store.repo.first_parents(branch.tip):
        message = store.message(commit.id)
        if message.get("Event") not in ("edit", "merge"):
            return message.extents if message.get("Event") == "end" else []
    return []


def _all_lines(agent: Agent, store: Store, tips: Iterable[str]) -> Iterator[list[Line]]:
    return (agent.lines.parsed([*stored.before, *stored.body]) for tip in tips for stored in _turn_lines(store, tip))


def _turn_lines(store: Store, tip: str) -> Iterator[TurnLines]:
    for number in range(1, store.state(tip).turns + 1):
        yield store.lines(tip, number)


def finish_append(store: Store, session: str, path: Path) -> None:
    """Completes what a kill left half appended, where nothing else was written since; a note of anything that is not
    in the file goes."""
    note = append_intent.load_intent(store.beside, session)
    if note is None or note.path != str(path):
        append_intent.delete_intent(store.beside, session)
        return
    with opened(path) as source:
        source.file.seek(note.offset)
        found = source.file.read(len(note.data) + 1) if source.size > note.offset else b""
    if found and found != note.data and note.data.startswith(found):
        file_end.append(path, note.offset + len(found), note.data[len(found) :])
    elif not found.startswith(note.data):
        append_intent.delete_intent(store.beside, session)
