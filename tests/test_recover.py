"""`sessgit recover`: what a killed client left behind is recorded, marked, and can be gone on with."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hooked import hooked, lie
from machines import arrived, on_another
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit import Store
from sessgit.check import recover
from sessgit.cli.commands import restore as recover_command
from sessgit.record import catch_up
from sessgit.store import layout, locks, recorder_state, refs

NOTHING = "Nothing needs to be recovered.\n"
THIRD = "5e551011-0000-4000-8000-000000000003"


def cut_in_a_call(talk: Talk) -> Talk:
    """The client was killed while a tool was at work: its result is in no file."""
    talk.prompt("run it").tool("Bash", {"command": "make"})
    talk.lines.pop()
    return talk


def state(sessgit: Shell, session: str = SESSION) -> tuple[str, str]:
    """The state that the store holds, and the last commit's event."""
    document = json.loads(run_git(sessgit.store, "show", f"{session}:session.json"))
    event = run_git(sessgit.store, "log", "-1", "--format=%(trailers:key=Event,valueonly)", session).strip()
    return document["metadata"]["state"], event


@pytest.fixture
def client(sessgit: Shell) -> Iterator[Any]:
    """A process that says of itself what a client says; `client.kill()` and it is gone, with its file left behind."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def says(sessgit: Shell, pid: int, session: str = SESSION, *, began: str = "") -> Path:
    began = began or (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    folder = sessgit.config / "sessions"
    folder.mkdir(exist_ok=True)
    path = folder / f"{pid}.json"
    document = {"pid": pid, "procStart": began, "sessionId": session, "cwd": str(sessgit.project), "status": "busy"}
    path.write_text(json.dumps(document))
    return path


def test_what_a_killed_client_left_is_recorded_and_marked(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    hooked(sessgit, talk)
    lie(sessgit.keep(cut_in_a_call(talk.turns("two"))))
    sessgit.now = talk.file.born.timestamp() + 20 * 60
    assert (
        sessgit.out("recover")
        == f"""\
5e551011  one  ·  19m ago  ·  2 turns recorded  ·  stopped during a call
          claude --resume {SESSION}
"""
    )
    assert state(sessgit) == ("interrupted", "end")
    assert sessgit.out("ls", "--state", "interrupted").startswith("  5e551011")
    before = refs.read_all(sessgit.store)
    assert sessgit.out("recover") == NOTHING
    assert refs.read_all(sessgit.store) == before
    assert "5e551011-0000-4000-8000-000000000001: 3 turns, no damage." in sessgit.out("restore", SESSION, "--verify")


def test_one_that_was_killed_between_turns_has_ended(sessgit: Shell) -> None:
    hooked(sessgit, sessgit.talk().turns("one"))
    assert state(sessgit) == ("active", "turn")
    assert sessgit.out("recover").splitlines()[0].endswith("ago  ·  fully recorded")
    assert state(sessgit) == ("ended", "end")
    assert sessgit.out("recover") == NOTHING


def test_what_is_missing_of_the_last_turn_is_told(sessgit: Shell) -> None:
    hooked(sessgit, sessgit.talk().turns("one").prompt("and now?"))
    tooled = sessgit.talk(OTHER).prompt("run it").tool("Bash", {"command": "ls"}, "a")
    hooked(sessgit, tooled)
    hooked(sessgit, sessgit.talk(THIRD).prompt("stop").tool("Bash", {}, "no").user("[Request interrupted by user]"))
    found = {one["id"]: (one["state"], one["cut"]) for one in sessgit.json("recover")["sessions"]}
    assert found == {
        SESSION: ("ended", "answer"),
        OTHER: ("ended", "answer"),
        THIRD: ("interrupted", None),
    }


def test_the_one_that_was_active_last_comes_first(sessgit: Shell) -> None:
    early = sessgit.talk(OTHER).turns("long ago")
    late = sessgit.talk()
    late.file.seconds = 7000
    hooked(sessgit, late.turns("just now"))
    hooked(sessgit, early)
    assert (
        sessgit.out("recover")
        == f"""\
5e551011-0000-4000-8000-000000000001  just now  ·  1h ago  ·  fully recorded
          claude --resume {SESSION}
5e551011-0000-4000-8000-000000000002  long ago  ·  2h ago  ·  fully recorded
          claude --resume {OTHER}
"""
    )


def test_a_living_client_is_left_alone(sessgit: Shell, client: Any) -> None:
    talk = sessgit.talk().turns("one")
    hooked(sessgit, talk)
    lie(sessgit.keep(talk.turns("two")), 10_000)
    says(sessgit, client.pid)
    before = refs.read_all(sessgit.store)
    assert sessgit.out("recover") == NOTHING
    assert (refs.read_all(sessgit.store), client.poll()) == (before, None)
    client.kill()
    client.wait()
    assert "1 turn recorded" in sessgit.out("recover")


def test_a_pid_that_is_used_again_is_no_client(sessgit: Shell, client: Any) -> None:
    hooked(sessgit, sessgit.talk().turns("one"))
    says(sessgit, client.pid, began="1")
    assert sessgit.out("recover") != NOTHING
    assert client.poll() is None


def test_a_file_that_was_just_written_is_waited_for(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover, "SETTLED", 1.5)
    path = hooked(sessgit, sessgit.talk().turns("one"))
    os.utime(path)
    written = path.stat().st_mtime
    (found,) = sessgit.json("recover")["sessions"]
    assert (found["id"], found["state"]) == (SESSION, "ended")
    assert time.time() - written >= 1.5


def test_a_client_that_starts_meanwhile_is_left_alone(
    sessgit: Shell, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "SETTLED", 1.5)
    path = hooked(sessgit, sessgit.talk().turns("one"))
    os.utime(path)
    monkeypatch.setattr(
        recover_command, "wait_until_quiet", lambda here, seconds: (lie(path), says(sessgit, client.pid))
    )
    assert sessgit.json("recover")["sessions"] == []
    assert state(sessgit) == ("active", "turn")


def test_one_that_is_written_all_the_time_is_not_waited_for_twice(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "SETTLED", 1.5)
    path = hooked(sessgit, sessgit.talk().turns("one"))
    os.utime(path)
    monkeypatch.setattr(recover_command, "wait_until_quiet", lambda here, seconds: lie(path, -60.0))
    found = sessgit.json("recover")
    assert (found["sessions"], found["errors"], found["waiting"]) == ([], [], [{"id": SESSION, "seconds": 2}])
    assert state(sessgit) == ("active", "turn")


def test_a_client_that_does_not_tell_is_given_longer(sessgit: Shell) -> None:
    path = hooked(sessgit, sessgit.talk(style="2.0").turns("one"))
    lie(path, catch_up.QUIET_SECONDS / 2)
    assert sessgit.out("recover") == ("5e551011  its file was just written: run sessgit recover again in 30 seconds\n")
    lie(path, catch_up.QUIET_SECONDS * 2)
    assert "fully recorded" in sessgit.out("recover")


def test_what_nobody_left_is_not_recovered(sessgit: Shell) -> None:
    """A fork that was never opened, one that has ended, one that is archived, one whose file is gone, and one that
    was recorded on another machine."""
    sessgit.recorded(sessgit.talk().turns("one"))
    fork = sessgit.json("fork", SESSION)["id"]
    for path in sessgit.config.glob("projects/*/*.jsonl"):
        lie(path, 3600)
    sessgit.out("ls", "--all")
    hooked(sessgit, sessgit.talk(OTHER).turns("two"))
    sessgit.out("archive", OTHER)
    hooked(sessgit, sessgit.talk(THIRD).turns("three")).unlink()
    recorder_state.delete_cursor(layout.StorePaths(sessgit.store), THIRD)
    assert sessgit.out("recover", "--all") == NOTHING
    sessgit.out("restore", THIRD)
    lie(next(sessgit.config.glob(f"projects/*/{THIRD}.jsonl")), 3600)
    assert sessgit.out("recover", "--all") == NOTHING
    sessgit.out("log", fork)
    assert sessgit.out("recover", "--all") == NOTHING


@pytest.mark.parametrize("bring", [("merge", OTHER), ("pick", f"{OTHER}@1")])
def test_what_a_merge_made_is_not_recovered_before_a_client_opens_it(sessgit: Shell, bring: tuple[str, ...]) -> None:
    first = sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("two"))
    sessgit.out(*bring, "--into", SESSION, "--new", "both")
    (made,) = (one["id"] for one in sessgit.json("ls")["sessions"] if one["name"] == "both")
    path = first.with_name(f"{made}.jsonl")
    lie(path, 3600)
    assert sessgit.out("recover") == NOTHING
    assert state(sessgit, made)[0] == "active"
    with path.open("ab") as file:
        file.write(cut_in_a_call(sessgit.talk(made)).data)
    lie(path, 3600)
    (told,) = sessgit.json("recover")["sessions"]
    assert (told["id"], told["recorded"], told["cut"]) == (made, 1, "call")


def test_the_project_at_hand_or_all(sessgit: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    hooked(sessgit, sessgit.talk(cwd=str(elsewhere)).turns("one"))
    assert sessgit.out("recover") == NOTHING
    said = sessgit.json("recover", "--all")["sessions"]
    assert [one["command"] for one in said] == [f"cd {shlex.quote(str(elsewhere))} && claude --resume {SESSION}"]


def test_a_folder_that_is_gone_has_no_command(sessgit: Shell, tmp_path: Path) -> None:
    elsewhere = sessgit.home / "else"
    elsewhere.mkdir()
    talk = sessgit.talk(cwd=str(elsewhere)).turns("one")
    hooked(sessgit, talk)
    elsewhere.rmdir()
    assert sessgit.out("recover", "--all").splitlines()[1] == (
        "          ~/else is gone: sessgit fork 5e551011 --project DIR"
    )


def test_projects_that_are_off_stay_as_they_are(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = sessgit.talk().turns("one")
    hooked(sessgit, talk)
    lie(sessgit.keep(talk.turns("two")))
    sessgit.out("off")
    assert sessgit.out("recover") == NOTHING
    sessgit.out("on")
    monkeypatch.setenv("SESSGIT_OFF", "1")
    assert sessgit("recover").code == 2
    assert state(sessgit) == ("active", "turn")


def test_one_that_cannot_be_recorded_does_not_stop_the_others(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "LOCK_TIMEOUT", 0.01)
    hooked(sessgit, sessgit.talk().turns("one"))
    hooked(sessgit, sessgit.talk(OTHER).turns("two"))
    with locks.session_lock(layout.StorePaths(sessgit.store), SESSION) as held:
        assert held
        done = sessgit("recover")
    assert done.code == 0
    assert done.err == f"{SESSION}: a recorder is writing it; this may be an older state\n"
    assert done.out.splitlines()[1:] == [f"          claude --resume {OTHER}"]
    assert [one["id"] for one in sessgit.json("recover")["sessions"]] == [SESSION]


def test_a_machine_branch_is_no_reason(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    hooked(sessgit, talk)
    theirs = on_another(talk).turns("elsewhere")
    arrived(sessgit, theirs, theirs.prompts[-1])
    assert sessgit.out("recover") != NOTHING
    assert sessgit.out("recover") == NOTHING


def test_a_torn_last_line_is_kept(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    path = hooked(sessgit, talk)
    with path.open("ab") as file:
        file.write(b'{"type":"user","mess')
    data = path.read_bytes()
    lie(path)
    sessgit.out("recover")
    path.unlink()
    shutil.rmtree(sessgit.config / "sessions", ignore_errors=True)
    sessgit.out("restore", SESSION)
    assert path.read_bytes() == data


KILLED = """
import os
from sessgit import Store, ToolCall
for name in ("answered", "pending"):
    session = Store.open().create_session(name=name)
    session.record_turn("try it", "Faster.", [ToolCall("Bash", {"command": "ls"}, "a")])
session.begin_cell(type="repl", operation="train")
os._exit(1)
"""


def test_a_program_that_is_at_work_is_left_alone(sessgit: Shell) -> None:
    """However long it writes nothing: it has a turn open."""
    session = Store.open().create_session(name="trained")
    with session.turn("train it") as turn:
        for path in sessgit.config.glob("projects/*/*.jsonl"):
            lie(path, 3600)
        assert sessgit.out("recover", "--all") == NOTHING
        assert sessgit.json("log", session.id)["session"]["state"] == "active"
        turn.answer("Done.")


@pytest.mark.parametrize("cell", ["", "session.begin_cell(type='repl', operation='train')"])
def test_a_program_that_was_killed_in_its_first_turn_is_not_waited_for(sessgit: Shell, cell: str) -> None:
    work = f"with session.turn('train it'):\n    {cell}\n    os._exit(1)"
    script = f"import os\nfrom sessgit import Store\nsession = Store.open().create_session(name='trained')\n{work}"
    subprocess.run([sys.executable, "-c", script], check=False)
    (one,) = sessgit.json("recover")["sessions"]
    assert (one["title"], one["state"], one["turns"], one["cut"]) == (
        "trained", "interrupted" if cell else "ended", 1, "call" if cell else "answer"
    )  # fmt: skip
    assert sessgit.out("recover") == NOTHING


def test_what_a_killed_program_lacks(sessgit: Shell) -> None:
    """What it said itself is an answer, though no model said it."""
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    for path in sessgit.config.glob("projects/*/*.jsonl"):
        os.utime(path, (time.time() - 3600,) * 2)
    told = {one["title"]: one["cut"] for one in sessgit.json("recover")["sessions"]}
    assert told == {"answered": None, "pending": "call"}


@pytest.mark.parametrize("kind", ["repl", "tool"])
def test_a_program_that_was_killed_after_a_whole_cell_is_not_cut(sessgit: Shell, kind: str) -> None:
    work = f"session.complete_cell(session.begin_cell(type={kind!r}, operation='train'), 'a'); os._exit(1)"
    begun = "import os\nfrom sessgit import Store\nsession = Store.open().create_session(name='trained')\n"
    script = f"{begun}with session.turn('train it'):\n    {work}"
    subprocess.run([sys.executable, "-c", script], check=False)
    (one,) = sessgit.json("recover")["sessions"]
    assert (one["title"], one["state"], one["turns"], one["cut"]) == ("trained", "ended", 1, None)
