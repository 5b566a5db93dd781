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
LONGEST_TEXT = 20_000
"""Characters of a text that are kept or shown."""
_MOST_LINES = 2_000
_LONGEST_LINE = 400
_MOST_DIFF_LINES = 40

_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_NO_OUTPUT_TEXTS = ("(Bash completed with no output)", "Tool ran without output or errors", "(no content)")
_EXIT_CODE_LINE = re.compile(r"\A(?:Error: )?Exit code \d{1,3}(?:\n|\Z)")
_CWD_RESET_LINE = re.compile(r"\n?Shell cwd was reset to [^\n]*\Z")
_TRUNCATION_NOTE = re.compile(r"\s*\.\.\. \[\d+ (?:lines|characters) truncated\] \.\.\.\s*")
_PERSISTED_PREVIEW = re.compile(
    r"\A<persisted-output>\n.*?\n\nPreview \(first [^)]*\):\n(.*?)(?:\n\.\.\.)?\n</persisted-output>\Z", re.DOTALL
)
_NUMBERED_LINE = re.compile(r"^ *(\d+)(?:→|\t)(.*)$")
_FOUND_LINE = re.compile(r"\AFound \d+ files?(?: limit: \d+)?(?:, [^\n]*)?\n")
_PAGINATION_NOTE = re.compile(r"\n+\((?:Results|Showing)[^\n]*\)\s*\Z|\n+\[Showing[^\n]*\]\s*\Z")
_NO_MATCH_TEXTS = ("No files found", "No matches found", "Found 0 files")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether both are equal, both texts in the form in which they were compared, and how they differ: the lines of a
    unified diff without its headings."""

    equal: bool
    recorded: str
    now: str
    diff: tuple[str, ...] = ()


def compare_texts(recorded: str, now: str) -> Comparison:
    """Two texts, of which newlines at their ends do not count; the recorded one may be cut in its middle or its end."""
    recorded, now = recorded.rstrip(), now.rstrip()
    if "[redacted:" in recorded:
        now = redact_secrets(now)
    equal = _matches_truncated(recorded, now)
    return Comparison(equal, recorded, now, () if equal else diff_lines(recorded, now))


def compare_shell(call: Call, code: int, output: str) -> Comparison:
    """A command's output, and its exit code where the recorded one is known."""
    then = _output_with_code(call.exit_code, _EXIT_CODE_LINE.sub("", _tool_output(call.output)))
    now = _output_with_code(code if call.exit_code is not None else 0, _tool_output(output))
    found = compare_texts(then, now)
    if not found.equal and _CWD_RESET_LINE.search(then):
        return compare_texts(_CWD_RESET_LINE.sub("", then), now)
    # Of a command that fails some versions show what it said of errors first.
    if not found.equal and code and call.exit_code == code and _split_lines(then) == _split_lines(now):
        return Comparison(True, found.recorded, found.now)
    return found


def compare_read(call: Call, lines: Sequence[tuple[int, str]]) -> Comparison:
    """The lines of a file by number."""
    then = [(int(m[1]), m[2]) for line in _tool_output(call.output).split("\n") if (m := _NUMBERED_LINE.match(line))]
    return compare_texts(_format_numbered(then), _format_numbered(lines))


def compare_contained(call: Call, parts: Sequence[str]) -> Comparison:
    """Texts that must stand in what the tool said, one after the other."""
    place = 0
    for part in map(str.strip, parts):
        found = call.output.find(part, place)
        if found < 0:
            return compare_texts(call.output, "\n".join(parts))
        place = found + len(part)
    return Comparison(True, call.output, call.output)


def compare_search(call: Call, output: str, folders: Sequence[str]) -> Comparison:
    """What was found, in whatever order, with paths below one of the folders as they are from there."""
    return compare_texts(_sort_matches(call.output, folders), _sort_matches(output, folders))


def compare_written(agent: Agent, call: Call, before: str | None, after: str) -> Comparison:
    """A file as it was left: its whole text where the lines tell that, else what the client noted of the change.

    Where it noted nothing, that it was changed is all there is to compare.
    """
    then, noted = agent.content.left_by(call)
    if then is not None:
        return compare_texts(then, after)
    lines = list(difflib.unified_diff((before or "").split("\n"), after.split("\n"), n=0, lineterm=""))[2:]
    done = [line for line in lines if line[:1] in ("-", "+")]
    return compare_texts("\n".join(noted), "\n".join(done)) if noted else Comparison(True, "", "")


def compare_values(call: Call, found: Any, shown: Sequence[str], *, is_value: bool) -> Comparison:
    """A value: equal where its JSON is that of the recorded one, or one of the ways to show it is the recorded text."""
    if call.cell.ok is False:
        return compare_texts(recorded_error(call), as_text(found) if is_value else "\n".join(shown))
    then = recorded_value(call)
    if is_value and _is_same_json(then, found):
        text = as_text(then)
        return Comparison(True, text, text)
    ways = [way for way in shown if way]
    if isinstance(then, str):
        for way in ways:
            compared = compare_texts(then, way)
            if compared.equal:
                return compared
        return compare_texts(then, ways[0] if ways else as_text(found))
    return compare_texts(as_text(then), as_text(found) if is_value or not ways else ways[0])


def compare_answers(call: Call, said: str) -> Comparison:
    """What a model said: as a text, or as JSON where something else is recorded."""
    then = recorded_value(call)
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = said
    return compare_values(call, found if not isinstance(then, str) else said, (said,), is_value=True)


def compare_errors(call: Call, now: str) -> Comparison:
    """Two errors: equal where the last line of what is raised now stands in the recorded one."""
    last, then = now.strip().rpartition("\n")[2], recorded_error(call)
    if call.cell.ok is not False:
        return compare_texts(as_text(recorded_value(call)), now)
    return Comparison(True, then, now) if last and last in then else compare_texts(then, now)


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


def redact_secrets(text: str) -> str:
    """The text with its secrets replaced as recording replaces them."""
    return redact_text(text.encode("utf-8", "surrogatepass"))[0].decode("utf-8", "surrogatepass")


def bounded_text(text: str) -> str:
    """The text, no longer than what is kept, without secrets."""
    text = redact_secrets(text)
    return (
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n… {len(text) - LONGEST_TEXT:,} more characters"
    )


# Inside


def _matches_truncated(recorded: str, now: str) -> bool:
    if recorded == now:
        return True
    preview = _PERSISTED_PREVIEW.match(recorded)
    if preview:
        return now.startswith(preview[1].rstrip())
    parts = _TRUNCATION_NOTE.split(recorded)
    if len(parts) != 2:
        return False
    head, tail = parts
    return len(now) >= len(head) + len(tail) and now.startswith(head) and now.endswith(tail)


def _split_lines(text: str) -> list[str]:
    return sorted(line for line in text.split("\n") if line.strip())


def _is_same_json(a: Any, b: Any) -> bool:
    """Whether two values are one in JSON: there `1` and `true` are not."""
    return json.dumps(a, sort_keys=True, default=repr) == json.dumps(b, sort_keys=True, default=repr)


def _tool_output(output: str) -> str:
    """What a tool said, without what the client said beside it."""
    text = _REMINDER.sub("\n", output)
    return "" if text.strip() in _NO_OUTPUT_TEXTS else text.strip("\n").rstrip()


def _output_with_code(code: int | None, output: str) -> str:
    return f"Exit code {code}\n{output}".rstrip() if code else output


def _format_numbered(lines: Sequence[tuple[int, str]]) -> str:
    found = list(lines)
    # Some versions number the nothing behind the last newline.
    while found and not found[-1][1]:
        found.pop()
    return "\n".join(f"{number}\t{text}" for number, text in found)


def _sort_matches(output: str, folders: Sequence[str]) -> str:
    text = _PAGINATION_NOTE.sub("", _FOUND_LINE.sub("", _tool_output(output).rstrip()))
    if text.strip() in _NO_MATCH_TEXTS:
        return ""
    lines = [line.rstrip().removeprefix("./") for line in text.split("\n")]
    for folder in folders:
        lines = [line.removeprefix(f"{folder.rstrip('/')}/") for line in lines]
    return "\n".join(sorted(line for line in lines if line and line != "--"))


def diff_lines(recorded: str, now: str) -> tuple[str, ...]:
    """How two texts differ: the first lines of a unified diff without its headings, without secrets."""
    found = list(_diff_body(recorded, now))
    return (
        (*found[:_MOST_DIFF_LINES], f"… {len(found) - _MOST_DIFF_LINES:,} more lines")
        if len(found) > _MOST_DIFF_LINES
        else tuple(found)
    )


def _diff_body(recorded: str, now: str) -> Iterator[str]:
    a, b = (
        [line[:_LONGEST_LINE] for line in redact_secrets(text).split("\n")[:_MOST_LINES]] for text in (recorded, now)
    )
    found = list(difflib.unified_diff(a, b, n=1, lineterm=""))[2:]
    if not found:
        yield "… they differ further on"
    yield from found
