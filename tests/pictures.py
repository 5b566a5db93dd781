"""What a store holds, as plain values that a test can compare and print."""

from __future__ import annotations

import json
from typing import Any

from transcripts import SESSION

from sessgit.store import layout, refs
from sessgit.store.store import Store

Turns = dict[str, str]


def branches(store: Store) -> dict[str, str]:
    """The tips of all branches by name."""
    return {name.removeprefix(layout.HEADS): tip for name, tip in refs.read_all(store.path, layout.HEADS).items()}


def turn_files(store: Store, tip: str) -> Turns:
    """The object id of each file in the turns of a commit, by path."""
    return {path: oid for path, (oid, _) in store.repo.files(store.tree(tip)).items() if path.startswith("turns/")}


def prompts(store: Store, tip: str) -> list[str]:
    """The prompts of the turns that lead to a commit, the first one first, each once."""
    found = (store.message(commit.id).get("Prompt") for commit in store.repo.first_parents(tip))
    return list(dict.fromkeys(prompt for prompt in found if prompt))[::-1]


def conversation(store: Store) -> dict[str, tuple[list[str], Turns]]:
    """Of each branch the prompts and the files of its turns: what must not depend on when it was recorded."""
    return {name: (prompts(store, tip), turn_files(store, tip)) for name, tip in branches(store).items()}


def state(store: Store, branch: str) -> dict[str, Any]:
    """The session's state, as it is written."""
    entry = store.repo.entry(store.tree(branches(store)[branch]), layout.STATE)
    assert entry is not None
    found: dict[str, Any] = json.loads(store.repo.blob(entry[0]))
    return found


def tree(store: Store, commit: str) -> list[str]:
    """The paths of all files of a commit."""
    return sorted(store.repo.files(store.tree(commit)))


def text(store: Store, commit: str, path: str) -> str:
    entry = store.repo.entry(store.tree(commit), path)
    assert entry is not None, path
    return store.repo.blob(entry[0]).decode()


def log(store: Store, branch: str) -> list[str]:
    """The subjects from the branch's first commit to its tip."""
    return [commit.message.partition("\n")[0] for commit in store.repo.first_parents(branches(store)[branch])][::-1]


def rewound(number: int) -> str:
    """The branch that is named after the file's prompt of that number."""
    return f"{SESSION}.r-a{number:07d}"


def joined(lines: list[bytes]) -> str:
    return b"".join(line + b"\n" for line in lines).decode()
