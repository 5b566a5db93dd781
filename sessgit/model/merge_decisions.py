"""What a merge decides about two states of a conversation, as data.

The laws, which tests hold it to: merging a state with itself decides nothing, what only one side changed is no
conflict, and with the sides swapped the same conflicts come out swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sessgit.model import unified_state
from sessgit.model.conversation.session import Session

Mode = Literal["forward", "summary", "graft", "pick"]
"""How turns are brought back: as one turn that tells of them, all of them, or some; `forward` is all of them where
ours has not gone on."""
Action = Literal["bring", "unite", "add", "ours", "theirs", "set", "conflict"]
Side = Literal["", "ours", "theirs"]

SCALARS = ("description", "stage", "confidence")
"""What a person sets and only one value of can stay. The name is not among them: it stays ours."""
_PROGRAM_PATHS = frozenset({*unified_state.SCALARS, *unified_state.COUNTERS, unified_state.MEMORY})


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one thing that the sides have: `value` is what the result has, None for a conflict."""

    path: str
    action: Action
    ours: Any = None
    theirs: Any = None
    value: Any = None

    @property
    def conflict(self) -> bool:
        """Whether nobody has decided it yet."""
        return self.action == "conflict"

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "action": self.action,
            "conflict": self.conflict,
            "ours": self.ours,
            "theirs": self.theirs,
            "value": self.value,
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person says of conflicts: a side for all of them, and values for some scalars."""

    side: Side = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Base:
    """The state that each side began with: a fork begins with its own first one, which lacks the parent's
    description."""

    ours: Session
    theirs: Session


def decide_all(base: Base, ours: Session, theirs: Session, choice: Choice) -> list[Decision]:
    """What becomes of what people said of the two; nothing where nothing has to be decided."""
    found = [_decide_scalar(path, base, ours, theirs, choice) for path in SCALARS]
    labels = merge_sets(base.ours.labels, base.theirs.labels, ours.labels, theirs.labels)
    if ours.labels or theirs.labels:
        found.append(Decision("labels", "unite", sorted(ours.labels), sorted(theirs.labels), labels))
    found += [_decide_program_scalar(path, base, ours, theirs, choice) for path in unified_state.SCALARS]
    found += [_decide_counter(path, base, ours, theirs) for path in unified_state.COUNTERS]
    return [*(decision for decision in found if decision is not None), *_decide_memory(base, ours, theirs, choice)]


def resolve_state(ours: Session, decisions: Sequence[Decision]) -> Session:
    """Our state with what was decided; it has no conflicts left to decide."""
    values = {d.path: d.value for d in decisions if d.path in (*SCALARS, "labels")}
    if "labels" in values:
        values["labels"] = tuple(values["labels"])
    set_ = {d.path: d.value for d in decisions if d.path in _PROGRAM_PATHS}
    return replace(ours, **values, unified=unified_state.with_values(ours.unified, set_))


def merge_sets(
    base_ours: Sequence[str], base_theirs: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[str]:
    """The members of both sets, sorted, but for those that one side took away and the other only kept."""
    gone = (set(base_ours) - set(ours)) & set(base_theirs) | (set(base_theirs) - set(theirs)) & set(base_ours)
    return sorted({*ours, *theirs} - gone)


def _decide_scalar(path: str, base: Base, ours: Session, theirs: Session, choice: Choice) -> Decision | None:
    if path in choice.values:
        return Decision(path, "set", getattr(ours, path), getattr(theirs, path), choice.values[path])
    began = getattr(base.ours, path), getattr(base.theirs, path)
    return _decide_value(path, began, getattr(ours, path), getattr(theirs, path), choice)


def _decide_program_scalar(path: str, base: Base, ours: Session, theirs: Session, choice: Choice) -> Decision | None:
    began, said = (
        (unified_state.value_at(left.unified, path), unified_state.value_at(right.unified, path))
        for left, right in ((base.ours, base.theirs), (ours, theirs))
    )
    return _decide_value(path, began, *said, choice)


def _decide_value(path: str, began: tuple[Any, Any], o: Any, t: Any, choice: Choice) -> Decision | None:
    if t in (o, began[1]):
        return None
    if o == began[0]:
        return Decision(path, "theirs", o, t, t)
    if choice.side:
        return Decision(path, choice.side, o, t, o if choice.side == "ours" else t)
    return Decision(path, "conflict", o, t)


def _decide_counter(path: str, base: Base, ours: Session, theirs: Session) -> Decision | None:
    """What theirs counted since it began is added."""
    b, o, t = (unified_state.value_at(one.unified, path) for one in (base.theirs, ours, theirs))
    both = unified_state.merged_counter(b, o, t)
    return None if both == o else Decision(path, "add", o, t, both)


def _decide_memory(base: Base, ours: Session, theirs: Session, choice: Choice) -> list[Decision]:
    """A decision for each key of the working memory that both changed, and one for all of it if ours changes."""
    mine, other = ours.unified.working_memory, theirs.unified.working_memory
    if not other and not mine:
        return []
    began = base.ours.unified.working_memory, base.theirs.unified.working_memory
    both, keys = unified_state.merged_memory(began, mine, other)
    found = list[Decision]()
    for key in keys:
        o, t = mine.get(key), other.get(key)
        action: Action = choice.side or "conflict"
        value = {"ours": o, "theirs": t}.get(action)
        found.append(Decision(f"{unified_state.MEMORY}.{key}", action, o, t, value))
    if choice.side == "theirs":
        both = unified_state.memory_with_theirs(both, other, keys)
    if not unified_state.is_same_json(both, mine):
        found.append(Decision(unified_state.MEMORY, "unite", dict(mine), dict(other), both))
    return found
