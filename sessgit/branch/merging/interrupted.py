"""What a kill leaves of a merge or a pick, brought in order by whoever comes next.

A new conversation that was begun for one, and does not hold it yet, is taken back: the same command makes another one.
Turns that stand in the agent's file, and are recorded, are what was asked for: that is written down, so that it can be
undone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sessgit import agents
from sessgit.agents.reader import opened
from sessgit.branch import append_undo
from sessgit.branch.merging import writing
from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize
from sessgit.store import journal, layout, locks, maintenance, operations, refs
from sessgit.store.files import paths
from sessgit.store.journal import FileRange, FileWrites, Operation
from sessgit.store.recorder import append_intent
from sessgit.store.recorder import cursor as cursors
from sessgit.store.recorder.append_intent import AppendIntent
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_MERGE_COMMANDS = ("merge", "pick")


@contextmanager
def creation_in_progress(store: Store, session: str) -> Iterator[None]:
    """Notes that a new session is being made, and is not what it shall be before this ends; where it ends with an
    error, `delete_unfinished` finds the note."""
    note = store.beside.beginning(session)
    held = locks.folder_lock(note)
    try:
        yield
        note.unlink(missing_ok=True)
    finally:
        if held:
            locks.release(held)


def unfinished_sessions(store: Store) -> list[str]:
    """The sessions that were begun and nobody is at any more."""
    return [note.stem for note in sorted(store.beside.state.glob("*.begun")) if _is_unused(note)]


def delete_unfinished(store: Store, config: Path, now: float) -> int:
    """Takes back the sessions that were begun and never became what they should, and returns how many.

    One that somebody went on with stays as it is.
    """
    count = 0
    for session in unfinished_sessions(store):
        with locks.session_lock(store.beside, session) as held:
            if held and not agents.at(config).home.is_open(config, session):
                count += _delete_session(store, session, config, now)
                store.beside.beginning(session).unlink(missing_ok=True)
    return count


def finish_merges(store: Store, config: Path, now: float) -> int:
    """Completes what was half appended to a file, and writes down the merges and picks whose turns were recorded and
    which nobody went on with for a while; returns how many."""
    count = 0
    for place in sorted(store.beside.state.glob("*.append")):
        with suppress(OSError, SessgitError), locks.session_lock(store.beside, place.stem) as held:
            if held and time.time() - place.stat().st_mtime > maintenance.STALE_SECONDS:
                count += _finish_merge(store, place.stem, config, now)
    return count


def first_step(store: Store, session: str, command: str, head: str) -> Operation | None:
    """The operation by which `finish_merges` told of turns that came of the same command, if the head is still
    theirs."""
    last = next(reversed(_head_operations(store, session)), None)
    if last is None or last.command != command or last.moves[0].new != head or not last.wrote.appended:
        return None
    return last if store.message(head).get("Event") != "merge" else None


def _head_operations(store: Store, session: str) -> list[Operation]:
    """The operations that moved the session's head, oldest first."""
    ref = layout.head_ref(session)
    return [one for one in journal.read(store.beside) if any(move.ref == ref for move in one.moves)]


def _finish_head_move(store: Store, every: Sequence[Operation], head: str) -> bool:
    """Moves the head to the commit of a merge that was written down, and not done; whether it did."""
    last = every[-1] if every else None
    if last is None or last.command not in _MERGE_COMMANDS or len(last.moves) != 1:
        return False
    ref, _, new = last.moves[0]
    store.repo.begin_write()
    try:
        if new is None or not store.repo.has(new) or store.commit(new).parents[:1] != (head,):
            return False
        store.repo.move(ref, head, new)
    finally:
        store.repo.release()
    return True


# A new session


def _is_unused(note: Path) -> bool:
    held = locks.folder_lock(note)
    if held:
        locks.release(held)
    return bool(held)


def _delete_session(store: Store, session: str, config: Path, now: float) -> bool:
    ref = layout.head_ref(session)
    head = refs.read(store.path, ref)
    every = _head_operations(store, session)
    if head is None or _finish_head_move(store, every, head) or len(every) != 1 or every[0].command != "fork":
        return False
    fork, note = every[0], append_intent.load_intent(store.beside, session)
    grown = note is not None and note.head == fork.moves[0].new and writing.is_only_intent(store, note, head)
    if not grown and not _has_only_end_commits(store, head, fork.moves[0].new):
        return False
    for name, proof in fork.files.items():
        path = Path(name)
        if not paths.is_inside(config, path) or not _is_as_made(path, proof, note):
            return False
    for name, proof in {**(note.files if note else {}), **dict.fromkeys(fork.files, "")}.items():
        path = Path(name)
        if paths.is_inside(config, path) and (not proof or writing.bytes_hash(path) == proof):
            append_undo.delete_files([path], config)
    moves = [Move(ref, head, None)]
    operations.perform_operation(
        store, "undo", f"undo: {fork.summary}, which was interrupted", moves, now, undoes=fork.id
    )
    append_intent.delete_intent(store.beside, session)
    cursors.delete_cursor(store.beside, session)
    return True


def _has_only_end_commits(store: Store, head: str, made: str | None) -> bool:
    """Whether nothing came after a commit but that somebody saw that nobody is there."""
    while head != made:
        commit = store.commit(head)
        if not commit.parents or store.message(head).get("Event") != "end":
            return False
        head = commit.parents[0]
    return True


def _is_as_made(path: Path, proof: str, note: AppendIntent | None) -> bool:
    """Whether a file holds what the fork wrote and what was being appended to it, and nothing else; or is not there."""
    if not paths.is_there(path):
        return True
    with opened(path) as source:
        data = source.file.read()
    end = note.offset if note is not None and note.path == str(path) else len(data)
    rest = data[end:]
    is_ours = not rest or (note is not None and note.data.startswith(rest))
    return hashlib.sha256(data[:end]).hexdigest() == proof and is_ours


# Turns of a session that was there before


def _finish_merge(store: Store, session: str, config: Path, now: float) -> bool:
    note = append_intent.load_intent(store.beside, session)
    head = refs.read(store.path, layout.head_ref(session))
    if note is None or note.command not in _MERGE_COMMANDS or head is None:
        return False
    if _finish_head_move(store, _head_operations(store, session), head):
        return True
    last = _last_commit_of(store, note, head)
    if last is None:
        path = Path(note.path)
        if paths.is_inside(config, path) and agents.at(config).home.is_transcript(config, path):
            append_undo.check_closed(store.state(head).agent_id, config)
            writing.finish_append(store, session, path)
        return False
    many = humanize.format_count(len(note.brought), "turn")
    named = ", ".join(sorted(layout.short_name(name) for name in note.sources))
    piece = FileRange(note.offset, len(note.data), hashlib.sha256(note.data).hexdigest())
    journal.append(
        store.beside,
        Operation(
            canonical.rfc3339(now), note.command, f"{session[:8]}: {many} of {named}, interrupted",
            (Move(layout.head_ref(session), note.head, last),), FileWrites(note.files, {note.path: piece}),
        ),
    )  # fmt: skip
    append_intent.delete_intent(store.beside, session)
    return True


def _last_commit_of(store: Store, note: AppendIntent, head: str) -> str | None:
    """The commit of the last turn that is noted, where all of them are recorded on what was there before."""
    missing, last = set(note.brought), None
    for commit in store.repo.first_parents(head):
        if commit.id == note.head:
            return last if not missing else None
        prompt = store.message(commit.id).get("Prompt")
        if prompt in note.brought:
            missing.discard(prompt)
            last = last or commit.id
    return None
