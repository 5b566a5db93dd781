"""What lies beside a transcript and is long: lines of subagents that are too long to be read as JSON, many lines, and
files of other kinds. All of it is recorded, by the rules by which a transcript's own lines are, and comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from homes import claude_homes
from hypothesis import given
from hypothesis import strategies as st
from merging import THEIRS
from plain import Keep, run_git
from purging import VALUE
from shell import Shell
from sidecar_files import helped, lay_beside, side_files, wipe
from strategies import SECRET
from transcripts import SESSION, Talk, subagent

from sessgit.agents.claude import home
from sessgit.agents.claude import sidecars as beside
from sessgit.agents.line import complete_lines, parse
from sessgit.agents.values import SUBAGENT, SideFile
from sessgit.branch import restore, sidecars
from sessgit.model import json_strings
from sessgit.model.conversation.message import Extent
from sessgit.model.line_list import LineFile
from sessgit.store import layout, objects, recorder_state
from sessgit.store.store import Store

SHORT = b'{"type":"user","message":{"content":"%s"}}'

PEAKS = """
import sys
from pathlib import Path
from sessgit.branch import restore
from sessgit.store.context import Homes
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024

path, folder = Path(sys.argv[1]), Path(sys.argv[2])
homes = Homes({"claude": path.parents[2]})
stores.create_store(folder / "store")
store = Store(folder / "store", fsync=True)
index = Index(store.path, lambda: store)
print(peak())
assert record(Context(index), TranscriptSource(path, path.stem, path.parents[2])).turns == (1,)
print(peak())
assert [file.outcome for file in restore.restore_session(store, path.stem, homes).files] == ["already"]
print(peak())
next((path.parent / path.stem / "subagents").iterdir()).unlink()
assert [file.outcome for file in restore.restore_session(store, path.stem, homes).files] == ["written"]
print(peak())
"""


@pytest.fixture(scope="module")
def long() -> bytes:
    """A line that is too long to be read."""
    line = SHORT % (b"words and more words " * (json_strings.LONGEST_LINE // 20))
    assert len(line) > json_strings.LONGEST_LINE
    return line


def agents(store: Store, session: str = SESSION) -> dict[int, list[bytes]]:
    """By turn the lines of the piece of a subagent's file."""
    tip, found = store.branches(session)[session], dict[int, list[bytes]]()
    for number in range(1, store.state(tip).turns + 1):
        entry = store.folder(tip, number).get(layout.SUBAGENTS)
        for name, (oid, _) in store.repo.tree(entry[0]).items() if entry else ():
            if name.endswith(".jsonl"):
                found[number] = store.repo.lines(oid)[:-1]
    return found


def add(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


@pytest.mark.parametrize("lose_cursor", [False, True])
def test_a_long_line_of_a_subagent_and_what_follows_it(
    keep: Keep, store: Store, claude: Path, long: bytes, lose_cursor: bool
) -> None:
    talk = Talk().prompt("one").tool("Task", {}, "started")
    path = subagent(claude, talk, "abc", "a")
    first = path.read_bytes()[:-1]
    keep(talk.answer("One."))
    add(path, long, SHORT % b"b")
    keep(talk.prompt("two").answer("Two."))
    add(path, SHORT % b"c")
    if lose_cursor:
        recorder_state.delete_cursor(store.paths, SESSION)
    keep(talk.prompt("three").answer("Three."), final=True)
    found = agents(store)
    assert sorted(found) == [1, 2, 3]
    assert (found[1], found[2] == [long, SHORT % b"b"], found[3]) == ([first], True, [SHORT % b"c"])
    whole = path.read_bytes()
    path.unlink()
    restored = restore.restore_session(store, SESSION, claude_homes(claude.parents[1]))
    assert [(file.path, file.outcome) for file in restored.files] == [(path, "written")]
    assert path.read_bytes() == whole


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process had in use")
def test_there_is_one_copy_of_a_long_line(claude: Path, tmp_path: Path, long: bytes) -> None:
    """As there is of a transcript's own: recorded, compared with the file that is there, and written back."""
    talk = Talk().prompt("one").tool("Task", {}, "started").answer("One.")
    add(subagent(claude, talk, "abc", "a"), long, SHORT % b"b")
    child = [sys.executable, "-c", PEAKS, str(talk.save(claude)), str(tmp_path)]
    told = subprocess.run(child, check=True, capture_output=True, text=True).stdout.split()
    first, *later = map(int, told)
    copies = [(peak - first) / len(long) for peak in later]
    assert len(copies) == 3 and max(copies) < 1.9, copies


def test_a_file_that_begins_with_a_long_line(sessgit: Shell, long: bytes) -> None:
    """What it belongs to, its next line says; an import brings it in, and every command can do with it."""
    talk = sessgit.talk().turns("zero").prompt("one").tool("Task", {}, "started").answer("One.").stop_lines()
    folder = sessgit.keep(talk).parent
    path = subagent(folder, talk, "abc", "a", "b")
    told = path.read_bytes()
    path.unlink()
    path.parent.rmdir()
    flat = folder / path.name  # as up to 2.1.1, where the file lies among those of other sessions
    add(flat, long)
    with flat.open("ab") as file:
        file.write(told.replace(b'"isSidechain"', b'"version":"2.0.46","isSidechain"'))
    whole = flat.read_bytes()
    assert sessgit("import").code == 0
    shown = sessgit.json("show", f"{SESSION}@2")["turn"]
    assert [agent["lines"] for agent in shown["subagents"]] == [3]
    assert "no damage" in sessgit.out("verify", "--deep")
    flat.unlink()
    assert "Also written: a subagent." in sessgit.out("restore", "5e55")
    assert flat.read_bytes() == whole
    assert "Also written: a subagent" in sessgit.out("restore", "5e55")  # it already exists


@pytest.fixture
def shorter(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A line that is too long, where others are, too, than they are."""
    monkeypatch.setattr(json_strings, "LONGEST_LINE", 1500)
    monkeypatch.setattr("sessgit.model.line_list._LARGE_SIZE", 1000)
    monkeypatch.setattr(objects, "LARGE_SIZE", 1000)
    return SHORT % (b"words and more words " * 100)


def test_long_lines_are_redacted_as_a_transcripts_own(sessgit: Shell, shorter: bytes) -> None:
    """A secret and a purged value go out of them, whether they are JSON or not, and stay in the client's own file; to
    look through the real ones would take a minute."""
    sessgit.recorded(sessgit.talk("5e551011-0000-4000-8000-00000000000f").turns(f"say {VALUE}"))
    assert sessgit("purge", "--yes", VALUE).code == 0
    said = shorter[:-3] + f"{SECRET} and {VALUE}".encode() + shorter[-3:]
    stored = said.replace(SECRET.encode(), b"[redacted:github-token]").replace(VALUE.encode(), b"[redacted:purged]")
    talk = sessgit.talk().prompt("one").tool("Task", {}, "started").raw(said).raw(said[:-3]).answer("One.").stop_lines()
    folder = sessgit.keep(talk).parent
    path = subagent(folder, talk, "abc", "a", "b")
    add(path, said, said[:-3])
    whole = path.read_bytes()
    assert sessgit("import").code == 0
    store = Store(sessgit.store)
    own = store.lines(store.branches(SESSION)[SESSION], 1).body
    assert [line for line in own if len(line) > json_strings.LONGEST_LINE] == [stored, stored[:-3]]
    assert agents(store)[1][2:] == [stored, stored[:-3]]
    assert "Also written: a subagent (4 secrets" in sessgit.out("restore", SESSION)
    assert path.read_bytes() == whole
    made = sessgit.json("fork", SESSION, "--at", "1")
    theirs = folder / made["id"] / "subagents" / path.name
    assert theirs.read_bytes() == whole.replace(SESSION.encode(), made["id"].encode())
    assert "no damage" in sessgit.out("verify", "--deep")


@pytest.mark.parametrize("has_own", [False, True])
def test_forks_of_a_session_with_long_lines_beside_it(sessgit: Shell, shorter: bytes, has_own: bool) -> None:
    """The client's fork, with files of its own or without, and ours, in which a subagent goes on."""
    talk = sessgit.talk().turns("zero").prompt("one").tool("Task", {}, "started").answer("One.").stop_lines()
    path = subagent(sessgit.keep(talk).parent, talk, "abc", "a", "b")
    add(path, shorter)
    sessgit.recorded(talk)
    add(path, shorter)
    sessgit.recorded(talk.turns("two"))
    copy = talk.fork_session()
    if has_own:
        for number, name in enumerate(("abc", "def")):
            own = subagent(path.parents[2], copy, name, "a")
            add(own, *[shorter] * (number + 1), SHORT % b"more")
    sessgit.recorded(copy.turns("in the copy"))
    made = sessgit.json("fork", SESSION, "--at", "3")
    ours = path.parents[2] / made["id"] / "subagents" / path.name
    assert ours.read_bytes() == path.read_bytes().replace(SESSION.encode(), made["id"].encode())
    add(ours, shorter, SHORT % b"in ours")
    file = ours.parents[2] / f"{made['id']}.jsonl"
    more = Talk(made["id"], cwd=str(sessgit.project))
    more.leaf = json.loads(file.read_bytes().splitlines()[-1])["leafUuid"]
    add(file, *more.prompt("in ours").answer("Yes.").lines)
    sessgit.out("import")
    before = side_files(sessgit.config)
    assert len(before) == (4 if has_own else 2)
    assert agents(Store(sessgit.store), made["id"])[4] == [shorter, SHORT % b"in ours"]
    assert "no damage" in sessgit.out("verify", "--deep")
    wipe(sessgit.config)
    assert sessgit("restore", "--all-lost").code == 0
    assert side_files(sessgit.config) == before


def test_many_lines_that_are_long_together(keep: Keep, store: Store, claude: Path) -> None:
    talk = Talk().prompt("one").tool("Task", {}, "started")
    path = subagent(claude, talk, "abc", "a")
    lines = [SHORT % (b"%d " % number * 350_000) for number in range(10, 80)]
    add(path, *lines)
    assert path.stat().st_size > json_strings.LONGEST_LINE
    keep(talk.answer("One."), final=True)
    assert agents(store)[1][1:] == lines


def test_what_a_subagent_wrote_after_the_last_turn_is_recorded_at_the_end(
    keep: Keep, store: Store, claude: Path
) -> None:
    """No turn comes for it any more: the last one gets it, once."""
    talk = Talk().turns("one").prompt("two").tool("Task", {}, "started")
    path = subagent(claude, talk, "abc", "a")
    before = path.read_bytes()
    keep(talk.answer("Two.").stop_lines(), final=True)
    add(path, SHORT % b"b")
    notes = path.with_name("agent-abc.meta.json")
    notes.write_text('{"agentType":"x"}')
    other = subagent(claude, talk, "def", "z")
    assert keep(talk).turns == ()  # somebody is at work: the next turn may have it
    assert keep(talk, final=True).turns == (2,)
    head = store.branches(SESSION)[SESSION]
    assert store.state(head).state == "ended"
    files = store.repo.files(store.folder(head, 2)[layout.SUBAGENTS][0])
    assert {name: store.repo.blob(oid) for name, (oid, _) in files.items()} == {
        "agent-abc.jsonl": before + SHORT % b"b" + b"\n",
        "agent-abc.meta.json": b'{"agentType":"x"}',
        "agent-def.jsonl": other.read_bytes(),
    }
    with path.open("ab") as file:
        file.write(b'{"torn":')  # no line yet
    for lose_cursor in (False, True):
        if lose_cursor:
            recorder_state.delete_cursor(store.paths, SESSION)
        assert (keep(talk, final=True).turns, store.branches(SESSION)[SESSION]) == ((), head)
    verified = restore.verify_file(store, SESSION, claude_homes(claude.parents[1]))
    assert verified.same and verified.restored.exact


def test_an_import_takes_what_a_subagent_wrote_after_its_turn_was_closed(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("one").tool("Task", {}, "started").answer("One.").stop_lines()
    path = subagent(sessgit.keep(talk).parent, talk, "abc", "a")
    sessgit.recorded(talk.turns("two"))
    add(path, SHORT % b"b")
    assert sessgit.out("import") == "1 conversation, 1 turn imported\n"
    assert sessgit.out("import") == "0 conversations, 0 turns imported; 1 was already imported\n"
    found = agents(Store(sessgit.store))
    assert (sorted(found), found[2]) == ([1, 2], [SHORT % b"b"])
    assert "no damage" in sessgit.out("verify", "--deep")
    whole = path.read_bytes()
    wipe(sessgit.config)
    sessgit.out("restore", "5e55")
    assert path.read_bytes() == whole


@pytest.mark.parametrize("command", ["pick", "merge"])
def test_a_turn_that_was_brought_stays_one_when_a_subagent_goes_on(sessgit: Shell, command: str) -> None:
    ours = sessgit.talk().turns("one")
    theirs = ours.fork_session(THEIRS)
    theirs.prompt("two").tool("Task", {}, "started").answer("Two.").stop_lines()
    subagent(sessgit.keep(theirs).parent, theirs, "abc", "a")
    sessgit.recorded(ours.turns("ours"), theirs)
    how = ["--mode", "graft"] if command == "merge" else []
    assert sessgit(command, f"{THEIRS}@2" if command == "pick" else THEIRS, "--into", SESSION, *how).code == 0
    path = home.project_folder(sessgit.config, str(sessgit.project)) / SESSION / "subagents" / "agent-abc.jsonl"
    add(path, SHORT % b"b")
    assert sessgit.out("import").startswith("1 conversation, 1 turn imported")
    made = "--format=%(trailers:key=Event,valueonly)%(trailers:key=Origin,valueonly)"
    told = run_git(sessgit.store, "log", "--first-parent", made, SESSION, "--").split()
    assert told[:3] == ["end", "graft", f"{THEIRS}@2"] and told.count("graft") == 2
    assert "no damage" in sessgit.out("verify", "--deep")
    whole = path.read_bytes()
    wipe(sessgit.config)
    assert sessgit("restore", SESSION).code == 0
    assert path.read_bytes() == whole


def test_other_files_beside_it_are_recorded_whole(sessgit: Shell) -> None:
    """However long they are: here a tool result of more than the longest line that is read, and a plan."""
    talk = helped(sessgit.talk().turns("one"))
    folder = sessgit.keep(talk).parent
    files = lay_beside(folder, talk)
    result = folder / SESSION / "tool-results" / "big.txt"
    result.write_bytes(b"words and more words\n" * (json_strings.LONGEST_LINE // 20))
    assert result.stat().st_size > json_strings.LONGEST_LINE
    assert sessgit("import", "--from", "claude", str(sessgit.config)).code == 0
    files = side_files(sessgit.config)
    assert "no damage" in sessgit.out("verify", "--deep")
    wipe(sessgit.config)
    sessgit.out("restore", "5e55")
    assert side_files(sessgit.config) == files


@given(
    st.lists(st.binary(max_size=6) | st.sampled_from([b"{}", b'{"a":[1]}']), max_size=5), st.booleans(),
    st.integers(1, 9),
)  # fmt: skip
def test_lines_out_of_a_file_beside_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], unended: bool, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("read") / "agent-a.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n" * (not unended))
    ends = [0, *(at + 1 for at, byte in enumerate(path.read_bytes()) if byte == 0x0A)]
    *whole, rest = path.read_bytes().split(b"\n")
    places = [Extent(start, end - start) for start, end in pairwise(ends)]
    if parse(rest) is not None:
        whole.append(rest)
        places.append(Extent(ends[-1], len(rest)))
        ends.append(path.stat().st_size + 1)  # behind the newline that is to come
    assert list(complete_lines(path, chunk=chunk)) == list(zip(whole, places, strict=True))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(beside, "_CHUNK", chunk)
        for first, start in enumerate(ends):
            for more in range(len(ends) + 2):
                assert beside._behind(path, start, more) == ends[min(first + more, len(ends) - 1)]
    assert list(complete_lines(path.with_name("none"))) == []


@given(st.lists(st.lists(st.sampled_from([b"", b"a", b"bcd"]), max_size=3), min_size=1, max_size=4), st.booleans())
def test_pieces_are_one_file(pieces: list[list[bytes]], unended: bool) -> None:
    """Also where one of them is not joined, and where one ends without a newline, which came with the next one."""
    files = [b"".join(line + b"\n" for line in lines) for lines in pieces]
    files[0] += b"{}" * unended
    for kinds in pairwise([*files, *files]):
        parts = [SideFile(SUBAGENT, "agent-a.jsonl", kinds[0])]
        parts += [SideFile(SUBAGENT, "agent-a.jsonl", LineFile(kinds[1].split(b"\n"), unended=True))]
        joined = sidecars._join_pieces([(part, False) for part in parts])
        came = b"\n" if kinds[0].endswith(b"}") and kinds[1] else b""
        assert bytes(joined.data) == kinds[0] + came + kinds[1]


def test_a_file_that_is_longer_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "agent-a.jsonl"
    assert sidecars.put_file(path, LineFile([b"a", b"b"])) == "written"
    assert [sidecars.put_file(path, data) for data in (b"a\nb\n", b"a\n", LineFile([b"a", b"b", b""]))] == [
        "already", "left", "left",
    ]  # fmt: skip
    assert path.read_bytes() == b"a\nb\n"
