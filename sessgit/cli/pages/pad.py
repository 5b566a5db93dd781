"""What `pad` prints: the scratchpad of a conversation, and what a change did to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessgit.branch.pad_changes import PadResult
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.render import Paint
from sessgit.history.resolve import session_title
from sessgit.model import pad as pads
from sessgit.model import pad_steps
from sessgit.model.conversation.session import Session
from sessgit.model.pad import CompactedPad, Entry, Pad

_LABEL = 13
_HEADINGS = (
    ("claim", "Claims"), ("tension", "Tensions"), ("insight", "Insights"), ("evidence", "Evidence"), ("risk", "Risks"),
    ("counter", "Counterarguments"), ("pattern", "Patterns"), ("question", "Questions"), ("pass", "Passes"),
    ("file", "Files"),
)  # fmt: skip
_CYCLES = 8


def pad(here: Invocation, state: Session, found: Pad, *, named: bool = False) -> Iterator[str]:
    """All that is on it, the newest of each list last, and what to do next; a line where nothing is.

    `named` says that commands have to name the session, since it need not be the current one.
    """
    paint, ident = Paint(here.colour), here.ident(state.id)
    yield f"{paint('yellow', ident)}  {text.cut(text.clean(session_title(state)), here.width - text.width(ident) - 2)}"
    if not found.entries and not state.stage and state.confidence is None:
        begin = _command("sessgit pad add insight TEXT", ident if named else "")
        yield from _next(["Its scratchpad is empty. Begin with:", begin], here.width)
        yield from _passed(found)
        return
    yield from _standing(here, state, found)
    ids = pads.shown_ids(found)
    for thesis in found.of("thesis"):
        yield ""
        yield paint("bold", text.cut(f"Thesis{_about(here, state, thesis, ids)}", here.width))
        yield from _entry(here, paint, thesis, ids, "")
    for kind, heading in _HEADINGS:
        entries = sorted(found.of(kind), key=lambda one: bool(one.resolved))
        if entries:
            yield ""
            yield paint("bold", heading)
        for entry in entries:
            yield from _entry(here, paint, entry, ids, _about(here, state, entry, ids))
    yield ""
    yield from _found(here, state, found)
    step = pad_steps.next_step(found, state.id, state.stage, state.confidence)
    command = _command(step.command, ident if named else "")
    parts = [f"{step.what}:", command] if command else [f"{step.what}."]
    yield from _labelled("Next", _next(parts, here.width - _LABEL))
    yield from _passed(found)


def done(here: Invocation, made: PadResult) -> Iterator[str]:
    """What a change did, in a line for each entry."""
    wanted, ident = made.wanted, here.ident(made.wanted.state.id)
    before, after = made.before, wanted.state
    gone = {entry.id for entry in wanted.entries} - {entry.id for entry in made.pad.entries}
    ids = {entry.id: entry.id[:4] for entry in wanted.entries} | pads.shown_ids(made.pad)
    for entry in wanted.entries:
        if entry.kind in ("cycle", "confidence") and entry.id not in gone:
            value = f"{entry.value:g}" if entry.value is not None else str(entry.cycle)
            was = f"  (was: {before.confidence:g})" if entry.value is not None and before.confidence is not None else ""
            yield f"{ident}  {entry.kind} {value}{was}"
            continue
        what = f"{'no ' if entry.id in gone else ''}{entry.form or entry.kind}{' resolved' if entry.resolved else ''}"
        yield text.cut(f"{ids[entry.id]}  {what}  {text.clean(entry.text)}".rstrip(), here.width)
    if not wanted.entries:
        said = after.stage if after.stage != before.stage or not made.commit else ""
        what = f"stage {said}" if said else "no confidence"
        was = before.stage if said else "" if before.confidence is None else f"{before.confidence:g}"
        yield f"{ident}  {what}" + (f"  (was: {text.clean(was, 40)})" if was and made.commit else "")


def compacted(here: Invocation, made: PadResult, less: CompactedPad) -> Iterator[str]:
    """What was made fewer, a line each."""
    ident = here.ident(made.wanted.state.id)
    if not made.commit:
        yield f"{ident}  nothing to compact"
        return
    parts = [
        text.counted(len(less.doubles), "duplicate") + " merged" if less.doubles else "",
        text.counted(len(less.passes), "pass", "passes") + " removed" if less.passes else "",
    ]
    yield f"{ident}  {', '.join(part for part in parts if part) or 'duplicate lines removed'}"
    for entry in (*less.doubles, *less.passes):
        yield text.cut(f"  {entry.id[:4]}  {entry.form or entry.kind}  {text.clean(entry.text)}", here.width)


def secrets(number: int) -> str:
    """What is said where words of an entry were replaced."""
    return f"{text.counted(number, 'secret')} redacted."


def as_json(state: Session, found: Pad, commit: str = "") -> dict[str, Any]:
    """Return what `pad --json` prints."""
    step = pad_steps.next_step(found, state.id, state.stage, state.confidence)
    return {
        "id": state.id,
        "stage": state.stage,
        "cycle": pads.current_cycle(found, state.id),
        "confidence": state.confidence,
        "history": pads.confidence_history(found, state.id, state.confidence),
        "found": pads.gains_by_cycle(found, state.id),
        "diminishing": pads.has_diminishing_returns(found, state.id),
        "next": {"what": step.what, "command": step.command},
        "entries": [_entry_json(entry) for entry in found.entries],
        "unreadable_lines": found.passed,
        "commit": commit or None,
    }


def _entry_json(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "kind": entry.kind,
        "text": entry.text,
        "time": entry.time,
        "session_id": entry.session,
        "turn": entry.turn,
        "cycle": entry.cycle,
        "source": entry.source,
        "between": list(entry.between),
        "resolved": entry.resolved or None,
        "answer": entry.answer,
        "pass": entry.form,
        "version": entry.version or None,
        "value": entry.value,
    }


def _standing(here: Invocation, state: Session, found: Pad) -> Iterator[str]:
    said = [text.clean(state.stage, 40)] if state.stage else []
    cycle = pads.current_cycle(found, state.id)
    said = [*(said or ["none yet"]), f"cycle {cycle}"]
    yield from _labelled("Stage", text.fold(said, here.width - _LABEL, "  ·  "))
    values = pads.confidence_history(found, state.id, state.confidence)
    if values:
        shown = [f"{value:g}" for value in values[-_CYCLES:]]
        now = "none" if state.confidence is None else shown.pop()
        was = [f"(was {', '.join(shown)})"] if shown else []
        yield from _labelled("Confidence", text.fold([now, *was], here.width - _LABEL, "  "))


def _entry(here: Invocation, paint: Paint, entry: Entry, ids: dict[str, str], about: str) -> Iterator[str]:
    ident = ids[entry.id]
    indent = " " * (len(ident) + 4)
    done = f"\nresolved{': ' if entry.answer else ''}{entry.answer}" if entry.resolved else ""
    lines = text.wrapped(f"{entry.text}{about}{done}", here.width - len(indent))
    for number, line in enumerate(lines):
        yield f"{indent}{line}" if number else f"  {paint('yellow', ident)}  {line}"


def _about(here: Invocation, state: Session, entry: Entry, ids: dict[str, str]) -> str:
    """` (cycle 2, turn 4, lexer.py; from e90c55aa)`: what is known of an entry beside its words."""
    source = text.clean(entry.source, 200)
    parts = [
        f"v{entry.version}" if entry.version > 1 else "",
        entry.form,
        f"cycle {entry.cycle}" if entry.kind == "pass" else "",
        f"between {' and '.join(ids.get(ref, ref[:4]) for ref in entry.between)}" if entry.between else "",
        f"turn {entry.turn}" if entry.turn else "",
        source,
        "" if entry.session == state.id else f"from {here.ident(entry.session)}",
    ]
    told = ", ".join(part for part in parts if part)
    return f" ({told})" if told else ""


def _next(parts: list[str], columns: int) -> list[str]:
    """The parts in one line, else each in lines of its own: a command is never cut."""
    joined = " ".join(parts)
    return [joined] if text.width(joined) <= columns else [line for part in parts for line in text.wrap(part, columns)]


def _command(command: str, ident: str) -> str:
    if not command or not ident:
        return command
    return f"{command} {'--into ' if command.startswith('sessgit pad') else ''}{ident}"


def _found(here: Invocation, state: Session, found: Pad) -> Iterator[str]:
    """How much was new in each cycle, where there was more than one."""
    gained = pads.gains_by_cycle(found, state.id)
    if len(gained) > 1:
        shown = ", ".join(map(str, gained[-_CYCLES:]))
        little = ["few new entries"] if pads.has_diminishing_returns(found, state.id) else []
        said = [f"{shown} in each cycle", *little]
        yield from _labelled("New", text.fold(said, here.width - _LABEL, "  ·  "))


def _passed(found: Pad) -> Iterator[str]:
    if found.passed:
        yield f"{text.counted(found.passed, 'line')} of the scratchpad could not be read."


def _labelled(label: str, lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'' if number else label:<{_LABEL}}{line}"
