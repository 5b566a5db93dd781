"""What of a store holds values: objects, the files beside them, and where in conversations that is."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.agents.reader import opened
from sessgit.errors import ConflictError, SessgitError
from sessgit.model import ids
from sessgit.model.json_scan import decode_string, string_tokens
from sessgit.model.progress import Progress
from sessgit.redact import value_match
from sessgit.redact.value_match import ValueMatcher
from sessgit.store import layout, refs
from sessgit.store.layout import StorePaths
from sessgit.store.recorder import cursor
from sessgit.store.secrets import objects
from sessgit.store.store import Store

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
"""What nobody but a person changes: a value in there is theirs to take out."""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that holds a value: in which turns, and in which places, in words."""

    session: str
    turns: tuple[int, ...]
    places: tuple[str, ...]


@dataclass
class ScanResult:
    """All objects that hold a value, and beginnings of values that stand at the ends of strings."""

    hits: set[str] = field(default_factory=set)
    beginnings: set[str] = field(default_factory=set)
    objects: int = 0


def scan_objects(store: Path, matcher: ValueMatcher, values: Collection[str], progress: Progress) -> ScanResult:
    """Looks through all objects of the store, those too that no ref leads to."""
    seen = ScanResult()
    for one in objects.all_objects(store, progress):
        seen.objects += 1
        if matcher.holds(one.data):
            seen.hits.add(one.id)
        if values and one.kind == "blob":
            seen.beginnings |= value_match.unfinished_beginnings(one.data, values)
    return seen


def count_lines_apart(store: Path, matcher: ValueMatcher, values: Collection[str], progress: Progress) -> int:
    """How many long lines of values that have several stand somewhere without the others: those are values of their
    own."""
    lines = {line.strip() for value in values if "\n" in value.strip() for line in value.split("\n")}
    wanted = {json.dumps(line, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass") for line in lines}
    wanted = {line for line in wanted if len(line) >= _LONG_LINE}
    found = set[bytes]()
    for one in objects.all_objects(store, progress) if wanted else ():
        if one.kind == "blob" and any(line in one.data for line in wanted - found):
            left = value_match.clean_lines(one.data, matcher)[0]
            found |= {line for line in wanted if line in left}
    return len(found)


def find_matches(store: Path, config: Path, wanted: re.Pattern[str], progress: Progress) -> set[str]:
    """All that the expression matches in the strings and texts of a store, of what waits there to be recorded, of its
    logs and tags, and of the client's files; what it matches is never empty."""
    found = set[str]()
    for one in objects.all_objects(store, progress):
        if one.kind == "tree":
            continue
        for text in file_texts(one.data):
            found.update(match[0] for match in wanted.finditer(text) if match[0])
    for text in _texts_outside(store, config):
        # What is no UTF-8 stands there as marks of that, which nothing holds.
        found.update(match[0] for match in wanted.finditer(text) if match[0] and "\ufffd" not in match[0])
    return found


def _texts_outside(store: Path, config: Path) -> Iterator[str]:
    """The strings and texts of all that a purge changes or names besides objects."""
    own = StorePaths(store)
    logs = (own.log, own.log.with_name(f"{own.log.name}.1"), own.latest, own.journal)
    waiting = (*own.spool.glob("*"), *own.state.glob("*.json"), *own.state.glob("*.append"))
    for path in (*logs, *waiting, *all_client_files(config, own)):
        yield from _texts_of_file(path)
    for path in own.state.glob("*.append"):
        yield from file_texts(_intent_data(path))
    yield from (ref.removeprefix(layout.TAGS) for ref in refs.read_all(store, layout.TAGS))


def _texts_of_file(path: Path) -> Iterator[str]:
    """Those of a regular file of text, which is read in pieces of whole lines."""
    try:
        with opened(path) as source:
            rest = b""
            while (piece := source.file.read(_CHUNK_SIZE)) and b"\0" not in piece:
                whole, newline, rest = (rest + piece).rpartition(b"\n")
                yield from file_texts(whole) if newline else ()
            yield from file_texts(rest) if rest else ()
    except SessgitError:  # a link, a socket, or not ours to read
        return


def file_texts(data: bytes) -> Iterator[str]:
    """The strings of the lines of a file that are JSON, and its other lines; the whole of a file without such lines."""
    lines = data.split(b"\n")
    documents = [line for line in lines if line[:1] in (b"{", b"[", b'"') and value_match.is_json(line)]
    if not documents:
        yield data.decode("utf-8", "replace")
    for line in documents:
        for token in string_tokens(line, min_length=value_match.SHORTEST):
            text = decode_string(line[token.start : token.end])
            if text is not None:
                yield text


def sessions_with_value(store: Store, holds: Callable[[str], bool], hits: Collection[str]) -> list[SessionHit]:
    """The sessions whose branches hold a value now, and where; `holds` says of trees whether anything in them does."""
    found: dict[str, tuple[set[int], set[str]]] = {}
    for ref, tip in refs.read_all(store.path).items():
        space, name = layout.split_ref(ref)
        if space not in (layout.HEADS, layout.ARCHIVE) or ref != space + name:
            continue
        try:
            turns, places = _hits_of_commit(store, tip, holds, hits)
            for commit in store.repo.first_parents(tip):
                if commit.id in hits and store.message(commit.id).get("Session") == layout.session_of(name):
                    places.add("commit subjects")
        except SessgitError:
            continue  # what cannot be read is none of a session's
        if turns or places:
            known = found.setdefault(layout.session_of(name), (set(), set()))
            known[0].update(turns)
            known[1].update(places)
    return [SessionHit(name, tuple(sorted(t)), tuple(sorted(p))) for name, (t, p) in sorted(found.items())]


def _hits_of_commit(
    store: Store, commit: str, holds: Callable[[str], bool], hits: Collection[str]
) -> tuple[set[int], set[str]]:
    def held(entry: tuple[str, bool]) -> bool:
        return holds(entry[0]) if entry[1] else entry[0] in hits

    turns, places = set[int](), set[str]()
    for name, entry in store.repo.tree(store.commit(commit).tree).items():
        if not held(entry):
            continue
        if name != layout.TURNS:
            places.add(_PLACE_NAMES.get(name, "other files"))
            continue
        for group in filter(held, store.repo.tree(entry[0]).values()):
            for number, folder in store.repo.tree(group[0]).items():
                if held(folder) and number.isdigit():
                    turns.add(int(number))
                    parts = store.repo.tree(folder[0]).items()
                    places |= {_TURN_PLACE_NAMES.get(part, "other files") for part, inner in parts if held(inner)}
    return turns, places


def check_settings(store: Path, matcher: ValueMatcher) -> None:
    """Raises ConflictError where a file holds a value that only a person can say otherwise, or a session's id does."""
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
    """The regular files below a folder that hold a value, or whose names do; those below `leave` are passed over."""
    return (path for path in _files_below(folder, leave) if _name_or_content_holds(path, matcher))


def client_files(config: Path, beside: StorePaths, matcher: ValueMatcher) -> Iterator[Path]:
    """The client's files that hold a value, or whose names do."""
    return (path for path in all_client_files(config, beside) if _name_or_content_holds(path, matcher))


def all_client_files(config: Path, beside: StorePaths) -> Iterator[Path]:
    """The client's files but those of the store, with transcripts that were imported from elsewhere than its folder,
    and what lies in their folders."""
    yield from _files_below(config, [beside.store])
    if config.name.startswith("."):
        yield config.with_name(f"{config.name}.json")
    for name in sorted(path.stem for path in beside.state.glob("*.json")):
        known = cursor.load_cursor(beside, name) if ids.is_branch(name) else None
        path = Path(known.path) if known and known.path else None
        if path is not None and path.is_absolute() and not path.is_relative_to(config):
            yield path
            yield from _files_below(path.with_suffix(""))


def _files_below(folder: Path, leave: Iterable[Path] = ()) -> Iterator[Path]:
    left = {str(path) for path in leave}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if f"{top}/{name}" not in left)
        yield from (Path(top) / name for name in sorted(names))


def _name_or_content_holds(path: Path, matcher: ValueMatcher) -> bool:
    return matcher.holds(os.fsencode(path.name)) or file_holds(path, matcher)


def file_holds(path: Path, matcher: ValueMatcher) -> bool:
    """Whether a regular file holds a value. It is looked through in pieces, which overlap by more than a form has."""
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
    """How many objects there are, and all objects and files of the store that still hold a value."""
    seen = scan_objects(store, matcher, (), progress)
    found = [*(f"object {oid}" for oid in sorted(seen.hits))]
    # Of what lies there every object was read, and nothing else is left.
    found += [str(path.relative_to(store)) for path in files_with_value(store, matcher, [store / "objects"])]
    return seen.objects, found
