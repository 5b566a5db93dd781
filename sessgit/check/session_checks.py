"""What `verify` checks of one session: its commits, from the first one on, and its file, laid out from them.

Each commit may change only what its event may change, and must fit its lines.

The folder of a turn is made again, in memory, from its lines. Of a join and of a merge, each authored value must follow
from both sides. Counts, subjects, dates and the like are not checked: they can be computed again from the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from sessgit import agents
from sessgit.agents import Agent
from sessgit.agents.cutter import Cutter, Node, folder_files, line_of
from sessgit.agents.line import Line, Reader, no_redaction, opened
from sessgit.agents.values import PLAIN
from sessgit.branch import edit, merge_plan
from sessgit.branch.merge_plan import MergeSides
from sessgit.check import store_checks
from sessgit.errors import DamageError, NewerStoreError, NotFoundError, SessgitError, StoreError
from sessgit.history import diff, pad_lists, reassemble, session_files
from sessgit.history.reassemble import LaidOutFile, Piece, Pieces, own_commits, was_continued_without_newline
from sessgit.model import canonical, humanize, ids, merge_decisions
from sessgit.model import pad as pads
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import EVENTS, Extent, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.finding import Finding, Severity
from sessgit.model.frozen import frozen
from sessgit.model.ids import check_name
from sessgit.model.merge_decisions import Base, Choice
from sessgit.record import fork_detection, tip_delivery
from sessgit.record.source import RecordedTurns
from sessgit.store import backend, layout, recorder_state, refs, secret_filter
from sessgit.store.backend import Repository
from sessgit.store.index import Branch
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store, TurnLines, lines_hash, with_newlines

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
_AUTHORED = ("name", "description", "labels", "stage", "confidence", "unified")
_MERGED_EVENTS = (*_TURNS, "compact")
_OTHER_EVENTS = ("end", "edit", "merge")
"""The events of commits that belong to no turn."""
_SIDES = Choice("ours"), Choice("theirs")
_NAMES = {layout.PAD: "pad", layout.KEPT: "kept files"}
_PROGRAM_VALUES = (*sessions.SCALARS, *sessions.COUNTERS)


@frozen
class Checked:
    """A checked commit: the last turn up to it, the state as of it, and whether anything up to it is damaged."""

    commit: str
    session: str
    number: int = 0
    key: str = ""
    state: Session | None = None
    is_damaged: bool = False
    authored: tuple[object, ...] | None = None
    """What people and programs set: fields, scratchpad, kept files; None if they cannot be read."""
    sets: bool = False
    """Whether the commit may change authored fields."""


class Cache:
    """What one process has checked: what sessions share is checked once."""

    def __init__(self, store: Store) -> None:
        self.scratch = Store(store.path, backend.Overlay(store.path))
        """The store with the folders that are made again, in memory."""
        self.commits = dict[str, Checked]()
        self.folders = set[str]()
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


def check_carriers(cache: Cache, session: str) -> Iterator[Finding]:
    """Return findings for turns of a session that changed authored fields to what no commit of it had set: a turn
    after a rewind takes them over from the head."""
    own = [one for one in cache.commits.values() if one.session == session and one.authored is not None]
    known = [one.authored for one in own if one.sets]
    for one in own:
        if one.authored not in known:
            known.append(one.authored)
            report = Report(session, one.number)
            report.add("note", "state", "authored fields changed with it, but no commit of its session changed them")
            yield from report.findings


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
        sets = event not in (*_TURNS, "end", "compact") or before.session != self.session
        _check_objects(self.store, self.commit.tree, self.report, self.cache.objects)
        result = replace(before, commit=self.commit.id, session=self.session, sets=sets)
        try:
            self.state = read_state(self.store, self.commit.id, self.session, self.report)
        except NewerStoreError:
            raise
        except (DamageError, StoreError) as error:
            self.report.add("damage", "state", str(error))
            return replace(result, state=None, authored=None, is_damaged=True)
        entries: Mapping[str, Entry] = {}
        try:
            entries = self.store.repo.tree(self.commit.tree)
            self._check_event()
            self._check_folders(entries)
            self._check_contents(entries)
        except (DamageError, StoreError) as error:
            if not self.report.is_damaged:
                self.report.add("damage", "tree" if isinstance(error, DamageError) else "object", str(error))
        authored = (*(getattr(self.state, name) for name in _AUTHORED), *map(entries.get, layout.CARRIED))
        if event == "end" and before.state and before.authored not in (None, authored):
            self.report.wrong("state", "authored fields change at the end of the session")
        is_damaged = before.is_damaged or self.report.is_damaged
        result = replace(result, state=self.state, authored=authored, is_damaged=is_damaged)
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

    def _check_folders(self, entries: Mapping[str, Entry]) -> None:
        for name in (layout.LIVE, *layout.CARRIED):
            oid, is_tree = entries.get(name, ("", True))
            if is_tree and oid and oid not in self.cache.folders:
                self.cache.folders.add(oid)
                _check_other_folder(self.store, self.commit.id, name, oid, self.report)
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
            with suppress(SessgitError):  # unreadable parents are reported on their own
                _MergeCheck(self).run()

    def _check_turn(self, number: int) -> list[bytes]:
        """Make the folder of a turn again from its lines, and report what differs; return the lines. Raises
        DamageError."""
        store, scratch, agent = self.store, self.cache.scratch, agents.of(self.state)
        lines = _turn_lines(store, self.commit, number, agent, self.report)
        before, body = agent.parsed(lines.before), agent.parsed(lines.body)
        if number == self.number and ids.is_turn_key(body[0].uuid) and body[0].uuid != self.key:
            self.report.wrong("trailer", f"its prompt is {body[0].uuid}, but the commit says {self.key}")
        turn = agent.cells.describe(body)
        files = folder_files(agent, before, body, turn, self.state.rules.get("cut", 0))
        again = scratch.write_folder(files, store.side_files(store.folder(self.commit.id, number)))
        path = layout.turn_folder(number)
        stored, _ = store.repo.entry(self.commit.tree, path) or ("", True)
        for name in _differing_entries(scratch.repo, again, stored):
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
        """Compare a join of two versions of a session with the join of its parents."""
        store, parents = self.cache.scratch, self.commit.parents
        if any(map(store.repo.read_problem, parents)):
            return
        if tip_delivery.has_own_turns(store, parents[1], parents[0]):
            self.report.add("damage", "join", "it leaves out turns of the side that it joins")
            return
        again = store.tree(tip_delivery.joined_commit(store, parents[0], parents[1]))
        # If both sides are of one second, the greater id counts as the later one; a purge changes ids.
        is_certain = len({self.store.commit(parent).time for parent in parents}) > 1
        paths = list(_differing_entries(store.repo, again, self.commit.tree))
        self._report_paths(paths, "wrong" if is_certain else "note")

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
        paths = _differing_entries(repo, tree, self.commit.tree)
        checked = (path for path in paths if path.partition("/")[0] in _TOP and not path.startswith(folders))
        self._report_paths([path for path in checked if path.partition("/")[0] not in may], "wrong")

    def _report_paths(self, paths: Sequence[str], severity: Severity) -> None:
        """Report paths of the tree that differ from what they must be."""
        for kind in ("state", "closed", "tree"):
            of_kind = [path for path in paths if _kind(path) == kind]
            more = f" and {len(of_kind) - _MOST_NAMED:,} more" if len(of_kind) > _MOST_NAMED else ""
            named = ", ".join(canonical.one_line(path, 80) for path in of_kind[:_MOST_NAMED])
            if of_kind:
                what = f"does not follow from its lines and the commits before it: {named}{more}"
                self.report.add(severity, kind, what)


def _kind(path: str) -> str:
    """Return the kind of a finding about a path in a commit's tree."""
    if path == layout.STATE:
        return "state"
    return "closed" if path.startswith(f"{layout.TURNS}/") else "tree"


class _MergeCheck:
    """Reports what of a merge does not follow from its sides; it writes in memory."""

    def __init__(self, check: _CommitCheck) -> None:
        self.store, self.commit, self.message = check.cache.scratch, check.commit, check.message
        self.state, self.report = check.state, check.report
        self.ours, self.theirs = check.commit.parents

    def run(self) -> None:
        store, state, wrong = self.store, self.state, self.report.wrong
        top, before = store.state(self.ours), list(self._commits_before())
        own = replace(
            state, description=top.description, labels=top.labels, stage=top.stage, confidence=top.confidence,
            unified=top.unified, state=top.state, ended=top.ended,
        )  # fmt: skip
        if own != top:
            wrong("merge", "it changes more of its first parent's state than the authored fields")
        ends = [(one.state, max(top.updated, one.ended) if one.ended else "") for _, one in before]
        if (state.state, state.ended) not in ends:
            wrong("merge", "it changes whether, or when, the session ended")
        if not self._has_origin():
            wrong("merge", "its Origin names a session that does not contain its second parent")
        first = before[-1][0]
        ours, theirs, origin = [self.ours], [self.theirs], store.state(first).origin
        if is_new := store.message(first).get("Event") == "fork" and origin is not None:
            ours += self._with_edits(origin.commit if origin else "")  # the new session began as one of these
        if store.message(self.theirs).get("Event") not in _OTHER_EVENTS:
            theirs = self._with_edits(self.theirs)
        turns = store.state(self.theirs)  # the second side may have had these, with what one of the commits sets
        others = [replace(turns, labels=one.labels, unified=one.unified) for one in map(store.state, theirs)]
        pairs = ((tip, store.state(tip), other) for tip in ours for other in others)
        if differing := min((self._differing(*pair) for pair in pairs), key=len, default=[]):
            what = f"its {' and '.join(differing)} is not the merge of its two sides"
            self.report.add("note" if is_new else "wrong", "merge", what)

    def _commits_before(self) -> Iterator[tuple[str, Session]]:
        """Yield the first parent and its state; then each commit before it after which only merged turns follow."""
        for commit in self.store.repo.first_parents(self.ours):
            yield commit.id, self.store.state(commit.id)
            message = self.store.message(commit.id)
            event = message.get("Event")
            is_merged = event == "compact" or (event in _MERGED_EVENTS and message.get("Origin"))
            if message.get("Session") != self.state.id or not is_merged:
                return

    def _has_origin(self) -> bool:
        """Return whether the second parent is a commit of the session that Origin names, if that session is here."""
        session = layout.session_of(self.message.get("Origin").partition("@")[0])
        if self.store.message(self.theirs).get("Session") == session:
            return True
        tips = [tip for tip, _ in refs.branches(self.store.path, session).values()] if ids.is_branch(session) else []
        return not tips or any(one.id == self.theirs for tip in tips for one in self.store.repo.first_parents(tip))

    def _with_edits(self, commit: str) -> list[str]:
        """Return a commit, and those of its session after it that belong to no turn, on branches or kept by undo or a
        tag: the merge saw one of them."""
        repo, session = self.store.repo, self.store.message(commit).get("Session")
        tips = [tip for tip, _ in refs.branches(self.store.path, session).values()]
        tips += store_checks.kept_tips(self.store).get(session, {}).values()
        later = repo.since([tip for tip in tips if repo.is_ancestor(commit, tip)], [commit])
        messages = ((one.id, self.store.message(one.id)) for one in later)
        return [commit, *(oid for oid, one in messages
            if one.get("Session") == session and one.get("Event") in _OTHER_EVENTS)]  # fmt: skip

    def _differing(self, tip: str, ours: Session, theirs: Session) -> list[str]:
        """Return what of the merge no decision between two states could give; nothing if the two have turns, but no
        history in common. `tip` is the commit of ours."""
        base = diff.merge_base(self.store, tip, self.theirs)
        if not base and self._first_key(tip) == self._first_key(self.theirs):
            return []
        began = Base(*(merge_plan.base_state(self.store, side, base) for side in (tip, self.theirs)))
        decided = (merge_decisions.decide_all(began, ours, theirs, choice) for choice in _SIDES)
        results = [merge_decisions.resolve_state(ours, decisions) for decisions in decided]
        return [*self._differing_fields(results), *self._differing_folders(tip, ours, theirs, base)]

    def _first_key(self, tip: str) -> str:
        """Return the key of the first turn that a commit leads to."""
        commits = reversed(list(self.store.repo.first_parents(tip)))
        return next((key for one in commits if (key := self.store.message(one.id).get("Prompt"))), "")

    def _differing_fields(self, results: Sequence[Session]) -> Iterator[str]:
        if self.state.labels != results[0].labels:
            yield "labels"
        own, sides = self.state.unified, [result.unified for result in results]
        if any(
            sessions.value_at(own, path) not in [sessions.value_at(side, path) for side in sides]
            for path in _PROGRAM_VALUES
        ):
            yield "values of programs"
        memory, memories = own.working_memory, [side.working_memory for side in sides]
        for key in {*memory, *(key for one in memories for key in one)}:
            same = ((key in memory) == (key in one) and sessions.is_same_json(memory.get(key), one.get(key))
                for one in memories)  # fmt: skip
            if not any(same):
                yield "working memory"
                break

    def _differing_folders(self, tip: str, ours: Session, theirs: Session, base: str) -> Iterator[str]:
        sides = MergeSides(
            Branch(ours.id, tip, ours), Branch(theirs.id, self.theirs, theirs), self.theirs, base, 0, (), (), None,
            False, (),
        )  # fmt: skip
        repo, tree = self.store.repo, self.store.commit(self.ours).tree
        stored = repo.tree(self.commit.tree)
        merged = [merge_plan.merge_pads(self.store, sides, choice).changes(self.store) for choice in _SIDES]
        results = [repo.tree(repo.edit_tree(tree, changes)) for changes in merged]
        for name in layout.CARRIED:
            if stored.get(name) not in [result.get(name) for result in results]:
                yield _NAMES[name]


# The forms of what commits hold: states, folders and files, as writers write them

_MOST_PATHS = 3
_PROGRAM_KEYS: Mapping[str, Collection[str]] = {
    **sessions.KEYS,
    "context": ("working_memory", "files", "tool_outputs"),
    "trajectory": ("export_path", "events_count"),
}
"""What programs set, and what other systems keep there that follows from the lines."""
_LIVE_FOLDERS = ("todos", "tasks", "plans")
_SOURCE_KEYS = ("session", "system", "id")
_REDACTED = b"[redacted:"
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
        return f"`sessgit repair {layout.session_of(self.branch)}` searches the conversation's file and remotes."


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
    for path in islice(_differing_paths(document, json.loads(sessions.dumps(_valid(state, session)))), _MOST_PATHS):
        report.wrong("state", f"{path} is missing or not valid")
    if canonical.dumps(document) != data:
        report.wrong("state", f"{layout.STATE} is not written in the canonical form")
    return state


def _differing_paths(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the paths at which two JSON objects differ."""
    for key in sorted(one.keys() | other.keys()):
        left, right = one.get(key, _differing_paths), other.get(key, _differing_paths)
        if isinstance(left, dict) and isinstance(right, dict):
            yield from _differing_paths(left, right, f"{above}{key}.")
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


def _check_objects(store: Store, oid: str, report: Report, checked: set[str], path: str = "") -> None:
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
            _check_objects(store, entry, report, checked, f"{path}{name}/")
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


def _differing_entries(repo: Repository, one: str, other: str, above: str = "") -> Iterator[str]:
    """Yield the paths of the files in which two trees differ; ``""`` is an empty tree."""
    entries, others = repo.tree(one) if one else {}, repo.tree(other) if other else {}
    for name in sorted(entries.keys() | others.keys()):
        (left, is_tree), (right, is_folder) = entries.get(name, ("", False)), others.get(name, ("", False))
        if (is_tree or not left) and (is_folder or not right) and left != right:
            yield from _differing_entries(repo, left, right, f"{above}{name}/")
        elif (left, is_tree) != (right, is_folder):
            yield f"{above}{name}"


# A turn


def _turn_lines(store: Store, commit: Commit, number: int, agent: Agent, report: Report) -> TurnLines:
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


def _check_other_folder(store: Store, commit: str, name: str, oid: str, report: Report) -> None:
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
    return (has_id or _REDACTED in entry.line) and pads.entry_with_line(entry).line == entry.line


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


# The session's file, laid out again from its commits
#
# Places and hashes of lines are checked, and with `--deep` its turns, which are cut again, and the client's own file.


def check_transcript(store: Store, session: str, tips: Mapping[str, str], *, deep: bool) -> tuple[Report, int, bool]:
    """Return the findings about the file of a session's own branches, how many hashes of lines were checked, and
    whether the file was cut into turns again."""
    report, checked, is_cut = Report(session), 0, False
    try:
        pieces = reassemble.file_pieces(store, session, dict(tips))
        laid, checked = reassemble.lay_out(pieces.found), pieces.checked
        _check_prefix(store, tips[session], pieces, report)
        _check_places(pieces.found, laid.missing, report)
        if pieces.rewritten:
            report.add("note", "prefix", "rebuilding the beginning of the fork gives different bytes")
        if deep:
            _check_turns(store, tips, laid, report)
            with suppress(SessgitError):  # unreadable objects are reported with their commits
                _check_proofs(store, tips, report)
            is_cut = True
    except NewerStoreError:
        pass  # reported for its branch
    except DamageError as error:
        report.add("damage", "hash", str(error), report.repair_hint)
    except (StoreError, NotFoundError) as error:
        report.add("damage", "object", str(error), report.repair_hint)
    return report, checked, is_cut


# Places of lines


def _check_prefix(store: Store, tip: str, pieces: Pieces, report: Report) -> None:
    """Report a wrong length of the beginning that a fork wrote, if nothing in it was redacted."""
    origin = store.state(tip).origin
    if origin is None or not origin.prefix or pieces.rewritten:
        return
    prefix = next((one for one in pieces.found if one.file == 1 and not one.extent.offset and not one.key), None)
    if prefix is None or any(_REDACTED in line for line in prefix.lines):
        return
    if sum(len(line) + 1 for line in prefix.lines) - prefix.unended != origin.prefix:
        report.wrong("fork", "its origin has another length than the beginning that the fork wrote")


def _check_places(pieces: Sequence[Piece], missing: int, report: Report) -> None:
    """Report gaps between lines, and different lines at one place, by their extents."""
    if missing:
        what = f"{humanize.format_count(missing, 'byte')} of its file were never recorded, or its extents are wrong"
        report.add("note", "extent", what)
    placed = sorted(pieces, key=lambda piece: (piece.file, piece.extent.offset, -piece.extent.length))
    overlapping = (
        (one, other) for one, other in pairwise(placed)
        if one.file == other.file and one.extent.end > other.extent.offset
        and not was_continued_without_newline(other, [one])
    )  # fmt: skip
    if not all(_continues(one.lines, other.lines) for one, other in overlapping):
        report.add("note", "extent", "two different lines have the same place in its file, by their extents")


def _continues(first: Sequence[bytes], second: Sequence[bytes]) -> bool:
    """Return whether lines are among others, or begin with the end of these."""
    count = len(second)
    is_part = any(first[at : at + count] == second for at in range(len(first) - count + 1))
    return is_part or any(first[-n:] == second[:n] for n in range(1, min(count, len(first)) + 1))


# The file, cut again


class _SharedTurns(fork_detection.EmptyHistory):
    """The history of a fork of ours, in which only the last shared turn is recorded."""

    def __init__(self, recorded: RecordedTurns, tips: Iterable[str]) -> None:
        turns = (node for tip in tips for node in line_of(recorded.node_at(tip)))
        self._shared = {node.key: recorded.shared(node) for node in turns}

    def is_closed(self, node: Node, line: Line) -> bool:
        shared = self._shared.get(node.key)
        return bool(shared) and line.uuid not in (shared or ())


def _check_turns(store: Store, tips: Mapping[str, str], laid: LaidOutFile, report: Report) -> None:
    """Cut the file into turns again, and report each recorded turn that is not among them. A file does not tell
    everything if bytes of it are missing, if it was cut back into a turn, or if it is one of several."""
    state = store.state(tips[report.branch])
    origin = state.origin or Origin("", 0, "")
    recorded = RecordedTurns(store, dict(tips), agents.of(state), fork_point=origin.turn if origin.prefix else 0)
    nodes = {(node.key, node.commit): (branch, node) for branch, tip in tips.items()
        for node in line_of(recorded.node_at(tip))}  # fmt: skip
    is_unique = len({key for key, _ in nodes}) == len(nodes)
    if laid.missing or laid.glued or laid.file > 1 or not is_unique:
        return
    cutter = Cutter(_SharedTurns(recorded, tips.values()), session=report.branch)
    if reassemble.base(agents.of(state), laid.data) is not None:
        cutter.head = recorded.base(state)
    turns = _cut(cutter, agents.of(state), laid, origin.prefix)
    for branch, node in nodes.values():
        again = turns.get(node.key)
        with suppress(SessgitError):  # unreadable lines are reported with their commits
            before, body = recorded.lines(node)
            if node.number <= origin.turn + bool(origin.cell) or not body[0].uuid:
                continue  # a fork may have left out lines of it, or redaction changed the place that is its key
            if again is None or node.number != again.number or _raw(before, body) != _raw(again.before, again.body):
                what = "cut again, its file has no such turn, or one with other lines"
                report.at(branch, node.number).wrong("cut", what)


def _cut(cutter: Cutter, agent: Agent, laid: LaidOutFile, prefix: int) -> dict[str, Node]:
    """Return the turns of a file by their keys. Its first `prefix` bytes were written by sessgit: lines without an id
    there are not the client's."""
    for piece in laid.pieces:
        at = piece.extent.offset
        is_prefix = at < prefix
        for raw, end in piece.ended:
            line = agent.lines.make(raw, Extent(at, len(raw) + len(end)), no_redaction)
            at = line.extent.end
            if (line.uuid or not is_prefix) and not (line.is_unended and line.data is None):
                cutter.feed(line)
    return {node.key: node for tip in (cutter.head, *cutter.rewound.values()) for node in line_of(tip)}


def _raw(*parts: Sequence[Line]) -> list[list[bytes]]:
    return [[line.raw for line in lines] for lines in parts]


# The client's own file


def _check_proofs(store: Store, tips: Mapping[str, str], report: Report) -> None:
    """Compare the proofs of redacted lines with the client's file, if it still has these lines."""
    session = report.branch
    cursor = recorder_state.load_cursor(store.paths, session)
    commits = {commit: message for tip in tips.values() for commit, message in own_commits(store, session, tip)}
    proved = [one for one in commits.values() if one.get("Original-HMAC") and cursor and one.file == cursor.file]
    if cursor is None or not proved:
        return
    state, path = store.state(tips[session]), Path(cursor.path)
    agent = agents.of(state)
    redact = secret_filter.line_cleaner(store.paths, state.rules, agent.protected_keys)
    with opened(path) as file:
        if not recorder_state.matches_file(cursor, path, file.file, file.inode, file.size):
            return
        reader = Reader(file, agent.lines.make, redact)
        count = sum(not _is_proved(store, reader, message) for message in proved)
    if count:
        subject = "the proof of a commit is" if count == 1 else f"the proofs of {count:,} commits are"
        what = f"{subject} not what its file and this store's key give: they are wrong, or from another key"
        report.add("note", "proof", what)


def _is_proved(store: Store, reader: Reader, message: Message) -> bool:
    """Return whether the file's lines give the proof of a commit, or are other lines by now."""
    lines = [line for extent in message.extents for line in reader.again(extent)]
    is_stored = lines_hash(line.raw for line in lines) == message.get("Lines-SHA256")
    if not is_stored or not any(line.secrets for line in lines):
        return True
    return store.hmac(with_newlines(line.written for line in lines)) == message.get("Original-HMAC")
