"""Undoing a fork takes away all that it wrote into the client's folder, and nothing else."""

from __future__ import annotations

from pathlib import Path

from kept import begins
from shell import Shell
from transcripts import OTHER, SESSION, subagent

AGENT, RESULT = "subagents/agent-7c2d.jsonl", "tool-results/toolu_big.txt"
FIRST = f"f0000001-0000-4000-8000-{'f' * 12}"
"""The id of the first session that a test makes."""


@begins
def rich(shell: Shell) -> None:
    """A conversation with a subagent and a large tool result, and another one."""
    talk = shell.talk().prompt("one").tool("Bash", {"command": "x"}, "see toolu_big.txt").answer("Done.")
    path = shell.keep(talk)
    subagent(path.parent, talk, "7c2d", "found")
    result = path.parent / SESSION / RESULT
    result.parent.mkdir(parents=True)
    result.write_text("much")
    shell.recorded(talk, shell.talk(OTHER).turns("else"))


def held(shell: Shell) -> dict[str, bytes | None]:
    """All that the client's folder holds but the store, by path; of a folder None."""
    every = (path for path in shell.config.rglob("*") if not path.is_relative_to(shell.store))
    return {str(path.relative_to(shell.config)): path.read_bytes() if path.is_file() else None for path in every}


def own(shell: Shell, fork: str) -> list[Path]:
    """The files of the fork: its transcript, and what lies beside it."""
    folder = next(shell.config.glob(f"projects/*/{SESSION}.jsonl")).parent
    return [folder / f"{fork}.jsonl", folder / fork / AGENT, folder / fork / RESULT]


def test_what_lies_beside_it_goes_with_it_and_comes_back(rich: Shell) -> None:
    before = held(rich)
    fork = rich.json("fork", SESSION)["id"]
    after, files = held(rich), own(rich, fork)
    assert {path for path in after.keys() - before.keys() if after[path] is not None} == {
        str(path.relative_to(rich.config)) for path in files
    }
    assert sorted(rich.json("ops")["operations"][0]["files"]) == sorted(map(str, files))
    undone = rich.json("undo")
    assert sorted(undone["removed"]) == sorted(map(str, files))
    assert held(rich) == before
    rich.out("undo", undone["operation_id"])
    rich.out("restore", fork)
    assert held(rich) == after


def test_so_it_is_with_what_a_merge_makes(rich: Shell) -> None:
    before = held(rich)
    made = rich.json("merge", OTHER, "--into", SESSION, "--new")["session_id"]
    assert all(path.exists() for path in own(rich, made))
    rich.out("undo")
    assert held(rich) == before


def test_what_has_changed_since_stays_alone(rich: Shell) -> None:
    fork = rich.json("fork", SESSION)["id"]
    transcript, agent, result = own(rich, fork)
    result.write_text("another")
    done = rich.out("undo")
    assert f"Kept, because it was changed since: ~/{result.relative_to(rich.home)}\n" in done
    assert [path.exists() for path in (transcript, agent.parent, result)] == [False, False, True]


def test_a_link_to_what_was_written_stays(rich: Shell) -> None:
    fork = rich.json("fork", SESSION)["id"]
    _, _, result = own(rich, fork)
    moved = result.rename(rich.home / "moved.txt")
    result.symlink_to(moved)
    assert f"Kept, because it was changed since: ~/{result.relative_to(rich.home)}\n" in rich.out("undo")
    assert result.is_symlink() and moved.read_text() == "much"


def test_a_transcript_that_has_changed_keeps_what_lies_beside_it(rich: Shell) -> None:
    fork = rich.json("fork", SESSION)["id"]
    files = own(rich, fork)
    with files[0].open("ab") as file:
        file.write(b'{"type":"mode"}\n')
    undone = rich.json("undo")
    assert (undone["removed"], undone["left"]) == ([], [str(files[0])])
    assert all(path.exists() for path in files)


def test_what_was_there_before_is_not_of_the_fork(rich: Shell) -> None:
    _, agent, result = own(rich, FIRST)
    agent.parent.mkdir(parents=True)
    agent.write_text("somebody's")
    assert rich.json("fork", SESSION)["id"] == FIRST
    assert result.exists()
    rich.out("undo")
    assert not result.parent.exists()
    assert agent.read_text() == "somebody's"


def test_of_many_files_a_few_are_named(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one")
    names = [f"toolu_{number}.txt" for number in range(9)]
    path = sessgit.keep(talk.tool("Bash", {"command": "x"}, f"see {' '.join(names)}").answer("Done."))
    for name in names:
        file = path.parent / SESSION / "tool-results" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    sessgit.recorded(talk)
    fork = sessgit.json("fork", SESSION)["id"]
    lines = sessgit.out("undo").splitlines()
    assert lines[1] == f"Deleted: ~/{(path.parent / fork).relative_to(sessgit.home)}.jsonl"
    assert [line.partition(":")[0] for line in lines[1:6]] == ["Deleted"] * 5
    assert lines[6] == "and 5 more files: --json lists all"
