"""Where a test of the client takes place."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients import Client, Result, kill
from model_server import ModelServer
from terminal import Terminal


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
