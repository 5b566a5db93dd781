"""The parts of a session's state that only programs set, and how two states of them come together.

Each is absent until a program sets it: the state of any other session holds not a byte of them. Their keys are those
of `session.json`, and a path such as `activation.current_depth` names one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from sessgit.model import canonical

Mode = Literal["complexity", "manual", "always", "never"]
MODES: tuple[str, ...] = get_args(Mode)
MOST_DEPTH = 3
LARGEST_MEMORY = 64 << 10
"""Bytes of a working memory, as JSON on one line in UTF-8, beyond which nothing is added to it."""
DEEPEST_MEMORY = 100
LONGEST_TEXT = 2_000
LONGEST_PATH = 4_096
LONGEST_VERSION = 200
MEMORY = "context.working_memory"
_MAX_COUNT = 1 << 53
_MAX_COST = 1e12


@dataclass(frozen=True, slots=True)
class Activation:
    """Whether a program's own way of working is on in the session, why, and how deep in a recursion it is.

    None is what nobody said.
    """

    rlm_active: bool | None = None
    activation_mode: Mode | None = None
    activation_reason: str | None = None
    complexity_score: float | None = None
    current_depth: int | None = None
    max_depth: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """How many recursive calls there may be, how many there were, and what all of it cost in US dollars, as the
    program says; None is what it did not say."""

    max_recursive_calls: int | None = None
    total_recursive_calls: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Unified:
    """What programs set of a session. `working_memory` is any JSON object, `export_path` where the program wrote the
    session to, `rlm_version` its own version."""

    activation: Activation = Activation()
    working_memory: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = Budget()
    export_path: str = ""
    rlm_version: str = ""


NO_STATE = Unified()

SCALARS = (*(f"activation.{one.name}" for one in fields(Activation)), "budget.max_recursive_calls")
"""What only one value of can stay where two sessions are brought together."""
COUNTERS = ("budget.total_recursive_calls", "budget.cost_usd")
"""What grows on each side."""
OWN = ("trajectory.export_path", "metadata.rlm_version")
"""What belongs to one session and its program."""


# As it is stored


def state_document(own: Unified) -> dict[str, dict[str, Any]]:
    """The parts that are there, by their keys in `session.json`."""
    if own is NO_STATE or own == NO_STATE:
        return {}
    parts: dict[str, dict[str, Any]] = {
        "activation": _set_values(own.activation),
        "budget": _set_values(own.budget),
        "context": {"working_memory": dict(own.working_memory)} if own.working_memory else {},
        "trajectory": {"export_path": own.export_path} if own.export_path else {},
        "metadata": {"rlm_version": own.rlm_version} if own.rlm_version else {},
    }
    return {key: part for key, part in parts.items() if part}


def parse_state(top: Mapping[str, Any]) -> Unified:
    """What a `session.json` says of them; a field of the wrong kind counts as missing."""
    activation, budget, context, trajectory, metadata = (
        part if isinstance(part := top.get(key), dict) else {}
        for key in ("activation", "budget", "context", "trajectory", "metadata")
    )
    mode, memory = activation.get("activation_mode"), context.get("working_memory")
    found = Unified(
        Activation(
            value if isinstance(value := activation.get("rlm_active"), bool) else None,
            mode if isinstance(mode, str) and mode in MODES else None,  # type: ignore[arg-type]
            _str_or_empty(activation.get("activation_reason")) or None,
            _float_or_none(activation.get("complexity_score"), -_MAX_COST),
            _count_or_none(activation.get("current_depth")),
            depth if (depth := _count_or_none(activation.get("max_depth"))) and depth <= MOST_DEPTH else None,
        ),
        memory if isinstance(memory, dict) and not is_deeper(memory, DEEPEST_MEMORY) else {},
        Budget(
            _count_or_none(budget.get("max_recursive_calls")),
            _count_or_none(budget.get("total_recursive_calls")),
            _float_or_none(budget.get("cost_usd"), 0),
        ),
        _str_or_empty(trajectory.get("export_path")),
        _str_or_empty(metadata.get("rlm_version")),
    )
    return NO_STATE if found == NO_STATE else found


def value_at(own: Unified, path: str) -> Any:
    """What stands at a path, None for nothing."""
    part, _, key = path.partition(".")
    if part in ("activation", "budget"):
        return getattr(getattr(own, part), key)
    return getattr(own, key) or None


def with_values(own: Unified, values: Mapping[str, Any]) -> Unified:
    """The parts with other values at some paths; None takes one away."""
    changed: dict[str, Any]
    for path, wanted in values.items():
        part, _, key = path.partition(".")
        if part in ("activation", "budget"):
            changed = {part: replace(getattr(own, part), **{key: wanted})}
        else:
            changed = {key: wanted or ({} if path == MEMORY else "")}
        own = replace(own, **changed)
    return own


def inherited_state(own: Unified) -> Unified:
    """What a session takes over from the one that it left: all but where that one was written to."""
    return own if not own.export_path else replace(own, export_path="")


def decided_state(own: Unified, decided: Unified) -> Unified:
    """What was decided about two sessions, as it holds of one: with its own export and version."""
    return with_values(decided, {path: value_at(own, path) for path in OWN})


def memory_size(memory: Mapping[str, Any]) -> int:
    """Bytes of a working memory as JSON on one line in UTF-8."""
    text = json.dumps(memory, ensure_ascii=False, separators=(",", ":"))
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def is_deeper(found: object, most: int) -> bool:
    """Whether a JSON value has more than so many levels of objects and lists."""
    level: list[Any] = [found]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


# Two of them


def merged_counter(base: float | None, ours: float | None, theirs: float | None) -> Any:
    """A counter of ours with what theirs grew by since its base; None where nobody counts any more."""
    if theirs == base or (ours is None and theirs is None):
        return ours
    if ours == base:
        return theirs
    together = (ours or 0) + (theirs or 0) - (base or 0)
    together = max(together, type(together)(0))  # cost stays a fraction
    return min(together, _MAX_COUNT - 1) if isinstance(together, int) else min(round(together, 9), _MAX_COST)


def merged_memory(
    began: tuple[Mapping[str, Any], Mapping[str, Any]], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Our working memory with what only theirs changed since it began, key by key, and the keys that both changed, of
    which ours is kept. `began` is what each side began with, ours first."""
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


def memory_with_theirs(memory: Mapping[str, Any], theirs: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    """The memory with what theirs says of some keys."""
    kept = {key: said for key, said in memory.items() if key not in keys}
    return {**kept, **{key: theirs[key] for key in keys if key in theirs}}


def is_same_json(one: object, other: object) -> bool:
    """Whether two JSON values are the same document: 1, 1.0 and true are three."""
    return one is other or canonical.compact(one) == canonical.compact(other)


def merged_state(base: Unified | None, ours: Unified, theirs: Unified, *, later: bool) -> Unified:
    """The parts of one session that two machines went on with: what only one changed, of what both did the value of
    theirs if that is the `later` one. Without a base nothing is known of growth, and the larger counter holds."""
    start = base or NO_STATE
    values: dict[str, Any] = {}
    for path in (*SCALARS, *OWN):
        was, mine, other = (value_at(one, path) for one in (start, ours, theirs))
        values[path] = (
            mine
            if is_same_json(other, mine) or is_same_json(other, was) or not (is_same_json(mine, was) or later)
            else other
        )
    for path in COUNTERS:
        was, mine, other = (value_at(one, path) for one in (base or _lower_counters(ours, theirs), ours, theirs))
        values[path] = merged_counter(was, mine, other)
    memory, both = merged_memory(
        (start.working_memory, start.working_memory), ours.working_memory, theirs.working_memory
    )
    values[MEMORY] = memory_with_theirs(memory, theirs.working_memory, both) if later else memory
    return with_values(ours, values)


def _lower_counters(ours: Unified, theirs: Unified) -> Unified:
    counts = {path: (value_at(ours, path), value_at(theirs, path)) for path in COUNTERS}
    return with_values(NO_STATE, {path: min(a or 0, b or 0) for path, (a, b) in counts.items()})


# Inside


def _set_values(part: Activation | Budget) -> dict[str, Any]:
    return dict(_set_fields(part))


def _set_fields(part: Activation | Budget) -> Iterator[tuple[str, Any]]:
    for one in fields(part):
        found = getattr(part, one.name)
        if found is not None:
            yield one.name, found


def _comparable_value(memory: Mapping[str, Any], key: str) -> bytes | None:
    """A value so that equal ones are equal JSON, None for one that is not there."""
    return canonical.compact(memory[key]) if key in memory else None


def _str_or_empty(found: object) -> str:
    return found if isinstance(found, str) else ""


def _count_or_none(found: object) -> int | None:
    return found if type(found) is int and 0 <= found < _MAX_COUNT else None


def _float_or_none(found: object, least: float) -> float | None:
    return float(found) if type(found) in (int, float) and least <= found <= _MAX_COST else None  # type: ignore[operator, arg-type]
