"""`sessgit purge`: a value out of all that the store holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import YES, argument, option
from sessgit.errors import UsageError
from sessgit.model.progress import Progress, no_progress
from sessgit.store.layout import StorePaths

if TYPE_CHECKING:
    from sessgit.purge.purge import PurgeProgress

_SHORTEST_ID = 4


@frame.command(
    "purge",
    needs="store",
    excludes={
        "--secret": "PATTERN",
        "--find": "PATTERN --secret",
        "--list": "PATTERN --secret --find",
        "--lift": "PATTERN --secret --find --list",
    },
)
def run(
    here: Invocation,
    pattern: str = argument("PATTERN", "The value; - reads it from standard input."),
    regex: bool = option("--regex", "PATTERN is a Python regular expression."),
    secret: str = option("--secret ID", "Purge a likely secret that --find listed."),
    find: bool = option("--find", "List likely secrets in the store, change nothing."),
    listed: bool = option("--list", "List purged values: ids and times, never the values."),
    lifted: str = option("--lift ID", "Allow a purged value again."),
    dry_run: bool = option("-n, --dry-run", "Show what holds the value, change nothing."),
    yes: bool = YES,
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
    from sessgit.purge import denied_values, likely_secrets
    from sessgit.purge import purge as purges

    _check(pattern, secret or lifted, regex=regex, is_query=find or listed)
    paths = StorePaths(here.env.store)
    if listed:
        denied = denied_values.list_denied(paths)
        return Answer({"denied": [page.denied_json(each) for each in denied]}, page.denied(here, denied))
    if lifted:
        value = denied_values.allow_value(paths, lifted)
        return Answer({"lifted": page.denied_json(value)}, [f"{value.id} is allowed again"])
    hint = "Pass --yes, or --dry-run to see what holds it."
    must_ask = not (yes or dry_run or find)
    if must_ask and pattern == "-":
        raise UsageError("cannot ask for confirmation: stdin holds the value.", hint)
    if must_ask:
        render.check_can_ask(here, hint)
    with _progress(here) as progress:
        likely = likely_secrets.find_likely_secrets(here.store, progress.reading) if find or secret else []
        if find:
            return Answer({"secrets": page.secrets_json(likely)}, page.secrets(here, likely))
        values = _values(
            here, pattern, likely_secrets.find_by_id(likely, secret).value if secret else "", regex, progress
        )
        report = purges.preview_purge(here.store, values, here.env.homes, progress) if must_ask or dry_run else None
    if report is not None and must_ask and (report.had_value or purges.is_pending(here.env.store)):
        frame.confirm(page.question(here, report), "Purge it for good?")
    if not dry_run:
        with _progress(here) as progress:
            report = purges.purge_values(here.context, values, progress)
    assert report is not None
    return Answer(lambda: page.as_json(report, dry_run=dry_run), page.lines(here, report, dry_run=dry_run))


def _check(pattern: str, ident: str, *, regex: bool, is_query: bool) -> None:
    """Raise UsageError for what is wrong in any store, before the user is asked and a store is opened."""
    from sessgit.purge import purge as purges

    if regex and not pattern:
        raise UsageError("--regex needs a PATTERN.", "`sessgit purge --regex 'acct-[0-9]{8}'`")
    if not (pattern or ident or is_query):
        hint = "`sessgit purge -` reads the value from standard input, `sessgit purge --find` lists likely secrets."
        raise UsageError("no value given: name PATTERN or --secret ID.", hint)
    if ident and (len(ident) < _SHORTEST_ID or set(ident.lower()) - set("0123456789abcdef")):
        raise UsageError(f"“{ident}” is not an id.", f"An id has {_SHORTEST_ID} to 8 digits or letters from a to f.")
    if pattern and pattern != "-":
        purges.compile_expression(pattern) if regex else purges.literal_value(pattern)


def _values(here: Invocation, pattern: str, secret: str, regex: bool, progress: PurgeProgress) -> tuple[str, ...]:
    from sessgit.purge import purge as purges

    value = secret or (_typed() if pattern == "-" else pattern)
    if regex:
        return purges.matching_values(here.env.store, here.env.homes, value, progress.reading)
    return purges.literal_value(value)


def _typed() -> str:
    """Return standard input without the newline at its end."""
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError("the value is not UTF-8.", "The value must be text.") from None


@contextmanager
def _progress(here: Invocation) -> Iterator[PurgeProgress]:
    """Show a bar for each step, one after another: the next one ends the one before."""
    from sessgit.purge.purge import PurgeProgress

    current = ""
    report: Progress = no_progress
    with ExitStack() as bar:

        def step(name: str) -> Progress:
            def progress(done: int, total: int) -> None:
                nonlocal current, report
                if current != name:
                    bar.close()
                    current, report = name, bar.enter_context(render.progress(here, name, unit="objects"))
                report(done, total)

            return progress

        yield PurgeProgress(step("Searching the store"), step("Rewriting"), step("Checking that it is gone"))
