"""What a remote holds brought here: one operation, which an undo takes back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sessgit import agents
from sessgit.branch import delete
from sessgit.errors import DamageError, MovedError, SessgitError, StoreError
from sessgit.history import client_files
from sessgit.model import humanize
from sessgit.model.humanize import format_count
from sessgit.record.tip_delivery import BranchChange, count_lacking, deliver_branches
from sessgit.store import journal, layout, operations, refs
from sessgit.store.files import paths
from sessgit.store.index import Index
from sessgit.store.journal import Operation
from sessgit.store.recorder import cursor as cursors
from sessgit.store.remote import remotes
from sessgit.store.remote.remotes import Connection
from sessgit.store.store import Store
from sessgit.store.transaction import Move
from sessgit.sync import agreement as agreements
from sessgit.sync import archive_state, branches, fetch, validation
from sessgit.sync.agreement import Agreement
from sessgit.sync.branches import SessionRefs
from sessgit.sync.outcome import PullResult, SkippedItem
from sessgit.sync.purged_values import PurgedHistory

_TRIES = 5
_UNDO_HINT = "To restore it: `sessgit undo`, until `sessgit gc --prune`. `sessgit ops` lists all operations."

_TAG_HINT = "A push of its conversation removes the tag there."
_STAYS_HINT = "It was kept. To delete it here too: `sessgit delete {}`"


@dataclass(frozen=True, slots=True)
class _RemoteState:
    """What the remote holds, as far as it was asked for: the sessions and the tags; and those sessions that were named
    and were deleted here; the sessions that it had when it was last seen; and the tombstones of those that are deleted
    on both sides, by session."""

    sessions: Mapping[str, SessionRefs]
    tags: Mapping[str, str]
    deleted: tuple[str, ...]
    known: frozenset[str]
    settled: Mapping[str, str]
    old: tuple[str, ...]
    """Those that are there as they were here before a purge."""
    refused: Mapping[str, str]
    """Those of which git took nothing, and why."""


@dataclass(frozen=True, slots=True)
class _PullSides:
    """Both sides as they are now, and what is known of them from before."""

    store: Store
    own: Mapping[str, str]
    here: Mapping[str, SessionRefs]
    there: _RemoteState
    before: Agreement
    purged: PurgedHistory
    asked: Collection[str] | None
    """The sessions that are asked for; None for all."""
    agents: frozenset[str]
    """The agent's names of those that a client here has open."""


@dataclass
class _PullPlan:
    moves: list[Move] = field(default_factory=list)
    changes: list[BranchChange] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    left: list[SkippedItem] = field(default_factory=list)
    archived: dict[str, bool] = field(default_factory=dict)
    stones: dict[str, str] = field(default_factory=dict)
    agreed_tags: dict[str, str] = field(default_factory=dict)
    going: dict[str, str] = field(default_factory=dict)
    """The sessions that are deleted, each with the remote's tombstone."""


def pull_sessions(  # noqa: PLR0913 - what is brought, from where to where
    store: Store,
    index: Index,
    link: Connection,
    config: Path,
    now: float,
    sessions: Collection[str] | None = None,
    *,
    dry_run: bool = False,
) -> PullResult:
    """Brings what the remote holds of these sessions, or of all, and what was archived and deleted there.

    No head goes back, and nothing goes that was not deleted there as it is here. Raises NewerStoreError, with nothing
    moved, where a later sessgit has written something of it.
    """
    store.repo.begin_write()
    purged = PurgedHistory(store)
    try:
        there = _fetch_remote(store, link, sessions, purged)
        before = agreements.load_agreement(store.beside, link.remote.url)
        for _ in range(_TRIES):
            store.repo.begin_write()
            sides = _read_sides(store, there, before, purged, sessions, config)
            plan = _plan_pull(sides, index, config, now)
            plan.left += _unserved_refs(link)
            told = PullResult(link.remote.name, tuple(plan.changes), tuple(plan.tags), tuple(plan.left))
            if dry_run:
                return told
            try:
                operation = _apply_plan(store, index, link, plan, now) if plan.moves else None
            except MovedError:
                continue
            after = before.updated_with(plan.archived, plan.stones, plan.agreed_tags)
            agreements.save_agreement(store.beside, link.remote.url, after)
            behind = tuple(_sessions_with_stale_files(store, index, config, plan.changes))
            return PullResult(told.remote, told.changes, told.tags, told.left, operation, behind)
    finally:
        store.repo.release()
        purged.drop(link.remote.name)
    raise StoreError("the branches kept changing while they were pulled", "Try again.")


def _apply_plan(store: Store, index: Index, link: Connection, plan: _PullPlan, now: float) -> Operation:
    sessions = {change.session for change in plan.changes}
    what = format_count(len(sessions), "conversation") if sessions else format_count(len(plan.tags), "tag")
    done = operations.perform_operation(store, "pull", f"{what} from {link.remote.name}", plan.moves, now)
    if plan.going:
        delete.wait_for_recorders(store, list(plan.going))
    index.sync()
    return done


def _sessions_with_stale_files(
    store: Store, index: Index, config: Path, changes: Sequence[BranchChange]
) -> Iterator[str]:
    """The sessions whose heads got turns and that have a file here, which lacks them."""
    came = {change.session for change in changes if change.turns and _head_got_turns(change)}
    for branch in index.branches_named(sorted(came)):
        path = None if branch.archived else client_files.transcript_place(config, branch.state, store.beside)
        if path is not None and paths.is_there(path):
            yield branch.name


def _head_got_turns(change: BranchChange) -> bool:
    return change.what == "merged" or (change.what in ("forward", "joined") and change.branch == change.session)


# What is there


def _fetch_remote(
    store: Store, link: Connection, sessions: Collection[str] | None, purged: PurgedHistory
) -> _RemoteState:
    """What the remote holds, and brings here what of it was not here when it was last seen."""
    held = remotes.remote_refs(store.path, link)
    seen = remotes.tracked_refs(store.path, link.remote.name)
    here = branches.refs_by_session(refs.read_all(store.path))
    old = {
        session
        for session, one in branches.refs_by_session(held).items()
        if purged.is_old(one) and not here.get(session, SessionRefs(session)).tombstone
    }
    wanted = {
        ref: oid
        for ref, oid in held.items()
        if _is_wanted(ref, here, sessions) and layout.session_of_ref(ref) not in old
    }
    gone = [ref for ref in seen.keys() - held.keys() if _is_wanted(ref, here, sessions)]
    known = {session for session, one in branches.refs_by_session(seen).items() if one.branches}
    news = [*(ref for ref, oid in wanted.items() if seen.get(ref) != oid), *gone]
    refused = dict[str, str]()
    if news:
        refused = fetch.fetch_refs(store, link, news)
        seen = remotes.tracked_refs(store.path, link.remote.name)
        wanted |= {ref: seen[ref] for ref in news if ref in seen}  # it may have moved meanwhile
        wanted = {ref: oid for ref, oid in wanted.items() if layout.session_of_ref(ref) not in refused}
    tags = {ref.removeprefix(layout.TAGS): oid for ref, oid in held.items() if ref.startswith(layout.TAGS)}
    there = branches.refs_by_session(held)
    deleted = [one for one in sorted(sessions or ()) if one in there and one in here and here[one].tombstone]
    both = {one: own.tombstone for one, own in here.items() if own.tombstone and one in there and there[one].tombstone}
    settled = {one: stone for one, stone in both.items() if not there[one].branches}
    return _RemoteState(
        branches.refs_by_session(wanted), tags, tuple(deleted), frozenset(known), settled, tuple(sorted(old)), refused
    )


def _unserved_refs(link: Connection) -> list[SkippedItem]:
    """The refs of the remote that were skipped since git does not serve them."""
    hint = f"Delete it in {link.remote.shown}: its line in packed-refs, or its file."
    return [SkippedItem(ref, "git does not serve a ref with that name", hint) for ref in sorted(link.unserved)]


def _is_wanted(ref: str, here: Mapping[str, SessionRefs], sessions: Collection[str] | None) -> bool:
    """Whether a ref of the remote is looked at: nothing of a session comes that was deleted here."""
    space, name = layout.split_ref(ref)
    session = layout.session_of(name)
    if sessions is not None and session not in sessions:
        return False
    own = here.get(session, SessionRefs(session))
    if space == layout.DELETED:
        return bool(own.head)
    return space in (layout.HEADS, layout.ARCHIVE) and not own.tombstone


# What becomes of it


def _read_sides(
    store: Store,
    there: _RemoteState,
    before: Agreement,
    purged: PurgedHistory,
    asked: Collection[str] | None,
    config: Path,
) -> _PullSides:
    own = refs.read_all(store.path)
    live = agents.at(config).home.open_sessions(config)
    return _PullSides(store, own, branches.refs_by_session(own), there, before, purged, asked, live)


def _plan_pull(sides: _PullSides, index: Index, config: Path, now: float) -> _PullPlan:
    there = sides.there
    plan = _PullPlan(
        left=[SkippedItem(session, "it was deleted here", _UNDO_HINT) for session in there.deleted],
        stones=dict(there.settled),
    )
    old = [session for session in there.old if sides.asked is None or session in sides.asked]
    plan.left += [sides.purged.left(session) for session in old]
    plan.left += [SkippedItem(session, why, validation.REMOTE_HINT) for session, why in sorted(there.refused.items())]
    index.sync()
    tips = {tip for held in sides.here.values() for tip in held.tips}
    for session, theirs in sorted(there.sessions.items()):
        ours = sides.here.get(session, SessionRefs(session))
        if out := sides.purged.keeps_out(session, theirs.tips, tips):
            plan.left.append(out)
        elif theirs.tombstone and ours.head and index.branch(session) is not None:
            _plan_deletion(sides, plan, ours, theirs.tombstone)
        elif theirs.head:
            _plan_session(sides, plan, ours, theirs)
        elif theirs.branches:
            plan.left.append(
                SkippedItem(
                    session, "the remote has side branches of it, but not its head", "Push it again from there."
                )
            )
    if plan.going:
        doomed = delete.plan_deletion(index, list(plan.going), config)
        plan.moves += delete.deletion_moves(sides.store, doomed, now, plan.going)
    _plan_tags(sides, plan)
    return plan


def _plan_session(sides: _PullSides, plan: _PullPlan, ours: SessionRefs, theirs: SessionRefs) -> None:
    store, session = sides.store, ours.session
    own = ours.branches
    if own == theirs.branches and ours.archived == theirs.archived and not theirs.shadowed:
        plan.archived[session] = ours.archived
        return
    good, left = validation.readable_branches(store, session, {**theirs.branches, **theirs.shadowed}, set(own.values()))
    plan.left += left
    if session not in good:
        return
    try:
        filed = cursors.load_cursor(store.beside, session) is not None
        done = deliver_branches(store, session, good, own, filed=filed)
        agreed = sides.before.archived.get(session)
        archived = archive_state.is_archived_after_sync(store, ours, theirs, agreed) if ours.head else theirs.archived
    except (DamageError, StoreError) as error:
        mend = f"Search for it: `sessgit repair {session}`"
        plan.left.append(SkippedItem(session, f"cannot read it here: {error}", mend))
        return
    if archived and not ours.archived and ours.head and _is_open(sides, ours):
        plan.left.append(
            SkippedItem(session, "it was archived there, and is open in a client here", "Close it, and pull again.")
        )
        archived = False
    plan.moves += branches.planned_moves(ours, done.branches, archived=archived)
    plan.changes += done.changes
    if archived == theirs.archived:
        plan.archived[session] = archived
    if ours.head and archived != ours.archived:
        plan.changes.append(BranchChange(session, "archived" if archived else "brought back", 0, session))


def _plan_deletion(sides: _PullSides, plan: _PullPlan, ours: SessionRefs, stone: str) -> None:
    store, session = sides.store, ours.session
    named = validation.deleted_tips(store, session, stone)
    if named is None or sides.before.stones.get(session) == stone:
        return
    tips = frozenset(map(sides.purged.now, named))
    if session not in sides.before.archived and session not in sides.there.known:
        left = SkippedItem(session, "it is deleted there, and was never pulled from there", _STAYS_HINT.format(session))
        plan.left.append(left)
        return
    if _is_open(sides, ours):
        left = SkippedItem(session, "it was deleted there, and is open in a client here", "Close it, and pull again.")
        plan.left.append(left)
        return
    plan.stones[session] = stone
    kept = [tip for tip in ours.tips if not validation.was_deleted(store, tip, tips)]
    if kept:
        # Where what was deleted is not all here, nobody can tell how much of it was the same.
        turns = count_lacking(store, kept, tips) if all(map(store.repo.has, tips)) else 0
        plan.changes.append(BranchChange(session, "kept", turns, session))
    else:
        plan.going[session] = stone
        plan.changes.append(BranchChange(session, "deleted", _count_turns(store, ours.head), session))


def _is_open(sides: _PullSides, ours: SessionRefs) -> bool:
    try:
        return bool(sides.agents) and sides.store.state(ours.head).agent_id in sides.agents
    except SessgitError:
        return True


def _count_turns(store: Store, tip: str) -> int:
    try:
        return store.state(tip).turns
    except SessgitError:
        return 0


def _plan_tags(sides: _PullSides, plan: _PullPlan) -> None:
    """Makes the tags of the remote that lead to turns here; one that was taken away here stays away."""
    store, before = sides.store, sides.before
    after = branches.refs_by_session(branches.refs_after(sides.own, plan.moves))
    moved = {move.ref for move in plan.moves}
    for name, oid in sorted(sides.there.tags.items()):
        ref, key = layout.TAGS + name, agreements.tag_key(name)
        here = sides.own.get(ref)
        commit = store.repo.peel(oid) if validation.is_valid_tag(name) and store.repo.has(oid) else None
        if commit is None or ref in moved:
            continue
        session = store.message(commit).get("Session")
        if sides.asked is not None and session not in sides.asked:
            continue
        if (clean := sides.purged.name(name)) != name:
            plan.left.append(
                SkippedItem(clean, "the remote has a tag whose name contains a value that was purged here", _TAG_HINT)
            )
        elif here is not None and store.repo.peel(here) == commit:
            plan.agreed_tags[key] = commit
        elif here is not None:
            plan.left.append(
                SkippedItem(
                    name,
                    "the tag is at another turn here",
                    f"To accept the remote's tag: `sessgit tag -d {humanize.quote_for_shell(name)}`",
                )
            )
        elif (before.tags.get(key) != commit or _was_undone(store, ref)) and _is_reachable(
            store, commit, after.get(session)
        ):
            plan.moves.append(Move(ref, None, oid))
            plan.tags.append(name)
            plan.agreed_tags[key] = commit


def _was_undone(store: Store, ref: str) -> bool:
    """Whether a tag went with an undo, as that of a pull: nobody has taken it away then."""
    moved = (one for one in reversed(journal.read(store.beside)) if any(move.ref == ref for move in one.moves))
    last = next(moved, None)
    return last is not None and bool(last.undoes)


def _is_reachable(store: Store, commit: str, held: SessionRefs | None) -> bool:
    return held is not None and any(store.repo.is_ancestor(commit, tip) for tip in held.branches.values())
