"""What holds for every merge, whatever was said before it: nothing is lost, nothing stands twice, all comes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import eq
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest
from homes import claude_homes
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import BROKEN, HELD
from strategies import _Stage as Stage
from transcripts import OTHER, SESSION, Talk
from unifying import PARTS

from sessgit.branch import merge as merges
from sessgit.branch import restore
from sessgit.branch import undo as undoing
from sessgit.branch.merge import MergeResult
from sessgit.branch.merge_plan import MergeRequest
from sessgit.errors import ConflictError, SessgitError, UsageError
from sessgit.history import diff, reassemble
from sessgit.history.diff import Edit
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical, merge_decisions
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session
from sessgit.model.merge_decisions import Base, Choice
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

NOW = 1_800_000_000.0
FEWER = settings(max_examples=(settings.default or settings()).max_examples // 2)
"""Each example is two recordings and several readings of what came of them."""
MODES = st.sampled_from(["summary", "graft", None])


@dataclass
class Place:
    """A store and a client's folder with two conversations, ours and theirs."""

    store: Store
    index: Index
    config: Path
    granularity: Literal["turn", "cell"] = "turn"

    @property
    def folder(self) -> Path:
        return self.config / "projects" / "-home-ada-shop"

    @property
    def ours(self) -> Path:
        return self.folder / f"{SESSION}.jsonl"

    def record(self, path: Path) -> tuple[int, ...]:
        return record(
            Context(self.index, privacy=Privacy(RecordConfig(self.granularity))),
            TranscriptSource(path, path.stem, self.config),
        ).turns

    def target(self, session: str) -> ResolvedTarget:
        self.index.sync()
        branch = self.index.branch(session)
        assume(branch is not None and branch.state.turns)
        assert branch is not None
        return ResolvedTarget(branch)

    def merge(self, mode: Any, ours: str = SESSION, theirs: str = OTHER) -> MergeResult:
        privacy = Privacy(RecordConfig(granularity=self.granularity))
        world = Context(self.index, claude_homes(self.config), privacy, now=lambda: NOW)
        return merges.merge_sessions(world, self.target(ours), self.target(theirs), MergeRequest(mode))

    def keys(self, session: str) -> list[str]:
        self.index.sync()
        return [row.prompt for row in self.index.turns(session)]


@contextmanager
def place(*talks: Talk, granularity: Literal["turn", "cell"] = "turn") -> Iterator[Place]:
    with TemporaryDirectory() as folder:
        stores.create_store(Path(folder) / "store")
        store = Store(Path(folder) / "store")
        index = Index(store.path, lambda: store)
        found = Place(store, index, Path(folder) / "claude", granularity)
        for talk in talks:
            found.record(talk.save(found.folder))
        yield found
        index.close()


@st.composite
def diverged(draw: st.DrawFn, *, broken: bool = False) -> tuple[Talk, Talk]:
    """Two conversations that have a beginning in common, often a whole one."""
    ours = Talk(style=draw(st.sampled_from(["2.1", "2.0"])))
    moves = [*HELD, *BROKEN] if broken else HELD

    def held(talk: Talk, most: int) -> Talk:
        stage = Stage(draw, talk, [talk])
        for _ in range(draw(st.integers(0, most))):
            draw(st.sampled_from(moves))(stage)
        return talk

    held(ours.turns("begin"), 4)
    theirs = held(ours.fork_session(), 4).turns("theirs")
    return held(ours, 4), theirs


def parsed(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def try_merge(found: Place, mode: Any) -> MergeResult | None:
    """The merge, or None where it is refused, which changes nothing."""
    before = found.ours.read_bytes() if found.ours.exists() else b""
    try:
        return found.merge(mode)
    except (ConflictError, UsageError, SessgitError):
        assert not found.ours.exists() or found.ours.read_bytes() == before
        return None


def check_appended(before: bytes, appended: bytes) -> None:
    """One chain of lines, none with a uuid that is there, all later than what is there, calls with their results."""
    old = [line for raw in before.split(b"\n") if isinstance(line := _object(raw), dict)]
    uuids = {line.get("uuid") for line in old}
    latest = max((str(line["timestamp"]) for line in old if line.get("timestamp")), default="")
    leaf, calls, results = "", set[str](), set[str]()
    for number, line in enumerate(parsed(appended)):
        assert line["uuid"] not in uuids
        assert line["timestamp"] > latest
        assert line["parentUuid"] in uuids
        assert not number or line["parentUuid"] == leaf
        uuids.add(line["uuid"])
        leaf, latest = line["uuid"], line["timestamp"]
        content = line.get("message", {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                assert block["id"] not in calls
                calls.add(block["id"])
            elif block.get("type") == "tool_result":
                assert block["tool_use_id"] in calls - results
                results.add(block["tool_use_id"])
    assert calls == results


def _object(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except ValueError:
        return None


@pytest.mark.parametrize("broken", [False, True])
@FEWER
@given(st.data())
def test_a_merge(broken: bool, data: st.DataObject) -> None:
    ours, theirs = data.draw(diverged(broken=broken))
    mode = data.draw(MODES)
    with place(ours, theirs, granularity=data.draw(st.sampled_from(["turn", "turn", "cell"]))) as found:
        before, keys = ours.data, found.keys(SESSION)
        theirs_tip = found.target(OTHER).branch.tip
        done = try_merge(found, mode)
        if done is None or not done.commit:
            assert found.ours.read_bytes() == before
            assert broken or done is not None
            return
        after = found.ours.read_bytes()
        assert after.startswith(before)
        check_appended(before, after[len(before) :])
        assert found.store.commit(done.commit).parents[1] == theirs_tip
        now = found.keys(SESSION)
        assert now[: len(keys)] == keys
        assert len(now) == len(keys) + len(done.turns)
        assert patched(keys, diff.diff(keys, now, str, eq)) == now
        assert restore.rebuild_file(found.store, SESSION).data == after
        # The recorder finds nothing that is not recorded, with its cursor or without.
        assert found.record(found.ours) == ()
        (found.store.paths.cursor(SESSION)).unlink()
        assert found.record(found.ours) == ()
        assert found.target(SESSION).branch.tip == done.commit
        # Once more changes nothing.
        again = found.merge(mode)
        assert (again.commit, found.ours.read_bytes()) == ("", after)
        # Read in another store, it is the same turns.
        with place() as other:
            other.record(_copied(found.ours, other.folder))
            trees = [
                one.store.repo.entry(one.store.tree(one.target(SESSION).branch.tip), "turns") for one in (found, other)
            ]
            assert other.keys(SESSION) == now
            if not broken:
                assert trees[0] == trees[1]


@FEWER
@given(diverged(), MODES)
def test_what_goes_on_is_recorded_behind_it(sides: tuple[Talk, Talk], mode: Any) -> None:
    ours, theirs = sides
    with place(ours, theirs) as found:
        done = try_merge(found, mode)
        assume(done is not None and done.commit)
        ours.file.lines = found.ours.read_bytes().split(b"\n")[:-1]
        ours.file.seconds += 100_000
        ours.leaf = json.loads(ours.lines[-1])["uuid"]
        ours.prompt("and on").answer("Yes.").save(found.folder)
        count = len(found.keys(SESSION))
        assert found.record(found.ours) == (count + 1,)
        assert restore.rebuild_file(found.store, SESSION).data == ours.data
        assert done is not None
        assert any(
            commit.id == done.commit for commit in found.store.repo.first_parents(found.target(SESSION).branch.tip)
        )


@FEWER
@given(diverged(), MODES)
def test_a_file_that_is_gone_gets_the_same_lines(sides: tuple[Talk, Talk], mode: Any) -> None:
    ours, theirs = sides
    with place(ours, theirs) as there:
        # The agent has let go of it: a file that goes before that takes its last lines along.
        record(Context(there.index), TranscriptSource(there.ours, SESSION, there.config, final=True))
        copy = shutil.copytree(there.store.path, there.store.path.with_name("copy"))
        done = try_merge(there, mode)
        assume(done is not None and done.commit)
        assert done is not None
        after = there.ours.read_bytes()
        there.ours.unlink()
        store = Store(copy)
        gone = Place(store, Index(copy, lambda: store), there.config)
        same = try_merge(gone, mode)
        assert same is not None
        assert same.commit == done.commit
        assert restore.rebuild_file(gone.store, SESSION).data == after
        gone.ours.write_bytes(after)
        assert gone.record(gone.ours) == ()
        assert gone.target(SESSION).branch.tip == same.commit
        gone.index.close()


@FEWER
@given(diverged(), MODES)
def test_undone_it_is_as_before_and_done_again_the_same(sides: tuple[Talk, Talk], mode: Any) -> None:
    ours, theirs = sides
    with place(ours, theirs) as found:
        before = found.ours.read_bytes(), found.target(SESSION).branch.tip, found.keys(SESSION)
        done = try_merge(found, mode)
        assume(done is not None and done.commit)
        after = found.ours.read_bytes(), found.target(SESSION).branch.tip, found.keys(SESSION)
        for _ in range(2):
            undo = undoing.undo_operation(found.store, "", claude_homes(found.config), NOW).undo
            assert undo is not None
            assert (found.ours.read_bytes(), found.target(SESSION).branch.tip, found.keys(SESSION)) == before
            assert found.record(found.ours) == ()
            assert found.target(SESSION).branch.tip == before[1]
            undoing.undo_operation(found.store, undo.id, claude_homes(found.config), NOW)
            assert (found.ours.read_bytes(), found.target(SESSION).branch.tip, found.keys(SESSION)) == after
            assert found.record(found.ours) == ()
            assert found.target(SESSION).branch.tip == after[1]
            assert restore.rebuild_file(found.store, SESSION).data == after[0]


@FEWER
@given(st.data())
def test_what_a_rewind_left_behind_is_one_side_too(data: st.DataObject) -> None:
    ours = Talk().turns("begin", "left")
    stage = Stage(data.draw, ours, [ours])
    for _ in range(data.draw(st.integers(0, 3))):
        data.draw(st.sampled_from(HELD))(stage)
    ours.rewind(1).turns("instead")
    for _ in range(data.draw(st.integers(0, 3))):
        data.draw(st.sampled_from(HELD))(stage)
    with place(ours) as found:
        before, keys = found.ours.read_bytes(), found.keys(SESSION)
        tips = reassemble.session_branches(found.store, SESSION)
        side = data.draw(st.sampled_from(sorted(set(tips) - {SESSION})))
        theirs = found.keys(side)
        done = found.merge(data.draw(MODES), theirs=side)
        assert done.commit
        after = found.ours.read_bytes()
        check_appended(before, after[len(before) :])
        now = found.keys(SESSION)
        assert now[: len(keys)] == keys
        assert reassemble.session_branches(found.store, SESSION) == {**tips, SESSION: done.commit}
        assert found.keys(side) == theirs
        assert restore.rebuild_file(found.store, SESSION).data == after
        assert found.record(found.ours) == ()
        (found.store.paths.cursor(SESSION)).unlink()
        assert found.record(found.ours) == ()
        assert reassemble.session_branches(found.store, SESSION) == {**tips, SESSION: done.commit}
        assert found.merge(None, theirs=side).commit == ""
        undoing.undo_operation(found.store, "", claude_homes(found.config), NOW)
        assert (found.ours.read_bytes(), found.keys(SESSION)) == (before, keys)
        assert found.record(found.ours) == ()
        assert reassemble.session_branches(found.store, SESSION) == tips


@settings(max_examples=3)
@given(MODES)
def test_a_compaction_of_what_was_left_behind_is_none_of_the_heads(mode: Any) -> None:
    """A second client, which did not see the rewind, ends the file with one: the turns hang on the head."""
    ours = Talk().turns("begin", "left")
    other = ours.writer()
    ours.rewind(1).turns("instead")
    other.answer("One.", "Two.").compact()
    with place(ours) as found:
        keys = found.keys(SESSION)
        side = next(name for name in reassemble.session_branches(found.store, SESSION) if name != SESSION)
        assert found.merge(mode, theirs=side).commit
        assert found.keys(SESSION)[: len(keys)] == keys


@FEWER
@given(diverged())
def test_a_conversation_merged_with_itself_stays(sides: tuple[Talk, Talk]) -> None:
    with place(*sides) as found:
        before = found.target(SESSION).branch.tip
        with pytest.raises(UsageError, match="both addresses name"):
            found.merge(None, SESSION, SESSION)
        assert found.target(SESSION).branch.tip == before
        assert found.ours.read_bytes() == sides[0].data


def _copied(path: Path, folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / path.name).write_bytes(path.read_bytes())
    return folder / path.name


# Decisions, as laws

_SCALARS = st.fixed_dictionaries(
    {
        "description": st.sampled_from(["", "a", "b"]),
        "stage": st.sampled_from(["", "shaping"]),
        "confidence": st.sampled_from([None, 0.5, 1.0]),
        "labels": st.lists(st.sampled_from("xyz"), unique=True).map(lambda found: tuple(sorted(found))),
        "unified": PARTS,
    }
)
_STATES = _SCALARS.map(lambda said: Session("s", "s", **said))


@given(_STATES, _STATES, _STATES)
def test_swapped_sides_swap_conflicts(base: Session, ours: Session, theirs: Session) -> None:
    there = merge_decisions.decide_all(Base(base, base), ours, theirs, Choice())
    back = merge_decisions.decide_all(Base(base, base), theirs, ours, Choice())
    assert [(d.path, d.ours, d.theirs) for d in there if d.conflict] == [
        (d.path, d.theirs, d.ours) for d in back if d.conflict
    ]
    if not any(d.conflict for d in there):
        left, right = merge_decisions.resolve_state(ours, there), merge_decisions.resolve_state(theirs, back)
        assert (left.description, left.stage, left.confidence, left.labels) == (
            right.description, right.stage, right.confidence, right.labels,
        )  # fmt: skip
        own = sessions.decided_state(right.unified, left.unified)
        assert sessions.is_same_json(sessions.state_document(own), sessions.state_document(right.unified))


@given(_STATES, _STATES, _STATES)
def test_only_what_both_changed_is_a_conflict(base: Session, ours: Session, theirs: Session) -> None:
    found = {d.path for d in merge_decisions.decide_all(Base(base, base), ours, theirs, Choice()) if d.conflict}
    for path in merge_decisions.SCALARS:
        values = getattr(base, path), getattr(ours, path), getattr(theirs, path)
        assert (path in found) == (len(set(values)) == 3)
    for path in sessions.SCALARS:
        values = tuple(sessions.value_at(one.unified, path) for one in (base, ours, theirs))
        assert (path in found) == (len(set(values)) == 3)
    memories = [one.unified.working_memory for one in (base, ours, theirs)]
    for key in {key for memory in memories for key in memory}:
        said = {canonical.compact(memory[key]) if key in memory else None for memory in memories}
        assert (f"{sessions.MEMORY}.{key}" in found) == (len(said) == 3)


@given(_STATES, _STATES)
def test_a_state_merged_with_itself_or_its_base_stays(base: Session, state: Session) -> None:
    same = {path: sessions.value_at(state.unified, path) for path in sessions.COUNTERS}
    counted = replace(base, unified=sessions.with_values(base.unified, same))
    for began, theirs in ((counted, state), (base, base)):
        assert (
            merge_decisions.resolve_state(
                state, merge_decisions.decide_all(Base(began, began), state, theirs, Choice())
            )
            == state
        )


@given(_STATES, _STATES, _STATES, st.sampled_from(["ours", "theirs"]))
def test_a_side_decides_every_conflict(
    base: Session, ours: Session, theirs: Session, side: merge_decisions.Side
) -> None:
    open_ = {d.path for d in merge_decisions.decide_all(Base(base, base), ours, theirs, Choice()) if d.conflict}
    found = merge_decisions.decide_all(Base(base, base), ours, theirs, Choice(side))
    assert not any(d.conflict for d in found)
    assert {d.path for d in found if d.action == side} >= open_
    after, chosen = merge_decisions.resolve_state(ours, found), ours if side == "ours" else theirs
    for path in open_ & set(sessions.SCALARS):
        assert sessions.value_at(after.unified, path) == sessions.value_at(chosen.unified, path)
    memory, wanted = after.unified.working_memory, chosen.unified.working_memory
    for key in (path.removeprefix(f"{sessions.MEMORY}.") for path in open_ if path.startswith(f"{sessions.MEMORY}.")):
        assert (key in memory) == (key in wanted)
        assert key not in memory or sessions.is_same_json(memory[key], wanted[key])


@given(_STATES, _STATES, _STATES)
def test_counters_add_up_what_both_counted(base: Session, ours: Session, theirs: Session) -> None:
    """Where neither side began anew, the result is what was there, and what each added to it."""
    after = merge_decisions.resolve_state(ours, merge_decisions.decide_all(Base(base, base), ours, theirs, Choice()))
    for path in sessions.COUNTERS:
        b, o, t, found = (sessions.value_at(one.unified, path) or 0 for one in (base, ours, theirs, after))
        if o >= b and t >= b:
            assert found == pytest.approx(b + (o - b) + (t - b))
        assert found >= 0


def patched(a: Sequence[str], edits: Sequence[Edit[str]]) -> list[str]:
    """Return the conversation that the edits make of `a`."""
    assert [edit.a for edit in edits if edit.a is not None] == list(a)
    turns = (edit.a if edit.same else edit.b for edit in edits)
    return [turn for turn in turns if turn is not None]
