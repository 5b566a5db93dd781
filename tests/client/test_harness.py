"""The harness itself: the clients run, the mock is talked to, what was sent can be told exactly."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from clients import ENDS, kill
from model_server import prompts
from world import World

pytestmark = [pytest.mark.client, ENDS]

FOUR_TURNS = [
    ("user", "bash: echo one"),
    ("assistant", "Step 1."),
    ("assistant", "[Bash echo one]"),
    ("user", "[Bash: one]"),
    ("assistant", "Echo: bash: echo one"),
    ("user", "write: notes.txt old words"),
    ("assistant", "Step 1."),
    ("assistant", "[Write notes.txt]"),
    ("user", "[Write: ok]"),
    ("assistant", "Echo: write: notes.txt old words"),
    ("user", "edit: notes.txt old -> new"),
    ("assistant", "Step 1."),
    ("assistant", "[Read notes.txt]"),
    ("user", "[Read: ok]"),
    ("assistant", "Step 2."),
    ("assistant", "[Edit notes.txt]"),
    ("user", "[Edit: ok]"),
    ("assistant", "Echo: edit: notes.txt old -> new"),
    ("user", "both: echo a && echo b"),
    ("assistant", "Step 1."),
    ("assistant", "[Bash echo a]"),
    ("assistant", "[Bash echo b]"),
    ("user", "[Bash: a]"),
    ("user", "[Bash: b]"),
]
ANSWERED = [*FOUR_TURNS, ("assistant", "Echo: both: echo a && echo b")]
PROMPTS = [text for role, text in FOUR_TURNS if role == "user" and not text.startswith("[")]


def four_turns(world: World) -> str:
    session_id = world.run(PROMPTS[0]).session_id
    for prompt in PROMPTS[1:]:
        assert world.run(prompt, resume=session_id).session_id == session_id
    return session_id


def is_prompt(line: dict[str, Any], prompt: str) -> bool:
    return line["type"] == "user" and line["message"]["content"] == prompt


def said(world: World, session_id: str) -> list[str]:
    return [line["message"]["content"] for line in world.lines(session_id) if line["type"] == "user"]


def eventually(true: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def test_four_turns_are_sent_exactly(world: World) -> None:
    session_id = four_turns(world)

    assert world.model.conversation() == FOUR_TURNS
    assert world.model.conversation(session_id) == FOUR_TURNS
    assert (world.project / "notes.txt").read_text() == "new words\n"
    assert [path.stem for path in world.transcripts()] == [session_id]

    world.run("and?", resume=session_id)
    assert world.model.conversation() == [*ANSWERED, ("user", "and?")]


def test_fork_session_sends_the_parent_and_leaves_it_alone(world: World) -> None:
    parent = four_turns(world)
    before = world.transcript(parent).read_bytes()

    fork = world.run("on another way", resume=parent, fork_session=True).session_id

    assert fork != parent
    assert world.model.conversation() == [*ANSWERED, ("user", "on another way")]
    assert world.transcript(parent).read_bytes() == before
    assert {path.stem for path in world.transcripts()} == {parent, fork}

    world.run("back on the first", resume=parent)
    assert prompts(world.model.main()[-1]) == [*PROMPTS, "back on the first"]


def test_kill_in_mid_turn_leaves_a_transcript(world: World) -> None:
    session_id = world.run("the first").session_id
    process = world.start("hold: the second", resume=session_id)
    world.model.wait_for_prompt("hold: the second")
    # 2.0 writes a prompt only with the first block of its answer; until then it is in the queue's lines alone
    kept = ["the first", *(["hold: the second"] if world.client.release >= (2, 1) else [])]
    eventually(lambda: b"hold: the second" in world.transcript(session_id).read_bytes())
    eventually(lambda: said(world, session_id) == kept)
    kill(process)

    assert process.returncode == -9
    assert said(world, session_id) == kept
    assert "Echo: hold" not in world.transcript(session_id).read_text()

    world.run("the third", resume=session_id)
    assert prompts(world.model.main()[-1]) == [*kept, "the third"]


def test_kill_in_a_tool_leaves_the_call_without_its_result(world: World) -> None:
    marker = world.project / "started"
    process = world.start(f"bash: touch {marker} && sleep 60")
    eventually(marker.exists)
    eventually(lambda: bool(world.transcripts()) and "tool_use" in world.transcripts()[0].read_text())
    kill(process)

    [path] = world.transcripts()
    assert "tool_result" not in path.read_text()


def test_subagent_tasks_and_thinking(world: World) -> None:
    session_id = world.run("agent: bash: echo from below").session_id
    world.run("tasks: one", resume=session_id)
    world.run("think: well ;; bash: echo on", resume=session_id)

    assert {r.kind for r in world.model.requests if r.prompt == "bash: echo from below"} == {"subagent"}
    assert ("assistant", "[Agent bash: echo from below]") in world.model.conversation()
    tasks = world.model.conversation().index(("assistant", "[Tasks one]"))
    assert world.model.conversation()[tasks + 1] == ("user", "[Tasks: ok]")
    assert "thinking" in world.transcript(session_id).read_text()
    found = [path.name for path in (world.home / ".claude" / "projects").rglob("agent-*.jsonl")]
    assert found


def test_compact_headless(world: World) -> None:
    session_id = four_turns(world)
    world.run("/compact", resume=session_id)
    assert [r.kind for r in world.model.requests].count("compact") == 1

    world.run("the next", resume=session_id)
    sent = world.model.conversation()
    assert sent[0] == ("user", "[summary: The summary that the mock model wrote.]")
    assert sent[-1] == ("user", "the next")
    assert ("user", PROMPTS[0]) not in sent


def test_rewind_headless(world: World) -> None:
    session_id = four_turns(world)
    before = world.transcript(session_id).read_bytes()
    answers = [line for line in world.lines(session_id) if line["type"] == "assistant"]
    last_of_first = next(line for line in answers if "Echo" in json.dumps(line["message"]["content"]))

    again = world.run("another way", resume=session_id, resume_at=last_of_first["uuid"])

    assert again.session_id == session_id
    assert world.transcript(session_id).read_bytes().startswith(before)
    assert world.model.conversation() == [*FOUR_TURNS[:4], *ANSWERED[4:5], ("user", "another way")]
    [prompt] = [line for line in world.lines(session_id) if is_prompt(line, "another way")]
    assert prompt["parentUuid"] == last_of_first["uuid"]


def test_an_error_of_the_model_is_told(world: World) -> None:
    result = world.run("fail: 400", check=False)

    assert result.json["is_error"]
    assert "400" in result.answer


def test_the_environment_is_sealed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", os.fspath(world.home / "elsewhere"))
    monkeypatch.setenv("SECRET_OF_THE_USER", "hunter2")
    world.run("bash: env > seen.txt")

    seen = (world.project / "seen.txt").read_text()
    assert "hunter2" not in seen
    assert f"HOME={world.home}" in seen
    assert not (world.home / "elsewhere").exists()


def test_terminal(world: World) -> None:
    terminal = world.terminal()
    terminal.ask("bash: echo one")
    terminal.ask("the second")
    assert terminal.quit() == 0

    [path] = world.transcripts()
    sent = [*FOUR_TURNS[:4], ("assistant", "Echo: bash: echo one"), ("user", "the second")]
    assert world.model.conversation(path.stem) == sent


def test_terminal_interrupts(world: World) -> None:
    terminal = world.terminal()
    terminal.ask("the first")
    terminal.submit("hold: the second")
    world.model.wait_for_prompt("hold: the second")
    terminal.wait_for(re.escape("esc to interrupt"))
    terminal.interrupt()
    terminal.close()

    [path] = world.transcripts()
    assert "[Request interrupted by user]" in path.read_text()


@pytest.mark.parametrize("prompt", ["one", "three"])
def test_terminal_rewinds(world: World, prompt: str) -> None:
    terminal = world.terminal()
    for text in ("one", "two", "three"):
        terminal.ask(text)
    [path] = world.transcripts()
    before = path.read_bytes()
    kept = [] if prompt == "one" else ["one", "two"]

    terminal.rewind(prompt)
    assert path.read_bytes() == before
    terminal.ask("another way")
    terminal.quit()

    assert prompts(world.model.main()[-1]) == [*kept, "another way"]
    [line] = [line for line in world.lines(path.stem) if is_prompt(line, "another way")]
    assert (line["parentUuid"] is None) == (not kept)


def test_terminal_compacts(world: World) -> None:
    terminal = world.terminal()
    terminal.ask("one")
    terminal.ask("two")
    terminal.submit("/compact")
    terminal.wait_for("Compacted|Conversation compacted")
    terminal.wait_ready()
    terminal.ask("three")
    terminal.quit()

    assert world.model.conversation()[0] == ("user", "[summary: The summary that the mock model wrote.]")
    assert prompts(world.model.main()[-1])[-1] == "three"
