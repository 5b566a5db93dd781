"""Refs that are gone, and nobody took them away: a cut `packed-refs` is told and mended, and deletions stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kept import begins
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.store import operations, refs
from sessgit.store.layout import StorePaths

THIRD = "5e551011-0000-4000-8000-000000000003"


@begins
def packed(shell: Shell) -> None:
    """A store whose refs are of all kinds, and packed: heads, a rewound branch, an archive, a tombstone, a tag."""
    talk = shell.talk().turns("one", "two").rewind(1).turns("other")
    shell.recorded(talk, shell.talk(OTHER).turns("else"), shell.talk(THIRD).turns("third"))
    shell.out("tag", "good", f"{SESSION}@1")
    shell.out("fork", SESSION, "--at", "1")
    shell.out("archive", OTHER)
    shell.out("delete", THIRD, "--yes")
    shell.out("gc")


def gone(sessgit: Shell, command: str = "verify") -> set[str]:
    """The refs that a command says are gone."""
    findings = json.loads(sessgit(command, "--json").out)["findings"]
    return {one["where"] for one in findings if one["severity"] == "damage" and one["where"].startswith("refs/")}


def test_a_damaged_ref_stops_only_its_own_session(sessgit: Shell) -> None:
    talk, other = sessgit.talk().turns("one", "two").rewind(1).turns("other"), sessgit.talk(OTHER).turns("else")
    sessgit.recorded(talk, other)
    ref = sessgit.store / "refs" / "heads" / SESSION
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_bytes(b"\x00 no object id\n")
    shown = sessgit("log", SESSION)
    assert (shown.code, shown.out) == (4, "")  # not the branch that its rewind left
    sessgit.keep(talk.turns("more"))
    sessgit.keep(other.turns("more"))
    done = sessgit("import")
    assert done.code == 1
    assert f"refs/heads/{SESSION} is damaged: `sessgit doctor --fix` restores it" in " ".join(done.err.split())
    assert len(sessgit.json("log", OTHER)["turns"]) == 2
    sessgit("doctor", "--fix")
    assert sessgit("import").code == 0
    assert [turn["prompt"] for turn in sessgit.json("log", SESSION)["turns"]] == ["one", "other", "more"]


def test_a_ref_that_was_just_being_deleted_is_not_missed(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has a deletion before it is done."""
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("two"))
    ref = f"refs/heads/{OTHER}"
    tip = refs.read(sessgit.store, ref)
    sessgit.out("delete", OTHER, "--yes")
    run_git(sessgit.store, "update-ref", ref, str(tip))
    monkeypatch.setattr(operations.time, "sleep", lambda _: run_git(sessgit.store, "update-ref", "-d", ref))
    operations.record_refs(sessgit.store)
    assert refs.read(sessgit.store, ref) is None
    assert gone(sessgit) == set()


def test_a_cut_file_of_refs(packed: Shell) -> None:
    path = packed.store / "packed-refs"
    before, lines = refs.read_all(packed.store), path.read_bytes().splitlines(keepends=True)
    cuts = {
        "empty": b"",
        "at a line": b"".join(lines[:3]),
        "in a line": b"".join(lines)[:-70],
        "in a name": b"".join(lines[:3]) + lines[3][:60],
        "zeros": bytes(300),
        "no file": None,
    }
    for how, data in cuts.items():
        run_git(packed.store, "pack-refs", "--all")
        path.unlink() if data is None else path.write_bytes(data)
        after = refs.read_all(packed.store)
        assert after.keys() < before.keys(), how
        assert gone(packed) == {name for name in before.keys() - after.keys() if "/keep/" not in name}, how
        assert gone(packed, "doctor") == gone(packed), how
        packed("doctor", "--fix")
        assert refs.read_all(packed.store) == before, how
        assert run_git(packed.store, "fsck", "--strict", "--no-dangling") == "", how
    assert (gone(packed, "doctor"), gone(packed)) == (set(), set())
    packed.out("rename", SESSION, "a name")


@pytest.mark.parametrize("command", [["rename", SESSION, "a name"], ["archive", SESSION], ["gc"]])
def test_whoever_cannot_move_refs_for_it_is_told_what_mends_it(packed: Shell, command: list[str]) -> None:
    path = packed.store / "packed-refs"
    path.write_bytes(path.read_bytes()[:-20])
    done = packed(*command)
    assert done.code == 7
    assert done.err.splitlines()[-1] == (
        "Hint: packed-refs in the store is damaged: `sessgit doctor --fix` repairs it, and restores lost refs."
    )
    packed("doctor", "--fix")
    packed.out(*command)


def test_nothing_is_pruned_that_was_lost(packed: Shell) -> None:
    before = refs.read_all(packed.store)
    (packed.store / "packed-refs").write_bytes(b"")
    done = packed("gc", "--prune", "--yes")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines()[1:] == ["Hint: `sessgit doctor --fix` restores what is lost."]
    assert packed("purge", "some value", "--yes").code == 3
    packed("doctor", "--fix")
    assert refs.read_all(packed.store) == before


@pytest.mark.parametrize("noted", ["an earlier one", "nothing"])
def test_what_was_said_since_is_put_back(packed: Shell, noted: str) -> None:
    """The ref is given the commit that the cursor knows, and not the one that it had when it was packed."""
    note = StorePaths(packed.store).refs
    before = note.read_bytes()
    packed.recorded(packed.talk().turns("one", "two").rewind(1).turns("other", "more"))
    tip = refs.read_all(packed.store)[f"refs/heads/{SESSION}"]
    note.write_bytes(before) if noted == "an earlier one" else note.unlink()
    (packed.store / "refs" / "heads" / SESSION).unlink(missing_ok=True)
    (packed.store / "packed-refs").write_bytes(b"")
    packed("doctor", "--fix")
    assert refs.read_all(packed.store)[f"refs/heads/{SESSION}"] == tip


def test_what_commands_take_away_is_not_lost(packed: Shell) -> None:
    packed.out("unarchive", OTHER)
    packed.out("tag", "--delete", "good")
    packed.out("delete", SESSION, "--yes")
    packed.out("undo")
    packed.out("undo", packed.json("ops")["operations"][-2]["id"])
    fork = next(one["id"] for one in packed.json("ops")["operations"] if one["command"] == "fork")
    packed("undo", fork)
    assert (gone(packed, "doctor"), gone(packed)) == (set(), set())
    packed.out("gc")
    packed.recorded(packed.talk().turns("one").rewind(1).turns("again"))
    assert (gone(packed, "doctor"), gone(packed)) == (set(), set())
    packed.out("gc", "--prune", "--yes")
    packed.out("purge", "another", "--yes")
    assert (gone(packed, "doctor"), gone(packed)) == (set(), set())


def test_a_line_that_is_none_goes_and_is_kept_aside(packed: Shell) -> None:
    path = packed.store / "packed-refs"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    tag = next(n for n, line in enumerate(lines) if line.endswith(b"/good\n"))
    path.write_bytes(b"".join([*lines[:2], b"rubbish\n", *lines[2:tag], b"more " + lines[tag], *lines[tag + 1 :]]))
    damaged = path.read_bytes()
    packed("doctor", "--fix")
    assert refs.invalid_lines(packed.store) == []
    (aside,) = list((StorePaths(packed.store).state / "damaged").glob("packed-refs.*"))
    assert aside.read_bytes() == damaged
    assert run_git(packed.store, "rev-parse", "good^{commit}")
    assert not _locks(packed.store)


def _locks(store: Path) -> list[Path]:
    return list(store.glob("*.lock"))
