"""The files of a commit's tree: whether they can be read, and those that no line tells of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from sessgit.agents.base import Agent
from sessgit.agents.values import PLAIN
from sessgit.check.verifying.report import Report
from sessgit.errors import DamageError, StoreError
from sessgit.history import pad_lists, session_files
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.store import layout
from sessgit.store.backend import Repository
from sessgit.store.objects import Commit
from sessgit.store.store import Store, TurnLines

_LIVE_FOLDERS = ("todos", "tasks", "plans")
_SOURCE_KEYS = ("session", "system", "id")
REDACTED = b"[redacted:"
"""The beginning of a placeholder for a secret."""


# Trees


def check_objects(store: Store, oid: str, report: Report, checked: set[str], path: str = "") -> None:
    """Report unreadable objects at and below a tree, empty folders, and entries that are neither plain files nor
    folders. Skip objects that are `checked`, and add those that this call looks at."""
    if oid in checked:
        return
    checked.add(oid)
    try:
        entries, irregular = store.repo.tree(oid), store.repo.irregular_entries(oid)
    except StoreError:
        report.missing(store, oid, _label(path))
        return
    for name in irregular:
        report.wrong("tree", f"{canonical.one_line(name, 60)} is neither a plain file nor a folder")
    if path and not entries:
        report.wrong("tree", f"{_label(path)} is an empty folder")
    for name, (entry, is_tree) in entries.items():
        if is_tree:
            check_objects(store, entry, report, checked, f"{path}{name}/")
        elif entry not in checked and name not in irregular:
            checked.add(entry)
            if store.repo.read_problem(entry):
                report.missing(store, entry, _label(f"{path}{name}"))


def _label(path: str) -> str:
    """Return a path in a commit as users know it; in a turn's folder, the path from there on."""
    top, _, rest = path.partition("/")
    if top == layout.TURNS:
        return (rest.split("/", 2)[2:] or [path])[0] or "its folder"
    return path or "its tree"


def differing_paths(repo: Repository, one: str, other: str, above: str = "") -> Iterator[str]:
    """Yield the paths of the entries in which two trees differ."""
    entries, others = repo.tree(one), repo.tree(other)
    for name in sorted(entries.keys() | others.keys()):
        (left, is_tree), (right, is_folder) = entries.get(name, ("", False)), others.get(name, ("", False))
        if is_tree and is_folder and left != right:
            yield from differing_paths(repo, left, right, f"{above}{name}/")
        elif (left, is_tree) != (right, is_folder):
            yield f"{above}{name}"


# A turn


def turn_lines(store: Store, commit: Commit, number: int, agent: Agent, report: Report) -> TurnLines:
    """Return the lines of a turn as of a commit, and report files of the client that it cannot have. Raises DamageError
    for lines that are not whole, and StoreError if an object cannot be read."""
    entry = store.repo.entry(commit.tree, layout.turn_folder(number))
    entries = store.repo.tree(entry[0]) if entry else {}
    for name in (layout.BEFORE, layout.BODY):
        if name in entries and store.repo.lines(entries[name][0])[-1]:
            raise DamageError(f"{name} does not end with a newline")
    for top in (layout.SUBAGENTS, layout.FILES):
        for path in store.repo.files(entries[top][0], top) if top in entries else ():
            folder, _, last = path.rpartition("/")
            fits = agent.sidecars.is_subagent(last) if folder == layout.SUBAGENTS else bool(PLAIN.fullmatch(last))
            if folder not in (layout.SUBAGENTS, f"{layout.FILES}/tool-results") or not fits:
                report.wrong("tree", f"{canonical.one_line(path, 80)} is not a file of the client")
    lines = store.lines(commit.id, number) if entry else None
    if lines is None or not lines.body:
        raise DamageError(f"the turn has no {layout.BODY if entry else 'folder'}")
    return lines


# Other folders


def check_other_folder(store: Store, commit: str, name: str, oid: str, report: Report) -> None:
    """Report what is wrong with the scratchpad, kept files or live files of a commit."""
    if name == layout.PAD:
        _check_pad(store, commit, report)
    elif name == layout.KEPT:
        _check_source(store, oid, report)
    else:
        for folder, (entry, is_tree) in store.repo.tree(oid).items():
            files = store.repo.tree(entry) if is_tree else {}
            if folder not in _LIVE_FOLDERS or not files or not all(map(PLAIN.fullmatch, files)):
                report.wrong("tree", f"{name}/{canonical.one_line(folder, 60)} is a file that no recorder writes")


def _check_pad(store: Store, commit: str, report: Report) -> None:
    lists = pad_lists.read_lists(store, commit)
    pad = pads.read_pad(lists)
    if pad.passed:
        lines = "line that is not an entry" if pad.passed == 1 else "lines that are not entries"
        report.add("note", "pad", f"the pad has {pad.passed:,} {lines}; they are kept, but ignored")
    for name, data in lists.items():
        if not data.endswith(b"\n"):
            problem = "does not end with a newline" if data else "is empty"
            report.wrong("pad", f"{layout.PAD}/{name}.jsonl {problem}")
        if data.count(b"\n") > pads.MOST:
            report.add("note", "pad", f"its list {name} has more than {pads.MOST} entries")
    if sum(map(len, lists.values())) > pads.LARGEST:
        report.add("note", "pad", "its scratchpad is larger than 1 MiB, so nothing can be added")
    for entry in pad.entries:
        longest = pads.LONGEST_DOCUMENT if entry.kind in ("thesis", "pass") else pads.LONGEST
        if len(entry.text) > longest:
            report.add("note", "pad", f"the {entry.kind} {entry.id} has more characters than entries may have")
        if not _is_canonical(entry):
            report.wrong("pad", f"the {entry.kind} {entry.id} has an id or a form that does not follow from its text")


def _is_canonical(entry: pads.Entry) -> bool:
    """Return whether an entry is written in the standard form, with the id of its text. That of a redacted text cannot
    be checked."""
    has_id = pads.entry_with_line(replace(entry, id="")).id == entry.id
    return (has_id or REDACTED in entry.line) and pads.entry_with_line(entry).line == entry.line


def _check_source(store: Store, oid: str, report: Report) -> None:
    """Report an invalid note of where an imported session came from."""
    files = store.repo.files(oid)
    if session_files.SOURCE not in files:
        return
    try:
        note = json.loads(store.repo.blob(files[session_files.SOURCE][0]))
    except (ValueError, RecursionError):
        note = None
    is_named = isinstance(note, dict) and all(isinstance(note.get(key), str) and note[key] for key in _SOURCE_KEYS)
    if not is_named or note.get("version") != 1 or not isinstance(note.get("said"), dict):
        report.wrong("kept", f"{layout.KEPT}/{session_files.SOURCE} does not name the source of the session")
