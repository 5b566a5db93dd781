"""The Python process in which the code of a REPL's cells runs, one after the other, with one set of names.

It stands alone, in a cage. The first line of standard input says where to answer; each further one is a cell.
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
"""Characters of what is printed or shown that are told."""


def main() -> None:
    """Runs cells until there are no more."""
    source = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    answers = int(json.loads(source.readline())["answers"])
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    for line in source:
        told = json.dumps(_run_cell(json.loads(line)["code"], names)).encode("utf-8", "backslashreplace") + b"\n"
        while told:
            told = told[os.write(answers, told) :]


def _run_cell(code: str, names: dict[str, Any]) -> dict[str, Any]:
    printed = _BoundedOutput()
    told: dict[str, Any] = {
        "error": "",
        "memory": False,
        "has_value": False,
        "json": None,
        "is_json": False,
        "repr": "",
    }
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            found = _run_and_evaluate(code, names)
            if found is not None:
                told |= {"has_value": True, "repr": repr(found)[:_LONGEST_REPR], **_json_fields(found)}
    except MemoryError:
        told |= {"error": "MemoryError", "memory": True}
    except BaseException as error:  # whatever a cell raises is what came of it
        told["error"] = "".join(traceback.format_exception_only(error)).strip()[:_LONGEST_REPR]
    return told | {"printed": printed.text}


def _run_and_evaluate(code: str, names: dict[str, Any]) -> Any:
    """The value of the last expression, or None where the code ends with something else."""
    tree = ast.parse(code, "<cell>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)


def _json_fields(found: Any) -> dict[str, Any]:
    try:
        text = json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    return {"json": json.loads(text), "is_json": True} if len(text) <= _LONGEST_REPR else {}


class _BoundedOutput(io.TextIOBase):
    """What is printed, up to a length."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if len(self.text) < _LONGEST_REPR:
            self.text += text[: _LONGEST_REPR - len(self.text)]
        return len(text)
