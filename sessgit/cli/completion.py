"""What a shell completes: sessions, turns, cells, tags, remotes, operations and files, from the index alone.

A completion prints nothing else and never fails.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from sessgit.cli import invocation, text
from sessgit.cli.invocation import Invocation
from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.history.resolve import ResolvedTarget

_MOST = 200
_TITLE_LENGTH = 60
_SPECIAL = re.compile(r"[`$;|&<>()\\\"'*?\[\]{}!#~]")

_SCRIPTS = {
    "zsh": """\
#compdef sessgit
_sessgit() {
    local word about
    local -a matches shown
    while IFS=$'\\t' read -r word about; do
        matches+=("$word")
        shown+=("$word${about:+  -- $about}")
    done < <(
        _SESSGIT_COMPLETE=complete_fish _SESSGIT_WORDS=1 sessgit "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null
    )
    if (( $#matches )); then compadd -V sessgit -l -d shown -a matches; else _files; fi
}
compdef _sessgit sessgit
""",
    "fish": """\
function __sessgit_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct | string unescape; or commandline -ct | string trim -l -c '"\\'')
    set -l matches (_SESSGIT_COMPLETE=complete_fish _SESSGIT_WORDS=1 sessgit $before[2..] "$current" 2>/dev/null)
    if set -q matches[1]
        printf '%%s\\n' $matches
    else
        __fish_complete_path "$current"
    end
end
complete -c sessgit -k -f -a '(__sessgit_complete)'
""",
}
"""The scripts for shells that quote what they complete; they get it in typer's protocol for fish. For bash, and for
scripts installed before, typer has its own."""
Match = tuple[str, str]
"""A word, and what it is."""


def _completer(find: Callable[[Invocation, str], Iterable[Match]]) -> Callable[[str], list[Match]]:
    """Make a completion: at most 200 of the words that a function finds, or none if it fails."""

    def complete(incomplete: str) -> list[Match]:
        with suppress(Exception):
            matches = find(invocation.read(), incomplete)
            return [(word, text.clean(about, 50)) for word, about in islice(filter(_is_safe, matches), _MOST)]
        return []

    return complete


def _is_safe(match: Match) -> bool:
    """Return whether the shell puts the word on the command line as text: for bash it is quoted, see `answer`, and
    shells with a script of ours quote it."""
    is_quoted = os.environ.get("_SESSGIT_COMPLETE") == "complete_bash" or "_SESSGIT_WORDS" in os.environ
    return canonical.is_printable(match[0]) and (is_quoted or not _SPECIAL.search(match[0]))


@_completer
def addresses(cli: Invocation, start: str) -> Iterable[Match]:
    """Sessions by id, name and title; after an `@` the turns of one."""
    session, sign, turn = start.partition("@")
    if not sign:
        return _sessions(cli, start)
    rows = [row for row in cli.index.turns(_target(cli, session).branch.name) if str(row.turn).startswith(turn)]
    return [(f"{session}@{row.turn}", cli.index.title(row)) for row in rows[-_MOST:]]


@_completer
def cells(cli: Invocation, start: str) -> Iterable[Match]:
    """Addresses, and after `A@7.` the cells of that turn: these alone are read from the store."""
    address, dot, _ = start.partition(".")
    session, sign, turn = address.partition("@")
    if not (sign and dot):
        return addresses(start)
    target = _target(cli, session, int(turn))
    stored = enumerate(cli.store.cells(target.branch.tip, target.turn or 0), start=1)
    return _starting(start, ((f"{address}.{ordinal}", cell.operation) for ordinal, cell in stored))


@_completer
def tags(cli: Invocation, start: str) -> Iterable[Match]:
    """Tags and the turns they mark."""
    from sessgit.branch.edit import tag_address
    from sessgit.history import resolve

    return _starting(start, ((each.name, tag_address(each)) for each in resolve.list_tags(cli.index)))


@_completer
def remotes(cli: Invocation, start: str) -> Iterable[Match]:
    """Remotes and their URLs."""
    from sessgit.store import remotes

    return _starting(start, ((remote.name, remote.shown) for remote in remotes.list_remotes(cli.env.store)))


@_completer
def destinations(cli: Invocation, start: str) -> Iterable[Match]:
    """Remotes, and sessions: with only one remote, it need not be named."""
    return [*remotes(start), *addresses(start)]


@_completer
def operations(cli: Invocation, start: str) -> Iterable[Match]:
    """Operations, newest first, with their summaries."""
    from sessgit.store import operations
    from sessgit.store.layout import StorePaths

    return _starting(start, ((each.id, each.summary) for each in operations.read(StorePaths(cli.env.store))[::-1]))


@_completer
def files(cli: Invocation, start: str) -> Iterable[Match]:
    """The files that tools read or changed in the current session, the last one first, relative to this folder."""
    rows = cli.index.turns(_target(cli).branch.name)
    gists = cli.index.gists([row.commit for row in rows[-_MOST:]])
    paths = dict.fromkeys(path for row in reversed(rows) if row.commit in gists for path in gists[row.commit].files)
    return _starting(start, ((path.removeprefix(f"{cli.cwd}/"), "") for path in paths))


def _target(cli: Invocation, session: str = "", turn: int | None = None) -> ResolvedTarget:
    from sessgit.history.resolve import resolve_target
    from sessgit.model.ids import Address

    return resolve_target(cli.index, Address(session, turn), cli.where)


def _starting(start: str, matches: Iterable[Match]) -> Iterator[Match]:
    return (match for match in matches if match[0].startswith(start))


def _sessions(cli: Invocation, start: str) -> list[Match]:
    """Return the sessions of this project, newest first; if none matches, those of all projects, then side branches."""
    from sessgit.history.resolve import sessions_of_project

    own = [outline.name for outline in sessions_of_project(cli.index, cli.cwd) if outline.turns]
    matches = _named(cli, own[:_MOST], start)
    if matches or not start:
        return matches
    folded, outlines = start.casefold(), cli.index.outlines()
    every = ((each.name, each.authored_name or each.title or each.first_prompt) for each in outlines)
    names = [words[0] for words in every if any(word.casefold().startswith(folded) for word in words)]
    return _named(cli, names[:_MOST], start) or _side_branches(cli, start)


def _named(cli: Invocation, names: Sequence[str], start: str) -> list[Match]:
    """Return the ids of sessions that begin like `start`, then names, and titles of those without a name, in upper or
    lower case; titles only if something was typed."""
    branches = sorted(cli.index.branches_named(names), key=lambda branch: branch.state.updated, reverse=True)
    states = {branch.name: branch.state for branch in branches if branch.state.turns}
    words = [(name[:8], state.display_title) for name, state in states.items()]
    for name, state in states.items():
        title = state.name or (canonical.one_line(state.display_title, _TITLE_LENGTH) if start else "")
        if title and "@" not in title and title[0] != "-" and title[: len(start)].casefold() == start.casefold():
            words.append((start + title[len(start) :], name[:8]))  # shells compare letters as they were typed
    whole_ids = ((name, state.display_title) for name, state in states.items())
    return list(_starting(start, words)) or list(_starting(start, whole_ids))


def _side_branches(cli: Invocation, start: str) -> list[Match]:
    """Return the side branches that `a41f.` or `a41f9c02.m` begins, after as much of the id as was typed."""
    from sessgit.history.resolve import SHORTEST_PREFIX
    from sessgit.store.layout import is_rewound_branch, is_side_branch

    session, dot, _ = start.partition(".")
    if not dot or len(session) < SHORTEST_PREFIX:
        return []
    branches = (outline.name for outline in cli.index.branch_outlines())
    names = [name for name in branches if name.startswith(session) and is_side_branch(name)]
    kinds = {True: "left behind by a rewind", False: "another version"}
    matches = ((f"{session}.{name.partition('.')[2]}", kinds[is_rewound_branch(name)]) for name in names)
    return list(_starting(start, matches))


def use_own_scripts() -> None:
    """Let --show-completion and --install-completion of typer use the scripts of this module."""
    from typer import _completion_shared

    _completion_shared._completion_scripts.update(_SCRIPTS)


def answer(program: Callable[..., object]) -> None:
    """Print what could come next on the command line that the shell passes."""
    output, kept, quote = StringIO(), "", None
    with suppress(Exception, SystemExit), redirect_stdout(output), redirect_stderr(StringIO()):
        if os.environ["_SESSGIT_COMPLETE"] == "complete_bash":
            kept, quote = _rejoin_bash_words()
        elif "_SESSGIT_WORDS" in os.environ:
            os.environ["_TYPER_COMPLETE_ARGS"] = shlex.join(sys.argv)
            os.environ["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
        program(prog_name="sessgit")
    words = [line.removeprefix(kept) for line in output.getvalue().splitlines()]
    words = words if quote is None else [_quoted(word, quote) for word in words]
    sys.stdout.write("".join(f"{word}\n" for word in words if word))


def _rejoin_bash_words() -> tuple[str, str]:
    """Join the words that bash broke at `@`; return what it keeps of the last one by itself, and its open quote or "".

    `@` is in bash's COMP_WORDBREAKS: the word `a41f@1` comes as three, and `@1` is what will be replaced. Bash does not
    say whether a space stood before the `@`; after the command or an option it did.
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
    kept = current[: current.rfind("@")] if current != words[position] and "@" in current else ""
    return kept, current[:1] if current[:1] in ("'", '"') else ""


def _quoted(word: str, quote: str) -> str:
    """Return the word as bash needs it after an open quote, or after none; "" if it cannot be there."""
    if quote == "'":
        return "" if "'" in word else word
    if quote == '"':
        return "" if "!" in word else re.sub(r'(["$`\\])', r"\\\1", word)
    return _SPECIAL.sub(r"\\\g<0>", word).replace(" ", "\\ ")
