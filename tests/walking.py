"""A person at a client and at the command line who does whatever comes to mind, and what must hold all the while."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import indexed_words
from desks import Desks
from purging import refs
from shell import NOW, Done

from sessgit.agents.claude import home

_BUG = 70
_LONG = "a line that a tool has shown\n" * 300


@dataclass
class Client:
    """Writes transcripts as the agent does; a later line is written later."""

    folder: Path
    project: Path
    chance: random.Random
    count: int = 0
    leaves: dict[str, str | None] = field(default_factory=dict)
    """The line that each session's next one hangs on."""

    @property
    def now(self) -> float:
        return NOW + self.count

    @property
    def sessions(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.jsonl"))

    def path(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def lines(self, session: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path(session).read_bytes().splitlines()]

    def opened(self, session: str) -> None:
        """Goes on where a file ends that somebody else has written to."""
        self.leaves[session] = next((line["uuid"] for line in reversed(self.lines(session)) if line.get("uuid")), None)

    def begun(self) -> None:
        session = self._uuid("e")
        self.leaves[session] = None
        self.turn(session)

    def turn(self, session: str) -> None:
        """A prompt and its answer, at times with a call, seldom one without a result."""
        self._chain(session, "user", "a", message={"role": "user", "content": f"ask Zebra-{self.count}-"})
        if self.chance.random() < 0.5:
            call = f"toolu_{self.count}"
            self._answer(session, {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "ls"}})
            if self.chance.random() < 0.1:
                return
            result = {"type": "tool_result", "tool_use_id": call, "content": self.chance.choice(["one", _LONG])}
            self._chain(session, "user", "c", message={"role": "user", "content": [result]})
        self._answer(session, {"type": "text", "text": f"It is {self.count}."})
        if self.chance.random() < 0.6:
            self._chain(session, "system", "d", subtype="stop_hook_summary", hookCount=1)
            self._put(session, {"type": "last-prompt", "leafUuid": self.leaves[session], "sessionId": session})
        if self.chance.random() < 0.2:
            self._put(session, {"type": "custom-title", "customTitle": f"title {self.count}", "sessionId": session})

    def rewound(self, session: str) -> None:
        """Goes back to behind any answer on the chain, or to the start, and asks something else."""
        every = {line["uuid"]: line for line in self.lines(session) if line.get("uuid")}
        at, ends = self.leaves[session], list[str | None]([None])
        while at in every:
            line = every.pop(at)
            content = line.get("message", {}).get("content", "")
            ends += [at] if line["type"] == "assistant" and content[0]["type"] == "text" else []
            at = line["parentUuid"] or line.get("logicalParentUuid")
        self.leaves[session] = self.chance.choice(ends)
        self.turn(session)

    def compacted(self, session: str) -> None:
        above = {"parentUuid": None, "logicalParentUuid": self.leaves[session], "subtype": "compact_boundary"}
        self._chain(session, "system", "d", **above, compactMetadata={"trigger": "manual"})
        self._chain(session, "user", "d", message={"role": "user", "content": "So far."}, isCompactSummary=True)

    def copied(self, session: str) -> None:
        """A fork as the client makes it."""
        new = self._uuid("e")
        self.path(new).write_bytes(self.path(session).read_bytes().replace(session.encode(), new.encode()))
        self.leaves[new] = self.leaves[session]
        self.turn(new)

    def _answer(self, session: str, block: dict[str, Any]) -> None:
        said = {"id": f"msg_{self.count}", "type": "message", "role": "assistant", "model": "claude-test-1"}
        usage = {"input_tokens": 5, "output_tokens": 3}
        self._chain(session, "assistant", "b", message={**said, "content": [block], "usage": usage})

    def _chain(self, session: str, kind: str, letter: str, **more: Any) -> None:
        uuid = self._uuid(letter)
        moment = datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {
            "parentUuid": self.leaves[session], "isSidechain": False, "type": kind, "uuid": uuid, "timestamp": moment,
            "userType": "external", "cwd": str(self.project), "sessionId": session, "version": "2.1.7",
            "gitBranch": "main", **more,
        }  # fmt: skip
        self.leaves[session] = uuid
        self._put(session, line)

    def _put(self, session: str, line: dict[str, Any]) -> None:
        with self.path(session).open("ab") as file:
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _uuid(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count:07d}-0000-4000-8000-{self.chance.randrange(16**12):012x}"


class Walk:
    """A history that a seed decides. `steps` says what was done, for whoever looks for the fault."""

    def __init__(self, desks: Desks, seed: int) -> None:
        self.desks, self.chance, self.steps = desks, random.Random(seed), [f"seed {seed}"]
        shell = desks.here.shell
        folder = home.project_folder(shell.config, str(shell.project))
        folder.mkdir(parents=True)
        self.client = Client(folder, shell.project, self.chance)
        self.is_purged = False
        if self.chance.random() < 0.3:
            self.run("config", "record.granularity", "cell")

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self._step()
            if self.chance.random() < 0.8:
                self.record()
            if self.chance.random() < 0.1:
                self.check()
        self.check()

    def run(self, *command: str) -> Done:
        self.desks.here.shell.now = self.desks.there.shell.now = self.client.now
        done = self.desks.here(*command)
        self.steps.append(f"{' '.join(command)}: {done.code} {done.err.strip()[:200]}")
        assert done.code != _BUG, self.steps
        return done

    def record(self) -> None:
        done = self.run("import")
        assert done.code == 0, (done, self.steps)

    # Steps

    def _step(self) -> None:
        every = self.client.sessions
        if not every or self.chance.random() < 0.05:
            return self.client.begun()
        session = self.chance.choice(every)
        self.client.leaves.setdefault(session, None) or self.client.opened(session)
        steps: list[tuple[int, Callable[[str], object]]] = [
            (5, self.client.turn), (4, self.client.rewound), (3, self._fork), (2, self._merge), (1, self._pick),
            (1, self._undo), (1, self._archive), (1, self._restore), (1, self._edit), (1, self._forget),
            (1, self._delete), (1, self._purge), (1, self.client.copied), (1, self.client.compacted),
        ]  # fmt: skip
        (chosen,) = self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])
        self.steps.append(f"{chosen.__name__} {session}")
        return chosen(session)

    def _fork(self, session: str) -> None:
        turns = self._turns(session)
        if turns:
            self.run("fork", session, "--at", f"{self.chance.randint(1, turns)}{self.chance.choice(['', '', '.1'])}")

    def _merge(self, session: str) -> None:
        how = ["--mode", self.chance.choice(["summary", "graft"]), "--ours", *["--new"] * (self.chance.random() < 0.25)]
        self.run("merge", self.chance.choice(self.client.sessions), "--into", session, *how)
        self._opened()

    def _pick(self, session: str) -> None:
        self.run("pick", f"{self.chance.choice(self.client.sessions)}@1", "--into", session)
        self._opened()

    def _undo(self, _session: str) -> None:
        self.run("undo")
        self._opened()

    def _archive(self, session: str) -> None:
        self.run("archive", session)
        if self.chance.random() < 0.5:
            self.run("unarchive", session)

    def _restore(self, session: str) -> None:
        self.record()
        known = self.client.path(session).read_bytes()
        if not self._is_archived(session):
            self.client.path(session).unlink()
            assert self.run("restore", session).code == 0, self.steps
            assert self.is_purged or self.client.path(session).read_bytes() == known, self.steps

    def _edit(self, session: str) -> None:
        self.run("edit", session, "--label", self.chance.choice(["lexer", "trie", "draft"]))

    def _forget(self, _session: str) -> None:
        """The recorder reads all files from their beginnings once more."""
        for path in self.desks.here.shell.store.glob("state/*.json"):
            path.unlink()

    def _delete(self, session: str) -> None:
        if len(self.client.sessions) > 1:
            self.client.path(session).unlink()
            self.run("delete", session, "--yes")

    def _purge(self, _session: str) -> None:
        """On both machines, as it says."""
        value = f"Zebra-{self.chance.randint(1, self.client.count)}-"
        for done in (self.run("purge", value, "--yes"), self.desks.there("purge", value, "--yes")):
            assert done.code == 0, (done, self.steps)
        self.is_purged = True

    def _turns(self, session: str) -> int:
        done = self.run("log", session, "--json")
        return len(json.loads(done.out)["turns"]) if done.code == 0 else 0

    def _opened(self) -> None:
        for session in self.client.sessions:
            self.client.opened(session)

    def _is_archived(self, session: str) -> bool:
        return f"refs/archive/{session}" in refs(self.desks.here.shell.store)

    # What must hold

    def check(self) -> None:
        """All is sound; each file comes back byte for byte, here and on another machine; read once more it is the
        same history."""
        self.record()
        self._is_sound(self.run("verify", "--deep"))
        indexed_words.check(self.desks.here.shell.store, self.client.folder.parent)
        before = refs(self.desks.here.shell.store)
        self._come_back(self.run)
        self._forget("")
        self.record()
        assert refs(self.desks.here.shell.store) == before, self.steps
        self.run("push", "--all")
        assert self.desks.there("pull").code == 0, self.steps
        self._is_sound(self.desks.there("verify", "--deep"))
        self._come_back(self.desks.there)

    def _is_sound(self, done: Done) -> None:
        assert done.code == 0, (done, self.steps)
        assert not done.out or "no damage" in done.out, (done, self.steps)

    def _come_back(self, run: Callable[..., Done]) -> None:
        out = self.client.project / "out.jsonl"
        shell = self.desks.here.shell if run == self.run else self.desks.there.shell
        held = refs(shell.store)
        for session in self.client.sessions:
            # What is archived is recorded no more, and a head that another machine took back stays beside the old one.
            diverged = any(name.startswith(f"refs/heads/{session}.m-") for name in held)
            if f"refs/heads/{session}" in held and not diverged and not self._is_archived(session):
                done = run("restore", session, "-o", str(out))
                assert done.code == 0, (done, self.steps)
                assert self.is_purged or out.read_bytes() == self.client.path(session).read_bytes(), (done, self.steps)
                out.unlink()
