"""`sessgit diff`: two conversations side by side, below each other, and for programs."""

from __future__ import annotations

import pytest
from shell import Shell

PARSER, LEXER, TRIE, OTHER = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abcd")


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A conversation of two turns, and two forks of it."""
    shell = Shell(monkeypatch, capsys)
    parser = shell.talk(PARSER).turns("write the tokenizer", "the grammar is ambiguous, why?")
    lexer = parser.branch(LEXER).title("with a hand lexer").prompt("write the lexer by hand")
    lexer.tool("Edit", {"file_path": "/s/lexer.py"}).tool("Edit", {"file_path": "/s/parser.py"})
    lexer.answer("All 41 tests pass;\nthe lexer is 212 lines.").stop_lines().turns("it fails on 1..2")
    trie = parser.branch(TRIE).title("tokens as a trie").prompt("put the tokens into a trie")
    trie.tool("Write", {"file_path": "/s/trie.py"}).tool("Edit", {"file_path": "/s/parser.py"})
    trie.answer("The trie is 2.3× faster on the large file.").stop_lines()
    shell.recorded(parser, lexer, trie)
    return shell


def test_side_by_side(sessgit: Shell) -> None:
    assert (
        sessgit.out("diff", "bbbb", "cccc")
        == """\
bbbbbbbb  with a hand lexer              cccccccc  tokens as a trie
═══ 2 turns in common (up to “the grammar is ambiguous, why?”) ═════════════════
− 3  write the lexer by hand             + 3  put the tokens into a trie
− 4  it fails on 1..2
  files − lexer.py                       + trie.py    both: parser.py
  cost  − 2 turns  660                   + 1 turn  500
Last words
− “About it fails on 1..2.”
+ “The trie is 2.3× faster on the large file.”
"""
    )


def test_one_below_the_other_where_it_is_narrow(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        sessgit.out("diff", "bbbb@3", "cccc")
        == """\
− bbbbbbbb  with a hand lexer
+ cccccccc  tokens as a trie
═══ 2 turns in common (up to “the grammar is ambi…”) ═══════
− 3  write the lexer by hand
+ 3  put the tokens into a trie
  files − lexer.py
        + trie.py
        both: parser.py
  cost  − 1 turn  500
        + 1 turn  500
Last words
− “All 41 tests pass; the lexer is 212 lines.”
+ “The trie is 2.3× faster on the large file.”
"""
    )


def test_with_the_one_that_it_left(sessgit: Shell) -> None:
    lines = sessgit.out("diff", "cccc").splitlines()
    assert lines[0] == "aaaaaaaa  write the tokenizer            cccccccc  tokens as a trie"
    assert lines[2] == " " * 41 + "+ 3  put the tokens into a trie"
    done = sessgit("diff", "aaaa")
    assert (done.code, done.err) == (
        2,
        "Error: aaaaaaaa left no other conversation.\nHint: Name two: sessgit diff A B. sessgit ls shows them.\n",
    )


def test_with_itself(sessgit: Shell) -> None:
    assert sessgit.out("diff", "aaaa", "aaaa").splitlines()[2:] == ["No turn differs."]
    found = sessgit.json("diff", "aaaa", "aaaa")
    assert (found["shared_turns"], found["only_a"], found["only_b"], found["base"]["turn"]) == (2, [], [], 2)


def test_a_turn_cut_short(sessgit: Shell) -> None:
    sessgit.out("fork", "cccc", "--at", "3.2", "--name", "cut")
    assert sessgit.out("diff", "cccc", "cut").splitlines()[1:5] == [
        "═══ 2 turns in common (up to “the grammar is ambiguous, why?”) ═════════════════",
        "turn 3 is cut short on the + side: 2 of its 5 cells",
        "− 3  put the tokens into a trie          + 3  put the tokens into a trie",
        "  files − parser.py    both: trie.py",
    ]
    found = sessgit.json("diff", "cccc", "cut")
    assert found["partial"] == {"turn": 3, "cells": {"a": 5, "b": 2}}
    assert found["shared_turns"] == 2


def test_unrelated_ones_are_compared_by_prompt(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER).turns("write the tokenizer", "and the docs"))
    lines = sessgit.out("diff", "aaaa", "dddd").splitlines()
    assert lines[1] == "═══ no common ancestor, 1 prompt the same ══════════════════════════════════════"
    assert lines[2] == "− 2  the grammar is ambiguous, why?      + 2  and the docs"
    found = sessgit.json("diff", "aaaa", "dddd")
    assert (found["base"], found["shared_turns"]) == (None, 1)
    assert [turn["prompt"] for turn in found["only_b"]] == ["and the docs"]


def test_for_programs(sessgit: Shell) -> None:
    found = sessgit.json("diff", "bbbb", "cccc")
    assert {key: found[key] for key in found if not key.startswith("only")} == {
        "a": LEXER,
        "b": TRIE,
        "base": {"turn": 2, "commit": found["base"]["commit"]},
        "shared_turns": 2,
        "partial": None,
        "files": {"a": ["/s/lexer.py", "/s/parser.py"], "b": ["/s/trie.py", "/s/parser.py"]},
        "tokens": {
            "a": {"input": 400, "output": 60, "cache_read": 4000, "cache_write": 200},
            "b": {"input": 300, "output": 50, "cache_read": 3000, "cache_write": 150},
        },
    }
    assert [(turn["turn"], turn["prompt"]) for turn in found["only_a"]] == [
        (3, "write the lexer by hand"),
        (4, "it fails on 1..2"),
    ]
    assert found["only_a"][0].keys() == sessgit.json("log", "bbbb")["turns"][0].keys()
