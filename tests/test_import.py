"""`sessgit import`: what it brings in, what it says of files that it cannot read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.record import imports
from sessgit.store import maintenance, objects


def test_all_of_the_clients_and_again(sessgit: Shell) -> None:
    sessgit.keep(sessgit.talk().turns("one", "two"))
    sessgit.keep(sessgit.talk(OTHER).turns("three"))
    assert sessgit.out("import") == "2 conversations, 3 turns imported\n"
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 2 were already imported\n"
    assert run_git(sessgit.store, "for-each-ref") == refs
    assert sessgit.json("import") == {
        "sessions": 0, "turns": 0, "unchanged": 2, "excluded": 0, "archived": 0, "deleted": 0, "links": 0,
        "empty": 0, "subagents": 0, "plans": [], "dry_run": False, "errors": [],
    }  # fmt: skip


def test_files_and_folders(sessgit: Shell, tmp_path: Path) -> None:
    one = sessgit.talk().turns("one").save(tmp_path / "a")
    sessgit.talk(OTHER).turns("two").save(tmp_path / "b" / "c")
    assert sessgit.out("import", str(one)) == "1 conversation, 1 turn imported\n"
    assert sessgit.out("import", str(tmp_path)) == "1 conversation, 1 turn imported; 1 was already imported\n"


def test_a_fork_finds_its_parent_whatever_the_order(sessgit: Shell, tmp_path: Path) -> None:
    parent = sessgit.talk(OTHER).turns("one", "two")
    fork = parent.branch(SESSION).turns("three")
    sessgit.out("import", str(fork.save(tmp_path / "a")), str(parent.save(tmp_path / "b")))
    assert [(s["id"], s["parent"], s["fork_turn"]) for s in sessgit.json("ls")["sessions"]] == [
        (OTHER, None, None),
        (SESSION, OTHER, 2),
    ]


def test_what_cannot_be_read_is_named_and_the_others_go_on(sessgit: Shell, tmp_path: Path) -> None:
    good = sessgit.talk().turns("one").save(tmp_path)
    missing = tmp_path / "missing.jsonl"
    done = sessgit("import", str(missing), str(good))
    assert (done.code, done.out, done.err) == (
        1,
        "1 conversation, 1 turn imported; 1 file could not be imported\n",
        f"{missing}:\n  there is no file\n",
    )


def plain(folder: Path, *prompts: str) -> Path:
    """A transcript that does not say whose it is."""
    folder.mkdir()
    path = folder / "fixture.jsonl"
    lines = [{"type": "user", "message": {"role": "user", "content": said}} for said in prompts]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("at_once", [True, False])
def test_files_that_only_have_a_name_in_common(sessgit: Shell, tmp_path: Path, at_once: bool) -> None:
    one, other = plain(tmp_path / "a", "one"), plain(tmp_path / "b", "two")
    if not at_once:
        sessgit.out("import", str(one))
    done = sessgit("import", str(one), str(other))
    assert done.code == 1
    assert done.err == (
        f"{other}:\n  another conversation is also called fixture, and no line of this file names\n"
        "  its id: give the file another name\n"
    )
    assert [(found["id"], found["turns"]) for found in sessgit.json("ls", "--all")["sessions"]] == [("fixture", 1)]
    grown = plain(tmp_path / "c", "one", "three")
    assert sessgit.out("import", str(grown)) == "1 conversation, 1 turn imported\n"
    grown.write_text(other.read_text())  # the very file that was recorded last: it was rewound
    assert sessgit("import", str(grown)).code == 0


def test_links_and_empty_files_are_counted(sessgit: Shell, tmp_path: Path) -> None:
    real = sessgit.talk().turns("one").save(tmp_path / "real")
    there = tmp_path / "there"
    there.mkdir()
    (there / "project").symlink_to(real.parent)
    (there / real.name).symlink_to(real)
    (there / "empty.jsonl").touch()
    assert sessgit.out("import", str(there)) == (
        "0 conversations, 0 turns imported\n2 links and 1 empty file skipped\n"
    )
    projects = sessgit.config / "projects"
    projects.mkdir(parents=True)
    (projects / "link").symlink_to(real.parent)
    (projects / "-shop").mkdir()
    (projects / "-shop" / "empty.jsonl").touch()
    assert sessgit.out("import") == "0 conversations, 0 turns imported\n1 link and 1 empty file skipped\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        ("hello\n", "it has no transcript lines"),
        ('{"a": 1}\n', "it has no transcript lines"),
        ('{"type": "banana", "colour": "yellow"}\n', "it has no transcript lines"),
        ('{"type": "user", "name": "Ada", "message": "hello"}\n', "it has no transcript lines"),
    ],
)
@pytest.mark.parametrize("name", ["other", SESSION])
def test_a_file_of_something_else_is_no_conversation(
    sessgit: Shell, tmp_path: Path, content: str, reason: str, name: str
) -> None:
    path = tmp_path / f"{name}.jsonl"
    path.write_text(content)
    done = sessgit("import", str(path))
    assert (done.code, done.out) == (1, "0 conversations, 0 turns imported; 1 file could not be imported\n")
    assert " ".join(done.err.split()) == f"{path}: {reason}"
    assert sessgit.json("ls", "--all")["sessions"] == []


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "summary", "summary": "Lexer", "leafUuid": "a0000001-0000-4000-8000-000000000001"}',
        '{"type": "file-history-snapshot", "messageId": "a0000001-0000-4000-8000-000000000001", "snapshot": {}}',
    ],
)
def test_a_file_that_has_only_details_is_imported(sessgit: Shell, tmp_path: Path, line: str) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text(f"{line}\n")
    assert sessgit.out("import", str(path)) == "1 conversation, 0 turns imported\n"


def test_what_came_in_is_told_when_a_person_ends_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.keep(sessgit.talk().turns("one"))
    pack = imports.pack_import

    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(imports, "pack_import", interrupted)
    done = sessgit("import")
    assert (done.code, done.out) == (130, "")
    assert done.err == "Interrupted: 1 conversation imported. Run import again to continue.\n"
    monkeypatch.setattr(imports, "pack_import", pack)
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 1 was already imported\n"


def test_what_grows_by_an_import_is_on_the_disk(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    synced = list[str]()
    settle = objects.PendingObjects.flush
    monkeypatch.setattr(objects.PendingObjects, "flush", lambda self: (synced.append("now"), settle(self))[1])
    sessgit.recorded(talk.turns("two"))
    assert synced
    synced.clear()
    sessgit.out("config", "record.fsync", "false")
    sessgit.recorded(talk.turns("three"))
    assert not synced


def test_without_git_the_store_is_whole(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(maintenance, "_LEAST_ARRIVED", 0)
    sessgit.keep(sessgit.talk().turns("one"))
    done = sessgit("import")
    assert (done.code, done.out) == (0, "1 conversation, 1 turn imported\n")
    assert done.err == "Cannot pack the store: git is missing. Install git 2.30 or later.\n"
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@1 one\n"


def test_little_is_packed_with_what_comes_later(sessgit: Shell) -> None:
    """Git is not waited for: the objects came as a pack, which the next packing joins with others."""
    packs = sessgit.store / "objects" / "pack"
    sessgit.recorded(sessgit.talk().turns("one"))
    first = {path.name for path in packs.glob("*.pack")}
    sessgit.recorded(sessgit.talk(OTHER).turns("two"))
    assert len(first) == 1
    assert first < {path.name for path in packs.glob("*.pack")}
    large = sessgit.talk("5e551011-0000-4000-8000-000000000003")
    for number in range(40):
        large.prompt(f"{number}").answer("".join(f"{number * word:x} " for word in range(900))).stop_lines()
    sessgit.recorded(large)
    assert len(list(packs.glob("*.pack"))) == 1
    assert sessgit("verify", "--deep").code == 0


def test_files_of_subagents_that_lie_elsewhere_are_counted(sessgit: Shell, tmp_path: Path) -> None:
    talk = sessgit.talk().turns("one")
    talk.save(tmp_path)
    own, other = tmp_path / SESSION / "subagents", tmp_path / "episode" / "subagents"
    for folder in (own, other):
        folder.mkdir(parents=True)
        (folder / "agent-1.jsonl").write_text('{"type":"user","uuid":"s1"}\n')
    (tmp_path / "agent-2.jsonl").write_text(json.dumps({"type": "user", "sessionId": OTHER}) + "\n")
    (tmp_path / "agent-3.jsonl").write_text(json.dumps({"type": "user", "sessionId": SESSION}) + "\n")
    assert sessgit.out("import", str(tmp_path)) == (
        "1 conversation, 1 turn imported\n2 subagent files skipped:\n"
        "  the client keeps them in ID/subagents/ next to the transcript ID.jsonl\n"
    )
    assert sessgit.json("import", str(tmp_path))["subagents"] == 2


@pytest.mark.parametrize("arguments", [(), ("--from", "claude")])
def test_a_dry_run_says_the_same_and_writes_nothing(sessgit: Shell, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    sessgit.keep(sessgit.talk().turns("one", "two"))
    words = [*arguments, str(sessgit.config)] if arguments else []
    planned = sessgit.json("import", *words, "--dry-run")
    assert (planned.pop("dry_run"), sessgit.store.exists()) == (True, False)
    assert sessgit.out("import", *words, "--dry-run") == "1 conversation, 2 turns would be imported\n"
    done = sessgit.json("import", *words)
    assert (done.pop("dry_run"), done) == (False, planned)
    sessgit.keep(sessgit.talk(OTHER).turns("three"))
    before = run_git(sessgit.store, "for-each-ref")
    assert sessgit.json("import", *words, "--dry-run")["sessions"] == 1
    assert run_git(sessgit.store, "for-each-ref") == before
