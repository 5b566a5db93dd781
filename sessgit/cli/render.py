"""A command's output: plain text into a pipe, colours and a pager on a terminal, JSON, errors.

The only importer of rich, and only for a terminal, because its import takes longer than most commands.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

from sessgit.cli import text
from sessgit.cli.invocation import Invocation, Paint
from sessgit.errors import SessgitError
from sessgit.model import canonical
from sessgit.model.progress import Progress, no_progress

BROKEN_PIPE = 141
"""The exit code of a program that wrote to a closed pipe, as a shell reports it and git uses it."""

_SHOWN_AFTER = 1.0
"""Seconds after which a progress bar appears."""
_CODE_THEME = "ansi_dark"
_LONGEST_HIGHLIGHTED = 100_000
"""Characters; longer texts would take seconds."""
_PLAIN_WIDTH = 80
_COLOUR = re.compile(r"(\033\[[0-9;]*m)")
_document_printed: ContextVar[bool] = ContextVar("document_printed", default=False)
_shown_bars: list[Any] = []
"""The progress bar on the terminal, if there is one."""
_PADDING = re.compile(r"(?: |\033\[[0-9;]*m)+$")


def lines(cli: Invocation, page: Iterable[str]) -> None:
    """Print the lines, through the pager if they are more than the screen holds."""
    shown = [line.rstrip() for line in page]
    data = _harmless("".join(f"{line}\n" for line in shown))
    if (
        cli.terminal.shows_output
        and len(shown) >= cli.terminal.height
        and cli.terminal.pager not in ("", "cat")
        and _paged(cli.terminal.pager, data)
    ):
        return
    _put(data)


def raw(cli: Invocation, parts: Iterable[bytes]) -> None:
    """Write each part and a newline, byte for byte; on a terminal without control characters."""
    if cli.terminal.shows_output:
        lines(cli, canonical.printable(b"\n".join(parts).decode("utf-8", "replace")).split("\n"))
    else:
        data(piece for part in parts for piece in (part, b"\n"))


def data(parts: Iterable[bytes]) -> None:
    """Write the parts to standard output, byte for byte."""
    with _writing():
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


def markdown(source: str, columns: int) -> list[str]:
    """Return Markdown as coloured lines of at most so many columns; the source lines if it is too long."""
    from rich.markdown import Markdown

    return _highlighted(source, lambda text: Markdown(text, code_theme=_CODE_THEME, hyperlinks=False), columns)


def code(source: str, language: str) -> list[str]:
    """Return the lines of code with colours; none is cut or wrapped."""
    from rich.syntax import Syntax

    def highlight(text: str) -> Any:
        highlighted = Syntax(text, language, theme=_CODE_THEME).highlight(text)
        highlighted.rstrip()
        return highlighted

    return _highlighted(source, highlight, None)


def document(command: str, content: Mapping[str, object]) -> None:
    """Print a command's answer as one JSON object; `schema` names the command and the version of its keys."""
    _document_printed.set(True)
    write(json.dumps({"schema": f"sessgit.{command}/v1", **content}, indent=2) + "\n")


def begin() -> None:
    """Note that this process has printed no document yet."""
    _document_printed.set(False)


def _error_document(problem: SessgitError) -> None:
    """With --json, print the error as one line of JSON on standard output, unless a document was printed already."""
    options = sys.argv[1 : sys.argv.index("--") if "--" in sys.argv else None]
    if "--json" not in options or _document_printed.get():
        return
    value = {"message": str(problem), "hint": problem.hint or None, "exit_code": problem.exit_code}
    with suppress(SessgitError):
        write(json.dumps({"schema": "sessgit.error/v1", "error": value}) + "\n")


def write(data: str) -> None:
    """Write to standard output without control characters; end the program if the output was closed."""
    _put(_harmless(data))


def _harmless(data: str) -> str:
    """Return the text without control sequences other than colours."""
    pieces = _COLOUR.split(data)
    return "".join(piece if number % 2 else canonical.printable(piece) for number, piece in enumerate(pieces))


def _put(data: str) -> None:
    remove_progress()
    with _writing():
        sys.stdout.write(data)
        sys.stdout.flush()


def tell(remark: str) -> None:
    """Print a line on standard error, without colours: those of a page are made for standard output."""
    remove_progress()
    with suppress(OSError):
        sys.stderr.write(f"{canonical.printable(text.without_colours(remark))}\n")


def can_ask(cli: Invocation) -> bool:
    """Return whether a question can be answered."""
    return not cli.json and sys.stdin is not None and sys.stdin.isatty()


def check_can_ask(cli: Invocation, hint: str) -> None:
    """Raise UsageError if no confirmation can be asked for: stdin is no terminal, or --json is given."""
    if not can_ask(cli):
        from sessgit.errors import UsageError

        why = "--json asks no questions" if cli.json else "stdin is not a terminal"
        raise UsageError(f"cannot ask for confirmation: {why}.", hint)


def ask(question: str) -> bool:
    """Return whether the user at the terminal answers yes to a question on standard error."""
    remove_progress()
    sys.stderr.write(f"{canonical.printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def error(problem: SessgitError) -> None:
    """Print the message and the hint on standard error."""
    remove_progress()
    paint = Paint(sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb")
    with suppress(OSError):
        sys.stderr.write(f"{paint('bold red', 'Error:')} {_sentence(canonical.printable(str(problem)))}\n")
        if problem.hint:
            sys.stderr.write(f"{paint('bold', 'Hint:')} {canonical.printable(problem.hint)}\n")
    _error_document(problem)


def progress(cli: Invocation, what: str, unit: str = "turns") -> Progress:
    """Return a function that reports progress, as amount done and total amount; without a `unit` they are bytes.

    Work that takes longer than a second gets a progress bar on the terminal. It is removed when the work is done, when
    other work gets one, or when anything is printed.
    """
    if not cli.terminal.shows_errors:
        return no_progress
    bar: Any = None
    began = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar not in _shown_bars and time.monotonic() - began > _SHOWN_AFTER and done < total:
            remove_progress()
            bar = _progress_bar(unit)
            bar.start()
            bar.add_task(what, total=total)
            _shown_bars.append(bar)
        if bar in _shown_bars:
            bar.update(bar.task_ids[0], completed=done, total=total)
            if done >= total:
                remove_progress()

    return report


def remove_progress() -> None:
    """Remove the progress bar, if there is one."""
    while _shown_bars:
        _shown_bars.pop().stop()


@contextmanager
def _writing() -> Iterator[None]:
    """End the program if standard output was closed; raise SessgitError if it cannot be written."""
    try:
        yield
    except BrokenPipeError:
        forget_output()
        raise SystemExit(BROKEN_PIPE) from None
    except OSError as error:
        forget_output()
        raise SessgitError(f"the output cannot be written: {error.strerror}", "Is the disk full?") from error


def forget_output() -> None:
    """Send buffered output to /dev/null: Python would report the same error again when it closes the file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _highlighted(source: str, renderable: Callable[[str], Any], columns: int | None) -> list[str]:
    from io import StringIO

    from rich.console import Console
    from rich.theme import Theme

    text = canonical.printable(source)
    if len(text) > _LONGEST_HIGHLIGHTED:
        return text.split("\n")
    out = StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        color_system="standard",
        width=columns or _PLAIN_WIDTH,
        theme=Theme({"markdown.code": "cyan", "markdown.code_block": "cyan"}),
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    try:
        console.print(renderable(text), soft_wrap=columns is None)
    except RecursionError:
        return text.split("\n")
    return [_without_padding(line) for line in out.getvalue().strip("\n").split("\n")]


def _without_padding(line: str) -> str:
    shown = _PADDING.sub("", line)
    return f"{shown}\033[0m" if shown and "\033" in line[len(shown) :] else shown


def _sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends in other punctuation or in a list."""
    return text if "\n" in text or text[-1:] in (".", "!", "?", "…", ")") else f"{text}."


def _progress_bar(unit: str) -> Any:
    from rich import progress as rich
    from rich.console import Console

    in_units = (rich.MofNCompleteColumn(), rich.TextColumn(unit))
    amounts = in_units if unit else (rich.DownloadColumn(), rich.TransferSpeedColumn())
    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        *amounts,
        rich.TimeRemainingColumn(compact=True),
    )
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)


def _paged(pager: str, data: str) -> bool:
    """Return whether the pager could be run and showed the text."""
    import subprocess

    remove_progress()
    env = {**os.environ, "LESS": os.environ.get("LESS", "FRX"), "LESSCHARSET": "utf-8"}
    try:
        process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    assert process.stdin is not None
    # less handles Ctrl-C itself, and owns the terminal until it ends.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(data.encode("utf-8", "replace"))
            process.stdin.close()
        return process.wait() not in (126, 127)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within the block, SIGTERM and SIGHUP raise SystemExit, so that temporary files are removed as after Ctrl-C.
    A signal that is ignored, as with nohup, stays ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _exit)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number] or signal.SIG_DFL)


def _exit(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
