"""Very many files beside transcripts: each is looked at as often as it must be, and found wherever its name stands."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import Git, Keep
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import sidecars as sidecar_files
from sessgit.agents.claude.sidecars import Subagents
from sessgit.agents.line import no_redaction

_NAME = st.from_regex(r"[a-b][a-b._]{0,6}(?:\.txt)?", fullmatch=True)


@given(st.lists(_NAME, max_size=12), st.lists(_NAME), st.sampled_from(["/", " ", '"', "\\n", ": ", "\\\\"]))
def test_names_are_found_between_other_words(names: list[str], words: list[str], space: str) -> None:
    text = space.join(["Saved to", *words, "in full"]).encode()
    assert sidecar_files.named_files(text, frozenset(names)) >= {name for name in names if name in words}


def test_a_result_goes_with_each_turn_that_names_it(keep: Keep, git: Git, claude: Path) -> None:
    talk = Talk()
    folder = claude / talk.session / "tool-results"
    folder.mkdir(parents=True)
    for number in range(40):
        (folder / f"toolu_{number:03}.txt").write_text(f"result {number}")
        talk.prompt(f"{number}").tool("Bash", {"command": "cat"}, f"Saved to {folder}/toolu_{number:03}.txt.")
        talk.answer(f"See toolu_{number // 2:03}.txt\nand toolu_0.txt").stop_lines()
    keep(talk)
    want = [
        f"turns/0000/{turn:06}/files/tool-results/toolu_{number:03}.txt"
        for turn in range(1, 41)
        for number in sorted({turn - 1, (turn - 1) // 2})
    ]
    found = git("ls-tree", "-r", "--name-only", talk.session, "turns").split()
    assert [path for path in found if "/files/" in path] == want
    assert git("show", f"{talk.session}:turns/0000/000040/files/tool-results/toolu_019.txt") == "result 19"


@pytest.mark.parametrize("gone", ["link", "folder"])
def test_a_result_that_cannot_be_read_any_more_stays_as_it_was(keep: Keep, git: Git, claude: Path, gone: str) -> None:
    """The turn is open and grows: it is recorded once more."""
    talk = Talk().prompt("one").tool("Bash", {"command": "cat"}, "Saved to toolu_1.txt")
    folder = claude / talk.session / "tool-results"
    folder.mkdir(parents=True)
    result = folder / "toolu_1.txt"
    result.write_text("all of it")
    keep(talk)
    result.unlink()
    result.symlink_to("/dev/null") if gone == "link" else result.mkdir()
    keep(talk.answer("done").stop_lines())
    assert git("show", f"{talk.session}:turns/0000/000001/files/tool-results/toolu_1.txt") == "all of it"


def agent(folder: Path, name: str, session: str, text: str) -> Path:
    line = {"sessionId": session, "type": "user", "message": {"content": text}, "uuid": "s1"}
    path = folder / f"agent-{name}.jsonl"
    path.write_text(json.dumps(line) + "\n")
    path.with_suffix(".meta.json").write_text(json.dumps({"agentType": text}))
    return path


def test_each_session_gets_its_own_of_a_folder_of_all(keep: Keep, git: Git, claude: Path) -> None:
    claude.mkdir(parents=True)
    for number in range(20):
        agent(claude, f"{number:02}", (SESSION, OTHER)[number % 2], f"task {number}")
    (claude / "agent-99.jsonl").write_text('{"sessionId":')
    os.utime(claude, (time.time() - 60,) * 2)
    for session, first in ((SESSION, 0), (OTHER, 1)):
        keep(Talk(session).turns("one"))
        names = git("ls-tree", "--name-only", f"{session}:turns/0000/000001/subagents").split()
        assert names == [f"agent-{n:02}.{end}" for n in range(first, 20, 2) for end in ("jsonl", "meta.json")]


def test_what_comes_into_a_folder_that_was_looked_at_is_found(claude: Path) -> None:
    """A file more, and a first line that came late."""
    claude.mkdir(parents=True)
    half = claude / "agent-half.jsonl"
    half.write_text(f'{{"sessionId":"{SESSION}"')
    agent(claude, "one", SESSION, "task")
    os.utime(claude, (time.time() - 60,) * 2)
    transcript = claude / f"{SESSION}.jsonl"

    def found() -> list[str]:
        pieces = Subagents(transcript, SESSION, no_redaction).of_turn("key", [], is_last=True)
        return [path.removeprefix("subagents/agent-") for path in pieces]

    assert found() == ["one.jsonl", "one.meta.json"]
    looked = sidecar_files._by_session.cache_info().misses
    with half.open("a") as file:
        file.write("}\n")
    assert found() == ["half.jsonl", "one.jsonl", "one.meta.json"]
    assert sidecar_files._by_session.cache_info().misses == looked
    agent(claude, "two", SESSION, "task")
    assert found() == ["half.jsonl", "one.jsonl", "one.meta.json", "two.jsonl", "two.meta.json"]
