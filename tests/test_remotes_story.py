"""The story of two machines does what it shows."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from servers import ssh
from shell import Shell
from stories import ROOT, World, holds, unquoted

from conversation import OTHER_WAY, PARSER, Conversation  # isort: skip - `stories` knows where it lies

from sessgit.agents.claude import home

SESSION = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
HOMES = {"laptop": "/home/ada", "desk": "/Users/ada"}
TURNS = [("laptop", PARSER[:2]), ("desk", PARSER[2:3]), ("laptop", PARSER[3:]), ("desk", OTHER_WAY)]
"""What is said when the client runs, one time after the other, and where."""


class Two(World):
    """A world of two machines: `ssh desk` and `exit` lead from one to the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self._coming = iter(enumerate(TURNS))
        self.shells: dict[str, Shell] = {}
        for name in reversed(HOMES):
            place = folder / name
            place.mkdir()
            monkeypatch.setenv("HOME", str(place))
            super().__init__(monkeypatch, capsys, NOW.timestamp(), Two._hold)
            self.shells[name] = self.shell
            (place / ("code" if name == "laptop" else "src") / "calc").mkdir(parents=True)
        monkeypatch.setenv("GIT_SSH_COMMAND", ssh(self.shells["desk"].home))
        self._sit("laptop")

    def run(self, command: str) -> list[str]:
        if command in ("ssh desk", "exit"):
            self._sit("laptop" if command == "exit" else "desk")
            return []
        for name, place in HOMES.items():
            command = command.replace(place, shlex.quote(str(self.shells[name].home)))
        return super().run(command)

    def _sit(self, name: str) -> None:
        self.name, self.shell = name, self.shells[name]
        # What is a folder of the laptop is none of the desk, though all is on one disk here.
        home_, away = self.shells["laptop"].home, self.shells["laptop"].home.with_suffix(".away")
        if name == "desk":
            home_.rename(away)
        elif away.exists():
            away.rename(home_)
        self._patch.setenv("HOME", str(self.shell.home))
        self.enter(self.shell.home)
        folder = self.shell.home / ("code" if name == "laptop" else "src") / "calc"
        if self.shell.store.exists():
            self.enter(folder)

    def _hold(self, *arguments: str) -> None:
        """The client, which begins the conversation or goes on with it."""
        number, (name, turns) = next(self._coming)
        assert name == self.name
        time = NOW - timedelta(minutes=40 - 10 * number)
        folder = Path.cwd()
        if arguments:
            path = self.transcript(SESSION, folder)
            last = json.loads(path.read_bytes().splitlines()[-1])
            parent = last.get("leafUuid") or last["uuid"]
            talk = Conversation(SESSION, folder, path, parent=parent, clock=time, _count=100 * number)
        else:
            talk = Conversation(SESSION, folder, self.transcript(SESSION, folder), clock=time)
        for turn in turns:
            talk.turn(*turn)
        self.record(talk)

    def _placed(self, text: str) -> list[str]:
        for name, place in HOMES.items():
            mine = str(self.shells[name].home)
            text = unquoted(text, mine).replace(mine, place).replace(home.slug(mine), home.slug(place))
        return "\n".join(super()._placed(text)).splitlines()


def test_the_story_is_true(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    holds(ROOT / "docs" / "machines.md", Two(monkeypatch, capsys, tmp_path), at_least=35)
