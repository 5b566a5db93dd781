"""Likely secrets in the store, by the current rules: each has an id, and none is ever shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

from sessgit import agents
from sessgit.errors import SessgitError
from sessgit.model.frozen import frozen
from sessgit.model.progress import Progress
from sessgit.purge import scan
from sessgit.redact.replacer import Secret, secrets_of_line
from sessgit.redact.value_match import LONGEST, SHORTEST
from sessgit.store import object_scan, refs, secret_filter
from sessgit.store.objects import Entry
from sessgit.store.store import Store

_ENCODED_TEXT = re.compile(
    rb"(?:[A-Za-z0-9+/_-]{24,}\r?\n)*[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{1,76})?(?![A-Za-z0-9+/_-])={0,2}"
)
_TEXT = re.compile(rb"[\t\r\n -~]{16,}")
_TO_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_MOST_PLACES = 20


@frozen
class LikelySecret:
    """A likely secret. `id` is the same in this store for ever, `kind` is that of its rule, `length` is in characters,
    `count` is the number of lines with it, `places` are the first addresses; `value` must never be shown."""

    id: str
    kind: str
    length: int
    count: int
    value: str
    places: tuple[str, ...] = ()


def find_likely_secrets(store: Store, progress: Progress) -> list[LikelySecret]:
    """Return what the current rules would replace in the store, also in base64 and hex, the most frequent first.

    Of what was recorded with these rules, nothing else is left: it was replaced then.
    """
    secrets: dict[str, tuple[str, int]] = {}
    blobs: dict[str, set[str]] = {}
    for one in object_scan.all_objects(store.path, progress):
        if one.kind != "blob":
            continue
        for secret in (*_secrets_in_text(one.data), *_secrets_in_encoded(one.data)):
            try:
                value = secret.value.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if SHORTEST <= len(secret.value) <= LONGEST:
                kind, count = secrets.get(value, (secret.kind, 0))
                secrets[value] = kind, count + 1
                blobs.setdefault(one.id, set()).add(value)
    places = _places_by_value(store, blobs) if secrets else {}
    every = [
        LikelySecret(
            secret_filter.value_id(store.paths, value),
            kind,
            len(value),
            count,
            value,
            tuple(places.get(value, ()))[:_MOST_PLACES],
        )
        for value, (kind, count) in secrets.items()
    ]
    return sorted(every, key=lambda one: (-one.count, one.id))


def _secrets_in_text(data: bytes) -> Iterator[Secret]:
    return (secret for line in data.split(b"\n") for secret in secrets_of_line(line, _protected()))


def _secrets_in_encoded(data: bytes) -> Iterator[Secret]:
    """Yield the secrets in base64 or hex in the strings and texts of a file, also if it is broken into lines."""
    for text in scan.file_texts(data):
        for match in _ENCODED_TEXT.finditer(text.encode("utf-8", "surrogatepass")):
            code = b"".join(match[0].split())
            for plain in (_from_hex(code), _from_base64(code)):
                for piece in _TEXT.findall(plain):
                    yield from secrets_of_line(piece, _protected())


def _from_base64(code: bytes) -> bytes:
    whole = code.rstrip(b"=").translate(_TO_STANDARD_BASE64)
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def _from_hex(code: bytes) -> bytes:
    try:
        return bytes.fromhex(code.decode("ascii"))
    except ValueError:
        return b""


def _places_by_value(store: Store, values_of_blobs: dict[str, set[str]]) -> dict[str, dict[str, None]]:
    """Return for each value the addresses that hold it now, those of whole conversations before their rewound
    branches."""
    addresses: dict[str, dict[str, None]] = {}
    known: dict[str, frozenset[str]] = {}

    def values_in(entry: Entry) -> frozenset[str]:
        oid, is_tree = entry
        if not is_tree:
            return frozenset(values_of_blobs.get(oid, ()))
        if oid not in known:
            known[oid] = frozenset[str]().union(*map(values_in, store.repo.tree(oid).values()))
        return known[oid]

    for name, (tip, _) in sorted(refs.branches(store.path).items(), key=lambda one: "." in one[0]):
        with suppress(SessgitError, ValueError):  # what cannot be read has no address
            for turn, _, values in sorted(scan.places_with_hits(store, tip, values_in), key=lambda place: not place[0]):
                for value in values:
                    known_places = addresses.setdefault(value, {})
                    # Most that is said of a session repeats its turns.
                    if turn or not any(one.startswith(f"{name}@") for one in known_places):
                        known_places[f"{name}@{turn}" if turn else name] = None
    return addresses


@cache
def _protected() -> frozenset[str]:
    """Return the keys whose values no rule replaces, of all agents."""
    return frozenset().union(*(agent.protected_keys for agent in agents.every()))
