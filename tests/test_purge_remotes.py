"""What was purged here and still lies on a remote, or on another machine: it does not come back."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from desks import Desks, desks
from machines import on_another
from purging import VALUE, git, holders, refs
from transcripts import SESSION, Talk

PLAIN = "5e551011-0000-4000-8000-0000000000aa"
NEW = "5e551011-0000-4000-8000-0000000000bb"


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    """Two machines and a remote that hold a conversation with the value, and a plain one."""
    made = desks(monkeypatch, capsys, tmp_path)
    made.here.record(conversation(made))
    made.here.record(made.here.shell.talk(PLAIN).turns("plain"))
    made.here.out("tag", "good", f"{SESSION}@1")
    made.here.out("push", "--all")
    made.there.out("pull")
    return made


def conversation(made: Desks) -> Talk:
    return made.here.shell.talk().turns("one", f"see {VALUE}", "three")


def test_the_remote_is_named_and_a_pull_brings_nothing_back(two: Desks) -> None:
    done = two.here("purge", VALUE, "--yes")
    assert done.code == 0, done
    assert "A remote holds it too: origin." in done.out
    after = refs(two.here.shell.store)
    for _ in range(2):
        pulled = two.here("pull")
        assert pulled.code == 0, pulled
        assert "has a value that was purged here" in pulled.out
        assert refs(two.here.shell.store) == after
        assert holders(two.here.shell.store) == []


def test_a_push_puts_there_what_is_here_now(two: Desks) -> None:
    assert two.here("purge", VALUE, "--yes").code == 0
    (change,) = two.here.json("push", "--all")["changes"]
    assert (change["id"], change["change"]) == (SESSION, "purged")
    own = {name: oid for name, oid in refs(two.here.shell.store).items() if not name.startswith("refs/remotes/")}
    assert refs(two.hub) == own
    assert two.here.json("push", "--all")["changes"] == []
    assert two.here.json("pull")["skipped"] == []
    subprocess.run(["git", "-C", two.hub, "gc", "-q", "--prune=now"], check=True)
    assert holders(two.hub) == []


def test_a_fork_that_was_written_anew_is_called_purged_too(two: Desks) -> None:
    """Also where it was renamed since: more went there than what was said of it."""
    fork = two.here.json("fork", SESSION, "--at", "2")["id"]
    two.here.out("push", "--all")
    assert two.here("purge", VALUE, "--yes").code == 0
    two.here.out("rename", fork, "another")
    changes = two.here.json("push", "--all")["changes"]
    assert sorted((one["id"], one["change"], one["turns"]) for one in changes) == sorted(
        [(SESSION, "purged", 0), (fork, "purged", 0)]
    )


def test_a_push_goes_on_from_what_was_purged(two: Desks) -> None:
    assert two.here("purge", VALUE, "--yes").code == 0
    two.here.record(conversation(two).turns("four"))
    two.here.out("push", "--all")
    assert refs(two.hub)[f"refs/heads/{SESSION}"] == refs(two.here.shell.store)[f"refs/heads/{SESSION}"]


def test_machines_that_purge_the_same_have_the_same_again(two: Desks) -> None:
    assert two.here("purge", VALUE, "--yes").code == 0
    two.here.out("push", "--all")
    assert two.there("purge", VALUE, "--yes").code == 0
    assert two.there.json("pull")["changes"] == []
    assert two.there.json("push", "--all")["changes"] == []
    own = [
        {name: oid for name, oid in refs(desk.shell.store).items() if not name.startswith("refs/remotes/")}
        for desk in (two.here, two.there)
    ]
    assert own[0] == own[1]
    assert holders(two.there.shell.store) == []


def test_what_another_machine_adds_to_the_old_history_stays_there(two: Desks) -> None:
    two.there.record(on_another(conversation(two)).turns("from there"))
    two.there.out("push", "--all")
    assert two.here("purge", VALUE, "--yes").code == 0
    for command in (("pull",), ("push", "--all"), ("sync",)):
        done = two.here(*command)
        assert done.code == 0, done
        assert "Another machine continued it" in " ".join(done.out.split()), done
        assert holders(two.here.shell.store) == []
        assert git(two.here.shell.store, "fsck", "--strict", "--no-dangling") == ""


def test_what_another_machine_adds_without_it_comes(two: Desks) -> None:
    """Of what holds none of it nothing is kept out, neither a conversation that went on nor a new one."""
    assert two.here("purge", VALUE, "--yes").code == 0
    plain = on_another(two.here.shell.talk(PLAIN).turns("plain"))
    two.there.record(plain.turns("more of it"))
    two.there.record(two.there.shell.talk(NEW).turns("new"))
    two.there.out("push", "--all")
    pulled = two.here.json("pull")
    assert [(one["id"], one["turns"]) for one in pulled["changes"]] == [(PLAIN, 1), (NEW, 1)]
    assert [one["what"] for one in pulled["skipped"]] == [SESSION]
    assert [turn["prompt"] for turn in two.here.json("log", PLAIN)["turns"]] == ["plain", "more of it"]


def test_a_conversation_that_was_never_here_and_holds_it(two: Desks) -> None:
    assert two.here("purge", VALUE, "--yes").code == 0
    two.here.out("push", "--all")
    new = two.there.shell.talk("5e551011-0000-4000-8000-0000000000bb").turns(f"again {VALUE}")
    two.there.record(new)
    two.there.out("push", "5e551011-0000-4000-8000-0000000000bb")
    pulled = two.here("pull")
    assert "has a value that was purged here" in " ".join(pulled.out.split())
    assert holders(two.here.shell.store) == []
    assert f"refs/heads/{new.session}" not in refs(two.here.shell.store)


def test_a_rewound_branch_of_another_name_takes_the_old_ones_place(two: Desks) -> None:
    one = two.here.shell.talk("5e551011-0000-4000-8000-0000000000cc").turns("one")
    leaf = one.leaf
    one.prompt_without_uuid(f"so {VALUE}").answer("yes").stop_lines()
    one.leaf = leaf
    two.here.record(one.prompt("another way").answer("ok").stop_lines())
    two.here.out("push", "--all")
    assert two.here("purge", VALUE, "--yes").code == 0
    two.here.out("push", "--all")
    subprocess.run(["git", "-C", two.hub, "gc", "-q", "--prune=now"], check=True)
    assert holders(two.hub) == []
    before = refs(two.here.shell.store)
    assert two.here("pull").code == 0
    assert refs(two.here.shell.store).keys() >= before.keys()
    assert holders(two.here.shell.store) == []
