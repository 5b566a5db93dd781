"""`sessgit restore`: a conversation back as the files that the client wrote."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, render, session_argument, sidecar_notes, text
from sessgit.cli.arguments import options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation

if TYPE_CHECKING:
    from sessgit.branch.restore import RebuiltFile, RestoreAllResult, RestoreResult, VerifiedFile
    from sessgit.history.resolve import ResolvedTarget


_LABEL = 11
_STDOUT = Path("-")


@frame.command("restore", reads=True)
def run(
    here: Invocation,
    address: options.Address = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write only the transcript, to FILE; - is standard output."
        ),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Check what is stored, write nothing.")] = False,
    project: Annotated[
        Path | None,
        typer.Option("--project", metavar="DIR", help="Restore it for project folder DIR.", show_default=False),
    ] = None,
    all_lost: Annotated[
        bool, typer.Option("--all-lost", help="Restore all conversations that the client deleted.")
    ] = False,
) -> Answer | None:
    """Write back the client's files of a conversation.

    Writes the transcript byte for byte as the client wrote it, except for redacted secrets, and its sidecar files:
    subagents, large tool results, plan, todos, tasks. Never overwrites a file with other contents; if the conversation
    was continued elsewhere, appends the missing turns. If the client does not know the conversation's name, appends one
    line with the name. The client deletes old files when it starts; a restored file counts as new.

    --verify rebuilds the file, checks every hash that was taken when it was recorded, and compares it with the client's
    file if that still exists. --project moves the conversation to another folder. If its folder belongs to another
    machine, the conversation keeps it, and the setting project.map maps it to DIR on this machine.
    """
    from sessgit.branch import restore as restores
    from sessgit.history import client_files

    _check(address, output, verify, project, all_lost)
    if all_lost:
        return _all_lost(here)
    found = session_argument.target(here, address)
    _check_whole(here, found)
    if verify:
        checked = restores.verify_file(here.store, found.session, here.config, here=here.here)
        return Answer(
            lambda: _json(found.session, None, checked.restored) | _verified(checked),
            _proof(here, found.session, checked),
        )
    if output == _STDOUT:
        _to_stdout(here, found.session)
        return None
    was_here = client_files.was_recorded_here(found.state, here.store.beside)
    if output:
        done = restores.restore_transcript_to(here.store, found.session, output.absolute())
    else:
        into = restores.RestoreTarget(str(project.resolve()), here.index, here.now) if project else None
        done = restores.restore_session(here.store, found.session, here.config, into, here=here.here)
        if done.named and not done.already:
            _record(here, done, final=True)
        if done.appended:
            _record(here, done, final=False)
            render.tell(sidecar_notes.appended(done.appended))
    lines = [*_written(here, done), *sidecar_notes.told(done.files)]
    document = _json(found.session, done.path, done.restored) | _outcome(done)
    return Answer(lambda: document, lines, notes=() if here.json else _notes(here, found, done, was_here=was_here))


def _notes(here: Invocation, found: ResolvedTarget, done: RestoreResult, *, was_here: bool) -> Iterator[str]:
    """Say what the project's folder stands for, or that it is gone."""
    from sessgit.history import client_files

    if done.stands_for:
        unset = shlex.quote(f"project.map.{done.stands_for}")
        yield (
            f"{done.stands_for} is mapped to {here.short(done.project)} on this machine "
            f"(undo: sessgit config --unset {unset})."
        )
    if client_files.is_folder_gone(done.project):
        yield (
            f"The project's folder is gone: {here.short(done.project)}. "
            f"To continue it elsewhere: sessgit fork {here.ident(found.session)} --project DIR"
            f"{'' if was_here else f'; {mapping(here.store.state(found.branch.tip).project)}'}"
        )


def _to_stdout(here: Invocation, session: str) -> None:
    """The transcript's bytes, and nothing else but a remark where they are not those that the client wrote."""
    from sessgit.branch import restore as restores
    from sessgit.errors import UsageError

    if here.json:
        raise UsageError("--json describes a written file, and needs --output FILE.", "Name it with `--output FILE`.")
    if here.terminal:
        raise UsageError("a transcript cannot be shown on a terminal.", "Use `--output FILE`, or a pipe.")
    restored = restores.rebuild_file(here.store, session)
    render.data(restored.file.pieces())
    if not restored.exact:
        render.tell(" ".join(_quality(restored)))


def mapping(project: str) -> str:
    """What helps where the folder of a project is one of another machine."""
    return f"map its folder to one here with `sessgit config {shlex.quote(f'project.map.{project}')} DIR`."


def _written(here: Invocation, done: RestoreResult) -> list[str]:
    what = "was moved" if done.moved else "already exists" if done.already else "was restored"
    # The path is never cut: it is there to be copied.
    head, quality = f"{here.short(done.path)} {what}:", _quality(done.restored, done.named)
    if not done.same:
        quality = ["all turns, but not the same bytes."]
    whole = f"{head} {' '.join(quality)}"
    return [whole] if text.width(whole) <= here.width else [head, *text.fold(quality, here.width, " ")]


def _check(address: str, output: Path | None, verify: bool, project: Path | None, all_lost: bool) -> None:
    """Raises UsageError for options that do not go together."""
    from sessgit.errors import UsageError

    if output and verify:
        raise UsageError("--verify writes nothing, so --output does not apply.", "Use one of the two.")
    if project and (output or verify):
        raise UsageError("--project cannot be combined with --output or --verify.", "Use one of them.")
    if all_lost and (address or output or verify or project):
        raise UsageError(
            "--all-lost restores every lost conversation to its own place.", "Use it alone, or with --json."
        )


def _check_whole(here: Invocation, found: ResolvedTarget) -> None:
    """Raises UsageError for what is no file of the client's here."""
    from sessgit.errors import UsageError
    from sessgit.store import layout

    if layout.is_other_version(found.branch.name):
        name = here.ident(found.branch.name)
        raise UsageError(
            f"{name} is another version of the conversation; restore writes only the newest one.",
            f"`sessgit fork {name}` makes it a conversation of its own.",
        )
    if found.turn not in (None, found.state.turns):
        raise UsageError(
            "only whole conversations can be restored.",
            f"`sessgit fork {here.ident(found.session)} --at {found.turn}` makes a conversation of its first turns.",
        )


def _all_lost(here: Invocation) -> Answer:
    from sessgit.branch import restore as restores
    from sessgit.history import lost_sessions

    sessions = lost_sessions.lost_sessions(here.index, here.config)
    with render.progress(here, "Restoring", unit="conversations") as progress:
        done = restores.restore_all(here.store, sessions, here.config, progress, here.here)
    remarks = () if here.json else (f"{here.ident(one.session)}: {one.error}" for one in done.errors)
    return Answer(lambda: _brought(done), _told(done), remarks, int(bool(done.errors)))


def _brought(done: RestoreAllResult) -> dict[str, object]:
    back = [_json(session, one.path, one.restored) | _outcome(one) for session, one in done.back]
    errors = [{"id": one.session, "reason": str(one.error), "hint": one.error.hint or None} for one in done.errors]
    return {"restored": back, "errors": errors}


def _told(done: RestoreAllResult) -> Iterator[str]:
    if not done.back and not done.errors:
        yield "Nothing to restore: the client has every conversation of this machine."
        return
    number = len(done.back)
    unwritten = f"; {len(done.errors):,} could not be restored" if done.errors else ""
    back = text.counted(number, "conversation") if number else "No conversation"
    yield f"{back} {'was' if number < 2 else 'were'} restored{unwritten}."
    yield from sidecar_notes.told([file for _, one in done.back for file in one.files])
    if secrets := sum(one.restored.redacted for _, one in done.back):
        yield f"In them, {text.counted(secrets, 'secret')} {_stand(secrets)} redacted."


def _record(here: Invocation, done: RestoreResult, *, final: bool) -> None:
    """Records what was added at once: no client has the file open, and its next event may never come."""
    from sessgit.record import catch_up

    catch_up.record_file(
        lambda: here.store, here.index, done.path, here.config, here.privacy, project=done.project, final=final
    )


def _stand(secrets: int) -> str:
    """Be it that they were replaced when they were recorded, or purged later."""
    return "is" if secrets == 1 else "are"


def _quality(done: RebuiltFile, named: bool = False) -> list[str]:
    """How good the copy is, in parts between which a line may break."""
    size = text.size(len(done.file))
    end = "," if named else "."
    more = ["plus one line with its name for the client's list."] if named else []
    if done.exact:
        return [f"{size}, byte for byte as the client wrote it{end}", *more]
    lacks = []
    if done.redacted:
        lacks.append(f"{text.counted(done.redacted, 'secret')} that {_stand(done.redacted)} redacted")
    if done.missing:
        lacks.append(f"{text.size(done.missing)} that were never recorded")
    if done.rewritten:
        lacks.append("its shared beginning, which was rewritten")
    if not lacks:
        why = "no hash of the file was stored" if done.same is None else "the lines come from several files"
        return [f"{size},", f"all lines that were recorded; {why}{end}", *more]
    return [f"{size}, as the client wrote it except for {', '.join(lacks)}{end}", *more]


def _json(session: str, path: Path | None, done: RebuiltFile) -> dict[str, object]:
    """What holds of a file whether it is written or verified; the keys of either alone say nothing yet."""
    return {
        "id": session, "path": str(path) if path else None, "bytes": len(done.file), "exact": done.exact,
        "redacted": done.redacted, "missing": done.missing, "rewritten": done.rewritten, "proved": done.checked,
        "already": None, "named": None, "appended": None, "files": [], "turns": None, "file": None, "same": None,
    }  # fmt: skip


def _outcome(done: RestoreResult) -> dict[str, object]:
    found = {"already": done.already, "named": done.named, "appended": done.appended}
    return {**found, "files": sidecar_notes.as_json(done.files)}


def _verified(checked: VerifiedFile) -> dict[str, object]:
    return {"turns": checked.turns, "file": str(checked.file) if checked.file else None, "same": checked.same}


def _proof(here: Invocation, session: str, checked: VerifiedFile) -> Iterator[str]:
    done = checked.restored
    path = here.short(checked.file) if checked.file else ""
    yield from text.wrapped(f"{session}: {text.counted(checked.turns, 'turn')}, no damage.", here.width)
    hashes = text.counted(done.checked, "hash", "hashes")
    yield from _labelled(
        here, "Hashes", f"{hashes} of lines match (Lines-SHA256, taken when they were recorded)".split(" ")
    )
    yield from _labelled(here, "File", " ".join(_quality(done)).split(" "))
    if not path:
        yield from text.wrapped("The client has deleted its file: only this store has it.", here.width)
    elif checked.same:
        yield from _labelled(here, "Compared", ["equal", "to", path])
    else:
        must, changed = "as expected: the client's file holds the redacted values", "it changed since it was recorded"
        how = f"differs, {must}" if done.redacted else f"differs: {changed}"
        yield from _labelled(here, "Compared", [path, *how.split(" ")])


def _labelled(here: Invocation, label: str, parts: Sequence[str]) -> Iterator[str]:
    """The parts behind a label, in as many lines as they need; a path is never cut: it is there to be copied."""
    now = f"{label:<{_LABEL - 1}}"
    for part in parts:
        if text.width(f"{now} {part}") > here.width >= _LABEL + text.width(part):
            yield now.rstrip()
            now = " " * (_LABEL - 1)
        now = f"{now} {part}"
    yield now
