"""`sessgit fork`: what it makes, what it says, what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kept import begins
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.model import humanize
from sessgit.store.store import Store

OTHER = "0b2d7f10-0000-4000-8000-00000000000b"
FIRST = "f0000001-0000-4000-8000-ffffffffffff"


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one", "two", "three"))


def prompts(path: Path) -> list[str]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["message"]["content"] for line in lines if line.get("promptSource")]


def test_at_a_turn(sessgit: Shell) -> None:
    assert (
        sessgit.out("fork", "5e55", "--at", "2", "--name", "other way")
        == f"""\
f0000001  other way  ·  2 turns, from 5e551011@2 “two”
Continue it:  claude --resume {FIRST}
"""
    )
    path = next(sessgit.config.glob(f"projects/*/{FIRST}.jsonl"))
    assert prompts(path) == ["one", "two"]
    assert (path.stat().st_mode & 0o777) == 0o600
    assert sessgit.out("log", FIRST, "--oneline") == "f0000001@2 two\nf0000001@1 one\n"


def test_the_last_turn_if_none_is_named_and_from_elsewhere(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        sessgit.out("fork", "5e55")
        == f"""\
f0000001  3 turns, from 5e551011@3 “three”
Continue it:  cd {humanize.quote_for_shell(str(sessgit.project))} && claude --resume {FIRST}
"""
    )


def test_of_a_session_that_has_ended_it_takes_no_tail_along(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER).turns("one").title("Parent"))
    assert "tail.jsonl" in run_git(sessgit.store, "ls-tree", "--name-only", OTHER).split()
    sessgit.out("fork", OTHER)
    assert "tail.jsonl" not in run_git(sessgit.store, "ls-tree", "--name-only", FIRST).split()


def test_where_the_folder_is_gone(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER, cwd="/nowhere").turns("one"))
    done = sessgit("fork", OTHER)
    assert done.err == "The project's folder is gone: /nowhere.\n"
    assert done.out.splitlines()[1] == (
        "Its folder is gone. Continue it in another:  sessgit fork f0000001 --project DIR"
    )


def test_undo_takes_away_the_folder_that_it_made(sessgit: Shell, tmp_path: Path) -> None:
    projects = sessgit.config / "projects"
    before = list(projects.iterdir())
    sessgit.out("fork", "5e55", "--project", str(tmp_path))
    assert len(list(projects.iterdir())) == len(before) + 1
    sessgit.out("undo")
    assert list(projects.iterdir()) == before
    made = Path(sessgit.json("fork", "5e55", "--project", str(tmp_path))["transcript"]).parent
    (made / "memory").mkdir()
    sessgit.out("undo")
    assert made.exists()


def test_of_a_fork_continues_in_its_project(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER, cwd="/nowhere").turns("one", "two", "three"))
    path = Path(sessgit.json("fork", OTHER, "--project", str(sessgit.project))["transcript"])
    fork = path.stem
    talk = sessgit.talk(fork)
    talk.leaf = [json.loads(line) for line in path.read_bytes().splitlines()][-1]["leafUuid"]
    talk.file.seconds, talk.file.counts = 5000, dict.fromkeys("abcd", 50)
    path.write_bytes(path.read_bytes() + talk.turns("four").data)
    assert len(sessgit.json("log", fork)["turns"]) == 4
    made = sessgit.json("fork", fork, "--at", "2")
    assert made["resume"] == f"claude --resume {made['id']}"
    assert Path(made["transcript"]).parent == path.parent
    (project,) = {one["project"] for one in sessgit.json("ls", "--all")["sessions"] if one["id"] in (fork, made["id"])}
    assert project == str(sessgit.project)
    assert sessgit("restore", made["id"]).err == ""


def test_of_a_moved_conversation_continues_where_it_was_moved(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER, cwd="/nowhere").turns("one", "two"))
    assert sessgit("restore", OTHER, "--project", str(sessgit.project)).code == 0
    done = sessgit("fork", OTHER, "--at", "1")
    assert (done.err, done.out.splitlines()[1]) == ("", f"Continue it:  claude --resume {FIRST}")


def test_for_programs(sessgit: Shell) -> None:
    made = sessgit.json("fork", "5e55@1")
    assert made == {
        "id": FIRST,
        "parent": SESSION,
        "turn": 1,
        "commit": made["commit"],
        "transcript": str(next(sessgit.config.glob(f"projects/*/{FIRST}.jsonl"))),
        "resume": f"claude --resume {FIRST}",
        "files": [],
        "worktree": None,
    }
    assert sessgit.json("fork", "5e55@1", "--no-restore")["transcript"] is None


def test_without_a_transcript_resume_writes_it(sessgit: Shell) -> None:
    assert sessgit.out("fork", "5e55", "--at", "1", "--no-restore").splitlines() == [
        "f0000001  1 turn, from 5e551011@1 “one”",
        "Continue it:  sessgit resume f0000001",
    ]
    done = sessgit("resume", FIRST, "--print")
    assert (done.code, done.out) == (0, f"claude --resume {FIRST}\n")
    assert prompts(next(sessgit.config.glob(f"projects/*/{FIRST}.jsonl"))) == ["one"]


def test_at_a_cell(sessgit: Shell) -> None:
    talk = sessgit.talk(OTHER).turns("one").prompt("two").tool("Bash", {"command": "a"}).tool("Bash", {"command": "b"})
    sessgit.recorded(talk.answer("Done.").stop_lines())
    said = sessgit("fork", OTHER, "--at", "2.2")
    assert said.out.splitlines()[0].endswith("2 turns, from 0b2d7f10@2.2 “two”")
    cells = sessgit.json("log", FIRST)["turns"][1]["cells"]
    assert [cell["operation"] for cell in cells] == ["claude-test-1", "Bash"]
    store = Store(sessgit.store)
    origin = store.state(store.branches(FIRST)[FIRST]).origin
    assert origin is not None
    assert (origin.turn, origin.cell) == (1, "2.2")
    path = next(sessgit.config.glob(f"projects/*/{FIRST}.jsonl"))
    assert prompts(path) == ["one", "two"]
    assert sessgit("fork", OTHER, "--at", "2.3").code == 0
    assert sessgit("verify", "--deep").code == 0
    missing = sessgit("fork", OTHER, "--at", "2.9")
    assert missing.code == 4
    assert missing.err.startswith("Error: turn 2 has no cell 9; it has 5 cells.\n")


@pytest.mark.parametrize(
    ("message", "place", "operations"),
    [
        (0, "1.0", []),
        (1, "1", ["claude-test-1"]),
        (2, "2.0", []),
        (3, "2.1", ["claude-test-1", "Bash"]),
        (4, "2.3", ["claude-test-1", "Bash", "claude-test-1", "Bash"]),
        (5, "2", ["claude-test-1", "Bash", "claude-test-1", "Bash", "claude-test-1"]),
    ],
)
def test_at_a_message(sessgit: Shell, message: int, place: str, operations: list[str]) -> None:
    talk = sessgit.talk(OTHER).turns("one").prompt("two").tool("Bash", {"command": "a"}).tool("Bash", {"command": "b"})
    sessgit.recorded(talk.answer("Done.").stop_lines())
    numbers = {one["address"]: one["message"] for one in sessgit.json("cells", OTHER)["cells"]}
    assert numbers == {"1.1": 1, "2.1": 3, "2.2": None, "2.3": 4, "2.4": None, "2.5": 5}
    said = sessgit.out("fork", OTHER, "--at-message", str(message))
    assert f", from 0b2d7f10@{place} “" in said
    cells = sessgit.json("log", FIRST)["turns"][-1]["cells"]
    assert [cell["operation"] for cell in cells] == operations
    assert sessgit.json("verify", "--deep")["sound"]


def test_of_a_turn_that_was_rewound(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER).turns("one", "two").rewind(1).turns("other two"))
    said = sessgit.out("fork", f"{OTHER}.r-a0000002")
    assert said.splitlines()[0].endswith("2 turns, from 0b2d7f10.r-a0000002@2 “two”")


def test_of_a_conversation_without_turns(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk(OTHER).turns("one"))
    path.write_text(f'{{"type": "custom-title", "customTitle": "later", "sessionId": "{OTHER}"}}\n')
    sessgit.out("import")
    done = sessgit("fork", "0b2d")
    assert (done.code, done.err) == (
        2,
        "Error: 0b2d7f10 has no turns yet, so there is nothing to fork.\nHint: A fork keeps at least turn 1.\n",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ("5e55", "--at", "99"),
            4,
            "Error: 5e551011 has no turn 99; it has 3 turns.\nHint: `sessgit log 5e551011` lists them.\n",
        ),
        (
            ("5e55", "--at", "0"),
            2,
            "Error: a fork of 5e551011 before its first turn would be empty.\nHint: A fork keeps at least turn 1.\n",
        ),
        (
            ("5e55@1", "--at", "2"),
            2,
            "Error: 5e55@1 already names a turn.\nHint: Use either @TURN or --at TURN.\n",
        ),
        (
            ("5e55", "--at-message", "6"),
            4,
            "Error: 5e551011 has no message 6; it has 6, counted from 0.\n"
            "Hint: `sessgit cells 5e551011 --json` has the number of each.\n",
        ),
        (
            ("5e55@1", "--at-message", "2"),
            2,
            "Error: the address already names a turn.\nHint: Use either @TURN or --at-message N.\n",
        ),
        (
            ("5e55", "--at", "two"),
            2,
            "Error: “two” is not a turn.\nHint: A turn is a number, a cell is 7.3; -1 is the last turn.\n",
        ),
        (
            ("5e55", "--name", "a/b"),
            2,
            "Error: “a/b” cannot be a name.\n"
            "Hint: A name has at most 100 characters, no @, / or control characters, and does not start with -.\n",
        ),
        (
            ("5e55", "--run", "--no-restore"),
            2,
            "Error: --run and --no-restore cannot be combined.\nHint: Use one of the two.\n",
        ),
    ],
)
def test_what_is_refused(sessgit: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    done = sessgit("fork", *arguments)
    assert (done.code, done.out, done.err) == (code, "", error)
    assert len(sessgit.json("ls")["sessions"]) == 1


def test_a_name_is_unique_in_a_project(sessgit: Shell) -> None:
    sessgit.out("fork", "5e55", "--name", "other way")
    done = sessgit("fork", "5e55", "--name", "other way")
    assert (done.code, done.err) == (
        3,
        "Error: f0000001 is already called “other way”.\n"
        "Hint: Names are unique in a project: choose another name, or rename the other one first: `sessgit rename "
        "f0000001 OTHER`\n",
    )


def test_what_is_missing_is_said(sessgit: Shell) -> None:
    token = "ghp_" + "Zk3vQ8yT1mXw7LrB5nCd9PsJ2hFg6AuEtR4W"
    path = sessgit.recorded(sessgit.talk(OTHER).prompt(f"use {token} please").answer("No."))
    assert sessgit("fork", OTHER).err == ""  # the client's own file still holds the words
    assert token in next(sessgit.config.glob(f"projects/*/{FIRST}.jsonl")).read_text()
    path.unlink()
    done = sessgit("fork", OTHER)
    assert done.err == "1 secret is redacted in the fork.\n"


def test_run_becomes_the_client(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    ran: list[object] = []

    def execvp(program: str, arguments: list[str]) -> None:
        ran.extend((program, arguments, str(Path.cwd())))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execvp", execvp)
    assert sessgit("fork", "5e55", "--at", "1", "--run").code == 0
    assert ran == ["claude", ["claude", "--resume", FIRST], str(sessgit.project)]


def test_a_missing_client_is_said(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = sessgit("fork", "5e55", "--run")
    assert (done.code, done.err) == (
        4,
        f"Error: cannot start claude: No such file or directory.\n"
        f"Hint: Install the client, then run `claude --resume {FIRST}`.\n",
    )
