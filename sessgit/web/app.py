"""The routes: static files, documents to read, events, and commands to run. No route takes a path of the disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from sessgit.errors import NotFoundError, SessgitError, UsageError
from sessgit.formats.template_files import read_template_file
from sessgit.web import commands, gate
from sessgit.web.access import Access
from sessgit.web.gate import Gate
from sessgit.web.live import HIDDEN_SECONDS, Live
from sessgit.web.reads import Place, Reader

if TYPE_CHECKING:
    from sessgit.web.details import Details

STATIC = Path(__file__).parent / "static"
_FILES = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.is_file()}
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_STATUS_BY_ERROR = {NotFoundError: 404, UsageError: 400}
_MOST_OPERATIONS = 30
_NUMBERS = ("turn", "first", "last", "number")
"""The parameters that are numbers."""
_Method = Callable[[], Callable[..., Any]]
"""Returns a method; called by the reader's thread, as it may import the method's module."""


class Site:
    """A server's parts, and its routes; with `read_only` there are none that change anything."""

    def __init__(self, place: Place, access: Access, *, read_only: bool = False) -> None:
        self.access = access
        self.place = place
        self.read_only = read_only
        self.reader = Reader(place)
        self.live = Live(place.env.store)
        self._writing = asyncio.Lock()

    @cached_property
    def _details(self) -> Details:
        """What the reader's thread imports when it is asked for: neither the start nor the first views need it."""
        from sessgit.web.details import Details

        return Details(self.reader)

    def app(self) -> Starlette:
        """Return the application."""
        documents: dict[str, tuple[_Method, tuple[str, ...]]] = {
            "/api/forest": (lambda: self.reader.forest, ()),
            "/api/conversation": (lambda: self.reader.conversation, ("address", "turn")),
            "/api/turns": (lambda: self.reader.turns, ("address", "first", "last")),
            "/api/turn": (lambda: self._details.turn_html, ("address", "turn")),
            "/api/diff": (lambda: self._details.diff, ("a", "b")),
            "/api/files": (lambda: self._details.files, ("address",)),
            "/api/search": (lambda: self._details.search, ("q", "project", "in", "label", "file", "days")),
        }
        answers: dict[str, Callable[[Request], Awaitable[Any]]] = {
            **{path: partial(self._read, *read) for path, read in documents.items()},
            "/api/answer": self._answer,
            "/api/operations": self._operations,
            "/api/here": self._here,
            "/api/image": self._image,
        }
        routes = [Route(path, _endpoint(answer)) for path, answer in answers.items()]
        routes += [
            Route(path, self._page)
            for path in ("/", "/search", "/s/{address}", "/d/{a}/{b}", "/why", "/pad/{address}", "/stats")
        ]
        routes += [Route("/api/events", self._events), Route("/static/{name:path}", _static)]
        if not self.read_only:
            routes.append(Route("/api/run", _endpoint(self._run), methods=["POST"]))
        return Starlette(
            routes=routes,
            middleware=[Middleware(Gate, self.access)],
            lifespan=self._lifespan,
            max_body_size=gate.MOST_BYTES,
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        await self.live.look()
        following = asyncio.create_task(self.live.follow())
        first_view = asyncio.create_task(self.reader.read(self.reader.forest))  # while the browser starts
        yield
        for task in (following, first_view):
            task.cancel()
            with suppress(Exception, asyncio.CancelledError):  # a page that needs it says what is wrong
                await task
        self.reader.close()

    async def _page(self, request: Request) -> Response:
        page = (STATIC / "page.html").read_text("utf-8")
        if data := _first_read(request.path_params.get("address", ""), request.url.path):
            hint = f'<link rel="preload" as="fetch" crossorigin href="{escape(data)}">'
            page = page.replace("<title>", f"{hint}\n<title>", 1)
        return HTMLResponse(page.replace("<html", "<html data-read-only", 1) if self.read_only else page)

    async def _read(self, method: _Method, names: Sequence[str], request: Request) -> Any:
        """Return what a method of the reader returns for the parameters of these names."""
        values = [_number(request, name) if name in _NUMBERS else request.query_params.get(name, "") for name in names]
        return await self.reader.read(lambda: method()(*values))

    async def _image(self, request: Request) -> Response:
        content, kind = await self._read(lambda: self._details.image, ("address", "turn", "number"), request)
        return Response(content, media_type=kind)

    async def _operations(self, request: Request) -> Any:
        return {"operations": await self.reader.read(self.reader.operations, _MOST_OPERATIONS)}

    async def _answer(self, request: Request) -> Any:
        """Return what a command that only reads prints with --json, and its line."""
        values = await self.reader.read(self.reader.short_values, dict(request.query_params))
        words = commands.question(str(values.get("command", "")), values)
        variables = self.place.variables
        env = {**variables, "SESSGIT_OFF": "1"} if self.read_only else variables  # a question records what is new
        outcome = await commands.run(words, self.place.cwd, env)
        problem = outcome.document.get("error")
        if problem or not outcome.document:
            status = 404 if outcome.exit_code == NotFoundError.exit_code else 409
            return _json({"error": problem or {"message": outcome.remarks, "hint": ""}}, status)
        return {"command": commands.command_line(words), "document": outcome.document}

    async def _here(self, request: Request) -> Any:
        """Note that a hidden tab is still open."""
        self.live.note_tab(HIDDEN_SECONDS)
        return {}

    async def _events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        stream = self.live.stream(int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else None)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _run(self, request: Request) -> Any:
        """Run a command, or its dry run, or with `show` only return its line."""
        wanted = await request.json()
        if not isinstance(wanted, dict) or not isinstance(wanted.get("values"), dict):
            raise UsageError("a command has a name and values.", "")
        values = await self.reader.read(self.reader.short_values, wanted["values"])
        dry_run = wanted.get("mode") == "dry-run"
        words = commands.arguments(str(wanted.get("command")), values, dry_run=dry_run)
        shown = {"command": commands.command_line(words), "has_dry_run": words[0] in commands.DRY_RUNS}
        if wanted.get("mode") == "show":
            return shown
        async with self._writing:
            before = {one["id"] for one in await self.reader.read(self.reader.operations, _MOST_OPERATIONS)}
            outcome = await commands.run(words, self.place.cwd, self.place.variables)
            after = await self.reader.read(self.reader.operations, _MOST_OPERATIONS)
        made = [one["id"] for one in after if one["id"] not in before and one["command"] == words[0]]
        return {
            **shown,
            "exit_code": outcome.exit_code,
            "document": outcome.document,
            "remarks": outcome.remarks,
            "operation_id": made[0] if made else None,
        }


def _endpoint(answer: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that sends a response, or a document as JSON; an error is a document too."""

    async def endpoint(request: Request) -> Response:
        try:
            answered = await answer(request)
            return answered if isinstance(answered, Response) else _json(answered)
        except SessgitError as error:
            status = _STATUS_BY_ERROR.get(type(error), 409)
            return _json({"error": {"message": str(error), "hint": error.hint}}, status)
        except ValueError:
            return gate.refusal(400, "not a request of the page")

    return endpoint


async def _static(request: Request) -> Response:
    """Return a file of the page. StaticFiles would load anyio's event loop for it, a tenth of the server's start."""
    name = request.path_params["name"]
    if name == "turn.css":
        return Response(read_template_file(name), media_type="text/css")
    if name not in _FILES:
        return Response(status_code=404)
    return Response(_FILES[name].read_bytes(), media_type=_MEDIA_TYPES.get(_FILES[name].suffix, "text/plain"))


def _first_read(address: str, path: str) -> str:
    """Return what the scripts of a page ask first, as they spell it, or "". The browser asks while it loads them."""
    if path.startswith("/s/"):
        name, _, place = address.partition("@")
        return f"/api/conversation?{urlencode({'address': name, 'turn': place.partition('.')[0] or '1'})}"
    return "/api/forest?" if path == "/" else ""


def _json(document: object, status: int = 200) -> Response:
    """Return a document in ASCII: a transcript can have half of a character, which UTF-8 cannot."""
    return Response(json.dumps(document, separators=(",", ":")), status, media_type="application/json")


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"“{text[:40]}” is not a turn", "A turn is a number.")
    return int(text)
