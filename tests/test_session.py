"""The state of a session, as it is written and read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unifying import PARTS

from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import (
    NO_STATE,
    Activation,
    Budget,
    Memory,
    Metadata,
    Origin,
    Session,
    Trajectory,
    Unified,
)
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.model.stored_fields import State

COUNT = st.integers(0, 2**53 - 1)
TEXT = st.text(max_size=8)
NAMES = st.text(min_size=1, max_size=6)
ORIGIN = st.builds(Origin, TEXT, COUNT, TEXT, st.lists(TEXT, max_size=2).map(tuple), COUNT, TEXT, TEXT)


@st.composite
def states(draw: st.DrawFn) -> Session:
    models = draw(st.lists(NAMES, max_size=2, unique=True))
    texts = [draw(TEXT) for _ in range(12)]
    return Session(
        *texts,
        headless=draw(st.booleans()),
        state=draw(st.sampled_from(get_args(State))),
        origin=draw(st.none() | ORIGIN),
        turns=draw(COUNT),
        messages=draw(COUNT),
        cells=draw(COUNT),
        redacted=draw(COUNT),
        tokens={model: draw(st.builds(Tokens, *[st.integers(0, 2**50)] * 4)) for model in models},
        calls={model: draw(COUNT) for model in models},
        rules=draw(st.dictionaries(NAMES.filter(lambda n: n != "redacted"), COUNT, min_size=1, max_size=2)),
        name=draw(TEXT),
        labels=tuple(sorted(draw(st.lists(TEXT, max_size=3)))),
        confidence=draw(st.none() | st.floats(0, 1)),
        unified=draw(PARTS),
        extra=draw(st.dictionaries(st.just("later") | st.just("metadata2"), st.integers() | st.just({"a": [1]}))),
    )


@given(states())
def test_what_is_written_is_read(state: Session) -> None:
    data = sessions.dumps(state)
    assert sessions.loads(json.loads(data)) == state
    assert sessions.dumps(sessions.loads(json.loads(data))) == data


def test_what_a_later_version_wrote_is_kept() -> None:
    document = json.loads(sessions.dumps(Session("a41f", "a41f")))
    document["sync"] = {"remote": "origin"}
    document["metadata"]["mood"] = "good"
    document["authored"]["stars"] = 3
    document["rules"]["later"] = 4
    again = json.loads(sessions.dumps(sessions.loads(document)))
    assert again == document


def test_it_is_canonical() -> None:
    data = sessions.dumps(Session("a41f", "a41f", title="naïve", labels=("b", "a")))
    assert data == json.dumps(json.loads(data), sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"
    assert json.loads(data)["authored"]["labels"] == ["a", "b"]
    json.loads(sessions.dumps(Session("a41f", "a41f", title="\ud800")))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A state in which any value is replaced by something else."""
    document = json.loads(sessions.dumps(replace(draw(states()), origin=draw(ORIGIN))))
    place: Any = document
    while True:
        key = draw(st.sampled_from(sorted(place)))
        if isinstance(place[key], dict) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        place[key] = draw(JSON)
        return document


@given(JSON | damaged())
def test_a_field_of_the_wrong_kind_counts_as_missing(document: Any) -> None:
    found = sessions.loads(document)
    assert sessions.loads(json.loads(sessions.dumps(found))) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [("turns", -1), ("turns", "7"), ("turns", True), ("turns", 2.5), ("turns", 2**60), ("messages", None)],
)
def test_what_is_no_count_is_zero(field: str, value: object) -> None:
    assert getattr(sessions.loads({"trajectory": {field: value}}), field) == 0


def test_after_a_turn() -> None:
    before = Session(
        "a", "a", state="ended", ended="2026-03-01T10:00:00.000Z", turns=1, messages=2, cells=1, redacted=1
    )
    turn = Turn(
        "p",
        prompt="Do it\nwell",
        time="2026-03-01T11:00:00.000Z",
        ended="2026-03-01T11:00:09.000Z",
        tokens={"m": Tokens(1, 2, 3, 4)},
        calls={"m": 1},
        messages=3,
    )
    after = sessions.after_turn(sessions.after_turn(before, turn, 2), turn, 3)
    assert after == replace(
        before,
        state="active",
        ended="",
        turns=3,
        messages=8,
        first_prompt="Do it",
        created="2026-03-01T11:00:00.000Z",
        updated="2026-03-01T11:00:09.000Z",
        tokens={"m": Tokens(2, 4, 6, 8)},
        calls={"m": 2},
    )


def test_a_rewind_carries_over_what_was_authored() -> None:
    head = Session(
        "a", "a", title="T", created="then", name="n", labels=("x",), stage="shaping", turns=9, confidence=0.5,
        unified=Unified(context=Memory({"plan": 1})),
    )  # fmt: skip
    past = Session("a", "a", title="old", turns=2, name="other", unified=Unified(Metadata("1")))
    carried = sessions.carry_over(head, past)
    assert (carried.title, carried.created, carried.name, carried.labels) == ("T", "then", "n", ("x",))
    assert (carried.stage, carried.confidence, carried.turns) == ("shaping", 0.5, 2)
    assert carried.unified == Unified(context=Memory({"plan": 1}))


# What programs set


def test_a_state_that_no_program_touched_holds_nothing_of_it() -> None:
    document = json.loads(sessions.dumps(Session("a", "a", tokens={"m": Tokens(1)})))
    assert sorted(document) == ["authored", "budget", "cells", "metadata", "origin", "rules", "trajectory"]
    assert sorted(document["budget"]) == ["by_model", "total_tokens_used"]
    assert sorted(document["trajectory"]) == ["messages", "turns"]
    assert "rlm_version" not in document["metadata"]


def test_what_a_program_set_stands_beside_what_is_derived() -> None:
    own = Unified(
        Metadata("2.1"), Activation(True, "manual", current_depth=0), Memory({"plan": None}), Budget(10, 0, 0.0),
        Trajectory("/out.json"),
    )  # fmt: skip
    document = json.loads(sessions.dumps(Session("a", "a", turns=3, tokens={"m": Tokens(1)}, unified=own)))
    assert document["activation"] == {"activation_mode": "manual", "current_depth": 0, "rlm_active": True}
    assert document["context"] == {"working_memory": {"plan": None}}
    assert document["trajectory"] == {"export_path": "/out.json", "messages": 0, "turns": 3}
    assert document["metadata"]["rlm_version"] == "2.1"
    assert document["budget"].pop("by_model")
    assert document["budget"] == {
        "cost_usd": 0.0, "max_recursive_calls": 10, "total_recursive_calls": 0, "total_tokens_used": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("activation", "rlm_active", 1),
        ("activation", "activation_mode", "sometimes"),
        ("activation", "activation_mode", ["manual"]),
        ("activation", "complexity_score", "0.5"),
        ("activation", "complexity_score", 10**400),
        ("activation", "current_depth", -1),
        ("activation", "max_depth", 0),
        ("activation", "max_depth", 4),
        ("context", "working_memory", ["plan"]),
        ("context", "files", {"a.py": {}}),
        ("budget", "cost_usd", -0.5),
        ("budget", "cost_usd", True),
        ("budget", "max_recursive_calls", 2**60),
        ("trajectory", "export_path", 7),
        ("metadata", "rlm_version", {"major": 2}),
    ],
)
def test_what_no_program_can_have_set_is_missing_and_kept(part: str, key: str, value: object) -> None:
    document = json.loads(sessions.dumps(Session("a", "a")))
    document.setdefault(part, {})[key] = value
    state = sessions.loads(document)
    assert state.unified == NO_STATE
    assert json.loads(sessions.dumps(state)) == document


def test_what_is_no_number_is_missing() -> None:
    for text in ("NaN", "Infinity", "-Infinity"):
        found = sessions.loads(json.loads(f'{{"activation": {{"complexity_score": {text}}}}}'))
        assert found.unified == NO_STATE


def test_a_memory_nested_as_deeply_as_json_is_read() -> None:
    document = json.loads(sessions.dumps(Session("a", "a")))
    document["context"] = {"working_memory": json.loads('{"a":' * 900 + "1" + "}" * 900)}
    assert json.loads(sessions.dumps(sessions.loads(document))) == document
