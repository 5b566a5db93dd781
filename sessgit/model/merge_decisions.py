"""What a merge decides about two states of a conversation, as data.

The laws, which tests hold it to: merging a state with itself decides nothing, what only one side changed is no
conflict, and with the sides swapped the same conflicts come out swapped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any, Literal

from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session, Unified
from sessgit.model.frozen import frozen

Mode = Literal["forward", "summary", "graft", "pick"]
"""How turns are merged: as one turn that tells of them, all of them, or some; `forward` is all of them where
ours has not gone on."""
Action = Literal["bring", "unite", "add", "ours", "theirs", "set", "conflict"]
Side = Literal["", "ours", "theirs"]

SCALARS = ("description", "stage", "confidence")
"""What a person sets and only one value of can stay. The name is not among them: it stays ours."""
PROGRESS = ("stage", "confidence")
"""How far each side has come: a new session of both begins where ours is."""
_PROGRAM_PATHS = frozenset({*sessions.SCALARS, *sessions.COUNTERS, sessions.MEMORY})


@frozen
class Decision:
    """What becomes of one thing that the sides have: `value` is what the result has, None for a conflict."""

    path: str
    action: Action
    ours: Any = None
    theirs: Any = None
    value: Any = None

    @property
    def conflict(self) -> bool:
        """Return whether it is undecided."""
        return self.action == "conflict"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "conflict": self.conflict}


@frozen
class Choice:
    """What a person says of conflicts: a side for all of them, values for some scalars, and scalars that stay ours."""

    side: Side = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    ours: Collection[str] = ()


@frozen
class Base:
    """The state that each side began with: a fork begins with its own first one, which lacks the parent's
    description."""

    ours: Session
    theirs: Session


def decide_all(base: Base, ours: Session, theirs: Session, choice: Choice) -> list[Decision]:
    """Return what becomes of the values that people and programs set; of those that need a decision."""
    labels = merge_sets(base.ours.labels, base.theirs.labels, ours.labels, theirs.labels)
    has_labels = ours.labels or theirs.labels
    decisions = [
        *(_decide_scalar(path, base, ours, theirs, choice) for path in SCALARS),
        Decision("labels", "unite", sorted(ours.labels), sorted(theirs.labels), labels) if has_labels else None,
        *(_decide_scalar(path, base, ours, theirs, choice) for path in sessions.SCALARS),
        *(_decide_counter(path, base, ours, theirs) for path in sessions.COUNTERS),
        *_decide_memory(base, ours, theirs, choice),
    ]
    return [decision for decision in decisions if decision is not None]


def resolve_state(ours: Session, decisions: Sequence[Decision]) -> Session:
    """Return our state with what was decided; it has no conflicts left to decide."""
    values = {d.path: d.value for d in decisions if d.path in (*SCALARS, "labels")}
    if "labels" in values:
        values["labels"] = tuple(values["labels"])
    set_ = {d.path: d.value for d in decisions if d.path in _PROGRAM_PATHS}
    return replace(ours, **values, unified=sessions.with_values(ours.unified, set_))


def join_program_states(base: Unified | None, ours: Unified, theirs: Unified, side: Side) -> Unified:
    """Return what programs set of one session that two machines went on with: what only one of them changed, of what
    both did that of the side. Without a base nothing is known of growth, and the larger counter holds."""
    lower = {path: min(sessions.value_at(one, path) or 0 for one in (ours, theirs)) for path in sessions.COUNTERS}
    start = base or sessions.with_values(sessions.NO_STATE, lower)
    began, mine, other = (Session("", "", unified=one) for one in (start, ours, theirs))
    both_began, choice = Base(began, began), Choice(side)
    decisions = [
        *(_decide_scalar(path, both_began, mine, other, choice) for path in sessions.SCALARS + sessions.OWN),
        *(_decide_counter(path, both_began, mine, other) for path in sessions.COUNTERS),
        *(one for one in _decide_memory(both_began, mine, other, choice) if one.path == sessions.MEMORY),
    ]
    return sessions.with_values(ours, {one.path: one.value for one in decisions if one is not None})


def merge_sets(
    base_ours: Sequence[str], base_theirs: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> list[str]:
    """Return the members of both sets, sorted, but for those that one side took away and the other only kept."""
    gone = (set(base_ours) - set(ours)) & set(base_theirs) | (set(base_theirs) - set(theirs)) & set(base_ours)
    return sorted({*ours, *theirs} - gone)


def _value_at(session: Session, path: str) -> Any:
    return sessions.value_at(session.unified, path) if "." in path else getattr(session, path)


def _decide_scalar(path: str, base: Base, ours: Session, theirs: Session, choice: Choice) -> Decision | None:
    began, their_beginning, o, t = (_value_at(one, path) for one in (base.ours, base.theirs, ours, theirs))
    if path in choice.values:
        return Decision(path, "set", o, t, choice.values[path])
    if t in (o, their_beginning):
        return None
    if o == began:
        return Decision(path, "theirs", o, t, t)
    side: Side = choice.side or ("ours" if path in choice.ours else "")
    if side:
        return Decision(path, side, o, t, o if side == "ours" else t)
    return Decision(path, "conflict", o, t)


def _decide_counter(path: str, base: Base, ours: Session, theirs: Session) -> Decision | None:
    """Add what theirs counted since it began."""
    began, o, t = (_value_at(one, path) for one in (base.theirs, ours, theirs))
    both = sessions.merged_counter(began, o, t)
    return None if both == o else Decision(path, "add", o, t, both)


def _decide_memory(base: Base, ours: Session, theirs: Session, choice: Choice) -> list[Decision]:
    """Return a decision for each key of the working memory that both changed, and one for all of it if ours changes."""
    mine, other = ours.unified.working_memory, theirs.unified.working_memory
    began = base.ours.unified.working_memory, base.theirs.unified.working_memory
    both, keys = sessions.merged_memory(began, mine, other)
    decisions = list[Decision]()
    for key in keys:
        o, t = mine.get(key), other.get(key)
        value = {"ours": o, "theirs": t}.get(choice.side)
        decisions.append(Decision(f"{sessions.MEMORY}.{key}", choice.side or "conflict", o, t, value))
    if choice.side == "theirs":
        kept = {key: value for key, value in both.items() if key not in keys}
        both = kept | {key: other[key] for key in keys if key in other}
    if not sessions.is_same_json(both, mine):
        decisions.append(Decision(sessions.MEMORY, "unite", dict(mine), dict(other), both))
    return decisions
