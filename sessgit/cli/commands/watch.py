"""`sessgit watch`: what happens to the store, as it happens."""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.history import resolve, watch
from sessgit.history.watch import INTERVAL, WatchEvent
from sessgit.model import canonical
from sessgit.store import layout
from sessgit.store.store import Store


@frame.command("watch", needs="store", reads=True, excludes={"--all": "ADDRESS"})
def run(
    cli: Invocation,
    addresses: list[str] = argument("ADDRESS...", "Only these conversations and their new forks."),
    everything: bool = option("--all", "Watch all projects."),
) -> Answer | None:
    """Show changes as they happen, until Ctrl-C.

    Prints a line for each new turn, fork, rewind, merge, name, tag and any other change of the store, within half a
    second, whichever process made it. If nothing is recorded yet, waits for the first conversation. watch itself
    records and changes nothing.
    """
    if addresses:
        cli.check_recorded()
    parsed = [resolve.resolve_address(cli.index, address) for address in addresses]
    named = [resolve.resolve_target(cli.index, address, cli.where).session for address in parsed]
    query = watch.WatchFilter(
        sessions=frozenset(named) if addresses else None,
        folder=None if addresses or everything else cli.cwd,
    )
    place = "all projects" if everything else ", ".join(map(cli.ident, named)) or cli.short(cli.cwd)
    for event in watch.follow_store(cli.env.store, lambda: Store(cli.env.store), _waiting(), cli.local_path):
        if event is None:
            render.tell(f"(watching {place}; Ctrl-C ends)")
        elif isinstance(event, watch.WatchProblem):
            render.tell(f"{event.branch[:8]}: {event.error}" if event.branch else str(event.error))
        else:
            changes = [change for change in event if query.holds(change)]
            for line in map(_as_json, changes) if cli.json else full(cli, changes, time.time()):
                render.write(f"{line}\n")
    return None


def _waiting() -> Callable[[], None]:
    """Return a function that waits for the next look, and ends the command once the output is closed."""
    try:
        output = sys.stdout.fileno()
        poll = select.poll()
        poll.register(output, 0)
        poll.poll(0)
    except (OSError, ValueError, AttributeError):  # no file, or a system that cannot tell
        return lambda: time.sleep(INTERVAL)

    def wait() -> None:
        began = time.monotonic()
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(INTERVAL * 1000)):
            render.forget_output()
            raise SystemExit(render.BROKEN_PIPE)
        time.sleep(max(0.0, began + INTERVAL - time.monotonic()))

    return wait


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


def full(cli: Invocation, events: Sequence[WatchEvent], now: float) -> Iterator[str]:
    """Yield the lines, each as wide as the terminal at most."""
    for event in events:
        stamp = text.time_of_day(now, canonical.seconds(event.time) or now)
        turn = f"@{event.turn}" if event.turn is not None and event.event in _WITH_TURN else ""
        address = canonical.printable(layout.short_name(event.session) + turn).ljust(_ADDRESS)
        start = f"{cli.paint('dim', stamp)}  {cli.paint('yellow', address)}  "
        branch = canonical.printable(event.branch[len(event.session) :])
        words = f"{branch}: " if branch and event.event != "rewind" else ""
        if event.event != "turn":
            title = text.clean(event.title, 200)
            words += _phrase(event, branch) + (f"  ·  {title}" if title else "")
            yield text.spread(start, words, "", cli.width).rstrip()
            continue
        new = text.new_tokens(event.tokens) if event.tokens else 0
        end = (text.tokens(new) if new else "").rjust(_TOKENS)
        if cli.width >= _ROOMY:
            end = f"{cli.paint('cyan', text.fit(text.tools(event.tools, _TOOLS), _TOOLS))}  {end}"
        words += f"{'… ' if event.grown else ''}{text.clean(event.text)}"
        yield text.spread(start, words, end, cli.width).rstrip()


def _as_json(event: WatchEvent) -> str:
    """Return the event as JSON on one line."""
    value = {
        **frame.attributes(event, "event", "turn", "commit", "text", "title", "project"),
        "time": event.time or None,
        "id": event.branch,
        "from": event.origin or None,
        "new": not event.grown,
        "model": event.model or None,
        "tools": dict(event.tools),
        "tokens": event.tokens.as_json() if event.tokens else None,
        "entries": [
            {**frame.attributes(entry, "id", "kind", "text"), "resolved": entry.resolved or None}
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
