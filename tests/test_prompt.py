"""`sessgit prompt`, a word for a shell prompt, and the status line of Claude Code."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from shell import Shell
from test_cold import loaded
from transcripts import MODEL, SESSION

FORK = "07e12000-0000-4000-8000-000000000002"


def shown(sessgit: Shell, **said: str) -> str:
    """What the client's shell prints for the status line in the settings."""
    command = json.loads((sessgit.config / "settings.json").read_text())["statusLine"]["command"]
    payload = json.dumps({"session_id": SESSION, "cwd": str(sessgit.project), "cost": {}} | said)
    done = subprocess.run(["/bin/sh", "-c", command], input=payload, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_word_is_the_last_turn_of_the_project(sessgit: Shell) -> None:
    assert sessgit.out("prompt") == ""  # no store
    sessgit.out("install")
    assert sessgit.out("prompt") == ""
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    assert sessgit.out("prompt") == "5e551011@2\n"
    (sessgit.project / "src").mkdir()
    program = [sys.executable, "-m", "sessgit", "prompt"]
    for folder, word in ((sessgit.project, "5e551011@2\n"), (sessgit.project / "src", ""), (sessgit.home, "")):
        done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (word, "")
    subprocess.run(["git", "init", "-q", str(sessgit.project)], check=True)
    done = subprocess.run(program, cwd=sessgit.project / "src", capture_output=True, text=True, check=True)
    assert done.stdout == "5e551011@2\n"


def test_the_word_loads_next_to_nothing(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    names = ("typer", "click", "rich", "pygit2", "json", "re", "dataclasses", "sessgit.agents", "sessgit.environment")
    assert loaded("sessgit", "prompt", names=names) <= {"re"}  # which pathlib loads on Python 3.11


def test_the_store_is_the_one_of_the_other_commands(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    for variable, value in (("CLAUDE_CONFIG_DIR", sessgit.config), ("SESSGIT_STORE", sessgit.store)):
        monkeypatch.setenv(variable, str(value))
        monkeypatch.setenv("HOME", "/nowhere")
        assert sessgit.out("prompt") == "5e551011@1\n"
    for file in sessgit.store.glob("index.sqlite3*"):
        file.write_bytes(b"no index")
    assert sessgit.out("prompt") == ""


def test_the_status_line(sessgit: Shell) -> None:
    sessgit.out("install", "--statusline")
    assert shown(sessgit) == "5e551011 · recorded\n"  # the first turn is not over
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    assert shown(sessgit) == "5e551011@2 · recorded\n"
    sessgit.out("fork", "5e55", "--at", "1")
    sessgit.out("rename", "5e55", "parser")
    assert shown(sessgit) == "5e551011@2 parser · recorded · 1 fork\n"
    sessgit.out("config", f"prices.{MODEL}", "{input = 1000000, output = 0, cache_read = 0, cache_write = 0}")
    assert "$" in shown(sessgit)
    sessgit.out("off")
    assert " · not recorded · " in shown(sessgit)
    assert shown(sessgit, session_id="nonsense").startswith("5e551011") is False


def test_a_status_line_without_the_program_is_empty(sessgit: Shell) -> None:
    sessgit.out("install", "--statusline")
    settings = sessgit.config / "settings.json"
    settings.write_text(settings.read_text().replace(sys.executable, "/gone/python"))
    assert shown(sessgit) == ""


@pytest.mark.parametrize("payload", ["", "no JSON", "[]", "[" * 100_000, '{"session_id": 7}'])
def test_a_status_line_for_what_is_no_session(sessgit: Shell, payload: str) -> None:
    program = [sys.executable, "-m", "sessgit", "prompt", "--statusline"]
    done = subprocess.run(program, input=payload, capture_output=True, text=True, check=True)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert "not recorded" in done.stdout


@pytest.mark.parametrize(
    "before", ['{"model": "opus",   "env": {}}', '{\n\t"model": "opus"\n}\n\n', '{"enabledPlugins": {}}']
)
def test_uninstall_restores_the_settings(sessgit: Shell, before: str) -> None:
    settings = sessgit.config / "settings.json"
    settings.parent.mkdir()
    settings.write_text(before)
    assert "Claude Code shows a status line (undo: sessgit uninstall)\n" in sessgit.out("install", "--statusline")
    assert settings.read_text() != before
    once = settings.read_text()
    sessgit.out("install", "--statusline")
    sessgit.out("install")
    assert settings.read_text() == once
    assert "the status line removed" in sessgit.out("uninstall")
    assert settings.read_text() == before


def test_another_status_line_stays(sessgit: Shell) -> None:
    settings = sessgit.config / "settings.json"
    settings.parent.mkdir()
    own = '{"statusLine": {"type": "command", "command": "date"}}'
    settings.write_text(own)
    done = sessgit("install", "--statusline")
    assert (done.code, done.out) == (3, "")
    assert done.err == (
        f"Error: {settings}: the settings have another status line.\n"
        "Hint: remove it first, or have it run `sessgit prompt --statusline` with its standard input\n"
    )
    assert settings.read_text() == own
    sessgit.out("install")
    sessgit.out("uninstall")
    assert settings.read_text() == own


def test_codex_runs_no_command_for_its_status_line(sessgit: Shell) -> None:
    done = sessgit("install", "--agent", "codex", "--statusline")
    assert (done.code, done.out) == (3, "")
    assert done.err.endswith("Codex runs no command for its status line.\nHint: Leave out --statusline.\n")
