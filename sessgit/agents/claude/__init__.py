"""Claude Code: where its files lie, what they mean, and how to write them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessgit.agents import base
    from sessgit.agents.values import History
    from sessgit.model.conversation.session import Session


class ClaudeCode:
    """The parts of the agent, each a module that is loaded when it is used."""

    name = "claude"
    title = "Claude Code"

    protected_keys = frozenset(
        (
            # Identities: aligning, forking and restoring a session compare them byte for byte.
            *("id", "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "session_id"),
            *(
                "messageId",
                "message_id",
                "requestId",
                "request_id",
                "promptId",
                "agentId",
                "agent_id",
                "taskId",
                "task_id",
            ),
            *("tool_use_id", "toolUseId", "toolUseID", "parentToolUseID", "parent_tool_use_id"),
            *("sourceToolAssistantUUID", "sourceToolUseID"),
            # Only the service can make these again, and it refuses changed ones.
            "signature",
        )
    )

    def is_home(self, folder: Path) -> bool:
        return (folder / "projects").is_dir()

    def is_own(self, path: Path) -> bool:
        return path.suffix == ".jsonl"

    @property
    def home(self) -> base.Home:
        from sessgit.agents.claude import home

        return home

    @property
    def hooks(self) -> base.Hooks:
        from sessgit.agents.claude import hook_settings

        return hook_settings

    def wait(self, path: Path, offset: int, answer: str | None, since: float) -> bool:
        from sessgit.agents.claude import flush

        return flush.wait(path, offset, answer, since)

    @property
    def lines(self) -> base.Lines:
        from sessgit.agents.claude import lines

        return lines

    def cutter(self, history: History, *, session: str) -> base.Cutter:
        from sessgit.agents.claude.cutter import Cutter

        return Cutter(history, session=session)

    def facts(self, state: Session | None = None) -> base.Facts:
        from sessgit.agents.claude import facts

        return facts.of(state)

    def kept_facts(self, document: Mapping[str, Any]) -> base.Facts | None:
        from sessgit.agents.claude.facts import Facts

        return Facts.loads(document)

    @property
    def cells(self) -> base.Cells:
        from sessgit.agents.claude import cells

        return cells

    @property
    def content(self) -> base.Content:
        from sessgit.agents.claude import content

        return content

    @property
    def tools(self) -> base.Tools:
        from sessgit.agents.claude import tools

        return tools

    @property
    def comparison(self) -> base.Comparison:
        from sessgit.agents.claude import comparison

        return comparison

    @property
    def sidecars(self) -> base.Sidecars:
        from sessgit.agents.claude import sidecars

        return sidecars

    @property
    def writer(self) -> base.Writer:
        from sessgit.agents.claude.writer import transcript

        return transcript

    @property
    def grafting(self) -> base.Grafting:
        from sessgit.agents.claude.writer import grafting

        return grafting

    @property
    def programs(self) -> base.Programs:
        from sessgit.agents.claude import programs

        return programs

    @property
    def stream(self) -> base.Stream:
        from sessgit.agents.claude import stream

        return stream

    @property
    def repair(self) -> base.Repair:
        from sessgit.agents.claude import chain_repair

        return chain_repair


AGENT: base.Agent = ClaudeCode()
