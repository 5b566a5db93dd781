"""`sessgit pad`: the scratchpad of a conversation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.cli import invocation, render, session_argument
from sessgit.cli.arguments import completion, options
from sessgit.model import pad as pads

if TYPE_CHECKING:
    from sessgit.branch.pad_changes import Change, Place
    from sessgit.cli.invocation import Invocation

KINDS = (*pads.MARKERS, "claim", "tension", "file")
"""What `add` notes."""
CHANGES = ("thesis", "pass", "resolve", "edit", "drop", "stage", "confidence", "cycle")
VIEWS = ("brief", "compact")
_LONGEST_INPUT = 1 << 20


def run(
    words: Annotated[
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
    as_json: options.Json = False,
) -> None:  # fmt: skip
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
    here = invocation.read()
    if action in CHANGES or action in KINDS:
        from sessgit.branch.pad_changes import Place

        claims = tuple(part for one in between or [] for part in one.split(",") if part)
        change = _change(action, rest, Place(turn, source), claims)
        _perform(here, into, change, as_json=as_json)
        return
    if len(rest) > 1 or (rest and into):
        raise _wrong(words or [])
    address = rest[0] if rest else into
    if action == "compact":
        _compact(here, address, as_json=as_json)
    else:
        _show(here, address, as_brief=action == "brief", as_json=as_json)


def _asked(words: list[str]) -> tuple[str, list[str]]:
    """What to do, ``""`` to show the pad, and the words behind that."""
    if words[:1] == ["add"]:
        if words[1:2] == [] or words[1] not in KINDS:
            raise _wrong(words, f"The kinds are {', '.join(KINDS)}.")
        words = words[1:]
    return (words[0], words[1:]) if words and words[0] in (*KINDS, *CHANGES, *VIEWS) else ("", words)


def _change(action: str, rest: list[str], place: Place, between: tuple[str, ...]) -> Change:
    """The change that the words ask for; raises UsageError where they do not fit together."""
    from sessgit.branch import edit, pad_changes
    from sessgit.model.conversation.session import STAGES

    first, more = rest[:1], rest[1:]
    if action in KINDS and rest and (not between or action == "tension"):
        return pad_changes.add(action, _text(rest), place, between)
    if action == "thesis" and rest:
        return pad_changes.thesis(_text(rest), place)
    if action == "pass" and more and first[0] in pads.PASSES:
        return pad_changes.passed(first[0], _text(more), place)
    if action == "resolve" and rest:
        return pad_changes.resolve(first[0], _text(more) if more else "")
    if action == "edit" and more:
        return pad_changes.reword(first[0], _text(more))
    if action == "drop" and rest:
        return pad_changes.drop(rest)
    if action == "stage" and rest and not more and first[0] in STAGES:
        return pad_changes.stage(first[0])
    if action == "confidence" and rest:
        return pad_changes.confidence(edit.confidence(first[0]), _text(more) if more else "", place)
    if action == "cycle" and not rest:
        return pad_changes.cycle()
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


def _perform(here: Invocation, address: str, change: Change, *, as_json: bool) -> None:
    from sessgit.branch import edit, pad_changes
    from sessgit.cli.pages import pad as page

    found = session_argument.target(here, address, changes=True)
    done = pad_changes.perform(here.store, here.index, edit.session(found), change, here.now)
    if done.wanted.secrets:
        render.tell(page.secrets(done.wanted.secrets))
    if not done.commit:
        render.tell("Nothing changed.")
    if as_json:
        render.document("pad/v1", page.as_json(done.wanted.state, done.pad, done.commit))
    else:
        render.lines(here, page.done(here, done))


def _compact(here: Invocation, address: str, *, as_json: bool) -> None:
    from sessgit.branch import edit, pad_changes
    from sessgit.cli.pages import pad as page

    found = session_argument.target(here, address, changes=True)
    session = edit.session(found)
    done = pad_changes.perform(here.store, here.index, session, pad_changes.compact(), here.now)
    less = done.wanted.compacted
    assert less is not None
    if as_json:
        gone = {"doubles": [one.id for one in less.doubles], "passes": [one.id for one in less.passes]}
        render.document("compact/v1", {"id": session, **gone, "commit": done.commit or None})
    else:
        render.lines(here, page.compacted(here, done, less))


def _show(here: Invocation, address: str, *, as_brief: bool, as_json: bool) -> None:
    from sessgit.cli.pages import pad as page
    from sessgit.errors import UsageError
    from sessgit.history import fork_point, pad_lists
    from sessgit.history.resolve import title
    from sessgit.model import pad_steps

    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "a scratchpad belongs to a whole turn.", f"`sessgit pad {here.ident(found.branch.name)}@{found.turn}`"
        )
    turn = found.state.turns if found.turn is None else found.turn
    commit = fork_point.before_the_next(here.store, here.index, found.branch, turn)
    state, pad = here.store.state(commit), pad_lists.pad(here.store, commit)
    if not as_brief:
        if as_json:
            render.document("pad/v1", page.as_json(state, pad))
        else:
            render.lines(here, page.pad(here, state, pad, named=bool(address)))
        return
    told = pad_steps.brief(pad, state.id, title(state), state.stage, state.confidence)
    if as_json:
        render.document("brief/v1", {"id": state.id, "text": told})
    elif told:
        render.lines(here, told.split("\n"))
    else:
        render.tell("The scratchpad is empty.")
