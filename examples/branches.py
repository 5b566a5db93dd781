"""A day with named sessions and branches, as in apex. Run it: python examples/branches.py

A session of apex is imported, found by what was said in it, named and labelled, branched at two points, continued,
archived, and written back for apex, which finds its own messages and the new branches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sessgit import Store

SESSION = "7f0c9f0e-31f4-4a2b-9d6e-0b7c5a1e2d3f"
SAID = [
    ("user", "Make the scanner faster", {}),
    ("assistant", "It copies each line. I use views.", {"agent": "developer", "taskId": "task-9",
                                                        "tokens": {"input": 811, "output": 77}}),
    ("user", "And the tests?", {}),
    ("assistant", "They pass.", {"agent": "tester", "tokens": {"input": 902, "output": 33}}),
]  # fmt: skip


def sessgit(*arguments: str) -> Any:
    """Run a command and return its document."""
    command = [sys.executable, "-m", "sessgit", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def write_apex(project: Path) -> None:
    def when(minute: int) -> str:
        return f"2025-11-03T10:{minute:02d}:00.500Z"

    messages = [
        {"id": f"m{n}", "index": n, "role": role, "content": text, "timestamp": when(10 + n), **more}
        for n, (role, text, more) in enumerate(SAID)
    ]
    state = {"totalTokens": {"input": 1713, "output": 110}, "totalCost": 0.0625, "tasksCreated": ["task-9"],
             "tasksCompleted": [], "lastGitBranch": "faster"}  # fmt: skip
    session = {
        "id": SESSION, "projectPath": str(project), "createdAt": when(1), "updatedAt": when(31),
        "lastAccessedAt": when(32), "messages": messages, "inputHistory": [], "state": state,
    }  # fmt: skip
    folder = project / ".apex" / "sessions"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.json").write_text(json.dumps(session))


def read_apex(folder: Path, session: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / ".apex" / "sessions" / f"{session}.json").read_text())
    return document


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        project, out = Path(home, "shop"), Path(home, "out")
        write_apex(project)
        os.environ |= {"HOME": home, "CLAUDE_CONFIG_DIR": f"{home}/.claude"}
        os.chdir(project)
        sessgit("import", "--from", "apex", str(project))

        found = sessgit("ls", "--search", "copies each line")["sessions"]
        print(f"Found by what was said: {found[0]['id'] == SESSION}")
        store = Store.open()
        session = store.load_session(SESSION)
        session.edit(name="faster scanner", description="Half the time.", add_labels=["parser"])

        half = session.fork(at=1, name="with slices")
        half.record_turn("Use slices instead", "Done.", model="claude-opus-4-5", tokens={"input": 1000, "output": 50})
        whole = session.fork(name="more tests")
        for fork in (half, whole):
            print(f"Branch {fork.name}: turns {len(fork.turns())}, shared {fork.state.origin.turn}")
        diff = store.diff(half, whole)
        print(f"Only in one of them: {len(diff['only_a'])} turn and {len(diff['only_b'])} turn")

        sessgit("archive", "more tests")
        print("\nBy name, with the archive:")
        for one in sessgit("ls", "--archived", "--order", "name")["sessions"]:
            print(f"  {one['name']:<15} {'archived' if one['archived'] else ''}".rstrip())

        sessgit("export", "apex", SESSION, half.id, whole.id, "--output", str(out))
        parent, branch = read_apex(out, SESSION), read_apex(out, half.id)
        print(f"\nApex finds its messages: {[one['id'] for one in parent['messages']]}")
        print(f"and the new branches: {sorted(parent['childSessionIds']) == sorted([half.id, whole.id])}")
        print(f"{branch['name']}: branch at message {branch['branchPoint']}, tokens {branch['state']['totalTokens']},")
        print(f"  cost ${branch['state']['totalCost']:.4f}, tasks {branch['state']['tasksCreated']}")
        store.close()


if __name__ == "__main__":
    main()
