"""The state of a session and its scratchpad without the values that must go."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessgit.history.pad_lists import SUFFIX
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.purge import turn_folders
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store.store import Store

Entry = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class StateChanges:
    """What is another one in a state: so many secrets more, the first lines of prompts, and the hash of the beginning
    that a fork wrote, ``""`` where that stays."""

    added: int
    prompts: Mapping[str, str]
    prefix: str = ""


def rewrite_state(
    data: bytes, matcher: ValueMatcher, values: Sequence[str], mapped: Callable[[str], str], news: StateChanges
) -> bytes:
    """The `session.json` with the news: its strings without the values, the commits in it those of now."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return value_match.clean_text(data, matcher)[0]
    if not isinstance(document, dict):
        return value_match.clean_lines(data, matcher)[0]
    meta, origin, rules = (document.get(key) for key in ("metadata", "origin", "rules"))
    first = meta.get("first_prompt") if isinstance(meta, dict) else None
    if isinstance(meta, dict) and isinstance(first, str) and first in news.prompts:
        meta["first_prompt"] = news.prompts[first]
    if isinstance(origin, dict) and isinstance(origin.get("commit"), str):
        origin["commit"] = mapped(origin["commit"])
        if news.prefix:
            origin["prefix_sha256"] = news.prefix
    if news.added and isinstance(rules, dict):
        known = rules.get("redacted")
        rules["redacted"] = (known if type(known) is int else 0) + news.added
    return canonical.dumps(_clean_value(document, matcher, values))


def origin_of(data: bytes) -> dict[str, Any]:
    """Where the session left another one, as its state says; empty where it says nothing."""
    if b'"origin": null' in data:
        return {}
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    origin = found.get("origin") if isinstance(found, dict) else None
    return origin if isinstance(origin, dict) else {}


def _clean_value(value: Any, matcher: ValueMatcher, values: Sequence[str]) -> Any:
    if isinstance(value, str):
        clean, count = value_match.clean_text(value.encode("utf-8", "surrogatepass"), matcher)
        text = clean.decode("utf-8", "surrogatepass") if count else value
        return value_match.cut_short(text, values) if "…" in text else text
    if isinstance(value, list):
        return [_clean_value(one, matcher, values) for one in value]
    if isinstance(value, dict):
        return {_clean_value(key, matcher, values): _clean_value(one, matcher, values) for key, one in value.items()}
    if type(value) in (int, float) and matcher.holds(str(value).encode()):
        return 0
    return value


def rewrite_pad(store: Store, tree: str, matcher: ValueMatcher) -> Entry | None:
    """The scratchpad: an entry in other words has another id, and what names it follows."""
    entries = store.repo.tree(tree)
    changes: dict[str, Entry | None] = {}
    found: dict[str, tuple[str, list[bytes]]] = {}
    ids = dict[str, str]()
    kinds = {f"{name}{SUFFIX}": kind for kind, name in pads.LISTS.items()}
    for name, entry in entries.items():
        if name in kinds and not entry[1]:
            old = store.repo.blob(entry[0]).split(b"\n")
            found[name] = kinds[name], [_rewrite_line(kinds[name], line, matcher, ids) for line in old]
        else:
            new = turn_folders.blob(store, entry, matcher)
            called = turn_folders.file_name(name, matcher)
            if (called, new) != (name, entry):
                changes |= {name: None, called: new} if called != name else {name: new}
    for name, (kind, lines) in found.items():
        data = b"\n".join(_rename_references(kind, line, ids) for line in lines)
        if data != store.repo.blob(entries[name][0]):
            changes[name] = (store.repo.write_blob(data), False)
    return (store.repo.edit_tree(tree, changes), True) if changes else (tree, True)


def _rewrite_line(kind: str, line: bytes, matcher: ValueMatcher, ids: dict[str, str]) -> bytes:
    """The line without the values; what id its entry has then is noted where it is another one."""
    clean, count = value_match.clean_lines(line, matcher)
    old, new = (pads.parse_entry(kind, line), pads.parse_entry(kind, clean)) if count else (None, None)
    if old is None or new is None or pads.entry_with_line(replace(old, id="")).id != old.id:
        return clean
    made = pads.entry_with_line(replace(new, id=""))
    ids[old.id] = made.id
    return made.line


def _rename_references(kind: str, line: bytes, ids: Mapping[str, str]) -> bytes:
    entry = pads.parse_entry(kind, line) if ids and kind == "tension" else None
    if entry is None or not ids.keys() & set(entry.between):
        return line
    return pads.entry_with_line(replace(entry, between=tuple(ids.get(one, one) for one in entry.between))).line


def bytes_hash(data: bytes) -> str:
    """The hash by which a beginning is known."""
    return hashlib.sha256(data).hexdigest()
