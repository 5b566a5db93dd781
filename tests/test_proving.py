"""What lies loose in a store is read without the library: the same bytes, or none."""

from __future__ import annotations

import hashlib
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import Git

from sessgit.errors import UnreadableError
from sessgit.store.objects import read_loose_file
from sessgit.store.store import Store

OID = "0123456789abcdef0123456789abcdef01234567"


def loose(objects: Path, data: bytes, oid: str = OID) -> Path:
    path = objects / oid[:2] / oid[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return path


@given(st.binary(max_size=10_000), st.integers(0, 9))
def test_it_reads_what_git_writes(tmp_path_factory: pytest.TempPathFactory, data: bytes, level: int) -> None:
    objects, whole = tmp_path_factory.getbasetemp() / "objects", b"blob %d\0" % len(data) + data
    oid = hashlib.sha1(whole).hexdigest()
    loose(objects, zlib.compress(whole, level), oid)
    assert read_loose_file(str(objects), oid) == data


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
def test_what_is_damaged_is_told(tmp_path: Path, held: bytes) -> None:
    names = {OID, hashlib.sha1(b"blob 3\0abc").hexdigest()}
    with suppress(zlib.error):
        names.add(hashlib.sha1(zlib.decompress(held)).hexdigest())
    for oid in names:
        loose(tmp_path, held, oid)
        with pytest.raises(ValueError, match=r"."):
            read_loose_file(str(tmp_path), oid)


def test_what_is_not_there_may_be_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        read_loose_file(str(tmp_path), OID)
    (tmp_path / OID[:2]).write_bytes(b"no folder")
    with pytest.raises(KeyError):
        read_loose_file(str(tmp_path), OID)


def test_only_what_has_its_name_is_believed(store: Store, git: Git) -> None:
    one, other = store.repo.write_blob(b"one"), store.repo.write_blob(b"other")
    assert (store.repo.blob(one), store.repo.blob(other)) == (b"one", b"other")
    objects = store.path / "objects"
    loose(objects, (objects / one[:2] / one[2:]).read_bytes(), other)
    with pytest.raises(UnreadableError):
        Store(store.path).repo.blob(other)
    git("repack", "-adq")
    assert store.repo.blob(one) == b"one"
