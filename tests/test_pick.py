"""`sessgit pick`: single turns of other conversations."""

from __future__ import annotations

import pytest
from kept import begins
from merging import NEW, THEIRS, THIRD, assert_whole, git, prompts, tip, transcript
from shell import Shell
from test_unfinished import killed
from transcripts import SESSION


@begins
def sessgit(shell: Shell) -> None:
    """Two conversations that diverged after a turn, and one that has nothing to do with them."""
    ours = shell.talk().turns("one")
    theirs = ours.fork_session(THEIRS)
    theirs.prompt("two").tool("Bash", {"command": "ls"}, "a.py").answer("Two.").stop_lines()
    shell.recorded(ours.turns("ours"), theirs.turns("three"), shell.talk(THIRD).turns("far", "away"))


def test_turns_of_two_conversations_in_their_order(sessgit: Shell) -> None:
    assert (
        sessgit.out("pick", f"{THIRD}@2", "e90c@2", "--into", "5e55")
        == f"""\
5e551011  added turns 3 to 4 from 77be01d3, e90c55aa
Continue it:  claude --resume {SESSION}
"""
    )
    assert prompts(sessgit) == ["one", "ours", "away", "two"]
    made = "--format=%(trailers:key=Event,valueonly)%(trailers:key=Origin,valueonly)"
    told = git(sessgit, "log", "--first-parent", "-2", made, SESSION, "--").split()
    assert told == ["graft", f"{THEIRS}@2", "graft", f"{THIRD}@2"]
    assert_whole(sessgit)


def test_a_later_merge_brings_the_rest(sessgit: Shell) -> None:
    sessgit.out("pick", "e90c@3", "--into", "5e55")
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).count(" ") == 0
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    assert prompts(sessgit) == ["one", "ours", "three", "two"]
    assert_whole(sessgit)


def test_for_programs(sessgit: Shell) -> None:
    head, before = tip(sessgit), transcript(sessgit).read_bytes()
    brought = {"path": "turns", "action": "bring", "conflict": False, "ours": None, "theirs": None}
    told = {
        "ours": head,
        "decisions": [{**brought, "value": [f"{THEIRS}@3"]}],
        "turns": [3],
        "picked": [{"session_id": THEIRS, "turn": 3}],
    }
    dry = sessgit.json("pick", "e90c@-1", "--into", "5e55", "--dry-run")
    assert dry == {**told, "session_id": None, "commit": None}
    assert (tip(sessgit), transcript(sessgit).read_bytes(), sessgit.json("ops")["operations"]) == (head, before, [])
    made = sessgit.json("pick", "e90c@-1", "--into", "5e55")
    assert made == {**told, "session_id": SESSION, "commit": tip(sessgit)}


def test_what_would_be_brought(sessgit: Shell) -> None:
    talk = sessgit.talk(NEW).prompt("long " * 40).tool("Edit", {"file_path": "/p/a.py"}, "ok")
    sessgit.recorded(talk.answer("Done.").stop_lines())
    assert sessgit.out("pick", f"{THIRD}@2", "e90c@2", f"{NEW}@1", "--into", "5e55", "--dry-run") == (
        "ours  5e551011 (2 turns)\n"
        "  append       turn 2 of 77be01d3, as turn 3: “away”\n"
        "               turn 2 of e90c55aa, as turn 4: “two”\n"
        "               turn 1 of f0000001, as turn 5: “long long long long long long l…”\n"
        "  union        files 0 + 1 → 1\n"
    )


def test_it_is_an_operation_and_undone(sessgit: Shell) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    sessgit.out("pick", f"{THIRD}@2", "e90c@2", "--into", "5e55")
    after = transcript(sessgit).read_bytes()
    done = sessgit.json("ops")["operations"][0]
    assert (done["command"], done["summary"]) == ("pick", f"5e551011: {THIRD[:8]}@2, {THEIRS[:8]}@2")
    assert done["refs"] == [{"ref": f"refs/heads/{SESSION}", "before": head, "after": tip(sessgit)}]
    assert done["appended"] == [str(transcript(sessgit))]
    undo = sessgit.json("undo")
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert_whole(sessgit)
    assert (prompts(sessgit), tip(sessgit)) == (["one", "ours"], head)
    sessgit.out("undo", undo["operation_id"])
    assert transcript(sessgit).read_bytes() == after
    assert_whole(sessgit)
    assert prompts(sessgit) == ["one", "ours", "away", "two"]


def test_killed_before_anything_was_appended_a_second_run_does_it(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    killed(sessgit, monkeypatch, "store.recorder_state.delete_intent", "pick", "e90c@3", "--into", "5e55")
    assert sessgit.out("pick", "e90c@3", "--into", "5e55").startswith("5e551011  added turn 3 from e90c55aa\n")
    _is_undone(sessgit, before, head)


def test_killed_before_it_was_written_down_gc_notes_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    killed(sessgit, monkeypatch, "branch.merge._record_operation", "pick", "e90c@3", "--into", "5e55")
    done = sessgit("pick", "e90c@3", "--into", "5e55")
    assert (done.code, done.err.splitlines()[0]) == (2, "Error: turn 3 of e90c55aa is already in 5e551011.")
    assert prompts(sessgit) == ["one", "ours", "three"]
    sessgit.out("gc")
    _is_undone(sessgit, before, head)


def _is_undone(sessgit: Shell, data: bytes, head: str) -> None:
    """Check that one pick is there, and that undo reverts it."""
    assert prompts(sessgit) == ["one", "ours", "three"]
    assert [one["command"] for one in sessgit.json("ops")["operations"] if one["standing"] == "done"] == ["pick"]
    assert sessgit("undo").code == 0
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (data, head)


def test_into_a_new_conversation(sessgit: Shell) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    assert sessgit.out("pick", "e90c@3", "--into", "5e55", "--new", "both").startswith("f0000001  added turn 3 from")
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert prompts(sessgit, NEW) == ["one", "ours", "three"]
    assert_whole(sessgit, NEW)


def test_what_was_picked_was_used_once(sessgit: Shell) -> None:
    before = sessgit.json("stats")["total"]
    sessgit.out("pick", "e90c@2", "--into", "5e55")
    assert sessgit.json("stats")["total"] == before


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("e90c", "--into", "5e55"), 2, "e90c55aa does not name a turn."),
        (("e90c@2.1", "--into", "5e55"), 2, "e90c55aa does not name a turn."),
        (("e90c@7", "--into", "5e55"), 4, "e90c55aa has no turn 7; it has 3 turns."),
        (("e90c@2", "e90c@-2", "--into", "5e55"), 2, "turn 2 of e90c55aa is named twice."),
        (("e90c@1", "--into", "5e55"), 2, "turn 1 of e90c55aa is already in 5e551011."),
        (("5e55@1", "--into", "5e55"), 2, "turn 1 of 5e551011 is already in 5e551011."),
        (("beef@1", "--into", "5e55"), 4, "no conversation starts with “beef”."),
        (("e90c@2", "--into", "5e55@1"), 2, "a merge appends after the last turn of 5e551011, not after turn 1."),
    ],
)
def test_what_is_refused(sessgit: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("pick", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"Error: {error}"), done.err
    assert "\nHint: " in done.err
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


def test_twice_is_refused(sessgit: Shell) -> None:
    sessgit.out("pick", "e90c@3", "--into", "5e55")
    done = sessgit("pick", "e90c@3", "--into", "5e55")
    assert (done.code, done.err) == (
        2,
        "Error: turn 3 of e90c55aa is already in 5e551011.\n"
        "Hint: `sessgit diff 5e551011 e90c55aa` shows what is not.\n",
    )


@pytest.mark.parametrize("new", [(), ("--new",)])
def test_a_turn_of_the_conversation_itself(sessgit: Shell, new: tuple[str, ...]) -> None:
    done = sessgit("pick", "5e55@2", "--into", "5e55", *new)
    assert (done.code, done.err) == (
        2,
        "Error: turn 2 of 5e551011 is already in 5e551011.\n"
        "Hint: Name another conversation with `--into`, or continue from that turn: `sessgit fork 5e551011 --at 2`\n",
    )


def test_gits_word_for_it(sessgit: Shell) -> None:
    assert "sessgit pick ID@N" in sessgit("cherry-pick").err
