"""A store that holds a value wherever one can be, and whether it still does."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from clones import Clone
from homes import claude_homes
from plain import objects
from plain import run_git as git
from shell import Shell
from transcripts import OTHER, SESSION, Talk, subagent
from waiting import until

from sessgit.agents.claude import home
from sessgit.purge import purge
from sessgit.store import locks
from sessgit.store.context import Context
from sessgit.store.index import Index
from sessgit.store.store import Store

VALUE = "tiger" + "-Lily/" + "4711+" + "Zebra"
THIRD = "5e551011-0000-4000-8000-000000000003"
CLIENTS = "5e551011-0000-4000-8000-000000000004"
PLAIN = "5e551011-0000-4000-8000-00000000000f"


def talk(sessgit: Shell, value: str = VALUE) -> Talk:
    """A conversation with the value in a prompt, in a call, twice in a result, in long results, and in a title."""
    long = "".join(f"line {n} of the file\n" for n in range(400))
    found = sessgit.talk().prompt(f"log in with {value} please").answer(f"I take {value}.")
    found.tool(
        "Bash", {"command": f"login --with '{value}'", "env": {"X": value}}, f"welcome {value}\nbye"
    ).stop_lines()
    found.prompt("read it").tool("Read", {"file_path": f"/home/ada/{value[:5]}.txt"}, f"{long}{value}\n{long}")
    found.tool("Bash", {"command": "cat x"}, json.dumps({"inner": json.dumps({"v": f'"{value}"\n'})})).stop_lines()
    found.prompt("nothing here").tool("Write", {"file_path": "a.py", "content": long}).answer("Done.").stop_lines()
    return found.title(f"about {value}")


def told(sessgit: Shell, value: str = VALUE) -> list[Path]:
    """Conversations with the value in every place, recorded, and the files of the client's that hold it."""
    one = talk(sessgit, value)
    folder = home.project_folder(sessgit.config, str(sessgit.project))
    sub = subagent(folder, one, "ab12", f"the value is {value}", "and goes on")
    todo = sessgit.config / "todos" / f"{SESSION}-agent-{SESSION}.json"
    todo.parent.mkdir(parents=True)
    todo.write_text(json.dumps([{"content": f"try {value}", "status": "pending"}]))
    path = sessgit.recorded(one)
    one.rewind(1).prompt("another way").answer(f"with {value}").stop_lines()
    one.prompt("and on").answer("yes").stop_lines()
    sessgit.recorded(one)
    other = one.branch(CLIENTS)
    other.prompt("in the copy").answer("fine").stop_lines()
    plain = sessgit.talk(PLAIN).turns("first", "second")
    sessgit.recorded(other, plain)
    return [path, sub, todo, sessgit.keep(other)]


def purged_beside(clone: Clone, meanwhile: Callable[[Store, Index], object], value: str = VALUE) -> None:
    """Purges the value; another thread opens the store and does something as soon as that has begun. The purge goes on
    once that thread has ended or waits for a lock. Raises what that raises; nothing holds the value in the end."""
    others, waiting = list[Future[None]](), threading.Event()

    def act() -> None:
        store = Store(clone.store.path)
        index = Index(store.path, lambda: store)
        try:
            meanwhile(store, index)
        finally:
            index.close()

    def sleep(seconds: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            waiting.set()
        time.sleep(seconds)

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    with patch.object(locks, "time", clock), ThreadPoolExecutor(1) as pool:

        def reading(_done: int, _total: int) -> None:
            if not others:
                others.append(pool.submit(act))
                until(lambda: waiting.is_set() or others[0].done())

        watch = purge.PurgeProgress(reading=reading)
        purge.purge_values(
            Context(clone.index, homes=claude_homes(clone.config), now=clone.now), purge.literal_value(value), watch
        )
        others[0].result()
    assert holders(clone.store.path, value) == []


def holders(store: Path, value: str = VALUE) -> list[str]:
    """The objects and files of a store that hold the value, in any form that a person would look for."""
    forms = {value}
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=only)[1:-1] for form in forms for only in (False, True)}
    needles = [form.encode() for form in forms] + [base64.b64encode(value.encode())[: 4 * (len(value) // 3)]]
    found = [f"{kind} {oid}" for oid, kind, data in objects(store) if any(needle in data for needle in needles)]
    for path in store.rglob("*"):
        if path.is_file() and any(needle in path.read_bytes() for needle in needles):
            found.append(str(path.relative_to(store)))
    return found


def refs(store: Path) -> dict[str, str]:
    """All refs of a store."""
    rows = (line.split(" ") for line in git(store, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    return dict(rows)


def whole(sessgit: Shell) -> None:
    """Every conversation is as it should be: git finds nothing, and each file is laid out again with its hashes."""
    assert git(sessgit.store, "fsck", "--strict", "--no-dangling") == ""
    for ref in refs(sessgit.store):
        _, space, name = ref.split("/")[:3]
        if space in ("heads", "archive") and "." not in name:
            done = sessgit("restore", name, "--verify")
            assert done.code == 0, done


__all__ = ["CLIENTS", "OTHER", "PLAIN", "SESSION", "THIRD", "VALUE", "git", "holders", "refs", "talk", "told", "whole"]
