"""The promises of push and pull, whatever is done on three machines and in whatever order.

Nothing that a machine had is ever gone from it but what was deleted, no pull takes a head back, and once all have
synced often enough, each of them and the remote hold every turn, and a further sync moves nothing.
"""

from __future__ import annotations

import copy
import itertools
import shutil
import tempfile
from pathlib import Path

from clones import Clone, bare, last_line, restored, turn_keys
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from plain import run_git
from transcripts import OTHER, SESSION, File, Talk

from sessgit.branch import restore
from sessgit.errors import ConflictError
from sessgit.store import layout, refs
from sessgit.store.backend import Repository

CLONES = st.integers(0, 2)
SESSIONS = st.sampled_from([SESSION, SESSION, OTHER])
BRANCHES = (layout.HEADS, layout.ARCHIVE)
WORDS = st.sampled_from(["lexer", "parser", "tokens"])
_MOST_ROUNDS = 4


class Machines(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="clones-"))
        self.remote = bare(self.folder / "remote")
        clock = itertools.count()
        self.clones = [Clone(self.folder / f"clone-{n}", self.remote, n, clock) for n in range(3)]
        self.talks: dict[tuple[int, str], Talk] = {}
        self.numbers = itertools.count(1)
        self.parents: dict[str, str] = {}
        """Each turn that was ever recorded, by its key, and the one before it."""
        self.of: dict[str, set[str]] = {}
        """The turns of each session."""
        self.deleted: set[str] = set()
        self.had: list[dict[str, set[str]]] = [{} for _ in range(3)]

    def teardown(self) -> None:
        try:
            self._all_have_all()
        finally:
            for clone in self.clones:
                clone.close()
            shutil.rmtree(self.folder)

    @initialize(shared=st.integers(0, 3))
    def begin(self, shared: int) -> None:
        """A conversation of three turns, which so many machines have."""
        self.talks[0, SESSION] = Talk().turns("one", "two", "three")
        self.clones[0].record(self.talks[0, SESSION])
        self._note(self.clones[0])
        for number in range(shared):
            self.sync(number)

    # What people do

    @rule(number=CLONES, session=SESSIONS, anew=st.booleans(), final=st.booleans(), back=st.integers(0, 3))
    def turn(self, number: int, session: str, anew: bool, final: bool, back: int) -> None:
        """Goes on with the file as it is, or as it was restored, where it ended or behind an earlier turn."""
        clone = self.clones[number]
        own = clone.refs()
        if layout.archive_ref(session) in own or layout.tombstone_ref(session) in own:
            return
        if layout.head_ref(session) not in own:
            seconds = 100 * next(self.numbers)
            talk = Talk(file=File(session, "2.1", "/home/ada/shop", seconds=seconds))
            talk.file.counts = dict.fromkeys("abcde", seconds)
        elif anew or (number, session) not in self.talks:
            clone.index.sync()
            talk = restored(clone, restore.rebuild_file(clone.store, session).data, session, next(self.numbers))
        else:
            talk = self.talks[number, session]
        talk.file.seconds = 100 * next(self.numbers)
        self._rewind(clone, talk, back)
        self.talks[number, session] = talk
        key = f"turn {next(self.numbers)}"
        clone.record(talk.turns(key), final=final)
        self._note(clone)

    def _rewind(self, clone: Clone, talk: Talk, back: int) -> None:
        """Goes back behind an earlier turn of the head, if the file holds that."""
        keys = clone.keys(talk.session) if back and layout.head_ref(talk.session) in clone.refs() else []
        if len(keys) > back:
            leaf = last_line(clone, talk.session, len(keys) - back)
            talk.leaf = leaf if leaf.encode() in talk.data else talk.leaf

    @rule(number=CLONES, other=CLONES, session=SESSIONS)
    def copy(self, number: int, other: int, session: str) -> None:
        """Another machine records the same file."""
        talk, there = self.talks.get((number, session)), self.clones[other]
        if (
            talk is None
            or other == number
            or there.refs().keys() & {layout.head_ref(session), layout.tombstone_ref(session)}
        ):
            return
        if layout.archive_ref(session) in there.refs():
            return
        self.talks[other, session] = copy.deepcopy(talk)
        there.record(self.talks[other, session])
        self._note(there)

    @rule(number=CLONES, session=SESSIONS, word=WORDS, what=st.sampled_from(["label", "describe", "archive", "tag"]))
    def say(self, number: int, session: str, word: str, what: str) -> None:
        """A person says something of a conversation."""
        clone = self.clones[number]
        own = clone.refs()
        if not self._has(number, session):
            return
        if what == "label":
            clone.edit(session, add=(word,))
        elif what == "describe":
            clone.edit(session, description=word)
        elif what == "tag" and layout.TAGS + word not in own:
            clone.tag(word, session, len(clone.keys(session)))
        elif what == "archive" and layout.head_ref(session) in own:
            clone.archive(session)
        elif what == "archive":
            clone.unarchive(session)

    @rule(number=CLONES, session=SESSIONS)
    def merge(self, number: int, session: str) -> None:
        """Restore a side branch, of another machine or of a rewind."""
        clone = self.clones[number]
        own = clone.refs()
        sides = sorted(ref for ref in own if ref.startswith(f"{layout.head_ref(session)}."))
        if layout.head_ref(session) not in own or not sides:
            return
        try:
            clone.merge(layout.split_ref(sides[0])[1], session)
        except ConflictError:  # the file here is behind, or has gone on without being recorded
            return
        self.talks.pop((number, session), None)
        self._note(clone)

    @precondition(lambda self: len(self.parents) > 4)
    @rule(number=CLONES, session=SESSIONS)
    def delete(self, number: int, session: str) -> None:
        if self._has(number, session):
            self.clones[number].delete(session)
            self.deleted.add(session)
            self.talks.pop((number, session), None)

    @rule(number=CLONES)
    def pull(self, number: int) -> None:
        clone = self.clones[number]
        before = clone.refs()
        clone.pull()
        after = clone.refs()
        for ref, tip in before.items():
            space, name = layout.split_ref(ref)
            if space in BRANCHES and layout.session_of(name) not in self.deleted:
                now = after.get(layout.head_ref(name)) or after[layout.archive_ref(name)]
                assert clone.store.repo.is_ancestor(tip, now), f"{name} went back"

    @rule(number=CLONES)
    def push(self, number: int) -> None:
        clone = self.clones[number]
        before, there = clone.refs(), clone.there()
        clone.push()
        assert clone.refs() == before
        repo, after = Repository(self.remote), clone.there().values()
        for ref, tip in there.items():
            space, name = layout.split_ref(ref)
            if space in BRANCHES and layout.session_of(name) not in self.deleted:
                assert any(repo.is_ancestor(tip, other) for other in after), f"{name} is gone from the remote"

    @rule(number=CLONES)
    def sync(self, number: int) -> None:
        self.pull(number)
        self.push(number)

    # What holds

    @invariant()
    def nothing_is_gone(self) -> None:
        for number, clone in enumerate(self.clones):
            now = self._turns(refs.read_all(clone.store.path), clone)
            for session, keys in self.had[number].items():
                if session not in self.deleted:
                    assert keys <= now.get(session, set()), f"clone {number} lost turns of {session}"
            self.had[number] = now

    def _all_have_all(self) -> None:
        for _ in range(_MOST_ROUNDS):
            before = self._everything()
            for number in range(3):
                self.sync(number)
            if self._everything() == before:
                break
        else:
            raise AssertionError("there is no end to it")
        self.nothing_is_gone()
        for clone in self.clones:
            clone.check()
            self._has_all(clone, refs.read_all(clone.store.path))
            self._has_all(clone, refs.read_all(self.remote))
            for session in set(clone.sessions()):
                restore.rebuild_file(clone.store, session)
        assert run_git(self.remote, "fsck", "--strict", "--no-dangling") == ""

    def _has_all(self, clone: Clone, held: dict[str, str]) -> None:
        # What was deleted on this machine may be there all the same, and nothing of it comes here.
        kept = {
            ref: tip for ref, tip in held.items() if layout.session_of(layout.split_ref(ref)[1]) not in self.deleted
        }
        turns = self._turns(kept, clone)
        for session in self.of.keys() - self.deleted:
            assert turns.get(session, set()) == self.of[session]
            own = self._branches(held, session)
            ways = len(self.of[session] - {self.parents[key] for key in self.of[session]})
            most = [tip for tip in own if not any(o != tip and clone.store.repo.is_ancestor(tip, o) for o in own)]
            assert len(most) <= ways, f"{len(most)} branches for {ways} ways"

    def _everything(self) -> list[dict[str, str]]:
        return [*(clone.refs() for clone in self.clones), self.clones[0].there()]

    def _has(self, number: int, session: str) -> bool:
        return bool({layout.head_ref(session), layout.archive_ref(session)} & self.clones[number].refs().keys())

    def _note(self, clone: Clone) -> None:
        """Notes all turns that a machine has."""
        held = refs.read_all(clone.store.path)
        for session in clone.sessions():
            for tip in self._branches(held, session):
                keys = turn_keys(clone.store, tip)
                self.parents |= dict(zip(keys, ["", *keys], strict=False))
                self.of.setdefault(session, set()).update(keys)

    def _turns(self, held: dict[str, str], clone: Clone) -> dict[str, set[str]]:
        keys: dict[str, set[str]] = {}
        for ref, tip in held.items():
            space, name = layout.split_ref(ref)
            if space in BRANCHES and ref == space + name:
                keys.setdefault(layout.session_of(name), set()).update(turn_keys(clone.store, tip))
        return keys

    def _branches(self, held: dict[str, str], session: str) -> set[str]:
        named = ((*layout.split_ref(ref), ref, tip) for ref, tip in held.items())
        return {
            tip
            for space, name, ref, tip in named
            if space in BRANCHES and ref == space + name and layout.session_of(name) == session
        }


Machines.TestCase.settings = settings(max_examples=10, stateful_step_count=15)
TestMachines = Machines.TestCase
