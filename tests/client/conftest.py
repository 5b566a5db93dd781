"""The tests that drive the real client: `make test-client`, or SESSGIT_TEST_CLIENT=1 pytest tests/client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clients import VERSIONS, Client, Result, UnavailableError, install, kill, seal_home
from model_server import ModelServer
from terminal import Terminal

ENABLE = "SESSGIT_TEST_CLIENT"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("client") and not os.environ.get(ENABLE):
        pytest.skip("client tests not run: make test-client")


@pytest.fixture(scope="session", params=VERSIONS)
def client(request: pytest.FixtureRequest) -> Client:
    try:
        return install(request.param)
    except UnavailableError as error:
        pytest.skip(f"Claude Code {request.param}: {error}")


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@dataclass
class World:
    """A sealed home, a project that is a git repository, one client and one model."""

    client: Client
    model: ModelServer
    home: Path
    project: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    terminals: list[Terminal] = field(default_factory=list)

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    def run(self, prompt: str, **options: Any) -> Result:
        """One headless turn: Client.run() in this home and project."""
        return self.client.run(prompt, **self._given(options))

    def start(self, prompt: str, **options: Any) -> subprocess.Popen[str]:
        process = self.client.start(prompt, **self._given(options))
        self.started.append(process)
        return process

    def terminal(self, *arguments: str, **options: Any) -> Terminal:
        """The interactive client; ready for a prompt."""
        terminal = Terminal(self.client, arguments, **self._given(options))
        self.terminals.append(terminal)
        return terminal.__enter__()

    def transcripts(self) -> list[Path]:
        """The transcripts of sessions, oldest first; without empty ones (2.0 leaves them) and subagents."""
        found = (self.home / ".claude" / "projects").glob("*/*.jsonl")
        kept = [path for path in found if not path.name.startswith("agent-") and path.stat().st_size]
        return sorted(kept, key=lambda path: path.stat().st_mtime_ns)

    def transcript(self, session_id: str) -> Path:
        return next(path for path in self.transcripts() if path.stem == session_id)

    def lines(self, session_id: str) -> list[dict[str, Any]]:
        with self.transcript(session_id).open(encoding="utf-8") as opened:
            return [json.loads(line) for line in opened]

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()
        for process in self.started:
            kill(process)

    def _given(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"home": self.home, "cwd": self.project, "base_url": self.model.url, **options}


@pytest.fixture
def world(client: Client, model: ModelServer, tmp_path: Path) -> Iterator[World]:
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    seal_home(home, project)
    (home / ".gitconfig").write_text("[user]\n\tname = Tester\n\temail = tester@example.org\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    (project / "README.md").write_text("# A project\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run(["git", *command], cwd=project, env=environ, check=True)
    made = World(client, model, home, project)
    yield made
    made.close()
