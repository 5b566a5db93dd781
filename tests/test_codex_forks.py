"""Codex's forks and rewinds since 0.169, in files that have only their own turns and name the one before them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import conversation
from rollouts import THREAD, Rollout
from shell import Shell

from sessgit.record.imports import ImportProgress, run_import
from sessgit.store import store as stores
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.store import Store

FORK, SEGMENT, LATER = (f"01a20000-0000-7000-8000-00000000000{number}" for number in (2, 3, 4))


@pytest.fixture
def parent(sessgit: Shell) -> Rollout:
    made = Rollout(cwd=str(sessgit.project), paginated=True).turns("one")
    return made.start("two").call("ls", "a\n").end("seen").turns("three")


def save(sessgit: Shell, *made: Rollout) -> list[Path]:
    return [each.save(sessgit.home / ".codex") for each in made]


def rows(sessgit: Shell) -> dict[str, tuple[str | None, int | None, int]]:
    """The parent, the fork turn and the number of turns of each conversation."""
    found = sessgit.json("ls", "--all")["sessions"]
    return {row["id"]: (row["parent"], row["fork_turn"], row["turns"]) for row in found}


def sound(sessgit: Shell) -> None:
    done = sessgit("verify", "--deep")
    assert (done.code, "no damage" in done.out) == (0, True), done


def prompts(sessgit: Shell, session: str) -> list[str]:
    return [turn["prompt"] for turn in sessgit.json("log", session)["turns"]]


def test_a_fork_begins_with_the_turns_that_it_goes_on_from(sessgit: Shell, parent: Rollout) -> None:
    save(sessgit, parent, parent.fork(FORK, parent.ends[1]).turns("otherwise"))
    assert sessgit.out("import") == "2 conversations, 4 turns imported\n"
    assert rows(sessgit) == {THREAD: (None, None, 3), FORK: (THREAD, 2, 3)}
    assert prompts(sessgit, FORK) == ["one", "two", "otherwise"]
    assert "from 01a20000" in sessgit.out("log", FORK)
    sound(sessgit)


def test_the_segment_after_a_rewind(sessgit: Shell, parent: Rollout) -> None:
    """And a fork of it, which names the segment; each goes on after the fork was recorded."""
    segment = parent.rewound(SEGMENT, parent.ends[0]).turns("otherwise")
    fork = segment.fork(FORK)
    save(sessgit, fork, segment, parent)
    sessgit.out("import")
    assert rows(sessgit) == {THREAD: (None, None, 3), SEGMENT: (THREAD, 1, 2), FORK: (SEGMENT, 2, 2)}
    save(sessgit, fork.turns("in the fork"), segment.turns("and on"))
    assert prompts(sessgit, FORK) == ["one", "otherwise", "in the fork"]
    assert prompts(sessgit, SEGMENT) == ["one", "otherwise", "and on"]
    assert rows(sessgit)[FORK] == (SEGMENT, 2, 3)
    assert f"codex resume {THREAD}" in sessgit.out("resume", SEGMENT, "--print")
    sound(sessgit)


def test_a_fork_of_a_turn_that_was_open(sessgit: Shell, parent: Rollout) -> None:
    """The client forks a turn that another process still writes: then the fork has its first lines only."""
    save(sessgit, parent, parent.fork(FORK, parent.ends[1] - 3).turns("otherwise"))
    sessgit.out("import")
    assert rows(sessgit)[FORK] == (THREAD, 2, 3)
    assert "seen" in sessgit.out("show", f"{THREAD}@2")
    shown = sessgit.out("show", f"{FORK}@2")
    assert "exec_command  ls" in shown and "seen" not in shown
    sound(sessgit)


def test_restoring_a_fork_restores_what_it_goes_on_from(sessgit: Shell, parent: Rollout) -> None:
    paths = save(sessgit, parent, parent.fork(FORK, parent.ends[1]).turns("otherwise"))
    sessgit.out("import")
    data = [path.read_bytes() for path in paths]
    for gone in (paths[1:], paths):
        for path in gone:
            path.unlink()
        done = sessgit("restore", FORK)
        assert "byte for byte as the client wrote it" in done.out, done
        assert ("The conversation that it goes on from was restored, too" in done.err) == (len(gone) == 2)
        assert [path.read_bytes() for path in paths] == data


@pytest.mark.parametrize("way", ["redacted", "deleted", "shorter"])
def test_a_fork_is_restored_in_full_where_its_base_is_not_what_it_was(
    sessgit: Shell, parent: Rollout, way: str
) -> None:
    if way == "redacted":
        parent = Rollout(cwd=str(sessgit.project), paginated=True).turns("use AKIAIOSFODNN7EXAMPLQ", "two")
    first, path = save(sessgit, parent, parent.fork(FORK, parent.ends[1]).turns("otherwise"))
    sessgit.out("import")
    path.unlink()
    if way == "shorter":
        first.write_bytes(first.read_bytes()[:-4_000])
    else:
        first.unlink()
    if way == "deleted":
        sessgit.out("delete", THREAD, "--yes")
    done = sessgit("restore", FORK)
    assert "its shared beginning, which was rewritten" in " ".join(done.out.split()), done
    assert first.exists() == (way == "shorter")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    metas = [line["payload"] for line in lines if line["type"] == "session_meta"]
    assert [(meta["id"], meta.get("history_base")) for meta in metas] == [(FORK, None)]
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    again = Rollout(FORK, cwd=str(sessgit.project), paginated=True)
    again.lines, again.ends = path.read_bytes().splitlines(), [0] * 9
    path.write_bytes(again.turns("and on").data)
    assert prompts(sessgit, FORK)[1:] == ["two", "otherwise", "and on"]
    sound(sessgit)


def test_a_fork_of_ours_is_laid_out_in_full(sessgit: Shell, parent: Rollout) -> None:
    save(sessgit, parent, parent.fork(FORK, parent.ends[1]).turns("otherwise"))
    sessgit.out("import")
    fork = sessgit.json("fork", FORK)["id"]
    (path,) = (sessgit.home / ".codex").glob(f"sessions/*/*/*/*{fork}.jsonl")
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line["ordinal"] for line in lines] == list(range(len(lines)))
    assert [line["payload"].get("id") for line in lines if line["type"] == "session_meta"] == [fork]
    sound(sessgit)


def test_a_file_that_lacks_turns_gets_them(sessgit: Shell, parent: Rollout) -> None:
    fork = parent.fork(FORK, parent.ends[1]).turns("otherwise", "and on")
    _, path = save(sessgit, parent, fork)
    sessgit.out("import")
    path.write_bytes(b"".join(line + b"\n" for line in fork.lines[: fork.ends[0]]))
    assert sessgit("restore", FORK).err == "The client's file lacked 1 turn, now appended.\n"
    assert path.read_bytes() == fork.data


def test_a_merge_into_a_fork(sessgit: Shell, parent: Rollout) -> None:
    fork = parent.fork(FORK, parent.ends[1]).turns("otherwise")
    _, path = save(sessgit, parent, fork)
    sessgit.out("import")
    sessgit.out("merge", THREAD, "--into", FORK, "--mode", "graft")
    assert prompts(sessgit, FORK) == ["one", "two", "otherwise", "three"]
    added = [json.loads(line) for line in path.read_bytes().removeprefix(fork.data).splitlines()]
    start = fork.first + len(fork.lines)
    assert [line["ordinal"] for line in added] == list(range(start, start + len(added)))
    sound(sessgit)


# What is not as it should be


def test_what_a_fork_goes_on_from_is_missing(sessgit: Shell, parent: Rollout) -> None:
    """Then it has only its own turns, and comes back as it was."""
    (path,) = save(sessgit, parent.fork(FORK, parent.ends[1]).turns("otherwise"))
    sessgit.out("import")
    assert rows(sessgit) == {FORK: (None, None, 1)}
    data = path.read_bytes()
    path.unlink()
    sessgit.out("restore", FORK)
    assert path.read_bytes() == data
    sound(sessgit)


@pytest.mark.parametrize("way", ["import", "command"])
def test_what_a_fork_goes_on_from_is_recorded_later(sessgit: Shell, parent: Rollout, way: str) -> None:
    """Then it joins that, as if it had been there, with its name."""
    fork = parent.fork(FORK, parent.ends[1]).turns("otherwise")
    save(sessgit, fork)
    sessgit.out("import")
    sessgit.out("rename", FORK, "another way")
    sessgit.out("edit", FORK, "--label", "try")
    save(sessgit, parent, fork.turns("and on") if way == "command" else fork)
    sessgit.out("import", *(["--id", THREAD] if way == "command" else []))
    assert sessgit.out("log", FORK)
    (row,) = (row for row in sessgit.json("ls", "--all")["sessions"] if row["id"] == FORK)
    assert (row["parent"], row["fork_turn"], row["name"], row["labels"]) == (THREAD, 2, "another way", ["try"])
    assert prompts(sessgit, FORK) == ["one", "two", "otherwise", *(["and on"] if way == "command" else [])]
    save(sessgit, fork.turns("later"))
    assert prompts(sessgit, FORK)[-1] == "later"
    sound(sessgit)
    path = save(sessgit, fork)[0]
    path.unlink()
    sessgit.out("restore", FORK)
    assert path.read_bytes() == fork.data


@pytest.mark.parametrize("way", ["tag", "fork", "merge"])
def test_a_fork_stays_as_it_is_if_something_depends_on_it(sessgit: Shell, parent: Rollout, way: str) -> None:
    fork = parent.fork(FORK, parent.ends[1]).turns("otherwise")
    save(sessgit, fork)
    sessgit.out("import")
    if way == "tag":
        sessgit.out("tag", "here", f"{FORK}@1")
    elif way == "fork":
        sessgit.out("fork", FORK)
    else:
        save(sessgit, Rollout(LATER, cwd=str(sessgit.project), paginated=True).turns("other"))
        sessgit.out("import")
        sessgit.out("merge", LATER, "--into", FORK)
    save(sessgit, parent)
    sessgit.out("import")
    assert rows(sessgit)[FORK][:2] == (None, None)
    sound(sessgit)


def test_what_a_fork_goes_on_from_is_shorter(sessgit: Shell, parent: Rollout) -> None:
    fork = parent.fork(FORK).turns("otherwise")
    del parent.lines[parent.ends[0] :]
    save(sessgit, parent, fork)
    sessgit.out("import")
    assert rows(sessgit) == {THREAD: (None, None, 1), FORK: (THREAD, 1, 2)}
    sound(sessgit)


def test_a_cycle(sessgit: Shell, parent: Rollout) -> None:
    one, two = parent.fork(THREAD, 9).turns("one"), parent.fork(FORK, 9).turns("two")
    one.lines[0] = one.lines[0].replace(f'"thread_id":"{THREAD}"'.encode(), f'"thread_id":"{FORK}"'.encode())
    itself = parent.fork(SEGMENT, 9).turns("three")
    itself.lines[0] = itself.lines[0].replace(THREAD.encode(), SEGMENT.encode())
    paths = save(sessgit, one, two, itself)
    sessgit.out("import")
    assert sorted(row[2] for row in rows(sessgit).values()) in ([1, 1, 1], [1, 1, 2])
    data = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    assert sessgit("restore", "--all-lost").code == 0
    assert [path.read_bytes() for path in paths] == data
    sound(sessgit)


def test_what_is_not_recorded_is_no_base(sessgit: Shell, parent: Rollout) -> None:
    """A project that is off stays out of the store, whatever goes on from it."""
    elsewhere = sessgit.home / "secret"
    elsewhere.mkdir()
    parent = Rollout(cwd=str(elsewhere), paginated=True).turns("one", "two")
    fork = parent.fork(FORK).turns("otherwise")
    fork.lines = [line.replace(str(elsewhere).encode(), str(sessgit.project).encode()) for line in fork.lines]
    save(sessgit, parent, fork)
    sessgit.out("off", str(elsewhere))
    sessgit.out("import", "--id", FORK)
    assert rows(sessgit) == {FORK: (None, None, 1)}


# A law


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_the_order_of_files_does_not_matter(data: st.DataObject) -> None:
    """A family of rollouts is the same whether it is imported at once, or file by file in any order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        family = [Rollout(cwd="/home/ada/shop", paginated=True).turns("one", "two")]
        for number in range(2, data.draw(st.integers(3, 6))):
            base = data.draw(st.sampled_from(family))
            lines = data.draw(st.sampled_from([*base.ends, None]))
            thread = f"01a20000-0000-7000-8000-{number:012}"
            family.append(data.draw(st.sampled_from([base.fork, base.rewound]))(thread, lines).turns("on", "and on"))
        paths = [each.save(folder / "codex") for each in family]
        order = data.draw(st.permutations(paths))
        stored = [_imported(folder / "once", folder, [paths]), _imported(folder / "each", folder, [[p] for p in order])]
        assert stored[0] == stored[1]
        if all(b'"thread_id":"%s"' % family[0].id.encode() in each.lines[0] for each in family[1:]):
            for path in paths:  # a fork that others go on from stays as it is
                path.rename(folder / path.name)
            assert _imported(folder / "later", folder, [[path] for path in order], folder) == stored[0]


def _imported(place: Path, folder: Path, steps: list[list[Path]], appear_from: Path | None = None) -> object:
    """Import step by step; each file may appear only then, and after the last step all are imported again."""
    stores.create_store(place)
    store = Store(place)
    index = Index(store.path, lambda: store)
    context = Context(index, Homes({"codex": folder / "codex", "claude": folder / "claude"}))
    for paths in [*steps, *([[path for some in steps for path in some]] if appear_from else [])]:
        for path in paths if appear_from else ():
            if not path.exists():
                (appear_from / path.name).rename(path)
        assert not run_import(context, paths, ImportProgress()).errors
    index.close()
    return conversation(store)
