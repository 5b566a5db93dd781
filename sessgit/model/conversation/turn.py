"""A turn and what is in it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, NamedTuple, get_args

from sessgit.model.frozen import frozen
from sessgit.model.stored_fields import OPTIONAL, CellId, CellType, Rule


class Tokens(NamedTuple):
    """Token counts by kind, as the model's service bills them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: tuple[Any, ...]) -> Tokens:
        return Tokens(*map(operator.add, self, other))

    @property
    def total(self) -> int:
        """Tokens of all kinds together."""
        return sum(self)

    def as_json(self) -> dict[str, int]:
        return self._asdict()

    @classmethod
    def from_json(cls, value: object) -> Tokens:
        """Return the counts of a JSON object; what is missing or no count is 0."""
        counts = value if isinstance(value, dict) else {}
        return cls(*[plausible_count(counts.get(kind)) for kind in cls._fields])


NO_TOKENS = Tokens()


def plausible_count(value: object) -> int:
    """Return the value where it is a plausible count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def add_by_model(a: dict[str, Tokens], b: dict[str, Tokens]) -> dict[str, Tokens]:
    """Return both counts added, model by model."""
    return {model: a.get(model, NO_TOKENS) + b.get(model, NO_TOKENS) for model in {**a, **b}}


LineNumber = Annotated[int, Rule({"minimum": 1})]
"""No reader refuses a cell for another number: it is one of a line that the turn lacks."""


@frozen
class Cell:
    """A line of a turn's cells.jsonl: a message of the model, a tool call, or a step of a program."""

    id: CellId
    """The id of the cell."""
    type: Annotated[str, Rule({"enum": list(get_args(CellType))})]
    """The type of the cell; repl, map_reduce and verification are set by programs only."""
    operation: str
    """The model (message, if the line names none), the tool (tool, if it has no name), or a program's own word."""
    lines: tuple[LineNumber, ...]
    """The numbers of its lines in the turn's transcript.jsonl, from 1."""
    depends: tuple[CellId, ...] = ()
    """The cells that had to come first: of the same turn, or, if a program said so, of an earlier one."""
    ok: bool | None = None
    """Whether it succeeded; null while there is no result."""
    program: bool = field(default=False, metadata=OPTIONAL)
    """True if a program made the cell."""


@frozen
class Turn:
    """What a turn's lines say: everything in it is computed from them.

    `time` is that of the prompt, `ended` the latest of its lines, both RFC 3339 or empty. `files_read` and
    `files_changed` are paths that tools named, in order of first use; `tools` counts calls by name; `tokens` are by
    model, each message counted once.
    """

    prompt_uuid: str
    prompt: str = ""
    answer: str = ""
    time: str = ""
    ended: str = ""
    model: str = ""
    cells: tuple[Cell, ...] = ()
    tools: dict[str, int] = field(default_factory=dict)
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    tokens: dict[str, Tokens] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    messages: int = 0
    interrupted: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that were read or changed, each once."""
        return self.gist.files

    @property
    def total(self) -> Tokens:
        """Return the tokens of all models together."""
        return sum(self.tokens.values(), NO_TOKENS)

    @property
    def gist(self) -> Gist:
        """Return what of the turn is asked for most; nothing of subagents."""
        return Gist(self.files_read, self.files_changed, self.tokens, self.calls, self.tools)


@frozen
class Gist:
    """What of a turn is asked for most, many turns at a time: the files it is about, its tokens and the model's calls
    by model, its tool calls by name.

    `subagents` is the same of the subagents that worked in the turn, None if that is unknown.
    """

    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)
    subagents: Gist | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that were read or changed, each once."""
        return tuple(dict.fromkeys((*self.files_read, *self.files_changed)))

    def as_json(self) -> dict[str, Any]:
        agents = self.subagents
        return {
            "files_read": self.files_read,
            "files_changed": self.files_changed,
            "tokens": {model: tokens.as_json() for model, tokens in self.tokens.items()},
            "calls": dict(self.calls),
            "tools": dict(self.tools),
            "subagents": agents if agents is None else {} if agents == _EMPTY_GIST else agents.as_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Gist:
        """Return the gist that `as_json` gave."""
        return cls(
            tuple(value.get("files_read", ())),
            tuple(value.get("files_changed", ())),
            {model: Tokens.from_json(tokens) for model, tokens in value["tokens"].items()},
            value["calls"],
            value["tools"],
            cls.from_json(agents) if (agents := value.get("subagents")) else None if agents is None else _EMPTY_GIST,
        )


_EMPTY_GIST = Gist()
"""What no subagent did; most turns have none."""
