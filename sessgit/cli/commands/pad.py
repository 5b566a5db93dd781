"""`sessgit pad`: the scratchpad of a conversation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import frame, session_argument
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.model import pad as pads

if TYPE_CHECKING:
    from sessgit.branch.pad_changes import EntryPlace, MakeChange
    from sessgit.cli.invocation import Invocation
    from sessgit.model.conversation.session import Session

KINDS = (*pads.MARKERS, "claim", "tension", "file")
"""What `add` notes."""
CHANGES = ("thesis", "pass", "resolve", "edit", "drop", "stage", "confidence", "cycle")
VIEWS = ("brief", "compact")
_LONGEST_INPUT = 1 << 20


@frame.command("pad", reads=True)
def run(    here: Invocation, words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS | ACTION...", help="A conversation, or an action.", show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = None,
    into: Annotated[
        str,
        typer.Option(
            "--into", metavar="ADDRESS", help="The conversation (default: the current session).", show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = "",
    turn: Annotated[
        int | None, typer.Option("--turn", metavar="N", help="The turn it comes from.", show_default=False)
    ] = None,
    source: Annotated[
        str, typer.Option("--source", metavar="TEXT", help="Another source.", show_default=False)
    ] = "",
    between: Annotated[
        list[str] | None,
        typer.Option("--between", metavar="ID", help="A claim that the tension is about; may be repeated."),
    ] = None,
) -> Answer:  # fmt: skip
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
    action, rest = _asked(words or [])
    if action in CHANGES or action in KINDS:
        from sessgit.branch.pad_changes import EntryPlace

        claims = tuple(part for one in between or [] for part in one.split(",") if part)
        change = _change(action, rest, EntryPlace(turn, source), claims)
        return _perform(here, into, change)
    if len(rest) > 1 or (rest and into):
        raise _wrong(words or [])
    address = rest[0] if rest else into
    if action == "compact":
        return _compact(here, address)
    return _brief(here, address) if action == "brief" else _show(here, address)


def _asked(words: list[str]) -> tuple[str, list[str]]:
    """What to do, ``""`` to show the pad, and the words behind that."""
    if words[:1] == ["add"]:
        if words[1:2] == [] or words[1] not in KINDS:
            raise _wrong(words, f"The kinds are {', '.join(KINDS)}.")
        words = words[1:]
    return (words[0], words[1:]) if words and words[0] in (*KINDS, *CHANGES, *VIEWS) else ("", words)


def _change(action: str, rest: list[str], place: EntryPlace, between: tuple[str, ...]) -> MakeChange:
    """The change that the words ask for; raises UsageError where they do not fit together."""
    from sessgit.branch import edit, pad_changes
    from sessgit.model.conversation.session import STAGES

    first, more = rest[:1], rest[1:]
    if action in KINDS and rest and (not between or action == "tension"):
        return pad_changes.add_entry(action, _text(rest), place, between)
    if action == "thesis" and rest:
        return pad_changes.set_thesis(_text(rest), place)
    if action == "pass" and more and first[0] in pads.PASSES:
        return pad_changes.add_pass(first[0], _text(more), place)
    if action == "resolve" and rest:
        return pad_changes.resolve_entry(first[0], _text(more) if more else "")
    if action == "edit" and more:
        return pad_changes.reword_entry(first[0], _text(more))
    if action == "drop" and rest:
        return pad_changes.drop_entries(rest)
    if action == "stage" and rest and not more and first[0] in STAGES:
        return pad_changes.change_stage(first[0])
    if action == "confidence" and rest:
        return pad_changes.change_confidence(edit.parse_confidence(first[0]), _text(more) if more else "", place)
    if action == "cycle" and not rest:
        return pad_changes.begin_cycle()
    hints = {
        "pass": f"`sessgit pad pass KIND TEXT`; KIND is {', '.join(pads.PASSES)}.",
        "stage": f"The stages are {', '.join(STAGES)}; `sessgit edit --stage none` removes it.",
    }
    raise _wrong([action, *rest], hints.get(action, ""))


def _wrong(words: list[str], hint: str = "") -> Exception:
    from sessgit.cli import text
    from sessgit.errors import UsageError

    said = text.cut(" ".join(map(text.clean, words)), 60)
    return UsageError(f"cannot understand: pad {said}".rstrip(), hint or "`sessgit pad --help` lists the actions.")


def _text(words: list[str]) -> str:
    """The words as one text; `-` is what standard input says."""
    if words != ["-"]:
        return " ".join(words)
    given = sys.stdin.buffer.read(_LONGEST_INPUT) if sys.stdin else b""
    return given.decode("utf-8", "replace")


def _perform(here: Invocation, address: str, change: MakeChange) -> Answer:
    from sessgit.branch import edit, pad_changes
    from sessgit.cli.pages import pad as page

    found = session_argument.target(here, address, changes=True)
    done = pad_changes.perform_change(here.store, here.index, edit.addressed_session(found), change, here.now)
    remarks = [page.secrets(done.wanted.secrets)] if done.wanted.secrets else []
    remarks += [] if done.commit else ["Nothing changed."]
    return Answer(lambda: page.as_json(done.wanted.state, done.pad, done.commit), page.done(here, done), remarks)


def _compact(here: Invocation, address: str) -> Answer:
    from sessgit.branch import edit, pad_changes
    from sessgit.cli.pages import pad as page

    found = session_argument.target(here, address, changes=True)
    session = edit.addressed_session(found)
    done = pad_changes.perform_change(here.store, here.index, session, pad_changes.compact_pad(), here.now)
    less = done.wanted.compacted
    assert less is not None
    gone = {"doubles": [one.id for one in less.doubles], "passes": [one.id for one in less.passes]}
    return Answer(lambda: {"id": session, **gone, "commit": done.commit or None}, page.compacted(here, done, less))


def _show(here: Invocation, address: str) -> Answer:
    from sessgit.cli.pages import pad as page

    state, pad = _stored(here, address)
    return Answer(lambda: page.as_json(state, pad), page.pad(here, state, pad, named=bool(address)))


def _brief(here: Invocation, address: str) -> Answer:
    from sessgit.history.resolve import session_title
    from sessgit.model import pad_steps

    state, pad = _stored(here, address)
    told = pad_steps.pad_brief(pad, state.id, session_title(state), state.stage, state.confidence)
    remarks = [] if told or here.json else ["The scratchpad is empty."]
    return Answer(lambda: {"id": state.id, "text": told}, told.split("\n") if told else (), remarks)


def _stored(here: Invocation, address: str) -> tuple[Session, pads.Pad]:
    """Return the state and the pad of a conversation as of a turn."""
    from sessgit.errors import UsageError
    from sessgit.history import fork_point, pad_lists

    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "a scratchpad belongs to a whole turn.", f"`sessgit pad {here.ident(found.branch.name)}@{found.turn}`"
        )
    turn = found.state.turns if found.turn is None else found.turn
    commit = fork_point.last_commit_before_next(here.store, here.index, found.branch, turn)
    return here.store.state(commit), pad_lists.read_pad(here.store, commit)
