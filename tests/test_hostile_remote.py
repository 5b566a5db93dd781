"""A remote on which somebody wrote by hand: what it holds harms nothing, is left where it cannot be read, and keeps no
other conversation from coming."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clones import Clone, bare
from fuzzing import INPUTS, broken, changed, dumped, listing, runs, spoils, took
from hypothesis import given
from hypothesis import strategies as st
from plain import run_git
from shell import Shell
from test_fuzz import BUG, as_before, check
from transcripts import OTHER, SESSION, Talk

from sessgit.store import layout

Row = tuple[bytes, bytes, str]
"""Of an entry of a tree the mode, the name and the object."""
Rows = list[Row]
FEW, MANY = 300, 10_000
STEER = "\x1b[31mred\x1b]0;title\x07\x9b1m\u202egnp"
BODY = "turns/0000/000001/transcript.jsonl"
CELLS = "turns/0000/000001/cells.jsonl"
CIRCLE = [{"id": f"cell_{one}", "type": "tool", "operation": "x", "depends": [f"cell_{other}"], "lines": [1, 1]}
          for one, other in ("ab", "ba", "cc")]  # fmt: skip


@dataclass(frozen=True)
class Remote:
    """A bare repository, written to as git itself would not."""

    path: Path

    def write(self, kind: str, data: bytes) -> str:
        command = ["git", "-C", str(self.path), "hash-object", "-w", "--stdin", "--literally", "-t", kind]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode().strip()

    def rows(self, tree: str) -> Rows:
        command = ["git", "-C", str(self.path), "ls-tree", "-z", tree]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        entries = (entry.partition(b"\t") for entry in said.split(b"\0") if entry)
        return [(about.split()[0].lstrip(b"0"), name, about.split()[2].decode()) for about, _, name in entries]

    def tree(self, rows: Rows) -> str:
        return self.write("tree", b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in rows))

    def changed(self, tree: str, path: str, change: Callable[[Rows], Rows]) -> str:
        """The tree with the rows of a folder in it changed; what is no folder yet becomes one."""
        if not path:
            return self.tree(change(self.rows(tree)))
        first, _, rest = path.partition("/")
        rows = self.rows(tree)
        inside = next((oid for mode, name, oid in rows if name == first.encode() and mode == b"40000"), None)
        made = self.changed(inside or self.tree([]), rest, change)
        return self.tree([row for row in rows if row[1] != first.encode()] + [(b"40000", first.encode(), made)])

    def commit(self, tree: str, parents: list[str], message: bytes, when: str = "1772359200 +0000") -> str:
        who = f"sessgit <sessgit@localhost> {when}".encode()
        lines = [b"tree " + tree.encode(), *(b"parent " + one.encode() for one in parents)]
        return self.write("commit", b"\n".join([*lines, b"author " + who, b"committer " + who, b"", message]))

    def ref(self, name: str, oid: str) -> None:
        """Puts a ref there, whatever its name and object are."""
        packed = self.path / "packed-refs"
        old = [line for line in (packed.read_bytes() if packed.exists() else b"").splitlines() if line[:1] not in b"#^"]
        rows = {line.partition(b" ")[2]: line.partition(b" ")[0] for line in old}
        rows[name.encode("utf-8", "surrogateescape")] = oid.encode()
        (self.path / name).unlink(missing_ok=True)
        packed.write_bytes(b"".join(oid + b" " + name + b"\n" for name, oid in sorted(rows.items())))

    def tip(self, session: str) -> str:
        return run_git(self.path, "rev-parse", f"refs/heads/{session}").strip()

    def edit(self, session: str, path: str, change: Callable[[Rows], Rows]) -> None:
        """A commit on the session's head, with the rows of one folder changed."""
        tip = self.tip(session)
        tree = self.changed(f"{tip}^{{tree}}", path, change)
        message = f"edit: x\n\nSession: {session}\nEvent: edit\n".encode()
        self.ref(f"refs/heads/{session}", self.commit(tree, [tip], message))

    def put(self, session: str, path: str, data: bytes, mode: bytes = b"100644") -> None:
        """A commit with a file of this content at a path."""
        folder, _, name = path.rpartition("/")
        blob = self.write("blob", data)

        def change(rows: Rows) -> Rows:
            kept = [row for row in rows if row[1] != name.encode()]
            return sorted([*kept, (mode, name.encode(), blob)], key=lambda row: row[1])

        self.edit(session, folder, change)

    def state(self, session: str) -> Any:
        return json.loads(run_git(self.path, "show", f"refs/heads/{session}:{layout.STATE}"))


Harm = Callable[[Remote, str], None]


def named(name: bytes, folder: str = "", mode: bytes = b"100644", content: bytes = b"x") -> Harm:
    """An entry of this name and kind in a folder of the tree."""

    def harm(at: Remote, session: str) -> None:
        oid = "1" * 40 if mode == b"160000" else at.write("blob", content)
        if mode == b"40000":
            oid = at.tree([(b"100644", b"x", oid)])
        at.edit(session, folder, lambda rows: [row for row in rows if row[1] != name] + [(mode, name, oid)])

    return harm


def file(path: str, content: bytes) -> Harm:
    return lambda at, session: at.put(session, path, content)


def says(change: Callable[[Any], object]) -> Harm:
    """A state of which something is changed."""

    def harm(at: Remote, session: str) -> None:
        document = at.state(session)
        change(document)
        at.put(session, layout.STATE, json.dumps(document).encode())

    return harm


def told(message: str, when: str = "1772359200 +0000") -> Harm:
    """A commit with this message, `{}` being the session."""

    def harm(at: Remote, session: str) -> None:
        tip = at.tip(session)
        said = message.replace("{}", session).encode("utf-8", "surrogateescape")
        at.ref(f"refs/heads/{session}", at.commit(tree_of(at, tip), [tip], said, when))

    return harm


def tree_of(at: Remote, tip: str) -> str:
    return run_git(at.path, "rev-parse", f"{tip}^{{tree}}").strip()


def siblings(at: Remote, session: str) -> None:
    """A hundred side branches."""
    for number in range(100):
        at.ref(f"refs/heads/{session}.{'rm'[number % 2]}-{number:08x}", at.tip(session))


def circle(at: Remote, session: str) -> None:
    """Cells that depend on each other."""
    at.put(session, CELLS, b"".join(dumped(row) + b"\n" for row in CIRCLE))


def parents(at: Remote, session: str) -> None:
    """A commit with sixty parents."""
    tip = at.tip(session)
    others = [at.commit(tree_of(at, tip), [], b"x %d" % number) for number in range(60)]
    at.ref(f"refs/heads/{session}", at.commit(tree_of(at, tip), [tip, *others], f"x\n\nSession: {session}\n".encode()))


HARMS: dict[str, Harm] = {
    **{f"name {name!r} in {folder!r}": named(name, folder)
       for name in (b"..", b".", b".git", b"GIT~1", b".gitmodules", "\u200c.git".encode(), STEER.encode(), b"\xff\xfe",
                    b"n" * 3000, b"a\\..\\b", b"a\nb", b"-rf")
       for folder in ("", "turns/0000/000001/files/tool-results", "live/plans", "kept")},
    **{f"{kind} at {place}": named(place.rpartition("/")[2].encode(), place.rpartition("/")[0], mode, b"/etc/passwd")
       for kind, mode in (("link", b"120000"), ("submodule", b"160000"), ("folder", b"40000"), ("program", b"100755"),
                          ("nonsense", b"1"))
       for place in (layout.STATE, "format", BODY, "turns", "live/plans", "turns/0000/000001/subagents/agent-x.jsonl",
                     "turns/0000/000001/files/tool-results/x.txt", "turns/0000/000002")},
    "no file": lambda at, session: at.edit(session, "turns/0000/000001", lambda rows: []),
    "no turns": lambda at, session: at.edit(session, "turns", lambda rows: []),
    "a file twice": lambda at, session: at.edit(session, "", lambda rows: [*rows, *rows]),
    "unsorted": lambda at, session: at.edit(session, "", lambda rows: rows[::-1]),
    "deep state": file(layout.STATE, b"[" * 100_000),
    "a long number": file(layout.STATE, b'{"metadata":{"session_id":' + b"9" * 5000 + b"}}"),
    "many turns": says(lambda state: state["trajectory"].update(turns=10**18)),
    "negative": says(lambda state: state["trajectory"].update(turns=-1)),
    "steering words": says(lambda state: (state["metadata"].update(title=STEER, cwd=STEER, git_branch=STEER),
                                          state["authored"].update(name=STEER, labels=[STEER]))),
    "a place elsewhere": says(lambda state: state["metadata"].update(transcript_path="/etc/x.jsonl", cwd="/etc")),
    "another's id": says(lambda state: state["metadata"].update(agent_id="../../x")),
    "steering message": told(f"turn 3: {STEER}\n\nSession: {{}}\nTurn: 3\nPrompt: {STEER}\nEvent: {STEER}\n"),
    "half a message": told("turn 3: \udcff\udcfe\n\nSession: {}\n"),
    "no message": told(""),
    "long message": told("x" * 100_000 + "\n\nSession: {}\n"),
    "many trailers": told("x\n\n" + "Session: {}\n" * 3000),
    "huge trailers": told("x\n\nSession: {}\nTurn: " + "9" * 5000 + "\nExtent: 9" + "9" * 400 + "+9/9\nCell: 1\n"),
    "the end of time": told("edit: x\n\nSession: {}\n", "99999999999999 +9999"),
    "no time": told("edit: x\n\nSession: {}\n", "x y"),
    "lines that are none": file(BODY, b"\0\xff\n[[[[\n" + b'{"type":"user","uuid":' + b"[" * 5000 + b"\n"),
    "steering lines": file(BODY, json.dumps({"type": "user", "uuid": STEER, "message": {"content": STEER}}).encode()),
    "texts that lead out": file("turns/0000/000001/texts/..x", b"x"),
    "a pad of nonsense": file("pad/insights.jsonl", b"\0" + dumped([STEER]) + b"\n" * 100),
    "a circle of cells": circle,
    "a hundred sides": siblings,
    "sixty parents": parents,
    "a blob for a head": lambda at, session: at.ref(f"refs/heads/{session}", at.write("blob", b"x")),
    "a tree for a head": lambda at, session: at.ref(f"refs/heads/{session}", tree_of(at, at.tip(session))),
    "a tag for a head": lambda at, session: at.ref(f"refs/heads/{session}", tagged(at, at.tip(session), "commit")),
    "a blob for a side": lambda at, session: at.ref(f"refs/heads/{session}.m-00000000", at.write("blob", b"x")),
    "live and archived": lambda at, session: at.ref(f"refs/archive/{session}", at.tip(OTHER)),
    "a stone that is none": lambda at, session: at.ref(f"refs/deleted/{session}", at.write("blob", b"x")),
    "tags of all kinds": lambda at, session: [
        at.ref(f"refs/tags/{session[-3:]}-{name}", oid) for name, oid in (
            ("blob", at.write("blob", b"x")), ("tree", tree_of(at, at.tip(session))),
            ("steering", tagged(at, at.tip(session), "commit")),
            ("tag", tagged(at, tagged(at, tagged(at, at.tip(session), "commit"), "tag"), "tag")),
            ("ofblob", tagged(at, at.write("blob", b"y"), "blob")))
    ] and None,
    "refs that steer": lambda at, session: [
        at.ref(f"{space}/{name}", at.tip(session)) for space in ("refs/heads", "refs/tags", "refs/archive")
        for name in ("\x9b31m", "\u202egnp", "a..b", "x.lock", "-rf", f"{session}.r-\x1b[31m", "\udcff", "@{1}")
    ] and None,
}  # fmt: skip
BROKEN: dict[str, Harm] = {
    "a blob that is not there": lambda at, session: at.edit(
        session, "", lambda rows: [*rows, (b"100644", b"zz", "2" * 40)]
    ),
    "a tree that is not there": lambda at, session: at.edit(
        session, "", lambda rows: [*rows, (b"40000", b"zz", "3" * 40)]
    ),
    "a ref to nothing": lambda at, session: at.ref(f"refs/heads/{session}", "4" * 40),
    "a parent that is not there": lambda at, session: at.ref(
        f"refs/heads/{session}",
        at.commit(tree_of(at, at.tip(session)), ["5" * 40], f"x\n\nSession: {session}\n".encode()),
    ),
}


def tagged(at: Remote, oid: str, kind: str) -> str:
    said = f"object {oid}\ntype {kind}\ntag x\ntagger {STEER} <x@x> 1772359200 +0000\n\n{STEER}\n"
    return at.write("tag", said.encode())


def ident(number: int) -> str:
    return f"{SESSION[:-3]}{number + 100:03d}"


def made(folder: Path, count: int) -> Remote:
    """A remote with so many sessions, and a good one."""
    one = Clone(folder / "one", bare(folder / "remote"))
    one.record(Talk(OTHER).turns("good"))
    for number in range(count):
        one.record(Talk(ident(number)).turns("one", "two"))
    one.push()
    one.close()
    run_git(folder / "remote", "pack-refs", "--all")
    return Remote(folder / "remote")


def looked_at(shell: Shell, outside: Path, *sessions: str) -> None:
    """Everything can be looked at, nothing is written elsewhere, and git finds the store whole."""
    before = listing(outside)
    for words in (["ls", "--all"], ["tree", "--all"], ["search", "one"], ["stats"], ["tag"], ["status"], ["verify"],
                  *([*words.split(), one] for one in sessions for words in LOOKS)):  # fmt: skip
        check(shell, *words)
    assert listing(outside) == before
    assert run_git(shell.store, "fsck", "--strict", "--no-dangling") == ""


LOOKS = ("log", "log -p", "show --full", "cells", "deps --graph", "cells --index", "export json", "export html -o out",
         "restore --verify", "resume --print", "fork", "pad --into", "resume --brief")  # fmt: skip


@pytest.fixture
def client(sessgit: Shell) -> Shell:
    """A machine that has one conversation of its own."""
    sessgit.recorded(sessgit.talk().turns("mine"))
    return sessgit


def pulled(shell: Shell, remote: Remote) -> set[str]:
    """What there is once it was pulled; the good one is among it, and what was here before."""
    check(shell, "pull", "there", "-n")
    said = shell("pull", "there")
    assert said.code != BUG, said
    again = check(shell, "pull", "there")
    assert not spoils(said.out + said.err + again)
    known = {one["id"] for one in shell.json("ls", "--all")["sessions"]}
    assert {SESSION, OTHER} <= known, said
    return known


def test_every_harm_at_once(client: Shell, tmp_path: Path) -> None:
    """A session for each; the good one comes all the same."""
    harms = list(HARMS.items())[:: 1 if INPUTS else 11]
    remote = made(tmp_path, len(harms))
    for number, (_, harm) in enumerate(harms):
        harm(remote, ident(number))
    client.out("remote", "add", "there", str(remote.path))
    known = pulled(client, remote)
    looked_at(client, tmp_path, *sorted(known)[:: 1 if INPUTS else 9])
    check(client, "push", "there", "--all")
    check(client, "sync", "there", "--all")
    took(len(harms))


@pytest.mark.parametrize("name", BROKEN if INPUTS else list(BROKEN)[:1])
def test_what_the_remote_has_lost_keeps_nothing_else_from_coming(client: Shell, tmp_path: Path, name: str) -> None:
    remote = made(tmp_path, 3)
    BROKEN[name](remote, ident(1))
    client.out("remote", "add", "there", str(remote.path))
    assert {ident(0), ident(2)} <= pulled(client, remote)
    took()


def test_thousands_of_refs(client: Shell, tmp_path: Path) -> None:
    """Of sessions that are none, of side branches of one that is one, of tags, and of nobody."""
    remote = made(tmp_path, 1)
    tip, each = remote.tip(ident(0)), (MANY if INPUTS else FEW) // 5
    packed = remote.path / "packed-refs"
    spaces = ("heads/f00d-", f"heads/{ident(0)}.r-", "tags/t-", "heads/other/", "deleted/dead-")
    names = [f"refs/{space}{number:08x}" for number in range(each) for space in spaces]
    rows = [line for line in packed.read_text().splitlines() if not line.startswith(("#", "^"))]
    packed.write_text("".join(f"{row}\n" for row in sorted([*rows, *(f"{tip} {name}" for name in names)],
                                                           key=lambda row: row[41:])))  # fmt: skip
    client.out("remote", "add", "there", str(remote.path))
    assert ident(0) in pulled(client, remote)
    looked_at(client, tmp_path)
    took()


def test_a_session_of_ones_own_is_not_overwritten(client: Shell, tmp_path: Path) -> None:
    """Whatever the remote says of one with the same id."""
    before = run_git(client.store, "rev-parse", SESSION)
    harms = ("a hundred sides", "no turns", "steering message", "a blob for a head", "steering words")
    for harm in harms if INPUTS else harms[:1]:
        shutil.rmtree(tmp_path / "there", ignore_errors=True)
        one = Clone(tmp_path / "there" / "one", bare(tmp_path / "there" / "remote"))
        one.record(Talk(OTHER).turns("good"))
        one.record(Talk(SESSION).turns("theirs", "more"))
        one.push()
        one.close()
        run_git(one.remote, "pack-refs", "--all")
        HARMS[harm](Remote(one.remote), SESSION)
        client("remote", "rm", "there")
        client("remote", "remove", "there")
        client.out("remote", "add", "there", str(one.remote))
        pulled(client, Remote(one.remote))
        assert run_git(client.store, "rev-parse", SESSION) == before, harm
        assert "mine" in client.out("log", SESSION)
        took()


MESSAGE = b"turn 3: do it\n\nSession: {}\nTurn: 3\nPrompt: p1\nEvent: turn\nExtent: 0+120/3\nTools: Bash=2\n"
TREE = b"100644 format\0" + b"\1" * 20 + b"100644 session.json\0" + b"\2" * 20 + b"40000 turns\0" + b"\3" * 20
MOST = 10


@runs(0.5, 1, each=MOST)
@given(data=st.data())
def test_any_state_message_or_tree_on_a_remote(client: Shell, tmp_path: Path, data: st.DataObject) -> None:
    if not (tmp_path / "pristine").exists():
        made(tmp_path / "pristine", MOST)
    shutil.rmtree(tmp_path / "remote", ignore_errors=True)
    shutil.copytree(tmp_path / "pristine" / "remote", tmp_path / "remote")
    as_before(client, tmp_path / "client")
    remote = Remote(tmp_path / "remote")
    for number in range(MOST):
        session = ident(number)
        tip = remote.tip(session)
        match data.draw(st.sampled_from(["state", "message", "tree", "lines", "cells"])):
            case "state":
                remote.put(session, layout.STATE, dumped(data.draw(changed([remote.state(session)]))))
            case "message":
                said = data.draw(broken(MESSAGE.replace(b"{}", session.encode())))
                remote.ref(f"refs/heads/{session}", remote.commit(tree_of(remote, tip), [tip], said))
            case "tree":
                tree = remote.write("tree", data.draw(broken(TREE)))
                message = f"x\n\nSession: {session}\n".encode()
                remote.ref(f"refs/heads/{session}", remote.commit(tree, [tip], message))
            case "lines":
                was = run_git(remote.path, "cat-file", "blob", f"{tip}:{BODY}").encode()
                remote.put(session, BODY, data.draw(broken(was)))
            case "cells":
                rows = data.draw(changed([CIRCLE]))
                lines = [dumped(row) for row in rows] if isinstance(rows, list) else [dumped(rows)]
                remote.put(session, CELLS, b"\n".join(lines) + b"\n")
    client.out("remote", "add", "there", str(remote.path))
    known = pulled(client, remote)
    looked_at(client, tmp_path, data.draw(st.sampled_from(sorted(known))))
    took(MOST)
