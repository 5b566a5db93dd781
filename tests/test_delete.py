"""`sessgit delete`: gone, and back until it is final."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from pathlib import Path

import pytest
from homes import claude_homes
from kept import begins
from plain import Keep, objects, run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import delete
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.recorder import drain
from sessgit.store import layout, locks, refs
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

THIRD = "5e551011-0000-4000-8000-000000000003"
SECRET = "turquoise walrus"


@begins
def sessgit(shell: Shell) -> None:
    doomed = shell.talk().turns("one", SECRET).rewind(1).turns("three")
    shell.recorded(doomed, shell.talk(OTHER).turns("else"))


def transcript(sessgit: Shell, session: str = SESSION) -> Path:
    return next(sessgit.config.glob(f"projects/*/{session}.jsonl"))


def tombstones(path: Path) -> list[str]:
    return sorted(ref.removeprefix(layout.DELETED) for ref in refs.read_all(path, layout.DELETED))


def sessions(path: Path) -> set[str]:
    spaces = (layout.HEADS, layout.ARCHIVE)
    return {layout.session_of(ref.removeprefix(s)) for s in spaces for ref in refs.read_all(path, s)}


class Terminal(io.StringIO):
    """Standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def answering(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(f"{word}\n"))


def test_it_asks_and_shows_what_goes(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit("tag", "works", f"{SESSION}@1")
    fork = sessgit.json("fork", SESSION, "--at", "2")
    before = refs.read_all(sessgit.store)
    question = (
        "5e551011-0000-4000-8000-000000000001  one  2 turns  2h ago\n"
        "  1 branch left behind by rewinds\n"
        f"  forks that keep the shared turns: {fork['id'][:8]}\n"
        "  not deleted, the client's transcript:\n"
        f"  ~/{transcript(sessgit).relative_to(sessgit.home)}\n"
    )
    answering(monkeypatch, "n")
    done = sessgit("delete", SESSION)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"{question}Delete? [y/N] Nothing was deleted.\n"
    assert refs.read_all(sessgit.store) == before
    answering(monkeypatch, "y")
    done = sessgit("delete", SESSION)
    assert (done.code, done.err) == (0, f"{question}Delete? [y/N] ")
    assert done.out == (
        f"{SESSION}  deleted\n"
        "The client's transcript stays, but is not recorded again:\n"
        f"  ~/{transcript(sessgit).relative_to(sessgit.home)}\n"
        "Undo: sessgit undo, until sessgit gc --prune\n"
    )
    assert sessions(sessgit.store) == {OTHER, fork["id"]}
    assert tombstones(sessgit.store) == [SESSION]
    assert transcript(sessgit).exists()


def test_without_a_terminal_it_needs_to_be_told(sessgit: Shell) -> None:
    done = sessgit("delete", SESSION)
    error = "Error: cannot ask for confirmation: stdin is not a terminal.\nHint: Pass --yes.\n"
    assert (done.code, done.err) == (2, error)
    assert sessgit("delete", SESSION, "--json").err.startswith("Error: cannot ask for confirmation: --json asks no")
    assert sessgit("delete", SESSION, "nosuch").err.startswith("Error: no conversation starts with “nosuch”.\n")
    assert tombstones(sessgit.store) == []


def test_what_never_had_a_transcript_is_not_lost(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("fork", SESSION, "--at", "1", "--no-restore", "--name", "without")
    sessgit.out("fork", SESSION, "--at", "1", "--name", "deleted")
    fork = sessgit.json("log", "deleted")["session"]["id"]
    next(sessgit.config.glob(f"projects/*/{fork}.jsonl")).unlink()
    asked = {}
    for name in ("without", "deleted"):
        answering(monkeypatch, "n")
        asked[name] = sessgit("delete", name).err
    assert "transcript" not in asked["without"]
    assert "  only this store has it: the client deleted its transcript\n" in asked["deleted"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no conversations selected."),
        (("--yes", f"{SESSION}@1"), 2, "only a whole conversation can be edited, not turn 1."),
        (("--yes", OTHER, "zzzz"), 4, "no conversation starts with “zzzz”."),
    ],
)
def test_what_cannot_be_deleted(sessgit: Shell, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = sessgit("delete", *arguments)
    assert (done.code, done.err.splitlines()[0]) == (code, f"Error: {message}")
    assert done.err.splitlines()[1].startswith("Hint: ")
    assert sessions(sessgit.store) == {SESSION, OTHER}


def test_one_that_is_open_is_not_deleted(sessgit: Shell) -> None:
    (sessgit.config / "sessions").mkdir()
    client = {"pid": os.getpid(), "sessionId": OTHER, "cwd": "/"}
    (sessgit.config / "sessions" / "1.json").write_text(json.dumps(client))
    done = sessgit("delete", "--yes", SESSION, OTHER)
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 is open in a client.\nHint: Nothing was deleted. Close it there, and try again.\n",
    )
    assert sessions(sessgit.store) == {SESSION, OTHER}


def test_undo_brings_all_of_it_back(sessgit: Shell) -> None:
    sessgit("tag", "works", f"{SESSION}@1")
    sessgit("tag", "start", f"{SESSION}@0")
    sessgit("archive", OTHER)
    before, page = refs.read_all(sessgit.store), sessgit.out("show", SESSION)
    gone = sessgit.json("delete", "--yes", SESSION, OTHER)
    assert [(one["id"], one["turns"], one["rewound"], one["tags"]) for one in gone["deleted"]] == [
        (SESSION, 2, 1, ["start", "works"]),
        (OTHER, 1, 0, []),
    ]
    assert sessions(sessgit.store) == set()
    assert not refs.read_all(sessgit.store, layout.TAGS)
    assert sessgit("show", SESSION).code == 4
    undone = sessgit.json("undo")
    assert undone["undone"] == gone["operation_id"]
    after = refs.read_all(sessgit.store)
    assert {ref: tip for ref, tip in after.items() if not ref.startswith(layout.KEEP)} == before
    assert sessgit.out("show", SESSION) == page
    assert sessgit.out("import").startswith("0 conversations, 0 turns imported; 2 were already imported")
    assert sessgit("undo", undone["operation_id"]).code == 0  # and deleted again
    assert tombstones(sessgit.store) == [SESSION, OTHER]
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_a_deletion_that_was_killed_halfway_is_completed_by_the_next_one(sessgit: Shell) -> None:
    head, ref = refs.read_all(sessgit.store)[layout.head_ref(SESSION)], layout.tombstone_ref(SESSION)
    sessgit.out("delete", SESSION, "--yes")
    complete = refs.read_all(sessgit.store, layout.DELETED)
    run_git(sessgit.store, "update-ref", layout.head_ref(SESSION), head)
    sessgit.out("delete", SESSION, "--yes")
    assert (sessions(sessgit.store), refs.read_all(sessgit.store, layout.DELETED)) == ({OTHER}, complete)
    assert run_git(sessgit.store, "show", "--format=%B", "--no-patch", ref).count("Tip: ") == 2


def test_a_tombstone_holds_no_words(sessgit: Shell) -> None:
    sessgit("rename", SESSION, "parser")
    sessgit.json("delete", "--yes", SESSION)
    ref = layout.tombstone_ref(SESSION)
    assert run_git(sessgit.store, "ls-tree", "-r", ref) == ""
    subject, empty, *trailers = run_git(sessgit.store, "log", "--format=%B", ref).strip().splitlines()
    assert (subject, empty, trailers[0]) == ("deleted", "", f"Session: {SESSION}")
    assert all(re.fullmatch("Tip: [0-9a-f]{40}", line) for line in trailers[1:])


def test_nothing_of_it_is_recorded_again(sessgit: Shell) -> None:
    sessgit.json("delete", "--yes", SESSION)
    path = sessgit.keep(sessgit.talk().turns("one", SECRET, "more"))
    objects = run_git(sessgit.store, "count-objects", "-v")
    assert sessgit.out("import") == (
        "0 conversations, 0 turns imported; 1 was already imported\n"
        f"1 conversation skipped, deleted here before:\n  sessgit import --id {SESSION}\n"
    )
    assert sessgit.json("import")["deleted"] == 1
    shown = sessgit("log", SESSION)
    assert (shown.code, shown.err) == (
        4,
        "Error: 5e551011 is not recorded: it was deleted here.\n"
        f"Hint: To record it again: `sessgit import --id {SESSION}`\n",
    )
    payload = {"session_id": SESSION, "transcript_path": str(path), "cwd": "/", "hook_event_name": "Stop"}
    (sessgit.store / "spool" / "1-1.json").write_text(json.dumps(payload))
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert not list((sessgit.store / "spool").iterdir())
    assert sessions(sessgit.store) == {OTHER}
    assert run_git(sessgit.store, "count-objects", "-v") == objects
    assert not (sessgit.store / "log").exists()
    assert "older" not in sessgit.out("status")


def test_an_import_by_its_id_records_it_again(sessgit: Shell) -> None:
    sessgit.json("delete", "--yes", SESSION)
    for ident, code, message in (
        ("5e5", 2, "“5e5” is too short for an id."),
        ("5e55", 4, f"“5e55” matches {SESSION}, {OTHER}."),
        ("7777", 4, "there is no transcript of a conversation “7777”."),
    ):
        done = sessgit("import", "--id", ident)
        assert (done.code, done.err.splitlines()[0]) == (code, f"Error: {message}")
    assert sessgit("import", "--id", SESSION, "--from", "claude").code == 2
    assert tombstones(sessgit.store) == [SESSION]
    assert sessgit.out("import", "--id", SESSION) == "1 conversation, 3 turns imported\n"
    assert tombstones(sessgit.store) == []
    assert [one["standing"] for one in sessgit.json("ops")["operations"]] == ["done", "done"]
    # What an undo would say of it is not so any more.
    assert sessgit("undo").code == 3
    assert sessgit("undo", sessgit.json("ops")["operations"][1]["id"]).code == 3
    assert sessions(sessgit.store) == {SESSION, OTHER}


def test_forks_go_on_without_the_session_that_they_left(sessgit: Shell) -> None:
    ours = sessgit.json("fork", SESSION, "--at", "1")["id"]
    (theirs,) = [sessgit.talk().turns("one").fork_session(THIRD).turns("mine")]
    sessgit.recorded(theirs)
    pages = {one: sessgit.out("export", "jsonl", one) for one in (ours, THIRD)}
    data = {one: transcript(sessgit, one).read_bytes() for one in (ours, THIRD)}
    sessgit("tag", "shared", f"{THIRD}@1")
    sessgit.json("delete", "--yes", SESSION)
    assert sessgit("gc", "--prune", "--yes").code == 0
    assert list(refs.tags(sessgit.store)) == ["shared"]
    for one in (ours, THIRD):
        assert sessgit.out("export", "jsonl", one) == pages[one]
        assert sessgit("export", "markdown", one).code == 0
        assert "5e551011-0000-4000-8000-000000000001@1" in sessgit.out("log", one)
        for command in ("show", "tree", "stats"):
            assert sessgit(command, *([one] if command != "stats" else [])).code == 0
        transcript(sessgit, one).unlink()
        assert sessgit("restore", one).code == 0
        assert transcript(sessgit, one).read_bytes() == data[one]
        assert sessgit("fork", one, "--at", "1").code == 0
    assert sessgit("diff", ours, THIRD).code == 0
    assert sessgit("diff", ours).code == 4  # what it left is gone
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_one_that_was_linked_to_it_later_goes_on(sessgit: Shell) -> None:
    """Its origin is named by an edit: the fork point is in no history of its own, and goes with the parent."""
    talk = sessgit.talk(THIRD).turns("first")
    sessgit.recorded(talk.fork_session("77777777-0000-4000-8000-000000000000").turns("theirs"))
    sessgit.recorded(talk)
    sessgit.json("delete", "--yes", THIRD)
    assert sessgit("gc", "--prune", "--yes").code == 0
    for arguments in (("log",), ("show",), ("export", "json"), ("export", "html"), ("restore",), ("tree",), ("fork",)):
        done = sessgit(*arguments, "77777777")
        assert done.code == 0, done


# Final


def test_prune_makes_it_final(sessgit: Shell) -> None:
    sessgit("rename", SESSION, SECRET)
    sessgit("undo")
    sessgit("search", "walrus")
    sessgit("show", f"{SESSION}.r-a0000002@2")
    tip = refs.read_all(sessgit.store)[layout.head_ref(f"{SESSION}.r-a0000002")]
    sessgit.json("delete", "--yes", SESSION)
    assert sessgit("gc").code == 0
    run_git(sessgit.store, "cat-file", "-e", tip)
    done = sessgit("gc", "--prune", "--yes")
    assert done.out.splitlines()[1] == "1 deleted conversation removed for good"
    with pytest.raises(AssertionError):
        run_git(sessgit.store, "cat-file", "-e", tip)
    assert set(refs.read_all(sessgit.store)) == {layout.head_ref(OTHER), layout.tombstone_ref(SESSION)}
    for path in sessgit.store.rglob("*"):
        assert not path.is_file() or not any(w in path.read_bytes() for w in (b"walrus", b"turquoise")), path
        assert SESSION not in path.name or path.parent.name == "deleted"
    assert all(b"walrus" not in data for _, _, data in objects(sessgit.store))
    assert sessgit("undo").err == (
        "Error: “5e551011: deleted” can no longer be undone: sessgit gc --prune made it final.\n"
        "Hint: Nothing was changed. `sessgit ops` lists all operations.\n"
    )
    assert sessgit.json("gc", "--prune", "--yes")["final"] == []
    assert "skipped, deleted here before" in sessgit.out("import")
    assert sessgit("search", "walrus").err == "Nothing found.\n"
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_it_asks_before_it_makes_anything_final(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sessgit("gc", "--prune").code == 0  # nothing would go
    sessgit.json("delete", "--yes", SESSION)
    done = sessgit("gc", "--prune")
    assert (done.code, done.err) == (
        2,
        "Error: cannot ask for confirmation: stdin is not a terminal.\n"
        "Hint: Pass --yes: 1 deleted conversation would be deleted for good.\n",
    )
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    done = sessgit("gc", "--prune")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "1 deleted conversation would be deleted for good:\n"
        "5e551011-0000-4000-8000-000000000001. Until then, `sessgit undo` brings it back.\n"
        "Prune? [y/N] Nothing was changed.\n",
    )
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert sessgit("gc", "--prune").out.endswith("1 deleted conversation removed for good\n")
    assert sessgit("gc", "--prune").err == ""


def test_all_that_there_is(sessgit: Shell) -> None:
    sessgit.json("delete", "--yes", SESSION, OTHER)
    assert sessgit("ls").code == 4
    assert sessgit("undo").code == 0
    sessgit.json("delete", "--yes", SESSION, OTHER)
    assert sessgit.json("gc", "--prune", "--yes")["final"] == [SESSION, OTHER]
    assert set(refs.read_all(sessgit.store)) == {layout.tombstone_ref(SESSION), layout.tombstone_ref(OTHER)}


def test_an_undone_fork_of_it_does_not_keep_it(sessgit: Shell) -> None:
    sessgit.json("fork", SESSION, "--at", "2")
    sessgit.json("undo")
    sessgit.json("delete", "--yes", SESSION)
    assert sessgit.json("gc", "--prune", "--yes")["final"] == [SESSION]
    assert not refs.read_all(sessgit.store, layout.KEEP)


# Races


def test_deleting_while_a_recorder_records(keep: Keep, store: Store, index: Index, claude: Path) -> None:
    """Its rewound branch is made already when the head turns out to be gone; the lock is waited for, and it goes."""
    talk = Talk().turns("one", "two")
    keep(talk)
    rival = Store(store.path)
    started = threading.Event()

    def act() -> None:
        other = Index(store.path, lambda: rival)
        other.sync()
        started.set()
        going = delete.plan_deletion(other, [SESSION], claude_homes(claude.parents[1]))
        delete.delete_sessions(Context(other, now=lambda: NOW), going)
        other.close()

    class Rivalled(Repository):
        """Someone deletes the session between the two moves."""

        thread: threading.Thread | None = None

        def move(self, name: str, old: str | None, new: str | None) -> None:
            super().move(name, old, new)
            if self.thread is None:
                self.thread = threading.Thread(target=act)
                self.thread.start()
                while refs.read(store.path, layout.head_ref(SESSION)):
                    started.wait(0.01)

    store.repo = Rivalled(store.path)
    path = talk.rewind(1).turns("three").save(claude)
    with locks.session_lock(store.paths, SESSION) as held:
        assert held
        done = record(Context(index), TranscriptSource(path, SESSION, claude.parents[1], live=True))
    store.repo.thread.join()
    assert (done.skipped, done.turns) == ("deleted", ())
    assert sessions(store.path) == set()


def test_what_a_recorder_left_goes_with_the_next_prune(sessgit: Shell) -> None:
    tip = refs.read_all(sessgit.store)[layout.head_ref(SESSION)]
    sessgit.json("delete", "--yes", SESSION)
    run_git(sessgit.store, "update-ref", f"refs/heads/{SESSION}.r-deadbeef", tip)
    assert sessgit("gc", "--prune", "--yes").code == 0
    assert sessions(sessgit.store) == {OTHER}


def test_names_of_its_tags_go_where_nothing_else_had_them(sessgit: Shell) -> None:
    for name in ("walrus", "größe-at", "w"):
        sessgit.out("tag", name, f"{SESSION}@1")
    sessgit.out("tag", "--delete", "w")
    sessgit.out("tag", "both", f"{SESSION}@1")
    sessgit.out("tag", "both", f"{OTHER}@1", "--force")
    sessgit.out("delete", SESSION, "--yes")
    before, length = sessgit.json("ops")["operations"], (sessgit.store / "operations.jsonl").stat().st_size
    assert sessgit("gc", "--prune", "--yes").code == 0
    after, journal = sessgit.json("ops")["operations"], (sessgit.store / "operations.jsonl").read_bytes()
    assert [(one["id"], one["standing"]) for one in after] == [(one["id"], one["standing"]) for one in before]
    assert len(journal) == length
    long = "@" + "2".zfill(len(json.dumps("größe-at")) - 3)
    assert [one["summary"] for one in after] == [
        "5e551011: deleted", "tag both at 5e551011@1", "tag both at 5e551011@1", "tag @ deleted", "tag @ at 5e551011@1",
        f"tag {long} at 5e551011@1", "tag @00001 at 5e551011@1",
    ]  # fmt: skip
    assert {move["ref"] for move in after[0]["refs"] if layout.TAGS in move["ref"]} == {
        f"refs/tags/{name}" for name in ("@00001", long)
    }
    for path in sessgit.store.rglob("*"):
        assert not path.is_file() or not any(word in path.read_bytes() for word in (b"walrus", b"gr\\u00f6")), path
    # Of what is gone later the names are others, and those that are gone stay as they are.
    sessgit.recorded(sessgit.talk(THIRD).turns("more"))
    sessgit.out("tag", "newest", f"{THIRD}@1")
    sessgit.out("delete", THIRD, "--yes")
    assert sessgit("gc", "--prune", "--yes").code == 0
    assert (sessgit.store / "operations.jsonl").read_bytes().startswith(journal)
    assert sessgit.json("ops")["operations"][1]["summary"] == "tag @00004 at 5e551011@1"
    assert list(refs.tags(sessgit.store)) == ["both"]
    assert sessgit.json("verify")["findings"] == []


def test_undo_says_what_is_final_and_what_is_not(sessgit: Shell) -> None:
    sessgit.out("edit", OTHER, "--label", "kept")
    sessgit.out("delete", SESSION, "--yes")
    assert sessgit("gc", "--prune", "--yes").code == 0
    deleted, edited = sessgit.json("ops")["operations"]
    done = sessgit("undo")
    assert (done.code, done.out, done.err) == (
        3, "", "Error: “5e551011: deleted” can no longer be undone: sessgit gc --prune made it final.\n"
        f"Hint: Nothing was changed. Undo “{edited['summary']}” instead: `sessgit undo {edited['id']}`\n",
    )  # fmt: skip
    assert sessgit("undo", edited["id"]).code == 0
    assert sessgit("undo").err.endswith("Hint: Nothing was changed. `sessgit ops` lists all operations.\n")
    assert sessgit("undo", deleted["id"]).code == 3
