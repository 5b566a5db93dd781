"""`sessgit diff`: two conversations side by side, below each other, and for programs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from kept import begins
from shell import Shell
from strategies import SECRET
from transcripts import Talk

PARSER, LEXER, TRIE, OTHER, FIFTH = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abcde")


@begins
def sessgit(shell: Shell) -> None:
    """A conversation of two turns, and two forks of it."""
    parser = shell.talk(PARSER).turns("write the tokenizer", "the grammar is ambiguous, why?")
    lexer = parser.branch(LEXER).title("with a hand lexer").prompt("write the lexer by hand")
    lexer.tool("Edit", {"file_path": "/s/lexer.py"}).tool("Edit", {"file_path": "/s/parser.py"})
    lexer.answer("All 41 tests pass;\nthe lexer is 212 lines.").stop_lines().turns("it fails on 1..2")
    trie = parser.branch(TRIE).title("tokens as a trie").prompt("put the tokens into a trie")
    trie.tool("Write", {"file_path": "/s/trie.py"}).tool("Edit", {"file_path": "/s/parser.py"})
    trie.answer("The trie is 2.3× faster on the large file.").stop_lines()
    shell.recorded(parser, lexer, trie)


def test_side_by_side(sessgit: Shell) -> None:
    assert (
        sessgit.out("diff", "bbbb", "cccc")
        == """\
bbbbbbbb  with a hand lexer              cccccccc  tokens as a trie
═══ 2 shared turns (up to “the grammar is ambiguous, why?”) ════════════════════
− 3  write the lexer by hand             + 3  put the tokens into a trie
− 4  it fails on 1..2
  files − lexer.py                       + trie.py    both: parser.py
  cost  − 2 turns  660                   + 1 turn  500
Last answers
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
═══ 2 shared turns (up to “the grammar is ambi…”) ══════════
− 3  write the lexer by hand
+ 3  put the tokens into a trie
  files − lexer.py
        + trie.py
        both: parser.py
  cost  − 1 turn  500
        + 1 turn  500
Last answers
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
        "Error: aaaaaaaa is not a fork.\nHint: Name two conversations: `sessgit diff A B`. `sessgit ls` lists them.\n",
    )


def test_with_itself(sessgit: Shell) -> None:
    assert sessgit.out("diff", "aaaa", "aaaa").splitlines()[2:] == ["No turns differ."]
    found = sessgit.json("diff", "aaaa", "aaaa")
    assert (found["shared_turns"], found["only_a"], found["only_b"], found["base"]["turn"]) == (2, [], [], 2)


def test_a_turn_cut_short(sessgit: Shell) -> None:
    sessgit.out("fork", "cccc", "--at", "3.2", "--name", "cut")
    assert sessgit.out("diff", "cccc", "cut").splitlines()[1:5] == [
        "═══ 2 shared turns (up to “the grammar is ambiguous, why?”) ════════════════════",
        "turn 3 is incomplete on the + side: 2 of its 5 cells",
        "− 3  put the tokens into a trie          + 3  put the tokens into a trie",
        "  files − parser.py    both: trie.py",
    ]
    found = sessgit.json("diff", "cccc", "cut")
    assert found["partial"] == {"turn": 3, "cells": {"a": 5, "b": 2}}
    assert found["shared_turns"] == 2


def test_unrelated_ones_are_compared_by_prompt(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER).turns("write the tokenizer", "and the docs"))
    lines = sessgit.out("diff", "aaaa", "dddd").splitlines()
    assert lines[1] == "═══ no common ancestor, 1 prompt in both ═══════════════════════════════════════"
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
        "changed": [],
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


# Turns with the same prompt


def of_same_ids(text: str, *turns: tuple[str, str], session: str = OTHER, born: int = 0) -> Talk:
    """A conversation whose message ids are those of every other one that has as many lines."""
    talk = Talk(session, cwd=str(Path.home() / "shop"))
    talk.file.born += timedelta(hours=born)
    for prompt, answer in turns:
        talk.prompt(prompt).tool("Bash", {"command": f"echo {answer}"}, answer).answer(answer).stop_lines()
    talk.title(text)
    talk.file.lines = [line.replace(session[-12:].encode(), b"0" * 12) for line in talk.lines]
    talk.file.lines = [line.replace(f"{session[:-12]}{'0' * 12}".encode(), session.encode()) for line in talk.lines]
    return talk


def test_unrelated_ones_with_the_same_message_ids_are_no_fork(sessgit: Shell) -> None:
    one = of_same_ids("first", ("build it", "built"), ("test it", "green"), session=OTHER)
    two = of_same_ids("second", ("what is a monad?", "a monoid"), ("test it", "red"), session=FIFTH, born=1)
    prompts = [json.loads(line)["uuid"] for talk in (one, two) for line in talk.lines if b'"promptSource"' in line]
    assert prompts[:2] == prompts[2:]
    sessgit.recorded(one, two)
    assert [(row["id"], row["parent"]) for row in sessgit.json("ls")["sessions"] if row["id"] in (OTHER, FIFTH)] == [
        (FIFTH, None),
        (OTHER, None),
    ]
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"], found["shared_turns"]) == (None, 0)
    assert found["changed"] == [{"a": 2, "b": 2, "differs": ["answer", "calls"]}]
    assert [[turn["answer"] for turn in found[f"only_{side}"]] for side in "ab"] == [
        ["built", "green"],
        ["a monoid", "red"],
    ]
    assert (
        sessgit.out("diff", OTHER, FIFTH)
        == """\
dddddddd  first                          eeeeeeee  second
═══ no common ancestor, 1 prompt in both ═══════════════════════════════════════
same prompt, different answer and calls: turn 2
− 1  build it                            + 1  what is a monad?
− 2  test it                             + 2  test it
  cost  − 2 turns  660                   + 2 turns  660
Last answers
− “green”
+ “red”
"""
    )
    merged = sessgit.json("merge", FIFTH, "--into", OTHER, "--dry-run")
    assert merged["base"] is None
    bring = next(one for one in merged["decisions"] if one["action"] == "bring")
    assert bring["value"] == [f"{FIFTH}@1", f"{FIFTH}@2"]


def test_unrelated_ones_that_ask_and_answer_the_same_stay_two(sessgit: Shell) -> None:
    """Only the times of their lines differ."""
    one, two = (of_same_ids("same", ("ping", "pong"), session=s, born=b) for s, b in ((OTHER, 0), (FIFTH, 1)))
    sessgit.recorded(one, two)
    assert {row["id"]: row["parent"] for row in sessgit.json("ls")["sessions"]}[FIFTH] is None
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"], found["shared_turns"], found["only_a"]) == (None, 1, [])
    merged = sessgit.json("merge", FIFTH, "--into", OTHER, "--dry-run")
    assert next(one for one in merged["decisions"] if one["action"] == "bring")["value"] == [f"{FIFTH}@1"]


def test_what_the_client_says_when_it_goes_on_with_a_copy_is_no_part_of_the_turn(sessgit: Shell) -> None:
    talk = sessgit.talk(OTHER).turns("one")
    copy = talk.branch(FIFTH)
    copy.answer("No response requested.")
    copy.file.lines[-1] = copy.lines[-1].replace(b'"claude-test-1"', b'"<synthetic>"')
    sessgit.recorded(talk, copy.turns("two"))
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"]["turn"], found["shared_turns"], found["partial"], found["changed"]) == (1, 1, None, [])


def test_a_fork_shares_the_turns_with_the_same_lines_and_no_more(sessgit: Shell) -> None:
    """The copy's second turn was changed by hand: the ids stayed."""
    talk = sessgit.talk(OTHER).turns("one", "two", "three")
    copy = talk.fork_session(FIFTH)
    copy.file.lines = [line.replace(b"About two.", b"Not about two.") for line in copy.lines]
    sessgit.recorded(talk, copy)
    ((row,),) = [[row for row in sessgit.json("ls")["sessions"] if row["id"] == FIFTH]]
    assert (row["parent"], row["fork_turn"]) == (OTHER, 1)
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"]["turn"], found["shared_turns"]) == (1, 2)
    assert found["changed"] == [{"a": 2, "b": 2, "differs": ["answer"]}]
    assert sessgit.out("diff", OTHER, FIFTH).splitlines()[1:4] == [
        "═══ 1 shared turn (up to “one”), 1 more later ══════════════════════════════════",
        "same prompt, different answer: turn 2",
        "− 2  two                                 + 2  two",
    ]
    assert sessgit.out("restore", FIFTH, "--verify").count("byte for byte") == 1


@pytest.mark.parametrize(("kind", "order"), [("fork_session", (0, 1)), ("fork_session", (1, 0)), ("branch", (0, 1))])
def test_a_copy_of_the_client_shares_its_turns(sessgit: Shell, kind: str, order: tuple[int, int]) -> None:
    """Whichever comes first: a fork that is recorded before its parent keeps its own bytes."""
    talk = sessgit.talk(OTHER).prompt("one").tool("Bash", {"command": "ls"}).answer("Done.").stop_lines().turns("two")
    copy = getattr(talk, kind)(FIFTH).turns("three")
    for number in order:
        sessgit.keep((talk, copy)[number])
        sessgit.out("import")
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"]["turn"], found["shared_turns"], found["changed"], found["only_a"]) == (2, 2, [], [])
    assert [turn["prompt"] for turn in found["only_b"]] == ["three"]
    ((row,),) = [[row for row in sessgit.json("ls")["sessions"] if row["id"] == FIFTH]]
    assert (row["parent"], row["fork_turn"]) == (OTHER, 2)


def test_a_copy_by_newer_rules_of_redaction_is_still_one(sessgit: Shell) -> None:
    talk = sessgit.talk(OTHER).turns("one", f"my key is {SECRET}", "three")
    assert sessgit("config", "record.redact", "false").code == 0
    sessgit.recorded(talk)
    assert sessgit("config", "record.redact", "true").code == 0
    sessgit.recorded(talk.fork_session(FIFTH).turns("four"))
    assert SECRET not in sessgit.out("show", f"{FIFTH}@2")
    found = sessgit.json("diff", OTHER, FIFTH)
    assert (found["base"]["turn"], found["shared_turns"], len(found["only_b"])) == (3, 3, 1)
