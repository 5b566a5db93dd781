"""The cell that an address or an id names."""

from __future__ import annotations

import re
from dataclasses import replace

from sessgit.cli import session_argument
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history.resolve import ResolvedTarget

_ID = re.compile(r"(?:(?P<session>[^@]*)@\.?)?(?P<cell>cell_[0-9a-z]{8})")
_BARE = re.compile(r"\d+\.\d+")


def is_id(address: str) -> bool:
    """Whether it names a cell by its id alone: `cell_xxxxxxxx`, or `A@.cell_xxxxxxxx` of another session."""
    return _ID.fullmatch(address) is not None


def target(here: Invocation, address: str, command: str) -> ResolvedTarget:
    """The branch, the turn and the cell: of `A@7.3`, of `cell_xxxxxxxx` in the current session, of `A@.cell_xxxxxxxx`.

    Raises UsageError where the address names no cell; whether the turn has such a cell is not looked at.
    """
    match = _ID.fullmatch(address)
    if match is not None:
        from sessgit.history.cells import listing

        found = session_argument.target(here, match["session"] or "")
        node = listing.find_by_id(here.store, here.index, found.branch, match["cell"])
        return replace(found, turn=node.turn, cell=str(node.ordinal))
    if _BARE.fullmatch(address):
        raise UsageError(
            f"{address} does not name a conversation", f"In the current session: `sessgit {command} @{address}`."
        )
    found = session_argument.target(here, address)
    if not found.cell:
        short = here.ident(found.branch.name)
        raise UsageError(
            f"{command} needs a cell, but “{address}” does not name one.",
            f"`sessgit cells {short}` lists them. For example: `sessgit {command} {short}@{found.turn or 1}.1`",
        )
    return found


def at(here: Invocation, found: ResolvedTarget) -> str:
    """`7.3`: where the cell stands; raises NotFoundError where its turn has no such cell."""
    from sessgit.history.cells import listing

    return listing.cell_at(here.store, here.index, found.branch, found.turn or 0, found.cell).address
