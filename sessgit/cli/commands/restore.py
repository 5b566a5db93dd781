"""`sessgit restore`, `resume`, `recover`: conversations whose files or client are gone, and how they continue."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from sessgit import agents
from sessgit.agents import Transcript
from sessgit.branch import restore as restores
from sessgit.branch.restore import RebuiltFile, RestoreAllResult, RestoreResult, VerifiedFile
from sessgit.check import recover as recovery
from sessgit.check.recover import Outcome
from sessgit.cli import client_notes, frame, operands, render, text
from sessgit.cli.frame import ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import client_files, pad_lists
from sessgit.history.resolve import ResolvedTarget
from sessgit.model import canonical
from sessgit.model import pad as pads
from sessgit.record import catch_up
from sessgit.store import layout, recorder_state
from sessgit.store.private_files import path_exists

_LABEL_WIDTH = 10
_INDENT = " " * 10
_WAIT_STEP = 0.1
_CUT = {"call": "stopped during a call", "answer": "stopped before an answer"}
_STDOUT = Path("-")


@frame.command(
    "restore",
    reads=True,
    excludes={
        "--verify": "--output",
        "--project": "--output --verify",
        "--all-lost": "ADDRESS --output --verify --project",
    },
)
def restore(
    cli: Invocation,
    address: str = ADDRESS,
    output: Path | None = option("-o, --output FILE", "Write only the transcript, to FILE; - is standard output."),
    verify: bool = option("--verify", "Check what is stored, write nothing."),
    project: Path | None = option("--project DIR", "Restore it for project folder DIR."),
    all_lost: bool = option("--all-lost", "Restore all conversations that the client deleted."),
) -> Answer | None:
    """Write back the client's files of a conversation.

    Writes the transcript byte for byte as the client wrote it, except for redacted secrets, and its sidecar files:
    subagents, large tool results, plan, todos, tasks. Never overwrites a file with other contents; if the file lacks
    turns because it was truncated or the conversation was continued elsewhere, appends them. If the client does not
    know the conversation's name, appends one line with the name. The client deletes old files when it starts; a
    restored file counts as new.

    --verify rebuilds the file, checks every hash that was taken when it was recorded, and compares it with the client's
    file if that still exists. --project moves the conversation to another folder. If its folder belongs to another
    machine, the conversation keeps it, and the setting project.map maps it to DIR on this machine.
    """
    if all_lost:
        return _restore_all(cli)
    target = operands.target(cli, address)
    _check_whole(cli, target, "restored")
    session = target.session
    if verify:
        checked = restores.verify_file(cli.store, session, cli.env.homes, local_path=cli.local_path)
        document = _json(session, None, checked.restored) | frame.attributes(checked, "turns", "file", "same")
        end = _unrecorded_end(cli, target, checked.restored)
        return Answer(document, _proof(cli, session, checked), notes=end)
    if output == _STDOUT:
        _print_transcript(cli, target)
        return None
    if output:
        result = restores.restore_transcript_to(cli.store, session, output.absolute())
    else:
        into = restores.RestoreTarget(str(project.resolve()), cli.index, cli.now) if project else None
        result = restores.restore_session(cli.store, session, cli.env.homes, into, local_path=cli.local_path)
        file = Transcript(result.path, target.state.agent_id, target.state.agent)
        # What was added is recorded at once: no client has the file open, and its next event may never come.
        if result.named and not result.already:
            catch_up.record_file(cli.context, file, project=result.project, final=True)
        if result.appended:
            catch_up.record_file(cli.context, file, project=result.project)
            render.tell(client_notes.appended(result.appended))
    notes = [] if result.already else list(_unrecorded_end(cli, target, result.restored))
    notes += _folder_notes(cli, target, result)
    lines = [*_written(cli, result), *client_notes.written(result.files)]
    return Answer(_result_json(session, result), lines, notes=notes)


def _unrecorded_end(cli: Invocation, target: ResolvedTarget, rebuilt: RebuiltFile) -> Iterator[str]:
    """Say that lines after an open turn are not recorded, because no event says that the client ended."""
    cursor = recorder_state.load_cursor(cli.store.paths, target.session)
    is_open_turn = cursor is not None and cursor.pending and not cursor.final
    if not rebuilt.missing or not is_open_turn or agents.is_open(cli.env.homes, target.state.agent_id):
        return
    if client_files.transcript_file(cli.env.homes, target.state, cli.store.paths):
        yield "Lines after the last turn are missing: its client was killed. To record them: sessgit recover"


def _folder_notes(cli: Invocation, target: ResolvedTarget, result: RestoreResult) -> Iterator[str]:
    """Say which folder the project's folder is mapped to, which other files it needed, and that the folder is gone."""
    if result.stands_for:
        unset = shlex.quote(f"project.map.{result.stands_for}")
        folder = cli.short(result.project)
        yield f"{result.stands_for} is mapped to {folder} on this machine (undo: sessgit config --unset {unset})."
    for base in result.bases:
        yield f"The conversation that it goes on from was restored, too: {cli.short(base)}"
    if client_files.is_folder_gone(result.project):
        was_here = client_files.was_recorded_here(target.state, cli.store.paths)
        map_it = "" if was_here else f"; {_map_hint(cli, target)}"
        fork = f"sessgit fork {cli.ident(target.session)} --project DIR"
        yield f"The project's folder is gone: {cli.short(result.project)}. To continue it elsewhere: {fork}{map_it}"


def _map_hint(cli: Invocation, target: ResolvedTarget) -> str:
    key = shlex.quote(f"project.map.{cli.store.state(target.branch.tip).project}")
    return f"map its folder to one here with `sessgit config {key} DIR`."


def _print_transcript(cli: Invocation, target: ResolvedTarget) -> None:
    if cli.json:
        raise UsageError("--json describes a written file, and needs --output FILE.", "Name it with `--output FILE`.")
    if cli.terminal.shows_output:
        raise UsageError("a transcript cannot be shown on a terminal.", "Use `--output FILE`, or a pipe.")
    rebuilt = restores.rebuild_file(cli.store, target.session)
    render.data(rebuilt.file.pieces())
    if not rebuilt.exact:
        render.tell(" ".join(_quality(rebuilt)))
    for note in _unrecorded_end(cli, target, rebuilt):
        render.tell(note)


def _check_whole(cli: Invocation, target: ResolvedTarget, verb: str, option: str = "") -> None:
    """Raise UsageError for what is no whole conversation here; `option` is for the fork that the hint names."""
    name = cli.ident(target.branch.name)
    if layout.is_other_version(target.branch.name):
        hint = f"`sessgit fork {name}{option}` makes it a conversation of its own."
        raise UsageError(f"{name} is another version of the conversation, without a file here.", hint)
    if layout.is_rewound_branch(target.branch.name) or target.cell or target.turn not in (None, target.state.turns):
        at = "" if target.turn is None else f" --at {target.turn}{'.' if target.cell else ''}{target.cell}"
        hint = f"`sessgit fork {name}{at}{option}` makes a conversation that ends there."
        raise UsageError(f"only a whole conversation can be {verb}.", hint)


def _restore_all(cli: Invocation) -> Answer:
    sessions = client_files.lost_sessions(cli.index, cli.env.homes)
    result = restores.restore_all(
        cli.store, sessions, cli.env.homes, render.progress(cli, "Restoring", "conversations"), cli.local_path
    )
    document = {
        "restored": [_result_json(session, each) for session, each in result.back],
        "errors": [
            {"id": session, "reason": str(error), "hint": error.hint or None} for session, error in result.errors
        ],
    }
    notes = (f"{cli.ident(session)}: {error}" for session, error in result.errors)
    return Answer(document, _all_written(result), exit_code=int(bool(result.errors)), notes=notes)


def _all_written(result: RestoreAllResult) -> Iterator[str]:
    number = len(result.back)
    if not number and not result.errors:
        yield "Nothing to restore: the client has every conversation of this machine."
        return
    failed = f"; {len(result.errors):,} could not be restored" if result.errors else ""
    count = text.counted(number, "conversation") if number else "No conversation"
    yield f"{count} {'was' if number < 2 else 'were'} restored{failed}."
    yield from client_notes.written([file for _, each in result.back for file in each.files])
    yield from client_notes.redacted(sum(each.restored.redacted for _, each in result.back), "them")


def _written(cli: Invocation, result: RestoreResult) -> list[str]:
    existing = "was completed" if result.appended else "already exists"
    what = "was moved" if result.moved else existing if result.already else "was restored"
    # The path is never cut: it is there to be copied.
    head, quality = f"{cli.short(result.path)} {what}:", _quality(result.restored, result.named)
    if not result.same:
        quality = ["all turns, but not the same bytes."]
    line = f"{head} {' '.join(quality)}"
    return [line] if text.width(line) <= cli.width else [head, *text.fold(quality, cli.width, " ")]


def _quality(rebuilt: RebuiltFile, named: bool = False) -> list[str]:
    """Say how good the copy is, in parts between which a line may break."""
    size = text.size(len(rebuilt.file))
    end = "," if named else "."
    more = ["plus one line with its name for the client's list."] if named else []
    if rebuilt.exact:
        return [f"{size}, byte for byte as the client wrote it{end}", *more]
    lacks = []
    if rebuilt.redacted:
        were = "is" if rebuilt.redacted == 1 else "are"
        lacks.append(f"{text.counted(rebuilt.redacted, 'secret')} that {were} redacted")
    if rebuilt.missing:
        lacks.append(f"{text.size(rebuilt.missing)} that were never recorded")
    if rebuilt.rewritten:
        lacks.append("its shared beginning, which was rewritten")
    if lacks:
        return [f"{size}, as the client wrote it except for", *f"{', '.join(lacks)}{end}".split(" "), *more]
    why = "no hash of the file was stored" if rebuilt.same is None else "the lines come from several files"
    return [f"{size},", f"all lines that were recorded; {why}{end}", *more]


def _json(session: str, path: Path | None, rebuilt: RebuiltFile) -> dict[str, object]:
    """Return what holds of a written and of a verified file; the keys of one of them alone are null."""
    return {
        "id": session,
        "path": str(path) if path else None,
        "bytes": len(rebuilt.file),
        **frame.attributes(rebuilt, "exact", "redacted", "missing", "rewritten"),
        "proved": rebuilt.checked,
        **dict.fromkeys(("already", "named", "appended", "turns", "file", "same")),
        "files": [],
    }


def _result_json(session: str, result: RestoreResult) -> dict[str, object]:
    outcome = frame.attributes(result, "already", "named", "appended")
    return _json(session, result.path, result.restored) | outcome | {"files": client_notes.as_json(result.files)}


def _proof(cli: Invocation, session: str, checked: VerifiedFile) -> Iterator[str]:
    rebuilt = checked.restored
    yield from text.paragraph(cli, f"{session}: {text.counted(checked.turns, 'turn')}, no damage.")
    hashes = text.counted(rebuilt.checked, "hash", "hashes")
    words = f"{hashes} of lines match (Lines-SHA256, taken when they were recorded)"
    yield from _labelled(cli, "Hashes", words.split(" "))
    yield from _labelled(cli, "File", " ".join(_quality(rebuilt)).split(" "))
    if checked.file is None:
        yield from text.paragraph(cli, "The client has deleted its file: only this store has it.")
        return
    path = cli.short(checked.file)
    difference = "differs: it changed since it was recorded"
    if rebuilt.redacted:
        difference = "differs, as expected: the client's file holds the redacted values"
    parts = ["equal to", path] if checked.same else [path, *difference.split(" ")]
    yield from _labelled(cli, "Compared", parts)


def _labelled(cli: Invocation, label: str, parts: Sequence[str]) -> Iterator[str]:
    """Put the parts behind a label, in as many lines as they need; no part is cut, so that a path can be copied."""
    line = label.ljust(_LABEL_WIDTH)
    for part in parts:
        if text.width(f"{line} {part}") > cli.width > _LABEL_WIDTH + text.width(part):
            yield line.rstrip()
            line = " " * _LABEL_WIDTH
        line = f"{line} {part}"
    yield line


@frame.command("resume", reads=True)
def resume(
    cli: Invocation,
    address: str = ADDRESS,
    show: bool = option("--print", "Only print the command."),
    brief: bool = option("--brief", "Start with its scratchpad as the prompt."),
) -> None:
    """Continue a conversation in the client.

    If the client has deleted its transcript and sidecar files, they are written again. If the conversation was
    continued on another machine, the missing turns are appended.
    """
    target = operands.target(cli, address)
    _check_whole(cli, target, "continued", " --run")
    if not target.state.turns:
        hint = "`sessgit ls` lists others."
        raise NotFoundError(f"{cli.ident(target.branch.name)} has no turns to continue from.", hint)
    place = client_files.transcript_place(cli.env.homes, target.state, layout.StorePaths(cli.env.store))
    exists = place is not None and path_exists(place)
    if client_files.is_folder_gone(target.state.project):  # the client finds a conversation only from there
        verb = "fork" if exists else "restore"
        hint = f"`sessgit {verb} {cli.ident(target.session)} --project DIR` makes a copy that continues in DIR."
        hint = hint if client_files.was_recorded_here(target.state, cli.store.paths) else _map_hint(cli, target)
        raise NotFoundError(f"the project's folder is gone: {cli.short(target.state.project)}", hint)
    if place is None or not exists:
        was_here = client_files.was_recorded_here(target.state, cli.store.paths)
        result = restores.restore_session(cli.store, target.session, cli.env.homes, local_path=cli.local_path)
        place, path = result.path, cli.short(result.path)
        was = "The client had deleted it" if was_here else "It is from another machine"
        render.tell(f"{was}: {path} was {'restored' if was_here else 'written'}.")
        for line in client_notes.written(result.files):
            render.tell(line)
    elif not restores.is_up_to_date(layout.StorePaths(cli.env.store), target.branch, place):
        turns = restores.append_missing_turns(cli.store, target.session, cli.env.homes, place)
        if turns:
            file = Transcript(place, target.state.agent_id, target.state.agent)
            catch_up.record_file(cli.context, file, project=target.state.project)
            render.tell(client_notes.appended(turns))
    state = replace(target.state, transcript=str(place))
    prompt = ""
    if brief:
        tip = target.branch.tip
        prompt = pads.pad_brief(pad_lists.read_pad(cli.store, tip), cli.store.state(tip))
        if not prompt:
            render.tell("Its scratchpad is empty: starting without a brief.")
    if show:
        render.write(client_files.resume_command(state, cli.cwd) + (f" {shlex.quote(prompt)}" if prompt else "") + "\n")
    else:
        client_notes.start_client(state, cli.cwd, prompt)


@frame.command("recover", needs="store")
def recover(cli: Invocation, everything: bool = option("--all", "Search all projects.")) -> Answer:
    """Find conversations whose client was killed.

    Records what their transcripts still hold, marks them as interrupted or ended, and prints the command that continues
    each one. This includes a conversation that was killed in its first turn, before anything was recorded: a transcript
    written since `sessgit install` that ends without an answer. Other missing conversations need `sessgit import`.
    Imported conversations that are active in their system, although their process is gone, are listed until they are
    continued. If a file was written seconds ago, recover waits for it. It stops no process, and skips conversations
    that are open in a client.
    """
    wait = partial(wait_until_quiet, cli)
    result = recovery.recover(cli.context, None if everything else cli.cwd, clock=time.time, wait=wait)
    notes = (f"{cli.ident(failure.session)}: {failure.reason}" for failure in result.errors)
    sessions = []
    for recovered in result.sessions:
        state = recovered.branch.state
        sessions.append(
            {
                "id": recovered.branch.name,
                "title": state.display_title,
                "project": state.project,
                "updated": state.updated or None,
                "state": state.state,
                "turns": state.turns,
                "recorded": recovered.turns,
                "cut": recovered.cut or None,
                "command": client_notes.continuation(cli, state)[0] or None,
            }
        )
    document = {
        "sessions": sessions,
        "errors": [{"id": failure.session, "reason": failure.reason} for failure in result.errors],
        "waiting": [{"id": one.session, "seconds": math.ceil(one.seconds)} for one in result.waiting],
    }
    return Answer(document, _recovered(cli, result), notes=notes)


def wait_until_quiet(cli: Invocation, seconds: float) -> None:
    """Wait until files are no longer written, with a bar on a terminal."""
    end = time.monotonic() + seconds
    progress = render.progress(cli, "waiting for files that were just written", "seconds")
    while (left := end - time.monotonic()) > 0:
        progress(int(seconds - left), math.ceil(seconds))
        time.sleep(min(left, _WAIT_STEP))
    render.remove_progress()


def _recovered(cli: Invocation, outcome: Outcome) -> Iterator[str]:
    """Yield the whole page."""
    if not outcome.sessions and not outcome.errors and not outcome.waiting:
        yield "Nothing needs to be recovered."
    for recovered in outcome.sessions:
        state, ident = recovered.branch.state, cli.ident(recovered.branch.name)
        yield from text.heading(
            cli,
            ident,
            text.title(state, 40),
            text.ago(cli, state.updated) or "time unknown",
            f"{text.counted(recovered.turns, 'turn')} recorded" if recovered.turns else "fully recorded",
            _CUT.get(recovered.cut, ""),
        )
        folder_gone = f"{cli.short(state.project)} is gone: sessgit fork {ident} --project DIR"
        yield _INDENT + canonical.printable(client_notes.continuation(cli, state)[0] or folder_gone)
    for waiting in outcome.waiting:
        seconds = text.counted(math.ceil(waiting.seconds), "second")
        ident = cli.ident(waiting.session)
        yield text.cut(f"{ident}  its file was just written: run sessgit recover again in {seconds}", cli.width)
