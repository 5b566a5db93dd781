"""Texts of a transcript as HTML: a model's Markdown, and what a person typed as plain text.

HTML in a text is escaped. Only links to the web and to mailboxes are links. Images become links, because opening the
page must not load anything. The only importer of markdown-it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from sessgit.formats import code
from sessgit.model.frozen import frozen

_SCHEMES = ("http://", "https://", "mailto:")
_DEEPEST_HEADING = 6
_HEADING_OFFSET = 2
"""The page's own headings have the first two levels."""

Environment = MutableMapping[str, Any]


def markdown_html(text: str) -> Markup:
    """Return the Markdown of a clean text as HTML."""
    parser = _markdown_parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_DEEPEST_HEADING, int(token.tag[1:]) + _HEADING_OFFSET)}"
        elif token.type in ("th_open", "td_open"):
            token.attrs = {}  # a style, which the page's content security policy forbids
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def plain_html(text: str) -> Markup:
    """Return a clean text as it was typed, with its fenced code as code."""
    out = Markup()
    for part, language in split_fences(text):
        if language is None:
            out += Markup('<div class="typed">{}</div>\n').format(part.strip("\n")) if part.strip() else ""
        else:
            out += _code_markup(part, language)
    return out


def split_fences(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the parts of a text: those outside of fences with None, those inside with the language or ``""``."""
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


@frozen
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
    """Yield the blocks of a Markdown text, in order; HTML is text."""
    for token in _markdown_parser().parse(text):
        if token.map:
            yield MarkdownBlock(token.type, token.tag, token.map[0], token.map[1], token.level, token.markup)


class _Renderer(RendererHTML):
    """As markdown-it's, but for links, images, code and tables."""

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

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Environment) -> str:
        return str(_code_markup(tokens[idx].content.removesuffix("\n"), code.fence_language(tokens[idx].info)))

    code_block = fence

    def table_open(self, *_: Any) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _code_markup(text: str, language: str) -> Markup:
    return Markup("<pre><code>{}</code></pre>\n").format(code.highlight(text, language))


@cache
def _markdown_parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, without HTML."""
    return MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])


@cache
def _fence_parser() -> MarkdownIt:
    return MarkdownIt("zero").enable("fence")
