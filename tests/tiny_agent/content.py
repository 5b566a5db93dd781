from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessgit.agents.line import Line
from sessgit.agents.values import Relation, Said
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.turn import Turn
from tiny_agent.cells import describe


def texts(line: Line, number: int) -> Iterator[Said]:
    if line.message_text:
        yield Said("prompt" if line.is_prompt else "answer", line.message_text)


def parse_turn(body: Sequence[Line]) -> tuple[Turn, list[Piece]]:
    pieces = [
        Words("person" if line.is_prompt else "model", line.message_text, line.time, ordinal=number - 1, line=number)
        for number, line in enumerate(body, start=1)
        if line.message_text
    ]
    return describe(body), [*pieces]


def content_after(call: Call, file: str, before: str | None) -> str | None:
    return None


def left_by(call: Call, file: str) -> tuple[str | None, list[str]]:
    return None, []


def relation(a: Sequence[Line], b: Sequence[Line]) -> Relation:
    left, right = ([line.raw for line in body] for body in (a, b))
    shorter = min(len(left), len(right))
    return "same" if left == right else "part" if left[:shorter] == right[:shorter] else "different"


def comparable_parts(body: Sequence[Line]) -> dict[str, str]:
    return {"prompt": describe(body).prompt, "answer": describe(body).answer}
