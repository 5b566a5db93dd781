"""A command of the person's own that is given prompts and answers them, in one of three ways.

It runs as the person does: nothing confines it. All that it started is ended with it.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from sessgit import agents
from sessgit.agents.base import Stream
from sessgit.errors import SessgitError
from sessgit.model import canonical, humanize
from sessgit.replay.sandbox import process_limits
from sessgit.replay.sandbox.process_limits import Lines, Running

Protocol = Literal["each", "lines", "stream-json"]
_LONGEST = 8 << 20


@dataclass(frozen=True, slots=True)
class Partner:
    """Who is spoken to: a shell command, how, and how many seconds it has for each answer."""

    command: str
    protocol: Protocol
    seconds: float
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, or in `why` the reason that there is none; the model and the tokens where they are told."""

    text: str = ""
    why: str = ""
    model: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)
    ms: float = 0


Ask = Callable[[str], Said]


def protocol(command: str) -> Protocol:
    """How a command is spoken to where nobody says: as the client does where it is that, else anew for each prompt."""
    try:
        found = (word for word in shlex.split(command) if "=" not in word)
    except ValueError as error:
        raise SessgitError(
            f"“{canonical.one_line(command, 60)}” is not a command: {error}", "A shell could not parse it either."
        ) from error
    program = os.path.basename(next(found, ""))  # noqa: PTH119 - of a word
    return "stream-json" if program in {agent.stream.PROGRAM for agent in agents.every()} else "each"


@contextmanager
def opened(partner: Partner) -> Iterator[Ask]:
    """A function that gives a prompt and returns the answer, for the block. After an answer without text and with a
    reason it is not called again."""
    env = {**partner.env, "SESSGIT_OFF": "1"}
    held = process_limits.free(env, partner.seconds)
    if partner.protocol == "each":
        yield lambda prompt: _timed(lambda: _alone(partner, held, prompt))
        return
    client = _client_of(partner)
    command = client.command(partner.command) if client else partner.command
    stdin, ask = os.pipe()
    try:
        channels = process_limits.Channels(stdin, errors=False)
        with process_limits.started(["/bin/sh", "-c", command], partner.cwd, held, channels, lasting=True) as running:
            os.close(stdin)
            way = partial(_client, client) if client else _line
            lines = Lines(running.output)
            document = client.question if client else _question
            yield lambda prompt: _timed(lambda: _spoken(partner, running, ask, lines, way, document(prompt)))
    finally:
        os.close(ask)


# Inside


class _NoAnswerError(Exception):
    """There is no answer; the message says why."""


_Way = Callable[[Lines, float], Said]


def _timed(asked: Callable[[], Said]) -> Said:
    began = time.monotonic()
    found = asked()
    return Said(found.text, found.why, found.model, found.tokens, (time.monotonic() - began) * 1000)


def _alone(partner: Partner, held: process_limits.Confinement, prompt: str) -> Said:
    ended = process_limits.run(["/bin/sh", "-c", partner.command], partner.cwd, held, _bytes(prompt), errors=False)
    said = ended.output.decode("utf-8", "replace").strip()
    if ended.code is None:
        return Said(why=ended.why)
    if ended.code:
        return Said(why=f"it exited with code {ended.code}")
    return Said(said) if said else Said(why="it printed nothing")


def _spoken(partner: Partner, running: Running, ask: int, lines: Lines, way: _Way, question: dict[str, Any]) -> Said:
    began = time.monotonic()
    try:
        with suppress(BrokenPipeError):
            process_limits.tell(ask, _bytes(json.dumps(question)), partner.seconds)
        return way(lines, began + partner.seconds)
    except TimeoutError:
        return Said(why=f"it took longer than {partner.seconds:g} s")
    except _NoAnswerError as why:
        if str(why):
            return Said(why=str(why))
        if time.monotonic() - began >= partner.seconds:
            return Said(why=f"it took longer than {partner.seconds:g} s")
        running.stop()
        code, ended = running.wait()
        return Said(why=f"it exited with code {code} before it answered" if code is not None else _ended(ended))


def _ended(why: str) -> str:
    return f"it printed a line of more than {humanize.size(_LONGEST)}" if why == "ended" else why


def _line(lines: Lines, deadline: float) -> Said:
    found = _object(lines, deadline)
    if not isinstance(found.get("answer"), str):
        raise _NoAnswerError(f"it printed a line without an answer: {canonical.one_line(json.dumps(found), 100)}")
    return Said(found["answer"].strip(), model=_text(found.get("model")))


def _client(stream: Stream, lines: Lines, deadline: float) -> Said:
    model = ""
    while True:
        found = _object(lines, deadline)
        model = stream.model(found) or model
        answer = stream.answer(found)
        if answer is None:
            continue
        if answer.failed:
            raise _NoAnswerError(f"it ended with an error: {canonical.one_line(answer.text, 200)}")
        return Said(answer.text, "" if answer.text else "it printed nothing", model, answer.tokens)


def _client_of(partner: Partner) -> Stream | None:
    """How the client is spoken to, where the partner is one."""
    streams = (agent.stream for agent in agents.every())
    return next((stream for stream in streams if partner.protocol == stream.PROTOCOL), None)


def _question(prompt: str) -> dict[str, Any]:
    return {"prompt": prompt}


def _object(lines: Lines, deadline: float) -> dict[str, Any]:
    line = lines.next(max(0, deadline - time.monotonic()), _LONGEST)
    if line is None:
        raise _NoAnswerError
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        shown = canonical.one_line(line[:400].decode("utf-8", "replace"), 100)
        raise _NoAnswerError(f"it printed a line that is not a JSON object: {shown}")
    return found


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
