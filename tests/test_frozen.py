"""A frozen class is what `dataclass(frozen=True, slots=True)` makes of it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

import sessgit
from sessgit.model.frozen import frozen


@frozen
class Plain:
    name: str
    count: int = 0
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Usual:
    name: str
    count: int = 0
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@frozen
class More(Plain):
    """A subclass."""

    more: int = 1

    def __repr__(self) -> str:
        return "more"


@frozen
class Empty:
    pass


@frozen
class Key:
    name: str
    turn: int


@pytest.mark.parametrize("kind", [Plain, Usual])
def test_values(kind: type[Any]) -> None:
    one = kind("a", tags=["b"], note="c")
    assert (one.name, one.count, one.tags, one.note) == ("a", 0, ["b"], "c")
    assert repr(one) == f"{kind.__name__}(name='a', count=0, tags=['b'])"
    assert one == kind("a", 0, ["b"], "d")
    assert one != kind("a", 1, ["b"])
    assert one != Empty()
    assert kind("a").tags is not kind("a").tags
    assert replace(one, count=2) == kind("a", 2, ["b"])
    assert [each.name for each in fields(kind)] == ["name", "count", "tags", "note"]
    assert kind.__match_args__ == ("name", "count", "tags", "note")
    for copied in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert copied == one
        assert copied.note == "c"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        one.name = "b"
    with pytest.raises(FrozenInstanceError):
        del one.name
    with pytest.raises((FrozenInstanceError, TypeError)):  # on 3.11, the usual ones raise a TypeError here
        one.other = 1
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        kind()
    assert not hasattr(one, "__dict__")


def test_hashes() -> None:
    assert {Key("a", 1): 2}[Key("a", 1)] == 2
    assert hash(Empty()) == hash(Empty())
    assert Empty() == Empty()
    with pytest.raises(TypeError, match="unhashable"):
        hash(Plain("a"))


def test_a_subclass() -> None:
    one = More("a", 1, ["b"], "", 3)
    assert (one.name, one.more, repr(one), More.__doc__) == ("a", 3, "more", "A subclass.")
    assert one != Plain("a", 1, ["b"])
    assert More.__slots__ == ("more",)


def test_the_program_uses_it() -> None:
    """A usual one takes four times as long to define, and a command defines up to a hundred. The recorder loads less
    than that before it reads its spool."""
    every = Path(sessgit.__file__).parent.rglob("*.py")
    usual = [path.name for path in every if "@dataclass(frozen=True, slots=True)\n" in path.read_text("utf-8")]
    assert usual == ["spool.py"]
