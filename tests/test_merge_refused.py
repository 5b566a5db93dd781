"""`sessgit merge`: what it refuses, and what becomes of one that was interrupted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from merging import THEIRS, THIRD, assert_whole, authored, git, parted, prompts, tip, transcript
from shell import Shell
from transcripts import SESSION


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return parted(Shell(monkeypatch, capsys))


# What is refused


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("5e55", "--into", "5e55"), 2, "both addresses name 5e551011."),
        (("5e55@1", "--into", SESSION), 2, "both addresses name 5e551011."),
        (("beef", "--into", "5e55"), 4, "no conversation starts with “beef”."),
        (("e90c", "--into", "5e55@2"), 2, "a merge goes on behind the last turn of 5e551011, not behind turn 2."),
        (("e90c@9", "--into", "5e55"), 4, "e90c55aa has 4 turns, there is no turn 9."),
        (("e90c@3.1", "--into", "5e55"), 2, "a merge takes whole turns, no cells."),
        (("e90c@0", "--into", "5e55"), 2, "e90c55aa has no turn that could be brought back."),
        (("e90c", "--into", "5e55", "--turns", "4-9"), 4, "e90c55aa has 4 turns, there is no turn 5."),
        (("e90c", "--into", "5e55", "--turns", "2"), 2, "turn 2 of e90c55aa is in 5e551011 already."),
        (("e90c", "--into", "5e55", "--turns", "4-3"), 2, "“4-3” names no turns."),
        (("e90c", "--into", "5e55", "--turns", "x"), 2, "“x” names no turns."),
        (("e90c", "--into", "5e55", "--mode", "pick"), 2, "--mode pick needs turns."),
        (("e90c", "--into", "5e55", "--mode", "graft", "--turns", "4"), 2, "--turns names the turns to pick."),
        (("e90c", "--into", "5e55", "--mode", "graft", "--with", "cat"), 2, "--with retells a summary"),
        (("e90c", "--into", "5e55", "--ours", "--theirs"), 2, "--ours and --theirs contradict each other."),
        (("e90c", "--into", "5e55", "--set", "colour=red"), 2, "“colour=red” sets nothing that a merge decides."),
        (("e90c", "--into", "5e55", "--set", "stage=late"), 2, "“late” is no stage."),
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
    assert len(sessgit.json("ls")) == 2


def test_nothing_is_merged_into_what_a_rewind_left(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(THIRD).turns("a", "b").rewind(1).turns("c"))
    done = sessgit("merge", "e90c", "--into", f"{THIRD}.r-a0000002")
    assert (done.code, done.err) == (
        2,
        f"Error: {THIRD}.r-a0000002 is what a rewind left behind: nothing is merged into it.\n"
        f"Hint: sessgit fork {THIRD}.r-a0000002 makes a conversation of it.\n",
    )


def test_nothing_is_merged_into_what_is_archived(sessgit: Shell) -> None:
    head = tip(sessgit)
    git(sessgit, "update-ref", f"refs/archive/{SESSION}", head)
    git(sessgit, "update-ref", "-d", f"refs/heads/{SESSION}")
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, done.err.partition("\n")[0]) == (3, "Error: 5e551011 is archived.")
    assert sessgit("merge", SESSION, "--into", "e90c").code == 0  # what is archived can be brought back


def test_a_client_that_holds_ours_is_left_alone(sessgit: Shell) -> None:
    notes = sessgit.config / "sessions"
    notes.mkdir()
    (notes / "1.json").write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION, "cwd": str(sessgit.project)}))
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 is open in a client, which would not see what is appended to its file.\n"
        "Hint: Close it first. --new brings it together in a new conversation and leaves this one as it is.\n",
    )
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)
    assert sessgit("merge", "e90c", "--into", "5e55", "--new").code == 0


def test_a_file_that_ends_in_mid_line_is_left_alone(sessgit: Shell) -> None:
    with transcript(sessgit).open("ab") as file:
        file.write(b'{"type":"us')
    before = transcript(sessgit).read_bytes()
    done = sessgit("merge", "e90c", "--into", "5e55")
    assert (done.code, transcript(sessgit).read_bytes()) == (3, before)
    assert done.err.startswith("Error: the file of 5e551011 holds more than is recorded, or ends in the middle of")
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


# Interrupted


class KilledError(Exception):
    """The process ends here."""


def _killed(*_: object, **__: object) -> None:
    raise KilledError


@pytest.mark.parametrize("mode", [(), ("--mode", "graft"), ("--turns", "3")])
@pytest.mark.parametrize("step", ["operations.perform", "writing.record", "writing._append", "writing._forget"])
def test_killed_at_any_step_a_second_run_completes_it(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...], step: str
) -> None:
    sessgit.out("edit", THEIRS, "--label", "fast")
    module, _, name = step.rpartition(".")
    where = "sessgit.ops.operations" if module == "operations" else "sessgit.ops.merging.writing"
    with monkeypatch.context() as patch:
        patch.setattr(f"{where}.{name}", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 70
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    turns = {(): 4, ("--mode", "graft"): 5, ("--turns", "3"): 4}[mode]
    assert len(prompts(sessgit)) == turns
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split()[1] == tip(sessgit, THEIRS)
    assert authored(sessgit)["labels"] == ["fast"]
    assert_whole(sessgit)


@pytest.mark.parametrize("mode", [(), ("--mode", "graft")])
@pytest.mark.parametrize("written", [1, 300, 1500, -1])
def test_a_half_appended_file_is_completed(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, mode: tuple[str, ...], written: int
) -> None:
    from sessgit.ops.merging import writing

    append = writing._append

    def some(path: Path, size: int, data: bytes) -> None:
        append(path, size, data[:written])
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(writing, "_append", some)
        assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 70
    assert sessgit("merge", "e90c", "--into", "5e55", *mode).code == 0
    assert len(prompts(sessgit)) == (5 if mode else 4)
    assert git(sessgit, "show", "-s", "--format=%P", SESSION).split()[1] == tip(sessgit, THEIRS)
    assert not list((sessgit.store / "state").glob("*.append"))
    assert_whole(sessgit)
