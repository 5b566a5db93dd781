"""Writes transcripts as the client does, line for line, with ids and times that a test can predict.

A prompt's uuid starts with `a` and its number in the file, an assistant line's with `b`, a tool result's with `c`,
any other's with `d`. Each line is a second later than the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SESSION = "5e551011-0000-4000-8000-000000000001"
OTHER = "5e551011-0000-4000-8000-000000000002"
MODEL = "claude-test-1"
BIRTH = datetime(2026, 3, 1, 10, 0, 0, tzinfo=UTC)

Call = tuple[str, dict[str, Any], str]
"""A tool's name, its arguments and its result."""


@dataclass
class File:
    """What several writers of one file share: the lines so far, the clock, the counters of ids."""

    session: str
    style: str
    cwd: str
    lines: list[bytes] = field(default_factory=list)
    born: datetime = BIRTH
    seconds: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)
    ends: list[str | None] = field(default_factory=lambda: [None])
    """The uuid of the last line of each prompt's turn so far, and first of all None for the start."""
    turn_of: dict[str, int] = field(default_factory=dict)


class Talk:
    """One writer of a transcript; `leaf` is the line that its next one hangs on.

    In style 2.1 each result of parallel tools hangs on its own call, in 2.0 all lines are one chain.
    """

    def __init__(
        self, session: str = SESSION, *, style: str = "2.1", cwd: str = "/home/ada/shop", file: File | None = None
    ) -> None:
        self.file = file or File(session, style, cwd)
        self.leaf: str | None = None
        self.turn = 0
        self.prompt_id = ""

    # What comes out

    @property
    def session(self) -> str:
        return self.file.session

    @property
    def lines(self) -> list[bytes]:
        """The lines without their newlines."""
        return self.file.lines

    @property
    def data(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    @property
    def prompts(self) -> list[str]:
        """The uuids of all prompts in the order of the file."""
        return self.file.prompts

    def save(self, folder: Path) -> Path:
        """Writes the file as the client would name it."""
        path = folder / f"{self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data)
        return path

    def turns(self, *texts: str) -> Talk:
        """A plain turn for each text: prompt, answer, and what the client writes when it stops."""
        for text in texts:
            self.prompt(text).answer(f"About {text}.").stop_lines()
        return self

    # Turns

    def prompt(self, text: str, **extra: Any) -> Talk:
        """A prompt, which hangs on the leaf; in style 2.0 it is queued first."""
        if self.file.style == "2.0":
            self.queue(text).bare("queue-operation", operation="dequeue", timestamp=self._now())
        self.file.prompts.append(self._uuid("a"))
        self.file.ends.append(None)
        self.turn = len(self.file.prompts)
        self.prompt_id = f"e{self.turn:07d}-0000-4000-8000-{self.session[-12:]}"
        self.user(text, uuid=self.file.prompts[-1], promptId=self.prompt_id, promptSource="typed", **extra)
        if self.file.style == "2.1":
            self.bare("file-history-snapshot", messageId=self.leaf, snapshot={"trackedFileBackups": {}})
        return self

    def prompt_without_uuid(self, text: str) -> Talk:
        """As some old or foreign writer left it."""
        return self.bare("user", message={"role": "user", "content": text}, timestamp=self._now())

    def answer(self, *texts: str, tokens: tuple[int, int] = (100, 10)) -> Talk:
        """One message of the model, a line for each block."""
        return self._message([{"type": "text", "text": text} for text in texts], tokens)

    def tool(
        self, name: str, arguments: dict[str, Any] | None = None, result: Any = "done", *, error: bool = False
    ) -> Talk:
        return self.parallel((name, arguments or {}, result), error=error)

    def parallel(self, *calls: Call, error: bool = False) -> Talk:
        """One message with several calls, then their results."""
        numbered = [(self._id("toolu"), call) for call in calls]
        blocks = [
            {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            for call_id, (name, arguments, _) in numbered
        ]
        self._message(blocks, (100, 20))
        uuids = self._last_uuids(len(calls))
        for (call_id, (_, _, result)), own in zip(numbered, uuids, strict=True):
            if self.file.style == "2.1":
                self.leaf = own
            self.result(call_id, result, error=error, sourceToolAssistantUUID=own)
        return self

    def call_only(self, name: str, arguments: dict[str, Any] | None = None) -> Talk:
        """A call whose result never came."""
        return self._message([{"type": "tool_use", "id": self._id("toolu"), "name": name, "input": arguments or {}}])

    def result(self, call_id: str, result: Any = "done", *, error: bool = False, **extra: Any) -> Talk:
        block = {"tool_use_id": call_id, "type": "tool_result", "content": result}
        if error:
            block["is_error"] = True
        return self.user(
            [block], uuid=self._uuid("c"), promptId=self.prompt_id, toolUseResult={"stdout": result}, **extra
        )

    def interrupt(self) -> Talk:
        return self.user([{"type": "text", "text": "[Request interrupted by user]"}])

    def steer(self, text: str) -> Talk:
        """A queued prompt that the running turn absorbs."""
        self.queue(text).bare("queue-operation", operation="remove", content=text, timestamp=self._now())
        return self.chain("attachment", attachment={"type": "queued_command", "prompt": text})

    def attachment(self, kind: str = "date") -> Talk:
        return self.chain("attachment", attachment={"type": kind})

    # Between turns

    def rewind(self, to: int) -> Talk:
        """Goes back to after the file's `to`th prompt's turn, 0 for the start; nothing is written."""
        self.leaf, self.turn = self.file.ends[to], to
        return self

    def writer(self) -> Talk:
        """A second client on the same file, which stands where this one does."""
        other = Talk(file=self.file)
        other.leaf, other.turn, other.prompt_id = self.leaf, self.turn, self.prompt_id
        return other

    def stop_lines(self) -> Talk:
        """What follows the Stop hook; the two system lines carry the chain on."""
        if self.file.style == "2.1":
            self.chain("system", subtype="stop_hook_summary", hookCount=1)
            self.chain("system", subtype="turn_duration", durationMs=1000)
            self.bare("last-prompt", leafUuid=self.leaf).bare("mode", mode="normal")
            self.bare("cost-state", totalCostUSD=0.25)
        return self

    def title(self, text: str, kind: str = "custom-title") -> Talk:
        key = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}[kind]
        return self.bare(kind, **{key: text})

    def queue(self, text: str) -> Talk:
        return self.bare("queue-operation", operation="enqueue", timestamp=self._now(), content=text)

    def compact(self, *, auto: bool = False, summary: str = "So far: plans.") -> Talk:
        """A compaction by hand, between turns, or by the client in mid-turn."""
        boundary = self._uuid("d")
        self.chain(
            "system",
            uuid=boundary,
            parentUuid=None,
            logicalParentUuid=self.leaf,
            subtype="compact_boundary",
            compactMetadata={"trigger": "auto" if auto else "manual"},
        )
        self.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
        if not auto:
            self.user("<local-command-caveat>Caveat.</local-command-caveat>", isMeta=True)
            self.user("<command-name>/compact</command-name>")
            self.user("<local-command-stdout>Compacted</local-command-stdout>")
        return self.attachment("skill_listing")

    # Lines

    def user(self, content: Any, **extra: Any) -> Talk:
        return self.chain("user", message={"role": "user", "content": content}, **extra)

    def chain(self, kind: str, **extra: Any) -> Talk:
        """A line with a uuid, which the next one hangs on."""
        line = {
            "parentUuid": self.leaf,
            "isSidechain": False,
            "type": kind,
            "uuid": self._uuid("d") if "uuid" not in extra else "",
            "timestamp": self._now(),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.file.cwd,
            "sessionId": self.session,
            "version": f"{self.file.style}.7",
            "gitBranch": "main",
            **extra,
        }
        self.leaf = line["uuid"]
        self.file.ends[self.turn] = self.leaf
        return self._put(line)

    def bare(self, kind: str, **extra: Any) -> Talk:
        """A line without a uuid."""
        return self._put({"type": kind, **extra, "sessionId": self.session})

    def raw(self, line: bytes) -> Talk:
        self.lines.append(line)
        return self

    # Copies

    def branch(self, session: str = OTHER) -> Talk:
        """A copy as `/branch` makes it: the lines that have a uuid, under the new id, each naming its origin."""
        copy = self._copy(session)
        for line in map(json.loads, self.lines):
            if line.get("uuid"):
                origin = {"sessionId": self.session, "messageUuid": line["uuid"]}
                copy._put({**line, "sessionId": session, "forkedFrom": origin})
        return copy.title("Branched")

    def fork_session(self, session: str = OTHER) -> Talk:
        """A copy as `--fork-session` makes it: the same lines under the new id, behind a header of its own."""
        copy = self._copy(session).bare("mode", mode="normal").queue("what follows")
        for raw in self.lines:
            copy.raw(raw.replace(self.session.encode(), session.encode()))
        return copy

    def _copy(self, session: str) -> Talk:
        old = self.file
        shared = File(session, old.style, old.cwd, [], old.born + timedelta(hours=1), old.seconds, dict(old.counts))
        shared.prompts, shared.ends = list(old.prompts), list(old.ends)
        copy = Talk(file=shared)
        copy.leaf, copy.turn = self.leaf, self.turn
        return copy

    # Inside

    def _message(self, blocks: Sequence[dict[str, Any]], tokens: tuple[int, int] = (100, 10)) -> Talk:
        message_id = self._id("msg")
        usage = {
            "input_tokens": tokens[0],
            "output_tokens": tokens[1],
            "cache_read_input_tokens": 1000,
            "cache_creation_input_tokens": 50,
        }
        for block in blocks:
            message = {"id": message_id, "role": "assistant", "model": MODEL, "content": [block], "usage": usage}
            self.chain("assistant", uuid=self._uuid("b"), message=message, requestId=message_id.replace("msg", "req"))
        return self

    def _last_uuids(self, count: int) -> list[str]:
        return [json.loads(line)["uuid"] for line in self.lines[-count:]]

    def _put(self, line: dict[str, Any]) -> Talk:
        return self.raw(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())

    def _count(self, kind: str) -> int:
        self.file.counts[kind] = self.file.counts.get(kind, 0) + 1
        return self.file.counts[kind]

    def _uuid(self, kind: str) -> str:
        return f"{kind}{self._count(kind):07d}-0000-4000-8000-{self.session[-12:]}"

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._count(prefix):04d}"

    def _now(self) -> str:
        self.file.seconds += 1
        moment = self.file.born + timedelta(seconds=self.file.seconds)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def subagent(folder: Path, talk: Talk, name: str, *texts: str) -> Path:
    """Appends an answer for each text to a subagent's file beside the transcript in `folder`."""
    path = folder / talk.session / "subagents" / f"agent-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for text in texts:
            line = {
                "parentUuid": None,
                "isSidechain": True,
                "promptId": talk.prompt_id,
                "agentId": name,
                "type": "assistant",
                "message": {"id": text, "role": "assistant", "content": [{"type": "text", "text": text}]},
                "uuid": f"{name}-{text}",
                "sessionId": talk.session,
            }
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    return path
