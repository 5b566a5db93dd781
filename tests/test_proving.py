"""What lies loose in a store is read as it was written, or not at all."""

from __future__ import annotations

import hashlib
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import Git

from sessgit.errors import StoreError, UnreadableError
from sessgit.store.store import Store, create_store

OID = "0123456789abcdef0123456789abcdef01234567"


def loose(objects: Path, data: bytes, oid: str = OID) -> Path:
    path = objects / oid[:2] / oid[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return path


@given(st.binary(max_size=10_000), st.integers(0, 9))
def test_it_reads_what_git_writes(tmp_path_factory: pytest.TempPathFactory, data: bytes, level: int) -> None:
    path, whole = tmp_path_factory.getbasetemp() / "store", b"blob %d\0" % len(data) + data
    create_store(path)
    oid = hashlib.sha1(whole).hexdigest()
    loose(path / "objects", zlib.compress(whole, level), oid)
    assert Store(path).repo.blob(oid) == data


@pytest.mark.parametrize(
    "held",
    [
        b"",
        b"\0" * 40,
        zlib.compress(b"blob 3\0abc")[:-6],
        zlib.compress(b"blob 4\0abc")[:-1],
        zlib.compress(b"blob 2\0abc"),
        zlib.compress(b"blob 999999999999\0abc"),
        zlib.compress(b"blob -300\0abc"),
        zlib.compress(b"blob many\0abc"),
        zlib.compress(b"tag 3\0abc"),
        zlib.compress(b"blob"),
        zlib.compress(b"b" * 100),
    ],
)
def test_what_is_damaged_is_told(store: Store, held: bytes) -> None:
    names = {OID, hashlib.sha1(b"blob 3\0abc").hexdigest()}
    with suppress(zlib.error):
        names.add(hashlib.sha1(zlib.decompress(held)).hexdigest())
    for oid in names:
        loose(store.path / "objects", held, oid)
        with pytest.raises(StoreError, match=r"."):
            Store(store.path).repo.blob(oid)


def test_what_is_not_there_is_told(store: Store) -> None:
    with pytest.raises(UnreadableError, match="the store lacks the object"):
        store.repo.blob(OID)
    (store.path / "objects" / OID[:2]).write_bytes(b"no folder")
    with pytest.raises(UnreadableError):
        store.repo.blob(OID)


def test_only_what_has_its_name_is_believed(store: Store, git: Git) -> None:
    one, other = store.repo.write_blob(b"one"), store.repo.write_blob(b"other")
    assert (store.repo.blob(one), store.repo.blob(other)) == (b"one", b"other")
    objects = store.path / "objects"
    loose(objects, (objects / one[:2] / one[2:]).read_bytes(), other)
    with pytest.raises(UnreadableError):
        Store(store.path).repo.blob(other)
    git("repack", "-adq")
    assert store.repo.blob(one) == b"one"


def test_a_truncated_object_is_damaged(store: Store) -> None:
    """libgit2 would never end at it."""
    blob = store.repo.write_blob(b"one")
    tree = store.repo.edit_tree(None, {"a": (blob, False)})
    for oid in (blob, tree, store.repo.write_commit(tree, [], "x", 1)):
        whole = (store.path / "objects" / oid[:2] / oid[2:]).read_bytes()
        loose(store.path / "objects", whole[:-6], oid)
        assert Store(store.path).repo.read_problem(oid) == "damaged"
