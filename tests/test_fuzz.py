"""Whatever comes in, nothing crashes, nothing leaves the store, and nothing but text reaches the terminal.

`make fuzz` gives all of it together 100,000 inputs; here each test gets a few.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import foreigners
import pytest
from fuzzing import EVIL, broken, changed, dumped, lines_of, runs, spoils, talk
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home, marks
from sessgit.agents.claude.lines import Line, parse
from sessgit.errors import SessgitError
from sessgit.formats.foreign import apex, dialectic, iolog, rlm
from sessgit.model import address, globs, message, query, session
from sessgit.model.cutting import texts
from sessgit.model.message import Extent
from sessgit.model.scratchpad import pad
from sessgit.model.turn import Cell
from sessgit.ops.recording.record import record
from sessgit.ops.recording.source import Rules, Source
from sessgit.recorder import drain
from sessgit.store import journal, settings
from sessgit.store import store as stores
from sessgit.store.index import Index
from sessgit.store.layout import Beside
from sessgit.store.recorder import appending, cursor, latest
from sessgit.store.secrets import forbidden
from sessgit.store.store import Store
from sessgit.ui import when

BUG = 70
EVENT = {
    "hook_event_name": "Stop", "session_id": SESSION, "transcript_path": "/home/ada/t.jsonl", "cwd": "/home/ada",
    "last_assistant_message": "done", "source": "startup", "reason": "exit",
    "agent_transcript_path": "/home/ada/a.jsonl",
}  # fmt: skip


@pytest.fixture
def quiet(tmp_path: Path) -> Path:
    """A client's folder with a store in it."""
    (tmp_path / "claude").mkdir()
    stores.create(tmp_path / "claude" / "session-store")
    return tmp_path / "claude"


# What a hook is given


@runs(30, 25)
@given(payload=st.one_of(changed([EVENT]).map(dumped), broken(dumped(EVENT)), st.binary(max_size=200)))
def test_the_recorder_takes_any_payload_in_silence(
    quiet: Path, capsys: pytest.CaptureFixture[str], payload: bytes
) -> None:
    store = quiet / "session-store"
    waits = store / "spool"
    (waits / "1-0.json").write_bytes(payload)
    drain.run(store, quiet, {"HOME": str(quiet), "PATH": os.environ["PATH"]})
    assert list(waits.glob("*.json")) == []
    assert capsys.readouterr() == ("", "")


@runs(2, 3)
@given(payload=st.one_of(changed([EVENT]).map(dumped), broken(dumped(EVENT)), st.binary(max_size=200)))
def test_the_stub_takes_any_payload_in_silence(sessgit: Shell, payload: bytes) -> None:
    if not sessgit.store.exists():
        sessgit.out("install")
    marker = sessgit.store / "spool" / "waiting"
    marker.write_text(f"{os.getpid()}\n")
    done = subprocess.run(
        ["sh", str(sessgit.store / "hook")],
        check=False,
        input=payload,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    for path in (sessgit.store / "spool").glob("*.json"):
        path.unlink()


# Transcripts


LINES = lines_of(talk())


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """The bytes of a conversation of which some lines were changed."""
    out = [json.dumps(line).encode() for line in LINES]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(out) - 1))
        out[place] = draw(st.one_of(changed(LINES[place : place + 1]).map(dumped), broken(out[place])))
    return b"\n".join(out) + draw(st.sampled_from([b"\n", b""]))


READING = tuple(line.split() for line in (
    f"log {SESSION}", f"show {SESSION}", f"show {SESSION}@3 --full --thinking", f"cells {SESSION}", f"deps {SESSION}@3",
    f"log -p {SESSION}", f"diff {SESSION}@1 {SESSION}", f"export markdown {SESSION}", f"export html {SESSION}",
    f"export json {SESSION}", "tree --all", "ls --all", "search one", "stats --by tool", f"restore {SESSION} --verify",
    f"log --oneline --cells {SESSION}", "why a.py", f"verify {SESSION}", f"resume --print {SESSION}",
    f"cell {SESSION}@3.2",
    f"pad {SESSION}", f"replay {SESSION}", f"resume --brief {SESSION}",
))  # fmt: skip


@runs(1, 4)
@given(data=files(), commands=st.lists(st.sampled_from(READING), min_size=4, max_size=4))
def test_any_transcript_can_be_recorded_and_looked_at(sessgit: Shell, data: bytes, commands: list[list[str]]) -> None:
    shutil.rmtree(sessgit.config, ignore_errors=True)
    folder = home.project_folder(sessgit.config, str(sessgit.project))
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_bytes(data)
    for words in (["import"], *commands):
        check(sessgit, *words)
    clear(sessgit.project)


def check(sessgit: Shell, *words: str) -> str:
    """Runs a command that may fail as long as it is no bug, and says only what a terminal may see."""
    done = sessgit(*words)
    assert done.code not in (BUG, None), (words, done)
    assert not spoils(done.out + done.err), (words, done)
    return done.out


def clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@runs(17, 60)
@given(said=changed([{"cell": {"id": "cell_a", "type": "repl", "source": "x", "dependencies": ["b"],
                               "operation": "peek",
                               "metadata": {"depth": 0, "model": None, "tokens_used": 3}}},
                     {"outcome": {"json": True, "error": "x", "execution_time_ms": 1.5}},
                     {"reason": {"kind": "trace", "text": "x", "confidence": 0.5, "inputs": ["x"]}}]))  # fmt: skip
def test_marks_that_are_none(said: Any) -> None:
    use = {"type": "tool_use", "id": "t", "name": "peek", "input": {"n": 3}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": '{"a": 1}'}
    for kind, block in (("assistant", use), ("user", result), ("assistant", {"type": "text", "text": "x"})):
        raw = json.dumps(
            {"type": kind, "uuid": "u", "message": {"id": "m", "content": [block]}, "sessgit": said}
        ).encode()
        line = Line(raw, Extent(0, len(raw), 1), parse(raw))
        marks.of(line)
        marks.outcome(line)
        marks.is_stand_in(line)


# Documents of a store


STATE: dict[str, Any] = {}


@pytest.fixture
def one(sessgit: Shell) -> Shell:
    """A store with two sessions that go on."""
    sessgit.recorded(talk(str(sessgit.project)), sessgit.talk(OTHER).turns("else"))
    sessgit.out("tag", "v1", f"{SESSION}@1")
    sessgit.out("fork", SESSION, "--at", "1", "--name", "forked")
    return sessgit


@runs(0.75, 3)
@given(data=st.data())
def test_any_state_can_be_looked_at(one: Shell, data: st.DataObject) -> None:

    store = Store(one.store)
    tip = store.repo.ref(f"refs/heads/{SESSION}") or ""
    document = json.loads(store.repo.blob((store.repo.entry(store.tree(tip), "session.json") or ("", False))[0]))
    wanted = data.draw(changed([document]))
    blob = store.repo.write_blob(dumped(wanted))
    tree = store.repo.edit_tree(store.tree(tip), {"session.json": (blob, False)})
    commit = store.repo.write_commit(tree, [tip], f"edit: x\n\nSession: {SESSION}\n", 1)
    store.repo.move(f"refs/heads/{SESSION}", tip, commit)
    try:
        commands = data.draw(st.lists(st.sampled_from(READING), min_size=3, max_size=3))
        for words in (["ls", "--all"], *commands, ["fork", SESSION], ["status"]):
            check(one, *words)
    finally:
        store.repo.move(f"refs/heads/{SESSION}", commit, tip)
        clear(one.project)


def tried(read: Callable[[], Any]) -> Any:
    """What it reads, or None where that can be read by nobody, as it says."""
    try:
        return read()
    except SessgitError as error:
        assert str(error)
        return None


MESSAGE = """turn 3: do it

Session: 5e551011-0000-4000-8000-000000000001
Turn: 3
Prompt: p1
Event: turn
Extent: 0+120/3
Tools: Bash=2 Read=1
Tokens-In: 3
Lines-SHA256: abcd
"""
CELL = {"depends": ["cell_a"], "id": "cell_unp3ufoj", "lines": [2, 3], "ok": True, "operation": "m", "type": "tool"}
ENTRY = {
    "id": "e1",
    "text": "x",
    "time": "2026-03-01T10:00:00.000Z",
    "turn": 3,
    "source": "s",
    "cycle": 1,
    "session": "s",
}


@runs(5, 30)
@given(data=st.data())
def test_values_that_come_from_elsewhere(data: st.DataObject) -> None:
    word = data.draw(st.sampled_from(EVIL) | st.text(max_size=30))
    tried(lambda: session.loads(data.draw(changed([STATE or session_document()]))))
    tried(lambda: message.loads(data.draw(broken(MESSAGE.encode())).decode("utf-8", "replace")))
    for read in (address.parse, address.check_name, address.check_tag, query.parse, lambda text: when.since(text, 1e9)):
        tried(lambda read=read: read(word))  # type: ignore[misc]
    tried(lambda: globs.fits(word, "/home/ada/x.py"))
    for kind in ("insights", "claims", "cycles", "passes", word):
        found = pad.parsed(kind, dumped(data.draw(changed([ENTRY]))))
        assert found is None or not spoils(found.id)
    lines = [data.draw(broken(b'{"x":{"$text":"aaaaaaaa-x-y"}}'))]
    texts.fill(lines, {"aaaaaaaa-x-y": b"long"})
    try:
        Cell.from_json(data.draw(changed([CELL])))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return


def session_document() -> dict[str, Any]:
    STATE.update(json.loads(session.dumps(session.loads({"id": SESSION, "metadata": {"title": "x"}, "turns": 3}))))
    return STATE


NOTES: dict[str, tuple[Any, Callable[[Beside], Any]]] = {
    "state/x.json": ({"version": 1, "path": "/x", "inode": 1, "offset": 3, "proof": "x", "commit": "c", "current": "",
                      "uuids": ["u"], "pending": [[0, 3, 1]], "stuck": 0, "final": False,
                      "agents": {"a": ["u", 0, 3]}, "facts": {}, "file": 1}, lambda at: cursor.load(at, "x")),
    "state/x.append": ({"path": "/x", "offset": 3, "data": "eA==", "head": "h", "command": "merge",
                        "brought": {"u": ["graft", "a@1"]}, "files": {"/y": "z"}}, lambda at: appending.load(at, "x")),
    "latest.json": ({"version": 1, "session": "x", "turn": 1, "time": 1.5, "delay": None}, latest.load),
    "operations.jsonl": ({"time": "t", "command": "c", "summary": "s", "refs": {"refs/heads/x": [None, "a" * 40]},
                          "files": {"/x": "y"}, "undoes": "", "id": "12345678", "completes": "",
                          "appended": {"/x": [0, 3, "h"]}, "cut": {}}, journal.read),
    "state/forbidden": ({"version": 1, "values": [{"id": "x", "time": "t", "forms": [
                         {"length": 9, "tail": "abc", "hash": "00ff", "base64": False}]}]}, forbidden.values),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTES)
@runs(3.35, 25)
@given(data=st.data())
def test_notes_beside_the_repository(quiet: Path, name: str, data: st.DataObject) -> None:
    beside = Beside(quiet / "session-store")
    document, read = NOTES[name]
    path = beside.store / name
    path.write_bytes(data.draw(st.one_of(changed([document]).map(dumped), broken(dumped(document)))))
    tried(lambda: read(beside))
    path.unlink()


CONFIG = b"""[record]
exclude = ["~/private"]
redact = true
granularity = "turn"
[archive]
after = "90d"
[prices."claude-x"]
input = 3.0
[project.map]
"/home/ada" = "/Users/ada"
"""


@runs(8, 20)
@given(data=st.one_of(broken(CONFIG), st.binary(max_size=60)))
def test_settings(quiet: Path, data: bytes) -> None:
    beside = Beside(quiet / "session-store")
    beside.config.write_bytes(data)
    tried(lambda: settings.load(beside))
    tried(lambda: settings.careful(beside))


@pytest.fixture
def recorded(quiet: Path) -> tuple[Path, bytes]:
    """A recorded transcript, and its cursor."""
    path = Talk().turns("one", "two").save(quiet / "projects" / "-p")
    taken(quiet, path)
    return path, Beside(quiet / "session-store").cursor(SESSION).read_bytes()


def taken(folder: Path, path: Path) -> str:
    """Records the transcript; the session's tip."""
    store = Store(folder / "session-store")
    index = Index(store.path, lambda: store)
    tried(lambda: record(store, index, Source(path, path.stem, folder), Rules("turn", False)))
    index.close()
    return store.repo.ref(f"refs/heads/{SESSION}") or ""


@runs(1.5, 8)
@given(data=st.data())
def test_a_cursor_that_lies_changes_nothing(quiet: Path, recorded: tuple[Path, bytes], data: st.DataObject) -> None:
    path, cursor_bytes = recorded
    honest = json.loads(cursor_bytes)
    place = Beside(quiet / "session-store").cursor(SESSION)
    place.write_bytes(cursor_bytes)
    tip = taken(quiet, path)
    untold = {key: value for key, value in honest.items() if key not in ("path", "inode", "proof", "commit")}
    said = data.draw(changed([untold]))
    place.write_bytes(dumped({**honest, **said} if isinstance(said, dict) else said))
    assert taken(quiet, path) == tip


# Files of other systems


SYSTEMS: dict[str, Any] = {"rlm": rlm, "apex": apex, "dialectic": dialectic, "io-log": iolog}


@pytest.fixture
def theirs(tmp_path: Path) -> dict[str, Path]:
    """A folder of each system."""
    from sessgit.model.programs.foreign import agent_id

    made = {name: tmp_path / name for name in SYSTEMS}
    foreigners.rlm(made["rlm"])
    foreigners.put(made["rlm"] / "rlm-sessions" / foreigners.RLM / "cells" / "c.json", foreigners.cell("cell_a"))
    foreigners.log(made["io-log"], "A-1", foreigners.went("in", "x", 1), foreigners.went("out", "y", 2))
    assert agent_id
    return made


@runs(10, 20)
@given(data=st.data())
def test_folders_of_other_systems(theirs: dict[str, Path], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["rlm", "io-log"]))
    place = data.draw(st.sampled_from([path for path in sorted(theirs[name].rglob("*")) if path.is_file()]))
    was = place.read_bytes()
    try:
        whole = json.loads(was)
    except ValueError:
        whole = None
    choices = [broken(was)] if whole is None else [broken(was), changed([whole]).map(dumped)]
    place.write_bytes(data.draw(st.one_of(choices)))
    tried(lambda: SYSTEMS[name].read(theirs[name]))
    place.write_bytes(was)


# The command line


OPTIONS = {
    "ls": "--all --project --label --state --json --touched --since --limit",
    "log": "--reverse --oneline --graph --rewound --cells -p --json --at-op --limit",
    "show": "--thinking --full --raw --json", "search": "--project --session --label --in --tool --json --since",
    "diff": "--json --code -p", "cells": "--type --operation --turn --failed --index --json", "cell": "--json",
    "deps": "--up --down --graph --all --json", "why": "--full --json", "tree": "--all -n --json",
    "stats": "--by --project --json", "fork": "--at --name --no-restore --project", "rename": "--session --clear",
    "tag": "-d --force --list", "edit": "--name --description --label --stage --confidence", "undo": "--dry-run",
    "ops": "--json", "archive": "--older-than --label", "unarchive": "", "delete": "", "merge": "--into --turns --mode",
    "pick": "--into --dry-run", "export": "-o --json", "restore": "-o --verify --project", "resume": "--print --brief",
    "remote": "--json", "push": "--label --project --all -n", "pull": "-n", "sync": "-n", "verify": "--deep --json",
    "config": "--unset --json", "pad": "--into --turn --source --json", "purge": "--regex --find -n --secret",
    "import": "--from --id -n", "off": "", "on": "", "status": "--json", "id": "", "recover": "--all",
    "repair": "--dry-run",
    "doctor": "--json", "bisect": "--good --bad --cell-fails", "replay": "--cell --chain", "gc": "-n", "nonsense": "",
}  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(EVIL),
    st.sampled_from([SESSION, f"{SESSION}@1", f"{SESSION}@3.2", OTHER, "forked", "v1", "@2", "add", "html", "markdown",
                     "json", "claude", "insight", "one", "1", "2..3", "record.redact", "true", "rm", "list", "7d",
                     "yesterday"]),
    st.text(max_size=12).filter(lambda text: "\0" not in text),
)  # fmt: skip


@runs(8, 40)
@given(data=st.data())
def test_any_words_on_the_command_line(one: Shell, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPTIONS)))
    option = st.sampled_from(OPTIONS[name].split() or ["--json"])
    words = data.draw(st.lists(st.one_of(WORDS, option), max_size=5))
    if name == "export" and not any(word.startswith("-o") for word in words):
        words += ["-o", str(one.home / "out")]
    said = check(one, name, *(word for word in words if "\0" not in word))
    if "--json" in words and said.startswith("{"):
        json.loads(said)
    clear(one.project)
