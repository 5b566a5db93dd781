"""What `verify` finds of the form of commits, of what they hold beside turns, and of files beside the repository."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import damaging
import pytest
from damaging import SECOND, THIRD, Recorded, harmed
from plain import run_git
from transcripts import OTHER, SESSION, Talk

from sessgit.check import verify
from sessgit.model import canonical
from sessgit.store.index import Index
from sessgit.store.store import Store

ENTRY = {"cycle": 1, "kind": "insight", "session": SESSION, "text": "a", "time": "2026-03-01T10:00:00.000Z"}
LOST = "1" * 40


@pytest.fixture
def kept(store: Store, index: Index, claude: Path) -> Recorded:
    return damaging.three_turns(store, index, claude)


def said(kept: Recorded, old: str, new: str) -> None:
    """A message in which something else stands."""
    before = kept.tip()
    assert kept.remade(message=lambda text: text.replace(old, new, 1)) != before


def extent(kept: Recorded, change: Callable[[int, int, int], str]) -> None:
    (found,) = kept.store.message(kept.tip()).extents
    said(kept, f"Extent: {found}", change(found.offset, found.length, found.lines))


def by_someone_else(kept: Recorded) -> None:
    made = ["git", "-C", str(kept.store.path), "hash-object", "-t", "commit", "-w", "--stdin"]
    data = run_git(kept.store.path, "cat-file", "commit", kept.tip()).replace("author sessgit", "author Ada", 1)
    commit = subprocess.run(made, input=data.encode(), capture_output=True, check=True).stdout.decode().strip()
    run_git(kept.store.path, "update-ref", f"refs/heads/{SESSION}", commit)


def forked(kept: Recorded, files: dict[str, bytes | None], trailers: str) -> None:
    kept.then("fork", "fork: another", files={**files, "live": None}, trailers=trailers)


def ended(kept: Recorded, subject: str = "end: 3 turns", **meta: str) -> None:
    values = {"state": "ended", "ended_at": json.loads(kept.file("session.json"))["metadata"]["updated_at"], **meta}
    kept.then("end", subject, files=kept.stated(metadata=values))
    kept.remade(later=int(canonical.seconds(values["ended_at"]) or 0) - kept.store.commit(kept.tip()).time)


def entry(**values: object) -> bytes:
    """A line of the list of insights."""
    return canonical.compact({**ENTRY, "id": "cb3de213", **values}) + b"\n"


COMMITS: dict[str, tuple[Callable[[Recorded], object], tuple[str, str, str]]] = {
    "a proof of nothing": (
        lambda k: said(k, "Event: turn", f"Event: turn\nOriginal-HMAC: {'0' * 64}"), ("wrong", "trailer", "@3"),
    ),
    "a hash that is none": (lambda k: said(k, "Lines-SHA256: ", "Lines-SHA256: x"), ("damage", "hash", "@3")),
    "a graft from nowhere": (lambda k: said(k, "Event: turn", "Event: graft"), ("wrong", "trailer", "@3")),
    "an extent too long": (lambda k: extent(k, lambda a, n, m: f"Extent: {a}+{n + 1}/{m}"), ("wrong", "extent", "@3")),
    "an edit of the tail": (
        lambda k: k.then("edit", "edit: x", files={"tail.jsonl": b"{}\n"}), ("wrong", "tree", "@3"),
    ),
    "an edit of a turn": (
        lambda k: k.then("edit", "edit: x", files={f"{SECOND}/subagents/agent-1.jsonl": b"{}\n"}),
        ("wrong", "closed", "@3"),
    ),
    "a compaction of the state": (
        lambda k: k.then(
            "compact", "compact: the conversation so far into a summary", files=k.stated(metadata={"title": "x"})
        ),
        ("wrong", "state", "@3"),
    ),
    "a repair of the state": (
        lambda k: k.then(
            "repair", "repair: 1 mend", files=k.stated(metadata={"title": "x"}), trailers=f"Origin: {SESSION}\n"
        ),
        ("wrong", "state", "@3"),
    ),
    "an edit of the format": (lambda k: k.then("edit", "edit: x", files={"format": b"1"}), ("wrong", "tree", "@3")),
    "a tail of no place": (
        lambda k: (ended(k), k.remade(files={"tail.jsonl": b'{"type":"mode"}\n'})), ("wrong", "extent", "@3"),
    ),
    "a file more in a turn's folder": (
        lambda k: k.remade(files={f"{THIRD}/notes.txt": b"x\n"}), ("wrong", "file", "@3"),
    ),
    "a folder more in a turn's folder": (
        lambda k: k.remade(files={f"{THIRD}/more/notes.txt": b"x\n"}), ("wrong", "file", "@3"),
    ),
    "a merge of nothing": (lambda k: k.then("merge", "merge: x"), ("wrong", "history", "@3")),
    "other rules": (lambda k: k.then("edit", "edit: x", files=k.stated(rules={"redact": 0})), ("wrong", "state", "@3")),
    "a fork without an origin": (lambda k: forked(k, {}, f"Fork-Point: {SESSION}@3\n"), ("wrong", "fork", "@3")),
    "a subagent of a strange name": (
        lambda k: k.remade(files={f"{THIRD}/subagents/me.jsonl": b"{}\n"}), ("wrong", "tree", "@3"),
    ),
    "a result of a strange name": (
        lambda k: k.remade(files={f"{THIRD}/files/elsewhere/a.txt": b"x"}), ("wrong", "tree", "@3"),
    ),
    "something strange seen": (lambda k: k.remade(files={"live/mail/a": b"x"}), ("wrong", "tree", "@3")),
    "a note of no source": (lambda k: k.remade(files={"kept/source.json": b"{}\n"}), ("wrong", "kept", "@3")),
    "an empty list": (lambda k: k.remade(files={"pad/insights.jsonl": b""}), ("wrong", "pad", "@3")),
    "an entry of another id": (
        lambda k: k.remade(files={"pad/insights.jsonl": entry(text="b")}), ("wrong", "pad", "@3"),
    ),
    "an entry with spaces": (
        lambda k: k.remade(files={"pad/insights.jsonl": entry().replace(b",", b", ")}), ("wrong", "pad", "@3"),
    ),
    "another prompt, and missing bytes": (
        lambda k: (
            extent(k, lambda a, n, m: f"Extent: {a + 7}+{n}/{m}"), said(k, "Prompt: a0000003", "Prompt: a0000009")
        ),
        ("wrong", "trailer", "@3"),
    ),
    "a tombstone of nothing": (
        lambda k: run_git(k.store.path, "update-ref", f"refs/deleted/{OTHER}", k.store.repo.write_commit(
            k.store.repo.edit_tree(None, {}), [], f"deleted\n\nSession: {OTHER}\nTip: here\n", 0
        )),
        ("wrong", "ref", f"refs/deleted/{OTHER}"),
    ),
}  # fmt: skip


def test_every_promise_of_a_commit(kept: Recorded) -> None:
    missed = {}
    for name, (harm, wanted) in COMMITS.items():
        with harmed(kept):
            harm(kept)
            found = kept.found()
        if wanted not in found:
            missed[name] = found
    assert missed == {}
    assert kept.found() == []


FOLLOWS = "does not follow from its lines and the commits before it: "


def lost_side(kept: Recorded) -> None:
    """A merge whose second parent is nowhere."""
    other = kept.store.repo.write_commit(kept.store.tree(kept.tip()), [], "x\n", 0)
    kept.then("merge", f"merge: 1 turn of {OTHER}", trailers=f"Origin: {OTHER}@1\n", parents=(other,))
    (kept.store.path / "objects" / other[:2] / other[2:]).unlink()


@pytest.mark.parametrize(("harm", "wanted"), [
    (lambda k: k.then("edit", "edit: x", files={"format": b"1"}), f"{FOLLOWS}format"),
    (lambda k: k.then("edit", "edit: x", files={"turns/0000/notes": b"x"}), f"{FOLLOWS}turns/0000/notes"),
    (lambda k: k.then("edit", "edit: x", files={"turns/notes": b"x"}), f"{FOLLOWS}turns/notes"),
    (lambda k: said(k, "Event: turn", "Event: chat"), "the event “chat” is unknown"),
    (lambda k: k.then("start", "start: x"), "a start is in the middle of the history"),
    (lost_side, "what was merged here is missing: object "),
])  # fmt: skip
def test_what_others_tell_of_too_is_told(harm: Callable[[Recorded], object], wanted: str, kept: Recorded) -> None:
    """Of each harm alone by its words: some break another promise as well."""
    assert not [one for one in words(kept) if one.startswith(wanted)]
    harm(kept)
    assert [one for one in words(kept) if one.startswith(wanted)]


@pytest.mark.parametrize("mode", ["120000", "100755"])
def test_a_link_or_a_program_is_no_plain_file(mode: str, kept: Recorded) -> None:
    old = kept.store.commit(kept.tip())
    inside = run_git(kept.store.path, "ls-tree", f"{old.tree}:{THIRD}").replace("100644", mode, 1)
    made = ["git", "-C", str(kept.store.path), "mktree"]
    folder = subprocess.run(made, input=inside.encode(), capture_output=True, check=True).stdout.decode().strip()
    tree = kept.store.repo.edit_tree(old.tree, {THIRD: (folder, True)})
    commit = kept.store.repo.write_commit(tree, list(old.parents), old.message, old.time)
    kept.store.repo.release()
    run_git(kept.store.path, "update-ref", f"refs/heads/{SESSION}", commit)
    assert [one for one in words(kept) if one.endswith("is neither a plain file nor a folder")]


def words(kept: Recorded) -> list[str]:
    """What is found, in words."""
    return [one.what for one in verify.verify_store(Store(kept.store.path), None, lambda done, total: None).findings]


def test_what_is_right_is_left(kept: Recorded) -> None:
    """What the harms above are made of has no finding by itself."""
    for right in (
        lambda: ended(kept),
        lambda: kept.then("edit", "edit: x", files={"pad/insights.jsonl": entry(id="")}),
        lambda: kept.remade(files={f"{THIRD}/subagents/agent-7c.jsonl": b"{}\n", "live/todos/a.json": b"x"}),
        lambda: kept.then("edit", "edit: label x", files=kept.stated(authored={"labels": ["x"]})),
    ):
        with harmed(kept):
            right()
            assert [one for one in kept.found() if one[1] != "pad"] == []
    for line in (entry(), entry(cycle=2), entry(text="[redacted:purged]")):
        with harmed(kept):
            kept.then("edit", "edit: x", files={"pad/insights.jsonl": line})
            assert kept.found() == []


BESIDE: dict[str, tuple[str, bytes, tuple[str, str, str]]] = {
    "another head": ("HEAD", b"ref: refs/heads/main\n", ("wrong", "store", "HEAD")),
    "git packs by itself": ("config", b"[core]\n\tbare = true\n", ("wrong", "store", "config")),
    "a line that is no operation": ("operations.jsonl", b'{"id": 1}\n', ("note", "operations", "operations.jsonl")),
    "two operations of one id": (
        "operations.jsonl", 2 * json.dumps({
            "time": "", "command": "tag", "summary": "", "refs": {}, "files": {}, "undoes": "", "id": "0123abcd",
        }).encode().join((b"", b"\n")),
        ("wrong", "operations", "operations.jsonl"),
    ),
    "what is forbidden is lost": ("state/forbidden", b"{}", ("wrong", "purge", "state/forbidden")),
    "a purge that was killed": ("state/purging", b"{}", ("wrong", "purge", "state/purging")),
    "rewritten into nothing": ("state/rewritten", b"here there\n", ("wrong", "purge", "state/rewritten")),
    "a ref of a remote to nothing": (
        f"refs/remotes/hub/heads/{SESSION}", f"{LOST}\n".encode(),
        ("damage", "object", f"refs/remotes/hub/heads/{SESSION}"),
    ),
}  # fmt: skip


def test_every_file_beside(kept: Recorded) -> None:
    missed = {}
    for name, (place, data, wanted) in BESIDE.items():
        path = kept.store.path / place
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        found = kept.found(deep=False)
        path.unlink() if before is None else path.write_bytes(before)
        if wanted not in found:
            missed[name] = found
    assert missed == {}


def test_a_journal_that_is_none(kept: Recorded) -> None:
    kept.store.paths.journal.mkdir()
    assert kept.found(deep=False) == [("damage", "operations", "operations.jsonl")]


def test_what_was_purged_and_came_back(kept: Recorded) -> None:
    (kept.store.path / "state" / "rewritten").write_text(f"{kept.tip()} {LOST}\n")
    assert kept.found() == [("wrong", "purge", kept.tip())]


def test_an_origin_that_moved(kept: Recorded) -> None:
    talk = Talk().turns("one").prompt("two").tool("Read", {"file_path": "/a.py"}, damaging.LONG).answer("Read.")
    kept.keep(talk.stop_lines().branch(OTHER).turns("another", "and on"))
    state = json.loads(run_git(kept.store.path, "show", f"{OTHER}:session.json"))
    assert kept.found() == []
    state["origin"]["turn"] = 1
    kept.remade(files={"session.json": canonical.dumps(state)}, branch=OTHER)
    assert ("wrong", "fork", f"{OTHER}@4") in kept.found()


def test_rows_of_the_index(kept: Recorded) -> None:
    assert kept.found(index=kept.index) == []
    with closing(sqlite3.connect(kept.store.paths.index)) as db, db:
        db.execute("UPDATE recorded SET prompt = 'x'")
    assert kept.found(index=kept.index) == [("wrong", "index", "index.sqlite3")]
