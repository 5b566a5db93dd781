"""A store is its owner's alone: modes under any umask, links that lead out of it, and a store of someone else's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents.claude import home
from sessgit.errors import SessgitError, StoreError
from sessgit.store import private
from sessgit.store import store as stores
from sessgit.store.layout import Beside
from sessgit.store.store import Store

NOBODY = 65534
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a store away")


def too_open(top: Path) -> list[str]:
    """What below a folder anybody but its owner may read, write or enter."""
    paths = [top, *(Path(folder, name) for folder, names, files in os.walk(top) for name in (*names, *files))]
    return [f"{stat.filemode(path.lstat().st_mode)} {path}" for path in paths if path.lstat().st_mode & 0o077]


# Modes


@pytest.mark.parametrize("mask", [0, 0o022, 0o077], ids=oct)
def test_nobody_else_reads_what_any_command_makes(sessgit: Shell, tmp_path: Path, mask: int) -> None:
    run_git(tmp_path, "init", "-q", "--bare", "remote.git")
    mine = [sessgit.keep(sessgit.talk().turns("one", "two", "three")), sessgit.keep(sessgit.talk(OTHER).turns("else"))]
    for path in (*mine, *mine[0].parents):
        path.chmod(path.stat().st_mode & 0o700)
        if path == sessgit.config:
            break
    os.umask(mask)
    secret = "a value that nobody may keep"
    for words in (
        "install", "import", f"fork {SESSION} --at 2 --name forked", f"merge {SESSION} --into forked", "undo",
        f"edit {SESSION} --description d", f"rename --session {SESSION} named", f"tag v1 {SESSION}@1",
        "off", "on", "config archive.after 900d", "remote add there ../../remote.git", "push there --all",
        f"archive {OTHER}", f"unarchive {OTHER}", "sync there --all", "delete forked", "gc", "search one", "ls --all",
        "verify", "recover",
    ):  # fmt: skip
        done = sessgit(*(str(tmp_path / "remote.git") if "remote.git" in word else word for word in words.split()))
        assert done.code in (0, 2), (words, done)
    mine[0].unlink()
    sessgit.out("restore", SESSION)
    sessgit("purge", secret, "--yes")
    event = {"hook_event_name": "Stop", "session_id": OTHER, "transcript_path": str(mine[1]), "cwd": "/"}
    recorded(sessgit, json.dumps(event).encode(), mask)
    assert too_open(sessgit.config) == []
    assert os.umask(0o022) == mask


def recorded(sessgit: Shell, payload: bytes, mask: int) -> None:
    """Gives the stub an event and runs the recorder, both under the umask."""
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    stub = ["sh", str(sessgit.store / "hook")]
    marker = Beside(sessgit.store).spool / "waiting"
    marker.write_text(f"{os.getpid()}\n")  # so that the stub starts none that is still at work when this one is done
    done = subprocess.run(stub, input=payload, env=env, umask=mask, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    marker.unlink()
    recorder = [sys.executable, "-P", "-m", "sessgit.recorder", str(sessgit.store)]
    subprocess.run(recorder, env=env, umask=mask, check=True, cwd="/")


def test_the_users_own_exports_have_the_users_own_modes(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    os.umask(0o027)
    sessgit.out("export", "markdown", SESSION, "-o", "x.md")
    assert stat.S_IMODE(Path("x.md").stat().st_mode) == 0o640


def test_threads_leave_the_umask_as_it_was() -> None:
    os.umask(0o002)

    def narrow() -> None:
        for _ in range(200):
            with private.files():
                pass

    threads = [threading.Thread(target=narrow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert os.umask(0o022) == 0o002


def test_every_folder_on_the_way_is_private(tmp_path: Path) -> None:
    os.umask(0)
    private.folder(tmp_path / "a" / "b" / "c")
    assert too_open(tmp_path / "a") == []


# Links


@pytest.mark.parametrize(
    "part", ["objects", "objects/pack", "refs", "refs/heads", "state", "state/locks", "spool", "key"]
)
def test_a_part_of_a_store_that_is_a_link(sessgit: Shell, tmp_path: Path, part: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    outside = tmp_path / "outside"
    (sessgit.store / part).rename(outside)
    (sessgit.store / part).symlink_to(outside)
    before = listing(outside)
    for command in (
        ["ls"],
        ["log", SESSION],
        ["import"],
        ["fork", SESSION],
        ["install"],
        ["config", "record.redact", "true"],
    ):
        done = sessgit(*command)
        assert (done.code, done.out) == (7, ""), command
        assert f"{part} in the store at" in done.err
    with pytest.raises(StoreError):
        Store(sessgit.store)
    subprocess.run([sys.executable, "-m", "sessgit.recorder", str(sessgit.store)], check=True)
    assert listing(outside) == before


def listing(path: Path) -> object:
    return path.read_bytes() if path.is_file() else sorted((p.name, p.lstat().st_mtime_ns) for p in path.rglob("*"))


@pytest.mark.parametrize("name", ["index.sqlite3", "text.sqlite3"])
def test_an_index_that_is_a_link_is_made_anew(sessgit: Shell, tmp_path: Path, name: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    (sessgit.store / name).unlink(missing_ok=True)
    (sessgit.store / name).symlink_to(outside)
    assert "one" in sessgit.out("search", "one")
    assert outside.read_bytes() == b""
    assert not (sessgit.store / name).is_symlink()


@pytest.mark.parametrize("name", [f"{SESSION}.json", "latest.json"])
def test_a_note_that_is_a_link_is_replaced(sessgit: Shell, tmp_path: Path, name: str) -> None:
    talk = sessgit.talk().turns("one")
    sessgit.recorded(talk)
    place = (sessgit.store if name == "latest.json" else Beside(sessgit.store).state) / name
    (tmp_path / "outside").write_text("mine")
    place.unlink(missing_ok=True)
    place.symlink_to(tmp_path / "outside")
    path = sessgit.keep(talk.turns("two"))
    event = {"hook_event_name": "SessionEnd", "session_id": SESSION, "transcript_path": str(path), "cwd": "/"}
    sessgit.out("install")
    recorded(sessgit, json.dumps(event).encode(), 0o022)
    assert "two" in sessgit.out("log", SESSION)
    assert (tmp_path / "outside").read_text() == "mine"
    assert not place.is_symlink()


@pytest.mark.parametrize("name", ["log", "operations.jsonl"])
def test_nothing_is_appended_through_a_link(sessgit: Shell, tmp_path: Path, name: str) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    (tmp_path / "outside").write_text("mine")
    (sessgit.store / name).unlink(missing_ok=True)
    (sessgit.store / name).symlink_to(tmp_path / "outside")
    sessgit("tag", "v1", f"{SESSION}@1")
    (Beside(sessgit.store).spool / "1-0.json").write_text("no event")
    subprocess.run([sys.executable, "-m", "sessgit.recorder", str(sessgit.store)], check=True)
    assert (tmp_path / "outside").read_text() == "mine"


def test_a_file_put_in_place_goes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    (tmp_path / f".x.{os.getpid()}-{threading.get_ident()}.tmp").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError):
        stores.write_private(tmp_path / "x", b"ours")
    assert (tmp_path / "outside").read_text() == "mine"


@pytest.mark.parametrize("where", ["", "tool-results", "subagents", "tasks"])
def test_nothing_is_recorded_through_a_link(keep: Keep, claude: Path, tmp_path: Path, git: Git, where: str) -> None:
    outside = tmp_path / "outside"
    for name in ("tool-results/found.txt", "found.txt", "1.json", "agent-abc.jsonl"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text('{"type":"user","promptId":"p1","found":"elsewhere"}\n')
    link = claude.parents[1] / "tasks" / SESSION if where == "tasks" else claude / SESSION / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    keep(Talk().prompt("see found.txt and abc").answer("ok"), live=True, final=True)
    assert "elsewhere" not in "".join(
        git("show", f"{SESSION}:{n}") for n in git("ls-tree", "-r", "--name-only", SESSION).split()
    )


@pytest.mark.parametrize("command", [("restore", SESSION), ("fork", SESSION)])
def test_nothing_is_written_through_a_link(sessgit: Shell, tmp_path: Path, command: tuple[str, ...]) -> None:
    folder = sessgit.recorded(sessgit.talk().turns("one")).parent
    shutil.rmtree(folder)
    (tmp_path / "outside").mkdir()
    folder.symlink_to(tmp_path / "outside")
    done = sessgit(*command)
    assert done.code == 1
    assert "is a link, and nothing is written through it" in done.err.replace("\n  ", " ")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "link", "found"),
    [
        ("projects/-p/x.jsonl", "projects/-p", True), ("projects/-p/s/tool-results/x", "projects/-p/s", True),
        ("tasks/s/1.json", "tasks/s", True), ("projects/-p/x.jsonl", "projects", False),
        ("plans/x.md", "plans", False), ("work/projects/mine/x.jsonl", "work/projects/mine", False),
    ],
)  # fmt: skip
def test_which_links_are_in_the_way(tmp_path: Path, path: str, link: str, found: bool) -> None:
    place, there = tmp_path / path, tmp_path / link
    there.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "outside").mkdir()
    there.symlink_to(tmp_path / "outside")
    assert home.link_above(place) == (there if found else None)
    if found:
        with pytest.raises(SessgitError, match="is a link"):
            home.make_folder(place)


# Owners


@ROOT
def test_a_store_of_someone_else_is_refused(sessgit: Shell, tmp_path: Path) -> None:
    path = sessgit.recorded(sessgit.talk().turns("one"))
    given_away(sessgit.store)
    before = listing(sessgit.store)
    for command in (
        ["ls"],
        ["log", SESSION],
        ["import"],
        ["install"],
        ["status"],
        ["gc"],
        ["off"],
        ["verify"],
        ["config"],
    ):
        done = sessgit(*command)
        assert (done.code, done.out) == (7, ""), command
        assert "belongs to someone else" in done.err
        assert "safe.directory" in done.err
    event = {"hook_event_name": "Stop", "session_id": SESSION, "transcript_path": str(path), "cwd": "/"}
    (sessgit.store / "spool" / "1-0.json").write_text(json.dumps(event))
    before = listing(sessgit.store)
    command = [sys.executable, "-m", "sessgit.recorder", str(sessgit.store)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert listing(sessgit.store) == before


@ROOT
def test_root_works_for_who_called_sudo(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    given_away(sessgit.store)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert "one" in sessgit.out("log", SESSION)
    monkeypatch.setenv("SUDO_UID", "12345")
    assert sessgit("log", SESSION).code == 7


@ROOT
def test_who_is_trusted_by_the_users_settings(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    given_away(sessgit.store)
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    (sessgit.home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {sessgit.store}\n")
    command = [sys.executable, "-m", "sessgit", "log", SESSION]
    assert b"one" in subprocess.run(command, env=env, capture_output=True, check=True).stdout


def given_away(store: Path) -> None:
    for path in (store, *store.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
