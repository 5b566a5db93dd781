"""Runs the server: its socket, its state file, and when it exits."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

import uvicorn

from sessgit.errors import StoreError
from sessgit.model.frozen import frozen
from sessgit.store import private_files
from sessgit.store.layout import StorePaths
from sessgit.web.app import Site
from sessgit.web.gate import Access
from sessgit.web.reads import Place

_LOOPBACK = "127.0.0.1"
_PATIENCE = 2.0
"""Seconds in which a running server answers."""


@frozen
class Options:
    """`read_only` serves nothing that changes the store, `keep` keeps the server when the last tab is closed."""

    read_only: bool = False
    keep: bool = False


def running_link(store: Path, options: Options) -> str:
    """Return the address, with a new one-time code, of the page that another process serves with the same options;
    or "" if there is none."""
    try:
        state = json.loads(StorePaths(store).web.read_bytes())
        if state["read_only"] != options.read_only:
            return ""
        connection = http.client.HTTPConnection(_LOOPBACK, int(state["port"]), timeout=_PATIENCE)
        connection.request("POST", "/code", headers={"Authorization": f"Bearer {state['key']}"})
        answer = connection.getresponse()
        link = json.loads(answer.read())["link"] if answer.status == http.client.OK else ""
        connection.close()
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return ""
    return str(link)


def listen(port: int) -> socket.socket:
    """Return a listening socket of the loopback interface; port 0 is any. Raises StoreError if the port is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise StoreError(f"cannot listen on port {port}: {error}", "Leave out --port: any free one is used.") from error
    listening.listen(64)
    return listening


def redirecting_file(link: str) -> Path:
    """Write a file that opens the link, which only the user can read: a browser's arguments are visible to all. The
    server deletes it."""
    file = _redirecting_path(link)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">')
    return file


def _redirecting_path(link: str) -> Path:
    return Path(tempfile.gettempdir(), f"sessgit-web-{hashlib.sha256(link.encode()).hexdigest()[:32]}.html")


class Server(uvicorn.Server):
    """Ends the streams of events first when it shuts down, as it would wait for them; cancels other requests after a
    second, without a trace of each."""

    def __init__(self, site: Site) -> None:
        super().__init__(
            uvicorn.Config(
                site.app(),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="on",
                timeout_graceful_shutdown=1,
            )
        )
        self.site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.site.live.end()
        logging.getLogger("uvicorn.error").disabled = True
        await super().shutdown(sockets)


def serve(place: Place, listening: socket.socket, access: Access, options: Options) -> None:
    """Serve the page until the last tab has been closed for a minute, or until Ctrl-C."""
    file = StorePaths(place.env.store).web
    private_files.make_folder(file.parent)
    try:
        asyncio.run(_serve(place, listening, access, options))
    finally:
        _delete_redirecting_files(access.spent_links(every=True))
        with suppress(OSError, ValueError, KeyError):
            if json.loads(file.read_bytes())["key"] == access.key:
                file.unlink()


async def _serve(place: Place, listening: socket.socket, access: Access, options: Options) -> None:
    site = Site(place, access, read_only=options.read_only)
    server = Server(site)
    state = {"port": access.port, "key": access.key, "pid": os.getpid(), "read_only": options.read_only}
    note = partial(private_files.write_private, StorePaths(place.env.store).web, json.dumps(state).encode())
    watching = asyncio.create_task(_watch(server, site, note, keep=options.keep))
    await server.serve(sockets=[listening])
    watching.cancel()


def _delete_redirecting_files(links: Iterable[str]) -> None:
    for link in links:
        with suppress(OSError):
            _redirecting_path(link).unlink(missing_ok=True)


async def _watch(server: uvicorn.Server, site: Site, note: Callable[[], object], *, keep: bool) -> None:
    """Note where the server is once it answers; delete files that opened a link; end the server when it is idle."""
    while not server.started:
        await asyncio.sleep(0.01)
    note()
    while not server.should_exit:
        await asyncio.sleep(1)
        _delete_redirecting_files(site.access.spent_links())
        server.should_exit = server.should_exit or (site.live.is_idle and not keep)
