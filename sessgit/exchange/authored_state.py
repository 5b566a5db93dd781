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
from sessgit.model.foreign_session import ForeignSession
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.secrets import secret_filter
from sessgit.store.secrets.secret_filter import Cleaner
from sessgit.store.store import Store

_LONGEST_TITLE = 200
_TIME_KEYS = ("created", "updated", "ended")
_IMPORTED_STATES = ("interrupted",)
_EMPTY_STATEMENT: dict[str, Any] = {
    "name": "", "title": "", "description": "", "labels": [], "stage": "", "confidence": None, "state": "", "role": "",
    "unified": {}, "created": "", "updated": "", "ended": "",
}  # fmt: skip
"""What a source says that says nothing."""


MEMORY_FILE = "working-memory.json"
"""A working memory for which a state has no room, among the files that are kept of its system."""


@dataclass(frozen=True, slots=True)
class StateCommit:
    """A commit with what a source says of a session, and in words what of that had no place: it is kept as files."""

    commit: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceSession:
    """A session as a system has it, and how many turns that makes here."""

    system: str
    session: ForeignSession
    turns: int


@dataclass
class _Leftovers:
    """What has no place: lines of words for a person, and the files by their paths that hold it."""

    notes: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


def commit_authored_state(
    store: Store, index: Index, tip: str, source: SourceSession, *, first: bool = False
) -> StateCommit:
    """A commit on the tip with what the source says of the session beside its turns; the tip where that is nothing
    new. `first` says that the session comes from the source."""
    system, session = source.system, source.session
    before, rest = store.state(tip), _Leftovers()
    line = secret_filter.line_cleaner(store.beside, before.rules, agents.of(before).protected_keys)
    text = secret_filter.text_cleaner(store.beside, before.rules)
    said = _stated_values(session, line)
    _note_memory(rest, system, session)
    was = session_files.source_note(store, tip, before.id)
    told: dict[str, Any] = was["said"] if isinstance(was.get("said"), dict) else {}
    after = _apply_statement(index, before, said, told, rest)
    held = pad_lists.read_lists(store, tip)
    wanted, lines, over = _merge_pad(held, session.pad, told.get("pad"), line)
    _note_entries(rest, system, over)
    changes: dict[str, tuple[str, bool] | None] = dict(pad_lists.list_changes(store, tip, held, wanted))
    note: dict[str, Any] = {"session": before.id, "system": system, "id": session.id, "version": 1}
    note |= {"turns": source.turns, "said": {**said, "pad": lines}}
    kept = {path: text(data)[0] for path, data in _storable_files({**session.kept, **rest.files}).items()}
    if not was and store.repo.entry(store.tree(tip), f"{layout.KEPT}/{SOURCE}") is not None:
        # What it took over of the session that it left: the source says itself what this one has.
        changes |= {f"{layout.KEPT}/{path}": None for path in session_files.kept_files(store, tip) if path not in kept}
    for path, data in {**kept, SOURCE: canonical.dumps(note)}.items():
        place = f"{layout.KEPT}/{path}"
        entry = (store.repo.write_blob(data), False)
        if store.repo.entry(store.tree(tip), place) != entry:
            changes[place] = entry
    is_new = after != before or bool(changes.keys() - {f"{layout.KEPT}/{SOURCE}"})
    if not is_new and not first:  # what it says anew is what is here already
        return StateCommit(tip, tuple(rest.notes))
    message = Message(f"edit: as {system} has it", (("Session", before.id), ("Event", "edit")))
    made = store.write_commit(tip, changes, after, message, [tip], store.commit(tip).time)
    return StateCommit(made, tuple(rest.notes))


def session_role(state: Session) -> str:
    """What a session is to others, as its state says."""
    meta = state.extra.get("metadata")
    role = meta.get("role") if isinstance(meta, dict) else None
    return role if isinstance(role, str) else ""


# What a source says


def _stated_values(session: ForeignSession, clean: Cleaner) -> dict[str, Any]:
    """What is said of a session, as a session here can have it, with secrets replaced."""
    meta = session.unified.get("metadata")
    role = meta.get("role") if isinstance(meta, dict) else ""
    name = _clean_name(session.name)
    found: dict[str, Any] = {
        "name": name,
        "title": canonical.one_line(session.title or ("" if name else session.name), _LONGEST_TITLE),
        "description": _clean_description(session.description),
        "labels": [label for label in map(_clean_label, session.labels) if label][: edit.MOST_LABELS],
        "stage": session.stage if session.stage in STAGES else "",
        "confidence": session.confidence,
        "state": session.state if session.state in _IMPORTED_STATES else "",
        "role": canonical.one_line(role, edit.LONGEST_LABEL) if isinstance(role, str) else "",
        "unified": unified_state.state_document(_unified_parts(session)),
        **{key: _clean_time(getattr(session, key)) for key in _TIME_KEYS},
    }
    data, secrets = clean(canonical.compact(found))
    return json.loads(data) if secrets else found


def _unified_parts(session: ForeignSession) -> unified_state.Unified:
    found = unified_state.parse_state(session.unified)
    return replace(found, working_memory={}) if _is_memory_too_large(found) else found


def _is_memory_too_large(own: unified_state.Unified) -> bool:
    return unified_state.memory_size(own.working_memory) > unified_state.LARGEST_MEMORY


def _note_memory(rest: _Leftovers, system: str, session: ForeignSession) -> None:
    found = unified_state.parse_state(session.unified)
    if _is_memory_too_large(found):
        many, most = (
            humanize.format_size(one)
            for one in (unified_state.memory_size(found.working_memory), unified_state.LARGEST_MEMORY)
        )
        rest.notes.append(f"its working memory has {many}, but at most {most} are allowed: kept as a file")
        rest.files[f"{system}/{MEMORY_FILE}"] = files.json_document(found.working_memory)


def _clean_time(text: str) -> str:
    found = canonical.seconds(text)
    return "" if found is None else canonical.rfc3339(found)


def _clean_name(text: str) -> str:
    try:
        return address.check_name(canonical.one_line(text, 100).replace("/", "-").replace("@", " "))
    except SessgitError:
        return ""


def _clean_description(text: str) -> str:
    lines = [canonical.printable(line).rstrip().expandtabs(4) for line in text.split("\n")]
    whole = "\n".join(lines).strip()
    return whole if len(whole) <= edit.LONGEST_DESCRIPTION else whole[: edit.LONGEST_DESCRIPTION - 1].rstrip() + "…"


def _clean_label(text: str) -> str:
    return canonical.one_line(text.replace(",", " "), edit.LONGEST_LABEL).lstrip("+-").strip()


def _apply_statement(
    index: Index, before: Session, said: Mapping[str, Any], told: Mapping[str, Any], rest: _Leftovers
) -> Session:  # fmt: skip
    """The state with what the source says otherwise than it did."""
    new = {key: said[key] for key in _EMPTY_STATEMENT if said[key] != told.get(key, _EMPTY_STATEMENT[key])}
    if new.get("name"):
        try:
            edit.check_name_free(index, new["name"], before.id, index.here(before.project))
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
        after = replace(after, unified=unified_state.parse_state(new["unified"]))
    if "role" in new:
        meta = after.extra.get("metadata")
        after = replace(after, extra={**after.extra, "metadata": {**(meta or {}), "role": new["role"]}})
    return after


# The pad


def _merge_pad(
    held: pads.Lists, given: pads.Lists, told: object, clean: Cleaner
) -> tuple[dict[str, bytes], dict[str, list[str]], dict[str, list[bytes]]]:
    """The lists with the entries that the source has anew, a hash of each line of which it has been told, and the
    lines that have no place on the pad."""
    known = told if isinstance(told, dict) else {}
    out, lines, over = dict(held), dict[str, list[str]](), dict[str, list[bytes]]()
    here = pads.read_pad(held).entries
    said = {(entry.kind, pads.text_key(entry.text)) for entry in here if entry.text}
    unsettled = {entry.id: entry for entry in here if entry.is_open}
    size = sum(map(len, held.values()))
    for kind, name in pads.LISTS.items():
        found = [clean(line)[0] for line in pads.split_list(given.get(name, b""))]
        lines[name] = []
        there = set(pads.split_list(held.get(name, b"")))
        for line, mark in zip(found, map(_line_hash, found), strict=True):
            entry = pads.parse_entry(kind, line)
            if entry is None:
                over.setdefault(name, []).append(line)
                continue
            lines[name].append(mark)
            if line in there or mark in known.get(name, ()):
                continue
            if entry.resolved and entry.id in unsettled:
                out = pads.replace_entries(out, [(unsettled[entry.id], entry)])
                continue
            if entry.text and (kind, pads.text_key(entry.text)) in said:
                continue
            if size + len(line) + 1 > pads.LARGEST:
                lines[name].pop()  # it is new as long as it has no room
                over.setdefault(name, []).append(line)
                continue
            size += len(line) + 1
            out[name] = pads.join_list([*pads.split_list(out.get(name, b"")), line])
            there.add(line)
    return out, {name: marks for name, marks in lines.items() if marks}, over


def _note_entries(rest: _Leftovers, system: str, over: Mapping[str, list[bytes]]) -> None:
    for name, lines in over.items():
        many = humanize.format_count(len(lines), "entry", "entries")
        rest.notes.append(f"{many} of its {name} did not fit on the scratchpad: kept as a file")
        rest.files[f"{system}/pad/{name}.jsonl"] = pads.join_list(lines)


def _line_hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:12]


# Files


def _storable_files(kept: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by paths that none of them is a folder of; the note's own name is nobody else's."""
    out = dict[str, bytes]()
    for path, data in sorted(kept.items()):
        above = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
        is_sound = all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))
        if is_sound and path != SOURCE and not above & out.keys():
            out[path] = data
    return out
