"""What a merge decides about two states of a conversation, as data.

The laws, which tests hold it to: merging a state with itself decides nothing, what only one side changed is no
conflict, and with the sides swapped the same conflicts come out swapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sessgit.model.session import Session

Mode = Literal["forward", "summary", "graft", "pick"]
"""How turns are brought back: as one turn that tells of them, all of them, or some; `forward` is all of them where
ours has not gone on."""
Action = Literal["bring", "unite", "ours", "theirs", "set", "conflict"]
Side = Literal["", "ours", "theirs"]

SCALARS = ("description", "stage", "confidence")
"""What a person sets and only one value of can stay. The name is not among them: it stays ours."""


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


def decide(base: Base, ours: Session, theirs: Session, choice: Choice) -> list[Decision]:
    """What becomes of what people said of the two; nothing where nothing has to be decided."""
    found = [_scalar(path, base, ours, theirs, choice) for path in SCALARS]
    labels = united(base.ours.labels, base.theirs.labels, ours.labels, theirs.labels)
    if ours.labels or theirs.labels:
        found.append(Decision("labels", "unite", sorted(ours.labels), sorted(theirs.labels), labels))
    return [decision for decision in found if decision is not None]


def resolved(ours: Session, decisions: Sequence[Decision]) -> Session:
    """Our state with what was decided; it has no conflicts left to decide."""
    values = {d.path: d.value for d in decisions if d.path in (*SCALARS, "labels")}
    if "labels" in values:
        values["labels"] = tuple(values["labels"])
    return replace(ours, **values)


def united(
    base_ours: Sequence[str], base_theirs: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[str]:
    """The members of both sets, sorted, but for those that one side took away and the other only kept."""
    gone = (set(base_ours) - set(ours)) & set(base_theirs) | (set(base_theirs) - set(theirs)) & set(base_ours)
    return sorted({*ours, *theirs} - gone)


def _scalar(path: str, base: Base, ours: Session, theirs: Session, choice: Choice) -> Decision | None:
    o, t = getattr(ours, path), getattr(theirs, path)
    if path in choice.values:
        return Decision(path, "set", o, t, choice.values[path])
    if o == t or t == getattr(base.theirs, path):
        return None
    if o == getattr(base.ours, path):
        return Decision(path, "theirs", o, t, t)
    if choice.side:
        return Decision(path, choice.side, o, t, o if choice.side == "ours" else t)
    return Decision(path, "conflict", o, t)
