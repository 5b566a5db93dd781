"""Runs the command line in this process, in a sealed home with a project, at a time that a test can predict."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.cli import app, invocation
from sessgit.cli.invocation import Invocation

NOW = datetime(2026, 3, 1, 13, 0, 0, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


def on_terminal(here: Invocation, **features: Any) -> Invocation:
    """The invocation with other features of its terminal, such as `colour=True`."""
    return replace(here, terminal=replace(here.terminal, **features))


class Shell:
    """`sessgit("log", "a41f")` runs a command; the working folder is the project `~/shop`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        self.home = Path(os.environ["HOME"])
        self.config = self.home / ".claude"
        self.store = self.config / "session-store"
        self.project = self.home / "shop"
        self.project.mkdir(exist_ok=True)
        self.now = NOW
        self.ids = 0
        monkeypatch.chdir(self.project)
        read = invocation.read
        monkeypatch.setattr(invocation, "read", lambda: replace(read(), now=self.now))
        monkeypatch.setattr("uuid.uuid4", self._new_id)

    def _new_id(self) -> uuid.UUID:
        self.ids += 1
        return uuid.UUID(f"f{self.ids:07x}-0000-4000-8000-{'f' * 12}")

    def __call__(self, *arguments: str) -> Done:
        self._patch.setattr("sys.argv", ["sessgit", *arguments])
        with pytest.raises(SystemExit) as left:
            app.main()
        said = self._capsys.readouterr()
        return Done(int(left.value.code or 0), said.out, said.err)

    def out(self, *arguments: str) -> str:
        """What a command prints that has nothing else to say."""
        done = self(*arguments)
        assert (done.code, done.err) == (0, ""), done
        return done.out

    def json(self, *arguments: str) -> Any:
        """The document that a command prints with --json, without its schema."""
        document = json.loads(self.out(arguments[0], "--json", *arguments[1:]))
        assert document.pop("schema") == f"sessgit.{arguments[0]}/v1"
        return document

    def talk(self, session: str = SESSION, **more: Any) -> Talk:
        """A conversation in the project, of which nothing is written yet."""
        return Talk(session, cwd=more.pop("cwd", str(self.project)), **more)

    def keep(self, talk: Talk) -> Path:
        """Writes the transcript where the client keeps it."""
        return talk.save(home.project_folder(self.config, str(self.project)))

    def recorded(self, *talks: Talk) -> Path:
        """Writes the transcripts and imports them; the first one's path."""
        paths = [self.keep(talk) for talk in talks]
        done = self("import")
        assert done.code == 0, done
        return paths[0]
