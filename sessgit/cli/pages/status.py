"""How the recording goes: a line for each thing that a person asks, and one for each that needs them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessgit.check.status import Contents, Deleting, Status, Waiting
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import ResolvedTarget, session_title
from sessgit.model import canonical
from sessgit.record import catch_up
from sessgit.store.layout import StorePaths

_INDENT = 12
_OFF = "SESSGIT_OFF=1 is set: no client started here is recorded"


def full(here: Invocation, found: Status, session: ResolvedTarget | None) -> Iterator[str]:
    """The whole page."""
    yield from recording(here, found)
    yield from _line(here, "Store", "", here.short(here.store_path), *_store(found.contents))
    if session is not None:
        state = session.state
        level = "all recorded" if is_level(here, session) else "its transcript has newer turns"
        at = f"{here.ident(session.branch.name)}@{state.turns}"
        yield from _line(
            here,
            "Session",
            "",
            f"{at}  {text.clean(session_title(state), 40)}",
            text.counted(state.turns, "turn"),
            level,
        )
    for remark in _remarks(here, found):
        yield from _line(here, "Attention", "yellow", *remark)


def recording(here: Invocation, found: Status) -> Iterator[str]:
    """Whether what is done here is recorded; if not, why."""
    state = found.recording
    why = _why_not_here(here, found)
    said = "off" if not state.on else "off here" if why else "on"
    parts = [state.why, *why] if said != "on" else [state.why, _last(here, found.contents)]
    yield from _line(here, "Recording", "green" if said == "on" else "yellow", said, *parts)
    if said == "off here" and (last := _last(here, found.contents)):
        yield from _line(here, "", "", last)


def is_level(here: Invocation, session: ResolvedTarget) -> bool:
    """Whether the session is recorded as far as its transcript goes."""
    path = session.state.transcript
    return not path or catch_up.is_level(StorePaths(here.store_path), session.session, Path(path))


def as_json(here: Invocation, found: Status, session: ResolvedTarget | None) -> dict[str, Any]:
    """Return what `status --json` prints."""
    kept, going = found.contents, found.deleting
    why = _why_not_here(here, found)
    return {
        "recording": {"on": found.recording.on, "reason": found.recording.why or None},
        "here": {
            "on": found.recording.on and not why, "project": found.project, "recorded": found.here.recorded,
            "glob": found.here.glob or None, "off_in_environment": here.off,
        },
        "redact": here.settings.record.redact,
        "store": str(here.store_path),
        "sessions": kept.sessions if kept else 0,
        "turns": kept.turns if kept else 0,
        "bytes": kept.size if kept else 0,
        "raw_bytes": kept.raw if kept else 0,
        "last": _last_json(kept) if kept else None,
        "only_here": kept.only_here if kept else 0,
        "older": found.older,
        "purging": found.purging,
        "packing": found.packing,
        "waiting": None
        if (waits := found.waiting) is None
        else {"events": waits.events, "first": _moment(waits.first), "recorder": waits.recorder},
        "deleting": None
        if going is None
        else {
            "transcripts": going.transcripts, "after_days": going.days, "first": _moment(going.first),
            "unrecorded": going.unrecorded, "off": going.off,
        },
        "errors": [
            {"time": _moment(canonical.seconds(e.time)), "version": e.version, "message": e.message}
            for e in found.errors
        ],
        "session": None
        if session is None
        else {"id": session.branch.name, "turns": session.state.turns, "level": is_level(here, session)},
    }  # fmt: skip


def _last_json(kept: Contents) -> dict[str, Any] | None:
    if kept.last is None:
        return None
    note = kept.latest
    delay = note.delay if note else None
    return {
        "id": kept.last.name, "turn": kept.last.turns, "time": kept.last.updated or None,
        "recorded": _moment(note.time) if note else None, "delay": None if delay is None else delay / 1000,
    }  # fmt: skip


def _moment(seconds: float | None) -> str | None:
    """The time as JSON has it, or None where it is not known or in no calendar."""
    if seconds is None:
        return None
    try:
        return canonical.rfc3339(seconds)
    except (ValueError, OverflowError, OSError):
        return None


def _line(here: Invocation, head: str, style: str, *parts: str) -> Iterator[str]:
    """The parts after the head, folded between them and, where one is longer than a line, between its words."""
    columns = here.width - _INDENT
    lines: list[str] = []
    for part in map(canonical.printable, filter(None, parts)):
        joined = f"{lines[-1]} · {part}" if lines else part
        if lines and text.width(joined) <= columns:
            lines[-1] = joined
        else:
            lines += text.wrapped(part, columns)
    yield Paint(here.colour)(f"bold {style}".strip(), head.ljust(_INDENT)) + lines[0]
    yield from (" " * _INDENT + more for more in lines[1:])


def _why_not_here(here: Invocation, found: Status) -> list[str]:
    reasons = [_OFF] if here.off else []
    if not found.here.recorded:
        reasons.append(f"{here.short(found.project)} is off: {found.here.why}")
    return reasons


def _last(here: Invocation, kept: Contents | None) -> str:
    if kept is None or kept.last is None:
        return ""
    when = text.ago(canonical.seconds(kept.last.updated), here.now)
    said = f"last turn {when} ({here.ident(kept.last.name)}@{kept.last.turns})"
    if kept.latest is None or kept.latest.delay is None:
        return said
    return f"{said}, {_milliseconds(kept.latest.delay)} after the answer"


def _milliseconds(number: int) -> str:
    return f"{number} ms" if number < 1000 else f"{number / 1000:.1f} s"


def _store(kept: Contents | None) -> list[str]:
    if kept is None:
        return ["not there yet: sessgit install"]
    raw = f" (raw {text.size(kept.raw)})" if kept.raw else ""
    return [
        f"{text.counted(kept.sessions, 'conversation')}, {text.counted(kept.turns, 'turn')}",
        text.size(kept.size) + raw,
    ]


def _waiting(here: Invocation, waits: Waiting) -> Iterator[str]:
    when = text.ago(waits.first, here.now)
    if waits.events == 1:
        yield f"1 event is waiting to be recorded, from {when}"
    else:
        yield f"{waits.events:,} events are waiting to be recorded, the first from {when}"
    if waits.recorder:
        yield "a recorder is running"
    else:
        yield "no recorder was running: " + (
            "SESSGIT_OFF=1 prevents one from starting here" if here.off else "one was started"
        )


def _remarks(here: Invocation, found: Status) -> Iterator[list[str]]:
    if found.waiting:
        yield list(_waiting(here, found.waiting))
    if found.deleting:
        yield list(_deleting(here, found.deleting))
    if found.contents and found.contents.only_here:
        many = found.contents.only_here
        yield [f"the client deleted {text.counted(many, 'conversation')}: sessgit restore --all-lost"]
    if found.older:
        yield [f"{text.counted(found.older, 'older conversation')} can be imported: sessgit import"]
    if found.contents and not here.settings.record.redact:
        yield ["secrets are stored unredacted: record.redact is false"]
    if found.purging:
        yield ["a purge was interrupted: the value may still be stored", "sessgit doctor --fix finishes it"]
    if found.packing:
        yield ["the store is being packed in the background, and gets smaller"]
    if found.errors:
        last = found.errors[-1]
        when = text.ago(canonical.seconds(last.time), here.now)
        entries = text.counted(len(found.errors), "entry", "entries")
        yield [f"{entries} in {here.short(StorePaths(here.store_path).log)}", f"the last one {when}:"]
        yield [last.message, "find the cause: sessgit doctor"]


def _deleting(here: Invocation, going: Deleting) -> Iterator[str]:
    transcripts = text.counted(going.transcripts, "transcript")
    when = "at its next start" if going.first <= here.now else f"on {_day(going.first)}"
    first = when if going.transcripts == 1 else f"within a week, the first {when}"
    yield f"the client deletes {transcripts} {first}"
    missing = going.unrecorded - going.off
    if missing:
        yield f"{missing:,} of them {'is' if missing == 1 else 'are'} not recorded: sessgit import"
    if going.off:
        yield f"{going.off:,} of projects that are off"
    if not going.unrecorded:
        yield "all recorded" if going.transcripts > 1 else "it is recorded"


def _day(moment: float) -> str:
    return time.strftime("%d %b", time.localtime(moment)).lstrip("0")
