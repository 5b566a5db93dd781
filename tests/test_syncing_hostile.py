"""What a remote may hold that nobody should trust: it is left, told, and harms nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from clones import Clone, bare, described
from plain import run_git
from transcripts import OTHER, SESSION, Talk

from sessgit.errors import NewerStoreError, SessgitError
from sessgit.model import canonical
from sessgit.model.conversation import message as messages
from sessgit.model.conversation.message import Message
from sessgit.store import layout, refs
from sessgit.store.store import Store

HEAD = f"refs/heads/{SESSION}"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Clone, Clone]]:
    """One machine that has two conversations and sent them, and one that has yet to pull."""
    remote = bare(tmp_path / "remote")
    one, two = (Clone(tmp_path / f"clone-{n}", remote, n) for n in range(2))
    one.record(Talk().turns("one", "two"))
    one.record(Talk(OTHER).turns("good"))
    one.push()
    yield one, two
    two.check()
    one.close(), two.close()


def there(one: Clone, commit: str, ref: str = HEAD) -> None:
    """Puts a commit on the remote as nothing of ours would."""
    subprocess.run(
        ["git", "-C", str(one.store.path), "push", "-qf", "origin", f"{commit}:{ref}"], check=True, capture_output=True
    )


def commit(one: Clone, files: dict[str, bytes | None], *, session: str = SESSION) -> str:
    """A commit on the head with these files changed, or taken out."""
    tip, repo = one.tip(), one.store.repo
    changes = {path: (repo.write_blob(data), False) if data is not None else None for path, data in files.items()}
    message = messages.format_message(Message("edit: odd", (("Session", session), ("Event", "edit"))))
    return repo.write_commit(repo.edit_tree(repo.commit(tip).tree, changes), [tip], message, repo.commit(tip).time)


def state(one: Clone, change: Change) -> bytes:
    entry = one.store.repo.entry(one.store.tree(one.tip()), layout.STATE)
    assert entry is not None
    document = json.loads(one.store.repo.blob(entry[0]))
    change(document)
    return canonical.dumps(document)


def test_a_later_format_stops_the_pull(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    there(one, commit(one, {"format": b"2\n"}))
    for _ in range(2):
        with pytest.raises(NewerStoreError):
            two.pull()
        assert two.refs() == {}
    assert described(two.pull(OTHER).changes) == [("new", 1, "")]


@pytest.mark.parametrize(
    "files",
    [
        {"format": b"one\n"},
        {"format": None},
        {"session.json": None},
        {"session.json": b"{"},
        {"session.json": b"[" * 100_000},
        {"session.json": b"[]"},
        {"turns/0000/000002/transcript.jsonl": None, "turns/0000/000002/before.jsonl": b"\n"},
        {"turns/0000/000003/transcript.jsonl": b"{}\n"},
        {"turns/0000/000001": b"no folder"},
        {"turns": b"no folder"},
        {"turns/../x": b"up"},
    ],
    ids=str,
)
def test_what_cannot_be_read_is_left(pair: tuple[Clone, Clone], files: dict[str, bytes | None]) -> None:
    one, two = pair
    try:
        there(one, commit(one, files))
    except SessgitError:
        return  # git itself makes no such tree
    pulled = two.pull()
    assert described(pulled.changes) == [("new", 1, "")]
    assert [item.what for item in pulled.skipped] == [SESSION]
    assert list(two.refs()) == [f"refs/heads/{OTHER}"]
    # Neither does it stop, or get, a push of one's own.
    one.edit(OTHER, name="fine")
    pushed = one.push()
    assert (described(pushed.changes), [item.what for item in pushed.skipped]) == ([("forward", 0, "")], [SESSION])


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["metadata"].update(session_id=OTHER),
        lambda d: d["metadata"].update(session_id=""),
        lambda d: d["metadata"].update(agent_id="../../etc/passwd"),
        lambda d: d["trajectory"].update(turns=10**18),
        lambda d: d.update(trajectory=None),
    ],
    ids=range(5),
)
def test_a_state_that_is_another_ones_is_left(pair: tuple[Clone, Clone], change: Change) -> None:
    one, two = pair
    there(one, commit(one, {"session.json": state(one, change)}))
    assert [item.what for item in two.pull().skipped] == [SESSION]
    assert list(two.refs()) == [f"refs/heads/{OTHER}"]


def test_a_commit_of_another_session_is_left(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    there(one, commit(one, {}, session=OTHER))
    assert [item.what for item in two.pull().skipped] == [SESSION]
    there(one, one.tip(OTHER))
    assert [item.what for item in two.pull().skipped] == [SESSION]


@pytest.mark.parametrize("dropped", [True, False])
def test_what_goes_on_from_here_and_leaves_turns_out_is_left(pair: tuple[Clone, Clone], dropped: bool) -> None:
    one, two = pair
    two.pull()
    before = two.refs()
    body = {"turns/0000/000001/transcript.jsonl": b'{"type":"user"}\n'}
    folder = [path for path in one.store.repo.files(one.store.tree(one.tip())) if path.startswith("turns/0000/000002/")]
    fewer = {"session.json": state(one, lambda document: document["trajectory"].update(turns=1))}
    there(one, commit(one, {**dict.fromkeys(folder), **fewer} if dropped else dict(body)))
    pulled = two.pull()
    assert (described(pulled.changes), two.refs()) == ([], before)
    assert [item.why for item in pulled.skipped] == [
        "cannot read it here: it continues the conversation here, but without some of its turns"
    ]


def test_nobody_else_says_that_it_was_redacted(tmp_path: Path) -> None:
    one = Clone(tmp_path / "one", bare(tmp_path / "remote"), 0)
    one.record(Talk().turns("one", "two"), redact=False)
    one.push(unredacted=True)
    before = one.refs()
    there(one, commit(one, {"session.json": state(one, lambda document: document["rules"].update(redact=1))}))
    pulled = one.pull()
    assert (one.refs(), [item.why for item in pulled.skipped]) == (
        before, ["cannot read it here: it marks lines as redacted that are not redacted here"],
    )  # fmt: skip
    one.close()


def test_a_bad_side_branch_does_not_keep_the_head_from_coming(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    there(one, commit(one, {"session.json": b"{"}), f"{HEAD}.m-00000000")
    pulled = two.pull()
    assert [item.what for item in pulled.skipped] == [f"{SESSION}.m-00000000"]
    assert sorted(two.refs()) == sorted([HEAD, f"refs/heads/{OTHER}"])


def test_a_branch_without_its_head_is_left(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    there(one, one.tip(), f"{HEAD}.r-00000000")
    run_git(one.remote, "update-ref", "-d", HEAD)
    assert [item.what for item in two.pull().skipped] == [SESSION]


def test_refs_that_are_none_of_ours_stay_there(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    for name in ("refs/heads/main", f"{HEAD}.x-00000000", "refs/heads/A", "refs/notes/x", "refs/deleted/a.b"):
        run_git(one.remote, "update-ref", name, one.tip())
    before = one.there()
    two.pull()
    assert two.refs().keys() <= {HEAD, f"refs/heads/{OTHER}", "refs/heads/main"}
    two.push()
    assert one.there() == before


def test_a_tombstone_that_is_none_deletes_nothing(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    two.pull()
    run_git(one.remote, "update-ref", "-d", HEAD)
    message = messages.format_message(Message("deleted", (("Session", OTHER), ("Tip", one.tip()))))
    stone = one.store.repo.write_commit(one.store.repo.edit_tree(None, {}), [], message, 0)
    for value in (stone, one.tip()):
        there(one, value, layout.tombstone_ref(SESSION))
        two.pull()
        assert HEAD in two.refs()


def test_a_damaged_session_here_stops_no_other(pair: tuple[Clone, Clone]) -> None:
    one, two = pair
    two.pull()
    broken = commit(two, {"session.json": b"{"})
    run_git(two.store.path, "update-ref", HEAD, broken)
    one.record(Talk().turns("one", "two", "three"))
    one.record(Talk(OTHER).turns("good", "better"))
    one.push()
    pulled = two.pull()
    assert (described(pulled.changes), [item.what for item in pulled.skipped]) == ([("forward", 1, "")], [SESSION])
    assert [item.what for item in two.push().skipped] == [SESSION]


def test_a_remote_that_is_no_store_brings_nothing(tmp_path: Path) -> None:
    remote = bare(tmp_path / "remote")
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", str(remote), str(work)], check=True, capture_output=True)
    who = ("-c", "user.name=a", "-c", "user.email=a")
    run_git(work, *who, "commit", "-q", "--allow-empty", "-m", "start")
    run_git(work, "push", "-q", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/topic/one")
    two = Clone(tmp_path / "clone", remote)
    pulled = two.pull()
    assert (pulled.changes, two.refs()) == ((), {})
    assert Store(two.store.path).repo.has("0" * 40) is False
    assert not [ref for ref in refs.read_all(two.store.path) if "topic" in ref]
    two.close()
