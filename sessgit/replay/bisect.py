"""The turn of a conversation in which something first went bad, found in logarithmic steps.

As `git bisect` does, it takes for granted that what went bad stays bad: of several changes it finds one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history.code import difference, heads
from sessgit.history.code.difference import CodeDiff
from sessgit.history.code.git import Head
from sessgit.history.views import turn_gists
from sessgit.replay.bisecting import cells, commands, search
from sessgit.replay.bisecting.commands import BisectCommand
from sessgit.replay.bisecting.search import TestResult, Verdict
from sessgit.replay.bisecting.worktree import bisect_worktree
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

ReportStep = Callable[[int, int, TestResult | None], None]
"""Told of each turn that is tested: its number, how many turns there are left to choose from, and the answer; None
before there is one."""

_NO_COMMIT_REASON = "no commit recorded"
_RECORDED_LIVE_HINT = "Commits are recorded only while a conversation runs in a git repository, not by import."
_SHELL_ERROR_CODES = (126, 127)


@dataclass(frozen=True, slots=True)
class TurnRange:
    """The turns that are looked at: the first one is taken for good, the last for bad, until they are asked."""

    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class BisectResult:
    """The last turn known to be good and the first known to be bad.

    Of the turns between them none can be tested, so that any of these, or the bad one, may be the first bad one.
    `steps` are the turns that were tested, in that order; `passed_over` those in the span of which it was known without
    a test that they cannot be, and why. `files` are those that tools changed in the turns that may be it, and `code`
    is what lies between the two commits where a command was run.
    """

    branch: Branch
    span: TurnRange
    good: Row
    bad: Row
    steps: tuple[tuple[int, TestResult], ...]
    passed_over: Mapping[int, str]
    files: tuple[str, ...]
    code: CodeDiff | None = None

    @property
    def is_exact(self) -> bool:
        """Whether no turn lies between the good one and the bad one."""
        return self.bad.turn == self.good.turn + 1

    @property
    def answer(self) -> TestResult:
        """What made the bad turn bad."""
        return self._answer(self.bad.turn)

    @property
    def before(self) -> TestResult:
        """What made the good turn good."""
        return self._answer(self.good.turn)

    def _answer(self, turn: int) -> TestResult:
        return next(answer for tested, answer in self.steps if tested == turn)


def bisect_by_command(
    store: Store,
    index: Index,
    branch: Branch,
    span: TurnRange,
    command: BisectCommand,
    report: ReportStep = lambda turn, left, answer: None,
) -> BisectResult:
    """Finds the turn by running a command at the commits that the project had, in a temporary worktree."""
    rows = {row.turn: row for row in index.turns(branch.name, span.good, span.bad)}
    known: dict[int, Head] = {}
    for turn, row in rows.items():
        head = heads.head_after_turn(store, row)
        if head is not None:
            known[turn] = head
    if not known:
        raise NotFoundError(
            f"no turn of {_turns_text(branch, span)} has a recorded commit of the project",
            f"{_RECORDED_LIVE_HINT} `--cell-fails` checks what the conversation itself ran.",
        )
    passed_over = {turn: _NO_COMMIT_REASON for turn in rows if turn not in known}
    with bisect_worktree(branch.state.project, command.env) as place:
        ask = commands.command_tester(place, layout.session_of(branch.name), known, command)
        good, bad, steps = _run_search(branch, sorted(known), ask, report)
    code = difference.compare_code(store, index, (branch, good), (branch, bad), command.env)
    files = _changed_files(store, index, branch, [rows[turn] for turn in rows if good < turn <= bad])
    return BisectResult(branch, span, rows[good], rows[bad], steps, passed_over, files, code)


def bisect_by_cells(
    store: Store, index: Index, branch: Branch, span: TurnRange, pattern: str,
    report: ReportStep = lambda turn, left, answer: None,
) -> BisectResult:  # fmt: skip
    """Finds the turn by how the recorded calls ended that fit a regular expression."""
    compiled = cells.compile_pattern(pattern)
    rows = {row.turn: row for row in index.turns(branch.name, span.good, span.bad)}
    ask = cells.cell_tester(store, branch, rows, compiled)
    good, bad, steps = _run_search(branch, sorted(rows), ask, report)
    files = _changed_files(store, index, branch, [rows[turn] for turn in rows if good < turn <= bad])
    return BisectResult(branch, span, rows[good], rows[bad], steps, {}, files)


def _run_search(
    branch: Branch, turns: Sequence[int], ask: Callable[[int], TestResult], report: ReportStep
) -> tuple[int, int, tuple[tuple[int, TestResult], ...]]:
    """The good turn, the bad one, and what was asked on the way; raises SessgitError where an end is not as it
    should be."""
    answers: dict[int, TestResult] = {}

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
        raise NotFoundError(f"none of the turns can be tested: {_skip_reasons(answers)}", _hint_for_no_match(answers))
    low = turns[first]
    if answers[low].verdict == "bad":
        raise SessgitError(*_first_is_bad_error(branch, low, turns, answers[low]))
    last = end(turns[:first:-1])
    high = turns[len(turns) - 1 - last]
    if high == low:
        raise SessgitError(
            f"only turn {low} can be tested, and it is good{_reason_text(low, answers[low])}",
            f"bisect needs a good turn and a later bad turn. {_hint_for_one_turn(answers)}".strip(),
        )
    if answers[high].verdict == "good":
        raise SessgitError(*_last_is_good_error(branch, low, high, answers))
    good, bad = search.find_boundary(turns[first : len(turns) - last], verdict)
    return good, bad, tuple(answers.items())


def _first_is_bad_error(branch: Branch, turn: int, turns: Sequence[int], answer: TestResult) -> tuple[str, str]:
    said = f"turn {turn}, the first that can be tested, is already bad{_reason_text(turn, answer)}"
    if answer.exit_code in _SHELL_ERROR_CODES:
        return (
            said,
            "The shell could not run the command: does it exist in a fresh checkout, where nothing is installed?",
        )
    if turn == turns[0] == 1:
        return said, f"No earlier turn is known. `sessgit show {layout.short_name(branch.name)}@1` shows it."
    return said, "Name a good turn with `--good N`."


def _last_is_good_error(branch: Branch, low: int, high: int, answers: Mapping[int, TestResult]) -> tuple[str, str]:
    said = f"turn {high}, the last that can be tested, is good{_reason_text(high, answers[high])}"
    if answers[low].commit and answers[low].commit == answers[high].commit:
        return f"{said}, at the same commit as turn {low}", "Uncommitted changes cannot be tested."
    return said, "Name a bad turn with `--bad N`."


def _reason_text(turn: int, answer: TestResult) -> str:
    if answer.cells:
        return f": call {turn}.{answer.cells[-1]} {'failed' if answer.verdict == 'bad' else 'worked'}"
    said = f": {answer.last_words}" if answer.last_words and answer.verdict == "bad" else ""
    return f" ({answer.why}){said}" if answer.why else said


def _skip_reasons(answers: Mapping[int, TestResult]) -> str:
    return "; ".join(dict.fromkeys(answer.why for answer in answers.values()))


def _hint_for_no_match(answers: Mapping[int, TestResult]) -> str:
    if any(answer.commit for answer in answers.values()):
        return "`git fetch` restores commits that another clone still has."
    return "The pattern is searched in a tool's name and argument, as in “Bash python -m pytest”."


def _hint_for_one_turn(answers: Mapping[int, TestResult]) -> str:
    """What to look for else, where a pattern fits the calls of one turn alone."""
    return "A wider pattern may match calls of more turns." if any(one.cells for one in answers.values()) else ""


def _turns_text(branch: Branch, span: TurnRange) -> str:
    short = layout.short_name(branch.name)
    whole = (span.good, span.bad) == (1, branch.state.turns)
    return short if whole else f"{short} from {span.good} to {span.bad}"


def _changed_files(store: Store, index: Index, branch: Branch, rows: Sequence[Row]) -> tuple[str, ...]:
    """What tools changed in the turns, as far as these can be read."""
    found: dict[str, None] = {}
    with suppress(SessgitError):
        for gist in turn_gists(store, index, branch, rows):
            found.update(dict.fromkeys(gist.files_changed))
    return tuple(found)
