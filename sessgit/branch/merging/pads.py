"""The scratchpads of two sides: lists of lines, which unite.

Each entry says whose it is, so a list of both still tells that.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessgit.branch.merging.sides import MergeSides, base_commit
from sessgit.history import program_lines, session_files
from sessgit.model import pad as pads
from sessgit.model.merge_decisions import Choice, Decision
from sessgit.model.pad import Entry
from sessgit.store import layout
from sessgit.store.store import Store

_LIST_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class MergedPad:
    """The lists that get lines and the files that are taken over, by path in the tree, and what was decided."""

    lists: dict[str, bytes]
    taken: dict[str, tuple[str, bool]]
    decisions: list[Decision]

    def changes(self, store: Store) -> dict[str, tuple[str, bool] | None]:
        """Return the changes of the tree."""
        lists = {path: (store.repo.write_blob(data), False) if data else None for path, data in self.lists.items()}
        return {**self.taken, **lists}


def merge_pads(store: Store, sides: MergeSides, choice: Choice) -> MergedPad:
    """Lists with the lines of both, ours first, but for those that one side took away since they parted; a file of
    another kind is theirs where only they changed it. What only theirs keeps comes along."""
    base, ours, theirs = (_pad_files(store, commit) for commit in (sides.base, sides.ours.tip, sides.tip))
    began = [_pad_files(store, commit) for commit in _base_commits(store, sides)]
    lists, taken, decisions = dict[str, bytes](), dict[str, tuple[str, bool]](), list[Decision]()
    for name in sorted({*theirs, *ours}):
        path, mine, entry = f"{layout.PAD}/{name}", ours.get(name), theirs.get(name)
        if name.endswith(_LIST_SUFFIX):
            if entry in (mine, began[1].get(name)):
                continue
            left, right = (_pad_lines(store, one) for one in (mine, entry))
            start = [_pad_lines(store, side.get(name)) for side in began]
            both = pads.merge_lists(name.removesuffix(_LIST_SUFFIX), start[0], start[1], left, right)
            if both != left:
                lists[path] = pads.join_list(both)
                decisions.append(Decision(path, "unite", len(left), len(right), len(both)))
        elif entry in (None, mine, base.get(name)):
            continue
        elif mine == base.get(name) or choice.side == "theirs":
            taken[path] = entry
            decisions.append(Decision(path, "theirs"))
        elif choice.side == "ours":
            decisions.append(Decision(path, "ours"))
        else:
            decisions.append(Decision(path, "conflict"))
    return MergedPad(lists, taken | session_files.missing_files(store, sides.ours.tip, sides.tip), decisions)


def new_lines(store: Store, sides: MergeSides) -> dict[str, list[str]]:
    """What theirs' lists have that ours lack, by the list's name: of entries their words."""
    ours, out = _pad_files(store, sides.ours.tip), dict[str, list[str]]()
    for name, entry in sorted(_pad_files(store, sides.tip).items()):
        called, known = name.removesuffix(_LIST_SUFFIX), set(_pad_lines(store, ours.get(name)))
        lines = [_entry_words(called, line) for line in _pad_lines(store, entry) if line not in known]
        if name.endswith(_LIST_SUFFIX) and any(lines):
            out[called] = [line for line in lines if line]
    return out


def _entry_words(name: str, line: bytes) -> str:
    kind = next((kind for kind, called in pads.LISTS.items() if called == name), "")
    entry = pads.parse_entry(kind, line)
    return line.decode("utf-8", "replace") if entry is None else _entry_summary(entry)


def _entry_summary(entry: Entry) -> str:
    """`- Speed stands against clear errors. (resolved: both, in two passes)`; nothing of a cycle, which is theirs."""
    if entry.kind == "cycle":
        return ""
    value = "" if entry.value is None else f"{entry.value:g}"
    words = ": ".join(part for part in (entry.form or value, entry.text.replace("\n", "\n  ")) if part)
    answer = f": {entry.answer}" if entry.answer else ""
    return f"- {words}{f' (resolved{answer})' if entry.resolved else ''}"


def _base_commits(store: Store, sides: MergeSides) -> tuple[str, str]:
    """The commits with whose pads the sides began; none where they have no common history, only common turns."""
    if not sides.base or not sides.related:
        return "", ""
    return base_commit(store, sides.ours.tip, sides.base), base_commit(store, sides.tip, sides.base)


def _pad_files(store: Store, commit: str) -> dict[str, tuple[str, bool]]:
    """Return the files of a scratchpad; not those of programs' cells, which belong to turns."""
    entry = store.repo.entry(store.tree(commit), layout.PAD) if commit else None
    found = store.repo.files(entry[0]) if entry and entry[1] else {}
    return {name: file for name, file in found.items() if not program_lines.is_file(name)}


def _pad_lines(store: Store, entry: tuple[str, bool] | None) -> list[bytes]:
    data = store.repo.blob(entry[0]) if entry else b""
    return pads.split_list(data)
