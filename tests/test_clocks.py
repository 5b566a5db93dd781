"""Clocks that are wrong: before 1970, after 2106, and commits that somebody dated as no clock would."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime

import pytest
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

FUTURE = datetime(2200, 1, 2, 10, tzinfo=UTC)


def dated(talk: Talk, born: datetime) -> Talk:
    talk.file.born = born
    return talk


def dates(sessgit: Shell, session: str = SESSION) -> list[str]:
    return run_git(sessgit.store, "log", "--format=%at %ct", session).splitlines()


def test_after_2106_a_turn_has_its_own_date_however_it_is_recorded(keep: Keep, git: Git) -> None:
    """The library for git writes 32 bits of a date."""
    keep(dated(Talk(), FUTURE).turns("one"))
    assert git("log", "-1", "--format=%at %ct", SESSION) == "7258240801 7258240801\n"


def test_the_future_in_lists(sessgit: Shell) -> None:
    sessgit.recorded(dated(sessgit.talk(), FUTURE).turns("one"), sessgit.talk(OTHER).turns("else"))
    assert sessgit.out("ls") == (
        "  5e551011-0000-4000-8000-000000000001  one           1 turn  Jan 2200\n"
        "  5e551011-0000-4000-8000-000000000002  else          1 turn    2h ago\n"
        "2 conversations.\n"
    )
    assert "● 1  2200-01-02  one " in sessgit.out("log", SESSION)
    assert sessgit.out("show", f"{SESSION}@1").startswith(f"{SESSION}@1  ·  2200-01-02  ·  ")
    assert [(row["key"], row["turns"]) for row in sessgit.json("stats")["rows"]] == [("last 7 days", 1), ("today", 1)]


@pytest.mark.parametrize("born", [datetime(1969, 7, 20, 10, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)])
def test_before_1970_no_date_is_told(sessgit: Shell, born: datetime) -> None:
    sessgit.recorded(dated(sessgit.talk(), born).turns("one", "two"))
    sessgit.out("tag", "there", SESSION)
    for command in (("log", "5e55"), ("show", "5e55"), ("show", "5e55@1"), ("show", "5e55@0"), ("search", "one"),
                    ("ls",), ("tree",), ("tag",)):  # fmt: skip
        assert "19" not in sessgit.out(*command).replace("0000", ""), command
    assert "● 2         two " in sessgit.out("log", "5e55")
    assert sessgit("verify").code == 0


@pytest.mark.parametrize("now", [-1e6, 8e9])
def test_commands_under_a_wrong_clock(sessgit: Shell, now: float) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("else"))
    sessgit.now = now
    fork = sessgit.json("fork", SESSION, "--at", "1")["id"]
    sessgit.out("rename", fork, "a clock")
    sessgit.out("edit", SESSION, "--label", "late")
    sessgit.out("tag", "here", SESSION)
    sessgit.out("merge", OTHER, "--into", SESSION)
    sessgit.out("archive", OTHER)
    sessgit.out("pad", "add", "insight", "x", "--into", SESSION)
    for command in (("ops",), ("ls",), ("log", SESSION), ("log", fork), ("stats",), ("tree",), ("status",)):
        sessgit.out(*command)
    assert sessgit("verify").code == 0
    earliest, latest = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()), max(int(now), int(1e10))
    assert all(earliest <= int(one) <= latest for line in dates(sessgit) for one in line.split())
    sessgit.out("undo")


@pytest.mark.parametrize("date", [(1 << 63) - 1, 99_999_999_999_999, -5])
def test_a_commit_that_is_dated_as_no_clock_would(sessgit: Shell, date: int) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    tree, parents, message = (
        run_git(sessgit.store, "log", "-1", f"--format={what}", f"{SESSION}~1").strip() for what in ("%T", "%P", "%B")
    )
    who = f"ada <a@b> {date} +0000"
    data = f"tree {tree}\nparent {parents}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    made = subprocess.run(
        ["git", "-C", sessgit.store, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        input=data, text=True, capture_output=True, check=True,
    ).stdout.strip()  # fmt: skip
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", made)
    for command in (("log", "5e55"), ("show", "5e55@2"), ("stats", "--by", "day"), ("search", "two"), ("ls",), ("tag",),
                    ("log", "5e55", "--graph"), ("log", "5e55", "--json"), ("fork", "5e55", "--at", "1"),
                    ("rename", SESSION, "late"), ("export", "markdown", SESSION)):  # fmt: skip
        done = sessgit(*command)
        assert (done.code, done.err) == (0, ""), command
    done = sessgit("verify", SESSION)
    assert (done.code, done.err) == (0, "")  # the turn's own time is in its lines
