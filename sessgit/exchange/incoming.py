"""Sessions of other systems brought in: the turns recorded as any transcript is, and what was said beside them.

All of it is made in a scratch store and taken over in one operation, which `undo` takes back as one. So a dry run is
the same without the last step, and what stops an import leaves the store as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sessgit import agents
from sessgit.branch import restore
from sessgit.errors import ConflictError, MovedError, SessgitError, StoreError
from sessgit.exchange import authored_state, lines, systems
from sessgit.exchange.lines import GivenTranscript
from sessgit.history import session_files
from sessgit.history.reassemble import turn_lines
from sessgit.model import ids
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.session import Session
from sessgit.model.foreign_session import ForeignFolder, ForeignSession, SourceFile
from sessgit.model.humanize import format_count
from sessgit.model.progress import Progress
from sessgit.record import commits, fork_detection, scratch_store
from sessgit.record import privacy as private
from sessgit.record.privacy import Privacy
from sessgit.record.recording import record
from sessgit.record.source import RecordRules, TranscriptSource, rules_from_settings
from sessgit.store import layout, operations, refs
from sessgit.store.index import Index
from sessgit.store.journal import Operation
from sessgit.store.secrets import secret_filter
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store
from sessgit.store.transaction import Move

Outcome = Literal["new", "grown", "changed", "unchanged", "conflict", "excluded", "archived", "deleted", "failed"]
_MOST_LOOSE_REFS = 100
"""So many sessions after which refs are packed: each is a file of its own before, and each recording reads them."""
_BRANCH_SPACES = (layout.HEADS, layout.ARCHIVE)


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """What became of a session of the source: `own` is its id there, `id` the one that it has here.

    `turns` counts those that it has got, `shared` those that it has from `parent`. `why` says more of a conflict, and
    `notes` what of it had no place here as it is.
    """

    own: str
    id: str
    outcome: Outcome
    turns: int = 0
    title: str = ""
    parent: str = ""
    shared: int = 0
    why: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExchangeImport:
    """What an import did, or would do: what became of each session and of each file of the source.

    `operation` is None where nothing changed, and for a dry run; `moves` are those of the refs in any case.
    """

    system: str
    sessions: tuple[ImportedSession, ...]
    files: tuple[SourceFile, ...]
    moves: tuple[Move, ...] = ()
    operation: Operation | None = None

    @property
    def changed(self) -> tuple[ImportedSession, ...]:
        """The sessions that are new or not as they were."""
        return tuple(one for one in self.sessions if one.outcome in ("new", "grown", "changed"))

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """The sessions that could not be brought in, by their ids, and why."""
        return tuple((one.own, one.why) for one in self.sessions if one.outcome in ("conflict", "failed"))

    @property
    def errors(self) -> tuple[tuple[str, str], ...]:
        """What could not be brought in, and why: sessions by their ids, files by their paths."""
        return (*self.refused, *((file.path, file.why) for file in self.files if file.outcome == "damaged"))


@dataclass
class _ImportRun:
    """The scratch store in which the import is made, and what the sessions so far came to."""

    store: Store
    index: Index
    system: str
    config: Path
    privacy: Privacy
    given: dict[str, GivenTranscript] = field(default_factory=dict)

    @property
    def rules(self) -> RecordRules:
        return rules_from_settings(self.privacy.rules)


def run_import(  # noqa: PLR0913, PLR0917 - what is brought in, whereto, and how
    store: Path | None, system: str, folder: Path, config: Path, privacy: Privacy, now: float, progress: Progress,
    *, dry_run: bool = False,
) -> ExchangeImport:  # fmt: skip
    """Brings in the sessions that a folder of the system holds; without a store nothing can be but a dry run.

    Raises UsageError where nothing may be recorded because a command asks, and ConflictError, with nothing changed,
    where the store was changed meanwhile.
    """
    private.check_on(off=privacy.off)
    found = systems.read(system, folder)
    real = Store(store) if store is not None else None
    if real is not None and not dry_run:
        real.repo.begin_write()
    try:
        with scratch_store.scratch_store(store) as made:
            index = Index(made.path, lambda: made)
            try:
                done, moves = _import_all(_ImportRun(made, index, system, config, privacy), found, progress)
            finally:
                index.close()
            told = _file_outcomes(found.files, done)
            if dry_run or real is None or not moves:
                return ExchangeImport(system, done, told, moves)
            scratch_store.take_over(made, real)
            brought = {layout.session_of_ref(move.ref) for move in moves}
            summary = f"import of {format_count(len(brought), 'conversation')} from {system}"
            try:
                operation = operations.perform_operation(real, "import", summary, moves, now)
            except MovedError as error:
                raise ConflictError("one of them was just changed", "Nothing was changed. Try again.") from error
            return ExchangeImport(system, done, told, moves, operation)
    finally:
        if real is not None:
            real.repo.release()


def _import_all(
    work: _ImportRun, found: ForeignFolder, progress: Progress
) -> tuple[tuple[ImportedSession, ...], tuple[Move, ...]]:
    before = refs.read_all(work.store.path)
    work.index.sync()
    doubled = _duplicate_sessions(work.system, found)
    done = list[ImportedSession]()
    for number, session in enumerate(found.sessions):
        progress(number, len(found.sessions))
        if number % _MOST_LOOSE_REFS == _MOST_LOOSE_REFS - 1:
            scratch_store.pack_refs(work.store)
        own = ids.session_id(lines.agent_id_of(work.system, session))
        if own in doubled:
            done.append(ImportedSession(session.id, own, "failed", why=doubled[own]))
            continue
        done.append(_import_one(work, session, own))
    progress(len(found.sessions), len(found.sessions))
    after = refs.read_all(work.store.path)
    moved = sorted(ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref))
    return tuple(done), tuple(Move(ref, before.get(ref), after.get(ref)) for ref in moved)


def _import_one(work: _ImportRun, session: ForeignSession, own: str) -> ImportedSession:
    """Brings one session in, or leaves it as it was."""
    before = _session_refs(work.store, own)
    try:
        return _update_session(work, session, own)
    except StoreError:
        raise  # the next one would fare no better
    except SessgitError as error:
        after = _session_refs(work.store, own)
        for ref in before.keys() | after.keys():
            if before.get(ref) != after.get(ref):
                work.store.repo.move(ref, after.get(ref), before.get(ref))
        work.index.sync(own)
        outcome: Outcome = "conflict" if isinstance(error, ConflictError) else "failed"
        return ImportedSession(session.id, own, outcome, title=_session_title(session), why=str(error))


def _update_session(work: _ImportRun, session: ForeignSession, own: str) -> ImportedSession:
    parent = work.given.get(session.parent)
    known = work.index.branch(own)
    if known is not None and known.state.project:
        session = replace(session, project=known.state.project)  # the source may have moved
    given = work.given[session.id] = lines.make_transcript(work.system, session, parent)
    told = ImportedSession(session.id, own, "unchanged", title=_session_title(session))
    if not private.verdict(work.privacy, session.project).recorded:
        return replace(told, outcome="excluded")
    if known is None:
        if refs.read(work.store.path, layout.tombstone_ref(own)):
            return replace(told, outcome="deleted")
        return _create_session(work, session, given, told)
    data = _transcript_to_record(work, session, given, known)
    is_from_there = session_files.source_note(work.store, known.tip, own).get("system") == work.system
    if data is None:
        if is_from_there or known.state.agent_id not in (session.id.lower(), session.agent):
            raise _conflict_error(work, known.tip, known.state, session)
        told = replace(told, why="its turns here do not change")
    elif not is_from_there:
        session = replace(session, kept={})  # with the same turns it is an export, and its files are views
    if known.archived:
        return replace(told, outcome="archived" if data else "unchanged")
    if data:
        _record_transcript(work, session, given, data)
    has_more = work.store.state(str(refs.read(work.store.path, layout.head_ref(own)))).messages > known.state.messages
    tip, notes = _commit_authored(work, session, given, own)
    state, told = work.store.state(tip), replace(told, notes=notes)
    if has_more:
        return replace(told, outcome="grown", turns=state.turns - known.state.turns)
    is_same = refs.read(work.store.path, layout.head_ref(own)) == known.tip
    return replace(told, outcome="unchanged" if is_same else "changed")


def _create_session(
    work: _ImportRun, session: ForeignSession, given: GivenTranscript, told: ImportedSession
) -> ImportedSession:
    """A session that was not here."""
    if given.data:
        _record_transcript(work, session, given, given.data)
    else:
        _create_empty_session(work, session, given.agent_id)
    tip, notes = _commit_authored(work, session, given, told.id, first=True)
    state, told = work.store.state(tip), replace(told, notes=notes)
    if session.archived:
        _archive_session(work.store, told.id)
        work.index.sync(told.id)
    parent, shared = (state.origin.session, state.origin.turn) if state.origin else ("", 0)
    return replace(told, outcome="new", parent=parent, shared=shared, turns=state.turns - shared)


def _commit_authored(
    work: _ImportRun, session: ForeignSession, given: GivenTranscript, own: str, *, first: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The tip of a session once what is said of it beside its turns is brought, too, and what of that had no place."""
    tip = str(refs.read(work.store.path, layout.head_ref(own)))
    source = authored_state.SourceSession(work.system, session, len(given.keys or _prompt_keys(work, given)))
    done = authored_state.commit_authored_state(work.store, work.index, tip, source, first=first)
    if done.commit != tip:
        work.store.repo.move(layout.head_ref(own), tip, done.commit)
    work.index.sync(own)
    return done.commit, done.notes


def _transcript_to_record(
    work: _ImportRun, session: ForeignSession, given: GivenTranscript, known: Branch
) -> bytes | None:
    """The transcript that is to be recorded, ``b""`` where all of it is here; None where the session here is another
    one."""
    here = _recorded_lines(work.store, known.tip, known.state)
    agent = agents.of(known.state)
    growth = agent.programs
    redact = secret_filter.line_cleaner(work.store.beside, known.state.rules, agent.protected_keys)
    given = lines.unfinished_transcript(given, growth.waiting(here), known.state.turns)
    new = [agent.lines.make(raw, Extent(0, 0), redact).raw for raw in given.data.split(b"\n")[:-1]]
    if growth.goes_on(here, new):
        tail = work.store.tail(known.tip).split(b"\n")
        is_level = new[len(here) :] in ([], tail[:-1]) and (known.state.state != "active" or session.state == "active")
        if is_level:
            return b""
        return given.data if new[: len(here)] == here else growth.grown(here, new)
    if growth.goes_on(new, here):
        return b""
    rows = [row.prompt for row in work.index.turns(known.name)]
    keys = list(given.keys) if given.keys else list(_prompt_keys(work, given))
    is_from_there = session_files.source_note(work.store, known.tip, known.name).get("system") == work.system
    is_along = rows[: len(keys)] == keys or keys[: len(rows)] == rows
    if is_from_there or not is_along or not growth.same_prompts(here, new):
        return None
    if len(keys) <= len(rows):
        return b""
    return (
        lines.append_turns(given, restore.rebuild_file(work.store, known.name).data, len(rows) + 1)
        if given.keys
        else given.data
    )


def _conflict_error(work: _ImportRun, tip: str, state: Session, session: ForeignSession) -> ConflictError:
    was = session_files.source_note(work.store, tip, state.id)
    where = f"from {was['system']}" if was.get("system") == work.system else "as another conversation"
    return ConflictError(
        f"{state.id[:8]} already exists, {where}, with other turns: {session.id} was skipped",
        f"`sessgit show {state.id[:8]}` shows the existing one.",
    )


def _recorded_lines(store: Store, tip: str, state: Session) -> list[bytes]:
    return [line for number in range(1, state.turns + 1) for line in turn_lines(store, tip, state, number)]


def _prompt_keys(work: _ImportRun, given: GivenTranscript) -> tuple[str, ...]:
    """The prompts of a transcript that was given as it is."""
    path = _transcript_file(work, given, given.data)
    return fork_detection.read_outline(path).prompts


def _record_transcript(work: _ImportRun, session: ForeignSession, given: GivenTranscript, data: bytes) -> None:
    place = agents.of_programs().home.transcript_place(work.config, "", given.agent_id, session.project)
    source = TranscriptSource(
        _transcript_file(work, given, data), given.agent_id, work.store.path.parent, final=session.state != "active",
        own=work.config, place=str(place or ""),
    )  # fmt: skip
    record(work.store, work.index, source, work.rules)
    if not refs.read(work.store.path, layout.head_ref(source.session)):
        _create_empty_session(work, session, given.agent_id)


def _transcript_file(work: _ImportRun, given: GivenTranscript, data: bytes) -> Path:
    """The transcript as a file, in a folder that goes with the scratch store."""
    path = work.store.path.parent / "projects" / "given" / f"{given.agent_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _create_empty_session(work: _ImportRun, session: ForeignSession, agent: str) -> None:
    """A session in which nothing was said yet."""
    place = agents.of_programs().home.transcript_place(work.config, "", agent, session.project)
    state = Session(
        ids.session_id(agent), agent, project=session.project, transcript=str(place or ""), created=session.created,
        updated=session.updated or session.created, ended=session.ended, rules=work.rules.stored,
        state="active" if session.state == "active" else "ended",
    )  # fmt: skip
    work.store.repo.move(layout.head_ref(state.id), None, commits.commit_start(work.store, state))


def _archive_session(store: Store, session: str) -> None:
    for branch, tip in refs.session_tips(store.path, session).items():
        store.repo.move(layout.archive_ref(branch), None, tip)
        store.repo.move(layout.head_ref(branch), tip, None)


def _file_outcomes(files: Sequence[SourceFile], done: Sequence[ImportedSession]) -> tuple[SourceFile, ...]:
    """The files; the one that a session is read from says what of that had no place here."""
    out = {file.path: file for file in files}
    imported = dict[str, list[SourceFile]]()
    for file in files:
        if file.outcome == "imported":
            imported.setdefault(file.session, []).append(file)
    for one in done:
        if one.notes and one.own in imported:
            main = min(
                imported[one.own], key=lambda file: (file.why.startswith("kept "), file.path.count("/"), file.path)
            )
            out[main.path] = replace(main, why="; ".join(filter(None, (main.why, *one.notes))))
    return tuple(out.values())


def _duplicate_sessions(system: str, found: ForeignFolder) -> dict[str, str]:
    """The sessions of which the source has two, and in which files."""
    seen = dict[str, int]()
    for session in found.sessions:
        own = ids.session_id(lines.agent_id_of(system, session))
        seen[own] = seen.get(own, 0) + 1
    names = {ids.session_id(lines.agent_id_of(system, one)): one.id for one in found.sessions}
    return {own: _duplicate_reason(names[own], found.files) for own, many in seen.items() if many > 1}


def _duplicate_reason(name: str, files: Sequence[SourceFile]) -> str:
    paths = [file.path for file in files if file.session == name and file.outcome != "left"]
    folders = list(dict.fromkeys(path.rpartition("/")[0] for path in paths))
    firsts = [next(path for path in paths if path.rpartition("/")[0] == folder) for folder in folders]
    shown = firsts if len(firsts) > 1 else paths
    return f"two of them have this id: {' and '.join(shown[:2])}"


def _session_refs(store: Store, session: str) -> dict[str, str]:
    return dict(_refs_to_move(store, session))


def _refs_to_move(store: Store, session: str) -> Iterator[tuple[str, str]]:
    for space in _BRANCH_SPACES:
        for branch, tip in refs.session_tips(store.path, session, space).items():
            yield space + branch, tip


def _session_title(session: ForeignSession) -> str:
    first = next((turn.prompt for turn in session.turns if turn.prompt.strip()), "")
    return session.name or session.title or " ".join(first.split())[:100]
