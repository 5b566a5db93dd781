"""`sessgit tree`: families of conversations as a drawing."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from sessgit import agents
from sessgit.cli import frame, operands, text
from sessgit.cli.commands import ls
from sessgit.cli.frame import AT_OP, EVERYWHERE, PROJECT, Answer, argument, at_least_0, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.history import tree
from sessgit.history.ls import count_hidden
from sessgit.history.tree import FoldedForks, Forest, TreeFamily, TreeFilter, TreeNode
from sessgit.model.frozen import frozen

_DRAWN = 40
"""The most families that are drawn on a terminal without a limit."""


@frame.command("tree", reads=True, excludes={"ADDRESS": "--all --project"})
def run(
    cli: Invocation,
    address: str = argument("ADDRESS", "Draw this family (default: those of this project)."),
    everything: bool = EVERYWHERE,
    project: Path | None = PROJECT,
    limit: int | None = option("-n, --limit N", "Draw at most N families.", callback=at_least_0),
    at_op: str = AT_OP,
) -> Answer:
    """Draw conversations, their forks and merges.

    Also draws the turns left behind by rewinds. The id is followed by the fork point: @4 is after turn 4, @7.3 at the
    third cell of turn 7. “2 of 6 turns” are its own turns and all turns, the cost is that of its own turns, and the
    quoted text is its first own prompt. If there are many, small forks without a name are only counted; --json lists
    all.

    With --at-op, draws the state after that operation, and marks nothing as live.
    """
    asof = operands.as_of(cli, at_op)
    if not cli.json and asof is None:
        cli.check_recorded()
    session = operands.target_as_of(cli, asof, address).session if address else ""
    query = TreeFilter(
        session=session,
        folder=None if everything else cli.folder(project),
        everything=everything,
        limit=limit if limit is not None or cli.json else _DRAWN,
        live=agents.open_sessions(cli.env.homes) if asof is None else frozenset(),
        fold=not cli.json,
    )
    forest = tree.build_forest(cli.index, query, cli.prices)
    lines = full(cli, forest, query, project=str(project or ""), limited=limit is not None)
    return Answer(
        lambda: tree.forest_json(forest, query.live, cli.prices) | {"at_op": operands.as_of_json(asof)},
        chain(operands.as_of_headline(cli, asof), lines),
    )


_TITLE = 16
_FIRST_WORDS = 12
"""The first words are shown behind a title if they have so many columns."""
_COLUMNS = (
    Column(right=True, optional=True), Column("dim", right=True, optional=True), Column(right=True, optional=True),
    Column("green", optional=True),
)  # fmt: skip
"""The columns behind the drawing: turns, time, cost and notes."""


@frozen
class _Line:
    """A node of the drawing: its rail and that of its notes, its texts, and its cells in the columns.

    The title of a side branch says how many turns it has, and takes their column too.
    """

    node: TreeNode
    rail: str
    rail_below: str
    address: str
    title: str
    first_words: str
    cells: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def start(self) -> int:
        """How many columns there are before the title."""
        return text.width(self.rail) + text.width(self.address) + 2

    def needed(self, limit: int, turns: int) -> int:
        """Return how many columns the drawing needs if title and first words get at most `limit`."""
        title = text.width("  ".join(filter(None, (self.title, self.first_words))))
        if self.cells[0]:
            return self.start + min(limit, title)
        return self.start + min(max(limit, text.width(self.title)), title) - turns - 2


_Row = _Line | tuple[str, FoldedForks]


def full(
    cli: Invocation, forest: Forest, query: TreeFilter, *, project: str = "", limited: bool = False
) -> Iterator[str]:
    """Yield the whole page, under a line for each project if all are shown.

    `project` is the folder that the user named, and `limited` says whether the user gave a limit.
    """
    families = [(family, list(_rows(cli, family, query.live))) for family in forest.families]
    lines = [row for _, rows in families for row in rows if isinstance(row, _Line)]
    columns = [max((text.width(line.cells[place]) for line in lines), default=0) for place in range(len(_COLUMNS))]
    most, least = (max((line.needed(limit, columns[0]) for line in lines), default=0) for limit in (cli.width, _TITLE))
    widths = text.fit_widths((Column(least=least), *_COLUMNS), [most, *columns], cli.width)
    projects: dict[str, list[list[str]]] = {}
    for family, rows in families:
        folder = family.root.branch.state.project if query.everything else ""
        projects.setdefault(folder, []).append([line for row in rows for line in _draw(cli, widths, row)])
    for folder, drawings in projects.items():
        if query.everything:
            yield ls.project_heading(cli, folder)
        for before, drawing in zip([[], *drawings], drawings, strict=False):
            if before and max(len(before), len(drawing)) > 1:
                yield ""
            yield from drawing
    if not query.session:
        for line in _footer(cli, forest, query, project, limited=limited):
            yield from text.paragraph(cli, line, "dim")


def _rows(cli: Invocation, family: TreeFamily, live: frozenset[str]) -> Iterator[_Row]:
    """Yield the nodes of a family from top to bottom, and the forks that are only counted, each with its rail."""
    below: dict[str, list[TreeNode | FoldedForks]] = {}
    for node in family.nodes[1:]:
        below.setdefault(node.parent, []).append(node)
    for fold in family.folds.values():
        below.setdefault(fold.parent, []).append(fold)
    waiting: list[tuple[TreeNode | FoldedForks, str, bool]] = [(family.root, "", True)]
    while waiting:
        member, before, is_last = waiting.pop()
        rail = _shortened(cli, before) + ("└" if is_last else "├")
        if isinstance(member, FoldedForks):
            yield f"{rail}─ ", member
            continue
        node = member
        rail, under = f"{rail}{'─' if node.kind == 'session' else '┄'} ", f"{before}{' ' if is_last else '│'} "
        if node is family.root:
            rail, under = "● ", ""
        members = below.get(node.branch.name, [])
        yield _line(cli, node, live, (rail, _shortened(cli, under) + ("│ " if members else "  ")))
        waiting += [(member, under, member is members[-1]) for member in reversed(members)]


def _shortened(cli: Invocation, rail: str) -> str:
    """Return the rail, cut at its start if it would leave no room."""
    limit = cli.width // 4
    return rail if len(rail) <= limit else f"… {rail[len(rail) - limit + 2 :]}"


def _line(cli: Invocation, node: TreeNode, live: frozenset[str], rails: tuple[str, str]) -> _Line:
    state = node.branch.state
    at = f"  @{text.clean(node.cell, 20) or node.turn}" if node.parent and not node.is_child else ""
    role = state.unified.metadata.role
    title, turns, note = text.clean(node.title, 200), "", ""
    if node.kind == "session":
        turns = text.counted(state.turns, "turn")
        turns = f"{node.own_turns} of {turns}" if node.turn or node.cell else turns
        note = "● live" if state.agent_id in live else "archived" if node.branch.archived else ""
        note = note or text.clean(role or "") or ("child" if node.is_child else "")
        if not title and not node.first_words:
            title = "nothing new yet" if node.parent else text.title(state)
    cost = text.money(node.own_cost) if node.own_turns else ""
    first_words = f"“{text.clean(node.first_words, 200)}”" if node.first_words else ""
    cells = (turns, text.ago(cli, state.updated), cost, note)
    address = cli.ident(node.branch.name) + at
    return _Line(node, *rails, address, title, first_words, cells, tuple(_notes(cli, node)))


def _notes(cli: Invocation, node: TreeNode) -> Iterator[str]:
    place = cli.index.fork_place(node.branch) if node.branch.state.origin and not node.parent else None
    if place:
        yield f"from {text.fork_place(cli, place)}"
    for session, turn in node.merged:
        yield f"merged into {cli.ident(session)} at turn {turn}"


def _draw(cli: Invocation, widths: Sequence[int], row: _Row) -> Iterator[str]:
    """Yield the lines of a row."""
    if not isinstance(row, _Line):
        rail, fold = row
        first, last = text.clean(fold.first, 20), text.clean(fold.last, 20)
        turns = f"turn {first}" if first == last else f"turns {first} to {last}"
        parts = [f"… {fold.count:,} more forks at {turns}", f"sessgit ls --forks-of {cli.ident(fold.parent)}"]
        lines = text.fold(parts, cli.width - len(rail), ": ", "  ")
        yield from (cli.paint("dim", line) for line in text.hanging_indent(rail, lines))
        return
    dim = "dim" if row.node.branch.archived else ""
    ident, at, turn = row.address.partition("@")
    out = cli.paint(dim or ("dim" if row.node.parent else "green"), row.rail)
    out += cli.paint(dim or "yellow", ident) + cli.paint("dim", at + turn) + "  "
    columns = list(zip(_COLUMNS, row.cells, widths[1:], strict=True))
    room = widths[0] - row.start
    if not row.cells[0] and widths[1]:
        room += widths[1] + 2
        del columns[0]
    title = text.cut(row.title, room)
    out += cli.paint(dim, title)
    rest = room - text.width(title) - (2 if title else 0)
    if row.first_words and (rest >= _FIRST_WORDS or not title):
        words = f"“{text.cut(row.first_words[1:-1], max(1, rest - 2))}”"
        out += f"  {cli.paint('dim', words)}" if title else cli.paint(dim, words)
    out = text.fit(out, row.start + room)
    for column, words, width in columns:
        if width:
            out += "  " + Column(dim or column.style, column.right).cell(cli, words, width)
    yield out
    for note in row.notes:
        yield cli.paint("dim", text.cut(row.rail_below + note, cli.width))


def _footer(cli: Invocation, forest: Forest, query: TreeFilter, project: str, *, limited: bool) -> Iterator[str]:
    if forest.quiet:
        here = f" --project {shlex.quote(project)}" if project else ""
        where = " --all" if query.everything else here
        yield f"… {forest.quiet:,} more without forks: sessgit ls{where}"
    shown, drawable = len(forest.families), forest.matching - forest.quiet
    if shown < drawable:
        more = "" if limited else " More: --limit N"
        yield f"Showing the {shown:,} most recent of {text.counted(drawable, 'family', 'families')}.{more}"
    elif forest.sessions:
        counted = text.counted(forest.sessions, "conversation")
        families = f" in {text.counted(forest.matching, 'family', 'families')}"
        there = " All projects: sessgit tree --all" if forest.others and not query.everything else ""
        yield f"{counted}{families if forest.sessions > 1 else ''}.{there}"
    elif forest.others and not query.everything:
        yield ls.nothing_here(cli, count_hidden(cli.index, project or cli.cwd), "tree")
    else:
        yield "No conversations."
