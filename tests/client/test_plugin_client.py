"""The plugin in the real client: installed by its own two commands, and where the rest of sessgit is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clients import environment
from terminal import ENTER
from waiting import until
from world import World

from sessgit.agents import hook_settings
from sessgit.agents.hook_settings import HOOK_EVENTS

pytestmark = pytest.mark.client

REPOSITORY = Path(__file__).parents[2]
TIMES = 3
"""Whether the client wrote before the hook had exited is a matter of chance."""


def repository(world: World) -> Path:
    """What a clone has of the plugin, at a path with a space."""
    clone = world.home / "a clone"
    for folder in (".claude-plugin", "hooks"):
        shutil.copytree(REPOSITORY / folder, clone / folder)
    return clone


def install(world: World) -> None:
    """Install the plugin as a user does; the client takes all its files for valid."""
    clone = str(repository(world))
    for words in (["validate", clone], ["marketplace", "add", clone], ["install", "sessgit@sessgit"]):
        run(world, *world.client.command, "plugin", *words)


def run(world: World, *command: str) -> str:
    """What a command prints in the project."""
    env = environment(world.home, world.model.url)
    where: Any = {"cwd": world.project, "env": env, "stdin": subprocess.DEVNULL}
    return subprocess.run(command, capture_output=True, text=True, check=True, **where).stdout


def document(world: World, *arguments: str) -> Any:
    return json.loads(run(world, "sessgit", arguments[0], "--json", *arguments[1:]))


def test_the_plugin_alone_records_each_event_once(world: World) -> None:
    install(world)
    session = world.run("hello").session_id
    # Its commands know the session in which they are typed, also in 2.0, which does not say so itself.
    command = "/sessgit:fork --at 1 --name trie"
    assert f"trie  ·  1 turn, from {session[:8]}@1 “hello”\n" in world.run(command, resume=session).answer
    failed = world.run("/sessgit:log nowhere", resume=session).answer
    assert "Error: no conversation starts with “nowhere”." in failed
    until(lambda: document(world, "status")["turns"] == 3)
    assert document(world, "status")["recording"] == {"on": True, "reason": None, "plugin": "sessgit@sessgit"}
    assert "hooks" not in json.loads(world.settings.read_text())
    # Now a hook that counts in the place of the store's, first run by the plugin, then by the settings too.
    store = world.home / ".claude" / "session-store"
    (store / "hook").write_text('#!/bin/sh\npython=/bin/sh\ncat >/dev/null\necho >>"${0%/*}/count"\n')
    world.run("two", resume=session)
    alone = len((store / "count").read_text())
    document_before = json.loads(world.settings.read_text())
    command = hook_settings.stub_command(store / "hook")
    world.settings.write_text(json.dumps(hook_settings.with_hooks(document_before, command, HOOK_EVENTS)))
    world.run("three", resume=session)
    assert len((store / "count").read_text()) == 2 * alone > 0


def test_a_fork_from_inside_is_in_the_list_of_the_client(world: World) -> None:
    """In an interactive session, with the status line, which says where the session is."""
    install(world)
    run(world, "sessgit", "install", "--statusline")
    terminal = world.terminal()
    terminal.ask("hello")
    session = world.transcripts()[-1].stem
    until(lambda: document(world, "status")["turns"] == 1)
    terminal.ask("zebra")
    terminal.wait_for(rf"{session[:8]}@[12] · recorded")
    terminal.submit("/sessgit:fork --at 1 --name trie")
    terminal.wait_for(rf"trie\s+·\s+1 turn, from {session[:8]}@1")
    terminal.wait_ready()
    until(lambda: [one["name"] for one in document(world, "ls", "--forks-of", session)["sessions"]] == ["trie"])
    if is_old := world.client.release < (2, 1):  # which joins the lines of all files, and lists each last one
        (fork,) = document(world, "ls", "--forks-of", session)["sessions"]
        terminal.quit()
        world.run("bison", resume=fork["id"])
        terminal = world.terminal("--resume")
    else:
        terminal.submit("/resume")
    terminal.wait_for("(?is)resume session.*trie")
    terminal.settle()
    terminal.send(ENTER)
    terminal.wait_for(f"Echo: {'bison' if is_old else 'hello'}")
    terminal.wait_ready()
    terminal.ask("quokka")
    terminal.quit()
    (said,) = [text for path in world.transcripts() if "Echo: quokka" in (text := path.read_text())]
    assert "Echo: hello" in said and ("Echo: bison" in said) == is_old and "zebra" not in said


def test_commands_are_answered_without_the_model(world: World) -> None:
    """If the setting says so; what was answered is not sent later either."""
    install(world)
    run(world, "sessgit", "install", "--plugin")
    run(world, "sessgit", "config", "plugin.answer", "true")
    terminal = world.terminal()
    terminal.ask("the first prompt")
    session = world.transcripts()[-1].stem
    until(lambda: document(world, "status")["turns"] == 1)
    world.model.clear()
    for command, wanted in (("log", "● 1 .* the first prompt"), ("search 'first prompt'", f"{session[:8]}@1")):
        terminal.submit(f"/sessgit:{command}")
        terminal.wait_for(f"blocked by hook:(?s:.*){wanted}(?s:.*)Original prompt: /sessgit:{command}")
        terminal.settle()
    is_old = world.client.release < (2, 1)  # which has its small model name the files that a shell command read
    assert [request.kind for request in world.model.requests] == ["side"] * 2 * is_old
    terminal.ask("and on")
    terminal.quit()
    assert [text for by, text in world.model.conversation() if by == "user"] == ["the first prompt", "and on"]
    until(lambda: document(world, "status")["turns"] == 2)
    world.model.clear()
    assert ("● 2  " in world.run("/sessgit:log", resume=session).answer) == (not is_old)
    assert world.model.main() == []


@pytest.mark.parametrize("left", ["nothing", "a stub without Python", "the store, and recording is off"])
def test_a_plugin_without_the_rest_never_costs_an_answer(world: World, left: str) -> None:
    extra = ["--plugin-dir", str(repository(world) / "hooks")]
    env = {"PATH": os.pathsep.join(["/nowhere", os.environ["PATH"]])}
    store = world.home / ".claude" / "session-store"
    if left != "nothing":
        (store / "spool").mkdir(parents=True)
        shutil.copy(REPOSITORY / "hooks" / "hook", store)
    if left.startswith("the store"):
        env["SESSGIT_OFF"] = "1"
    long = "x" * 100_000  # more than a pipe holds, so that the client is still writing when a hook exits
    for prompt in ["hello", *[f"say {long}"] * TIMES]:
        done = world.run(prompt, extra=extra, env=env)
        assert (done.returncode, done.answer != "", done.stderr) == (0, True, "")
