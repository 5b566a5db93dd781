"""One conversation with which two machines went on: what the tests of machine branches begin with."""

from __future__ import annotations

import copy
import itertools
import shutil
import subprocess
from pathlib import Path

from shell import Shell
from transcripts import SESSION, Talk

from sessgit.model import ids
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

MACHINE = f"{SESSION}.m-a0005003"
_NUMBERS = itertools.count()


def on_another(talk: Talk) -> Talk:
    """The same conversation as another machine goes on with it: its new lines have ids and times of their own."""
    other = copy.deepcopy(talk)
    other.file.counts = {kind: number + 5000 for kind, number in other.file.counts.items()}
    other.file.seconds += 1800
    return other


def arrived(shell: Shell, talk: Talk, first: str, *, alone: bool = False) -> str:
    """Records a conversation on another machine and brings its head here, as a pull does; the branch's name.

    `first` is the key of the first turn that is not shared. What is recorded here already the other machine has got
    from here, or with `alone` recorded itself.
    """
    folder = shell.home / f"machine-{next(_NUMBERS)}"
    path = talk.save(folder / "claude" / "projects" / "-home-bob-shop")
    stores.create_store(folder / "store")
    there, head = Store(folder / "store"), f"refs/heads/{talk.session}"
    if not alone:
        _git(there.path, "fetch", "-q", str(shell.store), f"{head}:{head}")
    index = Index(there.path, lambda: there)
    record(Context(index), TranscriptSource(path, path.stem, folder / "claude"))
    index.close()
    name = ids.other_name(talk.session, first)
    _git(shell.store, "fetch", "-q", str(there.path), f"{head}:refs/heads/{name}")
    shutil.rmtree(folder)
    return name


def went_on(shell: Shell, *texts: str) -> Talk:
    """The conversation as the other machine has it: two turns that both have, two of its own, and more."""
    theirs = on_another(shell.talk().turns("one", "two"))
    theirs.prompt("put the tokens into a trie").tool("Edit", {"file_path": "/p/trie.py", "old_string": "a"}, "ok")
    return theirs.answer("The trie is faster.").stop_lines().turns("measure both", *texts)


def went_apart(shell: Shell) -> None:
    """Two turns that both machines have, then one of ours and two of the other machine's, on MACHINE."""
    ours, theirs = shell.talk().turns("one", "two"), went_on(shell)
    shell.recorded(ours)
    assert arrived(shell, theirs, theirs.prompts[2]) == MACHINE
    shell.recorded(ours.turns("three"))


def _git(store: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(store), *arguments], check=True, capture_output=True)
