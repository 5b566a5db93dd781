"""What to do next with a scratchpad, and the text that a conversation begins anew from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sessgit.errors import UsageError
from sessgit.model import canonical, humanize
from sessgit.model import pad as pads
from sessgit.model.conversation.session import STAGES
from sessgit.model.pad import Entry, Pad

SURE = 0.8
"""A result that is so sure can be written down."""
LONGEST_BRIEF = 32_000
_LISTS = (
    ("claim", "Claims"), ("evidence", "Evidence"), ("counter", "Counterarguments"), ("insight", "Insights"),
    ("pattern", "Patterns"), ("risk", "Risks"),
)  # fmt: skip
_INERT_AT_SIGN = "@ "
"""The sign with which the client's prompts name a file to be read, and a space: what cannot be seen it takes out."""
_LONGEST_PART, _LONGEST_SOURCE = 2_000, 200
_MOST_LISTED = 30


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next, and the command that notes it or does it; the command can be ``""``."""

    what: str
    command: str = ""


def check_stage(before: str, after: str) -> None:
    """Raise UsageError where a stage is left out; going back is free."""
    place = STAGES.index(before) if before in STAGES else 0
    if STAGES.index(after) > place + 1:
        raise UsageError(
            f"{STAGES[place + 1]} comes before {after}",
            f"To set it anyway: `sessgit edit --stage {after}`",
        )


def next_step(pad: Pad, session: str, stage: str, confidence: float | None) -> Step:
    """Return what the stage and what is on the pad suggest."""
    if stage == "shaping":
        return _shaping_step(pad)
    if stage == "critiquing":
        return _critiquing_step(pad, session, confidence)
    if stage == "synthesized":
        return _synthesized_step(pad)
    if not pad.of(*pads.MARKERS, "claim"):
        return Step("Note what you find", "sessgit pad add insight TEXT")
    if not pad.of("claim"):
        return Step("Write down what follows from it", "sessgit pad add claim TEXT")
    return Step("Continue with shaping", "sessgit pad stage shaping")


def _shaping_step(pad: Pad) -> Step:
    claims = len(pad.of("claim"))
    if not claims:
        return Step("Write down what follows from what you found", "sessgit pad add claim TEXT")
    if claims > 1 and not pad.of("tension"):
        return Step(f"Look for tensions between the {claims} claims", "sessgit pad add tension TEXT")
    if not pad.of("thesis"):
        return Step("Write the thesis", "sessgit pad thesis TEXT")
    return Step("Continue with critiquing", "sessgit pad stage critiquing")


def _critiquing_step(pad: Pad, session: str, confidence: float | None) -> Step:
    now, tensions = pads.current_cycle(pad, session), [entry for entry in pad.of("tension") if entry.is_open]
    if not pad.of("thesis"):
        return Step("Write a thesis to question", "sessgit pad thesis TEXT")
    if tensions:
        which = "" if len(tensions) == 1 else ", beginning with the first"
        name = pads.shown_ids(pad)[tensions[0].id]
        return Step(
            f"Settle {humanize.format_count(len(tensions), 'open tension')}{which}", f"sessgit pad resolve {name} TEXT"
        )
    if not any(entry.cycle == now and entry.session == session for entry in pad.of("counter", "risk")):
        return Step("Look for arguments against the thesis", "sessgit pad add counter TEXT")
    if pads.has_diminishing_returns(pad, session) or (confidence or 0) >= SURE:
        return Step("Write down the result", "sessgit pad stage synthesized")
    return Step("Start another cycle", "sessgit pad cycle")


def _synthesized_step(pad: Pad) -> Step:
    if not pad.of("thesis"):
        return Step("Write the thesis", "sessgit pad thesis TEXT")
    questions = sum(entry.is_open for entry in pad.of("question"))
    if questions:
        return Step(
            f"{humanize.format_count(questions, 'question')} left: fork a conversation for them", "sessgit fork"
        )
    return Step("Nothing left to do")


def pad_brief(pad: Pad, session: str, title: str, stage: str, confidence: float | None) -> str:
    """Return what a conversation that goes on should know; "" where nothing is on the pad.

    It is safe to be a prompt, whatever the pad says: it has a bounded length and no control characters, does not begin
    as a command of the client, and names no file in the way that makes the client read it.
    """
    if not pad.entries:
        return ""
    step = next_step(pad, session, stage, confidence)
    parts = [
        f"We continue “{canonical.one_line(title, 100)}”. This is what we have noted so far.",
        _status_line(pad, session, stage, confidence),
        *(
            f"Thesis{_origin_note(one, session)}:\n{_indented_text(one.text, pads.LONGEST_DOCUMENT)}"
            for one in pad.of("thesis")
        ),
        *(part for kind, called in _LISTS for part in _list_sections(called, pad.of(kind), session)),
        *_list_sections("Open tensions", [one for one in pad.of("tension") if one.is_open], session, pad.of("claim")),
        *_list_sections("Open questions", [one for one in pad.of("question") if one.is_open], session),
        *_list_sections("Files to look at", pad.of("file"), session),
        f"Suggested next: {step.what}.",
    ]
    text = "\n\n".join(part for part in parts if part).replace("@", _INERT_AT_SIGN)
    return text if len(text) <= LONGEST_BRIEF else f"{text[:LONGEST_BRIEF].rstrip()}…\n\n`sessgit pad` shows all of it."


def _status_line(pad: Pad, session: str, stage: str, confidence: float | None) -> str:
    cycle = pads.current_cycle(pad, session)
    parts = [
        f"stage {canonical.one_line(stage, 40)}" if stage else "",
        f"cycle {cycle}" if cycle > 1 else "",
        "" if confidence is None else f"confidence {confidence:g}",
    ]
    line = ", ".join(part for part in parts if part)
    return f"Current state: {line}." if line else ""


def _list_sections(
    called: str, entries: Sequence[Entry], session: str, claims: Sequence[Entry] = ()
) -> Iterator[str]:  # fmt: skip
    """Yield the section of a list, if it has entries; a tension is followed by those of the claims that it is about."""
    if not entries:
        return
    lines = list[str]()
    for entry in entries[-_MOST_LISTED:]:
        source = f" [{canonical.one_line(entry.source, _LONGEST_SOURCE)}]" if entry.source else ""
        lines.append(f"- {_indented_text(entry.text, _LONGEST_PART, '  ')}{source}{_origin_note(entry, session)}")
        lines += [f"  - {canonical.one_line(one.text, _LONGEST_SOURCE)}" for one in claims if one.id in entry.between]
    more = [f"- ({len(entries) - _MOST_LISTED} earlier ones: sessgit pad)"] if len(entries) > _MOST_LISTED else []
    yield "\n".join([f"{called}:", *more, *lines])


def _origin_note(entry: Entry, session: str) -> str:
    return "" if entry.session == session else f" (from {entry.session[:8]})"


def _indented_text(text: str, longest: int, indent: str = "") -> str:
    text = canonical.printable(canonical.without_sequences(text)).strip()
    text = text if len(text) <= longest else f"{text[:longest].rstrip()}…"
    return text.replace("\n", f"\n{indent}")
