"""Which images of a transcript a browser may show."""

from __future__ import annotations

_TYPES = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGODdh": "image/gif",
    "R0lGODlh": "image/gif",
    "UklGR": "image/webp",
}


def media_type(data: str) -> str:
    """Return the type of an image in base64 by its first bytes, or "" for all others, such as SVG, which can run
    scripts; what the transcript says of its type does not count."""
    return next((kind for start, kind in _TYPES.items() if data.startswith(start)), "")
