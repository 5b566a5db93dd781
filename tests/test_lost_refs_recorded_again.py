"""What stood at a ref before it was deleted and recorded anew, or moved by a command: that is not missed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from plain import run_git
from shell import Shell
from transcripts import SESSION

from sessgit.store import operations
from sessgit.store.operations import Move
from sessgit.store.store import Store


def test_a_rewound_branch_that_the_client_went_back_to(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one", "two", "three")
    three = talk.leaf
    sessgit.recorded(talk)
    talk.leaf = talk.file.ends[1]
    sessgit.recorded(talk.turns("other two"))
    sessgit.out("gc")  # notes what refs there are
    talk.leaf = three
    sessgit.recorded(talk.turns("back on three"))
    sessgit.out("delete", SESSION, "--yes")
    sessgit.out("import", "--id", SESSION)
    branches = run_git(sessgit.store, "for-each-ref", "--format=%(refname)", "refs/heads")
    assert branches == f"refs/heads/{SESSION}\nrefs/heads/{SESSION}.r-a0000004\n"
    assert sessgit("verify").out.startswith("1 conversation, 5 turns: no damage.\n")


def test_its_new_head_is_missed_all_the_same(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("gc")
    sessgit.out("delete", SESSION, "--yes")
    sessgit.out("import", "--id", SESSION)
    was = run_git(sessgit.store, "rev-parse", f"refs/heads/{SESSION}")
    run_git(sessgit.store, "update-ref", "-d", f"refs/heads/{SESSION}")
    done = sessgit("verify")
    assert (done.code, done.out.splitlines()[:3]) == (
        6,
        [
            f"refs/heads/{SESSION}  damaged",
            "    it is missing, and no command removed it",
            "    sessgit doctor --fix",
        ],
    )
    sessgit("doctor", "--fix")
    assert run_git(sessgit.store, "rev-parse", f"refs/heads/{SESSION}") == was


def test_a_branch_that_a_command_took_back_and_that_got_another_name(sessgit: Shell) -> None:
    """Where it was noted further on: what was taken back is kept for undo."""
    talk = sessgit.talk().turns("one", "two", "three")
    sessgit.recorded(talk)
    talk.leaf = talk.file.ends[0]
    sessgit.recorded(talk.turns("other two"))
    ref = run_git(sessgit.store, "for-each-ref", "--format=%(refname)", f"refs/heads/{SESSION}.r-*").strip()
    tip, before = (run_git(sessgit.store, "rev-parse", name).strip() for name in (ref, f"{ref}^"))
    sessgit.out("gc")  # notes what refs there are
    operations.perform_operation(Store(sessgit.store), "undo", "undo: x", [Move(ref, tip, before)], sessgit.now)
    run_git(sessgit.store, "update-ref", f"{ref}0", before)
    run_git(sessgit.store, "update-ref", "-d", ref)
    assert "it is gone" not in sessgit("verify").out


def test_a_tag_that_was_recorded_while_a_command_deleted_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A background process may pack the refs after the operation is in the journal, and before the ref is gone."""
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("tag", "there", f"{SESSION}@1")
    store, ref = Store(sessgit.store), "refs/tags/there"
    oid = store.repo.ref(ref)
    operations.append(
        store.paths, operations.Operation("2026-03-01T13:00:00.000Z", "tag", "tag -d", {ref: (oid, None)})
    )

    def delete_ref(_seconds: float) -> None:
        if store.repo.ref(ref):
            store.repo.move(ref, oid, None)

    with monkeypatch.context() as patch:
        patch.setattr(operations, "time", SimpleNamespace(sleep=delete_ref))
        operations.record_refs(sessgit.store)
    delete_ref(0)
    assert sessgit.json("verify")["findings"] == []
    sessgit.out("gc", "--prune", "--yes")
