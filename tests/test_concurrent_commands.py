"""Two commands at once: what the first one has looked at is no more so when it acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clones import Clone, bare
from homes import claude_homes
from plain import run_git
from purging import VALUE, holders, purged_beside
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import archive, delete
from sessgit.branch import fork as forks
from sessgit.branch import merge as merges
from sessgit.branch.merge_plan import MergeRequest
from sessgit.errors import ConflictError, NotFoundError
from sessgit.history.resolve import ForkPoint
from sessgit.store import layout, maintenance, recorder_state, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.recorder_state import AppendIntent
from sessgit.store.store import Store

FORK = "5e551011-0000-4000-8000-0000000000f0"


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shell = Shell(monkeypatch, capsys)
    shell.recorded(shell.talk().turns("one", "two").rewind(1).turns("three"), shell.talk(OTHER).turns("else"))
    return shell


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    found = Clone(tmp_path / "clone", bare(tmp_path / "remote"))
    yield found
    found.close()


@pytest.mark.parametrize("going", [[SESSION], [OTHER, SESSION]])
def test_a_session_that_somebody_just_deleted_keeps_its_tombstone(sessgit: Shell, going: list[str]) -> None:
    store = Store(sessgit.store)
    index = Index(store.path, lambda: store)
    index.sync()
    doomed = delete.plan_deletion(index, going, claude_homes(sessgit.config))
    sessgit.out("delete", SESSION, "--yes")
    before = refs.read_all(sessgit.store)
    with pytest.raises(NotFoundError) as refused:
        delete.delete_sessions(Context(index, now=lambda: NOW), doomed)
    assert str(refused.value) == f"{SESSION} no longer exists"
    assert refused.value.hint == "Nothing was deleted. `sessgit ls --all` lists all conversations."
    assert refs.read_all(sessgit.store) == before
    assert sessgit.json("verify")["findings"] == []
    sessgit.out("undo")
    assert {name for name in refs.read_all(sessgit.store) if name.startswith("refs/deleted/")} == set()


def _purged(clone: Clone, meanwhile: Callable[[Store, Index], object]) -> None:
    purged_beside(clone, meanwhile)
    run_git(clone.store.path, "fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("packed", [False, True])
def test_a_fork_that_was_asked_for_during_a_purge_stands_on_nothing_that_went(clone: Clone, packed: bool) -> None:
    """libgit2 goes on to believe in the packs that it has met."""
    refused = list[ConflictError]()
    clone.record(Talk().turns("one", f"see {VALUE}"))
    if packed:
        maintenance.pack_store(clone.store.path, full=True)
    tip = clone.tip(SESSION)

    def fork(store: Store, _: Index) -> None:
        head = store.state(tip)
        with pytest.raises(ConflictError) as error:
            forks.fork_session(store, head, ForkPoint(SESSION, 2, tip), forks.ForkPlan(FORK, "", clone.now(), None))
        refused.append(error.value)

    _purged(clone, fork)
    assert [(str(e), e.hint) for e in refused] == [("the data was just purged or pruned", "Try again.")]
    assert refs.read(clone.store.path, layout.head_ref(FORK)) is None


@pytest.mark.parametrize("picking", [False, True])
def test_a_merge_that_was_asked_for_during_a_purge_says_why_it_cannot_be(clone: Clone, picking: bool) -> None:
    talk = Talk().turns("one", f"see {VALUE}")
    theirs = talk.branch(OTHER).turns("theirs")
    clone.record(talk.turns("ours"))
    clone.record(theirs)
    sides, refused = (clone.target(SESSION), clone.target(OTHER, 3)), list[ConflictError]()

    def merge(store: Store, index: Index) -> None:
        world = Context(index, claude_homes(clone.config), now=clone.now)
        with pytest.raises(ConflictError) as error:
            merges.pick_turns(world, sides[0], [sides[1]]) if picking else merges.merge_sessions(
                world, *sides, MergeRequest()
            )
        refused.append(error.value)

    before = next(clone.config.glob(f"projects/*/{SESSION}.jsonl")).read_bytes()
    _purged(clone, merge)
    assert [(str(e), e.hint) for e in refused] == [("the data was just purged or pruned", "Try again.")]
    assert next(clone.config.glob(f"projects/*/{SESSION}.jsonl")).read_bytes() == before


def test_what_comes_out_of_the_archive_waits_for_a_purge(clone: Clone) -> None:
    clone.record(Talk().turns("one", f"see {VALUE}"))
    clone.archive()
    _purged(clone, lambda store, index: archive.unarchive(Context(index, now=clone.now), [SESSION]))
    assert {ref for ref in refs.read_all(clone.store.path) if not ref.startswith(layout.KEEP)} == {
        layout.head_ref(SESSION)
    }
    assert clone.store.repo.read_problem(clone.tip(SESSION)) == ""


def test_what_a_failed_command_began_is_taken_back_by_the_next_one(clone: Clone) -> None:
    clone.record(Talk().turns("one"))
    before, tip = refs.read_all(clone.store.path), clone.tip(SESSION)
    with pytest.raises(ConflictError, match="somebody else"), merges.creation_in_progress(clone.store, FORK):
        plan = forks.ForkPlan(FORK, "", clone.now(), claude_homes(clone.config))
        path = forks.fork_session(clone.store, clone.store.state(tip), ForkPoint(SESSION, 1, tip), plan).transcript
        raise ConflictError("somebody else")
    assert path is not None and path.exists()
    assert merges.unfinished_sessions(clone.store) == [FORK]
    assert merges.delete_unfinished(clone.store, claude_homes(clone.config), clone.now()) == 1
    after = {ref: oid for ref, oid in refs.read_all(clone.store.path).items() if not ref.startswith(layout.KEEP)}
    assert (after, path.exists(), merges.unfinished_sessions(clone.store)) == (before, False, [])


def test_the_note_of_a_merge_whose_session_was_deleted_meanwhile_can_be_got_rid_of(sessgit: Shell) -> None:
    path = next(sessgit.config.glob(f"projects/*/{SESSION}.jsonl"))
    head, end = refs.read_all(sessgit.store)[layout.head_ref(SESSION)], path.stat().st_size
    note = AppendIntent(str(path), end, VALUE.encode(), head, "merge", {}, {})
    recorder_state.save_intent(layout.StorePaths(sessgit.store), SESSION, note)
    sessgit.out("delete", SESSION, "--yes")
    done = sessgit("purge", VALUE, "--yes")
    assert (done.code, done.err) == (
        3,
        "Error: a merge into 5e551011 was interrupted by its deletion, and its lines hold the value.\n"
        "Hint: Nothing was changed. Run `sessgit undo` or `sessgit gc --prune` first.\n",
    )
    assert sessgit("gc", "--prune", "--yes").code == 0
    assert sessgit("purge", VALUE, "--yes").code == 0
    assert holders(sessgit.store, VALUE) == []
