"""The story of two ways does what it shows."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from plain import run_git
from stories import ROOT, Turn, World, holds

from conversation import OTHER_WAY, PARSER, Conversation  # isort: skip - `stories` knows where it lies

SESSION = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
HARD: Turn = ("which inputs are hard for both?", [], "Nested brackets, and `1..2`.")
BRACKETS: Turn = ("let brackets nest first", [("Bash", {"command": "pytest -q"}, "18 passed")], "They nest now.")

FILES = {
    "lexer.py": "TOKENS = []\n",
    "parser.py": "def parse(tokens):\n    return climb(tokens, 0)\n",
    "trie.py": "class Trie:\n    ways = {}\n",
}


class Client:
    """Plays the client: it holds the next turns of the story in the folder in which it is started."""

    def __call__(self, world: World, *arguments: str) -> None:
        folder, now = Path.cwd(), datetime.fromtimestamp(world.shell.now, UTC)
        path = world.transcript(SESSION, folder)
        if arguments:
            talk = world.going_on(arguments[1], folder, clock=NOW)
            turns, name = (PARSER[2:], "parser.py") if arguments[1][7] == "1" else (OTHER_WAY, "trie.py")
            self._hold(world, talk, turns, name)
        elif not path.exists():
            self._hold(world, Conversation(SESSION, folder, path), PARSER[:2], "lexer.py")
        elif HARD[0] not in path.read_text("utf-8"):
            self._hold(world, world.going_on(SESSION, folder, clock=now), [HARD])
        else:
            talk = world.going_on(SESSION, folder, clock=now)
            talk.parent = _end_of(path, PARSER[1][2])
            self._hold(world, talk, [BRACKETS])

    def _hold(self, world: World, talk: Conversation, turns: list[Turn], name: str = "") -> None:
        if name:
            (talk.cwd / name).write_text(FILES[name])
        for turn in turns:
            talk.turn(*turn)
            commit(talk.cwd, turn[0], talk.clock)
            world.record(talk)
        world.shell.now = max(world.shell.now, talk.clock.timestamp())


def _end_of(path: Path, answer: str) -> str:
    """The uuid of the line with an answer."""
    lines = (json.loads(line) for line in path.read_bytes().splitlines())
    return next(str(line["uuid"]) for line in lines if json.dumps(answer) in json.dumps(line))


def commit(folder: Path, subject: str, time: datetime) -> None:
    """Commits all that there is, at a time of the story; nothing, where nothing has changed."""
    run_git(folder, "add", "--all")
    if run_git(folder, "status", "--porcelain"):
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        date = f"--date={time.isoformat()}"
        os.environ["GIT_COMMITTER_DATE"] = time.isoformat()
        run_git(folder, *who, "commit", "--quiet", "-m", subject, date)
        del os.environ["GIT_COMMITTER_DATE"]


def test_the_story_is_true(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(monkeypatch, capsys, NOW.timestamp(), Client())
    project = world.shell.home / "code" / "calc"
    project.mkdir(parents=True)
    run_git(project, "init", "--quiet", "--initial-branch=main")
    (project / "grammar.txt").write_text("expr: expr '-' expr | NUMBER\n")
    commit(project, "a grammar", NOW)
    holds(ROOT / "docs" / "branching.md", world, at_least=25)
