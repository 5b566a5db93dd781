"""The frame of every command: the context it runs in, --json, the check of the store, and how its answer is printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import typer

from sessgit.cli import invocation, render
from sessgit.cli.arguments import options
from sessgit.errors import SessgitError

Needs = Literal["nothing", "store", "conversations"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command answers. The document and the lines are made only if they are printed."""

    document: Callable[[], Mapping[str, object]]
    """What --json prints."""
    lines: Iterable[str] = ()
    remarks: Iterable[str] = ()
    """What standard error says before the lines."""
    exit_code: int = 0
    notes: Iterable[str] = ()
    """What standard error says after the lines."""
    error: SessgitError | None = None
    """What went wrong after a part of the work was done: it is raised once that part is printed."""
    then: Callable[[], object] | None = None
    """What is done after the answer is printed."""


def command(
    name: str, *, needs: Needs = "nothing", reads: bool = False, has_json: bool = True
) -> Callable[[Callable[..., Answer | None]], Any]:
    """Make a function a command: it gets the invocation as its first argument, and its answer is printed.

    The function returns None if it has printed everything itself. `needs` is what must be there, else NotFoundError is
    raised; --json also answers for a store without conversations. If the command `reads` what is recorded, a recorder
    is started for events that wait.
    """

    def framed(run: Callable[..., Answer | None]) -> Any:
        @wraps(run)
        def called(*, as_json: bool = False, **arguments: Any) -> None:
            here = invocation.read()
            here.json = as_json
            if reads:
                here.record_waiting()
            if needs == "conversations" and not as_json:
                here.check_recorded()
            elif needs != "nothing":
                here.check_store()
            answer = run(here, **arguments)
            if answer is not None:
                _print(here, name, answer)

        own = inspect.signature(run, eval_str=True)
        last = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=options.Json)
        parameters = [*own.parameters.values()][1:] + [last] * has_json
        called.__signature__ = own.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called

    return framed


def damage(here: invocation.Invocation, found: Iterable[str]) -> Iterable[str]:
    """Return remarks about damaged cells; a document has them itself."""
    return () if here.json else [f"({one})" for one in found]


def _print(here: invocation.Invocation, name: str, answer: Answer) -> None:
    for remark in answer.remarks:
        render.tell(remark)
    if here.json:
        render.document(name, answer.document())
    else:
        lines = list(answer.lines)
        if lines:
            render.lines(here, lines)
    for note in answer.notes:
        render.tell(note)
    if answer.error is not None:
        raise answer.error
    if answer.then is not None:
        answer.then()
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)
