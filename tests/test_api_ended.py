"""What a block of a program ends with is looked at in time: no cell and no turn stays open behind it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sessgit import Store
from sessgit.errors import UsageError


@pytest.fixture
def store(seal: Path) -> Store:
    (seal / "calc").mkdir()
    return Store.open()


def test_a_cell_ends_with_its_block_whatever_it_came_to(store: Store, seal: Path) -> None:
    session = store.create_session(seal / "calc")
    with pytest.raises(UsageError, match="cannot be written as JSON"), session.cell("sum") as cell:
        cell.result = math.nan
    assert session.pending() == []
    (failed,) = session.cells()
    assert (failed.operation, failed.state) == ("sum", "failed")
    error = session.cell_document(failed)["output"]["error"]
    assert error.startswith("UsageError: result: cannot be written as JSON")
    with session.turn("go on") as turn:
        turn.answer("Done.")
    assert (turn.number, session.turns()[1].answer) == (2, "Done.")


@pytest.mark.parametrize(
    ("text", "more"), [(5, {}), ("x", {"model": "two\nlines"}), ("x", {"tokens": {"input": -1}}), (None, {})]
)
def test_an_answer_that_is_none_is_refused_where_it_is_given(
    store: Store, seal: Path, text: object, more: dict[str, object]
) -> None:
    session = store.create_session(seal / "calc")
    with session.turn("one") as turn:
        turn.answer("The first.")
        with pytest.raises(UsageError):
            turn.answer(text, **more)  # type: ignore[arg-type]
    assert (turn.number, [one.answer for one in session.turns()]) == (1, ["The first."])
    with pytest.raises(UsageError), session.turn("two") as turn:
        turn.answer(text, **more)  # type: ignore[arg-type]
    assert turn.number == 2
    assert session.turns()[1].answer.startswith("Ended by UsageError: ")
