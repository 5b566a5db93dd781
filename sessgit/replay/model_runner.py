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
from sessgit.replay.sandbox.process_limits import LineReader, RunningProcess

Protocol = Literal["each", "lines", "stream-json"]
_LONGEST_ANSWER = 8 << 20


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """Who is spoken to: a shell command, how, and how many seconds it has for each answer."""

    command: str
    protocol: Protocol
    seconds: float
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer, or in `why` the reason that there is none; the model and the tokens where they are told."""

    text: str = ""
    why: str = ""
    model: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)
    ms: float = 0


AskModel = Callable[[str], ModelAnswer]


def guess_protocol(command: str) -> Protocol:
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
def run_model(partner: ModelCommand) -> Iterator[AskModel]:
    """A function that gives a prompt and returns the answer, for the block. After an answer without text and with a
    reason it is not called again."""
    env = {**partner.env, "SESSGIT_OFF": "1"}
    held = process_limits.unsandboxed(env, partner.seconds)
    if partner.protocol == "each":
        yield lambda prompt: _with_duration(lambda: _ask_new_process(partner, held, prompt))
        return
    client = _client_of(partner)
    command = client.command(partner.command) if client else partner.command
    stdin, ask = os.pipe()
    try:
        channels = process_limits.Channels(stdin, errors=False)
        with process_limits.start_process(
            ["/bin/sh", "-c", command], partner.cwd, held, channels, lasting=True
        ) as running:
            os.close(stdin)
            way = partial(_read_client_answer, client) if client else _read_json_line
            lines = LineReader(running.output)
            document = client.question if client else _question
            yield lambda prompt: _with_duration(
                lambda: _ask_running(partner, running, ask, lines, way, document(prompt))
            )
    finally:
        os.close(ask)


# Inside


class _NoAnswerError(Exception):
    """There is no answer; the message says why."""


_ReadAnswer = Callable[[LineReader, float], ModelAnswer]


def _with_duration(asked: Callable[[], ModelAnswer]) -> ModelAnswer:
    began = time.monotonic()
    found = asked()
    return ModelAnswer(found.text, found.why, found.model, found.tokens, (time.monotonic() - began) * 1000)


def _ask_new_process(partner: ModelCommand, held: process_limits.Confinement, prompt: str) -> ModelAnswer:
    ended = process_limits.run_process(
        ["/bin/sh", "-c", partner.command], partner.cwd, held, _encode(prompt), errors=False
    )
    said = ended.output.decode("utf-8", "replace").strip()
    if ended.code is None:
        return ModelAnswer(why=ended.why)
    if ended.code:
        return ModelAnswer(why=f"it exited with code {ended.code}")
    return ModelAnswer(said) if said else ModelAnswer(why="it printed nothing")


def _ask_running(
    partner: ModelCommand,
    running: RunningProcess,
    ask: int,
    lines: LineReader,
    way: _ReadAnswer,
    question: dict[str, Any],
) -> ModelAnswer:
    began = time.monotonic()
    try:
        with suppress(BrokenPipeError):
            process_limits.write_line(ask, _encode(json.dumps(question)), partner.seconds)
        return way(lines, began + partner.seconds)
    except TimeoutError:
        return ModelAnswer(why=f"it took longer than {partner.seconds:g} s")
    except _NoAnswerError as why:
        if str(why):
            return ModelAnswer(why=str(why))
        if time.monotonic() - began >= partner.seconds:
            return ModelAnswer(why=f"it took longer than {partner.seconds:g} s")
        running.stop()
        code, ended = running.wait()
        return ModelAnswer(
            why=f"it exited with code {code} before it answered" if code is not None else _end_reason(ended)
        )


def _end_reason(why: str) -> str:
    return f"it printed a line of more than {humanize.format_size(_LONGEST_ANSWER)}" if why == "ended" else why


def _read_json_line(lines: LineReader, deadline: float) -> ModelAnswer:
    found = _read_object(lines, deadline)
    if not isinstance(found.get("answer"), str):
        raise _NoAnswerError(f"it printed a line without an answer: {canonical.one_line(json.dumps(found), 100)}")
    return ModelAnswer(found["answer"].strip(), model=_str_or_empty(found.get("model")))


def _read_client_answer(stream: Stream, lines: LineReader, deadline: float) -> ModelAnswer:
    model = ""
    while True:
        found = _read_object(lines, deadline)
        model = stream.model(found) or model
        answer = stream.answer(found)
        if answer is None:
            continue
        if answer.failed:
            raise _NoAnswerError(f"it ended with an error: {canonical.one_line(answer.text, 200)}")
        return ModelAnswer(answer.text, "" if answer.text else "it printed nothing", model, answer.tokens)


def _client_of(partner: ModelCommand) -> Stream | None:
    """How the client is spoken to, where the partner is one."""
    streams = (agent.stream for agent in agents.every())
    return next((stream for stream in streams if partner.protocol == stream.PROTOCOL), None)


def _question(prompt: str) -> dict[str, Any]:
    return {"prompt": prompt}


def _read_object(lines: LineReader, deadline: float) -> dict[str, Any]:
    line = lines.next(max(0, deadline - time.monotonic()), _LONGEST_ANSWER)
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


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _str_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
