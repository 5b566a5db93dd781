"""`sessgit merge`: what it refuses, and what becomes of one that was interrupted."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kept import begins
from merging import THEIRS, THIRD, assert_whole, authored, diverged, git, prompts, tip, transcript
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.agents import agent_files
from sessgit.agents.claude.home import project_folder
from sessgit.store import layout, locks
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store


@begins
def sessgit(shell: Shell) -> None:
    diverged(shell)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("5e55", "--into", "5e55"), 2, "both addresses name 5e551011."),
        (("5e55@1", "--into", SESSION), 2, "both addresses name 5e551011."),
        (("beef", "--into", "5e55"), 4, "no conversation starts with “beef”."),
        (("e90c", "--into", "5e55@2"), 2, "a merge appends after the last turn of 5e551011, not after turn 2."),
        (("e90c@9", "--into", "5e55"), 4, "e90c55aa has no turn 9; it has 4 turns."),
        (("e90c@3.1", "--into", "5e55"), 2, "only whole turns can be merged."),
        (("e90c@0", "--into", "5e55"), 2, "e90c55aa has no turns to merge."),
        (("e90c", "--into", "5e55", "--turns", "4-9"), 4, "e90c55aa has 4 turns here, there is no turn 9."),
        (("e90c", "--into", "5e55", "--turns", "2"), 2, "turn 2 of e90c55aa is already in 5e551011."),
        (("e90c", "--into", "5e55", "--turns", "4-3"), 2, "“4-3” counts backwards."),
        (("e90c", "--into", "5e55", "--turns", "x"), 2, "“x” is not a turn or a range of turns."),
        (("e90c", "--into", "5e55", "--mode", "pick"), 2, "--mode pick needs --turns."),
        (("e90c", "--into", "5e55", "--mode", "graft", "--turns", "4"), 2, "--turns works only with --mode pick."),
        (("e90c", "--into", "5e55", "--mode", "graft", "--with", "cat"), 2, "--with rewrites a summary"),
        (("e90c", "--into", "5e55", "--ours", "--theirs"), 2, "--ours and --theirs cannot be combined."),
        (("e90c", "--into", "5e55", "--set", "colour=red"), 2, "--set “colour=red” is not KEY=VALUE with a known KEY."),
        (("e90c", "--into", "5e55", "--set", "stage=late"), 2, "“late” is not a stage."),
        (("e90c", "--into", "5e55", "--new", "a/b"), 2, "“a/b” cannot be a name."),
    ],
)
def test_what_is_refused(sessgit: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(f"Error: {error}"), done.err
    assert "\nHint: " in done.err
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert len(sessgit.json("ls")["sessions"]) == 2


def test_nothing_is_merged_into_what_a_rewind_left(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(THIRD).turns("a", "b").rewind(1).turns("c"))
    done = sessgit("merge", "e90c", "--into", f"{THIRD}.r-a0000002")
    assert (done.code, done.err) == (
        2,
        "Error: 77be01d3.r-a0000002 is a branch left behind by a rewind: you cannot merge into it.\n"
        "Hint: `sessgit fork 77be01d3.r-a0000002` makes it a conversation.\n",
    )


def test_nothing_is_merged_into_what_is_archived(sessgit: Shell) -> None:
    head = tip(sessgit)
    git(sessgit, "update-ref", f"refs/archive/{SESSION}", head)
    git(sessgit, "update-ref", "-d", f"refs/heads/{SESSION}")
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 is archived.\nHint: `sessgit unarchive 5e551011` unarchives it.\n",
    )
    assert sessgit("merge", SESSION, "--into", "e90c").code == 0  # what is archived can be brought back


def test_a_client_that_holds_ours_is_left_alone(sessgit: Shell) -> None:
    notes = sessgit.config / "sessions"
    notes.mkdir()
    (notes / "1.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION, "cwd": str(sessgit.project)}))
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 is open in a client that would not see the appended turns.\n"
        "Hint: Close it first. Or use `--new` to merge into a new conversation.\n",
    )
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert sessgit("merge", "e90c", "--into", "5e55", "--new").code == 0


@pytest.mark.parametrize("new", [(), ("--new",), ("--new", "both")])
def test_what_is_in_already_is_told_whoever_holds_ours(sessgit: Shell, new: tuple[str, ...]) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    notes = sessgit.config / "sessions"
    notes.mkdir()
    (notes / "1.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION, "cwd": str(sessgit.project)}))
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55", *new)
    assert (done.code, done.out, done.err) == (0, "", "e90c55aa is already merged into 5e551011.\n")
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert len(sessgit.json("ls")["sessions"]) == 2


def test_a_turn_that_is_in_ours_is_compared_with_ours(sessgit: Shell) -> None:
    assert sessgit("merge", "e90c", "--into", "5e55", "--turns", "2").err == (
        "Error: turn 2 of e90c55aa is already in 5e551011.\nHint: `sessgit diff 5e551011 e90c55aa` shows what is not.\n"
    )


def test_a_file_that_ends_in_mid_line_is_left_alone(sessgit: Shell) -> None:
    with transcript(sessgit).open("ab") as file:
        file.write(b'{"type":"us')
    before = transcript(sessgit).read_bytes()
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, transcript(sessgit).read_bytes()) == (3, before)
    assert done.err.startswith("Error: the file of 5e551011 has unrecorded lines, or ends in the middle of")
    assert sessgit("merge", "e90c", "--into", "5e55", "--new").code == 0


def test_a_file_that_is_ahead_is_left_alone_where_nothing_may_be_recorded(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transcript(sessgit).open("ab") as file:
        file.write(b'{"type":"mode","mode":"normal"}\n')
    monkeypatch.setenv("SESSGIT_OFF", "1")
    before = transcript(sessgit).read_bytes()
    assert sessgit("merge", "e90c", "--into", "5e55").code == 3
    assert transcript(sessgit).read_bytes() == before


def test_theirs_that_is_gone_or_cannot_be_read(sessgit: Shell) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    sessgit.recorded(sessgit.talk(THIRD).turns("far"))
    sessgit.out("delete", THIRD, "--yes")
    done = sessgit("merge", THIRD, "--into", SESSION)
    assert (done.code, done.err.partition("\n")[0]) == (4, "Error: 77be01d3 is not recorded: it was deleted here.")
    later(sessgit, THEIRS)
    done = sessgit("merge", THEIRS, "--into", SESSION)
    assert (done.code, done.err) == (
        5,
        "Error: the store is in format 2, this sessgit knows format 1.\nHint: Install a newer sessgit.\n",
    )
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


def later(sessgit: Shell, session: str) -> None:
    """The session is as a later sessgit would write it."""
    store, head = Store(sessgit.store), tip(sessgit, session)
    tree = store.repo.edit_tree(store.tree(head), {"format": (store.repo.write_blob(b"2\n"), False)})
    commit = store.repo.write_commit(tree, [head], f"later\n\nSession: {session}\nEvent: edit\n", 1)
    store.repo.move(layout.head_ref(session), head, commit)


def test_theirs_of_another_project_comes_too(sessgit: Shell) -> None:
    other = sessgit.home / "else"
    other.mkdir()
    talk = Talk(THIRD, cwd=str(other))
    talk.file.counts["a"] = 50
    talk.turns("far").save(project_folder(sessgit.config, str(other)))
    assert sessgit("import").code == 0
    sessgit.out("merge", THIRD, "--into", SESSION, "--mode", "graft")
    assert prompts(sessgit) == ["one", "two", "three", "far"]
    assert sessgit.json("log", SESSION)["session"]["project"] == str(sessgit.project)
    assert_whole(sessgit)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("kill -9 $$", "“kill -9 $$” was killed by signal 9."),
        ("yes | head -c 50000000", "“yes | head -c 50000000” printed more than 4 MiB."),
        ("cat /nowhere", "“cat /nowhere” exited with code 1."),
        ("printf ' \\n'", "“printf ' \\n'” printed nothing."),
    ],
)
@pytest.mark.parametrize("new", [(), ("--new",)])
def test_a_command_that_does_not_retell(sessgit: Shell, command: str, why: str, new: tuple[str, ...]) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55", "--with", command, *new)
    assert (done.code, done.err.partition("\n")[0]) == (1, f"Error: {why}")
    assert (transcript(sessgit).read_bytes(), tip(sessgit), sessgit.json("ops")["operations"]) == (before, head, [])


def test_a_command_that_does_not_read_what_it_gets(sessgit: Shell) -> None:
    talk = sessgit.talk(THIRD).prompt("long " * 100_000).answer("Yes.").stop_lines()
    talk.file.counts["a"] = 50
    sessgit.recorded(talk)
    sessgit.out("merge", THIRD, "--into", SESSION, "--with", "seq 100000")
    assert prompts(sessgit)[-1].startswith("Merged from 77be01d3")


def test_a_command_that_hangs_holds_nobody_up_and_is_interrupted(sessgit: Shell) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    command = [sys.executable, "-m", "sessgit", "merge", "e90c", "--into", "5e55", "--with", "echo > begun; sleep 60"]
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    begun = sessgit.project / "begun"
    while not begun.exists():
        assert running.poll() is None
        time.sleep(0.02)
    with locks.session_lock(StorePaths(sessgit.store), SESSION) as held:
        assert held
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(60) == 130
    assert (transcript(sessgit).read_bytes(), tip(sessgit), sessgit.json("ops")["operations"]) == (before, head, [])


def test_a_client_that_holds_ours_is_found_before_a_command_retells(sessgit: Shell) -> None:
    notes = sessgit.config / "sessions"
    notes.mkdir()
    (notes / "1.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION, "cwd": str(sessgit.project)}))
    assert sessgit("merge", "e90c", "--into", "5e55", "--with", "echo > begun; cat").code == 3
    assert not (sessgit.project / "begun").exists()


@pytest.mark.parametrize("mode", [(), ("--mode", "graft")])
@pytest.mark.parametrize("room", [0, 1, 400])
def test_a_full_disk(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...], room: int) -> None:
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    append, limits = agent_files.append, resource.getrlimit(resource.RLIMIT_FSIZE)

    def full(path: Path, size: int, data: bytes) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, limits[1]))
        try:
            append(path, size, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with monkeypatch.context() as patch:
        patch.setattr(agent_files, "append", full)
        done = sessgit("merge", "e90c", "--into", "5e55", *mode)
    assert done.code == 1
    assert done.err.startswith(f"Error: cannot append to {transcript(sessgit)}: ")
    assert (transcript(sessgit).read_bytes(), tip(sessgit), sessgit.json("ops")["operations"]) == (before, head, [])
    assert not list((sessgit.store / "state").glob("*.append"))
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    assert_whole(sessgit)


# Interrupted


STEPS = [
    "store.recorder_state.save_intent",
    "agents.agent_files.append",
    "branch.merge.record",
    "branch.merge._is_only_intent",
    "store.operations.perform_operation",
    "store.operations.append",
    "store.backend.Repository.move",
    "store.recorder_state.delete_intent",
]
"""What a merge calls one after the other."""


class KilledError(Exception):
    """The process ends here."""


def _killed(*_: object, **__: object) -> None:
    raise KilledError


@pytest.mark.parametrize("mode", [(), ("--mode", "graft"), ("--turns", "3")])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_a_second_run_completes_it(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...], step: str
) -> None:
    sessgit.out("edit", THEIRS, "--label", "fast")
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    with monkeypatch.context() as patch:
        patch.setattr(f"sessgit.{step}", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 70
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    turns = {(): 4, ("--mode", "graft"): 5, ("--turns", "3"): 4}[mode]
    assert len(prompts(sessgit)) == turns
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split()[1] == tip(sessgit, THEIRS)
    assert authored(sessgit)["labels"] == ["fast"]
    origins = git(sessgit, "log", "--first-parent", "--format=%(trailers:key=Origin,valueonly)", SESSION, "--")
    assert len(origins.split()) == turns - 2
    assert_whole(sessgit)
    # One operation tells of it, from before the first of its turns on, and takes all of it back.
    done = [(one["command"], one["standing"], one["refs"][0]["before"]) for one in sessgit.json("ops")["operations"]]
    assert [one for one in done if one[1] == "done"] == [("merge", "done", head), ("edit", "done", done[-1][2])]
    assert not list((sessgit.store / "state").glob("*.append"))
    assert sessgit("undo").code == 0
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


@pytest.mark.parametrize("step", STEPS)
def test_a_merge_that_was_killed_is_told_rightly_by_whoever_records_it(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(f"sessgit.{step}", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", "--mode", "graft").code == 70
    turns = sessgit.json("log", SESSION)["turns"][3:]
    told = [turn["event"] for turn in turns]
    assert told in ([], ["graft", "graft"])
    assert sessgit.json("ops")["operations"] == [] or sessgit.json("ops")["operations"][0]["standing"] in (
        "not done",
        "done",
    )
    wanted = "--format=%(trailers:key=Event,valueonly)%(trailers:key=Origin,valueonly)"
    if told and sessgit.json("ops")["operations"][:1] == []:
        assert git(sessgit, "log", "--first-parent", "-2", wanted, SESSION, "--").split() == [
            "graft", f"{THEIRS}@4", "graft", f"{THEIRS}@3",
        ]  # fmt: skip


@pytest.mark.parametrize("mode", [(), ("--mode", "graft")])
@pytest.mark.parametrize("written", [1, 300, 1500, -1])
def test_a_half_appended_file_is_completed(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...], written: int
) -> None:
    append = agent_files.append

    def some(path: Path, size: int, data: bytes) -> None:
        append(path, size, data[:written])
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(agent_files, "append", some)
        assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 70
    assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 0
    assert len(prompts(sessgit)) == (5 if mode else 4)
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split()[1] == tip(sessgit, THEIRS)
    assert not list((sessgit.store / "state").glob("*.append"))
    assert_whole(sessgit)
