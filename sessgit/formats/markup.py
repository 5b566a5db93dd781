"""Texts of a transcript as HTML: a model's Markdown, what a person typed as plain text, and code with colours.

HTML in a text is escaped. Only links to the web and to mailboxes are links. Images become links, because opening the
page must not load anything. Code has tokens in spans of a few classes. The only importer of markdown-it and Pygments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup, escape
from pygments import token as kinds
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from sessgit.model.frozen import frozen

_SCHEMES = ("http://", "https://", "mailto:")
_DEEPEST_HEADING = 6
_HEADING_OFFSET = 2
"""The page's own headings have the first two levels."""

Environment = MutableMapping[str, Any]
_LONGEST_TEXT = 40_000
"""Longer texts get no colours: a text can be made to keep a lexer busy."""

_LANGUAGES = {
    "bash": "sh shell zsh console shell-session", "c": "h", "cpp": "c++ cc cxx hpp hh", "csharp": "cs c#", "css": "",
    "diff": "patch", "docker": "dockerfile", "elixir": "ex exs", "erlang": "erl hrl", "go": "golang", "graphql": "gql",
    "haskell": "hs", "html": "htm vue svelte", "ini": "cfg conf properties editorconfig", "java": "",
    "javascript": "js jsx mjs cjs node", "json": "jsonc jsonl json5", "kotlin": "kt kts", "lua": "",
    "make": "makefile mk", "nix": "", "ocaml": "ml mli", "perl": "pl pm", "php": "", "powershell": "ps1 pwsh",
    "protobuf": "proto", "python": "py python3 py3 pyi", "r": "", "ruby": "rb", "rust": "rs", "scala": "", "scss": "",
    "sql": "psql sqlite mysql", "swift": "", "terraform": "tf hcl", "toml": "", "typescript": "ts tsx mts cts",
    "xml": "svg xhtml plist", "yaml": "yml", "zig": "",
}  # fmt: skip
_NAME_BY_ALIAS = {alias: name for name, aliases in _LANGUAGES.items() for alias in (name, *aliases.split())}

_CSS_CLASSES = {
    "c": (kinds.Comment,),
    "k": (kinds.Keyword, kinds.Operator.Word, kinds.Name.Tag),
    "s": (kinds.Literal.String,),
    "m": (kinds.Literal.Number,),
    "f": (kinds.Name.Function, kinds.Name.Class, kinds.Generic.Heading, kinds.Generic.Subheading),
    "a": (kinds.Name.Attribute, kinds.Name.Decorator),
    "b": (kinds.Name.Builtin, kinds.Name.Constant),
    "d": (kinds.Generic.Deleted,),
    "i": (kinds.Generic.Inserted,),
}


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
            yield token.content.removesuffix("\n"), _fence_language(token.info)
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
        return str(_code_markup(tokens[idx].content.removesuffix("\n"), _fence_language(tokens[idx].info)))

    code_block = fence

    def table_open(self, *_: Any) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, *_: Any) -> str:
        return "</table></div>\n"


def _code_markup(text: str, language: str) -> Markup:
    return Markup("<pre><code>{}</code></pre>\n").format(highlight(text, language))


@cache
def _markdown_parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, without HTML."""
    return MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])


@cache
def _fence_parser() -> MarkdownIt:
    return MarkdownIt("zero").enable("fence")


# Code


def language_of(path: str) -> str:
    """Return the language of a file by its name, or ``""``."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    return _NAME_BY_ALIAS.get(name) or _NAME_BY_ALIAS.get(name.rpartition(".")[2], "")


def highlight(text: str, language: str) -> Markup:
    """Return the text as escaped HTML; with colours if its language is known and it is not too long."""
    lexer = _find_lexer(_NAME_BY_ALIAS.get(language.strip().lower(), "")) if len(text) <= _LONGEST_TEXT else None
    if lexer is None:
        return escape(text)
    # Many rules of lexers end with a newline, so the text gets one for the time being.
    tokens = lexer.get_tokens(f"{text}\n")
    pieces = [(kind, "".join(value for _, value in same)) for kind, same in groupby(tokens, lambda t: _css_class(t[0]))]
    pieces[-1] = (pieces[-1][0], pieces[-1][1].removesuffix("\n"))
    return Markup("").join(
        Markup('<span class="{}">{}</span>').format(*piece) if piece[0] else piece[1] for piece in pieces
    )


def highlight_diff(lines: tuple[str, ...] | list[str]) -> Markup:
    """Return the lines of a diff as HTML, with classes for added and removed lines and for hunks."""
    classes = {"+": "ins", "-": "del", "@": "hunk"}
    out = Markup()
    for line in lines:
        kind = classes.get(line[:1], "")
        out += Markup('<span class="{}">{}</span>\n').format(kind, line) if kind else escape(line) + "\n"
    return out


def _fence_language(info: str) -> str:
    """Return the language name behind a fence if it is safe in a document, else ``""``."""
    word = info.strip().split(maxsplit=1)[0].lower() if info.strip() else ""
    return word if re.fullmatch(r"[a-z0-9+#_.-]{1,20}", word) else ""


@lru_cache(maxsize=64)
def _find_lexer(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _css_class(kind: Any) -> str:
    return next((name for name, parents in _CSS_CLASSES.items() if any(kind in parent for parent in parents)), "")
