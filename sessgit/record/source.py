"""What a recording begins with: a transcript, and the recorded turns of its session, as the cutter looks them up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, partial
from heapq import heappop, heappush
from math import inf
from pathlib import Path

from sessgit import agents
from sessgit.agents import Agent, Client
from sessgit.agents.cutter import Node, Place, line_of
from sessgit.agents.line import Base, Line, Opened, Reader, Redact, no_redaction
from sessgit.model import ids, json_strings
from sessgit.model.conversation.message import Extent, Message
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.redact import RULES_VERSION
from sessgit.store import layout, recorder_state, secret_filter
from sessgit.store.context import DEFAULT_AGENT
from sessgit.store.index import Index
from sessgit.store.objects import LARGE_SIZE, Entry
from sessgit.store.recorder_state import Cursor
from sessgit.store.settings import RecordConfig
from sessgit.store.store import Store, lines_hash

Head = str | Callable[[], str]
"""The project's commit, or a function that waits for the process that looks for it."""


@frozen
class TranscriptSource:
    """A transcript and what is known of it besides its lines.

    `final` says that the agent has closed the file, so that its last lines are recorded too; `live` that the agent is
    at work now, so that plan, todos and tasks are those of its last turn; `prompting` that a prompt has only just been
    given, which is then left to the next event; `head` is the project's own commit; `folder` the client's, whose
    sidecar files are recorded too, and `client` the name of the agent. `at_rest` says that the agent has not worked
    since the last turn, so that plan, todos and tasks are those of it; `own` is the client's own folder if `folder` is
    another one. `origins` gives the event and the origin of merged turns, by the uuids of their prompts. `place` is the
    path that the state names, if this file is a temporary one. `imported` says that the file is one of several copies,
    which are recorded as if all had come at once.
    """

    path: Path
    agent_id: str
    folder: Path
    final: bool = False
    live: bool = False
    prompting: bool = False
    head: Head = ""
    at_rest: bool = False
    own: Path | None = None
    client: str = DEFAULT_AGENT
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    place: str | None = None
    imported: bool = False

    @property
    def agent(self) -> Agent:
        """The agent that wrote the transcript."""
        return agents.named(self.client)

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)

    @property
    def is_copy(self) -> bool:
        """Return whether the file is recorded with all other copies of the session's: an imported one, or one that the
        client has closed."""
        return self.imported or (self.final and self.is_in_place and not self.live)

    @property
    def is_in_place(self) -> bool:
        """Return whether the file is where the agent itself looks for it."""
        return agents.is_place(Client(self.agent, self.own or self.folder), self.path)


def stored_rules(settings: RecordConfig) -> dict[str, int]:
    """Return the versions of the rules, as the state of a new session names them; 0 is none. Whether a session is
    redacted is decided when its recording begins, and stays so."""
    return {"cut": json_strings.RULES_VERSION, "redact": RULES_VERSION if settings.redact else 0}


_FILE_END_ORDER = 1 << 200
_FILE_ORDER = 1 << 50
"""More than any file is long: the places of a later file come behind all of an earlier one."""


@frozen
class RecordedSession:
    """What is recorded of a session as a pass begins: its cursor, the tips of its head and its rewound branches, the
    head's commit and state; the versions of the rules that it is recorded by, and how its lines are redacted.

    `sides` is for a file that is recorded as if nothing of its session were: the recorded sidecar files, by the key of
    their turn.
    """

    cursor: Cursor | None
    rules: Mapping[str, int]
    redact: Redact
    tips: dict[str, str] = field(default_factory=dict)
    head: str = ""
    state: Session | None = None
    sides: Mapping[str, Mapping[str, Entry]] | None = None


def recorded_session(store: Store, source: TranscriptSource, rules: RecordConfig) -> RecordedSession:
    """Return what is recorded of the session that a transcript is of."""
    tips = session_tips(store, source.session)
    head = tips.get(source.session, "")
    state = store.state(head) if head else None
    versions = state.rules if state else stored_rules(rules)
    redact = secret_filter.line_cleaner(store.paths, versions, source.agent.protected_keys)
    cursor = recorder_state.load_cursor(store.paths, source.session)
    return RecordedSession(cursor, versions, redact, tips, head, state)


def base_of(agent: Agent, source: Opened) -> Base | None:
    """Return what a transcript goes on from, or None if it has all its lines itself."""
    first = next(Reader(source, agent.lines.make).head(), None)
    return first.base if first is not None else None


def session_tips(store: Store, session: str) -> dict[str, str]:
    """Return the tips of the session's head and its rewound branches."""
    branches = store.branches(session)
    return {branch: tip for branch, tip in branches.items() if branch == session or layout.is_rewound_branch(branch)}


def given_names(store: Store, session: str, tips: Iterable[str], known: str) -> Iterator[str]:
    """Yield the session's names since a commit, or all: the client may have them from `restore`."""
    for tip in tips:
        for commit, message in store.history(tip):
            if commit == known or message.get("Session") != session:
                break
            if message.get("Event") in ("edit", "fork"):
                yield store.state(commit).name


def is_at_commit(store: Store, head: str, commit: str) -> bool:
    """Return whether the head is the commit, or only edits and merges came since."""
    for ancestor, message in store.history(head) if head else ():
        if ancestor == commit:
            return True
        if message.get("Event") not in ("edit", "merge"):
            return False
    return False


def matches_cursor(store: Store, session: str, tips: Mapping[str, str], known: Cursor) -> bool:
    """Return whether the branches are as the cursor left them: the head is at its commit, and no branch has lines from
    after its offset. Otherwise a pass was killed that had moved some of them, and not yet the head."""
    return is_at_commit(store, tips.get(session, ""), known.commit) and not any(
        message.get("Session") == session
        and message.file == known.file
        and any(extent.end > known.offset for extent in message.extents)
        for message in (_last_turn_message(store, tip) for branch, tip in tips.items() if branch != session)
    )


def _last_turn_message(store: Store, tip: str) -> Message:
    """Return the message of the last turn's commit, or of the first commit if there is no turn."""
    for _, message in store.history(tip):
        if message.number("Turn"):
            break
    return message


def commit_finder(index: Index, session: str, tips: Collection[str]) -> Callable[[str], str | None]:
    """Return a function from a prompt to the commit of its turn on one of these branches, or None.

    It updates the index when it is called first: its caller moves no ref before the last call, and then checks that no
    other process did.
    """
    level = cache(partial(index.sync, session))

    def find(key: str) -> str | None:
        level()
        return next((row.commit for row in index.with_prompt(key) if row.branch in tips), None)

    return find


class RecordedTurns:
    """The turns of the branches `tips` of one session, read as far back as needed.

    `find_turn` answers from the index which commits hold the turn of a prompt; without it all branches are walked.
    `fork_point` is the number of the last turn that a fork of ours shares, 0 for none.
    """

    def __init__(
        self,
        store: Store,
        tips: dict[str, str],
        agent: Agent,
        find_turn: Callable[[str], str | None] | None = None,
        fork_point: int = 0,
    ) -> None:
        self._store, self._agent = store, agent
        self._tips = tips
        self._fork_point = fork_point
        self._shared: dict[Node, frozenset[str]] = {}
        self._find_turn = find_turn
        self._nodes: dict[str, Node] = {}
        self._walked = False
        self._places: dict[str, tuple[int, Place]] = {}
        self._unread: list[tuple[int, int, Node]] | None = None
        self._pushed: set[Node] = set()

    def node_at(self, commit: str | None) -> Node | None:
        """Return the turn that a commit holds, or the nearest one before it."""
        for commit_id, number, key in self._turn_commits(commit):
            return self._nodes.get(key) or self._make(commit_id, number, key)
        return None

    def base(self, state: Session | None) -> Node | None:
        """Return the last turn of the session that a session goes on from whose file has only its own turns."""
        origin = state.origin if state else None
        return self.node_at(origin.commit) if origin is not None and not origin.prefix else None

    def turn(self, key: str) -> Node | None:
        """Return the turn of a prompt, or None if it is not recorded."""
        known = self._nodes.get(key)
        if known is None and self._find_turn is not None:
            return self.node_at(self._find_turn(key))
        if known is None and not self._walked:
            self._walked = True
            for tip in self._tips.values():
                for _ in line_of(self.node_at(tip)):
                    pass
            known = self._nodes.get(key)
        return known

    def find(self, uuid: str) -> Place | None:
        """Return where a line is recorded, or None.

        Turns are read from the end of the agent's file backwards, until none is left that ends after the line.
        """
        if self._unread is None:
            self._unread = []
            for tip in self._tips.values():
                self._push(self.node_at(tip), _FILE_END_ORDER)
        while self._unread and (uuid not in self._places or self._places[uuid][0] < -self._unread[0][0]):
            end, _, node = heappop(self._unread)
            self._push(node.parent, self._read(node, -end))
        return self._places[uuid][1] if uuid in self._places else None

    def is_closed(self, node: Node, line: Line) -> bool:
        """Return whether the turn is the last one that a fork shares, and does not have the line at the fork point."""
        shared = self.shared(node)
        return bool(shared) and line.uuid not in shared

    def shared(self, node: Node) -> frozenset[str]:
        """Return the uuids of the turn's lines if it is the last one that a fork shares, else none."""
        if not node.commit or node.number != self._fork_point:
            return frozenset()
        if node not in self._shared:
            own = {layout.session_of(branch) for branch in self._tips}
            is_own = self._store.message(node.commit).get("Session") in own  # an older version recorded it again
            before, body = ([], []) if is_own else self.lines(node)
            self._shared[node] = frozenset(line.uuid for line in (*before, *body))
        return self._shared[node]

    def lines_again(
        self, node: Node, commit: str, placed: list[Line], own: Callable[[bytes], bytes] | None
    ) -> tuple[list[Line], list[Line]]:
        """Return the lines before the prompt and the body of a recorded turn as of a commit.

        `own`, if given, makes lines of another session this one's. If `placed`, lines read from the agent's file, still
        are the last of them, those are returned, so that their places are known. They are not in memory twice: one line
        may be as long as all else in memory together.
        """
        expected = self._store.message(node.commit).get("Lines-SHA256")
        is_here = bool(placed) and lines_hash(line.raw for line in placed) == expected
        before, body = self.lines(node, commit, LARGE_SIZE if is_here else inf)
        absent = max(0, len(before) + len(body) - len(placed))
        if is_here and not all(line.raw for line in [*before, *body][:absent]):  # one is long, or has nothing in it
            before, body = self.lines(node, commit)
        lines = [*before, *body]
        if own is not None:
            lines = [self._agent.lines.make(own(line.raw), line.extent, no_redaction) for line in lines]
        if is_here:
            lines[absent:] = placed
        node.copied = next((n for n, line in enumerate(lines) if line.extent.length), 0)
        return lines[: len(before)], lines[len(before) :]

    def lines(self, node: Node, commit: str = "", longest: float = inf) -> tuple[list[Line], list[Line]]:
        """Return the lines before the prompt and the body of a recorded turn, without their places in the file. Of a
        large turn, lines longer than `longest` are replaced by empty ones."""
        stored = self._store.lines(commit or node.commit, node.number, longest)
        made = [self._agent.lines.make(raw, Extent(0, 0), no_redaction) for raw in stored.before + stored.body]
        return made[: len(stored.before)], made[len(stored.before) :]

    def _turn_commits(self, tip: str | None) -> Iterator[tuple[str, int, str]]:
        """Yield the commits of turns from a tip backwards, with number and prompt."""
        for commit, message in self._store.history(tip) if tip else ():
            number, key = message.number("Turn"), message.get("Prompt")
            if number and key:
                yield commit, number, key

    def _make(self, commit: str, number: int, key: str) -> Node:
        @cache  # it is called often, and commits do not change
        def parent() -> Node | None:
            others = (before for before, _, prompt in self._turn_commits(commit) if prompt != key)
            return self.node_at(next(others, None))

        node = self._nodes[key] = Node(key, number, parent, commit=commit)
        return node

    def _push(self, node: Node | None, bound: int) -> None:
        """Add the turn to those to read, by its end in the file, which is `bound` if it is unknown."""
        if node is None or node in self._pushed:
            return
        self._pushed.add(node)
        assert self._unread is not None
        end = max((extent.end for extent in self._own_extents(node)), default=bound)
        heappush(self._unread, (-end, len(self._pushed), node))

    def _read(self, node: Node, end: int) -> int:
        """Note the places of a turn's lines, and return the first offset.

        A line that comes before another turn as well has its place there.
        """
        before, body = self.lines(node)
        placed = [extent.offset for extent in self._own_extents(node) for _ in range(extent.lines)]
        absent = len(before) + len(body) - len(placed)
        offsets = [-_FILE_END_ORDER] * absent + placed if placed else [end - 1] * absent
        for number, (line, offset) in enumerate(zip([*before, *body], offsets, strict=True)):
            if line.uuid and offset >= self._places.get(line.uuid, (-_FILE_END_ORDER,))[0]:
                self._places[line.uuid] = (offset, Place(node, line if number < len(before) else None))
        return min(placed, default=end - 1)

    def _own_extents(self, node: Node) -> list[Extent]:
        """Return the extents of the turn's lines in the session's file; none if another session recorded it."""
        message: Message = self._store.message(node.commit)
        own = {layout.session_of(branch) for branch in self._tips}
        if message.get("Session") not in own:
            return []
        base = (message.file - 1) * _FILE_ORDER
        return [extent._replace(offset=base + extent.offset) for extent in message.extents]
