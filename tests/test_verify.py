"""`sessgit verify`: every promise of the format, broken in a real store, is found; a healthy store has no finding."""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import damaging
import pytest
from damaging import LONG, SECOND, THIRD, Recorded
from plain import run_git
from shell import Shell
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk, subagent

from sessgit.check import verify
from sessgit.store import layout
from sessgit.store.index import Index
from sessgit.store.store import Store


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


def test_a_healthy_store_has_no_finding(kept: Recorded) -> None:
    assert kept.found() == []


def test_all_that_a_session_can_be_is_healthy(parser: Shell) -> None:
    parser.recorded(parser.talk(OTHER, style="2.0").prompt(f"the key is {SECRET}").tool("Bash").answer("Thanks."))
    parser.out("tag", "here", f"{SESSION}@2")
    parser.out("edit", SESSION, "--name", "grammar", "--label", "parser")
    parser.out("archive", "by hand")
    parser.out("fork", OTHER, "--name", "elsewhere")
    parser.out("delete", "by cell", "--yes")
    found = parser.json("verify", "--deep")
    assert found["findings"] == []
    assert (found["sound"], found["damaged"], found["id"]) == (True, [], None)
    assert found["cut"] >= 2
    assert parser.out("verify", SESSION).splitlines()[0].endswith(": no damage.")


def test_cells_of_their_own_and_subagents_are_healthy(store: Store, index: Index, claude: Path) -> None:
    made = Recorded(store, index, claude)
    talk = Talk().turns("one").prompt("two").tool("Bash").tool("Task", {"prompt": "x"}).answer("ok")
    subagent(claude, talk, "7c2d", "found")
    made.keep(talk, granularity="cell", final=True)
    made.keep(talk.rewind(1).prompt("three").parallel(("Bash", {}, "a"), ("Read", {"file_path": "/b"}, LONG)))
    assert made.found() == []


def test_a_copy_cut_before_a_result_is_interrupted_though_the_original_is_not(
    store: Store, index: Index, claude: Path
) -> None:
    recorded = Recorded(store, index, claude)
    talk = Talk().turns("one").prompt("two").tool("Bash").answer("Done.")
    copy = talk.fork_session()
    del copy.lines[-2:]  # the result and the answer
    recorded.keep(talk, final=True)
    recorded.keep(copy, final=True)
    states = [json.loads(run_git(store.path, "show", f"{session}:session.json")) for session in (SESSION, OTHER)]
    assert [state["metadata"]["state"] for state in states] == ["ended", "interrupted"]
    assert states[1]["origin"]["turn"] == 2
    assert recorded.found() == []


def test_the_cursor_of_a_restored_file_without_new_lines_is_healthy(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt(f"the key is {SECRET}").answer("Thanks.")
    path = sessgit.recorded(talk)
    path.unlink()
    sessgit.out("restore", SESSION)
    assert path.stat().st_size != len(talk.data)
    sessgit.out("import", str(path))
    assert json.loads((sessgit.store / "state" / f"{SESSION}.json").read_bytes())["file"] == 2
    assert sessgit.json("verify")["findings"] == []


def test_a_turn_that_grew_is_one(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one").prompt("two").answer("So far.")
    sessgit.recorded(talk)
    sessgit.keep(talk.tool("Bash").answer("Done."))
    sessgit.out("log", SESSION)  # an import would record all of it as if it had come at once
    assert run_git(sessgit.store, "log", "--format=%(trailers:key=Turn,valueonly)", SESSION).split() == ["2", "2", "1"]
    assert sessgit.json("verify")["turns"] == 2


# One broken promise each


def lines_changed(kept: Recorded) -> None:
    kept.remade(files={f"{THIRD}/transcript.jsonl": kept.file(f"{THIRD}/transcript.jsonl").replace(b"Done.", b"Gone.")})


def cells_changed(kept: Recorded) -> None:
    kept.remade(files={f"{THIRD}/cells.jsonl": kept.file(f"{THIRD}/cells.jsonl").replace(b"true", b"false", 1)})


def cells_gone(kept: Recorded) -> None:
    kept.remade(files={f"{THIRD}/cells.jsonl": None})


def a_text_gone(kept: Recorded) -> None:
    name = next(iter(kept.store.repo.tree(kept.store.folder(kept.tip(), 2)["texts"][0])))
    kept.remade(files={f"{SECOND}/texts/{name}": None, f"{SECOND}/texts/00000000-a-b": b"x"})


def a_closed_turn_changed(kept: Recorded) -> None:
    kept.remade(files={f"{SECOND}/subagents/agent-1.jsonl": b"{}\n"})


def a_turn_gone(kept: Recorded) -> None:
    names = kept.store.folder(kept.tip(), 2)
    kept.remade(files={f"{SECOND}/{name}": None for name in names if name != "texts"})
    tree = kept.store.repo.edit_tree(kept.store.commit(kept.tip()).tree, {SECOND: None})
    old = kept.store.commit(kept.tip())
    made = kept.store.repo.write_commit(tree, list(old.parents), old.message, old.time)
    run_git(kept.store.path, "update-ref", f"refs/heads/{SESSION}", made)


def a_number_left_out(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace("Turn: 3", "Turn: 5").replace("turn 3", "turn 5"))


def another_prompt(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace("Prompt: a0000003", "Prompt: a0000009"))


def an_extent_too_long(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace("\nExtent: ", "\nExtent: 0+10/99\nExtent: "))


def an_extent_that_is_none(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace("\nExtent: ", "\nExtent: many\nExtent: "))


def no_session(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace(f"Session: {SESSION}\n", ""))


def an_event_of_no_name(kept: Recorded) -> None:
    kept.remade(message=lambda said: said.replace("Event: turn", "Event: pivot"))


def a_turn_too_many(kept: Recorded) -> None:
    kept.remade(files=kept.stated(trajectory={"turns": 4}))


def another_id(kept: Recorded) -> None:
    kept.remade(files=kept.stated(metadata={"session_id": OTHER}))


def a_long_name(kept: Recorded) -> None:
    kept.remade(files=kept.stated(authored={"name": "x" * 101}))


def a_stage_that_is_none(kept: Recorded) -> None:
    kept.remade(files=kept.stated(authored={"stage": "pondering"}))


def labels_unsorted(kept: Recorded) -> None:
    kept.remade(files=kept.stated(authored={"labels": ["b", "a"]}))


def not_canonical(kept: Recorded) -> None:
    kept.remade(files={"session.json": kept.file("session.json").replace(b": ", b":", 1)})


def state_is_no_json(kept: Recorded) -> None:
    kept.remade(files={"session.json": b"{"})


def no_format(kept: Recorded) -> None:
    kept.remade(files={"format": b"one\n"})


def a_tail_behind_a_turn(kept: Recorded) -> None:
    kept.remade(files={"tail.jsonl": b"{}\n"})


def body_is_torn(kept: Recorded) -> None:
    kept.remade(files={f"{THIRD}/transcript.jsonl": kept.file(f"{THIRD}/transcript.jsonl")[:-1]})


def no_body(kept: Recorded) -> None:
    kept.remade(files={f"{THIRD}/transcript.jsonl": None})


def a_pad_without_an_end(kept: Recorded) -> None:
    kept.remade(files={"pad/insights.jsonl": b"{}"})


def a_beginning_that_is_none(kept: Recorded) -> None:
    kept.remade(parents=[])


def two_parents(kept: Recorded) -> None:
    first = kept.store.commit(kept.tip()).parents[0]
    kept.remade(parents=[first, kept.store.commit(first).parents[0]])


def a_branch_of_a_strange_name(kept: Recorded) -> None:
    run_git(kept.store.path, "update-ref", "refs/heads/UPPER", kept.tip())


def a_side_branch_alone(kept: Recorded) -> None:
    run_git(kept.store.path, "update-ref", "refs/heads/a41f9c02.r-0000aaaa", kept.tip())


def a_tag_at_nothing(kept: Recorded) -> None:
    blob = kept.store.repo.write_blob(b"x")
    run_git(kept.store.path, "update-ref", "refs/tags/here", blob)


def a_tombstone_that_is_none(kept: Recorded) -> None:
    run_git(kept.store.path, "update-ref", f"refs/deleted/{OTHER}", kept.tip())


def a_ref_of_garbage(kept: Recorded) -> None:
    (kept.store.path / "refs" / "heads" / OTHER).write_text("garbage\n")


def a_key_too_short(kept: Recorded) -> None:
    kept.store.paths.key.write_bytes(b"short")


def settings_misspelt(kept: Recorded) -> None:
    kept.store.paths.config.write_text("[recrod]\n")


def loose(store: Path, oid: str) -> Path:
    return store / "objects" / oid[:2] / oid[2:]


def folder_entry(kept: Recorded, number: int, name: str) -> str:
    return kept.store.folder(kept.tip(), number)[name][0]


def a_blob_missing(kept: Recorded) -> None:
    loose(kept.store.path, folder_entry(kept, 2, "transcript.jsonl")).unlink()


def a_blob_damaged(kept: Recorded) -> None:
    path = loose(kept.store.path, folder_entry(kept, 2, "transcript.jsonl"))
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob 5\0hello"))


def a_tree_missing(kept: Recorded) -> None:
    entry = kept.store.repo.entry(kept.store.tree(kept.tip()), SECOND)
    assert entry is not None
    loose(kept.store.path, entry[0]).unlink()


def a_commit_missing(kept: Recorded) -> None:
    loose(kept.store.path, kept.store.commit(kept.tip()).parents[0]).unlink()


def the_tip_missing(kept: Recorded) -> None:
    loose(kept.store.path, kept.tip()).unlink()


def the_state_missing(kept: Recorded) -> None:
    entry = kept.store.repo.entry(kept.store.tree(kept.tip()), layout.STATE)
    assert entry is not None
    loose(kept.store.path, entry[0]).unlink()


BROKEN: dict[Callable[[Recorded], None], tuple[str, str, str]] = {
    lines_changed: ("damage", "hash", "@3"),
    cells_changed: ("wrong", "cells", "@3"),
    cells_gone: ("wrong", "cells", "@3"),
    a_text_gone: ("wrong", "closed", "@3"),
    a_closed_turn_changed: ("wrong", "closed", "@3"),
    a_turn_gone: ("wrong", "closed", "@3"),
    a_number_left_out: ("wrong", "numbers", "@5"),
    another_prompt: ("wrong", "trailer", "@3"),
    an_extent_too_long: ("damage", "extent", "@3"),
    an_extent_that_is_none: ("wrong", "extent", "@3"),
    no_session: ("wrong", "trailer", ""),
    an_event_of_no_name: ("wrong", "trailer", "@3"),
    a_turn_too_many: ("wrong", "counts", "@3"),
    another_id: ("wrong", "state", "@3"),
    a_long_name: ("wrong", "state", "@3"),
    a_stage_that_is_none: ("wrong", "state", "@3"),
    labels_unsorted: ("wrong", "state", "@3"),
    not_canonical: ("wrong", "state", "@3"),
    state_is_no_json: ("damage", "state", "@3"),
    no_format: ("damage", "state", "@3"),
    a_tail_behind_a_turn: ("wrong", "tree", "@3"),
    body_is_torn: ("damage", "tree", "@3"),
    no_body: ("damage", "tree", "@3"),
    a_pad_without_an_end: ("wrong", "pad", "@3"),
    a_beginning_that_is_none: ("wrong", "history", "@3"),
    two_parents: ("wrong", "history", "@3"),
    a_branch_of_a_strange_name: ("wrong", "ref", "refs/heads/UPPER"),
    a_side_branch_alone: ("wrong", "ref", "refs/heads/a41f9c02.r-0000aaaa"),
    a_tag_at_nothing: ("damage", "tag", "refs/tags/here"),
    a_tombstone_that_is_none: ("wrong", "ref", f"refs/deleted/{OTHER}"),
    a_ref_of_garbage: ("damage", "ref", f"refs/heads/{OTHER}"),
    a_key_too_short: ("damage", "key", "key"),
    settings_misspelt: ("wrong", "settings", "config.toml"),
    a_blob_missing: ("damage", "object", "@2"),
    a_blob_damaged: ("damage", "object", "@2"),
    a_tree_missing: ("damage", "object", "@2"),
    a_commit_missing: ("damage", "object", ""),
    the_tip_missing: ("damage", "object", ""),
    the_state_missing: ("damage", "object", "@3"),
}


@pytest.mark.parametrize("harm", BROKEN, ids=lambda harm: harm.__name__)
def test_what_is_broken_is_found(kept: Recorded, harm: Callable[[Recorded], None]) -> None:
    harm(kept)
    assert BROKEN[harm] in kept.found(deep=False)
    assert BROKEN[harm] in kept.found(deep=True)


def test_damage_in_one_leaves_the_others(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"), sessgit.talk(OTHER).turns("three"))
    sessgit.out("fork", SESSION, "--at", "1", "--name", "spared")
    unpack(sessgit.store)
    oid = run_git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000002/transcript.jsonl").strip()
    loose(sessgit.store, oid).unlink()
    done = sessgit("verify")
    assert done.code == 6
    assert done.err == ""
    assert done.out.splitlines()[:3] == [
        "5e551011-0000-4000-8000-000000000001@2  damaged",
        f"    transcript.jsonl is missing: object {oid}"[:80],
        "    `sessgit repair 5e551011-0000-4000-8000-000000000001` searches the",
    ]
    assert "2 of 3 conversations are intact." in done.out
    assert all(len(line) <= 80 for line in done.out.splitlines())
    found = json.loads(sessgit("verify", "--json").out)
    assert (found["damaged"], found["sound"]) == ([SESSION], False)
    assert found["findings"][0]["objects"] == [oid]
    assert sessgit("verify", OTHER).code == 0
    assert sessgit("verify", "spared").code == 0
    assert sessgit("verify", SESSION).code == 6


def test_what_is_shared_is_told_of_both(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("fork", SESSION, "--at", "1", "--name", "hit too")
    unpack(sessgit.store)
    oid = run_git(sessgit.store, "rev-parse", f"{SESSION}:turns/0000/000001/transcript.jsonl").strip()
    loose(sessgit.store, oid).unlink()
    found = json.loads(sessgit("verify", "--json").out)["findings"]
    assert [(one["kind"], one["where"].partition("@")[0][:8]) for one in found] == [
        ("object", "5e551011"), ("shared", "f0000001"),
    ]  # fmt: skip


def test_deep_hashes_what_nothing_reads(sessgit: Shell) -> None:
    """An object that no branch leads to, and a damaged one in a pack."""
    sessgit.recorded(sessgit.talk().turns("one"))
    blob = run_git(sessgit.store, "hash-object", "-w", str(sessgit.store / "key")).strip()
    path = loose(sessgit.store, blob)
    path.chmod(0o600)
    path.write_bytes(zlib.compress(b"blob 1\0x"))
    assert sessgit("verify").code == 0
    done = sessgit("verify", "--deep", "--json")
    (found,) = json.loads(done.out)["findings"]
    assert (done.code, found["kind"], blob in found["objects"]) == (6, "git", True)


def test_one_that_no_index_knows_is_named_by_its_beginning(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    (sessgit.store / "refs" / "heads" / "a41f9c02").write_text("1" * 40 + "\n")
    done = sessgit("verify", "a41f")
    assert (done.code, done.out.splitlines()[0]) == (6, "a41f9c02  damaged")
    assert sessgit("verify", "b0b0").code == 4


def test_several_processes_find_the_same(sessgit: Shell) -> None:
    sessgit.recorded(
        *(sessgit.talk(f"5e551011-0000-4000-8000-00000000000{n}").turns("one", "two") for n in range(1, 6))
    )
    (sessgit.store / "refs" / "heads" / "a41f9c02").write_text("1" * 40 + "\n")
    store = Store(sessgit.store)
    tree = run_git(sessgit.store, "rev-parse", f"{SESSION}^{{tree}}").strip()
    made = store.repo.write_commit(tree, [], f"x\n\nSession: {SESSION}\nEvent: pivot\n", 0)
    store.repo.release()
    run_git(sessgit.store, "update-ref", "refs/keep/0123abcd-1", made)
    seen: list[tuple[int, int]] = []
    one, two = (
        verify.verify_store(store, None, lambda done, total: seen.append((done, total)), jobs=jobs) for jobs in (1, 2)
    )
    assert one == two
    kept = {finding.kind for finding in one.findings if finding.where.startswith("refs/keep/")}
    assert kept >= {"trailer", "history"}
    assert not one.is_sound
    assert seen[-1][0] == seen[-1][1] == one.sessions * 2


def test_nothing_is_written(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("verify", "--deep")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in everything(sessgit.store)}
    sessgit.out("verify", "--deep")
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in everything(sessgit.store)} == before


def everything(folder: Path) -> list[Path]:
    found = [Path(top) / name for top, _, names in os.walk(folder) for name in names]
    return [path for path in found if not path.name.startswith("index.sqlite3")]


def unpack(store: Path) -> None:
    """All objects loose again."""
    packs = store / "objects" / "pack"
    for pack in list(packs.glob("*.pack")):
        aside = store / pack.name
        pack.rename(aside)
        for other in packs.glob(f"{pack.stem}.*"):
            other.unlink()
        with aside.open("rb") as data:
            subprocess.run(["git", "-C", str(store), "unpack-objects", "-q"], stdin=data, check=True)
        aside.unlink()
