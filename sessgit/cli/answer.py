"""Commands whose output goes to a model: run in this process, with everything that they print as one text.

The plugin's hook runs this module as `python -m sessgit.cli.answer` when a prompt is submitted, with the event on
standard input: if the setting `plugin.answer` is on, it answers some commands of the plugin in the place of the model.
If it prints nothing, the client goes on as without it.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import NamedTuple, NoReturn

from sessgit import agents, environment
from sessgit.cli import app
from sessgit.errors import SessgitError
from sessgit.model import humanize
from sessgit.store.layout import StorePaths
from sessgit.store.settings import load_settings

_MOST_LINES = 40
"""What a conversation can take in without another word: the model repeats it."""


class Captured(NamedTuple):
    """What a command printed, on standard output and standard error in the order in which it did, and its exit code."""

    text: str
    exit_code: int


def run(words: Sequence[str]) -> Captured:
    """Run `sessgit WORDS…` and return what it printed."""
    output, argv = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="replace", write_through=True), sys.argv
    sys.argv = ["sessgit", *words]
    code: object = 0
    try:
        with redirect_stdout(output), redirect_stderr(output):
            app.main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.argv = argv
    output.seek(0)
    return Captured(output.read(), code if isinstance(code, int) else 1)


def brief(words: Sequence[str]) -> NoReturn:
    """Print what `shortened` returns and exit with 0: the client shows less than that of a command that fails."""
    text = shortened(words)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stdout.write(text)
    sys.exit(0)


def shortened(words: Sequence[str]) -> str:
    """Return at most 40 lines of what a command prints, errors included, then the command that prints all."""
    lines = run(words).text.rstrip("\n").split("\n")
    shown = lines if len(lines) <= _MOST_LINES else lines[:_MOST_LINES]
    if len(lines) > len(shown):
        command = " ".join(map(humanize.quote_for_shell, ["sessgit", *_addressed(words)]))
        shown = [*shown, f"… {len(lines) - len(shown):,} more lines: {command}"]
    return "".join(f"{line}\n" for line in shown)


def _addressed(words: Sequence[str]) -> list[str]:
    """Return the words with the session that was the current one: for another terminal it may be another one."""
    from sessgit.cli import operands

    session = operands.addressed()
    if session and len(words) == 1 and words[0] in ("log", "show"):
        return [*words, session]
    return [f"{session}{word}" if word.startswith("@") else word for word in words]


def main() -> None:
    """Print what makes the client show the answer; nothing for another prompt, or whatever goes wrong."""
    with suppress(SessgitError, OSError, ValueError, RecursionError):
        env, event = environment.read(os.environ), json.load(sys.stdin.buffer)
        plugin = agents.client(env.homes).agent.plugin
        question = plugin.question(event) if isinstance(event, dict) else None
        if question is None or not load_settings(StorePaths(env.store)).plugin.answer:
            return
        os.chdir(question.cwd)
        os.environ.update(question.environment)
        sys.stdout.write(plugin.answer(shortened(question.words)))


if __name__ == "__main__":
    main()
