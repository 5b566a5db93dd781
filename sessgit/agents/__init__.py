"""The agents whose conversations can be recorded: one package each, which holds all that knows the client."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sessgit.agents import processes
from sessgit.errors import UsageError
from sessgit.model import ids
from sessgit.model.frozen import frozen
from sessgit.store.context import DEFAULT_AGENT, Homes
from sessgit.store.layout import session_of

if TYPE_CHECKING:
    from sessgit.agents import base
    from sessgit.agents.line import Line
    from sessgit.agents.processes import LiveClient
    from sessgit.model.conversation.session import Session
    from sessgit.model.conversation.turn import Cell, Tokens
    from sessgit.store.index import Row
    from sessgit.store.store import Store

_SHARED_MODULES = {"plugin": "hooks"}
"""The parts that are in the module of another one."""
OPTIONAL = frozenset({"hooks", "plugin", "sidecars", "tools", "programs", "stream", "repair"})
"""The parts that an agent may lack."""
PACKAGES = {"codex": "sessgit.agents.codex", "claude": "sessgit.agents.claude"}
"""The package of each agent by the name that the state of a session has; each is loaded when it is asked for."""


class Agent:
    """One client. States call it by its `name`, people by its `title`; values of `protected_keys` are never redacted.

    `folder` is the variable that names the client's own folder, and the folder in the user's home if it is not set;
    `session_variable` names the session whose client runs a process, if the client sets one.

    Each part, see `base.py`, is the module of that name in the agent's package, imported when it is first used. An
    agent may lack the parts of `OPTIONAL`. Without `sidecars`, the methods of `base.Sidecars` say what the client has;
    the other parts are used only if the agent has them.
    """

    home: base.Home
    hooks: base.Hooks
    plugin: base.Plugin
    lines: base.Lines
    cells: base.Cells
    content: base.Content
    tools: base.Tools
    sidecars: base.Sidecars
    writer: base.Writer
    programs: base.Programs
    stream: base.Stream
    repair: base.Repair

    def __init__(  # noqa: PLR0913 - what there is to say of a client
        self,
        name: str,
        title: str,
        protected_keys: frozenset[str],
        *,
        folder: tuple[str, str],
        session_variable: str = "",
        lacks: Collection[str] = (),
        package: str = "",
    ) -> None:
        assert OPTIONAL.issuperset(lacks)
        self.name, self.title, self.protected_keys = name, title, protected_keys
        self._folder, self._session_variable = folder, session_variable
        self._package, self._lacks = package or f"sessgit.agents.{name}", frozenset(lacks)

    def __getattr__(self, part: str) -> Any:
        if part not in Agent.__annotations__:
            raise AttributeError(part)
        if part in self._lacks:
            functions = importlib.import_module("sessgit.agents.base").STAND_INS[part]()
        else:
            functions = importlib.import_module(f"{self._package}.{_SHARED_MODULES.get(part, part)}")
        setattr(self, part, functions)
        return functions

    def has(self, part: str) -> bool:
        """Return whether the agent has a part of the protocol of its own."""
        return part not in self._lacks

    def config_folder(self, env: Mapping[str, str], home: Path) -> Path:
        """Return the client's own folder, as the environment of a process names it."""
        variable, name = self._folder
        return Path(env.get(variable) or home / name).absolute()

    def current_session(self, env: Mapping[str, str]) -> str:
        """Return the id of the session whose client runs this process, or "" if the environment names none."""
        return env.get(self._session_variable, "")

    def parsed(self, lines: Iterable[bytes]) -> list[Line]:
        """Return stored lines as `Line`s without a place."""
        return list(map(self.lines.make, lines))

    def differences(self, a: Sequence[Line], b: Sequence[Line]) -> tuple[str, ...]:
        """Return which of `prompt`, `answer` and `calls` differ between the bodies of two turns."""
        left, right = map(self.content.comparable_parts, (a, b))
        return tuple(name for name in left if left[name] != right[name])

    def is_titles(self, data: bytes, agent_id: str) -> bool:
        """Return whether the bytes are lines with titles of the session and nothing else."""
        *lines, rest = data.split(b"\n")
        titles = (self.writer.title_line(self.writer.title_of(line), agent_id) for line in lines)
        return not rest and all(line and line == title for line, title in zip(lines, titles, strict=True))

    def tokens(self, body: Sequence[Line], cell: Cell) -> Tokens | None:
        """Return what a message of the model used; None for a tool call."""
        if cell.type != "llm_call":
            return None
        return self.cells.describe([body[number - 1] for number in cell.lines]).total


@cache
def named(name: str) -> Agent:
    """Return the agent with a name."""
    agent: Agent = importlib.import_module(PACKAGES.get(name) or PACKAGES[DEFAULT_AGENT]).AGENT
    return agent


def check_name(name: str) -> str:
    """Return the name of an agent as a user typed it, or ""; raise UsageError if there is no such agent."""
    if name and name not in PACKAGES:
        raise UsageError(f"there is no agent “{name}”.", f"The agents are {', '.join(sorted(PACKAGES))}.")
    return name


def every() -> list[Agent]:
    """Return all agents."""
    return [named(name) for name in PACKAGES]


def of_programs() -> Agent:
    """Return the agent in whose form programs and other systems write sessions."""
    return named(DEFAULT_AGENT)


def of(state: Session) -> Agent:
    """Return the agent that a session was held with."""
    return named(state.agent)


def of_turn(store: Store, row: Row) -> Agent:
    """Return the agent that a turn was held with."""
    return named(store.agent(session_of(row.branch), row.commit))


def of_commit(store: Store, commit: str) -> Agent:
    """Return the agent whose turns a commit holds."""
    return of(store.state(commit))


def of_file(path: Path) -> Agent:
    """Return the agent that wrote a transcript, wherever that lies: the first one that takes the name for its own."""
    return next((agent for agent in every() if agent.home.agent_id(path)), named(DEFAULT_AGENT))


def at(folder: Path) -> Agent:
    """Return the agent that keeps its files in a folder: the first one that takes the folder for its own."""
    return next((agent for agent in every() if agent.home.is_home(folder)), named(DEFAULT_AGENT))


def homes(env: Mapping[str, str], user: Path) -> Homes:
    """Return the folder of each agent's client, as the environment of a process and the user's home folder name it."""
    return Homes({agent.name: agent.config_folder(env, user) for agent in every()})


class Client(NamedTuple):
    """An agent's client on this machine: the agent, and the folder in which the client keeps its files."""

    agent: Agent
    folder: Path


def clients(homes: Homes) -> list[Client]:
    """Return the clients on this machine."""
    return [Client(named(name), folder) for name, folder in homes.folders.items()]


def hooked_clients(homes: Homes) -> list[Client]:
    """Return the clients that can run hooks."""
    return [client for client in clients(homes) if client.agent.has("hooks")]


def client(homes: Homes, name: str = DEFAULT_AGENT) -> Client:
    """Return the client of the agent with a name."""
    return Client(named(name), homes.folders[name])


@frozen
class Transcript:
    """A session's file: where it is, the agent's id of the session by its name, and the name of the agent."""

    path: Path
    agent_id: str
    agent: str

    @property
    def session(self) -> str:
        return ids.session_id(self.agent_id)


def is_packed(path: Path) -> bool:
    """Return whether a file is compressed; a client unpacks it before it writes to it."""
    return path.suffix == ".zst"


def transcripts(homes: Homes) -> Iterator[Transcript]:
    """Yield every session's transcript of all clients; subagents' are left out and no link is followed."""
    for agent, folder in clients(homes):
        for path in agent.home.transcripts(folder):
            yield Transcript(path, agent.home.agent_id(path), agent.name)


def transcript_at(homes: Homes, path: Path) -> Transcript | None:
    """Return the transcript at a path that someone else names, or None if it does not lie where a client's
    transcripts lie, links resolved."""
    for agent, folder in clients(homes):
        if agent.home.is_transcript(folder, path):
            return Transcript(path, agent.home.agent_id(path), agent.name)
    return None


def is_place(client: Client, path: Path) -> bool:
    """Return whether the client keeps the transcript of a session at a path, by its name and its folder alone."""
    agent, folder = client
    agent_id = agent.home.agent_id(path)
    is_subagent = agent.sidecars.is_subagent(path.name)
    return not is_subagent and agent.home.transcript_place(folder, str(path), agent_id, "") == path


def live_clients(homes: Homes) -> list[LiveClient]:
    """Return the clients that are running."""
    return [client for agent, folder in clients(homes) for client in agent.home.live_clients(folder)]


def open_sessions(homes: Homes) -> frozenset[str]:
    """Return the agents' ids of the sessions that running clients have open."""
    return frozenset(client.agent_id for client in live_clients(homes))


def is_open(homes: Homes, agent_id: str) -> bool:
    """Return whether a running client has the session open."""
    return agent_id in open_sessions(homes)


def client_above(homes: Homes, pid: int) -> LiveClient | None:
    """Return the running client that is the nearest ancestor of a process, or None."""
    running = {client.pid: client for client in live_clients(homes)}
    for _ in range(64):
        if pid in running or pid <= 1:
            break
        pid = processes.parent(pid)
    return running.get(pid)
