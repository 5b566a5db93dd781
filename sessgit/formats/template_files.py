"""The folder of the templates and style sheets, which can be read without Jinja."""

from __future__ import annotations

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "templates"


@cache
def read_template_file(name: str) -> str:
    """Return the text of a file in the folder of templates."""
    return (FOLDER / name).read_text("utf-8")
