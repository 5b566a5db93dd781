"""Forks of conversations that no client goes on from as they are, and hints that work as they stand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION, Talk

FORK = "f0000001-0000-4000-8000-ffffffffffff"
TOLD = "The client would send none of these turns to the model: their lines are not linked to each other.\n"


def stripped(talk: Talk, *keys: str) -> Talk:
    """The same without what some writers leave out."""
    lines = [json.loads(line) for line in talk.lines]
    talk.file.lines[:] = [
        json.dumps({key: value for key, value in line.items() if key not in keys}).encode() for line in lines
    ]
    return talk


@pytest.mark.parametrize("keys", [("uuid", "parentUuid"), ("parentUuid",)])
def test_lines_that_do_not_lead_back(sessgit: Shell, keys: tuple[str, ...]) -> None:
    sessgit.recorded(stripped(sessgit.talk().turns("one", "two"), *keys))
    done = sessgit("fork", SESSION, "--at", "2")
    assert (done.code, done.err) == (0, TOLD)
    assert (
        done.out
        == """\
f0000001  2 turns, from 5e551011@2 “two”
The client cannot continue it. Repair it: sessgit repair f0000001
"""
    )
    assert "is the repaired conversation: 2 turns." in sessgit("repair", FORK).out


def test_programs_get_no_command(sessgit: Shell) -> None:
    sessgit.recorded(stripped(sessgit.talk().turns("one"), "uuid", "parentUuid"))
    done = sessgit("fork", SESSION, "--json")
    assert (json.loads(done.out)["resume"], done.err) == (None, TOLD)


def test_nothing_is_told_of_sound_ones(sessgit: Shell) -> None:
    """Calls side by side, a compaction within a turn, a subagent's lines, and a fork in the middle of a turn."""
    talk = sessgit.talk().prompt("one").parallel(("Read", {}, "a"), ("Read", {}, "b")).answer("Read.").stop_lines()
    talk.prompt("two").tool("Write").compact(auto=True).answer("Written.")
    talk.chain("assistant", isSidechain=True, parentUuid=None, message={"role": "assistant", "content": "Aside."})
    sessgit.recorded(talk)
    for at in ("1", "1.2", "2", "2.1"):
        done = sessgit("fork", SESSION, "--at", at)
        assert (done.code, done.err) == (0, ""), at
        assert "Continue it:  claude --resume" in done.out, at


@pytest.fixture
def unknown(sessgit: Shell) -> Shell:
    """A conversation of no known folder, whose file is gone."""
    path = sessgit.keep(Talk(cwd="").turns("one"))
    assert sessgit("import").code == 0
    path.unlink()
    path.parent.rmdir()
    moved = sessgit.config.with_name("elsewhere")
    sessgit.config.rename(moved)
    sessgit._patch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    sessgit.config, sessgit.store = moved, moved / "session-store"
    return sessgit


@pytest.mark.parametrize("command", [("resume", "--print"), ("restore",)])
def test_hints_name_the_whole_command(unknown: Shell, command: tuple[str, ...], tmp_path: Path) -> None:
    done = unknown(*command, SESSION)
    assert done.err == (
        f"Error: the place of {SESSION}'s file is unknown.\n"
        "Hint: Choose a place: `sessgit restore 5e551011 --project DIR`, or `--output FILE`.\n"
    )
    assert "was restored" in unknown.out("restore", "5e551011", "--project", str(tmp_path))
    assert unknown.out("resume", SESSION, "--print").endswith(f"claude --resume {SESSION}\n")


def test_repair_names_the_whole_command(sessgit: Shell, unknown: Shell, tmp_path: Path) -> None:
    sessgit.keep(stripped(Talk(OTHER, cwd="").turns("one"), "uuid", "parentUuid"))
    assert sessgit("import").code == 0
    path = next(sessgit.config.glob(f"projects/*/{OTHER}.jsonl"))
    path.unlink()
    path.parent.rmdir()
    moved = sessgit.config.with_name("again")
    sessgit.config.rename(moved)
    sessgit._patch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    sessgit.config = moved
    done = sessgit("repair", OTHER)
    assert done.err == (
        f"Error: the folder of {OTHER} is unknown.\nHint: Choose one: `sessgit restore {OTHER[:8]} --project DIR`\n"
    )
    assert "was restored" in sessgit.out("restore", OTHER, "--project", str(tmp_path))
    assert "f0000003 is the repaired conversation: 1 turn." in sessgit("repair", OTHER).out


def test_one_of_no_known_folder_is_found_in_a_home_that_moved(sessgit: Shell) -> None:
    path = sessgit.keep(Talk(cwd="").turns("one"))
    assert sessgit("import").code == 0
    moved = sessgit.config.with_name("elsewhere")
    sessgit.config.rename(moved)
    sessgit._patch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    there = f"~/elsewhere/{path.relative_to(sessgit.config)}"
    assert sessgit.out("restore", SESSION).startswith(f"{there} already exists:")
    assert sessgit.out("resume", SESSION, "--print") == f"claude --resume {SESSION}\n"


def test_an_export_without_a_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().bare("mode", mode="normal"))
    done = sessgit("export", "markdown", SESSION, "-o", "-")
    assert done.err == "Error: 5e551011 has no turns to export.\nHint: `sessgit ls` lists others.\n"
