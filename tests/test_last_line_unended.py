"""A transcript whose last line has no newline: that line is one like any other, and comes back as it is."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from clones import pair
from merging import NEW, THEIRS, diverged, transcript
from pictures import conversation, state
from plain import Keep, run_git
from shell import NOW, Shell
from strategies import REDACTED, SECRET
from transcripts import OTHER, SESSION, Talk, subagent

from sessgit.agents.claude import lines
from sessgit.branch import restore
from sessgit.store import store as stores
from sessgit.store.store import Store

DAY = 86_400
LATER = NOW + 40 * DAY
ANSWER = "About two."


def unended(path: Path) -> Path:
    """Takes the last newline off a file."""
    data = path.read_bytes()
    assert data.endswith(b"}\n")
    path.write_bytes(data[:-1])
    return path


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def answered(sessgit: Shell) -> Talk:
    """Two turns, of which the second ends with its answer."""
    return sessgit.talk().turns("one").prompt("two").answer(ANSWER)


@pytest.fixture(autouse=True)
def made(sessgit: Shell) -> None:
    """A store is there, so that commands record what they are asked about."""
    stores.create_store(sessgit.store)


def refs(sessgit: Shell) -> str:
    return run_git(sessgit.store, "for-each-ref")


def assert_exact(sessgit: Shell, path: Path) -> None:
    """The store has the file byte for byte, and nothing is wrong with it."""
    assert sessgit("import").code == 0
    checked = sessgit.json("restore", SESSION, "--verify")
    assert (checked["same"], checked["missing"]) == (True, 0), checked
    assert "no damage" in sessgit.out("verify", "--deep")
    found = sessgit.home / "found.jsonl"
    sessgit.out("restore", SESSION, "--output", str(found))
    assert found.read_bytes() == path.read_bytes()
    found.unlink()


# Everything sees it


def test_every_command_sees_it(sessgit: Shell) -> None:
    path = unended(sessgit.keep(answered(sessgit)))
    sessgit.out("import")
    assert sessgit.json("log", SESSION)["turns"][1]["tokens"]["output"] == 10
    assert ANSWER in sessgit.out("show", f"{SESSION}@2")
    assert [hit["turn"] for hit in sessgit.json("search", "About two")["hits"]] == [2]
    assert ANSWER in sessgit.out("export", "markdown", SESSION)
    assert ANSWER in sessgit.out("export", "jsonl", SESSION)
    assert sessgit.json("stats")["total"]["tokens"]["output"] == 20
    assert_exact(sessgit, path)


def test_a_fork_at_the_last_turn_has_it_and_ends_with_a_newline(sessgit: Shell) -> None:
    unended(sessgit.keep(answered(sessgit)))
    sessgit.out("import")
    sessgit.out("fork", SESSION)
    data = transcript(sessgit, NEW).read_bytes()
    assert ANSWER.encode() in data and data.endswith(b"}\n")


def test_a_last_line_that_is_a_prompt_is_a_turn(sessgit: Shell) -> None:
    path = unended(sessgit.keep(sessgit.talk().turns("one").prompt("two", style="x")))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(line for line in lines if b"file-history" not in line))
    sessgit.out("import")
    assert [turn["prompt"] for turn in sessgit.json("log", SESSION)["turns"]] == ["one", "two"]
    assert_exact(sessgit, path)


def test_the_turns_are_those_of_the_same_file_with_its_newline(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().turns("one").prompt("two").tool("Bash", {"command": "x"}, "y").answer(ANSWER)
    keep(unended(talk.save(claude)), final=True)
    found = conversation(store), state(store, SESSION)
    for ref in run_git(store.path, "for-each-ref", "--format=%(refname)").split():
        run_git(store.path, "update-ref", "-d", ref)
    store.paths.cursor(SESSION).unlink()
    keep(talk, final=True)
    assert (conversation(store), state(store, SESSION)) == found


def test_a_torn_line_is_none(keep: Keep, store: Store, claude: Path) -> None:
    """Whatever part of a line the client has written so far, but for all of it."""
    talk = Talk().turns("one").prompt("two").answer(ANSWER)
    whole, *last = talk.data.rpartition(b'{"parent')
    rest = b"".join(last)
    path = talk.save(claude)
    path.write_bytes(whole)
    keep(path)
    head = store.branches(SESSION)
    for length in range(1, len(rest) - 1):
        with path.open("r+b") as file:
            file.truncate(len(whole))
            file.seek(len(whole))
            file.write(rest[:length])
        assert not keep(path).changed
    assert store.branches(SESSION) == head
    append(path, rest[-2:-1])
    assert keep(path).turns == (2,)


def test_a_recorder_waits_for_no_newline(claude: Path) -> None:
    path = unended(Talk().turns("one").prompt("two").answer(ANSWER).save(claude))
    assert lines.holds_answer(path, 0, ANSWER)
    path.write_bytes(path.read_bytes()[:-1])
    assert not lines.holds_answer(path, 0, ANSWER)


# What comes later


@pytest.mark.parametrize("lose", [False, True])
@pytest.mark.parametrize("final", [False, True])
def test_it_is_recorded_once(keep: Keep, store: Store, claude: Path, lose: bool, final: bool) -> None:
    path = unended(Talk().turns("one").prompt("two").answer(ANSWER).save(claude))
    keep(path, final=final)
    before = store.branches(SESSION)
    if lose:
        store.paths.cursor(SESSION).unlink()
    assert not keep(path, final=final).changed
    assert store.branches(SESSION) == before


@pytest.mark.parametrize("lose", [False, True])
@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("said", [ANSWER, f"The token is {SECRET}."])
def test_its_newline_comes(keep: Keep, store: Store, claude: Path, lose: bool, final: bool, said: str) -> None:
    """Alone, and then with more; each time the file comes back."""
    talk = Talk().turns("one").prompt("two").answer(said)
    size = len(talk.data)
    path = unended(talk.save(claude))
    title = b'{"type":"custom-title","customTitle":"t"}'
    rest = talk.stop_lines().turns("three").data[size:-1]
    for more, ends in ((b"", False), (b"\n", False), (title, True), (b"\n", True), (rest, True), (b"\n", True)):
        append(path, more)
        keep(path, final=final or ends)
        restored = restore.rebuild_file(store, SESSION)
        assert restored.data == path.read_bytes().replace(SECRET.encode(), REDACTED.encode())
        assert restored.missing == 0
        if lose:
            store.paths.cursor(SESSION).unlink()
    body = store.lines(store.branches(SESSION)[SESSION], 2).body
    assert [line.count(b'"assistant"') for line in body if b'"assistant"' in line] == [2]


def test_more_comes_with_its_newline_and_every_time_without_one(sessgit: Shell) -> None:
    """A writer that begins each line with the newline of the one before: no more is read than what is new."""
    talk = sessgit.talk().turns("one")
    path = unended(sessgit.keep(talk))
    sessgit.out("log", SESSION)
    for number in range(2, 6):
        known = path.stat().st_size
        append(path, b"\n" + talk.turns(str(number)).data[known + 1 : -1])
        sessgit.out("log", SESSION)
        assert json.loads((sessgit.store / "state" / f"{SESSION}.json").read_text())["offset"] == path.stat().st_size
    assert len(run_git(sessgit.store, "log", "--format=%s", SESSION).splitlines()) == 6
    assert_exact(sessgit, path)


@pytest.mark.parametrize("imported", [False, True])
def test_the_client_goes_on_in_it_without_a_newline(sessgit: Shell, imported: bool) -> None:
    """As some versions do: what was a line is a part of one then. What is recorded stays, and the file comes back."""
    talk = answered(sessgit)
    size = len(talk.data)
    path = unended(sessgit.keep(talk))
    sessgit.out(*(["import"] if imported else ["log", SESSION]))
    append(path, talk.stop_lines().turns("three").data[size:])
    assert [turn["prompt"] for turn in sessgit.json("log", SESSION)["turns"]] == ["one", "two", "three"]
    assert ANSWER in sessgit.out("show", f"{SESSION}@2")
    assert_exact(sessgit, path)
    (sessgit.store / "state" / f"{SESSION}.json").unlink()
    before = refs(sessgit)
    sessgit("import")
    assert refs(sessgit) == before
    assert_exact(sessgit, path)


def test_the_client_goes_on_in_a_prompt_without_a_newline(sessgit: Shell) -> None:
    talk = sessgit.talk(style="2.0").turns("one").prompt("two")
    size = len(talk.data)
    path = unended(sessgit.keep(talk))
    sessgit.out("log", SESSION)
    append(path, talk.answer("Two.").turns("three").data[size:])
    sessgit.out("log", SESSION)
    assert_exact(sessgit, path)


def test_it_gets_another_end_of_line(sessgit: Shell) -> None:
    path = unended(sessgit.keep(answered(sessgit)))
    sessgit.out("log", SESSION)
    append(path, b"\r\n")
    assert_exact(sessgit, path)


def test_a_copy_without_the_newline_changes_nothing(sessgit: Shell) -> None:
    path = sessgit.recorded(answered(sessgit))
    before = refs(sessgit)
    copy = sessgit.home / "copy" / path.name
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes()[:-1])
    sessgit.out("import", str(copy.parent))
    assert refs(sessgit) == before
    assert_exact(sessgit, path)


# Forks, merges, other machines


@pytest.mark.parametrize("more", [b"", b"\n"])
def test_a_fork_by_the_client_whose_file_ends_so(sessgit: Shell, more: bytes) -> None:
    talk = answered(sessgit)
    sessgit.recorded(talk)
    fork = talk.fork_session(THEIRS)
    path = unended(sessgit.keep(fork))
    sessgit.out("import")
    found = sessgit.home / "fork.jsonl"
    sessgit.out("restore", THEIRS, "--output", str(found))
    assert found.read_bytes() == path.read_bytes()
    found.unlink()
    if more:
        append(path, more + fork.stop_lines().turns("three").data[path.stat().st_size + 1 :])
        sessgit.out("import")
        sessgit.out("restore", THEIRS, "--output", str(found))
        assert found.read_bytes() == path.read_bytes()
    assert "no damage" in sessgit.out("verify", "--deep")


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("tail", [False, True])
def test_a_merge_appends_behind_it(sessgit: Shell, gone: bool, tail: bool) -> None:
    diverged(sessgit)
    path = transcript(sessgit)
    kept = path.read_bytes().splitlines(keepends=True)
    if not tail:
        kept = kept[: max(n for n, line in enumerate(kept, start=1) if b'"type":"assistant"' in line)]
    for one in sessgit.store.glob(f"state/{SESSION}*"):
        one.unlink()
    run_git(sessgit.store, "update-ref", "-d", f"refs/heads/{SESSION}")
    path.write_bytes(b"".join(kept)[:-1])
    sessgit.out("import")
    before = path.read_bytes()
    if gone:
        path.unlink()
    assert sessgit("merge", THEIRS, "--into", SESSION).code == 0
    if gone:
        sessgit.out("restore", SESSION)
    assert path.read_bytes().startswith(before + b'\n{"')
    assert_exact(sessgit, path)
    if not gone:
        sessgit.out("undo")
        assert path.read_bytes() == before
        assert_exact(sessgit, path)
        operation = sessgit.json("ops")["operations"][0]["id"]
        sessgit.out("undo", operation)
        assert path.read_bytes().startswith(before + b'\n{"')
        assert_exact(sessgit, path)


def test_it_is_known_to_another_machine(tmp_path: Path) -> None:
    with pair(tmp_path) as (here, there):
        talk = Talk().turns("one").prompt("two").answer(ANSWER)
        path = unended(talk.save(here.place))
        here.record_file()
        here.push()
        there.pull()
        assert restore.rebuild_file(there.store, SESSION).data == path.read_bytes()


# What lies beside


@pytest.mark.parametrize("later", [False, True])
def test_the_last_line_of_a_subagent(sessgit: Shell, later: bool) -> None:
    """Its newline comes while its turn runs, or in a later one."""
    talk = sessgit.talk().prompt("one").tool("Task", {}, "agentId: a1").answer("One.")
    path = sessgit.keep(talk)
    agent = unended(subagent(path.parent, talk, "a1", "looking", "found"))

    def assert_same() -> None:
        sessgit.out("import")
        data = agent.read_bytes()
        agent.unlink()
        sessgit.out("restore", SESSION)
        assert agent.read_bytes() == data
        assert "no damage" in sessgit.out("verify", "--deep")

    sessgit.out("log", SESSION)
    shown = json.loads(sessgit.out("show", f"{SESSION}@1", "--json"))["turn"]
    assert [(one["name"], one["lines"]) for one in shown["subagents"]] == [("a1", 2)]
    assert_same()
    sessgit.out("import")
    before = refs(sessgit)
    sessgit.out("import")
    (sessgit.store / "state" / f"{SESSION}.json").unlink()
    sessgit.out("import")
    assert refs(sessgit) == before
    append(agent, b"\n")
    if later:
        sessgit.keep(talk.stop_lines().turns("two"))
    subagent(path.parent, talk, "a1", "at last")
    sessgit.keep(talk.stop_lines())
    assert_same()


# Nothing says that it has gone on


@pytest.fixture
def old(sessgit: Shell) -> Path:
    """As a person or another program wrote it, long ago."""
    path = unended(sessgit.keep(sessgit.talk().turns("one")))
    sessgit.out("import")
    os.utime(path, (LATER - DAY,) * 2)
    sessgit.now = LATER
    return path


def test_an_old_one_is_archived(sessgit: Shell, old: Path) -> None:
    found = sessgit.json("archive", "--older-than", "30d", "--dry-run")
    assert (found["archived"], found["skipped"]) == ([SESSION], [])
    assert sessgit.json("restore", SESSION, "--verify")["same"]
    append(old, b"\n" + sessgit.talk(OTHER).turns("more").lines[0] + b"\n")
    os.utime(old, (LATER - DAY,) * 2)
    found = sessgit.json("archive", "--older-than", "30d", "--dry-run")
    assert (found["archived"], found["skipped"]) == ([], [{"id": SESSION, "reason": "with unrecorded turns"}])


def test_one_that_is_archived_has_not_gone_on(sessgit: Shell, old: Path) -> None:
    sessgit.out("archive", SESSION)
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 1 was already imported\n"
    append(old, b"\n")
    assert sessgit.json("import")["archived"] == 1


@pytest.mark.parametrize("rest", [b"", b'{"torn":'])
def test_it_counts_as_recorded(sessgit: Shell, rest: bytes) -> None:
    path = unended(sessgit.keep(sessgit.talk().turns("one")))
    append(path, b"\n" * bool(rest) + rest)
    sessgit.out("import")
    os.utime(path, (LATER - DAY,) * 2)
    sessgit.now = LATER
    assert "all recorded" in sessgit.out("status", SESSION)
    os.utime(path, (LATER - 29 * DAY,) * 2)
    assert sessgit.json("status")["deleting"]["unrecorded"] == 0


def test_a_command_records_it_once(sessgit: Shell) -> None:
    path = unended(sessgit.keep(answered(sessgit)))
    os.utime(path, (time.time(),) * 2)
    sessgit.out("log", SESSION)
    cursor = sessgit.store / "state" / f"{SESSION}.json"
    read = cursor.stat().st_mtime_ns
    sessgit.out("log", SESSION)
    assert cursor.stat().st_mtime_ns == read
