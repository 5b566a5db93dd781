"""Every error that a caller of sessgit can act on, in one tree.

A message says what is wrong, a hint says the next command. The exit code of a class is the one that the
command line leaves with; the table is in `docs/architecture.md` and in `sessgit --help`.
"""

from __future__ import annotations

ROOM = "Is there room on the disk, and may you write there?"
"""The hint where something could not be written."""


class SessgitError(Exception):
    """Something a person can act on; `str()` is the message, `hint` the next step or empty."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(SessgitError):
    """The arguments are invalid or contradict each other."""

    exit_code = 2


class ConflictError(SessgitError):
    """The change would overwrite or contradict something; nothing was changed."""

    exit_code = 3


class RefusedError(SessgitError):
    """A remote refuses the push whatever it holds: it forbids deletions, or a hook there rejects it."""

    exit_code = 3


class NotFoundError(SessgitError):
    """No session, turn or cell has this address."""

    exit_code = 4


class AmbiguousError(NotFoundError):
    """More than one session has this address; the message lists them all."""


class NewerStoreError(SessgitError):
    """The store was written by a later sessgit in a format that this one does not know."""

    exit_code = 5


class DamageError(SessgitError):
    """Stored data fails a check."""

    exit_code = 6


class StoreError(SessgitError):
    """The store cannot be read or written."""

    exit_code = 7


class RemoteDamageError(StoreError):
    """The data of a remote is damaged, or made by hand so that git rejects it."""


class UnreadableError(StoreError):
    """An object of the store is missing or damaged; work that does not need it continues."""


class MovedError(StoreError):
    """A ref no longer has the value that was read: read again and retry."""
