"""A mock of the Messages API on loopback: the real client talks to it as if it were the model.

The prompt is the script of the reply. Each line `verb: argument` is one step (`;;` divides steps on one
line), each step one answer of the model; after the last step (and for every prompt that has no steps) the
model echoes the prompt. The verbs:

    bash: COMMAND            run a command
    both: COMMAND && COMMAND two commands in parallel
    write: PATH TEXT         write a file
    read: PATH               read a file
    edit: PATH OLD -> NEW    read a file, then change it (two answers)
    tasks: SUBJECT, SUBJECT  put tasks on the client's list
    agent: PROMPT            start a subagent; its prompt is a script too
    think: THOUGHT           think, then echo
    slow: SECONDS            stream the echo over that time
    hold: ANYTHING           stream half of the echo, then wait for `server.release()`
    fail: STATUS             answer with an HTTP error
    tool: NAME {JSON}        call a tool of the client with these arguments

`server.requests` keeps everything that was asked; `conversation()` shows what the client sent as the
conversation so far, in a form that is equal for all versions of the client.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Block = dict[str, Any]

SUMMARY = "The summary that the mock model wrote."
COMPACT_REQUEST = "Your task is to create a detailed summary of the conversation"
COMPACT_RESULT = "This session is being continued from a previous conversation"
STEP = re.compile(r"^(bash|both|write|read|edit|tasks|agent|think|slow|hold|fail|tool): *(.*)$")
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.S)
# What a client puts between two lines that do not fit: after a compaction, after a turn that was cut off.
FILLERS = ("Continue from where you left off.", "No response requested.")
NOTIFICATION = "<task-notification>"
HOLD_LIMIT = 120.0


@dataclass
class Request:
    """One request for an answer, and the answer it got."""

    number: int
    body: dict[str, Any]
    session_id: str | None
    kind: str  # main, subagent, compact or side: see kind_of()
    reply: list[Block] = field(default_factory=list)

    @property
    def prompt(self) -> str:
        return _script(self.body)[0]


# What a request is


def kind_of(body: dict[str, Any]) -> str:
    """Tell the conversation itself from what the client asks on the side.

    side: titles, command prefixes, warm-ups, suggestions. They have no tools, or (suggestions) a mark.
    """
    system = "\n".join(text for text in _texts(body.get("system") or []))
    last = _texts(_last_user(body))
    tools = {tool.get("name") for tool in body.get("tools") or []}
    if any(COMPACT_REQUEST in text for text in last):
        return "compact"
    if any(text.startswith("[SUGGESTION MODE") for text in last) or not tools:
        return "side"
    if "cc_is_subagent=true" in system or not tools & {"Task", "Agent"}:
        return "subagent" if "Bash" in tools else "side"
    return "main"


def session_of(headers: Any, body: dict[str, Any]) -> str | None:
    """2.1 sends the session in a header; 2.0 only at the end of metadata.user_id."""
    header = headers.get("x-claude-code-session-id")
    if header:
        return str(header)
    found = re.search(r"session_([0-9a-f-]{36})$", str((body.get("metadata") or {}).get("user_id")))
    return found[1] if found else None


def conversation(request: Request | dict[str, Any]) -> list[tuple[str, str]]:
    """What the client sent, one (role, text) for each block.

    Reminders, thinking and what the client says for itself are left out, they differ from version to version.
    A call is `[Bash echo hi]`, its result `[Bash: hi]`; of other tools the result is only `ok` or `error`.
    """
    body = request.body if isinstance(request, Request) else request
    shown: list[tuple[str, str]] = []
    called: dict[str, str] = {}
    for message in body.get("messages") or []:
        role = message.get("role")
        if role not in ("user", "assistant"):
            continue
        for block in _in_order(_blocks(message.get("content")), list(called)):
            text = _show(block, called)
            if text:
                shown.append((role, text))
    return shown


def prompts(request: Request | dict[str, Any]) -> list[str]:
    """Only the prompts of the user out of `conversation()`."""
    return [text for role, text in conversation(request) if role == "user" and not text.startswith("[")]


def _in_order(blocks: list[Block], called: list[str]) -> list[Block]:
    """Results of parallel calls come as they finish; show them in the order of the calls."""
    results = [block for block in blocks if block.get("tool_use_id") in called]
    ordered = iter(sorted(results, key=lambda block: called.index(block["tool_use_id"])))
    return [next(ordered) if block in results else block for block in blocks]


def _show(block: Block, called: dict[str, str]) -> str:
    if block.get("type") == "text":
        return _show_text(block.get("text", ""))
    if block.get("type") == "tool_use":
        name, what = _show_call(block)
        called[block["id"]] = name
        return f"[{name} {what}]"
    if block.get("type") == "tool_result":
        name = called.get(block["tool_use_id"], "unknown call")
        text = REMINDER.sub("", "\n".join(_texts(block.get("content") or []))).strip()
        if block.get("is_error"):
            return f"[{name}: error]"
        return f"[{name}: {text if name == 'Bash' else 'ok'}]"
    return "" if block.get("type") in ("thinking", "redacted_thinking") else f"[{block.get('type')}]"


def _show_text(text: str) -> str:
    if NOTIFICATION in text:
        return "[task notification]"
    text = REMINDER.sub("", text).strip()
    if text.startswith(COMPACT_RESULT):
        return f"[summary: {SUMMARY}]" if SUMMARY in text else "[summary]"
    if text.startswith(("<local-command-caveat>", "Caveat: The messages below")) or text in FILLERS:
        return ""
    command = re.match(r"<command-name>(.*?)</command-name>", text)
    if command:
        return f"[command {command[1]}]"
    if text.startswith(("<local-command-stdout>", "<local-command-stderr>")):
        return "[command output]"
    return text


def _show_call(block: Block) -> tuple[str, str]:
    name, given = block.get("name", ""), block.get("input") or {}
    if name in ("Task", "Agent"):
        return "Agent", str(given.get("prompt"))
    if name == "TodoWrite":
        return "Tasks", ", ".join(item["content"] for item in given.get("todos", []))
    if name == "TaskCreate":
        return "Tasks", str(given.get("subject"))
    return name, str(given.get("command") or given.get("file_path") or json.dumps(given, sort_keys=True))


def _blocks(content: object) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(content: object) -> list[str]:
    return [block.get("text", "") for block in _blocks(content) if block.get("type") == "text"]


def _last_user(body: dict[str, Any]) -> object:
    sent = [m for m in body.get("messages") or [] if m.get("role") == "user"]
    return sent[-1].get("content") if sent else []


# What is answered


def _script(body: dict[str, Any]) -> tuple[str, int]:
    """The prompt that is to be answered, and how many answers it has had."""
    answers = 0
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "assistant":
            answers += 1
        elif message.get("role") == "user":
            said = [shown for text in _texts(message.get("content")) if (shown := _show_text(text))]
            if said:
                return said[-1], answers
    return "", answers


def _steps(prompt: str) -> list[tuple[str, str]]:
    steps: list[tuple[str, str]] = []
    for line in re.split(r"\n|;;", prompt):
        found = STEP.match(line.strip())
        if not found:
            continue
        if found[1] == "edit":
            steps.append(("read", found[2].split()[0] if found[2].split() else ""))
        steps.append((found[1], found[2].strip()))
    return steps


def answer(request: Request) -> list[Block]:
    """The content blocks of the model's reply."""
    if request.kind == "compact":
        return [_text(f"<analysis>None.</analysis>\n<summary>{SUMMARY}</summary>")]
    prompt, answered = _script(request.body)
    if request.kind == "side":
        return [_text("Nothing.")]
    tools = {tool.get("name") for tool in request.body.get("tools") or []}
    steps = _steps(prompt)
    calls: list[Block] = []
    if answered < len(steps):
        calls = _calls(*steps[answered], tools)
    if calls:
        return [_text(f"Step {answered + 1}."), *calls]
    blocks = [_text(f"Echo: {prompt[:10_000]}")]  # 2.0 may cut off what it prints if a pipe does not hold it
    thought = dict(steps).get("think")
    if thought:
        blocks.insert(0, {"type": "thinking", "thinking": thought, "signature": "bW9jaw=="})
    return blocks


def _calls(verb: str, argument: str, tools: set[str]) -> list[Block]:
    first, _, rest = argument.partition(" ")
    match verb:
        case "bash":
            return [_call("Bash", command=argument, description="mock")]
        case "both":
            return [_call("Bash", command=part.strip(), description="mock") for part in argument.split("&&")]
        case "write":
            return [_call("Write", file_path=first, content=rest + "\n")]
        case "read":
            return [_call("Read", file_path=argument)]
        case "edit":
            old, _, new = rest.partition(" -> ")
            return [_call("Edit", file_path=first, old_string=old, new_string=new)]
        case "tasks":
            return _task_calls([part.strip() for part in argument.split(",")], tools)
        case "agent":
            name = "Agent" if "Agent" in tools else "Task"
            return [_call(name, description="mock", prompt=argument, subagent_type="general-purpose")]
        case "tool":
            return [_call(first, **json.loads(rest or "{}"))]
    return []


def _task_calls(subjects: list[str], tools: set[str]) -> list[Block]:
    if "TodoWrite" in tools:
        todos = [{"content": s, "status": "pending", "activeForm": f"Doing {s}"} for s in subjects]
        return [_call("TodoWrite", todos=todos)]
    # Newer clients do not list TaskCreate at first ("deferred"), and accept it all the same.
    return [_call("TaskCreate", subject=s, description=s, activeForm=f"Doing {s}") for s in subjects]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _call(name: str, **given: object) -> Block:
    return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": name, "input": given}


# The server


class ModelServer:
    """`with ModelServer() as server:` listens on 127.0.0.1 at a free port until the block ends."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.model = self
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="model-server", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def main(self, session_id: str | None = None) -> list[Request]:
        """The requests of the main conversation, all or those of one session, oldest first."""
        with self._changed:
            found = [request for request in self.requests if request.kind == "main"]
        return [r for r in found if session_id in (None, r.session_id)]

    def conversation(self, session_id: str | None = None) -> list[tuple[str, str]]:
        """What the last request of the main conversation sent."""
        found = self.main(session_id)
        return conversation(found[-1]) if found else []

    def clear(self) -> None:
        with self._changed:
            self.requests.clear()

    def release(self) -> None:
        """Let every `hold:` go on, those to come as well."""
        self._released.set()

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float = 60.0) -> Request:
        """The first request that is wanted; waits until it has come."""

        def found() -> Request | None:
            return next((request for request in self.requests if wanted(request)), None)

        with self._changed:
            request = self._changed.wait_for(found, timeout)
        if request is None:
            kinds = [(request.kind, request.prompt[:40]) for request in self.requests]
            raise TimeoutError(f"no such request within {timeout} s; there were {kinds}")
        return request

    def wait_for_prompt(self, prompt: str, timeout: float = 60.0) -> Request:
        return self.wait_for(lambda request: request.kind == "main" and request.prompt == prompt, timeout)

    def _take(self, headers: Any, body: dict[str, Any]) -> Request:
        with self._changed:
            request = Request(len(self.requests) + 1, body, session_of(headers, body), kind_of(body))
            request.reply = answer(request)
            self.requests.append(request)
            self._changed.notify_all()
        return request


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed closes its connection in mid-answer: nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._json({})

    def do_GET(self) -> None:
        self._json({"data": [], "has_more": False})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json({"input_tokens": len(raw) // 4})
        elif path.endswith("/v1/messages"):
            self._message(json.loads(raw))
        else:
            self._json({})

    def _message(self, body: dict[str, Any]) -> None:
        request = self.server.model._take(self.headers, body)
        steps = dict(_steps(request.prompt)) if request.kind in ("main", "subagent") else {}
        if "fail" in steps:
            status = int(steps["fail"])
            kind = "invalid_request_error" if status < 500 else "api_error"
            self._json({"type": "error", "error": {"type": kind, "message": f"mock error {status}"}}, status)
            return
        message = {
            "id": f"msg_{uuid.uuid4().hex[:20]}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "mock"),
            "content": request.reply,
            "stop_reason": "tool_use" if request.reply[-1]["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": _usage(request),
        }
        if body.get("stream"):
            self._stream(message, steps)
        else:
            self._json(message)

    def _stream(self, message: dict[str, Any], steps: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        last = message["stop_reason"] == "end_turn"
        try:
            for kind, event, part in _events(message):
                if last and part:
                    self._pause(*part, steps)
                data = json.dumps({"type": kind, **event})
                self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
                self.wfile.flush()
        except OSError:
            pass  # the client has gone

    def _pause(self, part: int, parts: int, steps: dict[str, str]) -> None:
        if "slow" in steps:
            time.sleep(float(steps["slow"].split()[0]) / parts)
        if "hold" in steps and part == parts // 2:
            self.server.model._released.wait(HOLD_LIMIT)

    def _json(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], tuple[int, int] | None]]:
    """The events of a streamed message, as the API sends them; a delta with its number and their count."""
    usage = message["usage"]
    opened = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield "message_start", {"message": opened}, None
    for index, block in enumerate(message["content"]):
        empty, deltas = _deltas(block)
        yield "content_block_start", {"index": index, "content_block": empty}, None
        for number, delta in enumerate(deltas):
            yield "content_block_delta", {"index": index, "delta": delta}, (number, len(deltas))
        yield "content_block_stop", {"index": index}, None
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": usage}, None
    yield "message_stop", {}, None


def _deltas(block: Block) -> tuple[Block, list[Block]]:
    match block["type"]:
        case "text":
            words = re.findall(r"\S+\s*|\s+", block["text"])
            return {**block, "text": ""}, [{"type": "text_delta", "text": word} for word in words]
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
    written = json.dumps(block["input"])
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": written}]


def _usage(request: Request) -> dict[str, Any]:
    return {
        "input_tokens": 10,
        "output_tokens": 5 + len(json.dumps(request.reply)) // 4,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": len(json.dumps(request.body.get("messages"))) // 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
    }
