"""The settings of a store, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Granularity = Literal["turn", "cell"]


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """What is recorded and how: a commit for each turn or for each cell, redacted, flushed to the disk.

    A project is recorded where it fits a glob of `include`, or where there is none, and fits none of `exclude`.
    """

    granularity: Granularity = "turn"
    redact: bool = True
    fsync: bool = True
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True, slots=True)
class Config:
    """`prices` override the built-in table by model name."""

    record: RecordConfig = field(default_factory=RecordConfig)
    prices: dict[str, Price] = field(default_factory=dict)
