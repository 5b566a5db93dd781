"""A project with code: a git repository in which conversations are held, recorded turn by turn as a live recorder does.

Names and times are fixed, so that commits have the same ids in every run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2
import pytest
from kept import Begin
from plain import run_git
from pygit2.enums import ReferenceType
from shell import Shell
from transcripts import BIRTH, Talk

from sessgit.agents.claude import home
from sessgit.history import project_git
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import owner
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

_BIRTH = int(BIRTH.timestamp())


def begins(begin: Callable[[Coded], object]) -> Any:
    """As `kept.begins`, with a project that has code."""

    def begin_shell(shell: Shell) -> None:
        with pytest.MonkeyPatch.context() as patch:
            begin(Coded(shell, patch))

    @pytest.fixture(name=begin.__name__)
    def fixture(begun: Callable[[Begin], Shell], monkeypatch: pytest.MonkeyPatch) -> Coded:
        return Coded(begun(begin_shell), monkeypatch)

    return fixture


class Coded:
    """The command line in the project `~/shop`, which is a git repository on `main` with one commit."""

    def __init__(self, shell: Shell, patch: pytest.MonkeyPatch) -> None:
        self.shell, self.project = shell, shell.project
        for who in ("AUTHOR", "COMMITTER"):
            for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", "2026-03-01T10:00:00Z")):
                patch.setenv(f"GIT_{who}_{what}", value)
        if (self.project / ".git").exists():  # this is a kept home
            return
        run_git(self.project, "init", "-q", "-b", "main")
        self.commit("Start", {"README.md": "# Shop\n", "src/lexer.py": "one\ntwo\nthree\n", ".gitignore": ".env\n"})
        if not owner.store_exists(shell.store):
            stores.create_store(shell.store)

    def git(self, *arguments: str, at: Path | None = None) -> str:
        return run_git(at or self.project, *arguments).strip()

    def write(self, files: dict[str, str | bytes], at: Path | None = None) -> None:
        for name, data in files.items():
            path = (at or self.project) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def commit(self, subject: str, files: dict[str, str | bytes], at: Path | None = None) -> str:
        """Writes and commits the files as `git add -A` and `git commit` do; the commit's id."""
        self.write(files, at)
        repo = pygit2.Repository(str(at or self.project))
        repo.index.add_all()
        repo.index.write()
        who = pygit2.Signature("Ada", "ada@example.org", _BIRTH)
        head = repo.references["HEAD"]
        parents = [] if repo.head_is_unborn else [repo.head.target]
        branch = "HEAD" if head.type == ReferenceType.DIRECT else head.target
        made = repo.create_commit(branch, who, who, f"{subject}\n", repo.index.write_tree(), parents)
        repo.free()
        return str(made)

    def record(self, talk: Talk, *, at: Path | None = None, live: bool = True, granularity: str = "turn") -> Path:
        """Brings the store level with the conversation, which noted the project's head where it was live."""
        folder = str(at or self.project)
        path = talk.save(home.project_folder(self.shell.config, talk.file.cwd))
        store = Store(self.shell.store)
        index = Index(store.path, lambda: store)
        head = project_git.project_head(folder, os.environ) if live else ""
        record(
            Context(index, privacy=Privacy(RecordConfig(granularity))),
            TranscriptSource(path, path.stem, self.shell.config, live=live, head=head),
        )
        index.close()
        return path

    def talk(self, session: str, **more: Any) -> Talk:
        return self.shell.talk(session, **more)
