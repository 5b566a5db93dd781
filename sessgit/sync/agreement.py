"""What a store and a remote last agreed on: it tells which side has changed since.

The file is a cache: without it, a session that is live on one side is live, and a deletion is examined again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from typing import Literal

from sessgit.model import stored_fields
from sessgit.model.frozen import frozen
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private


@frozen
class Agreement:
    """The file state/remote-<16>.json: what store and remote last agreed on. Without it, nothing is agreed on."""

    archived: dict[str, bool] = field(default_factory=dict)
    """By session whether it was archived on both sides."""
    stones: dict[str, str] = field(default_factory=dict)
    """By session the tombstone that was considered."""
    tags: dict[str, str] = field(default_factory=dict)
    """By the first 16 hex digits of the SHA-256 of a tag's name its commit."""
    version: Literal[1] = 1


def tag_key(name: str) -> str:
    """Return the key of a tag: its name is stored nowhere but in the refs."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_agreement(paths: StorePaths, url: str) -> Agreement:
    """Return what was agreed with the remote at a URL; nothing if that cannot be read."""
    try:
        return stored_fields.load(Agreement, json.loads(paths.agreement_file(url).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        return Agreement()


def add_agreement(paths: StorePaths, url: str, agreed: Agreement) -> None:
    """Add to what was agreed with the remote at a URL."""
    before = load_agreement(paths, url)
    after = Agreement(before.archived | agreed.archived, before.stones | agreed.stones, before.tags | agreed.tags)
    path = paths.agreement_file(url)
    if after != before or not path.exists():
        write_private(path, stored_fields.dumps(after))
