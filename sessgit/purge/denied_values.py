"""Purged values that are blocked: listed and lifted by their ids, and whether they still are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from sessgit.errors import AmbiguousError, ConflictError, NotFoundError, SessgitError
from sessgit.model.finding import Finding
from sessgit.model.humanize import format_count
from sessgit.store import locks, operations, secret_filter
from sessgit.store.layout import StorePaths
from sessgit.store.secret_filter import DeniedValue

_LIST_HINT = "`sessgit purge --list` lists purged values."
_SHORTEST_ID = 4
_LOCK_WAIT = 10.0


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_HasId)


def find_by_id(every: Sequence[T], prefix: str, kind: str, hint: str) -> T:
    """Return the one whose id begins with a prefix; raises NotFoundError or AmbiguousError."""
    matches = [one for one in every if len(prefix) >= _SHORTEST_ID and one.id.startswith(prefix.lower())]
    if not matches:
        raise NotFoundError(f"no {kind} has an id that starts with “{prefix}”", hint)
    if len(matches) > 1:
        raise AmbiguousError(f"“{prefix}” could be any of {', '.join(one.id for one in matches)}", hint)
    return matches[0]


def list_denied(paths: StorePaths) -> list[DeniedValue]:
    """Return all values that were purged and not lifted, lost ones first, then the oldest."""
    return [*secret_filter.lost_values(paths), *secret_filter.denied_values(paths)]


def allow_value(paths: StorePaths, prefix: str) -> DeniedValue:
    """Let the value whose id begins with a prefix be stored again, and return it.

    Raises NotFoundError or AmbiguousError, and ConflictError while another process is purging or packing the store.
    """
    with locks.maintenance_lock(paths, _LOCK_WAIT) as lock:
        if not lock:
            what = "another process is purging or packing the store"
            raise ConflictError(what, "Nothing was changed. Try again later.")
        if paths.purging.exists():
            raise ConflictError("a purge was interrupted", "Nothing was changed. `sessgit doctor --fix` completes it.")
        value = find_by_id(list_denied(paths), prefix, "purged value", _LIST_HINT)
        secret_filter.allow_value(paths, value)
        return value


def denied_value_findings(paths: StorePaths) -> Iterator[Finding]:
    """Return a finding for purged values that can be stored again."""
    if lost := secret_filter.lost_values(paths):
        were, them = ("was", "it") if len(lost) == 1 else ("were", "them")
        what = f"{format_count(len(lost), 'value')} that {were} purged can be stored again"
        what += f": the key that recognized {them} is gone"
        hint = "Purge them again, or remove one from this list: `sessgit purge --lift ID`"
        yield Finding("wrong", "purge", f"state/{paths.forbidden_lost.name}", what, hint)
    elif not paths.forbidden.exists() and (times := _purge_times(paths)):
        done = "a purge was" if len(times) == 1 else f"{len(times)} purges were"
        what = f"{done} made, the first on {times[0][:10]}, and the list of purged values is gone"
        yield Finding("wrong", "purge", f"state/{paths.forbidden.name}", what, "Purge the same values again.")


def _purge_times(paths: StorePaths) -> list[str]:
    """Return when values were purged, as the journal says."""
    try:
        return [one.time for one in operations.read(paths) if one.command == operations.PURGE]
    except SessgitError:  # `verify` reports it
        return []
