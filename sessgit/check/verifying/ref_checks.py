"""What sessions share: refs, tags, packs, and the files next to the repository that cannot be computed again."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path

from sessgit.check import store_checks
from sessgit.errors import SessgitError, StoreError
from sessgit.model import canonical, ids
from sessgit.model.address import check_tag
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.finding import Finding, Severity
from sessgit.model.humanize import quote_for_shell
from sessgit.store import journal, layout, objects, recorder_state, refs
from sessgit.store.backend import AUTHOR
from sessgit.store.store import Store

_KEPT_NAME = re.compile(r"[0-9a-f]{8}-[1-9][0-9]{0,9}")
_OID = re.compile("[0-9a-f]{40}")


def check(store: Store) -> list[Finding]:
    """Return the findings about what sessions share."""
    return _StoreCheck(store).run()


def kept_tips(store: Store) -> dict[str, dict[str, str]]:
    """Return by session its readable commits that undo or a tag keeps, by their refs."""
    tips: dict[str, dict[str, str]] = {}
    kept = {**refs.read_all(store.path, layout.KEEP), **refs.read_all(store.path, layout.TAGS)}
    for ref, oid in sorted(kept.items()):
        with suppress(SessgitError):
            commit = store.repo.peel(oid)
            if commit and (session := store.message(commit).get("Session")):
                tips.setdefault(session, {})[ref] = commit
    return tips


class _StoreCheck:
    def __init__(self, store: Store) -> None:
        self.store, self.path, self.paths = store, store.path, store.paths
        self.refs = refs.read_all(store.path)
        branches = (ref for ref in self.refs if ref.startswith((layout.HEADS, layout.ARCHIVE)))
        self.branches = {_branch_name(ref) for ref in branches}
        self.moved: dict[str, set[str]] = {}
        """By operation the tips that it removed from refs."""
        self.findings: list[Finding] = []

    def _add(self, severity: Severity, kind: str, where: str, what: str, hint: str = "", *oids: str) -> None:
        self.findings.append(Finding(severity, kind, where, what, hint, oids))

    def run(self) -> list[Finding]:
        self.findings += store_checks.check_packs(self.path, None)
        self.findings += store_checks.check_refs(self.store, None)
        with suppress(StoreError):  # an unreadable journal is a finding of its own
            operations = journal.read(self.paths)
            self.moved = {one.id: {move.old for move in one.moves if move.old} for one in operations}
        spaces = {
            layout.HEADS: self._check_branch, layout.ARCHIVE: self._check_branch, layout.TAGS: self._check_tag,
            layout.DELETED: self._check_tombstone, layout.KEEP: self._check_kept, layout.REMOTES: self._check_remote,
        }  # fmt: skip
        for ref, oid in sorted(self.refs.items()):
            checks = [check for space, check in spaces.items() if ref.startswith(space)]
            for check in checks:
                check(ref, oid)
            if not checks:
                self._add("note", "ref", ref, "unknown ref; it is ignored")
        self._check_names()
        self.findings += store_checks.check_repository(self.paths)
        self.findings += store_checks.check_settings(self.paths)
        self._check_journal()
        self._check_state_files()
        self.findings += store_checks.check_purges(self.paths)
        self._check_purged_commits()
        return self.findings

    # Refs

    def _check_branch(self, ref: str, oid: str) -> None:
        name = _branch_name(ref)
        if not ids.is_branch(name):
            self._add("wrong", "ref", ref, "not a valid name for a branch of a session")
        elif layout.session_of(name) not in self.branches:
            hint = f"sessgit repair {quote_for_shell(layout.session_of(name))}"
            self._add("wrong", "ref", ref, "a side branch whose session has no head", hint)
        if ref.startswith(layout.ARCHIVE) and self.refs.get(layout.head_ref(name), oid) != oid:
            self._add("note", "ref", ref, "a live branch has another last commit, which takes precedence")

    def _check_kept(self, ref: str, oid: str) -> None:
        name = ref.removeprefix(layout.KEEP)
        operation = name.partition("-")[0]
        if not _KEPT_NAME.fullmatch(name):
            self._add("wrong", "ref", ref, "not a valid name for a kept tip")
        elif self.store.repo.read_problem(oid):
            self._add("damage", "object", ref, f"its undo data is missing: object {oid}", "", oid)
        elif operation not in self.moved:
            self._add("note", "ref", ref, "it keeps a tip for an operation that the journal does not have")
        elif not any(self._keeps(oid, old) for old in self.moved[operation]):
            self._add("note", "ref", ref, "it keeps a tip that its operation did not remove")

    def _keeps(self, oid: str, old: str) -> bool:
        """Return whether a commit is the old tip of a ref, or what a repair could keep of it."""
        repo = self.store.repo
        return oid == old or bool(repo.read_problem(old)) or repo.is_ancestor(oid, old)

    def _check_remote(self, ref: str, oid: str) -> None:
        if layout.split_ref(ref)[0] not in layout.REF_SPACES:
            self._add("note", "ref", ref, "it belongs to no remote")
        elif self.store.repo.read_problem(oid):
            folder, name = quote_for_shell(str(self.path)), quote_for_shell(ref)
            hint = f"`git -C {folder} update-ref -d {name}`, then `sessgit pull`"
            self._add("damage", "object", ref, f"an object of a remote is missing here: object {oid}", hint, oid)

    def _check_tag(self, ref: str, oid: str) -> None:
        name = ref.removeprefix(layout.TAGS)
        delete, commit = f"sessgit tag --delete {quote_for_shell(name)}", self.store.repo.peel(oid)
        try:
            check_tag(name)
        except SessgitError:
            self._add("wrong", "tag", ref, "an address cannot name this tag", delete)
        if commit is None:
            hint = f"It is restored with its conversation: `{store_checks.FIX}`. To give it up: `{delete}`"
            self._add("damage", "tag", ref, f"it does not point to a commit: object {oid}", hint, oid)
            return
        with suppress(SessgitError):
            message = self.store.message(commit)
            if message.get("Session") and message.get("Event") in EVENTS:
                return
        self._add("wrong", "tag", ref, "it points to a commit of no session")

    def _check_tombstone(self, ref: str, oid: str) -> None:
        try:
            commit = self.store.commit(oid)
        except SessgitError:
            self._add("damage", "object", ref, f"the tombstone is missing: object {oid}", "", oid)
            return
        tips = [("Tip", tip) for tip in self.store.message(oid).all("Tip") if _OID.fullmatch(tip)]
        message = Message("deleted", (("Session", ref.removeprefix(layout.DELETED)), *tips))
        data = objects.encode_commit(objects.EMPTY_TREE, [], AUTHOR, commit.time, messages.format_message(message))
        if not tips or objects.object_id("commit", data) != oid:
            self._add("wrong", "ref", ref, "it is not a tombstone of that session")

    def _check_names(self) -> None:
        """Report names that several conversations of a project have: two machines may have given one each."""
        owners = dict[tuple[str, str], list[str]]()
        for ref, oid in sorted(self.refs.items()):
            if not ref.startswith((layout.HEADS, layout.ARCHIVE)) or layout.is_side_branch(_branch_name(ref)):
                continue
            with suppress(SessgitError):  # reported with its session
                state = self.store.state(oid)
                if state.name:
                    owners.setdefault((state.project, state.name), []).append(_branch_name(ref))
        for (_, name), sessions in owners.items():
            for session in sorted(set(sessions))[1:]:
                what = f"another conversation of its project is also named {canonical.one_line(name, 60)}"
                self._add("note", "name", session, what, f"sessgit rename {quote_for_shell(session)} NAME")

    # Files next to the repository

    def _check_journal(self) -> None:
        name = self.paths.journal.name
        try:
            journal.read(self.paths)
        except SessgitError as error:
            self._add("damage", "operations", name, str(error), "Move it away: a new one is created.")
        parsed = [journal.parse_line(line) for line in store_checks.read(self.paths.journal).split(b"\n") if line]
        operations = [one for one in parsed if one is not None]
        if count := len(parsed) - len(operations):
            lines = "a line" if count == 1 else f"{count} lines"
            self._add("note", "operations", name, f"{lines} cannot be read, so those operations cannot be undone")
        counts = Counter(one.id for one in operations)
        if any(count > 1 or not re.fullmatch("[0-9a-f]{8}", one) for one, count in counts.items()):
            what = "operations have no id, or the same id: undo may revert the wrong one"
            self._add("wrong", "operations", name, what)
        moved = (oid for one in operations for move in one.moves for oid in (move.old, move.new) if oid is not None)
        if not all(map(_OID.fullmatch, moved)):
            what = "an operation moved a ref from or to an object that is not a commit"
            self._add("wrong", "operations", name, what)

    def _check_state_files(self) -> None:
        """Report unreadable cursors, notes and agreements; commands work without them."""
        for path in sorted(self.paths.state.glob("*.json")):
            place, session = f"state/{path.name}", path.stem
            if re.fullmatch("remote-[0-9a-f]{16}", session):
                if not _is_version_1(path):
                    what = "it cannot be read: the next push or pull compares everything"
                    self._add("note", "agreement", place, what)
            elif ids.is_branch(session) and recorder_state.load_cursor(self.paths, session) is None:
                what = "it cannot be read: the transcript is read from the start again"
                self._add("note", "cursor", place, what)
        for path in sorted(self.paths.state.glob("*.append")):
            if recorder_state.load_intent(self.paths, path.stem) is None:
                what = "it cannot be read: an interrupted merge cannot be completed"
                self._add("note", "appending", f"state/{path.name}", what)
        if self.paths.latest.exists() and not _is_version_1(self.paths.latest):
            self._add("note", "latest", self.paths.latest.name, "it cannot be read: the next turn rewrites it")

    def _check_purged_commits(self) -> None:
        """Report commits that a purge removed and that are back."""
        paths = self.paths
        lines = store_checks.read(paths.rewritten).decode("ascii", "replace").splitlines()
        pairs = [re.fullmatch("([0-9a-f]{40}) ([0-9a-f]{40})", line) for line in lines]
        if not all(pairs):
            what = "a line is not a pair of commits: purged values may return from a remote"
            self._add("wrong", "purge", f"state/{paths.rewritten.name}", what)
        if back := [pair[1] for pair in pairs if pair and self.store.repo.has(pair[1])]:
            what = f"{len(back)} of the commits that a purge removed {'is' if len(back) == 1 else 'are'} back"
            self._add("wrong", "purge", back[0], what, "`sessgit gc --prune` removes unreachable objects.")


def _branch_name(ref: str) -> str:
    return ref.removeprefix(layout.HEADS).removeprefix(layout.ARCHIVE)


def _is_version_1(path: Path) -> bool:
    try:
        document = json.loads(store_checks.read(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("version") == 1
