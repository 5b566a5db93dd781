"""`sessgit status`: whether recording is on, and what needs attention. `sessgit` alone begins with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sessgit.check.status import Contents, Deleting, Status, Waiting
from sessgit.cli import frame, invocation, operands, render, text
from sessgit.cli.frame import ADDRESS, Answer
from sessgit.cli.invocation import Invocation
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical
from sessgit.record import catch_up
from sessgit.store.layout import StorePaths


@frame.command("status")
def run(
    cli: Invocation,
    address: str = ADDRESS,
) -> Answer:
    """Show what is recorded and what needs attention.

    Also shows how far the current session, or the one at ADDRESS, is recorded, and which transcripts the client will
    soon delete.
    """
    session = _session(cli, address)
    status = _status(cli)
    return Answer(lambda: _as_json(cli, status, session), _status_lines(cli, status, session), then=cli.record_waiting)


def first() -> None:
    """Print what `sessgit` says without a command."""
    cli = invocation.read()
    session = _session(cli)
    render.lines(cli, _welcome_lines(cli, _status(cli), session))
    cli.record_waiting()


def _session(cli: Invocation, address: str = "") -> ResolvedTarget | None:
    if address:
        cli.check_store()
        return operands.target(cli, address)
    return operands.current(cli) if cli.has_store else None


def _status(cli: Invocation) -> Status:
    from sessgit.check import status

    index = cli.index if cli.has_store else None
    return status.status(cli.env.store, cli.env.homes, index, cli.privacy, cwd=cli.cwd, now=cli.now)


FIRST_COMMANDS = (
    ("sessgit log", "the turns of this conversation; sessgit ls lists all of this project"),
    ("sessgit search WORDS", "search what was said in all conversations"),
    ("sessgit fork --at N", "continue from turn N in a new conversation"),
    ("sessgit diff A B", "compare two conversations"),
    ("sessgit restore ID", "restore the client's file, even if the client deleted it"),
)


def _status_lines(cli: Invocation, status: Status, session: ResolvedTarget | None) -> Iterator[str]:
    """Yield the whole page."""
    yield from _recording(cli, status)
    yield from _line(cli, "Store", "", cli.short(cli.env.store), *_store(status.contents))
    if session is not None:
        state = session.state
        title = f"{cli.ident(session.branch.name)}@{state.turns}  {text.title(state, 40)}"
        level = "all recorded" if _is_level(cli, session) else "its transcript has newer turns"
        yield from _line(cli, "Session", "", title, text.counted(state.turns, "turn"), level)
    for remark in _remarks(cli, status):
        yield from _line(cli, "Attention", "yellow", *remark)


def _welcome_lines(cli: Invocation, status: Status, session: ResolvedTarget | None) -> Iterator[str]:
    """Yield the page of `sessgit` alone: the status and the first commands, or how to begin."""
    if status.contents is None:
        yield from _recording(cli, status)
        older = f": {status.older:,} {'is' if status.older == 1 else 'are'} here" if status.older else ""
        commands: Sequence[tuple[str, str]] = (
            ("sessgit install", "record every conversation with Claude Code from now on"),
            ("sessgit import", f"import the conversations that you had before{older}"),
        )
    else:
        yield from _status_lines(cli, status, session)
        commands = FIRST_COMMANDS
    yield ""
    columns = max(text.width(command) for command, _ in commands)
    for command, purpose in commands:
        yield from text.field(cli, f"  {cli.paint('bold', command.ljust(columns))}  ", [purpose])
    yield ""
    yield cli.paint("dim", "sessgit --help lists all commands.")


def _is_level(cli: Invocation, session: ResolvedTarget) -> bool:
    """Return whether the session is recorded up to the end of its transcript."""
    path = session.state.transcript
    return not path or catch_up.is_level(StorePaths(cli.env.store), session.session, Path(path))


def _as_json(cli: Invocation, status: Status, session: ResolvedTarget | None) -> dict[str, Any]:
    """Return what `status --json` prints."""
    contents, deleting, waiting = status.contents, status.deleting, status.waiting
    return {
        "recording": {
            "on": status.recording.on, "reason": status.recording.why or None,
            "plugin": status.recording.plugin or None,
        },
        "here": {
            "on": status.recording.on and not _reasons_off_here(cli, status), "project": status.project,
            "recorded": status.here.recorded, "glob": status.here.glob or None, "off_in_environment": cli.env.off,
        },
        "redact": cli.settings.record.redact,
        "store": str(cli.env.store),
        "sessions": contents.sessions if contents else 0,
        "turns": contents.turns if contents else 0,
        "bytes": contents.size if contents else 0,
        "raw_bytes": contents.raw if contents else 0,
        "last": _last_json(contents) if contents else None,
        "only_here": contents.only_here if contents else 0,
        "older": status.older,
        "purging": status.purging,
        "packing": status.packing,
        "waiting": waiting and {
            "events": waiting.events, "first": _moment(waiting.first), "recorder": waiting.recorder
        },
        "deleting": deleting and {
            **frame.attributes(deleting, "transcripts", "unrecorded", "off"), "after_days": deleting.days,
            "first": _moment(deleting.first),
        },
        "errors": [
            {"time": _moment(canonical.seconds(entry.time)), "version": entry.version, "message": entry.message}
            for entry in status.errors
        ],
        "session": session and {
            "id": session.branch.name, "turns": session.state.turns, "level": _is_level(cli, session)
        },
    }  # fmt: skip


def _last_json(contents: Contents) -> dict[str, Any] | None:
    if contents.last is None:
        return None
    latest = contents.latest
    return {
        "id": contents.last.name, "turn": contents.last.turns, "time": contents.last.updated or None,
        "recorded": _moment(latest.time) if latest else None,
        "delay": None if latest is None or latest.delay is None else latest.delay / 1000,
    }  # fmt: skip


def _moment(seconds: float | None) -> str | None:
    """Return the time as JSON has it, or None if it is unknown or outside of the calendar."""
    try:
        return None if seconds is None else canonical.rfc3339(seconds)
    except (ValueError, OverflowError, OSError):
        return None


def _line(cli: Invocation, label: str, style: str, *parts: str) -> Iterator[str]:
    return text.field(cli, label, parts, least=12, style=f"bold {style}".strip(), between=" · ")


def _recording(cli: Invocation, status: Status) -> Iterator[str]:
    """Yield whether this project is recorded, with the last turn, or why not."""
    reasons, last = _reasons_off_here(cli, status), _last(cli, status.contents)
    if status.recording.on and not reasons:
        by = f"by the plugin {status.recording.plugin}" if status.recording.plugin else ""
        yield from _line(cli, "Recording", "green", "on", by, status.recording.why, last)
        return
    yield from _line(
        cli, "Recording", "yellow", "off here" if status.recording.on else "off", status.recording.why, *reasons
    )
    if status.recording.on:
        yield from _line(cli, "", "", last)


def _reasons_off_here(cli: Invocation, status: Status) -> list[str]:
    reasons = ["SESSGIT_OFF=1 is set: no client started here is recorded"] if cli.env.off else []
    if not status.here.recorded:
        reasons.append(f"{cli.short(status.project)} is off: {status.here.why}")
    return reasons


def _last(cli: Invocation, contents: Contents | None) -> str:
    if contents is None or contents.last is None:
        return ""
    address = f"{cli.ident(contents.last.name)}@{contents.last.turns}"
    last = f"last turn {text.ago(cli, contents.last.updated)} ({address})"
    delay = contents.latest.delay if contents.latest else None
    if delay is None:
        return last
    return f"{last}, {f'{delay} ms' if delay < 1000 else f'{delay / 1000:.1f} s'} after the answer"


def _store(contents: Contents | None) -> list[str]:
    if contents is None:
        return ["not there yet: sessgit install"]
    raw = f" (raw {text.size(contents.raw)})" if contents.raw else ""
    sessions, turns = text.counted(contents.sessions, "conversation"), text.counted(contents.turns, "turn")
    return [f"{sessions}, {turns}", text.size(contents.size) + raw]


def _remarks(cli: Invocation, status: Status) -> Iterator[Sequence[str]]:
    """Yield what needs attention, each as the parts of a line."""
    if status.waiting:
        yield _waiting(cli, status.waiting)
    if status.deleting:
        yield list(_deleting(cli, status.deleting))
    if status.contents and status.contents.only_here:
        lost = text.counted(status.contents.only_here, "conversation")
        yield [f"the client deleted {lost}: sessgit restore --all-lost"]
    if status.older:
        yield [f"{text.counted(status.older, 'older conversation')} can be imported: sessgit import"]
    if status.contents and not cli.settings.record.redact:
        yield ["secrets are stored unredacted: record.redact is false"]
    if status.purging:
        yield ["a purge was interrupted: the value may still be stored", "sessgit doctor --fix finishes it"]
    if status.packing:
        yield ["the store is being packed in the background, and gets smaller"]
    if status.errors:
        last = status.errors[-1]
        entries = text.counted(len(status.errors), "entry", "entries")
        log = cli.short(StorePaths(cli.env.store).log)
        yield [f"{entries} in {log}", f"the last one {text.ago(cli, last.time)}:"]
        yield [last.message, "find the cause: sessgit doctor"]


def _waiting(cli: Invocation, waiting: Waiting) -> tuple[str, str]:
    when = text.ago(cli, waiting.first)
    if waiting.events == 1:
        events = f"1 event is waiting to be recorded, from {when}"
    else:
        events = f"{waiting.events:,} events are waiting to be recorded, the first from {when}"
    if waiting.recorder:
        return events, "a recorder is running"
    outcome = "SESSGIT_OFF=1 prevents one from starting here" if cli.env.off else "one was started"
    return events, f"no recorder was running: {outcome}"


def _deleting(cli: Invocation, deleting: Deleting) -> Iterator[str]:
    day = time.strftime("%d %b", time.localtime(deleting.first)).lstrip("0")
    when = "at its next start" if deleting.first <= cli.now else f"on {day}"
    first = when if deleting.transcripts == 1 else f"within a week, the first {when}"
    yield f"the client deletes {text.counted(deleting.transcripts, 'transcript')} {first}"
    if missing := deleting.unrecorded - deleting.off:
        yield f"{missing:,} of them {'is' if missing == 1 else 'are'} not recorded: sessgit import"
    if deleting.off:
        yield f"{deleting.off:,} of projects that are off"
    if not deleting.unrecorded:
        yield "all recorded" if deleting.transcripts > 1 else "it is recorded"
