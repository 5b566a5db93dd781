"""A conversation with most of what `show` can tell, and what `show --json` prints of it."""

from __future__ import annotations

from typing import Any

from shell import Shell
from transcripts import Talk

GRAMMAR = "expr: expr '+' expr\n" * 12


def parser_rewrite(sessgit: Shell) -> Talk:
    """Four turns with most of what a turn can hold, and one that a rewind left behind after the second."""
    lexer, grammar = (str(sessgit.project / name) for name in ("lexer.py", "grammar.md"))
    talk = sessgit.talk().prompt("write the tokenizer\n\nIn *one* file, please.")
    talk.tool("Write", {"file_path": lexer, "content": "def lex(text):\n    yield text\n"})
    talk.answer("It is written.\n\n- `lex` yields one token\n- nothing else yet").stop_lines()
    talk.prompt("the grammar is ambiguous, why?").tool("Read", {"file_path": grammar}, GRAMMAR)
    talk.parallel(
        ("Bash", {"command": "pytest -q", "description": "Run the tests", "timeout": 9000}, "\x1b[31m1 failed\x1b[0m"),
        ("Grep", {"pattern": "expr"}, "none"),
    )
    talk.tool("Bash", {"command": "false"}, "Exit code 1\nno", error=True).steer("and be quick")
    talk._message(
        [{"type": "thinking", "thinking": "Left or right?\nBoth."}, {"type": "text", "text": "It binds both ways."}]
    )
    talk.stop_lines().turns("try a Pratt parser").rewind(2)
    talk.turns("try a generator").compact().prompt("go on")
    talk.tool("Edit", {"file_path": lexer, "old_string": "    yield text\n", "new_string": "    yield from text\n"})
    return talk.call_only("Bash", {"command": "sleep 9"}).interrupt().title("parser rewrite")


def document(sessgit: Shell, *arguments: str) -> Any:
    """The session, turn or cell that `show --json` prints."""
    ((_, value),) = sessgit.json("show", *arguments).items()
    return value
