"""The scratchpads of two sides: lists of lines, which unite."""

from __future__ import annotations

from dataclasses import dataclass

from sessgit.model.merge import Choice, Decision
from sessgit.ops.merging.sides import Sides
from sessgit.store import layout
from sessgit.store.store import Store

_LIST = ".jsonl"


@dataclass(frozen=True, slots=True)
class United:
    """The lists that get lines and the files that are taken over, by path in the tree, and what was decided."""

    lists: dict[str, bytes]
    taken: dict[str, tuple[str, bool]]
    decisions: list[Decision]

    def changes(self, store: Store) -> dict[str, tuple[str, bool] | None]:
        """What changes in the tree."""
        return {**self.taken, **{path: (store.repo.write_blob(data), False) for path, data in self.lists.items()}}


def unite(store: Store, found: Sides, choice: Choice) -> United:
    """Lists with the lines of both, ours first; a file of another kind is theirs where only they changed it."""
    base, ours, theirs = (_files(store, commit) for commit in (found.base, found.ours.tip, found.tip))
    lists, taken, decisions = dict[str, bytes](), dict[str, tuple[str, bool]](), list[Decision]()
    for name, entry in sorted(theirs.items()):
        path, mine = f"{layout.PAD}/{name}", ours.get(name)
        if mine == entry or entry == base.get(name):
            continue
        if name.endswith(_LIST):
            left, right = (_lines(store, one) for one in (mine, entry))
            both = [*left, *(line for line in right if line not in left)]
            if both != left:
                lists[path] = b"".join(both)
                decisions.append(Decision(path, "unite", len(left), len(right), len(both)))
        elif mine == base.get(name) or choice.side == "theirs":
            taken[path] = entry
            decisions.append(Decision(path, "theirs"))
        elif choice.side == "ours":
            decisions.append(Decision(path, "ours"))
        else:
            decisions.append(Decision(path, "conflict"))
    return United(lists, taken, decisions)


def new_lines(store: Store, found: Sides) -> dict[str, list[str]]:
    """The lines of theirs' lists that ours lacks, by the list's name."""
    ours, out = _files(store, found.ours.tip), dict[str, list[str]]()
    for name, entry in sorted(_files(store, found.tip).items()):
        known = _lines(store, ours.get(name))
        lines = [line.decode("utf-8", "replace") for line in _lines(store, entry) if line not in known]
        if name.endswith(_LIST) and lines:
            out[name.removesuffix(_LIST)] = lines
    return out


def _files(store: Store, commit: str) -> dict[str, tuple[str, bool]]:
    entry = store.repo.entry(store.tree(commit), layout.PAD) if commit else None
    return store.repo.files(entry[0]) if entry and entry[1] else {}


def _lines(store: Store, entry: tuple[str, bool] | None) -> list[bytes]:
    data = store.repo.blob(entry[0]) if entry else b""
    return [line + b"\n" for line in data.split(b"\n") if line]
