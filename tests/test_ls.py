"""`sessgit ls`: the conversations of a project, and of all projects."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from plain import run_git
from shell import Shell

from sessgit import agents
from sessgit.agents.claude import home
from sessgit.history import ls, search

PARSER, LEXER, UPLOAD, ELSEWHERE, HEADLESS = (f"{c * 8}-0000-4000-8000-{c * 12}" for c in "abcde")


@begins
def sessgit(shell: Shell) -> None:
    parser = shell.talk(PARSER).turns("write the tokenizer", "try a Pratt parser").title("parser rewrite")
    upload = shell.talk(UPLOAD).turns("fix flaky upload")
    shell.recorded(parser, parser.branch(LEXER).turns("by hand"), upload)


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


def test_at_46_columns_the_cost_goes_and_of_a_long_folder_the_end_is_shown(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert (
        sessgit("config", "prices.claude-test", "{input = 1000, output = 10000, cache_read = 1, cache_write = 10}").code
        == 0
    )
    elsewhere(sessgit, tmp_path / ("long" * 20) / "shop")
    sessgit.recorded(sessgit.talk(HEADLESS).turns(*("said at length, too long for a title",) * 12))
    assert "$" in sessgit.out("ls", "--all")
    monkeypatch.setenv("COLUMNS", "46")
    lines = sessgit.out("ls", "--all").splitlines()
    assert not any("$" in line for line in lines)
    assert [line for line in lines if len(line) > 46] == []
    assert any(line.startswith("…") and line.endswith("long/shop") for line in lines)


def test_other_projects(sessgit: Shell, tmp_path: Path) -> None:
    elsewhere(sessgit, tmp_path)
    assert (
        sessgit.out("ls").splitlines()[-1] == "3 of 4 conversations are in this project. All projects: sessgit ls --all"
    )
    listed = sessgit.out("ls", "--all")
    folder = listed.splitlines()[4]
    assert str(tmp_path).endswith(folder.removeprefix("…")) and folder.endswith(tmp_path.name)  # a long one is cut
    assert (
        listed
        == f"""\
~/shop
  aaaaaaaa  parser rewrite    2 turns  2h ago  forked once
  bbbbbbbb  └ Branched        3 turns  1h ago  from turn 2
  cccccccc  fix flaky upload   1 turn  2h ago
{folder}
  dddddddd  something else     1 turn  2h ago
4 conversations.
"""
    )
    assert sessgit.out("ls", "-n", "1", "--all").splitlines()[-1] == "Showing the 1 most recent of 4."


def test_a_subfolder_and_a_worktree_are_the_same_project(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (sessgit.project / ".git").mkdir()
    (sessgit.project / "src").mkdir()
    monkeypatch.chdir(sessgit.project / "src")
    assert sessgit.out("ls").splitlines()[-1] == "3 conversations."


def test_a_project_without_conversations(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert sessgit.out("ls") == "No conversations here; 3 in other projects: sessgit ls --all\n"
    sessgit.recorded(
        sessgit.talk(ELSEWHERE, cwd=str(tmp_path)).bare("mode", mode="normal"),
        sessgit.talk(HEADLESS, cwd=str(tmp_path)).prompt("hello", entrypoint="sdk-cli").answer("Hi."),
    )
    told = "No conversations here; 1 headless and 4 in other projects: sessgit {} --all\n"
    assert sessgit.out("ls") == told.format("ls")
    assert sessgit.out("tree") == told.format("tree")
    assert sessgit.json("ls")["sessions"] == []


def test_headless_ones_that_are_left_out_are_counted(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    headless = sessgit.talk(HEADLESS, cwd=str(tmp_path)).prompt("hello", entrypoint="sdk-cli").answer("Hi.")
    sessgit.recorded(headless, headless.branch(ELSEWHERE).prompt("again", entrypoint="sdk-cli").answer("Hi."))
    assert sessgit.out("ls", "--label", "nowhere") == "0 of 5 conversations match. All projects: --all\n"
    monkeypatch.chdir(tmp_path)
    told = "0 of 5 conversations match. 1 more with --headless. All projects: --all\n"
    assert sessgit.out("ls", "--forks-of", HEADLESS) == told
    for name in (PARSER, LEXER, UPLOAD):
        sessgit.out("delete", name, "--yes")
    assert sessgit.out("ls") == "No conversations here; 2 headless: sessgit ls --headless\n"
    assert sessgit.out("ls", "--headless").splitlines()[-1] == "2 conversations."


def test_headless_ones_and_those_without_a_turn_only_with_all(sessgit: Shell) -> None:
    empty = sessgit.talk(ELSEWHERE).bare("mode", mode="normal")
    headless = sessgit.talk(HEADLESS).prompt("hello", entrypoint="sdk-cli").answer("Hi.")
    sessgit.recorded(empty, headless)
    assert [s["id"][:8] for s in sessgit.json("ls")["sessions"]] == ["aaaaaaaa", "bbbbbbbb", "cccccccc"]
    assert [(s["id"][:8], s["headless"], s["turns"]) for s in sessgit.json("ls", "--all")["sessions"]][3:] == [
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


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells")
def test_a_client_that_nobody_has_waited_for_is_not_open(sessgit: Shell) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    with subprocess.Popen(["sleep", "60"]) as client:
        note = {"pid": client.pid, "sessionId": UPLOAD, "cwd": str(sessgit.project)}
        (sessions / f"{client.pid}.json").write_text(json.dumps(note))
        assert agents.is_open(claude_homes(sessgit.config), UPLOAD)
        client.kill()
        os.waitid(os.P_PID, client.pid, os.WEXITED | os.WNOWAIT)
        assert not agents.is_open(claude_homes(sessgit.config), UPLOAD)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "[" * 100_000, '{"pid": 1e999, "sessionId": "x"}', f'{{"pid": {10**30}, "sessionId": "x"}}',
     '{"pid": "none", "sessionId": "x"}', '{"pid": OURS, "sessionId": 1}'],
)  # fmt: skip
def test_what_is_no_clients_note_is_passed_over(sessgit: Shell, content: str) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "1.json").write_text(content.replace("OURS", str(os.getpid())))
    assert home.live_clients(sessgit.config) == []


def test_for_programs(sessgit: Shell) -> None:
    fork = sessgit.json("ls", "-n", "2")["sessions"][1]
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
        "archived": False,
        "parent": PARSER,
        "fork_turn": 2,
        "child_of": None,
        "role": None,
        "tokens": {"input": 300, "output": 30, "cache_read": 3000, "cache_write": 150},
        "cost_usd": None,
        "merged_into": [],
        "missing_turns": 0,
    }


def test_costs_come_from_the_price_table_and_can_be_overridden(sessgit: Shell) -> None:
    price = "{input = 1000, output = 1000, cache_read = 0, cache_write = 0}"
    assert sessgit("config", "prices.claude-test", price).code == 0
    assert sessgit.out("ls").splitlines()[2] == "  cccccccc  fix flaky upload   1 turn  2h ago  $0.11"
    assert sessgit.json("ls")["sessions"][2]["cost_usd"] == 0.11


@pytest.fixture
def six(sessgit: Shell) -> Shell:
    """Six conversations: the three, a fork of the fork, one that was interrupted and one that a program held."""
    lexer = sessgit.talk(PARSER).turns("write the tokenizer", "try a Pratt parser").branch(LEXER).turns("by hand")
    later = sessgit.talk("11111111-0000-4000-8000-111111111111").prompt("long ago")
    later.tool("Edit", {"file_path": str(sessgit.project / "src" / "shop.py")}, "ok").interrupt()
    headless = sessgit.talk(HEADLESS).prompt("hello", entrypoint="sdk-cli").answer("Hi.")
    deeper = lexer.branch("22222222-0000-4000-8000-222222222222").turns("deeper")
    sessgit.recorded(deeper, later, headless)
    return sessgit


def ids(sessgit: Shell, *options: str) -> list[str]:
    return [session["id"][:4] for session in sessgit.json("ls", *options)["sessions"]]


def test_options_choose_and_order(six: Shell) -> None:
    assert ids(six) == ["aaaa", "bbbb", "2222", "1111", "cccc"]
    assert ids(six, "--forks-of", "aaaa") == ["bbbb", "2222"]
    assert ids(six, "--forks-of", "2222") == []
    assert ids(six, "--state", "interrupted") == ["1111"]
    assert ids(six, "--state", "live") == []
    assert ids(six, "--headless") == ["aaaa", "bbbb", "2222", "1111", "cccc", "eeee"]
    assert ids(six, "--order", "turns") == ["2222", "bbbb", "aaaa", "1111", "cccc"]
    assert ids(six, "--order", "tokens", "--reverse")[0] == "cccc"
    assert ids(six, "--order", "name") == ["2222", "bbbb", "cccc", "1111", "aaaa"]
    assert ids(six, "--order", "name", "--limit", "2", "--offset", "1") == ["bbbb", "cccc"]
    assert ids(six, "--reverse", "-n", "1") == ["cccc"]
    assert ids(six, "--since", "2026-03-01T10:00:12Z") == ["bbbb", "2222"]
    assert ids(six, "--stage", "gathering") == ids(six, "--label", "x") == ids(six, "--only-archived") == []
    assert ids(six, "--project", "/nowhere") == []


def test_by_the_files_that_a_tool_read_or_changed(six: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(six, "--", "src") == ids(six, "--", "src/shop.py", "none") == ids(six, "--", "*/shop.*") == ["1111"]
    assert ids(six, "--", "shop.py") == []
    monkeypatch.chdir(six.project.parent)
    assert ids(six, "--all", "--", "shop/src/shop.py") == ["1111"]
    assert (
        six.out("ls", "--project", "shop", "--", "shop/src")
        == """\
  11111111  long ago      1 turn  2h ago
1 of 6 conversations matches. All projects: --all
"""
    )


def test_archived_ones_stand_by_themselves(six: Shell) -> None:
    run_git(six.store, "update-ref", f"refs/archive/{UPLOAD}", f"refs/heads/{UPLOAD}")
    run_git(six.store, "update-ref", "-d", f"refs/heads/{UPLOAD}")
    assert ids(six) == ["aaaa", "bbbb", "2222", "1111"]
    assert ids(six, "--only-archived") == ["cccc"]
    assert ids(six, "--archived") == ["aaaa", "bbbb", "2222", "1111", "cccc"]
    assert six.out("ls", "--archived").splitlines()[-3].endswith("2h ago  archived")
    assert six.out("ls", "--only-archived").splitlines()[-1] == "1 archived conversation."
    elsewhere = six.home / "elsewhere"
    elsewhere.mkdir()
    hint = "No archived conversations here; 1 in other projects: sessgit ls --only-archived\n--all\n"
    assert six.out("ls", "--only-archived", "--project", str(elsewhere)) == hint
    assert ids(six, "--only-archived", "--all") == ["cccc"]


def test_the_order_of_access_is_that_of_turns_and_of_the_files(sessgit: Shell) -> None:
    for path in sessgit.config.glob("projects/*/*.jsonl"):
        os.utime(path, (0, 0))
    assert ids(sessgit, "--order", "accessed") == ids(sessgit, "--order", "updated") == ["bbbb", "aaaa", "cccc"]
    (path,) = sessgit.config.glob(f"projects/*/{UPLOAD}.jsonl")
    os.utime(path, (sessgit.now - 60, sessgit.now - 60))
    assert ids(sessgit, "--order", "accessed") == ["cccc", "bbbb", "aaaa"]
    assert sessgit.out("ls", "--order", "accessed").splitlines()[0].endswith("1m ago")


def test_what_is_no_state_no_number_no_time(six: Shell) -> None:
    for options in (["--state", "gone"], ["--offset", "-1"], ["-n", "x"], ["--since", "soon"], ["--order", "size"]):
        assert six("ls", *options).code == 2
    assert six("ls", "--forks-of", "zzzz").code == 4


def test_hundreds_are_folded(sessgit: Shell) -> None:
    tip = run_git(sessgit.store, "rev-parse", f"refs/heads/{UPLOAD}")
    for number in range(300):
        (sessgit.store / "refs" / "heads" / f"{number:08x}-0000-4000-8000-000000000000").write_text(tip)
    page = sessgit.out("ls").splitlines()
    assert len(page) == 201
    assert page[-1] == "Showing the 200 most recent of 303. More: --limit N"
    assert len(sessgit.json("ls")["sessions"]) == 303
    assert len(sessgit.out("ls", "-n", "250").splitlines()) == 251


def test_by_what_was_said(six: Shell) -> None:
    assert ids(six, "--search", "pratt") == ["aaaa", "bbbb", "2222"]
    assert ids(six, "--search", '"fix flaky"') == ["cccc"]
    assert ids(six, "--search", "nowhere") == []
    assert six("ls", "--search", "?!").code == 2


def test_a_search_that_may_lack_something_says_so(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    (sessgit.store / "text.sqlite3").unlink()
    monkeypatch.setattr(search, "add_new_turns", refuse)
    done = sessgit("ls", "--search", "tokenizer")
    assert done.out == "0 of 3 conversations match. All projects: --all\n"
    assert done.err == "(the full-text index is behind: database or disk is full)\n"


_RANGES = st.builds(range, st.integers(0, 9), st.integers(0, 12))


@given(st.lists(_RANGES, max_size=5), st.builds(range, st.integers(0, 5), st.integers(5, 10)))
def test_what_several_ranges_cover(parts: list[range], whole: range) -> None:
    assert ls.covers_range(parts, whole) == all(any(number in part for part in parts) for number in whole)


def test_a_range_that_no_session_has_is_no_work() -> None:
    assert ls.covers_range([range(1, 10**15)], range(1, 10**14))
