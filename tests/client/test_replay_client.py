"""What the real client did is done again, and its prompts are answered again by the real client."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

import pytest
from clients import ENDS, environment
from test_recording import Kept, talk
from world import World

pytestmark = [pytest.mark.client, ENDS]


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def replay(world: World, *arguments: str, code: int = 0) -> Any:
    """What `sessgit replay` says, in the environment in which the client finds its model."""
    done = subprocess.run(
        [sys.executable, "-m", "sessgit", "replay", *arguments, "--json"], cwd=world.project,
        env=environment(world.home, world.model.url), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    found = json.loads(done.stdout)
    wrong = [one for one in found.get("cells", found.get("answers")) if one["outcome"] in ("differs", "failed")]
    assert done.returncode == code, json.dumps(wrong, indent=1) or done
    return found


def test_what_the_client_did_comes_out_the_same(world: World, kept: Kept) -> None:
    readme = world.project / "README.md"
    session = talk(
        world,
        [
            "bash: cat README.md; echo oops >&2; exit 3 ;; bash: pwd; ls ;; bash: true",
            f"read: {readme} ;; edit: {readme} A project -> Our project ;; bash: git status --short",
            f"write: {world.project}/new/file.txt some words ;; bash: cat new/file.txt ;; bash: cat nothing.txt",
        ],
    )
    kept.recorded(session, 3)
    before = (readme.read_text(), sorted(one.name for one in world.project.rglob("*") if ".git" not in one.parts))
    found = replay(world, session, "--execute")
    said = [(one["operation"], one["outcome"], one["diff"]) for one in found["cells"] if one["type"] == "tool"]
    # Newer ones give no lines of a file that they gave before.
    assert {one[:2] for one in said if one[1] != "equal"} <= {("Read", "skipped")}, said
    assert sum(one[1] == "equal" for one in said) >= 9, said
    assert (readme.read_text(), sorted(o.name for o in world.project.rglob("*") if ".git" not in o.parts)) == before
    kept.fsck()


def test_prompts_are_answered_by_one_client(world: World, kept: Kept) -> None:
    session = talk(world, ["first", "second", "third"])
    kept.recorded(session, 3)
    world.model.clear()
    folder = world.home / "bin"
    folder.mkdir()
    claude = folder / "claude"
    claude.write_text(f'#!/bin/sh\nexec {shlex.join(world.client.command)} "$@"\n')
    claude.chmod(0o755)
    found = replay(world, session, "--inputs", "--to", f"{claude} -p", "--timeout", "60")
    assert found["protocol"] == "stream-json"
    assert [(one["outcome"], one["reason"]) for one in found["answers"]] == [("equal", None)] * 3
    told = kept.json("log", found["kept"]["session_id"])["turns"]
    assert [one["answer"] for one in told] == ["Echo: first", "Echo: second", "Echo: third"]
    texts = json.dumps([one.body for one in world.model.requests])
    assert texts.count("second") > 1  # the third prompt was asked by a client that knew the second
    assert [
        one["id"] for one in kept.json("ls")["sessions"] if one["id"] not in (session, found["kept"]["session_id"])
    ] == []
    kept.run("diff", session, found["kept"]["session_id"])
    kept.fsck()


def test_a_kept_replay_can_be_resumed(world: World, kept: Kept) -> None:
    session = talk(world, ["bash: echo one"])
    kept.recorded(session, 1)
    fork = replay(world, session, "--execute")["kept"]["session_id"]
    kept.run("restore", fork)
    world.model.clear()
    assert world.run("what was found?", resume=fork).answer == "Echo: what was found?"
    conversation = json.dumps(world.model.conversation(fork))
    assert "Replay of 1 cell" in conversation and "outcome" in conversation
