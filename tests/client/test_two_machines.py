"""One conversation on two machines with the real client: here, there, and here again.

The proof is what the model received: each time the whole conversation so far, each turn once and in order.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import ENDS, Client, seal_home
from model_server import ModelServer, conversation
from test_recording import Kept
from world import World

pytestmark = [pytest.mark.client, ENDS]

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REDACTED = "[redacted:github-token]"


class Machine(Kept):
    """A home with a project at a path of its own, and the repository between as its remote."""

    def __init__(self, world: World, between: Path) -> None:
        super().__init__(world)
        self.run("remote", "add", "between", str(between))

    def turns(self, session: str) -> list[str]:
        return [turn["prompt"] for turn in self.json("log", session)["turns"]]

    def said(self, session: str) -> list[tuple[str, str]]:
        """What the client last sent as the conversation so far, its last prompt too."""
        return conversation(self.world.model.main(session)[-1])

    def closed(self, session: str, turns: int) -> None:
        """Waits until the hooks have recorded it to its end."""
        self.recorded(session, turns)
        command = ["git", "-C", str(self.store), "log", "-1", "--format=%(trailers:key=Event,valueonly)", session]
        for _ in range(100):
            if subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "end":
                return
            subprocess.run(["sleep", "0.1"], check=True)
        raise AssertionError("the end was not recorded")


@pytest.fixture
def machines(client: Client, model: ModelServer, tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    between, made = tmp_path / "between.git", []
    subprocess.run(["git", "init", "-q", "--bare", str(between)], check=True)
    for name, path in (("a", "code/shop"), ("b", "src/shop")):
        home = tmp_path / name
        project = home / path
        project.mkdir(parents=True)
        seal_home(home, project)
        world = World(client, model, home, project)
        made.append(Machine(world, between))
    yield made[0], made[1]
    for machine in made:
        machine.world.close()


def test_there_and_back_again(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    b.run("config", f"project.map.{a.world.home}/code", "~/src")
    session = a.world.run(f"bash: echo one;; keep {SECRET}").session_id
    a.world.run("two", resume=session)
    a.closed(session, 2)
    a.run("push", "--all")

    b.run("pull")
    a_project = a.world.project.rename(a.world.home / "away")  # what is not here is mapped
    command = b.run("resume", session, "--print")
    assert command == f"claude --resume {session}\n"
    a_project.rename(a.world.project)
    a.world.model.clear()
    b.world.run("three", resume=session)
    there = b.said(session)
    b.closed(session, 3)
    assert len(b.turns(session)) == 3
    b.run("push", "--all")

    original = a.world.transcript(session).read_bytes()
    a.run("pull")
    a.run("resume", session, "--print")
    data = a.world.transcript(session).read_bytes()
    assert data.startswith(original)
    assert len(data) > len(original)
    a.world.model.clear()
    a.world.run("four", resume=session)
    here = a.said(session)
    prompts = [text for role, text in here if role == "user" and not text.startswith("[")]
    assert prompts == [f"bash: echo one;; keep {SECRET}", "two", "three", "four"]
    assert [(role, text.replace(SECRET, REDACTED)) for role, text in here[: len(there)]] == there
    a.closed(session, 4)
    assert len(a.turns(session)) == 4

    # What came from elsewhere is there once, in the file and in the store.
    uuids = [line["uuid"] for line in a.world.lines(session) if line.get("uuid")]
    assert len(uuids) == len(set(uuids))
    refs = a.run("log", session)
    a.run("import")
    assert a.run("log", session) == refs
    a.run("push", "--all")
    b.run("pull")
    b.run("resume", session, "--print")
    b.world.model.clear()
    b.world.run("five", resume=session)
    prompts = [text for role, text in b.said(session) if role == "user" and not text.startswith("[")]
    assert prompts == [f"bash: echo one;; keep {REDACTED}", "two", "three", "four", "five"]
    b.closed(session, 5)
    for machine in machines:
        machine.fsck()
