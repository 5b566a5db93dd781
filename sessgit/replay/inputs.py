"""Sends the prompts of a conversation, one after another, to a command of the user's, and compares the answers.

The command runs with the user's rights: nothing confines it. All processes that it starts are ended with it.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Literal

from sessgit import agents
from sessgit.agents.base import Stream
from sessgit.errors import SessgitError, UsageError
from sessgit.history.resolve import ForkPoint, ResolvedTarget
from sessgit.history.turn_log import read_turn
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.model.program_input import GivenTurn, Saying
from sessgit.model.progress import Progress
from sessgit.replay import compare, kept_result
from sessgit.replay.compare import Outcome
from sessgit.replay.kept_result import KeptSession
from sessgit.replay.sandbox import processes
from sessgit.replay.sandbox.processes import JsonLines, NoAnswerError
from sessgit.store.context import Context
from sessgit.store.index import Branch, Row
from sessgit.store.store import Store

Protocol = Literal["each", "lines", "stream-json"]


@frozen
class ModelCommand:
    """A shell command that answers prompts, its protocol, and the seconds that it has for each answer."""

    command: str
    protocol: Protocol
    seconds: float
    cwd: str
    env: Mapping[str, str]


@frozen
class PromptResult:
    """A turn's prompt, the recorded answer and the new one; `why` is the reason if it failed or was not sent."""

    turn: int
    prompt: str
    recorded: str = ""
    answer: str = ""
    outcome: Outcome = "skipped"
    why: str = ""
    diff: tuple[str, ...] = ()
    ms: float = 0


@frozen
class PromptResults:
    """The results of all prompts; `left` is the number of prompts after one that failed, which were not sent."""

    branch: Branch
    protocol: str
    answers: tuple[PromptResult, ...]
    left: int
    kept: KeptSession | None


def guess_protocol(command: str) -> Protocol:
    """Return the protocol to use if the user names none: the client's own for a client, else a process a prompt."""
    try:
        words = (word for word in shlex.split(command) if "=" not in word)
    except ValueError as error:
        raise SessgitError(
            f"“{canonical.one_line(command, 60)}” is not a command: {error}", "A shell could not parse it either."
        ) from error
    program = os.path.basename(next(words, ""))  # noqa: PTH119 - of a word
    return "stream-json" if program in {stream.PROGRAM for stream in _streams()} else "each"


def _streams() -> Iterator[Stream]:
    """Yield how each client that answers prompts over a stream does so."""
    return (agent.stream for agent in agents.every() if agent.has("stream"))


def send_prompts(
    context: Context, target: ResolvedTarget, model: ModelCommand, id: str, progress: Progress
) -> PromptResults:
    """Send the prompts up to the target's turn, until one gets no answer.

    With an `id`, each prompt and answer is kept at once in a session of that id, a fork at this one's start; one undo
    removes it.
    """
    store, branch = context.store, target.branch
    rows = [row for row in context.index.turns(branch.name) if target.turn is None or row.turn <= target.turn]
    short = branch.short
    if not rows:
        raise UsageError(f"{short} has no prompts to send", "`sessgit log` lists its turns.")
    place = "" if target.turn is None else f"@{target.turn}"
    kept = None
    if id:
        kept_result.check_can_keep(context, target.state)
    parents = store.commit(rows[0].commits[0]).parents
    start = ForkPoint(target.session, 0, parents[0] if parents else rows[0].commits[0])
    results: list[PromptResult] = []
    try:
        for result, answer in _send_each(store, branch, rows, model):
            progress(len(results), len(rows))
            results.append(result)
            if id and result.outcome != "skipped":
                name = kept_result.kept_name("inputs", short, place)
                kept = kept or kept_result.begin_session(context, id, name, start, target.state)
                parts = (Saying(f"No answer: {result.why}"),) if result.outcome == "failed" else ()
                now, end = context.now(), context.now() + result.ms / 1000
                turn = GivenTurn(result.prompt, parts, result.answer, answer.model, now, end, tokens=answer.tokens)
                kept = kept_result.add_turn(context, kept, turn)
    finally:
        if kept is not None:
            kept_result.record_operation(context, kept, f"{len(results)} inputs of {short}{place}")
    return PromptResults(branch, model.protocol, tuple(results), len(rows) - len(results), kept)


@frozen
class _Answer:
    """An answer, and the model and the tokens if the command tells them."""

    text: str = ""
    model: str = ""
    tokens: Mapping[str, int] = field(default_factory=dict)


def _send_each(
    store: Store, branch: Branch, rows: Sequence[Row], model: ModelCommand
) -> Iterator[tuple[PromptResult, _Answer]]:
    with _run_model(model) as ask:
        for row in rows:
            try:
                turn = read_turn(store, branch.tip, row)
            except SessgitError as error:
                yield PromptResult(row.turn, row.prompt, why=f"its turn is damaged: {error}"), _Answer()
                continue
            if not turn.prompt.strip():
                yield PromptResult(row.turn, "", turn.answer, why="its prompt has no text"), _Answer()
                continue
            began = time.monotonic()
            try:
                answer = ask(turn.prompt)
            except NoAnswerError as why:
                ms = (time.monotonic() - began) * 1000
                yield PromptResult(row.turn, turn.prompt, turn.answer, "", "failed", str(why), ms=ms), _Answer()
                return
            ms = (time.monotonic() - began) * 1000
            compared = compare.compare_texts(turn.answer, answer.text)
            outcome: Outcome = "equal" if compared.equal else "differs"
            yield (
                PromptResult(row.turn, turn.prompt, turn.answer, answer.text, outcome, "", compared.diff, ms),
                answer,
            )


@contextmanager
def _run_model(model: ModelCommand) -> Iterator[Callable[[str], _Answer]]:
    """Yield a function that sends a prompt and returns the answer, or raises NoAnswerError, after which it must not be
    called again."""
    if model.protocol == "each":
        yield lambda prompt: _ask_new_process(model, prompt)
        return
    client = next((stream for stream in _streams() if model.protocol == stream.PROTOCOL), None)
    command = client.command(model.command) if client else model.command
    free = processes.unsandboxed({**model.env, "SESSGIT_OFF": "1"}, 0)
    with processes.start_process(["/bin/sh", "-c", command], model.cwd, free, None, errors=False) as running:
        lines = JsonLines(running, model.seconds)
        yield lambda prompt: _ask_running(lines, client, prompt)


def _ask_new_process(model: ModelCommand, prompt: str) -> _Answer:
    data = prompt.encode("utf-8", "replace")
    result = processes.run_shell(model.command, model.cwd, model.env, model.seconds, data)
    text = result.output.decode("utf-8", "replace").strip()
    if result.code is None:
        raise NoAnswerError(result.why)
    if result.code or not text:
        raise NoAnswerError(f"it exited with code {result.code}" if result.code else "it printed nothing")
    return _Answer(text)


def _ask_running(lines: JsonLines, client: Stream | None, prompt: str) -> _Answer:
    line = lines.ask(client.question(prompt) if client else {"prompt": prompt})
    if client is None:
        if not isinstance(line.get("answer"), str):
            raise NoAnswerError(f"it printed a line without an answer: {canonical.one_line(json.dumps(line), 100)}")
        name = line.get("model")
        return _Answer(line["answer"].strip(), name if isinstance(name, str) else "")
    name = client.model(line)
    while (answer := client.answer(line)) is None:
        line = lines.read()
        name = client.model(line) or name
    if answer.failed:
        raise NoAnswerError(f"it ended with an error: {canonical.one_line(answer.text, 200)}")
    if not answer.text:
        raise NoAnswerError("it printed nothing")
    return _Answer(answer.text, name, answer.tokens)
