"""Lets only the page of this server's user reach it. A transcript is hostile input, and any page in the user's browser
can send requests to the loopback interface.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OWN_HEADER = "X-Sessgit"
"""A header that only a script of the same origin can send."""
MOST_BYTES = 64 * 1024
"""The largest body of a request."""
_CODE_SECONDS = 600.0
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NO_ACCESS = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>sessgit</title>
<link rel="icon" href="data:,"><h1>This page needs a new link</h1>
<p>Run <code>sessgit web</code> in a terminal: it opens the page.</p>
<p>If the page is open in another tab, <a href="">open this address again</a>.</p></html>"""
_ENTER = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>sessgit</title>
<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/"><a href="/">Continue</a></html>"""
"""Not a redirect: a browser does not send a SameSite=Strict cookie along a redirect from another site's link."""


@dataclass
class Access:
    """The secrets of one server. `key` is for the user's other processes, which read it from the state file."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    clock: Callable[[], float] = time.monotonic
    _codes: dict[str, float] = field(default_factory=dict)
    _links: dict[str, float] = field(default_factory=dict)

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
        self._codes[code] = self._links[code] = self.clock() + _CODE_SECONDS
        return self._link(code)

    def _link(self, code: str) -> str:
        return f"{self.address}/open?code={code}"

    def spent_links(self, *, every: bool = False) -> list[str]:
        """Return the links that were opened or have expired since the last call; with `every` all others too."""
        now = self.clock()
        spent = [code for code, until in self._links.items() if every or code not in self._codes or until < now]
        for code in spent:
            del self._links[code]
        return [self._link(code) for code in spent]

    def take_code(self, code: str) -> bool:
        """Return whether a code is valid; it is valid once."""
        given = next((known for known in self._codes if is_equal(known, code)), None)
        return given is not None and self._codes.pop(given) >= self.clock()


def is_equal(known: str, given: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(known.encode(), given.encode("utf-8", "replace"))


class Gate:
    """Passes on requests of the page itself and answers all others; adds the security headers to every response."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":

            async def send_guarded(message: Message) -> None:
                if message["type"] == "http.response.start":
                    MutableHeaders(scope=message).update(_HEADERS)
                await send(message)

            answer = self._answer(Request(scope)) or self.app
            await answer(scope, receive, send_guarded)

    def _answer(self, request: Request) -> Response | None:
        """Return the response to a request that is not passed on."""
        headers, path = request.headers, request.url.path
        if len(headers.getlist("host")) != 1 or headers["host"] not in self.access.hosts:
            return refusal(403, "unknown host")
        if path.startswith("/static/") and request.method in ("GET", "HEAD"):
            return None
        if path == "/open" and request.method == "GET":
            return self._enter(request.query_params.get("code", ""))
        if path == "/code" and request.method == "POST":
            return self._new_link(headers)
        if not is_equal(self.access.token, _cookies(headers).get(self.access.cookie, "")):
            return HTMLResponse(_NO_ACCESS, 401) if _wants_page(headers) else refusal(401, "no access")
        if request.method in ("GET", "HEAD"):
            return None
        return self._check_write(request.method, headers)

    def _enter(self, code: str) -> Response:
        if not self.access.take_code(code):
            return HTMLResponse(_NO_ACCESS, 401)
        response = HTMLResponse(_ENTER)
        response.set_cookie(self.access.cookie, self.access.token, httponly=True, samesite="strict", path="/")
        return response

    def _new_link(self, headers: Headers) -> Response:
        """Answer another `sessgit web` of the same user."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or "origin" in headers or not is_equal(self.access.key, key):
            return refusal(401, "no access")
        return JSONResponse({"link": self.access.link()})

    def _check_write(self, method: str, headers: Headers) -> Response | None:
        if method != "POST":
            return refusal(405, "method not allowed")
        if headers.getlist("origin") != [f"http://{headers['host']}"]:
            return refusal(403, "another origin")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return refusal(403, "another site")
        if headers.get("content-type", "").lower() != "application/json" or headers.get(OWN_HEADER) != "1":
            return refusal(415, "not a request of the page")
        return None


def refusal(status: int, message: str) -> Response:
    """Return an error as JSON."""
    return JSONResponse({"error": {"message": message, "hint": ""}}, status)


def _wants_page(headers: Headers) -> bool:
    return "text/html" in headers.get("accept", "")


def _cookies(headers: Headers) -> Mapping[str, str]:
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}
