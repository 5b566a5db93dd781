"""What a pull and a push share: the refs of a session here and at a remote, what moves, and what is reported."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sessgit.errors import DamageError, NewerStoreError, RemoteDamageError, SessgitError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.record.tip_delivery import BranchChange, Relation, count_lacking, turn_folders
from sessgit.store import layout, remotes
from sessgit.store.journal import Operation
from sessgit.store.remotes import Connection
from sessgit.store.store import Store
from sessgit.store.transaction import Move
from sessgit.sync.agreement import Agreement

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


def refs_by_session(refs: Mapping[str, str]) -> dict[str, SessionRefs]:
    """Return what a side has of each session."""
    by_session: dict[str, dict[str, str]] = {}
    for ref, oid in refs.items():
        if space := next((space for space in _REF_SPACES if ref.startswith(space)), ""):
            by_session.setdefault(layout.session_of(ref.removeprefix(space)), {})[ref] = oid
    return {session: SessionRefs(session, own) for session, own in by_session.items()}


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


# What moves, and the results


@frozen
class SkippedItem:
    """What was skipped: a session, a branch or a tag, why, and what to do about it."""

    what: str
    why: str
    hint: str


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


@frozen
class PullResult:
    """What came from a remote; `operation` is None where nothing moved, and `behind` are the sessions whose files here
    lack turns that came."""

    remote: str
    changes: tuple[BranchChange, ...] = ()
    tags: tuple[str, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    operation: Operation | None = None
    behind: tuple[str, ...] = ()


@frozen
class PushResult:
    """What went to a remote; `carried` are other sessions whose turns go along, since a fork or a merge holds them."""

    remote: str
    changes: tuple[BranchChange, ...] = ()
    tags: tuple[str, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    carried: tuple[str, ...] = ()
