"""Addresses: `SESSION[@TURN[.CELL]]`, as a person types them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sessgit.errors import UsageError

_TURN = re.compile(r"(-?\d{1,9})(?:\.([A-Za-z0-9_]{1,40}))?")
_BAD_NAME = re.compile(r"[@/\x00-\x1f\x7f]|^-")


@dataclass(frozen=True, slots=True)
class Address:
    """`session` is empty for the current one; `turn` counts from the end where it is negative."""

    session: str = ""
    turn: int | None = None
    cell: str = ""

    def __str__(self) -> str:
        if self.turn is None:
            return self.session
        return f"{self.session}@{self.turn}{'.' if self.cell else ''}{self.cell}"


def parse(text: str, at: str | None = None) -> Address:
    """The address that `text` spells, with `at` as its turn (and cell) where that is given; raises UsageError."""
    session, sign, rest = text.partition("@")
    if at is not None and sign:
        raise UsageError(f"{text} names a turn already", "Say it once: either @TURN or --at TURN.")
    rest = at if at is not None else rest
    if not rest:
        return Address(session)
    match = _TURN.fullmatch(rest)
    if match is None:
        raise UsageError(f"“{rest}” is no turn", "A turn is a number, with a cell as in 7.3; -1 is the last turn.")
    return Address(session, int(match[1]), match[2] or "")


def check_name(name: str) -> str:
    """The name, if it can stand in an address; raises UsageError."""
    if not name.strip() or len(name) > 100 or _BAD_NAME.search(name):
        raise UsageError(
            f"“{name}” cannot be a name", "A name has no @, / or control characters, and does not begin with -."
        )
    return name
