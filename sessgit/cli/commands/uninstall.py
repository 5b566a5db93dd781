"""`sessgit uninstall`: record nothing by itself any more."""

from __future__ import annotations

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import options


def run(as_json: options.Json = False) -> None:
    """Stop recording.

    Removes the hooks from the client's settings; the store stays. A command that names a conversation still records its
    new turns, and so does `sessgit import`. To keep a project out of the store, use `sessgit off`.
    """
    from sessgit.record import install

    here = invocation.read()
    there = here.has_store
    done = install.uninstall(here.store_path, here.config)
    if as_json:
        value = {"store": str(done.store) if there else None, "removed": list(done.removed)}
        render.document("uninstall/v1", value)
        return
    removed = text.counted(len(done.removed), "hook")
    gone = f"{removed} removed from {here.short(done.settings)}" if done.removed else "there were no hooks"
    lines = [f"Recording is off: {gone}"]
    if there:
        lines.append(f"The store stays in {here.short(done.store)}; delete that folder to remove all recordings.")
    if done.plugin:
        lines.append(f"The plugin {done.plugin} is still enabled, but does nothing.")
    render.lines(here, lines)
