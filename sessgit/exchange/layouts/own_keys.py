"""What a layout of another system has no key for: an object `sessgit` in its own documents, which it passes over.

So what is exported and imported again is the same session. All of it comes from outside when it is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sessgit.exchange.layouts import files
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.foreign_session import ForeignSession

KEY = "sessgit"
_TEXTS = ("title", "name", "description", "project", "created", "updated", "ended", "stage", "parent", "agent")
_LARGEST_NUMBER = 1 << 20


def own_object(session: ForeignSession, *without: str) -> dict[str, Any]:
    """What there is to say of a session, but for the parts that the layout says itself; empty where that is all."""
    found: dict[str, Any] = {key: getattr(session, key) for key in _TEXTS if getattr(session, key)}
    if session.labels:
        found["labels"] = list(session.labels)
    if session.confidence is not None:
        found["confidence"] = session.confidence
    if session.branch is not None:
        found["branch"] = session.branch
    if session.archived:
        found["archived"] = True
    if session.state != "ended":
        found["state"] = session.state
    if session.pad:
        found["pad"] = {name: data.decode("utf-8", "replace") for name, data in sorted(session.pad.items())}
    if session.unified:
        found["unified"] = dict(session.unified)
    return {key: value for key, value in found.items() if key not in without}


def apply_own_object(session: ForeignSession, value: object, *without: str) -> ForeignSession:
    """The session with what such an object says, but for the parts that the layout says itself."""
    said = {key: one for key, one in files.dict_or_empty(value).items() if key not in without}
    texts: dict[str, Any] = {key: said[key] for key in _TEXTS if isinstance(said.get(key), str)}
    out = replace(session, **texts)
    if out.stage not in ("", *STAGES):
        out = replace(out, stage="")
    if files.nonempty_texts(said.get("labels")):
        out = replace(out, labels=files.nonempty_texts(said["labels"]))
    confidence = files.number_or_none(said.get("confidence"))
    if confidence is not None and 0 <= confidence <= 1:
        out = replace(out, confidence=confidence)
    if type(said.get("branch")) is int and 0 <= said["branch"] < _LARGEST_NUMBER:
        out = replace(out, branch=said["branch"])
    if said.get("state") in ("active", "interrupted"):
        out = replace(out, state=said["state"])
    pad = {name: files.text_or_empty(data).encode() for name, data in files.dict_or_empty(said.get("pad")).items()}
    known = {name: data for name, data in pad.items() if name in pads.LISTS.values() and data}
    return replace(
        out,
        archived=out.archived or said.get("archived") is True,
        pad={**out.pad, **known},
        unified=dict(files.dict_or_empty(said["unified"])) if files.dict_or_empty(said.get("unified")) else out.unified,
    )
