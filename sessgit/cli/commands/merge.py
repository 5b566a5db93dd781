"""`sessgit merge`, `sessgit pick`: turns of other conversations copied into this one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from sessgit.branch import edit, merge_plan
from sessgit.branch import merge as merges
from sessgit.branch.merge import MergeResult, NewSession
from sessgit.branch.merge_plan import MergePlan, PickPlan
from sessgit.cli import client_notes, frame, operands, text
from sessgit.cli.frame import DRY_RUN, INTO, NEW, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical
from sessgit.model.conversation import session as sessions
from sessgit.model.merge_decisions import SCALARS, Choice, Decision

_PARSERS: dict[str, Callable[[str], object]] = {
    "description": edit.parse_description,
    "stage": edit.parse_stage,
    "confidence": lambda value: None if value == "none" else edit.parse_confidence(value),
}


@frame.command("merge", reads=True, excludes={"--ours": "--theirs"})
def merge(
    cli: Invocation,
    theirs: str = argument(
        "THEIRS",
        "The conversation to merge: SESSION[@TURN], up to TURN.",
        required=True,
        complete="addresses",
    ),
    into: str = INTO,
    mode: Literal["summary", "graft", "pick"] | None = option(
        "--mode", "Append one summary turn, replay all their turns, or some."
    ),
    turns: str = option("--turns 4,6-8", "The turns to pick."),
    rewriter: str = option("--with COMMAND", "Pipe the summary through COMMAND."),
    ours_wins: bool = option("--ours", "Resolve conflicts with our value."),
    theirs_wins: bool = option("--theirs", "Resolve conflicts with their value."),
    values: list[str] = option("--set KEY=VALUE", "Set the merged value; may be repeated."),
    new: str | None = NEW,
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Merge another conversation into this one.

    --mode summary, the default, appends one turn: what was asked and answered there since the fork, the files, the
    cost. It needs no model; --with pipes it through a command, as in --with "claude -p 'Shorten this'". --mode graft
    replays all their turns after ours, --mode pick some of them. If ours has no new turns since the fork, the merge is
    a fast-forward: all their turns are appended.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. Labels and scratchpads of both are combined; a field that both changed is a conflict.
    """
    choice = Choice("ours" if ours_wins else "theirs" if theirs_wins else "", dict(map(_parse_value, values)))
    mode = mode or ("pick" if turns else "summary" if rewriter else None)
    if (mode == "pick") != bool(turns):
        wrong = "--turns works only with --mode pick." if turns else "--mode pick needs --turns."
        raise UsageError(wrong, "For example: `--mode pick --turns 4,6-8`.")
    if rewriter and mode != "summary":
        raise UsageError(f"--with rewrites a summary, but --mode {mode} makes none.", "Use one of the two.")
    ours = operands.target(cli, into, changes=not dry_run)
    other = operands.target(cli, theirs)
    merge_plan.check_sides(ours, other)
    numbers: Sequence[int] = ()
    if turns:
        from sessgit.history.export import parse_ranges

        numbers = parse_ranges(turns, other.turn or other.state.turns, cli.ident(other.branch.name))

    def rewrite(written: str) -> str:
        return merges.run_retell_command(rewriter, written, cli.cwd, os.environ)

    request = merge_plan.MergeRequest(mode, tuple(numbers), choice, rewrite if rewriter else None)
    if dry_run:
        plan = merges.plan_merge(cli.context, ours, other, request)
        return Answer({**plan.as_json(), "commit": None, "session_id": None}, _plan_lines(cli, plan))
    result = merges.merge_sessions(cli.context, ours, other, request, _new_session(cli, ours, new))
    assert result.plan is not None
    document = {**result.plan.as_json(), "commit": result.commit or None, "session_id": result.state.id}
    if not result.commit:
        return Answer(document, notes=[_nothing_to_do(cli, result.plan)])
    return _merged(cli, result, document, [other])


def _parse_value(pair: str) -> tuple[str, object]:
    key, equals, value = pair.partition("=")
    if key not in _PARSERS or not equals:
        raise UsageError(f"--set “{pair}” is not KEY=VALUE with a known KEY", f"The keys are {', '.join(_PARSERS)}.")
    return key, _PARSERS[key](value)


def _new_session(cli: Invocation, ours: ResolvedTarget, name: str | None) -> NewSession | None:
    """Return the new session that --new asks for; raise UsageError or ConflictError if it cannot have the name."""
    if name is None:
        return None
    if name:
        name = edit.check_name_free(cli.index, name, "", ours.state.project or cli.cwd)
    return NewSession(str(uuid.uuid4()), name)


def _merged(
    cli: Invocation, result: MergeResult, document: dict[str, object], sources: Sequence[ResolvedTarget]
) -> Answer:
    """Return what was merged into what, and how to continue."""
    names = ", ".join(map(cli.ident, dict.fromkeys(source.branch.name for source in sources)))
    what = f"added {_turns(result.turns)} from {names}" if result.turns else f"merged {names}"
    if result.plan is not None and result.turns and result.plan.mode == "summary":
        what += f", a summary of {text.counted(len(result.plan.rows), 'turn')}"
    ident, (_, next_step) = cli.ident(result.state.id), client_notes.continuation(cli, result.state)
    if result.turns and result.transcript is None:
        next_step = f"Continue it:  sessgit resume {ident}"
    lines = [text.spread(f"{cli.paint('yellow', ident)}  ", what, "", cli.width), next_step]
    return Answer(document, lines, client_notes.redacted(result.secrets, "the merged turns"))


@frame.command("pick", reads=True)
def pick(
    cli: Invocation,
    addresses: list[str] = argument("ADDRESS", "The turns to copy, in order: SESSION@TURN.", required=True),
    into: str = INTO,
    new: str | None = NEW,
    dry_run: bool = DRY_RUN,
) -> Answer:
    """Copy turns of other conversations into this one.

    The turns are appended to the client's file, which no client may have open; --new creates a new conversation
    instead. The conversations are not merged: a later merge brings the rest.
    """
    ours = operands.target(cli, into, changes=not dry_run)
    merge_plan.check_ours(ours)
    sources = [operands.target(cli, address) for address in addresses]
    result = None if dry_run else merges.pick_turns(cli.context, ours, sources, _new_session(cli, ours, new))
    plan = result.picked if result else merges.plan_pick(cli.context, ours, sources)
    assert plan is not None
    document = {
        **plan.as_json(),
        "turns": plan.numbers,
        "picked": [{"session_id": source.session, "turn": source.turn} for source in sources],
        "session_id": result.state.id if result else None,
        "commit": result.commit if result else None,
    }
    return _merged(cli, result, document, sources) if result else Answer(document, _picked(cli, ours, plan))


_LABEL = 15
_PATH = 60
_VALUE = 40
_SOURCES = {"ours": "ours", "theirs": "theirs", "set": "from --set"}


def _plan_lines(cli: Invocation, plan: MergePlan) -> Iterator[str]:
    """Yield the sides, then a line for each kind of decision."""
    sides = plan.sides
    base, turn = sides.base, cli.index.turn_of_commit(sides.base) if sides.base else None
    session = turn[0] if turn else cli.store.message(base).get("Session") if base else ""
    session = session if cli.index.branch(session) else sides.ours.name
    heads = [
        f"base   {cli.ident(session)}@{sides.shared}" if sides.shared else "base   none",
        f"ours  {cli.ident(sides.ours.name)} (+{text.counted(len(sides.own), 'turn')})",
        f"theirs  {cli.ident(sides.theirs.name)} (+{text.counted(len(sides.new), 'turn')})",
    ]
    yield from (cli.paint("bold", line) for line in text.fold(heads, cli.width, "   ", "       "))
    if not plan.is_open:
        yield _nothing_to_do(cli, plan)
        return
    if plan.rows or plan.standing == "unfinished":
        yield from _line(cli, "append", [_appended(plan)])
    yield from _line(cli, "union", [_united(decision) for decision in plan.decisions if decision.action == "unite"])
    for decision in plan.decisions:
        if decision.action in _SOURCES:
            is_scalar = decision.path in SCALARS or decision.path in sessions.SCALARS
            value = f" {_value(decision.value)}" if is_scalar else ""
            what = f"{text.clean(decision.path, _PATH)}{value} ({_SOURCES[decision.action]})"
            yield from _line(cli, "take", [what])
    yield from _line(cli, "add", [_added(decision) for decision in plan.decisions if decision.action == "add"])
    for decision in plan.conflicts:
        options = ["--ours", "--theirs", *([f"--set {decision.path}=…"] if decision.path in SCALARS else [])]
        values = [f"ours {_value(decision.ours)}", f"theirs {_value(decision.theirs)}"]
        parts = [text.clean(decision.path, _PATH), *(text.cut(value, _VALUE) for value in values), " | ".join(options)]
        yield from _line(cli, "conflict", parts, style="red", between="   ")


def _picked(cli: Invocation, ours: ResolvedTarget, plan: PickPlan) -> Iterator[str]:
    """Ours, then a line for each turn, and one for the files."""
    yield cli.paint("bold", f"ours  {cli.ident(ours.branch.name)} ({text.counted(ours.state.turns, 'turn')})")
    label = "append"
    for row, number in zip(plan.rows, plan.numbers, strict=True):
        head = f"  {label:<{_LABEL - 2}}turn {row.turn} of {cli.ident(row.branch)}, as turn {number}: "
        yield f"{head}“{text.cut(text.clean(cli.index.title(row)), cli.width - text.width(head) - 2)}”"
        label = ""
    for decision in plan.decisions[1:]:
        yield from _line(cli, "union", [_united(decision)])


def _nothing_to_do(cli: Invocation, plan: MergePlan) -> str:
    """Return why there is nothing to merge."""
    ours, theirs = cli.ident(plan.sides.ours.name), cli.ident(plan.sides.theirs.name)
    is_merged = plan.standing == "merged"
    return f"{theirs} is already merged into {ours}." if is_merged else f"{theirs} has no turns that {ours} lacks."


def _appended(plan: MergePlan) -> str:
    """`a summary of 2 turns, as turn 12`."""
    if plan.standing == "unfinished":
        return "nothing: the turns are already there"
    first, is_summary = plan.sides.ours.state.turns + 1, plan.mode == "summary"
    turns = f"{'a summary of ' if is_summary else ''}{text.counted(len(plan.rows), 'turn')}"
    where = _turns(range(first, first + (1 if is_summary else len(plan.rows))))
    return f"{turns}, as {where}{' (fast-forward)' if plan.mode == 'forward' else ''}"


def _turns(numbers: Sequence[int]) -> str:
    return f"turn {numbers[0]}" if len(numbers) == 1 else f"turns {numbers[0]} to {numbers[-1]}"


def _line(cli: Invocation, label: str, parts: Iterable[str], *, style: str = "", between: str = " · ") -> Iterator[str]:
    return text.field(cli, f"  {label}", parts, least=_LABEL, style=style, between=between)


def _united(decision: Decision) -> str:
    if decision.path == "labels":
        return f"labels {', '.join(map(text.label, decision.value))}"
    name = decision.path.removeprefix("pad/").removesuffix(".jsonl")
    name = "working memory" if decision.path == sessions.MEMORY else text.clean(name)
    ours, theirs, both = (
        value if isinstance(value, int) else len(value) for value in (decision.ours, decision.theirs, decision.value)
    )
    return f"{name} {ours} + {theirs} → {both}"


def _added(decision: Decision) -> str:
    """`total recursive calls 3 + 2 → 5`: what theirs counted since it began."""
    before, after = decision.ours or 0, decision.value or 0
    name = decision.path.partition(".")[2].replace("_", " ")
    return f"{name} {before:g} {'-' if after < before else '+'} {abs(round(after - before, 9)):g} → {after:g}"


def _value(value: Any) -> str:
    if value in (None, ""):
        return "none"
    return f"“{text.clean(value, 60)}”" if isinstance(value, str) else text.cut(canonical.compact(value).decode(), 60)
