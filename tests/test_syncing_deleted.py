"""What was deleted, and tags: how they travel, and what stays where it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clones import Clone, bare, described, opened
from homes import claude_homes
from plain import run_git
from transcripts import OTHER, SESSION, Talk

from sessgit.check import gc
from sessgit.store import refs
from sessgit.store.context import Context
from sessgit.sync.session_refs import SkippedItem

Machines = Callable[..., list[Clone]]

HEAD = f"refs/heads/{SESSION}"
ARCHIVED = f"refs/archive/{SESSION}"
STONE = f"refs/deleted/{SESSION}"
DELETED_HERE = "it was deleted here, but has turns there that were not here"
BROUGHT_BACK = "it was deleted here and there, and restored there"
DELETED_THERE = "it is deleted there"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    """So many machines that have what the talk says, by way of the remote."""
    clock, made = itertools.count(), list[Clone]()
    remote = bare(tmp_path / "remote")

    def begin(count: int, talk: Talk) -> list[Clone]:
        for number in range(count):
            made.append(Clone(tmp_path / f"clone-{number}", remote, number, clock))
            if not number:
                made[0].record(talk)
                made[0].push()
            else:
                made[number].pull()
        return made

    yield begin
    for clone in made:
        clone.check()
        clone.close()


# Tombstones


def test_what_is_deleted_on_one_machine_is_deleted_on_all(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one", "two").rewind(1).turns("apart"))
    before, key = two.refs(), two.keys()[0]
    one.delete()
    stone = one.refs()[STONE]
    assert described(one.push().changes) == [("deleted", 0, "")]
    assert one.there() == {STONE: stone}
    assert described(two.pull().changes) == [("deleted", 2, "")]
    assert two.refs() == {STONE: stone}
    assert two.index.with_prompt(key) == []
    assert [described(clone.push().changes) + described(clone.pull().changes) for clone in (one, two)] == [[], []]
    # It can be taken back, where it was done too, and stays then.
    one.undo()
    assert (described(one.pull().changes), one.refs()) == ([], before)
    two.undo()
    assert two.refs() == before
    assert described(two.pull().changes) == []
    assert (two.refs(), two.push().skipped) == (
        before,
        (SkippedItem(SESSION, DELETED_THERE, "To restore it there, push it by its address."),),
    )


def test_what_is_open_here_is_not_deleted(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.delete()
    one.push()
    with opened(two):
        assert two.pull().skipped == (
            SkippedItem(SESSION, "it was deleted there, and is open in a client here", "Close it, and pull again."),
        )
    assert list(two.refs()) == [HEAD]
    assert described(two.pull().changes) == [("deleted", 1, "")]


def test_who_names_it_brings_it_back(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.delete()
    one.push()
    assert described(two.push(SESSION, named=[SESSION]).changes) == [("new", 1, "")]
    assert two.there() == {HEAD: two.tip()}
    # Here it stays deleted until that is undone.
    assert (one.pull().changes, one.pull().skipped) == ((), ())
    assert [(item.what, item.why) for item in one.pull(SESSION).skipped] == [(SESSION, "it was deleted here")]
    one.undo()
    assert one.refs() == two.refs()


def test_turns_that_whoever_deleted_it_did_not_have_are_kept(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    two.record(talk.turns("two", "three"))
    one.delete()
    one.push()
    before = two.refs()
    assert described(two.pull().changes) == [("kept", 2, "")]
    assert two.refs() == before
    assert described(two.pull().changes) == []
    assert two.push().skipped == (SkippedItem(SESSION, DELETED_THERE, "To restore it there, push it by its address."),)


def test_who_has_not_seen_what_was_deleted_keeps_what_it_has(machines: Machines) -> None:
    talk = Talk().turns("one", "two")
    one, two = machines(2, talk)
    one.record(talk.turns("three"))
    one.push(), one.delete(), one.push()
    # Its two turns were among what went, and nothing that is here says so.
    assert described(two.pull().changes) == [("kept", 0, "")]
    assert len(two.keys()) == 2
    assert described(two.pull().changes) == []


def test_turns_on_the_remote_that_were_not_here_are_kept(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    two.record(talk.turns("two"))
    two.push()
    one.delete()
    pushed = one.push()
    assert (described(pushed.changes), [item.why for item in pushed.skipped]) == ([], [DELETED_HERE])
    assert (one.there(), described(one.pull().changes)) == ({HEAD: two.tip()}, [])
    # Whoever looks first has seen them, and can delete them.
    one.undo()
    one.pull()
    one.delete()
    assert described(one.push().changes) == [("deleted", 0, "")]
    assert described(two.pull().changes) == [("deleted", 2, "")]


def test_what_was_deleted_is_known_when_nothing_of_it_is_left(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    old = one.tip()
    one.tag("here")
    one.push()
    one.record(talk.turns("two"))
    one.delete()
    gc.collect(Context(one.index, homes=claude_homes(one.store.path), now=one.now), keep=1e9, prune=True)
    assert old not in every_object(one)
    assert [ref for ref in refs.read_all(one.store.path) if SESSION in ref] == [STONE]
    assert one.pull().changes == ()
    assert old not in every_object(one)
    assert described(one.push().changes) == [("deleted", 0, "")]
    assert one.there() == {STONE: one.refs()[STONE]}
    assert described(two.pull().changes) == [("deleted", 1, "")]


def test_a_session_that_was_never_here_brings_no_tombstone(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.record(Talk(OTHER).turns("two"))
    one.push()
    one.delete(OTHER)
    one.push()
    assert (two.pull().changes, list(two.refs())) == ((), [HEAD])


def test_a_push_can_leave_deletions_here(machines: Machines) -> None:
    (one,) = machines(1, Talk().turns("one"))
    one.delete()
    assert one.push(deletions=False).changes == ()
    assert list(one.there()) == [HEAD]


def test_a_tombstone_of_before_says_nothing_of_tips(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    made = tombstone(one.store.path, SESSION)
    one.delete()
    run_git(one.store.path, "update-ref", STONE, made)
    pushed = one.push()
    assert (described(pushed.changes), [item.why for item in pushed.skipped]) == ([], [DELETED_HERE])
    run_git(two.remote, "fetch", "-q", str(one.store.path), f"{STONE}:{STONE}")
    run_git(two.remote, "update-ref", "-d", HEAD)
    assert described(two.pull().changes) == [("kept", 1, "")]
    assert list(two.refs()) == [HEAD]


def test_turns_that_were_only_seen_there_are_not_deleted(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    two.record(talk.turns("two", "three"))
    two.push()
    assert described(one.pull(dry_run=True).changes) == [("forward", 2, "")]
    one.delete()
    pushed = one.push()
    assert (described(pushed.changes), [item.why for item in pushed.skipped]) == ([], [DELETED_HERE])
    assert one.there() == {HEAD: two.tip()}
    assert (described(two.pull().changes), len(two.keys())) == ([], 3)


def test_what_was_brought_back_is_not_deleted_again(machines: Machines) -> None:
    one, two, three, four, five = machines(5, Talk().turns("one", "two"))
    four.delete(), five.delete(), one.delete()
    one.push(), three.pull(), four.pull(), five.push()
    two.push(SESSION, named=[SESSION])
    for clone in (one, three, four, five):
        clone.record(Talk(OTHER).turns("else"))
        assert clone.push(OTHER).skipped == (
            SkippedItem(SESSION, BROUGHT_BACK, f"Restore it here too with `sessgit undo`, or delete {SESSION} there."),
        )
        assert two.there()[HEAD] == two.tip()
    # Whoever has it again can delete it once more.
    one.undo()
    assert one.tip() == two.tip()
    one.pull()
    one.delete()
    assert described(one.push().changes) == [("deleted", 0, "")]
    assert HEAD not in one.there()
    assert described(two.pull(SESSION).changes) == [("deleted", 2, "")]


def test_who_brought_it_back_is_not_told_by_the_same_tombstone_again(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.delete()
    one.push()
    two.push(SESSION, named=[SESSION])
    stone = one.refs()[STONE]
    run_git(one.store.path, "push", "-q", str(one.remote), f":{HEAD}", f"{stone}:{STONE}")
    assert (described(two.pull().changes), list(two.refs())) == ([], [HEAD])


def test_the_turns_of_an_archived_branch_beside_a_live_one_come_and_stay(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two, three = machines(3, talk)
    old = one.tip()
    one.record(talk.turns("two"))
    one.push()
    run_git(one.remote, "update-ref", ARCHIVED, one.tip())
    run_git(one.remote, "update-ref", HEAD, old)
    # Who has not seen it deletes nothing of it.
    two.delete()
    pushed = two.push()
    assert (described(pushed.changes), [item.why for item in pushed.skipped]) == ([], [DELETED_HERE])
    assert two.there() == {ARCHIVED: one.tip(), HEAD: old}
    assert described(three.pull().changes) == [("forward", 1, "")]
    assert three.refs() == {HEAD: one.tip()}
    assert (three.pull().changes, described(three.push().changes)) == ((), [("forward", 1, "")])
    assert three.there() == {ARCHIVED: one.tip(), HEAD: one.tip()}
    three.delete()
    three.push()
    assert list(three.there()) == [STONE]


def test_an_archived_branch_that_parted_from_the_live_one_comes_as_another(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    two.record(Talk().turns("one").rewind(0).turns("else"))
    run_git(two.remote, "fetch", "-q", str(two.store.path), f"{HEAD}:{ARCHIVED}")
    assert [what for what, *_ in described(one.pull().changes)] == ["diverged"]
    assert sorted(one.refs().values()) == sorted(one.there().values())
    assert one.pull().changes == ()
    # An archived one here is not made over that one there, until both are in branches of their own.
    two.pull()
    one.archive()
    one.push()
    assert two.tip() in every_tip(one)


def test_what_is_archived_here_is_not_put_over_another_one_there(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    two.record(talk.turns("two"))
    run_git(two.remote, "fetch", "-q", str(two.store.path), f"{HEAD}:{ARCHIVED}")
    before = one.there()
    one.archive()
    assert one.push().skipped == (
        SkippedItem(SESSION, "it exists twice there, live and archived", "Pull it first, to have both here."),
    )
    assert one.there() == before
    one.pull()
    one.push()
    assert len(one.keys()) == 2
    assert two.tip() in every_tip(one)


def test_turns_of_both_branches_of_one_name_here_are_kept(machines: Machines) -> None:
    talk = Talk().turns("one")
    one, two = machines(2, talk)
    old = two.tip()
    two.record(talk.turns("two"))
    run_git(two.store.path, "update-ref", ARCHIVED, two.tip())
    run_git(two.store.path, "update-ref", HEAD, old)
    two.index.sync()
    one.delete()
    one.push()
    assert [what for what, *_ in described(two.pull().changes)] == ["kept"]
    assert sorted(two.refs()) == [ARCHIVED, HEAD]


def test_what_was_never_there_is_not_deleted_from_there(machines: Machines) -> None:
    (one,) = machines(1, Talk().turns("one"))
    one.record(Talk(OTHER).turns("two"))
    tip, ref = one.tip(OTHER), f"refs/deleted/{OTHER}"
    run_git(one.remote, "update-ref", ref, tombstone(one.remote, OTHER, f"Tip: {tip}\n"))
    for _ in range(2):
        pulled = one.pull()
        assert (pulled.changes, pulled.skipped) == (
            (),
            (
                SkippedItem(
                    OTHER,
                    "it is deleted there, and was never pulled from there",
                    f"It was kept. To delete it here too: `sessgit delete {OTHER}`",
                ),
            ),
        )
    assert one.tip(OTHER) == tip


def test_what_was_seen_there_is_deleted_from_there_without_what_was_agreed(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.delete()
    one.push()
    two.store.paths.agreement_file(str(two.remote)).unlink()
    assert described(two.pull().changes) == [("deleted", 1, "")]


def tombstone(folder: Path, session: str, tips: str = "") -> str:
    """One that was made by other means."""
    empty = run_git(folder, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    author = ("-c", "user.name=a", "-c", "user.email=a")
    return run_git(folder, *author, "commit-tree", empty, "-m", f"deleted\n\nSession: {session}\n{tips}").strip()


def every_tip(clone: Clone) -> set[str]:
    return set(run_git(clone.remote, "rev-list", "--all").split())


def every_object(clone: Clone) -> str:
    return run_git(clone.store.path, "cat-file", "--batch-all-objects", "--batch-check")


# Tags


def test_tags_go_along_with_their_turns(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one", "two"))
    one.record(Talk(OTHER).turns("else"))
    one.tag("first", turn=1)
    one.tag("apart", OTHER)
    assert one.push(SESSION).tags == ("first",)
    assert [ref for ref in one.there() if "tags" in ref] == ["refs/tags/first"]
    pulled = two.pull()
    assert (pulled.tags, pulled.changes) == (("first",), ())
    assert pulled.operation is not None
    assert pulled.operation.summary == "1 tag from origin"
    assert two.refs()["refs/tags/first"] == one.refs()["refs/tags/first"]
    assert (one.push(OTHER).tags, two.pull().tags, one.push().tags, two.push().tags) == (("apart",), ("apart",), (), ())


def test_a_tag_that_stands_elsewhere_is_left(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one", "two"))
    one.tag("here", turn=1)
    two.tag("here", turn=2)
    one.push()
    before = two.refs()
    assert two.pull().skipped == (
        SkippedItem("here", "the tag is at another turn here", "To accept the remote's tag: `sessgit tag -d here`"),
    )
    assert two.push().skipped == (
        SkippedItem("here", "the tag is at another turn there", "A push does not move tags on a remote."),
    )
    assert two.refs() == before


def test_a_tag_that_was_taken_away_stays_away(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.tag("here")
    one.push()
    two.pull()
    run_git(two.store.path, "update-ref", "-d", "refs/tags/here")
    assert two.pull().tags == ()
    assert list(two.refs()) == [HEAD]


def test_tags_of_what_was_deleted_go_with_it(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    one.tag("here")
    one.push()
    two.pull()
    one.delete()
    one.push()
    two.pull()
    assert list(one.there()) == list(two.refs()) == [STONE]


def test_names_that_no_tag_may_have_stay_there(machines: Machines) -> None:
    one, two = machines(2, Talk().turns("one"))
    for name in ("HEAD", SESSION, "a/b", "x" * 101):
        run_git(one.remote, "update-ref", f"refs/tags/{name}", one.tip())
    assert two.pull().tags == ()
    assert list(two.refs()) == [HEAD]
