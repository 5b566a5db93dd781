"""Whether turns of two branches have the same lines: by the ids of their folders first, else by the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import Line
from sessgit.agents.values import Relation
from sessgit.errors import DamageError, NotFoundError, UnreadableError
from sessgit.model.edit_script import common_prefix_length
from sessgit.store import layout
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.store.sqlite.rows import Row


class LineComparison:
    """Answers questions about the turns of two branches, each given with its tip and its turns.

    What a commit that both have in common records is the same in both, but for the last of these turns: there a copy
    may have been cut short. Other turns are the same where their folders have the same id, else the lines decide.
    """

    def __init__(self, store: Store, a: tuple[str, Sequence[Row]], b: tuple[str, Sequence[Row]]) -> None:
        self._store = store
        self._tips = a[0], b[0]
        commits = (row.commit for row in a[1]), (row.commit for row in b[1])
        self._recorded_once = common_prefix_length(*commits) - 1
        self._found: dict[tuple[int, int], Relation] = {}

    def relation(self, a: Row, b: Row) -> Relation:
        """How a turn of the one branch and a turn of the other with the same prompt uuid are related; a turn that
        cannot be read is like no other."""
        if a.turn == b.turn <= self._recorded_once:
            return "same"
        numbers = a.turn, b.turn
        if numbers not in self._found:
            self._found[numbers] = self._compared(a, b)
        return self._found[numbers]

    def differences(self, a: Row, b: Row) -> tuple[str, ...]:
        """Which of `prompt`, `answer` and `calls` differ between the two; `lines` where a turn cannot be read."""
        bodies = self.bodies(a, b)
        return ("lines",) if bodies is None else agents.of_turn(self._store, a).comparison.differences(*bodies)

    def bodies(self, a: Row, b: Row) -> tuple[list[Line], list[Line]] | None:
        """The lines of both from their prompts on, or None where one of them cannot be read."""
        from sessgit.history.views import body_of

        try:
            return body_of(self._store, self._tips[0], a), body_of(self._store, self._tips[1], b)
        except (DamageError, NotFoundError, UnreadableError):
            return None

    def _compared(self, a: Row, b: Row) -> Relation:
        pairs = zip(self._tips, (a, b), strict=True)
        folders = [self._store.repo.entry(self._store.tree(tip), layout.turn_folder(row.turn)) for tip, row in pairs]
        if folders[0] is not None and folders[0] == folders[1]:
            return "same"
        bodies = self.bodies(a, b)
        if bodies is None:
            return "different"
        agent = agents.of_turn(self._store, a)
        return body_relation(agent, self._store, *bodies, *(self._store.state(tip).rules for tip in self._tips))


def is_same_turn(store: Store, a: Row, b: Row) -> bool:
    """Whether two turns with the same prompt uuid are one turn, of which one side may have only a part."""
    return a.commit == b.commit or LineComparison(store, (a.commit, ()), (b.commit, ())).relation(a, b) != "different"


def body_relation(
    agent: Agent,
    store: Store,
    a: Sequence[Line],
    b: Sequence[Line],
    a_rules: Mapping[str, int],
    b_rules: Mapping[str, int],
) -> Relation:
    """How two bodies are related that were recorded by these rules. What only the rules of one side redact is no
    difference."""
    found = agent.comparison.relation(a, b)
    if found != "different" or a_rules.get("redact") == b_rules.get("redact"):
        return found
    return agent.comparison.relation(_redact_lines(agent, store, a, b_rules), _redact_lines(agent, store, b, a_rules))


def _redact_lines(agent: Agent, store: Store, lines: Sequence[Line], rules: Mapping[str, int]) -> list[Line]:
    from sessgit.store.secrets import secret_filter

    clean = secret_filter.line_cleaner(store.beside, rules, agent.protected_keys)
    return agent.lines.parsed(clean(line.raw)[0] for line in lines)
