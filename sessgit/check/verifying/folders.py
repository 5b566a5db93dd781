"""The files of a commit's tree: whether they can be read, and whether those of a turn follow from its lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sessgit.agents import turn_folder
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.values import PLAIN
from sessgit.check.verifying.report import Report
from sessgit.errors import StoreError
from sessgit.history import pad_lists, session_files
from sessgit.model import canonical, long_strings
from sessgit.model import pad as pads
from sessgit.model.conversation.turn import Turn
from sessgit.model.line_list import split_lines
from sessgit.store import layout
from sessgit.store.store import Store

_LINE_FILES = (layout.BEFORE, layout.BODY, layout.CELLS)
_LIVE_FOLDERS = ("todos", "tasks", "plans")
_SOURCE_KEYS = ("session", "system", "id")
REDACTED = b"[redacted:"
"""The beginning of a placeholder for a secret."""


@dataclass
class TurnFolder:
    """The lines of a turn, and what they say; None if they cannot be read."""

    before: list[Line] = field(default_factory=list)
    body: list[Line] = field(default_factory=list)
    turn: Turn | None = None

    @property
    def raw(self) -> list[bytes]:
        return [line.raw for line in (*self.before, *self.body)]


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


def turn_numbers(store: Store, commit: str, report: Report) -> list[int]:
    """Return the numbers of the turns in a commit's tree; report entries that are not the folder of a turn."""
    top, numbers = store.repo.entry(store.tree(commit), layout.TURNS), list[int]()
    for name, (oid, is_tree) in (store.repo.tree(top[0]) if top else {}).items():
        if not is_tree:
            report.wrong("tree", f"{layout.TURNS}/{canonical.one_line(name, 40)} is not a folder")
        for turn, (_, is_folder) in (store.repo.tree(oid) if is_tree else {}).items():
            is_number = is_folder and turn.isascii() and turn.isdigit()
            if is_number and f"{layout.TURNS}/{name}/{turn}" == layout.turn_folder(int(turn)):
                numbers.append(int(turn))
            else:
                path = f"{layout.TURNS}/{name}/{canonical.one_line(turn, 40)}"
                report.wrong("tree", f"{path} is not the folder of a turn")
    return sorted(numbers)


def changed_turns(store: Store, before: str | None, tree: str) -> set[int]:
    """Return the numbers of the turns whose folders differ between a tree and that of the commit before."""
    old, new = (_folders_by_hundred(store, one) for one in (store.tree(before) if before else None, tree))
    changed = set[int]()
    for name in (name for name in old.keys() | new.keys() if old.get(name) != new.get(name)):
        a, b = (store.repo.tree(folders[name]) if name in folders else {} for folders in (old, new))
        changed |= {int(turn) for turn in a.keys() | b.keys() if a.get(turn) != b.get(turn) and turn.isdigit()}
    return changed


def _folders_by_hundred(store: Store, tree: str | None) -> dict[str, str]:
    entry = store.repo.entry(tree, layout.TURNS) if tree else None
    return {name: oid for name, (oid, _) in store.repo.tree(entry[0]).items()} if entry else {}


# A turn


def check_turn(agent: Agent, store: Store, oid: str, report: Report, *, cut: int) -> TurnFolder:
    """Return the lines of a turn's folder and report what is wrong with it. The files are made again from the lines by
    the rules of version `cut`, unless that is 0. Raises StoreError if an object cannot be read."""
    entries = store.repo.tree(oid)
    for name in sorted(entries.keys() - {*_LINE_FILES, layout.TEXTS, layout.SUBAGENTS, layout.FILES}):
        report.wrong("file", f"a turn's folder has no file {canonical.one_line(name, 60)}")
    if layout.BODY not in entries:
        report.add("damage", "tree", f"it has no {layout.BODY}")
        return TurnFolder()
    files = {name: store.repo.lines(entries[name][0]) for name in _LINE_FILES if name in entries}
    texts = store.repo.tree(entries[layout.TEXTS][0]) if layout.TEXTS in entries else {}
    long = {name: store.repo.blob(text) for name, (text, is_tree) in texts.items() if not is_tree}
    if len(long) < len(texts):
        report.wrong("tree", f"{layout.TEXTS} holds a folder")
    for name in (layout.SUBAGENTS, layout.FILES):
        if name in entries:
            _check_client_files(agent, store, name, entries[name][0], report)
    unended = [name for name, lines in files.items() if lines[-1]]
    for name in unended:
        report.add("damage", "tree", f"{name} does not end with a newline")
    if unended:
        return TurnFolder()
    before, body = (files.get(name, [])[:-1] for name in (layout.BEFORE, layout.BODY))
    if long:
        before, body = long_strings.fill_long_strings(before, long), long_strings.fill_long_strings(body, long)
    folder = TurnFolder(agent.parsed(before), agent.parsed(body))
    if not folder.body:
        report.add("damage", "tree", f"{layout.BODY} is empty")
        return TurnFolder()
    folder.turn = agent.cells.describe(folder.body)
    if cut:
        expected = turn_folder.files(agent, folder.before, folder.body, folder.turn, cut)
        _compare_files({name: split_lines(data) if name in _LINE_FILES else data for name, data in expected.items()},
            files, long, report)  # fmt: skip
    return folder


def _check_client_files(agent: Agent, store: Store, name: str, oid: str, report: Report) -> None:
    for path in store.repo.files(oid, name):
        folder, _, last = path.rpartition("/")
        fits = agent.sidecars.is_subagent(last) if folder == layout.SUBAGENTS else bool(PLAIN.fullmatch(last))
        if folder not in (layout.SUBAGENTS, f"{layout.FILES}/tool-results") or not fits:
            report.wrong("tree", f"{canonical.one_line(path, 80)} is not a file of the client")


def _compare_files(
    expected: Mapping[str, object], files: Mapping[str, list[bytes]], long: Mapping[str, bytes], report: Report
) -> None:
    stored = {**files, **{f"{layout.TEXTS}/{name}": data for name, data in long.items()}}
    wrong = sorted(name for name in expected.keys() | stored.keys() if expected.get(name) != stored.get(name))
    if layout.CELLS in wrong:
        wrong.remove(layout.CELLS)
        report.wrong("cells", f"{layout.CELLS} does not follow from the lines")
    if not wrong:
        return
    # The lines are complete if each marker in them has its text.
    lines = [line for name in (layout.BEFORE, layout.BODY) for line in files.get(name, ())]
    referenced = set(long_strings.referenced_names(lines))
    if lost := sorted(referenced - long.keys()):
        report.add("damage", "text", f"{layout.TEXTS}/{lost[0]} is missing, but the lines name it")
    elif long.keys() - referenced:
        report.wrong("text", f"{wrong[0]} does not follow from the lines")
    else:
        report.at(report.branch, None).add("note", "text", "its texts are cut by other rules than it says")


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
