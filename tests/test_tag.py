"""Tags: git's own, at turns of conversations."""

from __future__ import annotations

import json
import os
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from plain import Rivalled, run_git
from shell import Shell

from sessgit.branch import edit as tags
from sessgit.errors import MovedError, UsageError
from sessgit.history import resolve
from sessgit.model.ids import check_tag
from sessgit.store import layout, refs
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

PARSER, UPLOAD = (f"{c}-0000-4000-8000-{c}0000" for c in ("a41f9c02", "0b2d7f10"))


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(
        shell.talk(PARSER)
        .turns("write the tokenizer", "the grammar is ambiguous, why?", "go on")
        .rewind(2)
        .turns("no"),
        shell.talk(UPLOAD).turns("fix flaky upload").title("upload"),
    )


LEFT = f"{PARSER}.r-a0000003"


def opened(sessgit: Shell) -> Index:
    store = Store(sessgit.store)
    index = Index(sessgit.store, lambda: store)
    index.sync()
    return index


def commit_of(sessgit: Shell, branch: str, turn: int) -> str:
    row = opened(sessgit).turn(branch, turn)
    assert row is not None
    return row.commit


def where_is(sessgit: Shell, name: str) -> str:
    return run_git(sessgit.store, "rev-parse", f"refs/tags/{name}").strip()


def test_a_tag_from_its_beginning_to_its_end(sessgit: Shell) -> None:
    assert sessgit.out("tag") == "No tags yet: sessgit tag NAME [ADDRESS]\n"
    assert sessgit.out("tag", "before-it-broke", "a41f@2") == (
        "before-it-broke  a41f9c02@2  the grammar is ambiguous, why?\n"
    )
    assert where_is(sessgit, "before-it-broke") == commit_of(sessgit, PARSER, 2)
    assert run_git(sessgit.store, "cat-file", "-t", "refs/tags/before-it-broke") == "commit\n"
    assert sessgit.out("tag", "before-it-broke", "a41f@2") == (
        "before-it-broke  a41f9c02@2  the grammar is ambiguous, why?  (already there)\n"
    )
    assert sessgit.out("log", "before-it-broke", "--oneline", "-n", "1") == (
        "a41f9c02@2 the grammar is ambiguous, why?\n"
    )
    done = sessgit("tag", "before-it-broke", "0b2d")
    assert (done.code, done.err) == (
        3,
        "Error: the tag “before-it-broke” is already at a41f9c02@2.\nHint: To move it, use `--force`.\n",
    )
    assert sessgit.out("tag", "before-it-broke", "0b2d", "--force") == (
        "before-it-broke  0b2d7f10@1  fix flaky upload  (was: a41f9c02@2)\n"
    )
    assert where_is(sessgit, "before-it-broke") == commit_of(sessgit, UPLOAD, 1)
    assert sessgit.out("tag", "-d", "before-it-broke") == "before-it-broke  (was: 0b2d7f10@1)\n"
    assert run_git(sessgit.store, "tag") == ""
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_it_stays_at_its_turn(sessgit: Shell) -> None:
    sessgit.out("tag", "here", "0b2d")
    sessgit.recorded(sessgit.talk(UPLOAD).turns("fix flaky upload", "again"))
    assert sessgit.out("log", "here", "--oneline") == "0b2d7f10@1 fix flaky upload\n"


def test_all_places_and_the_list(sessgit: Shell) -> None:
    sessgit.out("tag", "left", LEFT)
    sessgit.out("tag", "beginning", "a41f@0")
    sessgit.out("tag", "last", "a41f@-1")
    listed = (
        "beginning  a41f9c02@0             (the start)\n"
        "last       a41f9c02@3             no                10:00\n"
        "left       a41f9c02.r-a0000003@3  go on             10:00\n"
        "other      0b2d7f10@1             fix flaky upload  10:00\n"
    )
    sessgit.out("tag", "other", "upload")
    assert sessgit.out("tag") == listed
    assert sessgit.out("tag", "--list") == listed
    assert sessgit.out("id", "left") == f"{LEFT}\n"
    assert where_is(sessgit, "beginning") == run_git(sessgit.store, "rev-list", "--max-parents=0", PARSER).strip()


def test_the_list_as_json(sessgit: Shell) -> None:
    sessgit.out("tag", "beginning", "a41f@0")
    done = json.loads(sessgit.out("tag", "left", LEFT, "--json"))
    left = {
        "name": "left", "branch": LEFT, "turn": 3, "commit": commit_of(sessgit, LEFT, 3), "title": "go on",
        "time": "2026-03-01T10:00:09.000Z",
    }  # fmt: skip
    assert done == {"schema": "sessgit.tag/v1", **left, "deleted": False}
    beginning, other = json.loads(sessgit.out("tag", "--json"))["tags"]
    assert beginning == {
        "name": "beginning", "branch": PARSER, "turn": 0, "commit": where_is(sessgit, "beginning"), "title": None,
        "time": None,
    }  # fmt: skip
    assert other == left
    assert json.loads(sessgit.out("tag", "-d", "left", "--json")) == {
        "schema": "sessgit.tag/v1",
        **left,
        "deleted": True,
    }


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_what_is_long_fits(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    said = [sessgit.out("tag", "x" * 70, LEFT), sessgit.out("tag", "short", "a41f@2"), sessgit.out("tag")]
    assert max(len(line) for page in said for line in page.splitlines()) <= columns
    assert "a41f9c02.r-a0000003@3" in said[2]


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("a41f", "0b2d"), 3, f"Error: the address “a41f” already means the conversation {PARSER}."),
        (("upload", "a41f"), 3, f"Error: the address “upload” already means the conversation {UPLOAD}."),
        (("named", "0b2d"), 3, f"Error: the address “named” already means the conversation {PARSER}."),
        (("a b", "0b2d"), 2, "Error: “a b” cannot be a tag."),
        (("", "0b2d"), 2, "Error: the tag is empty."),
        (("x", "0b2d@1.1"), 2, "Error: tag needs a whole turn, but the address names a cell."),
        (("x", "0b2d@2"), 4, "Error: 0b2d7f10 has no turn 2; it has 1 turn."),
        (("-d", "lfet"), 4, "Error: there is no tag “lfet”."),
        (("-d", "../heads/x"), 4, "Error: there is no tag “../heads/x”."),
        (("-d", "left", "x"), 2, "Error: --delete and NAME cannot be combined."),
    ],
)
def test_what_is_refused(sessgit: Shell, words: tuple[str, ...], code: int, error: str) -> None:
    sessgit.out("rename", "a41f", "named")
    sessgit.out("tag", "left", LEFT)
    before = run_git(sessgit.store, "for-each-ref")
    done = sessgit("tag", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.splitlines()[0] == error
    if words == ("-d", "lfet"):
        assert done.err.splitlines()[1] == "Hint: similar: left"
    assert run_git(sessgit.store, "for-each-ref") == before


def test_the_current_conversation_is_tagged_and_a_doubtful_one_is_not(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = sessgit.config / "sessions"
    sessions.mkdir(parents=True)
    others = [subprocess.Popen(["sleep", "600"]) for _ in range(2)]
    try:
        for process, session in zip(others, (PARSER, UPLOAD), strict=True):
            document = {"pid": process.pid, "sessionId": session, "cwd": str(sessgit.project)}
            (sessions / f"{process.pid}.json").write_text(json.dumps(document))
        for command in (("tag", "x"), ("rename", "x"), ("edit", "--label", "x")):
            done = sessgit(*command)
            assert (done.code, done.err.splitlines()[1]) == (3, "Hint: Name one of them.")
    finally:
        for process in others:
            process.kill()
            process.wait()
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", UPLOAD)
    assert sessgit.out("tag", "x") == "x  0b2d7f10@1  fix flaky upload\n"


# Tags that git made


def test_tags_by_hand_on_whatever_there_is(sessgit: Shell) -> None:
    git = sessgit.store
    turn = commit_of(sessgit, PARSER, 2)
    os.environ.update({f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
    sessgit.out("edit", "0b2d", "--label", "x")
    run_git(git, "tag", "-a", "-m", "hm", "annotated", turn)
    run_git(git, "tag", "-a", "-m", "hm", "nested/deep", "annotated")
    run_git(git, "tag", "edited", UPLOAD)
    run_git(git, "tag", "root", f"{turn}~2")
    run_git(git, "tag", "tree", f"{turn}^{{tree}}")
    expected = {
        "annotated": (PARSER, 2),
        "edited": (UPLOAD, 1),
        "nested/deep": (PARSER, 2),
        "root": (PARSER, 0),
        "tree": ("", 0),
    }
    for packed in (False, True):
        if packed:
            run_git(git, "pack-refs", "--all")
        index = opened(sessgit)
        assert {tag.name: (tag.branch, tag.turn) for tag in resolve.list_tags(index)} == expected
        assert resolve.tags_by_commit(index)[turn] == ["annotated", "nested/deep"]
        for name, (branch, _) in expected.items():
            assert sessgit("id", name).out == (f"{branch}\n" if branch else "")
        index.close()
    assert sessgit.out("log", "annotated", "--oneline", "-n1") == "a41f9c02@2 the grammar is ambiguous, why?\n"
    assert sessgit("tag", "annotated", "a41f@2").out.endswith("(already there)\n")
    assert sessgit.out("tag", "-d", "annotated") == "annotated  (was: a41f9c02@2)\n"
    assert "not a conversation here" in sessgit.out("tag", "-d", "tree")
    assert run_git(git, "tag").split() == ["edited", "nested/deep", "root"]


def test_a_shared_turn_is_its_own_sessions(sessgit: Shell) -> None:
    for _ in range(3):
        sessgit.out("fork", "a41f", "--at", "2")
    fork = sessgit.json("fork", LEFT)["id"]
    assert sessgit.out("tag", "shared", f"{fork}@1") == "shared  a41f9c02@1  write the tokenizer\n"
    assert sessgit.out("tag", "left", f"{fork}@3") == "left  a41f9c02.r-a0000003@3  go on\n"
    run_git(sessgit.store, "tag", "forked", fork)
    assert sessgit.out("id", "forked") == f"{fork}\n"
    assert "forked  " in sessgit.out("tag")


def test_a_tag_that_someone_moved_meanwhile(sessgit: Shell) -> None:
    index = opened(sessgit)
    store = index.open_store()
    first, second = commit_of(sessgit, PARSER, 1), commit_of(sessgit, PARSER, 2)
    store.repo = Rivalled(store.path, lambda: run_git(store.path, "update-ref", layout.TAGS + "x", first))
    where = resolve.CallerContext(claude_homes(sessgit.config), str(sessgit.project), os.getpid())
    found = resolve.resolve_target(index, resolve.Address(PARSER, 2), where)
    done = tags.tag_turn(Context(index, now=lambda: 0), "x", found, where, force=True)
    assert (done.before and done.before.turn, done.tag.turn, where_is(sessgit, "x")) == (1, 2, second)
    with pytest.raises(MovedError):
        store.repo.move(layout.TAGS + "x", first, second)


# Names


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tags") / "store"
    stores.create_store(path)
    return path


@given(st.text(st.sampled_from(string.ascii_letters + "-._@{~^:?*[\\ lockHEAD\u00e4\u2028\x7f\x00"), max_size=8))
def test_whatever_passes_is_a_tag_for_git(repository: Path, name: str) -> None:
    try:
        check_tag(name)
    except UsageError:
        return
    run_git(repository, "check-ref-format", f"{layout.TAGS}{name}")
    assert not {"@", "/", " "} & set(name)
    assert not name.startswith("-")


@pytest.mark.parametrize("name", ["v1", "before-it-broke", "ünï", "a.b", "x" * 100, "1", "lock", "{}"])
def test_good_tags(name: str) -> None:
    assert check_tag(name) == name


@pytest.mark.parametrize(
    "name", ["", "-x", ".x", "x.", "x.lock", "X.LOCK", "a..b", "a/b", "a@b", "HEAD", "a\u00a0b", "\u202ex", "x" * 101,
             "ä" * 100 + "ä", "😀" * 61, "0" * 40, "\udcff"],
)  # fmt: skip
def test_bad_tags(name: str) -> None:
    with pytest.raises(UsageError):
        check_tag(name)


# Completion


def test_tags_are_completed(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.out("tag", "first", "a41f@1")
    sessgit.out("tag", "last", "a41f")

    def complete(*words: str) -> list[str]:
        monkeypatch.setenv("_SESSGIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", "\n".join(["sessgit", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return sessgit().out.split()

    assert complete("tag", "-d", "") == ["first", "last"]
    assert complete("tag", "-d", "la") == ["last"]
    assert "a41f9c02" in complete("tag", "new", "a4")
    assert "a41f9c02" in complete("rename", "a4")
    assert "a41f9c02" in complete("edit", "a4")


def test_listing_loads_no_git_library(sessgit: Shell) -> None:
    from test_cold import loaded

    sessgit.out("tag", "first", "a41f@1")
    for command in (("tag",), ("edit", "0b2d"), ("tag", "--json")):
        assert loaded("sessgit", *command) == set()


def test_refs_of_tags_alone(sessgit: Shell) -> None:
    sessgit.out("tag", "x", "a41f@1")
    found: Any = refs.tags(sessgit.store)
    assert found == {"x": commit_of(sessgit, PARSER, 1)}


def test_a_commit_of_a_cell_stands_for_its_turn(sessgit: Shell) -> None:
    assert sessgit("config", "record.granularity", "cell").code == 0
    talk = (
        sessgit.talk("77be01d3-0000-4000-8000-77be01d30000").prompt("build").tool("Bash").answer("Built.").stop_lines()
    )
    sessgit.recorded(talk.turns("thanks"))
    run_git(sessgit.store, "tag", "cell", f"{talk.session}~3")
    subject = run_git(sessgit.store, "log", "-1", "--format=%s", "cell")
    assert subject.startswith("cell 1.")
    assert sessgit.out("log", "cell", "--oneline") == "77be01d3@1 build\n"
    assert sessgit.out("tag") == "cell  77be01d3@1  build  10:00\n"
