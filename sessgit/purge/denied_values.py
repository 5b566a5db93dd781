"""What is kept out of a store: listed and lifted, and whether it still is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessgit.errors import AmbiguousError, ConflictError, NotFoundError, SessgitError
from sessgit.model.finding import Finding
from sessgit.model.humanize import format_count
from sessgit.store import journal, locks, operations
from sessgit.store.layout import StorePaths
from sessgit.store.secrets import denylist

_LIST_HINT = "`sessgit purge --list` lists purged values."
_SHORTEST_ID = 4
_LOCK_WAIT = 10.0


@dataclass(frozen=True, slots=True)
class DeniedValue:
    """A value that was purged, by its id; `time` is when, in RFC 3339. A `lost` one is not kept out any more, since the
    key that told it is gone."""

    id: str
    time: str
    lost: bool = False


def list_denied(beside: StorePaths) -> list[DeniedValue]:
    """All values that were purged and not lifted, the oldest first; never what they are."""
    gone = [DeniedValue(one.id, one.time, lost=True) for one in denylist.lost_values(beside)]
    return [*gone, *(DeniedValue(one.id, one.time) for one in denylist.denied_values(beside))]


def allow_value(beside: StorePaths, prefix: str) -> DeniedValue:
    """Lets the value whose id begins so be stored again, and returns it.

    Raises NotFoundError or AmbiguousError, and ConflictError while another process is purging or packing the store.
    """
    with locks.maintenance_lock(beside, _LOCK_WAIT) as lock:
        if not lock:
            raise ConflictError(
                "another process is purging or packing the store", "Nothing was changed. Try again later."
            )
        if beside.purging.exists():
            raise ConflictError("a purge was interrupted", "Nothing was changed. `sessgit doctor --fix` completes it.")
        found = [
            one for one in list_denied(beside) if len(prefix) >= _SHORTEST_ID and one.id.startswith(prefix.lower())
        ]
        if not found:
            raise NotFoundError(f"no purged value has an id that starts with “{prefix}”", _LIST_HINT)
        if len(found) > 1:
            raise AmbiguousError(f"“{prefix}” could be any of {', '.join(one.id for one in found)}", _LIST_HINT)
        denylist.allow_value(beside, denylist.DeniedValue(found[0].id, found[0].time, ()))
        return found[0]


def denied_value_findings(beside: StorePaths) -> Iterator[Finding]:
    """What was purged and is not kept out any more."""
    if gone := denylist.lost_values(beside):
        many = (
            f"{format_count(len(gone), 'value')} that {'was' if len(gone) == 1 else 'were'} purged can be stored again"
        )
        yield Finding(
            "wrong",
            "purge",
            f"state/{beside.forbidden_lost.name}",
            f"{many}: the key that recognized {'it' if len(gone) == 1 else 'them'} is gone",
            "Purge them again, or remove one from this list: `sessgit purge --lift ID`",
        )
    elif not beside.forbidden.exists() and (times := _purge_times(beside)):
        done = "a purge was" if len(times) == 1 else f"{len(times)} purges were"
        what = f"{done} made, the first on {times[0][:10]}, and the list of purged values is gone"
        yield Finding("wrong", "purge", f"state/{beside.forbidden.name}", what, "Purge the same values again.")


def _purge_times(beside: StorePaths) -> list[str]:
    """When values were purged, as the operations say."""
    try:
        return [one.time for one in journal.read(beside) if one.command == operations.PURGE]
    except SessgitError:  # that they cannot be read, `verify` tells
        return []
