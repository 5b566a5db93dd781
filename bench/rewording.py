"""Real transcripts said in other words, so often that there are as many bytes as wanted.

Few people can give hundreds of MB of them, and copies would be stored once. So in each copy the letters of what was
said stand for others, and all ids are others: its words occur in no other copy, and lines, files and their versions are
as long, as many and as like each other as they were.
"""

from __future__ import annotations

import hashlib
import json
import re
import string
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SAID = frozenset((
    "text", "thinking", "content", "stdout", "stderr", "originalFile", "old_string", "new_string", "oldString",
    "newString", "command", "prompt", "description", "result", "lines", "data", "signature", "plan", "summary", "query",
    "pattern", "output", "error", "title", "lastPrompt",
))  # fmt: skip
"""The keys whose strings are what somebody said, or what a file held."""
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_ID = re.compile(r"\b((?:toolu|srvtoolu|msg|req)_)([A-Za-z0-9]+)")


def write(transcripts: Sequence[Path], projects: Path, megabytes: int) -> None:
    """Writes copies into folders of projects, as the client lays them, until there are so many MB; the first is the
    one in its own words."""
    size = number = 0
    while size < megabytes * 1_000_000 and number < len(string.ascii_lowercase):
        for path in transcripts:
            data = _reworded(path.read_bytes(), number)
            name = uuid.UUID(bytes=hashlib.sha256(f"{path} {number}".encode()).digest()[:16], version=4)
            folder = projects / f"-copy-{number}-{path.parent.name}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.jsonl").write_bytes(data)
            size += len(data)
        number += 1


def _reworded(data: bytes, by: int) -> bytes:
    small, large, digits = string.ascii_lowercase, string.ascii_uppercase, string.hexdigits[:16]
    letters = str.maketrans(small + large, _turned(small, by) + _turned(large, by))
    others = str.maketrans(digits, _turned(digits, by % 16))
    return b"\n".join(_line(line, letters, others) for line in data.split(b"\n"))


def _turned(every: str, by: int) -> str:
    return every[by:] + every[:by]


def _line(line: bytes, letters: dict[int, int], digits: dict[int, int]) -> bytes:
    try:
        data = json.loads(line)
    except ValueError:
        return line
    text = json.dumps(_said(data, letters, said=False), ensure_ascii=False, separators=(",", ":"))
    text = _UUID.sub(lambda found: found[0].translate(digits), text)
    return _ID.sub(lambda found: found[1] + found[2].translate(letters), text).encode("utf-8", "surrogatepass")


def _said(value: Any, letters: dict[int, int], *, said: bool) -> Any:
    """The value with other letters in the strings that somebody said: below such a key, and in lists there."""
    if isinstance(value, str):
        return value.translate(letters) if said else value
    if isinstance(value, list):
        return [_said(item, letters, said=said) for item in value]
    if isinstance(value, dict):
        return {key: _said(item, letters, said=key in _SAID) for key, item in value.items()}
    return value
