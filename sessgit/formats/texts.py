"""Texts out of a transcript, made fit for a document: harmless, and not longer than anybody reads."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sessgit.model import canonical, humanize

_LINE_END = re.compile(r"\r+\n|\r|\u2028|\u2029")

LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of one text is shown: so many lines and so many characters; 0 stands for all."""

    lines: int = 0
    chars: int = 0


WORDS_BOUND = Bound(1_000, 50_000)
"""Of what was said."""
OUTPUT_BOUND = Bound(240, 16_000)
"""Of what tools took and gave."""
NO_BOUND = Bound()


def clean_text(text: str) -> str:
    """The text without what steers a terminal or turns the direction of reading; what has no meaning is `\\ufffd`."""
    if text.isascii() and text.isprintable():
        return text
    return canonical.printable(_LINE_END.sub("\n", canonical.without_sequences(text)))


@dataclass(frozen=True, slots=True)
class CutText:
    """A text of which the middle may be left out: `note` says how much, and is empty where nothing is."""

    head: str
    note: str = ""
    tail: str = ""


def cut_text(text: str, bound: Bound) -> CutText:
    """The text, harmless; beyond the bound its first two thirds and its last one."""
    text = clean_text(text).strip("\n")
    lines = text.split("\n")
    if (not bound.lines or len(lines) <= bound.lines) and (not bound.chars or len(text) <= bound.chars):
        return CutText(text)
    first, last = bound.lines * 2 // 3, bound.lines // 3
    if len(lines) > bound.lines:
        head, tail = "\n".join(lines[:first]), "\n".join(lines[-last:])
    else:
        head, tail = text, ""
    if len(head) + len(tail) > bound.chars:
        tail = (tail or head)[-(bound.chars // 3) :]
        head = head[: bound.chars * 2 // 3]
    return CutText(head, _omission_note(text, head, tail), tail)


def _omission_note(text: str, head: str, tail: str) -> str:
    lines = text.count("\n") - head.count("\n") - tail.count("\n") - 1
    size = humanize.format_size(len(text.encode("utf-8", "replace")) - len((head + tail).encode("utf-8", "replace")))
    return f"{humanize.format_count(lines, 'line')} left out ({size})" if lines > 0 else f"{size} left out"


def one_line(text: str, width: int) -> str:
    """The first line that is not empty, harmless, `width` characters at most."""
    return canonical.one_line(canonical.without_sequences(text), width)


def longest_run(text: str, char: str) -> int:
    """How often the character stands in a row at most."""
    return max((len(run) for run in re.findall(re.escape(char) + "+", text)), default=0)
