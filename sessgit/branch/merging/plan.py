"""What a merge will do, decided before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sessgit import agents
from sessgit.branch.edit import MOST_LABELS
from sessgit.branch.merging import pads
from sessgit.branch.merging import sides as parted
from sessgit.branch.merging.pads import MergedPad
from sessgit.branch.merging.sides import MergeSides
from sessgit.errors import ConflictError, NotFoundError, UsageError
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.shared_turns import is_same_turn
from sessgit.history.views import turn_gists
from sessgit.model import canonical, humanize, ids, merge_decisions, unified_state
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Choice, Decision, Mode
from sessgit.store import layout
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index, Row
from sessgit.store.store import Store

_LONGEST_VALUE = 60

MergeState = Literal["open", "merged", "nothing", "unfinished"]
"""Whether there is something to do: `merged` and `nothing` say no, `unfinished` that an interrupted merge brought the
turns already and lacks its commit."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What the user asks for. No mode means a summary, or forward if ours has no new turns; `turns` are the numbers of
    theirs' turns to pick; `retell` returns another text for the summary."""

    mode: Mode | None = None
    turns: tuple[int, ...] = ()
    choice: Choice = field(default_factory=Choice)
    retell: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The decisions of a merge, and the turns of theirs that it appends."""

    sides: MergeSides
    standing: MergeState
    mode: Mode
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]
    pad: MergedPad

    @property
    def conflicts(self) -> list[Decision]:
        """The decisions that are left to the user."""
        return [decision for decision in self.decisions if decision.conflict]

    @property
    def is_open(self) -> bool:
        """Whether there is something to do."""
        return self.standing in ("open", "unfinished")

    @property
    def authored(self) -> Session:
        """Our state with what was decided."""
        return merge_decisions.resolve_state(self.sides.ours.state, [d for d in self.decisions if not d.conflict])

    def key(self, what: str) -> str:
        """Return the uuid of a line that this merge appends."""
        return ids.merged_id(self.mode, self.sides.ours.tip, self.sides.tip, what)

    def as_json(self) -> dict[str, Any]:
        sides = self.sides
        return {
            "base": sides.base or None,
            "ours": sides.ours.tip,
            "theirs": sides.tip,
            "decisions": [decision.as_json() for decision in self.decisions],
        }


@dataclass(frozen=True, slots=True)
class PickPlan:
    """Single turns to append to ours, and the decisions about them."""

    ours: Branch
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]

    @property
    def numbers(self) -> list[int]:
        """The numbers that the turns get."""
        first = self.ours.state.turns + 1
        return list(range(first, first + len(self.rows)))

    def as_json(self) -> dict[str, Any]:
        return {"ours": self.ours.tip, "decisions": [decision.as_json() for decision in self.decisions]}


def picked_turn(index: Index, one: ResolvedTarget) -> Row:
    """Return the turn at an address; raises UsageError if it names no whole turn, NotFoundError if there is none."""
    name, short = one.branch.name, layout.short_name(one.branch.name)
    if one.turn is None or one.turn == 0 or one.cell:
        raise UsageError(f"{short} does not name a turn", f"Name one: {short}@{one.turn or one.state.turns}.")
    row = index.turn(name, one.turn)
    if row is None:
        raise NotFoundError(f"{name} has no turn {one.turn} in the store", "`sessgit restore --verify` checks it.")
    return row


def _check_agent(ours: Branch, theirs: Session) -> None:
    """Raise ConflictError if the turns of another client's session would be appended: ours could not read them."""
    if theirs.agent != ours.state.agent:
        what = f"the turns are of {agents.of(theirs).title}, and {agents.of(ours.state).title} could not read them"
        raise ConflictError(what, f"A summary can be merged: `sessgit merge {theirs.id} --into {ours.name}`.")


def check_picks(context: Context, ours: Branch, rows: Sequence[Row]) -> None:
    """Raise UsageError if a turn is named twice or is in ours already, ConflictError if it is of another client."""
    turns = context.index.turns(ours.name)
    brought, held = {row.trailer("Origin") for row in turns}, {row.prompt: row for row in turns}
    seen = dict[str, Row]()
    for row in rows:
        _check_agent(ours, context.store.state(row.commit))
        if row.prompt in seen and is_same_turn(context.store, seen[row.prompt], row):
            raise UsageError(
                f"turn {row.turn} of {layout.short_name(row.branch)} is named twice", "Name each turn once."
            )
        if turn_address(row) in brought or (row.prompt in held and is_same_turn(context.store, held[row.prompt], row)):
            own, name = layout.short_name(ours.name), layout.short_name(row.branch)
            hint = f"`sessgit diff {own} {name}` shows what is not."
            if row.branch == ours.name:
                hint = (
                    f"Name another conversation with `--into`, or continue from that turn: `sessgit fork "
                    f"{name} --at {row.turn}`"
                )
            raise UsageError(f"turn {row.turn} of {name} is already in {own}", hint)
        seen[row.prompt] = row


def turn_address(row: Row) -> str:
    """The address of a turn, whole."""
    return f"{row.branch}@{row.turn}"


def plan_pick(context: Context, ours: Branch, rows: Sequence[Row]) -> PickPlan:
    """Return what picking these turns decides."""
    brought = Decision("turns", "bring", value=[f"{row.branch}@{row.turn}" for row in rows])
    named = [path for row in rows for path in turn_gists(context, _branch_of(context.index, row), [row])[0].files]
    files = [Decision("files", "unite", [], list(dict.fromkeys(named)), list(dict.fromkeys(named)))] if named else []
    return PickPlan(ours, tuple(rows), (brought, *files))


def plan_merge(context: Context, ours: Branch, theirs: Branch, turn: int | None, request: MergeRequest) -> MergePlan:
    """Decide a merge of theirs, up to a turn if one is given, into ours.

    Raises UsageError if turns cannot be picked, ConflictError if there would be too many labels, or if turns are of
    another client than ours.
    """
    store = context.store
    sides = parted.merge_sides(context, ours, theirs, turn)
    mode: Mode = request.mode or ("forward" if sides.forward else "summary")
    rows: tuple[Row, ...] = (
        () if sides.merged else _picked_rows(sides, request.turns) if mode == "pick" else _rows_to_bring(sides, mode)
    )
    if mode in ("graft", "pick"):
        _check_agent(ours, theirs.state)
    standing = _merge_state(store, sides, mode, rows)
    if standing == "nothing" and _has_authored_changes(store, sides):
        standing = "open"
    if standing in ("merged", "nothing"):
        return MergePlan(sides, standing, mode, (), (), MergedPad({}, {}, []))
    pad = pads.merge_pads(store, sides, request.choice)
    authored = merge_decisions.decide_all(parted.base_states(store, sides), ours.state, theirs.state, request.choice)
    _check_labels(authored)
    _check_memory(ours.state, theirs.state, authored)
    brought = Decision("turns", "bring", len(sides.own), len(sides.new), [f"{theirs.name}@{row.turn}" for row in rows])
    files = _file_decisions(context, sides, rows)
    return MergePlan(sides, standing, mode, rows, (brought, *files, *authored, *pad.decisions), pad)


def check_conflicts(plan: MergePlan) -> None:
    """Raise ConflictError if both sides changed the same."""
    if not plan.conflicts:
        return
    lines = [
        f"{shown_path(d.path)}: ours {shown_value(d.ours)}, theirs {shown_value(d.theirs)}" for d in plan.conflicts
    ]
    settable = next((d.path for d in plan.conflicts if d.path in merge_decisions.SCALARS), "")
    hint = "Use `--ours` or `--theirs` for all of them" + (
        f", or `--set {settable}=VALUE` for one." if settable else "."
    )
    raise ConflictError("both sides changed:\n  " + "\n  ".join(lines), f"{hint} Nothing was changed.")


def shown_value(value: object) -> str:
    """One side's value as a message has it."""
    if isinstance(value, dict | list):
        return canonical.one_line(canonical.compact(value).decode(), _LONGEST_VALUE)
    return "none" if value in (None, "") else f"“{value}”" if isinstance(value, str) else str(value)


def shown_path(path: str) -> str:
    """The path of a decision as a message has it: a key of a working memory is any text."""
    return canonical.one_line(path, _LONGEST_VALUE)


def _branch_of(index: Index, row: Row) -> Branch:
    branch = index.branch(row.branch)
    assert branch is not None
    return branch


def _rows_to_bring(sides: MergeSides, mode: Mode) -> tuple[Row, ...]:
    """All turns that ours lacks; a summary also tells of one that both have and theirs has more of."""
    return (*([sides.grown] if mode == "summary" and sides.grown else ()), *sides.new)


def _picked_rows(sides: MergeSides, numbers: Sequence[int]) -> tuple[Row, ...]:
    by_number = {row.turn: row for row in sides.new}
    if set(numbers) <= set(sides.brought):
        return ()
    name, last = layout.short_name(sides.theirs.name), sides.theirs.state.turns
    for number in numbers:
        if not 1 <= number <= last:
            raise NotFoundError(
                f"{name} has no turn {number}; it has {humanize.format_count(last, 'turn')}",
                f"`sessgit log {name}` lists them.",
            )
        if number not in by_number:
            ours = layout.short_name(sides.ours.name)
            hint = f"`sessgit diff {ours} {name}` shows what is not."
            raise UsageError(f"turn {number} of {name} is already in {ours}", hint)
    return tuple(by_number[number] for number in sorted(set(numbers)))


def _merge_state(store: Store, sides: MergeSides, mode: Mode, rows: Sequence[Row]) -> MergeState:
    if sides.merged:
        return "merged"
    if mode == "summary" and rows and _has_summary(store, sides):
        return "unfinished"
    if rows:
        return "open"
    return "unfinished" if sides.brought and (mode == "pick" or not sides.new) else "nothing"


def _has_authored_changes(store: Store, sides: MergeSides) -> bool:
    """Return whether theirs has authored state, or something on its pad, that ours lacks."""
    ours = sides.ours.state
    authored = merge_decisions.decide_all(parted.base_states(store, sides), ours, sides.theirs.state, Choice())
    return (
        any(decision.conflict or decision.path == unified_state.MEMORY for decision in authored)
        or merge_decisions.resolve_state(ours, authored) != ours
        or bool(pads.merge_pads(store, sides, Choice()).decisions)
    )


def _has_summary(store: Store, sides: MergeSides) -> bool:
    """Whether a summary of this very merge is a turn of ours: its prompt is named after the commits it was made for."""
    after = ""
    for commit, message in store.history(sides.ours.tip):
        if after and after == ids.merged_id("summary", commit, sides.tip, "prompt"):
            return True
        after = message.get("Prompt") or after
    return False


def _file_decisions(context: Context, sides: MergeSides, rows: Sequence[Row]) -> list[Decision]:
    """The files that each side worked on since they parted, and those of both."""
    mine, theirs = (
        list(dict.fromkeys(path for gist in turn_gists(context, branch, chosen) for path in gist.files))
        for branch, chosen in ((sides.ours, sides.own), (sides.theirs, rows))
    )
    if not mine and not theirs:
        return []
    return [Decision("files", "unite", mine, theirs, list(dict.fromkeys([*mine, *theirs])))]


def _check_labels(decisions: Sequence[Decision]) -> None:
    count = max((len(d.value) for d in decisions if d.path == "labels"), default=0)
    if count > MOST_LABELS:
        raise ConflictError(
            f"there would be {count} labels, but at most {MOST_LABELS} are allowed",
            "Remove one: `sessgit edit --label -LABEL`",
        )


def _check_memory(ours: Session, theirs: Session, decisions: Sequence[Decision]) -> None:
    """Raises ConflictError where the memory of both is larger than one may be, and than that of either."""
    sides = [unified_state.memory_size(one.unified.working_memory) for one in (ours, theirs)]
    size = max((unified_state.memory_size(d.value) for d in decisions if d.path == unified_state.MEMORY), default=0)
    if size > max(unified_state.LARGEST_MEMORY, *sides):
        raise ConflictError(
            f"the working memory would have {humanize.format_size(size)}, but at most "
            f"{humanize.format_size(unified_state.LARGEST_MEMORY)} are allowed",
            "The program that owns it can remove something from one of the two.",
        )
