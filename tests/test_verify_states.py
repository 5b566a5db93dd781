"""What `verify` says of the state that a commit holds, word for word: of one harm nothing else is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import damaging
import pytest
from damaging import Recorded
from transcripts import OTHER, SESSION

from sessgit.check.verifying import states
from sessgit.check.verifying.turns import Where
from sessgit.model import canonical
from sessgit.store.index import Index
from sessgit.store.store import Store

LEFT = {
    "session": OTHER, "turn": 1, "commit": "1" * 40, "replaced": [], "prefix": 0, "prefix_sha256": "", "cell": "",
}  # fmt: skip


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


def told(kept: Recorded, data: bytes) -> list[str]:
    """What is found of the head's state where it is this one."""
    commit = kept.remade(files={"session.json": data})
    found = states.read(kept.store, commit, SESSION, Where(SESSION))[1]
    assert {one.kind for one in found} <= {"state"}
    return [one.what for one in found]


HARMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "another session": ({"metadata": {"session_id": OTHER}}, [f"the state is that of {OTHER}"]),
    "no session": ({"metadata": {"session_id": ""}}, ["the state is that of no session"]),
    "another one's id": (
        {"metadata": {"agent_id": OTHER}}, [f"the agent's id {OTHER} belongs to another session id"]
    ),
    "another agent": ({"metadata": {"agent": "x"}}, ["the agent “x” is unknown"]),
    "a state that is none": (
        {"metadata": {"state": "x"}},
        ["metadata.state is missing, or of a wrong type"],
    ),
    "a time that is none": ({"metadata": {"created_at": "x"}}, ["metadata.created_at is not a time"]),
    "a number for a time": (
        {"metadata": {"ended_at": 5}},
        ["metadata.ended_at is missing, or of a wrong type", "metadata.ended_at is not a time"],
    ),
    "a long title": ({"metadata": {"title": "x" * 200}}, []),
    "too long a title": (
        {"metadata": {"title": "x" * 201}}, ["the title has more than 200 characters"],
    ),
    "another sum": (
        {"budget": {"total_tokens_used": 1}},
        ["budget.total_tokens_used is missing, or of a wrong type"],
    ),
    "no rules of cutting": ({"rules": {"cut": None}}, ["rules.cut is missing, or of a wrong type"]),
    "a name with white space": ({"authored": {"name": "x "}}, ["its name is not valid"]),
    "a name that is none": ({"authored": {"name": "a@b"}}, ["its name is not valid"]),
    "a long description": ({"authored": {"description": "x" * 2000}}, []),
    "too long a description": (
        {"authored": {"description": "x" * 2001}}, ["its description is not valid"],
    ),
    "many labels": ({"authored": {"labels": [f"{n:02}" for n in range(50)]}}, []),
    "too many labels": (
        {"authored": {"labels": [f"{n:02}" for n in range(51)]}},
        ["it has too many labels, or one of them twice"],
    ),
    "too long a label": ({"authored": {"labels": ["x" * 51]}}, ["its label is not valid"]),
    "a label that is none": ({"authored": {"labels": ["a,b"]}}, ["its label is not valid"]),
    "labels in another order": (
        {"authored": {"labels": ["b", "a"]}}, ["authored.labels is missing, or of a wrong type"],
    ),
    "a label twice": ({"authored": {"labels": ["a", "a"]}}, ["it has too many labels, or one of them twice"]),
    "a stage that is none": ({"authored": {"stage": "x"}}, ["its stage is not valid"]),
    "too sure": (
        {"authored": {"confidence": 1.5}}, ["authored.confidence is missing, or of a wrong type"],
    ),
    "an origin": ({"origin": LEFT}, []),
    "an origin that is no commit": (
        {"origin": {**LEFT, "commit": "x"}}, ["its origin is not a valid fork point"],
    ),
    "an origin that is no session": (
        {"origin": {**LEFT, "session": "A B"}}, ["its origin is not a valid fork point"],
    ),
    "a prefix without a proof": (
        {"origin": {**LEFT, "prefix": 9}}, ["its origin is not a valid fork point"],
    ),
    "a cell of another turn": (
        {"origin": {**LEFT, "cell": "3.1"}}, ["its origin is not a valid fork point"],
    ),
    "a cell of the next turn": ({"origin": {**LEFT, "cell": "2.1"}}, []),
    "an origin that is itself": ({"origin": {**LEFT, "session": SESSION}}, ["its origin is the session itself"]),
    "a mode that is none": (
        {"activation": {"activation_mode": "x"}}, ["a program cannot set activation.activation_mode to this"],
    ),
    "nothing of a program": ({"activation": None}, []),
    "a list of a program": ({"context": []}, ["a program cannot set context to this"]),
    "what no program sets": ({"context": {"files": {}, "more": 1}}, ["a program cannot set context.files to this"]),
    "no object of a program": ({"activation": 5}, ["a program cannot set activation to this"]),
}  # fmt: skip


@pytest.mark.parametrize("part", ["metadata", "budget", "cells", "trajectory", "rules", "authored"])
def test_a_part_that_is_not_there(part: str, kept: Recorded) -> None:
    document = json.loads(kept.file("session.json"))
    del document[part]
    assert any(one.startswith(f"{part} is missing") for one in told(kept, canonical.dumps(document)))


def test_rules_that_are_not_there(kept: Recorded) -> None:
    document = json.loads(kept.file("session.json"))
    document["rules"] = {"redacted": 0}
    assert told(kept, canonical.dumps(document)) == ["rules.cut is missing", "rules.redact is missing"]


def test_what_is_no_object_or_written_otherwise(kept: Recorded) -> None:
    spaced = json.dumps(json.loads(kept.file("session.json"))).encode()
    assert told(kept, spaced) == ["session.json is not written in the canonical form"]
    assert told(kept, canonical.dumps([])) == ["session.json is not an object"]


@pytest.mark.parametrize("name", HARMS)
def test_one_harm(name: str, kept: Recorded) -> None:
    parts, wanted = HARMS[name]
    document = json.loads(kept.file("session.json"))
    for part, values in parts.items():
        known = document.get(part)
        document[part] = {**known, **values} if isinstance(known, dict) and isinstance(values, dict) else values
    assert told(kept, canonical.dumps(document)) == wanted
