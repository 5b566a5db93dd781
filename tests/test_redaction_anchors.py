"""The prefilter: an anchor matches wherever its rule does, so that no line with a secret is passed over."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import anchoring
import pytest
import re2
from redaction_examples import example
from secret_samples import TEMPLATES

from sessgit.redact import engine
from sessgit.redact.engine import RULES, TABLE, Hits, scan
from sessgit.redact.replacer import redact_line, redact_text

ALPHABET = string.ascii_letters + string.digits + string.punctuation + " \t\n"
AROUND = ("", " ", "x", "_", "-", '"', "7", "\n")
TRIES = 3_000
ENOUGH = 12

REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
CATEGORIES = {
    sre.CATEGORY_SPACE: set(" \t\n"),
    sre.CATEGORY_NOT_SPACE: set(string.ascii_letters + string.digits),
    sre.CATEGORY_WORD: set(string.ascii_letters + string.digits + "_"),
}
Chosen = set[tuple[int, int]]


class Maker:
    """Makes texts that an expression may match, and remembers which of its alternatives it took."""

    def __init__(self, pattern: str) -> None:
        self.tree = _parser.parse(pattern)
        self.random = random.Random(len(pattern))
        self.branches: Chosen = set()
        self._find(self.tree)
        self.chosen: Chosen = set()

    def _find(self, tree: Any) -> None:
        for op, value in tree:
            if op is sre.BRANCH:
                self.branches |= {(id(value), place) for place in range(len(value[1]))}
            for inner in _below(op, value):
                self._find(inner)

    def text(self) -> str:
        self.chosen = set()
        made, ahead = self._sequence(self.tree, "")
        behind = self.random.choice(("", ahead))  # what follows may be what was looked ahead for
        return self.random.choice(AROUND) + made + behind + self.random.choice(AROUND)

    def _sequence(self, tree: Any, made: str) -> tuple[str, str]:
        """The text with what a part of the expression stands for behind it, and what it looks ahead for."""
        ahead = ""
        for op, value in tree:
            made, more = self._one(op, value, made)
            ahead = more or ahead
        return made, ahead

    def _one(self, op: Any, value: Any, made: str) -> tuple[str, str]:
        pick = self.random
        if op is sre.LITERAL:
            return made + chr(value), ""
        if op is sre.NOT_LITERAL:
            return made + pick.choice([c for c in ALPHABET if ord(c) != value]), ""
        if op is sre.ANY:
            return made + pick.choice(ALPHABET.replace("\n", "")), ""
        if op is sre.IN:
            return made + pick.choice(_in(value)), ""
        if op in REPEATS:
            least, most, inner = value
            ahead = ""
            for _ in range(pick.choice((least, least, min(int(most), least + 2)))):
                made, ahead = self._sequence(inner, made)
            return made, ahead
        if op is sre.SUBPATTERN:
            return self._sequence(value[3], made)
        if op is sre.BRANCH:
            place = pick.randrange(len(value[1]))
            self.chosen.add((id(value), place))
            return self._sequence(value[1][place], made)
        if op is sre.ASSERT:
            direction, inner = value
            found, ahead = self._sequence(inner, "")
            if direction > 0:
                return made, found + ahead
            return (made[: -len(found)] if len(found) < len(made) else "") + found, ""
        assert op in (sre.ASSERT_NOT, sre.AT), op
        return made, ""


def _below(op: Any, value: Any) -> list[Any]:
    if op is sre.BRANCH:
        return list(value[1])
    if op in REPEATS:
        return [value[2]]
    return [value[3]] if op is sre.SUBPATTERN else [value[1]] if op is sre.ASSERT else []


def _in(options: Sequence[tuple[Any, Any]]) -> list[str]:
    wanted, chars = True, set[str]()
    for op, value in options:
        if op is sre.NEGATE:
            wanted = False
        elif op is sre.LITERAL:
            chars.add(chr(value))
        elif op is sre.RANGE:
            chars |= {chr(code) for code in range(value[0], value[1] + 1)}
        else:
            chars |= CATEGORIES[value]
    return sorted(chars) if wanted else sorted(set(ALPHABET) - chars)


def matched(number: int) -> Iterator[str]:
    """Texts that a rule's pattern matches."""
    pattern = RULES[number].pattern
    maker, search = Maker(pattern), re.compile(pattern.encode("ascii")).search
    found = 0
    for _ in range(TRIES):
        text = maker.text()
        if search(text.encode("latin-1")):
            found += 1
            yield text
        if found >= ENOUGH:
            return


def test_the_table_is_that_of_the_rules() -> None:
    assert TABLE.read_text("utf-8") == anchoring.table(), "make anchors"


def test_few_anchors_are_written_by_hand() -> None:
    assert len({rule["anchor"] for rule in anchoring.RULES if "anchor" in rule}) <= 8


@pytest.mark.parametrize("number", range(len(RULES)), ids=[f"{rule.kind}-{n}" for n, rule in enumerate(RULES)])
def test_what_a_rule_matches_has_its_anchor(number: int) -> None:
    """As a text, in a line of JSON, and in JSON within one."""
    if RULES[number].near:
        return
    for text in matched(number):
        shown = [text.encode("latin-1")]
        if text.isascii():
            once = json.dumps({"a": text})
            shown += [once.encode(), json.dumps({"b": once}).encode()]
        for one in shown:
            hits = scan(one)
            assert hits is not None, one
            assert number in hits.rules, one


@pytest.mark.parametrize("seed", range(3))
def test_every_example_has_an_anchor_however_it_stands(seed: int) -> None:
    rng = random.Random(seed)
    for _, template in TEMPLATES:
        text = example(template, rng).text
        once = json.dumps({"a": text})
        for shown in (text, f"x\n{text}\n", once, json.dumps({"b": once}), json.dumps({"c": json.dumps({"b": once})})):
            assert scan(shown.encode()) is not None, shown


def test_most_lines_have_none() -> None:
    line = b'{"uuid":"7f3","id":"toolu_01A09q90qw90lq917835lq9","requestId":"req_011CSHoEeqs5C35K2UUqR7Fy","n":1}'
    assert scan(line) is None
    assert redact_line(line)[0] is line


def test_where_re2_finds_not_even_the_end_every_rule_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it answers where its automaton has no memory: as a set does that has no pattern for the end of a text."""
    mute = re2.Set.SearchSet()
    mute.Add(r"[^\s\S]")
    mute.Compile()
    monkeypatch.setattr(engine, "_compiled_anchors", lambda: mute)
    assert scan(b"x") == Hits(tuple(range(len(RULES))), names=True, key_lines=True, options=True)
    assert redact_text(b"ghp_" + b"a1B2" * 9 + b" DB_PASSWORD=" + b"s3cr3t-Pa!w0rd")[1] == 2
