"""Imports sessions that a program gives as values, such as those of another system.

Turns are written as a transcript and recorded as any other. Everything is made in a scratch store and taken over in one
operation, which `undo` reverts. So a dry run is the same without the last step, and an error changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.api import import_authored, import_transcript
from sessgit.api.import_transcript import GivenTranscript
from sessgit.api.opened import OpenStore
from sessgit.api.values import ImportedSession, ImportOutcome, SessionImport
from sessgit.branch import restore
from sessgit.errors import ConflictError, MovedError, SessgitError, StoreError
from sessgit.history import session_files
from sessgit.history.reassemble import turn_lines
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.session import Session
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.humanize import format_count
from sessgit.model.progress import Progress
from sessgit.record import commits, fork_detection, scratch_store
from sessgit.record import privacy as private
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, rules_from_settings
from sessgit.store import layout, operations, refs, secret_filter
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_MOST_LOOSE_REFS = 100
"""Sessions after which refs are packed: a loose ref is a file, and each recording reads them all."""


def import_sessions(
    store: OpenStore, system: str, sessions: Sequence[ForeignSession], progress: Progress, *, dry_run: bool
) -> SessionImport:
    """Import sessions, parents first; see `Store.import_sessions`. Without a store only a dry run is possible."""
    _, privacy = store.read_settings()
    private.check_on(off=privacy.off)
    is_there = stores.store_exists(store.path)
    target = Store(store.path) if is_there else None
    if target is not None and not dry_run:
        target.repo.begin_write()
    try:
        with scratch_store.scratch_store(store.path if is_there else None) as scratch:
            with closing(Index(scratch.path, lambda: scratch)) as index:
                importer = _Importer(Context(index, store.homes, privacy), system)
                imported, moves = importer.run(sessions, progress)
            if dry_run or target is None or not moves:
                return SessionImport(imported, moves)
            scratch_store.take_over(scratch, target)
            count = len({layout.session_of_ref(move.ref) for move in moves})
            summary = f"import of {format_count(count, 'conversation')} from {system}"
            try:
                operation = operations.perform_operation(target, "import", summary, moves, store.now())
            except MovedError as error:
                raise ConflictError("one of them was just changed", "Nothing was changed. Try again.") from error
            return SessionImport(imported, moves, operation.id)
    finally:
        if target is not None:
            target.repo.release()


class _Importer:
    """Imports into a scratch store."""

    def __init__(self, context: Context, system: str) -> None:
        self.context, self.system = context, system
        self.store, self.index = context.store, context.index
        self.transcripts = dict[str, GivenTranscript]()

    def run(
        self, sessions: Sequence[ForeignSession], progress: Progress
    ) -> tuple[tuple[ImportedSession, ...], tuple[Move, ...]]:
        """Import the sessions, and return what became of each, and the refs that have changed."""
        before = refs.read_all(self.store.path)
        self.index.sync()
        own_ids = [ids.session_id(import_transcript.agent_id_of(self.system, session)) for session in sessions]
        counts, out = Counter(own_ids), list[ImportedSession]()
        for number, (session, own) in enumerate(zip(sessions, own_ids, strict=True)):
            progress(number, len(sessions))
            if number % _MOST_LOOSE_REFS == _MOST_LOOSE_REFS - 1:
                scratch_store.pack_refs(self.store)
            if counts[own] > 1:
                out.append(ImportedSession(session.id, own, "failed", why="two of them have this id"))
            else:
                out.append(self._import(session, own))
        progress(len(sessions), len(sessions))
        after = refs.read_all(self.store.path)
        moved = sorted(ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref))
        return tuple(out), tuple(Move(ref, before.get(ref), after.get(ref)) for ref in moved)

    def _import(self, session: ForeignSession, own: str) -> ImportedSession:
        """Import a session, or leave its refs as they were."""
        before = self._refs(own)
        try:
            return self._update(session, own)
        except StoreError:
            raise  # the next session would fail too
        except SessgitError as error:
            after = self._refs(own)
            for ref in before.keys() | after.keys():
                if before.get(ref) != after.get(ref):
                    self.store.repo.move(ref, after.get(ref), before.get(ref))
            self.index.sync(own)
            outcome: ImportOutcome = "conflict" if isinstance(error, ConflictError) else "failed"
            return ImportedSession(session.id, own, outcome, title=_title(session), why=str(error))

    def _update(self, session: ForeignSession, own: str) -> ImportedSession:
        known = self.index.branch(own)
        if known is not None and known.state.project:
            session = replace(session, project=known.state.project)  # the source may have moved
        parent = self.transcripts.get(session.parent)
        transcript = self.transcripts[session.id] = import_transcript.make_transcript(self.system, session, parent)
        result = ImportedSession(session.id, own, "unchanged", title=_title(session))
        if not private.verdict(self.context.privacy, session.project).recorded:
            return replace(result, outcome="excluded")
        if known is None:
            if refs.read(self.store.path, layout.tombstone_ref(own)):
                return replace(result, outcome="deleted")
            return self._create(session, transcript, result)
        data = self._data_to_record(session, transcript, known)
        comes_from_there = self._source_note(known.tip, own).get("system") == self.system
        if data is None:
            if comes_from_there or known.state.agent_id not in (session.id.lower(), session.agent):
                where = f"from {self.system}" if comes_from_there else "as another conversation"
                raise ConflictError(
                    f"{own[:8]} already exists, {where}, with other turns: {session.id} was skipped",
                    f"`sessgit show {own[:8]}` shows the existing one.",
                )
            result = replace(result, why="its turns here do not change")
        elif not comes_from_there:
            session = replace(session, kept={})  # an export of a session of ours: its files are views
        if known.archived:
            return replace(result, outcome="archived" if data else "unchanged")
        if data:
            self._record(session, transcript, data)
        has_more = self.store.state(self._head(own)).messages > known.state.messages
        tip, result = self._commit_authored(session, transcript, result)
        if has_more:
            return replace(result, outcome="grown", turns=self.store.state(tip).turns - known.state.turns)
        return replace(result, outcome="unchanged" if self._head(own) == known.tip else "changed")

    def _create(self, session: ForeignSession, transcript: GivenTranscript, result: ImportedSession) -> ImportedSession:
        if transcript.data:
            self._record(session, transcript, transcript.data)
        else:
            self._create_empty(session, transcript.agent_id)
        tip, result = self._commit_authored(session, transcript, result, is_new=True)
        state = self.store.state(tip)
        if session.archived:
            for branch, branch_tip in refs.session_tips(self.store.path, result.id).items():
                self.store.repo.move(layout.archive_ref(branch), None, branch_tip)
                self.store.repo.move(layout.head_ref(branch), branch_tip, None)
            self.index.sync(result.id)
        parent, shared = (state.origin.session, state.origin.turn) if state.origin else ("", 0)
        return replace(result, outcome="new", parent=parent, shared=shared, turns=state.turns - shared)

    def _commit_authored(
        self, session: ForeignSession, transcript: GivenTranscript, result: ImportedSession, *, is_new: bool = False
    ) -> tuple[str, ImportedSession]:
        """Record everything but the turns, and return the tip, and the result with what did not fit."""
        own = result.id
        tip, turns = self._head(own), len(self._keys(transcript))
        if parent := self._parent_without_turns(session, tip):
            metadata = {**(session.unified.get("metadata") or {}), "parent": parent}
            session = replace(session, unified={**session.unified, "metadata": metadata})
        commit, notes = import_authored.commit_authored(self.context, tip, self.system, session, turns, is_new=is_new)
        if commit != tip:
            self.store.repo.move(layout.head_ref(own), tip, commit)
        self.index.sync(own)
        return commit, replace(result, notes=tuple(notes))

    def _parent_without_turns(self, session: ForeignSession, tip: str) -> str:
        """Return the id of a session's parent if they share no turns, and it is here, else ``""``."""
        if not session.parent or self.store.state(tip).origin is not None:
            return ""
        known = self.transcripts.get(session.parent)
        parent = ids.session_id(known.agent_id if known else agent_id(self.system, session.parent))
        return parent if self.index.branch(parent) is not None else ""

    def _data_to_record(self, session: ForeignSession, transcript: GivenTranscript, known: Branch) -> bytes | None:
        """Return the transcript to record, ``b""`` if all of it is recorded, None if the session here is another."""
        state, agent = known.state, agents.of(known.state)
        here = [line for n in range(1, state.turns + 1) for line in turn_lines(self.store, known.tip, state, n)]
        redact = secret_filter.line_cleaner(self.store.paths, state.rules, agent.protected_keys)
        transcript = import_transcript.unfinished_transcript(transcript, agent.programs.waiting(here), state.turns)
        new = [agent.lines.make(raw, Extent(0, 0), redact).raw for raw in transcript.data.split(b"\n")[:-1]]
        if agent.programs.goes_on(here, new):
            tail = self.store.tail(known.tip).split(b"\n")
            if new[len(here) :] in ([], tail[:-1]) and (state.state != "active" or session.state == "active"):
                return b""
            return transcript.data if new[: len(here)] == here else agent.programs.grown(here, new)
        if agent.programs.goes_on(new, here):
            return b""
        prompts, keys = [row.prompt for row in self.index.turns(known.name)], list(self._keys(transcript))
        comes_from_there = self._source_note(known.tip, known.name).get("system") == self.system
        is_same = prompts[: len(keys)] == keys[: len(prompts)]
        if comes_from_there or not is_same or not agent.programs.same_prompts(here, new):
            return None
        if len(keys) <= len(prompts):
            return b""
        if not transcript.keys:
            return transcript.data
        data = restore.rebuild_file(self.store, known.name).data
        return import_transcript.append_turns(transcript, data, len(prompts) + 1)

    def _keys(self, transcript: GivenTranscript) -> Sequence[str]:
        """Return the uuids of the prompts."""
        return transcript.keys or fork_detection.read_outline(self._write_file(transcript, transcript.data)).prompts

    def _record(self, session: ForeignSession, transcript: GivenTranscript, data: bytes) -> None:
        source = TranscriptSource(
            self._write_file(transcript, data), transcript.agent_id, self.store.path.parent,
            final=session.state != "active", own=self.context.homes.folders[agents.of_programs().name],
            place=self._place(session, transcript.agent_id),
        )  # fmt: skip
        record(self.context, source, rules_from_settings(self.context.privacy.rules))
        if not refs.read(self.store.path, layout.head_ref(source.session)):
            self._create_empty(session, transcript.agent_id)

    def _create_empty(self, session: ForeignSession, agent_id: str) -> None:
        """Create a session without turns."""
        state = Session(
            ids.session_id(agent_id), agent_id, project=session.project, transcript=self._place(session, agent_id),
            created=session.created, updated=session.updated or session.created, ended=session.ended,
            rules=rules_from_settings(self.context.privacy.rules).stored,
            state="active" if session.state == "active" else "ended",
        )  # fmt: skip
        self.store.repo.move(layout.head_ref(state.id), None, commits.commit_start(self.store, state))

    def _place(self, session: ForeignSession, agent_id: str) -> str:
        """Return the path of the session's transcript in the client's folder."""
        agent = agents.of_programs()
        folder = self.context.homes.folders[agent.name]
        return str(agent.home.transcript_place(folder, "", agent_id, session.project) or "")

    def _write_file(self, transcript: GivenTranscript, data: bytes) -> Path:
        """Write the transcript to a file that is deleted with the scratch store."""
        path = agents.of_programs().home.new_place(self.store.path.parent, transcript.agent_id, "/given")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def _source_note(self, tip: str, own: str) -> dict[str, object]:
        return session_files.source_note(self.store, tip, own)

    def _head(self, own: str) -> str:
        return str(refs.read(self.store.path, layout.head_ref(own)))

    def _refs(self, own: str) -> dict[str, str]:
        return {
            space + branch: tip
            for space in (layout.HEADS, layout.ARCHIVE)
            for branch, tip in refs.session_tips(self.store.path, own, space).items()
        }


def _title(session: ForeignSession) -> str:
    first = next((turn.prompt for turn in session.turns if turn.prompt.strip()), "")
    return session.name or session.title or " ".join(first.split())[:100]
