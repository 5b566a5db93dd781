"""A home with conversations that show all that the page can show: forks of forks, a rewind, a merge, a compaction,
images, a label, an archived one. For its pictures, and for checks of every view."""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from transcripts import Talk

from sessgit.agents.claude import home

Run = Callable[..., Any]
"""Runs a command and returns the document that it prints with --json, or anything for `import`."""

MAIN = str(uuid.UUID(int=0xA41F9C02 << 96 | 1))
IMAGES = str(uuid.UUID(int=0xC77D10E5 << 96 | 2))

_TOPICS = (
    ("shop", "the upload test fails one time in ten, find out why", "The test gives the server 100 ms. It waits now."),
    ("shop", "move the prices from the templates to the database", "All 214 prices are rows now; the templates ask."),
    ("shop", "why is the cart empty after a login?", "The session id changed at login, and the cart's key with it."),
    ("shop", "add a dark theme", "Colours are variables now; the theme follows the system."),
    ("parser", "explain the error on line 40 of grammar.txt", "`expr` is left recursive there: it calls itself first."),
    ("parser", "write fuzz tests for the lexer", "Hypothesis found two bugs: a lone quote, and a surrogate."),
    ("parser", "rename tok to token everywhere", "Renamed in 14 files; the tests pass."),
    ("infra", "the nightly backup takes six hours", "It compressed twice. With one pass it takes 80 minutes."),
    ("infra", "rotate the logs of nginx", "A new file each day, 14 are kept, compressed."),
    ("notes", "summarize the meeting of Tuesday", "Three decisions: ship on Friday, freeze the API, hire one more."),
)  # fmt: skip
_LEXER = "import re\n\nTOKENS = re.compile(r'\\d+|[-+*/()]')\n"
_DESCENT = "def parse(tokens):\n    return expr(tokens)\n"
_PRATT = """\
def parse(tokens, power=0):
    left = prefix(tokens)
    while binding(tokens) > power:
        left = infix(left, tokens)
    return left
"""
_TREES = """\
`1 - 2 - 3` has two trees:

| tree | value |
| --- | --- |
| `(1 - 2) - 3` | −4 |
| `1 - (2 - 3)` | 2 |

The rule for *expr* recurses on both sides."""
_MORE = (
    "and the tests?",
    "now update the docs",
    "that breaks on Windows",
    "make it faster",
    "commit it",
    "what is left?",
)


def png(width: int = 640, height: int = 240) -> bytes:
    """Return an image: bars of a chart."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            bar, inside = divmod(x, 40)
            rows += b"\x3b\x82\xc4" if inside < 28 and height - y < 30 + (bar * 53) % (height - 60) else b"\xf4\xf6\xf8"
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(rows))))
    chunks = (
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in (*parts, (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def image(data: bytes, media_type: str = "image/png") -> dict[str, Any]:
    """Return the block of an image in a message."""
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


@dataclass
class World:
    """The folders of a home, the command that runs there, and what time it is."""

    home: Path
    run: Run
    now: datetime

    def talk(self, session: str, project: str, days: float) -> Talk:
        folder = self.home / "code" / project
        folder.mkdir(parents=True, exist_ok=True)
        talk = Talk(session, cwd=str(folder))
        talk.file.born = self.now - timedelta(days=days)
        return talk

    def save(self, talk: Talk) -> None:
        talk.save(home.project_folder(self.home / ".claude", talk.file.cwd))

    def build(self, count: int) -> None:
        """Record a family with everything, a conversation with images, and others until there are so many."""
        self.save(self._parser(MAIN))
        self.save(self._images(IMAGES))
        for number in range(max(0, count - 5)):
            self.save(self._plain(number))
        self.run("import")
        trie = self.run("fork", MAIN, "--at", "2", "--name", "tokens as a trie")["id"]
        self._continue(trie, "put the tokens into a trie instead", "The trie is 2.3× faster and 90 lines shorter.")
        shorter = self.run("fork", trie, "--at", "3", "--name", "trie without the cache")["id"]
        self._continue(shorter, "leave out the cache", "Without it the trie is as fast, and 40 lines shorter.")
        self.run("merge", shorter, "--into", MAIN)
        old = self.run("fork", MAIN, "--at", "1", "--name", "with regular expressions")["id"]
        self._continue(old, "try one large regular expression", "It works, but nobody can read it.")
        self.run("archive", old)
        self.run("edit", MAIN, "--label", "+review", "--description", "The calculator's parser, rewritten by hand.")

    def _continue(self, session: str, prompt: str, answer: str) -> None:
        """Add a turn to a fork, as the client does that resumes it."""
        (path,) = (self.home / ".claude" / "projects").glob(f"*/{session}.jsonl")
        talk = self.talk(session, "parser", 0.05)
        last = [line for line in path.read_bytes().splitlines() if b'"uuid"' in line][-1]
        talk.leaf = last.split(b'"uuid":"')[1].split(b'"')[0].decode()
        talk.file.counts.update(dict.fromkeys("abcd", 1000 + len(path.read_bytes())))
        talk.prompt(prompt).tool("Write", {"file_path": f"{talk.file.cwd}/trie.py", "content": "class Trie: ...\n"})
        talk.answer(answer).stop_lines()
        with path.open("ab") as file:
            file.write(talk.data)
        self.run("import")

    def _parser(self, session: str) -> Talk:
        talk = self.talk(session, "parser", 1.1)
        lexer, parser = f"{talk.file.cwd}/lexer.py", f"{talk.file.cwd}/parser.py"
        talk.prompt("write the tokenizer").tool("Write", {"file_path": lexer, "content": _LEXER})
        talk.answer("The tokenizer is in `lexer.py`: numbers, names, operators.").stop_lines()
        talk.prompt("the grammar is ambiguous, why?")
        talk.parallel(
            ("Read", {"file_path": f"{talk.file.cwd}/grammar.txt"}, "expr: expr '-' expr | NUMBER"),
            ("Grep", {"pattern": "expr"}, "grammar.txt:1\nparser.py:3"),
        )
        talk.answer(_TREES).stop_lines()
        talk.prompt("try it with a Pratt parser")
        talk.tool("Edit", {"file_path": parser, "old_string": _DESCENT, "new_string": _PRATT})
        talk.tool("Bash", {"command": "pytest -q"}, "Exit code 1\n2 failed, 15 passed", error=True)
        talk.tool("Bash", {"command": "pytest -q"}, "17 passed in 0.21s")
        talk.answer("Binding powers settle it; all 17 tests pass.").stop_lines()
        talk.prompt("recover from errors by exceptions")
        talk.answer("Exceptions unwind too far: the rest of the line is lost.").stop_lines()
        talk.rewind(3).prompt("now add the error recovery")
        talk.tool("Edit", {"file_path": parser, "old_string": "raise", "new_string": "recover()"})
        talk.answer("It skips to the next semicolon and goes on.").stop_lines()
        talk.compact(summary="A calculator: a tokenizer, a Pratt parser, error recovery.")
        talk.prompt("measure it").tool("Bash", {"command": "python bench.py"}, "1.9 MB/s")
        talk.answer("1.9 MB/s, 4 times as fast as before.").stop_lines()
        return talk.title("Rewrite the parser")

    def _images(self, session: str) -> Talk:
        talk = self.talk(session, "shop", 0.3)
        talk.prompt([image(png()), {"type": "text", "text": "why do sales drop each tenth day?"}])  # type: ignore[arg-type]
        talk.answer("Each tenth bar is a Sunday: the shop is closed then.").stop_lines()
        talk.prompt("draw it without Sundays").tool("Bash", {"command": "python plot.py"}, "saved plot.png")
        talk.tool("Read", {"file_path": f"{talk.file.cwd}/plot.png"}, [image(png(900, 300))]).answer(
            "Here it is."
        ).stop_lines()
        return talk.title("Sales by day")

    def _plain(self, number: int) -> Talk:
        project, prompt, answer = _TOPICS[number % len(_TOPICS)]
        talk = self.talk(str(uuid.uuid5(uuid.NAMESPACE_URL, str(number))), project, 0.5 + number * 0.7)
        talk.prompt(prompt if number < len(_TOPICS) else f"{prompt} ({number})").tool(
            "Bash", {"command": "make test"}, "ok"
        ).answer(answer).stop_lines()
        for more in range(number * 7 % 11 + (200 if number % 37 == 20 else 0)):
            talk.prompt(_MORE[more % len(_MORE)]).answer(f"Done: {answer}").stop_lines()
        return talk
