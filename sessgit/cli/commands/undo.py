"""`sessgit undo`: what a command did, taken back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, text
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.undo import UndoResult

_NAMED = 5
"""So many files are named."""


@frame.command("undo", needs="store")
def run(
    here: Invocation,
    operation: Annotated[
        str,
        typer.Argument(
            metavar="[OP]",
            help="An id from `sessgit ops` (default: the last one).",
            autocompletion=completion.operations,
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")] = False,
) -> Answer:
    """Undo a command: the last one, or OP.

    Undo never removes recorded turns, and works only while nothing newer builds on the command. It also deletes the
    files that a fork wrote, if they are unchanged, and removes what a merge or a pick appended, if no client has the
    file open. An undo can be undone: name its id. What would be lost otherwise stays under refs/keep/ in the store.
    """
    from sessgit.branch import undo as undoing

    done = undoing.undo_operation(here.store, operation, here.config, here.now, dry_run=dry_run)
    return Answer(lambda: _json(done), _page(here, done))


def _page(here: Invocation, done: UndoResult) -> Iterator[str]:
    from sessgit.branch import worktree
    from sessgit.store import layout

    verb = "Undone" if done.undo else "Would be undone"
    yield f"{verb}: {text.clean(done.operation.summary)}"
    for path in done.removed[:_NAMED]:
        yield f"{'Deleted' if done.undo else 'Would be deleted'}: {here.shown(str(path))}"
    if len(done.removed) > _NAMED:
        yield f"and {text.counted(len(done.removed) - _NAMED, 'more file')}: --json lists all"
    for path in done.cut:
        yield f"{'Restored' if done.undo else 'Would be restored'}: {here.shown(str(path))}"
    for path in done.appended:
        yield f"{'Turns appended to' if done.undo else 'Would append turns to'}: {here.shown(str(path))}"
    for path in done.left:
        yield f"Kept, because it was changed since: {here.shown(str(path))}"
    if done.operation.undoes:
        for move in done.moves:
            session = move.ref.removeprefix(layout.HEADS)
            if move.old is None and session != move.ref and not layout.is_side_branch(session):
                yield f"Restore its file: sessgit restore {layout.short_name(session)}"
    for folder, repository in worktree.worktrees_of_fork(here.store, done, here.here):
        yield f"Kept: the worktree {here.shown(folder)}"
        yield f"Remove it:  git -C {shlex.quote(repository)} worktree remove {shlex.quote(folder)}"
    if done.undo:
        yield f"Redo: sessgit undo {done.undo.id}"


def _json(done: UndoResult) -> dict[str, object]:
    return {
        "undone": done.operation.id,
        "operation_id": done.undo.id if done.undo else None,
        "refs": [{"ref": move.ref, "before": move.old, "after": move.new} for move in done.moves],
        "removed": [str(path) for path in done.removed],
        "left": [str(path) for path in done.left],
        "cut": [str(path) for path in done.cut],
        "appended": [str(path) for path in done.appended],
    }
