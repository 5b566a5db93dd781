"""`sessgit verify`: damage in the store."""

from __future__ import annotations

from collections.abc import Iterator

from sessgit.check import verify as checks
from sessgit.check.verify import Verified
from sessgit.cli import blocks, frame, operands, render, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.cli.pages import findings
from sessgit.errors import DamageError
from sessgit.store import layout


@frame.command("verify", needs="store")
def run(
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
        report = checks.verify_session(cli.store, session, deep=deep)
    else:
        with render.progress(cli, "Checking", unit="turns") as progress:
            report = checks.verify_store(cli.store, cli.index, progress, deep=deep)
    if deep:
        with render.progress(cli, "Hashing", unit="objects") as progress:
            report = checks.verify_objects(cli.store, report, progress)
    document = {
        "id": session or None, "deep": deep, "sound": report.is_sound,
        **frame.attributes(report, "sessions", "turns", "proved", "cut", "damaged"),
        "findings": findings.as_json(report.findings),
    }  # fmt: skip
    return Answer(
        document,
        _report_lines(cli, report, deep=deep),
        exit_code=0 if report.is_sound else DamageError.exit_code,
    )


def _report_lines(cli: Invocation, result: Verified, *, deep: bool) -> Iterator[str]:
    """Yield the whole page."""
    yield from findings.lines(cli, result.findings)
    if result.findings:
        yield ""
    sessions = text.counted(result.sessions, "conversation")
    intact = result.sessions - len(result.damaged)
    if result.is_sound:
        outcome = "no damage"
    elif result.damaged:
        outcome = f"{intact:,} of {sessions} {'is' if 1 in (intact, result.sessions) else 'are'} intact"
    else:
        outcome = "they are intact, but other parts of the store are not"
    style = "green" if result.is_sound else ""
    yield from blocks.paragraph(cli, f"{sessions}, {text.counted(result.turns, 'turn')}: {outcome}.", style)
    hashes = f"{text.counted(result.proved, 'hash', 'hashes')} of lines, taken when they were recorded"
    checks = {"Checked": hashes, "Recomputed": "cells and texts, from the lines"}
    if deep:
        checks["Cut"] = f"{text.counted(result.cut or 0, 'file')} rebuilt and cut into turns again"
        checks["Hashed"] = "every object, by git fsck --strict"
    for label, check in checks.items():
        yield from blocks.field(cli, label, [check], width=11)
