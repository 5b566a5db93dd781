"""What a command says of the files beside a transcript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sessgit.agents.values import KINDS
from sessgit.cli import text

if TYPE_CHECKING:
    from sessgit.branch.sidecars import WrittenFile


def things(files: Sequence[WrittenFile]) -> str:
    """`2 subagents, 3 tasks and a plan`: what lies beside, or ``""``."""

    counts = {kind: sum(file.kind == kind and file.counts for file in files) for kind in KINDS}
    parts = [f"a {kind}" if number == 1 else text.counted(number, kind) for kind, number in counts.items() if number]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def told(files: Sequence[WrittenFile], *, count_secrets: bool = True) -> Iterator[str]:
    """What came along, and what was there and is something else; nothing where there is nothing."""
    came = [file for file in files if file.outcome != "left"]
    if named := things(came):
        secrets = sum(file.redacted for file in came) if count_secrets else 0
        but = f" ({text.counted(secrets, 'secret')} redacted)" if secrets else ""
        yield f"Also written: {named}{but}."
    if named := things([file for file in files if file.outcome == "left"]):
        yield f"Not overwritten, because the contents differ: {named}."


def as_json(files: Sequence[WrittenFile]) -> list[dict[str, object]]:
    """Each file with its path and `written`, `already` or `left`."""
    return [
        {"path": str(file.path), "kind": file.kind, "outcome": file.outcome, "redacted": file.redacted}
        for file in files
    ]


def appended(turns: int) -> str:
    """What is said where a transcript got turns that came from elsewhere."""
    return f"{text.counted(turns, 'turn')} from elsewhere {'was' if turns == 1 else 'were'} appended."
