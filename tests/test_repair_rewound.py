"""`sessgit repair` of what a rewind left as it is: a note of the client that hangs on the branch left behind."""

from __future__ import annotations

import json

import pytest
from plain import run_git
from shell import Shell
from test_repair import MENDED, replaced, report, said
from transcripts import Talk

from sessgit.agents.claude import repair as chain


def rewound(sessgit: Shell) -> Talk:
    """Turn 2 was left, with the notes at its end."""
    return sessgit.talk().turns("one", "two").rewind(1).turns("again")


@pytest.mark.parametrize("to", [0, 1, 2])
def test_a_rewound_conversation_needs_no_mending(sessgit: Shell, to: int) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two", "three").rewind(to).turns("again"))
    before = run_git(sessgit.store, "for-each-ref")
    turns = "1 turn" if not to else f"{to + 1} turns"
    said = sessgit.out("repair", "5e55").replace("\n", " ")
    assert said == f"5e551011 needs no repair: {turns}, all lines intact. Nothing was changed. "
    assert run_git(sessgit.store, "for-each-ref") == before


def test_nor_does_a_fork_of_it(sessgit: Shell) -> None:
    sessgit.recorded(rewound(sessgit).turns("more"))
    made = sessgit.json("fork", "5e55", "--at", "2")["id"]
    assert sessgit.json("repair", made, "--dry-run")["sound"]


def test_what_is_broken_in_it_is_mended_all_the_same(sessgit: Shell) -> None:
    talk = rewound(sessgit).prompt("more").call_only("Bash", {"command": "ls"}).turns("last")
    sessgit.recorded(talk)
    done = sessgit("repair", "5e55", "--json")
    assert [(one["turn"], one["kind"]) for one in report(done)["repairs"]] == [(3, "call")]
    made = said(next(sessgit.config.rglob(f"{MENDED}.jsonl")))
    uuids = {uuid for _, uuid, _ in made}
    assert all(parent in uuids for _, _, parent in made[1:])
    assert sessgit.json("repair", MENDED)["sound"]


def test_what_is_said_must_hang_on_something() -> None:
    """The same note with a prompt on it leads nowhere, and so does one that comes last."""
    talk = Talk().turns("one", "two")
    first, second = (n for n, line in enumerate(talk.lines) if b"stop_hook_summary" in line)
    whole = list(talk.lines)
    whole[first] = replaced(whole[first], parentUuid="gone")
    assert [(one.kind, one.line) for one in chain.mend([(1, whole)], talk.session).mends] == [("parent", first + 1)]
    whole = list(talk.lines)
    whole[second] = replaced(whole[second], parentUuid="gone")
    assert [(one.kind, one.line) for one in chain.mend([(1, whole)], talk.session).mends] == [("parent", second + 1)]


def test_nothing_is_hung_on_a_note_off_the_chain() -> None:
    """What has lost its parent goes on from what was said, not from what a rewind left."""
    talk = Talk().turns("one").prompt("two").answer("yes")
    note, more = Talk().turns("one", "left").lines[-5:-3]
    left = [replaced(note, parentUuid="left"), more]
    prompt = replaced(Talk(session=talk.session).prompt("three").lines[0], uuid="f1", parentUuid="gone")
    made = chain.mend([(1, [*talk.lines, *left, prompt])], talk.session)
    assert [(one.kind, one.line) for one in made.mends] == [("parent", len(talk.lines) + 3)]
    assert json.loads(made.turns[1][-1])["parentUuid"] == json.loads(talk.lines[-1])["uuid"]
