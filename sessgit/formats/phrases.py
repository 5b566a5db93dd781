"""What the documents for people say in the same words: facts, places, what came of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessgit.formats.texts import one_line
from sessgit.model import canonical, humanize
from sessgit.model.conversation.content import Call
from sessgit.model.conversation.story import Heading, Relative, Story, StoryTurn

SHORT_ID = 8
_LONGEST_PROMPT = 100
_LONGEST_REMARK = 120


def page_title(story: Story) -> str:
    """What the page is called."""
    return one_line(story.title, 200) or "(no prompt yet)"


def turn_heading(heading: Heading) -> str:
    """The first line of a turn's prompt."""
    return one_line(heading.title, _LONGEST_PROMPT) or "(no text)"


def session_facts(story: Story) -> list[tuple[str, str]]:
    """What is known of the session as a whole, by what it is called; only what there is."""
    state = story.state
    models = ", ".join(one_line(model, 60) for model in story.tokens)
    every = (
        ("Session", story.branch),
        ("Project", one_line(state.project, 300)),
        ("Git branch", one_line(state.git_branch, 100)),
        ("When", _time_range(state.created, state.updated)),
        ("Model", models),
        ("Turns", turns_phrase(story)),
        ("Tokens", _tokens_phrase(story)),
        ("Cost", humanize.format_money(story.cost) if story.total.total else ""),
        ("Stage", one_line(state.stage, 40)),
        ("Labels", ", ".join(one_line(label, 60) for label in state.labels)),
        ("Left behind", f"{humanize.format_count(story.rewound, 'turn')}, by rewinds" if story.rewound else ""),
        (
            "Elsewhere",
            f"{humanize.format_count(story.elsewhere, 'turn')}, in other versions" if story.elsewhere else "",
        ),
    )
    return [(name, value) for name, value in every if value]


def turns_phrase(story: Story) -> str:
    """`12`, `3–9 of 12`."""
    if story.whole:
        return f"{story.state.turns:,}"
    return f"{_format_ranges([heading.number for heading in story.contents])} of {story.state.turns:,}"


def missing_turns(before: int, number: int) -> str:
    """What stands between two turns that do not follow each other in the document, or ``""``."""
    first, last = before + 1, number - 1
    if first > last:
        return ""
    return f"Turn {first} is not included." if first == last else f"Turns {first} to {last} are not included."


def turn_facts(told: StoryTurn) -> list[str]:
    """What stands beside a turn's number: how long it took, by which model, what it used."""
    turn = told.turn
    times = [moment for piece in told.pieces if (moment := canonical.seconds(piece.time)) is not None]
    new = humanize.new_tokens(turn.total)
    parts = (
        format_duration(max(times) - times[0]) if times else "",
        one_line(turn.model, 60),
        f"{humanize.format_tokens(new)} tokens" if new else "",
        humanize.format_money(told.cost) if turn.total.total else "",
        "interrupted" if turn.interrupted else "",
    )
    return [part for part in parts if part]


def tools_phrase(calls: Mapping[str, int]) -> str:
    """`Edit ×3, Bash ×2`."""
    return ", ".join(tool_name(name) + (f" ×{number}" if number > 1 else "") for name, number in calls.items())


def tool_name(name: str) -> str:
    """A tool's name; of one with a long path of names the last, with where it comes from."""
    *path, own = one_line(name, 80).split("__")
    server = "/".join(word for word in path if word and word != "mcp")
    return f"{server}: {own}" if server and own else one_line(name, 80)


def is_remark(text: str) -> bool:
    """Whether a notice says all in one short line, so that there is nothing to fold."""
    return len(text) <= _LONGEST_REMARK and "\n" not in text.strip()


def images_note(number: int) -> str:
    """`2 images, not shown`."""
    return f"{humanize.format_count(number, 'image')}, not shown"


def call_outcome(call: Call) -> tuple[str, bool]:
    """What came of a call, as far as it is worth a word, and whether it went wrong."""
    began, ended = canonical.seconds(call.time), canonical.seconds(call.ended)
    took = format_duration(ended - began) if began is not None and ended is not None else ""
    if call.cell.ok is None:
        return "no result", True
    wrong = f"exit {call.exit_code}" if call.exit_code else "" if call.cell.ok else "failed"
    return ", ".join(part for part in (wrong, took) if part), bool(wrong)


def short_place(text: str, project: str) -> str:
    """A path or a command with the project's own folder left out at its beginning."""
    folder = project.rstrip("/") + "/"
    return text.removeprefix(folder) if len(folder) > 1 else text


def relative_phrase(member: Relative) -> str:
    """`4 turns`, `6 turns, left at turn 4`."""
    where = "" if member.left is None else f", forked at {f'turn {member.left}' if member.left else 'the start'}"
    return f"{humanize.format_count(member.turns, 'turn')}{where}"


def format_moment(text: str) -> str:
    """An RFC 3339 time as `2026-03-01 10:00`, in UTC."""
    return text[:16].replace("T", " ")


def format_duration(seconds: float) -> str:
    """`12 s`, `4 min`, `2 h 5 min`; nothing for less than a second."""
    if seconds < 1:
        return ""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours:,} h {rest} min" if rest else f"{hours:,} h"


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
    new = humanize.format_tokens(humanize.new_tokens(total))
    return f"{new} new, {humanize.format_tokens(total.cache_read)} from the cache" if total.cache_read else new


def _format_ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)
