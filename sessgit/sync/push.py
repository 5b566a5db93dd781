"""What is here brought to a remote. Nothing here moves but what is remembered of the remote."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sessgit.branch import tag
from sessgit.errors import ConflictError, DamageError, MovedError, RefusedError, StoreError
from sessgit.model.humanize import format_count
from sessgit.record.tip_delivery import BranchChange, deliver_branches
from sessgit.store import layout, refs
from sessgit.store.index import Index
from sessgit.store.remote import remotes
from sessgit.store.remote.remotes import Connection
from sessgit.store.store import Store
from sessgit.store.transaction import Move
from sessgit.sync import agreement as agreements
from sessgit.sync import archive_state, branches, fetch, validation
from sessgit.sync.agreement import Agreement
from sessgit.sync.branches import SessionRefs
from sessgit.sync.outcome import PushResult, SkippedItem
from sessgit.sync.purged_values import PurgedHistory

_TRIES = 5
_TAG_NAME_REASON = (
    "a tag of the remote contains a value that was purged here, and the remote does not allow deleting tags"
)
_MOST_NAMED = 5
"""So many sessions are named where a push is refused."""


@dataclass
class _PushPart:
    """Moves that the remote makes all or none, and what they do."""

    moves: list[Move] = field(default_factory=list)
    changes: list[BranchChange] = field(default_factory=list)
    archived: dict[str, bool] = field(default_factory=dict)
    stones: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    """With `archived` and `stones` what both sides agree on then."""
    refused: list[SkippedItem] = field(default_factory=list)
    """What is said where the remote takes none of it, besides what is said of the sessions."""

    @property
    def sessions(self) -> list[str]:
        return list(dict.fromkeys(change.session for change in self.changes))


@dataclass
class _PushPlan:
    """What goes forward or is new; heads that go back, each with what it leaves behind; and what is taken away."""

    onward: _PushPart = field(default_factory=_PushPart)
    back: _PushPart = field(default_factory=_PushPart)
    away: _PushPart = field(default_factory=_PushPart)
    tags: list[str] = field(default_factory=list)
    left: list[SkippedItem] = field(default_factory=list)

    @property
    def tips(self) -> list[str]:
        """What the remote shall hold of sessions."""
        parts = (self.onward, self.back, self.away)
        moved = [move for part in parts for move in part.moves if not move.ref.startswith(layout.DELETED)]
        return list(dict.fromkeys(move.new for move in moved if move.new is not None))


@dataclass(frozen=True, slots=True)
class _PushSelection:
    sessions: tuple[str, ...]
    named: frozenset[str]
    deletions: bool


@dataclass(frozen=True, slots=True)
class _PushSides:
    """Both sides as they are now, by ref and by session, and what is known of them from before."""

    store: Store
    own: Mapping[str, str]
    held: Mapping[str, str]
    here: Mapping[str, SessionRefs]
    there: Mapping[str, SessionRefs]
    before: Agreement
    purged: PurgedHistory

    def of(self, session: str) -> tuple[SessionRefs, SessionRefs]:
        """A session here and there; of a side that has nothing of it, that."""
        return self.here.get(session, SessionRefs(session)), self.there.get(session, SessionRefs(session))


def push_sessions(  # noqa: PLR0913 - what is sent, from where to where
    store: Store,
    index: Index,
    link: Connection,
    sessions: Collection[str],
    now: float,
    *,
    named: Collection[str] = (),
    deletions: bool = True,
    unredacted: bool = False,
    dry_run: bool = False,
) -> PushResult:
    """Sends these sessions, whether they are archived, the tags at their turns, and what was deleted here.

    `named` are those that a person named: one that was deleted elsewhere is brought back there. Raises ConflictError,
    with nothing sent, where it would send what was not redacted, unless that is wanted.
    """
    wanted = _PushSelection(tuple(dict.fromkeys(sessions)), frozenset(named), deletions)
    sent, left, rewinds = list[BranchChange](), list[SkippedItem](), True
    carried, tags = tuple[str, ...](), tuple[str, ...]()
    store.repo.begin_write()  # who is just purging is waited for: what goes is known before anything is fetched
    index.sync()
    purged = PurgedHistory(store)
    try:
        for _ in range(_TRIES):
            store.repo.begin_write()
            held = _fetch_remote(store, link, wanted, purged)
            sides = _read_sides(store, held, agreements.load_agreement(store.beside, link.remote.url), purged)
            plan = _plan_push(sides, index, wanted, rewinds=rewinds)
            carried = _carried_sessions(store, plan, held, wanted, unredacted=unredacted) or carried
            tags = tuple(sorted({*tags, *plan.tags}))
            if dry_run:
                every = [*plan.onward.changes, *plan.back.changes, *plan.away.changes]
                return PushResult(link.remote.name, tuple(every), tags, tuple(plan.left), carried)
            try:
                _send_part(store, link, plan.onward, sent)
                if not _send_unless_forbidden(store, link, plan.back, sent):
                    rewinds = False
                    continue
                if not _send_unless_forbidden(store, link, plan.away, sent):
                    left = [*map(_refused_item, plan.away.sessions), *plan.away.refused]
            except MovedError:
                continue
            return PushResult(link.remote.name, tuple(sent), tags, (*plan.left, *left), carried)
    finally:
        store.repo.release()
        purged.drop(link.remote.name)
    raise StoreError(f"{link.remote.name} kept changing during the push", "Try again.")


def _send_part(store: Store, link: Connection, part: _PushPart, sent: list[BranchChange]) -> None:
    if part.moves:
        store.repo.flush()  # git reads what was joined here
        remotes.push_refs(store.path, link, part.moves)
        sent += part.changes
    before = agreements.load_agreement(store.beside, link.remote.url)
    agreements.save_agreement(store.beside, link.remote.url, before.updated_with(part.archived, part.stones, part.tags))


def _send_unless_forbidden(store: Store, link: Connection, part: _PushPart, sent: list[BranchChange]) -> bool:
    """Sends what a remote may forbid; returns whether it did not."""
    try:
        _send_part(store, link, part, sent)
    except RefusedError:
        return False
    return True


def _refused_item(session: str) -> SkippedItem:
    return SkippedItem(
        session,
        "the remote does not allow deleting branches",
        "It is archived or deleted only here. The remote has receive.denyDeletes set.",
    )


def _fetch_remote(store: Store, link: Connection, wanted: _PushSelection, purged: PurgedHistory) -> dict[str, str]:
    """The refs of the remote; of the sessions that are sent what was not here was brought."""
    held = remotes.remote_refs(store.path, link)
    sessions = set(wanted.sessions)
    unknown = [
        ref
        for ref, oid in held.items()
        if (parts := layout.split_ref(ref))[0] in (layout.HEADS, layout.ARCHIVE)
        and layout.session_of(parts[1]) in sessions
        and not store.repo.has(oid)
        and oid not in purged.commits
    ]
    if unknown:
        fetch.fetch_refs(store, link, unknown)
        seen = remotes.tracked_refs(store.path, link.remote.name)
        held |= {ref: seen[ref] for ref in unknown if ref in seen}
    return held


# What becomes of it


def _read_sides(store: Store, held: Mapping[str, str], before: Agreement, purged: PurgedHistory) -> _PushSides:
    own = refs.read_all(store.path)
    return _PushSides(store, own, held, branches.refs_by_session(own), branches.refs_by_session(held), before, purged)


def _plan_push(sides: _PushSides, index: Index, wanted: _PushSelection, *, rewinds: bool) -> _PushPlan:
    plan = _PushPlan()
    tips = {tip for one in sides.here.values() for tip in one.tips}
    for session in wanted.sessions:
        ours, theirs = sides.of(session)
        if not ours.head:
            continue
        if out := sides.purged.keeps_out(session, theirs.tips, tips):
            plan.left.append(out)
            continue
        if theirs.tombstone and session not in wanted.named:
            plan.left.append(
                SkippedItem(session, "it is deleted there", "To restore it there, push it by its address.")
            )
            continue
        try:
            _plan_session(sides, plan, session, rewinds=rewinds)
        except (DamageError, StoreError) as error:
            mend = f"Search for it: `sessgit repair {session}`"
            plan.left.append(SkippedItem(session, f"cannot read it: {error}", mend))
    if wanted.deletions:
        for session in sorted(sides.here):
            ours, theirs = sides.of(session)
            if ours.tombstone and theirs.branches and sides.before.stones.get(session) == ours.tombstone:
                plan.left.append(_returned_item(session))
            elif ours.tombstone and theirs.branches:
                _plan_deletion(sides, plan, session)
            elif ours.tombstone and theirs.tombstone:
                plan.onward.stones[session] = ours.tombstone
    _plan_tags(
        sides, index, plan, {session: sides.here[session] for session in wanted.sessions if session in sides.here}
    )
    return plan


def _plan_session(sides: _PushSides, plan: _PushPlan, session: str, *, rewinds: bool) -> None:
    store, purged, (ours, theirs) = sides.store, sides.purged, sides.of(session)
    own = ours.branches
    shadows = _purged_shadows(store, purged, theirs)
    plan.onward.moves += shadows
    if own == theirs.branches and ours.archived == theirs.archived:
        plan.onward.archived[session] = ours.archived
        plan.onward.changes += [BranchChange(session, "purged", 0, session)] if shadows else []
        return
    # A branch that is there as it was here before a purge is looked at, and goes on, as it is here now.
    now = {branch: purged.now(tip) for branch, tip in theirs.branches.items()}
    good, left = validation.readable_branches(store, session, now, set(own.values()))
    plan.left += left
    if theirs.head and session not in good:
        return
    done = deliver_branches(store, session, own, good, taken=theirs.branches, rewinds=rewinds)
    part = plan.back if done.back else plan.onward
    place = theirs.archived if theirs.head else ours.archived
    agreed = sides.before.archived.get(session)
    archived = archive_state.is_archived_after_sync(store, ours, theirs, agreed) if theirs.head else ours.archived
    beside = [purged.now(tip) for tip in theirs.shadowed.values()]
    if (archived or place) and not all(validation.was_deleted(store, tip, done.branches.values()) for tip in beside):
        plan.left.append(
            SkippedItem(session, "it exists twice there, live and archived", "Pull it first, to have both here.")
        )
        return
    moved = branches.planned_moves(theirs, done.branches, archived=place)
    part.moves += moved
    # A turn more is told as such; what is said of it is the least of what went there after a purge.
    told = [one for one in done.changes if now == theirs.branches or one.what != "forward" or one.turns]
    part.changes += told
    if now != theirs.branches and not told:
        part.changes.append(BranchChange(session, "purged", 0, session))
    if archived != place:
        plan.away.moves += branches.planned_moves(theirs.after([*moved, *shadows]), {}, archived=archived)
        plan.away.changes.append(BranchChange(session, "archived" if archived else "brought back", 0, session))
    if theirs.tombstone:
        plan.away.moves.append(Move(layout.tombstone_ref(session), theirs.tombstone, None))
        plan.away.stones[session] = theirs.tombstone  # looked at: it deletes nothing here if somebody sends it again
    if archived == ours.archived:
        (plan.away if archived != place else part).archived[session] = archived


def _purged_shadows(store: Store, purged: PurgedHistory, theirs: SessionRefs) -> list[Move]:
    """What is archived there beside a live branch does not count, and would keep what was purged here: it goes on to
    what stands for it now."""
    moves = list[Move]()
    for ref, tip in () if theirs.archived else theirs.refs.items():
        space, name = layout.split_ref(ref)
        now = purged.now(tip)
        if space == layout.ARCHIVE and layout.head_ref(name) in theirs.refs and now != tip and store.repo.has(now):
            moves.append(Move(ref, tip, now))
    return moves


def _returned_item(session: str) -> SkippedItem:
    return SkippedItem(
        session,
        "it was deleted here and there, and restored there",
        f"Restore it here too with `sessgit undo`, or delete {session} there.",
    )


def _plan_deletion(sides: _PushSides, plan: _PushPlan, session: str) -> None:
    """Deletes a session that was deleted here, if it has nothing there that it had not here."""
    ours, theirs = sides.of(session)
    tips = validation.deleted_tips(sides.store, session, ours.tombstone) or frozenset()
    now = sides.purged.now
    if not all(validation.was_deleted(sides.store, now(tip), tips) for tip in theirs.tips):
        plan.left.append(
            SkippedItem(
                session,
                "it was deleted here, but has turns there that were not here",
                f"Restore it here with `sessgit undo`, then pull; or delete {session} there.",
            )
        )
        return
    stone = layout.tombstone_ref(session)
    plan.away.moves.append(Move(stone, theirs.refs.get(stone), ours.tombstone))
    plan.away.moves += [Move(ref, oid, None) for ref, oid in theirs.refs.items() if ref != stone]
    gone = {ref: oid for ref, oid in sides.held.items() if ref.startswith(layout.TAGS) and ref not in sides.own}
    plan.away.moves += [Move(ref, oid, None) for ref, oid in gone.items() if now(oid) in tips]
    plan.away.changes.append(BranchChange(session, "deleted", 0, session))
    plan.away.stones[session] = ours.tombstone


def _plan_tags(sides: _PushSides, index: Index, plan: _PushPlan, sent: Mapping[str, SessionRefs]) -> None:
    """The tags at turns of what is sent; one that stands elsewhere there is left."""
    store = sides.store
    passed_over = {left.what for left in plan.left}
    for one in tag.list_tags(index):
        ref, session = layout.TAGS + one.name, layout.session_of(one.branch)
        oid, there = sides.own.get(ref), sides.held.get(ref)
        commit = store.repo.peel(oid) if oid else None
        if oid is None or commit is None or session not in sent:
            continue
        if not any(store.repo.is_ancestor(commit, tip) for tip in sent[session].branches.values()):
            continue
        if there in (oid, commit):
            plan.onward.tags[agreements.tag_key(one.name)] = commit
        elif there is not None and sides.purged.commits.get(there) == commit:
            plan.onward.moves.append(Move(ref, there, oid))
        elif there is not None:
            plan.left.append(
                SkippedItem(one.name, "the tag is at another turn there", "A push does not move tags on a remote.")
            )
        elif session not in passed_over:
            plan.onward.moves.append(Move(ref, None, oid))
            plan.tags.append(one.name)
            plan.onward.tags[agreements.tag_key(one.name)] = commit
    _plan_purged_tags(sides, plan, sent)


def _plan_purged_tags(sides: _PushSides, plan: _PushPlan, sent: Mapping[str, SessionRefs]) -> None:
    """Of what is sent no tag there, whoever made it, leads to what was purged here, or is called by it: it would keep
    all of it there."""
    store, purged, moved = sides.store, sides.purged, {move.ref for move in plan.onward.moves}
    for ref, oid in () if purged.is_nothing else sides.held.items():
        if not ref.startswith(layout.TAGS) or ref in moved:
            continue
        name, commit = ref.removeprefix(layout.TAGS), purged.now(oid)
        clean = purged.name(name)
        if (clean, commit) == (name, oid) or not store.repo.has(commit):
            continue
        if store.message(commit).get("Session") not in sent:
            continue
        if commit != oid:
            plan.onward.moves.append(Move(ref, oid, commit))
        if clean != name:
            plan.away.moves.append(Move(ref, commit, None))
            plan.away.refused.append(
                SkippedItem(clean, _TAG_NAME_REASON, "Delete the tag there: its name contains the value.")
            )


# What goes along


def _carried_sessions(
    store: Store, plan: _PushPlan, held: Mapping[str, str], wanted: _PushSelection, *, unredacted: bool
) -> tuple[str, ...]:
    """The sessions whose turns go along since a fork or a merge that is sent holds them.

    Raises ConflictError where something that the remote has not got yet was recorded without redaction.
    """
    tips = plan.tips
    if not tips:
        return ()
    known = {commit for oid in set(held.values()) if (commit := store.repo.peel(oid))}
    new = list(store.repo.since([commit for tip in tips if (commit := store.repo.peel(tip))], known))
    of = {commit.id: store.message(commit.id).get("Session") for commit in new}
    tops = {*tips, *(p for c in new for n, p in enumerate(c.parents) if n or of.get(p) != of[c.id])} & of.keys()
    if not unredacted:
        bare = sorted({of[top] for top in tops if not store.state(top).rules.get("redact")})
        if bare:
            more = f" and {len(bare) - _MOST_NAMED} more" if len(bare) > _MOST_NAMED else ""
            raise ConflictError(
                f"{format_count(len(bare), 'conversation')} would leave this machine without redaction: "
                f"{', '.join(name[:8] for name in bare[:_MOST_NAMED])}{more}",
                "Nothing was sent. To send them unredacted, use `--unredacted`.",
            )
    return tuple(sorted(set(of.values()) - {*wanted.sessions, ""}))
