"""The store made small, and what was deleted made final."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents import new_file
from sessgit.branch import delete, lost_refs
from sessgit.branch.merging import interrupted
from sessgit.errors import ConflictError, MovedError, SessgitError
from sessgit.model import canonical, humanize
from sessgit.model.progress import Progress, no_progress
from sessgit.store import journal, layout, locks, maintenance, operations, refs, transaction
from sessgit.store.fulltext import forget
from sessgit.store.index import Index
from sessgit.store.maintenance import ObjectCount
from sessgit.store.packing import quarantine
from sessgit.store.recorder import append_intent
from sessgit.store.recorder import cursor as cursors
from sessgit.store.remote import outgoing
from sessgit.store.store import Store
from sessgit.store.transaction import Move

_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class Collected:
    """What the store held before and after; how many files of interrupted work went, how many tips that operations
    had kept expired, and which deleted sessions are now gone for good."""

    before: ObjectCount
    after: ObjectCount
    leftovers: int
    expired: int
    final: tuple[str, ...] = ()


def collect(  # noqa: PLR0913 - the world, and what is asked for
    store: Store,
    index: Index,
    config: Path,
    now: float,
    *,
    keep: float,
    prune: bool = False,
    progress: Progress = no_progress,
) -> Collected:
    """Packs the store, and lets go of what operations took away more than `keep` seconds ago.

    What interrupted work left goes too, also in `config`, the agent's folder. With `prune`, what was deleted is final:
    its objects, its words, all that no ref leads to. Raises ConflictError where another process packs the store, or
    writes to it when it is to be pruned.
    """
    store.repo.release()
    with locks.maintenance_lock(store.beside, _LOCK_WAIT) as lock:
        if not lock:
            raise ConflictError("another process is packing the store", "Nothing was changed. Try again later.")
        operations.finish_interrupted(store)
        interrupted.delete_unfinished(store, config, now)
        interrupted.finish_merges(store, config, now)
        before = maintenance.count_objects(store.path)
        leftovers = maintenance.delete_leftovers(store.path, now)
        leftovers += append_intent.delete_finished_intents(store.beside, now - maintenance.STALE_SECONDS)
        outgoing.delete_stale_folders(store.beside.state)
        for folder in config.glob("projects/*/"):
            if not folder.is_symlink():
                new_file.sweep(folder)
        quarantine.delete_stale_folders(store.beside)
        expired = _expire(store, now - keep)
        maintenance.pack_store(store.path, lock, full=True, progress=progress)
        lost = lost_refs.forget_other_refs(store)
        if prune and lost:
            named = (
                lost[0].ref if len(lost) == 1 else f"{humanize.format_count(len(lost), 'ref')}, {lost[0].ref} first,"
            )
            are, them = ("is", "it") if len(lost) == 1 else ("are", "them")
            what = f"{named} {are} missing, and no command removed {them}: nothing was pruned"
            raise ConflictError(what, "`sessgit doctor --fix` restores what is lost.")
        final = _prune(store, index, lock) if prune else ()
        return Collected(before, maintenance.count_objects(store.path), leftovers, expired, final)


def doomed(store: Store) -> tuple[str, ...]:
    """The deleted sessions that a prune now would make final: an undo can bring them back until then."""
    deleted = delete.deleted_sessions(store.path)
    return tuple(sorted(_keeping(store, deleted)[1])) if deleted else ()


def _expire(store: Store, moment: float) -> int:
    """Deletes the refs that keep what operations took away before a moment."""
    limit = canonical.rfc3339(max(0.0, moment))
    old = {operation.id for operation in journal.read(store.beside) if operation.time < limit}
    kept = refs.read_all(store.path, layout.KEEP)
    return _drop(store, {r: tip for r, tip in kept.items() if r.removeprefix(layout.KEEP).partition("-")[0] in old})


def _prune(store: Store, index: Index, lock: int) -> tuple[str, ...]:
    """Whatever interrupts this, the next one finishes it: each part looks for itself what is left to be done."""
    with locks.prune_lock(store.beside, _LOCK_WAIT) as alone:
        if not alone:
            raise ConflictError(
                "a recorder or a command is writing", "The store was packed, but not pruned. Try again later."
            )
        deleted = delete.deleted_sessions(store.path)
        kept, final = _keeping(store, deleted)
        _drop(store, kept)
        transaction.move_all(store.path, delete.stray_moves(store.path, deleted))
        index.sync()
        forget.forget_sessions(store.path, deleted)
        forget.forget_unreachable(index)
        journal.redact_sessions(store.beside, deleted)
        maintenance.prune(store.path, (lock, alone))
        store.repo.refresh_packs()
        journal.redact_tags(store.beside, store.repo.has)
    for session in deleted:
        store.beside.lock(f"session-{session}").unlink(missing_ok=True)
        cursors.delete_cursor(store.beside, session)
        append_intent.delete_intent(store.beside, session)
    return tuple(sorted(final))


def _keeping(store: Store, sessions: set[str]) -> tuple[dict[str, str], set[str]]:
    """The refs that keep a commit of one of the sessions, in whatever history, and those sessions; of tracking refs
    those of the sessions' own branches and tags."""
    found, met = dict[str, str](), set[str]()
    for ref, tip in refs.read_all(store.path, layout.KEEP).items():
        try:
            commits = store.repo.first_parents(store.repo.peel(tip) or tip)
            own = {store.message(commit.id).get("Session") for commit in commits} & sessions
        except SessgitError:
            continue  # what cannot be read is nobody's
        if own:
            found[ref] = tip
            met |= own
    for ref, tip in refs.read_all(store.path, layout.REMOTES).items():
        space, name = layout.split_ref(ref)
        session = layout.session_of(name) if space in (layout.HEADS, layout.ARCHIVE) else ""
        if space == layout.TAGS:
            with suppress(SessgitError):
                session = store.message(store.repo.peel(tip) or tip).get("Session")
        if session in sessions:
            found[ref] = tip
            met.add(session)
    return found, met


def _drop(store: Store, kept: dict[str, str]) -> int:
    try:
        transaction.move_all(store.path, [Move(ref, tip, None) for ref, tip in kept.items()])
    except MovedError as error:
        raise ConflictError("a ref was just changed", "Try again.") from error
    return len(kept)
