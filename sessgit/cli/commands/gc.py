"""`sessgit gc`: the store packed, and deletions made final."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.check import gc as checks
from sessgit.check.gc import Collected
from sessgit.cli import frame, render, text
from sessgit.cli.frame import YES, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.store.settings import span_seconds

_NAMED_SESSIONS = 8


@frame.command("gc", needs="store")
def run(
    cli: Invocation,
    prune: bool = option("--prune", "Make deletions final, and remove unreachable objects."),
    yes: bool = YES,
) -> Answer:
    """Pack the store.

    Recording also packs the store when it has grown enough. What commands removed can be restored by undo for as long
    as the setting undo.keep says, 90 days by default. --prune makes deletions final: no undo brings those conversations
    back. It asks first.
    """

    if prune and not yes and (sessions := checks.doomed(cli.store)):
        count = text.counted(len(sessions), "deleted conversation")
        render.check_can_ask(cli, f"Pass --yes: {count} would be deleted for good.")
        names = ", ".join(text.some([cli.ident(session) for session in sessions], _NAMED_SESSIONS))
        them = "it" if len(sessions) == 1 else "them"
        question = f"{count} would be deleted for good: {names}. Until then, `sessgit undo` brings {them} back."
        frame.confirm(text.wrap(question, cli.width), "Prune?")
    keep = span_seconds(cli.settings.undo.keep)
    progress = render.progress(cli, "Packing", "objects")
    result = checks.collect(cli.context, keep=keep, prune=prune, progress=progress)
    document = {
        "before": {"objects": result.before.objects, "bytes": result.before.size},
        "after": {"objects": result.after.objects, "bytes": result.after.size},
        "pruned": prune,
        **frame.attributes(result, "leftovers", "expired", "final"),
    }
    return Answer(document, _packed(result))


def _packed(result: Collected) -> Iterator[str]:
    before, after = result.before, result.after
    objects = text.counted(after.objects, "object")
    if before.objects != after.objects:
        objects = f"{before.objects:,} → {objects}"
    yield f"{objects}, {text.size(before.size)} → {text.size(after.size)}"
    if result.leftovers:
        yield f"{text.counted(result.leftovers, 'file')} left by interrupted commands removed"
    if result.expired:
        yield f"{text.counted(result.expired, 'expired undo ref')} removed"
    if result.final:
        yield f"{text.counted(len(result.final), 'deleted conversation')} removed for good"
