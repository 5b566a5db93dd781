"""Compare the result of a cell that ran again with the recorded one.

The sandbox stands for the project's folder in both. The exit code of a command counts if it is recorded. Newlines at
the end do not count, nor what the client adds to a result, nor the order of the lines of a command that failed. If the
client kept only the ends of a long result, those are compared. Of a tool that reads, the lines and their numbers count;
of a tool that writes, the file, or the lines removed and inserted if the client recorded no text. A REPL's value is
equal by its JSON, by its `repr`, or with what it printed; an error is equal if its last line occurs in the recorded
one. Secrets are redacted as in a recording.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from sessgit.agents import Agent
from sessgit.agents.base import Tools
from sessgit.model.conversation.content import Call
from sessgit.model.frozen import frozen
from sessgit.redact.replacer import redact_text

Outcome = Literal["equal", "differs", "failed", "skipped"]
Texts = Mapping[str, str | None]
"""The text of each file, None where there is none."""
LONGEST_TEXT = 20_000
"""Characters of a text that are kept or shown."""
_MOST_LINES = 2_000
_LONGEST_LINE = 400
_MOST_DIFF_LINES = 40


@frozen
class Comparison:
    """Whether both results are equal, both as they were compared, and the lines of a unified diff without headings."""

    equal: bool
    recorded: str
    now: str
    diff: tuple[str, ...] = ()


def compare_texts(recorded: str, now: str) -> Comparison:
    """Compare two texts; newlines at their ends do not count."""
    recorded, now = recorded.rstrip(), now.rstrip()
    if "[redacted:" in recorded:
        now = redact_secrets(now)
    return Comparison(recorded == now, recorded, now, () if recorded == now else diff_lines(recorded, now))


def compare_shell(tools: Tools, call: Call, code: int, output: str) -> Comparison:
    """Compare a command's output, and its exit code if one is recorded."""
    then = _output_with_code(call.exit_code, tools.output(call.output))
    now = _output_with_code(code if call.exit_code is not None else 0, tools.output(output))
    result = compare_texts(then, now)
    kept = tools.kept_ends(result.recorded)
    is_same = kept is not None and _has_ends(result.now, *kept)
    # Some versions of the client put what a command that fails wrote to standard error first.
    is_same |= bool(code) and call.exit_code == code and _sorted_lines(then) == _sorted_lines(now)
    return Comparison(True, result.recorded, result.now) if is_same else result


def compare_read(tools: Tools, call: Call, lines: Sequence[tuple[int, str]]) -> Comparison:
    """Compare the lines of a file by number."""
    return compare_texts(_format_numbered(tools.numbered_lines(call.output)), _format_numbered(lines))


def compare_contained(call: Call, parts: Sequence[str]) -> Comparison:
    """Compare texts that must occur in the tool's result, one after the other."""
    place = 0
    for part in map(str.strip, parts):
        at = call.output.find(part, place)
        if at < 0:
            return compare_texts(call.output, "\n".join(parts))
        place = at + len(part)
    return Comparison(True, call.output, call.output)


def compare_written(agent: Agent, call: Call, before: Texts, after: Texts) -> Comparison:
    """Compare files after a change: the whole text of each if the lines hold that, else the change that the client
    recorded.

    If it recorded neither, nothing is left to compare: the results are equal. That of one file is returned, if one
    differs of that.
    """
    results = [_compare_file(agent, call, file, before[file] or "", text or "") for file, text in after.items()]
    return next((result for result in results if not result.equal), results[0])


def _compare_file(agent: Agent, call: Call, file: str, before: str, after: str) -> Comparison:
    text, changes = agent.content.left_by(call, file)
    if text is not None:
        return compare_texts(text, after)
    lines = list(difflib.unified_diff(before.split("\n"), after.split("\n"), n=0, lineterm=""))[2:]
    changed = [line for line in lines if line[:1] in ("-", "+")]
    return compare_texts("\n".join(changes), "\n".join(changed)) if changes else Comparison(True, "", "")


def compare_values(call: Call, value: Any, shown: Sequence[str], *, is_value: bool) -> Comparison:
    """Compare a value, if there is one, by its JSON, and the forms in which it was shown with the recorded text."""
    if call.cell.ok is False:
        return compare_texts(recorded_error(call), as_text(value) if is_value else "\n".join(shown))
    then = recorded_value(call)
    if is_value and _as_json(then) == _as_json(value):
        return Comparison(True, as_text(then), as_text(then))
    forms = [form for form in shown if form]
    if not isinstance(then, str):
        return compare_texts(as_text(then), as_text(value) if is_value or not forms else forms[0])
    results = [compare_texts(then, form) for form in forms or [as_text(value)]]
    return next((result for result in results if result.equal), results[0])


def compare_answers(call: Call, answer: str) -> Comparison:
    """Compare a model's answer: as a text, or as JSON if something else is recorded."""
    value: Any = answer
    if not isinstance(recorded_value(call), str):
        with suppress(ValueError, RecursionError):
            value = json.loads(answer)
    return compare_values(call, value, (answer,), is_value=True)


def compare_errors(call: Call, now: str) -> Comparison:
    """Compare two errors: they are equal if the last line of the new one occurs in the recorded one."""
    last, then = now.strip().rpartition("\n")[2], recorded_error(call)
    if call.cell.ok is not False:
        return compare_texts(as_text(recorded_value(call)), now)
    return Comparison(True, then, now) if last and last in then else compare_texts(then, now)


def recorded_value(call: Call) -> Any:
    """Return the recorded value of a cell: the one that a program gave, else the tool's text."""
    if call.outcome is not None and call.outcome.error is None:
        return call.outcome.result
    return call.output


def recorded_error(call: Call) -> str:
    """Return the recorded error of a call: the one that a program gave, else the tool's text."""
    if call.outcome is not None and call.outcome.error is not None:
        return call.outcome.error
    return call.output


def as_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else _as_json(value)


def redact_secrets(text: str) -> str:
    """Return the text with its secrets replaced as recording replaces them."""
    return redact_text(text.encode("utf-8", "surrogatepass"))[0].decode("utf-8", "surrogatepass")


def bounded_text(text: str) -> str:
    """Return the text without secrets, cut to the length that is kept."""
    text = redact_secrets(text)
    return (
        text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}\n… {len(text) - LONGEST_TEXT:,} more characters"
    )


def diff_lines(recorded: str, now: str) -> tuple[str, ...]:
    """Return the first lines of a unified diff, without its headings and without secrets."""
    a, b = (
        [line[:_LONGEST_LINE] for line in redact_secrets(text).split("\n")[:_MOST_LINES]] for text in (recorded, now)
    )
    lines = list(difflib.unified_diff(a, b, n=1, lineterm=""))[2:] or ["… they differ further on"]
    more = len(lines) - _MOST_DIFF_LINES
    return tuple(lines) if more <= 0 else (*lines[:_MOST_DIFF_LINES], f"… {more:,} more lines")


def _has_ends(text: str, beginning: str, end: str) -> bool:
    return len(text) >= len(beginning) + len(end) and text.startswith(beginning) and text.endswith(end)


def _sorted_lines(text: str) -> list[str]:
    return sorted(line for line in text.split("\n") if line.strip())


def _as_json(value: Any) -> str:
    """Return the value in JSON, where unlike in Python `1` and `true` differ."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)


def _output_with_code(code: int | None, output: str) -> str:
    return f"Exit code {code}\n{output}".rstrip() if code else output


def _format_numbered(lines: Sequence[tuple[int, str]]) -> str:
    text = "\n".join(f"{number}\t{line}" for number, line in lines)
    return re.sub(r"(?:(?:\A|\n)\d+\t)+\Z", "", text)  # some versions of the client number the end of the file
