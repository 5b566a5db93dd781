"""Two conversations brought back together, and single turns brought from one into another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sessgit import agents
from sessgit.agents.values import NewTurn, Seam
from sessgit.branch import fork as forks
from sessgit.branch import sidecars
from sessgit.branch.merging import interrupted, picking, summary, writing
from sessgit.branch.merging import plan as plans
from sessgit.branch.merging.plan import MergePlan, MergeRequest, PickPlan
from sessgit.branch.merging.sides import check_ours, check_sides
from sessgit.branch.merging.writing import AppendBatch
from sessgit.errors import ConflictError, NotFoundError, StoreError
from sessgit.history import fork_point
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.views import Prices
from sessgit.model import canonical, humanize, ids, unified_state
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.record.privacy import Privacy
from sessgit.record.source import rules_from_settings
from sessgit.store import journal, layout, locks, operations, refs
from sessgit.store.files import paths
from sessgit.store.index import Index
from sessgit.store.journal import FileRange, FileWrites
from sessgit.store.recorder import append_intent
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class MergeContext:
    """Where and when a merge takes place: a store and its index, the agent's folder, what may be recorded, the time in
    seconds since 1970, and the prices of models that a person set."""

    store: Store
    index: Index
    config: Path
    privacy: Privacy
    now: float
    prices: Prices = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewSession:
    """The new session that shall hold the result: its id, and its name or ``""``."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did: the state of the session that holds the result, and its commit, ``""`` where nothing was done.

    `turns` are the numbers of the turns that were appended, `transcript` the file that got them, None where the agent
    has deleted it; `secrets` counts what stands replaced in them.
    """

    state: Session
    commit: str
    plan: MergePlan | None = None
    turns: tuple[int, ...] = ()
    transcript: Path | None = None
    secrets: int = 0
    picked: PickPlan | None = None


@dataclass(frozen=True, slots=True)
class FirstStep:
    """The first step of what a new session shall hold: the operation that made it, its file, and all that it wrote."""

    operation: str
    path: Path | None
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The branch that turns are brought to. `finished` are the addresses of those that another run had brought there,
    and `path` is the file that got them, if it is there."""

    branch: Branch
    finished: Sequence[str] = ()
    path: Path | None = None


def plan_merge(
    store: Store, index: Index, ours: ResolvedTarget, theirs: ResolvedTarget, wish: MergeRequest
) -> MergePlan:
    """The decisions of a merge, of which nothing is done yet; raises where the two cannot be merged."""
    check_sides(ours, theirs)
    return plans.plan_merge(store, index, ours.branch, theirs.branch, theirs.turn, wish)


def merge_sessions(
    world: MergeContext, ours: ResolvedTarget, theirs: ResolvedTarget, wish: MergeRequest, new: NewSession | None = None
) -> MergeResult:
    """Brings theirs back into ours, or both together in a new session.

    Raises ConflictError, with nothing changed, where both sides changed the same or ours' file cannot be written.
    """
    with world.store.still_there():
        return _merge_both(world, ours, theirs, wish, new)


def _merge_both(
    world: MergeContext, ours: ResolvedTarget, theirs: ResolvedTarget, wish: MergeRequest, new: NewSession | None
) -> MergeResult:
    first = plan_merge(world.store, world.index, ours, theirs, wish)
    if first.is_open:
        plans.check_conflicts(first)
        if wish.retell is not None and first.standing == "open":
            if new is None:
                writing.check_closed(ours.branch, world.config)
            wish = _with_retold_text(
                wish, wish.retell, summary.summary_text(world.store, first.sides, first.rows, world.prices)
            )
        if new is not None:
            with _creation_in_progress(world, new):
                return _merge_into_new(world, ours, theirs, wish, new, first)
    elif new is not None or agents.at(world.config).home.is_open(world.config, ours.state.agent_id):
        return MergeResult(ours.state, "", first)  # nothing is appended: a client may have the file open
    with _locked_target(world, ours.session) as at:
        found = plans.plan_merge(world.store, world.index, at.branch, theirs.branch, theirs.turn, wish)
        if not found.is_open:
            return MergeResult(at.branch.state, "", found)
        plans.check_conflicts(found)
        return _merge_into(world, at.branch, found, found.authored, wish)


def _with_retold_text(wish: MergeRequest, retell: Callable[[str], str], given: str) -> MergeRequest:
    """The wish with that text retold already: it may fail, or take a while, in which nobody should have to wait."""
    said = retell(given)
    return replace(wish, retell=lambda now: said if now == given else retell(now))


def plan_pick(store: Store, index: Index, ours: ResolvedTarget, chosen: Sequence[ResolvedTarget]) -> PickPlan:
    """What picking these turns will do, of which nothing is done yet; raises where they cannot be picked."""
    check_ours(ours)
    rows = [picking.picked_turn(index, one) for one in chosen]
    picking.check_picks(store, index, ours.branch, rows)
    return plans.plan_pick(store, index, ours.branch, rows)


def pick_turns(
    world: MergeContext, ours: ResolvedTarget, chosen: Sequence[ResolvedTarget], new: NewSession | None = None
) -> MergeResult:
    """Appends single turns to ours, or to a new session that begins as ours; they are not merged otherwise."""
    check_ours(ours)
    with world.store.still_there():
        rows = [picking.picked_turn(world.index, one) for one in chosen]
        if new is None:
            return _pick_into(world, ours, rows)
        picking.check_picks(world.store, world.index, ours.branch, rows)
        with _creation_in_progress(world, new):
            return _pick_into(world, ours, rows, new)


def _pick_into(
    world: MergeContext, ours: ResolvedTarget, rows: Sequence[Row], new: NewSession | None = None
) -> MergeResult:
    store, index = world.store, world.index
    begun = _fork_first(world, ours, new) if new is not None else None
    with _locked_target(world, new.id if new else ours.session) as at:
        if at.finished == list(
            map(picking.turn_address, rows)
        ):  # by another run, which was killed before it could say so
            before = replace(at.branch, state=replace(at.branch.state, turns=at.branch.state.turns - len(rows)))
            found = plans.plan_pick(store, index, before, rows)
            return MergeResult(at.branch.state, at.branch.tip, None, tuple(found.numbers), at.path, 0, found)
        picking.check_picks(store, index, at.branch, rows)
        found = plans.plan_pick(store, index, at.branch, rows)
        names = "+".join(row.commit for row in rows)

        def key(what: str) -> str:
            return ids.merged_id("pick", at.branch.tip, names, what)

        def graft(end: Seam) -> list[NewTurn]:
            return _grafted_turns(store, end, rows, key, at.branch.state)

        turns, numbers, path = _append_turns(world, at.branch, graft, _graft_origins(rows), rows, "pick")
        head = refs.read(store.path, layout.head_ref(at.branch.name)) or ""
        did = _Done("pick", picking.picks_summary(rows), frozenset(row.branch for row in rows))
        _record_operation(world, at.branch.name, did, head, begun)
        return MergeResult(store.state(head), head, None, numbers, path, _count_secrets(turns), found)


@contextmanager
def _creation_in_progress(world: MergeContext, new: NewSession) -> Iterator[None]:
    """Tells that the new session is being made; what a killed command began so goes before."""
    interrupted.delete_unfinished(world.store, world.config, world.now)
    with interrupted.creation_in_progress(world.store, new.id):
        yield


def _merge_into_new(
    world: MergeContext,
    ours: ResolvedTarget,
    theirs: ResolvedTarget,
    wish: MergeRequest,
    new: NewSession,
    first: MergePlan,
) -> MergeResult:
    """Both together in a new session, decided as it was before that was made."""
    begun = _fork_first(world, ours, new)
    with _locked_target(world, new.id) as at:
        same = replace(wish, mode=first.mode)
        found = plans.plan_merge(world.store, world.index, at.branch, theirs.branch, theirs.turn, same)
        found = replace(found, decisions=first.decisions, pad=first.pad)
        return _merge_into(world, at.branch, found, first.authored, wish, begun)


def _fork_first(world: MergeContext, ours: ResolvedTarget, new: NewSession) -> FirstStep:
    store, index = world.store, world.index
    point = fork_point.fork_point(store, index, replace(ours, turn=None))
    done = forks.fork_session(
        store, ours.state, point, forks.ForkPlan(new.id, new.name, world.now, world.config, whole_pad=True)
    )
    index.sync()
    first = [one for one in journal.read(store.beside) if any(move.new == done.commit for move in one.moves)]
    return FirstStep(first[-1].id if first else "", done.transcript, first[-1].files if first else {})


@contextmanager
def _locked_target(world: MergeContext, session: str) -> Iterator[MergeTarget]:
    """The session's branch, level with its file, while nobody else records it."""
    store, index = world.store, world.index
    with locks.session_lock(store.beside, session, _LOCK_WAIT) as held:
        if not held:
            raise StoreError(f"a recorder is writing {session[:8]}", "Try again.")
        index.sync(session)
        writing.prepare_file(store, index, _current_branch(index, session), world.config, world.privacy)
        # Who is just purging is waited for before anything is appended; what is recorded lets go
        store.repo.begin_write()
        try:
            branch = _current_branch(index, session)
            note = append_intent.load_intent(store.beside, session)
            if note is None or note.command != "pick" or not writing.is_only_intent(store, note, branch.tip):
                yield MergeTarget(branch)
                return
            # A pick that was killed before it was written down: its turns are there.
            origins = [origin for _, origin in note.brought.values()]
            _record_operation(world, session, _Done("pick", ", ".join(origins), note.sources), branch.tip)
            yield MergeTarget(branch, origins, Path(note.path) if paths.is_there(note.path) else None)
        finally:
            store.repo.release()


def _current_branch(index: Index, session: str) -> Branch:
    found = index.branch(session)
    if found is None or found.archived:
        raise NotFoundError(f"{session} no longer exists", "`sessgit ls` lists all conversations.")
    return found


def _merge_into(
    world: MergeContext,
    branch: Branch,
    found: MergePlan,
    authored: Session,
    wish: MergeRequest,
    begun: FirstStep | None = None,
) -> MergeResult:
    """Appends what is brought back and makes the commit with two parents."""
    store = world.store
    turns, numbers, path = list[NewTurn](), tuple[int, ...](), None
    if found.rows and found.standing == "open":
        told = found.mode == "summary"
        origins = [("turn", _turn_range(found))] if told else _graft_origins(found.rows)
        turns, numbers, path = _append_turns(
            world, branch, lambda at: _merge_turns(store, branch, found, wish, at, world.prices), origins,
            () if told else found.rows, "merge",
        )  # fmt: skip
    head = _head_tip(store, branch.name)
    state, commit = _merge_commit(store, branch, found, authored, head)
    theirs = found.sides.theirs.name
    _record_operation(
        world,
        branch.name,
        _Done("merge", _merge_summary(found, layout.short_name(theirs)), frozenset({theirs})),
        commit,
        begun,
    )
    world.index.sync(branch.name)
    return MergeResult(state, commit, found, numbers, path, _count_secrets(turns))


def _head_tip(store: Store, session: str) -> str:
    head = refs.read(store.path, layout.head_ref(session))
    if head is None:
        raise ConflictError(
            f"{session[:8]} was archived or deleted just now",
            f"Its file already has the turns. To complete the merge: `sessgit unarchive {session[:8]}`, then "
            f"merge again.",
        )
    return head


@dataclass(frozen=True, slots=True)
class _Done:
    """What a command did, in words, and the branches that turns are brought from."""

    command: str
    summary: str
    sources: Set[str]


def _record_operation(
    world: MergeContext, session: str, did: _Done, commit: str, begun: FirstStep | None = None
) -> None:
    """Writes down what was done since its first step, moves the head to the commit, and forgets what was noted.

    A note of turns from other branches than the sources is of a merge that was interrupted.
    """
    store = world.store
    ref, note = layout.head_ref(session), append_intent.load_intent(store.beside, session)
    head = _head_tip(store, session)
    old: str | None = head
    wrote = FileWrites()
    before = interrupted.first_step(store, session, did.command, head)
    if before is not None:  # the same was begun before, and written down when nobody went on with it
        old, wrote = before.moves[0].old, before.wrote
    if note is not None and note.sources <= did.sources and writing.is_only_intent(store, note, head):
        piece = FileRange(note.offset, len(note.data), hashlib.sha256(note.data).hexdigest())
        old, wrote = note.head, FileWrites(note.files, {note.path: piece})
    if begun is not None:
        whole = {str(begun.path): writing.bytes_hash(begun.path)} if begun.path else {}
        old, wrote = None, FileWrites({**begun.files, **wrote.files, **whole})
    moves, summary = [Move(ref, old, commit)], f"{session[:8]}: {did.summary}"
    completes = begun.operation if begun else before.id if before else ""
    operations.perform_operation(
        store, did.command, summary, moves, world.now, wrote=wrote, held={ref: head}, completes=completes
    )
    append_intent.delete_intent(store.beside, session)


def _append_turns(
    world: MergeContext, branch: Branch, make: Callable[[Seam], list[NewTurn]], origins: Sequence[tuple[str, str]],
    rows: Sequence[Row], command: str,
) -> tuple[list[NewTurn], tuple[int, ...], Path | None]:  # fmt: skip
    """Appends the turns that `make` gives, with what lay beside the turns `rows`.

    Returns them, their numbers, and the file that got them, if it is there. `origins` are the event of each and where
    it comes from.
    """
    store = world.store
    with writing.session_file_end(store, branch, world.config) as at:
        turns = make(writing.find_seam(store, at))
        files = [file for row in rows for file in sidecars.turn_sidecars(store, row.commit, [row.turn])]
        beside = writing.write_sidecars(store, at, world.config, files)
        brought = {turn.key: origin for turn, origin in zip(turns, origins, strict=True)}
        batch = AppendBatch(turns, brought, beside, command)
        writing.append_batch(store, world.index, at, batch, world.config, rules_from_settings(world.privacy.rules))
        first = branch.state.turns + 1
        return turns, tuple(range(first, first + len(turns))), at.path if at.is_there else None


def _graft_origins(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [("graft", picking.turn_address(row)) for row in rows]


def _merge_turns(
    store: Store, branch: Branch, found: MergePlan, wish: MergeRequest, at: Seam, prices: Prices
) -> list[NewTurn]:
    """The turns that the merge appends."""
    if found.mode != "summary":
        return _grafted_turns(store, at, found.rows, found.key, branch.state)
    said = summary.summary_text(store, found.sides, found.rows, prices)
    if wish.retell is not None:
        said = wish.retell(said)
    there = canonical.seconds(store.state(found.sides.tip).updated) or 0
    at = replace(at, latest=max(at.latest, round(there * 1000)))
    prompt = f"{summary.summary_heading(found.sides, found.rows)}\n\n{said}"
    both = prompt, summary.summary_reply(found.rows)
    return [agents.of(branch.state).grafting.told(at, found.key, both, store.state(branch.tip))]


def _grafted_turns(
    store: Store, at: Seam, rows: Sequence[Row], key: Callable[[str], str], state: Session
) -> list[NewTurn]:
    bodies = [store.lines(row.commit, row.turn).body for row in rows]
    return agents.of(state).grafting.grafted(at, bodies, key, state.agent_id)


def _merge_commit(store: Store, branch: Branch, found: MergePlan, authored: Session, head: str) -> tuple[Session, str]:
    """The commit with two parents, with what was decided about the states, and the state."""
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
    origin = _turn_range(found)
    trailers = (("Session", branch.name), ("Event", "merge"), ("Origin", origin))
    time = max(store.commit(head).time, store.commit(found.sides.tip).time)
    message = Message(f"merge: {_merge_summary(found, found.sides.theirs.name)}", trailers)
    return state, store.write_commit(head, found.pad.changes(store), state, message, [head, found.sides.tip], time)


def _merge_summary(found: MergePlan, name: str) -> str:
    """`a summary of 2 turns of e90c55aa`: what was brought back from a branch."""
    what = f"{'a summary of ' if found.mode == 'summary' else ''}{humanize.format_count(len(found.rows), 'turn')}"
    if not found.rows:
        what = "what was said" if found.standing == "open" else "what was brought back"
    return f"{what} of {name}"


def _turn_range(found: MergePlan) -> str:
    """The turns that were brought, as an address."""
    numbers = [row.turn for row in found.rows]
    if not numbers:
        return found.sides.theirs.name
    last = f"-{numbers[-1]}" if numbers[-1] != numbers[0] else ""
    return f"{found.sides.theirs.name}@{numbers[0]}{last}"


def _count_secrets(turns: Sequence[NewTurn]) -> int:
    return sum(sidecars.count_secrets(line) for turn in turns for line in turn.lines)
