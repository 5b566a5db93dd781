"""The templates of the documents, filled in piece by piece. The only importer of Jinja.

Whatever a template writes has been made harmless, and in an HTML template also escaped: neither can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from sessgit.formats.template_files import FOLDER
from sessgit.formats.texts import clean_text

_PIECES_PER_CHUNK = 200
"""Pieces of a template that are written at once, because they are very short."""


def render(name: str, filters: Mapping[str, Callable[..., object]], **values: Any) -> Iterator[str]:
    """Yield the text of a template, piece by piece, so that a long one is never whole in memory."""
    environment = _template_environment().overlay()
    environment.filters = {**environment.filters, **filters}
    stream = environment.get_template(name).stream(**values)
    stream.enable_buffering(_PIECES_PER_CHUNK)
    yield from stream


class _CompiledTemplates(BytecodeCache):
    """The compiled templates of this process: an overlay would compile its own each time."""

    def __init__(self) -> None:
        self._code: dict[str, CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._code.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.code


@cache
def _template_environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        bytecode_cache=_CompiledTemplates(),
        autoescape=lambda name: bool(name and name.endswith(".html.j2")),
        undefined=StrictUndefined,
        finalize=_clean_value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _clean_value(value: Any) -> Any:
    return clean_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value
