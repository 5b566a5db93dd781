"""Two machines on which the command line runs in turn, each with a home of its own, and a repository between them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clones import bare
from shell import Done, Shell
from transcripts import Talk

from sessgit.agents.claude import home


@dataclass
class Desk:
    """A machine: what is typed there runs there."""

    shell: Shell
    patch: pytest.MonkeyPatch

    def __call__(self, *arguments: str) -> Done:
        self.sit()
        return self.shell(*arguments)

    def out(self, *arguments: str) -> str:
        self.sit()
        return self.shell.out(*arguments)

    def json(self, *arguments: str) -> Any:
        self.sit()
        return self.shell.json(*arguments)

    def record(self, talk: Talk) -> Path:
        """Writes the transcript where this machine's client keeps it, and imports it."""
        self.sit()
        path = talk.save(home.project_folder(self.shell.config, str(self.shell.project)))
        done = self.shell("import")
        assert done.code == 0, done
        return path

    def sit(self) -> None:
        self.patch.setenv("HOME", str(self.shell.home))
        self.patch.chdir(self.shell.project)

    def process(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command in a process group of its own, as a shell starts it."""
        return subprocess.Popen(
            [sys.executable, "-m", "sessgit", *arguments], env={**os.environ, "HOME": str(self.shell.home)},
            cwd=self.shell.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip


@dataclass
class Desks:
    here: Desk
    there: Desk
    hub: Path


def desks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Desks:
    """Both record, and have an empty repository for their remote `origin`."""
    hub = bare(folder / "hub")
    made = list[Desk]()
    for name in ("here", "there"):
        place = folder / name
        place.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(place))
        made.append(Desk(Shell(monkeypatch, capsys), monkeypatch))
        made[-1].out("install")
        made[-1].out("remote", "add", "origin", str(hub))
    return Desks(made[0], made[1], hub)
