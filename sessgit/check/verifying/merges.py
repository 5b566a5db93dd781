"""Commits with two parents, made again from both: a join follows from them, a merge up to what the user decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sessgit.branch.merging import pads
from sessgit.branch.merging.sides import MergeSides, base_state
from sessgit.check.verifying import ref_checks
from sessgit.check.verifying.report import Report
from sessgit.errors import SessgitError, StoreError
from sessgit.history import shared_turns
from sessgit.model import canonical, ids, merge_decisions, unified_state
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Origin, Session
from sessgit.model.merge_decisions import Base, Choice
from sessgit.record import scratch_store, tip_join
from sessgit.store import journal, layout, refs
from sessgit.store.index import Branch
from sessgit.store.objects import Commit, Entry
from sessgit.store.store import Store

_TURN_EVENTS = ("turn", "cell", "graft", "compact")
_OTHER_EVENTS = ("end", "edit", "merge")
"""The events of commits that belong to no turn."""
_SIDES = Choice("ours"), Choice("theirs")
_NAMES = {layout.STATE: "state", layout.PAD: "pad", layout.KEPT: "kept files"}
_PROGRAM_VALUES = (*unified_state.SCALARS, *unified_state.COUNTERS)


def check(store: Store, commit: Commit, message: Message, state: Session, report: Report) -> None:
    """Report what of a commit with two parents does not follow from them. Unreadable parents are reported on their
    own."""
    with suppress(SessgitError):
        if message.get("Event") == "edit":
            _check_join(store, commit, report)
        else:
            _MergeCheck(store, commit, message, state, report).run()


def _check_join(store: Store, commit: Commit, report: Report) -> None:
    main, other = commit.parents
    if tip_join.has_own_turns(store, other, main):
        report.add("damage", "join", "it leaves out turns of the side that it joins")
        return
    with scratch_store.scratch_store(store.path) as scratch:
        expected = scratch.commit(tip_join.joined_commit(scratch, main, other))
        wrong = _differing(scratch.repo.tree(expected.tree), store.repo.tree(commit.tree))
    if commit.time != expected.time:
        report.wrong("date", "its date is not the later one of its parents'")
    if wrong:
        # If both are of one second, the greater id counts as the later one; a purge changes ids.
        is_certain = store.commit(main).time != store.commit(other).time
        what = f"its {' and '.join(wrong)} is not the merge of its two sides"
        report.add("wrong" if is_certain else "note", "join", what)


def _differing(one: Mapping[str, Entry], other: Mapping[str, Entry]) -> list[str]:
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return sorted(_NAMES.get(name, name) for name in names)


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
        if self.commit.time != max(store.commit(tip).time for tip in self.commit.parents):
            wrong("date", "its date is not the later one of its parents'")
        if not self._has_origin():
            wrong("merge", "its Origin names a session that does not contain its second parent")
        others, first = self._states_of_theirs(), before[-1][0]
        differing = min((self._differing(self.ours, top, other) for other in others), key=len, default=[])
        if differing and store.message(first).get("Event") != "fork":
            wrong("merge", f"its {' and '.join(differing)} is not the merge of its two sides")
        elif store.message(first).get("Event") == "fork" and (differing or self._made_session()):
            # Decided as of the session that the new one was forked from; edits of it may have been undone since.
            tips = list(self._tips_of_origin(store.state(first).origin, store.commit(first).time))
            pairs = ((tip, store.state(tip), other) for tip in tips for other in others)
            if differing := min((self._differing(*pair) for pair in pairs), key=len, default=[]):
                what = f"its {' and '.join(differing)} is not the merge of its two sides"
                self.report.add("note", "merge", f"{what}, nor of the session that it began with")

    def _commits_before(self) -> Iterator[tuple[str, Session]]:
        """Yield the first parent and its state; then each commit before it after which only merged turns follow."""
        for commit in self.store.repo.first_parents(self.ours):
            yield commit.id, self.store.state(commit.id)
            message = self.store.message(commit.id)
            event = message.get("Event")
            is_merged = event == "compact" or (event in _TURN_EVENTS and message.get("Origin"))
            if message.get("Session") != self.state.id or not is_merged:
                return

    def _made_session(self) -> bool:
        """Return whether the journal says that a merge created the session."""
        ref = layout.head_ref(self.state.id)
        with suppress(StoreError):
            merges = [one for one in journal.read(self.store.paths) if one.command == "merge"]
            return any(move.ref == ref and move.old is None for one in merges for move in one.moves)
        return False

    def _has_origin(self) -> bool:
        """Return whether the second parent is a commit of the session that Origin names, if that session is here."""
        session = layout.session_of(self.message.get("Origin").partition("@")[0])
        if self.store.message(self.theirs).get("Session") == session:
            return True
        tips = [tip for tip, _ in refs.branches(self.store.path, session).values()] if ids.is_branch(session) else []
        return not tips or any(one.id == self.theirs for tip in tips for one in self.store.repo.first_parents(tip))

    def _states_of_theirs(self) -> list[Session]:
        """Return the states that the second side may have had during the merge: that of its commit, and if this is a
        turn's, with the authored fields of any later commit."""
        store, state = self.store, self.store.state(self.theirs)
        if store.message(self.theirs).get("Event") in _OTHER_EVENTS:
            return [state]
        tips = [tip for tip in self._all_tips(state.id) if store.repo.is_ancestor(self.theirs, tip)]
        later = [commit.id for commit in store.repo.since(tips, [self.theirs])]
        others = [store.state(commit) for commit in later if store.message(commit).get("Session") == state.id]
        states = [state, *(replace(state, labels=other.labels, unified=other.unified) for other in others)]
        return list({(one.labels, canonical.compact(unified_state.state_document(one.unified))): one
            for one in states}.values())  # fmt: skip

    def _all_tips(self, session: str) -> list[str]:
        """Return the tips of a session's branches, and its commits that undo or a tag keeps."""
        tips = [tip for tip, _ in refs.branches(self.store.path, session).values()]
        return [*tips, *ref_checks.kept_tips(self.store).get(session, {}).values()]

    def _tips_of_origin(self, origin: Origin | None, time: int) -> Iterator[str]:
        """Yield the commits that may have been the tip of the session from which a new one was forked at a time: the
        fork point or the last edit after it. There are several if edits are of the same second, or were undone."""
        session = layout.session_of(origin.session) if origin else ""
        branches = refs.branches(self.store.path, session) if session else {}
        if origin is None or session not in branches:
            return
        repo, point = self.store.repo, origin.commit
        current = {commit.id for commit in repo.since([tip for tip, _ in branches.values()], [point])}
        children = dict[str, list[Commit]]()
        for commit in repo.since(self._all_tips(session), [point]):
            children.setdefault(commit.parents[0] if commit.parents else "", []).append(commit)
        tips, waiting = {point}, [point]
        until = max(time, self.store.commit(point).time)
        while waiting:
            parent = waiting.pop()
            for commit in children.get(parent, ()):
                if commit.time <= until and self.store.message(commit.id).get("Event") in _OTHER_EVENTS:
                    waiting.append(commit.id)
                    tips.add(commit.id)
                    if commit.time < time and commit.id in current:
                        tips.discard(parent)
        yield from tips

    def _differing(self, tip: str, ours: Session, theirs: Session) -> list[str]:
        """Return what of the merge no decision between two states could give; nothing if the two have turns, but no
        history in common. `tip` is the commit of ours."""
        base = shared_turns.merge_base(self.store, tip, self.theirs)
        if not base and self._first_key(tip) == self._first_key(self.theirs):
            return []
        began = Base(*(base_state(self.store, side, base) for side in (tip, self.theirs)))
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
        stored, tree = self.store.repo.tree(self.commit.tree), self.store.commit(self.ours).tree
        with scratch_store.scratch_store(self.store.path) as scratch:
            merged = [pads.merge_pads(scratch, sides, choice).changes(scratch) for choice in _SIDES]
            results = [scratch.repo.tree(scratch.repo.edit_tree(tree, changes)) for changes in merged]
        for name in layout.CARRIED:
            if stored.get(name) not in [result.get(name) for result in results]:
                yield _NAMES[name]
