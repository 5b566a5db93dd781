"""A headless Firefox, driven by its own protocol, Marionette: a message is `LENGTH:JSON`."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE, until

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox") or ""
needed = [pytest.mark.browser, pytest.mark.skipif(not PROGRAM, reason="no Firefox: install firefox-esr")]
ENTER, ESCAPE = "\ue006", "\ue00c"
"""Keys, as WebDriver writes them."""


class Firefox:
    """A tab: commands are those of WebDriver."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._stream = self._socket.makefile("rb")
        self._numbers = itertools.count(1)
        self._read()
        self.ask("WebDriver:NewSession", capabilities={})

    def ask(self, command: str, **values: object) -> Any:
        data = json.dumps([0, next(self._numbers), command, values]).encode()
        self._socket.sendall(b"%d:%s" % (len(data), data))
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def _read(self) -> Any:
        length = b""
        while (one := self._stream.read(1)) != b":":
            length += one
        return json.loads(self._stream.read(int(length)))

    def goto(self, address: str) -> None:
        self.ask("WebDriver:Navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        return self.ask("WebDriver:ExecuteScript", script=f"return ({expression})", args=[])["value"]

    def wait(self, selector: str) -> None:
        """Wait until an element is there."""
        until(lambda: self.evaluate(f"document.querySelector({json.dumps(selector)}) !== null"))

    def press(self, keys: str) -> None:
        """Press keys one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("WebDriver:PerformActions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


@contextmanager
def started(profile: Path) -> Iterator[Firefox]:
    """A Firefox with a new profile."""
    profile.mkdir()
    (profile / "user.js").write_text('user_pref("marionette.port", 0);\n')
    command = [PROGRAM, "--headless", "--no-remote", "--marionette", "--profile", str(profile), "about:blank"]
    port = profile / "MarionetteActivePort"
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            until(lambda: port.exists() and port.read_text())
            tab = Firefox(int(port.read_text()))
            yield tab
            tab.close()
        finally:
            running.kill()
