"""`sessgit uninstall`: record nothing by itself any more."""

from __future__ import annotations

from sessgit.cli import invocation, render, text
from sessgit.cli.arguments import options


def run(as_json: options.Json = False) -> None:
    """Record nothing by itself any more.

    The hooks go, the store with all that was recorded stays. A command that names a conversation still records what
    was said in it since, and so does sessgit import: sessgit off keeps a project out.
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
    gone = f"{removed} taken out of {here.short(done.settings)}" if done.removed else "there were no hooks"
    lines = [f"Recording is off: {gone}"]
    if there:
        lines.append(f"What was recorded stays in {here.short(done.store)}; delete that folder to forget it.")
    if done.plugin:
        lines.append(f"The plugin {done.plugin} is still enabled: it finds nothing to run, and does nothing.")
    render.lines(here, lines)
