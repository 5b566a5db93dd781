"""`sessgit ops`: what commands did to the store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sessgit.cli import frame, render, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.store.operations import ListedOperation


@frame.command("ops", reads=True)
def run(
    here: Invocation,
    limit: options.Limit = None,
) -> Answer:
    """List what commands did, newest first.

    Forks, edits, tags, archives, merges, picks and others, each with the id for `sessgit undo`. Recorded turns are not
    listed. `log` and `tree` show the state after an operation with --at-op.
    """
    from sessgit.store import operations

    found = operations.list_operations(here.store)[:limit]
    if not found:
        here.check_recorded()
    return Answer(lambda: {"operations": [_json(one) for one in found]}, _page(here, found))


def _page(here: Invocation, found: list[ListedOperation]) -> Iterator[str]:
    from sessgit.model import canonical

    paint = render.Paint(here.colour)
    if not found:
        return
    rows = [(one, text.ago(canonical.seconds(one.operation.time), here.now)) for one in found]
    wide, command = (max(map(len, column)) for column in (
        [ago for _, ago in rows], [text.clean(one.operation.command, 20) for one in found]
    ))  # fmt: skip
    for one, ago in rows:
        note = "" if one.standing == "done" else f"  ({one.standing})"
        room = here.width - 8 - wide - command - 6 - len(note)
        summary = text.cut(text.clean(one.operation.summary), room)
        head = f"{paint('yellow', text.clean(one.operation.id, 8))}  {paint('dim', ago.rjust(wide))}"
        yield f"{head}  {text.clean(one.operation.command, 20).ljust(command)}  {summary}{paint('dim', note)}"


def _json(one: ListedOperation) -> dict[str, object]:
    operation = one.operation
    return {
        "id": operation.id,
        "time": operation.time,
        "command": operation.command,
        "summary": operation.summary,
        "standing": one.standing,
        "undoes": operation.undoes or None,
        "refs": [{"ref": move.ref, "before": move.old, "after": move.new} for move in operation.moves],
        "files": list(operation.files),
        "appended": list(operation.wrote.appended),
        "cut": list(operation.wrote.cut),
    }
