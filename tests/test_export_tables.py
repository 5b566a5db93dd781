"""What a model wrote as a table, or between backticks, holds no HTML and no image in the Markdown of an export."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from shell import Shell
from transcripts import SESSION

from sessgit.formats import markdown

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
"""Reads Markdown as code hosts do: with HTML and tables."""
LIVE = ("html_inline", "html_block", "image")
BITS = (
    "`", "``", "```", "~~~", "\n", "\n\n", "|", "\\|", "\\", "<i>", "</details>", "<img src=x>", "![a](http://b)",
    "![a]", "[a]: http://b", "- ", "> ", "1. ", "    ", "\t", "|---|---|", "---", "===", "# ", "a", " ", "*", "_", "[",
    "](u)", "<!--", "-->", "<http://a>", "&lt;", "!", "\n|-|-|\n", "-|-", ":-:", "<b",
)  # fmt: skip


def every(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from every(token.children or ())


def kinds(page: str) -> set[str]:
    return {token.type for token in every(READER.parse(page))}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            "| a | b |\n|---|---|\n| ` <img src=http://e/x> | ` |",
            "| a | b |\n|---|---|\n| ` &lt;img src=http://e/x> | ` |",
        ),
        ("| a | b |\n|---|---|\n| ` ![i](http://e/x) | ` |", "| a | b |\n|---|---|\n| ` \\![i](http://e/x) | ` |"),
        ("a\n| ` <i> | ` |\n|---|---|\n| x | y |", "a\n| ` &lt;i> | ` |\n|---|---|\n| x | y |"),
        ("| a |\n|---|\n| `List<T> \\| null` |", "| a |\n|---|\n| `List<T> \\| null` |"),
        ("| a |\n|---|\n| `<T> \\\\| ` |", "| a |\n|---|\n| `&lt;T> \\\\| ` |"),
        ("a \\\\| ` <i> ` b\n---|---", "a \\\\| ` &lt;i> ` b\n---|---"),
        ("`a\n</details><img src=x>`", "`a\n&lt;/details><img src=x>`"),
        ("`cat <a | sort`", "`cat <a | sort`"),
    ],
)
def test_code_ends_with_its_cell_and_its_block(said: str, written: str) -> None:
    assert markdown.answer(said) == written
    assert kinds(written).isdisjoint(LIVE)


@pytest.mark.parametrize("said", ["a | b\n--- | ---", "x\n- | -\ny", "|a\n:-:", "a | b\n:-- | --:\nc | d"])
def test_what_a_person_typed_is_no_table(said: str) -> None:
    quoted = markdown.quoted_text(said)
    assert kinds(quoted).isdisjoint(("table_open", "bullet_list_open"))
    shown = "".join(token.content if token.type == "text" else "\n" for token in every(READER.parse(quoted)))
    assert [line for line in shown.split("\n") if line] == said.split("\n")


def test_no_mixture_of_marks_holds_html_or_an_image() -> None:
    chosen = random.Random(20261122)
    for _ in range(1500):
        said = "".join(chosen.choice(BITS) for _ in range(chosen.randint(2, 22)))
        assert kinds(markdown.answer(said)).isdisjoint(LIVE), said
        assert kinds(markdown.quoted_text(said)).isdisjoint((*LIVE, "table_open")), said


def test_an_export_loads_nothing_out_of_a_table(sessgit: Shell) -> None:
    table = "| file | note |\n|---|---|\n| ` <img src=http://evil.example/x> | ` |"
    sessgit.recorded(sessgit.talk().prompt("one").answer(table))
    page = sessgit.out("export", "markdown", SESSION)
    assert "| ` &lt;img src=http://evil.example/x> | ` |" in page
    assert "<img" not in page
