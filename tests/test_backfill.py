"""A conversation that went on elsewhere: the file here gets the turns that it lacks, and nothing else happens to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pingpong import Machine, pair, uuids
from plain import run_git
from strategies import SECRET
from transcripts import SESSION, Talk, subagent

from sessgit.agents import agent_files
from sessgit.branch import restore
from sessgit.errors import ConflictError, SessgitError
from sessgit.store import recorder_state


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Machine, Machine]:
    return pair(tmp_path, Talk())


def moved(there: Machine, here: Machine) -> None:
    """The conversation goes on here."""
    here.take(there)
    here.restore()
    here.adopt()


def went_on(machines: tuple[Machine, Machine]) -> tuple[Machine, Machine]:
    """The first one has recorded a turn of the other one's that its own file lacks."""
    a, b = machines
    a.talk.turns("one")
    a.keep()
    moved(a, b)
    a.talk.turns("two")
    b.keep()
    a.take(b)
    return machines


def assert_all_is_there(machine: Machine, turns: int) -> None:
    """The file holds each line once and in order; nothing more is to be recorded or appended."""
    assert len(machine.uuids) == len(set(machine.uuids))
    data, refs = machine.path.read_bytes(), machine.refs()
    for _ in range(2):
        assert not machine.record().changed
        assert machine.refs() == refs
        recorder_state.delete_cursor(machine.store.paths, SESSION)
    done = machine.restore()
    assert (done.already, done.appended, machine.path.read_bytes()) == (True, 0, data)
    assert machine.turns() == turns
    assert uuids(restore.rebuild_file(machine.store, SESSION).data) == machine.uuids
    assert run_git(machine.store.path, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("words", ["", f" with {SECRET} and export DB_PASSWORD=Tr0ub4dor3"])
def test_there_and_back_again(machines: tuple[Machine, Machine], words: str) -> None:
    a, b = machines
    talk = a.talk.turns("one", f"two{words}")
    a.keep()
    original = a.path.read_bytes()
    moved(a, b)
    talk.turns("three", f"four{words}")
    b.keep()
    a.take(b)
    done = a.restore()
    assert (done.already, done.appended) == (True, 2)
    assert a.path.read_bytes().startswith(original)
    assert a.uuids == b.uuids
    assert_all_is_there(a, 4)
    for number in range(3):
        for here, there in ((a, b), (b, a)):
            here.adopt()
            talk.turns(f"{number} at {here.home.name}{words}")
            assert here.keep().turns == (here.turns(),)
            there.take(here)
            assert there.restore().appended == 1
            assert_all_is_there(there, here.turns())
    assert a.uuids == b.uuids
    assert (SECRET.encode() in a.path.read_bytes()) == bool(words)
    for machine in machines:
        every = machine.uuids
        machine.path.unlink()
        machine.restore()
        assert machine.uuids == every


def test_without_words_replaced_both_files_are_the_same(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    talk = a.talk.turns("one")
    a.keep()
    moved(a, b)
    talk.turns("two")
    b.keep()
    moved(b, a)
    talk.turns("three")
    a.keep()
    moved(a, b)
    assert a.path.read_bytes() == b.path.read_bytes() == restore.rebuild_file(a.store, SESSION).data
    assert "File: " not in run_git(a.store.path, "log", "--format=%B", SESSION)


def test_lines_that_nobody_recorded_stay(machines: tuple[Machine, Machine]) -> None:
    """What a client writes behind its last answer may not be recorded yet when the conversation is sent."""
    a, b = machines
    talk = a.talk.turns("one", "two")
    a.keep(final=False)
    data = a.path.read_bytes()
    moved(a, b)
    assert len(b.uuids) == len(a.uuids) - 2
    talk.leaf = b.uuids[-1]
    talk.turns("three")
    b.keep()
    a.take(b)
    refs = a.refs()
    a.record()  # they are behind no turn that the file has
    assert a.refs() == refs
    assert a.restore().appended == 1
    assert a.path.read_bytes().startswith(data)
    assert a.path.read_bytes()[len(data) :] == b.path.read_bytes()[len(restore_of(b, 2)) :]
    assert a.restore().appended == 0
    a.adopt()
    a.talk.turns("four")
    assert a.keep().turns == (4,)
    assert a.turns() == 4
    b.take(a)
    assert b.restore().appended == 1


def test_lines_that_wait_for_the_next_turn_come_once(machines: tuple[Machine, Machine]) -> None:
    """They are recorded in front of a prompt that was given elsewhere, and stand here already."""
    a, b = machines
    talk = a.talk.turns("one").queue("later").chain("system", subtype="x").bare("mode", mode="normal")
    a.keep()
    moved(a, b)
    talk.bare("mode", mode="plan").turns("two")
    b.keep()
    with a.path.open("ab") as file:  # which nobody recorded
        file.write(b'{"type":"cost-state"}\n')
    data = a.path.read_bytes()
    a.take(b)
    assert a.restore().appended == 1
    assert a.path.read_bytes() == data + b.path.read_bytes()[len(data) - len(b'{"type":"cost-state"}\n') :]


def restore_of(machine: Machine, turns: int) -> bytes:
    """The beginning of a file with so many turns, in which no lines stand between them."""
    prompt = machine.talk.prompts[turns].encode()
    lines = machine.path.read_bytes().splitlines(keepends=True)
    return b"".join(lines[: next(n for n, line in enumerate(lines) if b'"uuid":"%s"' % prompt in line)])


def test_a_turn_that_grew_elsewhere(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    talk = a.talk.turns("one").prompt("two").call_only("Bash", {"command": "sleep 9"})
    a.keep()
    moved(a, b)
    talk.interrupt().answer("So what?").turns("three")
    b.keep()
    a.take(b)
    assert a.restore().appended == 2
    assert a.uuids == b.uuids
    assert_all_is_there(a, 3)


def test_a_rewind_elsewhere(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    talk = a.talk.turns("one", f"two {SECRET}")
    a.keep()
    moved(a, b)
    talk.turns("three").rewind(2).turns("other three", "four")
    b.keep()
    a.take(b)
    assert a.restore().appended == 3
    assert a.uuids == b.uuids
    assert_all_is_there(a, 4)
    talk.rewind(3)
    a.adopt()
    talk.turns("four after three")
    a.keep()
    b.take(a)
    assert b.restore().appended == 1
    assert_all_is_there(b, 4)


def test_what_lay_beside_comes_along(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    talk = a.talk.turns("one")
    a.keep()
    moved(a, b)
    talk.prompt("two").tool("Agent", {}, "agentId: abc")
    there = subagent(b.path.parent, talk, "abc", "looked")
    talk.answer("Two.")
    b.keep()
    moved(b, a)
    assert (a.path.parent / there.relative_to(b.path.parent)).read_bytes() == there.read_bytes()


def test_a_file_that_went_on_by_itself_is_left(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    a.talk.turns("one")
    a.keep()
    moved(a, b)
    lines = list(a.talk.lines)
    a.talk.turns("two")
    b.keep()
    a.take(b)
    a.talk.lines[:] = lines
    data = a.talk.rewind(1).turns("another two").data
    a.path.write_bytes(data)
    with pytest.raises(ConflictError, match="neither has all turns") as raised:
        a.restore()
    assert raised.value.hint == "`sessgit fork 5e551011` continues the recorded turns in a new conversation."
    assert a.path.read_bytes() == data


def test_a_file_that_goes_on_without_them(machines: tuple[Machine, Machine]) -> None:
    """A client that was left open here: what came from elsewhere was never left behind by a rewind of this file."""
    a, b = machines
    a.talk.turns("one")
    a.keep()
    moved(a, b)
    lines = list(a.talk.lines)
    a.talk.turns("two", "three")
    b.keep()
    a.take(b)
    theirs = run_git(a.store.path, "rev-parse", SESSION)
    a.talk.lines[:] = lines
    a.talk.rewind(1).turns("another two")
    a.keep()
    names = run_git(a.store.path, "for-each-ref", "--format=%(refname:short)").split()
    assert names == [SESSION, f"{SESSION}.m-a0000002"]
    assert run_git(a.store.path, "rev-parse", f"{SESSION}.m-a0000002") == theirs
    assert a.turns() == 2
    refs = a.refs()
    for _ in range(2):
        recorder_state.delete_cursor(a.store.paths, SESSION)
        assert not a.record().changed
        assert (a.refs(), a.restore().appended) == (refs, 0)
    data = a.path.read_bytes()
    a.path.unlink()
    a.restore()
    assert a.path.read_bytes() == data
    a.talk.turns("three of ours")
    assert a.keep().turns == (3,)
    assert run_git(a.store.path, "fsck", "--strict", "--no-dangling") == ""


def test_a_file_that_was_cut_leaves_a_branch_of_the_older_file(machines: tuple[Machine, Machine]) -> None:
    """What stood in this file once stands no more where its other turns do."""
    a, _ = machines
    lines = a.talk.turns("one").data
    a.talk.turns("two")
    a.keep()
    a.path.write_bytes(lines)
    a.talk.lines[:] = lines.split(b"\n")[:-1]
    a.talk.rewind(1).turns("another two")
    a.keep()
    names = run_git(a.store.path, "for-each-ref", "--format=%(refname:short)").split()
    assert names == [SESSION, f"{SESSION}.m-a0000002"]


@pytest.mark.parametrize("torn", [b'{"type":"user","mess', b"x"])
def test_a_torn_file_is_left(machines: tuple[Machine, Machine], torn: bytes) -> None:
    a, _ = went_on(machines)
    with a.path.open("ab") as file:
        file.write(torn)
    data = a.path.read_bytes()
    with pytest.raises(ConflictError):
        a.restore()
    assert a.path.read_bytes() == data


def test_a_client_that_has_it_open_must_close_it(machines: tuple[Machine, Machine]) -> None:
    a, _ = went_on(machines)
    (a.config / "sessions").mkdir()
    note = a.config / "sessions" / f"{os.getpid()}.json"
    note.write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION}))
    with pytest.raises(ConflictError, match="is open in a client here"):
        a.restore()
    note.unlink()
    assert a.restore().appended == 1


def test_a_kill_while_it_is_appended(machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = went_on(machines)
    whole = agent_files.append
    for cut in (0, 10, 400):

        def half(path: Path, size: int, data: bytes, cut: int = cut) -> None:
            whole(path, size, data[:cut])
            raise KeyboardInterrupt

        size = a.path.stat().st_size
        monkeypatch.setattr(agent_files, "append", half)
        with pytest.raises(KeyboardInterrupt):
            a.restore()
        monkeypatch.setattr(agent_files, "append", whole)
        if cut:
            a.restore()
            assert a.path.read_bytes() == b.path.read_bytes()
            with a.path.open("r+b") as file:
                file.truncate(size)


def test_side_branches_alone_are_not_appended(machines: tuple[Machine, Machine]) -> None:
    """Behind the last turn of the head they would become the head."""
    a, b = machines
    talk = a.talk.turns("one", "two")
    a.keep()
    moved(a, b)
    talk.rewind(1).turns("other")
    b.keep()
    run_git(a.store.path, "fetch", "-q", str(b.store.path), f"{SESSION}:refs/heads/{SESSION}.r-a0000003")
    data = a.path.read_bytes()
    done = a.restore()
    assert (done.appended, a.path.read_bytes()) == (0, data)


def test_turns_of_another_machines_file_are_never_laid_out(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    talk = a.talk.turns("one")
    a.keep()
    moved(a, b)
    talk.turns("two")
    b.keep()
    run_git(a.store.path, "fetch", "-q", str(b.store.path), f"{SESSION}:refs/heads/{SESSION}.m-a0000002")
    data = a.path.read_bytes()
    assert a.restore().appended == 0
    a.path.unlink()
    a.restore()
    assert a.path.read_bytes() == data


def test_a_file_of_nothing_known_is_not_touched(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    a.talk.turns("one")
    a.keep()
    b.take(a)
    b.path.parent.mkdir(parents=True)
    for data in (b"", b"x\n", Talk().turns("x").data.replace(b"a0000001", b"a9999999")):
        b.path.write_bytes(data)
        with pytest.raises(SessgitError):
            b.restore()
        assert b.path.read_bytes() == data
