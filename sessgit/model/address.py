"""Addresses: `SESSION[@TURN[.CELL]]`, as a person types them."""

from __future__ import annotations

import re

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.frozen import frozen

_TURN_PATTERN = re.compile(r"(-?\d{1,9})(?:\.([A-Za-z0-9_]{1,40}))?")
_NAME_FORBIDDEN = re.compile(r"[@/]|^-")
_TAG_FORBIDDEN = re.compile(r"[\s@/~^:?*\[\\]|\.\.|^[-.]|\.$|\.lock$|^HEAD$", re.IGNORECASE)
_ID_PATTERN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""What a commit or a session is called: a name like that would hide it."""
_LONGEST_FILE = 240
"""Bytes: a tag is a file, next to which git writes another one with a longer name."""


@frozen
class Address:
    """`session` is empty for the current one; `turn` counts from the end where it is negative."""

    session: str = ""
    turn: int | None = None
    cell: str = ""

    def __str__(self) -> str:
        if self.turn is None:
            return self.session
        return f"{self.session}@{self.turn}{'.' if self.cell else ''}{self.cell}"


def parse_address(text: str, at: str | None = None) -> Address:
    """Return the address that `text` spells, with `at` as its turn (and cell) where that is given; raises
    UsageError."""
    session, sign, rest = text.partition("@")
    if at is not None and sign:
        raise UsageError(f"{text} already names a turn", "Use either @TURN or --at TURN.")
    rest = at if at is not None else rest
    if not rest:
        return Address(session)
    match = _TURN_PATTERN.fullmatch(rest)
    if match is None:
        raise UsageError(f"“{rest}” is not a turn", "A turn is a number, a cell is 7.3; -1 is the last turn.")
    return Address(session, int(match[1]), match[2] or "")


def check_name(name: str) -> str:
    """Return the name without white space around it, if it can be part of an address; raises UsageError."""
    name = name.strip()
    if not name or len(name) > 100 or _NAME_FORBIDDEN.search(name) or not canonical.is_printable(name):
        raise UsageError(
            f"“{canonical.printable(name)}” cannot be a name" if name else "the name is empty",
            "A name has at most 100 characters, no @, / or control characters, and does not start with -.",
        )
    if _ID_PATTERN.fullmatch(name):
        raise UsageError(f"“{name}” cannot be a name: it looks like an id", "Choose a descriptive name.")
    return name


def check_tag(name: str) -> str:
    """Return the name, if git takes it for a tag and it can be part of an address; raises UsageError."""
    bad = (
        _TAG_FORBIDDEN.search(name)
        or not name
        or len(name) > 100
        or len(name.encode("utf-8", "replace")) > _LONGEST_FILE
    )
    if bad or not canonical.is_printable(name) or _ID_PATTERN.fullmatch(name):
        raise UsageError(
            f"“{canonical.printable(name)}” cannot be a tag" if name else "the tag is empty",
            "A tag is one word that git allows, at most 100 characters, without @ and /, and not an id, such as "
            "before-merge.",
        )
    return name


def is_tag(name: str) -> bool:
    """Return whether a tag can have this name."""
    try:
        check_tag(name)
    except UsageError:
        return False
    return True
