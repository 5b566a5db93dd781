"""Runs the server: its state file, and when it exits."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import uvicorn

from sessgit.store import private_files
from sessgit.store.layout import StorePaths
from sessgit.web.access import delete_redirecting_files
from sessgit.web.app import Site


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


def serve(site: Site, listening: socket.socket, *, keep: bool) -> None:
    """Serve the page until the last tab has been closed for a minute, or until a signal ends it: Ctrl-C with
    KeyboardInterrupt, SIGTERM and SIGHUP with SystemExit. With `keep` it stays when the last tab is closed."""
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    access, file = site.access, StorePaths(site.place.env.store).web
    private_files.make_folder(file.parent)
    try:
        asyncio.run(_serve(site, listening, keep=keep))
    finally:
        delete_redirecting_files(access.spent_links(every=True))
        with suppress(OSError, ValueError, KeyError):
            if json.loads(file.read_bytes())["key"] == access.key:
                file.unlink()


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


async def _serve(site: Site, listening: socket.socket, *, keep: bool) -> None:
    server, access = Server(site), site.access
    state = {"port": access.port, "key": access.key, "pid": os.getpid(), "read_only": site.read_only}
    note = partial(private_files.write_private, StorePaths(site.place.env.store).web, json.dumps(state).encode())
    watching = asyncio.create_task(_watch(server, note, keep=keep))
    await server.serve(sockets=[listening])
    watching.cancel()


async def _watch(server: Server, note: Callable[[], object], *, keep: bool) -> None:
    """Note where the server is once it answers; delete files that opened a link; end the server when it is idle."""
    while not server.started:
        await asyncio.sleep(0.01)
    note()
    while not server.should_exit:
        await asyncio.sleep(1)
        delete_redirecting_files(server.site.access.spent_links())
        server.should_exit = server.should_exit or (server.site.live.is_idle and not keep)
