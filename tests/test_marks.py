"""What programs say on lines: read back as it was written, and whatever else stands there is nothing at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit import agents
from sessgit.agents.claude import cells, content, lines
from sessgit.agents.claude import programs as program_lines
from sessgit.agents.claude.lines import parsed
from sessgit.agents.claude.programs import Chain, End
from sessgit.agents.line import Line, parse
from sessgit.history.cells import cell_records
from sessgit.model.conversation.content import Call
from sessgit.model.program_input import CELL_ID, TYPES, Metadata, Outcome, Reason, Task

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
IDS = st.from_regex(CELL_ID, fullmatch=True)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc", "Cf"]), max_size=20)
TASKS = st.builds(
    Task, st.sampled_from(TYPES), NAMES.filter(bool), st.dictionaries(st.text(max_size=8), PLAIN, max_size=4), NAMES,
    st.lists(IDS, max_size=4, unique=True).map(tuple), IDS, st.none() | st.floats(0, 1e10),
    st.builds(Metadata, st.integers(0, 9), st.text(max_size=5), st.integers(0, 10**9)),
)  # fmt: skip
OUTCOMES = st.builds(
    Outcome, PLAIN, st.none() | st.text(max_size=20), st.none() | st.floats(0, 1e9), st.sampled_from(["", "small-1"]),
    st.dictionaries(st.sampled_from(["input", "output"]), st.integers(0, 10**9)),
)  # fmt: skip


def line(raw: bytes) -> Line:
    return parsed([raw])[0]


@given(TASKS)
def test_a_task_comes_back(task: Task) -> None:
    (raw,) = Chain("x").call(task, None)
    assert lines.mark_of(line(raw)) == lines.Mark(task, f"toolu_{task.id}")
    name = parse(raw)["message"]["content"][0]["name"]  # type: ignore[index]
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@given(OUTCOMES)
def test_an_outcome_comes_back(outcome: Outcome) -> None:
    chain = Chain("x", open={"cell_aaaaaaaa": None})
    (raw,) = chain.outcome("cell_aaaaaaaa", outcome, None)
    assert lines.noted_outcome(line(raw)) == outcome
    assert not lines.is_stand_in(line(raw))


@given(
    st.builds(
        Reason, st.sampled_from(["trace", "decision"]), st.text(min_size=1), st.lists(st.text()).map(tuple),
        st.lists(st.text()).map(tuple), st.text(), st.none() | st.floats(0, 1),
    )
)  # fmt: skip
def test_a_reason_comes_back(reason: Reason) -> None:
    (raw,) = Chain("x").reason(reason, None)
    assert lines.mark_of(line(raw)).reason == reason


# What is no mark


def call(mark: Any, block: Mapping[str, Any] | None = None, **more: Any) -> bytes:
    own = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    message = {"role": "assistant", "id": "msg_1", "model": "m", "content": [own if block is None else block]}
    said = {"type": "assistant", "uuid": "b1", "parentUuid": "a1", "message": message, "sessgit": mark, **more}
    return json.dumps(said).encode()


def result(mark: Any, **more: Any) -> bytes:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "out", **more}
    message = {"role": "user", "content": [block]}
    return json.dumps({"type": "user", "uuid": "c1", "parentUuid": "b1", "message": message, "sessgit": mark}).encode()


PROMPT = json.dumps(
    {"type": "user", "uuid": "a1", "parentUuid": None, "message": {"role": "user", "content": "look"}}
).encode()
MANY = [f"cell_{number:08d}" for number in range(10_001)]
CELL = {"id": "cell_abcdefgh", "type": "repl", "operation": "peek"}


@pytest.mark.parametrize(
    "mark",
    [
        None, 3, "cell", [], [{"cell": CELL}], {}, {"cell": None}, {"cell": [CELL]}, {"cell": {}},
        {"cell": {**CELL, "id": "cell_ABCDEFGH"}}, {"cell": {**CELL, "id": "cell_abcdefghi"}},
        {"cell": {**CELL, "id": 3}},
        {"cell": {**CELL, "id": None}}, {"cell": {**CELL, "id": "../../x"}}, {"cell": {**CELL, "type": "message"}},
        {"cell": {**CELL, "type": None}}, {"cell": {**CELL, "operation": "a\nb"}},
        {"cell": {**CELL, "operation": "x" * 201}},
        {"cell": {**CELL, "source": "\u202e"}}, {"cell": {**CELL, "dependencies": {}}},
        {"cell": {**CELL, "dependencies": ["cell_x"]}}, {"cell": {**CELL, "dependencies": [["cell_abcdefgh"]]}},
        {"cell": {**CELL, "dependencies": MANY}}, {"reason": {"kind": "guess", "text": "x"}},
        {"reason": {"kind": "trace"}}, {"result_of": 3}, {"result_of": "cell_x"}, {"words": 1},
    ],
)  # fmt: skip
def test_what_is_no_mark_is_none(mark: Any) -> None:
    body = parsed([PROMPT, call(mark), result({"outcome": {}})])
    assert lines.mark_of(body[1]) == lines.NO_MARK
    plain = parsed([PROMPT, call(None), result(None)])
    assert cells.describe(body).cells == cells.describe(plain).cells


@pytest.mark.parametrize("block", [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "x", "input": {}},
                                   {"type": "tool_use", "id": 3, "name": "x", "input": {}},
                                   {"type": "tool_use", "id": "t", "name": "x", "input": [1]}])  # fmt: skip
def test_a_mark_needs_its_call(block: Mapping[str, Any]) -> None:
    assert lines.mark_of(line(call({"cell": CELL}, block))) == lines.NO_MARK


def test_what_of_a_mark_is_nothing_is_passed_over() -> None:
    odd = {"created_at": "now", "metadata": {"depth": -1, "model": 3, "tokens_used": 1.5}, "more": 1}
    found = lines.mark_of(line(call({"cell": {**CELL, **odd}}))).task
    assert found == Task("repl", "peek", {"command": "ls"}, id="cell_abcdefgh")
    reason = {"kind": "trace", "text": "t", "evidence": ["a", 3], "options": "x", "chosen": [], "confidence": 2}
    assert lines.mark_of(line(call({"reason": reason}, {"type": "text", "text": "t"}))).reason == Reason(
        "trace", "t", ("a",)
    )


@pytest.mark.parametrize(
    ("mark", "more", "wanted"),
    [
        (None, {}, None),
        ({"outcome": 3}, {}, None),
        ({"outcome": {"json": True}}, {}, None),
        ({"outcome": {"json": True}}, {"content": [{"type": "text", "text": "1"}]}, None),
        ({"outcome": {"json": True}}, {"content": "NaN"}, None),
        ({"outcome": {"json": True}}, {"content": "[" * 100_000}, None),
        ({"outcome": {"json": True}}, {"content": "[1]"}, Outcome([1])),
        ({"outcome": {"json": "yes"}}, {"content": "[1]"}, Outcome("[1]")),
        ({"outcome": {"error": "x"}}, {}, Outcome("out")),
        ({"outcome": {}}, {"is_error": True}, Outcome(error="out")),
        ({"outcome": {"error": 3}}, {"is_error": True, "content": []}, Outcome(error="it failed")),
        ({"outcome": {"error": "", "result": {"a": 1}}}, {"is_error": True}, Outcome({"a": 1}, "")),
        (
            {"outcome": {"execution_time_ms": "1", "model": 3, "tokens": {"input": -1, "x": 2}}},
            {},
            Outcome("out", tokens={"input": 0, "x": 2}),
        ),
    ],
)
def test_outcomes_that_somebody_else_wrote(mark: Any, more: dict[str, Any], wanted: Outcome | None) -> None:
    assert lines.noted_outcome(line(result(mark, **more))) == wanted


FEW = st.sampled_from(["cell_aaaaaaaa", "cell_bbbbbbbb"])
MARKS = st.fixed_dictionaries(
    {},
    optional={
        "cell": JSON
        | st.fixed_dictionaries(
            {"id": IDS | FEW, "type": st.sampled_from(TYPES)},
            optional={"dependencies": st.lists(FEW), "operation": JSON},
        ),
        "outcome": JSON,
        "reason": JSON,
        "words": JSON,
        "running": JSON,
        "result_of": FEW,
    },
)
CALLS = st.sampled_from(["toolu_1", "toolu_2", "toolu_cell_aaaaaaaa"])


@given(st.lists(st.tuples(st.booleans(), JSON | MARKS, CALLS), max_size=8))
def test_hostile_marks(said: list[tuple[bool, Any, str]]) -> None:
    """Never a crash, never two cells with one id, never an id that is none; and reading a file's end agrees."""
    raw = [PROMPT]
    for number, (is_call, mark, name) in enumerate(said):
        own = {"type": "tool_use", "id": name, "name": "Bash", "input": {}}
        made = json.loads(call(mark, own) if is_call else result(mark, tool_use_id=name))
        raw.append(json.dumps({**made, "uuid": f"u{number}"}).encode())
    body = parsed(raw)
    told, pieces = content.parse_turn(body)
    assert told == cells.describe(body)
    assert len({cell.id for cell in told.cells}) == len(told.cells)
    assert all(CELL_ID.fullmatch(cell.id) for cell in told.cells)
    assert all(cell.type in TYPES for cell in told.cells)
    for piece in pieces:
        if isinstance(piece, Call):
            assert told.cells[piece.ordinal - 1] == piece.cell
    cell_records(agents.of_programs(), told.cells, {})


def test_the_end_of_a_file_and_its_cells_agree(tmp_path: Any) -> None:
    chain, path = Chain("s"), tmp_path / "s.jsonl"
    tasks = [Task("repl", f"t{n}", id=f"cell_0000000{n}") for n in range(4)]
    made = [chain.prompt("go", 1e9), *(chain.call(task, None) for task in tasks[:3])]
    made += [chain.outcome(tasks[1].id, Outcome(1), None), chain.call(tasks[3], None)]
    made += [chain.outcome(tasks[0].id, Outcome(error="x"), None)]
    path.write_bytes(b"".join(one + b"\n" for group in made for one in group) + b'{"torn":')
    end = End(path, Chain("s"))
    assert end.read()
    body = parsed([one for group in made for one in group])
    waiting = [cell.id for cell in cells.describe(body).cells if cell.ok is None]
    assert list(end.pending) == waiting == [tasks[2].id, tasks[3].id]
    assert end.begun == {task.id: task for task in tasks}
    assert (end.chain.leaf, end.chain.latest, end.chain.open) == (chain.leaf, chain.latest, chain.open) == (
        body[-1].uuid, chain.latest, {},
    )  # fmt: skip
    assert replace(end.chain, name=chain.name) == chain


def test_a_cell_of_the_agent_keeps_its_id() -> None:
    """A mark cannot take it: of two cells with one id the agent's own is that one."""
    plain = parsed([PROMPT, call(None), result(None)])
    agents = cells.describe(plain).cells
    own = {"type": "tool_use", "id": "toolu_2", "name": "x", "input": {}}
    stolen = json.loads(call({"cell": {**CELL, "id": agents[1].id}}, own))
    for place in (1, 3):
        raw = [PROMPT, call(None), result(None)]
        raw.insert(place, json.dumps({**stolen, "uuid": "b2"}).encode())
        found = cells.describe(parsed(raw)).cells
        assert [cell.id for cell in found] == [cell.id for cell in agents]
        assert [cell.operation for cell in found] == ["m", "Bash"]


def test_shown_reasons() -> None:
    reason = Reason("decision", "Take it.", ("cell_aaaaaaaa", "two runs"), ("a", "b"), "a", 0.75)
    assert program_lines.shown(reason).split("\n") == [
        "Decision: Take it.", "Options: a; b", "Chosen: a", "Evidence: cell_aaaaaaaa; two runs", "Confidence: 0.75",
    ]  # fmt: skip
    assert program_lines.shown(Reason("trace", "Since.")) == "Since."
