"""`sessgit purge`: a value out of all that the store holds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from sessgit.cli import frame, render, text
from sessgit.cli.frame import YES, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import UsageError
from sessgit.model import canonical
from sessgit.purge import denied_values, scan
from sessgit.purge import purge as purges
from sessgit.purge.purge import PurgeProgress, PurgeResult
from sessgit.purge.scan import LikelySecret
from sessgit.store.layout import StorePaths
from sessgit.store.secret_filter import DeniedValue

_SHORTEST_ID = 4
_FIND_HINT = "`sessgit purge --find` lists them."


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
    cli: Invocation,
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
    _check(pattern, secret or lifted, regex=regex, is_query=find or listed)
    paths = StorePaths(cli.env.store)
    if listed:
        denied = denied_values.list_denied(paths)
        return Answer(
            {"denied": [frame.attributes(each, "id", "time", "lost") for each in denied]}, _denied_lines(cli, denied)
        )
    if lifted:
        value = denied_values.allow_value(paths, lifted)
        return Answer({"lifted": frame.attributes(value, "id", "time", "lost")}, [f"{value.id} is allowed again"])
    hint = "Pass --yes, or --dry-run to see what holds it."
    must_ask = not (yes or dry_run or find)
    if must_ask and pattern == "-":
        raise UsageError("cannot ask for confirmation: stdin holds the value.", hint)
    if must_ask:
        render.check_can_ask(cli, hint)
    progress = _progress(cli)
    likely = scan.find_likely_secrets(cli.store, progress.reading) if find or secret else []
    if find:
        secrets = [
            {**frame.attributes(each, "id", "kind", "length"), "lines": each.count, "addresses": list(each.places)}
            for each in likely
        ]
        return Answer({"secrets": secrets}, _secret_lines(cli, likely))
    chosen = denied_values.find_by_id(likely, secret, "likely secret", _FIND_HINT).value if secret else ""
    typed = chosen or (_typed() if pattern == "-" else pattern)
    if regex:
        values = purges.matching_values(cli.env.store, cli.env.homes, typed, progress.reading)
    else:
        values = purges.literal_value(typed)
    if must_ask or dry_run:
        report = purges.preview_purge(cli.store, values, cli.env.homes, progress)
        if must_ask and (report.had_value or purges.is_pending(cli.env.store)):
            page = [*_holders(cli, report), *_remaining_lines(cli, report), *_outside(cli, report, is_done=False)]
            frame.confirm([*page, "This rewrites history and cannot be undone."], "Purge it for good?")
    if not dry_run:
        report = purges.purge_values(cli.context, values, progress)
    return Answer(lambda: _result_json(cli, report), _result_lines(cli, report))


def _check(pattern: str, ident: str, *, regex: bool, is_query: bool) -> None:
    """Raise UsageError for what is wrong in any store, before the user is asked and a store is opened."""
    if regex and not pattern:
        raise UsageError("--regex needs a PATTERN.", "`sessgit purge --regex 'acct-[0-9]{8}'`")
    if not (pattern or ident or is_query):
        hint = "`sessgit purge -` reads the value from standard input, `sessgit purge --find` lists likely secrets."
        raise UsageError("no value given: name PATTERN or --secret ID.", hint)
    if ident and (len(ident) < _SHORTEST_ID or set(ident.lower()) - set("0123456789abcdef")):
        raise UsageError(f"“{ident}” is not an id.", f"An id has {_SHORTEST_ID} to 8 digits or letters from a to f.")
    if pattern and pattern != "-":
        purges.compile_expression(pattern) if regex else purges.literal_value(pattern)


def _typed() -> str:
    """Return standard input without the newline at its end."""
    data = sys.stdin.buffer.read() if sys.stdin is not None else b""
    try:
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise UsageError("the value is not UTF-8.", "The value must be text.") from None


def _progress(cli: Invocation) -> PurgeProgress:
    """Return what shows a bar for each step."""
    steps = ("Searching the store", "Rewriting", "Checking that it is gone")
    return PurgeProgress(*(render.progress(cli, step, "objects") for step in steps))


_FILES = 20
_TURNS = 12
_PLACES = 4


def _result_lines(cli: Invocation, result: PurgeResult) -> Iterator[str]:
    """Yield the page of a purge that was done, or would be."""
    if result.completed:
        yield "Finished an interrupted purge"
    if not result.had_value:
        yield "Nothing in the store holds it" + ("" if cli.dry_run else "; it is blocked from now on")
    elif cli.dry_run:
        yield from _holders(cli, result)
    else:
        sessions = text.counted(len(result.sessions), "conversation")
        yield f"{sessions} purged: {text.counted(result.commits, 'commit')} rewritten"
        yield from _hits(cli, result)
    if not cli.dry_run and result.objects:
        checked = f"Checked: none of {text.counted(result.objects, 'object')} and no file of the store holds it"
        yield from text.paragraph(cli, f"{checked}, as it is, JSON-escaped, URL-encoded, or in base64 or hex")
    yield from (f"a tag that held it was renamed to “{text.clean(new)}”" for _, new in result.tags)
    yield from _remaining_lines(cli, result)
    yield from _outside(cli, result, is_done=not cli.dry_run)


def _secret_lines(cli: Invocation, likely: Sequence[LikelySecret]) -> Iterator[str]:
    """Yield the list of likely secrets."""
    if not likely:
        yield "No likely secrets found"
        return
    rows = [
        (secret.id, secret.kind, f"{secret.length} characters", f"in {text.counted(secret.count, 'line')}")
        for secret in likely
    ]
    columns = (Column("yellow"), Column(), Column(right=True), Column())
    for secret, line in zip(likely, text.table(cli, columns, rows), strict=True):
        yield line
        places = [cli.ident(name) + at + turn for name, at, turn in (place.partition("@") for place in secret.places)]
        more = " and more: --json" if len(places) > _PLACES else ""
        yield from text.paragraph(cli, (", ".join(places[:_PLACES]) or "not on any branch") + more, indent=10)
    yield "Remove one: sessgit purge --secret ID"


def _denied_lines(cli: Invocation, values: Sequence[DeniedValue]) -> Iterator[str]:
    """Yield the list of values that are kept out of the store."""
    if not values:
        yield "No purged values"
        return
    for value in values:
        lost = "no longer blocked, since the store's key is lost: purge it again" if value.lost else ""
        yield from text.field(cli, f"{cli.paint('yellow', value.id)}  ", [value.time, lost], between="  ")
    yield "The values themselves are not stored. Allow one again: sessgit purge --lift ID"


def _result_json(cli: Invocation, result: PurgeResult) -> dict[str, object]:
    """Return what `purge --json` prints."""
    return {
        "dry_run": cli.dry_run,
        **frame.attributes(result, "values", "commits", "objects", "remotes", "lines", "completed"),
        "found": result.had_value,
        "sessions": [{"id": hit.session, **frame.attributes(hit, "turns", "places")} for hit in result.sessions],
        "tags": [new for _, new in result.tags],
        "client_files": list(map(str, result.client)),
        "operation_id": result.operation or None,
    }


def _holders(cli: Invocation, preview: PurgeResult) -> Iterator[str]:
    """Yield the conversations and tags that hold the value."""
    sessions = text.counted(len(preview.sessions), "conversation")
    hold = "holds" if len(preview.sessions) == 1 else "hold"
    yield f"{sessions} {hold} it:" if preview.sessions else "It is not on any branch"
    yield from _hits(cli, preview)
    if preview.tags:
        yield f"  and the names of {text.counted(len(preview.tags), 'tag')}"


def _hits(cli: Invocation, result: PurgeResult) -> Iterator[str]:
    """Yield a block for each conversation: its turns, and the places in words."""
    for hit in result.sessions:
        turns = text.numbers("turn", hit.turns, _TURNS) + ": " if hit.turns else ""
        yield from text.field(cli, f"  {cli.paint('yellow', hit.session[:8])}  ", [turns + ", ".join(hit.places)])


def _remaining_lines(cli: Invocation, result: PurgeResult) -> Iterator[str]:
    """Long lines of a value that also occur elsewhere, none of which is the whole value."""
    if result.lines:
        occur = "line of it also occurs" if result.lines == 1 else "lines of it also occur"
        stay = "its own elsewhere, and stays" if result.lines == 1 else "their own elsewhere, and stay"
        hint = "To purge several values, use sessgit purge --regex."
        yield from text.paragraph(cli, f"{result.lines:,} long {occur} on {stay}. {hint}")


def _outside(cli: Invocation, result: PurgeResult, *, is_done: bool) -> Iterator[str]:
    """Yield the client's files and the remotes that hold a value."""
    if result.client:
        yield f"{'Still, these' if is_done else 'These'} files of the client hold it, and are not changed:"
        yield from (f"  {cli.shown(str(path))}" for path in result.client[:_FILES])
        if len(result.client) > _FILES:
            yield f"  and {len(result.client) - _FILES} more: --json lists all"
    if result.remotes:
        hold = "Remotes hold" if len(result.remotes) > 1 else "A remote holds"
        yield from text.paragraph(
            cli,
            f"{hold} it too: {', '.join(map(canonical.printable, result.remotes))}. sessgit push replaces its branches;"
            " the old objects stay in that repository until it is pruned.",
        )
