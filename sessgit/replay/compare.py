"""Compare what came of a cell now with what is recorded of it.

The sandbox stands for the project's folder in both. The exit code of a command counts if it is known. Line ends at the
end do not count, nor what the client says next to a result (reminders, a note that nothing was printed), nor the order
of the lines of a command that failed. What the client left out of a long result is left out here, and where it kept a
preview, that is compared. Of `Read` the lines and their numbers count; of searches, what was found in whatever order,
relative to the folder; of tools that write, the file, or what was removed and inserted if the client noted no text of
it. An error of a tool for files is like any other. A REPL's value is equal by its JSON, by its `repr`, or with what it
printed; an error, if its last line occurs in the recorded one. Secrets are redacted as in a recording.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sessgit.agents.base import Agent
from sessgit.model.conversation.content import Call
from sessgit.redact.replacer import redact_text

Outcome = Literal["equal", "differs", "failed", "skipped"]
LONGEST = 20_000
"""Characters of a text that are kept or shown."""
_MOST_LINES = 2_000
_WIDEST = 400
_DIFF = 40

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_NOTHING = ("(Bash completed with no output)", "Tool ran without output or errors", "(no content)")
_EXIT = re.compile(r"\A(?:Error: )?Exit code \d{1,3}(?:\n|\Z)")
_RESET = re.compile(r"\n?Shell cwd was reset to [^\n]*\Z")
_CUT = re.compile(r"\s*\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\.\s*")
_PREVIEW = re.compile(
    r"\A<persisted-output>\n.*?\n\nPreview \(first [^)]*\):\n(.*?)(?:\n\.\.\.)?\n</persisted-output>\Z", re.DOTALL
)
_NUMBERED = re.compile(r"^ *(\d+)(?:→|\t)(.*)$")
_FOUND = re.compile(r"\AFound \d+ files?(?: limit: \d+)?(?:, [^\n]*)?\n")
_SHORTENED = re.compile(r"\n+\((?:Results|Showing)[^\n]*\)\s*\Z|\n+\[Showing[^\n]*\]\s*\Z")
_NONE = ("No files found", "No matches found", "Found 0 files")


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether both are equal, both texts in the form in which they were compared, and how they differ: the lines of a
    unified diff without its headings."""

    equal: bool
    recorded: str
    now: str
    diff: tuple[str, ...] = ()


def texts(recorded: str, now: str) -> Compared:
    """Two texts, of which newlines at their ends do not count; the recorded one may be cut in its middle or its end."""
    recorded, now = recorded.rstrip(), now.rstrip()
    if "[redacted:" in recorded:
        now = redacted(now)
    equal = _fits(recorded, now)
    return Compared(equal, recorded, now, () if equal else diff(recorded, now))


def shell(call: Call, code: int, output: str) -> Compared:
    """A command's output, and its exit code where the recorded one is known."""
    then = _shown(call.exit_code, _EXIT.sub("", _plain(call.output)))
    now = _shown(code if call.exit_code is not None else 0, _plain(output))
    found = texts(then, now)
    if not found.equal and _RESET.search(then):
        return texts(_RESET.sub("", then), now)
    # Of a command that fails some versions show what it said of errors first.
    if not found.equal and code and call.exit_code == code and _lines_of(then) == _lines_of(now):
        return Compared(True, found.recorded, found.now)
    return found


def read(call: Call, lines: Sequence[tuple[int, str]]) -> Compared:
    """The lines of a file by number."""
    then = [(int(m[1]), m[2]) for line in _plain(call.output).split("\n") if (m := _NUMBERED.match(line))]
    return texts(_numbered(then), _numbered(lines))


def contained(call: Call, parts: Sequence[str]) -> Compared:
    """Texts that must stand in what the tool said, one after the other."""
    place = 0
    for part in map(str.strip, parts):
        found = call.output.find(part, place)
        if found < 0:
            return texts(call.output, "\n".join(parts))
        place = found + len(part)
    return Compared(True, call.output, call.output)


def search(call: Call, output: str, folders: Sequence[str]) -> Compared:
    """What was found, in whatever order, with paths below one of the folders as they are from there."""
    return texts(_sorted(call.output, folders), _sorted(output, folders))


def written(agent: Agent, call: Call, before: str | None, after: str) -> Compared:
    """A file as it was left: its whole text where the lines tell that, else what the client noted of the change.

    Where it noted nothing, that it was changed is all there is to compare.
    """
    then, noted = agent.content.left_by(call)
    if then is not None:
        return texts(then, after)
    lines = list(difflib.unified_diff((before or "").split("\n"), after.split("\n"), n=0, lineterm=""))[2:]
    done = [line for line in lines if line[:1] in ("-", "+")]
    return texts("\n".join(noted), "\n".join(done)) if noted else Compared(True, "", "")


def value(call: Call, found: Any, shown: Sequence[str], *, is_value: bool) -> Compared:
    """A value: equal where its JSON is that of the recorded one, or one of the ways to show it is the recorded text."""
    if call.cell.ok is False:
        return texts(recorded_error(call), as_text(found) if is_value else "\n".join(shown))
    then = recorded_value(call)
    if is_value and _same(then, found):
        text = as_text(then)
        return Compared(True, text, text)
    ways = [way for way in shown if way]
    if isinstance(then, str):
        for way in ways:
            compared = texts(then, way)
            if compared.equal:
                return compared
        return texts(then, ways[0] if ways else as_text(found))
    return texts(as_text(then), as_text(found) if is_value or not ways else ways[0])


def answer(call: Call, said: str) -> Compared:
    """What a model said: as a text, or as JSON where something else is recorded."""
    then = recorded_value(call)
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = said
    return value(call, found if not isinstance(then, str) else said, (said,), is_value=True)


def error(call: Call, now: str) -> Compared:
    """Two errors: equal where the last line of what is raised now stands in the recorded one."""
    last, then = now.strip().rpartition("\n")[2], recorded_error(call)
    if call.cell.ok is not False:
        return texts(as_text(recorded_value(call)), now)
    return Compared(True, then, now) if last and last in then else texts(then, now)


def recorded_value(call: Call) -> Any:
    """What came of a cell, as the program gave it, else as the text that the tool said."""
    if call.outcome is not None and call.outcome.error is None:
        return call.outcome.result
    return call.output


def recorded_error(call: Call) -> str:
    """The recorded error of a call: what a program said, else what the tool gave back."""
    if call.outcome is not None and call.outcome.error is not None:
        return call.outcome.error
    return call.output


def as_text(found: Any) -> str:
    """A value as it is shown and compared: a text as it is, anything else in JSON."""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, sort_keys=True, default=repr)


def redacted(text: str) -> str:
    """The text with its secrets replaced as recording replaces them."""
    return redact_text(text.encode("utf-8", "surrogatepass"))[0].decode("utf-8", "surrogatepass")


def bounded(text: str) -> str:
    """The text, no longer than what is kept, without secrets."""
    text = redacted(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… {len(text) - LONGEST:,} more characters"


# Inside


def _fits(recorded: str, now: str) -> bool:
    if recorded == now:
        return True
    preview = _PREVIEW.match(recorded)
    if preview:
        return now.startswith(preview[1].rstrip())
    parts = _CUT.split(recorded)
    if len(parts) != 2:
        return False
    head, tail = parts
    return len(now) >= len(head) + len(tail) and now.startswith(head) and now.endswith(tail)


def _lines_of(text: str) -> list[str]:
    return sorted(line for line in text.split("\n") if line.strip())


def _same(a: Any, b: Any) -> bool:
    """Whether two values are one in JSON: there `1` and `true` are not."""
    return json.dumps(a, sort_keys=True, default=repr) == json.dumps(b, sort_keys=True, default=repr)


def _plain(output: str) -> str:
    """What a tool said, without what the client said beside it."""
    text = _REMINDER.sub("\n", output)
    return "" if text.strip() in _NOTHING else text.strip("\n").rstrip()


def _shown(code: int | None, output: str) -> str:
    return f"Exit code {code}\n{output}".rstrip() if code else output


def _numbered(lines: Sequence[tuple[int, str]]) -> str:
    found = list(lines)
    # Some versions number the nothing behind the last newline.
    while found and not found[-1][1]:
        found.pop()
    return "\n".join(f"{number}\t{text}" for number, text in found)


def _sorted(output: str, folders: Sequence[str]) -> str:
    text = _SHORTENED.sub("", _FOUND.sub("", _plain(output).rstrip()))
    if text.strip() in _NONE:
        return ""
    lines = [line.rstrip().removeprefix("./") for line in text.split("\n")]
    for folder in folders:
        lines = [line.removeprefix(f"{folder.rstrip('/')}/") for line in lines]
    return "\n".join(sorted(line for line in lines if line and line != "--"))


def diff(recorded: str, now: str) -> tuple[str, ...]:
    """How two texts differ: the first lines of a unified diff without its headings, without secrets."""
    found = list(_lines(recorded, now))
    return (*found[:_DIFF], f"… {len(found) - _DIFF:,} more lines") if len(found) > _DIFF else tuple(found)


def _lines(recorded: str, now: str) -> Iterator[str]:
    a, b = ([line[:_WIDEST] for line in redacted(text).split("\n")[:_MOST_LINES]] for text in (recorded, now))
    found = list(difflib.unified_diff(a, b, n=1, lineterm=""))[2:]
    if not found:
        yield "… they differ further on"
    yield from found
