"""What the lines of one turn say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from strategies import Transcript, transcripts
from transcripts import MODEL, Talk

from sessgit import agents
from sessgit.agents.claude import cells
from sessgit.agents.claude.lines import make
from sessgit.agents.cutter import folder_files
from sessgit.agents.line import Line, no_redaction, split
from sessgit.model import stored_fields
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.turn import Cell, Tokens, Turn


def parsed(data: bytes) -> list[Line]:
    return [make(raw, extent, no_redaction) for raw, extent in split(data, 0)]


def told(talk: Talk) -> Turn:
    return cells.describe(parsed(talk.data))


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_cells_and_what_they_wait_for() -> None:
    """A message waits for the results that came since the last one, a call for its message."""
    talk = Talk(style="2.0")
    talk.user("go").answer("I look.").parallel(("Read", {}, "a"), ("Grep", {}, "b")).tool("Bash", {}, "c", error=True)
    found = told(talk.answer("Done.")).cells
    names = {cell.id: f"{number}{cell.operation[0]}" for number, cell in enumerate(found, start=1)}
    assert [(c.type, c.operation, c.lines, tuple(names[d] for d in c.depends), c.ok) for c in found] == [
        ("llm_call", MODEL, (2,), (), True),
        ("llm_call", MODEL, (3, 4), (), True),
        ("tool", "Read", (3, 5), ("2c",), True),
        ("tool", "Grep", (4, 6), ("2c",), True),
        ("llm_call", MODEL, (7,), ("3R", "4G"), True),
        ("tool", "Bash", (7, 8), ("5c",), False),
        ("llm_call", MODEL, (9,), ("6B",), True),
    ]
    assert [stored_fields.load(Cell, stored_fields.to_json(cell)) for cell in found] == list(found)


def test_usage_counts_once_a_message() -> None:
    turn = told(Talk(style="2.0").user("go").answer("a", "b", "c", tokens=(7, 3)).answer("d", tokens=(1, 1)))
    assert turn.tokens == {MODEL: Tokens(8, 4, 2000, 100)}
    assert (turn.calls, turn.total, turn.messages) == ({MODEL: 2}, Tokens(8, 4, 2000, 100), 3)


def test_the_answer_is_all_text_of_the_last_message_that_has_any() -> None:
    talk = Talk().user("go").answer("Early.").answer("One.", "Two.").call_only("Bash")
    assert told(talk).answer == "One.\nTwo."
    assert told(Talk().user("go")).answer == ""


def test_tools_and_files() -> None:
    talk = Talk().user("go").tool("Read", {"file_path": "/a"}).tool("Edit", {"file_path": "/b"})
    talk.tool("Write", {"file_path": "/a"}).tool("Read", {"file_path": "/a"}).tool("Grep", {"path": "/c"})
    turn = told(talk.tool("NotebookEdit", {"notebook_path": "/n"}))
    assert turn.tools == {"Read": 2, "Edit": 1, "Write": 1, "Grep": 1, "NotebookEdit": 1}
    assert (turn.files_read, turn.files_changed) == (("/a",), ("/b", "/a", "/n"))
    assert turn.files == ("/a", "/b", "/n")


def test_times_are_those_of_the_prompt_and_of_the_latest_line() -> None:
    turn = told(Talk().user("go").answer("a").answer("b"))
    assert (turn.time, turn.ended) == ("2026-03-01T10:00:01.000Z", "2026-03-01T10:00:03.000Z")
    body = [line(type="user", uuid="u", message={"content": "x"}, timestamp=t) for t in ("no time", 7)]
    assert [cells.describe([make(raw, Extent(0, 1), no_redaction)]).time for raw in body] == ["", ""]


@pytest.mark.parametrize(
    ("talk", "interrupted"),
    [
        (Talk().user("go").answer("Done."), False),
        (Talk().user("go").answer("Do").interrupt(), True),
        (Talk().user("go").answer("Do").interrupt().attachment(), True),
        (Talk().user("go").call_only("Bash"), True),
        (Talk().user("go").tool("Bash", {}, "x", error=True).answer("Failed."), False),
    ],
)
def test_interrupted(talk: Talk, interrupted: bool) -> None:
    assert told(talk).interrupted is interrupted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("<command-message>init is running</command-message>\n<command-name>/init</command-name>", "/init"),
        (
            "<command-message>fix</command-message><command-name>/fix</command-name><command-args>7 now</command-args>",
            "/fix 7 now",
        ),
        ("<command-message>only", "<command-message>only"),
        ("see <command-name>/x</command-name>", "see <command-name>/x</command-name>"),
    ],
)
def test_a_slash_command_is_shown_as_it_was_typed(text: str, shown: str) -> None:
    assert cells.display_prompt(text) == shown


def test_labels_name_the_tool_and_the_file() -> None:
    talk = Talk().user("go").tool("Read", {"file_path": "/a.py"}, "x").tool("Bash", {}, "y").result("toolu_9999")
    assert cells.label(parsed(talk.raw(b"torn").data)) == [
        ("user", ""),
        ("Read", "/a.py"),
        ("Read", "/a.py"),
        ("Bash", ""),
        ("Bash", ""),
        ("user", ""),
        ("line", ""),
    ]


def test_subagents_lines_count_for_nothing() -> None:
    talk = Talk().user("go").answer("a").chain("assistant", isSidechain=True, message={"id": "s", "content": []})
    assert len(told(talk).cells) == 1


def test_a_synthetic_answer_costs_nothing() -> None:
    message = {"id": "m", "model": "<synthetic>", "content": [], "usage": {"input_tokens": 5}}
    turn = told(Talk().user("go").chain("assistant", message=message))
    assert (turn.model, turn.tokens, turn.calls) == ("", {}, {})


def test_the_cells_of_a_turn_have_the_same_ids_wherever_it_stands() -> None:
    for talk in (Talk().prompt("go").tool("Bash").answer("x"), Talk().prompt_without_uuid("go").tool("Bash")):
        raw = talk.data
        here, there = parsed(raw), [make(x.raw, Extent(7, 1), no_redaction) for x in parsed(raw)]
        assert cells.describe(here).cells == cells.describe(there).cells


@given(transcripts(secrets=True))
def test_any_lines_have_a_description_and_files(transcript: Transcript) -> None:
    """Whatever the lines: cells refer to lines of the body and to cells before them, ids are unique."""
    body = parsed(transcript.data)
    if not body:
        return
    turn = cells.describe(body)
    seen: set[str] = set()
    for cell in turn.cells:
        assert set(cell.depends) <= seen
        assert cell.id not in seen
        assert all(1 <= number <= len(body) for number in cell.lines)
        seen.add(cell.id)
    files = folder_files(agents.of_programs(), body[:1], body[1:] or body, turn)
    assert "transcript.jsonl" in files
