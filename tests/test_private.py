"""A store is its owner's alone: modes under any umask, links that lead out of it, and a store of someone else's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import foreigners
import pytest
from plain import Git, Keep, run_git
from shell import Shell
from transcripts import OTHER, SESSION, Talk

from sessgit.agents import agent_files
from sessgit.agents.claude import home
from sessgit.cli.commands import watch
from sessgit.errors import SessgitError, StoreError
from sessgit.store import private_files
from sessgit.store import store as stores
from sessgit.store.layout import StorePaths
from sessgit.store.store import Store
from sessgit.store.stub import write_stub

NOBODY = 65534
BROKEN = f"{SESSION[:-1]}9"
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a store away")


def too_open(top: Path) -> list[str]:
    """What below a folder anybody but its owner may read, write or enter."""
    return [f"{stat.filemode(mode)} {path}" for path, mode in [(top, top.stat().st_mode), *modes(top)] if mode & 0o077]


def modes(top: Path) -> Iterator[tuple[Path, int]]:
    """All that lies below a folder; what SQLite keeps beside its files may just go."""
    for folder, names, files in os.walk(top):
        for path in (Path(folder, name) for name in (*names, *files)):
            with suppress(FileNotFoundError) if path.name.endswith(("-shm", "-wal")) else nullcontext():
                yield path, path.lstat().st_mode


# Modes


def loose(store: Path) -> list[str]:
    """What in a store has another mode than the format says: folders and the hook 0700, files 0600 at most, objects
    0400, and no link anywhere. git's own samples of hooks may run."""
    found = []
    for path, mode in modes(store):
        most = 0o400 if path.is_relative_to(store / "objects") and len(path.name) > 30 else 0o600
        most = 0o700 if path.parent.name == "hooks" else most
        right = stat.S_IMODE(mode) == 0o700 if stat.S_ISDIR(mode) or path.name == "hook" else not mode & 0o777 & ~most
        if not right or stat.S_ISLNK(mode):
            found.append(f"{stat.filemode(mode)} {path.relative_to(store)}")
    return found


WRITING = (
    "install", "import", "fork {0} --at 2 --name forked", "merge {0} --into forked", "undo",
    "merge {1} --into {0} --new both",
    "pick {1}@1 --into forked", "edit {0} --description d --label l", "rename {0} named", "tag v1 {0}@1",
    "pad insight x --into {0}", "off", "on", "config archive.after 900d", "config record.fsync false",
    "import --from rlm {rlm}", "import --from rlm {rlm}", "import --from io-log {iolog}", "export rlm {0} -o {out}",
    "fork {0} --at 1 --worktree", "fork {0} --at 2.1", "remote add there {remote}", "push there --all", "pull there",
    "sync there", "archive {1}", "unarchive {1}", "repair {2}", "replay {0} --execute", "bisect {0} --run true",
    "bisect {0} --cell-fails Bash", "search one", "ls --all", "stats", "verify --deep", "doctor --fix", "recover",
    "restore {0}", "restore --all-lost", "resume --print {0}", "delete forked --yes", "gc", "gc --prune --yes",
    "purge zebra-4711 --yes", "purge zebra-4711 --yes", "search one", "watch", "undo", "tag v2 {0}@1",
    "uninstall", "install",
)  # fmt: skip
REFUSED = {"watch": (130,), "undo": (3,), "bisect {0} --run true": (1,), "bisect {0} --cell-fails Bash": (1, 4)}
"""How a command may end that does not end well."""


@pytest.mark.parametrize("mask", [0, 0o077], ids=oct)
def test_nobody_else_reads_what_any_command_makes(
    sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    run_git(tmp_path, "init", "-q", "--bare", "remote.git")
    for words in (("init", "-q"), ("-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "x", "--allow-empty")):
        run_git(sessgit.project, *words)
    foreigners.rlm(tmp_path / "rlm")
    foreigners.log(tmp_path / "iolog", "A-1", foreigners.went("in", "x", 1), foreigners.went("out", "y", 2))
    first = sessgit.talk().turns("one zebra-4711").prompt("two").tool("Bash", {"command": "echo done"}).stop_lines()
    mine = [sessgit.keep(first.turns("three")), sessgit.keep(sessgit.talk(OTHER).turns("else"))]
    bad = sessgit.talk(BROKEN).turns("one").prompt("two").call_only("Bash", {"command": "ls"}).turns("three")
    mine.append(sessgit.keep(bad))
    for path in (*mine, *mine[0].parents):
        path.chmod(path.stat().st_mode & 0o700)
        if path == sessgit.config:
            break
    os.umask(mask)
    monkeypatch.setattr(watch, "_waiting", lambda: ended)
    places = {name: tmp_path / name for name in ("rlm", "iolog", "out")} | {"remote": tmp_path / "remote.git"}
    for line in WRITING:
        if line == "import":  # live, so that a fork knows what the project was at
            recorded(sessgit, event(SESSION, mine[0], sessgit.project), mask)
        if line == "recover":
            mine[0].unlink()
        done = sessgit(*(word.format(SESSION, OTHER, BROKEN, **places) for word in line.split()))
        assert done.code in (0, *REFUSED.get(line, ())), (line, done)
        assert (too_open(sessgit.config), loose(sessgit.store)) == ([], []), (line, done)
    recorded(sessgit, event(OTHER, mine[1], Path("/")), mask)
    assert (too_open(sessgit.config), loose(sessgit.store)) == ([], [])
    assert os.umask(0o022) == mask


def test_a_new_store_leaves_alone_what_another_process_is_writing_there(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    others = store / ".key.1-2.tmp"
    others.touch(mode=0o400)
    stores.create_store(store)
    assert others.stat().st_mode & 0o777 == 0o400


def ended() -> None:
    raise KeyboardInterrupt


def event(session: str, path: Path, cwd: Path) -> bytes:
    said = {"hook_event_name": "SessionEnd", "session_id": session, "transcript_path": str(path), "cwd": str(cwd)}
    return json.dumps(said).encode()


def recorded(sessgit: Shell, payload: bytes, mask: int) -> None:
    """Gives the stub an event and runs the recorder, both under the umask."""
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    stub = write_stub(sessgit.store, "/bin/true")  # so that no other recorder is still at work when this one is done
    done = subprocess.run(["sh", stub], input=payload, env=env, umask=mask, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    write_stub(sessgit.store, sys.executable)
    recorder = [sys.executable, "-P", "-m", "sessgit.recorder", str(sessgit.store)]
    subprocess.run(recorder, env=env, umask=mask, check=True, cwd="/")


def test_the_users_own_exports_have_the_users_own_modes(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    os.umask(0o027)
    sessgit.out("export", "markdown", SESSION, "-o", "x.md")
    assert stat.S_IMODE(Path("x.md").stat().st_mode) == 0o640


def test_threads_never_change_the_umask(tmp_path: Path) -> None:
    os.umask(0o002)

    stores.create_store(tmp_path / "store")
    seen, ended = set[int](), threading.Event()

    def write(name: str) -> None:
        repo = Store(tmp_path / "store").repo
        for number in range(20):
            tree = repo.edit_tree(None, {"a": (repo.write_blob(f"{name}{number}".encode()), False)})
            repo.move(f"refs/heads/{name}-{number}", None, repo.write_commit(tree, [], "m", 1))

    def watch() -> None:
        while not ended.is_set():
            (tmp_path / "theirs").touch(0o666)
            seen.add(stat.S_IMODE((tmp_path / "theirs").stat().st_mode))
            (tmp_path / "theirs").unlink()

    watcher = threading.Thread(target=watch)
    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in (watcher, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    watcher.join()
    assert seen == {0o664}
    assert os.umask(0o022) == 0o002
    assert loose(tmp_path / "store") == []


def test_every_folder_on_the_way_is_private(tmp_path: Path) -> None:
    os.umask(0)
    private_files.make_folder(tmp_path / "a" / "b" / "c")
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
    place = (sessgit.store if name == "latest.json" else StorePaths(sessgit.store).state) / name
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
    (StorePaths(sessgit.store).spool / "1-0.json").write_text("no event")
    subprocess.run([sys.executable, "-m", "sessgit.recorder", str(sessgit.store)], check=True)
    assert (tmp_path / "outside").read_text() == "mine"


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link", "link to nothing", "folder"])
def test_what_lies_in_the_place_of_the_marker_holds_nobody(sessgit: Shell, tmp_path: Path, kind: str) -> None:
    """The client waits for the stub: it ends at once, and the next recorder takes in what was said."""
    path = sessgit.keep(sessgit.talk().turns("one"))
    sessgit.out("install")
    marker, outside = StorePaths(sessgit.store).spool / "waiting", tmp_path / "outside"
    if kind == "folder":
        marker.mkdir()
    elif kind == "pipe":
        os.mkfifo(marker)
    else:
        if kind != "link to nothing":
            os.mkfifo(outside) if kind == "link to a pipe" else outside.write_text(f"{os.getpid()}\n")
        marker.symlink_to(outside)
    write_stub(sessgit.store, "/bin/true")  # so that no recorder is at work in the background
    env = {"PATH": os.environ["PATH"], "HOME": str(sessgit.home)}
    for shell in filter(shutil.which, ("dash", "bash", "sh")):
        stub, said = [shell, str(sessgit.store / "hook")], event(SESSION, path, sessgit.project)
        done = subprocess.run(stub, input=said, env=env, capture_output=True, check=True, timeout=60)
        assert (done.stdout, done.stderr) == (b"", b"")
    recorder = [sys.executable, "-P", "-m", "sessgit.recorder", str(sessgit.store)]
    subprocess.run(recorder, env=env, check=True, cwd="/", timeout=60)
    assert not list(marker.parent.glob("*.json"))
    assert "one" in sessgit.out("log", SESSION)
    assert kind != "link" or outside.read_text() == f"{os.getpid()}\n"
    assert kind != "link to nothing" or not outside.exists()


def test_a_file_put_in_place_goes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("mine")
    (tmp_path / f".x.{os.getpid()}-{threading.get_ident()}.tmp").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError):
        private_files.write_private(tmp_path / "x", b"ours")
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
    assert "is a link; sessgit does not write through links" in done.err.replace("\n  ", " ")
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
            agent_files.make_folder(place)


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
        assert "belongs to another user" in done.err
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


@ROOT
@pytest.mark.parametrize("trusted", [False, True])
def test_another_user_reads_a_store_only_with_its_owners_leave_and_in_trust(sessgit: Shell, trusted: bool) -> None:
    """As a process of that user: first with modes that let in nobody, then with ones that let in everybody."""
    sessgit.recorded(sessgit.talk().turns("one"))
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-P"]
    if subprocess.run([*as_nobody, "-c", "import sessgit"], capture_output=True, check=False).returncode:
        pytest.skip("no other user can run this interpreter")
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        store = shutil.copytree(sessgit.store, top / "store")
        top.chmod(0o755)
        (top / "home").mkdir()
        if trusted:
            (top / "home" / ".gitconfig").write_text(f"[safe]\n\tdirectory = {store}\n")
        env = {"PATH": os.environ["PATH"], "HOME": str(top / "home"), "SESSGIT_STORE": str(store)}
        store.chmod(0o700)
        done = subprocess.run([*as_nobody, "-m", "sessgit", "log", SESSION], env=env, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (7, b""), done
        for path in (store, *store.rglob("*")):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        before = listing(store)
        done = subprocess.run([*as_nobody, "-m", "sessgit", "log", SESSION], env=env, capture_output=True, check=False)
        assert (done.returncode, b"one" in done.stdout) == ((0, True) if trusted else (7, False)), done
        assert trusted or b"git config --global --add safe.directory" in b" ".join(done.stderr.split())
        done = subprocess.run(
            [*as_nobody, "-m", "sessgit", "tag", "v1", SESSION], env=env, capture_output=True, check=False
        )
        assert done.returncode == 7, done
        assert listing(store) == before


def given_away(store: Path) -> None:
    for path in (store, *store.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
