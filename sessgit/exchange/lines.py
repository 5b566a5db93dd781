"""The lines of a session that another system kept: what its transcript would be.

They are a function of what the system says, so that the same source gives the same lines, and one that has grown gives
more of them. A session that left another one has the same lines up to there, as the client's own forks have.
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

Name = Callable[[str], str]
"""Makes a uuid of a word that is unique within a session."""
_AGENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_PROMPT_MARK = "\u2060"
"""Stands before a prompt whose words the client would take for its own. Nobody sees it."""
EMPTY_PROMPT = "(no words)"
"""The words of a prompt that has none: the model's service takes no empty one."""


@dataclass(frozen=True, slots=True)
class GivenTranscript:
    """The transcript of a session: its agent's id, its lines, and how many turns it has in common with its parent.

    `turns` are the turns of which it is made, `names` says for each what named its lines, and `keys` are the uuids of
    the prompts. Of a session that has a transcript of its own these are empty.
    """

    agent_id: str
    data: bytes
    turns: tuple[GivenTurn, ...] = ()
    names: tuple[Name, ...] = ()
    keys: tuple[str, ...] = ()
    shared: int = 0
    project: str = ""


def make_transcript(system: str, session: ForeignSession, parent: GivenTranscript | None) -> GivenTranscript:
    """The lines of a session; `parent` are those of the one that it left, where that is known."""
    own = agent_id_of(system, session)
    if session.transcript:
        data = session.transcript if session.transcript.endswith(b"\n") else session.transcript + b"\n"
        return GivenTranscript(own, data, project=session.project)
    start = canonical.seconds(session.created)
    turns = tuple(
        _with_valid_prompt(replace(turn, time=start) if turn.time is None else turn) for turn in session.turns
    )
    shared = _count_shared(turns, parent, session.branch)
    named = (*(parent.names[:shared] if parent else ()), *(_uuid_maker(own) for _ in turns[shared:]))
    if parent is not None:
        pairs = zip(parent.turns[:shared], parent.keys, strict=False)
        turns = (*(replace(turn, key=key) for turn, key in pairs), *turns[shared:])
    return _write_chain(GivenTranscript(own, b"", turns, named, shared=shared, project=session.project), {}, 0)


def unfinished_transcript(given: GivenTranscript, waiting: Mapping[str, bool], recorded: int) -> GivenTranscript:
    """The transcript where so many turns of it were recorded while cells in them had no result.

    `waiting` are the ids of these cells, and whether one has got its result since. That comes at the end of the turn,
    as long as it is the last one; in an earlier one such a cell stays as it is.
    """
    return _write_chain(given, waiting, recorded) if waiting and given.turns else given


def _write_chain(given: GivenTranscript, waiting: Mapping[str, bool], recorded: int) -> GivenTranscript:
    chain, out, keys = agents.of_programs().programs.chain(given.agent_id, given.project), list[bytes](), list[str]()
    for number, (turn, name) in enumerate(zip(given.turns, given.names, strict=True), start=1):
        chain.name_by(name)
        steps = [part for part in turn.parts if isinstance(part, Step) and part.task.id in waiting]
        parts = tuple(Step(part.task) if part in steps else part for part in turn.parts)
        found = chain.turn(replace(turn, parts=parts))
        for step in steps:
            if step.outcome is not None and (number == recorded or waiting[step.task.id]):
                found += chain.outcome(step.task.id, step.outcome, None, step.task.operation)
        keys.append(agents.of_programs().lines.parsed(found[:1])[0].uuid)
        out += found
    return replace(given, data=b"".join(line + b"\n" for line in out), keys=tuple(keys))


def agent_id_of(system: str, session: ForeignSession) -> str:
    """The agent's id that the session has here."""
    return session.agent if _AGENT_ID.fullmatch(session.agent) else agent_id(system, session.id)


def append_turns(given: GivenTranscript, data: bytes, first: int) -> bytes:
    """A transcript with the turns from number `first` on behind its last line."""
    chain = agents.of_programs().programs.chain(given.agent_id, given.project)
    chain.follow(raw for raw, _ in split(data, 0))
    out = list[bytes]()
    for turn, name in zip(given.turns[first - 1 :], given.names[first - 1 :], strict=True):
        chain.name_by(name)
        out += chain.turn(turn)
    return data + b"".join(line + b"\n" for line in out)


def without_mark(prompt: str) -> str:
    """The words of a prompt as the other system had them."""
    if prompt == EMPTY_PROMPT:
        return ""
    return prompt.removeprefix(_PROMPT_MARK) if _needs_mark(prompt) else prompt


def _needs_mark(prompt: str) -> bool:
    """Whether the words, what may stand before them left out, open no turn or would be read as something else."""
    words = prompt.lstrip(_PROMPT_MARK)
    return words == EMPTY_PROMPT or not agents.of_programs().lines.opens_turn(words)


def _with_valid_prompt(turn: GivenTurn) -> GivenTurn:
    """The turn with a prompt that opens one."""
    if not turn.prompt.strip():
        return replace(turn, prompt=EMPTY_PROMPT)
    return replace(turn, prompt=_PROMPT_MARK + turn.prompt) if _needs_mark(turn.prompt) else turn


def _count_shared(turns: Sequence[GivenTurn], parent: GivenTranscript | None, branch: int | None) -> int:
    """How many turns both have in common, and no more than the system says."""
    if parent is None or branch is None or not parent.keys:
        return 0
    count = 0
    for ours, theirs, key in zip(turns[:branch], parent.turns, parent.keys, strict=False):
        if replace(ours, key="") != replace(theirs, key="") or ours.key not in ("", key):
            break
        count += 1
    return count


def _uuid_maker(own: str) -> Name:
    space = uuid.UUID(agent_id("", own))
    return lambda word: str(uuid.uuid5(space, word))
