"""`sessgit gc`: the store made small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.check.gc import Collected
    from sessgit.store.maintenance import ObjectCount


_NAMED = 8


@frame.command("gc", needs="store")
def run(
    here: Invocation,
    prune: Annotated[
        bool, typer.Option("--prune", help="Make deletions final, and remove unreachable objects.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> Answer:
    """Pack the store.

    Recording also packs the store when it has grown enough. What commands removed is kept for undo.keep, 90 days by
    default. --prune makes deletions final: no undo brings those conversations back. It asks first.
    """
    from sessgit.check import gc
    from sessgit.model.config import span_seconds

    if prune and not yes:
        _ask(here)
    keep = span_seconds(here.settings.undo.keep)
    with render.progress(here, "Packing", unit="objects") as progress:
        done = gc.collect(here.store, here.index, here.config, here.now, keep=keep, prune=prune, progress=progress)
    return Answer(lambda: _json(done, prune=prune), _page(done))


def _ask(here: Invocation) -> None:
    """Says what goes for good, and leaves unless a person wants that; asks nothing where nothing would."""
    from sessgit.check import gc

    going = gc.doomed(here.store)
    if not going:
        return
    what = text.counted(len(going), "deleted conversation")
    render.check_can_ask(here, f"Pass --yes: {what} would be deleted for good.")
    names = ", ".join(map(here.ident, going[:_NAMED])) + (f", and {len(going) - _NAMED:,} more" * (len(going) > _NAMED))
    back = "it" if len(going) == 1 else "them"
    for line in text.wrap(
        f"{what} would be deleted for good: {names}. Until then, `sessgit undo` brings {back} back.", here.width
    ):
        render.tell(line)
    if not render.ask("Prune?"):
        render.tell("Nothing was changed.")
        raise typer.Exit(1)


def _page(done: Collected) -> Iterator[str]:
    before, after = done.before, done.after
    objects = text.counted(after.objects, "object")
    if before.objects != after.objects:
        objects = f"{before.objects:,} → {objects}"
    yield f"{objects}, {text.size(before.size)} → {text.size(after.size)}"
    if done.leftovers:
        yield f"{text.counted(done.leftovers, 'file')} left by interrupted commands removed"
    if done.expired:
        yield f"{text.counted(done.expired, 'expired undo ref')} removed"
    if done.final:
        yield f"{text.counted(len(done.final), 'deleted conversation')} removed for good"


def _json(done: Collected, *, prune: bool) -> dict[str, object]:
    return {
        "before": _extent(done.before),
        "after": _extent(done.after),
        "leftovers": done.leftovers,
        "expired": done.expired,
        "pruned": prune,
        "final": list(done.final),
    }


def _extent(extent: ObjectCount) -> dict[str, int]:
    return {"objects": extent.objects, "bytes": extent.size}
