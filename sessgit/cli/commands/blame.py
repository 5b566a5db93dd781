"""`sessgit blame`: who wrote each line of a file."""

from __future__ import annotations

import os
import re

from sessgit.cli import completion, frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.cli.pages import blame as page
from sessgit.errors import UsageError
from sessgit.history import blame as blames

_RANGE = re.compile(r"(?P<first>[0-9]{1,9})?(?:,(?P<count>\+)?(?P<last>[0-9]{1,9})?)?")


@frame.command("blame", reads=True, needs="conversations", excludes={"--porcelain": "--json --explain -s"})
def run(
    here: Invocation,
    file: str = argument("FILE", "A file of this machine.", complete=completion.files, required=True),
    revision: str = argument("REV", "A commit of the project (default: the file as it is now)."),
    lines: str = option("-L RANGE", "Only these lines: 10,40 or 10,+5."),
    short: bool = option("-s", "Leave out prompts, authors and times."),
    explain: bool = option("--explain", "Say why a line has no turn."),
    porcelain: bool = option("--porcelain", "Print what `git blame --porcelain` prints, with turns as commits."),
) -> Answer | None:
    """Show which turn wrote each line of a file.

    A line has the address of the tool call that last wrote it, for `sessgit show`, with its prompt and time; ~ marks a
    line that is recognized only by the lines next to it. All conversations are searched, archived and rewound ones too.
    Any other line has its git commit, or “not recorded”: changes by people and shell commands are not recorded.
    """
    with render.progress(here, "Reading", unit="turns") as progress:
        found = blames.blame(here.context, here.folder(file), revision, os.environ, progress)
    first, last = _range(lines, len(found.lines))
    chosen = found.lines[first - 1 : last]
    if porcelain:
        render.raw(here, [line.encode("utf-8", "replace") for line in page.porcelain(found, chosen)])
        return None
    options = page.BlameOptions(short, explain)
    return Answer(lambda: page.as_json(found, chosen), page.full(here, found, chosen, options), notes=page.notes(found))


def _range(text: str, count: int) -> tuple[int, int]:
    """Return the first and the last line that the user chose of a file with so many lines."""
    if not text:
        return 1, count
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(f"“{text}” is not a range of lines", "Use -L 10,40 or -L 10,+5.")
    first = int(match["first"] or 1)
    last = int(match["last"]) if match["last"] else count
    last = first + last - 1 if match["count"] and match["last"] else last
    if not 1 <= first <= count or last < first:
        raise UsageError(f"the file has {count:,} lines, so it has no lines {text}", "Choose others with -L.")
    return first, min(last, count)
