"""`log --at-op` and `tree --at-op`: the store as it was when an operation had been done."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import example, given
from hypothesis import strategies as st
from kept import begins
from plain import run_git
from shell import NOW, Shell
from test_cold import loaded
from transcripts import BIRTH, SESSION, Talk

from sessgit.branch import archive, delete, edit, fork, undo
from sessgit.cli import completion
from sessgit.errors import ConflictError, MovedError, NotFoundError
from sessgit.history import at_operation, resolve
from sessgit.history.resolve import CallerContext
from sessgit.model.conversation.message import Message
from sessgit.model.conversation.session import Session
from sessgit.model.ids import Address
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import operations, refs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.operations import Move, Operation
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

OTHER, THIRD, YOUNG = (f"{start}-0000-4000-8000-000000000003" for start in ("e90c55aa", "77be01d3", "0b2d7f10"))

# The law


@dataclass
class World:
    """A store with conversations that go on, and what its refs held after each operation."""

    store: Store
    index: Index
    config: Path
    now: float = BIRTH.timestamp()
    talks: dict[str, Talk] = field(default_factory=dict)
    after: dict[str, object] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def do(self, step: tuple[str, int, int]) -> None:
        self.now += 60
        self.index.sync()
        what, which, turn = step
        sessions = sorted(refs.branches(self.store.path))
        sessions = [name for name in sessions if "." not in name]
        if what == "begin" or not sessions:
            self.begin()
            return
        session = sessions[which % len(sessions)]
        operation = getattr(self, what)(session, turn)
        if operation is not None:
            self.after[operation.id] = self.held()

    def held(self) -> object:
        return refs.branches(self.store.path), refs.tags(self.store.path)

    # Recordings

    def begin(self) -> None:
        talk = Talk(f"5e551011-0000-4000-8000-{next(self.numbers):012d}")
        self.talks[talk.session] = talk
        self.say(talk.session, -1)

    def say(self, session: str, turn: int) -> Operation | None:
        """A turn, after a rewind where `turn` is a number of one."""
        talk = self.talks.get(session)
        if talk is None:
            return None
        if 0 <= turn < len(talk.prompts):
            talk.rewind(turn)
        talk.file.seconds = int(self.now - BIRTH.timestamp())
        path = talk.turns(f"at {talk.file.seconds}").save(self.config / "projects" / "-home-ada-shop")
        done = None
        if session in refs.deleted_sessions(self.store.path):
            operations.drop_tombstone(self.store, session, self.now + 30)
            done = operations.list_operations(self.store)[0].operation
        elif refs.branches(self.store.path, session).get(session, ("", False))[1]:
            done = archive.bring_back(Context(self.index, now=lambda: self.now + 30), session).operation
        source = TranscriptSource(path, session, self.config, final=True)
        if done is not None and done.command == operations.BACKGROUND:
            self.after[done.id] = self.held()
            done = None
        record(Context(self.index, privacy=Privacy(RecordConfig("turn", False))), source)
        return done

    # Operations

    def go_on(self, session: str, turn: int) -> None:
        del turn
        self.say(session, -1)

    def rewind(self, session: str, turn: int) -> None:
        self.say(session, turn)

    def again(self, session: str, turn: int) -> Operation | None:
        """A conversation that was deleted is gone on with."""
        gone = sorted(refs.deleted_sessions(self.store.path))
        return self.say(gone[turn % len(gone)], -1) if gone else None

    def rename(self, session: str, turn: int) -> Operation | None:
        done = edit.edit_session(
            Context(self.index, now=lambda: self.now), session, edit.EditChanges(stage=("shaping", "")[turn % 2])
        )
        return operations.list_operations(self.store)[0].operation if done.commit else None

    def tag(self, session: str, turn: int) -> Operation | None:
        found = self.target(session, turn)
        done = edit.tag_turn(Context(self.index, now=lambda: self.now), f"t{turn % 3}", found, self.where, force=True)
        return operations.list_operations(self.store)[0].operation if done.changed else None

    def fork(self, session: str, turn: int) -> Operation:
        found = self.target(session, turn)
        point = resolve.fork_point(Context(self.index), found)
        new = f"f{next(self.numbers):07d}-0000-4000-8000-{'f' * 12}"
        fork.fork_session(self.store, found.state, point, fork.ForkPlan(new, "", self.now, None))
        self.index.sync()
        return operations.list_operations(self.store)[0].operation

    def archive(self, session: str, turn: int) -> Operation | None:
        del turn
        return archive.archive(
            Context(self.index, homes=claude_homes(self.config), privacy=self.privacy, now=lambda: self.now), [session]
        ).operation

    def unarchive(self, session: str, turn: int) -> Operation | None:
        del turn
        return archive.unarchive(Context(self.index, now=lambda: self.now), [session]).operation

    def delete(self, session: str, turn: int) -> Operation:
        del turn
        return delete.delete_sessions(
            Context(self.index, now=lambda: self.now),
            delete.plan_deletion(self.index, [session], claude_homes(self.config)),
        )

    def undo(self, session: str, turn: int) -> Operation | None:
        """The last operation, or one before it, taken back."""
        del session
        every = [one for one in operations.list_operations(self.store) if one.standing == "done"]
        with suppress(ConflictError, NotFoundError):
            if every:
                wanted = every[turn % min(3, len(every))].operation.id
                return undo.undo_operation(self.store, wanted, claude_homes(self.config), self.now).undo
        return None

    @property
    def where(self) -> CallerContext:
        return CallerContext(claude_homes(self.config), "/home/ada/shop", 1)

    @property
    def privacy(self) -> Privacy:
        return Privacy(RecordConfig(), "/home/ada")

    def target(self, session: str, turn: int) -> resolve.ResolvedTarget:
        self.index.sync()
        found = resolve.resolve_target(self.index, Address(session), self.where)
        return resolve.resolve_target(self.index, Address(session, 1 + turn % max(1, found.state.turns)), self.where)


_STEPS = [
    "begin", "go_on", "go_on", "rewind", "again", "rename", "tag", "fork", "archive", "unarchive", "delete", "undo",
]  # fmt: skip


_CONTINUED = [
    ("begin", 0, 0), *[("go_on", 0, 0)] * 3, ("rewind", 0, 0), ("rewind", 0, 1), ("rename", 0, 0), ("rewind", 0, 4),
]  # fmt: skip
"""A rewound branch goes on, and its name of then is no branch's any more."""


@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=20))
@example(_CONTINUED)
@example([("begin", 0, 0), ("rewind", 0, 0), ("archive", 0, 0), ("rewind", 0, 1)])
def test_what_is_found_of_then_is_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("world")
    stores.create_store(folder / "store")
    store = Store(folder / "store")
    world = World(store, Index(store.path, lambda: store), folder / "claude")
    for step in steps:
        world.do(step)
    world.index.sync()
    before = refs.read_all(store.path)
    for operation, held in world.after.items():
        found = at_operation.as_of_operation(Context(world.index), operation)
        assert (found.tips, found.tags) == held, found.operation.summary
        assert found.lost == ()
    assert refs.read_all(store.path) == before
    world.index.close()


def test_a_head_from_another_machine_that_was_set_apart_since(store: Store, index: Index, tmp_path: Path) -> None:
    def recorded(into: Store, seen: Index, folder: str, *words: str) -> None:
        path = Talk(SESSION).turns("one", *words).save(tmp_path / folder / "projects" / "-home-ada-shop")
        record(
            Context(seen, privacy=Privacy(RecordConfig("turn", False))),
            TranscriptSource(path, SESSION, tmp_path / folder),
        )

    recorded(store, index, "here")
    shutil.copytree(store.path, tmp_path / "theirs")
    (tmp_path / "theirs" / "state" / f"{SESSION}.json").unlink()
    theirs = Store(tmp_path / "theirs")
    recorded(theirs, Index(theirs.path, lambda: theirs), "there", "two", "three")
    run_git(store.path, "fetch", "-q", str(theirs.path), f"refs/heads/{SESSION}:refs/fetched")
    old, new = (refs.read_all(store.path)[name] for name in (f"refs/heads/{SESSION}", "refs/fetched"))
    done = operations.perform_operation(
        store, "pull", "pull", [Move(f"refs/heads/{SESSION}", old, new)], BIRTH.timestamp() + 60
    )
    tagged = operations.perform_operation(store, "tag", "tag", [Move("refs/tags/x", None, old)], BIRTH.timestamp() + 90)
    talk = Talk(SESSION).turns("one")
    talk.file.seconds, talk.file.counts["a"] = 120, 5
    path = talk.turns("other").save(tmp_path / "here" / "projects" / "-home-ada-shop")
    record(
        Context(index, privacy=Privacy(RecordConfig("turn", False))), TranscriptSource(path, SESSION, tmp_path / "here")
    )
    assert sorted(refs.branches(store.path)) == [SESSION, f"{SESSION}.m-a0000002"]
    index.sync()
    for operation in (done, tagged):
        assert at_operation.as_of_operation(Context(index), operation.id).tips == {SESSION: (new, False)}


def test_a_turn_that_has_grown_since(store: Store, index: Index, tmp_path: Path) -> None:
    talk, folder = Talk(SESSION).turns("one").prompt("two").tool("Read"), tmp_path / "claude"

    def recorded() -> str:
        source = TranscriptSource(talk.save(folder / "projects" / "-home-ada-shop"), SESSION, folder)
        return record(Context(index, privacy=Privacy(RecordConfig("turn", False))), source).head

    def tagged(name: str, tip: str) -> str:
        moves = [Move(f"refs/tags/{name}", None, tip)]
        return operations.perform_operation(store, "tag", "tag", moves, BIRTH.timestamp() + talk.file.seconds).id

    first = recorded()
    before = tagged("before", first)
    talk.answer("Done.").stop_lines()
    second = recorded()
    after = tagged("after", second)
    talk.turns("three")
    recorded()
    index.sync()
    assert [at_operation.as_of_operation(Context(index), one).tips[SESSION][0] for one in (before, after)] == [
        first,
        second,
    ]
    assert [store.state(tip).turns for tip in (first, second)] == [2, 2]


def test_an_end_that_is_no_time(store: Store, index: Index) -> None:
    state = Session(SESSION, SESSION, ended="half \ud800", state="ended")
    message = Message("end: 0 turns", (("Session", SESSION), ("Event", "end")))
    tip = store.write_commit(None, {}, state, message, [], int(BIRTH.timestamp()))
    moves = [Move(f"refs/heads/{SESSION}", None, tip)]
    done = operations.perform_operation(store, "fork", "x", moves, BIRTH.timestamp() + 60)
    index.sync()
    assert at_operation.as_of_operation(Context(index), done.id).tips == {SESSION: (tip, False)}


# The pages


@begins
def pair(shell: Shell) -> None:
    """Two conversations, of which the second left the first, and one operation."""
    first = shell.talk().turns("one", "two")
    second = first.fork_session(OTHER)
    shell.recorded(first.turns("three"), second.turns("instead"))
    shell.out("rename", SESSION, "parser")


@dataclass
class Seen:
    """What pages were like after an operation, and how they begin when they are asked for again."""

    operation: str
    pages: dict[tuple[str, ...], str]

    def check(self, sessgit: Shell, *notes: str) -> None:
        summary = next(one["summary"] for one in sessgit.json("ops")["operations"] if one["id"] == self.operation)
        for arguments, page in self.pages.items():
            line, _, rest = sessgit.out(*arguments, "--at-op", self.operation).partition("\n")
            assert line.startswith(f"As of 13:00, after “{summary[:20]}"), arguments
            assert line.endswith(f"” ({', '.join(notes)})"), arguments
            assert rest == page, arguments
            if "--graph" not in arguments:
                document = json.loads(sessgit.out(*arguments, "--json", "--at-op", self.operation))
                assert (document["at_op"]["id"], document["at_op"]["summary"]) == (self.operation, summary)


def seen(sessgit: Shell, *sessions: str) -> Seen:
    logs = [("log", session, *more) for session in sessions for more in ((), ("--rewound",), ("--graph",))]
    pages = {arguments: sessgit.out(*arguments) for arguments in [*logs, ("tree",), ("tree", "--all")]}
    return Seen(sessgit.json("ops")["operations"][0]["id"], pages)


def go_on(sessgit: Shell, talk: Talk, *words: str) -> None:
    """Turns a minute after the operations, recorded because `log` is asked for."""
    talk.file.seconds = int(NOW + 60 - BIRTH.timestamp())
    sessgit.keep(talk.turns(*words))
    sessgit.now = NOW + 120
    assert sessgit("log", talk.session).code == 0
    sessgit.now = NOW


def talk_again(sessgit: Shell) -> Talk:
    return sessgit.talk().turns("one", "two", "three")


def test_the_log_before_a_fork(pair: Shell) -> None:
    before = pair.json("ops")["operations"][0]["id"]
    pair.out("fork", "parser", "--at", "2", "--name", "by hand")
    assert (
        pair.out("log", SESSION)
        == """\
5e551011  parser  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens

● 3  10:00  three                                                            160
            About three.
├─   11:00  ↳ e90c55aa  one
├─   13:00  ↳ f0000001  by hand
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    )
    assert (
        pair.out("log", "parser", "--at-op", before[:4])
        == """\
As of 13:00, after “5e551011: name “parser”” (1 operation ago)
5e551011  parser  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens

● 3  10:00  three                                                            160
            About three.
├─   11:00  ↳ e90c55aa  one
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    )
    done = pair("log", "by hand", "--at-op", before)
    assert (done.code, done.err) == (
        4,
        "Error: f0000001 did not exist after “5e551011: name “parser””.\n"
        "Hint: `sessgit log f0000001` shows it as it is now.\n",
    )


def test_the_tree_before_a_merge(pair: Shell) -> None:
    before = seen(pair, SESSION, OTHER)
    pair.out("merge", OTHER, "--into", SESSION)
    assert "merged into" in pair.out("tree")
    merged = seen(pair, SESSION, OTHER)
    before.check(pair, "1 operation ago")
    pair.out("rename", OTHER, "lexer")
    merged.check(pair, "1 operation ago")


def test_a_pick_is_not_there_before_it(pair: Shell) -> None:
    before = seen(pair, SESSION)
    pair.out("pick", f"{OTHER}@3", "--into", SESSION)
    before.check(pair, "1 operation ago")


def test_what_was_archived_and_deleted_since(pair: Shell) -> None:
    before = seen(pair, SESSION, OTHER)
    pair.out("archive", OTHER)
    archived = seen(pair, SESSION, OTHER)
    pair.out("delete", "--yes", OTHER)
    deleted = seen(pair, SESSION)
    before.check(pair, "2 operations ago")
    archived.check(pair, "1 operation ago")
    deleted.check(pair, "the last operation")
    assert pair("log", OTHER, "--at-op", deleted.operation).code == 4
    # What is undone was there once, and what undid it too.
    pair.out("undo")
    undone = seen(pair, SESSION, OTHER)
    pair.out("unarchive", OTHER)
    before.check(pair, "4 operations ago")
    archived.check(pair, "3 operations ago")
    deleted.check(pair, "2 operations ago", "undone since")
    undone.check(pair, "1 operation ago")


def test_turns_that_were_recorded_since(pair: Shell) -> None:
    before = seen(pair, SESSION, OTHER)
    pair.recorded(pair.talk(THIRD).turns("else"))
    imported = pair.out("tree", "--all")
    talk = talk_again(pair)
    go_on(pair, talk, "four")
    pair.out("tag", "here", SESSION)
    go_on(pair, talk, "five")
    young = pair.talk(YOUNG)
    young.file.born = datetime.fromtimestamp(NOW + 60, UTC)
    pair.recorded(young.turns("young"))
    for arguments in (("log", SESSION), ("log", SESSION, "--rewound"), ("log", OTHER)):
        done = pair.out(*arguments, "--at-op", before.operation)
        assert done.partition("\n")[2] == before.pages[arguments]
    # An old conversation that was imported since is shown as if it had been there, a young one is not.
    assert pair.out("tree", "--all", "--at-op", before.operation).partition("\n")[2] == imported
    assert pair("log", YOUNG, "--at-op", before.operation).code == 4
    assert [turn["prompt"] for turn in pair.json("log", SESSION)["turns"]][3:] == ["four", "five"]


def test_a_rewind_since(pair: Shell) -> None:
    talk = talk_again(pair)
    talk.rewind(2)
    go_on(pair, talk, "instead of three")
    first = pair.json("ops")["operations"][0]["id"]
    assert [one["standing"] for one in pair.json("ops")["operations"]] == [
        "done"
    ]  # what it left is on the other branch
    assert (
        pair.out("log", SESSION, "--rewound", "--at-op", first)
        == """\
As of 13:00, after “5e551011: name “parser”” (the last operation)
5e551011  parser  ·  ~/shop  ·  claude-test-1  ·  3 turns, 480 tokens

● 3  10:00  three                                                            160
            About three.
├─   11:00  ↳ e90c55aa  one
● 2  10:00  two                                                              160
            About two.
● 1  10:00  one                                                              160
            About one.
"""
    )
    pair.now = NOW + 180
    pair.out("edit", SESSION, "--label", "new")
    left = {arguments: pair.out(*arguments) for arguments in (("log", SESSION, "--rewound"), ("tree",))}
    second = pair.json("ops")["operations"][0]["id"]
    # Back to what the rewind had left: the two change places.
    talk.file.seconds = int(NOW + 240 - BIRTH.timestamp())
    talk.rewind(3)
    pair.keep(talk.turns("go on with three"))
    assert pair("log", SESSION).code == 0
    for arguments, page in left.items():
        assert pair.out(*arguments, "--at-op", second).partition("\n")[2] == page
    assert sorted(refs.branches(pair.store, SESSION)) == [SESSION, f"{SESSION}.r-a0000004"]


def test_names_and_tags_of_then(pair: Shell) -> None:
    before = seen(pair, SESSION, "parser")
    pair.out("tag", "here", f"{SESSION}@1")
    pair.out("tag", "there", f"{SESSION}@1")
    tagged = seen(pair, SESSION, "here")
    assert "here" in tagged.pages["log", "here"]
    pair.out("tag", "here", f"{SESSION}@2", "--force")
    pair.out("tag", "-d", "there")
    pair.out("rename", SESSION, "lexer")
    before.check(pair, "5 operations ago")
    tagged.check(pair, "3 operations ago")
    assert pair("log", "parser").code == 4
    assert pair("log", "here", "--at-op", before.operation).code == 4


def test_the_last_operation_is_now(parser: Shell) -> None:
    """The law: with nothing done since, a page is that of now, but for its first line."""
    last = parser.json("ops")["operations"][0]["id"]
    for arguments in (
        ("log", SESSION), ("log", SESSION, "--rewound"), ("log", "by hand", "-p"), ("log", "by cell"),
        ("log", SESSION, "--graph", "--rewound"), ("log", f"{SESSION}@2", "--reverse"),
        ("log", SESSION, "--tool", "Bash"), ("log", f"{SESSION}.r-a000"), ("tree",), ("tree", SESSION),
        ("tree", "--all", "-n", "1"),
    ):  # fmt: skip
        first, _, rest = parser.out(*arguments, "--at-op", last).partition("\n")
        assert first == "As of 13:00, after “f0000003: fork of 5e551011@2.3” (the last operation)"
        assert rest == parser.out(*arguments)
        if "--graph" not in arguments:
            now = json.loads(parser.out(*arguments, "--json"))
            then = json.loads(parser.out(*arguments, "--json", "--at-op", last))
            assert then.pop("at_op") == {
                "id": last, "time": "2026-03-01T13:00:00.000Z", "command": "fork",
                "summary": "f0000003: fork of 5e551011@2.3", "standing": "done", "later": 0, "lost": [],
            }  # fmt: skip
            assert now.pop("at_op") is None
            assert now == then


def test_addresses_are_found_in_a_line_each(pair: Shell) -> None:
    last = pair.json("ops")["operations"][0]["id"]
    done = pair("log", "parser", "--oneline", "--at-op", last)
    assert done.out == pair.out("log", "parser", "--oneline")
    assert done.err == "As of 13:00, after “5e551011: name “parser”” (the last operation)\n"


def test_at_60_columns(pair: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    pair.out("rename", SESSION, "a parser that is made of tables and of nothing else")
    last = pair.json("ops")["operations"][0]["id"]
    assert pair.out("log", OTHER, "--at-op", last).splitlines()[0] == (
        "As of 13:00, after “5e551011: name “a…” (the last operation)"
    )


# What cannot be shown


def test_no_such_operation(pair: Shell) -> None:
    pair.out("tag", "here", SESSION)
    for command in ("log", "tree"):
        done = pair(command, "--at-op", "zzzz")
        assert (done.code, done.err) == (
            4,
            "Error: there is no operation “zzzz”.\nHint: `sessgit ops` lists the operations.\n",
        )
    data = StorePaths(pair.store).journal.read_bytes()
    ids = [one["id"] for one in pair.json("ops")["operations"]]
    StorePaths(pair.store).journal.write_bytes(
        data.replace(ids[0].encode(), b"abcd0000").replace(ids[1].encode(), b"abcd1111")
    )
    done = pair("log", SESSION, "--at-op", "abcd")
    assert (done.code, done.err) == (
        4,
        "Error: “abcd” matches 2 operations.\nHint: `sessgit ops` lists the operations.\n",
    )


def test_an_operation_that_was_never_done(pair: Shell) -> None:
    store = Store(pair.store)
    tip = str(store.repo.ref(f"refs/heads/{SESSION}"))
    with pytest.raises(MovedError):
        operations.perform_operation(store, "edit", "x", [Move(f"refs/heads/{OTHER}", tip, tip)], NOW)
    done = pair("tree", "--at-op", pair.json("ops")["operations"][0]["id"])
    assert (done.code, done.err) == (3, "Error: “x” was never completed.\nHint: `sessgit ops` lists all operations.\n")
    before = pair.json("ops")["operations"][1]["id"]
    assert pair.out("log", SESSION, "--at-op", before).startswith(
        "As of 13:00, after “5e551011: name “parser”” (the last operation)\n"
    )


def test_what_was_pruned_is_gone(pair: Shell) -> None:
    before = pair.json("ops")["operations"][0]["id"]
    pair.out("delete", "--yes", OTHER)
    assert pair("gc", "--prune", "--yes").code == 0
    done = pair("log", OTHER, "--at-op", before)
    assert (done.code, done.err) == (
        4,
        f"Error: {OTHER[:8]} as it was then was deleted for good.\n"
        "Hint: `sessgit gc --prune` made the deletion final.\n",
    )
    assert (
        pair.out("tree", "--at-op", before)
        == """\
As of 13:00, after “5e551011: name “parser”” (1 operation ago)
Not shown: 1 conversation deleted for good by sessgit gc --prune.
● 5e551011  parser         3 turns  2h ago
1 conversation.
"""
    )
    assert pair.json("tree", "--at-op", before)["at_op"]["lost"] == [OTHER]
    short = OTHER[: resolve.SHORTEST_PREFIX - 1]  # too short to name a conversation, also one that is gone
    assert "was deleted for good" not in pair("log", short, "--at-op", before).err
    assert "was deleted for good" in pair("log", OTHER[: resolve.SHORTEST_PREFIX], "--at-op", before).err


def test_nothing_is_recorded_or_written_for_it(pair: Shell) -> None:
    last = pair.json("ops")["operations"][0]["id"]
    talk = talk_again(pair).turns("four")
    pair.keep(talk)
    held, rows = refs.read_all(pair.store), dump(pair)
    assert "four" not in pair.out("log", SESSION, "--at-op", last)
    pair.out("tree", "--at-op", last)
    assert (refs.read_all(pair.store), dump(pair)) == (held, rows)
    assert "four" in pair.out("log", SESSION)


def test_a_damaged_index_is_made_anew(pair: Shell) -> None:
    page = seen(pair, SESSION)
    pair.out("rename", SESSION, "other")
    StorePaths(pair.store).index.write_bytes(b"damaged" * 999)
    page.check(pair, "1 operation ago")


@pytest.mark.parametrize(
    "line",
    [
        {"time": "yesterday"},
        {"refs": {f"refs/heads/{SESSION}": ["zz", None]}},
        {"refs": {f"refs/heads/{SESSION}": ["0" * 40, None]}},
        {"refs": {"refs/heads/\x1b[31m": ["0" * 40, None], "refs/heads/..": ["0" * 40, None], "x": [None, None]}},
        {"refs": {"refs/tags/\n": ["0" * 40, None], "refs/tags/there": ["zz", None]}},
        {"time": "9999-12-31T23:59:59.999Z", "refs": {}},
        {"refs": {f"refs/heads/{OTHER}.r-00000000": ["0" * 40, None]}},
    ],
)  # fmt: skip
def test_a_journal_of_anything(pair: Shell, line: dict[str, object]) -> None:
    before = pair.json("ops")["operations"][0]["id"]
    whole = {
        "time": "2026-03-01T13:00:00.000Z", "command": "x", "summary": "\x1b[31mx", "refs": {}, "files": {},
        "undoes": "", "id": "abcd0000",
    }  # fmt: skip
    with StorePaths(pair.store).journal.open("a") as file:
        file.write(json.dumps(whole | line) + "\n")
    for arguments in (("log", SESSION), ("tree",), ("tree", "--all")):
        for operation in (before, "abcd0000"):
            done = pair(*arguments, "--at-op", operation)
            assert done.code in (0, 3, 4, 6), done
            assert "\x1b" not in done.out + done.err


def dump(sessgit: Shell) -> list[str]:
    with closing(sqlite3.connect(StorePaths(sessgit.store).index)) as db:
        return list(db.iterdump())


def test_the_shell_completes_operations(pair: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (last,) = pair.json("ops")["operations"]
    assert completion.operations("") == [(last["id"], "5e551011: name “parser”")]
    assert completion.operations(last["id"][:3]) == completion.operations("")
    assert completion.operations("x") == []
    monkeypatch.setenv("_SESSGIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sessgit\nlog\n--at-op\n")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert loaded("sessgit") == set()
    assert pair("").out == f"{last['id']}\n"
