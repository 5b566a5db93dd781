"""A question argued from two sides, and brought to a conclusion. Run it: python examples/dialectic.py

Each side is a fork of the question and gathers for itself: insights on its pad, a decision with its evidence, and how
sure it is. Then both are brought back into the question, whose pad has what either found, and the tension between the
two is settled. The pad goes through the stages gathering, shaping, critiquing, synthesized. Models would argue; here a
script does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from sessgit import Session, Store

QUESTION = "Should the parser be written by hand?"
SIDES = {
    "by hand": {
        "measured": ("count lines", {"hand": 410, "generated": 95}),
        "insights": ["Its errors say what a person did wrong.", "It needs no tool to build."],
        "claim": "A parser by hand is the better one to use.",
        "sure": 0.7,
    },
    "generated": {
        "measured": ("change the grammar", {"hand": "2 hours", "generated": "5 minutes"}),
        "insights": ["The grammar is the documentation.", "A change of the grammar takes minutes."],
        "claim": "A generated parser is the better one to change.",
        "sure": 0.6,
    },
}


def argue(question: Session, name: str) -> Session:
    """One side, in a fork of its own."""
    side, given = question.fork(at=1, name=name), SIDES[name]
    operation, result = given["measured"]
    with side.turn(f"Argue that it should be {name}") as turn:
        with side.cell(operation, type="verification") as cell:
            cell.result = result
        for insight in given["insights"]:
            side.pad.add("insight", insight, source=cell.id)
        side.pad.add("claim", given["claim"])
        side.record_reasoning(
            given["claim"], kind="decision", evidence=[cell.id], options=list(SIDES), chosen=name,
            confidence=given["sure"],
        )  # fmt: skip
        turn.answer(f"{given['claim']} I am sure to {given['sure']:.0%}.")
    return side


def conclude(question: Session) -> None:
    """What both sides found stands on the question's pad by now."""
    pad = question.pad
    claims = pad.entries("claim")
    pad.stage("shaping")
    tension = pad.add("tension", "Better to use or better to change?", between=[claim.id for claim in claims])
    pad.passed("compression", "Use speaks for writing it, change for generating it.")
    pad.stage("critiquing")
    pad.add("counter", "The grammar has not changed for two years.")
    pad.resolve(tension.id, "It is used every day and changed once a year.")
    pad.stage("synthesized")
    pad.thesis("Write it by hand, and keep the grammar beside it as its documentation.")
    pad.confidence(0.8, "both sides measured")
    question.record_turn("So?", pad.entries("thesis")[0].text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "store", config=Path(folder) / "claude")
        question = store.create_session(folder, name="parser", labels=["dialectic"])
        question.record_turn(QUESTION, "Let two sides argue.")

        for name in SIDES:
            side = argue(question, name)
            print(f"{name:10}  {side.turns()[-1].answer}")
            for number, reason in side.reasoning():
                print(f"{'':10}  turn {number}, evidence: {len(reason.evidence)} cell of {len(side.cells())}")
            store.merge(side, into=question, mode="summary")

        conclude(question)
        state = question.state
        print(f"\n{QUESTION}  ({state.stage}, {state.confidence:.0%} sure)")
        for kind in ("insight", "claim", "tension", "counter", "thesis"):
            for entry in question.pad.entries(kind):
                print(f"  {kind:8}  {entry.text}")
        print(f"\nNext: {question.pad.next_step().what}")
        print("\nThe turns that led there:")
        for turn in question:
            print(f"  {turn.number}  {turn.prompt.splitlines()[0].replace(folder, 'FOLDER')[:60]}")
        store.close()


if __name__ == "__main__":
    main()
