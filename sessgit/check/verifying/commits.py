"""The commits of a branch, from the first one on: each is made again from the one before it, its lines and its event.

What the three do not determine, such as authored fields, is taken from the commit itself, if it is in a valid form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit import agents
from sessgit.agents.line import Line
from sessgit.check.verifying import folders, merges, ref_checks, states
from sessgit.check.verifying.folders import TurnFolder
from sessgit.check.verifying.report import Report
from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.history import session_files
from sessgit.model import canonical, ids, long_strings
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding
from sessgit.model.line_list import file_lines
from sessgit.record import commits
from sessgit.store import layout
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store, lines_hash

_TURNS = ("turn", "cell", "graft")
_TAILS = ("end", "compact")
_FORMAT_ID = "d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"
"""The id of a file that holds `1` and a newline."""
_MOST_MENDED = 41
_MOST_NAMED = 5
_REDACTED = "[redacted"

_USAGE = ("Model", "Tools", "Tokens-In", "Tokens-Out", "Tokens-Cache-Read", "Tokens-Cache-Write")
_PLACES = ("File", "Extent", "Final-Newline", "Lines-SHA256", messages.FILE_HASH, "Redacted", "Original-HMAC")
_TURN_TRAILERS = ("Session", "Turn", "Event", "Prompt", "Cell", "Origin", *_USAGE, "Project-Head", *_PLACES)
_TRAILERS = {
    **dict.fromkeys(_TURNS, _TURN_TRAILERS),
    **dict.fromkeys(_TAILS, ("Session", "Event", *_PLACES)),
    **dict.fromkeys(("start", "edit"), ("Session", "Event")),
    "fork": ("Session", "Event", "Fork-Point", "Turn", "Prompt", *_USAGE, *_PLACES),
    "merge": ("Session", "Event", "Origin"),
    "repair": ("Session", "Event", "Origin", "Mended"),
}
"""The trailers of a commit by its event, in their order."""
_REPEATED = ("Extent", "Mended")
_REQUIRED = {"graft": "Origin", "merge": "Origin", "repair": "Origin", "fork": "Fork-Point", "cell": "Cell"}
_HASH = r"[0-9a-f]{64}"
_VALUES = {
    **dict.fromkeys(("Original-HMAC", "Lines-SHA256", messages.FILE_HASH), _HASH),
    "Project-Head": r"[0-9a-f]{40}(?:[0-9a-f]{24})? \(.*\)",
    "Redacted": r"[1-9][0-9]{0,14}",
    "File": r"[2-9]|[1-9][0-9]{1,14}",
    "Final-Newline": "no",
    "Origin": r"[a-z0-9][a-z0-9-]{0,63}(?:\.[rm]-[0-9a-f]{8})?(?:@[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})?)?",
    "Mended": r"[0-9]+:[0-9]+ .+|and [0-9]+ more",
}
"""The form of the values that nothing else determines."""
_SUBJECTS = {
    "edit": r"edit: .+",
    "merge": r"merge: (?:(?:a summary of )?[0-9,]+ turns?|what was said|what was brought back) of .+",
    "repair": r"repair: .+ of .+",
}
_ALL = (layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)
_CHANGES = {
    **dict.fromkeys((*_TURNS, "fork"), _ALL),
    **dict.fromkeys(("edit", "merge"), (layout.STATE, *layout.CARRIED)),
    "end": (layout.STATE, layout.TAIL),
    "compact": (layout.TAIL,),
    "repair": (),
    "start": (layout.FORMAT_FILE, layout.STATE, *layout.CARRIED),
}
"""The entries at the top of the tree that a commit may change, by its event."""

_COUNTS = ("turns", "messages", "cells", "redacted", "tokens", "calls", "first_prompt", "updated")
_AUTHORED = ("name", "description", "labels", "stage", "confidence", "unified")
_KINDS = {
    "fork": ("origin",),
    "counts": ("budget", "cells", "trajectory", "rules.redacted", "metadata.first_prompt", "metadata.updated_at"),
}
"""The kind of a finding about a state by the beginning of the path that differs."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked commit: the last turn up to it, the state as of it and as of the turn before, and whether anything up
    to it is damaged. `interrupted` is about the turn, None if it could not be read."""

    commit: str
    session: str
    event: str = ""
    number: int = 0
    key: str = ""
    state: Session | None = None
    base: Session | None = None
    is_damaged: bool = False
    interrupted: bool | None = None
    carried: tuple[Entry | None, ...] = ()
    """Its scratchpad and its kept files."""

    @property
    def authored(self) -> tuple[object, ...] | None:
        """What people and programs set, None if the state cannot be read."""
        return (_values(self.state, _AUTHORED), self.carried) if self.state else None


@dataclass
class Cache:
    """What one process has checked: what sessions share is checked once."""

    commits: dict[str, Checked] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    """Trees and files whose readability is known."""
    authored: dict[str, list[object]] = field(default_factory=dict)
    """By session, what each commit that may change authored fields set."""
    carriers: list[Checked] = field(default_factory=list)
    """Turns whose authored fields differ from those of the commit before, as after a rewind."""
    prompts: set[str] = field(default_factory=set)
    """The keys of the turns: a turn that grew or was merged has several commits."""

    def add(self, checked: Checked, before: Checked | None) -> None:
        """Add a commit and note whether it changed authored fields."""
        self.commits[checked.commit] = checked
        is_first = before is None or before.session != checked.session
        if checked.authored is None or (not is_first and before is not None and before.authored == checked.authored):
            return
        if is_first or checked.event in ("start", "fork", "edit", "merge"):
            self.authored.setdefault(checked.session, []).append(checked.authored)
        elif before is not None and before.authored is not None:
            self.carriers.append(checked)


def check_branch(store: Store, branch: str, tip: str, cache: Cache) -> list[Finding]:
    """Return the findings about the commits of a branch that are not in the cache, and about the tree of its tip."""
    session, report = layout.session_of(branch), Report(branch)
    unchecked, before = _unchecked(store, tip, cache, report)
    is_cut_off = bool(report.findings)
    if before and before.is_damaged and before.session != session:
        what = f"its shared part with {layout.short_name(before.session)} is damaged, see there"
        report.at(branch, before.number or None).add("note", "shared", what)
    for commit in reversed(unchecked):
        check = _CommitCheck(store, branch, commit, before, cache, is_first=before is None and not is_cut_off)
        checked = check.run()
        report.findings += check.report.findings
        cache.add(checked, before)
        before, is_cut_off = checked, False
    if before is not None and before.state is not None:
        _check_tip(store, tip, before, before.state.turns, report)
    return report.findings


def check_carriers(cache: Cache, session: str) -> Iterator[Finding]:
    """Return findings for turns of a session that changed authored fields to what no commit of it had set: a turn
    after a rewind takes them over from the head."""
    for checked in cache.carriers:
        if checked.session == session and checked.authored not in cache.authored.get(session, ()):
            what = "authored fields changed with it, but no commit of its session changed them"
            report = Report(session, checked.number)
            report.add("note", "state", what)
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


def _check_tip(store: Store, tip: str, checked: Checked, turns: int, report: Report) -> None:
    """Report wrong numbers of turns in the tree of a branch's tip."""
    if checked.session != layout.session_of(report.branch):
        owner = layout.short_name(checked.session) or "no session"
        report.wrong("trailer", f"its last commit is one of {owner}")
    try:
        numbers = folders.turn_numbers(store, tip, report)
    except SessgitError:
        return  # reported with its commit
    if numbers != list(range(1, len(numbers) + 1)):
        gap = next(n for n, number in enumerate(numbers, start=1) if n != number)
        report.add("damage", "numbers", f"turn {gap} is missing, but later turns exist")
    elif len(numbers) != turns:
        report.add("damage", "numbers", f"{layout.STATE} says {turns} turns, but there are {len(numbers)}")


class _CommitCheck:
    """The check of one commit; `before` is the commit before it, None for the first one or if it cannot be read."""

    def __init__(
        self, store: Store, branch: str, commit: Commit, before: Checked | None, cache: Cache, *, is_first: bool
    ) -> None:
        self.store, self.commit, self.cache, self.is_first = store, commit, cache, is_first
        self.message = messages.parse_message(commit.message)
        self.session, self.event = self.message.get("Session"), self.message.get("Event")
        self.number, self.key = self.message.number("Turn"), self.message.get("Prompt")
        self.is_turn = self.event in _TURNS or (self.event == "fork" and self.number is not None)
        is_own = self.session == layout.session_of(branch)
        at = self.number or (before.number if before else None) or None
        self.report = Report(branch if is_own else self.session or branch, at)
        self.has_before = before is not None
        self.before = before or Checked("", self.session, number=self._number_before())
        self.is_same_turn = self.number == self.before.number and self.key == self.before.key

    def _number_before(self) -> int:
        """Return the number of the last turn before the commit if the history before it cannot be read."""
        if self.is_first:
            return 0
        return (self.number or 1) - 1 if self.is_turn else self.number or 0

    def run(self) -> Checked:
        """Check the commit; `report` has the findings afterwards."""
        folders.check_objects(self.store, self.commit.tree, self.report, self.cache.objects)
        result = replace(self.before, commit=self.commit.id, session=self.session, event=self.event)
        try:
            self.state = states.read(self.store, self.commit.id, self.session, self.report)
        except NewerStoreError:
            raise
        except (DamageError, StoreError) as error:
            self.report.add("damage", "state", str(error))
            return replace(result, state=None, is_damaged=True)
        self._check_event()
        turn: Turn | None = None
        try:
            self.parent = self.store.commit(self.before.commit) if self.has_before else None
            tail = self._check_tree()
            result = replace(result, interrupted=self._check_other_turns())
            folder = self._check_turn() if self.is_turn else TurnFolder()
            turn = folder.turn
            self._check_state(self._expected_state(folder, tail))
            self._check_message(turn if self._cut or not self.is_turn else None)
            self._check_time(turn, tail)
        except (DamageError, StoreError) as error:
            if not self.report.is_damaged:
                self.report.add("damage", "object", str(error))
        entries = self.store.repo.tree(self.commit.tree) if not self.report.is_damaged else {}
        result = replace(
            result, state=self.state, is_damaged=self.before.is_damaged or self.report.is_damaged,
            carried=tuple(entries.get(name) for name in layout.CARRIED),
        )  # fmt: skip
        if not self.is_turn or not self.number:
            return result
        interrupted = turn.interrupted if turn else None
        return replace(result, number=self.number, key=self.key, base=self._base, interrupted=interrupted)

    @property
    def _base(self) -> Session | None:
        """The state from which the counts of this turn go on."""
        if not self.has_before:
            return None
        return self.before.base if self.is_same_turn else self.before.state

    @property
    def _cut(self) -> int:
        """The version of the rules by which the session is cut, 0 for an unknown one."""
        cut = self.state.rules.get("cut", 0)
        return cut if 1 <= cut <= long_strings.RULES_VERSION else 0

    @property
    def _is_imported(self) -> bool:
        """Whether the session came from another system, which tells more about it than its lines."""
        return self.store.repo.entry(self.commit.tree, f"{layout.KEPT}/{session_files.SOURCE}") is not None

    def _check_event(self) -> None:
        wrong = self.report.wrong
        if self.event not in EVENTS:
            wrong("trailer", f"the event “{canonical.one_line(self.event, 40)}” is unknown")
        if self.is_first and self.event != "start":
            wrong("history", f"the history begins with the event {self.event or 'of no name'}, not with a start")
        if self.event == "start" and not self.is_first and self.has_before:
            wrong("history", "a start is in the middle of the history")
        parents = self.commit.parents
        most = 2 if self.event in ("merge", "edit") else 1
        if len(parents) > most or (self.event == "merge" and len(parents) == 1):
            wrong("history", f"a commit of the event {self.event} has {len(parents)} parents")
        for parent in parents[1:]:
            if self.store.repo.read_problem(parent):
                self.report.missing(self.store, parent, "what was merged here")
        if not ref_checks.is_signed(self.store, self.commit):
            wrong("commit", "its author or committer is not sessgit's, at one time in UTC")
        if self.event == "fork" and self.state.origin is None:
            wrong("fork", "the state of a fork names no origin")

    # The tree

    def _check_tree(self) -> list[Line]:
        """Check all but the turn of the commit; return the lines of an end or a compaction."""
        entries = self.store.repo.tree(self.commit.tree)
        for name in (layout.LIVE, *layout.CARRIED):
            oid, is_tree = entries.get(name, ("", True))
            if not is_tree:
                self.report.wrong("tree", f"{name} is not a folder")
            elif oid and oid not in self.cache.folders:
                self.cache.folders.add(oid)
                folders.check_other_folder(self.store, self.commit.id, name, oid, self.report)
        self._check_changes(entries)
        if len(self.commit.parents) == 2:
            merges.check(self.store, self.commit, self.message, self.state, self.report)
        return self._check_tail(entries.get(layout.TAIL))

    def _check_changes(self, entries: Mapping[str, Entry]) -> None:
        wrong, event = self.report.wrong, self.event
        if unknown := sorted(entries.keys() - {layout.FORMAT_FILE, *_ALL}):
            what = f"unknown entry {canonical.one_line(unknown[0], 60)} in a commit; it is ignored"
            self.report.add("note", "tree", what)
        if self.parent is not None and event in (*_TURNS, "end") and self.commit.tree == self.parent.tree:
            wrong("history", f"a commit of the event {event} changes nothing")
        if entries.get(layout.FORMAT_FILE) != (_FORMAT_ID, False):
            wrong("tree", f"{layout.FORMAT_FILE} is not 1 and a newline")
        if event not in _CHANGES or (self.parent is None and event != "start"):
            return
        old, allowed = self.store.repo.tree(self.parent.tree) if self.parent else {}, _CHANGES[event]
        if event == "compact" and self.before.session != self.session:
            allowed = (*allowed, layout.STATE)  # of a fork that a rewind took back to before its fork point
        if event == "edit" and len(self.commit.parents) == 1 and not self._is_imported:
            allowed = (layout.STATE, layout.PAD)
        for name in (layout.FORMAT_FILE, *_ALL):
            if entries.get(name) != old.get(name) and name not in allowed:
                wrong("tree", f"a commit of the event {event} changes {name}")
        is_agents_fork = event == "fork" and self.state.origin is not None and not _is_ours(self.state.origin)
        if is_agents_fork and layout.LIVE in entries:
            wrong("tree", f"a fork of the agent's has {layout.LIVE}")

    def _check_tail(self, entry: Entry | None) -> list[Line]:
        if entry is not None and (self.is_turn or self.event == "fork"):
            self.report.wrong("tree", f"a commit of the event {self.event} has {layout.TAIL}")
        if self.event not in _TAILS:
            return []
        data = self.store.repo.blob(entry[0]) if entry else b""
        lines = agents.of(self.state).parsed(file_lines(data.split(b"\n")))
        self._check_lines([line.raw for line in lines], unended=not data.endswith(b"\n"))
        placed = sum(extent.lines for extent in self.message.extents)
        if placed < len(lines):
            self.report.wrong("extent", f"{layout.TAIL} has {len(lines)} lines, but its extents cover {placed}")
        return lines

    def _check_other_turns(self) -> bool | None:
        """Report changes to turns other than the commit's own. Return whether the turn before it is interrupted, of
        which the agent's fork may have other lines than its parent."""
        interrupted = self.before.interrupted
        changed = folders.changed_turns(self.store, self.before.commit, self.commit.tree) - {self.number}
        if self.event == "fork" and self.state.origin is not None and not self.state.origin.prefix:
            shared = set(range(1, self.state.origin.turn + 1))
            for number in sorted(changed & shared):  # their folders hold the lines of the fork's own file
                if (entry := self.store.repo.entry(self.commit.tree, layout.turn_folder(number))) is not None:
                    report = self.report.at(self.session, number)
                    turn = folders.check_turn(agents.of(self.state), self.store, entry[0], report, cut=self._cut).turn
                    if number == self.before.number:
                        interrupted = turn.interrupted if turn else None
            changed -= shared
        if changed and self.has_before:
            more = f" and {len(changed) - _MOST_NAMED:,} more" if len(changed) > _MOST_NAMED else ""
            named = ", ".join(map(str, sorted(changed)[:_MOST_NAMED]))
            self.report.wrong("closed", f"the commit changes closed turns: {named}{more}")
        return interrupted

    # The turn

    def _check_turn(self) -> TurnFolder:
        """Check the turn's folder against its lines, and these against their hash and places."""
        self.cache.prompts.add(self.key)
        wrong, number = self.report.wrong, self.number
        if not number or not self.key:
            wrong("trailer", f"a commit of the event {self.event} names no turn or no prompt")
            return TurnFolder()
        if self.has_before and not self.is_same_turn and number != self.before.number + 1:
            wrong("numbers", f"turn {number} follows turn {self.before.number}")
        entry = self.store.repo.entry(self.commit.tree, layout.turn_folder(number))
        if entry is None:
            self.report.add("damage", "tree", "the turn has no folder")
            return TurnFolder()
        agent = agents.of(self.state)
        folder = folders.check_turn(agent, self.store, entry[0], self.report, cut=self._cut)
        if folder.turn is None:
            return folder
        uuid = folder.body[0].uuid
        if ids.is_turn_key(uuid) and uuid != self.key:
            wrong("trailer", f"its prompt is {uuid}, but the commit says {self.key}")
        if self.event in _TURNS:
            self._check_lines(folder.raw, unended=self.message.is_unended)
        if not self.is_same_turn and self.event != "graft" and self.parent is not None:
            own = max(sum(extent.lines for extent in self.message.extents) - len(folder.body), 0)
            if own and self.before.event != "compact" and any(line.is_boundary for line in folder.before[-own:]):
                wrong("history", "a compaction precedes its prompt, but no earlier commit records it")
        return folder

    def _check_lines(self, lines: list[bytes], *, unended: bool) -> None:
        """Check the hash and the extents of the commit against the lines that they are about, the last of these. The
        length of an extent is known only if none of its lines was redacted."""
        extents, expected = self.message.extents, self.message.get("Lines-SHA256")
        count = sum(extent.lines for extent in extents)
        if bool(count) != bool(expected):
            self.report.wrong("extent", "only one of Extent and Lines-SHA256 is present")
        if count > len(lines):
            what = f"there are {len(lines)} lines, but the extents cover {count}"
            self.report.add("damage", "extent", what)
            return
        own, at = lines[len(lines) - count :], 0
        if count and expected and lines_hash(own) != expected:
            what = "its lines differ from the recorded ones: Lines-SHA256 does not match"
            self.report.add("damage", "hash", what, self.report.repair_hint)
        position = -1
        for extent in sorted(extents, key=lambda extent: extent.offset):
            if extent.offset < position:
                self.report.wrong("extent", "two of its extents overlap")
                break
            position = extent.end
        for extent in extents if not self.message.get("Redacted") else ():
            part, at = own[at : at + extent.lines], at + extent.lines
            if extent.length != sum(map(len, part)) + len(part) - (unended and at == count):
                self.report.wrong("extent", f"the extent {extent} is not as long as its lines")
                return

    # The state

    def _check_state(self, expected: Session) -> None:
        if self.state == expected:
            return
        wrong: dict[str, list[str]] = {}
        documents = (json.loads(sessions.dumps(state)) for state in (self.state, expected))
        for path in states.differing_paths(*documents):
            kind = next((kind for kind, paths in _KINDS.items() if path.startswith(paths)), "state")
            wrong.setdefault(kind, []).append(path)
        for kind, paths in wrong.items():
            what = f"{layout.STATE} does not follow from the lines and the previous commit: {', '.join(paths)}"
            self.report.wrong(kind, canonical.one_line(what, 400))

    def _expected_state(self, folder: TurnFolder, tail: list[Line]) -> Session:
        """Return the state that follows from the one before it and from lines."""
        state, before, event, base = self.state, self.before.state, self.event, self._base
        values: dict[str, Any] = {}
        if event == "start":
            empty = Session("", "", updated=state.updated if state.updated == state.created else "")
            values |= {name: getattr(empty, name) for name in _COUNTS}
        elif folder.turn is not None and base is not None:
            secrets = self.message.number("Redacted") or 0
            if sum(extent.lines for extent in self.message.extents) != len(folder.raw):
                secrets = max(secrets, state.redacted - base.redacted)  # lines without a place may have had some
            after = sessions.after_turn(base, folder.turn, self.number or 0, secrets)
            values |= {name: getattr(after, name) for name in _COUNTS}
            if event == "fork":
                values |= {"updated": max(after.updated, state.created), "redacted": base.redacted}
        elif before is not None and event not in _TURNS:
            values |= {name: getattr(before, name) for name in _COUNTS}
            if event in ("edit", "fork"):  # another system, or a fork's own beginning, may be later
                values["updated"] = max(before.updated, state.updated)
        if event in (*_TURNS, "start", "fork"):
            values |= {"state": "active", "ended": ""}
        if before is not None:
            values |= self._fork_values(before) if event == "fork" else self._kept_values(before)
        expected = replace(state, **values)
        if event != "end":
            return expected
        interrupted = self.before.interrupted
        is_cut_short = state.state == "interrupted" if interrupted is None else interrupted
        return commits.ended_state(expected, tail, cut_short=is_cut_short)

    def _kept_values(self, before: Session) -> dict[str, Any]:
        """Return the values of the session that commits of the event do not change."""
        if before.id != self.state.id or len(self.commit.parents) != 1:
            return {}
        names = ["rules", *(["origin"] if before.origin is not None else [])]
        names += _AUTHORED if self.event in _TAILS else ()
        names += ("agent_version", "git_branch", "headless") if self.event == "edit" else ()
        if self.event == "edit" and not self._is_imported:
            names += ("agent", "agent_id", "title", "created", "updated", "ended", "state")
        return {name: getattr(before, name) for name in names}

    def _fork_values(self, before: Session) -> dict[str, Any]:
        """Return the values with which a fork begins."""
        origin = self.state.origin
        if origin is None or self.parent is None:
            return {}
        replaced, is_ours = origin.replaced, _is_ours(origin)
        if not is_ours and replaced:
            replaced = (before.agent_id, *(before.origin.replaced if before.origin else ()))
        point = replace(origin, commit=self.parent.id, turn=self.before.number, replaced=replaced)
        return {"origin": point, "description": "", ("title" if is_ours else "name"): ""}

    # The message and the date

    def _check_message(self, turn: Turn | None) -> None:
        if self.event not in EVENTS:
            return
        values = self._expected_values(turn)
        trailers = [(key, value) for key in _TRAILERS[self.event] for value in values[key] if value]
        expected = Message(self._expected_subject(turn), tuple(trailers))
        text = messages.format_message(expected)
        if text != self.commit.message:
            differing = sorted({key for key, _ in {*self.message.trailers} ^ {*trailers}})
            subject = [] if text.partition("\n")[0] == self.message.subject else ["subject"]
            named = ", ".join([*subject, *differing]) or "the order of its trailers, or a line that is not a trailer"
            self.report.wrong("trailer", f"its message does not match its event and its lines: {named}")

    def _expected_values(self, turn: Turn | None) -> dict[str, list[str]]:
        """Return the values of each trailer: those that follow from the event, the state and the turn's lines, and for
        the others the stored ones that are valid."""
        message, event, origin = self.message, self.event, self.state.origin
        values = {
            key: [
                value
                for value in (message.all(key) if key in _REPEATED else message.all(key)[-1:])
                if re.fullmatch(_VALUES.get(key, r".*"), value)
            ]
            for key in _TRAILERS[event]
        }
        values["Session"] = [self.state.id or self.session]
        if turn is not None:
            values |= {key: [canonical.one_line(value, 500)] for key, value in commits.usage_trailers(turn)}
        if not message.get("Redacted"):
            values["Original-HMAC"] = []
        if extents := message.extents:
            joined = messages.join_extents(extents, unended=message.is_unended)
            values["Extent"] = [str(extent) for extent in joined]
        else:
            values["Extent"] = values["File"] = []
        values["Mended"] = values.get("Mended", [])[:_MOST_MENDED]
        if event != "cell" or (turn is not None and not self._cell_number(turn)):
            values["Cell"] = []
        if event == "turn" and turn is not None and turn.model:
            values["Origin"] = []  # only a summary came from a merge
        if event == "fork" and origin is not None:
            values["Fork-Point"] = [_address(origin)]
            if _is_ours(origin):
                values["Extent"] = []
            if not origin.cell:
                values["Turn"] = []
            elif not self.number:
                values["Turn"] = ["?"]
        required = _REQUIRED.get(event)
        if required and not values[required]:
            values[required] = ["?"]
        return values

    def _expected_subject(self, turn: Turn | None) -> str:
        """Return the subject that the event, the state and the lines give, or the stored one if it is valid."""
        subject, state, event, origin = self.message.subject, self.state, self.event, self.state.origin
        number = self.message.get("Turn")
        if turn is not None and event in ("turn", "graft"):
            return f"turn {number}: {canonical.one_line(turn.prompt, 200) or '(no text)'}"
        if turn is not None and event == "cell" and (cell := self._cell_number(turn)):
            return f"cell {number}.{cell}: {turn.cells[cell - 1].operation}"
        if event == "compact":
            return "compact: the conversation so far into a summary"
        if event == "end":
            return f"end: {state.turns} turn{'' if state.turns == 1 else 's'}"
        if event == "edit" and len(self.commit.parents) == 2:
            return f"edit: joined with {self.commit.parents[1][:12]}"
        if event == "start" and _REDACTED not in subject:
            return f"start: {state.project or state.agent_id}"
        if event == "fork" and origin is not None and _REDACTED not in subject:
            ours = f"{state.name or state.id} from {_address(origin)}"
            return f"fork: {ours if _is_ours(origin) else f'{origin.session} at turn {origin.turn}'}"
        return subject if re.fullmatch(_SUBJECTS.get(event, r".*"), subject) else f"{event}: "

    def _cell_number(self, turn: Turn) -> int:
        """Return the number of the cell that the message names, 0 for none of the turn."""
        return next((n for n, cell in enumerate(turn.cells, start=1) if cell.id == self.message.get("Cell")), 0)

    def _check_time(self, turn: Turn | None, tail: list[Line]) -> None:
        """Check the date, which follows from lines unless a clock gave it."""
        if self.parent is None and self.event != "start":
            return
        above, event, state = self.parent.time if self.parent else 0, self.event, self.state
        least, text = 0, None
        if event in _TURNS and turn is not None:
            text = turn.time
        elif event == "start" or (event == "fork" and state.origin is not None and _is_ours(state.origin)):
            above, text = 0, state.created  # a time before 1970 counts as none
        elif event == "compact":
            text = next((line.text("timestamp") for line in tail if line.is_boundary), "")
        elif event == "end":
            text = state.ended
        elif event == "fork" and state.origin is not None:
            text = ""
        elif event in ("edit", "merge", "repair"):
            least = above
        time = self.commit.time
        if time < least or (text is not None and time != (int(canonical.seconds(text) or 0) or above)):
            what = f"its date is {canonical.rfc3339(time)}, which does not follow from its lines or parents"
            self.report.wrong("date", what)


def _values(state: Session, names: tuple[str, ...]) -> tuple[object, ...]:
    return tuple(getattr(state, name) for name in names)


def _is_ours(origin: Origin) -> bool:
    """Return whether sessgit made a fork, not the agent: then its beginning was written, or it has none."""
    return bool(origin.prefix or not origin.turn)


def _address(origin: Origin) -> str:
    """Return a fork point as `Fork-Point` names it."""
    return f"{origin.session}@{origin.cell or origin.turn}"
