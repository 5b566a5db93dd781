"""The commits of a branch, from the first one on: each may change only what its event may change, and must fit its
lines.

The folder of a turn is made again, in memory, from its lines. What can be computed again, from the lines or from the
parents of a merge or a join, is not checked: counts, subjects, dates, merged labels and the like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sessgit import agents
from sessgit.agents import turn_folder
from sessgit.check import stored_forms
from sessgit.check.stored_forms import Report
from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.history import session_files
from sessgit.model import canonical, ids
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS
from sessgit.model.conversation.session import Session
from sessgit.model.finding import Finding
from sessgit.model.frozen import frozen
from sessgit.record import tip_delivery
from sessgit.store import backend, layout, refs
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store, lines_hash

_TURNS = ("turn", "cell", "graft")
_CHANGES: Mapping[str, tuple[str, ...]] = {
    "start": (layout.FORMAT_FILE, layout.STATE, layout.PAD),
    "fork": (layout.STATE, *layout.CARRIED),
    **dict.fromkeys(_TURNS, (layout.STATE, layout.LIVE, *layout.CARRIED)),
    "end": (layout.STATE, layout.TAIL),
    "compact": (layout.TAIL,),
    "edit": (layout.STATE, *layout.CARRIED),
    "merge": (layout.STATE, *layout.CARRIED),
    "repair": (),
}
"""What the commits of each event may add and change in the tree of the commit before, besides the folders of turns."""
_TOP = (layout.FORMAT_FILE, layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)
_MOST_NAMED = 3


@frozen
class Checked:
    """A checked commit: the last turn up to it, the state as of it, and whether anything up to it is damaged."""

    commit: str
    session: str
    number: int = 0
    key: str = ""
    state: Session | None = None
    is_damaged: bool = False


class Cache:
    """What one process has checked: what sessions share is checked once."""

    def __init__(self, store: Store) -> None:
        self.scratch = Store(store.path, backend.Repository(store.path, pack=backend.Overlay(store.repo)))
        """The store with the folders that are made again, in memory."""
        self.commits = dict[str, Checked]()
        self.objects = set[str]()
        """Trees and files whose readability is known."""
        self.prompts = set[str]()
        """The keys of the turns: a turn that grew or was merged has several commits."""


def check_branch(store: Store, branch: str, tip: str, cache: Cache) -> list[Finding]:
    """Return the findings about the commits of a branch that are not in the cache."""
    session, report = layout.session_of(branch), Report(branch)
    unchecked, before = _unchecked(store, tip, cache, report)
    is_cut_off = bool(report.findings)
    if before and before.is_damaged and before.session != session:
        what = f"its shared part with {layout.short_name(before.session)} is damaged, see there"
        report.at(branch, before.number or None).add("note", "shared", what)
    for commit in reversed(unchecked):
        check = _CommitCheck(store, branch, commit, before, cache, is_first=before is None and not is_cut_off)
        before, is_cut_off = check.run(), False
        cache.commits[commit.id] = before
        report.findings += check.report.findings
    if before is not None and before.session != session:
        owner = layout.short_name(before.session) or "no session"
        report.wrong("trailer", f"its last commit is one of {owner}")
    return report.findings


def _unchecked(store: Store, tip: str, cache: Cache, report: Report) -> tuple[list[Commit], Checked | None]:
    """Return the commits from a tip back to the first one that is in the cache, and that one; report an unreadable
    one."""
    unchecked: list[Commit] = []
    oid: str | None = tip
    while oid is not None and oid not in cache.commits:
        try:
            commit = store.commit(oid)
        except SessgitError:
            report.missing(store, oid, "a commit of its history" if unchecked else "its commit")
            return unchecked, None
        unchecked.append(commit)
        oid = commit.parents[0] if commit.parents else None
    return unchecked, cache.commits[oid] if oid else None


class _CommitCheck:
    """The check of one commit; `before` is the commit before it, None for the first one or if it cannot be read."""

    def __init__(
        self, store: Store, branch: str, commit: Commit, before: Checked | None, cache: Cache, *, is_first: bool
    ) -> None:
        self.store, self.commit, self.cache, self.is_first = store, commit, cache, is_first
        self.message = messages.parse_message(commit.message)
        self.session, self.event = self.message.get("Session"), self.message.get("Event")
        self.number, self.key = self.message.number("Turn") or 0, self.message.get("Prompt")
        is_own = self.session == layout.session_of(branch)
        at = self.number or (before.number if before else None) or None
        self.report = Report(branch if is_own else self.session or branch, at)
        self.has_before = before is not None
        self.before = before or Checked("", self.session)

    def run(self) -> Checked:
        """Check the commit; `report` has the findings afterwards."""
        before, event = self.before, self.event
        stored_forms.check_objects(self.store, self.commit.tree, self.report, self.cache.objects)
        result = replace(before, commit=self.commit.id, session=self.session)
        try:
            self.state = stored_forms.read_state(self.store, self.commit.id, self.session, self.report)
        except NewerStoreError:
            raise
        except (DamageError, StoreError) as error:
            self.report.add("damage", "state", str(error))
            return replace(result, state=None, is_damaged=True)
        entries: Mapping[str, Entry] = {}
        try:
            entries = self.store.repo.tree(self.commit.tree)
            self._check_event()
            self._check_entries(entries)
            self._check_contents(entries)
        except (DamageError, StoreError) as error:
            if not self.report.is_damaged:
                self.report.add("damage", "tree" if isinstance(error, DamageError) else "object", str(error))
        is_damaged = before.is_damaged or self.report.is_damaged
        result = replace(result, state=self.state, is_damaged=is_damaged)
        if not self.number or event not in (*_TURNS, "fork"):
            return result
        self.cache.prompts.add(self.key)
        return replace(result, number=self.number, key=self.key)

    def _check_event(self) -> None:
        wrong, event, parents = self.report.wrong, self.event, self.commit.parents
        if event not in EVENTS:
            wrong("trailer", f"the event “{canonical.one_line(event, 40)}” is unknown")
        if self.is_first and event != "start":
            wrong("history", f"the history begins with the event {event or 'of no name'}, not with a start")
        if event == "start" and self.has_before:
            wrong("history", "a start is in the middle of the history")
        most = 2 if event in ("merge", "edit") else 1
        if len(parents) > most or (event == "merge" and len(parents) == 1):
            wrong("history", f"a commit of the event {event} has {len(parents)} parents")
        for parent in parents[1:]:
            if self.store.repo.read_problem(parent):
                self.report.missing(self.store, parent, "what was merged here")
        is_same_turn = (self.number, self.key) == (self.before.number, self.before.key)
        if event in _TURNS and self.has_before and not is_same_turn and self.number != self.before.number + 1:
            wrong("numbers", f"turn {self.number} follows turn {self.before.number}")
        if event in (*_TURNS, "end") and self.has_before and self.commit.tree == self.store.tree(self.before.commit):
            wrong("history", f"a commit of the event {event} changes nothing")
        if event == "graft" and not self.message.get("Origin"):
            wrong("trailer", "a graft does not name the turn that it is a copy of")

    def _check_entries(self, entries: Mapping[str, Entry]) -> None:
        if unknown := sorted(entries.keys() - set(_TOP)):
            what = f"unknown entry {canonical.one_line(unknown[0], 60)} in a commit; it is ignored"
            self.report.add("note", "tree", what)

    # Lines

    def _check_contents(self, entries: Mapping[str, Entry]) -> None:
        """Check the lines of the commit, and what else it changes."""
        own = list[int]()
        if self.event in _TURNS:
            own = [self.number]
            self._check_lines(self._check_turn(self.number), is_unended=self.message.is_unended)
        elif self.event in ("end", "compact"):
            *lines, rest = self.store.tail_lines(self.commit.id)
            if sum(extent.lines for extent in self.message.extents) < len(lines) + bool(rest):
                self.report.wrong("extent", f"{layout.TAIL} has lines that its extents do not cover")
            self._check_lines([*lines, rest] if rest else lines, is_unended=bool(rest))
        elif self.event == "fork":
            own = self._check_fork()
        if self.event in (*_TURNS, "fork", "start") and layout.TAIL in entries:
            self.report.wrong("tree", f"a commit of the event {self.event} has a {layout.TAIL}")
        turns = self.number if self.number in own else self.before.number
        if (self.has_before or self.event == "start") and self.state.turns != turns:
            self.report.wrong("counts", f"its state has {self.state.turns} turns, but the last one is turn {turns}")
        if self.has_before:
            self._check_kept_values()
        if self.event == "edit" and len(self.commit.parents) > 1:
            self._check_join()
        elif self.has_before or self.event == "start":
            self._check_changes(entries, own)
        if self.event == "merge" and len(self.commit.parents) == 2:
            self._check_merge()

    def _check_turn(self, number: int) -> list[bytes]:
        """Make the folder of a turn again from its lines, and report what differs; return the lines. Raises
        DamageError."""
        store, scratch, agent = self.store, self.cache.scratch, agents.of(self.state)
        lines = stored_forms.turn_lines(store, self.commit, number)
        before, body = agent.parsed(lines.before), agent.parsed(lines.body)
        if number == self.number and ids.is_turn_key(body[0].uuid) and body[0].uuid != self.key:
            self.report.wrong("trailer", f"its prompt is {body[0].uuid}, but the commit says {self.key}")
        turn = agent.cells.describe(body)
        files = turn_folder.files(agent, before, body, turn, self.state.rules.get("cut", 0))
        again = scratch.write_folder(files, store.side_files(self.commit.id, number))
        path = layout.turn_folder(number)
        stored, _ = store.repo.entry(self.commit.tree, path) or ("", True)
        for name in stored_forms.differing_entries(scratch.repo, again, stored):
            what = f"does not follow from its lines: {canonical.one_line(f'{path}/{name}', 80)}"
            self.report.wrong("cells" if name == layout.CELLS else "file", what)
        return [line.raw for line in (*before, *body)]

    def _check_lines(self, lines: list[bytes], *, is_unended: bool) -> None:
        """Compare the last of the lines with the extents and the hash that the commit has of them. The length of an
        extent is known only if none of its lines was redacted."""
        message, extents = self.message, self.message.extents
        count, at = sum(extent.lines for extent in extents), 0
        if message.all("Extent") != [str(extent) for extent in extents]:
            self.report.wrong("extent", "an extent has an invalid form")
        if message.get("Original-HMAC") and not message.number("Redacted"):
            self.report.wrong("trailer", "it has a proof of redacted lines, but no line was redacted")
        if count > len(lines):
            self.report.add("damage", "extent", f"there are {len(lines)} lines, but the extents cover {count}")
        if not count or count > len(lines):
            return
        own = lines[len(lines) - count :]
        if lines_hash(own) != message.get("Lines-SHA256"):
            what = "its lines differ from the recorded ones: Lines-SHA256 does not match"
            self.report.add("damage", "hash", what, self.report.repair_hint)
        for extent in extents:
            part, at = own[at : at + extent.lines], at + extent.lines
            length = sum(map(len, part)) + len(part) - (is_unended and at == count)
            if length != extent.length and not message.number("Redacted"):
                self.report.wrong("extent", f"the lines of the extent {extent} have {length:,} bytes")

    # Forks

    def _check_fork(self) -> list[int]:
        """Check the fork point; return the turns that the fork has folders of its own of."""
        origin, before = self.state.origin, self.before
        if origin is None:
            self.report.wrong("fork", "the state of a fork names no origin")
            return []
        is_ours = bool(origin.prefix or not origin.turn)  # sessgit wrote its beginning, or it has none
        if is_ours and self.message.extents:
            self.report.wrong("extent", "no line of it was read from a file, but it has extents")
        replaced = origin.replaced
        if not is_ours and replaced and before.state is not None:
            parent = before.state
            replaced = (parent.agent_id, *(parent.origin.replaced if parent.origin else ()))
        is_right = (origin.commit, origin.turn, origin.replaced) == (before.commit, before.number, replaced)
        if self.has_before and not is_right:
            self.report.wrong("fork", "its origin is not the commit that it follows")
        if self.message.get("Fork-Point") != f"{origin.session}@{origin.cell or origin.turn}":
            self.report.wrong("fork", "its Fork-Point is not its origin")
        if is_ours:
            own = [self.number] if origin.cell else []
        elif self.has_before:
            trees = self.commit.tree, self.store.tree(before.commit)
            folders = ((n, layout.turn_folder(n)) for n in range(1, origin.turn + 1))
            own = [n for n, path in folders if len({self.store.repo.entry(tree, path) for tree in trees}) > 1]
        else:
            own = []
        for number in own:
            self._check_turn(number)
        return own

    # What else changes

    def _check_kept_values(self) -> None:
        """Report changes of what stays as long as a session does."""
        before, state = self.before.state, self.state
        if before is None or before.id != state.id or len(self.commit.parents) != 1:
            return
        if before.rules != state.rules:
            self.report.wrong("state", "it changes the rules by which the session is recorded")
        if before.origin is not None and before.origin != state.origin:
            self.report.wrong("fork", "it changes the origin of the session")

    def _check_join(self) -> None:
        """Report turns that a join of two versions of a session leaves out."""
        store, parents = self.store, self.commit.parents
        if not any(map(store.repo.read_problem, parents)) and tip_delivery.has_own_turns(store, *reversed(parents)):
            self.report.add("damage", "join", "it leaves out turns of the side that it joins")

    def _check_merge(self) -> None:
        """Report what a merge may not change of its first parent's state, and a wrong origin."""
        state, before = self.state, self.before.state
        if before is not None:
            authored = replace(
                before, description=state.description, labels=state.labels, stage=state.stage,
                confidence=state.confidence, unified=state.unified, state=state.state, ended=state.ended,
            )  # fmt: skip
            if authored != state:
                self.report.wrong("merge", "it changes more of its first parent's state than the authored fields")
        with suppress(SessgitError):  # an unreadable parent is reported on its own
            if not self._has_origin(self.commit.parents[1]):
                self.report.wrong("merge", "its Origin names a session that does not contain its second parent")

    def _has_origin(self, parent: str) -> bool:
        """Return whether the parent is a commit of the session that Origin names, if that session is here."""
        session = layout.session_of(self.message.get("Origin").partition("@")[0])
        if self.store.message(parent).get("Session") == session:
            return True
        tips = [tip for tip, _ in refs.branches(self.store.path, session).values()] if ids.is_branch(session) else []
        return not tips or any(one.id == parent for tip in tips for one in self.store.repo.first_parents(tip))

    def _check_changes(self, entries: Mapping[str, Entry], own: Sequence[int]) -> None:
        """Report entries of the tree that its event may not change; `own` are the turns whose folders it may."""
        repo, before = self.store.repo, self.before.state
        tree = self.store.tree(self.before.commit) if self.has_before else ""
        may = set(_CHANGES.get(self.event, _TOP))
        if before is not None and before.id != self.state.id:
            may.add(layout.STATE)
        if self.event == "edit" and not repo.entry(self.commit.tree, f"{layout.KEPT}/{session_files.SOURCE}"):
            may.discard(layout.KEPT)  # only another system that a session came from changes these
        if self.event in (*_TURNS, "fork"):
            may |= {layout.TAIL, layout.LIVE} - entries.keys()
        folders = tuple(f"{layout.turn_folder(number)}/" for number in own)
        paths = stored_forms.differing_entries(repo, tree, self.commit.tree)
        checked = (path for path in paths if path.partition("/")[0] in _TOP and not path.startswith(folders))
        self._report_paths([path for path in checked if path.partition("/")[0] not in may])

    def _report_paths(self, paths: Sequence[str]) -> None:
        """Report paths of the tree that differ from what they must be."""
        for kind in ("state", "closed", "tree"):
            of_kind = [path for path in paths if _kind(path) == kind]
            more = f" and {len(of_kind) - _MOST_NAMED:,} more" if len(of_kind) > _MOST_NAMED else ""
            named = ", ".join(canonical.one_line(path, 80) for path in of_kind[:_MOST_NAMED])
            if of_kind:
                what = f"does not follow from its lines and the commits before it: {named}{more}"
                self.report.wrong(kind, what)


def _kind(path: str) -> str:
    """Return the kind of a finding about a path in a commit's tree."""
    if path == layout.STATE:
        return "state"
    return "closed" if path.startswith(f"{layout.TURNS}/") else "tree"
