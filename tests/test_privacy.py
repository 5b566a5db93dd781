"""Projects that are off: the commands that switch them, and that nothing of them is recorded."""

from __future__ import annotations

import gc
import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from homes import claude_homes
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION

from sessgit.agents.claude import home
from sessgit.record import privacy
from sessgit.record.privacy import Privacy, Verdict
from sessgit.recorder import drain
from sessgit.store import refs, settings
from sessgit.store.index import remove_cache
from sessgit.store.layout import StorePaths
from sessgit.store.settings import RecordConfig

THIRD = "0b2d7f10-0000-4000-8000-00000000000b"


def sessions(sessgit: Shell) -> list[str]:
    return run_git(sessgit.store, "for-each-ref", "--format=%(refname:lstrip=2)").split()


def held(sessgit: Shell) -> bytes:
    """All that the store holds, but for the settings; git's objects unpacked, and no index open any more."""
    gc.collect()
    command = ["git", "-C", str(sessgit.store), "cat-file", "--batch-all-objects", "--batch"]
    objects = subprocess.run(command, capture_output=True, check=True).stdout
    files = (p for p in sessgit.store.rglob("*") if p.is_file() and "objects" not in p.parts)
    return objects + b"".join(p.read_bytes() for p in files if p.name != "config.toml")


# off and on


def test_off_and_on(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert (
        sessgit.out("off")
        == """\
Off: ~/shop is no longer recorded (undo: sessgit on).
1 recorded conversation stays in the store.
"""
    )
    assert sessgit.out("config", "record.exclude") == f'["{sessgit.project}"]\n'
    assert (
        sessgit.out("off")
        == """\
~/shop is already off (record.exclude has “~/shop”).
1 recorded conversation stays in the store.
"""
    )
    sessgit.out("install")
    assert (
        sessgit.out("on")
        == """\
On: ~/shop is recorded from now on.
Turns from the meantime are recorded with the next turn, or by sessgit import.
"""
    )
    assert sessgit.out("on") == "~/shop is already on.\n"
    assert sessgit.json("config", "record.exclude")["settings"] == {"record.exclude": {"value": [], "default": True}}


def test_for_programs(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    project = str(sessgit.project)
    assert sessgit.json("off") == {"project": project, "recorded": False, "changed": True, "sessions": 1}
    assert sessgit.json("off") == {"project": project, "recorded": False, "changed": False, "sessions": 1}
    assert sessgit.json("on") == {"project": project, "recorded": False, "changed": True}
    sessgit.out("install")
    assert sessgit.json("on") == {"project": project, "recorded": True, "changed": False}


def test_a_project_by_any_of_its_folders(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "calc"
    (repository / "sub" / "folder").mkdir(parents=True)
    run_git(tmp_path, "init", "-q", str(repository))
    run_git(tmp_path, "init", "-q", str(repository / "part"))
    sessgit.out("install")
    assert sessgit.out("off", str(repository / "sub")) == (
        f"Off: {repository} is no longer recorded (undo: sessgit on).\n"
    )
    monkeypatch.chdir(repository / "sub" / "folder")
    done = sessgit("on", "../../part")
    assert (done.code, done.err) == (
        3,
        f"Error: {repository}/part is still off, because {repository} is off.\n"
        f"Hint: To turn it on with all its subfolders: `sessgit on {shlex.quote(str(repository))}`\n",
    )
    assert sessgit.json("on", "..") == {"project": str(repository), "recorded": True, "changed": True}


def test_on_where_nothing_is_recorded_at_all(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert sessgit.out("on") == (
        "~/shop is already on.\nBut nothing is recorded: no hooks are installed: sessgit install\n"
    )


def test_a_glob_that_others_share_is_not_taken_out(sessgit: Shell) -> None:
    sessgit.out("install")
    sessgit.out("config", "record.exclude", '["~/s*", "/x"]')
    sessgit.out("off")
    done = sessgit("on")
    assert (done.code, done.out, done.err) == (
        3,
        "",
        f"Error: {sessgit.project} is still off: record.exclude has “~/s*”.\n"
        "Hint: Remove the glob, for all folders it matches: `sessgit config record.exclude '[\"/x\"]'`\n",
    )
    assert sessgit.out("config", "record.exclude") == '["~/s*", "/x"]\n'


def test_what_a_person_wrote_for_the_project_alone_is_taken_out(sessgit: Shell) -> None:
    sessgit.out("install")
    sessgit.out("config", "record.exclude", f'["~/shop/", "{sessgit.project}", "/x"]')
    assert sessgit.json("on")["changed"]
    assert sessgit.out("config", "record.exclude") == '["/x"]\n'


def test_where_only_some_are_included(sessgit: Shell) -> None:
    sessgit.out("install")
    sessgit.out("config", "record.include", '["~/open/*"]')
    assert sessgit.out("status").splitlines()[0] == (
        "Recording   off here · ~/shop is off: record.include does not include it"
    )
    sessgit.out("off")
    assert sessgit.json("on")["changed"]
    assert sessgit.out("config", "record.include") == f'["~/open/*", "{sessgit.project}"]\n'
    assert sessgit.out("config", "record.exclude") == "[]\n"
    assert sessgit.out("status").splitlines()[0] == "Recording   on"


def test_a_folder_with_the_signs_of_a_glob(sessgit: Shell) -> None:
    sessgit.out("install")
    odd = sessgit.home / "a[b]*"
    odd.mkdir()
    assert sessgit.json("off", str(odd))["project"] == str(odd)
    assert sessgit.out("config", "record.exclude") == f'["{sessgit.home}/a[[]b][*]"]\n'
    assert sessgit.json("off", str(odd))["changed"] is False
    assert privacy.verdict(
        Privacy(settings.load_settings(StorePaths(sessgit.store)).record), f"{sessgit.home}/abc"
    ).recorded
    assert sessgit.json("on", str(odd))["changed"]


def test_a_folder_that_is_not_there(sessgit: Shell) -> None:
    sessgit.out("install")
    done = sessgit("off", "nowhere")
    assert (done.code, done.err.splitlines()[0]) == (4, f"Error: there is no folder {sessgit.project}/nowhere.")
    gone = sessgit.home / "gone"
    gone.mkdir()
    sessgit.out("off", str(gone))
    gone.rmdir()
    assert sessgit.json("on", str(gone))["changed"]


def test_a_name_that_is_no_utf8(sessgit: Shell) -> None:
    sessgit.out("install")
    odd = os.fsencode(sessgit.home) + b"/\xff"
    Path(os.fsdecode(odd)).mkdir()
    done = sessgit("off", os.fsdecode(odd))
    assert (done.code, done.err.splitlines()[1]) == (2, "Hint: Arguments must be text.")


def test_a_project_is_off_before_anything_is_recorded(sessgit: Shell) -> None:
    assert sessgit("on").code == 4
    assert not sessgit.config.exists()
    sessgit.keep(sessgit.talk().turns("zebra"))
    assert sessgit.out("off") == "Off: ~/shop is no longer recorded (undo: sessgit on).\n"
    assert "1 conversation of projects that are off" in (done := sessgit("import")).err + done.out
    assert refs.read_all(sessgit.store) == {}


# Commands record nothing of it


def test_a_command_catches_up_with_no_session_of_a_project_that_is_off(sessgit: Shell) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    sessgit.out("off")
    sessgit.keep(talk.turns("zebra"))
    before = held(sessgit)
    done = sessgit("log", "5e55", "--oneline")
    assert (done.code, done.out, done.err) == (
        0,
        "5e551011@1 one\n",
        f"5e551011 has turns that are not recorded: its project is off (record.exclude has “{sessgit.project}”)\n",
    )
    assert held(sessgit) == before
    sessgit.out("on")
    assert sessgit.out("log", "5e55", "--oneline") == "5e551011@2 zebra\n5e551011@1 one\n"


def test_a_session_that_nobody_recorded_is_not_recorded_by_its_name(sessgit: Shell) -> None:
    sessgit.out("install")
    sessgit.out("off")
    sessgit.keep(sessgit.talk().turns("zebra"))
    done = sessgit("log", "5e55")
    assert (done.code, done.out, done.err) == (
        4,
        "",
        f"Error: 5e551011 is not recorded: its project is off (record.exclude has “{sessgit.project}”)\n"
        "Hint: To record the project again: `sessgit on`\n",
    )
    assert sessions(sessgit) == []
    assert b"zebra" not in held(sessgit)


def test_a_command_of_an_agent_that_is_off(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    sessgit.keep(talk.turns("zebra"))
    sessgit.keep(sessgit.talk(THIRD).turns("lion"))
    before = held(sessgit)
    monkeypatch.setenv("SESSGIT_OFF", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", THIRD)
    done = sessgit("log")
    assert (done.code, done.err.splitlines()[0]) == (
        4,
        "Error: 0b2d7f10 is not recorded: SESSGIT_OFF=1 is set here.",
    )
    done = sessgit("log", "5e55", "--oneline")
    assert (done.out, done.err) == (
        "5e551011@1 one\n",
        "5e551011 has turns that are not recorded: SESSGIT_OFF=1 is set here\n",
    )
    assert held(sessgit) == before
    off = "Error: SESSGIT_OFF=1 is set, so nothing is recorded.\nHint: Unset it to record.\n"
    for command in (("import",), ("import", "--from", "claude", str(sessgit.config))):
        done = sessgit(*command)
        assert (done.code, done.out, done.err) == (2, "", off)
    assert held(sessgit) == before
    monkeypatch.setenv("SESSGIT_OFF", "0")
    assert sessgit.out("log", "--oneline") == "0b2d7f10@1 lion\n"


def test_an_import_that_is_off_makes_no_store(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.keep(sessgit.talk().turns("zebra"))
    monkeypatch.setenv("SESSGIT_OFF", "1")
    assert sessgit("import").code == 2
    assert not sessgit.store.exists()


def test_what_was_moved_is_off_with_its_new_project(sessgit: Shell) -> None:
    """Also where the index, which knows of the move, is gone: the lines still name the old folder."""
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk).unlink()
    there = sessgit.home / "there"
    there.mkdir()
    sessgit.out("restore", SESSION, "--project", str(there))
    sessgit.out("off", str(there))
    paths = StorePaths(sessgit.store)
    remove_cache(paths.index)
    path = talk.turns("zebra").save(home.project_folder(sessgit.config, str(there)))
    event = {"session_id": SESSION, "transcript_path": str(path), "cwd": str(there), "hook_event_name": "SessionEnd"}
    (paths.spool / "1-1.json").write_text(json.dumps(event))
    drain.drain_spool(sessgit.store, claude_homes(sessgit.config), {"HOME": str(sessgit.home)})
    assert b"zebra" not in held(sessgit)
    assert not list(paths.spool.glob("*.json"))


def test_import_leaves_them_out(sessgit: Shell, tmp_path: Path) -> None:
    sessgit.out("install")
    sessgit.out("off")
    sessgit.keep(sessgit.talk().turns("zebra"))
    elsewhere = sessgit.talk(OTHER).turns("zebra").save(tmp_path)
    sessgit.keep(sessgit.talk(THIRD, cwd="/home/ada/open").turns("lion"))
    assert sessgit.out("import") == (
        "1 conversation, 1 turn imported\n1 conversation of projects that are off was skipped\n"
    )
    sessgit.out("import", str(elsewhere.parent))
    copy = sessgit.talk(SESSION).turns("zebra").save(tmp_path)
    assert sessgit.out("import", str(elsewhere), str(copy)) == (
        "0 conversations, 0 turns imported\n2 conversations of projects that are off were skipped\n"
    )
    assert sessgit.json("import")["excluded"] == 1
    assert sessions(sessgit) == [THIRD]
    assert b"zebra" not in held(sessgit)


def test_the_project_stands_behind_a_prompt_of_megabytes(sessgit: Shell) -> None:
    """The first line that names a folder is longer than what is read at once."""
    sessgit.out("install")
    sessgit.out("off")
    sessgit.keep(sessgit.talk().turns("zebra " + "x" * (3 << 20)))
    assert sessgit.json("import") == {
        "sessions": 0, "turns": 0, "unchanged": 0, "excluded": 1, "archived": 0, "deleted": 0, "links": 0,
        "empty": 0, "subagents": 0, "plans": [], "dry_run": False, "errors": [],
    }  # fmt: skip


def test_what_an_installation_says_can_be_brought_in_is_what_would_be(sessgit: Shell) -> None:
    sessgit.out("install")
    sessgit.keep(sessgit.talk().turns("zebra"))
    assert sessgit.json("install")["older"] == sessgit.json("status")["older"] == 1
    sessgit.out("off")
    assert sessgit.json("install")["older"] == sessgit.json("status")["older"] == 0


def test_who_moved_on_to_another_folder_stays_in_the_project(sessgit: Shell) -> None:
    """The first folder counts, and where the session is recorded the one in its state."""
    talk = sessgit.talk().turns("one")
    path = sessgit.recorded(talk)
    away = Privacy(RecordConfig(exclude=("/elsewhere",)))
    talk.file.cwd = "/elsewhere"
    sessgit.keep(talk.turns("two"))
    assert privacy.transcript_verdict(away, path, event_folder="/elsewhere").recorded
    assert privacy.transcript_verdict(away, path, recorded="/elsewhere") == Verdict(False, "/elsewhere")
    path.write_text(json.dumps({"type": "mode"}) + "\n")
    assert privacy.transcript_verdict(away, path, event_folder="/elsewhere") == Verdict(False, "/elsewhere")
    assert privacy.transcript_verdict(away, path.with_name("missing.jsonl")).recorded


# What the settings say when they are wrong


@pytest.mark.parametrize(
    ("text", "exclude"),
    [
        ("[record]\nexclude = ['/a']\nfsync = 7\n", ("/a",)),
        ("[record]\nexclude = ['/a']\nredcat = true\n", ("/a",)),
        ("[record]\nfsync = 'x'\n", ()),
        ("[prices.x]\ninput = 1\n", ()),
    ],
)
def test_a_mistake_elsewhere_costs_no_privacy(sessgit: Shell, text: str, exclude: tuple[str, ...]) -> None:
    sessgit.out("install")
    (sessgit.store / "config.toml").write_text(text)
    found, mistake = settings.load_or_default(StorePaths(sessgit.store))
    assert found.record == RecordConfig(exclude=exclude)
    assert mistake.startswith(f"{sessgit.store}/config.toml: ")


@pytest.mark.parametrize(
    "text",
    ["[record", "record = 1", "[record]\nexclude = '/a'", "[record]\nexclude = ['a']", "[record]\nexcludes = ['/a']",
     "[recrod]\nexclude = ['/a']", "exclude = ['/a']"],
)  # fmt: skip
def test_a_mistake_that_may_be_about_privacy(sessgit: Shell, text: str) -> None:
    from sessgit.errors import SessgitError

    sessgit.out("install")
    (sessgit.store / "config.toml").write_text(text)
    with pytest.raises(SessgitError):
        settings.load_or_default(StorePaths(sessgit.store))


def test_the_transcripts_of_the_client_are_where_the_shell_puts_them(sessgit: Shell) -> None:
    path = sessgit.keep(sessgit.talk().turns("one"))
    assert list(home.transcripts(sessgit.config)) == [path]
    assert path.stem == SESSION
