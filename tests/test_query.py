"""What a person may ask for, and how a text shows that it has it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.model.search_query import (
    MOST_TERMS,
    Query,
    Snippet,
    Term,
    fold_text,
    make_snippet,
    parse_query,
    space_single_char_words,
)


def terms(*words: str) -> tuple[tuple[Term, ...], ...]:
    return tuple((Term(word.removesuffix("*"), word.endswith("*")),) for word in words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lexer", Query(terms("lexer"))),
        ("the lexer", Query(terms("the", "lexer"))),
        ("the AND lexer", Query(terms("the", "lexer"))),
        ('"the lexer" fast', Query(terms("the lexer", "fast"))),
        ('"the lexer', Query(terms("the lexer"))),
        ('"the lex"*', Query(terms("the lex*"))),
        ("pars*", Query(terms("pars*"))),
        ("src/parser.py", Query(terms("src/parser.py"))),
        ("lexer -trie", Query(terms("lexer"), (Term("trie"),))),
        ('lexer -"a trie"', Query(terms("lexer"), (Term("a trie"),))),
        ("lexer OR trie fast", Query(((Term("lexer"), Term("trie")), (Term("fast"),)))),
        ("OR lexer OR", Query(terms("OR", "lexer"))),
        ("lexer -> * trie", Query(terms("lexer", "trie"))),
        ("lexer or trie", Query(terms("lexer", "or", "trie"))),
        ("a " * MOST_TERMS, Query(terms(*"a" * MOST_TERMS))),
    ],
)
def test_queries(text: str, expected: Query) -> None:
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "“” contains no word"),
        ("-> ***", "“-> ***” contains no word"),
        ('""', '“""” contains no word'),
        ("-lexer", "the query has only excluded words"),
        ("a " * (MOST_TERMS + 1), f"the query has more than {MOST_TERMS} words"),
    ],
)
def test_what_is_no_query(text: str, wrong: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_query(text)
    assert str(refused.value) == wrong
    assert refused.value.hint


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("lexer", "A Lexer, two lexers", ["Lexer"]),
        ("lex*", "A Lexer, two lexers", ["Lexer", "lexers"]),
        ("parse_expr", "call parse_expr(x) or parse expr", ["parse_expr", "parse expr"]),
        ("expr", "call parse_expr(x)", ["expr"]),
        ("parser.py", "in src/parser.py:12", ["parser.py"]),
        ("cafe", "Café CAFÉ", ["Café", "CAFÉ"]),
        ("naïve", "naive", ["naive"]),
        ("设定", "变更设定。设 定", ["设定", "设 定"]),
        ("定a", "设定a b", ["定a"]),
        ("a OR b", "a b c", ["a", "b"]),
        ('"a b" b', "a b b", ["a b", "b"]),
        ("straße", "STRASSE Straße", ["Straße"]),
    ],
)
def test_what_is_found(query: str, text: str, found: list[str]) -> None:
    assert [text[a:b] for a, b in parse_query(query).found(text)] == found


@given(st.text())
def test_folding_keeps_places(text: str) -> None:
    assert len(fold_text(text)) == len(text)
    assert fold_text(fold_text(text)) == fold_text(text)


def test_characters_that_are_words_are_set_apart() -> None:
    assert space_single_char_words("a设定b") == "a 设  定 b"
    assert space_single_char_words("plain") == "plain"


@pytest.mark.parametrize(
    ("text", "length", "expected"),
    [
        ("the lexer is slow", 40, Snippet("the lexer is slow", ((4, 9),))),
        ("the\n\n  lexer\t is slow ", 40, Snippet("the lexer is slow", ((4, 9),))),
        ("lexer\x1b[31m\u202e x", 40, Snippet("lexer\ufffd[31m\ufffd x", ((0, 5),))),
        ("one two three four five six lexer seven eight nine", 20, Snippet("…six lexer seven eigh…", ((5, 10),))),
        ("nothing of the kind", 10, Snippet("nothing of…")),
        ("lexer", 3, Snippet("lex…", ((0, 3),))),
        ("", 10, Snippet("")),
    ],
)
def test_snippets(text: str, length: int, expected: Snippet) -> None:
    assert make_snippet(text, parse_query("lexer"), length) == expected


def test_a_snippet_shows_where_most_words_meet() -> None:
    text = "lexer " + "x " * 200 + "the trie and the lexer " + "x " * 200
    assert "trie and the lexer" in make_snippet(text, parse_query("lexer trie"), 60).text


@given(st.text(max_size=300), st.integers(1, 80), st.sampled_from(["a", "0 a*", "é OR 设", "the"]))
def test_any_text_has_a_snippet(text: str, length: int, query: str) -> None:
    found = make_snippet(text, parse_query(query), length)
    assert len(found.text) <= length + 2
    assert canonical.printable(found.text) == found.text
    assert found.text.split() == found.text.split(" ") or not found.text
    places = [place for span in found.matches for place in span]
    assert places == sorted(places)
    assert all(0 <= place <= len(found.text) for place in places)
