"""A merge of what people said alone, what summaries say of cost, and what others say of merges."""

from __future__ import annotations

import pytest
from kept import begins
from merging import THEIRS, THIRD, assert_whole, authored, diverged, git, lines, prompts, tip, transcript
from shell import Shell
from transcripts import SESSION

from sessgit.model.conversation.message import Message
from sessgit.store import layout, refs
from sessgit.store.store import Store

PRICE = "{input = 1000, output = 1000, cache_read = 1, cache_write = 1}"


@begins
def sessgit(shell: Shell) -> None:
    diverged(shell)


@pytest.fixture
def fork(sessgit: Shell) -> str:
    """The id of a fork of ours of which people said something, and in which nothing was said."""
    made = str(sessgit.json("fork", SESSION, "--at", "3")["id"])
    sessgit.out("edit", made, "--label", "fast", "--description", "with a trie", "--stage", "shaping")
    return made


def test_what_people_said_of_theirs_comes_without_a_turn(sessgit: Shell, fork: str) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    assert (
        sessgit.out("merge", fork, "--into", SESSION, "--dry-run")
        == """\
base   5e551011@3   ours  5e551011 (+0 turns)   theirs  f0000001 (+0 turns)
  union        labels #fast
  take         description “with a trie” (theirs)
  take         stage “shaping” (theirs)
"""
    )
    plan = sessgit.json("merge", fork, "--into", SESSION, "--dry-run")
    assert plan["decisions"][0]["value"] == []
    assert (
        sessgit.out("merge", fork, "--into", SESSION)
        == f"5e551011  merged f0000001\nContinue it:  claude --resume {SESSION}\n"
    )
    found = authored(sessgit)
    assert (found["labels"], found["description"], found["stage"]) == (["fast"], "with a trie", "shaping")
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split() == [head, tip(sessgit, fork)]
    assert git(sessgit, "show", "-s", "--format=%B", SESSION).split("\n\n") == [
        f"merge: what was said of {fork}", f"Session: {SESSION}\nEvent: merge\nOrigin: {fork}",
    ]  # fmt: skip
    assert transcript(sessgit).read_bytes() == before
    assert len(prompts(sessgit)) == 3
    assert_whole(sessgit)
    assert sessgit("merge", fork, "--into", SESSION).err == "f0000001 is already merged into 5e551011.\n"
    assert sessgit("undo").code == 0
    assert (tip(sessgit), transcript(sessgit).read_bytes(), authored(sessgit)["labels"]) == (head, before, [])


def test_what_ours_has_too_is_nothing(sessgit: Shell, fork: str) -> None:
    sessgit.out("edit", SESSION, "--label", "fast", "--description", "with a trie", "--stage", "shaping")
    head = tip(sessgit)
    said = "f0000001 has no turns that 5e551011 lacks.\n"
    assert sessgit("merge", fork, "--into", SESSION).err == said
    assert sessgit("merge", fork, "--into", SESSION, "--set", "stage=synthesized").err == said
    assert tip(sessgit) == head


def test_what_ours_had_before_the_fork_gives_way_to_what_was_said_in_it(sessgit: Shell) -> None:
    """The fork begins without our description: its own is a change, ours is none since."""
    sessgit.out("edit", SESSION, "--description", "Pratt")
    sessgit.recorded(sessgit.talk().turns("one", "two", "three", "four"))
    made = str(sessgit.json("fork", SESSION, "--at", "4")["id"])
    sessgit.out("edit", made, "--description", "with a trie")
    assert sessgit.out("merge", made, "--into", SESSION, "--dry-run").splitlines()[1:] == [
        "  take         description “with a trie” (theirs)"
    ]
    sessgit.out("merge", made, "--into", SESSION)
    assert authored(sessgit)["description"] == "with a trie"


def test_what_both_changed_is_a_conflict(sessgit: Shell, fork: str) -> None:
    sessgit.out("edit", SESSION, "--description", "Pratt")
    done = sessgit("merge", fork, "--into", SESSION)
    assert (done.code, done.err.splitlines()[1]) == (3, "  description: ours “Pratt”, theirs “with a trie”")
    sessgit.out("merge", fork, "--into", SESSION, "--ours")
    assert (authored(sessgit)["description"], authored(sessgit)["labels"]) == ("Pratt", ["fast"])


def test_said_after_a_merge_it_comes_with_another_one(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    sessgit.out("edit", THEIRS, "--label", "late")
    assert sessgit.out("merge", "e90c", "--into", "5e55").startswith("5e551011  merged e90c55aa\n")
    assert (authored(sessgit)["labels"], len(prompts(sessgit))) == (["late"], 4)
    assert sessgit("merge", "e90c", "--into", "5e55").err == "e90c55aa is already merged into 5e551011.\n"


def test_a_line_on_the_pad_comes_without_a_turn(sessgit: Shell) -> None:
    made, store = str(sessgit.json("fork", SESSION)["id"]), Store(sessgit.store)
    head, entry = tip(sessgit, made), (store.repo.write_blob(b'"a"\n'), False)
    message = Message("edit: pad", (("Session", made), ("Event", "edit")))
    commit = store.write_commit(head, {"pad/insights.jsonl": entry}, store.state(head), message, [head], 1)
    store.repo.move(layout.head_ref(made), head, commit)
    assert sessgit.out("merge", made, "--into", SESSION, "--dry-run").splitlines()[1:] == [
        "  union        insights 0 + 1 → 1"
    ]
    sessgit.out("merge", made, "--into", SESSION)
    assert git(sessgit, "show", f"{SESSION}:pad/insights.jsonl") == '"a"'


def test_it_is_drawn(sessgit: Shell, fork: str) -> None:
    sessgit.out("merge", fork, "--into", SESSION)
    assert sessgit.out("log", SESSION).splitlines()[2:5] == [
        "├─   13:00  ↳ f0000001  one",
        "○─┐  merged f0000001  one",
        f"● 3  10:00  three{'160'.rjust(63)}",
    ]
    nodes = sessgit.json("tree", SESSION)["families"][0]["nodes"]
    assert {node["id"]: node["merged_into"] for node in nodes if node["merged_into"]} == {
        fork: [{"session_id": SESSION, "turn": 3}]
    }
    assert "merged into 5e551011 at turn 3" in sessgit.out("tree", SESSION)
    sessgit.out("undo")
    assert "merged into" not in sessgit.out("tree", SESSION)


def test_the_cost_in_a_summary_is_at_the_prices_that_were_set(sessgit: Shell) -> None:
    sessgit.out("config", "prices.claude-test", PRICE)
    sessgit.out("merge", "e90c", "--into", "5e55")
    assert lines(sessgit)[-2]["message"]["content"].endswith("\nIt used 490 tokens, $0.34.")


def test_who_deletes_is_told_what_stays_elsewhere(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_delete import answering

    sessgit.recorded(sessgit.talk(THIRD).turns("far"))
    sessgit.out("merge", "e90c", "--into", "5e55")
    sessgit.out("pick", "e90c@4", "--into", THIRD)
    answering(monkeypatch, "n")
    asked = sessgit("delete", THEIRS).err.splitlines()
    assert asked[1:3] == [
        "  2 turns of it were merged into 5e551011 and stay there",
        "  1 turn of it was merged into 77be01d3 and stays there",
    ]
    (gone,) = sessgit.json("delete", THEIRS, "--yes")["deleted"]
    assert gone["merged"] == [{"session_id": SESSION, "turns": 2}, {"session_id": THIRD, "turns": 1}]
    assert len(prompts(sessgit)) == 4
    assert_whole(sessgit)
    assert f"refs/heads/{THEIRS}" not in refs.read_all(sessgit.store)
