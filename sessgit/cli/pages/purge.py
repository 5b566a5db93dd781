"""What a purge found and did: never the value itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.cli import text
from sessgit.cli.render import Paint
from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.purge.denied_values import DeniedValue
    from sessgit.purge.likely_secrets import LikelySecret
    from sessgit.purge.purge import PurgeResult
    from sessgit.purge.scan import SessionHit

_MOST_FILES = 20
_MOST_TURNS = 12
_MOST_PLACES = 4


def question(here: Invocation, told: PurgeResult) -> Iterator[str]:
    """What is said before anybody is asked: all that holds a value, and what of it stays."""
    yield from _held(here, told)
    yield from _apart(here, told)
    yield from _outside(here, told, dry_run=True)
    yield "This rewrites history and cannot be undone."


def lines(here: Invocation, told: PurgeResult, *, dry_run: bool) -> Iterator[str]:
    """The page of a purge that was done, or would be."""
    if told.completed:
        yield "Finished an interrupted purge"
    if not told.found:
        yield "Nothing in the store holds it" + ("" if dry_run else "; it is blocked from now on")
    elif dry_run:
        yield from _held(here, told)
    else:
        commits = text.counted(told.commits, "commit")
        yield f"{_sessions(told)} purged: {commits} rewritten"
        for one in told.held:
            yield from _line(here, one)
    if not dry_run and told.objects:
        yield from _wrapped(
            here,
            f"Checked: none of {text.counted(told.objects, 'object')} and no file of the store holds it, as it is, "
            "JSON-escaped, URL-encoded, or in base64 or hex",
        )
    for old, new in told.tags:
        del old  # it holds the value
        yield f"a tag that held it was renamed to “{text.clean(new)}”"
    yield from _apart(here, told)
    if told.inexact:
        turns = text.counted(told.inexact, "turn")
        yield from _wrapped(here, f"{turns} are not stored exactly as a new recording would be, but the text is right")
    yield from _outside(here, told, dry_run=dry_run)


def found(here: Invocation, every: Sequence[LikelySecret]) -> Iterator[str]:
    """The list of likely secrets."""
    if not every:
        yield "No likely secrets found"
        return
    paint = Paint(here.colour)
    kind = max(text.width(one.kind) for one in every)
    size = max(len(f"{one.length}") for one in every)
    for one in every:
        count = text.counted(one.count, "line")
        yield f"{paint('yellow', one.id)}  {one.kind.ljust(kind)}  {one.length:>{size}} characters  in {count}"
        yield from (f"{'':10}{line}" for line in text.wrapped(_where(here, one), here.width - 10))
    yield "Remove one: sessgit purge --secret ID"


def _where(here: Invocation, one: LikelySecret) -> str:
    if not one.places:
        return "not on any branch"
    names = [name.partition("@") for name in one.places[:_MOST_PLACES]]
    shown = ", ".join(f"{here.ident(name)}{at}{turn}" for name, at, turn in names)
    return shown + (" and more: --json" if len(one.places) > _MOST_PLACES else "")


def kept(here: Invocation, every: Sequence[DeniedValue]) -> Iterator[str]:
    """The list of what is kept out."""
    if not every:
        yield "No purged values"
        return
    paint = Paint(here.colour)
    for one in every:
        said = "  no longer blocked, since the store's key is lost: purge it again" if one.lost else ""
        yield from text.wrapped(f"{paint('yellow', one.id)}  {canonical.printable(one.time)}{said}", here.width)
    yield "The values themselves are not stored. Allow one again: sessgit purge --lift ID"


def kept_json(one: DeniedValue) -> dict[str, object]:
    """Return a denied value as JSON."""
    return {"id": one.id, "time": one.time, "lost": one.lost}


def as_json(told: PurgeResult, *, dry_run: bool) -> dict[str, object]:
    """Return what `purge --json` prints."""
    return {
        "dry_run": dry_run,
        "values": told.values,
        "found": told.found,
        "sessions": [{"id": one.session, "turns": list(one.turns), "places": list(one.places)} for one in told.held],
        "commits": told.commits,
        "objects": told.objects,
        "tags": [new for _, new in told.tags],
        "client_files": list(map(str, told.client)),
        "remotes": list(told.remotes),
        "lines": told.lines,
        "inexact": told.inexact,
        "completed": told.completed,
        "operation_id": told.operation or None,
    }


def found_json(every: Sequence[LikelySecret]) -> list[dict[str, object]]:
    """Return likely secrets as JSON: where they are, never their text."""
    return [
        {
            "id": one.id, "kind": one.kind, "length": one.length, "lines": one.count, "addresses": list(one.places),
        }
        for one in every
    ]  # fmt: skip


def _held(here: Invocation, told: PurgeResult) -> Iterator[str]:
    if not told.held:
        yield "It is not on any branch"
    else:
        yield f"{_sessions(told)} held it:" if told.operation else f"{_sessions(told)} {_hold(told)} it:"
    for one in told.held:
        yield from _line(here, one)
    if told.tags:
        yield f"  and the names of {text.counted(len(told.tags), 'tag')}"


def _apart(here: Invocation, told: PurgeResult) -> Iterator[str]:
    """That a key stands in pieces, each of which is no whole value."""
    if told.lines:
        many = "line of it also occurs" if told.lines == 1 else "lines of it also occur"
        stay = "its own elsewhere, and stays" if told.lines == 1 else "their own elsewhere, and stay"
        hint = "To purge several values, use sessgit purge --regex."
        yield from _wrapped(here, f"{told.lines:,} long {many} on {stay}. {hint}")


def _hold(told: PurgeResult) -> str:
    return "holds" if len(told.held) == 1 else "hold"


def _sessions(told: PurgeResult) -> str:
    return text.counted(len(told.held), "conversation")


def _line(here: Invocation, one: SessionHit) -> Iterator[str]:
    shown = ", ".join(map(str, one.turns[:_MOST_TURNS]))
    more = f" and {len(one.turns) - _MOST_TURNS} more" if len(one.turns) > _MOST_TURNS else ""
    turns = f"{'turn' if len(one.turns) == 1 else 'turns'} {shown}{more}: " if one.turns else ""
    first, *rest = text.wrapped(f"{turns}{', '.join(one.places)}", here.width - 12)
    yield f"  {Paint(here.colour)('yellow', one.session[:8])}  {first}"
    yield from (f"{'':12}{line}" for line in rest)


def _outside(here: Invocation, told: PurgeResult, *, dry_run: bool) -> Iterator[str]:
    """What holds it and is not the store's."""
    if told.client:
        yield f"{'These' if dry_run else 'Still, these'} files of the client hold it, and are not changed:"
        for path in told.client[:_MOST_FILES]:
            yield f"  {_path(here, path)}"
        if len(told.client) > _MOST_FILES:
            yield f"  and {len(told.client) - _MOST_FILES} more: --json lists all"
    if told.remotes:
        names = ", ".join(map(canonical.printable, told.remotes))
        yield from _wrapped(
            here, f"{'Remotes hold' if len(told.remotes) > 1 else 'A remote holds'} it too: {names}. sessgit push"
            " replaces its branches; the old objects stay in that repository until it is pruned."
        )  # fmt: skip


def _path(here: Invocation, path: Path) -> str:
    return here.shown(str(path))


def _wrapped(here: Invocation, words: str) -> Iterator[str]:
    yield from text.wrapped(words, here.width)
