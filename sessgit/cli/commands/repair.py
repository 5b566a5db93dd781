"""`sessgit repair`: a broken conversation made anew, and lost objects restored."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from sessgit.agents.values import Mend
from sessgit.check import repair as checks
from sessgit.check.repair import Repaired
from sessgit.cli import blocks, client_notes, frame, operands, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import DRY_RUN, argument, option
from sessgit.cli.pages import findings
from sessgit.errors import DamageError
from sessgit.model import canonical
from sessgit.store import remotes

_MENDS = 12


@frame.command("repair", needs="store")
def run(
    cli: Invocation,
    address: str = argument("ADDRESS", "SESSION (default: the current one)."),
    dry_run: bool = DRY_RUN,
    copy: Path | None = option("--from FILE", "Also search this copy of its transcript."),
) -> Answer:
    """Repair a broken conversation.

    Creates a new conversation from one that no client can continue; the original stays. It begins with the turns that
    need no repair, and fixes missing parents, lines glued together, calls without results, results without calls, lines
    of another conversation, duplicate uuids, cycles, times that go backwards, and a reversed file.

    If the store has lost objects or refs of the conversation, they are restored from the client's file, from the file
    that was imported, or from a remote. What is found nowhere is reported, and all readable turns become a new
    conversation.
    """

    branch = operands.branch(cli, address)
    with ExitStack() as stack:
        known = remotes.list_remotes(cli.env.store)
        connections = [stack.enter_context(operands.connected(cli, remote)) for remote in known]
        result = checks.repair(cli.context, branch, str(uuid.uuid4()), connections, copy=copy, dry_run=dry_run)
    command, next_step = client_notes.continuation(cli, result.made.state) if result.made else ("", "")
    failed = (result.lost or result.findings) and not result.is_needed
    made = result.made
    document = {
        **frame.attributes(result, "branch", "lost", "turns", "unread", "refs", "rerecorded"),
        "sound": result.was_sound, "dry_run": dry_run,
        "recovered": [{"objects": count, "source": source} for source, count in result.restored],
        "findings": findings.as_json(result.findings),
        "repairs": [{**frame.attributes(mend, "turn", "line", "kind"), "message": mend.what} for mend in result.mends],
        "shared": result.shared if result.is_needed else None,
        "redacted": result.redacted if result.is_needed else 0,
        "id": made.state.id if made else None,
        "commit": made.commit if made else None,
        "transcript": str(made.transcript) if made else None,
        "files": client_notes.as_json(made.files) if made else [],
        "resume": command or None,
    }  # fmt: skip
    return Answer(
        document,
        _repair_lines(cli, result, next_step, dry_run=dry_run),
        client_notes.redacted(result.redacted if result.made else 0, "it"),
        DamageError.exit_code if failed else 0,
    )


def _repair_lines(cli: Invocation, repaired: Repaired, way_on: str, *, dry_run: bool) -> Iterator[str]:
    """Yield the whole page; `way_on` says how the repaired session is continued, or is ``""``."""
    for sentence in _restored(cli, repaired, dry_run=dry_run):
        yield from blocks.paragraph(cli, sentence)
    if repaired.was_sound:
        return
    # Findings about objects advise this command.
    shown = (replace(finding, next="") if finding.objects else finding for finding in repaired.findings)
    yield from findings.lines(cli, shown)
    yield from _mends(cli, repaired)
    for sentence in _outcome(cli, repaired, dry_run=dry_run):
        yield from blocks.paragraph(cli, sentence)
    if repaired.made is not None and not dry_run:
        yield from client_notes.written(repaired.made.files)
        yield canonical.printable(way_on)


def _restored(cli: Invocation, repaired: Repaired, *, dry_run: bool) -> Iterator[str]:
    """Yield what was restored from elsewhere, and what could not be."""
    name = cli.ident(repaired.branch)
    if repaired.was_sound:
        turns = text.counted(repaired.turns, "turn")
        yield f"{name} needs no repair: {turns}, all lines intact. Nothing was changed."
        return
    if repaired.refs:
        were = "can be" if dry_run else "was" if repaired.refs == 1 else "were"
        yield f"{text.counted(repaired.refs, 'ref')} {were} restored."
    for source, count in repaired.restored:
        yield f"{text.counted(count, 'object')} {'can be ' if dry_run else ''}restored from {source}."
    if (repaired.restored or repaired.refs) and dry_run:
        yield "Other problems show once they are restored."
    if repaired.lost:
        objects = text.counted(len(repaired.lost), "object")
        yield f"{objects} could not be found in any of its files or on a remote."
        yield f"To search another copy of its transcript: sessgit repair {name} --from FILE"


def _mends(cli: Invocation, repaired: Repaired) -> Iterator[str]:
    """Yield the mended lines; the first few of each kind in each turn."""
    groups: dict[tuple[int, str], list[Mend]] = {}
    for mend in repaired.mends:
        groups.setdefault((mend.turn, mend.kind), []).append(mend)
    for mends in groups.values():
        limit = _MENDS if len(mends) == _MENDS else _MENDS - 1
        for mend in mends[:limit]:
            yield from blocks.field(cli, cli.paint("bold", _place(repaired, mend)), [mend.what])
        if len(mends) > limit:
            yield f"{_place(repaired, mends[limit])}and {len(mends) - limit:,} more of this kind"


def _place(repaired: Repaired, mend: Mend) -> str:
    return f"  {f'@{mend.turn}' if mend.turn <= repaired.turns else 'end'}:{mend.line}".ljust(16)


def _outcome(cli: Invocation, repaired: Repaired, *, dry_run: bool) -> Iterator[str]:
    name, turns, made = cli.ident(repaired.branch), text.counted(repaired.turns, "turn"), repaired.made
    if repaired.unread:
        unread = text.counted(repaired.unread, "turn")
        yield f"{unread} from turn {repaired.turns + 1} on cannot be read and are left out."
    if made is not None and not dry_run:
        shared = f", {repaired.shared} of them shared with {name}" if repaired.shared else ""
        new_turns = text.counted(made.state.turns, "turn")
        yield f"{cli.ident(made.state.id)} is the repaired conversation: {new_turns}{shared}."
        yield f"{name} did not change; sessgit undo removes the new one."
    elif repaired.is_needed:
        last = f"turns 1 to {repaired.shared}" if repaired.shared > 1 else "turn 1"
        what = f"that keeps {last} of {name}" if repaired.shared else "without shared turns"
        yield f"Nothing was changed. This would create a new conversation {what}; the original stays."
    elif repaired.rerecorded and dry_run:
        yield f"Nothing was changed. {name} would be recorded again from its file."
    elif repaired.rerecorded:
        yield f"What was found nowhere is lost. {name} was recorded again from its file, {turns}."
    elif repaired.turns and not repaired.findings:
        yield f"{name} is repaired: {turns}."
