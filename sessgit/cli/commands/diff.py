"""`sessgit diff`: compare two conversations, and the code between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING

from sessgit.cli import frame, operands, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history import diff as diffs
from sessgit.history.diff import ConversationDiff, DiffSide
from sessgit.model import canonical, prices
from sessgit.store.index import Row

if TYPE_CHECKING:
    from sessgit.history.code_comparison import ChangedFile, CodeDiff, CodeSide


@frame.command("diff", reads=True, requires={"--patch": "--code"})
def run(
    cli: Invocation,
    a: str = argument("A", "SESSION[@TURN] (default: the current session).", complete="addresses"),
    b: str = argument("B", "SESSION[@TURN] (default: the conversation A was forked from).", complete="addresses"),
    code: bool = option("--code", "Also compare the project's code."),
    patch: bool = option("-p, --patch", "With --code: show the patch."),
) -> Answer:
    """Compare two conversations.

    The turns that both share are one line; then come the turns, files and cost that only one of them has. --code also
    compares the commits and files of the project, as recorded after the last turn of A and of B.
    """
    left = operands.target(cli, a)
    if b:
        right = operands.target(cli, b)
    elif left.state.origin is not None:
        left, right = operands.target(cli, left.state.origin.session), left
    else:
        hint = "Name two conversations: `sessgit diff A B`. `sessgit ls` lists them."
        raise UsageError(f"{cli.ident(left.branch.name)} is not a fork.", hint)
    difference = diffs.diff_branches(cli.context, (left.branch, left.turn), (right.branch, right.turn))

    def compared() -> CodeDiff:
        from sessgit.history.code_comparison import compare_code

        ends = [(each.branch, each.end) for each in (left, right)]
        return compare_code(cli.context, ends[0], ends[1], os.environ)

    def document() -> dict[str, object]:
        from sessgit.history.code_comparison import code_json, code_patch

        value = diffs.diff_json(cli.store, difference, cli.prices)
        if code:
            diff = compared()
            value["code"] = code_json(diff) | ({"patch": code_patch(diff, os.environ)} if patch else {})
        return value

    code_lines = _code_page(cli, compared, patch) if code else ()
    return Answer(document, chain(_diff_lines(cli, difference), code_lines))


def _code_page(cli: Invocation, compare: Callable[[], CodeDiff], patch: bool) -> Iterator[str]:
    from sessgit.history import code_comparison

    diff = compare()
    yield from code_section(cli, diff)
    if patch and (changes := code_comparison.code_patch(diff, os.environ)):
        yield ""
        yield from patch_lines(cli, changes)


_SIDE_BY_SIDE = 72
"""The least width at which the sides are next to each other."""
_TURNS = 10
_STYLES = {"−": "red", "+": "green", "both:": ""}


def _diff_lines(cli: Invocation, diff: ConversationDiff) -> Iterator[str]:
    """Yield the whole page: shared turns as one line, the turns of each side, then files, cost and last answers."""
    page = _Page(cli, diff)
    yield from page.heads()
    yield text.band(cli, page.shared())
    if partial := diff.partial:
        mark, part, whole = ("−", partial.a, partial.b) if partial.a < partial.b else ("+", partial.b, partial.a)
        cells = text.counted(whole, "cell")
        yield f"turn {partial.turn} is incomplete on the {mark} side: {part} of its {cells}"
    yield from page.changed()
    yield from page.turns()
    if not diff.a.own_rows and not diff.b.own_rows:
        yield "No turns differ."
        return
    yield from page.files()
    yield from page.cost()
    yield "Last answers"
    for mark, side in page.sides:
        answer = text.clean(" ".join(side.last_answer[:2000].split()))
        words = f"“{text.cut(answer, cli.width - 4)}”" if answer else "(no answer)"
        if side.own_rows:
            yield cli.paint(_STYLES[mark], f"{mark} {words}")


class _Page:
    def __init__(self, cli: Invocation, diff: ConversationDiff) -> None:
        self.cli, self.diff = cli, diff
        self.sides = (("−", diff.a), ("+", diff.b))
        self.is_wide = cli.width >= _SIDE_BY_SIDE
        self.column = (cli.width - 2) // 2 if self.is_wide else cli.width

    def heads(self) -> Iterator[str]:
        titles = [f"{self.cli.ident(side.branch.name)}  {text.title(side.branch.state)}" for _, side in self.sides]
        if self.is_wide:
            yield from self._side_by_side(*([self.cli.paint("bold", text.cut(name, self.column))] for name in titles))
            return
        for (mark, _), name in zip(self.sides, titles, strict=True):
            yield self.cli.paint(f"bold {_STYLES[mark]}", text.cut(f"{mark} {name}", self.column))

    def shared(self) -> str:
        """Return how many turns both have, and the last one before they differ."""
        diff, base = self.diff, self.diff.base
        if base is None:
            alike = sum(edit.same or edit.changed for edit in diff.edits)
            return f"no common ancestor, {text.counted(alike, 'prompt')} in both" if alike else "no shared turns"
        last = text.cut(text.clean(self.cli.index.title(base)), max(12, self.cli.width - 40))
        later = diff.shared - base.turn
        if later <= 0:
            return f"{text.counted(diff.shared, 'shared turn')} (up to “{last}”)"
        return f"{text.counted(base.turn, 'shared turn')} (up to “{last}”), {later} more later"

    def changed(self) -> Iterator[str]:
        """Yield for each way in which turns with the same prompt differ the numbers of these turns."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for turn in self.diff.changed:
            groups.setdefault(turn.differs, []).append(str(turn.a) if turn.a == turn.b else f"{turn.a}/{turn.b}")
        for differs, numbers in groups.items():
            same = "same message id" if "prompt" in differs else "same prompt"
            line = f"{same}, different {text.listed(differs)}: {text.numbers('turn', numbers, _TURNS)}"
            yield text.cut(line, self.cli.width)

    def turns(self) -> Iterator[str]:
        """Yield the turns of each side; two with the same prompt are in one row."""
        left, right = list[str](), list[str]()
        for edit in self.diff.edits:
            if edit.same:
                continue
            if edit.changed and self.is_wide:
                yield from self._side_by_side(left, right)
                left, right = [], []
            left += [self._turn("−", edit.a, self.diff.a)] if edit.a is not None else []
            right += [self._turn("+", edit.b, self.diff.b)] if edit.b is not None else []
        yield from self._side_by_side(left, right)

    def files(self) -> Iterator[str]:
        a, b = (_files(side) for _, side in self.sides)
        groups = {
            "−": [path for path in a if path not in b],
            "+": [path for path in b if path not in a],
            "both:": [path for path in a if path in b],
        }
        parts = {mark: self._names(paths) for mark, paths in groups.items() if paths}
        yield from self._field("files", parts) if parts else ()

    def cost(self) -> Iterator[str]:
        parts = {}
        for mark, side in self.sides:
            dollars = text.money(prices.token_cost(side.tokens_by_model, self.cli.prices))
            tokens = text.tokens(text.new_tokens(side.tokens))
            turns = text.counted(len(side.own_rows), "turn")
            parts[mark] = "  ".join(filter(None, [turns, tokens, dollars])) if side.own_rows else turns
        yield from self._field("cost", parts)

    def _turn(self, mark: str, row: Row, side: DiffSide) -> str:
        number = str(row.turn).ljust(len(str(side.own_rows[-1].turn)))
        line = f"{mark} {number}  {text.clean(self.cli.index.title(row))}"
        return self.cli.paint(_STYLES[mark], text.cut(line, self.column))

    def _side_by_side(self, left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
        if self.is_wide:
            for a, b in zip_longest(left, right, fillvalue=""):
                yield f"{text.fit(a, self.column)}  {b}"
        else:
            yield from (*left, *right)

    def _field(self, label: str, parts: dict[str, str]) -> Iterator[str]:
        """Yield the parts in one line, that of the second side under its turns, if there is room; else a line each."""
        line = head = f"  {label.ljust(6)}"
        painted = [self.cli.paint(_STYLES[mark], f"{mark} {part}") for mark, part in parts.items()]
        for mark, part in zip(parts, painted, strict=True):
            if mark == "+" and self.is_wide and text.width(line) <= self.column:
                line = f"{text.fit(line, self.column)}  {part}"
            else:
                line += f"{'' if line == head else '    '}{part}"
        yield from (
            [line] if self.is_wide and text.width(line) <= self.cli.width else text.hanging_indent(head, painted)
        )

    def _names(self, paths: Sequence[str]) -> str:
        """Return the names of the files, as many as there is room for."""
        room = self.cli.width - 16
        shown = ""
        for number, path in enumerate(paths):
            joined = f"{shown} {text.clean(PurePath(path).name or path, 60)}".strip()
            if shown and text.width(joined) > room - 8:
                return f"{shown} and {len(paths) - number} more"
            shown = joined
        return text.cut(shown, room)


def _files(side: DiffSide) -> list[str]:
    """Return the files that a side changed, or those that it read if it changed none."""
    return list(dict.fromkeys(path for gist in side.gists for path in gist.files_changed)) or side.files


_COMMITS = 8
_FILES = 30
_PATCH = {"+": "green", "-": "red", "@": "cyan"}


def code_section(cli: Invocation, diff: CodeDiff) -> Iterator[str]:
    """Yield the differences in the code, below the page that compares the conversations."""
    since = f"since {diff.base[:8]}" if diff.base else "no common commit"
    yield text.band(cli, f"code of {_visible(cli.short(diff.folder))}, {since}" if diff.folder else "code")
    if diff.problem:
        yield from text.paragraph(cli, f"Not compared: {diff.problem}")
        return
    sides = (("−", diff.a), ("+", diff.b))
    for mark, side in sides:
        yield from _side(cli, mark, side)
    yield from _changed_files(cli, diff)
    dirty = [mark for mark, side in sides if side.head and side.head.dirty]
    if dirty:
        where = "on both sides" if len(dirty) > 1 else f"on the {dirty[0]} side"
        yield f"Not compared: uncommitted changes {where}."


def patch_lines(cli: Invocation, data: str) -> Iterator[str]:
    """Yield the lines of a patch as git colours them, without control characters."""
    is_hunk = False
    for line in canonical.printable(data.replace("\r\n", "\n")).split("\n")[:-1]:
        if line.startswith("@@"):
            is_hunk = True
            place, end, rest = line.partition(" @@")
            yield cli.paint("cyan", place + end) + rest
            continue
        is_hunk &= not line.startswith("diff --git ")
        yield cli.paint(_PATCH.get(line[:1], "") if is_hunk else "bold", line)


def _side(cli: Invocation, mark: str, side: CodeSide) -> Iterator[str]:
    assert side.head is not None
    dirty = ", dirty" if side.head.dirty else ""
    commits = f"  ·  {text.counted(side.ahead, 'commit')}" if side.ahead else ""
    line = f"{mark} {side.head.commit[:8]}  {text.clean(side.head.branch) or 'no branch'}{dirty}{commits}"
    yield cli.paint(_STYLES[mark], text.cut(line, cli.width))
    for commit in side.commits[:_COMMITS]:
        subject = text.clean(canonical.without_sequences(commit.subject)) or "(no subject)"
        yield text.spread(f"    {cli.paint('yellow', commit.id[:8])}  ", subject, "", cli.width)
    if side.ahead > _COMMITS:
        yield cli.paint("dim", f"    … and {side.ahead - _COMMITS:,} more")


def _changed_files(cli: Invocation, diff: CodeDiff) -> Iterator[str]:
    if not diff.files:
        yield "No files differ."
        return
    yield f"  {text.counted(len(diff.files), 'file')}  {_lines(cli, diff.added, diff.removed)}"
    rows = [
        (file.status, (f"{_visible(file.old)} → " if file.old else "") + _visible(file.path), _change(cli, file))
        for file in diff.files[:_FILES]
    ]
    room = cli.width - 8 - max(text.width(change) for _, _, change in rows)
    room = min(room, max(text.width(name) for _, name, _ in rows))
    for status, name, change in rows:
        yield f"    {cli.paint('dim', status)} {text.fit(text.cut_start(name, room), room)}  {change}"
    if len(diff.files) > _FILES:
        yield cli.paint("dim", f"    … and {len(diff.files) - _FILES:,} more")


def _change(cli: Invocation, file: ChangedFile) -> str:
    if file.is_submodule:
        return "submodule"
    return "binary" if file.added is None else _lines(cli, file.added, file.removed or 0)


def _lines(cli: Invocation, added: int, removed: int) -> str:
    plus = cli.paint("green", f"+{added:,}") if added else ""
    minus = cli.paint("red", f"−{removed:,}") if removed else ""
    return " ".join(filter(None, (plus, minus)))


def _visible(path: str) -> str:
    """Return the path with a mark for each control character."""
    return "".join(char if char.isprintable() else "\ufffd" for char in path)
