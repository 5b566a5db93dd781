"""Turns as lines: a function of what is given, in the form that every version of the client resumes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import transcript

from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import parsed
from sessgit.agents.claude.programs import Chain
from sessgit.model import canonical, stored_fields
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Saying, Step, Task, ToolCall

COMMON = {"cwd": "/home/ada/calc"}


def names() -> Callable[[str], str]:
    return lambda word: str(uuid.uuid5(uuid.NAMESPACE_URL, word))


def lines(data: bytes) -> list[dict[str, Any]]:
    assert data.endswith(b"\n") or not data
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


PARTS = st.one_of(
    st.builds(
        Step,
        st.builds(Task, st.just("repl"), st.sampled_from(["a", "b c", "ü"]), st.just({"x": 1})),
        st.none() | st.builds(Outcome, st.just({"n": 1}), st.none() | st.just("no")),
    ),
    st.builds(ToolCall, st.just("Bash"), st.just({"command": "ls"}), st.text(max_size=5), st.booleans()),
    st.builds(Reason, st.sampled_from(["trace", "decision"]), st.text(min_size=1, max_size=5)),
    st.builds(Saying, st.text(min_size=1, max_size=5), st.sampled_from(["", "m"])),
)
TURNS = st.lists(
    st.builds(
        GivenTurn, st.text("abc", min_size=1), st.lists(PARTS, max_size=5).map(tuple), st.text("xyz", max_size=3),
        st.sampled_from(["", "m"]), st.none() | st.floats(0, 2e9), st.none() | st.floats(0, 2e9),
    ),
    max_size=4,
)  # fmt: skip


@given(TURNS)
def test_what_every_client_resumes(given_: list[GivenTurn]) -> None:
    data = transcript("s", given_, names(), COMMON)
    assert data == transcript("s", given_, names(), COMMON)
    assert data.startswith(transcript("s", given_[:-1], names(), COMMON))
    found = lines(data)
    uuids = [line["uuid"] for line in found]
    times = [line["timestamp"] for line in found]
    assert [line["parentUuid"] for line in found] == [None, *uuids][: len(found)]
    assert len(set(uuids)) == len(uuids)
    assert times == sorted(set(times))
    body = parsed(data.split(b"\n")[:-1])
    assert [line.data["message"]["content"] for line in body if line.is_prompt] == [one.prompt for one in given_]  # type: ignore[index]
    # The model's service takes no call without a result in the next message of the user.
    waiting, message = list[str](), ""
    for line in found:
        content = line["message"]["content"]
        for block in content if isinstance(content, list) else [{"type": "text"}]:
            if block["type"] == "tool_use":
                assert not waiting or line["message"]["id"] == message
                waiting, message = [*waiting, block["id"]], line["message"]["id"]
            elif block["type"] == "tool_result":
                waiting.remove(block["tool_use_id"])
            else:
                assert not waiting
    assert not waiting


@given(TURNS)
def test_the_cells_are_those_that_were_given(given_: list[GivenTurn]) -> None:
    data = transcript("s", given_, names(), COMMON)
    body = parsed(data.split(b"\n")[:-1])
    starts = [n for n, line in enumerate(body) if line.is_prompt]
    ends = [*starts[1:], len(body)][: len(starts)]
    for turn, start, end in zip(given_, starts, ends, strict=True):
        told = cells.describe(body[start:end])
        steps = [part for part in turn.parts if isinstance(part, Step)]
        found = [cell for cell in told.cells if cell.type == "repl"]
        assert [cell.operation for cell in found] == [step.task.operation for step in steps]
        assert [cell.ok for cell in found] == [step.outcome.ok if step.outcome else None for step in steps]


def test_a_pending_cell_between_others() -> None:
    """Each line whole, but for what all have in common."""
    parts: list[Part] = [
        Step(Task("repl", "slow", {"n": 1}, id="cell_aaaaaaaa")), Saying("Meanwhile."),
    ]  # fmt: skip
    data = transcript("s", [GivenTurn("go", tuple(parts), time=0.5, key="p1")], lambda word: f"u.{word}", COMMON)
    usage = {"input_tokens": 0, "output_tokens": 0}
    said = {"type": "message", "role": "assistant", "model": "<synthetic>", "stop_sequence": None, "usage": usage}
    common = {"isSidechain": False, "userType": "external", "entrypoint": "sessgit", **COMMON, "sessionId": "s"}
    call = {"type": "tool_use", "id": "toolu_cell_aaaaaaaa", "name": "slow", "input": {"n": 1}}
    wait = {"tool_use_id": "toolu_cell_aaaaaaaa", "type": "tool_result", "content": "No result yet: it comes below."}
    assert lines(data) == [
        {
            **common, "parentUuid": None, "uuid": "p1", "timestamp": "1970-01-01T00:00:00.500Z", "type": "user",
            "message": {"role": "user", "content": "go"},
        },
        {
            **common, "parentUuid": "p1", "uuid": "u.call.p1", "timestamp": "1970-01-01T00:00:00.501Z",
            "type": "assistant",
            "message": {**said, "id": "msg_u.call.p1", "content": [call], "stop_reason": "tool_use"},
            "sessgit": {"cell": {"id": "cell_aaaaaaaa", "type": "repl"}},
        },
        {
            **common, "parentUuid": "u.call.p1", "uuid": "u.result.u.call.p1", "timestamp": "1970-01-01T00:00:00.502Z",
            "type": "user", "message": {"role": "user", "content": [wait]}, "sessgit": {"running": True},
        },
        {
            **common, "parentUuid": "u.result.u.call.p1", "uuid": "u.words.u.result.u.call.p1",
            "timestamp": "1970-01-01T00:00:00.503Z", "type": "assistant",
            "message": {
                **said, "id": "msg_u.words.u.result.u.call.p1", "content": [{"type": "text", "text": "Meanwhile."}],
                "stop_reason": "end_turn",
            },
            "sessgit": {"words": True},
        },
    ]  # fmt: skip


def test_half_a_character_is_written_as_it_came() -> None:
    chain = Chain("s")
    (prompt,) = chain.prompt("\ud800 ü", None)
    assert b'"content":"\\ud800 \\u00fc"' in prompt
    assert json.loads(prompt)["message"]["content"] == "\ud800 ü"


def test_what_the_format_page_shows() -> None:
    """Its example is what is written, byte for byte, and its cells are those of these lines."""
    page = (Path(__file__).parent.parent / "docs" / "format.md").read_text("utf-8")
    shown, told = (
        page.partition(f"```json {name}\n")[2].partition("```\n")[0].encode()
        for name in ("program-example", "program-cells-example")
    )
    count = iter("b123456789")
    chain = Chain("0d7c3a1e-5b42-4f8e-9a61-c2f4e8b7d905", name=lambda word: f"{word.partition('.')[0]}-{next(count)}")
    outer = Task("map_reduce", "measure all", {"runs": 1}, "lexers", (), "cell_k3v9x0qa")
    inner = Task("repl", "measure", {"file": "lex.py"}, "", (outer.id,), "cell_7hq2m1zd")
    reason = Reason("decision", "Take the table.", (inner.id,), ("table", "regex"), "table", 0.8)
    made = [
        *chain.prompt("Which lexer is faster?", 1772359200.0, "a1"), *chain.call(outer, None), *chain.call(inner, None),
        *chain.outcome(inner.id, Outcome({"ms": 12}, None, 12.5), None), *chain.reason(reason, None),
        *chain.outcome(outer.id, Outcome(error="ValueError: one run is too few"), None, outer.operation),
        *chain.words("The table.", None),
    ]  # fmt: skip
    assert b"".join(line + b"\n" for line in made) == shown
    found = cells.describe(parsed(made)).cells
    assert b"".join(canonical.compact(stored_fields.to_json(cell)) + b"\n" for cell in found) == told


@pytest.mark.parametrize("tokens", [{}, {"input": 3, "cache_write": 2}])
def test_tokens_of_an_answer(tokens: dict[str, int]) -> None:
    (line,) = map(json.loads, Chain("s").words("hello", None, "m", tokens))
    kinds = {"input_tokens": 0, "output_tokens": 0}
    wanted = {**kinds, "input_tokens": 3, "cache_creation_input_tokens": 2} if tokens else kinds
    assert line["message"]["usage"] == wanted
