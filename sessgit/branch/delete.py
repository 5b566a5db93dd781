"""Deletes sessions.

Their refs are deleted, and a tombstone keeps them from being recorded again. Until `sessgit gc --prune`, undo restores
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sessgit import agents
from sessgit.errors import ConflictError, MovedError, NotFoundError, SessgitError
from sessgit.history import client_files, resolve
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count
from sessgit.store import layout, locks, operations, refs
from sessgit.store.context import Context, Homes
from sessgit.store.index import Branch, Index
from sessgit.store.operations import Move, Operation
from sessgit.store.store import Store

_LOCK_WAIT = 10.0
_OID = re.compile(r"[0-9a-f]{40}")


@frozen
class DeletionPlan:
    """A session to delete: its head, the numbers of its rewound branches and of those of other machines, the tags that
    are deleted with it, its forks and children, which stay, the sessions into which its turns were merged with their
    number, and the client's own file, which stays, if there is one; `is_lost` says that the client had one here."""

    branch: Branch
    rewound: int
    elsewhere: int
    tags: tuple[str, ...]
    forks: tuple[str, ...]
    children: tuple[str, ...]
    merged: tuple[tuple[str, int], ...]
    transcript: Path | None
    is_lost: bool

    @property
    def session(self) -> str:
        return self.branch.name


def plan_deletion(index: Index, sessions: Sequence[str], homes: Homes) -> list[DeletionPlan]:
    """Return what a deletion of the sessions would remove; raises ConflictError if one is open in a client."""
    live, paths = agents.open_sessions(homes), layout.StorePaths(index.path)
    plans = list[DeletionPlan]()
    every, returned = resolve.list_tags(index), index.merged_elsewhere()
    for session in dict.fromkeys(sessions):
        branch = index.branch(session)
        if branch is None:
            raise NotFoundError(f"{session} no longer exists", "`sessgit ls --all` lists all conversations.")
        if branch.state.agent_id in live:
            raise ConflictError(
                f"{session[:8]} is open in a client", "Nothing was deleted. Close it there, and try again."
            )
        own = [one for one in every if layout.session_of(one.branch) == session]
        shared = [one for one in own if index.sessions_holding([one.commit]) - set(sessions)]
        sides, merged = index.side_branches(session), dict[str, set[tuple[str, int]]]()
        for source, into in returned.items():
            for name, turns in into.items() if layout.session_of(source) == session else ():
                numbers = {(source, number) for some in turns for number in some}
                merged.setdefault(layout.session_of(name), set()).update(numbers)
        plans.append(
            DeletionPlan(
                branch,
                sum(map(layout.is_rewound_branch, sides)),
                sum(map(layout.is_other_version, sides)),
                tuple(one.name for one in own if one not in shared),
                tuple(fork.name for fork in index.forks_of(session) if fork.name not in sessions),
                tuple(child.name for child in index.children_of(session) if child.name not in sessions),
                tuple((name, len(turns)) for name, turns in sorted(merged.items()) if name not in (*sessions, session)),
                client_files.transcript_file(homes, branch.state, paths),
                client_files.is_lost(branch.state, homes, paths),
            )
        )
    return plans


def delete_sessions(context: Context, going: Sequence[DeletionPlan]) -> Operation:
    """Delete the sessions, all or none; raises NotFoundError if another process just deleted one."""
    store = context.store
    now = context.now()
    names = [one.session for one in going]
    summary = f"{names[0][:8]}: deleted" if len(names) == 1 else f"{format_count(len(names), 'conversation')} deleted"

    def attempt() -> Operation:
        moves = deletion_moves(store, going, now)
        going_refs = {move.ref for move in moves}
        for name in names:
            if layout.head_ref(name) not in going_refs and layout.archive_ref(name) not in going_refs:
                hint = "Nothing was deleted. `sessgit ls --all` lists all conversations."
                raise NotFoundError(f"{name} no longer exists", hint)  # it would get a tombstone without tips
        return operations.perform_operation(store, "delete", summary, moves, now)

    operation = operations.retry_moved(store, "the branches kept changing while they were deleted", attempt)
    wait_for_recorders(store, names)
    context.index.sync()
    return operation


def stray_moves(store: Path, sessions: set[str]) -> list[Move]:
    """Return the moves that delete branches of deleted sessions which a running recorder has just written."""
    tips = refs.read_all(store)
    names = {ref: ref.removeprefix(space) for space in layout.BRANCH_SPACES for ref in tips if ref.startswith(space)}
    left = {layout.session_of(name) for name in names.values()} & sessions
    back = {session for session in left if layout.head_ref(session) in tips or layout.archive_ref(session) in tips}
    return [Move(ref, tips[ref], None) for ref, name in names.items() if layout.session_of(name) in left - back]


def deletion_moves(
    store: Store, going: Sequence[DeletionPlan], now: float, stones: Mapping[str, str] | None = None
) -> list[Move]:
    """Return the moves that delete the sessions. Each tombstone is written in the same transaction that deletes the
    branches.

    `stones` are tombstones by session that were made elsewhere. Any other one tells what was deleted: the tips of the
    session's branches, what its tags led to, what remotes had of it when they were last seen, as far as a branch
    here leads to that: what was only seen there was never here; and what an earlier tombstone tells.
    """
    current = refs.read_all(store.path)
    own: dict[str, list[str]] = {one.session: [] for one in going}
    tips, seen = ({one.session: set[str]() for one in going} for _ in range(2))
    for ref, oid in current.items():
        space, name = layout.split_ref(ref)
        session = layout.session_of(name)
        if session in own and space in layout.BRANCH_SPACES:
            if ref == space + name:
                own[session].append(ref)
                tips[session].add(oid)
            else:
                seen[session].add(oid)
    tree = store.repo.edit_tree(None, {})
    moves = list[Move]()
    for one in going:
        tags = [ref for name in one.tags if (ref := layout.TAGS + name) in current]
        had = tips[one.session]
        seen_too = {tip for tip in seen[one.session] if any(store.repo.is_ancestor(tip, other) for other in had)}
        stone = layout.tombstone_ref(one.session)
        # A deletion that was killed may have deleted some of the refs already, and its tombstone names them.
        earlier = deleted_tips(store, one.session, current[stone]) if stone in current else None
        gone = sorted({*had, *seen_too, *(current[ref] for ref in tags), *(earlier or ())})
        message = messages.format_message(
            Message("deleted", (("Session", one.session), *(("Tip", tip) for tip in gone)))
        )
        made = (stones or {}).get(one.session) or store.repo.write_commit(tree, [], message, int(now))
        moves.append(Move(stone, current.get(stone), made))
        moves += [Move(ref, current[ref], None) for ref in [*own[one.session], *tags]]
    return moves


def deleted_tips(store: Store, session: str, tombstone: str) -> frozenset[str] | None:
    """Return the tips that were deleted with a session according to its tombstone, None if it is not a tombstone of
    it."""
    try:
        message = store.message(tombstone)
    except SessgitError:
        return None
    if message.get("Session") != session:
        return None
    return frozenset(tip for tip in message.all("Tip") if _OID.fullmatch(tip))


def wait_for_recorders(store: Store, sessions: Sequence[str]) -> None:
    """Wait for recorders of the sessions to finish, and delete the rewound branches that they wrote meanwhile."""
    for session in sessions:
        if store.paths.lock(f"session-{session}").exists():
            with locks.session_lock(store.paths, session, _LOCK_WAIT):
                pass
    with suppress(MovedError):  # then gc takes them away
        operations.move_refs(store.path, stray_moves(store.path, set(sessions)))
