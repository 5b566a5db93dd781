"""The recorder as a whole: the real stub, real detached processes, a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from homes import claude_client, claude_homes
from inotify import opens
from plain import run_git
from transcripts import Talk
from waiting import PATIENCE, until

from sessgit.agents.hook_settings import stub_command
from sessgit.record.install import install
from sessgit.record.privacy import switch_off, switch_on
from sessgit.recorder import drain
from sessgit.store import locks, recorder_state, refs
from sessgit.store.layout import StorePaths

SESSIONS = [f"{n}{n}{n}{n}{n}{n}{n}{n}-0000-4000-8000-000000000000" for n in range(1, 6)]


class Recorded:
    """What of a store is recorded, and by whom."""

    def __init__(self, store: Path) -> None:
        self.store = store

    def turns(self, session: str) -> int:
        tip = refs.read(self.store, f"refs/heads/{session}")
        if tip is None:
            return 0
        words = run_git(self.store, "log", "--format=%(trailers:key=Turn,valueonly)", tip).split()
        return max((int(word) for word in words), default=0)

    def log(self) -> str:
        path = StorePaths(self.store).log
        return path.read_text() if path.exists() else ""

    def is_quiet(self) -> bool:
        """Whether nothing waits and no recorder of this store runs."""
        return not list((self.store / "spool").glob("*.json")) and not self.recorders()

    def recorders(self) -> list[str]:
        found = []
        for folder in Path("/proc").iterdir():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"sessgit.recorder" in words and str(self.store).encode() in words:
                found.append(folder.name)
        return found


class Place(Recorded):
    """A client's folder with recording turned on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "home" / ".claude"
        self.projects = self.config / "projects" / "-code-calc"
        self.projects.mkdir(parents=True)
        super().__init__(self.config / "session-store")
        install(self.store, claude_client(self.config), python=sys.executable)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(root / "home")}

    def event(self, name: str, path: Path | str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        payload = {"session_id": Path(path).stem, "transcript_path": str(path), "cwd": "/", "hook_event_name": name}
        return self.stub(json.dumps(payload | more).encode())

    def stub(self, given: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
        command = ["sh", "-c", stub_command(self.store / "hook")]
        done = subprocess.run(command, input=given, env={**self.env, **env}, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return done


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def talk(session: str, *prompts: str) -> Talk:
    made = Talk(session)
    for prompt in prompts:
        made.prompt(prompt).tool("Bash", {"command": "ls"}, "a\nb").answer(f"done: {prompt}").stop_lines()
    return made


def test_an_event_becomes_a_commit(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    place.event("Stop", path, last_assistant_message="done: one")
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    run_git(place.store, "fsck", "--strict")
    assert place.log() == ""


@pytest.mark.parametrize(
    ("name", "age", "noted"), [("Stop", 3600, True), ("SessionEnd", 0, True), ("SessionEnd", 3600, False)]
)
def test_whoever_brings_a_turn_in_notes_what_the_project_is_at(
    place: Place, tmp_path: Path, name: str, age: float, noted: bool
) -> None:
    """The answer may be recorded before the event that tells of it, and never long after it."""
    project = tmp_path / "calc"
    project.mkdir()
    run_git(project, "init", "-q")
    run_git(project, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    path = talk(SESSIONS[0], "one").save(place.projects)
    os.utime(path, (time.time() - age,) * 2)
    place.event(name, path, cwd=str(project), last_assistant_message="done: one")
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    found = run_git(place.store, "log", "--format=%(trailers:key=Project-Head,valueonly)", SESSIONS[0], "--").split()
    assert found[:1] == ([run_git(project, "rev-parse", "HEAD").strip()] if noted else [])


def test_it_waits_for_the_answer_that_the_hook_was_told_of(place: Place) -> None:
    data = talk(SESSIONS[0], "one").data
    cut = data.index(b"done: one")
    cut = data.rindex(b"\n", 0, cut) + 1
    path = place.projects / f"{SESSIONS[0]}.jsonl"
    path.write_bytes(data[:cut])
    with opens(path) as reads:
        place.event("Stop", path, last_assistant_message="done: one")
        until(lambda: reads.count >= 10 or place.turns(SESSIONS[0]) > 0)
    assert place.turns(SESSIONS[0]) == 0
    with path.open("ab") as file:
        file.write(data[cut:])
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    assert b"done: one" in run_git(place.store, "show", f"{SESSIONS[0]}:turns/0000/000001/transcript.jsonl").encode()


def test_a_prompt_at_which_the_client_ended_is_recorded(place: Place) -> None:
    """Both of its events may be read together."""
    talk = Talk(SESSIONS[0]).turns("one").prompt("two")
    payload = {"session_id": talk.session, "transcript_path": str(talk.save(place.projects)), "cwd": "/"}
    for number, name in enumerate(("UserPromptSubmit", "SessionEnd")):
        event = place.store / "spool" / f"{number}-0.json"
        event.write_text(json.dumps(payload | {"hook_event_name": name}))
    drain.drain_spool(place.store, claude_homes(place.config), place.env)
    assert place.turns(talk.session) == 2


def test_a_burst_leaves_no_event_unrecorded_and_few_processes(place: Place) -> None:
    talks = {session: Talk(session) for session in SESSIONS}
    stubs: list[subprocess.Popen[bytes]] = []
    most = 0
    for number in range(40):
        for session, made in talks.items():
            made.prompt(f"prompt {number}").answer(f"answer {number}").stop_lines()
            path = made.save(place.projects)
            payload = {"session_id": session, "transcript_path": str(path), "cwd": "/", "hook_event_name": "Stop"}
            payload["last_assistant_message"] = f"answer {number}"
            child = subprocess.Popen(["sh", str(place.store / "hook")], stdin=subprocess.PIPE, env=place.env)
            assert child.stdin is not None
            child.stdin.write(json.dumps(payload).encode())
            child.stdin.close()
            stubs.append(child)
        most = max(most, len(place.recorders()))
    assert [child.wait() for child in stubs] == [0] * 200
    until(place.is_quiet)
    assert {session: place.turns(session) for session in SESSIONS} == dict.fromkeys(SESSIONS, 40)
    assert most <= 12
    assert place.log() == ""
    run_git(place.store, "fsck", "--strict")


def test_what_is_killed_in_the_middle_is_recorded_by_the_next_event(place: Place) -> None:
    path = talk(SESSIONS[0], *(f"prompt {n}" for n in range(200))).save(place.projects)
    for delay in (0.02, 0.08, 0.14, 0.2, 0.3, 0.5):
        place.event("SessionStart", path)
        time.sleep(delay)
        for pid in place.recorders():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    place.event("SessionEnd", path, reason="other")
    until(lambda: place.turns(SESSIONS[0]) == 200)
    until(place.is_quiet)
    run_git(place.store, "fsck", "--strict")
    assert not list(place.store.glob("refs/**/*.lock"))


def test_a_session_that_someone_else_records_is_left_to_them(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    paths = StorePaths(place.store)
    with locks.session_lock(paths, SESSIONS[0]) as held, opens(paths.lock(f"session-{SESSIONS[0]}")) as tries:
        assert held
        place.event("SessionStart", path)
        until(lambda: tries.count > 0)
        until(lambda: not place.recorders())
        assert len(list((place.store / "spool").glob("*.json"))) == 1
        assert place.turns(SESSIONS[0]) == 0
    place.event("SessionStart", path)
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)


def zombies() -> set[str]:
    """The children of this process that have ended and that nobody asked about."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it is gone meanwhile
            state, parent = path.read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            if (state, parent) == ("Z", str(os.getpid())):
                found.add(path.parent.name)
    return found


def test_no_value_of_the_environment_and_no_zombie_is_left(place: Place) -> None:
    before = zombies()
    path = talk(SESSIONS[0], "one").save(place.projects)
    payload = {"session_id": "x", "transcript_path": str(path), "cwd": "/", "hook_event_name": "SessionStart"}
    place.stub(json.dumps(payload).encode(), ANTHROPIC_API_KEY="sk-ant-of-nobody", GIT_DIR="/nowhere", SECRET="zebra")
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    held = b"".join(p.read_bytes() for p in place.store.rglob("*") if p.is_file())
    assert b"sk-ant-of-nobody" not in held and b"zebra" not in held
    assert zombies() <= before


@pytest.mark.parametrize("kind", ["folder", "fifo", "link out", "elsewhere", "not there", "not jsonl"])
def test_a_path_that_is_no_transcript_is_refused(place: Place, kind: str) -> None:
    outside = place.root / "outside.jsonl"
    outside.write_bytes(talk(SESSIONS[0], "one").data)
    path = place.projects / f"{SESSIONS[0]}.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link out":
        path.symlink_to(outside)
    elif kind == "elsewhere":
        path = outside
    elif kind == "not jsonl":
        path = place.projects / "settings.json"
        path.write_text("{}")
    place.event("Stop", path, last_assistant_message="done: one")
    until(place.is_quiet)
    assert refs.read_all(place.store) == {}
    assert ("in another place" in place.log()) == (kind != "not there")


@pytest.mark.parametrize("session_id", ["../../evil", "-rf", "A B", "x" * 10_000, "CAPITALS"])
def test_a_session_id_of_the_payload_names_nothing(place: Place, session_id: str) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    payload = {"session_id": session_id, "transcript_path": str(path), "cwd": "/", "hook_event_name": "SessionStart"}
    place.stub(json.dumps(payload).encode())
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    assert set(refs.read_all(place.store)) == {f"refs/heads/{SESSIONS[0]}"}


def test_a_transcript_of_any_name_becomes_a_branch_of_a_safe_name(place: Place) -> None:
    for name in ("CAPITALS", "-leading", "a b;c", "x" * 200):
        place.event(
            "SessionStart", talk(SESSIONS[0], name).save(place.projects).rename(place.projects / f"{name}.jsonl")
        )
    until(place.is_quiet)
    names = [ref.removeprefix("refs/heads/") for ref in refs.read_all(place.store)]
    assert len(names) == 4
    assert all(len(name) == 36 and set(name) <= set("0123456789abcdef-") for name in names)


def test_a_line_of_a_hundred_megabytes_is_recorded_as_it_is(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    with path.open("ab") as file:
        file.write(b'{"type":"attachment","uuid":"u","parentUuid":null,"x":"' + b"y" * (100 << 20) + b'"}\n')
        file.write(talk(SESSIONS[1], "two").data)
    place.event("SessionStart", path)
    until(lambda: place.turns(SESSIONS[0]) >= 1)
    until(place.is_quiet)
    assert place.log() == ""


def test_garbage_is_logged_and_forgotten(place: Place) -> None:
    for given in (b"garbage", b"[1,2]", b'{"hook_event_name":7}', b"\0" * 100, b"[" * 100_000):
        place.stub(given)
    until(place.is_quiet)
    assert place.log().count("unreadable event") == 5


def test_a_damaged_transcript_does_not_stop_the_others(place: Place) -> None:
    bad = place.projects / f"{SESSIONS[0]}.jsonl"
    bad.write_bytes(b"\xff\xfe garbage\n{\n\0\0\n" + talk(SESSIONS[0], "one").data[100:])
    good = talk(SESSIONS[1], "two").save(place.projects)
    place.event("SessionEnd", bad)
    place.event("SessionEnd", good)
    until(lambda: place.turns(SESSIONS[1]) == 1)
    until(place.is_quiet)


# Projects that are off


def everything(place: Place) -> bytes:
    """All that lies in the store, git's objects unpacked; the settings name what is off."""
    command = ["git", "-C", str(place.store), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    names = b"".join(os.fsencode(path) for path in place.store.rglob("*"))
    files = (p for p in place.store.rglob("*") if p.is_file() and "objects" not in p.parts)
    return objects + names + b"".join(p.read_bytes() for p in files if p.name != "config.toml")


def in_project(session: str, cwd: Path | str, *prompts: str) -> Talk:
    made = Talk(session, cwd=str(cwd))
    for prompt in prompts:
        made.prompt(prompt).answer(f"done: {prompt}").stop_lines()
    return made


@pytest.fixture
def private(place: Place) -> Path:
    """A project that is off, with a worktree elsewhere."""
    folder = place.root / "private"
    folder.mkdir()
    run_git(folder, "init", "-q")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    run_git(folder, *identity, "commit", "-q", "--allow-empty", "-m", "one")
    run_git(folder, "worktree", "add", "-q", str(place.root / "tree"))
    switch_off(StorePaths(place.store), str(folder), str(place.root / "home"))
    return folder


def test_nothing_of_a_project_that_is_off_reaches_the_store(place: Place, private: Path) -> None:
    (private / "sub").mkdir()
    for session, folder in zip(SESSIONS, (private, private / "sub", place.root / "tree"), strict=False):
        path = in_project(session, folder, "zebra").save(place.projects)
        for name in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
            place.event(name, path, cwd=str(folder), last_assistant_message="done: zebra")
    elsewhere = in_project(SESSIONS[3], private, "zebra").save(place.root / "zebra")
    place.event("Stop", elsewhere, cwd=str(private))
    path = in_project(SESSIONS[4], place.root, "lion").save(place.projects)
    place.event("Stop", path, cwd=str(place.root), last_assistant_message="done: lion")
    until(lambda: place.turns(SESSIONS[4]) == 1)
    until(place.is_quiet)
    found = everything(place)
    assert set(refs.read_all(place.store)) == {f"refs/heads/{SESSIONS[4]}"}
    assert b"lion" in found
    assert [session for session in SESSIONS[:4] if session.encode() in found] == []
    assert b"zebra" not in found
    assert place.log() == ""


def test_the_project_is_where_the_conversation_began(place: Place, private: Path) -> None:
    """The agent walks about in folders: the one that an event tells counts only where nothing else is known."""
    began_in = in_project(SESSIONS[0], private, "zebra").save(place.projects)
    place.event("Stop", began_in, cwd=str(place.root), last_assistant_message="done: zebra")
    came_to = in_project(SESSIONS[1], place.root, "lion").save(place.projects)
    place.event("Stop", came_to, cwd=str(private), last_assistant_message="done: lion")
    until(lambda: place.turns(SESSIONS[1]) == 1)
    until(place.is_quiet)
    assert set(refs.read_all(place.store)) == {f"refs/heads/{SESSIONS[1]}"}
    assert b"zebra" not in everything(place)


def test_what_is_switched_off_on_the_way_stays_as_it_is_and_goes_on_when_it_is_on(place: Place) -> None:
    folder, paths, home = place.root / "calc", StorePaths(place.store), str(place.root / "home")
    folder.mkdir()
    made = in_project(SESSIONS[0], folder, "one")
    path = made.save(place.projects)
    place.event("Stop", path, cwd=str(folder), last_assistant_message="done: one")
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    switch_off(paths, str(folder), home)
    made.prompt("two").answer("done: two").stop_lines().save(place.projects)
    place.event("Stop", path, cwd=str(folder), last_assistant_message="done: two")
    until(place.is_quiet)
    assert place.turns(SESSIONS[0]) == 1
    switch_on(paths, str(folder), home)
    made.prompt("three").answer("done: three").stop_lines().save(place.projects)
    place.event("Stop", path, cwd=str(folder), last_assistant_message="done: three")
    until(lambda: place.turns(SESSIONS[0]) == 3)
    until(place.is_quiet)
    assert place.log() == ""


@pytest.mark.parametrize(
    ("text", "recorded", "said"),
    [
        ("[record]\nexclude = ['/off']\nfsync = 'perhaps'\n", True, "the settings are ignored: "),
        ("[record]\nexclud = ['/off']\n", False, "nothing is recorded until the settings are fixed: "),
        ("[record]\nexclude = [", False, "nothing is recorded until the settings are fixed: "),
    ],
)
def test_a_mistake_in_the_settings_never_records_what_they_may_exclude(
    place: Place, text: str, recorded: bool, said: str
) -> None:
    StorePaths(place.store).config.write_text(text)
    hidden = in_project(SESSIONS[0], "/off/calc", "zebra").save(place.projects)
    path = in_project(SESSIONS[1], "/open", "lion").save(place.projects)
    for one in (hidden, path):
        place.event("SessionEnd", one)
    until(place.is_quiet)
    assert set(refs.read_all(place.store)) == ({f"refs/heads/{SESSIONS[1]}"} if recorded else set())
    assert said in place.log()
    assert b"zebra" not in everything(place)


def test_how_long_after_the_answer(place: Place) -> None:
    path = talk(SESSIONS[0], "one").save(place.projects)
    written = path.stat().st_mtime
    place.event("Stop", path, last_assistant_message="done: one")
    until(lambda: recorder_state.load_latest(StorePaths(place.store)) is not None)
    until(place.is_quiet)
    told = recorder_state.load_latest(StorePaths(place.store))
    assert told is not None and told.delay is not None
    assert (told.session, told.turn) == (SESSIONS[0], 1)
    assert told.delay == pytest.approx((told.time - written) * 1000, abs=1)
    assert 0 < told.delay < PATIENCE * 1000
    assert StorePaths(place.store).latest.stat().st_mode & 0o777 == 0o600


def test_what_was_recorded_without_an_answer_tells_no_time(place: Place) -> None:
    path = talk(SESSIONS[0], "one", "two").save(place.projects)
    place.event("SessionEnd", path)
    until(lambda: recorder_state.load_latest(StorePaths(place.store)) is not None)
    until(place.is_quiet)
    told = recorder_state.load_latest(StorePaths(place.store))
    assert told is not None
    assert (told.session, told.turn, told.delay) == (SESSIONS[0], 2, None)


def test_a_note_that_cannot_be_written_costs_no_turn(place: Place) -> None:
    StorePaths(place.store).latest.mkdir()
    place.event("SessionEnd", talk(SESSIONS[0], "one").save(place.projects))
    until(lambda: place.turns(SESSIONS[0]) == 1)
    until(place.is_quiet)
    assert place.log() == ""
