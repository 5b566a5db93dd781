"""All cues at once: whatever a cue hits, the sieve does not hold back."""

from __future__ import annotations

import random
import re
import string
import sys
import threading
from collections.abc import Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from sessgit.model.secrets import cues, sieve
from sessgit.model.secrets.cues import CUES, Cue
from sessgit.model.secrets.redact import RULES_VERSION, redact_line, redact_text
from tests.secret_samples import SAMPLES

ALPHABET = string.ascii_letters + string.digits + string.punctuation + " \t\n"
AROUND = ("", " ", "x", "_", "-", '"', "7", "\n")
TRIES = 60_000
ENOUGH = 120

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
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
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
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
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
            assert value is sre.CATEGORY_SPACE, value
            chars |= set(string.whitespace)
    return sorted(chars) if wanted else sorted(set(ALPHABET) - chars)


def matched(cue: Cue, version: int) -> Iterator[bytes]:
    """Texts that a cue hits: at least some for each alternative that it has, however deep."""
    pattern = cues._of(cue.pattern, version)
    maker, search = Maker(pattern), re.compile(pattern.encode("latin-1")).search
    left, found = set(maker.branches), 0
    for _ in range(TRIES):
        text = maker.text()
        data = text.encode("latin-1")
        if search(data) and not (cue.lower and data != data.lower()):
            yield "".join(c.upper() if cue.lower and maker.random.random() < 0.2 else c for c in text).encode("latin-1")
            left -= maker.chosen
            found += 1
        if found >= ENOUGH and not left:
            return
    assert found >= ENOUGH, f"only {found} texts for {cue.name}"
    assert not left, f"{len(left)} alternatives of {cue.name} never met"


@pytest.fixture(scope="module")
def scan() -> sieve.Scan:
    made = sieve.ready(sieve.made())
    assert made is not None
    return made


@pytest.fixture
def sieved(monkeypatch: pytest.MonkeyPatch, scan: sieve.Scan) -> None:
    monkeypatch.setattr(cues._SIEVE, "_scan", scan)


@pytest.mark.parametrize("version", [1, 4, RULES_VERSION])
@pytest.mark.parametrize("cue", CUES, ids=[f"{cue.name}-{place}" for place, cue in enumerate(CUES)])
def test_what_a_cue_hits_the_sieve_lets_through(cue: Cue, version: int, scan: sieve.Scan) -> None:
    for text in matched(cue, version):
        likely = scan(text)
        assert likely is not None
        assert cue.name in likely, text


def test_every_cue_has_a_coarse_form() -> None:
    assert set(sieve.COARSE) == {cue.name for cue in CUES}


def test_secrets_of_every_kind_are_replaced_as_without_it(monkeypatch: pytest.MonkeyPatch, scan: sieve.Scan) -> None:
    samples = (sample for samples in SAMPLES.values() for sample in samples)
    texts = [(sample if isinstance(sample, str) else sample[0]).encode() for sample in samples]
    lines = [b'{"type":"user","message":{"content":"' + text.replace(b"\n", b"\\n") + b'"}}' for text in texts]
    monkeypatch.setattr(cues, "_SIEVE", sieve.Sieve())
    plain = [(redact_text(text), redact_line(line)) for text, line in zip(texts, lines, strict=True)]
    monkeypatch.setattr(cues._SIEVE, "_scan", scan)
    assert [(redact_text(text), redact_line(line)) for text, line in zip(texts, lines, strict=True)] == plain


@pytest.mark.usefixtures("sieved")
def test_most_lines_are_not_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cues, "_searches", None)
    line = b'{"uuid":"7f3","id":"toolu_01A09q90qw90lq917835lq9","requestId":"req_011CSHoEeqs5C35K2UUqR7Fy","n":1}'
    assert not cues.has_cue(line, RULES_VERSION)


def test_it_gets_ready_once_that_is_worth_it() -> None:
    made = sieve.Sieve()
    assert made.likely(b"-" * sieve._WORTH) is None
    assert made.likely(b"-") is None
    assert made.likely(b"-") == frozenset()
    assert made.likely(b"pwd") == {"password"}


def test_without_vectorscan_all_cues_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    made = sieve.Sieve()
    assert [made.likely(b"-" * sieve._WORTH) for _ in range(3)] == [None] * 3
    assert sieve.made() == b""
    made.take(b"")
    assert made.likely(b"-") is None


def test_it_is_ready_at_once_with_what_another_process_made() -> None:
    taken = sieve.Sieve()
    taken.take(sieve.made())
    assert taken.likely(b"pwd") == {"password"}


def test_threads_do_not_disturb_each_other(scan: sieve.Scan) -> None:
    text, seen = b"-" * 200_000 + b" pwd", list[frozenset[str] | None]()
    threads = [threading.Thread(target=lambda: seen.extend(scan(text) for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4_000
    assert set(seen) <= {None, frozenset({"password"})}
    assert scan(text) == {"password"}
