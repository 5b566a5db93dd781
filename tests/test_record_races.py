"""What others do to the store while a session is recorded, and what a crash leaves behind."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from pictures import branches, conversation, log, prompts, text
from plain import Keep, Rivalled
from transcripts import SESSION, Talk
from waiting import PATIENCE

from sessgit.branch import restore
from sessgit.errors import StoreError
from sessgit.model.conversation.message import Message
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, recorder_state
from sessgit.store import store as stores
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store


def head_prompts(store: Store) -> list[str]:
    return prompts(store, branches(store)[SESSION])


def edit(store: Store, note: str) -> str:
    """Someone else's commit on the head."""
    tip = branches(store)[SESSION]
    message = Message(f"edit: {note}", (("Session", SESSION), ("Event", "edit")))
    commit = store.write_commit(tip, {"pad/note.md": (store.repo.write_blob(note.encode()), False)}, store.state(tip),
                                message, [tip], 1772359300)  # fmt: skip
    Repository(store.path).move(layout.head_ref(SESSION), tip, commit)
    return commit


def test_a_head_that_someone_moved_meanwhile(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    keep(talk)
    store.repo = Rivalled(store.path, lambda: edit(store, "mine"))
    keep(talk.turns("two"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "edit: mine", "turn 2: two"]


def test_a_branch_that_someone_made_meanwhile(keep: Keep, store: Store, tmp_path: Path) -> None:
    """Another recorder was faster by just that much: what it wrote stays, and nothing is written twice."""
    talk = Talk().turns("one", "two")
    path = talk.save(tmp_path / "claude" / "projects" / "-home-ada-shop")

    def rival() -> None:
        theirs = Store(store.path)
        index = Index(store.path, lambda: theirs)
        record(Context(index), TranscriptSource(path, SESSION, tmp_path))
        index.close()

    store.repo = Rivalled(store.path, rival)
    keep(talk)
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two"]


def test_a_head_that_keeps_moving(keep: Keep, store: Store) -> None:
    talk = Talk().turns("one")
    keep(talk)
    store.repo = Rivalled(store.path, lambda: edit(store, "again"), times=99)
    with pytest.raises(StoreError, match="kept changing") as error:
        keep(talk.turns("two"))
    assert error.value.hint == "Try again."
    store.repo = Repository(store.path)
    keep(talk)
    assert head_prompts(store) == talk.prompts


class _CrashError(Exception):
    pass


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_crash_between_two_refs(keep: Keep, store: Store, moves: int) -> None:
    """Names are exchanged in three moves; whatever was done of them, the next recording ends the same."""
    talk = Talk().turns("one", "two", "three").rewind(1).turns("two again")
    keep(talk)
    done = 0

    def crash() -> None:
        nonlocal done
        if done == moves:
            raise _CrashError
        done += 1

    store.repo = Rivalled(store.path, crash, times=99)
    with pytest.raises(_CrashError):
        keep(talk.rewind(3).turns("four"))
    store.repo = Repository(store.path)
    keep(talk)
    assert {name: prompts(store, tip) for name, tip in branches(store).items()} == {
        SESSION: [talk.prompts[n] for n in (0, 1, 2, 4)],
        f"{SESSION}.r-a0000004": [talk.prompts[n] for n in (0, 3)],
    }


def test_a_crash_after_what_a_rewind_left_has_grown(keep: Keep, store: Store) -> None:
    """The cursor is older than the branch then: whoever went on from it would record the same lines twice."""
    left = Talk().turns("base")
    right = left.writer()
    left.prompt("l1")
    right.prompt("r1")
    keep(left)
    left.answer("L.")
    right.answer("R.")
    moved = list[str]()

    def crash() -> None:
        if moved:
            raise _CrashError
        moved.append("one")

    store.repo = Rivalled(store.path, crash, times=99)
    with pytest.raises(_CrashError):
        keep(left)
    store.repo = Repository(store.path)
    keep(left)
    bodies = {name: text(store, tip, "turns/0000/000002/transcript.jsonl") for name, tip in branches(store).items()}
    assert {name: (body.count('"L."'), body.count('"R."')) for name, body in bodies.items()} == {
        SESSION: (0, 1),
        f"{SESSION}.r-a0000002": (1, 0),
    }


@pytest.mark.parametrize("keep_cursor", [True, False])
def test_what_another_machine_wrote_stays(keep: Keep, store: Store, keep_cursor: bool) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    theirs = f"{SESSION}.m-laptop"
    store.repo.move(layout.head_ref(theirs), None, branches(store)[SESSION])
    if not keep_cursor:
        recorder_state.delete_cursor(store.paths, SESSION)
    keep(talk.rewind(1).turns("two again"))
    assert log(store, theirs)[1:] == ["turn 1: one", "turn 2: two"]
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two again"]


def test_a_branch_of_a_session_whose_id_begins_the_same(keep: Keep, store: Store, claude: Path) -> None:
    keep(Talk("abcd").turns("one"))
    keep(Talk("abcd-2").turns("one", "two").rewind(1).turns("three"))
    keep(Talk("abcd").turns("one", "two"))
    assert sorted(branches(store)) == ["abcd", "abcd-2", "abcd-2.r-a0000002"]


def _record_growing(store_path: Path, path: Path, barrier: object) -> None:
    store = Store(store_path)
    index = Index(store_path, lambda: store)
    for _ in range(12):
        barrier.wait(PATIENCE)  # type: ignore[attr-defined]
        record(Context(index), TranscriptSource(path, SESSION, path.parent))
        barrier.wait(PATIENCE)  # type: ignore[attr-defined]
    index.close()


def test_two_processes_at_once(tmp_path: Path) -> None:
    """No lock is held: what keeps the store right is that a ref moves only from where it was read."""
    talk = Talk().turns("one", "two").rewind(1)
    for number in range(4):
        talk.turns(f"three {number}").rewind(1 + number % 2).turns(f"four {number}")
    ends = [round(len(talk.lines) * n / 12) for n in range(1, 13)]
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"")
    stores.create_store(tmp_path / "store")
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(3)
    workers = [spawn.Process(target=_record_growing, args=(tmp_path / "store", path, barrier)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for end in ends:
        with path.open("ab") as file:
            file.write(talk.data[file.tell() : len(b"\n".join(talk.lines[:end])) + 1])
        barrier.wait(PATIENCE)
        barrier.wait(PATIENCE)
    for worker in workers:
        worker.join(PATIENCE)
    assert [worker.exitcode for worker in workers] == [0, 0]

    store = Store(tmp_path / "store")
    alone = tmp_path / "alone"
    stores.create_store(alone)
    other = Store(alone)
    for each in (store, other):
        index = Index(each.path, lambda each=each: each)  # type: ignore[misc]
        record(Context(index), TranscriptSource(path, SESSION, tmp_path, final=True))
        index.close()
    assert conversation(store) == conversation(other)
    assert restore.rebuild_file(store, SESSION).data == talk.data
