"""`sessgit search` finds conversations by their names, titles, labels and descriptions, and says by which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreigners import log, went
from kept import begins
from shell import Shell

PARSER, UPLOAD, LATER = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abc")


@begins
def sessgit(shell: Shell) -> None:
    """Three conversations, no turn of which has a word of what they are called."""
    shell.recorded(
        shell.talk(PARSER).turns("one").title("Élan vital"),
        shell.talk(UPLOAD).turns("two", "three").title("flaky network"),
        shell.talk(LATER).turns("four"),
    )
    shell.out("rename", PARSER, "parser rewrite")
    shell.out("edit", PARSER, "--label", "grammar", "--label", "hard one")
    shell.out("edit", PARSER, "--description", "Pratt or by hand?\nThe lexer decides: 修复解析器.")


def found(shell: Shell, *arguments: str) -> list[tuple[str, str, str]]:
    """A letter for each conversation, what of it matched, and the snippet; no turn is found."""
    done = shell("search", *arguments, "--json")
    document = json.loads(done.out)
    assert document["hits"] == []
    assert (done.code, document["total"]) == (0 if document["conversations"] else 1, 0)
    assert document["total_conversations"] == len(document["conversations"])
    return [(one["id"][0], " ".join(one["matched"]), one["snippet"]) for one in document["conversations"]]


@pytest.mark.parametrize(
    ("words", "matched", "snippet"),
    [
        ("rewrite", "name", "parser rewrite"),
        ("vital", "title", "Élan vital"),
        ("elan", "title", "Élan vital"),
        ("GRAMMAR", "label", "grammar, hard one"),
        ('"hard one"', "label", "grammar, hard one"),
        ("lexer", "description", "Pratt or by hand? The lexer decides: 修复解析器."),
        ("解析", "description", "Pratt or by hand? The lexer decides: 修复解析器."),
        ("pra* decides", "description", "Pratt or by hand? The lexer decides: 修复解析器."),
        ("parser hard", "name label", "parser rewrite"),
        ("hand hard decides", "description label", "Pratt or by hand? The lexer decides: 修复解析器."),
        ("walrus OR vital", "title", "Élan vital"),
    ],
)
def test_what_matched_is_named(sessgit: Shell, words: str, matched: str, snippet: str) -> None:
    assert found(sessgit, words) == [("a", matched, snippet)]


@pytest.mark.parametrize(
    "words", ["arser", "parser -grammar", "parser walrus", '"rewrite élan"', '"one pratt"', "flaky vital"]
)
def test_what_no_conversation_is_called(sessgit: Shell, words: str) -> None:
    assert found(sessgit, words) == []


def test_the_page(sessgit: Shell) -> None:
    assert sessgit.out("search", "lexer") == (
        "aaaaaaaa  parser rewrite  description  2h ago\n"
        "    Pratt or by hand? The lexer decides: 修复解析器.\n1 conversation.\n"
    )
    assert sessgit.out("search", "rewrite") == "aaaaaaaa  parser rewrite  name  2h ago\n1 conversation.\n"
    sessgit.out("rename", UPLOAD, "two by two")
    assert sessgit.out("search", "two") == (
        "bbbbbbbb    two by two    name    2h ago\n"
        "bbbbbbbb@1  two by two    prompt  2h ago\n    two\n1 conversation, 1 turn.\n"
    )
    assert sessgit.out("search", "two", "-n", "0") == "0 of 1 conversation, 0 of 1 turn.\n"


def test_several_the_one_written_last_first(sessgit: Shell) -> None:
    for session in (PARSER, UPLOAD, LATER):
        sessgit.out("edit", session, "--label", "shared")
    assert [one[0] for one in found(sessgit, "shared")] == ["b", "a", "c"]
    lines = sessgit.out("search", "shared", "-n", "2").splitlines()
    assert (lines[-1], len(lines)) == ("2 of 3 conversations.", 5)


def test_where_it_is_searched(sessgit: Shell, tmp_path: Path) -> None:
    fork = sessgit.json("fork", PARSER, "--at", "1", "--name", "parser by hand")["id"]
    assert found(sessgit, "parser", "--session", PARSER) == [("a", "name", "parser rewrite")]
    assert found(sessgit, "parser", "--session", fork) == [("f", "name", "parser by hand")]
    assert found(sessgit, "rewrite", "--project", str(tmp_path)) == []
    assert found(sessgit, "flaky", "--label", "grammar") == []
    assert found(sessgit, "rewrite", "--label", "grammar") != []
    for option in (("--in", "prompts"), ("--tool", "Bash")):
        assert found(sessgit, "rewrite", *option) == []
    assert found(sessgit, "rewrite", "--since", "1h") == []
    assert found(sessgit, "rewrite", "--since", "3h") != []
    assert [one["id"] for one in sessgit.json("ls", "--search", "lexer")["sessions"]] == [PARSER]


def test_what_it_is_called_now_is_found(sessgit: Shell) -> None:
    sessgit.out("rename", "--clear", PARSER)
    sessgit.out("edit", PARSER, "--description", "", "--label=-grammar")
    assert (found(sessgit, "rewrite"), found(sessgit, "lexer"), found(sessgit, "grammar")) == ([], [], [])
    sessgit.out("archive", UPLOAD)
    assert found(sessgit, "flaky") == [("b", "title", "flaky network")]
    sessgit.out("delete", UPLOAD, "--yes")
    assert found(sessgit, "flaky") == []


def test_an_index_without_descriptions_is_made_anew(sessgit: Shell) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(sessgit.store / "index.sqlite3")) as db, db:
        db.execute("ALTER TABLE branches DROP COLUMN description")
        db.execute("PRAGMA user_version = 9")
    assert found(sessgit, "lexer") != []


def test_the_beginning_of_a_word_finds_what_it_is_called(sessgit: Shell) -> None:
    done = sessgit("search", "gramm")
    assert (done.code, done.err) == (0, "No match for whole words; found with 'gramm*':\n")
    assert found(sessgit, "gramm") == found(sessgit, "grammar")
    assert [one["id"] for one in sessgit.json("ls", "--search", "gramm")["sessions"]] == [PARSER]


def test_entries_of_the_scratchpad_and_ids_of_other_systems_are_found(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("pad", "claim", "Tries save memory.", "--into", PARSER)
    assert found(sessgit, "tries memory") == [("a", "pad", "Tries save memory.")]
    (entry,) = sessgit.json("pad", PARSER)["entries"]
    sessgit.out("pad", "drop", entry["id"], "--into", PARSER)
    assert found(sessgit, "tries") == []
    log(tmp_path, "ARCH-001", went("in", "design it"), went("out", "done"))
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    (one,) = sessgit.json("search", "ARCH-001")["conversations"]
    assert "source" in one["matched"]
    assert sessgit.json("log", "ARCH-001@1")["turns"][0]["prompt"] == "design it"
    assert sessgit.json("fork", "ARCH-001@1", "--name", "again")["id"] != one["id"]
    assert sessgit.json("log", "ARCH-001")["session"]["id"] == one["id"]  # the fork has another id there


def test_hostile_words_are_harmless(sessgit: Shell) -> None:
    said: list[Any] = []
    for words in ("NEAR(", '"', "a*b", "\x1b[31mrewrite", "' OR 1=1 --", "e\u0301lan", "x" * 5000):
        done = sessgit("search", words)
        said.append(done.code)
        assert "\x1b" not in done.out + done.err
    assert set(said) <= {0, 1, 2}
