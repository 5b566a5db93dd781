"""Maps a session to a document of another system with a table of fields, which one reader and one writer walk.

Keys that no field names are kept as they are. What the document cannot express is stored under its key `sessgit`, which
the other system ignores, so that an export that is imported again gives the same session.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any

from sessgit.exchange import files, values
from sessgit.exchange.files import DamagedFileError
from sessgit.exchange.values import Document
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.frozen import frozen
from sessgit.model.program_input import GivenTurn, Part, Saying

OWN_KEY = "sessgit"
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""The id of a session in a system that uses it as the name of a file."""
_LONGEST_TOOL = 128
LONGEST_TITLE = 200
_READ_BACK = "instead_of"
"""Under `sessgit`: what the document said in its own keys when it was written."""
_NEVER_OWN = ("id", "turns", "kept", "transcript", "facts", "children", "costs", "inherits")
_MERGED = ("pad", "unified")
"""Attributes of which a document has one part, and `sessgit` the rest."""
_MOST_TURNS = 1 << 20


@frozen
class Field:
    """A value at `path` in a document, and the attribute `name` of a session that `read` makes of it.

    `write` makes the value of a session; None leaves the key out. `holds` tells whether a document is still right for a
    session, by default if its value is read as the attribute that the session has.
    """

    path: str
    name: str
    read: Callable[[Any], Any]
    write: Callable[[ForeignSession], Any]
    holds: Callable[[Document, ForeignSession], bool] | None = None

    def is_current(self, document: Document, session: ForeignSession) -> bool:
        """Return whether the document's value is right for the session."""
        if self.holds is not None:
            return self.holds(document, session)
        return bool(self.read(values.value_at(document, self.path)) == getattr(session, self.name))


def read_fields(table: Iterable[Field], document: Document) -> dict[str, Any]:
    """Return the attributes of a session that the document has."""
    return {field.name: field.read(values.value_at(document, field.path)) for field in table}


def write_fields(table: Iterable[Field], session: ForeignSession, original: Document) -> dict[str, Any]:
    """Return the original document, with new values where it is no longer right for the session."""
    document = copy.deepcopy(dict(original))
    for path, field in {field.path: field for field in table if not field.is_current(original, session)}.items():
        place, value = document, field.write(session)
        *parents, key = path.split(".")
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                place[parent] = {}
            place = place[parent]
        if value is not None or key in place:
            place[key] = value
    return document


def with_original(original: Document, written: Document, now: Document) -> dict[str, Any]:
    """Return the document to write `now`, with what the original says where nothing has changed since the import.

    `written` is the document that an export would have written directly after the import of the original.
    """
    out = dict[str, Any]()
    for key in (*original, *(key for key in now if key not in original)):
        if key not in original or (key in written and key in now and now[key] != written[key]):
            both = [document.get(key) for document in (original, written, now)]
            is_object = all(isinstance(value, dict) for value in both)
            out[key] = with_original(both[0], both[1], both[2]) if is_object else now[key]  # type: ignore[arg-type]
        elif key in now or key not in written:
            out[key] = original[key]
    return out


# What a document cannot express


def own_values(session: ForeignSession, read_back: ForeignSession, omit: Iterable[str] = ()) -> dict[str, Any]:
    """Return what `sessgit` has to say for `read_back`, which is read from the other keys, to become the session."""
    names = [field.name for field in fields(ForeignSession) if field.name not in (*_NEVER_OWN, *omit)]
    names = [name for name in names if getattr(session, name) != getattr(read_back, name)]
    instead = {
        name: _to_json(read_back, name)
        for name in names
        if name not in _MERGED and getattr(read_back, name) != _default(name)
    }
    return {name: _to_json(session, name) for name in names} | ({_READ_BACK: instead} if instead else {})


def with_own_values(session: ForeignSession, own: object) -> ForeignSession:
    """Return the session with what `sessgit` says, except for fields that the other system has changed since."""
    instead = values.mapping(own, _READ_BACK)
    for field in fields(ForeignSession):
        name = field.name
        if name in _NEVER_OWN or not isinstance(own, dict) or name not in own:
            continue
        if name not in instead or instead[name] == _to_json(session, name):
            session = replace(session, **_parse_own(session, name, own[name]))
    return session


def _default(name: str) -> Any:
    return getattr(ForeignSession(""), name)


def _to_json(session: ForeignSession, name: str) -> Any:
    value = getattr(session, name)
    if name == "pad":
        return {key: data.decode("utf-8", "replace") for key, data in sorted(value.items())}
    return list(value) if isinstance(value, tuple) else value


def _parse_own(session: ForeignSession, name: str, value: Any) -> dict[str, Any]:
    """Return the attribute with the value, nothing if the value is invalid."""
    if name == "labels":
        is_valid, value = isinstance(value, list), values.texts(value)
    elif name == "confidence":
        number = values.to_number(value)
        is_valid, value = value is None or (number is not None and 0 <= number <= 1), number
    elif name == "branch":
        is_valid = value is None or (type(value) is int and 0 <= value < _MOST_TURNS)
    elif name == "pad":
        lists = {key: data.encode() for key, data in values.mapping(value).items() if isinstance(data, str)}
        known = {key: data for key, data in lists.items() if key in pads.LISTS.values() and data}
        is_valid, value = True, {**session.pad, **known}
    elif name == "stage":
        is_valid = value in ("", *STAGES)
    elif name == "state":
        is_valid = value in ("active", "ended", "interrupted")
    else:
        is_valid = type(value) is type(_default(name))
    return {name: value} if is_valid else {}


# Turns


def with_answer(turn: GivenTurn) -> GivenTurn:
    """Return the turn with its last part, if that is a text, as the answer."""
    last = turn.parts[-1] if turn.parts else None
    if not isinstance(last, Saying):
        return turn
    return replace(turn, parts=turn.parts[:-1], answer=last.text, model=last.model, ended=last.time)


def parts_and_answer(turn: GivenTurn) -> list[Part]:
    """Return the parts of the turn, with the answer as the last one."""
    return [*turn.parts, *([Saying(turn.answer, turn.model, turn.ended)] if turn.answer else [])]


def turn_times(turns: Iterable[GivenTurn]) -> list[float]:
    """Return the times at which the turns began and ended, as far as they are known."""
    return [time for turn in turns for time in (turn.time, turn.ended) if time is not None]


# Shared conversions


def source_id(system: str, session: ForeignSession, known: str) -> tuple[str, bool]:
    """Return the id of a session in the system, and whether it is the one that an import kept as `known`; a fork of an
    imported session has the kept files too."""
    is_same = agent_id(system, known) == agent_id(system, session.id)
    return file_id(system, known if is_same else session.id), is_same


def file_id(system: str, own: str) -> str:
    """Return the id by which a session has a file in the system."""
    return own if ID.fullmatch(own) else agent_id(system, own)


def tool_name(name: str) -> str:
    """Return the name as the model's API accepts it."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_TOOL] or "tool"


def kept_object(session: ForeignSession, path: str) -> dict[str, Any]:
    """Return the JSON object that an import kept, empty if there is none."""
    try:
        value = files.parse_json(session.kept.get(path, b"{}"))
    except DamagedFileError:
        return {}
    return value if isinstance(value, dict) else {}


def facts_at(document: Document, *paths: str) -> dict[str, Any]:
    """Return by their keys the numbers, texts and lists of texts at some paths of a document that are not empty."""
    facts = {path.rpartition(".")[2]: values.value_at(document, path) for path in paths}
    return {
        key: value
        for key, value in facts.items()
        if value not in (None, "", [])
        and (isinstance(value, str | int | float) or (isinstance(value, list) and value == [*values.texts(value)]))
    }


def to_line(value: object, longest: int = LONGEST_TITLE) -> str:
    """Return a text on one line, without control characters."""
    return canonical.one_line(canonical.without_sequences(values.text(value)), longest)
