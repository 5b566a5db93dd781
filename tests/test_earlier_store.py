"""A store that was recorded and changed before version 0.2 is read, verified, restored and forked by this one."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

ARCHIVED = "5e551011-0000-4000-8000-000000000003"
SIDE, MERGED = "0955ab86", "a4859ee3"


@pytest.fixture
def before(sessgit: Shell) -> Shell:
    """A home with a rewind, a compaction, a redacted key, a fork, a tag, a label, a pad, a merge and an archive."""
    with tarfile.open(Path(__file__).with_name("stores") / "before-0.2.tgz") as file:
        file.extractall(sessgit.home, filter="data")
    sessgit.store.chmod(0o700)
    return sessgit


LOG = """\
5e551011-0000-4000-8000-000000000001  Add two numbers  ·  /home/ada/shop
                          claude-test-1  ·  3 turns, 490 tokens

● 3  10:00  Write a short page                                               160
┊    1 turn left behind by a rewind: 5e551011-0000-4000-8000-000000000001.r-a00…
● 2  10:00  Run the tests                                            Bash    170
├─   23:49  ↳ 0955ab86  side
● 1  10:00  Add two numbers  (begun)                                         160
"""
VERIFIED = """\
{0} conversations, 9 turns: no damage.
Checked    {1} hashes of lines, taken when they were recorded
Recomputed cells and texts, from the lines
Cut        {0} files rebuilt and cut into turns again
Hashed     every object, by git fsck --strict
"""
ROWS = [
    (SESSION, 3, ["old"]),
    (f"{SIDE}-a467-4c6c-b3f9-086eb3fad91c", 1, []),
    (OTHER, 2, []),
    (f"{MERGED}-14e4-47c5-85f9-5eb2b4caa7cd", 3, []),
]
KEY, REDACTED = b"AKIAIOSFODNN7EXAMPLQ", b"[redacted:aws-access-key]"


def test_it_is_read(before: Shell) -> None:
    assert before.out("log", SESSION) == LOG
    rows = before.json("ls", "--all")["sessions"]
    assert sorted((row["id"], row["turns"], row["labels"]) for row in rows) == sorted(ROWS)
    assert [hit["address"] for hit in before.json("search", "pytest")["hits"]] == [f"{SESSION}@2.2"]
    assert [entry["text"] for entry in before.json("pad", SESSION)["entries"]] == ["one place"]


def test_it_is_verified(before: Shell) -> None:
    run_git(before.store, "fsck", "--strict")
    assert before.out("verify", "--deep") == VERIFIED.format(5, 14)
    run_git(before.store, "fsck", "--strict")


def test_it_is_restored(before: Shell, tmp_path: Path) -> None:
    out = tmp_path / "restored.jsonl"
    before.out("unarchive", ARCHIVED)
    for path in sorted((before.config / "projects").rglob("*.jsonl")):
        assert before("restore", path.stem, "--output", str(out)).code == 0
        assert out.read_bytes() == path.read_bytes().replace(KEY, REDACTED)
        out.unlink()


def test_it_is_changed(before: Shell) -> None:
    before("fork", SESSION, "--at", "2", "--no-restore")
    before("merge", SIDE, "--into", OTHER, "--new")
    before("undo")
    assert before.out("verify", "--deep") == VERIFIED.format(6, 15)
    forked = LOG.replace("● 2  10", "├─   13:00  ↳ f0000001  Add two numbers\n● 2  10")
    assert before.out("log", SESSION) == forked
