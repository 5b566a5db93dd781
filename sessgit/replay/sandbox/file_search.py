"""Files found by name or content, as the client's tools find them.

It stands alone, in a cage: a pattern may take for ever.

`main` reads what to do as JSON from standard input and writes what the tool would have said to standard output.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_SKIPPED_FOLDERS = {".git", ".svn", ".hg", ".jj"}
_LARGEST_FILE = 16 << 20
_MOST_LINES = 20_000
_TYPE_GLOBS = {
    "py": "*.py *.pyi", "js": "*.js *.cjs *.mjs *.jsx *.vue", "ts": "*.ts *.tsx *.cts *.mts", "tsx": "*.tsx",
    "rust": "*.rs", "go": "*.go", "java": "*.java", "c": "*.c *.h",
    "cpp": "*.cpp *.cc *.cxx *.hpp *.hh *.h *.hxx *.inl",
    "md": "*.md *.markdown *.mdx *.mkd", "markdown": "*.md *.markdown *.mdx *.mkd", "json": "*.json",
    "html": "*.html *.htm",
    "css": "*.css *.scss", "sh": "*.sh *.bash *.zsh", "toml": "*.toml", "yaml": "*.yaml *.yml", "ruby": "*.rb",
    "php": "*.php", "swift": "*.swift", "sql": "*.sql", "txt": "*.txt", "xml": "*.xml",
}  # fmt: skip


def main() -> None:
    """Does the search that standard input describes."""
    with os.fdopen(os.dup(0), "rb") as source:
        job = json.loads(source.read())
    folder, given = job["folder"], job["arguments"]
    said = {"Glob": find_by_glob, "Grep": find_in_files, "LS": list_tree}[job["tool"]](folder, given)
    data = said.encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(1, data) :]


def find_by_glob(folder: str, given: Mapping[str, Any]) -> str:
    """The files whose paths fit the pattern."""
    pattern = str(given.get("pattern", ""))
    if os.path.isabs(pattern):  # noqa: PTH117 - of a pattern
        pattern = os.path.relpath(pattern, folder)
    fits = _glob_matcher(pattern)
    found = [name for name in _files_below(folder) if fits(name)]
    return "\n".join(f"{folder}/{name}" for name in found) or "No files found"


def list_tree(folder: str, given: Mapping[str, Any]) -> str:
    """The files and folders below one, as a tree."""
    ignored = [str(one) for one in given.get("ignore", ()) or ()]
    lines = [f"- {folder}/"]
    depth = folder.count("/")
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one[0] != "." and one != "__pycache__")
        indent = "  " * (place.count("/") - depth)
        if place != folder:
            lines.append(f"{indent}- {os.path.basename(place)}/")  # noqa: PTH119 - the bare interpreter has no pathlib
        names = (one for one in sorted(files) if one[0] != ".")
        lines += [f"{indent}  - {one}" for one in names if not any(fnmatch.fnmatch(one, way) for way in ignored)]
        if len(lines) > _MOST_LINES:
            break
    return "\n".join(lines)


def find_in_files(target: str, given: Mapping[str, Any]) -> str:
    """The files or lines that a pattern is found in."""
    flags = (re.IGNORECASE if given.get("-i") else 0) | re.MULTILINE
    pattern = re.compile(str(given.get("pattern", "")), flags | (re.DOTALL if given.get("multiline") else 0))
    mode = given.get("output_mode", "files_with_matches")
    single = os.path.isfile(target)  # noqa: PTH113 - the bare interpreter has no pathlib
    folder, names = (os.path.dirname(target), [os.path.basename(target)]) if single else (target, _files_below(target))  # noqa: PTH119, PTH120
    lines: list[str] = []
    for name in filter(_file_filter(given), names):
        text = _read_text(os.path.join(folder, name))  # noqa: PTH118 - the bare interpreter has no pathlib
        path = f"{folder}/{name}"
        if text is None or not pattern.search(text):
            continue
        if mode == "files_with_matches":
            lines.append(path)
        elif mode == "count":
            count = sum(1 for line in text.split("\n") if pattern.search(line))
            lines.append(f"{count}" if single else f"{path}:{count}")
        else:
            lines += _matching_lines(pattern, text, given, "" if single else path)
        if len(lines) > _MOST_LINES:
            break
    start = int_argument(given.get("offset"), 0)
    lines = lines[start : start + (int_argument(given.get("head_limit"), 0) or _MOST_LINES)]
    return "\n".join(lines) or ("No matches found" if mode != "files_with_matches" else "No files found")


def _matching_lines(pattern: re.Pattern[str], text: str, given: Mapping[str, Any], path: str) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    around = int_argument(given.get("-C", given.get("context")), 0)
    before, after = int_argument(given.get("-B"), around), int_argument(given.get("-A"), around)
    hits = _matching_line_numbers(pattern, text, lines, bool(given.get("multiline")))
    shown = sorted({n for hit in hits for n in range(hit - before, hit + after + 1) if 0 <= n < len(lines)})
    numbered = given.get("-n", True)
    out = list[str]()
    for n in shown:
        mark = ":" if n in hits else "-"
        out.append(f"{path}{mark if path else ''}{f'{n + 1}{mark}' if numbered else ''}{lines[n]}")
    return out


def _matching_line_numbers(pattern: re.Pattern[str], text: str, lines: list[str], multiline: bool) -> set[int]:
    if not multiline:
        return {n for n, line in enumerate(lines) if pattern.search(line)}
    found: set[int] = set()
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        found.update(range(first, first + match[0].count("\n") + 1))
    return found


def _file_filter(given: Mapping[str, Any]) -> Callable[[str], bool]:
    ways = [_glob_matcher(one) for one in str(given.get("glob") or "").replace(",", " ").split()]
    kind = given.get("type")
    names = _TYPE_GLOBS.get(str(kind), f"*.{kind}").split() if kind else []

    def fits(name: str) -> bool:
        base = name.rpartition("/")[2]
        of_kind = not names or any(fnmatch.fnmatchcase(base, one) for one in names)
        return of_kind and (not ways or any(way(name) or way(base) for way in ways))

    return fits


def _glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path fits a glob: `**` for any folders, `*` within a name, `{a,b}` for either."""
    found = re.compile("|".join(map(_glob_to_regex, _expand_braces(pattern))))
    return lambda name: found.fullmatch(name) is not None


def _expand_braces(pattern: str) -> list[str]:
    waiting, done = [pattern], list[str]()
    while waiting and len(done) + len(waiting) < 1000:
        one = waiting.pop()
        match = re.search(r"\{([^{}]*)\}", one)
        if match is None:
            done.append(one)
        else:
            waiting += [one[: match.start()] + part + one[match.end() :] for part in match[1].split(",")]
    return done


def _glob_to_regex(pattern: str) -> str:
    out = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]*\]|[^*?\[]+|\[", pattern):
        if part == "**/":
            out += "(?:.*/)?"
        elif part == "**":
            out += ".*"
        elif part in ("*", "?"):
            out += "[^/]*" if part == "*" else "[^/]"
        elif part[0] == "[" and len(part) > 2:
            out += "[" + part[1:-1].replace("\\", "\\\\").replace("!", "^", 1) + "]"
        else:
            out += re.escape(part)
    return out


def _files_below(folder: str) -> Iterator[str]:
    """The paths of all files below a folder, relative to it; links are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            yield os.path.relpath(os.path.join(place, name), folder)  # noqa: PTH118 - the bare interpreter has no pathlib


def _read_text(path: str) -> str | None:
    """What stands in a regular file that is neither large nor binary."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_size > _LARGEST_FILE or not 0o100000 <= found.st_mode < 0o120000:
            return None
        data = file.read(_LARGEST_FILE)
    return None if b"\0" in data[:8192] else data.decode("utf-8", "surrogateescape")


def int_argument(value: Any, otherwise: int) -> int:
    """A count that an argument says, or what holds where it says none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise
