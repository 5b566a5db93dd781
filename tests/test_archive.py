"""`sessgit archive` and `sessgit unarchive`: out of the way, and as good as before."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from homes import claude_homes
from kept import begins
from plain import Git, Keep, run_git
from shell import NOW, Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.branch import archive
from sessgit.model.conversation import session as states
from sessgit.model.conversation.message import Message
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.recorder import drain
from sessgit.store import layout, locks, refs, spool
from sessgit.store.backend import Repository
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

DAY = 86_400
THIRD = "5e551011-0000-4000-8000-000000000003"
LATER = NOW + 40 * DAY


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one", "two").rewind(1).turns("three"), shell.talk(OTHER).turns("else"))
    shell("rename", SESSION, "parser")


def archived(path: Path) -> list[str]:
    return sorted(ref.removeprefix(layout.ARCHIVE) for ref in refs.read_all(path, layout.ARCHIVE))


def heads(path: Path) -> list[str]:
    return sorted(ref.removeprefix(layout.HEADS) for ref in refs.read_all(path, layout.HEADS))


def open_in_a_client(shell: Shell, session: str) -> None:
    (shell.config / "sessions").mkdir(exist_ok=True)
    client = {"pid": os.getpid(), "sessionId": session, "cwd": str(shell.project)}
    (shell.config / "sessions" / f"{os.getpid()}.json").write_text(json.dumps(client))


def test_out_of_the_way_and_back(sessgit: Shell) -> None:
    before = refs.read_all(sessgit.store)
    assert sessgit.out("archive", "parser") == (
        "5e551011-0000-4000-8000-000000000001  parser  2 turns  2h ago\n1 conversation archived (undo: sessgit undo)\n"
    )
    assert archived(sessgit.store) == [SESSION, f"{SESSION}.r-a0000002"]
    assert heads(sessgit.store) == [OTHER]
    assert [one["id"] for one in sessgit.json("ls")["sessions"]] == [OTHER]
    (one,) = sessgit.json("ls", "--only-archived")["sessions"]
    assert (one["id"], one["archived"]) == (SESSION, True)
    assert sessgit.out("archive", SESSION, OTHER, SESSION) == (
        "5e551011-0000-4000-8000-000000000001  pars…  2 turns  2h ago  (already archived)\n"
        "5e551011-0000-4000-8000-000000000002  else    1 turn  2h ago\n"
        "1 conversation archived (undo: sessgit undo)\n"
    )
    assert sessgit.out("unarchive", OTHER, SESSION) == (
        "5e551011-0000-4000-8000-000000000002  else     1 turn  2h ago\n"
        "5e551011-0000-4000-8000-000000000001  parser  2 turns  2h ago\n"
        "2 conversations unarchived (undo: sessgit undo)\n"
    )
    assert sessgit.out("unarchive", OTHER) == (
        "5e551011-0000-4000-8000-000000000002  else  1 turn  2h ago  (not archived)\n"
    )
    assert refs.read_all(sessgit.store) == before


def test_all_that_worked_before_works_in_the_archive(sessgit: Shell) -> None:
    names = (SESSION, "parser", SESSION[:-1] + "1", f"{SESSION}.r-a0000002")
    pages = [sessgit.out("show", name) for name in names]
    log, data = sessgit.out("log", SESSION), sessgit.out("export", "json", SESSION)
    sessgit.out("archive", SESSION)
    assert [sessgit.out("show", name) for name in names] == pages
    assert sessgit.out("log", SESSION) == log
    assert sessgit.out("export", "json", SESSION) == data.replace('"archived": false', '"archived": true', 1)
    assert "three" in sessgit.out("search", "three")
    assert sessgit.out("tag", "here", f"{SESSION}@2").startswith("here  5e551011-0000-4000-8000-000000000001@2")
    assert sessgit("show", "here").code == 0
    assert "labels +old" in run_git(sessgit.store, "log", "-1", "--format=%s", _edited(sessgit))
    assert sessgit("diff", SESSION, OTHER).code == 0
    fork = sessgit.json("fork", SESSION, "--at", "1")
    assert [one["id"] for one in sessgit.json("ls", "--forks-of", SESSION)["sessions"]] == [fork["id"]]
    path = next(sessgit.config.glob(f"projects/*/{SESSION}.jsonl"))
    written = path.read_bytes()
    path.unlink()
    assert sessgit("restore", SESSION).code == 0
    assert path.read_bytes().startswith(written)
    assert archived(sessgit.store) == [SESSION, f"{SESSION}.r-a0000002"]
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def _edited(sessgit: Shell) -> str:
    assert sessgit("edit", SESSION, "--label", "old").code == 0
    return layout.archive_ref(SESSION)


def test_undo_takes_both_back(sessgit: Shell) -> None:
    before = refs.read_all(sessgit.store)
    sessgit.out("archive", SESSION, OTHER)
    after = refs.read_all(sessgit.store)
    sessgit.out("unarchive", SESSION)
    assert sessgit.out("undo").splitlines()[0] == "Undone: 5e551011: unarchived"
    assert refs.read_all(sessgit.store) == after
    assert sessgit.out("undo").splitlines()[0] == "Undone: 2 conversations archived"
    assert refs.read_all(sessgit.store) == before
    assert [one["id"] for one in sessgit.json("ls")["sessions"]] == [SESSION, OTHER]


def test_one_that_is_open_is_not_archived(sessgit: Shell) -> None:
    open_in_a_client(sessgit, OTHER)
    before = refs.read_all(sessgit.store)
    done = sessgit("archive", SESSION, OTHER)
    assert (done.code, done.err) == (
        3,
        "Error: 5e551011 is open in a client.\nHint: Nothing was archived. Close it there, and try again.\n",
    )
    assert refs.read_all(sessgit.store) == before
    sessgit.now = LATER
    assert sessgit.json("archive", "--older-than", "30d") == {
        "archived": [SESSION],
        "already": [],
        "skipped": [{"id": OTHER, "reason": "open in a client"}],
        "operation_id": sessgit.json("ops")["operations"][0]["id"],
        "dry_run": False,
    }


def test_the_old_ones(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk(THIRD, cwd="/elsewhere").turns("far"))
    sessgit.now = LATER
    assert sessgit.out("archive", "--older-than", "41d") == "Nothing to archive.\n"
    assert sessgit.out("archive", "--older-than", "30d", "--dry-run") == (
        "5e551011-0000-4000-8000-000000000001  parser  2 turns  1 Mar\n"
        "5e551011-0000-4000-8000-000000000002  else     1 turn  1 Mar\n"
        "2 conversations would be archived.\n"
    )
    assert archived(sessgit.store) == []
    sessgit("edit", OTHER, "--label", "keep")
    assert sessgit.out("archive", "--older-than", "30d", "--label", "none") == "Nothing to archive.\n"
    assert sessgit.out("archive", "--older-than", "30d", "--state", "interrupted") == "Nothing to archive.\n"
    assert sessgit.out("archive", "--older-than", "30d", "--all") == (
        "5e551011-0000-4000-8000-000000000001  parser  2 turns  1 Mar\n"
        "5e551011-0000-4000-8000-000000000003  far      1 turn  1 Mar\n"
        "2 conversations archived (undo: sessgit undo)\n"
        "Skipped: 1 labelled keep\n"
    )
    assert sessgit("archive", OTHER).code == 0


def test_one_whose_transcript_has_gone_on_unrecorded_is_no_old_one(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk(OTHER).turns("else", "more"))
    sessgit.now = LATER
    os.utime(path, (LATER - DAY,) * 2)
    found = sessgit.json("archive", "--older-than", "30d", "--dry-run")
    assert (found["archived"], found["skipped"]) == ([SESSION], [{"id": OTHER, "reason": "with unrecorded turns"}])


def test_a_manager_is_archived_by_name_only(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    tip = refs.read_all(sessgit.store)[layout.head_ref(OTHER)]
    document = json.loads(states.dumps(store.state(tip)))
    document["metadata"]["role"] = "manager"
    message = Message("edit: role manager", (("Session", OTHER), ("Event", "edit")))
    commit = store.write_commit(tip, {}, states.loads(document), message, [tip], int(NOW))
    store.repo.move(layout.head_ref(OTHER), tip, commit)
    store.repo.release()
    sessgit.now = LATER
    assert sessgit.json("archive", "--older-than", "30d")["skipped"] == [{"id": OTHER, "reason": "managing others"}]
    assert sessgit("archive", OTHER).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "no conversations selected."),
        ((SESSION, "--older-than", "3d"), 2, "--older-than and ADDRESS cannot be combined."),
        ((SESSION, "--label", "x"), 2, "--label needs --older-than."),
        (("--all",), 2, "--all needs --older-than."),
        (("--older-than", "soon"), 2, "“soon” is not a time."),
        ((f"{SESSION}@1",), 2, "only a whole conversation can be edited, not turn 1."),
        (("zzzz",), 4, "no conversation starts with “zzzz”."),
    ],
)
def test_what_cannot_be_archived(sessgit: Shell, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = sessgit("archive", *arguments)
    assert (done.code, done.err.splitlines()[0]) == (code, f"Error: {message}")
    assert done.err.splitlines()[1].startswith("Hint: ")
    assert archived(sessgit.store) == []


def test_unarchive_needs_a_name(sessgit: Shell) -> None:
    assert sessgit("unarchive").code == 2
    assert sessgit("unarchive", f"{SESSION}@1").code == 2
    assert sessgit("unarchive", "zzzz").code == 4


# Recording


def test_import_and_catching_up_leave_it_in_the_archive(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("archive", OTHER)
    before = refs.read_all(sessgit.store)
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 2 were already imported\n"
    copy = sessgit.talk(OTHER).turns("else").save(tmp_path)
    assert sessgit.out("import", str(copy)) == "0 conversations, 0 turns imported; 1 was already imported\n"
    sessgit.keep(sessgit.talk(OTHER).turns("else", "more"))
    assert sessgit.out("import") == (
        "0 conversations, 0 turns imported; 2 were already imported\n"
        "1 archived conversation has new turns: sessgit unarchive\n"
    )
    found = sessgit.json("import")
    assert (found["unchanged"], found["archived"]) == (2, 1)
    shown = sessgit("log", OTHER)
    assert shown.err == f"{OTHER}: it is archived, and has new turns: sessgit unarchive\n"
    assert "more" not in shown.out
    assert refs.read_all(sessgit.store) == before
    sessgit.out("unarchive", OTHER)
    assert "more" in sessgit.out("log", OTHER)


def test_the_last_lines_are_recorded_before_it_is_archived(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk(THIRD).turns("mine"))
    assert sessgit("log", THIRD).code == 0  # recorded, but not to its end: the client may still write
    sessgit.out("archive", THIRD)
    path.unlink()
    assert sessgit("restore", THIRD).code == 0
    assert path.read_bytes() == sessgit.talk(THIRD).turns("mine").data


def test_a_recorder_brings_it_back_as_the_same_session(sessgit: Shell) -> None:
    sessgit.out("archive", OTHER)
    commits = run_git(sessgit.store, "rev-list", layout.archive_ref(OTHER))
    path = sessgit.keep(sessgit.talk(OTHER).turns("else", "more"))
    event(sessgit.store, path)
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert archived(sessgit.store) == []
    log = run_git(sessgit.store, "log", "--format=%s", OTHER).splitlines()
    assert log[0] == "turn 2: more"
    assert run_git(sessgit.store, "rev-list", OTHER).endswith(commits)
    assert [one["command"] for one in sessgit.json("ops")["operations"]][:2] == ["background", "archive"]
    assert [one["standing"] for one in sessgit.json("ops")["operations"]][:2] == ["done", "done"]
    # What nobody ordered is not what an undo without an id takes back.
    assert sessgit("undo").err.startswith("Error: cannot undo “5e551011: archived”: 5e551011 has changed since then.")


def event(store: Path, path: Path, name: str = "Stop") -> None:
    payload = {"session_id": path.stem, "transcript_path": str(path), "cwd": "/", "hook_event_name": name}
    (store / "spool" / "1-1.json").write_text(json.dumps(payload))


def test_archiving_while_a_recorder_records(keep: Keep, store: Store, index: Index, claude: Path) -> None:
    talk = Talk().turns("one", "two")
    keep(talk)
    tips = refs.session_tips(store.path, SESSION)

    class Rivalled(Repository):
        """Someone archives the session just before its head moves: the objects are written by then."""

        def move(self, name: str, old: str | None, new: str | None) -> None:
            if name == layout.head_ref(SESSION) and refs.read(store.path, name):
                rival = Store(store.path)
                archive.archive(
                    Context(
                        Index(store.path, lambda: rival),
                        homes=claude_homes(claude.parents[1]),
                        privacy=off(),
                        now=lambda: NOW,
                    ),
                    [SESSION],
                )
            super().move(name, old, new)

    store.repo = Rivalled(store.path)
    path = talk.rewind(1).turns("three").save(claude)
    done = record(Context(index), TranscriptSource(path, SESSION, claude.parents[1], live=True))
    assert (done.skipped, done.turns) == ("archived", ())
    rewound = f"{SESSION}.r-a0000002"  # made before the head could move, and archived with it
    assert refs.session_tips(store.path, SESSION, layout.ARCHIVE) == {**tips, rewound: tips[SESSION]}
    store.repo = Repository(store.path)
    archive.bring_back(Context(index, now=lambda: NOW), SESSION)
    assert record(Context(index), TranscriptSource(path, SESSION, claude.parents[1], live=True)).turns == (2,)
    assert sorted(refs.session_tips(store.path, SESSION)) == [SESSION, f"{SESSION}.r-a0000002"]
    assert refs.read_all(store.path, layout.ARCHIVE) == {}


def off() -> Privacy:
    return Privacy(RecordConfig(), "/home/ada", off=True)


def test_a_branch_that_is_in_both_places_is_the_live_one(sessgit: Shell) -> None:
    store = Store(sessgit.store)
    tip = refs.read_all(sessgit.store)[layout.head_ref(SESSION)]
    older = store.commit(tip).parents[0]
    store.repo.move(layout.archive_ref(SESSION), None, older)
    sessgit.out("unarchive", SESSION)
    assert refs.read(sessgit.store, layout.head_ref(SESSION)) == tip
    store.repo.move(layout.archive_ref(SESSION), None, older)
    sessgit.out("archive", SESSION)
    assert refs.read_all(sessgit.store, layout.ARCHIVE)[layout.archive_ref(SESSION)] == tip
    assert heads(sessgit.store) == [OTHER]


def test_a_fork_of_an_archived_session_is_linked_to_it(keep: Keep, store: Store, index: Index, claude: Path) -> None:
    """Recorded after the session that it was copied from came second, and is archived by then."""
    talk = Talk().turns("one")
    keep(talk.fork_session().turns("theirs"))
    archive.archive(Context(index, homes=claude_homes(claude.parents[1]), privacy=off(), now=lambda: NOW), [OTHER])
    keep(talk)
    branch = index.branch(OTHER)
    assert branch is not None
    assert branch.archived
    assert branch.state.origin is not None
    assert branch.state.origin.session == SESSION


# By itself


def test_by_itself_once_an_hour(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text('[archive]\nafter = "30d"\n')
    stamp = time.time()
    path = sessgit.keep(sessgit.talk(THIRD).turns("new"))
    recent = path.read_text().replace("2026-03-01T", time.strftime("%Y-%m-%dT", time.gmtime(stamp)))
    path.write_text(recent)
    event(sessgit.store, path)
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert heads(sessgit.store) == [THIRD]
    sessgit.now = stamp
    assert sessgit.out("ops", "-n", "1").split("  ", 2)[2:] == ["background  2 conversations archived automatically\n"]
    sessgit.out("unarchive", SESSION)
    event(sessgit.store, path)
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert SESSION in heads(sessgit.store)
    os.utime(sessgit.store / "state" / "archiving", (stamp - 3700,) * 2)
    event(sessgit.store, path)
    with locks.maintenance_lock(layout.StorePaths(sessgit.store)) as held:
        assert held
        drain.drain_spool(
            sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
        )
        assert SESSION in heads(sessgit.store)  # who packs is not waited for
    event(sessgit.store, path)
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert SESSION not in heads(sessgit.store)
    assert not spool.waiting_events(sessgit.store / "spool", time.time())
    assert not (sessgit.store / "log").exists()


def test_what_goes_wrong_by_itself_is_logged(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text('[archive]\nafter = "30d"\n')
    (sessgit.store / "state" / "archiving").mkdir()
    os.utime(sessgit.store / "state" / "archiving", (0, 0))
    (sessgit.store / "operations.jsonl").unlink()
    (sessgit.store / "operations.jsonl").mkdir()
    event(sessgit.store, sessgit.keep(sessgit.talk(THIRD).turns("new")))
    drain.drain_spool(
        sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home), "PATH": os.environ["PATH"]}
    )
    assert "automatic archiving" in (sessgit.store / "log").read_text()
    assert THIRD in heads(sessgit.store)


# The index


def test_the_state_is_not_read_again(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    index.sync()
    archive._move_sessions(Context(index, now=lambda: NOW), [SESSION, OTHER], ("archive", "archived"))
    other = Index(sessgit.store, lambda: pytest.fail("the store was opened"))
    assert {branch.name: branch.archived for branch in other.branches()} == {
        SESSION: True,
        f"{SESSION}.r-a0000002": True,
        OTHER: True,
    }
    run_git(sessgit.store, "update-ref", f"refs/heads/{OTHER}", layout.archive_ref(OTHER))
    run_git(sessgit.store, "update-ref", "-d", layout.archive_ref(OTHER))
    other.sync()
    assert [branch.name for branch in other.branches() if not branch.archived] == [OTHER]


def test_many_at_once(store: Store, index: Index, git: Git, keep: Keep) -> None:
    """So many refs that were moved one by one are packed: no file is left for each."""
    keep(Talk().turns("one"))
    tip = refs.session_tips(store.path, SESSION)[SESSION]
    names = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(600)]
    packed = store.path / "packed-refs"
    packed.write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(
        f"{tip} refs/heads/{name}\n" for name in names
    ))  # fmt: skip
    index.sync()
    done = archive._move_sessions(Context(index, now=lambda: NOW), names, ("archive", "archived"))
    assert len(done.sessions) == 600
    assert not list((store.path / "refs" / "archive").glob("*"))
    assert git("for-each-ref", "--format=%(refname)", "refs/archive").splitlines() == [
        f"refs/archive/{n}" for n in names
    ]
