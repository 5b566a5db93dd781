"""Which commit took the place of which one when values were purged: what leads to an old one must not come back."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sessgit.errors import StoreError
from sessgit.store.layout import StorePaths
from sessgit.store.secrets.denylist import sync
from sessgit.store.store import write_private

_PAIR = re.compile(r"^([0-9a-f]{40}) ([0-9a-f]{40})$", re.MULTILINE)


def load_map(beside: StorePaths) -> dict[str, str]:
    """By each commit that is no more the one that stands for it now."""
    try:
        pairs = dict(_PAIR.findall(beside.rewritten.read_text("ascii", "replace")))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {beside.rewritten}: {error.strerror or error}") from error
    out = dict[str, str]()
    for old, first in pairs.items():
        new, met = first, {old}
        while new in pairs and new not in met:
            met.add(new)
            new = pairs[new]
        out[old] = new
    return out


def add_commits(beside: StorePaths, commits: Mapping[str, str]) -> None:
    """Notes more of them, on the disk when it returns."""
    if commits:
        _write_map(beside, {**load_map(beside), **commits})


def forget_existing(beside: StorePaths, there: Collection[str]) -> dict[str, str]:
    """Forgets those that are still there, and returns the others, as `load_map` does."""
    known = load_map(beside)
    kept = {old: new for old, new in known.items() if old not in there}
    if kept != known:
        _write_map(beside, kept)
    return kept


def _write_map(beside: StorePaths, pairs: Mapping[str, str]) -> None:
    write_private(beside.rewritten, "".join(f"{old} {new}\n" for old, new in pairs.items()).encode("ascii"))
    sync(beside.rewritten)
