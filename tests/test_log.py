"""`sessgit log`: what a person and a program see of a conversation."""

from __future__ import annotations

import pytest
from shell import Shell
from transcripts import OTHER, SESSION, Talk


def parser_rewrite(sessgit: Shell) -> Talk:
    """Two turns, one that a rewind left behind, one instead of it, a compaction, and one more."""
    talk = sessgit.talk()
    talk.prompt("write the tokenizer").tool("Write", {"file_path": "/s/lexer.py", "content": "x"})
    talk.answer("Written.").stop_lines()
    talk.prompt("the grammar is ambiguous, why?").tool("Read", {"file_path": "/s/grammar.py"})
    talk.parallel(("Bash", {"command": "ls"}, "a"), ("Bash", {"command": "wc"}, "b")).answer("Because.").stop_lines()
    talk.turns("try a Pratt parser").rewind(2)
    return talk.turns("try a generator").compact().turns("go on").title("parser rewrite")


def test_the_page(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    sessgit("fork", "5e55", "--at", "2", "--name", "by hand")
    assert (
        sessgit.out("log", "5e55")
        == """\
5e551011  parser rewrite  ·  ~/shop  ·  claude-test-1  ·  4 turns, 1k tokens

● 4  10:00  go on                                                            160
┊    the conversation was compacted
● 3  10:00  try a generator                                                  160
┊    1 turn left behind by a rewind: 5e551011.r-a0000003
├─   13:00  ↳ f0000001  by hand
● 2  10:00  the grammar is ambiguous, why?                   Bash ×2 Read    500
● 1  10:00  write the tokenizer                              Write           330
"""
    )


def test_it_is_readable_at_60_columns(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    sessgit.recorded(parser_rewrite(sessgit))
    assert (
        sessgit.out("log", "5e55")
        == """\
5e551011  parser rewrite  ·  ~/shop  ·  claude-test-1
          4 turns, 1k tokens

● 4  10:00  go on                                        160
┊    the conversation was compacted
● 3  10:00  try a generator                              160
┊    1 turn left behind by a rewind: 5e551011.r-a0000003
● 2  10:00  the grammar is ambiguous, why?               500
● 1  10:00  write the tokenizer                          330
"""
    )


def test_older_turns_have_a_date_and_words_are_cut_by_their_width(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("最新の状態にアップデートしてください、急いでください、お願いします、本当に"))
    sessgit.now += 86_400
    line = sessgit.out("log", "5e55").splitlines()[-1]
    assert line == "● 1  01 Mar 10:00  最新の状態にアップデートしてください、急いでください…     160"


def test_the_order_and_the_number_of_turns(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two", "three"))
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@3 three\n5e551011@2 two\n5e551011@1 one\n"
    assert sessgit.out("log", "5e55", "--oneline", "--reverse") == "5e551011@1 one\n5e551011@2 two\n5e551011@3 three\n"
    assert sessgit.out("log", "5e55", "--oneline", "-n", "2") == "5e551011@3 three\n5e551011@2 two\n"
    assert sessgit.out("log", "5e55@2", "--oneline", "-n", "1") == "5e551011@2 two\n"
    assert sessgit.out("log", "5e55@-2", "--oneline", "-n", "7") == "5e551011@2 two\n5e551011@1 one\n"
    assert sessgit.out("log", "5e55", "--oneline", "-n", "0") == ""
    header = "5e551011  one  ·  ~/shop  ·  3 turns, 480 tokens\n"
    assert sessgit.out("log", "5e55", "-n", "0") == sessgit.out("log", "5e55", "-n", "0", "--tool", "Bash") == header
    assert sessgit.out("log", "5e55", "--tool", "Bash").endswith("\n\nNo matching turns.\n")
    assert sessgit("log", "5e55", "-n", "-1").code == 2


def test_what_was_rewound(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    lines = sessgit.out("log", "5e55", "--rewound").splitlines()[5:8]
    assert lines == [
        "┊    1 turn left behind by a rewind: 5e551011.r-a0000003",
        "○ 3  10:00  try a Pratt parser                                               160",
        "● 2  10:00  the grammar is ambiguous, why?                   Bash ×2 Read    500",
    ]
    assert sessgit.out("log", "5e55.r-a000", "--oneline", "-n", "1") == "5e551011.r-a0000003@3 try a Pratt parser\n"
    turns = sessgit.json("log", "5e55", "--rewound")["turns"]
    assert [(turn["branch"], turn["turn"], turn["prompt"]) for turn in turns[2:]] == [
        (SESSION, 3, "try a generator"),
        (SESSION, 4, "go on"),
        (f"{SESSION}.r-a0000003", 3, "try a Pratt parser"),
    ]


def test_the_family_drawn(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    sessgit("fork", "5e55", "--at", "2", "--name", "by hand")
    sessgit("fork", "5e55", "--at", "2.3", "--name", "by cell")
    assert (
        sessgit.out("log", "by hand", "--graph", "--rewound")
        == """\
●  2  the grammar is ambiguous, why?  f0000003 by cell
│ ●  4  go on  5e551011 parser rewrite
│ ●  3  try a generator
│ │ ●  3  try a Pratt parser  5e551011.r-a0000003
│ ├─╯
│ ●  2  the grammar is ambiguous, why?  f0000001 by hand
├─╯
●  1  write the tokenizer
"""
    )


def test_for_programs(sessgit: Shell) -> None:
    path = sessgit.recorded(parser_rewrite(sessgit))
    found = sessgit.json("log", "5e55")
    assert found["session"] == {
        "id": SESSION,
        "agent_id": SESSION,
        "name": "",
        "title": "parser rewrite",
        "first_prompt": "write the tokenizer",
        "agent": "claude",
        "project": str(sessgit.project),
        "git_branch": "main",
        "created": "2026-03-01T10:00:01.000Z",
        "updated": found["session"]["updated"],
        "turns": 4,
        "messages": found["session"]["messages"],
        "state": "ended",
        "stage": "",
        "labels": [],
        "description": "",
        "headless": False,
        "archived": False,
        "parent": None,
        "fork_turn": None,
        "child_of": None,
        "role": None,
        "tokens": {"input": 700, "output": 100, "cache_read": 7000, "cache_write": 350},
        "cost_usd": None,
    }
    assert [turn["turn"] for turn in found["turns"]] == [1, 2, 3, 4]
    first = found["turns"][0]
    assert first == {
        "turn": 1,
        "branch": SESSION,
        "commit": first["commits"][-1],
        "commits": [first["commit"]],
        "event": "turn",
        "time": "2026-03-01T10:00:01.000Z",
        "prompt": "write the tokenizer",
        "prompt_uuid": "a0000001-0000-4000-8000-000000000001",
        "answer": "Written.",
        "model": "claude-test-1",
        "tools": {"Write": 1},
        "cells": first["cells"],
        "files": ["/s/lexer.py"],
        "tokens": {"input": 200, "output": 30, "cache_read": 2000, "cache_write": 100},
        "cost_usd": None,
    }
    assert [(cell["type"], cell["operation"], cell["ok"]) for cell in first["cells"]] == [
        ("llm_call", "claude-test-1", True),
        ("tool", "Write", True),
        ("llm_call", "claude-test-1", True),
    ]
    assert path.exists()


def test_nothing_from_a_transcript_steers_the_terminal(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("\x1b]0;owned\x07red \x1b[31m\u202egnp.exe").title("\x1b[2Jtitle")
    sessgit.recorded(talk)
    for arguments in (("log", "5e55"), ("log", "5e55", "--oneline"), ("log", "5e55", "--graph"), ("ls",), ("status",)):
        said = sessgit(*arguments)
        assert not {"\x1b", "\x07", "\u202e"} & set(said.out + said.err), arguments


def test_a_session_without_a_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().bare("mode", mode="normal"))
    assert (
        sessgit.out("log", "5e55")
        == """\
5e551011  (no prompt yet)  ·  0 turns, 0 tokens, $0.00

No turns yet.
"""
    )


def test_the_fork_says_where_it_is_from(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk, talk.branch(OTHER).turns("three"))
    assert sessgit.out("log", OTHER).splitlines()[:2] == [
        "5e551011-0000-4000-8000-000000000002  Branched  ·  ~/shop  ·  claude-test-1",
        " " * 26 + "3 turns, 480 tokens",
    ]


def test_only_the_turns_that_are_asked_for(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    turns = {
        ("--tool", "read"): [2],
        ("--tool", "Grep"): [],
        ("--since", "2026-03-01T10:00:20Z"): [3, 4],
        ("--", "/s"): [1, 2],
        ("--", "/s/lexer.py"): [1],
        ("--", "/s/*.py"): [1, 2],
        ("--", "/s/lexer"): [],
        ("-n", "1", "--", "/s"): [2],
    }
    for options, expected in turns.items():
        assert [turn["turn"] for turn in sessgit.json("log", "5e55", *options)["turns"]] == expected
    third = sessgit.json("log", "5e55")["turns"][2]["time"]
    assert [turn["turn"] for turn in sessgit.json("log", "5e55", "--since", third)["turns"]] == [3, 4]
    assert sessgit.out("log", "5e55", "--tool", "Grep").splitlines()[-1] == "No matching turns."
    assert sessgit("log", "5e55", "--graph", "--tool", "Grep").code == 2
    assert sessgit("log", "5e55", "--since", "soon").code == 2


def test_paths_without_an_address_are_of_the_current_conversation(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", SESSION)
    monkeypatch.chdir("/")
    assert [turn["turn"] for turn in sessgit.json("log", "--", "s/lexer.py")["turns"]] == [1]


def test_files_are_known_though_the_index_was_made_anew(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    for file in sessgit.store.glob("index.sqlite3*"):
        file.unlink()
    assert [turn["turn"] for turn in sessgit.json("log", "5e55", "--", "/s")["turns"]] == [1, 2]
    for file in sessgit.store.glob("index.sqlite3*"):
        file.unlink()
    assert [turn["turn"] for turn in sessgit.json("log", "5e55", "--tool", "Bash")["turns"]] == [2]


def test_what_was_said(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("fix this:\n\n    def f():\x1b[2J\n        pass").answer("Done. " + "word " * 20)
    sessgit.recorded(talk.stop_lines().prompt("and that"))
    assert (
        sessgit.out("log", "5e55", "-p")
        == """\
5e551011  fix this:  ·  ~/shop  ·  claude-test-1  ·  2 turns, 160 tokens

● 2  10:00  and that
│
│   and that
│
│   (no answer)

● 1  10:00  fix this:                                                        160
│
│   fix this:
│
│       def f():
│           pass
│
│   Done. word word word word word word word word word word word word word word
│   word word word word word word

"""
    )


def test_tags_stand_beside_their_turns(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    for name, turn in (("works", "2"), ("shipped", "2"), ("a-name-that-takes-more-room-than-there-is-for-it", "1")):
        assert sessgit("tag", name, f"5e55@{turn}").code == 0
    assert sessgit.out("log", "5e55@2").splitlines()[2:] == [
        "┊    1 turn left behind by a rewind: 5e551011.r-a0000003",
        "● 2  10:00  the grammar is ambiguous,…  (shipped)  (works)   Bash ×2 Read    500",
        "● 1  10:00  write the tokenizer  (a-name-that-takes-m…       Write           330",
    ]


def test_a_cell_is_shown_and_not_logged(sessgit: Shell) -> None:
    sessgit.recorded(parser_rewrite(sessgit))
    done = sessgit("log", "5e55@1.2")
    assert (done.code, done.err) == (
        2,
        "Error: log needs a whole turn, but the address names a cell.\n"
        "Hint: `sessgit log 5e551011@1`, or `sessgit show 5e551011@1.2` for the cell.\n",
    )
    assert sessgit("log", "5e55", "--graph", "--reverse").code == 2


def test_a_prompt_of_one_word_is_told_by_its_answer(sessgit: Shell) -> None:
    """Not by the answer's later lines, nor with the whole texts, nor if nothing was answered."""
    talk = sessgit.talk().prompt("fix the lexer").answer("Which one?\nThere are two.").stop_lines()
    talk.prompt("y").answer("\n**Both** are fixed.\n\nAll tests pass.").stop_lines()
    talk.prompt("good morning").answer(f"I go on with the {'very ' * 20}long file.").stop_lines().prompt("continue")
    sessgit.recorded(talk)
    page = sessgit.out("log", "5e55").partition("\n\n")[2]
    assert (
        page
        == """\
● 4  10:00  continue
● 3  10:00  good morning                                                     160
            I go on with the very very very very very very very very very very…
● 2  10:00  y                                                                160
            **Both** are fixed.
● 1  10:00  fix the lexer                                                    160
"""
    )
    assert sessgit.out("log", "5e55", "--reverse").endswith("long…\n● 4  10:00  continue\n".replace("long", "very"))
    assert "            **Both**" not in sessgit.out("log", "5e55", "-p")
