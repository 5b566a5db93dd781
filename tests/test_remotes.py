"""`store.remotes`: refs that go to a remote and come from it, all of them or none, and git as it is let do that."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shlex
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clones import bare
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import Git, run_git
from servers import PASSWORD, USER, daemon, hook, http, ssh
from transcripts import OTHER, SESSION

from sessgit.errors import ConflictError, MovedError, NotFoundError, RefusedError, StoreError, UsageError
from sessgit.store import git, layout, refs, remotes
from sessgit.store import store as stores
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move, move_refs
from sessgit.store.remotes import Connection, Remote
from sessgit.store.store import Store

HEAD, SIDE, STONE, TAG = (
    f"refs/heads/{SESSION}",
    f"refs/heads/{SESSION}.m-a0005003",
    f"refs/deleted/{OTHER}",
    "refs/tags/release",
)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return bare(tmp_path / "hub")


@pytest.fixture
def link(store: Store, hub: Path) -> Connection:
    return linked(store.path, str(hub))


def linked(path: Path, url: str, name: str = "origin", **env: str) -> Connection:
    remotes.add_remote(path, name, url)
    return Connection(remotes.find_remote(path, name), {**os.environ, **env}, lambda piece: None)


def commits(store: Store, count: int) -> list[str]:
    """A chain of commits."""
    found = list[str]()
    tree = store.repo.edit_tree(None, {})
    for number in range(count):
        found.append(store.repo.write_commit(tree, found[-1:], f"turn {number}\n", 1_700_000_000 + number))
    return found


def at(remote: Path) -> dict[str, str]:
    lines = run_git(remote, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return {line.split()[0]: line.split()[1] for line in lines}


# The table


def test_a_remote_is_gits_own(store: Store, git: Git, hub: Path) -> None:
    assert remotes.list_remotes(store.path) == []
    assert remotes.add_remote(store.path, "origin", str(hub)) == Remote("origin", str(hub))
    assert remotes.list_remotes(store.path) == [Remote("origin", str(hub))]
    assert git("remote", "-v") == f"origin\t{hub} (fetch)\norigin\t{hub} (push)\n"
    first = commits(store, 1)[0]
    git(
        "push", "-q", "origin", f"{first}:{HEAD}", f"{first}:refs/archive/{OTHER}", f"{first}:{STONE}", f"{first}:{TAG}"
    )
    git("fetch", "-q", "origin")
    assert remotes.tracked_refs(store.path, "origin") == dict.fromkeys(
        [HEAD, f"refs/archive/{OTHER}", STONE, TAG], first
    )
    assert git("tag") == ""


@pytest.mark.parametrize(
    "name", ["", "-o", "a b", "a/b", "..", "a..b", ".a", "a.", "a.lock", "ä", "a\n", "x" * 63, "a:b", "a~1"]
)
def test_a_name_that_git_takes_for_no_remote(store: Store, name: str) -> None:
    with pytest.raises(UsageError):
        remotes.add_remote(store.path, name, "/srv/hub")
    assert remotes.list_remotes(store.path) == []


@pytest.mark.parametrize(
    "url",
    ["", " ", "-oProxyCommand=x", "ext::sh -c x", "EXT::sh", "/srv/a\nb", "/srv/\x1b[31m", "hub", "../hub", "./a:b"],
)
def test_a_url_that_is_none(store: Store, url: str) -> None:
    with pytest.raises(UsageError):
        remotes.add_remote(store.path, "origin", url)
    assert remotes.list_remotes(store.path) == []


@pytest.mark.parametrize(
    "url",
    ["/srv/hub", "host:hub", "ada@host:code/hub", "ssh://host/hub", "https://host/hub.git", '/srv/a "b" \\ c # d ; é '],
)
def test_a_url_stays_as_it_is(store: Store, url: str) -> None:
    remotes.add_remote(store.path, "origin", url)
    assert remotes.find_remote(store.path, "").url == url


def test_settings_of_a_remote_without_a_url_are_replaced(store: Store, git: Git) -> None:
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/theirs/*")
    with (store.path / "config").open("a") as file:
        file.write("[core]\n\tbare = true")  # no newline at the end
    remotes.add_remote(store.path, "origin", "/srv/hub")
    fetch = [f"+{space}*:{layout.tracking_ref('origin', space)}*" for space in layout.REF_SPACES]
    assert git("config", "--get-all", "remote.origin.fetch").splitlines() == fetch
    assert git("config", "remote.origin.tagOpt") == "--no-tags\n"
    assert git("rev-parse", "--is-bare-repository") == "true\n"
    assert (store.path / "config").stat().st_mode & 0o777 == 0o600


def test_a_config_that_git_has_locked_stays(store: Store) -> None:
    lock, before = store.path / "config.lock", (store.path / "config").read_bytes()
    lock.touch()
    with pytest.raises(StoreError, match=r"cannot change the store's git config: .*File exists") as error:
        remotes.add_remote(store.path, "origin", "/srv/hub")
    assert error.value.hint == f"Is {store.path} yours and writable?"
    assert lock.exists() and (store.path / "config").read_bytes() == before


def test_a_name_is_taken_once(store: Store) -> None:
    remotes.add_remote(store.path, "origin", "https://ada:pass@host/hub")
    with pytest.raises(ConflictError, match=r"https://ada:\*\*\*@host/hub"):
        remotes.add_remote(store.path, "origin", "/srv/other")
    assert [remote.url for remote in remotes.list_remotes(store.path)] == ["https://ada:pass@host/hub"]


def test_which_one_is_meant(store: Store) -> None:
    with pytest.raises(NotFoundError, match=r"there is no remote$"):
        remotes.find_remote(store.path, "")
    remotes.add_remote(store.path, "laptop", "/srv/a")
    assert remotes.find_remote(store.path, "").name == "laptop"
    with pytest.raises(NotFoundError, match="there is no remote origin"):
        remotes.find_remote(store.path, "origin")
    remotes.add_remote(store.path, "desk", "/srv/b")
    with pytest.raises(UsageError, match="2 remotes: desk, laptop"):
        remotes.find_remote(store.path, "")


def test_one_that_plain_git_made_would_take_other_refs(store: Store, git: Git) -> None:
    git("remote", "add", "mine", "/srv/hub")
    assert [remote.name for remote in remotes.list_remotes(store.path)] == ["mine"]
    with pytest.raises(ConflictError, match="not set up"):
        remotes.find_remote(store.path, "mine")
    remotes.remove_remote(store.path, "mine")
    remotes.add_remote(store.path, "mine", "/srv/hub")
    git("config", "remote.mine.push", "refs/heads/*")
    with pytest.raises(ConflictError, match="not set up"):
        remotes.find_remote(store.path, "mine")


def test_removed_with_all_that_was_remembered(store: Store, link: Connection, git: Git) -> None:
    first = commits(store, 1)[0]
    remotes.push_refs(store.path, link, [Move(HEAD, None, first)])
    before = remotes.tracked_refs(store.path, "origin")
    assert remotes.remove_remote(store.path, "origin") == link.remote
    assert (before, remotes.tracked_refs(store.path, "origin")) == ({HEAD: first}, {})
    assert refs.read_all(store.path) == {}
    assert "remote" not in git("config", "--local", "--list")
    with pytest.raises(NotFoundError):
        remotes.remove_remote(store.path, "origin")


# There and back


def test_there_and_back(store: Store, link: Connection, hub: Path, tmp_path: Path) -> None:
    one, two, three = commits(store, 3)
    moves = [Move(HEAD, None, two), Move(SIDE, None, three), Move(STONE, None, one), Move(TAG, None, one)]
    remotes.push_refs(store.path, link, moves)
    there = {HEAD: two, SIDE: three, STONE: one, TAG: one}
    assert at(hub) == remotes.remote_refs(store.path, link) == remotes.tracked_refs(store.path, "origin") == there
    stores.create_store(tmp_path / "other")
    other = linked(tmp_path / "other", str(hub), "hub")
    remotes.fetch_refs(tmp_path / "other", other, [HEAD, TAG])
    assert remotes.tracked_refs(tmp_path / "other", "hub") == {HEAD: two, TAG: one}
    assert sorted(refs.read_all(tmp_path / "other")) == [
        f"refs/remotes/hub/heads/{SESSION}",
        "refs/remotes/hub/tags/release",
    ]
    assert not (tmp_path / "other" / "FETCH_HEAD").exists()
    remotes.push_refs(store.path, link, [Move(HEAD, two, one), Move(SIDE, three, None), Move(STONE, one, two)])
    assert at(hub) == {HEAD: one, STONE: two, TAG: one}
    remotes.fetch_refs(tmp_path / "other", other, [HEAD, SIDE])
    assert remotes.tracked_refs(tmp_path / "other", "hub") == {HEAD: one, TAG: one}
    remotes.push_refs(store.path, link, [Move(HEAD, one, None)])
    remotes.fetch_refs(tmp_path / "other", other, [HEAD, STONE])
    assert remotes.tracked_refs(tmp_path / "other", "hub") == {STONE: two, TAG: one}


def test_nothing_to_do(store: Store, link: Connection) -> None:
    remotes.push_refs(store.path, link, [])
    remotes.fetch_refs(store.path, link, [])
    remotes.fetch_refs(store.path, link, [HEAD])
    assert remotes.remote_refs(store.path, link) == remotes.tracked_refs(store.path, "origin") == {}


def test_refs_of_others_are_not_seen(store: Store, link: Connection, hub: Path) -> None:
    one = commits(store, 1)[0]
    names = ["refs/heads/Main", f"{HEAD}.x-1", f"{HEAD}/deep", "refs/notes/a", f"{STONE}.r-a0000001", "refs/keep/a-1",
             "refs/tags/a/b", "refs/pull/1/head", "refs/tags/v\u202e1"]  # fmt: skip
    run_git(store.path, "push", "-q", str(hub), *(f"{one}:{name}" for name in names))
    assert len(at(hub)) == len(names)
    assert remotes.remote_refs(store.path, link) == {}
    remotes.fetch_refs(store.path, link, names)
    assert refs.read_all(store.path) == {}
    with pytest.raises(UsageError):
        remotes.push_refs(store.path, link, [Move("refs/keep/a-1", one, None)])


def test_a_tag_object_stands_for_its_commit(store: Store, link: Connection, hub: Path) -> None:
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, two)])
    run_git(hub, "-c", "user.name=a", "-c", "user.email=a@b", "tag", "-a", "-m", "x", "release", one)
    assert at(hub)[TAG] != one
    assert remotes.remote_refs(store.path, link)[TAG] == one
    with pytest.raises(MovedError):
        remotes.push_refs(store.path, link, [Move(TAG, two, None)])
    remotes.fetch_refs(store.path, link, [TAG])
    assert remotes.tracked_refs(store.path, "origin")[TAG] == one
    remotes.push_refs(store.path, link, [Move(TAG, one, two)])
    assert at(hub)[TAG] == two


def test_what_is_here_no_more_can_be_deleted_there(store: Store, link: Connection, hub: Path, tmp_path: Path) -> None:
    stores.create_store(tmp_path / "other")
    other = Store(tmp_path / "other")
    last = commits(other, 7)[-1]
    remotes.push_refs(other.path, linked(other.path, str(hub)), [Move(HEAD, None, last)])
    with pytest.raises(MovedError):
        remotes.push_refs(store.path, link, [Move(HEAD, "1" * 40, None)])
    remotes.push_refs(store.path, link, [Move(HEAD, last, None)])
    assert at(hub) == {}


VALUES = st.sampled_from([None, 0, 1, 2])


@settings(max_examples=25)
@given(
    there=st.lists(VALUES, min_size=2, max_size=2), moves=st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=2)
)
def test_all_or_none(there: list[int | None], moves: list[tuple[int | None, int | None]]) -> None:
    """A push moves every ref from its old value, or nothing at all; one that holds the new value already is moved."""
    folder = Path(tempfile.mkdtemp(prefix="remotes-"))
    try:
        hub = bare(folder / "hub")
        stores.create_store(folder / "store")
        store = Store(folder / "store")
        chain = commits(store, 2)
        oids = [*chain, store.repo.write_commit(store.repo.edit_tree(None, {}), chain[:1], "aside\n", 1_700_000_009)]
        oid: dict[int | None, str | None] = {None: None, **dict(enumerate(oids))}
        names = (HEAD, SIDE)
        before = {name: oids[value] for name, value in zip(names, there, strict=True) if value is not None}
        if before:
            run_git(store.path, "push", "-q", str(hub), *(f"{value}:{name}" for name, value in before.items()))
        wanted = [Move(name, oid[old], oid[new]) for name, (old, new) in zip(names, moves, strict=True)]
        link = linked(store.path, str(hub))
        moving = [move for move in wanted if move.old != move.new]
        fits = all(before.get(move.ref) == move.old for move in moving)
        done = all(before.get(move.ref) in (move.old, move.new) for move in moving)
        try:
            remotes.push_refs(store.path, link, wanted)
        except MovedError:
            assert not fits
            assert at(hub) == before
        else:
            assert done
            after = {**before, **{move.ref: move.new for move in moving}}
            assert at(hub) == {name: value for name, value in after.items() if value}
    finally:
        shutil.rmtree(folder)


def test_three_thousand_refs_in_one_push(store: Store, link: Connection, hub: Path) -> None:
    one = commits(store, 1)[0]
    run_git(hub, "config", "core.fsync", "none")
    names = [f"refs/heads/{number:08x}-0000-4000-8000-000000000000" for number in range(3000)]
    remotes.push_refs(store.path, link, [Move(name, None, one) for name in names])
    assert remotes.tracked_refs(store.path, "origin") == at(hub) == dict.fromkeys(names, one)


def test_many_come_by_a_pattern_and_nothing_else_does(store: Store, link: Connection, hub: Path) -> None:
    one, two, three = commits(store, 3)
    names = [f"refs/heads/{number:08x}-0000-4000-8000-000000000000" for number in range(remotes._FEW_REFS + 3)]
    *wanted, aside, same, gone = names
    others = ["refs/heads/Main", f"{wanted[0]}.x-1", f"{wanted[0]}-2/deep", "refs/notes/a", "refs/keep/a-1", STONE, TAG]
    seen = {wanted[0]: one, same: one, aside: one, gone: one, STONE: one}
    move_refs(store.path, [Move(layout.tracking_ref("origin", ref), None, oid) for ref, oid in seen.items()])
    held = {**dict.fromkeys([*wanted, aside, *others], two), same: one}
    (hub / "packed-refs").write_text("".join(f"{oid} {ref}\n" for ref, oid in sorted(held.items())))
    (hub / "objects" / "info" / "alternates").write_text(f"{store.path / 'objects'}\n")
    run_git(hub, "update-ref", f"refs/archive/{OTHER}", three)
    remotes.fetch_refs(store.path, link, [*wanted, gone, "refs/heads/Main"])
    came = {**dict.fromkeys(wanted, two), same: one, aside: one, STONE: one}
    assert remotes.tracked_refs(store.path, "origin") == came
    assert refs.read_all(store.path) == {layout.tracking_ref("origin", ref): oid for ref, oid in came.items()}


PLACES = ["heads", "archive", "deleted"]
SOMEBODYS = [
    "refs/heads/Main",
    "refs/archive/b/c",
    "refs/deleted/ä",
    "refs/heads/a.b",
    "refs/heads/@x",
    "refs/heads/-x",
]


@settings(max_examples=20)
@given(
    rows=st.lists(st.tuples(st.sampled_from(PLACES), VALUES, VALUES, st.booleans()), min_size=1, max_size=6),
    others=st.sets(st.sampled_from(SOMEBODYS)),
)
def test_a_pattern_brings_what_names_bring(
    rows: list[tuple[str, int | None, int | None, bool]], others: set[str]
) -> None:
    """Whichever refs are there, were here before and are wanted, both ways end with the same tracking refs."""
    folder, few = Path(tempfile.mkdtemp(prefix="remotes-")), remotes._FEW_REFS
    try:
        hub, found = bare(folder / "hub"), list[dict[str, str]]()
        for way, limit in enumerate((few, -1)):
            stores.create_store(folder / f"store-{way}")
            store = Store(folder / f"store-{way}")
            oids = commits(store, 3)
            link = linked(store.path, str(hub))
            names = [f"refs/{place}/{n:08x}-0000-4000-8000-000000000000" for n, (place, *_) in enumerate(rows)]
            if not way:
                there = {name: oids[row[1]] for name, row in zip(names, rows, strict=True) if row[1] is not None}
                there |= dict.fromkeys(others, oids[0])
                if there:
                    run_git(store.path, "push", "-q", str(hub), *(f"{oid}:{ref}" for ref, oid in there.items()))
            seen = {name: oids[row[2]] for name, row in zip(names, rows, strict=True) if row[2] is not None}
            move_refs(store.path, [Move(layout.tracking_ref("origin", ref), None, oid) for ref, oid in seen.items()])
            remotes._FEW_REFS = limit
            remotes.fetch_refs(store.path, link, [name for name, row in zip(names, rows, strict=True) if row[3]])
            found.append(refs.read_all(store.path))
        assert found[0] == found[1]
    finally:
        remotes._FEW_REFS = few
        shutil.rmtree(folder)


def test_ten_thousand_refs_are_one_pattern_to_git(store: Store) -> None:
    names = [f"refs/heads/{number:08x}-0000-4000-8000-000000000000" for number in range(10_000)]
    oid = "1" * 40
    there = dict.fromkeys([*names, "refs/heads/Main", "refs/tags/v1", "refs/tags/v1^{}"], oid)
    pattern = "+refs/heads/*:refs/remotes/origin/heads/*"
    assert remotes.pattern_refspecs("origin", names, there, {}) == [pattern, "^refs/heads/Main"]
    known = {layout.tracking_ref("origin", name): oid for name in names[1:]}
    assert remotes.pattern_refspecs("origin", names[:1], there, known) == [pattern, "^refs/heads/Main"]
    link = Connection(remotes.Remote("origin", "/srv/hub"), {}, lambda piece: None)
    with remotes.push_repository(store.path, link, [Move(name, None, oid) for name in names], {}) as folder:
        assert run_git(folder, "config", "--get-all", f"remote.{folder.name}.push") == "refs/heads/*:refs/heads/*\n"


@pytest.mark.parametrize(
    "name", ["refs/heads/ä", "refs/heads/a..b", "refs/heads/a.lock", "refs/heads/.a", "refs/heads/^a"]
)
def test_what_git_might_not_take_is_never_said_to_it(name: str) -> None:
    assert remotes.pattern_refspecs("o", [HEAD], {HEAD: "1" * 40, name: "1" * 40}, {}) == remotes.refspecs_for(
        "o", [HEAD]
    )


def test_only_what_is_named_goes(store: Store, link: Connection, hub: Path) -> None:
    one, two = commits(store, 2)
    move_refs(store.path, [Move(HEAD, None, one), Move(SIDE, None, two), Move(TAG, None, one), Move(STONE, None, one)])
    remotes.push_refs(store.path, link, [Move(HEAD, None, one)])
    assert at(hub) == {HEAD: one}
    move_refs(store.path, [Move(HEAD, one, two)])
    remotes.push_refs(store.path, link, [Move(SIDE, None, one)])
    assert at(hub) == remotes.tracked_refs(store.path, "origin") == {HEAD: one, SIDE: one}


def test_a_push_leaves_nothing_beside_the_store(store: Store, link: Connection, hub: Path) -> None:
    state = StorePaths(store.path).state
    before = sorted(state.iterdir())
    left = state / "push-a2345678"
    left.mkdir()
    os.utime(left, (0, 0))
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one)])
    with pytest.raises(MovedError):
        remotes.push_refs(store.path, link, [Move(HEAD, two, None), Move(SIDE, None, one)])
    assert sorted(state.iterdir()) == before


def test_what_the_stores_own_config_says_counts_in_a_push(store: Store, link: Connection, hub: Path) -> None:
    run_git(store.path, "config", "remote.origin.receivepack", "echo not today >&2; false")
    with pytest.raises(StoreError, match="not today"):
        remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])


def test_a_tracking_ref_that_cannot_be_moved_undoes_no_push(store: Store, link: Connection, hub: Path) -> None:
    one = commits(store, 1)[0]
    move_refs(store.path, [Move(f"{layout.tracking_ref('origin', HEAD)}/deep", None, one)])
    remotes.push_refs(store.path, link, [Move(HEAD, None, one)])
    assert at(hub) == {HEAD: one}
    assert remotes.tracked_refs(store.path, "origin") == {}


# What a remote says no to, and what goes wrong on the way


def test_a_remote_that_deletes_nothing(store: Store, link: Connection, hub: Path) -> None:
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one)])
    run_git(hub, "config", "receive.denyDeletes", "true")
    with pytest.raises(RefusedError, match="deletion prohibited") as refused:
        remotes.push_refs(store.path, link, [Move(HEAD, one, None), Move(SIDE, None, two)])
    assert (refused.value.exit_code, "Nothing was changed" in refused.value.hint) == (3, True)
    assert at(hub) == remotes.tracked_refs(store.path, "origin") == {HEAD: one}


def test_a_hook_there_says_no(store: Store, link: Connection, hub: Path) -> None:
    hook(hub, "echo 'not on a Sunday'; printf '\\033[31mred\\033]0;title\\007\\n'; exit 1")
    with pytest.raises(RefusedError, match=r"hook declined \(not on a Sunday; red\)$"):
        remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])
    assert at(hub) == remotes.tracked_refs(store.path, "origin") == {}


@pytest.mark.parametrize("script", ["kill -9 $PPID", "kill -TERM $PPID; sleep 1"])
def test_a_remote_that_dies_in_the_middle(store: Store, link: Connection, hub: Path, script: str) -> None:
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one)])
    hook(hub, script)
    here, there = refs.read_all(store.path), at(hub)
    with pytest.raises(StoreError, match="cannot reach origin: ") as died:
        remotes.push_refs(store.path, link, [Move(HEAD, one, two)])
    assert (died.value.exit_code, died.value.hint) == (
        7,
        "Try again: nothing was changed here, and what arrived is not sent twice.",
    )
    assert (refs.read_all(store.path), at(hub)) == (here, there)
    (hub / "hooks" / "pre-receive").unlink()
    remotes.push_refs(store.path, link, [Move(HEAD, one, two)])
    assert at(hub) == {HEAD: two}


def test_a_remote_that_cannot_be_written(store: Store, link: Connection, hub: Path) -> None:
    shutil.rmtree(hub / "objects")
    (hub / "objects").write_text("no folder")
    with pytest.raises(StoreError, match="cannot reach"):
        remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])
    assert remotes.tracked_refs(store.path, "origin") == {}


@pytest.mark.parametrize("url", ["/nowhere/at/all", "file:///nowhere/at/all"])
def test_no_repository(store: Store, url: str) -> None:
    with pytest.raises(StoreError, match=r"does not (appear to be a git repository|exist)") as failed:
        remotes.remote_refs(store.path, linked(store.path, url))
    assert failed.value.hint == f"Is {url} a git repository? `git init --bare` creates one."


def test_nobody_answers(store: Store) -> None:
    with pytest.raises(StoreError, match="Connection refused"):
        remotes.remote_refs(store.path, linked(store.path, "git://127.0.0.1:1/hub"))


def test_broken_objects_do_not_come_in(store: Store, link: Connection, hub: Path) -> None:
    tree = store.repo.edit_tree(None, {})
    raw = f"tree {tree}\nauthor a <a@b> 1 +0000\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n"
    (hub / "raw").write_text(raw)
    run_git(hub, "hash-object", "-w", "-t", "tree", os.devnull)
    oid = run_git(hub, "hash-object", "-w", "--literally", "-t", "commit", str(hub / "raw")).strip()
    run_git(hub, "update-ref", HEAD, oid)
    with pytest.raises(StoreError, match="multipleAuthors"):
        remotes.fetch_refs(store.path, link, [HEAD])
    assert remotes.tracked_refs(store.path, "origin") == {}


# Ways to get there


def both_ways(store: Store, link: Connection, hub: Path) -> None:
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one), Move(STONE, None, one)])
    assert at(hub) == remotes.remote_refs(store.path, link) == {HEAD: one, STONE: one}
    move_refs(store.path, [Move(layout.tracking_ref("origin", HEAD), one, None)])
    remotes.fetch_refs(store.path, link, [HEAD])
    assert remotes.tracked_refs(store.path, "origin") == {HEAD: one, STONE: one}
    remotes.push_refs(store.path, link, [Move(HEAD, one, two), Move(STONE, one, None)])
    assert at(hub) == {HEAD: two}
    with pytest.raises(MovedError):
        remotes.push_refs(store.path, link, [Move(HEAD, one, None)])
    run_git(hub, "config", "receive.denyDeletes", "true")
    with pytest.raises(RefusedError):
        remotes.push_refs(store.path, link, [Move(HEAD, two, None)])


def test_by_gits_daemon(store: Store, hub: Path, tmp_path: Path) -> None:
    with daemon(tmp_path) as url:
        both_ways(store, linked(store.path, f"{url}/hub"), hub)


def test_a_daemon_that_only_reads(store: Store, hub: Path, tmp_path: Path) -> None:
    with daemon(tmp_path, writable=False) as url:
        link = linked(store.path, f"{url}/hub")
        assert remotes.remote_refs(store.path, link) == {}
        with pytest.raises(StoreError, match="service not enabled"):
            remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])
        with pytest.raises(StoreError, match="no such repository"):
            remotes.remote_refs(store.path, linked(store.path, f"{url}/other", "other"))


def test_by_ssh(store: Store, hub: Path, tmp_path: Path) -> None:
    both_ways(store, linked(store.path, f"ada@desk:{hub}", GIT_SSH_COMMAND=ssh(tmp_path)), hub)
    assert all("ada@desk git-" in line for line in (tmp_path / "asked").read_text().splitlines())


def test_ssh_that_is_not_let_in(store: Store, tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\necho 'ada@desk: Permission denied (publickey).' >&2\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    link = linked(store.path, "ada@desk:hub", GIT_SSH=str(tmp_path / "ssh"), GIT_SSH_VARIANT="ssh")
    with pytest.raises(StoreError, match=r"ada@desk: Permission denied \(publickey\)") as failed:
        remotes.remote_refs(store.path, link)
    assert failed.value.hint == "Check that git has access: `git ls-remote ada@desk:hub`"


def test_by_http_with_a_password(store: Store, hub: Path, tmp_path: Path) -> None:
    run_git(hub, "config", "http.receivepack", "true")
    heard = list[str]()
    with http(tmp_path) as host:
        link = linked(store.path, f"http://{USER}:{PASSWORD}@{host}/hub")
        both_ways(store, dataclasses.replace(link, say=heard.append), hub)
        assert heard
        assert not any(word in piece for piece in heard for word in (PASSWORD, "s3cret"))
        for url in (f"http://{USER}:wr0ng-one@{host}/hub", f"http://wr0ng-one@{host}/hub"):
            remotes.remove_remote(store.path, "origin")
            wrong = linked(store.path, url, GIT_TERMINAL_PROMPT="0", GIT_ASKPASS="/bin/false")
            with pytest.raises(StoreError) as failed:
                remotes.remote_refs(store.path, wrong)
            assert "wr0ng-one" not in f"{failed.value} {failed.value.hint} {wrong!r} {remotes.list_remotes(store.path)}"
            assert "`git ls-remote" in failed.value.hint


# What of the user's own git counts, and what does not


def configured(home: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (home / "gitconfig").write_text(text)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))


def test_the_users_git_says_where_a_url_leads(
    store: Store, hub: Path, seal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(seal, monkeypatch, f'[url "{hub.parent}/"]\n\tinsteadOf = "hub:"\n')
    both_ways(store, linked(store.path, "hub:hub"), hub)


def test_the_users_git_says_something_of_the_store_alone(
    store: Store, hub: Path, seal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = seal / 'a "b" \\ c'
    more.write_text(f'[url "{hub.parent}/"]\n\tinsteadOf = "hub \\"x\\" \\\\ y:"\n[core]\n\tquotePath\n')
    path = str(more).replace("\\", "\\\\").replace('"', '\\"')
    configured(seal, monkeypatch, f'[includeIf "gitdir:{store.path}"]\n\tpath = "{path}"\n')
    both_ways(store, linked(store.path, 'hub "x" \\ y:hub'), hub)


def test_the_users_git_runs_nothing_and_adds_nothing(
    store: Store, hub: Path, seal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = seal / "hooks"
    hooks.mkdir()
    for name in ("pre-push", "reference-transaction", "post-update"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {shlex.quote(str(seal))}/ran-{name}\nexit 1\n")
        (hooks / name).chmod(0o755)
    configured(
        seal,
        monkeypatch,
        f"[core]\n\thooksPath = {hooks}\n[push]\n\tfollowTags = true\n\tgpgSign = true\n"
        "\tuseForceIfIncludes = true\n[fetch]\n\tprune = true\n"
        f'[gc]\n\tauto = 1\n[url "ext::sh -c touch% {seal}/ext% "]\n\tinsteadOf = evil:\n',
    )
    one, two = commits(store, 2)
    remotes.add_remote(store.path, "origin", str(hub))
    run_git(hub, "config", "core.hooksPath", str(hub / "hooks"))
    move_refs(store.path, [Move("refs/tags/mine", None, one)])
    link = Connection(remotes.find_remote(store.path, ""), os.environ, lambda piece: None)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one), Move(SIDE, None, two)])
    assert at(hub) == {HEAD: one, SIDE: two}
    run_git(hub, "update-ref", "-d", SIDE)
    remotes.fetch_refs(store.path, link, [HEAD])
    assert remotes.tracked_refs(store.path, "origin") == {HEAD: one, SIDE: two}
    remotes.push_refs(store.path, link, [Move(HEAD, one, two)])
    remotes.push_refs(store.path, link, [Move(HEAD, two, one)])
    with pytest.raises(StoreError, match="ext"):
        remotes.remote_refs(store.path, linked(store.path, "evil:x", "evil"))
    assert [path.name for path in seal.iterdir() if path.name.startswith(("ran-", "ext"))] == []


REACHED_BY_NAME = {
    "mirror": "mirror = true",
    "push": "push = +refs/*:refs/*",
    "pushurl": "pushurl = /nowhere",
    "fetch": "fetch = +refs/heads/*:refs/mine/*",
    "prune": "prune = true\n\tpruneTags = true",
    "tagOpt": "tagOpt = --tags",
}


@pytest.mark.parametrize("scope", ["global", "command", "store"])
@pytest.mark.parametrize("setting", REACHED_BY_NAME)
def test_what_the_users_git_says_of_any_remote_of_that_name_sends_and_deletes_no_more(
    store: Store, link: Connection, hub: Path, seal: Path, setting: str, scope: str
) -> None:
    one, two, three = commits(store, 3)
    others = {f"refs/heads/{OTHER}": one, "refs/heads/main": one, TAG: one}
    for ref, oid in others.items():
        run_git(store.path, "push", "-q", str(hub), f"{oid}:{ref}")
    remotes.push_refs(store.path, link, [Move(HEAD, None, one), Move(SIDE, None, one)])
    move_refs(store.path, [Move("refs/tags/mine", None, one)])
    more = seal / "more"
    more.write_text(f'[remote "origin"]\n\t{REACHED_BY_NAME[setting]}\n')
    said = {
        "global": {"GIT_CONFIG_GLOBAL": str(more)},
        "command": {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "include.path", "GIT_CONFIG_VALUE_0": str(more)},
        "store": {},
    }
    if scope == "store":
        run_git(store.path, "config", "include.path", str(more))
    link = dataclasses.replace(link, env={**os.environ, **said[scope]})
    remotes.push_refs(store.path, link, [Move(HEAD, one, two)])
    assert at(hub) == {**others, HEAD: two, SIDE: one}
    remotes.push_refs(store.path, link, [Move(HEAD, two, three), Move(SIDE, one, None)])
    assert at(hub) == {**others, HEAD: three}
    run_git(store.path, "push", "-q", str(hub), f"+{two}:{HEAD}")
    remotes.fetch_refs(store.path, link, [HEAD])
    assert remotes.tracked_refs(store.path, "origin") == {HEAD: two}
    assert refs.read_all(store.path) == {layout.tracking_ref("origin", HEAD): two, "refs/tags/mine": one}


def test_how_the_users_git_reaches_a_remote_of_that_name_counts(
    store: Store, link: Connection, hub: Path, seal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(seal, monkeypatch, '[remote "origin"]\n\treceivepack = "echo \\"not today\\" >&2; false"\n')
    link = dataclasses.replace(link, env=os.environ)
    with pytest.raises(StoreError, match="not today"):
        remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])
    assert at(hub) == {}


def test_a_second_url_of_that_name_leads_nowhere(
    store: Store, link: Connection, hub: Path, seal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = bare(tmp_path / "elsewhere")
    configured(seal, monkeypatch, f'[remote "origin"]\n\turl = {elsewhere}\n')
    link = dataclasses.replace(link, env=os.environ)
    with pytest.raises(ConflictError, match="more than one URL for the remote origin"):
        remotes.push_refs(store.path, link, [Move(HEAD, None, commits(store, 1)[0])])
    with pytest.raises(ConflictError, match="more than one URL for the remote origin"):
        remotes.remote_refs(store.path, link)
    assert at(hub) == at(elsewhere) == {}


# Several at once in one store


@pytest.mark.parametrize("few", [5, 300])
def test_several_fetch_what_the_others_fetch(
    store: Store, link: Connection, hub: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(remotes, "_FEW_REFS", few)
    names = [f"refs/heads/{number:08x}-0000-4000-8000-000000000000" for number in range(40)]
    for oid in commits(store, 4):
        was = at(hub)
        run_git(store.path, "push", "-q", "--force", str(hub), *(f"{oid}:{name}" for name in names))
        assert at(hub) != was
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(remotes.fetch_refs, store.path, link, names) for _ in range(4)]:
                done.result()
        assert remotes.tracked_refs(store.path, "origin") == dict.fromkeys(names, oid)
    run_git(hub, "update-ref", "-d", names[0])
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(remotes.fetch_refs, store.path, link, names[:2]) for _ in range(4)]:
            done.result()
    assert sorted(remotes.tracked_refs(store.path, "origin")) == names[1:]


def test_a_fetch_beside_a_push(store: Store, link: Connection, hub: Path) -> None:
    names = [f"refs/heads/{number:08x}-0000-4000-8000-000000000000" for number in range(20)]
    chain = commits(store, 6)
    remotes.push_refs(store.path, link, [Move(name, None, chain[0]) for name in names])
    with ThreadPoolExecutor(3) as pool:
        for old, new in itertools.pairwise(chain):
            moves = [Move(name, old, new) for name in names]
            jobs = [pool.submit(remotes.push_refs, store.path, link, moves)]
            jobs += [pool.submit(remotes.fetch_refs, store.path, link, names) for _ in range(2)]
            for job in jobs:
                job.result()
    assert at(hub) == dict.fromkeys(names, chain[-1])
    remotes.fetch_refs(store.path, link, names)
    assert remotes.tracked_refs(store.path, "origin") == dict.fromkeys(names, chain[-1])


def test_a_tracking_ref_that_stays_locked(
    store: Store, link: Connection, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refs, "_STALE_SECONDS_ALONE", 3600.0)  # a busy machine can take longer than two seconds to try
    one, two = commits(store, 2)
    remotes.push_refs(store.path, link, [Move(HEAD, None, one), Move(SIDE, None, one)])
    run_git(store.path, "push", "-q", str(hub), f"{two}:{HEAD}", f"{two}:{SIDE}")
    lock = store.path / f"{layout.tracking_ref('origin', HEAD)}.lock"
    lock.touch()
    with pytest.raises(StoreError, match="cannot record what came from origin: cannot lock ref"):
        remotes.fetch_refs(store.path, link, [HEAD, SIDE])
    assert remotes.tracked_refs(store.path, "origin") == {HEAD: one, SIDE: two}
    os.utime(lock, (0, 0))
    remotes.fetch_refs(store.path, link, [HEAD, SIDE])
    assert remotes.tracked_refs(store.path, "origin") == {HEAD: two, SIDE: two}


# Passwords in URLs


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ada:pass@host/hub", "https://ada:***@host/hub"),
        ("https://t0ken@host/hub", "https://***@host/hub"),
        ("https://t0ken:x-oauth-basic@host/hub", "https://***@host/hub"),
        ("ssh://ada@host/hub", "ssh://ada@host/hub"),
        ("ssh://ada:pass@host/hub", "ssh://ada:***@host/hub"),
        ("ada@host:hub", "ada@host:hub"),
        ("/srv/hub", "/srv/hub"),
    ],
)
def test_what_of_a_url_is_shown(url: str, shown: str) -> None:
    assert Remote("origin", url).shown == shown
    assert url == shown or url not in repr(Remote("origin", url))


LOGIN = st.text(
    st.characters(codec="ascii", exclude_characters="/@: \\", min_codepoint=33, max_codepoint=126), min_size=6
)


@given(user=LOGIN, password=LOGIN, scheme=st.sampled_from(["https", "http", "ssh", "HTTPS"]))
def test_no_password_is_ever_shown(user: str, password: str, scheme: str) -> None:
    url = f"{scheme}://{user}:{password}@host/hub"
    assert f":{password}@" not in git.shown_url(f"fatal: unable to access '{url}/': no")
    assert password in git.url_secrets(url)
