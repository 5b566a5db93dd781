"""The pieces of a turn on a terminal: prompts, answers, thinking, calls with their results; folded or in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sessgit.cli import render, text
from sessgit.cli.invocation import Invocation, Paint
from sessgit.model import canonical
from sessgit.model.conversation.content import Call, Change, Piece, Words, failure
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.history.show import ShownTurn

_OUTPUT, _DIFF, _PROMPT, _NOTICE = 5, 16, 40, 3
"""So many lines are shown of what is folded."""
_LONGEST = 2000
"""Characters of a line that are looked at before it is cut."""
_ABOUT = 8
"""A tool's name leaves so many columns for what the call is about."""


@frozen
class ShowOptions:
    """What is shown in full: the model's thinking; or everything."""

    thinking: bool = False
    full: bool = False


def prose(cli: Invocation, words: str, columns: int) -> list[str]:
    """Return the model's words: Markdown drawn with colours, else its source; code in it is not wrapped."""
    lines = text.plain(words)
    if cli.terminal.colour:
        return render.markdown("\n".join(lines), columns)
    out, is_code = list[str](), False
    for line in lines:
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        out += [line] if is_code or is_fence else text.wrap(line, columns)
    return out


def diff(paint: Paint, change: Change) -> Iterator[str]:
    """Yield the lines of a diff, red and green."""
    for line in change.diff:
        style = "cyan" if line.startswith("@@") else {"-": "red", "+": "green"}.get(line[:1], "")
        yield paint(style, " ".join(text.plain(line)))


def duration(seconds: float | None) -> str:
    """`0.4s`, `12s`, `3m 20s`, `2h 5m`; nothing if it is not known."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest}s"
    return f"{minutes}m {rest}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60}m"


def output(call: Call) -> list[str]:
    """Return the lines of a call's output, with a line for its images."""
    return [*(text.plain(call.output) if call.output.strip() else []), *_images(len(call.images))]


def path(cli: Invocation, project: str, name: str, columns: int) -> str:
    """Return a file's path below the project, or with `~` for the home; a long one is cut at its start."""
    below = name.removeprefix(f"{project.rstrip('/')}/") if project.rstrip("/") else name
    return text.cut_start(text.clean(cli.short(below), _LONGEST), columns)


def subject(cli: Invocation, project: str, about: str, file: str, columns: int) -> str:
    """Return what a call is about: the path of its file, or its most telling argument."""
    about = about[:_LONGEST]
    return path(cli, project, file, columns) if file and about == file else text.cut(text.clean(about), columns)


class TurnPieces:
    """Draws the pieces of a turn, each with the address of its cell in the margin."""

    def __init__(self, cli: Invocation, shown: ShownTurn, options: ShowOptions) -> None:
        self.cli, self.options, self.paint = cli, options, cli.paint
        self.turn, self.project = shown.row.turn, shown.branch.state.project
        self.margin = len(f"{self.turn}.{len(shown.content.cells)}") + 2
        self.columns = cli.width - self.margin

    def draw(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """Yield the pieces, with empty lines around those that have several lines."""
        was_apart = True
        for piece in pieces:
            lines = list(self._call(piece) if isinstance(piece, Call) else self._words(piece))
            is_apart = len(lines) > 1 or (isinstance(piece, Words) and not piece.thinking)
            if is_apart or was_apart:
                yield ""
            yield from lines
            was_apart = is_apart

    def _words(self, words: Words) -> Iterator[str]:
        mark, style = f"{self.turn}.{words.ordinal}" if words.ordinal else "", "yellow"
        if words.by == "model" and not words.thinking:
            lines = prose(self.cli, words.text.strip("\r\n"), self.columns)
        elif words.by == "model":
            lines = self._wrapped(words)
            if not self.options.thinking and not self.options.full:
                more = f"  ({text.counted(len(lines), 'line')})" if len(lines) > 1 else ""
                first = next((line.strip() for line in lines if line.strip()), "")
                lines = [text.cut(f"thinking: {first}", self.columns - len(more)) + more]
            lines = [self.paint("dim", line) for line in lines]
        elif words.by == "person":
            mark, style, lines = "❯", "green", self._folded(self._wrapped(words), _PROMPT)
        else:
            mark, style = "·", "dim"
            lines = [self.paint("dim", line) for line in self._folded(self._wrapped(words), _NOTICE)]
        return text.hanging_indent(self.paint(style, mark) + " " * (self.margin - len(mark)), lines)

    def _call(self, call: Call) -> Iterator[str]:
        """Yield the address, the tool, what the call is about and its outcome on one line; the result below."""
        end = "  ".join(filter(None, (failure(call.cell.ok, call.exit_code) or "ok", duration(call.seconds))))
        room = self.columns - text.width(end) - 4
        least = _ABOUT if call.about else 0
        tool = text.clean(call.tool.rpartition("__")[2] or call.tool, 40)
        tool = text.cut(tool, max(_ABOUT, room - least))
        about = subject(self.cli, self.project, call.about, call.file, max(least, room - text.width(tool)))
        address = self.paint("yellow", f"{self.turn}.{call.ordinal}".ljust(self.margin))
        end = self.paint("dim" if call.cell.ok and not call.exit_code else "red", end)
        yield text.spread(f"{address}{self.paint('cyan', tool)}  ", about, end, self.cli.width)
        if call.changes and call.cell.ok:
            lines = self._folded(list(self._changes(call.changes)), _DIFF)
        else:
            lines = self._folded(output(call), _OUTPUT)
        for line in lines:
            yield " " * self.margin + (line if self.options.full else text.cut(line, self.columns))

    def _changes(self, changes: Sequence[Change]) -> Iterator[str]:
        """Yield the diffs, of several files each with its path."""
        for change in changes:
            if len(changes) > 1:
                yield self.paint("bold", path(self.cli, self.project, change.path, self.columns))
            yield from diff(self.paint, change)

    def _wrapped(self, words: Words) -> list[str]:
        lines = text.wrapped(words.text, self.columns) if words.text.strip() else []
        return [*lines, *(() if words.by == "model" else _images(len(words.images)))]

    def _folded(self, lines: list[str], limit: int) -> list[str]:
        """Return the first lines and how many more there are; a single line is not folded away."""
        if self.options.full or len(lines) <= limit + 1:
            return lines
        return [*lines[:limit], self.paint("dim", f"… {text.counted(len(lines) - limit, 'more line')}")]


def call_input(cli: Invocation, call: Call) -> Iterator[str]:
    """Yield the arguments of a call: JSON, or of a command the command and then the other arguments."""
    command = call.input.get("command")
    if not isinstance(command, str):
        document = json.dumps(canonical.bounded(dict(call.input)), ensure_ascii=False, indent=2)
        yield from _code(cli, document, "json")
        return
    yield from _code(cli, command, "bash")
    for key, value in call.input.items():
        if key != "command":
            words = value if isinstance(value, str) else json.dumps(canonical.bounded(value), ensure_ascii=False)
            yield from text.paragraph(cli, " ".join(text.plain(f"{key}: {words}")))


def _code(cli: Invocation, source: str, language: str) -> list[str]:
    lines = text.plain(source)
    return render.code("\n".join(lines), language) if cli.terminal.colour else lines


def _images(number: int) -> list[str]:
    return [f"({text.counted(number, 'image')})"] if number else []
