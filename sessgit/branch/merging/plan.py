"""What a merge will do, decided before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sessgit.branch.edit import MOST_LABELS
from sessgit.branch.merging import pads
from sessgit.branch.merging import sides as parted
from sessgit.branch.merging.pads import MergedPad
from sessgit.branch.merging.sides import MergeSides
from sessgit.errors import ConflictError, NotFoundError, UsageError
from sessgit.history.views import turn_gists
from sessgit.model import canonical, humanize, ids, merge_decisions, unified_state
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Choice, Decision, Mode
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_LONGEST_VALUE = 60

MergeState = Literal["open", "merged", "nothing", "unfinished"]
"""Whether there is something to do: `merged` and `nothing` say no, `unfinished` that an interrupted merge brought the
turns already and lacks its commit."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """What a person asks for: no mode means a summary, or forward where ours has not gone on; `turns` are those of
    theirs to pick, by number; `retell` makes another text of the summary."""

    mode: Mode | None = None
    turns: tuple[int, ...] = ()
    choice: Choice = field(default_factory=Choice)
    retell: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The decisions of a merge, and the turns of theirs that it brings back."""

    sides: MergeSides
    standing: MergeState
    mode: Mode
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]
    pad: MergedPad

    @property
    def conflicts(self) -> list[Decision]:
        """What nobody has decided yet."""
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
        """The uuid of something that this merge brings."""
        return ids.merged_id(self.mode, self.sides.ours.tip, self.sides.tip, what)

    def as_json(self) -> dict[str, Any]:
        found = self.sides
        return {
            "base": found.base or None,
            "ours": found.ours.tip,
            "theirs": found.tip,
            "decisions": [decision.as_json() for decision in self.decisions],
        }


@dataclass(frozen=True, slots=True)
class PickPlan:
    """Single turns that are brought behind the last one of ours, and what is decided about them."""

    ours: Branch
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]

    @property
    def numbers(self) -> list[int]:
        """Those that the turns get."""
        first = self.ours.state.turns + 1
        return list(range(first, first + len(self.rows)))

    def as_json(self) -> dict[str, Any]:
        return {"ours": self.ours.tip, "decisions": [decision.as_json() for decision in self.decisions]}


def plan_pick(store: Store, index: Index, ours: Branch, rows: Sequence[Row]) -> PickPlan:
    """What picking these turns decides."""
    brought = Decision("turns", "bring", value=[f"{row.branch}@{row.turn}" for row in rows])
    named = [path for row in rows for path in turn_gists(store, index, _branch_of(index, row), [row])[0].files]
    files = [Decision("files", "unite", [], list(dict.fromkeys(named)), list(dict.fromkeys(named)))] if named else []
    return PickPlan(ours, tuple(rows), (brought, *files))


def plan_merge(
    store: Store, index: Index, ours: Branch, theirs: Branch, turn: int | None, wish: MergeRequest
) -> MergePlan:
    """Decides a merge of theirs, up to a turn if one is given, into ours.

    Raises UsageError where turns that are to be picked cannot be, ConflictError where there would be too many labels.
    """
    found = parted.merge_sides(store, index, ours, theirs, turn)
    mode: Mode = wish.mode or ("forward" if found.forward else "summary")
    rows: tuple[Row, ...] = (
        () if found.merged else _picked_rows(found, wish.turns) if mode == "pick" else _rows_to_bring(found, mode)
    )
    standing = _merge_state(store, found, mode, rows)
    if standing == "nothing" and _has_authored_changes(store, found):
        standing = "open"
    if standing in ("merged", "nothing"):
        return MergePlan(found, standing, mode, (), (), MergedPad({}, {}, []))
    pad = pads.merge_pads(store, found, wish.choice)
    said = merge_decisions.decide_all(parted.base_states(store, found), ours.state, theirs.state, wish.choice)
    _check_labels(said)
    _check_memory(ours.state, theirs.state, said)
    brought = Decision("turns", "bring", len(found.own), len(found.new), [f"{theirs.name}@{row.turn}" for row in rows])
    files = _file_decisions(store, index, found, rows)
    return MergePlan(found, standing, mode, rows, (brought, *files, *said, *pad.decisions), pad)


def check_conflicts(found: MergePlan) -> None:
    """Raises ConflictError, with what to say, where both sides changed the same."""
    if not found.conflicts:
        return
    lines = [
        f"{shown_path(d.path)}: ours {shown_value(d.ours)}, theirs {shown_value(d.theirs)}" for d in found.conflicts
    ]
    settable = next((d.path for d in found.conflicts if d.path in merge_decisions.SCALARS), "")
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


def _rows_to_bring(found: MergeSides, mode: Mode) -> tuple[Row, ...]:
    """All turns that ours lacks; a summary also tells of one that both have and theirs has more of."""
    return (*([found.grown] if mode == "summary" and found.grown else ()), *found.new)


def _picked_rows(found: MergeSides, wanted: Sequence[int]) -> tuple[Row, ...]:
    by_number = {row.turn: row for row in found.new}
    if set(wanted) <= set(found.brought):
        return ()
    name, last = layout.short_name(found.theirs.name), found.theirs.state.turns
    for number in wanted:
        if not 1 <= number <= last:
            raise NotFoundError(
                f"{name} has no turn {number}; it has {humanize.format_count(last, 'turn')}",
                f"`sessgit log {name}` lists them.",
            )
        if number not in by_number:
            ours = layout.short_name(found.ours.name)
            hint = f"`sessgit diff {ours} {name}` shows what is not."
            raise UsageError(f"turn {number} of {name} is already in {ours}", hint)
    return tuple(by_number[number] for number in sorted(set(wanted)))


def _merge_state(store: Store, found: MergeSides, mode: Mode, rows: Sequence[Row]) -> MergeState:
    if found.merged:
        return "merged"
    if mode == "summary" and rows and _has_summary(store, found):
        return "unfinished"
    if rows:
        return "open"
    return "unfinished" if found.brought and (mode == "pick" or not found.new) else "nothing"


def _has_authored_changes(store: Store, found: MergeSides) -> bool:
    """Whether people said something of theirs, or put something on its pad, that ours has not."""
    ours = found.ours.state
    said = merge_decisions.decide_all(parted.base_states(store, found), ours, found.theirs.state, Choice())
    return (
        any(decision.conflict or decision.path == unified_state.MEMORY for decision in said)
        or merge_decisions.resolve_state(ours, said) != ours
        or bool(pads.merge_pads(store, found, Choice()).decisions)
    )


def _has_summary(store: Store, found: MergeSides) -> bool:
    """Whether a summary of this very merge is a turn of ours: its prompt is named after the commits it was made for."""
    after = ""
    for commit in store.repo.first_parents(found.ours.tip):
        if after and after == ids.merged_id("summary", commit.id, found.tip, "prompt"):
            return True
        after = store.message(commit.id).get("Prompt") or after
    return False


def _file_decisions(store: Store, index: Index, found: MergeSides, rows: Sequence[Row]) -> list[Decision]:
    """The files that each side worked on since they parted, and those of both."""
    mine, theirs = (
        list(dict.fromkeys(path for gist in turn_gists(store, index, branch, chosen) for path in gist.files))
        for branch, chosen in ((found.ours, found.own), (found.theirs, rows))
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
