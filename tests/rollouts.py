"""Writes rollouts as Codex does, line for line, with ids and times that a test can predict: the older form, and the one
with ordinals."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

THREAD = "01a20000-0000-7000-8000-000000000001"
MODEL = "gpt-5.1-codex"
BIRTH = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)


class Rollout:
    """One rollout; `paginated` is the form with ordinals. With a `segment`, it is the file in which its thread goes on
    after a rewind."""

    def __init__(
        self, thread: str = THREAD, *, cwd: str, paginated: bool = False, source: object = "cli", segment: str = "",
        base: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.thread, self.cwd, self.paginated, self.segment = thread, cwd, paginated, segment
        self.first = base["end_ordinal_exclusive"] if base else 0
        self.lines: list[bytes] = []
        self.ends: list[int] = []
        """The number of lines at the end of each turn."""
        self.total = 0
        version = "0.169.0" if paginated else "0.118.0"
        meta = {"id": thread, "timestamp": "2026-03-01T10:00:00.000Z", "cwd": cwd, "cli_version": version}
        self.put(
            "session_meta",
            {**meta, "originator": "codex", "source": source, "git": {"branch": "main"}}
            | ({"history_base": base} if base else {}),
        )

    def fork(self, thread: str, lines: int | None = None) -> Rollout:
        """Return a fork as version 0.169 makes it: it copies nothing of its first lines, by default all."""
        return Rollout(thread, cwd=self.cwd, paginated=True, base=self._base(lines))

    def rewound(self, segment: str, lines: int | None = None) -> Rollout:
        """Return the file in which the thread goes on behind its first lines."""
        return Rollout(self.thread, cwd=self.cwd, paginated=True, segment=segment, base=self._base(lines))

    def _base(self, lines: int | None) -> dict[str, Any]:
        shared = self.lines[:lines]
        length = sum(len(line) + 1 for line in shared)
        return {
            "thread_id": self.id, "end_ordinal_exclusive": self.first + len(shared), "end_byte_offset": length
        }  # fmt: skip

    @property
    def id(self) -> str:
        """Return the id of its session here."""
        return self.segment or self.thread

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def save(self, config: Path) -> Path:
        """Write the rollout where the client keeps it."""
        (config / "config.toml").parent.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").touch()
        name = f"{self.thread}_{self.segment}" if self.segment else self.thread
        path = config / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T10-00-00-{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path

    def put(self, kind: str, payload: dict[str, Any]) -> Rollout:
        """Add a line, a second later than the one before it."""
        number = self.first + len(self.lines)
        time = (BIRTH + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        ordinal = {"ordinal": number} if self.paginated else {}
        document = {"timestamp": time, **ordinal, "type": kind, "payload": payload}
        self.lines.append(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
        return self

    def start(self, prompt: str) -> Rollout:
        """Begin a turn."""
        self.turn = f"01a2{len(self.ends) + 1:04}-{self.thread[9:13]}-7000-8{self.id[-3:]}-{len(self.lines):012}"
        self.put("event_msg", {"type": "task_started", "turn_id": self.turn})
        self.put("turn_context", {"turn_id": self.turn, "cwd": self.cwd, "model": MODEL})
        self._message("user", prompt)
        if self.paginated:
            item = {"type": "UserMessage", "id": f"u{len(self.lines)}", "content": [{"type": "text", "text": prompt}]}
            return self._completed(item)
        said = {"type": "user_message", "message": prompt, "images": [], "local_images": [], "text_elements": []}
        return self.put("event_msg", said)

    def call(self, command: str, printed: str, code: int = 0) -> Rollout:
        """A shell command with its result."""
        name = f"call_{len(self.lines)}"
        given = json.dumps({"cmd": command})
        self.put(
            "response_item", {"type": "function_call", "name": "exec_command", "arguments": given, "call_id": name}
        )
        self._used()
        output = (
            f"Chunk ID: {len(self.lines)}\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
        )
        return self.put("response_item", {"type": "function_call_output", "call_id": name, "output": output})

    def patch(self, path: str, *added: str) -> Rollout:
        """A patch that adds a file."""
        return self.apply(f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in added))

    def apply(self, changes: str, failed: str = "", *, folder: str = "") -> Rollout:
        """A patch with changes of any kind, by the tool for it, and in the form with ordinals by a shell command, which
        may change the folder first; with `failed`, the client declines it for that reason."""
        name = f"call_{len(self.lines)}"
        patch = f"*** Begin Patch\n{changes}*** End Patch\n"
        kind, given = "custom_tool_call", {"name": "apply_patch", "input": patch}
        output = "Success. Updated the following files:\nM a file\n"
        if self.paginated:
            command = f"cd {folder} && apply_patch" if folder else "apply_patch"
            arguments = json.dumps({"cmd": f"{command} <<'END'\n{patch}END"})
            kind, given = "function_call", {"name": "exec_command", "arguments": arguments}
            output = f"Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\n{output}"
        else:
            output = json.dumps({"output": output, "metadata": {"exit_code": 0, "duration_seconds": 0.0}})
        self.put("response_item", {"type": kind, **given, "call_id": name})
        self._used()
        said = f"apply_patch verification failed: {failed}" if failed else output
        return self.put("response_item", {"type": f"{kind}_output", "call_id": name, "output": said})

    def think(self, text: str) -> Rollout:
        """A summary of what the model thought, with what only the service can read."""
        summary = [{"type": "summary_text", "text": text}]
        return self.put("response_item", {"type": "reasoning", "summary": summary, "encrypted_content": "gAAAAABo" * 9})

    def end(self, answer: str = "done") -> Rollout:
        """The answer, and the end of the turn."""
        self._message("assistant", answer)
        self._used()
        self.put("event_msg", {"type": "task_complete", "turn_id": self.turn, "last_agent_message": answer})
        self.ends.append(len(self.lines))
        return self

    def turns(self, *prompts: str) -> Rollout:
        """Whole turns, each with an answer."""
        for prompt in prompts:
            self.start(prompt).end(f"answer to {prompt}")
        return self

    def roll_back(self, turns: int) -> Rollout:
        """Leave the last turns behind, as the older form says it; what was used comes again after that."""
        self.put("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
        return self.put("event_msg", {"type": "token_count", "info": None})

    def _message(self, role: str, text: str) -> None:
        kind = "input_text" if role == "user" else "output_text"
        self.put("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})

    def _completed(self, item: dict[str, Any]) -> Rollout:
        return self.put(
            "event_msg", {"type": "item_completed", "thread_id": self.thread, "turn_id": self.turn, "item": item}
        )

    def _used(self) -> None:
        """What the response used: 90 new tokens, 10 from the cache, 5 out; the older form says the same sum again."""
        usage = {"input_tokens": 100, "cached_input_tokens": 10, "output_tokens": 5}
        if self.paginated:
            self.put("token_usage_record", {"turn_id": self.turn, "usage": usage})
            return
        self.total += 1
        total = {key: value * self.total for key, value in usage.items()}
        for _ in range(2):
            info = {"total_token_usage": total, "last_token_usage": usage}
            self.put("event_msg", {"type": "token_count", "info": info})
