"""The guide's commands do what the guide shows."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from stories import ROOT, World, holds

from conversation import OTHER_WAY, PARSER, UPLOAD, Conversation  # isort: skip - `stories` knows where it lies

CALC = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
SHOP = "0b2d7f10-7c1e-4b57-8f2e-1d9a4c3b5e6f"
NOW = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)


def play(world: World, option: str, session: str) -> None:
    """The client, which goes on with a conversation."""
    assert option == "--resume"
    talk = world.going_on(session, world.shell.home / "code" / "calc", clock=NOW)
    for turn in OTHER_WAY:
        talk.turn(*turn)
    os.utime(talk.path, (NOW.timestamp() - 3600,) * 2)  # the client is gone, and nobody waits for the file


def test_the_guide_is_true(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(monkeypatch, capsys, NOW.timestamp(), play)
    for project, session, turns in (("calc", CALC, PARSER), ("shop", SHOP, UPLOAD)):
        folder = world.shell.home / "code" / project
        (folder / ".git").mkdir(parents=True)
        talk = Conversation(session, folder, world.transcript(session, folder))
        for turn in turns:
            talk.turn(*turn)
        os.utime(talk.path, (NOW.timestamp() - 3600,) * 2)
    world.enter(world.shell.home / "code" / "calc")
    holds(ROOT / "docs" / "guide.md", world, at_least=30)
