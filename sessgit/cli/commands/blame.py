"""`sessgit blame`: who wrote each line of a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from sessgit.cli import frame, render, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history import blame as blames
from sessgit.history.blame import Author, Blame, BlamedLine, RecordedEdit
from sessgit.model import canonical

_RANGE = re.compile(r"(?P<first>[0-9]{1,9})?(?:,(?P<count>\+)?(?P<last>[0-9]{1,9})?)?")


@frame.command("blame", reads=True, needs="conversations", excludes={"--porcelain": "--json --explain -s"})
def run(
    cli: Invocation,
    file: str = argument("FILE", "A file of this machine.", complete="files", required=True),
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
    blamed = blames.blame(cli.context, cli.folder(file), revision, os.environ, render.progress(cli, "Reading"))
    first, last = _range(lines, len(blamed.lines))
    chosen = blamed.lines[first - 1 : last]
    if porcelain:
        render.raw(cli, [line.encode("utf-8", "replace") for line in _porcelain_lines(blamed, chosen)])
        return None
    lines_shown = _blame_lines(cli, blamed, chosen, short=short, explain=explain)
    where = "not tracked by git" if blamed.file.top else "not in a git repository"
    note = f"({text.clean(blamed.file.path)} is {where}: only recorded edits are compared.)"
    return Answer(lambda: _as_json(blamed, chosen), lines_shown, notes=[note] * (not blamed.is_tracked))


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


_NOT_RECORDED = "not recorded"
_NO_COMMIT = "0" * 40
_SHORT_COMMIT = 8
_WIDE = 120
_NAME, _WIDE_NAME = 22, 40
"""Columns for the prompt or the author, on a narrow and on a wide terminal."""
_REASONS = {
    "no-edit": "no recorded edit",
    "short": "too short to tell",
    "repeated": "repeated in the file",
    "several-edits": "several edits wrote it",
    "later-edit": "edited after its commit",
    "commit-between": "edited before an earlier commit",
    "removed": "removed again by an edit",
    "elsewhere": "edited elsewhere in it",
    "overwritten": "overwritten as a whole",
}


def _blame_lines(
    cli: Invocation, blame: Blame, lines: Sequence[BlamedLine], *, short: bool, explain: bool
) -> Iterator[str]:
    """Yield the lines, each behind its margin: only an address if it is `short`; `explain` says why there is none."""
    idents = {name: cli.ident(name) for name in {author.branch.name for author in blame.authors.values()}}
    addresses = [_short_address(idents, blame, line) for line in lines]
    width = max(map(text.width, addresses), default=0)
    digits = len(str(lines[-1].number)) if lines else 0
    moments = [_seconds(blame, line) for line in lines]
    times = list(map(text.Clock(cli.now, moments), moments))
    time_width = max(map(len, times), default=0)
    name_width = _WIDE_NAME if cli.width >= _WIDE else _NAME
    for line, address, time in zip(lines, addresses, times, strict=True):
        author = blame.author(line)
        style = "yellow" if author else "dim"
        start = cli.paint(style, address.ljust(width))
        if not short:
            name = text.fit(_name(line, author, explain=explain), name_width)
            start += cli.paint("dim", f" ({name} {time.rjust(time_width)} ")
        else:
            start += " "
        code = canonical.printable(canonical.without_sequences(line.line.text))
        yield f"{start}{cli.paint('dim', f'{line.number:>{digits}})')} {code}".rstrip()


def _name(line: BlamedLine, author: Author | None, *, explain: bool) -> str:
    if author:
        return text.clean(author.prompt)
    if explain and line.silence:
        return _REASONS[line.silence]
    return text.clean(line.line.commit.author) if line.line.commit else _NOT_RECORDED


def _seconds(blame: Blame, line: BlamedLine) -> float:
    if blame.author(line) and line.edit:
        return line.edit.time
    return float(line.line.commit.author_time) if line.line.commit else 0.0


def _short_address(idents: Mapping[str, str], blame: Blame, line: BlamedLine) -> str:
    """Return `a41f9c02@7.3`, the commit's id, or dashes; a line that is only probable has a ~."""
    author, edit = blame.author(line), line.edit
    if author and edit:
        return f"{idents[author.branch.name]}@{_place(author, edit)}{'~' if line.certainty == 'run' else ''}"
    return line.line.commit.id[:_SHORT_COMMIT] if line.line.commit else "-" * _SHORT_COMMIT


def _place(author: Author, edit: RecordedEdit) -> str:
    """Return the turn, or the cell if the call is in one: `7`, `7.3`."""
    return f"{author.row.turn}.{edit.cell}" if edit.cell else str(author.row.turn)


def _address(author: Author, edit: RecordedEdit) -> str:
    return f"{author.branch.name}@{_place(author, edit)}"


def _porcelain_lines(blame: Blame, lines: Sequence[BlamedLine]) -> Iterator[str]:
    """Yield the lines in the form of `git blame --porcelain`; a turn is named by the store's commit of it."""
    known = set[str]()
    for _, group in groupby(lines, lambda line: (_porcelain_id(blame, line), line.line.number - line.number)):
        members = list(group)
        for place, line in enumerate(members):
            oid, size = _porcelain_id(blame, line), f" {len(members)}" if not place else ""
            yield f"{oid} {line.line.number} {line.number}{size}"
            if oid not in known:
                known.add(oid)
                yield from _porcelain_facts(blame, line)
            author, edit = blame.author(line), line.edit
            if author and edit:
                yield f"sessgit-address {_address(author, edit)}"
                yield f"sessgit-certainty {line.certainty}"
            if not place:
                yield f"filename {line.line.path or blame.file.path}"
            yield f"\t{line.line.text}"


def _porcelain_id(blame: Blame, line: BlamedLine) -> str:
    author = blame.author(line)
    return author.row.commit if author else line.line.commit.id if line.line.commit else _NO_COMMIT


def _porcelain_facts(blame: Blame, line: BlamedLine) -> Iterator[str]:
    author, commit = blame.author(line), line.line.commit
    if author:
        who, mail, when = author.model or "unknown", author.branch.session, author.row.time
        summary = author.prompt
    elif commit:
        who, mail, when, summary = commit.author, commit.email, commit.author_time, commit.summary
    else:
        who, mail, when, summary = "Not Recorded", "not.recorded", 0, _NOT_RECORDED
    for role in ("author", "committer"):
        yield f"{role} {canonical.one_line(who, 200)}"
        yield f"{role}-mail <{mail}>"
        yield f"{role}-time {commit.time if commit and not author and role == 'committer' else when}"
        yield f"{role}-tz +0000"
    yield f"summary {canonical.one_line(summary, 500)}"


def _as_json(blame: Blame, lines: Sequence[BlamedLine]) -> dict[str, Any]:
    """Return what `blame --json` prints."""
    turns: dict[str, dict[str, Any]] = {}
    commits: dict[str, dict[str, Any]] = {}
    out = []
    for line in lines:
        author, edit, commit = blame.author(line), line.edit, line.line.commit
        address = _address(author, edit) if author and edit else None
        if author and edit and address and address not in turns:
            turns[address] = {
                "address": address,
                "session_id": author.branch.session,
                "turn": author.row.turn,
                "cell": edit.cell or None,
                "subagent": edit.subagent or None,
                "prompt": author.prompt,
                "model": author.model or None,
                "time": canonical.rfc3339(edit.time),
            }
        if commit and commit.id not in commits:
            commits[commit.id] = {
                "commit": commit.id,
                "author": commit.author,
                "email": commit.email,
                "time": canonical.rfc3339(commit.author_time),
                "subject": commit.summary,
            }
        out.append(
            {
                "line": line.number,
                "text": line.line.text,
                "address": address,
                "certainty": line.certainty if author else None,
                "commit": commit.id if commit else None,
                "silence": line.silence if not author else None,
            }
        )
    return {
        "file": blame.file.whole,
        "revision": blame.revision or None,
        "tracked": blame.is_tracked,
        "lines": out,
        "turns": list(turns.values()),
        "commits": list(commits.values()),
    }
