"""Folders of other systems, made for tests as those systems make them."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RLM = "0d7c3a1e-5b42-4f8e-9a61-c2f4e8b7d905"
BORN = 1762164000.5


def put(path: Path, value: Any) -> Path:
    """Writes bytes, a text, JSON lines (a list of objects) or any other value as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(value, bytes):
        path.write_bytes(value)
    elif isinstance(value, str):
        path.write_text(value)
    elif path.suffix in (".jsonl", ".log"):
        path.write_text("".join(json.dumps(line) + "\n" for line in value))
    else:
        path.write_text(json.dumps(value, indent=2))
    return path


def laid(root: Path, contents: Mapping[str, Any]) -> Path:
    """The folder with these files, each as `put` writes it."""
    for name, content in contents.items():
        put(root / name, content)
    return root


def log(at: Path, name: str, *lines: dict[str, Any], **meta: Any) -> Path:
    """A session of io-log: its folder."""
    folder = at / ".claude-man" / "sessions" / name
    put(folder / "io.log", list(lines))
    said = {"session_id": name, "role": "DEVELOPER", "status": "completed", "task": f"the task of {name}", **meta}
    put(folder / "metadata.json", said)
    return folder


def went(direction: str, words: str, second: int = 0, **more: Any) -> dict[str, Any]:
    """A line of such a log."""
    key = "path" if direction == "artifact" else "content"
    return {"timestamp": f"2025-11-03T10:15:{second:02d}.123Z", "direction": direction, key: words, **more}


def cell(ident: str, at: float = 1.0, **more: Any) -> dict[str, Any]:
    """A cell of RLM, made so many seconds after its session."""
    return {
        "cell_id": ident, "created_at": BORN + at, "type": "repl",
        "input": {"source": "repl", "operation": "peek", "args": {"n": 3}},
        "output": {"result": {"rows": [1, 2]}, "error": None, "execution_time_ms": 1.5},
        "dependencies": [], "dependents": [], "metadata": {"depth": 0, "model": None, "tokens_used": 0}, **more,
    }  # fmt: skip


def rlm(at: Path, session: str = RLM, said: tuple[str, ...] = ("count words", "42"), **more: Any) -> Path:
    """A folder of a session of RLM, in which a person and the model said things by turns, ten seconds apart."""
    folder = at / "rlm-sessions" / session
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": words, "timestamp": BORN + 10 * n} for n, words in enumerate(said)]
    put(folder / "session.json", {
        "metadata": {"session_id": session, "created_at": BORN, "updated_at": BORN + 100, "ended_at": BORN + 100,
                     "cwd": "/home/ada/shop", "claude_transcript_path": None, "rlm_version": "0.1.0"},
        "activation": {"rlm_active": True, "activation_mode": "complexity", "activation_reason": None,
                       "complexity_score": 0.7, "current_depth": 0, "max_depth": 3},
        "context": {"conversation": messages, "files": {}, "tool_outputs": [], "working_memory": {"plan": [1, 2]}},
        "budget": {"total_tokens_used": 10, "total_recursive_calls": 2, "max_recursive_calls": 10, "cost_usd": 0.5,
                   "by_model": {}},
        "cells": {"count": 0, "index_path": "cells/index.json"}, "trajectory": {"events_count": 0, "export_path": None},
        **more,
    })  # fmt: skip
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, with no index in it open any more."""
    gc.collect()
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
