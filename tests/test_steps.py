"""However a file is recorded, in how many steps and with what forgotten in between, it ends the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pictures import branches, conversation, state
from plain import run_git
from strategies import REDACTED, SECRET, Transcript, pieces, transcripts
from transcripts import SESSION, Talk

from sessgit.branch import restore
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import recorder_state
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

STEPS = ("record", "record", "record", "forget", "end", "prompting", "no index", "wait")
"""What happens when the file has grown: `forget` loses the cursor first, `end` says that the client let go of the
file, `prompting` that a prompt has only just been given."""


class Recording:
    """A store that watches one file grow."""

    def __init__(self, folder: Path, granularity: str = "turn") -> None:
        self.path = folder / "claude" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
        self.path.parent.mkdir(parents=True)
        self.privacy = Privacy(RecordConfig(granularity))
        stores.create_store(folder / "store")
        self.store = Store(folder / "store")
        self.index = self._index()

    def _index(self) -> Index:
        return Index(self.store.path, lambda: self.store)

    def grow(self, data: bytes) -> None:
        """Appends what is new, as the client does: the file stays the same one."""
        with self.path.open("ab") as file:
            file.write(data[file.tell() :])

    def record(self, *, final: bool = False, prompting: bool = False) -> bool:
        source = TranscriptSource(self.path, SESSION, self.path.parents[2], final=final, prompting=prompting)
        return record(Context(self.index, privacy=self.privacy), source).changed

    def step(self, step: str) -> None:
        if step == "forget":
            recorder_state.delete_cursor(self.store.paths, SESSION)
        if step == "no index":
            self.index.close()
            self.store.paths.index.unlink()
            self.index = self._index()
        if step != "wait":
            self.record(final=step == "end", prompting=step == "prompting")


@contextmanager
def recording(granularity: str = "turn") -> Iterator[Recording]:
    with tempfile.TemporaryDirectory() as folder:
        made = Recording(Path(folder), granularity)
        try:
            yield made
        finally:
            made.index.close()


def at_once(data: bytes) -> tuple[object, object]:
    """What one recording of the finished file makes: the conversation, and the state of the session."""
    with recording() as one:
        one.grow(data)
        one.record(final=True)
        return seen(one.store)


def seen(store: Store) -> tuple[object, object]:
    if SESSION not in branches(store):
        return {}, {}
    found = state(store, SESSION)
    found["metadata"].pop("transcript_path")
    return conversation(store), found


def in_steps(data: bytes, steps: Iterable[tuple[int, str]], granularity: str = "turn") -> tuple[object, object]:
    with recording(granularity) as many:
        for length, step in steps:
            many.grow(data[:length])
            many.step(step)
        many.grow(data)
        many.record(final=True)
        check_whole(many, data)
        return seen(many.store)


def check_whole(made: Recording, data: bytes) -> None:
    """Recording again changes nothing, git finds nothing wrong, and the file comes back byte for byte."""
    before = branches(made.store)
    assert not made.record(final=True)
    made.step("forget")
    assert not made.record(final=True)
    assert branches(made.store) == before
    assert run_git(made.store.path, "fsck", "--strict", "--no-dangling") == ""
    if before:
        assert restore.rebuild_file(made.store, SESSION).data == data.replace(SECRET.encode(), REDACTED.encode())


def talks() -> dict[str, Talk]:
    """Conversations that are cut at every line below."""
    tools = Talk().prompt("build it").answer("I look.").parallel(("Read", {"file_path": "/a.py"}, "a"), ("LS", {}, "b"))
    tools.tool("Bash", {"command": "make"}, "boom", error=True).answer("Broken.").stop_lines().turns("thanks")
    rewinds = Talk().turns("one", "two", "three").rewind(1).turns("two again").rewind(3).turns("four")
    rewinds.rewind(0).turns("from the start").rewind(4).turns("three again")
    first = Talk().turns("base")
    second = first.writer()
    first.prompt("left")
    second.prompt("right")
    first.answer("Left.").stop_lines()
    second.answer("Right.").stop_lines()
    first.prompt("left again")
    second.tool("Bash", {}, "x").prompt("right again")
    first.answer("Left again.")
    second.answer("Right again.")
    compacted = Talk().turns("one").compact().turns("two").prompt("three").tool("Bash", {}, "x").compact(auto=True)
    compacted.answer("Still at three.").stop_lines().rewind(1).compact().turns("two otherwise")
    broken_off = Talk().prompt("one").call_only("Bash").prompt("two").answer("Hm").interrupt().turns("three")
    queued = Talk().prompt("one").queue("two").answer("One.").stop_lines()
    queued.turns("two").prompt("three").steer("four").answer("!")
    old = Talk(style="2.0").prompt("one").parallel(("A", {}, "a"), ("B", {}, "b")).answer("Both.").turns("two")
    return {
        "tools": tools,
        "rewinds": rewinds,
        "two writers": first,
        "compacted": compacted,
        "broken off": broken_off,
        "queued": queued,
        "old": old,
    }


@pytest.mark.parametrize("name", talks())
@pytest.mark.parametrize("step", ["record", "forget", "end"])
def test_cut_at_every_line(name: str, step: str) -> None:
    data = talks()[name].data
    ends = Transcript(data).ends
    assert in_steps(data, [(end, step) for end in ends]) == at_once(data)


@pytest.mark.parametrize("name", talks())
def test_cut_in_every_line_with_commits_for_cells(name: str) -> None:
    data = talks()[name].data
    ends = Transcript(data).ends
    assert in_steps(data, [(end - 7, "record") for end in ends], "cell") == at_once(data)


@given(st.data())
def test_whole_conversations_in_steps(data: st.DataObject) -> None:
    check_steps(data, data.draw(transcripts(broken=False, secrets=True)))


@given(st.data())
def test_broken_files_in_steps(data: st.DataObject) -> None:
    check_steps(data, data.draw(transcripts()))


def check_steps(data: st.DataObject, transcript: Transcript) -> None:
    lengths = data.draw(pieces(transcript))
    steps = [(length, data.draw(st.sampled_from(STEPS))) for length in lengths]
    granularity = data.draw(st.sampled_from(["turn", "turn", "cell"]))
    assert in_steps(transcript.data, steps, granularity) == at_once(transcript.data)
