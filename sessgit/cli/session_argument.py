"""The conversation that an address names, brought level with the client's transcript first."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from sessgit.cli import render
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, DamageError, NotFoundError, StoreError, UnreadableError
from sessgit.history import resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import humanize
from sessgit.model.address import Address, parse_address
from sessgit.record import catch_up
from sessgit.store import layout, refs
from sessgit.store.damage import packed_refs

_LEAST = 4
_asked: ContextVar[str] = ContextVar("asked", default="")


def target(here: Invocation, text: str, at: str | None = None, *, changes: bool = False) -> ResolvedTarget:
    """What the address names, recorded as far as its transcript goes; a guess and an older view are told.

    The session is found first and its turn only after catching up: the turn may be one that nobody recorded yet.
    """
    address = _address(here, text, at)
    with _told(here, address.session):
        found = _session(here, Address(address.session), changes)
    _asked.set(here.ident(found.session))
    if found.guess:
        render.tell(f"({found.guess})")
    _catch_up(here, found)
    turn = found.turn if address.turn is None else address.turn
    return resolve.resolve_target(here.index, Address(found.branch.name, turn, address.cell), here.where)


def recorded(here: Invocation, text: str) -> ResolvedTarget:
    """What the address names for a command that changes it, as it is recorded: nothing is recorded for that."""
    with _told(here, text.partition("@")[0]):
        found = resolve.resolve_target(here.index, _address(here, text), here.where, changes=True)
    _asked.set(here.ident(found.session))
    if found.guess:
        render.tell(f"({found.guess})")
    return found


def branch(here: Invocation, text: str) -> str:
    """The branch that an address names, as it is recorded; of one that cannot be read any more, which no index knows,
    the beginning of its id is enough. A turn in the address is passed over."""
    try:
        return recorded(here, text).branch.name
    except (NotFoundError, DamageError, StoreError):
        found = _unreadable(here, text.partition("@")[0])
        if found is None:
            raise
        return found


def _address(here: Invocation, text: str, at: str | None = None) -> Address:
    return resolve.resolve_address(here.index, text, at) if here.has_store else parse_address(text, at)


@contextmanager
def _told(here: Invocation, start: str) -> Iterator[None]:
    """Of what cannot be read the conversation is known by its name alone."""
    try:
        yield
    except UnreadableError:
        _asked.set(here.ident(layout.session_of(_unreadable(here, start) or "")))
        raise


def mending(otherwise: str) -> str:
    """What to do where something of the conversation that a command was about cannot be read."""
    session = _asked.get()
    return f"`sessgit repair {humanize.quote_for_shell(session)}` restores what can be found." if session else otherwise


def current(here: Invocation) -> ResolvedTarget | None:
    """The current session, recorded as far as its transcript goes, or None; nothing is told."""
    try:
        found = resolve.resolve_target(here.index, Address(), here.where)
    except NotFoundError:
        return None
    _catch_up(here, found)
    return resolve.resolve_target(here.index, Address(found.branch.name), here.where)


def _session(here: Invocation, address: Address, changes: bool) -> ResolvedTarget:
    try:
        return resolve.resolve_target(here.index, address, here.where, changes=changes)
    except AmbiguousError:
        raise
    except NotFoundError:
        path = _transcript(here, address)
        if path is None:
            raise
    caught = catch_up.record_file(lambda: here.store, here.index, path, here.config, here.privacy)
    if caught.off:
        raise NotFoundError(
            f"{path.stem[:8]} is not recorded: {caught.why}",
            caught.hint,
        )
    if not caught.level:
        render.tell(caught.why)
    here.index.sync()
    return resolve.resolve_target(here.index, address, here.where, changes=changes)


def _transcript(here: Invocation, address: Address) -> Path | None:
    """The client's file of a session that is not recorded at all."""
    wanted = address.session
    if not wanted:
        try:
            wanted = resolve.current_branch(here.index, here.where)[0]
        except NotFoundError:
            return None
    return catch_up.find_unrecorded(here.config, wanted)


def _catch_up(here: Invocation, found: ResolvedTarget) -> None:
    caught = catch_up.catch_up(lambda: here.store, here.index, found.state, here.config, here.privacy, time.time())
    if caught.off:
        render.tell(f"{here.ident(found.session)} has turns that are not recorded: {caught.why}")
    elif not caught.level:
        render.tell(f"{here.ident(found.session)}: {caught.why}")
    here.index.sync(found.session)


def _unreadable(here: Invocation, start: str) -> str | None:
    if len(start) < _LEAST:
        return None
    every = {*refs.branches(here.store_path), *packed_refs.branches_without_tips(here.store_path)}
    names = {name for name in every if name.startswith(start)}
    heads = {layout.session_of(name) for name in names}
    return start if start in names else heads.pop() if len(heads) == 1 else None
