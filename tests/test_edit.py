"""What a person says of a conversation: kept through everything, and in nobody's way."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import begins
from pictures import conversation, log
from plain import Git, Keep, Rivalled, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk
from waiting import PATIENCE

from sessgit.branch import edit as edits
from sessgit.branch import restore
from sessgit.branch.edit import EditChanges, edit_session
from sessgit.errors import ConflictError, SessgitError, StoreError
from sessgit.model.conversation.session import STAGES, Session
from sessgit.record import edit_commit, file_pass
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import layout, locks
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

NOW = 1772370000.0
PARSER, UPLOAD = (f"{c}-0000-4000-8000-{c}0000" for c in ("a41f9c02", "0b2d7f10"))


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(
        shell.talk(PARSER).turns("fix the lexer", "go on"),
        shell.talk(UPLOAD).turns("upload").title("fix flaky upload", "ai-title"),
    )


def said(done: Any) -> tuple[int, str]:
    return done.code, done.err


# Names


def test_a_name_from_its_beginning_to_its_end(sessgit: Shell) -> None:
    assert sessgit.out("rename", "a41f", "parser rewrite") == "a41f9c02  parser rewrite  (was: fix the lexer)\n"
    assert sessgit.out("rename", "a41f", " parser rewrite ") == "a41f9c02  parser rewrite  (already its name)\n"
    assert sessgit.out("rename", "parser rewrite", "pratt") == "a41f9c02  pratt  (was: parser rewrite)\n"
    assert sessgit.out("id", "pratt") == f"{PARSER}\n"
    assert "  a41f9c02  pratt " in sessgit.out("ls")
    assert sessgit.out("log", "pratt").startswith("a41f9c02  pratt ")
    assert sessgit.out("rename", "--clear", "pratt") == "a41f9c02  fix the lexer  (was: pratt)\n"
    assert sessgit.out("rename", "--clear", "a41f") == "a41f9c02  fix the lexer  (it has no name)\n"
    subjects = run_git(sessgit.store, "log", "-3", "--format=%s", PARSER)
    assert subjects == "edit: no name\nedit: name “pratt”\nedit: name “parser rewrite”\n"
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_the_commit_of_an_edit(sessgit: Shell) -> None:
    head, turn = (run_git(sessgit.store, "rev-parse", f"{PARSER}{up}").strip() for up in ("", "~1"))
    assert (head, turn) != ("", "")
    sessgit.out("edit", "a41f", "--name", "parser", "--label", "x", "--stage", "shaping", "--confidence", ".5")
    message = run_git(sessgit.store, "log", "-1", "--format=%B", PARSER)
    assert message.rstrip() == (
        f"edit: name “parser”, labels +x, stage shaping, confidence 0.5\n\nSession: {PARSER}\nEvent: edit"
    )
    assert run_git(sessgit.store, "rev-parse", f"{PARSER}~1").strip() == head
    assert run_git(sessgit.store, "diff", "--name-only", f"{PARSER}~1", PARSER) == "session.json\n"
    assert run_git(sessgit.store, "log", "-1", "--format=%ct", PARSER).strip() == str(int(sessgit.now))


def test_names_as_json(sessgit: Shell) -> None:
    done = sessgit.json("rename", "a41f", "parser rewrite")
    commit = run_git(sessgit.store, "rev-parse", PARSER).strip()
    assert done == {"id": PARSER, "name": "parser rewrite", "was": "", "commit": commit}
    assert sessgit.json("rename", "a41f", "parser rewrite")["commit"] is None


@pytest.mark.parametrize("columns", [40, 60])
def test_a_long_name_folds(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    name = "a name that is rather long for one line of a narrow terminal"
    lines = sessgit.out("rename", "a41f", name).splitlines()
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("a41f9c02  a name that is rather")
    assert lines[-1].strip() == "(was: fix the lexer)"


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (
            ("a41f@1", "fix it"),
            2,
            "Error: only a whole conversation can be edited, not turn 1.\n"
            "Hint: Leave out the turn: a41f9c02. To mark a turn: `sessgit tag NAME a41f9c02@1`\n",
        ),
        (
            ("0b2d", "taken"),
            3,
            "Error: a41f9c02 is already called “taken”.\n"
            "Hint: Names are unique in a project: choose another name, or rename the other one first: `sessgit "
            "rename a41f9c02 OTHER`\n",
        ),
        (
            ("0b2d", "a41f"),
            3,
            f"Error: the id of {PARSER} begins with “a41f”.\nHint: An address could mean either one.\n",
        ),
        (
            ("0b2d", "v1"),
            3,
            "Error: there is a tag “v1”.\nHint: Choose another name, or delete the tag first: `sessgit tag -d v1`\n",
        ),
        (
            ("a41f", UPLOAD),
            2,
            f"Error: “{UPLOAD}” cannot be a name: it looks like an id.\nHint: Choose a descriptive name.\n",
        ),
        (
            ("a41f", "a/b"),
            2,
            "Error: “a/b” cannot be a name.\n"
            "Hint: A name has at most 100 characters, no @, / or control characters, and does not start with -.\n",
        ),
        (
            ("a41f", " "),
            2,
            "Error: the new name is missing.\n"
            "Hint: `sessgit rename a41f NAME` names it, `sessgit rename --clear a41f` removes its name.\n",
        ),
        (
            (),
            2,
            "Error: the new name is missing.\n"
            "Hint: `sessgit rename NAME` names the current conversation, `sessgit rename ADDRESS NAME` any other.\n",
        ),
        *(
            (
                (word,),
                2,
                f"Error: “{word}” is a conversation, but its new name is missing.\n"
                f"Hint: `sessgit rename {word} NAME`\n",
            )
            for word in ("a41f", PARSER, "0b2d", UPLOAD, "0b2d7")
        ),
        (
            ("a41f", "0b2d"),
            3,
            f"Error: the id of {UPLOAD} begins with “0b2d”.\nHint: An address could mean either one.\n",
        ),
        (
            ("a41f", "a41f"),
            3,
            f"Error: the id of {PARSER} begins with “a41f”.\nHint: An address could mean either one.\n",
        ),
        (
            ("Review", "a41f"),
            4,
            "Error: no conversation starts with “Review”.\n"
            "Hint: The conversation comes first: `sessgit rename a41f Review`\n",
        ),
        (
            ("a new name", "taken"),
            4,
            "Error: no conversation starts with “a new name”.\n"
            "Hint: The conversation comes first: `sessgit rename taken 'a new name'`\n",
        ),
        (
            ("nosuch", "a name"),
            4,
            "Error: no conversation starts with “nosuch”.\nHint: `sessgit ls --all` lists all conversations.\n",
        ),
        (
            ("--clear", "a41f", "x"),
            2,
            "Error: --clear takes no NAME.\nHint: `sessgit rename --clear a41f`\n",
        ),
    ],
)
def test_names_that_are_refused(sessgit: Shell, words: tuple[str, ...], code: int, error: str) -> None:
    sessgit.out("rename", "a41f", "taken")
    sessgit.out("tag", "v1", "a41f@1")
    before = run_git(sessgit.store, "for-each-ref")
    assert said(sessgit("rename", *words)) == (code, error)
    assert run_git(sessgit.store, "for-each-ref") == before


def test_a_name_in_another_project_is_free(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sessgit.out("rename", "a41f", "parser")
    made = sessgit.talk("77be01d3-0000-4000-8000-77be01d30000", cwd=str(tmp_path)).turns("elsewhere")
    sessgit.recorded(made)
    assert sessgit.out("rename", "77be", "parser") == "77be01d3  parser  (was: elsewhere)\n"
    assert sessgit.out("id", "parser") == f"{PARSER}\n"
    monkeypatch.chdir(tmp_path)
    assert sessgit.out("id", "parser") == f"{made.session}\n"


def test_a_fork_gets_a_name_by_the_same_rules(sessgit: Shell) -> None:
    sessgit.out("rename", "a41f", "parser")
    for name, code in (("parser", 3), ("0b2d", 3), (PARSER, 2), ("a/b", 2)):
        assert sessgit("fork", "a41f", "--name", name).code == code
    assert sessgit.json("fork", "a41f", "--name", " other way ")["id"].startswith("f0000001")
    assert sessgit.out("id", "other way").startswith("f0000001")


def test_the_id_of_a_rewound_branch_is_no_name(sessgit: Shell) -> None:
    talk = sessgit.talk("77be01d3-0000-4000-8000-77be01d30000").turns("one", "two").rewind(1).turns("new")
    sessgit.recorded(talk)
    assert said(sessgit("rename", "77be", "77be.r-a000")) == (
        3,
        f"Error: the id of {talk.session}.r-a0000002 begins with “77be.r-a000”.\n"
        "Hint: An address could mean either one.\n",
    )


# All that is said


def test_what_is_said_is_shown(sessgit: Shell) -> None:
    assert sessgit.out("edit", "0b2d") == ("0b2d7f10  fix flaky upload\nNothing is set yet: sessgit edit --help\n")
    page = (
        "0b2d7f10  upload, again\n"
        "Title        fix flaky upload\n"
        "Description  It fails now and then.\n"
        "\n"
        "             Mostly at night.\n"
        "Labels       #ci, #flaky\n"
        "Stage        critiquing\n"
        "Confidence   0.75\n"
    )
    done = sessgit.out(
        "edit", "0b2d", "--name", "upload, again", "--description", "It fails now and then.\n\nMostly at night.\n",
        "--label", "flaky", "--label=+ci", "--stage", "critiquing", "--confidence", "0.75",
    )  # fmt: skip
    assert done == page
    assert sessgit.out("edit", "0b2d") == page
    assert sessgit.json("edit", "0b2d") == {
        "id": UPLOAD, "name": "upload, again", "title": "fix flaky upload",
        "description": "It fails now and then.\n\nMostly at night.", "labels": ["ci", "flaky"],
        "stage": "critiquing", "confidence": 0.75, "commit": None,
    }  # fmt: skip
    taken = ("--description", "", "--label", "-ci", "--label=-flaky", "--stage", "none", "--confidence", "none")
    assert sessgit.out("edit", "0b2d", *taken) == "0b2d7f10  upload, again\nTitle        fix flaky upload\n"
    subject = run_git(sessgit.store, "log", "-1", "--format=%s", UPLOAD)
    assert subject == "edit: labels -ci -flaky, no stage, no confidence, no description\n"


def test_what_changes_nothing_is_told(sessgit: Shell) -> None:
    sessgit.out("edit", "0b2d", "--label", "ci")
    tip = run_git(sessgit.store, "rev-parse", UPLOAD)
    done = sessgit("edit", "0b2d", "--label", "ci", "--label", "-none", "--confidence", "none")
    assert (done.code, done.err) == (0, "It had no label none.\nNothing changed.\n")
    assert run_git(sessgit.store, "rev-parse", UPLOAD) == tip


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--label", "a,b"), "Error: “a,b” cannot be a label."),
        (("--label", ""), "Error: the label is empty."),
        (("--label=-"), "Error: the label is empty."),
        (("--label", "+-a"), "Error: “-a” cannot be a label."),
        (("--label", "x" * 51), f"Error: “{'x' * 51}” cannot be a label."),
        (("--label", "a\x1bb"), "Error: “a\ufffdb” cannot be a label."),
        (("--description", "x" * 2001), "Error: the description has 2,001 characters."),
        (("--description", "a\x1b[2Jb"), "Error: a description cannot hold control characters."),
        (("--description", "a\x0bb"), "Error: a description cannot hold control characters."),
        (("--name", ""), "Error: the name is empty."),
        (("--confidence", "1.1"), "Error: “1.1” is not a confidence."),
        (("--confidence", "nan"), "Error: “nan” is not a confidence."),
        (("--confidence", "-0.1"), "Error: “-0.1” is not a confidence."),
        (("--stage", "done"), "Error: Invalid value for '--stage': 'done' is not one of"),
    ],
)
def test_words_that_are_refused(sessgit: Shell, words: Any, error: str) -> None:
    done = sessgit("edit", "0b2d", *([words] if isinstance(words, str) else words))
    assert (done.code, done.out) == (2, "")
    assert any(line.startswith(error) for line in done.err.splitlines())


def test_a_label_named_twice_and_too_many_of_them(sessgit: Shell) -> None:
    assert edits.parse_labels(["a", "-a", "+b", "-c", "c "]) == (("b", "c"), ("a",))
    many = [f"--label=l{n:02}" for n in range(50)]
    assert sessgit("edit", "0b2d", *many).code == 0
    assert said(sessgit("edit", "0b2d", "--label", "one more")) == (
        2,
        "Error: it would have 51 labels.\nHint: At most 50 are allowed.\n",
    )
    assert sessgit("edit", "0b2d", "--label", "one more", "--label=-l00").code == 0


def test_secrets_are_replaced(sessgit: Shell) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    done = sessgit("edit", "0b2d", "--description", f"use {token}", "--json")
    assert done.err == "1 secret redacted.\n"
    assert json.loads(done.out)["description"] == "use [redacted:github-token]"
    assert sessgit.json("edit", "0b2d")["description"] == "use [redacted:github-token]"


def test_secrets_stand_in_no_name_of_a_fork_and_in_no_tag(sessgit: Shell) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    made = sessgit.json("fork", "a41f", "--at", "1", "--name", f"use {token}")["id"]
    assert sessgit.json("edit", made)["name"] == "use [redacted:github-token]"
    done = sessgit("tag", token, "a41f@1")
    assert (done.code, done.err) == (
        2,
        "Error: the tag looks like a secret.\nHint: Choose a readable word.\n",
    )
    objects = subprocess.run(
        ["git", "-C", sessgit.store, "cat-file", "--batch-all-objects", "--batch"], capture_output=True, check=True
    )
    assert token.encode() not in objects.stdout
    assert all(token.encode() not in path.read_bytes() for path in sessgit.store.rglob("*") if path.is_file())


def test_the_current_conversation_and_a_guess(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", UPLOAD)
    assert sessgit.out("rename", "mine") == "0b2d7f10  mine  (was: fix flaky upload)\n"
    assert sessgit.json("edit", "--stage", "shaping")["id"] == UPLOAD


# In nobody's way


def state(store: Store, session: str = SESSION) -> Session:
    tip = store.repo.ref(layout.HEADS + session) or store.repo.ref(layout.ARCHIVE + session)
    assert tip is not None
    return store.state(tip)


def test_a_rewound_branch_stands_for_its_session(sessgit: Shell) -> None:
    talk = sessgit.talk("77be01d3-0000-4000-8000-77be01d30000").turns("one", "two").rewind(1).turns("new")
    sessgit.recorded(talk)
    left = f"{talk.session}.r-a0000002"
    before = run_git(sessgit.store, "rev-parse", left)
    assert sessgit.out("rename", left, "mine") == "77be01d3  mine  (was: one)\n"
    assert run_git(sessgit.store, "rev-parse", left) == before
    assert sessgit.json("edit", left)["name"] == "mine"


def test_an_archived_session_is_edited_where_it_is(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    tip = store.repo.ref(layout.HEADS + SESSION)
    store.repo.move(layout.ARCHIVE + SESSION, None, tip)
    store.repo.move(layout.HEADS + SESSION, tip, None)
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="old"))
    assert store.repo.ref(layout.HEADS + SESSION) is None
    assert state(store).name == "old"


def test_it_is_dated_when_it_was_made_and_never_before_its_parent(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    parent = store.commit(store.repo.ref(layout.HEADS + SESSION)).time
    for now, time in ((NOW, int(NOW)), (5.0, int(NOW))):
        made = edit_session(Context(index, now=lambda at=now: at), SESSION, EditChanges(name=f"at {now}"))
        assert store.commit(made.commit).time == time > parent


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_commit, "LOCK_TIMEOUT", 0.02)


def rival(store: Store, changes: EditChanges) -> None:
    """Another process that edits the session."""
    theirs = Store(store.path)
    index = Index(store.path, lambda: theirs)
    edit_session(Context(index, now=lambda: NOW), SESSION, changes)
    index.close()


@pytest.mark.usefixtures("impatient")
def test_an_edit_that_came_in_between_stays(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    store.repo = Rivalled(store.path, lambda: rival(store, EditChanges(add=("theirs",), stage="shaping")))
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours", add=("ours",)))
    found = state(store)
    assert (found.name, found.labels, found.stage) == ("ours", ("ours", "theirs"), "shaping")
    assert log(store, SESSION)[2:] == ["edit: labels +theirs, stage shaping", "edit: name “ours”, labels +ours"]


@pytest.mark.usefixtures("impatient")
def test_a_turn_that_came_in_between_stays(keep: Keep, store: Store, index: Index, claude: Path) -> None:
    talk = Talk().turns("one")
    path = keep(talk) and talk.save(claude)

    def grows() -> None:
        with path.open("ab") as file:
            file.write(talk.turns("two").data[file.tell() :])
        theirs = Store(store.path)
        other = Index(store.path, lambda: theirs)
        record(Context(other), TranscriptSource(path, SESSION, claude.parents[1]))
        other.close()

    store.repo = Rivalled(store.path, grows)
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours"))
    assert log(store, SESSION)[1:] == ["turn 1: one", "turn 2: two", "edit: name “ours”"]


@pytest.mark.usefixtures("impatient")
def test_a_head_that_keeps_moving(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    numbers = iter(range(99))
    store.repo = Rivalled(store.path, lambda: rival(store, EditChanges(name=f"n{next(numbers)}")), times=99)
    with pytest.raises(StoreError, match="kept changing"):
        edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours"))


@pytest.mark.usefixtures("impatient")
def test_a_lock_that_is_never_let_go(keep: Keep, store: Store, index: Index) -> None:
    keep(Talk().turns("one"))
    with locks.session_lock(store.paths, SESSION) as held:
        assert held
        assert edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours")).commit


def _rename(path: Path, session: str, name: str, barrier: Any, told: Any) -> None:
    store = Store(path)
    index = Index(path, lambda: store)
    barrier.wait(PATIENCE)
    try:
        told.put(edit_session(Context(index, now=lambda: NOW), session, EditChanges(name=name)).after.name)
    except SessgitError as error:
        told.put(type(error).__name__)
    index.close()


def at_once(path: Path, *calls: tuple[str, str]) -> list[str]:
    """What edits say that processes of their own make at the same moment."""
    spawn = multiprocessing.get_context("spawn")
    barrier, told = spawn.Barrier(len(calls)), spawn.Queue()
    workers = [spawn.Process(target=_rename, args=(path, *call, barrier, told)) for call in calls]
    for worker in workers:
        worker.start()
    found = sorted(told.get(timeout=PATIENCE) for _ in workers)
    for worker in workers:
        worker.join(PATIENCE)
    return found


def test_two_processes_rename_at_once(keep: Keep, store: Store) -> None:
    """Both land, one after the other; and where two sessions shall have one name, only one gets it."""
    keep(Talk().turns("one"))
    keep(Talk(OTHER).prompt_without_uuid("of its own").answer("Yes."))
    assert at_once(store.path, (SESSION, "left"), (SESSION, "right")) == ["left", "right"]
    assert sorted(log(store, SESSION)[2:]) == ["edit: name “left”", "edit: name “right”"]
    assert at_once(store.path, (SESSION, "same"), (OTHER, "same")) == ["ConflictError", "same"]
    assert sorted(name == "same" for name in (state(store).name, state(store, OTHER).name)) == [False, True]


# Laws

WORDS = st.sampled_from(["parser", "lexer", "ünï", "a b", "x" * 50])
CHANGES = st.builds(
    EditChanges,
    name=st.none() | WORDS | st.just(""),
    description=st.none() | WORDS | st.just("two\nlines") | st.just(""),
    add=st.lists(WORDS, max_size=2).map(tuple),
    remove=st.lists(WORDS, max_size=2).map(tuple),
    stage=st.none() | st.sampled_from(["", *STAGES]),
    confidence=st.none() | st.just("") | st.floats(0, 1),
)
STEP = st.one_of(
    CHANGES,
    CHANGES,
    st.just("turn"),
    st.just("answer"),
    st.just("end"),
    st.integers(0, 3).map(lambda turn: f"rewind {turn}"),
)


def expected(authored: dict[str, Any], changes: EditChanges) -> dict[str, Any]:
    """What is said after the changes, in a dictionary's own way."""
    for key in ("name", "description", "stage"):
        if getattr(changes, key) is not None:
            authored[key] = getattr(changes, key)
    authored["labels"] = sorted({*authored["labels"]} - {*changes.remove} | {*changes.add})
    if changes.confidence is not None:
        authored["confidence"] = None if changes.confidence == "" else changes.confidence
    return authored


@contextmanager
def watched() -> Iterator[tuple[Path, Store, Index, Callable[..., None]]]:
    """A store with one file in it, and how to record that as it is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "claude" / "projects" / "-p" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        stores.create_store(Path(folder) / "store")
        store = Store(Path(folder) / "store")
        index = Index(store.path, lambda: store)

        def keep(data: bytes, *, final: bool = False) -> None:
            with path.open("ab") as file:
                file.write(data[file.tell() :])
            record(Context(index), TranscriptSource(path, SESSION, path.parents[2], final=final))

        yield path, store, index, keep
        index.close()


def held(steps: list[Any], *, edited: bool) -> tuple[Any, int]:
    """What the store holds after the steps, and how often the file was read from its beginning."""
    authored: dict[str, Any] = {"name": "", "description": "", "labels": [], "stage": "", "confidence": None}
    fresh = 0
    original = file_pass.FilePass.begin

    def counted(self: Any, *limits: Any) -> Any:
        nonlocal fresh
        fresh += 1
        return original(self, *limits)

    with watched() as (path, store, index, keep), pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_pass.FilePass, "begin", counted)
        talk = Talk().turns("first")
        keep(talk.data)
        for step in steps:
            if isinstance(step, EditChanges):
                if edited:
                    edit_session(Context(index, now=lambda: NOW), SESSION, step)
                    authored = expected(authored, step)
                continue
            if step == "answer":
                talk.answer("And more.")
            elif step.startswith("rewind"):
                talk.rewind(min(int(step[7:]), len(talk.prompts))).turns(f"other {len(talk.lines)}")
            elif step == "turn":
                talk.turns(f"on {len(talk.lines)}")
            keep(talk.data, final=step == "end")
        keep(talk.data, final=True)
        found = state(store)
        if edited:
            shown = json.loads(run_git(store.path, "cat-file", "blob", f"{SESSION}:session.json"))["authored"]
            assert shown == authored
            assert restore.rebuild_file(store, SESSION).data == talk.data
            assert restore.verify_file(store, SESSION, claude_homes(path.parents[2])).same
            assert run_git(store.path, "fsck", "--strict", "--no-dangling") == ""
        plain = replace(found, name="", description="", labels=(), stage="", confidence=None, transcript="")
        return (conversation(store), plain), fresh


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(STEP, max_size=8))
def test_edits_between_recordings(steps: list[Any]) -> None:
    """What was said survives, the file comes back, and recording goes on as if nobody had said a thing."""
    assert held(steps, edited=True) == held(steps, edited=False)


def test_an_edit_after_the_end_leaves_the_tail(keep: Keep, store: Store, index: Index, git: Git) -> None:
    talk = Talk().turns("one").title("T")
    keep(talk, final=True)
    tail = git("show", f"{SESSION}:tail.jsonl")
    edit_session(Context(index, now=lambda: NOW), SESSION, EditChanges(name="ours"))
    assert git("show", f"{SESSION}:tail.jsonl") == tail
    assert not keep(talk, final=True).changed
    assert restore.rebuild_file(store, SESSION).data == talk.data
    with pytest.raises(ConflictError):
        edits.check_name_free(index, "ours", "", "/home/ada/shop")


def test_a_fork_of_ours_with_a_new_name_goes_on(sessgit: Shell) -> None:
    """Its file begins with the name that it was forked with, which is neither lost nor taken for the client's title."""
    made = sessgit.json("fork", "0b2d", "--name", "first name")
    sessgit.out("rename", "first name", "second name")
    path = Path(made["transcript"])
    leaf = json.loads(path.read_text("utf-8").splitlines()[-1])["leafUuid"]
    talk = sessgit.talk(made["id"])
    talk.file.counts = {"a": 50, "b": 50, "msg": 50}
    talk.leaf = leaf
    talk.turns("go on").title("theirs", "ai-title").title("second name").title("first name").prompt("on").answer("!")
    path.write_bytes(path.read_bytes() + talk.data)
    shown = sessgit.json("edit", "second name")
    assert (shown["name"], shown["title"]) == ("second name", "theirs")
    assert sessgit.out("log", "second name", "--oneline").splitlines()[0] == f"{made['id'][:8]}@3 on"
    assert "Compared   equal to" in sessgit.out("restore", "second name", "--verify")
