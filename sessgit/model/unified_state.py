"""The parts of a session's state that only programs set, and how two states of them come together.

Each is absent until a program sets it: the state of any other session holds not a byte of them. Their keys are those
of `session.json`, and a path such as `activation.current_depth` names one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any

from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import MAX_COST, MAX_COUNT, Cost, Count, Depth, Mode, Rule, Score, read

LARGEST_MEMORY = 64 << 10
"""Return the bytes of a working memory, as JSON on one line in UTF-8, beyond which nothing is added to it."""
DEEPEST_MEMORY = 100
LONGEST_TEXT = 2_000
LONGEST_PATH = 4_096
LONGEST_VERSION = 200
LONGEST_ROLE = 50
MEMORY = "context.working_memory"
Reason = Annotated[str, Rule(max_length=LONGEST_TEXT)]


@frozen
class Activation:
    """Whether the RLM mode of a program is active in the session, and why."""

    rlm_active: bool | None = None
    """Whether the mode is active."""
    activation_mode: Mode | None = None
    """What activated it."""
    activation_reason: Reason | None = None
    """The reason, as text."""
    complexity_score: Score | None = None
    """The program's estimate of the task's complexity."""
    current_depth: Count | None = None
    """The current depth of recursion; 0 is outside of any."""
    max_depth: Depth | None = None
    """The greatest depth of recursion that is allowed."""


@frozen
class Budget:
    """The limits that a program set itself, and what it used, as it says."""

    max_recursive_calls: Count | None = None
    """The number of recursive calls that are allowed."""
    total_recursive_calls: Count | None = None
    """The number of recursive calls so far."""
    cost_usd: Cost | None = None
    """The cost so far in US dollars."""


@frozen
class Metadata:
    """What a program says of itself."""

    rlm_version: Annotated[str, Rule(max_length=LONGEST_VERSION)] | None = None
    """The version of the program."""
    role: Annotated[str, Rule(max_length=LONGEST_ROLE)] | None = None
    """The role of the session among others, such as manager."""
    parent: Annotated[str, Rule({"pattern": "^[a-z0-9][a-z0-9-]{0,63}$"}, max_length=64)] | None = None
    """The id of the session that began this one as its child. It is no fork: they share no turns."""


@frozen
class Memory:
    """The working memory of a program."""

    working_memory: dict[str, Any] | None = None
    """An object of any JSON, at most 100 levels deep. A program may set at most 65,536 bytes, as one line of UTF-8."""


@frozen
class Trajectory:
    """Where the program wrote the session to."""

    export_path: Annotated[str, Rule(max_length=LONGEST_PATH)] | None = None
    """The path of the export."""


@frozen
class Unified:
    """What programs set of a session, by the sections of `session.json`."""

    metadata: Metadata = Metadata()
    activation: Activation = Activation()
    context: Memory = Memory()
    budget: Budget = Budget()
    trajectory: Trajectory = Trajectory()

    @property
    def working_memory(self) -> Mapping[str, Any]:
        """Return the working memory, empty if there is none."""
        return self.context.working_memory or {}


NO_STATE = Unified()

PARTS: Mapping[str, Any] = {
    "metadata": Metadata, "activation": Activation, "context": Memory, "budget": Budget, "trajectory": Trajectory,
}  # fmt: skip
"""What programs set, by the section of `session.json` that it is in."""
KEYS = {part: tuple(key.name for key in fields(kind)) for part, kind in PARTS.items()}
"""The keys that programs set, by section."""
SCALARS = (*(f"activation.{key}" for key in KEYS["activation"]), "budget.max_recursive_calls")
"""What only one value of can stay where two sessions are merged."""
COUNTERS = ("budget.total_recursive_calls", "budget.cost_usd")
"""What grows on each side."""
OWN = ("trajectory.export_path", "metadata.rlm_version", "metadata.role", "metadata.parent")
"""What belongs to one session and its program."""


# As it is stored


def state_document(own: Unified) -> dict[str, dict[str, Any]]:
    """Return the parts that are there, by their keys in `session.json`."""
    if own == NO_STATE:
        return {}
    parts = {part: {key: value_at(own, f"{part}.{key}") for key in keys} for part, keys in KEYS.items()}
    present = {part: {k: value for k, value in values.items() if value is not None} for part, values in parts.items()}
    return {part: values for part, values in present.items() if values}


def parse_state(top: Mapping[str, Any]) -> Unified:
    """Return what a `session.json` says of them; a field of the wrong kind counts as missing."""
    given = {part: values if isinstance(values := top.get(part), dict) else {} for part in PARTS}
    present = {
        part: {key: values[key] for key in KEYS[part] if key in values and not _is_empty(values[key])}
        for part, values in given.items()
    }
    state = Unified(**{part: read(PARTS[part], values) for part, values in present.items() if values})
    if is_deeper(state.working_memory, DEEPEST_MEMORY):
        state = replace(state, context=Memory())
    return NO_STATE if state == NO_STATE else state


def value_at(own: Unified, path: str) -> Any:
    """Return what is at a path, None for nothing."""
    part, _, key = path.partition(".")
    return getattr(getattr(own, part), key)


def with_values(own: Unified, values: Mapping[str, Any]) -> Unified:
    """Return the parts with other values at some paths; None takes one away."""
    for path, value in values.items():
        part, _, key = path.partition(".")
        own = replace(own, **{part: replace(getattr(own, part), **{key: None if _is_empty(value) else value})})
    return own


def _is_empty(value: object) -> bool:
    """Return whether a value says nothing: it is not stored then."""
    return value in ("", {})


def inherited_state(own: Unified) -> Unified:
    """Return what a session takes over from the one that it left: all but where that one was written to, and its role
    and parent."""
    return replace(own, trajectory=Trajectory(), metadata=replace(own.metadata, role=None, parent=None))


def decided_state(own: Unified, decided: Unified) -> Unified:
    """Return what was decided about two sessions, as it holds of one: with its own export and version."""
    return with_values(decided, {path: value_at(own, path) for path in OWN})


def memory_size(memory: Mapping[str, Any]) -> int:
    """Return the bytes of a working memory as JSON on one line in UTF-8."""
    text = json.dumps(memory, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_deeper(document: object, most: int) -> bool:
    """Return whether a JSON value has more than so many levels of objects and lists."""
    level: list[Any] = [document]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


# Two of them


def merged_counter(base: float | None, ours: float | None, theirs: float | None) -> Any:
    """Return a counter of ours with what theirs grew by since its base; None if no side counts any more."""
    if theirs == base or (ours is None and theirs is None):
        return ours
    if ours == base:
        return theirs
    together = (ours or 0) + (theirs or 0) - (base or 0)
    together = max(together, type(together)(0))  # cost stays a fraction
    return min(together, MAX_COUNT - 1) if isinstance(together, int) else min(round(together, 9), MAX_COST)


def merged_memory(
    began: tuple[Mapping[str, Any], Mapping[str, Any]], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return our working memory with what only theirs changed since it began, and the keys that both changed, of which
    ours is kept. `began` is what each side began with, ours first."""
    out, both = dict(ours), list[str]()
    for key in sorted({*ours, *theirs}):
        mine, other, was, there = (_comparable_value(one, key) for one in (ours, theirs, *began))
        if other in (mine, there):
            continue
        if mine != was:
            both.append(key)
        elif other is None:
            del out[key]
        else:
            out[key] = theirs[key]
    return out, both


def is_same_json(one: object, other: object) -> bool:
    """Return whether two JSON values are the same document: 1, 1.0 and true are three."""
    return one is other or canonical.compact(one) == canonical.compact(other)


def _comparable_value(memory: Mapping[str, Any], key: str) -> bytes | None:
    """Return a value so that equal ones are equal JSON, None for one that is not there."""
    return canonical.compact(memory[key]) if key in memory else None
