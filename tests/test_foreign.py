"""`sessgit import --from` another system and back: one operation, the same each time, and nothing lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from foreigners import contents, log, put, rlm, went
from plain import objects, run_git
from shell import Shell

from sessgit.agents.claude.lines import parsed as lines_parsed
from sessgit.api import foreign_sessions
from sessgit.model.conversation import session as sessions
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.program_input import GivenTurn
from sessgit.record import scratch_store
from sessgit.store import operations
from sessgit.store.layout import StorePaths

ARCH = agent_id("io-log", "ARCH-1")
DEV = agent_id("io-log", "DEV-2")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A project with two sessions of io-log."""
    folder = tmp_path / "there"
    log(folder, "ARCH-1", went("in", "design it", 1), went("out", "with tokens", 2), went("in", "go on", 3),
        went("artifact", "docs/auth.md", 4, action="created"), went("out", "done", 5))  # fmt: skip
    log(folder, "DEV-2", went("in", "build it", 6), went("out", "built", 7), parent_session="ARCH-1")
    return folder


@pytest.fixture
def keeping(source: Path) -> Path:
    """The same, with files that no other layout has a place for."""
    put(source / ".claude-man/sessions/ARCH-1/artifacts/auth.md", "# Auth\n")
    log(source, "DEV-2", went("in", "build it", 6), went("out", "built", 7), parent_session="ARCH-1", pid=7)
    return source


def test_what_it_says_and_again(sessgit: Shell, source: Path) -> None:
    before = contents(source)
    assert sessgit.out("import", "--from", "io-log", str(source)) == (
        "2 conversations, 3 turns imported from io-log\n"
        f"new         {ARCH[:8]}  the task of ARCH-1  2 turns\n"
        f"new         {DEV[:8]}  the task of DEV-2   1 turn\n"
        "4 files: 4 imported\n"
    )
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import", "--from", "io-log", str(source)) == (
        "0 conversations, 0 turns imported from io-log; 2 were already imported\n4 files: 4 imported\n"
    )
    assert run_git(sessgit.store, "for-each-ref") == refs
    assert contents(source) == before
    assert len(operations.read(StorePaths(sessgit.store))) == 1
    assert run_git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""


def test_the_same_store_whenever_it_is_imported(sessgit: Shell, source: Path, tmp_path: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    refs = run_git(sessgit.store, "for-each-ref", "refs/heads")
    shutil.rmtree(sessgit.store)
    sessgit.now += 1000
    sessgit.out("import", "--from", "io-log", str(source))
    assert run_git(sessgit.store, "for-each-ref", "refs/heads") == refs


def test_a_dry_run_says_the_same_and_writes_nothing(sessgit: Shell, source: Path) -> None:
    said = sessgit.json("import", "--from", "io-log", str(source), "--dry-run")
    assert not sessgit.store.exists()
    sessgit.keep(sessgit.talk().turns("one"))
    sessgit.out("import")
    sessgit.out("ls")
    before = contents(sessgit.store)
    again = sessgit.json("import", "--from", "io-log", str(source), "--dry-run")
    assert contents(sessgit.store) == before
    done = sessgit.json("import", "--from", "io-log", str(source))
    for document in (said, again, done):
        document.pop("dry_run"), document.pop("operation_id")
    assert said == again == done
    held = dict(line.split()[::-2] for line in run_git(sessgit.store, "for-each-ref", "refs/heads").splitlines())
    assert {ref: held[ref] for ref in done["refs"]} == {ref: move["after"] for ref, move in done["refs"].items()}


def test_a_dry_run_in_words(sessgit: Shell, source: Path) -> None:
    assert sessgit.out("import", "--from", "io-log", str(source), "--dry-run").startswith(
        "2 conversations, 3 turns would be imported from io-log\n"
    )


def test_what_has_grown_gets_its_new_turns(sessgit: Shell, source: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    first = run_git(sessgit.store, "rev-parse", f"refs/heads/{ARCH}:turns/0000/000001")
    path = source / ".claude-man/sessions/DEV-2/io.log"
    grown = [went("out", "and tested", 8), went("in", "more", 9), went("out", "yes", 10)]
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in grown))
    said = sessgit.json("import", "--from", "io-log", str(source))
    assert [(one["source_id"], one["outcome"], one["turns"]) for one in said["conversations"]] == [
        ("ARCH-1", "unchanged", 0),
        ("DEV-2", "grown", 1),
    ]
    assert run_git(sessgit.store, "rev-parse", f"refs/heads/{ARCH}:turns/0000/000001") == first
    assert [turn["prompt"] for turn in sessgit.json("log", DEV)["turns"]] == ["build it", "more"]
    assert "and tested" in sessgit.out("show", f"{DEV}@1")
    sessgit.out("undo")
    assert [turn["prompt"] for turn in sessgit.json("log", DEV)["turns"]] == ["build it"]


def test_a_turn_that_grew_says_each_thing_and_counts_each_token_once(sessgit: Shell, tmp_path: Path) -> None:
    def told(*said: tuple[str, str, int]) -> None:
        messages = [
            {"id": str(n), "index": n, "role": role, "content": words, "timestamp": f"2026-03-01T10:00:0{n}.000Z",
             "tokens": {"input": 0, "output": tokens}}
            for n, (role, words, tokens) in enumerate(said)
        ]  # fmt: skip
        put(tmp_path / ".apex/sessions/s.json", {"id": "s", "projectPath": "/p", "messages": messages})

    own = agent_id("apex", "s")
    talk = [("user", "one", 0), ("assistant", "a", 5), ("assistant", "b", 7), ("user", "two", 0), ("assistant", "c", 3)]
    outcomes = []
    for length in (2, 3, 3, 5, 5):
        told(*talk[:length])
        (one,) = sessgit.json("import", "--from", "apex", str(tmp_path))["conversations"]
        tokens = _session(sessgit, own)["tokens"]["output"]
        outcomes.append((one["outcome"], one["turns"], tokens))
    assert outcomes == [
        ("new", 1, 5), ("grown", 0, 12), ("unchanged", 0, 12), ("grown", 1, 15), ("unchanged", 0, 15),
    ]  # fmt: skip
    pieces = json.loads(sessgit.out("show", "--json", f"{own}@1"))["turn"]["pieces"]
    assert [piece["text"] for piece in pieces] == ["one", "a", "b"]
    talk[1] = ("assistant", "no, it is not", 5)
    told(*talk)
    assert sessgit("import", "--from", "apex", str(tmp_path)).code == 1


def test_undo_takes_all_of_it_back_and_once_more(sessgit: Shell, source: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("mine"))
    before = run_git(sessgit.store, "for-each-ref", "refs/heads", "refs/archive")
    sessgit.out("import", "--from", "io-log", str(source))
    after = run_git(sessgit.store, "for-each-ref", "refs/heads", "refs/archive")
    assert "import of 2 conversations from io-log" in sessgit.out("ops")
    assert "Undone: import of 2 conversations from io-log" in sessgit.out("undo")
    assert run_git(sessgit.store, "for-each-ref", "refs/heads", "refs/archive") == before
    assert run_git(sessgit.store, "for-each-ref", "refs/keep").count("refs/keep/") == 2
    sessgit.out("import", "--from", "io-log", str(source))
    assert run_git(sessgit.store, "for-each-ref", "refs/heads", "refs/archive") == after


def test_an_import_into_an_empty_store_is_undone_and_redone(sessgit: Shell, source: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    sessgit.out("undo")
    undo, done = sessgit.json("ops")["operations"]
    assert (undo["undoes"], done["standing"]) == (done["id"], "undone")
    sessgit.out("undo", undo["id"])
    assert len(sessgit.json("ls", "--all")["sessions"]) == 2


def test_what_a_person_said_since_stays(sessgit: Shell, source: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    sessgit.out("rename", ARCH, "the design")
    sessgit.out("edit", ARCH, "--label", "-developer", "--label", "+auth", "--description", "mine")
    assert "2 were already imported" in sessgit.out("import", "--from", "io-log", str(source))
    log(source, "ARCH-1", went("in", "design it", 1), went("out", "with tokens", 2), went("in", "go on", 3),
        went("artifact", "docs/auth.md", 4, action="created"), went("out", "done", 5), task="another task")  # fmt: skip
    assert "1 conversation, 0 turns" in sessgit.out("import", "--from", "io-log", str(source))
    authored = _session(sessgit, ARCH)
    assert (authored["name"], authored["labels"], authored["description"]) == ("the design", ["auth"], "mine")
    assert _session(sessgit, ARCH)["title"] == "another task"


def test_another_session_with_the_same_id_is_told(sessgit: Shell, source: Path, tmp_path: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    refs = run_git(sessgit.store, "for-each-ref")
    log(tmp_path / "b", "ARCH-1", went("in", "something else", 1))
    log(tmp_path / "b", "NEW-3", went("in", "new", 1))
    done = sessgit("import", "--from", "io-log", str(tmp_path / "b"))
    assert (done.code, done.err) == (
        1,
        f"ARCH-1: {ARCH[:8]} already exists, from io-log, with other turns: ARCH-1 was skipped\n",
    )
    assert done.out.startswith("1 conversation, 1 turn imported from io-log\n")
    assert set(refs.splitlines()) < set(run_git(sessgit.store, "for-each-ref").splitlines())


def test_two_of_one_id_in_the_source_are_named_and_the_others_go_on(sessgit: Shell, tmp_path: Path) -> None:
    log(tmp_path / "s", "a", went("in", "one"), session_id="same")
    log(tmp_path / "s", "b", went("in", "two"), session_id="same")
    log(tmp_path / "s", "c", went("in", "three"))
    done = sessgit("import", "--from", "io-log", str(tmp_path / "s"))
    at = ".claude-man/sessions"
    assert (done.code, done.err) == (
        1, f"same: two of them have this id: {at}/a/io.log and {at}/b/io.log\n" * 2,
    )  # fmt: skip
    assert done.out.startswith("1 conversation, 1 turn imported from io-log\n")


def test_a_project_that_is_off_is_left_out(sessgit: Shell, source: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("mine"))
    sessgit.out("off", str(source))
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import", "--from", "io-log", str(source)) == (
        "0 conversations, 0 turns imported from io-log\n"
        "2 conversations of projects that are off: skipped\n4 files: 4 imported\n"
    )
    assert run_git(sessgit.store, "for-each-ref") == refs


def test_what_was_deleted_here_stays_away(sessgit: Shell, source: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    sessgit("delete", DEV, "--yes")
    outcomes = [one["outcome"] for one in sessgit.json("import", "--from", "io-log", str(source))["conversations"]]
    assert outcomes == ["unchanged", "deleted"]


def test_secrets_are_replaced(sessgit: Shell, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    folder = log(tmp_path / "s", "a", went("in", f"use {secret}"), went("out", secret), task=f"about {secret}",
                 context_files=[f"/{secret}"], pid=secret)  # fmt: skip
    put(folder / "artifacts" / "note.txt", f"token {secret}\n")
    sessgit.out("import", "--from", "io-log", str(tmp_path / "s"))
    own = agent_id("io-log", "a")
    found = [data for _, _, data in objects(sessgit.store)]
    assert len(found) > 5 and not any(secret.encode() in data for data in found)
    assert "[redacted:" in run_git(sessgit.store, "show", f"refs/heads/{own}:kept/io-log/artifacts/note.txt")


def test_secrets_are_replaced_in_documents_that_are_kept_whole(sessgit: Shell, tmp_path: Path) -> None:
    secret = "hunter2-but-longer"
    call = {"toolName": "login", "input": {"user": "ada", "password": secret}, "output": "", "status": "success"}
    messages = [
        {"id": "1", "role": "user", "content": f'{{\n  "password": "{secret}"\n}}'},
        {"id": "2", "role": "assistant", "content": "Done.", "toolCalls": [call]},
    ]
    put(tmp_path / ".apex/sessions/s.json", {"id": "s", "projectPath": "/p", "messages": messages})
    sessgit.out("import", "--from", "apex", str(tmp_path))
    found = [data for _, _, data in objects(sessgit.store)]
    assert len(found) > 5 and not any(secret.encode() in data for data in found)
    sessgit.out("export", "apex", agent_id("apex", "s"), "--output", str(tmp_path / "out"))
    written = json.loads((tmp_path / "out/.apex/sessions/s.json").read_bytes())["messages"]
    assert [(one["id"], one["role"]) for one in written] == [("1", "user"), ("2", "assistant")]
    assert secret not in json.dumps(written)


def test_it_can_be_restored_and_forked(sessgit: Shell, source: Path) -> None:
    log(source, "ARCH-1", went("in", "design it", 1), went("out", "with tokens", 2), went("in", "go on", 3),
        went("out", "done", 5), context_files=["a.md"])  # fmt: skip
    put(source / ".claude-man/sessions/ARCH-1/artifacts/x.bin", b"\0\1")
    sessgit.out("import", "--from", "io-log", str(source))
    said = sessgit.json("restore", ARCH)
    lines = [json.loads(line) for line in Path(said["path"]).read_text().splitlines()]
    assert [line["message"]["content"] for line in lines if line["type"] == "user"] == ["design it", "go on"]
    assert [line["parentUuid"] for line in lines] == [None, *(line["uuid"] for line in lines[:-1])]
    forked = sessgit.json("fork", f"{ARCH}@1")
    assert len(sessgit.json("log", forked["id"])["turns"]) == 1
    kept = [one["path"] for one in _session(sessgit, forked["id"])["kept_files"]]
    assert kept == ["io-log/artifacts/x.bin"]


def test_a_fork_in_the_source_is_a_fork_here(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.recorded(sessgit.talk().turns("one", "two"))
    sessgit.out("fork", "5e55@1", "--name", "other way")
    (fork,) = [one["id"] for one in sessgit.json("ls")["sessions"] if one["parent"]]
    sessgit.out("export", "io-log", "5e55", fork, "--output", str(tmp_path / "out"))
    shutil.rmtree(sessgit.config)
    said = sessgit.json("import", "--from", "io-log", str(tmp_path / "out"))
    parent = "5e551011-0000-4000-8000-000000000001"
    assert [(one["id"], one["parent"], one["fork_turn"], one["turns"]) for one in said["conversations"]] == [
        (parent, None, None, 2), (fork, parent, 1, 0),
    ]  # fmt: skip
    trees = {run_git(sessgit.store, "rev-parse", f"refs/heads/{one}:turns/0000/000001") for one in (parent, fork)}
    assert len(trees) == 1


def test_what_the_client_recorded_gets_only_what_was_said_beside(sessgit: Shell, tmp_path: Path) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    turns = run_git(sessgit.store, "rev-parse", f"refs/heads/{talk.session}:turns")
    rlm(tmp_path / "s", talk.session, ("another beginning", "yes"))
    (one,) = sessgit.json("import", "--from", "rlm", str(tmp_path / "s"))["conversations"]
    assert (one["outcome"], one["turns"], one["reason"]) == (
        "changed", 0, "its turns here do not change",
    )  # fmt: skip
    assert run_git(sessgit.store, "rev-parse", f"refs/heads/{talk.session}:turns") == turns
    assert _session(sessgit, talk.session)["program"]["memory"] == {"plan": [1, 2]}


def test_who_writes_a_session_meanwhile_is_not_disturbed(
    sessgit: Shell, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    path = source / ".claude-man/sessions/DEV-2/io.log"
    path.write_text(path.read_text() + json.dumps(went("in", "more", 9)) + "\n")
    log(source, "NEW-3", went("in", "new"))
    held = run_git(sessgit.store, "rev-parse", f"refs/heads/{ARCH}").strip()
    take_over = scratch_store.take_over

    def moved(*stores: Any) -> None:
        take_over(*stores)
        run_git(sessgit.store, "update-ref", f"refs/heads/{DEV}", held)

    monkeypatch.setattr(scratch_store, "take_over", moved)
    done = sessgit("import", "--from", "io-log", str(source))
    assert (done.code, done.err) == (
        3, "Error: one of them was just changed.\nHint: Nothing was changed. Try again.\n",
    )  # fmt: skip
    assert run_git(sessgit.store, "rev-parse", f"refs/heads/{DEV}").strip() == held
    assert agent_id("io-log", "NEW-3") not in run_git(sessgit.store, "for-each-ref")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "vim", "x"), "Error: cannot import from “vim”."),
        (("--from", "io-log"), "--from io-log needs exactly one folder."),
        (("--from", "io-log", "a", "b"), "--from io-log needs exactly one folder."),
        (("--from", "io-log", "nowhere"), "there is no folder"),
        (("--from", "rlm", "."), "there are no RLM sessions in"),
        (("--from", "io-log", "."), "there are no sessions in"),
    ],
)
def test_words_that_do_not_fit_together(sessgit: Shell, arguments: tuple[str, ...], said: str) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    done = sessgit("import", *arguments)
    assert done.code in (2, 4)
    assert said in done.err


def test_nothing_is_recorded_where_the_environment_says_so(
    sessgit: Shell, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSGIT_OFF", "1")
    assert sessgit("import", "--from", "io-log", str(source)).code == 2
    assert not sessgit.store.exists()


@pytest.mark.parametrize("system", ["rlm", "io-log", "apex"])
def test_an_export_imports_as_the_same_session(sessgit: Shell, keeping: Path, tmp_path: Path, system: str) -> None:
    sessgit.out("import", "--from", "io-log", str(keeping))
    sessgit.out("edit", DEV, "--label", "+good", "--stage", "shaping", "--description", "two\nlines")
    sessgit.out("rename", DEV, "a name")
    out = tmp_path / "out"
    sessgit.out("export", system, ARCH, DEV, "--output", str(out))
    assert sessgit.json("import", "--from", system, str(out), "--dry-run")["refs"] == {}
    seen = {one: _seen(sessgit, one) for one in (ARCH, DEV)}
    shutil.rmtree(sessgit.store)
    sessgit.out("import", "--from", system, str(out))
    again = {one: _seen(sessgit, one) for one in (ARCH, DEV)}
    assert again == seen


def test_a_layout_without_a_conversation_brings_back_what_it_has(sessgit: Shell, source: Path, tmp_path: Path) -> None:
    sessgit.out("import", "--from", "io-log", str(source))
    sessgit.out("pad", "claim", "it is fast", "--into", ARCH)
    out = tmp_path / "out"
    sessgit.out("export", "dialectic", ARCH, "--output", str(out))
    seen = _seen(sessgit, ARCH)
    sessgit.out("import", "--from", "dialectic", str(out))
    again = _seen(sessgit, ARCH)
    assert (again["turns"], again["pad"]) == (seen["turns"], seen["pad"])


def _seen(sessgit: Shell, session: str) -> dict[str, Any]:
    """All of a session but its commits and the note of where it came from."""
    found = _session(sessgit, session)
    del found["commit"], found["commits"], found["transcript"], found["source"]
    tree = run_git(sessgit.store, "rev-parse", f"refs/heads/{session}:turns")
    files = {
        path: [
            line
            for line in run_git(sessgit.store, "ls-tree", "-r", f"refs/heads/{session}", path).splitlines()
            if not line.endswith("kept/source.json")
        ]
        for path in ("kept", "pad")
    }
    return {"session": found, "turns": tree, **files}


def _session(sessgit: Shell, address: str) -> Any:
    return json.loads(sessgit.out("show", "--json", address))["session"]


@pytest.mark.parametrize("system", ["rlm", "io-log", "apex", "dialectic"])
@pytest.mark.parametrize("agent", ["nightly-run-000000000007", "Nightly.Run_000000000007", "run-7.m-0000abcd0001"])
def test_a_session_whose_id_is_no_uuid_is_the_same_again(
    sessgit: Shell, tmp_path: Path, system: str, agent: str
) -> None:
    sessgit.recorded(sessgit.talk(agent).turns("one", "two"))
    (own,) = [one["id"] for one in sessgit.json("ls")["sessions"]]
    sessgit.out("pad", "claim", "it is fast", "--into", own)
    out = tmp_path / "out"
    sessgit.out("export", system, own, "--output", str(out))
    done = sessgit.json("import", "--from", system, str(out))
    assert ([one["id"] for one in done["conversations"]], done["refs"]) == ([own], {})
    seen = _session(sessgit, own)
    shutil.rmtree(sessgit.config)
    done = sessgit.json("import", "--from", system, str(out))
    assert [(one["id"], one["outcome"]) for one in done["conversations"]] == [(own, "new")]
    again = _session(sessgit, own)
    assert (again["id"], again["agent_id"]) == (seen["id"], agent)
    assert [one["text"] for one in sessgit.json("pad", own)["entries"]] == ["it is fast"]
    if system != "dialectic":  # it has no conversation
        assert [turn["prompt"] for turn in sessgit.json("log", own)["turns"]] == ["one", "two"]
    assert sessgit.json("import", "--from", system, str(out))["refs"] == {}


@pytest.mark.parametrize("system", ["rlm", "io-log", "apex", "dialectic"])
def test_the_export_of_a_named_session_that_is_here_changes_nothing(
    sessgit: Shell, tmp_path: Path, system: str
) -> None:
    talk = sessgit.talk().turns("one", "two")
    sessgit.recorded(talk)
    sessgit.out("rename", talk.session, "a name")
    sessgit.out("pad", "claim", "it is fast", "--into", talk.session)
    sessgit.out("export", system, talk.session, "--output", str(tmp_path / "out"))
    assert sessgit.json("import", "--from", system, str(tmp_path / "out"), "--dry-run")["refs"] == {}
    shutil.rmtree(sessgit.config)
    sessgit.out("import", "--from", system, str(tmp_path / "out"))
    shown = _session(sessgit, talk.session)
    assert (shown["name"], shown["title"]) == ("a name", "")


@pytest.mark.parametrize(
    "words", ["hi", "\u2060hi", "(no words)", "[Request interrupted]", "\u2060[Request interrupted]"]
)
def test_whatever_a_prompt_begins_with_comes_back(words: str) -> None:
    made = foreign_sessions._make_transcript(
        "apex", ForeignSession("1", turns=(GivenTurn(words, answer="a", time=1.0),)), None
    )
    (prompt,) = [parsed for parsed in lines_parsed(made.data.splitlines()) if parsed.is_prompt]
    assert foreign_sessions._without_mark(prompt.message_text) == words


def test_a_name_that_is_the_title_too_is_a_name() -> None:
    told = foreign_sessions._fields(
        ForeignSession("1", name="parser", title="parser"), sessions.NO_STATE, lambda data: (data, 0)
    )
    assert (told["name"], told["title"]) == ("parser", "parser")
