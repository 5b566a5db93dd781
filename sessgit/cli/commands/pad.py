"""`sessgit pad`: the scratchpad of a conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from sessgit.branch import edit, pad_changes
from sessgit.branch.pad_changes import EntryPlace, MakeChange, PadResult
from sessgit.cli import frame, operands, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import UsageError
from sessgit.history import pad_lists, resolve
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES, Session
from sessgit.model.pad import Entry, Pad

_KINDS = (*pads.MARKERS, "claim", "tension", "file")
"""What `add` adds."""
_CHANGES = ("thesis", "pass", "resolve", "edit", "drop", "stage", "confidence", "cycle", "compact")
_LONGEST_INPUT = 1 << 20


@frame.command("pad", reads=True)
def run(
    cli: Invocation,
    words: list[str] = argument("ADDRESS | ACTION...", "A conversation, or an action.", complete="addresses"),
    into: str = option("--into ADDRESS", "The conversation (default: the current session)."),
    turn: int | None = option("--turn N", "The turn it comes from."),
    source: str = option("--source TEXT", "Another source."),
    between: list[str] = option("--between ID", "A claim that the tension is about; may be repeated."),
) -> Answer:
    """Show or edit the scratchpad of a conversation.

    \b
    [ADDRESS]               show it, and what to do next
    add KIND TEXT           add an insight, evidence, a risk, a counterargument
                            (counter), a pattern, a question, a claim, a tension
                            or a file
    thesis TEXT             set the thesis
    pass KIND TEXT          record the result of an expansion, a compression, a
                            critique or a synthesis
    resolve ID [TEXT]       settle a tension, or answer a question
    edit ID TEXT            change the text of an entry
    drop ID...              remove entries
    stage STAGE             gathering, shaping, critiquing or synthesized
    confidence 0..1 [TEXT]  how sure the result is, and why
    cycle                   start the next cycle
    compact [ADDRESS]       merge duplicates, remove old passes
    brief [ADDRESS]         print everything as text to continue from

    TEXT can be - for standard input, and the word add can be left out. Each change is a commit; `sessgit undo` reverts
    it.
    """
    if words[:1] == ["add"]:
        words = words[1:]
        if not words or words[0] not in _KINDS:
            raise _not_understood(["add", *words], f"The kinds are {', '.join(_KINDS)}.")
    action, rest = (words[0], words[1:]) if words and words[0] in (*_KINDS, *_CHANGES, "brief") else ("", words)
    if action in _KINDS or (action in _CHANGES and action != "compact"):
        claims = tuple(part for value in between for part in value.split(",") if part)
        return _change(cli, into, _parse_change([action, *rest], EntryPlace(turn, source), claims))
    if len(rest) > 1 or (rest and into):
        raise _not_understood(words)
    address = rest[0] if rest else into
    if action == "compact":
        return _change(cli, address, pad_changes.compact_pad())
    target = operands.whole_turn(cli, address, "pad")
    commit = resolve.last_commit_before_next(cli.context, target.branch, target.end)
    state, pad = cli.store.state(commit), pad_lists.read_pad(cli.store, commit)
    if action != "brief":
        return Answer(lambda: _pad_json(state, pad), _pad_lines(cli, state, pad, named=bool(address)))
    brief = pads.pad_brief(pad, state)
    notes = [] if brief else ["The scratchpad is empty."]
    return Answer({"id": state.id, "text": brief}, brief.split("\n") if brief else (), notes=notes)


def _parse_change(words: list[str], place: EntryPlace, between: tuple[str, ...]) -> MakeChange:
    """Return the change that an action and its words describe; raise UsageError if they do not fit together."""
    hint = ""
    match words:
        case [kind, _, *_] if kind in _KINDS and (not between or kind == "tension"):
            return pad_changes.add_entry(kind, _text(words[1:]), place, between)
        case ["thesis", _, *_]:
            return pad_changes.set_thesis(_text(words[1:]), place)
        case ["pass", kind, _, *_] if kind in pads.PASSES:
            return pad_changes.add_pass(kind, _text(words[2:]), place)
        case ["resolve", entry, *rest]:
            return pad_changes.resolve_entry(entry, _text(rest))
        case ["edit", entry, _, *_]:
            return pad_changes.reword_entry(entry, _text(words[2:]))
        case ["drop", _, *_]:
            return pad_changes.drop_entries(words[1:])
        case ["stage", stage] if stage in STAGES:
            return pad_changes.change_stage(stage)
        case ["confidence", value, *rest]:
            return pad_changes.change_confidence(edit.parse_confidence(value), _text(rest), place)
        case ["cycle"]:
            return pad_changes.begin_cycle()
        case ["pass", *_]:
            hint = f"`sessgit pad pass KIND TEXT`; KIND is {', '.join(pads.PASSES)}."
        case ["stage", *_]:
            hint = f"The stages are {', '.join(STAGES)}; `sessgit edit --stage none` removes it."
    raise _not_understood(words, hint)


def _not_understood(words: list[str], hint: str = "") -> UsageError:
    typed = text.cut(" ".join(map(text.clean, words)), 60)
    return UsageError(f"cannot understand: pad {typed}".rstrip(), hint or "`sessgit pad --help` lists the actions.")


def _text(words: list[str]) -> str:
    """Return the words as one text, or standard input if they are `-`."""
    if words != ["-"]:
        return " ".join(words)
    data = sys.stdin.buffer.read(_LONGEST_INPUT) if sys.stdin else b""
    return data.decode("utf-8", "replace")


def _change(cli: Invocation, address: str, change: MakeChange) -> Answer:
    session = edit.addressed_session(operands.target(cli, address, changes=True))
    result = pad_changes.perform_change(cli.context, session, change)
    compacted = result.change.compacted
    if compacted is not None:
        document = {
            "id": session,
            "doubles": [entry.id for entry in compacted.doubles],
            "passes": [entry.id for entry in compacted.passes],
            "commit": result.commit or None,
        }
        counts = [
            f"{text.counted(len(compacted.doubles), 'duplicate')} merged" if compacted.doubles else "",
            f"{text.counted(len(compacted.passes), 'pass', 'passes')} removed" if compacted.passes else "",
        ]
        what = ", ".join(filter(None, counts)) or "duplicate lines removed"
        lines = [f"{cli.ident(session)}  {what if result.commit else 'nothing to compact'}"]
        for entry in (*compacted.doubles, *compacted.passes) if result.commit else ():
            lines.append(text.cut(f"  {entry.id[:4]}  {entry.form or entry.kind}  {text.clean(entry.text)}", cli.width))
        return Answer(document, lines)
    remarks = [f"{text.counted(result.change.secrets, 'secret')} redacted."] if result.change.secrets else []
    remarks += [] if result.commit else ["Nothing changed."]
    document = _pad_json(result.change.state, result.pad, result.commit)
    return Answer(document, _changed_lines(cli, result), remarks)


_LABEL = 13
_HEADINGS = {
    "thesis": "", "claim": "Claims", "tension": "Tensions", "insight": "Insights", "evidence": "Evidence",
    "risk": "Risks", "counter": "Counterarguments", "pattern": "Patterns", "question": "Questions", "pass": "Passes",
    "file": "Files",
}  # fmt: skip
_CYCLES = 8


def _pad_lines(cli: Invocation, state: Session, pad: Pad, *, named: bool) -> Iterator[str]:
    """Yield the whole scratchpad, the newest entry of each list last, and the next step.

    `named` says that commands have to name the session, since it need not be the current one.
    """
    ident = cli.ident(state.id)
    yield from text.heading(cli, ident, text.title(state))
    if pad.entries or state.stage or state.confidence is not None:
        yield from _facts(cli, state, pad)
        yield from _lists(cli, state, pad)
        yield ""
        if len(gains := pads.gains_by_cycle(pad, state.id)) > 1:
            trend = "few new entries" if pads.has_diminishing_returns(pad, state.id) else ""
            counts = f"{', '.join(map(str, gains[-_CYCLES:]))} in each cycle"
            yield from text.field(cli, "New", [counts, trend], least=_LABEL)
        step = pads.next_step(pad, state)
        sentence = f"{step.what}:" if step.command else f"{step.what}."
        next_step = _next(sentence, _command(step.command, ident if named else ""), cli.width - _LABEL)
        yield from text.hanging_indent("Next".ljust(_LABEL), next_step)
    else:
        command = _command("sessgit pad add insight TEXT", ident if named else "")
        yield from _next("Its scratchpad is empty. Begin with:", command, cli.width)
    if pad.passed:
        yield f"{text.counted(pad.passed, 'line')} of the scratchpad could not be read."


def _changed_lines(cli: Invocation, result: PadResult) -> Iterator[str]:
    """Yield what a change did, in a line for each entry."""
    before, after, entries = result.before, result.change.state, result.change.entries
    ident = cli.ident(after.id)
    removed = {entry.id for entry in entries} - {entry.id for entry in result.pad.entries}
    ids = {entry.id: entry.id[:4] for entry in entries} | pads.shown_ids(result.pad)
    confidence = "" if before.confidence is None else f"{before.confidence:g}"
    for entry in entries:
        if entry.kind in ("cycle", "confidence") and entry.id not in removed:
            is_value = entry.value is not None
            yield f"{ident}  {entry.kind} {f'{entry.value:g}' if is_value else entry.cycle}" + (
                f"  (was: {confidence})" if is_value and confidence else ""
            )
            continue
        what = (
            f"{'no ' if entry.id in removed else ''}{entry.form or entry.kind}{' resolved' if entry.resolved else ''}"
        )
        yield text.cut(f"{ids[entry.id]}  {what}  {text.clean(entry.text)}".rstrip(), cli.width)
    if not entries:
        is_stage = after.stage and (after.stage != before.stage or not result.commit)
        previous = before.stage if is_stage else confidence
        was = f"  (was: {text.clean(previous, 40)})" if previous and result.commit else ""
        yield f"{ident}  {f'stage {after.stage}' if is_stage else 'no confidence'}{was}"


def _pad_json(state: Session, pad: Pad, commit: str = "") -> dict[str, Any]:
    """Return what `pad --json` prints."""
    step = pads.next_step(pad, state)
    return {
        "id": state.id,
        "stage": state.stage,
        "cycle": pads.current_cycle(pad, state.id),
        "confidence": state.confidence,
        "history": pads.confidence_history(pad, state.id, state.confidence),
        "found": pads.gains_by_cycle(pad, state.id),
        "diminishing": pads.has_diminishing_returns(pad, state.id),
        "next": {"what": step.what, "command": step.command},
        "entries": [
            {
                **frame.attributes(entry, "id", "kind", "text", "time", "turn", "cycle", "source", "between", "answer"),
                "session_id": entry.session,
                "resolved": entry.resolved or None,
                "pass": entry.form,
                "version": entry.version or None,
                "value": entry.value,
            }
            for entry in pad.entries
        ],
        "unreadable_lines": pad.passed,
        "commit": commit or None,
    }


def _facts(cli: Invocation, state: Session, pad: Pad) -> Iterator[str]:
    stage = [text.clean(state.stage, 40) or "none yet", f"cycle {pads.current_cycle(pad, state.id)}"]
    yield from text.field(cli, "Stage", stage, least=_LABEL)
    values = [f"{value:g}" for value in pads.confidence_history(pad, state.id, state.confidence)[-_CYCLES:]]
    if values:
        current = "none" if state.confidence is None else values.pop()
        was = f"(was {', '.join(values)})" if values else ""
        yield from text.field(cli, "Confidence", [current, was], least=_LABEL, between="  ")


def _lists(cli: Invocation, state: Session, pad: Pad) -> Iterator[str]:
    """Yield each kind of entry under its heading; entries that are resolved are last."""
    ids = pads.shown_ids(pad)
    for kind, heading in _HEADINGS.items():
        entries = sorted(pad.of(kind), key=lambda entry: bool(entry.resolved))
        for number, entry in enumerate(entries):
            details = _details(cli, state, entry, ids)
            if not heading or not number:
                yield ""
                yield cli.paint("bold", heading or text.cut(f"Thesis{details}", cli.width))
            answer = f": {entry.answer}" if entry.answer else ""
            words = f"{entry.text}{details if heading else ''}" + (f"\nresolved{answer}" if entry.resolved else "")
            yield from text.field(cli, f"  {cli.paint('yellow', ids[entry.id])}  ", [words])


def _details(cli: Invocation, state: Session, entry: Entry, ids: dict[str, str]) -> str:
    """` (cycle 2, turn 4, lexer.py, from e90c55aa)`: what is known of an entry besides its text."""
    parts = [
        f"v{entry.version}" if entry.version > 1 else "",
        entry.form,
        f"cycle {entry.cycle}" if entry.kind == "pass" else "",
        f"between {' and '.join(ids.get(ref, ref[:4]) for ref in entry.between)}" if entry.between else "",
        f"turn {entry.turn}" if entry.turn else "",
        text.clean(entry.source, 200),
        "" if entry.session == state.id else f"from {cli.ident(entry.session)}",
    ]
    details = ", ".join(filter(None, parts))
    return f" ({details})" if details else ""


def _next(sentence: str, command: str, columns: int) -> Sequence[str]:
    """Return the sentence and the command on one line, else on lines of their own: a command is never cut."""
    joined = f"{sentence} {command}".rstrip()
    return [joined] if text.width(joined) <= columns else [*text.wrap(sentence, columns), *text.wrap(command, columns)]


def _command(command: str, ident: str) -> str:
    if not command or not ident:
        return command
    return f"{command} {'--into ' if command.startswith('sessgit pad') else ''}{ident}"
