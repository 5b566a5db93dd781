"""`sessgit config`: the settings of the store."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.store.settings import Setting


@frame.command("config")
def run(
    here: Invocation,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="A setting, such as record.granularity.", show_default=False)
    ] = "",
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="The new value.", show_default=False)] = None,
    unset: Annotated[str, typer.Option("--unset", metavar="KEY", help="Restore the default.")] = "",
) -> Answer:
    """Show or change the settings.

    record.granularity is "turn", or "cell" to commit after each tool result too. record.redact replaces secrets.
    record.fsync syncs each commit to the disk.

    record.include and record.exclude are lists of globs, such as '["~/private/*", "/srv/secret"]'. A project is
    recorded if it matches the first list, or that is empty, and does not match the second. A glob is an absolute
    path, or begins with ~/ or *. It matches a folder, everything below it and its worktrees; * matches / too. If one
    of the two lists is invalid, nothing is recorded.

    archive.after archives a conversation this long after its last line. undo.keep is how long undo can restore what
    a command removed. Both are a number with h, d or w, such as 90d; "" is never for the first, forever for the second.

    sync.include is what push sends if you name nothing: globs, and labels as "label:NAME". project.map says which
    folder here stands for a folder of another machine: project.map./home/anna/code /Users/anna/src.

    prices are US dollars for a million tokens: prices.MODEL "{input = 5, output = 25, cache_read = 0.5, cache_write =
    6.25}".
    """
    from sessgit.errors import UsageError
    from sessgit.store import settings
    from sessgit.store.layout import StorePaths

    beside, has_store = StorePaths(here.store_path), here.has_store  # raises where the store is another user's
    if unset and (key or value is not None):
        raise UsageError("--unset takes no KEY and VALUE.", f"`sessgit config --unset {unset}`")
    if unset or value is not None:
        wanted = None if value is None else _parsed(value)
        settings.check_change(beside, unset or key, wanted)  # so that a mistake creates no store
        here.create_store()
        settings.change_setting(beside, unset or key, wanted)
        changed = [
            one
            for one in settings.list_settings(here.settings, settings.read_document(beside))
            if one.key == (unset or key)
        ]
        return Answer(lambda: _json(changed), remarks=_remarks(here, key))
    found = settings.list_settings(here.settings, settings.read_document(beside) if has_store else {})
    if key:
        found = [setting for setting in found if setting.key == key or setting.key.startswith(f"{key}.")]
        if not found and key not in settings.TABLES:
            raise UsageError(f"there is no setting “{key}”.", "`sessgit config` lists all settings.")
    if len(found) == 1 and found[0].key == key:
        return Answer(lambda: _json(found), [_shown(found[0].value)])
    wide = max((len(setting.key) for setting in found), default=0)
    notes = {True: render.Paint(here.colour)("dim", "  (default)"), False: ""}
    rows = ((canonical.printable(s.key.ljust(wide)), _shown(s.value), notes[s.is_default]) for s in found)
    return Answer(lambda: _json(found), (f"{key}  {value}{note}" for key, value, note in rows))


def _remarks(here: Invocation, key: str) -> Iterator[str]:
    if key == "record.granularity":
        yield "Run sessgit install again: a commit for each cell needs one more hook."
    if key == "record.redact" and not here.settings.record.redact:
        yield "From now on secrets are stored unredacted (undo: sessgit config --unset record.redact)."


def _json(found: Iterable[Setting]) -> dict[str, object]:
    return {"settings": {one.key: {"value": one.value, "default": one.is_default} for one in found}}


def _parsed(text: str) -> object:
    """The value as TOML reads it; what TOML does not know is a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text


def _shown(value: object) -> str:
    """A word as it is, anything else as TOML has it."""
    from sessgit.store import settings

    return canonical.printable(value) if value and isinstance(value, str) else settings.toml_value(value)
