"""What is brought in lies in the store afterwards, also where half of a pack of the same name lay there before."""

from __future__ import annotations

from pathlib import Path

import pytest
from homes import claude_homes
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.record.fork_detection import first_prompt
from sessgit.record.import_files import TranscriptFile
from sessgit.record.imports import RecordTask, record_families
from sessgit.store import refs
from sessgit.store import store as stores
from sessgit.store.settings import Privacy


@pytest.mark.parametrize("half", ["index", "damaged index"])
def test_half_a_pack(sessgit: Shell, tmp_path: Path, half: str) -> None:
    path = sessgit.keep(sessgit.talk().turns("one", "two"))
    stores.create_store(sessgit.store)
    file = TranscriptFile(path, path.stem, path.stat().st_size, first_prompt(path))
    found = record_families(
        RecordTask(sessgit.store, tmp_path / "gathered", [[file]], claude_homes(sessgit.config), Privacy()),
        lambda size: None,
    )
    data, index = ((found.task.folder / f"gathered{end}").read_bytes() for end in (".pack", ".idx"))
    there = sessgit.store / "objects" / "pack" / f"pack-{found.pack}.pack"
    there.with_suffix(".idx").write_bytes(index[:-1] if half == "damaged index" else index)
    if half != "index":
        there.write_bytes(data)
    done = sessgit("import")
    assert (done.code, done.err) == (0, "")
    assert refs.read(sessgit.store, f"refs/heads/{SESSION}") == found.refs[f"refs/heads/{SESSION}"]
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
    assert "About two." in sessgit.out("show", f"{SESSION}@2")
