"""Find the turn of a conversation in which something broke, in a logarithmic number of steps.

As `git bisect` does, it assumes that what broke stays broken: of several changes it finds one. A turn is tested by a
command, run at the commit that the project had at the turn's end, or by the results that the turn's calls had.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from sessgit.branch import worktree as worktrees
from sessgit.branch.worktree import Worktree
from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.history import code_comparison, project_git
from sessgit.history.code_comparison import CodeDiff
from sessgit.history.project_git import Env, Head
from sessgit.history.turn_log import read_pieces, turn_gists
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.replay.sandbox import processes
from sessgit.store import tempdirs
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row

Verdict = Literal["good", "bad", "skip"]

_SKIP_CODE, _LAST_CODE = 125, 127
"""Exit codes mean what they mean to `git bisect run`: 0 is good, 125 cannot be tested, others up to 127 are bad, higher
ones stop the search."""
_SHELL_ERROR_CODES = (126, 127)
_KEPT_OUTPUT = 16_384
"""Bytes of a command's output that are kept, the last ones."""
_GRACE_SECONDS = 2.0
"""Seconds that a command gets to end by itself when it is stopped."""
_SEARCHED_CALL = 10_000
"""Characters of a call that a pattern is searched in: some patterns take quadratic time."""
_LONGEST_LAST_LINE = 200
_NO_SUBMODULES = ("-c", "submodule.recurse=false")


@frozen
class TestResult:
    """The verdict on a turn, and `why` in words for a person.

    Of a command there are the `commit` that it ran at, its exit code (None if it was stopped), the seconds it took and
    the end of its output. Of calls, `cells` are the ordinals of those that failed, or of all that match if none did.
    """

    verdict: Verdict
    why: str = ""
    commit: str = ""
    exit_code: int | None = None
    seconds: float | None = None
    output: str = ""
    cells: tuple[int, ...] = ()

    def reason(self, turn: int) -> str:
        """Return the clause that explains the verdict in an error message, or ``""``."""
        if self.cells:
            return f": call {turn}.{self.cells[-1]} {'failed' if self.verdict == 'bad' else 'worked'}"
        return f" ({self.why}){_last_line(self.output) if self.verdict == 'bad' else ''}" if self.why else ""


TestTurn = Callable[[int], TestResult]
ReportStep = Callable[[int, int, TestResult | None], None]
"""Called for each turn that is tested with its number, the number of turns left to choose from, and the result; None
before there is one."""


@frozen
class TurnRange:
    """The turns to search: the first is taken for good and the last for bad, until they are tested."""

    good: int
    bad: int


@frozen
class BisectCommand:
    """A command for the shell, the environment it runs in, and the seconds it may take, None for no limit.

    `on_output` is called with its output as it comes."""

    line: str
    env: Env
    limit: float | None
    on_output: Callable[[bytes], None]


@frozen
class BisectResult:
    """The last turn known to be good and the first known to be bad.

    None of the turns between them can be tested, so any of these, or the bad one, may be the first bad one. `steps` are
    the turns that were tested, in that order; `untested` are those that could not be, known without a test, and why.
    `files` are those that tools changed in the turns that may be the first bad one; `code` is the difference between
    the commits of the two, if a command was run.
    """

    branch: Branch
    span: TurnRange
    good: Row
    bad: Row
    steps: Mapping[int, TestResult]
    untested: Mapping[int, str]
    files: tuple[str, ...]
    code: CodeDiff | None = None

    @property
    def is_exact(self) -> bool:
        """True if no turn lies between the good one and the bad one."""
        return self.bad.turn == self.good.turn + 1


def bisect_by_command(
    context: Context, branch: Branch, span: TurnRange, command: BisectCommand, report: ReportStep
) -> BisectResult:
    """Find the turn by running a command once at each commit that the project had, in a temporary worktree.

    Raises SessgitError if the command ends with a code that stops the search.
    """
    rows = context.index.turns(branch.name, span.good, span.bad)
    known = {row.turn: head for row in rows if (head := project_git.head_after_turn(context.store, row)) is not None}
    if not known:
        short = branch.short
        is_whole = (span.good, span.bad) == (1, branch.state.turns)
        raise NotFoundError(
            f"no turn of {short if is_whole else f'{short} from {span.good} to {span.bad}'} has a recorded commit of"
            " the project",
            "Commits are recorded only while a conversation runs in a git repository, not by import."
            " `--cell-fails` checks what the conversation itself ran.",
        )
    untested = {row.turn: "no commit recorded" for row in rows if row.turn not in known}
    with bisect_worktree(branch.state.project, command.env) as place:
        results: dict[str, TestResult] = {}

        def test(turn: int) -> TestResult:
            head = known[turn]
            if head.commit not in results:
                results[head.commit] = _test_commit(place, branch.session, turn, head, command)
            return results[head.commit]

        result = _search(context, branch, [row for row in rows if row.turn in known], test, report)
    ends = (branch, result.good.turn), (branch, result.bad.turn)
    code = code_comparison.compare_code(context, *ends, command.env)
    return replace(result, span=span, untested=untested, code=code)


def bisect_by_cells(
    context: Context, branch: Branch, span: TurnRange, pattern: re.Pattern[str], report: ReportStep
) -> BisectResult:
    """Find the turn by the recorded results of the calls that match a regular expression: a turn is bad if one failed.

    The expression is searched in the tool's name, a space, and the call's main argument: `Bash python -m pytest`. Only
    the turns that are tested are read.
    """
    rows = context.index.turns(branch.name, span.good, span.bad)
    by_turn = {row.turn: row for row in rows}

    def test(turn: int) -> TestResult:
        try:
            pieces = read_pieces(context.store, branch, by_turn[turn])[1]
        except SessgitError as error:
            return TestResult("skip", f"cannot read it: {error}")
        calls = [
            piece
            for piece in pieces
            if isinstance(piece, Call)
            and piece.cell.ok is not None
            and pattern.search(f"{piece.tool} {piece.about}"[:_SEARCHED_CALL])
        ]
        if not calls:
            return TestResult("skip", "no call matches")
        failed = [call for call in calls if call.cell.ok is False or call.exit_code]
        return TestResult("bad" if failed else "good", cells=tuple(call.ordinal for call in failed or calls))

    return _search(context, branch, rows, test, report)


# The search


def _search(context: Context, branch: Branch, rows: Sequence[Row], test: TestTurn, report: ReportStep) -> BisectResult:
    """Search the turns of these rows; raises SessgitError unless the first turn that can be tested is good and the last
    one bad."""
    by_turn = {row.turn: row for row in rows}
    turns, results = list(by_turn), dict[int, TestResult]()

    def verdict(turn: int, left: int) -> Verdict:
        report(turn, left, None)
        results[turn] = test(turn)
        report(turn, left, results[turn])
        return results[turn].verdict

    def first_testable(some: Sequence[int]) -> int:
        return next((n for n, turn in enumerate(some) if verdict(turn, len(some)) != "skip"), len(some))

    first = first_testable(turns)
    if first == len(turns):
        reasons = "; ".join(dict.fromkeys(result.why for result in results.values()))
        raise NotFoundError(
            f"none of the turns can be tested: {reasons}",
            "`git fetch` restores commits that another clone still has."
            if any(result.commit for result in results.values())
            else "The pattern is searched in a tool's name and argument, as in “Bash python -m pytest”.",
        )
    low = turns[first]
    if results[low].verdict == "bad":
        raise SessgitError(
            f"turn {low}, the first that can be tested, is already bad{results[low].reason(low)}",
            "The shell could not run the command: does it exist in a fresh checkout, where nothing is installed?"
            if results[low].exit_code in _SHELL_ERROR_CODES
            else f"No earlier turn is known. `sessgit show {branch.short}@1` shows it."
            if low == turns[0] == 1
            else "Name a good turn with `--good N`.",
        )
    last = first_testable(turns[:first:-1])
    high = turns[len(turns) - 1 - last]
    if high == low:
        wider = " A wider pattern may match calls of more turns."
        raise SessgitError(
            f"only turn {low} can be tested, and it is good{results[low].reason(low)}",
            "bisect needs a good turn and a later bad turn."
            + (wider if any(result.cells for result in results.values()) else ""),
        )
    if results[high].verdict == "good":
        message = f"turn {high}, the last that can be tested, is good{results[high].reason(high)}"
        if results[low].commit and results[low].commit == results[high].commit:
            raise SessgitError(f"{message}, at the same commit as turn {low}", "Uncommitted changes cannot be tested.")
        raise SessgitError(message, "Name a bad turn with `--bad N`.")
    good, bad = find_boundary(turns[first : len(turns) - last], verdict)
    files = dict[str, None]()
    with suppress(SessgitError):  # a damaged turn: its files are not listed
        for gist in turn_gists(context, branch, context.index.turns(branch.name, good + 1, bad)):
            files.update(dict.fromkeys(gist.files_changed))
    span = TurnRange(turns[0], turns[-1])
    return BisectResult(branch, span, by_turn[good], by_turn[bad], results, {}, tuple(files))


def find_boundary(turns: Sequence[int], ask: Callable[[int, int], Verdict]) -> tuple[int, int]:
    """Return a good turn and a later bad one with no turn between them that can be tested.

    The first turn is good and the last bad, as the caller knows. `ask` gets a turn and the number of turns left with
    it; without skips it is called a logarithmic number of times. After a skip the next turn to be tested lies far from
    it: those that cannot be tested often come in clusters.
    """
    good, bad, left, skips = turns[0], turns[-1], list(turns[1:-1]), 0
    while left:
        at = int(len(left) * _bisection_fraction(skips + 1))
        turn = left[at]
        match ask(turn, len(left)):
            case "good":
                good, left, skips = turn, left[at + 1 :], 0
            case "bad":
                bad, left, skips = turn, left[:at], 0
            case _:
                del left[at]
                skips += 1
    return good, bad


def _bisection_fraction(number: int) -> float:
    """Return 1/2, 1/4, 3/4, 1/8, 5/8, … for 1, 2, 3, …: the bits of the number mirrored behind the point."""
    return int(f"{number:b}"[::-1], 2) / (1 << number.bit_length())


# By recorded calls


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled regular expression; raises UsageError if it is none."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"“{pattern}” is not a regular expression: {error}",
            "Escape special characters with a backslash: \\( matches a parenthesis.",
        ) from error


# By a command


def _test_commit(place: BisectWorktree, session: str, turn: int, head: Head, command: BisectCommand) -> TestResult:
    if not place.has(head.commit):
        return TestResult("skip", f"commit {head.commit[:8]} no longer exists", head.commit)
    folder = place.check_out(head)
    env = {name: value for name, value in command.env.items() if not name.startswith("GIT_")}
    env |= {
        "SESSGIT_BISECT_TURN": str(turn),
        "SESSGIT_BISECT_SESSION": session,
        "SESSGIT_BISECT_COMMIT": head.commit,
        "SESSGIT_OFF": "1",
    }
    began = time.monotonic()
    code, data = _run_command(command, folder, env)
    seconds = round(time.monotonic() - began, 3)
    output = data.decode("utf-8", "replace")
    if code is None:
        return TestResult("bad", f"stopped after {command.limit:g}s", head.commit, None, seconds, output)
    if code > _LAST_CODE:
        raise SessgitError(
            f"the command ended with {code} at turn {turn} ({head.commit[:8]}), which means to stop"
            + _last_line(output),
            "0 is good, 125 cannot be tested, others up to 127 are bad; higher codes stop the search.",
        )
    verdict: Verdict = "good" if code == 0 else "skip" if code == _SKIP_CODE else "bad"
    return TestResult(verdict, f"exit {code}", head.commit, code, seconds, output)


def _last_line(output: str) -> str:
    """Return `: ` and the last line that is not empty, or ``""``."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return f": {lines[-1][:_LONGEST_LAST_LINE]}" if lines else ""


def _run_command(command: BisectCommand, folder: str, env: Mapping[str, str]) -> tuple[int | None, bytes]:
    """Return the exit code, as a shell gives it if a signal ended the command, or None if the time was up; and the end
    of the output. No process that the command started survives."""
    began, output = time.monotonic(), bytearray()
    limits = processes.unsandboxed(env, command.limit or 0, _GRACE_SECONDS)
    with processes.start_process(["/bin/sh", "-c", command.line], folder, limits) as running:
        while data := os.read(running.output, 65_536):
            output += data
            del output[:-_KEPT_OUTPUT]
            command.on_output(data)
        code, why = running.wait()
    if code is None and (command.limit is None or time.monotonic() - began < command.limit):
        raise NotFoundError(f"cannot start the command: {why}")
    return code, bytes(output)


class BisectWorktree:
    """A temporary worktree of the user's project that is moved from commit to commit.

    The user's own worktrees, branches and index are never touched, and no hook runs. git has a record of the worktree
    in the repository for as long as it exists, from the first checkout on.
    """

    def __init__(self, project: str, env: Env, parent: Path) -> None:
        """`project` is a folder of the user's repository, `parent` an empty one; raises NotFoundError without git."""
        self._checkout = project_git.find_checkout(project, env)
        self._project, self._env = project, env
        self._path = parent / (Path(self._checkout.top).name or "project")
        self._planned: Worktree | None = None
        self._git_dir: Path | None = None

    def has(self, commit: str) -> bool:
        """Return whether the repository still has the commit."""
        return project_git.has_object(self._checkout.top, self._env, f"{commit}^{{commit}}")

    def check_out(self, head: Head) -> str:
        """Check out the commit and return the folder to work in: that of the project, if the commit has it. Changes
        and new files are discarded, except those that git ignores."""
        if self._git_dir is None:
            self._planned = worktrees.plan_worktree(self._project, head, self._path, "", self._env)
            worktrees.make_worktree(self._planned, self._env)
            path = project_git.read_output(str(self._path), self._env, "rev-parse", "--absolute-git-dir")
            self._git_dir = Path(os.fsdecode(path.removesuffix(b"\n")))
        else:
            if not (self._path / ".git").is_file():
                raise SessgitError("the command deleted the worktree it ran in", "It ran in a temporary worktree.")
            self._git("checkout", "--quiet", "--force", "--detach", head.commit)
            self._git("clean", "-ffdq")
        inner = self._path / self._checkout.inner
        return str(inner if inner.is_dir() else self._path)

    def close(self) -> None:
        """Delete the worktree; raises SessgitError if git's record of it stays."""
        tempdirs.delete_folder(self._path)
        if self._planned is None:
            return
        with suppress(SessgitError):
            worktrees.remove_worktree(self._planned, self._env)
        if self._git_dir is not None and self._git_dir.exists():
            raise SessgitError(
                f"git still has a worktree at {self._path}, which is gone",
                f"Run `git worktree prune` in {self._checkout.top}.",
            )

    def _git(self, *arguments: str) -> None:
        # Both paths are given: if the command replaced the worktree's `.git`, git would search the folders above.
        paths = (f"--git-dir={self._git_dir}", f"--work-tree={self._path}")
        project_git.run_change(str(self._path), self._env, *paths, *_NO_SUBMODULES, *arguments)


@contextmanager
def bisect_worktree(project: str, env: Env) -> Iterator[BisectWorktree]:
    """Yield a worktree in a temporary folder and delete both afterwards; after a kill, the next `gc` deletes them."""
    with tempdirs.make_folder("sessgit-bisect-") as folder:
        worktree = BisectWorktree(project, env, folder)
        try:
            yield worktree
        finally:
            worktree.close()
    if folder.exists():
        raise SessgitError(f"cannot remove {folder}", "The command left something there that cannot be deleted.")
