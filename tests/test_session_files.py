"""The files that a session as a whole keeps: carried along by whatever becomes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreigners import RLM, log, put, rlm, went
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, Talk

from sessgit.history import session_files
from sessgit.model.conversation.message import Message
from sessgit.model.foreign_session import agent_id
from sessgit.record import tip_delivery
from sessgit.store import layout, refs
from sessgit.store.store import Store


def kept(store: Store, session: str, **files: str) -> str:
    """The session keeps these files from now on; its tip."""
    tip = str(refs.read(store.path, layout.head_ref(session)))
    changes: dict[str, tuple[str, bool] | None] = {
        f"kept/{path.replace('__', '/')}": (store.repo.write_blob(text.encode()), False) for path, text in files.items()
    }
    message = Message("edit: kept", (("Session", session), ("Event", "edit")))
    commit = store.write_commit(tip, changes, store.state(tip), message, [tip], store.commit(tip).time)
    store.repo.move(layout.head_ref(session), tip, commit)
    return commit


def names(store: Store, session: str) -> list[str]:
    return sorted(session_files.kept_files(store, str(refs.read(store.path, layout.head_ref(session)))))


def test_turns_rewinds_and_the_clients_forks_take_them_along(store: Store, keep: Keep, git: Git) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    kept(store, talk.session, a="a", b__c="c")
    fork = talk.branch(OTHER).turns("three")
    keep(talk.turns("four"))
    assert names(store, talk.session) == ["a", "b/c"]
    talk.rewind(1)
    keep(talk.turns("five"))
    assert names(store, talk.session) == ["a", "b/c"]
    keep(fork)
    assert names(store, OTHER) == ["a", "b/c"]
    assert session_files.file_sizes(store, str(refs.read(store.path, layout.head_ref(OTHER)))) == {"a": 1, "b/c": 1}


def test_where_two_sides_come_together_nothing_is_lost(store: Store, keep: Keep) -> None:
    talk = Talk().turns("one")
    keep(talk)
    base = str(refs.read(store.path, layout.head_ref(talk.session)))
    ours = kept(store, talk.session, a="ours", b__c="c", **{"source.json": "mine"})
    store.repo.move(layout.head_ref(talk.session), ours, base)
    theirs = kept(store, talk.session, a="theirs", b="a file", d="d", **{"source.json": "yours"})
    for one, other in ((ours, theirs), (theirs, ours)):
        done = tip_delivery.reconcile_tips(store, one, other)
        assert done.outcome == "joined"
        found = {path: store.repo.blob(oid) for path, (oid, _) in session_files.kept_files(store, done.tip).items()}
        assert found["d"] == b"d"
        assert found["a"] in (b"ours", b"theirs")
        assert ("b" in found) != ("b/c" in found)  # one path cannot be a file and a folder
    assert session_files.joined_changes(store, base, ours).keys() == {"kept"}


def test_a_merge_brings_what_only_theirs_keeps(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    folder = log(tmp_path, "DEV-1", went("in", "build"), went("out", "built"))
    put(folder / "artifacts" / "a.md", "a")
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    own = agent_id("io-log", "DEV-1")
    sessgit.out("fork", own, "--name", "other way")
    sessgit("merge", own, "--into", "5e55", "--new", "both")
    (both,) = [one["id"] for one in sessgit.json("ls")["sessions"] if one["name"] == "both"]
    shown = json.loads(sessgit.out("show", "--json", both))["session"]
    assert [one["path"] for one in shown["kept_files"]] == ["io-log/artifacts/a.md"]


@pytest.mark.parametrize("space", ["heads", "archive"])
def test_a_session_in_the_archive_gives_them_too(sessgit: Shell, tmp_path: Path, space: str) -> None:
    put(rlm(tmp_path) / "memory-snapshot.json", {})
    sessgit.out("import", "--from", "rlm", str(tmp_path))
    if space == "archive":
        sessgit.out("archive", RLM)
    fork = sessgit.json("fork", f"{RLM}@1", "--no-restore")["id"]
    tree = run_git(sessgit.store, "ls-tree", "-r", "--name-only", f"refs/heads/{fork}", "kept")
    assert tree.splitlines() == ["kept/rlm/memory-snapshot.json", "kept/rlm/session.json", "kept/source.json"]
    sessgit.out("export", "rlm", fork, "--output", str(tmp_path / "out"))
    assert (tmp_path / "out" / "rlm-sessions" / fork / "session.json").exists()
