"""What every command prints with --json fits its schema in `docs/schemas/commands`, which are made of it."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import document_schemas
import pytest
from clones import bare
from coded import Coded
from foreigners import log as logged
from foreigners import put, went
from hooked import hooked
from jsonschema import Draft202012Validator
from lexing import lexer_talk
from machines import arrived, on_another
from plain import run_git
from shell import NOW, Shell
from shown import parser_rewrite
from sidecar_files import helped, lay_beside, wipe
from strategies import SECRET
from test_verify import loose, unpack
from transcripts import MODEL, OTHER, SESSION
from waiting import until

from sessgit.api import program_state
from sessgit.api.program_state import StateRequest
from sessgit.cli import app
from sessgit.model.foreign_session import agent_id
from sessgit.store import locks, log, recorder_state
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.recorder_state import LatestTurn
from sessgit.store.store import Store

FOLDER = Path(__file__).parents[1] / "docs" / "schemas" / "commands"
DAMAGED = "5e551011-0000-4000-8000-000000000003"
CODED = "c0de0000-0000-4000-8000-00000000c0de"
REPLAYED = "5e551011-0000-4000-8000-000000000007"
LEFT, WATCHED, BROKEN = (f"5e551011-0000-4000-8000-00000000000{n}" for n in (5, 6, 8))
PURGED = "5e551011-0000-4000-8000-000000000009"
BLAMED = "5e551011-0000-4000-8000-00000000000b"
SILENT = "5e551011-0000-4000-8000-00000000000a"
LEXED = "5e551011-0000-4000-8000-000000000004"
PRICE = "{input = 5, output = 25, cache_read = 0.5, cache_write = 6.25}"
WITHOUT_JSON = {"resume", "web", "mcp", "prompt"}
"""The commands that print nothing for programs."""
ERROR = {
    "schema": "sessgit.error/v1",
    "error": {
        "message": "nothing is recorded yet: there is no store at ~/.claude/session-store.",
        "hint": "`sessgit install` starts recording, `sessgit import` imports older conversations.",
        "exit_code": 4,
    },
}


# What is printed


@dataclass(frozen=True)
class Printed:
    """What a command printed."""

    command: str
    text: str

    @property
    def value(self) -> Any:
        return json.loads(self.text)


class Printer:
    """Runs commands with --json and keeps what they print."""

    def __init__(self, sessgit: Shell) -> None:
        self.sessgit = sessgit
        self.printed: list[Printed] = []

    def __call__(self, *arguments: str, code: int = 0) -> Any:
        command, is_document = arguments[0], arguments[:2] == ("export", "json") and "--output" not in arguments
        done = self.sessgit(*arguments, *([] if is_document else ["--json"]))
        assert done.code == code, (arguments, done)
        self.printed.append(Printed(command, done.out))
        assert self.printed[-1].value["schema"] == f"sessgit.{command}/v1"
        return self.printed[-1].value


PRINTED: list[Printed] = []


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> list[Printed]:
    """What all commands print in one world, which is made once."""
    if not PRINTED:
        world = Printer(Shell(monkeypatch, capsys))
        try:
            with monkeypatch.context() as elsewhere:
                elsewhere.setenv("TZ", "Asia/Kathmandu")
                time.tzset()
                record(world)
                look(world)
                _begin_family(world)
                say(world)
                go_on(world, tmp_path)
                with_code(world, elsewhere)
                away(world, tmp_path)
                left(world)
                watched(world, elsewhere)
                purged(world)
                checked(world)
                world("uninstall")
        finally:
            time.tzset()
        PRINTED.extend(world.printed)
    return PRINTED


def _nothing_writes(world: Printer) -> bool:
    """Whether no recorder that a command started still writes."""
    gc.collect()  # a repository that is only part of a cycle holds its lock until then
    with locks.no_writes(StorePaths(world.sessgit.store)) as is_quiet:
        return is_quiet


def by_plugin(world: Printer) -> None:
    """The plugin records, then it is disabled, and then it is removed."""
    world.sessgit.config.mkdir()
    settings = world.sessgit.config / "settings.json"
    settings.write_text('{"enabledPlugins": {"sessgit@sessgit": true}}')
    world("install")
    world("status")
    world("uninstall")
    settings.unlink()
    codex = world.sessgit.home / ".codex"
    codex.mkdir()
    world("install", "--agent", "codex")
    world("uninstall")
    shutil.rmtree(codex)


def record(world: Printer) -> None:
    """Three conversations: one with all that a turn can hold and a rewind, one with all that can lie beside it, and
    one that will not come back."""
    sessgit = world.sessgit
    world("status")
    by_plugin(world)
    world("install")
    sessgit.keep(parser_rewrite(sessgit))
    talk = helped(sessgit.talk(OTHER).turns("Zählung ☃ LONE", f"the key is {SECRET}"))
    talk.lines[:] = [
        line.replace(b"LONE", rb"\ud83d").replace(b"2026-03-01T10:00:01.000Z", b"2026-03-01T15:45:01+05:45")
        for line in talk.lines
    ]
    lay_beside(sessgit.keep(talk).parent, talk, words=SECRET)
    bad = sessgit.home / "bad.jsonl"
    bad.write_text("{}\n")
    world("import", "--from", "claude", str(sessgit.config))
    world("import", str(bad), code=1)
    old = sessgit.recorded(single := sessgit.talk(DAMAGED).turns("two"))
    theirs = on_another(single).turns("three")
    arrived(sessgit, theirs, theirs.prompts[-1])
    os.utime(old, (sessgit.now - 29 * 86_400,) * 2)
    sessgit.out("config", f"prices.{MODEL}", PRICE)
    world("config", "record.exclude", '["/nowhere"]')
    world("config")
    world("off")
    world("on")


def _begin_family(world: Printer) -> None:
    manager = world("new", "--title", "a plan", "--role", "manager")["id"]
    world("new", "--parent", manager, "--role", "tester")
    world("new", "--parent", manager)
    world("ls", "--children", manager)
    world("tree", manager)
    world("show", manager)


def look(world: Printer) -> None:
    sessgit = world.sessgit
    store = Store(sessgit.store)
    with closing(Index(store.path, lambda: store)) as index:
        wanted = StateRequest({"activation": {"max_depth": 2}, "budget": {"max_recursive_calls": 9}})
        program_state.change_state(Context(index, now=lambda: sessgit.now), OTHER, wanted)
    by_turn = world("fork", SESSION, "--at", "2", "--name", "by hand ☃")["id"]
    by_cell = world("fork", SESSION, "--at", "2.3", "--no-restore")["id"]
    world("fork", OTHER)
    paths = StorePaths(sessgit.store)
    log.write(paths.log, sessgit.now, "something went wrong")
    with paths.log.open("a") as file:
        file.write("yesterday 0.1 it went wrong as well\n")
    recorder_state.save_latest(paths, LatestTurn(SESSION, 4, sessgit.now, 84))
    sessgit.out("tag", "here", f"{OTHER}@1")
    sessgit.out("tag", "start", f"{OTHER}@0")
    run_git(sessgit.store, "tag", "nowhere", f"{SESSION}^{{tree}}")
    world("ls", "--all")
    world("tree")
    world("log", SESSION, "--rewound")
    last = sessgit.json("ops")["operations"][0]["id"]
    world("tree", "--at-op", last)
    world("log", SESSION, "--at-op", last)
    world("diff", SESSION, by_turn)
    world("diff", SESSION, by_cell)
    world("diff", SESSION, OTHER)
    for address in (SESSION, OTHER, by_cell, f"{SESSION}.r-a000", DAMAGED):
        world("show", address)
    for address in (f"{SESSION}@1", f"{SESSION}@2", f"{SESSION}@4", f"{by_cell}@2", f"{OTHER}@3"):
        world("show", address)
    for address in (SESSION, by_cell):
        world("show", f"{address}@0")
    for cell in ("1.1", "1.2", "2.3", "2.7", "2.8", "4.4"):
        world("show", f"{SESSION}@{cell}")
    for cell in ("2.7", "4.1"):
        world("show", f"{SESSION}@{cell}", "--deps")
    world("cells", SESSION)
    world("cells", by_cell, "-n", "2")
    world("cells", SESSION, "--index")
    world("deps", f"{SESSION}@4.2")
    world("deps", f"{SESSION}@1.2", "--down")
    world("why", "grammar.md", SESSION)
    sessgit.recorded(lexer_talk(sessgit, LEXED))
    world("why", "lexer.py", LEXED)
    world("bisect", f"{LEXED}@2", "--cell-fails", "Read|Edit")
    for cell in ask(world, "cells", type="tool")["cells"]:
        ask(world, "cell", cell_id=cell["cell_id"])
    ask(world, "cell", cell_id=(last := ask(world, "cells")["execution_order"][-2]))
    ask(world, "dependency_chain", cell_id=last)
    ask(world, "session")
    for words in (["tokenizer OR generator OR pytest"], ["ambiguous"], ["rewrite"]):
        world("search", *words)
    world("search", "nothing-like-this", code=1)
    world("stats")
    for by in ("day", "project", "model", "session", "tool"):
        world("stats", "--by", by, "--since", "2026-03-01")
    status(world, paths.spool / "1-0.json")
    world("id", OTHER)
    world("tag")


def status(world: Printer, event: Path) -> None:
    """`status` while an event waits; it starts a recorder, which may have discarded it afterwards."""
    said = {"hook_event_name": "Stop", "session_id": "x", "transcript_path": "/nowhere/x.jsonl", "cwd": "/nowhere"}
    event.write_text(json.dumps(said))
    os.utime(event, (world.sessgit.now - 60,) * 2)
    world("status", OTHER)
    event.unlink(missing_ok=True)


def ask(world: Printer, operation: str, **args: str) -> Any:
    """What the bridge answers, a shape of its own for each operation."""
    said = world.sessgit.out("bridge", LEXED, "--op", operation, "--args", json.dumps(args)).strip()
    world.printed.append(Printed("bridge", f"{said}\n"))
    return world.printed[-1].value


def say(world: Printer) -> None:
    world("rename", OTHER, "Zähler")
    world("rename", OTHER, "Zähler")
    world("edit", OTHER)
    world("edit", OTHER, "--confidence", "0.5", "--label", "good", "--stage", "shaping")
    world("tag", "there", f"{OTHER}@2")
    world("tag", "-d", "there")
    world("tag", "-d", "nowhere")
    note(world)
    world("undo", "--dry-run")
    world("undo")
    put_away(world)
    world("ops")
    bring(world)


def note(world: Printer) -> None:
    """What stands on a pad: one thing of each kind that has keys of its own."""
    world("pad", OTHER)
    for words in (("claim", "it holds", "--source", "a.py"), ("pass", "critique", "seen"), ("confidence", "0.7")):
        world("pad", "--into", OTHER, *words)
    world("pad", "--into", OTHER, "thesis", "all of it")
    question = world("pad", "--into", OTHER, "question", "why?")["entries"][0]["id"]
    world("pad", "--into", OTHER, "resolve", question, "so")
    world("pad", "brief", OTHER)
    world("pad", "compact", OTHER)


def put_away(world: Printer) -> None:
    """A fork that has a tag is archived, brought back and deleted; what it left is passed over."""
    sessgit = world.sessgit
    fork = sessgit.json("fork", OTHER, "--at", "1", "--no-restore")["id"]
    further = sessgit.json("fork", fork, "--no-restore")["id"]
    sessgit.out("edit", OTHER, "--label", "keep")
    world("archive", fork)
    world("archive", fork)
    world("archive", "--older-than", "1h", "--dry-run")
    world("unarchive", fork)
    sessgit.out("tag", "gone", f"{fork}@0")
    world("delete", "--yes", fork, further)
    world("gc")
    until(lambda: _nothing_writes(world))
    world("gc", "--prune", "--yes")
    world("import")


def purged(world: Printer) -> None:
    """A value that a tag is named after and the client's files and a remote hold, and a likely secret."""
    world.sessgit("config", "record.redact", "false")
    world.sessgit.recorded(world.sessgit.talk(PURGED).turns(f"it is {SECRET}, says tiger-lily-47"))
    world("purge", "--find")
    world.sessgit.out("tag", "tiger-lily-47", f"{PURGED}@1")
    world.sessgit.out("push", PURGED, "--unredacted")
    world("purge", "tiger-lily-47", "--dry-run")
    world("purge", "tiger-lily-47", "--yes")
    (one,) = world("purge", "--list")["denied"]
    world("purge", "--lift", one["id"])


def bring(world: Printer) -> None:
    """What merges say of two conversations that people said something of; the result is a third one."""
    world("merge", OTHER, "--into", SESSION, "--dry-run")
    world("merge", OTHER, "--into", SESSION, "--set", "description=both", "--new")
    world("pick", f"{OTHER}@1", "--into", SESSION, "--new", "--dry-run")
    world("pick", f"{OTHER}@1", "--into", SESSION, "--new")
    fork = world.sessgit.json("fork", OTHER, "--no-restore")["id"]
    world.sessgit.json("pick", f"{fork}@1", "--into", SESSION, "--new")
    world("delete", "--yes", fork)


def away(world: Printer, folder: Path) -> None:
    """All goes to a remote, which has another tag of one name then, and comes from it."""
    sessgit = world.sessgit
    world("remote", "add", "origin", str(bare(folder / "hub")))
    world("remote")
    world("push", "--all")
    sessgit.out("tag", "here", f"{OTHER}@2", "--force")
    world("push", "--all", "--dry-run")
    world("pull")
    sessgit.out("config", "sync.include", '["label:good"]')
    world("sync")


def go_on(world: Printer, folder: Path) -> None:
    """What writes files, and at last what brings the client's back when it has deleted all of them."""
    sessgit = world.sessgit
    world("export", "json", SESSION)
    world("export", "json", SESSION, "--turns", "1-2", "--no-tools")
    world("export", "markdown", OTHER, "--output", str(folder / "page.md"))
    world("export", "html", "--project", "--output", str(folder / "pages"))
    world("export", "claude", OTHER, "--output", str(folder / "along"))
    come_and_go(world, folder)
    world("restore", SESSION)
    world("restore", OTHER, "--verify")
    world("restore", OTHER, "--output", str(folder / "out.jsonl"))
    wipe(sessgit.config)
    world("restore", OTHER, "--verify")
    world("restore", OTHER)
    tree = run_git(sessgit.store, "rev-parse", f"{DAMAGED}^{{tree}}").strip()
    message = run_git(sessgit.store, "log", "-1", "--format=%B", DAMAGED).strip().replace("SHA256: ", "SHA256: 00")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = run_git(sessgit.store, *identity, "commit-tree", tree, "-p", f"{DAMAGED}^", "-m", message).strip()
    run_git(sessgit.store, "update-ref", f"refs/heads/{DAMAGED}", commit)
    world("restore", "--all-lost", code=1)


def come_and_go(world: Printer, folder: Path) -> None:
    """Conversations of another system: one that left another one, and one that keeps a file and has a damaged one."""
    sessgit, there = world.sessgit, folder / "there"
    fork = sessgit.json("fork", SESSION, "--at", "1", "--no-restore")["id"]
    world("export", "io-log", SESSION, fork, "--output", str(there))
    session = logged(there, "DEV-1", went("in", "build it"))
    put(session / "artifacts" / "a.md", "a")
    put(session / "metadata.json", "{")
    world("import", "--from", "io-log", str(there), code=1)
    world("show", agent_id("io-log", "DEV-1"))
    world("show", agent_id("io-log", "DEV-1"), "--kept=")
    world("show", agent_id("io-log", "DEV-1"), "--kept", "io-log/artifacts/a.md")
    sessgit.out("undo")


def with_code(world: Printer, patch: pytest.MonkeyPatch) -> None:
    """A conversation in a git repository, and a fork of it in a worktree, each with a commit of its own."""
    coded = Coded(world.sessgit, patch)
    path = coded.project.parent / "side"
    talk = coded.talk(CODED).turns("one")
    coded.record(talk)
    fork = world("fork", CODED, "--worktree", str(path))
    coded.record(talk.turns("nobody is there"), live=False)
    coded.commit("Ours", {"moved.py": "a\nb\nc\n", "picture": b"\0"})
    coded.record(talk.turns("two"))
    other = talk.branch(fork["id"])
    other.file.cwd = str(path)
    coded.git("mv", "src/lexer.py", "src/renamed.py", at=path)
    coded.commit("Theirs", {}, at=path)
    coded.record(other.turns("three"), at=path)
    world("diff", CODED, fork["id"], "--code", "--patch")
    world("diff", CODED, OTHER, "--code")
    world("bisect", CODED, "--run", "test ! -e moved.py")
    talk = coded.talk(REPLAYED).prompt("run it").tool("Bash", {"command": "cat moved.py"}, "a\nb\nd")
    coded.record(talk.answer("Done.").stop_lines())
    world("replay", REPLAYED)
    world("replay", REPLAYED, "--execute", code=6)
    sent = world("replay", REPLAYED, "--inputs", "--to", "cat", code=6)
    world("diff", REPLAYED, sent["kept"]["session_id"])
    written = {"file_path": str(coded.project / "new.py"), "content": "first of all lines\nsecond of all lines\n"}
    coded.record(coded.talk(BLAMED).prompt("write it").tool("Write", written).answer("Done."))
    coded.write({"new.py": "first of all lines\nsecond of all lines\n\n"})
    world("blame", "new.py")
    world("search", "--file", "new.py")
    coded.commit("Add a file", {})
    world("log", "--commit", "HEAD")
    world("blame", "moved.py", "HEAD")


def left(world: Printer) -> None:
    """What killed clients left, in a call and in the middle of being recorded; of one nobody knows whether it lives."""
    talk = world.sessgit.talk(LEFT).prompt("run it").tool("Bash", {"command": "make"})
    talk.lines.pop()
    hooked(world.sessgit, talk)
    hooked(world.sessgit, world.sessgit.talk(WATCHED).turns("one"))
    hooked(world.sessgit, world.sessgit.talk(SILENT, style="2.0").turns("one"))
    with locks.session_lock(StorePaths(world.sessgit.store), WATCHED) as held:
        assert held
        world("recover", "--all")


def watched(world: Printer, patch: pytest.MonkeyPatch) -> None:
    """A turn, and a tag, which says nothing of turns."""
    talk = world.sessgit.talk(WATCHED).turns("one").prompt("two").tool("Bash", {"command": "make"})
    steps = iter((
        lambda: hooked(world.sessgit, talk),
        lambda: run_git(world.sessgit.store, "tag", "seen", WATCHED),
        *[lambda: None] * 4,
    ))  # fmt: skip

    def wait() -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    patch.setattr("sessgit.cli.commands.watch._waiting", lambda: wait)
    done = world.sessgit("watch", "--all", "--json")
    assert done.code == 130
    world.printed += [Printed("watch", line) for line in done.out.splitlines(keepends=True)]


def checked(world: Printer) -> None:
    """A conversation to mend, then one of which an object is gone, and a stub that is."""
    sessgit = world.sessgit
    talk = helped(sessgit.talk(BROKEN).turns("one")).prompt("two").call_only("Bash").turns("three")
    lay_beside(sessgit.keep(talk).parent, talk)
    path = sessgit.recorded(talk)
    world("verify", "--deep")
    world("repair", BROKEN, "--dry-run")
    mended = world("repair", BROKEN)["id"]
    world("repair", mended)
    log.write(StorePaths(sessgit.store).log, sessgit.now, "something went wrong")
    (sessgit.store / "hook").unlink(missing_ok=True)
    world("doctor", code=1)
    world("doctor", "--fix")
    unpack(sessgit.store)
    oid = run_git(sessgit.store, "rev-parse", f"{BROKEN}:turns/0000/000003/transcript.jsonl").strip()
    loose(sessgit.store, oid).unlink()
    world("verify", BROKEN, code=6)
    world("repair", BROKEN, "--dry-run")
    path.unlink()
    world("repair", BROKEN)


# The tests


def test_every_command_is_run(printed: list[Printed]) -> None:
    assert {one.command for one in printed} == set(app.COMMANDS) - WITHOUT_JSON


def test_every_document_fits_its_schema(printed: list[Printed]) -> None:
    found: dict[str, list[Any]] = {}
    for one in printed:
        found.setdefault(one.command, []).append(one.value)
    found["error"] = [ERROR]
    if os.environ.get("SESSGIT_TEST_WRITE_SCHEMAS") == "1":
        for name, values in found.items():
            (FOLDER / f"{name}.schema.json").write_text(document_schemas.text(name, values))
    assert {path.name.partition(".")[0] for path in FOLDER.glob("*.schema.json")} == set(found)
    for name, values in found.items():
        schema = json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8"))
        Draft202012Validator.check_schema(schema)
        check = Draft202012Validator(schema).iter_errors
        assert [f"{name}: {wrong.json_path} {wrong.message[:200]}" for one in values for wrong in check(one)] == []
        assert document_schemas.keys(schema) == document_schemas.keys(document_schemas.schema(name, values)), name


def test_every_key_is_explained() -> None:
    """Each key has the one meaning that the vocabulary gives it, and the vocabulary has no other."""
    used = set[str]()
    for path in FOLDER.glob("*.schema.json"):
        for keys, told in document_schemas.described(json.loads(path.read_text("utf-8")), path.name.partition(".")[0]):
            assert told == document_schemas.meaning(keys, used) and (told or keys.startswith("bridge.")), keys
    assert used == set(document_schemas.VOCABULARY)


def test_an_error_is_json_too(sessgit: Shell) -> None:
    done = sessgit("log", "--json", "nothing-such")
    assert (done.code, json.loads(done.out), done.err.splitlines()[0]) == (
        4,
        ERROR,
        f"Error: {ERROR['error']['message']}",
    )
    done = sessgit("log", "--json", "--nosuch")
    assert (done.code, json.loads(done.out)["error"]) == (
        2,
        {"message": "No such option: --nosuch", "hint": "`sessgit log --help` explains it.", "exit_code": 2},
    )
    assert sessgit("log", "nothing-such").out == ""
    sessgit.recorded(sessgit.talk().turns("one"))
    done = sessgit("fork", "5e55", "--json", "--run")  # the client is missing, and the fork is made
    assert (done.code, json.loads(done.out)["schema"]) == (4, "sessgit.fork/v1")


def test_what_holds_of_all(printed: list[Printed]) -> None:
    for one in printed:
        assert one.text.isascii(), one.command
        assert one.text.endswith("}\n"), one.command
        found = json.loads(one.text, parse_constant=pytest.fail, object_pairs_hook=_unique)
        for path, value in _leaves(found):
            _check_leaf(path, value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    else:
        yield path, value


def _check_leaf(path: tuple[str, ...], value: Any) -> None:
    """A time is in UTC with milliseconds, and so not one that is still to come, as local times of this world would be.
    A cost is a number; a duration is in seconds, but for what bridge answers."""
    name = path[-1]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value), path
        assert datetime.fromisoformat(value).timestamp() <= NOW or path[-2:] == ("deleting", "first"), path
    if name.endswith("_usd"):
        assert value is None or (isinstance(value, int | float) and value >= 0), path
    if name in ("seconds", "delay"):
        assert value is None or 0 <= value < 3600, path
    assert not name.endswith("_ms") or path[0] == "output", path
