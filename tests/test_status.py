"""`sessgit status`, `install` and `uninstall`: whether recording is on, and if not, why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.agents.claude import settings
from sessgit.ops.status import Recording, recording
from sessgit.store import log
from sessgit.store.layout import Beside
from sessgit.ui import text


@pytest.fixture
def sessgit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def size(sessgit: Shell) -> str:
    return text.size(sum(path.stat().st_size for path in sessgit.store.rglob("*") if path.is_file()))


def test_before_anything_is_installed(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    assert (
        sessgit.out("status")
        == """\
Recording   off · no hooks are installed: sessgit install
Store       ~/.claude/session-store · not there yet: sessgit install
Attention   1 older conversation can be brought in: sessgit import
"""
    )


def test_the_first_installation(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    assert (
        sessgit.out("install")
        == """\
Recording is on: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)
1 older conversation can be brought in: sessgit import
All that is said is kept in ~/.claude/session-store, readable by you alone,
not encrypted; common secrets are replaced first.
Claude Code that runs already: 2.1 is recorded from its next prompt on, 2.0 after a restart.
"""
    )
    assert sessgit.out("install") == (
        "Recording is on already: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)\n"
        "1 older conversation can be brought in: sessgit import\n"
    )


def test_a_running_client_that_had_settings_follows(sessgit: Shell) -> None:
    sessgit.config.mkdir()
    (sessgit.config / "settings.json").write_text('{"model": "opus"}')
    assert sessgit.out("install").splitlines()[-1] == (
        "Claude Code that runs already is recorded from its next prompt on."
    )


def test_a_commit_for_each_cell(sessgit: Shell) -> None:
    sessgit.out("install", "--granularity", "cell")
    assert sessgit.out("config", "record.granularity") == "cell\n"
    assert "PostToolUse" in (sessgit.config / "settings.json").read_text()
    assert sessgit.json("install")["already_there"] == list(settings.CELL_EVENTS)


def test_what_an_installation_says_of_a_plugin_and_of_disabled_hooks(sessgit: Shell) -> None:
    sessgit.config.mkdir()
    odd = {"disableAllHooks": True, "enabledPlugins": {"sessgit@home": True}}
    (sessgit.config / "settings.json").write_text(json.dumps(odd))
    assert sessgit.out("install").splitlines()[-2:] == [
        "But nothing is recorded yet: these settings disable all hooks (disableAllHooks).",
        "The plugin sessgit@home runs the same hooks: each event comes twice, which harms nothing.",
    ]


def test_recording(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two").title("parser"))
    sessgit.out("install")
    assert (
        sessgit.out("status", "5e55")
        == f"""\
Recording   on · last turn 2h ago (5e551011@2)
Store       ~/.claude/session-store · 1 conversation, 2 turns · {size(sessgit)}
Session     5e551011  parser · 2 turns · all recorded
"""
    )


def test_what_needs_attention(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    path.unlink()
    sessgit.keep(sessgit.talk(OTHER).turns("two"))
    log.write(Beside(sessgit.store).log, sessgit.now - 7200, "5e55: something\x1b[31m went wrong")
    assert sessgit.out("status").splitlines()[-4:] == [
        "Attention   the client has deleted 1 transcript · they are only here now",
        "Attention   1 older conversation can be brought in: sessgit import",
        "Attention   1 entry in the log · the last one 2h ago:",
        "Attention   5e55: something [31m went wrong",
    ]


def test_for_programs(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    found = sessgit.json("status")
    assert found == {
        "recording": {"on": False, "why": "no hooks are installed: sessgit install"},
        "store": str(sessgit.store),
        "sessions": 1,
        "turns": 1,
        "bytes": found["bytes"],
        "last": {"id": SESSION, "turn": 1, "time": found["last"]["time"]},
        "only_here": 0,
        "older": 0,
        "errors": [],
        "session": {"id": SESSION, "turns": 1, "level": True},
    }


def test_why_recording_is_off(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("install")
    path, hook = sessgit.config / "settings.json", sessgit.store / "hook"
    assert recording(sessgit.store, sessgit.config) == Recording(True)
    assert recording(tmp_path, sessgit.config) == Recording(
        False, f"the hooks record into another store: {sessgit.store}"
    )
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "disableAllHooks": True}))
    assert recording(sessgit.store, sessgit.config) == Recording(
        False, "the client's settings disable all hooks (disableAllHooks)"
    )
    path.write_text(json.dumps({"hooks": {"Stop": document["hooks"]["Stop"]}}))
    assert recording(sessgit.store, sessgit.config) == Recording(
        True,
        "no hook for SessionStart, UserPromptSubmit, SubagentStop, PreCompact, SessionEnd: sessgit install",
    )
    path.write_text(json.dumps({**document, "enabledPlugins": {"sessgit@home": True}}))
    assert recording(sessgit.store, sessgit.config) == Recording(
        True, "twice: the hooks run from the settings and from the plugin sessgit@home"
    )
    path.write_text(json.dumps(document))
    stub = hook.read_text()
    hook.write_text(stub.replace("python=", "python=/gone"))
    assert not recording(sessgit.store, sessgit.config).on
    hook.unlink()
    assert recording(sessgit.store, sessgit.config) == Recording(False, f"{hook} is missing: sessgit install")
    path.write_text("{")
    assert not recording(sessgit.store, sessgit.config).on


def test_switched_off_in_this_shell(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSGIT_OFF", "1")
    assert sessgit.out("status").splitlines()[1] == (
        "            SESSGIT_OFF=1 is set here: clients started here are not recorded"
    )


def test_uninstalled(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("install")
    assert (
        sessgit.out("uninstall")
        == """\
Recording is off: 6 hooks taken out of ~/.claude/settings.json
What was recorded stays in ~/.claude/session-store; delete that folder to forget it.
"""
    )
    assert not (sessgit.config / "settings.json").exists()
    assert sessgit.out("uninstall").splitlines()[0] == "Recording is off: there were no hooks"
    assert sessgit.json("uninstall") == {"store": str(sessgit.store), "removed": []}
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@1 one\n"
