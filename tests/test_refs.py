"""All refs, read without a git library, as git itself sees them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import Git, run_git

from sessgit.errors import StoreError
from sessgit.store import refs
from sessgit.store import store as stores
from sessgit.store.store import Store

IDS = ["a41f", "a41f.r-9c02d7e1", "a41f.m-laptop", "a41f2", "a4", "b"]


@pytest.fixture
def commits(store: Store) -> list[str]:
    tree = store.repo.edit_tree(None, {})
    return [store.repo.write_commit(tree, [], str(number), number) for number in range(3)]


def as_git_says(git: Git) -> dict[str, str]:
    lines = git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def test_loose_and_packed(store: Store, git: Git, commits: list[str]) -> None:
    one, two, three = commits
    for name in IDS:
        git("update-ref", f"refs/heads/{name}", one)
    git("update-ref", "refs/archive/c", two)
    git("tag", "v1", two)
    git("pack-refs", "--all")
    git("update-ref", "refs/heads/a41f", three)
    git("update-ref", "-d", "refs/heads/b")
    git("update-ref", "refs/heads/new", two)
    found = refs.read_all(store.path)
    assert found == as_git_says(git)
    assert found["refs/heads/a41f"] == three
    assert refs.read_all(store.path, "refs/heads/a41f.") == {
        "refs/heads/a41f.r-9c02d7e1": one,
        "refs/heads/a41f.m-laptop": one,
    }
    assert refs.session_tips(store.path, "a41f") == {"a41f": three, "a41f.r-9c02d7e1": one, "a41f.m-laptop": one}
    assert refs.session_tips(store.path, "none") == {}
    assert refs.read(store.path, "refs/heads/a41f") == three
    assert refs.read(store.path, "refs/heads/a4") == one
    assert refs.read(store.path, "refs/heads/none") is None


def test_no_refs_and_no_store(store: Store, tmp_path: Path) -> None:
    assert refs.read_all(store.path) == {}
    assert refs.read_all(tmp_path / "none") == {}


def test_what_is_no_ref_is_passed_over(store: Store, commits: list[str], git: Git) -> None:
    heads = store.path / "refs" / "heads"
    git("update-ref", "refs/heads/a", commits[0])
    (heads / "a.lock").write_text(commits[1])
    (heads / "empty").write_text("")
    (heads / "nonsense").write_bytes(b"\xff\xfe")
    (heads / "link").write_text("ref: refs/heads/a\n")
    (heads / "dangling").symlink_to(heads / "none")
    found = refs.read_all(store.path)
    assert {name for name, oid in found.items() if oid not in commits} == set()
    assert "refs/heads/a" in found
    assert not {"refs/heads/empty", "refs/heads/nonsense", "refs/heads/link"} & found.keys()


def test_a_lock_file_is_no_ref(store: Store, commits: list[str]) -> None:
    lock = store.path / "refs" / "heads" / "a.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(commits[0] + "\n")
    assert refs.read_all(store.path) == {}


def test_a_file_in_the_place_of_the_folder(store: Store) -> None:
    heads = store.path / "refs" / "heads"
    heads.rmdir()
    heads.write_text("x")
    with pytest.raises(StoreError, match="cannot read the refs"):
        refs.read_all(store.path, "refs/heads/")


STEPS = st.tuples(st.sampled_from(["set", "del", "pack"]), st.sampled_from(IDS), st.integers(0, 2))


@given(st.lists(STEPS, max_size=12))
def test_as_git_sees_them(steps: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        stores.create_store(path)
        store = Store(path)
        tree = store.repo.edit_tree(None, {})
        made = [store.repo.write_commit(tree, [], str(number), number) for number in range(3)]
        for kind, name, number in steps:
            ref = f"refs/heads/{name}"
            old = store.repo.ref(ref)
            if kind == "pack":
                run_git(path, "pack-refs", "--all")
            elif kind == "set" and old != made[number]:
                store.repo.move(ref, old, made[number])
            elif kind == "del" and old is not None:
                store.repo.move(ref, old, None)
        assert refs.read_all(path) == as_git_says(lambda *arguments: run_git(path, *arguments))


NAMES = st.builds(
    "refs/heads/{}{}".format, st.sampled_from(IDS), st.sampled_from(["", "", "2", "\r", "\x85", " refs/heads/b"])
)
LINES = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "^", "# "]),
    st.sampled_from(["0" * 40, "f" * 40, "0" * 39]),
    st.sampled_from([" ", " ", "  ", "\t", "\n"]),
    NAMES,
)


@given(st.lists(LINES, max_size=6), st.sampled_from(["\n", ""]), st.sampled_from(IDS))
def test_those_of_one_session_are_found_as_all_are(lines: list[str], end: str, session: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, start = Path(folder), f"refs/heads/{session}"
        (store / "packed-refs").write_text("\n".join(lines) + end, encoding="utf-8")
        every = refs.read_all(store)
        assert refs.read_all(store, start) == {name: oid for name, oid in every.items() if name.startswith(start)}
        assert refs.read(store, start) == every.get(start)
