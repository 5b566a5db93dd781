"""Refs that disappeared although no command removed them: found in what is recorded of them, and restored.

git keeps most refs in one file. A power loss may truncate or empty it, which then looks like a file with fewer refs.
What refs held is recorded next to the repository whenever they are packed; cursors and operations name commits, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from sessgit.model import ids
from sessgit.model.finding import Finding
from sessgit.model.frozen import frozen
from sessgit.store import layout, operations, recorder_state, refs
from sessgit.store.operations import Move, Operation
from sessgit.store.private_files import path_exists
from sessgit.store.store import Store

_MOST_FINDINGS = 20
"""So many are reported one by one."""
_FIX_HINT = "sessgit doctor --fix"


@frozen
class LostRef:
    """A ref that is gone, and the latest commit that it is known to have held."""

    ref: str
    oid: str


def lost_refs(store: Store, session: str = "") -> list[LostRef]:
    """Return the refs that disappeared without an operation that removed them, and whose commits no other ref of the
    session has, by name; also refs whose file has no object id, or the id of an object that never existed. With
    `session` only those of that session."""
    if store.paths.purging.exists():  # it gives tags other names before it says so
        return []
    known, current = _known_refs(store)
    recorded = {ref: at for ref, at in operations.recorded_refs(store.path).items() if ref not in current}
    known = {ref: tips for ref, tips in known.items() if ref not in current}
    since = {mark: operations.read(store.paths, mark) for mark in {0, *(mark for _, mark in recorded.values())}}
    later = {mark: {move.ref: move for one in every for move in one.moves} for mark, every in since.items()}
    deleted = {mark: _deleted_sessions(every) for mark, every in since.items()}
    lost, there = list[LostRef](), dict(current)
    for ref, tips in sorted(known.items()):
        mark = recorded[ref][1] if ref in recorded else 0
        last = later[mark].get(ref)
        if (last is not None and last.new is None) or ref.startswith(layout.KEEP):
            continue
        # A record is out of date if the session was deleted since, and maybe recorded again, or if an operation moved
        # the ref since, maybe back.
        has_moved = last is not None and not store.repo.read_problem(last.new or "")
        is_past = has_moved or layout.session_of_ref(ref) in deleted[mark]
        since_then = tips[1:] if ref in recorded and is_past else tips
        tip = _latest_commit(store, [*since_then, *([last.new] if last is not None and last.new else [])])
        # A session's head comes before its side branches: where it is lost, so may they be.
        if tip and not _is_accounted_for(store, ref, tip, there):
            lost.append(LostRef(ref, tip))
            there[ref] = tip
    return [one for one in lost if session in ("", layout.session_of_ref(one.ref))]


def restore_lost(store: Store, session: str = "") -> int:
    """Restore the lost refs, with those that keep data for undo; return how many. A ref file without an object id is
    moved to `state/damaged/`, so that git can move refs again."""
    if refs.invalid_lines(store.path):
        refs.remove_invalid_lines(store.path)
    lost = lost_refs(store, session)
    current, names = refs.read_all(store.path), {one.ref for one in lost}
    hollow = [ref for ref in refs.refs_without_id(store.path) if ref in names]
    for ref in hollow:
        refs.quarantine_ref(store.path, ref)
    if lost:
        kept = [
            LostRef(ref, oid)
            for ref, (oid, _) in operations.recorded_refs(store.path).items()
            if ref.startswith(layout.KEEP) and ref not in current and not store.repo.read_problem(oid)
        ]
        moves = [Move(one.ref, current.get(one.ref), one.oid) for one in (*lost, *kept)]
        operations.move_refs(store.path, [move for move in moves if move.old != move.new])
    return len(lost)


def forget_other_refs(store: Store) -> list[LostRef]:
    """Return the lost refs, and refs without an object id; if none is lost, forget recorded refs that no longer
    exist."""
    lost, current = lost_refs(store), refs.read_all(store.path)
    names = {one.ref for one in lost}
    if not lost:
        recorded = operations.recorded_refs(store.path)
        operations.forget_refs(store.path, [ref for ref in recorded if ref not in current])
    return [*lost, *(LostRef(ref, "") for ref in refs.refs_without_id(store.path) if ref not in names)]


def lost_ref_findings(store: Store) -> Iterator[Finding]:
    """Yield the findings about lost refs."""
    lost, current, hollow = lost_refs(store), refs.read_all(store.path), refs.refs_without_id(store.path)
    for one in lost[:_MOST_FINDINGS]:
        if one.ref in hollow:
            continue  # another check reports it
        what = "it holds an id of no object" if one.ref in current else "it is missing, and no command removed it"
        yield Finding("damage", "ref", one.ref, what, _FIX_HINT, (one.oid,))
    if len(lost) > _MOST_FINDINGS:
        yield Finding("damage", "ref", "refs", f"{len(lost) - _MOST_FINDINGS:,} more are missing", _FIX_HINT)


def _known_refs(store: Store) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the commits that each ref is known to have had: when it was packed or created, when its transcript was
    recorded last, and when an operation moved it whose files still exist. Then return the present refs, except those
    without an object id, or with the id of an unknown missing object."""
    every, hollow = refs.read_all(store.path), set(refs.refs_without_id(store.path))
    current = {ref: oid for ref, oid in every.items() if ref not in hollow}
    suspect = {ref for ref, oid in current.items() if store.repo.read_problem(oid) == "missing"}
    known: dict[str, list[str]] = {ref: [oid] for ref, (oid, _) in operations.recorded_refs(store.path).items()}
    for ref in hollow & every.keys():  # it was packed, too
        known.setdefault(ref, []).append(every[ref])
    for session, commit in _recorded_cursors(store, current.keys() - suspect):
        known.setdefault(layout.head_ref(session), []).append(commit)
    for operation in operations.read(store.paths):
        moves = [move for move in operation.moves if move.new and move.ref.startswith(layout.REF_SPACES)]
        missing = [move for move in moves if move.ref not in current or move.ref in suspect]
        if missing and any(map(path_exists, operation.files)):
            for move in missing:
                known.setdefault(move.ref, []).append(str(move.new))
    wrong = {ref for ref in suspect if ref in known and current[ref] not in known[ref]}
    return known, {ref: oid for ref, oid in current.items() if ref not in wrong}


def _recorded_cursors(store: Store, current: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield each session with a cursor but without an intact ref, and the last recorded commit."""
    for path in store.paths.state.glob("*.json"):
        session = path.stem
        places = (layout.head_ref(session), layout.archive_ref(session), layout.tombstone_ref(session))
        if not ids.is_branch(session) or any(place in current for place in places):
            continue
        cursor = recorder_state.load_cursor(store.paths, session)
        if cursor is not None and cursor.commit:
            yield session, cursor.commit


def _deleted_sessions(every: Iterable[Operation]) -> set[str]:
    """Return the sessions that one of the operations deleted, even if they were restored later."""
    moves = (move for operation in every for move in operation.moves)
    return {layout.session_of_ref(move.ref) for move in moves if move.new and move.ref.startswith(layout.DELETED)}


def _latest_commit(store: Store, tips: Iterable[str]) -> str:
    """Return the readable commit that has the most of the others as ancestors, ``""`` if none can be read."""
    best = ""
    for tip in tips:
        if store.repo.read_problem(tip) or (best and not store.repo.is_ancestor(best, tip)):
            continue
        best = tip
    return best


def _is_accounted_for(store: Store, ref: str, tip: str, current: Mapping[str, str]) -> bool:
    """Return whether the commits of a missing ref are where they should be by now: archived, deleted, or on another
    branch of the session."""
    space = next((space for space in layout.REF_SPACES if ref.startswith(space)), "")
    name = ref.removeprefix(space)
    session = layout.session_of(name)
    if space in (layout.TAGS, ""):
        return False
    is_deleted = layout.tombstone_ref(session) in current
    if space == layout.DELETED or not (is_deleted or layout.is_side_branch(name)):
        return any(place in current for place in (layout.head_ref(session), layout.archive_ref(session)))
    tips = {
        oid
        for other, oid in current.items()
        if other.startswith(layout.BRANCH_SPACES) and layout.session_of_ref(other) == session
    }
    return is_deleted or not tips or any(store.repo.is_ancestor(tip, other) for other in tips)
