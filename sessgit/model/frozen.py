"""Immutable values: dataclasses that are quick to define.

`dataclasses` compiles six methods for each class, which takes 0.3 to 0.6 ms, and a command loads up to a hundred
classes. Here it only collects the fields: `__init__` is compiled, and the other methods are closures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[_T]) -> type[_T]:
    """Return the class as `dataclass(frozen=True, slots=True)` makes it."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else `dataclass` writes one of the signature, which takes 0.3 ms
    own = vars(cls)
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name, method in _methods(made, fields(made)).items():  # type: ignore[arg-type]
        if name not in own:
            setattr(made, name, method)
    return made


def _methods(cls: type, members: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    values = _getter(each.name for each in members)
    compared = _getter(each.name for each in members if each.compare)
    shown = [each.name for each in members if each.repr]

    def equals(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: object) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return {
        "__init__": _init(cls, members),
        "__eq__": equals,
        "__hash__": lambda self: hash(compared(self)),
        "__repr__": text,
        "__reduce__": lambda self: (self.__class__, values(self)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
    }


def _init(cls: type, members: tuple[Field[Any], ...]) -> Callable[..., None]:
    names: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self"], ["pass"]
    for each in members:
        name = value = each.name
        names[f"set_{name}"] = getattr(cls, name).__set__
        if each.default_factory is not MISSING:
            names[f"new_{name}"] = each.default_factory
            value = f"new_{name}() if {name} is MISSING else {name}"
            parameters.append(f"{name}=MISSING")
        elif each.default is not MISSING:
            names[f"default_{name}"] = each.default
            parameters.append(f"{name}=default_{name}")
        else:
            parameters.append(name)
        body.append(f"set_{name}(self, {value})")
    exec(f"def __init__({', '.join(parameters)}): {'; '.join(body)}", names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _getter(names: Iterable[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that returns the values of these attributes."""
    every = tuple(names)
    return attrgetter(*every) if len(every) > 1 else lambda value: tuple(getattr(value, name) for name in every)


def _refuse(_: object, name: str, *_value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")
