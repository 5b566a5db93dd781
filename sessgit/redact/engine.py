"""The rules, which `make anchors` makes `table.json` of, and the scan that says which of them may match a text.

All anchors are searched in one pass by RE2, whose time is linear in the text. Nearly every line has none of them; on
the others only the rules whose anchors were found are tried, with Python's own expressions, which have lookarounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import re2


class Rule(NamedTuple):
    """A rule; `check` is the name of a function in `checks.py`, and `near` may be empty."""

    kind: str
    pattern: str
    check: str
    near: str


class Name(NamedTuple):
    """The kind of what is assigned to a name that ends with one of `endings`; the value of a `weak` name has to look
    random."""

    kind: str
    endings: list[str]
    weak: bool


TABLE = Path(__file__).with_name("table.json")
"""Generated from `rules.toml`, which explains the rules."""
_TABLE = json.loads(TABLE.read_bytes())
RULES = tuple(Rule(*row) for row in _TABLE["rules"])
_FIRST_COMMAND: int = _TABLE["first_command"]
"""The first of the rules for commands, whose words may be split into a list."""
NAMES = tuple(Name(*row) for row in _TABLE["names"])
NAME_END: str = _TABLE["name_end"]
VENDORS: dict[str, str] = _TABLE["vendors"]
"""Kinds by parts of names."""
HARMLESS_WORDS = frozenset[str](_TABLE["harmless_words"])
PUBLIC_WORDS = frozenset[str](_TABLE["public_words"])
_ANCHORS = [
    (kind, number, anchor) for kind, anchors in _TABLE["anchors"].items() for number, anchor in enumerate(anchors)
]
"""What each anchor is of, its number among those, and the anchor."""
_MEMORY = 64 << 20
"""RE2 throws its automaton away and starts anew where it grows above this."""
_END = rb"\z"
"""Matches every text: where not even this is found, RE2 ran out of memory, and nothing is known."""


class Hits(NamedTuple):
    """What may match a text: rules by their numbers in the table, assignments to names, and lines of private keys;
    `options` says that some of it is an option of a command, which may be split into a list."""

    rules: tuple[int, ...] = ()
    names: bool = False
    key_lines: bool = False
    options: bool = False


def scan(text: bytes) -> Hits | None:
    """Return what may match a text, or in a string of the JSON line that it is; None where nothing does."""
    matched = _compiled_anchors().Match(text)
    if matched is None:  # RE2 ran out of memory
        return Hits(tuple(range(len(RULES))), names=True, key_lines=True, options=True)
    return None if len(matched) == 1 else _make_hits(tuple(matched))


def literal_finder(literals: Iterable[bytes]) -> Callable[[bytes], Iterator[tuple[int, int]]]:
    """Return a function that yields the spans of the literals in a text, without those that overlap another."""
    pattern = re2.compile(b"|".join(map(re2.escape, literals)))
    return lambda text: (match.span() for match in pattern.finditer(text))


@cache
def _compiled_anchors() -> re2.Set:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = _MEMORY
    compiled = re2.Set.SearchSet(options)
    for _, _, anchor in _ANCHORS:
        compiled.Add(anchor.encode("latin-1"))
    compiled.Add(_END)
    compiled.Compile()
    return compiled


@lru_cache(4096)
def _make_hits(matched: tuple[int, ...]) -> Hits:
    hits = [_ANCHORS[place] for place in matched if place < len(_ANCHORS)]
    kinds, rules = {kind for kind, _, _ in hits}, sorted(number for kind, number, _ in hits if kind == "rules")
    is_option = "options" in kinds or any(number >= _FIRST_COMMAND for number in rules)
    return Hits(tuple(rules), "names" in kinds or "options" in kinds, "key_lines" in kinds, is_option)
