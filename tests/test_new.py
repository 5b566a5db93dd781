"""Conversations without turns, and those that belong to others as their children."""

from __future__ import annotations

from programs import raises
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit import Store
from sessgit.errors import NotFoundError, UsageError

MANAGER, FIRST, SECOND = (f"f{n:07x}-0000-4000-8000-{'f' * 12}" for n in (1, 2, 3))


def test_a_family_of_conversations(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("What now?"))
    assert sessgit.out("new", "--title", "The plan", "--role", "manager") == (
        "f0000001  The plan\nAdd to its scratchpad: sessgit pad claim TEXT --into f0000001\n"
    )
    sessgit.out("pad", "claim", "A table is faster.", "--into", "f0000001")
    assert sessgit.json("new", "--parent", "f0000001", "--inherit", "--role", "developer") == {
        "id": FIRST, "title": "", "child_of": MANAGER, "role": "developer",
    }  # fmt: skip
    sessgit.out("new", "--title", "Parser", "--parent", "f0000002")
    assert sessgit.out("ls") == (
        "  f0000001  The plan           0 turns  just now  $0.00  manager, 1 child\n"
        "  f0000002  └ (no prompt yet)  0 turns  just now  $0.00  child, developer, 1 ch…\n"
        "  f0000003    └ Parser         0 turns  just now  $0.00  child\n"
        "  5e551011  What now?           1 turn    2h ago\n"
        "4 conversations.\n"
    )
    assert sessgit.out("tree", "f0000001") == (
        "● f0000001  The plan          0 turns  just now  manager\n"
        "└─ f0000002  nothing new yet  0 turns  just now  developer\n"
        "  └─ f0000003  Parser         0 turns  just now  child\n"
    )
    listed = sessgit.json("ls", "--children", "f0000001")["sessions"]
    assert {one["id"]: (one["child_of"], one["role"]) for one in listed} == {
        FIRST: (MANAGER, "developer"), SECOND: (FIRST, None),
    }  # fmt: skip
    assert [entry["text"] for entry in sessgit.json("pad", "f0000002")["entries"]] == ["A table is faster."]
    assert "child f0000003" in sessgit.out("show", "f0000002") and "child of f0000001" in sessgit.out(
        "show", "f0000002"
    )
    assert sessgit("verify").code == 0


def test_managers_are_never_archived_by_age_and_deleting_one_says_so(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"), sessgit.talk(OTHER).turns("two"))
    sessgit.out("new", "--parent", SESSION)
    sessgit.now += 86400 * 40
    skipped = sessgit.json("archive", "--older-than", "30d")["skipped"]
    assert skipped == [{"id": SESSION, "reason": "managing others"}]
    done = sessgit.json("delete", SESSION, "--yes")
    assert done["deleted"][0]["children"] == [MANAGER]
    assert sessgit.json("ls", "--only-archived")["sessions"][0]["child_of"] == SESSION


def test_a_fork_is_no_child(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    with Store.open() as store:
        child = store.create_session(sessgit.project, "part", parent=SESSION, role="tester")
        child.record_turn("try it", "done")
        assert (child.state.unified.metadata.parent, child.state.unified.metadata.role) == (SESSION, "tester")
        fork = child.fork()
        assert fork.state.unified.metadata.parent is None
        raises(NotFoundError, "no conversation starts with “abcd”", lambda: store.create_session(parent="abcd"))
        raises(UsageError, "“a b” cannot be a role", lambda: store.create_session(sessgit.project, role="a\tb"))


def test_a_relation_survives_an_export(sessgit: Shell) -> None:
    with Store.open() as store:
        parent = store.create_session(sessgit.project, "plan", role="manager")
        parent.record_turn("plan", "Do it.")
        child = store.create_session(sessgit.project, "part", parent=parent)
        child.record_turn("do", "Done.")
        snapshots = [one.snapshot("io-log") for one in (parent, child)]
    assert [one.parent for one in snapshots] == ["", parent.id]
    with Store.open(sessgit.home / "other", config=sessgit.home / "else") as other:
        (sessgit.home / "else").mkdir()
        assert [one.outcome for one in other.import_sessions(snapshots, "io-log").sessions] == ["new", "new"]
        assert other.load_session(child.id).state.unified.metadata.parent == parent.id
        assert other.load_session(parent.id).state.unified.metadata.role == "manager"
