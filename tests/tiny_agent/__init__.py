"""A second agent, as small as one can be: its client keeps what is asked and replied, with no ids, in the order of the
file, below `~/.tiny/chats/DAY/`."""

from sessgit.agents import OPTIONAL, Agent

AGENT = Agent(
    "tiny", "Tiny", frozenset(),
    folder=("TINY_HOME", ".tiny"), session_variable="TINY_CHAT", lacks=OPTIONAL, package="tiny_agent",
)  # fmt: skip
