"""`sessgit bridge`: a program's questions about a session, and what they cost."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from lexing import lexer_talk
from plain import Keep
from programs import transcript
from shell import Done, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home
from sessgit.api import documents
from sessgit.api.bridge import LONGEST_REQUEST, Bridge
from sessgit.history import cell_graph as graph
from sessgit.history import show
from sessgit.model.program_input import GivenTurn, Metadata, Outcome, Step, Task
from sessgit.store.context import Context
from sessgit.store.index import Branch, Index
from sessgit.store.store import Store

Ask = Callable[..., Any]


@begins
def lexer(shell: Shell) -> None:
    shell.recorded(lexer_talk(shell))


def piped(shell: Shell, monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: str) -> Done:
    """The command with this on its standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    return shell("bridge", *arguments)


def answers(shell: Shell, monkeypatch: pytest.MonkeyPatch, *questions: object, session: str = SESSION) -> list[Any]:
    """What it says to questions; those that are bytes are sent as they are."""
    lines = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in questions)
    done = piped(shell, monkeypatch, b"".join(line + b"\n" for line in lines), session)
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


def question(op: str, **args: object) -> dict[str, object]:
    return {"op": op, "args": args}


# What it says


def test_the_session(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = lexer.json("ls")["sessions"][0]["tokens"]
    assert answers(lexer, monkeypatch, question("session"), {"op": "session", "id": 7}) == [
        (said := {"session_id": SESSION, "rlm_active": False, "current_depth": 0, "tokens_used": sum(tokens.values())}),
        {**said, "id": 7},
    ]


def test_peek_and_search(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = answers(lexer, monkeypatch, question("peek", end=10**6))
    assert whole["content"].startswith("user: ") and whole["length"] == len(whole["content"]) == whole["end"]
    part, files, matches, none = answers(
        lexer, monkeypatch, question("peek", start=6, end=20), question("peek", of="files"),
        question("search", query="DEF LEX", of="tool_outputs"), question("search", query="nowhere"),
    )  # fmt: skip
    assert part["content"] == whole["content"][6:20]
    assert "lexer.py" in files["content"]
    assert matches["count"] == len(matches["matches"]) > 0
    assert all("def lex" in one["text"] and one["of"] == "tool_outputs" for one in matches["matches"])
    assert none == {"matches": [], "count": 0}
    wrong = question("peek", of="x"), question("peek", start=-1), question("search"), question("search", query=3)
    assert [list(answer) for answer in answers(lexer, monkeypatch, *wrong)] == [["error"]] * 4


def test_without_a_store_answers_are_json_too(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(sessgit, monkeypatch, question("session"), b"{") == [
        {"error": "No active session"}, {"error": answers(sessgit, monkeypatch, b"{")[0]["error"]},
    ]  # fmt: skip
    assert not sessgit.store.exists()


def test_the_cells(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    index = json.loads(lexer.out("cells", SESSION, "--index"))
    every, tools, none, whole = answers(
        lexer, monkeypatch, question("cells"), question("cells", type="tool"), question("cells", type="repl"),
        question("cells", type=""),
    )  # fmt: skip
    assert every == {
        "cells": [{"cell_id": own, **said} for own, said in index["cells"].items()],
        "count": 21,
        "execution_order": index["execution_order"],
    }
    assert tools["cells"] == [cell for cell in every["cells"] if cell["type"] == "tool"]
    assert (tools["count"], tools["execution_order"]) == (10, every["execution_order"])
    assert (none["cells"], none["count"]) == ([], 0)
    assert whole == every


def test_a_cell(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call for a file that another one had written: its edges are those of the whole session."""
    path = str(lexer.project / "lexer.py")
    index = json.loads(lexer.out("cells", SESSION, "--index"))["cells"]
    (said,) = answers(lexer, monkeypatch, question("cell", cell_id="cell_25ckcl9z"))
    assert said == {
        "cell_id": "cell_25ckcl9z",
        "created_at": said["created_at"],
        "type": "tool",
        "input": {"source": "tool", "operation": "Read", "args": {"file_path": path}},
        "output": {"result": "def lex(text):\n    yield text\n", "error": None, "execution_time_ms": 1000.0},
        "dependencies": ["cell_5jekqtd1", "cell_qre71we2"],
        "dependents": index["cell_25ckcl9z"]["dependents"],
        "metadata": {"depth": 0, "model": None, "tokens_used": 0},
    }
    failed, message = answers(
        lexer, monkeypatch, question("cell", cell_id="cell_24y1b8no"), question("cell", cell_id="cell_odi1v6tf")
    )
    assert failed["output"] == {"result": None, "error": "No such file", "execution_time_ms": 1000.0}
    assert message["output"] == {"result": "Both work.", "error": None}
    assert message["metadata"] == {"depth": 0, "model": "claude-test-1", "tokens_used": 1160}


def test_every_cell_agrees_with_what_show_and_cells_say(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (cells,) = answers(lexer, monkeypatch, question("cells"))
    asked = [question("cell", cell_id=cell["cell_id"]) for cell in cells["cells"]]
    for listed, said in zip(cells["cells"], answers(lexer, monkeypatch, *asked), strict=True):
        shown = lexer.json("show", f"{SESSION}@.{listed['cell_id']}")["cell"]
        assert {key: said[key] for key in listed} == listed
        assert (said["cell_id"], said["type"], said["input"]["args"]) == (shown["id"], shown["type"], shown["input"])
        assert (said["output"]["result"], said["output"]["error"]) == (shown["output"], shown["error"])
        assert said["metadata"]["model"] == shown["model"]


def test_all_documents_at_once_are_those_of_single_cells(
    store: Store, index: Index, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(
        Talk().turns("one").prompt("two").parallel(("Read", {"file_path": "/a"}, "x"), ("Bash", {}, "y")).turns("three")
    )
    index.sync()
    branch = index.branch(SESSION)
    assert branch is not None
    found, read = graph.read_graph(Context(index), branch), list[int]()
    nodes = list(found.nodes.values())
    single = [one for node in nodes for one in documents.cell_documents(Context(index), branch, found, [node])]
    show_turn = show.show_turn
    monkeypatch.setattr(show, "show_turn", lambda *of: read.append(of[-1]) or show_turn(*of))
    every = list(documents.cell_documents(Context(index), branch, found, nodes))
    assert every == single
    assert [document["cell_id"] for document in every] == [node.cell.id for node in nodes]
    assert all(tuple(document) == documents.CELL_KEYS for document in every)
    assert read == [1, 2, 3]


def test_the_chain_has_the_nearest_first(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (cells, chain, none) = answers(
        lexer, monkeypatch, question("cells"), question("dependency_chain", cell_id="cell_25ckcl9z"),
        question("dependency_chain", cell_id="cell_3x4g5j8u"),
    )  # fmt: skip
    assert chain["chain"][:2] == ["cell_5jekqtd1", "cell_qre71we2"]
    assert set(chain["chain"]) == set(cells["execution_order"][: cells["execution_order"].index("cell_25ckcl9z")])
    assert chain["depth"] == len(chain["chain"]) == 6
    assert none == {"chain": [], "depth": 0}


def test_the_cells_of_a_program(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Task("repl", "peek", {"name": "big", "start": 0}, "repl", (), "cell_aaaaaaaa", 1_770_000_000.5)
    second = Task("llm_call", "ask", {"q": "?"}, "rlm", (first.id,), "cell_bbbbbbbb", metadata=Metadata(2, "small", 90))
    failing = Task("verification", "check", {}, "rlm", (second.id,), "cell_cccccccc")
    pending = Task("map_reduce", "map", {}, "rlm", (first.id,), "cell_dddddddd")
    turns = [
        GivenTurn("look", (Step(first, Outcome({"text": "…", "n": [1, None]}, None, 12.5)),), "Seen.", time=1.77e9),
        GivenTurn("ask", (Step(second, Outcome("42")), Step(failing, Outcome(None, "no"))), time=1.77e9 + 100),
        GivenTurn("go on", (Step(pending),), time=1.77e9 + 200),
    ]
    number = count(1)
    data = transcript(
        OTHER, turns, lambda word: f"a{next(number):07d}-0000-4000-8000-000000000000", {"cwd": str(sessgit.project)}
    )
    path = home.project_folder(sessgit.config, str(sessgit.project)) / f"{OTHER}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert sessgit("import").code == 0
    tasks = (first, second, failing, pending)
    said = answers(sessgit, monkeypatch, *(question("cell", cell_id=task.id) for task in tasks), session=OTHER)
    assert [(one["type"], one["input"]) for one in said] == [
        (task.type, {"source": task.source, "operation": task.operation, "args": task.args}) for task in tasks
    ]
    assert said[0]["created_at"] == 1_770_000_000.5
    assert said[0]["output"] == {"result": {"text": "…", "n": [1, None]}, "error": None, "execution_time_ms": 12.5}
    assert said[1]["metadata"] == {"depth": 2, "model": "small", "tokens_used": 90}
    assert (said[2]["output"]["result"], said[2]["output"]["error"]) == (None, "no")
    assert (said[3]["output"]["result"], said[3]["output"]["error"]) == (None, None)
    assert said[1]["dependencies"] == [first.id]
    assert {first.id, second.id} <= set(said[2]["dependencies"] + said[1]["dependencies"])


# What is wrong


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (question("cell"), "cell_id required"),
        (question("cell", cell_id=""), "cell_id required"),
        (question("dependency_chain", cell_id=None), "cell_id required"),
        ({"op": "dependency_chain"}, "cell_id required"),
        (question("cell", cell_id="cell_00000000"), "Cell not found: cell_00000000"),
        (question("dependency_chain", cell_id="cell_00000000"), "Cell not found: cell_00000000"),
        (question("cell", cell_id=["x"]), 'Cell not found: ["x"]'),
        (question("summarize"), "unknown operation: summarize"),
        ({"args": {}}, "unknown operation: null"),
        ({"op": ["cells"]}, 'unknown operation: ["cells"]'),
        ({"op": "cells", "args": ["type"]}, "args must be an object"),
        ([], "a question is a JSON object with op and args"),
        (b"7", "a question is a JSON object with op and args"),
        (b"[" * 200_000, "a question is one line of JSON: it is nested too deeply"),
        (b"x" * (3 * LONGEST_REQUEST), f"a question can have at most {LONGEST_REQUEST} bytes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_it_goes_on(
    lexer: Shell, monkeypatch: pytest.MonkeyPatch, sent: object, error: str
) -> None:
    told, after = answers(lexer, monkeypatch, sent, {"op": "session", "id": "next"})
    assert told == {"error": error}
    assert (after["session_id"], after["id"]) == (SESSION, "next")


@pytest.mark.parametrize("sent", [b"{" * 10, b"\xff", b"1" * 10_000, b'{"op": "cells"', b"op=cells", b"{'op': 1}"])
def test_what_is_no_json_is_told(lexer: Shell, monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    told, after = answers(lexer, monkeypatch, sent, question("cells"))
    assert list(told) == ["error"]
    assert told["error"].startswith("a question is one line of JSON: ")
    assert after["count"] == 21


def test_an_id_comes_back_with_an_error_too(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [{"op": "x", "id": {"a": [1]}}, b'{"op": "x", "id": NaN}', b'{"op": "x", "id": null}', {"op": "x"}]
    said = answers(lexer, monkeypatch, *sent)
    unknown = {"error": "unknown operation: x"}
    assert said == [{**unknown, "id": {"a": [1]}}, {**unknown, "id": None}, {**unknown, "id": None}, unknown]


def test_empty_lines_and_a_last_one_without_a_newline(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    done = piped(lexer, monkeypatch, b'\n  \n{"op": "x"}', SESSION)
    assert (done.code, done.out) == (0, '{"error": "unknown operation: x"}\n')
    assert piped(lexer, monkeypatch, b"", SESSION) == Done(0, "", "")


@given(st.binary(max_size=60) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "args", "id"]), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_line_gets_a_line(sent: bytes) -> None:
    bridge = Bridge(None, lambda: None)  # type: ignore[arg-type]
    answer = bridge.answer(sent)
    assert answer["error"]
    assert "\n" not in json.dumps(answer, allow_nan=False)


# One question


def test_one_question_without_a_pipe(lexer: Shell) -> None:
    said = json.loads(lexer.out("bridge", "--op", "cells", "--args", '{"type": "tool"}', SESSION))
    assert said["count"] == 10
    done = lexer("bridge", SESSION, "--op", "cell")
    assert (done.code, done.out, done.err) == (1, '{"error": "cell_id required"}\n', "")
    assert lexer("bridge", SESSION, "--op", "cells", "--args", "[]").out == '{"error": "args must be an object"}\n'
    done = lexer("bridge", "--op", "cells", "--args", "{")
    assert (done.code, done.out) == (2, "")
    assert lexer("bridge", "--args", "{}").code == 2


# Which session, and as of when


def test_a_session_that_is_not_there(lexer: Shell) -> None:
    done = lexer("bridge", "nosuch", "--op", "session")
    assert (done.code, done.out) == (4, "")


def test_no_session_of_this_project(lexer: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = piped(lexer, monkeypatch, b'{"op": "session"}\n{"op": "cells"}\n')
    assert done.out.splitlines() == ['{"error": "No active session"}'] * 2


@pytest.fixture
def ask(sessgit: Shell) -> Iterator[Ask]:
    """A bridge that runs in a process of its own, in the project, for the current session."""
    sessgit.recorded(sessgit.talk().turns("one"))
    process = subprocess.Popen(
        [sys.executable, "-m", "sessgit", "bridge"], cwd=sessgit.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None

    def asked(op: str, **args: object) -> Any:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(question(op, **args)).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield asked
    process.stdin.close()
    assert process.stdout.read() == b""
    process.stdout.close()
    assert process.wait() == 0


def test_what_grows_is_seen_by_the_next_question(sessgit: Shell, ask: Ask) -> None:
    talk = sessgit.talk().turns("one")
    before = ask("cells")
    sessgit.keep(talk.prompt("two").tool("Bash", {"command": "make"}).answer("Made.").stop_lines())
    after = ask("cells")
    assert (before["count"], after["count"]) == (1, 4)
    assert after["execution_order"][:1] == before["execution_order"]
    assert ask("cell", cell_id=after["execution_order"][-1])["output"]["result"] == "Made."


def test_another_current_session_is_taken_up(sessgit: Shell, ask: Ask) -> None:
    assert ask("session")["session_id"] == SESSION
    later = Talk(OTHER, cwd=str(sessgit.project))
    later.file.seconds = 5000
    sessgit.recorded(later.turns("newer"))
    assert ask("session")["session_id"] == OTHER
    assert sessgit("delete", "--yes", OTHER).code == 0
    assert sessgit("delete", "--yes", SESSION).code == 0
    assert ask("session") == {"error": "No active session"}


def test_a_session_that_nobody_recorded_is_recorded(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("install")
    sessgit.keep(sessgit.talk().turns("one"))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    assert json.loads(sessgit.out("bridge", "--op", "cells"))["count"] == 1


def test_what_has_not_changed_is_read_once(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[Branch]()
    read = graph.read_graph
    monkeypatch.setattr(graph, "read_graph", lambda context, branch: reads.append(branch) or read(context, branch))
    ids = [question("cell", cell_id=own) for own in ("cell_25ckcl9z", "cell_24y1b8no")]
    answers(lexer, monkeypatch, question("session"))
    assert reads == []
    answers(lexer, monkeypatch, *[question("cells"), *ids, question("dependency_chain", cell_id="cell_25ckcl9z")] * 5)
    assert len(reads) == 1


def test_a_remark_is_made_once(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    lexer.out("off")
    lexer.keep(lexer_talk(lexer).answer("More.").stop_lines())
    done = piped(lexer, monkeypatch, b'{"op": "session"}\n' * 5, SESSION)
    assert len(done.out.splitlines()) == 5
    assert done.err.count("has turns that are not recorded") == 1


def test_nobody_who_reads_ends_it(lexer: Shell) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sessgit", "bridge", SESSION], cwd=lexer.project, env={**os.environ},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(b'{"op": "cells"}\n' * 3)
    assert (process.returncode, said) == (141, b"")
