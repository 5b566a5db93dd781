"""What was said and done in a turn, piece by piece: what clients write, and what else stands in files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Transcript, transcripts
from transcripts import MODEL, Talk

from sessgit.agents.claude import AGENT, content
from sessgit.agents.claude.cells import describe
from sessgit.agents.claude.lines import parsed
from sessgit.agents.line import Line
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.turn import Tokens


def body(talk: Talk) -> list[Line]:
    """All lines from the first prompt on."""
    lines = parsed(talk.lines)
    return lines[next(n for n, line in enumerate(lines) if line.type == "user") :]


def pieces(talk: Talk) -> list[Piece]:
    return content.parse_turn(body(talk))[1]


def only(talk: Talk) -> Call:
    (call,) = (piece for piece in pieces(talk) if isinstance(piece, Call))
    return call


def noted(tool: str, arguments: dict[str, Any], result: Any, output: Any = "done", **block: Any) -> Call:
    """A call as it is read where the client noted `result` beside the tool's output."""
    talk = Talk().prompt("go").call_only(tool, arguments)
    answer = {"tool_use_id": "toolu_1", "type": "tool_result", "content": output, **block}
    call_id = json.loads(talk.lines[-1])["message"]["content"][0]["id"]
    return only(talk.user([{**answer, "tool_use_id": call_id}], toolUseResult=result))


def about(tool: str, arguments: dict[str, Any]) -> str:
    """What a call with these arguments is about."""
    return noted(tool, arguments, None).about


def told(piece: Piece) -> tuple[object, ...]:
    if isinstance(piece, Call):
        return (piece.ordinal, piece.tool, piece.output, piece.cell.ok)
    return (piece.ordinal, piece.by, piece.text, piece.thinking)


def test_what_two_lines_say_that_were_glued_together() -> None:
    """A client that appends to a file whose last line has no newline writes so; 2.1.329 reads both objects."""
    talk = Talk().prompt("one").answer("It is done.").prompt("two").answer("It is done too.")
    first, note, answer, *rest = talk.lines
    glued = parsed([first, note, answer + rest[0], *rest[1:]])
    assert [told(piece) for piece in content.parse_turn(glued)[1]] == [
        (0, "person", "one", False),
        (0, "model", "It is done.", False),
        (0, "person", "two", False),
        (1, "model", "It is done too.", False),
    ]
    assert content.parse_turn(parsed([first, answer[:-9] + rest[0]]))[1][1:] == []


def test_what_a_turn_says_in_order() -> None:
    talk = Talk().prompt("write it").tool("Write", {"file_path": "/p/a.py", "content": "x\n"})
    talk._message([{"type": "thinking", "thinking": "Is it enough?"}, {"type": "text", "text": "Done."}])
    talk.interrupt()
    assert [told(piece) for piece in pieces(talk)] == [
        (0, "person", "write it", False),
        (2, "Write", "done", True),
        (3, "model", "Is it enough?", True),
        (3, "model", "Done.", False),
        (0, "client", "[Request interrupted by user]", False),
    ]
    prompt, call, *_ = pieces(talk)
    assert isinstance(prompt, Words)
    assert (prompt.time, prompt.line) == ("2026-03-01T10:00:01.000Z", 1)
    assert isinstance(call, Call)
    assert (call.time, call.ended, call.line, call.result_line) == (
        "2026-03-01T10:00:02.000Z",
        "2026-03-01T10:00:03.000Z",
        3,
        4,
    )


@pytest.mark.parametrize("style", ["2.0", "2.1"])
def test_parallel_tools_have_their_own_results(style: str) -> None:
    talk = Talk(style=style).prompt("look")
    talk.parallel(("Read", {"file_path": "/p/a"}, "aaa"), ("Bash", {"command": "ls"}, "bbb"), ("Grep", {}, "ccc"))
    calls = [piece for piece in pieces(talk) if isinstance(piece, Call)]
    assert [told(call) for call in calls] == [
        (2, "Read", "aaa", True),
        (3, "Bash", "bbb", True),
        (4, "Grep", "ccc", True),
    ]
    assert [call.file for call in calls] == ["/p/a", "", ""]


def test_several_results_in_one_line_share_no_note() -> None:
    talk = Talk().prompt("look").call_only("Read", {}).call_only("Grep", {})
    ids = [json.loads(line)["message"]["content"][0]["id"] for line in talk.lines[-2:]]
    blocks = [{"type": "tool_result", "tool_use_id": call_id, "content": call_id} for call_id in ids]
    talk.user(blocks, toolUseResult={"of": "one"})
    found = [(call.output, call.result) for call in pieces(talk) if isinstance(call, Call)]
    assert found == [(ids[0], None), (ids[1], None)]


def test_calls_without_results_and_results_without_calls() -> None:
    talk = Talk().prompt("wait").call_only("Bash", {"command": "sleep 9"}).result("toolu_from_elsewhere", "lost")
    call = only(talk)
    assert (call.cell.ok, call.result_line, call.exit_code, call.ended) == (None, 0, None, "")


def test_the_first_result_counts() -> None:
    talk = Talk().prompt("go").call_only("Bash", {"command": "x"})
    call_id = json.loads(talk.lines[-1])["message"]["content"][0]["id"]
    assert only(talk.result(call_id, "first").result(call_id, "second")).output == "first"


def test_images_are_counted() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    talk = Talk().prompt([{"type": "text", "text": "look at this"}, image])  # type: ignore[arg-type]
    talk.tool("Read", {"file_path": "/p/a.png"}, [image, image, {"type": "text", "text": "two of them"}])
    prompt, call = pieces(talk)
    assert isinstance(prompt, Words)
    assert (prompt.text, len(prompt.images)) == ("look at this", 1)
    assert (len(call.images), told(call)) == (2, (2, "Read", "two of them", True))
    alone = pieces(Talk().prompt([image]))  # type: ignore[arg-type]
    assert [(told(piece), len(piece.images)) for piece in alone] == [((0, "person", "", False), 1)]


def test_a_prompt_without_text_is_no_piece() -> None:
    assert pieces(Talk().prompt("").answer("Yes?"))[0] == Words(
        "model", "Yes?", "2026-03-01T10:00:02.000Z", ordinal=1, line=3
    )


def test_what_was_said_meanwhile() -> None:
    talk = Talk().prompt("go").steer("and be quick")
    talk.chain("attachment", attachment={"type": "queued_command", "prompt": "x", "commandMode": "task-notification"})
    talk.attachment().user("Caveat.", isMeta=True)
    assert [told(piece) for piece in pieces(talk)][1:] == [
        (0, "person", "and be quick", False),
        (0, "client", "x", False),
        (0, "client", "Caveat.", False),
    ]


def test_subagents_in_the_transcript_are_no_part_of_it() -> None:
    talk = (
        Talk()
        .prompt("go")
        .chain("assistant", isSidechain=True, message={"id": "m", "content": [{"type": "text", "text": "Psst."}]})
    )
    talk.chain("user", isSidechain=True, message={"content": "do this"}).answer("Well.")
    assert [piece.text for piece in pieces(talk) if isinstance(piece, Words)] == ["go", "Well."]


def test_a_message_can_be_a_string() -> None:
    talk = Talk().prompt("go").chain("assistant", message={"id": "m", "model": MODEL, "content": "Just so."})
    assert told(pieces(talk)[1]) == (1, "model", "Just so.", False)


def test_a_slash_command_is_shown_as_typed() -> None:
    typed = "<command-message>review</command-message> <command-name>/review</command-name>"
    typed += " <command-args>a b</command-args>"
    assert told(pieces(Talk().prompt(typed))[0]) == (0, "person", "/review a b", False)


# What calls changed


def changed(call: Call) -> list[tuple[str, list[str]]]:
    return [(change.path, list(change.diff)) for change in call.changes]


def test_the_diff_that_the_client_noted() -> None:
    patch = [
        {
            "oldStart": 3,
            "oldLines": 2,
            "newStart": 3,
            "newLines": 2,
            "lines": [" a", "-b", "+c", "\\ No newline at end of file"],
        }
    ]
    edit = {"file_path": "/p/a", "old_string": "b", "new_string": "c"}
    assert changed(noted("Edit", edit, {"structuredPatch": patch})) == [
        ("/p/a", ["@@ -3,2 +3,2 @@", " a", "-b", "+c", "\\ No newline at end of file"])
    ]
    over = {"file_path": "/p/a", "content": "c"}
    assert changed(noted("Write", over, {"type": "update", "structuredPatch": patch}))[0][1][2] == "-b"


def test_the_diff_that_the_arguments_say() -> None:
    assert changed(noted("Edit", {"file_path": "/p/a", "old_string": "a\nb\n", "new_string": "a\nc\n"}, None)) == [
        ("/p/a", ["@@ -1,2 +1,2 @@", " a", "-b", "+c"])
    ]
    assert changed(noted("Write", {"file_path": "/p/a", "content": "one\ntwo\n"}, {"structuredPatch": []})) == [
        ("/p/a", ["@@ -0,0 +1,2 @@", "+one", "+two"])
    ]
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]
    assert changed(noted("MultiEdit", {"file_path": "/p/a", "edits": edits}, None)) == [
        ("/p/a", ["@@ -1,1 +1,1 @@".replace(",1", ""), "-a", "+b", "@@ -1,1 +0,0 @@", "-c"])
    ]


def test_a_notebook() -> None:
    arguments = {"notebook_path": "/p/a.ipynb", "cell_id": "3", "new_source": "x = 1"}
    assert changed(noted("NotebookEdit", arguments, None)) == [("/p/a.ipynb", ["@@ -0,0 +1,1 @@", "+x = 1"])]
    assert changed(noted("NotebookEdit", {**arguments, "edit_mode": "delete"}, None)) == []


def test_what_failed_changed_nothing() -> None:
    call = noted("Edit", {"file_path": "/p/a", "old_string": "a", "new_string": "b"}, None, "not found", is_error=True)
    assert (changed(call), call.output, call.cell.ok) == ([], "not found", False)


@pytest.mark.parametrize("hunk", [None, 7, {}, {"lines": None}, {"lines": [1, "+a"], "oldStart": "x", "newStart": {}}])
def test_a_noted_diff_of_another_shape(hunk: object) -> None:
    call = noted("Edit", {"file_path": "/p/a", "old_string": "b", "new_string": "c"}, {"structuredPatch": [hunk]})
    assert all(isinstance(line, str) for change in call.changes for line in change.diff)


@pytest.mark.parametrize(
    ("tool", "output", "result", "error", "code"),
    [
        ("Bash", "fine", {"stdout": "fine"}, False, 0),
        ("Bash", "Exit code 2\nbad", "Error: Exit code 2\nbad", True, 2),
        ("Bash", "killed", None, True, None),
        ("Bash", "", {"stdout": "", "returnCodeInterpretation": "No matches found"}, False, None),
        ("Bash", "started", {"backgroundTaskId": "b1"}, False, None),
        ("BashOutput", "so far", {"exitCode": 3}, False, 3),
        ("BashOutput", "so far", {"exitCode": None}, False, None),
        ("Read", "Exit code 2", None, False, None),
    ],
)
def test_exit_codes(tool: str, output: str, result: object, error: bool, code: int | None) -> None:
    assert noted(tool, {"command": "x"}, result, output, is_error=error).exit_code == code


# What a file holds afterwards


def whole(text: str, **more: object) -> dict[str, Any]:
    return {"type": "text", "file": {"content": text, "startLine": 1, "numLines": 3, "totalLines": 3, **more}}


EDIT = {"old_string": "a", "new_string": "b"}
PATCH = [{"oldStart": 2, "oldLines": 1, "newStart": 2, "newLines": 2, "lines": ["-b", "+B", "+bb"]}]
BY_HAND = {"structuredPatch": PATCH, "userModified": True}
"""What the client notes where a person changed the edit before it was made."""


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "before", "after"),
    [
        ("Write", {"content": "new"}, None, "old", "new"),
        ("Write", {"content": "k=[redacted:password]"}, None, "old", None),
        ("Read", {}, whole("a\nb\n"), None, "a\nb\n"),
        ("Read", {}, whole("b", startLine=2), "a\nb", "a\nb"),
        ("Read", {}, whole("a", numLines=1), None, None),
        ("Edit", {"old_string": "a", "new_string": "b"}, None, "aa", None),
        ("Edit", {"old_string": "a", "new_string": "b", "replace_all": True}, None, "aa", "bb"),
        ("Edit", {"old_string": "a", "new_string": "b"}, {"originalFile": "xa"}, "stale", "xb"),
        ("Edit", {"old_string": "z", "new_string": "b"}, None, "aa", None),
        ("Edit", {"old_string": "a", "new_string": "b"}, None, None, None),
        ("Edit", {"old_string": "", "new_string": "b"}, {"originalFile": ""}, None, "b"),
        ("Edit", {"old_string": "b", "new_string": "?"}, {"originalFile": "a\nb\nc", **BY_HAND}, None, "a\nB\nbb\nc"),
        ("Edit", {"old_string": "b", "new_string": "?"}, {"originalFile": "a\nx\nc", **BY_HAND}, None, None),
        ("MultiEdit", {"edits": [EDIT, {"old_string": "b", "new_string": "c"}]}, None, "a", "c"),
        ("NotebookEdit", {"new_source": "x"}, None, "{}", None),
        ("Grep", {}, None, "as it was", "as it was"),
    ],
)  # fmt: skip
def test_the_content_of_a_file(
    tool: str, arguments: dict[str, Any], result: object, before: str | None, after: str | None
) -> None:
    call = noted(tool, {"file_path": "/p/a", **arguments}, result)
    assert content.content_after(call, call.file, before) == after


def test_a_failed_call_leaves_the_file() -> None:
    call = noted("Write", {"file_path": "/p/a", "content": "new"}, None, "no", is_error=True)
    assert content.content_after(call, call.file, "old") == "old"


def test_tokens_are_those_of_a_message() -> None:
    talk = Talk().prompt("go").answer("One.", "Two.", tokens=(70, 7)).tool("Bash", {"command": "x"})
    lines = body(talk)
    first, second, call = describe(lines).cells
    assert AGENT.tokens(lines, first) == Tokens(70, 7, 1000, 50)
    assert AGENT.tokens(lines, second) == Tokens(100, 20, 1000, 50)
    assert AGENT.tokens(lines, call) is None


def test_the_telling_argument() -> None:
    assert about("Bash", {"command": "ls  -l\n| wc", "description": "Count"}) == "ls -l | wc"
    assert about("Task", {"description": "Look", "prompt": "Look at it"}) == "Look"
    assert about("Odd", {"n": 1}) == '{"n": 1}'
    assert about("Odd", {}) == ""


# Laws


def ordinals_are_those_of_the_cells(lines: list[Line]) -> None:
    turn, found = content.parse_turn(lines)
    assert turn == describe(lines)
    calls = [piece for piece in found if isinstance(piece, Call)]
    assert [call.cell for call in calls] == [cell for cell in turn.cells if cell.type == "tool"]
    for piece in found:
        if isinstance(piece, Call):
            assert turn.cells[piece.ordinal - 1] == piece.cell
        elif piece.ordinal:
            assert turn.cells[piece.ordinal - 1].type == "llm_call"
            assert piece.line in turn.cells[piece.ordinal - 1].lines


@given(transcripts())
def test_ordinals_in_whatever_file(made: Transcript) -> None:
    lines = parsed(made.data.split(b"\n")[:-1])
    if lines:
        ordinals_are_those_of_the_cells(lines)


_KEYS = ["type", "text", "content", "id", "input", "name", "lines", "thinking", "file", "edits"]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=True) | st.sampled_from(["", "a", "toolu_1"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
_BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "image"])},
    optional={
        "text": _JSON, "thinking": _JSON, "id": st.just("toolu_1") | _JSON, "tool_use_id": st.just("toolu_1") | _JSON,
        "name": st.sampled_from(["Edit", "Write", "Bash", "MultiEdit", "Read"]) | _JSON, "content": _JSON,
        "input": st.fixed_dictionaries({"file_path": st.just("/p/a") | _JSON}, optional={
            "old_string": st.just("a") | _JSON, "new_string": st.just("b") | _JSON, "content": st.just("c") | _JSON,
            "edits": _JSON, "command": _JSON}) | _JSON,
        "is_error": _JSON,
    },
)  # fmt: skip
_RESULT = _JSON | st.fixed_dictionaries(
    {},
    optional={
        "structuredPatch": _JSON | st.lists(st.dictionaries(st.sampled_from(["lines", "oldStart"]), _JSON), max_size=2),
        "originalFile": st.just("a\nb") | _JSON, "userModified": st.booleans(), "file": _JSON, "exitCode": _JSON,
    },
)  # fmt: skip
_LINE = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant", "attachment"])},
    optional={
        "message": _JSON
        | st.fixed_dictionaries(
            {"content": st.lists(_BLOCK, max_size=3) | _JSON}, optional={"id": _JSON, "usage": _JSON, "model": _JSON}
        ),
        "attachment": st.fixed_dictionaries({"type": st.just("queued_command"), "prompt": _JSON}) | _JSON,
        "toolUseResult": _RESULT, "uuid": _JSON, "timestamp": _JSON, "isSidechain": _JSON,
    },
)  # fmt: skip


def test_two_calls_with_one_id_on_a_line_are_one_cell() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    talk = Talk().prompt("one")
    talk.chain("assistant", message={"id": "msg_1", "content": [call, {**call, "input": {"command": "ls -l"}}]})
    ordinals_are_those_of_the_cells(parsed(talk.lines))


@given(st.lists(_LINE, min_size=1, max_size=6))
def test_hostile_lines_are_read(made: list[dict[str, Any]]) -> None:
    lines = parsed(json.dumps(line).encode() for line in made)
    ordinals_are_those_of_the_cells(lines)
    text: str | None = "a\nb"
    for piece in content.parse_turn(lines)[1]:
        if isinstance(piece, Call):
            assert isinstance(piece.about, str)
            text = content.content_after(piece, piece.file, text)
            assert text is None or text.encode().decode() == text
        else:
            assert isinstance(piece.text, str)


def test_the_clients_own_commands_read_as_they_were_typed() -> None:
    talk = Talk().prompt("one").answer("a")
    caveat = "Caveat: The messages below were generated by the user while running local commands. DO NOT respond."
    talk.user(caveat, isMeta=True)
    talk.user(
        "<command-name>/exit</command-name>\n<command-message>exit</command-message>\n<command-args></command-args>"
    )
    talk.user("<local-command-stdout>Bye!\nSee you.</local-command-stdout>")
    said = [piece.text for piece in pieces(talk) if isinstance(piece, Words)]
    assert said == ["one", "a", "/exit", "Bye!\nSee you."]
