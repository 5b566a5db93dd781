"""The findings about one address, as the checks of `verify` collect them."""

from __future__ import annotations

from sessgit.model.finding import Finding, Severity
from sessgit.store import layout
from sessgit.store.store import Store

REPAIR = "`sessgit repair {session}` searches the conversation's file and remotes."


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
