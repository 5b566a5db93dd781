"""Finds files by name or content, as tools of a client do.

It runs by itself, in a sandbox, since a regular expression may take for ever: `main` reads the job as JSON from
standard input and writes the lines of the result to standard output.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

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
    """Do the search that standard input describes: `find`, `folder`, and the arguments of one of these functions."""
    with os.fdopen(os.dup(0), "rb") as source:
        job = json.loads(source.read())
    functions: dict[str, Callable[..., list[str]]]
    functions = {"names": find_names, "contents": find_contents, "tree": list_tree}
    find = functions[job.pop("find")]
    data = "\n".join(find(**job)).encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(1, data) :]


def find_names(folder: str, pattern: str) -> list[str]:
    """Return the files whose paths match a glob."""
    if os.path.isabs(pattern):  # noqa: PTH117 - of a pattern
        pattern = os.path.relpath(pattern, folder)
    fits = _glob_matcher(pattern)
    return [f"{folder}/{name}" for name in _files_below(folder) if fits(name)]


def list_tree(folder: str, ignored: Sequence[str]) -> list[str]:
    """Return the files and folders below a folder, as a tree."""
    lines = [f"- {folder}/"]
    depth = folder.count("/")
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        indent = "  " * (place.count("/") - depth)
        if place != folder:
            lines.append(f"{indent}- {place.rpartition('/')[2]}/")
        names = (name for name in sorted(files) if name[0] != ".")
        lines += [f"{indent}  - {name}" for name in names if not any(fnmatch.fnmatch(name, glob) for glob in ignored)]
        if len(lines) > _MOST_LINES:
            break
    return lines


def find_contents(  # noqa: PLR0913 - the arguments of a search
    folder: str, pattern: str, *, ignore_case: bool, multiline: bool, show: str, globs: Sequence[str], kind: str,
    before: int, after: int, numbered: bool, offset: int, limit: int,
) -> list[str]:  # fmt: skip
    """Return the files, the numbers of matching lines, or the matching lines of all files below a folder, or of a
    single file; `limit` 0 is no limit."""
    flags = (re.IGNORECASE if ignore_case else 0) | re.MULTILINE | (re.DOTALL if multiline else 0)
    regex = re.compile(pattern, flags)
    is_single = os.path.isfile(folder)  # noqa: PTH113 - the bare interpreter has no pathlib
    names: Iterable[str] = _files_below(folder)
    if is_single:
        folder, _, name = folder.rpartition("/")
        names = [name]
    out: list[str] = []
    for name in filter(_file_filter(globs, kind), names):
        path = f"{folder}/{name}"
        text = _read_text(path)
        if text is None or not regex.search(text):
            continue
        if show == "files":
            out.append(path)
            continue
        lines = text.removesuffix("\n").split("\n")
        hits = _matching_lines(regex, text, lines, multiline)
        prefix = "" if is_single else path
        if show == "count":
            out.append(f"{prefix}:{len(hits)}".removeprefix(":"))
            continue
        shown = {n for hit in hits for n in range(hit - before, hit + after + 1) if 0 <= n < len(lines)}
        for n in sorted(shown):
            mark = ":" if n in hits else "-"
            out.append(f"{prefix}{mark if prefix else ''}{f'{n + 1}{mark}' if numbered else ''}{lines[n]}")
        if len(out) > _MOST_LINES:
            break
    return out[offset : offset + (limit or _MOST_LINES)]


def _matching_lines(regex: re.Pattern[str], text: str, lines: Sequence[str], multiline: bool) -> set[int]:
    if not multiline:
        return {n for n, line in enumerate(lines) if regex.search(line)}
    numbers: set[int] = set()
    for match in regex.finditer(text):
        first = text.count("\n", 0, match.start())
        numbers.update(range(first, first + match[0].count("\n") + 1))
    return numbers


def _file_filter(globs: Sequence[str], kind: str) -> Callable[[str], bool]:
    matchers = [_glob_matcher(glob) for glob in globs]
    of_kind = _TYPE_GLOBS.get(kind, f"*.{kind}").split() if kind else ["*"]

    def fits(name: str) -> bool:
        base = name.rpartition("/")[2]
        return any(fnmatch.fnmatchcase(base, glob) for glob in of_kind) and (
            not matchers or any(matches(name) or matches(base) for matches in matchers)
        )

    return fits


def _glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a test for paths: `**` matches any folders, `*` a part of a name, `{a,b}` either."""
    regex = re.compile("|".join(map(_glob_to_regex, _expand_braces(pattern))))
    return lambda name: regex.fullmatch(name) is not None


def _expand_braces(pattern: str) -> list[str]:
    patterns, expanded = [pattern], list[str]()
    while patterns and len(expanded) + len(patterns) < 1000:
        last = patterns.pop()
        brace = re.search(r"\{([^{}]*)\}", last)
        if brace is None:
            expanded.append(last)
        else:
            patterns += [last[: brace.start()] + part + last[brace.end() :] for part in brace[1].split(",")]
    return expanded


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
    """Yield the paths of all files below a folder, relative to it; links are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED_FOLDERS)
        for name in sorted(files):
            yield os.path.relpath(os.path.join(place, name), folder)  # noqa: PTH118 - the bare interpreter has no pathlib


def _read_text(path: str) -> str | None:
    """Return the text of a regular file that is neither large nor binary, else None."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > _LARGEST_FILE or not stat.S_ISREG(status.st_mode):
            return None
        data = file.read(_LARGEST_FILE)
    return None if b"\0" in data[:8192] else data.decode("utf-8", "surrogateescape")
