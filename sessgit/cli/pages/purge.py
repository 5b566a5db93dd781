"""What `purge` prints: where a value was found and what was done, never the value itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sessgit.cli import blocks, text
from sessgit.cli.blocks import Column
from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.purge.likely_secrets import LikelySecret
    from sessgit.purge.purge import PurgeResult
    from sessgit.store.denylist import DeniedValue

_FILES = 20
_TURNS = 12
_PLACES = 4


def question(here: Invocation, preview: PurgeResult) -> Iterator[str]:
    """Yield the page before the question: everything that holds a value, and what will stay."""
    yield from _held(here, preview)
    yield from _remaining_lines(here, preview)
    yield from _outside(here, preview, dry_run=True)
    yield "This rewrites history and cannot be undone."


def lines(here: Invocation, result: PurgeResult, *, dry_run: bool) -> Iterator[str]:
    """Yield the page of a purge that was done, or would be."""
    if result.completed:
        yield "Finished an interrupted purge"
    if not result.had_value:
        yield "Nothing in the store holds it" + ("" if dry_run else "; it is blocked from now on")
    elif dry_run:
        yield from _held(here, result)
    else:
        yield f"{_sessions(result)} purged: {text.counted(result.commits, 'commit')} rewritten"
        yield from _hits(here, result)
    if not dry_run and result.objects:
        checked = f"Checked: none of {text.counted(result.objects, 'object')} and no file of the store holds it"
        yield from blocks.paragraph(here, f"{checked}, as it is, JSON-escaped, URL-encoded, or in base64 or hex")
    yield from (f"a tag that held it was renamed to “{text.clean(new)}”" for _, new in result.tags)
    yield from _remaining_lines(here, result)
    yield from _outside(here, result, dry_run=dry_run)


def secrets(here: Invocation, likely: Sequence[LikelySecret]) -> Iterator[str]:
    """Yield the list of likely secrets."""
    if not likely:
        yield "No likely secrets found"
        return
    rows = [
        (secret.id, secret.kind, f"{secret.length} characters", f"in {text.counted(secret.count, 'line')}")
        for secret in likely
    ]
    columns = (Column("yellow"), Column(), Column(right=True), Column())
    for secret, line in zip(likely, blocks.table(here, columns, rows, ()), strict=True):
        yield line
        places = [here.ident(name) + at + turn for name, at, turn in (place.partition("@") for place in secret.places)]
        more = " and more: --json" if len(places) > _PLACES else ""
        yield from blocks.paragraph(here, (", ".join(places[:_PLACES]) or "not on any branch") + more, indent=10)
    yield "Remove one: sessgit purge --secret ID"


def denied(here: Invocation, values: Sequence[DeniedValue]) -> Iterator[str]:
    """Yield the list of values that are kept out of the store."""
    if not values:
        yield "No purged values"
        return
    for value in values:
        lost = "no longer blocked, since the store's key is lost: purge it again" if value.lost else ""
        yield from blocks.field(here, f"{here.paint('yellow', value.id)}  ", [value.time, lost], between="  ")
    yield "The values themselves are not stored. Allow one again: sessgit purge --lift ID"


def denied_json(value: DeniedValue) -> dict[str, object]:
    """Return a denied value as JSON."""
    return {"id": value.id, "time": value.time, "lost": value.lost}


def as_json(result: PurgeResult, *, dry_run: bool) -> dict[str, object]:
    """Return what `purge --json` prints."""
    return {
        "dry_run": dry_run,
        "values": result.values,
        "found": result.had_value,
        "sessions": [
            {"id": hit.session, "turns": list(hit.turns), "places": list(hit.places)} for hit in result.sessions
        ],
        "commits": result.commits,
        "objects": result.objects,
        "tags": [new for _, new in result.tags],
        "client_files": list(map(str, result.client)),
        "remotes": list(result.remotes),
        "lines": result.lines,
        "completed": result.completed,
        "operation_id": result.operation or None,
    }


def secrets_json(likely: Sequence[LikelySecret]) -> list[dict[str, object]]:
    """Return likely secrets as JSON: where they are, never their text."""
    return [
        {
            "id": secret.id, "kind": secret.kind, "length": secret.length, "lines": secret.count,
            "addresses": list(secret.places),
        }
        for secret in likely
    ]  # fmt: skip


def _sessions(result: PurgeResult) -> str:
    return text.counted(len(result.sessions), "conversation")


def _held(here: Invocation, preview: PurgeResult) -> Iterator[str]:
    hold = "holds" if len(preview.sessions) == 1 else "hold"
    yield f"{_sessions(preview)} {hold} it:" if preview.sessions else "It is not on any branch"
    yield from _hits(here, preview)
    if preview.tags:
        yield f"  and the names of {text.counted(len(preview.tags), 'tag')}"


def _hits(here: Invocation, result: PurgeResult) -> Iterator[str]:
    """Yield a block for each conversation: its turns, and the places in words."""
    for hit in result.sessions:
        turns = text.numbers("turn", hit.turns, _TURNS) + ": " if hit.turns else ""
        yield from blocks.field(here, f"  {here.paint('yellow', hit.session[:8])}  ", [turns + ", ".join(hit.places)])


def _remaining_lines(here: Invocation, result: PurgeResult) -> Iterator[str]:
    """Long lines of a value that also occur elsewhere, none of which is the whole value."""
    if result.lines:
        occur = "line of it also occurs" if result.lines == 1 else "lines of it also occur"
        stay = "its own elsewhere, and stays" if result.lines == 1 else "their own elsewhere, and stay"
        hint = "To purge several values, use sessgit purge --regex."
        yield from blocks.paragraph(here, f"{result.lines:,} long {occur} on {stay}. {hint}")


def _outside(here: Invocation, result: PurgeResult, *, dry_run: bool) -> Iterator[str]:
    """Yield the client's files and the remotes that hold a value."""
    if result.client:
        yield f"{'These' if dry_run else 'Still, these'} files of the client hold it, and are not changed:"
        yield from (f"  {here.shown(str(path))}" for path in result.client[:_FILES])
        if len(result.client) > _FILES:
            yield f"  and {len(result.client) - _FILES} more: --json lists all"
    if result.remotes:
        hold = "Remotes hold" if len(result.remotes) > 1 else "A remote holds"
        yield from blocks.paragraph(
            here,
            f"{hold} it too: {', '.join(map(canonical.printable, result.remotes))}. sessgit push replaces its branches;"
            " the old objects stay in that repository until it is pruned.",
        )
