"""Merges, against both sides: of what people and programs set, each value is that of a decision between the two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from sessgit.branch.merging import pads
from sessgit.branch.merging.sides import MergeSides, base_state
from sessgit.check.verifying import ref_checks
from sessgit.check.verifying.report import Report
from sessgit.errors import SessgitError
from sessgit.history import shared_turns
from sessgit.model import ids, merge_decisions, unified_state
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Base, Choice
from sessgit.store import layout, refs
from sessgit.store.index import Branch
from sessgit.store.objects import Commit
from sessgit.store.store import Store

_TURN_EVENTS = ("turn", "cell", "graft", "compact")
_OTHER_EVENTS = ("end", "edit", "merge")
"""The events of commits that belong to no turn."""
_SIDES = Choice("ours"), Choice("theirs")
_NAMES = {layout.PAD: "pad", layout.KEPT: "kept files"}
_PROGRAM_VALUES = (*unified_state.SCALARS, *unified_state.COUNTERS)


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
        tips += ref_checks.kept_tips(self.store).get(session, {}).values()
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
        repo, tree = self.store.repo, self.store.commit(self.ours).tree
        stored = repo.tree(self.commit.tree)
        merged = [pads.merge_pads(self.store, sides, choice).changes(self.store) for choice in _SIDES]
        results = [repo.tree(repo.edit_tree(tree, changes)) for changes in merged]
        for name in layout.CARRIED:
            if stored.get(name) not in [result.get(name) for result in results]:
                yield _NAMES[name]
