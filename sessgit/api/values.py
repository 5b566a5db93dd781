"""What programs get: frozen values, none of which changes when the session does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from sessgit.errors import UsageError

_T = TypeVar("_T")
State = Literal["running", "interrupted", "done", "failed"]


def check_several(name: str, given: Collection[_T]) -> Collection[_T]:
    """The same; raises UsageError for a text, each letter of which would count as one."""
    if isinstance(given, str | bytes):
        raise UsageError(
            f"{name} are several, and “{given!s}” is one text", f"{name}=[{given!r}]. Nothing was changed."
        )
    return given


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a session.

    `state` is `running` where the program that began it is alive and has its turn open, `interrupted` where that one
    is gone, else `done` or `failed`. `turn` and `ordinal` are its place, both counted from 1; 0 where the cell is not
    recorded yet. `dependencies` are the ids of cells that it depends on; where it says none, and was made by an agent,
    those that it follows are not among them.
    """

    id: str
    type: str
    operation: str
    dependencies: tuple[str, ...] = ()
    state: State = "done"
    turn: int = 0
    ordinal: int = 0

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn: its number, counted from 1, what was asked and answered, and what it used.

    `time` is RFC 3339 in UTC; `tokens` are by kind: `input`, `output`, `cache_read`, `cache_write`; `key` is the uuid
    of its prompt, by which the same turn is known in every session that has it; `commit` is its commit in the store.
    """

    number: int
    prompt: str
    answer: str
    time: str
    model: str
    cells: tuple[Cell, ...]
    files: tuple[str, ...]
    tokens: Mapping[str, int]
    key: str
    commit: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge did: the session that holds the result, by its id, the commit, ``""`` where there was nothing to
    do, the numbers of the turns that were appended, and each decision as `merge --json` prints it."""

    session: str
    commit: str
    turns: tuple[int, ...]
    decisions: tuple[Mapping[str, Any], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Summary:
    """A session as a list has it. Times are RFC 3339 in UTC; `turns` counts them."""

    id: str
    name: str
    title: str
    project: str
    turns: int
    created: str
    updated: str
    labels: tuple[str, ...]
    archived: bool
