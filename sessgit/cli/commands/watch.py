"""`sessgit watch`: what happens to the store, as it happens."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from sessgit.cli import frame, render
from sessgit.cli.arguments import completion
from sessgit.cli.invocation import Invocation


@frame.command("watch", needs="store", reads=True)
def run(    here: Invocation, addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS...", help="Only these conversations and their new forks.",
            show_default=False, autocompletion=completion.addresses,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Watch all projects.")] = False,
) -> None:  # fmt: skip
    """Show changes as they happen, until Ctrl-C.

    Prints a line for each new turn, fork, rewind, merge, name, tag and any other change of the store, within half a
    second, whichever process made it. If nothing is recorded yet, waits for the first conversation. watch itself
    records and changes nothing.
    """
    from sessgit.cli.pages import watch as page
    from sessgit.errors import UsageError
    from sessgit.history import resolve, watch
    from sessgit.store.store import Store

    if addresses and everything:
        raise UsageError("--all and an address cannot be combined.", "`sessgit watch --all` watches all conversations.")
    if addresses:
        here.check_recorded()
    asked = [resolve.resolve_address(here.index, address) for address in addresses or ()]
    named = [resolve.resolve_target(here.index, address, here.where).session for address in asked]
    wanted = watch.WatchFilter(
        sessions=frozenset(named) if addresses else None,
        folder=None if addresses or everything else here.cwd,
    )
    place = "all projects" if everything else ", ".join(map(here.ident, named)) or here.short(here.cwd)
    here.index.close()
    for seen in watch.follow_store(here.store_path, lambda: Store(here.store_path), _waiting(), here.here):
        if seen is None:
            render.tell(f"(watching {place}; Ctrl-C ends)")
        elif isinstance(seen, watch.WatchProblem):
            render.tell(f"{seen.branch[:8]}: {seen.error}" if seen.branch else str(seen.error))
        else:
            told = [change for change in seen if wanted.holds(change)]
            lines = map(page.as_json, told) if here.json else page.full(here, told, time.time())
            for line in lines:
                render.write(f"{line}\n")


def _waiting() -> Callable[[], None]:
    """Waits until it is time for the next look; leaves in silence as soon as nobody reads the output any more."""
    from sessgit.history.watch import INTERVAL

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
