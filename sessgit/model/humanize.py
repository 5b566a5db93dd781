"""Numbers as a person reads them, and words as a shell does."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import groupby

from sessgit.model import canonical
from sessgit.model.conversation.turn import Tokens


def format_count(number: int, noun: str, plural: str = "") -> str:
    """`1 turn`, `2 turns`, `12,345 turns`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_times(number: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def format_tokens(number: int) -> str:
    """`913`, `15k`, `1.2M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        value = number / size
        if value >= 0.9995:
            return f"{value:.1f}{unit}" if value < 9.95 and unit == "M" else f"{value:.0f}{unit}"
    return str(number)


def new_tokens(counts: Tokens) -> int:
    """Return the tokens that were new: the cache gives the same words again at each call."""
    return counts.input + counts.output + counts.cache_write


def format_money(dollars: float | None) -> str:
    """`$1.84`; nothing where a price is not known."""
    return "" if dollars is None else f"${dollars:,.2f}"


def format_size(number: int) -> str:
    """`512 B`, `9.1 MB`."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def quote_for_shell(word: str) -> str:
    """Return the word quoted for a shell, so that it can be copied from one line.

    What no terminal should see is escaped in `$'…'`, which bash, zsh and ksh read.
    """
    if canonical.is_printable(word):
        return shlex.quote(word)
    encoded = word.encode("utf-8", "surrogatepass")
    plain = "".join(chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in encoded)
    return f"$'{plain}'"


def format_ranges(numbers: Iterable[int], dash: str) -> list[str]:
    """Return `3`, `5-9`, `12`: ascending numbers, those without a gap as a range."""
    ranges = []
    for _, group in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [str(number) for _, number in group]
        ranges.append(dash.join(dict.fromkeys((run[0], run[-1]))))
    return ranges
