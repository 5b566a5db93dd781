"""The folder of a turn without the values that must go: what recording the turn anew would make of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sessgit.agents import turn_folder
from sessgit.agents.base import Agent
from sessgit.errors import ConflictError
from sessgit.model import ids, long_strings
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout
from sessgit.store.store import Store, join_lines

Entry = tuple[str, bool]
_CUT_RULES = range(long_strings.RULES_VERSION, 0, -1)
_LINES = (layout.BEFORE, layout.BODY)
_FROM_LINES = (*_LINES, layout.CELLS, layout.TEXTS)
_SIDE_REF = re.compile(r"((?:refs/(?:heads|archive)/)?[^/.]+\.[rm]-)([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class Changed:
    """The lines of a turn, `first` of them before its prompt, as they were and as they are now, with how many values
    went out of each."""

    first: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    counts: tuple[int, ...]


@dataclass
class Folders:
    """Folders of turns, each written anew once. `inexact` are those that no recording of today would have made: there
    the values went out of each file by itself."""

    store: Store
    matcher: ValueMatcher
    inexact: set[str] = field(default_factory=set)
    _done: dict[str, str] = field(default_factory=dict)
    _lines: dict[str, Changed] = field(default_factory=dict)

    def rewritten(self, agent: Agent, oid: str) -> str:
        """The folder's object without the values."""
        if oid not in self._done:
            self._done[oid] = self._written(agent, oid)
        return self._done[oid]

    def lines(self, agent: Agent, oid: str) -> Changed:
        """The lines of a folder."""
        if oid not in self._lines:
            if len(self._lines) > _MOST_KEPT:
                self._lines.clear()
            self._lines[oid] = changed(agent, self._stored(oid), self.matcher)
        return self._lines[oid]

    def _stored(self, oid: str) -> tuple[list[bytes], list[bytes]]:
        entries = self.store.repo.tree(oid)
        before, body = (_split_lines(self._blob(entries, name)) for name in _LINES)
        found = self._texts(entries)
        return long_strings.fill_long_strings(before, found), long_strings.fill_long_strings(body, found)

    def _written(self, agent: Agent, oid: str) -> str:
        entries = self.store.repo.tree(oid)
        lines = self.lines(agent, oid)
        changes: dict[str, Entry | None] = {}
        if lines.old != lines.new:
            changes = self._of_lines(agent, oid, entries, lines)
        for top in (layout.SUBAGENTS, layout.FILES):
            if top in entries and entries[top][1]:
                new = beside(self.store, entries[top][0], self.matcher)
                changes |= {top: new} if new != entries[top] else {}
        for name, entry in entries.items():
            if name not in (*_FROM_LINES, layout.SUBAGENTS, layout.FILES):
                new = blob(self.store, entry, self.matcher)
                changes |= {name: new} if new != entry else {}
        return self.store.repo.edit_tree(oid, changes) if changes else oid

    def _of_lines(
        self, agent: Agent, oid: str, entries: Mapping[str, Entry], lines: Changed
    ) -> dict[str, Entry | None]:
        stored = {name: self._blob(entries, name) for name in (*_LINES, layout.CELLS) if name in entries}
        stored |= {f"{layout.TEXTS}/{name}": data for name, data in self._texts(entries).items()}
        rules = next((n for n in _CUT_RULES if _turn_files(agent, lines.first, lines.old, n) == stored), 0)
        if rules:
            made = _turn_files(agent, lines.first, lines.new, rules)
        else:
            self.inexact.add(oid)
            made = _rewrite_files(stored, self.matcher)
        tree = self.store.write_folder(made)
        new = self.store.repo.tree(tree)
        return {name: new.get(name) for name in _FROM_LINES if name in new or name in entries}

    def _blob(self, entries: Mapping[str, Entry], name: str) -> bytes:
        return self.store.repo.blob(entries[name][0]) if name in entries and not entries[name][1] else b""

    def _texts(self, entries: Mapping[str, Entry]) -> dict[str, bytes]:
        entry = entries.get(layout.TEXTS)
        found = self.store.repo.tree(entry[0]) if entry and entry[1] else {}
        return {name: self.store.repo.blob(oid) for name, (oid, is_tree) in found.items() if not is_tree}


_MOST_KEPT = 32


def changed(agent: Agent, stored: tuple[Sequence[bytes], Sequence[bytes]], matcher: ValueMatcher) -> Changed:
    """The lines before and behind a prompt without the values; raises ConflictError where an id is one of them."""
    identity = partial(agent.lines.identity, protected=agent.protected_keys)
    old = (*stored[0], *stored[1])
    found = [value_match.clean_lines(line, matcher) for line in old]
    for before, (after, count) in zip(old, found, strict=True):
        if count and identity(before) != identity(after):
            raise ConflictError(
                "the value is part of ids or types that link the lines of a conversation",
                "Nothing was changed. To delete a whole conversation, use `sessgit delete`.",
            )
    _check_gone(b"\n".join(line for line, _ in found), matcher)
    return Changed(len(stored[0]), old, tuple(line for line, _ in found), tuple(count for _, count in found))


def beside(store: Store, tree: str, matcher: ValueMatcher) -> Entry | None:
    """A tree of files, each of them, and its name, without the values; None where nothing is left."""
    changes: dict[str, Entry | None] = {}
    for name, entry in store.repo.tree(tree).items():
        new = beside(store, entry[0], matcher) if entry[1] else blob(store, entry, matcher)
        called = file_name(name, matcher)
        if (called, new) != (name, entry):
            changes |= {name: None, called: new} if called != name else {name: new}
    return (store.repo.edit_tree(tree, changes), True) if changes else (tree, True)


def blob(store: Store, entry: Entry, matcher: ValueMatcher) -> Entry:
    """A file without the values."""
    if entry[1]:
        return beside(store, entry[0], matcher) or entry
    data = store.repo.blob(entry[0])
    new, count = value_match.clean_lines(data, matcher)
    _check_gone(new, matcher)
    return (store.repo.write_blob(new), False) if count else entry


def _check_gone(clean: bytes, matcher: ValueMatcher) -> None:
    """Raises ConflictError if a value is still there: it begins in one string or line and ends in another."""
    if matcher.holds(clean):
        raise ConflictError(
            "the value spans several strings or lines",
            "Nothing was changed. Purge the part inside one string.",
        )


def file_name(name: str, matcher: ValueMatcher) -> str:
    """The name of a file without the values."""
    clean, count = value_match.clean_text(name.encode("utf-8", "surrogatepass"), matcher)
    return clean.replace(value_match.MARK, b"purged").decode("utf-8", "surrogatepass") if count else name


def side_name(ref: str, keys: Mapping[str, str]) -> str:
    """The name of a branch beside a session's head that follows from the key of a turn, by the key of now."""
    found = _SIDE_REF.fullmatch(ref)
    keys = {ids.short_id(old): ids.short_id(new) for old, new in keys.items()} if found else {}
    return found[1] + keys.get(found[2], found[2]) if found else ref


def _turn_files(agent: Agent, first: int, lines: Sequence[bytes], rules: int) -> dict[str, bytes]:
    made = agent.lines.parsed(lines)
    body = made[first:]
    every = turn_folder.files(agent, made[:first], body, agent.cells.describe(body), rules)
    return {name: bytes(data) for name, data in every.items()}


def _rewrite_files(stored: Mapping[str, bytes], matcher: ValueMatcher) -> dict[str, bytes]:
    """Each file by itself; texts get the names that they then have, and so do the markers of them."""
    out, names = dict[str, bytes](), dict[bytes, bytes]()
    for path, data in stored.items():
        top, slash, name = path.partition("/")
        if not slash:
            continue
        clean, count = value_match.clean_text(data, matcher)
        called = file_name(name, matcher)
        if count and top == layout.TEXTS:
            called = long_strings.text_digest(clean) + called[long_strings.DIGITS :]
        names[name.encode()] = called.encode()
        out[f"{top}/{called}"] = clean
    for path, data in stored.items():
        if "/" not in path:
            clean = value_match.clean_lines(data, matcher)[0]
            for old, new in names.items():
                clean = clean.replace(b'{"$text":"%s"}' % old, b'{"$text":"%s"}' % new) if old != new else clean
            out[path] = clean
    return out


def _split_lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1]


def lines_of(data: bytes) -> Iterable[bytes]:
    """The lines of a tail, each with its newline but for one that was torn."""
    *whole, torn = data.split(b"\n")
    return [*(line + b"\n" for line in whole), *([torn] if torn else [])]


__all__ = ["Changed", "Folders", "beside", "blob", "changed", "file_name", "join_lines", "lines_of"]
