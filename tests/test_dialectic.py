"""Sessions of dialectic: its notes on a pad, its passes as turns, and both written so that it reads them again."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foreigners import laid
from hypothesis import example, given
from hypothesis import strategies as st

from sessgit.errors import NotFoundError
from sessgit.exchange import dialectic
from sessgit.model import canonical, ids
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.pad import Entry

OWN = "sess_1705847293"
AT = f".dialectic/{OWN}"
START = 1705847293.0
HERE = ids.session_id(agent_id("dialectic", OWN))


def stamp(n: float) -> str:
    return canonical.rfc3339(START + n)


def session(**more: Any) -> dict[str, Any]:
    return {
        "id": OWN, "title": "Who leads in chips?", "status": "critiquing", "created": stamp(0), "updated": stamp(900),
        "cycle": 2, "context_files": ["dalio.md"],
        "claims": [
            {"id": "claim_001", "text": "Debt comes in cycles", "source": "dalio.md", "weight": 3},
            {"id": "c-b", "statement": "Engineers lead"},
            "Tools are scarce",
        ],
        "tensions": [
            {"id": "tension_001", "description": "Debt against engineers", "claims": ["claim_001", "c-b"],
             "status": "open"},
            {"id": "tension_002", "text": "Old against new", "resolved": True, "resolution": "Both at once"},
        ],
        "thesis": {"version": 2, "content": "Institutions lead.", "confidence": 0.7},
        "passes": [
            {"type": "expansion", "cycle": 1, "content": "All that there is", "timestamp": stamp(60)},
            {"type": "critique", "cycle": 2, "content": "What is wrong with it"},
        ],
        "insights": ["one", "two", "three"], "evidence": ["a fab"], "risks": ["war"], "counters": [],
        "patterns": ["it repeats"], "questions": ["And ASML?"],
        "confidence_history": [0.4, 0.6, 0.6], "current_confidence": 0.6, "cycle_insights": [2, 1],
        "plugin": {"v": [1]},
    } | more  # fmt: skip


FILES: dict[str, Any] = {
    f"{AT}/context/dalio.md": b"# Dalio\n",
    f"{AT}/context/wang.md": b"# Wang\n",
    f"{AT}/claims/claim_001.md": b"---\nid: claim_001\n---\nDebt, at length\n",
    f"{AT}/claims/claim_003.md": b"# Claim\n\nTools  are\nscarce\n",
    f"{AT}/claims/claim_004.md": b"---\nid: claim_004\n---\nWater is scarcer\n",
    f"{AT}/tensions/tension_001.md": b"Debt against engineers\n",
    f"{AT}/thesis/thesis_v1.md": b"Money leads.\n",
    f"{AT}/thesis/thesis_v2.md": b"Institutions lead.\n",
}


def only(root: Path) -> ForeignSession:
    (found,) = dialectic.read(root).sessions
    return found


def entries(found: ForeignSession, *kinds: str) -> list[Entry]:
    return pads.read_pad(found.pad).of(*kinds)


def outcomes(root: Path) -> dict[str, tuple[str, str]]:
    return {file.path: (file.outcome, file.why) for file in dialectic.read(root).files}


def written(found: ForeignSession) -> dict[str, Any]:
    """What the session is told as: session.json as a value, files as bytes."""
    return {
        path: json.loads(data) if path == f"{AT}/session.json" else data
        for path, data in dialectic.write(found).items()
    }


# What is read


def test_what_was_noted_is_on_the_pad(tmp_path: Path) -> None:
    found = only(laid(tmp_path, {f"{AT}/session.json": session(), **FILES}))
    by_text = {entry.text: entry.id for entry in entries(found, "claim")}
    told = [
        (e.kind, e.text, e.cycle, *(x for x in (e.source, e.answer, e.form, e.version, e.value, e.turn) if x))
        for e in pads.read_pad(found.pad).entries
    ]
    assert told == [
        ("insight", "one", 1), ("insight", "two", 1), ("insight", "three", 2),
        ("evidence", "a fab", 2), ("risk", "war", 2), ("pattern", "it repeats", 2), ("question", "And ASML?", 2),
        ("claim", "Debt comes in cycles", 2, "dalio.md"), ("claim", "Engineers lead", 2),
        ("claim", "Tools are scarce", 2), ("claim", "Water is scarcer", 2, "claims/claim_004.md"),
        ("tension", "Debt against engineers", 2), ("tension", "Old against new", 2, "Both at once"),
        ("thesis", "Institutions lead.", 2, 2),
        ("pass", "All that there is", 1, "expansion", 2), ("pass", "What is wrong with it", 2, "critique", 3),
        ("confidence", "", 1, 0.4), ("confidence", "", 1, 0.6), ("confidence", "", 1, 0.6),
        ("cycle", "", 2),
        ("file", f"{AT}/context/dalio.md", 2), ("file", f"{AT}/context/wang.md", 2),
    ]  # fmt: skip
    (first, second) = entries(found, "tension")
    assert (first.between, first.is_open) == ((by_text["Debt comes in cycles"], by_text["Engineers lead"]), True)
    assert not second.is_open
    assert {entry.session for entry in pads.read_pad(found.pad).entries} == {HERE}


def test_passes_are_turns_behind_one_that_says_what_it_is_about(tmp_path: Path) -> None:
    found = only(laid(tmp_path, {f"{AT}/session.json": session()}))
    assert [(turn.prompt, turn.answer, turn.time) for turn in found.turns] == [
        ("Who leads in chips?", "", START),
        ("Expansion pass, cycle 1", "All that there is", START + 60),
        ("Critique pass, cycle 2", "What is wrong with it", START + 60.001),
    ]
    fewer = only(laid(tmp_path, {f"{AT}/session.json": session(passes=session()["passes"][:1])}))
    assert fewer.turns == found.turns[:2]


def test_a_session_says_how_far_it_has_come(tmp_path: Path) -> None:
    found = only(laid(tmp_path, {f"{AT}/session.json": session()}))
    assert replace(found, turns=(), pad={}, kept={}) == ForeignSession(
        OWN, "Who leads in chips?", project=str(tmp_path), created=stamp(0), updated=stamp(900), stage="critiquing",
        confidence=0.6,
    )  # fmt: skip
    known = pads.read_pad(found.pad)
    assert pads.confidence_history(known, HERE, found.confidence) == [0.4, 0.6, 0.6]
    assert pads.current_cycle(known, HERE) == 2
    text = pads.pad_brief(known, Session(HERE, HERE, title=found.title, stage=found.stage, confidence=found.confidence))
    for words in (
        "We continue “Who leads in chips?”.", "Current state: stage critiquing, cycle 2, confidence 0.6.",
        "Thesis:\nInstitutions lead.", "- Debt comes in cycles [dalio.md]\n", "- And ASML?",
        "Open tensions:\n- Debt against engineers\n  - Debt comes in cycles\n  - Engineers lead\n\n", "- dalio.md",
    ):  # fmt: skip
        assert words in text


@pytest.mark.parametrize("start", ["", ".dialectic", AT])
def test_the_folder_can_be_the_project_dialectic_or_one_session(tmp_path: Path, start: str) -> None:
    laid(tmp_path, {f"{AT}/session.json": session(), f"{AT}/context/a.md": b"A", "src/a.py": b"pass"})
    found = dialectic.read(tmp_path / start)
    assert [(one.id, one.project, *one.kept) for one in found.sessions] == [
        (OWN, str(tmp_path), "dialectic/context/a.md", "dialectic/session.json")
    ]
    assert [entry.text for entry in entries(found.sessions[0], "file")] == ["dalio.md", f"{AT}/context/a.md"]
    assert [file.path for file in found.files] == [
        f"{AT}/{name}".removeprefix(start).lstrip("/") for name in ("context/a.md", "session.json")
    ]


def test_files_stand_in_for_what_session_json_does_not_say(tmp_path: Path) -> None:
    bare = session(claims=[], tensions=[], thesis=None, context_files=[])
    found = only(laid(tmp_path, {f"{AT}/session.json": bare, **FILES}))
    assert [(entry.text, entry.version) for entry in entries(found, "thesis")] == [("Institutions lead.", 2)]
    assert [entry.text for entry in entries(found, "claim", "tension", "file")] == [
        "Debt, at length", "# Claim\n\nTools  are\nscarce", "Water is scarcer", "Debt against engineers",
        f"{AT}/context/dalio.md", f"{AT}/context/wang.md",
    ]  # fmt: skip
    assert written(found) == {f"{AT}/session.json": bare, **FILES}


def test_a_list_that_grows_keeps_its_entries(tmp_path: Path) -> None:
    before = only(laid(tmp_path, {f"{AT}/session.json": session()}))
    more = session(insights=["one", "two", "three", "four"], confidence_history=[0.4, 0.6, 0.6, 0.9], cycle=3)
    after = only(laid(tmp_path, {f"{AT}/session.json": more}))
    for kind in ("insight", "confidence", "pass", "cycle"):
        assert entries(after, kind)[: len(entries(before, kind))] == entries(before, kind)
    assert [one.id for one in entries(after, "claim", "risk")] == [one.id for one in entries(before, "claim", "risk")]


def test_confidence_may_be_in_percent(tmp_path: Path) -> None:
    found = only(laid(tmp_path, {f"{AT}/session.json": session(confidence_history=[0, 40, 85], current_confidence=85)}))
    assert ([entry.value for entry in entries(found, "confidence")], found.confidence) == ([0, 0.4, 0.85], 0.85)
    assert written(found)[f"{AT}/session.json"]["confidence_history"] == [0, 40, 85]


@pytest.mark.parametrize(("said", "confidence"), [(1, 1), (1.5, 0.015), (100, 1), (100.1, None), (-1, None)])
def test_a_confidence_is_from_0_to_1_or_a_percentage(tmp_path: Path, said: float, confidence: float | None) -> None:
    document = session(confidence_history=[], current_confidence=said)
    assert only(laid(tmp_path, {f"{AT}/session.json": document})).confidence == confidence


# What does not fit, and what is wrong with files


def test_what_the_pad_does_not_take_is_kept_and_told(tmp_path: Path) -> None:
    long = session(
        insights=[f"i{n}" for n in range(600)], thesis="t" * 30_000, claims=["c" * 3_000], evidence=["e" * 2_000] * 490
    )
    laid(tmp_path, {f"{AT}/session.json": long})
    found = only(tmp_path)
    assert [entry.text for entry in entries(found, "insight")] == [f"i{n}" for n in range(100, 600)]
    assert [len(entry.text) for entry in entries(found, "thesis", "claim")] == [2_000, 20_000]
    assert sum(map(len, found.pad.values())) <= pads.LARGEST
    ((_, why),) = outcomes(tmp_path).values()
    assert why.startswith(
        "claims has 1 that are longer than 2,000 characters: cut; thesis has 1 that are longer than 20,000 characters: "
        "cut; insights has 600 entries: the last 500 are on the pad; "
    )
    assert why.endswith(" entries did not fit on the scratchpad")
    assert written(found)[f"{AT}/session.json"] == long


def test_every_file_is_accounted_for(tmp_path: Path) -> None:
    laid(tmp_path, {
        f"{AT}/session.json": session(),
        f"{AT}/notes.txt": b"\xff\x00",
        ".dialectic/deep/session.json": b"[" * 100_000,
        ".dialectic/cut/session.json": b'{"id": "cut", "claims": [',
        ".dialectic/list/session.json": [1],
        ".dialectic/odd/session.json": session(id="../../x"),
        ".dialectic/one/session.json": session(id="twice"),
        ".dialectic/two/session.json": session(id="twice", title="Another"),
        ".dialectic/nothing/context/a.md": b"A",
        ".dialectic/settings.json": {},
        "secret.md": b"mine",
    })  # fmt: skip
    (tmp_path / AT / "context").mkdir()
    (tmp_path / AT / "context" / "out.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / ".dialectic" / "away").symlink_to(tmp_path)
    os.mkfifo(tmp_path / AT / "pipe")
    assert outcomes(tmp_path) == {
        f"{AT}/context/out.md": ("left", f"it is a link to {tmp_path}/secret.md; links are not followed"),
        f"{AT}/notes.txt": ("imported", "kept as it is"),
        f"{AT}/pipe": ("left", "it is not a regular file"),
        f"{AT}/session.json": ("imported", ""),
        ".dialectic/away": ("left", f"it is a link to {tmp_path}; links are not followed"),
        ".dialectic/cut/session.json": ("damaged", "it is not JSON"),
        ".dialectic/deep/session.json": ("damaged", "its values are nested too deeply"),
        ".dialectic/list/session.json": ("damaged", "it is not an object"),
        ".dialectic/nothing/context/a.md": ("left", "unknown kind of file"),
        ".dialectic/odd/session.json": ("damaged", "its id cannot be one"),
        ".dialectic/one/session.json": ("damaged", ".dialectic/two/session.json is another session with the same id"),
        ".dialectic/settings.json": ("left", "unknown kind of file"),
        ".dialectic/two/session.json": ("damaged", ".dialectic/one/session.json is another session with the same id"),
    }
    assert [one.id for one in dialectic.read(tmp_path).sessions] == [OWN]


def test_a_folder_without_sessions_is_none(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        dialectic.read(tmp_path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5) | st.sampled_from([stamp(1), "claim_001", "a", "\x00\u202e"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
KEYS = ["id", "text", "content", "claim", "type", "cycle", "source", "between", "claims", "resolved", "status",
        "resolution", "created", "timestamp", "version", "value", "a", "model", "prompt", "new"]  # fmt: skip
THINGS = VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5)
LISTED = ["claims", "tensions", "passes", "insights", "evidence", "risks", "counters", "patterns", "questions",
          "confidence_history", "context_files", "cycle_insights"]  # fmt: skip
WRONG = st.fixed_dictionaries(
    {"id": st.just(OWN)},
    optional=dict.fromkeys(LISTED, st.lists(THINGS, max_size=3) | VALUES)
    | dict.fromkeys(["title", "status", "created", "updated", "cycle", "current_confidence", "new"], VALUES)
    | {"thesis": THINGS, "cycle": st.integers(0, 4) | VALUES, "status": st.sampled_from(STAGES) | VALUES},
)
LYING = st.dictionaries(
    st.sampled_from([
        f"{AT}/claims/claim_001.md", f"{AT}/claims/x.md", f"{AT}/tensions/a", f"{AT}/thesis/thesis_v3.md",
        f"{AT}/thesis/other.md", f"{AT}/context/a.md", f"{AT}/context/b/c.md", f"{AT}/new",
        f"{AT}/kept/a", f"{AT}/kept/dialectic/session.json",
    ]),
    st.sampled_from([b"a", b"", b"---\n---\nwords", b"\xff", b"b\r\nc"]),
    max_size=4,
)  # fmt: skip


@example({"id": OWN, "created": 1.0}, {})
@example({"id": OWN, "current_confidence": 1e-9}, {})
@given(WRONG, LYING)
def test_whatever_is_noted_comes_back(
    tmp_path_factory: pytest.TempPathFactory, noted: dict[str, Any], lying: dict[str, bytes]
) -> None:
    noted = json.loads(json.dumps(noted))
    found = only(laid(tmp_path_factory.mktemp("dialectic"), {f"{AT}/session.json": noted, **lying}))
    out = written(found)
    document = out.pop(f"{AT}/session.json")
    assert {key: document[key] for key in noted} == noted
    assert out == lying
    again = only(laid(tmp_path_factory.mktemp("dialectic"), dialectic.write(found)))
    assert replace(again, kept={}) == replace(found, kept={}, project=again.project)
    assert dialectic.write(again) == dialectic.write(found)
    for name, data in found.pad.items():
        kind = next(kind for kind, known in pads.LISTS.items() if known == name)
        assert all(pads.parse_entry(kind, line) for line in pads.split_list(data))


# What is written


WORDS = st.sampled_from(["a", "b", "Debt, again.", "x\ny", "é☃"])


@st.composite
def noted(draw: st.DrawFn) -> Entry:
    kind = draw(st.sampled_from([kind for kind in pads.LISTS if kind not in ("thesis", "cycle")]))
    made = Entry(
        "",
        kind,
        draw(st.sampled_from(["", "sure"]) if kind == "confidence" else WORDS),
        stamp(draw(st.integers(0, 5))),
        draw(st.sampled_from([HERE, "e90c55aa"])),
        draw(st.none() | st.integers(1, 9)),
        draw(st.integers(1, 3)),
        source=draw(st.sampled_from(["", "lexer.py"])),
        between=("0" * 8,) if kind == "tension" and draw(st.booleans()) else (),
        form=draw(st.sampled_from(pads.PASSES)) if kind == "pass" else "",
        value=draw(st.sampled_from([0.0, 0.5, 1.0])) if kind == "confidence" else None,
    )
    if kind in pads.RESOLVABLE and draw(st.booleans()):
        made = replace(made, resolved=stamp(9), answer=draw(st.sampled_from(["", "so"])))
    return pads.entry_with_line(made)


@st.composite
def sessions(draw: st.DrawFn) -> ForeignSession:
    lists: dict[str, bytes] = {}
    for entry in draw(st.lists(noted(), max_size=8, unique_by=lambda one: one.id)):
        lists = pads.add_entry(lists, entry)
    if draw(st.booleans()):
        lists = pads.add_entry(lists, pads.entry_with_line(Entry("", "thesis", "It is so.", stamp(3), HERE, version=3)))
    for number in range(2, pads.current_cycle(pads.read_pad(lists), HERE) + draw(st.integers(1, 3))):
        lists = pads.add_entry(lists, pads.entry_with_line(Entry("", "cycle", "", stamp(number), HERE, cycle=number)))
    return ForeignSession(
        OWN,
        title="Who leads?",
        name=draw(st.sampled_from(["", "chips"])),
        description=draw(st.sampled_from(["", "One.\nTwo."])),
        created=stamp(0),
        updated=stamp(50),
        ended=draw(st.sampled_from(["", stamp(60)])),
        labels=draw(st.sampled_from([(), ("a", "b c")])),
        stage=draw(st.sampled_from(STAGES)),
        confidence=draw(st.sampled_from([0.0 if "confidence" in lists else None, 0.5, 1.0])),
        pad=lists,
        kept=draw(st.sampled_from([{}, {"rlm/a.json": b"\xff", "note": b"mine"}])),
    )


@given(sessions())
def test_a_pad_that_was_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, made: ForeignSession) -> None:
    found = only(laid(tmp_path_factory.mktemp("dialectic"), dialectic.write(made)))
    others = {path: data for path, data in found.kept.items() if not path.startswith("dialectic/")}
    assert replace(found, turns=(), kept=others, project="") == made
    assert dialectic.write(found) == dialectic.write(made)


def test_what_was_noted_since_is_written_too(tmp_path: Path) -> None:
    found = only(laid(tmp_path, {f"{AT}/session.json": session(), **FILES}))
    known = pads.read_pad(found.pad)
    claim, tension = known.of("claim")[0], known.of("tension")[0]
    lists = pads.replace_entries(found.pad, [
        (claim, None),
        (tension, pads.entry_with_line(replace(tension, resolved=stamp(1000), answer="Both"))),
    ])  # fmt: skip
    lists = pads.add_entry(lists, pads.entry_with_line(Entry("", "claim", "Water matters", stamp(999), HERE, cycle=2)))
    out = written(replace(found, pad=lists, stage="synthesized", confidence=0.9))
    document = out[f"{AT}/session.json"]
    assert (document["status"], document["current_confidence"]) == ("synthesized", 0.9)
    assert document["claims"] == [
        {"id": "c-b", "statement": "Engineers lead"},
        "Tools are scarce",
        {"id": "claim_003", "text": "Water matters", "cycle": 2, "created": stamp(999)},
    ]
    assert {key: document["tensions"][0][key] for key in ("id", "resolved", "resolution", "resolved_at")} == {
        "id": "tension_001", "resolved": True, "resolution": "Both", "resolved_at": stamp(1000)
    }  # fmt: skip
    assert document["cycle_insights"] == [2, 11]
    assert sorted(path.removeprefix(f"{AT}/claims/") for path in out if "/claims/" in path) == [
        "claim_003.md", "claim_004.md"
    ]  # fmt: skip
    again = only(laid(tmp_path / "again", dialectic.write(replace(found, pad=lists))))
    assert set(entries(again, "claim", "tension")) == set(pads.read_pad(lists).of("claim", "tension"))


KEPT = st.one_of(
    VALUES.map(lambda value: {"session": value, "lists": value, "files": value}),
    THINGS.map(lambda value: {"id": OWN, "session": {"id": OWN}, "lists": {"claim": [value], "insight": [value]}}),
)


@given(st.binary(max_size=40) | KEPT.map(lambda value: json.dumps(value).encode()))
def test_what_was_kept_may_be_anything(kept: bytes) -> None:
    lists = pads.add_entry({}, pads.entry_with_line(Entry("", "claim", "a", stamp(0), HERE)))
    out = written(ForeignSession(OWN, created=stamp(0), pad=lists, kept={"dialectic/session.json": kept}))
    assert [one.get("text") for one in out[f"{AT}/session.json"]["claims"] if isinstance(one, dict)][-1:] == ["a"]


def test_whom_it_left_is_told_again(tmp_path: Path) -> None:
    """No session here says so, since passes are no turns that two share."""
    first = dialectic.write(ForeignSession("f-1", title="a", name="a", parent="p-1", branch=2, created=stamp(0)))
    for path, data in first.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (found,) = dialectic.read(tmp_path).sessions
    again = dialectic.write(replace(found, parent="", branch=None))
    assert {path: json.loads(data) for path, data in again.items()} == {
        path: json.loads(data) for path, data in first.items()
    }


@pytest.mark.parametrize("status", ["gathering", "critiquing"])
def test_what_dialectic_changes_in_an_export_counts(tmp_path: Path, status: str) -> None:
    """A stage is required: the export of a session that has none says so next to it, for as long as it is the same."""
    out = written(ForeignSession(OWN, title="Who leads?", created=stamp(0), updated=stamp(1)))
    document = out[f"{AT}/session.json"]
    assert document["status"] == "gathering"
    found = only(laid(tmp_path, {f"{AT}/session.json": document | {"status": status}}))
    assert found.stage == ("" if status == "gathering" else status)
