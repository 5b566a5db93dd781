"""Words of a transcript as HTML: Markdown where a model wrote it, plain text where a person typed it.

No HTML of the text survives as such; a link leads to the web or to a mailbox or is no link; an image is a link,
for a page that is opened shall ask nothing of anybody. The only importer of markdown-it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape

from sessgit.formats import code

_SCHEMES = ("http://", "https://", "mailto:")
_DEEPEST_HEADING = 6
_HEADING_OFFSET = 2
"""The page's own headings have the first two levels."""

Environment = MutableMapping[str, Any]


def markdown_html(text: str) -> Markup:
    """The Markdown of a harmless text as HTML."""
    return Markup(_markdown_parser().render(text))


def plain_html(text: str) -> Markup:
    """A harmless text as it was typed, its fenced code as code."""
    out = Markup()
    for part, language in split_fences(text):
        if language is None:
            out += Markup('<div class="typed">{}</div>\n').format(part.strip("\n")) if part.strip() else ""
        else:
            out += _code_markup(part, language)
    return out


def split_fences(text: str) -> Iterator[tuple[str, str | None]]:
    """The text in pieces: what stands between fences with None, what a fence holds with its language or ``""``."""
    lines = text.split("\n")
    at = 0
    for token in _fence_parser().parse(text) if "```" in text or "~~~" in text else ():
        if token.type == "fence" and token.map:
            first, end = token.map
            if first > at:
                yield "\n".join(lines[at:first]), None
            yield token.content.removesuffix("\n"), code.fence_language(token.info)
            at = end
    if at < len(lines):
        yield "\n".join(lines[at:]), None


@dataclass(frozen=True, slots=True)
class MarkdownBlock:
    """A block of Markdown: its lines from `first` up to and without `end`, how deep it is, and what marks it.

    `kind` is markdown-it's name of it, `tag` that of its element.
    """

    kind: str
    tag: str
    first: int
    end: int
    level: int
    mark: str


def markdown_blocks(text: str) -> Iterator[MarkdownBlock]:
    """The blocks that the Markdown of a text has, in order, where no HTML is known."""
    for token in _markdown_parser().parse(text):
        if token.map:
            yield MarkdownBlock(token.type, token.tag, token.map[0], token.map[1], token.level, token.markup)


class _Renderer(RendererHTML):
    """As markdown-it's, but for links, images, headings and code."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        href = str(tokens[idx].attrGet("href") or "")
        allowed = href.lower().startswith(_SCHEMES)
        env.setdefault("links", []).append("a" if allowed else "span")
        if allowed:
            return str(Markup('<a href="{}" rel="noopener noreferrer nofollow">').format(href))
        return str(Markup('<span class="place" title="{}">').format(href))

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return f"</{env['links'].pop()}>"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        token = tokens[idx]
        source = str(token.attrGet("src") or "")
        text = self.renderInlineAsText(token.children or (), options, env) or source
        if env.get("links") or not source.lower().startswith(_SCHEMES):
            return str(Markup('<span class="place" title="{}">[image: {}]</span>').format(source, text))
        link = Markup('<a href="{}" rel="noopener noreferrer nofollow">[image: {}]</a>')
        return str(link.format(source, text))

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return f"<{_demoted_tag(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return f"</{_demoted_tag(tokens[idx])}>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return str(_code_markup(tokens[idx].content.removesuffix("\n"), code.fence_language(tokens[idx].info)))

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return str(_code_markup(tokens[idx].content.removesuffix("\n"), ""))

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return "<th>"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return "<td>"


def _code_markup(text: str, language: str) -> Markup:
    return Markup("<pre><code>{}</code></pre>\n").format(code.highlight(text, language))


def _demoted_tag(heading: Token) -> str:
    level = escape(heading.tag)[1:]
    return f"h{min(_DEEPEST_HEADING, int(level) + _HEADING_OFFSET)}"


@cache
def _markdown_parser() -> MarkdownIt:
    """CommonMark with tables and struck text; a style attribute, which a table would have, is never written."""
    return MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])


@cache
def _fence_parser() -> MarkdownIt:
    return MarkdownIt("zero").enable("fence")
