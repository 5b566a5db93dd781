"""Completion of addresses, from the index alone. It never fails and never speaks."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import wraps
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING

from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.store.index import Index
    from sessgit.store.sqlite.rows import Branch

_MOST = 200
_SPECIAL = re.compile(r"[`$;|&<>()\\\"'*?\[\]{}!#]")

Found = list[tuple[str, str]]


def _typable(find: Callable[[str], Found]) -> Callable[[str], Found]:
    """Only words that mean themselves: a shell puts them on the command line as they are, to be run."""

    @wraps(find)
    def found(incomplete: str) -> Found:
        words = [(word, canonical.printable(told)) for word, told in find(incomplete)]
        return [one for one in words if not _SPECIAL.search(one[0]) and canonical.is_printable(one[0])]

    return found


@_typable
def addresses(incomplete: str) -> list[tuple[str, str]]:
    """Sessions and what they are called; behind an `@` the turns and what was asked."""
    with suppress(Exception):
        session, sign, turn = incomplete.partition("@")
        return _turns(session, turn) if sign else _sessions(incomplete)
    return []


@_typable
def tags(incomplete: str) -> list[tuple[str, str]]:
    """Tags and where they stand."""
    with suppress(Exception):
        from sessgit.branch import tag
        from sessgit.cli import invocation

        found = [one for one in tag.list_tags(invocation.read().index) if one.name.startswith(incomplete)]
        return [(one.name, tag.tag_address(one)) for one in found[:_MOST]]
    return []


@_typable
def remotes(incomplete: str) -> list[tuple[str, str]]:
    """Remotes and where they are."""
    with suppress(Exception):
        from sessgit.cli import invocation
        from sessgit.store.remote import remotes as stored

        found = stored.list_remotes(invocation.read().store_path)
        return [(remote.name, remote.shown) for remote in found if remote.name.startswith(incomplete)]
    return []


@_typable
def destinations(incomplete: str) -> list[tuple[str, str]]:
    """Remotes, and sessions where only one is meant."""
    return remotes(incomplete) + addresses(incomplete)


@_typable
def operations(incomplete: str) -> list[tuple[str, str]]:
    """What commands did, the last one first, with the words that `ops` has for it."""
    with suppress(Exception):
        from sessgit.cli import invocation, text
        from sessgit.store import journal
        from sessgit.store.layout import StorePaths

        found = journal.read(StorePaths(invocation.read().store_path))[::-1]
        fitting = [one for one in found if one.id.startswith(incomplete)]
        return [(one.id, text.clean(one.summary, 50)) for one in fitting[:_MOST]]
    return []


@_typable
def cells(incomplete: str) -> list[tuple[str, str]]:
    """Addresses, and behind `A@7.` the cells of that turn: these alone are read from the store."""
    with suppress(Exception):
        session, sign, rest = incomplete.partition("@")
        turn, dot, start = rest.partition(".")
        if sign and dot:
            return _cells(session, turn, start)
    return addresses(incomplete)


@_typable
def files(incomplete: str) -> list[tuple[str, str]]:
    """The files of the current session that tools read or changed, the last one first, by their paths from here."""
    with suppress(Exception):
        from sessgit.cli import invocation
        from sessgit.history.resolve import resolve_target
        from sessgit.model.address import Address

        here = invocation.read()
        rows = here.index.turns(resolve_target(here.index, Address(), here.where).branch.name)
        gists = here.index.gists([row.commit for row in rows[-_MOST:]])
        every = dict.fromkeys(file for row in reversed(rows) if row.commit in gists for file in gists[row.commit].files)
        names = (file.removeprefix(f"{here.cwd}/") for file in every)
        return [(name, "") for name in names if name.startswith(incomplete)][:_MOST]
    return []


def answer(program: Callable[..., object]) -> None:
    """Prints what could come next on the command line that the shell tells of."""
    said = StringIO()
    kept = ""
    with suppress(Exception, SystemExit), redirect_stdout(said), redirect_stderr(StringIO()):
        if os.environ["_SESSGIT_COMPLETE"] == "complete_bash":
            kept = _rejoin_bash_words()
        program(prog_name="sessgit")
    sys.stdout.write("".join(f"{line.removeprefix(kept)}\n" for line in said.getvalue().splitlines() if line))


def _rejoin_bash_words() -> str:
    """Joins the words that bash broke at `@`, and returns what it keeps of the last one by itself.

    `@` is in bash's COMP_WORDBREAKS: the word `a41f@1` comes as three, and `@1` is what will be replaced. Whether
    a space stood before the `@` is not told; behind the command or an option it did.
    """
    words, position = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    joined = words[:2]
    places = list(range(len(joined)))
    for before, word in pairwise(words[1:]):
        is_sign = word == "@" and len(joined) > 2 and not joined[-1].startswith("-")
        if is_sign or (before == "@" and joined[-1].endswith("@")):
            joined[-1] += word
        else:
            joined.append(word)
        places.append(len(joined) - 1)
    current = joined[places[position]]
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(places[position])
    return current[: current.rfind("@")] if current != words[position] and "@" in current else ""


def _sessions(start: str) -> list[tuple[str, str]]:
    """Those of this project, the one written last first; of all projects where none of this one fits."""
    from sessgit.cli import invocation
    from sessgit.history.resolve import sessions_of_project
    from sessgit.store.layout import is_side_branch

    here = invocation.read()
    names = [outline.name for outline in sessions_of_project(here.index, here.cwd) if outline.turns]
    fitting = _fitting(here.index.branches_named(names[:_MOST]), start)
    if fitting or not start:
        return fitting
    names = [name for name, *_ in here.index.names() if name.startswith(start) and not is_side_branch(name)]
    return _fitting(here.index.branches_named(names[:_MOST]), start) or _sides(here.index, start)


def _sides(index: Index, start: str) -> list[tuple[str, str]]:
    """The side branches that `a41f.` or `a41f9c02.m` begins, behind as much of the session's id as was typed."""
    from sessgit.history.resolve import SHORTEST_PREFIX
    from sessgit.store.layout import is_rewound_branch, is_side_branch

    session, dot, rest = start.partition(".")
    if not dot or len(session) < SHORTEST_PREFIX:
        return []
    found = sorted(name for name, *_ in index.names() if name.startswith(session) and is_side_branch(name))
    ends = [name.partition(".")[2] for name in found]
    return [
        (f"{session}.{end}", "left behind by a rewind" if is_rewound_branch(name) else "another version")
        for name, end in zip(found, ends, strict=True)
        if end.startswith(rest)
    ][:_MOST]


def _fitting(branches: list[Branch], start: str) -> list[tuple[str, str]]:
    from sessgit.cli import text
    from sessgit.history.resolve import session_title

    found = sorted((b for b in branches if b.state.turns), key=lambda b: b.state.updated, reverse=True)
    called = {branch.name: text.clean(session_title(branch.state), 50) for branch in found}
    words = [(name[:8], said) for name, said in called.items()]
    words += [(branch.state.name, branch.name[:8]) for branch in found if branch.state.name]
    # Whole ids only where more than the first eight characters was typed already.
    return [word for word in words if word[0].startswith(start)][:_MOST] or [
        word for word in called.items() if word[0].startswith(start)
    ]


def _turns(session: str, start: str) -> list[tuple[str, str]]:
    from sessgit.cli import invocation, text
    from sessgit.history.resolve import resolve_target
    from sessgit.model.address import Address

    here = invocation.read()
    branch = resolve_target(here.index, Address(session), here.where).branch
    rows = [row for row in here.index.turns(branch.name) if str(row.turn).startswith(start)]
    return [(f"{session}@{row.turn}", text.clean(here.index.title(row), 50)) for row in rows[-_MOST:]]


def _cells(session: str, turn: str, start: str) -> list[tuple[str, str]]:
    from sessgit.cli import invocation, text
    from sessgit.history.resolve import resolve_target
    from sessgit.model.address import Address

    here = invocation.read()
    found = resolve_target(here.index, Address(session, int(turn)), here.where)
    stored = enumerate(here.store.cells(found.branch.tip, found.turn or 0), start=1)
    told = [(f"{session}@{turn}.{ordinal}", text.clean(cell.operation, 50)) for ordinal, cell in stored]
    return [one for one in told if one[0].startswith(f"{session}@{turn}.{start}")][:_MOST]
