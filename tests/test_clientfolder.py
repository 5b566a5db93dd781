"""Sessions as a folder of the client, written and read back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import Keep, run_git
from shell import Shell
from sidecar_files import PLAN, helped, lay_beside
from transcripts import OTHER, SESSION, Talk, subagent

from sessgit.agents.claude import home
from sessgit.agents.claude import sidecars as folders
from sessgit.agents.claude.sidecars import plan_name
from sessgit.branch import restore
from sessgit.branch.restore import FolderExport
from sessgit.errors import ConflictError, SessgitError
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

Export = Callable[..., FolderExport]


@pytest.fixture
def export(store: Store, index: Index, tmp_path: Path) -> Export:
    """Exports sessions, all there are if none is named, into `tmp_path / "out"`."""

    def export(names: Sequence[str] = (), folder: Path = tmp_path / "out") -> FolderExport:
        index.sync()
        return restore.export_folder(
            Context(index), [b for b in index.branches() if not names or b.name in names], folder
        )

    return export


@pytest.fixture
def whole(keep: Keep, claude: Path) -> Talk:
    """A conversation with everything beside it, recorded live and to its end."""
    talk = Talk().turns("one").prompt("rewound").answer("No.")
    keep(talk)
    helped(talk.rewind(1))
    lay_beside(claude, talk)
    keep(talk, live=True)
    keep(talk.title("A title"), final=True)
    return talk


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def modified(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def indexed(folder: Path) -> list[dict[str, Any]]:
    document = json.loads((folder / "projects" / "-home-ada-shop" / "sessions-index.json").read_bytes())
    assert document["version"] == 1
    entries: list[dict[str, Any]] = document["entries"]
    return entries


def test_the_folder_holds_what_the_clients_own_held(whole: Talk, claude: Path, export: Export, tmp_path: Path) -> None:
    done = export()
    out = contents(tmp_path / "out")
    out.pop("projects/-home-ada-shop/sessions-index.json")
    assert out == contents(claude.parents[1])
    assert done.sessions == 1
    written = (path for path in done.files if path.name != "sessions-index.json")
    assert {str(path.relative_to(tmp_path / "out")) for path in written} == set(out)
    path = tmp_path / "out" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl"
    assert indexed(tmp_path / "out") == [
        {
            "sessionId": SESSION,
            "fullPath": str(path),
            "fileMtime": path.stat().st_mtime_ns // 1_000_000,
            "firstPrompt": "one",
            "messageCount": 8,
            "created": "2026-03-01T10:00:01.000Z",
            "modified": "2026-03-01T10:00:12.000Z",
            "gitBranch": "main",
            "projectPath": "/home/ada/shop",
            "isSidechain": False,
        }
    ]


def test_again_everything_is_there(whole: Talk, export: Export, tmp_path: Path) -> None:
    export()
    before, times = contents(tmp_path / "out"), modified(tmp_path / "out")
    export()
    assert (contents(tmp_path / "out"), modified(tmp_path / "out")) == (before, times)


def test_two_projects_have_an_index_each(keep: Keep, export: Export, tmp_path: Path, claude: Path) -> None:
    keep(Talk().turns("one"), final=True)
    other = claude.with_name("-home-ada-mill")
    keep(Talk(OTHER, cwd="/home/ada/mill").turns("two").save(other), final=True)
    third = OTHER.replace("2", "3")
    keep(Talk(third).turns("three"), final=True)
    assert export().sessions == 3
    assert [entry["sessionId"] for entry in indexed(tmp_path / "out")] == [SESSION, third]
    assert (tmp_path / "out" / "projects" / "-home-ada-mill" / "sessions-index.json").exists()


def test_an_index_that_is_there_is_added_to(keep: Keep, export: Export, tmp_path: Path) -> None:
    keep(Talk().turns("one"), final=True)
    keep(Talk(OTHER).turns("two"), final=True)
    path = tmp_path / "out" / "projects" / "-home-ada-shop" / "sessions-index.json"
    path.parent.mkdir(parents=True)
    own = [{"sessionId": "theirs", "x": 1}, {"sessionId": SESSION, "summary": "kept", "messageCount": 99}]
    path.write_text(json.dumps({"version": 1, "originalPath": "/x", "entries": own}))
    export([SESSION])
    assert json.loads(path.read_bytes())["originalPath"] == "/x"
    assert indexed(tmp_path / "out")[0] == own[0]
    assert (indexed(tmp_path / "out")[1]["summary"], indexed(tmp_path / "out")[1]["messageCount"]) == ("kept", 2)
    export([OTHER])
    assert [entry["sessionId"] for entry in indexed(tmp_path / "out")] == ["theirs", SESSION, OTHER]


@pytest.mark.parametrize(
    "data", ["", "[]", "{}x", '{"entries":{}}', '{"entries":[1]}', '{"version":2,"entries":[]}', "{}"]
)
def test_an_index_that_is_none_stops_it(whole: Talk, export: Export, tmp_path: Path, data: str) -> None:
    path = tmp_path / "out" / "projects" / "-home-ada-shop" / "sessions-index.json"
    path.parent.mkdir(parents=True)
    path.write_text(data)
    with pytest.raises(SessgitError, match="is not a session index"):
        export()
    assert contents(tmp_path / "out") == {str(path.relative_to(tmp_path / "out")): data.encode()}


@pytest.mark.parametrize("what", ["tasks/{}/1.json", "projects/-home-ada-shop/{}.jsonl", f"plans/{PLAN}.md"])
@pytest.mark.parametrize("as_link", [False, True])
def test_nothing_is_written_over(whole: Talk, export: Export, tmp_path: Path, what: str, as_link: bool) -> None:
    path = tmp_path / "out" / what.format(SESSION)
    path.parent.mkdir(parents=True)
    path.symlink_to("/nowhere") if as_link else path.write_text("something else")
    with pytest.raises(ConflictError, match=re.escape(str(path))):
        export()
    assert [p for p in (tmp_path / "out").rglob("*") if not p.is_dir()] == [path]


# Names


@given(st.text(max_size=60))
def test_every_plan_has_a_name_of_three_words(name: str) -> None:
    made = plan_name(name)
    assert re.fullmatch(r"[a-z]+-[a-z]+-[a-z]+\.md", made)
    assert plan_name(made) == made


def test_a_name_that_has_the_form_stays() -> None:
    assert plan_name("velvet-humming-kettle") == plan_name("velvet-humming-kettle.md") == "velvet-humming-kettle.md"
    assert plan_name("calm-river") != plan_name("calm-river-2")


@pytest.mark.parametrize(
    ("said", "project", "name"),
    [
        ("/c/projects/-home-ada-shop/x.jsonl", "/home/ada/shop", "-home-ada-shop"),
        ("/c/projects/elsewhere/x.jsonl", "/home/ada/shop", "-home-ada-shop"),
        ("", "/home/ada/shop", "-home-ada-shop"),
        (f"/c/projects/-{'a' * 199}-1h2g/x.jsonl", f"/{'a' * 300}", f"-{'a' * 199}-1h2g"),
        ("", f"/{'a' * 300}", f"-{'a' * 199}"),
        ("", "", "-"),
        ("/c/projects/../x.jsonl", "", "-"),
    ],
)
def test_the_folder_of_a_project(said: str, project: str, name: str) -> None:
    assert folders.folder_name(said, project) == name


# Read back


def everything(store: Path, session: str) -> str:
    """All that is recorded of a session but where its transcript lay."""
    trees = []
    for ref in run_git(store, "for-each-ref", "--format=%(refname)", "--sort=refname").split():
        listing = run_git(store, "ls-tree", "-r", ref).splitlines()
        trees.append("\n".join(line for line in listing if not line.endswith("\tsession.json")))
    return "\n\n".join(trees)


def test_there_and_back(whole: Talk, store: Store, export: Export, tmp_path: Path, sessgit: Shell) -> None:
    export()
    own = everything(store.path, SESSION)
    data = (tmp_path / "out" / "projects" / "-home-ada-shop" / f"{SESSION}.jsonl").read_bytes()
    assert data == whole.data
    assert sessgit.out("import", "--from", "claude", str(tmp_path / "out")) == ("1 conversation, 3 turns imported\n")
    assert everything(sessgit.store, SESSION) == own
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import", "--from", "claude", str(tmp_path / "out")) == (
        "0 conversations, 0 turns imported; 1 was already imported\n"
    )
    assert run_git(sessgit.store, "for-each-ref") == refs
    sessgit("restore", SESSION)
    place = home.project_folder(sessgit.config, "/home/ada/shop")
    assert (place / f"{SESSION}.jsonl").read_bytes() == data
    exported = {name: text for name, text in contents(tmp_path / "out").items() if "sessions-index" not in name}
    restored = {name: text for name, text in contents(sessgit.config).items() if "session-store" not in name}
    assert restored == exported


def test_the_folder_is_no_place_of_the_client(sessgit: Shell, tmp_path: Path) -> None:
    talk = sessgit.talk().turns("one")
    path = sessgit.recorded(talk)
    copy = talk.turns("two").save(tmp_path / "copy" / "projects" / path.parent.name)
    assert sessgit("import", "--from", "claude", str(tmp_path / "copy")).code == 0
    assert sessgit.json("log", "5e55")["session"]["turns"] == 2
    path.unlink()
    assert sessgit.json("restore", "5e55")["path"] == str(path)
    assert copy.exists()


def test_a_plan_with_another_name_comes_back(
    keep: Keep, claude: Path, export: Export, tmp_path: Path, sessgit: Shell
) -> None:
    (claude.parents[1] / "plans").mkdir(parents=True)
    (claude.parents[1] / "plans" / "calm-river.md").write_text("A plan.\n")
    keep(Talk().prompt("one", slug="calm-river").answer("One."), live=True, final=True)
    export()
    assert (tmp_path / "out" / "plans" / plan_name("calm-river")).read_text() == "A plan.\n"
    assert sessgit("import", "--from", "claude", str(tmp_path / "out")).code == 0
    assert run_git(sessgit.store, "show", f"{SESSION}:live/plans/calm-river.md") == "A plan.\n"


def test_plans_are_those_of_the_last_turn(sessgit: Shell) -> None:
    talk = helped(sessgit.talk().turns("one"))
    path = sessgit.keep(talk.turns("last"))
    lay_beside(path.parent, talk)
    assert sessgit("import", "--from", "claude", str(sessgit.config)).code == 0
    for commit, expected in (("5e551011-0000-4000-8000-000000000001", 5), (f"{SESSION}~2", 0)):
        listing = run_git(sessgit.store, "ls-tree", "-r", "--name-only", commit, "live/").split()
        assert len(listing) == expected
    assert sessgit("import").code == 0


@pytest.mark.parametrize(
    "link", ["projects", "todos", "tasks", "plans", f"tasks/{SESSION}", "slug", "session", "subagents"]
)
def test_no_link_is_followed(sessgit: Shell, tmp_path: Path, link: str) -> None:
    folder = tmp_path / "copy" / "projects" / "-home-ada-shop"
    talk = helped(Talk().turns("one"))
    talk.save(folder)
    lay_beside(folder, talk)
    named = {"slug": folder, "session": folder / SESSION, "subagents": folder / SESSION / "subagents"}
    place = named.get(link, tmp_path / "copy" / link)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    done = sessgit("import", "--from", "claude", str(tmp_path / "copy"))
    assert "0 conversations" in done.out
    assert not sessgit.store.exists() or run_git(sessgit.store, "for-each-ref") == ""
    assert done.code == (0 if link == "slug" else 1)


def test_an_id_that_leads_elsewhere(sessgit: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "copy" / "projects" / "-x"
    Talk("../../../secrets").turns("one").save(tmp_path / "a" / "b" / "c").rename(tmp_path / "mine.jsonl")
    folder.mkdir(parents=True)
    (tmp_path / "mine.jsonl").rename(folder / "mine.jsonl")
    done = sessgit("import", "--from", "claude", str(tmp_path / "copy"))
    assert (done.code, "cannot be a file name" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ("--from", "emacs", "x"),
            2,
            "Error: cannot import from “emacs”.\nHint: SYSTEM is one of apex, claude, codex, dialectic, io-log, rlm.\n",
        ),
        (
            ("--from", "claude"),
            2,
            "Error: --from claude needs the folder to import.\nHint: `sessgit import --from claude DIR`\n",
        ),
        (
            ("--from", "claude", "/nowhere"),
            4,
            "Error: /nowhere is not a folder of Claude Code.\n"
            "Hint: Name a copy of the folder in which it keeps its conversations.\n",
        ),
    ],
)
def test_what_is_refused(sessgit: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    done = sessgit("import", *arguments)
    assert (done.code, done.out, done.err) == (code, "", error)


def test_a_subagent_that_two_sessions_share(keep: Keep, claude: Path, export: Export, tmp_path: Path) -> None:
    """In an older client's folder: the longer of two states of one file is taken."""
    talk = Talk(style="2.0").prompt("one").tool("Task", {}, "found")
    nested = subagent(claude, talk, "c0ffee11", "looking")
    line = json.dumps({**json.loads(nested.read_bytes()), "promptId": None, "version": "2.0.46"}) + "\n"
    nested.unlink()
    (claude / nested.name).write_text(line)
    keep(talk.answer("One."), final=True)
    export()
    assert (tmp_path / "out" / "projects" / "-home-ada-shop" / nested.name).read_text() == line
