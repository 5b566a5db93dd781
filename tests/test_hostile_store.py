"""A store that came from elsewhere: whatever its commits say, each command ends well and all other sessions stay."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from kept import begins
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home
from sessgit.branch import restore
from sessgit.errors import DamageError
from sessgit.model import canonical
from sessgit.store import layout, operations, project, refs
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.operations import Move
from sessgit.store.store import Store

EVIL = "\x1b[31mred \x9b1m \u202egnp \u2066 \0 half \ud800"
DEEP = "/x" * 3_000
BUG = 70

Changed = Callable[[dict[str, Any]], None]


@begins
def two(shell: Shell) -> None:
    """Two recorded sessions, the first one's transcript deleted by the client."""
    shell.recorded(shell.talk().turns("one", "two"), shell.talk(OTHER).turns("else")).unlink()


def rewritten(store: Path, change: Changed) -> None:
    """Puts a commit on the first session's branch whose state says what `change` makes of it."""
    repo = Store(store).repo
    tip = repo.ref(layout.head_ref(SESSION)) or ""
    tree = repo.commit(tip).tree
    state = json.loads(repo.blob((repo.entry(tree, layout.STATE) or ("", False))[0]))
    change(state)
    new = repo.edit_tree(tree, {layout.STATE: (repo.write_blob(json.dumps(state).encode()), False)})
    repo.move(layout.head_ref(SESSION), tip, repo.write_commit(new, [tip], f"edit: x\n\nSession: {SESSION}\n", 1))


def says(part: str, key: str, value: object) -> Changed:
    def change(state: dict[str, Any]) -> None:
        state[part][key] = value

    return change


_FIELDS = [("metadata", key) for key in ("title", "cwd", "transcript_path", "git_branch", "agent_id", "agent_version")]
_FIELDS += [("authored", key) for key in ("name", "description", "stage")]
_COMMANDS = (
    ("ls", "--all"), ("log", SESSION), ("show", SESSION), ("show", f"{SESSION}@1"), ("search", "one"), ("stats",),
    ("status",), ("export", "markdown", SESSION), ("restore", SESSION, "--verify"), ("resume", "--print", SESSION),
    ("restore", "--all-lost"), ("fork", SESSION, "--at", "1"),
)  # fmt: skip


@pytest.mark.parametrize("value", [EVIL, DEEP], ids=["evil", "deep"])
@pytest.mark.parametrize(("part", "key"), _FIELDS)
def test_a_state_that_says_anything(two: Shell, part: str, key: str, value: object) -> None:
    rewritten(two.store, says(part, key, value))
    for command in _COMMANDS:
        done = two(*command)
        assert done.code not in (BUG, 7), (command, done)
        assert not set("\x1b\x9b\u202e\u2066\0") & set(done.out + done.err), command
    assert OTHER[:8] in two.out("ls", "--all")


@pytest.mark.parametrize("folder", ["a\0b", "half \ud800", "a" * 400])
def test_a_transcript_where_none_can_be(two: Shell, folder: str) -> None:
    path = two.config / "projects" / folder / f"{SESSION}.jsonl"
    rewritten(two.store, says("metadata", "transcript_path", str(path)))
    for command in _COMMANDS:
        assert two(*command).code not in (BUG, 7), command


@pytest.mark.parametrize(
    ("said", "agent_id"),
    [("../../etc/x", "x"), ("/elsewhere/{}.jsonl", SESSION), ("{}.jsonl", "../../x"), ("{}.jsonl", "a/b")],
)
def test_nothing_is_written_outside_of_the_clients_folder(two: Shell, said: str, agent_id: str) -> None:
    def change(state: dict[str, Any]) -> None:
        state["metadata"] |= {"transcript_path": said.format(agent_id), "agent_id": agent_id}

    rewritten(two.store, change)
    before = {path for path in two.home.rglob("*") if two.config not in path.parents}
    for command in _COMMANDS:
        two(*command)
    assert {path for path in two.home.rglob("*") if two.config not in path.parents} == before


def test_an_object_that_is_missing_keeps_no_other_session_from_coming_back(
    keep: Keep, store: Store, claude: Path, git: Git
) -> None:
    for talk in (Talk().turns("one"), Talk(OTHER).turns("else")):
        keep(talk)
        (claude / f"{talk.session}.jsonl").unlink()
    blob = git("rev-parse", f"{SESSION}:turns/0000/000001/transcript.jsonl").strip()
    path = store.path / "objects" / blob[:2] / blob[2:]
    away = path.rename(store.path.parent / "away")
    done = restore.restore_all(store, [SESSION, OTHER], claude_homes(claude.parents[1]), lambda _done, _all: None)
    away.rename(path)
    assert [session for session, _ in done.back] == [OTHER]
    assert [(session, str(error)) for session, error in done.errors] == [
        (SESSION, f"the store lacks the object {blob}")
    ]


@pytest.mark.parametrize("line", [b"\xff", b"{}", b"[]", b"[" * 9_000, b"9" * 5_000, b'{"id":1,"lines":["x"]}'])
def test_cells_that_are_none(keep: Keep, store: Store, index: Index, line: bytes) -> None:
    keep(Talk().turns("one"))
    index.sync()
    tip = index.branch(SESSION).tip  # type: ignore[union-attr]
    cells = {f"{layout.turn_folder(1)}/cells.jsonl": (store.repo.write_blob(line + b"\n"), False)}
    commit = store.repo.write_commit(store.repo.edit_tree(store.tree(tip), cells), [tip], "x", 1)
    with pytest.raises(DamageError, match=r"cells\.jsonl of turn 1 is damaged"):
        store.cells(commit, 1)


def test_a_format_of_thousands_of_digits(keep: Keep, store: Store) -> None:
    keep(Talk().turns("one"))
    tree = store.tree(store.repo.ref(layout.head_ref(SESSION)) or "")
    changed = store.repo.edit_tree(tree, {layout.FORMAT_FILE: (store.repo.write_blob(b"9" * 5_000), False)})
    with pytest.raises(DamageError, match="has no known format"):
        store.state(store.repo.write_commit(changed, [], "x", 1))


@pytest.mark.parametrize("packed", [False, True])
def test_refs_that_cannot_be_shown_are_none_of_ours(
    keep: Keep, store: Store, index: Index, git: Git, packed: bool
) -> None:
    keep(Talk().turns("one"))
    for name in (f"{SESSION}.r-\u202egnp", "c1 \x9b".replace(" ", "")):
        git("update-ref", f"refs/heads/{name}", SESSION)
        git("update-ref", f"refs/tags/{name}", SESSION)
    if packed:
        git("pack-refs", "--all")
    (store.path / "refs" / "heads" / "\udcff").write_text(store.repo.ref(layout.head_ref(SESSION)) or "")
    index.sync()
    assert [branch.name for branch in index.branches()] == [SESSION]
    assert refs.tags(store.path) == {}
    (store.path / "refs" / "heads" / "\udcff").unlink()


def test_a_file_and_a_word_that_are_no_text(two: Shell) -> None:
    assert two("ls", "--all", "--", "\udcff.py").code != BUG
    assert two("log", "\udcff").code != BUG


def test_half_a_character_in_a_file_name(keep: Keep, index: Index) -> None:
    talk = Talk(OTHER).prompt("one").tool("Read", {"file_path": "/s/a.py"}).answer("a")
    talk.lines[:] = [line.replace(b"/s/a.py", b"/s/\\ud800.py") for line in talk.lines]
    keep(talk)
    assert len(index.commits_touching("/s")) == 1


def test_the_end_of_time(keep: Keep, index: Index) -> None:
    talk = Talk().turns("one", "two")
    for number, moment in enumerate(
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00+14:00")
    ):
        line = json.loads(talk.lines[-1 - number])
        talk.lines[-1 - number] = json.dumps({**line, "timestamp": moment}).encode()
    keep(talk)
    index.sync()
    assert index.branch(SESSION).state.turns == 2  # type: ignore[union-attr]
    assert canonical.seconds("9999-12-31T23:59:59-14:00") is None
    assert canonical.seconds("9999-12-31T23:59:58Z") == 253402300798


def test_a_folder_of_thousands_of_folders_is_not_looked_through() -> None:
    tracemalloc.start()
    try:
        assert project.project_key(DEEP) == DEEP
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("said", ["{}/projects/../x.jsonl", "{}/projects/./x.jsonl", "{}/projects/a\0/x.jsonl"])
def test_what_a_state_says_is_no_place(tmp_path: Path, said: str) -> None:
    assert home.transcript_place(tmp_path, said.format(tmp_path), "x", "") is None


# What a killed process leaves


@pytest.mark.parametrize("name", [layout.head_ref(SESSION), "packed-refs"])
@pytest.mark.parametrize("moves", ["one", "all"])
def test_a_lock_that_a_killed_process_left(keep: Keep, store: Store, name: str, moves: str) -> None:
    keep(Talk().turns("one"))
    head = layout.head_ref(SESSION)
    tip = store.repo.ref(head)
    assert tip
    run_git(store.path, "pack-refs", "--all")
    lock = store.path / f"{name}.lock"
    lock.write_bytes(b"")
    os.utime(lock, (1, 1))
    if moves == "one":
        store.repo.move(head, tip, None)
    else:
        operations.move_refs(store.path, [Move(head, tip, None)])
    assert (store.repo.ref(head), lock.exists()) == (None, False)
    assert not list(store.path.glob("stale*"))


def test_a_young_lock_is_left(keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refs, "_STALE_SECONDS_ALONE", 3600.0)  # a busy machine can take longer than two seconds
    keep(Talk().turns("one"))
    lock = store.path / f"{layout.head_ref(SESSION)}.lock"
    lock.write_bytes(b"")
    refs.delete_stale_locks(store.path, [layout.head_ref(SESSION), "refs/heads/none"])
    assert lock.exists()
    lock.unlink()


@pytest.mark.parametrize("killed", [True, False])
def test_a_store_that_someone_else_is_making(tmp_path: Path, killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store"
    path.mkdir()
    lock = path / "config.lock"
    lock.write_bytes(b"")
    if killed:
        os.utime(lock, (1, 1))
    if not killed:
        monkeypatch.setattr(time, "sleep", lambda _seconds: lock.unlink())  # that process is done meanwhile
    stores.create_store(path)
    assert run_git(path, "config", "gc.auto") == "0\n"
