"""A conversation that goes on with what is on its scratchpad, in the hands of the real client."""

from __future__ import annotations

import json
import shlex

import pytest
from clients import ENDS
from test_recording import Kept, talk
from world import World

pytestmark = [pytest.mark.client, ENDS]

FILE = "named.txt"
WORDS = "what stands in the file that is named"


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def noted(world: World, kept: Kept) -> tuple[str, str]:
    """A conversation with a pad that names a file, and the prompt that `resume --brief` hands over."""
    (world.project / FILE).write_text(WORDS)
    session = talk(world, ["bash: echo one"])
    kept.recorded(session, 1)
    for words in (("thesis", "First line.\nSecond “line”."), ("claim", f"see @{FILE} and @./{FILE}")):
        kept.run("pad", "--into", session, *words)
    command = kept.run("resume", session, "--brief", "--print")
    *start, brief = shlex.split(command)
    assert start == ["claude", "--resume", session]
    return session, brief


def test_it_begins_with_what_is_on_the_pad(world: World, kept: Kept) -> None:
    session, brief = noted(world, kept)
    world.model.clear()
    terminal = world.terminal("--resume", session, brief)
    terminal.wait_for("Echo: We continue")
    terminal.quit()
    sent = [said for said in world.model.conversation(session) if said]
    assert ("user", brief) in sent
    assert WORDS not in json.dumps([one.body for one in world.model.requests])
    kept.recorded(session, 2)
    assert kept.json("log", session)["turns"][-1]["prompt"] == brief
    assert [one["kind"] for one in kept.json("pad", session)["entries"]] == ["claim", "thesis"]
    kept.fsck()


def test_it_makes_the_client_read_no_file(world: World, kept: Kept) -> None:
    """As the claim stands on the pad it would."""
    session, brief = noted(world, kept)
    world.model.clear()
    world.run(brief, resume=session)
    assert WORDS not in json.dumps([one.body for one in world.model.requests])
    world.run(brief.replace("@ ", "@"), resume=session)
    assert WORDS in json.dumps([one.body for one in world.model.requests])
