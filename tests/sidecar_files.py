"""What a test puts beside a transcript, and sees there."""

from __future__ import annotations

import json
from pathlib import Path

from transcripts import Talk, subagent

PLAN = "brisk-mending-heron"


def lay_beside(folder: Path, talk: Talk, *, words: str = "") -> dict[str, bytes]:
    """A subagent of the turn that runs, a large result, tasks, todos and a plan; all files below the client's folder.

    `folder` is that of the transcript. The turn must name `big.txt` and the slug of the plan.
    """
    config, session = folder.parents[1], talk.session
    lines = subagent(folder, talk, "a1", "looking", "found")
    with lines.open("a") as file:
        line = {"type": "user", "sessionId": session, "message": {"content": f"so {words}"}}
        file.write(json.dumps(line, separators=(",", ":")) + "\n")
    lines.with_name("agent-a1.meta.json").write_text('{"agentType":"general-purpose"}')
    for path, text in {
        f"{folder.relative_to(config)}/{session}/tool-results/big.txt": f"much {words}\n",
        f"tasks/{session}/1.json": json.dumps({"id": "1", "subject": f"alpha {words}", "status": "pending"}),
        f"tasks/{session}/2.json": json.dumps({"id": "2", "subject": "beta", "status": "completed"}),
        f"todos/{session}-agent-{session}.json": json.dumps([{"content": "alpha", "status": "pending"}]),
        f"todos/{session}-agent-c0ffee11.json": "[]",
        f"plans/{PLAN}.md": f"# Plan\n\nFirst {words}\n",
    }.items():
        (config / path).parent.mkdir(parents=True, exist_ok=True)
        (config / path).write_text(text)
    return side_files(config)


def side_files(config: Path) -> dict[str, bytes]:
    """Every file of the client's folder but transcripts and the store, by its path below it."""
    return {
        str(path.relative_to(config)): path.read_bytes()
        for path in sorted(config.rglob("*"))
        if path.is_file() and "session-store" not in path.parts and path.parent.parent.name != "projects"
    }


def wipe(config: Path) -> None:
    """Deletes what the client deletes: transcripts and all that lies beside them."""
    for top in ("projects", "tasks", "todos", "plans"):
        for path in sorted((config / top).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()


def helped(talk: Talk, **extra: str) -> Talk:
    """A turn that has everything beside it: its agent and the large result are named in its lines."""
    talk.prompt("look around", slug=PLAN, **extra).tool("Agent", {}, "agentId: a1")
    return talk.tool("Bash", {}, "saved to tool-results/big.txt").answer("Here.").stop_lines()
