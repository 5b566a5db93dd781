"""A story as one HTML page that opens without a network and runs nothing.

Its content security policy forbids everything but its own style sheet, which is named by its hash. All text of the
transcript is escaped; folded parts open without a script.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from markupsafe import Markup

from sessgit import __version__
from sessgit.formats import markup, phrases, template
from sessgit.formats.template_files import read_template_file
from sessgit.formats.texts import Bound, cut_text, one_line, text_bounds
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.story import IndexEntry, Story, StoryTurn

PAGES = "conversations/"
"""The folder, next to the index of a project, that has the page NAME.html of each branch."""
_LONGEST_ABOUT = 200
_TYPES = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGODdh": "image/gif",
    "R0lGODlh": "image/gif",
    "UklGR": "image/webp",
}
"""The types of images that a browser may show, by their first bytes in base64."""


def render(
    story: Story, turns: Iterable[StoryTurn], *, full: bool = False, pages: Collection[str] = ()
) -> Iterator[str]:
    """Yield the page piece by piece; without `full` long texts are cut in the middle, and say so. `pages` are the
    branches that have a page in the same folder, to be linked; if there are any, the index above it is linked too."""
    values = phrases.page_values(story, turns)
    return _document("page.html.j2", _turn_filters(story.state.project, full=full), **values, pages=pages)


def render_index(project: str, families: Sequence[Sequence[IndexEntry]], pages: Collection[str]) -> Iterator[str]:
    """Yield the index of a project's conversations, which links those that have pages in the folder `PAGES`."""
    title = f"Conversations in {one_line(project, 200)}"
    values = {"title": title, "families": families, "pages": pages, "folder": PAGES}
    return _document("index.html.j2", phrases.FILTERS, **values)


def _document(name: str, filters: Mapping[str, Callable[..., object]], **values: object) -> Iterator[str]:
    style = read_template_file("turn.css") + read_template_file("page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return template.render(name, filters, **values, style=Markup(style), policy=policy, version=__version__)


def render_turn(turn: StoryTurn, project: str, image_address: Callable[[int], str]) -> str:
    """Return one turn as the page has it, but with its images, each from its address; they are numbered from 0 in the
    order of `turn_images`. Its style is the template file `turn.css`."""
    filters = _turn_filters(project, full=False)
    numbers = itertools.count()
    first = {id(piece): [next(numbers) for _ in piece.images] for piece in turn.pieces}
    filters["images"] = lambda piece: (
        _shown_images(piece, first[id(piece)], image_address) if id(piece) in first else _images_note(len(piece.images))
    )
    return "".join(template.render("turn.html.j2", filters, shown=turn))


def render_answer(text: str) -> str:
    """Return an answer as a turn has it."""
    return _paint(text, text_bounds(full=False)[0], markup.markdown_html)


def media_type(data: str) -> str:
    """Return the type of an image in base64 by its first bytes, or "" for all others, such as SVG, which can run
    scripts; what the transcript says of its type does not count."""
    return next((kind for start, kind in _TYPES.items() if data.startswith(start)), "")


def turn_images(pieces: Iterable[Piece]) -> list[str]:
    """Return the images of a turn, in base64."""
    return [image for piece in pieces for image in piece.images]


def _shown_images(piece: Piece, numbers: Sequence[int], address: Callable[[int], str]) -> Markup:
    """Return the images of a piece that a browser may show, and a note about others."""
    is_shown = [bool(media_type(image)) for image in piece.images]
    shown = (
        Markup('<a href="{0}" target="_blank"><img src="{0}" alt="Image {1}" loading="lazy"></a>').format(
            address(number), number + 1
        )
        for number in itertools.compress(numbers, is_shown)
    )
    paragraph = Markup('<p class="images">{}</p>').format(Markup(" ").join(shown)) if any(is_shown) else Markup()
    return paragraph + _images_note(is_shown.count(False))


def _images_note(number: int) -> Markup:
    return Markup("<p>[{}]</p>").format(phrases.images_note(number)) if number else Markup()


def _turn_filters(project: str, *, full: bool) -> dict[str, Callable[..., object]]:
    words, output = text_bounds(full=full)
    return {
        **phrases.FILTERS,
        "heading": phrases.turn_heading,
        "groups": lambda pieces: groupby(pieces, _piece_kind),
        "markdown": lambda text: _paint(text, words, markup.markdown_html),
        "typed": lambda text: _paint(text, words, markup.plain_html),
        "line": lambda text: one_line(text, _LONGEST_ABOUT),
        "place": lambda text: phrases.short_place(text, project),
        "tool": phrases.tool_name,
        "outcome": phrases.call_outcome,
        "blocks": phrases.call_blocks,
        "code": lambda block: _code(block, output),
        "is_remark": phrases.is_remark,
        "images": lambda piece: _images_note(len(piece.images)),
    }


def _piece_kind(piece: Piece) -> str:
    """Return what a piece is shown as: `work` is folded."""
    if isinstance(piece, Call) or piece.thinking or piece.by == "client":
        return "work"
    return "prompt" if piece.by == "person" else "answer"


def _code(block: phrases.CallBlock, bound: Bound) -> Markup:
    if block.language == "diff":
        diff = _paint(block.text, bound, lambda part: markup.highlight_diff(part.split("\n")))
        return Markup('<pre class="diff"><code>{}</code></pre>').format(diff)
    text = _paint(block.text, bound, lambda part: markup.highlight(part, block.language))
    return Markup("<pre><code>{}</code></pre>").format(text)


def _paint(text: str, bound: Bound, paint: Callable[[str], Markup]) -> Markup:
    """Return the text, cut in the middle if it is too long, each part painted by itself."""
    cut = cut_text(text, bound)
    if not cut.note:
        return paint(cut.head)
    note = Markup('\n<span class="left-out">{}</span>\n').format(f"… {cut.note} …")
    return paint(cut.head) + note + (paint(cut.tail) if cut.tail else Markup())
