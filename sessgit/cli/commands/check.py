"""`sessgit verify`, `repair`, `doctor`: what is wrong with the store and with recording, and how it is fixed."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.agents.values import Mend
from sessgit.check import verify as verification
from sessgit.check.verify import Verified
from sessgit.cli import client_notes, frame, operands, render, text
from sessgit.cli.frame import DRY_RUN, Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import DamageError, SessgitError
from sessgit.model import canonical, ids
from sessgit.model.finding import Finding
from sessgit.store import layout, remotes
from sessgit.store.settings import Privacy, RecordConfig

if TYPE_CHECKING:
    from sessgit.check.doctor import Diagnosis
    from sessgit.check.repair import Repaired

_SEVERITIES = {"damage": ("red", "damaged"), "wrong": ("yellow", "wrong"), "note": ("dim", "note")}
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIMIT = 200
_MENDS = 12
_CLIENTS = 4


@frame.command("verify", needs="store")
def verify(
    cli: Invocation,
    address: str = argument("ADDRESS", "SESSION (default: the whole store)."),
    deep: bool = option("--deep", "Also hash every object and cut every file again."),
) -> Answer:
    """Check the store for damage.

    Checks that turns are numbered without gaps; that lines have the hashes and the places that were noted when they
    were recorded; that the folder of each turn follows from its lines; that each commit changes only what its event may
    change; that merges and joins follow from their two sides; and that refs, tags and what is kept for undo point where
    they should. Changes nothing. Each finding says where it is and what to do next; a note means that no recorded data
    is lost. Exit code 6 if anything is damaged or wrong.

    --deep also lets git read and hash every object, cuts every transcript into turns again, and compares the indexes
    and the proofs of redacted lines in the client's own files with the store.
    """

    session = layout.session_of(operands.branch(cli, address)) if address else ""
    if session:
        report = verification.verify_session(cli.store, session, deep=deep)
    else:
        report = verification.verify_store(cli.store, cli.index, render.progress(cli, "Checking"), deep=deep)
    if deep:
        report = verification.verify_objects(cli.store, report, render.progress(cli, "Hashing", "objects"))
    document = {
        "id": session or None, "deep": deep, "sound": report.is_sound,
        **frame.attributes(report, "sessions", "turns", "proved", "cut", "damaged"),
        "findings": _with_objects(report.findings),
    }  # fmt: skip
    exit_code = 0 if report.is_sound else DamageError.exit_code
    return Answer(document, _verified(cli, report, deep=deep), exit_code=exit_code)


def _verified(cli: Invocation, report: Verified, *, deep: bool) -> Iterator[str]:
    """Yield the page of `verify`."""
    yield from _findings(cli, report.findings)
    if report.findings:
        yield ""
    sessions = text.counted(report.sessions, "conversation")
    intact = report.sessions - len(report.damaged)
    if report.is_sound:
        outcome = "no damage"
    elif report.damaged:
        outcome = f"{intact:,} of {sessions} {'is' if 1 in (intact, report.sessions) else 'are'} intact"
    else:
        outcome = "they are intact, but other parts of the store are not"
    style = "green" if report.is_sound else ""
    yield from text.paragraph(cli, f"{sessions}, {text.counted(report.turns, 'turn')}: {outcome}.", style)
    hashes = f"{text.counted(report.proved, 'hash', 'hashes')} of lines, taken when they were recorded"
    checks = {"Checked": hashes, "Recomputed": "cells and texts, from the lines"}
    if deep:
        checks["Cut"] = f"{text.counted(report.cut or 0, 'file')} rebuilt and cut into turns again"
        checks["Hashed"] = "every object, by git fsck --strict"
    for label, check in checks.items():
        yield from text.field(cli, label, [check], least=11)


@frame.command("repair", needs="store")
def repair(
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
    from sessgit.check import repair as repairs

    branch = operands.branch(cli, address)
    with ExitStack() as stack:
        known = remotes.list_remotes(cli.env.store)
        connections = [stack.enter_context(operands.connected(cli, remote)) for remote in known]
        result = repairs.repair(cli.context, branch, str(uuid.uuid4()), connections, copy=copy, dry_run=dry_run)
    made = result.made
    command, next_step = client_notes.continuation(cli, made.state) if made else ("", "")
    document = {
        **frame.attributes(result, "branch", "lost", "turns", "unread", "refs", "rerecorded"),
        "sound": result.was_sound, "dry_run": dry_run,
        "recovered": [{"objects": count, "source": source} for source, count in result.restored],
        "findings": _with_objects(result.findings),
        "repairs": [{**frame.attributes(mend, "turn", "line", "kind"), "message": mend.what} for mend in result.mends],
        "shared": result.shared if result.is_needed else None,
        "redacted": result.redacted if result.is_needed else 0,
        "id": made.state.id if made else None,
        "commit": made.commit if made else None,
        "transcript": str(made.transcript) if made else None,
        "files": client_notes.as_json(made.files) if made else [],
        "resume": command or None,
    }  # fmt: skip
    failed = (result.lost or result.findings) and not result.is_needed
    return Answer(
        document,
        _repaired(cli, result, next_step),
        client_notes.redacted(result.redacted if made else 0, "it"),
        DamageError.exit_code if failed else 0,
    )


def _repaired(cli: Invocation, repaired: Repaired, next_step: str) -> Iterator[str]:
    """Yield the page of `repair`; `next_step` says how the repaired session is continued, or is ``""``."""
    for sentence in _restored(cli, repaired):
        yield from text.paragraph(cli, sentence)
    if repaired.was_sound:
        return
    # Findings about objects advise this command.
    yield from _findings(cli, (replace(one, next="") if one.objects else one for one in repaired.findings))
    yield from _mends(cli, repaired)
    for sentence in _outcome(cli, repaired):
        yield from text.paragraph(cli, sentence)
    if repaired.made is not None:
        yield from client_notes.written(repaired.made.files)
        yield canonical.printable(next_step)


def _restored(cli: Invocation, repaired: Repaired) -> Iterator[str]:
    """Yield what was restored from elsewhere, and what could not be."""
    name = cli.ident(repaired.branch)
    if repaired.was_sound:
        turns = text.counted(repaired.turns, "turn")
        yield f"{name} needs no repair: {turns}, all lines intact. Nothing was changed."
        return
    if repaired.refs:
        were = "can be" if cli.dry_run else "was" if repaired.refs == 1 else "were"
        yield f"{text.counted(repaired.refs, 'ref')} {were} restored."
    for source, count in repaired.restored:
        yield f"{text.counted(count, 'object')} {'can be ' if cli.dry_run else ''}restored from {source}."
    if (repaired.restored or repaired.refs) and cli.dry_run:
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
            yield from text.field(cli, cli.paint("bold", _place(repaired, mend)), [mend.what])
        if len(mends) > limit:
            yield f"{_place(repaired, mends[limit])}and {len(mends) - limit:,} more of this kind"


def _place(repaired: Repaired, mend: Mend) -> str:
    return f"  {f'@{mend.turn}' if mend.turn <= repaired.turns else 'end'}:{mend.line}".ljust(16)


def _outcome(cli: Invocation, repaired: Repaired) -> Iterator[str]:
    name, turns, made = cli.ident(repaired.branch), text.counted(repaired.turns, "turn"), repaired.made
    if repaired.unread:
        unread = text.counted(repaired.unread, "turn")
        yield f"{unread} from turn {repaired.turns + 1} on cannot be read and are left out."
    if made is not None:
        shared = f", {repaired.shared} of them shared with {name}" if repaired.shared else ""
        new_turns = text.counted(made.state.turns, "turn")
        yield f"{cli.ident(made.state.id)} is the repaired conversation: {new_turns}{shared}."
        yield f"{name} did not change; sessgit undo removes the new one."
    elif repaired.is_needed:
        last = f"turns 1 to {repaired.shared}" if repaired.shared > 1 else "turn 1"
        what = f"that keeps {last} of {name}" if repaired.shared else "without shared turns"
        yield f"Nothing was changed. This would create a new conversation {what}; the original stays."
    elif repaired.rerecorded and cli.dry_run:
        yield f"Nothing was changed. {name} would be recorded again from its file."
    elif repaired.rerecorded:
        yield f"What was found nowhere is lost. {name} was recorded again from its file, {turns}."
    elif repaired.turns and not repaired.findings:
        yield f"{name} is repaired: {turns}."


@frame.command("doctor")
def doctor(cli: Invocation, fix: bool = option("--fix", "Fix what can be fixed without losing anything.")) -> Answer:
    """Check that recording works.

    Checks hooks and settings, waiting events, indexes, locks, leftovers of killed commands, permissions of the store,
    transcripts that the client will soon delete, the disk, packing, git, remotes, the clock, and errors in the log.
    Each finding says what to do. --fix does what loses nothing, and says what it did. Exit code 1 if anything is wrong.
    """
    from sessgit.check import doctor as doctors

    index, problem = None, None
    try:
        index = cli.index if cli.has_store and cli.store.repo else None
    except SessgitError as error:
        problem = error
    try:
        privacy = cli.privacy
    except SessgitError:  # the settings are wrong, which is a finding
        privacy = Privacy(RecordConfig(), str(cli.env.home), cli.env.off)
    env = dict(os.environ)
    context = doctors.DoctorContext(cli.env.store, cli.env.homes, privacy, index, env, sys.executable, cli.now, problem)
    report = doctors.diagnose(context, fix=fix)
    document = {
        "sound": report.is_sound,
        "findings": [_finding_json(finding) | {"fixable": finding.fix is not None} for finding in report.findings],
        "fixed": [
            {**frame.attributes(one.finding, "kind", "where"), "message": one.finding.what,
             "done": one.done or None, "error": one.error or None}
            for one in report.fixed
        ],
        "version": report.version, "python": report.python, "git": report.git or None,
        "clients": list(report.clients),
    }  # fmt: skip
    return Answer(document, _diagnosed(cli, report), exit_code=int(not report.is_sound))


def _diagnosed(cli: Invocation, diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the page of `doctor`."""
    for fixed in diagnosis.fixed:
        outcome = cli.paint("green", "fixed") if fixed.done else cli.paint("yellow", "not fixed")
        finding = _without_home(cli, fixed.finding)
        yield from _block(cli, finding.where, outcome, finding.what, f"→ {fixed.done or fixed.error}")
    yield from _findings(cli, [_without_home(cli, finding) for finding in diagnosis.findings])
    if diagnosis.fixed or diagnosis.findings:
        yield ""
    wrong = [finding for finding in diagnosis.findings if finding.severity != "note"]
    fixable = sum(finding.fix is not None for finding in wrong)
    if wrong:
        fix = f" `sessgit doctor --fix` fixes {fixable} of them." if fixable else ""
        summary = f"{text.counted(len(wrong), 'problem')} found.{fix}"
    else:
        notes = f"; {text.counted(len(diagnosis.findings), 'note')}" if diagnosis.findings else ""
        summary = f"No problems found{notes}."
    yield from text.paragraph(cli, summary)
    versions = [f"sessgit {diagnosis.version}", f"Python {diagnosis.python}", f"git {diagnosis.git or 'missing'}"]
    if diagnosis.clients:
        others = len(diagnosis.clients) - _CLIENTS
        more = f" and {others:,} more" if others > 0 else ""
        versions.append(f"clients {', '.join(diagnosis.clients[:_CLIENTS])}{more}")
    yield from text.field(cli, "", versions, between=" · ")
    yield from text.paragraph(cli, "Run `sessgit verify` to check the store.")


def _without_home(cli: Invocation, finding: Finding) -> Finding:
    """Return the finding with `~` for the home folder."""
    what, hint = (sentence.replace(f"{cli.env.home}/", "~/") for sentence in (finding.what, finding.next))
    return replace(finding, where=cli.short(finding.where), what=what, next=hint)


# Findings: where, what is wrong, and what to do next


def _findings(cli: Invocation, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the first findings; JSON has all of them."""
    every = list(findings)
    for finding in every[:_LIMIT]:
        style, word = _SEVERITIES[finding.severity]
        name, at, turn = finding.where.partition("@")
        is_address = ids.is_branch(name) and _UUID.fullmatch(layout.session_of(name))
        where = cli.ident(name) + at + turn if is_address else finding.where
        yield from _block(cli, where, cli.paint(style, word), finding.what, finding.next)
    if len(every) > _LIMIT:
        yield f"and {len(every) - _LIMIT:,} more: --json lists all"


def _block(cli: Invocation, where: str, outcome: str, *sentences: str) -> Iterator[str]:
    """Yield a place with a word about it, and sentences below."""
    place = text.cut(canonical.printable(where), cli.width - 2 - text.width(outcome))
    yield f"{cli.paint('bold', place)}  {outcome}"
    for sentence in filter(None, sentences):
        yield from text.paragraph(cli, sentence, indent=4)


def _with_objects(findings: Iterable[Finding]) -> list[dict[str, object]]:
    return [_finding_json(finding) | {"objects": list(finding.objects)} for finding in findings]


def _finding_json(finding: Finding) -> dict[str, object]:
    """Return a finding as all documents have it."""
    words = {"message": finding.what, "hint": finding.next or None}
    return frame.attributes(finding, "severity", "kind", "where") | words
