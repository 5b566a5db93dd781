"""A story: a session from beginning to end, to be read and shared. All exports are made of it.

The story itself is bounded by a few words a turn. The turns in full are given separately, one after another, so that
a long conversation need not be held as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sessgit.model.conversation.content import Piece
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Tokens, Turn
from sessgit.model.frozen import frozen


@frozen
class Relative:
    """A session of the family: all that come from the same first one.

    `left` is the turn of its parent after which it left, None for the first, and `cell` the cell of the next turn at
    which it did, or ``""``; `depth` says how many came before it.
    """

    id: str
    title: str
    turns: int
    depth: int = 0
    left: int | None = None
    own: bool = False
    """Whether it is the session of the story."""
    cell: str = ""


@frozen
class IndexEntry(Relative):
    """A session, or the turns that left one, in the index of a project's conversations.

    `own_turns` and `cost`, in US dollars or None, leave out the turns that it shares with its parent; `first_words` is
    the first line of its first own prompt.
    """

    own_turns: int = 0
    updated: str = ""
    cost: float | None = None
    first_words: str = ""
    notes: tuple[str, ...] = ()


@frozen
class Heading:
    """A turn's number and the first line of its prompt."""

    number: int
    title: str


@frozen
class Story:
    """What an export says of a session as a whole.

    `state` is that of the session's tip, `contents` are the exported turns, in order, with `tokens` by model,
    `cost` in US dollars or None, and `redacted`, the secrets that were replaced in them. `family` has parents before
    their forks, each fork behind its parent; `rewound` counts the turns that rewinds left behind, `elsewhere` those
    that other machines added, without what a merge added since. `tools` says whether more than what person and
    model said is exported, `commit` is the branch's tip.
    """

    branch: str
    commit: str
    title: str
    state: Session
    contents: tuple[Heading, ...]
    family: tuple[Relative, ...] = ()
    relatives: int = 0
    """So many members of the family more than `family` names."""
    tokens: Mapping[str, Tokens] = field(default_factory=dict)
    cost: float | None = None
    redacted: int = 0
    rewound: int = 0
    elsewhere: int = 0
    tools: bool = True

    @property
    def whole(self) -> bool:
        """Return whether every turn of the branch is exported."""
        return len(self.contents) == self.state.turns

    @property
    def total(self) -> Tokens:
        return sum(self.tokens.values(), Tokens())


@frozen
class Subagent:
    """What a subagent said and did in a turn; `call` is the ordinal of the call that started it, or 0 if none names
    it."""

    name: str
    call: int
    pieces: tuple[Piece, ...]


@frozen
class StoryTurn:
    """A turn of a story in full.

    `compacted` says that the conversation so far was made a summary before this turn's prompt, `summary` is that one.
    `forks` are the sessions that left after this turn, `left` so many turns after it that rewinds left behind, by
    branch, and `elsewhere` those that other machines added, both without what a merge added. `subagents` are those of
    the turn, if they are shown.
    """

    number: int
    turn: Turn
    pieces: tuple[Piece, ...]
    cost: float | None = None
    compacted: bool = False
    summary: str = ""
    forks: tuple[Relative, ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    subagents: tuple[Subagent, ...] = ()
