"""Pull and push, case by case: what becomes of the branches on both sides."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clones import Clone, bare, described, opened, restored, turn_keys
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from machines import on_another
from plain import run_git
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import edit, restore
from sessgit.errors import ConflictError
from sessgit.model.conversation.session import Origin, Session
from sessgit.record import tip_delivery
from sessgit.store import operations, remotes
from sessgit.store.context import Context
from sessgit.store.store import Store
from sessgit.sync.session_refs import SkippedItem

Machines = Callable[..., list[Clone]]

HEAD = f"refs/heads/{SESSION}"
ARCHIVED = f"refs/archive/{SESSION}"
STONE = f"refs/deleted/{SESSION}"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """So many machines that have what the talk says, by way of the remote."""
    clock, made = itertools.count(), list[Clone]()
    remote = bare(tmp_path / "remote")

    def begin(count: int, talk: Talk | None = None) -> list[Clone]:
        for number in range(count):
            made.append(Clone(tmp_path / f"clone-{number}", remote, number, clock))
            if talk is not None and not number:
                made[0].record(talk)
                made[0].push()
            elif talk is not None:
                made[number].pull()
        return made

    yield begin
    for clone in made:
        clone.check()
        clone.close()
    assert run_git(remote, "fsck", "--strict", "--no-dangling") == ""


# New, forward, diverged


def test_what_one_machine_sends_another_gets(machines: Machines) -> None:
    one, two = machines(2)
    talk = Talk().turns("one", "two", "three").rewind(1).turns("apart")
    one.record(talk, final=True)
    assert described(one.push().changes) == [("new", 2, ""), ("rewound", 2, "r-a0000002")]
    assert one.there() == one.refs()
    pulled = two.pull()
    assert described(pulled.changes) == [("new", 2, ""), ("rewound", 2, "r-a0000002")]
    assert two.refs() == one.refs() == {HEAD: one.tip(), f"{HEAD}.r-a0000002": one.tip(f"{SESSION}.r-a0000002")}
    assert (pulled.remote, pulled.skipped, pulled.operation and pulled.operation.summary) == (
        "origin", (), "1 conversation from origin",
    )  # fmt: skip
    assert restore.rebuild_file(two.store, SESSION).data == talk.data
    assert (two.pull().operation, described(two.push().changes)) == (None, [])


def test_what_goes_on_goes_forward(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    one.record(talk.turns("two", "three"))
    assert described(one.push().changes) == [("forward", 2, "")]
    assert described(two.pull().changes) == [("forward", 2, "")]
    assert two.refs() == one.refs() == one.there()


def test_a_pull_brings_only_what_is_asked_for(machines: Machines) -> None:
    one, two = machines(2)
    one.record(Talk().turns("one"))
    one.record(Talk(OTHER).turns("two"))
    assert described(one.push(OTHER).changes) == [("new", 1, "")]
    one.push()
    two.pull(OTHER)
    assert two.sessions() == [OTHER]


def test_two_machines_that_go_on_keep_both_sides(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two, three = machines(3, talk)
    theirs = on_another(talk)
    one.record(talk.turns("two"))
    two.record(theirs.turns("another", "and on"))
    ours_tip, theirs_tip = one.tip(), two.tip()
    one.push()
    assert described(two.push().changes) == [("diverged", 2, "m-a0005002")]
    expected = {HEAD: ours_tip, f"{HEAD}.m-a0005002": theirs_tip}
    assert one.there() == expected
    assert described(one.pull().changes) == [("diverged", 2, "m-a0005002")]
    assert one.refs() == expected
    assert described(two.pull().changes) == [("diverged", 1, "m-a0000002")]
    assert two.refs() == {HEAD: theirs_tip, f"{HEAD}.m-a0000002": ours_tip}
    three.pull()
    assert three.refs() == expected
    assert [described(one.push().changes), described(two.push().changes), described(three.push().changes)] == [
        [],
        [],
        [],
    ]
    # Each goes on with its own, wherever it is there.
    two.record(theirs.turns("further"))
    one.record(talk.turns("three"))
    assert described(two.push().changes) == [("forward", 1, "m-a0005002")]
    assert described(one.push().changes) == [("forward", 1, "")]
    one.pull(), two.pull()
    assert one.refs() == one.there() == {HEAD: one.tip(), f"{HEAD}.m-a0005002": two.tip()}
    assert two.refs() == {HEAD: two.tip(), f"{HEAD}.m-a0000002": one.tip()}


def test_what_was_brought_together_is_one_way_again_everywhere(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two, three = machines(3, talk)
    theirs = on_another(talk)
    one.record(talk.turns("two"))
    two.record(theirs.turns("another"))
    two.push(), one.pull()
    one.merge(f"{SESSION}.m-a0005002")
    assert described(one.push().changes) == [("merged", 2, "m-a0005002")]
    before = two.tip()
    assert one.there() == one.refs() == {HEAD: one.tip(), f"{HEAD}.m-a0005002": before}
    # Here the client's file has the turns of the other side, as if a rewind had left them.
    assert described(two.pull().changes) == [("merged", 2, "r-a0005002")]
    assert two.refs() == {HEAD: one.tip(), f"{HEAD}.r-a0005002": before}
    three.pull()
    assert three.refs() == one.refs()
    # Reading the file once more changes nothing, and what it lacks can be appended.
    two.record(theirs)
    assert two.refs() == {HEAD: one.tip(), f"{HEAD}.r-a0005002": before}
    path = two.place / f"{SESSION}.jsonl"
    assert restore.append_missing_turns(two.store, SESSION, claude_homes(two.config), path) == 2
    two.record_file(final=True)
    assert two.keys() == one.keys()
    for clone in (two, one, three, two):
        clone.pull(), clone.push()
    assert two.refs() == {HEAD: two.tip(), f"{HEAD}.r-a0005002": before}
    assert one.refs() == three.refs() == {HEAD: two.tip(), f"{HEAD}.m-a0005002": before}


def test_who_goes_on_with_the_other_side_keeps_both(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    theirs = on_another(talk)
    one.record(talk.turns("two"))
    two.record(theirs.turns("another"))
    two.push(), one.pull()
    one.merge(f"{SESSION}.m-a0005002")
    one.push(), two.pull()
    two.record(theirs.turns("further"))
    assert [key[:8] for key in turn_keys(two.store, two.tip())] == ["a0000001", "a0005002", "a0005003"]
    assert two.refs() == {HEAD: two.tip(), f"{HEAD}.m-a0000002": one.tip()}
    assert described(two.push().changes) == [("forward", 1, "m-a0005002")]
    assert described(one.pull().changes) == [("forward", 1, "m-a0005002")]
    for clone in (one, two):
        assert (described(clone.pull().changes), described(clone.push().changes)) == ([], [])


def test_a_third_way_gets_a_branch_of_its_own(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two, three = machines(3, talk)
    second = on_another(talk)
    third = on_another(second)
    one.record(talk.turns("two"))
    two.record(second.turns("another"))
    three.record(third.turns("a third"))
    for clone in (one, two, three):
        clone.push()
    expected = {HEAD: one.tip(), f"{HEAD}.m-a0005002": two.tip(), f"{HEAD}.m-a0010002": three.tip()}
    assert one.there() == expected
    one.pull()
    assert one.refs() == expected
    three.pull()
    assert three.refs() == {HEAD: three.tip(), f"{HEAD}.m-a0005002": two.tip(), f"{HEAD}.m-a0000002": one.tip()}


def test_a_side_whose_name_is_taken_is_named_after_its_next_turn(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    theirs = on_another(talk)
    two.record(theirs.turns("another", "and on"))
    one.record(talk.turns("two"))
    taken = f"{HEAD}.m-a0005002"
    run_git(one.store.path, "update-ref", taken, one.store.repo.commit(one.tip()).parents[0])
    one.index.sync()
    two.push()
    # What is there goes on from the one that is taken, so it goes forward there.
    assert described(one.pull().changes) == [("forward", 2, "m-a0005002")]
    assert one.refs()[taken] == two.tip()


# Joined


def test_names_of_both_sides_are_joined_alike_everywhere(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.edit(name="lexer", add=("parser", "old"))
    two.edit(description="About the lexer.", add=("trie",), stage="shaping")
    one.push()
    assert described(two.push().changes) == [("joined", 0, "")]
    joined = one.there()[HEAD]
    assert (described(one.pull().changes), described(two.pull().changes)) == (
        [("forward", 0, "")],
        [("forward", 0, "")],
    )
    assert one.refs() == two.refs() == {HEAD: joined}
    state = one.store.state(joined)
    assert (state.name, state.description, state.labels, state.stage) == (
        "lexer", "About the lexer.", ("old", "parser", "trie"), "shaping",
    )  # fmt: skip
    assert one.store.message(joined).get("Event") == "edit"
    assert len(one.store.commit(joined).parents) == 2


def test_the_later_of_two_words_holds(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.edit(description="first", add=("both",))
    two.edit(description="second", add=("both",))
    one.edit(remove=("both",), stage="shaping")
    two.push()
    one.pull()
    state = one.store.state(one.tip())
    assert (state.description, state.labels, state.stage) == ("first", ("both",), "shaping")


def test_whoever_joins_two_tips_makes_the_same_commit(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.edit(name="lexer")
    two.edit(description="About the lexer.")
    two.push()
    first = one.tip()
    one.pull()
    # The other machine, the other way round.
    run_git(two.remote, "fetch", "-q", str(one.store.path), f"{first}:refs/heads/{SESSION}", "--force")
    two.pull()
    assert one.tip() == two.tip()


def test_turns_and_a_name_are_joined_behind_the_turns(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    two.edit(name="lexer")
    one.record(talk.turns("two"))
    one.push()
    turn = one.tip()
    assert described(two.pull().changes) == [("joined", 1, "")]
    assert two.store.commit(two.tip()).parents[0] == turn
    assert (two.keys(), two.store.state(two.tip()).name) == (one.keys(), "lexer")
    assert described(two.push().changes) == [("forward", 0, "")]
    # The recorder goes on as if nothing had been between.
    assert one.pull().operation is not None
    one.record(talk.turns("three"), final=True)
    assert (len(one.keys()), one.store.state(one.tip()).name) == (3, "lexer")
    assert restore.rebuild_file(one.store, SESSION).data == talk.data


def test_the_end_of_the_file_is_not_lost_behind_a_name(machines: Machines) -> None:
    talk = Talk().turns("one").title("Kept")
    one, two = machines(2, Talk().turns("one"))
    one.record(talk, final=True)
    two.edit(name="lexer")
    one.push()
    two.pull()
    state = two.store.state(two.tip())
    assert (state.name, state.state, state.title) == ("lexer", "ended", "Kept")
    assert two.store.tail(two.tip()) == one.store.tail(one.tip()) != b""
    assert restore.rebuild_file(two.store, SESSION).data == talk.data


def test_one_file_recorded_twice_is_one_conversation(machines: Machines) -> None:
    """The commits differ, since each tells where its own file was; the folders of turns do not."""
    one, two = machines(2)
    talk = Talk().turns("one", "two")
    one.record(talk)
    two.record(copy.deepcopy(talk).turns("three"))
    assert one.tip() != two.tip()
    one.push()
    assert described(two.push().changes) == [("joined", 1, "")]
    one.pull(), two.pull()
    assert one.refs() == two.refs() == one.there()
    assert list(one.refs()) == [HEAD]
    assert one.keys() == [*talk.prompts, "a0000003-0000-4000-8000-000000000001"]


def test_a_turn_so_far_is_no_other_turn(machines: Machines) -> None:
    one, two = machines(2)
    talk = Talk().turns("one").prompt("two").tool("Bash")
    one.record(talk)
    two.record(copy.deepcopy(talk).answer("Done.").stop_lines())
    one.push(), two.push(), one.pull(), two.pull()
    assert one.refs() == two.refs() == one.there() == {HEAD: two.tip()}
    assert b"Done." in b"".join(one.store.lines(one.tip(), 2).body)


def test_what_changes_beside_an_open_turn_goes_everywhere(machines: Machines) -> None:
    one, two = machines(2)
    talk = Talk().turns("one").prompt("two").tool("Bash", {}, "saved to tool-results/big.txt")
    result = one.place / SESSION / "tool-results" / "big.txt"
    result.parent.mkdir(parents=True)
    for words in ("half", "all of it"):
        result.write_text(words)
        one.record(talk.answer(words))
        one.push(), two.pull()
        assert two.refs() == one.refs()
    assert "all of it" in run_git(two.store.path, "grep", "-h", "all", two.tip(), "--", "turns/*/big.txt")


# Rewinds


def test_a_rewind_takes_the_head_of_the_remote_back_and_no_other(machines: Machines) -> None:
    talk = Talk().turns("one", "two", "three")
    one, two = machines(2, talk)
    old = one.tip()
    one.record(talk.rewind(1).turns("otherwise"))
    assert described(one.push().changes) == [("forward", 1, ""), ("rewound", 2, "r-a0000002")]
    assert one.there() == one.refs() == {HEAD: one.tip(), f"{HEAD}.r-a0000002": old}
    assert described(two.pull().changes) == [("diverged", 1, "m-a0000004")]
    assert two.refs() == {HEAD: old, f"{HEAD}.m-a0000004": one.tip()}
    assert described(two.push().changes) == []
    assert described(one.pull().changes) == []


def test_a_rewind_here_and_turns_there_are_both_kept(machines: Machines) -> None:
    talk = Talk().turns("one", "two")
    one, two = machines(2, talk)
    theirs = on_another(talk).turns("further")
    one.record(talk.rewind(1).turns("otherwise"))
    two.record(theirs)
    two.push()
    assert described(one.push().changes) == [("diverged", 1, "m-a0000003")]
    assert one.there() == {HEAD: two.tip(), f"{HEAD}.m-a0000003": one.tip()}
    assert described(one.pull().changes) == [("diverged", 2, "m-a0000002")]
    rewound = f"{HEAD}.r-a0000002"
    assert one.refs() == {HEAD: one.tip(), rewound: one.refs()[rewound], f"{HEAD}.m-a0000002": two.tip()}
    assert described(one.push().changes) == []


def test_a_remote_that_lets_no_branch_go_back_gets_one_beside_it(machines: Machines) -> None:
    talk = Talk().turns("one", "two", "three")
    (one,) = machines(1, talk)
    run_git(one.remote, "config", "receive.denyNonFastForwards", "true")
    old = one.tip()
    one.record(talk.rewind(1).turns("otherwise"))
    assert described(one.push().changes) == [("diverged", 1, "m-a0000004")]
    assert one.there() == {HEAD: old, f"{HEAD}.m-a0000004": one.tip()}
    assert described(one.push().changes) == []


def test_what_goes_on_where_nothing_was_restored_is_a_way_of_its_own(machines: Machines) -> None:
    """The client went on with its own file, behind which the branch had come from elsewhere."""
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    talk.save(two.place)
    one.record(talk.turns("two"))
    one.push()
    two.pull()
    two.record(on_another(Talk().turns("one")).turns("another"))
    two.push(), one.pull()
    assert {key for name in _branches(one) for key in one.keys(name)} == {*one.keys(), *two.keys()}
    assert len({*one.keys(), *two.keys()}) == 3


def test_a_restored_conversation_goes_on_elsewhere(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    for _ in range(2):
        for here, there in ((two, one), (one, two)):
            here.record(
                restored(here, restore.rebuild_file(here.store, SESSION).data, SESSION, 1 + len(here.keys())).turns(
                    "on"
                )
            )
            assert described(here.push().changes) == [("forward", 1, "")]
            assert described(there.pull().changes) == [("forward", 1, "")]
    assert one.refs() == two.refs() == one.there() == {HEAD: one.tip()}
    assert len(one.keys()) == 5


# Archived


def test_what_is_archived_on_one_machine_is_archived_on_all(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one", "two").rewind(1).turns("apart"))
    one.archive()
    # What is archived is recorded to its end before.
    assert described(one.push().changes) == [("forward", 0, ""), ("archived", 0, "")]
    assert described(two.push().changes) == []
    assert described(two.pull().changes) == [("forward", 0, ""), ("archived", 0, "")]
    side = f"{ARCHIVED}.r-a0000002"
    assert one.refs() == two.refs() == one.there() == {ARCHIVED: one.tip(), side: one.refs()[side]}
    two.unarchive()
    assert described(one.pull().changes) == []
    assert described(two.push().changes) == [("unarchived", 0, "")]
    assert described(one.pull().changes) == [("unarchived", 0, "")]
    assert HEAD in one.refs()


def test_what_is_archived_comes_archived(machines: Machines) -> None:
    one, two = machines(2)
    one.record(Talk().turns("one"))
    one.archive()
    one.push(), two.pull()
    assert one.refs() == two.refs() == one.there() == {ARCHIVED: one.tip()}


def test_what_goes_on_elsewhere_is_not_archived(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    one.archive()
    one.push()
    two.record(talk.turns("two"))
    assert described(two.pull().changes) == [("joined", 0, "")]
    assert described(two.push().changes) == [("forward", 1, ""), ("unarchived", 0, "")]
    assert described(one.pull().changes) == [("forward", 1, ""), ("unarchived", 0, "")]
    assert one.refs() == two.refs() == one.there() == {HEAD: two.tip()}


def test_of_what_was_never_agreed_on_the_live_one_counts(machines: Machines) -> None:
    one, two = machines(2)
    talk = Talk().turns("one")
    one.record(talk)
    one.push()
    two.record(talk)
    two.archive()
    two.pull()
    assert list(two.refs()) == [HEAD]


def test_what_is_open_here_is_not_archived(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.archive()
    one.push()
    with opened(two):
        assert two.pull().skipped == (
            SkippedItem(SESSION, "it was archived there, and is open in a client here", "Close it, and pull again."),
        )
    assert list(two.refs()) == [HEAD]
    assert described(two.pull().changes) == [("archived", 0, "")]


def test_a_remote_that_lets_no_branch_go_keeps_it_live(machines: Machines) -> None:
    talk = Talk().turns("one")
    (one,) = machines(1, talk)
    run_git(one.remote, "config", "receive.denyDeletes", "true")
    one.record(talk.turns("two"))
    one.archive()
    pushed = one.push()
    assert (described(pushed.changes), [item.what for item in pushed.skipped]) == ([("forward", 1, "")], [SESSION])
    assert one.there() == {HEAD: one.tip()}


# What is undone


def test_a_pull_is_taken_back_as_a_whole(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    before = two.refs()
    one.record(talk.turns("two"))
    one.record(Talk(OTHER).turns("three"))
    one.tag("here")
    one.push()
    assert two.pull().tags == ("here",)
    assert two.refs() == one.refs()
    two.undo()
    assert two.refs() == before
    two.pull()
    assert two.refs().keys() - one.refs().keys() == set()


def test_a_tag_that_went_with_an_undo_comes_again(machines: Machines) -> None:
    one, two = machines(2)
    one.record(Talk().turns("one"))
    one.tag("works")
    one.push()
    assert two.pull().tags == ("works",)
    two.undo()
    assert two.refs() == {}
    assert two.pull().tags == ("works",)
    assert two.refs() == one.refs()
    # One that a person took away stays away.
    edit.delete_tag(Context(two.index, now=two.now), "works")
    assert two.pull().tags == ()


def test_a_dry_run_moves_nothing(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    one.record(talk.turns("two"))
    before = one.there()
    assert described(one.push(dry_run=True).changes) == [("forward", 1, "")]
    assert one.there() == before
    one.archive()
    one.push()
    before = two.refs()
    assert described(two.pull(dry_run=True).changes) == [("forward", 1, ""), ("archived", 0, "")]
    assert two.refs() == before
    assert described(two.pull().changes) == [("forward", 1, ""), ("archived", 0, "")]


# Others at work, and little work


def test_who_pushes_at_the_same_time_loses_nothing(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    theirs = on_another(talk)
    one.record(talk.turns("two"))
    two.record(theirs.turns("another"))
    held, others = remotes.remote_refs, [two.push]

    def meanwhile(store: Path, link: remotes.Connection) -> dict[str, str]:
        refs_there = held(store, link)
        while others:
            others.pop()()
        return refs_there

    monkeypatch.setattr(remotes, "remote_refs", meanwhile)
    assert described(one.push().changes) == [("diverged", 1, "m-a0000002")]
    assert one.there() == {HEAD: two.tip(), f"{HEAD}.m-a0000002": one.tip()}


def test_a_recorder_at_work_is_not_in_the_way_of_a_pull(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    theirs = on_another(talk)
    one.record(talk.turns("two"))
    one.push()
    perform, others = operations.perform_operation, [lambda: two.record(theirs.turns("another"))]

    def meanwhile(*arguments: Any, **how: Any) -> operations.Operation:
        while others:
            others.pop()()
        return perform(*arguments, **how)

    monkeypatch.setattr(operations, "perform_operation", meanwhile)
    assert described(two.pull().changes) == [("diverged", 1, "m-a0000002")]
    assert two.refs() == {HEAD: two.tip(), f"{HEAD}.m-a0000002": one.tip()}


def test_what_is_the_same_on_both_sides_is_not_opened(machines: Machines) -> None:
    one, two = machines(2)
    for number in range(5):
        one.record(Talk(f"5e551011-0000-4000-8000-00000000001{number}").turns("one"))
    one.push(), two.pull()
    store = two.store = Store(two.store.path)
    assert (two.pull().changes, two.push().changes) == ((), ())
    assert store.commit.cache_info().misses == 0
    one.record(Talk(SESSION).turns("one"))
    one.push(), two.pull()
    assert store.commit.cache_info().misses < 10


# Joins, as a law

_SAID = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["", "a", "b"]),
        "description": st.sampled_from(["", "a", "b"]),
        "stage": st.sampled_from(["", "shaping", "synthesized"]),
        "confidence": st.sampled_from([None, 0.5, 1.0]),
        "labels": st.lists(st.sampled_from("xyz"), unique=True).map(lambda labels: tuple(sorted(labels))),
        "project": st.sampled_from(["/a", "/b"]),
        "origin": st.sampled_from([None, Origin("s", 1, "0" * 40)]),
        "extra": st.sampled_from([{}, {"later": 1}]),
    }
).map(lambda said: Session("s", "s", rules={"redact": 1}, **said))


@given(_SAID, _SAID, _SAID, st.booleans())
def test_swapped_sides_say_the_same(base: Session, ours: Session, theirs: Session, later: bool) -> None:
    said = tip_delivery._joined_state(base, ours, theirs, theirs_is_later=later)
    assert said == tip_delivery._joined_state(base, theirs, ours, theirs_is_later=not later)
    for name in ("name", "description", "stage", "confidence", "project"):
        values = [getattr(one, name) for one in (base, ours, theirs)]
        changed = {value for value in values[1:] if value != values[0]}
        assert getattr(said, name) in (changed or values)
    assert tip_delivery._joined_state(base, base, theirs, theirs_is_later=later) == theirs
    assert tip_delivery._joined_state(base, ours, ours, theirs_is_later=later) == ours


# Redaction


def test_nothing_leaves_unredacted_by_mistake(machines: Machines) -> None:
    (one,) = machines(1)
    one.record(Talk().turns("one"))
    one.record(Talk(OTHER).turns("two"), redact=False)
    with pytest.raises(ConflictError, match="1 conversation would leave this machine without redaction: 5e551011"):
        one.push()
    assert one.there() == {}
    one.push(SESSION)
    assert list(one.there()) == [HEAD]
    assert described(one.push(unredacted=True).changes) == [("new", 1, "")]
    # Who said so once need not say it again of what is there.
    one.edit(OTHER, name="lexer")
    with pytest.raises(ConflictError, match="without redaction"):
        one.push()


def test_what_a_fork_carries_along_is_told_and_looked_at(machines: Machines) -> None:
    (one,) = machines(1)
    talk = Talk().turns("one", "two")
    one.record(talk, redact=False)
    one.record(talk.branch(OTHER))
    with pytest.raises(ConflictError, match="without redaction"):
        one.push(OTHER)
    assert one.push(OTHER, unredacted=True).carried == (SESSION,)
    assert list(one.there()) == [f"refs/heads/{OTHER}"]


def _branches(clone: Clone) -> list[str]:
    return [ref.removeprefix("refs/heads/") for ref in clone.refs() if ref.startswith("refs/heads/")]
