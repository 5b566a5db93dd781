"""The phrases that all documents for people share: facts, places, texts and outcomes of calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

from sessgit.formats import markup
from sessgit.formats.texts import one_line
from sessgit.model import canonical
from sessgit.model.conversation.content import Call, failure
from sessgit.model.conversation.story import Heading, IndexEntry, Relative, Story, StoryTurn
from sessgit.model.frozen import frozen
from sessgit.model.humanize import format_count, format_money, format_ranges, format_tokens, new_tokens

_SHORT_ID = 8
_LONGEST_PROMPT = 100
_LONGEST_REMARK = 120
_SHORT_TEXT = 120


def page_values(story: Story, turns: Iterable[StoryTurn]) -> dict[str, object]:
    """Return what every template gets of a story."""
    return {
        "story": story,
        "title": one_line(story.title, 200) or "(no prompt yet)",
        "facts": session_facts(story),
        "turns": with_gaps(turns),
    }


def turn_heading(heading: Heading) -> str:
    """Return the first line of a turn's prompt."""
    return one_line(heading.title, _LONGEST_PROMPT) or "(no text)"


def session_facts(story: Story) -> list[tuple[str, str]]:
    """Return what is known of the session as a whole, as names and values."""
    state = story.state
    models = ", ".join(one_line(model, 60) for model in story.tokens)
    turns = f"{state.turns:,}"
    if not story.whole:
        numbers = format_ranges((heading.number for heading in story.contents), "–")
        turns = f"{', '.join(numbers)} of {turns}"
    every = (
        ("Session", story.branch),
        ("Project", one_line(state.project, 300)),
        ("Git branch", one_line(state.git_branch, 100)),
        ("When", _time_range(state.created, state.updated)),
        ("Model", models),
        ("Turns", turns),
        ("Tokens", _tokens_phrase(story)),
        ("Cost", format_money(story.cost) if story.total.total else ""),
        ("Stage", one_line(state.stage, 40)),
        ("Labels", " ".join(f"#{one_line(label, 60)}" for label in state.labels)),
        ("Left behind", f"{format_count(story.rewound, 'turn')}, by rewinds" if story.rewound else ""),
        (
            "Elsewhere",
            f"{format_count(story.elsewhere, 'turn')}, in other versions" if story.elsewhere else "",
        ),
    )
    return [(name, value) for name, value in every if value]


def with_gaps(turns: Iterable[StoryTurn]) -> Iterator[tuple[str, StoryTurn]]:
    """Yield each turn with a sentence about the turns before it that are not included, or ``""``."""
    expected = 1
    for turn in turns:
        first, last, expected = expected, turn.number - 1, turn.number + 1
        gap = f"Turn {first} is" if first == last else f"Turns {first} to {last} are"
        yield f"{gap} not included." if first <= last else "", turn


def turn_facts(shown: StoryTurn) -> list[str]:
    """Return how long a turn took, its model, and what it used."""
    turn = shown.turn
    times = [moment for piece in shown.pieces if (moment := canonical.seconds(piece.time)) is not None]
    new = new_tokens(turn.total)
    parts = (
        format_duration(max(times) - times[0]) if times else "",
        one_line(turn.model, 60),
        f"{format_tokens(new)} tokens" if new else "",
        format_money(shown.cost) if turn.total.total else "",
        "interrupted" if turn.interrupted else "",
    )
    return list(filter(None, parts))


def tool_name(name: str) -> str:
    """Return a tool's name; of an MCP tool its own name, with its server."""
    *path, own = one_line(name, 80).split("__")
    server = "/".join(word for word in path if word and word != "mcp")
    return f"{server}: {own}" if server and own else one_line(name, 80)


def is_remark(text: str) -> bool:
    """Return whether a notice is one short line, so that there is nothing to fold."""
    return len(text) <= _LONGEST_REMARK and "\n" not in text.strip()


def images_note(number: int) -> str:
    """`2 images, not shown`."""
    return f"{format_count(number, 'image')}, not shown"


def call_outcome(call: Call) -> tuple[str, bool]:
    """Return the outcome of a call, or ``""`` if it is as expected, and whether it went wrong."""
    wrong = failure(call.cell.ok, call.exit_code)
    return ", ".join(filter(None, (wrong, format_duration(call.seconds or 0)))), bool(wrong)


@frozen
class CallBlock:
    """A text, not yet escaped, with its name and its language, which may be ``""``; a `short` one has no own line."""

    name: str
    text: str
    language: str
    short: bool = False


def call_blocks(call: Call, about: str) -> Iterator[CallBlock]:
    """Yield the call's arguments, its changes and the text of its result, without those that `about` shows already."""
    if isinstance(call.input.get("command"), str):
        yield CallBlock("", call.input["command"], "bash")
    for key, value in call.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        if key == "command" or (call.changes and key in call.in_changes) or text in (call.file, about):
            continue
        short = len(text) <= _SHORT_TEXT and "\n" not in text
        language = "" if isinstance(value, str) else "json"
        yield CallBlock(one_line(key, 40), text, markup.language_of(call.file) if key == "content" else language, short)
    for change in call.changes:
        yield CallBlock(change.path if len(call.changes) > 1 else "", "\n".join(change.diff), "diff")
    if call.output.strip() and not (call.changes and call.cell.ok):
        yield CallBlock("result", call.output, _guess_language(call.output))


def _guess_language(output: str) -> str:
    """Return the language of a tool's output, if its beginning shows it."""
    if output.startswith("diff --git "):
        return "diff"
    return "json" if output.lstrip()[:1] == "{" else ""


def short_place(text: str, project: str) -> str:
    """Return a path or a command without the project folder at its start."""
    folder = project.rstrip("/") + "/"
    return text.removeprefix(folder) if len(folder) > 1 else text


def relative_phrase(member: Relative) -> str:
    """`4 turns`, `6 turns, forked at turn 4`, `6 turns, forked at 7.3`."""
    place = member.cell or (f"turn {member.left}" if member.left else "the start")
    where = "" if member.left is None else f", forked at {place}"
    return f"{format_count(member.turns, 'turn')}{where}"


def entry_facts(entry: IndexEntry) -> str:
    """`6 turns, forked at turn 4 · 2026-03-01 10:00 · $0.22 · archived · “write the lexer”`."""
    words = one_line(entry.first_words, _LONGEST_PROMPT)
    parts = (
        relative_phrase(entry),
        format_moment(entry.updated),
        format_money(entry.cost) if entry.own_turns else "",
        *entry.notes,
        f"“{words}”" if words and entry.first_words != entry.title else "",
    )
    return " · ".join(filter(None, parts))


def format_moment(text: str) -> str:
    """Return an RFC 3339 time as `2026-03-01 10:00`, in UTC."""
    return text[:16].replace("T", " ")


def format_duration(seconds: float) -> str:
    """`12 s`, `4 min`, `2 h 5 min`; nothing for less than a second."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else ""
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join(filter(None, (f"{hours:,} h" if hours else "", f"{minutes} min" if minutes else "")))


def _time_range(created: str, updated: str) -> str:
    first, last = format_moment(created), format_moment(updated)
    if not last or first == last:
        return f"{first} UTC" if first else ""
    same_day = first[:10] == last[:10]
    return f"{first}–{last[11:]} UTC" if same_day else f"{first} to {last} UTC"


def _tokens_phrase(story: Story) -> str:
    total = story.total
    if not total.total:
        return ""
    new = format_tokens(new_tokens(total))
    return f"{new} new, {format_tokens(total.cache_read)} from the cache" if total.cache_read else new


FILTERS: Mapping[str, Callable[..., object]] = {
    "short": lambda name: str(name)[:_SHORT_ID],
    "relative": relative_phrase,
    "entry": entry_facts,
    "moment": format_moment,
    "about_turn": turn_facts,
    "counted": format_count,
}
"""What every template can call."""
