"""`sessgit show`: a conversation, a turn or a cell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from sessgit import agents
from sessgit.cli import frame, operands, render, text
from sessgit.cli.frame import ANY_ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation, Paint
from sessgit.cli.text import Column
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import resolve, show, turn_log
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.show import SessionCard, SessionStart, ShownCell, ShownTurn
from sessgit.model import canonical, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import Call, Change, Piece, Words, failure
from sessgit.model.conversation.turn import Tokens
from sessgit.store import layout
from sessgit.store.index import Branch


@frame.command("show", reads=True, excludes={"--raw": "--json --deps", "--kept": "--raw --deps"})
def run(
    cli: Invocation,
    address: str = ANY_ADDRESS,
    thinking: bool = option("--thinking", "Show the model's thinking in full."),
    full: bool = option("--full", "Show everything in full."),
    raw: bool = option("--raw", "Print the recorded transcript lines."),
    kept: str | None = option("--kept [FILE]", "List the files that an import kept, or print one."),
    deps: bool = option("--deps", "Of a cell: also show the cells it depends on, and those that depend on it."),
) -> Answer | None:
    """Show a conversation, a turn or a cell.

    For a conversation, prints a summary: what it is about, what it used, its files and its relatives. For a turn (@7),
    what was said and done, with long results folded. For a cell (@7.3, or its id), everything. @0 is the start. --raw
    prints the transcript lines of the turn (including those before its prompt), of the cell, or of all turns, byte for
    byte if the output is a pipe.
    """
    target = operands.target_or_cell_id(cli, address)
    if deps and not target.cell:
        name = cli.ident(target.branch.name)
        raise UsageError("--deps needs a cell.", f"`sessgit cells {name}` lists the cells.")
    if raw:
        _print_lines(cli, target)
        return None
    if kept is not None:
        return _kept(cli, target, kept)
    context, branch, prices = cli.context, target.branch, cli.prices
    if target.turn is None:
        progress = render.progress(cli, "Reading")
        if cli.json:
            return Answer({"session": show.session_document(context, branch, prices, progress)})
        return Answer({}, _card_lines(cli, show.session_card(context, branch, progress), full=full))
    if target.turn == 0 and not target.cell:
        start = show.show_start(context, branch)
        return Answer(lambda: {"turn": show.start_document(start)}, _start_lines(cli, start))
    if not target.cell:
        turn = show.show_turn(context, branch, target.turn)
        return Answer(
            lambda: {"turn": show.turn_document(turn, prices)},
            _turn_lines(cli, turn, thinking=thinking or full, full=full),
        )
    cell = show.show_cell(context, branch, target.turn, target.cell)
    document = show.cell_document(cell, prices) if cli.json else {}
    if deps:
        return _cell_with_dependencies(cli, branch, cell, document)
    return Answer({"cell": document}, _cell_lines(cli, cell))


def _cell_with_dependencies(cli: Invocation, branch: Branch, cell: ShownCell, document: dict[str, Any]) -> Answer:
    from sessgit.cli.commands import cells

    own, whole = f"{cell.turn.row.turn}.{cell.ordinal}", cells.read_graph(cli, branch)
    if cli.json:
        return Answer({"cell": document | {"in_session": cells.related_json(whole, own)}})
    lines = chain(_cell_lines(cli, cell), cells.related(cli, branch, whole, own))
    return Answer({}, lines, notes=map("({})".format, whole.damage))


def _kept(cli: Invocation, target: ResolvedTarget, path: str) -> Answer | None:
    from sessgit.history import session_files

    store, tip = cli.store, target.branch.tip
    files = session_files.kept_files(store, tip)
    name = cli.ident(target.branch.name)
    if path and path not in files:
        raise NotFoundError(f"{name} keeps no file {path}", f"`sessgit show {name} --kept` lists its files.")
    if path and not cli.json:
        data = store.objects.blob(files[path][0])
        if cli.terminal.shows_output:
            render.raw(cli, [data])
        else:
            render.data([data])
        return None
    sizes = {one: size for one, size in session_files.file_sizes(store, tip).items() if path in ("", one)}
    document: dict[str, object] = {"kept": [{"path": one, "bytes": size} for one, size in sizes.items()]}
    if path:
        document["text"] = store.objects.blob(files[path][0]).decode("utf-8", "replace")
    rows = [(text.size(size), text.clean(one, 300)) for one, size in sizes.items()]
    lines = text.table(cli, (Column(right=True), Column(least=20)), rows)
    return Answer(document, lines, notes=[] if sizes else [f"{name} keeps no files of another system."])


def _print_lines(cli: Invocation, target: ResolvedTarget) -> None:
    if target.turn is None:
        render.raw(cli, show.raw_session(cli.store, target.branch))
    elif target.cell:
        cell = show.show_cell(cli.context, target.branch, target.turn, target.cell)
        render.raw(cli, show.raw_cell(cli.store, cell))
    elif target.turn:
        resolve.row_of(cli.index, target.branch, target.turn)
        render.raw(cli, show.raw_turn(cli.store, target.branch, target.turn))


_FILES = 12
_PATH = 44
_LINES = 4
_KEYS = 6
_field = partial(text.field, least=12, style="bold")


def _turn_lines(cli: Invocation, shown: ShownTurn, *, thinking: bool, full: bool) -> Iterator[str]:
    """Yield the turn from its prompt to its answer."""
    row, content = shown.row, shown.content
    name = f"{cli.ident(shown.branch.name)}@{row.turn}"
    cost = text.money(prices.token_cost(content.tokens, cli.prices) if content.tokens else None)
    used = ", ".join(filter(None, [_new_tokens(content.total), cost]))
    when = _clock(cli, content.time, row.time)
    yield from text.heading(cli, name, "", when, text.clean(content.model, 200), used, text.duration(shown.seconds))
    for note in _notes(shown):
        yield cli.paint("dim", text.cut(f"{' ' * len(name)}  {note}", cli.width))
    yield from _TurnPieces(cli, shown, thinking=thinking, full=full).draw(shown.pieces)
    ending = "" if content.answer else "No answer."
    if content.interrupted:
        ending = "Interrupted." if content.answer else "Interrupted before an answer."
    if ending:
        yield ""
        yield cli.paint("dim", ending)


def _notes(shown: ShownTurn) -> Iterator[str]:
    if shown.row.compacted:
        yield "the conversation was compacted before this turn"
    if shown.cut:
        yield f"only its beginning: forked at {shown.cut}"
    if len(shown.row.commits) > 1:
        yield f"recorded in {len(shown.row.commits)} commits, the last one {shown.row.commit[:12]}"
    for name, lines in shown.subagents.items():
        yield f"subagent {text.clean(name, 80)}: {text.counted(lines, 'line')}"


def _cell_lines(cli: Invocation, shown: ShownCell) -> Iterator[str]:
    """Yield all of a cell: its input, its result, the cells it needed and those that needed it."""
    row, call = shown.turn.row, shown.call
    result = (failure(call.cell.ok, call.exit_code) or "ok") if call else ""
    yield from text.heading(
        cli, f"{cli.ident(row.branch)}@{row.turn}.{shown.ordinal}", text.clean(shown.cell.operation, 200), result,
        _new_tokens(shown.tokens), text.duration(shown.seconds), _clock(cli, shown.time, row.time),
    )  # fmt: skip
    facts = [shown.cell.id, text.numbers("line", list(shown.cell.lines), 100)]
    for word, ordinals in (("after", shown.depends), ("before", shown.dependents)):
        facts.append(f"{word} {', '.join(f'{row.turn}.{ordinal}' for ordinal in ordinals)}" if ordinals else "")
    yield from (cli.paint("dim", line) for line in text.fold(facts, cli.width, "  ·  "))
    yield ""
    if call is None:
        yield from _message(cli, shown)
        return
    for change in call.changes:
        yield cli.paint("bold", text.path(cli, shown.turn.branch.state.project, change.path, cli.width))
        yield from _diff(cli.paint, change)
    if not call.changes:
        yield from _call_input(cli, call)
    if call.result_line:
        output = _output(call)
        yield ""
        yield cli.paint("bold", "Output" if output else "No output")
        yield from output


def _message(cli: Invocation, shown: ShownCell) -> Iterator[str]:
    """Yield the words of the model."""
    if not shown.words:
        yield "No text."
    for number, words in enumerate(shown.words):
        if number:
            yield ""
        if words.thinking:
            yield from (cli.paint("dim", line) for line in ["thinking:", *text.plain(words.text)])
        else:
            yield from _prose(cli, words.text, cli.width)


def _start_lines(cli: Invocation, shown: SessionStart) -> Iterator[str]:
    """Yield the place before turn 1."""
    state, origin, at = shown.branch.state, shown.branch.state.origin, shown.at
    name = cli.ident(shown.branch.name)
    when = _clock(cli, state.created, shown.time)
    yield from text.heading(cli, f"{name}@0", "", "the start", when, text.clean(cli.short(state.project)))
    if origin is not None and at is not None:
        turns = "Its first turn is shared with" if at.turn == 1 else f"Its first {at.turn:,} turns are shared with"
        was_rewound = at.turn < origin.turn
        place = f"turn {origin.turn}" if was_rewound else text.fork_place(cli, at)
        note = ", and rewound since" if was_rewound else ""
        parent = f"{cli.ident(at.branch)}: forked at {place}, commit {origin.commit[:12]}{note}"
        yield from text.paragraph(cli, f"{turns} {parent}.")
    elif state.turns:
        yield from text.paragraph(cli, f"Nothing comes before turn 1. To show it: sessgit show {name}@1")
    else:
        yield "No turns yet."


def _card_lines(cli: Invocation, shown: SessionCard, *, full: bool) -> Iterator[str]:
    """Yield the session on a page: its facts, files, relatives and last words."""
    state, name = shown.state, cli.ident(shown.branch.name)
    yield from text.session_heading(cli, shown.branch)
    indent = len(name) + 2
    if state.name and state.title and state.title != state.name:
        yield from text.paragraph(cli, f"title in the client: “{text.clean(state.title, 200)}”", indent=indent)
    if state.description:
        yield from text.paragraph(cli, state.description, indent=indent)
    labels = " ".join(text.label(label, 60) for label in state.labels)
    confidence = "" if state.confidence is None else f"confidence {state.confidence:g}"
    authored = [f"labels {labels}" if labels else "", text.clean(state.stage, 60), confidence]
    yield from text.field(cli, " " * indent, authored)
    yield ""
    for label, parts in (*_session_facts(cli, shown), *_program_facts(cli, shown)):
        yield from _field(cli, label, parts)
    if memory := state.unified.working_memory:
        size = f"{text.counted(len(memory), 'key')}, {text.size(sessions.memory_size(memory))}:"
        keys = [text.clean(key, 30) or "(no name)" for key in sorted(memory)]
        yield from _field(cli, "Memory", [size, *text.some(keys, _KEYS)], between="  ")
    yield from _field(cli, "Exported", [text.clean(cli.short(state.unified.trajectory.export_path or ""), 300)])
    for number, parts in enumerate(_source(shown.source)):
        yield from _field(cli, "" if number else "Imported", parts)
    label = "Files"
    for verb, paths in (("changed", shown.changed), ("read", shown.read)):
        if paths:
            names = [text.path(cli, state.project, path, _PATH) for path in paths]
            names = names if full else text.some(names, _FILES)
            yield from _field(cli, label, [f"{len(paths)} {verb}:", *names], between="  ")
            label = ""
    yield from _field(cli, "Role", [text.clean(state.unified.metadata.role or "")])
    for number, relative in enumerate(_family(cli, shown)):
        yield from _field(cli, "" if number else "Family", [relative])
    yield from _field(cli, "Redacted", [text.counted(state.redacted, "secret")] if state.redacted else [])
    if shown.only_here:
        restore = f"sessgit restore {name.partition('.')[0]}"
        yield from _field(cli, "Kept", ["only in this store", "the client has no transcript", restore])
    version = text.clean(state.agent_version, 40)
    yield from _field(cli, "Client", [f"{agents.of(state).title} {version}" if version else ""])
    yield from _last_turn(cli, shown, full=full)


def _session_facts(cli: Invocation, shown: SessionCard) -> Iterator[tuple[str, list[str]]]:
    """Yield where and when it took place, how large it is, and what each model used."""
    state, known_prices = shown.state, cli.prices
    branch = f"branch {text.clean(state.git_branch, 100)}" if state.git_branch else ""
    yield "Project", [text.clean(cli.short(state.project), 300), branch]
    yield "Time", _times(cli, shown)
    turns, messages = text.counted(state.turns, "turn"), text.counted(state.messages, "message")
    yield "Size", [turns, messages, text.counted(state.cells, "cell")]
    models = sorted({*state.tokens, *state.calls}, key=lambda model: -state.tokens.get(model, Tokens()).total)
    label = "Model"
    if len(models) > 1:
        cost = text.money(turn_log.session_cost(state, known_prices)) if state.tokens else ""
        yield "Tokens", [*_tokens(turn_log.total_tokens(state)), cost]
        label = "Models"
    for model in models:
        tokens = state.tokens.get(model, Tokens())
        calls = text.counted(state.calls.get(model, 0), "call")
        cost = text.money(prices.token_cost({model: tokens}, known_prices))
        yield label, [text.clean(model, 60), calls, *_tokens(tokens), cost]
        label = ""
    if shown.subagents:
        cost = text.money(prices.token_cost(shown.subagents, known_prices))
        total = sum(shown.subagents.values(), Tokens())
        yield "Subagents", [*_tokens(total), f"{cost} more" if cost else ""]


def _times(cli: Invocation, shown: SessionCard) -> list[str]:
    """From when to when, whether it is live or has ended, and whether it is headless."""
    state = shown.state
    span = _span(cli, state.created, state.updated)
    if layout.is_side_branch(shown.branch.name):
        return [span]
    standing: str = state.state
    if agents.is_open(cli.env.homes, state.agent_id):
        standing = "live"
    elif " – " in (rest := _span(cli, state.updated, state.ended)):  # it continued after its last turn
        standing += f" {rest.rpartition(' – ')[2]}"
    return [span, standing, "headless" if state.is_headless else ""]


def _program_facts(cli: Invocation, shown: SessionCard) -> Iterator[tuple[str, list[str]]]:
    """Yield what a program that drives the session has set."""
    own = shown.state.unified
    activation, budget = own.activation, own.budget
    active = {None: "", True: "active", False: "not active"}[activation.rlm_active]
    mode = f"({activation.activation_mode})" if activation.activation_mode else ""
    complexity = "" if activation.complexity_score is None else f"complexity {activation.complexity_score:g}"
    depth = _of("depth", activation.current_depth, activation.max_depth)
    calls = _of("recursive calls", budget.total_recursive_calls, budget.max_recursive_calls)
    cost = f"{text.money(budget.cost_usd)} in total" if budget.cost_usd else ""
    version = text.clean(own.metadata.rlm_version or "", 40)
    yield "Program", [version, f"{active} {mode}".strip(), complexity, depth, calls, cost]
    yield "", [text.clean(activation.activation_reason or "", 200)]


def _source(note: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield from which system it was imported, then what that says of it."""
    if not note.get("system"):
        return
    yield [f"from {text.clean(str(note['system']), 20)}, there {text.clean(str(note.get('id', '')), 100)}"]
    facts, out = dict(note.get("facts") or {}), list[str]()
    if tokens := facts.pop("tokens", 0):
        out.append(f"{text.tokens(int(tokens))} tokens")
    if cost := facts.pop("cost_usd", 0):
        out.append(text.money(float(cost)))
    for key, value in facts.items():
        words = text.some([text.clean(str(one), _PATH) for one in value], _KEYS) if isinstance(value, list) else [value]
        out.append(f"{text.clean(key, 30).replace('_', ' ')} {', '.join(text.clean(str(one), 100) for one in words)}")
    yield out


def _family(cli: Invocation, shown: SessionCard) -> Iterator[str]:
    """Yield the conversation it was forked from, its forks, its side branches, its parent and its children."""
    name, log = shown.branch.name, shown.log
    if layout.is_side_branch(name):
        what = "left behind by a rewind of" if layout.is_rewound_branch(name) else "another version of"
        yield f"{what} {cli.ident(layout.session_of(name))}"
    if shown.at is not None:
        parent = text.title(shown.parent.state, 60) if shown.parent else "(not in this store)"
        yield f"forked from {text.fork_place(cli, shown.at)}  {parent}"
    for fork in (fork for turn in sorted(log.forks) for fork in log.forks[turn]):
        at = f"at {text.clean(fork.cell)}" if fork.cell else f"after turn {fork.turn}"
        at += f" (from {text.fork_place(cli, fork.left)})" if fork.is_elsewhere else ""
        yield f"fork {cli.ident(fork.branch.name)}  {text.title(fork.branch.state, 60)}, {at}"
    for side in (side for turn in sorted(log.left) for side in log.left[turn]):
        yield f"{text.side_branch_phrase(side, f' after turn {side.turn}')}: {cli.ident(side.branch.name)}"
    if above := shown.state.unified.metadata.parent:
        yield f"child of {cli.ident(above)}"
    for child in cli.index.children_of(name):
        yield f"child {cli.ident(child.name)}  {text.title(child.state, 60)}"


def _last_turn(cli: Invocation, shown: SessionCard, *, full: bool) -> Iterator[str]:
    last = shown.last
    if last is None:
        yield ""
        yield "No turns yet."
        return
    answer = last.answer or ("(interrupted)" if last.interrupted else "(no answer)")
    sections = {f"Last prompt (turn {shown.state.turns})": last.prompt or "(no text)", "Last answer": answer}
    for heading, words in sections.items():
        yield ""
        yield cli.paint("bold", heading)
        lines = list(text.paragraph(cli, words.strip(), indent=2))
        more = 0 if full or len(lines) <= _LINES + 1 else len(lines) - _LINES
        yield from lines[: len(lines) - more]
        if more:
            yield cli.paint("dim", f"  … {text.counted(more, 'more line')}")


def _new_tokens(counts: Tokens) -> str:
    new = text.new_tokens(counts)
    return f"{text.tokens(new)} tokens" if new else ""


def _tokens(counts: Tokens) -> list[str]:
    """New tokens, and those of the cache."""
    cached = ((counts.cache_read, "read"), (counts.cache_write, "written"))
    cache = ", ".join(f"{text.tokens(number)} {word}" for number, word in cached if number)
    return [f"{text.tokens(counts.input)} in, {text.tokens(counts.output)} out", f"cache {cache}" if cache else ""]


def _of(noun: str, number: int | None, limit: int | None) -> str:
    """`depth 1 of 3`, or as much of it as is known."""
    if number is None:
        return "" if limit is None else f"{noun} up to {limit}"
    return f"{noun} {number}" if limit is None else f"{noun} {number} of {limit}"


def _span(cli: Invocation, began: str, ended: str) -> str:
    """`02 Mar 11:40 – 12:10`, or one time if both are shown alike."""
    moments = [moment for moment in map(canonical.seconds, (began, ended)) if moment is not None]
    shown = list(dict.fromkeys(map(text.Clock(cli.now, moments), moments)))
    if len(shown) == 2 and time.localtime(moments[0])[:3] == time.localtime(moments[1])[:3]:
        shown[1] = time.strftime("%H:%M", time.localtime(moments[1]))
    return " – ".join(shown)


def _clock(cli: Invocation, moment: str, otherwise: float) -> str:
    """Return the RFC 3339 time as a person reads it; if there is none, the other one."""
    return text.time_of_day(cli.now, canonical.seconds(moment) or otherwise)


_OUTPUT, _DIFF, _PROMPT, _NOTICE = 5, 16, 40, 3
"""So many lines are shown of what is folded."""
_ABOUT = 8
"""A tool's name leaves so many columns for what the call is about."""


def _prose(cli: Invocation, words: str, columns: int) -> list[str]:
    """Return the model's words: Markdown drawn with colours, else its source; code in it is not wrapped."""
    lines = text.plain(words)
    if cli.terminal.colour:
        return render.markdown("\n".join(lines), columns)
    out, is_code = list[str](), False
    for line in lines:
        is_fence = line.lstrip().startswith("```")
        is_code ^= is_fence
        out += [line] if is_code or is_fence else text.wrap(line, columns)
    return out


def _diff(paint: Paint, change: Change) -> Iterator[str]:
    """Yield the lines of a diff, red and green."""
    for line in change.diff:
        style = "cyan" if line.startswith("@@") else {"-": "red", "+": "green"}.get(line[:1], "")
        yield paint(style, " ".join(text.plain(line)))


def _output(call: Call) -> list[str]:
    """Return the lines of a call's output, with a line for its images."""
    return [*(text.plain(call.output) if call.output.strip() else []), *_images(len(call.images))]


class _TurnPieces:
    """Draws the pieces of a turn, each with the address of its cell in the margin."""

    def __init__(self, cli: Invocation, shown: ShownTurn, *, thinking: bool, full: bool) -> None:
        self.cli, self.paint, self.thinking, self.full = cli, cli.paint, thinking, full
        self.turn, self.project = shown.row.turn, shown.branch.state.project
        self.margin = len(f"{self.turn}.{len(shown.content.cells)}") + 2
        self.columns = cli.width - self.margin

    def draw(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """Yield the pieces, with empty lines around those that have several lines."""
        was_apart = True
        for piece in pieces:
            lines = list(self._call(piece) if isinstance(piece, Call) else self._words(piece))
            is_apart = len(lines) > 1 or (isinstance(piece, Words) and not piece.thinking)
            if is_apart or was_apart:
                yield ""
            yield from lines
            was_apart = is_apart

    def _words(self, words: Words) -> Iterator[str]:
        mark, style = f"{self.turn}.{words.ordinal}" if words.ordinal else "", "yellow"
        if words.by == "model" and not words.thinking:
            lines = _prose(self.cli, words.text.strip("\r\n"), self.columns)
        elif words.by == "model":
            lines = self._wrapped(words)
            if not self.thinking:
                more = f"  ({text.counted(len(lines), 'line')})" if len(lines) > 1 else ""
                first = next((line.strip() for line in lines if line.strip()), "")
                lines = [text.cut(f"thinking: {first}", self.columns - len(more)) + more]
            lines = [self.paint("dim", line) for line in lines]
        elif words.by == "person":
            mark, style, lines = "❯", "green", self._folded(self._wrapped(words), _PROMPT)
        else:
            mark, style = "·", "dim"
            lines = [self.paint("dim", line) for line in self._folded(self._wrapped(words), _NOTICE)]
        return text.hanging_indent(self.paint(style, mark) + " " * (self.margin - len(mark)), lines)

    def _call(self, call: Call) -> Iterator[str]:
        """Yield the address, the tool, what the call is about and its outcome on one line; the result below."""
        end = "  ".join(filter(None, (failure(call.cell.ok, call.exit_code) or "ok", text.duration(call.seconds))))
        room = self.columns - text.width(end) - 4
        least = _ABOUT if call.about else 0
        tool = text.clean(call.tool.rpartition("__")[2] or call.tool, 40)
        tool = text.cut(tool, max(_ABOUT, room - least))
        about = text.subject(self.cli, self.project, call.about, call.file, max(least, room - text.width(tool)))
        address = self.paint("yellow", f"{self.turn}.{call.ordinal}".ljust(self.margin))
        end = self.paint("dim" if call.cell.ok and not call.exit_code else "red", end)
        yield text.spread(f"{address}{self.paint('cyan', tool)}  ", about, end, self.cli.width)
        if call.changes and call.cell.ok:
            lines = self._folded(list(self._changes(call.changes)), _DIFF)
        else:
            lines = self._folded(_output(call), _OUTPUT)
        for line in lines:
            yield " " * self.margin + (line if self.full else text.cut(line, self.columns))

    def _changes(self, changes: Sequence[Change]) -> Iterator[str]:
        """Yield the diffs, of several files each with its path."""
        for change in changes:
            if len(changes) > 1:
                yield self.paint("bold", text.path(self.cli, self.project, change.path, self.columns))
            yield from _diff(self.paint, change)

    def _wrapped(self, words: Words) -> list[str]:
        lines = text.wrapped(words.text, self.columns) if words.text.strip() else []
        return [*lines, *(() if words.by == "model" else _images(len(words.images)))]

    def _folded(self, lines: list[str], limit: int) -> list[str]:
        """Return the first lines and how many more there are; a single line is not folded away."""
        if self.full or len(lines) <= limit + 1:
            return lines
        return [*lines[:limit], self.paint("dim", f"… {text.counted(len(lines) - limit, 'more line')}")]


def _call_input(cli: Invocation, call: Call) -> Iterator[str]:
    """Yield the arguments of a call: JSON, or of a command the command and then the other arguments."""
    command = call.input.get("command")
    if not isinstance(command, str):
        document = json.dumps(canonical.bounded(dict(call.input)), ensure_ascii=False, indent=2)
        yield from _code(cli, document, "json")
        return
    yield from _code(cli, command, "bash")
    for key, value in call.input.items():
        if key != "command":
            words = value if isinstance(value, str) else json.dumps(canonical.bounded(value), ensure_ascii=False)
            yield from text.paragraph(cli, " ".join(text.plain(f"{key}: {words}")))


def _code(cli: Invocation, source: str, language: str) -> list[str]:
    lines = text.plain(source)
    return render.code("\n".join(lines), language) if cli.terminal.colour else lines


def _images(number: int) -> list[str]:
    return [f"({text.counted(number, 'image')})"] if number else []
