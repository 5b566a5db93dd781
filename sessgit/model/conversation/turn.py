"""A turn and what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts by kind, as the model's service bills them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        """Tokens of all kinds together."""
        return self.input + self.output + self.cache_read + self.cache_write

    def as_json(self) -> dict[str, int]:
        return {
            "input": self.input,
            "output": self.output,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
        }

    @classmethod
    def from_json(cls, value: object) -> Tokens:
        """The counts of a JSON object; what is missing or no count is 0."""
        if not isinstance(value, dict):
            return cls()
        get = value.get
        return cls(
            plausible_count(get("input")),
            plausible_count(get("output")),
            plausible_count(get("cache_read")),
            plausible_count(get("cache_write")),
        )


NO_TOKENS = Tokens()


def plausible_count(value: object) -> int:
    """The value where it is a plausible count, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def add_by_model(a: dict[str, Tokens], b: dict[str, Tokens]) -> dict[str, Tokens]:
    """Both counts added, model by model."""
    return {model: a.get(model, NO_TOKENS) + b.get(model, NO_TOKENS) for model in {**a, **b}}


@dataclass(frozen=True, slots=True)
class Cell:
    """One replayable unit of a turn.

    `lines` are its line numbers in the turn's `transcript.jsonl`, from 1; `depends` are ids of cells that
    had to come first, of the same turn or, as programs say, of earlier ones; `ok` is None while there is no result.
    `program` says that a program made it and said what it depends on: then it depends on nothing else.
    """

    id: str
    type: str
    operation: str
    lines: tuple[int, ...]
    depends: tuple[str, ...] = ()
    ok: bool | None = None
    program: bool = False

    def as_json(self) -> dict[str, Any]:
        """The cell as a line of `cells.jsonl` has it."""
        return {
            "id": self.id,
            "type": self.type,
            "operation": self.operation,
            "lines": list(self.lines),
            "depends": list(self.depends),
            "ok": self.ok,
            **({"program": True} if self.program else {}),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Cell:
        """The cell of such a line; raises ValueError, TypeError, KeyError or OverflowError where it is none."""
        return cls(
            str(value["id"]),
            str(value["type"]),
            str(value["operation"]),
            tuple(int(n) for n in value["lines"]),
            tuple(str(d) for d in value["depends"]),
            value["ok"] if isinstance(value.get("ok"), bool) else None,
            value.get("program") is True,
        )


@dataclass(frozen=True, slots=True)
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
        """The files that were read or changed, each once."""
        return tuple(dict.fromkeys((*self.files_read, *self.files_changed)))

    @property
    def total(self) -> Tokens:
        """The tokens of all models together."""
        return sum(self.tokens.values(), NO_TOKENS)

    @property
    def gist(self) -> Gist:
        """What of the turn is asked for most; nothing of subagents."""
        return Gist(self.files_read, self.files_changed, self.tokens, self.calls, self.tools)


@dataclass(frozen=True, slots=True)
class Gist:
    """What of a turn is asked for most, many turns at a time: the files it is about, its tokens and the model's calls
    by model, its tool calls by name.

    `subagents` is the same of the subagents that worked in the turn, None where nobody has looked.
    """

    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    tools: Mapping[str, int] = field(default_factory=dict)
    subagents: Gist | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were read or changed, each once."""
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
        """The gist that `as_json` gave."""
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
