"""Sessions of other systems: imports those that a program gives as values, and returns recorded ones in the same form.

The turns of an import are written as a transcript and recorded as any other. Everything is made in a scratch store and
taken over in one operation, which `undo` reverts. So a dry run is the same without the last step, and an error changes
nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.line import Line, split
from sessgit.api.opened import OpenStore
from sessgit.api.values import ImportedSession, ImportOutcome, SessionImport
from sessgit.branch import edit, restore
from sessgit.errors import ConflictError, MovedError, SessgitError, StoreError
from sessgit.history import pad_lists, session_files
from sessgit.history.reassemble import lines_of_turns
from sessgit.history.session_files import SOURCE
from sessgit.history.turn_log import body_of
from sessgit.model import canonical, humanize, ids, prices
from sessgit.model import pad as pads
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.session import STAGES, Session, Unified
from sessgit.model.conversation.turn import Cell, Tokens, Turn
from sessgit.model.foreign_session import ForeignSession, agent_id, clean_description, clean_label
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.model.pad import Entry
from sessgit.model.program_input import GivenTurn, Part, Saying, Step, ToolCall
from sessgit.model.progress import Progress, counted
from sessgit.record import commits, edit_commit, fork_detection, scratch_store
from sessgit.record import privacy as private
from sessgit.record.edit_commit import StateEdit
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, stored_rules
from sessgit.store import layout, operations, owner, refs, secret_filter
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.operations import Move
from sessgit.store.secret_filter import Cleaner
from sessgit.store.store import Store

_MOST_LOOSE_REFS = 100
"""Sessions after which refs are packed: a loose ref is a file, and each recording reads them all."""
_LONGEST_TITLE, _LONGEST_SHOWN = 200, 60
_PLAIN_FIELDS = ("name", "title", "description", "stage", "confidence")
_EMPTY: dict[str, Any] = {
    "name": "", "title": "", "description": "", "labels": [], "stage": "", "confidence": None, "state": "",
    "unified": {}, "created": "", "updated": "", "ended": "",
}  # fmt: skip
"""The fields of a source that says nothing."""
_NameUuid = Callable[[str], str]
"""Makes a uuid of a word that is unique within a session."""
_EMPTY_PROMPT = "(no words)"
"""Replaces an empty prompt, which the model's API does not accept."""
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_PROMPT_MARK = "\u2060"
"""Precedes a prompt that the client would take for a note of its own. It is invisible."""
_SAME_FIELDS = (
    "title", "name", "description", "project", "created", "updated", "ended", "labels", "stage", "confidence",
)  # fmt: skip
"""Fields of the state that a snapshot has too."""
_EARLIEST_TIME = 86_400
"""Lines of 1 January 1970 were written without a time."""


def import_sessions(
    store: OpenStore, system: str, sessions: Sequence[ForeignSession], progress: Progress, *, dry_run: bool
) -> SessionImport:
    """Import sessions, parents first; see `Store.import_sessions`. Without a store only a dry run is possible."""
    _, privacy = store.read_settings()
    private.check_on(privacy)
    is_there = owner.store_exists(store.path)
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
        self.transcripts = dict[str, _Transcript]()

    def run(
        self, sessions: Sequence[ForeignSession], progress: Progress
    ) -> tuple[tuple[ImportedSession, ...], tuple[Move, ...]]:
        """Import the sessions, and return what became of each, and the refs that have changed."""
        before = refs.read_all(self.store.path)
        self.index.sync()
        own_ids = [ids.session_id(_agent_id_of(self.system, session)) for session in sessions]
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
        return tuple(out), _moves(before, refs.read_all(self.store.path))

    def _import(self, session: ForeignSession, own: str) -> ImportedSession:
        """Import a session, or leave its refs as they were."""
        before = self._refs(own)
        try:
            return self._update(session, own)
        except StoreError:
            raise  # the next session would fail too
        except SessgitError as error:
            for move in _moves(before, self._refs(own)):
                self.store.repo.move(move.ref, move.new, move.old)
            self.index.sync(own)
            outcome: ImportOutcome = "conflict" if isinstance(error, ConflictError) else "failed"
            return ImportedSession(session.id, own, outcome, title=_title(session), why=str(error))

    def _update(self, session: ForeignSession, own: str) -> ImportedSession:
        known = self.index.branch(own)
        if known is not None and known.state.project:
            session = replace(session, project=known.state.project)  # the source may have moved
        parent = self.transcripts.get(session.parent)
        transcript = self.transcripts[session.id] = _make_transcript(self.system, session, parent)
        result = ImportedSession(session.id, own, "unchanged", title=_title(session))
        if not private.verdict(self.context.privacy, session.project).recorded:
            return replace(result, outcome="excluded")
        if known is None:
            if refs.read(self.store.path, layout.tombstone_ref(own)):
                return replace(result, outcome="deleted")
            return self._create(session, transcript, result)
        data = self._data_to_record(session, transcript, known)
        comes_from_there = self._comes_from_there(known)
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

    def _create(self, session: ForeignSession, transcript: _Transcript, result: ImportedSession) -> ImportedSession:
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
        self, session: ForeignSession, transcript: _Transcript, result: ImportedSession, *, is_new: bool = False
    ) -> tuple[str, ImportedSession]:
        """Record everything but the turns, and return the tip, and the result with what did not fit."""
        own = result.id
        tip, turns = self._head(own), len(self._keys(transcript))
        if parent := self._parent_without_turns(session, tip):
            metadata = {**(session.unified.get("metadata") or {}), "parent": parent}
            session = replace(session, unified={**session.unified, "metadata": metadata})
        commit, notes = _write_authored(self.context, tip, self.system, session, turns, is_new=is_new)
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

    def _data_to_record(self, session: ForeignSession, transcript: _Transcript, known: Branch) -> bytes | None:
        """Return the transcript to record, ``b""`` if all of it is recorded, None if the session here is another."""
        state, agent = known.state, agents.of(known.state)
        turns = lines_of_turns(self.store, known.tip, state, range(1, state.turns + 1))
        here = [*chain.from_iterable(turns)]
        redact = secret_filter.line_cleaner(self.store.paths, state.rules, agent.protected_keys)
        if transcript.turns and (waiting := agent.programs.late_results(here)):
            transcript = _write_lines(transcript, waiting, state.turns)
        new = [agent.lines.make(raw, Extent(0, 0), redact).raw for raw in transcript.data.split(b"\n")[:-1]]
        if agent.programs.continues(here, new):
            tail = self.store.tail(known.tip).split(b"\n")
            if new[len(here) :] in ([], tail[:-1]) and (state.state != "active" or session.state == "active"):
                return b""
            return transcript.data if new[: len(here)] == here else agent.programs.extended(here, new)
        if agent.programs.continues(new, here):
            return b""
        prompts, keys = [row.prompt for row in self.index.turns(known.name)], list(self._keys(transcript))
        is_same = prompts[: len(keys)] == keys[: len(prompts)]
        if self._comes_from_there(known) or not is_same or not agent.programs.same_prompts(here, new):
            return None
        if len(keys) <= len(prompts):
            return b""
        if not transcript.keys:
            return transcript.data
        data = restore.rebuild_file(self.store, known.name).data
        return _append_turns(transcript, data, len(prompts) + 1)

    def _keys(self, transcript: _Transcript) -> Sequence[str]:
        """Return the uuids of the prompts."""
        return transcript.keys or fork_detection.read_outline(self._write_file(transcript, transcript.data)).prompts

    def _record(self, session: ForeignSession, transcript: _Transcript, data: bytes) -> None:
        source = TranscriptSource(
            self._write_file(transcript, data), transcript.agent_id, self.store.path.parent,
            final=session.state != "active", own=self.context.homes.folders[agents.of_programs().name],
            place=self._place(session, transcript.agent_id),
        )  # fmt: skip
        record(self.context, source)
        if not refs.read(self.store.path, layout.head_ref(source.session)):
            self._create_empty(session, transcript.agent_id)

    def _create_empty(self, session: ForeignSession, agent_id: str) -> None:
        """Create a session without turns."""
        state = Session(
            ids.session_id(agent_id), agent_id, project=session.project, transcript=self._place(session, agent_id),
            created=session.created, updated=session.updated or session.created, ended=session.ended,
            rules=stored_rules(self.context.privacy.rules),
            state="active" if session.state == "active" else "ended",
        )  # fmt: skip
        self.store.repo.move(layout.head_ref(state.id), None, commits.commit_start(self.store, state))

    def _place(self, session: ForeignSession, agent_id: str) -> str:
        """Return the path of the session's transcript in the client's folder."""
        agent = agents.of_programs()
        folder = self.context.homes.folders[agent.name]
        return str(agent.home.transcript_place(folder, "", agent_id, session.project) or "")

    def _write_file(self, transcript: _Transcript, data: bytes) -> Path:
        """Write the transcript to a file that is deleted with the scratch store."""
        path = agents.of_programs().home.new_place(self.store.path.parent, transcript.agent_id, "/given")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def _comes_from_there(self, known: Branch) -> bool:
        """Return whether the session was imported from the system."""
        return session_files.source_note(self.store, known.tip, known.name).get("system") == self.system

    def _head(self, own: str) -> str:
        return str(refs.read(self.store.path, layout.head_ref(own)))

    def _refs(self, own: str) -> dict[str, str]:
        return {
            space + branch: tip
            for space in layout.BRANCH_SPACES
            for branch, tip in refs.session_tips(self.store.path, own, space).items()
        }


def _moves(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Move, ...]:
    """Return what has become of refs."""
    moved = sorted(ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref))
    return tuple(Move(ref, before.get(ref), after.get(ref)) for ref in moved)


def _title(session: ForeignSession) -> str:
    first = next((turn.prompt for turn in session.turns if turn.prompt.strip()), "")
    return session.name or session.title or " ".join(first.split())[:100]


def _write_authored(
    context: Context, tip: str, system: str, session: ForeignSession, turns: int, *, is_new: bool
) -> tuple[str, list[str]]:
    """Return a commit on the tip with what the source says, or the tip if that is nothing new; and what did not fit, in
    words. `turns` is the number of turns that the source has; `is_new` tells that the import created the session."""
    store = context.store
    before = store.state(tip)
    clean_line = secret_filter.line_cleaner(store.paths, before.rules, agents.of(before).protected_keys)
    clean_text = secret_filter.text_cleaner(store.paths, before.rules)
    notes, files = list[str](), dict(session.kept)
    state = sessions.parse_state(session.unified)
    if (size := sessions.memory_size(state.working_memory)) > sessions.LARGEST_MEMORY:
        sizes = humanize.format_size(size), humanize.format_size(sessions.LARGEST_MEMORY)
        notes.append(f"its working memory has {sizes[0]}, but at most {sizes[1]} are allowed: kept as a file")
        text = json.dumps(state.working_memory, ensure_ascii=False, indent=2)
        files[f"{system}/working-memory.json"] = text.encode("utf-8", "replace") + b"\n"
        state = replace(state, context=sessions.Memory())
    fields = _fields(session, state, clean_line)
    note = session_files.source_note(store, tip, before.id)
    known = note["said"] if isinstance(note.get("said"), dict) else {}
    after = _apply_fields(context, before, fields, known, notes)
    after = replace(after, unified=_merge_program_state(before.unified, state, known, notes))
    here = pad_lists.read_lists(store, tip)
    lists, marks, over = _merge_pad(here, session.pad, known.get("pad"), clean_line, notes)
    for name, lines in over.items():
        many = humanize.format_count(len(lines), "entry", "entries")
        notes.append(f"{many} of its {name} did not fit on the scratchpad: kept as a file")
        files[f"{system}/pad/{name}.jsonl"] = canonical.join_lines(lines)
    changes: pad_lists.Changes = dict(pad_lists.list_changes(store, tip, here, lists))
    kept = {
        path: (clean_line if path.endswith(".json") else clean_text)(data)[0]
        for path, data in _storable_files(files).items()
    }
    tree = store.tree(tip)
    if not note and store.repo.entry(tree, f"{layout.KEPT}/{SOURCE}") is not None:
        # A fork has the files of its parent, but the source has this session too.
        changes |= {f"{layout.KEPT}/{path}": None for path in session_files.kept_files(store, tip) if path not in kept}
    source = {"session": before.id, "system": system, "id": session.id, "version": 1, "turns": turns}
    source["said"] = {**fields, "pad": marks}
    if session.facts:
        source["facts"] = json.loads(clean_line(canonical.compact(dict(session.facts)))[0])
    for path, data in {**kept, SOURCE: canonical.dumps(source)}.items():
        place, entry = f"{layout.KEPT}/{path}", (store.repo.write_blob(data), False)
        if store.repo.entry(tree, place) != entry:
            changes[place] = entry
    if not is_new and after == before and not changes.keys() - {f"{layout.KEPT}/{SOURCE}"}:
        return tip, notes
    made = StateEdit(f"as {system} has it", after, changes)
    return edit_commit.write_edit(store, before.id, tip, made, store.commit(tip).time), notes


# Authored fields and state


def _fields(session: ForeignSession, state: sessions.Unified, clean: Cleaner) -> dict[str, Any]:
    """Return what the source says in the form that a session here can have, with secrets redacted."""
    name = _name(session.name)
    fields: dict[str, Any] = {
        "name": name,
        "title": canonical.one_line(session.title or ("" if name else session.name), _LONGEST_TITLE),
        "description": clean_description(session.description),
        "labels": [label for label in map(clean_label, session.labels) if label][: edit.MOST_LABELS],
        "stage": session.stage if session.stage in STAGES else "",
        "confidence": session.confidence,
        "state": "interrupted" if session.state == "interrupted" else "",
        "unified": sessions.state_document(state),
    }
    for key in ("created", "updated", "ended"):
        seconds = canonical.seconds(getattr(session, key))
        fields[key] = "" if seconds is None else canonical.rfc3339(seconds)
    data, secrets = clean(canonical.compact(fields))
    return json.loads(data) if secrets else fields


def _name(text: str) -> str:
    try:
        return ids.check_name(canonical.one_line(text, 100).replace("/", "-").replace("@", " "))
    except SessgitError:
        return ""


def _apply_fields(
    context: Context, before: Session, fields: Mapping[str, Any], known: Mapping[str, Any], notes: list[str]
) -> Session:
    """Return the state with the fields that the source says otherwise than before."""
    new = {key: fields[key] for key, empty in _EMPTY.items() if fields[key] != known.get(key, empty)}
    for key, value in ((key, getattr(before, key)) for key in _PLAIN_FIELDS):
        if known and value not in (fields[key], known.get(key, _EMPTY[key])):
            new.pop(key, None)
            notes.append(f"{key} is {_shown(value)} here and {_shown(fields[key])} there: kept as it is here")
    if new.get("name"):
        try:
            edit.check_name_free(context.index, new["name"], before.id, context.index.local_path(before.project))
        except SessgitError:
            name = new.pop("name")
            notes.append(f"another conversation is already called “{name}”: imported without a name")
            new["title"] = fields["title"] or before.title or name
    values = {key: new[key] for key in _PLAIN_FIELDS if key in new}
    if "labels" in new:
        gone = {label for label in known.get("labels", ()) if isinstance(label, str)}
        values["labels"] = tuple(sorted(({*before.labels} - gone) | {*new["labels"]}))[: edit.MOST_LABELS]
    if new.get("state") and before.state == "ended":
        values["state"] = new["state"]
    if new.get("created") and not before.origin:
        values["created"] = new["created"]
    if new.get("updated", "") > before.updated:
        values["updated"] = new["updated"]
    if new.get("ended") and before.state != "active":
        values["ended"] = new["ended"]
    return replace(before, **values)


def _shown(value: object) -> str:
    if value == "":
        return "empty"
    return f"“{canonical.one_line(value, _LONGEST_SHOWN)}”" if isinstance(value, str) else json.dumps(value)


def _merge_program_state(ours: Unified, theirs: Unified, known: Mapping[str, Any], notes: list[str]) -> Unified:
    """Return our state of programs with what the source says otherwise than before; of what was changed here too, ours.
    Without a note of what it said, the source is right."""
    if not known:
        return ours if theirs == sessions.NO_STATE else theirs
    was, values = sessions.parse_state(known.get("unified") or {}), dict[str, Any]()
    for path in (*sessions.SCALARS, *sessions.COUNTERS, *sessions.OWN):
        here, there, before = (sessions.value_at(one, path) for one in (ours, theirs, was))
        if there in (before, here):
            continue
        if here == before:
            values[path] = there
        else:
            notes.append(f"{path} is {_shown(here)} here and {_shown(there)} there: kept as it is here")
    began = was.working_memory, was.working_memory
    memory, both = sessions.merged_memory(began, ours.working_memory, theirs.working_memory)
    if not sessions.is_same_json(memory, ours.working_memory):
        values[sessions.MEMORY] = memory or None
    if both:
        notes.append(f"changed here and there, and kept as it is here: {', '.join(both)} of its working memory")
    return sessions.with_values(ours, values)


# Scratchpad


def _merge_pad(
    here: pads.Lists, theirs: pads.Lists, known: object, clean: Cleaner, notes: list[str]
) -> tuple[dict[str, bytes], dict[str, list[str]], dict[str, list[bytes]]]:
    """Return the lists with what the source says anew; by list, marks of the entries that the source has, to recognize
    them at the next import; and the lines that do not fit."""
    said = {mark for marks in known.values() for mark in marks} if isinstance(known, dict) else set[str]()
    out, marks, over = dict(here), dict[str, list[str]](), dict[str, list[bytes]]()
    entries = pads.read_pad(here).entries
    texts = {(entry.kind, pads.text_key(entry.text)): entry.id for entry in entries if entry.text}
    size = sum(map(len, here.values()))
    for kind, name in pads.LISTS.items():
        own, present, kept = list[str](), set(pads.split_list(here.get(name, b""))), 0
        for raw in pads.split_list(theirs.get(name, b"")):
            line = clean(raw)[0]
            entry = pads.parse_entry(kind, line)
            if entry is None:
                over.setdefault(name, []).append(line)
                continue
            own.append(_mark(entry))
            if line in present or _mark(entry) in said:
                continue
            if texts.get((kind, pads.text_key(entry.text)), entry.id) != entry.id:
                continue
            older = _older_entries(entry, entries, said)
            if older is None:
                kept += 1
                continue
            out = pads.replace_entries(out, [(one, entry if one.id == entry.id else None) for one in older])
            if any(one.id == entry.id for one in older):
                continue
            if size + len(line) + 1 > pads.LARGEST:
                own.pop()  # it stays new as long as it does not fit
                over.setdefault(name, []).append(line)
                continue
            size += len(line) + 1
            out[name] = canonical.join_lines([*pads.split_list(out.get(name, b"")), line])
            present.add(line)
        if own:
            marks[name] = own
        if kept:
            one, many = f"{kept} of its {name} was", f"{kept} of its {name} were"
            notes.append(f"{one if kept == 1 else many} changed here and there: kept as here")
    return out, marks, over


def _older_entries(entry: Entry, here: Sequence[Entry], said: Collection[str]) -> list[Entry] | None:
    """Return the entries here that an entry of the source replaces, none if it is new; None if they were changed or
    removed here. Resolved wins over unresolved."""
    same = [one for one in here if one.id == entry.id]
    if not same and any(mark.startswith(entry.id) for mark in said):
        return None
    older = same or [one for one in here if one.kind == entry.kind == "thesis"]
    is_settled = bool(same) and same[0].is_open and bool(entry.resolved)
    return older if is_settled or all(_mark(one) in said for one in older) else None


def _mark(entry: Entry) -> str:
    """Return the id of an entry, and a hash of what else it says but its cycle: a note is in the source's cycle."""
    data = {key: value for key, value in json.loads(entry.line).items() if key not in ("id", "cycle")}
    return entry.id + hashlib.sha256(canonical.compact(data)).hexdigest()[:4]


# Kept files


def _storable_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with valid paths, none of which is a folder of another, without the name of the note."""
    out = dict[str, bytes]()
    for path, data in sorted(files.items()):
        is_valid = all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))
        if is_valid and path != SOURCE and not any(str(folder) in out for folder in PurePosixPath(path).parents):
            out[path] = data
    return out


# Transcripts


@frozen
class _Transcript:
    """The transcript of a session, and the agent's id of it.

    `turns` are the turns of which it is made, `names` for each the function that named its lines, and `keys` the uuids
    of the prompts; all are empty for a session that has a transcript of its own.
    """

    agent_id: str
    data: bytes
    project: str
    turns: tuple[GivenTurn, ...] = ()
    names: tuple[_NameUuid, ...] = ()
    keys: tuple[str, ...] = ()


def _agent_id_of(system: str, session: ForeignSession) -> str:
    """Return the agent's id for the session."""
    return session.agent if _AGENT_ID.fullmatch(session.agent) else agent_id(system, session.id)


def _make_transcript(system: str, session: ForeignSession, parent: _Transcript | None) -> _Transcript:
    """Return the transcript of a session; `parent` is that of its parent, if it is known."""
    own = _agent_id_of(system, session)
    if session.transcript:
        return _Transcript(own, session.transcript.removesuffix(b"\n") + b"\n", session.project)
    start = canonical.seconds(session.created)
    turns = [_with_valid_prompt(replace(turn, time=start) if turn.time is None else turn) for turn in session.turns]
    shared, names = 0, list[_NameUuid]()
    if parent is not None:
        names = list(parent.names)
        for ours, theirs, key in zip(turns[: session.branch or 0], parent.turns, parent.keys, strict=False):
            if replace(ours, key="") != replace(theirs, key="") or ours.key not in ("", key):
                break
            shared += 1
        turns[:shared] = [replace(turn, key=key) for turn, key in zip(turns[:shared], parent.keys, strict=False)]
    space = uuid.UUID(agent_id("", own))
    names[shared:] = [lambda word: str(uuid.uuid5(space, word))] * (len(turns) - shared)
    return _write_lines(_Transcript(own, b"", session.project, tuple(turns), tuple(names)), {}, 0)


def _write_lines(transcript: _Transcript, waiting: Mapping[str, bool], recorded: int) -> _Transcript:
    """Return the transcript with its lines, `recorded` turns of which were recorded while cells in them had no result.

    `waiting` has the ids of these cells, and whether each has got its result since. A result is added at the end of its
    turn if that is the last one; in an earlier turn the cell stays as it is.
    """
    agent = agents.of_programs()
    chain, out, keys = agent.programs.chain(transcript.agent_id, transcript.project), list[bytes](), list[str]()
    for number, (turn, name) in enumerate(zip(transcript.turns, transcript.names, strict=True), start=1):
        chain.name_by(name)
        steps = [part for part in turn.parts if isinstance(part, Step) and part.task.id in waiting]
        parts = tuple(Step(part.task) if part in steps else part for part in turn.parts)
        lines = chain.turn(replace(turn, parts=parts))
        for step in steps:
            if step.outcome is not None and (number == recorded or waiting[step.task.id]):
                lines += chain.outcome(step.task.id, step.outcome, None, step.task.operation)
        keys.append(agent.parsed(lines[:1])[0].uuid)
        out += lines
    return replace(transcript, data=canonical.join_lines(out), keys=tuple(keys))


def _append_turns(transcript: _Transcript, data: bytes, first: int) -> bytes:
    """Return a transcript with the turns from number `first` on added at its end."""
    chain = agents.of_programs().programs.chain(transcript.agent_id, transcript.project)
    chain.follow(raw for raw, _ in split(data, 0))
    out = list[bytes]()
    for turn, name in zip(transcript.turns[first - 1 :], transcript.names[first - 1 :], strict=True):
        chain.name_by(name)
        out += chain.turn(turn)
    return data + canonical.join_lines(out)


def _without_mark(prompt: str) -> str:
    """Return a prompt as it was transcript."""
    if prompt == _EMPTY_PROMPT:
        return ""
    return prompt.removeprefix(_PROMPT_MARK) if _needs_mark(prompt) else prompt


def _needs_mark(prompt: str) -> bool:
    """Return whether the prompt, without marks, opens no turn or would be read as an empty one."""
    text = prompt.lstrip(_PROMPT_MARK)
    return text == _EMPTY_PROMPT or not agents.of_programs().lines.opens_turn(text)


def _with_valid_prompt(turn: GivenTurn) -> GivenTurn:
    if not turn.prompt.strip():
        return replace(turn, prompt=_EMPTY_PROMPT)
    return replace(turn, prompt=_PROMPT_MARK + turn.prompt) if _needs_mark(turn.prompt) else turn


# Recorded sessions in the same form


def session_snapshot(context: Context, branch: Branch, system: str, progress: Progress) -> ForeignSession:
    """Return the session, with the id that the system gave it if it was imported from there."""
    store, state, origin = context.store, branch.state, branch.state.origin
    rows, turns, costs = context.index.turns(branch.name), list[GivenTurn](), dict[str, float]()
    for row in counted(rows, progress):
        given, used = _given_turn(context, branch, row)
        turns.append(given)
        if used and (cost := prices.token_cost(used, context.prices)) is not None:
            costs[row.prompt] = cost
    parent = context.index.branch(layout.session_of(origin.session)) if origin else None
    own = _source_id(context, branch, system)
    # The parent is a field of the session.
    unified = sessions.state_document(sessions.with_values(state.unified, {"metadata.parent": None}))
    manager = context.index.branch(state.unified.metadata.parent or "")
    above = parent or manager
    below = [*context.index.forks_of(state.id), *context.index.children_of(state.id)]
    kept = session_files.kept_files(store, branch.tip)
    return ForeignSession(
        id=own,
        agent="" if agent_id(system, own) == state.agent_id else state.agent_id,
        **{name: getattr(state, name) for name in _SAME_FIELDS},
        state=state.state if state.state in ("active", "interrupted") else "ended",
        archived=branch.archived,
        parent=_source_id(context, above, system) if above else origin.session if origin else "",
        branch=origin.turn if origin else None,
        turns=tuple(turns),
        pad={name: data for name, data in sorted(pad_lists.read_lists(store, branch.tip).items()) if data},
        unified=unified,
        kept={path: store.repo.blob(oid) for path, (oid, _) in kept.items()},
        children=tuple(_source_id(context, one, system) for one in below),
        costs=costs,
        inherits=bool(kept) and not session_files.source_note(store, branch.tip, state.id),
    )


def _source_id(context: Context, branch: Branch, system: str) -> str:
    note = session_files.source_note(context.store, branch.tip, branch.state.id)
    own = note.get("id") if note.get("system") == system else None
    return own if isinstance(own, str) and own else branch.state.agent_id


def _given_turn(context: Context, branch: Branch, row: Row) -> tuple[GivenTurn, Mapping[str, Tokens]]:
    """Return a turn as a program would give it, without what only the client understands: thoughts, pictures,
    subagents, and notes next to calls; and its tokens by model."""
    body, agent = body_of(context.store, branch.tip, row), agents.of(branch.state)
    turn, pieces = agent.content.parse_turn(body)
    parts = list(_given_parts(agent, body, turn, pieces))
    last = parts[-1] if parts else None
    model = last.model if isinstance(last, Saying) else next(filter(None, (_model(turn, c) for c in turn.cells)), "")
    counts: dict[str, int] = turn.tokens.get(model, Tokens()).as_json() if model else {}
    for outcome in (piece.outcome for piece in pieces if isinstance(piece, Call)):
        if outcome is not None and outcome.model == model:  # a program made the call itself
            counts = {kind: max(0, count - outcome.tokens.get(kind, 0)) for kind, count in counts.items()}
    out = GivenTurn(
        _without_mark(body[0].message_text), tuple(parts), "", model, _time(body[0].time), None, row.prompt,
        {kind: count for kind, count in counts.items() if count},
    )  # fmt: skip
    if isinstance(last, Saying):
        out = replace(out, parts=tuple(parts[:-1]), answer=last.text, ended=last.time)
    return out, turn.tokens


def _model(turn: Turn, cell: Cell) -> str:
    """Return the model of which a cell is a message, or "" for none."""
    is_message = cell.type == "llm_call" and not cell.program
    return cell.operation if is_message and cell.operation in turn.tokens else ""


def _given_parts(agent: Agent, body: Sequence[Line], turn: Turn, pieces: Sequence[Piece]) -> Iterator[Part]:
    for piece in pieces:
        time = _time(piece.time)
        if isinstance(piece, Call) and piece.task is not None:
            yield Step(piece.task, piece.outcome if piece.result_line else None)
        elif isinstance(piece, Call):
            calls = (said.call for said in agent.content.texts(body[piece.line - 1], piece.line))
            own = next((call for call in calls if ids.cell_id(turn.prompt_uuid, call) == piece.cell.id), "")
            yield ToolCall(piece.tool, piece.input, piece.output, piece.cell.ok is False, own, time)
        elif piece.by == "model" and not piece.thinking:
            model = _model(turn, turn.cells[piece.ordinal - 1]) if piece.ordinal else ""
            yield Saying(piece.text, model, time) if piece.reason is None else replace(piece.reason, time=time)


def _time(text: str) -> float | None:
    time = canonical.seconds(text)
    return time if time is not None and time >= _EARLIEST_TIME else None
