"""OpenAI's Codex: where its rollouts are, what their lines mean, and how to write them.

A rollout is a file of lines `{"timestamp", "type", "payload"}`; since 2026 they have an `ordinal`, too. Seen with
versions 0.118.0 and 0.169.0. See `docs/format.md`, "Cutting: Codex".
"""

from typing import TYPE_CHECKING

from sessgit.agents import Agent

if TYPE_CHECKING:
    from sessgit.agents import base
    from sessgit.agents.codex import cells, content, home, hooks, lines, tools, writer

    # Has mypy check that the modules are the parts of the protocol.
    _PARTS: tuple[base.Home, base.Hooks, base.Lines, base.Cells, base.Content, base.Tools, base.Writer] = (
        home,
        hooks,
        lines,
        cells,
        content,
        tools,
        writer,
    )

_IDS = (
    "id session_id thread_id turn_id root_turn_id parent_turn_id call_id response_id forked_from_id parent_thread_id"
    " process_id parent_id"
)
"""The keys of identities, which the client compares byte for byte."""

# Only the service can read or make what is encrypted.
AGENT = Agent(
    "codex", "Codex", frozenset((*_IDS.split(), "encrypted_content")), folder=("CODEX_HOME", ".codex"),
    lacks=("plugin", "sidecars", "programs", "stream", "repair"),
)  # fmt: skip
