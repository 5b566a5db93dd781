"""What tests of the library share: a store in a sealed home with a project, and what a plain reader finds in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plain import run_git

from sessgit import Session, Store
from sessgit.agents.claude import home
from sessgit.agents.claude.programs import Chain
from sessgit.model.program_input import GivenTurn
from sessgit.store import layout, locks
from sessgit.store.layout import StorePaths


@dataclass
class Place:
    """A sealed home, the store in it, and the folder of a project."""

    store: Store
    project: Path

    @property
    def config(self) -> Path:
        return self.store.homes.folders["claude"]

    def again(self) -> Store:
        """Another object for the same store, as another process has one."""
        return Store.open(self.store.path, config=self.config)

    def begin(self, name: str = "", **more: Any) -> Session:
        return self.store.create_session(self.project, name, **more)

    def transcript(self, session: Session) -> Path:
        return home.project_folder(self.config, str(self.project)) / f"{session.id}.jsonl"

    def lines(self, session: Session) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.transcript(session).read_bytes().split(b"\n")[:-1]]

    def git(self, *arguments: str) -> str:
        return run_git(self.store.path, *arguments)

    def check(self) -> None:
        """git finds the store whole, and nobody holds a turn."""
        assert self.git("fsck", "--strict", "--no-dangling") == ""
        paths = StorePaths(self.store.path)
        for lock in paths.locks.glob("turn-*.lock"):
            handle = locks.turn_lock(paths, lock.stem.removeprefix("turn-"))
            assert handle, f"{lock.stem} is held"
            locks.release(handle)

    def trees(self, session: str) -> list[str]:
        """The tree of each turn's folder on the session's head."""
        found = self.git("ls-tree", "-d", "-r", "--format=%(objectname) %(path)", layout.head_ref(session))
        turns = (line.split(" ", 1) for line in found.splitlines())
        return [oid for oid, path in turns if path.count("/") == 2 and path.startswith("turns/")]


def raises(kind: type[Exception], message: str, act: Callable[[], object], hint: str | None = None) -> None:
    """Fails unless the act raises that error with exactly that message, and that hint where one is said."""
    try:
        act()
    except kind as error:
        assert str(error) == message
        assert hint is None or getattr(error, "hint", "") == hint
        assert getattr(error, "hint", "")
    else:
        raise AssertionError(f"nothing was raised instead of: {message}")


def transcript(
    agent_id: str, turns: Iterable[GivenTurn], name: Callable[[str], str], common: Mapping[str, Any]
) -> bytes:  # fmt: skip
    """Return the lines that a program writes for these turns."""
    chain = Chain(agent_id, common, name=name)
    return b"".join(line + b"\n" for turn in turns for line in chain.turn(turn))
