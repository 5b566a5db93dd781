"""The frame of every command: its options, the invocation it runs in, the check of the store, and its answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import typer

from sessgit.cli import invocation, options, render
from sessgit.cli.invocation import Invocation
from sessgit.errors import SessgitError, UsageError
from sessgit.model.frozen import frozen

commands: dict[str, Callable[..., None]] = {}
"""The commands whose modules are imported, by name."""
Needs = Literal["nothing", "store", "conversations"]


@frozen
class Answer:
    """What a command answers. A document that is a function is made only if it is printed, and so are the lines."""

    document: Mapping[str, object] | Callable[[], Mapping[str, object]]
    """What --json prints."""
    lines: Iterable[str] = ()
    remarks: Iterable[str] = ()
    """What standard error says before the lines."""
    exit_code: int = 0
    notes: Iterable[str] = ()
    """What standard error says after the lines; nothing with --json, as the document has it."""
    error: SessgitError | None = None
    """What went wrong after a part of the work was done: it is raised once that part is printed."""
    then: Callable[[], object] | None = None
    """What is done after the answer is printed."""


def command(
    name: str,
    *,
    needs: Needs = "nothing",
    reads: bool = False,
    excludes: Mapping[str, str] | None = None,
    requires: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Answer | None]], Any]:
    """Make a function a command: it gets the invocation as its first argument, and its answer is printed.

    The function returns None if it has printed everything itself; if it always does, the command has no --json. `needs`
    is what must be there, else NotFoundError is raised; --json also answers for a store without conversations. If the
    command `reads` what is recorded, a recorder is started for events that wait. `excludes` says which words cannot be
    combined with an option, `requires` which option another one needs: UsageError is raised before the command runs.
    """

    def framed(run: Callable[..., Answer | None]) -> Any:
        own = inspect.signature(run, eval_str=True)
        json = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=options.JSON, annotation=bool)
        listed = [*own.parameters.values()][1:] + [json] * (own.return_annotation is not None)
        parameters = list(map(_with_default, listed))

        @wraps(run)
        def called(*, as_json: bool = False, **arguments: Any) -> None:
            values = {**arguments, "as_json": as_json}
            changed = [each for each in parameters if values[each.name] != each.default.default]
            given = [word for each in changed for word in options.spellings(each.default)]
            for word in given:
                for other in (excludes or {}).get(word, "").split():
                    if other in given:
                        raise UsageError(f"{word} and {other} cannot be combined.", "Use one of the two.")
            for word, other in (requires or {}).items():
                if word in given and other not in given:
                    raise UsageError(f"{word} needs {other}.", f"`sessgit {name} --help` explains both.")
            cli = invocation.read()
            cli.json = as_json
            if reads:
                cli.record_waiting()
            if needs == "conversations" and not as_json:
                cli.check_recorded()
            elif needs != "nothing":
                cli.check_store()
            answer = run(cli, **arguments)
            if answer is not None:
                _print(cli, name, answer)

        called.__signature__ = own.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        commands[name] = called
        return called

    return framed


def _with_default(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return the parameter of a command with the default that its type says, unless its option has one."""
    declared = copy(parameter.default)
    if getattr(declared, "default", None) is options.BY_TYPE:
        declared.default = options.not_given(parameter.annotation)
    return parameter.replace(default=declared)


def attributes(value: object, *names: str) -> dict[str, object]:
    """Return attributes of an object as JSON has them: paths as text, tuples as lists."""
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def confirm(lines: Iterable[str], question: str, otherwise: str = "Nothing was changed.") -> None:
    """Ask the user at the terminal, and end the command unless the answer is yes."""
    for line in lines:
        render.tell(line)
    if not render.ask(question):
        render.tell(otherwise)
        raise typer.Exit(1)


def _print(cli: Invocation, name: str, answer: Answer) -> None:
    for remark in answer.remarks:
        render.tell(remark)
    if cli.json:
        render.document(name, answer.document() if callable(answer.document) else answer.document)
    else:
        lines = list(answer.lines)
        if lines:
            render.lines(cli, lines)
        for note in answer.notes:
            render.tell(note)
    if answer.error is not None:
        raise answer.error
    if answer.then is not None:
        answer.then()
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)
