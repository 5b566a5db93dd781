"""The files that the client keeps next to a transcript."""

from sessgit.agents.claude.sidecars.folders import INDEX, Place, as_own, folder_name, is_flat, links, merged
from sessgit.agents.claude.sidecars.sidecar_files import (
    Subagents,
    begun_by,
    clean,
    complete,
    is_subagent,
    live,
    mentions,
    of_complete,
    plan_name,
    prompt_of,
    results,
    session_of,
)  # fmt: skip
from sessgit.agents.claude.sidecars.subagents import gist, goes_on, may_be_inline, messages

place = Place
subagents = Subagents
__all__ = [
    "INDEX", "as_own", "begun_by", "clean", "complete", "folder_name", "gist", "goes_on", "is_flat", "is_subagent",
    "links", "live", "may_be_inline", "mentions", "merged", "messages", "of_complete", "place",
    "plan_name",
    "prompt_of", "results", "session_of", "subagents",
]  # fmt: skip
