"""A fork where the clock is behind that of the machine that held the conversation."""

from __future__ import annotations

import json

import pytest
from plain import run_git
from shell import NOW, Shell
from transcripts import SESSION

FORK = "f0000001-0000-4000-8000-ffffffffffff"


@pytest.mark.parametrize(("at", "latest"), [("1", "10:00:02"), ("2", "10:00:08"), ("2.1", "10:00:07")])
def test_its_latest_time_is_that_of_its_turns(sessgit: Shell, at: str, latest: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one").prompt("two").tool("Read").answer("Done."))
    sessgit.now = NOW - 86400
    assert sessgit("fork", SESSION, "--at", at).code == 0
    (fork,) = [one for one in sessgit.json("ls", "--all")["sessions"] if one["id"] == FORK]
    assert (fork["created"], fork["updated"]) == ("2026-02-28T13:00:00.000Z", f"2026-03-01T{latest}.000Z")
    assert sessgit("verify", "--deep").code == 0


def test_so_it_is_in_a_repair(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two").prompt("three").call_only("Read").prompt("four").answer("Done.")
    sessgit.recorded(talk)
    sessgit.now = NOW - 86400
    assert sessgit("repair", SESSION).code == 0
    began = run_git(sessgit.store, "log", "--format=%H", "--grep=^Event: fork$", f"refs/heads/{FORK}").strip()
    state = json.loads(run_git(sessgit.store, "show", f"{began}:session.json"))
    shared = sessgit.json("log", f"{SESSION}@{state['origin']['turn']}", "-n", "1")["turns"][0]
    assert (shared["prompt"], state["metadata"]["updated_at"]) == ("two", "2026-03-01T10:00:06.000Z")
    assert sessgit("verify", "--deep").code == 0
