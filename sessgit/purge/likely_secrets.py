"""Likely secrets that stand in what was recorded, found by the rules of now: each has an id, and none is ever shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from sessgit import agents
from sessgit.errors import AmbiguousError, NotFoundError, SessgitError
from sessgit.model.progress import Progress
from sessgit.purge import scan
from sessgit.redact.replacer import Secret, secrets_of_line
from sessgit.redact.value_match import LONGEST, SHORTEST
from sessgit.store import layout, refs
from sessgit.store.secrets import denylist, objects
from sessgit.store.store import Store

_ENCODED_TEXT = re.compile(
    rb"(?:[A-Za-z0-9+/_-]{24,}\r?\n)*[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{1,76})?(?![A-Za-z0-9+/_-])={0,2}"
)
_TEXT = re.compile(rb"[\t\r\n -~]{16,}")
_TO_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_FIND_HINT = "`sessgit purge --find` lists them."
_SHORTEST_ID = 4
_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class LikelySecret:
    """A likely secret: `id` is the same in this store for ever, `kind` what the rules call it, `length` in characters,
    `count` in how many lines it stands, `places` the first addresses of where; `value` must never be shown."""

    id: str
    kind: str
    length: int
    count: int
    value: str
    places: tuple[str, ...] = ()


def find_likely_secrets(store: Store, progress: Progress) -> list[LikelySecret]:
    """What the rules of now would replace in the store, those first that stand in most lines.

    They are looked for in base64 and hex, too. Nothing else is found of what was recorded with these rules: it was
    replaced then.
    """
    found: dict[str, tuple[str, int]] = {}
    blobs: dict[str, set[str]] = {}
    for one in objects.all_objects(store.path, progress):
        if one.kind != "blob":
            continue
        for secret in (*_secrets_in_text(one.data), *_secrets_in_encoded(one.data)):
            try:
                value = secret.value.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if SHORTEST <= len(secret.value) <= LONGEST:
                kind, count = found.get(value, (secret.kind, 0))
                found[value] = kind, count + 1
                blobs.setdefault(one.id, set()).add(value)
    places = _places_by_value(store, blobs) if found else {}
    every = [
        LikelySecret(
            denylist.value_id(store.beside, value),
            kind,
            len(value),
            count,
            value,
            tuple(places.get(value, ()))[:_MOST_PLACES],
        )
        for value, (kind, count) in found.items()
    ]
    return sorted(every, key=lambda one: (-one.count, one.id))


def _secrets_in_text(data: bytes) -> Iterator[Secret]:
    return (secret for line in data.split(b"\n") for secret in secrets_of_line(line, _protected()))


def _secrets_in_encoded(data: bytes) -> Iterator[Secret]:
    """What stands in base64 or hex in the strings and texts of a file, also where that is broken into lines."""
    for text in scan.file_texts(data):
        for found in _ENCODED_TEXT.finditer(text.encode("utf-8", "surrogatepass")):
            code = b"".join(found[0].split())
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


def _places_by_value(store: Store, blobs: dict[str, set[str]]) -> dict[str, dict[str, None]]:
    """For each value the addresses where it stands now, those of whole conversations before their rewound branches."""
    found: dict[str, dict[str, None]] = {}
    known: dict[str, frozenset[str]] = {}

    def below(oid: str, is_tree: bool) -> frozenset[str]:
        if not is_tree:
            return frozenset(blobs.get(oid, ()))
        if oid not in known:
            known[oid] = frozenset[str]().union(*(below(*entry) for entry in store.repo.tree(oid).values()))
        return known[oid]

    def note(values: Iterable[str], address: str) -> None:
        for value in values:
            found.setdefault(value, {})[address] = None

    spaces = (layout.HEADS, layout.ARCHIVE)
    tips = [(layout.split_ref(ref), tip) for ref, tip in refs.read_all(store.path).items()]
    for (_, name), tip in sorted((one for one in tips if one[0][0] in spaces), key=lambda one: "." in one[0][1]):
        try:
            entries = store.repo.tree(store.commit(tip).tree)
            for group in store.repo.tree(entries[layout.TURNS][0]).values() if layout.TURNS in entries else ():
                for number, folder in store.repo.tree(group[0]).items() if below(*group) else ():
                    note(below(*folder), f"{name}@{int(number)}")
            for part, entry in entries.items():
                if part != layout.TURNS:
                    # Most that is said of a session repeats its turns.
                    note((v for v in below(*entry) if not _is_in_session(name, found.get(v, {}))), name)
        except (SessgitError, ValueError):
            continue  # what cannot be read has no address
    return found


def _is_in_session(session: str, addresses: Iterable[str]) -> bool:
    return any(one.startswith(f"{session}@") for one in addresses)


def find_by_id(every: list[LikelySecret], prefix: str) -> LikelySecret:
    """The one whose id begins so; raises NotFoundError or AmbiguousError."""
    matching = [one for one in every if len(prefix) >= _SHORTEST_ID and one.id.startswith(prefix.lower())]
    if not matching:
        raise NotFoundError(f"no likely secret has an id that starts with “{prefix}”", _FIND_HINT)
    if len(matching) > 1:
        raise AmbiguousError(f"“{prefix}” could be any of {', '.join(one.id for one in matching)}", _FIND_HINT)
    return matching[0]


@cache
def _protected() -> frozenset[str]:
    """The keys whose values no agent's lines have changed."""
    return frozenset().union(*(agent.protected_keys for agent in agents.every()))
