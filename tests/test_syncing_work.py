"""What a push or a pull reads of sessions that are new, or that both sides have: nothing grows with their turns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clones import Clone, bare, described
from transcripts import Talk

SESSIONS = [f"5e551011-0000-4000-8000-{number:012}" for number in range(4)]
WALKS = ("first_parents", "merge_bases", "is_ancestor", "files")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[Clone]]:
    remote, clock = bare(tmp_path / "remote"), itertools.count()
    made = [Clone(tmp_path / f"clone-{number}", remote, number, clock) for number in range(2)]
    yield made
    for clone in made:
        clone.close()


def record(clone: Clone, turns: int) -> None:
    for session in SESSIONS:
        clone.record(Talk(session).turns(*(f"turn {number}" for number in range(turns))))
    clone.index.sync()


def counted(clone: Clone, monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> tuple[Counter[str], Any]:
    """How often each kind of thing was read while `act` ran, and what that returned; a commit counts once."""
    calls, commits = Counter[str](), set[str]()

    def count(patched: pytest.MonkeyPatch, owner: object, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            calls[name] += arguments[0] not in commits if name == "commit" else 1
            commits.update(arguments[:1] if name == "commit" else ())
            return real(*arguments)

        patched.setattr(owner, name, call)

    clone.store.tree.cache_clear()
    with monkeypatch.context() as patched:
        for name in ("state", "commit"):
            count(patched, clone.store, name)
        for name in ("blob", "since", *WALKS):
            count(patched, clone.store.repo, name)
        done = act()
    return calls, done


@pytest.mark.parametrize("turns", [1, 12])
def test_a_new_session_is_no_history_to_walk(pair: list[Clone], monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    one, two = pair
    record(one, turns)
    calls, pushed = counted(one, monkeypatch, lambda: one.push(dry_run=True))
    assert described(pushed.changes) == [("new", turns, "")] * len(SESSIONS)
    # Its state once for what is told, and once for whether it was redacted: the store wrote it and has it. Each commit
    # says whose it is.
    assert calls == per_session(state=2, commit=turns + 1) + Counter(since=1)
    one.push()
    calls, pulled = counted(two, monkeypatch, lambda: two.pull(dry_run=True))
    assert described(pulled.changes) == [("new", turns, "")] * len(SESSIONS)
    # What says the format is the same in all, and read once.
    assert calls == per_session(state=2, blob=2, commit=1) + Counter(blob=1)


def per_session(**reads: int) -> Counter[str]:
    return Counter({name: count * len(SESSIONS) for name, count in reads.items()})


def test_what_both_have_is_not_opened(pair: list[Clone], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = pair
    record(one, 2)
    one.push()
    two.pull()
    for act in (one.push, one.pull, two.pull, two.push):
        calls, done = counted(one if act in (one.push, one.pull) else two, monkeypatch, act)
        assert (calls, done.changes) == (Counter(), ())
