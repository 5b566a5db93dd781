"""A broken chain of lines, repaired so that every version of the client resumes it."""

from sessgit.agents.claude.chain_repair.chain import mend
from sessgit.agents.claude.chain_repair.order import in_order

__all__ = ["in_order", "mend"]
