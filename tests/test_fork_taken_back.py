"""A fork that a person takes back, in the client, to before the point at which it left: nothing of it is lost."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from plain import run_git
from purging import VALUE, holders, refs
from shell import Shell
from strategies import SECRET
from transcripts import SESSION, File, Talk

TEXTS = ("one", "two", "three", "four")


@dataclass
class Fork:
    """A fork of ours and its client."""

    sessgit: Shell
    id: str
    path: Path
    talk: Talk

    def went_on(self, to: int, text: str) -> None:
        """Goes back to after turn `to` in the client, and asks something else there."""
        written = len(self.talk.data)
        self.talk.rewind(to).prompt(text).answer(f"About {text}.").stop_lines()
        with self.path.open("ab") as file:
            file.write(self.talk.data[written:])
        assert self.sessgit("import", str(self.path)).code == 0

    @property
    def prompts(self) -> list[str]:
        return [turn["prompt"] for turn in self.sessgit.json("log", self.id)["turns"]]

    def is_whole(self) -> None:
        """It verifies, is laid out byte for byte, and recorded once more from the beginning it is the same."""
        verified(self.sessgit)
        out = self.sessgit.project / "out.jsonl"
        assert self.sessgit("restore", self.id, "-o", str(out)).code == 0
        assert out.read_bytes() == self.path.read_bytes()
        out.unlink()
        before = refs(self.sessgit.store)
        shutil.rmtree(self.sessgit.store / "state")
        (self.sessgit.store / "state").mkdir(mode=0o700)
        assert self.sessgit("import").code == 0
        assert refs(self.sessgit.store) == before


def verified(sessgit: Shell) -> None:
    done = sessgit("verify", "--deep")
    assert done.code == 0, done
    assert "no damage" in done.out.splitlines()[0], done


def forked(sessgit: Shell, at: str, texts: tuple[str, ...] = TEXTS) -> Fork:
    talk = sessgit.talk()
    for text in texts:
        talk.prompt(text).tool("Read", {"file_path": "a.py"}, f"what {text} reads").answer(f"On {text}.").stop_lines()
    parent = sessgit.recorded(talk)
    made = str(sessgit.json("fork", SESSION, "--at", at)["id"])
    theirs = File(made, "2.1", str(sessgit.project), seconds=talk.file.seconds + 100)
    theirs.counts, theirs.prompts, theirs.ends = dict(talk.file.counts), [*talk.file.prompts], [*talk.file.ends]
    return Fork(sessgit, made, parent.with_name(f"{made}.jsonl"), Talk(file=theirs))


def uuids(path: Path) -> list[Any]:
    return [json.loads(line).get("uuid") for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("at", "to"), [(at, to) for at in ("1", "3", "4", "3.1", "4.3") for to in range(int(at[0]) + 1 - at.count("."))]
)
def test_to_every_point_before_it(sessgit: Shell, at: str, to: int) -> None:
    fork = forked(sessgit, at)
    fork.went_on(to, "another way")
    assert fork.prompts == [*TEXTS[:to], "another way"]
    fork.is_whole()


def test_again_and_again(sessgit: Shell) -> None:
    fork = forked(sessgit, "4")
    fork.went_on(2, "another way")
    fork.went_on(5, "and on")
    fork.went_on(1, "a third way")
    assert fork.prompts == ["one", "a third way"]
    fork.is_whole()
    fork.went_on(6, "on from there")
    assert fork.prompts == ["one", "two", "another way", "and on", "on from there"]
    fork.is_whole()


def test_a_file_that_is_gone_comes_back(sessgit: Shell) -> None:
    fork = forked(sessgit, "4")
    fork.went_on(2, "another way")
    known = fork.path.read_bytes()
    fork.path.unlink()
    assert sessgit("restore", fork.id).code == 0
    assert fork.path.read_bytes() == known
    assert sessgit("restore", fork.id, "--verify").code == 0


def test_a_fork_of_it(sessgit: Shell) -> None:
    fork = forked(sessgit, "4")
    fork.went_on(2, "another way")
    second = str(sessgit.json("fork", fork.id)["id"])
    assert [turn["prompt"] for turn in sessgit.json("log", second)["turns"]] == fork.prompts
    verified(sessgit)


@pytest.mark.parametrize("at", ["4", "4.2"])
def test_after_a_purge(sessgit: Shell, at: str) -> None:
    fork = forked(sessgit, at, ("one", "two", f"three {VALUE}", f"four {VALUE}"))
    fork.went_on(1, "another way")
    done = sessgit("purge", VALUE, "--yes")
    assert done.code == 0, done
    assert holders(sessgit.store, VALUE) == []
    verified(sessgit)
    out = sessgit.project / "out.jsonl"
    done = sessgit("restore", fork.id, "-o", str(out))
    assert "rewritten" not in done.out
    assert uuids(out) == uuids(fork.path)


def test_with_a_secret_in_what_it_left_behind(sessgit: Shell) -> None:
    fork = forked(sessgit, "4", ("one", "two", f"three {SECRET}", "four"))
    fork.went_on(1, "another way")
    verified(sessgit)
    out = sessgit.project / "out.jsonl"
    assert sessgit("restore", fork.id, "-o", str(out)).code == 0
    assert uuids(out) == uuids(fork.path)


def test_without_the_branch_that_the_rewind_left(sessgit: Shell) -> None:
    """The turns up to the fork point are the parent's, which still has them."""
    fork = forked(sessgit, "4")
    fork.went_on(2, "another way")
    (left,) = (name for name in refs(sessgit.store) if ".r-" in name)
    run_git(sessgit.store, "update-ref", "-d", left)
    out = sessgit.project / "out.jsonl"
    assert sessgit("restore", fork.id, "-o", str(out)).code == 0
    assert out.read_bytes() == fork.path.read_bytes()


def test_to_before_it_after_a_compaction(sessgit: Shell) -> None:
    fork = forked(sessgit, "4")
    fork.talk.rewind(4).compact()
    fork.path.write_bytes(fork.path.read_bytes() + fork.talk.data)
    fork.went_on(2, "another way")
    assert fork.prompts == ["one", "two", "another way"]
    fork.is_whole()
