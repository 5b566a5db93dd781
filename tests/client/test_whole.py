"""What lay beside a conversation, in the hands of the real client: after a restore, a fork, a move, an export.

The proof is what the model received: its task list, and what a subagent that is woken again remembers.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from clients import seal_home
from model_server import Request, conversation
from test_recording import Kept, talk
from world import World

pytestmark = pytest.mark.client

SUBAGENT = "agent: bash: echo from-sub"
TASKS = "tasks: alpha, beta"
AFTER = "bash: echo later"


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def beside(world: World, session: str) -> dict[Path, bytes]:
    """What the client keeps beside a session's transcript; the notes and locks of its own are left out."""
    config = world.home / ".claude"
    folder = world.transcript(session).parent
    found = [*folder.glob(f"{session}/**/*"), *(config / "tasks" / session).glob("*.json")]
    found += (config / "todos").glob(f"{session}-agent-*")
    found += (path for path in folder.glob("agent-*.jsonl") if session in path.read_text().partition("\n")[0])
    return {path: path.read_bytes() for path in found if path.is_file()}


def wipe(world: World) -> None:
    for name in ("projects", "tasks", "todos"):
        shutil.rmtree(world.home / ".claude" / name, ignore_errors=True)


def agent_of(world: World, session: str) -> str:
    """The id of the subagent that did something, as the client told it."""
    said = [line.get("toolUseResult") for line in world.lines(session)]
    return next(str(one["agentId"]) for one in said if isinstance(one, dict) and "agentId" in one)


def sent(request: Request) -> str:
    return json.dumps(request.body["messages"])


def assert_tasks_are_known(world: World, session: str, cwd: Path | None = None, **env: str) -> None:
    """2.1 lists its tasks when asked; 2.0 reminds the model of them when it has not spoken of them for a while."""
    where: dict[str, Any] = {"cwd": cwd or world.project, "env": env}
    if world.client.release >= (2, 1):
        world.run("tool: TaskList {}", resume=session, **where)
        assert "#1 [pending] alpha\\n#2 [pending] beta" in sent(world.model.main(session)[-1])
        return
    for number in range(8):
        world.run(f"bash: echo {number}", resume=session, **where)
    assert any("1. [pending] alpha\\n2. [pending] beta" in sent(request) for request in world.model.main(session))


def assert_subagent_remembers(world: World, session: str, agent: str, cwd: Path | None = None, **env: str) -> None:
    """Woken by its id, the subagent goes on from what it did before."""
    if world.client.release >= (2, 1):
        words = {"to": agent, "summary": "one thing more to be done", "message": "go on"}
        prompt = f"tool: SendMessage {json.dumps(words)}"
    else:
        given = {"description": "mock", "prompt": "go on", "subagent_type": "general-purpose", "resume": agent}
        prompt = f"tool: Task {json.dumps(given)}"
    world.model.clear()
    world.run(prompt, resume=session, cwd=cwd or world.project, env=env)
    woken = [r for r in world.model.requests if r.kind == "subagent" and "go on" in sent(r)]
    assert woken, [(r.kind, r.prompt[:60]) for r in world.model.requests]
    assert ("user", "[Bash: from-sub]") in conversation(woken[0])


def whole(world: World, kept: Kept) -> str:
    """A session with tasks and a subagent, recorded by the hooks, and a turn after them."""
    session = talk(world, [TASKS, SUBAGENT])
    world.run(AFTER, resume=session)
    kept.recorded(session, 3)
    kept.run("log", session)
    return session


def test_restored_with_tasks_and_subagent(world: World, kept: Kept) -> None:
    session = whole(world, kept)
    transcript, files, agent = world.transcript(session), beside(world, session), agent_of(world, session)
    assert any("agent-" in path.name for path in files)
    data = transcript.read_bytes()
    wipe(world)
    kept.run("restore", session)
    assert transcript.read_bytes() == data
    assert beside(world, session) == files
    world.model.clear()
    assert_tasks_are_known(world, session)
    assert_subagent_remembers(world, session, agent)
    kept.recorded(session, 4)
    kept.fsck()
    # What the subagent said since is recorded once, behind what it said before.
    files, data = beside(world, session), transcript.read_bytes()
    kept.run("import")
    wipe(world)
    kept.run("restore", session)
    assert transcript.read_bytes() == data
    (lines,) = (path for path in files if path.name == f"agent-{agent}.jsonl")
    assert lines.read_bytes() == files[lines]


def test_forked_with_tasks_and_subagent(world: World, kept: Kept) -> None:
    session = whole(world, kept)
    agent, files = agent_of(world, session), beside(world, session)
    fork = kept.json("fork", session, "--at", "2")
    assert {file["outcome"] for file in fork["files"]} <= {"written", "already"}
    world.model.clear()
    assert_tasks_are_known(world, fork["id"])
    assert_subagent_remembers(world, fork["id"], agent)
    if world.client.release >= (2, 1):
        assert beside(world, session) == files
        (lines,) = (path for path in beside(world, fork["id"]) if path.name == f"agent-{agent}.jsonl")
        named = {json.loads(line).get("sessionId") for line in lines.read_bytes().splitlines()}
        assert named == {fork["id"]}
    kept.recorded(fork["id"], 4)
    kept.fsck()


def test_resumed_from_a_project_that_was_moved(world: World, kept: Kept) -> None:
    session = whole(world, kept)
    agent = agent_of(world, session)
    wipe(world)
    moved = world.home / "moved"
    world.project.rename(moved)
    seal_home(world.home, moved)
    world.project.mkdir()  # the test's own working folder
    kept.run("restore", session, "--project", str(moved))
    world.project.rmdir()
    world.model.clear()
    world.run("hello", resume=session, cwd=moved)
    assert world.model.conversation(session)[-1] == ("user", "hello")
    assert ("user", TASKS) in world.model.conversation(session)
    assert_subagent_remembers(world, session, agent, cwd=moved)
    world.project.mkdir()
    kept.recorded(session, 5)
    assert kept.run("resume", session, "--print") == f"cd {moved} && claude --resume {session}\n"
    assert kept.restored(session) == world.transcript(session).read_bytes()


def test_forked_into_another_folder(world: World, kept: Kept) -> None:
    session = whole(world, kept)
    other = world.home / "other"
    other.mkdir()
    seal_home(world.home, other)
    fork = kept.json("fork", session, "--at", "2", "--project", str(other))
    world.model.clear()
    world.run("hello", resume=fork["id"], cwd=other)
    prompts = [text for role, text in world.model.conversation(fork["id"]) if role == "user" and text[0] != "["]
    assert (prompts[0], prompts[-1]) == (TASKS, "hello")
    assert AFTER not in prompts


def test_an_exported_folder_is_one_of_the_clients(world: World, kept: Kept) -> None:
    session = whole(world, kept)
    agent, out = agent_of(world, session), world.home / "exported"
    kept.run("export", "claude", session, "--output", str(out))
    wipe(world)
    shutil.copy(world.home / ".claude.json", out / ".claude.json")
    world.model.clear()
    assert_tasks_are_known(world, session, CLAUDE_CONFIG_DIR=str(out))
    assert_subagent_remembers(world, session, agent, CLAUDE_CONFIG_DIR=str(out))
    assert not world.transcripts()
    (index,) = out.glob("projects/*/sessions-index.json")
    assert [entry["sessionId"] for entry in json.loads(index.read_bytes())["entries"]] == [session]
