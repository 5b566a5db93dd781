"""`sessgit undo`, `sessgit ops`: what commands did, and how to revert it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from sessgit.branch import undo as undoing
from sessgit.branch.undo import UndoResult
from sessgit.cli import frame, text
from sessgit.cli.frame import DRY_RUN, LIMIT, Answer, argument
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.store import layout, operations
from sessgit.store.operations import Move

_NAMED_FILES = 5


@frame.command("undo", needs="store")
def undo(
    cli: Invocation,
    operation: str = argument("OP", "An id from `sessgit ops` (default: the last one)."),
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Undo a command: the last one, or OP.

    Undo never removes recorded turns, and works only while nothing newer builds on the command. It also deletes the
    files that a fork wrote, if they are unchanged, and removes what a merge or a pick appended, if no client has the
    file open. An undo can be undone: name its id. Commits that the undo removes from all
    branches stay under refs/keep/ in the store.
    """
    result = undoing.undo_operation(cli.store, operation, cli.env.homes, cli.now, dry_run=dry_run)
    document = {
        "undone": result.operation.id,
        "operation_id": result.undo.id if result.undo else None,
        "refs": _refs(result.moves),
        **frame.attributes(result, "removed", "left", "cut", "appended"),
    }
    return Answer(document, _undone(cli, result))


def _undone(cli: Invocation, result: UndoResult) -> Iterator[str]:
    from sessgit.branch import worktree

    verb = "{}" if result.undo else "Would be {}"
    summary, command = text.clean(result.original.summary), result.original.command
    if command in ("merge", "pick"):  # the summary does not say it
        summary = f"{command} into {summary}"
    yield f"{verb.format('redone' if result.redone else 'undone').capitalize()}: {summary}"
    for path in result.removed[:_NAMED_FILES]:
        yield f"{verb.format('deleted').capitalize()}: {cli.shown(path)}"
    if len(result.removed) > _NAMED_FILES:
        yield f"and {text.counted(len(result.removed) - _NAMED_FILES, 'more file')}: --json lists all"
    for path in result.cut:
        yield f"{verb.format('restored').capitalize()}: {cli.shown(path)}"
    for path in result.appended:
        yield f"{'Turns appended to' if result.undo else 'Would append turns to'}: {cli.shown(path)}"
    for path in result.left:
        yield f"Kept, because it was changed since: {cli.shown(path)}"
    if result.operation.undoes:
        for move in result.moves:
            session = move.ref.removeprefix(layout.HEADS)
            if move.old is None and session != move.ref and not layout.is_side_branch(session):
                yield f"Restore its file: sessgit restore {layout.short_name(session)}"
    for folder, repository in worktree.worktrees_of_fork(cli.store, result, cli.local_path):
        yield f"Kept: the worktree {cli.shown(folder)}"
        yield f"Remove it:  git -C {shlex.quote(repository)} worktree remove {shlex.quote(folder)}"
    if result.undo:
        yield f"{'Undo' if result.redone else 'Redo'}: sessgit undo {result.undo.id}"


@frame.command("ops", reads=True)
def ops(cli: Invocation, limit: int | None = LIMIT) -> Answer:
    """List what commands did, newest first.

    Forks, edits, tags, archives, merges, picks and others, each with the id for `sessgit undo`. Recorded turns are not
    listed. `log` and `tree` show the state after an operation with --at-op.
    """
    listed = operations.list_operations(cli.store)[:limit]
    if not listed:
        cli.check_recorded()
    columns = (Column("yellow"), Column("dim", right=True), Column(), Column(least=12), Column("dim"))
    rows = [
        (
            text.clean(each.operation.id, 8),
            text.ago(cli, each.operation.time),
            text.clean(each.operation.command, 20),
            text.clean(each.operation.summary),
            "" if each.standing == "done" else f"({each.standing})",
        )
        for each in listed
    ]
    operations_json = [
        {
            **frame.attributes(each.operation, "id", "time", "command", "summary"),
            "files": list(each.operation.files),
            "standing": each.standing,
            "undoes": each.operation.undoes or None,
            "refs": _refs(each.operation.moves),
            "appended": list(each.operation.appended),
            "cut": list(each.operation.cut),
        }
        for each in listed
    ]
    return Answer({"operations": operations_json}, text.table(cli, columns, rows))


def _refs(moves: Sequence[Move]) -> list[dict[str, object]]:
    return [{"ref": move.ref, "before": move.old, "after": move.new} for move in moves]
