"""`push`: sends conversations to a remote. Nothing changes here but what is known about the remote."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from sessgit.branch import delete
from sessgit.errors import ConflictError, DamageError, MovedError, NotFoundError, RefusedError, StoreError
from sessgit.history import resolve
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.record import privacy
from sessgit.record.tip_delivery import BranchChange, Delivery
from sessgit.store import layout, remotes
from sessgit.store.context import Context
from sessgit.store.index import Index, Outline
from sessgit.store.operations import Move
from sessgit.store.remotes import Connection
from sessgit.store.settings import Privacy, RecordConfig, label_of
from sessgit.store.store import Store
from sessgit.sync import session_refs
from sessgit.sync.session_refs import PurgedHistory, PushResult, SessionRefs, SkippedItem, SyncPart, SyncPlan

_TRIES = 5
_MOST_NAMED = 5
_DENIED_HINT = "It is archived or deleted only here. The remote has receive.denyDeletes set."
_TAG_DENIED = "a tag of the remote contains a value that was purged here, and the remote does not allow deleting tags"


# The sessions that a command selects: nothing else leaves this machine


def chosen_sessions(index: Index, labels: Collection[str], folder: str | None, *, everything: bool) -> list[str]:
    """Return the sessions with all of the labels, of the project at a folder if one is given, archived ones too.

    Raises NotFoundError if there are none, unless `everything`: deletions are pushed even if no session is left.
    """
    outlines = index.outlines()
    if folder is not None:
        outlines = resolve.outlines_in_project(outlines, folder)
    names = [outline.name for outline in outlines if set(labels) <= _label_set(outline)]
    if not names and not everything:
        raise NotFoundError("no conversation matches", "`sessgit ls --all` lists all conversations and their labels.")
    return names


def included_sessions(index: Index, include: Sequence[str], recorded: Privacy) -> list[str]:
    """Return the sessions that `sync.include` names by their project or a label, except in projects that `recorded`
    excludes: what is not even recorded here must not leave the machine because of a setting.
    """
    labels = {label for item in include if (label := label_of(item))}
    globs = tuple(item for item in include if not label_of(item))
    named = Privacy(RecordConfig(include=globs), recorded.home)
    fits: dict[str, tuple[bool, bool]] = {}

    def fit(folder: str) -> tuple[bool, bool]:
        """Return whether a folder is recorded, and whether a glob names it."""
        if folder not in fits:
            by_glob = bool(globs) and privacy.verdict(named, folder).recorded
            fits[folder] = (privacy.verdict(recorded, folder).recorded, by_glob)
        return fits[folder]

    included = list[str]()
    for outline in index.outlines():
        is_recorded, by_glob = fit(outline.project or "/")
        if is_recorded and (by_glob or labels & _label_set(outline)):
            included.append(outline.name)
    return included


def _label_set(outline: Outline) -> set[str]:
    return set(json.loads(outline.labels))


# The push


@frozen
class PushRequest:
    """What to send: these sessions, and with `deletions` what was deleted here.

    `named` are the sessions that the user named: if one was deleted on the remote, it is restored there. Lines that
    were recorded without redaction are sent only if `unredacted`.
    """

    sessions: Collection[str]
    named: Collection[str] = ()
    deletions: bool = True
    unredacted: bool = False


def push_sessions(context: Context, link: Connection, request: PushRequest, *, dry_run: bool = False) -> PushResult:
    """Send the sessions, whether they are archived, the tags at their turns, and what was deleted here.

    Raises ConflictError, with nothing sent, if it would send unredacted lines that the request does not allow.
    """
    sessions = request.sessions
    store, sent, is_rewind_allowed = context.store, list[BranchChange](), True
    store.repo.begin_write()  # a purge that is running ends first: what may be sent must be known before the fetch
    context.index.sync()
    purged = PurgedHistory(store)
    carried, tags = tuple[str, ...](), set[str]()
    try:
        for _ in range(_TRIES):
            store.repo.begin_write()
            remote_refs = _fetch_remote(store, link, sessions, purged)
            plan = _Plan(context, link, remote_refs, purged)
            plan.add_sessions(sessions, request.named, rewinds=is_rewind_allowed)
            if request.deletions:
                plan.add_deletions()
            plan.add_tags(sessions)
            carried = (
                _carried_sessions(store, plan.tips, remote_refs, sessions, unredacted=request.unredacted) or carried
            )
            tags |= plan.tags
            if dry_run:
                sent = [change for part in plan.parts for change in part.changes]
                return PushResult(link.remote.name, tuple(sent), tuple(sorted(tags)), tuple(plan.skipped), carried)
            try:
                _send(store, link, plan.onward, sent)
                if not _is_accepted(store, link, plan.back, sent):
                    is_rewind_allowed = False
                    continue
                if not _is_accepted(store, link, plan.away, sent):
                    refused = dict.fromkeys(change.session for change in plan.away.changes)
                    for session in refused:
                        plan.skip(session, "the remote does not allow deleting branches", _DENIED_HINT)
                    plan.skipped += plan.away.if_refused
            except MovedError:
                continue
            return PushResult(link.remote.name, tuple(sent), tuple(sorted(tags)), tuple(plan.skipped), carried)
    finally:
        store.repo.release()
        purged.drop(link.remote.name)
    raise StoreError(f"{link.remote.name} kept changing during the push", "Try again.")


def _send(store: Store, link: Connection, part: SyncPart, sent: list[BranchChange]) -> None:
    if part.moves:
        store.repo.flush()  # git reads what was joined here
        remotes.push_refs(store.path, link, part.moves)
        sent += part.changes
    session_refs.add_agreement(store.paths, link.remote.url, part.agreed)


def _is_accepted(store: Store, link: Connection, part: SyncPart, sent: list[BranchChange]) -> bool:
    """Send a part that a remote may refuse; return whether it did not."""
    try:
        _send(store, link, part, sent)
    except RefusedError:
        return False
    return True


def _fetch_remote(store: Store, link: Connection, sessions: Collection[str], purged: PurgedHistory) -> dict[str, str]:
    """Return the refs of the remote, after fetching what is unknown of the sessions that are sent."""
    remote_refs, wanted = remotes.remote_refs(store.path, link), set(sessions)
    unknown = [
        ref
        for ref, oid in remote_refs.items()
        if ref.startswith(layout.BRANCH_SPACES)
        and layout.session_of_ref(ref) in wanted
        and not store.repo.has(oid)
        and oid not in purged.commits
    ]
    if unknown:
        session_refs.fetch_refs(store, link, unknown)
        tracked = remotes.tracked_refs(store.path, link.remote.name)
        remote_refs |= {ref: tracked[ref] for ref in unknown if ref in tracked}
    return remote_refs


class _Plan(SyncPlan):
    """What a push does: branches that advance or are new (`onward`), heads that go back after a rewind (`back`), and
    what is deleted or archived (`away`). A remote may refuse the last two."""

    def __init__(
        self, context: Context, link: Connection, remote_refs: Mapping[str, str], purged: PurgedHistory
    ) -> None:
        super().__init__(context, link, purged)
        self.remote_refs, self.theirs = remote_refs, session_refs.refs_by_session(remote_refs)
        self.onward, self.back, self.away = SyncPart(), SyncPart(), SyncPart()
        self.tags = set[str]()

    @property
    def parts(self) -> tuple[SyncPart, ...]:
        """The parts in the order in which they are sent."""
        return self.onward, self.back, self.away

    @property
    def tips(self) -> list[str]:
        """What the remote holds of sessions afterwards."""
        moves = [move for part in self.parts for move in part.moves if not move.ref.startswith(layout.DELETED)]
        return list(dict.fromkeys(move.new for move in moves if move.new is not None))

    # Sessions

    def add_sessions(self, sessions: Collection[str], named: Collection[str], *, rewinds: bool) -> None:
        tips = {tip for one in self.ours.values() for tip in one.tips}
        for session in dict.fromkeys(sessions):
            ours, theirs = self.ours[session], self.theirs[session]
            if not ours.head:
                continue
            if refused := self.purged.keeps_out(session, theirs.tips, tips):
                self.skipped.append(refused)
            elif theirs.tombstone and session not in named:
                self.skip(session, "it is deleted there", "To restore it there, push it by its address.")
            else:
                try:
                    self._add_session(ours, theirs, rewinds=rewinds)
                except (DamageError, StoreError) as error:
                    self.skip(session, f"cannot read it: {error}", f"Search for it: `sessgit repair {session}`")

    def _add_session(self, ours: SessionRefs, theirs: SessionRefs, *, rewinds: bool) -> None:
        store, session, own = self.store, ours.session, ours.branches
        shadows = self._purged_shadows(theirs)
        self.onward.moves += shadows
        if own == theirs.branches and ours.archived == theirs.archived:
            self.onward.agreed.archived[session] = ours.archived
            if shadows:
                self.onward.note(session, "purged")
            return
        # A branch that is there as it was here before a purge continues as it is here now.
        now = {branch: self.purged.now(tip) for branch, tip in theirs.branches.items()}
        readable, skipped = session_refs.readable_branches(store, session, now, set(own.values()))
        self.skipped += skipped
        if theirs.head and session not in readable:
            return
        delivery = Delivery(store, session, readable, theirs.branches)
        delivery.deliver(own, rewinds=rewinds)
        part = self.back if delivery.back else self.onward
        was_archived = theirs.archived if theirs.head else ours.archived
        archived = ours.archived
        if theirs.head:
            archived = session_refs.is_archived_after_sync(store, ours, theirs, self.before.archived.get(session))
        shadowed, tips = map(self.purged.now, theirs.shadowed.values()), delivery.branches.values()
        if (archived or was_archived) and not all(session_refs.is_contained(store, tip, tips) for tip in shadowed):
            self.skip(session, "it exists twice there, live and archived", "Pull it first, to have both here.")
            return
        moves = session_refs.planned_moves(theirs, delivery.branches, archived=was_archived)
        part.moves += moves
        # After a purge, the same turns have other commits: only more turns are a change of their own.
        changes = [one for one in delivery.changes if now == theirs.branches or one.what != "forward" or one.turns]
        part.changes += changes
        if now != theirs.branches and not changes:
            part.note(session, "purged")
        if archived != was_archived:
            after = theirs.after([*moves, *shadows])
            self.away.moves += session_refs.planned_moves(after, {}, archived=archived)
            self.away.note(session, "archived" if archived else "unarchived")
        if theirs.tombstone:
            self.away.moves.append(Move(layout.tombstone_ref(session), theirs.tombstone, None))
            self.away.agreed.stones[session] = theirs.tombstone  # it deletes nothing here if it is pushed again
        if archived == ours.archived:
            (self.away if archived != was_archived else part).agreed.archived[session] = archived

    def _purged_shadows(self, theirs: SessionRefs) -> list[Move]:
        """Return moves for branches that are archived there next to a live one: they do not count, but would keep what
        was purged here."""
        moves = list[Move]()
        for ref, tip in () if theirs.archived else theirs.refs.items():
            name, now = layout.split_ref(ref)[1], self.purged.now(tip)
            is_shadow = ref.startswith(layout.ARCHIVE) and layout.head_ref(name) in theirs.refs
            if is_shadow and now != tip and self.store.repo.has(now):
                moves.append(Move(ref, tip, now))
        return moves

    # Deletions

    def add_deletions(self) -> None:
        for session in sorted(self.ours):
            ours, theirs = self.ours[session], self.theirs[session]
            if not ours.tombstone:
                continue
            if not theirs.branches:
                if theirs.tombstone:
                    self.onward.agreed.stones[session] = ours.tombstone
            elif self.before.stones.get(session) == ours.tombstone:
                hint = f"Restore it here too with `sessgit undo`, or delete {session} there."
                self.skip(session, "it was deleted here and there, and restored there", hint)
            else:
                self._add_deletion(ours, theirs)

    def _add_deletion(self, ours: SessionRefs, theirs: SessionRefs) -> None:
        """Delete a session that was deleted here, if all that the remote has of it was here."""
        session = ours.session
        tips = delete.deleted_tips(self.store, session, ours.tombstone) or frozenset()
        now = self.purged.now
        if not all(session_refs.is_contained(self.store, now(tip), tips) for tip in theirs.tips):
            hint = f"Restore it here with `sessgit undo`, then pull; or delete {session} there."
            self.skip(session, "it was deleted here, but has turns there that were not here", hint)
            return
        tombstone = layout.tombstone_ref(session)
        gone = {ref: oid for ref, oid in theirs.refs.items() if ref != tombstone}
        tags = {
            ref: oid for ref, oid in self.remote_refs.items() if ref.startswith(layout.TAGS) and ref not in self.own
        }
        gone |= {ref: oid for ref, oid in tags.items() if now(oid) in tips}
        self.away.moves.append(Move(tombstone, theirs.refs.get(tombstone), ours.tombstone))
        self.away.moves += [Move(ref, oid, None) for ref, oid in gone.items()]
        self.away.note(session, "deleted")
        self.away.agreed.stones[session] = ours.tombstone

    # Tags

    def add_tags(self, sessions: Collection[str]) -> None:
        """Send the tags at turns of the sessions; one that is elsewhere there stays."""
        skipped, store = {item.what for item in self.skipped}, self.store
        sent = {session: self.ours[session] for session in sessions if session in self.ours}
        for tag in resolve.list_tags(self.context.index):
            ref, session = layout.TAGS + tag.name, layout.session_of(tag.branch)
            oid, there = self.own.get(ref), self.remote_refs.get(ref)
            commit = store.repo.peel(oid) if oid else None
            if oid is None or commit is None or session not in sent:
                continue
            if not any(store.repo.is_ancestor(commit, tip) for tip in sent[session].branches.values()):
                continue
            if there in (oid, commit):
                self.onward.agreed.tags[session_refs.tag_key(tag.name)] = commit
            elif there is not None and self.purged.commits.get(there) == commit:
                self.onward.moves.append(Move(ref, there, oid))
            elif there is not None:
                self.skip(tag.name, "the tag is at another turn there", "A push does not move tags on a remote.")
            elif session not in skipped:
                self.onward.moves.append(Move(ref, None, oid))
                self.onward.agreed.tags[session_refs.tag_key(tag.name)] = commit
                self.tags.add(tag.name)
        if not self.purged.is_nothing:
            self._replace_purged_tags(sent)

    def _replace_purged_tags(self, sent: Collection[str]) -> None:
        """Move the tags of the remote, from any machine, that lead to what was purged here, and delete those whose
        names contain a purged value."""
        moved = {move.ref for move in self.onward.moves}
        for ref, oid in self.remote_refs.items():
            if not ref.startswith(layout.TAGS) or ref in moved:
                continue
            name, commit = ref.removeprefix(layout.TAGS), self.purged.now(oid)
            clean = self.purged.name(name)
            if (clean, commit) == (name, oid) or not self.store.repo.has(commit):
                continue
            if self.store.message(commit).get("Session") not in sent:
                continue
            if commit != oid:
                self.onward.moves.append(Move(ref, oid, commit))
            if clean != name:
                self.away.moves.append(Move(ref, commit, None))
                hint = "Delete the tag there: its name contains the value."
                self.away.if_refused.append(SkippedItem(clean, _TAG_DENIED, hint))


def _carried_sessions(
    store: Store, tips: Collection[str], remote_refs: Mapping[str, str], sessions: Collection[str], *, unredacted: bool
) -> tuple[str, ...]:
    """Return the other sessions whose turns are sent, because a fork or a merge contains them.

    Raises ConflictError if something that the remote does not have yet was recorded without redaction.
    """
    if not tips:
        return ()
    known = {commit for oid in set(remote_refs.values()) if (commit := store.repo.peel(oid))}
    new = list(store.repo.since([commit for tip in tips if (commit := store.repo.peel(tip))], known))
    owners = {commit.id: store.message(commit.id).get("Session") for commit in new}
    tops = set(tips)
    for one in new:
        tops |= {parent for n, parent in enumerate(one.parents) if n or owners.get(parent) != owners[one.id]}
    checked = set() if unredacted else tops & owners.keys()
    if bare := sorted({owners[top] for top in checked if not store.state(top).rules.get("redact")}):
        more = f" and {len(bare) - _MOST_NAMED} more" if len(bare) > _MOST_NAMED else ""
        named = f"{', '.join(name[:8] for name in bare[:_MOST_NAMED])}{more}"
        raise ConflictError(
            f"{format_count(len(bare), 'conversation')} would leave this machine without redaction: {named}",
            "Nothing was sent. To send them unredacted, use `--unredacted`.",
        )
    return tuple(sorted(set(owners.values()) - {*sessions, ""}))
