"""`sessgit status`, `install` and `uninstall`: whether recording is on, and if not, why."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from homes import claude_homes
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.agents.hook_settings import CELL_EVENTS
from sessgit.check.status import Recording, recording
from sessgit.cli import text
from sessgit.store import log, recorder_state
from sessgit.store.layout import StorePaths
from sessgit.store.recorder_state import LatestTurn


def size(sessgit: Shell) -> str:
    return text.size(sum(path.stat().st_size for path in sessgit.store.rglob("*") if path.is_file()))


def attention(sessgit: Shell) -> list[str]:
    """What `status` says that needs a person."""
    return [line for line in sessgit.out("status").splitlines() if line.startswith("Attention")]


def age(path: Path, sessgit: Shell, days: float) -> None:
    """Makes the file one that was written last so many days ago."""
    os.utime(path, (sessgit.now - days * 86_400,) * 2)


def test_before_anything_is_installed(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    assert (
        sessgit.out("status")
        == """\
Recording   off · no hooks are installed: sessgit install
Store       ~/.claude/session-store · not there yet: sessgit install
Attention   1 older conversation can be imported: sessgit import
"""
    )


def test_the_first_installation(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    assert (
        sessgit.out("install")
        == """\
Recording is on: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)
1 older conversation can be imported: sessgit import
Prompts, answers and tool output go to ~/.claude/session-store.
Only you can read it. It is not encrypted; common secrets are redacted.
To exclude a project: sessgit off
If Claude Code is running: 2.1 is recorded from its next prompt, 2.0 after a restart.
"""
    )
    assert sessgit.out("install") == (
        "Recording is on already: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)\n"
        "1 older conversation can be imported: sessgit import\n"
    )


def test_a_running_client_that_had_settings_follows(sessgit: Shell) -> None:
    sessgit.config.mkdir()
    (sessgit.config / "settings.json").write_text('{"model": "opus"}')
    assert sessgit.out("install").splitlines()[-1] == "If Claude Code is running, it is recorded from its next prompt."


def test_a_commit_for_each_cell(sessgit: Shell) -> None:
    sessgit.out("install", "--granularity", "cell")
    assert sessgit.out("config", "record.granularity") == "cell\n"
    assert "PostToolUse" in (sessgit.config / "settings.json").read_text()
    assert sessgit.json("install")["clients"][0]["already_there"] == list(CELL_EVENTS)


def test_what_an_installation_says_of_a_plugin_and_of_disabled_hooks(sessgit: Shell) -> None:
    sessgit.config.mkdir()
    odd = {"disableAllHooks": True, "enabledPlugins": {"sessgit@home": True}}
    (sessgit.config / "settings.json").write_text(json.dumps(odd))
    refused = "the client's settings disable all hooks (disableAllHooks)"
    assert sessgit.out("install").splitlines() == [
        f"Claude Code is not recorded yet: {refused} (the hooks of the plugin sessgit@home).",
        "Prompts, answers and tool output go to ~/.claude/session-store.",
        "Only you can read it. It is not encrypted; common secrets are redacted.",
        "To exclude a project: sessgit off",
    ]


def test_recording(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one", "two").title("parser"))
    sessgit.out("install")
    to_the_last_answer = path.read_bytes().splitlines(keepends=True)[:-6]
    raw = text.size(sum(map(len, to_the_last_answer)))
    assert (
        sessgit.out("status", "5e55")
        == f"""\
Recording   on · last turn 2h ago (5e551011@2)
Store       ~/.claude/session-store · 1 conversation, 2 turns
            {size(sessgit)} (raw {raw})
Session     5e551011@2  parser · 2 turns · all recorded
"""
    )


def test_how_long_the_last_recording_took(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("install")
    paths = StorePaths(sessgit.store)
    for note, said in (
        (LatestTurn(SESSION, 2, sessgit.now, 84), ", 84 ms after the answer"),
        (LatestTurn(SESSION, 2, sessgit.now, 1249), ", 1.2 s after the answer"),
        (LatestTurn(SESSION, 2, sessgit.now, None), ""),
        (LatestTurn(SESSION, 1, sessgit.now, 84), ""),
        (LatestTurn(OTHER, 2, sessgit.now, 84), ""),
    ):
        recorder_state.save_latest(paths, note)
        assert recorder_state.load_latest(paths) == note
        assert sessgit.out("status").splitlines()[0] == f"Recording   on · last turn 2h ago (5e551011@2){said}"
    recorder_state.save_latest(paths, LatestTurn(SESSION, 2, sessgit.now, 84))
    last = sessgit.json("status")["last"]
    assert (last["id"], last["turn"], last["recorded"], last["delay"]) == (
        SESSION,
        2,
        "2026-03-01T13:00:00.000Z",
        0.084,
    )


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "[" * 100_000, '{"version": 2}', '{"version": 1, "session": "x", "turn": 1, "time": 0}',
     '{"version": 1, "session": 1, "turn": 1, "time": 0, "delay": 1}',
     '{"version": 1, "session": "x", "turn": true, "time": 0, "delay": 1}',
     '{"version": 1, "session": "x", "turn": 1, "time": NaN, "delay": 1}',
     f'{{"version": 1, "session": "x", "turn": 1, "time": {10**400}, "delay": 1}}',
     '{"version": 1, "session": "x", "turn": 1, "time": 0, "delay": -1}',
     '{"version": 1, "session": "x", "turn": 1, "time": 0, "delay": "soon"}'],
)  # fmt: skip
def test_a_damaged_note_is_none(sessgit: Shell, content: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    StorePaths(sessgit.store).latest.write_text(content)
    assert recorder_state.load_latest(StorePaths(sessgit.store)) is None
    assert sessgit.json("status")["last"]["recorded"] is None


def test_a_fork_without_turns_of_its_own_has_no_last_turn(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.now += 100
    for at in ("1", "2.1"):
        sessgit.out("fork", SESSION, "--at", at)
    assert sessgit.json("status")["last"]["id"] == SESSION


def test_a_time_that_no_calendar_has(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    recorder_state.save_latest(StorePaths(sessgit.store), LatestTurn(SESSION, 1, 1e15, 84))
    assert sessgit.json("status")["last"]["recorded"] is None


def test_what_needs_attention(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.unlink()
    sessgit.keep(sessgit.talk(OTHER).turns("two"))
    log.write(StorePaths(sessgit.store).log, sessgit.now - 7200, "5e55: something\x1b[31m went wrong")
    assert sessgit.out("status").splitlines()[-4:] == [
        "Attention   the client deleted 1 conversation: sessgit restore --all-lost",
        "Attention   1 older conversation can be imported: sessgit import",
        "Attention   1 entry in ~/.claude/session-store/log · the last one 2h ago:",
        "Attention   5e55: something [31m went wrong · find the cause: sessgit doctor",
    ]


def test_a_reason_is_told_whole(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    reason = " ".join(f"word{number:03d}" for number in range(40))
    log.write(StorePaths(sessgit.store).log, sessgit.now, reason)
    lines = sessgit.out("status").splitlines()
    assert max(map(len, lines)) <= 80
    assert reason in " ".join(line[12:] for line in lines)


def test_only_what_the_client_had_and_deleted_is_only_here(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("fork", "5e55", "--at", "1", "--no-restore")
    sessgit.out("import", str(sessgit.talk(OTHER).turns("three").save(tmp_path)))
    assert sessgit.json("status")["only_here"] == 0
    (tmp_path / f"{OTHER}.jsonl").unlink()
    assert sessgit.json("status")["only_here"] == 1


# What the client deletes next


def test_what_the_client_deletes_next(sessgit: Shell) -> None:
    paths = [sessgit.keep(sessgit.talk(name).turns("one")) for name in (SESSION, OTHER)]
    sessgit.out("import")
    assert attention(sessgit) == []
    age(paths[0], sessgit, 22.9)
    assert sessgit.json("status")["deleting"] is None
    age(paths[0], sessgit, 25)
    assert attention(sessgit) == ["Attention   the client deletes 1 transcript on 6 Mar · it is recorded"]
    age(paths[1], sessgit, 26)
    assert attention(sessgit) == ["Attention   the client deletes 2 transcripts within a week, the first on 5 Mar"]
    assert "            all recorded" in sessgit.out("status").splitlines()
    assert sessgit.json("status")["deleting"] == {
        "transcripts": 2, "after_days": 30, "first": "2026-03-05T13:00:00.000Z", "unrecorded": 0, "off": 0,
    }  # fmt: skip
    age(paths[1], sessgit, 31)
    assert "\n            next start · all recorded\n" in sessgit.out("status")


def test_what_it_deletes_and_nobody_recorded(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk, sessgit.talk(OTHER).turns("one", "two", "three"))
    paths = [sessgit.keep(talk.turns("two"))]
    paths.append(sessgit.keep(sessgit.talk("0b2d7f10-0000-4000-8000-00000000000b").turns("three")))
    paths.append(sessgit.keep(sessgit.talk("0b2d7f10-0000-4000-8000-00000000000c", cwd="/off").turns("four")))
    for path in paths:
        age(path, sessgit, 25)
    sessgit.out("config", "record.exclude", '["/off"]')
    found = sessgit.json("status")
    assert (found["deleting"]["transcripts"], found["deleting"]["unrecorded"], found["deleting"]["off"]) == (3, 3, 1)
    assert found["older"] == 1
    assert sessgit.out("status").splitlines()[4:7] == [
        "Attention   the client deletes 3 transcripts within a week, the first on 6 Mar",
        "            2 of them are not recorded: sessgit import",
        "            1 of projects that are off",
    ]


@pytest.mark.parametrize(
    ("settings_", "days"),
    [({"cleanupPeriodDays": 5}, 5), ({"cleanupPeriodDays": 0}, 0), ({"cleanupPeriodDays": 0.5}, 0.5),
     ({"cleanupPeriodDays": -1}, 30), ({"cleanupPeriodDays": "7"}, 30), ({"cleanupPeriodDays": True}, 30), ({}, 30)],
)  # fmt: skip
def test_how_long_the_client_keeps_a_transcript(sessgit: Shell, settings_: dict[str, object], days: float) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    (sessgit.config / "settings.json").write_text(json.dumps(settings_))
    age(path, sessgit, days - 6)
    found = sessgit.json("status")["deleting"]
    assert (found["transcripts"], found["after_days"]) == (1, days)
    age(path, sessgit, days - 8)
    assert sessgit.json("status")["deleting"] is None


def test_settings_that_cannot_be_read_tell_no_day(sessgit: Shell) -> None:
    age(sessgit.recorded(sessgit.talk().turns("one")), sessgit, 40)
    (sessgit.config / "settings.json").write_text("{")
    found = sessgit.json("status")
    assert found["deleting"] is None
    assert found["recording"]["reason"].startswith("cannot read the client's settings: ")


def test_for_programs(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    found = sessgit.json("status")
    assert found == {
        "recording": {"on": False, "reason": "no hooks are installed: sessgit install", "plugin": None},
        "here": {
            "on": False, "project": str(sessgit.project), "recorded": True, "glob": None, "off_in_environment": False,
        },
        "redact": True,
        "store": str(sessgit.store),
        "sessions": 1,
        "turns": 1,
        "bytes": found["bytes"],
        "raw_bytes": found["raw_bytes"],
        "last": {
            "id": SESSION, "turn": 1, "time": "2026-03-01T10:00:02.000Z", "recorded": None, "delay": None,
        },
        "only_here": 0,
        "older": 0,
        "purging": False,
        "packing": False,
        "waiting": None,
        "deleting": None,
        "errors": [],
        "session": {"id": SESSION, "turns": 1, "level": True},
    }  # fmt: skip


def test_a_purge_that_was_interrupted(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    (sessgit.store / "state" / "purging").write_text("{}")
    assert sessgit.json("status")["purging"] is True
    assert "a purge was interrupted" in sessgit.out("status")


def test_why_recording_is_off(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("install")
    path, hook = sessgit.config / "settings.json", sessgit.store / "hook"
    assert recording(sessgit.store, claude_homes(sessgit.config)) == Recording(True)
    assert recording(tmp_path, claude_homes(sessgit.config)) == Recording(
        False, f"the hooks record into another store, {sessgit.store}", "sessgit install"
    )
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "disableAllHooks": True}))
    assert recording(sessgit.store, claude_homes(sessgit.config)) == Recording(
        False, "the client's settings disable all hooks (disableAllHooks)"
    )
    path.write_text(json.dumps({"hooks": {"Stop": document["hooks"]["Stop"]}}))
    assert recording(sessgit.store, claude_homes(sessgit.config)) == Recording(
        True,
        "no hook for SessionStart, UserPromptSubmit, SubagentStop, PreCompact, SessionEnd",
        "sessgit install",
    )
    path.write_text(json.dumps({**document, "enabledPlugins": {"sessgit@home": True}}))
    assert recording(sessgit.store, claude_homes(sessgit.config)) == Recording(
        True, "the plugin sessgit@home leaves it to the hooks in the settings"
    )
    path.write_text(json.dumps(document))
    stub = hook.read_text()
    hook.write_text(stub.replace("python=", "python=/gone"))
    assert not recording(sessgit.store, claude_homes(sessgit.config)).on
    hook.unlink()
    assert recording(sessgit.store, claude_homes(sessgit.config)) == Recording(
        False, f"{hook} is missing", "sessgit install"
    )
    path.write_text("{")
    assert not recording(sessgit.store, claude_homes(sessgit.config)).on


def test_switched_off_in_this_shell(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("install")
    monkeypatch.setenv("SESSGIT_OFF", "1")
    assert sessgit.out("status").splitlines()[0] == (
        "Recording   off here · SESSGIT_OFF=1 is set: no client started here is recorded"
    )
    here = sessgit.json("status")["here"]
    assert (here["on"], here["recorded"], here["off_in_environment"]) == (False, True, True)


def test_a_project_that_is_off(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("install")
    sessgit.out("config", "record.exclude", '["~/s*"]')
    assert sessgit.out("status").splitlines()[:2] == [
        "Recording   off here · ~/shop is off: record.exclude has “~/s*”",
        "            last turn 2h ago (5e551011@1)",
    ]
    assert sessgit.json("status")["here"] == {
        "on": False, "project": str(sessgit.project), "recorded": False, "glob": "~/s*", "off_in_environment": False,
    }  # fmt: skip
    sessgit.out("uninstall")
    assert sessgit.out("status").splitlines()[:2] == [
        "Recording   off · no hooks are installed: sessgit install",
        "            ~/shop is off: record.exclude has “~/s*”",
    ]


def test_uninstalled(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("install")
    assert (
        sessgit.out("uninstall")
        == """\
Recording is off: 6 hooks removed from ~/.claude/settings.json
The store stays in ~/.claude/session-store; delete that folder to remove all recordings.
"""
    )
    assert not (sessgit.config / "settings.json").exists()
    assert sessgit.out("uninstall").splitlines()[0] == "Recording is off: there were no hooks"
    client = {"agent": "claude", "settings": str(sessgit.config / "settings.json"), "removed": [], "plugin": None}
    assert sessgit.json("uninstall") == {"store": str(sessgit.store), "clients": [client]}
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@1 one\n"
