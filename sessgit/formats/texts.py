"""Texts of a transcript, made safe for a document and cut to a readable length."""

from __future__ import annotations

import re
import sys

from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen

_LINE_END = re.compile(r"\r+\n|\r|\u2028|\u2029")


@frozen
class Bound:
    """How many lines and characters of a text are shown."""

    lines: int
    chars: int


NO_BOUND = Bound(sys.maxsize, sys.maxsize)


def text_bounds(*, full: bool) -> tuple[Bound, Bound]:
    """Return the bounds of prompts and answers, and of the input and output of tools."""
    return (NO_BOUND, NO_BOUND) if full else (Bound(1_000, 50_000), Bound(240, 16_000))


def clean_text(text: str) -> str:
    """Return the text without control characters and text direction overrides; `\\ufffd` replaces others."""
    if text.isascii() and text.isprintable():
        return text
    return canonical.printable(_LINE_END.sub("\n", canonical.without_sequences(text)))


@frozen
class CutText:
    """A text whose middle may be left out: `note` says how much, or is ``""``."""

    head: str
    note: str = ""
    tail: str = ""


def cut_text(text: str, bound: Bound) -> CutText:
    """Return the text, cleaned; beyond the bound only its first two thirds and its last third."""
    text = clean_text(text).strip("\n")
    lines = text.split("\n")
    if len(lines) <= bound.lines and len(text) <= bound.chars:
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
    """Return the first line that is not empty, cleaned, in at most `width` characters."""
    return canonical.one_line(canonical.without_sequences(text), width)
