"""Families as a drawing: a line for each conversation, under the one that it left."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import ls
from sessgit.cli.render import Paint
from sessgit.history import views
from sessgit.history.ls import count_hidden
from sessgit.history.resolve import session_title
from sessgit.history.tree import FoldedForks, Forest, TreeFamily, TreeNode
from sessgit.model import canonical
from sessgit.store.sqlite import ancestry

_TITLE = 16
"""A title has so many columns at least before there is room for cost and age."""
_WORDS = 12
"""First words are shown beside a title where there are so many columns for them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """How the families were chosen: by an address, or of all projects, or of the one at `project` or here; `limited`
    says that somebody asked for so few."""

    address: bool = False
    everything: bool = False
    project: str = ""
    limited: bool = False
    live: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Line:
    """A node's rail and what is shown behind it; `under` is the rail of what stands under it."""

    node: TreeNode
    rail: str
    under: str
    ident: str
    at: str
    called: str
    words: str
    turns: str
    ago: str
    cost: str
    note: str
    notes: tuple[str, ...] = ()
    """Lines of their own below it."""


_Row = _Line | tuple[str, FoldedForks]
_COLUMNS = ("cost", "ago", "note", "turns")
"""What stands behind the title, what is dropped first where there is no room for it before the others."""


def full(here: Invocation, forest: Forest, chosen: Chosen) -> Iterator[str]:
    """The whole page, under a line for each project where there are several."""
    paint = Paint(here.colour)
    drawn = [(family, list(_rows(here, family, chosen))) for family in forest.families]
    table = _Table(here, paint, [row for _, rows in drawn for row in rows if isinstance(row, _Line)])
    if chosen.everything:
        projects: dict[str, list[list[str]]] = {}
        for family, rows in drawn:
            projects.setdefault(family.root.branch.state.project, []).append(list(table.lines(rows)))
        for name, blocks in projects.items():
            yield paint("bold", text.clean(here.short(name)) or "(unknown project)")
            yield from _apart(blocks)
    else:
        yield from _apart([list(table.lines(rows)) for _, rows in drawn])
    if not chosen.address:
        for line in _footer(here, forest, chosen):
            yield from (paint("dim", part) for part in text.wrapped(line, here.width))


def as_json(here: Invocation, forest: Forest, live: frozenset[str]) -> dict[str, Any]:
    """Return what `tree --json` prints."""
    families = [
        {"root": family.root.branch.name, "nodes": [_node_json(here, node, live) for node in family.nodes]}
        for family in forest.families
    ]
    return {"families": families}


def _node_json(here: Invocation, node: TreeNode, live: frozenset[str]) -> dict[str, Any]:
    state = node.branch.state
    cost = views.session_cost(state, here.settings.prices)
    left = bool(node.parent) or state.origin is not None
    return {
        "id": node.branch.name,
        "parent": node.parent or None,
        "fork_turn": node.turn if left else None,
        "cell": node.cell or None,
        "name": state.name,
        "title": state.title,
        "turns": state.turns,
        "own_turns": node.own_turns,
        "updated": state.updated or None,
        "cost_usd": None if cost is None else round(cost, 6),
        "own_cost_usd": None if node.own_cost is None else round(node.own_cost, 6),
        "first_words": node.first_words,
        "kind": node.kind,
        "rewound_of": node.parent if node.kind == "rewound" else None,
        "merged_into": [{"session_id": session, "turn": turn} for session, turn in node.merged],
        "archived": node.branch.archived,
        "live": node.kind == "session" and state.agent_id in live,
    }


def _rows(here: Invocation, family: TreeFamily, chosen: Chosen) -> Iterator[_Row]:
    """What is drawn of a family, from top to bottom, each with its rail."""
    below: dict[str, list[TreeNode | FoldedForks]] = {}
    for node in family.nodes[1:]:
        below.setdefault(node.parent, []).append(node)
    for fold in family.folds.values():
        below.setdefault(fold.parent, []).append(fold)
    waiting: list[tuple[TreeNode | FoldedForks, str, bool]] = [(family.root, "", True)]
    while waiting:
        one, before, last = waiting.pop()
        rail = _deep(here, before) + ("└" if last else "├")
        if isinstance(one, FoldedForks):
            yield f"{rail}─ ", one
            continue
        under = "" if one is family.root else f"{before}{' ' if last else '│'} "
        members = below.get(one.branch.name, [])
        line = _line(here, one, chosen)
        begin = "● " if one is family.root else f"{rail}{'─' if one.kind == 'session' else '┄'} "
        yield replace(line, rail=begin, under=_deep(here, under) + ("│ " if members else "  "))
        waiting += [(member, under, member is members[-1]) for member in reversed(members)]


def _deep(here: Invocation, rail: str) -> str:
    """The rail, cut in front where it would leave no room."""
    most = here.width // 4
    return rail if len(rail) <= most else f"… {rail[len(rail) - most + 2 :]}"


def _line(here: Invocation, node: TreeNode, chosen: Chosen) -> _Line:
    state = node.branch.state
    count = text.counted(state.turns, "turn")
    named = text.clean(state.name or state.title, 200)
    if node.kind != "session":
        what = "left behind" if node.kind == "rewound" else "another version"
        named = f"{what}: {text.counted(node.own_turns, 'turn')}"
    elif not named and not node.first_words:
        named = text.clean(session_title(state), 200) if not node.parent else "nothing new yet"
    live = node.kind == "session" and state.agent_id in chosen.live
    return _Line(
        node,
        "",
        "",
        here.ident(node.branch.name),
        f"@{text.clean(node.cell, 20) or node.turn}" if node.parent else "",
        named,
        text.clean(node.first_words, 200),
        "" if node.kind != "session" else f"{node.own_turns} of {count}" if node.turn or node.cell else count,
        text.ago(canonical.seconds(state.updated), here.now),
        text.money(node.own_cost) if node.own_turns else "",
        "● live" if live else "archived" if node.branch.archived and node.kind == "session" else "",
        tuple(_notes(here, node)),
    )


def _notes(here: Invocation, node: TreeNode) -> Iterator[str]:
    if (
        not node.parent
        and node.branch.state.origin is not None
        and (left := ancestry.fork_place(here.index, node.branch))
    ):
        yield f"from {text.clean(here.ident(left.branch), 80)}@{text.clean(left.at)}"
    for session, turn in node.merged:
        yield f"merged into {here.ident(session)} at turn {turn}"


class _Table:
    """Lines in columns; the title takes what the others leave."""

    def __init__(self, here: Invocation, paint: Paint, lines: Sequence[_Line]) -> None:
        self.here, self.paint = here, paint
        self.widths = {name: max((text.width(getattr(line, name)) for line in lines), default=0) for name in _COLUMNS}
        for name in _COLUMNS:
            if all(self._needed(line, _TITLE) <= self._left() for line in lines):
                break
            self.widths[name] = 0
        self.room = min(max((self._needed(line, here.width) for line in lines), default=0), self._left())

    def lines(self, rows: Sequence[_Row]) -> Iterator[str]:
        for row in rows:
            if isinstance(row, _Line):
                yield self._node(row)
                for note in row.notes:
                    yield self.paint("dim", row.under + text.cut(note, self.here.width - len(row.under)))
            else:
                yield from self._fold(*row)

    def _left(self) -> int:
        return self.here.width - sum(2 + wide for wide in self.widths.values() if wide)

    def _head(self, line: _Line) -> int:
        return text.width(line.rail) + text.width(line.ident) + 2 + (text.width(line.at) + 2 if line.at else 0)

    def _needed(self, line: _Line, most: int) -> int:
        """So many columns has a line to itself before the others begin, at most `most` of them for its title."""
        called, words = text.width(line.called), text.width(line.words)
        title = called + (words + 2 + 2 * bool(called) if words else 0)
        most = max(most, called) if line.node.kind != "session" else most
        return self._head(line) + min(most, title) - self._spare(line)

    def _spare(self, line: _Line) -> int:
        """A side branch says in words how many turns it has, and has their column too."""
        return self.widths["turns"] + 2 if self.widths["turns"] and not line.turns else 0

    def _node(self, line: _Line) -> str:
        room = self.room + self._spare(line) - self._head(line)
        called, wide = self._called(line, room)
        styles = {"rail": "dim" if line.node.parent else "green", "ident": "yellow", "ago": "dim", "note": "green"}
        if line.node.branch.archived:
            styles = dict.fromkeys(("rail", "ident", "called", *_COLUMNS), "dim")

        def painted(name: str, shown: str) -> str:
            return self.paint(styles[name], shown) if name in styles else shown

        out = painted("rail", line.rail) + painted("ident", line.ident)
        out += f"  {self.paint('dim', line.at)}" if line.at else ""
        out += f"  {painted('called', called)}{' ' * (room - wide)}"
        for name in ("turns", "ago", "cost", "note"):
            if self.widths[name] and not (name == "turns" and self._spare(line)):
                said = getattr(line, name)
                filled = said.ljust(self.widths[name]) if name == "note" else said.rjust(self.widths[name])
                out += f"  {painted(name, filled)}"
        return out

    def _called(self, line: _Line, room: int) -> tuple[str, int]:
        """Name or title, and the first words where there is room for both; and how wide that is."""
        called = text.cut(line.called, room)
        rest = room - text.width(called) - (2 if called else 0)
        if line.words and (rest >= _WORDS or not called):
            words = f"“{text.cut(line.words, max(1, rest - 2))}”"
            shown = f"{called}  {self.paint('dim', words)}" if called else words
            return shown, text.width(called) + (2 if called else 0) + text.width(words)
        return called, text.width(called)

    def _fold(self, rail: str, fold: FoldedForks) -> Iterator[str]:
        first, last = text.clean(fold.first, 20), text.clean(fold.last, 20)
        parts = [
            f"… {fold.count:,} more forks at {f'turn {first}' if first == last else f'turns {first} to {last}'}",
            f"sessgit ls --forks-of {self.here.ident(fold.parent)}",
        ]
        head, *more = text.fold(parts, self.here.width - len(rail), ": ")
        yield self.paint("dim", rail + head)
        yield from (self.paint("dim", f"{' ' * len(rail)}  {line}") for line in more)


def _apart(blocks: Sequence[Sequence[str]]) -> Iterator[str]:
    """The families, an empty line between two of which one has several lines."""
    before: Sequence[str] = ()
    for block in blocks:
        if before and max(len(before), len(block)) > 1:
            yield ""
        yield from block
        before = block


def _footer(here: Invocation, forest: Forest, chosen: Chosen) -> Iterator[str]:
    options = "--all" if chosen.everything else f"--project {shlex.quote(chosen.project)}" if chosen.project else ""
    if forest.quiet:
        yield f"… {forest.quiet:,} more without forks: sessgit ls {options}".rstrip()
    shown, found = len(forest.families), forest.found - forest.quiet
    if shown < found:
        more = "" if chosen.limited else " More: --limit N"
        yield f"Showing the {shown:,} most recent of {text.counted(found, 'family', 'families')}.{more}"
    elif forest.sessions:
        counted = text.counted(forest.sessions, "conversation")
        families = f" in {text.counted(forest.found, 'family', 'families')}"
        there = " All projects: sessgit tree --all" if forest.others and not chosen.everything else ""
        yield f"{counted}{families if forest.sessions > 1 else ''}.{there}"
    elif forest.others and not chosen.everything:
        yield from ls.none_here(here, count_hidden(here.index, chosen.project or here.cwd), "tree")
    else:
        yield "No conversations."
