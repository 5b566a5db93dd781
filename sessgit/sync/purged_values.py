"""Values that were purged here and that a remote still has: they must not come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property

from sessgit.errors import SessgitError
from sessgit.purge import rewriting
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout, locks, maintenance, object_scan, refs, secret_filter, transaction
from sessgit.store.store import Store
from sessgit.store.transaction import Move
from sessgit.sync.session_refs import SessionRefs, SkippedItem

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
        return rewriting.clean_name(name, self._matcher) if self._values else name

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
            transaction.move_all(self._store.path, [Move(ref, oid, None) for ref, oid in gone.items()])
            paths = self._store.paths
            with (
                locks.maintenance_lock(paths, _LOCK_WAIT) as lock,
                locks.prune_lock(paths, _LOCK_WAIT if lock else 0) as alone,
            ):
                if lock and alone:
                    maintenance.delete_all_leftovers(self._store.path)
                    maintenance.prune(self._store.path, (lock, alone))
