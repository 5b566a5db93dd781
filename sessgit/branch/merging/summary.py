"""What a conversation found, as a text that another one can go on from; made without a model.

It is a function of what is stored and of the prices that a person set.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from sessgit.branch.merging import pads
from sessgit.branch.merging.sides import MergeSides
from sessgit.errors import SessgitError
from sessgit.history.resolve import session_title
from sessgit.history.views import Prices, read_turn
from sessgit.model import canonical, humanize, prices
from sessgit.model.conversation.turn import Tokens, Turn, add_by_model
from sessgit.store import layout
from sessgit.store.index import Row
from sessgit.store.store import Store

_LONGEST_OUTPUT = 4 << 20


def summary_heading(sides: MergeSides, rows: Sequence[Row]) -> str:
    """The first line of what is brought back, by which people find it in the log."""
    state = sides.theirs.state
    since = f" since turn {sides.shared}" if sides.shared else ""
    called = canonical.one_line(session_title(state), 100)
    turns = humanize.format_count(len(rows), "turn")
    return f"Brought back from {layout.short_name(sides.theirs.name)}, “{called}”: {turns}{since}"


def summary_text(store: Store, sides: MergeSides, rows: Sequence[Row], known: Prices) -> str:
    """What theirs found in these turns: what was asked and answered, the files, the scratchpad, what it used, at these
    prices."""
    turns = [read_turn(store, sides.tip, row) for row in rows]
    parts = [_summary_intro(sides)]
    for row, turn in zip(rows, turns, strict=True):
        parts.append(f"Turn {row.turn}. Asked:\n{_quote(turn.prompt.strip() or '(no text)')}")
        parts.append(f"Answered:\n{turn.answer.strip() or '(no answer)'}")
    parts += _file_lists(turns)
    parts += ["\n".join([f"Scratchpad, {name}:", *lines]) for name, lines in pads.new_lines(store, sides).items()]
    parts.append(_usage_line(turns, known))
    return "\n\n".join(parts)


def run_retell_command(command: str, given: str, cwd: str, env: Mapping[str, str]) -> str:
    """What the shell command makes of the text; raises SessgitError where it fails or says nothing.

    What it starts is not recorded.
    """
    try:
        code, data = _run_command(command, given.encode("utf-8", "replace"), cwd, {**env, "SESSGIT_OFF": "1"})
    except OSError as error:
        raise SessgitError(f"cannot run “{command}”: {error.strerror or error}", "Nothing was changed.") from error
    if len(data) > _LONGEST_OUTPUT:
        raise SessgitError(
            f"“{command}” printed more than {_LONGEST_OUTPUT >> 20} MiB", "Nothing was changed: use a shorter summary."
        )
    if code:
        how = f"exited with code {code}" if code > 0 else f"was killed by {_signal_name(-code)}"
        raise SessgitError(f"“{command}” {how}", "Nothing was changed.")
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise SessgitError(
            f"“{command}” printed nothing", "Nothing was changed. The command gets the text on standard input."
        )
    return text


def _run_command(command: str, given: bytes, cwd: str, env: Mapping[str, str]) -> tuple[int, bytes]:
    """The command's exit code and what it says; it is stopped where that is too much."""
    with tempfile.TemporaryFile() as source:  # not a pipe: who does not read it, and speaks, would wait for ever
        source.write(given)
        source.seek(0)
        with subprocess.Popen(command, shell=True, stdin=source, stdout=subprocess.PIPE, cwd=cwd, env=env) as running:
            assert running.stdout is not None
            try:
                text = running.stdout.read(_LONGEST_OUTPUT + 1)
            except BaseException:
                running.kill()
                raise
            if len(text) > _LONGEST_OUTPUT:
                running.kill()
        return running.returncode, text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def summary_reply(rows: Sequence[Row]) -> str:
    """The answer to what was brought back, as no model gave it."""
    turns = humanize.format_count(len(rows), "turn")
    return f"Understood. I know what was found there in {turns}, and will continue from here."


def _summary_intro(sides: MergeSides) -> str:
    if not sides.shared:
        return "It is another conversation and shares no turn with this one."
    turns = "turn" if sides.shared == 1 else humanize.format_count(sides.shared, "turn")
    if layout.is_other_version(sides.theirs.name):
        return f"It is another version of this conversation: both have the first {turns}, then continued separately."
    return f"It shares its first {turns} with this conversation, then continued separately."


def _file_lists(turns: Sequence[Turn]) -> list[str]:
    changed = list(dict.fromkeys(path for turn in turns for path in turn.files_changed))
    read = [path for path in dict.fromkeys(path for turn in turns for path in turn.files_read) if path not in changed]
    named = (("Files it changed", changed), ("Files it read", read))
    return ["\n".join([f"{what}:", *(f"- {path}" for path in paths)]) for what, paths in named if paths]


def _usage_line(turns: Sequence[Turn], known: Prices) -> str:
    by_model: dict[str, Tokens] = {}
    for turn in turns:
        by_model = add_by_model(by_model, turn.tokens)
    tokens = humanize.format_tokens(humanize.new_tokens(sum(by_model.values(), Tokens())))
    cost = humanize.format_money(prices.token_cost(by_model, known))
    return f"It used {tokens} tokens{f', {cost}' if cost else ''}."


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
