"""How a command speaks: plain text into a pipe, colours and a pager on a terminal, JSON, errors.

The only importer of rich, and only for a terminal: a command that is read by a program shall not wait for it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

from sessgit.cli.invocation import Invocation
from sessgit.errors import SessgitError
from sessgit.model import canonical
from sessgit.model.progress import Progress, no_progress

BROKEN_PIPE = 141
"""What a shell says of a program that wrote to a pipe which nobody reads any more; git leaves the same way."""

_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip
_SHOWN_AFTER = 1.0
_CODE_THEME = "ansi_dark"
_LONGEST_DRAWN = 100_000
"""Characters: drawing longer texts would take seconds."""
_PLAIN_WIDTH = 80
_COLOUR = re.compile(r"(\033\[[0-9;]*m)")
_answered: ContextVar[bool] = ContextVar("answered", default=False)
_FILLING = re.compile(r"(?: |\033\[[0-9;]*m)+$")


class Paint:
    """`paint("bold", text)`: the text in a style, or as it is where there are no colours."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        if not self._on or not text.strip():
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\033[{codes}m{text}\033[0m"


def lines(here: Invocation, text: Iterable[str]) -> None:
    """Prints lines that are longer than the screen through the pager, others as they are."""
    shown = [line.rstrip() for line in text]
    data = _harmless("".join(f"{line}\n" for line in shown))
    if here.terminal and len(shown) >= here.height and here.pager not in ("", "cat") and _paged(here.pager, data):
        return
    _put(data)


def raw(here: Invocation, parts: Iterable[bytes]) -> None:
    """Writes each part and a newline, byte for byte; on a terminal what could steer it is made harmless."""
    if here.terminal:
        lines(here, canonical.printable(b"\n".join(parts).decode("utf-8", "replace")).split("\n"))
        return
    with _writing():
        for part in parts:
            sys.stdout.buffer.write(part)  # one may be as long as all else in memory: there is no copy of it
            sys.stdout.buffer.write(b"\n")
        sys.stdout.buffer.flush()


def data(parts: Iterable[bytes]) -> None:
    """Writes the parts to standard output, byte for byte."""
    with _writing():
        for part in parts:
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()


def markdown(source: str, columns: int) -> list[str]:
    """Markdown as it looks on a terminal with colours, in lines of so many columns; the source where it is too long."""
    from rich.markdown import Markdown

    return _drawn(source, lambda text: Markdown(text, code_theme=_CODE_THEME, hyperlinks=False), columns)


def code(source: str, language: str) -> list[str]:
    """The lines of a program or a document, highlighted for a terminal with colours; none is cut or wrapped."""
    from rich.syntax import Syntax

    def highlighted(text: str) -> Any:
        found = Syntax(text, language, theme=_CODE_THEME).highlight(text)
        found.rstrip()
        return found

    return _drawn(source, highlighted, None)


def document(command: str, content: Mapping[str, object]) -> None:
    """Print a command's answer as one JSON object; `schema` names the command and the version of its keys."""
    _answered.set(True)
    write(json.dumps({"schema": f"sessgit.{command}/v1", **content}, indent=2) + "\n")


def begin() -> None:
    """Note that this process has printed no document yet."""
    _answered.set(False)


def _error_document(message: str, hint: str, exit_code: int) -> None:
    """Under --json, print the error on standard output too, on one line, unless a document is there already."""
    words = sys.argv[1:]
    if "--json" not in (words[: words.index("--")] if "--" in words else words) or _answered.get():
        return
    value = {"message": message, "hint": hint or None, "exit_code": exit_code}
    with suppress(SessgitError):
        write(json.dumps({"schema": "sessgit.error/v1", "error": value}) + "\n")


def write(data: str) -> None:
    """Writes to standard output what a terminal may see; leaves in silence where nobody reads it any more."""
    _put(_harmless(data))


def _harmless(data: str) -> str:
    """The text without what steers a terminal, but for colours: whoever made it should have seen to that."""
    pieces = _COLOUR.split(data)
    return "".join(piece if number % 2 else canonical.printable(piece) for number, piece in enumerate(pieces))


def _put(data: str) -> None:
    with _writing():
        sys.stdout.write(data)
        sys.stdout.flush()


def tell(text: str) -> None:
    """A remark that is no part of the output."""
    with suppress(OSError):
        sys.stderr.write(f"{canonical.printable(text)}\n")


def plain(line: str) -> str:
    """Return a line of a page without colours."""
    return _COLOUR.sub("", line)


def remarks(page: Iterable[str]) -> None:
    """Remarks that are lines of a page: the colours in them are for standard output, and are left out."""
    for line in page:
        tell(plain(line))


def check_can_ask(here: Invocation, hint: str) -> None:
    """Raises UsageError where the user cannot be asked: nobody is at a terminal, or a program reads the output."""
    if here.json or sys.stdin is None or not sys.stdin.isatty():
        from sessgit.errors import UsageError

        why = "--json asks no questions" if here.json else "stdin is not a terminal"
        raise UsageError(f"cannot ask for confirmation: {why}.", hint)


def ask(question: str) -> bool:
    """Whether the person at the terminal says yes; nothing of it is in the output."""
    sys.stderr.write(f"{canonical.printable(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def usage_error(shown: str, message: str, exit_code: int) -> None:
    """Print words that no command understands: `shown`, with the usage of the command, on standard error."""
    with suppress(OSError):
        sys.stderr.write(canonical.printable(shown))
    _error_document(message, "", exit_code)


def error(problem: SessgitError, exit_code: int | None = None) -> None:
    """Print the message and what to do next on standard error."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    paint = Paint(coloured)
    with suppress(OSError):
        sys.stderr.write(f"{paint('bold red', 'Error:')} {_sentence(canonical.printable(str(problem)))}\n")
        if problem.hint:
            sys.stderr.write(f"{paint('bold', 'Hint:')} {canonical.printable(problem.hint)}\n")
    _error_document(str(problem), problem.hint, problem.exit_code if exit_code is None else exit_code)


@contextmanager
def progress(here: Invocation, what: str, *, unit: str = "") -> Iterator[Progress]:
    """A bar on the terminal for work that takes longer than a second; called with what is done and what there is in
    all, in bytes where no other unit is named."""
    if not here.error_terminal:
        yield no_progress
        return
    from time import monotonic

    bar: Any = None
    began = monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and monotonic() - began > _SHOWN_AFTER and done < total:
            bar = _bar(unit)
            bar.start()
            bar.add_task(what, total=total)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total)
            if done >= total:  # another one may follow
                bar.stop()
                bar = None

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def _writing() -> Iterator[None]:
    """Ends the program where nobody reads its output; raises SessgitError where that cannot be written."""
    try:
        yield
    except BrokenPipeError:
        forget_output()
        raise SystemExit(BROKEN_PIPE) from None
    except OSError as error:
        forget_output()
        raise SessgitError(f"the output cannot be written: {error.strerror}", "Is the disk full?") from error


def forget_output() -> None:
    """Lets what is still to be written go nowhere: Python would complain once more when it closes the file."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _drawn(source: str, made: Callable[[str], Any], columns: int | None) -> list[str]:
    from io import StringIO

    from rich.console import Console
    from rich.theme import Theme

    text = canonical.printable(source)
    if len(text) > _LONGEST_DRAWN:
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
        console.print(made(text), soft_wrap=columns is None)
    except RecursionError:
        return text.split("\n")
    return [_trimmed(line) for line in out.getvalue().strip("\n").split("\n")]


def _trimmed(line: str) -> str:
    """The line without the spaces that fill it up to the width, and without a style that holds nothing else."""
    shown = _FILLING.sub("", line)
    return f"{shown}\033[0m" if shown and "\033" in line[len(shown) :] else shown


def _sentence(text: str) -> str:
    """The text with a full stop, but for one that ends in a list."""
    return text if "\n" in text or text[-1:] in (".", "!", "?", "…", ")") else f"{text}."


def _bar(unit: str) -> Any:
    from rich import progress as rich
    from rich.console import Console

    counted = (rich.MofNCompleteColumn(), rich.TextColumn(unit))
    done = counted if unit else (rich.DownloadColumn(), rich.TransferSpeedColumn())
    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), *done, rich.TimeRemainingColumn(compact=True))
    return rich.Progress(*columns, console=Console(stderr=True), transient=True)


def _paged(pager: str, data: str) -> bool:
    """Whether the pager showed the text; one that is missing shows nothing."""
    import subprocess

    env = {**os.environ, "LESS": os.environ.get("LESS", "FRX"), "LESSCHARSET": "utf-8"}
    try:
        process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    assert process.stdin is not None
    # less handles it by itself, also while it has not read all, and the terminal is its own until it ends.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(data.encode("utf-8", "replace"))
            process.stdin.close()
        return process.wait() not in (126, 127)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """For the block, a terminal that is closed and a polite kill end the work as Ctrl-C does: what was made for it is
    taken away. Who is to ignore one of them, as with nohup, goes on doing so."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, _leave)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number] or signal.SIG_DFL)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
