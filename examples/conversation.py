"""A short conversation with a coding agent, written line by line the way Claude Code writes its transcript.

For trying sessgit without a client: the words are made up, the shape of the lines is the client's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_SPACE = uuid.UUID("3d0f7f3a-8c53-4a0f-9c0b-7f5f6f7d2c11")
_START = datetime(2026, 3, 2, 11, 40, tzinfo=UTC)

Call = tuple[str, dict[str, Any], str]
"""A tool's name, its input and its result."""

PARSER: list[tuple[str, list[Call], str]] = [
    (
        "write the tokenizer",
        [("Write", {"file_path": "lexer.py", "content": "TOKENS = []\n"}, "File created successfully")],
        "The tokenizer is in lexer.py: numbers, names, operators.",
    ),
    (
        "the grammar is ambiguous, why?",
        [
            ("Read", {"file_path": "grammar.txt"}, "expr: expr '-' expr | NUMBER"),
            ("Read", {"file_path": "lexer.py"}, "TOKENS = []"),
        ],
        "`1 - 2 - 3` has two trees: the rule for expr recurses on both sides.",
    ),
    (
        "try it with a Pratt parser",
        [
            ("Write", {"file_path": "parser.py", "content": "def parse(tokens): ...\n"}, "File created successfully"),
            ("Bash", {"command": "pytest -q"}, "17 passed"),
        ],
        "Binding powers settle it; all 17 tests pass.",
    ),
    (
        "now add the error recovery",
        [("Edit", {"file_path": "parser.py", "old_string": "...", "new_string": "recover()"}, "The file was updated")],
        "It skips to the next semicolon and goes on.",
    ),
]

OTHER_WAY: list[tuple[str, list[Call], str]] = [
    (
        "put the tokens into a trie instead",
        [
            ("Write", {"file_path": "trie.py", "content": "class Trie: ...\n"}, "File created successfully"),
            ("Bash", {"command": "pytest -q && python bench.py"}, "17 passed\n2.3x faster"),
        ],
        "The trie is 2.3× faster on the large file and 90 lines shorter.",
    ),
]

UPLOAD: list[tuple[str, list[Call], str]] = [
    (
        "the upload test fails one time in ten, find out why",
        [
            ("Grep", {"pattern": "timeout", "path": "tests"}, "tests/test_upload.py:12: timeout=0.1"),
            (
                "Read",
                {"file_path": "tests/test_upload.py"},
                "def test_upload(server):\n    server.put(FILE, timeout=0.1)",
            ),
            ("Bash", {"command": "pytest -q --count 20 tests/test_upload.py"}, "Exit code 1\n2 failed, 18 passed"),
        ],
        "The test gives the server 100 ms. Under load that is too little:\n\n"
        "| run | took |\n| --- | --- |\n| quiet | 40 ms |\n| loaded | 130 ms |",
    ),
    (
        "let it wait for the server's answer instead",
        [
            (
                "Edit",
                {
                    "file_path": "tests/test_upload.py",
                    "old_string": "    server.put(FILE, timeout=0.1)",
                    "new_string": "    server.put(FILE)\n    server.wait_until_idle()",
                },
                "The file was updated",
            ),
            ("Bash", {"command": "pytest -q --count 20 tests/test_upload.py"}, "20 passed"),
        ],
        "It waits for the answer now: 20 of 20 runs pass.",
    ),
]


@dataclass
class Conversation:
    """One session's transcript in the making."""

    session: str
    cwd: Path
    path: Path
    parent: str | None = None
    clock: datetime = _START
    _count: int = field(default=0)

    def turn(self, prompt: str, calls: list[Call], answer: str) -> None:
        """Appends a prompt, the calls with their results, and the answer."""
        lines = list(self.lines(prompt, calls, answer))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)

    def lines(self, prompt: str, calls: list[Call], answer: str) -> Iterator[dict[str, Any]]:
        """The lines of one more turn, which the caller writes."""
        yield self._line("user", {"role": "user", "content": prompt}, permissionMode="default")
        for name, arguments, result in calls:
            call = f"toolu_{self._id('call')[:24]}"
            use = {"type": "tool_use", "id": call, "name": name, "input": self._placed(arguments)}
            yield self._line("assistant", self._message([use]))
            back = {"type": "tool_result", "tool_use_id": call, "content": result}
            yield self._line("user", {"role": "user", "content": [back]})
        yield self._line("assistant", self._message([{"type": "text", "text": answer}]))

    def _placed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the file's whole path, as the client gives it."""
        file = arguments.get("file_path")
        return {**arguments, "file_path": str(self.cwd / file)} if file else arguments

    def _message(self, content: list[dict[str, Any]]) -> dict[str, Any]:
        usage = {"input_tokens": 900, "output_tokens": 320, "cache_read_input_tokens": 5200}
        usage["cache_creation_input_tokens"] = 640
        return {
            "id": f"msg_{self._id('message')[:24]}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": content,
            "usage": usage,
        }

    def _line(self, kind: str, message: dict[str, Any], **more: str) -> dict[str, Any]:
        self.clock += timedelta(seconds=41)
        parent, self.parent = self.parent, self._id("line")
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": self.parent,
            "timestamp": self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "entrypoint": "cli",
            "cwd": str(self.cwd),
            "sessionId": self.session,
            "version": "2.1.197",
            "gitBranch": "main",
            **more,
        }

    def _id(self, what: str) -> str:
        self._count += 1
        return str(uuid.uuid5(_SPACE, f"{self.session} {what} {self._count}"))
