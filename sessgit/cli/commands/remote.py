"""`sessgit remote`: repositories on other machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import options

if TYPE_CHECKING:
    from sessgit.store.remote.remotes import Remote


def run(
    action: Annotated[
        str, typer.Argument(metavar="add|remove", help="add or remove (default: list all remotes).")
    ] = "",
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The remote's name, such as origin.", show_default=False)
    ] = "",
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Any URL or path that git clone accepts.", show_default=False)
    ] = "",
    as_json: options.Json = False,
) -> None:
    """List, add or remove remotes.

    A remote is any git repository that git can push to, best an empty one, made with git init --bare, that only you can
    read. Nothing is sent before `sessgit push`. Remotes are not encrypted.
    """
    from sessgit.errors import UsageError
    from sessgit.store import store as stores
    from sessgit.store.remote import remotes

    here = invocation.read()
    if action != "add":
        here.check_store()
    if not action:
        found = remotes.listed(here.store_path)
        if as_json:
            render.document("remotes/v1", [_json(remote) for remote in found])
        else:
            render.lines(here, _table(found))
    elif action == "add" and name and url:
        if not here.has_store:
            stores.create(here.store_path)
        added = remotes.add(here.store_path, name, _whole(here, url))
        _tell(here, added, f"Nothing is sent yet. To send everything: sessgit push {name} --all", as_json=as_json)
    elif action in ("remove", "rm") and name and not url:
        removed = remotes.remove(here.store_path, name)
        _tell(here, removed, "The remote repository itself is unchanged.", as_json=as_json, removed=True)
    else:
        raise UsageError(
            f"cannot understand: remote {' '.join(filter(None, (action, name, text.clean(url))))}".rstrip(),
            "`sessgit remote add NAME URL`, `sessgit remote remove NAME`, or `sessgit remote`.",
        )


def _whole(here: invocation.Invocation, url: str) -> str:
    """The URL, and a folder with its whole path: git would take it from wherever it is called."""
    from sessgit.store.remote import remotes

    return here.folder(url) if url.strip() and remotes.is_path(url) and not url.startswith("-") else url


def _tell(here: invocation.Invocation, remote: Remote, remark: str, *, as_json: bool, removed: bool = False) -> None:
    if as_json:
        render.document("remote/v1", _json(remote) | {"removed": removed})
    elif here.terminal:
        render.lines(here, text.wrap(remark, here.width))


def _table(found: list[Remote]) -> Iterator[str]:
    if not found:
        yield "No remotes yet: sessgit remote add NAME URL"
    wide = max((len(remote.name) for remote in found), default=0)
    for remote in found:
        yield f"{remote.name.ljust(wide)}  {remote.shown}"


def _json(remote: Remote) -> dict[str, object]:
    return {"name": remote.name, "url": remote.shown}
