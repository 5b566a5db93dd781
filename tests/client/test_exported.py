"""Exported lines with the real client: it goes on from them with the words that were exported, and no others."""

from __future__ import annotations

import subprocess
import sys

import pytest
from clients import ENDS
from world import World

pytestmark = [pytest.mark.client, ENDS]

TURNS = ["one", "bash: echo two", "both: echo a && echo b", "four"]


def exported(world: World, session: str, *options: str) -> str:
    """The id under which the client finds what is exported beside its own files."""
    folder = world.transcript(session).parent
    before = {path.stem for path in folder.glob("*.jsonl")}
    env = {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}
    for arguments in (("import",), ("export", "jsonl", session, "-o", str(folder), *options)):
        command = [sys.executable, "-m", "sessgit", *arguments]
        subprocess.run(command, env=env, cwd=world.project, check=True, capture_output=True, timeout=60)
    (new,) = {path.stem for path in folder.glob("*.jsonl")} - before
    return new


def talked(world: World) -> tuple[str, list[tuple[str, str]]]:
    """A conversation of four turns, and all that was sent to the model and came from it."""
    session = None
    for prompt in TURNS:
        session = world.run(prompt, resume=session).session_id
    assert session is not None
    world.model.clear()
    probe = world.run("probe", resume=session, fork_session=True).session_id
    sent = world.model.conversation(probe)
    return session, sent[: sent.index(("user", "probe"))]


def test_the_client_goes_on_from_chosen_turns(world: World) -> None:
    session, said = talked(world)
    first, last = said.index(("user", TURNS[1])), said.index(("user", TURNS[3]))
    part = exported(world, session, "--turns", "2-3")
    world.model.clear()
    world.run("hello", resume=part)
    assert world.model.conversation(part) == [*said[first:last], ("user", "hello")]


def test_the_client_goes_on_from_the_words_alone(world: World) -> None:
    session, said = talked(world)
    part = exported(world, session, "--no-tools")
    world.model.clear()
    world.run("hello", resume=part)
    sent = world.model.conversation(part)
    # Calls and results are shown in brackets.
    assert sent == [*((who, text) for who, text in said if not text.startswith("[")), ("user", "hello")]
    assert [text for who, text in sent if who == "user"] == [*TURNS, "hello"]
