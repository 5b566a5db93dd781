"""The code between two conversations: the commits of each, the files that differ, and the patch."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.history.code.difference import ChangedFile, CodeDiff, CodeSide
from sessgit.model import canonical

_COMMITS = 8
_FILES = 30
_STYLES = {"−": "red", "+": "green"}
_PATCH = {"+": "green", "-": "red", "@": "cyan"}


def section(cli: Invocation, diff: CodeDiff) -> Iterator[str]:
    """Yield the differences in the code, below the page that compares the conversations."""
    since = f"since {diff.base[:8]}" if diff.base else "no common commit"
    yield text.band(cli, f"code of {_visible(cli.short(diff.folder))}, {since}" if diff.folder else "code")
    if diff.problem:
        yield from text.paragraph(cli, f"Not compared: {diff.problem}")
        return
    sides = (("−", diff.a), ("+", diff.b))
    for mark, side in sides:
        yield from _side(cli, mark, side)
    yield from _files(cli, diff)
    dirty = [mark for mark, side in sides if side.head and side.head.dirty]
    if dirty:
        where = "on both sides" if len(dirty) > 1 else f"on the {dirty[0]} side"
        yield f"Not compared: uncommitted changes {where}."


def patch(cli: Invocation, data: str) -> Iterator[str]:
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


def _files(cli: Invocation, diff: CodeDiff) -> Iterator[str]:
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
