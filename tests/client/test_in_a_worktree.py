"""A fork in a git worktree, resumed by the real client: the words and the code of one turn."""

from __future__ import annotations

import json
import subprocess

import pytest
from clients import ENDS, seal_home
from test_recording import Kept
from world import World

pytestmark = [pytest.mark.client, ENDS]

FIRST = "bash: echo one > notes.txt && git add . && git commit -qm One"


def test_the_words_and_the_files_of_one_turn_come_back(world: World) -> None:
    kept = Kept(world)

    def git(*arguments: str) -> str:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}
        command = ["git", "-C", str(world.project), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    session = world.run(FIRST).session_id
    kept.recorded(session, 1)
    first = git("rev-parse", "HEAD").strip()
    (world.project / "notes.txt").write_text("two\n")
    (world.project / "later.txt").write_text("later\n")
    git("add", ".")
    git("commit", "-qm", "Two")
    world.model.clear()
    world.run("edit: notes.txt two -> three", resume=session)
    words = [said for said in world.model.conversation(session) if said]
    words = words[: words.index(("user", "edit: notes.txt two -> three"))]
    kept.recorded(session, 2)

    path = world.project.parent / "then"
    fork = kept.json("fork", session, "--at", "1", "--worktree", str(path))
    assert fork["worktree"] == {
        "path": str(path),
        "commit": first,
        "branch": "main",
        "dirty": False,
        "new_branch": None,
    }
    seal_home(world.home, path)
    world.model.clear()
    answer = world.run("bash: cat notes.txt && ls && pwd", resume=fork["id"], cwd=path)

    sent = world.model.conversation(fork["id"])
    assert sent[: len(words)] == words
    assert sent[len(words)] == ("user", "bash: cat notes.txt && ls && pwd")
    seen = json.dumps(sent[len(words) + 1 :])
    assert all(word in seen for word in ("one", "README.md", str(path)))
    assert "later.txt" not in seen
    assert answer.session_id == fork["id"]
    kept.recorded(fork["id"], 2)

    subprocess.run(["git", "-C", str(path), "rm", "-q", "README.md"], check=True)
    world.run("bash: git commit -qm Without", resume=fork["id"], cwd=path)
    kept.recorded(fork["id"], 3)
    code = kept.json("diff", session, fork["id"], "--code")["code"]
    assert (code["a"]["dirty"], code["a"]["branch"], code["b"]["branch"]) == (True, "main", None)
    assert code["base"] == first
    assert [(file["status"], file["path"]) for file in code["files"]] == [
        ("D", "README.md"), ("D", "later.txt"), ("M", "notes.txt"),
    ]  # fmt: skip
    assert kept.restored(fork["id"]) == world.transcript(fork["id"]).read_bytes()
    kept.fsck()
