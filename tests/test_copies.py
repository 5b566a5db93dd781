"""Several files of one session: pieces, overlaps, continuations, older copies, a file that was written anew.

In whatever order they come and however often, the branches are the same, everything verifies, and the newest file comes
back byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git
from shell import Shell
from strategies import transcripts
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.branch.restore import RebuiltFile
from sessgit.check import verify
from sessgit.model.progress import no_progress
from sessgit.record.copies import Copy, Row, versions
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import operations, refs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store


@dataclass
class Machine:
    """A store into which copies of one session are imported, each from a folder of its own."""

    top: Path
    store: Store
    index: Index

    def take(self, number: int, data: bytes) -> None:
        path = self.top / str(number) / f"{SESSION}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        source = TranscriptSource(path, SESSION, self.top / "claude", final=True, imported=True)
        record(Context(self.index), source)

    @property
    def refs(self) -> dict[str, str]:
        return refs.read_all(self.store.path)

    @property
    def restored(self) -> RebuiltFile:
        return restore.rebuild_file(self.store, SESSION)

    def wrong(self) -> list[str]:
        """What `verify --deep` finds that is more than a note."""
        done = verify.verify_store(Store(self.store.path), self.index, no_progress, deep=True)
        return [f"{one.where}: {one.what}" for one in done.findings if one.severity != "note"]


@contextmanager
def machine(factory: pytest.TempPathFactory) -> Iterator[Machine]:
    top = factory.mktemp("machine")
    stores.create_store(top / "store")
    (top / "store" / "key").write_bytes(bytes(32))  # proofs of redacted lines are the same on all
    store = Store(top / "store")
    index = Index(store.path, lambda: store)
    yield Machine(top, store, index)
    index.close()


def joined(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


class Copies:
    """Copies of one session's file, two orders in which they come, the newest one, or None if only parts of it are
    there, and those after which the refs are packed."""

    def __init__(
        self,
        files: Sequence[bytes],
        orders: Sequence[Sequence[int]],
        newest: bytes | None,
        packed: Collection[int] = (),
    ) -> None:
        self.files, self.orders, self.newest, self.packed = files, orders, newest, packed

    def __repr__(self) -> str:
        sizes = [data.count(b"\n") for data in self.files]
        return f"copies of {sizes} lines in the orders {self.orders}, refs packed after {sorted(self.packed)}"


def appended_line(number: int) -> bytes:
    """A line that the client wrote once it had written the file anew."""
    return b'{"parentUuid":null,"type":"system","uuid":"eeee-%d","timestamp":"2026-03-02T09:00:0%d.000Z"}' % (
        number,
        number,
    )


def has_uuid(line: bytes) -> bool:
    """Whether the line has a uuid; two lines on one have none."""
    with suppress(ValueError):
        return bool(json.loads(line).get("uuid"))
    return False


@st.composite
def rewritten_lines(draw: st.DrawFn, lines: Sequence[bytes], number: int) -> list[bytes]:
    """The lines of a file that the client wrote anew, with some of them removed or changed, and others between them.

    The first line with a uuid and those before it are never removed: a file that begins with what follows a line that
    is only in an older copy could as well be the next piece, and counts as that.
    """
    out = list(lines)
    first = next((place for place, line in enumerate(out) if has_uuid(line)), len(out) - 1)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(min(first + 1, len(out) - 1), len(out) - 1))
        change = draw(st.sampled_from(["remove", "change", "insert"]))
        if change == "remove" and place > first:
            del out[place : place + draw(st.integers(1, 3) | st.integers(1, len(out)))]
        elif change == "change":
            out[place] = out[place].replace(b"{", b'{"changed":%d,' % number, 1)
        else:
            line = b'{"parentUuid":null,"type":"system","uuid":"ffff-%d-%d","timestamp":"2026-03-01T09:00:00.000Z"}'
            out.insert(place, line % (number, place))
    return out


BARE = (
    b'{"type":"summary","summary":"A title","leafUuid":"x"}',
    b'{"type":"file-history-snapshot","messageId":"x","snapshot":{},"isSnapshotUpdate":false}',
    b'{"type":"queue-operation","operation":"dequeue","timestamp":"2026-03-01T09:00:00.000Z","sessionId":"x"}',
    b'{"type":"last-prompt","lastPrompt":"one","sessionId":"x"}',
)
"""Lines without a uuid, which a file may have several times."""


def edges(lines: Sequence[bytes]) -> st.SearchStrategy[int]:
    """Places between lines, preferably next to one without a uuid."""
    bare = {place for number, line in enumerate(lines) if b'"uuid"' not in line for place in (number, number + 1)}
    return st.integers(0, len(lines)) | (st.sampled_from(sorted(bare)) if bare else st.nothing())


@st.composite
def copies(draw: st.DrawFn) -> Copies:
    """The newest file, and two to four pieces of it or of the files that the client wrote anew until then: from any
    place, with a gap, without a last newline. Two lines may stand on one, without a newline between them. There may be
    pieces alone."""
    lines = draw(transcripts(broken=False).filter(lambda one: one.data.count(b"\n") > 5)).data.split(b"\n")[:-1]
    for _ in range(draw(st.integers(0, 4))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(BARE)))
    if draw(st.sampled_from([False, False, False, True])):
        place = draw(st.integers(0, len(lines) - 2))
        lines[place : place + 2] = [lines[place] + lines[place + 1]]
    count = draw(st.integers(0, 2))
    cuts = sorted(draw(st.integers(2, len(lines))) for _ in range(count))
    first, *later = (lines[start:end] for start, end in zip([0, *cuts], [*cuts, len(lines)], strict=True))
    states = [first]
    for number, more in enumerate(later, 1):
        appended = [appended_line(number)] * draw(st.integers(0, 1))
        states.append([*draw(rewritten_lines(states[-1], number)), *appended, *more])
    if later:
        states[-1].append(appended_line(9))
    is_unended = draw(st.sampled_from([False, False, False, True]))
    files = [joined(states[-1])[: -1 if is_unended else None]]
    for _ in range(draw(st.integers(2, 4))):
        own = draw(st.sampled_from(states))
        start, end = sorted((draw(st.just(0) | edges(own)), draw(edges(own))))
        piece = own[start:end] or own[:1]
        if len(piece) > 2 and draw(st.booleans()):
            gap, end = sorted((draw(edges(piece)), draw(edges(piece))))
            del piece[gap or 1 : end]
        # A piece in which the last line of the newest file has a newline would be a newer file.
        cut = (is_unended and piece[-1] == states[-1][-1]) or draw(st.sampled_from([False, False, False, True]))
        files.append(joined(piece)[: -1 if cut else None])
    is_whole = draw(st.sampled_from([True, True, False]))
    numbers = list(range(len(files)))[not is_whole :]
    again = draw(st.lists(st.sampled_from(numbers), max_size=2))
    orders = ((*draw(st.permutations(numbers)), *again), tuple(draw(st.permutations(numbers))))
    return Copies(files, orders, files[0] if is_whole else None, draw(st.sets(st.sampled_from(numbers))))


def check(factory: pytest.TempPathFactory, made: Copies) -> None:
    found = []
    for order in made.orders:
        with machine(factory) as one:
            for number in order:
                one.take(number, made.files[number])
                if number in made.packed:
                    operations.pack_refs(one.store.path)
            assert one.wrong() == []
            before, restored = one.refs, one.restored
            for number in order:
                one.take(number, made.files[number])
                assert one.refs == before
            lines = made.files[order[0]].splitlines(keepends=True)
            one.take(len(made.files), b"".join(lines[len(lines) // 3 : len(lines) - len(lines) // 3]))
            assert one.refs == before
            found.append(before)
            assert restored.data == made.newest or made.newest is None
            assert restored.same
    assert found[0] == found[1]


@given(copies())
def test_any_order_of_copies(tmp_path_factory: pytest.TempPathFactory, made: Copies) -> None:
    check(tmp_path_factory, made)


def test_a_continuation_before_what_it_continues(tmp_path_factory: pytest.TempPathFactory) -> None:
    talk = Talk().turns("one").prompt("two").tool("Bash", {"command": "ls"}).answer("Done.").stop_lines().turns("three")
    for place in (1, 3, 10, 12, 18):  # the first line behind each hangs on the last one before it that has a uuid
        halves = joined(talk.lines[:place]), joined(talk.lines[place:])
        check(tmp_path_factory, Copies(halves, ((0, 1), (1, 0)), talk.data))


def test_a_continuation_in_the_same_millisecond(tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = Talk().turns("one", "two").lines
    last, first = (json.loads(lines[place])["timestamp"].encode() for place in (4, 8))
    lines[8] = lines[8].replace(first, last)
    halves = joined(lines[:8]), joined(lines[8:])
    check(tmp_path_factory, Copies(halves, ((0, 1), (1, 0)), joined(lines)))
    lines[10] = lines[10].replace(json.loads(lines[10])["timestamp"].encode(), last)
    pieces = joined(lines[:8]), joined(lines[8:10]), joined(lines[10:])
    check(tmp_path_factory, Copies(pieces, ((0, 1, 2), (2, 0, 1)), joined(lines)))


@pytest.mark.parametrize(
    "talk", [Talk().turns("one", "two", "three"), Talk().turns("one", "two").rewind(1).turns("three")]
)
def test_a_continuation_whose_first_line_has_an_earlier_time(
    tmp_path_factory: pytest.TempPathFactory, talk: Talk
) -> None:
    """Lines that the client writes together are not always in the order of their times."""
    lines = talk.lines
    place = next(n for n, line in enumerate(lines) if b"three" in line)
    lines[place] = lines[place].replace(json.loads(lines[place])["timestamp"].encode(), b"2026-03-01T10:00:02.500Z")
    halves = joined(lines[:place]), joined(lines[place:])
    check(tmp_path_factory, Copies(halves, ((0, 1), (1, 0)), joined(lines)))


def test_a_piece_of_an_older_file_whose_last_line_has_an_earlier_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its first line continues the newest file, which lacks it."""
    lines = Talk().turns("one", "two", "three").lines
    start, end = (next(n for n, line in enumerate(lines) if word in line) for word in (b"two", b"three"))
    newest = joined([*lines[:start], *lines[end:]])
    piece = joined([*lines[start:end], BARE[2]])
    check(tmp_path_factory, Copies((newest, piece), ((0, 1), (1, 0)), newest))


def test_two_pieces_that_continue_the_same_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    talk = Talk().turns("one")
    shared = len(talk.lines)
    talk.turns("two")
    both = len(talk.lines)
    talk.rewind(1).turns("another two")
    pieces = joined(talk.lines[:shared]), joined(talk.lines[shared:both]), joined(talk.lines[both:])
    for orders in (((0, 1, 2), (0, 2, 1)), ((2, 1, 0), (1, 0, 2))):
        check(tmp_path_factory, Copies(pieces, orders, talk.data))


def test_a_file_that_came_in_pieces_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A later piece with a gap is contained in that file, but not in one of the pieces."""
    lines = Talk().turns("one", "two").lines
    assert [b'"uuid"' in line for line in lines[:3]] == [True, False, True]
    files = [joined(lines), joined(lines[:1]), joined(lines[1:]), joined([lines[0], lines[2]])]
    check(tmp_path_factory, Copies(files, ((0, 1, 2, 3), (1, 2, 0, 3)), files[0]))


def test_an_older_file_that_came_in_pieces_first(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The newest file contains one of its pieces."""
    first, _, second, *others = Talk().turns("one", "two").lines
    newest = joined([first.replace(b"{", b'{"changed":1,', 1), second, *others])
    files = [newest, joined([second]), joined([first, second]), joined([first])]
    check(tmp_path_factory, Copies(files, ((0, 1, 2, 3), (3, 1, 2, 0)), newest))


def test_an_older_copy_from_the_shell(sessgit: Shell, tmp_path: Path) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    before = run_git(sessgit.store, "for-each-ref")
    (tmp_path / f"{SESSION}.jsonl").write_bytes(joined(talk.lines[:9]))
    assert sessgit.out("import", str(tmp_path)) == "0 conversations, 0 turns imported; 1 was already imported\n"
    assert run_git(sessgit.store, "for-each-ref") == before
    assert sessgit.json("restore", SESSION, "--verify")["exact"]


def test_a_copy_that_ends_earlier_in_what_is_no_line() -> None:
    rows = (Row("11", "a", "", "2026-03-01T09:00:00.000Z"),)
    whole, part = Copy(rows, rest=b"\0\0\0"), Copy(rows, rest=b"\0")
    assert versions([part, whole]) == versions([whole, part]) == [(whole,)]


def test_a_file_that_the_client_wrote_anew(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    del talk.lines[3], talk.lines[5]
    path = sessgit.recorded(talk.turns("three"))
    path.unlink()
    sessgit.out("restore", SESSION)
    assert path.read_bytes() == talk.data
    assert sessgit.json("verify", "--deep")["sound"]


def test_nothing_is_claimed_without_a_hash_of_the_whole_file(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    tip = run_git(sessgit.store, "rev-parse", SESSION).strip()
    said = run_git(sessgit.store, "log", "-1", "--format=%B", tip)
    kept = "".join(f"{line}\n" for line in said.rstrip("\n").splitlines() if not line.startswith("File-Hash: "))
    identity = ("-c", "user.name=sessgit", "-c", "user.email=sessgit@localhost")
    made = run_git(sessgit.store, *identity, "commit-tree", f"{tip}^{{tree}}", "-p", f"{tip}^", "-m", kept.rstrip("\n"))
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}", made.strip())
    found = sessgit.out("restore", SESSION, "-o", str(tmp_path / "file"))
    assert "all lines that were recorded; no hash of the file was stored." in found
    assert not sessgit.json("restore", SESSION, "--verify")["exact"]
