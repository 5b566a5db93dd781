"""A fork that the client resumes: what it writes before the next prompt is the fork's own, and its fork point stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from merging import NEW, git, transcript
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.store import recorder_state
from sessgit.store.store import Store

NOTHING = "No response requested."


class Client:
    """The client with a fork open: each call appends lines to its file, which `step` then records or not."""

    def __init__(self, sessgit: Shell) -> None:
        self.path = transcript(sessgit, NEW)
        self.talk = Talk(NEW, cwd=str(sessgit.project))
        lines = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        self.talk.leaf = next(line["uuid"] for line in reversed(lines) if line.get("uuid"))
        self.talk.file.seconds = 5000
        self.written = 0

    def synthetic(self) -> None:
        """The answer that the client makes up where a turn has none, before the next prompt."""
        message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": NOTHING}]}
        self.talk.queue("go on").chain("assistant", message=message)
        self.write()

    def write(self) -> None:
        new = b"".join(line + b"\n" for line in self.talk.lines[self.written :])
        self.written = len(self.talk.lines)
        with self.path.open("ab") as file:
            file.write(new)


@pytest.fixture(params=["killed", "stopped", "answered"])
def forked(request: pytest.FixtureRequest, sessgit: Shell) -> Client:
    """A fork at turn 2, which was killed before any answer, or stopped by hand, or which has its answer."""
    talk = sessgit.talk().turns("one").prompt("two")
    if request.param == "stopped":
        talk.answer("Let me").interrupt()
    if request.param == "answered":
        talk.answer("Two.").stop_lines()
    sessgit.recorded(talk)
    sessgit.out("fork", SESSION, "--at", "2")
    return Client(sessgit)


def point(sessgit: Shell) -> str:
    """What git finds: the commit that the first one of the fork stands on."""
    return git(sessgit, "log", "--grep=^Event: fork", "--format=%P", f"--branches={NEW}*")


def assert_agreed(sessgit: Shell, *prompts: str) -> None:
    """All commands tell of a fork at turn 2, with these turns of its own."""
    found = sessgit.json("log", NEW)
    assert (found["session"]["parent"], found["session"]["fork_turn"]) == (SESSION, 2)
    assert [turn["prompt"] for turn in found["turns"]] == ["one", "two", *prompts]
    assert point(sessgit) == git(sessgit, "rev-parse", SESSION + "^{/^turn 2}")
    assert git(sessgit, "rev-parse", f"{NEW}:turns/0000/000002") == git(
        sessgit, "rev-parse", f"{SESSION}:turns/0000/000002"
    )
    told = sessgit.json("diff", SESSION, NEW)
    assert (told["shared_turns"], told["only_a"], told["partial"]) == (2, [], None)
    assert [turn["prompt"] for turn in told["only_b"]] == list(prompts)
    (family,) = sessgit.json("tree", "--all")["families"]
    (fork,) = (node for node in family["nodes"] if node["id"] == NEW)
    assert (fork["parent"], fork["fork_turn"], fork["own_turns"]) == (SESSION, 2, len(prompts))


@pytest.mark.parametrize("steps", ["at once", "in steps", "anew", "final"])
def test_the_fork_point_stays(sessgit: Shell, forked: Client, steps: str) -> None:
    def step() -> None:
        if steps == "anew":
            recorder_state.delete_cursor(Store(sessgit.store).paths, NEW)
        if steps == "final":
            sessgit("import")
        elif steps != "at once":
            sessgit.out("log", NEW)

    step()
    forked.synthetic()
    step()
    if steps != "at once":
        assert_agreed(sessgit)
    forked.talk.prompt("go on").answer("On I went.")
    forked.write()
    step()
    forked.talk.turns("and on")
    forked.write()
    assert_agreed(sessgit, "go on", "and on")
    before = git(sessgit, "show", f"{NEW}:turns/0000/000003/before.jsonl")
    assert before.count(NOTHING) == 1
    recorder_state.delete_cursor(Store(sessgit.store).paths, NEW)
    sessgit("import")
    assert_agreed(sessgit, "go on", "and on")
    assert sessgit.json("restore", NEW, "--verify")["same"]
    assert "no damage" in sessgit.out("verify", "--deep")


def test_a_command_before_the_first_prompt(sessgit: Shell, forked: Client) -> None:
    """As `/model`, which the client writes as a person's lines."""
    forked.talk.user("<command-name>/model</command-name>").user("<local-command-stdout>Set</local-command-stdout>")
    forked.write()
    sessgit("import")
    assert_agreed(sessgit)
    assert git(sessgit, "show", f"{NEW}:tail.jsonl").count("/model") == 1
    forked.talk.turns("go on")
    forked.write()
    sessgit("import")
    assert_agreed(sessgit, "go on")
    assert sessgit.json("restore", NEW, "--verify")["same"]
    assert "no damage" in sessgit.out("verify", "--deep")


def test_a_rewind_to_the_fork_point(sessgit: Shell, forked: Client) -> None:
    """Two prompts that both stand behind the made-up answer."""
    forked.synthetic()
    leaf = forked.talk.leaf
    forked.talk.turns("go on")
    forked.write()
    sessgit.out("log", NEW)
    forked.talk.leaf = leaf
    forked.talk.turns("go elsewhere")
    forked.write()
    sessgit("import")
    assert_agreed(sessgit, "go elsewhere")
    assert sessgit.json("restore", NEW, "--verify")["same"]
    assert "no damage" in sessgit.out("verify", "--deep")


def test_a_fork_of_it_has_all_that_was_said(sessgit: Shell, forked: Client) -> None:
    forked.synthetic()
    forked.talk.prompt("go on").answer("On I went.")
    forked.write()
    sessgit("import")
    sessgit.out("fork", NEW)
    (other,) = (path for path in Path(sessgit.config).glob("projects/*/f0000*.jsonl") if path.stem != NEW)
    said = [json.loads(line) for line in other.read_bytes().splitlines()]
    chain = [line for line in said if line.get("uuid")]
    assert [one["parentUuid"] for one in chain] == [None, *(one["uuid"] for one in chain[:-1])]
    assert NOTHING in json.dumps(chain)
