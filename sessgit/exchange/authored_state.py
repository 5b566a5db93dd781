"""What an import brings beside the turns: what was said of the session, its pad, its state, and the files it keeps.

A source says the same each time, and a person may have said otherwise since. So what it said is noted with the
session, and only what it says anew is taken over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit import agents
from sessgit.branch import edit
from sessgit.errors import SessgitError
from sessgit.exchange.layouts import files
from sessgit.history import pad_lists, session_files
from sessgit.history.session_files import SOURCE
from sessgit.model import address, canonical, humanize, unified_state
from sessgit.model import pad as pads
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.foreign_session import Foreign
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.secrets import secret_filter
from sessgit.store.secrets.secret_filter import Clean
from sessgit.store.store import Store

_TITLE = 200
_TIMES = ("created", "updated", "ended")
_STATES = ("interrupted",)
_NOTHING: dict[str, Any] = {
    "name": "", "title": "", "description": "", "labels": [], "stage": "", "confidence": None, "state": "", "role": "",
    "unified": {}, "created": "", "updated": "", "ended": "",
}  # fmt: skip
"""What a source says that says nothing."""


MEMORY = "working-memory.json"
"""A working memory for which a state has no room, among the files that are kept of its system."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A commit with what a source says of a session, and in words what of that had no place: it is kept as files."""

    commit: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A session as a system has it, and how many turns that makes here."""

    system: str
    session: Foreign
    turns: int


@dataclass
class _Rest:
    """What has no place: lines of words for a person, and the files by their paths that hold it."""

    notes: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


def brought(store: Store, index: Index, tip: str, source: Source, *, first: bool = False) -> Stated:
    """A commit on the tip with what the source says of the session beside its turns; the tip where that is nothing
    new. `first` says that the session comes from the source."""
    system, session = source.system, source.session
    before, rest = store.state(tip), _Rest()
    line = secret_filter.line(store.beside, before.rules, agents.of(before).protected_keys)
    text = secret_filter.text(store.beside, before.rules)
    said = _said(session, line)
    _tell_of_memory(rest, system, session)
    was = session_files.source_note(store, tip, before.id)
    told: dict[str, Any] = was["said"] if isinstance(was.get("said"), dict) else {}
    after = _stated(index, before, said, told, rest)
    held = pad_lists.read(store, tip)
    wanted, lines, over = _pad(held, session.pad, told.get("pad"), line)
    _tell_of_entries(rest, system, over)
    changes: dict[str, tuple[str, bool] | None] = dict(pad_lists.changes(store, tip, held, wanted))
    note: dict[str, Any] = {"session": before.id, "system": system, "id": session.id, "version": 1}
    note |= {"turns": source.turns, "said": {**said, "pad": lines}}
    kept = {path: text(data)[0] for path, data in _keepable({**session.kept, **rest.files}).items()}
    if not was and store.repo.entry(store.tree(tip), f"{layout.KEPT}/{SOURCE}") is not None:
        # What it took over of the session that it left: the source says itself what this one has.
        changes |= {f"{layout.KEPT}/{path}": None for path in session_files.files(store, tip) if path not in kept}
    for path, data in {**kept, SOURCE: canonical.dumps(note)}.items():
        place = f"{layout.KEPT}/{path}"
        entry = (store.repo.write_blob(data), False)
        if store.repo.entry(store.tree(tip), place) != entry:
            changes[place] = entry
    is_new = after != before or bool(changes.keys() - {f"{layout.KEPT}/{SOURCE}"})
    if not is_new and not first:  # what it says anew is what is here already
        return Stated(tip, tuple(rest.notes))
    message = Message(f"edit: as {system} has it", (("Session", before.id), ("Event", "edit")))
    made = store.write_commit(tip, changes, after, message, [tip], store.commit(tip).time)
    return Stated(made, tuple(rest.notes))


def role_of(state: Session) -> str:
    """What a session is to others, as its state says."""
    meta = state.extra.get("metadata")
    role = meta.get("role") if isinstance(meta, dict) else None
    return role if isinstance(role, str) else ""


# What a source says


def _said(session: Foreign, clean: Clean) -> dict[str, Any]:
    """What is said of a session, as a session here can have it, with secrets replaced."""
    meta = session.unified.get("metadata")
    role = meta.get("role") if isinstance(meta, dict) else ""
    name = _name(session.name)
    found: dict[str, Any] = {
        "name": name,
        "title": canonical.one_line(session.title or ("" if name else session.name), _TITLE),
        "description": _description(session.description),
        "labels": [label for label in map(_label, session.labels) if label][: edit.MOST_LABELS],
        "stage": session.stage if session.stage in STAGES else "",
        "confidence": session.confidence,
        "state": session.state if session.state in _STATES else "",
        "role": canonical.one_line(role, edit.LONGEST_LABEL) if isinstance(role, str) else "",
        "unified": unified_state.document(_parts(session)),
        **{key: _time(getattr(session, key)) for key in _TIMES},
    }
    data, secrets = clean(canonical.compact(found))
    return json.loads(data) if secrets else found


def _parts(session: Foreign) -> unified_state.Unified:
    found = unified_state.of(session.unified)
    return replace(found, working_memory={}) if _too_large(found) else found


def _too_large(own: unified_state.Unified) -> bool:
    return unified_state.size(own.working_memory) > unified_state.LARGEST_MEMORY


def _tell_of_memory(rest: _Rest, system: str, session: Foreign) -> None:
    found = unified_state.of(session.unified)
    if _too_large(found):
        many, most = (
            humanize.size(one) for one in (unified_state.size(found.working_memory), unified_state.LARGEST_MEMORY)
        )
        rest.notes.append(f"its working memory has {many}, but at most {most} are allowed: kept as a file")
        rest.files[f"{system}/{MEMORY}"] = files.document(found.working_memory)


def _time(text: str) -> str:
    found = canonical.seconds(text)
    return "" if found is None else canonical.rfc3339(found)


def _name(text: str) -> str:
    try:
        return address.check_name(canonical.one_line(text, 100).replace("/", "-").replace("@", " "))
    except SessgitError:
        return ""


def _description(text: str) -> str:
    lines = [canonical.printable(line).rstrip().expandtabs(4) for line in text.split("\n")]
    whole = "\n".join(lines).strip()
    return whole if len(whole) <= edit.LONGEST_DESCRIPTION else whole[: edit.LONGEST_DESCRIPTION - 1].rstrip() + "…"


def _label(text: str) -> str:
    return canonical.one_line(text.replace(",", " "), edit.LONGEST_LABEL).lstrip("+-").strip()


def _stated(
    index: Index, before: Session, said: Mapping[str, Any], told: Mapping[str, Any], rest: _Rest
) -> Session:  # fmt: skip
    """The state with what the source says otherwise than it did."""
    new = {key: said[key] for key in _NOTHING if said[key] != told.get(key, _NOTHING[key])}
    if new.get("name"):
        try:
            edit.check_free(index, new["name"], before.id, index.here(before.project))
        except SessgitError:
            name = new.pop("name")
            rest.notes.append(f"another conversation is already called “{name}”: imported without a name")
            new["title"] = said["title"] or before.title or name
    values = {key: new[key] for key in ("name", "title", "description", "stage", "confidence") if key in new}
    after = replace(before, **values)
    if "labels" in new:
        gone = {label for label in told.get("labels", ()) if isinstance(label, str)}
        after = replace(after, labels=tuple(sorted(({*before.labels} - gone) | {*new["labels"]}))[: edit.MOST_LABELS])
    if new.get("state") and before.state == "ended":
        after = replace(after, state=new["state"])
    if new.get("created") and not after.origin:
        after = replace(after, created=new["created"])
    if new.get("updated", "") > after.updated:
        after = replace(after, updated=new["updated"])
    if new.get("ended") and after.state != "active":
        after = replace(after, ended=new["ended"])
    if "unified" in new:
        after = replace(after, unified=unified_state.of(new["unified"]))
    if "role" in new:
        meta = after.extra.get("metadata")
        after = replace(after, extra={**after.extra, "metadata": {**(meta or {}), "role": new["role"]}})
    return after


# The pad


def _pad(
    held: pads.Lists, given: pads.Lists, told: object, clean: Clean
) -> tuple[dict[str, bytes], dict[str, list[str]], dict[str, list[bytes]]]:
    """The lists with the entries that the source has anew, a hash of each line of which it has been told, and the
    lines that have no place on the pad."""
    known = told if isinstance(told, dict) else {}
    out, lines, over = dict(held), dict[str, list[str]](), dict[str, list[bytes]]()
    here = pads.read(held).entries
    said = {(entry.kind, pads.same(entry.text)) for entry in here if entry.text}
    unsettled = {entry.id: entry for entry in here if entry.is_open}
    size = sum(map(len, held.values()))
    for kind, name in pads.LISTS.items():
        found = [clean(line)[0] for line in pads.split(given.get(name, b""))]
        lines[name] = []
        there = set(pads.split(held.get(name, b"")))
        for line, mark in zip(found, map(_hash, found), strict=True):
            entry = pads.parsed(kind, line)
            if entry is None:
                over.setdefault(name, []).append(line)
                continue
            lines[name].append(mark)
            if line in there or mark in known.get(name, ()):
                continue
            if entry.resolved and entry.id in unsettled:
                out = pads.replaced(out, [(unsettled[entry.id], entry)])
                continue
            if entry.text and (kind, pads.same(entry.text)) in said:
                continue
            if size + len(line) + 1 > pads.LARGEST:
                lines[name].pop()  # it is new as long as it has no room
                over.setdefault(name, []).append(line)
                continue
            size += len(line) + 1
            out[name] = pads.joined([*pads.split(out.get(name, b"")), line])
            there.add(line)
    return out, {name: marks for name, marks in lines.items() if marks}, over


def _tell_of_entries(rest: _Rest, system: str, over: Mapping[str, list[bytes]]) -> None:
    for name, lines in over.items():
        many = humanize.counted(len(lines), "entry", "entries")
        rest.notes.append(f"{many} of its {name} did not fit on the scratchpad: kept as a file")
        rest.files[f"{system}/pad/{name}.jsonl"] = pads.joined(lines)


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:12]


# Files


def _keepable(kept: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by paths that none of them is a folder of; the note's own name is nobody else's."""
    out = dict[str, bytes]()
    for path, data in sorted(kept.items()):
        above = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
        is_sound = all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))
        if is_sound and path != SOURCE and not above & out.keys():
            out[path] = data
    return out
