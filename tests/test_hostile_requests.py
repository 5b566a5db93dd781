"""`sessgit web` against odd requests, many tabs and kills."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import Shell
from test_web import serving
from transcripts import SESSION
from waiting import until

from sessgit import environment
from sessgit.store.layout import StorePaths
from sessgit.web import gate
from sessgit.web.access import Access
from sessgit.web.app import Site
from sessgit.web.reads import Place

pytestmark = pytest.mark.xdist_group("web")


@pytest.fixture
def told(sessgit: Shell) -> Shell:
    sessgit.recorded(sessgit.talk().turns("first prompt", "second prompt"))
    return sessgit


# Requests


class Asked:
    """An application without a server, asked in the form that servers use."""

    def __init__(self, sessgit: Shell) -> None:
        self.access = Access(4711)
        place = Place(environment.read(os.environ), os.environ, str(sessgit.project))
        self.app = Site(place, self.access).app()

    def ask(self, method: str, path: bytes, query: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
        sent: list[Any] = []
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": path.decode("utf-8", "replace"), "raw_path": path, "query_string": query, "root_path": "",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 4711),
        }  # fmt: skip

        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> dict[str, Any]:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return int(sent[0]["status"])

    @property
    def own_headers(self) -> list[tuple[bytes, bytes]]:
        cookie = f"{self.access.cookie}={self.access.token}"
        own = {"Host": "127.0.0.1:4711", "Cookie": cookie, "Origin": "http://127.0.0.1:4711", gate.OWN_HEADER: "1"}
        own["Content-Type"] = "application/json"
        return [(name.lower().encode(), value.encode()) for name, value in own.items()]


PATHS = (
    *("/", "/search", "/s/x", "/d/x/y", "/static/app.js", "/static/", "/open", "/code", "/api/forest"),
    *("/api/conversation", "/api/turns", "/api/turn", "/api/diff", "/api/search", "/api/operations"),
    *("/api/image", "/api/run"),
)
HEADERS = st.sampled_from((b"host", b"cookie", b"origin", b"last-event-id", b"x"))
NAMES = ("address", "a", "b", "first", "last", "turn", "number", "q", "project", "in", "code")
ODD = (SESSION, f"{SESSION}@1", f"{SESSION}@1.2", "@", "-1", "0", "1", "9" * 30, "../../etc", "%", '"', "a*")
VALUES = st.one_of(
    st.sampled_from(ODD),
    st.text(max_size=20),
)
QUERIES = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=4).map(
    lambda pairs: encoded("&".join(f"{name}={value}" for name, value in pairs))
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda one: st.lists(one, max_size=3)
)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.hypothesis
def test_no_request_breaks_the_application(told: Shell) -> None:
    asked = Asked(told)

    @given(
        st.sampled_from(("GET", "POST", "HEAD", "PUT", "OPTIONS")),
        st.one_of(st.sampled_from(PATHS), st.text(max_size=12).map("/{}".format)).map(encoded),
        QUERIES,
        st.lists(st.tuples(HEADERS, st.binary(max_size=20)), max_size=2),
        st.binary(max_size=40),
    )
    def holds(method: str, path: bytes, query: bytes, more: list[tuple[bytes, bytes]], body: bytes) -> None:
        assert asked.ask(method, path, query, [*asked.own_headers, *more], body) in (200, 400, 401, 403, 404, 405, 409)
        bare = [(name, value) for name, value in asked.own_headers if name != b"cookie"]
        status = asked.ask(method, path, query, bare, body)
        assert status in (401, 403, 404) or path.startswith(b"/static"), status

    holds()
    assert told.json("ops") == {"operations": []}


@pytest.mark.hypothesis
def test_no_values_break_a_command(told: Shell) -> None:
    asked = Asked(told)
    names = st.sampled_from(("fork", "merge", "pick", "rename", "edit", "archive", "undo", "delete", ""))
    keys = st.sampled_from(
        ("address", "at", "name", "theirs", "into", "mode", "conflicts", "new", "labels", "operation")
    )

    @given(names, st.dictionaries(keys, VALUES | JSON, max_size=4))
    def holds(name: str, values: dict[str, object]) -> None:
        body = json.dumps({"command": name, "mode": "show", "values": values}).encode()
        assert asked.ask("POST", b"/api/run", b"", asked.own_headers, body) in (200, 400)

    holds()


# Ends


def test_a_server_may_be_killed_at_any_moment(told: Shell) -> None:
    command = [sys.executable, "-m", "sessgit", "web", "--no-open", "--all"]
    for delay in (0.0, 0.2, 0.4, 0.8, None):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            if delay is None:
                assert "/open?code=" in server.stdout.readline()
            else:
                time.sleep(delay)
            server.kill()
    for leftover in (None, "{", "[]", '{"port": "x"}', '{"port": 1, "key": "k", "read_only": false}'):
        if leftover is not None:
            StorePaths(told.store).web.write_text(leftover)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None and server.stderr is not None
            assert "/open?code=" in server.stdout.readline()
            web, own = StorePaths(told.store).web, f'"pid": {server.pid}'
            until(lambda web=web, own=own: web.exists() and own in web.read_text())
            server.send_signal(signal.SIGINT)
            assert server.stderr.read() == ""
    assert told("verify").code == 0


# Load


def test_many_tabs_hear_of_a_burst(told: Shell) -> None:
    """Twenty that read, and one that does not, which holds up neither the others nor who records."""
    heard: list[list[bytes]] = [[] for _ in range(20)]
    with serving(told) as server:
        cookie = f"{server.access.cookie}={server.access.token}"
        request = f"GET /api/events HTTP/1.1\r\nHost: {server.host}\r\nCookie: {cookie}\r\n\r\n"
        sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(21)]
        for one in sockets:
            one.sendall(request.encode())

        def read(one: socket.socket, lines: list[bytes]) -> None:
            with one.makefile("rb") as stream, suppress(ConnectionResetError):  # a last event may meet the shut socket
                lines.extend(stream)

        threads = [threading.Thread(target=read, args=pair) for pair in zip(sockets, heard, strict=False)]
        for thread in threads:
            thread.start()
        until(lambda: all(b"event: ready\n" in lines for lines in heard))
        talk = told.talk().turns("first prompt", "second prompt")
        for number in range(50):
            told.recorded(talk.turns(f"more {number}"))
        last = [json.loads(server.get(f"/api/turns?address={SESSION}&first=52&last=52").text)["turns"][0]["title"]]
        assert last == ["more 49"]
        until(lambda: all(b"event: change\n" in lines for lines in heard))
        until(lambda: len({next(line for line in reversed(lines) if line.startswith(b"id: ")) for lines in heard}) == 1)
        for one in sockets:
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in threads:
            thread.join()
