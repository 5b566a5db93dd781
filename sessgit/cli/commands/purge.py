"""`sessgit purge`: a value out of all that the store holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.purge.purge import PurgeProgress, PurgeValues

_SHORTEST_ID = 4


@frame.command("purge", needs="store")
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    pattern: Annotated[
        str,
        typer.Argument(metavar="PATTERN", help="The value; - reads it from standard input.", show_default=False),
    ] = "",
    regex: Annotated[bool, typer.Option("--regex", help="PATTERN is a Python regular expression.")] = False,
    secret: Annotated[
        str,
        typer.Option("--secret", metavar="ID", help="Purge a likely secret that --find listed.", show_default=False),
    ] = "",
    find: Annotated[bool, typer.Option("--find", help="List likely secrets in the store, change nothing.")] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List purged values: ids and times, never the values.")
    ] = False,
    lifted: Annotated[
        str,
        typer.Option("--lift", metavar="ID", help="Allow a purged value again.", show_default=False),
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Show what holds the value, change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> Answer:
    """Remove a value from the whole history, for good.

    Rewrites every conversation, fork, archive, tag and rewind that holds the value, with [redacted:purged] in its
    place; the rest stays as it is. The value is never shown, recording, import and pull keep it out from then on, and a
    purge cannot be undone. The client's own files and remotes are not changed; those that hold the value are named.

    Your shell saves command lines in its history: `sessgit purge -` reads the value from standard input instead, up to
    its end, without the last newline. To continue an interrupted purge, run the same command again. A purged value
    stays forbidden, even if nothing held it, until --lift.
    """
    from sessgit.cli.pages import purge as page
    from sessgit.errors import UsageError
    from sessgit.purge import purge as purges

    _check(pattern, secret, lifted, find=find, listed=listed, regex=regex)
    if find or listed or lifted:
        return _told(here, lifted, find=find)
    hint = "Pass --yes, or --dry-run to see what holds it."
    if pattern == "-" and not (yes or dry_run):
        raise UsageError("cannot ask for confirmation: stdin holds the value.", hint)
    if not (yes or dry_run):
        render.check_can_ask(here, hint)
    with _watch(here) as watch:
        wanted = _wanted(here, pattern, secret, watch, regex=regex)
        told = None if yes and not dry_run else purges.preview_purge(here.store, wanted, here.config, watch)
    if told is not None and not dry_run and (told.found or purges.is_pending(here.store_path)):
        render.remarks(page.question(here, told))
        if not render.ask("Purge it for good?"):
            render.tell("Nothing was changed.")
            raise typer.Exit(1)
    if not dry_run:
        with _watch(here) as watch:
            told = purges.purge_values(here.store, here.index, wanted, here.config, here.now, watch)
    assert told is not None
    return Answer(lambda: page.as_json(told, dry_run=dry_run), page.lines(here, told, dry_run=dry_run))


def _check(pattern: str, secret: str, lifted: str, *, find: bool, listed: bool, regex: bool) -> None:
    """Raises UsageError for what no store could make right: before anybody is asked, and before one is opened."""
    from sessgit.errors import UsageError
    from sessgit.purge import purge as purges

    named = [
        name
        for name, given in (
            ("PATTERN", pattern), ("--secret", secret), ("--find", find), ("--list", listed), ("--lift", lifted)
        )
        if given
    ]  # fmt: skip
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} cannot be given together.", "Use one of them.")
    if regex and not pattern:
        raise UsageError("--regex needs a PATTERN.", "`sessgit purge --regex 'acct-[0-9]{8}'`")
    if not named:
        raise UsageError(
            "no value given: name PATTERN or --secret ID.",
            "`sessgit purge -` reads the value from standard input, `sessgit purge --find` lists likely secrets.",
        )
    for name in (one for one in (secret, lifted) if one):
        if len(name) < _SHORTEST_ID or set(name.lower()) - set("0123456789abcdef"):
            raise UsageError(f"“{name}” is not an id.", f"An id has {_SHORTEST_ID} to 8 digits or letters from a to f.")
    if pattern and pattern != "-":
        purges.compile_expression(pattern) if regex else purges.literal_value(pattern)


def _told(here: Invocation, lifted: str, *, find: bool) -> Answer:
    """Likely secrets, what is kept out, or that it is not any more."""
    from sessgit.cli.pages import purge as page
    from sessgit.purge import denied_values, likely_secrets
    from sessgit.store.layout import StorePaths

    if find:
        with _watch(here) as watch:
            likely = likely_secrets.find_likely_secrets(here.store, watch.reading)
        return Answer(lambda: {"secrets": page.found_json(likely)}, page.found(here, likely))
    if lifted:
        one = denied_values.allow_value(StorePaths(here.store_path), lifted)
        return Answer(lambda: {"lifted": page.kept_json(one)}, [f"{one.id} is allowed again"])
    every = denied_values.list_denied(StorePaths(here.store_path))
    return Answer(lambda: {"denied": [page.kept_json(one) for one in every]}, page.kept(here, every))


def _wanted(here: Invocation, pattern: str, secret: str, watch: PurgeProgress, *, regex: bool) -> PurgeValues:
    from sessgit.purge import purge as purges

    if secret:
        from sessgit.purge import likely_secrets

        every = likely_secrets.find_likely_secrets(here.store, watch.reading)
        return purges.literal_value(likely_secrets.find_by_id(every, secret).value)
    value = _typed() if pattern == "-" else pattern
    return (
        purges.matching_values(here.store_path, here.config, value, watch.reading)
        if regex
        else purges.literal_value(value)
    )


def _typed() -> str:
    """All of standard input, without the newline at its end."""
    from sessgit.errors import UsageError

    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError("the value is not UTF-8.", "The value must be text.") from None


@contextmanager
def _watch(here: Invocation) -> Iterator[PurgeProgress]:
    """A bar for each step, one after another: where a step begins, the bar of the one before it goes."""
    from contextlib import ExitStack

    from sessgit.model.progress import Progress, no_progress
    from sessgit.purge.purge import PurgeProgress

    shown = ""
    report: Progress = no_progress
    with ExitStack() as bar:

        def step(what: str) -> Progress:
            def told(done: int, total: int) -> None:
                nonlocal shown, report
                if shown != what:
                    bar.close()
                    shown, report = what, bar.enter_context(render.progress(here, what, unit="objects"))
                report(done, total)

            return told

        yield PurgeProgress(step("Searching the store"), step("Rewriting"), step("Checking that it is gone"))
