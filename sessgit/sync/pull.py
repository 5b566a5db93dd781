"""`pull`: brings the conversations of a remote, in one operation, which `undo` reverts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sessgit import agents
from sessgit.branch import delete
from sessgit.errors import AmbiguousError, DamageError, MovedError, NotFoundError, SessgitError, StoreError
from sessgit.history import client_files, resolve
from sessgit.history.resolve import CallerContext
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count, quote_for_shell
from sessgit.model.ids import is_tag
from sessgit.record.tip_delivery import BranchChange, Delivery, count_lacking
from sessgit.store import layout, operations, recorder_state, refs, remotes
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.operations import Move, Operation
from sessgit.store.private_files import path_exists
from sessgit.store.remotes import Connection
from sessgit.sync import session_refs
from sessgit.sync.session_refs import PullResult, PurgedHistory, SessionRefs, SyncPart, SyncPlan

_TRIES = 5
_UNDO_HINT = "To restore it: `sessgit undo`, until `sessgit gc --prune`. `sessgit ops` lists all operations."
_TAG_HINT = "A push of its conversation removes the tag there."
_SHORTEST = resolve.SHORTEST_PREFIX
_KEPT_HINT = "It was kept. To delete it here too: `sessgit delete {}`"


def remote_sessions(index: Index, listed: Collection[str], words: Sequence[str], where: CallerContext) -> list[str]:
    """Return the sessions of a remote that the words name: ids and beginnings of ids as it has them, else what an
    address means here. Raises NotFoundError and AmbiguousError."""
    known = sorted({layout.session_of(name) for space, name in map(layout.split_ref, listed) if space != layout.TAGS})
    return list(dict.fromkeys(_find_one(index, known, word, where) for word in words))


def _find_one(index: Index, known: Sequence[str], word: str, where: CallerContext) -> str:
    fitting = [word] if word in known else [name for name in known if name.startswith(word)]
    if len(fitting) > 1 and len(word) >= _SHORTEST:
        raise AmbiguousError(
            f"{len(fitting)} conversations there start with “{word}”: {', '.join(fitting[:_SHORTEST])}",
            "Type more of the id.",
        )
    if len(fitting) == 1 and len(word) >= _SHORTEST:
        return fitting[0]
    here = {
        layout.session_of(branch)
        for branch in resolve.branches_by_name(index, word, where) or resolve.sessions_by_title(index, word, where)
    }
    here &= set(known)
    if len(here) == 1:
        return here.pop()
    raise NotFoundError(
        f"the remote has no conversation “{word}”",
        "Name its id, or the first four letters. Without an id, pull fetches all conversations.",
    )


@frozen
class _RemoteState:
    """What a remote has: all of its refs, and by session those that are pulled; the sessions that it had when it was
    last seen; those with branches as they were here before a purge; and those whose data git rejected, with the
    reason."""

    refs: Mapping[str, str]
    sessions: Mapping[str, SessionRefs]
    known: Collection[str]
    purged: Collection[str]
    rejected: Mapping[str, str]


def pull_sessions(
    context: Context, link: Connection, sessions: Collection[str] | None = None, *, dry_run: bool = False
) -> PullResult:
    """Bring what the remote has of these sessions, or of all, and archive and delete what was archived and deleted
    there.

    No head goes back, and a session is deleted only if it is here as it was there. Raises NewerStoreError, with nothing
    moved, if a later sessgit wrote something of it.
    """
    store = context.store
    store.repo.begin_write()
    purged = PurgedHistory(store)
    try:
        there = _fetch_remote(context, link, sessions, purged)
        for _ in range(_TRIES):
            store.repo.begin_write()
            plan = _Plan(context, link, there, purged, sessions)
            plan.add_sessions()
            plan.add_tags()
            hint = f"Delete it in {link.remote.shown}: its line in packed-refs, or its file."
            for ref in sorted(link.unserved):
                plan.skip(ref, "git does not serve a ref with that name", hint)
            try:
                operation = _apply(context, link, plan) if plan.part.moves and not dry_run else None
            except MovedError:
                continue
            stale = () if dry_run else tuple(_sessions_with_stale_files(context, plan.part.changes))
            if not dry_run:
                session_refs.add_agreement(store.paths, link.remote.url, plan.part.agreed)
            return PullResult(
                link.remote.name, tuple(plan.part.changes), tuple(plan.tags), tuple(plan.skipped), operation, stale
            )
    finally:
        store.repo.release()
        purged.drop(link.remote.name)
    raise StoreError("the branches kept changing while they were pulled", "Try again.")


def _apply(context: Context, link: Connection, plan: _Plan) -> Operation:
    sessions = {change.session for change in plan.part.changes}
    what = format_count(len(sessions), "conversation") if sessions else format_count(len(plan.tags), "tag")
    summary = f"{what} from {link.remote.name}"
    operation = operations.perform_operation(context.store, "pull", summary, plan.part.moves, context.now())
    if plan.deleted:
        delete.wait_for_recorders(context.store, list(plan.deleted))
    context.index.sync()
    return operation


def _sessions_with_stale_files(context: Context, changes: Collection[BranchChange]) -> Iterator[str]:
    """Yield the sessions whose heads got turns that their files here lack."""
    sessions = {
        one.session
        for one in changes
        if one.turns and (one.what == "merged" or (one.what in ("forward", "joined") and one.branch == one.session))
    }
    for branch in context.index.branches_named(sorted(sessions)):
        path = client_files.transcript_place(context.homes, branch.state, context.store.paths)
        if path is not None and not branch.archived and path_exists(path):
            yield branch.name


def _fetch_remote(
    context: Context, link: Connection, sessions: Collection[str] | None, purged: PurgedHistory
) -> _RemoteState:
    """Return what the remote has, after fetching what changed since it was last seen."""
    store = context.store
    remote_refs, seen = remotes.remote_refs(store.path, link), remotes.tracked_refs(store.path, link.remote.name)
    here = session_refs.refs_by_session(refs.read_all(store.path))
    old = {
        session
        for session, theirs in session_refs.refs_by_session(remote_refs).items()
        if purged.is_old(theirs) and not here[session].tombstone
    }

    def is_pulled(ref: str) -> bool:
        """Return whether a ref is looked at: of a session that was deleted here, none is."""
        space, session = layout.split_ref(ref)[0], layout.session_of_ref(ref)
        if sessions is not None and session not in sessions:
            return False
        if space == layout.DELETED:
            return bool(here[session].head)
        return space in layout.BRANCH_SPACES and not here[session].tombstone

    wanted = {ref: oid for ref, oid in remote_refs.items() if is_pulled(ref) and layout.session_of_ref(ref) not in old}
    known = {session for session, theirs in session_refs.refs_by_session(seen).items() if theirs.branches}
    news = [ref for ref, oid in wanted.items() if seen.get(ref) != oid]
    gone, rejected = [ref for ref in seen.keys() - remote_refs.keys() if is_pulled(ref)], dict[str, str]()
    if news or gone:
        rejected = session_refs.fetch_refs(store, link, [*news, *gone])
        seen = remotes.tracked_refs(store.path, link.remote.name)
        wanted |= {ref: seen[ref] for ref in (*news, *gone) if ref in seen}  # it may have moved meanwhile
        wanted = {ref: oid for ref, oid in wanted.items() if layout.session_of_ref(ref) not in rejected}
    return _RemoteState(remote_refs, session_refs.refs_by_session(wanted), known, sorted(old), rejected)


class _Plan(SyncPlan):
    """What a pull does; `sessions` are those to pull, None for all."""

    def __init__(
        self,
        context: Context,
        link: Connection,
        there: _RemoteState,
        purged: PurgedHistory,
        sessions: Collection[str] | None,
    ) -> None:
        super().__init__(context, link, purged)
        self.theirs, self.sessions = there, sessions
        self.open = agents.open_sessions(context.homes)
        self.part = SyncPart()
        self.tags = list[str]()
        self.deleted = dict[str, str]()
        """The sessions to delete, each with the remote's tombstone."""

    def _is_open(self, ours: SessionRefs) -> bool:
        """Return whether a client here has the session open."""
        try:
            return bool(self.open) and self.store.state(ours.head).agent_id in self.open
        except SessgitError:
            return True

    # Sessions

    def add_sessions(self) -> None:
        self._skip_sessions()
        self.context.index.sync()
        tips = {tip for ours in self.ours.values() for tip in ours.tips}
        for session, theirs in sorted(self.theirs.sessions.items()):
            ours = self.ours[session]
            if refused := self.purged.keeps_out(session, theirs.tips, tips):
                self.skipped.append(refused)
            elif theirs.tombstone and ours.head and self.context.index.branch(session) is not None:
                self._add_deletion(ours, theirs.tombstone)
            elif theirs.head:
                self._add_session(ours, theirs)
            elif theirs.branches:
                why = "the remote has side branches of it, but not its head"
                self.skip(session, why, "Push it again from there.")
        if self.deleted:
            doomed = delete.plan_deletion(self.context.index, list(self.deleted), self.context.homes)
            self.part.moves += delete.deletion_moves(self.store, doomed, self.context.now(), self.deleted)

    def _skip_sessions(self) -> None:
        """Report the sessions that were deleted here, hold purged values there, or have data that git rejected."""
        there = session_refs.refs_by_session(self.theirs.refs)
        for session, ours in self.ours.items():
            if ours.tombstone and session in there:
                if there[session].tombstone and not there[session].branches:
                    self.part.agreed.stones[session] = ours.tombstone
                if session in (self.sessions or ()):
                    self.skip(session, "it was deleted here", _UNDO_HINT)
        for session in self.theirs.purged:
            if self.sessions is None or session in self.sessions:
                self.skipped.append(self.purged.skipped_item(session))
        for session, why in sorted(self.theirs.rejected.items()):
            self.skip(session, why, session_refs.REMOTE_HINT)

    def _add_session(self, ours: SessionRefs, theirs: SessionRefs) -> None:
        store, session, own = self.store, ours.session, ours.branches
        if own == theirs.branches and ours.archived == theirs.archived and not theirs.shadowed:
            self.part.agreed.archived[session] = ours.archived
            return
        branches = {**theirs.branches, **theirs.shadowed}
        readable, skipped = session_refs.readable_branches(store, session, branches, set(own.values()))
        self.skipped += skipped
        if session not in readable:
            return
        try:
            has_file = recorder_state.load_cursor(store.paths, session) is not None
            delivery = Delivery(store, session, own, has_file=has_file)
            delivery.deliver(readable)
            archived = theirs.archived
            if ours.head:
                archived = session_refs.is_archived_after_sync(store, ours, theirs, self.before.archived.get(session))
        except (DamageError, StoreError) as error:
            self.skip(session, f"cannot read it here: {error}", f"Search for it: `sessgit repair {session}`")
            return
        if archived and not ours.archived and ours.head and self._is_open(ours):
            why = "it was archived there, and is open in a client here"
            self.skip(session, why, "Close it, and pull again.")
            archived = False
        self.part.moves += session_refs.planned_moves(ours, delivery.branches, archived=archived)
        self.part.changes += delivery.changes
        if archived == theirs.archived:
            self.part.agreed.archived[session] = archived
        if ours.head and archived != ours.archived:
            self.part.note(session, "archived" if archived else "unarchived")

    def _add_deletion(self, ours: SessionRefs, tombstone: str) -> None:
        store, session = self.store, ours.session
        named = delete.deleted_tips(store, session, tombstone)
        if named is None or self.before.stones.get(session) == tombstone:
            return
        tips = frozenset(map(self.purged.now, named))
        if session not in self.before.archived and session not in self.theirs.known:
            self.skip(session, "it is deleted there, and was never pulled from there", _KEPT_HINT.format(session))
            return
        if self._is_open(ours):
            self.skip(session, "it was deleted there, and is open in a client here", "Close it, and pull again.")
            return
        self.part.agreed.stones[session] = tombstone
        kept = [tip for tip in ours.tips if not session_refs.is_contained(store, tip, tips)]
        if kept:
            # If what was deleted is not all here, the number of turns that it lacks is unknown.
            self.part.note(session, "kept", count_lacking(store, kept, tips) if all(map(store.repo.has, tips)) else 0)
            return
        self.deleted[session] = tombstone
        try:
            turns = store.state(ours.head).turns
        except SessgitError:
            turns = 0
        self.part.note(session, "deleted", turns)

    # Tags

    def add_tags(self) -> None:
        """Make the tags of the remote that lead to turns here; one that was deleted here stays deleted."""
        after = session_refs.refs_by_session(session_refs.refs_after(self.own, self.part.moves))
        moved = {move.ref for move in self.part.moves}
        for ref, oid in sorted(self.theirs.refs.items()):
            name = ref.removeprefix(layout.TAGS)
            if ref == name or ref in moved:
                continue
            is_usable = is_tag(name) and self.store.repo.has(oid)
            commit = self.store.repo.peel(oid) if is_usable else None
            session = self.store.message(commit).get("Session") if commit else ""
            if commit is not None and (self.sessions is None or session in self.sessions):
                branches = after[session].branches.values()
                is_reachable = any(self.store.repo.is_ancestor(commit, tip) for tip in branches)
                self._add_tag(name, oid, commit, is_reachable=is_reachable)

    def _add_tag(self, name: str, oid: str, commit: str, *, is_reachable: bool) -> None:
        ref, key, clean = layout.TAGS + name, session_refs.tag_key(name), self.purged.name(name)
        here = self.own.get(ref)
        if clean != name:
            why = "the remote has a tag whose name contains a value that was purged here"
            self.skip(clean, why, _TAG_HINT)
        elif here is not None and self.store.repo.peel(here) == commit:
            self.part.agreed.tags[key] = commit
        elif here is not None:
            hint = f"To accept the remote's tag: `sessgit tag -d {quote_for_shell(name)}`"
            self.skip(name, "the tag is at another turn here", hint)
        elif is_reachable and (self.before.tags.get(key) != commit or self._was_undone(ref)):
            self.part.moves.append(Move(ref, None, oid))
            self.tags.append(name)
            self.part.agreed.tags[key] = commit

    def _was_undone(self, ref: str) -> bool:
        """Return whether an undo removed a tag, as that of a pull: then the user has not deleted it."""
        moving = (one for one in reversed(operations.read(self.store.paths)) if any(m.ref == ref for m in one.moves))
        last = next(moving, None)
        return last is not None and bool(last.undoes)
