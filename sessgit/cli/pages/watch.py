"""A line for each change of the store, for a person or for a program."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.watch import WatchEvent
from sessgit.model import canonical
from sessgit.store import layout

_ADDRESS = 13
_TOOLS = 16
_TOKENS = 6
_ROOM = 70
"""Columns from which on there is room for a turn's tools."""

_STATES = {
    "archive": "archived",
    "unarchive": "unarchived",
    "delete": "deleted",
    "gone": "branch gone",
    "elsewhere": "continued in another version",
}


def full(here: Invocation, changes: Sequence[WatchEvent], now: float) -> Iterator[str]:
    """The lines, each as wide as the terminal at most."""
    paint = Paint(here.colour)
    for change in changes:
        stamp, place = _time(change, now), _place(change)
        head = f"{paint('dim', stamp)}  {paint('yellow', place.ljust(_ADDRESS))}  "
        columns = max(12, here.width - text.width(f"{stamp}  {place.ljust(_ADDRESS)}  "))
        yield (
            head + (_turn(paint, change, columns, here.width) if change.event == "turn" else _other(change, columns))
        )


def as_json(change: WatchEvent) -> str:
    """Return the change as JSON on one line."""
    value = {
        "event": change.event,
        "time": change.time or None,
        "id": change.branch,
        "turn": change.turn,
        "commit": change.commit,
        "text": change.text,
        "from": change.origin or None,
        "new": not change.grown,
        "model": change.model or None,
        "tools": dict(change.tools),
        "tokens": change.tokens.as_json() if change.tokens else None,
        "title": change.title,
        "project": change.project,
    }
    return json.dumps({"schema": "sessgit.watch/v1", **value})


def _time(change: WatchEvent, now: float) -> str:
    """When it was said or done; where nobody noted that, when it was seen."""
    found = canonical.seconds(change.time)
    moment = now if found is None else found
    return time.strftime(text.clock(now, [moment]), time.localtime(moment))


def _place(change: WatchEvent) -> str:
    turn = f"@{change.turn}" if change.turn is not None and change.event in ("turn", "tag", "untag") else ""
    return canonical.printable(layout.short_name(change.session) + turn)


def _aside(change: WatchEvent) -> str:
    """The end of a side branch's name, for which the column of addresses has no room."""
    return f"{_side(change)}: " if _side(change) else ""


def _side(change: WatchEvent) -> str:
    return canonical.printable(change.branch[len(change.session) :])


def _turn(paint: Paint, change: WatchEvent, columns: int, width: int) -> str:
    new = text.said_and_heard(change.tokens) if change.tokens else 0
    tokens = text.tokens(new) if new else ""
    tools = text.tools(change.tools, _TOOLS) if width >= _ROOM else ""
    words = columns - _TOKENS - 2 - (_TOOLS + 2 if width >= _ROOM else 0)
    said = text.fit(f"{_aside(change)}{'… ' if change.grown else ''}{text.clean(change.text)}", max(1, words))
    middle = f"  {paint('cyan', text.fit(tools, _TOOLS))}" if width >= _ROOM else ""
    return f"{said}{middle}  {tokens.rjust(_TOKENS)}".rstrip()


def _other(change: WatchEvent, columns: int) -> str:
    said = _said(change) if change.event == "rewind" else f"{_aside(change)}{_said(change)}"
    title = text.clean(change.title, 200)
    return text.cut(f"{said}  ·  {title}" if title else said, columns)


def _said(change: WatchEvent) -> str:
    words = text.clean(change.text)
    match change.event:
        case "fork" if change.origin:
            session, at, turn = change.origin.partition("@")
            return text.clean(f"fork of {layout.short_name(session)}{at}{turn}")
        case "rewind":
            left = text.counted(int(words), "turn") if words.isdecimal() else "turns"
            return f"rewound to turn {change.turn}, {left} left behind: {_side(change)}".removesuffix(": ")
        case "back":
            return f"back at turn {change.turn}"
        case "tag":
            return f"tagged {words}"
        case "untag":
            return f"no longer tagged {words}"
    return _STATES.get(change.event) or words
