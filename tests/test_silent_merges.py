"""Merges that brought no turn, as the index remembers them: made anew it says the same."""

from __future__ import annotations

from shell import Shell
from transcripts import SESSION

BEFORE = "00000000-0000-4000-8000-000000000001"
"""A session whose id comes before that of the one that it left."""


def test_a_fork_that_comes_first_takes_none_from_the_one_it_left(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    other = str(sessgit.json("fork", SESSION)["id"])
    sessgit.out("edit", other, "--label", "lexer")
    sessgit.out("merge", other, "--into", SESSION)
    talk.turns("three")
    sessgit.recorded(talk, talk.fork_session(BEFORE).turns("elsewhere"))
    told = sessgit.out("log", SESSION)
    assert "merged" in told
    for path in sessgit.store.glob("index.sqlite3*"):
        path.unlink()
    assert sessgit.out("log", SESSION) == told
    assert "index" not in sessgit.out("verify", "--deep")


def test_one_that_was_taken_back_is_no_fault_of_the_index(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    other = str(sessgit.json("fork", SESSION)["id"])
    sessgit.out("edit", other, "--label", "lexer")
    sessgit.out("merge", other, "--into", SESSION)
    sessgit.out("log", SESSION)
    sessgit.out("undo")
    assert "index" not in sessgit.out("verify", "--deep")
