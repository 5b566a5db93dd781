"""The name that a person gave a conversation, in the client's own list of conversations."""

from __future__ import annotations

import pytest
from clients import ENDS
from test_recording import Kept
from world import World

pytestmark = [pytest.mark.client, ENDS]

NAME = "parser rewrite"


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def test_a_restored_conversation_is_listed_by_its_name(kept: Kept) -> None:
    world = kept.world
    terminal = world.terminal()
    terminal.ask("bash: echo one")
    terminal.quit()
    session = world.transcripts()[-1].stem
    kept.recorded(session, 1)
    kept.run("rename", session, NAME)
    world.transcript(session).unlink()
    kept.run("restore", session)
    lines = world.transcript(session).read_bytes()

    picker = world.terminal("--resume")
    picker.wait_for(NAME)
    picker.send("\r")
    picker.wait_for("Echo: bash: echo one")
    picker.wait_ready()
    picker.ask("and on")
    picker.quit()
    # 2.0 goes on in a copy with an id of its own.
    goes_on = session if world.client.release >= (2, 1) else world.transcripts()[-1].stem
    kept.recorded(goes_on, 2)
    assert [turn["prompt"] for turn in kept.json("log", goes_on)["turns"]] == ["bash: echo one", "and on"]
    assert world.transcript(session).read_bytes().startswith(lines)
    assert kept.json("show", session)["session"]["name"] == NAME
    if goes_on != session:
        assert kept.json("ls", "--forks-of", session)["sessions"][0]["id"] == goes_on
    kept.fsck()
