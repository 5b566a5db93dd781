"""Claude Code: where its files are, what they mean, and how to write them."""

from typing import TYPE_CHECKING

from sessgit.agents import Agent

if TYPE_CHECKING:
    from sessgit.agents import base
    from sessgit.agents.claude import (
        cells,
        content,
        home,
        hooks,
        lines,
        programs,
        repair,
        sidecars,
        stream,
        tools,
        writer,
    )  # fmt: skip

    # Has mypy check that the modules are the parts of the protocol.
    _PARTS: tuple[
        base.Home, base.Hooks, base.Plugin, base.Lines, base.Cells, base.Content,
        base.Tools, base.Sidecars, base.Writer, base.Programs, base.Stream, base.Repair,
    ] = (
        home, hooks, hooks, lines, cells, content, tools, sidecars, writer, programs, stream, repair,
    )  # fmt: skip

_IDS = (
    "id uuid parentUuid logicalParentUuid leafUuid sessionId session_id messageId message_id requestId request_id"
    " promptId agentId agent_id taskId task_id tool_use_id toolUseId toolUseID parentToolUseID parent_tool_use_id"
    " sourceToolAssistantUUID sourceToolUseID"
)
"""The keys of identities: aligning, forking and restoring a session compare them byte for byte."""

# Only the service can make a signature again, and it refuses a changed one.
AGENT = Agent(
    "claude", "Claude Code", frozenset((*_IDS.split(), "signature")),
    folder=("CLAUDE_CONFIG_DIR", ".claude"), session_variable="CLAUDE_CODE_SESSION_ID",
)  # fmt: skip
