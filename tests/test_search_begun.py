"""A search that finds nothing looks for words that begin so."""

from __future__ import annotations

import pytest
from kept import begins
from shell import Shell


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("brainstorming on lexers", "lexers once more", "tokens"))


@pytest.mark.parametrize(
    ("asked", "searched", "turns"),
    [
        (("brainstorm",), "brainstorm*", 1),
        (("lexer",), "lexer*", 2),
        (("brain", "lex"), "brain* lex*", 1),
        (("brain", "OR", "token"), "brain* OR token*", 2),
        (("lexer -once",), "lexer* -once", 1),
        (("lexer", "--in", "prompts"), "lexer*", 2),
    ],
)
def test_words_that_begin_so_are_found(sessgit: Shell, asked: tuple[str, ...], searched: str, turns: int) -> None:
    document = sessgit.json("search", *asked)
    assert (document["searched"], document["total"]) == (searched, turns)
    assert sessgit("search", *asked).err == f"No match for whole words; found with '{searched}':\n"


@pytest.mark.parametrize("asked", ["nothingofthekind", "nothingofthe*", '"lexer"', "lexer --since 2099-01-01"])
def test_where_there_are_none_nothing_more_is_said(sessgit: Shell, asked: str) -> None:
    assert sessgit("search", *asked.split()).err == "Nothing found.\n"


def test_whole_words_come_first(sessgit: Shell) -> None:
    assert [sessgit.json("search", word)["searched"] for word in ("lexers", "lexer*")] == ["lexers", "lexer*"]
