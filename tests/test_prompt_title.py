"""By which words of its prompts a conversation is listed and found."""

from __future__ import annotations

import pytest
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.model.conversation.session import prompt_title

PLAN = "Implement the following plan:\n\n# Retry uploads\n\n## Why\nThey fail."


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("", ""),
        ("\n  Fix it  \nnow", "Fix it"),
        (PLAN, "Retry uploads"),
        ("Implement the following plan:\r\n## Plan: Retry uploads", "Plan: Retry uploads"),
        ("Implement the following plan:\n#", "Implement the following plan:"),
        ("Implement the following plan:", "Implement the following plan:"),
        ("Fix this:\nTypeError", "Fix this:"),
        ("# Retry uploads\n# Why", "# Retry uploads"),
    ],
)
def test_the_line_of_a_prompt(prompt: str, title: str) -> None:
    assert prompt_title(prompt) == title


@pytest.mark.parametrize(
    ("prompts", "title"),
    [
        (("hi", "Fix the parser", "Then the lexer"), "Fix the parser"),
        (("Good morning, Claude!", "y", "?", "修复解析器"), "修复解析器"),
        (("/init", "/review the parser"), "/review the parser"),
        (("hello", PLAN), "Retry uploads"),
        (("Hey!", "/init"), "Hey!"),
        (("Fix the parser", PLAN), "Fix the parser"),
        (("go", "Fix the parser"), "go"),
    ],
)
def test_ls_shows_what_says_something(sessgit: Shell, prompts: tuple[str, ...], title: str) -> None:
    sessgit.recorded(sessgit.talk().turns(*prompts))
    assert sessgit.out("ls").split("  ")[2].strip() == title
    assert sessgit.out("id", title) == f"{SESSION}\n"


def test_a_rewind_and_a_fork_keep_the_words_of_their_turns(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("hi", "Fix the parser"))
    first, whole = (sessgit.json("fork", "5e55", "--at", str(turn))["id"] for turn in (1, 2))
    titles = {one["id"]: one["first_prompt"] for one in sessgit.json("ls")["sessions"]}
    assert titles == {SESSION: "Fix the parser", first: "hi", whole: "Fix the parser"}


def test_a_purge_finds_the_words(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("hi", "Implement this plan:\n\n# Retry hunter2secret uploads"))
    sessgit.out("purge", "hunter2secret", "--yes")
    assert "hunter2secret" not in run_git(sessgit.store, "show", f"{SESSION}:session.json")
    assert sessgit.json("ls")["sessions"][0]["first_prompt"].startswith("Retry ")
