"""What is read while somebody else records."""

from __future__ import annotations

import threading

from plain import Keep
from programs import Place
from transcripts import SESSION, Talk

from sessgit.history import turn_log
from sessgit.store import store as stores
from sessgit.store.index import Index


def test_turns_that_came_after_the_tip_was_asked_for(store: stores.Store, index: Index, keep: Keep) -> None:
    talk = Talk().turns("one")
    keep(talk)
    index.sync()
    before = index.branch(SESSION)
    assert before is not None
    keep(talk.turns("two"))
    index.sync()
    rows = index.turns(SESSION)
    read = [turn_log.read_turn(store, before.tip, row) for row in rows]
    assert [(turn.prompt, turn.answer) for turn in read] == [("one", "About one."), ("two", "About two.")]


def test_a_thread_reads_what_another_one_writes(place: Place) -> None:
    session, count = place.begin(), 40
    session.record_turn("turn 1", "1")

    def write() -> None:
        for number in range(2, count + 1):
            with session.turn(f"turn {number}") as turn, session.cell("count") as cell:
                cell.result = number
                turn.answer(f"{number}")

    writer = threading.Thread(target=write)
    writer.start()
    seen = list[int]()
    while writer.is_alive():
        turns = session.turns()
        assert [(turn.number, turn.prompt) for turn in turns] == [
            (number, f"turn {number}") for number in range(1, len(turns) + 1)
        ]
        told = session.state_document()["cells"]["count"]
        cells = session.cells(operation="count")
        assert [cell.turn for cell in cells] == list(range(2, len(cells) + 2))
        assert place.store.diff(session, f"{session.id}@1")["shared_turns"] == 1
        assert told >= len(turns) - 2  # a cell in each but the first, and the last may be open
        seen.append(len(turns))
    writer.join()
    assert seen == sorted(seen)
    assert len(session.turns()) == count
