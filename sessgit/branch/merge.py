"""Merges one conversation into another, or copies single turns.

The turns are appended to the agent's file first and recorded from there: a kill leaves a file that holds more than the
store, which any recording mends, and never a store with lines that the agent's file lacks. The recorder itself cuts the
new lines, so that they are the turns that it would cut from the whole file.

A summary is made without a model, from what is stored and from the prices that a person set.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.agents.line import Line, Reader, opened
from sessgit.agents.values import NewTurn, Seam
from sessgit.branch import file_append, sidecars, undo
from sessgit.branch import fork as forks
from sessgit.branch import merge_plan as plans
from sessgit.branch.fork import ForkResult
from sessgit.branch.merge_plan import (
    MergePlan,
    MergeRequest,
    MergeSides,
    PickPlan,
    check_ours,
    check_sides,
    turn_address,
)
from sessgit.branch.restore import write_copy
from sessgit.errors import ConflictError, NotFoundError, SessgitError
from sessgit.history import client_files, reassemble, resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.turn_log import Prices, read_turn, sum_tokens
from sessgit.model import canonical, humanize, ids, merge_decisions, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens
from sessgit.model.frozen import frozen
from sessgit.record import catch_up, program_turns
from sessgit.record.privacy import transcript_verdict
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource, is_at_commit
from sessgit.store import layout, locks, maintenance, operations, recorder_state, refs, tempdirs
from sessgit.store.context import Context, Homes
from sessgit.store.index import Branch, Index, Row
from sessgit.store.operations import FileRange, FileWrites, Move, Operation
from sessgit.store.private_files import path_exists
from sessgit.store.recorder_state import AppendIntent, MergeOrigins
from sessgit.store.store import Store

_MILLISECONDS_LATER = 2
_OTHER_FOLDER_HINT = "Or use `--new` to merge into a new conversation."
_LONGEST_OUTPUT = 4 << 20
_MERGE_COMMANDS = ("merge", "pick")


@frozen
class NewSession:
    """The id and the name, or ``""``, of a new session for the result."""

    id: str
    name: str = ""


@frozen
class MergeResult:
    """The state of the session with the result, and its commit, ``""`` if nothing was to be done.

    `turns` are the numbers of the appended turns, `transcript` the file that got them, None if the agent has deleted
    it; `secrets` counts the redactions in them.
    """

    state: Session
    commit: str
    plan: MergePlan | None = None
    turns: tuple[int, ...] = ()
    transcript: Path | None = None
    secrets: int = 0
    picked: PickPlan | None = None


@frozen
class _Target:
    """The branch that gets the turns, and the fork that it is, if it is new."""

    branch: Branch
    fork: ForkResult | None


def plan_merge(context: Context, ours: ResolvedTarget, theirs: ResolvedTarget, request: MergeRequest) -> MergePlan:
    """Return the decisions of a merge; raises if the two cannot be merged."""
    check_sides(ours, theirs)
    return plans.plan_merge(context, ours.branch, theirs.branch, theirs.turn, request)


def merge_sessions(
    context: Context,
    ours: ResolvedTarget,
    theirs: ResolvedTarget,
    request: MergeRequest,
    new: NewSession | None = None,
) -> MergeResult:
    """Merge theirs into ours, or both into a new session.

    Raises ConflictError, with nothing changed, if both sides changed the same or ours' file cannot be written.
    """
    if new is not None:
        request = replace(request, choice=replace(request.choice, ours=merge_decisions.PROGRESS))
    with context.store.still_there():
        first = plan_merge(context, ours, theirs, request)
        if first.is_open:
            plans.check_conflicts(first)
            if request.retell is not None and first.standing == "open":
                if new is None:
                    _check_closed(ours.branch, context.homes)
                # It may take long, so no lock is held meanwhile.
                text, retell = _summary_text(context.store, first.sides, first.rows, context.prices), request.retell
                known = retell(text)
                request = replace(request, retell=lambda given: known if given == text else retell(given))
        elif new is not None or agents.is_open(context.homes, ours.state.agent_id):
            return MergeResult(ours.state, "", first)  # nothing is appended: a client may have the file open
        with _locked_target(context, ours, new) as target:
            if new is not None:
                request = replace(request, mode=first.mode)
            plan = plans.plan_merge(context, target.branch, theirs.branch, theirs.turn, request)
            if new is not None:  # the new session is not ours: what was decided before it was made holds
                plan = replace(plan, decisions=first.decisions, pad=first.pad)
            elif not plan.is_open:
                return MergeResult(target.branch.state, "", plan)
            else:
                plans.check_conflicts(plan)
            return _merge_into(context, target, plan, first.authored if new else plan.authored, request)


def plan_pick(context: Context, ours: ResolvedTarget, chosen: Sequence[ResolvedTarget]) -> PickPlan:
    """Return what picking these turns will do; raises if they cannot be picked."""
    check_ours(ours)
    rows = [plans.picked_turn(context.index, target) for target in chosen]
    plans.check_picks(context, ours.branch, rows)
    return plans.plan_pick(context, ours.branch, rows)


def pick_turns(
    context: Context, ours: ResolvedTarget, chosen: Sequence[ResolvedTarget], new: NewSession | None = None
) -> MergeResult:
    """Append single turns to ours, or to a new session that begins as ours; nothing else is merged."""
    check_ours(ours)
    with context.store.still_there():
        rows = [plans.picked_turn(context.index, target) for target in chosen]
        if new is not None:
            plans.check_picks(context, ours.branch, rows)
        with _locked_target(context, ours, new) as target:
            branch, store = target.branch, context.store
            plans.check_picks(context, branch, rows)
            plan = plans.plan_pick(context, branch, rows)
            names = "+".join(row.commit for row in rows)

            def graft(seam: Seam) -> list[NewTurn]:
                return _grafted_turns(
                    store, seam, rows, lambda what: ids.merged_id("pick", branch.tip, names, what), branch.state
                )

            turns, path = _append_turns(context, branch, graft, _graft_origins(rows), rows, "pick")
            head = _head_tip(store, branch.name)
            picks = ", ".join(f"{layout.short_name(row.branch)}@{row.turn}" for row in rows)
            _record_operation(context, target, "pick", picks, {row.branch for row in rows}, head)
            return MergeResult(store.state(head), head, None, tuple(plan.numbers), path, _count_secrets(turns), plan)


@contextmanager
def _locked_target(context: Context, ours: ResolvedTarget, new: NewSession | None) -> Iterator[_Target]:
    """Yield ours, or a fork of it, with all lines of its file recorded, while no other process records it."""
    store, index, session, fork = context.store, context.index, ours.session, None
    with ExitStack() as stack:
        if new is not None:
            delete_unfinished(store, context.homes, context.now())
            stack.enter_context(creation_in_progress(store, new.id))
            point = resolve.fork_point(context, replace(ours, turn=None))
            plan = forks.ForkPlan(new.id, new.name, context.now(), context.homes, whole_pad=True)
            fork, session = forks.fork_session(store, ours.state, point, plan), new.id
        stack.enter_context(file_append.writable_session(store.paths, session))
        index.sync(session)
        _prepare_file(context, _current_branch(index, session))
        store.repo.begin_write()  # before anything is appended: it waits for a purge
        stack.callback(store.repo.release)
        yield _Target(_current_branch(index, session), fork)


def _current_branch(index: Index, session: str) -> Branch:
    branch = index.branch(session)
    if branch is None or branch.archived:
        raise NotFoundError(f"{session} no longer exists", "`sessgit ls` lists all conversations.")
    return branch


def _merge_into(
    context: Context, target: _Target, plan: MergePlan, authored: Session, request: MergeRequest
) -> MergeResult:
    """Append what is merged and make the commit with two parents."""
    store, branch = context.store, target.branch

    def make(seam: Seam) -> list[NewTurn]:
        if plan.mode != "summary":
            return _grafted_turns(store, seam, plan.rows, plan.key, branch.state)
        text = _summary_text(store, plan.sides, plan.rows, context.prices)
        if request.retell is not None:
            text = request.retell(text)
        updated = canonical.seconds(store.state(plan.sides.tip).updated) or 0
        count = humanize.format_count(len(plan.rows), "turn")
        reply = f"Understood. I know what was found there in {count}, and will continue from here."
        later = replace(seam, latest=max(seam.latest, round(updated * 1000)))
        texts = f"{_summary_heading(plan.sides, plan.rows)}\n\n{text}", reply
        return [agents.of(branch.state).writer.summary_turn(later, plan.key, texts, store.state(branch.tip))]

    turns, path = list[NewTurn](), None
    if plan.rows and plan.standing == "open":
        is_summary = plan.mode == "summary"
        turns, path = _append_turns(
            context,
            branch,
            make,
            [("turn", _turn_range(plan))] if is_summary else _graft_origins(plan.rows),
            () if is_summary else plan.rows,
            "merge",
        )
    state, commit = _merge_commit(store, branch, plan, authored, _head_tip(store, branch.name))
    theirs = plan.sides.theirs.name
    _record_operation(context, target, "merge", _merge_summary(plan, layout.short_name(theirs)), {theirs}, commit)
    context.index.sync(branch.name)
    first = branch.state.turns + 1
    numbers = tuple(range(first, first + len(turns)))
    return MergeResult(state, commit, plan, numbers, path, _count_secrets(turns))


def _head_tip(store: Store, session: str) -> str:
    head = refs.read(store.path, layout.head_ref(session))
    if head is None:
        raise ConflictError(
            f"{session[:8]} was archived or deleted just now",
            f"Its file already has the turns. To complete the merge: `sessgit unarchive {session[:8]}`, then "
            f"merge again.",
        )
    return head


def _record_operation(
    context: Context, target: _Target, command: str, summary: str, sources: Set[str], commit: str
) -> None:
    """Note the operation since its first step, move the head to the commit, and delete the intent.

    An intent of turns from other branches than the sources is of a merge that was interrupted.
    """
    store, session = context.store, target.branch.name
    ref, intent = layout.head_ref(session), recorder_state.load_intent(store.paths, session)
    head = _head_tip(store, session)
    old: str | None = head
    wrote, completes = FileWrites(), ""
    before = _first_step(store, session, command, head)
    if before is not None:  # the same command was interrupted before, and `gc` added its operation
        old, wrote, completes = before.moves[0].old, before.wrote, before.id
    if intent is not None and intent.sources <= sources and _is_only_intent(store, intent, head):
        old, wrote = intent.head, _appended_range(intent)
    if target.fork is not None:
        path, operation = target.fork.transcript, target.fork.operation
        whole = {str(path): _bytes_hash(path)} if path else {}
        old, wrote, completes = None, FileWrites({**operation.files, **wrote.files, **whole}), operation.id
    summary_line, moves = f"{session[:8]}: {summary}", [Move(ref, old, commit)]
    operations.perform_operation(
        store, command, summary_line, moves, context.now(), wrote=wrote, held={ref: head}, completes=completes
    )
    recorder_state.delete_intent(store.paths, session)


def _is_only_intent(store: Store, intent: AppendIntent, head: str) -> bool:
    """Return whether the head came of the intent alone: no other turn and no edit came since."""
    for commit, message in store.history(head):
        if commit == intent.head:
            return commit != head
        if message.get("Event") not in ("compact", "end") and message.get("Prompt") not in intent.brought:
            return False
    return False


def _appended_range(intent: AppendIntent) -> FileWrites:
    """Return what an operation notes of the append."""
    piece = FileRange(intent.offset, len(intent.data), hashlib.sha256(intent.data).hexdigest())
    return FileWrites(intent.files, {intent.path: piece})


def _append_turns(
    context: Context, branch: Branch, make: Callable[[Seam], list[NewTurn]], origins: Sequence[tuple[str, str]],
    rows: Sequence[Row], command: str,
) -> tuple[list[NewTurn], Path | None]:  # fmt: skip
    """Append the turns that `make` returns to the session's file in one write, with the sidecar files of the turns
    `rows` next to it, and record them; return them, and the file that got them, None if the agent has deleted it.

    `origins` has the event and origin of each turn. The intent stays saved until `delete_intent`.
    """
    store, state = context.store, branch.state
    with _session_file_end(context, branch) as end:
        turns = make(_find_seam(store, branch, end))
        files = [file for row in rows for file in sidecars.turn_sidecars(store, row.commit, [row.turn])]
        own = sidecars.rename_session(agents.of(state), files, state.agent_id, state.agent_version)
        written = sidecars.write_sidecars(store, state, own, sidecars.place_of(state, context.homes, end.path))
        _check_closed(branch, context.homes)  # making the turns may have taken a while
        if program_turns.is_open(store.paths, branch.name):
            raise ConflictError(
                f"a program has an open turn of {branch.name[:8]}, which the merge would end",
                f"Wait for it. {_OTHER_FOLDER_HINT}",
            )
        data = b"\n" * end.unended + canonical.join_lines(line for turn in turns for line in turn.lines)
        new = [file.path for file in written if file.outcome == sidecars.WRITTEN and end.is_there]
        hashes = {str(path): _bytes_hash(path) for path in new}
        by_prompt = {turn.key: origin for turn, origin in zip(turns, origins, strict=True)}
        intent = AppendIntent(str(end.place), end.size, data, branch.tip, command, by_prompt, hashes)
        file_append.append_lines(store.paths, branch.name, end.path, intent)
        _record(context, branch, end.path, by_prompt)
        return turns, end.path if end.is_there else None


def _graft_origins(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [("graft", turn_address(row)) for row in rows]


def _grafted_turns(
    store: Store, seam: Seam, rows: Sequence[Row], key: Callable[[str], str], state: Session
) -> list[NewTurn]:
    bodies = [store.lines(row.commit, row.turn).body for row in rows]
    return agents.of(state).writer.grafted(seam, bodies, key, state.agent_id)


def _merge_commit(store: Store, branch: Branch, plan: MergePlan, authored: Session, head: str) -> tuple[Session, str]:
    """Write the commit with two parents, with the decided state; return the state and the commit."""
    before, top = branch.state, store.state(head)
    state = replace(
        top,
        description=authored.description,
        labels=authored.labels,
        stage=authored.stage,
        confidence=authored.confidence,
        unified=sessions.decided_state(top.unified, authored.unified),
        state=before.state,
        ended=max(top.updated, before.ended) if before.ended else "",
    )
    origin = _turn_range(plan)
    trailers = (("Session", branch.name), ("Event", "merge"), ("Origin", origin))
    time = max(store.commit(head).time, store.commit(plan.sides.tip).time)
    message = Message(f"merge: {_merge_summary(plan, plan.sides.theirs.name)}", trailers)
    return state, store.write_commit(head, plan.pad.changes(store), state, message, [head, plan.sides.tip], time)


def _merge_summary(plan: MergePlan, name: str) -> str:
    """Return what was merged, such as `a summary of 2 turns of e90c55aa`."""
    what = f"{'a summary of ' if plan.mode == 'summary' else ''}{humanize.format_count(len(plan.rows), 'turn')}"
    if not plan.rows:
        what = "what was said" if plan.standing == "open" else "what was brought back"
    return f"{what} of {name}"


def _turn_range(plan: MergePlan) -> str:
    """Return the address of the merged turns."""
    numbers = [row.turn for row in plan.rows]
    if not numbers:
        return plan.sides.theirs.name
    last = f"-{numbers[-1]}" if numbers[-1] != numbers[0] else ""
    return f"{plan.sides.theirs.name}@{numbers[0]}{last}"


def _count_secrets(turns: Sequence[NewTurn]) -> int:
    return sum(sidecars.count_secrets(line) for turn in turns for line in turn.lines)


@frozen
class _SessionFileEnd:
    """The end of a session's file: its size in bytes, and the lines behind its last turn. The last line has no newline
    if `unended`.

    `place` is where the agent looks for it; if the agent has deleted it, `path` is a copy out of the store.
    """

    path: Path
    size: int
    pending: tuple[Line, ...]
    place: Path
    unended: bool

    @property
    def is_there(self) -> bool:
        return self.path == self.place


@contextmanager
def _session_file_end(context: Context, branch: Branch) -> Iterator[_SessionFileEnd]:
    """Yield the end of the session's file; the caller holds the session's lock.

    Raises ConflictError if a client has the session open, or if its file and the store do not have the same turns.
    """
    state, homes = branch.state, context.homes
    path = client_files.transcript_place(homes, state, context.store.paths)
    if path is None or not state.transcript:
        raise ConflictError(f"{branch.name[:8]} has no file here", f"Write it: `sessgit restore {branch.name[:8]}`")
    _check_closed(branch, homes)
    if path_exists(path):
        yield _end_of_file(context.store, branch, path)
        return
    if others := client_files.other_copies(homes, state, path):
        raise ConflictError(f"the file of {branch.name[:8]} is in another folder: {others[0]}", _OTHER_FOLDER_HINT)
    with tempdirs.make_folder("sessgit-") as folder:
        copy = write_copy(context.store, state, folder)
        _record(context, branch, copy)
        yield replace(_end_of_file(context.store, branch, copy), place=path)


def _prepare_file(context: Context, branch: Branch) -> None:
    """Complete what a kill left half appended, end cells that a program left pending, and record the session's file,
    if it may be recorded.

    The caller holds the session's lock.
    """
    state, store, privacy = branch.state, context.store, context.privacy
    path = client_files.transcript_place(context.homes, state, store.paths)
    if path is None or not agents.of(state).home.is_transcript(context.homes.of(state), path):
        return
    _check_closed(branch, context.homes)
    file_append.finish_append(store.paths, branch.name, path)
    is_on = not privacy.off and transcript_verdict(privacy, path, state.project).recorded
    agent = agents.of(state)
    if is_on and agent.has("programs") and not program_turns.is_open(store.paths, branch.name):
        agent.programs.give_up(path, state)
    level = catch_up.is_level(store.paths, branch.name, path) and _is_recorded_file(store, branch.name, path)
    if not level and is_on:
        _record(context, branch, path)
    context.index.sync(branch.name)


def _record(context: Context, branch: Branch, path: Path, origins: MergeOrigins | None = None) -> None:
    state = branch.state
    source = TranscriptSource(path, state.agent_id, context.homes.of(state), client=state.agent, origins=origins or {})
    record(context, source)
    context.index.sync(branch.name)


def _is_recorded_file(store: Store, session: str, path: Path) -> bool:
    """Return whether the file is the one that was recorded, and no copy in its place."""
    cursor = recorder_state.load_cursor(store.paths, session)
    if cursor is None:
        return False
    with opened(path) as source:
        return recorder_state.matches_file(cursor, path, source.file, source.inode, source.size)


def _find_seam(store: Store, branch: Branch, end: _SessionFileEnd) -> Seam:
    """Return the line that the new lines follow, out of all that is recorded of the session, rewound turns too."""
    tips = set(reassemble.session_branches(store, branch.name).values()) - {branch.tip}
    last = store.lines(branch.tip, branch.state.turns)
    agent = agents.of(branch.state)

    def lines(tips: Iterable[str]) -> Iterator[list[Line]]:
        for tip in tips:
            for stored in store.lines_of_turns(tip, range(1, store.state(tip).turns + 1)):
                yield agent.parsed(stored.whole)

    seam = agent.writer.seam(lines([branch.tip]), lines(tips), agent.parsed(last.body), end.pending)
    # In the beginning that a fork of ours wrote the last line may be so much later than where it is recorded.
    return replace(seam, latest=seam.latest + _MILLISECONDS_LATER)


def _bytes_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return sidecars.bytes_hash(sidecars.read_file(path) or b"")


def _check_closed(branch: Branch, homes: Homes) -> None:
    """Raise ConflictError if a client has the session open."""
    hint = f"Close it first. {_OTHER_FOLDER_HINT}"
    file_append.check_closed(branch.state.agent_id, homes, "appended turns", hint)


def _end_of_file(store: Store, branch: Branch, path: Path) -> _SessionFileEnd:
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
        reader = Reader(source, agents.of(branch.state).lines.make)
        pending = [line for extent in cursor.pending for line in reader.again(extent)]
    return _SessionFileEnd(path, cursor.offset, tuple(pending), path, cursor.unended)


def _summary_heading(sides: MergeSides, rows: Sequence[Row]) -> str:
    """Return the first line of a summary, by which people find it in the log."""
    state = sides.theirs.state
    since = f" since turn {sides.shared}" if sides.shared else ""
    called = canonical.one_line(state.display_title, 100)
    turns = humanize.format_count(len(rows), "turn")
    return f"Merged from {sides.theirs.short}, “{called}”: {turns}{since}"


def _summary_text(store: Store, sides: MergeSides, rows: Sequence[Row], known: Prices) -> str:
    """Return a text about these turns of theirs: prompts and answers, files, the scratchpad, and tokens with their cost
    at these prices."""
    turns = [read_turn(store, sides.tip, row) for row in rows]
    parts = [_summary_intro(sides)]
    for row, turn in zip(rows, turns, strict=True):
        lines = (turn.prompt.strip() or "(no text)").split("\n")
        parts.append("\n".join([f"Turn {row.turn}. Asked:", *(f"> {line}".rstrip() for line in lines)]))
        parts.append(f"Answered:\n{turn.answer.strip() or '(no answer)'}")
    changed = list(dict.fromkeys(path for turn in turns for path in turn.files_changed))
    read = [path for path in dict.fromkeys(path for turn in turns for path in turn.files_read) if path not in changed]
    for what, paths in (("Files it changed", changed), ("Files it read", read)):
        parts += ["\n".join([f"{what}:", *(f"- {path}" for path in paths)])] if paths else []
    parts += ["\n".join([f"Scratchpad, {name}:", *lines]) for name, lines in plans.new_pad_lines(store, sides).items()]
    by_model = sum_tokens(turns)
    tokens = humanize.format_tokens(humanize.new_tokens(sum(by_model.values(), Tokens())))
    cost = humanize.format_money(prices.token_cost(by_model, known))
    parts.append(f"It used {tokens} tokens{f', {cost}' if cost else ''}.")
    return "\n\n".join(parts)


def run_retell_command(command: str, given: str, cwd: str, env: Mapping[str, str]) -> str:
    """Return what the shell command prints for the text on its standard input; raises SessgitError if it fails or
    prints nothing.

    What it starts is not recorded.
    """
    try:
        done = subprocess.run(
            command, shell=True, check=False, input=given.encode("utf-8", "replace"), stdout=subprocess.PIPE, cwd=cwd,
            env={**env, "SESSGIT_OFF": "1"},
        )  # fmt: skip
    except OSError as error:
        raise SessgitError(f"cannot run “{command}”: {error.strerror or error}", "Nothing was changed.") from error
    data = done.stdout
    if len(data) > _LONGEST_OUTPUT:
        raise SessgitError(
            f"“{command}” printed more than {_LONGEST_OUTPUT >> 20} MiB", "Nothing was changed: use a shorter summary."
        )
    if done.returncode:
        how = (
            f"exited with code {done.returncode}" if done.returncode > 0 else f"was killed by signal {-done.returncode}"
        )
        raise SessgitError(f"“{command}” {how}", "Nothing was changed.")
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise SessgitError(
            f"“{command}” printed nothing", "Nothing was changed. The command gets the text on standard input."
        )
    return text


def _summary_intro(sides: MergeSides) -> str:
    if not sides.shared:
        return "It is another conversation and shares no turn with this one."
    turns = "turn" if sides.shared == 1 else humanize.format_count(sides.shared, "turn")
    if layout.is_other_version(sides.theirs.name):
        return f"It is another version of this conversation: both have the first {turns}, then continued separately."
    return f"It shares its first {turns} with this conversation, then continued separately."


# What a kill left of a merge or a pick
#
# A new session that was begun for one and does not hold its result yet is deleted: the same command makes another one.
# Turns that are in the agent's file and recorded stay: their operation is added to the journal, so that `undo` can
# revert it.


@contextmanager
def creation_in_progress(store: Store, session: str) -> Iterator[None]:
    """Keep a note that a new session is being made; after an error or a kill `delete_unfinished` finds it."""
    note = store.paths.beginning(session)
    lock = locks.folder_lock(note)
    try:
        yield
        note.unlink(missing_ok=True)
    finally:
        if lock:
            locks.release(lock)


def unfinished_sessions(store: Store) -> list[str]:
    """Return the new sessions that were begun and that no process works on any more."""
    sessions = []
    for note in sorted(store.paths.state.glob("*.begun")):
        if lock := locks.folder_lock(note):
            locks.release(lock)
            sessions.append(note.stem)
    return sessions


def delete_unfinished(store: Store, homes: Homes, now: float) -> int:
    """Delete the sessions that were begun and never completed, and return how many; one that was continued stays."""
    count = 0
    for session in unfinished_sessions(store):
        with locks.session_lock(store.paths, session) as is_held:
            if is_held and not agents.is_open(homes, session):
                count += _delete_session(store, session, homes, now)
                store.paths.beginning(session).unlink(missing_ok=True)
    return count


def finish_merges(store: Store, homes: Homes, now: float) -> int:
    """Complete files that were half appended to, and note the operations of merges and picks whose turns are recorded
    and that no command completed for a while; return how many."""
    count = 0
    for place in sorted(store.paths.state.glob("*.append")):
        with suppress(OSError, SessgitError), locks.session_lock(store.paths, place.stem) as is_held:
            if is_held and time.time() - place.stat().st_mtime > maintenance.STALE_SECONDS:
                count += _finish_merge(store, place.stem, homes, now)
    return count


def _first_step(store: Store, session: str, command: str, head: str) -> Operation | None:
    """Return the operation that `finish_merges` added for turns of the same command, if the head is still theirs."""
    last = next(reversed(_head_operations(store, session)), None)
    if last is None or last.command != command or last.moves[0].new != head or not last.wrote.appended:
        return None
    return last if store.message(head).get("Event") != "merge" else None


def _head_operations(store: Store, session: str) -> list[Operation]:
    """Return the operations that moved the session's head, oldest first."""
    ref = layout.head_ref(session)
    return [operation for operation in operations.read(store.paths) if any(move.ref == ref for move in operation.moves)]


def _finish_head_move(store: Store, every: Sequence[Operation], head: str) -> bool:
    """Move the head to the commit of a merge whose operation is in the journal, but was not performed; return whether
    it moved."""
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


def _delete_session(store: Store, session: str, homes: Homes, now: float) -> bool:
    ref = layout.head_ref(session)
    head, every = refs.read(store.path, ref), _head_operations(store, session)
    if head is None or _finish_head_move(store, every, head) or len(every) != 1 or every[0].command != "fork":
        return False
    intent = recorder_state.load_intent(store.paths, session)
    if intent is not None and head == every[0].moves[0].new:
        _withdraw_append(intent)
        recorder_state.delete_intent(store.paths, session)
    with suppress(ConflictError):  # it was continued
        if not undo.undo_operation(store, every[0].id, homes, now, dry_run=True).left:
            undo.undo_operation(store, every[0].id, homes, now)
            recorder_state.delete_cursor(store.paths, session)
            return True
    return False


def _withdraw_append(intent: AppendIntent) -> None:
    """Remove from the file what a kill left appended, if it is the file's end."""
    path = Path(intent.path)
    written = path.read_bytes()[intent.offset :] if path_exists(path) else b""
    if written and intent.data.startswith(written):
        agent_files.cut(path, len(written), hashlib.sha256(written).hexdigest())


def _finish_merge(store: Store, session: str, homes: Homes, now: float) -> bool:
    intent, ref = recorder_state.load_intent(store.paths, session), layout.head_ref(session)
    head = refs.read(store.path, ref)
    if intent is None or intent.command not in _MERGE_COMMANDS or head is None:
        return False
    if _finish_head_move(store, _head_operations(store, session), head):
        return True
    last = _last_commit(store, intent, head)
    if last is None:
        path = Path(intent.path)
        if homes.hold(path) and agents.transcript_at(homes, path):
            file_append.check_closed(store.state(head).agent_id, homes)
            file_append.finish_append(store.paths, session, path)
        return False
    turns = humanize.format_count(len(intent.brought), "turn")
    sources = ", ".join(sorted(layout.short_name(name) for name in intent.sources))
    summary = f"{session[:8]}: {turns} of {sources}, interrupted"
    refs_moved, wrote = {ref: (intent.head, last)}, _appended_range(intent)
    done = Operation(canonical.rfc3339(now), intent.command, summary, refs_moved, wrote.files, appended=wrote.appended)
    operations.append(store.paths, done)
    recorder_state.delete_intent(store.paths, session)
    return True


def _last_commit(store: Store, intent: AppendIntent, head: str) -> str | None:
    """Return the commit of the last turn of the intent, if all of its turns are recorded after the head it names."""
    missing, last = set(intent.brought), None
    for commit, message in store.history(head):
        if commit == intent.head:
            return last if not missing else None
        if message.get("Prompt") in intent.brought:
            missing.discard(message.get("Prompt"))
            last = last or commit
    return None
