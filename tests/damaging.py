"""A recorded conversation whose commits are made anew by hand, each with one promise broken."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plain import run_git
from transcripts import SESSION, Talk

from sessgit.check import verify
from sessgit.model import canonical
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

LONG = "x = 1\n" * 1000
THIRD = "turns/0000/000003"
SECOND = "turns/0000/000002"


@dataclass
class Made:
    """A commit in the making, that was another one."""

    store: Store
    tree: str
    message: str
    parents: list[str]

    def put(self, path: str, data: bytes | None) -> None:
        entry = None if data is None else (self.store.repo.write_blob(data), False)
        self.tree = self.store.repo.edit_tree(self.tree, {path: entry})

    def say(self, old: str, new: str) -> None:
        assert old in self.message
        self.message = self.message.replace(old, new, 1)

    def state(self, part: str, **values: Any) -> None:
        entry = self.store.repo.entry(self.tree, "session.json")
        assert entry is not None
        document = json.loads(self.store.repo.blob(entry[0]))
        document[part] |= values
        self.put("session.json", canonical.dumps(document))


@dataclass
class Recorded:
    """A store with a conversation of three turns in it, whose last commit is that of the third."""

    store: Store
    index: Index
    folder: Path

    def keep(self, talk: Talk, *, final: bool = False, granularity: str = "turn") -> None:
        path = talk.save(self.folder)
        record(
            Context(self.index, privacy=Privacy(RecordConfig(granularity))),
            TranscriptSource(path, path.stem, self.folder.parents[1], final=final),
        )

    def tip(self, branch: str = SESSION) -> str:
        return refs.read(self.store.path, f"refs/heads/{branch}") or ""

    def remade(
        self, *, files: dict[str, bytes | None] | None = None, message: Callable[[str], str] = str,
        parents: list[str] | None = None, branch: str = SESSION, later: int = 0,
    ) -> str:  # fmt: skip
        """Puts another commit in the place of a branch's last one: with other files, another message."""
        tip = self.tip(branch)
        old = self.store.commit(tip)
        changes: dict[str, tuple[str, bool] | None] = {
            path: None if data is None else (self.store.repo.write_blob(data), False)
            for path, data in (files or {}).items()
        }
        tree = self.store.repo.edit_tree(old.tree, changes)
        above = list(old.parents) if parents is None else parents
        made = self.store.repo.write_commit(tree, above, message(old.message), old.time + later)
        self.store.repo.release()
        run_git(self.store.path, "update-ref", f"refs/heads/{branch}", made)
        return made

    def then(
        self, event: str, subject: str, *, files: dict[str, bytes | None] | None = None, trailers: str = "",
        parents: tuple[str, ...] = (),
    ) -> str:  # fmt: skip
        """Puts a commit more on the session."""
        message = f"{subject}\n\nSession: {SESSION}\nEvent: {event}\n{trailers}"
        return self.remade(files=files, message=lambda _: message, parents=[self.tip(), *parents])

    def again(self, event: str, change: Callable[[Made], object], branch: str = SESSION) -> None:
        """Makes the first commit of an event anew, with something changed, and all that stand on it."""
        found = run_git(self.store.path, "rev-list", "--first-parent", "--reverse", f"refs/heads/{branch}").split()
        events = [self.store.message(one).get("Event") for one in found]
        first = events.index(event)
        above: list[str] | None = None
        for number, name in enumerate(found[first:]):
            old = self.store.commit(name)
            made = Made(self.store, old.tree, old.message, list(old.parents) if above is None else above)
            if not number:
                change(made)
            elif made.parents and len(old.parents) > 1:
                made.parents += old.parents[1:]
            above = [self.store.repo.write_commit(made.tree, made.parents, made.message, old.time)]
        assert above is not None
        self.store.repo.release()
        run_git(self.store.path, "update-ref", f"refs/heads/{branch}", above[0])

    def file(self, path: str) -> bytes:
        entry = self.store.repo.entry(self.store.tree(self.tip()), path)
        assert entry is not None
        return self.store.repo.blob(entry[0])

    def stated(self, **parts: dict[str, Any]) -> dict[str, bytes | None]:
        """A state with other values."""
        document = json.loads(self.file("session.json"))
        for part, values in parts.items():
            document[part] |= values
        return {"session.json": canonical.dumps(document)}

    def found(self, *, deep: bool = True, index: Index | None = None) -> list[tuple[str, str, str]]:
        """The severity, kind and place of each finding."""
        done = verify.verify_store(Store(self.store.path), index, lambda done, total: None, deep=deep)
        return [(one.severity, one.kind, one.where.removeprefix(SESSION)) for one in done.findings]


Harm = Callable[[Recorded], object]
Found = tuple[str, str, str]
"""The severity, kind and place of a finding."""


@contextmanager
def harmed(kept: Recorded) -> Iterator[None]:
    """Whatever is done to the refs inside is taken back."""
    before = refs.read_all(kept.store.path)
    try:
        yield
    finally:
        now = refs.read_all(kept.store.path)
        steps = [f"delete {ref}\n" for ref in now if ref not in before]
        steps += [f"update {ref} {oid}\n" for ref, oid in before.items() if now.get(ref) != oid]
        command = ["git", "-C", str(kept.store.path), "update-ref", "--stdin"]
        subprocess.run(command, input="".join(steps).encode(), check=True)


def missed(kept: Recorded, harms: dict[str, tuple[Harm, Found]], *, deep: bool = False) -> dict[str, Any]:
    """What each harm gave in the place of what it should."""
    out = {}
    for name, (harm, wanted) in harms.items():
        with harmed(kept):
            harm(kept)
            found = kept.found(deep=deep)
        if wanted not in found:
            out[name] = found
    return out


def three_turns(store: Store, index: Index, claude: Path) -> Recorded:
    """A conversation of three turns, of which nothing is wrong."""
    made = Recorded(store, index, claude)
    talk = Talk().turns("one").prompt("two").tool("Read", {"file_path": "/a.py"}, LONG).answer("Read.").stop_lines()
    made.keep(talk.prompt("three").tool("Bash", {"command": "ls"}).answer("Done.").stop_lines())
    return made
