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
from sessgit.formats.texts import ALL, OUTPUT, WORDS, Bound, clean, cut, one_line
from sessgit.model import humanize
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.story import Relative, Story, Told

_ABOUT = 200
_DEEPEST = 8

Paint = Callable[[str], Markup]


@dataclass(frozen=True, slots=True)
class Block:
    """A text with a word for what it is, or ``""``; one that is `short` stands on the line of its name."""

    name: str
    text: Markup
    short: bool = False


@dataclass(frozen=True, slots=True)
class Part:
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
class Group:
    """Pieces of one kind in a row: `said` by somebody, or `parts` that are folded."""

    kind: str
    said: tuple[Markup, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn as the page shows it."""

    told: Told
    groups: tuple[Group, ...]
    missing: str
    summary: Markup | None


@dataclass(frozen=True, slots=True)
class Branching:
    """A member of the family, with how many lists begin and end in front of it."""

    member: Relative
    opens: int
    closes: int


def render(story: Story, turns: Iterable[Told], *, full: bool = False) -> Iterator[str]:
    """The page, piece by piece; without `full` long texts are cut in the middle, and say so."""
    style = template.text("style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    family, depth = _branchings(story.family)
    filters: dict[str, Callable[..., object]] = {
        "short": lambda name: str(name)[: phrases.SHORT],
        "relative": phrases.relative,
        "moment": phrases.moment,
        "heading": phrases.heading,
        "counted": humanize.counted,
        "about_turn": phrases.about_turn,
        "tools": phrases.tools,
    }
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return template.render(
        "page.html.j2",
        filters,
        story=story,
        title=phrases.title(story),
        facts=phrases.facts(story),
        family=family,
        family_depth=depth,
        turns=_shown(story, turns, _Bounds(full)),
        style=Markup(style),
        policy=policy,
        version=__version__,
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    full: bool

    @property
    def words(self) -> Bound:
        return ALL if self.full else WORDS

    @property
    def output(self) -> Bound:
        return ALL if self.full else OUTPUT


def _shown(story: Story, turns: Iterable[Told], bounds: _Bounds) -> Iterator[Shown]:
    before = 0
    for told in turns:
        groups = tuple(_groups(told, story.state.project, bounds))
        summary = _painted(told.summary, bounds.words, prose.answer) if told.summary else None
        yield Shown(told, groups, phrases.missing(before, told.number), summary)
        before = told.number


def _groups(told: Told, project: str, bounds: _Bounds) -> Iterator[Group]:
    for kind, pieces in groupby(told.pieces, _kind):
        if kind == "work":
            yield Group(kind, parts=tuple(_part(told, piece, project, bounds) for piece in pieces))
        else:
            paint = prose.typed if kind == "prompt" else prose.answer
            said = (piece for piece in pieces if isinstance(piece, Words))
            yield Group(kind, tuple(_painted(piece.text, bounds.words, paint) + _images(piece) for piece in said))


def _kind(piece: Piece) -> str:
    if isinstance(piece, Call) or piece.thinking or piece.by == "client":
        return "work"
    return "prompt" if piece.by == "person" else "answer"


def _part(told: Told, piece: Piece, project: str, bounds: _Bounds) -> Part:
    if isinstance(piece, Call):
        return _call(told, piece, project, bounds)
    if not piece.thinking and phrases.is_remark(piece.text):
        return Part("", one_line(piece.text, _ABOUT), (), "remark")
    paint = prose.answer if piece.thinking else prose.typed
    head, kind = ("Thinking", "thinking") if piece.thinking else ("Notice", "notice")
    return Part(head, one_line(piece.text, _ABOUT), (Block("", _painted(piece.text, bounds.words, paint)),), kind)


def _call(told: Told, call: Call, project: str, bounds: _Bounds) -> Part:
    about = phrases.place(told.about.get(call.ordinal, ""), project)
    outcome, wrong = phrases.outcome(call)
    return Part(
        head=phrases.tool(call.tool),
        about=one_line(about, _ABOUT),
        blocks=tuple(_block(block, bounds.output) for block in calls.blocks(call, about)),
        outcome=outcome,
        wrong=wrong,
        anchor=f"turn-{told.number}.{call.ordinal}",
    )


def _block(block: calls.Block, bound: Bound) -> Block:
    if block.short:
        return Block(block.name, escape(clean(block.text)), short=True)
    if block.language == "diff":
        return Block(block.name, _diff(block.text, bound))
    return Block(block.name, _pre(block.text, bound, block.language))


def _pre(text: str, bound: Bound, language: str) -> Markup:
    painted = _painted(text, bound, lambda part: code.highlighted(part, language))
    return Markup("<pre><code>{}</code></pre>").format(painted)


def _diff(text: str, bound: Bound) -> Markup:
    painted = _painted(text, bound, lambda part: code.diff(part.split("\n")))
    return Markup('<pre class="diff"><code>{}</code></pre>').format(painted)


def _painted(text: str, bound: Bound, paint: Paint) -> Markup:
    """The text, cut in the middle where it is too long, each part painted by itself."""
    found = cut(text, bound)
    if not found.note:
        return paint(found.head)
    note = Markup('\n<span class="left-out">{}</span>\n').format(f"… {found.note} …")
    return paint(found.head) + note + (paint(found.tail) if found.tail else Markup())


def _images(piece: Words) -> Markup:
    return Markup("<p>[{}]</p>").format(phrases.images(piece.images)) if piece.images else Markup()


def _branchings(family: Iterable[Relative]) -> tuple[list[Branching], int]:
    """The members with the lists around them, and how many are open at the end."""
    out: list[Branching] = []
    depth = 0
    for member in family:
        own = min(member.depth, _DEEPEST) + 1
        out.append(Branching(member, max(0, own - depth), max(0, depth - own)))
        depth = own
    return out, depth
