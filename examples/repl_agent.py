"""An agent with a REPL, whose steps are cells that depend on each other. Run it: python examples/repl_agent.py

It answers a question about a text that is too long to read at once: it peeks, cuts the text into parts, asks about each
of them in a recursion one level deeper, and puts the answers together. Each step is a cell, so that afterwards anyone
can see what an answer stands on, and run single steps again. A model would decide what to do; here a script does.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from sessgit import Cell, Outcome, Session, Store, Task

TEXT = """\
12 March. The kiln was too hot again; three bowls cracked. Loss: 90 euros.
13 March. Sold eleven cups at the market. Income: 132 euros.
14 March. A quiet day. Read about glazes.
15 March. The wheel's belt tore. A new one. Loss: 40 euros.
16 March. A hotel ordered forty plates. Income: 600 euros.
"""


def peek(text: str, lines: int) -> list[str]:
    return text.splitlines()[:lines]


def split(text: str, parts: int) -> list[str]:
    lines = text.splitlines()
    size = -(-len(lines) // parts)
    return ["\n".join(lines[n : n + size]) for n in range(0, len(lines), size)]


def ask(part: str) -> int:
    """What a smaller model would be asked: the balance of a few days."""
    signs = {"Income": 1, "Loss": -1}
    return sum(signs[kind] * int(amount) for kind, amount in re.findall(r"(Income|Loss): (\d+)", part))


def add(balances: list[int]) -> int:
    return sum(balances)


def answer(session: Session, question: str) -> Cell:
    """Answers in one turn; returns the cell that the answer came out of."""
    with session.turn(question) as turn:
        looked = session.begin_cell(type="repl", operation="peek", args={"text": TEXT, "lines": 2})
        session.complete_cell(looked, peek(TEXT, 2))
        turn.say("It is a diary with incomes and losses. I go through it in parts.")

        cut = session.begin_cell(
            type="repl", operation="split", args={"text": TEXT, "parts": 2}, dependencies=[looked]
        )  # fmt: skip
        parts = split(TEXT, 2)
        session.complete_cell(cut, parts)

        # Several at once, as calls of a model that run side by side: one commit would hold them all.
        asked = session.begin_cells(
            [Task("llm_call", "ask", {"part": part}, "depth 1", (cut.id,)) for part in parts]
        )  # fmt: skip
        balances = [ask(part) for part in parts]
        took = {"input": 40, "output": 3}
        session.complete_cells(
            {
                cell: Outcome(balance, model="small-model", tokens=took)
                for cell, balance in zip(asked, balances, strict=True)
            }
        )

        summed = session.begin_cell(type="map_reduce", operation="add", args={"balances": balances}, dependencies=asked)
        session.complete_cell(summed, add(balances))
        turn.answer(f"The balance of the five days is {add(balances)} euros.")
    return summed


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", config=Path(folder) / "claude")
        session = store.create_session(folder, name="pottery")
        result = answer(session, "How did the pottery do in these five days?")

        cells = {cell.id: cell for cell in session.cells()}
        print(session.turns()[0].answer)
        print("\nIt stands on:")
        for name in session.dependency_chain(result):
            cell = cells[name]
            needs = ", ".join(str(cells[other].ordinal) for other in cell.dependencies)
            print(f"  {cell.ordinal}  {cell.type:10}  {cell.operation:6}  {f'after {needs}' if needs else ''}".rstrip())
        used = session.state.tokens["small-model"]
        print(f"\nThe small model read {used.input} tokens and wrote {used.output}.")

        print("\nThe same steps, run again:")
        for again in session.replay({"peek": peek, "split": split, "ask": ask, "add": add}):
            print(f"  {again.cell.ordinal}  {again.cell.operation:6}  {again.outcome}")

        print("\nA step that waits for itself is refused:")
        ids = [f"cell_{letter * 8}" for letter in "ab"]
        try:
            session.begin_cells([Task("repl", "x", id=ids[0], dependencies=(ids[1],)),
                                 Task("repl", "y", id=ids[1], dependencies=(ids[0],))])  # fmt: skip
        except Exception as error:
            print(f"  {error}")
        store.close()


if __name__ == "__main__":
    main()
