"""The values that were purged from the store, as keyed hashes: whatever is stored is held against them.

The list lies beside the repository and never leaves the machine. Nobody can read a value out of it; who has the
store's key and guesses one can tell whether it is right.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

if TYPE_CHECKING:
    from sessgit.redact.value_match import Fingerprint, ValueMatcher

_VERSION = 1
_UNREADABLE_HINT = "Restore it, or delete it and purge the values again."
_NO_KEY_HINT = "Without it, purged values cannot be recognized. Restore it, or create a new one: `sessgit doctor --fix`"


@dataclass(frozen=True, slots=True)
class DeniedValue:
    """A value that was purged, by its id, eight hexadecimal digits; `time` is when, in RFC 3339."""

    id: str
    time: str
    fingerprints: tuple[Fingerprint, ...]


def denied_values(beside: StorePaths) -> list[DeniedValue]:
    """All values, the oldest first; raises StoreError where the list cannot be read: it must not be passed over."""
    try:
        document = json.loads(beside.forbidden.read_bytes())
        if document["version"] != _VERSION:
            raise StoreError(f"{beside.forbidden} was written by a newer sessgit", "Install a newer sessgit.")
        return [_parse_value(one) for one in document["values"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(f"cannot read the list of purged values: {beside.forbidden}", _UNREADABLE_HINT) from error


def matcher(beside: StorePaths, known: Iterable[DeniedValue]) -> ValueMatcher:
    """Finds these values."""
    from sessgit.redact.value_match import ValueMatcher

    return ValueMatcher(_read_key(beside), [one for value in known for one in value.fingerprints])


def value_id(beside: StorePaths, value: str) -> str:
    """The id that a value has in this store."""
    return matcher(beside, ()).fingerprints(value)[0].hash.hex()[:8]


def lost_values(beside: StorePaths) -> list[DeniedValue]:
    """Values that were purged and are not kept out any more, since their key is gone; without fingerprints."""
    try:
        document = json.loads(beside.forbidden_lost.read_bytes())
        return [DeniedValue(str(one["id"]), str(one["time"]), ()) for one in document["values"]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []


def keep_without_fingerprints(beside: StorePaths) -> int:
    """Keeps of the list only which values were purged and when: without the key that made it nothing is told by it.

    Returns how many values are not kept out any more; there is no list afterwards."""
    try:
        every = [*lost_values(beside), *denied_values(beside)]
    except StoreError:
        every = lost_values(beside)
    _write_list(beside.forbidden_lost, every)
    beside.forbidden.unlink(missing_ok=True)
    return len(every)


def allow_value(beside: StorePaths, value: DeniedValue) -> None:
    """Allows a value again, or forgets one that the lost list named."""
    gone = lost_values(beside)
    if any(one.id == value.id for one in gone):
        left = [one for one in gone if one.id != value.id]
        if left:
            _write_list(beside.forbidden_lost, left)
        else:
            beside.forbidden_lost.unlink(missing_ok=True)
    known = denied_values(beside)
    if any(one.id == value.id for one in known):
        _write_list(beside.forbidden, [one for one in known if one.id != value.id])


def deny_values(beside: StorePaths, wanted: Iterable[str], now: float) -> list[DeniedValue]:
    """Forbids values from now on, on the disk when it returns, and returns how they are known."""
    known = {one.id: one for one in denied_values(beside)}
    maker, out = matcher(beside, ()), list[DeniedValue]()
    for value in wanted:
        fingerprints = tuple(maker.fingerprints(value))
        one = DeniedValue(fingerprints[0].hash.hex()[:8], canonical.rfc3339(now), fingerprints)
        out.append(known.setdefault(one.id, one))
    _write_list(beside.forbidden, known.values())
    return out


def _write_list(path: Path, every: Iterable[DeniedValue]) -> None:
    document: dict[str, Any] = {"version": _VERSION, "values": [_value_json(one) for one in every]}
    write_private(path, json.dumps(document).encode())
    sync(path)


def sync(path: Path) -> None:
    """Returns once a file that was just put in its place is on the disk."""
    for place in (path, path.parent):
        with suppress(OSError):  # a folder cannot be synced everywhere
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _read_key(beside: StorePaths) -> bytes:
    try:
        return beside.key.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {beside.key}: {error.strerror or error}", _NO_KEY_HINT) from error


def _value_json(one: DeniedValue) -> dict[str, Any]:
    fingerprints = [
        {
            "length": each.length,
            "tail": each.tail.decode("ascii"),
            "hash": each.hash.hex(),
            "base64": each.is_code,
            **({"lines": True} if each.has_lines else {}),
            **({"head": each.head.decode("ascii")} if each.head else {}),
        }
        for each in one.fingerprints
    ]
    return {"id": one.id, "time": one.time, "forms": fingerprints}


def _parse_value(document: dict[str, Any]) -> DeniedValue:
    from sessgit.redact.value_match import Fingerprint

    fingerprints = tuple(
        Fingerprint(
            int(one["length"]),
            one["tail"].encode("ascii"),
            bytes.fromhex(one["hash"]),
            one["base64"] is True,
            one.get("lines") is True,
            one.get("head", "").encode("ascii"),
        )
        for one in document["forms"]
    )
    if not all(0 < len(one.tail) <= one.length for one in fingerprints):
        raise ValueError("a form without an end")
    return DeniedValue(str(document["id"]), str(document["time"]), fingerprints)
