"""`sessgit doctor`: whether recording works, and what is in its way."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from sessgit.check import doctor as checks
from sessgit.check.doctor import Diagnosis
from sessgit.cli import blocks, frame, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import option
from sessgit.cli.pages import findings
from sessgit.errors import SessgitError
from sessgit.model.finding import Finding
from sessgit.store.settings import Privacy, RecordConfig

_CLIENTS = 4


@frame.command("doctor")
def run(cli: Invocation, fix: bool = option("--fix", "Fix what can be fixed without losing anything.")) -> Answer:
    """Check that recording works.

    Checks hooks and settings, waiting events, indexes, locks, leftovers of killed commands, permissions of the store,
    transcripts that the client will soon delete, the disk, packing, git, remotes, the clock, and errors in the log.
    Each finding says what to do. --fix does what loses nothing, and says what it did. Exit code 1 if anything is wrong.
    """

    index, problem = None, None
    try:
        index = cli.index if cli.has_store and cli.store.repo else None
    except SessgitError as error:
        problem = error
    try:
        privacy = cli.privacy
    except SessgitError:  # the settings are wrong, which is a finding
        privacy = Privacy(RecordConfig(), str(cli.env.home), cli.env.off)
    context = checks.DoctorContext(
        cli.env.store,
        cli.env.homes,
        privacy,
        index,
        dict(os.environ),
        sys.executable,
        cli.now,
        problem,
    )
    report = checks.diagnose(context, fix=fix)
    document = {
        "sound": report.is_sound,
        "findings": [findings.finding_json(one) | {"fixable": one.fix is not None} for one in report.findings],
        "fixed": [
            {"kind": one.finding.kind, "where": one.finding.where, "message": one.finding.what,
             "done": one.done or None, "error": one.error or None}
            for one in report.fixed
        ],
        "version": report.version, "python": report.python, "git": report.git or None,
        "clients": list(report.clients),
    }  # fmt: skip
    return Answer(document, _problem_lines(cli, report), exit_code=int(not report.is_sound))


def _problem_lines(cli: Invocation, diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the whole page."""
    for fixed in diagnosis.fixed:
        outcome = cli.paint("green", "fixed") if fixed.done else cli.paint("yellow", "not fixed")
        finding = _short(cli, fixed.finding)
        yield from findings.block(cli, finding.where, outcome, finding.what, f"→ {fixed.done or fixed.error}")
    yield from findings.lines(cli, [_short(cli, finding) for finding in diagnosis.findings])
    if diagnosis.fixed or diagnosis.findings:
        yield ""
    yield from blocks.paragraph(cli, _summary(diagnosis))
    versions = [f"sessgit {diagnosis.version}", f"Python {diagnosis.python}", f"git {diagnosis.git or 'missing'}"]
    clients, others = diagnosis.clients[:_CLIENTS], diagnosis.clients[_CLIENTS:]
    more = f" and {len(others):,} more" if others else ""
    yield from blocks.field(
        cli, "", [*versions, f"clients {', '.join(clients)}{more}" if clients else ""], between=" · "
    )
    yield from blocks.paragraph(cli, "Run `sessgit verify` to check the store.")


def _summary(diagnosis: Diagnosis) -> str:
    if diagnosis.is_sound:
        notes = f"; {text.counted(len(diagnosis.findings), 'note')}" if diagnosis.findings else ""
        return f"No problems found{notes}."
    wrong = [finding for finding in diagnosis.findings if finding.severity != "note"]
    fixable = sum(finding.fix is not None for finding in wrong)
    fix = f" `sessgit doctor --fix` fixes {fixable} of them." if fixable else ""
    return f"{text.counted(len(wrong), 'problem')} found.{fix}"


def _short(cli: Invocation, finding: Finding) -> Finding:
    """Return the finding with `~` for the home folder."""
    what, hint = (sentence.replace(f"{cli.env.home}/", "~/") for sentence in (finding.what, finding.next))
    return replace(finding, where=cli.short(finding.where), what=what, next=hint)
