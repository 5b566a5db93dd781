"""Two conversations brought back together, and single turns brought from one into another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sessgit.errors import NotFoundError, StoreError, UsageError
from sessgit.model import canonical, ids, words
from sessgit.model.message import Message
from sessgit.model.session import Session
from sessgit.ops import fork as forks
from sessgit.ops import forkpoint, operations, sidefiles
from sessgit.ops.merging import grafting, summary, writing
from sessgit.ops.merging import plan as plans
from sessgit.ops.merging.grafting import Seam, Turn
from sessgit.ops.merging.plan import Plan, Wish
from sessgit.ops.merging.sides import check, check_ours
from sessgit.ops.privacy import Privacy
from sessgit.ops.resolve import Target
from sessgit.store import layout, locks, refs
from sessgit.store.index import Branch, Index, Row
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class World:
    """Where and when a merge takes place: the agent's folder, what may be recorded, the time in seconds since 1970."""

    config: Path
    privacy: Privacy
    now: float


@dataclass(frozen=True, slots=True)
class New:
    """The new session that shall hold the result: its id, and its name or ``""``."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did: the state of the session that holds the result, and its commit, ``""`` where nothing was done.

    `turns` are the numbers of the turns that were appended, `transcript` the file that got them, None where the agent
    has deleted it; `secrets` counts what stands replaced in them.
    """

    state: Session
    commit: str
    plan: Plan | None = None
    turns: tuple[int, ...] = ()
    transcript: Path | None = None
    secrets: int = 0


def planned(store: Store, index: Index, ours: Target, theirs: Target, wish: Wish) -> Plan:
    """The decisions of a merge, of which nothing is done yet; raises where the two cannot be merged."""
    check(ours, theirs)
    return plans.plan(store, index, ours.branch, theirs.branch, theirs.turn, wish)


def merge(  # noqa: PLR0913, PLR0917 - both sides, what is wanted of them, and where
    store: Store, index: Index, ours: Target, theirs: Target, wish: Wish, world: World, new: New | None = None
) -> Merged:
    """Brings theirs back into ours, or both together in a new session.

    Raises ConflictError, with nothing changed, where both sides changed the same or ours' file cannot be written.
    """
    first = planned(store, index, ours, theirs, wish)
    if new is not None and first.is_open:
        plans.check_conflicts(first)
        if wish.retell is not None:  # before anything is made: it may fail
            said = wish.retell(summary.text(store, first.sides, first.rows))
            wish = replace(wish, retell=lambda _: said)
        return _in_new(store, index, ours, theirs, wish, world, new, first)
    with _alone(store, index, ours.session, world) as branch:
        found = plans.plan(store, index, branch, theirs.branch, theirs.turn, wish)
        if not found.is_open:
            return Merged(branch.state, "", found)
        plans.check_conflicts(found)
        return _merged(store, index, branch, found, found.authored, wish, world)


def pick(
    store: Store, index: Index, ours: Target, picked: Sequence[Target], world: World, new: New | None = None
) -> Merged:
    """Appends single turns to ours, or to a new session that begins as ours; they are not merged otherwise."""
    check_ours(ours)
    chosen = [_turn(index, one) for one in picked]
    _check_picked(index, ours.branch, chosen)
    session = ours.session if new is None else _forked(store, index, ours, world, new).name
    with _alone(store, index, session, world) as branch:
        _check_picked(index, branch, chosen)
        names = "+".join(row.commit for row in chosen)

        def key(what: str) -> str:
            return ids.merged_id("pick", branch.tip, names, what)

        turns, numbers, path = _brought(
            store,
            index,
            branch,
            world,
            lambda at: _graft(store, at, chosen, key, branch.state.agent_id),
            _origins(chosen),
            chosen,
        )
        head = refs.read(store.path, layout.head(branch.name)) or ""
        return Merged(store.state(head), head, None, numbers, path, _secrets(turns))


def _in_new(  # noqa: PLR0913, PLR0917 - the same
    store: Store, index: Index, ours: Target, theirs: Target, wish: Wish, world: World, new: New, first: Plan
) -> Merged:
    branch = _forked(store, index, ours, world, new)
    with _alone(store, index, branch.name, world) as fork:
        found = plans.plan(store, index, fork, theirs.branch, theirs.turn, replace(wish, mode=first.mode))
        found = replace(found, decisions=first.decisions)
        return _merged(store, index, fork, found, first.authored, wish, world)


def _forked(store: Store, index: Index, ours: Target, world: World, new: New) -> Branch:
    point = forkpoint.point(store, index, replace(ours, turn=None))
    forks.fork(store, ours.state, point, forks.Plan(new.id, new.name, world.now, world.config))
    index.sync()
    branch = index.branch(new.id)
    assert branch is not None
    return branch


@contextmanager
def _alone(store: Store, index: Index, session: str, world: World) -> Iterator[Branch]:
    """The session's branch, level with its file, while nobody else records it."""
    with locks.session(store.beside, session, _LOCK_WAIT) as held:
        if not held:
            raise StoreError(f"a recorder is at work on {session[:8]}", "Try again.")
        index.sync(session)
        writing.prepare(store, index, _branch(index, session), world.config, world.privacy)
        yield _branch(index, session)


def _branch(index: Index, session: str) -> Branch:
    found = index.branch(session)
    if found is None or found.archived:
        raise NotFoundError(f"{session} has no branch any more", "sessgit ls shows all conversations.")
    return found


def _merged(  # noqa: PLR0913, PLR0917 - the same
    store: Store, index: Index, branch: Branch, found: Plan, authored: Session, wish: Wish, world: World
) -> Merged:
    """Appends what is brought back and makes the commit with two parents."""
    turns, numbers, path = list[Turn](), tuple[int, ...](), None
    if found.rows and found.standing == "open":
        told = found.mode == "summary"
        origins = [("turn", _range(found))] if told else _origins(found.rows)
        turns, numbers, path = _brought(
            store, index, branch, world, lambda at: _turns(store, branch, found, wish, at), origins,
            () if told else found.rows,
        )  # fmt: skip
    head = refs.read(store.path, layout.head(branch.name))
    assert head is not None
    state, commit = _commit(store, branch, found, authored, head)
    move = Move(layout.head(branch.name), head, commit)
    operations.perform(store, "merge", f"{branch.name[:8]}: {_told(found)}", [move], world.now)
    index.sync(branch.name)
    return Merged(state, commit, found, numbers, path, _secrets(turns))


def _brought(  # noqa: PLR0913, PLR0917 - the same
    store: Store, index: Index, branch: Branch, world: World, make: Callable[[Seam], list[Turn]],
    origins: Sequence[tuple[str, str]], rows: Sequence[Row],
) -> tuple[list[Turn], tuple[int, ...], Path | None]:  # fmt: skip
    """Appends the turns that `make` gives, with what lay beside the turns `rows`.

    Returns them, their numbers, and the file that got them, if it is there. `origins` are the event of each and where
    it comes from.
    """
    with writing.end(store, branch, world.config) as at:
        turns = make(writing.seam(store, branch, at))
        files = [file for row in rows for file in sidefiles.of_turns(store, row.commit, [row.turn])]
        writing.write_beside(branch, at, world.config, files)
        brought = {turn.key: origin for turn, origin in zip(turns, origins, strict=True)}
        writing.append(store, index, branch, at, turns, world.config, writing.rules_of(world.privacy), brought)
        first = branch.state.turns + 1
        return turns, tuple(range(first, first + len(turns))), at.path if at.is_there else None


def _origins(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [("graft", f"{row.branch}@{row.turn}") for row in rows]


def _turns(store: Store, branch: Branch, found: Plan, wish: Wish, at: Seam) -> list[Turn]:
    """The turns that the merge appends."""
    if found.mode != "summary":
        return _graft(store, at, found.rows, found.key, branch.state.agent_id)
    said = summary.text(store, found.sides, found.rows)
    if wish.retell is not None:
        said = wish.retell(said)
    there = canonical.seconds(store.state(found.sides.tip).updated) or 0
    at = replace(at, latest=max(at.latest, round(there * 1000)))
    prompt = f"{summary.heading(found.sides, found.rows)}\n\n{said}"
    return [grafting.told(at, found.key, (prompt, summary.reply(found.rows)), _common(branch.state))]


def _graft(store: Store, at: Seam, rows: Sequence[Row], key: Callable[[str], str], agent_id: str) -> list[Turn]:
    return grafting.grafted(at, [store.lines(row.commit, row.turn).body for row in rows], key, agent_id)


def _common(state: Session) -> dict[str, str]:
    """What the client writes in every line."""
    said = {
        "cwd": state.project, "sessionId": state.agent_id, "version": state.agent_version, "gitBranch": state.git_branch
    }  # fmt: skip
    return {key: value for key, value in said.items() if value}


def _commit(store: Store, branch: Branch, found: Plan, authored: Session, head: str) -> tuple[Session, str]:
    """The commit with two parents, with what was decided about the states, and the state."""
    before, top = branch.state, store.state(head)
    state = replace(
        top,
        description=authored.description,
        labels=authored.labels,
        stage=authored.stage,
        confidence=authored.confidence,
        state=before.state,
        ended=max(top.updated, before.ended) if before.ended else "",
    )
    origin = _range(found)
    trailers = (("Session", branch.name), ("Event", "merge"), ("Origin", origin))
    time = max(store.commit(head).time, store.commit(found.sides.tip).time)
    message = Message(f"merge: {_told(found)}", trailers)
    return state, store.write_commit(head, found.pad.changes(store), state, message, [head, found.sides.tip], time)


def _told(found: Plan) -> str:
    """`a summary of 2 turns of e90c55aa`: what was brought back."""
    what = f"{'a summary of ' if found.mode == 'summary' else ''}{words.counted(len(found.rows), 'turn')}"
    return f"{what if found.rows else 'what was brought back'} of {found.sides.theirs.name}"


def _range(found: Plan) -> str:
    """The turns that were brought, as an address."""
    numbers = [row.turn for row in found.rows]
    if not numbers:
        return found.sides.theirs.name
    last = f"-{numbers[-1]}" if numbers[-1] != numbers[0] else ""
    return f"{found.sides.theirs.name}@{numbers[0]}{last}"


def _turn(index: Index, one: Target) -> Row:
    name = one.branch.name
    if one.turn is None or one.turn == 0 or one.cell:
        raise UsageError(f"{name[:8]} names no whole turn", f"Name one: {name[:8]}@{one.turn or one.state.turns}.")
    row = index.turn(name, one.turn)
    if row is None:
        raise NotFoundError(f"{name} has no turn {one.turn} in the store", "sessgit restore --verify checks it.")
    return row


def _check_picked(index: Index, ours: Branch, rows: Sequence[Row]) -> None:
    """Raises UsageError where a turn is named twice or stands in ours already."""
    known = {row.prompt for row in index.turns(ours.name)} | {_origin(row) for row in index.turns(ours.name)}
    seen = set[str]()
    for row in rows:
        address = f"{row.branch}@{row.turn}"
        if row.prompt in seen:
            raise UsageError(f"turn {row.turn} of {row.branch[:8]} is named twice", "Name each turn once.")
        if row.prompt in known or address in known:
            raise UsageError(
                f"turn {row.turn} of {row.branch[:8]} is in {ours.name[:8]} already",
                f"sessgit diff {ours.name[:8]} {row.branch[:8]} shows what is not.",
            )
        seen.add(row.prompt)


def _origin(row: Row) -> str:
    return row.message.get("Origin")


def _secrets(turns: Sequence[Turn]) -> int:
    return sum(sidefiles.secrets(line) for turn in turns for line in turn.lines)
