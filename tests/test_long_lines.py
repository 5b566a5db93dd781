"""Lines that are as long as all else in memory together: recorded, read and laid out there is one copy of each."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from plain import Git, Keep
from transcripts import SESSION, Talk

from sessgit.agents import line
from sessgit.agents.claude.lines import make
from sessgit.agents.line import Reader, opened
from sessgit.branch import restore
from sessgit.model import json_strings
from sessgit.model.conversation.message import Extent
from sessgit.model.line_list import LineFile, file_of_lines, file_pieces, split_lines
from sessgit.store import objects
from sessgit.store.store import Store

LINES = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), min_size=1, max_size=6)

PEAKS = """
import sys
from pathlib import Path
from sessgit import agents
from sessgit.branch import restore
from sessgit.history.search import TurnTexts
from sessgit.store.context import Homes
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024

path, more = Path(sys.argv[1]), Path(sys.argv[2])
stores.create_store(more.parent / "store")
store = Store(more.parent / "store", fsync=True)
index = Index(store.path, lambda: store)
print(peak())
done = [record(Context(index), TranscriptSource(path, path.stem, path.parents[2]))]
print(peak())
with path.open("ab") as file:
    file.write(more.read_bytes())
done.append(record(Context(index), TranscriptSource(path, path.stem, path.parents[2])))
print(peak())
assert [one.turns for one in done] == [(1, 2), (2,)]
TurnTexts(agents.of_programs(), store, done[1].head, 2).words()
print(peak())
assert restore.verify_file(store, path.stem, Homes({"claude": path.parents[2]})).same
print(peak())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process had in use")
def test_there_is_one_copy_of_a_long_line(claude: Path, tmp_path: Path) -> None:
    """Of a line that is too long to be read as JSON, through recording, going on in the same turn, and reading."""
    talk = Talk().turns("one").prompt("two")
    line = b'{"type":"user","message":{"content":"%s"}}' % (
        b"words and more words " * (json_strings.LONGEST_LINE // 20)
    )
    path = talk.save(claude)
    talk.answer("Done.")
    last = talk.lines[-1]
    with path.open("ab") as file:
        file.write(line + b"\n" + last + b"\n")
    talk.answer("Done, once more.")
    (tmp_path / "more").write_bytes(talk.lines[-1] + b"\n")
    child = [sys.executable, "-c", PEAKS, str(path), str(tmp_path / "more")]
    told = subprocess.run(child, check=True, capture_output=True, text=True).stdout.split()
    first, *later = map(int, told)
    copies = [(peak - first) / len(line) for peak in later]
    assert len(copies) == 4 and max(copies) < 1.9, copies


def test_a_large_file_is_an_object_like_any_other(store: Store, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "LARGE_SIZE", 1000)
    lines = [b"a", b"x" * 2000, b"", b"end"]
    for data in (LineFile(lines), b"\n".join([*lines, b""])):
        oid = store.repo.write_blob(data)
        assert store.repo.blob(oid) == bytes(data)
        assert store.repo.lines(oid) == [*lines, b""]
        assert store.repo.lines(oid, 3) == [b"a", b"", b"", b"end", b""]
        assert store.repo.lines(oid, 2000) == [*lines, b""]
    assert git("cat-file", "-p", oid).encode() == bytes(data)
    assert git("count-objects").startswith("1 objects")
    torn = store.repo.write_blob(file_of_lines(lines, unended=True))
    assert store.repo.lines(torn) == lines
    assert [path.name for path in (store.path / "objects").glob("tmp_*")] == []


def test_a_large_file_that_is_damaged_is_told(keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from sessgit.errors import UnreadableError

    monkeypatch.setattr(objects, "LARGE_SIZE", 1000)
    oid = store.repo.write_blob(b"x" * 2000)
    path = store.path / "objects" / oid[:2] / oid[2:]
    whole = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(whole[:12] + bytes([whole[12] ^ 0xFF]) + whole[13:])
    with pytest.raises(UnreadableError):
        Store(store.path).repo.lines(oid)
    path.write_bytes(whole)


@given(lines=LINES, unended=st.booleans(), chunk=st.integers(1, 9))
def test_a_file_of_lines_is_its_bytes(lines: list[bytes], unended: bool, chunk: int) -> None:
    file = LineFile(lines, unended=unended)
    data = b"\n".join(lines) + b"\n" * (not unended)
    assert (bytes(file), len(file), b"".join(file_pieces(file))) == (data, len(data), data)
    assert bytes(file_of_lines(lines, unended=unended)) == data
    assert split_lines(file) == split_lines(data) == data.split(b"\n")
    assert objects.object_id("blob", file) == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found = objects.LineSplitter(float("inf"))
    for start in range(0, len(data), chunk):
        found.add(data[start : start + chunk])
    assert found.lines() == data.split(b"\n")


@given(lines=LINES, last=st.sampled_from([None, b'{"torn":', b'{"a":[1]}']), chunk=st.integers(1, 9))
def test_lines_are_the_same_in_whatever_pieces_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], last: bytes | None, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("read") / "lines"
    unended = last == b'{"a":[1]}'
    whole, rest = ([*lines, last], b"") if last and unended else (lines, last or b"")
    path.write_bytes(b"".join(line + b"\n" for line in lines) + (last or b""))
    with opened(path) as source, pytest.MonkeyPatch.context() as patched:
        found = Reader(source, make)
        assert [line.raw for line in found.lines(chunk)] == whole
        end = sum(len(line) + 1 for line in whole) - unended
        assert (found.offset, found.torn, [line.raw for line in found.tail()]) == (end, rest, [rest] if rest else [])
        assert found.unended == unended
        patched.setattr(line, "_CHUNK", chunk)
        assert [line.raw for line in found.again(Extent(0, end, len(whole)))] == whole
        assert found.again(Extent(0, end + len(rest) + 1, len(whole))) == []
        assert found.again(Extent(0, end, len(whole) + 1)) == []


def test_what_is_laid_out_of_large_turns_is_the_file(
    keep: Keep, store: Store, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With long lines before a prompt, in a body, and behind the last turn, where one is torn."""
    monkeypatch.setattr(objects, "LARGE_SIZE", 1000)
    monkeypatch.setattr("sessgit.model.line_list._LARGE_SIZE", 1000)
    monkeypatch.setattr(json_strings, "LONGEST_LINE", 1500)
    talk, long = Talk().turns("one"), b'{"type":"queue-operation","operation":"%s"}' % (b"x" * 2000)
    talk.lines.insert(1, long.replace(b"x", b"y"))
    talk.lines.append(long)
    talk.turns("two")
    path = talk.save(claude)
    assert keep(path, final=True).turns == (1, 2)
    path.write_bytes(talk.data + long + b"\n" + long[:1700])
    keep(path, final=True)
    verified = restore.verify_file(store, SESSION, claude_homes(claude.parents[1]))
    assert verified.same and verified.restored.exact
    assert verified.restored.data == path.read_bytes()
    head = store.branches(SESSION)[SESSION]
    assert keep(path, final=True).head == head
