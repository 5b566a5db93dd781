"""Tests of a tool that reads the client's files, with fixtures as in claudeless. Run it: python examples/fixtures.py

The tool adds up what each model wrote, and lists open todos. It finds the client's folder by `CLAUDE_CONFIG_DIR`. Its
tests need neither the client nor a model: sessgit writes the files, and deletes them at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from sessgit import Store, ToolCall


def tool(config: Path) -> None:
    """The tool under test."""
    written = Counter[str]()
    for transcript in config.glob("projects/*/*.jsonl"):
        requests = dict[str, tuple[str, int]]()  # a request has several lines, each with the tokens of all
        for line in map(json.loads, transcript.read_text("utf-8").splitlines()):
            if line["type"] == "assistant" and "requestId" in line:
                message = line["message"]
                requests[line["requestId"]] = message["model"], message["usage"]["output_tokens"]
        for model, tokens in requests.values():
            written[model] += tokens
    for model, tokens in sorted(written.items()):
        print(f"{model}: {tokens} tokens")
    for todos in config.glob("todos/*.json"):
        for todo in json.loads(todos.read_text("utf-8")):
            if todo["status"] != "completed":
                print(f"open: {todo['content']}")


def run(store: Store) -> list[str]:
    """Return the lines that the tool prints for the client's folder of a store."""
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(store.config)}
    command = [sys.executable, __file__, "tool"]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> None:
    with Store.temporary() as store:
        print("Nothing yet:", run(store))

        session = store.create_session(title="Fix the tokenizer")
        read = ToolCall("Read", {"file_path": "lex.py"}, "def lex(): …")
        session.record_turn("Fix it", "Done.", [read], model="claude-opus-4-8", tokens={"input": 900, "output": 40})
        session.record_turn("And now?", "Ship it.", model="claude-haiku-4-5", tokens={"input": 80, "output": 7})
        session.write_todos([{"content": "Build", "status": "completed"}, {"content": "Ship", "status": "pending"}])
        print("Two turns:", run(store))

        session.fork(at=1)
        print("A fork has its turns too:", run(store))
        config = store.config
    print("Nothing is left:", not config.exists())


if __name__ == "__main__":
    if sys.argv[1:] == ["tool"]:
        tool(Path(os.environ["CLAUDE_CONFIG_DIR"]))
    else:
        main()
