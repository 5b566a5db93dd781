"""What a commit holds beside turns: the scratchpad, kept files, and what a live recorder saw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sessgit.agents.values import PLAIN
from sessgit.check.verifying.turns import Where
from sessgit.history import pad_lists, session_files
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.finding import Finding
from sessgit.model.pad import Entry
from sessgit.store import layout
from sessgit.store.store import Store

_SEEN = ("todos", "tasks", "plans")
_NOTE = ("session", "system", "id")
REDACTED = b"[redacted:"
"""With this begins what stands in the place of a secret."""


def check(store: Store, commit: str, name: str, oid: str, where: Where) -> Iterator[Finding]:
    """What is wrong with one of the folders of a commit's tree, beside what every tree must be."""
    if name == layout.PAD:
        yield from _pad(store, commit, where)
    elif name == layout.KEPT:
        yield from _kept(store, oid, where)
    elif name == layout.LIVE:
        for folder, (entry, is_tree) in store.repo.tree(oid).items():
            inside = store.repo.tree(entry) if is_tree else {}
            if folder not in _SEEN or not inside or any(not PLAIN.fullmatch(one) for one in inside):
                shown = canonical.one_line(folder, 60)
                yield where.found("wrong", "tree", f"{name}/{shown} is a file that no recorder writes")


def _pad(store: Store, commit: str, where: Where) -> Iterator[Finding]:
    """The lists of the scratchpad: what is no entry, how entries are written, and what is beyond their bounds."""
    held = pad_lists.read_lists(store, commit)
    found = pads.read_pad(held)
    if found.passed:
        lines = "line that is not an entry" if found.passed == 1 else "lines that are not entries"
        yield where.found("note", "pad", f"the pad has {found.passed:,} {lines}; they are kept, but ignored")
    for name, data in held.items():
        if not data.endswith(b"\n"):
            what = "does not end with a newline" if data else "is empty"
            yield where.found("wrong", "pad", f"{layout.PAD}/{name}.jsonl {what}")
        if data.count(b"\n") > pads.MOST:
            yield where.found("note", "pad", f"its list {name} has more than {pads.MOST} entries")
    if sum(map(len, held.values())) > pads.LARGEST:
        yield where.found("note", "pad", "its scratchpad is larger than 1 MiB, so nothing can be added")
    yield from _entries(found.entries, where)


def _entries(entries: Sequence[Entry], where: Where) -> Iterator[Finding]:
    renamed = [one for one in entries if not _is_named(one)]
    if renamed:
        yield where.found("wrong", "pad", f"{_counted(renamed)} an id that does not match its text")
    rewritten = [one for one in entries if pads.entry_with_line(one).line != one.line]
    if rewritten:
        yield where.found("wrong", "pad", f"{_counted(rewritten)} a line in another form than entries have")
    long = [one for one in entries if len(one.text) > _longest(one)]
    if long:
        yield where.found("note", "pad", f"{_counted(long)} more characters than entries may have")


def _is_named(entry: Entry) -> bool:
    """Whether an entry has the id of its words; one whose system knew of no cycle has that of the first, and of words
    that were redacted since nobody can tell."""
    named = {pads.entry_with_line(replace(entry, id="", cycle=cycle)).id for cycle in (entry.cycle, 1)}
    return entry.id in named or REDACTED in entry.line


def _longest(entry: Entry) -> int:
    return pads.LONGEST_DOCUMENT if entry.kind in ("thesis", "pass") else pads.LONGEST


def _counted(entries: Sequence[Entry]) -> str:
    more = f" and {len(entries) - 1} more have" if len(entries) > 1 else " has"
    return f"the {entries[0].kind} {entries[0].id}{more}"


def _kept(store: Store, oid: str, where: Where) -> Iterator[Finding]:
    """The note of where a session came from; of the paths that not every system can have, git tells."""
    files = store.repo.files(oid)
    if session_files.SOURCE not in files:
        return
    try:
        note = json.loads(store.repo.blob(files[session_files.SOURCE][0]))
    except (ValueError, RecursionError):
        note = None
    is_sound = isinstance(note, dict) and all(isinstance(note.get(key), str) and note[key] for key in _NOTE)
    if not is_sound or note.get("version") != 1 or not isinstance(note.get("said"), dict):
        place = f"{layout.KEPT}/{session_files.SOURCE}"
        yield where.found("wrong", "kept", f"{place} does not name the source of the session")
