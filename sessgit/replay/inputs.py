"""The prompts of a conversation, sent one after another to someone else, and the answers held against its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessgit.errors import SessgitError, UsageError
from sessgit.history.fork_point import ForkPoint
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.views import read_turn
from sessgit.model.program_input import GivenTurn, Saying
from sessgit.model.progress import Progress, no_progress
from sessgit.record.context import RecordContext
from sessgit.replay import compare, kept_result, model_runner
from sessgit.replay.compare import Outcome
from sessgit.replay.kept_result import KeptSession, NewSession
from sessgit.replay.model_runner import ModelAnswer, ModelCommand
from sessgit.store import layout
from sessgit.store.sqlite.rows import Branch, Row
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class PromptResult:
    """A prompt by its turn, what was answered then and now, and how the two differ; `why` says what went wrong, or why
    it was not sent."""

    turn: int
    prompt: str
    recorded: str
    answer: str
    outcome: Outcome
    why: str = ""
    diff: tuple[str, ...] = ()
    ms: float = 0


@dataclass(frozen=True, slots=True)
class PromptResults:
    """What came of all prompts; `left` counts those behind one that got no answer, which were not sent."""

    branch: Branch
    protocol: str
    answers: tuple[PromptResult, ...]
    left: int = 0
    kept: KeptSession | None = None


def send_prompts(
    world: RecordContext, found: ResolvedTarget, partner: ModelCommand, id: str = "", progress: Progress = no_progress
) -> PromptResults:
    """Sends the prompts up to the turn that is named, until one gets no answer. With an `id` each prompt and answer is
    kept at once in a session of that id, a fork of this one at its start; undo takes it back whole."""
    store, branch = world.store, found.branch
    rows = [row for row in world.index.turns(branch.name) if found.turn is None or row.turn <= found.turn]
    if not rows:
        raise UsageError(f"{layout.short_name(branch.name)} has no prompts to send", "`sessgit log` lists its turns.")
    address = f"{layout.short_name(branch.name)}{f'@{found.turn}' if found.turn is not None else ''}"
    kept = None
    if id:
        kept_result.check_can_keep(world, found.state)
    point = ForkPoint(found.session, 0, _start_commit(store, rows[0]))
    new = NewSession(id, kept_result.kept_name("inputs", *address.partition("@")[::2]), point, found.state)
    answers: list[PromptResult] = []
    try:
        for answer, said in _send_each(store, branch, rows, partner):
            progress(len(answers), len(rows))
            answers.append(answer)
            if id and answer.outcome != "skipped":
                kept = kept_result.add_turns(
                    world, kept or kept_result.begin_session(world, new), [_answer_turn(answer, said, world.now())]
                )
    finally:
        if kept is not None:
            kept_result.record_operation(world, kept, f"{len(answers)} inputs of {address}")
    return PromptResults(branch, partner.protocol, tuple(answers), len(rows) - len(answers), kept)


# Inside


def _send_each(
    store: Store, branch: Branch, rows: Sequence[Row], partner: ModelCommand
) -> Iterator[tuple[PromptResult, ModelAnswer]]:
    with model_runner.run_model(partner) as ask:
        for row in rows:
            try:
                told = read_turn(store, branch.tip, row).told
            except SessgitError as error:
                yield (
                    PromptResult(row.turn, row.prompt, "", "", "skipped", f"its turn is damaged: {error}"),
                    ModelAnswer(),
                )
                continue
            if not told.prompt.strip():
                yield PromptResult(row.turn, "", told.answer, "", "skipped", "its prompt has no text"), ModelAnswer()
                continue
            said = ask(told.prompt)
            if said.why:
                yield PromptResult(row.turn, told.prompt, told.answer, "", "failed", said.why, ms=said.ms), said
                return
            held = compare.compare_texts(told.answer, said.text)
            outcome: Outcome = "equal" if held.equal else "differs"
            yield PromptResult(row.turn, told.prompt, told.answer, said.text, outcome, "", held.diff, said.ms), said


def _start_commit(store: Store, first: Row) -> str:
    """The commit before the first turn."""
    parents = store.commit(first.commits[0]).parents
    return parents[0] if parents else first.commits[0]


def _answer_turn(answer: PromptResult, said: ModelAnswer, now: float) -> GivenTurn:
    parts = (Saying(f"No answer: {answer.why}"),) if answer.outcome == "failed" else ()
    return GivenTurn(answer.prompt, parts, answer.answer, said.model, now, now + said.ms / 1000, tokens=said.tokens)
