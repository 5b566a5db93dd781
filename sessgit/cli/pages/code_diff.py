"""The code between two conversations: where each stood, what each committed, the files that differ, and the patch."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.code.difference import ChangedFile, CodeDiff, CodeSide
from sessgit.model import canonical

_COMMITS = 8
_FILES = 30
"""So many are shown, and the rest is counted."""
_STYLE = {"−": "red", "+": "green"}
_PATCH = {"+": "green", "-": "red", "@": "cyan"}


def section(here: Invocation, found: CodeDiff) -> Iterator[str]:
    """What differs in the code, below the page that compares the conversations."""
    page = _Page(here, Paint(here.colour))
    yield page.heading(found)
    if found.problem:
        yield from text.wrapped(f"Not compared: {found.problem}", here.width)
        return
    for mark, side in (("−", found.a), ("+", found.b)):
        yield from page.side(mark, side)
    yield from page.files(found)
    yield from page.left_out(found)


def patch(here: Invocation, data: str) -> Iterator[str]:
    """The lines of a patch as git colours them. What could steer a terminal is made harmless first."""
    paint = Paint(here.colour)
    is_hunk = False
    for line in canonical.printable(data.replace("\r\n", "\n")).split("\n")[:-1]:
        if line.startswith("diff --git "):
            is_hunk = False
        elif line.startswith("@@"):
            is_hunk = True
            place, end, rest = line.partition(" @@")
            yield f"{paint('cyan', place + end)}{rest}"
            continue
        yield (
            paint(_PATCH[line[0]], line) if is_hunk and line[:1] in _PATCH else line if is_hunk else paint("bold", line)
        )


class _Page:
    def __init__(self, here: Invocation, paint: Paint) -> None:
        self.here, self.paint = here, paint

    def heading(self, found: CodeDiff) -> str:
        said = " code"
        if found.folder:
            since = f"since {found.base[:8]}" if found.base else "no common commit"
            said += f" of {_visible(self.here.short(found.folder))}, {since}"
        said = text.cut(said, self.here.width - 6) + " "
        return self.paint("dim", f"═══{said}{'═' * (self.here.width - 3 - text.width(said))}")

    def side(self, mark: str, side: CodeSide) -> Iterator[str]:
        assert side.head is not None
        at = f"{side.head.commit[:8]}  {text.clean(side.head.branch) or 'no branch'}"
        at += ", dirty" if side.head.dirty else ""
        commits = f"  ·  {text.counted(side.ahead, 'commit')}" if side.ahead else ""
        yield self.paint(_STYLE[mark], text.cut(f"{mark} {at}{commits}", self.here.width))
        for commit in side.commits[:_COMMITS]:
            said = text.clean(canonical.without_sequences(commit.subject)) or "(no subject)"
            yield f"    {self.paint('yellow', commit.id[:8])}  {text.cut(said, self.here.width - 14)}"
        if side.ahead > _COMMITS:
            yield self.paint("dim", f"    … and {side.ahead - _COMMITS:,} more")

    def files(self, found: CodeDiff) -> Iterator[str]:
        if not found.files:
            yield "No files differ."
            return
        lines = _counts(found.added, found.removed, self.paint)
        yield f"  {text.counted(len(found.files), 'file')}  {lines}".rstrip()
        shown = found.files[:_FILES]
        said = max(text.width(_said(file, Paint(False))) for file in shown)
        room = min(max(text.width(_named(file)) for file in shown), self.here.width - 8 - said)
        for file in shown:
            name = _shortened(_named(file), room)
            yield f"    {self.paint('dim', file.status)} {name}  {_said(file, self.paint)}".rstrip()
        if len(found.files) > _FILES:
            yield self.paint("dim", f"    … and {len(found.files) - _FILES:,} more")

    def left_out(self, found: CodeDiff) -> Iterator[str]:
        """What no commit holds."""
        dirty = [mark for mark, side in (("−", found.a), ("+", found.b)) if side.head and side.head.dirty]
        if dirty:
            where = "on both sides" if len(dirty) > 1 else f"on the {dirty[0]} side"
            yield f"Not compared: uncommitted changes {where}."


def _said(file: ChangedFile, paint: Paint) -> str:
    if file.is_submodule:
        return "submodule"
    return "binary" if file.added is None else _counts(file.added, file.removed or 0, paint)


def _counts(added: int, removed: int, paint: Paint) -> str:
    parts = [paint("green", f"+{added:,}") if added else "", paint("red", f"−{removed:,}") if removed else ""]
    return " ".join(part for part in parts if part)


def _named(file: ChangedFile) -> str:
    return f"{_visible(file.old)} → {_visible(file.path)}" if file.old else _visible(file.path)


def _visible(path: str) -> str:
    """The path with a mark for each character that could steer a terminal."""
    return "".join(char if char.isprintable() else "\ufffd" for char in path)


def _shortened(path: str, columns: int) -> str:
    """In exactly so many columns; of a long path the end, which tells more than the beginning."""
    if text.width(path) > columns:
        while text.width(path) > columns - 1:
            path = path[max(1, (text.width(path) - columns) // 2) :]
        path = f"…{path}"
    return text.fit(path, columns)
