"""What cells are about, how they ended and how long they took: read from the lines of their turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sessgit.errors import SessgitError
from sessgit.history import show
from sessgit.history.cells.graph import Node
from sessgit.model.conversation.content import Call, Change, Piece, Words
from sessgit.model.conversation.turn import Cell
from sessgit.model.progress import Progress, no_progress
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store

_LONGEST_SUMMARY = 500


@dataclass(frozen=True, slots=True)
class CellDetail:
    """What a list says of a cell beside its kind.

    `about` is the one argument of a call that tells most, or the first words of a message; `calls` are the tools that
    a message called, by name. `time` is RFC 3339 or empty, `seconds` is None where it is not known.
    """

    about: str = ""
    file: str = ""
    calls: Mapping[str, int] = field(default_factory=dict)
    time: str = ""
    seconds: float | None = None
    exit_code: int | None = None
    changes: tuple[Change, ...] = ()
    prompt: str = ""
    """What the turn was asked for; one text for all of its cells."""


NO_DETAIL = CellDetail()


def cell_details(
    store: Store, branch: Branch, rows: Iterable[Row], nodes: Sequence[Node], progress: Progress = no_progress
) -> dict[str, CellDetail]:
    """The details of cells by their addresses, each turn read once. Of what the turn's lines do not hold, or where they
    are damaged, nothing is known, and it is left out."""
    by_turn: dict[int, list[Node]] = {}
    for node in nodes:
        by_turn.setdefault(node.turn, []).append(node)
    wanted = [row for row in rows if row.turn in by_turn]
    found: dict[str, CellDetail] = {}
    for done, row in enumerate(wanted):
        progress(done, len(wanted))
        try:
            told, pieces = show.read_pieces(store, branch, row)
        except SessgitError:
            continue
        known = _turn_details(told.cells, pieces, told.prompt)
        for node in by_turn[row.turn]:
            if node.cell.id in known:
                found[node.address] = known[node.cell.id]
    return found


def turn_rows(index: Index, branch: Branch, nodes: Iterable[Node]) -> list[Row]:
    """The turns that cells are in: a person sees cells of a few, of a conversation that may have thousands."""
    found = (index.turn(branch.name, number) for number in sorted({node.turn for node in nodes}))
    return [row for row in found if row is not None]


def _turn_details(cells: Sequence[Cell], pieces: Sequence[Piece], prompt: str) -> dict[str, CellDetail]:
    calls: dict[str, Counter[str]] = {}
    for cell in cells:
        if cell.type == "tool":
            for message in cell.depends:
                calls.setdefault(message, Counter())[cell.operation] += 1
    said: dict[int, Words] = {}
    out: dict[str, CellDetail] = {}
    for piece in pieces:
        if isinstance(piece, Call):
            out[piece.cell.id] = _call_detail(piece, prompt)
        elif piece.ordinal and (piece.ordinal not in said or said[piece.ordinal].thinking > piece.thinking):
            said[piece.ordinal] = piece
    for ordinal, cell in enumerate(cells, start=1):
        if cell.id not in out:
            words = said.get(ordinal)
            about = " ".join(words.text[:_LONGEST_SUMMARY].split()) if words else ""
            time = words.time if words else ""
            out[cell.id] = CellDetail(about, calls=calls.get(cell.id, {}), time=time, prompt=prompt)
    return out


def _call_detail(call: Call, prompt: str) -> CellDetail:
    return CellDetail(
        call.about[:_LONGEST_SUMMARY],
        call.file,
        time=call.time,
        seconds=show.seconds_between(call.time, call.ended),
        exit_code=call.exit_code,
        changes=call.changes,
        prompt=prompt,
    )
