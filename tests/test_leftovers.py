"""What a kill leaves in the middle of something: the next one finishes it, or clears it away."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import conversation
from plain import Git, Keep, run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents import agent_files
from sessgit.errors import StoreError
from sessgit.store import layout, locks, maintenance, operations, refs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move
from sessgit.store.store import Store

HEAD = layout.head_ref(SESSION)


def aged(path: Path, seconds: float) -> Path:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))
    return path


# Recording


class _KilledError(Exception):
    pass


def killed_at(store: Store, moves: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """Lets the store be killed before one of its moves of refs; what is returned lets it live again."""
    real, count = store.repo.move, iter(range(99))

    def move(name: str, old: str | None, new: str | None) -> None:
        if next(count) == moves:
            raise _KilledError
        real(name, old, new)

    monkeypatch.setattr(store.repo, "move", move)
    return lambda: monkeypatch.setattr(store.repo, "move", real)


@pytest.mark.parametrize("moves", range(5))
def test_killed_between_the_branches_of_several_rewinds(
    keep: Keep, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """The cursor still fits the head, and a branch holds turns from behind it already."""
    talk = Talk().turns("one", "two").rewind(1).turns("other")
    keep(talk)
    talk.rewind(2).turns("three").rewind(1).turns("again").rewind(4).turns("four")
    live = killed_at(store, moves, monkeypatch)
    try:
        keep(talk)
    except _KilledError:
        live()
        keep(talk)
    assert conversation(store) == recorded_at_once(tmp_path, talk)


@pytest.mark.parametrize("moves", range(3))
def test_killed_between_the_branches_of_a_fork(
    keep: Keep, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    """The rewound branch of a copy is there without its head: what the copy shares is looked for all the same."""
    talk = Talk().turns("one", "two").rewind(1).turns("other")
    keep(talk)
    copy = talk.branch(OTHER).turns("in the copy")
    live = killed_at(store, moves, monkeypatch)
    try:
        keep(copy)
    except _KilledError:
        live()
        keep(copy)
    assert conversation(store) == recorded_at_once(tmp_path, talk, copy)


def recorded_at_once(tmp_path: Path, *talks: Talk) -> object:
    from sessgit.record.recording import record
    from sessgit.record.source import TranscriptSource

    stores.create_store(tmp_path / "alone")
    alone = Store(tmp_path / "alone")
    index = Index(alone.path, lambda: alone)
    for talk in talks:
        record(Context(index), TranscriptSource(talk.save(tmp_path / "files"), talk.session, tmp_path))
    index.close()
    return conversation(alone)


# Locks of refs


@pytest.mark.parametrize(
    ("age", "moving", "goes"),
    [(1, False, False), (5, False, True), (5, True, False), (90, True, True), (-90, True, True)],
)
def test_how_long_the_lock_of_a_ref_stays(
    keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch, age: float, moving: bool, goes: bool
) -> None:
    """A lock with a time in the future was left before the clock was set back. A second of the ages and of the limits
    counts as a minute, so that a busy machine has time for the test."""
    assert (refs._STALE_SECONDS_ALONE, refs._STALE_SECONDS) == (2.0, 60.0)
    monkeypatch.setattr(refs, "_STALE_SECONDS_ALONE", 2.0 * 60)
    monkeypatch.setattr(refs, "_STALE_SECONDS", 60.0 * 60)
    age *= 60
    keep(Talk().turns("one"))
    left = [store.path / f"{HEAD}.lock", store.path / "packed-refs.lock", store.path / "packed-refs.new"]
    for path in left:
        path.write_bytes(b"")
        aged(path, age)
    if moving:
        with locks.ref_move_lock(store.paths):
            refs.delete_stale_locks(store.path, [HEAD])
    else:
        refs.delete_stale_locks(store.path, [HEAD])
    assert [path.exists() for path in left] == [not goes] * 3
    for path in left:
        path.unlink(missing_ok=True)


def test_a_new_lock_in_the_place_of_a_stale_one_is_put_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process deleted the stale one meanwhile, and a third one holds the ref now."""
    lock = store.path / f"{HEAD}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"new")
    ages = iter([3600.0])
    monkeypatch.setattr(refs, "_file_age", lambda path: next(ages, 0.0))
    refs.delete_stale_locks(store.path, [HEAD])
    assert lock.read_bytes() == b"new"
    assert list(store.path.glob("stale.*")) == []


@pytest.mark.parametrize("how", ["one", "all"])
def test_whoever_comes_next_waits_no_minute(keep: Keep, store: Store, how: str) -> None:
    keep(Talk().turns("one"))
    tip = store.repo.ref(HEAD)
    begun = time.monotonic()
    (store.path / f"{HEAD}.lock").write_bytes(b"")
    if how == "one":
        store.repo.move(HEAD, tip, None)
    else:
        operations.move_refs(store.path, [Move(HEAD, tip, None)])
    assert 1 < time.monotonic() - begun < 10
    assert store.repo.ref(HEAD) is None


def test_packed_refs_that_were_being_written(keep: Keep, store: Store) -> None:
    """git goes no further where its file already exists, whoever left it."""
    keep(Talk().turns("one"))
    run_git(store.path, "pack-refs", "--all")
    tip = store.repo.ref(HEAD)
    aged(store.path / "packed-refs", 0)
    for name in ("packed-refs.lock", "packed-refs.new"):
        (store.path / name).write_bytes(b"")
        aged(store.path / name, 5)
    operations.move_refs(store.path, [Move(HEAD, tip, None)])
    assert store.repo.ref(HEAD) is None
    operations.pack_refs(store.path)


def test_packed_refs_that_are_cut_are_named(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one"))
    tip = store.repo.ref(HEAD)
    packed = store.path / "packed-refs"
    packed.write_text(f"{tip} refs/hea")
    for move in (
        lambda: store.repo.move(HEAD, tip, None),
        lambda: operations.move_refs(store.path, [Move(HEAD, tip, None)]),
        lambda: operations.pack_refs(store.path),
    ):
        with pytest.raises(StoreError) as error:
            move()
        assert error.value.hint.startswith("packed-refs in the store is damaged")
    packed.unlink()


@pytest.mark.parametrize("folder", ["/home/ada", "/home/ada/my stories", "/home/åda"])
def test_they_are_named_wherever_the_store_is(folder: str) -> None:
    said = f"unterminated line in {folder}/store/packed-refs: 1f0c refs/hea"
    assert refs.move_error_hint(said, "else").startswith("packed-refs in the store is damaged")


# Operations


@pytest.mark.parametrize("next_one", ["gc", "tag"])
def test_an_operation_whose_refs_were_moved_in_part(sessgit: Shell, next_one: str) -> None:
    talk = sessgit.talk().turns("one", "two").rewind(1).turns("other")
    sessgit.recorded(talk, sessgit.talk(OTHER).turns("else"))
    before = refs.read_all(sessgit.store)
    sessgit.out("archive", SESSION)
    after = refs.read_all(sessgit.store)
    gone = next(name for name in before if name.startswith(HEAD) and name not in after)
    run_git(sessgit.store, "update-ref", gone, before[gone])
    words = ("gc",) if next_one == "gc" else ("tag", "here", OTHER)
    assert sessgit(*words).code == 0
    left = refs.read_all(sessgit.store)
    assert {name: oid for name, oid in left.items() if not name.startswith(layout.TAGS)} == after


def test_who_moves_a_ref_of_an_operation_that_was_done_in_part_goes_by_what_it_holds(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two").rewind(1).turns("other")
    sessgit.recorded(talk)
    tip, store = refs.read(sessgit.store, HEAD), Store(sessgit.store)
    assert tip is not None
    sessgit.out("archive", SESSION)
    run_git(sessgit.store, "update-ref", HEAD, tip)
    before = store.commit(tip).parents[0]
    operations.perform_operation(store, "edit", "back", [Move(HEAD, tip, before)], NOW)
    assert refs.read(sessgit.store, HEAD) == before


def test_an_operation_that_others_went_on_from_is_left(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two").rewind(1).turns("other"), sessgit.talk(OTHER).turns("else"))
    sessgit.out("archive", SESSION)
    archived, other = layout.archive_ref(SESSION), refs.read(sessgit.store, layout.head_ref(OTHER))
    run_git(sessgit.store, "update-ref", layout.head_ref(SESSION), str(refs.read(sessgit.store, archived)))
    run_git(sessgit.store, "update-ref", archived, str(other))
    assert not operations.finish_interrupted(Store(sessgit.store))
    assert refs.read(sessgit.store, layout.head_ref(SESSION)) is not None


@pytest.mark.parametrize("size", [10, 3 << 20])
def test_the_last_operation_is_found_at_the_end(sessgit: Shell, size: int) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    paths = StorePaths(sessgit.store)
    assert operations.last_operation(paths) is None
    paths.journal.write_bytes(b"x" * size + b"\n")
    sessgit.out("rename", SESSION, "a name")
    found = operations.last_operation(paths)
    assert found is not None and found == operations.read(paths)[-1]
    with paths.journal.open("ab") as file:
        file.write(b"torn")
    assert operations.last_operation(paths) is None


# Files that never took their places


def test_what_was_being_written_beside_the_repository(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    names = (
        f"state/.{SESSION}.json.4711.tmp", ".latest.json.4711.tmp", ".hook.abcdefgh", "stale.4711.lock", "config.lock",
        "HEAD.lock", "_git2_0123456789abcdef", "spool/4711-0.tmp", "objects/tmp_object_git2_1",
    )  # fmt: skip
    for name in names:
        (sessgit.store / name).write_bytes(b"half")
    now = time.time()
    assert maintenance.delete_leftovers(sessgit.store, now) == 0
    for name in names[:5]:
        aged(sessgit.store / name, 700)
    for name in names[5:]:
        aged(sessgit.store / name, -700)
    assert maintenance.delete_leftovers(sessgit.store, now) == len(names)
    assert not any((sessgit.store / name).exists() for name in names)


def test_a_note_of_what_was_appended_and_written_down(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = sessgit.talk().turns("one", "two")
    theirs = ours.branch(OTHER).turns("theirs")
    sessgit.recorded(ours.turns("ours"), theirs)
    note = StorePaths(sessgit.store).append_intent(SESSION)
    with monkeypatch.context() as patch:
        patch.setattr("sessgit.store.recorder_state.delete_intent", lambda *_: None)
        sessgit.out("merge", OTHER, "--into", SESSION)
    assert note.exists()
    sessgit.now = time.time()
    sessgit.out("gc")
    assert note.exists()  # somebody may be about to append the same once more
    aged(note, 700)
    sessgit.out("gc")
    assert not note.exists()


def test_what_was_being_written_where_the_client_looks(tmp_path: Path) -> None:
    left = tmp_path / f".{SESSION}.jsonl.01234567.tmp"
    young, other = tmp_path / f".{OTHER}.jsonl.01234567.tmp", tmp_path / ".somebody-else.0123456x.tmp"
    for path in (left, young, other):
        path.write_bytes(b"half")
    aged(left, 700)
    aged(other, 700)
    agent_files.write(tmp_path / "new.jsonl", b"{}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([young.name, other.name, "new.jsonl"])


def test_what_was_being_written_of_the_clients_settings(sessgit: Shell) -> None:
    sessgit.config.mkdir(exist_ok=True)
    (sessgit.config / "settings.json").write_text("{}\n")
    left = sessgit.config / ".settings.json.abcdefgh"
    left.write_bytes(b"half")
    aged(left, 700)
    sessgit.out("install")
    assert not left.exists()


# Damage


def test_an_import_goes_on_after_a_session_that_cannot_be_read(sessgit: Shell, git: Git) -> None:
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("else"))
    tip = str(refs.read(sessgit.store, HEAD))
    for pack in (sessgit.store / "objects" / "pack").glob("pack-*"):
        pack.unlink()
    (sessgit.store / "objects" / tip[:2] / tip[2:]).unlink(missing_ok=True)
    third = "5e551011-0000-4000-8000-000000000003"
    sessgit.keep(sessgit.talk().turns("one", "more"))
    sessgit.keep(sessgit.talk(third).turns("third"))
    done = sessgit("import")
    assert done.code == 1 and f"the store lacks the object {tip}" in done.err + done.out
    assert refs.read(sessgit.store, layout.head_ref(third)) is not None
