"""Lines that go on where a transcript ends: a turn of our own making, or the turns of another conversation.

What every version of the client sends was measured: one chain, each line hanging on the one before it, later than all
others in the file, no uuid twice, no call without its result. The words of blocks stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sessgit.agents.claude.cells import message_key
from sessgit.agents.claude.lines import BODY_TYPES, blocks, is_name, is_prompt, parsed, tool_results
from sessgit.agents.claude.writer.transcript import compact
from sessgit.agents.line import Line
from sessgit.agents.values import NewTurn, Seam
from sessgit.errors import SessgitError
from sessgit.model import canonical
from sessgit.model.conversation.session import Session

SYNTHETIC = "<synthetic>"
"""What the client calls the model of an answer that no model gave."""
_LAST_MOMENT = 253_402_300_799_000
"""The end of the year 9999, behind which no time can be written."""
_NAMED = ("sourceToolAssistantUUID",)
"""The keys, besides the parent's, by which a line names another one."""


def seam(
    turns: Iterable[Sequence[Line]], left: Iterable[Sequence[Line]], last: Sequence[Line], pending: Sequence[Line]
) -> Seam:
    """The seam of a file where the head's turns have these lines, and those that rewinds left behind the other ones;
    `last` is the body of the head's last turn and `pending` what stands at the end of the file.

    Raises SessgitError where no line has a uuid: then no client can go on there.
    """
    latest, taken = _met(turns)
    later, others = _met(left)
    aside = others - taken
    last_moment, waiting = _met([pending])
    latest, taken = max(latest, later, last_moment), taken | others | waiting
    leaf = next((line.uuid for line in reversed(last) if _is_chained(line)), "")
    own = {line.uuid for line in last} - {""}
    for line in pending:
        # A compaction of what was left behind is none of the head's.
        begins = line.is_boundary and line.text("logicalParentUuid") not in aside
        if _is_chained(line) and (line.parent in own or begins):
            leaf = line.uuid
            own.add(leaf)
    if not leaf:
        raise SessgitError("its last turn has no line to continue from", "No client would resume it.")
    return Seam(leaf, latest, frozenset(taken - {""}))


def _met(turns: Iterable[Sequence[Line]]) -> tuple[int, set[str]]:
    """The latest time of the lines, and their uuids."""
    latest, met = 0, set[str]()
    for lines in turns:
        for line in lines:
            latest = max(latest, _moment(line))
            met.add(line.uuid)
    return latest, met


def told(at: Seam, key: Callable[[str], str], said: tuple[str, str], state: Session) -> NewTurn:
    """A prompt and an answer as one turn; `key` makes a uuid of a word."""
    common = _common(state)
    prompt, answer = key("prompt"), key("answer")
    lines = (
        {
            "parentUuid": at.leaf, "isSidechain": False, "userType": "external", **common, "type": "user",
            "message": {"role": "user", "content": said[0]}, "uuid": prompt, "timestamp": _time(at.latest + 1),
        },
        {
            "parentUuid": prompt, "isSidechain": False, "userType": "external", **common, "type": "assistant",
            "message": {
                "id": f"msg_{answer.replace('-', '')}", "type": "message", "role": "assistant", "model": SYNTHETIC,
                "content": [{"type": "text", "text": said[1]}], "stop_reason": "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 0, "output_tokens": 0},
            },
            "uuid": answer, "timestamp": _time(at.latest + 2),
        },
    )  # fmt: skip
    return NewTurn(prompt, [compact(line) for line in lines])


def _common(state: Session) -> dict[str, str]:
    """What the client writes in every line; the same on every machine."""
    said = {
        "cwd": state.project, "sessionId": state.agent_id, "version": state.agent_version, "gitBranch": state.git_branch
    }  # fmt: skip
    return {key: value for key, value in said.items() if value}


def grafted(at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str) -> list[NewTurn]:
    """The turns with these bodies, in their order, as turns of the session `agent_id` behind the seam.

    A line keeps its uuid where the file has none like it, else `key` makes one of it; and its time where that rises.
    """
    out, leaf, latest, taken = [], at.leaf, at.latest, set(at.taken)
    for number, body in enumerate(bodies):
        turn, renamed = list[bytes](), dict[str, str]()
        first = ""
        for place, line in enumerate(complete(parsed(body))):
            uuid = line.uuid
            if uuid in taken or not is_name(uuid):
                uuid = key(f"{number}.{place}.{uuid}")
            renamed[line.uuid] = uuid
            latest = max(latest + 1, _moment(line))
            turn.append(compact(_moved(line, uuid, leaf, _time(latest), agent_id, renamed)))
            taken.add(uuid)
            leaf, first = uuid, first or uuid
        out.append(NewTurn(first, turn))
    return out


def complete(body: Sequence[Line]) -> list[Line]:
    """The lines of a body that belong to the conversation, each call with its result and each result with its call.

    A message with a call that has no result goes as a whole. A compaction goes too: in another conversation it would
    stand for what came before it there.
    """
    kept, seen = list[Line](), set[str]()
    for line in body:
        data = line.data
        if data is None or line.type not in BODY_TYPES or data.get("isSidechain") or data.get("isCompactSummary"):
            continue
        if kept and is_prompt(line):  # a second copy of one: it would open a turn
            continue
        if not line.uuid or line.uuid not in seen:
            seen.add(line.uuid)
            kept.append(line)
    while True:
        fewer = _paired(kept)
        if len(fewer) == len(kept):
            return kept
        kept = fewer


def _paired(lines: Sequence[Line]) -> list[Line]:
    """The lines without those of messages with a call that no later line answers, and without other results."""
    called, answered = dict[str, str](), set[str]()
    again = set[int]()
    for number, line in enumerate(lines):
        results = [str(block.get("tool_use_id")) for block in tool_results(line)]
        if any(result not in called or result in answered for result in results):
            again.add(number)
            continue
        answered.update(results)
        for block in blocks(line):
            if line.type == "assistant" and block.get("type") == "tool_use":
                call = str(block.get("id"))
                if call in called:
                    again.add(number)
                else:
                    called[call] = message_key(line, number)
    broken = {message for call, message in called.items() if call not in answered}
    return [
        line
        for number, line in enumerate(lines)
        if number not in again and not (line.type == "assistant" and message_key(line, number) in broken)
    ]


def _moved(line: Line, uuid: str, parent: str, time: str, agent_id: str, renamed: Mapping[str, str]) -> dict[str, Any]:
    assert line.data is not None
    data = {key: value for key, value in line.data.items() if key != "forkedFrom"}
    data |= {"uuid": uuid, "parentUuid": parent, "timestamp": time}
    data |= {key: agent_id for key in ("sessionId", "session_id") if key in data}
    data |= {key: renamed[data[key]] for key in _NAMED if isinstance(data.get(key), str) and data[key] in renamed}
    return data


def _is_chained(line: Line) -> bool:
    return bool(line.uuid) and line.data is not None and not line.data.get("isSidechain")


def _moment(line: Line) -> int:
    """The line's time in milliseconds; 0 where it has none."""
    return round((canonical.seconds(line.text("timestamp")) or 0) * 1000)


def _time(moment: int) -> str:
    if moment > _LAST_MOMENT:
        raise SessgitError("a line of it is of the year 9999: nothing can come after it")
    return canonical.rfc3339(moment / 1000 + 0.0005)  # it is cut to milliseconds, and a float may lie just below
