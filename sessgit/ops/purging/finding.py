"""Likely secrets that stand in what was recorded, found by the rules of now: each has an id, and none is ever shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sessgit.errors import AmbiguousError, NotFoundError
from sessgit.model.secrets import redact
from sessgit.model.secrets.needles import LONGEST, SHORTEST
from sessgit.store.layout import Beside
from sessgit.store.secrets import forbidden, objects

_HINT = "sessgit purge --find lists them."
_SHORTEST_ID = 4


@dataclass(frozen=True, slots=True)
class Likely:
    """A likely secret: `id` is the same in this store for ever, `kind` what the rules call it, `length` in characters,
    `count` in how many lines it stands; `value` must never be shown."""

    id: str
    kind: str
    length: int
    count: int
    value: str


def likely(store: Path, progress: Callable[[int, int], None]) -> list[Likely]:
    """What the rules of now would replace in the store, those first that stand in most lines.

    Nothing is found of what was recorded with these rules: it was replaced then.
    """
    found: dict[str, tuple[str, int]] = {}
    for one in objects.every(store, progress):
        if one.kind != "blob":
            continue
        for line in one.data.split(b"\n"):
            for secret in redact.secrets_of_line(line):
                try:
                    value = secret.value.decode("utf-8")
                except UnicodeDecodeError:
                    continue
                if SHORTEST <= len(secret.value) <= LONGEST:
                    kind, count = found.get(value, (secret.kind, 0))
                    found[value] = kind, count + 1
    beside = Beside(store)
    every = [
        Likely(forbidden.ident(beside, value), kind, len(value), count, value)
        for value, (kind, count) in found.items()
    ]  # fmt: skip
    return sorted(every, key=lambda one: (-one.count, one.id))


def named(every: list[Likely], prefix: str) -> Likely:
    """The one whose id begins so; raises NotFoundError or AmbiguousError."""
    matching = [one for one in every if len(prefix) >= _SHORTEST_ID and one.id.startswith(prefix.lower())]
    if not matching:
        raise NotFoundError(f"no likely secret has an id that begins with “{prefix}”", _HINT)
    if len(matching) > 1:
        raise AmbiguousError(f"“{prefix}” could be any of {', '.join(one.id for one in matching)}", _HINT)
    return matching[0]
