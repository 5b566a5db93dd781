"""The forms of what commits hold: states, folders and files, as writers write them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sessgit.errors import DamageError, StoreError
from sessgit.model import canonical
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding, Severity
from sessgit.store import layout
from sessgit.store.backend import Repository
from sessgit.store.objects import Commit
from sessgit.store.store import Store, TurnLines

REPAIR = "`sessgit repair {session}` searches the conversation's file and remotes."


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
    """Return the state of a commit of a session, and report one of another session; raises DamageError if it cannot be
    read."""
    entry = store.repo.entry(store.tree(commit), layout.STATE)
    if entry is None:
        raise DamageError(f"it has no {layout.STATE}")
    data = store.repo.blob(entry[0])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamageError(f"{layout.STATE} is not JSON: {error}") from error
    state = sessions.loads(document)
    if state.id != session:
        report.wrong("state", f"{layout.STATE} is not that of its session")
    return state


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


def turn_lines(store: Store, commit: Commit, number: int) -> TurnLines:
    """Return the lines of a turn as of a commit. Raises DamageError for lines that are not whole, and StoreError if an
    object cannot be read."""
    entry = store.repo.entry(commit.tree, layout.turn_folder(number))
    entries = store.repo.tree(entry[0]) if entry else {}
    for name in (layout.BEFORE, layout.BODY):
        if name in entries and store.repo.lines(entries[name][0])[-1]:
            raise DamageError(f"{name} does not end with a newline")
    lines = store.lines(commit.id, number) if entry else None
    if lines is None or not lines.body:
        raise DamageError(f"the turn has no {layout.BODY if entry else 'folder'}")
    return lines
