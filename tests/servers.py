"""What serves repositories as other machines would: git's daemon, ssh, and HTTP with a password."""

from __future__ import annotations

import base64
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

from plain import run_git
from waiting import PATIENCE

USER, PASSWORD = "ada", "s3cret%20word"
"""The password as a URL has it: it means `s3cret word`."""


def hook(remote: Path, script: str, name: str = "pre-receive") -> None:
    """What the repository does with each push that comes."""
    path = remote / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@contextmanager
def daemon(folder: Path, *, writable: bool = True) -> Iterator[str]:
    """`git daemon` for all repositories of a folder; yields the URL of the folder."""
    services = ["--enable=receive-pack"] if writable else []
    options = ["--inetd", "--export-all", "--informative-errors", f"--base-path={folder}", *services]
    command = ["git", "daemon", *options, str(folder)]

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            subprocess.run(command, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:  # it gets a port that nothing else can take
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"git://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def ssh(folder: Path) -> str:
    """A program in the place of ssh that runs the command for the other machine in a folder, which is its home, and
    tells who was asked."""
    path = folder / "ssh"
    asked = folder / "asked"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\nopen({str(asked)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"os.chdir({str(folder)!r})\nos.execvp('sh', ['sh', '-c', sys.argv[-1]])\n"
    )
    path.chmod(0o755)
    return shlex.quote(str(path))


@contextmanager
def http(folder: Path) -> Iterator[str]:
    """`git http-backend` for all repositories of a folder, for USER with PASSWORD; yields `127.0.0.1:<port>`."""
    backend = Path(run_git(folder, "--exec-path").strip()) / "git-http-backend"
    wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD.replace('%20', ' ')}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != wanted:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="conversations"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            env = {
                **os.environ, "GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": USER,
                "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }  # fmt: skip
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            done = subprocess.run([backend], input=body, env=env, capture_output=True, check=False)
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            fields = [line.decode().split(": ", 1) for line in head.split(b"\r\n") if line]
            status = next((value for name, value in fields if name == "Status"), "200")
            self.send_response(int(status.split()[0]))
            for name, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent() -> Iterator[tuple[str, socket.socket]]:
    """A port that takes connections and never says a word; yields its address and the socket."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(PATIENCE)
        yield f"127.0.0.1:{listening.getsockname()[1]}", listening
