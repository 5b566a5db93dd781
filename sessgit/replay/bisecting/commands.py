"""What a command says of turns: it is run at the commits that the project had at their ends.

Its exit code means what it means to `git bisect run`: 0 is good, 125 cannot tell, up to 127 is bad, more is no answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history.code.git import Env, Head
from sessgit.replay.bisecting.search import Answer, last_words
from sessgit.replay.bisecting.worktree import Bench
from sessgit.replay.sandbox import process_limits

Hear = Callable[[bytes], None]

_CANNOT_TELL = 125
_LAST = 127
_KEPT = 16_384
"""Bytes of what a command prints, the last ones."""
_GRACE = 2.0
"""Seconds that a command gets to end by itself when it is stopped."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command for the shell, the environment it runs in, and how many seconds it may take, None for any time.

    `hear` is given what it prints, as it comes."""

    line: str
    env: Env
    limit: float | None = None
    hear: Hear = lambda data: None


def asker(bench: Bench, session: str, heads: Mapping[int, Head], command: Command) -> Callable[[int], Answer]:
    """Says of a turn, by its number, how the command ends at its head; each commit is tried once.

    Raises SessgitError where a command ends with a code that is no answer.
    """
    known: dict[str, Answer] = {}

    def ask(turn: int) -> Answer:
        head = heads[turn]
        if head.commit not in known:
            known[head.commit] = _tried(bench, session, turn, head, command)
        return known[head.commit]

    return ask


def _tried(bench: Bench, session: str, turn: int, head: Head, command: Command) -> Answer:
    if not bench.has(head.commit):
        return Answer("skip", f"commit {head.commit[:8]} no longer exists", head.commit)
    folder = bench.go(head)
    env = {name: value for name, value in command.env.items() if not name.startswith("GIT_")}
    env |= {
        "SESSGIT_BISECT_TURN": str(turn),
        "SESSGIT_BISECT_SESSION": session,
        "SESSGIT_BISECT_COMMIT": head.commit,
        "SESSGIT_OFF": "1",
    }
    began = time.monotonic()
    code, said = _run(command, folder, env)
    seconds = round(time.monotonic() - began, 3)
    output = said.decode("utf-8", "replace")
    if code is None:
        return Answer("bad", f"stopped after {command.limit:g}s", head.commit, None, seconds, output)
    if code > _LAST:
        last = f": {words}" if (words := last_words(output)) else ""
        raise SessgitError(
            f"the command ended with {code} at turn {turn} ({head.commit[:8]}), which means to stop{last}",
            "0 is good, 125 cannot be tested, others up to 127 are bad; higher codes stop the search.",
        )
    verdict = "good" if code == 0 else "skip" if code == _CANNOT_TELL else "bad"
    return Answer(verdict, f"exit {code}", head.commit, code, seconds, output)  # type: ignore[arg-type]


def _run(command: Command, folder: str, env: Mapping[str, str]) -> tuple[int | None, bytes]:
    """The exit code, that of a shell where a signal ended it, or None where time was up; and the end of the output.

    Nothing that the command started goes on afterwards.
    """
    began, said = time.monotonic(), bytearray()
    held = process_limits.free(env, command.limit or 0, _GRACE)
    with process_limits.started(["/bin/sh", "-c", command.line], folder, held, process_limits.Channels()) as running:
        while data := os.read(running.output, 65_536):
            said += data
            del said[:-_KEPT]
            command.hear(data)
        code, why = running.wait()
    if code is None and (command.limit is None or time.monotonic() - began < command.limit):
        raise NotFoundError(f"cannot start the command: {why}")
    return code, bytes(said)
