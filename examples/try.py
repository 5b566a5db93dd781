"""`make try`: import, lose and restore example conversations, then record one turn by turn through the real hook and
recorder, fork it and compare. Everything happens in a temporary home folder; nothing of yours is read or written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from conversation import OTHER_WAY, PARSER, UPLOAD, Conversation

SESSION = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
_OLDER = 27
_PATIENCE = 15.0


class Place:
    """A temporary home with a project and a client's folder in it."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "home" / "code" / "calc"
        self.config = self.home / ".claude"
        self.store = self.config / "session-store"
        self.project.mkdir(parents=True)
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM", "NO_COLOR") if name in os.environ}
        self.env = {**kept, "HOME": str(self.home), "COLUMNS": "80", "SESSGIT_PAGER": "cat"}

    def transcript(self, session: str) -> Path:
        folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(self.project.resolve()))
        return self.config / "projects" / folder / f"{session}.jsonl"

    def sessgit(self, *arguments: str) -> str:
        """Run the program and return its output."""
        command = [sys.executable, "-m", "sessgit", *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.project, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"sessgit {shlex.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def show(self, *arguments: str) -> str:
        """Run the program, and print the command and its output."""
        print(f"\n$ sessgit {shlex.join(arguments)}")
        output = self.sessgit(*arguments)
        print(output, end="")
        return output

    def hook(self, event: str, talk: Conversation, answer: str = "") -> None:
        """Run the hook from the client's settings with an event, as the client does."""
        payload: dict[str, Any] = {
            "session_id": talk.session,
            "transcript_path": str(talk.path),
            "cwd": str(self.project),
            "hook_event_name": event,
        }
        if answer:
            payload["last_assistant_message"] = answer
        (group,) = json.loads((self.config / "settings.json").read_text())["hooks"][event]
        command = group["hooks"][0]["command"]
        subprocess.run(["sh", "-c", command], env=self.env, input=json.dumps(payload), text=True, check=True)

    def begin_write(self, talk: Conversation, turns: list[tuple[str, Any, str]]) -> None:
        """Write each turn, call the hook, and wait until the turn is recorded."""
        before = self.turns(talk.session)
        for number, (prompt, calls, answer) in enumerate(turns, start=before + 1):
            talk.turn(prompt, calls, answer)
            self.hook("Stop", talk, answer)
            deadline = time.monotonic() + _PATIENCE
            while self.turns(talk.session) < number:
                if time.monotonic() > deadline:
                    sys.exit(f"turn {number} was not recorded within {_PATIENCE:.0f} s; see {self.store}/log")
                time.sleep(0.05)

    def lose_and_restore(self) -> None:
        """Writes older conversations, imports them, deletes the client's files, and restores them."""
        for number in range(_OLDER):
            session = str(uuid.uuid5(uuid.UUID(SESSION), f"older {number}"))
            talk = Conversation(session, self.project, self.transcript(session))
            for turn in UPLOAD:
                talk.turn(*turn)
        self.show("import")
        files = list(self.config.glob("projects/*/*.jsonl"))
        before = {path: path.read_bytes() for path in files}
        print("\n$ rm ~/.claude/projects/*/*.jsonl    # Claude Code does this after 30 days")
        for path in files:
            path.unlink()
        self.show("restore", "--all-lost")
        if {path: path.read_bytes() for path in files} != before:
            sys.exit("the restored files differ")

    def turns(self, session: str) -> int:
        """Return how many turns git finds on the session's branch."""
        command = ["git", "-C", str(self.store), "log", "--format=%(trailers:key=Turn,valueonly)", session, "--"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        return max((int(word) for word in done.stdout.split()), default=0)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sessgit-try-") as folder:
        place = Place(Path(folder).resolve())
        place.show("install")
        place.lose_and_restore()
        talk = Conversation(SESSION, place.project, place.transcript(SESSION))
        place.begin_write(talk, PARSER)
        place.show("fork", SESSION[:8], "--at", "2", "--name", "tokens as a trie")
        (fork,) = [found for found in json.loads(place.sessgit("ls", "--json"))["sessions"] if found["parent"]]
        transcript = place.transcript(fork["id"])
        last = json.loads(transcript.read_text().splitlines()[-1])["leafUuid"]
        other = Conversation(fork["id"], place.project, transcript, parent=last, clock=talk.clock)
        place.begin_write(other, OTHER_WAY)

        place.show("log", SESSION[:8])
        place.show("ls", "-n", "3")
        place.show("diff", SESSION[:8], fork["id"][:8])
        print("\n$ git -C ~/.claude/session-store log --graph --all --oneline -6")
        graph = ["git", "-C", str(place.store), "log", "--graph", "--all", "--oneline", "-6"]
        print(subprocess.run(graph, env=place.env, capture_output=True, text=True, check=True).stdout, end="")
    print("\nThese conversations were in a temporary folder, which is deleted now. To record your own:")
    print("  uv tool install .    (or: pipx install .)")
    print("  sessgit install")


if __name__ == "__main__":
    main()
