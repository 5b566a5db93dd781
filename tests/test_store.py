"""The repository and what is read from it, with plain git as the judge."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import branches, text
from plain import Git, Keep
from transcripts import SESSION, Talk

from sessgit.errors import DamageError, MovedError, NewerStoreError, NotFoundError, StoreError, UnreadableError
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.store import backend, layout, locks, objects, private_files, refs
from sessgit.store import store as stores
from sessgit.store.store import Store, TurnLines

REF = "refs/heads/a41f"


def commit(store: Store, words: str = "x", parents: tuple[str, ...] = ()) -> str:
    blob = store.repo.write_blob(words.encode())
    return store.write_commit(None, {"pad/a": (blob, False)}, Session("a41f", "a41f"), Message("x"), parents, 1)


# A new store


def test_a_new_store_is_a_bare_repository_for_its_owner_alone(store: Store, git: Git) -> None:
    assert git("rev-parse", "--is-bare-repository") == "true\n"
    assert git("symbolic-ref", "HEAD").startswith("refs/heads/")
    assert git("for-each-ref") == ""
    assert store.path.stat().st_mode & 0o777 == 0o700
    assert (store.path / ".gitignore").read_text() == "*\n"
    assert store.paths.key.stat().st_mode & 0o777 == 0o600
    assert len(store.paths.key.read_bytes()) == 32
    assert git("config", "gc.auto") == "0\n"


def test_making_it_again_keeps_everything(store: Store) -> None:
    tip = commit(store)
    store.repo.move(REF, None, tip)
    key = store.paths.key.read_bytes()
    store.paths.ignore.write_text("mine\n")
    store.path.chmod(0o755)
    stores.create_store(store.path)
    again = Store(store.path)
    assert (again.repo.ref(REF), again.paths.key.read_bytes()) == (tip, key)
    assert again.paths.ignore.read_text() == "mine\n"
    assert store.path.stat().st_mode & 0o777 == 0o700


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no store") as error:
        Store(tmp_path / "none")
    assert "sessgit install" in error.value.hint
    with pytest.raises(NotFoundError):
        Store(tmp_path)


def test_a_place_where_no_store_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"cannot create a store at .*/file/store: Not a directory$") as refused:
        stores.create_store(tmp_path / "file" / "store")
    assert refused.value.hint == "Name another folder in SESSGIT_STORE."
    (tmp_path / "broken" / "objects").mkdir(parents=True)
    (tmp_path / "broken" / "HEAD").write_text("nonsense")
    with pytest.raises(StoreError, match="cannot open the store"):
        Store(tmp_path / "broken").repo  # noqa: B018


# Objects


def test_trees_are_edited_by_path(store: Store, git: Git) -> None:
    repo = store.repo
    blob, other = ((repo.write_blob(data), False) for data in (b"1", b"2"))
    tree = repo.edit_tree(None, {"a/b/c": blob, "a/d": blob, "e": blob})
    assert repo.files(tree) == {"a/b/c": blob, "a/d": blob, "e": blob}
    changed = repo.edit_tree(tree, {"a/b/c": None, "a/d": other, "x/y": blob, "none/such": None})
    assert repo.files(changed) == {"a/d": other, "e": blob, "x/y": blob}
    assert repo.edit_tree(changed, {"a": None, "e/inside": blob}) == repo.edit_tree(
        None, {"x/y": blob, "e/inside": blob}
    )
    assert repo.entry(changed, "a/d") == other
    assert repo.entry(changed, "a/none") is None
    assert git("ls-tree", "-r", "--name-only", changed) == "a/d\ne\nx/y\n"


def test_a_folder_moved_in_whole(store: Store) -> None:
    repo = store.repo
    inner = repo.edit_tree(None, {"x": (repo.write_blob(b"1"), False)})
    tree = repo.edit_tree(None, {"turns/0000/000001": (inner, True)})
    assert list(repo.files(tree)) == ["turns/0000/000001/x"]
    assert repo.entry(tree, "turns/0000/000001") == (inner, True)


def test_what_is_missing_or_of_another_kind(store: Store) -> None:
    blob = store.repo.write_blob(b"x")
    for call in (store.repo.blob, store.repo.tree):
        with pytest.raises(StoreError, match="lacks the object"):
            call("1" * 40)
    with pytest.raises(StoreError, match="is not a tree"):
        store.repo.tree(blob)
    with pytest.raises(NotFoundError, match="is not a commit"):
        store.repo.commit(blob)
    with pytest.raises(StoreError):
        store.repo.commit("no id")
    assert not store.repo.has("1" * 40)


def test_a_damaged_object(store: Store) -> None:
    blob = store.repo.write_blob(b"x" * 1000)
    path = store.path / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"nonsense")
    with pytest.raises(StoreError):
        Store(store.path).repo.blob(blob)


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_whole_but_not_what_its_name_says(store: Store, git: Git, kind: str, packed: bool) -> None:
    """Bytes that git can unpack, under the name of others, are believed nowhere."""
    commits = commit(store, "one"), commit(store, "two")
    trees = tuple(store.commit(one).tree for one in commits)
    pads = tuple(store.repo.entry(tree, "pad/a") for tree in trees)
    blobs = tuple(pad[0] for pad in pads if pad)
    oid, other = {"blob": blobs, "tree": trees, "commit": commits}[kind]
    later = store.write_commit(oid, {}, Session("a41f", "a41f"), Message("y"), [oid], 2) if kind == "commit" else oid
    if packed:
        for number, one in enumerate((*commits, later) if kind == "commit" else commits):
            git("update-ref", f"refs/heads/{number}", one)
        git("repack", "-a", "-d", "-q")
        exchange(store.path, oid, other)
    else:
        path, theirs = (store.path / "objects" / one[:2] / one[2:] for one in (oid, other))
        path.chmod(0o644)
        path.write_bytes(theirs.read_bytes())
    repo = Store(store.path).repo
    readers: dict[str, list[Callable[[], object]]] = {
        "blob": [lambda: repo.blob(oid)],
        "tree": [
            lambda: repo.tree(oid), lambda: repo.entry(oid, "pad/a"), lambda: repo.files(oid),
            lambda: repo.irregular_entries(oid), lambda: repo.edit_tree(oid, {"b": None}),
        ],
        "commit": [
            lambda: repo.commit(oid), lambda: list(repo.first_parents(later)), lambda: list(repo.since([later], [])),
            lambda: repo.merge_bases(later, other), lambda: Store(store.path).state(oid),
        ],
    }  # fmt: skip
    for reader in readers[kind]:
        with pytest.raises(StoreError, match=f"mismatch - expected {oid} but got {other}"):
            reader()
    assert repo.read_problem(oid) == "damaged"
    assert (repo.blob(blobs[1]), repo.commit(commits[1]).tree) == (b"two", trees[1])


@pytest.mark.parametrize("length", [0, 1, 20, 100])
def test_a_history_ends_at_a_truncated_commit(store: Store, length: int) -> None:
    """libgit2's own reader never returns from it."""
    first = commit(store, "1")
    second = commit(store, "2", (first,))
    third = commit(store, "3", (second,))
    path = store.path / "objects" / second[:2] / second[2:]
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:length])
    signal.alarm(60)  # ends this process: a signal's handler in Python would have to wait as well
    try:
        repo = Store(store.path).repo
        for reader in (lambda: list(repo.since([third], [])), lambda: repo.merge_bases(first, third)):
            with pytest.raises(StoreError, match=f"{second}: Error -5 while decompressing"):
                reader()
        assert (repo.is_ancestor(first, third), repo.peel(second), repo.peel(third)) == (False, None, third)
    finally:
        signal.alarm(0)


def exchange(store: Path, oid: str, other: str) -> None:
    """Lets the index of the only pack give one object the place of another."""
    (index,) = (store / "objects/pack").glob("*.idx")
    index.chmod(0o600)
    data = bytearray(index.read_bytes())
    count = int.from_bytes(data[1028:1032])
    names = [data[at : at + 20].hex() for at in range(1032, 1032 + 20 * count, 20)]
    mine, theirs = (1032 + 24 * count + 4 * names.index(one) for one in (oid, other))
    data[mine : mine + 4] = data[theirs : theirs + 4]
    index.write_bytes(data)


# Refs


def test_moving_a_ref(store: Store, git: Git) -> None:
    one, two = commit(store, "1"), commit(store, "2")
    store.repo.move(REF, None, one)
    store.repo.move(REF, one, two)
    assert git("rev-parse", REF) == f"{two}\n"
    store.repo.move(REF, two, one)
    store.repo.move(REF, one, None)
    assert store.repo.ref(REF) is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_ref_moves_only_from_where_it_was_read(store: Store, git: Git, packed: bool) -> None:
    one, two, three = (commit(store, words) for words in "123")
    store.repo.move(REF, None, one)
    if packed:
        git("pack-refs", "--all")
    for old, new in ((None, two), (two, three), (two, None), (three, two)):
        with pytest.raises(MovedError):
            store.repo.move(REF, old, new)
    with pytest.raises(MovedError):
        store.repo.move("refs/heads/none", one, two)
    assert git("rev-parse", REF) == f"{one}\n"
    store.repo.move(REF, one, None)
    assert store.repo.ref(REF) is None


def test_a_ref_that_someone_is_just_moving_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one = commit(store, "1")
    lock = store.path / f"{REF}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    monkeypatch.setattr(time, "sleep", lambda _seconds: lock.unlink())  # that process is done meanwhile
    store.repo.move(REF, None, one)
    assert store.repo.ref(REF) == one


def test_a_failed_disk_is_no_rival_whatever_the_path(tmp_path: Path) -> None:
    stores.create_store(tmp_path / "locks")
    store = Store(tmp_path / "locks")
    one, two = commit(store, "1"), commit(store, "2")
    store.repo.move(REF, None, one)

    class Failing(backend.Repository):
        """The disk fails after the ref is in its place."""

        def _move(self, name: str, old: str | None, new: str | None) -> None:
            super()._move(name, old, new)
            raise OSError(5, "Input/output error", str(self.path))

    with pytest.raises(StoreError, match="was moved, but may not be saved to disk"):
        Failing(store.path).move(REF, one, two)


@pytest.mark.parametrize("words", ["", "failed to create locked file '{}.lock': File exists"])
def test_a_rival_that_makes_the_same_move_is_no_failed_disk(store: Store, words: str) -> None:
    """libgit2 meets the lock file when it looks for one, or just after, when it creates its own: it says so then."""
    one, two = commit(store, "1"), commit(store, "2")
    store.repo.move(REF, None, one)

    class Rivalled(backend.Repository):
        """Another process makes the same move after this one has read the ref, and still holds the lock file."""

        def _move(self, name: str, old: str | None, new: str | None) -> None:
            reference = self._repo.references[name]
            (self.path / name).write_text(f"{new}\n")
            (self.path / f"{name}.lock").touch()
            if words:
                raise OSError(words.format(self.path / name))
            reference.set_target(new)

    with pytest.raises(MovedError):
        Rivalled(store.path).move(REF, one, two)
    assert store.repo.ref(REF) == two


def test_a_lock_that_stays_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_LOCK_WAIT", 0.0001)
    monkeypatch.setattr(refs, "_STALE_SECONDS_ALONE", 3600.0)  # a busy machine can take longer than two seconds to try
    lock = store.path / f"{REF}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with pytest.raises(StoreError, match="lock") as error:
        store.repo.move(REF, None, commit(store))
    assert not isinstance(error.value, MovedError)


def test_a_name_that_can_be_no_ref(store: Store) -> None:
    with pytest.raises(StoreError):
        store.repo.move("refs/heads/a..b", None, commit(store))


# Reading a session


@pytest.fixture
def recorded(keep: Keep, store: Store) -> str:
    """The tip of a session of two turns, the second with a long string."""
    keep(Talk().turns("one").prompt("two").tool("Bash", {}, "naïve\n" * 900).answer("Two."), final=True)
    return branches(store)[SESSION]


def test_lines_come_back_with_their_long_strings(store: Store, recorded: str) -> None:
    lines = store.lines(recorded, 2)
    assert (len(lines.before), len(lines.body)) == (5, 5)
    assert b'"content":"na\xc3\xafve\\n' in lines.body[3]
    assert b"$text" in text(store, recorded, "turns/0000/000002/transcript.jsonl").encode()
    assert [cell.operation for cell in store.cells(recorded, 2)] == ["claude-test-1", "Bash", "claude-test-1"]
    with pytest.raises(NotFoundError, match="no turn 3"):
        store.lines(recorded, 3)


def test_many_turns_are_read_as_one_by_one(keep: Keep, store: Store) -> None:
    talk = Talk()
    for number in range(1, 401):
        talk.prompt(f"prompt {number}")
        if number == 300:
            talk.tool("Bash", {}, "naïve\n" * 900)
        talk.answer(f"Answer {number}.")
    keep(talk, final=True)
    tip = branches(store)[SESSION]
    numbers = [*range(1, 401), 7]
    assert [*Store(store.path).lines_of_turns(tip, numbers)] == [store.lines(tip, number) for number in numbers]
    with pytest.raises(NotFoundError, match="no turn 401"):
        next(store.lines_of_turns(tip, [*numbers, 401]))
    body = store.repo.write_blob(b'{"type":"user"}\n' * objects.LARGE_SIZE)  # git is not asked for one so large
    tree = store.repo.edit_tree(store.tree(tip), {"turns/0002/000250/transcript.jsonl": (body, False)})
    large = store.repo.write_commit(tree, [tip], "x", 1)
    counts = [len(lines.body) for lines in Store(store.path).lines_of_turns(large, numbers)]
    assert counts == [objects.LARGE_SIZE if number == 250 else len(store.lines(tip, number).body) for number in numbers]
    oid = store.folder(tip, 200)["transcript.jsonl"][0]
    file, read = store.path / "objects" / oid[:2] / oid[2:], list[TurnLines]()
    kept = file.rename(store.path.with_name("kept"))
    with pytest.raises(UnreadableError):
        read.extend(Store(store.path).lines_of_turns(tip, numbers))
    assert len(read) == 199
    kept.rename(file)


def test_a_text_of_two_names_is_read_once(keep: Keep, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = "\n".join(f"{n:>6}\tline {n} of a file, as long as lines are" for n in range(1, 201))
    plain = "\n".join(line[7:] for line in numbered.split("\n"))
    keep(Talk().prompt("read").tool("Read", {}, numbered).tool("Bash", {}, plain).answer("Both."), final=True)
    tip, read = branches(store)[SESSION], list[str]()
    names = store.repo.tree(store.folder(tip, 1)["texts"][0])
    blob = store.repo.blob
    monkeypatch.setattr(store.repo, "blob", lambda oid: read.append(oid) or blob(oid))
    assert len(store.lines(tip, 1).body) == 7
    assert (len(names), len({oid for oid, _ in names.values()})) == (4, 1)
    assert read.count(next(iter(names.values()))[0]) == 1


def test_a_missing_text_leaves_its_marker(store: Store, recorded: str) -> None:
    tree = store.repo.edit_tree(store.tree(recorded), {"turns/0000/000002/texts": None})
    bare = store.repo.write_commit(tree, [recorded], "x", 1)
    assert b'{"$text":"' in store.lines(bare, 2).body[3]


@pytest.mark.parametrize(
    ("version", "error", "match"),
    [
        (b"2\n", NewerStoreError, "in format 2, this sessgit knows format 1"),
        (b"x\n", DamageError, "has no known format"),
        (b"0\n", DamageError, "has no known format"),
        (None, DamageError, "has no known format"),
    ],
)
def test_the_format_is_read_first(
    store: Store, recorded: str, version: bytes | None, error: type[Exception], match: str
) -> None:
    entry = None if version is None else (store.repo.write_blob(version), False)
    changes = {"format": entry, "session.json": (store.repo.write_blob(b"not even JSON"), False)}
    other = store.repo.write_commit(store.repo.edit_tree(store.tree(recorded), changes), [], "x", 1)
    with pytest.raises(error, match=match):
        store.state(other)


def test_a_state_that_cannot_be_read(store: Store, recorded: str) -> None:
    for data in (b"{", b"[" * 100_000):
        tree = store.repo.edit_tree(store.tree(recorded), {"session.json": (store.repo.write_blob(data), False)})
        with pytest.raises(DamageError, match="is not JSON"):
            store.state(store.repo.write_commit(tree, [], "x", 1))
    tree = store.repo.edit_tree(store.tree(recorded), {"session.json": None})
    with pytest.raises(DamageError, match="has no session"):
        store.state(store.repo.write_commit(tree, [], "x", 1))


def test_plain_git_reads_it(git: Git, recorded: str) -> None:
    assert git("show", f"{SESSION}:turns/0000/000001/transcript.jsonl").startswith('{"parentUuid":null')
    assert git("log", "--format=%s", SESSION).splitlines() == [
        "end: 2 turns",
        "turn 2: two",
        "turn 1: one",
        "start: /home/ada/shop",
    ]
    assert git("log", "-1", "--format=%(trailers:key=Turn,valueonly,separator=)", f"{SESSION}~1") == "2\n"


# Beside the repository


def test_the_proof_of_original_bytes_is_this_stores_own(store: Store, tmp_path: Path) -> None:
    stores.create_store(tmp_path / "other")
    other = Store(tmp_path / "other")
    assert store.hmac([b"a", b"b"]) == store.hmac([b"ab"]) != other.hmac([b"ab"])


def test_private_files_are_put_in_place_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"old")
    path.chmod(0o644)
    private_files.write_private(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o600)
    assert [found.name for found in tmp_path.iterdir()] == ["key"]
    with pytest.raises(StoreError, match="cannot write"):
        private_files.write_private(tmp_path / "none" / "key", b"x")


def test_a_sessions_lock(store: Store) -> None:
    with locks.session_lock(store.paths, "a41f") as first, locks.session_lock(store.paths, "b") as other:
        assert first
        assert other
        started = time.monotonic()
        with locks.session_lock(store.paths, "a41f", timeout=0.05) as second:
            assert not second
        assert time.monotonic() - started >= 0.05
    with locks.session_lock(store.paths, "a41f") as again:
        assert again
    assert store.paths.lock("session-a41f").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("number", "path"), [(0, "turns/0000/000000"), (7, "turns/0000/000007"), (123456, "turns/1234/123456")]
)
def test_a_hundred_turns_a_folder(number: int, path: str) -> None:
    assert layout.turn_folder(number) == path


def test_packed_by_git_it_reads_the_same(store: Store, git: Git, recorded: str) -> None:
    before = store.lines(recorded, 2)
    git("repack", "-a", "-d", "-q")
    git("pack-refs", "--all")
    git("prune-packed")
    again = Store(store.path)
    assert again.lines(recorded, 2) == before
    assert branches(again) == {SESSION: recorded}
    assert git("count-objects").startswith("0 objects")
