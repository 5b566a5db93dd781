"""What was read before comes again: twice in one file, in a turn that grew, or since the cursor is lost."""

from __future__ import annotations

from pictures import branches, log
from plain import Keep
from transcripts import OTHER, SESSION, Talk

from sessgit.store import recorder_state
from sessgit.store.store import Store, lines_hash


def test_a_prompt_that_comes_again_in_a_later_pass_opens_no_turn(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two", "three")
    keep(talk)
    talk.raw(talk.lines[0]).turns("four")
    keep(talk)
    assert list(branches(store)) == [SESSION]
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "turn 3: three", "turn 3: three", "turn 4: four"]


def test_a_turn_that_grew_says_of_all_its_lines_where_they_stand(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one").prompt("two")
    keep(talk)
    keep(talk.answer("Two."))
    message = store.message(branches(store)[SESSION])
    (extent,) = message.extents
    first = len(b"".join(line + b"\n" for line in talk.lines[:3]))
    assert (extent.offset, extent.end, extent.lines) == (first, len(talk.data), len(talk.lines) - 3)
    assert message.get("Lines-SHA256") == lines_hash(talk.lines[3:])


def test_a_session_whose_cursor_is_lost_ends_all_the_same(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    recorder_state.delete_cursor(store.paths, SESSION)
    keep(talk, final=True)
    assert list(branches(store)) == [SESSION]
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "end: 2 turns"]


def test_a_fork_that_nobody_went_on_with_is_known_again_without_its_cursor(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    copy = talk.fork_session()
    keep(copy)
    recorder_state.delete_cursor(store.paths, OTHER)
    before = branches(store)
    assert not keep(copy).changed
    keep(copy.turns("three"))
    assert log(store, OTHER)[-2:] == [f"fork: {SESSION} at turn 2", "turn 3: three"]
    assert branches(store)[SESSION] == before[SESSION]
    assert store.message(branches(store)[OTHER]).file == 1
