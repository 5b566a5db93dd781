"""A day of RLM: hooks that add to a session, and a program that asks about it. Run: python examples/hooks_and_bridge.py

The client calls a hook of the user's after each tool call. The hook is a process of its own: it keeps a step of the
REPL as a cell, and what was learned in the session's working memory. Another program has a question about the session
at any time, and asks `sessgit bridge`. In the evening the session is written in RLM's own form.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sessgit import Session, Store

HOOK = """
import json, sys
from sessgit import Store
event = json.load(sys.stdin)
with Store.open() as store:
    session = store.load_session(event["session_id"])
    before = [cell for cell in session.cells() if cell.operation == "count_words"][-1:]
    with session.cell("count_words", args={"path": event["path"]}, dependencies=before) as cell:
        cell.result = len(event["text"].split())
    session.record_reasoning(f"{event['path']} is read", evidence=[cell.id])
    session.update_state(remember={event["path"]: cell.result})
"""
TEXTS = {"kiln.txt": "The kiln was too hot again", "market.txt": "Eleven cups were sold at the market"}
QUESTIONS = [
    {"id": 1, "op": "session"},
    {"id": 2, "op": "peek", "args": {"of": "working_memory"}},
    {"id": 3, "op": "search", "args": {"query": "cups"}},
    {"id": 4, "op": "cells", "args": {"type": "repl"}},
]


def work(session: Session, env: dict[str, str]) -> None:
    """What the client does in a turn: it reads files, and calls the hook after each."""
    for path, text in TEXTS.items():
        session.record_turn(f"Read {path}", f"It says: {text}.")
        event = {"session_id": session.id, "path": path, "text": text}
        subprocess.run([sys.executable, "-c", HOOK], input=json.dumps(event), text=True, env=env, check=True)


def ask(session: Session, env: dict[str, str]) -> list[dict[str, object]]:
    """What the bridge answers, which keeps running and reads a question from each line."""
    lines = "".join(f"{json.dumps(question)}\n" for question in QUESTIONS)
    command = [sys.executable, "-m", "sessgit", "bridge", session.id]
    done = subprocess.run(command, input=lines, text=True, env=env, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Store.temporary() as store:
        env = {**os.environ, "HOME": str(store.home), "CLAUDE_CONFIG_DIR": str(store.config)}
        session = store.create_session(folder, name="pottery")
        work(session, env)

        state, memory, found, cells = ask(session, env)
        print("Active:", state["rlm_active"], " tokens:", state["tokens_used"])
        print("Working memory:", json.loads(str(memory["content"])))
        print("Lines with “cups”:", found["count"])
        print("Steps of the REPL:", cells["count"])

        last = session.cells(type="repl")[-1]
        print("\nThe last one stands on:", len(session.dependency_chain(last)), "other")
        print("Reasons:", [reason.text for _, reason in session.reasoning()])

        command = [sys.executable, "-m", "sessgit", "export", "rlm", session.id, "--output", folder]
        subprocess.run(command, env=env, check=True, capture_output=True)
        files = sorted(path.name for path in Path(folder).rglob("*") if path.is_file() and "cell_" not in path.name)
        print("\nFor RLM:", *files)


if __name__ == "__main__":
    main()
