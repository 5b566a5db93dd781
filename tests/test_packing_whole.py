"""All that a store holds in one pack, made by what is like what."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git

from sessgit.errors import StoreError
from sessgit.model.progress import no_progress
from sessgit.store import locks, maintenance, refs
from sessgit.store import store as stores
from sessgit.store.backend import PackedRepository, Repository
from sessgit.store.layout import StorePaths
from sessgit.store.pack_file import Pack
from sessgit.store.store import Store

SESSIONS = 12
"""More than the ten objects with which git compares one."""
TURNS = 30


def _grow(repo: Repository, session: str, turns: int, base: str | None = None) -> str:
    """A branch of so many turns, each with a file of its own; its last commit."""
    tree, tip = (repo.commit(base).tree, [base]) if base else (None, [])
    for number in range(turns):
        blob = repo.write_blob(f"{session} {number}\n".encode())
        tree = repo.edit_tree(tree, {f"turns/0000/{number:06d}/cells.jsonl": (blob, False)})
        tip = [repo.write_commit(tree, tip, f"turn {number}", 1_700_000_000 + number)]
    repo.move(f"refs/heads/{session}", None, tip[0])
    return tip[0]


def _held(store: Path) -> set[str]:
    return set(run_git(store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())


def _deltas(store: Path) -> Counter[str]:
    """How many objects of each kind are stored as what sets them apart from others."""
    index = next((store / "objects" / "pack").glob("*.idx"))
    rows = [line.split() for line in run_git(store, "verify-pack", "-v", str(index)).splitlines()]
    return Counter(row[1] for row in rows if len(row) == 7)


def test_a_folder_meets_the_one_that_it_grew_from_however_many_sessions_there_are(store: Store, tmp_path: Path) -> None:
    pack = Pack(tmp_path / "one.pack")
    stores.create_store(tmp_path / "packing")
    packing = PackedRepository(tmp_path / "packing", pack)
    for session in range(SESSIONS):
        _grow(packing, f"s{session}", TURNS)
    name = pack.finish()
    for end in (".pack", ".idx"):
        (tmp_path / f"one{end}").rename(store.path / "objects" / "pack" / f"pack-{name}{end}")
    for ref, tip in refs.read_all(packing.path).items():
        store.repo.move(ref, None, tip)
    run_git(store.path, "repack", "-a", "-d", "-f", "-F", "-q")
    assert _deltas(store.path)["tree"] == 0
    assert maintenance.pack_store(store.path, full=True)
    # Where a folder has but few turns, the difference is no smaller than half of it, which git does not take.
    assert _deltas(store.path)["tree"] > SESSIONS * TURNS * 0.8
    assert run_git(store.path, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("with_likeness", [True, False])
def test_after_an_import_a_text_is_compared_with_one_of_common_lines(
    store: Store, tmp_path: Path, with_likeness: bool
) -> None:
    """All have the same name, and so many others of the same size lie between a text and its longer version."""
    chance = random.Random(1)
    lines = [[f"{chance.random():.18f}" for _ in range(440)] for _ in range(SESSIONS)]
    texts = [("\n".join(text[:count]), f"{number}{count}") for number, text in enumerate(lines) for count in (400, 440)]
    pack = Pack(tmp_path / "one.pack")
    stores.create_store(tmp_path / "packing")
    packing = PackedRepository(tmp_path / "packing", pack)
    blobs = {f"turns/0000/000001/texts/{name}-Bash-content": packing.write_blob(text.encode()) for text, name in texts}
    tree = packing.edit_tree(None, {path: (blob, False) for path, blob in blobs.items()})
    tip = packing.write_commit(tree, [], "turn 1", 1_700_000_000)
    name = f"pack-{pack.finish()}"
    for end in (".pack", ".idx"):
        (tmp_path / f"one{end}").rename(store.path / "objects" / "pack" / f"{name}{end}")
    store.repo.move("refs/heads/one", None, tip)
    likeness = pack.likeness if with_likeness else {}
    with locks.maintenance_lock(store.paths) as lock:
        maintenance.pack_arrived(store.path, [name], lock, no_progress, likeness)
    assert maintenance.noted_packs(store.path) != {name}
    deltas = _deltas(store.path)["blob"]
    assert deltas >= 0.7 * SESSIONS if with_likeness else deltas <= 1
    assert run_git(store.path, "fsck", "--strict", "--no-dangling") == ""


def test_all_is_packed_once_whether_a_ref_leads_to_it_or_not(store: Store) -> None:
    tip = _grow(store.repo, "one", 3)
    _grow(store.repo, "fork", 2, tip)
    run_git(
        store.path, "-c", "user.name=ada", "-c", "user.email=ada@localhost", "tag", "-a", "-m", "said", "named", tip
    )
    run_git(store.path, "repack", "-a", "-d", "-q")
    alone = store.repo.write_blob(b"no ref leads here")
    store.repo.release()
    before = _held(store.path)
    assert alone in before
    for _ in range(2):  # the second time it makes the same pack
        assert maintenance.pack_store(store.path, full=True)
        assert _held(store.path) == before
        packs = list((store.path / "objects" / "pack").iterdir())
        assert sorted(path.suffix for path in packs) == [".idx", ".pack"]
        assert "count: 0\n" in run_git(store.path, "count-objects", "-v")
        assert not StorePaths(store.path).packing.exists()
    assert run_git(store.path, "fsck", "--strict", "--no-dangling") == ""


def test_a_store_without_objects_is_packed(store: Store) -> None:
    assert maintenance.pack_store(store.path, full=True)
    assert not _held(store.path)


def test_what_a_fetch_keeps_stays(store: Store) -> None:
    _grow(store.repo, "one", 2)
    run_git(store.path, "repack", "-a", "-d", "-q")
    kept = next((store.path / "objects" / "pack").glob("*.pack"))
    kept.with_suffix(".keep").touch()
    _grow(store.repo, "two", 2)
    assert maintenance.pack_store(store.path, full=True)
    assert kept.exists()
    assert run_git(store.path, "fsck", "--strict", "--no-dangling") == ""


def test_packs_that_a_killed_packing_had_replaced_go_with_the_next(store: Store) -> None:
    """It names them before it takes the first one away; a name that was cut off names nothing."""
    _grow(store.repo, "one", 2)
    run_git(store.path, "repack", "-a", "-d", "-q")
    old = next((store.path / "objects" / "pack").glob("*.pack"))
    _grow(store.repo, "two", 2)
    assert maintenance.pack_store(store.path, full=True)
    old.write_bytes(b"what is left of it")
    other = old.with_name(f"pack-{'0' * 40}.pack")
    other.write_bytes(b"another one")
    StorePaths(store.path).packing.write_text(f"{old.stem}\n../../HEAD\n{other.stem}")
    assert maintenance.delete_leftovers(store.path, 2e9) == 1
    assert (old.exists(), other.exists()) == (False, True)
    assert (store.path / "HEAD").exists()


def test_a_pack_that_has_not_got_its_last_name_is_a_pack_all_the_same(store: Store) -> None:
    """`git repack` renames twice, and git reads what has the first of the two names: once loose objects are deleted
    since it holds them, it may not go as something unfinished."""
    _grow(store.repo, "one", 2)
    before = _held(store.path)
    folder = store.path / "objects" / "pack"
    run_git(store.path, "repack", "-q")
    for path in list(folder.glob("pack-*")):
        path.rename(path.with_name(f".tmp-17-{path.name}"))
    run_git(store.path, "prune-packed", "-q")
    assert maintenance.delete_leftovers(store.path, 2e9) == 0
    assert _held(store.path) == before
    assert maintenance.pack_store(store.path, full=True)
    assert _held(store.path) == before
    assert not list(folder.glob(".tmp-*"))


@pytest.mark.parametrize("damage", ["cut", "index"])
def test_a_pack_that_cannot_be_read_stays(store: Store, damage: str) -> None:
    _grow(store.repo, "one", 2)
    run_git(store.path, "repack", "-a", "-d", "-q")
    packs = store.path / "objects" / "pack"
    alone = next(packs.glob("*.pack" if damage == "cut" else "*.idx"))
    alone.chmod(0o600)
    alone.write_bytes(alone.read_bytes()[:-30])
    run_git(store.path, "update-ref", "-d", "refs/heads/one")
    with suppress(StoreError):
        maintenance.pack_store(store.path, full=True)
    assert {".pack", ".idx"} <= {path.suffix for path in packs.glob(f"{alone.stem}.*")}


ids = st.text("0123456789abcdef", min_size=40, max_size=40).map(str.encode)
paths = st.lists(st.sampled_from([b"turns", b"0000", b"000001", b"texts", b"a b", b"\xff"]), max_size=6).map(b"/".join)
commits = st.tuples(st.sampled_from([b"<", b">"]), ids, st.lists(ids, max_size=2))


@given(st.lists(st.tuples(commits, st.lists(st.tuples(ids, paths)))))
def test_each_object_is_named_once_in_its_place(
    listed: list[tuple[tuple[bytes, bytes, list[bytes]], list[tuple[bytes, bytes]]]],
) -> None:
    lines = []
    for (arrow, commit, parents), held in listed:
        lines.append(arrow + b" ".join([commit, *parents]) + b"\n")
        lines += [b" ".join(entry) + b"\n" for entry in held]
    named = list(maintenance.pack_objects_lines(lines))
    wanted = [oid for (_, commit, _), held in listed for oid in (commit, *(oid for oid, _ in held))]
    assert [line.rstrip(b"\n").partition(b" ")[0] for line in named] == wanted
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in named)


def test_a_line_of_history_has_one_number_and_texts_have_none() -> None:
    a, b, c, tree = (digit * 40 for digit in (b"a", b"b", b"c", b"d"))
    deep = tree + b" turns/0000/000001/texts/x.py\n"
    listed = [b">" + c + b" " + a + b"\n", tree + b" \n", b">" + b + b" " + a + b"\n", tree + b" turns/0000\n", deep,
              b">" + a + b"\n", tree + b" session.json\n"]  # fmt: skip
    assert list(maintenance.pack_objects_lines(listed)) == [
        c + b"\n", tree + b" .1\n", b + b"\n", tree + b" 0000.2\n", deep, a + b"\n", tree + b" session.json.1\n",
    ]  # fmt: skip
    assert list(maintenance.pack_objects_lines([deep], {tree.decode(): 17})) == [tree + b" 00000011\n"]


def test_git_lists_commits_before_what_they_brought(store: Store) -> None:
    tip = _grow(store.repo, "one", 2)
    out = subprocess.run(
        ["git", "--git-dir", store.path, *maintenance.REV_LIST], capture_output=True, check=True
    ).stdout
    first = out.splitlines()[0]
    assert first[:1] in b"<>"
    assert first[1:41].decode() == tip
