"""Forks that the client made, and forks of our own, recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from homes import claude_homes
from pictures import branches, log, prompts, state, text, tree, turn_files
from plain import Git, Keep
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import fork, restore
from sessgit.history.resolve import ForkPoint
from sessgit.store.index import Index
from sessgit.store.store import Store

THIRD = "5e551011-0000-4000-8000-000000000003"
BODY_1 = "turns/0000/000001/transcript.jsonl"


def rebuilt(store: Store, session: str) -> bytes:
    return restore.rebuild_file(store, session).data


# --fork-session


def test_a_copy_under_another_id_shares_the_folders(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three")
    keep(talk, final=True)
    copy = talk.fork_session().turns("four elsewhere")
    keep(copy, final=True)
    point = next(c.id for c in store.repo.first_parents(branches(store)[SESSION]) if "\nTurn: 3\n" in c.message)
    assert log(store, OTHER) == [
        "start: /home/ada/shop",
        "turn 1: one",
        "turn 2: two",
        "turn 3: three",
        f"fork: {SESSION} at turn 3",
        "turn 4: four elsewhere",
        "end: 4 turns",
    ]
    assert state(store, OTHER)["origin"] == {
        "session": SESSION,
        "turn": 3,
        "commit": point,
        "replaced": [SESSION],
        "prefix": 0,
        "prefix_sha256": "",
        "cell": "",
    }
    assert state(store, OTHER)["trajectory"]["turns"] == 4
    theirs, ours = turn_files(store, branches(store)[SESSION]), turn_files(store, branches(store)[OTHER])
    shared = ("turns/0000/000002/", "turns/0000/000003/")
    assert {path: oid for path, oid in ours.items() if path.startswith(shared)} == {
        path: oid for path, oid in theirs.items() if path.startswith(shared)
    }
    header = text(store, branches(store)[OTHER], "turns/0000/000001/before.jsonl")
    assert header == b"".join(line + b"\n" for line in copy.lines[:2]).decode()
    assert rebuilt(store, OTHER) == copy.data
    assert rebuilt(store, SESSION) == talk.data


def test_a_fork_of_a_fork(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    copy = talk.fork_session(OTHER).turns("three")
    keep(copy, final=True)
    again = copy.fork_session(THIRD).turns("four")
    keep(again, final=True)
    assert log(store, THIRD)[3:] == [
        f"fork: {SESSION} at turn 2",
        "turn 3: three",
        f"fork: {OTHER} at turn 3",
        "turn 4: four",
        "end: 4 turns",
    ]
    assert state(store, THIRD)["origin"]["replaced"] == [OTHER, SESSION]
    assert rebuilt(store, THIRD) == again.data


def test_a_fork_that_begins_before_the_parents_end(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    copy = talk.fork_session()
    keep(talk.turns("three"))
    keep(copy.turns("three elsewhere"), final=True)
    assert log(store, OTHER)[3:] == [f"fork: {SESSION} at turn 2", "turn 3: three elsewhere", "end: 3 turns"]
    assert rebuilt(store, OTHER) == copy.data


def test_a_copy_that_nobody_went_on_with(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    copy = talk.fork_session()
    keep(copy)
    assert log(store, OTHER)[3:] == [f"fork: {SESSION} at turn 2"]
    keep(copy.answer("A word more on two.").stop_lines(), final=True)
    assert log(store, OTHER)[3:] == [f"fork: {SESSION} at turn 2", "turn 2: two", "end: 2 turns"]
    body = text(store, branches(store)[OTHER], "turns/0000/000002/transcript.jsonl")
    assert (SESSION in body, body.count(f'"sessionId":"{OTHER}"')) == (False, len(body.splitlines()))
    assert rebuilt(store, OTHER) == copy.data


@pytest.mark.parametrize("to", [0, 1])
def test_a_rewind_to_before_the_fork_point(keep: Keep, store: Store, to: int) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    copy = talk.fork_session().turns("three")
    keep(copy)
    keep(copy.rewind(to).turns("otherwise"), final=True)
    assert prompts(store, branches(store)[OTHER]) == [*copy.prompts[:to], copy.prompts[-1]]
    numbers = {path.split("/")[2] for path in turn_files(store, branches(store)[OTHER])}
    assert numbers == {f"{number:06d}" for number in range(1, to + 2)}
    assert state(store, OTHER)["trajectory"]["turns"] == to + 1
    assert rebuilt(store, OTHER) == copy.data


@pytest.mark.parametrize("to", [0, 1, 2])
def test_a_rewind_that_was_copied_along(keep: Keep, store: Store, to: int) -> None:
    """The fork's file is recorded only after it was rewound to before the point where it left its parent."""
    talk = Talk().turns("one", "two", "three")
    keep(talk)
    copy = talk.fork_session().rewind(to).turns("otherwise")
    keep(copy, final=True)
    assert prompts(store, branches(store)[OTHER]) == [*copy.prompts[:to], copy.prompts[-1]]
    numbers = {path.split("/")[2] for path in turn_files(store, branches(store)[OTHER])}
    assert numbers == {f"{number:06d}" for number in range(1, to + 2)}
    assert not keep(copy, final=True).changed
    assert rebuilt(store, OTHER) == copy.data


# /branch


def test_a_branch_has_bytes_of_its_own(keep: Keep, store: Store) -> None:
    """Its lines name their origin, which the parent's do not."""
    talk = Talk().turns("one", "two")
    keep(talk)
    copy = talk.branch().turns("three")
    keep(copy, final=True)
    assert log(store, OTHER)[3:] == [f"fork: {SESSION} at turn 2", "turn 3: three", "end: 3 turns"]
    assert state(store, OTHER)["origin"]["replaced"] == []
    assert "forkedFrom" in text(store, branches(store)[OTHER], BODY_1)
    assert "forkedFrom" not in text(store, branches(store)[SESSION], BODY_1)
    assert state(store, OTHER)["metadata"]["title"] == "Branched"
    assert rebuilt(store, OTHER) == copy.data


def test_the_named_parent_wins_over_one_that_shares_as_much(keep: Keep, store: Store) -> None:
    """Where nothing is named, it would be the one that left no other."""
    talk = Talk().turns("one", "two")
    keep(talk)
    named = talk.fork_session(THIRD)
    keep(named)
    keep(named.branch(OTHER).turns("three"))
    assert state(store, OTHER)["origin"]["session"] == THIRD


@pytest.mark.parametrize("sibling", ["5e551011-0000-4000-8000-000000000000", THIRD])
def test_the_one_that_left_no_other_is_the_parent_where_none_is_named(keep: Keep, store: Store, sibling: str) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    keep(talk.fork_session(sibling))
    keep(talk.fork_session(OTHER).turns("three"))
    assert state(store, OTHER)["origin"]["session"] == SESSION


@pytest.mark.parametrize(("said", "redacted"), [("nothing secret", None), (f"use {SECRET}, or {SECRET}", "2")])
def test_the_first_commit_says_where_it_left_and_how_many_secrets_it_shares(
    keep: Keep, store: Store, said: str, redacted: str | None
) -> None:
    talk = Talk().prompt(said).answer("Well.").turns("two")
    keep(talk)
    keep(talk.fork_session().turns("three"))
    found = (store.message(commit.id) for commit in store.repo.first_parents(branches(store)[OTHER]))
    message = next(message for message in found if message.get("Event") == "fork")
    assert message.get("Fork-Point") == f"{SESSION}@2"
    assert message.all("Redacted") == ([redacted] if redacted else [])


def test_a_branch_grows_at_the_fork_point(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    keep(talk)
    copy = talk.branch()
    keep(copy)
    keep(copy.answer("No response requested.").turns("two"), final=True)
    body = text(store, branches(store)[OTHER], BODY_1)
    assert body.count("forkedFrom") == 4
    assert "No response requested." in body
    assert rebuilt(store, OTHER) == copy.data


def test_a_fork_takes_no_name_and_no_end_along(keep: Keep, store: Store) -> None:
    talk = Talk().title("Parent").turns("one")
    keep(talk, final=True)
    keep(talk.fork_session().turns("two"))
    found = state(store, OTHER)
    assert (found["metadata"]["state"], found["metadata"]["ended_at"]) == ("active", None)
    assert (found["metadata"]["title"], found["authored"]["name"]) == ("Parent", "")
    assert "tail.jsonl" not in tree(store, branches(store)[OTHER])


def test_strangers_are_no_family(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one"))
    keep(Talk(OTHER).turns("one"))
    assert log(store, OTHER) == ["start: /home/ada/shop", "turn 1: one"]
    assert state(store, OTHER)["origin"] is None


@pytest.mark.parametrize("kind", ["fork_session", "branch"])
def test_forks_in_steps_end_as_at_once(keep: Keep, store: Store, kind: str) -> None:
    talk = Talk().turns("one").prompt("two").tool("Bash", {}, "x" * 5000).answer("Two.").stop_lines()
    keep(talk)
    copy = getattr(talk, kind)()
    whole = getattr(talk, kind)(OTHER).turns("three", "four").rewind(3).turns("four again")
    for length in range(len(copy.lines), len(whole.lines) + 1):
        part = Talk(OTHER)
        part.file.lines[:] = whole.lines[:length]
        keep(part)
    keep(whole, final=True)
    in_steps = {name: (prompts(store, tip), turn_files(store, tip)) for name, tip in branches(store).items()}
    for name in [name for name in branches(store) if name.startswith(OTHER)]:
        store.repo.move(f"refs/heads/{name}", branches(store)[name], None)
    keep(whole, final=True)
    at_once = {name: (prompts(store, tip), turn_files(store, tip)) for name, tip in branches(store).items()}
    assert in_steps == at_once
    assert rebuilt(store, OTHER) == whole.data


# Our own


def test_a_fork_of_our_own_is_level_from_the_start(keep: Keep, store: Store, index: Index, claude: Path) -> None:
    talk = Talk().turns("one").prompt("two").title("Mid").tool("Bash", {}, "x").answer("Two.").stop_lines()
    keep(talk.turns("three"))
    row = index.turn(SESSION, 2)
    assert row is not None
    plan = fork.ForkPlan(OTHER, "other way", 1772380000.0, claude_homes(claude.parents[1]))
    made = fork.fork_session(store, store.state(branches(store)[SESSION]), ForkPoint(SESSION, 2, row.commit), plan)
    assert made.transcript == claude / f"{OTHER}.jsonl"
    before = branches(store)
    assert not keep(made.transcript).changed
    assert branches(store) == before

    with made.transcript.open("ab") as file:
        more = Talk(OTHER)
        more.leaf = talk.file.ends[2]
        more.file.counts["a"] = 10
        file.write(more.turns("three elsewhere").data)
    keep(made.transcript)
    assert log(store, OTHER)[2:] == ["turn 2: two", f"fork: other way from {SESSION}@2", "turn 3: three elsewhere"]
    assert prompts(store, branches(store)[OTHER]) == [*talk.prompts[:2], more.prompts[0]]
    keep(made.transcript, final=True)
    assert rebuilt(store, OTHER) == made.transcript.read_bytes()


# The parent comes last


def test_a_parent_that_comes_after_its_fork(keep: Keep, store: Store, git: Git) -> None:
    talk = Talk().turns("one", "two")
    copy = talk.fork_session().turns("three")
    keep(copy, final=True)
    keep(copy.fork_session(THIRD).turns("four"), final=True)
    alone = branches(store)[OTHER]
    keep(talk, final=True)
    assert log(store, SESSION) == ["start: /home/ada/shop", "turn 1: one", "turn 2: two", "end: 2 turns"]
    assert log(store, OTHER)[-2:] == ["end: 3 turns", f"edit: forked from {SESSION} at turn 2"]
    origin, head = state(store, OTHER)["origin"], store.repo.first_parents(branches(store)[SESSION])
    assert (origin["session"], origin["turn"]) == (SESSION, 2)
    assert state(store, THIRD)["origin"]["session"] == OTHER
    assert origin["commit"] == next(c.id for c in head if "\nTurn: 2\n" in c.message)
    git("merge-base", "--is-ancestor", alone, OTHER)
