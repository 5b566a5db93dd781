"""A turn that goes on in the agent's file, though in the store another one follows it already."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import Clone, pair
from pictures import branches, log, prompts, rewound, text
from plain import Keep
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.check import verify
from sessgit.store.store import Store

SECOND = "turns/0000/000002/transcript.jsonl"
OTHERS = f"{SESSION}.m-a0000003"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    with pair(tmp_path) as found:
        yield found


def answers(store: Store, branch: str) -> list[str]:
    """Which answers the second turn of a branch has."""
    body = text(store, branches(store)[branch], SECOND)
    return [said for said in ("First half.", "Second half.") if said in body]


def followed_elsewhere(here: Clone, there: Clone, name: str = "") -> Talk:
    """A conversation whose last turn is half done here; another machine has gone on from there, and here has that."""
    talk = Talk().turns("one").prompt("two").answer("First half.")
    here.record(talk)
    here.push()
    there.pull()
    there.record(copy.deepcopy(talk).turns("three there"))
    if name:
        there.edit(name=name)
    there.push()
    here.pull()
    assert log(here.store, SESSION)[1:4] == ["turn 1: one", "turn 2: two", "turn 3: three there"]
    talk.file.counts.update(dict.fromkeys("abcde", 50))
    return talk


def test_a_turn_that_another_machine_has_gone_on_from(machines: tuple[Clone, Clone]) -> None:
    """Its further lines are recorded, and the two have diverged: as they had if the lines had come before the pull."""
    here, there = machines
    talk = followed_elsewhere(here, there, "lexers")
    here.record(talk.answer("Second half."))
    assert {name: answers(here.store, name) for name in branches(here.store)} == {
        SESSION: ["First half.", "Second half."],
        OTHERS: ["First half."],
    }
    assert log(here.store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "turn 2: two"]
    assert here.store.state(here.tip()).name == "lexers"
    here.record(talk.turns("three here"), final=True)
    assert prompts(here.store, here.tip()) == talk.prompts
    assert restore.rebuild_file(here.store, SESSION).data == talk.data
    here.push()
    there.pull()
    assert {name: answers(there.store, name) for name in branches(there.store)} == {
        SESSION: ["First half."],
        f"{SESSION}.m-a0000051": ["First half.", "Second half."],
    }


def test_a_turn_that_went_on_and_got_a_next_one_in_one_pass(machines: tuple[Clone, Clone]) -> None:
    here, there = machines
    talk = followed_elsewhere(here, there)
    here.record(talk.answer("Second half.").turns("three here"))
    assert {name: answers(here.store, name) for name in branches(here.store)} == {
        SESSION: ["First half.", "Second half."],
        OTHERS: ["First half."],
    }
    assert log(here.store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "turn 2: two", "turn 3: three here"]
    assert log(here.store, OTHERS)[1:] == ["turn 1: one", "turn 2: two", "turn 3: three there"]


def test_a_file_that_is_only_behind_stays_so(machines: tuple[Clone, Clone]) -> None:
    here, there = machines
    talk = followed_elsewhere(here, there)
    tip = here.tip()
    here.record(talk)
    here.record(talk.title("waiting"), final=True)
    assert branches(here.store) == {SESSION: tip}


def test_a_file_that_was_cut_into_a_turn_and_went_on_there(keep: Keep, store: Store, claude: Path) -> None:
    """What was recorded behind the place is a rewound branch; what came in its place is recorded."""
    talk = Talk().turns("one").prompt("two").answer("First half.")
    cut = copy.deepcopy(talk)
    keep(talk.turns("three"))
    cut.file.counts.update(dict.fromkeys("abcde", 50))
    keep(cut.answer("Second half."))
    assert {name: answers(store, name) for name in branches(store)} == {
        SESSION: ["First half.", "Second half."],
        rewound(3): ["First half."],
    }
    keep(cut.turns("another three"))
    assert prompts(store, branches(store)[SESSION]) == cut.prompts
    assert verify.verify_session(store, SESSION, deep=True).findings == ()


def test_what_a_file_was_cut_short_of_stays_its_own(keep: Keep, store: Store) -> None:
    """It was read once while it was behind: it led to the third turn before that all the same."""
    talk = Talk().turns("one", "two")
    cut = copy.deepcopy(talk)
    keep(talk.turns("three"))
    keep(cut)
    assert branches(store).keys() == {SESSION}
    cut.file.counts.update(dict.fromkeys("abcde", 50))
    keep(cut.turns("another three"))
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: cut.prompts,
        rewound(3): talk.prompts,
    }


def test_what_was_read_of_another_file_tells_nothing_of_this_one(machines: tuple[Clone, Clone]) -> None:
    """Whether the turns that it goes on without ever stood in it, nobody knows."""
    here, there = machines
    talk = followed_elsewhere(here, there)
    here.place = here.place.with_name("-home-ada-moved")
    here.record(talk.turns("three here"))
    assert set(branches(here.store)) == {SESSION, rewound(3)}
