"""The history of a session, commit by commit from the first one on: each against the one before it and its own tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.check.verifying import commit_extras, forms, merges, states, trees, turns
from sessgit.check.verifying.checked_commits import Known, Memory
from sessgit.check.verifying.forms import TAILS, TURNS, Seen
from sessgit.check.verifying.turns import Where
from sessgit.errors import DamageError, NewerStoreError, SessgitError, StoreError
from sessgit.model import canonical
from sessgit.model import long_strings as text_rules
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import EVENTS, Message
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Turn
from sessgit.model.finding import Finding, Severity
from sessgit.store import layout
from sessgit.store.backend import Commit, Entry
from sessgit.store.store import Store

_SHOWN = 5
_BESIDE = (layout.LIVE, layout.PAD, layout.KEPT)


def check(store: Store, branch: str, tip: str, memory: Memory) -> Iterator[Finding]:
    """What is wrong with the commits of a branch that were not looked at yet, and with the whole tree of its tip."""
    session, where = layout.session_of(branch), Where(branch)
    commits, before, found = _unchecked(store, tip, memory, where)
    yield from found
    if before and before.is_damaged and before.session != session:
        yield Where(branch, before.number or None).found(
            "note", "shared", f"its shared part with {layout.short_name(before.session)} is damaged, see there"
        )
    cut_off = bool(found)
    for commit in reversed(commits):
        one = _Commit(store, branch, commit, before, memory, is_first=before is None and not cut_off)
        known = one.check()
        memory.note(known, before)
        before = known
        cut_off = False
        yield from one.found
    if before is not None and before.state is not None:
        yield from _tip(store, tip, session, before, where)


def _unchecked(
    store: Store, tip: str, memory: Memory, where: Where
) -> tuple[list[Commit], Known | None, list[Finding]]:
    """The commits from a tip back to the first one that is known or cannot be read, that one, and why."""
    commits: list[Commit] = []
    following: str | None = tip
    while following is not None:
        if following in memory.commits:
            return commits, memory.commits[following], []
        try:
            commit = store.commit(following)
        except SessgitError:
            return commits, None, [where.lost(store, following, "a commit of its history" if commits else "its commit")]
        commits.append(commit)
        following = commit.parents[0] if commit.parents else None
    return commits, None, []


def _tip(store: Store, tip: str, session: str, known: Known, where: Where) -> Iterator[Finding]:
    """The turns of the whole tree: numbered from 1 on without a gap, as many as the state says."""
    assert known.state is not None
    if known.session != session:
        yield where.found(
            "wrong", "trailer", f"its last commit is one of {layout.short_name(known.session) or 'no session'}"
        )
    try:
        numbers, wrong = trees.numbers(store, tip)
    except SessgitError:
        return  # told where it was met
    yield from (where.found("wrong", "tree", said) for said in wrong)
    if numbers != list(range(1, len(numbers) + 1)):
        gap = next(n for n, number in enumerate(numbers, start=1) if n != number)
        yield where.found("damage", "numbers", f"turn {gap} is missing, but later turns exist")
    elif len(numbers) != known.state.turns:
        yield where.found(
            "damage", "numbers", f"{layout.STATE} says {known.state.turns} turns, but there are {len(numbers)}"
        )


class _Commit:
    """One commit, and what is found of it."""

    def __init__(
        self, store: Store, branch: str, commit: Commit, before: Known | None, memory: Memory, *, is_first: bool
    ) -> None:
        self.store, self.commit, self.before, self.memory = store, commit, before, memory
        self.is_first = is_first
        self.message: Message = messages.parse_message(commit.message)
        self.session, self.event = self.message.get("Session"), self.message.get("Event")
        self.number, self.key = self.message.number("Turn"), self.message.get("Prompt")
        own = self.session == layout.session_of(branch)
        at = self.number or (before.number if before else None) or None
        self.where = Where(branch if own else self.session or branch, at)
        self.found: list[Finding] = []
        self.carried: tuple[Entry | None, ...] = ()

    def check(self) -> Known:
        """What is known after the commit; `found` is what is wrong with it."""
        before = self.before or Known("", self.session, "", self._first_number())
        self.found += trees.faults(self.store, self.commit.tree, self.where, self.memory.objects)
        try:
            state, wrong = states.read(self.store, self.commit.id, self.session, self.where)
        except NewerStoreError:
            raise
        except (DamageError, StoreError) as error:
            self._say("damage", "state", str(error))
            return self._after(before, is_damaged=True)
        self.found += wrong
        self._check_form()
        told = self._check_content(before, state)
        known = self._after(before, state, is_damaged=before.is_damaged or any(
            finding.severity == "damage" for finding in self.found
        ))  # fmt: skip
        if not self._is_turn or not self.number:
            return known
        is_cut_short = told.interrupted if told else None
        return replace(known, number=self.number, key=self.key, base=self._base(before), is_cut_short=is_cut_short)

    def _check_content(self, before: Known, state: Session) -> Turn | None:
        """Makes the commit once more of the one before it and its lines; what its turn says, None where it has none or
        that cannot be read."""
        made = turns.Folder()
        try:
            above = self.store.commit(self.before.commit) if self.before is not None else None
            old = self.before.state if self.before else None
            seen = Seen(self.commit, self.message, state, above, old, self.where)
            tail = self._check_tree(state, seen)
            if self._is_turn:
                made = self._check_turn(before, state, seen)
            recompute = _cut(state) or not self._is_turn
            placed = sum(extent.lines for extent in self.message.extents) == len(made.raw)
            given = states.Given(
                self._base(before), made.told, tail, before.is_cut_short, placed, before.number,
                seen.is_imported(self.store),
            )  # fmt: skip
            self.found += states.compare(seen, states.expected(seen, given))
            self.found += forms.check_message(seen, made.told if recompute else None)
            self.found += forms.check_time(seen, made.told, tail)
        except (DamageError, StoreError) as error:
            if not any(finding.severity == "damage" for finding in self.found):
                self._say("damage", "object", str(error))
        return made.told

    def _after(self, before: Known, state: Session | None = None, *, is_damaged: bool) -> Known:
        """What is known after the commit if it brings no turn."""
        return replace(
            before, commit=self.commit.id, session=self.session, event=self.event, state=state, is_damaged=is_damaged,
            carried=self.carried,
        )  # fmt: skip

    # The message

    @property
    def _is_turn(self) -> bool:
        return self.event in TURNS or (self.event == "fork" and self.number is not None)

    def _first_number(self) -> int:
        """The turn before, where the history before the commit cannot be read."""
        if self.is_first:
            return 0
        return (self.number or 1) - 1 if self._is_turn else self.number or 0

    def _base(self, before: Known) -> Session | None:
        """The state that this turn's counts go on from."""
        if self.before is None:
            return None
        return before.base if self.number == before.number and before.key == self.key else before.state

    def _check_form(self) -> None:
        """What every commit has, and where it stands."""
        if not self.session:
            self._say("wrong", "trailer", "a commit names no session")
        if self.event not in EVENTS:
            self._say("wrong", "trailer", f"the event “{canonical.one_line(self.event, 40)}” is unknown")
        if self.is_first and self.event != "start":
            self._say(
                "wrong", "history", f"the history begins with the event {self.event or 'of no name'}, not with a start"
            )
        if self.event == "start" and not self.is_first and self.before is not None:
            self._say("wrong", "history", "a start is in the middle of the history")

    # The tree

    def _check_tree(self, state: Session, seen: Seen) -> list[Line]:
        """What stands beside the turns, and that no other turn than the commit's own has changed; the lines of a
        commit of an end or a compaction."""
        tree = self.store.tree(self.commit.id)
        entries = self.store.repo.tree(tree)
        self.carried = tuple(entries.get(name) for name in layout.CARRIED)
        for name in (name for name in _BESIDE if name in entries):
            oid, is_tree = entries[name]
            if not is_tree:
                self._say("wrong", "tree", f"{name} is not a folder")
            elif oid not in self.memory.beside:
                self.memory.beside.add(oid)
                self.found += commit_extras.check(self.store, self.commit.id, name, oid, self.where)
        self.found += forms.check(self.store, seen, entries)
        self.found += merges.check(self.store, seen)
        tail = self._check_tail(agents.of(state), entries)
        changed = {
            n for n in trees.changed(self.store, self.before.commit if self.before else None, tree) if n != self.number
        }
        if self.event == "fork" and state.origin is not None and not state.origin.prefix:
            shared = set(range(1, state.origin.turn + 1))
            for number in sorted(changed & shared):  # their folders hold the lines of the fork's own file
                if (entry := self.store.repo.entry(tree, layout.turn_folder(number))) is not None:
                    self.found += turns.check(
                        agents.of(state), self.store, entry[0], Where(self.session, number), cut=_cut(state)
                    )[1]
            changed -= shared
        if changed and self.before is not None:
            more = f" and {len(changed) - _SHOWN:,} more" if len(changed) > _SHOWN else ""
            shown = ", ".join(map(str, sorted(changed)[:_SHOWN]))
            self._say("wrong", "closed", f"the commit changes closed turns: {shown}{more}")
        return tail

    def _check_tail(self, agent: Agent, entries: Mapping[str, tuple[str, bool]]) -> list[Line]:
        tail = entries.get(layout.TAIL)
        if tail is not None and (self._is_turn or self.event == "fork"):
            self._say("wrong", "tree", f"a commit of the event {self.event} has {layout.TAIL}")
        if self.event not in TAILS:
            return []
        data = self.store.repo.blob(tail[0]) if tail else b""
        lines = forms.tail_lines(agent, data)
        raw = [line.raw for line in lines]
        self.found += turns.check_lines(self.message, raw, self.where, unended=not data.endswith(b"\n"))
        placed = sum(extent.lines for extent in self.message.extents)
        if placed < len(raw):
            self._say("wrong", "extent", f"{layout.TAIL} has {len(raw)} lines, but its extents cover {placed}")
        return lines

    # The turn

    def _check_turn(self, before: Known, state: Session, seen: Seen) -> turns.Folder:
        """The turn's folder against its own lines, and these against their hash and places."""
        self.memory.prompts.add(self.key)
        number = self.number
        if not number or not self.key:
            self._say("wrong", "trailer", f"a commit of the event {self.event} names no turn or no prompt")
            return turns.Folder()
        same = number == before.number and self.key == before.key
        if self.before is not None and not same and number != before.number + 1:
            self._say("wrong", "numbers", f"turn {number} follows turn {before.number}")
        entry = self.store.repo.entry(self.store.tree(self.commit.id), layout.turn_folder(number))
        if entry is None:
            self._say("damage", "tree", "the turn has no folder")
            return turns.Folder()
        made, found = turns.check(agents.of(state), self.store, entry[0], self.where, cut=_cut(state))
        self.found += found
        if made.told is not None:
            self.found += turns.check_key(agents.of(state), made, self.key, self.where)
            if self.event in TURNS:
                self.found += turns.check_lines(self.message, made.raw, self.where, unended=self.message.is_unended)
            self.found += () if same else forms.check_compaction(seen, made)
        return made

    # Inside

    def _say(self, severity: Severity, kind: str, what: str) -> None:
        self.found.append(self.where.found(severity, kind, what))


def _cut(state: Session) -> int:
    """The version of the rules by which the session is cut, 0 for one that this program does not know."""
    cut = state.rules.get("cut", 0)
    return cut if 1 <= cut <= text_rules.RULES_VERSION else 0
