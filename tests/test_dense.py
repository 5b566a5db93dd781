"""What is archived, in a pack of its own: smaller, once, and as whole as before."""

from __future__ import annotations

import base64
import json
import random
import resource
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git

from sessgit.errors import StoreError
from sessgit.store import layout, maintenance
from sessgit.store.layout import Beside
from sessgit.store.packing import delta, dense, densepack, making
from sessgit.store.packing.densebases import BLOB, Bases
from sessgit.store.packing.densepack import Entry, Writer, compressed
from sessgit.store.packing.pack import ids, object_id
from sessgit.store.store import Store

PIECES = st.sampled_from(
    [b"", b"\0", b"ab", b"a" * 7, b"def parse(line):\n", random.Random(1).randbytes(70), b"the same again " * 9,
     random.Random(2).randbytes(5_000), random.Random(3).randbytes(70_000)]
) | st.binary(max_size=40)  # fmt: skip
BYTES = st.lists(PIECES, max_size=8).map(b"".join)


def applied(base: bytes, told: bytes) -> bytes:
    """What a delta makes of a base, by the words of gitformat-pack(5)."""
    at = 0

    def size() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = told[at]
            at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    assert size() == len(base)
    length, out = size(), b""
    while at < len(told):
        byte = told[at]
        at += 1
        if byte & 128:
            numbers = [0] * 7
            for bit in range(7):
                if byte >> bit & 1:
                    numbers[bit] = told[at]
                    at += 1
            place, same = int.from_bytes(bytes(numbers[:4]), "little"), int.from_bytes(bytes(numbers[4:]), "little")
            same = same or 0x10000
            assert place + same <= len(base)
            out += base[place : place + same]
        else:
            assert byte
            out += told[at : at + byte]
            at += byte
    assert len(out) == length
    return out


@given(BYTES, BYTES)
def test_a_delta_makes_the_one_of_the_other(base: bytes, target: bytes) -> None:
    for told in delta.between(base, target):
        assert applied(base, told) == target


@given(st.lists(PIECES, min_size=1, max_size=8), st.data())
def test_what_was_changed_in_places_is_told_by_these(pieces: list[bytes], data: st.DataObject) -> None:
    """Also where pieces are gone, stand elsewhere or stand twice."""
    chosen = data.draw(st.lists(st.sampled_from(pieces), max_size=10))
    base, target = b"".join(pieces), b"".join(chosen)
    for told in delta.between(base, target):
        assert applied(base, told) == target
    last = 0
    for copy in delta.copies(base, target):
        assert copy.at >= last
        assert base[copy.place : copy.place + copy.length] == target[copy.at : copy.at + copy.length]
        last = copy.at + copy.length
    assert last <= len(target)


def test_what_is_long_and_alike_is_told_in_few_bytes() -> None:
    text = random.Random(4).randbytes(300_000)
    assert len(min(delta.between(text, text[:150_000] + b"one line more\n" + text[150_000:]), key=len)) < 60
    assert len(min(delta.between(text, text[100_000:] + text[:100_000]), key=len)) < 60


def test_git_reads_what_is_written(tmp_path: Path) -> None:
    """Whole objects, and deltas at all distances, in a pack that grew from another one."""
    run_git(tmp_path, "init", "--bare", "-q", str(tmp_path / "store"))
    chance = random.Random(5)
    first = chance.randbytes(40_000)
    every, old = [first], None
    for number in range(2):
        path = tmp_path / f"{number}.pack"
        writer = Writer(path, old, len(every) if old else 0)
        if old is None:
            at = writer.whole(BLOB, len(first), compressed(first))
        else:
            at = densepack.entries(old, old.with_suffix(".idx").read_bytes())[object_id("blob", first)]
            every.append(b"else")
            writer.whole(BLOB, 4, compressed(b"else"))
        for cut in (1, 200, 30_000):
            every.append(first[cut + number :] + b"%d" % number)
            told = delta.between(first, every[-1])[-1]
            assert writer.changed(at, len(told), compressed(told)).steps == 1
        name = writer.finish()
        run_git(tmp_path / "store", "index-pack", "--strict", str(path))
        assert name == f"pack-{path.read_bytes()[-20:].hex()}"
        old = path
    ids = {object_id("blob", data) for data in every}
    assert densepack.entries(path, path.with_suffix(".idx").read_bytes()).keys() == ids
    for end in (".pack", ".idx"):
        path.with_suffix(end).rename(tmp_path / "store" / "objects" / "pack" / f"{name}{end}")
    for data in every:
        done = subprocess.run(
            ["git", "-C", str(tmp_path / "store"), "cat-file", "blob", object_id("blob", data)],
            capture_output=True, check=True,
        )  # fmt: skip
        assert done.stdout == data


def test_what_says_the_same_is_found_among_many() -> None:
    bases, chance = Bases(), random.Random(6)
    lines = [
        [b"a line of the file %d, number %d\n" % (file, chance.randrange(10**9)) for _ in range(300)]
        for file in range(50)
    ]
    for number, own in enumerate(lines):
        bases.add(BLOB, b"", b"".join(own), Entry(number, 0))
    for number in (0, 20, 49):
        found = bases.near(BLOB, b"", b"".join(lines[number][100:]))
        assert found[0].entry.place == number
    assert bases.near(b"tree", b"", b"".join(lines[0])) == []


def test_what_is_many_steps_away_is_no_base() -> None:
    bases = Bases()
    bases.add(b"commit", b"/", b"one", Entry(0, densepack.MOST_STEPS))
    bases.add(b"commit", b"/", b"two", Entry(1, densepack.MOST_STEPS - 1))
    assert [base.data for base in bases.near(b"commit", b"/", b"three")] == [b"two"]


# The store


def branch(store: Store, name: str, seed: int, turns: int = 6, base: str | None = None) -> str:
    """An archived branch on which each turn reads a file of which some lines are others than before; its tip."""
    file, chance, repo = random.Random(0), random.Random(seed), store.repo
    lines = [base64.b64encode(file.randbytes(30)) for _ in range(100)]
    tree, parents = (repo.commit(base).tree, [base]) if base else (None, [])
    for number in range(turns):
        for _ in range(80):
            lines[chance.randrange(len(lines))] = base64.b64encode(chance.randbytes(30))
        found = {"a": b"\n".join(lines), "cells.jsonl": json.dumps({"turn": number, "of": name}).encode()}
        blobs = {f"turns/0000/{number:06d}/{path}": (repo.write_blob(data), False) for path, data in found.items()}
        tree = repo.edit_tree(tree, blobs)
        parents = [repo.write_commit(tree, parents, f"turn {number}\n\nSession: {name}\n", 1_700_000_000 + number)]
    repo.move(f"{layout.ARCHIVE}{name}", repo.ref(f"{layout.ARCHIVE}{name}"), parents[0])
    repo.release()
    return parents[0]


def pack(store: Store) -> list[tuple[int, int]]:
    """Packs all; how far it said that it was."""
    told: list[tuple[int, int]] = []
    assert maintenance.pack(store.path, full=True, archived=True, progress=lambda *far: told.append(far))
    return told


def packs(store: Store) -> dict[str, tuple[int, int]]:
    """Size and number of each pack's file: another file has another number."""
    found = (store.path / "objects/pack").glob("*.pack")
    return {path.stem: (path.stat().st_size, path.stat().st_ino) for path in found}


def own(store: Store) -> str:
    found = dense.known(store.path)
    return found.stem if found else ""


def held(store: Store, name: str) -> set[str]:
    return set(ids((store.path / f"objects/pack/{name}.idx").read_bytes()))


def reached(store: Store, *refs: str) -> set[str]:
    return {line.split(" ")[0] for line in run_git(store.path, "rev-list", "--objects", *refs).splitlines()}


def run_bytes(path: Path, oid: str) -> tuple[bytes, bytes]:
    """The kind and the bytes of an object."""
    told = subprocess.run(
        ["git", "-C", str(path), "cat-file", "--batch"], input=oid.encode(), capture_output=True, check=True
    )
    head, _, data = told.stdout.partition(b"\n")
    return head.split()[1], data[:-1]


def is_whole(store: Store) -> bool:
    return run_git(store.path, "fsck", "--strict", "--no-dangling") == ""


def test_what_is_archived_is_packed_smaller_and_once(store: Store) -> None:
    one, _ = branch(store, "one", 1), branch(store, "two", 2)
    live = branch(store, "live", 3, base=one)
    store.repo.move(f"{layout.ARCHIVE}live", live, None)
    store.repo.move(f"{layout.HEADS}live", None, live)
    store.repo.release()
    assert maintenance.pack(store.path, full=True)
    ((usual, _),) = packs(store).values()
    every = reached(store, "--all")
    told = pack(store)
    assert sum(size for size, _ in packs(store).values()) < usual * 0.9
    alone = reached(store, f"--glob={layout.ARCHIVE}*", "--not", "--branches")
    assert held(store, own(store)) == alone  # without what the fork has too
    assert told[len(alone) - 1] == (len(alone), len(alone))
    assert is_whole(store)
    made = packs(store)
    assert len(made) == 2
    assert set().union(*(held(store, name) for name in made)) == every
    again = pack(store)
    assert packs(store)[own(store)] == made[own(store)]
    assert again == told[len(alone) :]


def test_what_is_archived_later_is_added_and_what_is_live_again_stays(store: Store) -> None:
    tip = branch(store, "one", 1, turns=30)
    pack(store)
    first = own(store)
    old, before = (store.path / f"objects/pack/{first}.pack").read_bytes(), held(store, first)
    branch(store, "two", 2)
    pack(store)
    second = own(store)
    new = (store.path / f"objects/pack/{second}.pack").read_bytes()
    assert new[12 : len(old) - 20] == old[12:-20]
    assert held(store, second) > before
    assert packs(store).keys() == {second}
    store.repo.move(f"{layout.ARCHIVE}one", tip, None)
    store.repo.move(f"{layout.HEADS}one", None, tip)
    pack(store)
    assert packs(store).keys() == {second}
    assert is_whole(store)
    rows = [row.split() for row in run_git(store.path, "verify-pack", "-v", f"objects/pack/{second}.idx").splitlines()]
    steps = [int(row[5]) for row in rows if len(row) == 7]
    assert 2 < max(steps) <= densepack.MOST_STEPS
    assert len(steps) > len(before) / 2


def test_what_is_pruned_is_gone_from_it(store: Store, tmp_path: Path) -> None:
    one, two = branch(store, "one", 1), branch(store, "two", 2)
    pack(store)
    first, made = own(store), packs(store)
    making.reached(store.path, ())
    assert packs(store) == made  # there is nothing to be taken out
    gone = reached(store, one, "--not", two)
    store.repo.move(f"{layout.ARCHIVE}one", one, None)
    making.reached(store.path, ())
    assert first not in packs(store)
    assert held(store, own(store)) == reached(store, two)
    assert packs(store).keys() == {own(store)}
    with pytest.raises(AssertionError):
        run_git(store.path, "cat-file", "-e", gone.pop())
    made = packs(store)
    assert pack(store) == []
    assert packs(store) == made
    store.repo.move(f"{layout.ARCHIVE}two", two, None)
    making.reached(store.path, ())
    assert (own(store), packs(store)) == ("", {})


def test_other_packings_leave_it_as_it_is(store: Store) -> None:
    branch(store, "one", 1)
    pack(store)
    made = packs(store)
    for number in range(3):
        branch(store, f"new {number}".replace(" ", "-"), 10 + number)
        making.loose(store.path)
    making.join(store.path)
    assert packs(store).items() > made.items()
    assert len(packs(store)) == 2
    branch(store, "more", 20)
    making.arrived(store.path, [])
    making.anew(store.path)
    assert packs(store).items() > made.items()
    assert len(packs(store)) == 2
    assert is_whole(store)


def test_where_the_name_is_lost_it_is_a_pack_among_others(store: Store) -> None:
    branch(store, "one", 1)
    pack(store)
    made = {name: size for name, (size, _) in packs(store).items()}
    mark = store.path / "state" / "dense"
    for told in ("", "pack-0", "../../HEAD", f"pack-{'0' * 40}", "\0\xff", "pack-" + "f" * 41):
        mark.write_text(told, "latin-1")
        assert own(store) == ""
    pack(store)
    assert {own(store): made[own(store)]} == {name: size for name, (size, _) in packs(store).items()} == made
    assert is_whole(store)


def test_a_pack_that_was_cut_is_not_built_upon(store: Store) -> None:
    branch(store, "one", 1)
    pack(store)
    path = store.path / f"objects/pack/{own(store)}.pack"
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-100])
    assert own(store) == ""
    branch(store, "two", 2)
    with pytest.raises(StoreError):
        pack(store)
    assert path.exists()
    assert maintenance.sweep(store.path, 2e9) == 0


def test_a_pack_that_does_not_hold_what_it_should_takes_no_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a slip of whoever makes the deltas: git finds other objects in it then."""
    branch(store, "one", 1)
    assert maintenance.pack(store.path, full=True)
    before = packs(store)
    given = delta._given
    monkeypatch.setattr(delta, "_given", lambda data: given(b"A" * len(data)))
    with pytest.raises(StoreError, match="could not pack the store"):
        pack(store)
    assert packs(store) == before
    assert own(store) == ""
    assert not [path for path in (store.path / "objects/pack").iterdir() if "tmp" in path.name]
    assert is_whole(store)


def test_what_was_put_back_beside_a_damaged_one_stays(store: Store) -> None:
    """Else git would delete what is loose, since the pack that it leaves alone names it."""
    branch(store, "one", 1)
    pack(store)
    every = {oid: run_bytes(store.path, oid) for oid in held(store, own(store))}
    path = store.path / f"objects/pack/{own(store)}.pack"
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for oid, (kind, data) in every.items():
        loose = store.path / "objects" / oid[:2] / oid[2:]
        loose.parent.mkdir(exist_ok=True)
        loose.write_bytes(zlib.compress(b"%s %d\0" % (kind, len(data)) + data))
    making.anew(store.path)
    assert (own(store), len(packs(store))) == ("", 1)
    assert is_whole(store)
    pack(store)
    assert held(store, own(store)) == every.keys()
    assert is_whole(store)


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_no_room(store: Store) -> None:
    """Neither for a list, nor for the pack, nor for the one of all else: then the first is there and stays."""
    branch(store, "one", 1)
    assert maintenance.pack(store.path, full=True)
    before, every = packs(store), reached(store, "--all")
    blob = store.repo.write_blob(random.Random(7).randbytes(200_000))
    tip = store.repo.write_commit(store.repo.edit_tree(None, {"large": (blob, False)}), [], "large", 1)
    store.repo.move(f"{layout.HEADS}large", None, tip)
    store.repo.release()
    for size in (0, 30, 1_000, 3_000):
        with no_file_over(size), pytest.raises(StoreError):
            pack(store)
        assert (packs(store), own(store)) == (before, "")
        assert not [path for path in (store.path / "objects/pack").iterdir() if "tmp" in path.name]
    with no_file_over(100_000), pytest.raises(StoreError):
        pack(store)
    assert packs(store) == before | {own(store): packs(store)[own(store)]}
    assert is_whole(store)
    assert len(pack(store)) < len(every)
    assert len(packs(store)) == 2
    assert held(store, own(store)) == every
    assert is_whole(store)


def test_what_a_killed_one_left_goes_before_the_next(store: Store) -> None:
    """As it is between the two names: the pack has got its own, the index has not."""
    branch(store, "one", 1)
    pack(store)
    folder, half = store.path / "objects/pack", f"pack-{'1' * 40}"
    Beside(store.path).packing.write_text(f"{half}\n")
    for name in (f"{half}.pack", "tmp_dense_idx", "tmp_dense_pack"):
        (folder / name).write_bytes(b"PACK")
    made = packs(store).keys() - {half}
    branch(store, "two", 2)
    pack(store)
    assert {path.suffix for path in folder.iterdir()} == {".pack", ".idx"}
    assert packs(store).keys() == {own(store)}
    assert made != packs(store).keys()
    assert is_whole(store)
