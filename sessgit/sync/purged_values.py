"""What a remote still holds of values that were purged here: it does not come back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property

from sessgit.errors import SessgitError
from sessgit.purge import turn_folders
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout, locks, maintenance, refs, transaction
from sessgit.store.secrets import commit_map, denylist, objects
from sessgit.store.store import Store
from sessgit.store.transaction import Move
from sessgit.sync.branches import SessionRefs
from sessgit.sync.outcome import SkippedItem

_LOCK_WAIT = 10.0
_PURGED_REASON = "the remote's copy has a value that was purged here"
_PUSH_HINT = "Replace it: `sessgit push {}`. Purge the value on other machines too, before they push."
_PURGE_THERE_HINT = "Another machine continued it: purge the value there too, and push from there."


class PurgedHistory:
    """What was purged from a store, held against what remotes have."""

    def __init__(self, store: Store) -> None:
        self._store = store
        pairs = commit_map.load_map(store.beside)
        self.commits: Mapping[str, str] = {old: new for old, new in pairs.items() if not store.repo.has(old)}
        """By each commit that was rewritten, and is gone, the one that stands for it now."""
        self._values = denylist.denied_values(store.beside)
        self.refused = set[str]()
        """The sessions of which something came that must not stay."""

    def is_old(self, held: SessionRefs) -> bool:
        """Whether a session's branches at a remote are, one or several, as they were here before a purge."""
        return any(tip in self.commits for tip in held.tips)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was purged here."""
        return not self.commits and not self._values

    def now(self, oid: str) -> str:
        """The commit that stands for it now."""
        return self.commits.get(oid, oid)

    def name(self, name: str) -> str:
        """A name without what was purged."""
        return turn_folders.file_name(name, self._matcher) if self._values else name

    def left(self, session: str) -> SkippedItem:
        """What is said of a session whose branches are as they were here."""
        return SkippedItem(session, _PURGED_REASON, _PUSH_HINT.format(session[:8]))

    def keeps_out(self, session: str, tips: Collection[str], known: Collection[str]) -> SkippedItem | None:
        """Whether the histories of the tips, as far as those of the known ones lack them, hold anything that was
        purged: then they must go again."""
        if self.is_nothing:
            return None
        new = [tip for tip in tips if tip not in known and self._store.repo.has(tip)]
        if not new:
            return None
        try:
            came = {commit.id for commit in self._store.repo.since(new, known)}
            found = bool(came & self.commits.keys()) or any(
                self._matcher.holds(one.data) for one in objects.new_objects(self._store.path, new, list(known))
            )
        except SessgitError:
            found = True  # what cannot be looked at does not come
        if not found:
            return None
        self.refused.add(session)
        return SkippedItem(session, _PURGED_REASON, _PURGE_THERE_HINT)

    @cached_property
    def _matcher(self) -> ValueMatcher:
        return denylist.matcher(self._store.beside, self._values)

    def drop(self, remote: str) -> None:
        """Deletes what came of the refused sessions; where somebody is writing, the next prune does."""
        if not self.refused:
            return
        held = refs.read_all(self._store.path, layout.tracking_ref(remote, ""))
        gone = {ref: oid for ref, oid in held.items() if layout.session_of_ref(ref) in self.refused}
        with suppress(SessgitError):
            transaction.move_all(self._store.path, [Move(ref, oid, None) for ref, oid in gone.items()])
            beside = self._store.beside
            with (
                locks.maintenance_lock(beside, _LOCK_WAIT) as lock,
                locks.prune_lock(beside, _LOCK_WAIT if lock else 0) as alone,
            ):
                if lock and alone:
                    maintenance.delete_all_leftovers(self._store.path)
                    maintenance.prune(self._store.path, (lock, alone))
