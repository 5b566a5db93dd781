"""The frame of every command: how it declares its arguments, those that several share, what is checked before it runs,
and how its answer is printed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from sessgit.cli import invocation, render
from sessgit.cli.invocation import Invocation
from sessgit.errors import SessgitError, UsageError
from sessgit.model.frozen import frozen

commands: dict[str, Callable[..., None]] = {}
"""The commands whose modules are imported, by name."""
Needs = Literal["nothing", "store", "conversations"]
_MOST = 1 << 31
"""More than there ever is of anything, and less than a database cannot count."""
_COMPLETIONS = {"ADDRESS": "addresses", "OP": "operations", "REMOTE": "remotes"}
"""By metavar the function of `completion.py` that completes it."""
_AGO = re.compile(r"([0-9]{1,9})[ .]*(m|h|d|w|min|minutes?|hours?|days?|weeks?)([ .]+ago)?")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def option(spec: str, help_text: str, **settings: Any) -> Any:
    """Declare an option as --help shows it: `"-n, --limit N"`; a flag has no metavar.

    An option that is not given is "", 0, False, [] or None, as its type says, unless `settings` has a default.
    `complete` names the function of `completion.py` that completes its value; other settings are those of
    `typer.Option`. Without a help text it is hidden.
    """
    words = spec.replace(", ", " ").split()
    names = [word for word in words if word.startswith("-")]
    settings = _parameter("".join(words[len(names) :]), settings)
    return typer.Option(settings.pop("default"), *names, help=help_text, hidden=not help_text, **settings)


def argument(metavar: str, help_text: str, **settings: Any) -> Any:
    """Declare an argument; `required=True` says that it must be given. See `option` for the rest."""
    settings = _parameter(metavar, settings)
    return typer.Argument(settings.pop("default"), help=help_text, **settings)


def _not_given(annotation: Any) -> Any:
    """Return the value of an argument or option that is not given: "", 0, False, [], or None for all other types."""
    kind = getattr(annotation, "__origin__", annotation)
    return kind() if kind in (str, int, bool, list) else None


def _spellings(declared: Any) -> list[str]:
    """Return the words that name a parameter in messages: `-n` and `--limit`, or an argument's metavar."""
    return [*(getattr(declared, "param_decls", None) or [(declared.metavar or "").strip("[].")])]


def _parameter(metavar: str, settings: dict[str, Any]) -> dict[str, Any]:
    finder = settings.pop("complete", _COMPLETIONS.get(metavar.rstrip(".")))
    default = ... if settings.pop("required", False) else settings.pop("default", None)
    shown = {"metavar": metavar or None, "show_default": default not in (..., None)}
    return {"default": default, "autocompletion": finder and _completed_by(finder), **shown, **settings}


def _completed_by(finder: str) -> Callable[[str], object]:
    def complete(incomplete: str) -> object:
        from sessgit.cli import completion  # most runs complete nothing

        return getattr(completion, finder)(incomplete)

    return complete


def at_least_0(value: int | None) -> int | None:
    """Return the number, or None if none is given; raise BadParameter for a negative one."""
    if value is not None and value < 0:
        raise typer.BadParameter("must be 0 or more.")
    return value if value is None else min(value, _MOST)


def parse_time(text: str, now: float) -> float | None:
    """Return the time that a user typed, in seconds since 1970, or None for "".

    `30m`, `3h`, `2d`, `1w` (also `2 days ago`) count back from `now`; `today` and `yesterday` are midnights of the
    local time zone, and so is a date alone; a time without a zone is local. Raises UsageError for anything else.
    """
    if not text:
        return None
    word = " ".join(text.lower().split())
    ago = _AGO.fullmatch(word)
    try:
        if ago:
            return max(0.0, now - int(ago[1]) * _UNITS[ago[2][0]])
        if word in ("today", "yesterday"):
            day = datetime.fromtimestamp(now) - timedelta(days=word == "yesterday")
            return day.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
        return max(0.0, datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        hint = "Use 2d, 3h, 1w, today, yesterday, 2026-03-01 or 2026-03-01T10:00."
        raise UsageError(f"“{text}” is not a time", hint) from None


ADDRESS = argument("ADDRESS", "SESSION[@TURN] (default: the current session).")
ANY_ADDRESS = argument("ADDRESS", "SESSION[@TURN[.CELL]] (default: the current session).")
CELL_ADDRESS = argument("ADDRESS", "SESSION@TURN.CELL, or the cell's id.", required=True, complete="cells")
ADDRESSES = argument("ADDRESS...", "The conversations.")
FOLDER = argument("DIR", "A folder of the project (default: this folder).")
PATHS = argument("[-- PATH...]", "Files that a tool read or changed.")
REMOTE = argument("REMOTE", "The remote (default: the only one).")
EVERYWHERE = option("--all", "All projects, with headless and empty conversations.")
PROJECT = option("--project DIR", "Only the project at DIR.")
LABELS = option("--label LABEL", "Only with this label; may be repeated.")
AGENT = option("--agent NAME", "Only this agent: claude or codex.")
LIMIT = option("-n, --limit N", "Show at most N.", callback=at_least_0)
SINCE = option("--since WHEN", "Since then: 2d, 3h, yesterday, 2026-03-01.")
AT_OP = option("--at-op OP", "Show the state after operation OP, an id from `sessgit ops`.")
INTO = option("--into OURS", "The conversation to change (default: the current session).", complete="addresses")
NEW = option("--new [NAME]", "Create a new conversation instead of changing ours.")
DRY_RUN = option("-n, --dry-run", "Show what would be done, change nothing.")
YES = option("-y, --yes", "Do not ask for confirmation.")
JSON = option("--json", "Print JSON.")


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
        json = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=JSON, annotation=bool)
        parameters = [*own.parameters.values()][1:] + [json] * (own.return_annotation is not None)
        empty = {each.name: _not_given(each.annotation) for each in parameters}

        @wraps(run)
        def called(**typed: Any) -> None:
            arguments = {each: empty[each] if value is None else value for each, value in typed.items()}
            changed = [each for each in parameters if arguments[each.name] != empty[each.name]]
            given = [word for each in changed for word in _spellings(each.default)]
            for word in given:
                for other in (excludes or {}).get(word, "").split():
                    if other in given:
                        raise UsageError(f"{word} and {other} cannot be combined.", "Use one of the two.")
            for word, other in (requires or {}).items():
                if word in given and other not in given:
                    raise UsageError(f"{word} needs {other}.", f"`sessgit {name} --help` explains both.")
            cli = invocation.read()
            cli.json, cli.dry_run = arguments.pop("as_json", False), arguments.get("dry_run", False)
            if reads:
                cli.record_waiting()
            if needs == "conversations" and not cli.json:
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


class Light:
    """A mixin for commands and groups that parses simple values without pydantic."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            descriptor = getattr(param, "type_descriptor", None)
            if hasattr(param, "_runtime_param") and descriptor is not None and _is_simple(descriptor.annotation):
                param._runtime_param = _Reader()
        return params


class Command(Light, TyperCommand):
    """A command whose options may lack a value, if their metavar is in brackets, and that may take paths after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names = {name: param for param in self.params for name in param.opts if name.startswith("-")}
        if "--path" in names and "--" in args:  # else a path without an address before it would be taken for one
            place = args.index("--")
            args = args[:place] + [word for path in args[place + 1 :] for word in ("--path", path)]
        words: list[str] = []
        for word, following in pairwise([*args, "-"]):
            words.append(word)
            metavar = getattr(names.get(word), "metavar", None) or ""
            if metavar[:1] + metavar[-1:] == "[]" and following.startswith("-"):
                words.append("")
        return list(super().parse_args(ctx, words))


class _Reader:
    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if value is None or kind in (str, bool):
            return value
        if kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                raise typer.BadParameter(f"{value!r} is not a number.", ctx=ctx, param=param) from None
        if kind is Path:
            return Path(value)
        if get_origin(kind) is Literal:
            words = get_args(kind)
            if value in words:
                return value
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(words)}.", ctx=ctx, param=param)
        return list(value)


def _is_simple(kind: Any) -> bool:
    return kind in (str, int, float, bool, Path, list[str]) or get_origin(kind) is Literal
