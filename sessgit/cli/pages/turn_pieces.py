"""The pieces of a turn on a terminal: words, thinking, calls with their results, diffs; folded or whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessgit.cli import render, text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.show import ShownTurn, seconds_between
from sessgit.model import canonical
from sessgit.model.conversation.content import Call, Change, Piece, Words

_OUTPUT, _DIFF, _PROMPT, _NOTICE = 5, 16, 40, 3
"""So many lines are shown of what is folded."""
_LONGEST = 2000
"""Of a line that is cut to the terminal no more is looked at."""
_ABOUT = 8
"""A tool's name leaves so many columns for what the call is about."""
_SHELLS = {"Bash": "bash", "PowerShell": "powershell"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is shown whole: the model's thinking, and results, long prompts and notices."""

    thinking: bool = False
    full: bool = False


def prose(here: Invocation, said: str, columns: int) -> list[str]:
    """What the model says: Markdown drawn with colours, else its source; code in it is not wrapped."""
    lines = text.plain(said)
    if here.colour:
        return render.markdown("\n".join(lines), columns)
    out, fenced = list[str](), False
    for line in lines:
        is_fence = line.lstrip().startswith("```")
        fenced ^= is_fence
        out += [line] if fenced or is_fence else text.wrap(line, columns)
    return out


def diff(paint: Paint, change: Change) -> Iterator[str]:
    """The lines of a diff, what goes in red and what comes in green."""
    for line in change.diff:
        shown = " ".join(text.plain(line))
        style = "cyan" if line.startswith("@@") else {"-": "red", "+": "green"}.get(line[:1])
        yield paint(style, shown) if style else shown


def duration(seconds: float | None) -> str:
    """`0.4s`, `12s`, `3m 20s`, `2h 5m`; nothing where it is not known."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    return f"{whole // 3600}h {whole % 3600 // 60}m"


def outcome(call: Call) -> str:
    """`ok`, `failed`, `exit 2`, `no result`."""
    if call.cell.ok is None:
        return "no result"
    if call.exit_code:
        return f"exit {call.exit_code}"
    return "ok" if call.cell.ok else "failed"


def images(number: int) -> list[str]:
    """A line that says how many images there were; none where there were none."""
    return [f"({text.counted(number, 'image')})"] if number else []


def path(here: Invocation, project: str, name: str, columns: int) -> str:
    """A file as a person names it: below the project by its path there, else with `~` for the home; of one that is
    too long the end."""
    folder = project.rstrip("/")
    below = folder and name.startswith(f"{folder}/")
    return text.end(text.clean(name[len(folder) + 1 :] if below else here.short(name), _LONGEST), columns)


class Pieces:
    """Draws the pieces of a turn, each with the address of its cell in the margin."""

    def __init__(self, here: Invocation, shown: ShownTurn, wanted: Wanted) -> None:
        self.here, self.wanted = here, wanted
        self.turn, self.project = shown.row.turn, shown.branch.state.project
        self.paint = Paint(here.colour)
        self.margin = len(f"{self.turn}.{len(shown.told.cells)}") + 2
        self.columns = here.width - self.margin

    def draw(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """The pieces; only calls and thoughts that take a single line stand together."""
        before = True
        for piece in pieces:
            lines = list(self.call(piece) if isinstance(piece, Call) else self.words(piece))
            apart = len(lines) > 1 or (isinstance(piece, Words) and not piece.thinking)
            if apart or before:
                yield ""
            yield from lines
            before = apart

    def words(self, said: Words) -> Iterator[str]:
        """What was said, as whoever said it is shown."""
        if said.by == "model":
            yield from self._model(said)
        elif said.by == "person":
            lines = self._wrapped(said.text)
            yield from self._beside("❯", "green", self._folded([*lines, *images(said.images)], _PROMPT))
        else:
            lines = self._wrapped(said.text)
            shown = self._folded([*lines, *images(said.images)], _NOTICE)
            yield from self._beside("·", "dim", [self.paint("dim", line) for line in shown])

    def call(self, call: Call) -> Iterator[str]:
        """A call of a tool: its title, and what came of it."""
        yield self._title(call)
        yield from (" " * self.margin + line for line in self._result(call))

    def _model(self, said: Words) -> Iterator[str]:
        ordinal = f"{self.turn}.{said.ordinal}" if said.ordinal else ""
        if not said.thinking:
            yield from self._beside(ordinal, "yellow", prose(self.here, said.text.strip("\r\n"), self.columns))
            return
        lines = self._wrapped(said.text)
        if not self.wanted.thinking and not self.wanted.full:
            first = next((line.strip() for line in lines if line.strip()), "")
            more = f"  ({text.counted(len(lines), 'line')})" if len(lines) > 1 else ""
            lines = [text.cut(f"thinking: {first}", self.columns - len(more)) + more]
        yield from self._beside(ordinal, "yellow", [self.paint("dim", line) for line in lines])

    def _title(self, call: Call) -> str:
        """The call in a line: its address, the tool, what it is about, and at the end what came of it."""
        end = "  ".join(part for part in (outcome(call), duration(seconds_between(call.time, call.ended))) if part)
        whole = self.columns - text.width(end) - 4
        least = _ABOUT if call.about else 0
        tool = text.cut(text.clean(call.tool.rpartition("__")[2] or call.tool, 40), max(_ABOUT, whole - least))
        room = max(least, whole - text.width(tool))
        about = self._about(call, room)
        style = "dim" if call.cell.ok and not call.exit_code else "red"
        ordinal = self.paint("yellow", f"{self.turn}.{call.ordinal}".ljust(self.margin))
        return f"{ordinal}{self.paint('cyan', tool)}  {text.fit(about, room)}  {self.paint(style, end)}"

    def _about(self, call: Call, columns: int) -> str:
        """The telling argument; of a file its path, from its end where it is too long."""
        said = call.about[:_LONGEST]
        if said != call.file:
            return text.clean(said, _LONGEST)
        return path(self.here, self.project, said, columns)

    def _result(self, call: Call) -> Iterator[str]:
        if call.changes and call.cell.ok:
            lines = [line for change in call.changes for line in diff(self.paint, change)]
            yield from self._folded(lines, _DIFF, cut=True)
            return
        lines = text.plain(call.output) if call.output.strip() else []
        yield from self._folded([*lines, *images(call.images)], _OUTPUT, cut=True)

    def _wrapped(self, said: str) -> list[str]:
        """The lines of a text that fit; none where it is empty."""
        return text.wrapped(said, self.columns) if said.strip() else []

    def _beside(self, mark: str, style: str, lines: Sequence[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            yield (" " * self.margin if number else self.paint(style, mark.ljust(self.margin))) + line

    def _folded(self, lines: Sequence[str], most: int, *, cut: bool = False) -> list[str]:
        """The first lines and how many more there are, or all; a line is cut only in what is folded."""
        if self.wanted.full:
            return list(lines)
        # One line is not folded away: saying so takes a line as well.
        shown = list(lines) if len(lines) <= most + 1 else list(lines[:most])
        if cut:
            shown = [self._cut(line) for line in shown]
        rest = len(lines) - len(shown)
        return [*shown, self.paint("dim", f"… {text.counted(rest, 'more line')}")] if rest else shown

    def _cut(self, line: str) -> str:
        style = re.match(r"\033\[[0-9;]*m", line)
        if style is None:
            return text.cut(line[:_LONGEST], self.columns)
        inner = line[style.end() :].removesuffix("\033[0m")
        return f"{style[0]}{text.cut(inner[:_LONGEST], self.columns)}\033[0m"


def given(here: Invocation, call: Call) -> Iterator[str]:
    """The arguments of a call: of a command the command and then the others, of any other tool JSON."""
    command = call.input.get("command")
    language = _SHELLS.get(call.tool, "")
    if language and isinstance(command, str):
        yield from _code(here, "\n".join(text.plain(command)), language)
        for key, value in call.input.items():
            if key != "command":
                said = value if isinstance(value, str) else json.dumps(canonical.bounded(value), ensure_ascii=False)
                yield from text.wrap(f"{' '.join(text.plain(key))}: {' '.join(text.plain(said))}", here.width)
        return
    document = json.dumps(canonical.bounded(dict(call.input)), ensure_ascii=False, indent=2)
    yield from _code(here, "\n".join(text.plain(document)), "json")


def _code(here: Invocation, source: str, language: str) -> list[str]:
    return render.code(source, language) if here.colour else source.split("\n")
