"""The remote that a command names, and the connection to it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, NotFoundError, UsageError
from sessgit.store import remotes
from sessgit.store.remotes import Connection, Remote

_GIT_VARIABLES = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|ASKPASS|TERMINAL_PROMPT|SSL_.+|HTTP_.+|PROXY_.+|ALLOW_PROTOCOL"
    r"|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+))"
)
"""The variables that git gets, for authentication and for the user's own configuration. Others, which a git hook or
alias sets, name a repository, an index or objects, and would move the work elsewhere; or they mix a trace into the
output."""
_SHOWN_AFTER = 1.0
_EACH = 0.1


def chosen(here: Invocation, first: str, others: Sequence[str]) -> tuple[Remote, tuple[str, ...]]:
    """Return the remote that the first word names, and the addresses; the only remote need not be named."""
    known = [remote.name for remote in remotes.list_remotes(here.env.store)]
    if first in known:
        return remotes.find_remote(here.env.store, first), tuple(others)
    if len(known) > 1 and first:
        raise UsageError(f"“{first}” is not a remote; there are {', '.join(known)}.", "Name the remote first.")
    return remotes.find_remote(here.env.store, ""), (first, *others) if first else ()


@contextmanager
def explain_unknown(remote: Remote, addresses: Sequence[str]) -> Iterator[None]:
    """Say of a first word that names neither a remote nor a conversation that it names no remote either."""
    try:
        yield
    except AmbiguousError:
        raise
    except NotFoundError as error:
        if not addresses:
            raise
        message = f"{error}, and there is no remote “{addresses[0]}”, only {remote.name}"
        raise NotFoundError(message, error.hint) from error


@contextmanager
def connected(here: Invocation, remote: Remote) -> Iterator[Connection]:
    """Connect to a remote; on a terminal, git's progress is shown on one line once it takes a second."""
    env = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _GIT_VARIABLES.fullmatch(key)
    }
    began = last = time.monotonic()
    shown = False

    def report(piece: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if here.terminal.shows_errors and now - began > _SHOWN_AFTER and now - last > _EACH:
            last, shown = now, True
            _overwrite(text.cut(text.clean(piece), here.width - 1))

    try:
        yield Connection(remote, env, report)
    finally:
        if shown:
            _overwrite("")


def _overwrite(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"\r{line}\033[K")
        sys.stderr.flush()
