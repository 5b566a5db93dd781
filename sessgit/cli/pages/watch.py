"""What `watch` prints: a line for each change of the store, as text or as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.history.watch import WatchEvent
from sessgit.model import canonical
from sessgit.store import layout

_ADDRESS, _TOOLS, _TOKENS = 13, 16, 6
_ROOMY = 70
"""With fewer columns a turn's tools are left out."""
_WITH_TURN = ("turn", "tag", "untag")
"""Events whose address has the number of the turn."""
_PHRASES = {
    "archive": "archived",
    "unarchive": "unarchived",
    "delete": "deleted",
    "gone": "branch gone",
    "elsewhere": "continued in another version",
}


def full(here: Invocation, events: Sequence[WatchEvent], now: float) -> Iterator[str]:
    """Yield the lines, each as wide as the terminal at most."""
    for event in events:
        recorded = canonical.seconds(event.time)
        moment = now if recorded is None else recorded
        stamp = time.strftime(text.clock(now, [moment]), time.localtime(moment))
        turn = f"@{event.turn}" if event.turn is not None and event.event in _WITH_TURN else ""
        address = canonical.printable(layout.short_name(event.session) + turn).ljust(_ADDRESS)
        start = f"{here.paint('dim', stamp)}  {here.paint('yellow', address)}  "
        branch = canonical.printable(event.branch[len(event.session) :])
        words = f"{branch}: " if branch and event.event != "rewind" else ""
        if event.event != "turn":
            title = text.clean(event.title, 200)
            words += _phrase(event, branch) + (f"  ·  {title}" if title else "")
            yield text.spread(start, words, "", here.width).rstrip()
            continue
        new = text.new_tokens(event.tokens) if event.tokens else 0
        end = (text.tokens(new) if new else "").rjust(_TOKENS)
        if here.width >= _ROOMY:
            end = f"{here.paint('cyan', text.fit(text.tools(event.tools, _TOOLS), _TOOLS))}  {end}"
        words += f"{'… ' if event.grown else ''}{text.clean(event.text)}"
        yield text.spread(start, words, end, here.width).rstrip()


def as_json(event: WatchEvent) -> str:
    """Return the event as JSON on one line."""
    value = {
        "event": event.event,
        "time": event.time or None,
        "id": event.branch,
        "turn": event.turn,
        "commit": event.commit,
        "text": event.text,
        "from": event.origin or None,
        "new": not event.grown,
        "model": event.model or None,
        "tools": dict(event.tools),
        "tokens": event.tokens.as_json() if event.tokens else None,
        "title": event.title,
        "project": event.project,
        "entries": [
            {"id": entry.id, "kind": entry.kind, "text": entry.text, "resolved": entry.resolved or None}
            for entry in event.entries
        ],
    }
    return json.dumps({"schema": "sessgit.watch/v1", **value})


def _phrase(event: WatchEvent, branch: str) -> str:
    words = text.clean(event.text)
    match event.event:
        case "fork" if event.origin:
            session, at, turn = event.origin.partition("@")
            return text.clean(f"fork of {layout.short_name(session)}{at}{turn}")
        case "rewind":
            turns = text.counted(int(words), "turn") if words.isdecimal() else "turns"
            return f"rewound to turn {event.turn}, {turns} left behind{f': {branch}' if branch else ''}"
        case "back":
            return f"back at turn {event.turn}"
        case "tag":
            return f"tagged {words}"
        case "untag":
            return f"no longer tagged {words}"
    return _PHRASES.get(event.event) or words
