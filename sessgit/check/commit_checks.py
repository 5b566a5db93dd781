"""The commits of a branch, from the first one on: the recording code makes each again, in memory, from the one before
it, its lines and its event.

What these do not determine, such as authored fields, is taken from the commit itself, if it is in a valid form. Of a
merge, each authored value must be that of a decision between its two sides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sessgit import agents
from sessgit.agents import turn_folder
from sessgit.agents.line import Line
from sessgit.agents.values import Node
from sessgit.branch import merge_plan
from sessgit.branch.merge_plan import MergeSides
from sessgit.check import store_checks, stored_forms
from sessgit.check.stored_forms import Report
from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.history import session_files, shared_turns
from sessgit.model import canonical, ids, merge_decisions, unified_state
from sessgit.model.conversation import message as messages
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.message import EVENTS, FILE_HASH, Extent, Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.finding import Finding
from sessgit.model.merge_decisions import Base, Choice
from sessgit.record import commits, edit_commit, tip_join
from sessgit.record.commits import Changes, TurnContent, TurnSidecars
from sessgit.store import backend, layout, refs
from sessgit.store.index import Branch
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store, lines_hash

_TURNS = ("turn", "cell", "graft")
_TAILS = ("end", "compact")
_TOP = (layout.FORMAT_FILE, layout.STATE, layout.TURNS, layout.TAIL, layout.LIVE, *layout.CARRIED)
_MOST_MENDED = 41
_MOST_NAMED = 3
_HASH = r"[0-9a-f]{64}"
_VALUES = {
    "Original-HMAC": _HASH,
    FILE_HASH: _HASH,
    "Project-Head": r"[0-9a-f]{40}(?:[0-9a-f]{24})? \(.*\)",
    "Redacted": r"[1-9][0-9]{0,14}",
    "File": r"[2-9]|[1-9][0-9]{1,14}",
    "Origin": r"[a-z0-9][a-z0-9-]{0,63}(?:\.[rm]-[0-9a-f]{8})?(?:@[1-9][0-9]{0,8}(?:-[1-9][0-9]{0,8})?)?",
    "Mended": r"[0-9]+:[0-9]+ .+|and [0-9]+ more",
    "Lines-SHA256": _HASH,
}
"""The form of the trailers that are taken from a commit."""

_COUNTS = ("turns", "messages", "cells", "redacted", "tokens", "calls", "first_prompt", "updated")
_AUTHORED = ("name", "description", "labels", "stage", "confidence", "unified")
_KINDS = {
    "fork": ("origin",),
    "counts": ("budget", "cells", "trajectory", "rules.redacted", "metadata.first_prompt", "metadata.updated_at"),
}
"""The kind of a finding about a state by the beginning of the path that differs."""


_TURN_EVENTS = ("turn", "cell", "graft", "compact")
_OTHER_EVENTS = ("end", "edit", "merge")
"""The events of commits that belong to no turn."""
_SIDES = Choice("ours"), Choice("theirs")
_NAMES = {layout.PAD: "pad", layout.KEPT: "kept files"}
_PROGRAM_VALUES = (*unified_state.SCALARS, *unified_state.COUNTERS)


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked commit: the last turn up to it, the state as of it and as of the turn before, and whether anything up
    to it is damaged."""

    commit: str
    session: str
    event: str = ""
    number: int = 0
    key: str = ""
    state: Session | None = None
    base: Session | None = None
    is_damaged: bool = False
    authored: tuple[object, ...] | None = None
    """What people and programs set: fields, scratchpad, kept files; None if they cannot be read."""
    sets: bool = False
    """Whether the commit may change authored fields."""


class Cache:
    """What one process has checked: what sessions share is checked once."""

    def __init__(self, store: Store) -> None:
        self.scratch = Store(store.path, backend.Repository(store.path, pack=backend.Overlay(store.repo)))
        """The store with the commits that are made again, in memory."""
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
        self.entries: Mapping[str, Entry] = {}
        self.before = before or Checked("", self.session)

    def run(self) -> Checked:
        """Check the commit; `report` has the findings afterwards."""
        before, sets = self.before, self.event not in (*_TURNS, *_TAILS) or self.before.session != self.session
        stored_forms.check_objects(self.store, self.commit.tree, self.report, self.cache.objects)
        result = replace(before, commit=self.commit.id, session=self.session, event=self.event, sets=sets)
        try:
            self.state = stored_forms.read_state(self.store, self.commit.id, self.session, self.report)
        except NewerStoreError:
            raise
        except (DamageError, StoreError) as error:
            self.report.add("damage", "state", str(error))
            return replace(result, state=None, authored=None, is_damaged=True)
        self.agent = agents.of(self.state)
        try:
            self.entries = self.store.repo.tree(self.commit.tree)
            self._check_event()
            self._check_folders()
            if self.has_before or self.event == "start":
                self._compare(self._made_again())
        except (DamageError, StoreError) as error:
            if not self.report.is_damaged:
                self.report.add("damage", "tree" if isinstance(error, DamageError) else "object", str(error))
        authored = (*(getattr(self.state, name) for name in _AUTHORED), *map(self.entries.get, layout.CARRIED))
        is_damaged = before.is_damaged or self.report.is_damaged
        result = replace(result, state=self.state, authored=authored, is_damaged=is_damaged)
        if not self.number or self.event not in (*_TURNS, "fork"):
            return result
        self.cache.prompts.add(self.key)
        return replace(result, number=self.number, key=self.key, base=self._base)

    @property
    def _is_same_turn(self) -> bool:
        return (self.number, self.key) == (self.before.number, self.before.key)

    @property
    def _base(self) -> Session | None:
        """The state from which the counts of this turn go on."""
        return self.before.base if self._is_same_turn else self.before.state

    @property
    def _is_imported(self) -> bool:
        """Whether the session came from another system, which tells more about it than its lines."""
        return self.store.repo.entry(self.commit.tree, f"{layout.KEPT}/{session_files.SOURCE}") is not None

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
        if event == "fork" and self.state.origin is None:
            wrong("fork", "the state of a fork names no origin")
        follows = self._is_same_turn or self.number == self.before.number + 1
        if event in _TURNS and self.has_before and not follows:
            wrong("numbers", f"turn {self.number} follows turn {self.before.number}")
        if event in (*_TURNS, "end") and self.has_before and self.commit.tree == self.store.tree(self.before.commit):
            wrong("history", f"a commit of the event {event} changes nothing")

    def _check_folders(self) -> None:
        for name in (layout.LIVE, *layout.CARRIED):
            oid, is_tree = self.entries.get(name, ("", True))
            if is_tree and oid and oid not in self.cache.folders:
                self.cache.folders.add(oid)
                stored_forms.check_other_folder(self.store, self.commit.id, name, oid, self.report)
        if unknown := sorted(self.entries.keys() - set(_TOP)):
            what = f"unknown entry {canonical.one_line(unknown[0], 60)} in a commit; it is ignored"
            self.report.add("note", "tree", what)

    # The commit, made again

    def _made_again(self) -> str:
        """Return the commit as the recording code makes it; ``""`` if that cannot be told."""
        carried = {name: self.entries.get(name) for name in layout.CARRIED}
        if self.event in _TURNS:
            return self._turn_again(carried)
        if self.event in _TAILS:
            return self._tail_again()
        state = self._expected_state([])
        if self.event == "start":
            left = {layout.PAD: carried[layout.PAD]} if state.unified.metadata.parent else {}
            return commits.commit_start(self.cache.scratch, state, left)
        return self._fork_again(state, carried) if self.event == "fork" else self._edit_again(state, carried)

    def _tail_again(self) -> str:
        *raw, rest = self.store.tail_lines(self.commit.id)
        lines = self.agent.parsed([*raw, rest] if rest else raw)
        if rest:
            lines[-1] = replace(lines[-1], extent=Extent(0, len(rest)))  # the last line has no newline
        if sum(extent.lines for extent in self.message.extents) < len(lines):
            self.report.wrong("extent", f"{layout.TAIL} has {len(lines)} lines, but its extents cover fewer")
        again = commits.commit_end if self.event == "end" else commits.commit_compaction
        stood = self._stood(lines, unended=bool(rest))
        return again(self.cache.scratch, self.before.commit, lines, self._expected_state(lines), stood)

    def _edit_again(self, state: Session, carried: Changes) -> str:
        """Return an edit, a merge or a repair; what it was about is the user's to say."""
        store, event, on, parents = self.cache.scratch, self.event, self.before.commit, self.commit.parents
        summary, time = self.message.subject.removeprefix(f"{event}: "), max(self.commit.time, store.commit(on).time)
        if event == "edit" and len(parents) == 1:
            files = carried if self._is_imported else {layout.PAD: carried[layout.PAD]}
            return edit_commit.write_edit(store, state.id, on, edit_commit.StateEdit(summary, state, files), time)
        if event not in ("edit", "merge", "repair") or any(map(store.repo.read_problem, parents)):
            return ""
        if event == "edit":
            if tip_join.has_own_turns(store, parents[1], on):
                self.report.add("damage", "join", "it leaves out turns of the side that it joins")
                return ""
            return tip_join.joined_commit(store, *parents[:2])
        trailers = [("Session", state.id), ("Event", event), ("Origin", self._value("Origin") or "?")]
        if event == "repair":
            trailers += [("Mended", value) for value in self._values("Mended")[:_MOST_MENDED]]
            carried = {}
        elif len(parents) == 2:
            check(store, self.commit, self.message, state, self.report)
            time = max(store.commit(parent).time for parent in parents)
        message = Message(f"{event}: {summary}", tuple(trailers))
        return store.write_commit(on, carried, state, message, parents, time)

    def _turn_again(self, carried: Changes) -> str:
        before, body = self._lines(self.number)
        lines = [*before, *body]
        if ids.is_turn_key(body[0].uuid) and body[0].uuid != self.key:
            self.report.wrong("trailer", f"its prompt is {body[0].uuid}, but the commit says {self.key}")
        own = max(sum(extent.lines for extent in self.message.extents) - len(body), 0)
        is_first = not self._is_same_turn and self.event != "graft" and self.before.event != "compact"
        if own and is_first and any(line.is_boundary for line in before[-own:]):
            self.report.wrong("history", "a compaction precedes its prompt, but no earlier commit records it")
        origin = self._value("Origin") or ("?" if self.event == "graft" else "")
        if self.event == "turn" and self.agent.cells.describe(body).model:
            origin = ""  # only a summary came from a merge
        content = TurnContent(
            self.agent, before, body, TurnSidecars(), self.event != "cell", self._value("Project-Head"), self.event,
            origin, self._stood(lines, unended=self.message.is_unended), self.state.rules,
        )  # fmt: skip
        node = Node(self.key, self.number, lambda: None, commit=self.commit.id)
        changes = {**carried, layout.LIVE: self.entries.get(layout.LIVE)}
        state = self._expected_state(lines, body)
        return commits.commit_turn(self.cache.scratch, self.before.commit, node, content, state, changes)

    def _fork_again(self, state: Session, carried: Changes) -> str:
        store, on, origin = self.cache.scratch, self.before.commit, self.state.origin
        if origin is None:
            return ""
        changes, time = {**carried, layout.TAIL: None}, store.commit(on).time
        address, subject = f"{origin.session}@{origin.cell or origin.turn}", f"{origin.session} at turn {origin.turn}"
        trailers, own = [("Session", state.id), ("Event", "fork"), ("Fork-Point", address)], list[int]()
        if _is_ours(origin):
            time, subject = int(canonical.seconds(state.created) or 0), f"{state.name or state.id} from {address}"
            own = [self.number] if origin.cell else []
        else:
            changes |= {layout.LIVE: None}
            trailers += commits.extent_trailers(self.message.extents, unended=self.message.is_unended)
            trailers += [(key, self._value(key)) for key in ("Lines-SHA256", FILE_HASH, "Redacted")]
            own = [n for n in range(1, origin.turn + 1) if self._has_other_folder(n)]
        for number in own:
            before, body = self._lines(number)
            turn = self.agent.cells.describe(body)
            files = turn_folder.files(self.agent, before, body, turn, state.rules.get("cut", 0))
            side = self.store.side_files(self.commit.id, number) if origin.cell else {}
            changes[layout.turn_folder(number)] = (store.write_folder(files, side), True)
            if origin.cell:
                state = self._expected_state([], body)
                trailers += [("Turn", str(number)), ("Prompt", self.key), *commits.usage_trailers(turn)]
        return store.write_commit(on, changes, state, Message(f"fork: {subject}", tuple(trailers)), [on], time)

    def _has_other_folder(self, number: int) -> bool:
        """Return whether a turn's folder is another one than before."""
        trees = self.commit.tree, self.store.tree(self.before.commit)
        return len({self.store.repo.entry(tree, layout.turn_folder(number)) for tree in trees}) > 1

    def _lines(self, number: int) -> tuple[list[Line], list[Line]]:
        """Return the lines of a turn before its prompt, and from there on; raises DamageError."""
        lines = stored_forms.turn_lines(self.store, self.commit, number, self.agent, self.report)
        return self.agent.parsed(lines.before), self.agent.parsed(lines.body)

    def _stood(self, lines: list[Line], *, unended: bool) -> commits.Trailers:
        """Return where the last of the lines stood, as the commit says, if they can have stood there. The length of an
        extent is known only if none of its lines was redacted."""
        extents, own = self.message.extents, [line.raw for line in lines]
        count = sum(extent.lines for extent in extents)
        if count > len(own):
            self.report.add("damage", "extent", f"there are {len(own)} lines, but the extents cover {count}")
        own = own[max(len(own) - count, 0) :]
        if not count or count > len(own):
            return []
        placed, at = list[Extent](), 0
        for extent in extents:
            part, at = own[at : at + extent.lines], at + extent.lines
            length = sum(map(len, part)) + len(part) - (unended and at == count)
            placed.append(extent if self._value("Redacted") else extent._replace(length=length))
        return [
            ("File", self._value("File")), *commits.extent_trailers(placed, unended=self.message.is_unended),
            ("Lines-SHA256", lines_hash(own)), (FILE_HASH, self._value(FILE_HASH)),
            ("Redacted", self._value("Redacted")),
            ("Original-HMAC", self._value("Original-HMAC") if self._value("Redacted") else ""),
        ]  # fmt: skip

    def _values(self, key: str) -> list[str]:
        """Return the values of a trailer that are in a valid form."""
        return [value for value in self.message.all(key) if re.fullmatch(_VALUES[key], value)]

    def _value(self, key: str) -> str:
        return (self._values(key) or [""])[-1]

    # The state

    def _expected_state(self, lines: list[Line], body: list[Line] | None = None) -> Session:
        """Return the state that follows from the one before it and from lines."""
        state, before, event, base = self.state, self.before.state, self.event, self._base
        values: dict[str, Any] = {}
        if event == "start":
            empty = Session("", "", updated=state.updated if state.updated == state.created else "")
            values |= _named(empty, _COUNTS)
        elif body and base is not None:
            secrets = self.message.number("Redacted") or 0
            if sum(extent.lines for extent in self.message.extents) != len(lines):
                secrets = max(secrets, state.redacted - base.redacted)  # lines without a place may have had some
            values |= _named(sessions.after_turn(base, self.agent.cells.describe(body), self.number, secrets), _COUNTS)
            if event == "fork":
                values |= {"updated": max(values["updated"], state.created), "redacted": base.redacted}
        elif before is not None and event not in _TURNS:
            values |= _named(before, _COUNTS)
            if event in ("edit", "fork"):  # another system, or a fork's own beginning, may be later
                values["updated"] = max(before.updated, state.updated)
        if event in (*_TURNS, "start", "fork"):
            values |= {"state": "active", "ended": ""}
        if before is not None:
            values |= self._fork_values(before) if event == "fork" else self._kept_values(before)
        if event in ("compact", "repair") and before is not None and before.id == state.id:
            return before
        expected = replace(state, **values)
        if event != "end":
            return expected
        body = self._lines(state.turns)[1] if state.turns else []
        return commits.ended_state(expected, lines, cut_short=commits.is_cut_short(self.agent, body))

    def _kept_values(self, before: Session) -> dict[str, Any]:
        """Return the values of the session that commits of the event do not change."""
        if before.id != self.state.id or len(self.commit.parents) != 1:
            return {}
        names = ["rules", *(["origin"] if before.origin is not None else [])]
        names += _AUTHORED if self.event == "end" else ()
        names += ("agent_version", "git_branch", "headless") if self.event == "edit" else ()
        if self.event == "edit" and not self._is_imported:
            names += ("agent", "agent_id", "title", "created", "updated", "ended", "state")
        return _named(before, names)

    def _fork_values(self, before: Session) -> dict[str, Any]:
        """Return the values with which a fork begins."""
        origin = self.state.origin
        if origin is None:
            return {}
        replaced, is_ours = origin.replaced, _is_ours(origin)
        if not is_ours and replaced:
            replaced = (before.agent_id, *(before.origin.replaced if before.origin else ()))
        point = replace(origin, commit=self.before.commit, turn=self.before.number, replaced=replaced)
        return {"origin": point, "description": "", ("title" if is_ours else "name"): ""}

    # What differs

    def _compare(self, again: str) -> None:
        """Report how the commit differs from the one that was made again."""
        if again in ("", self.commit.id):
            return
        made = self.cache.scratch.commit(again)
        if replace(made, id=self.commit.id) == self.commit:
            self.report.wrong("commit", "its author or committer is not sessgit's, at one time in UTC")
        self._compare_messages(messages.parse_message(made.message), made.message)
        if made.time != self.commit.time:
            what = f"its date is {canonical.rfc3339(self.commit.time)}, which does not follow from its lines or parents"
            self.report.wrong("date", what)
        by_kind: dict[str, list[str]] = {}
        for path in stored_forms.differing_entries(self.cache.scratch.repo, made.tree, self.commit.tree):
            for kind, where in self._differing_values(again) if path == layout.STATE else [(self._kind(path), path)]:
                by_kind.setdefault(kind, []).append(where)
        # If both sides of a join are of one second, the greater id counts as the later one; a purge changes ids.
        times = [self.store.commit(parent).time for parent in self.commit.parents]
        is_certain = self.event != "edit" or len(times) < 2 or times[0] != times[1]
        for kind, paths in by_kind.items():
            more = f" and {len(paths) - _MOST_NAMED:,} more" if len(paths) > _MOST_NAMED else ""
            named = ", ".join(canonical.one_line(path, 80) for path in paths[:_MOST_NAMED])
            what = f"does not follow from its lines and the commits before it: {named}{more}"
            self.report.add("wrong" if is_certain else "note", kind, what)

    def _differing_values(self, again: str) -> Iterator[tuple[str, str]]:
        """Yield the kind and the path of each value of the state that differs."""
        states_ = (self.state, self.cache.scratch.state(again))
        for path in stored_forms.differing_paths(*(json.loads(sessions.dumps(state)) for state in states_)):
            kind = next((kind for kind, paths in _KINDS.items() if path.startswith(paths)), "state")
            yield kind, f"{layout.STATE} {path}"

    def _kind(self, path: str) -> str:
        """Return the kind of a finding about a path in the tree."""
        if path.startswith(layout.turn_folder(self.number) + "/"):
            return "cells" if path.endswith(f"/{layout.CELLS}") else "file"
        return "closed" if path.startswith(f"{layout.TURNS}/") else "tree"

    def _compare_messages(self, expected: Message, text: str) -> None:
        own = self.message
        differing = sorted({key for key, _ in {*own.trailers} ^ {*expected.trailers}})
        if expected.subject != own.subject and "[redacted" not in own.subject:
            differing.insert(0, "subject")
        if "Lines-SHA256" in differing and own.get("Lines-SHA256") and expected.get("Lines-SHA256"):
            what = "its lines differ from the recorded ones: Lines-SHA256 does not match"
            self.report.add("damage", "hash", what, self.report.repair_hint)
        elif differing or text.partition("\n")[2] != self.commit.message.partition("\n")[2]:
            named = ", ".join(differing) or "the order of its trailers, or a line that is not a trailer"
            self.report.wrong("trailer", f"its message does not match its event and its lines: {named}")


def _named(state: Session, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(state, name) for name in names}


def _is_ours(origin: Origin) -> bool:
    """Return whether sessgit made a fork, not the agent: then its beginning was written, or it has none."""
    return bool(origin.prefix or not origin.turn)


def check(scratch: Store, commit: Commit, message: Message, state: Session, report: Report) -> None:
    """Report what of a merge does not follow from its sides. Unreadable parents are reported on their own; `scratch`
    writes in memory."""
    with suppress(SessgitError):
        _MergeCheck(scratch, commit, message, state, report).run()


class _MergeCheck:
    def __init__(self, store: Store, commit: Commit, message: Message, state: Session, report: Report) -> None:
        self.store, self.commit, self.message, self.state, self.report = store, commit, message, state, report
        self.ours, self.theirs = commit.parents

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
        pairs = ((tip, store.state(tip), other) for tip in ours for other in self._states_of_theirs(theirs))
        if differing := min((self._differing(*pair) for pair in pairs), key=len, default=[]):
            what = f"its {' and '.join(differing)} is not the merge of its two sides"
            self.report.add("note" if is_new else "wrong", "merge", what)

    def _commits_before(self) -> Iterator[tuple[str, Session]]:
        """Yield the first parent and its state; then each commit before it after which only merged turns follow."""
        for commit in self.store.repo.first_parents(self.ours):
            yield commit.id, self.store.state(commit.id)
            message = self.store.message(commit.id)
            event = message.get("Event")
            is_merged = event == "compact" or (event in _TURN_EVENTS and message.get("Origin"))
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

    def _states_of_theirs(self, commits: Sequence[str]) -> Iterator[Session]:
        """Yield the states that the second side may have had: its turns', with what one of the commits sets."""
        state = self.store.state(self.theirs)
        for commit in commits:
            other = self.store.state(commit)
            yield replace(state, labels=other.labels, unified=other.unified)

    def _differing(self, tip: str, ours: Session, theirs: Session) -> list[str]:
        """Return what of the merge no decision between two states could give; nothing if the two have turns, but no
        history in common. `tip` is the commit of ours."""
        base = shared_turns.merge_base(self.store, tip, self.theirs)
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
        for path in _PROGRAM_VALUES:
            if unified_state.value_at(own, path) not in [unified_state.value_at(side, path) for side in sides]:
                yield "values of programs"
                break
        memory, memories = own.working_memory, [side.working_memory for side in sides]
        for key in {*memory, *(key for one in memories for key in one)}:
            same = ((key in memory) == (key in one) and unified_state.is_same_json(memory.get(key), one.get(key))
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
