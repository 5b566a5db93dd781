"""Writes the transcript of a session that a program gives as values.

It is a function of these values: the same session gives the same lines, and a session that has grown gives more. A
fork has the lines of its parent up to the fork point, as the client's own forks have.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sessgit import agents
from sessgit.agents.line import split
from sessgit.model import canonical
from sessgit.model.foreign_session import ForeignSession, agent_id
from sessgit.model.program_input import GivenTurn, Step

NameUuid = Callable[[str], str]
"""Makes a uuid of a word that is unique within a session."""
EMPTY_PROMPT = "(no words)"
"""Replaces an empty prompt, which the model's API does not accept."""
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_PROMPT_MARK = "\u2060"
"""Precedes a prompt that the client would take for a note of its own. It is invisible."""


@dataclass(frozen=True, slots=True)
class GivenTranscript:
    """The transcript of a session, and the agent's id of it.

    `turns` are the turns of which it is made, `names` for each the function that named its lines, and `keys` the uuids
    of the prompts; all are empty for a session that has a transcript of its own.
    """

    agent_id: str
    data: bytes
    project: str = ""
    turns: tuple[GivenTurn, ...] = ()
    names: tuple[NameUuid, ...] = ()
    keys: tuple[str, ...] = ()


def agent_id_of(system: str, session: ForeignSession) -> str:
    """Return the agent's id for the session."""
    return session.agent if _AGENT_ID.fullmatch(session.agent) else agent_id(system, session.id)


def make_transcript(system: str, session: ForeignSession, parent: GivenTranscript | None) -> GivenTranscript:
    """Return the transcript of a session; `parent` is that of its parent, if it is known."""
    own = agent_id_of(system, session)
    if session.transcript:
        return GivenTranscript(own, session.transcript.removesuffix(b"\n") + b"\n", session.project)
    start = canonical.seconds(session.created)
    turns = [_with_valid_prompt(replace(turn, time=start) if turn.time is None else turn) for turn in session.turns]
    shared, names = 0, list[NameUuid]()
    if parent is not None:
        shared, names = _count_shared(turns, parent, session.branch or 0), list(parent.names)
        turns[:shared] = [replace(turn, key=key) for turn, key in zip(turns[:shared], parent.keys, strict=False)]
    space = uuid.UUID(agent_id("", own))
    names[shared:] = [lambda word: str(uuid.uuid5(space, word))] * (len(turns) - shared)
    return _write_lines(GivenTranscript(own, b"", session.project, tuple(turns), tuple(names)), {}, 0)


def unfinished_transcript(transcript: GivenTranscript, waiting: Mapping[str, bool], recorded: int) -> GivenTranscript:
    """Return the transcript, if `recorded` turns of it were recorded while cells in them had no result.

    `waiting` has the ids of these cells, and whether each has got its result since. A result is added at the end of its
    turn if that is the last one; in an earlier turn the cell stays as it is.
    """
    return _write_lines(transcript, waiting, recorded) if waiting and transcript.turns else transcript


def _write_lines(transcript: GivenTranscript, waiting: Mapping[str, bool], recorded: int) -> GivenTranscript:
    agent = agents.of_programs()
    chain, out, keys = agent.programs.chain(transcript.agent_id, transcript.project), list[bytes](), list[str]()
    for number, (turn, name) in enumerate(zip(transcript.turns, transcript.names, strict=True), start=1):
        chain.name_by(name)
        steps = [part for part in turn.parts if isinstance(part, Step) and part.task.id in waiting]
        parts = tuple(Step(part.task) if part in steps else part for part in turn.parts)
        lines = chain.turn(replace(turn, parts=parts))
        for step in steps:
            if step.outcome is not None and (number == recorded or waiting[step.task.id]):
                lines += chain.outcome(step.task.id, step.outcome, None, step.task.operation)
        keys.append(agent.parsed(lines[:1])[0].uuid)
        out += lines
    return replace(transcript, data=b"".join(line + b"\n" for line in out), keys=tuple(keys))


def append_turns(transcript: GivenTranscript, data: bytes, first: int) -> bytes:
    """Return a transcript with the turns from number `first` on added at its end."""
    chain = agents.of_programs().programs.chain(transcript.agent_id, transcript.project)
    chain.follow(raw for raw, _ in split(data, 0))
    out = list[bytes]()
    for turn, name in zip(transcript.turns[first - 1 :], transcript.names[first - 1 :], strict=True):
        chain.name_by(name)
        out += chain.turn(turn)
    return data + b"".join(line + b"\n" for line in out)


def without_mark(prompt: str) -> str:
    """Return a prompt as it was transcript."""
    if prompt == EMPTY_PROMPT:
        return ""
    return prompt.removeprefix(_PROMPT_MARK) if _needs_mark(prompt) else prompt


def _needs_mark(prompt: str) -> bool:
    """Return whether the prompt, without marks, opens no turn or would be read as an empty one."""
    text = prompt.lstrip(_PROMPT_MARK)
    return text == EMPTY_PROMPT or not agents.of_programs().lines.opens_turn(text)


def _with_valid_prompt(turn: GivenTurn) -> GivenTurn:
    if not turn.prompt.strip():
        return replace(turn, prompt=EMPTY_PROMPT)
    return replace(turn, prompt=_PROMPT_MARK + turn.prompt) if _needs_mark(turn.prompt) else turn


def _count_shared(turns: Sequence[GivenTurn], parent: GivenTranscript, most: int) -> int:
    """Return how many turns are equal in both, at most as many as the source says."""
    count = 0
    for ours, theirs, key in zip(turns[:most], parent.turns, parent.keys, strict=False):
        if replace(ours, key="") != replace(theirs, key="") or ours.key not in ("", key):
            break
        count += 1
    return count
