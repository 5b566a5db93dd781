"""`sessgit status`: whether recording is on, and what needs attention."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.ui import context, options, render, text

if TYPE_CHECKING:
    from sessgit.ops.resolve import Target
    from sessgit.ops.status import Status

_INDENT = 12


def run(address: options.Address = "", as_json: options.Json = False) -> None:
    """Show whether recording is on and what needs attention.

    Also what is in the store, and how far the current session, or the one at ADDRESS, is recorded.
    """
    from sessgit.ops import status as statuses
    from sessgit.ui import named

    here = context.read()
    index = here.index if here.has_store else None
    session = named.target(here, address) if address else named.current(here) if index else None
    found = statuses.status(here.store_path, here.config, index)
    if as_json:
        render.document("status/v1", _json(here, found, session))
    else:
        render.lines(here, _page(here, found, session))


def _is_level(here: context.Context, session: Target) -> bool:
    from sessgit.ops import catchup
    from sessgit.store.layout import Beside

    path = session.state.transcript
    return not path or catchup.is_level(Beside(here.store_path), session.session, Path(path))


def _page(here: context.Context, found: Status, session: Target | None) -> Iterator[str]:
    paint = render.Paint(here.colour)

    def line(head: str, style: str, *parts: str) -> Iterator[str]:
        lines = text.fold([part for part in parts if part], here.width - _INDENT, " · ")
        yield paint(f"bold {style}".strip(), head.ljust(_INDENT)) + lines[0]
        yield from (" " * _INDENT + more for more in lines[1:])

    recording = found.recording
    last = _last(here, found) if found.contents else ""
    yield from line(
        "Recording", "green" if recording.on else "yellow", "on" if recording.on else "off", recording.why, last
    )
    if os.environ.get("SESSGIT_OFF") == "1":
        yield from line("", "", "SESSGIT_OFF=1 is set here: clients started here are not recorded")
    yield from line("Store", "", here.short(here.store_path), *_store(found))
    if session is not None:
        from sessgit.ops.resolve import title

        level = "all recorded" if _is_level(here, session) else "its transcript has gone on since"
        name = text.clean(title(session.state), 40)
        turns = text.counted(session.state.turns, "turn")
        yield from line("Session", "", f"{session.branch.name[:8]}  {name}", turns, level)
    for remark in _remarks(here, found):
        yield from line("Attention", "yellow", *remark)


def _last(here: context.Context, found: Status) -> str:
    from sessgit.model import canonical

    last = found.contents.last if found.contents else None
    if last is None:
        return ""
    when = text.ago(canonical.seconds(last.state.updated), here.now)
    return f"last turn {when} ({last.name[:8]}@{last.state.turns})"


def _store(found: Status) -> list[str]:
    if found.contents is None:
        return ["not there yet: sessgit install"]
    kept = found.contents
    return [f"{text.counted(kept.sessions, 'conversation')}, {text.counted(kept.turns, 'turn')}", text.size(kept.size)]


def _remarks(here: context.Context, found: Status) -> Iterator[list[str]]:
    from sessgit.model import canonical

    if found.contents and found.contents.only_here:
        gone = found.contents.only_here
        yield [f"the client has deleted {text.counted(gone, 'transcript')}", "they are only here now"]
    if found.older:
        yield [f"{text.counted(found.older, 'older conversation')} can be brought in: sessgit import"]
    if found.errors:
        last = found.errors[-1]
        when = text.ago(canonical.seconds(last.time), here.now)
        yield [
            f"{text.counted(len(found.errors), 'entry', 'entries')} in the log",
            f"the last one {when}:",
        ]
        yield [text.clean(last.message, 500)]


def _json(here: context.Context, found: Status, session: Target | None) -> dict[str, Any]:
    kept = found.contents
    last = kept.last if kept else None
    return {
        "recording": {"on": found.recording.on, "why": found.recording.why or None},
        "store": str(here.store_path),
        "sessions": kept.sessions if kept else 0,
        "turns": kept.turns if kept else 0,
        "bytes": kept.size if kept else 0,
        "last": {"id": last.name, "turn": last.state.turns, "time": last.state.updated} if last else None,
        "only_here": kept.only_here if kept else 0,
        "older": found.older,
        "errors": [{"time": e.time, "version": e.version, "message": e.message} for e in found.errors],
        "session": None
        if session is None
        else {"id": session.branch.name, "turns": session.state.turns, "level": _is_level(here, session)},
    }
