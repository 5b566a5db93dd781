"""The first minutes: `sessgit` alone, and what each command says where there is nothing yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import Shell

from sessgit.cli import app
from sessgit.cli.commands import status

SPEAKS_WITHOUT_A_STORE = ("install", "uninstall", "status", "doctor", "off", "config")
"""The commands that have something to say where there is no store; all others say what to do first."""

SPEAKS_WITHOUT_A_SESSION = (
    *SPEAKS_WITHOUT_A_STORE, "on", "import", "gc", "remote", "purge", "verify", "recover", "new",
)  # fmt: skip
"""The commands that have work to do in an empty store."""

WAITING = ("watch", "mcp", "prompt")
"""The commands that wait there, for the first conversation or for a client, or print nothing until then."""

NEEDED = {
    "archive": ("a41f",),
    "bisect": ("--run", "true"),
    "blame": ("lexer.py",),
    "cell": ("@1.1",),
    "delete": ("a41f", "--yes"),
    "deps": ("@1.1",),
    "merge": ("a41f",),
    "pick": ("a41f@1",),
    "purge": ("a value", "--yes"),
    "pad": ("claim", "It holds."),
    "unarchive": ("a41f",),
    "edit": ("--name", "parser"),
    "export": ("markdown",),
    "rename": ("parser",),
    "search": ("parser",),
    "tag": ("release",),
    "why": ("parser.py",),
}
"""The arguments that a command cannot do without."""


def test_alone_in_an_empty_home(sessgit: Shell) -> None:
    assert (
        sessgit.out()
        == """\
Recording   off · no hooks are installed: sessgit install

  sessgit install  record every conversation with Claude Code from now on
  sessgit import   import the conversations that you had before

sessgit --help lists all commands.
"""
    )
    assert list(sessgit.home.iterdir()) == [sessgit.project]


def test_alone_with_conversations_that_nobody_recorded(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    assert "  sessgit import   import the conversations that you had before: 1 is here\n" in sessgit.out()


def test_alone_with_a_store(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    told = sessgit.out()
    assert told.startswith(sessgit("status").out)
    assert (
        told.split("\n\n", 1)[1]
        == """\
  sessgit log           the turns of this conversation; sessgit ls lists all of
                        this project
  sessgit search WORDS  search what was said in all conversations
  sessgit fork --at N   continue from turn N in a new conversation
  sessgit diff A B      compare two conversations
  sessgit restore ID    restore the client's file, even if the client deleted it

sessgit --help lists all commands.
"""
    )


def test_the_commands_to_begin_with_are_there() -> None:
    assert {line.split()[1] for line, _ in status.FIRST_COMMANDS} <= set(app.COMMANDS)


def complaint(sessgit: Shell, name: str) -> tuple[int, list[str]]:
    """How the command ends, and its lines on standard error, where it says nothing else."""
    done = sessgit(name, *NEEDED.get(name, ()))
    assert done.out == "", done
    return done.code, done.err.splitlines()


NEED_A_STORE = [name for name in app.COMMANDS if name not in (*SPEAKS_WITHOUT_A_STORE, "bridge", "mcp", "prompt")]


@pytest.mark.parametrize("name", NEED_A_STORE)
def test_without_a_store_two_lines_say_what_to_do(sessgit: Shell, name: str) -> None:
    code, lines = complaint(sessgit, name)
    assert (code, [line.partition(" ")[0] for line in lines]) == (4, ["Error:", "Hint:"])
    assert "sessgit install" in lines[1]
    assert not sessgit.config.exists()


@pytest.mark.parametrize("name", [name for name in app.COMMANDS if name not in (*SPEAKS_WITHOUT_A_SESSION, *WAITING)])
def test_in_an_empty_store_two_lines_say_what_to_do(sessgit: Shell, name: str) -> None:
    sessgit.out("install")
    code, lines = complaint(sessgit, name)
    assert (code, [line.partition(" ")[0] for line in lines]) == (4, ["Error:", "Hint:"])
    assert "sessgit " in lines[1]


@pytest.mark.parametrize("name", SPEAKS_WITHOUT_A_SESSION)
def test_what_works_in_an_empty_store(sessgit: Shell, name: str) -> None:
    sessgit.out("install")
    done = sessgit(name, *NEEDED.get(name, ()))
    assert (done.code, done.err) == (0, "")
    assert done.out


def test_nothing_to_bring_in(sessgit: Shell) -> None:
    done = sessgit("import")
    assert (done.code, done.out, done.err) == (
        4,
        "",
        "Error: there is nothing to import: no conversations in ~/.claude or ~/.codex.\n"
        "Hint: `sessgit install` starts recording, `sessgit import PATH` imports other transcripts.\n",
    )


def test_an_installation_points_the_hooks_elsewhere(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sessgit.out("install")
    monkeypatch.setenv("SESSGIT_STORE", str(tmp_path / "other"))
    assert "The hooks no longer record into ~/.claude/session-store.\n" in sessgit.out("install")
    monkeypatch.delenv("SESSGIT_STORE")
    assert sessgit.out("status").splitlines()[0].startswith("Recording   off")
    document = json.loads((sessgit.config / "settings.json").read_text())
    assert str(sessgit.store / "hook") not in json.dumps(document)
