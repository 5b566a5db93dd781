"""The conversation, turn or cell that an address names, recorded as far as the client's transcript goes, or as it was
after an operation."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sessgit.cli import frame, render, text
from sessgit.cli.invocation import Invocation
from sessgit.errors import AmbiguousError, DamageError, NotFoundError, StoreError, UnreadableError, UsageError
from sessgit.history import resolve
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.turn_log import commits_touching, sessions_touching
from sessgit.model import canonical, humanize
from sessgit.model.frozen import frozen
from sessgit.model.ids import Address, parse_address
from sessgit.record import catch_up
from sessgit.store import layout, operations, refs

if TYPE_CHECKING:
    from sessgit.history.at_operation import PastStore
    from sessgit.store.index import Index
    from sessgit.store.remotes import Connection, Remote

_CELL_ID = re.compile(r"(?:(?P<session>[^@]*)@\.?)?(?P<cell>cell_[0-9a-z]{8})")
_BARE_CELL = re.compile(r"\d+\.\d+")
_addressed: ContextVar[str] = ContextVar("addressed", default="")
"""The session that the command is about, for the hint of an error."""


def target(cli: Invocation, text: str, at: str | None = None, *, changes: bool = False) -> ResolvedTarget:
    """Return what an address names, recorded first; say so if the session was guessed, or cannot be recorded.

    The session is resolved first and its turn only after recording: the turn may be one that is not recorded yet. `at`
    is a turn apart from the address. For a command that `changes` something, a doubtful guess is refused.
    """
    address = _parse(cli, text, at)
    with _note_unreadable(cli, address.session):
        resolved, result = catch_up.find_session(cli.context, address.session, cli.where, changes=changes)
    _announce(cli, resolved)
    if result.off:
        render.tell(f"{cli.ident(resolved.session)} has turns that are not recorded: {result.why}")
    elif not result.level:
        render.tell(f"{cli.ident(resolved.session)}: {result.why}")
    turn = resolved.turn if address.turn is None else address.turn
    return resolve.resolve_target(cli.index, Address(resolved.branch.name, turn, address.cell), cli.where)


def whole_turn(cli: Invocation, text: str, command: str, *, changes: bool = False) -> ResolvedTarget:
    """Return what an address names, for a command that takes no single cell; see `target`."""
    resolved = target(cli, text, changes=changes)
    check_no_cell(cli, resolved, command)
    return resolved


def check_no_cell(cli: Invocation, resolved: ResolvedTarget, command: str) -> None:
    """Raise UsageError if an address names a cell; `command` is what to type before an address."""
    if resolved.cell:
        turn = f"{cli.ident(resolved.branch.name)}@{resolved.turn}"
        hint = f"`sessgit {command} {turn}`, or `sessgit show {turn}.{resolved.cell}` for the cell."
        raise UsageError(f"{command.partition(' ')[0]} needs a whole turn, but the address names a cell.", hint)


def target_or_cell_id(cli: Invocation, text: str) -> ResolvedTarget:
    """Return what an address names; also `cell_xxxxxxxx` in the current session, or `A@.cell_xxxxxxxx`."""
    match = _CELL_ID.fullmatch(text)
    if match is None:
        return target(cli, text)
    from sessgit.history import cells

    resolved = target(cli, match["session"] or "")
    node = cells.find_by_id(cli.context, resolved.branch, match["cell"])
    return replace(resolved, turn=node.turn, cell=str(node.ordinal))


def cell(cli: Invocation, text: str, command: str) -> ResolvedTarget:
    """Return the cell that an address names; raise UsageError if it names none. It may not be there."""
    if _BARE_CELL.fullmatch(text):
        raise UsageError(
            f"{text} does not name a conversation", f"In the current session: `sessgit {command} @{text}`."
        )
    resolved = target_or_cell_id(cli, text)
    if not resolved.cell:
        name = cli.ident(resolved.branch.name)
        hint = f"`sessgit cells {name}` lists them. For example: `sessgit {command} {name}@{resolved.turn or 1}.1`"
        raise UsageError(f"{command} needs a cell, but “{text}” does not name one.", hint)
    return resolved


def recorded(cli: Invocation, text: str) -> ResolvedTarget:
    """Return what an address names, as it is recorded, for a command that changes it."""
    with _note_unreadable(cli, text.partition("@")[0]):
        resolved = resolve.resolve_target(cli.index, _parse(cli, text), cli.where, changes=True)
    _announce(cli, resolved)
    return resolved


def branch(cli: Invocation, text: str) -> str:
    """Return the branch that an address names, as it is recorded; its turn is ignored.

    If the branch cannot be read, so that no index has it, the beginning of its id is enough.
    """
    try:
        return recorded(cli, text).branch.name
    except (NotFoundError, DamageError, StoreError):
        name = _unreadable_branch(cli, text.partition("@")[0])
        if name is None:
            raise
        return name


def current(cli: Invocation) -> ResolvedTarget | None:
    """Return the current session, recorded as far as its transcript goes, or None; print nothing."""
    try:
        resolved = resolve.resolve_target(cli.index, Address(), cli.where)
    except NotFoundError:
        return None
    catch_up.catch_up(cli.context, resolved.state)
    cli.index.sync(resolved.session)
    return resolve.resolve_target(cli.index, Address(resolved.branch.name), cli.where)


def addressed() -> str:
    """Return the id, as it is shown, of the session that the command was about, or ""."""
    return _addressed.get()


def repair_hint(otherwise: str) -> str:
    """Return what to do if something cannot be read of the conversation that a command is about."""
    session = _addressed.get()
    return f"`sessgit repair {humanize.quote_for_shell(session)}` restores what it can." if session else otherwise


def _parse(cli: Invocation, text: str, at: str | None = None) -> Address:
    return resolve.resolve_address(cli.index, text, at) if cli.has_store else parse_address(text, at)


def _announce(cli: Invocation, resolved: ResolvedTarget) -> None:
    _addressed.set(cli.ident(resolved.session))
    if resolved.guess:
        render.tell(f"({resolved.guess})")


@contextmanager
def _note_unreadable(cli: Invocation, start: str) -> Iterator[None]:
    """Note which conversation cannot be read, for the hint."""
    try:
        yield
    except UnreadableError:
        _addressed.set(cli.ident(layout.session_of(_unreadable_branch(cli, start) or "")))
        raise


def _unreadable_branch(cli: Invocation, start: str) -> str | None:
    if len(start) < resolve.SHORTEST_PREFIX:
        return None
    every = {*refs.branches(cli.env.store), *operations.branches_without_tips(cli.env.store)}
    names = {name for name in every if name.startswith(start)}
    sessions = {layout.session_of(name) for name in names}
    return start if start in names else sessions.pop() if len(sessions) == 1 else None


_GIT_VARIABLES = re.compile(
    r"GIT_(SSH(_COMMAND|_VARIANT)?|ASKPASS|TERMINAL_PROMPT|SSL_.+|HTTP_.+|PROXY_.+|ALLOW_PROTOCOL"
    r"|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+))"
)
"""The variables that git gets, for authentication and for the user's own configuration. Others, which a git hook or
alias sets, name a repository, an index or objects, and would move the work elsewhere; or they mix a trace into the
output."""
_SHOWN_AFTER = 1.0
_EACH = 0.1


def chosen(cli: Invocation, first: str, others: Sequence[str]) -> tuple[Remote, tuple[str, ...]]:
    """Return the remote that the first word names, and the addresses; the only remote need not be named."""
    from sessgit.store import remotes

    known = [remote.name for remote in remotes.list_remotes(cli.env.store)]
    if first in known:
        return remotes.find_remote(cli.env.store, first), tuple(others)
    if len(known) > 1 and first:
        raise UsageError(f"“{first}” is not a remote; there are {', '.join(known)}.", "Name the remote first.")
    return remotes.find_remote(cli.env.store, ""), (first, *others) if first else ()


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
def connected(cli: Invocation, remote: Remote) -> Iterator[Connection]:
    """Connect to a remote; on a terminal, git's progress is shown on one line once it takes a second."""
    from sessgit.store.remotes import Connection

    env = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _GIT_VARIABLES.fullmatch(key)
    }
    began = last = time.monotonic()
    shown = False

    def report(piece: str) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if cli.terminal.shows_errors and now - began > _SHOWN_AFTER and now - last > _EACH:
            last, shown = now, True
            _overwrite(text.cut(text.clean(piece), cli.width - 1))

    try:
        yield Connection(remote, env, report)
    finally:
        if shown:
            _overwrite("")


def _overwrite(line: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"\r{line}\033[K")
        sys.stderr.flush()


def sessions_with_files(cli: Invocation, paths: Sequence[str]) -> set[str]:
    """Return the sessions that read or changed one of the paths."""
    return sessions_touching(cli.context, paths, cli.cwd, render.progress(cli, "Reading turns"))


def commits(cli: Invocation, paths: Sequence[str]) -> set[str]:
    """Return the last commits of the turns that read or changed one of the paths."""
    return commits_touching(cli.context, paths, cli.cwd, render.progress(cli, "Reading turns"))


# The store as it was after an operation, for a command with --at-op


@frozen
class AsOf:
    """The store as of an operation, and the index of it as it is now."""

    past: PastStore
    now: Index


def as_of(cli: Invocation, at_op: str) -> AsOf | None:
    """Give the invocation the index as of an operation, and return what was there then; None if none is named.

    Raises NotFoundError if no operation matches, or several do, and ConflictError if it was never completed.
    """
    if not at_op:
        return None
    from sessgit.history import at_operation
    from sessgit.store.index import PastIndex

    now = cli.index
    past = at_operation.as_of_operation(cli.context, at_op)
    cli.index = PastIndex(now, past.tips, past.tags)
    return AsOf(past, now)


def target_as_of(cli: Invocation, asof: AsOf | None, address: str) -> ResolvedTarget:
    """Return what the address names; as of an operation nothing is recorded for it.

    Raises NotFoundError, with the reason if it names something only now.
    """
    if asof is None:
        return target(cli, address)
    try:
        resolved = resolve.resolve_target(cli.index, _parse(cli, address), cli.where)
    except AmbiguousError:
        raise
    except NotFoundError as error:
        raise _why_missing(cli, asof, address) or error from None
    _announce(cli, resolved)
    return resolved


def as_of_headline(cli: Invocation, asof: AsOf | None) -> Iterator[str]:
    """Yield the line above a page that says as of when it is; nothing if it is as of now."""
    if asof is None:
        return
    past, operation = asof.past, asof.past.operation
    notes = [f"{text.counted(past.later, 'operation')} ago" if past.later else "the last operation"]
    if past.listed.standing == "undone":
        notes.append("undone since")
    when = text.time_of_day(cli.now, canonical.seconds(operation.time))
    before, after = f"As of {when}, after “", f"” ({', '.join(notes)})"
    room = max(12, cli.width - text.width(before) - text.width(after))
    yield from text.paragraph(cli, before + text.cut(_operation_summary(asof), room) + after, "dim")
    if past.lost:
        count = text.counted(len(past.lost), "conversation")
        yield from text.paragraph(cli, f"Not shown: {count} deleted for good by sessgit gc --prune.", "dim")


def as_of_json(asof: AsOf | None) -> dict[str, Any] | None:
    """Return what `at_op` holds in documents: null as of now."""
    if asof is None:
        return None
    past, operation = asof.past, asof.past.operation
    return {
        **frame.attributes(operation, "id", "time", "command", "summary"),
        "standing": past.listed.standing,
        "later": past.later,
        "lost": list(past.lost),
    }


def _operation_summary(asof: AsOf, limit: int = 500) -> str:
    operation = asof.past.operation
    return text.clean(operation.summary, limit) or text.clean(operation.command) or operation.id


def _why_missing(cli: Invocation, asof: AsOf, address: str) -> NotFoundError | None:
    """Return why an address names nothing as of then if it names something now, or if that was deleted for good."""
    word = resolve.resolve_address(asof.now, address).session
    try:
        name = resolve.resolve_target(asof.now, Address(word), cli.where).branch.name
    except NotFoundError:
        lost = [session for session in asof.past.lost if session.startswith(word)]
        name = lost[0] if len(lost) == 1 and len(word) >= resolve.SHORTEST_PREFIX else ""
    if layout.session_of(name) in asof.past.lost:
        hint = "`sessgit gc --prune` made the deletion final."
        return NotFoundError(f"{name[:8]} as it was then was deleted for good", hint)
    if name and cli.index.branch(name) is None:
        hint = f"`sessgit log {cli.ident(name)}` shows it as it is now."
        return NotFoundError(f"{cli.ident(name)} did not exist after “{_operation_summary(asof, 60)}”", hint)
    return None
