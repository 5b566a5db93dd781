"""Code as HTML with colours: tokens in spans of a few classes, all text escaped. The only importer of Pygments."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound

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

_CSS_CLASSES = (
    (Token.Comment, "c"),
    (Token.Keyword, "k"),
    (Token.Operator.Word, "k"),
    (Token.Literal.String, "s"),
    (Token.Literal.Number, "m"),
    (Token.Name.Function, "f"),
    (Token.Name.Class, "f"),
    (Token.Name.Tag, "k"),
    (Token.Name.Attribute, "a"),
    (Token.Name.Decorator, "a"),
    (Token.Name.Builtin, "b"),
    (Token.Name.Constant, "b"),
    (Token.Generic.Deleted, "d"),
    (Token.Generic.Inserted, "i"),
    (Token.Generic.Heading, "f"),
    (Token.Generic.Subheading, "f"),
)


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
    kinds = {"+": "ins", "-": "del", "@": "hunk"}
    out = Markup()
    for line in lines:
        kind = kinds.get(line[:1], "")
        out += Markup('<span class="{}">{}</span>\n').format(kind, line) if kind else escape(line) + "\n"
    return out


def fence_language(info: str) -> str:
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
    return next((name for parent, name in _CSS_CLASSES if kind in parent), "")
