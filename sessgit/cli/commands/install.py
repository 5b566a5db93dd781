"""`sessgit install`, `sessgit uninstall`: the hooks that record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.record.install import InstallResult


@frame.command("install")
def install(
    here: Invocation,
    granularity: Annotated[
        Literal["turn", "cell"] | None,
        typer.Option(help="Commit each turn, or each cell.", show_default=False),
    ] = None,
) -> Answer:
    """Record every conversation from now on.

    Adds hooks to the client's settings. They return at once; a background process records each turn. The store holds
    prompts, answers and tool output. Only you can read it, but it is not encrypted; common secrets are replaced before
    anything is written. `sessgit off` excludes a project, `sessgit uninstall` removes the hooks.
    """
    from sessgit.record import install
    from sessgit.store import layout, refs, settings
    from sessgit.store.layout import StorePaths

    first = not here.has_store
    known = set[str]()
    if not first:
        known.update(layout.session_of(name) for name, *_ in here.index.names())
        known.update(ref.removeprefix(layout.DELETED) for ref in refs.read_all(here.store_path, layout.DELETED))
    grain = granularity or here.settings.record.granularity
    new_settings = not (here.config / "settings.json").exists()
    done = install.install(
        here.store_path, here.config, python=sys.executable, granularity=grain, known=known, privacy=here.privacy
    )
    if grain != here.settings.record.granularity:
        settings.change_setting(StorePaths(here.store_path), "record.granularity", grain)
    value: dict[str, object] = {
            "store": str(done.store), "settings": str(done.settings), "added": list(done.added),
            "already_there": list(done.already_there), "older": done.older_conversations,
        }  # fmt: skip
    return Answer(lambda: value, _page(here, done, first=first, new_settings=new_settings))


def _page(here: Invocation, done: InstallResult, *, first: bool, new_settings: bool) -> Iterator[str]:
    hooks = text.counted(len(done.added) + len(done.already_there), "hook")
    was = " already" if not done.added and not done.other_stubs else ""
    yield f"Recording is on{was}: {hooks} in {here.short(done.settings)} (undo: sessgit uninstall)"
    if done.older_conversations:
        yield f"{text.counted(done.older_conversations, 'older conversation')} can be imported: sessgit import"
    if first or (done.added and not done.already_there):  # an import may have made the store
        yield f"Prompts, answers and tool output go to {here.short(done.store)}."
        yield "Only you can read it. It is not encrypted; common secrets are redacted."
        yield "To exclude a project: sessgit off"
    if done.added and new_settings:
        yield "Running clients: 2.1 is recorded from its next prompt, 2.0 after a restart."
    elif done.added:
        yield "Running clients are recorded from their next prompt."
    for stub in done.other_stubs:
        yield f"The hooks no longer record into {here.short(stub.parent)}."
    if done.hooks_disabled:
        yield "Nothing is recorded yet: these settings disable all hooks (disableAllHooks)."
    if done.plugin:
        yield f"The plugin {done.plugin} runs the same hooks: each event arrives twice, which does no harm."


@frame.command("uninstall")
def uninstall(here: Invocation) -> Answer:
    """Stop recording.

    Removes the hooks from the client's settings; the store stays. A command that names a conversation still records its
    new turns, and so does `sessgit import`. To keep a project out of the store, use `sessgit off`.
    """
    from sessgit.record import install

    there = here.has_store
    done = install.uninstall(here.store_path, here.config)
    value = {"store": str(done.store) if there else None, "removed": list(done.removed)}
    removed = text.counted(len(done.removed), "hook")
    gone = f"{removed} removed from {here.short(done.settings)}" if done.removed else "there were no hooks"
    lines = [f"Recording is off: {gone}"]
    if there:
        lines.append(f"The store stays in {here.short(done.store)}; delete that folder to remove all recordings.")
    if done.plugin:
        lines.append(f"The plugin {done.plugin} is still enabled, but does nothing.")
    return Answer(lambda: value, lines)
