"""The store as it was after an operation, for a command with --at-op."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessgit.cli import blocks, frame, render, text
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.history.at_operation import PastStore
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.store.index import Index


@frozen
class AsOf:
    """The store as of an operation, and the index of it as it is now."""

    past: PastStore
    now: Index


def read(cli: Invocation, at_op: str) -> AsOf | None:
    """Give the invocation the index as of an operation, and return what was there then; None if none is named.

    Raises NotFoundError if no operation matches, or several do, and ConflictError if it was never completed.
    """
    if not at_op:
        return None
    from sessgit.history import at_operation
    from sessgit.store.index import PastIndex

    now = cli.index
    past = at_operation.as_of_operation(cli.context, at_op)
    cli.index = PastIndex(now, past.tips, past.tags)
    return AsOf(past, now)


def target(cli: Invocation, asof: AsOf | None, address: str) -> ResolvedTarget:
    """Return what the address names; as of an operation nothing is recorded for it.

    Raises NotFoundError, with the reason if it names something only now.
    """
    from sessgit.cli import operands
    from sessgit.history import resolve

    if asof is None:
        return operands.target(cli, address)
    try:
        resolved = resolve.resolve_target(cli.index, resolve.resolve_address(cli.index, address), cli.where)
    except AmbiguousError:
        raise
    except NotFoundError as error:
        raise _missing(cli, asof, address) or error from None
    if resolved.guess:
        render.tell(f"({resolved.guess})")
    return resolved


def headline(cli: Invocation, asof: AsOf | None) -> Iterator[str]:
    """Yield the line above a page that says as of when it is; nothing if it is as of now."""
    if asof is None:
        return
    from sessgit.model import canonical

    past, operation = asof.past, asof.past.operation
    notes = [f"{text.counted(past.later, 'operation')} ago" if past.later else "the last operation"]
    if past.listed.standing == "undone":
        notes.append("undone since")
    moment = canonical.seconds(operation.time) or 0.0
    when = time.strftime(text.clock(cli.now, [moment]), time.localtime(moment))
    before, after = f"As of {when}, after “", f"” ({', '.join(notes)})"
    room = max(12, cli.width - text.width(before) - text.width(after))
    yield from blocks.paragraph(cli, before + text.cut(_summary(asof), room) + after, "dim")
    if past.lost:
        count = text.counted(len(past.lost), "conversation")
        yield from blocks.paragraph(cli, f"Not shown: {count} deleted for good by sessgit gc --prune.", "dim")


def as_json(asof: AsOf | None) -> dict[str, Any] | None:
    """Return what `at_op` holds in documents: null as of now."""
    if asof is None:
        return None
    past, operation = asof.past, asof.past.operation
    return {
        **frame.attributes(operation, "id", "time", "command", "summary"),
        "standing": past.listed.standing,
        "later": past.later,
        "lost": list(past.lost),
    }


def _summary(asof: AsOf, limit: int = 500) -> str:
    operation = asof.past.operation
    return text.clean(operation.summary, limit) or text.clean(operation.command) or operation.id


def _missing(cli: Invocation, asof: AsOf, address: str) -> NotFoundError | None:
    """Return why an address names nothing as of then if it names something now, or if that was deleted for good."""
    from sessgit.history import resolve
    from sessgit.model.ids import Address
    from sessgit.store.layout import session_of

    word = resolve.resolve_address(asof.now, address).session
    try:
        name = resolve.resolve_target(asof.now, Address(word), cli.where).branch.name
    except NotFoundError:
        lost = [session for session in asof.past.lost if session.startswith(word)]
        name = lost[0] if len(lost) == 1 and len(word) >= resolve.SHORTEST_PREFIX else ""
    if session_of(name) in asof.past.lost:
        hint = "`sessgit gc --prune` made the deletion final."
        return NotFoundError(f"{name[:8]} as it was then was deleted for good", hint)
    if name and cli.index.branch(name) is None:
        hint = f"`sessgit log {cli.ident(name)}` shows it as it is now."
        return NotFoundError(f"{cli.ident(name)} did not exist after “{_summary(asof, 60)}”", hint)
    return None
