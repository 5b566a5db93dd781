"""A story as one HTML page that opens without a network and runs nothing.

Its content security policy forbids all but its own style sheet, which is named by its hash. What the transcript says
stands escaped; what is folded opens without a script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup, escape

from sessgit import __version__
from sessgit.formats import calls, code, phrases, prose, template
from sessgit.formats.texts import NO_BOUND, OUTPUT_BOUND, WORDS_BOUND, Bound, clean_text, cut_text, one_line
from sessgit.model import humanize
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.story import Relative, Story, StoryTurn

_LONGEST_ABOUT = 200
_MOST_LEVELS = 8

Paint = Callable[[str], Markup]


@dataclass(frozen=True, slots=True)
class Block:
    """A text with a word for what it is, or ``""``; one that is `short` stands on the line of its name."""

    name: str
    text: Markup
    short: bool = False


@dataclass(frozen=True, slots=True)
class FoldedPart:
    """What is shown in a row: `head` names it, `about` says what it is about, `outcome` what came of it."""

    head: str
    about: str
    blocks: tuple[Block, ...]
    """What it holds when it is opened; nothing where `about` is all there is."""
    kind: str = "call"
    outcome: str = ""
    wrong: bool = False
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class PartGroup:
    """Pieces of one kind in a row: `said` by somebody, or `parts` that are folded."""

    kind: str
    said: tuple[Markup, ...] = ()
    parts: tuple[FoldedPart, ...] = ()


@dataclass(frozen=True, slots=True)
class PageTurn:
    """A turn as the page shows it."""

    told: StoryTurn
    groups: tuple[PartGroup, ...]
    missing: str
    summary: Markup | None


@dataclass(frozen=True, slots=True)
class Branching:
    """A member of the family, with how many lists begin and end in front of it."""

    member: Relative
    opens: int
    closes: int


def render(story: Story, turns: Iterable[StoryTurn], *, full: bool = False) -> Iterator[str]:
    """The page, piece by piece; without `full` long texts are cut in the middle, and say so."""
    style = template.read_template_file("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    family, depth = _nest_family(story.family)
    filters: dict[str, Callable[..., object]] = {
        "short": lambda name: str(name)[: phrases.SHORT_ID],
        "relative": phrases.relative_phrase,
        "moment": phrases.format_moment,
        "heading": phrases.turn_heading,
        "counted": humanize.format_count,
        "about_turn": phrases.turn_facts,
        "tools": phrases.tools_phrase,
    }
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return template.render(
        "page.html.j2",
        filters,
        story=story,
        title=phrases.page_title(story),
        facts=phrases.session_facts(story),
        family=family,
        family_depth=depth,
        turns=_page_turns(story, turns, _TextBounds(full)),
        style=Markup(style),
        policy=policy,
        version=__version__,
    )


@dataclass(frozen=True, slots=True)
class _TextBounds:
    full: bool

    @property
    def words(self) -> Bound:
        return NO_BOUND if self.full else WORDS_BOUND

    @property
    def output(self) -> Bound:
        return NO_BOUND if self.full else OUTPUT_BOUND


def _page_turns(story: Story, turns: Iterable[StoryTurn], bounds: _TextBounds) -> Iterator[PageTurn]:
    before = 0
    for told in turns:
        groups = tuple(_part_groups(told, story.state.project, bounds))
        summary = _paint(told.summary, bounds.words, prose.markdown_html) if told.summary else None
        yield PageTurn(told, groups, phrases.missing_turns(before, told.number), summary)
        before = told.number


def _part_groups(told: StoryTurn, project: str, bounds: _TextBounds) -> Iterator[PartGroup]:
    for kind, pieces in groupby(told.pieces, _piece_kind):
        if kind == "work":
            yield PartGroup(kind, parts=tuple(_make_part(told, piece, project, bounds) for piece in pieces))
        else:
            paint = prose.plain_html if kind == "prompt" else prose.markdown_html
            said = (piece for piece in pieces if isinstance(piece, Words))
            yield PartGroup(
                kind, tuple(_paint(piece.text, bounds.words, paint) + _images_note(piece) for piece in said)
            )


def _piece_kind(piece: Piece) -> str:
    if isinstance(piece, Call) or piece.thinking or piece.by == "client":
        return "work"
    return "prompt" if piece.by == "person" else "answer"


def _make_part(told: StoryTurn, piece: Piece, project: str, bounds: _TextBounds) -> FoldedPart:
    if isinstance(piece, Call):
        return _call_part(told, piece, project, bounds)
    if not piece.thinking and phrases.is_remark(piece.text):
        return FoldedPart("", one_line(piece.text, _LONGEST_ABOUT), (), "remark")
    paint = prose.markdown_html if piece.thinking else prose.plain_html
    head, kind = ("Thinking", "thinking") if piece.thinking else ("Notice", "notice")
    return FoldedPart(
        head, one_line(piece.text, _LONGEST_ABOUT), (Block("", _paint(piece.text, bounds.words, paint)),), kind
    )


def _call_part(told: StoryTurn, call: Call, project: str, bounds: _TextBounds) -> FoldedPart:
    about = phrases.short_place(told.about.get(call.ordinal, ""), project)
    outcome, wrong = phrases.call_outcome(call)
    return FoldedPart(
        head=phrases.tool_name(call.tool),
        about=one_line(about, _LONGEST_ABOUT),
        blocks=tuple(_block_markup(block, bounds.output) for block in calls.call_blocks(call, about)),
        outcome=outcome,
        wrong=wrong,
        anchor=f"turn-{told.number}.{call.ordinal}",
    )


def _block_markup(block: calls.CallBlock, bound: Bound) -> Block:
    if block.short:
        return Block(block.name, escape(clean_text(block.text)), short=True)
    if block.language == "diff":
        return Block(block.name, _diff_markup(block.text, bound))
    return Block(block.name, _pre_markup(block.text, bound, block.language))


def _pre_markup(text: str, bound: Bound, language: str) -> Markup:
    painted = _paint(text, bound, lambda part: code.highlight(part, language))
    return Markup("<pre><code>{}</code></pre>").format(painted)


def _diff_markup(text: str, bound: Bound) -> Markup:
    painted = _paint(text, bound, lambda part: code.highlight_diff(part.split("\n")))
    return Markup('<pre class="diff"><code>{}</code></pre>').format(painted)


def _paint(text: str, bound: Bound, paint: Paint) -> Markup:
    """The text, cut in the middle where it is too long, each part painted by itself."""
    found = cut_text(text, bound)
    if not found.note:
        return paint(found.head)
    note = Markup('\n<span class="left-out">{}</span>\n').format(f"… {found.note} …")
    return paint(found.head) + note + (paint(found.tail) if found.tail else Markup())


def _images_note(piece: Words) -> Markup:
    return Markup("<p>[{}]</p>").format(phrases.images_note(piece.images)) if piece.images else Markup()


def _nest_family(family: Iterable[Relative]) -> tuple[list[Branching], int]:
    """The members with the lists around them, and how many are open at the end."""
    out: list[Branching] = []
    depth = 0
    for member in family:
        own = min(member.depth, _MOST_LEVELS) + 1
        out.append(Branching(member, max(0, own - depth), max(0, depth - own)))
        depth = own
    return out, depth
