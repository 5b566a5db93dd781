"""What was purged here and is elsewhere under another name: tags, what was deleted, branches without a head."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from clones import Clone, bare
from desks import Desks, desks
from plain import run_git
from purging import git, holders, purged_beside, refs
from servers import hook
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.remotes import Connection
from sessgit.store.store import Store
from sessgit.sync import push as pushing

VALUE = "tiger" + "-Lily_4711+Zebra"
PLAIN = "5e551011-0000-4000-8000-0000000000aa"
NEW = "5e551011-0000-4000-8000-0000000000bb"
CALLED = f"x-{VALUE}"


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    """Two machines and a remote that hold a conversation with the value, and a plain one."""
    made = desks(monkeypatch, capsys, tmp_path)
    made.here.record(made.here.shell.talk().turns("one", f"see {VALUE}", "three"))
    made.here.record(made.here.shell.talk(PLAIN).turns("plain"))
    made.here.out("push", "--all")
    made.there.out("pull")
    return made


def tags(store: Path) -> set[str]:
    return {ref.removeprefix("refs/tags/") for ref in refs(store) if ref.startswith("refs/tags/")}


def words(said: str) -> str:
    return " ".join(said.split())


def purged(two: Desks) -> None:
    done = two.here("purge", VALUE, "--yes")
    assert done.code == 0, done


# Tags


def tagged(two: Desks) -> None:
    """One tag is called by the value, and one went since; both lead to what holds it, and are there."""
    two.here.out("tag", CALLED, f"{SESSION}@2")
    two.here.out("tag", "lost", f"{SESSION}@3")
    two.here.out("push", "--all")
    two.here.out("tag", "-d", "lost")


def test_no_tag_there_leads_to_what_was_purged_or_is_called_by_it(two: Desks) -> None:
    tagged(two)
    purged(two)
    two.here.out("push", "--all")
    assert tags(two.hub) == {"x-purged", "lost"}
    subprocess.run(["git", "-C", two.hub, "gc", "-q", "--prune=now"], check=True)
    assert holders(two.hub, VALUE) == []
    again = two.here.json("push", "--all")
    assert (again["changes"], again["tags"], again["skipped"]) == ([], [], [])


def test_a_remote_that_holds_it_in_a_tag_alone_is_named(two: Desks) -> None:
    value = "zebra" + "-4711"
    two.here.out("tag", f"x-{value}", f"{PLAIN}@1")
    two.here.out("push", "--all")
    done = two.here("purge", value, "--yes")
    assert (done.code, "A remote holds it too: origin." in words(done.out)) == (0, True)
    two.here.out("push", "--all")
    assert tags(two.hub) == {"x-purged"}


def test_a_remote_that_lets_no_tag_go_is_told(two: Desks) -> None:
    tagged(two)
    purged(two)
    git(two.hub, "config", "receive.denyDeletes", "true")
    hook(two.hub, 'while read old new ref; do case "$new" in *[!0]*) ;; *) exit 1 ;; esac; done')
    done = two.here("push", "--all")
    assert (done.code, VALUE in done.out + done.err) == (0, False)
    assert words(done.out).endswith(
        "Skipped: x-purged: a tag of the remote contains a value that was purged here, and the remote does not allow "
        "deleting tags. Delete the tag there: its name contains the value."
    )
    assert refs(two.hub)[f"refs/tags/{CALLED}"] == refs(two.here.shell.store)["refs/tags/x-purged"]


def test_a_tag_that_is_called_by_it_does_not_come(two: Desks) -> None:
    purged(two)
    two.there.out("tag", CALLED, f"{PLAIN}@1")
    two.there.out("tag", "plain", f"{PLAIN}@1")
    two.there.out("push", PLAIN)
    done = two.here("pull")
    assert done.code == 0
    assert "Skipped: x-purged: the remote has a tag whose name contains a value that was purged here." in words(
        done.out
    )
    assert tags(two.here.shell.store) == {"plain"}
    assert holders(two.here.shell.store, VALUE) == []
    two.here.out("push", PLAIN)
    assert tags(two.hub) == {"plain"}


# What was deleted


@pytest.mark.parametrize("deleted_first", [True, False])
def test_what_was_deleted_and_purged_is_deleted_there(two: Desks, *, deleted_first: bool) -> None:
    two.here.out("tag", "good", f"{SESSION}@2")
    two.here.out("push", "--all")
    if deleted_first:
        two.here.out("delete", SESSION, "--yes")
    purged(two)
    if not deleted_first:
        two.here.out("delete", SESSION, "--yes")
    assert two.here.json("pull")["skipped"] == []
    (change,) = two.here.json("push", "--all")["changes"]
    assert (change["id"], change["change"]) == (SESSION, "deleted")
    own = {
        name: oid for name, oid in refs(two.here.shell.store).items() if name.split("/")[1] not in ("remotes", "keep")
    }
    assert refs(two.hub) == own
    subprocess.run(["git", "-C", two.hub, "gc", "-q", "--prune=now"], check=True)
    assert holders(two.hub, VALUE) == []


def test_what_is_deleted_there_as_it_was_is_deleted_here(two: Desks) -> None:
    purged(two)
    two.there.out("delete", SESSION, "--yes")
    two.there.out("push", "--all")
    (change,) = two.here.json("pull")["changes"]
    assert (change["id"], change["change"]) == (SESSION, "deleted")
    two.here.out("undo")
    assert len(two.here.json("log", SESSION)["turns"]) == 3


def test_what_is_archived_there_beside_the_live_one_goes_too(two: Desks) -> None:
    old = refs(two.hub)[f"refs/heads/{SESSION}"]
    git(two.hub, "update-ref", f"refs/archive/{SESSION}", old)
    purged(two)
    two.here.out("push", "--all")
    git(two.hub, "update-ref", f"refs/archive/{PLAIN}", f"refs/heads/{PLAIN}")
    there = refs(two.hub)
    assert there[f"refs/archive/{SESSION}"] == there[f"refs/heads/{SESSION}"] != old
    # As one of before left it, that put there the live one alone.
    git(two.hub, "update-ref", f"refs/archive/{SESSION}", old)
    (change,) = two.here.json("push", "--all")["changes"]
    assert (change["id"], change["change"]) == (SESSION, "purged")
    assert refs(two.hub) == there
    subprocess.run(["git", "-C", two.hub, "gc", "-q", "--prune=now"], check=True)
    assert holders(two.hub, VALUE) == []
    assert two.here.json("pull")["skipped"] == two.here.json("push", "--all")["skipped"] == []


# What comes


def test_branches_without_a_head_bring_nothing_back(two: Desks) -> None:
    purged(two)
    two.there.record(two.there.shell.talk(NEW).turns("a", f"again {VALUE}"))
    two.there.out("push", NEW)
    git(two.hub, "update-ref", f"refs/heads/{NEW}.m-12345678", f"refs/heads/{NEW}")
    git(two.hub, "update-ref", "-d", f"refs/heads/{NEW}")
    done = two.here("pull", NEW)
    assert "has a value that was purged here" in words(done.out)
    assert holders(two.here.shell.store, VALUE) == []


def test_a_push_waits_for_a_purge(tmp_path: Path) -> None:
    """It knows then what must not come, and fetches nothing of it."""
    clone = Clone(tmp_path / "clone", bare(tmp_path / "remote"))
    clone.record(Talk().turns("one", f"see {VALUE}"))
    clone.push()
    said = list[str]()

    def push(store: Store, index: Index) -> None:
        link = Connection(clone.link.remote, dict(os.environ), lambda _: None)
        done = pushing.push_sessions(Context(index, now=clone.now), link, pushing.PushRequest([SESSION]))
        said.extend(change.what for change in done.changes)

    purged_beside(clone, push, VALUE)
    assert said == ["purged"]
    assert clone.there() == clone.refs()
    run_git(clone.remote, "gc", "-q", "--prune=now")
    assert holders(clone.remote, VALUE) == []
    clone.close()


# What is told of it


@pytest.mark.parametrize("before", range(42, 58, 4))
def test_an_operation_that_was_told_in_short_keeps_no_beginning_of_it(sessgit: Shell, before: int) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("edit", SESSION, "--description", f"{'p' * before}{VALUE} and so on, for many more words than that")
    assert VALUE[:4] in (sessgit.store / "operations.jsonl").read_text()
    assert sessgit("purge", VALUE, "--yes").code == 0
    assert VALUE[:4] not in (sessgit.store / "operations.jsonl").read_text()
    assert sessgit("ops").code == 0
