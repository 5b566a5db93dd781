"""The library: what a program writes is a conversation like any other, and comes back as it was written."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from programs import Place, raises

import sessgit
from sessgit import Cell, Merge, Outcome, Reason, Saying, SessgitError, Step, Store, Task, ToolCall
from sessgit.agents.claude.programs import Chain
from sessgit.api import writer
from sessgit.errors import ConflictError, NotFoundError, StoreError, UsageError
from sessgit.store.private_files import path_exists


@pytest.fixture
def place(seal: Path) -> Place:
    (seal / "calc").mkdir()
    made = Place(Store.open(), seal / "calc")
    yield made
    made.check()


def test_the_names_that_a_program_imports_are_there() -> None:
    assert {name: type(getattr(sessgit, name)).__name__ for name in sessgit.__all__ if name != "__version__"} == {
        **dict.fromkeys(
            ("Cell", "ForeignSession", "GivenTurn", "ImportedSession", "Merge", "Metadata", "Outcome", "Reason",
             "Replayed", "Saying", "Session", "SessionImport", "SessgitError", "Step", "Store", "Summary", "Task",
             "ToolCall", "Turn"), "type"),
    }  # fmt: skip
    assert dir(sessgit) == sorted(sessgit.__all__)
    with pytest.raises(AttributeError, match="module 'sessgit' has no attribute 'Nothing'"):
        sessgit.Nothing  # noqa: B018


def test_a_store_lies_where_the_command_line_has_it(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Store.open().path == seal / ".claude" / "session-store"
    assert Store.open(config=seal / "other").path == seal / "other" / "session-store"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(seal / "client"))
    assert Store.open().path == seal / "client" / "session-store"
    monkeypatch.setenv("SESSGIT_STORE", str(seal / "mine"))
    assert (Store.open().path, Store.open().homes.folders["claude"]) == (seal / "mine", seal / "client")
    assert Store.open("").path == seal / "mine"
    assert Store.open(seal / "given").path == seal / "given"
    assert (seal / "given" / "HEAD").exists()
    with pytest.raises(StoreError, match=r"cannot read the store at .*: File name too long"):
        Store.open(seal / ("x" * 300))


def test_a_turn_of_cells(place: Place) -> None:
    session = place.begin("lexers", description="Which one is faster?", labels=["draft"])
    with session.turn("compare the lexers") as turn:
        first = session.begin_cell(type="repl", source="notebook", operation="peek", args={"file": "lex.py"})
        assert session.pending() == [replace(first, state="running")]
        session.complete_cell(first, {"lines": [1, 2]}, execution_time_ms=3.5)
        with session.cell("sum up", type="llm_call", dependencies=[first]) as opened:
            opened.result, opened.model, opened.tokens = "short", "small-1", {"input": 7, "output": 2}
        with pytest.raises(ZeroDivisionError), session.cell("divide", dependencies=[first, opened.id]):
            1 / 0  # noqa: B018
        turn.answer("The second one.")
    assert turn.number == 1
    second, third = session.cells()[1:]
    assert session.cells() == [
        Cell(first.id, "repl", "peek", (), "done", 1, 1),
        Cell(second.id, "llm_call", "sum up", (first.id,), "done", 1, 2),
        Cell(third.id, "repl", "divide", (first.id, second.id), "failed", 1, 3),
    ]
    (told,) = session.turns()
    assert (told.number, told.prompt, told.answer, told.model, told.key) == (
        1, "compare the lexers", "The second one.", "", turn.key,
    )  # fmt: skip
    assert told.cells == tuple(session.cells())
    assert told.tokens == {"input": 7, "output": 2, "cache_read": 0, "cache_write": 0}
    assert session.state.tokens["small-1"].as_json() == {"input": 7, "output": 2, "cache_read": 0, "cache_write": 0}
    assert session.dependency_chain(third) == [first.id, second.id]
    assert session.execution_order() == [first.id, second.id, third.id]
    document = session.cell_document(third)
    assert (document["input"]["operation"], document["output"]["error"]) == (
        "divide", "ZeroDivisionError: division by zero",
    )  # fmt: skip
    document = session.cell_document(first)
    assert document["input"] == {"source": "notebook", "operation": "peek", "args": {"file": "lex.py"}}
    assert document["output"] == {"result": {"lines": [1, 2]}, "error": None, "execution_time_ms": 3.5}
    assert [c.id for c in session.cells(type="repl")] == [first.id, third.id]
    assert [c.id for c in session.cells(operation="SUM UP")] == [second.id]
    assert [c.id for c in session.cells(failed=True)] == [third.id]
    assert session.cells(turn=2) == []
    state = session.state
    assert (state.name, state.description, state.labels, state.state) == (
        "lexers", "Which one is faster?", ("draft",), "active",
    )  # fmt: skip


def test_the_lines_are_those_of_the_client(place: Place) -> None:
    """What it is made of, whole: each line but for its own names and times."""
    session = place.begin()
    with session.turn("look") as turn:
        cell = session.begin_cell(type="tool", operation="peek at", args={"x": 1}, id="cell_aaaaaaaa")
        session.complete_cell(cell, {"n": 1})
        turn.answer("Seen.", model="small-1", tokens={"input": 5, "output": 2, "cache_read": 1})
    lines = place.lines(session)
    parents = [line.pop("parentUuid") for line in lines]
    uuids = [line.pop("uuid") for line in lines]
    assert parents == [None, *uuids[:-1]]
    times = [line.pop("timestamp") for line in lines]
    assert times == sorted(set(times))
    for line in lines:
        if line["type"] == "assistant":
            assert line["message"].pop("id").startswith("msg_")
    common = {
        "isSidechain": False, "userType": "external", "entrypoint": "sessgit", "cwd": str(place.project),
        "sessionId": session.id,
    }  # fmt: skip
    said = {"type": "message", "role": "assistant", "stop_sequence": None}
    nothing = {"input_tokens": 0, "output_tokens": 0}
    call = {"type": "tool_use", "id": "toolu_cell_aaaaaaaa", "name": "peek_at", "input": {"x": 1}}
    result = {"tool_use_id": "toolu_cell_aaaaaaaa", "type": "tool_result", "content": '{"n":1}'}
    answer = {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 1}
    assert lines == [
        {**common, "type": "user", "message": {"role": "user", "content": "look"}},
        {
            **common, "type": "assistant",
            "message": {**said, "model": "<synthetic>", "content": [call], "stop_reason": "tool_use", "usage": nothing},
            "sessgit": {"cell": {"id": "cell_aaaaaaaa", "type": "tool", "operation": "peek at"}},
        },
        {
            **common, "type": "user", "message": {"role": "user", "content": [result]},
            "sessgit": {"outcome": {"json": True}},
        },
        {
            **common, "type": "assistant", "requestId": f"req_{uuids[3].replace('-', '')}",
            "message": {**said, "model": "small-1", "content": [{"type": "text", "text": "Seen."}],
                        "stop_reason": "end_turn", "usage": answer},
        },
    ]  # fmt: skip


def test_cells_of_several_turns_depend_on_each_other(place: Place) -> None:
    session = place.begin()
    one = session.begin_cell(type="repl", operation="one")
    session.complete_cell(one, 1)
    with session.turn("again"):
        two = session.begin_cell(type="repl", operation="two", dependencies=[one])
        session.complete_cell(two, 2)
    three = session.begin_cell(type="verification", operation="three", dependencies=[two, one.id])
    session.complete_cell(three, error="wrong")
    assert session.dependency_chain(three) == [one.id, two.id]
    assert [(turn.number, turn.prompt) for turn in session] == [
        (1, "repl: one"), (2, "again"), (3, "verification: three"),
    ]  # fmt: skip
    fork = session.fork(at=2, name="shorter")
    assert fork.dependency_chain(two.id) == [one.id]
    four = fork.begin_cell(type="repl", operation="four", dependencies=[two])
    fork.complete_cell(four, 4)
    unknown = f"five depends on {three}, which is not a cell of {fork.id[:8]}"
    raises(UsageError, unknown, lambda: fork.begin_cell(type="repl", operation="five", dependencies=[three]))


def test_several_cells_are_one_commit(place: Place) -> None:
    session = place.begin()
    before = place.git("rev-list", "--count", session.id)
    a, b, c, d = session.begin_cells(
        [
            Task("repl", "last", id="cell_dddddddd", dependencies=("cell_bbbbbbbb", "cell_cccccccc")),
            Task("repl", "left", id="cell_bbbbbbbb", dependencies=("cell_aaaaaaaa",)),
            Task("repl", "right", id="cell_cccccccc", dependencies=("cell_aaaaaaaa",)),
            Task("repl", "first", id="cell_aaaaaaaa"),
        ]
    )
    assert [cell.operation for cell in (a, b, c, d)] == ["last", "left", "right", "first"]
    session.complete_cells({a: Outcome(4), b: Outcome(error="no"), c: Outcome(None)})
    assert int(place.git("rev-list", "--count", session.id)) == int(before)
    session.complete_cell(d, 1)
    assert int(place.git("rev-list", "--count", session.tip)) == int(before) + 1
    assert [(cell.operation, cell.state) for cell in session.cells()] == [
        ("first", "done"), ("left", "failed"), ("right", "done"), ("last", "done"),
    ]  # fmt: skip
    assert session.execution_order() == [d.id, b.id, c.id, a.id]
    assert session.turns()[0].prompt == "repl: last, repl: left, repl: right and 1 more"
    assert session.begin_cells([]) == []
    session.complete_cells({})
    assert len(session.turns()) == 1


def test_what_depends_in_a_circle_is_refused_with_the_path(place: Place) -> None:
    session = place.begin()
    done = session.begin_cell(type="repl", operation="done")
    session.complete_cell(done)
    before = place.transcript(session).read_bytes()

    def tasks(*needs: tuple[str, str]) -> list[Task]:
        return [Task("repl", own, id=f"cell_{own * 8}", dependencies=(f"cell_{o * 8}",)) for own, o in needs]

    for wanted, message in (
        (tasks(("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")),
         "the cells depend on each other in a cycle: cell_aaaaaaaa → cell_bbbbbbbb → cell_cccccccc → cell_aaaaaaaa"),
        (tasks(("a", "a")), "the cells depend on each other in a cycle: cell_aaaaaaaa → cell_aaaaaaaa"),
        (tasks(("a", "x")), f"a depends on cell_xxxxxxxx, which is not a cell of {session.id[:8]}"),
        ([Task("repl", "a", id=done.id)], f"the cell {done} already exists"),
        ([Task("repl", "a", id="cell_aaaaaaaa"), Task("repl", "b", id="cell_aaaaaaaa")],
         "the cell cell_aaaaaaaa already exists"),
    ):  # fmt: skip
        raises(UsageError, message, lambda wanted=wanted: session.begin_cells(wanted))
    assert place.transcript(session).read_bytes() == before
    assert session.pending() == []


def test_cells_within_cells_come_back_in_the_form_that_the_client_sends(place: Place) -> None:
    """A call has its result right behind it, whatever else is written before the cell ends."""
    session = place.begin()
    with session.turn("map"):
        outer = session.begin_cell(type="map_reduce", operation="all of them")
        for number in range(3):
            inner = session.begin_cell(type="repl", operation=f"part {number}")
            session.complete_cell(inner, number)
        assert [cell.state for cell in session.pending()] == ["running"]
        session.complete_cell(outer, {"sum": 3})
    shown = [
        (line["type"], block["type"], block.get("id") or block.get("tool_use_id"), block.get("content"))
        for line in place.lines(session)[1:]
        for block in line["message"]["content"]
    ]
    names = {cell.operation: f"toolu_{cell.id}" for cell in session.cells()}
    whole, *parts = (names[name] for name in ("all of them", "part 0", "part 1", "part 2"))
    assert shown == [
        ("assistant", "tool_use", whole, None),
        ("assistant", "tool_use", parts[0], None),
        ("user", "tool_result", parts[0], "0"),
        ("user", "tool_result", whole, "No result yet: it comes below."),
        ("assistant", "tool_use", parts[1], None),
        ("user", "tool_result", parts[1], "1"),
        ("assistant", "tool_use", parts[2], None),
        ("user", "tool_result", parts[2], "2"),
        ("assistant", "tool_use", f"{whole}_result", None),
        ("user", "tool_result", f"{whole}_result", '{"sum":3}'),
    ]
    messages = [line["message"]["id"] for line in place.lines(session) if line["type"] == "assistant"]
    assert [messages.index(one) for one in messages] == [0, 0, 2, 3, 4]
    assert [(cell.operation, cell.state, cell.ordinal) for cell in session.cells()] == [
        ("all of them", "done", 1), ("part 0", "done", 2), ("part 1", "done", 3), ("part 2", "done", 4),
    ]  # fmt: skip
    assert session.cell_document(outer)["output"]["result"] == {"sum": 3}
    assert session.state.calls == {}
    assert session.turns()[0].tokens["input"] == 0


def test_words_reasons_and_tools_between_cells(place: Place) -> None:
    session = place.begin()
    with session.turn("think") as turn:
        cell = session.begin_cell(type="repl", operation="slow")
        turn.say("Meanwhile.")
        session.record_reasoning("It is slow.", evidence=[cell], confidence=0.5)
        turn.add(
            ToolCall("Bash", {"command": "ls"}, "a\nb"),
            Step(Task("repl", "whole", {"x": 1}, dependencies=(cell.id,)), Outcome(2)),
            Saying("Nearly.", "small-1"),
        )
        session.complete_cell(cell, "done")
        turn.answer("It is.")
    operations = [(cell.operation, cell.state, cell.dependencies) for cell in session.cells()]
    assert operations[:3] == [("slow", "done", ()), ("Bash", "done", ()), ("whole", "done", (cell.id,))]
    assert operations[3][0] == "small-1"
    assert session.reasoning() == [(1, Reason("trace", "It is slow.", (cell.id,), confidence=0.5))]
    assert session.turns()[0].answer == "It is."
    assert session.cell_document(cell)["output"]["result"] == "done"


def test_a_whole_turn(place: Place) -> None:
    session = place.begin()
    calls = [ToolCall("Read", {"file_path": "/a.py"}, "x = 1"), ToolCall("Bash", {"command": "false"}, "no", True)]
    assert session.record_turn("fix it", "Fixed.", calls, model="large-1", tokens={"input": 10, "output": 4}) == 1
    assert session.record_turn("thanks") == 2
    first, second = session.turns()
    assert (first.prompt, first.answer, first.model, first.files) == ("fix it", "Fixed.", "large-1", ("/a.py",))
    assert [(cell.type, cell.operation, cell.state) for cell in first.cells] == [
        ("llm_call", "large-1", "done"), ("tool", "Read", "done"), ("llm_call", "large-1", "done"),
        ("tool", "Bash", "failed"), ("llm_call", "large-1", "done"),
    ]  # fmt: skip
    assert first.tokens == {"input": 10, "output": 4, "cache_read": 0, "cache_write": 0}
    assert (second.prompt, second.answer, second.cells, second.model) == ("thanks", "", (), "")


def test_decisions_and_their_evidence(place: Place) -> None:
    session = place.begin()
    cell = session.begin_cell(type="repl", operation="measure")
    session.complete_cell(cell, 2.5)
    decision = {"evidence": [cell, "two runs"], "options": ["fast", "slow"], "chosen": "fast", "confidence": 0.8}
    session.record_reasoning("Take the fast one.", kind="decision", **decision)  # type: ignore[arg-type]
    assert session.reasoning() == [
        (2, Reason("decision", "Take the fast one.", (cell.id, "two runs"), ("fast", "slow"), "fast", 0.8))
    ]
    turn = session.turns()[1]
    assert (turn.prompt, turn.cells) == ("decision: Take the fast one.", ())
    assert turn.answer.splitlines() == [
        "Decision: Take the fast one.", "Options: fast; slow", "Chosen: fast", f"Evidence: {cell}; two runs",
        "Confidence: 0.8",
    ]  # fmt: skip


def test_a_confidence_is_from_0_to_1(place: Place) -> None:
    session = place.begin()
    for value in (0, 0.5, 1):
        session.record_reasoning("It is slow.", confidence=value)
    assert [reason.confidence for _, reason in session.reasoning()] == [0, 0.5, 1]


def test_todos_and_plans_are_the_clients_own(place: Place) -> None:
    session = place.begin()
    with session.turn("plan it") as turn:
        session.write_todos([{"content": "lex", "status": "completed"}, {"content": "parse"}])
        name = session.create_plan("# Plan\n\n- lex\n- parse\n")
    todos = place.config / "todos" / f"{session.id}-agent-{session.id}.json"
    assert json.loads(todos.read_text()) == [
        {"content": "lex", "status": "completed", "activeForm": "lex"},
        {"content": "parse", "status": "pending", "activeForm": "parse"},
    ]
    plan = place.config / "plans" / name
    assert plan.read_text() == "# Plan\n\n- lex\n- parse\n"
    assert [cell.operation for cell in session.cells()] == ["TodoWrite", "ExitPlanMode"]
    with session.cell("outside of turns"):
        session.write_todos([])
    assert [turn.prompt for turn in session.turns()] == ["plan it", "repl: outside of turns"]
    assert turn.number == 1
    files = place.git("ls-tree", "-r", "--name-only", session.id, "live/")
    assert files.splitlines() == [f"live/plans/{name}", f"live/todos/{session.id}-agent-{session.id}.json"]
    session.write_todos([{"content": "rest", "activeForm": "Resting", "status": "in_progress"}])
    assert [turn.prompt for turn in session.turns()] == ["plan it", "repl: outside of turns"]
    assert [cell.operation for cell in session.cells(turn=2)] == ["outside of turns", "TodoWrite", "TodoWrite"]
    plan.unlink()
    todos.unlink()
    place.transcript(session).unlink()
    session.record_turn("go on")
    assert plan.read_text() == "# Plan\n\n- lex\n- parse\n"
    assert json.loads(todos.read_text())[0]["activeForm"] == "Resting"


def test_an_exception_without_words_is_named(place: Place) -> None:
    session = place.begin()
    with pytest.raises(KeyboardInterrupt), session.turn("try"):
        raise KeyboardInterrupt
    assert session.turns()[0].answer == "Ended by KeyboardInterrupt"


def test_an_exception_ends_a_turn_and_says_so(place: Place) -> None:
    session = place.begin()
    with pytest.raises(KeyError), session.turn("try") as turn:
        cell = session.begin_cell(type="repl", operation="half")
        turn.answer("Nearly done.")
        raise KeyError("lexer")
    assert turn.number == 1
    assert session.turns()[0].answer == "Ended by KeyError: 'lexer'"
    assert "Nearly done." in place.transcript(session).read_text()
    assert session.cells() == [Cell(cell.id, "repl", "half", (), "interrupted", 1, 1)]
    assert [(one.id, one.state) for one in session.pending()] == [(cell.id, "interrupted")]
    with session.turn("again") as turn:
        turn.end()
        turn.end()
    assert turn.number == 2
    assert session.cells()[0].state == "failed"
    error = session.cell_document(cell)["output"]["error"]
    assert error == "interrupted: the session went on without a result"


def test_forks_diffs_and_merges(place: Place) -> None:
    session = place.begin("main", labels=["lexer"])
    session.record_turn("one", "1")
    session.record_turn("two", "2")
    fork = session.fork(at=1, name="aside")
    cell = fork.begin_cell(type="repl", operation="found")
    fork.complete_cell(cell, "it")
    assert place.transcript(fork).exists()
    assert place.store.fork(session).state.turns == 2
    diff = place.store.diff(session, "aside")
    assert (diff["shared_turns"], len(diff["only_a"]), len(diff["only_b"])) == (1, 1, 1)
    made = place.store.merge(fork, into="main", mode="graft")
    assert isinstance(made, Merge)
    assert (made.session, made.turns) == (session.id, (3,))
    assert session.tip == made.commit
    assert [turn.prompt for turn in session] == ["one", "two", "repl: found"]
    assert session.cells()[-1].id == cell.id
    assert place.store.merge(fork, into=session).commit == ""
    new = place.store.merge("aside", into="main", mode="summary", new="both")
    assert new.commit == ""
    assert [one["action"] for one in made.decisions if one["path"] == "turns"] == ["bring"]


def test_a_fork_at_a_cell(place: Place) -> None:
    session = place.begin()
    with session.turn("three cells"):
        for number in range(3):
            with session.cell(f"step {number}") as cell:
                cell.result = number
    fork = session.fork(at="1.2")
    assert [cell.operation for cell in fork.cells()] == ["step 0", "step 1"]
    fork.record_turn("other way")
    assert [turn.prompt for turn in fork] == ["three cells", "other way"]
    with session.turn("nested"):
        outer = session.begin_cell(type="repl", operation="outer")
        for number in range(2):
            with session.cell(f"inner {number}") as cell:
                cell.result = number
        session.complete_cell(outer, "all")
    cut = session.fork(at="2.2")
    states = [(cell.operation, cell.state) for cell in cut.cells(turn=2)]
    assert states == [("outer", "interrupted"), ("inner 0", "done")]
    assert [(cell.id, cell.state) for cell in cut.pending()] == [(outer.id, "interrupted")]
    cut.record_turn("on")
    assert [cell.state for cell in cut.cells(turn=2)] == ["failed", "done"]
    assert session.cells(turn=2)[0].state == "done"
    assert [turn.prompt for turn in cut] == ["three cells", "nested", "on"]


def test_sessions_are_found_listed_and_archived(place: Place, tmp_path: Path) -> None:
    first = place.begin("first", labels=["x"])
    first.record_turn("one")
    second = place.begin("second")
    store = place.store
    assert [(one.name, one.turns, one.labels) for one in store.sessions()] == [("second", 0, ()), ("first", 1, ("x",))]
    assert [one.name for one in store.sessions(label="x")] == ["first"]
    assert [one.name for one in store.sessions(project=str(place.project))] == ["second", "first"]
    assert store.sessions(project=str(tmp_path)) == []
    assert [session.id for session in store] == [second.id, first.id]
    assert store.load_session("first").id == store.load_session(first.id[:8]).id == first.id
    raises(NotFoundError, "no conversation starts with “third”", lambda: store.load_session("third"))
    store.archive(first, "second")
    assert (store.sessions(), [one.name for one in store.sessions(archived=True)]) == ([], ["second", "first"])
    message = f"{first.id[:8]} is archived, so it is not recorded"
    raises(ConflictError, message, lambda: first.record_turn("more"), "`sessgit unarchive` unarchives it.")
    assert (len(first.turns()), first.pending()) == (1, [])
    store.unarchive("first")
    assert first.record_turn("more") == 2
    taken = f"{first.id[:8]} is already called “first”"
    free = (
        f"Names are unique in a project: choose another name, or rename the other one first: `sessgit rename "
        f"{first.id[:8]} OTHER`"
    )
    raises(ConflictError, taken, lambda: place.begin("first"), free)
    there = f"the session {first.id} already exists"
    raises(ConflictError, there, lambda: place.begin(id=first.id), "Open it with load_session.")
    raises(UsageError, "“A b” is not a session id", lambda: place.begin(id="A b"), "Use a uuid.")
    raises(UsageError, f"there is no folder {tmp_path}/no", lambda: store.create_session(tmp_path / "no"))


def test_a_working_folder_that_is_gone(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    hint = "Pass cwd, the project folder of the session."
    raises(UsageError, "the working folder is gone", place.store.create_session, hint)
    assert place.store.create_session(tmp_path).state.project == str(tmp_path)
    hint = "Pass cwd, the project folder of the session."
    for folder in ("/tmp/\0", "/tmp/\ud800"):
        make = partial(place.store.create_session, folder)
        raises(UsageError, "there is no folder /tmp/\ufffd", make, hint)


def test_what_a_model_took_is_counted_wherever_it_is_said(place: Place) -> None:
    session = place.begin("a")
    with session.turn("ask") as turn:
        cell = session.begin_cell(type="llm_call", operation="ask")
        session.complete_cell(cell, "yes", model="small-1", tokens={"input": 7, "output": 2})
        turn.add(ToolCall("Read", {"file_path": "a"}, "b"), model="large-1")
    (told,) = session.turns()
    assert (told.model, told.tokens["input"], told.tokens["output"]) == ("large-1", 7, 2)
    assert session.pad.add("insight", "It reads.", turn=1).turn == 1


def test_single_turns_are_picked(place: Place) -> None:
    session = place.begin("a")
    session.record_turn("one", "1")
    other = session.fork(at=1)
    for number in (2, 3):
        other.record_turn(f"turn {number}", str(number))
    merged = place.store.merge(other, session, turns=[3])
    assert (merged.session, merged.turns, [turn.answer for turn in session]) == (session.id, (2,), ["1", "3"])


def test_what_is_said_of_a_session(place: Place) -> None:
    session = place.begin("a")
    session.edit(name="b", description="About b.", add_labels=["x", "y"], stage="shaping", confidence=0.25)
    state = session.state
    assert (state.name, state.description, state.labels) == ("b", "About b.", ("x", "y"))
    assert (state.stage, state.confidence) == ("shaping", 0.25)
    session.edit(description="", remove_labels=["x"], stage="")
    state = session.state
    assert (session.name, state.description, state.labels, state.stage, state.confidence) == ("b", "", ("y",), "", 0.25)
    before = session.tip
    session.edit()
    assert session.tip == before
    raises(UsageError, "“deep” is not a stage", lambda: session.edit(stage="deep"))  # type: ignore[arg-type]
    raises(UsageError, "“2” is not a confidence", lambda: session.edit(confidence=2))


def test_the_scratchpad(place: Place) -> None:
    session = place.begin("lexers")
    pad = session.pad
    assert (pad.entries(), pad.brief()) == ([], "")
    insight = pad.add("insight", "The second one is faster.")
    left, right = pad.add("claim", "Speed counts."), pad.add("claim", "Size counts.")
    tension = pad.add("tension", "Fast or small?", between=[left.id, right.id])
    assert [entry.text for entry in pad.entries("claim")] == ["Speed counts.", "Size counts."]
    pad.resolve(tension.id, "Fast.")
    pad.thesis("Take the second one.")
    pad.passed("synthesis", "All of it.")
    raises(UsageError, "shaping comes before synthesized", lambda: pad.stage("synthesized"))
    for stage in ("shaping", "critiquing", "synthesized"):
        pad.stage(stage)
    pad.confidence(0.9, "measured")
    hint = "Use a number from 0 to 1, or none to remove it."
    for value in (2, -0.1, math.nan, math.inf):
        raises(UsageError, f"“{value!r}” is not a confidence", lambda value=value: pad.confidence(value), hint)
    raises(UsageError, "“made” is not a stage", lambda: pad.stage("made"))
    raises(UsageError, "no entries selected", pad.drop)
    pad.drop(insight.id)
    pad.cycle()
    pad.compact()
    assert [entry.text for entry in pad.entries("insight")] == []
    assert "Take the second one." in pad.brief()
    assert (session.state.stage, session.state.confidence) == ("synthesized", 0.9)
    assert pad.next_step().what


def test_the_state_that_programs_set(place: Place) -> None:
    session = place.begin()
    session.update_state(
        activation={"rlm_active": True, "activation_mode": "manual", "current_depth": 1},
        budget={"max_recursive_calls": 10}, trajectory={"export_path": "/tmp/x"}, metadata={"rlm_version": "1"},
        working_memory={"plan": ["a"], "old": 1}, remember={"more": {"x": None}}, forget=["old"],
        more={"total_recursive_calls": 2, "cost_usd": 0.5},
    )  # fmt: skip
    assert session.working_memory == {"plan": ["a"], "more": {"x": None}}
    session.update_state(activation={"current_depth": None}, more={"total_recursive_calls": 1})
    own = session.state.unified
    assert (own.activation.rlm_active, own.activation.current_depth) == (True, None)
    assert (own.budget.max_recursive_calls, own.budget.total_recursive_calls, own.budget.cost_usd) == (10, 3, 0.5)
    document = session.state_document()
    assert document["metadata"]["session_id"] == session.id
    assert document["context"]["working_memory"] == {"plan": ["a"], "more": {"x": None}}
    session.record_turn("goes on")
    assert session.working_memory == {"plan": ["a"], "more": {"x": None}}
    before = session.tip
    with pytest.raises(UsageError):
        session.update_state(activation={"rlm_active": "yes"})
    with pytest.raises(UsageError):
        session.update_state(remember={"large": "x" * 70_000})
    assert session.tip == before


def test_cells_run_again_with_functions_of_the_program(place: Place) -> None:
    session = place.begin()
    with session.turn("sums"):
        a = session.begin_cell(type="repl", operation="add", args={"x": 1, "y": 2})
        session.complete_cell(a, 3)
        b = session.begin_cell(type="repl", operation="add", args={"x": 2, "y": 2}, dependencies=[a])
        session.complete_cell(b, 5)
        c = session.begin_cell(type="tool", operation="fetch", dependencies=[b])
        session.complete_cell(c, error="OSError: gone")
        d = session.begin_cell(type="verification", operation="judge")
        session.complete_cell(d, True)

    def gone() -> None:
        raise OSError("gone")

    found = session.replay({("repl", "add"): lambda x, y: x + y, "fetch": gone})
    assert [(one.cell.id, one.outcome, one.recorded, one.now, one.why) for one in found] == [
        (a.id, "equal", "3", "3", ""),
        (b.id, "differs", "5", "4", ""),
        (c.id, "equal", "OSError: gone", "OSError: gone", ""),
        (d.id, "skipped", "", "", "only a function registered by a program can run judge, or --exec judge=COMMAND"),
    ]
    assert [one.cell.id for one in session.replay({"fetch": gone}, [c], chain=True)] == [a.id, b.id, c.id]
    assert session.replay({}, turn=1)[0].outcome == "skipped"


def test_a_session_ends_with_its_block(place: Place) -> None:
    with place.begin("x") as session:
        session.record_turn("one")
        cell = session.begin_cell(type="repl", operation="never ends")
    assert session.state.state == "interrupted"
    assert [one.state for one in session.pending()] == ["interrupted"]
    session.complete_cell(cell, "it did")
    assert session.cells()[0].state == "done"
    with place.store.load_session("x") as again:
        assert len(again.turns()) == 2
    assert again.state.state == "active"
    again.end()
    assert again.state.state == "ended"
    with again.turn("goes on"), pytest.raises(UsageError, match=r"a turn of .* is open"):
        again.end()
    assert again.state.state == "active"
    with pytest.raises(RuntimeError, match="mine"), place.begin("y") as other, other.turn("t"):
        place.store.archive(other)
        raise RuntimeError("mine")


def test_granularity_of_cells(place: Place) -> None:
    (place.store.path / "config.toml").write_text('[record]\ngranularity = "cell"\n')
    session = place.begin()
    with session.turn("two"):
        for number in range(2):
            with session.cell(f"step {number}") as cell:
                cell.result = number
            assert [one.operation for one in session.cells()] == [f"step {n}" for n in range(number + 1)]
    loose = session.begin_cells([Task("repl", "a"), Task("repl", "b")])
    session.complete_cell(loose[1])
    assert [(one.operation, one.state) for one in session.cells(turn=2)] == [("a", "running"), ("b", "done")]
    session.complete_cell(loose[0])
    events = place.git("log", "--reverse", "--format=%(trailers:key=Event,valueonly)", session.tip).split()
    assert events == ["start", "cell", "cell", "cell", "cell"]
    assert [turn.number for turn in session] == [1, 2]


def test_settings_count_as_they_are_now(place: Place) -> None:
    session = place.begin()
    session.record_turn("one")
    config = place.store.path / "config.toml"
    config.write_text(f'[record]\nexclude = ["{place.project}"]\n')
    off = f"{place.project} is not recorded: it is off (record.exclude has “{place.project}”)"
    raises(ConflictError, off, lambda: session.record_turn("two"), "To record it: `sessgit on`")
    raises(ConflictError, off, place.begin)
    assert [turn.prompt for turn in place.store.load_session(session.id)] == ["one"]
    config.unlink()
    assert session.record_turn("two") == 2
    with pytest.raises(ConflictError, match="it is off"), session.turn("three"):
        config.write_text(f'[record]\nexclude = ["{place.project}"]\n')
    config.write_text("record = 3\n")
    with pytest.raises(SessgitError):
        session.turns()
    config.unlink()
    assert session.record_turn("four") == 4


def test_nothing_is_recorded_where_the_environment_says_so(seal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (seal / "calc").mkdir()
    place = Place(Store.open(), seal / "calc")
    session = place.begin()
    monkeypatch.setenv("SESSGIT_OFF", "1")
    with Store.open() as store:
        again = store.load_session(session.id)
        said = "SESSGIT_OFF=1 is set, so nothing is recorded"
        raises(UsageError, said, lambda: again.record_turn("x"))
        raises(UsageError, said, lambda: store.create_session(place.project))
        assert again.turns() == []


def test_a_closed_store_opens_again(place: Place) -> None:
    session = place.begin("x")
    with session.turn("across"):
        place.store.close()
        with session.cell("one") as cell:
            cell.result = 1
    place.store.close()
    place.store.close()
    assert [one.operation for one in session.cells()] == ["one"]
    assert session.record_turn("two") == 2


def test_a_transcript_that_is_gone_comes_back(place: Place) -> None:
    """The client deletes transcripts after thirty days."""
    session = place.begin()
    session.record_turn("one", "1")
    pending = session.begin_cell(type="repl", operation="half")
    session.end()
    whole = place.transcript(session).read_bytes()
    place.transcript(session).unlink()
    again = place.again().load_session(session.id)
    assert [(one.id, one.state) for one in again.pending()] == [(pending.id, "interrupted")]
    again.complete_cell(pending, 2)
    assert place.transcript(session).read_bytes().startswith(whole)
    assert again.record_turn("three") == 3
    place.transcript(session).unlink()
    with again.turn("four"):
        place.transcript(session).unlink()
        message = f"{session.id[:8]} continued without this turn"
        raises(ConflictError, message, lambda: again.begin_cell(type="repl", operation="lost"))
    assert [turn.number for turn in again] == [1, 2, 3]


def test_a_transcript_that_was_emptied_or_goes_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.begin() as session:
        session.record_turn("one", "One.")
        place.transcript(session).write_bytes(b"")
        session.record_turn("two", "Two.")
        restore = writer.Writer._restore

        def gone_at_once(self: writer.Writer) -> None:
            restore(self)
            if not gone:
                gone.append(self.end.path.read_bytes())
                self.end.path.unlink()

        gone = list[bytes]()
        monkeypatch.setattr(writer.Writer, "_restore", gone_at_once)
        session.record_turn("three", "Three.")
    assert len(gone) == 1
    assert [turn.number for turn in session.turns()] == [1, 2, 3]
    assert place.transcript(session).read_bytes().startswith(gone[0])


def test_a_clock_beyond_all_years() -> None:
    """Whatever one line's time was, more can be written."""
    chain = Chain("a")
    times = [json.loads(line)["timestamp"] for at in (1.0, 1e12, 2.0) for line in chain.prompt("x", at)]
    assert times == ["1970-01-01T00:00:01.000Z", "9999-12-31T23:59:59.998Z", "9999-12-31T23:59:59.998Z"]


def test_what_a_client_added_is_gone_on_from(place: Place) -> None:
    session = place.begin()
    session.record_turn("one", "1")
    path = place.transcript(session)
    last = place.lines(session)[-1]
    prompt = {
        "parentUuid": last["uuid"], "uuid": "a" * 8 + "-0000-4000-8000-000000000001", "type": "user",
        "sessionId": session.id, "timestamp": "2030-01-01T00:00:00.000Z", "message": {"role": "user", "content": "two"},
    }  # fmt: skip
    answer = {
        **prompt, "parentUuid": prompt["uuid"], "uuid": "b" * 8 + "-0000-4000-8000-000000000001", "type": "assistant",
        "message": {"role": "assistant", "id": "msg_1", "content": [{"type": "text", "text": "2"}]},
    }  # fmt: skip
    with path.open("ab") as file:
        file.write(json.dumps(prompt).encode() + b"\n" + json.dumps(answer).encode())  # killed before its newline
    assert session.record_turn("three", "3") == 3
    assert [(turn.prompt, turn.answer) for turn in session] == [("one", "1"), ("two", "2"), ("three", "3")]
    lines = place.lines(session)
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    assert lines[-1]["timestamp"] > "2030-01-01T00:00:00.000Z"
    assert place.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [session.id]


def test_a_program_while_a_client_has_the_session_open(place: Place) -> None:
    session = place.begin()
    session.record_turn("one")
    (place.config / "sessions").mkdir()
    note = place.config / "sessions" / f"{os.getpid()}.json"
    note.write_text(json.dumps({"pid": os.getpid(), "sessionId": session.id}))
    said = f"{session.id[:8]} is open in a client that would not see new turns"
    hint = "Add cells and reasons to its turn, close it first, or continue in a fork."
    raises(ConflictError, said, lambda: session.record_turn("two"), hint)
    fork = session.fork()
    assert fork.record_turn("two") == 2
    session.end()
    assert session.state.state == "active"
    note.unlink()
    assert session.record_turn("two") == 2


def test_a_merge_waits_for_no_turn_of_a_program(place: Place) -> None:
    session = place.begin()
    session.record_turn("one")
    fork = session.fork()
    fork.record_turn("two")
    with session.turn("open"):
        said = f"a program has an open turn of {session.id[:8]}, which the merge would end"
        with pytest.raises(ConflictError) as refused:
            place.store.merge(fork, into=session)
        assert said in str(refused.value) or "has unrecorded lines" in str(refused.value)
        before = place.transcript(session).read_bytes()
    assert place.transcript(session).read_bytes() == before
    assert place.store.merge(fork, into=session).turns == (3,)


def test_a_merge_ends_the_cells_that_a_program_left(place: Place) -> None:
    session = place.begin()
    session.record_turn("one")
    fork = session.fork()
    fork.record_turn("two")
    code = f"import os, sessgit; session = sessgit.Store.open().load_session('{session.id}')"
    code = f"{code}; session.begin_cell(type='repl', operation='measure'); os._exit(0)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert [cell.state for cell in session.pending()] == ["interrupted"]
    assert place.store.merge(fork, into=session).turns == (3,)
    assert session.pending() == []
    cell = next(cell for cell in session.cells() if cell.operation == "measure")
    assert "the session went on without a result" in str(session.cell_document(cell)["output"])


def test_a_session_that_went_on_on_another_machine(place: Place, tmp_path: Path) -> None:
    """Its file here lacks turns that the store has: it gets them first."""
    session = place.begin()
    session.record_turn("one")
    short = place.transcript(session).read_bytes()
    session.record_turn("two")
    place.transcript(session).write_bytes(short)
    (place.store.path / "state" / f"{session.id}.json").unlink()
    again = place.again().load_session(session.id)
    assert again.record_turn("three") == 3
    assert [turn.prompt for turn in again] == ["one", "two", "three"]


def test_the_same_transcript_gives_the_same_turns(place: Place, tmp_path: Path) -> None:
    session = place.begin()
    with session.turn("all kinds") as turn:
        outer = session.begin_cell(type="map_reduce", operation="outer", args={"token": "x" * 5000})
        with session.cell("inner", dependencies=[outer]) as cell:
            cell.result = [None, {"a": "ü\ud800"}]
        session.record_reasoning("since")
        session.complete_cell(outer, "y" * 9000)
        turn.answer("ok", model="m", tokens={"output": 1})
    session.begin_cell(type="repl", operation="half")
    session.end()
    other = Store.open(tmp_path / "other", config=place.config)
    source = place.transcript(session)
    env = {**os.environ, "SESSGIT_STORE": str(other.path)}
    subprocess.run([sys.executable, "-m", "sessgit", "import", str(source)], env=env, check=True, capture_output=True)
    there = Place(other, place.project)
    assert there.trees(session.id) == place.trees(session.id) != []
    assert other.load_session(session.id).cells() == session.cells()
    out = tmp_path / "back.jsonl"
    subprocess.run(
        [sys.executable, "-m", "sessgit", "restore", session.id, "--output", str(out)], env=env, check=True,
        capture_output=True,
    )  # fmt: skip
    assert out.read_bytes() == source.read_bytes()
    assert path_exists(source)


def test_secrets_are_replaced_in_every_object_and_stay_in_the_file(place: Place) -> None:
    key = "sk-ant-api03-" + "Zq7" * 31 + "AA"
    session = place.begin()
    cell = session.begin_cell(type="repl", operation="log in", args={"key": key, "password": "hunter2hunter2"})
    session.complete_cell(cell, {"said": f"your key is {key}"})
    failed = session.begin_cell(type="repl", operation="again")
    session.complete_cell(failed, error=f"denied: {key}")
    session.record_reasoning(f"The key {key} does not work.", evidence=[key])
    session.record_turn(f"my key: {key}", f"Yours is {key}", [ToolCall("Bash", {"command": f"curl {key}"}, key)])
    assert place.transcript(session).read_text().count(key) >= 8
    command = ["git", "-C", str(place.store.path), "cat-file", "--batch-all-objects", "--batch", "--buffer"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"[redacted:" in objects
    assert key.encode() not in objects
    assert b"hunter2hunter2" not in objects
    assert [one.id for one in session.cells()][:2] == [cell.id, failed.id]
    document: dict[str, Any] = session.cell_document(cell)
    assert key not in json.dumps(document)
    assert document["output"]["result"]["said"].startswith("your key is [redacted:")
