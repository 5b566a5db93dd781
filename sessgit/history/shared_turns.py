"""What two branches share: the commit at which they diverged, turns with the same lines, turns of a fork's parent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sessgit import agents
from sessgit.errors import DamageError, NotFoundError, UnreadableError
from sessgit.model.conversation.session import Session
from sessgit.model.ids import common_prefix_length
from sessgit.store import layout
from sessgit.store.store import Store

if TYPE_CHECKING:
    from sessgit.agents.base import Agent
    from sessgit.agents.line import Line
    from sessgit.agents.values import Relation
    from sessgit.store.index import Row


def merge_base(store: Store, ours: str, theirs: str) -> str:
    """Return the merge base of two commits, ``""`` if they have none; of several the one with the most turns."""
    return newest_commit(store, store.repo.merge_bases(ours, theirs))


def newest_commit(store: Store, commits: Iterable[str]) -> str:
    """Return the commit with the most turns, ``""`` if there is none."""
    return max(commits, key=lambda commit: (store.state(commit).turns, commit), default="")


def is_parent_folder(store: Store, commit: str, state: Session, number: int) -> bool:
    """Return whether the folder of a turn of a client's fork is that of the session that it left. Its lines then name
    that session, and the fork's own file has the fork's id in its place."""
    origin = state.origin
    if origin is None or not origin.replaced or number > origin.turn:
        return False
    path = layout.turn_folder(number)
    return store.entry(commit, path) == store.entry(origin.commit, path)


def own_line(raw: bytes, state: Session) -> bytes:
    """Return a line of such a folder as the fork's own file has it."""
    if state.origin is None:
        return raw
    return agents.of(state).lines.with_session(raw, state.origin.replaced, state.agent_id)


class LineComparison:
    """Compares turns of two branches, each given with its tip and its turns.

    What a commit of both branches records is the same in both, except for the last of these turns: a copy may have been
    cut short there. Other turns are the same if their folders have the same id, or else by their lines.
    """

    def __init__(self, store: Store, a: tuple[str, Sequence[Row]], b: tuple[str, Sequence[Row]]) -> None:
        self._store = store
        self._tips = a[0], b[0]
        commits = (row.commit for row in a[1]), (row.commit for row in b[1])
        self._recorded_once = common_prefix_length(*commits) - 1
        self._relations: dict[tuple[int, int], Relation] = {}

    def relation(self, a: Row, b: Row) -> Relation:
        """Return how two turns with the same prompt uuid are related; a turn that cannot be read is like no other."""
        if a.turn == b.turn <= self._recorded_once:
            return "same"
        numbers = a.turn, b.turn
        if numbers not in self._relations:
            self._relations[numbers] = self._compare(a, b)
        return self._relations[numbers]

    def differences(self, a: Row, b: Row) -> tuple[str, ...]:
        """Return which of `prompt`, `answer` and `calls` differ; `lines` if a turn cannot be read."""
        bodies = self.bodies(a, b)
        return ("lines",) if bodies is None else agents.of_turn(self._store, a).differences(*bodies)

    def bodies(self, a: Row, b: Row) -> tuple[list[Line], list[Line]] | None:
        """Return the lines of both from their prompts on, or None if one of them cannot be read."""
        from sessgit.history.views import body_of

        try:
            return body_of(self._store, self._tips[0], a), body_of(self._store, self._tips[1], b)
        except (DamageError, NotFoundError, UnreadableError):
            return None

    def _compare(self, a: Row, b: Row) -> Relation:
        pairs = zip(self._tips, (a, b), strict=True)
        folders = [self._store.entry(tip, layout.turn_folder(row.turn)) for tip, row in pairs]
        if folders[0] is not None and folders[0] == folders[1]:
            return "same"
        bodies = self.bodies(a, b)
        if bodies is None:
            return "different"
        agent = agents.of_turn(self._store, a)
        return body_relation(agent, self._store, *bodies, *(self._store.state(tip).rules for tip in self._tips))


def is_same_turn(store: Store, a: Row, b: Row) -> bool:
    """Return whether two turns with the same prompt uuid are one turn, of which one side may have only a part."""
    return a.commit == b.commit or LineComparison(store, (a.commit, ()), (b.commit, ())).relation(a, b) != "different"


def body_relation(
    agent: Agent,
    store: Store,
    a: Sequence[Line],
    b: Sequence[Line],
    a_rules: Mapping[str, int],
    b_rules: Mapping[str, int],
) -> Relation:
    """Return how two bodies are related that were recorded by these rules. What only one side's rules redact is no
    difference."""
    relation = agent.content.relation(a, b)
    if relation != "different" or a_rules.get("redact") == b_rules.get("redact"):
        return relation
    return agent.content.relation(_redact_lines(agent, store, a, b_rules), _redact_lines(agent, store, b, a_rules))


def _redact_lines(agent: Agent, store: Store, lines: Sequence[Line], rules: Mapping[str, int]) -> list[Line]:
    from sessgit.store import secret_filter

    clean = secret_filter.line_cleaner(store.paths, rules, agent.protected_keys)
    return agent.parsed(clean(line.raw)[0] for line in lines)
