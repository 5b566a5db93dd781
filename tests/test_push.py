"""`sessgit remote`, `push`, `pull` and `sync`: what is asked for goes, and what was done is told."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from desks import Desk, Desks, desks
from machines import on_another
from plain import run_git
from servers import PASSWORD, USER, hook, http, silent
from shell import Shell, on_terminal
from transcripts import OTHER, SESSION, Talk
from waiting import PATIENCE

from sessgit.cli import invocation, operands
from sessgit.store import refs, remotes, settings
from sessgit.store.layout import StorePaths

SHORT = "5e551011"
THEIRS, OURS = f"{SHORT}.m-a0005003", f"{SHORT}.m-a0000003"
SETTING = """sessgit config sync.include '["~/code/*", "label:shared"]'"""


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Desks:
    return desks(monkeypatch, capsys, tmp_path)


@pytest.fixture
def apart(pair: Desks) -> Desks:
    """Both have two turns of a conversation, and each has gone on with it; the other one has pushed."""
    talk = pair.here.shell.talk().turns("one", "two")
    pair.here.record(talk)
    pair.here.out("push", SESSION)
    pair.there.out("pull")
    theirs = on_another(talk)
    theirs.file.cwd = str(pair.there.shell.project)
    pair.there.record(theirs.turns("put the tokens into a trie", "measure both"))
    pair.there.out("push", "--all")
    pair.here.record(talk.turns("three"))
    return pair


def heads(store: Path) -> dict[str, str]:
    return refs.read_all(store, "refs/heads/")


def sessions_at(hub: Path) -> set[str]:
    return set(run_git(hub, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())


# The table


def test_a_sync_tells_what_came_also_where_nothing_may_go(pair: Desks) -> None:
    pair.there.record(pair.there.shell.talk().turns("one"))
    pair.there.out("push", "--all")
    pair.here("config", "record.redact", "false")
    pair.here.record(pair.here.shell.talk(OTHER).turns("two"))
    pair.here("config", "sync.include", '["/*"]')
    done = pair.here("sync")
    assert (done.code, done.out.splitlines()[0]) == (3, "origin  ·  1 conversation received, 1 turn")
    assert done.err.startswith("Error: 1 conversation would leave this machine without redaction")


def test_a_machine_that_records_nothing_can_pull(pair: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.here.out("push", "--all")
    monkeypatch.setenv("SESSGIT_STORE", str(pair.there.shell.home / "fresh"))
    assert pair.there("remote").code == 4
    assert pair.there.out("remote", "add", "origin", str(pair.hub)) == ""
    assert pair.there.out("pull") == f"origin  ·  1 conversation received, 1 turn\n  {SHORT}  one  new, 1 turn\n"


def test_the_remotes_of_a_store(sessgit: Shell) -> None:
    sessgit.out("install")
    assert sessgit.out("remote") == "No remotes yet: sessgit remote add NAME URL\n"
    assert sessgit.out("remote", "add", "origin", "ssh://ada:secret@desk/hub") == ""
    assert sessgit.out("remote", "add", "usb", "../stick") == ""
    assert sessgit.out("remote") == f"origin  ssh://ada:***@desk/hub\nusb     {sessgit.home}/stick\n"
    done = sessgit("remote", "--json")
    assert json.loads(done.out) == {
        "schema": "sessgit.remote/v1",
        "remotes": [
            {"name": "origin", "url": "ssh://ada:***@desk/hub"},
            {"name": "usb", "url": f"{sessgit.home}/stick"},
        ],
    }
    assert sessgit("remote", "add", "usb", "/other").err == (
        f"Error: the remote usb already exists: {sessgit.home}/stick.\nHint: Choose another name.\n"
    )
    assert sessgit.json("remote", "remove", "usb") == {"name": "usb", "url": f"{sessgit.home}/stick", "removed": True}
    assert sessgit.out("remote") == "origin  ssh://ada:***@desk/hub\n"


@pytest.mark.parametrize("words", [("add",), ("add", "x"), ("remove",), ("frob", "x"), ("remove", "a", "b")])
def test_what_remote_does_not_understand(sessgit: Shell, words: tuple[str, ...]) -> None:
    sessgit.out("install")
    done = sessgit("remote", *words)
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            f"Error: cannot understand: remote {' '.join(words)}.",
            "Hint: `sessgit remote add NAME URL`, `sessgit remote remove NAME`, or `sessgit remote`.",
        ],
    )


# From machine to machine


def test_a_conversation_that_both_went_on_with(apart: Desks) -> None:
    assert (
        apart.here.out("push", SESSION)
        == f"""\
origin  ·  1 conversation sent, 1 turn
  {SHORT}  one  continued on both sides: {OURS} has 1 turn
The remote has turns that this store lacks. Fetch them: sessgit pull
"""
    )
    assert (
        apart.here.out("pull")
        == f"""\
origin  ·  1 conversation received, 2 turns
  {SHORT}  one  continued on both sides: {THEIRS} has 2 turns in the
                 other version
Compare them: sessgit diff {SHORT} {THEIRS}
Merge them: sessgit merge {THEIRS} --into {SHORT}
"""
    )
    assert (
        apart.there.out("pull", "origin")
        == f"""\
origin  ·  1 conversation received, 1 turn
  {SHORT}  one  continued on both sides: {OURS} has 1 turn in the
                 other version
Compare them: sessgit diff {SHORT} {OURS}
Merge them: sessgit merge {OURS} --into {SHORT}
"""
    )
    for desk in (apart.here, apart.there):
        assert (desk.out("pull"), desk.out("push", "--all"), desk("sync").out) == ("", "", "")
    assert set(heads(apart.here.shell.store)) == {f"refs/heads/{SESSION}", f"refs/heads/{SESSION}.m-a0005003"}
    assert sessions_at(apart.hub) == {SESSION, f"{SESSION}.m-a0000003"}
    diff = apart.here.out("diff", SHORT, THEIRS)
    assert "= 2 shared turns" in diff.replace("═", "=")


def test_one_that_both_went_on_with_and_one_archived(apart: Desks) -> None:
    """What it says to do next can be done in that order."""
    for desk in (apart.here, apart.there, apart.here, apart.there):
        desk.out("pull")
        desk.out("push", "--all")
    apart.here.record(apart.here.shell.talk().turns("one", "two", "three", "four"))
    apart.here.out("archive", SESSION)
    apart.here.out("push", "--all")
    assert (
        apart.there.out("pull")
        == f"""\
origin  ·  1 conversation received, 1 turn, 1 archived
  {SHORT}  one  + 1 turn in {OURS}, archived
Compare them: sessgit diff {SHORT} {OURS}
unarchive it: sessgit unarchive {SHORT}
Merge them: sessgit merge {OURS} --into {SHORT}
"""
    )
    for words in (("diff", SHORT, OURS), ("unarchive", SHORT), ("merge", OURS, "--into", SHORT)):
        assert apart.there(*words).code == 0, words


def test_told_to_programs(apart: Desks) -> None:
    side = f"{SESSION}.m-a0005003"
    told = {
        "remote": "origin", "changes": [{"id": SESSION, "change": "diverged", "turns": 2, "branch": side}], "tags": [],
        "skipped": [],
    }  # fmt: skip
    assert apart.here.json("pull", "-n") == {**told, "dry_run": True, "operation_id": None, "behind": []}
    done = apart.here.json("pull")
    assert done == {**told, "dry_run": False, "operation_id": done["operation_id"], "behind": []}
    assert done["operation_id"] == apart.here.json("ops")["operations"][0]["id"]
    assert apart.here.json("pull") == {**told, "changes": [], "dry_run": False, "operation_id": None, "behind": []}


def test_a_dry_run_moves_nothing_but_what_is_remembered(apart: Desks) -> None:
    before, there = heads(apart.here.shell.store), sessions_at(apart.hub)
    assert apart.here.out("pull", "--dry-run").splitlines()[0] == "origin  ·  1 conversation would be received, 2 turns"
    assert apart.here.out("push", SESSION, "-n").splitlines()[0] == "origin  ·  1 conversation would be sent, 1 turn"
    assert (heads(apart.here.shell.store), sessions_at(apart.hub)) == (before, there)


def test_a_pull_is_taken_back(apart: Desks) -> None:
    before = heads(apart.here.shell.store)
    apart.here.out("pull")
    assert heads(apart.here.shell.store) != before
    assert apart.here.out("undo").startswith("Undone: 1 conversation from origin\n")
    assert heads(apart.here.shell.store) == before


def test_only_what_is_named_comes(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.here.record(Talk("77be01d3-0000-4000-8000-000000000007", cwd="/srv/calc").turns("lexer"))
    pair.here.out("push", "--all")
    done = pair.there("pull", "77b")
    assert (done.code, done.err) == (
        4,
        "Error: the remote has no conversation “77b”, and there is no remote “77b”, only origin.\n"
        "Hint: Name its id, or the first four letters. Without an id, pull fetches all conversations.\n",
    )
    assert pair.there.out("pull", "origin", "77be") == (
        "origin  ·  1 conversation received, 1 turn\n  77be01d3  lexer  new, 1 turn\n"
    )
    assert set(heads(pair.there.shell.store)) == {"refs/heads/77be01d3-0000-4000-8000-000000000007"}


def test_what_begins_two_conversations_there(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.here.record(pair.here.shell.talk(OTHER).turns("two"))
    pair.here.out("push", "--all")
    done = pair.there("pull", "5e55")
    assert (done.code, done.out, done.err) == (
        4,
        "",
        f"Error: 2 conversations there start with “5e55”: {SESSION}, {OTHER}.\nHint: Type more of the id.\n",
    )


def test_names_labels_tags_archive_and_deletion_travel(pair: Desks) -> None:
    for session in (SESSION, OTHER):
        pair.here.record(pair.here.shell.talk(session).turns("one"))
    pair.here.out("push", "--all")
    pair.there.out("pull")
    pair.here("rename", SESSION, "parser")
    pair.here("tag", "good", f"{SESSION}@1")
    pair.here.out("archive", OTHER)
    assert (
        pair.here.out("push", "--all")
        == f"""\
origin  ·  1 conversation sent, 1 archived
  {SESSION}  parser  no new turns, but new details
  {OTHER}  one     archived
  tags: good
"""
    )
    assert (
        pair.there.out("pull")
        == f"""\
origin  ·  1 conversation received, 1 archived
  {SESSION}  parser  no new turns, but new details
  {OTHER}  one     archived
  tags: good
"""
    )
    pair.there("delete", OTHER, "--yes")
    assert pair.there.out("push", SESSION) == f"origin  ·  1 conversation deleted\n  {OTHER}  deleted\n"
    assert pair.here.out("pull") == f"origin  ·  1 conversation deleted\n  {OTHER}  deleted\n"
    assert [one["id"] for one in pair.here.json("ls", "--only-archived")["sessions"]] == []


def test_a_name_that_two_have_now(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.there.record(Talk(OTHER, cwd=str(pair.here.shell.project)).turns("else"))
    for desk, session in ((pair.here, SESSION), (pair.there, OTHER)):
        desk("rename", session, "parser")
        desk.out("push", session)
    assert (
        pair.here.out("pull")
        == f"""\
origin  ·  1 conversation received, 1 turn
  {OTHER}  parser  new, 1 turn
“parser” now names both {SESSION} and
{OTHER}: rename one with sessgit rename.
"""
    )


def test_many_are_counted(pair: Desks) -> None:
    pair.here.sit()
    names = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(23)]
    pair.here.shell.recorded(*(pair.here.shell.talk(name).turns("one") for name in names))
    lines = pair.here.out("push", "--all").splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("origin  ·  23 conversations sent, 23 turns", 22, "  and 3 more")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_everything_fits(apart: Desks, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    apart.there("rename", SESSION, "a name that is as long as a name can be before it takes two lines, \u4e2d\u6587")
    told = apart.here.out("pull") + apart.here.out("push", SESSION, "-n")
    assert max(map(len, told.splitlines())) <= columns


def test_nothing_of_a_conversation_steers_the_terminal(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("\x1b[31mred\x1b]0;title\x07 one"))
    hook(pair.hub, "printf '\\033[31mred\\033[0m\\n' >&2; exit 1")
    refused = pair.here("push", "--all")
    assert refused.code == 3
    hook(pair.hub, "exit 0")
    for told in (pair.here.out("push", "--all"), pair.there.out("pull"), refused.err):
        assert "\x1b" not in told
        assert "\x07" not in told


# What may leave the machine


def test_nothing_goes_that_nobody_asked_for(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    done = pair.here("push")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "Error: no conversations selected.\n"
        f"Hint: Name them, or use --all, --label or --project. To select them for every push: `{SETTING}`\n",
    )
    done = pair.here("sync")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        f"Nothing was sent: sync.include is empty. To select conversations: {SETTING}\n",
    )
    assert sessions_at(pair.hub) == set()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("5e55@1",), "only whole conversations can be sent, not up to turn 1."),
        ((f"{SESSION}.r-a0000002",), "5e551011.r-a0000002 is a side branch, and is sent with its conversation."),
        ((SESSION, "--all"), "addresses cannot be combined with --label, --project or --all."),
        (("--all", "--label", "x"), "--all and --label cannot be combined."),
    ],
)
def test_a_conversation_goes_whole(pair: Desks, words: tuple[str, ...], told: str) -> None:
    pair.here.record(pair.here.shell.talk().turns("one", "two").rewind(1).turns("three"))
    done = pair.here("push", *words)
    assert (done.code, done.out, done.err.splitlines()[0]) == (2, "", f"Error: {told}")
    assert sessions_at(pair.hub) == set()


def test_a_word_that_is_neither_a_remote_nor_a_conversation(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    done = pair.here("push", "orgin")
    assert (done.code, done.err.splitlines()[0]) == (
        4,
        "Error: no conversation starts with “orgin”, and there is no remote “orgin”, only origin.",
    )
    pair.here.out("remote", "add", "usb", "/stick")
    assert pair.here("push", "orgin").err.splitlines()[0] == "Error: “orgin” is not a remote; there are origin, usb."
    assert pair.here("sync").err.splitlines()[0] == "Error: there are 2 remotes: origin, usb."


def three_projects(desk: Desk) -> dict[str, str]:
    """A conversation of each project, by its name; that of `shop` is labelled."""
    sessions = {}
    for number, name in enumerate(("shop", "calc", "private")):
        folder = desk.shell.home / name
        folder.mkdir(exist_ok=True)
        session = f"0000000{number}-0000-4000-8000-000000000000"
        desk.record(Talk(session, cwd=str(folder)).turns(name))
        sessions[name] = session
    desk("edit", sessions["shop"], "--label", "shared")
    return sessions


@pytest.mark.parametrize(
    ("include", "going"),
    [
        ('["label:shared"]', {"shop"}),
        ('["~/calc"]', {"calc"}),
        ('["~/*"]', {"shop", "calc"}),
        ('["label:shared", "*/calc"]', {"shop", "calc"}),
        ('["~/private", "label:nothing"]', set()),
    ],
)
def test_what_the_settings_let_go(pair: Desks, include: str, going: set[str]) -> None:
    """A project that is not recorded any more is left out, whatever names it."""
    known = three_projects(pair.here)
    pair.here("off", str(pair.here.shell.home / "private"))
    pair.here.out("config", "sync.include", include)
    done = pair.here("sync", "--json")
    sent = json.loads(done.out)["push"]["changes"]
    assert {one["id"] for one in sent} == sessions_at(pair.hub) == {known[name] for name in going}
    assert pair.here("push").out == ""


@pytest.mark.parametrize(
    ("options", "going"),
    [
        (("--label", "shared"), {"shop"}),
        (("--project", "../calc"), {"calc"}),
        (("--project", "../shop", "--label", "shared"), {"shop"}),
        (("--all",), {"shop", "calc", "private"}),
    ],
)
def test_what_options_choose(pair: Desks, options: tuple[str, ...], going: set[str]) -> None:
    known = three_projects(pair.here)
    pair.here.out("push", "origin", *options)
    assert sessions_at(pair.hub) == {known[name] for name in going}


def test_options_that_choose_nothing(pair: Desks) -> None:
    three_projects(pair.here)
    done = pair.here("push", "--project", "../calc", "--label", "shared")
    assert (done.code, done.err.splitlines()[0]) == (4, "Error: no conversation matches.")


@pytest.mark.parametrize("value", ['["shop"]', '["label:"]', '"~/shop"', "[1]"])
def test_a_setting_that_chooses_nothing(pair: Desks, value: str) -> None:
    done = pair.here("config", "sync.include", value)
    assert (done.code, "sync.include" in done.err) == (2, True)
    assert pair.here.out("config", "sync.include") == "[]\n"


def test_a_mistake_elsewhere_in_the_settings_costs_no_recording(pair: Desks) -> None:
    paths = StorePaths(pair.here.shell.store)
    paths.config.write_text('[sync]\ninclude = ["~/*"]\n[archive]\nafter = "soon"\n')
    loaded, problem = settings.load_or_default(paths)
    assert loaded.sync.include == ()
    assert "archive.after" in problem


def test_what_was_recorded_without_redaction_stays(pair: Desks) -> None:
    pair.here("config", "record.redact", "false")
    pair.here.record(pair.here.shell.talk().turns("one"))
    done = pair.here("push", "--all")
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines()[-1] == "Hint: Nothing was sent. To send them unredacted, use `--unredacted`."
    assert sessions_at(pair.hub) == set()
    assert pair.here.out("push", "--all", "--unredacted").startswith("origin  ·  1 conversation sent, 1 turn\n")


def test_what_a_fork_holds_goes_along_and_is_told(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one", "two"))
    fork = pair.here.json("fork", SESSION, "--at", "1", "--no-restore")["id"]
    assert pair.here.out("push", fork) == (
        f"origin  ·  1 conversation sent, 1 turn\n  {fork[:8]}  one  new, 1 turn\n"
        f"  also sent: turns of {SHORT} that a fork or a merge contains\n"
    )


def test_what_the_client_has_said_since_goes_too(pair: Desks) -> None:
    talk = pair.here.shell.talk().turns("one")
    path = pair.here.record(talk)
    talk.turns("two").save(path.parent)
    assert pair.here.out("push", SESSION) == f"origin  ·  1 conversation sent, 2 turns\n  {SHORT}  one  new, 2 turns\n"


# Secrets, and what goes wrong on the way


def test_a_password_is_never_told(pair: Desks, tmp_path: Path) -> None:
    run_git(pair.hub, "config", "http.receivepack", "true")
    pair.here.record(pair.here.shell.talk().turns("one"))
    said = []
    with http(tmp_path) as host:
        pair.here.out("remote", "add", "web", f"http://{USER}:{PASSWORD}@{host}/hub")
        for words in (("remote",), ("remote", "--json"), ("push", "web", "--all"), ("push", "web", "--all", "--json"),
                      ("pull", "web"), ("sync", "web", "--json"), ("ops",)):  # fmt: skip
            said.append(pair.here(*words))
        run_git(pair.here.shell.store, "config", "remote.web.url", f"http://{USER}:{PASSWORD}@{host}/nothing")
        said.append(failed := pair.here("pull", "web"))
    said.append(pair.here("pull", "web"))
    assert [done.code for done in said] == [0] * 7 + [7, 7]
    assert "/nothing" in failed.err
    told = "".join(done.out + done.err for done in said)
    for path in pair.here.shell.store.rglob("*"):
        if path.is_file() and path.name != "config" and "objects" not in path.parts:
            told += path.read_bytes().decode("utf-8", "replace")
    for secret in (PASSWORD, PASSWORD.replace("%20", " "), "s3cret"):
        assert secret not in told


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("/nowhere", "'/nowhere' does not appear to be a git repository"),
        ("git://127.0.0.1:1/hub", "Connection refused"),
        ("nohelper://x/hub", "nohelper"),
    ],
)
def test_a_remote_out_of_reach(sessgit: Shell, url: str, words: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("remote", "add", "origin", url)
    before = refs.read_all(sessgit.store)
    for command in (("pull",), ("push", "--all"), ("sync",)):
        done = sessgit(*command)
        assert (done.code, done.out) == (7, "")
        error, hint = done.err.splitlines()
        assert error.startswith("Error: cannot reach origin: ")
        assert words in error
        assert hint.startswith("Hint: ")
    assert refs.read_all(sessgit.store) == before


def test_a_remote_that_dies_in_the_middle(pair: Desks) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    hook(pair.hub, "kill -9 $PPID")
    before = refs.read_all(pair.here.shell.store)
    done = pair.here("push", "--all")
    assert (done.code, done.out) == (7, "")
    assert done.err.splitlines()[1] == (
        "Hint: Try again: nothing was changed here, and what arrived is not sent twice."
    )
    assert (refs.read_all(pair.here.shell.store), sessions_at(pair.hub)) == (before, set())
    hook(pair.hub, "exit 0")
    assert pair.here.out("push", "--all").startswith("origin  ·  1 conversation sent, 1 turn\n")


@pytest.mark.parametrize("command", [("pull",), ("push", "--all")])
def test_the_keyboard_stops_it(pair: Desks, command: tuple[str, ...]) -> None:
    """git is gone when the command is: the connection that it held is closed."""
    pair.here.record(pair.here.shell.talk().turns("one"))
    before = refs.read_all(pair.here.shell.store)
    with silent() as (address, listening):
        pair.here.out("remote", "add", "dumb", f"git://{address}/hub")
        process = pair.here.process(command[0], "dumb", *command[1:])
        connection, _ = listening.accept()
        connection.settimeout(PATIENCE)
        heard = b""
        while b"hub" not in heard:
            heard += connection.recv(1000)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, b"", b"")
        assert connection.recv(1000) == b""
        connection.close()
    assert refs.read_all(pair.here.shell.store) == before


def test_what_a_hook_of_gits_says_does_not_mislead(
    pair: Desks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Called from a hook or an alias of git's, whose variables name another repository."""
    pair.here.record(pair.here.shell.talk().turns("one"))
    for name, value in {"GIT_DIR": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index",
                        "GIT_TRACE": "1", "GIT_NAMESPACE": "other", "GIT_CURL_VERBOSE": "1"}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert pair.here.out("push", "--all").startswith("origin  ·  1 conversation sent, 1 turn\n")
    monkeypatch.undo()
    assert sessions_at(pair.hub) == {SESSION}


# At a terminal


def test_where_nothing_changed_a_person_hears_so(pair: Desks, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.here.record(pair.here.shell.talk().turns("one"))
    pair.here.out("push", "--all")
    pair.here.out("config", "sync.include", '["*"]')
    read = invocation.read
    monkeypatch.setattr(invocation, "read", lambda: on_terminal(read(), shows_output=True, pager=""))
    assert pair.here.out("push", "--all") == "origin is up to date.\n"
    assert pair.here.out("pull") == "Nothing new in origin.\n"
    assert pair.here.out("sync") == "origin and this machine are in sync.\n"
    assert (
        pair.here.out("remote", "add", "usb", "/stick")
        == "Nothing is sent yet. To send everything: sessgit push usb --all\n"
    )
    assert pair.here.out("remote", "remove", "usb") == "The remote repository itself is unchanged.\n"


def test_how_it_gets_on_is_one_line(
    sessgit: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    sessgit.out("remote", "add", "origin", "/stick")
    monkeypatch.setattr(operands, "_SHOWN_AFTER", 0.0)
    monkeypatch.setattr(operands, "_EACH", 0.0)
    for terminal in (True, False):
        here = on_terminal(invocation.read(), shows_errors=terminal, width=40)
        with operands.connected(here, remotes.find_remote(here.env.store, "origin")) as link:
            link.say("Receiving objects:  50% (1/2)\x1b[31m")
            time.sleep(0.01)
            link.say("x" * 100)
            assert not any(name.startswith("GIT_") for name in link.env if name not in
                           ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"))  # fmt: skip
        shown = capsys.readouterr().err
        end = f"\r{'x' * 38}…\033[K\r\033[K"
        assert shown == (f"\rReceiving objects:  50% (1/2) [31m\033[K{end}" if terminal else "")
    assert os.environ["GIT_CONFIG_GLOBAL"] == os.devnull
