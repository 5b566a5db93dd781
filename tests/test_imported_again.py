"""A second import of another system's files: what was changed here stays, and what the source says anew comes in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreigners import put
from shell import Shell
from test_migrating import dialectic

STATE = ".dialectic/sess_1762164000/session.json"


@pytest.fixture
def source(sessgit: Shell, tmp_path: Path) -> Path:
    """A session of dialectic that was imported."""
    folder = dialectic(tmp_path / "source")
    sessgit.out("import", "--from", "dialectic", str(folder))
    return folder


def changed(source: Path, **values: Any) -> None:
    """Have the source say something else."""
    put(source / STATE, {**json.loads((source / STATE).read_text()), **values})


def again(sessgit: Shell, source: Path) -> list[str]:
    """Import it again; what the report says of the session's file."""
    report = sessgit.json("import", "--from", "dialectic", str(source))
    (reason,) = [file["reason"] for file in report["files"] if file["path"] == STATE]
    return (reason or "").split("; ")


def own(sessgit: Shell) -> str:
    (row,) = sessgit.json("ls", "--all")["sessions"]
    return str(row["id"])


def theses(sessgit: Shell) -> list[str]:
    return [one["text"] for one in sessgit.json("pad", own(sessgit))["entries"] if one["kind"] == "thesis"]


def test_a_new_cycle_there_does_not_revive_what_was_replaced_here(sessgit: Shell, source: Path) -> None:
    sessgit.out("pad", "thesis", "Neither leads.", "--into", own(sessgit))
    changed(source, cycle=3)
    assert again(sessgit, source) == [""]
    assert theses(sessgit) == ["Neither leads."]


def test_a_new_thesis_there_replaces_its_own_and_not_a_persons(sessgit: Shell, source: Path) -> None:
    changed(source, thesis="Demand leads.")
    assert again(sessgit, source) == [""]
    assert theses(sessgit) == ["Demand leads."]
    sessgit.out("pad", "thesis", "Neither leads.", "--into", own(sessgit))
    changed(source, thesis="Supply leads.")
    assert again(sessgit, source) == ["1 of its thesis was changed here and there: kept as here"]
    assert theses(sessgit) == ["Neither leads."]


def test_stage_and_confidence_of_a_person_stay_and_the_difference_is_named(sessgit: Shell, source: Path) -> None:
    sessgit.out("edit", own(sessgit), "--stage", "critiquing", "--confidence", "0.9")
    said = ["stage is “critiquing” here and “shaping” there: kept as it is here"]
    said.append("confidence is 0.9 here and 0.5 there: kept as it is here")
    assert again(sessgit, source) == said
    changed(source, status="synthesized", current_confidence=0.6)
    assert again(sessgit, source) == [said[0].replace("shaping", "synthesized"), said[1].replace("0.5", "0.6")]
    found = json.loads(sessgit.out("show", "--json", own(sessgit)))["session"]
    assert (found["stage"], found["confidence"]) == ("critiquing", 0.9)


def test_entries_that_were_changed_removed_or_settled_here_stay_so(sessgit: Shell, source: Path) -> None:
    entries = {one["text"]: one["id"] for one in sessgit.json("pad", own(sessgit))["entries"]}
    sessgit.out("pad", "edit", entries["Demand does."], "Demand does it.", "--into", own(sessgit))
    sessgit.out("pad", "drop", entries["A war."], "--into", own(sessgit))
    sessgit.out("pad", "resolve", entries["And memory?"], "No.", "--into", own(sessgit))
    before = sessgit.json("pad", own(sessgit))["entries"]
    changed(source, cycle=4, insights=["Turns are long.", "And slow."])
    assert again(sessgit, source) == [""]
    after = sessgit.json("pad", own(sessgit))["entries"]
    assert [one for one in after if one["kind"] not in ("insight", "cycle")] == [
        one for one in before if one["kind"] not in ("insight", "cycle")
    ]
    assert [one["text"] for one in after if one["kind"] == "insight"] == ["Turns are long.", "And slow."]


def test_what_was_settled_there_is_settled_here(sessgit: Shell, source: Path) -> None:
    tension = json.loads((source / STATE).read_text())["tensions"][0]
    changed(source, tensions=[{**tension, "status": "resolved", "resolution": "In turn."}])
    assert again(sessgit, source) == [""]
    (found,) = [one for one in sessgit.json("pad", own(sessgit))["entries"] if one["kind"] == "tension"]
    assert found["answer"] == "In turn."


def test_a_brief_names_the_claims_of_a_tension_and_sources(sessgit: Shell, source: Path) -> None:
    brief = sessgit.out("pad", "brief", own(sessgit))
    assert "Claims:\n- Demand does.\n- Supply does. [chips.md]\n" in brief
    assert "Open tensions:\n- Both cannot lead.\n  - Demand does.\n  - Supply does.\n" in brief
