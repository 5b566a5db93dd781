"""The templates of the documents, filled in piece by piece. The only importer of Jinja.

Whatever a template writes has been made harmless, and in an HTML template also escaped: neither can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sessgit.formats.texts import clean_text

_FOLDER = Path(__file__).parent / "templates"
_PIECES_PER_CHUNK = 200
"""Pieces of a template that are written at once, because they are very short."""


def render(name: str, filters: dict[str, Callable[..., object]], **values: Any) -> Iterator[str]:
    """Yield the text of a template, piece by piece, so that a long one is never whole in memory."""
    environment = _template_environment().overlay()
    environment.filters = {**environment.filters, **filters}
    stream = environment.get_template(name).stream(**values)
    stream.enable_buffering(_PIECES_PER_CHUNK)
    yield from stream


@cache
def read_template_file(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return (_FOLDER / name).read_text("utf-8")


@cache
def _template_environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),
        undefined=StrictUndefined,
        finalize=_clean_value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _clean_value(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value
