"""What is never stored: secrets, found by the rules of their session, and purged values, found by the denylist.

The denylist holds keyed hashes of the values that were purged; a second file the commits that took the places of older
ones. Both are next to the repository and never leave the machine. Nobody can read a value out of the list; a reader who
has the store's key can check a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessgit.errors import StoreError
from sessgit.model import canonical
from sessgit.model.frozen import frozen
from sessgit.store.layout import StorePaths
from sessgit.store.private_files import write_private

if TYPE_CHECKING:
    from sessgit.redact.value_match import Fingerprint, ValueMatcher

_VERSION = 1
_UNREADABLE_HINT = "Restore it, or delete it and purge the values again."
_NO_KEY_HINT = "Without it, purged values cannot be recognized. Restore it, or create a new one: `sessgit doctor --fix`"
_PARSE_ERRORS = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)
_PAIR = re.compile(r"^([0-9a-f]{40}) ([0-9a-f]{40})$", re.MULTILINE)


@frozen
class DeniedValue:
    """A purged value by its id, eight hexadecimal digits; `time` is that of the purge, in RFC 3339."""

    id: str
    time: str
    fingerprints: tuple[Fingerprint, ...]

    @property
    def lost(self) -> bool:
        """Whether it is no longer denied, because the key that recognized it is gone."""
        return not self.fingerprints


def denied_values(paths: StorePaths) -> list[DeniedValue]:
    """Return all values, oldest first. Raises StoreError if the list cannot be read: it must not be ignored."""
    try:
        document = json.loads(paths.forbidden.read_bytes())
        if document["version"] != _VERSION:
            raise StoreError(f"{paths.forbidden} was written by a newer sessgit", "Install a newer sessgit.")
        return [_parse_value(value) for value in document["values"]]
    except FileNotFoundError:
        return []
    except _PARSE_ERRORS as error:
        raise StoreError(f"cannot read the list of purged values: {paths.forbidden}", _UNREADABLE_HINT) from error


def matcher(paths: StorePaths, known: Iterable[DeniedValue]) -> ValueMatcher:
    """Return the matcher that finds these values. Raises StoreError if the store's key cannot be read."""
    from sessgit.redact.value_match import ValueMatcher

    try:
        key = paths.key.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {paths.key}: {error.strerror or error}", _NO_KEY_HINT) from error
    return ValueMatcher(key, [fingerprint for value in known for fingerprint in value.fingerprints])


def value_id(paths: StorePaths, value: str) -> str:
    """Return the id that a value has in this store."""
    return matcher(paths, ()).fingerprints(value)[0].hash.hex()[:8]


def deny_values(paths: StorePaths, values: Iterable[str], now: float) -> list[DeniedValue]:
    """Add values to the list durably, and return their entries."""
    known = {value.id: value for value in denied_values(paths)}
    fingerprinter, denied = matcher(paths, ()), list[DeniedValue]()
    for text in values:
        fingerprints = tuple(fingerprinter.fingerprints(text))
        value = DeniedValue(fingerprints[0].hash.hex()[:8], canonical.rfc3339(now), fingerprints)
        denied.append(known.setdefault(value.id, value))
    _write_list(paths.forbidden, known.values())
    return denied


def allow_value(paths: StorePaths, value: DeniedValue) -> None:
    """Remove a value from the list, and from that of lost values."""
    for path, known in ((paths.forbidden_lost, lost_values(paths)), (paths.forbidden, denied_values(paths))):
        left = [other for other in known if other.id != value.id]
        if not left and path == paths.forbidden_lost:
            path.unlink(missing_ok=True)
        elif left != known:
            _write_list(path, left)


def lost_values(paths: StorePaths) -> list[DeniedValue]:
    """Return the values that are no longer denied because their key is gone, without fingerprints."""
    try:
        document = json.loads(paths.forbidden_lost.read_bytes())
        return [DeniedValue(str(value["id"]), str(value["time"]), ()) for value in document["values"]]
    except _PARSE_ERRORS:
        return []


def keep_without_fingerprints(paths: StorePaths) -> int:
    """Turn the list, which is useless without its key, into one of lost values; return their number."""
    values = lost_values(paths)
    with suppress(StoreError):
        values += denied_values(paths)
    _write_list(paths.forbidden_lost, values)
    paths.forbidden.unlink(missing_ok=True)
    return len(values)


def _write_list(path: Path, values: Iterable[DeniedValue]) -> None:
    document = {"version": _VERSION, "values": [_value_json(value) for value in values]}
    write_private(path, json.dumps(document).encode(), durable=True)


def _value_json(value: DeniedValue) -> dict[str, Any]:
    forms = [
        {"length": form.length, "tail": form.tail.decode("ascii"), "hash": form.hash.hex(), "base64": form.is_code}
        | ({"lines": True} if form.has_lines else {})
        | ({"head": form.head.decode("ascii")} if form.head else {})
        for form in value.fingerprints
    ]
    return {"id": value.id, "time": value.time, "forms": forms}


def _parse_value(document: dict[str, Any]) -> DeniedValue:
    from sessgit.redact.value_match import Fingerprint

    fingerprints = tuple(
        Fingerprint(
            int(form["length"]), form["tail"].encode("ascii"), bytes.fromhex(form["hash"]), form["base64"] is True,
            form.get("lines") is True, form.get("head", "").encode("ascii"),
        )
        for form in document["forms"]
    )  # fmt: skip
    if not all(0 < len(form.tail) <= form.length for form in fingerprints):
        raise ValueError("a form without an end")
    return DeniedValue(str(document["id"]), str(document["time"]), fingerprints)


# Rewritten commits


def load_map(paths: StorePaths) -> dict[str, str]:
    """Return the commit that replaces each purged one now, by the ids of the purged ones."""
    try:
        pairs = dict(_PAIR.findall(paths.rewritten.read_text("ascii", "replace")))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {paths.rewritten}: {error.strerror or error}") from error
    newest = dict[str, str]()
    for old, first in pairs.items():
        new, passed = first, {old}
        while new in pairs and new not in passed:
            passed.add(new)
            new = pairs[new]
        newest[old] = new
    return newest


def add_commits(paths: StorePaths, commits: Mapping[str, str]) -> None:
    """Add rewritten commits durably."""
    if commits:
        _write_map(paths, {**load_map(paths), **commits})


def forget_existing(paths: StorePaths, existing: Collection[str]) -> dict[str, str]:
    """Forget the rewritten commits that still exist, and return the others as `load_map` does."""
    known = load_map(paths)
    kept = {old: new for old, new in known.items() if old not in existing}
    if kept != known:
        _write_map(paths, kept)
    return kept


def _write_map(paths: StorePaths, pairs: Mapping[str, str]) -> None:
    lines = "".join(f"{old} {new}\n" for old, new in pairs.items())
    write_private(paths.rewritten, lines.encode("ascii"), durable=True)


# Redaction of what is about to be stored

Cleaner = Callable[[bytes], tuple[bytes, int]]
"""From bytes to those that are stored, and how many parts were replaced; the same object if none was."""


def line_cleaner(paths: StorePaths, rules: Mapping[str, int], protected: Collection[str]) -> Cleaner:
    """Return the cleaner of lines, and of files that may be JSON, in a session with these rules; values of `protected`
    keys stay."""
    return _cleaner(paths, rules, protected)


def text_cleaner(paths: StorePaths, rules: Mapping[str, int]) -> Cleaner:
    """Return the cleaner of plain texts in a session with these rules."""
    return _cleaner(paths, rules, None)


def _cleaner(paths: StorePaths, rules: Mapping[str, int], protected: Collection[str] | None) -> Cleaner:
    """Return a cleaner of lines with these protected keys, or of texts."""
    known = denied_values(paths)
    purged = matcher(paths, known) if known else None
    is_redacted = bool(rules.get("redact"))

    # The rules are loaded for the first text, and the replacing modules for a match: the latter takes as long as
    # recording a turn.
    def clean(data: bytes) -> tuple[bytes, int]:
        count = 0
        if is_redacted:
            from sessgit.redact.engine import scan

            hits = scan(data)
            if hits is not None:
                from sessgit.redact import replacer

                if protected is None:
                    data, count = replacer.redact_text(data, hits)
                else:
                    data, count = replacer.redact_line(data, hits, protected)
        if purged is not None:
            from sessgit.redact import value_match

            replace = value_match.clean_text if protected is None else value_match.clean_lines
            data, replaced = replace(data, purged)
            count += replaced
        return data, count

    return clean
