"""Records what an import has apart from turns: authored fields, the scratchpad, programs' state, and kept files.

A source says the same at each import, and users may have changed it here since. So what it said is noted with the
session, and only what it says anew is applied, unless it was changed here too: then what is here stays, and the report
names it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessgit import agents
from sessgit.branch import edit
from sessgit.errors import SessgitError
from sessgit.history import pad_lists, session_files
from sessgit.history.session_files import SOURCE
from sessgit.model import address, canonical, humanize, unified_state
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.foreign_session import ForeignSession, clean_description, clean_label
from sessgit.model.pad import Entry
from sessgit.model.unified_state import Unified
from sessgit.record import edit_commit
from sessgit.record.edit_commit import StateEdit
from sessgit.store import layout, secret_filter
from sessgit.store.context import Context
from sessgit.store.secret_filter import Cleaner

_LONGEST_TITLE, _LONGEST_SHOWN = 200, 60
_PLAIN_FIELDS = ("name", "title", "description", "stage", "confidence")
_EMPTY: dict[str, Any] = {
    "name": "", "title": "", "description": "", "labels": [], "stage": "", "confidence": None, "state": "",
    "unified": {}, "created": "", "updated": "", "ended": "",
}  # fmt: skip
"""The fields of a source that says nothing."""


def commit_authored(
    context: Context, tip: str, system: str, session: ForeignSession, turns: int, *, is_new: bool
) -> tuple[str, list[str]]:
    """Return a commit on the tip with what the source says, or the tip if that is nothing new; and what did not fit, in
    words. `turns` is the number of turns that the source has; `is_new` tells that the import created the session."""
    store = context.store
    before = store.state(tip)
    clean_line = secret_filter.line_cleaner(store.paths, before.rules, agents.of(before).protected_keys)
    clean_text = secret_filter.text_cleaner(store.paths, before.rules)
    notes, files = list[str](), dict(session.kept)
    state = unified_state.parse_state(session.unified)
    if (size := unified_state.memory_size(state.working_memory)) > unified_state.LARGEST_MEMORY:
        sizes = humanize.format_size(size), humanize.format_size(unified_state.LARGEST_MEMORY)
        notes.append(f"its working memory has {sizes[0]}, but at most {sizes[1]} are allowed: kept as a file")
        text = json.dumps(state.working_memory, ensure_ascii=False, indent=2)
        files[f"{system}/working-memory.json"] = text.encode("utf-8", "replace") + b"\n"
        state = replace(state, context=unified_state.Memory())
    fields = _fields(session, state, clean_line)
    note = session_files.source_note(store, tip, before.id)
    known = note["said"] if isinstance(note.get("said"), dict) else {}
    after = _apply_fields(context, before, fields, known, notes)
    after = replace(after, unified=_merge_program_state(before.unified, state, known, notes))
    here = pad_lists.read_lists(store, tip)
    lists, marks, over = _merge_pad(here, session.pad, known.get("pad"), clean_line, notes)
    for name, lines in over.items():
        many = humanize.format_count(len(lines), "entry", "entries")
        notes.append(f"{many} of its {name} did not fit on the scratchpad: kept as a file")
        files[f"{system}/pad/{name}.jsonl"] = pads.join_list(lines)
    changes: dict[str, tuple[str, bool] | None] = dict(pad_lists.list_changes(store, tip, here, lists))
    kept = {
        path: (clean_line if path.endswith(".json") else clean_text)(data)[0]
        for path, data in _storable_files(files).items()
    }
    tree = store.tree(tip)
    if not note and store.repo.entry(tree, f"{layout.KEPT}/{SOURCE}") is not None:
        # A fork has the files of its parent, but the source has this session too.
        changes |= {f"{layout.KEPT}/{path}": None for path in session_files.kept_files(store, tip) if path not in kept}
    source = {"session": before.id, "system": system, "id": session.id, "version": 1, "turns": turns}
    source["said"] = {**fields, "pad": marks}
    if session.facts:
        source["facts"] = json.loads(clean_line(canonical.compact(dict(session.facts)))[0])
    for path, data in {**kept, SOURCE: canonical.dumps(source)}.items():
        place, entry = f"{layout.KEPT}/{path}", (store.repo.write_blob(data), False)
        if store.repo.entry(tree, place) != entry:
            changes[place] = entry
    if not is_new and after == before and not changes.keys() - {f"{layout.KEPT}/{SOURCE}"}:
        return tip, notes
    made = StateEdit(f"as {system} has it", after, changes)
    return edit_commit.write_edit(store, before.id, tip, made, store.commit(tip).time), notes


# Authored fields and state


def _fields(session: ForeignSession, state: unified_state.Unified, clean: Cleaner) -> dict[str, Any]:
    """Return what the source says in the form that a session here can have, with secrets redacted."""
    name = _name(session.name)
    fields: dict[str, Any] = {
        "name": name,
        "title": canonical.one_line(session.title or ("" if name else session.name), _LONGEST_TITLE),
        "description": clean_description(session.description),
        "labels": [label for label in map(clean_label, session.labels) if label][: edit.MOST_LABELS],
        "stage": session.stage if session.stage in STAGES else "",
        "confidence": session.confidence,
        "state": "interrupted" if session.state == "interrupted" else "",
        "unified": unified_state.state_document(state),
    }
    for key in ("created", "updated", "ended"):
        seconds = canonical.seconds(getattr(session, key))
        fields[key] = "" if seconds is None else canonical.rfc3339(seconds)
    data, secrets = clean(canonical.compact(fields))
    return json.loads(data) if secrets else fields


def _name(text: str) -> str:
    try:
        return address.check_name(canonical.one_line(text, 100).replace("/", "-").replace("@", " "))
    except SessgitError:
        return ""


def _apply_fields(
    context: Context, before: Session, fields: Mapping[str, Any], known: Mapping[str, Any], notes: list[str]
) -> Session:
    """Return the state with the fields that the source says otherwise than before."""
    new = {key: fields[key] for key, empty in _EMPTY.items() if fields[key] != known.get(key, empty)}
    for key, value in ((key, getattr(before, key)) for key in _PLAIN_FIELDS):
        if known and value not in (fields[key], known.get(key, _EMPTY[key])):
            new.pop(key, None)
            notes.append(f"{key} is {_shown(value)} here and {_shown(fields[key])} there: kept as it is here")
    if new.get("name"):
        try:
            edit.check_name_free(context.index, new["name"], before.id, context.index.here(before.project))
        except SessgitError:
            name = new.pop("name")
            notes.append(f"another conversation is already called “{name}”: imported without a name")
            new["title"] = fields["title"] or before.title or name
    values = {key: new[key] for key in _PLAIN_FIELDS if key in new}
    if "labels" in new:
        gone = {label for label in known.get("labels", ()) if isinstance(label, str)}
        values["labels"] = tuple(sorted(({*before.labels} - gone) | {*new["labels"]}))[: edit.MOST_LABELS]
    if new.get("state") and before.state == "ended":
        values["state"] = new["state"]
    if new.get("created") and not before.origin:
        values["created"] = new["created"]
    if new.get("updated", "") > before.updated:
        values["updated"] = new["updated"]
    if new.get("ended") and before.state != "active":
        values["ended"] = new["ended"]
    return replace(before, **values)


def _shown(value: object) -> str:
    return f"“{canonical.one_line(value, _LONGEST_SHOWN)}”" if isinstance(value, str) else json.dumps(value)


def _merge_program_state(ours: Unified, theirs: Unified, known: Mapping[str, Any], notes: list[str]) -> Unified:
    """Return our state of programs with what the source says otherwise than before; of what was changed here too, ours.
    Without a note of what it said, the source is right."""
    if not known:
        return ours if theirs == unified_state.NO_STATE else theirs
    was, values = unified_state.parse_state(known.get("unified") or {}), dict[str, Any]()
    for path in (*unified_state.SCALARS, *unified_state.COUNTERS, *unified_state.OWN):
        here, there, before = (unified_state.value_at(one, path) for one in (ours, theirs, was))
        if there in (before, here):
            continue
        if here == before:
            values[path] = there
        else:
            notes.append(f"{path} is {_shown(here)} here and {_shown(there)} there: kept as it is here")
    began = was.working_memory, was.working_memory
    memory, both = unified_state.merged_memory(began, ours.working_memory, theirs.working_memory)
    if not unified_state.is_same_json(memory, ours.working_memory):
        values[unified_state.MEMORY] = memory or None
    if both:
        notes.append(f"changed here and there, and kept as it is here: {', '.join(both)} of its working memory")
    return unified_state.with_values(ours, values)


# Scratchpad


def _merge_pad(
    here: pads.Lists, theirs: pads.Lists, known: object, clean: Cleaner, notes: list[str]
) -> tuple[dict[str, bytes], dict[str, list[str]], dict[str, list[bytes]]]:
    """Return the lists with what the source says anew; by list, marks of the entries that the source has, to recognize
    them at the next import; and the lines that do not fit."""
    said = {mark for marks in known.values() for mark in marks} if isinstance(known, dict) else set[str]()
    out, marks, over = dict(here), dict[str, list[str]](), dict[str, list[bytes]]()
    entries = pads.read_pad(here).entries
    texts = {(entry.kind, pads.text_key(entry.text)): entry.id for entry in entries if entry.text}
    size = sum(map(len, here.values()))
    for kind, name in pads.LISTS.items():
        own, present, kept = list[str](), set(pads.split_list(here.get(name, b""))), 0
        for raw in pads.split_list(theirs.get(name, b"")):
            line = clean(raw)[0]
            entry = pads.parse_entry(kind, line)
            if entry is None:
                over.setdefault(name, []).append(line)
                continue
            own.append(_mark(entry))
            if line in present or _mark(entry) in said:
                continue
            if texts.get((kind, pads.text_key(entry.text)), entry.id) != entry.id:
                continue
            older = _older_entries(entry, entries, said)
            if older is None:
                kept += 1
                continue
            out = pads.replace_entries(out, [(one, entry if one.id == entry.id else None) for one in older])
            if any(one.id == entry.id for one in older):
                continue
            if size + len(line) + 1 > pads.LARGEST:
                own.pop()  # it stays new as long as it does not fit
                over.setdefault(name, []).append(line)
                continue
            size += len(line) + 1
            out[name] = pads.join_list([*pads.split_list(out.get(name, b"")), line])
            present.add(line)
        if own:
            marks[name] = own
        if kept:
            one, many = f"{kept} of its {name} was", f"{kept} of its {name} were"
            notes.append(f"{one if kept == 1 else many} changed here and there: kept as here")
    return out, marks, over


def _older_entries(entry: Entry, here: Sequence[Entry], said: Collection[str]) -> list[Entry] | None:
    """Return the entries here that an entry of the source replaces, none if it is new; None if they were changed or
    removed here. Resolved wins over unresolved."""
    same = [one for one in here if one.id == entry.id]
    if not same and any(mark.startswith(entry.id) for mark in said):
        return None
    older = same or [one for one in here if one.kind == entry.kind == "thesis"]
    is_settled = bool(same) and same[0].is_open and bool(entry.resolved)
    return older if is_settled or all(_mark(one) in said for one in older) else None


def _mark(entry: Entry) -> str:
    """Return the id of an entry, and a hash of what else it says but its cycle: a note is in the source's cycle."""
    data = {key: value for key, value in json.loads(entry.line).items() if key not in ("id", "cycle")}
    return entry.id + hashlib.sha256(canonical.compact(data)).hexdigest()[:4]


# Kept files


def _storable_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with valid paths, none of which is a folder of another, without the name of the note."""
    out = dict[str, bytes]()
    for path, data in sorted(files.items()):
        above = {"/".join(path.split("/")[:n]) for n in range(1, path.count("/") + 1)}
        is_valid = all(part not in ("", ".", "..") and part.lower() != ".git" for part in path.split("/"))
        if is_valid and path != SOURCE and not above & out.keys():
            out[path] = data
    return out
