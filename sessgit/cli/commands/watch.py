"""`sessgit watch`: what happens to the store, as it happens."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable

from sessgit.cli import frame, render
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.cli.pages import watch as page
from sessgit.history import resolve, watch
from sessgit.history.watch import INTERVAL
from sessgit.store.store import Store


@frame.command("watch", needs="store", reads=True, excludes={"--all": "ADDRESS"})
def run(
    here: Invocation,
    addresses: list[str] = argument("ADDRESS...", "Only these conversations and their new forks."),
    everything: bool = option("--all", "Watch all projects."),
) -> None:
    """Show changes as they happen, until Ctrl-C.

    Prints a line for each new turn, fork, rewind, merge, name, tag and any other change of the store, within half a
    second, whichever process made it. If nothing is recorded yet, waits for the first conversation. watch itself
    records and changes nothing.
    """
    if addresses:
        here.check_recorded()
    parsed = [resolve.resolve_address(here.index, address) for address in addresses]
    named = [resolve.resolve_target(here.index, address, here.where).session for address in parsed]
    query = watch.WatchFilter(
        sessions=frozenset(named) if addresses else None,
        folder=None if addresses or everything else here.cwd,
    )
    place = "all projects" if everything else ", ".join(map(here.ident, named)) or here.short(here.cwd)
    here.index.close()
    for event in watch.follow_store(here.env.store, lambda: Store(here.env.store), _waiting(), here.local_path):
        if event is None:
            render.tell(f"(watching {place}; Ctrl-C ends)")
        elif isinstance(event, watch.WatchProblem):
            render.tell(f"{event.branch[:8]}: {event.error}" if event.branch else str(event.error))
        else:
            changes = [change for change in event if query.holds(change)]
            for line in map(page.as_json, changes) if here.json else page.full(here, changes, time.time()):
                render.write(f"{line}\n")


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
