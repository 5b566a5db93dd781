"""How a command reaches a remote: which one is meant, what git may know of this process, and how it gets on."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, NotFoundError, UsageError

if TYPE_CHECKING:
    from sessgit.store.remote.remotes import Connection, Remote

_OF_GIT = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|ASKPASS|TERMINAL_PROMPT|SSL_.+|HTTP_.+|PROXY_.+|ALLOW_PROTOCOL"
    r"|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+))"
)
"""How to get in, and where the user's own configuration lies. git's other variables name a repository, an index or
objects, as a hook or an alias of git's sets them, which would move the work of a child elsewhere; or they mix a trace
into what it says."""
_SHOWN_AFTER = 1.0
_EACH = 0.1


def meant(here: Invocation, first: str, others: Sequence[str]) -> tuple[Remote, tuple[str, ...]]:
    """The remote that the first word names, and the addresses; where there is only one, it need not be named."""
    from sessgit.store.remote import remotes

    known = [remote.name for remote in remotes.list_remotes(here.store_path)]
    if first in known:
        return remotes.find_remote(here.store_path, first), tuple(others)
    if len(known) > 1 and first:
        raise UsageError(f"“{first}” is not a remote; there are {', '.join(known)}.", "Name the remote first.")
    return remotes.find_remote(here.store_path, ""), (first, *others) if first else ()


def one(here: Invocation, name: str) -> Remote:
    """The remote of this name, or the only one."""
    from sessgit.store.remote import remotes

    return remotes.find_remote(here.store_path, name)


def unknown(remote: Remote, word: str, error: NotFoundError) -> NotFoundError:
    """The error for a first word that names neither a remote nor a conversation; other errors stay."""
    if isinstance(error, AmbiguousError):
        return error
    return NotFoundError(f"{error}, and there is no remote “{word}”, only {remote.name}", error.hint)


@contextmanager
def linked(here: Invocation, remote: Remote) -> Iterator[Connection]:
    """The link to a remote; a person at the terminal sees in one line what git says once it takes a second."""
    from sessgit.store.remote.remotes import Connection

    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _OF_GIT.fullmatch(key)}
    began = last = time.monotonic()
    shown = False

    def say(piece: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if here.error_terminal and now - began > _SHOWN_AFTER and now - last > _EACH:
            last, shown = now, True
            _overwrite(text.cut(text.clean(piece), here.width - 1))

    try:
        yield Connection(remote, env, say)
    finally:
        if shown:
            _overwrite("")


def _overwrite(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"\r{line}\033[K")
        sys.stderr.flush()
