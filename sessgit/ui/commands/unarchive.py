"""`sessgit unarchive`: conversations back from the archive."""

from __future__ import annotations

from sessgit.ui import context, render, text
from sessgit.ui.arguments import options


def run(
    addresses: options.Addresses = None,
    as_json: options.Json = False,
) -> None:
    """Bring conversations back from the archive."""
    from sessgit.errors import UsageError
    from sessgit.ops import archive as archives
    from sessgit.ops import edit
    from sessgit.ui import named
    from sessgit.ui.pages import moved

    if not addresses:
        raise UsageError("it is not said which conversations to bring back.", "sessgit ls --archived shows them.")
    here = context.read()
    here.check_recorded()
    sessions = list(dict.fromkeys(edit.session(named.recorded(here, each)) for each in addresses))
    done = archives.unarchive(here.store, here.index, sessions, here.now)
    if as_json:
        operation = done.operation.id if done.operation else None
        value = {"unarchived": list(done.sessions), "already": list(done.already), "operation": operation}
        render.document("unarchive/v1", value)
        return
    branches = {branch.name: branch for branch in here.index.branches_named(sessions)}
    notes = dict.fromkeys(done.already, "not archived")
    lines = list(moved.lines(here, [branches[name] for name in sessions], notes))
    if done.operation:
        lines.append(f"{text.counted(len(done.sessions), 'conversation')} back (undo: sessgit undo)")
    render.lines(here, lines)
