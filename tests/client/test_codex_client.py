"""The real Codex: recorded by its hooks, forked, resumed, merged back, restored."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import UnavailableError
from codex_world import LINE, VERSIONS, CodexWorld, Responses, install
from transcripts import SESSION, Talk

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


def row(world: CodexWorld, session: str) -> tuple[str | None, int | None, int]:
    found = next(row for row in world.json("ls", "--all")["sessions"] if row["id"] == session)
    return found["parent"], found["fork_turn"], found["turns"]


def recorded(world: CodexWorld, turns: int) -> str:
    """Wait until the hooks have recorded so many turns of the newest rollout; return its session."""
    session = world.rollouts()[-1].stem[-36:]
    store = world.home / ".claude" / "session-store"  # asked by git: a command records what is new itself
    command = ["git", "-C", str(store), "ls-tree", "--name-only", session, "turns/0000/"]
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done = subprocess.run(command, capture_output=True, text=True, env=world.environment, check=False)
        if len(done.stdout.splitlines()) >= turns:
            return session
        time.sleep(0.1)
    raise AssertionError(world.sessgit("status"))


def asked(world: CodexWorld, *prompts: str) -> str:
    """A turn for each prompt, recorded by the hooks before the next one; the session."""
    session = ""
    for number, prompt in enumerate(prompts, start=1):
        world.run(prompt, resume=session)
        session = recorded(world, number)
    return session


def talked(world: CodexWorld) -> str:
    """Four turns, two of them with tool calls."""
    return asked(world, "run: echo hi", "patch: page.md", "third", "fourth")


def test_four_turns_are_recorded_and_a_fork_continues_with_two(world: CodexWorld) -> None:
    session = talked(world)
    log = world.json("log", session)["turns"]
    assert [turn["prompt"] for turn in log] == ["run: echo hi", "patch: page.md", "third", "fourth"]
    assert (world.project / "page.md").read_text() == f"{LINE}\n"
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


def test_a_merge_waits_until_the_client_is_done(world: CodexWorld) -> None:
    if not world.is_paginated:
        pytest.skip("0.118 takes no lock")
    world.run("first")
    session = recorded(world, 1)
    fork = world.json("fork", session)["id"]
    world.run("in the fork", resume=fork)
    recorded(world, 2)
    before = len(world.model.requests)
    process = world.start("slow: 30", resume=session)
    while len(world.model.requests) == before:
        time.sleep(0.05)
    world.sessgit("merge", fork, "--into", session, code=3)
    world.kill(process)
    world.sessgit("merge", fork, "--into", session)


def test_a_summary_of_a_conversation_with_claude(world: CodexWorld) -> None:
    """The model gets it at the next prompt; the way back is tested without a client."""
    world.run("first")
    session = recorded(world, 1)
    Talk(SESSION).turns("mend the roof").save(world.home / ".claude" / "projects" / "-house")
    world.sessgit("import")
    world.sessgit("merge", SESSION, "--into", session)
    world.run("and on", resume=session)
    said = world.said()
    assert (said[:2], said[-1]) == (["first", "answer to: first"], "and on")
    assert "mend the roof" in "".join(said[2:-1])
    assert recorded(world, 3) == session
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_compaction(world: CodexWorld) -> None:
    world.run("first")
    session = recorded(world, 1)
    thread = {"threadId": session}
    world.server(("thread/resume", thread), ("thread/compact/start", thread), until="turn/completed")
    world.run("second", resume=session)
    assert recorded(world, 3) == session
    assert [turn["prompt"] for turn in world.json("log", session)["turns"]] == ["first", "", "second"]
    path = world.rollouts()[-1]
    data = path.read_bytes()
    assert b'"type":"compacted"' in data
    sent = world.said()
    path.unlink()
    world.sessgit("restore", session)
    assert path.read_bytes() == data
    fork = world.json("fork", session)["id"]
    world.run("and on", resume=fork)
    assert world.said() == [*sent, "answer to: second", "and on"]
    assert recorded(world, 4) == fork
    assert "no damage" in world.sessgit("verify", "--deep")


def turn_ids(path: Path) -> list[str]:
    lines = [json.loads(line)["payload"] for line in path.read_bytes().splitlines()]
    return [payload["turn_id"] for payload in lines if payload.get("type") == "task_started"]


def test_a_fork_that_the_client_makes(world: CodexWorld) -> None:
    """And what it sends after both files were deleted and the fork was restored."""
    session = asked(world, "first", "second", "third")
    last = {"lastTurnId": turn_ids(world.rollouts()[-1])[1]} if world.is_paginated else {}
    at = 2 if world.is_paginated else 3
    _, forked = world.server(("thread/resume", {"threadId": session}), ("thread/fork", {"threadId": session} | last))
    fork = forked["thread"]["id"]
    world.run("in the fork", resume=fork)
    assert recorded(world, at + 1) == fork
    assert row(world, fork) == (session, at, at + 1)
    paths = world.rollouts()
    data = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    world.sessgit("restore", fork)
    assert paths[-1].read_bytes() == data[-1]
    assert paths[0].exists() == world.is_paginated
    world.run("and on", resume=fork)
    said = [text for prompt in ["first", "second", "third"][:at] for text in (prompt, f"answer to: {prompt}")]
    assert world.said() == [*said, "in the fork", "answer to: in the fork", "and on"]
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_fork_whose_parent_had_a_secret(world: CodexWorld) -> None:
    """The client reads the parent's file up to a byte: with another length of a line before it, it would lose lines."""
    world.run("use AKIAIOSFODNN7EXAMPLQ")
    session = recorded(world, 1)
    _, forked = world.server(("thread/resume", {"threadId": session}), ("thread/fork", {"threadId": session}))
    fork = forked["thread"]["id"]
    world.run("in the fork", resume=fork)
    recorded(world, 2)
    for path in world.rollouts():
        path.unlink()
    world.sessgit("restore", fork)
    world.run("and on", resume=fork)
    said = world.said()
    assert [text.replace("[redacted:aws-access-key]", "KEY") for text in said] == [
        "use KEY", "answer to: use KEY", "in the fork", "answer to: in the fork", "and on",
    ]  # fmt: skip
    assert recorded(world, 3) == fork
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_rewind(world: CodexWorld) -> None:
    session = asked(world, "first", "second", "third")
    resumed = ("thread/resume", {"threadId": session})
    if world.is_paginated:
        before = turn_ids(world.rollouts()[-1])[1]
        world.server(resumed, ("thread/revert", {"threadId": session, "beforeTurnId": before}))
    else:
        world.server(resumed, ("thread/rollback", {"threadId": session, "numTurns": 2}))
    world.run("otherwise", resume=session)
    assert world.said() == ["first", "answer to: first", "otherwise"]
    newest = recorded(world, 2)
    assert [turn["prompt"] for turn in world.json("log", newest)["turns"]] == ["first", "otherwise"]
    paths = world.rollouts()
    data = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    if world.is_paginated:
        assert row(world, newest) == (session, 1, 2)
    else:
        assert newest == session
        assert "2 turns left behind by a rewind" in world.sessgit("log", session)
    world.sessgit("restore", newest)
    assert [path.read_bytes() for path in paths] == data
    world.run("and on", resume=session)
    assert world.said() == ["first", "answer to: first", "otherwise", "answer to: otherwise", "and on"]
    fork = world.json("fork", newest, "--at", "2")["id"]
    world.run("in our fork", resume=fork)
    assert world.said()[-3:] == ["otherwise", "answer to: otherwise", "in our fork"]
    assert recorded(world, 3) == fork
    assert "no damage" in world.sessgit("verify", "--deep")


def test_a_subagent(world: CodexWorld) -> None:
    """A thread of its own is a child of the conversation that asked for it, and comes back after it was deleted."""
    world.run("agent: look around")
    world.sessgit("import")
    parent, child = sorted(world.json("ls", "--all")["sessions"], key=lambda one: one["created"])
    assert (parent["first_prompt"], parent["child_of"]) == ("agent: look around", None)
    assert (child["first_prompt"], child["child_of"], child["parent"]) == ("look around", parent["id"], None)
    answered = world.json("show", f"{parent['id']}@1")["turn"]["answer"]
    assert answered == "answer to: agent: look around"
    before = {path: path.read_bytes() for path in world.rollouts()}
    for path in before:
        path.unlink()
    world.sessgit("restore", "--all-lost")
    assert {path: path.read_bytes() for path in world.rollouts()} == before


def test_who_wrote_a_line(world: CodexWorld) -> None:
    session = talked(world)
    (line,) = world.json("blame", "page.md")["lines"]
    assert (line["text"], line["address"]) == (LINE, f"{session}@2.2")
    (step,) = world.json("why", "page.md")["steps"]
    assert (step["what"], step["cell"]["address"], step["prompt"]) == ("wrote", "2.2", "patch: page.md")


def test_a_patch_of_several_files(world: CodexWorld) -> None:
    """Each file is found, and in the sandbox the patches give what the client made of the files."""
    adds = "apply: *** Add File: old.md\n+one\n+two\n*** Add File: gone.md\n+bye"
    several = f"apply: *** Add File: new.md\n+{LINE}\n*** Delete File: gone.md\n*** Update File: old.md\n"
    session = asked(
        world, adds, f"{several}*** Move to: docs/moved.md\n@@\n one\n-two\n+2",
        "apply: *** Add File: a.md\n+a\n*** Update File: new.md\n@@\n-no such line\n+b",
        "run: cd docs && apply_patch <<'E'\n*** Begin Patch\n*** Add File: in.md\n+s\n*** End Patch\nE",
        "run: cat *.md docs/*; ls",
    )  # fmt: skip
    assert sorted(str(path.relative_to(world.project)) for path in world.project.rglob("*.md")) == [
        "docs/in.md", "docs/moved.md", "new.md",
    ]  # fmt: skip
    for path, turns in {
        "new.md": [2], "gone.md": [1, 2], "old.md": [1, 2], "docs/moved.md": [2], "docs/in.md": [4],
    }.items():  # fmt: skip
        steps = world.json("why", path, session)["steps"]
        assert [step["cell"]["turn"] for step in steps if step["what"] == "wrote"] == turns, path
    assert [cell["turn"] for cell in world.json("cells", session, "--failed")["cells"]] == [3]
    (line,) = world.json("blame", "new.md")["lines"]
    assert (line["text"], line["address"]) == (LINE, f"{session}@2.2")
    replayed = world.json("replay", session, "--execute", "--no-keep")["cells"]
    assert [cell["outcome"] for cell in replayed if cell["type"] == "tool"] == ["equal"] * 5, replayed
