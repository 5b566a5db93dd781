"""`sessgit remote`: repositories on other machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.store.remote.remotes import Remote


@frame.command("remote")
def run(
    here: Invocation,
    action: Annotated[
        str, typer.Argument(metavar="add|remove", help="add or remove (default: list all remotes).")
    ] = "",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The remote's name, such as origin.", show_default=False)
    ] = "",
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Any URL or path that git clone accepts.", show_default=False)
    ] = "",
) -> Answer:
    """List, add or remove remotes.

    A remote is any git repository that git can push to, best an empty one, made with git init --bare, that only you can
    read. Nothing is sent before `sessgit push`. Remotes are not encrypted.
    """
    from sessgit.errors import UsageError
    from sessgit.store import store as stores
    from sessgit.store.remote import remotes

    if action != "add":
        here.check_store()
    if not action:
        found = remotes.list_remotes(here.store_path)
        return Answer(lambda: {"remotes": [_json(remote) for remote in found]}, _table(found))
    if action == "add" and name and url:
        if not here.has_store:
            stores.create_store(here.store_path)
        added = remotes.add_remote(here.store_path, name, _whole(here, url))
        return _changed(here, added, f"Nothing is sent yet. To send everything: sessgit push {name} --all")
    if action in ("remove", "rm") and name and not url:
        removed = remotes.remove_remote(here.store_path, name)
        return _changed(here, removed, "The remote repository itself is unchanged.", removed=True)
    raise UsageError(
        f"cannot understand: remote {' '.join(filter(None, (action, name, text.clean(url))))}".rstrip(),
        "`sessgit remote add NAME URL`, `sessgit remote remove NAME`, or `sessgit remote`.",
    )


def _whole(here: Invocation, url: str) -> str:
    """The URL, and a folder with its whole path: git would take it from wherever it is called."""
    from sessgit.store.remote import remotes

    return here.folder(url) if url.strip() and remotes.is_path(url) and not url.startswith("-") else url


def _changed(here: Invocation, remote: Remote, remark: str, *, removed: bool = False) -> Answer:
    return Answer(lambda: _json(remote) | {"removed": removed}, text.wrap(remark, here.width) if here.terminal else ())


def _table(found: list[Remote]) -> Iterator[str]:
    if not found:
        yield "No remotes yet: sessgit remote add NAME URL"
    wide = max((len(remote.name) for remote in found), default=0)
    for remote in found:
        yield f"{remote.name.ljust(wide)}  {remote.shown}"


def _json(remote: Remote) -> dict[str, object]:
    return {"name": remote.name, "url": remote.shown}
