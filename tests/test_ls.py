"""`sessgit ls`: the conversations of a project, and of all projects."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from shell import Shell

from sessgit.agents.claude import home

PARSER, LEXER, UPLOAD, ELSEWHERE, HEADLESS = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abcde")


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    parser = shell.talk(PARSER).turns("write the tokenizer", "try a Pratt parser").title("parser rewrite")
    upload = shell.talk(UPLOAD).turns("fix flaky upload")
    shell.recorded(parser, parser.branch(LEXER).turns("by hand"), upload)
    return shell


def elsewhere(sessgit: Shell, folder: Path) -> None:
    sessgit.recorded(sessgit.talk(ELSEWHERE, cwd=str(folder)).turns("something else"))


def test_the_page(sessgit: Shell) -> None:
    assert (
        sessgit.out("ls")
        == """\
  aaaaaaaa  parser rewrite    2 turns  2h ago  forked once
  bbbbbbbb  └ Branched        3 turns  1h ago  from turn 2
  cccccccc  fix flaky upload   1 turn  2h ago
3 conversations.
"""
    )


def test_at_60_columns_the_numbers_stay(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    sessgit.recorded(
        sessgit.talk(ELSEWHERE).turns("a prompt that is longer than a title should ever be, and says little")
    )
    assert sessgit.out("ls").splitlines()[-2] == "  dddddddd  a prompt that is…    1 turn  2h ago"


def test_other_projects(sessgit: Shell, tmp_path: Path) -> None:
    elsewhere(sessgit, tmp_path)
    assert sessgit.out("ls").splitlines()[-1] == "3 of 4 conversations here. All projects: sessgit ls --all"
    assert (
        sessgit.out("ls", "--all")
        == f"""\
~/shop
  aaaaaaaa  parser rewrite    2 turns  2h ago  forked once
  bbbbbbbb  └ Branched        3 turns  1h ago  from turn 2
  cccccccc  fix flaky upload   1 turn  2h ago
{tmp_path}
  dddddddd  something else     1 turn  2h ago
4 conversations.
"""
    )
    assert sessgit.out("ls", "-n", "1", "--all").splitlines()[-1] == "1 of 4 conversations, the ones written last."


def test_a_subfolder_and_a_worktree_are_the_same_project(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (sessgit.project / ".git").mkdir()
    (sessgit.project / "src").mkdir()
    monkeypatch.chdir(sessgit.project / "src")
    assert sessgit.out("ls").splitlines()[-1] == "3 conversations."


def test_a_project_without_conversations(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert sessgit.out("ls") == "No conversation here, 3 in other projects or headless: sessgit ls --all\n"
    assert sessgit.json("ls") == []


def test_headless_ones_and_those_without_a_turn_only_with_all(sessgit: Shell) -> None:
    empty = sessgit.talk(ELSEWHERE).bare("mode", mode="normal")
    headless = sessgit.talk(HEADLESS).prompt("hello", entrypoint="sdk-cli").answer("Hi.")
    sessgit.recorded(empty, headless)
    assert [s["id"][:8] for s in sessgit.json("ls")] == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
    assert [(s["id"][:8], s["headless"], s["turns"]) for s in sessgit.json("ls", "--all")][3:] == [
        ("eeeeeeee", True, 1),
        ("dddddddd", False, 0),
    ]


def test_an_open_client_is_marked(sessgit: Shell) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    alive = {"pid": os.getpid(), "sessionId": UPLOAD, "cwd": str(sessgit.project)}
    (sessions / f"{os.getpid()}.json").write_text(json.dumps(alive))
    assert [client.agent_id for client in home.live_clients(sessgit.config)] == [UPLOAD]
    assert sessgit.out("ls").splitlines()[2] == "  cccccccc  fix flaky upload   1 turn  2h ago  ● live"


def test_for_programs(sessgit: Shell) -> None:
    fork = sessgit.json("ls", "-n", "2")[1]
    assert fork == {
        "id": LEXER,
        "agent_id": LEXER,
        "name": "",
        "title": "Branched",
        "first_prompt": "write the tokenizer",
        "agent": "claude",
        "project": str(sessgit.project),
        "git_branch": "main",
        "created": fork["created"],
        "updated": fork["updated"],
        "turns": 3,
        "messages": 6,
        "state": "ended",
        "stage": "",
        "labels": [],
        "description": "",
        "headless": False,
        "parent": PARSER,
        "fork_turn": 2,
        "tokens": {"input": 300, "output": 30, "cache_read": 3000, "cache_write": 150},
        "cost_usd": None,
    }


def test_costs_come_from_the_price_table_and_can_be_overridden(sessgit: Shell) -> None:
    price = "{input = 1000, output = 1000, cache_read = 0, cache_write = 0}"
    assert sessgit("config", "prices.claude-test", price).code == 0
    assert sessgit.out("ls").splitlines()[2] == "  cccccccc  fix flaky upload   1 turn  2h ago  $0.11"
    assert sessgit.json("ls")[2]["cost_usd"] == 0.11
