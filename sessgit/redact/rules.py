"""The rules as the program loads them: `make anchors` makes `table.json` of `rules.toml`, which explains them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).with_name("table.json")


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


_TABLE = json.loads(PATH.read_bytes())
ANCHORS: dict[str, list[str]] = _TABLE["anchors"]
"""The prefilter: expressions in the syntax of RE2 for each rule, in their order, and for all else that is sought."""
FIRST_COMMAND: int = _TABLE["first_command"]
"""The first of the rules for commands, whose words may be split into a list."""
RULES = tuple(Rule(*row) for row in _TABLE["rules"])
NAMES = tuple(Name(*row) for row in _TABLE["names"])
VENDORS: dict[str, str] = _TABLE["vendors"]
"""Kinds by parts of names."""
HARMLESS_WORDS = frozenset[str](_TABLE["harmless_words"])
PUBLIC_WORDS = frozenset[str](_TABLE["public_words"])
NEXT_LINE: str = _TABLE["next_line"]
