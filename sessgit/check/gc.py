"""`gc`: packs the store, and with `--prune` makes deletions final."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.branch import delete, lost_refs
from sessgit.branch import merge as merges
from sessgit.errors import ConflictError, MovedError, SessgitError
from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress, no_progress
from sessgit.store import fulltext, layout, locks, maintenance, operations, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.maintenance import ObjectCount
from sessgit.store.operations import Move
from sessgit.store.store import Store

_LOCK_WAIT = 10.0


@frozen
class Collected:
    """The objects before and after, the numbers of removed leftovers and expired undo refs, and the deleted sessions
    that are gone for good."""

    before: ObjectCount
    after: ObjectCount
    leftovers: int
    expired: int
    final: tuple[str, ...] = ()


def collect(context: Context, *, keep: float, prune: bool = False, progress: Progress = no_progress) -> Collected:
    """Pack the store, and delete what undo kept for more than `keep` seconds, and what interrupted commands left, also
    in the client's folder. With `prune`, deletions are final: all unreachable objects go, and the words of deleted
    sessions. Raises ConflictError if another process packs the store, or writes to it before a prune."""
    store, homes, now = context.store, context.homes, context.now()
    store.repo.release()
    with locks.maintenance_lock(store.paths, _LOCK_WAIT) as lock:
        if not lock:
            raise ConflictError("another process is packing the store", "Nothing was changed. Try again later.")
        operations.finish_interrupted(store)
        merges.delete_unfinished(store, homes, now)
        merges.finish_merges(store, homes, now)
        before = maintenance.count_objects(store.path)
        leftovers = maintenance.delete_leftovers(store.path, now)
        leftovers += recorder_state.delete_finished_intents(store.paths, now - maintenance.STALE_SECONDS)
        for agent, home in agents.clients(homes):
            for folder in agent.home.transcript_folders(home):
                agent_files.sweep(folder)
        expired = _expire(store, now - keep)
        maintenance.pack_store(store.path, lock, full=True, progress=progress)
        lost = lost_refs.forget_other_refs(store)
        if prune and lost:
            is_one, count = len(lost) == 1, humanize.format_count(len(lost), "ref")
            subject = f"{lost[0].ref} is" if is_one else f"{count}, {lost[0].ref} first, are"
            what = f"{subject} missing, and no command removed {'it' if is_one else 'them'}: nothing was pruned"
            raise ConflictError(what, "`sessgit doctor --fix` restores what is lost.")
        final = _prune(context, lock) if prune else ()
        return Collected(before, maintenance.count_objects(store.path), leftovers, expired, final)


def doomed(store: Store) -> tuple[str, ...]:
    """Return the deleted sessions that a prune would make final, and an undo can still restore."""
    deleted = refs.deleted_sessions(store.path)
    return tuple(sorted({session for _, session in _refs_of_sessions(store, deleted)})) if deleted else ()


def _expire(store: Store, moment: float) -> int:
    """Delete the undo refs of the operations before a moment; return how many."""
    limit = canonical.rfc3339(max(0.0, moment))
    old = {operation.id for operation in operations.read(store.paths) if operation.time < limit}
    kept = refs.read_all(store.path, layout.KEEP)
    return _delete_refs(store, [ref for ref in kept if ref.removeprefix(layout.KEEP).partition("-")[0] in old])


def _prune(context: Context, lock: int) -> tuple[str, ...]:
    """Make deletions final; return the deleted sessions. Each step finds its own work, so that the next prune can
    finish an interrupted one."""
    store = context.store
    with locks.prune_lock(store.paths, _LOCK_WAIT) as alone:
        if not alone:
            hint = "The store was packed, but not pruned. Try again later."
            raise ConflictError("a recorder or a command is writing", hint)
        deleted = refs.deleted_sessions(store.path)
        kept = _refs_of_sessions(store, deleted)
        _delete_refs(store, {ref for ref, _ in kept})
        operations.move_refs(store.path, delete.stray_moves(store.path, deleted))
        context.index.sync()
        fulltext.forget_sessions(store.path, deleted)
        context.index.forget_unreachable()
        operations.redact_sessions(store.paths, deleted)
        maintenance.prune(store.path, (lock, alone))
        store.repo.refresh_packs()
        operations.redact_tags(store.paths, store.repo.has)
    for session in deleted:
        store.paths.lock(f"session-{session}").unlink(missing_ok=True)
        recorder_state.delete_cursor(store.paths, session)
        recorder_state.delete_intent(store.paths, session)
    return tuple(sorted({session for _, session in kept}))


def _refs_of_sessions(store: Store, sessions: set[str]) -> set[tuple[str, str]]:
    """Return the undo refs whose histories hold commits of the sessions, and the tracking refs of their branches and
    tags, each with every session that it keeps."""
    owners = set[tuple[str, str]]()
    for ref, tip in refs.read_all(store.path, layout.KEEP).items():
        with suppress(SessgitError):
            commits = store.repo.first_parents(store.repo.peel(tip) or tip)
            owners |= {(ref, session) for commit in commits if (session := store.message(commit.id).get("Session"))}
    for ref, tip in refs.read_all(store.path, layout.REMOTES).items():
        space, name = layout.split_ref(ref)
        session = layout.session_of(name) if space in layout.BRANCH_SPACES else ""
        if space == layout.TAGS:
            with suppress(SessgitError):
                session = store.message(store.repo.peel(tip) or tip).get("Session")
        owners.add((ref, session))
    return {(ref, session) for ref, session in owners if session in sessions}


def _delete_refs(store: Store, names: Collection[str]) -> int:
    tips = refs.read_all(store.path)
    try:
        operations.move_refs(store.path, [Move(ref, tips[ref], None) for ref in names if ref in tips])
    except MovedError as error:
        raise ConflictError("a ref was just changed", "Try again.") from error
    return len(names)
