"""What a check of the store found, and how much was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessgit.check.verify import Verified
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import findings
from sessgit.cli.render import Paint

_INDENT = 11


def full(here: Invocation, found: Verified, *, deep: bool) -> Iterator[str]:
    """The findings, then what is whole."""
    paint = Paint(here.colour)
    yield from findings.lines(here, found.findings)
    if found.findings:
        yield ""
    conversations = text.counted(found.sessions, "conversation")
    looked = f"{conversations}, {text.counted(found.turns, 'turn')}"
    if found.is_sound:
        yield f"{looked}: {paint('green', 'no damage')}."
    else:
        whole = found.sessions - len(found.damaged)
        are = "is" if 1 in (whole, found.sessions) else "are"
        said = (
            f"{whole:,} of {conversations} {are} intact"
            if found.damaged
            else "they are intact, but other parts of the store are not"
        )
        yield from text.wrapped(f"{looked}: {said}.", here.width)
    yield from _line(
        here, "Checked", f"{text.counted(found.proved, 'hash', 'hashes')} of lines, taken when they were recorded"
    )
    yield from _line(here, "Recomputed", "cells, texts, counts and trailers, from the lines")
    if deep:
        yield from _line(here, "Cut", f"{text.counted(found.cut or 0, 'file')} rebuilt and cut into turns again")
        yield from _line(here, "Hashed", "every object, by git fsck --strict")


def as_json(found: Verified, *, address: str, deep: bool) -> dict[str, Any]:
    """Return what `verify --json` prints."""
    return {
        "id": address or None, "deep": deep, "sound": found.is_sound, "sessions": found.sessions, "turns": found.turns,
        "proved": found.proved, "cut": found.cut, "damaged": list(found.damaged),
        "findings": findings.as_json(found.findings),
    }  # fmt: skip


def _line(here: Invocation, head: str, said: str) -> Iterator[str]:
    first, *more = text.wrapped(said, here.width - _INDENT)
    yield head.ljust(_INDENT) + first
    yield from (" " * _INDENT + line for line in more)
