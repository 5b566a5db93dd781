"""The diff of two conversations: side by side where there is room, else one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePath

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.diff import ConversationDiff, DiffSide, PartialTurn
from sessgit.history.resolve import session_title
from sessgit.model import prices
from sessgit.store.sqlite.rows import Row

_BESIDE = 72
"""From so many columns on the sides stand beside each other."""
_MOST_NUMBERS = 10
"""So many turns are named in a line that says how they differ."""
_STYLE = {"−": "red", "+": "green"}


def full(here: Invocation, found: ConversationDiff) -> Iterator[str]:
    """The whole page: what is shared is one line, then the turns of each side, then what they amount to."""
    page = _Page(here, Paint(here.colour))
    yield from page.heads(found)
    yield page.shared(found)
    if found.partial is not None:
        turn, (side, kept, whole) = found.partial.turn, _cut_short(found.partial)
        yield f"turn {turn} is incomplete on the {side} side: {kept} of its {text.counted(whole, 'cell')}"
    yield from page.changed(found)
    yield from page.turns(found)
    if not found.a.own_rows and not found.b.own_rows:
        yield "No turns differ."
        return
    yield from page.files(found)
    yield from page.cost(found)
    yield from page.last_words(found)


class _Page:
    def __init__(self, here: Invocation, paint: Paint) -> None:
        self.here, self.paint = here, paint
        self.beside = here.width >= _BESIDE
        self.column = (here.width - 2) // 2 if self.beside else here.width

    def heads(self, found: ConversationDiff) -> Iterator[str]:
        names = [
            f"{self.here.ident(side.branch.name)}  {text.clean(session_title(side.branch.state), 100)}"
            for side in (found.a, found.b)
        ]
        if self.beside:
            left, right = text.fit(names[0], self.column), text.cut(names[1], self.column)
            yield f"{self.paint('bold', left)}  {self.paint('bold', right)}"
        else:
            yield from (
                self.paint(f"bold {_STYLE[mark]}", text.cut(f"{mark} {name}", self.column))
                for mark, name in zip("−+", names, strict=True)
            )

    def shared(self, found: ConversationDiff) -> str:
        """The band between what both have and what only one has."""
        width = self.here.width
        alike = sum(edit.same or edit.changed for edit in found.edits)
        if found.base is None and not alike:
            said = " no shared turns "
        elif found.base is None:
            said = f" no common ancestor, {text.counted(alike, 'prompt')} in both "
        else:
            last = text.cut(text.clean(self.here.index.title(found.base)), max(12, width - 40))
            said = f" {text.counted(found.shared, 'shared turn')} (up to “{last}”) "
            if found.shared > found.base.turn:
                more = found.shared - found.base.turn
                said = f" {text.counted(found.base.turn, 'shared turn')} (up to “{last}”), {more} more later "
        said = text.cut(said, width - 6)
        return self.paint("dim", f"═══{said}{'═' * (width - 3 - text.width(said))}")

    def changed(self, found: ConversationDiff) -> Iterator[str]:
        """For each way in which turns with the same prompt differ the numbers of these turns."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for one in found.changed:
            groups.setdefault(one.differs, []).append(str(one.a) if one.a == one.b else f"{one.a}/{one.b}")
        for differs, numbers in groups.items():
            shown, more = ", ".join(numbers[:_MOST_NUMBERS]), len(numbers) - _MOST_NUMBERS
            prompt = "same message id" if "prompt" in differs else "same prompt"
            turns = f"turn{'' if len(numbers) == 1 else 's'} {shown}{f' and {more} more' if more > 0 else ''}"
            yield text.cut(f"{prompt}, different {_listed(differs)}: {turns}", self.here.width)

    def turns(self, found: ConversationDiff) -> Iterator[str]:
        """The turns of each side; where two stand for each other, they stand in one row."""
        left, right = list[str](), list[str]()
        for edit in found.edits:
            if edit.same:
                continue
            if edit.changed and self.beside:
                yield from self._both(left, right)
                left, right = [], []
            left += [self._turn("−", edit.a, found.a)] if edit.a is not None else []
            right += [self._turn("+", edit.b, found.b)] if edit.b is not None else []
        yield from self._both(left, right)

    def files(self, found: ConversationDiff) -> Iterator[str]:
        a, b = (_files(side) for side in (found.a, found.b))
        both = [path for path in a if path in b]
        parts = [
            ("−", [path for path in a if path not in both]),
            ("+", [path for path in b if path not in both]),
            ("both:", both),
        ]
        shown = [self.paint(_STYLE.get(mark, "dim"), mark) + f" {self._paths(paths)}" for mark, paths in parts if paths]
        if shown:
            yield from self._labelled("files", shown)

    def cost(self, found: ConversationDiff) -> Iterator[str]:
        shown = []
        for mark, side in (("−", found.a), ("+", found.b)):
            tokens = text.tokens(text.said_and_heard(side.tokens))
            dollars = text.money(self._price(side))
            parts = [text.counted(len(side.own_rows), "turn"), *([tokens, dollars] if side.own_rows else [])]
            shown.append(self.paint(_STYLE[mark], f"{mark} {'  '.join(part for part in parts if part)}"))
        yield from self._labelled("cost", shown)

    def last_words(self, found: ConversationDiff) -> Iterator[str]:
        yield "Last answers"
        for mark, side in (("−", found.a), ("+", found.b)):
            answer = " ".join(side.last_answer[:2000].split())
            words = f"“{text.cut(text.clean(answer), self.here.width - 4)}”" if answer else "(no answer)"
            if side.own_rows:
                yield self.paint(_STYLE[mark], f"{mark} {words}")

    def _turn(self, mark: str, row: Row, side: DiffSide) -> str:
        number = str(row.turn).ljust(len(str(side.own_rows[-1].turn)))
        line = f"{mark} {number}  {text.clean(self.here.index.title(row))}"
        fitted = text.fit(line, self.column) if self.beside and mark == "−" else text.cut(line, self.column)
        return self.paint(_STYLE[mark], fitted)

    def _both(self, left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
        if not self.beside:
            yield from (*left, *right)
            return
        for a, b in zip_longest(left, right, fillvalue=""):
            yield f"{a or ' ' * self.column}  {b}"

    def _labelled(self, label: str, parts: Sequence[str]) -> Iterator[str]:
        """The parts in one line, what the second side has under its turns, or a line each."""
        line = head = f"  {label.ljust(6)}"
        for part in parts:
            is_right = self.beside and _plain(line) <= self.column and "+ " in part
            gap = self.column + 2 - _plain(line) if is_right else 4
            line += part if line == head and not is_right else " " * gap + part
        if self.beside and _plain(line) <= self.here.width:
            yield line
            return
        for number, part in enumerate(parts):
            yield f"{' ' * 8 if number else head}{part}"

    def _paths(self, paths: Sequence[str]) -> str:
        """The paths by their names, as many as there is room for."""
        room = self.here.width - 16
        shown = ""
        for number, path in enumerate(paths):
            name = text.clean(PurePath(path).name or path, 60)
            joined = f"{shown} {name}".strip()
            rest = len(paths) - number
            if shown and text.width(joined) > room - 8:
                return f"{shown} and {rest} more"
            shown = joined
        return text.cut(shown, room)

    def _price(self, side: DiffSide) -> float | None:
        costs = [prices.token_cost(gist.tokens, self.here.settings.prices) for gist in side.gists]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def _files(side: DiffSide) -> list[str]:
    """Only what a side changed, or what it read where it changed nothing."""
    changed = list(dict.fromkeys(path for gist in side.gists for path in gist.files_changed))
    return changed or side.files


def _listed(names: Sequence[str]) -> str:
    """`prompt`, `prompt and answer`, `prompt, answer and calls`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _cut_short(cut: PartialTurn) -> tuple[str, int, int]:
    """The mark of the side that has less of the turn, its cells, and those of the other."""
    return ("−", cut.a, cut.b) if cut.a < cut.b else ("+", cut.b, cut.a)


def _plain(shown: str) -> int:
    """The width of a text without its colours."""
    out, skipping = 0, False
    for char in shown:
        if char == "\033":
            skipping = True
        elif not skipping:
            out += text.width(char)
        elif char == "m":
            skipping = False
    return out
