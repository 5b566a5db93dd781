"""What an import from another system did, or would do: each conversation that changed, and each file that is not
simply imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import turn_pieces
from sessgit.cli.render import Paint
from sessgit.exchange.incoming import ExchangeImport, ImportedSession
from sessgit.store import layout

_LISTED = 100
_TITLE = 12
_WHAT = 10
_CHANGED = ("its details", "its last turn")
_OUTCOMES = {"imported": "imported", "empty": "empty", "left": "left out", "damaged": "damaged"}
_MANY = {"empty": "empty", "left": "left out"}
_ASIDE = {
    "excluded": "of projects that are off: skipped",
    "archived": "with new turns since the archiving: sessgit unarchive",
    "deleted": "deleted here before: skipped (sessgit undo OP reverts a deletion)",
}


def full(here: Invocation, done: ExchangeImport, *, dry_run: bool) -> Iterator[str]:
    """The whole page: what came, what stayed as it was, and what the source's files came to."""
    turns = sum(one.turns for one in done.changed)
    what = f"{text.counted(len(done.changed), 'conversation')}, {text.counted(turns, 'turn')}"
    still = sum(one.outcome == "unchanged" for one in done.sessions)
    were = f"; {still:,} {'was' if still == 1 else 'were'} already imported" if still else ""
    yield f"{what} {'would be ' if dry_run else ''}imported from {done.system}{were}"
    paint = Paint(here.colour)
    for one in done.changed[:_LISTED]:
        yield _line(here, paint, one)
    if len(done.changed) > _LISTED:
        yield f"and {len(done.changed) - _LISTED:,} more: --json lists all"
    for outcome, words in _ASIDE.items():
        many = sum(one.outcome == outcome for one in done.sessions)
        if many:
            yield f"{text.counted(many, 'conversation')} {words}"
    yield from _files(here, done)


def as_json(done: ExchangeImport, *, dry_run: bool) -> dict[str, Any]:
    """Return what `import --json` prints for another system."""
    outcomes = Counter[str](one.outcome for one in done.sessions)
    return {
        "sessions": len(done.changed),
        "turns": sum(one.turns for one in done.changed),
        **{key: outcomes[key] for key in ("unchanged", "excluded", "archived", "deleted")},
        "errors": [{"path": what, "reason": why} for what, why in done.errors],
        "system": done.system,
        "dry_run": dry_run,
        "operation_id": done.operation.id if done.operation else None,
        "conversations": [_session(one) for one in done.sessions],
        "files": [
            {"path": one.path, "outcome": one.outcome, "reason": one.why or None, "conversation": one.session or None}
            for one in done.files
        ],
        "refs": {move.ref: {"before": move.old, "after": move.new} for move in done.moves},
    }


def _session(one: ImportedSession) -> dict[str, Any]:
    return {
        "id": one.id,
        "source_id": one.own,
        "outcome": one.outcome,
        "title": one.title,
        "turns": one.turns,
        "parent": one.parent or None,
        "fork_turn": one.shared if one.parent else None,
        "reason": one.why or None,
    }


def _line(here: Invocation, paint: Paint, one: ImportedSession) -> str:
    what = "fork" if one.outcome == "new" and one.parent else one.outcome
    at = f", from {layout.short_name(one.parent)}@{one.shared}" if one.parent else ""
    said = f"{text.counted(one.turns, 'turn')}{at}" if one.turns or at else one.why or _CHANGED[one.outcome == "grown"]
    room = max(_TITLE, here.width - _WHAT - 2 - 8 - 4 - text.width(said))
    line = f"{what.ljust(_WHAT)}  {paint('yellow', one.id[:8])}  {text.fit(text.clean(one.title, 200), room)}  "
    return line + paint("dim", text.cut(said, max(1, here.width - _WHAT - 2 - 8 - 4 - room)))


def _files(here: Invocation, done: ExchangeImport) -> Iterator[str]:
    counts = Counter[str](file.outcome for file in done.files)
    if not done.files:
        return
    told = [f"{counts[key]:,} {_said(key, counts[key])}" for key in _OUTCOMES if counts[key]]
    yield from text.fold([f"{text.counted(len(done.files), 'file')}: {told[0]}", *told[1:]], here.width, ", ", "  ")
    others = [
        file for file in done.files if file.outcome in ("left", "damaged") or (file.why and not _is_plain(file.why))
    ]
    for file in others[:_LISTED]:
        room = here.width - _WHAT - 2
        path = turn_pieces.path(here, "", file.path, room)
        lines = text.wrapped(f"{path}: {file.why}" if file.why else path, room)
        if len(lines) > 1:
            lines = [path, *text.wrapped(file.why, room)]
        yield f"{file.outcome.ljust(_WHAT)}  {lines[0]}"
        yield from (" " * (_WHAT + 2) + line for line in lines[1:])
    if len(others) > _LISTED:
        yield f"and {len(others) - _LISTED:,} more: --json lists all"


def _is_plain(why: str) -> bool:
    return why in ("kept as it is", "derived from the cells", "the transcript contains it")


def _said(outcome: str, count: int) -> str:
    return _MANY.get(outcome, _OUTCOMES[outcome]) if count > 1 else _OUTCOMES[outcome]
