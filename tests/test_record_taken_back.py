"""Lines that the client takes back, and writes others in their place, just while the file is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plain import Git
from transcripts import Talk

from sessgit.record import catch_up, commits
from sessgit.record.file_pass import RecordingResult
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

Write = Callable[[Path, bytes], object]


def in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.truncate(len(data))
        file.write(data)


@pytest.mark.parametrize("write", [in_place, Path.write_bytes], ids=["in place", "as a whole"])
@pytest.mark.parametrize("longer", [0, 40, 200_000], ids=["as long", "longer", "much longer"])
def test_the_next_pass_reads_what_came_in_their_place(
    store: Store, index: Index, claude: Path, git: Git, longer: int, write: Write
) -> None:
    talk = Talk().turns("one").prompt("two").answer("a first try")
    path = talk.save(claude)
    before, last = b"".join(line + b"\n" for line in talk.lines[:-1]), json.loads(talk.lines[-1])
    last["uuid"] = "b9999999" + last["uuid"][8:]
    last["message"]["content"][0]["text"] = "another one" + "!" * longer
    after = before + json.dumps(last, separators=(",", ":")).encode() + b"\n"
    source = TranscriptSource(path, talk.session, claude.parents[1])

    def once() -> RecordingResult:
        return record(Context(index), source)

    def write_meanwhile(*given: Any, **options: Any) -> str:
        commit = commit_turn(*given, **options)
        write(path, after)
        return commit

    commit_turn = commits.commit_turn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "commit_turn", write_meanwhile)
        once()
    assert not catch_up.is_level(store.paths, talk.session, path)
    once()
    assert catch_up.is_level(store.paths, talk.session, path)
    stored = git("show", f"{talk.session}:turns/0000/000002/transcript.jsonl").splitlines()
    read = [json.loads(line).get("uuid") for line in talk.lines[-3:]]
    assert [json.loads(line).get("uuid") for line in stored] == [*read, last["uuid"]]
    assert "another one" in git("grep", "-h", "another one", talk.session, "--", "turns/0000/000002")
    assert not once().changed
    assert git("fsck", "--strict", "--no-dangling") == ""
