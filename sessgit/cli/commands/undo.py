"""`sessgit undo`: what a command did, taken back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import completion, options

if TYPE_CHECKING:
    from sessgit.branch.undo import Undone

_NAMED = 5
"""So many files are named."""


def run(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="[OP]",
            help="An id that sessgit ops shows; the last one if left out.",
            autocompletion=completion.operations,
        ),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; show what would be.")] = False,
    as_json: options.Json = False,
) -> None:
    """Take back what a command did: the last one, or OP.

    Never what was recorded, and only while nothing came after it. The files that a fork wrote go too where they are
    unchanged, and what a merge or a pick appended is taken off again, if no client has it open. An undo can be
    undone: name its id. What would be lost otherwise stays under refs/keep/ in the store.
    """
    from sessgit.branch import undo as undoing

    here = invocation.read()
    here.check_store()
    done = undoing.undo(here.store, operation, here.config, here.now, dry_run=dry_run)
    if as_json:
        render.document("undo/v1", _json(done))
    else:
        render.lines(here, _page(here, done))


def _page(here: invocation.Invocation, done: Undone) -> Iterator[str]:
    from sessgit.branch import worktree
    from sessgit.store import layout

    verb = "Undone" if done.undo else "Would be undone"
    yield f"{verb}: {text.clean(done.operation.summary)}"
    for path in done.removed[:_NAMED]:
        yield f"{'Deleted' if done.undo else 'Would be deleted'}: {here.shown(str(path))}"
    if len(done.removed) > _NAMED:
        yield f"and {text.counted(len(done.removed) - _NAMED, 'file')} more beside it: --json names all"
    for path in done.cut:
        yield f"{'As it was before' if done.undo else 'Would be as it was before'}: {here.shown(str(path))}"
    for path in done.appended:
        yield f"{'Appended again to' if done.undo else 'Would be appended again to'}: {here.shown(str(path))}"
    for path in done.left:
        yield f"Left, since it has changed: {here.shown(str(path))}"
    if done.operation.undoes:
        for move in done.moves:
            session = move.ref.removeprefix(layout.HEADS)
            if move.old is None and session != move.ref and not layout.is_side(session):
                yield f"Its file: sessgit restore {layout.short(session)} writes what is not there"
    for folder, repository in worktree.left_by(here.store, done, here.here):
        yield f"Left: the worktree {here.shown(folder)}"
        yield f"It goes with:  git -C {shlex.quote(repository)} worktree remove {shlex.quote(folder)}"
    if done.undo:
        yield f"Back again: sessgit undo {done.undo.id}"


def _json(done: Undone) -> dict[str, object]:
    return {
        "undone": done.operation.id,
        "operation": done.undo.id if done.undo else None,
        "refs": [{"ref": move.ref, "before": move.old, "after": move.new} for move in done.moves],
        "removed": [str(path) for path in done.removed],
        "left": [str(path) for path in done.left],
        "cut": [str(path) for path in done.cut],
        "appended": [str(path) for path in done.appended],
    }
