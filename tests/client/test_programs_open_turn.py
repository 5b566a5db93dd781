"""A program that a tool call of the real client runs adds cells to the conversation that is open in the client."""

from __future__ import annotations

import sys

import pytest
from clients import ENDS
from world import World

from sessgit import Store

pytestmark = [pytest.mark.client, ENDS]

PROGRAM = """
import sys
from sessgit import Store
store = Store.open()
session = store.load_session(sys.argv[1])
with session.cell("peek", args={"lines": 3}) as cell:
    cell.result = {"words": 12}
with session.cell("count", dependencies=[cell.id]) as cell:
    cell.result = "secret result of the program"
session.record_reasoning("Three lines are enough.", evidence=[cell.id])
print("worked")
"""


def test_cells_inside_the_turn_of_a_client(world: World) -> None:
    program = world.home / "program.py"
    program.write_text(PROGRAM)
    with Store.open(config=world.home / ".claude") as store:
        world.run("bash: echo first")
        session = store.load_session(id := world.transcripts()[0].stem)
        world.run(f"bash: {sys.executable} {program} {id} ;; bash: echo after", resume=id)
        session = store.load_session(id)
        assert [turn.prompt.split(":")[0] for turn in session] == ["bash", "bash"]
        cells = [cell.operation for cell in session.cells(turn=2) if cell.type != "llm_call"]
        assert cells == ["Bash", "peek", "count", "Bash"]
        first, second = session.cells(turn=2, type="repl")
        assert (first.state, second.state, second.dependencies) == ("done", "done", (first.id,))
        assert [(number, reason.text) for number, reason in session.reasoning()] == [(2, "Three lines are enough.")]
        assert b"peek" not in world.transcript(id).read_bytes().replace(b"program.py", b"")
        world.model.clear()
        world.run("go on", resume=id)
        sent = str([request.body["messages"] for request in world.model.main(id)])
        assert "worked" in sent
        assert not any(word in sent for word in ("peek", "secret result of the program", "Three lines"))
        assert [turn.number for turn in store.load_session(id)] == [1, 2, 3]
        assert [cell.operation for cell in session.cells(turn=2, type="repl")] == ["peek", "count"]
