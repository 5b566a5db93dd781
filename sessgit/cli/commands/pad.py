"""`sessgit pad`: the scratchpad of a conversation."""

from __future__ import annotations

import sys

from sessgit.branch import edit, pad_changes
from sessgit.branch.pad_changes import EntryPlace, MakeChange
from sessgit.cli import completion, frame, session_argument, text
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.cli.options import argument, option
from sessgit.cli.pages import pad as page
from sessgit.errors import UsageError
from sessgit.history import fork_point, pad_lists
from sessgit.history.resolve import session_title
from sessgit.model import pad as pads
from sessgit.model import pad_steps
from sessgit.model.conversation.session import STAGES, Session

KINDS = (*pads.MARKERS, "claim", "tension", "file")
"""What `add` adds."""
CHANGES = ("thesis", "pass", "resolve", "edit", "drop", "stage", "confidence", "cycle", "compact")
_LONGEST_INPUT = 1 << 20


@frame.command("pad", reads=True)
def run(
    here: Invocation,
    words: list[str] = argument("ADDRESS | ACTION...", "A conversation, or an action.", complete=completion.addresses),
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
        if not words or words[0] not in KINDS:
            raise _not_understood(["add", *words], f"The kinds are {', '.join(KINDS)}.")
    action, rest = (words[0], words[1:]) if words and words[0] in (*KINDS, *CHANGES, "brief") else ("", words)
    if action in KINDS or (action in CHANGES and action != "compact"):
        claims = tuple(part for value in between for part in value.split(",") if part)
        return _change(here, into, _parse_change([action, *rest], EntryPlace(turn, source), claims))
    if len(rest) > 1 or (rest and into):
        raise _not_understood(words)
    address = rest[0] if rest else into
    if action == "compact":
        return _change(here, address, pad_changes.compact_pad())
    state, pad = _stored(here, address)
    if action != "brief":
        return Answer(lambda: page.as_json(state, pad), page.pad(here, state, pad, named=bool(address)))
    brief = pad_steps.pad_brief(pad, state.id, session_title(state), state.stage, state.confidence)
    notes = [] if brief else ["The scratchpad is empty."]
    return Answer({"id": state.id, "text": brief}, brief.split("\n") if brief else (), notes=notes)


def _parse_change(words: list[str], place: EntryPlace, between: tuple[str, ...]) -> MakeChange:
    """Return the change that an action and its words describe; raise UsageError if they do not fit together."""
    hint = ""
    match words:
        case [kind, _, *_] if kind in KINDS and (not between or kind == "tension"):
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


def _change(here: Invocation, address: str, change: MakeChange) -> Answer:
    session = edit.addressed_session(session_argument.target(here, address, changes=True))
    result = pad_changes.perform_change(here.context, session, change)
    compacted = result.wanted.compacted
    if compacted is not None:
        removed = {
            "doubles": [entry.id for entry in compacted.doubles],
            "passes": [entry.id for entry in compacted.passes],
        }
        document = {"id": session, **removed, "commit": result.commit or None}
        return Answer(document, page.compacted(here, result, compacted))
    remarks = [page.secrets(result.wanted.secrets)] if result.wanted.secrets else []
    remarks += [] if result.commit else ["Nothing changed."]
    document = page.as_json(result.wanted.state, result.pad, result.commit)
    return Answer(document, page.changed(here, result), remarks)


def _stored(here: Invocation, address: str) -> tuple[Session, pads.Pad]:
    """Return the state and the pad of a conversation as of a turn."""
    target = session_argument.whole_turn(here, address, "pad")
    turn = target.state.turns if target.turn is None else target.turn
    commit = fork_point.last_commit_before_next(here.context, target.branch, turn)
    return here.store.state(commit), pad_lists.read_pad(here.store, commit)
