"""A session, a turn or a cell, with all that the store knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sessgit import agents
from sessgit.errors import NotFoundError
from sessgit.history import log as logs
from sessgit.history import lost_sessions, reassemble, resolve
from sessgit.history.log import ForkEntry, SideBranch
from sessgit.history.views import TurnView, body_of, turn_gists
from sessgit.model import canonical, humanize
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Tokens, Turn, add_by_model
from sessgit.model.line_list import file_lines
from sessgit.model.progress import Progress, no_progress
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.sqlite import ancestry
from sessgit.store.sqlite.ancestry import ForkPlace
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class Subagent:
    """So many lines of a subagent's file were recorded with a turn."""

    name: str
    lines: int


@dataclass(frozen=True, slots=True)
class SessionFamily:
    """Where a session comes from and what left it: forks and side branches, each in their order.

    `parent` is None for a session that left no other, and for one that left a session which is not in the store; `at`
    is where it left it, as both stand now.
    """

    parent: Branch | None
    at: ForkPlace | None
    forks: list[ForkEntry]
    left: list[SideBranch]


@dataclass(frozen=True, slots=True)
class SessionCard:
    """What there is to say of a session: `last` is its last turn, `only_here` says that the client's file is gone.

    `changed` and `read` are the files that tools named, the last named ones first; one that was changed is not in
    `read`.
    """

    branch: Branch
    family: SessionFamily
    changed: list[str]
    read: list[str]
    last: Turn | None
    only_here: bool
    subagents: Mapping[str, Tokens] = field(default_factory=dict)
    """What its subagents used, by model, as far as the index knows: the state does not count it."""

    @property
    def state(self) -> Session:
        return self.branch.state


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn, its pieces in order, and the subagents that it started or that wrote while it ran.

    `cut` is the address of the cell at which a fork took it over, as `7.3`, or empty.
    """

    branch: Branch
    view: TurnView
    pieces: list[Piece]
    subagents: list[Subagent]
    cut: str = ""

    @property
    def row(self) -> Row:
        return self.view.row

    @property
    def told(self) -> Turn:
        return self.view.told

    @property
    def seconds(self) -> float | None:
        """From the prompt to the last line, or None where times are missing."""
        return seconds_between(self.told.time, self.told.ended)


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A cell of a turn: a `call`, or a message of the model with what it `said` and its `tokens`."""

    turn: ShownTurn
    cell: Cell
    ordinal: int
    call: Call | None
    said: list[Words]
    tokens: Tokens

    @property
    def depends(self) -> list[int]:
        """The ordinals of the cells that had to come first."""
        return [n for n, other in enumerate(self.turn.told.cells, start=1) if other.id in self.cell.depends]

    @property
    def dependents(self) -> list[int]:
        """The ordinals of the cells that needed this one."""
        return [n for n, other in enumerate(self.turn.told.cells, start=1) if self.cell.id in other.depends]

    @property
    def time(self) -> str:
        """When it began, RFC 3339 or empty."""
        return self.call.time if self.call else next((piece.time for piece in self.said), "")

    @property
    def seconds(self) -> float | None:
        """How long the call took, or None where that is not known."""
        return seconds_between(self.call.time, self.call.ended) if self.call else None


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The place before turn 1: the first commit of the history; `at` is where a fork leaves the other as both stand
    now."""

    branch: Branch
    at: ForkPlace | None
    commit: str
    time: float


def seconds_between(began: str, ended: str) -> float | None:
    """The seconds between two times as RFC 3339, or None where one is missing or they run backwards."""
    a, b = canonical.seconds(began), canonical.seconds(ended)
    return b - a if a is not None and b is not None and b >= a else None


def session_card(
    store: Store, index: Index, branch: Branch, config: Path, progress: Progress = no_progress
) -> SessionCard:
    """The card of a session, or of a side branch of one; of its turns only the last one is read, and
    those that nobody has asked the index about yet. `config` is the agent's folder."""
    rows = index.turns(branch.name)
    known = turn_gists(store, index, branch, rows, progress) if rows else []
    changed, seen = dict[str, None](), dict[str, None]()
    for gist in reversed(known):
        changed.update(dict.fromkeys(reversed(gist.files_changed)))
        seen.update(dict.fromkeys(reversed(gist.files_read)))
    last = read_pieces(store, branch, rows[-1])[0] if rows else None
    used: dict[str, Tokens] = {}
    for gist in known:
        used = add_by_model(used, dict(gist.subagents.tokens) if gist.subagents else {})
    return SessionCard(
        branch,
        session_family(index, branch),
        list(changed),
        [name for name in seen if name not in changed],
        last,
        bool(rows)
        and not layout.is_other_version(branch.name)
        and lost_sessions.is_lost(branch.state, config, store.beside),
        used,
    )


def session_family(index: Index, branch: Branch) -> SessionFamily:
    """Where the session comes from, and what left it."""
    found = logs.branch_log(index, branch)
    forks = [fork for turn in sorted(found.forks) for fork in found.forks[turn]]
    left = [other for turn in sorted(found.left) for other in found.left[turn]]
    return SessionFamily(_parent_branch(index, branch), ancestry.fork_place(index, branch), forks, left)


def show_turn(store: Store, index: Index, branch: Branch, number: int) -> ShownTurn:
    """The turn of a branch; raises NotFoundError where it has none of that number."""
    row = resolve.row_of(index, branch, number)
    told, pieces = read_pieces(store, branch, row)
    origin = branch.state.origin
    cut = origin.cell if origin and row.message.get("Event") == "fork" else ""
    return ShownTurn(branch, TurnView(row, told), pieces, turn_subagents(store, branch.tip, number), cut)


def show_cell(store: Store, index: Index, branch: Branch, number: int, name: str) -> ShownCell:
    """The cell of that ordinal or id; raises NotFoundError where the turn has none."""
    if not number:
        raise NotFoundError(
            "there is no cell before the first turn",
            f"`sessgit show {layout.short_name(branch.name)}@1` shows the first turn.",
        )
    shown = show_turn(store, index, branch, number)
    ordinal = _cell_ordinal(branch, shown.row, shown.told.cells, name)
    found = shown.told.cells[ordinal - 1]
    call = next((piece for piece in shown.pieces if isinstance(piece, Call) and piece.ordinal == ordinal), None)
    said = [piece for piece in shown.pieces if isinstance(piece, Words) and piece.ordinal == ordinal]
    body = agents.of(branch.state).lines.parsed(store.lines(branch.tip, number).body)
    return ShownCell(shown, found, ordinal, call, said, agents.of(branch.state).content.tokens(body, found))


def show_start(store: Store, index: Index, branch: Branch) -> SessionStart:
    """The place before turn 1."""
    row = index.turn(branch.name, 1)
    first = (store.commit(row.commits[0]).parents or (row.commits[0],))[0] if row else branch.tip
    return SessionStart(branch, ancestry.fork_place(index, branch), first, store.commit(first).time)


def read_pieces(store: Store, branch: Branch, row: Row) -> tuple[Turn, list[Piece]]:
    """What the lines of a turn say, as a whole and piece by piece."""
    return agents.of(branch.state).content.told(body_of(store, branch.tip, row))


def turn_subagents(store: Store, tip: str, number: int) -> list[Subagent]:
    """The subagents whose lines are in the turn's folder, by name."""
    entry = store.folder(tip, number).get(layout.SUBAGENTS)
    files = store.repo.tree(entry[0]) if entry and entry[1] else {}
    names = sorted(name for name, (_, is_tree) in files.items() if name.endswith(".jsonl") and not is_tree)
    return [
        Subagent(
            name.removeprefix("agent-").removesuffix(".jsonl"), len(file_lines(store.repo.lines(files[name][0], 0)))
        )
        for name in names
    ]


# The lines as they are recorded


def raw_session(store: Store, branch: Branch) -> Iterator[bytes]:
    """The lines of all turns in their order, without their newlines, as the session's own file has them."""
    for number in range(1, branch.state.turns + 1):
        yield from raw_turn(store, branch, number)


def raw_turn(store: Store, branch: Branch, number: int) -> list[bytes]:
    """The lines before the prompt and the body."""
    return reassemble.turn_lines(store, branch.tip, branch.state, number)


def raw_cell(store: Store, shown: ShownCell) -> list[bytes]:
    """The lines of the cell: those of a message, or those of a call and its result."""
    branch, number = shown.turn.branch, shown.turn.row.turn
    lines = raw_turn(store, branch, number)
    body = lines[len(store.lines(branch.tip, number).before) :]
    return [body[line - 1] for line in shown.cell.lines]


# Inside


def _parent_branch(index: Index, branch: Branch) -> Branch | None:
    origin = branch.state.origin
    return (index.branch(origin.session) or index.branch(layout.session_of(origin.session))) if origin else None


def _cell_ordinal(branch: Branch, row: Row, cells: tuple[Cell, ...], name: str) -> int:
    wanted = name.lstrip("0") if name.isdecimal() else name
    ordinal = next((n for n, cell in enumerate(cells, start=1) if wanted in (cell.id, str(n))), 0)
    if not ordinal:
        raise NotFoundError(
            f"turn {row.turn} has no cell {name}; it has {humanize.format_count(len(cells), 'cell')}",
            f"`sessgit show {layout.short_name(branch.name)}@{row.turn}` lists them.",
        )
    return ordinal
