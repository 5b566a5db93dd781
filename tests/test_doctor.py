"""`sessgit doctor`: what keeps recording from working is found, told with what to do, and mended if asked."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from clones import bare
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit import __version__
from sessgit.store import log, recorder_state
from sessgit.store.layout import StorePaths
from sessgit.store.recorder_state import LatestTurn
from sessgit.store.stub import write_stub


@pytest.fixture
def healthy(sessgit: Shell) -> Shell:
    """A store that records, with a conversation of today."""
    sessgit.now = time.time()
    sessgit.out("install")
    sessgit.recorded(sessgit.talk().turns("one"))
    return sessgit


def told(sessgit: Shell) -> list[tuple[str, str]]:
    """The severity and the kind of each finding."""
    found = json.loads(sessgit("doctor", "--json").out)["findings"]
    return [(one["severity"], one["kind"]) for one in found]


def mended(sessgit: Shell) -> list[tuple[str, bool]]:
    """What `--fix` did: the kind, and whether it could be mended."""
    found = json.loads(sessgit("doctor", "--fix", "--json").out)["fixed"]
    return [(one["kind"], one["error"] is None) for one in found]


def test_a_healthy_store(healthy: Shell) -> None:
    said = healthy.out("doctor").splitlines()
    assert said[0] == "No problems found."
    assert said[1].startswith("sessgit ")
    assert said[-1] == "Run `sessgit verify` to check the store."
    assert healthy.out("doctor", "--fix").splitlines() == said


def test_without_a_store_recording_is_off(sessgit: Shell) -> None:
    done = sessgit("doctor")
    assert (done.code, done.err) == (1, "")
    assert not any(line.endswith(" · ") for line in done.out.splitlines())
    assert done.out.splitlines()[:3] == [
        "~/.claude/settings.json  wrong",
        "    recording is off: no hooks are installed",
        "    sessgit install",
    ]
    assert not sessgit.store.exists()
    assert sessgit("doctor", "--fix").code == 1
    assert not sessgit.store.exists()


def lose_the_stub(sessgit: Shell) -> None:
    (sessgit.store / "hook").unlink(missing_ok=True)


def an_old_stub(sessgit: Shell) -> None:
    hook = sessgit.store / "hook"
    hook.write_text(hook.read_text().replace("umask 077", "umask 022"))


def another_python(sessgit: Shell) -> None:
    hook = sessgit.store / "hook"
    hook.write_text(hook.read_text().replace(sys.executable, "/nowhere/python"))


def lose_an_event(sessgit: Shell) -> None:
    settings = sessgit.config / "settings.json"
    document = json.loads(settings.read_text())
    document["hooks"].pop("Stop", None)
    settings.write_text(json.dumps(document))


def lose_the_spool(sessgit: Shell) -> None:
    shutil.rmtree(sessgit.store / "spool", ignore_errors=True)


def open_to_all(sessgit: Shell) -> None:
    sessgit.store.chmod(0o755)
    (sessgit.store / "key").chmod(0o644)


def damage_the_index(sessgit: Shell) -> None:
    """A page in the middle: SQLite reads the first one and believes it."""
    sessgit.out("ls", "--all")
    path = sessgit.store / "index.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096)


def leave_a_lock(sessgit: Shell) -> None:
    for name in ("packed-refs.lock", "refs/heads/a.lock", "objects/tmp_obj_1", "objects/pack/tmp_pack_1"):
        path = sessgit.store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (sessgit.now - 3600,) * 2)


def leave_a_push(sessgit: Shell) -> None:
    folder = sessgit.store / "state" / "push-a2345678"
    folder.mkdir(exist_ok=True)
    os.utime(folder, (sessgit.now - 2 * 86_400,) * 2)


def let_git_pack(sessgit: Shell) -> None:
    run_git(sessgit.store, "config", "gc.auto", "100")


def let_the_client_delete(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk("5e551011-0000-4000-8000-000000000009").turns("old"))
    os.utime(path, (sessgit.now - 29 * 86_400,) * 2)


CURABLE: dict[str, tuple[Callable[[Shell], None], str]] = {
    "the stub is gone": (lose_the_stub, "hooks"),
    "the stub is old": (an_old_stub, "hooks"),
    "its Python is gone": (another_python, "hooks"),
    "an event has no hook": (lose_an_event, "hooks"),
    "the spool is gone": (lose_the_spool, "hooks"),
    "others may read it": (open_to_all, "permissions"),
    "the index is damaged": (damage_the_index, "index"),
    "a lock was left": (leave_a_lock, "leftovers"),
    "a push was left": (leave_a_push, "leftovers"),
    "git may pack": (let_git_pack, "store"),
    "the client deletes": (let_the_client_delete, "deletion"),
}


@pytest.mark.parametrize("what", CURABLE)
def test_what_it_mends(healthy: Shell, what: str) -> None:
    harm, kind = CURABLE[what]
    harm(healthy)
    done = healthy("doctor", "--json")
    assert done.code == 1
    assert ("wrong", kind) in [(one["severity"], one["kind"]) for one in json.loads(done.out)["findings"]]
    harm(healthy)
    assert (kind, True) in mended(healthy)
    assert [one for one in told(healthy) if one[0] != "note"] == []
    assert healthy("doctor").code == 0
    assert healthy.json("verify")["sound"]
    assert healthy.json("log", SESSION)["session"]["turns"] == 1


def test_a_hook_with_other_permissions(healthy: Shell) -> None:
    (healthy.store / "hook").chmod(0o744)
    assert healthy("doctor").out.splitlines()[:3] == [
        "~/.claude/session-store/hook  wrong",
        "    the hook has the permissions 744; they should be 700, for you alone",
        "    sessgit install",
    ]
    assert ("hooks", True) in mended(healthy)
    assert (healthy.store / "hook").stat().st_mode == 0o100700


def break_the_settings(sessgit: Shell) -> None:
    (sessgit.config / "settings.json").write_text("{")


def disable_all(sessgit: Shell) -> None:
    settings = sessgit.config / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"disableAllHooks": True}))


def misspell(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text("[record]\ngranularty = 'cell'\n")
    (sessgit.store / "config.toml").chmod(0o600)


def lose_the_remote(sessgit: Shell) -> None:
    folder = bare(sessgit.home / "box")
    sessgit.out("remote", "add", "box", str(folder))
    shutil.rmtree(folder)


def write_to_the_log(sessgit: Shell) -> None:
    log.write(StorePaths(sessgit.store).log, sessgit.now, "something went \033[31mwrong")


def live_in_the_future(sessgit: Shell) -> None:
    recorder_state.save_latest(StorePaths(sessgit.store), LatestTurn("5e55", 1, sessgit.now + 9 * 86_400, None))


TOLD: dict[str, tuple[Callable[[Shell], None], tuple[str, str], str]] = {
    "settings.json is broken": (break_the_settings, ("wrong", "hooks"), "cannot read the client's settings"),
    "all hooks are off": (disable_all, ("wrong", "hooks"), "disableAllHooks"),
    "config.toml is wrong": (misspell, ("wrong", "settings"), "granularty"),
    "a remote is gone": (lose_the_remote, ("wrong", "remotes"), "there is nothing at"),
    "the log has errors": (write_to_the_log, ("note", "log"), "1 error in the last week"),
    "the clock is ahead": (live_in_the_future, ("note", "clock"), "in the future"),
}


@pytest.mark.parametrize("what", TOLD)
def test_what_it_tells(healthy: Shell, what: str) -> None:
    harm, finding, words = TOLD[what]
    harm(healthy)
    assert finding in told(healthy)
    done = healthy("doctor")
    assert (done.code, done.err) == (0 if finding[0] == "note" else 1, "")
    assert words in " ".join(done.out.split())
    assert "\033" not in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    before = {path: path.read_bytes() for path in healthy.config.rglob("*.json") if "session-store" not in path.parts}
    assert mended(healthy) == []
    assert {path: path.read_bytes() for path in before} == before


def test_a_session_that_cannot_be_read_is_named(healthy: Shell) -> None:
    (healthy.store / "refs" / "heads" / "a41f9c02").write_text("1" * 40 + "\n")
    assert ("damage", "session") in told(healthy)
    assert "sessgit repair a41f9c02" in healthy("doctor").out
    assert healthy.json("log", SESSION)["session"]["turns"] == 1


def test_a_broken_configuration_of_git(healthy: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads it when it opens the store, and then opens nothing."""
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    (healthy.home / ".gitconfig").write_text("[user\nname = x\n")
    import pygit2

    monkeypatch.setattr(pygit2, "Repository", _refusing)
    done = healthy("doctor")
    assert done.code == 1
    assert "~/.claude/session-store  damaged" in done.out
    assert "cannot open the store" in done.out
    assert "invalid section header" in done.out


def _refusing(path: str) -> None:
    import pygit2

    raise pygit2.GitError("failed to parse config file: invalid section header")


def test_events_that_wait(healthy: Shell) -> None:
    """A recorder is started as the stub starts it."""
    talk = healthy.talk().turns("one", "two")
    path = healthy.keep(talk)
    payload = {
        "session_id": talk.session, "transcript_path": str(path), "cwd": str(healthy.project),
        "hook_event_name": "SessionEnd", "reason": "other",
    }  # fmt: skip
    event = healthy.store / "spool" / "1-0.json"
    event.write_text(json.dumps(payload))
    event.chmod(0o600)
    os.utime(event, (healthy.now - 3600,) * 2)
    assert ("wrong", "spool") in told(healthy)
    what = "    1 event is waiting to be recorded, for 1 hour; no recorder is running\n"
    assert what in healthy("doctor").out
    assert mended(healthy) == [("spool", True)]
    assert not event.exists()
    assert (
        run_git(healthy.store, "log", "-1", "--format=%(trailers:key=Turn,valueonly)", f"{talk.session}~1").strip()
        == "2"
    )


def test_a_file_that_is_no_event(healthy: Shell) -> None:
    for name in ("1-0.json", "1-1.json"):
        event = healthy.store / "spool" / name
        event.write_text("{}")
        event.chmod(0o600)
    assert healthy("doctor").out.splitlines()[:5] == [
        "~/.claude/session-store/spool  note",
        "    2 files there cannot be read by a recorder: no hook_event_name",
        "    The next recording removes it.",
        "",
        "No problems found; 1 note.",
    ]


def test_settings_that_cannot_be_read_are_told_of_once(healthy: Shell) -> None:
    (healthy.store / "config.toml").write_text("record = = [")
    (healthy.store / "config.toml").chmod(0o600)
    assert healthy("doctor").out.splitlines()[:5] == [
        "~/.claude/session-store/config.toml  wrong",
        "    ~/.claude/session-store/config.toml is not TOML: Invalid value (at line 1,",
        "    column 10)",
        "    Correct the file, or delete it: all settings have defaults.",
        "",
    ]


def test_the_page(healthy: Shell) -> None:
    lose_the_stub(healthy)
    assert healthy("doctor").out.splitlines()[:5] == [
        "~/.claude/settings.json  wrong",
        "    recording is off: ~/.claude/session-store/hook is missing",
        "    sessgit install",
        "",
        "1 problem found. `sessgit doctor --fix` fixes 1 of them.",
    ]


def test_the_page_in_a_narrow_terminal(healthy: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 7):
        path = healthy.keep(healthy.talk(f"a41f9c0{number}-0000-4000-8000-000000000000").turns("x"))
        path.write_bytes(path.read_bytes().replace(b'"2.1.7"', b'"1.0.10%d"' % number))
    healthy.out("import")
    lose_the_stub(healthy)
    monkeypatch.setenv("COLUMNS", "50")
    said = healthy("doctor").out.splitlines()
    assert all(len(line) <= 50 for line in said)
    assert said[-6:] == [
        "1 problem found. `sessgit doctor --fix` fixes 1 of",
        "them.",
        said[-4],
        "clients 2.1.7, 1.0.106, 1.0.105, 1.0.104 and 3",
        "more",
        "Run `sessgit verify` to check the store.",
    ]


def test_a_folder_of_objects_that_leads_out_of_the_store(healthy: Shell, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    place = healthy.store / "objects" / "ab"
    place.symlink_to(tmp_path / "outside")
    before = sorted(tmp_path.rglob("*"))
    healthy.keep(healthy.talk().turns("one", "two"))
    for command in ("import", "verify", "doctor"):
        done = healthy(command)
        assert done.code != 0
        assert f"objects/{place.name} in the store" in " ".join((done.out + done.err).split()), done
    assert sorted(tmp_path.rglob("*")) == before


def test_what_verify_sends_to_doctor_is_fixed(healthy: Shell) -> None:
    """A store whose HEAD names a branch, and whose git would let a push delete branches."""
    run_git(healthy.store, "symbolic-ref", "HEAD", "refs/heads/main")
    run_git(healthy.store, "config", "receive.denyDeletes", "false")
    hints = {one["where"]: one["hint"] for one in json.loads(healthy("verify", "--json").out)["findings"]}
    assert hints == dict.fromkeys(("HEAD", "config"), "sessgit doctor --fix")
    assert mended(healthy) == [("store", True), ("store", True)]
    assert healthy.json("verify")["findings"] == []


def test_other_installations_of_the_program(healthy: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook starts one of another version, or one that was half removed; another one is on the PATH."""
    tools = healthy.home / "tools"
    tools.mkdir()

    def program(name: str, script: str) -> str:
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
        return str(tools / name)

    hook = healthy.store / "hook"
    for script, has in (("echo 0.1.0", "sessgit 0.1.0"), ("exit 1", "no sessgit")):
        python = program("python", script)
        write_stub(healthy.store, python)
        (finding,) = json.loads(healthy("doctor", "--json").out)["findings"]
        what = f"the hook starts {python}, which has {has}; this is {__version__}"
        assert (finding["where"], finding["message"], finding["hint"]) == (str(hook), what, "sessgit install")
        assert mended(healthy) == [("hooks", True)]
    assert sys.executable in hook.read_text()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for script, version in (("echo sessgit 0.1.0", "0.1.0"), ("exit 3", "unknown")):
        program("sessgit", script)
        assert healthy("doctor").out.splitlines()[:3] == [
            "~/tools/sessgit  wrong",
            f"    the program on the PATH is version {version}, this is {__version__}",
            "    remove one of the two, or change the PATH",
        ]
    program("sessgit", f"echo sessgit {__version__}")
    assert told(healthy) == []
