"""What a browser needs to open the page: a socket, secrets, and the address. The command opens it while the server is
imported, whose first answer the socket waits for.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.errors import StoreError
from sessgit.store.layout import StorePaths

_LOOPBACK = "127.0.0.1"
_CODE_SECONDS = 600.0
_PATIENCE = 2.0
"""Seconds in which a running server answers."""


@dataclass
class Access:
    """The secrets of one server. `key` is for the user's other processes, which read it from the state file."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    clock: Callable[[], float] = time.monotonic
    _codes: dict[str, float] = field(default_factory=dict)
    """By each one-time code the time until which it is valid."""

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share the cookies of a host among its ports."""
        return f"sessgit-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values that the header Host may have."""
        return tuple(f"{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]"))

    def link(self) -> str:
        """Return the page's address with a new one-time code, which is valid for ten minutes."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = self.clock() + _CODE_SECONDS
        return self._link(code)

    def _link(self, code: str) -> str:
        return f"{self.address}/open?code={code}"

    def spent_links(self, *, every: bool = False) -> list[str]:
        """Return the links that were opened or have expired since the last call; with `every` all others too."""
        now = self.clock()
        spent = [code for code, until in self._codes.items() if every or until < now]
        for code in spent:
            del self._codes[code]
        return [self._link(code) for code in spent]

    def take_code(self, code: str) -> bool:
        """Return whether a code is valid; it is valid once."""
        given = next((known for known in self._codes if is_equal(known, code)), None)
        if given is None or self._codes[given] < self.clock():
            return False
        self._codes[given] = -1.0  # before any time of the clock
        return True


def is_equal(known: str, given: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(known.encode(), given.encode("utf-8", "replace"))


def running_link(store: Path, *, read_only: bool) -> str:
    """Return the address, with a new one-time code, of the page that another process serves with the same
    `read_only`; or "" if there is none."""
    try:
        state = json.loads(StorePaths(store).web.read_bytes())
        if state["read_only"] != read_only:
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


def delete_redirecting_files(links: Iterable[str]) -> None:
    """Delete the files that open these links."""
    for link in links:
        with suppress(OSError):
            _redirecting_path(link).unlink(missing_ok=True)


def _redirecting_path(link: str) -> Path:
    return Path(tempfile.gettempdir(), f"sessgit-web-{hashlib.sha256(link.encode()).hexdigest()[:32]}.html")
