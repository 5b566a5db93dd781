"""Sessions of any length for measuring: the same bytes every time."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))

from conversation import Call, Conversation

__all__ = ["Conversation", "turn", "write"]

_WORDS = ("alpha", "beta", "gamma", "delta", "parse", "token", "lexer", "tree", "node", "value", "index", "turn")


def write(path: Path, cwd: Path, turns: int, *, seed: int = 1) -> Conversation:
    """A transcript of so many turns of about 12 KB, three tool calls each; returns it open for more."""
    talk = Conversation(path.stem, cwd, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(turns):
            for line in talk.lines(*turn(number, chance)):
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return talk


def turn(number: int, chance: random.Random) -> tuple[str, list[Call], str]:
    """One made-up turn: its prompt, its calls, its answer."""

    def text(words: int) -> str:
        return " ".join(chance.choice(_WORDS) for _ in range(words))

    calls: list[Call] = [
        ("Read", {"file_path": f"src/f{number % 50}.py"}, text(700)),
        ("Bash", {"command": f"pytest {text(4)}"}, text(500)),
        ("Edit", {"file_path": f"src/f{number % 50}.py", "old_string": text(20), "new_string": text(20)}, "ok"),
    ]
    return f"prompt {number}: {text(8)}", calls, text(60)
