"""A conversation about two files, in which what was read and written leads from turn to turn."""

from __future__ import annotations

from shell import Shell
from transcripts import SESSION, Talk


def lexer_talk(sessgit: Shell, session: str = SESSION) -> Talk:
    """Three turns about two files; another third one, which a rewind left behind, wrote one of them too."""

    def at(name: str) -> str:
        return str(sessgit.project / name)

    talk = sessgit.talk(session).prompt("write the lexer")
    talk.tool("Read", {"file_path": at("spec.md")}, "tokens\n")
    talk.tool("Write", {"file_path": at("lexer.py"), "content": "def lex(text):\n    yield text\n"})
    talk.answer("It is written.").stop_lines()
    talk.prompt("parse with it").tool("Read", {"file_path": at("lexer.py")}, "def lex(text):\n    yield text\n")
    talk.tool("Edit", {"file_path": at("parser.py"), "old_string": "a", "new_string": "b"}, "No such file", error=True)
    talk.tool("Write", {"file_path": at("parser.py"), "content": "import lexer\n"})
    talk.tool("Bash", {"command": "python -m pytest lexer.py"}, "2 passed").answer("Both work.").stop_lines()
    talk.prompt("try a class").tool("Write", {"file_path": at("lexer.py"), "content": "class Lexer: ...\n"})
    talk.answer("A class.").stop_lines().rewind(2).prompt("yield tokens one by one")
    talk.parallel(
        ("Read", {"file_path": at("parser.py")}, "import lexer\n"), ("Grep", {"pattern": "lex"}, "parser.py:1")
    )
    talk.tool("Edit", {"file_path": at("lexer.py"), "old_string": "yield text", "new_string": "yield from text"})
    return talk.call_only("Bash", {"command": "sleep 9"}).interrupt()
