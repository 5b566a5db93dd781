"""`repair`: lost objects and refs of a session are restored where they can be found, and lines that no client could
continue from become those of a new session: a fork at the last turn that needs no repair, with the repaired turns after
it, written as a file for the client and recorded from it.

Nothing recorded is changed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.agents import agent_files, line
from sessgit.agents.values import Mend, Mended
from sessgit.branch import lost_refs, sidecars
from sessgit.branch.sidecars import WrittenFile
from sessgit.check import session_checks, store_checks, verify
from sessgit.errors import DamageError, SessgitError, StoreError, UnreadableError
from sessgit.history import pad_lists, reassemble, session_files
from sessgit.history.client_files import transcript_place
from sessgit.model import canonical, humanize, ids
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.finding import Finding
from sessgit.model.frozen import frozen
from sessgit.record import commits, fork_detection, import_files, privacy
from sessgit.record.import_files import ImportFailure, TranscriptFile
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import (
    layout,
    locks,
    maintenance,
    object_scan,
    operations,
    recorder_state,
    refs,
    remotes,
    tempdirs,
)
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.object_scan import GitObject
from sessgit.store.operations import Move
from sessgit.store.private_files import path_exists
from sessgit.store.remotes import Connection
from sessgit.store.settings import Privacy
from sessgit.store.store import Store

_WAIT = 30.0
_HINT = (
    "To search another copy of its transcript: `sessgit repair {} --from FILE`. A remote may have it too. "
    "To give it up: `git -C {} update-ref -d {}`"
)


_MOST_FORKS = 200
_MOST_NAMED = 40
"""Repairs that the commit names one by one."""


@frozen
class Repaired:
    """What was done about a branch, or would be.

    `restored` counts objects by their source, `lost` are those found nowhere, `refs` counts restored refs, `findings`
    remain. `rerecorded` says that what was lost gave way to what the session's file holds. `mends` are the lines that
    differ in a new session, `made`; `is_needed` says that there is one, or would be. `shared` is the last turn that
    needed no repair, `turns` counts the turns that were read, `unread` those that cannot be, `redacted` the replaced
    secrets.
    """

    branch: str
    turns: int = 0
    restored: tuple[tuple[str, int], ...] = ()
    lost: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    mends: tuple[Mend, ...] = ()
    shared: int = 0
    unread: int = 0
    redacted: int = 0
    made: RepairedSession | None = None
    is_needed: bool = False
    refs: int = 0
    rerecorded: bool = False

    @property
    def was_sound(self) -> bool:
        return not (self.restored or self.lost or self.findings or self.is_needed or self.refs or self.rerecorded)


def repair(
    context: Context,
    branch: str,
    new_id: str,
    links: Sequence[Connection] = (),
    *,
    copy: Path | None = None,
    dry_run: bool = False,
) -> Repaired:
    """Repair a branch, or with `dry_run` return what would be done. `links` are the remotes to search, `copy` is
    another file of the session. Raises DamageError if nothing of it can be read, and NotFoundError or SessgitError if
    `copy` cannot be."""
    if copy is not None:
        try:
            with line.opened(copy):
                pass
        except SessgitError as error:  # the user asked to search it
            raise type(error)(str(error), "--from needs a copy of the conversation's transcript.") from error
    store, session = context.store, layout.session_of(branch)
    if dry_run and (lost := lost_refs.lost_refs(store, session)):
        return Repaired(branch, refs=len(lost))
    count = 0 if dry_run else lost_refs.restore_lost(store, session)
    if count:
        context.index.sync()
    search = restore_objects(context, session, links, copy, dry_run=dry_run)
    if search.restored and not dry_run:
        count += lost_refs.restore_lost(store, session)  # what they held may be there again
        context.index.sync()
    findings = [one for one in search.findings if one.severity != "note"]
    if search.restored and dry_run:
        findings = [one for one in findings if not one.objects or search.lost & set(one.objects)]
    restored = tuple((name, number) for name, number in search.restored.items() if number)
    result = Repaired(branch, 0, restored, tuple(sorted(search.lost)), tuple(findings), refs=count)
    if search.restored and dry_run:
        return result
    if _is_unreadable(store, branch) and (path := _usable_transcript(context, branch)):
        if search.unreachable:
            what = f"cannot read {layout.short_name(branch)}, nor reach {search.unreachable[0]}"
            raise DamageError(what, "Try again when it is reachable.")
        head = "" if dry_run else _record_again(context, branch, path)
        if dry_run or head:
            return Repaired(branch, store.state(head).turns if head else 0, refs=count, rerecorded=True)
    return _repair_lines(context, _branch_to_repair(store, branch), new_id, result, dry_run=dry_run)


# A branch that cannot be read


def _tip(store: Store, branch: str) -> str:
    """Return the id that the branch holds, ``""`` if there is no such branch."""
    return refs.branches(store.path, layout.session_of(branch)).get(branch, ("", False))[0]


def _is_unreadable(store: Store, branch: str) -> bool:
    """Return whether the tip of a branch or its state cannot be read."""
    tip = _tip(store, branch)
    try:
        return not tip or not store.state(tip)
    except UnreadableError:
        return True
    except SessgitError:
        return False


def _usable_transcript(context: Context, branch: str) -> Path | None:
    """Return the file from which a head can be recorded again, if it holds a prompt."""
    path = None if layout.is_side_branch(branch) else _find_transcript(context, Session(branch, branch))
    with suppress(OSError, SessgitError):
        return path if path is not None and fork_detection.first_prompt(path) else None
    return None


def _record_again(context: Context, session: str, path: Path) -> str:
    """Record a session from its file in place of its unreadable head, as an operation; return the new tip, ``""`` if
    nothing was recorded."""
    store, now, ref = context.store, context.now(), layout.head_ref(session)
    tip = _tip(store, session)
    if (store.ref(ref) or "") != tip:
        return ""
    with locks.session_lock(store.paths, session, _WAIT) as is_locked:
        if not is_locked:
            raise StoreError("a recorder is writing it", "Try again later.")
        summary = f"{session[:8]}: recorded again from its file, without what cannot be read"
        first = operations.perform_operation(store, "repair", summary, [Move(ref, tip, None)], now).id if tip else ""
        if ref in refs.refs_without_id(store.path):
            refs.quarantine_ref(store.path, ref)
        recorder_state.delete_cursor(store.paths, session)
        context.index.sync()
        agent = agents.of_file(path)
        named = agent.home.agent_id(path)
        agent_id = named if ids.session_id(named) == session else session
        folder = context.homes.folders[agent.name]
        source = TranscriptSource(path, agent_id, folder, client=agent.name, final=True)
        head = record(context, source).head
        if head:
            moves = [Move(ref, tip or None, head)]
            operations.perform_operation(store, "repair", summary, moves, now, held={ref: head}, completes=first)
            with suppress(SessgitError):  # nothing before it can be read either
                _keep_intact_commit(store, session, tip)
    context.index.sync()
    return head


def _keep_intact_commit(store: Store, session: str, tip: str) -> None:
    """Keep for undo the last intact commit before an unreadable tip: git packs nothing while a ref leads to a missing
    object."""
    kept = [name for name, oid in refs.read_all(store.path, layout.KEEP).items() if oid == tip]
    earlier = (commit.id for commit in store.repo.first_parents(tip) if commit.id != tip)
    for commit in earlier if kept else ():
        findings = session_checks.check_branch(store, session, commit, session_checks.Cache(store))
        if not any(finding.severity == "damage" for finding in findings):
            for name in kept:
                store.repo.move(name, tip, commit)
            return


# Lines


def _repair_lines(context: Context, branch: str, new_id: str, result: Repaired, *, dry_run: bool) -> Repaired:
    store, lines = context.store, _readable_lines(context, branch)
    tip = _tip(store, branch)
    is_incomplete = bool(lines.unread) or lines.commit != tip or not _has_whole_history(store, tip)
    strange, ordered = list[Mend](), None
    if not is_incomplete and not layout.is_side_branch(branch):
        strange = _foreign_branches(store, branch)
        ordered = _order_lines(store, branch, lines.commit)
    if ordered is not None:
        lines, strange = ordered[0], [ordered[1]]
    mended = Mended({number: list(own) for number, own in lines.turns}, ())
    if (agent := agents.of(lines.state)).has("repair"):
        mended = agent.repair.mend(lines.turns, lines.state.agent_id, _known_ids(store, lines.state))
    first = min((mend.turn for mend in mended.mends), default=lines.last + 1)
    shared = 0 if is_incomplete or ordered is not None else min(first - 1, lines.last)
    rest = tuple(tuple(mended.turns.get(number, ())) for number, _ in lines.turns if number > shared)
    plan = _LinePlan(lines, (*mended.mends, *strange), shared, rest)
    name = layout.short_name(branch)
    if is_incomplete and not lines.last:
        raise DamageError(f"cannot read {name}", _hint(store, branch))
    if (plan.mends or lines.unread) and not plan.is_conversation:
        hint = "If its file is not UTF-8, convert it and import it again."
        raise DamageError(f"{name} has no line that a client could continue from", hint)
    is_needed = is_incomplete or bool(plan.mends)
    made = _write_session(context, plan, new_id) if is_needed and not dry_run else None
    return replace(
        result, branch=branch, turns=lines.last, mends=plan.mends, shared=plan.shared, unread=lines.unread,
        redacted=lines.state.redacted, made=made, is_needed=is_needed,
    )  # fmt: skip


def _readable_lines(context: Context, branch: str) -> _Lines:
    """Return the lines of the branch as of its tip, or else of the latest readable commit."""
    store, tip, error = context.store, _tip(context.store, branch), None
    known = [tip] if tip else []
    with suppress(SessgitError):
        known += (commit.id for commit in store.repo.first_parents(tip)) if tip else ()
    for commit in dict.fromkeys((*known, *_known_commits(context, branch))):
        try:
            return _read_lines(store, branch, commit)
        except SessgitError as wrong:
            error = error or wrong
    raise DamageError(f"cannot read {layout.short_name(branch)}: {error}", _hint(store, branch))


def _hint(store: Store, branch: str) -> str:
    """Return what the user can do about a branch of which nothing can be read."""
    spaces = (space for space in layout.BRANCH_SPACES if store.ref(f"{space}{branch}"))
    ref = f"{next(spaces, layout.HEADS)}{branch}"
    return _HINT.format(*map(humanize.quote_for_shell, (layout.short_name(branch), str(store.path), ref)))


def _has_whole_history(store: Store, tip: str) -> bool:
    try:
        return bool(list(store.repo.first_parents(tip)))
    except SessgitError:
        return False


@frozen
class _Lines:
    """The readable lines of a branch by turn, as its file has them; those after the `last` turn count as one more."""

    branch: str
    commit: str
    state: Session
    turns: tuple[tuple[int, tuple[bytes, ...]], ...]
    last: int

    @property
    def unread(self) -> int:
        """The number of turns from the first unreadable one on."""
        return self.state.turns - self.last


@frozen
class _LinePlan:
    """What is repaired: `shared` turns stay, `rest` are the lines of the others."""

    lines: _Lines
    mends: tuple[Mend, ...]
    shared: int
    rest: tuple[tuple[bytes, ...], ...]

    @property
    def beginning(self) -> list[Sequence[bytes]]:
        """Return the lines of the shared turns."""
        return [lines for number, lines in self.lines.turns if number <= self.shared]

    @property
    def is_conversation(self) -> bool:
        """Return whether any line remains that a person or the model wrote."""
        raw = (line for turn in (*self.beginning, *self.rest) for line in turn)
        return any(line.is_said for line in agents.of(self.lines.state).parsed(raw))

    @property
    def summary(self) -> str:
        parts = [humanize.format_count(len(self.mends), "mend")] if self.mends else []
        parts += ["what can be read"] if self.lines.unread or not parts else []
        return f"{' and '.join(parts)} of {layout.short_name(self.lines.branch)}"


@frozen
class RepairedSession:
    """The repaired session, its file, and the files next to it."""

    state: Session
    commit: str
    transcript: Path
    files: tuple[WrittenFile, ...] = ()


# Reading


def _read_lines(store: Store, branch: str, commit: str) -> _Lines:
    """Return the lines of a branch as of a commit, up to the first turn that cannot be read."""
    state, tail = store.state(commit), b""
    turns: list[tuple[int, tuple[bytes, ...]]] = []
    for number in range(1, state.turns + 1):
        try:
            turns.append((number, tuple(reassemble.turn_lines(store, commit, state, number))))
        except SessgitError:
            return _Lines(branch, commit, state, tuple(turns), len(turns))
    with suppress(SessgitError):
        tail = store.tail(commit)
    turns.append((state.turns + 1, tuple(line for line in tail.split(b"\n") if line)))
    return _Lines(branch, commit, state, tuple(turns), state.turns)


def _order_lines(store: Store, branch: str, commit: str) -> tuple[_Lines, Mend] | None:
    """Return all lines of a session's file after their parents, as one turn, if most came before them; else None. The
    turns that were cut out of such a file mean nothing."""
    session = layout.session_of(branch)
    try:
        pieces = reassemble.file_pieces(store, session, reassemble.session_branches(store, session))
        laid, state = reassemble.lay_out(pieces.found), store.state(commit)
    except SessgitError:
        return None
    if laid.file > 1 or not agents.of(state).has("repair"):
        return None
    raw = [line for piece in laid.pieces for line in piece.lines]
    ordered, early = agents.of(state).repair.in_order(raw)
    if not early:
        return None
    what = f"{early:,} of {len(raw):,} lines of its file came before the line that they follow: moved after it"
    lines = _Lines(branch, commit, state, ((1, tuple(ordered)),), state.turns)
    return lines, Mend("order", 1, 1, what)


def _branch_to_repair(store: Store, branch: str) -> str:
    """Return the branch; for a head in which every prompt is another session's, the rewound branch that has its own."""
    tips = {name: tip for name, (tip, _) in refs.branches(store.path, layout.session_of(branch)).items()}
    if layout.is_side_branch(branch) or branch not in tips or _is_own(store, tips[branch]):
        return branch
    others = (name for name in sorted(tips) if layout.is_rewound_branch(name) and _is_own(store, tips[name]))
    return next(others, branch)


def _foreign_branches(store: Store, branch: str) -> list[Mend]:
    """Return a repair for each branch with lines of another session, which were written into the same file."""
    mends = []
    for name, (tip, _) in sorted(refs.branches(store.path, layout.session_of(branch)).items()):
        if name == branch or layout.is_other_version(name) or _is_own(store, tip):
            continue
        state = store.state(tip)
        owner = min(map(min, _named_sessions(state, store.lines(tip, state.turns).body)))
        what = f"turns of another session, {owner[:8]}, in its file, on {layout.short_name(name)}: left out"
        mends.append(Mend("writer", state.turns, 1, what))
    return mends


def _known_ids(store: Store, state: Session) -> tuple[str, ...]:
    """Return the agent's ids of the sessions from which this one was forked, and of those that these were: shared lines
    may name them."""
    known: dict[str, None] = {}
    while (origin := state.origin) is not None and len(known) < _MOST_FORKS:
        known.update(dict.fromkeys((*origin.replaced, origin.session)))
        try:
            state = store.state(origin.commit)
        except SessgitError:
            break
        known[state.agent_id] = None
    return tuple(known)


def _is_own(store: Store, tip: str) -> bool:
    """Return whether a line of the last turn names the session as its own, or none names any."""
    try:
        state = store.state(tip)
        named = _named_sessions(state, store.lines(tip, state.turns).body) if state.turns else []
    except SessgitError:
        return True
    own = {state.agent_id, *_known_ids(store, state)}
    return not named or any(names & own for names in named)


def _named_sessions(state: Session, lines: Sequence[bytes]) -> list[set[str]]:
    """Return the sessions that each line names as its own, of the lines that name any."""
    agent = agents.of(state)
    return [names for line in agent.parsed(lines) if (names := agent.writer.session_ids(line))]


# The new session


def _write_session(context: Context, plan: _LinePlan, new_id: str) -> RepairedSession:
    """Write the repaired session: its branch, the files next to the transcript, the transcript, then its turns."""
    store, lines, now = context.store, plan.lines, context.now()
    privacy.check_project(context.privacy, lines.state.project)
    place = transcript_place(context.homes, lines.state, store.paths)
    if place is None:
        name = layout.short_name(lines.state.id)
        hint = f"Choose one: `sessgit restore {name} --project DIR`"
        raise SessgitError(f"the folder of {lines.state.id} is unknown", hint)
    agent, home = agents.of(lines.state), context.homes.of(lines.state)
    target = agent.home.new_place(home, new_id, lines.state.project, place)
    beginning, more = agent.writer.continued(plan.beginning, plan.rest, new_id)
    data = beginning.data + more
    tip = _commit_beginning(context, plan, new_id, beginning.data, target)
    ref, summary = layout.head_ref(new_id), f"{new_id[:8]}: {plan.summary}"
    begun = operations.perform_operation(store, "repair", summary, [Move(ref, None, tip)], now)
    try:
        files = _write_sidecars(context, plan, new_id, target)
        agent_files.write(target, data)
        with locks.session_lock(store.paths, new_id, _WAIT):
            rules = replace(context.privacy.rules, redact=bool(lines.state.rules.get("redact")))
            source = TranscriptSource(target, new_id, home, client=agent.name, final=True)
            record(replace(context, privacy=replace(context.privacy, rules=rules)), source)
    except SessgitError as error:
        hint = f"To remove the incomplete one: `sessgit undo {begun.id}`"
        raise type(error)(str(error), hint) from error
    head = refs.read(store.path, ref) or tip
    moves, written = [Move(ref, None, head)], {str(target): data}
    operations.perform_operation(store, "repair", summary, moves, now, written, held={ref: head}, completes=begun.id)
    context.index.sync(new_id)
    return RepairedSession(store.state(head), head, target, tuple(files))


def _commit_beginning(context: Context, plan: _LinePlan, new_id: str, data: bytes, target: Path) -> str:
    """Commit the fork, or a start if the history cannot be read, and what is repaired after it; return the second."""
    store, lines, time = context.store, plan.lines, int(context.now())
    base, moment = _base_commit(store, plan), canonical.rfc3339(context.now())
    state = Session(new_id, new_id, project=lines.state.project, created=lines.state.created)
    if base:
        sha256 = hashlib.sha256(data).hexdigest() if data else ""
        origin = Origin(lines.branch, plan.shared, base, prefix=len(data), prefix_sha256=sha256)
        state = store.state(base)
        latest = max(state.updated, moment) if plan.shared else moment
        unified = sessions.inherited_state(state.unified)
        state = replace(state, unified=unified, origin=origin, created=moment, updated=latest)
    state = replace(
        state, id=new_id, agent_id=new_id, rules={**lines.state.rules}, transcript=str(target), name="", description="",
        title="", state="active", ended="", headless=False,
    )  # fmt: skip
    first = _commit_fork(store, plan, base, state, time) if base else commits.commit_start(store, state)
    turns = f"{plan.shared + 1}-{lines.last}"
    trailers = [
        ("Session", state.id),
        ("Event", "repair"),
        ("Origin", lines.branch if plan.shared >= lines.last else f"{lines.branch}@{turns}"),
        *(("Mended", f"{mend.turn}:{mend.line} {mend.kind}: {mend.what}") for mend in plan.mends[:_MOST_NAMED]),
    ]
    if len(plan.mends) > _MOST_NAMED:
        trailers.append(("Mended", f"and {len(plan.mends) - _MOST_NAMED} more"))
    message = Message(f"repair: {plan.summary}", tuple(trailers))
    return store.write_commit(first, {}, state, message, [first], max(time, store.commit(first).time))


def _base_commit(store: Store, plan: _LinePlan) -> str:
    """Return the last commit of the last shared turn, or else the first of the history; ``""`` if not all of it can be
    read."""
    last = first = ""
    try:
        for commit in store.repo.first_parents(plan.lines.commit):
            message = store.message(commit.id)
            is_shared = plan.shared and message.number("Turn") == plan.shared and message.get("Prompt")
            last, first = last or (commit.id if is_shared else ""), commit.id
    except SessgitError:
        return ""
    return last or first


def _commit_fork(store: Store, plan: _LinePlan, base: str, state: Session, time: int) -> str:
    branch = plan.lines.branch
    address = f"{branch}@{plan.shared}"
    changes = {
        layout.TAIL: None, **pad_lists.inherited_changes(store, base), **session_files.inherited_changes(store, branch),
    }  # fmt: skip
    trailers = (("Session", state.id), ("Event", "fork"), ("Fork-Point", address))
    return store.write_commit(base, changes, state, Message(f"fork: {state.id} from {address}", trailers), [base], time)


def _write_sidecars(context: Context, plan: _LinePlan, new_id: str, target: Path) -> Sequence[WrittenFile]:
    """Write the files that belong to the turns, under the new session's id."""
    lines = plan.lines
    try:
        files = sidecars.sidecars_as_of(context.store, lines.commit, lines.last)
    except SessgitError:
        return ()  # they may be damaged as the lines are
    agent, version = agents.of(lines.state), lines.state.agent_version
    place = agent.sidecars.place(context.homes.of(lines.state), target.parent, new_id, version)
    renamed = sidecars.rename_session(agent, files, new_id, version)
    return sidecars.write_sidecars(context.store, lines.state, renamed, place)


# Lost objects, restored from broken packs, from transcripts that are recorded again, and from remotes
#
# An object is named after its content, so an object with the right name is the lost one, wherever it is found.

_MOST_ROUNDS = 8

_Fill = Callable[[Path], None]
"""Makes a repository at a path that may have the lost objects."""


@dataclass
class _Search:
    """The number of objects restored from each source, those found nowhere, the sources that could not be reached, and
    the findings about the session afterwards."""

    restored: Counter[str] = field(default_factory=Counter)
    lost: set[str] = field(default_factory=set)
    unreachable: list[str] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()


def restore_objects(
    context: Context, session: str, links: Sequence[Connection] = (), copy: Path | None = None, *, dry_run: bool = False
) -> _Search:
    """Search for the lost objects of a session, and write what is found to the store. Restored objects may refer to
    other lost ones, so the search is repeated. `links` are remotes to search, `copy` is another file of the session.
    Raises StoreError if packs may not be read, since their objects may not be lost."""
    search, store = _Search(), context.store
    for _ in range(_MOST_ROUNDS):
        search.findings = verify.verify_session(store, session).findings
        search.lost = {oid for one in search.findings for oid in one.objects}
        tips = refs.branches(store.path, session).items()
        search.lost |= {tip for branch, (tip, _) in tips if ids.is_branch(branch) and store.repo.read_problem(tip)}
        search.unreachable, count = [], search.restored.total()
        if not search.lost:
            break
        if closed := object_scan.unreadable_packs(store.path):
            what = f"no permission to read {closed[0]}, whose contents may be intact"
            raise StoreError(what, "`sessgit doctor` shows how to make it readable.")
        if not dry_run:
            search.restored.update(store_checks.mend_packs(store))
            search.lost = {oid for oid in search.lost if store.repo.read_problem(oid)}
        _search_sources(context, _sources(context, session, links, copy), search, dry_run=dry_run)
        if dry_run or search.restored.total() == count:
            break
        store.repo.release()
        with suppress(SessgitError), locks.maintenance_lock(store.paths, _WAIT) as lock:
            if lock:  # git would read damaged copies in packs
                maintenance.pack_store(store.path, lock, full=True)
        store.repo.refresh_packs()
    return search


def _find_transcript(context: Context, state: Session) -> Path | None:
    """Return the file that a session was recorded from: where its state or its id says that the client has it, or
    where it was read last."""
    place = transcript_place(context.homes, state, context.store.paths)
    if place is not None and path_exists(place):
        return place
    named = next((file.path for file in agents.transcripts(context.homes) if file.session == state.id), None)
    cursor = recorder_state.load_cursor(context.store.paths, state.id)
    if named or not cursor:
        return named
    path = Path(cursor.path)
    with suppress(OSError, ValueError):
        return path if path.is_absolute() and path.is_file() and not path.is_symlink() else None
    return None


def _known_commits(context: Context, branch: str) -> list[str]:
    """Return the commits of a branch's turns that the cursor and the index know, the latest first."""
    cursor = recorder_state.load_cursor(context.store.paths, branch.partition(".")[0])
    rows = reversed(context.index.turns(branch))
    return [*([cursor.commit] if cursor else ()), *(commit for row in rows for commit in reversed(row.commits))]


def _search_sources(context: Context, sources: Iterator[tuple[str, _Fill]], search: _Search, *, dry_run: bool) -> None:
    store = context.store
    for name, fill in sources:
        if not search.lost:
            return
        objects, is_reachable = list[GitObject](), False
        with tempdirs.make_folder("repair-", store.paths.state) as folder:
            scratch = folder / "store"
            with suppress(SessgitError):
                fill(scratch)
                is_reachable = True
                reachable = object_scan.reachable_objects(scratch, search.lost)
                missing = [oid for oid in reachable if oid in search.lost or store.repo.read_problem(oid)]
                objects = list(object_scan.intact_objects(scratch, missing))
        if not objects:
            search.unreachable += [] if is_reachable else [name]
            continue
        search.restored[name] += len(objects)
        search.lost -= {one.id for one in objects}
        if not dry_run:
            store_checks.write_objects(store, objects)


# Sources


def _sources(
    context: Context, session: str, links: Sequence[Connection], copy: Path | None
) -> Iterator[tuple[str, _Fill]]:
    """Yield the sources in the order in which they are searched: files, then remotes."""
    states = _family(context, session)
    files = {
        file: state for state in states if (file := _transcript(context, state, copy if state is states[-1] else None))
    }
    if files:
        outside = [file for file in files if not context.homes.hold(file.path)]
        name = "the client's file"
        if outside:
            name = "the file that was given" if copy is not None else "the file that it was imported from"
        yield name, partial(_record_files, context, files)
        if any(file.path.parent.parent.name == "projects" for file in outside):
            moved = {_with_folder(file, outside): state for file, state in files.items()}
            yield name, partial(_record_files, context, moved)
    for link in links:
        names = [state.id for state in states]
        yield f"the remote {link.remote.name}", partial(remotes.fetch_branches, link=link, sessions=names)


def _with_folder(file: TranscriptFile, outside: Collection[TranscriptFile]) -> TranscriptFile:
    """Return the file with the client folder that it lies in, if that is another one than the user's."""
    is_other = file in outside and file.path.parent.parent.name == "projects"
    return replace(file, folder=file.path.parents[2] if is_other else None)


def _family(context: Context, session: str) -> list[Session]:
    """Return the states of the sessions that begin with the same prompt, that of `session` last; for an unreadable one,
    a state with its id alone. Which turns they share can only be told from the files of all of them."""
    index, root = context.index, _root(context, session)
    cursors = (path.stem for path in context.store.paths.state.glob("*.json") if ids.is_branch(path.stem))
    names = {layout.session_of(row.branch) for row in index.with_prompt(root)} if root else set()
    names |= {name for name in cursors if root and not index.turns(name, 1, 1) and _root(context, name) == root}
    return [_state(context, name) for name in (*sorted(names - {session}), session)]


def _root(context: Context, session: str) -> str:
    """Return the uuid of the session's first prompt, ``""`` if it is unknown."""
    for row in context.index.turns(session, 1, 1):
        return row.prompt
    file = _transcript(context, _state(context, session), None)
    return file.root if file else ""


def _state(context: Context, session: str) -> Session:
    """Return the state of a session as of its tip, or of the latest readable commit; if there is none, a state with its
    id alone."""
    tips = [tip for tip, _ in refs.branches(context.store.path, session).values()]
    for commit in (*tips, *_known_commits(context, session)):
        with suppress(SessgitError):
            return context.store.state(commit)
    return Session(session, session)


def _transcript(context: Context, state: Session, copy: Path | None) -> TranscriptFile | None:
    """Return the file of a session, `copy` if that is given; None if it is gone."""
    path = copy or _find_transcript(context, state)
    if path is None:
        return None
    root = ""
    with suppress(SessgitError, OSError):
        root = fork_detection.first_prompt(path)
    is_named = state.agent_id == state.id and ids.session_id(path.stem) == state.id
    return TranscriptFile(path, path.stem if is_named else state.agent_id, 0, root, agent=agents.of_file(path).name)


def _record_files(context: Context, files: Mapping[TranscriptFile, Session], scratch: Path) -> None:
    """Record files into a scratch store, as an import does: parents before their forks."""
    stores.create_store(scratch)
    store, failures = Store(scratch), list[ImportFailure]()
    for name in ("key", "forbidden"):
        with suppress(OSError):
            shutil.copyfile(getattr(context.store.paths, name), getattr(store.paths, name))
    rules = context.privacy.rules
    with closing(Index(scratch, lambda: store)) as index:
        for members in import_files.group_by_prompt(list(files)):
            for file in import_files.sort_parents_first(members, failures):
                redact = bool(files[file].rules.get("redact", rules.redact))
                with suppress(SessgitError):
                    privacy = Privacy(replace(rules, redact=redact))
                    record(Context(index, privacy=privacy), file.source(context.homes, ()))
