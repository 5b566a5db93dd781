"""Frozen values that the library returns; none changes when the session does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sessgit.errors import UsageError
from sessgit.model.frozen import frozen

if TYPE_CHECKING:
    from sessgit.model.conversation.turn import Cell as RecordedCell
    from sessgit.store.operations import Move

_T = TypeVar("_T")
State = Literal["running", "interrupted", "done", "failed"]
STATE_BY_OK: Mapping[bool | None, State] = {None: "interrupted", True: "done", False: "failed"}
"""The state of a recorded cell whose program has no turn open."""


def check_several(name: str, values: Collection[_T]) -> Collection[_T]:
    """Return the values; raises UsageError for a text, each letter of which would be one of them."""
    if isinstance(values, str | bytes):
        raise UsageError(
            f"{name} are several, and “{values!s}” is one text", f"{name}=[{values!r}]. Nothing was changed."
        )
    return values


def check_word(what: str, word: str, known: Collection[str]) -> None:
    """Raise UsageError for a word that is none of those known."""
    if word not in known:
        raise UsageError(f"“{word}” is not a {what}", f"Use one of {', '.join(known)}. Nothing was changed.")


@frozen
class Cell:
    """A cell of a session.

    `state` is `running` while the program that began it has its turn open, `interrupted` if that program is gone, else
    `done` or `failed`. `turn` and `ordinal` are its place, counted from 1; 0 until it is recorded. `dependencies` are
    the ids of the cells that it depends on, without those that an agent's cell merely follows.
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


def recorded_cell(cell: RecordedCell, turn: int, ordinal: int) -> Cell:
    """Return a cell of a recorded turn, at its place there."""
    return Cell(cell.id, cell.type, cell.operation, tuple(cell.depends), STATE_BY_OK[cell.ok], turn, ordinal)


@frozen
class Turn:
    """A recorded turn.

    `number` counts from 1, `time` is RFC 3339 in UTC, `tokens` has counts by kind: `input`, `output`, `cache_read`,
    `cache_write`. `key` is the uuid of its prompt, which identifies the turn in all sessions that share it; `commit` is
    its commit in the store.
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


@frozen
class Merge:
    """The result of a merge: the id of the session that holds it, its commit, ``""`` if nothing was to be merged, the
    numbers of the appended turns, and the decisions as `merge --json` prints them."""

    session: str
    commit: str
    turns: tuple[int, ...]
    decisions: tuple[Mapping[str, Any], ...] = field(default=())


@frozen
class Summary:
    """A session in a list. Times are RFC 3339 in UTC; `turns` is their number."""

    id: str
    name: str
    title: str
    project: str
    turns: int
    created: str
    updated: str
    labels: tuple[str, ...]
    archived: bool


ImportOutcome = Literal["new", "grown", "changed", "unchanged", "conflict", "excluded", "archived", "deleted", "failed"]


@frozen
class ImportedSession:
    """What became of a session in an import: `source_id` is its id in the source, `id` the one here.

    `turns` is the number of new turns, `shared` of those that it shares with `parent`. `why` explains the outcome;
    `notes` say what did not fit, and was kept as files.
    """

    source_id: str
    id: str
    outcome: ImportOutcome
    turns: int = 0
    title: str = ""
    parent: str = ""
    shared: int = 0
    why: str = ""
    notes: tuple[str, ...] = ()


@frozen
class SessionImport:
    """What an import did, or would do: what became of each session, and the refs that it moves.

    `operation` is the id for `sessgit undo`, ``""`` if nothing changed, and for a dry run.
    """

    sessions: tuple[ImportedSession, ...]
    moves: tuple[Move, ...] = ()
    operation: str = ""
