"""Sessions of other systems in the hands of the real client: it goes on with them, and sends their words."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from clients import ENDS
from foreigners import BORN, RLM, cell, log, put, rlm, went
from test_programs_client import Sent, sent
from world import World

from sessgit.model.foreign_session import agent_id

pytestmark = [pytest.mark.client, ENDS]

PENDING = "cell_e5f6g7h8"


def said(prompt: str, answer: str) -> Sent:
    return [("user", "text", prompt), ("assistant", "text", answer)]


def from_rlm(folder: Path) -> tuple[str, Sent]:
    """A cell in the middle, and one at the end that has no result."""
    at = rlm(folder, said=("count words", "42"), metadata={"session_id": RLM, "created_at": BORN, "cwd": str(folder)})
    put(at / "cells" / "cell_a1b2c3d4.json", cell("cell_a1b2c3d4", 5))
    output = {"result": None, "error": None, "execution_time_ms": 0}
    put(at / "cells" / f"{PENDING}.json", cell(PENDING, 15, output=output))
    return RLM, [
        ("user", "text", "count words"),
        ("assistant", "peek", {"n": 3}), ("user", "peek", '{"rows":[1,2]}'),
        ("assistant", "text", "42"),
        ("assistant", "peek", {"n": 3}), ("user", "peek", "No result yet: it comes below."),
    ]  # fmt: skip


def from_iolog(folder: Path) -> tuple[str, Sent]:
    log(folder, "ARCH-1", went("in", "design it", 1), went("artifact", "auth.md", 2, action="created"),
        went("out", "done", 3), went("in", "<user>go on</user>", 4), went("out", "yes", 5))  # fmt: skip
    call: Sent = [("assistant", "Write", {"file_path": "auth.md", "action": "created"}), ("user", "Write", "")]
    first, last = said("design it", "done")
    return agent_id("io-log", "ARCH-1"), [first, *call, last, *said("<user>go on</user>", "yes")]


def from_apex(folder: Path) -> tuple[str, Sent]:
    call = {"toolName": "readFile", "input": {"path": "a"}, "output": "let x", "status": "error"}
    code = {"codeBlocks": [{"language": "ts", "code": "read()"}]}
    told = [("user", "why?", {}), ("assistant", "I look.", {"toolCalls": [call]}), ("assistant", "Twice.", {}),
            ("user", "/fix it", {}), ("assistant", "", code)]  # fmt: skip
    messages = [
        {"id": str(n), "index": n, "role": role, "content": words, "timestamp": f"2026-03-01T10:00:0{n}.000Z", **more}
        for n, (role, words, more) in enumerate(told)
    ]
    put(folder / ".apex/sessions/s.json", {"id": "s", "projectPath": str(folder), "messages": messages})
    return agent_id("apex", "s"), [
        ("user", "text", "why?"), ("assistant", "readFile", {"path": "a"}), ("user", "!readFile", "let x"),
        ("assistant", "text", "I look."), ("assistant", "text", "Twice."), *said("/fix it", "```ts\nread()\n```"),
    ]  # fmt: skip


def from_dialectic(folder: Path) -> tuple[str, Sent]:
    passes = [{"type": "expansion", "cycle": 1, "content": "All of it."}]
    put(folder / ".dialectic/d/session.json", {"id": "d", "title": "Who leads?", "created": "2026-03-01T10:00:00Z",
                                               "passes": passes, "claims": ["Tools"]})  # fmt: skip
    return agent_id("dialectic", "d"), [
        ("user", "text", "Who leads?"), *said("Expansion pass, cycle 1", "All of it."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("system", "made"),
    [("rlm", from_rlm), ("io-log", from_iolog), ("apex", from_apex), ("dialectic", from_dialectic)],
)
def test_the_client_goes_on_with_it(
    world: World, system: str, made: Callable[[Path], tuple[str, Sent]]
) -> None:  # fmt: skip
    session, wanted = made(world.project)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(world.home)}

    def sessgit(*arguments: str) -> str:
        command = [sys.executable, "-m", "sessgit", *arguments]
        done = subprocess.run(
            command, env=env, cwd=world.project, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    sessgit("import", "--from", system, str(world.project))
    assert shlex.split(sessgit("resume", session, "--print")) == ["claude", "--resume", session]
    world.run("hello", resume=session)
    found = [(who, what, words.removeprefix("\u2060") if isinstance(words, str) else words)
             for who, what, words in sent(world, session)]  # fmt: skip
    assert found == [*wanted, ("user", "text", "hello")]
    sessgit("import")
    assert "hello" in sessgit("log", session)
    assert sessgit("import", "--from", system, str(world.project), "--dry-run").startswith("0 conversations, 0 turns")
