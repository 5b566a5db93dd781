"""A notebook whose runs are turns, and that is forked to try another way. Run it: python examples/notebook.py

Each run of the notebook is a turn, and each of its boxes a cell that depends on those whose names it uses. The first
run stops in the middle, the second one is whole. Then the notebook is forked at the first run, a box is changed, and
what came of it is brought back.
"""

from __future__ import annotations

import ast
import tempfile
from pathlib import Path
from typing import Any

from sessgit import Session, Store

BOXES = {
    "numbers": "numbers = [3, 1, 4, 1, 5, 9, 2, 6]",
    "mean": "mean = sum(numbers) / len(numbers)",
    "far": "far = [n for n in numbers if abs(n - mean) > limit]",
}


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a box sets, and those that it uses."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    return (
        {node.id for node in found if isinstance(node.ctx, ast.Store)},
        {node.id for node in found if isinstance(node.ctx, ast.Load)},
    )


def run(session: Session, boxes: dict[str, str], **given: Any) -> dict[str, Any]:
    """Runs all boxes in their order, as one turn; what fails stops it."""
    space: dict[str, Any] = dict(given)
    made_by: dict[str, str] = {}
    with session.turn(f"run with {given}" if given else "run") as turn:
        for name, source in boxes.items():
            sets, uses = names(source)
            needs = {made_by[other] for other in uses if other in made_by}
            with session.cell(name, source="notebook", args={"source": source}, dependencies=sorted(needs)) as cell:
                exec(source, space)
                cell.result = {one: space[one] for one in sets if one in space and one != "n"}
            made_by |= dict.fromkeys(sets, cell.id)
        turn.answer(", ".join(f"{one} = {space[one]}" for one in boxes))
    return space


def show(session: Session) -> None:
    print(f"\n{session.name}")
    for turn in session:
        marks = "  ".join(f"{cell.operation} {'✓' if cell.state == 'done' else '✗'}" for cell in turn.cells)
        print(f"  {turn.number}  {turn.prompt:22}  {marks}")
        print(f"     {turn.answer}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", config=Path(folder) / "claude")
        notebook = store.create_session(folder, name="numbers")
        try:
            run(notebook, BOXES)
        except NameError as error:
            print(f"The first run stopped: {error}")
        run(notebook, BOXES, limit=3)

        # Another way, from the first run on; the notebook itself stays as it is.
        fork = notebook.fork(at=1, name="by the median")
        other = {**BOXES, "mean": "mean = sorted(numbers)[len(numbers) // 2]"}
        run(fork, other, limit=3)
        show(notebook)
        show(fork)

        diff = store.diff(notebook, fork)
        here, there = len(diff["only_a"]), len(diff["only_b"])
        print(f"\nThey share {diff['shared_turns']} run; since then there is {here} here and {there} there.")
        merged = store.merge(fork, into=notebook, mode="graft")
        print(f"Brought back as run {merged.turns[0]}: {notebook.turns()[-1].answer}")

        print("\nFrom any of them it goes on in the client:")
        print(f"  {fork.resume_command.replace(folder, 'FOLDER')}")
        store.close()


if __name__ == "__main__":
    main()
