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
from typing import Any

from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.model.secrets.needles import Hashed, Print
from sessgit.store.layout import Beside
from sessgit.store.store import write_private

_VERSION = 1
_WHY = "What it keeps out is not known. Put it back, or delete it and purge the values again."


@dataclass(frozen=True, slots=True)
class Value:
    """A value that was purged, by its id, eight hexadecimal digits; `time` is when, in RFC 3339."""

    id: str
    time: str
    prints: tuple[Print, ...]


def values(beside: Beside) -> list[Value]:
    """All values, the oldest first; raises StoreError where the list cannot be read: it must not be passed over."""
    try:
        document = json.loads(beside.forbidden.read_bytes())
        if document["version"] != _VERSION:
            raise StoreError(f"{beside.forbidden} is of a later sessgit", "Install a newer sessgit.")
        return [_value(one) for one in document["values"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(f"the list of what was purged cannot be read: {beside.forbidden}", _WHY) from error


def finder(beside: Beside, known: Iterable[Value]) -> Hashed:
    """Finds these values."""
    return Hashed(_key(beside), [one for value in known for one in value.prints])


def ident(beside: Beside, value: str) -> str:
    """The id that a value has in this store."""
    return finder(beside, ()).prints(value)[0].hash.hex()[:8]


def add(beside: Beside, wanted: Iterable[str], now: float) -> list[Value]:
    """Forbids values from now on, on the disk when it returns, and returns how they are known."""
    known = {one.id: one for one in values(beside)}
    maker, out = finder(beside, ()), list[Value]()
    for value in wanted:
        prints = tuple(maker.prints(value))
        one = Value(prints[0].hash.hex()[:8], canonical.rfc3339(now), prints)
        out.append(known.setdefault(one.id, one))
    document: dict[str, Any] = {"version": _VERSION, "values": [_json(one) for one in known.values()]}
    write_private(beside.forbidden, json.dumps(document).encode())
    sync(beside.forbidden)
    return out


def sync(path: Path) -> None:
    """Returns once a file that was just put in its place is on the disk."""
    for place in (path, path.parent):
        with suppress(OSError):  # a folder cannot be synced everywhere
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _key(beside: Beside) -> bytes:
    try:
        return beside.key.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {beside.key}: {error}", "Without it nobody knows what was purged.") from error


def _json(one: Value) -> dict[str, Any]:
    prints = [
        {
            "length": each.length,
            "tail": each.tail.decode("ascii"),
            "hash": each.hash.hex(),
            "base64": each.is_base64,
            **({"lines": True} if each.many_lines else {}),
        }
        for each in one.prints
    ]
    return {"id": one.id, "time": one.time, "forms": prints}


def _value(document: dict[str, Any]) -> Value:
    prints = tuple(
        Print(
            int(one["length"]),
            one["tail"].encode("ascii"),
            bytes.fromhex(one["hash"]),
            one["base64"] is True,
            one.get("lines") is True,
        )
        for one in document["forms"]
    )
    if not all(0 < len(one.tail) <= one.length for one in prints):
        raise ValueError("a form without an end")
    return Value(str(document["id"]), str(document["time"]), prints)
