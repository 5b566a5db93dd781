"""The store as a command shows it that was asked for an operation: as it was when that had been done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sessgit.cli import render, text
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, NotFoundError

if TYPE_CHECKING:
    from sessgit.history.at_operation import PastStore
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.store.index import Index


@dataclass(frozen=True, slots=True)
class AsOf:
    """The store as of an operation, and the index of it as it is now."""

    past: PastStore
    now: Index


def read(here: Invocation, at_op: str) -> AsOf | None:
    """Give the invocation the index as of an operation, and return what was there then; None if none is named.

    Raises NotFoundError where no operation fits, or several do, and ConflictError where it was never done.
    """
    if not at_op:
        return None
    from sessgit.history import at_operation
    from sessgit.store.sqlite.ref_snapshot import PastIndex

    now = here.index
    found = at_operation.as_of_operation(here.store, now, at_op)
    here.index = PastIndex(now, found.tips, found.tags)
    return AsOf(found, now)


def target(here: Invocation, asof: AsOf | None, address: str) -> ResolvedTarget:
    """What the address names; as of an operation nothing is recorded for it.

    Raises NotFoundError, with the reason, where it names something only now.
    """
    from sessgit.cli import session_argument

    if asof is None:
        return session_argument.target(here, address)
    from sessgit.history import resolve

    try:
        found = resolve.resolve_target(here.index, resolve.resolve_address(here.index, address), here.where)
    except AmbiguousError:
        raise
    except NotFoundError as error:
        raise _missing(here, asof, address) or error from None
    if found.guess:
        render.tell(f"({found.guess})")
    return found


def headline(here: Invocation, asof: AsOf | None) -> Iterator[str]:
    """The line above a page that says as of when it is; nothing above that of now."""
    if asof is None:
        return
    operation = asof.past.operation
    notes = [f"{text.counted(asof.past.later, 'operation')} ago" if asof.past.later else "the last operation"]
    if asof.past.listed.standing == "undone":
        notes.append("undone since")
    moment = _moment(asof)
    when = time.strftime(text.clock(here.now, [moment]), time.localtime(moment))
    before, after = f"As of {when}, after “", f"” ({', '.join(notes)})"
    summary = text.clean(operation.summary) or text.clean(operation.command) or operation.id
    room = max(12, here.width - text.width(before) - text.width(after))
    paint = render.Paint(here.colour)
    yield from (paint("dim", line) for line in text.wrapped(before + text.cut(summary, room) + after, here.width))
    if asof.past.lost:
        gone = f"Not shown: {text.counted(len(asof.past.lost), 'conversation')} deleted for good by sessgit gc --prune."
        yield from (paint("dim", line) for line in text.wrapped(gone, here.width))


def as_json(asof: AsOf | None) -> dict[str, Any] | None:
    """What `at_op` holds in documents: null as of now."""
    if asof is None:
        return None
    operation = asof.past.operation
    return {
        "id": operation.id,
        "time": operation.time,
        "command": operation.command,
        "summary": operation.summary,
        "standing": asof.past.listed.standing,
        "later": asof.past.later,
        "lost": list(asof.past.lost),
    }


def _missing(here: Invocation, asof: AsOf, address: str) -> NotFoundError | None:
    """Why an address names nothing as of then that it names now, or that is gone for good; None for any other."""
    from sessgit.history import resolve
    from sessgit.model.address import Address
    from sessgit.store.layout import session_of

    word = resolve.resolve_address(asof.now, address).session
    try:
        name = resolve.resolve_target(asof.now, Address(word), here.where).branch.name
    except NotFoundError:
        fitting = [one for one in asof.past.lost if len(word) >= resolve.SHORTEST_PREFIX and one.startswith(word)]
        name = fitting[0] if len(fitting) == 1 else ""
    if session_of(name) in asof.past.lost:
        return NotFoundError(
            f"{name[:8]} as it was then was deleted for good", "`sessgit gc --prune` made the deletion final."
        )
    if name and here.index.branch(name) is None:
        return NotFoundError(
            f"{here.ident(name)} did not exist {_after(asof)}",
            f"`sessgit log {here.ident(name)}` shows it as it is now.",
        )
    return None


def _after(asof: AsOf) -> str:
    operation = asof.past.operation
    return f"after “{text.clean(operation.summary, 60) or text.clean(operation.command) or operation.id}”"


def _moment(asof: AsOf) -> float:
    from sessgit.model import canonical

    return canonical.seconds(asof.past.operation.time) or 0.0
