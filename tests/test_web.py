"""`sessgit web`: what the page may be asked, and by whom. A real server answers real requests."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import hostile
import pytest
from browser import Elements
from kept import begins
from plain import run_git
from shell import Shell
from transcripts import OTHER, SESSION, subagent
from waiting import PATIENCE, until

from sessgit import environment
from sessgit.errors import StoreError
from sessgit.history.watch import RefState
from sessgit.store.index import Index, Row
from sessgit.store.layout import StorePaths
from sessgit.web import access, reads
from sessgit.web import server as servers
from sessgit.web.access import Access
from sessgit.web.app import STATIC, Site
from sessgit.web.live import Live
from sessgit.web.reads import Place


@dataclass
class Answered:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Page:
    """A running server, and requests to it as the page sends them; a header that is None is left out."""

    def __init__(self, access: Access) -> None:
        self.access, self.port = access, access.port
        self.host = f"127.0.0.1:{self.port}"

    def request(self, method: str, path: str, body: str | None = None, **changed: str | None) -> Answered:
        own: dict[str, str | None] = {"Host": self.host, "Cookie": f"{self.access.cookie}={self.access.token}"}
        if method != "GET":
            own |= {"Origin": f"http://{self.host}", "Sec-Fetch-Site": "same-origin"}
            own |= {"Content-Type": "application/json", "X-Sessgit": "1"}
        own |= {name.replace("_", "-"): value for name, value in changed.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in own.items():
            if value is not None:
                connection.putheader(name, value)
        data = None if body is None else body.encode()
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        done = Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        connection.close()
        return done

    def get(self, path: str, **changed: str | None) -> Answered:
        return self.request("GET", path, **changed)

    def run(self, command: str, how: str = "run", **values: object) -> Answered:
        return self.request("POST", "/api/run", json.dumps({"command": command, "mode": how, "values": values}))


@contextmanager
def serving(sessgit: Shell, *, read_only: bool = False) -> Iterator[Page]:
    listening = access.listen(0)
    own = Access(listening.getsockname()[1])
    site = Site(Place(environment.read(os.environ), os.environ, str(sessgit.project)), own, read_only=read_only)
    server = servers.Server(site)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
        yield Page(own)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive()


@begins
def told(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("first prompt", "second prompt", "third prompt"))


@pytest.fixture
def page(told: Shell) -> Iterator[Page]:
    with serving(told) as running:
        yield running


EVERY_READ = ("/", "/search", f"/s/{SESSION}", "/api/forest", "/api/events", "/api/operations", "/api/here")


def test_every_route_but_static_files_needs_the_token(page: Page) -> None:
    for path in EVERY_READ:
        assert page.get(path, Cookie=None).status == 401, path
        assert page.get(path, Cookie=f"{page.access.cookie}=x{page.access.token}").status == 401, path
        assert page.get(path, Cookie=f"sessgit={page.access.token}").status == 401, path
    assert page.run("archive", address=SESSION).status == 200
    for cookie in (None, f"{page.access.cookie}="):
        assert page.request("POST", "/api/run", "{}", Cookie=cookie).status == 401
    assert page.get("/static/app.js", Cookie=None).status == 200


def test_the_code_is_good_for_one_browser(page: Page) -> None:
    path = page.access.link().removeprefix(page.access.address)
    entered = page.get(path, Cookie=None)
    assert (entered.status, page.get(path, Cookie=None).status) == (200, 401)
    assert 'http-equiv="refresh" content="0;url=/"' in entered.text
    cookie, *attributes = entered.headers["set-cookie"].split("; ")
    assert cookie == f"sessgit-{page.port}={page.access.token}"
    assert {one.lower() for one in attributes} == {"httponly", "samesite=strict", "path=/"}
    assert page.get("/api/forest", Cookie=cookie).status == 200
    assert page.get("/open?code=", Cookie=None).status == 401


def test_a_code_ends(page: Page) -> None:
    old = Access(1, clock=iter([0.0, 601.0]).__next__)
    assert not old.take_code(old.link().partition("=")[2])


def test_the_host_is_this_server(page: Page) -> None:
    for host in (f"localhost:{page.port}", f"[::1]:{page.port}", page.host):
        assert page.get("/api/here", Host=host).status == 200
    for host in (
        "evil.example",
        f"evil.example:{page.port}",
        "127.0.0.1",
        "127.0.0.1:9",
        f"127.0.0.1:{page.port}0",
        "",
    ):
        for path in ("/api/here", "/static/app.js", page.access.link().removeprefix(page.access.address)):
            assert page.get(path, Host=host).status == 403, (host, path)


class OldConnection(http.client.HTTPConnection):
    """In which a request may come without a host."""

    _http_vsn_str = "HTTP/1.0"


@pytest.mark.parametrize("kind", [http.client.HTTPConnection, OldConnection])
def test_a_request_names_one_host(page: Page, kind: type[http.client.HTTPConnection]) -> None:
    for hosts in ([], [page.host, "evil.example"], ["evil.example", page.host], [page.host, page.host]):
        connection = kind("127.0.0.1", page.port)
        connection.putrequest("GET", "/api/here", skip_host=True)
        connection.putheader("Cookie", f"{page.access.cookie}={page.access.token}")
        for host in hosts:
            connection.putheader("Host", host)
        connection.endheaders()
        assert connection.getresponse().status in (400, 403), hosts
        connection.close()


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Origin": None}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:9"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": None}, 415),
        ({"X_Sessgit": None}, 415),
    ],
)
def test_only_the_page_itself_writes(told: Shell, page: Page, changed: dict[str, str | None], status: int) -> None:
    body = json.dumps({"command": "archive", "mode": "run", "values": {"address": SESSION}})
    answer = page.request("POST", "/api/run", body, **changed)
    assert answer.status == status
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert told.json("ls")["sessions"][0]["archived"] is False


def test_nothing_else_changes_anything(told: Shell, page: Page) -> None:
    before = told.out("ops", "--json"), told.out("log", "--json", SESSION)
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = page.request(method, "/api/run")
        assert answer.status in (404, 405), method
    for path in EVERY_READ[:4] + EVERY_READ[5:]:
        assert page.get(path).status == 200
        assert page.request("POST", path, "{}").status == 405
    assert (told.out("ops", "--json"), told.out("log", "--json", SESSION)) == before


def test_read_only_has_no_way_to_write(told: Shell) -> None:
    with serving(told, read_only=True) as page:
        assert page.run("archive", address=SESSION).status == 404
        assert page.run("archive", "show", address=SESSION).status == 404
        assert "<html data-read-only " in page.get("/").text


def test_read_only_records_nothing(told: Shell) -> None:
    before = run_git(told.store, "for-each-ref")
    told.keep(told.talk().turns("first prompt", "second prompt", "third prompt", "unrecorded"))
    with serving(told, read_only=True) as page:
        for command in ("show", "pad", "stats"):
            assert page.get(f"/api/answer?command={command}&address={SESSION}").status == 200
    assert run_git(told.store, "for-each-ref") == before
    with serving(told) as page:
        assert page.get(f"/api/answer?command=show&address={SESSION}").status == 200
    assert run_git(told.store, "for-each-ref") != before


def test_every_response_says_what_a_browser_may_do(page: Page) -> None:
    for path in (*EVERY_READ[:4], "/static/app.js", "/nowhere"):
        for cookie in ({}, {"Cookie": None}):
            headers = page.get(path, **cookie).headers
            assert headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self'; style-src 'self'"
            )
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cross-origin-opener-policy"] == "same-origin"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert headers["cache-control"] == "no-store"
            assert "server" not in headers


def test_no_route_leaves_the_static_folder(page: Page) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/..%2fapp.py",
        "/s/../etc",
    ):
        assert page.get(path).status in (400, 404), path


def test_a_body_has_a_limit(page: Page) -> None:
    assert page.run("rename", address=SESSION, name="n" * 100_000).status == 413


def test_values_are_no_options(told: Shell, page: Page) -> None:
    bad = [
        ("delete", {"address": SESSION}),
        ("purge", {"address": SESSION}),
        ("fork", {"address": "--run"}),
        ("fork", {"address": SESSION, "at": "1 --run"}),
        ("fork", {"address": SESSION, "name": "two\nlines"}),
        ("fork", {"address": [SESSION]}),
        ("merge", {"theirs": SESSION, "into": "--with=sh"}),
        ("merge", {"theirs": SESSION, "into": SESSION, "mode": "pick"}),
        ("rename", {"address": SESSION, "name": "--clear"}),
        ("edit", {"address": SESSION, "labels": "--description=x"}),
        ("undo", {"operation": "--yes"}),
        ("undo", {}),
    ]
    for command, values in bad:
        assert page.run(command, **values).status == 400, (command, values)
    for body in ("[]", "{}", "nonsense", '{"command": "archive", "values": []}'):
        assert page.request("POST", "/api/run", body).status == 400, body
    assert told.json("ops") == {"operations": []}


def test_a_value_is_quoted_for_a_shell_and_passed_as_it_is(told: Shell, page: Page) -> None:
    name = 'x\'; touch $(id) "&" --run'
    done = page.run("fork", address=SESSION, at="2", name=name).json
    assert done["command"] == """sessgit fork 5e551011 --at 2 '--name=x'"'"'; touch $(id) "&" --run'"""
    assert (done["exit_code"], done["document"]["turn"]) == (0, 2)
    assert told.json("ls")["sessions"][0]["name"] == name or told.json("ls")["sessions"][1]["name"] == name


def test_the_page_forks_names_and_undoes(told: Shell, page: Page) -> None:
    shown = page.run("fork", "show", address=SESSION, at="2").json
    assert shown == {"command": "sessgit fork 5e551011 --at 2", "has_dry_run": False}
    done = page.run("fork", address=SESSION, at="2").json
    fork = done["document"]["id"]
    assert done["document"]["resume"].endswith(f"claude --resume {fork}")
    assert [one["id"] for one in page.get(f"/api/conversation?address={SESSION}&turn=0").json["forks"]["2"]] == [fork]
    assert page.run("rename", address=fork, name="other way").json["document"]["name"] == "other way"
    assert page.run("edit", address=fork, labels="+review").json["document"]["labels"] == ["review"]
    merging = page.run("merge", "dry-run", into=fork, theirs=SESSION).json
    assert (merging["exit_code"], merging["operation_id"]) == (0, None)
    assert {"base", "ours", "theirs", "decisions"} <= merging["document"].keys()
    trial = page.run("undo", "dry-run", operation=done["operation_id"]).json
    assert trial["exit_code"] == 3 and "error" in trial["document"]
    archived = page.run("archive", address=SESSION).json
    undone = page.run("undo", operation=archived["operation_id"]).json
    assert undone["document"]["undone"] == archived["operation_id"]
    assert all(not one["archived"] for one in page.get("/api/forest").json["sessions"])


def test_a_conversation_opens_without_reading_its_turns(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many it has; those on the screen are then read, also if their lines are lost."""
    rows, turns_of = list[int](), Index.turns

    def turns(index: Index, branch: str, first: int = 1, last: int | None = None) -> list[Row]:
        found = turns_of(index, branch, first, last)
        rows.extend(row.turn for row in found)
        return found

    def lost(*_: object) -> None:
        raise StoreError("lost")

    monkeypatch.setattr(Index, "turns", turns)
    conversation = page.get(f"/api/conversation?address={SESSION}&turn=0").json
    assert (list(conversation["commits"]), conversation["turns"], rows) == (["3"], [], [1])  # of the family
    rows.clear()
    monkeypatch.setattr(reads, "_BLOCK", 2)
    conversation = page.get(f"/api/conversation?address={SESSION}&turn=1").json
    assert (list(conversation["commits"]), rows) == (["2", "3"], [1, 1, 2])
    rows.clear()
    monkeypatch.setattr(reads.turn_log, "read_turn", lost)
    found = page.get(f"/api/turns?address={SESSION}&first=2&last=3").json["turns"]
    assert [(turn["title"], turn["answer"]) for turn in found] == [("second prompt", ""), ("third prompt", "")]
    assert rows == [2, 3]


def test_what_the_page_reads_is_what_the_commands_say(told: Shell, page: Page) -> None:
    told.json("fork", SESSION, "--at", "2")
    forest = page.get("/api/forest").json
    assert forest["families"] == told.json("tree", "--all")["families"]
    listed = {one["id"]: one for one in told.json("ls", "--all")["sessions"]}
    assert [{key: listed[one["id"]][key] for key in one} for one in forest["sessions"]] == forest["sessions"]
    assert len(listed) == len(forest["sessions"])
    log = told.json("log", SESSION)
    same = ("turn", "commit", "event", "answer", "tools", "tokens", "cost_usd")
    turns = [{key: turn[key] for key in same} | {"title": turn["prompt"]} for turn in log["turns"]]
    read = page.get(f"/api/turns?address={SESSION}&first=1&last=9").json["turns"]
    assert [{key: turn[key] for key in (*same, "title")} for turn in read] == turns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reads, "_MOST_TURNS", 2)
        assert page.get(f"/api/turns?address={SESSION}&first=1&last=9").json["turns"] == read[:2]
    conversation = page.get(f"/api/conversation?address={SESSION}&turn=2").json
    assert conversation["session"] == log["session"]
    assert conversation["commits"] == {"3": log["turns"][2]["commit"]}
    assert conversation["turns"] == read
    assert (conversation["families"], conversation["sessions"]) == (forest["families"], forest["sessions"])
    found = page.get("/api/search?q=second").json
    assert {"query": "second"} | found == told.json("search", "second") | {"hits": found["hits"]}
    fork = forest["families"][0]["nodes"][1]["id"]
    compared = page.get(f"/api/diff?a={SESSION}&b={fork}").json
    assert compared.pop("titles").keys() == {"a", "b"}
    assert (compared.pop("last_a"), compared.pop("last_b")) == ("<p>About third prompt.</p>\n", "")
    assert compared == told.json("diff", SESSION, fork, "--code")
    missing = page.get("/api/conversation?address=nope&turn=1")
    assert (missing.status, missing.json["error"]["message"]) == (404, "no conversation starts with “nope”")


def test_a_title_is_cut_by_the_page_only(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("words " * 40 + "end\nanother line"))
    with serving(sessgit) as page:
        (turn,) = page.get(f"/api/turns?address={SESSION}&first=1&last=1").json["turns"]
    assert turn["title"] == "words " * 40 + "end"


def test_files_tells_which_were_written(sessgit: Shell) -> None:
    talk = sessgit.talk(cwd="/code").prompt("go").tool("Read", {"file_path": "/code/b.py"}, "x")
    talk.tool("Write", {"file_path": "/code/a.py", "content": "x\n"}).answer("done").stop_lines()
    sessgit.recorded(talk)
    with serving(sessgit) as page:
        assert page.get(f"/api/files?address={SESSION}").json == {"written": ["/code/a.py"]}


def test_a_hostile_turn_is_text(sessgit: Shell) -> None:
    texts = (hostile.MARKDOWN, "<svg onload=alert(1)>", "\x1b[31mred\x1b[0m \u202eltr", "[x](javascript:alert(1))")
    talk = sessgit.talk()
    for text in texts:
        talk.prompt(text).tool("Bash", {"command": text}, text).answer(text).stop_lines()
    sessgit.recorded(talk)
    with serving(sessgit) as page:
        for number in range(1, len(texts) + 1):
            shown = page.get(f"/api/turn?address={SESSION}&turn={number}").json["html"]
            assert not re.search(r"<(script|svg|img|iframe|style|form|base|object|embed|link|meta)\b", shown, re.I)
            assert not re.search(r"<[^>]*\s(on\w+|style|srcset?|formaction)\s*=", shown, re.I)
            assert {link["href"][:4] for link in Elements(shown).all("a")} <= {"http", "mail", "#tur"}
            assert "\x1b" not in shown and "\u202e" not in shown


def test_a_change_of_another_process_is_told(told: Shell, page: Page) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", page.port)
    cookie = f"{page.access.cookie}={page.access.token}"
    connection.request("GET", "/api/events", headers={"Cookie": cookie})
    stream = connection.getresponse()
    assert stream.getheader("content-type", "").startswith("text/event-stream")
    assert [stream.readline() for _ in range(4)] == [b"id: 0\n", b"event: ready\n", b"data: {}\n", b"\n"]
    told.out("rename", SESSION, "another name")
    event = [stream.readline() for _ in range(4)]
    assert event == [b"id: 1\n", b"event: change\n", b'data: {"branches": ["%s"]}\n' % SESSION.encode(), b"\n"]
    connection.close()
    resumed = http.client.HTTPConnection("127.0.0.1", page.port)
    resumed.request("GET", "/api/events", headers={"Cookie": cookie, "Last-Event-ID": "0"})
    stream = resumed.getresponse()
    assert [stream.readline() for _ in range(3)] == [b": resumed\n", b"\n", b"id: 1\n"]
    resumed.close()


def test_many_changes_need_no_more_memory_and_a_slow_tab_delays_none(
    told: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tab that reads nothing for 10,000 changes is told to read everything again; the others got each of them."""
    tips = itertools.count()
    monkeypatch.setattr("sessgit.web.live.RefPoller.may_have_moved", lambda poller: True)
    monkeypatch.setattr(
        "sessgit.web.live.read_ref_state",
        lambda store: RefState({"name": (f"{next(tips):040x}", False)}, {}, frozenset()),
    )

    async def follow() -> None:
        live = Live(told.store)
        await live.look()
        slow, read = live.stream(None), [0]

        async def read_all() -> None:
            async for event in live.stream(None):
                if "event: change" in event:
                    read[0] += 1
                    assert event.startswith(f"id: {read[0]}\n")

        await anext(slow)
        reading = asyncio.create_task(read_all())
        await asyncio.sleep(0)
        sizes = []
        for number in range(1, 10_001):
            await live.look()
            if number in (1_000, 10_000):
                sizes.append(tracemalloc.get_traced_memory()[0])
        assert sizes[1] < sizes[0] + 100_000
        assert await anext(slow) == "id: 10000\nevent: reset\ndata: {}\n\n"
        await asyncio.sleep(0.1)
        assert read[0] == 10_000
        live.end()
        await asyncio.wait_for(reading, PATIENCE)

    tracemalloc.start()
    try:
        asyncio.run(follow())
    finally:
        tracemalloc.stop()


def test_a_second_call_finds_the_first_server(told: Shell) -> None:
    store = told.store
    assert access.running_link(store, read_only=False) == ""
    with serving(told) as page:
        state = {"port": page.port, "key": page.access.key, "pid": 1, "read_only": False}
        StorePaths(store).web.write_text(json.dumps(state))
        link = access.running_link(store, read_only=False)
        assert page.get(link.removeprefix(page.access.address), Cookie=None).status == 200
        assert access.running_link(store, read_only=True) == ""
        for authorization in (None, "Bearer x", f"Bearer {page.access.token}", f"Basic {page.access.key}"):
            assert page.request("POST", "/code", Authorization=authorization, Origin=None).status == 401
        assert page.request("POST", "/code", Authorization=f"Bearer {page.access.key}").status == 401  # with an origin
    assert access.running_link(store, read_only=False) == ""


def test_the_command_serves_until_it_is_interrupted(told: Shell) -> None:
    command = [sys.executable, "-m", "sessgit", "web", "--no-open", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        address, _, path = first.stdout.readline().strip().partition("/open?")
        state = StorePaths(told.store).web
        until(state.exists)
        assert state.stat().st_mode & 0o777 == 0o600
        second = subprocess.run(command, capture_output=True, text=True, check=True)
        assert second.stdout.startswith(f"{address}/open?code=") and path not in second.stdout
        first.send_signal(signal.SIGINT)
    assert not state.exists()


def test_what_opens_the_browser_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = access.redirecting_file("http://127.0.0.1:1/open?code=x")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "url=http://127.0.0.1:1/open?code=x" in file.read_text()


def test_what_opened_the_browser_is_deleted(told: Shell, tmp_path: Path) -> None:
    """A BROWSER that only notes its address opens nothing: the file is there until its link is opened."""
    noted = tmp_path / "noted"
    opener = tmp_path / "opener"
    opener.write_text(f'#!/bin/sh\necho "$1" >> {noted}\n')
    opener.chmod(0o755)
    env = {**os.environ, "BROWSER": f"{opener} %s", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "sessgit", "web", "--all"]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as server:
        until(StorePaths(told.store).web.exists)
        subprocess.run(command, env=env, check=True)
        until(lambda: noted.exists() and len(noted.read_text().split()) == 2)
        first, second = (Path(address.removeprefix("file://")) for address in noted.read_text().split())
        link = first.read_text().partition("url=")[2].removesuffix('">')
        with urllib.request.urlopen(link) as entered:
            assert entered.status == 200
        until(lambda: not first.exists())
        assert second.exists()
        server.send_signal(signal.SIGINT)
    assert not second.exists()


def test_an_open_stream_ends_with_the_server_without_a_trace(told: Shell) -> None:
    command = [sys.executable, "-m", "sessgit", "web", "--no-open", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        link = server.stdout.readline().strip()
        until(StorePaths(told.store).web.exists)
        with urllib.request.urlopen(link) as entered:
            cookie = entered.headers["Set-Cookie"].split(";")[0]
        asked = urllib.request.Request(f"{link.partition('/open')[0]}/api/events", headers={"Cookie": cookie})
        with urllib.request.urlopen(asked) as events:
            assert events.readline() == b"id: 0\n"
            server.send_signal(signal.SIGINT)
            assert b"ready" in events.read()
        assert server.stderr.read() == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_waits_for_no_read_and_leaves_no_trace(told: Shell, number: int, code: int) -> None:
    slow = "import time; from sessgit.web.reads import Reader; Reader.operations = lambda *_: time.sleep(600)"
    command = [sys.executable, "-c", f"{slow}; from sessgit.__main__ import main; main()", "web", "--no-open", "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        link = server.stdout.readline().strip()
        state = StorePaths(told.store).web
        until(state.exists)
        with urllib.request.urlopen(link) as entered:
            cookie = entered.headers["Set-Cookie"].split(";")[0]
        connection = http.client.HTTPConnection(link.split("/")[2])
        connection.request("GET", "/api/forest", headers={"Cookie": cookie})
        assert connection.getresponse().read()
        connection.request("GET", "/api/operations", headers={"Cookie": cookie})
        time.sleep(0.2)  # it is being read
        server.send_signal(number)
        assert (server.wait(PATIENCE), server.communicate()) == (code, ("", ""))
        connection.close()
    assert not state.exists()


def test_the_page_asks_what_commands_answer(told: Shell, page: Page) -> None:
    """In the same form, and only commands that read."""
    talk = told.talk(OTHER).prompt("write it").tool("Write", {"file_path": "/code/a.py", "content": "a = 1\n"})
    told.recorded(talk.answer("done").stop_lines())
    told.out("pad", "insight", "tests first", "--into", OTHER)
    for values, words in (
        ({"command": "show", "address": OTHER}, ["show", OTHER]),
        ({"command": "why", "file": "/code/a.py", "address": OTHER}, ["why", "/code/a.py", OTHER]),
        ({"command": "pad", "address": OTHER}, ["pad", OTHER]),
        ({"command": "stats", "address": OTHER, "by": "tool"}, ["stats", OTHER, "--by", "tool"]),
        ({"command": "stats", "by": "day"}, ["stats", "--by", "day"]),
    ):
        answered = page.get(f"/api/answer?{urlencode(values)}").json
        answered["document"].pop("schema")
        assert answered["document"] == told.json(*words)
        assert answered["command"] == " ".join(["sessgit", *words])
    for values, status in (
        ({"command": "why", "file": "nothing.py", "address": OTHER}, 404),
        ({"command": "why", "file": "--help"}, 400),
        ({"command": "pad", "address": "--help"}, 400),
        ({"command": "stats", "by": "--all"}, 400),
        ({"command": "delete", "address": OTHER}, 400),
        ({"command": "gc"}, 400),
    ):
        assert page.get(f"/api/answer?{urlencode(values)}").status == status, values


def test_search_takes_the_filters_of_the_command(told: Shell, page: Page) -> None:
    talk = told.talk(OTHER).prompt("first of another").tool("Write", {"file_path": "/code/a.py", "content": "a\n"})
    told.recorded(talk.answer("done").stop_lines())
    told.out("edit", OTHER, "--label", "+review")

    def found(**values: str) -> list[str]:
        return [hit["address"] for hit in page.get(f"/api/search?{urlencode(values)}").json["hits"]]

    assert sorted(found(q="first")) == [f"{SESSION}@1", f"{OTHER}@1"]
    assert found(q="first", label="review") == [f"{OTHER}@1"]
    assert found(q="first", file="a.py") == found(file="a.py") == [f"{OTHER}@1"]
    assert len(found(q="first", days="99999")) == 2
    assert found(q="first", days="1") == []  # the transcripts of tests are of March


def test_a_subagent_is_inside_the_call_that_started_it(sessgit: Shell) -> None:
    talk = sessgit.talk().prompt("look for it")
    talk.tool("Task", {"description": "look", "prompt": "Find the paths"}, "Line 12.\nagentId: 7c2dffee").answer("done")
    talk.stop_lines()
    path = sessgit.keep(talk)
    subagent(path.parent, talk, "7c2dffee", "I look at <b>line 12</b>")
    subagent(path.parent, talk, "99aabbcc", "nobody names me")
    sessgit.recorded(talk)
    with serving(sessgit) as page:
        shown = page.get(f"/api/turn?address={SESSION}&turn=1").json["html"]
    call, after = shown.split('<details class="part call" id="turn-1.2">')[1].split("<p>done</p>")
    assert re.findall(r"Subagent <code>(\w+)</code>", call) == ["7c2dffee"]
    assert "I look at &lt;b&gt;line 12&lt;/b&gt;" in call
    assert re.findall(r"Subagent <code>(\w+)</code>", after) == ["99aabbcc"]


def test_vendored_files_are_what_they_were() -> None:
    vendor = STATIC / "vendor"
    known = dict(reversed(line.split("  ")) for line in (vendor / "SHA256SUMS").read_text().splitlines())
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendor.iterdir()}
    found.pop("SHA256SUMS")
    assert found == known


def test_a_page_asks_for_its_scripts_and_data_at_once(page: Page) -> None:
    html = (STATIC / "page.html").read_text()
    assert set(re.findall(r'/static/(\S+\.js)"', html)) == {str(p.relative_to(STATIC)) for p in STATIC.rglob("*.js")}
    for path, data in (
        ("/", "/api/forest?"),
        (f"/s/{SESSION}", f"/api/conversation?address={SESSION}&amp;turn=1"),
        (f"/s/{SESSION}@2.1?q=x", f"/api/conversation?address={SESSION}&amp;turn=2"),
        ("/s/%22%3E%3Cb%3E", "/api/conversation?address=%22%3E%3Cb%3E&amp;turn=1"),
    ):
        assert f'<link rel="preload" as="fetch" crossorigin href="{data}">\n<title>' in page.get(path).text, path
    assert "as=" not in page.get("/stats").text


def test_the_first_answer_needs_neither_another_event_loop_nor_what_shows_turns(told: Shell) -> None:
    code = """if True:
        import asyncio, sys
        from sessgit.web.app import _static
        from starlette.requests import Request
        request = Request({"type": "http", "path_params": {"name": "app.js"}})
        assert asyncio.run(_static(request)).status_code == 200
        print([name for name in sys.modules if name.startswith(("anyio._backends", "jinja2", "sessgit.web.details"))])
    """
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"


def test_the_page_needs_nothing_from_elsewhere() -> None:
    own = [path for path in STATIC.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in STATIC.rglob("*.*") if path.suffix in (".js", ".css")) < 150_000
    for path in own:
        text = path.read_text("utf-8")
        assert not re.search(r"https?://|url\(|@import|innerHTML\s*\+?=(?! text;)|eval\(|dangerously", text), path.name
