"""Start and stop recording: the stub in the store, and the client's settings or plugin that run it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import get_args

from sessgit.agents import Agent, Client, hook_settings
from sessgit.agents.base import Hooks
from sessgit.agents.values import Document, Installation
from sessgit.errors import ConflictError, UsageError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.record import import_files
from sessgit.record import privacy as private
from sessgit.store.settings import Granularity, Privacy
from sessgit.store.store import create_store
from sessgit.store.stub import remove_stub, write_stub

# The client rewrites its settings now and then; more than a few times in a row means something else.
_ATTEMPTS = 3


@frozen
class InstallResult:
    """What an installation did, and what a person should know about it."""

    agent: Agent
    store: Path
    settings: Path
    added: tuple[str, ...]
    already_there: tuple[str, ...]
    """Events that had an entry of ours before, whatever stub it ran."""
    other_stubs: tuple[Path, ...]
    """Stubs that the settings ran before, and do not any more."""
    plugin: str
    """The enabled plugin, which records if the settings have no entry of ours, or empty."""
    refusal: str
    """Why the client runs no hook of its settings, or empty."""
    untrusted: tuple[str, ...]
    """Events whose hook the client does not run until the user trusts it."""
    older_conversations: int
    """Transcripts of the client that an import would bring in."""


@frozen
class UninstallResult:
    """What an uninstallation removed; the store with all that was recorded stays."""

    agent: Agent
    store: Path
    settings: Path
    removed: tuple[str, ...]
    plugin: str
    """The plugin that was enabled, or empty."""
    status_line: bool
    """Whether the client showed our status line."""


def install(
    store_path: Path,
    client: Client,
    *,
    python: str,
    granularity: str = "turn",
    known: Collection[str] = (),
    privacy: Privacy | None = None,
) -> InstallResult:
    """Have every event of the client recorded in the store, which is created if it does not exist.

    If the plugin is enabled and the settings have no entry of ours, the plugin records, and they get none, unless its
    folder is gone, or each cell is to be committed: the plugin runs no hook for that. Doing it again changes nothing.
    `known` are the sessions that are recorded already, or were deleted.
    """
    hooks = client.agent.hooks
    if granularity not in get_args(Granularity):
        raise UsageError(f"granularity is turn or cell, not {granularity!r}")
    events: tuple[str, ...] = hook_settings.CELL_EVENTS if granularity == "cell" else hook_settings.HOOK_EVENTS
    store = store_path.absolute()
    # The stub first: settings that name it are of use only when it is there.
    stub = prepare(store, python)
    path = hooks.settings_file(client.folder)

    def leaves_it_to_plugin(before: Installation) -> bool:
        return bool(before.plugin) and not before.entries and granularity == "turn" and _is_there(client, before.plugin)

    def change(document: Document) -> Document:
        if leaves_it_to_plugin(hooks.installed(document)):
            return document
        return hook_settings.with_hooks(document, hook_settings.stub_command(stub), events)

    before = _edit_settings(hooks, path, change)
    if leaves_it_to_plugin(before):
        events = ()
    document = hook_settings.read(path).document
    return InstallResult(
        agent=client.agent,
        store=store,
        settings=path,
        added=tuple(event for event in events if event not in before.events),
        already_there=tuple(event for event in events if event in before.events),
        other_stubs=tuple(sorted(Path(other) for other in before.stubs if Path(other) != stub)),
        plugin=before.plugin,
        refusal=hooks.refusal(document, client.folder),
        untrusted=hooks.untrusted(document, client.folder),
        older_conversations=_count_transcripts(client, known, privacy or Privacy()),
    )


def _is_there(client: Client, plugin: str) -> bool:
    """Return whether the client has the plugin's folder, or does not say where it is."""
    folder = client.agent.plugin.folder(client.folder, plugin)
    return folder is None or client.agent.plugin.version(folder) is not None


def show_status_line(store: Path, client: Client, *, python: str) -> None:
    """Have the client show our status line. Raises ConflictError if it has another one, or can show none."""
    hooks, command = client.agent.hooks, hook_settings.status_line_command(store.absolute(), python)
    _edit_settings(
        hooks, hooks.settings_file(client.folder), lambda document: hooks.with_status_line(document, command)
    )


def trust(client: Client, env: Mapping[str, str]) -> str:
    """Have the client run the hooks in its settings without asking the user; return why it still does not, or "".

    Raises ConflictError, StoreError.
    """
    hooks = client.agent.hooks
    document = hook_settings.read(hooks.settings_file(client.folder)).document
    hooks.trust(document, client.folder, env)
    return hooks.refusal(document, client.folder)


def prepare(store: Path, python: str) -> Path:
    """Make the store if there is none, and write its stub, which is all that the plugin needs; return the stub."""
    create_store(store)
    return write_stub(store, python)


def uninstall(store_path: Path, client: Client) -> UninstallResult:
    """Stop recording and leave no trace but the store, which may even be gone."""
    store = store_path.absolute()
    hooks = client.agent.hooks
    path = hooks.settings_file(client.folder)
    hooks.distrust(hook_settings.read(path).document, client.folder)

    def change(document: Document) -> Document:
        plugin = hooks.installed(document).plugin
        rest = hooks.without_status_line(hook_settings.without_hooks(document))
        return client.agent.plugin.disabled(rest, plugin) if plugin else rest

    before = _edit_settings(hooks, path, change, keep_empty=False)
    remove_stub(store)
    return UninstallResult(
        agent=client.agent,
        store=store,
        settings=path,
        removed=tuple(dict.fromkeys(event for event, _ in before.entries)),
        plugin=before.plugin,
        status_line=before.status_line,
    )


def _edit_settings(
    hooks: Hooks, path: Path, change: Callable[[Document], Document], *, keep_empty: bool = True
) -> Installation:
    """Change the settings file; return what was installed before."""
    for attempt in range(_ATTEMPTS):
        snapshot = hook_settings.read(path)
        try:
            document = change(snapshot.document)
        except ConflictError as error:
            raise ConflictError(f"{path}: {error}", error.hint) from error
        try:
            hook_settings.replace(snapshot, document, keep_empty=keep_empty)
            break
        except ConflictError:
            if attempt == _ATTEMPTS - 1:
                raise
    return hooks.installed(snapshot.document)


def _count_transcripts(client: Client, known: Collection[str], privacy: Privacy) -> int:
    """Return how many conversations of the client an import would add, none of which is `known`."""
    is_recorded = private.recorded_filter(privacy, {})
    home = client.agent.home
    paths = {ids.session_id(home.agent_id(path)): path for path in home.transcripts(client.folder)}
    return sum(is_recorded(path, session) and import_files.is_new(path, known) for session, path in paths.items())
