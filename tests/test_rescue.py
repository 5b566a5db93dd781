"""What a damaged disk does to a store: packs, refs and bare bones that are gone, and how they come back."""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest
from plain import run_git
from shell import Shell
from test_verify import loose, unpack
from transcripts import OTHER, SESSION

from sessgit.store import refs
from sessgit.store.layout import StorePaths

HEAD = f"refs/heads/{SESSION}"
NOBODYS = "1234567890123456789012345678901234567890"
FORK = "f0000001-0000-4000-8000-ffffffffffff"


@pytest.fixture
def held(sessgit: Shell) -> Shell:
    """Two conversations in one pack, brought in from a folder that is none of the client's."""
    for talk in (sessgit.talk().turns("one", "two", "three"), sessgit.talk(OTHER).turns("else")):
        talk.save(sessgit.home / "elsewhere")
    sessgit.out("import", str(sessgit.home / "elsewhere"))
    sessgit.out("gc")
    return sessgit


def packs(sessgit: Shell, pattern: str) -> list[Path]:
    return sorted((sessgit.store / "objects" / "pack").glob(pattern))


def curable(sessgit: Shell) -> dict[str, str]:
    """What `doctor` finds that it can mend: where, and of what kind."""
    found = json.loads(sessgit("doctor", "--json").out)["findings"]
    return {Path(one["where"]).name: one["kind"] for one in found if one["fixable"] and one["severity"] == "damage"}


def forget_packs() -> None:
    """Free the repositories of commands that ended: as long as one is open, libgit2 reads a pack that was replaced by
    one of its name from the deleted file. Commands of people are processes of their own."""
    gc.collect()


def repaired(sessgit: Shell, *more: str) -> Any:
    return json.loads(sessgit("repair", SESSION, "--json", *more).out)


def assert_whole(sessgit: Shell, before: dict[str, str]) -> None:
    assert refs.read_all(sessgit.store) == before
    assert sessgit.json("verify", "--deep")["findings"] == []


def lose_blob(sessgit: Shell) -> None:
    unpack(sessgit.store)
    loose(
        sessgit.store, run_git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000002/transcript.jsonl").strip()
    ).unlink()


def test_an_imported_file_has_what_is_lost(held: Shell) -> None:
    before = refs.read_all(held.store)
    lose_blob(held)
    assert held.out("repair", SESSION).splitlines() == [
        "1 object restored from the file that it was imported from.",
        f"{SESSION} is repaired: 3 turns.",
    ]
    assert_whole(held, before)


def test_a_copy_that_is_named_has_it(held: Shell) -> None:
    before = refs.read_all(held.store)
    lose_blob(held)
    copy = (held.home / "elsewhere" / f"{SESSION}.jsonl").rename(held.home / "copy.jsonl")
    assert repaired(held, "--dry-run")["lost"]
    assert repaired(held, "--from", str(copy))["recovered"] == [{"objects": 1, "source": "the file that was given"}]
    assert_whole(held, before)


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--json",)])
def test_a_copy_that_is_none_is_told(held: Shell, options: tuple[str, ...]) -> None:
    """And nothing is looked for without it."""
    hint = "--from needs a copy of the conversation's transcript."
    before = run_git(held.store, "for-each-ref")
    nowhere, folder = held.home / "typo.jsonl", held.project
    refusals = {
        nowhere: (4, f"there is no file {nowhere}"),
        folder: (1, f"cannot read {folder}: it is not a regular file"),
    }
    for path, (code, message) in refusals.items():
        done = held("repair", SESSION, "--from", str(path), *options)
        assert (done.code, done.err) == (code, f"Error: {message}.\nHint: {hint}\n")
        if "--json" in options:
            error = {"message": message, "hint": hint, "exit_code": code}
            assert json.loads(done.out) == {"schema": "sessgit.error/v1", "error": error}
        else:
            assert done.out == ""
    assert run_git(held.store, "for-each-ref") == before


def test_a_link_is_no_file_of_it(held: Shell) -> None:
    lose_blob(held)
    path = held.home / "elsewhere" / f"{SESSION}.jsonl"
    path.rename(held.home / "copy.jsonl")
    path.symlink_to(held.home / "copy.jsonl")
    assert repaired(held, "--dry-run")["recovered"] == []


@pytest.mark.parametrize("how", ["no index", "a damaged index", "a cut pack", "no pack", "only the index", "nothing"])
def test_packs_that_git_cannot_use(held: Shell, how: str) -> None:
    before = refs.read_all(held.store)
    (pack,), (index,) = packs(held, "*.pack"), packs(held, "*.idx")
    for path in (pack, index):
        path.chmod(0o600)
    if how == "no index":
        index.unlink()
    elif how == "a damaged index":
        index.write_bytes(index.read_bytes()[:-40])
    elif how == "a cut pack":
        data = pack.read_bytes()
        pack.unlink()  # this process may have it mapped
        pack.write_bytes(data[: -len(data) // 3])
    elif how == "only the index":
        pack.unlink()
    else:
        for path in packs(held, "*"):
            path.unlink()
    assert curable(held)
    assert held("verify").code == 6
    forget_packs()
    held("doctor", "--fix")
    forget_packs()
    assert curable(held) == {}
    assert_whole(held, before)


def test_repair_brings_back_a_whole_conversation(held: Shell) -> None:
    before = refs.read_all(held.store)
    for path in packs(held, "*"):
        path.unlink()
    assert held("import", str(held.home / "elsewhere")).code == 1
    assert repaired(held)["recovered"][0]["source"] == "the file that it was imported from"
    assert held("verify", SESSION).code == 0
    held.out("repair", OTHER)
    assert_whole(held, before)


@pytest.mark.parametrize("mend", [("doctor", "--fix"), ("repair", SESSION)])
@pytest.mark.parametrize("data", [b"", bytes(41), f"{NOBODYS}\n".encode()])
def test_a_ref_that_holds_nothing(held: Shell, data: bytes, mend: tuple[str, ...]) -> None:
    before = refs.read_all(held.store)
    (held.store / HEAD).write_bytes(data)
    found = json.loads(held("verify", "--json").out)
    assert HEAD in [one["where"] for one in found["findings"]]
    assert found["sessions"] == 2
    held(*mend)
    assert_whole(held, before)
    held.out("delete", SESSION, "--yes")


def test_a_ref_of_which_nothing_is_known(held: Shell) -> None:
    """It is told, nothing is pruned meanwhile, and the file is recorded anew."""
    StorePaths(held.store).refs.unlink()
    (held.store / "packed-refs").write_bytes(b"")
    StorePaths(held.store).cursor(SESSION).unlink()
    (held.store / HEAD).write_bytes(b"")
    held.keep(held.talk().turns("one", "two", "three"))
    assert held("gc", "--prune", "--yes").code == 7
    assert "records its file again" in " ".join(held("doctor").out.split())
    assert repaired(held)["rerecorded"]
    assert len(held.json("log", SESSION)["turns"]) == 3
    assert refs.refs_without_id(held.store) == []


@pytest.mark.parametrize("known", ["the note", "the journal"])
def test_a_fork_that_was_never_packed(held: Shell, known: str) -> None:
    held.out("fork", SESSION, "--at", "1")
    before = refs.read_all(held.store)
    if known == "the journal":
        StorePaths(held.store).refs.unlink()
    (held.store / "refs" / "heads" / FORK).unlink()
    assert held("gc", "--prune", "--yes").code == 3
    found = json.loads(held("verify", "--json").out)["findings"]
    assert [one["where"] for one in found] == [f"refs/heads/{FORK}"]
    held("doctor", "--fix")
    assert_whole(held, before)
    held.out("undo")
    assert held.json("verify")["findings"] == []


def test_a_fork_that_was_never_made_is_not_lost(held: Shell) -> None:
    """The journal is written before the ref is: a kill in between leaves a fork that never was."""
    held.out("fork", SESSION, "--at", "1")
    StorePaths(held.store).refs.unlink()
    (held.store / "refs" / "heads" / FORK).unlink()
    next(held.config.glob(f"projects/*/{FORK}.jsonl")).unlink()
    assert held.json("verify")["findings"] == []


def test_a_damaged_head_of_a_fork(held: Shell) -> None:
    held.out("fork", SESSION, "--at", "2")
    path = loose(held.store, refs.read_all(held.store)[f"refs/heads/{FORK}"])
    path.chmod(0o600)
    path.write_bytes(b"rubbish")
    for start in (FORK, FORK[:4]):
        assert held("show", start).err.splitlines()[-1] == "Hint: `sessgit repair f0000001` restores what it can."
    done = held("repair", FORK)
    assert (done.code, done.err) == (0, "")
    assert len(held.json("log", FORK)["turns"]) == 2
    assert held.json("verify")["findings"] == []


def test_a_lost_tip_that_no_file_gives(held: Shell) -> None:
    """What a command added is nowhere; what was said is in the file. A remote that cannot be asked may have both."""
    held.out("rename", SESSION, "a name")
    held.out("gc")
    for path in packs(held, "*"):
        path.unlink()
    held.out("remote", "add", "box", str(held.home / "box"))
    done = held("repair", SESSION)
    assert (done.code, "nor reach the remote box" in done.err) == (6, True)
    held.out("remote", "remove", "box")
    assert "would be recorded\nagain" in held("repair", SESSION, "--dry-run").out
    assert repaired(held)["rerecorded"]
    assert len(held.json("log", SESSION)["turns"]) == 3
    held.out("repair", OTHER)
    assert held.json("verify", "--deep")["findings"] == []


def test_it_can_be_deleted_all_the_same(held: Shell) -> None:
    held.out("fork", SESSION, "--at", "2")
    held.out("log", FORK)
    loose(held.store, refs.read_all(held.store)[f"refs/heads/{FORK}"]).unlink()
    held.out("delete", FORK, "--yes")
    assert held.json("verify")["findings"] == []


@pytest.mark.parametrize("lost", ["HEAD", "objects"])
def test_the_bare_bones(held: Shell, lost: str) -> None:
    before = refs.read_all(held.store)
    (held.store / lost).rename(held.home / "away")
    done = held("ls", "--all")
    assert (done.code, done.err.splitlines()[0][-len(lost) - 1 :]) == (7, f"{lost}.")
    assert curable(held) == {lost: "store"}
    held("doctor", "--fix")
    held("doctor", "--fix")
    assert_whole(held, before)


def test_around_the_conversations(held: Shell) -> None:
    (held.store / "key").unlink()
    found = json.loads(held("verify", "--json").out)
    assert (found["damaged"], found["findings"][0]["hint"] is not None) == ([], True)
    assert "2 conversations, 4 turns: they are intact, but other parts of the store are not." in held("verify").out
    (held.store / "config").unlink()
    held("doctor", "--fix")
    assert held.json("verify")["findings"] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_is_not_lost(held: Shell) -> None:
    (pack,) = packs(held, "*.pack")
    pack.chmod(0)
    assert list(curable(held)) == [pack.name]
    held("doctor", "--fix")
    assert held.json("verify")["findings"] == []


def test_the_folder_of_states_is_made_again(held: Shell) -> None:
    for path in sorted(StorePaths(held.store).state.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    StorePaths(held.store).state.rmdir()
    held.out("import", str(held.home / "elsewhere"))
