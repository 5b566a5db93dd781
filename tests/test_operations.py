"""`sessgit ops` and `sessgit undo`: what commands did, written down and taken back."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from plain import run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION
from waiting import PATIENCE

from sessgit.errors import ROOM, MovedError, StoreError
from sessgit.store import operations, refs
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move
from sessgit.store.store import Store


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one", "two"))


def last(sessgit: Shell) -> str:
    return str(sessgit.json("ops")["operations"][0]["id"])


def test_what_commands_did(sessgit: Shell) -> None:
    assert sessgit.out("ops") == ""
    sessgit("fork", "5e55", "--at", "1")
    sessgit("rename", SESSION, "parser")
    sessgit("tag", "works", f"{SESSION}@1")
    ids = [one["id"] for one in sessgit.json("ops")["operations"]]
    assert sessgit.out("ops") == (
        f"{ids[0]}  just now  tag   tag works at 5e551011@1\n"
        f"{ids[1]}  just now  edit  5e551011: name “parser”\n"
        f"{ids[2]}  just now  fork  f0000001: fork of 5e551011@1\n"
    )
    assert len(sessgit.out("ops", "-n", "1").splitlines()) == 1


def test_a_fork_is_undone_with_its_transcript_and_done_again(sessgit: Shell) -> None:
    before = refs.read_all(sessgit.store)
    fork = sessgit.json("fork", "5e55", "--at", "1")
    path = Path(fork["transcript"])
    data, tip = path.read_bytes(), refs.read_all(sessgit.store)[f"refs/heads/{fork['id']}"]
    assert sessgit.out("undo", "--dry-run").splitlines()[0] == "Would be undone: f0000001: fork of 5e551011@1"
    assert path.exists()
    done = sessgit.json("undo")
    assert not path.exists()
    assert refs.read_all(sessgit.store) == {**before, f"refs/keep/{done['operation_id']}-1": tip}
    assert [one["standing"] for one in sessgit.json("ops")["operations"]] == ["done", "undone"]
    assert sessgit("undo").err.startswith("Error: there is nothing to undo.")
    # The undo is undone: the branch is back, and restore writes the file.
    again = sessgit.out("undo", done["operation_id"]).splitlines()
    assert again[0] == "Redone: f0000001: fork of 5e551011@1"
    assert refs.read_all(sessgit.store)[f"refs/heads/{fork['id']}"] == tip
    assert [one["standing"] for one in sessgit.json("ops")["operations"]] == ["done", "undone", "done"]
    assert sessgit("restore", fork["id"]).code == 0
    assert path.read_bytes() == data
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_an_undo_that_fails_says_what_it_did(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(sessgit.json("fork", "5e55", "--at", "1")["transcript"])
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(path.parent))
        assert sessgit("undo").err == "Error: git is missing.\nHint: Install git 2.30 or later.\n"
        assert path.exists()
    with monkeypatch.context() as patch:
        patch.setattr(operations, "append", lambda *_: (_ for _ in ()).throw(StoreError("the disk is full")))
        failed = sessgit("undo")
        told = f"Only files were changed. To finish: `sessgit undo {last(sessgit)}`"
        assert (failed.code, failed.err) == (7, f"Error: the disk is full.\nHint: {told}\n")
    assert not path.exists()
    assert sessgit.out("undo").startswith("Undone: f0000001: fork of 5e551011@1\n")


def test_a_transcript_that_has_gone_on_stays_and_so_does_the_fork(sessgit: Shell) -> None:
    fork = sessgit.json("fork", "5e55", "--at", "1")
    path = Path(fork["transcript"])
    talk = sessgit.talk(fork["id"]).turns("mine")
    with path.open("ab") as file:
        file.write(talk.data)
    done = sessgit("undo")
    assert done.out.splitlines()[1] == f"Kept, because it was changed since: ~/{path.relative_to(sessgit.home)}"
    assert path.exists()
    sessgit("undo", last(sessgit))
    assert sessgit("log", fork["id"]).code == 0  # records what was said in the fork
    refused = sessgit("undo")
    assert (refused.code, refused.err.splitlines()[0]) == (
        3,
        "Error: cannot undo “f0000001: fork of 5e551011@1”: f0000001 has changed since then.",
    )


def test_that_the_agent_has_let_go_is_no_change(sessgit: Shell) -> None:
    fork = sessgit.json("fork", "5e55", "--at", "1")
    path = Path(fork["transcript"])
    os.utime(path, (NOW - 3600,) * 2)
    assert sessgit("import").code == 0
    assert run_git(sessgit.store, "log", "-1", "--format=%s", fork["id"]) == "end: 1 turn\n"
    assert sessgit("undo").code == 0
    assert f"refs/heads/{fork['id']}" not in refs.read_all(sessgit.store)


def test_edits_and_tags_are_taken_back_one_after_the_other(sessgit: Shell) -> None:
    before = refs.read_all(sessgit.store)
    sessgit("rename", SESSION, "parser")
    sessgit("edit", SESSION, "--label", "x")
    sessgit("tag", "works", f"{SESSION}@1")
    sessgit("tag", "works", f"{SESSION}@2", "--force")
    sessgit("tag", "-d", "works")
    for _ in range(5):
        assert sessgit("undo").code == 0
    kept = {ref: tip for ref, tip in refs.read_all(sessgit.store).items() if not ref.startswith("refs/keep/")}
    assert kept == before
    assert sessgit("undo").code == 4


def test_what_is_no_operation(sessgit: Shell) -> None:
    sessgit("rename", SESSION, "parser")
    sessgit("undo")
    (undo, edit) = sessgit.json("ops")["operations"]
    assert sessgit("undo", edit["id"]).err == (
        "Error: “5e551011: name “parser”” was already undone.\nHint: `sessgit ops` lists all operations.\n"
    )
    assert sessgit("undo", "zzzz").code == 4
    assert undo["undoes"] == edit["id"]


def test_a_command_that_was_killed_before_the_ref_moved(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(sessgit.store)
    tip = store.repo.ref(f"refs/heads/{SESSION}")
    parent = store.commit(str(tip)).parents[0]
    with monkeypatch.context() as patch:
        patch.setattr(type(store.repo), "move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            operations.perform_operation(store, "edit", "x", [Move(f"refs/heads/{SESSION}", tip, tip)], NOW)
    operations.perform_operation(store, "edit", "y", [Move("refs/tags/y", None, parent)], NOW)
    with pytest.raises(MovedError):
        operations.perform_operation(store, "edit", "z", [Move("refs/tags/z", parent, tip)], NOW)
    assert [(one.operation.summary, one.standing) for one in operations.list_operations(store)] == [
        ("z", "not done"),
        ("y", "done"),
        ("x", "done"),
    ]


def test_a_file_elsewhere_is_never_deleted(sessgit: Shell, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    store = Store(sessgit.store)
    tip = str(store.repo.ref(f"refs/heads/{SESSION}"))
    operations.perform_operation(store, "tag", "x", [Move("refs/tags/x", None, tip)], NOW, {str(mine): b"mine"})
    assert sessgit("undo").code == 0
    assert mine.exists()


def test_all_refs_or_none(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    tip = str(store.repo.ref(f"refs/heads/{SESSION}"))
    before = refs.read_all(sessgit.store)
    with pytest.raises(MovedError, match="refs/tags/b"):
        operations.move_refs(sessgit.store, [Move("refs/tags/a", None, tip), Move("refs/tags/b", tip, None)])
    assert refs.read_all(sessgit.store) == before
    (sessgit.store / "refs" / "tags" / "a.lock").touch()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoreError, match="refs"):
        patch.setattr(operations, "_MOVE_TRIES", 2)
        patch.setattr(refs, "_STALE_SECONDS_ALONE", 3600.0)  # a busy machine can take longer than two seconds
        operations.move_refs(sessgit.store, [Move("refs/tags/a", None, tip), Move("refs/tags/b", None, tip)])
    assert refs.read_all(sessgit.store) == before
    (sessgit.store / "refs" / "tags" / "a.lock").unlink()
    operations.move_refs(sessgit.store, [Move("refs/tags/a", None, tip), Move(f"refs/heads/{SESSION}", tip, None)])
    assert refs.read_all(sessgit.store) == {"refs/tags/a": tip}


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"{}", b'{"refs":{}}', b"[]", b"\n", b"null"]), max_size=5))
def test_a_journal_of_anything_is_read(tmp_path_factory: pytest.TempPathFactory, garbage: list[bytes]) -> None:
    paths = StorePaths(tmp_path_factory.mktemp("store"))
    one = operations.Operation("2026-03-01T00:00:00.000Z", "tag", "x", {"refs/tags/x": (None, "0" * 40)})
    paths.journal.write_bytes(b"\n".join(garbage))
    written = operations.append(paths, one)
    assert [found for found in operations.read(paths) if found.id == written.id] == [written]
    assert json.loads(paths.journal.read_bytes().splitlines()[-1])["id"] == written.id


def test_two_conversations_and_their_operations(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(OTHER).turns("else"))
    sessgit("rename", SESSION, "a")
    sessgit("rename", OTHER, "b")
    first = sessgit.json("ops")["operations"][1]["id"]
    assert sessgit("undo", first).code == 0
    assert [session["name"] for session in sessgit.json("ls")["sessions"]] == ["", "b"]


def test_a_fork_that_is_back_says_how_its_file_comes(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("fork", "5e55", "--at", "1")
    taken = sessgit.out("undo").splitlines()[-1].removeprefix("Redo: sessgit ")
    said = sessgit.out(*taken.split()).splitlines()
    assert said[1] == "Restore its file: sessgit restore f0000001"
    assert sessgit("restore", "f0000001").code == 0


def test_the_same_at_one_moment_has_ids_of_its_own(store: Store) -> None:
    one, begun = operations.Operation("2026-03-01T10:00:00Z", "tag", "tag one", {}), threading.Barrier(8)

    def append() -> list[str]:
        begun.wait(PATIENCE)
        return [operations.append(store.paths, one).id for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        ids = [name for done in [pool.submit(append) for _ in range(8)] for name in done.result()]
    assert len(set(ids)) == 160
    assert sorted(found.id for found in operations.read(store.paths)) == sorted(ids)


def test_a_disk_that_becomes_full_while_an_operation_is_written_down(store: Store) -> None:
    """What has room in part is no operation, and the next one stands on a line of its own."""
    first = operations.append(store.paths, operations.Operation("2026-03-01T10:00:00Z", "tag", "tag one", {}))
    size = store.paths.journal.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(StoreError) as refused:
            operations.append(store.paths, operations.Operation("2026-03-01T10:00:01Z", "tag", "tag two", {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert str(refused.value) == "cannot write the journal: File too large"
    assert refused.value.hint == f"Nothing was changed. {ROOM}"
    third = operations.append(store.paths, operations.Operation("2026-03-01T10:00:02Z", "tag", "tag three", {}))
    assert operations.read(store.paths) == [first, third]
