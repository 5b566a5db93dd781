"""What `verify` prints: findings, and how much was checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessgit.check.verify import Verified
from sessgit.cli import blocks, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import findings


def full(here: Invocation, result: Verified, *, deep: bool) -> Iterator[str]:
    """Yield the whole page."""
    yield from findings.lines(here, result.findings)
    if result.findings:
        yield ""
    sessions = text.counted(result.sessions, "conversation")
    intact = result.sessions - len(result.damaged)
    if result.is_sound:
        outcome = "no damage"
    elif result.damaged:
        outcome = f"{intact:,} of {sessions} {'is' if 1 in (intact, result.sessions) else 'are'} intact"
    else:
        outcome = "they are intact, but other parts of the store are not"
    style = "green" if result.is_sound else ""
    yield from blocks.paragraph(here, f"{sessions}, {text.counted(result.turns, 'turn')}: {outcome}.", style)
    hashes = f"{text.counted(result.proved, 'hash', 'hashes')} of lines, taken when they were recorded"
    checks = {"Checked": hashes, "Recomputed": "cells and texts, from the lines"}
    if deep:
        checks["Cut"] = f"{text.counted(result.cut or 0, 'file')} rebuilt and cut into turns again"
        checks["Hashed"] = "every object, by git fsck --strict"
    for label, check in checks.items():
        yield from blocks.field(here, label, [check], width=11)


def as_json(result: Verified, *, address: str, deep: bool) -> dict[str, Any]:
    """Return what `verify --json` prints."""
    return {
        "id": address or None, "deep": deep, "sound": result.is_sound, "sessions": result.sessions,
        "turns": result.turns, "proved": result.proved, "cut": result.cut, "damaged": list(result.damaged),
        "findings": findings.as_json(result.findings),
    }  # fmt: skip
