"""`sessgit verify`, `repair`, `doctor`, `recover`, `gc`: the store checked, repaired and packed."""

from __future__ import annotations

import math
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sessgit.cli import client_notes, frame, remote_argument, render, session_argument, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import DRY_RUN, YES, argument, option
from sessgit.errors import DamageError, SessgitError
from sessgit.model.config import Privacy, RecordConfig, span_seconds
from sessgit.store import layout, remotes
from sessgit.store.maintenance import ObjectCount

if TYPE_CHECKING:
    from sessgit.check.gc import Collected

_WAIT_STEP = 0.1
_NAMED_SESSIONS = 8


@frame.command("verify", needs="store")
def verify(
    here: Invocation,
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
    from sessgit.check import verify
    from sessgit.cli.pages import verify as page

    session = layout.session_of(session_argument.branch(here, address)) if address else ""
    if session:
        report = verify.verify_session(here.store, session, deep=deep)
    else:
        with render.progress(here, "Checking", unit="turns") as progress:
            report = verify.verify_store(here.store, here.index, progress, deep=deep)
    if deep:
        with render.progress(here, "Hashing", unit="objects") as progress:
            report = verify.verify_objects(here.store, report, progress)
    return Answer(
        lambda: page.as_json(report, address=session, deep=deep),
        page.full(here, report, deep=deep),
        exit_code=0 if report.is_sound else DamageError.exit_code,
    )


@frame.command("repair", needs="store")
def repair(
    here: Invocation,
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
    from sessgit.check import repair
    from sessgit.cli.pages import repair as page

    branch = session_argument.branch(here, address)
    with ExitStack() as stack:
        known = remotes.list_remotes(here.env.store)
        connections = [stack.enter_context(remote_argument.connected(here, remote)) for remote in known]
        result = repair.repair(here.context, branch, str(uuid.uuid4()), connections, copy=copy, dry_run=dry_run)
    command, next_step = client_notes.continuation(here, result.made.state) if result.made else ("", "")
    failed = (result.lost or result.findings) and not result.is_needed
    return Answer(
        lambda: page.as_json(result, command, dry_run=dry_run),
        page.full(here, result, next_step, dry_run=dry_run),
        client_notes.redacted(result.redacted if result.made else 0, "it"),
        DamageError.exit_code if failed else 0,
    )


@frame.command("doctor")
def doctor(here: Invocation, fix: bool = option("--fix", "Fix what can be fixed without losing anything.")) -> Answer:
    """Check that recording works.

    Checks hooks and settings, waiting events, indexes, locks, leftovers of killed commands, permissions of the store,
    transcripts that the client will soon delete, the disk, packing, git, remotes, the clock, and errors in the log.
    Each finding says what to do. --fix does what loses nothing, and says what it did. Exit code 1 if anything is wrong.
    """
    from sessgit.check import doctor
    from sessgit.cli.pages import doctor as page

    index, problem = None, ""
    try:
        index = here.index if here.has_store and here.store else None
    except SessgitError as error:
        problem = str(error)
    try:
        privacy = here.privacy
    except SessgitError:  # the settings are wrong, which is a finding
        privacy = Privacy(RecordConfig(), str(here.env.home), here.env.off)
    context = doctor.DoctorContext(
        here.env.store,
        here.env.homes,
        here.env.home,
        privacy,
        index,
        dict(os.environ),
        sys.executable,
        here.now,
        problem,
    )
    report = doctor.diagnose(context, fix=fix)
    return Answer(lambda: page.as_json(report), page.full(here, report), exit_code=int(not report.is_sound))


@frame.command("recover", needs="store")
def recover(here: Invocation, everything: bool = option("--all", "Search all projects.")) -> Answer:
    """Find conversations whose client was killed.

    Records what their transcripts still hold, marks them as interrupted or ended, and prints the command that continues
    each one. This includes a conversation that was killed in its first turn, before anything was recorded: a transcript
    written since `sessgit install` that ends without an answer. Other missing conversations need `sessgit import`. If a
    file was written seconds ago, recover waits for it. It stops no process, and skips conversations that are open in a
    client.
    """
    from sessgit.check import recover
    from sessgit.cli.pages import recover as page

    def wait(seconds: float) -> None:
        wait_until_quiet(here, seconds)

    result = recover.recover(here.context, None if everything else here.cwd, clock=time.time, wait=wait)
    notes = (f"{here.ident(failure.session)}: {failure.reason}" for failure in result.errors)
    return Answer(lambda: page.as_json(here, result), page.full(here, result), notes=notes)


def wait_until_quiet(here: Invocation, seconds: float) -> None:
    """Wait until files are no longer written, with a bar on a terminal."""
    end = time.monotonic() + seconds
    with render.progress(here, "waiting for files that were just written", unit="seconds") as progress:
        while (left := end - time.monotonic()) > 0:
            progress(int(seconds - left), math.ceil(seconds))
            time.sleep(min(left, _WAIT_STEP))


@frame.command("gc", needs="store")
def gc(
    here: Invocation,
    prune: bool = option("--prune", "Make deletions final, and remove unreachable objects."),
    yes: bool = YES,
) -> Answer:
    """Pack the store.

    Recording also packs the store when it has grown enough. What commands removed can be restored by undo for as long
    as the setting undo.keep says, 90 days by default. --prune makes deletions final: no undo brings those conversations
    back. It asks first.
    """
    from sessgit.check import gc

    if prune and not yes:
        _confirm_prune(here, gc.doomed(here.store))
    keep = span_seconds(here.settings.undo.keep)
    with render.progress(here, "Packing", unit="objects") as progress:
        result = gc.collect(here.context, keep=keep, prune=prune, progress=progress)
    document = {
        "before": _count_json(result.before),
        "after": _count_json(result.after),
        "pruned": prune,
        **frame.attributes(result, "leftovers", "expired", "final"),
    }
    return Answer(document, _packed(result))


def _confirm_prune(here: Invocation, sessions: Sequence[str]) -> None:
    if not sessions:
        return
    count = text.counted(len(sessions), "deleted conversation")
    render.check_can_ask(here, f"Pass --yes: {count} would be deleted for good.")
    names = ", ".join(text.some([here.ident(session) for session in sessions], _NAMED_SESSIONS))
    them = "it" if len(sessions) == 1 else "them"
    question = f"{count} would be deleted for good: {names}. Until then, `sessgit undo` brings {them} back."
    frame.confirm(text.wrap(question, here.width), "Prune?")


def _packed(result: Collected) -> Iterator[str]:
    before, after = result.before, result.after
    objects = text.counted(after.objects, "object")
    if before.objects != after.objects:
        objects = f"{before.objects:,} → {objects}"
    yield f"{objects}, {text.size(before.size)} → {text.size(after.size)}"
    if result.leftovers:
        yield f"{text.counted(result.leftovers, 'file')} left by interrupted commands removed"
    if result.expired:
        yield f"{text.counted(result.expired, 'expired undo ref')} removed"
    if result.final:
        yield f"{text.counted(len(result.final), 'deleted conversation')} removed for good"


def _count_json(count: ObjectCount) -> dict[str, int]:
    return {"objects": count.objects, "bytes": count.size}
