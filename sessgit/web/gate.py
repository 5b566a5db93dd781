"""Lets only the page of this server's user reach it. A transcript is hostile input, and any page in the user's browser
can send requests to the loopback interface.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sessgit.web.access import Access, is_equal

OWN_HEADER = "X-Sessgit"
"""A header that only a script of the same origin can send."""
MOST_BYTES = 64 * 1024
"""The largest body of a request."""
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
        if not is_equal(self.access.token, request.cookies.get(self.access.cookie, "")):
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
