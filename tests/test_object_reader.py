"""What is read without libgit2: the same objects as with it, or it is asked."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from plain import Git

from sessgit.errors import NotFoundError, UnreadableError
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.store import objects
from sessgit.store.objects import ObjectReader
from sessgit.store.store import Store


class AskedError(Exception):
    """libgit2 was asked."""


def reader(path: Path) -> ObjectReader:
    """Return one that cannot ask libgit2."""

    def repository() -> None:
        raise AskedError

    return ObjectReader(path, repository)  # type: ignore[arg-type]


@pytest.fixture
def tips(store: Store) -> list[str]:
    """Commits whose trees have more and more folders, and versions of a file that differ in a few places."""
    noise, made = random.Random(7), list[str]()
    text = noise.randbytes(90_000)
    for number in range(20):
        place = noise.randrange(len(text))
        text = text[:place] + noise.randbytes(noise.randrange(300)) + text[place + noise.randrange(300) :]
        files = {f"turns/{number}{n}/é": b"%d" % n for n in range(10)} | {"pad/a": text, "pad/none": b""}
        changes = {path: (store.repo.write_blob(data), False) for path, data in files.items()}
        base = made[-1] if made else None
        message = Message(f"ä {number}", (("Turn", str(number)),))
        made.append(store.write_commit(base, {**changes}, Session("a41f", "a41f"), message, made[-1:], number))
    store.repo.move("refs/heads/a41f", None, made[-1])
    return made


def check(store: Store, tips: list[str]) -> None:
    read, repo = reader(store.path), Store(store.path).repo
    for tip in tips:
        commit = repo.commit(tip)
        assert read.commit(tip) == commit
        for name, (oid, is_tree) in repo.tree(commit.tree).items():
            assert read.entry(commit.tree, name) == (oid, is_tree)
        files = repo.files(commit.tree)
        assert read.files(commit.tree) == files
        assert read.entry(commit.tree, "turns/07/é") == (files["turns/07/é"][0], False)
        assert read.entry(commit.tree, "turns/07/none") is read.entry(commit.tree, "pad/a/b") is None
        for path in ("pad/a", "pad/none", "session.json"):
            assert read.blob(files[path][0]) == repo.blob(files[path][0])
            assert read.lines(files[path][0]) == repo.lines(files[path][0])


def test_loose_objects(store: Store, tips: list[str]) -> None:
    check(store, tips)


@pytest.mark.parametrize("config", ["repack.useDeltaBaseOffset=true", "repack.useDeltaBaseOffset=false"])
def test_packed_objects(store: Store, tips: list[str], git: Git, config: str) -> None:
    git("-c", config, "-c", "pack.indexVersion=2", "repack", "-adfq", "--depth=50")
    listed = git("verify-pack", "-v", *map(str, (store.path / "objects/pack").glob("*.idx")))
    assert "chain length = 3:" in listed
    check(store, tips)


def test_offsets_of_a_large_pack(store: Store, tips: list[str], git: Git) -> None:
    """They are in a table of their own."""
    git("-c", "pack.indexVersion=2", "repack", "-adfq")
    (pack,) = (store.path / "objects/pack").glob("*.pack")
    index = pack.with_suffix(".idx")
    index.chmod(0o600)
    git("index-pack", "--index-version=2,0x100", "-o", str(index), str(pack))
    check(store, tips)


def test_what_it_cannot_read_libgit2_reads(store: Store, git: Git) -> None:
    large = store.repo.write_blob(b"line\n" * objects.LARGE_SIZE)
    read = ObjectReader(store.path, lambda: Store(store.path).repo)
    with pytest.raises(AskedError):
        reader(store.path).blob(large)
    assert len(read.lines(large, 3)) == objects.LARGE_SIZE + 1
    git("repack", "-adq")
    assert len(read.blob(store.repo.write_blob(b"new"))) == 3
    git("update-ref", "refs/tags/x", large)
    git("repack", "-adq")
    with pytest.raises(AskedError):
        reader(store.path).blob(large)


def test_what_is_damaged_or_of_another_kind(store: Store, tips: list[str], git: Git) -> None:
    read, tree = ObjectReader(store.path, lambda: store.repo), store.tree(tips[0])
    with pytest.raises(NotFoundError, match="is not a commit"):
        read.commit(tree)
    with pytest.raises(UnreadableError):
        read.blob("1" * 40)
    git("repack", "-adfq")
    (pack,) = (store.path / "objects/pack").glob("*.pack")
    data, kept = pack.read_bytes(), store.path.with_name("kept")
    shutil.copytree(store.path, kept)
    noise = random.Random(5)
    read_at_all = 0
    for _ in range(60):
        place = noise.randrange(12, len(data))
        damaged = data[:place] + bytes([data[place] ^ 1 << noise.randrange(8)]) + data[place + 1 :]
        pack.unlink()
        pack.write_bytes(damaged)
        alone = reader(store.path)
        for tip in tips[:: len(tips) // 4]:
            try:
                assert alone.commit(tip) == store.commit(tip)
                read_at_all += 1
                oid = alone.entry(store.tree(tip), "pad/a")
                assert oid is not None
                assert objects.object_id("blob", alone.blob(oid[0])) == oid[0]
            except AskedError:
                continue
    assert read_at_all > 100
