"""Many transcripts at once: what is recorded is what recording them one after the other gives, whatever happens."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given, settings
from hypothesis import strategies as st
from plain import run_git
from shell import Shell
from strategies import SECRET, transcripts
from transcripts import OTHER, SESSION, Talk
from waiting import until

from sessgit.errors import StoreError
from sessgit.model.progress import no_progress
from sessgit.record import fork_detection, import_files, imports
from sessgit.record.import_files import ImportFailure, TranscriptFile
from sessgit.record.imports import ImportRun, RecordTask, Workers, record_families
from sessgit.record.recording import record
from sessgit.store import maintenance, pack_file, private_files, refs, tempdirs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index, Row
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

THIRD = "5e551011-0000-4000-8000-000000000003"
KEY = b"k" * 32
RULES = RecordConfig()


def _files(folder: Path) -> list[TranscriptFile]:
    paths = sorted(folder.rglob("*.jsonl"))
    return [TranscriptFile(path, path.stem, path.stat().st_size, fork_detection.first_prompt(path)) for path in paths]


def _own(data: bytes, number: int) -> bytes:
    """The lines with uuids of their own: those of made-up transcripts are all alike."""
    return re.sub(rb'"(uuid|parentUuid)":"', rb'"\1":"%d-' % number, data)


class _Place:
    """A store with a key that is known, so that two of them can be alike."""

    def __init__(self, path: Path, config: Path) -> None:
        stores.create_store(path)
        private_files.write_private(path / "key", KEY)
        self.store, self.config = Store(path), config
        self.index = Index(path, lambda: self.store)
        self.errors: list[ImportFailure] = []

    def one_by_one(self, files: Sequence[TranscriptFile], rules: RecordConfig = RULES) -> _Place:
        self.index.sync()
        for members in import_files.group_by_prompt(files):
            for file in import_files.sort_parents_first(members, self.errors):
                record(Context(self.index, privacy=Privacy(rules)), file.source(claude_homes(self.config), ()))
        return self

    def at_once(
        self,
        files: Sequence[TranscriptFile],
        rules: RecordConfig = RULES,
        *,
        chunk: int = 1,
        processes: int = 0,
    ) -> _Place:
        context = Context(self.index, claude_homes(self.config), Privacy(rules))
        self.work = ImportRun(context, no_progress, self.errors, chunk, processes)
        self.work.run(files)
        return self

    def turns(self) -> list[Row]:
        """All turns of all branches."""
        self.index.sync()
        return [row for branch in self.index.branches() for row in self.index.turns(branch.name)]

    def held(self) -> tuple[object, ...]:
        """The refs, the rows of the index, and the cursors."""
        rows = [
            sorted(map(repr, self.index._db.execute(f"SELECT * FROM {table}")))
            for table in ("branches", "turns", "merges", "gists", "touched", "cells")
        ]
        cursors = {path.name: json.loads(path.read_bytes()) for path in self.store.paths.state.glob("*.json")}
        return refs.read_all(self.store.path), rows, cursors


Both = Callable[..., tuple[_Place, _Place]]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """The transcripts below the folder `claude` recorded one by one, and at once."""

    def made(*, chunk: int = 1, processes: int = 0) -> tuple[_Place, _Place]:
        files, config = _files(tmp_path / "claude"), tmp_path / "claude"
        slow = _Place(tmp_path / "slow", config).one_by_one(files)
        fast = _Place(tmp_path / "fast", config).at_once(files, chunk=chunk, processes=processes)
        assert fast.held() == slow.held()
        run_git(fast.store.path, "fsck", "--strict")
        assert not list(fast.store.paths.state.glob("importing-*"))
        return slow, fast

    return made


@settings(max_examples=25)
@given(st.data())
def test_the_same_as_one_by_one(data: st.DataObject) -> None:
    every = data.draw(st.lists(transcripts(secrets=True, most=10), min_size=1, max_size=3))
    copied = data.draw(st.booleans())
    rules = RecordConfig(data.draw(st.sampled_from(["turn", "turn", "cell"])), data.draw(st.booleans()))
    chunk = data.draw(st.sampled_from([1, 4_000, 1 << 20]))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number, one in enumerate(every):
            path = root / "claude" / "projects" / f"-p{number}" / f"5e551011-0000-4000-8000-00000000000{number}.jsonl"
            path.parent.mkdir(parents=True)
            own = one.data if copied else _own(one.data, number)
            path.write_bytes(own)
        files = _files(root / "claude")
        slow = _Place(root / "slow", root / "claude").one_by_one(files, rules)
        fast = _Place(root / "fast", root / "claude").at_once(files, rules, chunk=chunk)
        assert fast.held() == slow.held()
        run_git(fast.store.path, "fsck", "--strict")
        slow.index.close()
        fast.index.close()


def test_what_was_there_stays_packed_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "_LEAST_ARRIVED", 0)
    claude = tmp_path / "claude"
    place, packs = _Place(tmp_path / "store", claude), tmp_path / "store" / "objects" / "pack"
    held, names = list[set[str]](), (SESSION, OTHER, THIRD)
    for number, name in enumerate(names):
        path = Talk(name).turns(*(f"{name} {turn}" for turn in range((40, 4, 30)[number]))).save(claude)
        path.write_bytes(_own(path.read_bytes(), number))
        place.at_once(_files(claude), chunk=1 << 20)
        place.store.repo.write_blob(f"loose {number}".encode())
        maintenance.pack_arrived(place.store.path, place.work.packs, 0, no_progress)
        run_git(place.store.path, "fsck", "--strict")
        assert "count: 0" in run_git(place.store.path, "count-objects", "-v")
        held.append({path.name for path in packs.glob("*.pack")})
    assert len(held[0]) == 1  # all that there was
    assert held[0] < held[1]  # the second beside the first, which is three times as large
    assert len(held[1]) == 2
    assert not held[1] & held[2]  # the third is not so much smaller than both
    assert len(held[2]) == 1


def test_deltas_are_found_for_what_came_in(tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    Talk(SESSION).turns(*(f"turn {turn}" for turn in range(40))).save(claude)
    place = _Place(tmp_path / "store", claude).at_once(_files(claude))
    maintenance.pack_arrived(place.store.path, place.work.packs, 0, no_progress)
    (index,) = (tmp_path / "store" / "objects" / "pack").glob("*.idx")
    objects = [line.split() for line in run_git(place.store.path, "verify-pack", "-v", str(index)).splitlines()]
    assert sum(len(told) == 7 for told in objects) > 80  # a delta's line names its depth and its base


def test_families(both: Callable[..., object], claude: Path) -> None:
    parent = Talk(OTHER).turns("one", "two", "three")
    parent.save(claude)
    parent.rewind(1)
    parent.branch(SESSION).turns("four").save(claude)
    parent.fork_session(THIRD).turns("five").save(claude)
    both()


def test_by_several_processes(both: Both, claude: Path) -> None:
    for number in range(12):
        talk = Talk(f"5e551011-0000-4000-8000-0000000001{number:02}")
        data = _own(talk.turns("one", f"with {SECRET}", "three").data, number)
        claude.mkdir(parents=True, exist_ok=True)
        (claude / f"{talk.session}.jsonl").write_bytes(data)
    _, fast = both(chunk=3_000, processes=2)
    assert sum(len(result.turns) for result in fast.work.results) == 36
    assert len(list((fast.store.path / "objects" / "pack").glob("*.pack"))) > 3


def test_one_that_takes_long_holds_nobody_up_for_good(tmp_path: Path, claude: Path) -> None:
    """The others get as far ahead of it as they may, and wait until it is done."""
    claude.mkdir(parents=True, exist_ok=True)
    long = Talk("5e551011-0000-4000-8000-000000000100").turns(*(f"turn {number}" for number in range(250)))
    (claude / f"{long.session}.jsonl").write_bytes(_own(long.data, 0))
    for number in range(1, 9):
        talk = Talk(f"5e551011-0000-4000-8000-0000000001{number:02}").turns("one")
        (claude / f"{talk.session}.jsonl").write_bytes(_own(talk.data, number))
    config = tmp_path / "claude"
    done = _Place(tmp_path / "fast", config).at_once(_files(config), chunk=1, processes=2)
    assert sum(len(result.turns) for result in done.work.results) == 258


def test_a_large_object_is_written_piece_by_piece(tmp_path: Path) -> None:
    stores.create_store(tmp_path / "store")
    data = random.Random(1).randbytes(1 << 19).hex().encode() * 9
    made = pack_file.Pack(tmp_path / "gathered.pack")
    small, large = made.add(pack_file.BLOB, b"small"), made.add(pack_file.BLOB, data)
    assert made.read(large) == (pack_file.BLOB, data)
    name = made.finish()
    for end in (".pack", ".idx"):
        (tmp_path / f"gathered{end}").replace(tmp_path / "store" / "objects" / "pack" / f"pack-{name}{end}")
    run_git(tmp_path / "store", "fsck", "--strict")
    store = Store(tmp_path / "store")
    assert (store.repo.blob(small), store.repo.blob(large)) == (b"small", data)


def test_a_copy_without_the_first_prompt_finds_its_parent(both: Both, claude: Path) -> None:
    """The file that it was copied from begins with a turn that a rewind left: they have no first prompt in common."""
    parent = Talk(OTHER).turns("left behind")
    parent.rewind(0).turns("one", "two").save(claude)
    kept = [line for line in parent.lines if b"left behind" not in line]
    copy = Talk(SESSION)
    for line in kept:
        copy.raw(line.replace(OTHER.encode(), SESSION.encode()))
    copy.save(claude)
    slow, _ = both()
    parents = {branch.name: branch.state.origin for branch in slow.index.branches()}
    assert any(parents.values())


def test_a_rewind_far_back(both: Both, claude: Path) -> None:
    """Its base is a commit whose trees no cache has any more."""
    long = Talk().turns(*(f"turn {number}" for number in range(300))).rewind(1).turns("again")
    long.save(claude)
    both()


def test_two_files_of_one_session(both: Both, claude: Path) -> None:
    talk = Talk().turns("one", "two")
    talk.save(claude)
    talk.turns("three").save(claude.with_name("-elsewhere"))
    _, fast = both()
    assert {result.session for result in fast.work.results} == {SESSION}
    assert sum(len(result.turns) for result in fast.work.results) == 3


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_two_files_of_one_session_that_begin_otherwise(both: Both, claude: Path, chunk: int) -> None:
    Talk().turns("one", "two").save(claude)
    path = claude.with_name("-elsewhere") / f"{SESSION}.jsonl"
    path.parent.mkdir()
    path.write_bytes(_own(Talk().turns("three").data, 1))
    _, fast = both(chunk=chunk)
    assert sum(len(result.turns) for result in fast.work.results) == 3


def test_what_is_there_is_gone_on_with(tmp_path: Path, claude: Path) -> None:
    old = Talk().turns("one")
    old.save(claude)
    fast = _Place(tmp_path / "fast", tmp_path / "claude").at_once(_files(tmp_path / "claude"))
    old.turns("two").save(claude)
    old.branch(OTHER).turns("three").save(claude)
    slow = _Place(tmp_path / "slow", tmp_path / "claude")
    (claude / f"{SESSION}.jsonl").write_bytes(Talk().turns("one").data)
    slow.one_by_one(_files(claude.parent / claude.name)[:1])
    old.save(claude)
    fast.at_once(_files(tmp_path / "claude"))
    slow.one_by_one(_files(tmp_path / "claude"))
    assert refs.read_all(fast.store.path) == refs.read_all(slow.store.path)


def test_who_records_one_of_them_meanwhile_is_no_loss(tmp_path: Path, claude: Path) -> None:
    """Another process makes a ref between gathering and bringing in: all of the pack's sessions are recorded anew."""
    Talk().turns("one").save(claude)
    Talk(OTHER).turns("else", "more").save(claude)
    files = _files(tmp_path / "claude")
    place = _Place(tmp_path / "fast", tmp_path / "claude")
    other = _Place(tmp_path / "fast", tmp_path / "claude")

    def meanwhile(done: int, total: int) -> None:
        if done == total and not refs.read_all(place.store.path):
            other.one_by_one(files[:1])

    work = ImportRun(Context(place.index, claude_homes(place.config)), meanwhile, [], 1 << 20, 0)
    work.run(files)
    slow = _Place(tmp_path / "slow", tmp_path / "claude").one_by_one(files)
    assert refs.read_all(place.store.path) == refs.read_all(slow.store.path)


def test_a_full_disk_leaves_what_came_in(tmp_path: Path, claude: Path) -> None:
    first, second = Talk().turns("one"), Talk(OTHER).turns("else")
    first.save(claude)
    second.save(claude)
    place = _Place(tmp_path / "fast", tmp_path / "claude")
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000));"
    big = Talk(THIRD)
    big.prompt("big").tool("Bash", {"command": "x"}, random.Random(1).randbytes(90_000).hex()).save(claude)
    code = f"{full} import sys; from sessgit.cli.app import main; main()"
    env = {**os.environ, "SESSGIT_STORE": str(place.store.path), "CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    command = [sys.executable, "-c", code, "import", str(tmp_path / "claude")]
    done = subprocess.run(
        command,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert "Is there room on the disk" in done.stderr
    run_git(place.store.path, "fsck", "--strict")
    assert not list(place.store.paths.state.glob("importing-*"))
    place.at_once(_files(tmp_path / "claude"))
    slow = _Place(tmp_path / "slow", tmp_path / "claude").one_by_one(_files(tmp_path / "claude"))
    assert refs.read_all(place.store.path) == refs.read_all(slow.store.path)


def test_a_damaged_file_among_many(sessgit: Shell, tmp_path: Path) -> None:
    for number in range(20):
        Talk(f"5e551011-0000-4000-8000-0000000002{number:02}").turns(f"turn {number}").save(tmp_path / str(number))
    broken = tmp_path / "5" / f"{OTHER}.jsonl"
    broken.write_bytes(b"\0\xff\xfe no transcript\n" * 100)
    half = Talk(THIRD).turns("whole", "half").data
    (tmp_path / "6" / f"{THIRD}.jsonl").write_bytes(half[: len(half) // 2] + b"\0" * 500)
    done = sessgit("import", str(tmp_path))
    assert (done.code, done.err) == (1, f"{broken}:\n  it has no transcript lines\n")
    assert done.out.startswith("21 conversations, ")


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, claude: Path) -> None:
    talk = Talk().turns("one")
    path = talk.save(claude)
    files = _files(tmp_path / "claude")
    talk.turns("two", "three").save(claude)  # since it was looked at
    place = _Place(tmp_path / "fast", tmp_path / "claude").at_once(files)
    assert sum(len(result.turns) for result in place.work.results) == 3
    with path.open("ab") as file:
        file.write(b'{"type":"user","torn')
    place.at_once(_files(tmp_path / "claude"))
    run_git(place.store.path, "fsck", "--strict")


def test_a_file_that_went(tmp_path: Path, claude: Path) -> None:
    Talk().turns("one").save(claude)
    gone = Talk(OTHER).turns("else").save(claude)
    files = _files(tmp_path / "claude")
    gone.unlink()
    place = _Place(tmp_path / "fast", tmp_path / "claude").at_once(files)
    assert {result.session for result in place.work.results} == {SESSION}
    assert [failure.path for failure in place.errors] == [gone]


def workers() -> list[Path]:
    """Return the processes that gather sessions for this test: they have its home."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            words, env = ((folder / name).read_bytes() for name in ("cmdline", "environ"))
            if b"record.imports" in words and f"HOME={os.environ['HOME']}\0".encode() in env:
                found.append(folder)
    return found


def test_workers_end_before_they_have_begun() -> None:
    with closing(Workers()) as started:
        started.start(2)
        assert len(started.connections) == 2
        until(workers)  # the words of a process can be read a moment after it runs
    assert (started.connections, workers()) == ([], [])


def test_workers_start_for_what_is_not_in_the_store(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import of much starts them before it reads a file; the next one finds nothing that is new."""
    counts, examine = list[int](), import_files.examine

    def start(started: Workers, count: int, real: Callable[[Workers, int], None] = Workers.start) -> None:
        counts.append(count)
        real(started, count)

    def after_start(path: Path) -> TranscriptFile:
        assert counts
        return examine(path)

    sessgit.keep(sessgit.talk().turns("one", "two"))
    sessgit.keep(sessgit.talk(OTHER).turns("three"))
    monkeypatch.setattr(imports, "_SINGLE_PROCESS_SIZE", 1)
    monkeypatch.setattr(imports, "useful_workers", lambda: 2)
    monkeypatch.setattr(Workers, "start", start)
    with monkeypatch.context() as patched:
        patched.setattr(import_files, "examine", after_start)
        done = sessgit.json("import")
    assert (done["sessions"], done["turns"], counts) == (2, 3, [2, 1])
    assert workers() == []
    counts.clear()
    assert sessgit.json("import")["unchanged"] == 2
    assert counts == [0]


@pytest.mark.parametrize("seed", range(2))
def test_killed_and_begun_again(tmp_path: Path, claude: Path, seed: int) -> None:
    for number in range(30):
        talk = Talk(f"5e551011-0000-4000-8000-0000000003{number:02}", style="2.0").turns(*"abcd")
        claude.mkdir(parents=True, exist_ok=True)
        data = _own(talk.data, number)
        (claude / f"{talk.session}.jsonl").write_bytes(data)
    files = _files(tmp_path / "claude")
    slow = _Place(tmp_path / "slow", tmp_path / "claude").one_by_one(files)
    place = _Place(tmp_path / "fast", tmp_path / "claude")
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; from pathlib import Path; import test_import_bulk as t;"
        "root = Path(sys.argv[1]); t._Place(root / 'fast', root / 'claude').at_once("
        "t._files(root / 'claude'), chunk=4_000, processes=2)"
    )
    chance = random.Random(seed)
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    for _ in range(2):
        child = subprocess.Popen(command)
        before = len(refs.read_all(place.store.path))
        while child.poll() is None and len(refs.read_all(place.store.path)) == before:
            time.sleep(0.005)
        time.sleep(chance.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        run_git(place.store.path, "fsck", "--strict")
    deadline = time.monotonic() + 60
    while workers():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    place.at_once(files)
    assert place.held()[0] == slow.held()[0]
    assert not list(place.store.paths.state.glob("importing-*"))


def test_what_a_killed_one_left_is_swept(store: Store) -> None:
    with tempdirs.make_folder("importing-", store.paths.state) as alive:
        left = store.paths.state / "importing-01234567"
        left.mkdir()
        (left / "gathered.pack").write_bytes(b"PACK")
        os.utime(left, (0, 0))
        assert tempdirs.delete_stale_folders(store.paths.state) == 1
        assert alive.is_dir()
        assert not left.exists()
    assert not alive.exists()


def test_a_folder_that_is_a_link_is_not_swept(store: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (store.paths.state / "importing-01234567").symlink_to(tmp_path / "mine")
    assert tempdirs.delete_stale_folders(store.paths.state) == 0
    assert (tmp_path / "mine").is_dir()


def test_a_place_that_cannot_be_written(store: Store, tmp_path: Path, claude: Path) -> None:
    Talk().turns("one").save(claude)
    (tmp_path / "file").touch()
    task = RecordTask(
        store.path, tmp_path / "file" / "0", [_files(tmp_path / "claude")], claude_homes(tmp_path), Privacy()
    )
    with pytest.raises(StoreError, match="cannot create a store"):
        record_families(task, lambda size: None)


def test_nothing_is_in_the_store_before_its_refs_move(store: Store, tmp_path: Path, claude: Path) -> None:
    Talk().turns("one").save(claude)
    task = RecordTask(
        store.path, tmp_path / "apart", [_files(tmp_path / "claude")], claude_homes(tmp_path / "claude"), Privacy()
    )
    (tip,) = record_families(task, lambda size: None).refs.values()
    assert (refs.read_all(store.path), store.repo.has(tip)) == ({}, False)
    assert not list((store.path / "objects").rglob("*.pack"))


@pytest.mark.parametrize("is_there", [True, False])
def test_the_proof_of_a_redacted_line_needs_the_key_of_the_store(
    store: Store, tmp_path: Path, claude: Path, is_there: bool
) -> None:
    Talk().prompt(f"with {SECRET}").answer("So.").save(claude)
    task = RecordTask(
        store.path, tmp_path / "apart", [_files(tmp_path / "claude")], claude_homes(tmp_path / "claude"), Privacy()
    )
    if is_there:
        record_families(task, lambda size: None)
        assert (tmp_path / "apart" / "key").read_bytes() == store.paths.key.read_bytes()
    else:
        store.paths.key.unlink()
        with pytest.raises(StoreError, match=r"^cannot read the store's key: No such file or directory$"):
            record_families(task, lambda size: None)


def test_without_the_index_it_is_read_again(both: Both, claude: Path) -> None:
    """Rows that cannot be added are only slower: the index follows the refs when it is asked."""
    Talk().turns("one", "two").save(claude)
    slow, fast = both()
    fast.index.close()
    (fast.store.path / "index.sqlite3").unlink()
    again = Index(fast.store.path, lambda: fast.store)
    again.sync()
    told = "SELECT * FROM turns"
    assert again._db.execute(told).fetchall() == slow.index._db.execute(told).fetchall()
    again.close()
