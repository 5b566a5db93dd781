"""The forms of what commits hold: states, folders and files, as writers write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.values import PLAIN
from sessgit.branch import edit
from sessgit.errors import DamageError, SessgitError, StoreError
from sessgit.history import pad_lists, session_files
from sessgit.model import canonical, ids
from sessgit.model import pad as pads
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.finding import Finding, Severity
from sessgit.model.ids import check_name
from sessgit.store import layout
from sessgit.store.backend import Repository
from sessgit.store.objects import Commit
from sessgit.store.store import Store, TurnLines

REPAIR = "`sessgit repair {session}` searches the conversation's file and remotes."


_MOST_PATHS = 3
_PROGRAM_KEYS: Mapping[str, Collection[str]] = {
    **sessions.KEYS,
    "context": ("working_memory", "files", "tool_outputs"),
    "trajectory": ("export_path", "events_count"),
}
"""What programs set, and what other systems keep there that follows from the lines."""
_LIVE_FOLDERS = ("todos", "tasks", "plans")
_SOURCE_KEYS = ("session", "system", "id")
REDACTED = b"[redacted:"
"""The beginning of a placeholder for a secret."""


class Report:
    """Collects findings about a branch or one of its turns."""

    def __init__(self, branch: str, number: int | None = None, findings: list[Finding] | None = None) -> None:
        self.branch, self.number = branch, number
        self.findings = [] if findings is None else findings

    def at(self, branch: str, number: int | None) -> Report:
        """Return a report about another address that adds to the same findings."""
        return Report(branch, number, self.findings)

    @property
    def is_damaged(self) -> bool:
        return any(finding.severity == "damage" for finding in self.findings)

    def add(self, severity: Severity, kind: str, what: str, hint: str = "", *objects: str) -> None:
        """Add a finding about this address."""
        where = self.branch if self.number is None else f"{self.branch}@{self.number}"
        self.findings.append(Finding(severity, kind, where, what, hint, objects))

    def wrong(self, kind: str, what: str) -> None:
        """Add a finding about a broken rule."""
        self.add("wrong", kind, what)

    def missing(self, store: Store, oid: str, what: str) -> None:
        """Add a finding about an object that cannot be read."""
        problem = store.repo.read_problem(oid) or "of another kind"
        self.add("damage", "object", f"{what} is {problem}: object {oid}", self.repair_hint, oid)

    @property
    def repair_hint(self) -> str:
        return REPAIR.format(session=layout.session_of(self.branch))


def read_state(store: Store, commit: str, session: str, report: Report) -> Session:
    """Return the state of a commit of a session, and report the values that no writer writes; raises DamageError if it
    cannot be read."""
    entry = store.entry(commit, layout.STATE)
    if entry is None:
        raise DamageError(f"it has no {layout.STATE}")
    data = store.repo.blob(entry[0])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"{layout.STATE} is not JSON: {error}") from error
    state = sessions.loads(document)
    if not isinstance(document, dict):
        report.wrong("state", f"{layout.STATE} is not an object")
        return state
    for path in islice(differing_paths(document, json.loads(sessions.dumps(_valid(state, session)))), _MOST_PATHS):
        report.wrong("state", f"{path} is missing or not valid")
    if canonical.dumps(document) != data:
        report.wrong("state", f"{layout.STATE} is not written in the canonical form")
    return state


def differing_paths(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths at which two JSON objects differ."""
    for key in sorted(one.keys() | other.keys()):
        left, right = one.get(key, differing_paths), other.get(key, differing_paths)
        if isinstance(left, dict) and isinstance(right, dict):
            yield from differing_paths(left, right, f"{above}{key}.")
        elif left != right or isinstance(left, bool) != isinstance(right, bool):
            yield canonical.one_line(f"{above}{key}", 80)


def _valid(state: Session, session: str) -> Session:
    """Return the state with each identity and authored value replaced that no writer writes."""
    return replace(
        state,
        id=session,
        agent=state.agent if state.agent in agents.PACKAGES else "",
        agent_id=state.agent_id if ids.session_id(state.agent_id or session) == session else session,
        origin=state.origin if state.origin and _is_fork_point(state.origin, session) else None,
        rules={"cut": 0, "redact": 0, **state.rules},
        name=_accepted(check_name, state.name),
        description=_accepted(lambda text: edit.parse_description(text) and text, state.description),
        labels=tuple({label for label in state.labels if _accepted(edit.label, label)})[: edit.MOST_LABELS],
        stage=_accepted(edit.parse_stage, state.stage),
        extra={part: _without_program_keys(part, value) for part, value in state.extra.items()},
    )


def _accepted(parse: Callable[[str], object], value: str) -> str:
    """Return the value if `edit` would accept and store it as it is, else ``""``."""
    try:
        return value if value and parse(value) == value else ""
    except SessgitError:
        return ""


def _is_fork_point(origin: Origin, session: str) -> bool:
    shapes = (
        re.fullmatch("[0-9a-f]{40}", origin.commit),
        re.fullmatch("[0-9a-f]{64}" if origin.prefix else "", origin.prefix_sha256),
        re.fullmatch(rf"(?:{origin.turn + 1}\.(?:0|[1-9][0-9]{{0,8}}))?", origin.cell),
    )
    return all(shapes) and ids.is_branch(origin.session) and origin.session != session


def _without_program_keys(part: str, value: Any) -> Any:
    keys = _PROGRAM_KEYS.get(part, ())
    if not isinstance(value, dict):
        return None if keys else value
    return {key: inner for key, inner in value.items() if key not in keys}


# Trees


def check_objects(store: Store, oid: str, report: Report, checked: set[str], path: str = "") -> None:
    """Report unreadable objects at and below a tree, empty folders, and entries that are neither plain files nor
    folders. Skip objects that are `checked`, and add those that this call looks at."""
    if oid in checked:
        return
    checked.add(oid)
    try:
        entries, irregular = store.repo.tree(oid), store.repo.irregular_entries(oid)
    except StoreError:
        report.missing(store, oid, _label(path))
        return
    for name in irregular:
        report.wrong("tree", f"{canonical.one_line(name, 60)} is neither a plain file nor a folder")
    if path and not entries:
        report.wrong("tree", f"{_label(path)} is an empty folder")
    for name, (entry, is_tree) in entries.items():
        if is_tree:
            check_objects(store, entry, report, checked, f"{path}{name}/")
        elif entry not in checked and name not in irregular:
            checked.add(entry)
            if store.repo.read_problem(entry):
                report.missing(store, entry, _label(f"{path}{name}"))


def _label(path: str) -> str:
    """Return a path in a commit as users know it; in a turn's folder, the path from there on."""
    top, _, rest = path.partition("/")
    if top == layout.TURNS:
        return (rest.split("/", 2)[2:] or [path])[0] or "its folder"
    return path or "its tree"


def differing_entries(repo: Repository, one: str, other: str, above: str = "") -> Iterator[str]:
    """Yield the paths of the files in which two trees differ; ``""`` is an empty tree."""
    entries, others = repo.tree(one) if one else {}, repo.tree(other) if other else {}
    for name in sorted(entries.keys() | others.keys()):
        (left, is_tree), (right, is_folder) = entries.get(name, ("", False)), others.get(name, ("", False))
        if (is_tree or not left) and (is_folder or not right) and left != right:
            yield from differing_entries(repo, left, right, f"{above}{name}/")
        elif (left, is_tree) != (right, is_folder):
            yield f"{above}{name}"


# A turn


def turn_lines(store: Store, commit: Commit, number: int, agent: Agent, report: Report) -> TurnLines:
    """Return the lines of a turn as of a commit, and report files of the client that it cannot have. Raises DamageError
    for lines that are not whole, and StoreError if an object cannot be read."""
    entry = store.repo.entry(commit.tree, layout.turn_folder(number))
    entries = store.repo.tree(entry[0]) if entry else {}
    for name in (layout.BEFORE, layout.BODY):
        if name in entries and store.repo.lines(entries[name][0])[-1]:
            raise DamageError(f"{name} does not end with a newline")
    for top in (layout.SUBAGENTS, layout.FILES):
        for path in store.repo.files(entries[top][0], top) if top in entries else ():
            folder, _, last = path.rpartition("/")
            fits = agent.sidecars.is_subagent(last) if folder == layout.SUBAGENTS else bool(PLAIN.fullmatch(last))
            if folder not in (layout.SUBAGENTS, f"{layout.FILES}/tool-results") or not fits:
                report.wrong("tree", f"{canonical.one_line(path, 80)} is not a file of the client")
    lines = store.lines(commit.id, number) if entry else None
    if lines is None or not lines.body:
        raise DamageError(f"the turn has no {layout.BODY if entry else 'folder'}")
    return lines


# Other folders


def check_other_folder(store: Store, commit: str, name: str, oid: str, report: Report) -> None:
    """Report what is wrong with the scratchpad, kept files or live files of a commit."""
    if name == layout.PAD:
        _check_pad(store, commit, report)
    elif name == layout.KEPT:
        _check_source(store, oid, report)
    else:
        for folder, (entry, is_tree) in store.repo.tree(oid).items():
            files = store.repo.tree(entry) if is_tree else {}
            if folder not in _LIVE_FOLDERS or not files or not all(map(PLAIN.fullmatch, files)):
                report.wrong("tree", f"{name}/{canonical.one_line(folder, 60)} is a file that no recorder writes")


def _check_pad(store: Store, commit: str, report: Report) -> None:
    lists = pad_lists.read_lists(store, commit)
    pad = pads.read_pad(lists)
    if pad.passed:
        lines = "line that is not an entry" if pad.passed == 1 else "lines that are not entries"
        report.add("note", "pad", f"the pad has {pad.passed:,} {lines}; they are kept, but ignored")
    for name, data in lists.items():
        if not data.endswith(b"\n"):
            problem = "does not end with a newline" if data else "is empty"
            report.wrong("pad", f"{layout.PAD}/{name}.jsonl {problem}")
    for entry in pad.entries:
        if not _is_canonical(entry):
            report.wrong("pad", f"the {entry.kind} {entry.id} has an id or a form that does not follow from its text")


def _is_canonical(entry: pads.Entry) -> bool:
    """Return whether an entry is written in the standard form, with the id of its text. That of a redacted text cannot
    be checked."""
    has_id = pads.entry_with_line(replace(entry, id="")).id == entry.id
    return (has_id or REDACTED in entry.line) and pads.entry_with_line(entry).line == entry.line


def _check_source(store: Store, oid: str, report: Report) -> None:
    """Report an invalid note of where an imported session came from."""
    files = store.repo.files(oid)
    if session_files.SOURCE not in files:
        return
    try:
        note = json.loads(store.repo.blob(files[session_files.SOURCE][0]))
    except (ValueError, RecursionError):
        note = None
    is_named = isinstance(note, dict) and all(isinstance(note.get(key), str) and note[key] for key in _SOURCE_KEYS)
    if not is_named or note.get("version") != 1 or not isinstance(note.get("said"), dict):
        report.wrong("kept", f"{layout.KEPT}/{session_files.SOURCE} does not name the source of the session")
