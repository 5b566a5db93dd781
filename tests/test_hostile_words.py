"""Whatever is typed, piped in or configured: no bug, no control character, and nothing changes outside of the store,
the client's folder and the project."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from fuzzing import EVIL, batch, broken, changed, dumped, listing, runs, spoils, talk, took
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell
from test_fuzz import BUG, as_before, check
from transcripts import OTHER, SESSION

from sessgit.cli import app
from sessgit.cli.commands import watch

BY_DESIGN = {"--run", "--to", "--llm", "--exec", "--with", "--execute", "--unconfined"}
"""Options by which a person lets commands run."""
ELSEWHERE = {"-o", "--output", "--worktree"}
"""Options by which a person says where something is written."""
RESUMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Sealed:
    """A folder with a home, a temporary folder and things of other people in it."""

    top: Path
    shell: Shell
    kept: Path

    def outside(self) -> dict[str, tuple[object, ...]]:
        """All that no command has any business with."""
        return listing(self.top, self.shell.config, self.shell.project)

    def here(self, word: str) -> str:
        """The word with places of the machine in it moved into the folder."""
        for place in ("/etc", "/tmp"):
            word = re.sub(rf"(?<![\w.]){place}(?=/|$)", f"{self.top}{place}", word)
        return word if word != "~root" else f"{self.top}/root"


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Sealed]:
    top = tmp_path / "sealed"
    for name in ("etc/passwd", "root/.ssh/id", "home/ada/.bashrc", "home/ada/other/a.py", "home/bob/.claude/x.json"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("somebody else's\n")
    (top / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(top / "home" / "ada"))
    monkeypatch.setenv("TMPDIR", str(top / "tmp"))
    for name, folder in (("CONFIG", ".config"), ("CACHE", ".cache"), ("DATA", ".local/share"), ("STATE", ".state")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(top / "home" / "ada" / folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(os, "execvp", no_client)
    shell = Shell(monkeypatch, capsys)
    shell.recorded(talk(str(shell.project)), shell.talk(OTHER).turns("else"))
    shell.out("tag", "v1", f"{SESSION}@1")
    shell.out("fork", SESSION, "--at", "1", "--name", "forked")
    yield Sealed(top, shell, tmp_path / "kept")
    tempfile.tempdir = None


def no_client(program: str, words: list[str]) -> None:
    assert program == "claude"
    assert RESUMED.fullmatch(words[2]), words
    raise FileNotFoundError(program)


def options(name: str) -> list[str]:
    """All options of a command, but those that are there to run something."""
    command = typer.main.get_command(app.app).get_command(None, name)  # type: ignore[attr-defined]
    every = [] if command is None else [name for one in command.params for name in one.opts if name.startswith("-")]
    return [name for name in every if name not in BY_DESIGN] or ["--json"]


OPTIONS = {name: options(name) for name in (*app.COMMANDS, "nonsense") if name not in ("watch", "web", "mcp")}
WORDS = st.one_of(
    st.sampled_from(EVIL),
    st.sampled_from([SESSION, f"{SESSION}@1", f"{SESSION}@3.2", OTHER, "forked", "v1", "@2", "add", "html", "markdown",
                     "json", "claude", "insight", "one", "1", "2..3", "record.redact", "true", "rm", "list", "7d",
                     "yesterday", "rlm", "apex", "dialectic", "io-log", ".", "../other"]),
    st.text(max_size=12),
)  # fmt: skip
QUESTION = {"op": "cells", "args": {"type": "tool", "cell_id": "cell_a", "limit": 3}, "id": 1}
ASKED = st.one_of(changed([QUESTION, {"op": "cell", "args": {"cell_id": f"{SESSION}@3.2"}}]).map(dumped),
                  broken(dumped(QUESTION)), st.binary(max_size=60))  # fmt: skip


@st.composite
def typed(draw: st.DrawFn) -> tuple[str, ...]:
    """A command with any words and any of its options."""
    name = draw(st.sampled_from(sorted(OPTIONS)))
    words = draw(st.lists(st.one_of(WORDS, st.sampled_from(OPTIONS[name])), max_size=5))
    return (name, *(word for word in words if "\0" not in word))


PIPED = ASKED | st.sampled_from(EVIL).map(lambda word: word.encode("utf-8", "replace"))
TYPED = WORDS.filter(lambda word: "\0" not in word)


@runs(6, 14, each=3)
@given(commands=batch(typed(), 3), piped=PIPED)
def test_any_words_on_the_command_line(
    sealed: Sealed, monkeypatch: pytest.MonkeyPatch, commands: list[tuple[str, ...]], piped: bytes
) -> None:
    as_before(sealed.shell, sealed.kept)
    before = sealed.outside()
    for command in commands:
        words = tuple(map(sealed.here, command))
        if words[0] == "export" and not ELSEWHERE.intersection(words):
            words += ("-o", str(sealed.shell.project / "out"))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped)))
        said = check(sealed.shell, *words)
        if "--json" in words and said.startswith("{"):
            json.JSONDecoder().raw_decode(said)
        elsewhere = ELSEWHERE.intersection(words) or any(word.startswith("-o") for word in words)
        if elsewhere and words[0] in ("export", "restore", "fork"):
            before = sealed.outside()
        assert sealed.outside() == before, words
        took()


@runs(4, 2, each=20)
@given(questions=batch(ASKED, 20))
def test_any_questions_to_the_bridge(sealed: Sealed, monkeypatch: pytest.MonkeyPatch, questions: list[bytes]) -> None:
    before = sealed.outside()
    lines = [question.replace(b"\n", b" ") for question in questions]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines) + b"\n")))
    done = sealed.shell("bridge", SESSION)
    assert done.code == 0, done
    assert not spoils(done.out + done.err)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert len(answers) == len([line for line in lines if line.strip()])
    assert sealed.outside() == before
    took(len(questions))


@runs(0.3, 3)
@given(words=st.lists(TYPED | st.sampled_from(["--all", "--json"]), max_size=3))
def test_any_words_to_watch(sealed: Sealed, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    def ended() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_waiting", lambda: ended)
    before = sealed.outside()
    done = sealed.shell("watch", *map(sealed.here, words))
    assert done.code not in (BUG, None), (words, done)
    assert not spoils(done.out + done.err), (words, done)
    assert sealed.outside() == before
    took()


SETTINGS = ("HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "COLUMNS", "TERM", "NO_COLOR", "PAGER", "SESSGIT_OFF",
            "SESSGIT_STORE", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_SESSION_ID", "GIT_DIR", "GIT_WORK_TREE",
            "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_SSH_COMMAND", "XDG_CONFIG_HOME")  # fmt: skip
VALUES = [word for word in EVIL if "\0" not in word and "\ud800" not in word]


@runs(0.3, 3)
@given(name=st.sampled_from(SETTINGS), value=st.sampled_from(VALUES))
def test_any_environment(sealed: Sealed, name: str, value: str) -> None:
    """What a variable names is the user's own: a store may be made there. Nothing else is."""
    as_before(sealed.shell, sealed.kept)
    before = sealed.outside()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, sealed.here(value))
        for words in (("ls", "--all"), ("log", SESSION), ("status",), ("tag", "--", "v2", SESSION), ("gc",)):
            check(sealed.shell, *words)
    if name not in ("SESSGIT_STORE", "CLAUDE_CONFIG_DIR", "HOME"):
        assert sealed.outside() == before, (name, value)
    took()
