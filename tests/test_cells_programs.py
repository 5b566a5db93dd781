"""The cells of programs in `cells`, `cell`, `deps` and `why`: they have types, and depend on cells of earlier turns."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest
from programs import transcript
from shell import Shell
from transcripts import SESSION

from sessgit.cli.commands import cells as pages
from sessgit.history import turn_log
from sessgit.history.cells import NO_DETAIL, Node
from sessgit.model.conversation.session import Budget, Session, Unified
from sessgit.model.conversation.turn import Cell, Tokens
from sessgit.model.program_input import GivenTurn, Outcome, Step, Task


def step(kind: str, operation: str, own: str, *depends: str, failed: bool = False, **args: str) -> Step:
    outcome = Outcome(error="no") if failed else Outcome("fine")
    return Step(
        Task(kind, operation, args, "repl", tuple(f"cell_{o * 8}" for o in depends), f"cell_{own * 8}"), outcome
    )


@pytest.fixture
def program(sessgit: Shell) -> Shell:
    """Three turns; the last one depends on cells of both others."""
    turns = [
        GivenTurn(
            "look", (step("repl", "peek", "a"), step("tool", "Write", "b", "a", file_path="/n.md")), time=1772359200.0
        ),
        GivenTurn("ask", (step("map_reduce", "map", "c", "b"), step("llm_call", "ask", "d", "c", failed=True))),
        GivenTurn(
            "check",
            (
                step("verification", "check", "e", "a", "c"),
                step("tool", "Read", "f", "e", file_path="/n.md"),
                step("tool", "load", "g", "f", path="/n.md", reads="/n.md", writes="/n.md"),
            ),
        ),
    ]
    numbers = count(1)
    common = {"cwd": str(sessgit.project), "sessionId": SESSION, "version": "2.1.0"}
    talk = sessgit.talk()
    talk.lines[:] = transcript(
        SESSION, turns, lambda _: f"00000000-0000-4000-8000-{next(numbers):012d}", common
    ).splitlines()
    sessgit.recorded(talk)
    return sessgit


def test_the_list(program: Shell) -> None:
    assert (
        program.out("cells", "5e55")
        == """\
5e551011  look

1.1  cell_aaaaaaaa  repl          peek                                  ok  0.0s
1.2  cell_bbbbbbbb  tool          Write  /n.md                          ok  0.0s
2.1  cell_cccccccc  map_reduce    map                                   ok  0.0s
2.2  cell_dddddddd  llm_call      ask                               failed  0.0s
3.1  cell_eeeeeeee  verification  check                                 ok  0.0s
3.2  cell_ffffffff  tool          Read   /n.md                          ok  0.0s
3.3  cell_gggggggg  tool          load   /n.md                          ok  0.0s
"""
    )
    chosen = (("--type", "repl"), "1.1"), (("--type", "verification"), "3.1"), (("--failed",), "2.2")
    for options, address in chosen:
        assert [cell["address"] for cell in program.json("cells", "5e55", *options)["cells"]] == [address]


def test_dependencies_lead_to_earlier_turns(program: Shell) -> None:
    assert (
        program.out("deps", "5e55@3.2")
        == """\
5e551011  look  ·  3.2 depends on 4 cells

  1.1  peek                                                             ok  0.0s
  1.2  Write  /n.md                                                     ok  0.0s
  2.1  map                                                              ok  0.0s
  3.1  check                                                            ok  0.0s
● 3.2  Read   /n.md  as 1.2 wrote it                                    ok  0.0s
"""
    )
    assert (
        program.out("deps", "5e55@1.1", "--down", "--graph")
        == """\
5e551011  look  ·  6 cells depend on 1.1

○  3.3  load   /n.md                                                    ok  0.0s
○  3.2  Read   /n.md  as 1.2 wrote it                                   ok  0.0s
├─╮
○ │  3.1  check                                                         ok  0.0s
├─┼─╮
│ │ │ ○  2.2  ask                                                   failed  0.0s
├─┼─┼─╯
○ │ │  2.1  map                                                         ok  0.0s
╰─┤ │
○ │  1.2  Write  /n.md                                                  ok  0.0s
╰─┤
●  1.1  peek                                                            ok  0.0s
"""
    )
    edges = program.json("show", "5e55@3.1", "--deps")["cell"]["in_session"]
    assert [(edge["address"], edge["kinds"]) for edge in edges["dependencies"]] == [
        ("1.1", ["causal"]), ("2.1", ["causal"])
    ]  # fmt: skip
    assert [edge["address"] for edge in edges["dependents"]] == ["3.2"]


def test_the_index_has_them_by_their_own_ids(program: Shell) -> None:
    index = json.loads(program.out("cells", "5e55", "--index"))
    own = {letter: f"cell_{letter * 8}" for letter in "abcdefg"}
    assert list(index["cells"]) == index["execution_order"] == list(own.values())
    assert index["cells"][own["e"]] == {
        "type": "verification", "dependencies": [own["a"], own["c"]], "dependents": [own["f"]]
    }  # fmt: skip
    assert (index["roots"], index["leaves"]) == ([own["a"]], [own["d"], own["g"]])


def test_what_of_files_is_known(program: Shell) -> None:
    """The client's own tools do what they do; of what else a program calls its arguments say nothing."""
    assert (
        program.out("why", "n.md", "5e55")
        == """\
/n.md  ·  1 write, 1 read
5e551011  look

● 1.2  Write  “look”                                                       10:00
       had run     peek
       read by     3.2

Shell commands, searches and subagents are not traced; ? marks commands that
mention the file.
"""
    )


def test_a_call_of_a_model_that_a_program_made_has_an_outcome() -> None:
    """Of a message of the client's there is none to tell: it is always there."""
    for is_program, told in ((True, "ok"), (False, "")):
        cell = Cell("cell_aaaaaaaa", "llm_call", "ask", (2,), ok=True, program=is_program)
        assert pages.outcome(cast(Node, SimpleNamespace(cell=cell)), NO_DETAIL) == told


def test_what_a_program_says_that_it_cost_counts_where_that_is_more() -> None:
    said = Unified(budget=Budget(cost_usd=0.5))
    tokens = {"claude-opus-4-8": Tokens(1_000_000, 0, 0, 0)}
    assert turn_log.session_cost(Session("a", "a", unified=said), {}) == 0.5
    used = Session("a", "a", tokens=tokens)
    assert turn_log.session_cost(replace(used, unified=said), {}) == turn_log.session_cost(used, {})
