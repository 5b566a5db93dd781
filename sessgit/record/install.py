"""Start and stop recording: the stub in the store, and the entries in the client's settings that run it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from sessgit.agents.claude import home, hook_settings
from sessgit.errors import ConflictError, UsageError
from sessgit.model import ids
from sessgit.record import privacy as private
from sessgit.record.bulk import discovery
from sessgit.record.privacy import Privacy
from sessgit.store.recorder.stub import remove_stub, write_stub
from sessgit.store.store import create

EVENTS = {"turn": hook_settings.HOOK_EVENTS, "cell": hook_settings.CELL_EVENTS}

# The client rewrites its settings now and then; more than a few times in a row means something else.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation did, and what a person should know about it."""

    store: Path
    stub: Path
    settings: Path
    added: tuple[str, ...]
    already_there: tuple[str, ...]
    """Events that had an entry of ours before, whatever stub it ran."""
    other_stubs: tuple[Path, ...]
    """Stubs that the settings ran before, and do not any more."""
    plugin: str
    """The enabled plugin, which runs the same hooks a second time, or empty."""
    hooks_disabled: bool
    """The settings keep all hooks from running."""
    older_conversations: int
    """Transcripts of the client that an import would bring in."""


@dataclass(frozen=True, slots=True)
class Uninstalled:
    """What an uninstallation removed; the store with all that was recorded stays."""

    store: Path
    settings: Path
    removed: tuple[str, ...]
    stub_removed: bool
    plugin: str
    """The plugin that is still enabled, and finds no stub any more, or empty."""


def install(
    store_path: Path,
    config_dir: Path,
    *,
    python: str,
    granularity: str = "turn",
    known: Collection[str] = (),
    privacy: Privacy | None = None,
) -> Installed:
    """From now on every event of the clients that use `config_dir` is recorded in the store, made if need be.

    Doing it again changes nothing. `known` are the sessions that are recorded already, or were deleted.
    """
    if granularity not in EVENTS:
        raise UsageError(f"granularity is turn or cell, not {granularity!r}")
    events = EVENTS[granularity]
    store = store_path.absolute()
    create(store)
    # The stub first: settings that name it are of use only when it is there.
    stub = write_stub(store, python)
    command = hook_settings.stub_command(stub)
    path = config_dir / "settings.json"
    before = _edit(path, lambda document: hook_settings.with_hooks(document, command, events))
    return Installed(
        store=store,
        stub=stub,
        settings=path,
        added=tuple(event for event in events if event not in before.events),
        already_there=tuple(event for event in events if event in before.events),
        other_stubs=tuple(sorted(Path(other) for other in before.stubs if Path(other) != stub)),
        plugin=before.plugin,
        hooks_disabled=before.hooks_disabled,
        older_conversations=_transcripts(config_dir, known, privacy or Privacy()),
    )


def uninstall(store_path: Path, config_dir: Path) -> Uninstalled:
    """Nothing records any more, and no trace but the store is left; the store may even be gone."""
    store = store_path.absolute()
    path = config_dir / "settings.json"
    before = _edit(path, hook_settings.without_hooks, keep_empty=False)
    stub_removed = remove_stub(store)
    return Uninstalled(
        store=store,
        settings=path,
        removed=tuple(dict.fromkeys(event for event, _ in before.entries)),
        stub_removed=stub_removed,
        plugin=before.plugin,
    )


def _edit(
    path: Path, change: Callable[[hook_settings.Document], hook_settings.Document], *, keep_empty: bool = True
) -> hook_settings.Installation:
    """What was installed before the change, which is in the file now."""
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
    return hook_settings.installed(snapshot.document)


def _transcripts(config_dir: Path, known: Collection[str], privacy: Privacy) -> int:
    """How many conversations of the client an import would bring in, none of which is `known`."""
    is_recorded = private.filtered(privacy, {})
    found = {ids.session_id(path.stem): path for path in home.transcripts(config_dir)}
    return sum(is_recorded(path, session) and discovery.is_new(path, known) for session, path in found.items())
