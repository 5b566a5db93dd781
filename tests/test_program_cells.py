"""Cells and reasons of a program in the turn that a client has open: kept outside the transcript."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from plain import run_git
from programs import raises
from shell import Shell
from transcripts import BIRTH, SESSION

from sessgit import Session, Store
from sessgit.agents.claude import home
from sessgit.errors import ConflictError, UsageError


class Client:
    """A client that has a session open. The program's clock is half a second ahead of its last line."""

    def __init__(self, sessgit: Shell) -> None:
        self.sessgit, self.talk = sessgit, sessgit.talk()
        self.store = Store.open()
        self.store.now = lambda: BIRTH.timestamp() + self.talk.file.seconds + 0.5
        self.path = home.project_folder(sessgit.config, str(sessgit.project)) / f"{SESSION}.jsonl"

    def writes(self) -> Session:
        self.sessgit.keep(self.talk)
        if not (self.sessgit.store / "refs/heads" / SESSION).exists():
            assert self.sessgit("import").code == 0
        return self.store.load_session(SESSION)

    def says_so(self) -> Client:
        """Write the note of a running client."""
        (self.sessgit.config / "sessions").mkdir()
        note = self.sessgit.config / "sessions" / f"{os.getpid()}.json"
        note.write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION}))
        return self

    @property
    def waiting(self) -> Path:
        return self.sessgit.store / "state" / f"{SESSION}.cells"


@pytest.fixture
def client(sessgit: Shell) -> Client:
    return Client(sessgit)


def worked(client: Client) -> tuple[Session, bytes]:
    """A turn of a client with two calls, a program's cells and a reason in between; and the transcript."""
    talk = client.talk
    talk.prompt("map the parser").answer("I look.").call_only("Bash", {"command": "python rlm.py"})
    session = client.writes()
    with session.cell("peek", args={"file": "parser.py"}) as first:
        first.result = {"lines": 40}
    asked = session.begin_cell(type="llm_call", operation="summarize", dependencies=[first.id], model="claude-test-1")
    talk.result("toolu_0001", "2 chunks").call_only("Read", {"file_path": "parser.py"})
    client.writes()
    session.complete_cell(asked, "It is a Pratt parser.", tokens={"input": 7, "output": 2}, model="claude-test-1")
    session.record_reasoning("Pratt it is.", kind="decision", evidence=[asked], options=["Pratt", "LL"], chosen="Pratt")
    talk.result("toolu_0002", "def parse").answer("It is a Pratt parser.").stop_lines()
    client.writes()
    return session, client.path.read_bytes()


def test_cells_stand_between_the_calls_around_them(client: Client) -> None:
    """Without a note of the client's, as old ones have none: its turn has no end yet."""
    session, transcript = worked(client)
    assert [(cell.turn, cell.ordinal, cell.type, cell.operation, cell.state) for cell in session.cells()] == [
        (1, 1, "llm_call", "claude-test-1", "done"), (1, 2, "llm_call", "claude-test-1", "done"),
        (1, 3, "tool", "Bash", "done"), (1, 4, "repl", "peek", "done"), (1, 5, "llm_call", "summarize", "done"),
        (1, 6, "llm_call", "claude-test-1", "done"), (1, 7, "tool", "Read", "done"),
        (1, 8, "llm_call", "claude-test-1", "done"),
    ]  # fmt: skip
    peek, asked = session.cells()[3:5]
    assert asked.dependencies == (peek.id,)
    assert session.cells()[5].dependencies == (session.cells()[2].id,)  # the model saw nothing of the program's
    (turn,) = session.turns()
    assert (turn.prompt, turn.answer) == ("map the parser", "It is a Pratt parser.")
    assert [(number, reason.chosen) for number, reason in session.reasoning()] == [(1, "Pratt")]
    assert client.path.read_bytes() == transcript
    assert transcript.startswith(session.transcript())
    assert not client.waiting.exists()
    assert run_git(client.sessgit.store, "fsck", "--strict", "--no-dangling") == ""
    assert client.sessgit("verify", "--deep").code == 0


def test_every_command_shows_them_and_a_fork_has_them(client: Client) -> None:
    session, _ = worked(client)
    out = client.sessgit.out
    session.end()
    assert "Pratt it is." in out("show", f"{SESSION}@1")
    shown = client.sessgit.json("show", f"{SESSION}@1.4")["cell"]
    assert (shown["operation"], shown["output"], shown["dependent_ordinals"]) == ("peek", {"lines": 40}, [5])
    assert "summarize" in out("deps", f"{SESSION}@1.4", "--down")
    assert [one["operation"] for one in client.sessgit.json("cells", SESSION, "--type", "repl")["cells"]] == ["peek"]
    fork = session.fork(at=1)
    assert [cell.operation for cell in fork.cells()] == [cell.operation for cell in session.cells()]
    assert "Pratt it is" not in fork.transcript().decode()
    cut = session.fork(at="1.5")
    assert client.sessgit("verify", "--deep").code == 0
    assert [cell.operation for cell in cut.cells()] == ["claude-test-1", "claude-test-1", "Bash", "peek", "summarize"]


def test_a_cell_waits_in_the_file_until_the_turn_is_recorded(client: Client) -> None:
    client.says_so()
    client.talk.prompt("one").answer("1").call_only("Bash", {"command": "x"})
    session = client.writes()
    before = run_git(client.sessgit.store, "rev-parse", f"refs/heads/{SESSION}")
    begun = session.begin_cell(type="repl", operation="first")
    assert client.waiting.read_bytes().count(b"\n") == 1
    assert run_git(client.sessgit.store, "rev-parse", f"refs/heads/{SESSION}") == before
    (pending,) = client.store.load_session(SESSION).pending()  # recorded by loading it
    assert (pending.id, pending.operation, pending.state) == (begun.id, "first", "running")
    other = Store.open().load_session(SESSION)  # as another hook of the same call is
    other.complete_cell(begun, 1)
    raises(ConflictError, f"{begun.id} already has a result", lambda: other.complete_cell(begun, 2))
    raises(ConflictError, f"{begun.id} already has a result", lambda: session.complete_cell(begun, 2))
    assert session.pending() == []
    with pytest.raises(UsageError, match="already exists"):
        session.begin_cell(type="repl", operation="again", id=begun.id)
    said = f"{SESSION[:8]} is open in a client that would not see new turns"
    raises(ConflictError, said, lambda: session.record_turn("two"))
    assert [cell.state for cell in session.cells(type="repl")] == ["done"]


def test_a_late_result_goes_to_its_cell_and_a_new_cell_to_the_new_turn(client: Client) -> None:
    client.says_so()
    client.talk.prompt("one").answer("1").call_only("Bash", {"command": "x"})
    session = client.writes()
    begun = session.begin_cell(type="repl", operation="slow")
    client.talk.result("toolu_0001").answer("done").stop_lines().prompt("two").answer("2")
    client.writes()
    session.complete_cell(begun, "at last")
    session.begin_cell(type="repl", operation="new")
    client.writes()
    assert [(cell.turn, cell.operation, cell.state) for cell in session.cells(type="repl")] == [
        (1, "slow", "done"), (2, "new", "running"),
    ]  # fmt: skip


def test_a_rewind_leaves_the_cells_with_their_turn(client: Client) -> None:
    client.says_so()
    client.talk.turns("one").prompt("two").answer("2")
    session = client.writes()
    session.begin_cell(type="repl", operation="left")
    client.writes()
    client.talk.rewind(1).prompt("another").answer("3")
    client.writes()
    session.begin_cell(type="repl", operation="here")
    assert [(cell.turn, cell.operation) for cell in session.cells(type="repl")] == [(2, "here")]
    (branch,) = [one["branch"] for one in client.sessgit.json("show", SESSION)["session"]["family"]["rewound"]]
    assert [one["operation"] for one in client.sessgit.json("cells", branch, "--type", "repl")["cells"]] == ["left"]


def test_a_secret_is_redacted_and_never_merged_into_a_conversation(client: Client) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client.says_so()
    client.talk.prompt("one").answer("1")
    session = client.writes()
    with session.cell("peek", args={"token": secret}) as cell:
        cell.result = secret
    (node,) = session.cells(type="repl")
    assert secret not in json.dumps(session.cell_document(node))
    (client.sessgit.config / "sessions" / f"{os.getpid()}.json").unlink()
    fork = session.fork()
    session.record_turn("two", "2")
    fork.record_turn("three", "3")
    client.store.merge(session, into=fork)
    assert "peek" not in fork.transcript().decode()


def test_todos_and_plans_join_the_turn(client: Client) -> None:
    client.says_so()
    client.talk.prompt("one").answer("1")
    session = client.writes()
    session.write_todos([{"content": "lex"}])
    session.create_plan("# Plan\n")
    assert [cell.operation for cell in session.cells(type="tool")] == ["TodoWrite", "ExitPlanMode"]
    assert [turn.prompt for turn in session] == ["one"]
