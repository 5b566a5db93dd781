"""What was mended, line by line in short, and how the conversation goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sessgit.agents.values import Mend
from sessgit.check.repair import Repaired
from sessgit.cli import sidecar_notes, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import findings
from sessgit.cli.render import Paint
from sessgit.model import canonical

_MOST = 12
"""So many mends of one kind are shown."""


def full(here: Invocation, done: Repaired, way_on: str, *, dry_run: bool) -> Iterator[str]:
    """The whole page; `way_on` says how the repaired session is continued, ``""`` where there is none."""
    paint, name = Paint(here.colour), here.ident(done.branch)
    if done.was_sound:
        turns = text.counted(done.turns, "turn")
        said = f"{name} needs no repair: {turns}, all lines intact. Nothing was changed."
        yield from text.wrapped(said, here.width)
        return
    if done.refs:
        many = text.counted(done.refs, "ref")
        yield f"{many} {'can be' if dry_run else 'was' if done.refs == 1 else 'were'} restored."
    for one in done.brought:
        objects = text.counted(one.objects, "object")
        what = f"can be restored from {one.source}" if dry_run else f"restored from {one.source}"
        yield from text.wrapped(f"{objects} {what}.", here.width)
    if (done.brought or done.refs) and dry_run:
        yield "Other problems show once they are restored."
    if done.lost:
        objects = text.counted(len(done.lost), "object")
        yield from text.wrapped(f"{objects} could not be found in any of its files or on a remote.", here.width)
        yield from text.wrapped(
            f"To search another copy of its transcript: sessgit repair {name} --from FILE", here.width
        )
    if done.findings:
        # What they advise is what has just been done.
        yield from findings.lines(here, [replace(one, next="") if one.objects else one for one in done.findings])
    yield from _mends(here, done, paint)
    if done.unread:
        turns = text.counted(done.unread, "turn")
        yield from text.wrapped(f"{turns} from turn {done.turns + 1} on cannot be read and are left out.", here.width)
    if done.is_needed:
        yield from _made(here, done, way_on, dry_run=dry_run)
    elif done.anew and dry_run:
        yield from text.wrapped(f"Nothing was changed. {name} would be recorded again from its file.", here.width)
    elif done.anew:
        said = f"What was found nowhere is lost. {name} was recorded again from its file"
        yield from text.wrapped(f"{said}, {text.counted(done.turns, 'turn')}.", here.width)
    elif done.turns and not done.findings:
        yield f"{name} is repaired: {text.counted(done.turns, 'turn')}."


def as_json(done: Repaired, command: str, *, dry_run: bool) -> dict[str, Any]:
    """Return what `repair --json` prints; `command` continues the repaired session, ``""`` where that cannot be."""
    made = done.made
    return {
        "branch": done.branch, "sound": done.was_sound, "dry_run": dry_run,
        "recovered": [{"objects": one.objects, "source": one.source} for one in done.brought],
        "lost": list(done.lost),
        "findings": findings.as_json(done.findings),
        "repairs": [{"turn": one.turn, "line": one.line, "kind": one.kind, "message": one.what} for one in done.mends],
        "turns": done.turns, "shared": done.shared if done.is_needed else None, "unread": done.unread,
        "redacted": done.redacted if done.is_needed else 0,
        "refs": done.refs, "rerecorded": done.anew,
        "id": made.state.id if made else None,
        "commit": made.commit if made else None,
        "transcript": str(made.transcript) if made else None,
        "files": sidecar_notes.as_json(made.files) if made else [],
        "resume": command or None,
    }  # fmt: skip


def _mends(here: Invocation, done: Repaired, paint: Paint) -> Iterator[str]:
    """The mends by turn; of one kind in one turn the first few."""
    shown, counted = Counter[tuple[int, str]](), Counter((one.turn, one.kind) for one in done.mends)
    for one in done.mends:
        key = one.turn, one.kind
        shown[key] += 1
        if shown[key] > _MOST:
            continue
        if shown[key] == _MOST and counted[key] > _MOST:
            yield f"  {_place(one, done):<14}and {counted[key] - _MOST + 1:,} more of this kind"
            shown[key] += 1
            continue
        head = paint("bold", f"{_place(one, done):<14}")
        first, *rest = text.wrapped(canonical.printable(one.what), here.width - 16)
        yield f"  {head}{first}"
        yield from (f"  {'':<14}{line}" for line in rest)


def _place(one: Mend, done: Repaired) -> str:
    return f"@{one.turn}:{one.line}" if one.turn <= done.turns else f"end:{one.line}"


def _made(here: Invocation, done: Repaired, way_on: str, *, dry_run: bool) -> Iterator[str]:
    original = here.ident(done.branch)
    if dry_run:
        shared = f"turns 1 to {done.shared} of {original}" if done.shared > 1 else f"turn 1 of {original}"
        what = f"that keeps {shared}" if done.shared else "without shared turns"
        yield from text.wrapped(
            f"Nothing was changed. This would create a new conversation {what}; the original stays.", here.width
        )
        return
    made = done.made
    assert made is not None
    turns = text.counted(made.state.turns, "turn")
    of = f", {done.shared} of them shared with {original}" if done.shared else ""
    yield from text.wrapped(f"{here.ident(made.state.id)} is the repaired conversation: {turns}{of}.", here.width)
    yield from text.wrapped(f"{original} did not change; sessgit undo removes the new one.", here.width)
    yield from sidecar_notes.told(made.files)
    yield canonical.printable(way_on)
