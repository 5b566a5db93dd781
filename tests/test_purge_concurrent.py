"""What a person says while a value is just being purged does not bring it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clones import Clone, bare
from homes import claude_homes
from purging import VALUE, purged_beside
from transcripts import OTHER, Talk

from sessgit.branch import edit
from sessgit.branch import fork as forks
from sessgit.errors import UsageError
from sessgit.history.resolve import CallerContext, ForkPoint, ResolvedTarget
from sessgit.store import refs
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

FORK = "5e551011-0000-4000-8000-0000000000f0"


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    found = Clone(tmp_path / "clone", bare(tmp_path / "remote"))
    found.record(Talk().turns("one", f"see {VALUE}"))
    found.record(Talk(OTHER).turns("two"))
    yield found
    found.close()


def test_an_edit_waits_for_a_purge(clone: Clone) -> None:
    changes = edit.EditChanges(description=f"once {VALUE}")
    purged_beside(clone, lambda store, index: edit.edit_session(Context(index, now=clone.now), OTHER, changes))
    assert clone.store.state(clone.tip(OTHER)).description == "once [redacted:purged]"


def test_a_fork_waits_for_a_purge(clone: Clone) -> None:
    def make(store: Store, _: Index) -> None:
        tip = clone.tip(OTHER)
        forks.fork_session(
            store, store.state(tip), ForkPoint(OTHER, 1, tip), forks.ForkPlan(FORK, VALUE, clone.now(), None)
        )

    purged_beside(clone, make)
    assert clone.store.state(clone.tip(FORK)).name == "[redacted:purged]"


def test_a_tag_waits_for_a_purge(clone: Clone) -> None:
    said, value = list[UsageError](), "tiger-Lily." + "4711-Zebra"
    clone.record(Talk().turns("one", f"see {VALUE}", f"and {value}"))

    def give(store: Store, index: Index) -> None:
        found, where = index.branch(OTHER), CallerContext(claude_homes(clone.config), "/home/ada/shop", 0)
        assert found is not None
        with pytest.raises(UsageError) as refused:
            edit.tag_turn(Context(index, now=clone.now), value, ResolvedTarget(found, 1), where)
        said.append(refused.value)

    purged_beside(clone, give, value)
    assert [str(error) for error in said] == ["the tag looks like a secret"]
    assert refs.tags(clone.store.path) == {}
