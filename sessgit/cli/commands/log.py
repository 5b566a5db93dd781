"""`sessgit log`: the turns of a conversation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from sessgit.cli import frame, operands, render, text
from sessgit.cli.frame import ADDRESS, AT_OP, LIMIT, SINCE, Answer, option, parse_time
from sessgit.cli.invocation import Invocation
from sessgit.cli.text import Column
from sessgit.errors import SessgitError, UsageError
from sessgit.history import turn_log
from sessgit.history.resolve import tags_by_commit
from sessgit.history.turn_log import BranchLog, ForkEntry, SideBranch, list_merges
from sessgit.model import canonical
from sessgit.model.conversation.message import parse_tools
from sessgit.model.conversation.session import is_terse
from sessgit.store import layout
from sessgit.store.index import Branch, Row

if TYPE_CHECKING:
    from sessgit.history.blame import CommitTurn


@frame.command(
    "log",
    reads=True,
    excludes={"--commit": "ADDRESS -n --limit --reverse --oneline --graph --rewound -p --text --since --tool --at-op"},
)
def run(
    cli: Invocation,
    address: str = ADDRESS,
    limit: int | None = LIMIT,
    reverse: bool = option("--reverse", "Oldest first."),
    oneline: bool = option("--oneline", "Print one line per turn: its address and its prompt."),
    graph: bool = option("--graph", "Draw all conversations of this family."),
    rewound: bool = option("--rewound", "Also show turns left behind by rewinds and turns of other versions."),
    texts: bool = option("-p, --text", "Also print the text of each turn."),
    since: str = SINCE,
    commit: str = option("--commit SHA", "The turns, of all conversations, that led to a commit of the project."),
    tool: str = option("--tool NAME", "Only turns that used this tool."),
    at_op: str = AT_OP,
    paths: list[str] = option("--path PATH", ""),
    everything: bool = option("--all", ""),
) -> Answer:
    """Show the turns of a conversation, newest first.

    After each prompt come the tools that were used and the number of new tokens (without those read from the cache);
    under a prompt of one word, such as "ok", the first line of the answer.
    Forks, rewinds and compactions appear between the turns where they happened. @N shows turns up to N. With -- PATH,
    only turns in which a tool read or changed PATH: a file, a folder or a glob.

    --commit shows the turns that wrote lines of a commit of the project at this folder, as `sessgit blame` knows them,
    the oldest first. --at-op shows the conversation as it was after that operation, even if it was deleted since.
    """
    if commit:
        from sessgit.history import blame

        oid, turns = blame.commit_turns(cli.context, cli.cwd, commit, os.environ, render.progress(cli, "Reading"))
        return Answer(lambda: _commit_json(cli, oid, turns), _commit_lines(cli, oid, turns))
    if everything:
        hint = "`sessgit ls --all` lists all conversations, `sessgit tree --all` draws them."
        raise UsageError("log shows one conversation.", hint)
    asof = operands.as_of(cli, at_op)
    target = operands.target_as_of(cli, asof, address)
    commits = operands.commits(cli, paths) if paths else None
    selection = turn_log.TurnFilter(parse_time(since, cli.now), tool, commits)
    if graph and (selection.narrows or reverse):
        raise UsageError("--graph draws all turns, newest first.", "To select or reverse turns, leave out --graph.")
    operands.check_no_cell(cli, target, "log")
    log = turn_log.branch_log(cli.index, target.branch, target.turn, limit, selection)

    def document() -> dict[str, object]:
        rows = [(log.branch.tip, row) for row in log.rows]
        if rewound:
            sides = chain.from_iterable(log.left[turn] for turn in sorted(log.left))
            rows += [(side.branch.tip, row) for side in sides for row in _side_rows(cli, side)]
        prices = cli.prices
        turns = [turn_log.turn_json(row, turn_log.read_turn(cli.store, tip, row), prices) for tip, row in rows]
        session = turn_log.session_json(log.branch, prices)
        return {"session": session, "turns": turns, "at_op": operands.as_of_json(asof)}

    headline = operands.as_of_headline(cli, asof)
    if graph:
        family = [branch for branch, _ in turn_log.session_family(cli.index, target.branch)]
        lines = _graph_lines(cli, family, limit, rewound=rewound)
    elif oneline:
        remarks = () if cli.json else headline  # standard output has addresses only
        return Answer(document, _oneline_lines(cli, log, reverse=reverse), remarks)
    else:
        lines = _header(cli, log)
        if limit != 0:
            lines = chain(lines, [""], _turn_lines(cli, log, reverse=reverse, rewound=rewound, texts=texts))
    return Answer(document, chain(headline, lines))


_NARROW = 66
"""With fewer columns the tools are left out: the prompts need the room."""
_TOKENS = 5
_RAIL = "│   "
_LONGEST = 1000
"""Characters of an answer's first line that are looked at before it is cut."""


def _turn_lines(cli: Invocation, log: BranchLog, *, reverse: bool, rewound: bool, texts: bool) -> Iterable[str]:
    """Return the turns with what happened around them; newest turn first, like git's log."""
    if not log.rows:
        return ["No matching turns." if log.branch.state.turns else "No turns yet."]
    return _LogPage(cli, log, reverse=reverse, rewound=rewound, texts=texts).lines()


def _header(cli: Invocation, log: BranchLog) -> Iterator[str]:
    state, name = log.branch.state, cli.ident(log.branch.name)
    tokens = text.tokens(text.new_tokens(turn_log.total_tokens(state)))
    cost = text.money(turn_log.session_cost(state, cli.prices))
    total = ", ".join(filter(None, (text.counted(state.turns, "turn"), f"{tokens} tokens", cost)))
    model = next((model for row in reversed(log.rows) if (model := row.trailer("Model"))), "")
    project = text.clean(cli.short(state.project))
    yield from text.session_heading(cli, log.branch, project, text.clean(model), total)
    if state.origin is not None and (left := cli.index.fork_place(log.branch)):
        yield cli.paint("dim", f"{' ' * len(name)}  from {text.fork_place(cli, left)}")


def _oneline_lines(cli: Invocation, log: BranchLog, *, reverse: bool) -> Iterator[str]:
    """Yield for each turn its address and its prompt; cut to the terminal, whole in a pipe."""
    name = cli.ident(log.branch.name)
    for row in log.rows if reverse else reversed(log.rows):
        address, prompt = f"{name}@{row.turn}", text.clean(cli.index.title(row))
        room = cli.width - len(address) - 1
        yield f"{cli.paint('yellow', address)} {text.cut(prompt, room) if cli.terminal.shows_output else prompt}"


@cache
def _tools(trailer: str, columns: int) -> str:
    """Return the tools of a turn in just so many columns; cached, because many turns use the same ones."""
    return text.fit(text.tools(parse_tools(trailer), columns), columns)


def _source(row: Row | None) -> str:
    """Return the branch from which a merge copied the turn, or ``""``."""
    return row.trailer("Origin").partition("@")[0] if row else ""


def _source_turns(row: Row) -> int:
    """Return how many turns a merged turn is of: a summary may be of several."""
    first, _, last = row.trailer("Origin").partition("@")[2].partition("-")
    is_range = first.isdecimal() and last.isdecimal() and len(first + last) < 15
    return max(1, int(last) - int(first) + 1) if is_range else 1


def _side_rows(cli: Invocation, side: SideBranch) -> list[Row]:
    return cli.index.turns(side.branch.name, side.turn + 1)


class _LogPage:
    """Draws turns with what happened around them, in columns that fit all of them."""

    def __init__(self, cli: Invocation, log: BranchLog, *, reverse: bool, rewound: bool, texts: bool) -> None:
        self.cli, self.log = cli, log
        self.reverse, self.rewound, self.texts = reverse, rewound, texts
        self.paint, self.tags = cli.paint, tags_by_commit(cli.index)
        self.number = max(len(str(row.turn)) for row in log.rows)
        self.clock = text.Clock(cli.now, (row.time for row in log.rows))
        room = cli.width - self.number - self.clock.width - _TOKENS - 8
        used = {row.trailer("Tools") for row in log.rows}
        widest = max(text.width(text.tools(parse_tools(tools), 32)) for tools in used)
        self.tools = 0 if cli.width < _NARROW else min(max(14, room // 4), 32, widest)
        self.prompt = room - (self.tools + 2 if self.tools else 0)

    @cached_property
    def rows(self) -> dict[int, Row]:
        """The turns of the page by their numbers."""
        return {row.turn: row for row in self.log.rows}

    @cached_property
    def merges(self) -> set[tuple[str, int]]:
        """The branches that were merged, with the turn after each merge; turns that were picked are in none."""
        return set(list_merges(self.cli.store, self.log.branch))

    def lines(self) -> Iterable[str]:
        """Return the whole page."""
        start = self._side_lines(0) if self.log.rows[0].turn == 1 else []
        return self._in_order([start, *chain.from_iterable(map(self._turn_parts, self.log.rows))])

    def _in_order(self, parts: Sequence[Iterable[str]]) -> Iterable[str]:
        """Return the lines of parts, of which the oldest is first, in the order of the page."""
        return chain.from_iterable(parts if self.reverse else reversed(parts))

    def _turn_parts(self, row: Row) -> Iterator[list[str]]:
        """Yield what was before a turn, the turn with its texts, and what came after it."""
        yield [self._note("┊", "the conversation was compacted")] if row.compacted else []
        title = self.cli.index.title(row)
        yield [self._turn(row, title), *(self._texts(row) if self.texts else self._answer_line(row, title))]
        yield [*self._side_lines(row.turn), *self._merges_after(row)]

    def _side_lines(self, turn: int) -> list[str]:
        """Return the rewinds, other versions and forks after a turn."""
        lines: list[str] = []
        drawn = set[str]()
        for side in self.log.left.get(turn, ()):
            lines.append(self._note("┊", f"{text.side_branch_phrase(side)}: {self.cli.ident(side.branch.name)}"))
            if self.rewound:
                lines += self._side_branch(side)
                drawn.add(side.branch.name)
        forks = self.log.forks.get(turn, ())
        return lines + [self._fork(fork) for fork in forks if fork.left.turn == turn or fork.left.branch not in drawn]

    def _side_branch(self, side: SideBranch) -> Iterable[str]:
        """Return the turns of a side branch with their forks."""
        parts = list[list[str]]()
        forks = [fork for fork in self.log.forks.get(side.turn, ()) if fork.left.branch == side.branch.name]
        for row in _side_rows(self.cli, side):
            parts.append([self._turn(row, self.cli.index.title(row), "○")])
            here = (replace(fork, turn=row.turn, cell=fork.left.cell) for fork in forks if fork.left.turn == row.turn)
            parts.append(list(map(self._fork, here)))
        return self._in_order(parts)

    def _merges_after(self, row: Row) -> Iterator[str]:
        """Yield what was merged after the turn, or with the turns that end with it."""
        source = _source(row)
        if source and _source(self.rows.get(row.turn + 1)) != source:
            count = 0
            turn: Row | None = row
            while turn is not None and _source(turn) == source:
                count += _source_turns(turn)  # also of turns before the page
                turn = self.rows.get(turn.turn - 1) or self.cli.index.turn(self.log.branch.name, turn.turn - 1)
            is_pick = row.trailer("Event") == "graft" and (source, row.turn) not in self.merges
            yield self._merge("picked from" if is_pick else "merged", source, f" ({text.counted(count, 'turn')})")
        for theirs in self.log.merged.get(row.turn, ()):
            if theirs != source:
                yield self._merge("merged", theirs)

    def _merge(self, verb: str, theirs: str, turns: str = "") -> str:
        branch = self.cli.index.branch(theirs)
        name = self.cli.ident(theirs) if branch else text.clean(layout.short_name(theirs), 30)
        title = f"  {text.title(branch.state)}" if branch else ""
        return self._note("○─┐", f"{verb} {name}{title}{turns}")

    def _fork(self, fork: ForkEntry) -> str:
        state = fork.branch.state
        moment = self.clock(canonical.seconds(state.created)).ljust(self.clock.width)
        start = self.paint("dim", text.fit("├─", self.number + 4) + moment)
        name = self.paint("yellow", self.cli.ident(fork.branch.name))
        place = f"  (at {text.clean(fork.cell)})" if fork.cell else ""
        if fork.is_elsewhere:
            place = f"  (from {text.fork_place(self.cli, fork.left)})"
        return f"{start}  ↳ {name}  {text.title(state)}{place}"

    def _turn(self, row: Row, title: str, mark: str = "●") -> str:
        paint, new = self.paint, text.new_tokens(row.tokens)
        number, moment = str(row.turn).ljust(self.number), self.clock(row.time).ljust(self.clock.width)
        prompt = text.clean(title)
        if names := self.tags.get(row.commit):
            tags = text.cut("".join(f"  ({text.clean(name)})" for name in names), self.prompt // 2)
            prompt = text.cut(prompt, self.prompt - text.width(tags)) + tags
        tools = _tools(row.trailer("Tools"), self.tools) + "  " if self.tools else ""
        tokens = (text.tokens(new) if new else "").rjust(_TOKENS)
        return (
            f"{paint('green', mark)} {paint('bold', number)}  {paint('dim', moment)}  "
            f"{text.fit(prompt, self.prompt)}  {paint('cyan', tools)}{paint('dim', tokens)}"
        )

    def _note(self, rail: str, words: str) -> str:
        """Return a line between turns."""
        return self.paint("dim", text.cut(text.fit(rail, self.number + 4) + words, self.cli.width))

    def _answer_line(self, row: Row, title: str) -> list[str]:
        """Return the first line of the answer if the prompt says too little, such as `ok`."""
        if not is_terse(title):
            return []
        with suppress(SessgitError):  # damaged lines do not keep the other turns from being listed
            turn = turn_log.read_turn(self.cli.store, self.log.branch.tip, row)
            if answer := canonical.one_line(turn.answer, _LONGEST):
                indent = self.number + self.clock.width + 6
                return [" " * indent + self.paint("dim", text.cut(text.clean(answer), self.cli.width - indent))]
        return []

    def _texts(self, row: Row) -> list[str]:
        """Return the prompt and the last answer, whole."""
        content = turn_log.read_turn(self.cli.store, self.log.branch.tip, row)
        room = self.cli.width - len(_RAIL)
        prompt = [self.paint("bold", line) for line in text.wrapped(content.prompt, room)]
        answer = text.wrapped(content.answer or "(no answer)", room)
        return [*(self.paint("dim", _RAIL) + line for line in ["", *prompt, "", *answer]), ""]


def _graph_lines(cli: Invocation, family: list[Branch], limit: int | None, *, rewound: bool) -> Iterator[str]:
    """Yield all turns of a family, newest first, with a rail for each branch, as `git log --graph` draws."""
    side_names = [name for branch in family if rewound for name in cli.index.side_branches(branch.name)]
    rows: dict[str, Row] = {}
    parents: dict[str, str] = {}
    times: dict[str, int] = {"": 0}
    tips: dict[str, list[str]] = {}
    for branch in [*family, *cli.index.branches_named(side_names)]:
        parent = ""
        for row in cli.index.turns(branch.name):
            key = row.commits[0]
            rows.setdefault(key, row)
            parents.setdefault(key, parent)
            times.setdefault(key, max(row.time, times[parent]))  # a turn is above its parent, whatever the clock said
            parent = key
        title = "" if layout.is_side_branch(branch.name) else f" {text.title(branch.state, 40)}"
        tips.setdefault(parent, []).append(f"  {cli.ident(branch.name)}{title}")
    oldest_first = sorted(parents, key=times.__getitem__)
    shown = 0
    for rail, key in text.draw_turns({key: parents[key] for key in reversed(oldest_first)}):
        if not key:
            yield cli.paint("dim", rail)
            continue
        if shown == limit:
            return
        shown += 1
        row, names = rows[key], "".join(tips.get(key, ()))
        room = cli.width - text.width(rail) - 2
        prompt = f"{row.turn}  {text.clean(cli.index.title(row))}"
        prompt = text.cut(prompt, max(20, room // 2) if names else room)
        names = text.cut(names, max(0, room - text.width(prompt)))
        yield f"{cli.paint('green', rail)}  {prompt}{cli.paint('yellow', names)}"


def _commit_lines(cli: Invocation, commit: str, turns: Sequence[CommitTurn]) -> Iterator[str]:
    """Yield the turns that led to a commit of the project, oldest first."""
    yield f"{cli.paint('bold', commit[:8])}  ·  lines by {text.counted(len(turns), 'turn')}"
    clock = text.Clock(cli.now, [turn.author.row.time for turn in turns])
    rows = []
    for turn in turns:
        first, *others = turn.lines
        lines = text.counted(sum(turn.lines.values()), "line")
        where = f"{lines} in {text.clean(first)}" + (f", {len(others)} more" if others else "")
        row = turn.author.row
        rows.append((f"{cli.ident(row.branch)}@{row.turn}", clock(row.time), text.clean(turn.author.prompt), where))
    columns = (Column("yellow"), Column("dim"), Column(least=8), Column("dim", least=16))
    yield from text.table(cli, columns, rows)


def _commit_json(cli: Invocation, commit: str, turns: Sequence[CommitTurn]) -> dict[str, Any]:
    """Return what `log --commit --json` prints."""
    prices = cli.prices
    turns_json = [
        turn_log.turn_json(one.author.row, turn_log.read_turn(cli.store, one.author.branch.tip, one.author.row), prices)
        | {"project_lines": [{"path": path, "lines": lines} for path, lines in one.lines.items()]}
        for one in turns
    ]
    return {"project_commit": commit, "turns": turns_json}
