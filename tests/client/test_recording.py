"""sessgit with the real client: what it records, forks and restores, at each version.

The proof of a fork is what the model received: the client was asked to go on, and sent the words it went on from.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from clients import kill
from plain import run_git
from waiting import until
from world import World

pytestmark = pytest.mark.client

PATIENCE = 15.0
INTERRUPTED = "bash: echo two ;; hold: here"
TURNS = ["bash: echo one", "both: echo a && echo b", "write: three.txt third", "read: three.txt"]


class Kept:
    """A world in which `sessgit install` has turned recording on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.store = world.home / ".claude" / "session-store"
        self.run("install")

    def run(self, *arguments: str, code: int = 0) -> str:
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(self.world.home)}
        done = subprocess.run(
            [sys.executable, "-m", "sessgit", *arguments],
            cwd=self.world.project, env=env, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == code, f"sessgit {arguments} left with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        value = json.loads(self.run(*arguments, "--json"))
        return value

    def recorded(self, session: str, turns: int) -> None:
        """Waits until git itself finds so many turns on the session's branch, put there by the hooks alone."""
        command = ["git", "-C", str(self.store), "log", "--format=%(trailers:key=Turn,valueonly)", session, "--"]
        deadline = time.monotonic() + PATIENCE
        found = 0
        while found < turns:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found = max((int(word) for word in done.stdout.split()), default=0)
            log = self.store / "log"
            assert time.monotonic() < deadline, (found, log.read_text() if log.exists() else "no log")
            time.sleep(0.05)
        # An event goes once it is recorded: that the client has let go, too.
        while any((self.store / "spool").glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)

    def restored(self, session: str) -> bytes:
        output = self.world.home / f"restored-{session}.jsonl"
        output.unlink(missing_ok=True)
        self.run("restore", session, "--output", str(output))
        return output.read_bytes()

    def fsck(self) -> None:
        subprocess.run(["git", "-C", str(self.store), "fsck", "--strict"], check=True, capture_output=True)


@pytest.fixture
def kept(world: World) -> Kept:
    return Kept(world)


def talk(world: World, prompts: list[str]) -> str:
    session = None
    for prompt in prompts:
        session = world.run(prompt, resume=session).session_id
    assert session is not None
    return session


def test_a_fork_goes_on_with_exactly_the_words_it_was_cut_at(world: World, kept: Kept) -> None:
    session = talk(world, TURNS[:2])
    world.model.clear()
    world.run(TURNS[2], resume=session)
    first_two = [said for said in world.model.conversation(session) if said]
    first_two = first_two[: first_two.index(("user", TURNS[2]))]
    world.run(TURNS[3], resume=session)
    kept.recorded(session, 4)

    fork = kept.json("fork", session, "--at", "2", "--name", "another way")
    world.model.clear()
    world.run("hello", resume=fork["id"])

    sent = world.model.conversation(fork["id"])
    assert sent == [*first_two, ("user", "hello")]
    kept.recorded(fork["id"], 3)
    log = kept.json("log", fork["id"])
    assert [turn["prompt"] for turn in log["turns"]] == [*TURNS[:2], "hello"]
    assert (log["session"]["parent"], log["session"]["fork_turn"]) == (session, 2)
    diff = kept.json("diff", session, fork["id"])
    assert diff["shared_turns"] == 2
    assert [turn["prompt"] for turn in diff["only_a"]] == TURNS[2:]
    assert [turn["prompt"] for turn in diff["only_b"]] == ["hello"]
    assert kept.restored(session) == world.transcript(session).read_bytes()
    assert kept.restored(fork["id"]) == world.transcript(fork["id"]).read_bytes()
    kept.fsck()


def test_a_rewind_leaves_a_branch_behind(world: World, kept: Kept) -> None:
    session = talk(world, ["one", "two", "three"])
    answers = [line["uuid"] for line in world.lines(session) if line["type"] == "assistant"]
    world.run("another two", resume=session, resume_at=answers[0])
    kept.recorded(session, 2)

    log = kept.json("log", session, "--rewound")
    by_branch: dict[str, list[str]] = {}
    for turn in log["turns"]:
        by_branch.setdefault(turn["branch"], []).append(turn["prompt"])
    assert by_branch.pop(session) == ["one", "another two"]
    assert list(by_branch.values()) == [["two", "three"]]
    assert kept.restored(session) == world.transcript(session).read_bytes()


def test_a_fork_made_by_the_client_is_recorded_with_its_parent(world: World, kept: Kept) -> None:
    session = talk(world, TURNS[:2])
    kept.recorded(session, 2)
    fork = world.run("in the fork", resume=session, fork_session=True).session_id
    kept.recorded(fork, 3)

    log = kept.json("log", fork)
    assert (log["session"]["parent"], log["session"]["fork_turn"]) == (session, 2)
    assert [turn["prompt"] for turn in log["turns"]] == [*TURNS[:2], "in the fork"]
    assert kept.restored(fork) == world.transcript(fork).read_bytes()
    assert kept.restored(session) == world.transcript(session).read_bytes()


def test_a_branch_made_in_the_terminal_is_recorded_with_its_parent(world: World, kept: Kept) -> None:
    if world.client.release < (2, 1):
        pytest.skip("2.0 has no /branch")
    terminal = world.terminal()
    terminal.ask("one")
    terminal.ask("two")
    (session,) = [path.stem for path in world.transcripts()]
    kept.recorded(session, 2)
    terminal.submit("/branch side")
    terminal.wait_for("ranched")
    terminal.ask("in the branch")
    terminal.quit()
    (fork,) = [path.stem for path in world.transcripts() if path.stem != session]
    kept.recorded(fork, 3)

    log = kept.json("log", fork)
    assert (log["session"]["parent"], log["session"]["fork_turn"]) == (session, 2)
    assert [turn["prompt"] for turn in log["turns"]] == ["one", "two", "in the branch"]
    assert kept.restored(fork) == world.transcript(fork).read_bytes()


def test_a_killed_turn_is_recorded_by_the_next_event(world: World, kept: Kept) -> None:
    session = talk(world, ["one"])
    process = world.start("bash: echo two ;; hold: here", resume=session)
    world.model.wait_for_prompt("bash: echo two ;; hold: here")
    time.sleep(2)
    kill(process)
    world.model.release()
    world.run("three", resume=session)
    kept.recorded(session, 2)

    log = kept.json("log", session)
    assert log["turns"][-1]["prompt"] == "three"
    assert kept.restored(session) == world.transcript(session).read_bytes()
    kept.fsck()


def test_a_last_line_without_a_newline_that_the_client_goes_on_from(world: World, kept: Kept) -> None:
    """Some versions begin with a newline, others go on in the very line; nothing is lost."""
    session = world.run("one", env={"SESSGIT_OFF": "1"}).session_id
    world.run("two", resume=session, env={"SESSGIT_OFF": "1"})
    path = world.transcript(session)
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines, start=1) if b'"type":"assistant"' in line)
    path.write_bytes(b"".join(lines[:last])[:-1])
    assert "Echo: two" in kept.run("show", f"{session}@2")
    assert kept.restored(session) == path.read_bytes()
    world.run("three", resume=session)
    kept.recorded(session, 3)

    assert "Echo: two" in kept.run("show", f"{session}@2")
    assert [turn["prompt"] for turn in kept.json("log", session)["turns"]] == ["one", "two", "three"]
    assert kept.restored(session) == path.read_bytes()
    assert "no damage" in kept.run("verify", "--deep")


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_fork_at_an_interrupted_turn_stays_there(world: World, kept: Kept, how: str) -> None:
    """Resumed with -p, the client first writes an answer of its own for the turn that has none."""
    session = talk(world, ["one"])
    if how == "killed":
        process = world.start(INTERRUPTED, resume=session)
        world.model.wait_for_prompt(INTERRUPTED)
        until(lambda: b'"tool_result"' in world.transcript(session).read_bytes())
        kill(process)
    else:
        terminal = world.terminal("--resume", session)
        terminal.submit(INTERRUPTED)
        until(lambda: b'"tool_result"' in world.transcript(session).read_bytes())
        terminal.interrupt()
    world.model.release()
    if how == "stopped":
        terminal.quit()
    fork = kept.json("fork", session, "--at", "2", "--name", "another way")["id"]
    head = run_git(kept.store, "rev-parse", f"{fork}^")
    world.run("go on", resume=fork)
    kept.recorded(fork, 3)
    world.run("and on", resume=fork)
    kept.recorded(fork, 4)

    assert "No response requested." in world.transcript(fork).read_text("utf-8")
    log = kept.json("log", fork)
    assert (log["session"]["parent"], log["session"]["fork_turn"]) == (session, 2)
    assert [turn["prompt"] for turn in log["turns"]] == ["one", INTERRUPTED, "go on", "and on"]
    diff = kept.json("diff", session, fork)
    assert (diff["shared_turns"], diff["only_a"], diff["partial"]) == (2, [], None)
    assert [turn["prompt"] for turn in diff["only_b"]] == ["go on", "and on"]
    (family,) = kept.json("tree", "--all")["families"]
    (node,) = (node for node in family["nodes"] if node["id"] == fork)
    assert (node["parent"], node["fork_turn"], node["own_turns"]) == (session, 2, 2)
    assert kept.json("stats", fork)["total"]["turns"] == 2
    assert run_git(kept.store, "log", "--grep=^Event: fork", "--format=%P", fork, "--").strip() == head.strip()
    assert kept.restored(fork) == world.transcript(fork).read_bytes()
    if how == "killed":  # no event says that it ended: what it wrote behind the open turn waits for that
        kept.run("recover")
    assert kept.restored(session) == world.transcript(session).read_bytes()
    assert "no damage" in kept.run("verify", "--deep")
    kept.fsck()


def test_a_fork_from_before_a_compaction_has_the_uncompacted_words(world: World, kept: Kept) -> None:
    session = talk(world, TURNS[:2])
    world.model.clear()
    world.run("three", resume=session)
    whole = world.model.conversation(session)
    whole = whole[: whole.index(("user", "three"))]
    world.run("/compact", resume=session)
    world.run("after", resume=session)
    kept.recorded(session, 4)

    fork = kept.json("fork", session, "--at", "2")
    world.model.clear()
    world.run("hello", resume=fork["id"])
    assert world.model.conversation(fork["id"]) == [*whole, ("user", "hello")]
    assert kept.restored(session) == world.transcript(session).read_bytes()


def test_a_subagent_is_kept_with_the_turn_that_started_it(world: World, kept: Kept) -> None:
    session = talk(world, ["one", "agent: bash: echo from-sub"])
    kept.recorded(session, 2)
    kept.run("log", session)
    listing = subprocess.run(
        ["git", "-C", str(kept.store), "ls-tree", "-r", "--name-only", session, "turns/0000/000002/subagents/"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert [name for name in listing if name.endswith(".jsonl")]
    held = subprocess.run(
        ["git", "-C", str(kept.store), "grep", "-l", "from-sub", session, "--", "turns/0000/000002/subagents/"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert held.strip()


def test_a_turn_is_forked_while_the_next_one_runs(world: World, kept: Kept) -> None:
    session = talk(world, ["bash: echo one"])
    kept.recorded(session, 1)
    running = world.start("hold: two", resume=session)
    world.model.wait_for_prompt("hold: two")
    fork = kept.json("fork", session, "--at", "1")
    world.model.release()
    running.wait(timeout=30)
    world.model.clear()
    world.run("hello", resume=fork["id"])
    sent = world.model.conversation(fork["id"])
    assert sent[0] == ("user", "bash: echo one")
    assert sent[-1] == ("user", "hello")
    assert not any("two" in text for _, text in sent)


def test_id_run_as_a_tool_is_the_session(world: World, kept: Kept) -> None:
    session = talk(world, ["one"])
    kept.recorded(session, 1)
    world.run("bash: sessgit id 2>/dev/null", resume=session)
    assert ("user", f"[Bash: {session}]") in world.model.conversation(session)


def test_a_deleted_transcript_is_restored_and_resumed(world: World, kept: Kept) -> None:
    session = talk(world, TURNS[:2])
    kept.recorded(session, 2)
    transcript = world.transcript(session)
    original = transcript.read_bytes()
    world.model.clear()
    transcript.rename(world.home / "away.jsonl")
    kept.run("restore", session)
    assert transcript.read_bytes() == original
    world.run("three", resume=session)
    sent = world.model.conversation(session)
    assert [text for role, text in sent if role == "user" and not text.startswith("[")] == [*TURNS[:2], "three"]
