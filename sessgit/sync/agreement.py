"""What a store and a remote last agreed on: which side has changed since, none of the two could tell alone.

A memory aid: without it a session that is live on one side is live, and a deletion elsewhere is looked at anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from sessgit.store.layout import StorePaths
from sessgit.store.store import write_private

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Agreement:
    """For each session whether both had it archived, each tombstone that was looked at by its session, and each tag
    that both had, by its `tag_key`, with its object."""

    archived: Mapping[str, bool] = field(default_factory=dict)
    stones: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def updated_with(
        self, archived: Mapping[str, bool], stones: Mapping[str, str], tags: Mapping[str, str]
    ) -> Agreement:
        """The same with what was agreed on since."""
        return Agreement({**self.archived, **archived}, {**self.stones, **stones}, {**self.tags, **tags})


def tag_key(name: str) -> str:
    """What a tag is remembered by: its words stay in the refs alone."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_agreement(beside: StorePaths, url: str) -> Agreement:
    """What was agreed with the remote at that address; nothing where that cannot be read."""
    try:
        document = json.loads(beside.agreement_file(url).read_bytes())
        if document["version"] != _VERSION:
            return Agreement()
        archived = {str(name): value is True for name, value in document["archived"].items()}
        stones, tags = ({str(k): str(v) for k, v in document[key].items()} for key in ("stones", "tags"))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Agreement()
    return Agreement(archived, stones, tags)


def save_agreement(beside: StorePaths, url: str, agreed: Agreement) -> None:
    """Keeps what was agreed with the remote at that URL in the place of what was kept before."""
    document = {
        "version": _VERSION,
        "archived": dict(agreed.archived),
        "stones": dict(agreed.stones),
        "tags": dict(agreed.tags),
    }
    data = json.dumps(document, sort_keys=True).encode()
    path = beside.agreement_file(url)
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        pass
    write_private(path, data)
