"""`sessgit show`: the card of a conversation, a turn and a cell, for a person."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from shell import Shell
from shown import document
from transcripts import MODEL, OTHER, SESSION

# A conversation


def test_the_card(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55")
        == """\
5e551011  parser rewrite

Project     ~/shop  ·  branch main
Time        10:00  ·  interrupted
Size        4 turns  ·  20 messages  ·  16 cells
Model       claude-test-1  ·  9 calls  ·  900 in, 140 out
            cache 9k read, 450 written
Files       1 changed:  lexer.py
            1 read:  grammar.md
Family      fork f0000003  by cell, at 2.3
            fork f0000001  by hand, after turn 2
            1 turn left behind by a rewind after turn 2: 5e551011.r-a0000003
Client      Claude Code 2.1.7

Last prompt (turn 4)
  go on

Last answer
  (interrupted)
"""
    )


def test_the_card_at_60_columns(parser: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        parser.out("show", "5e55")
        == """\
5e551011  parser rewrite

Project     ~/shop  ·  branch main
Time        10:00  ·  interrupted
Size        4 turns  ·  20 messages  ·  16 cells
Model       claude-test-1  ·  9 calls  ·  900 in, 140 out
            cache 9k read, 450 written
Files       1 changed:  lexer.py
            1 read:  grammar.md
Family      fork f0000003  by cell, at 2.3
            fork f0000001  by hand, after turn 2
            1 turn left behind by a rewind after turn 2:
            5e551011.r-a0000003
Client      Claude Code 2.1.7

Last prompt (turn 4)
  go on

Last answer
  (interrupted)
"""
    )


def test_names_files_and_models(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("go").title("What the client says")
    for number in range(15):
        talk.tool("Read", {"file_path": str(sessgit.project / f"{number}.py")}, "x")
    talk.tool("Write", {"file_path": "/elsewhere/out.txt", "content": "x"}).prompt("and now?")
    message = {
        "id": "m9",
        "model": "claude-opus-4-8",
        "content": "a\n" * 9,
        "usage": {"input_tokens": 9, "output_tokens": 9},
    }
    talk.chain("assistant", message=message)
    sessgit.recorded(talk)
    sessgit.out("fork", "5e55", "--name", "mine")
    shown = sessgit.out("show", "5e55")
    assert shown.splitlines()[0] == "5e551011  What the client says"
    lines = shown[shown.index("Files ") : shown.index("Family ")].splitlines()
    assert lines[0].split() == ["Files", "1", "changed:", "/elsewhere/out.txt"]
    files = [word for line in lines[1:] for word in line.split()]
    assert files == ["15", "read:", *(f"{n}.py" for n in range(14, 2, -1)), "and", "3", "more"]
    assert shown[shown.index("Tokens ") : shown.index("Files ")].splitlines()[:3] == [
        "Tokens      2k in, 329 out  ·  cache 16k read, 800 written",
        "Models      claude-test-1  ·  16 calls  ·  2k in, 320 out",
        "            cache 16k read, 800 written",
    ]
    assert "claude-opus-4-8  ·  1 call  ·  9 in, 9 out  ·  $0.00\n" in shown
    assert shown.endswith("Last answer\n  a\n  a\n  a\n  a\n  … 5 more lines\n")
    full = sessgit.out("show", "5e55", "--full")
    assert "0.py" in full
    assert full.endswith("  a\n" * 9)


def test_a_secret_and_a_deleted_transcript(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("export DB_PASSWORD=Tr0ub4dor-and-3"))
    assert "Redacted    2 secrets\n" in sessgit.out("show", "5e55")
    path.unlink()
    shown = sessgit.out("show", "5e55")
    assert (
        "Kept        only in this store  ·  the client has no transcript\n            sessgit restore 5e551011\n"
        in shown
    )
    assert "Tr0ub4dor" not in shown


def test_relatives_that_are_not_here(parser: Shell) -> None:
    assert "Family      forked from 5e551011@2.3  parser rewrite\n" in parser.out("show", "by cell")
    subprocess.run(["git", "-C", parser.store, "update-ref", "-d", f"refs/heads/{SESSION}"], check=True)
    assert "forked from 5e551011@2  (not in this store)\n" in parser.out("show", "by hand")


def test_a_session_without_a_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().bare("mode", mode="normal"))
    shown = sessgit.out("show", "5e55")
    assert shown.startswith(
        "5e551011  (no prompt yet)\n\nTime        ended\nSize        0 turns  ·  0 messages  ·  0 cells\n"
    )
    assert shown.endswith("\nNo turns yet.\n")
    assert sessgit.out("show", "5e55@0").endswith("No turns yet.\n")
    assert sessgit.out("show", "5e55", "--raw") == ""


def test_what_a_rewind_left_behind(parser: Shell) -> None:
    shown = parser.out("show", "5e55.r-a000")
    assert shown.startswith("5e551011.r-a0000003  parser rewrite\n")
    assert "Family      left behind by a rewind of 5e551011\n" in shown
    assert (
        parser.out("show", "5e55.r-a000@3")
        == """\
5e551011.r-a0000003@3  ·  10:00  ·  claude-test-1  ·  160 tokens  ·  1.0s

❯    try a Pratt parser

3.1  About try a Pratt parser.
"""
    )


# A turn


def test_a_turn(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55@2")
        == """\
5e551011@2  ·  10:00  ·  claude-test-1  ·  670 tokens  ·  13s

❯    the grammar is ambiguous, why?

2.2  Read  grammar.md                                                   ok  1.0s
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     … 7 more lines

2.4  Bash  pytest -q                                                    ok  2.0s
     1 failed

2.5  Grep  expr                                                         ok  2.0s
     none

2.7  Bash  false                                                    exit 1  1.0s
     Exit code 1
     no

❯    and be quick

2.8  thinking: Left or right?  (2 lines)

2.8  It binds both ways.
"""
    )


def test_a_turn_at_60_columns(parser: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        parser.out("show", "5e55@2")
        == """\
5e551011@2  ·  10:00  ·  claude-test-1  ·  670 tokens
            13s

❯    the grammar is ambiguous, why?

2.2  Read  grammar.md                               ok  1.0s
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     expr: expr '+' expr
     … 7 more lines

2.4  Bash  pytest -q                                ok  2.0s
     1 failed

2.5  Grep  expr                                     ok  2.0s
     none

2.7  Bash  false                                exit 1  1.0s
     Exit code 1
     no

❯    and be quick

2.8  thinking: Left or right?  (2 lines)

2.8  It binds both ways.
"""
    )


def test_a_turn_that_was_interrupted_after_a_compaction(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55@4")
        == """\
5e551011@4  ·  10:00  ·  claude-test-1  ·  330 tokens  ·  4.0s
            the conversation was compacted before this turn

❯    go on

4.2  Edit  lexer.py                                                     ok  1.0s
     @@ -1 +1 @@
     -    yield text
     +    yield from text

4.4  Bash  sleep 9                                                     no result

·    [Request interrupted by user]

Interrupted before an answer.
"""
    )
    assert parser.out("show", "5e55") != parser.out("show", "5e55@-1") == parser.out("show", "5e55@4")


def test_nothing_is_folded_on_demand(parser: Shell) -> None:
    shown = parser.out("show", "5e55@2", "--full")
    assert shown.count("expr: expr '+' expr") == 12
    assert "2.8  Left or right?\n     Both.\n" in shown
    assert "more line" not in shown
    thinking = parser.out("show", "5e55@2", "--thinking")
    assert "2.8  Left or right?\n     Both.\n" in thinking
    assert "… 7 more lines" in thinking


def test_a_turn_that_a_fork_cut(parser: Shell) -> None:
    lines = parser.out("show", "by cell@2").splitlines()
    assert lines[1] == "            only its beginning: forked at 2.3"
    assert lines[-1] == "No answer."


def test_subagents_and_several_commits(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("look").tool("Task", {"description": "Find it", "prompt": "Find it"}, "In line 12.")
    path = sessgit.keep(talk)
    agent = path.with_suffix("") / "subagents" / "agent-7c2d.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(
        json.dumps({"promptId": talk.prompt_id, "type": "user", "message": {"content": "Find it"}}) + "\n{}\n"
    )
    sessgit.recorded(talk)
    sessgit.keep(talk.answer("Found."))
    lines = sessgit.out("show", "5e55@1").splitlines()  # which records it first
    assert re.fullmatch(r" {12}recorded in 2 commits, the last one [0-9a-f]{12}", lines[1])
    assert lines[2] == "            subagent 7c2d: 2 lines"
    turn = document(sessgit, "5e55@1")
    assert (turn["subagents"], len(turn["commits"])) == ([{"name": "7c2d", "lines": 2}], 2)


def test_the_start(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55@0")
        == """\
5e551011@0  ·  the start  ·  10:00  ·  ~/shop
Nothing comes before turn 1. To show it: sessgit show 5e551011@1
"""
    )
    lines = parser.out("show", "by cell@0").split()
    assert (
        " ".join(lines[lines.index("~/shop") : -1])
        == "~/shop Its first turn is shared with 5e551011: forked at 5e551011@2.3, commit"
    )


def test_a_tag_names_a_turn(parser: Shell) -> None:
    commit = document(parser, "5e55@1")["commit"]
    subprocess.run(["git", "-C", parser.store, "update-ref", "refs/tags/before-merge", commit], check=True)
    assert parser.out("show", "before-merge") == parser.out("show", "5e55@1") == parser.out("show", commit)


# A cell


def test_a_command(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55@2.4")
        == """\
5e551011@2.4  Bash  ·  ok  ·  2.0s  ·  10:00
cell_25ckcl9z  ·  lines 5, 7  ·  after 2.3  ·  before 2.6

pytest -q
description: Run the tests
timeout: 9000

Output
1 failed
"""
    )
    cell = document(parser, "5e55@2.4")["id"]
    assert parser.out("show", f"5e55@2.{cell}") == parser.out("show", "5e55@2.4")


def test_an_edit(parser: Shell) -> None:
    assert (
        parser.out("show", "5e55@4.2")
        == """\
5e551011@4.2  Edit  ·  ok  ·  1.0s  ·  10:00
cell_veqhca1x  ·  lines 3, 4  ·  after 4.1  ·  before 4.3

lexer.py
@@ -1 +1 @@
-    yield text
+    yield from text

Output
done
"""
    )


def test_any_other_tool(parser: Shell) -> None:
    shown = parser.out("show", "5e55@2.5").splitlines()
    assert shown[2:] == ["", "{", '  "pattern": "expr"', "}", "", "Output", "none"]


def test_a_message(parser: Shell) -> None:
    assert parser.out("show", "5e55@2.8").splitlines()[2:] == [
        "", "thinking:", "Left or right?", "Both.", "", "It binds both ways.",
    ]  # fmt: skip
    assert parser.out("show", "5e55@2.1").splitlines()[2:] == ["", "No text."]


def test_a_call_without_a_result(parser: Shell) -> None:
    lines = parser.out("show", "5e55@4.4").splitlines()
    assert lines[0] == "5e551011@4.4  Bash  ·  no result  ·  10:00"
    assert lines[2:] == ["", "sleep 9"]


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("5e55@9", 4, "5e551011 has no turn 9; it has 4 turns.\nHint: `sessgit log 5e551011` lists them."),
        ("5e55@2.99", 4, "turn 2 has no cell 99; it has 8 cells.\n"
            "Hint: `sessgit cells 5e551011 --turn 2` lists them."),
        ("5e55@0.1", 4, "there is no cell before the first turn.\n"
        "Hint: `sessgit show 5e551011@1` shows the first turn."),
        ("5e55@x", 2, "“x” is not a turn.\nHint: A turn is a number, a cell is 7.3; -1 is the last turn."),
    ],
)  # fmt: skip
def test_what_is_not_there(parser: Shell, address: str, code: int, said: str) -> None:
    for more in ((), ("--json",), ("--raw",)):
        done = parser("show", address, *more)
        assert (done.code, done.err) == (code, f"Error: {said}\n")
        if "--json" in more:
            message, _, hint = said.partition("\nHint: ")
            error = {"message": message.removesuffix("."), "hint": hint, "exit_code": code}
            assert json.loads(done.out) == {"schema": "sessgit.error/v1", "error": error}
        else:
            assert done.out == ""


def test_a_cell_by_its_id(parser: Shell) -> None:
    cell = parser.json("show", "5e55@2.5")["cell"]["id"]
    for more in ((), ("--json",), ("--raw",)):
        assert parser.out("show", f"5e55@.{cell}", *more) == parser.out("show", "5e55@2.5", *more)
    assert parser("show", cell).out.startswith("f0000001@2.5  Grep")
    assert parser("show", "5e55@.cell_aaaaaaaa").err == (
        "Error: 5e551011 has no cell cell_aaaaaaaa.\nHint: `sessgit cells 5e551011` lists its cells.\n"
    )


def test_two_forms_at_once(parser: Shell) -> None:
    assert parser("show", "5e55", "--raw", "--json").code == 2


def test_what_subagents_used_stands_on_the_card(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one").tool("Task", {"prompt": "look"}, "found").answer("Done.").stop_lines()
    path = sessgit.keep(talk)
    usage = {"input_tokens": 7000, "output_tokens": 500}
    message = {"id": "m", "role": "assistant", "model": MODEL, "content": [], "usage": usage}
    line = {"parentUuid": None, "isSidechain": True, "promptId": talk.prompt_id, "message": message}
    line["type"] = "assistant"
    folder = path.parent / SESSION / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abc.jsonl").write_text(json.dumps(line) + "\n")
    assert sessgit("import").code == 0
    (said,) = (line for line in sessgit.out("show", "5e55").splitlines() if line.startswith("Subagents"))
    assert said == "Subagents   7k in, 500 out"
    plain = sessgit.talk(OTHER).turns("two")
    sessgit.recorded(plain)
    assert not any(line.startswith("Subagents") for line in sessgit.out("show", OTHER).splitlines())
