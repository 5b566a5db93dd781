"""The trees of commits: which turns they hold, which of them changed, and what of them cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.check.verifying.turns import Where
from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.model.finding import Finding
from sessgit.store import layout
from sessgit.store.store import Store


def numbers(store: Store, commit: str) -> tuple[list[int], list[str]]:
    """The numbers of the turns in the tree of a commit, and what stands there that is no turn."""
    top = store.repo.entry(store.tree(commit), layout.TURNS)
    found, wrong = list[int](), list[str]()
    for name, (oid, is_tree) in (store.repo.tree(top[0]) if top else {}).items():
        for turn, (_, is_folder) in (store.repo.tree(oid) if is_tree else {}).items():
            if (
                is_folder
                and turn.isascii()
                and turn.isdigit()
                and f"{layout.TURNS}/{name}/{turn}" == layout.turn_folder(int(turn))
            ):
                found.append(int(turn))
            else:
                wrong.append(f"{layout.TURNS}/{name}/{canonical.one_line(turn, 40)} is not the folder of a turn")
        if not is_tree:
            wrong.append(f"{layout.TURNS}/{canonical.one_line(name, 40)} is not a folder")
    return sorted(found), wrong


def changed(store: Store, before: str | None, tree: str) -> set[int]:
    """The numbers of the turns whose folders in a tree are others than in the commit before."""
    old_tree = store.tree(before) if before is not None else None
    old, new = (_hundreds(store, one) if one else {} for one in (old_tree, tree))
    names = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    out = set[int]()
    for name in names:
        a, b = (_entries(store, found[name]) if name in found else {} for found in (old, new))
        out |= {int(turn) for turn in a.keys() | b.keys() if a.get(turn) != b.get(turn) and turn.isdigit()}
    return out


def faults(store: Store, oid: str, where: Where, known: set[str], path: str = "") -> Iterator[Finding]:
    """Return findings for what at and below a tree cannot be read, is an empty folder, or neither a plain file nor a
    folder. Objects that are `known` were looked at; those that are looked at now are added."""
    if oid in known:
        return
    known.add(oid)
    try:
        entries, strange = store.repo.tree(oid), store.repo.irregular_entries(oid)
    except StoreError:
        yield where.lost(store, oid, _label(path))
        return
    for name in strange:
        yield where.found("wrong", "tree", f"{canonical.one_line(name, 60)} is neither a plain file nor a folder")
    if path and not entries:
        yield where.found("wrong", "tree", f"{_label(path)} is an empty folder")
    for name, (entry, is_tree) in entries.items():
        if is_tree:
            yield from faults(store, entry, where, known, f"{path}{name}/")
        elif entry not in known and name not in strange:
            known.add(entry)
            if store.repo.read_problem(entry):
                yield where.lost(store, entry, _label(f"{path}{name}"))


def _label(path: str) -> str:
    """A path in a commit as people know it: in a turn's folder from there on."""
    turns, _, rest = path.partition("/")
    return (rest.split("/", 2)[2:] or [path])[0] or "its folder" if turns == layout.TURNS else path or "its tree"


def _hundreds(store: Store, tree: str) -> dict[str, str]:
    entry = store.repo.entry(tree, layout.TURNS)
    return {name: oid for name, (oid, _) in store.repo.tree(entry[0]).items()} if entry else {}


def _entries(store: Store, oid: str) -> dict[str, str]:
    return {name: found for name, (found, _) in store.repo.tree(oid).items()}
