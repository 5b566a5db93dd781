"""What a pull and a push share: what both sides agreed on, the refs of a session on each, what moves, what is reported,
and what was purged and must not come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sessgit.errors import DamageError, NewerStoreError, RemoteDamageError, SessgitError
from sessgit.model import ids, stored_fields
from sessgit.model.frozen import frozen
from sessgit.record.tip_delivery import BranchChange, Relation, count_lacking, turn_folders
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout, locks, maintenance, object_scan, operations, refs, remotes, secret_filter
from sessgit.store.context import Context
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move, Operation
from sessgit.store.private_files import write_private
from sessgit.store.remotes import Connection
from sessgit.store.store import Store

# What a store and a remote last agreed on: it tells which side has changed since
#
# The file is a cache: without it, a session that is live on one side is live, and a deletion is examined again.


@frozen
class Agreement:
    """The file state/remote-<16>.json: what store and remote last agreed on. Without it, nothing is agreed on."""

    archived: dict[str, bool] = field(default_factory=dict)
    """By session whether it was archived on both sides."""
    stones: dict[str, str] = field(default_factory=dict)
    """By session the tombstone that was considered."""
    tags: dict[str, str] = field(default_factory=dict)
    """By the first 16 hex digits of the SHA-256 of a tag's name its commit."""
    version: Literal[1] = 1


def tag_key(name: str) -> str:
    """Return the key of a tag: its name is stored nowhere but in the refs."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_agreement(paths: StorePaths, url: str) -> Agreement:
    """Return what was agreed with the remote at a URL; nothing if that cannot be read."""
    try:
        return stored_fields.load(Agreement, json.loads(paths.agreement_file(url).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return Agreement()


def add_agreement(paths: StorePaths, url: str, agreed: Agreement) -> None:
    """Add to what was agreed with the remote at a URL."""
    before = load_agreement(paths, url)
    after = Agreement(before.archived | agreed.archived, before.stones | agreed.stones, before.tags | agreed.tags)
    path = paths.agreement_file(url)
    if after != before or not path.exists():
        write_private(path, stored_fields.dumps(after))


# The refs of a session

_REF_SPACES = (*layout.BRANCH_SPACES, layout.DELETED)
REMOTE_HINT = "It was not changed on the remote. Ask the person who pushed it."


@frozen
class SessionRefs:
    """What one side has of a session, by the full names of the refs."""

    session: str
    refs: Mapping[str, str] = field(default_factory=dict)

    @property
    def branches(self) -> dict[str, str]:
        """The tips of its branches; of one that is both live and archived, the live one."""
        tips: dict[str, str] = {}
        for space in (layout.ARCHIVE, layout.HEADS):
            tips |= {ref.removeprefix(space): tip for ref, tip in self.refs.items() if ref.startswith(space)}
        return tips

    @property
    def shadowed(self) -> dict[str, str]:
        """The tips of archived branches that also exist live with another tip, by names that no branch has."""
        archived = {(tip, self.refs.get(layout.archive_ref(name), tip)) for name, tip in self.branches.items()}
        tips = sorted({other for tip, other in archived if other != tip})
        return {f"{self.session}.archived-{tip[:8]}": tip for tip in tips}

    @property
    def tips(self) -> list[str]:
        """The tips of all its branches, live and archived."""
        return sorted({tip for ref, tip in self.refs.items() if ref.startswith(layout.BRANCH_SPACES)})

    @property
    def head(self) -> str:
        """The tip of its head, or ``""``."""
        return self.refs.get(layout.head_ref(self.session)) or self.refs.get(layout.archive_ref(self.session)) or ""

    @property
    def archived(self) -> bool:
        return layout.head_ref(self.session) not in self.refs and layout.archive_ref(self.session) in self.refs

    @property
    def tombstone(self) -> str:
        """The tombstone of a session without a head, or ``""``."""
        return "" if self.head else self.refs.get(layout.tombstone_ref(self.session), "")

    def after(self, moves: Iterable[Move]) -> SessionRefs:
        """Return the refs after moves."""
        return SessionRefs(self.session, refs_after(self.refs, moves))


def refs_after(refs: Mapping[str, str], moves: Iterable[Move]) -> dict[str, str]:
    """Return refs after moves."""
    moved = {move.ref: move.new for move in moves}
    return {ref: tip for ref, tip in {**refs, **moved}.items() if tip is not None}


class Sessions(dict[str, SessionRefs]):
    """What a side has of each session; nothing of one that it does not have."""

    def __missing__(self, session: str) -> SessionRefs:
        return SessionRefs(session)


def refs_by_session(refs: Mapping[str, str]) -> Sessions:
    """Return what a side has of each session."""
    by_session: dict[str, dict[str, str]] = {}
    for ref, oid in refs.items():
        if space := next((space for space in _REF_SPACES if ref.startswith(space)), ""):
            by_session.setdefault(layout.session_of(ref.removeprefix(space)), {})[ref] = oid
    return Sessions({session: SessionRefs(session, own) for session, own in by_session.items()})


def fetch_refs(store: Store, link: Connection, ref_names: Collection[str]) -> dict[str, str]:
    """Fetch refs of the remote, by their full names there, into the tracking refs; return the sessions whose data git
    rejected, with the reason.

    git reports only that something in one of all is damaged, so halves are fetched until it is known which one.
    """
    try:
        remotes.fetch_refs(store.path, link, ref_names)
    except RemoteDamageError as error:
        sessions = sorted({layout.session_of_ref(ref) for ref in ref_names})
        if len(sessions) == 1:
            return {sessions[0]: str(error)}
        first = set(sessions[: len(sessions) // 2])
        halves = (
            [ref for ref in ref_names if layout.session_of_ref(ref) in first],
            [ref for ref in ref_names if layout.session_of_ref(ref) not in first],
        )
        return {session: why for half in halves for session, why in fetch_refs(store, link, half).items()}
    return {}


def planned_moves(side: SessionRefs, branches: Mapping[str, str], *, archived: bool) -> list[Move]:
    """Return the moves after which a side has these branches, and those that it had, live or archived."""
    space, other = (layout.ARCHIVE, layout.HEADS) if archived else (layout.HEADS, layout.ARCHIVE)
    # A branch that is archived next to a live one of the same name does not count, and stays.
    leaves = other == layout.HEADS or side.archived
    moves = list[Move]()
    for name, tip in {**side.branches, **branches}.items():
        if (old := side.refs.get(space + name)) != tip:
            moves.append(Move(space + name, old, tip))
        if leaves and other + name in side.refs:
            moves.append(Move(other + name, side.refs[other + name], None))
    return moves


def is_archived_after_sync(store: Store, ours: SessionRefs, theirs: SessionRefs, agreed: bool | None) -> bool:
    """Return whether a session is archived after a sync: the side that changed it since they last agreed decides, but a
    session with turns that the archiving side lacked is live. Without an agreement, it is live if it is on one side."""
    if ours.archived == theirs.archived:
        return ours.archived
    if agreed is not False:
        return False
    archived, live = (ours, theirs) if ours.archived else (theirs, ours)
    return not count_lacking(store, live.branches.values(), archived.branches.values())


def readable_branches(
    store: Store, session: str, branches: Mapping[str, str], known: Collection[str]
) -> tuple[dict[str, str], list[SkippedItem]]:
    """Return the branches that can be read as those of this session, and the others with the reason. Tips in `known`
    were read before. Raises NewerStoreError for the format of a later sessgit."""
    good, skipped = dict[str, str](), list[SkippedItem]()
    for branch, tip in branches.items():
        try:
            if tip not in known:
                _check_branch(store, session, tip)
            good[branch] = tip
        except NewerStoreError:
            raise
        except (SessgitError, ValueError, TypeError, KeyError, RecursionError) as error:
            skipped.append(SkippedItem(branch, f"cannot read the remote's copy: {error}", REMOTE_HINT))
    return good, skipped


def _check_branch(store: Store, session: str, tip: str) -> None:
    state = store.state(tip)
    if state.id != session or (state.agent_id and ids.session_id(state.agent_id) != session):
        raise DamageError("its state is that of another conversation")
    if store.message(tip).get("Session") != session:
        raise DamageError("its last commit is of another conversation")
    _check_turns(store, tip, state.turns)


def _check_turns(store: Store, tip: str, count: int) -> None:
    turns = turn_folders(store, tip)
    if [name for name, _ in turns] != [f"{number:06d}" for number in range(1, count + 1)]:
        raise DamageError(f"it says that it has {count} turns, but has others")
    for name, folder in turns:
        if store.repo.tree(folder).get(layout.BODY, ("", True))[1]:
            raise DamageError(f"turn {int(name)} has no lines")


def is_contained(store: Store, commit: str, tips: Collection[str]) -> bool:
    """Return whether a commit is one of the tips, or in their histories."""
    return commit in tips or any(store.repo.is_ancestor(commit, tip) for tip in tips)


@frozen
class SkippedItem:
    """What was skipped: a session, a branch or a tag, why, and what to do about it."""

    what: str
    why: str
    hint: str


# Values that were purged here and that a remote still has: they must not come back

_LOCK_WAIT = 10.0
_PURGED_REASON = "the remote's copy has a value that was purged here"
_PUSH_HINT = "Replace it: `sessgit push {}`. Purge the value on other machines too, before they push."
_PURGE_THERE_HINT = "Another machine continued it: purge the value there too, and push from there."


class PurgedHistory:
    """What was purged from a store, to be compared with what remotes have."""

    def __init__(self, store: Store) -> None:
        self._store = store
        pairs = secret_filter.load_map(store.paths)
        self.commits: Mapping[str, str] = {old: new for old, new in pairs.items() if not store.repo.has(old)}
        """By each commit that was rewritten, and is gone, the one that replaces it now."""
        self._values = secret_filter.denied_values(store.paths)
        self.refused = set[str]()
        """The sessions of which something was fetched that must not stay."""

    def is_old(self, theirs: SessionRefs) -> bool:
        """Return whether some of a session's branches at a remote are as they were here before a purge."""
        return any(tip in self.commits for tip in theirs.tips)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was purged here."""
        return not self.commits and not self._values

    def now(self, oid: str) -> str:
        """Return the commit that replaces this one now, or this one."""
        return self.commits.get(oid, oid)

    def name(self, name: str) -> str:
        """Return a name without what was purged."""
        return value_match.clean_name(name, self._matcher) if self._values else name

    def skipped_item(self, session: str) -> SkippedItem:
        """Return the report of a session whose branches are as they were here before a purge."""
        return SkippedItem(session, _PURGED_REASON, _PUSH_HINT.format(session[:8]))

    def keeps_out(self, session: str, tips: Collection[str], known: Collection[str]) -> SkippedItem | None:
        """Return the report of a session whose tips, without the histories of the known ones, contain anything that was
        purged, and note that it is refused; None for any other."""
        if self.is_nothing:
            return None
        new = [tip for tip in tips if tip not in known and self._store.repo.has(tip)]
        if not new:
            return None
        try:
            came = {commit.id for commit in self._store.repo.since(new, known)}
            is_purged = bool(came & self.commits.keys()) or any(
                self._matcher.holds(one.data) for one in object_scan.new_objects(self._store.path, new, list(known))
            )
        except SessgitError:
            is_purged = True  # what cannot be read is refused
        if not is_purged:
            return None
        self.refused.add(session)
        return SkippedItem(session, _PURGED_REASON, _PURGE_THERE_HINT)

    @cached_property
    def _matcher(self) -> ValueMatcher:
        return secret_filter.matcher(self._store.paths, self._values)

    def drop(self, remote: str) -> None:
        """Delete what was fetched of the refused sessions; while another process writes, the next prune does so."""
        if not self.refused:
            return
        tracked = refs.read_all(self._store.path, layout.tracking_ref(remote, ""))
        gone = {ref: oid for ref, oid in tracked.items() if layout.session_of_ref(ref) in self.refused}
        with suppress(SessgitError):
            operations.move_refs(self._store.path, [Move(ref, oid, None) for ref, oid in gone.items()])
            paths = self._store.paths
            with (
                locks.maintenance_lock(paths, _LOCK_WAIT) as lock,
                locks.prune_lock(paths, _LOCK_WAIT if lock else 0) as alone,
            ):
                if lock and alone:
                    maintenance.delete_all_leftovers(self._store.path)
                    maintenance.prune(self._store.path, (lock, alone))


# What moves, and the results


@dataclass
class SyncPart:
    """Moves that a side makes all or none, what they change, and what both sides agree on afterwards."""

    moves: list[Move] = field(default_factory=list)
    changes: list[BranchChange] = field(default_factory=list)
    agreed: Agreement = field(default_factory=Agreement)
    if_refused: list[SkippedItem] = field(default_factory=list)
    """What to report if a remote refuses the part, besides its sessions."""

    def note(self, session: str, what: Relation, turns: int = 0) -> None:
        """Add a change of a session as a whole."""
        self.changes.append(BranchChange(session, what, turns, session))


class SyncPlan:
    """What both sides have as a pull or a push begins, and what it skips."""

    def __init__(self, context: Context, link: Connection, purged: PurgedHistory) -> None:
        self.context, self.store, self.purged = context, context.store, purged
        self.own = refs.read_all(self.store.path)
        self.ours = refs_by_session(self.own)
        self.before = load_agreement(self.store.paths, link.remote.url)
        self.skipped = list[SkippedItem]()

    def skip(self, what: str, why: str, hint: str) -> None:
        self.skipped.append(SkippedItem(what, why, hint))


@frozen
class PullResult:
    """What came from a remote; `operation` is None where nothing moved, and `behind` are the sessions whose files here
    lack turns that came."""

    remote: str
    changes: tuple[BranchChange, ...]
    tags: tuple[str, ...]
    skipped: tuple[SkippedItem, ...]
    operation: Operation | None
    behind: tuple[str, ...]


@frozen
class PushResult:
    """What went to a remote; `carried` are other sessions whose turns go along, since a fork or a merge holds them."""

    remote: str
    changes: tuple[BranchChange, ...]
    tags: tuple[str, ...]
    skipped: tuple[SkippedItem, ...]
    carried: tuple[str, ...]
