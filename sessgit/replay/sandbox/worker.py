"""The Python process in which the code of a REPL's cells runs, one after the other, with one namespace.

It runs by itself, in a sandbox. Each line of standard input is a cell, each line of output what came of it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import traceback
from typing import Any

_LONGEST_REPR = 200_000
"""Characters of output, or of a value, that are kept."""


def main() -> None:
    """Run cells until there are no more."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.dup(1)
    for descriptor in (0, 1, 2):  # what the code itself prints there is no answer
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    for line in source:
        data = json.dumps(_run_cell(json.loads(line)["code"], names)).encode("utf-8", "backslashreplace") + b"\n"
        while data:
            data = data[os.write(answers, data) :]


def _run_cell(code: str, names: dict[str, Any]) -> dict[str, Any]:
    printed = _BoundedOutput()
    result: dict[str, Any] = {"error": "", "memory": False, "json": None, "is_json": False, "repr": ""}
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            value = _run_and_evaluate(code, names)
            if value is not None:
                result |= {"repr": repr(value)[:_LONGEST_REPR], **_json_fields(value)}
    except MemoryError:
        result |= {"error": "MemoryError", "memory": True}
    except BaseException as error:  # also SystemExit: the code ended so, and the next cell runs
        result["error"] = "".join(traceback.format_exception_only(error)).strip()[:_LONGEST_REPR]
    return result | {"printed": printed.text}


def _run_and_evaluate(code: str, names: dict[str, Any]) -> Any:
    """Return the value of the last expression, or None if the code ends with a statement."""
    tree = ast.parse(code, "<cell>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def _json_fields(value: Any) -> dict[str, Any]:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"json": json.loads(text), "is_json": True} if len(text) <= _LONGEST_REPR else {}


class _BoundedOutput(io.TextIOBase):
    """A stream that keeps the beginning of what is printed."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.text) < _LONGEST_REPR:
            self.text += text[: _LONGEST_REPR - len(self.text)]
        return len(text)
