"""Packs and trees that are written without git, as git has them."""

from __future__ import annotations

import base64
import os
import random
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import run_git
from transcripts import SESSION, Talk

from sessgit.errors import StoreError
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import maintenance
from sessgit.store import store as stores
from sessgit.store.backend import AUTHOR, PackedRepository, Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.objects import Commit
from sessgit.store.pack_file import BLOB, Pack
from sessgit.store.store import Store

SIZES = (0, 1, 15, 16, 1023, 1024, 1025, 2047, 2048, 65_535, 65_536, 300_000)


def test_a_pack_is_what_git_makes_of_it(tmp_path: Path, store: Store) -> None:
    pack = Pack(tmp_path / "one.pack")
    held = {pack.add(BLOB, data): data for data in (bytes(range(251)) * (size // 251 + 1) for size in SIZES)}
    held |= {pack.add(BLOB, data): data for data in (b"x" * size for size in SIZES)}
    assert pack.add(BLOB, b"") in held
    assert {oid: pack.read(oid) for oid in held} == {oid: (BLOB, data) for oid, data in held.items()}
    assert len(pack) == len(held)
    name = pack.finish()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("one.*")} == {0o400}
    (tmp_path / "one.pack").rename(store.path / "objects" / "pack" / f"pack-{name}.pack")
    place = store.path / "objects" / "pack" / f"pack-{name}.pack"
    ours = (tmp_path / "one.idx").read_bytes()
    subprocess.run(["git", "index-pack", "-o", str(tmp_path / "git.idx"), str(place)], check=True, capture_output=True)
    assert ours == (tmp_path / "git.idx").read_bytes()
    (tmp_path / "one.idx").rename(place.with_suffix(".idx"))
    fresh = Store(store.path)
    assert {oid: fresh.repo.blob(oid) for oid in held} == held


def test_a_place_that_is_taken(tmp_path: Path) -> None:
    (tmp_path / "one.pack").touch()
    with pytest.raises(StoreError, match=r"one\.pack: File exists"):
        Pack(tmp_path / "one.pack")


_NAMES = st.sampled_from(["a", "a.b", "a-", "a0", "A", "é", "ab", "texts", "000001"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(_PATHS, st.binary(max_size=3) | st.none(), max_size=6), max_size=4))
def test_a_repository_that_writes_a_pack_holds_the_same(edits: list[dict[str, bytes | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain = _repository(Path(folder) / "plain")
        packing = _repository(Path(folder) / "packing", Pack(Path(folder) / "one.pack"))
        told = []
        for repo in (plain, packing):
            tree, tip, seen = None, list[str](), list[object]()
            for edit in edits:
                # A file and a folder of one name are two changes that contradict each other.
                paths = {p: d for p, d in edit.items() if not any(other.startswith(f"{p}/") for other in edit)}
                tree = repo.edit_tree(
                    tree, {p: (repo.write_blob(d), False) if d is not None else None for p, d in paths.items()}
                )
                tip = [repo.write_commit(tree, tip, "turn 1: naïve\n\nEvent: turn\n", 1_700_000_000)]
                seen += [tree, *tip, sorted(repo.files(tree).items()), repo.commit(tip[0])]
                seen += [repo.entry(tree, path) for path in paths]
            told.append(seen)
        assert told[0] == told[1]
        if tree is not None:
            assert (tree, tip[0]) == _made_by_git(plain.path, tree, plain.commit(tip[0]))


def _made_by_git(store: Path, tree: str, commit: Commit) -> tuple[str, str]:
    """Return the ids of a tree with the same files, and of a commit of it, as git itself makes them."""
    env = os.environ | {"GIT_DIR": str(store), "GIT_INDEX_FILE": str(store / "index-of-test")}
    for who in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{who}_NAME": AUTHOR[0], f"GIT_{who}_EMAIL": AUTHOR[1], f"GIT_{who}_DATE": f"{commit.time} +0000"}

    def git(*arguments: str, text: str = "") -> str:
        return subprocess.run(
            ["git", *arguments], env=env, input=text, check=True, capture_output=True, text=True
        ).stdout

    git("update-index", "-z", "--index-info", text=git("ls-tree", "-r", "-z", tree))
    parents = [word for parent in commit.parents for word in ("-p", parent)]
    made = git("write-tree").strip()
    return made, git("commit-tree", made, *parents, text=commit.message).strip()


@pytest.mark.parametrize("name", [".", "..", ".git", ".git/file", ".GIT", "a\0b", "\udc80"])
def test_names_that_git_refuses(tmp_path: Path, name: str) -> None:
    repo = _repository(tmp_path / "store", Pack(tmp_path / "one.pack"))
    with pytest.raises(StoreError, match="cannot write to the store"):
        repo.edit_tree(None, {f"in/{name}": (repo.write_blob(b""), False)})


def test_what_was_never_written_is_missing_from_the_pack(tmp_path: Path) -> None:
    repo = _repository(tmp_path / "store", Pack(tmp_path / "one.pack"))
    held = repo.write_blob(b"held")
    assert (repo.has(held), repo.has("0" * 40), repo.blob(held)) == (True, False, b"held")
    with pytest.raises(StoreError, match="lacks the object"):
        repo.blob("0" * 40)
    with pytest.raises(StoreError, match="lacks the object"):
        repo.tree("0" * 40)


def test_an_empty_pack_is_none(tmp_path: Path) -> None:
    pack = Pack(tmp_path / "one.pack")
    assert pack.finish() == ""
    assert not (tmp_path / "one.idx").exists()


@pytest.mark.parametrize("length", [4_000, 30_000])
def test_it_is_time_to_pack_before_the_store_outgrows_the_files(
    tmp_path: Path, store: Store, index: Index, length: int
) -> None:
    """Turn by turn, as a recorder does it: never more than half above what the agent wrote, but for a store of a few
    turns, and not at every turn."""
    transcript = tmp_path / "projects" / "p" / f"{SESSION}.jsonl"
    talk, packed = Talk(), 0
    for number in range(30):
        talk.prompt(f"turn {number}").tool("Read", {"file_path": f"/p/{number}"}, _text(number, length)).answer("So.")
        talk.save(transcript.parent)
        record(Context(index), TranscriptSource(transcript, SESSION, tmp_path))
        packed += maintenance.pack_store(store.path)
        size = sum(path.stat().st_blocks * 512 for path in (store.path / "objects").rglob("*") if path.is_file())
        assert size < 1.5 * max(len(talk.data), 160 << 10)
    assert 1 <= packed <= 8


def test_what_no_ref_leads_to_is_not_packed_again_and_again(store: Store) -> None:
    for number in range(400):
        store.repo.write_blob(b"%d" % number)
    assert maintenance.pack_store(store.path)
    assert not maintenance.pack_store(store.path)
    assert maintenance.count_loose(store.path).objects > 200


def test_many_packs_are_made_few(store: Store) -> None:
    for number in range(maintenance.MOST_PACKS):
        tree = store.repo.edit_tree(None, {"a": (store.repo.write_blob(b"%d" % number), False)})
        store.repo.move(f"refs/heads/{number}", None, store.repo.write_commit(tree, [], "x", 1))
        run_git(store.path, "repack", "-d", "-q")
    assert maintenance.count_packs(store.path) == maintenance.MOST_PACKS
    assert maintenance.pack_store(store.path)
    assert maintenance.count_packs(store.path) == 1
    run_git(store.path, "fsck", "--strict")


def _repository(path: Path, pack: Pack | None = None) -> Repository:
    stores.create_store(path)
    return PackedRepository(path, pack) if pack is not None else Repository(path)


def _text(seed: int, length: int) -> str:
    return base64.b64encode(random.Random(seed).randbytes(length)).decode()
