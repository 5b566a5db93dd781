"""What `show` prints: the card of a session, a turn with its pieces, a cell with all that is known of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from sessgit import agents
from sessgit.cli import text
from sessgit.cli.invocation import Invocation
from sessgit.cli.pages import turn_pieces
from sessgit.cli.pages.log import aside, departed
from sessgit.cli.pages.turn_pieces import Pieces, Wanted
from sessgit.cli.render import Paint
from sessgit.history import views
from sessgit.history.log import ForkEntry
from sessgit.history.resolve import session_title
from sessgit.history.show import SessionCard, SessionStart, ShownCell, ShownTurn
from sessgit.model import canonical, prices, unified_state
from sessgit.model.conversation.turn import Tokens
from sessgit.store import layout

_LABEL = 12
_FILES = 12
_PATH = 44
_WORDS = 4
_KEYS = 6
_KEY = 30


def card(here: Invocation, shown: SessionCard, wanted: Wanted) -> Iterator[str]:
    """The session on a page: who, when, how much, which files, which relatives, the last words."""
    yield from _Card(here, shown).page(wanted)


def turn(here: Invocation, shown: ShownTurn, wanted: Wanted) -> Iterator[str]:
    """The turn from its prompt to its answer."""
    paint, row, told = Paint(here.colour), shown.row, shown.told
    name = f"{here.ident(shown.branch.name)}@{row.turn}"
    cost = text.money(prices.token_cost(told.tokens, here.settings.prices) if told.tokens else None)
    new = text.said_and_heard(told.total)
    used = ", ".join(part for part in (f"{text.tokens(new)} tokens" if new else "", cost) if part)
    when = _clock(here, canonical.seconds(told.time) or row.time)
    yield from _heading(here, name, [when, told.model, used, turn_pieces.duration(shown.seconds)])
    for note in _notes(here, shown):
        yield paint("dim", text.cut(f"{' ' * len(name)}  {note}", here.width))
    yield from Pieces(here, shown, wanted).draw(shown.pieces)
    if not told.answer:
        yield ""
        yield paint("dim", "Interrupted before an answer." if told.interrupted else "No answer.")
    elif told.interrupted:
        yield ""
        yield paint("dim", "Interrupted.")


def cell(here: Invocation, shown: ShownCell) -> Iterator[str]:
    """All of a cell: what it got, what came of it, what it needed and what needed it."""
    paint, own, call, row = Paint(here.colour), shown.cell, shown.call, shown.turn.row
    name = f"{here.ident(row.branch)}@{row.turn}.{shown.ordinal}"
    when = _clock(here, canonical.seconds(shown.time) or row.time)
    used = f"{text.tokens(text.said_and_heard(shown.tokens))} tokens" if shown.tokens.total else ""
    result = turn_pieces.outcome(call) if call else ""
    yield from _heading(here, f"{name}  {own.operation}", [result, used, turn_pieces.duration(shown.seconds), when])
    facts = [own.id, _numbers("line", list(own.lines)), *_around(shown)]
    yield from (paint("dim", line) for line in text.fold(facts, here.width, "  ·  "))
    if call is None:
        if not shown.said:
            yield ""
            yield "No text."
        for words in shown.said:
            yield ""
            drawn = text.plain(words.text) if words.thinking else turn_pieces.prose(here, words.text, here.width)
            yield from (paint("dim", line) for line in ["thinking:", *drawn]) if words.thinking else drawn
        return
    yield ""
    if call.changes:
        for change in call.changes:
            yield paint("bold", turn_pieces.path(here, shown.turn.branch.state.project, change.path, here.width))
            yield from turn_pieces.diff(paint, change)
    else:
        yield from turn_pieces.given(here, call)
    if call.result_line:
        yield ""
        yield paint("bold", "Output" if call.output.strip() or call.images else "No output")
        yield from text.plain(call.output) if call.output.strip() else []
        yield from turn_pieces.images(call.images)


def start(here: Invocation, shown: SessionStart) -> Iterator[str]:
    """What the place before turn 1 is."""
    state = shown.branch.state
    name = f"{here.ident(shown.branch.name)}@0"
    begun = canonical.seconds(state.created) or shown.time
    where = text.clean(here.short(state.project))
    yield from _heading(here, name, ["the start", _clock(here, begun), where])
    origin, at = state.origin, shown.at
    if origin is not None and at is not None:
        turns = "Its first turn is shared with" if at.turn == 1 else f"Its first {at.turn:,} turns are shared with"
        where = f"forked at {departed(here, at)}, commit {origin.commit[:12]}"
        if at.turn < origin.turn:
            where = f"forked at turn {origin.turn}, commit {origin.commit[:12]}, and rewound since"
        yield from text.wrap(f"{turns} {here.ident(at.branch)}: {where}.", here.width)
    elif state.turns:
        yield from text.wrap(
            f"Nothing comes before turn 1. To show it: sessgit show {here.ident(shown.branch.name)}@1", here.width
        )
    else:
        yield "No turns yet."


class _Card:
    def __init__(self, here: Invocation, shown: SessionCard) -> None:
        self.here, self.shown, self.state = here, shown, shown.state
        self.paint = Paint(here.colour)
        self.name = here.ident(shown.branch.name)

    def page(self, wanted: Wanted) -> Iterator[str]:
        yield from self._called()
        yield ""
        yield from self._facts()
        yield from self._files(_FILES if not wanted.full else len(self.shown.changed) + len(self.shown.read))
        yield from self._family()
        yield from self._kept()
        yield from self._last(wanted)

    def _called(self) -> Iterator[str]:
        """Its name, what the client calls it where that differs, and what a person says of it."""
        state, indent = self.state, " " * (len(self.name) + 2)
        first = f"{self.name}  {text.clean(session_title(state), 200)}"
        yield self.paint("yellow", self.name) + self.paint("bold", text.cut(first, self.here.width)[len(self.name) :])
        if state.name and state.title and state.title != state.name:
            yield from self._indented(indent, f"title in the client: “{text.clean(state.title, 200)}”")
        if state.description:
            yield from (line for said in text.plain(state.description) for line in self._indented(indent, said))
        labels = ", ".join(text.clean(label, 60) for label in state.labels)
        sure = "" if state.confidence is None else f"confidence {state.confidence:g}"
        authored = [part for part in (f"labels {labels}" if labels else "", text.clean(state.stage, 60), sure) if part]
        yield from self._indented(indent, "  ·  ".join(authored)) if authored else ()

    def _indented(self, indent: str, said: str) -> Iterator[str]:
        return (indent + line for line in text.wrap(said, self.here.width - len(indent)))

    def _facts(self) -> Iterator[str]:
        state = self.state
        branch = f"branch {text.clean(state.git_branch, 100)}" if state.git_branch else ""
        yield from self._line("Project", text.clean(self.here.short(state.project), 300), branch)
        yield from self._line("Time", *self._times())
        counts = [
            text.counted(state.turns, "turn"),
            text.counted(state.messages, "message"),
            text.counted(state.cells, "cell"),
        ]
        yield from self._line("Size", *counts)
        cost = text.money(views.session_cost(state, self.here.settings.prices)) if state.tokens else ""
        models = sorted({*state.tokens, *state.calls}, key=lambda model: -state.tokens.get(model, Tokens()).total)
        if len(models) > 1:
            yield from self._line("Tokens", *_tokens(views.total_tokens(state)), cost)
        for number, model in enumerate(models):
            label = "" if number else "Models" if len(models) > 1 else "Model"
            yield from self._line(label, text.clean(model, 60), *self._model(model))
        if self.shown.subagents:
            total = sum(self.shown.subagents.values(), Tokens())
            cost = text.money(prices.token_cost(self.shown.subagents, self.here.settings.prices))
            yield from self._line("Subagents", *_tokens(total), f"{cost} more" if cost else "")
        yield from self._program()

    def _program(self) -> Iterator[str]:
        """What a program that drives it set, if one did."""
        own = self.state.unified
        on, budget, memory = own.activation, own.budget, own.working_memory
        active = "" if on.rlm_active is None else "active" if on.rlm_active else "not active"
        mode = " ".join(part for part in (active, f"({on.activation_mode})" if on.activation_mode else "") if part)
        score = "" if on.complexity_score is None else f"complexity {on.complexity_score:g}"
        depth = _of("depth", on.current_depth, on.max_depth)
        calls = _of("recursive calls", budget.total_recursive_calls, budget.max_recursive_calls)
        cost = f"{text.money(budget.cost_usd)} in total" if budget.cost_usd else ""
        version = text.clean(own.rlm_version, 40)
        yield from self._line("Program", version, mode, score, depth, calls, cost)
        if on.activation_reason:
            yield from self._labelled("", text.wrap(text.clean(on.activation_reason, 200), self.here.width - _LABEL))
        if memory:
            size = f"{text.counted(len(memory), 'key')}, {text.size(unified_state.memory_size(memory))}:"
            names = [text.clean(key, _KEY) or "(no name)" for key in sorted(memory)[:_KEYS]]
            more = [f"and {len(memory) - _KEYS} more"] if len(memory) > _KEYS else []
            yield from self._labelled("Memory", text.fold([size, *names, *more], self.here.width - _LABEL, "  "))
        if own.export_path:
            yield from self._line("Exported", text.clean(self.here.short(own.export_path), 300))

    def _model(self, model: str) -> list[str]:
        tokens = self.state.tokens.get(model, Tokens())
        cost = text.money(prices.token_cost({model: tokens}, self.here.settings.prices))
        return [text.counted(self.state.calls.get(model, 0), "call"), *_tokens(tokens), cost]

    def _times(self) -> list[str]:
        state = self.state
        live = agents.of(state).home.is_open(self.here.config, state.agent_id)
        if layout.is_side_branch(self.shown.branch.name):
            return [_span(self.here, state.created, state.updated)]
        how = "live" if live else state.state
        later = _span(self.here, state.updated, state.ended)
        if not live and " – " in later:  # it went on for a while after its last turn
            how = f"{how} {later.rpartition(' – ')[2]}"
        return [_span(self.here, state.created, state.updated), how, "headless" if state.is_headless else ""]

    def _files(self, most: int) -> Iterator[str]:
        for label, paths in (("changed", self.shown.changed), ("read", self.shown.read)):
            if not paths:
                continue
            shown = [turn_pieces.path(self.here, self.state.project, path, _PATH) for path in paths[:most]]
            more = [f"and {len(paths) - most} more"] if len(paths) > most else []
            first = not (label == "read" and self.shown.changed)
            lines = text.fold([f"{len(paths)} {label}:", *shown, *more], self.here.width - _LABEL, "  ")
            yield from self._labelled("Files" if first else "", lines)

    def _family(self) -> Iterator[str]:
        lines = [*self._origin()]
        lines += (self._relative(fork) for fork in self.shown.family.forks)
        for left in self.shown.family.left:
            lines.append(f"{aside(left, f' after turn {left.turn}')}: {self.here.ident(left.branch.name)}")
        room = self.here.width - _LABEL
        yield from self._labelled("Family", [inner for line in lines for inner in text.wrap(line, room)])

    def _origin(self) -> Iterator[str]:
        at, parent = self.shown.family.at, self.shown.family.parent
        name = self.shown.branch.name
        if layout.is_side_branch(name):
            what = "left behind by a rewind of" if layout.is_rewound_branch(name) else "another version of"
            yield f"{what} {self.here.ident(layout.session_of(name))}"
        if at is not None:
            called = text.clean(session_title(parent.state), 60) if parent else "(not in this store)"
            yield f"forked from {departed(self.here, at)}  {called}"

    def _relative(self, fork: ForkEntry) -> str:
        at = f"at {text.clean(fork.cell)}" if fork.cell else f"after turn {fork.turn}"
        at += f" (from {departed(self.here, fork.left)})" if fork.is_elsewhere else ""
        return f"fork {self.here.ident(fork.branch.name)}  {text.clean(session_title(fork.branch.state), 60)}, {at}"

    def _kept(self) -> Iterator[str]:
        state = self.state
        if state.redacted:
            yield from self._line("Redacted", f"{text.counted(state.redacted, 'secret')}")
        if self.shown.only_here:
            said = (
                "only in this store",
                "the client has no transcript",
                f"sessgit restore {self.name.partition('.')[0]}",
            )
            yield from self._line("Kept", *said)
        version = text.clean(state.agent_version, 40)
        yield from self._line("Client", f"Claude Code {version}" if version and state.agent == "claude" else version)

    def _last(self, wanted: Wanted) -> Iterator[str]:
        last = self.shown.last
        if last is None:
            yield ""
            yield "No turns yet."
            return
        answer = last.answer or ("(interrupted)" if last.interrupted else "(no answer)")
        for label, said in (
            (f"Last prompt (turn {self.state.turns})", last.prompt or "(no text)"),
            ("Last answer", answer),
        ):
            yield ""
            yield self.paint("bold", label)
            lines = text.wrapped(said.strip(), self.here.width - 2)
            shown = lines if wanted.full or len(lines) <= _WORDS + 1 else lines[:_WORDS]
            yield from (f"  {line}" for line in shown)
            if len(shown) < len(lines):
                yield self.paint("dim", f"  … {text.counted(len(lines) - len(shown), 'more line')}")

    def _line(self, label: str, *parts: str) -> Iterator[str]:
        said = [part for part in parts if part]
        if said:
            yield from self._labelled(label, text.fold(said, self.here.width - _LABEL, "  ·  "))

    def _labelled(self, label: str, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines):
            yield self.paint("bold", ("" if number else label).ljust(_LABEL)) + line


def _heading(here: Invocation, first: str, parts: Sequence[str]) -> Iterator[str]:
    """An address and what belongs to it, folded where it is too long for one line."""
    address = text.clean(first, 200)
    said = [address, *(text.clean(part, 200) for part in parts if part)]
    lines = text.fold(said, here.width, "  ·  ", " " * (text.width(address.partition("  ")[0]) + 2))
    paint, end = Paint(here.colour), len(address.partition("  ")[0])
    yield paint("yellow", lines[0][:end]) + paint("bold", lines[0][end:])
    yield from lines[1:]


def _notes(here: Invocation, shown: ShownTurn) -> Iterator[str]:
    """What happened before the turn and around it."""
    if shown.row.compacted:
        yield "the conversation was compacted before this turn"
    if shown.cut:
        yield f"only its beginning: forked at {shown.cut}"
    if len(shown.row.commits) > 1:
        yield f"recorded in {len(shown.row.commits)} commits, the last one {shown.row.commit[:12]}"
    for agent in shown.subagents:
        yield f"subagent {text.clean(agent.name, 80)}: {text.counted(agent.lines, 'line')}"


def _around(shown: ShownCell) -> list[str]:
    turn = shown.turn.row.turn
    return [
        f"{word} {', '.join(f'{turn}.{n}' for n in numbers)}"
        for word, numbers in (("after", shown.depends), ("before", shown.dependents))
        if numbers
    ]


def _numbers(noun: str, numbers: Sequence[int]) -> str:
    return f"{noun}{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _tokens(counts: Tokens) -> list[str]:
    """What was heard and said anew, and what the cache gave and took."""
    kinds = ((counts.cache_read, "read"), (counts.cache_write, "written"))
    cache = ", ".join(f"{text.tokens(number)} {word}" for number, word in kinds if number)
    said = f"{text.tokens(counts.input)} in, {text.tokens(counts.output)} out"
    return [said, f"cache {cache}"] if cache else [said]


def _of(noun: str, number: int | None, most: int | None) -> str:
    """`depth 1 of 3`, or as much of it as is known."""
    if number is None:
        return "" if most is None else f"{noun} up to {most}"
    return f"{noun} {number}" if most is None else f"{noun} {number} of {most}"


def _span(here: Invocation, began: str, ended: str) -> str:
    """`02 Mar 11:40 – 12:10`, or the one time where both are shown alike."""
    moments = [moment for moment in map(canonical.seconds, (began, ended)) if moment is not None]
    clock = text.clock(here.now, moments)
    shown = list(dict.fromkeys(time.strftime(clock, time.localtime(moment)) for moment in moments))
    if len(shown) == 2 and time.localtime(moments[0])[:3] == time.localtime(moments[1])[:3]:
        shown[1] = time.strftime("%H:%M", time.localtime(moments[1]))
    return " – ".join(shown)


def _clock(here: Invocation, moment: float) -> str:
    return text.at(text.clock(here.now, [moment]), moment)
