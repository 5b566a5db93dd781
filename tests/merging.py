"""Two conversations that diverged, and what the tests of merges ask of a store and of the client's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plain import run_git
from shell import Shell
from transcripts import SESSION

THEIRS = "e90c55aa-0000-4000-8000-00000000000e"
THIRD = "77be01d3-0000-4000-8000-000000000003"
NEW = "f0000001-0000-4000-8000-ffffffffffff"


def diverged(shell: Shell) -> Shell:
    """Two turns that both have, then one of ours and two of theirs."""
    ours = shell.talk().turns("one", "two")
    theirs = ours.fork_session(THEIRS)
    ours.turns("three")
    theirs.prompt("put the tokens into a trie")
    theirs.parallel(
        ("Read", {"file_path": "/p/a.py"}, "x = 1"), ("Edit", {"file_path": "/p/trie.py", "old_string": "a"}, "ok")
    )
    theirs.answer("The trie is 2.3× faster.").stop_lines()
    theirs.prompt("measure both\non the large file").answer("Measured.").stop_lines()
    shell.recorded(ours, theirs)
    return shell


def transcript(shell: Shell, session: str = SESSION) -> Path:
    (found,) = shell.config.glob(f"projects/*/{session}.jsonl")
    return found


def lines(shell: Shell, session: str = SESSION) -> list[dict[str, Any]]:
    return [json.loads(line) for line in transcript(shell, session).read_bytes().splitlines()]


def git(shell: Shell, *arguments: str) -> str:
    return run_git(shell.store, *arguments).strip()


def prompts(shell: Shell, session: str = SESSION) -> list[str]:
    return [turn["prompt"].partition("\n")[0] for turn in shell.json("log", session)["turns"]]


def authored(shell: Shell, session: str = SESSION) -> Any:
    found = shell.json("show", session)["session"]
    return {key: found[key] for key in ("name", "description", "labels", "stage", "confidence")}


def tip(shell: Shell, session: str = SESSION) -> str:
    return git(shell, "rev-parse", session)


def assert_whole(shell: Shell, session: str = SESSION) -> None:
    """The store holds the client's file byte for byte, every line hangs on one before it, and git finds no fault."""
    shell.out("log", session)
    checked = shell.json("restore", session, "--verify")
    assert (checked["same"], checked["missing"], checked["redacted"]) == (True, 0, 0), checked
    seen, latest = set[str](), ""
    for line in lines(shell, session):
        if line.get("uuid"):
            assert line["uuid"] not in seen
            assert line["parentUuid"] is None or line["parentUuid"] in seen
            seen.add(line["uuid"])
        if line.get("timestamp"):
            assert line["timestamp"] > latest
            latest = line["timestamp"]
    git(shell, "fsck", "--strict")
