"""`sessgit show`: a conversation, a turn or a cell."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from sessgit import agents
from sessgit.cli import frame, operands, render, text
from sessgit.cli.frame import ANY_ADDRESS, Answer, option
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import turn_pieces
from sessgit.cli.pages.turn_pieces import ShowOptions, TurnPieces
from sessgit.cli.text import Column
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import resolve, show, views
from sessgit.history.resolve import ResolvedTarget
from sessgit.history.show import SessionCard, SessionStart, ShownCell, ShownTurn
from sessgit.model import canonical, prices
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.content import failure
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
    detail = ShowOptions(thinking, full)
    if target.turn is None:
        progress = render.progress(cli, "Reading")
        if cli.json:
            return Answer({"session": show.session_document(context, branch, prices, progress)})
        return Answer({}, _card_lines(cli, show.session_card(context, branch, progress), detail))
    if target.turn == 0 and not target.cell:
        start = show.show_start(context, branch)
        return Answer(lambda: {"turn": show.start_document(start)}, _start_lines(cli, start))
    if not target.cell:
        turn = show.show_turn(context, branch, target.turn)
        return Answer(lambda: {"turn": show.turn_document(turn, prices)}, _turn_lines(cli, turn, detail))
    cell = show.show_cell(context, branch, target.turn, target.cell)
    document = show.cell_document(cell, prices) if cli.json else {}
    if deps:
        return _cell_with_dependencies(cli, branch, cell, document)
    return Answer({"cell": document}, _cell_lines(cli, cell))


def _cell_with_dependencies(cli: Invocation, branch: Branch, cell: ShownCell, document: dict[str, Any]) -> Answer:
    from sessgit.cli.pages import cells as cells_page
    from sessgit.history import cell_graph, cells

    own = f"{cell.turn.row.turn}.{cell.ordinal}"
    progress = render.progress(cli, "Reading")
    whole = cell_graph.read_graph(cli.context, branch, progress=progress)
    if cli.json:
        return Answer({"cell": document | {"in_session": cells_page.related_json(whole, own)}})
    others = cells_page.related_nodes(whole, own)
    known = cells.cell_details(cli.store, branch, cells.turn_rows(cli.index, branch, others), others)
    related = cells_page.related(cli, branch, whole, own, known)
    return Answer({}, chain(_cell_lines(cli, cell), related), notes=map("({})".format, whole.damage))


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


def _turn_lines(cli: Invocation, shown: ShownTurn, options: ShowOptions) -> Iterator[str]:
    """Yield the turn from its prompt to its answer."""
    row, content = shown.row, shown.content
    name = f"{cli.ident(shown.branch.name)}@{row.turn}"
    cost = text.money(prices.token_cost(content.tokens, cli.prices) if content.tokens else None)
    used = ", ".join(filter(None, [_new_tokens(content.total), cost]))
    when = _clock(cli, content.time, row.time)
    yield from text.heading(
        cli, name, "", when, text.clean(content.model, 200), used, turn_pieces.duration(shown.seconds)
    )
    for note in _notes(shown):
        yield cli.paint("dim", text.cut(f"{' ' * len(name)}  {note}", cli.width))
    yield from TurnPieces(cli, shown, options).draw(shown.pieces)
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
        _new_tokens(shown.tokens), turn_pieces.duration(shown.seconds), _clock(cli, shown.time, row.time),
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
        yield cli.paint("bold", turn_pieces.path(cli, shown.turn.branch.state.project, change.path, cli.width))
        yield from turn_pieces.diff(cli.paint, change)
    if not call.changes:
        yield from turn_pieces.call_input(cli, call)
    if call.result_line:
        output = turn_pieces.output(call)
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
            yield from turn_pieces.prose(cli, words.text, cli.width)


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


def _card_lines(cli: Invocation, shown: SessionCard, options: ShowOptions) -> Iterator[str]:
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
            names = [turn_pieces.path(cli, state.project, path, _PATH) for path in paths]
            names = names if options.full else text.some(names, _FILES)
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
    yield from _last_turn(cli, shown, options)


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
        cost = text.money(views.session_cost(state, known_prices)) if state.tokens else ""
        yield "Tokens", [*_tokens(views.total_tokens(state)), cost]
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


def _last_turn(cli: Invocation, shown: SessionCard, options: ShowOptions) -> Iterator[str]:
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
        more = 0 if options.full or len(lines) <= _LINES + 1 else len(lines) - _LINES
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
