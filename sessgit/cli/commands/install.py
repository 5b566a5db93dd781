"""`sessgit install`, `uninstall`, `on`, `off`, `config`: whether and how conversations are recorded."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from sessgit import agents
from sessgit.agents import Client
from sessgit.cli import frame, render, text
from sessgit.cli.frame import AGENT, FOLDER, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import ConflictError, UsageError
from sessgit.model import canonical
from sessgit.record import install as hooks
from sessgit.record import privacy
from sessgit.record.install import InstallResult, UninstallResult
from sessgit.store import refs, settings
from sessgit.store.context import DEFAULT_AGENT
from sessgit.store.layout import StorePaths
from sessgit.store.settings import Setting


@frame.command("install", excludes={"--plugin": "--granularity --agent --trust --statusline"})
def install(
    cli: Invocation,
    granularity: Literal["turn", "cell"] | None = option(
        "--granularity", "Commit after each turn, or also after each tool result."
    ),
    agent: str = AGENT,
    trust: bool = option("--trust", "Trust the hooks in Codex without asking."),
    plugin: bool = option("--plugin", "Only make what the plugin needs."),
    statusline: bool = option("--statusline", "Also show a status line in Claude Code."),
) -> Answer:
    """Record every conversation from now on.

    Adds hooks to the settings of every client on this machine: Claude Code and Codex. They return at once; a background
    process records each turn. The store holds prompts, answers and tool output. Only you can read it, but it is not
    encrypted; common secrets are replaced before anything is written. `sessgit off` excludes a project, `sessgit
    uninstall` removes the hooks.

    Codex runs hooks only if you trust them: this command asks you, and then writes the trust into Codex's config.toml,
    as Codex does.

    If the plugin of Claude Code is enabled, it runs the hooks, and the settings get none, except for --granularity
    cell. --plugin creates the store and its hook, and changes no settings; the plugin does this itself if `sessgit` is
    on the PATH. The status line shows the session, its last turn, whether it is recorded, its forks and its cost.
    """
    from sessgit.check import status

    if plugin:
        return _prepared(cli)
    if statusline:
        client = agents.client(cli.env.homes, agents.check_name(agent) or DEFAULT_AGENT)
        hooks.show_status_line(cli.env.store, client, python=sys.executable)
    clients = _clients(cli, agent)
    is_first = not cli.has_store
    known = set[str]()
    if not is_first:
        known.update(outline.session for outline in cli.index.branch_outlines())
        known |= refs.deleted_sessions(cli.env.store)
    unit = granularity or cli.settings.record.granularity
    lines, running, results = list[str](), list[str](), list[InstallResult]()
    failure: ConflictError | None = None
    for client in clients:
        has_settings = client.agent.hooks.settings_file(client.folder).exists()
        try:
            result = hooks.install(
                cli.env.store, client, python=sys.executable, granularity=unit, known=known, privacy=cli.privacy
            )
            question = f"{result.agent.title} runs hooks only if you trust them. Trust the hook of sessgit?"
            if result.untrusted and (trust or (render.can_ask(cli) and render.ask(question))):
                result = replace(result, untrusted=(), refusal=hooks.trust(client, cli.context.env))
        except ConflictError as error:  # the others can be recorded all the same
            failure = failure or error
            continue
        results.append(result)
        lines += _installed(cli, result, is_first=is_first)
        running += _running_clients(result, has_settings=has_settings)
    if failure and not results:
        raise failure
    if unit != cli.settings.record.granularity:
        settings.change_setting(StorePaths(cli.env.store), "record.granularity", unit)
    older = sum(result.older_conversations for result in results)
    if statusline:
        lines.append("Claude Code shows a status line (undo: sessgit uninstall)")
    if older:
        lines.append(f"{text.counted(older, 'older conversation')} can be imported: sessgit import")
    if is_first or any(result.added and not result.already_there for result in results):  # an import may have made it
        lines.append(f"Prompts, answers and tool output go to {cli.short(cli.env.store)}.")
        lines.append("Only you can read it. It is not encrypted; common secrets are redacted.")
        lines.append("To exclude a project: sessgit off")
    lines += running
    if status.blocked_folders(cli.env.store):
        hooks_there = " and ".join(_hooks(cli, result) for result in results)
        lines = [f"Nothing can be recorded: {status.blocked_reason(cli.env.store)}"]
        lines.append(f"There are {hooks_there} (undo: sessgit uninstall)")
    changes = ("settings", "added", "already_there", "untrusted")
    clients_json = [{"agent": result.agent.name, **frame.attributes(result, *changes)} for result in results]
    document = {"store": str(cli.env.store), "older": older, "clients": clients_json}
    return Answer(document, lines, error=failure)


def _clients(cli: Invocation, name: str) -> list[Client]:
    """Return the client of the named agent, else every client with a folder here, or the default one if none has."""
    if agents.check_name(name):
        named = agents.client(cli.env.homes, name)
        if not named.agent.has("hooks"):
            raise UsageError(f"{named.agent.title} runs no hooks.", "`sessgit import` records its conversations.")
        return [named]
    present = [client for client in agents.hooked_clients(cli.env.homes) if client.folder.is_dir()]
    return present or [agents.client(cli.env.homes)]


def _prepared(cli: Invocation) -> Answer:
    """Make what the plugin needs, and say what else it needs."""
    from sessgit.check import status

    hooks.prepare(cli.env.store, sys.executable)
    recording = status.recording(cli.env.store, cli.env.homes)
    lines = [f"The store in {cli.short(cli.env.store)} is ready for the plugin."]
    if recording.on:
        by = f"the plugin {recording.plugin}" if recording.plugin else "the hooks in the settings"
        lines.append(f"Recording is on, by {by} (undo: sessgit uninstall)")
    else:
        lines.append(f"Recording is off: {recording.problem}. To add the plugin:")
        lines += ["    claude plugin marketplace add REPOSITORY", "    claude plugin install sessgit@sessgit"]
    if shutil.which("sessgit") is None:
        lines.append("The plugin's commands need `sessgit` on the PATH, where it is not.")
    return Answer({"store": str(cli.env.store), "older": 0, "clients": []}, lines)


def _hooks(cli: Invocation, result: InstallResult) -> str:
    if result.plugin and not result.added and not result.already_there:
        return f"the hooks of the plugin {result.plugin}"
    count = text.counted(len(result.added) + len(result.already_there), "hook")
    return f"{count} in {cli.short(result.settings)}"


def _installed(cli: Invocation, result: InstallResult, *, is_first: bool) -> Iterator[str]:
    if result.refusal:
        yield f"{result.agent.title} is not recorded yet: {result.refusal} ({_hooks(cli, result)})."
    else:
        was = " already" if not is_first and not result.added and not result.other_stubs else ""
        yield f"Recording is on{was}: {_hooks(cli, result)} (undo: sessgit uninstall)"
    if result.untrusted:
        yield f"To trust them: sessgit install --agent {result.agent.name} --trust"
    for stub in result.other_stubs:
        yield f"The hooks no longer record into {cli.short(stub.parent)}."
    if result.plugin and (result.added or result.already_there):
        yield f"The plugin {result.plugin} leaves recording to these hooks."


def _running_clients(result: InstallResult, *, has_settings: bool) -> Iterator[str]:
    """Say from when on clients that are running are recorded."""
    if not result.added:
        return
    if result.agent.name != DEFAULT_AGENT:
        yield f"Restart {result.agent.title} where it is running."
    elif has_settings:
        yield "If Claude Code is running, it is recorded from its next prompt."
    else:
        yield "If Claude Code is running: 2.1 is recorded from its next prompt, 2.0 after a restart."


@frame.command("uninstall")
def uninstall(cli: Invocation) -> Answer:
    """Stop recording.

    Removes the hooks from the clients' settings and disables the plugin; the store stays. A command that names a
    conversation still records its new turns, and so does `sessgit import`. To keep a project out of the store, use
    `sessgit off`.
    """
    has_store, results, removed = cli.has_store, list[UninstallResult](), list[str]()
    failure: ConflictError | None = None
    for client in _clients(cli, ""):
        try:
            results.append(hooks.uninstall(cli.env.store, client))
        except ConflictError as error:
            failure = failure or error
    if failure and not results:
        raise failure
    for result in results:
        if result.removed:
            removed.append(f"{text.counted(len(result.removed), 'hook')} removed from {cli.short(result.settings)}")
        if result.plugin:
            removed.append(f"the plugin is disabled (undo: claude plugin enable {result.plugin})")
        if result.status_line:
            removed.append("the status line removed")
    lines = [f"Recording is off: {', '.join(removed) or 'there were no hooks'}"]
    if has_store:
        lines.append(f"The store stays in {cli.short(cli.env.store)}; delete that folder to remove all recordings.")
    clients = [
        {"agent": result.agent.name, **frame.attributes(result, "settings", "removed"), "plugin": result.plugin or None}
        for result in results
    ]
    document = {"store": str(cli.env.store) if has_store else None, "clients": clients}
    return Answer(document, lines, error=failure)


@frame.command("on", needs="store")
def on(cli: Invocation, folder: str = FOLDER) -> Answer:
    """Record a project again after `sessgit off`.

    Turns from the meantime are recorded with the next turn of their conversation, or by `sessgit import`.
    """
    from sessgit.check import status

    result = privacy.switch_on(StorePaths(cli.env.store), cli.folder(folder), str(cli.env.home))
    recording = status.recording(cli.env.store, cli.env.homes)
    project = cli.shown(result.project)
    lines = [f"{project} is already on."]
    if result.changed:
        lines = [f"On: {project} is recorded from now on."]
        lines.append("Turns from the meantime are recorded with the next turn, or by sessgit import.")
    if not recording.on:
        lines.append(f"But nothing is recorded: {recording.why}")
    return Answer(frame.attributes(result, "project", "changed") | {"recorded": recording.on}, lines)


@frame.command("off")
def off(cli: Invocation, folder: str = FOLDER) -> Answer:
    """Stop recording a project.

    The project is the git repository of DIR with all its worktrees, or else DIR itself, with all subfolders. What is
    already recorded stays. The setting record.exclude lists the projects that are off; it also takes globs.
    """
    cli.create_store()
    result = privacy.switch_off(StorePaths(cli.env.store), cli.folder(folder), str(cli.env.home))
    kept = len(privacy.recorded_sessions(cli.index, result.project))
    project = cli.shown(result.project)
    lines = [f"{project} is already off (record.exclude has “{cli.shown(result.glob)}”)."]
    if result.changed:
        lines = [f"Off: {project} is no longer recorded (undo: sessgit on)."]
    if kept:
        stays = "stays" if kept == 1 else "stay"
        lines.append(f"{text.counted(kept, 'recorded conversation')} {stays} in the store.")
    return Answer(frame.attributes(result, "project", "changed") | {"recorded": False, "sessions": kept}, lines)


@frame.command("config", excludes={"--unset": "KEY VALUE"})
def config(
    cli: Invocation,
    key: str = argument("KEY", "A setting, such as record.granularity."),
    value: str | None = argument("VALUE", "The new value."),
    unset: str = option("--unset KEY", "Restore the default."),
) -> Answer:
    """Show or change the settings.

    record.granularity is "turn", or "cell" to commit after each tool result too. record.redact replaces secrets.
    record.fsync syncs each commit to the disk.

    record.include and record.exclude are lists of globs, such as '["~/private/*", "/srv/secret"]'. A project is
    recorded if it matches the first list, or that is empty, and does not match the second. A glob is an absolute
    path, or begins with ~/ or *. It matches a folder, everything below it and its worktrees; * matches / too. If one
    of the two lists is invalid, nothing is recorded.

    archive.after archives a conversation this long after its last line. undo.keep is how long undo can restore what
    a command removed. Both are a number with h, d or w, such as 90d; "" is never for the first, forever for the second.

    sync.include is what push sends if you name nothing: globs, and labels as "label:NAME". project.map says which
    folder here stands for a folder of another machine: project.map./home/anna/code /Users/anna/src.

    plugin.answer has the plugin answer /sessgit:log and /sessgit:search itself, without a request to the model. Claude
    Code 2.0 shows such an answer only in its own window, not with -p.

    prices are US dollars for a million tokens: prices.MODEL "{input = 5, output = 25, cache_read = 0.5, cache_write =
    6.25}".
    """
    paths, has_store = StorePaths(cli.env.store), cli.has_store  # raises StoreError if the store is another user's
    if unset or value is not None:
        key = unset or key
        new = None if value is None else _parse_value(value)
        settings.check_change(paths, key, new)  # so that a mistake creates no store
        cli.create_store()
        settings.change_setting(paths, key, new)
        listed = settings.list_settings(cli.settings, settings.read_document(paths))
        remarks = _remarks(cli, key) if value is not None else ()
        return Answer(_settings_json(each for each in listed if each.key == key), remarks=remarks)
    listed = settings.list_settings(cli.settings, settings.read_document(paths) if has_store else {})
    if key:
        listed = [each for each in listed if each.key == key or each.key.startswith(f"{key}.")]
        if not listed and key not in settings.TABLES:
            raise UsageError(f"there is no setting “{key}”.", "`sessgit config` lists all settings.")
    width = max((len(each.key) for each in listed), default=0)
    notes = {True: cli.paint("dim", "  (default)"), False: ""}
    lines = [
        f"{canonical.printable(each.key.ljust(width))}  {_value(each.value)}{notes[each.is_default]}" for each in listed
    ]
    if len(listed) == 1 and listed[0].key == key:
        lines = [_value(listed[0].value)]
    return Answer(_settings_json(listed), lines)


def _remarks(cli: Invocation, key: str) -> Iterator[str]:
    if key == "record.granularity":
        yield "Run sessgit install again: a commit for each cell needs one more hook."
    if key == "record.redact" and not cli.settings.record.redact:
        yield "From now on secrets are stored unredacted (undo: sessgit config --unset record.redact)."


def _settings_json(listed: Iterable[Setting]) -> dict[str, object]:
    return {"settings": {each.key: {"value": each.value, "default": each.is_default} for each in listed}}


def _parse_value(typed: str) -> object:
    """Return the value as TOML reads it; what is no TOML is a string."""
    try:
        return tomllib.loads(f"value = {typed}")["value"]
    except (ValueError, KeyError, RecursionError):
        return typed


def _value(value: object) -> str:
    """Return a string as it is, and anything else as TOML."""
    return canonical.printable(value) if value and isinstance(value, str) else settings.toml_value(value)
