"""Two conversations brought back together, and single turns brought from one into another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents.values import NewTurn, Seam
from sessgit.branch import file_append, sidecars
from sessgit.branch import fork as forks
from sessgit.branch.fork import ForkResult
from sessgit.branch.merging import interrupted, summary, writing
from sessgit.branch.merging import plan as plans
from sessgit.branch.merging.plan import MergePlan, MergeRequest, PickPlan, turn_address
from sessgit.branch.merging.sides import check_ours, check_sides
from sessgit.errors import ConflictError, NotFoundError
from sessgit.history import fork_point
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.views import Prices
from sessgit.model import canonical, humanize, ids, merge_decisions, unified_state
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.store import layout, operations, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.journal import FileWrites
from sessgit.store.private_files import path_exists
from sessgit.store.store import Store
from sessgit.store.transaction import Move


@dataclass(frozen=True, slots=True)
class NewSession:
    """The id and the name, or ``""``, of a new session for the result."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Target:
    """The branch that gets the turns, and the fork that it is, if it is new. `picked` are the addresses of the turns
    that an interrupted pick appended to the file at `path`, None if the file is gone."""

    branch: Branch
    fork: ForkResult | None
    picked: Sequence[str] = ()
    path: Path | None = None


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
                    writing.check_closed(ours.branch, context.homes)
                text = summary.summary_text(context.store, first.sides, first.rows, context.prices)
                request = _with_retold_text(request, request.retell, text)
        elif new is not None or agents.is_open(context.homes, ours.state.agent_id):
            return MergeResult(ours.state, "", first)  # nothing is appended: a client may have the file open
        with _locked_target(context, ours, new) as target:
            if new is not None:
                # The new session is not ours: what was decided before it was made holds.
                request = replace(request, mode=first.mode)
                plan = plans.plan_merge(context, target.branch, theirs.branch, theirs.turn, request)
                plan, authored = replace(plan, decisions=first.decisions, pad=first.pad), first.authored
            else:
                plan = plans.plan_merge(context, target.branch, theirs.branch, theirs.turn, request)
                if not plan.is_open:
                    return MergeResult(target.branch.state, "", plan)
                plans.check_conflicts(plan)
                authored = plan.authored
            return _merge_into(context, target, plan, authored, request)


def _with_retold_text(request: MergeRequest, retell: Callable[[str], str], summarized: str) -> MergeRequest:
    """Return the request with that summary retold already: it may fail or take long, so no lock is held meanwhile."""
    retold = retell(summarized)
    return replace(request, retell=lambda text: retold if text == summarized else retell(text))


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
            return _pick_into(context, target, rows)


def _pick_into(context: Context, target: _Target, rows: Sequence[Row]) -> MergeResult:
    branch, store = target.branch, context.store
    if target.picked == list(map(turn_address, rows)):
        before = replace(branch, state=replace(branch.state, turns=branch.state.turns - len(rows)))
        plan = plans.plan_pick(context, before, rows)
        return MergeResult(branch.state, branch.tip, None, tuple(plan.numbers), target.path, 0, plan)
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
    """Yield ours, or a fork of it, level with its file, while no other process records it."""
    store, index, session, fork = context.store, context.index, ours.session, None
    with ExitStack() as stack:
        if new is not None:
            interrupted.delete_unfinished(store, context.homes, context.now())
            stack.enter_context(interrupted.creation_in_progress(store, new.id))
            point = fork_point.fork_point(context, replace(ours, turn=None))
            plan = forks.ForkPlan(new.id, new.name, context.now(), context.homes, whole_pad=True)
            fork, session = forks.fork_session(store, ours.state, point, plan), new.id
        stack.enter_context(file_append.writable_session(store.paths, session))
        index.sync(session)
        writing.prepare_file(context, _current_branch(index, session))
        store.repo.begin_write()  # before anything is appended: it waits for a purge
        stack.callback(store.repo.release)
        branch = _current_branch(index, session)
        intent = recorder_state.load_intent(store.paths, session)
        target = _Target(branch, fork)
        if intent is not None and intent.command == "pick" and file_append.is_only_intent(store, intent, branch.tip):
            # A pick was killed before its operation was noted: its turns are there.
            origins = [origin for _, origin in intent.brought.values()]
            _record_operation(context, target, "pick", ", ".join(origins), intent.sources, branch.tip)
            target = replace(target, picked=origins, path=Path(intent.path) if path_exists(intent.path) else None)
        yield target


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
    turns, path = list[NewTurn](), None
    if plan.rows and plan.standing == "open":
        is_summary = plan.mode == "summary"
        turns, path = _append_turns(
            context,
            branch,
            lambda seam: _merge_turns(store, branch, plan, request, seam, context.prices),
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
    context: Context, target: _Target, command: str, summary_text: str, sources: Set[str], commit: str
) -> None:
    """Note the operation since its first step, move the head to the commit, and delete the intent.

    An intent of turns from other branches than the sources is of a merge that was interrupted.
    """
    store, session = context.store, target.branch.name
    ref, intent = layout.head_ref(session), recorder_state.load_intent(store.paths, session)
    head = _head_tip(store, session)
    old: str | None = head
    wrote, completes = FileWrites(), ""
    before = interrupted.first_step(store, session, command, head)
    if before is not None:  # the same was begun before, and noted when no command completed it
        old, wrote, completes = before.moves[0].old, before.wrote, before.id
    if intent is not None and intent.sources <= sources and file_append.is_only_intent(store, intent, head):
        old, wrote = intent.head, file_append.appended_range(intent)
    if target.fork is not None:
        path, operation = target.fork.transcript, target.fork.operation
        whole = {str(path): writing.bytes_hash(path)} if path else {}
        old, wrote, completes = None, FileWrites({**operation.files, **wrote.files, **whole}), operation.id
    summary_line, moves = f"{session[:8]}: {summary_text}", [Move(ref, old, commit)]
    operations.perform_operation(
        store, command, summary_line, moves, context.now(), wrote=wrote, held={ref: head}, completes=completes
    )
    recorder_state.delete_intent(store.paths, session)


def _append_turns(
    context: Context, branch: Branch, make: Callable[[Seam], list[NewTurn]], origins: Sequence[tuple[str, str]],
    rows: Sequence[Row], command: str,
) -> tuple[list[NewTurn], Path | None]:  # fmt: skip
    """Append the turns that `make` returns, with the sidecar files of the turns `rows`; return them, and the file that
    got them, None if the agent has deleted it. `origins` has the event and origin of each turn."""
    store = context.store
    with writing.session_file_end(context, branch) as end:
        turns = make(writing.find_seam(store, end))
        files = [file for row in rows for file in sidecars.turn_sidecars(store, row.commit, [row.turn])]
        by_prompt = {turn.key: origin for turn, origin in zip(turns, origins, strict=True)}
        writing.append_turns(context, end, turns, by_prompt, files, command)
        return turns, end.path if end.is_there else None


def _graft_origins(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [("graft", turn_address(row)) for row in rows]


def _merge_turns(
    store: Store, branch: Branch, plan: MergePlan, request: MergeRequest, seam: Seam, prices: Prices
) -> list[NewTurn]:
    """Return the turns that the merge appends."""
    if plan.mode != "summary":
        return _grafted_turns(store, seam, plan.rows, plan.key, branch.state)
    text = summary.summary_text(store, plan.sides, plan.rows, prices)
    if request.retell is not None:
        text = request.retell(text)
    updated = canonical.seconds(store.state(plan.sides.tip).updated) or 0
    seam = replace(seam, latest=max(seam.latest, round(updated * 1000)))
    texts = f"{summary.summary_heading(plan.sides, plan.rows)}\n\n{text}", summary.summary_reply(plan.rows)
    return [agents.of(branch.state).writer.told(seam, plan.key, texts, store.state(branch.tip))]


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
        unified=unified_state.decided_state(top.unified, authored.unified),
        state=before.state,
        ended=max(top.updated, before.ended) if before.ended else "",
    )
    origin = _turn_range(plan)
    trailers = (("Session", branch.name), ("Event", "merge"), ("Origin", origin))
    time = max(store.commit(head).time, store.commit(plan.sides.tip).time)
    message = Message(f"merge: {_merge_summary(plan, plan.sides.theirs.name)}", trailers)
    return state, store.write_commit(head, plan.pad.changes(store), state, message, [head, plan.sides.tip], time)


def _merge_summary(plan: MergePlan, name: str) -> str:
    """`a summary of 2 turns of e90c55aa`: what was brought back from a branch."""
    what = f"{'a summary of ' if plan.mode == 'summary' else ''}{humanize.format_count(len(plan.rows), 'turn')}"
    if not plan.rows:
        what = "what was said" if plan.standing == "open" else "what was brought back"
    return f"{what} of {name}"


def _turn_range(plan: MergePlan) -> str:
    """The turns that were brought, as an address."""
    numbers = [row.turn for row in plan.rows]
    if not numbers:
        return plan.sides.theirs.name
    last = f"-{numbers[-1]}" if numbers[-1] != numbers[0] else ""
    return f"{plan.sides.theirs.name}@{numbers[0]}{last}"


def _count_secrets(turns: Sequence[NewTurn]) -> int:
    return sum(sidecars.count_secrets(line) for turn in turns for line in turn.lines)
