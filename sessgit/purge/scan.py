"""The parts of a store that hold values: objects, files next to the repository, and where in conversations."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from sessgit import agents
from sessgit.agents.line import opened
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.model.json_strings import decode_string, string_tokens
from sessgit.model.progress import Progress
from sessgit.redact import value_match
from sessgit.redact.replacer import Secret, secrets_of_line
from sessgit.redact.value_match import LONGEST, SHORTEST, ValueMatcher
from sessgit.redact.views import is_json
from sessgit.store import layout, object_scan, recorder_state, refs, secret_filter
from sessgit.store.context import Homes
from sessgit.store.layout import StorePaths
from sessgit.store.objects import Entry
from sessgit.store.store import Store

T = TypeVar("T")
_CHUNK_SIZE = 16 << 20
_LONG_LINE = 24
_TURN_PLACE_NAMES = {
    layout.BEFORE: "messages", layout.BODY: "messages", layout.TEXTS: "messages", layout.CELLS: "messages",
    layout.SUBAGENTS: "subagents", layout.FILES: "large tool results",
}  # fmt: skip
_PLACE_NAMES = {
    layout.TAIL: "messages", layout.LIVE: "plans and todos", layout.PAD: "the scratchpad", layout.KEPT: "kept files",
    layout.STATE: "its details",
}  # fmt: skip
_STORE_FILES = ("config", "config.toml", "hook", "key", "HEAD")
"""Files that only the user changes, so a value in there is theirs to remove."""


@frozen
class SessionHit:
    """A session that holds a value: in which turns, and in which places, as a person calls them."""

    session: str
    turns: tuple[int, ...]
    places: tuple[str, ...]


@dataclass
class _ScanResult:
    """The objects that hold a value, the beginnings of values with which strings end, and the number of objects."""

    hits: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)
    objects: int = 0


def scan_objects(store: Path, matcher: ValueMatcher, values: Collection[str], progress: Progress) -> _ScanResult:
    """Return what of the values all objects of the store hold, also those that no ref leads to."""
    seen = _ScanResult()
    for one in object_scan.all_objects(store, progress):
        seen.objects += 1
        if matcher.holds(one.data):
            seen.hits.add(one.id)
        if values and one.kind == "blob":
            seen.beginnings |= value_match.unfinished_beginnings(one.data, values)
    return seen


def count_lines_apart(store: Path, matcher: ValueMatcher, values: Collection[str], progress: Progress) -> int:
    """Return how many long lines of values with several lines occur somewhere without the others: those are values of
    their own."""
    lines = {line.strip() for value in values if "\n" in value.strip() for line in value.split("\n")}
    pattern = {json.dumps(line, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass") for line in lines}
    pattern = {line for line in pattern if len(line) >= _LONG_LINE}
    apart = set[bytes]()
    for one in object_scan.all_objects(store, progress) if pattern else ():
        if one.kind == "blob" and any(line in one.data for line in pattern - apart):
            left = value_match.clean_lines(one.data, matcher)[0]
            apart |= {line for line in pattern if line in left}
    return len(apart)


def find_matches(store: Path, homes: Homes, pattern: re.Pattern[str], progress: Progress) -> set[str]:
    """Return what the expression matches in the strings and texts of a store, of its waiting events, logs and tags, and
    of the client's files, without empty matches."""
    matches = set[str]()
    for one in object_scan.all_objects(store, progress):
        if one.kind == "tree":
            continue
        for text in _file_texts(one.data):
            matches.update(match[0] for match in pattern.finditer(text) if match[0])
    for text in _texts_outside(store, homes):
        # Bytes that are not UTF-8 are read as replacement characters, which no file holds.
        matches.update(match[0] for match in pattern.finditer(text) if match[0] and "\ufffd" not in match[0])
    return matches


def _texts_outside(store: Path, homes: Homes) -> Iterator[str]:
    """Yield the strings and texts of all that a purge changes or names besides objects."""
    own = StorePaths(store)
    logs = (own.log, own.log.with_name(f"{own.log.name}.1"), own.latest, own.journal)
    waiting = (*own.spool.glob("*"), *own.state.glob("*.json"), *own.state.glob("*.append"), *own.state.glob("*.cells"))
    for path in (*logs, *waiting, *all_client_files(homes, own)):
        yield from _texts_of_file(path)
    for path in own.state.glob("*.append"):
        yield from _file_texts(_intent_data(path))
    yield from (ref.removeprefix(layout.TAGS) for ref in refs.read_all(store, layout.TAGS))


def _texts_of_file(path: Path) -> Iterator[str]:
    """Yield those of a regular file of text, which is read in pieces of whole lines."""
    try:
        with opened(path) as source:
            rest = b""
            while (piece := source.file.read(_CHUNK_SIZE)) and b"\0" not in piece:
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                yield from _file_texts(whole) if newline else ()
            yield from _file_texts(rest) if rest else ()
    except SessgitError:  # a link, a socket, or not ours to read
        return


def _file_texts(data: bytes) -> Iterator[str]:
    """Yield the strings of the lines of a file that are JSON; the whole text of a file without such lines."""
    lines = data.split(b"\n")
    documents = [line for line in lines if line[:1] in (b"{", b"[", b'"') and is_json(line)]
    if not documents:
        yield data.decode("utf-8", "replace")
    for line in documents:
        for token in string_tokens(line, min_length=value_match.SHORTEST):
            text = decode_string(line[token.start : token.end])
            if text is not None:
                yield text


def _places_with_hits(store: Store, tip: str, hits: Callable[[Entry], T]) -> Iterator[tuple[int, str, T]]:
    """Yield the turn, 0 for none, and the file or folder of each part of a commit with hits, and the hits; `hits`
    returns those in and below an entry of a tree."""
    for name, entry in store.repo.tree(store.commit(tip).tree).items():
        if name != layout.TURNS:
            if inside := hits(entry):
                yield 0, name, inside
            continue
        for group in filter(hits, store.repo.tree(entry[0]).values()):
            for number, folder in store.repo.tree(group[0]).items():
                if number.isdigit() and hits(folder):
                    for part, inner in store.repo.tree(folder[0]).items():
                        if inside := hits(inner):
                            yield int(number), part, inside


def sessions_with_value(store: Store, holds: Callable[[str], bool], hits: Collection[str]) -> list[SessionHit]:
    """Return the sessions whose branches hold a value now, and where; `holds` returns whether anything in a tree
    does."""
    sessions: dict[str, tuple[set[int], set[str]]] = {}
    for name, (tip, _) in refs.branches(store.path).items():
        try:
            parts = list(_places_with_hits(store, tip, lambda entry: holds(entry[0]) if entry[1] else entry[0] in hits))
            places = {(_TURN_PLACE_NAMES if turn else _PLACE_NAMES).get(part, "other files") for turn, part, _ in parts}
            for commit in store.repo.first_parents(tip):
                if commit.id in hits and store.message(commit.id).get("Session") == layout.session_of(name):
                    places.add("commit subjects")
        except SessgitError:
            continue  # what cannot be read is none of a session's
        if places:
            known = sessions.setdefault(layout.session_of(name), (set(), set()))
            known[0].update(turn for turn, _, _ in parts if turn)
            known[1].update(places)
    return [SessionHit(name, tuple(sorted(t)), tuple(sorted(p))) for name, (t, p) in sorted(sessions.items())]


def check_settings(store: Path, matcher: ValueMatcher) -> None:
    """Raise ConflictError if a file that only the user changes holds a value, or a session's id does."""
    for name in _STORE_FILES:
        path = store / name
        if path.is_file() and matcher.holds(path.read_bytes()):
            what = "the address of a remote" if name == "config" else f"the store's file {name}"
            hint = (
                "Change the address: `sessgit remote remove`, then `sessgit remote add`."
                if name == "config"
                else "Remove it first."
            )
            raise ConflictError(f"{what} holds the value", f"Nothing was changed. {hint}")
    for path in StorePaths(store).state.glob("*.append"):
        try:
            noted = path.read_bytes()
        except FileNotFoundError:  # it was just done
            continue
        if matcher.holds(noted) or matcher.holds(_intent_data(path)):
            what, first = f"a merge into {path.stem[:8]} was interrupted", "Run that merge again first."
            if refs.read(store, layout.tombstone_ref(path.stem)):
                what, first = f"{what} by its deletion", "Run `sessgit undo` or `sessgit gc --prune` first."
            raise ConflictError(f"{what}, and its lines hold the value", f"Nothing was changed. {first}")
    for ref in refs.read_all(store):
        space, name = layout.split_ref(ref)
        if space in (layout.HEADS, layout.ARCHIVE, layout.DELETED) and matcher.holds(name.encode()):
            raise ConflictError(
                "the value is part of the id of a conversation",
                "Nothing was changed. To remove the conversation: `sessgit delete`, then `sessgit gc --prune`",
            )


def _intent_data(path: Path) -> bytes:
    try:
        return base64.b64decode(json.loads(path.read_bytes())["data"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return b""


def files_with_value(folder: Path, matcher: ValueMatcher, leave: Iterable[Path] = ()) -> Iterator[Path]:
    """Return the regular files below a folder that hold a value, or whose names do, without those below `leave`."""
    return (path for path in _files_below(folder, leave) if file_holds(path, matcher))


def all_client_files(homes: Homes, paths: StorePaths) -> Iterator[Path]:
    """Yield the client's files without those of the store, then transcripts that were imported from other folders, with
    their sidecar files."""
    for folder in homes.folders.values():
        yield from _files_below(folder, [paths.store])
        if folder.name.startswith("."):
            yield folder.with_name(f"{folder.name}.json")
    for name in sorted(path.stem for path in paths.state.glob("*.json")):
        known = recorder_state.load_cursor(paths, name) if ids.is_branch(name) else None
        path = Path(known.path) if known and known.path else None
        if path is not None and path.is_absolute() and not homes.hold(path):
            yield path
            yield from _files_below(path.with_suffix(""))


def _files_below(folder: Path, leave: Iterable[Path] = ()) -> Iterator[Path]:
    left = {str(path) for path in leave}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if f"{top}/{name}" not in left)
        yield from (Path(top) / name for name in sorted(names))


def file_holds(path: Path, matcher: ValueMatcher) -> bool:
    """Return whether the name of a file holds a value, or a regular file does. It is read in pieces that overlap by
    more than a form."""
    if matcher.holds(os.fsencode(path.name)):
        return True
    try:
        with opened(path) as source:
            rest = b""
            while piece := source.file.read(_CHUNK_SIZE):
                data = rest + piece
                if matcher.holds(data):
                    return True
                rest = data[-16 * value_match.LONGEST :]
    except SessgitError:  # a link, a socket, or not ours to read
        return False
    return False


def find_remaining(store: Path, matcher: ValueMatcher, progress: Progress) -> tuple[int, list[str]]:
    """Return the number of objects, and all objects and files of the store that still hold a value."""
    seen = scan_objects(store, matcher, (), progress)
    # In `objects` there is nothing else than the objects.
    files = files_with_value(store, matcher, [store / "objects"])
    remaining = [f"object {oid}" for oid in sorted(seen.hits)]
    return seen.objects, [*remaining, *(str(path.relative_to(store)) for path in files)]


_ENCODED_TEXT = re.compile(
    rb"(?:[A-Za-z0-9+/_-]{24,}\r?\n)*[A-Za-z0-9+/_-]{24,}(?:\r?\n[A-Za-z0-9+/_-]{1,76})?(?![A-Za-z0-9+/_-])={0,2}"
)
_TEXT = re.compile(rb"[\t\r\n -~]{16,}")
_TO_STANDARD_BASE64 = bytes.maketrans(b"-_", b"+/")
_MOST_PLACES = 20


# Likely secrets, by the current rules: each has an id, and none is ever shown


@frozen
class LikelySecret:
    """A likely secret. `id` is the same in this store for ever, `kind` is that of its rule, `length` is in characters,
    `count` is the number of lines with it, `places` are the first addresses; `value` must never be shown."""

    id: str
    kind: str
    length: int
    count: int
    value: str
    places: tuple[str, ...]


def find_likely_secrets(store: Store, progress: Progress) -> list[LikelySecret]:
    """Return what the current rules would replace in the store, also in base64 and hex, the most frequent first.

    Of what was recorded with these rules, nothing else is left: it was replaced then.
    """
    secrets: dict[str, tuple[str, int]] = {}
    blobs: dict[str, set[str]] = {}
    for one in object_scan.all_objects(store.path, progress):
        if one.kind != "blob":
            continue
        for secret in (*_secrets_in_text(one.data), *_secrets_in_encoded(one.data)):
            try:
                value = secret.value.decode("utf-8")
            except UnicodeDecodeError:
                continue
            if SHORTEST <= len(secret.value) <= LONGEST:
                kind, count = secrets.get(value, (secret.kind, 0))
                secrets[value] = kind, count + 1
                blobs.setdefault(one.id, set()).add(value)
    places = _places_by_value(store, blobs) if secrets else {}
    every = [
        LikelySecret(
            secret_filter.value_id(store.paths, value),
            kind,
            len(value),
            count,
            value,
            tuple(places.get(value, ()))[:_MOST_PLACES],
        )
        for value, (kind, count) in secrets.items()
    ]
    return sorted(every, key=lambda one: (-one.count, one.id))


def _secrets_in_text(data: bytes) -> Iterator[Secret]:
    return (secret for line in data.split(b"\n") for secret in secrets_of_line(line, _protected()))


def _secrets_in_encoded(data: bytes) -> Iterator[Secret]:
    """Yield the secrets in base64 or hex in the strings and texts of a file, also if it is broken into lines."""
    for text in _file_texts(data):
        for match in _ENCODED_TEXT.finditer(text.encode("utf-8", "surrogatepass")):
            code = b"".join(match[0].split())
            for plain in (_from_hex(code), _from_base64(code)):
                for piece in _TEXT.findall(plain):
                    yield from secrets_of_line(piece, _protected())


def _from_base64(code: bytes) -> bytes:
    whole = code.rstrip(b"=").translate(_TO_STANDARD_BASE64)
    whole = whole[: len(whole) - (len(whole) % 4 == 1)]
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def _from_hex(code: bytes) -> bytes:
    try:
        return bytes.fromhex(code.decode("ascii"))
    except ValueError:
        return b""


def _places_by_value(store: Store, values_of_blobs: dict[str, set[str]]) -> dict[str, dict[str, None]]:
    """Return for each value the addresses that hold it now, those of whole conversations before their rewound
    branches."""
    addresses: dict[str, dict[str, None]] = {}
    known: dict[str, frozenset[str]] = {}

    def values_in(entry: Entry) -> frozenset[str]:
        oid, is_tree = entry
        if not is_tree:
            return frozenset(values_of_blobs.get(oid, ()))
        if oid not in known:
            known[oid] = frozenset[str]().union(*map(values_in, store.repo.tree(oid).values()))
        return known[oid]

    for name, (tip, _) in sorted(refs.branches(store.path).items(), key=lambda one: "." in one[0]):
        with suppress(SessgitError, ValueError):  # what cannot be read has no address
            for turn, _, values in sorted(_places_with_hits(store, tip, values_in), key=lambda place: not place[0]):
                for value in values:
                    known_places = addresses.setdefault(value, {})
                    # Most that is said of a session repeats its turns.
                    if turn or not any(one.startswith(f"{name}@") for one in known_places):
                        known_places[f"{name}@{turn}" if turn else name] = None
    return addresses


@cache
def _protected() -> frozenset[str]:
    """Return the keys whose values no rule replaces, of all agents."""
    return frozenset().union(*(agent.protected_keys for agent in agents.every()))
