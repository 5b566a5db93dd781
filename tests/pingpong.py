"""A machine with a store and a client's folder of its own, which goes on with the conversations of other machines."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from homes import claude_homes
from plain import run_git
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.branch.restore import RestoreResult
from sessgit.record.file_pass import RecordingResult
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store


@dataclass
class Machine:
    """`talk` writes into this machine's file; what other machines wrote it has only with `adopt`."""

    home: Path
    talk: Talk

    def __post_init__(self) -> None:
        stores.create_store(self.home / "store")
        self.store = Store(self.home / "store", fsync=False)

    @property
    def config(self) -> Path:
        return self.home / "claude"

    @property
    def path(self) -> Path:
        return self.config / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"

    def keep(self, *, final: bool = True) -> RecordingResult:
        """Records the file as the talk has it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            self.path.write_bytes(self.talk.data)
        else:
            there = self.path.read_bytes()
            assert self.talk.data.startswith(there), "a client only ever appends"
            with self.path.open("ab") as file:
                file.write(self.talk.data[len(there) :])
        return self.record(final=final)

    def record(self, *, final: bool = True) -> RecordingResult:
        with closing(Index(self.store.path, lambda: self.store)) as index:
            return record(Context(index), TranscriptSource(self.path, SESSION, self.config, final=final))

    def restore(self) -> RestoreResult:
        return restore.restore_session(self.store, SESSION, claude_homes(self.config))

    def adopt(self) -> None:
        """The talk goes on in the file that lies there now."""
        self.talk.lines[:] = self.path.read_bytes().split(b"\n")[:-1]

    def take(self, other: Machine) -> None:
        """Gets the session's branches as the other machine has them; a rewind there has moved the head."""
        every = f"+refs/heads/{SESSION}*:refs/heads/{SESSION}*"
        run_git(self.store.path, "fetch", "-q", "--prune", str(other.store.path), every)
        self.store.repo.release()

    def refs(self) -> str:
        return run_git(self.store.path, "for-each-ref")

    def turns(self) -> int:
        return self.store.state(run_git(self.store.path, "rev-parse", SESSION).strip()).turns

    @property
    def uuids(self) -> list[str]:
        return uuids(self.path.read_bytes())


def uuids(data: bytes) -> list[str]:
    """Those of all lines, in their order."""
    found = (json.loads(line).get("uuid", "") for line in data.splitlines())
    return [uuid for uuid in found if uuid]


def pair(folder: Path, talk: Talk) -> tuple[Machine, Machine]:
    """Two machines and one person who speaks: the talk goes on in the file of whichever machine adopts it."""
    return Machine(folder / "a", talk), Machine(folder / "b", talk)
