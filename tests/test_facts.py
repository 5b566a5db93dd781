"""The client's title, and our own name for a session where the client has it as a title."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from plain import Keep
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude.lines import parsed
from sessgit.agents.cutter import Facts
from sessgit.branch.edit import EditChanges, edit_session
from sessgit.model.conversation.session import Session
from sessgit.store import recorder_state
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

NOW = 1772370000.0


def title(talk: Talk, *names: str, before: str = "") -> str:
    """The session's title after the lines, where it has had these names."""
    facts = Facts(names=list(names))
    for line in parsed(talk.lines):
        facts.note(line)
    return facts.apply(Session(SESSION, SESSION, title=before)).title


def test_what_a_person_chose_wins_over_what_the_client_made_up() -> None:
    assert title(Talk().title("S", "summary")) == "S"
    assert title(Talk().title("A", "ai-title").title("S", "summary")) == "A"
    assert title(Talk().title("C").title("A", "ai-title")) == "C"
    assert title(Talk().title("C").title("D")) == "D"


@pytest.mark.parametrize("kind", ["custom-title", "ai-title", "summary"])
def test_our_name_does_not_take_the_place_of_a_title(kind: str) -> None:
    assert title(Talk().title("theirs", kind).title("ours"), "ours") == "theirs"
    assert title(Talk().title("ours").title("theirs", kind), "ours") == "theirs"
    assert title(Talk().title("ours"), "ours", before="theirs") == "theirs"


def test_our_name_is_the_title_where_there_is_no_other() -> None:
    assert title(Talk().title("ours"), "ours") == "ours"
    assert title(Talk().title("older").title("ours"), "older", "ours") == "ours"


def test_a_long_name_is_known_again() -> None:
    long = "x" * 100
    assert title(Talk().title("theirs", "summary").title(f"  {long}\n"), long) == "theirs"


def test_a_title_is_chosen_from_lines_of_that_type_alone() -> None:
    assert title(Talk().title("ours", "ai-title"), "ours") == "ours"
    assert title(Talk().title("theirs", "summary").title("ours", "ai-title"), "ours") == "ours"


def test_facts_go_through_a_cursor_and_come_out_of_an_older_one() -> None:
    facts = Facts(title="T", title_rank=2, names=["a"])
    assert Facts(**json.loads(json.dumps(asdict(facts)))) == facts
    older = asdict(facts)
    del older["names"]
    assert Facts(**older) == Facts(title="T", title_rank=2)


def state(store: Store) -> Session:
    tip = store.repo.ref(f"refs/heads/{SESSION}")
    assert tip is not None
    return store.state(tip)


def test_a_restored_title_is_recorded_as_what_it_is(keep: Keep, store: Store, index: Index) -> None:
    """Whatever names there were since, and whether or not the file is read from its beginning."""
    talk = Talk().turns("one").title("theirs", "ai-title")
    keep(talk)
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours"))
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours now"))
    keep(talk.title("ours").turns("two"))
    assert (state(store).title, state(store).name) == ("theirs", "ours now")
    recorder_state.delete_cursor(store.paths, SESSION)
    keep(talk.turns("three"))
    assert (state(store).title, state(store).name) == ("theirs", "ours now")
    keep(talk.title("theirs again").turns("four"))
    assert (state(store).title, state(store).name) == ("theirs again", "ours now")


def test_a_name_that_a_rewind_left_behind_is_still_ours(keep: Keep, store: Store, index: Index) -> None:
    talk = Talk().turns("one", "two").title("theirs", "ai-title")
    keep(talk)
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours"))
    keep(talk.title("ours").rewind(1).turns("two again"))
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name=""))
    recorder_state.delete_cursor(store.paths, SESSION)
    keep(talk.turns("three"))
    assert (state(store).title, state(store).name) == ("theirs", "")


def test_what_a_person_held_is_not_headless_whatever_a_program_added(keep: Keep, store: Store, index: Index) -> None:
    talk = Talk().prompt("one", entrypoint="cli").answer("a").prompt("two", entrypoint="sdk-cli").answer("b")
    keep(talk)
    assert not index.branch(SESSION).state.headless  # type: ignore[union-attr]
    keep(Talk(OTHER).prompt("one", entrypoint="sdk-cli").answer("a"))
    assert index.branch(OTHER).state.headless  # type: ignore[union-attr]
