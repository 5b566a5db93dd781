"""The real Codex, in two versions: installs it, runs it on a sealed home against a model on loopback.

The prompt says what the model does: `run: COMMAND` runs a command, `patch: FILE` adds a file, `apply: SECTIONS` applies
a patch of any kind, `agent: PROMPT` lets a subagent answer that prompt and waits for it, `slow: SECONDS` answers late.
After that, and to every other prompt, the model answers `answer to: PROMPT`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from clients import INSTALL_SECONDS, UnavailableError, cache_folder, run_npm
from filelock import FileLock

PACKAGE = "@openai/codex"
VERSIONS = ("0.118.0", "0.169.0")
LINE = "def parse_page(text): return text.splitlines()"
"""What a patch adds: long enough that the line is known from others."""
_CONFIG = """\
model = "gpt-5.1-codex"
model_provider = "mock"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
"""


def install(version: str) -> Path:
    """The client's program, from the cache or else from npm."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"codex-{version}"
    with FileLock(cache / f".codex-{version}.lock", timeout=INSTALL_SECONDS):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache, prefix=".install-") as temporary:
                made = Path(temporary) / "client"
                made.mkdir()
                (made / "package.json").write_text('{"private": true}\n')
                run_npm("install", "--no-audit", "--no-fund", f"{PACKAGE}@{version}", cwd=made)
                _program(made)
                made.rename(folder)
    return _program(folder)


def _program(folder: Path) -> Path:
    for path in sorted(folder.glob("node_modules/@openai/codex*/vendor/*/*/codex")):
        if os.access(path, os.X_OK):
            return path
    raise UnavailableError(f"npm installed no Codex for this platform in {folder}")


class Responses:
    """The model: the Responses API, streamed."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
                if self.path.split("?")[0].endswith("/responses"):
                    outer.answer(self, body)
                else:
                    self.send_error(404)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        self.requests.append(body)
        number = len(self.requests)
        item, seconds = _reply(body, number)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        response = {"id": f"resp_{number}", "object": "response", "output": [], "model": body.get("model")}
        used = {
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 1020,
        }  # fmt: skip
        events: list[tuple[str, dict[str, Any]]] = [
            ("response.created", {"response": response | {"status": "in_progress"}}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": response | {"status": "completed", "output": [item], "usage": used}}),
        ]
        try:
            for kind, data in events:
                handler.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())
                handler.wfile.flush()
                if kind == "response.created":
                    time.sleep(seconds)
        except OSError:  # the client was killed
            pass


def _reply(body: dict[str, Any], number: int) -> tuple[dict[str, Any], float]:
    """The item that the model answers with, and the seconds until then."""
    prompt, results = "", list[str]()
    for item in body.get("input", []):
        text = text_of(item)
        if item.get("role") == "user" and not text.startswith("<"):
            prompt, results = text, []
        if item.get("type", "").endswith("_output"):
            results.append(str(item["output"]))
    verb, _, rest = prompt.partition(": ")
    names = {tool.get("name") for tool in body.get("tools", [])}
    if not results and verb == "run":
        return _shell(names, rest, number), 0.0
    if not results and verb in ("patch", "apply"):
        change = f"*** Add File: {rest}\n+{LINE}" if verb == "patch" else rest
        change = f"*** Begin Patch\n{change}\n*** End Patch\n"
        if "apply_patch" in names:
            return _call("custom_tool_call", "apply_patch", number, input=change), 0.0
        return _shell(names, f"apply_patch <<'END'\n{change}END", number), 0.0
    if verb == "agent" and not results:
        return _agent_call(body, "spawn_agent", number, message=rest), 0.0
    if verb == "agent" and len(results) == 1:
        agents = [json.loads(results[0])["agent_id"]]
        return _agent_call(body, "wait_agent", number, targets=agents, timeout_ms=20_000), 0.0
    content = [{"type": "output_text", "text": f"answer to: {prompt}", "annotations": []}]
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    return message, float(rest) if verb == "slow" else 0.0


def _shell(names: set[Any], command: str, number: int) -> dict[str, Any]:
    for name, key in (("exec_command", "cmd"), ("shell_command", "command")):
        if name in names:
            return _call("function_call", name, number, arguments=json.dumps({key: command}))
    arguments = json.dumps({"command": ["bash", "-lc", command]})
    return _call("function_call", "shell", number, arguments=arguments)


def _agent_call(body: dict[str, Any], name: str, number: int, **arguments: object) -> dict[str, Any]:
    """The call of a tool for subagents, which newer versions have in a namespace."""
    holders = (tool for tool in body["tools"] if name in [one.get("name") for one in (tool, *tool.get("tools", []))])
    holder = next(holders)
    namespace = {"namespace": holder["name"]} if holder["name"] != name else {}
    return _call("function_call", name, number, arguments=json.dumps(arguments), **namespace)


def _call(kind: str, name: str, number: int, **more: str) -> dict[str, Any]:
    ids = {"id": f"{'ctc' if kind.startswith('custom') else 'fc'}_{number}", "call_id": f"call_{number}"}
    return {"type": kind, **ids, "name": name, "status": "completed", **more}


def text_of(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


@dataclass
class CodexWorld:
    """A sealed home, a project that is a git repository, one version of the client, and the model."""

    version: str
    program: Path
    model: Responses
    home: Path
    project: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for folder in (self.home / ".codex", self.home / "bin", self.project):
            folder.mkdir(parents=True)
        (self.home / ".codex" / "config.toml").write_text(_CONFIG.format(url=self.model.url))
        (self.home / "bin" / "codex").symlink_to(self.program)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True, env=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        path = [str(self.home / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        return {
            "HOME": str(self.home), "PATH": os.pathsep.join(path), "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "MOCK_KEY": "any", "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip

    @property
    def is_paginated(self) -> bool:
        return self.version == VERSIONS[1]

    def run(self, prompt: str, *, resume: str = "", fork: str = "") -> None:
        """One headless turn."""
        done = subprocess.run(
            self._command(prompt, resume, fork), cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)

    def start(self, prompt: str, *, resume: str = "") -> subprocess.Popen[bytes]:
        """The same without waiting."""
        process = subprocess.Popen(
            self._command(prompt, resume, ""), cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def _command(self, prompt: str, resume: str, fork: str) -> list[str]:
        verb = ["resume"] if resume else ["fork"] if fork else []
        return ["codex", "exec", *verb, "--skip-git-repo-check", *filter(None, [resume or fork]), prompt]

    def server(self, *calls: tuple[str, dict[str, Any]], until: str = "") -> list[dict[str, Any]]:
        """What its app server answers to these calls, which its own interfaces make in the same way; with `until`, it
        runs until it says that."""
        process = subprocess.Popen(
            ["codex", "app-server"], cwd=self.project, env=self.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        assert process.stdin is not None and process.stdout is not None
        answers = list[dict[str, Any]]()
        first = ("initialize", {"clientInfo": {"name": "test", "version": "1"}})
        for number, (method, params) in enumerate((first, *calls)):
            process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            answer = next(found for line in process.stdout if (found := json.loads(line)).get("id") == number)
            assert "result" in answer, (method, answer)
            answers.append(answer["result"])
        if until:
            next(line for line in process.stdout if json.loads(line).get("method") == until)
        process.stdin.close()
        process.stdout.read()
        process.stdout.close()
        process.wait(timeout=30)
        return answers[1:]

    def sessgit(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sessgit", *arguments], cwd=self.project, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.sessgit(arguments[0], "--json", *arguments[1:]))

    def rollouts(self) -> list[Path]:
        """The rollouts, oldest first."""
        found = (self.home / ".codex" / "sessions").glob("*/*/*/rollout-*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def said(self, number: int = -1) -> list[str]:
        """The prompts and answers that the client sent in a request, without what it says for itself."""
        items = self.model.requests[number].get("input", [])
        texts = [text_of(item) for item in items if item.get("role") in ("user", "assistant")]
        return [text for text in texts if text and not text.startswith(("<", "# AGENTS.md"))]

    def interrupt(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=30)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                self.kill(process)
