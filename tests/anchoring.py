"""Makes `redact/table.json` of `rules.toml`, with the prefilter: `make anchors` writes it.

An anchor is a regular expression that matches wherever its rule does, also in the raw JSON of a text: the pattern from
its first literal on, without lookarounds, with bounded repeats widened to unbounded ones. It ends with the first long
run of characters, so that it also matches a token that a terminal broke later than that. Its syntax is that of RE2.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from sessgit.redact import engine

SOURCE = tomllib.loads(engine.TABLE.with_name("rules.toml").read_text("utf-8"))
"""The rules as people write them."""
RULES: list[dict[str, Any]] = [rule for group in ("keys", "tokens", "texts", "commands") for rule in SOURCE[group]]
NAMES: list[dict[str, Any]] = SOURCE["names"]
_PART = re.compile(r"\{([A-Z_]+)\}")

_RUN = 16
"""So many characters of a run are demanded, four times as many behind less than three literals; they end the anchor."""
_SPACE = r"(?:\\+[nrt]|[\s\"'\\,])+"
"""A space of a command: in a list its words are strings."""
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_CATEGORIES = {sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w"}
_FEW = 6
_NEWLINES = "\n\r"
_PLAIN = "_:=/,@%~;!<>#&"


def anchor_of(rule: Mapping[str, Any]) -> str:
    """Return the anchor of a rule: the one written by hand, or what is generated from its pattern."""
    if "anchor" in rule:
        return str(rule["anchor"])
    pattern = rule.get("near") or expanded(rule["pattern"])
    tree = _parser.parse(pattern)
    folded = bool(tree.state.flags & re.IGNORECASE)
    items = list(_flat(tree, folded))
    start = _start(items)
    run = _RUN if sum(_literals(item) for item in items[start : start + 3]) >= 3 else 4 * _RUN
    return _written(items[start:], run)


def _flat(tree: Any, folded: bool) -> Iterable[tuple[Any, Any, bool]]:
    """Return the items of a sequence with those of its groups, and whether each ignores the case; no assertions."""
    for op, value in tree:
        if op is sre.SUBPATTERN:
            _, on, off, inner = value
            yield from _flat(inner, (folded or bool(on & re.IGNORECASE)) and not off & re.IGNORECASE)
        elif op in _REPEATS and value[0] == value[1] == 1:
            yield from _flat(value[2], folded)
        elif op not in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            yield op, value, folded


def _written(items: Sequence[tuple[Any, Any, bool]], run: int = 0) -> str:
    """Return the regular expression of items, all of them or up to the first long run of characters."""
    out = ""
    for op, value, folded in items:
        if run and op in _REPEATS and value[0] >= _RUN and _is_character(value[2]):
            return f"{out}{_written(list(_flat(value[2], folded)))}{{{min(run, value[0])}}}"
        out += _item(op, value, folded)
    return out


def _item(op: Any, value: Any, folded: bool) -> str:
    if op is sre.LITERAL:
        return _literal(value, folded)
    if op is sre.NOT_LITERAL:
        return r"(?s:.)" if chr(value) == "\n" else f"[^{_ranges({value})}]"
    if op is sre.ANY:
        return r"(?s:.)"
    if op is sre.IN:
        return _set(value, folded)
    if op is sre.BRANCH:
        return "(?:" + "|".join(_written(list(_flat(one, folded))) for one in value[1]) + ")"
    assert op in _REPEATS, op
    least, most, inner = value
    items = list(_flat(inner, folded))
    one = _written(items)
    if one == _SPACE or (one.endswith(("*", "+")) and len(items) == 1):
        return one if least else f"(?:{one})?"
    if not _is_whole(one, len(items)):
        one = f"(?:{one})"
    if most == 1:
        return f"{one}?"
    if _is_character(inner) and least >= _RUN:
        return f"{one}{{{_RUN}}}"
    if least < 2:
        return one + ("+" if least else "*")
    return f"{one}{{{least}}}" + ("" if most == least else f"{one}*")


def _is_whole(one: str, count: int) -> bool:
    """Return whether a repeat applies to all of an expression of so many items."""
    return len(one) == 1 or (
        count == 1 and (one.startswith("(?:") or (one[0] == "[" and one.find("]") == len(one) - 1))
    )


def _start(items: Sequence[tuple[Any, Any, bool]]) -> int:
    """Return where the first three literals in a row begin; else the first two, the first one, or the beginning."""
    for least in (3, 2, 1):
        for at in range(len(items)):
            if _leading(items[at:]) >= least and (least > 1 or items[at][0] is sre.LITERAL):
                return at
    return 0


def _literals(item: tuple[Any, Any, bool]) -> int:
    """Return how many literals an item is, one of a few characters included; of a choice the fewest it begins with."""
    op, value, folded = item
    if op is sre.BRANCH:
        return min(_leading(list(_flat(one, folded))) for one in value[1])
    if op is sre.IN:
        return int(0 < len(_codes(value, folded)) <= _FEW and value[0][0] is not sre.NEGATE)
    return int(op is sre.LITERAL and chr(value) != " ")


def _leading(items: Sequence[tuple[Any, Any, bool]]) -> int:
    """Return how many literals in a row items begin with."""
    return sum(takewhile(bool, map(_literals, items)))


def _is_character(tree: Any) -> bool:
    items = list(_flat(tree, False))
    return len(items) == 1 and items[0][0] in (sre.LITERAL, sre.IN, sre.NOT_LITERAL, sre.ANY)


def _literal(code: int, folded: bool) -> str:
    character = chr(code)
    if character == " ":
        return _SPACE
    if character == '"':
        return r"\\*" + '"'
    if character == "\\":
        return r"\\+"
    if character in "\n\r\t":
        return r"(?:\s|\\+[nrt])"
    if folded and character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    return character if character.isalnum() or character in _PLAIN else f"\\x{code:02x}"


def _set(options: Sequence[tuple[Any, Any]], folded: bool) -> str:
    negated = options[0][0] is sre.NEGATE
    written = "".join(_CATEGORIES[value] for op, value in options if op is sre.CATEGORY)
    codes = _codes(options, folded)
    plain = f"[{'^' if negated else ''}{written}{_ranges(codes)}]"
    if negated and ord("\n") in codes and ord(" ") not in codes:  # between words of a command, which a list may have
        return f"[^{written}{_ranges(codes - {ord(newline) for newline in _NEWLINES})}]"
    if negated:
        return plain
    if codes & set(b"\t\n\r") or r"\s" in written:
        return rf"(?:{plain}|\\+[nrt])"
    if ord(" ") in codes:
        return f"(?:{plain}|{_SPACE})"
    return rf"(?:\\*{plain})" if ord('"') in codes else plain


def _codes(options: Sequence[tuple[Any, Any]], folded: bool) -> set[int]:
    codes = {value for op, value in options if op is sre.LITERAL}
    for op, value in options:
        if op is sre.RANGE:
            codes |= set(range(value[0], value[1] + 1))
    if folded:
        codes |= {ord(chr(code).swapcase()) for code in codes if code < 0x80 and chr(code).isalpha()}
    return codes


def _ranges(codes: set[int]) -> str:
    out, ordered = "", sorted(codes)
    while ordered:
        first = last = ordered.pop(0)
        while ordered and ordered[0] == last + 1:
            last = ordered.pop(0)
        out += _escaped(first) + (f"-{_escaped(last)}" if last > first else "")
    return out


def _escaped(code: int) -> str:
    """Return a character of a set."""
    return chr(code) if (chr(code).isascii() and chr(code).isalnum()) or chr(code) in _PLAIN else f"\\x{code:02x}"


def expanded(pattern: str) -> str:
    """Return a pattern with the parts that it names."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: str(SOURCE["parts"][part[1]]), pattern)
    return pattern


def table() -> str:
    """Return the text of `table.json`."""
    document = {
        "rules": [
            [rule["kind"], expanded(rule["pattern"]), rule.get("check", "is_issued"), rule.get("near", "")]
            for rule in RULES
        ],
        "first_command": len(RULES) - len(SOURCE["commands"]),
        "anchors": {
            "rules": [anchor_of(rule) for rule in RULES],
            "names": list(map(expanded, SOURCE["assignments"]["anchors"])),
            "options": list(map(expanded, SOURCE["assignments"]["option_anchors"])),
            "key_lines": SOURCE["key_lines"]["anchors"],
        },
        "names": [[name["kind"], name["endings"], name.get("weak", False)] for name in NAMES],
        "vendors": {vendor["part"]: vendor["kind"] for vendor in SOURCE["vendors"]},
        "harmless_words": SOURCE["words"]["harmless"],
        "public_words": SOURCE["words"]["public"],
        "name_end": expanded(SOURCE["assignments"]["name_end"]),
    }
    return json.dumps(document, indent=0, ensure_ascii=False) + "\n"
