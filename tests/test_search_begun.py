"""A search that finds nothing says so where words that begin so would be found."""

from __future__ import annotations

import pytest
from shell import Shell


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.recorded(shell.talk().turns("brainstorming on lexers", "lexers once more", "tokens"))
    return shell


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("brainstorm",), "'brainstorm*' finds 1 turn"),
        (("lexer",), "'lexer*' finds 2 turns"),
        (("brain", "lex"), "'brain* lex*' finds 1 turn"),
        (("brain", "OR", "token"), "'brain* OR token*' finds 2 turns"),
        (("lexer -once",), "'lexer* -once' finds 1 turn"),
        (("lexer", "--in", "prompts"), "'lexer*' finds 2 turns"),
    ],
)
def test_words_that_begin_so_are_told_of(sessgit: Shell, asked: tuple[str, ...], told: str) -> None:
    done = sessgit("search", *asked)
    assert (done.code, done.out, done.err) == (1, "", f"Nothing found.\nWords match as a whole; {told}.\n")


@pytest.mark.parametrize("asked", ["nothingofthekind", "nothingofthe*", '"lexer"', "lexer --since 2099-01-01"])
def test_where_there_are_none_nothing_more_is_said(sessgit: Shell, asked: str) -> None:
    assert sessgit("search", *asked.split()).err == "Nothing found.\n"


def test_what_is_told_finds_that_many(sessgit: Shell) -> None:
    assert sessgit.json("search", "lexer*")["total"] == 2
    assert sessgit("search", "lexer", "--json").err == ""
