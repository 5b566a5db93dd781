"""A manager with workers, one of which is killed. Run it: python examples/manager.py

The manager plans, and begins a session for each task as its child. Each worker is a process of its own. One of them is
killed in the middle of a turn: `recover` finds it, and it is continued where it stopped. What the workers computed is
run again to check it, a failed session of another system is imported and deleted by age, and the whole family is
written in the form of claude-man.
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

FAILED = {
    "session_id": "TEST-009", "role": "TESTER", "status": "failed", "task": "Test the old login", "exit_code": 1,
    "created_at": "2025-11-03T10:15:30.123Z", "completed_at": "2025-11-03T10:18:00.000Z", "pid": 4711,
}  # fmt: skip
FAILED_LOG = [
    {"timestamp": "2025-11-03T10:15:30.123Z", "direction": "in", "content": "Test the old login"},
    {"timestamp": "2025-11-03T10:16:31.456Z", "direction": "out", "content": "There is none."},
]


def strength(password: str) -> int:
    """What a worker computes: how many kinds of characters a password has."""
    return len({char.isdigit() + 2 * char.isupper() for char in password})


def sessgit(*arguments: str) -> Any:
    """Run a command and return its document."""
    command = [sys.executable, "-m", "sessgit", *arguments, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def work(session: str) -> None:
    """What a worker does until it is killed."""
    worker = Store.open().load_session(session)
    with worker.turn("Write the check of passwords"):
        with worker.cell("strength", args={"password": "Abc1"}) as cell:
            cell.result = strength("Abc1")
        with worker.cell("deploy"):
            print("at work", flush=True)
            sys.stdin.read()


def write_claude_man(project: Path) -> None:
    folder = project / ".claude-man" / "sessions" / "TEST-009"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps(FAILED))
    (folder / "io.log").write_text("".join(json.dumps(line) + "\n" for line in FAILED_LOG))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "shop")
        project.mkdir()
        os.environ |= {"HOME": folder, "CLAUDE_CONFIG_DIR": f"{folder}/.claude"}
        os.chdir(project)
        store = Store.open()

        manager = store.create_session(title="The login", role="manager")
        manager.record_turn("Build a login.", "First a design, then the code.")
        architect = store.create_session(title="Design it", parent=manager, role="architect")
        architect.record_turn("Design the login", "With tokens.")
        architect.end()
        developer = store.create_session(title="Write it", parent=manager, role="developer")

        command = [sys.executable, __file__, developer.id]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            worker.kill()
        for one in sessgit("recover")["sessions"]:
            print(f"Recovered: {one['title']}, {one['turns']} turn, {one['state']} in a {one['cut']}")

        developer.record_turn("Go on", "The check is written.")
        developer.end()
        for again in developer.replay({"strength": strength}):
            print(f"Run again: {again.cell.operation}: {again.outcome}")

        print("\nThe manager's children:")
        for one in sessgit("ls", "--children", manager.id)["sessions"]:
            print(f"  {one['title']:<10} {one['role']:<10} {one['state']:<6} turns: {one['turns']}")

        write_claude_man(project)
        imported = sessgit("import", "--from", "io-log", str(project))["conversations"][0]
        print(f"\nImported: {imported['title']}, as {sessgit('ls', '--state', 'failed')['sessions'][0]['id'][:8]}")
        gone = sessgit("delete", "--older-than", "30d", "--state", "failed", "--yes")["deleted"]
        print(f"Deleted, because it failed long ago: {len(gone)}")

        family = [manager.id, architect.id, developer.id]
        sessgit("export", "io-log", *family, "--output", f"{folder}/out")
        metadata = json.loads(Path(f"{folder}/out/.claude-man/sessions/{developer.id}/metadata.json").read_text())
        print(f"\nFor claude-man: {metadata['role']}, {metadata['status']}, child of the manager: ", end="")
        print(metadata["parent_session"] == manager.id)
        store.close()


if __name__ == "__main__":
    work(sys.argv[1]) if len(sys.argv) > 1 else main()
