"""`sessgit cells`, `cell` and `deps`: the cells of a conversation, and what depends on what."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from kept import begins
from lexing import lexer_talk
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.cli import completion
from sessgit.store.store import Store


@begins
def lexer(shell: Shell) -> None:
    shell.recorded(lexer_talk(shell))


# A list


def test_the_list(lexer: Shell) -> None:
    assert (
        lexer.out("cells", "5e55")
        == """\
5e551011  write the lexer

1.1  cell_3x4g5j8u  llm_call  test-1  calls Read
1.2  cell_nid7fy42  tool      Read    spec.md                           ok  1.0s
1.3  cell_4foheb53  llm_call  test-1  calls Write
1.4  cell_qre71we2  tool      Write   lexer.py                          ok  1.0s
1.5  cell_f4phxw0s  llm_call  test-1  It is written.
2.1  cell_5jekqtd1  llm_call  test-1  calls Read
2.2  cell_25ckcl9z  tool      Read    lexer.py                          ok  1.0s
2.3  cell_3ty39ndg  llm_call  test-1  calls Edit
2.4  cell_24y1b8no  tool      Edit    parser.py                     failed  1.0s
2.5  cell_f4ed3iw1  llm_call  test-1  calls Write
2.6  cell_xlja821k  tool      Write   parser.py                         ok  1.0s
2.7  cell_cxzqvcov  llm_call  test-1  calls Bash
2.8  cell_9o6m4s9v  tool      Bash    python -m pytest lexer.py         ok  1.0s
2.9  cell_odi1v6tf  llm_call  test-1  Both work.
3.1  cell_k1574ufj  llm_call  test-1  calls Read Grep
3.2  cell_lm9ghcje  tool      Read    parser.py                         ok  2.0s
3.3  cell_vlftuhip  tool      Grep    lex                               ok  2.0s
3.4  cell_mq2fxzli  llm_call  test-1  calls Edit
3.5  cell_6tyn4j28  tool      Edit    lexer.py                          ok  1.0s
3.6  cell_99wot4ml  llm_call  test-1  calls Bash
3.7  cell_phtqaehd  tool      Bash    sleep 9                          no result
"""
    )


def test_the_list_at_60_columns(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        lexer.out("cells", "5e55", "--turn", "2")
        == """\
5e551011  write the lexer

2.1  test-1  calls Read
2.2  Read    lexer.py                               ok  1.0s
2.3  test-1  calls Edit
2.4  Edit    parser.py                          failed  1.0s
2.5  test-1  calls Write
2.6  Write   parser.py                              ok  1.0s
2.7  test-1  calls Bash
2.8  Bash    python -m pytest lexer.py              ok  1.0s
2.9  test-1  Both work.
"""
    )


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("--type", "tool"), "1.2 1.4 2.2 2.4 2.6 2.8 3.2 3.3 3.5 3.7"),
        (("--type", "llm_call", "--turn", "1"), "1.1 1.3 1.5"),
        (("--type", "repl"), ""),
        (("--operation", "read"), "1.2 2.2 3.2"),
        (("--operation", "claude-test-1", "--turn", "-1"), "3.1 3.4 3.6"),
        (("--failed",), "2.4"),
        (("--turn", "0"), ""),
        (("-n", "3"), "3.5 3.6 3.7"),
        (("-n", "0"), ""),
        (("-n", "99", "--operation", "Bash"), "2.8 3.7"),
    ],
)
def test_what_is_chosen(lexer: Shell, chosen: Sequence[str], expected: str) -> None:
    found = lexer.json("cells", "5e55", *chosen)
    assert " ".join(cell["address"] for cell in found["cells"]) == expected
    shown = lexer.out("cells", "5e55", *chosen).splitlines()[2:]
    assert [line.split()[0] for line in shown if line[0].isdigit()] == expected.split()
    assert found["earlier"] == ("-n" in chosen and "99" not in chosen)
    assert ("No matching cells." in shown) == (not expected and not found["earlier"])
    assert ("(none shown: -n shows more)" in shown) == (not expected and found["earlier"])


def test_up_to_a_turn_and_of_a_fork(lexer: Shell) -> None:
    assert [cell["turn"] for cell in lexer.json("cells", "5e55@1")["cells"]] == [1] * 5
    fork = json.loads(lexer.out("fork", "5e55", "--at", "2.3", "--no-restore", "--json"))["id"]
    cells = lexer.json("cells", fork)["cells"]
    assert [cell["address"] for cell in cells] == ["1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4"]
    assert cells[:8] == lexer.json("cells", "5e55@2")["cells"][:8]


def test_a_person_sees_the_last_hundred(sessgit: Shell) -> None:
    talk = sessgit.talk()
    for number in range(60):
        talk.prompt(f"go {number}").tool("Bash", {"command": f"echo {number}"})
    sessgit.recorded(talk)
    lines = sessgit.out("cells", "5e55").splitlines()
    assert (len(lines), lines[2]) == (103, "(the last 100: -n shows more)")
    assert lines[3].startswith("11.1 ")
    assert len(sessgit.out("cells", "5e55", "-n", "200").splitlines()) == 122
    assert len(sessgit.json("cells", "5e55")["cells"]) == 120
    assert len(sessgit.json("cells", "5e55", "-n", "7")["cells"]) == 7


def test_commands_that_failed_and_were_not_called_so(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("go").tool("Bash", {"command": "false"}, "Exit code 1\nno")
    talk.tool("Bash", {"command": "true"}).tool("Read", {"file_path": "/x"}, "no such file", error=True)
    sessgit.recorded(talk)
    assert sessgit.out("cells", "5e55", "--failed").splitlines()[2:] == [
        "1.2  cell_nid7fy42  tool      Bash  false                           exit 1  1.0s",
        "1.6  cell_cvapzq57  tool      Read  /x                              failed  1.0s",
    ]


def test_a_conversation_without_a_cell(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().prompt("hello?"))
    assert sessgit.out("cells", "5e55") == "5e551011  hello?\n\nNo cells yet.\n"
    assert json.loads(sessgit.out("cells", "5e55", "--index")) == {
        "version": "1.0", "session_id": SESSION, "cells": {}, "roots": [], "leaves": [], "execution_order": []
    }  # fmt: skip


def test_the_index_of_other_programs(lexer: Shell) -> None:
    index = json.loads(lexer.out("cells", "5e55", "--index"))
    by_address = {cell["address"]: cell["id"] for cell in lexer.json("cells", "5e55")["cells"]}
    own = {name: address for address, name in by_address.items()}
    assert (index["version"], index["session_id"]) == ("1.0", SESSION)
    needs = {own[name]: [own[other] for other in cell["dependencies"]] for name, cell in index["cells"].items()}
    assert needs == {
        "1.1": [], "1.2": ["1.1"], "1.3": ["1.2"], "1.4": ["1.3"], "1.5": ["1.4"],
        "2.1": ["1.5"], "2.2": ["2.1", "1.4"], "2.3": ["2.2"], "2.4": ["2.3"], "2.5": ["2.4"], "2.6": ["2.5"],
        "2.7": ["2.6"], "2.8": ["2.7"], "2.9": ["2.8"],
        "3.1": ["2.9"], "3.2": ["3.1", "2.6"], "3.3": ["3.1"], "3.4": ["3.2", "3.3"], "3.5": ["3.4", "1.4"],
        "3.6": ["3.5"], "3.7": ["3.6"],
    }  # fmt: skip
    for name, cell in index["cells"].items():
        assert cell["type"] == ("llm_call" if not cell["dependencies"] or own[name] in MESSAGES else "tool")
        assert cell["dependents"] == [
            other for other in index["cells"] if name in index["cells"][other]["dependencies"]
        ]
    assert [own[name] for name in index["roots"]] == ["1.1"]
    assert [own[name] for name in index["leaves"]] == ["3.7"]
    assert [own[name] for name in index["execution_order"]] == list(by_address)
    wrapped = json.loads(lexer.out("cells", "5e55", "--index", "--json"))
    assert wrapped == {"schema": "sessgit.cells/v1", "index": index}
    assert lexer.json("show", "5e55")["session"]["cells"] == 21


MESSAGES = {"1.1", "1.3", "1.5", "2.1", "2.3", "2.5", "2.7", "2.9", "3.1", "3.4", "3.6"}


# One cell


def test_a_cell(lexer: Shell) -> None:
    assert (
        lexer.out("show", "5e55@3.5", "--deps")
        == """\
5e551011@3.5  Edit  ·  ok  ·  1.0s  ·  10:00
cell_6tyn4j28  ·  lines 7, 8  ·  after 3.4  ·  before 3.6

lexer.py
@@ -1 +1 @@
-yield text
+yield from text

Output
done

Depends on
  3.4  test-1  calls Edit
  1.4  Write   lexer.py  wrote the file                                 ok  1.0s

Used by
  3.6  test-1  calls Bash
"""
    )


def test_a_message_between_two_turns(lexer: Shell) -> None:
    assert (
        lexer.out("show", "5e55@2.1", "--deps")
        == """\
5e551011@2.1  claude-test-1  ·  170 tokens  ·  10:00
cell_5jekqtd1  ·  line 3  ·  before 2.2

No text.

Depends on
  1.5  test-1  It is written.  came right before it

Used by
  2.2  Read  lexer.py                                                   ok  1.0s
"""
    )


def test_a_cell_by_its_id(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    lexer.recorded(lexer.talk(OTHER).turns("else"))
    page = lexer.out("show", "5e551011-0000-4000-8000-000000000001@3.5", "--deps")
    name = page.split()[8]
    assert name.startswith("cell_")
    for address in (f"{SESSION}@.{name}", f"{SESSION}@{name}", f"{SESSION}@3.{name}"):
        assert lexer.out("show", address, "--deps") == page
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    assert lexer.out("show", name, "--deps") == page
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", OTHER)
    done = lexer("show", name, "--deps")
    assert (done.code, done.err) == (
        4,
        f"Error: 5e551011 has no cell {name}.\nHint: `sessgit cells 5e551011` lists its cells.\n",
    )


def test_a_cell_for_programs_is_the_one_of_show_and_more(lexer: Shell) -> None:
    shown = json.loads(lexer.out("show", "5e55@3.5", "--json"))["cell"]
    found = lexer.json("show", "5e55@3.5", "--deps")["cell"]
    around = found.pop("in_session")
    assert found == shown
    ids = {cell["address"]: cell["id"] for cell in lexer.json("cells", "5e55")["cells"]}
    file = str(lexer.project / "lexer.py")
    assert around == {
        "dependencies": [
            {"cell_id": ids["3.4"], "address": "3.4", "kinds": ["causal"], "file": None},
            {"cell_id": ids["1.4"], "address": "1.4", "kinds": ["data"], "file": file},
        ],
        "dependents": [{"cell_id": ids["3.6"], "address": "3.6", "kinds": ["causal"], "file": None}],
    }
    follows = lexer.json("show", "5e55@2.1", "--deps")["cell"]["in_session"]["dependencies"]
    assert follows == [{"cell_id": ids["1.5"], "address": "1.5", "kinds": ["follows"], "file": None}]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("show", "5e55@3", "--deps"), 2, "--deps needs a cell.\n"
         "Hint: `sessgit cells 5e551011` lists the cells."),
        (("deps", "5e55"), 2, "deps needs a cell, but “5e55” does not name one.\n"
         "Hint: `sessgit cells 5e551011` lists them. For example: `sessgit deps 5e551011@1.1`"),
        (("deps", "3.5"), 2, "3.5 does not name a conversation.\nHint: In the current session: `sessgit deps @3.5`."),
        (("show", "5e55@3.99", "--deps"), 4, "turn 3 has no cell 99; it has 7 cells.\n"
         "Hint: `sessgit cells 5e551011 --turn 3` lists them."),
        (("deps", "5e55@3.99"), 4, "turn 3 has no cell 99; it has 7 cells.\n"
         "Hint: `sessgit cells 5e551011 --turn 3` lists them."),
        (("deps", "5e55@0.1"), 4, "turn 0 has no cell 1; it has 0 cells.\n"
         "Hint: `sessgit cells 5e551011 --turn 0` lists them."),
        (("deps", "5e55@9.1"), 4, "5e551011 has no turn 9; it has 3 turns.\n"
        "Hint: `sessgit log 5e551011` lists them."),
        (("deps", "5e55@1.1", "--up", "--down"), 2, "--up and --down cannot be combined.\n"
         "Hint: Use one of the two."),
        (("cells", "5e55@2.1"), 2, "cells needs a whole turn, but the address names a cell.\n"
         "Hint: `sessgit cells 5e551011@2`, or `sessgit show 5e551011@2.1` for the cell."),
        (("cells", "5e55", "--index", "--failed"), 2, "--index and --failed cannot be combined.\n"
         "Hint: Use one of the two."),
        (("cells", "5e55", "--turn", "9"), 4, "5e551011 has no turn 9; it has 3 turns.\n"
         "Hint: `sessgit log 5e551011` lists them."),
        (("why", "lexer.py", "5e55@2.1"), 2, "why needs a whole turn, but the address names a cell.\n"
         "Hint: `sessgit why lexer.py 5e551011@2`, or `sessgit show 5e551011@2.1` for the cell."),
        (("why", "nothing.txt", "5e55"), 4, "no tool read or wrote “nothing.txt” in this conversation.\n"
         "Hint: The most recent files: spec.md, lexer.py, parser.py"),
        (("why", "src/parsers.py", "5e55"), 4, "no tool read or wrote “src/parsers.py” in this conversation.\n"
         "Hint: similar: parser.py, lexer.py"),
        (("why", ".", "5e55"), 4, "“.” is a folder, with 3 files that tools read or wrote.\n"
         "Hint: Name one: lexer.py, parser.py, spec.md"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(lexer: Shell, arguments: Sequence[str], code: int, error: str) -> None:
    done = lexer(*arguments)
    assert (done.code, done.out, done.err) == (code, "", f"Error: {error}\n")


# What comes before


def follows(sessgit: Shell, address: str) -> list[str]:
    edges = sessgit.json("show", f"5e55@{address}", "--deps")["cell"]["in_session"]["dependencies"]
    return [edge["address"] for edge in edges if edge["kinds"] == ["follows"]]


def test_what_was_last_before_a_turn(sessgit: Shell) -> None:
    """Calls whose results nobody took up, in a turn that was interrupted; a turn without a cell is passed over."""
    talk = sessgit.talk().prompt("one").tool("Read", {"file_path": "/a"}, "a").call_only("Bash").interrupt()
    talk.prompt("two").interrupt().prompt("three").answer("First.").answer("Second.").stop_lines()
    sessgit.recorded(talk)
    assert [cell["address"] for cell in sessgit.json("cells", "5e55")["cells"]] == [
        "1.1", "1.2", "1.3", "1.4", "3.1", "3.2"
    ]  # fmt: skip
    assert follows(sessgit, "3.1") == ["1.4"]
    assert follows(sessgit, "3.2") == ["3.1"]


def test_parallel_calls_without_an_answer(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one").parallel(("Read", {"file_path": "/a"}, "a"), ("Read", {"file_path": "/b"}, "b"))
    sessgit.recorded(talk.interrupt().turns("two"))
    assert follows(sessgit, "2.1") == ["1.2", "1.3"]


def test_a_fork_shares_what_came_before(lexer: Shell) -> None:
    fork = json.loads(lexer.out("fork", "5e55", "--at", "2", "--json"))["id"]
    assert lexer.json("deps", f"{fork}@2.6")["chain"] == lexer.json("deps", "5e55@2.6")["chain"]


def test_what_a_rewind_left_behind_has_a_graph_of_its_own(lexer: Shell) -> None:
    left = f"{SESSION}.r-a0000003"
    assert lexer.json("why", "lexer.py", left)["steps"][-1]["cell"]["address"] == "3.2"
    assert [cell["address"] for cell in lexer.json("cells", left, "--turn", "3")["cells"]] == ["3.1", "3.2", "3.3"]


# Chains


def test_a_chain(lexer: Shell) -> None:
    assert (
        lexer.out("deps", "5e55@3.5")
        == """\
5e551011  write the lexer  ·  3.5 depends on 18 cells

  1.1  test-1  calls Read
  1.2  Read    spec.md                                                  ok  1.0s
  1.3  test-1  calls Write
  1.4  Write   lexer.py                                                 ok  1.0s
⋮ 1 cell of turn 1 before it
  2.1  test-1  calls Read
  2.2  Read    lexer.py  as 1.4 wrote it                                ok  1.0s
  2.3  test-1  calls Edit
  2.4  Edit    parser.py                                            failed  1.0s
  2.5  test-1  calls Write
  2.6  Write   parser.py                                                ok  1.0s
⋮ 3 cells of turn 2 before it
  3.1  test-1  calls Read Grep
  3.2  Read    parser.py  as 2.6 wrote it                               ok  2.0s
  3.3  Grep    lex                                                      ok  2.0s
  3.4  test-1  calls Edit
● 3.5  Edit    lexer.py  as 1.4 wrote it                                ok  1.0s
"""
    )
    assert lexer.out("deps", "5e55@3.5", "--up") == lexer.out("deps", "5e55@3.5")


def test_a_chain_downwards(lexer: Shell) -> None:
    assert (
        lexer.out("deps", "5e55@2.6", "--down")
        == """\
5e551011  write the lexer  ·  10 cells depend on 2.6

● 2.6  Write   parser.py                                                ok  1.0s
  2.7  test-1  calls Bash
  2.8  Bash    python -m pytest lexer.py                                ok  1.0s
  2.9  test-1  Both work.
⋮ 1 cell of turn 3 after it
  3.2  Read    parser.py  as 2.6 wrote it                               ok  2.0s
⋮ 1 cell of turn 3 after it
  3.4  test-1  calls Edit
  3.5  Edit    lexer.py  as 1.4 wrote it                                ok  1.0s
  3.6  test-1  calls Bash
  3.7  Bash    sleep 9                                                 no result
"""
    )


def test_a_drawing(lexer: Shell) -> None:
    assert (
        lexer.out("deps", "5e55@3.5", "--graph")
        == """\
5e551011  write the lexer  ·  3.5 depends on 18 cells

●  3.5  Edit    lexer.py  as 1.4 wrote it                               ok  1.0s
├─╮
○ │  3.4  test-1  calls Edit
├─┼─╮
○ │ │  3.3  Grep    lex                                                 ok  2.0s
│ │ ○  3.2  Read    parser.py  as 2.6 wrote it                          ok  2.0s
├─┼─┤
○ │ │  3.1  test-1  calls Read Grep
│ ○  2.6  Write   parser.py                                             ok  1.0s
│ ○  2.5  test-1  calls Write
│ ○  2.4  Edit    parser.py                                         failed  1.0s
│ ○  2.3  test-1  calls Edit
│ ○  2.2  Read    lexer.py  as 1.4 wrote it                             ok  1.0s
├─┤
│ ○  2.1  test-1  calls Read
○  1.4  Write   lexer.py                                                ok  1.0s
○  1.3  test-1  calls Write
○  1.2  Read    spec.md                                                 ok  1.0s
○  1.1  test-1  calls Read
⋮ 4 cells of turns 1–2 before it
"""
    )


def test_a_drawing_downwards_at_60_columns(lexer: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        lexer.out("deps", "5e55@1.4", "--down", "--graph")
        == """\
5e551011  write the lexer  ·  17 cells depend on 1.4

⋮ 3 cells of turns 2–3 after it
○  3.7  Bash    sleep 9                            no result
○  3.6  test-1  calls Bash
○  3.5  Edit    lexer.py  as 1.4 wrote it           ok  1.0s
├─╮
○ │  3.4  test-1  calls Edit
○ │  3.2  Read    parser.py  as 2.6 wrote…          ok  2.0s
│ │ ○  2.9  test-1  Both work.
│ │ ○  2.8  Bash    python -m pytest lexer.py       ok  1.0s
│ │ ○  2.7  test-1  calls Bash
├─┼─╯
○ │  2.6  Write   parser.py                         ok  1.0s
○ │  2.5  test-1  calls Write
○ │  2.4  Edit    parser.py                     failed  1.0s
○ │  2.3  test-1  calls Edit
○ │  2.2  Read    lexer.py  as 1.4 wrote…           ok  1.0s
╰─┤
│ ○  1.5  test-1  It is written.
├─╯
●  1.4  Write   lexer.py                            ok  1.0s
"""
    )


def test_a_part_of_a_chain_and_all_of_it(lexer: Shell) -> None:
    assert (
        lexer.out("deps", "5e55@3.5", "-n", "2")
        == """\
5e551011  write the lexer  ·  3.5 depends on 18 cells

⋮ 16 cells of turns 1–3 before it, 12 of them in the chain
  3.3  Grep    lex                                                      ok  2.0s
  3.4  test-1  calls Edit
● 3.5  Edit    lexer.py  as 1.4 wrote it                                ok  1.0s
"""
    )
    whole = lexer.out("deps", "5e55@3.5", "--all").splitlines()[2:]
    assert [line[2:].split()[0] for line in whole] == [
        *(f"1.{n}" for n in range(1, 6)), *(f"2.{n}" for n in range(1, 10)), *(f"3.{n}" for n in range(1, 6))
    ]  # fmt: skip
    drawn = lexer.out("deps", "5e55@2.9", "--graph", "--all", "-n", "99")
    assert drawn.splitlines()[-1].startswith("○  1.1 ")


def test_the_ends_of_a_conversation(lexer: Shell) -> None:
    assert lexer.out("deps", "5e55@1.1").splitlines()[0] == "5e551011  write the lexer  ·  1.1 depends on 0 cells"
    assert lexer.out("deps", "5e55@3.7", "--down", "--graph").splitlines()[2:] == [
        "●  3.7  Bash  sleep 9                                                  no result"
    ]
    assert lexer.out("deps", "5e55@3.6", "--down").startswith("5e551011  write the lexer  ·  1 cell depends on 3.6\n")


def test_a_chain_without_branches_has_lines_between_its_cells(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().prompt("go").tool("Bash", {"command": "echo"}).answer("Done."))
    assert sessgit.out("deps", "5e55@1.3", "--graph").splitlines()[2:] == [
        "●  1.3  test-1  Done.",
        "│",
        "○  1.2  Bash    echo                                                    ok  1.0s",
        "│",
        "○  1.1  test-1  calls Bash",
    ]


def test_a_chain_for_programs(lexer: Shell) -> None:
    found = lexer.json("deps", "5e55@3.5")
    assert (found["session_id"], found["branch"], found["direction"]) == (SESSION, SESSION, "up")
    own = found["cell"]
    assert (own["address"], own["operation"], own["file"]) == ("3.5", "Edit", str(lexer.project / "lexer.py"))
    assert [(edge["address"], edge["kinds"]) for edge in own["depends_on"]] == [("3.4", ["causal"]), ("1.4", ["data"])]
    by_address = {cell["address"]: cell for cell in found["chain"]}
    assert len(by_address) == 18
    assert [address for address, cell in by_address.items() if not cell["near"]] == ["1.5", "2.7", "2.8", "2.9"]
    assert by_address["2.1"]["depends_on"][0]["kinds"] == ["follows"]
    assert by_address["2.8"]["about"] == "python -m pytest lexer.py"
    down = lexer.json("deps", "5e55@3.5", "--down")
    assert (down["direction"], [cell["address"] for cell in down["chain"]]) == ("down", ["3.6", "3.7"])
    assert down["cell"]["depends_on"] == []


# Work


def test_what_a_list_reads(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last page of a long conversation costs what that of a short one does; the graph of what is recorded reads no
    turn's folder, and where the index was made anew each one once."""
    talk = sessgit.talk()
    for number in range(300):
        talk.prompt(f"go {number}").tool("Read", {"file_path": f"/{number % 7}.py"}, "x").answer("Done.")
    sessgit.recorded(talk)
    read: list[tuple[str, int]] = []
    for name in ("cells", "lines", "folder"):
        real = getattr(Store, name)

        def counted(self: Store, commit: str, number: int, name: str = name, real: Any = real) -> Any:
            read.append((name, number))
            return real(self, commit, number)

        monkeypatch.setattr(Store, name, counted)

    def asked(*command: str) -> list[int]:
        """The turns of which a command read the stored cells."""
        read.clear()
        sessgit.out(*command)
        return [number for name, number in read if name == "cells"]

    last, whole = ("cells", "5e55", "-n", "30"), ("cells", "5e55", "--index")
    assert asked(*last) == []
    assert [number for name, number in read if name == "lines"] == list(range(291, 301))
    assert asked(*whole) == []
    assert asked("deps", "5e55@300.2", "-n", "3") == []
    assert {number for _, number in read} <= {299, 300}
    with closing(sqlite3.connect(sessgit.store / "index.sqlite3")) as db, db:
        db.execute("DELETE FROM cells")
    assert asked(*last) == list(range(285, 301))
    assert asked(*whole) == list(range(1, 285))
    assert not any(name == "lines" for name, _ in read)
    assert asked(*whole) == []


# Completion


def test_cells_and_files_are_completed(lexer: Shell) -> None:
    assert completion.cells("5e55@3.") == [
        ("5e55@3.1", "claude-test-1"), ("5e55@3.2", "Read"), ("5e55@3.3", "Grep"), ("5e55@3.4", "claude-test-1"),
        ("5e55@3.5", "Edit"), ("5e55@3.6", "claude-test-1"), ("5e55@3.7", "Bash"),
    ]  # fmt: skip
    assert completion.cells("5e55@3.5") == [("5e55@3.5", "Edit")]
    assert completion.cells("5e55@2") == [("5e55@2", "parse with it")]
    assert completion.cells("5e55") == [("5e551011", "write the lexer")]
    assert [completion.cells(word) for word in ("5e55@9.", "5e55@x.", "nobody@1.")] == [[], [], []]
    assert completion.files("") == [("parser.py", ""), ("lexer.py", ""), ("spec.md", "")]
    assert completion.files("le") == [("lexer.py", "")]
    lexer.store.rename(lexer.store.with_name("away"))
    assert (completion.files(""), completion.cells("5e55@3.")) == ([], [])
