"""What `verify` says of the state that a commit holds, word for word: of one harm nothing else is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import damaging
import pytest
from damaging import Recorded
from transcripts import OTHER, SESSION

from sessgit.check import session_checks
from sessgit.check.session_checks import Report
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
    report = Report(SESSION)
    session_checks.read_state(kept.store, commit, SESSION, report)
    assert {one.kind for one in report.findings} <= {"state"}
    return [one.what for one in report.findings]


def invalid(path: str) -> str:
    return f"{path} is missing or not valid"


HARMS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({}, []),
    "another session": ({"metadata": {"session_id": OTHER}}, ["metadata.session_id"]),
    "no session": ({"metadata": {"session_id": ""}}, ["metadata.session_id"]),
    "another one's id": ({"metadata": {"agent_id": OTHER}}, ["metadata.agent_id"]),
    "another agent": ({"metadata": {"agent": "x"}}, ["metadata.agent"]),
    "a state that is none": ({"metadata": {"state": "x"}}, ["metadata.state"]),
    "a number for a time": ({"metadata": {"ended_at": 5}}, ["metadata.ended_at"]),
    "another sum": ({"budget": {"total_tokens_used": 1}}, ["budget.total_tokens_used"]),
    "no rules of cutting": ({"rules": {"cut": None}}, ["rules.cut"]),
    "a name with white space": ({"authored": {"name": "x "}}, ["authored.name"]),
    "a name that is none": ({"authored": {"name": "a@b"}}, ["authored.name"]),
    "a long description": ({"authored": {"description": "x" * 2000}}, []),
    "too long a description": ({"authored": {"description": "x" * 2001}}, ["authored.description"]),
    "many labels": ({"authored": {"labels": [f"{n:02}" for n in range(50)]}}, []),
    "too many labels": ({"authored": {"labels": [f"{n:02}" for n in range(51)]}}, ["authored.labels"]),
    "too long a label": ({"authored": {"labels": ["x" * 51]}}, ["authored.labels"]),
    "a label that is none": ({"authored": {"labels": ["a,b"]}}, ["authored.labels"]),
    "labels in another order": ({"authored": {"labels": ["b", "a"]}}, ["authored.labels"]),
    "a label twice": ({"authored": {"labels": ["a", "a"]}}, ["authored.labels"]),
    "a stage that is none": ({"authored": {"stage": "x"}}, ["authored.stage"]),
    "too sure": ({"authored": {"confidence": 1.5}}, ["authored.confidence"]),
    "an origin": ({"origin": LEFT}, []),
    "an origin that is no commit": ({"origin": {**LEFT, "commit": "x"}}, ["origin"]),
    "an origin that is no session": ({"origin": {**LEFT, "session": "A B"}}, ["origin"]),
    "a prefix without a proof": ({"origin": {**LEFT, "prefix": 9}}, ["origin"]),
    "a cell of another turn": ({"origin": {**LEFT, "cell": "3.1"}}, ["origin"]),
    "a cell of the next turn": ({"origin": {**LEFT, "cell": "2.1"}}, []),
    "an origin that is itself": ({"origin": {**LEFT, "session": SESSION}}, ["origin"]),
    "a mode that is none": ({"activation": {"activation_mode": "x"}}, ["activation.activation_mode"]),
    "nothing of a program": ({"activation": None}, []),
    "a list of a program": ({"context": []}, ["context"]),
    "what no program sets": ({"context": {"files": {}, "more": 1}}, ["context.files"]),
    "no object of a program": ({"activation": 5}, ["activation"]),
}
"""What is written into the state, and the places that are told."""


@pytest.mark.parametrize("part", ["metadata", "budget", "cells", "trajectory", "rules", "authored"])
def test_a_part_that_is_not_there(part: str, kept: Recorded) -> None:
    document = json.loads(kept.file("session.json"))
    del document[part]
    assert any(one.startswith(f"{part} is missing") for one in told(kept, canonical.dumps(document)))


def test_rules_that_are_not_there(kept: Recorded) -> None:
    document = json.loads(kept.file("session.json"))
    document["rules"] = {"redacted": 0}
    assert told(kept, canonical.dumps(document)) == [invalid("rules.cut"), invalid("rules.redact")]


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
    assert told(kept, canonical.dumps(document)) == [invalid(path) for path in wanted]
