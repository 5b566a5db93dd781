"""Turns behind the last one of a session: appended to the agent's file, and recorded out of it.

The file first, then the store: what a kill leaves is a file that holds more than the store, which any recording makes
good, and never a store with lines that the agent's file lacks. The recorder itself cuts the new lines, so that they
are the turns that it would find in the whole file.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sessgit.agents.claude import facts, home, transcript
from sessgit.agents.claude.lines import Line
from sessgit.agents.claude.reader import Reader, no_redaction, opened
from sessgit.agents.claude.statedir import Place, SideFile
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import message as messages
from sessgit.model.message import Extent
from sessgit.ops import catchup, places, restore, sidefiles
from sessgit.ops.merging import grafting
from sessgit.ops.merging.grafting import Seam, Turn
from sessgit.ops.privacy import Privacy, of_transcript
from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.ops.sidefiles import WrittenFile
from sessgit.store.index import Branch, Index
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.cursor import Cursor
from sessgit.store.store import Store, TurnLines, write_private

_LATER = 2
"""Milliseconds."""
_ELSEWHERE = "--new brings it together in a new conversation and leaves this one as it is."


@dataclass(frozen=True, slots=True)
class End:
    """Where a session's file ends: its place, so many bytes, and the lines behind its last turn.

    `is_there` is False where the agent's file is gone, and a file of ours stands in for its end.
    """

    path: Path
    size: int
    pending: tuple[Line, ...]
    is_there: bool


@contextmanager
def end(store: Store, branch: Branch, config: Path) -> Iterator[End]:
    """The end of the session's file, which nobody else writes; whoever calls holds the session's lock.

    Raises ConflictError where a client holds the session, or where its file is not level with the store.
    """
    state = branch.state
    path = home.transcript_place(config, state.transcript, state.agent_id, state.project)
    if path is None or not state.transcript:
        raise ConflictError(
            f"{branch.name[:8]} has no file yet that could go on", f"sessgit restore {branch.name[:8]} writes it."
        )
    _check_closed(branch, config)
    if home.is_there(path):
        yield _of_file(store, branch, path)
        return
    if others := places.copies(config, path):
        raise ConflictError(f"the file of {branch.name[:8]} lies in another folder: {others[0]}", _ELSEWHERE)
    with tempfile.TemporaryDirectory(prefix="sessgit-") as folder:
        yield _stand_in(store, branch, Path(folder))


def prepare(store: Store, index: Index, branch: Branch, config: Path, privacy: Privacy) -> None:
    """Completes what a kill left half appended, and records what the session's file holds, where that may be.

    Whoever calls holds the session's lock.
    """
    state = branch.state
    path = home.transcript_place(config, state.transcript, state.agent_id, state.project)
    if path is None or not home.is_transcript(config, path):
        return
    _finish(store, branch.name, path)
    level = catchup.is_level(store.beside, branch.name, path)
    if not level and not privacy.off and of_transcript(privacy, path, state.project).recorded:
        record(store, index, Source(path, state.agent_id, config), rules_of(privacy))
    index.sync(branch.name)


def rules_of(privacy: Privacy) -> Rules:
    return Rules(privacy.rules.granularity, privacy.rules.redact)


def seam(store: Store, branch: Branch, at: End) -> Seam:
    """Where the new lines hang on, out of all that is recorded of the session, rewound turns too."""
    tips = restore.branches(store, branch.name)
    every = ([*stored.before, *stored.body] for tip in tips.values() for stored in _turns(store, tip))
    last = store.lines(branch.tip, branch.state.turns)
    found = grafting.seam(map(transcript.parsed, every), transcript.parsed(last.body), at.pending)
    # In the beginning that a fork of ours wrote the last line may be so much later than where it is recorded.
    return replace(found, latest=found.latest + _LATER)


def write_beside(branch: Branch, at: End, config: Path, files: Sequence[SideFile]) -> list[WrittenFile]:
    """Puts what lay beside the brought turns beside the session's file; never over a file."""
    place = Place(config, at.path.parent, branch.state.agent_id, branch.state.agent_version)
    own = sidefiles.taken_over(files, branch.state.agent_id, branch.state.agent_version)
    return sidefiles.write(own, place, sidefiles.rules_of(branch.state))


def append(  # noqa: PLR0913, PLR0917 - what is appended, where, and how it is recorded
    store: Store, index: Index, branch: Branch, at: End, turns: Sequence[Turn], config: Path, rules: Rules,
    brought: Mapping[str, tuple[str, str]],
) -> None:  # fmt: skip
    """Appends the turns to the session's file in one write, and records them.

    `brought` says of prompts by which event and from where their turns come.
    """
    _check_closed(branch, config)  # telling may have taken a while
    data = b"".join(line + b"\n" for turn in turns for line in turn.lines)
    note = {"path": str(at.path), "offset": at.size, "data": base64.b64encode(data).decode()}
    if at.is_there:
        write_private(store.beside.appending(branch.name), json.dumps(note).encode())
    _append(at.path, at.size, data)
    _forget(store, branch.name)
    record(store, index, Source(at.path, branch.state.agent_id, config, brought=brought), rules)
    index.sync(branch.name)


def _check_closed(branch: Branch, config: Path) -> None:
    if any(client.agent_id == branch.state.agent_id for client in home.live_clients(config)):
        raise ConflictError(
            f"{branch.name[:8]} is open in a client, which would not see what is appended to its file",
            f"Close it first. {_ELSEWHERE}",
        )


def _of_file(store: Store, branch: Branch, path: Path) -> End:
    if not catchup.is_level(store.beside, branch.name, path):
        raise ConflictError(
            f"the file of {branch.name[:8]} holds more than is recorded, or ends in the middle of a line",
            f"sessgit log {branch.name[:8]} records it, where its project is on. {_ELSEWHERE}",
        )
    known = cursors.load(store.beside, branch.name)
    assert known is not None
    with opened(path) as source:
        if not cursors.fits(known, path, source.file, source.inode, source.size):
            raise ConflictError(f"the file of {branch.name[:8]} is not the one that was recorded", _ELSEWHERE)
        reader = Reader(source, 0, no_redaction)
        pending = [line for extent in known.pending for line in reader.again(extent)]
    return End(path, known.offset, tuple(pending), True)


def _tail(store: Store, branch: Branch) -> list[Line]:
    return transcript.parsed(store.tail(branch.tip).split(b"\n")[:-1])


def _stand_in(store: Store, branch: Branch, folder: Path) -> End:
    """A file as long as the agent's was, which holds the lines behind its last turn and nothing before them, and a
    cursor that says so: what is appended to it is recorded at the places that it will have when it is restored."""
    state, known = branch.state, cursors.load(store.beside, branch.name)
    path = folder / "projects" / "stand-in" / f"{state.agent_id}.jsonl"
    path.parent.mkdir(parents=True)
    size, pieces = _laid(store, branch, known.offset if known else 0)
    with path.open("w+b") as file:
        file.truncate(size)
        for extent, data in pieces:
            file.seek(extent.offset)
            file.write(data)
        file.flush()
        cursor = Cursor(
            str(path), os.fstat(file.fileno()).st_ino, size, cursors.proof(file, size), branch.tip, "",
            uuids=[line.uuid for line in transcript.parsed(store.lines(branch.tip, state.turns).body) if line.uuid],
            pending=messages.join(extent for extent, _ in pieces),
            facts=known.facts if known and known.facts else asdict(facts.of(state)),
        )  # fmt: skip
    cursors.save(store.beside, branch.name, cursor)
    return End(path, size, tuple(_tail(store, branch)), False)


def _laid(store: Store, branch: Branch, known: int) -> tuple[int, list[tuple[Extent, bytes]]]:
    """How long the file was, and each piece of its tail with its place.

    A tail in which secrets were replaced has another length than in the file: then it stands at its beginning, and
    what follows comes right behind it.
    """
    ends = [known]
    for tip in restore.branches(store, branch.name).values():
        state = store.state(tip)
        ends.append(state.origin.prefix if state.origin else 0)
        for commit in store.repo.first_parents(tip):
            message = store.message(commit.id)
            if message.get("Session") != branch.name:
                break
            ends += [extent.end for extent in message.extents]
    extents, tail = _ended(store, branch), store.tail(branch.tip)
    if not extents or not tail:
        return max(ends), []
    if not tail.endswith(b"\n"):
        raise ConflictError(f"the file of {branch.name[:8]} ended in the middle of a line", _ELSEWHERE)
    lines, pieces = tail.split(b"\n")[:-1], list[tuple[Extent, bytes]]()
    for extent in extents:
        data = b"".join(line + b"\n" for line in lines[: extent.lines])
        lines = lines[extent.lines :]
        pieces.append((extent, data))
    if all(len(data) == extent.length for extent, data in pieces):
        return max(ends), pieces
    at, close = extents[0].offset, list[tuple[Extent, bytes]]()
    for extent, data in pieces:
        close.append((Extent(at, len(data), extent.lines), data))
        at += len(data)
    return at, close


def _ended(store: Store, branch: Branch) -> list[Extent]:
    """Where the lines of the tail stood."""
    for commit in store.repo.first_parents(branch.tip):
        message = store.message(commit.id)
        if message.get("Event") not in ("edit", "merge"):
            return message.extents if message.get("Event") == "end" else []
    return []


def _turns(store: Store, tip: str) -> Iterator[TurnLines]:
    for number in range(1, store.state(tip).turns + 1):
        yield store.lines(tip, number)


def _append(path: Path, size: int, data: bytes) -> None:
    """Appends the bytes in one write to a file that still has that size, or leaves it as it is."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise SessgitError(f"cannot append to {path}: {error.strerror or error}", "Nothing was changed.") from error
    try:
        if os.fstat(handle).st_size != size:
            raise ConflictError(f"{path} was written just now", f"Nothing was changed. Try again. {_ELSEWHERE}")
        written = 0
        try:
            written = os.write(handle, data)
            os.fsync(handle)
        except OSError as error:
            raise SessgitError(f"cannot append to {path}: {error.strerror or error}") from error
        finally:
            if written != len(data):
                os.ftruncate(handle, size)
        if written != len(data):
            raise SessgitError(f"cannot append to {path}: the disk is full", "Nothing was changed.")
    finally:
        os.close(handle)


def _finish(store: Store, session: str, path: Path) -> None:
    """Completes what a kill left half appended, where nothing else was written since."""
    note = store.beside.appending(session)
    try:
        left = json.loads(note.read_bytes())
        offset, data = int(left["offset"]), base64.b64decode(left["data"])
        named = left["path"] == str(path)
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError):
        named, offset, data = False, 0, b""
    if named:
        with opened(path) as source:
            source.file.seek(offset)
            found = source.file.read(len(data) + 1) if source.size > offset else b""
        if found and found != data and data.startswith(found):
            _append(path, offset + len(found), data[len(found) :])
    note.unlink(missing_ok=True)


def _forget(store: Store, session: str) -> None:
    store.beside.appending(session).unlink(missing_ok=True)
