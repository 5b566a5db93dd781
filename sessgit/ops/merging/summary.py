"""What a conversation found, as a text that another one can go on from; made without a model.

It is a function of what is stored, so that two machines that merge the same write the same.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from sessgit.errors import SessgitError
from sessgit.model import canonical, prices, words
from sessgit.model.turn import Tokens, Turn, add_by_model
from sessgit.ops.merging import pads
from sessgit.ops.merging.sides import Sides
from sessgit.ops.resolve import title
from sessgit.ops.views import read_turn
from sessgit.store.index import Row
from sessgit.store.store import Store

_LONGEST = 4 << 20


def heading(found: Sides, rows: Sequence[Row]) -> str:
    """The first line of what is brought back, by which people find it in the log."""
    state = found.theirs.state
    since = f" since turn {found.shared}" if found.shared else ""
    called = canonical.one_line(title(state), 100)
    return f"Brought back from {state.id[:8]}, “{called}”: {words.counted(len(rows), 'turn')}{since}"


def text(store: Store, found: Sides, rows: Sequence[Row]) -> str:
    """What theirs found in these turns: what was asked and answered, the files, the scratchpad, what it used."""
    turns = [read_turn(store, found.tip, row).told for row in rows]
    parts = [_intro(found)]
    for row, turn in zip(rows, turns, strict=True):
        parts.append(f"Turn {row.turn}. Asked:\n{_quoted(turn.prompt.strip() or '(no text)')}")
        parts.append(f"Answered:\n{turn.answer.strip() or '(no answer)'}")
    parts += _files(turns)
    parts += [f"Scratchpad, {name}:\n{''.join(lines)}".rstrip() for name, lines in pads.new_lines(store, found).items()]
    parts.append(_used(turns))
    return "\n\n".join(parts)


def retold(command: str, given: str, cwd: str, env: Mapping[str, str]) -> str:
    """What the shell command makes of the text; raises SessgitError where it fails or says nothing.

    What it starts is not recorded.
    """
    try:
        done = subprocess.run(
            command, shell=True, input=given.encode("utf-8", "replace"), stdout=subprocess.PIPE, cwd=cwd,
            env={**env, "SESSGIT_OFF": "1"}, check=False,
        )  # fmt: skip
    except OSError as error:
        raise SessgitError(f"“{command}” cannot be run: {error.strerror or error}", "Nothing was changed.") from error
    said = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        raise SessgitError(f"“{command}” left with {done.returncode}", "Nothing was changed.")
    if not said:
        raise SessgitError(f"“{command}” said nothing", "Nothing was changed. It gets the text on standard input.")
    if len(said) > _LONGEST:
        raise SessgitError(f"“{command}” said {len(said):,} characters", "Nothing was changed: a few pages are enough.")
    return said


def reply(rows: Sequence[Row]) -> str:
    """The answer to what was brought back, as no model gave it."""
    return f"Understood: I know what was found there in {words.counted(len(rows), 'turn')}, and go on from here."


def _intro(found: Sides) -> str:
    if not found.shared:
        return "That is another conversation, which has no turn in common with this one."
    turns = words.counted(found.shared, "turn")
    return f"That conversation has the first {turns} in common with this one and went on by itself."


def _files(turns: Sequence[Turn]) -> list[str]:
    changed = list(dict.fromkeys(path for turn in turns for path in turn.files_changed))
    read = [path for path in dict.fromkeys(path for turn in turns for path in turn.files_read) if path not in changed]
    named = (("Files it changed", changed), ("Files it read", read))
    return ["\n".join([f"{what}:", *(f"- {path}" for path in paths)]) for what, paths in named if paths]


def _used(turns: Sequence[Turn]) -> str:
    by_model: dict[str, Tokens] = {}
    for turn in turns:
        by_model = add_by_model(by_model, turn.tokens)
    tokens = words.tokens(words.said_and_heard(sum(by_model.values(), Tokens())))
    # List prices: what a person set for themselves would be another text on another machine.
    cost = words.money(prices.cost(by_model, {}))
    return f"It used {tokens} tokens{f', {cost}' if cost else ''}."


def _quoted(said: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
