"""The real Codex: recorded by its hooks, forked, resumed, merged back, restored."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import UnavailableError
from codex_world import VERSIONS, CodexWorld, Responses, install

pytestmark = pytest.mark.client


@pytest.fixture(scope="session", params=VERSIONS)
def program(request: pytest.FixtureRequest) -> tuple[str, Path]:
    try:
        return request.param, install(request.param)
    except UnavailableError as error:
        pytest.skip(f"Codex {request.param}: {error}")


@pytest.fixture
def world(program: tuple[str, Path], tmp_path: Path) -> Iterator[CodexWorld]:
    with Responses() as model:
        made = CodexWorld(*program, model, tmp_path / "home", tmp_path / "project")
        made.sessgit("install", "--agent", "codex", "--trust")
        yield made
        made.close()


def recorded(world: CodexWorld, turns: int) -> str:
    """Wait until the hooks have recorded so many turns of the newest rollout; return its session."""
    session = world.rollouts()[-1].stem[-36:]
    ref = world.home / ".claude" / "session-store" / "refs" / "heads" / session
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if ref.exists() and (world.json("ls", "--all")["sessions"][0]["turns"]) >= turns:
            return session
        time.sleep(0.1)
    raise AssertionError(world.sessgit("status"))


def talked(world: CodexWorld) -> str:
    """Four turns, two of them with tool calls, all recorded by the hooks."""
    world.run("run: echo hi")
    session = recorded(world, 1)
    for number, prompt in enumerate(("patch: page.md", "third", "fourth"), start=2):
        world.run(prompt, resume=session)
        assert recorded(world, number) == session
    return session


def test_four_turns_are_recorded_and_a_fork_continues_with_two(world: CodexWorld) -> None:
    session = talked(world)
    log = world.json("log", session)["turns"]
    assert [turn["prompt"] for turn in log] == ["run: echo hi", "patch: page.md", "third", "fourth"]
    assert (world.project / "page.md").read_text() == "one line\n"
    assert "no damage" in world.sessgit("verify", "--deep")
    fork = world.json("fork", session, "--at", "2")["id"]
    world.run("another way", resume=fork)
    assert world.said() == [
        "run: echo hi", "answer to: run: echo hi", "patch: page.md", "answer to: patch: page.md", "another way",
    ]  # fmt: skip
    assert recorded(world, 3) == fork
    world.sessgit("merge", fork, "--into", session, "--mode", "graft")
    world.run("and on", resume=session)
    assert world.said()[-4:] == ["answer to: fourth", "another way", "answer to: another way", "and on"]
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_deleted_rollout_comes_back_and_is_resumed(world: CodexWorld) -> None:
    session = talked(world)
    path = world.rollouts()[-1]
    data = path.read_bytes()
    path.unlink()
    world.sessgit("restore", session)
    assert path.read_bytes() == data
    world.run("go on", resume=session)
    assert world.said()[-2:] == ["answer to: fourth", "go on"]
    assert recorded(world, 5) == session


@pytest.mark.parametrize("way", ["interrupt", "kill"])
def test_a_turn_that_was_cut_off(world: CodexWorld, way: str) -> None:
    world.run("first")
    session = recorded(world, 1)
    before = len(world.model.requests)
    process = world.start("slow: 30", resume=session)
    while len(world.model.requests) == before:
        time.sleep(0.05)
    getattr(world, way)(process)
    world.run("next", resume=session)
    assert recorded(world, 3) == session
    turns = world.json("log", session)["turns"]
    assert [turn["prompt"] for turn in turns] == ["first", "slow: 30", "next"]
    path = world.rollouts()[-1]
    data = path.read_bytes()
    path.unlink()
    world.sessgit("restore", session)
    assert path.read_bytes() == data
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_fork_that_the_client_makes(world: CodexWorld) -> None:
    if not world.is_paginated:
        pytest.skip("0.118 forks in its terminal interface only")
    world.run("first")
    session = recorded(world, 1)
    world.run("second", fork=session)
    fork = world.rollouts()[-1].stem[-36:]
    assert fork != session
    deadline = time.monotonic() + 30
    while len(world.json("ls", "--all")["sessions"]) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    rows = {row["id"]: row for row in world.json("ls", "--all")["sessions"]}
    assert rows.keys() == {session, fork}
    data = world.rollouts()[-1].read_bytes()
    os.unlink(world.rollouts()[-1])  # noqa: PTH108
    world.sessgit("restore", fork)
    assert world.rollouts()[-1].read_bytes() == data
