"""`sessgit web`: the page."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path

from sessgit.cli import frame, render
from sessgit.cli.frame import EVERYWHERE, PROJECT, at_least_0, option
from sessgit.cli.invocation import Invocation
from sessgit.web import access as accesses


@frame.command("web", needs="conversations", reads=True)
def run(
    cli: Invocation,
    project: Path | None = PROJECT,
    everything: bool = EVERYWHERE,
    port: int = option("--port N", "The port (default: any free one).", callback=at_least_0),
    no_open: bool = option("--no-open", "Print the address instead of opening it."),
    read_only: bool = option("--read-only", "Serve nothing that changes the store."),
    keep: bool = option("--keep", "Keep running when the last tab is closed."),
) -> None:
    """Browse conversations in a web browser.

    Serves a page on this machine only and opens it. The address works once and in one browser; run the command again
    for another one: it opens the page that is already being served. The server exits a minute after the last tab is
    closed, or on Ctrl-C.
    """
    link = accesses.running_link(cli.env.store, read_only=read_only)
    if link:
        _open(link, no_open=no_open)
        return
    folder = "" if everything else cli.folder(project)
    listening = accesses.listen(port)
    access = accesses.Access(listening.getsockname()[1])
    _open(access.link(), no_open=no_open)
    if not no_open:
        render.tell(f"Serving {access.address} until the last tab is closed; Ctrl-C ends.")
    from sessgit.web import server  # while the browser starts
    from sessgit.web.app import Site
    from sessgit.web.reads import Place

    try:
        site = Site(Place(cli.env, os.environ, cli.cwd, folder), access, read_only=read_only)
        server.serve(site, listening, keep=keep)
    except (KeyboardInterrupt, SystemExit) as end:
        os._exit(getattr(end, "code", 130))  # without waiting for what is being read


def _open(link: str, *, no_open: bool) -> None:
    """Print the address, or open it by a file: other users can read the arguments of the browser's process."""
    if no_open:
        render.write(f"{link}\n")
        return
    if not webbrowser.open(accesses.redirecting_file(link).as_uri()):
        render.tell("Cannot open a browser. Open this address:")
        render.write(f"{link}\n")
