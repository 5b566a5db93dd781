"""A turn costs the same however long the conversation is, and a fork however large the family."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from merging import THEIRS, diverged
from pictures import log
from plain import Keep
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.agents.claude import lines as claude_lines
from sessgit.agents.claude import writer as transcript
from sessgit.agents.line import opened
from sessgit.branch import merge_plan
from sessgit.history import reassemble
from sessgit.model.conversation import session as sessions
from sessgit.record import recording
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import secret_filter
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store


class Counted:
    """An open file that counts what is read from it."""

    def __init__(self, file: Any) -> None:
        self.file, self.read_bytes = file, 0

    def seek(self, offset: int) -> int:
        return int(self.file.seek(offset))

    def read(self, size: int) -> bytes:
        data: bytes = self.file.read(size)
        self.read_bytes += len(data)
        return data


class Meter:
    """Records a growing file and tells what each recording cost."""

    def __init__(self, store: Store, index: Index, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.index, self.path = index, path
        self.written = self.read = 0
        monkeypatch.setattr(recording, "opened", self._opened)
        write = store.repo._write
        monkeypatch.setattr(store.repo, "_write", lambda *object: (self._count(), write(*object))[1])

    def _count(self) -> None:
        self.written += 1

    def _opened(self, path: Path) -> Any:
        meter = self

        class Opening:
            def __enter__(self) -> Any:
                self.real = opened(path)
                source = self.real.__enter__()
                self.counted = Counted(source.file)
                return replace(source, file=self.counted)  # type: ignore[arg-type]

            def __exit__(self, *error: Any) -> None:
                meter.read += self.counted.read_bytes
                self.real.__exit__(*error)

        return Opening()

    def cost(self, talk: Talk, rules: RecordConfig) -> tuple[int, int]:
        """Objects written and bytes read for what the conversation has grown by."""
        with self.path.open("ab") as file:
            file.write(talk.data[file.tell() :])
        self.written = self.read = 0
        record(Context(self.index, privacy=Privacy(rules)), TranscriptSource(self.path, SESSION, self.path.parent))
        return self.written, self.read


def turn(talk: Talk) -> Talk:
    return talk.prompt("go on").tool("Bash", {"command": "make"}, "x" * 9000).answer("Done.").stop_lines()


@pytest.mark.parametrize("granularity", ["turn", "cell"])
def test_turn_300_costs_what_turn_10_did(
    store: Store, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    meter = Meter(store, index, tmp_path / f"{SESSION}.jsonl", monkeypatch)
    talk, rules = Talk(), RecordConfig(granularity)
    for _ in range(9):
        turn(talk)
    meter.cost(talk, rules)
    tenth = meter.cost(turn(talk), rules)
    for _ in range(289):
        turn(talk)
    meter.cost(talk, rules)
    assert meter.cost(turn(talk), rules) == tenth
    assert len(log(store, SESSION)) == 301 * (1 if granularity == "turn" else 2) - (granularity == "cell")
    written, read = tenth
    assert written <= 12 * (1 if granularity == "turn" else 2)
    assert read <= 3 * 65536 + 3 * 20_000


def test_a_pass_that_finds_nothing_new_writes_nothing(
    store: Store, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(store, index, tmp_path / f"{SESSION}.jsonl", monkeypatch)
    talk = Talk()
    for _ in range(20):
        turn(talk)
    meter.cost(talk, RecordConfig())
    waiting = len(b"\n".join(talk.lines[-5:])) + 1
    assert meter.cost(talk, RecordConfig()) == (0, waiting + 3 * 65536)


def test_a_first_recording_reads_the_file_once(
    store: Store, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter = Meter(store, index, tmp_path / f"{SESSION}.jsonl", monkeypatch)
    talk = Talk()
    for _ in range(100):
        turn(talk)
    written, read = meter.cost(talk, RecordConfig())
    assert written <= 100 * 12 + 10
    # Once more the first lines, twice, for what the file goes on from, the last line, whether it still stands there,
    # and the end that the cursor proves.
    assert len(talk.data) <= read <= len(talk.data) + len(talk.lines[-1]) + 3 * 65536


# Families, and stores of many sessions


def calls(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[object]:
    """Collects what a function is called with first."""
    real, met = getattr(module, name), list[object]()

    def counted(argument: object, *more: object) -> object:
        met.append(argument)
        return real(argument, *more)

    monkeypatch.setattr(module, name, counted)
    return met


def family_of(forks: int) -> list[Talk]:
    talk = Talk().turns("one", "two", "three")
    copies = [talk.fork_session(f"c{number:07d}-0000-4000-8000-000000000000") for number in range(forks)]
    return [talk, *(copy.turns("elsewhere") for copy in copies)]


def test_fork_20_costs_what_fork_3_did(keep: Keep, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    states = calls(monkeypatch, sessions, "loads")
    asked = list[str]()
    index._db.set_trace_callback(asked.append)
    costs = []
    for talk in family_of(20):
        states.clear()
        asked.clear()
        keep(talk, final=True)
        costs.append((len(states), len([query for query in asked if query.startswith("SELECT")])))
    assert costs[20] == costs[3]


def test_an_import_parses_each_line_of_a_family_twice(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """To put parents first, and to record."""
    lines = calls(monkeypatch, claude_lines, "parse")
    talks = family_of(5)
    sessgit.recorded(*talks)
    every = sum(len(talk.lines) for talk in talks)
    assert 2 * every <= len(lines) <= 2.5 * every


def works(keep: Keep, index: Index, monkeypatch: pytest.MonkeyPatch, talks: Sequence[Talk]) -> list[tuple[int, int]]:
    """Of recording each the numbers of lines that are parsed and of rows that come from the index."""
    lines, rows, query = calls(monkeypatch, claude_lines, "parse"), [0], index.query

    def counted(*arguments: Any) -> list[Any]:
        found = query(*arguments)
        rows[0] += len(found)
        return found

    monkeypatch.setattr(index, "query", counted)
    costs = []
    for talk in talks:
        lines.clear()
        rows[0] = 0
        keep(talk, final=True)
        costs.append((len(lines), rows[0]))
    return costs


def numbered(number: int) -> Talk:
    return Talk(f"c{number:07d}-0000-4000-8000-000000000000")


@pytest.mark.parametrize("prompt", ["task {}", "the same task"])
def test_sessions_with_the_same_message_ids_cost_what_one_does(
    keep: Keep, index: Index, monkeypatch: pytest.MonkeyPatch, prompt: str
) -> None:
    """Programs number their messages alike in every session. Prompts tell them apart, else the lines of a few."""
    talks = [numbered(number).prompt(prompt.format(number)).answer(f"Done: {number}") for number in range(40)]
    costs = works(keep, index, monkeypatch, talks)
    assert costs[39] == costs[20]
    assert costs[39][0] == costs[1 if prompt == "task {}" else 0][0]
    assert max(costs)[0] < 150


def test_sessions_that_differ_in_their_third_turn_are_forks_of_the_second(
    keep: Keep, store: Store, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [numbered(number).turns("one", "two").prompt("three").answer(f"Done: {number}") for number in range(40)]
    costs = works(keep, index, monkeypatch, talks)
    assert costs[39][0] == costs[20][0]
    for talk in talks[1:]:
        origin = store.state(store.branches(talk.session)[talk.session]).origin
        assert origin is not None
        assert (origin.session, origin.turn) == (talks[0].session, 2)


def test_the_status_of_many_sessions_reads_no_states(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in [sessgit.recorded(*family_of(5)), *sessgit.config.glob("projects/*/c*.jsonl")]:
        path.unlink()
    states = calls(monkeypatch, sessions, "loads")
    assert sessgit.json("status")["only_here"] == 6
    assert states == []


# A fork, and what comes after it


class Lines(list[bytes]):
    """Lines of a turn of which one can tell whether anybody still has them."""


def test_a_fork_holds_the_lines_of_two_turns_at_most() -> None:
    held, most = set[int](), 0

    def turns() -> Iterator[Lines]:
        nonlocal most
        for number in range(20):
            lines = Lines(Talk().turns("one").lines)
            held.add(number)
            weakref.finalize(lines, held.discard, number)
            most = max(most, len(held))
            yield lines
            del lines

    assert transcript.resumable(turns(), SESSION).size
    assert most == 2


def test_a_fork_reads_each_line_once_and_its_first_recording_writes_none_anew(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = sessgit.talk().turns(*map(str, range(20)))
    sessgit.recorded(talk)
    read = [calls(monkeypatch, *reads) for reads in ((transcript, "_members"), (claude_lines, "parse"))]
    sessgit.out("fork", "5e55")
    assert len(talk.lines) <= sum(map(len, read)) <= len(talk.lines) + 10
    monkeypatch.setattr(reassemble, "fork_prefix", lambda *_: pytest.fail("it is there as it was written"))
    assert len(sessgit.json("log", "f000")["turns"]) == 20


def test_a_fork_reads_the_folder_of_each_turn_once(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns(*map(str, range(20))))
    read, real = list[str](), Repository.tree
    monkeypatch.setattr(Repository, "tree", lambda repo, oid: read.append(oid) or real(repo, oid))
    sessgit.out("fork", "5e55")
    assert 20 <= len(read) <= 25


def test_a_name_is_looked_at_for_secrets_where_there_is_one(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    looked = calls(monkeypatch, secret_filter, "text_cleaner")
    sessgit.out("fork", "5e55")
    assert looked == []
    sessgit.out("fork", "5e55", "--name", "other")
    assert len(looked) == 1


# A merge


def test_a_merge_walks_the_history_of_each_side_once(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    diverged(sessgit)
    walked = list[str]()
    real = merge_plan._ancestors
    monkeypatch.setattr(merge_plan, "_ancestors", lambda store, tip: walked.append(tip) or real(store, tip))
    for name in ("merge_bases", "since"):
        monkeypatch.setattr(Repository, name, lambda *_: pytest.fail("it was walked already"))
    sessgit.out("merge", THEIRS, "--into", SESSION, "--dry-run")
    assert len(walked) == len(set(walked)) == 2


def test_a_pass_brings_the_index_level_once_for_all_its_prompts(
    store: Store, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk().turns("one")
    source = TranscriptSource(talk.save(tmp_path), talk.session, tmp_path)
    record(Context(index), source)
    talk.turns(*map(str, range(20))).save(tmp_path)
    asked = list[str]()
    real = index.sync
    monkeypatch.setattr(index, "sync", lambda session=None: asked.append(session) or real(session))
    record(Context(index), source)
    assert len(asked) == 2  # before the first prompt is looked for, and at the end
