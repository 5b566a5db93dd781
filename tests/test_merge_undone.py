"""A merge taken back: the conversation and the client's file are as before, and come back where that is undone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kept import begins
from merging import NEW, THEIRS, THIRD, assert_whole, authored, diverged, git, lines, prompts, tip, transcript
from shell import Shell
from transcripts import SESSION

from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import locks, operations, refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store

MODES = [(), ("--mode", "graft"), ("--turns", "4")]


@begins
def sessgit(shell: Shell) -> None:
    diverged(shell)


class KilledError(Exception):
    """The process ends here."""


def _killed(*_: object, **__: object) -> None:
    raise KilledError


def now(sessgit: Shell) -> tuple[bytes, str, list[str]]:
    """What a merge changes: the client's file, the head, and the turns."""
    said = prompts(sessgit)
    return transcript(sessgit).read_bytes(), tip(sessgit), said


@pytest.mark.parametrize("mode", MODES)
def test_all_is_as_before_and_can_be_done_again(sessgit: Shell, mode: tuple[str, ...]) -> None:
    before = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    after = now(sessgit)
    (done,) = sessgit.json("ops")["operations"]
    path = f"~/{transcript(sessgit).relative_to(sessgit.home)}"
    would = f"Would be undone: merge into {done['summary']}\nWould be restored: {path}\n"
    assert sessgit.out("undo", "--dry-run") == would
    assert now(sessgit) == after
    said = sessgit.out("undo").splitlines()
    assert said[:2] == [f"Undone: merge into {done['summary']}", f"Restored: {path}"]
    assert now(sessgit) == before
    assert_whole(sessgit)
    assert now(sessgit) == before
    assert [tip for ref, tip in refs.read_all(sessgit.store).items() if ref.startswith("refs/keep/")] == [after[1]]
    # Done again it is the same, and so is undone again.
    sessgit.out("merge", "e90c", "--into", "5e55", *mode)
    assert now(sessgit) == after
    assert [one["standing"] for one in sessgit.json("ops")["operations"]] == ["done", "done", "undone"]
    sessgit.out("undo")
    assert now(sessgit) == before


def test_what_the_operation_says(sessgit: Shell) -> None:
    before, head, _ = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55")
    (done,) = sessgit.json("ops")["operations"]
    moved = {"ref": f"refs/heads/{SESSION}", "before": head, "after": tip(sessgit)}
    assert (done["refs"], done["files"]) == ([moved], [])
    assert (done["appended"], done["cut"]) == ([str(transcript(sessgit))], [])
    (written,) = operations.read(StorePaths(sessgit.store))
    ((path, piece),) = written.wrote.appended.items()
    assert (path, piece.offset) == (str(transcript(sessgit)), len(before))
    assert piece.offset + piece.length == len(transcript(sessgit).read_bytes())
    undone = sessgit.json("undo")
    assert (undone["cut"], undone["appended"], undone["removed"]) == ([path], [], [])
    assert sessgit.json("ops")["operations"][0]["cut"] == [path]


def test_an_undo_is_undone(sessgit: Shell) -> None:
    before = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    after = now(sessgit)
    for _ in range(2):
        undo = sessgit.json("undo", sessgit.json("ops")["operations"][0]["id"])["operation_id"]
        assert now(sessgit) == before
        path = f"~/{transcript(sessgit).relative_to(sessgit.home)}"
        what = f"merge into 5e551011: 2 turns of {THEIRS[:8]}"
        would = sessgit.out("undo", undo, "--dry-run").splitlines()
        assert would[:2] == [f"Would be redone: {what}", f"Would append turns to: {path}"]
        lines = sessgit.out("undo", undo).splitlines()
        redo = sessgit.json("ops")["operations"][0]["id"]
        assert lines == [f"Redone: {what}", f"Turns appended to: {path}", f"Undo: sessgit undo {redo}"]
        assert now(sessgit) == after
        assert_whole(sessgit)
    origins = git(sessgit, "log", "--first-parent", "--format=%(trailers:key=Origin,valueonly)", "-3", SESSION, "--")
    assert origins.split() == [f"{THEIRS}@3-4", f"{THEIRS}@4", f"{THEIRS}@3"]


def test_an_undo_that_others_came_after_stays(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    undo = sessgit.json("undo")["operation_id"]
    say(sessgit, "and on")
    before = now(sessgit)
    done = sessgit("undo", undo)
    assert (done.code, done.err.partition("\n")[0]) == (
        3, f"Error: cannot undo “undo: 5e551011: 2 turns of {THEIRS[:8]}”: 5e551011 has changed since then.",
    )  # fmt: skip
    assert now(sessgit) == before


def say(sessgit: Shell, prompt: str, session: str = SESSION) -> None:
    """The client goes on."""
    leaf = next(line["uuid"] for line in reversed(lines(sessgit, session)) if line.get("uuid"))
    line = {
        "type": "user", "uuid": f"a00{prompt.encode().hex()[:5]}", "parentUuid": leaf,
        "timestamp": "2026-03-01T12:30:00.000Z", "message": {"role": "user", "content": prompt}, "sessionId": session,
    }  # fmt: skip
    with transcript(sessgit, session).open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.parametrize("recorded", [False, True])
def test_where_the_client_went_on_nothing_is_taken_back(sessgit: Shell, recorded: bool) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    say(sessgit, "and on")
    if recorded:
        sessgit.out("log", SESSION)
    before, head = transcript(sessgit).read_bytes(), tip(sessgit)
    done = sessgit("undo")
    named = "5e551011" if recorded else transcript(sessgit)
    assert (done.code, done.out, done.err) == (
        3, "", f"Error: cannot undo “5e551011: a summary of 2 turns of {THEIRS[:8]}”: {named} has changed since then.\n"
        "Hint: Nothing was changed. `sessgit ops` lists all operations.\n",
    )  # fmt: skip
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (before, head)


def test_a_line_that_was_changed_is_left_alone(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    data = transcript(sessgit).read_bytes()
    transcript(sessgit).write_bytes(data.replace(b"faster", b"slower"))
    assert sessgit("undo").code == 3
    assert transcript(sessgit).read_bytes() == data.replace(b"faster", b"slower")


@pytest.mark.parametrize("again", [False, True])
def test_a_client_that_holds_it_is_left_alone(sessgit: Shell, again: bool) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    wanted = [sessgit.json("undo")["operation_id"]] if again else []
    before = now(sessgit)
    (sessgit.config / "sessions").mkdir()
    note = {"pid": os.getpid(), "sessionId": SESSION, "cwd": str(sessgit.project)}
    (sessgit.config / "sessions" / "1.json").write_text(json.dumps(note))
    for how in (["--dry-run"], []):
        done = sessgit("undo", *how, *wanted)
        assert (done.code, done.err) == (
            3,
            "Error: 5e551011 is open in a client that would not see the change.\n"
            "Hint: Nothing was changed. Close it first.\n",
        )
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == before[:2]


def let_go(sessgit: Shell) -> None:
    """The agent says that the session has ended."""
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    record(Context(index), TranscriptSource(transcript(sessgit), SESSION, sessgit.config, final=True))
    index.close()


def test_that_the_agent_has_let_go_is_no_change(sessgit: Shell) -> None:
    say(sessgit, "more")
    before = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55")
    let_go(sessgit)
    assert git(sessgit, "log", "-1", "--format=%s", SESSION) == "end: 5 turns"
    undo = sessgit.json("undo")["operation_id"]
    assert now(sessgit) == before
    # The agent's letting go of what it was before is no change either.
    let_go(sessgit)
    assert git(sessgit, "log", "-1", "--format=%s", SESSION) == "end: 4 turns"
    sessgit.out("undo", undo)
    assert len(prompts(sessgit)) == 5
    assert_whole(sessgit)


def test_a_file_that_is_gone_is_no_hindrance(sessgit: Shell) -> None:
    before = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    after = now(sessgit)
    transcript(sessgit).unlink()
    undo = sessgit.json("undo")
    assert (undo["cut"], undo["left"]) == ([], [])
    sessgit.out("restore", SESSION)
    assert now(sessgit) == before
    transcript(sessgit).unlink()
    sessgit.out("undo", undo["operation_id"])
    sessgit.out("restore", SESSION)
    assert now(sessgit) == after


def test_merged_while_the_file_was_gone_and_undone_after_it_came_back(sessgit: Shell) -> None:
    before = now(sessgit)
    transcript(sessgit).unlink()
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    sessgit.out("restore", SESSION)
    after = now(sessgit)
    undo = sessgit.json("undo")
    assert now(sessgit) == before
    assert undo["cut"] == [str(transcript(sessgit))]
    sessgit.out("undo", undo["operation_id"])
    assert now(sessgit) == after


def test_what_lay_beside_the_turns_goes_too(sessgit: Shell) -> None:
    talk = sessgit.talk(THIRD).prompt("count").tool("Bash", {"command": "x"}, "see toolu_big.txt").answer("Done.")
    folder = transcript(sessgit).parent / THIRD
    (folder / "tool-results").mkdir(parents=True)
    (folder / "tool-results" / "toolu_big.txt").write_text("much")
    sessgit.recorded(talk.stop_lines())
    sessgit.out("pick", f"{THIRD}@1", "--into", "e90c")
    own = transcript(sessgit).parent / THEIRS / "tool-results" / "toolu_big.txt"
    assert own.read_text() == "much"
    undone = sessgit.json("undo")
    assert undone["removed"] == [str(own)]
    assert not own.exists()
    sessgit.out("undo", undone["operation_id"])
    sessgit.out("restore", THEIRS)
    assert own.read_text() == "much"


def test_a_new_conversation_goes_as_a_whole(sessgit: Shell) -> None:
    before = refs.read_all(sessgit.store)
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft", "--new", "both")
    path, head = transcript(sessgit, NEW), tip(sessgit, NEW)
    data = path.read_bytes()
    (done,) = sessgit.json("ops")["operations"]
    assert (done["command"], done["standing"], done["files"]) == ("merge", "done", [str(path)])
    assert done["refs"] == [{"ref": f"refs/heads/{NEW}", "before": None, "after": head}]
    undo = sessgit.json("undo")
    assert undo["removed"] == [str(path)]
    assert not path.exists()
    assert refs.read_all(sessgit.store) == {**before, f"refs/keep/{undo['operation_id']}-1": head}
    assert sessgit("undo").code == 4
    sessgit.out("undo", undo["operation_id"])
    sessgit.out("restore", NEW)
    assert (path.read_bytes(), tip(sessgit, NEW)) == (data, head)
    assert_whole(sessgit, NEW)


def test_a_pick_into_a_new_conversation_goes_as_a_whole(sessgit: Shell) -> None:
    sessgit.out("pick", "e90c@3", "--into", "5e55", "--new")
    path = transcript(sessgit, NEW)
    assert [one["command"] for one in sessgit.json("ops")["operations"]] == ["pick"]
    assert sessgit("undo").code == 0
    assert not path.exists()
    assert {session["id"] for session in sessgit.json("ls")["sessions"]} == {THEIRS, SESSION}


def test_a_new_conversation_that_was_never_finished_is_a_fork(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sessgit.branch.merge.record", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", "--new").code == 70
    assert [(one["command"], one["standing"]) for one in sessgit.json("ops")["operations"]] == [("fork", "done")]


# Interrupted


STEPS = [
    "agents.agent_files.cut",
    "store.recorder_state.reset_cursor",
    "branch.undo.perform_operation",
    "store.operations.append",
    "store.backend.Repository.move",
    "store.operations.move_refs",
    "store.recorder_state.delete_intent",
]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_a_second_undo_completes_it(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, step: str, recorded: bool
) -> None:
    before = now(sessgit)
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    after = now(sessgit)
    with monkeypatch.context() as patch:
        patch.setattr(f"sessgit.{step}", _killed)
        done = sessgit("undo").code
        assert done == (0 if step == "store.backend.Repository.move" else 70)
    assert transcript(sessgit).read_bytes() in (before[0], after[0])
    if recorded:
        assert prompts(sessgit) in (before[2], after[2])
        assert tip(sessgit) in (before[1], after[1])
    again = [one["standing"] for one in sessgit.json("ops")["operations"] if one["command"] == "merge"]
    assert again == (["done"] if tip(sessgit) == after[1] else ["undone"])
    if tip(sessgit) == after[1]:
        assert sessgit("undo").code == 0
    assert now(sessgit) == before
    assert_whole(sessgit)


@pytest.mark.parametrize(
    "step", ["agents.agent_files.append", "store.recorder_state.reset_cursor", "store.operations.append"]
)
def test_killed_while_it_is_brought_back_it_is_merged_again(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    after = now(sessgit)
    undo = sessgit.json("undo")["operation_id"]
    with monkeypatch.context() as patch:
        patch.setattr(f"sessgit.{step}", _killed)
        assert sessgit("undo", undo).code == 70
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    data, head, said = now(sessgit)
    assert (data, said) == (after[0], after[2])
    origins = "--format=%(trailers:key=Event,valueonly)%(trailers:key=Origin,valueonly)"
    told = [git(sessgit, "log", "--first-parent", "--skip=1", "-2", origins, one, "--") for one in (head, after[1])]
    assert told[0] == told[1]
    assert git(sessgit, "show", "-s", "--format=%P", head).split()[1] == tip(sessgit, THEIRS)
    assert_whole(sessgit)


def test_what_a_person_said_after_an_interrupted_merge_is_not_taken_back(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sessgit.store.operations.perform_operation", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", "--mode", "graft").code == 70
    say(sessgit, "and on")
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    data = transcript(sessgit).read_bytes()
    assert prompts(sessgit)[-3:] == ["put the tokens into a trie", "measure both", "and on"]
    assert sessgit("undo").code == 0
    assert transcript(sessgit).read_bytes() == data
    assert prompts(sessgit)[-1] == "and on"
    assert len(git(sessgit, "show", "-s", "--format=%P", SESSION).split()) == 1


def test_another_merge_takes_back_nothing_of_one_that_was_interrupted(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork = sessgit.json("fork", SESSION)["id"]
    sessgit.out("edit", fork, "--label", "fast")
    with monkeypatch.context() as patch:
        patch.setattr("sessgit.store.operations.perform_operation", _killed)
        assert sessgit("merge", "e90c", "--into", "5e55", "--mode", "graft").code == 70
    interrupted = now(sessgit)
    sessgit.out("merge", fork, "--into", SESSION)
    assert authored(sessgit)["labels"] == ["fast"]
    sessgit.out("undo")
    assert now(sessgit) == interrupted


def test_while_a_recorder_is_at_work_nothing_is_taken_back(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    after = now(sessgit)
    monkeypatch.setattr("sessgit.branch.file_append._LOCK_WAIT", 0.01)
    with locks.session_lock(StorePaths(sessgit.store), SESSION):
        done = sessgit("undo")
    assert (done.code, done.err) == (7, "Error: a recorder is writing 5e551011.\nHint: Try again.\n")
    assert now(sessgit) == after


# What was written by an older or a strange hand


def change(sessgit: Shell, **keys: Any) -> None:
    journal_path = sessgit.store / "operations.jsonl"
    document = json.loads(journal_path.read_bytes())
    journal_path.write_text(json.dumps({**document, **keys}) + "\n")


def test_an_older_operation_takes_back_the_commit_alone(sessgit: Shell) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    head = tip(sessgit)
    document = json.loads((sessgit.store / "operations.jsonl").read_bytes())
    del document["appended"]
    document["refs"] = {f"refs/heads/{SESSION}": [tip(sessgit, f"{head}^"), head]}
    (sessgit.store / "operations.jsonl").write_text(json.dumps(document) + "\n")
    data = transcript(sessgit).read_bytes()
    assert sessgit("undo").code == 0
    assert (transcript(sessgit).read_bytes(), tip(sessgit)) == (data, tip(sessgit, f"{head}^"))
    assert sessgit.out("merge", "e90c", "--into", "5e55").startswith("5e551011  merged e90c55aa")
    assert len(prompts(sessgit)) == 5


@pytest.mark.parametrize(
    "appended",
    [[], {"a": []}, {"a": [1, 2]}, {"a": [-1, 2, "x"]}, {"a": [1, 0, "x"]}, {"a": [True, 2, "x"]}, {"a": [1, 2, 3]}],
)
def test_an_operation_that_makes_no_sense_counts_as_none(sessgit: Shell, appended: object) -> None:
    sessgit.out("merge", "e90c", "--into", "5e55")
    change(sessgit, appended=appended)
    assert sessgit.json("ops")["operations"] == []


def test_a_file_elsewhere_is_never_cut(sessgit: Shell, tmp_path: Path) -> None:
    import hashlib

    mine = tmp_path / "mine"
    mine.write_bytes(b"mine and more")
    proof = hashlib.sha256(b"more").hexdigest()
    sessgit.out("merge", "e90c", "--into", "5e55")
    outside = sessgit.config / ".." / ".." / mine.relative_to(mine.anchor)
    change(sessgit, appended={str(mine): [9, 4, proof], str(outside): [9, 4, proof]})
    assert sessgit.json("undo")["cut"] == []
    assert mine.read_bytes() == b"mine and more"


def test_what_people_said_is_taken_back_with_it(sessgit: Shell) -> None:
    sessgit.out("edit", THEIRS, "--label", "fast", "--stage", "shaping")
    sessgit.out("merge", "e90c", "--into", "5e55")
    assert authored(sessgit)["labels"] == ["fast"]
    sessgit.out("undo")
    assert (authored(sessgit)["labels"], authored(sessgit)["stage"]) == ([], "")


def test_a_fork_that_a_client_has_open_is_not_taken_back(sessgit: Shell) -> None:
    sessgit.out("fork", "5e55", "--at", "1")
    (sessgit.config / "sessions").mkdir()
    note = {"pid": os.getpid(), "sessionId": NEW, "cwd": str(sessgit.project)}
    (sessgit.config / "sessions" / "1.json").write_text(json.dumps(note))
    before = transcript(sessgit, NEW).read_bytes()
    done = sessgit("undo")
    assert (done.code, done.err) == (
        3, "Error: f0000001 is open in a client that would not see the change.\n"
        "Hint: Nothing was changed. Close it first.\n",
    )  # fmt: skip
    assert transcript(sessgit, NEW).read_bytes() == before


def test_what_could_not_be_flushed_is_not_there(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = now(sessgit)
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", _full)
        done = sessgit("merge", "e90c", "--into", "5e55", "--mode", "graft")
    assert (done.code, done.err.startswith("Error: cannot")) == (7, True), done
    assert now(sessgit) == before
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    assert_whole(sessgit)


def _full(_: int) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_file_that_was_cut_shorter_gets_nothing_appended(sessgit: Shell, recorded: bool) -> None:
    path = transcript(sessgit)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"\n", data.index(b'"two"')) + 1])
    if recorded:
        sessgit("log", SESSION)
    before = path.read_bytes()
    done = sessgit("merge", "e90c", "--into", "5e55", "--mode", "graft")
    assert (done.code, path.read_bytes()) == (3, before), done
    assert sessgit("restore", SESSION).code == 0
    sessgit.out("merge", "e90c", "--into", "5e55", "--mode", "graft")
    assert_whole(sessgit)
