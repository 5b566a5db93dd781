"""`make try`: an example conversation, recorded turn by turn through the real stub and recorder, and what one does
with it. Everything happens in a throw-away home; nothing of yours is read or written."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from conversation import OTHER_WAY, PARSER, Conversation

SESSION = "a41f9c02-5b7e-4c1d-9e0a-6d2f8b3c4e5f"
_PATIENCE = 15.0


class Place:
    """A throw-away home with a project and a client's folder in it."""

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
        """Runs the program as a person would and returns what it printed."""
        command = [sys.executable, "-m", "sessgit", *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.project, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"sessgit {shlex.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def show(self, *arguments: str) -> str:
        """The same, shown to the person who tries."""
        print(f"\n$ sessgit {shlex.join(arguments)}")
        output = self.sessgit(*arguments)
        print(output, end="")
        return output

    def hook(self, event: str, talk: Conversation, answer: str = "") -> None:
        """Runs the command in the client's settings with an event, as the client does."""
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

    def hold(self, talk: Conversation, turns: list[tuple[str, Any, str]]) -> None:
        """Holds a conversation: each turn is written, told to the stub, and waited for."""
        before = self.turns(talk.session)
        for number, (prompt, calls, answer) in enumerate(turns, start=before + 1):
            talk.turn(prompt, calls, answer)
            self.hook("Stop", talk, answer)
            deadline = time.monotonic() + _PATIENCE
            while self.turns(talk.session) < number:
                if time.monotonic() > deadline:
                    sys.exit(f"turn {number} was not recorded within {_PATIENCE:.0f} s; see {self.store}/log")
                time.sleep(0.05)

    def turns(self, session: str) -> int:
        """How many turns git itself finds on the session's branch."""
        command = ["git", "-C", str(self.store), "log", "--format=%(trailers:key=Turn,valueonly)", session, "--"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        return max((int(word) for word in done.stdout.split()), default=0)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sessgit-try-") as folder:
        place = Place(Path(folder).resolve())
        place.show("install")
        talk = Conversation(SESSION, place.project, place.transcript(SESSION))
        place.hold(talk, PARSER)
        place.show("fork", SESSION[:8], "--at", "2", "--name", "tokens as a trie")
        (fork,) = [found for found in json.loads(place.sessgit("ls", "--json"))["sessgit.ls/v1"] if found["parent"]]
        transcript = place.transcript(fork["id"])
        last = json.loads(transcript.read_text().splitlines()[-1])["leafUuid"]
        other = Conversation(fork["id"], place.project, transcript, parent=last, clock=talk.clock)
        place.hold(other, OTHER_WAY)

        place.show("log", SESSION[:8])
        place.show("ls")
        place.show("diff", SESSION[:8], fork["id"][:8])
        print("\n$ git -C STORE log --graph --all --oneline")
        graph = ["git", "-C", str(place.store), "log", "--graph", "--all", "--oneline"]
        print(subprocess.run(graph, env=place.env, capture_output=True, text=True, check=True).stdout, end="")
    print("\nThat was a throw-away place; it is gone. To record your own conversations:")
    print("  uv tool install .    (or: pipx install .)")
    print("  sessgit install")


if __name__ == "__main__":
    main()
