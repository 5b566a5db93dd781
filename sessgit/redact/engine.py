"""The scan that says which rules may match a text.

All anchors are searched in one pass by RE2, whose time is linear in the text. Nearly every line has none of them; on
the others only the rules whose anchors were found are tried, with Python's own expressions, which have lookarounds.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import re2

from sessgit.redact import anchors

_MEMORY = 64 << 20
"""RE2 throws its automaton away and starts anew where it grows above this."""
_END = rb"\z"
"""Matches every text: where not even this is found, RE2 ran out of memory, and nothing is known."""


class Hits(NamedTuple):
    """What may match a text: rules by their numbers in the table, assignments to names, and lines of private keys;
    `options` says that some of it is an option of a command, which may stand in a list."""

    rules: tuple[int, ...] = ()
    names: bool = False
    key_lines: bool = False
    options: bool = False


def scan(text: bytes) -> Hits | None:
    """Return what may match a text, or in a string of the JSON line that it is; None where nothing does."""
    found = _compiled_anchors().Match(text)
    if found is None:  # RE2 ran out of memory
        return Hits(tuple(range(anchors.COUNT)), names=True, key_lines=True, options=True)
    return None if len(found) == 1 else _make_hits(tuple(found))


@cache
def _compiled_anchors() -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = _MEMORY
    made = re2.Set.SearchSet(options)
    for anchor in (*(anchor for anchor, _ in anchors.RULES), *anchors.NAMES, *anchors.KEY_LINES):
        made.Add(anchor.encode("latin-1"))
    made.Add(_END)
    made.Compile()
    return made


@lru_cache(4096)
def _make_hits(found: tuple[int, ...]) -> Hits:
    first_name = len(anchors.RULES)
    first_key = first_name + len(anchors.NAMES)
    end = first_key + len(anchors.KEY_LINES)
    numbers = {number for place in found if place < first_name for number in anchors.RULES[place][1]}
    return Hits(
        tuple(sorted(numbers)),
        names=any(first_name <= place < first_key for place in found),
        key_lines=any(first_key <= place < end for place in found),
        options=first_name + anchors.OPTION in found or not anchors.COMMANDS.isdisjoint(numbers),
    )
