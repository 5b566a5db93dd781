"""`sessgit unarchive`: conversations back from the archive."""

from __future__ import annotations

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import options


def run(
    addresses: options.Addresses = None,
    as_json: options.Json = False,
) -> None:
    """Take conversations out of the archive."""
    from sessgit.branch import archive as archives
    from sessgit.branch import edit
    from sessgit.cli import session_argument
    from sessgit.cli.pages import moved_sessions
    from sessgit.errors import UsageError

    if not addresses:
        raise UsageError("no conversations selected.", "`sessgit ls --archived` lists archived conversations.")
    here = invocation.read()
    here.check_recorded()
    sessions = list(dict.fromkeys(edit.session(session_argument.recorded(here, each)) for each in addresses))
    done = archives.unarchive(here.store, here.index, sessions, here.now)
    if as_json:
        operation = done.operation.id if done.operation else None
        value = {"unarchived": list(done.sessions), "already": list(done.already), "operation": operation}
        render.document("unarchive/v1", value)
        return
    branches = {branch.name: branch for branch in here.index.branches_named(sessions)}
    notes = dict.fromkeys(done.already, "not archived")
    lines = list(moved_sessions.lines(here, [branches[name] for name in sessions], notes))
    if done.operation:
        lines.append(f"{text.counted(len(done.sessions), 'conversation')} unarchived (undo: sessgit undo)")
    render.lines(here, lines)
