"""A store that outlasts a loss of power: objects are on the disk before they have names, and then a ref moves."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from plain import run_git

from sessgit.errors import StoreError
from sessgit.store import objects
from sessgit.store.backend import Repository
from sessgit.store.store import Store

REF = "refs/heads/5e551011-0000-4000-8000-000000000001"


class Synced:
    """The paths of what is synced, in order; the ref's own sync is libgit2's and not seen."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        self.failing = 0
        self._sync = os.fsync
        patch.setattr("os.fsync", self)

    def __call__(self, handle: int) -> None:
        self.paths.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        if self.failing:
            raise OSError(self.failing, os.strerror(self.failing))
        self._sync(handle)


@pytest.fixture
def repo(store: Store) -> Repository:
    return Repository(store.path, fsync=True)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Synced:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc tells which file is synced")
    return Synced(monkeypatch)


def commit(repo: Repository, *words: str) -> str:
    files = {word: (repo.write_blob(word.encode() * 100), False) for word in words}
    return repo.write_commit(repo.edit_tree(None, files), [], "m", 1)


def named(repo: Repository) -> set[str]:
    return {path.parent.name + path.name for path in (repo.path / "objects").glob("??/*")}


def aside(repo: Repository) -> list[Path]:
    return list((repo.path / "objects").glob("tmp_objdir-*"))


def test_an_object_has_no_name_before_it_is_on_the_disk(repo: Repository, synced: Synced) -> None:
    oid = commit(repo, "a", "b", "c")
    assert (named(repo), synced.paths) == (set(), [])
    assert repo.commit(oid).message == "m"
    repo.move(REF, None, oid)
    assert len(named(repo)) == 5
    assert repo.tree(repo.commit(oid).tree).keys() == {"a", "b", "c"}
    repo.release()
    assert aside(repo) == []
    assert run_git(repo.path, "fsck", "--strict", "--no-dangling") == ""


def test_each_is_synced_once_and_then_its_folder(repo: Repository, synced: Synced) -> None:
    repo.move(REF, None, commit(repo, "a", "b", "c"))
    kinds = ["aside" if "/tmp_objdir-" in path else "folder" for path in synced.paths]
    assert kinds == ["aside"] * 5 + ["folder"] * len({oid[:2] for oid in named(repo)})
    assert set(Counter(synced.paths).values()) == {1}
    before = len(synced.paths)
    repo.move(f"{REF}.r-a0000001", None, str(repo.ref(REF)))
    assert len(synced.paths) == before


def test_what_others_have_just_written_is_synced_too(repo: Repository, synced: Synced) -> None:
    """It may have been named by who is not done yet, or does not wait for the disk."""
    theirs = commit(Repository(repo.path), "a", "b")
    known = named(repo)
    assert (commit(repo, "a", "b"), synced.paths) == (theirs, [])
    repo.move(REF, None, theirs)
    files = {str(repo.path / "objects" / oid[:2] / oid[2:]) for oid in known}
    assert sorted(synced.paths) == sorted({*files, *(str(Path(path).parent) for path in files)})


def test_of_what_is_packed_the_name_of_the_pack_is(repo: Repository, synced: Synced) -> None:
    other = Repository(repo.path)
    other.move(REF, None, commit(other, "a", "b"))
    run_git(repo.path, "repack", "-adq")
    repo.refresh_packs()
    repo.move(f"{REF}.r-a0000001", None, commit(repo, "a", "b"))
    assert synced.paths == [str(repo.path / "objects" / "pack")]


def test_what_no_ref_will_lead_to_leaves_nothing(repo: Repository) -> None:
    oid = commit(repo, "a")
    repo.release()
    assert (aside(repo), named(repo), repo.has(oid)) == ([], set(), False)
    repo.move(REF, None, commit(repo, "a"))
    assert len(named(repo)) == 3


def test_a_disk_that_cannot_be_written_moves_no_ref(repo: Repository, synced: Synced) -> None:
    oid = commit(repo, "a", "b")
    synced.failing = errno.EIO
    with pytest.raises(StoreError, match="cannot write to the store"):
        repo.move(REF, None, oid)
    assert (repo.ref(REF), named(repo)) == (None, set())
    synced.failing = errno.EINVAL  # a file system that cannot sync folders
    repo.move(REF, None, oid)
    assert repo.ref(REF) == oid


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(repo: Repository) -> None:
    code = (
        "import os, sys; from pathlib import Path; from sessgit.store.backend import Repository; "
        "repo = Repository(Path(sys.argv[1]), fsync=True); repo.write_blob(b'x'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(repo.path)], check=True)
    left = aside(repo)
    repo.write_blob(b"y")
    (mine,) = aside(repo)
    assert len(left) == 1 and mine not in left
    assert (objects.delete_stale_folders(repo.path), aside(repo)) == (0, [mine])
    other = Repository(repo.path, fsync=True)
    assert other.write_blob(b"y") and mine in aside(repo)  # it is nobody else's before it is on the disk
    assert len(aside(repo)) == 2


def test_without_the_setting_nothing_is_synced(store: Store, synced: Synced) -> None:
    store.repo.move(REF, None, commit(store.repo, "a"))
    assert synced.paths == []
