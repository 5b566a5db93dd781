"""The turn of a conversation in which something first went bad, found in logarithmic steps.

As `git bisect` does, it takes for granted that what went bad stays bad: of several changes it finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history.code import difference, heads
from sessgit.history.code.difference import Code
from sessgit.history.code.git import Head
from sessgit.history.views import gists
from sessgit.replay.bisecting import cells, commands, search
from sessgit.replay.bisecting.commands import Command
from sessgit.replay.bisecting.search import Answer, Verdict
from sessgit.replay.bisecting.worktree import bench
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

Report = Callable[[int, int, Answer | None], None]
"""Told of each turn that is tested: its number, how many turns there are left to choose from, and the answer; None
before there is one."""

_NOT_NOTED = "no commit recorded"
_RECORDED_LIVE = "Commits are recorded only while a conversation runs in a git repository, not by import."
_SHELL_FAILED = (126, 127)


@dataclass(frozen=True, slots=True)
class Span:
    """The turns that are looked at: the first one is taken for good, the last for bad, until they are asked."""

    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class Found:
    """The last turn known to be good and the first known to be bad.

    Of the turns between them none can be tested, so that any of these, or the bad one, may be the first bad one.
    `steps` are the turns that were tested, in that order; `passed_over` those in the span of which it was known without
    a test that they cannot be, and why. `files` are those that tools changed in the turns that may be it, and `code`
    is what lies between the two commits where a command was run.
    """

    branch: Branch
    span: Span
    good: Row
    bad: Row
    steps: tuple[tuple[int, Answer], ...]
    passed_over: Mapping[int, str]
    files: tuple[str, ...]
    code: Code | None = None

    @property
    def is_exact(self) -> bool:
        """Whether no turn lies between the good one and the bad one."""
        return self.bad.turn == self.good.turn + 1

    @property
    def answer(self) -> Answer:
        """What made the bad turn bad."""
        return self._answer(self.bad.turn)

    @property
    def before(self) -> Answer:
        """What made the good turn good."""
        return self._answer(self.good.turn)

    def _answer(self, turn: int) -> Answer:
        return next(answer for tested, answer in self.steps if tested == turn)


def by_command(
    store: Store,
    index: Index,
    branch: Branch,
    span: Span,
    command: Command,
    report: Report = lambda turn, left, answer: None,
) -> Found:
    """Finds the turn by running a command at the commits that the project had, in a temporary worktree."""
    rows = {row.turn: row for row in index.turns(branch.name, span.good, span.bad)}
    known: dict[int, Head] = {}
    for turn, row in rows.items():
        head = heads.of_turn(store, row)
        if head is not None:
            known[turn] = head
    if not known:
        raise NotFoundError(
            f"no turn of {_turns(branch, span)} has a recorded commit of the project",
            f"{_RECORDED_LIVE} `--cell-fails` checks what the conversation itself ran.",
        )
    passed_over = {turn: _NOT_NOTED for turn in rows if turn not in known}
    with bench(branch.state.project, command.env) as place:
        ask = commands.asker(place, layout.session_of(branch.name), known, command)
        good, bad, steps = _searched(branch, sorted(known), ask, report)
    code = difference.compare(store, index, (branch, good), (branch, bad), command.env)
    files = _files(store, index, branch, [rows[turn] for turn in rows if good < turn <= bad])
    return Found(branch, span, rows[good], rows[bad], steps, passed_over, files, code)


def by_cells(
    store: Store, index: Index, branch: Branch, span: Span, pattern: str,
    report: Report = lambda turn, left, answer: None,
) -> Found:  # fmt: skip
    """Finds the turn by how the recorded calls ended that fit a regular expression."""
    compiled = cells.compiled(pattern)
    rows = {row.turn: row for row in index.turns(branch.name, span.good, span.bad)}
    ask = cells.asker(store, branch, rows, compiled)
    good, bad, steps = _searched(branch, sorted(rows), ask, report)
    files = _files(store, index, branch, [rows[turn] for turn in rows if good < turn <= bad])
    return Found(branch, span, rows[good], rows[bad], steps, {}, files)


def _searched(
    branch: Branch, turns: Sequence[int], ask: Callable[[int], Answer], report: Report
) -> tuple[int, int, tuple[tuple[int, Answer], ...]]:
    """The good turn, the bad one, and what was asked on the way; raises SessgitError where an end is not as it
    should be."""
    answers: dict[int, Answer] = {}

    def verdict(turn: int, left: int) -> Verdict:
        report(turn, left, None)
        answers[turn] = ask(turn)
        report(turn, left, answers[turn])
        return answers[turn].verdict

    def end(some: Sequence[int]) -> int:
        """The nearest one that can be tested."""
        return next((n for n, turn in enumerate(some) if verdict(turn, len(some)) != "skip"), len(some))

    first = end(turns)
    if first == len(turns):
        raise NotFoundError(f"none of the turns can be tested: {_whys(answers)}", _hint_of_none(answers))
    low = turns[first]
    if answers[low].verdict == "bad":
        raise SessgitError(*_bad_already(branch, low, turns, answers[low]))
    last = end(turns[:first:-1])
    high = turns[len(turns) - 1 - last]
    if high == low:
        raise SessgitError(
            f"only turn {low} can be tested, and it is good{_because(low, answers[low])}",
            f"bisect needs a good turn and a later bad turn. {_hint_of_one(answers)}".strip(),
        )
    if answers[high].verdict == "good":
        raise SessgitError(*_good_still(branch, low, high, answers))
    good, bad = search.narrow(turns[first : len(turns) - last], verdict)
    return good, bad, tuple(answers.items())


def _bad_already(branch: Branch, turn: int, turns: Sequence[int], answer: Answer) -> tuple[str, str]:
    said = f"turn {turn}, the first that can be tested, is already bad{_because(turn, answer)}"
    if answer.exit_code in _SHELL_FAILED:
        return (
            said,
            "The shell could not run the command: does it exist in a fresh checkout, where nothing is installed?",
        )
    if turn == turns[0] == 1:
        return said, f"No earlier turn is known. `sessgit show {layout.short(branch.name)}@1` shows it."
    return said, "Name a good turn with `--good N`."


def _good_still(branch: Branch, low: int, high: int, answers: Mapping[int, Answer]) -> tuple[str, str]:
    said = f"turn {high}, the last that can be tested, is good{_because(high, answers[high])}"
    if answers[low].commit and answers[low].commit == answers[high].commit:
        return f"{said}, at the same commit as turn {low}", "Uncommitted changes cannot be tested."
    return said, "Name a bad turn with `--bad N`."


def _because(turn: int, answer: Answer) -> str:
    if answer.cells:
        return f": call {turn}.{answer.cells[-1]} {'failed' if answer.verdict == 'bad' else 'worked'}"
    said = f": {answer.last_words}" if answer.last_words and answer.verdict == "bad" else ""
    return f" ({answer.why}){said}" if answer.why else said


def _whys(answers: Mapping[int, Answer]) -> str:
    return "; ".join(dict.fromkeys(answer.why for answer in answers.values()))


def _hint_of_none(answers: Mapping[int, Answer]) -> str:
    if any(answer.commit for answer in answers.values()):
        return "`git fetch` restores commits that another clone still has."
    return "The pattern is searched in a tool's name and argument, as in “Bash python -m pytest”."


def _hint_of_one(answers: Mapping[int, Answer]) -> str:
    """What to look for else, where a pattern fits the calls of one turn alone."""
    return "A wider pattern may match calls of more turns." if any(one.cells for one in answers.values()) else ""


def _turns(branch: Branch, span: Span) -> str:
    short = layout.short(branch.name)
    whole = (span.good, span.bad) == (1, branch.state.turns)
    return short if whole else f"{short} from {span.good} to {span.bad}"


def _files(store: Store, index: Index, branch: Branch, rows: Sequence[Row]) -> tuple[str, ...]:
    """What tools changed in the turns, as far as these can be read."""
    found: dict[str, None] = {}
    with suppress(SessgitError):
        for gist in gists(store, index, branch, rows):
            found.update(dict.fromkeys(gist.files_changed))
    return tuple(found)
