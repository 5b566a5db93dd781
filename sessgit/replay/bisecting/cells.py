"""What the recorded calls say of turns: a turn is bad where a call that fits failed in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sessgit.errors import SessgitError, UsageError
from sessgit.history import show
from sessgit.model.conversation.content import Call
from sessgit.replay.bisecting.search import TestResult
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_LONGEST_TEXT = 10_000
"""Characters of a call that a pattern is tried on: some patterns take quadratic time."""


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression; raises UsageError that says what is wrong with it."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"“{pattern}” is not a regular expression: {error}",
            "Escape special characters with a backslash: \\( matches a parenthesis.",
        ) from error


def cell_tester(
    store: Store, branch: Branch, rows: Mapping[int, Row], pattern: re.Pattern[str]
) -> Callable[[int], TestResult]:
    """Says of a turn, by its number, how the calls in it ended that fit the pattern.

    It is looked for in the tool's name, a space, and the one argument that tells most: `Bash python -m pytest`. Of the
    branch the turns that are asked for are read, and no others.
    """

    def ask(turn: int) -> TestResult:
        try:
            pieces = show.read_pieces(store, branch, rows[turn])[1]
        except SessgitError as error:
            return TestResult("skip", f"cannot read it: {error}")
        fitting = [
            piece
            for piece in pieces
            if isinstance(piece, Call)
            and pattern.search(f"{piece.tool} {piece.about}"[:_LONGEST_TEXT])
            and (piece.cell.ok is not None)
        ]
        failed = [call for call in fitting if call.cell.ok is False or call.exit_code]
        if not fitting:
            return TestResult("skip", "no call matches")
        return TestResult("bad" if failed else "good", cells=tuple(call.ordinal for call in failed or fitting))

    return ask
