"""How a command speaks: plain text into a pipe, colours and a pager on a terminal, JSON, errors.

The only importer of rich, and only for the progress bar: a command that is read by a program shall not wait for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sessgit.errors import SessgitError
from sessgit.model import canonical
from sessgit.ui.context import Context

BROKEN_PIPE = 141
"""What a shell says of a program that wrote to a pipe which nobody reads any more; git leaves the same way."""

_CODES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36",
}  # fmt: skip
_SHOWN_AFTER = 1.0


class Paint:
    """`paint("bold", text)`: the text in a style, or as it is where there are no colours."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, style: str, text: str) -> str:
        if not self._on or not text.strip():
            return text
        codes = ";".join(_CODES[word] for word in style.split())
        return f"\033[{codes}m{text}\033[0m"


def lines(here: Context, text: Iterable[str]) -> None:
    """Prints lines that are longer than the screen through the pager, others as they are."""
    shown = [line.rstrip() for line in text]
    data = "".join(f"{line}\n" for line in shown)
    if here.terminal and len(shown) >= here.height and here.pager not in ("", "cat") and _paged(here.pager, data):
        return
    write(data)


def document(name: str, value: object) -> None:
    """Prints one JSON object whose key tells what it is and in which version."""
    write(json.dumps({f"sessgit.{name}": value}, indent=2) + "\n")


def write(data: str) -> None:
    """Writes to standard output; leaves in silence where nobody reads it any more."""
    try:
        sys.stdout.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it closes the file at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(BROKEN_PIPE) from None


def tell(text: str) -> None:
    """A remark that is no part of the output."""
    with suppress(OSError):
        sys.stderr.write(f"{canonical.printable(text)}\n")


def error(problem: SessgitError) -> None:
    """The message and what to do next, on standard error."""
    coloured = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    paint = Paint(coloured)
    with suppress(OSError):
        sys.stderr.write(f"{paint('bold red', 'Error:')} {_sentence(canonical.printable(str(problem)))}\n")
        if problem.hint:
            sys.stderr.write(f"{paint('bold', 'Hint:')} {canonical.printable(problem.hint)}\n")


@contextmanager
def progress(here: Context, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal for work that takes longer than a second; called with bytes done and bytes in all."""
    if not here.error_terminal:
        yield lambda done, total: None
        return
    from time import monotonic

    bar: Any = None
    began = monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and monotonic() - began > _SHOWN_AFTER and done < total:
            bar = _bar()
            bar.start()
            bar.add_task(what, total=total)
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def _sentence(text: str) -> str:
    return text if text[-1:] in (".", "!", "?", "…", ")") else f"{text}."


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn(compact=True))
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _paged(pager: str, data: str) -> bool:
    """Whether the pager showed the text; one that is missing shows nothing."""
    env = {**os.environ, "LESS": os.environ.get("LESS", "FRX"), "LESSCHARSET": "utf-8"}
    try:
        process = subprocess.Popen(pager, shell=True, stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(data.encode("utf-8", "replace"))
        process.stdin.close()
    while True:
        with suppress(KeyboardInterrupt):  # less handles it by itself, and the terminal is its own until it ends
            return process.wait() not in (126, 127)
