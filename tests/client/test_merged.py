"""Conversations that were merged, in the hands of the real client.

The proof is what the model received: ours' turns, then what was brought back, then the new prompt, and nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest
from clients import ENDS
from test_recording import Kept, talk
from world import World

pytestmark = [pytest.mark.client, ENDS]

SHARED = ["bash: echo one"]
OURS = "bash: echo ours"
THEIRS = ["both: echo a && echo b", "write: found.txt theirs"]
AFTER = "hello"
Said = list[tuple[str, str]]


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def sent(world: World, session: str) -> Said:
    return [said for said in world.model.conversation(session) if said]


def held(world: World, session: str, *prompts: str) -> Said:
    """What the conversation is after these prompts, without the answer to the last one."""
    world.model.clear()
    for prompt in prompts:
        world.run(prompt, resume=session)
    return sent(world, session)


def diverged(world: World, kept: Kept) -> tuple[str, str, Said, Said]:
    """Two conversations that diverged after a turn, and what the client sends of each, up to a last prompt.

    Ours is asked in a copy of its own, so that it does not go on itself.
    """
    session = talk(world, SHARED)
    kept.recorded(session, 1)
    theirs = kept.json("fork", session)["id"]
    held(world, session, OURS)
    kept.recorded(session, 2)
    said = held(world, theirs, *THEIRS)
    said += [("assistant", f"Echo: {THEIRS[-1]}")]
    kept.recorded(theirs, 3)
    copy = kept.json("fork", session)["id"]
    ours = held(world, copy, AFTER)[:-1]
    kept.recorded(copy, 3)
    return session, theirs, ours, said


def own(said: Said, prompt: str) -> Said:
    return said[said.index(("user", prompt)) :]


def goes_on(kept: Kept, session: str, turns: int) -> list[dict[str, Any]]:
    """What is recorded goes on behind the merge, and the file comes back as the client has it."""
    kept.recorded(session, turns)
    kept.run("log", session)
    log = kept.json("log", session)["turns"]
    assert len(log) == turns
    assert log[-1]["prompt"] == AFTER
    assert kept.restored(session) == kept.world.transcript(session).read_bytes()
    uuids = [line["uuid"] for line in kept.world.lines(session) if line.get("uuid")]
    assert len(set(uuids)) == len(uuids)
    kept.fsck()
    return list(log)


def test_a_summary_is_sent_behind_our_turns(world: World, kept: Kept) -> None:
    session, theirs, ours, _ = diverged(world, kept)
    before = world.transcript(session).read_bytes()
    made = kept.json("merge", theirs, "--into", session)
    assert made["session_id"] == session
    assert world.transcript(session).read_bytes().startswith(before)
    said = held(world, session, AFTER)
    assert said[: len(ours)] == ours
    asked, answered, last = said[len(ours) :]
    assert asked[0] == "user"
    assert asked[1].startswith("Merged from")
    assert all(word in asked[1] for word in (*THEIRS, "Echo: both: echo a", "found.txt"))
    assert answered == ("assistant", "Understood. I know what was found there in 2 turns, and will continue from here.")
    assert last == ("user", AFTER)
    goes_on(kept, session, 4)
    assert kept.json("merge", theirs, "--into", session)["commit"] is None


def test_grafted_turns_are_sent_as_they_were(world: World, kept: Kept) -> None:
    session, theirs, ours, other = diverged(world, kept)
    kept.run("merge", theirs, "--into", session, "--mode", "graft")
    assert held(world, session, AFTER) == [*ours, *own(other, THEIRS[0]), ("user", AFTER)]
    log = goes_on(kept, session, 5)
    assert [turn["event"] for turn in log] == ["turn", "turn", "graft", "graft", "turn"]


def test_picked_turns_are_sent_alone(world: World, kept: Kept) -> None:
    session, theirs, ours, other = diverged(world, kept)
    kept.run("merge", theirs, "--into", session, "--mode", "pick", "--turns", "3")
    assert held(world, session, AFTER) == [*ours, *own(other, THEIRS[1]), ("user", AFTER)]
    goes_on(kept, session, 4)


def test_pick_brings_single_turns(world: World, kept: Kept) -> None:
    session, theirs, ours, other = diverged(world, kept)
    kept.run("pick", f"{theirs}@2", "--into", session)
    first = own(other, THEIRS[0])
    assert held(world, session, AFTER) == [*ours, *first[: first.index(("user", THEIRS[1]))], ("user", AFTER)]
    goes_on(kept, session, 4)


@pytest.mark.parametrize("mode", ["summary", "graft"])
def test_a_new_conversation_holds_both(world: World, kept: Kept, mode: str) -> None:
    session, theirs, ours, other = diverged(world, kept)
    before = world.transcript(session).read_bytes()
    made = kept.json("merge", theirs, "--into", session, "--mode", mode, "--new", "both")
    assert world.transcript(session).read_bytes() == before
    said = held(world, made["session_id"], AFTER)
    assert said[: len(ours)] == ours
    if mode == "graft":
        assert said == [*ours, *own(other, THEIRS[0]), ("user", AFTER)]
    else:
        assert len(said) == len(ours) + 3
    log = goes_on(kept, made["session_id"], 5 if mode == "graft" else 4)
    assert log[0]["prompt"] == SHARED[0]
    assert kept.json("log", session)["session"]["turns"] == 2


def test_where_ours_has_not_gone_on_all_turns_come(world: World, kept: Kept) -> None:
    session = talk(world, SHARED)
    kept.recorded(session, 1)
    theirs = kept.json("fork", session)["id"]
    other = held(world, theirs, *THEIRS)
    kept.recorded(theirs, 3)
    kept.run("merge", theirs, "--into", session)
    whole = [*other, ("assistant", f"Echo: {THEIRS[-1]}"), ("user", AFTER)]
    assert held(world, session, AFTER) == whole
    goes_on(kept, session, 4)


def test_merged_while_the_file_was_gone_and_restored(world: World, kept: Kept) -> None:
    session, theirs, ours, other = diverged(world, kept)
    world.transcript(session).unlink()
    kept.run("merge", theirs, "--into", session, "--mode", "graft")
    kept.run("restore", session)
    assert held(world, session, AFTER) == [*ours, *own(other, THEIRS[0]), ("user", AFTER)]
    goes_on(kept, session, 5)


def test_what_was_undone_is_not_sent_and_is_where_it_comes_back(world: World, kept: Kept) -> None:
    session, theirs, ours, other = diverged(world, kept)
    before = world.transcript(session).read_bytes()
    kept.run("merge", theirs, "--into", session, "--mode", "graft")
    kept.run("undo")
    assert world.transcript(session).read_bytes() == before
    again = kept.json("fork", session)["id"]
    assert held(world, again, AFTER) == [*ours, ("user", AFTER)]
    kept.run("merge", theirs, "--into", session, "--mode", "graft")
    undo = kept.json("undo")["operation_id"]
    kept.run("undo", undo)
    assert held(world, session, AFTER) == [*ours, *own(other, THEIRS[0]), ("user", AFTER)]
    goes_on(kept, session, 5)


def test_a_client_that_holds_ours_is_left_alone(kept: Kept) -> None:
    world = kept.world
    if world.client.release < (2, 1):
        pytest.skip("2.0 does not say which conversations are open")
    session = talk(world, SHARED)
    kept.recorded(session, 1)
    theirs = kept.json("fork", session)["id"]
    held(world, theirs, THEIRS[0])
    kept.recorded(theirs, 2)
    terminal = world.terminal("--resume", session)
    before = world.transcript(session).read_bytes()
    kept.run("merge", theirs, "--into", session, code=3)
    assert world.transcript(session).read_bytes() == before
    terminal.quit()
    kept.run("merge", theirs, "--into", session)
