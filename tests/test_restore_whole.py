"""`sessgit restore`: all that lay beside the transcript, another folder, and all that is lost."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from plain import Keep, run_git
from shell import Shell
from sidecar_files import PLAN, helped, lay_beside, side_files, wipe
from strategies import SECRET
from transcripts import OTHER, SESSION, Talk, subagent

from sessgit import agents
from sessgit.agents import agent_files
from sessgit.agents.claude import home
from sessgit.branch import restore, sidecars
from sessgit.cli import text
from sessgit.errors import ConflictError
from sessgit.history import client_files
from sessgit.model.conversation.session import Session
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import recorder_state
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store


def recorded_whole(sessgit: Shell, talk: Talk | None = None, *, words: str = "") -> tuple[Path, dict[str, bytes]]:
    """A conversation of two turns, the second with everything beside it, recorded with plan, todos and tasks."""
    talk = helped(talk or sessgit.talk().turns("one"))
    path = sessgit.keep(talk)
    beside = lay_beside(path.parent, talk, words=words)
    assert sessgit("import", "--from", "claude", str(sessgit.config)).code == 0
    return path, beside


def test_all_that_lay_beside_comes_back(sessgit: Shell) -> None:
    path, beside = recorded_whole(sessgit)
    data = path.read_bytes()
    wipe(sessgit.config)
    assert (
        sessgit.out("restore", "5e55")
        == f"""\
~/{path.relative_to(sessgit.home)} was restored:
{text.size(len(data))}, byte for byte as the client wrote it.
Also written: a subagent, a large tool result, 2 tasks, 2 todo lists and a plan.
"""
    )
    assert (path.read_bytes(), side_files(sessgit.config)) == (data, beside)
    assert {(sessgit.config / name).stat().st_mode & 0o777 for name in beside} == {0o600}
    assert run_git(sessgit.store, "log", "--format=%s", SESSION).splitlines()[0].startswith("end: ")
    refs = run_git(sessgit.store, "for-each-ref")
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 1 was already imported\n"
    assert run_git(sessgit.store, "for-each-ref") == refs


def test_for_programs_every_file_is_told(sessgit: Shell) -> None:
    _, beside = recorded_whole(sessgit)
    wipe(sessgit.config)
    (sessgit.config / "plans").mkdir(exist_ok=True)
    (sessgit.config / "plans" / f"{PLAN}.md").write_text("Another plan.\n")
    found = sessgit.json("restore", "5e55")
    outcomes = {file["path"]: file["outcome"] for file in found["files"]}
    assert outcomes.pop(str(sessgit.config / "plans" / f"{PLAN}.md")) == "left"
    assert outcomes == {str(sessgit.config / name): "written" for name in beside if "plans/" not in name}
    again = sessgit("restore", "5e55")
    assert again.out.splitlines()[2:] == [
        "Also written: a subagent, a large tool result, 2 tasks and 2 todo lists.",
        "Not overwritten, because the contents differ: a plan.",
    ]
    assert {file["outcome"] for file in sessgit.json("restore", "5e55")["files"]} == {"already", "left"}
    assert (sessgit.config / "plans" / f"{PLAN}.md").read_text() == "Another plan.\n"


def test_whatever_stopped_it_doing_it_again_completes_it(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path, beside = recorded_whole(sessgit)
    data = path.read_bytes()
    written = agent_files.write
    for stop in range(len(beside) + 1):
        wipe(sessgit.config)
        left = [stop]

        def write(target: Path, *parts: bytes, left: list[int] = left) -> None:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            written(target, *parts)

        monkeypatch.setattr(agent_files, "write", write)
        assert sessgit("restore", "5e55").code == 130
        assert not path.exists()
        monkeypatch.setattr(agent_files, "write", written)
        assert sessgit("restore", "5e55").code == 0
        assert (path.read_bytes(), side_files(sessgit.config)) == (data, beside)


def test_what_stands_replaced_beside_it_is_said(sessgit: Shell) -> None:
    path, beside = recorded_whole(sessgit, words=SECRET)
    whole = "Also written: a subagent, a large tool result, 2 tasks, 2 todo lists and a plan"
    said = sessgit.out("restore", "5e55").splitlines()[2]
    assert said == f"{whole} (4 secrets redacted)."
    assert side_files(sessgit.config) == beside  # files with the words themselves are the same, and stay
    assert {file["outcome"] for file in sessgit.json("restore", "5e55")["files"]} == {"already"}
    wipe(sessgit.config)
    assert sessgit.out("restore", "5e55").splitlines()[2] == said
    assert not any(SECRET.encode() in data for data in side_files(sessgit.config).values())
    assert path.exists()


def test_a_subagent_in_pieces_and_one_that_a_rewind_left(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Agent", {}, "agentId: abc")
    path = subagent(claude, talk, "abc", "a", "b")
    keep(talk.answer("One."))
    later = Talk(file=talk.file)
    later.prompt_id = talk.prompt_id
    subagent(claude, later, "abc", "c")
    talk.prompt("two").tool("Agent", {}, "agentId: def")
    gone = subagent(claude, talk, "def", "left behind")
    keep(talk.answer("Two."))
    subagent(claude, later, "abc", "d")
    keep(talk.rewind(1).prompt("other two").answer("Other."), final=True)
    config = claude.parents[1]
    whole = {p: p.read_bytes() for p in (path, gone, claude / f"{SESSION}.jsonl")}
    wipe(config)
    done = restore.restore_session(store, SESSION, claude_homes(config))
    assert {p: p.read_bytes() for p in whole} == whole
    assert [(file.path, file.outcome) for file in done.files] == [(path, "written"), (gone, "written")]
    # Recorded once more from its beginning, nothing is new and nothing comes twice.
    recorder_state.delete_cursor(store.paths, SESSION)
    assert not keep(claude / f"{SESSION}.jsonl", final=True).changed
    subagent(claude, later, "abc", "e")
    keep(Talk(file=talk.file).rewind(3).prompt("three").answer("Three."), final=True)
    data = path.read_bytes()
    path.unlink()
    restore.restore_session(store, SESSION, claude_homes(config))
    assert path.read_bytes() == data


def test_the_folder_of_an_older_client(keep: Keep, store: Store, claude: Path) -> None:
    """Up to 2.1.1 the client looks for a subagent's file beside the transcript."""
    talk = Talk(style="2.0").prompt("one").tool("Task", {}, "found")
    nested = subagent(claude, talk, "c0ffee11", "looking")
    flat = claude / nested.name
    line = json.loads(nested.read_bytes())
    flat.write_text(json.dumps({**line, "promptId": None, "version": "2.0.46"}) + "\n")
    nested.unlink()
    keep(talk.answer("One."), final=True)
    data = flat.read_bytes()
    wipe(claude.parents[1])
    restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    assert (flat.read_bytes(), nested.exists()) == (data, False)


def test_notes_on_a_subagent_are_the_last_ones(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Agent", {}, "agentId: abc")
    notes = subagent(claude, talk, "abc", "a").with_name("agent-abc.meta.json")
    notes.write_text('{"agentType":"general-purpose"}')
    keep(talk.answer("One."))
    notes.write_text('{"agentType":"general-purpose","finished":true}')
    keep(talk.turns("two"), final=True)
    recorder_state.delete_cursor(store.paths, SESSION)
    assert not keep(claude / f"{SESSION}.jsonl", final=True).changed
    wipe(claude.parents[1])
    restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    assert notes.read_text() == '{"agentType":"general-purpose","finished":true}'


def test_names_of_files_are_never_paths(store: Store, tmp_path: Path) -> None:
    place = agents.of_programs().sidecars.place(tmp_path, tmp_path / "projects" / "-x", SESSION)
    for kind in ("subagent", "large tool result", "task", "todo list", "plan", "nothing"):
        for name in ("../../x.json", "..", ".hidden.json", "a/b.md", "", "agent-../x.jsonl", "x-agent-/y.json"):
            assert place(sidecars.SideFile(kind, name, b"")) is None


@pytest.mark.parametrize("in_its_place", ["link", "folder"])
def test_what_is_no_file_is_left(sessgit: Shell, in_its_place: str, tmp_path: Path) -> None:
    recorded_whole(sessgit)
    wipe(sessgit.config)
    plan = sessgit.config / "plans" / f"{PLAN}.md"
    plan.parent.mkdir(exist_ok=True)
    plan.symlink_to(tmp_path / "elsewhere") if in_its_place == "link" else plan.mkdir()
    assert sessgit.out("restore", "5e55").splitlines()[3] == "Not overwritten, because the contents differ: a plan."
    assert not (tmp_path / "elsewhere").exists()


def test_resume_brings_all_of_it(sessgit: Shell) -> None:
    path, beside = recorded_whole(sessgit)
    wipe(sessgit.config)
    done = sessgit("resume", "5e55", "--print")
    assert (done.code, done.out) == (0, f"claude --resume {SESSION}\n")
    assert done.err == (
        f"The client had deleted it: ~/{path.relative_to(sessgit.home)} was restored.\n"
        "Also written: a subagent, a large tool result, 2 tasks, 2 todo lists and a plan.\n"
    )
    assert side_files(sessgit.config) == beside


# Another folder


def test_for_another_folder(sessgit: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    talk = sessgit.talk().turns("one")
    path, beside = recorded_whole(sessgit, talk)
    data = path.read_bytes()
    wipe(sessgit.config)
    sessgit.project.rmdir()
    monkeypatch.chdir(tmp_path)
    done = sessgit("resume", "5e55", "--print")
    assert (done.code, done.err) == (
        4,
        "Error: the project's folder is gone: ~/shop.\n"
        "Hint: `sessgit restore 5e551011 --project DIR` makes a copy that continues in DIR.\n",
    )
    moved = tmp_path / "moved"
    moved.mkdir()
    sessgit.out("restore", "5e55", "--project", "moved")
    there = home.project_folder(sessgit.config, str(moved)) / path.name
    assert there.read_bytes() == data
    assert len(side_files(sessgit.config)) == len(beside)
    assert (there.parent / SESSION / "subagents" / "agent-a1.jsonl").exists()
    assert sessgit.out("resume", "5e55", "--print") == f"cd {shlex.quote(str(moved))} && claude --resume {SESSION}\n"
    assert run_git(sessgit.store, "log", "-1", "--format=%s", SESSION).startswith("edit: project /")
    assert sessgit.out("restore", "5e55").startswith(f"~/{there.relative_to(sessgit.home)} already exists:\n")

    # What follows is recorded with it, and comes back to the same place.
    talk.turns("later")
    there.write_bytes(talk.data)
    assert [turn["prompt"] for turn in sessgit.json("log", "5e55")["turns"]] == ["one", "look around", "later"]
    os.utime(there, (there.stat().st_mtime - 120,) * 2)
    assert sessgit.out("resume", "5e55", "--print") == f"cd {shlex.quote(str(moved))} && claude --resume {SESSION}\n"
    there.unlink()
    assert sessgit.json("restore", "5e55")["path"] == str(there)
    assert there.read_bytes() == talk.data


def test_not_where_a_copy_lies_elsewhere(sessgit: Shell, tmp_path: Path) -> None:
    path, _ = recorded_whole(sessgit)
    target = home.project_folder(sessgit.config, str(tmp_path)) / path.name
    done = sessgit("restore", "5e55", "--project", str(tmp_path))
    assert (done.code, target.exists()) == (3, False)
    assert done.err == (
        f"Error: its transcript exists in another folder: {path}. With two, the client finds neither.\n"
        f"Hint: Move it to {target}, or leave it and fork: `sessgit fork 5e551011 --project DIR`\n"
    )
    target.parent.mkdir()
    path.rename(target)
    assert sessgit.out("restore", "5e55", "--project", str(tmp_path)).startswith(
        f"~/{target.relative_to(sessgit.home)}"
    )
    there = shlex.quote(str(tmp_path))
    assert sessgit.out("resume", "5e55", "--print") == f"cd {there} && claude --resume {SESSION}\n"


def test_a_folder_that_is_gone_is_told(sessgit: Shell) -> None:
    path = sessgit.recorded(sessgit.talk(OTHER, cwd="/nowhere").turns("one"))
    path.unlink()
    assert sessgit("restore", OTHER).err == (
        f"The project's folder is gone: /nowhere. To continue it elsewhere: sessgit fork {OTHER[:8]} --project DIR\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("--project", "/nowhere"), 4, "Error: there is no folder /nowhere.\n"),
        (("--project", "/", "--verify"), 2, "Error: --project and --verify cannot be combined.\n"),
        (("--project", "/", "--output", "x"), 2, "Error: --project and --output cannot be combined.\n"),
        (("--all-lost",), 2, "Error: --all-lost and ADDRESS cannot be combined.\n"),
    ],
)
def test_what_is_refused(sessgit: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    done = sessgit("restore", "5e55", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith(error)


# All that is lost


def test_all_that_is_lost(sessgit: Shell) -> None:
    path, beside = recorded_whole(sessgit)
    other = sessgit.recorded(sessgit.talk(OTHER).turns("one"))
    here = sessgit.recorded(sessgit.talk("5e551011-0000-4000-8000-000000000003").turns("still here"))
    data = {p: p.read_bytes() for p in (path, other, here)}
    assert (
        sessgit.out("restore", "--all-lost")
        == "Nothing to restore: the client has every conversation of this machine.\n"
    )
    kept = here.read_bytes()
    wipe(sessgit.config)
    here.parent.mkdir(parents=True, exist_ok=True)
    here.write_bytes(kept)
    assert sessgit.out("restore", "--all-lost") == (
        "2 conversations were restored.\n"
        "Also written: a subagent, a large tool result, 2 tasks, 2 todo lists and a plan.\n"
    )
    assert {p: p.read_bytes() for p in data} == data
    assert side_files(sessgit.config) == beside
    assert sessgit.json("restore", "--all-lost") == {"restored": [], "errors": []}


def test_what_cannot_come_back_is_named_and_the_others_go_on(sessgit: Shell, tmp_path: Path) -> None:
    lost = sessgit.recorded(sessgit.talk().turns("one"))
    damaged = sessgit.recorded(sessgit.talk(OTHER).turns("two"))
    tree = run_git(sessgit.store, "rev-parse", f"{OTHER}^{{tree}}").strip()
    wrong = run_git(sessgit.store, "log", "-1", "--format=%B", OTHER).strip().replace("SHA256: ", "SHA256: 00")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = run_git(sessgit.store, *identity, "commit-tree", tree, "-p", f"{OTHER}^", "-m", wrong).strip()
    run_git(sessgit.store, "update-ref", f"refs/heads/{OTHER}", commit)
    lost.unlink()
    damaged.unlink()
    done = sessgit("restore", "--all-lost")
    assert (done.code, done.out) == (1, "1 conversation was restored; 1 could not be restored.\n")
    assert done.err.startswith("5e551011-0000-4000-8000-000000000002: the lines of ")
    assert lost.exists()
    found = json.loads(sessgit("restore", "--all-lost", "--json").out)
    assert ([one["id"] for one in found["errors"]], found["restored"]) == ([OTHER], [])


def test_a_place_that_is_not_known(store: Store, keep: Keep, claude: Path, tmp_path: Path) -> None:
    keep(Talk(cwd="").turns("one").save(tmp_path), final=True)
    with pytest.raises(Exception, match="the place of"):
        restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    place = client_files.transcript_place(claude_homes(tmp_path), Session(SESSION, SESSION), store.paths)
    assert place is None


def test_a_file_that_comes_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("theirs")
    with pytest.raises(ConflictError):
        agent_files.write(path, b"ours")
    assert (sidecars.put_file(path, b"ours"), sidecars.put_file(path, b"theirs")) == ("left", "already")


STEPS = st.lists(st.sampled_from(("say", "say other", "turn", "rewind", "keep", "lose")), max_size=14)


@given(STEPS)
def test_subagents_come_back_however_they_grew(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    """A file that grew over turns, rewinds and lost cursors is laid out again as it was, as far as it is recorded."""
    top = tmp_path_factory.mktemp("grown")
    stores.create_store(top / "store")
    store = Store(top / "store")
    index = Index(store.path, lambda: store)
    folder = top / "claude" / "projects" / "-home-ada-shop"
    talk = Talk().prompt("first").tool("Agent", {}, "agentId: abc").tool("Agent", {}, "agentId: def")
    first = Talk(file=talk.file)
    first.prompt_id = talk.prompt_id

    def keep() -> None:
        source = TranscriptSource(talk.save(folder), SESSION, top / "claude", final=True)
        record(Context(index), source)

    for number, step in enumerate([*steps, "turn", "keep"]):
        if step in ("say", "say other"):
            subagent(folder, first, "abc" if step == "say" else "def", str(number))
        elif step == "turn":
            talk.prompt(str(number)).answer("Well.")
        elif step == "rewind":
            talk.rewind(1).prompt(f"other {number}").answer("Other.")
        elif step == "keep":
            keep()
        else:
            recorder_state.delete_cursor(store.paths, SESSION)
    whole = {path: path.read_bytes() for path in (folder / SESSION).glob("subagents/*")}
    wipe(top / "claude")
    restore.restore_session(store, SESSION, claude_homes(top / "claude"))
    assert {path: path.read_bytes() for path in whole} == whole
    index.close()
