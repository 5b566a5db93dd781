"""Machines that share a remote: each a store, an index and a client's folder of its own."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from homes import claude_homes
from plain import run_git
from transcripts import SESSION, File, Talk

from sessgit.branch import archive, delete, edit
from sessgit.branch import merge as merges
from sessgit.branch import undo as undoing
from sessgit.branch.merge_plan import MergeRequest
from sessgit.check import verify
from sessgit.history import resolve
from sessgit.history.resolve import CallerContext, ResolvedTarget
from sessgit.model.ids import Address
from sessgit.model.merge_decisions import Choice
from sessgit.record.file_pass import RecordingResult
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.record.tip_delivery import BranchChange
from sessgit.store import layout, refs, remotes
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.remotes import Connection
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store
from sessgit.sync import pull as pulling
from sessgit.sync import push as pushing
from sessgit.sync import session_refs

NOW = 1_800_000_000.0
SPACES = (layout.HEADS, layout.ARCHIVE, layout.DELETED, layout.TAGS)
Described = list[tuple[str, int, str]]
"""Of each change what, how many turns and the end of the branch's name, `""` for a head."""


def bare(folder: Path) -> Path:
    """An empty remote, as `git init --bare` makes it."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True, capture_output=True)
    return folder


@dataclass
class Clone:
    """One machine; `clock` counts what it does, so that no two things happen at one time."""

    folder: Path
    remote: Path
    number: int = 0
    clock: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        stores.create_store(self.folder / "store")
        self.store = Store(self.folder / "store")
        self.index = Index(self.store.path, lambda: self.store)
        self.config = self.folder / "claude"
        self.place = self.config / "projects" / f"-home-ada{self.number}-shop"
        self.link = Connection(
            remotes.add_remote(self.store.path, "origin", str(self.remote)), dict(os.environ), lambda _: None
        )

    # What a machine does

    def record(self, talk: Talk, *, redact: bool = True, final: bool = False) -> RecordingResult:
        path = talk.save(self.place)
        return record(
            Context(self.index, privacy=Privacy(RecordConfig(redact=redact))),
            TranscriptSource(path, path.stem, self.config, final=final),
        )

    def record_file(self, session: str = SESSION, *, final: bool = False) -> RecordingResult:
        """Records the client's file as it lies there."""
        source = TranscriptSource(self.place / f"{session}.jsonl", session, self.config, final=final)
        return record(Context(self.index), source)

    def pull(self, *sessions: str, dry_run: bool = False) -> session_refs.PullResult:
        only = sessions or None
        return pulling.pull_sessions(
            Context(self.index, homes=claude_homes(self.config), now=self.now), self.link, only, dry_run=dry_run
        )

    def push(self, *sessions: str, dry_run: bool = False, **how: bool | Collection[str]) -> session_refs.PushResult:
        request = pushing.PushRequest(sessions or tuple(self.sessions()), **how)  # type: ignore[arg-type]
        return pushing.push_sessions(Context(self.index, now=self.now), self.link, request, dry_run=dry_run)

    def edit(self, session: str = SESSION, **changes: object) -> None:
        edit.edit_session(Context(self.index, now=self.now), session, edit.EditChanges(**changes))  # type: ignore[arg-type]

    def archive(self, session: str = SESSION) -> None:
        self.index.sync()
        archive.archive(
            Context(self.index, homes=claude_homes(self.config), privacy=Privacy(), now=self.now), [session]
        )

    def unarchive(self, session: str = SESSION) -> None:
        archive.unarchive(Context(self.index, now=self.now), [session])

    def tag(self, name: str, session: str = SESSION, turn: int | None = None) -> None:
        target = self.target(session, turn)
        where = CallerContext(claude_homes(self.config), "/home/ada/shop", 0)
        edit.tag_turn(Context(self.index, now=self.now), name, target, where)

    def delete(self, session: str = SESSION) -> None:
        self.index.sync()
        delete.delete_sessions(
            Context(self.index, now=self.now), delete.plan_deletion(self.index, [session], claude_homes(self.config))
        )

    def merge(self, theirs: str, ours: str = SESSION) -> None:
        """Brings theirs back into ours; both sides' words are ours where they contradict each other."""
        world = Context(self.index, claude_homes(self.config), now=self.now)
        merges.merge_sessions(world, self.target(ours), self.target(theirs), MergeRequest(choice=Choice("ours")))
        self.index.sync()

    def undo(self) -> undoing.UndoResult:
        done = undoing.undo_operation(self.store, "", claude_homes(self.config), self.now())
        self.index.sync()
        return done

    def now(self) -> float:
        return NOW + next(self.clock)

    # What it has

    def target(self, session: str, turn: int | None = None) -> ResolvedTarget:
        self.index.sync()
        where = CallerContext(claude_homes(self.config), "/home/ada/shop", 0)
        return resolve.resolve_target(self.index, Address(session, turn), where)

    def sessions(self) -> list[str]:
        names = {layout.split_ref(ref) for ref in self.refs()}
        return sorted({name for space, name in names if space in SPACES[:2] and "." not in name})

    def refs(self) -> dict[str, str]:
        return {ref: oid for ref, oid in refs.read_all(self.store.path).items() if ref.startswith(SPACES)}

    def there(self) -> dict[str, str]:
        """The refs of the remote."""
        return {ref: oid for ref, oid in refs.read_all(self.remote).items() if ref.startswith(SPACES)}

    def tip(self, branch: str = SESSION) -> str:
        own = self.refs()
        return own.get(layout.head_ref(branch)) or own[layout.archive_ref(branch)]

    def keys(self, branch: str = SESSION) -> list[str]:
        """The keys of a branch's turns."""
        return turn_keys(self.store, self.tip(branch))

    def check(self) -> None:
        assert run_git(self.store.path, "fsck", "--strict", "--no-dangling") == ""

    def close(self) -> None:
        self.index.close()


@contextmanager
def opened(clone: Clone) -> Iterator[None]:
    """While a client has the conversation open."""
    note = clone.config / "sessions" / f"{os.getpid()}.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(json.dumps({"pid": os.getpid(), "sessionId": SESSION, "cwd": "/home/ada/shop"}))
    yield
    note.unlink()


def turn_keys(store: Store, tip: str) -> list[str]:
    prompts = (store.message(commit.id).get("Prompt") for commit in store.repo.first_parents(tip))
    return list(dict.fromkeys(key for key in prompts if key))[::-1]


def described(changes: Iterable[BranchChange]) -> Described:
    return [(change.what, change.turns, change.branch.partition(".")[2]) for change in changes]


def restored(clone: Clone, data: bytes, session: str, number: int) -> Talk:
    """A talk that goes on with a session's file as it was restored; its new lines have ids of their own."""
    lines = data.split(b"\n")[:-1]
    talk = Talk(file=File(session, "2.1", "/home/ada/shop", lines=lines, seconds=number * 100))
    talk.file.counts = dict.fromkeys("abcde", number * 100)
    talk.leaf = last_line(clone, session, len(clone.keys(session))) or None
    return talk


def last_line(clone: Clone, session: str, number: int) -> str:
    """The uuid of the last line of a turn of a session's head."""
    body = clone.store.lines(clone.tip(session), number).body if number else []
    uuids = (json.loads(line).get("uuid") for line in reversed(body))
    return next((uuid for uuid in uuids if uuid), "")


@contextmanager
def pair(folder: Path) -> Iterator[tuple[Clone, Clone]]:
    """Two machines with one clock; in the end `verify --deep` finds nothing of the session at either."""
    remote, clock = bare(folder / "remote"), itertools.count()
    here, there = (Clone(folder / f"clone-{number}", remote, number, clock) for number in range(2))
    yield here, there
    for one in (here, there):
        assert verify.verify_session(one.store, SESSION, deep=True).findings == ()
        one.check()
        one.close()
