"""The parts of an agent: everything that depends on one client's files and lines.

An agent is a package in this folder. Each part of the protocol is one module of it, loaded when it is used: a hook
needs the lines and no settings file. What an agent's lines mean is said by its class of `Line`; from that,
`cutter.py`, which is the same for all agents, makes turns and the state of a session. A line need not have an id or
name the one before it.

Where a second client differs most, the docstrings say what its agent would return; Codex is that example.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sessgit.model.conversation.turn import Gist

if TYPE_CHECKING:  # types alone
    from sessgit.agents.line import Line, Redact
    from sessgit.agents.processes import LiveClient
    from sessgit.agents.values import (
        Document,
        FileEdit,
        Installation,
        Mended,
        NewTurn,
        PluginQuestion,
        Relation,
        Said,
        Seam,
        SideFile,
        StreamAnswer,
        ToolKind,
        Use,
        Written,
    )  # fmt: skip
    from sessgit.model.conversation.content import Call, Piece
    from sessgit.model.conversation.message import Extent
    from sessgit.model.conversation.session import Session
    from sessgit.model.conversation.turn import Cell, Turn
    from sessgit.model.line_list import Bytes
    from sessgit.model.program_input import GivenTurn, Outcome, Part, Task


class Home(Protocol):
    """Where the client keeps its files, below `config`, its own folder, and which clients are running."""

    def resume(self, state: Session) -> list[str]:
        """Return the program and the arguments that continue a session in the client, in the session's project.

        Codex: `codex resume ID`.
        """

    def is_home(self, folder: Path) -> bool:
        """Return whether the client keeps its files in the folder."""

    def agent_id(self, path: Path) -> str:
        """Return the id of the session by the name of its transcript, or "" if no transcript of the client's has such
        a name. Several files may name one session.

        Codex: the first uuid in `rollout-TIME-UUID.jsonl` or `rollout-TIME-UUID_SEGMENT.jsonl`.
        """

    def title(self, config: Path, transcript: Path) -> str:
        """Return the title that the user gave a session, if the client keeps it outside of the transcript; else "".

        Codex: the last one in `session_index.jsonl`.
        """

    def is_cut(self, name: str, other: str) -> bool:
        """Return whether a folder's name was too long for it to be computed, and begins as the other one."""

    def new_place(self, config: Path, agent_id: str, cwd: str, sibling: Path | None = None) -> Path:
        """Return where to write the transcript of a new session: in the folder of another one of the client's, else in
        that for the working folder.

        Codex: `sessions/YYYY/MM/DD/rollout-TIME-UUID.jsonl`, whatever the working folder and the day.
        """

    def copies(self, config: Path, agent_id: str) -> list[Path]:
        """Return all transcripts of a session in the folders of the client, links too."""

    def transcript_folders(self, config: Path) -> list[Path]:
        """Return the folders in which transcripts lie, and the folders of these; links are not followed.

        Codex: the folder of each day, and `archived_sessions`.
        """

    def transcripts(self, config: Path) -> Iterator[Path]:
        """Yield every session's transcript; subagents' are left out and no link is followed."""

    def transcripts_in(self, folder: Path) -> Iterator[Path]:
        """Yield the sessions' transcripts that lie in one folder."""

    def transcript_place(self, config: Path, recorded: str, agent_id: str, cwd: str) -> Path | None:
        """Return where the transcript of a session belongs, from what its state says; None if it says nothing."""

    def link_above(self, path: Path) -> Path | None:
        """Return the link among the folders that lead to a file of the client's, if there is one."""

    def is_transcript(self, config: Path, path: Path) -> bool:
        """Return whether a path that someone else names lies where transcripts lie, links resolved."""

    def live_clients(self, config: Path) -> list[LiveClient]:
        """Return the clients that are running.

        Codex: those that hold a lock in `thread-writer-locks`.
        """


class Hooks(Protocol):
    """Which events of the client the stub records, and what else its settings say."""

    def installed(self, settings: Mapping[str, Any]) -> Installation:
        """Return where our entries are."""

    def refusal(self, settings: Mapping[str, Any], folder: Path) -> str:
        """Return why the client with this folder runs none of our entries, or "" if it does."""

    def untrusted(self, settings: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
        """Return the events whose entry of ours the client does not run until the user trusts it."""

    def trust(self, settings: Mapping[str, Any], folder: Path, env: Mapping[str, str]) -> None:
        """Have the client run our entries, as if the user had allowed it there. Raises ConflictError, StoreError."""

    def distrust(self, settings: Mapping[str, Any], folder: Path) -> None:
        """Remove what `trust` added for our entries."""

    def with_status_line(self, settings: Mapping[str, Any], command: str) -> Document:
        """Return the settings with our status line. Raises ConflictError if they have another one, or the client
        runs no command for it."""

    def without_status_line(self, settings: Mapping[str, Any]) -> Document:
        """Return the settings without our status line; another one stays."""

    def cleanup_days(self, settings: Mapping[str, Any]) -> float:
        """Return after how many days without a change the client deletes a transcript."""

    def settings_file(self, folder: Path) -> Path:
        """Return the file with the hooks in the client's folder."""


class Plugin(Protocol):
    """Our plugin in the client, which `Installation.plugin` names: it records where the settings have no entry."""

    def disabled(self, settings: Mapping[str, Any], key: str) -> Document:
        """Return the settings with the plugin disabled."""

    def folder(self, config: Path, key: str) -> Path | None:
        """Return the folder from which the client loads the plugin, or None if it does not say."""

    def version(self, plugin: Path) -> str | None:
        """Return the version of the plugin in a folder, or None where there is no plugin."""

    def question(self, event: Mapping[str, Any]) -> PluginQuestion | None:
        """Return the command that a submitted prompt asks for, if it is one that needs no model, else None."""

    def answer(self, text: str) -> str:
        """Return what the hook prints so that the client shows a text, and does not send the prompt to the model."""


class Lines(Protocol):
    """Lines of a transcript, one by one."""

    def make(self, raw: bytes, extent: Extent = ..., redact: Redact = ...) -> Line:
        """Return the line as it is stored, by default a stored one without a place."""

    def holds_answer(self, path: Path, offset: int, answer: str | None) -> bool | None:
        """Return whether the client has written, after `offset`, the end of the turn with this answer, which it does up
        to 100 ms after its hook; None if there is no answer to look for."""

    def opens_turn(self, text: str) -> bool:
        """Return whether words of a person would be a prompt; the client's own begin otherwise."""

    def with_session(self, raw: bytes, old: Sequence[str], new: str) -> bytes:
        """Return the line with the session's id in the place of others, wherever one names its session."""

    def identity(self, raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
        """Return all ids and kinds on a line, those of `protected` keys too: what must stay when a value is removed."""


class Cells(Protocol):
    """What the lines of one turn say: cells, tools, files, tokens, prompt and answer."""

    def kind(self, tool: str) -> ToolKind | None:
        """Return what a tool does, or None for one that neither runs commands nor works on files."""

    def describe(self, body: Sequence[Line]) -> Turn:
        """Return the turn that a body says; the first line is its prompt."""

    def label(self, lines: Sequence[Line]) -> list[tuple[str, str]]:
        """Return for each line the tool, else the line's type, and the path of the file that it is about, or ``""``."""

    def uses(self, body: Sequence[bytes], cells: Sequence[Cell], key: str) -> dict[int, Use]:
        """Return by the ordinals of cells what they are about, for those whose tool is known."""


class Content(Protocol):
    """A turn's lines as what was said and done, for people, exports and searches."""

    def texts(self, line: Line, number: int) -> Iterator[Said]:
        """Yield the texts of the `number`th line of a turn's body, from 1, in their order; lines of subagents have
        none."""

    def parse_turn(self, body: Sequence[Line]) -> tuple[Turn, list[Piece]]:
        """Return the turn that a body says, and its pieces in order; a body has one line at least."""

    def content_after(self, call: Call, file: str, before: str | None) -> str | None:
        """Return the whole text of one of the call's files after the call, where the lines tell it; `before` is what it
        was before."""

    def left_by(self, call: Call, file: str) -> tuple[str | None, list[str]]:
        """Return the whole text of one of the call's files after the call, where its own lines tell it, and the lines
        that went out and came in as the client noted them."""

    def relation(self, a: Sequence[Line], b: Sequence[Line]) -> Relation:
        """Return how the bodies of two turns with the same prompt are related."""

    def comparable_parts(self, body: Sequence[Line]) -> Mapping[str, object]:
        """Return the `prompt`, the `answer` and the `calls` of a turn, equal for two turns in which the same was said
        and done, whatever the ids and times of their lines."""


class Tools(Protocol):
    """The tools of the client: what their arguments and results say, and what those for files do."""

    def edits(self, lines: Sequence[bytes]) -> Iterator[FileEdit]:
        """Yield what the calls on these lines, a turn's or a subagent's, did to files, in the order of their results.

        Calls that failed, were refused or have no result are left out.
        """

    def why_not(self, call: Call) -> str:
        """Return why a call cannot be compared with what it does now, or ""."""

    def command(self, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """Return the command that a call of a shell runs, "" if there is none, and the folder that it names, or ""."""

    def output(self, text: str) -> str:
        """Return what a tool printed, without what the client adds to it."""

    def kept_ends(self, text: str) -> tuple[str, str] | None:
        """Return the beginning and the end that the client kept of an output that was too long; None for any other."""

    def numbered_lines(self, text: str) -> list[tuple[int, str]]:
        """Return the lines of a file, and their numbers, in the result of a tool for reading."""

    def lines(self, arguments: Mapping[str, Any], text: str) -> list[tuple[int, str]]:
        """Return the lines of a file that a tool for reading is asked for, by number from 1."""

    def sources(self, tool: str, text: str) -> list[str] | None:
        """Return the cells of a file, where the tool reads these and not its lines."""

    def written(self, call: Call, before: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the text of each file that a tool for writing writes, None of one that it deletes; `before` has those
        of the call's files, None where there is none. Raises DeclinedError where the tool does not, FileNotFoundError
        where a file must be there."""


class Subagents(Protocol):
    """The files of a session's subagents, and how much of each is recorded with which turn."""

    done: dict[str, tuple[str, int, int]]

    def pass_over(self, key: str, recorded: Callable[[], Mapping[str, int]]) -> None:
        """Take so many lines of each file, by its name, as recorded with the turn."""
        return

    def has(self, path: str) -> bool:
        """Return whether a path in a turn's folder is that of a subagent's file that lies here."""
        return False

    def has_more(self) -> bool:
        """Return whether a file that is known, or lies in the session's own folder, holds what is recorded with no
        turn."""
        return False

    def of_turn(self, key: str, lines: Sequence[Line], *, is_last: bool) -> dict[str, Bytes]:
        """Return the pieces that belong to the turn by path in its folder; to the last turn also what others left
        over."""
        return {}


SidecarPlace = Callable[["SideFile"], "Path | None"]
"""Where the client looks for a side file of one session; None for a name that the client would not have given."""


class _NoSubagents(Subagents):
    def __init__(self) -> None:
        self.done = {}


class Sidecars(Protocol):
    """What the client keeps in files of their own: subagents, large tool results, plans, todos and tasks; by default
    nothing."""

    def place(self, config: Path, folder: Path, agent_id: str, version: str = "") -> SidecarPlace:
        """Return where the side files of a session lie whose transcript is in `folder`; `version` is the client's."""
        return lambda file: None

    def subagents(self, transcript: Path, agent_id: str, redact: Redact) -> Subagents:
        """Return the files of a session's subagents, of which nothing is recorded yet."""
        return _NoSubagents()

    def is_subagent(self, name: str) -> bool:
        """Return whether a subagent's file can have the name."""
        return False

    def session_of(self, path: Path) -> str:
        """Return the session that the first line of a subagent's file names, or ``""``."""
        return ""

    def results(
        self, transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the large tool results that the lines name, by path in the turn's folder."""
        return iter(())

    def live(self, config: Path, agent_id: str, slug: str, redact: Redact) -> Iterator[tuple[str, bytes]]:
        """Yield the plan, todos and tasks as they are now, by path in `live/`."""
        return iter(())

    def plan_name(self, name: str) -> str:
        """Return the file name of a plan in the client's form: its own where it has it, else made of it."""
        return name

    def unnamed_plans(self, config: Path, transcripts: Iterable[Path]) -> list[str]:
        """Return the file names of plans in the client's folder that are recorded with none of the transcripts."""
        return []

    def may_be_inline(self, version: str) -> bool:
        """Return whether a client of this version, or one before it, may have written subagents' lines into the
        transcript."""
        return False

    def goes_on(self, piece: Bytes) -> bool:
        """Return whether a piece of a subagent's file has another one before it, or may have."""
        return False

    def messages(self, piece: Bytes) -> set[str]:
        """Return the ids of the model's messages in a piece of a subagent's file."""
        return set()

    def gist(self, body: Sequence[Line], pieces: Iterable[Bytes], counted: Collection[str] = ()) -> Gist:
        """Return what subagents did in a turn's body and in the pieces of their files, each message counted once;
        `counted` are the ids of messages that are counted elsewhere."""
        return Gist()

    def own_lines(self, piece: Bytes) -> list[Line]:
        """Return the lines in a piece of a subagent's file as if they were the conversation's own."""
        return []

    def as_own(self, file: SideFile, agent_id: str, version: str) -> SideFile:
        """Return the file, or a piece of it, with the session's id in the place of another's where its lines name
        one; a file that both sessions share stays as it is. `version` is the client's."""
        return file

    def links(self, config: Path, transcript: Path, agent_id: str) -> Iterator[Path]:
        """Yield the links among the folders that a recording of the transcript would read below the client's folder."""
        return iter(())

    @property
    def INDEX(self) -> str: ...  # noqa: N802
    def folder_name(self, recorded: str, project: str) -> str:
        """Return the name of a project's folder: as the session's own transcript had it, if it can be so."""

    def merged(self, index: bytes | None, states: Mapping[Path, Session], path: Path) -> bytes:
        """Return the client's index of a project's sessions with these transcripts in it; the same bytes where
        nothing changes. Raises SessgitError where it is none."""


class _NoSidecars(Sidecars):
    pass


STAND_INS: Mapping[str, Callable[[], object]] = {"sidecars": _NoSidecars}
"""What is used of an agent that lacks a part."""


class Writer(Protocol):
    """Turns as a transcript that the client resumes."""

    def resumable(self, turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
        """Return the turns, each given as its stored lines, as one transcript of the session `agent_id`.

        Codex: the lines as they are, with the new id in `session_meta`.
        """

    def continued(
        self, shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
    ) -> tuple[Written, bytes]:
        """Return the beginning that `resumable` makes of the shared turns, and the lines with which further ones go
        on."""

    def leads_back(self, body: Sequence[Line]) -> bool:
        """Return whether the client finds its way from the last line of a turn back to the first one."""

    def cell_end(self, body: Sequence[Line], cells: Sequence[Cell], chosen: Cell) -> int:
        """Return the number of the line at which a turn can be cut behind a cell: every call up to there has its
        result."""

    def session_ids(self, line: Line) -> set[str]:
        """Return the sessions that a line names as its own."""

    def spoken(self, lines: Iterable[bytes]) -> list[bytes]:
        """Return the lines of a turn in which something was said, with all else left out."""

    def summary(self, lines: Iterable[Line]) -> str:
        """Return the text of the last summary that a compaction left in these lines, or ""."""

    def title_line(self, title: str, agent_id: str) -> bytes:
        """Return the line by which the client knows a session's title, without its newline; b"" if it reads titles
        elsewhere."""

    def title_of(self, raw: bytes) -> str:
        """Return the title that a line gives if it is such a line, or ""."""

    def seam(
        self,
        turns: Iterable[Sequence[Line]],
        left: Iterable[Sequence[Line]],
        last: Sequence[Line],
        pending: Sequence[Line],
    ) -> Seam:
        """Return the seam of a file where the head's turns have these lines, and those that rewinds left behind the
        other ones; `last` is the body of the head's last turn and `pending` what is at the end of the file.
        Raises SessgitError where no client can go on there."""

    def summary_turn(self, at: Seam, key: Callable[[str], str], texts: tuple[str, str], state: Session) -> NewTurn:
        """Return a prompt and an answer as one turn of the session; `key` makes an id of a word."""

    def grafted(
        self, at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str
    ) -> list[NewTurn]:
        """Return the turns with these bodies, in their order, as turns of the session `agent_id` behind the seam."""

    def complete(self, body: Sequence[Line]) -> list[Line]:
        """Return the lines of a body that belong to the conversation, each call with its result and each result with
        its call."""


class Chain(Protocol):
    """Writes line after line of a session that a program holds."""

    def name_by(self, name: Callable[[str], str]) -> None:
        """Have the ids of lines from here on made by a function of a word that is unique within the session."""

    def prompt(self, text: str, at: float | None, key: str = "") -> list[bytes]:
        """Return what opens a turn, said `at` seconds since 1970; `key` is the prompt's id if it has one already."""

    def call(self, task: Task, at: float | None) -> list[bytes]:
        """Return what begins a cell; `task` has an id."""

    def outcome(self, cell_id: str, outcome: Outcome, at: float | None, operation: str = "") -> list[bytes]:
        """Return what ends a cell, which is of that operation."""

    def words(
        self, text: str, at: float | None, model: str = "", tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:
        """Return the line of something said; without a model the program itself said it."""

    def part(self, part: Part, model: str, at: float | None) -> list[bytes]:
        """Return the lines of one part of a turn."""

    def turn(self, turn: GivenTurn) -> list[bytes]:
        """Return the lines of a turn that is given as a whole."""

    def say_plan(self, name: str) -> None:
        """Make every line from here on say that the session has a plan of that name."""

    def say_branch(self, name: str) -> None:
        """Make every line from here on name the branch that is checked out in the project, if there is one."""

    def follow(self, lines: Iterable[bytes]) -> None:
        """Continue behind lines that it did not write."""


class End(Protocol):
    """Where a transcript ends, as a program that writes it has to know it."""

    path: Path
    size: int
    torn: int
    key: str
    begun: dict[str, Task]
    pending: dict[str, Task]
    called: set[str]
    client_at_work: bool
    """Whether the last turn is the client's, and has no end yet."""

    @property
    def chain(self) -> Chain: ...
    def read(self) -> bool:
        """Read what was written since the last time; returns whether the file is there."""

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Add lines that the chain wrote; with `durable` they survive a loss of power. `read` came right before."""

    def forget(self) -> None:
        """Forget what is known of the file."""


class Programs(Protocol):
    """Sessions that a program holds: what it says on lines where the client's form has no place for it."""

    @property
    def GONE(self) -> str: ...  # noqa: N802
    def chain(self, agent_id: str, project: str) -> Chain:
        """Write the lines of a session from its beginning on."""

    def end(self, path: Path, state: Session) -> End:
        """Return the end of a session's file, of which nothing is read yet."""

    def outside(self, path: Path, state: Session) -> End:
        """Return the end of the file with what programs add outside a session's transcript."""

    def give_up(self, path: Path, state: Session) -> bool:
        """End the cells that a program which is gone left pending; returns whether there were any."""

    def call_id(self, cell_id: str) -> str:
        """Return the client's id for the call that is a program's cell."""

    def cell_of(self, line: Line) -> tuple[str, bool]:
        """Return the cell that a line of a program begins or ends, "" for none, and whether it ends it."""

    def continues(self, recorded: Sequence[bytes], new: Sequence[bytes]) -> bool:
        """Return whether the new lines say what those here do, and perhaps more."""

    def extended(self, recorded: Sequence[bytes], new: Sequence[bytes]) -> bytes:
        """Return the lines here, and behind them what the new ones say more, as a transcript."""

    def same_prompts(self, recorded: Sequence[bytes], new: Sequence[bytes]) -> bool:
        """Return whether the prompts that both have say the same, whatever was done about them."""

    def late_results(self, recorded: Sequence[bytes]) -> dict[str, bool]:
        """Return the cells that had no result when other lines were written behind them, by their ids, and whether
        each has got it since."""


class Repair(Protocol):
    """A broken chain of lines, repaired so that every version of the client resumes it."""

    def mend(self, turns: Iterable[tuple[int, Sequence[bytes]]], agent_id: str, known: Sequence[str] = ()) -> Mended:
        """Return the lines of the turns of a session, mended. `known` are ids of sessions that it was copied from."""

    def in_order(self, raw: Sequence[bytes]) -> tuple[list[bytes], int]:
        """Return the lines in the order of the conversation, and how many were elsewhere."""


class Stream(Protocol):
    """The client as a partner that a program speaks to, with a JSON object a line."""

    @property
    def PROTOCOL(self) -> str: ...  # noqa: N802
    @property
    def PROGRAM(self) -> str: ...  # noqa: N802
    def command(self, typed: str) -> str:
        """Return the command with the options by which the client speaks so."""

    def question(self, prompt: str) -> dict[str, Any]:
        """Return the object that asks."""

    def model(self, document: Mapping[str, Any]) -> str:
        """Return the model that an object names, or ""."""

    def answer(self, document: Mapping[str, Any]) -> StreamAnswer | None:
        """Return the answer, where the object is the last one of it."""
