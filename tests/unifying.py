"""What programs set of a state, as hypothesis makes it up, and a session that a program sets it of."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from sessgit.api import program_state
from sessgit.api.program_state import StateRequest
from sessgit.model.conversation.session import NO_STATE, Activation, Budget, Memory, Metadata, Trajectory, Unified
from sessgit.model.stored_fields import Mode
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

NOW = 1_800_000_000.0

EVERYTHING: dict[str, Any] = {
    "metadata": {"rlm_version": "2.1", "role": "manager", "parent": "a0000000-0000-4000-8000-000000000001"},
    "activation": {
        "rlm_active": True, "activation_mode": "complexity", "activation_reason": "three modules",
        "complexity_score": 0.75, "current_depth": 1, "max_depth": 3,
    },
    "context": {"working_memory": {"plan": ["read", {"then": None}], "é": 1.5}},
    "budget": {"max_recursive_calls": 50, "total_recursive_calls": 12, "cost_usd": 0.25},
    "trajectory": {"export_path": "/home/ada/out.json"},
}  # fmt: skip
"""Each part that a program can set, with all its keys."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5, "a", "é", "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
    max_leaves=3,
)
MEMORIES = st.dictionaries(st.sampled_from(["a", "b", "c", "d.e", ""]), JSON, max_size=4)
COUNTS = st.none() | st.integers(0, 5)
COSTS = st.none() | st.sampled_from([0.0, 0.1, 0.25, 1.5, 3.0])
ACTIVATIONS = st.builds(
    Activation,
    st.none() | st.booleans(),
    st.none() | st.sampled_from(get_args(Mode)),  # type: ignore[arg-type]
    st.sampled_from([None, "why", "why not"]),
    st.sampled_from([None, -1.0, 0.0, 0.5]),
    COUNTS,
    st.none() | st.integers(1, 3),
)
BUDGETS = st.builds(Budget, COUNTS, COUNTS, COSTS)
TEXTS = st.sampled_from([None, "one", "two"])
PARTS = st.just(NO_STATE) | st.builds(
    Unified,
    st.builds(Metadata, TEXTS),
    ACTIVATIONS,
    st.builds(Memory, MEMORIES.map(lambda memory: memory or None)),
    BUDGETS,
    st.builds(Trajectory, TEXTS),
)


def change(store: Store, index: Index, session: str, parts: dict[str, Any] | None = None, **more: Any) -> str:
    return program_state.change_state(Context(index, now=lambda: NOW), session, StateRequest(parts or {}, **more))
