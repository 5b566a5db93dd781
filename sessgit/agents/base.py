"""What an agent is to the rest of the program: everything that depends on one client's files and lines.

An agent is a package in this folder. Each part of the protocol is one module of it, loaded when it is used: a hook
needs the lines and the cutter and no settings file. A line need not have an id or name the one before it: what follows
what is the cutter's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from sessgit.agents.line import Line
from sessgit.agents.reader import Redact
from sessgit.agents.values import (
    Document,
    History,
    Installation,
    LiveClient,
    Mended,
    NewTurn,
    Node,
    Relation,
    Said,
    Seam,
    SideFile,
    Snapshot,
    StreamAnswer,
    ToolKind,
    Use,
    Written,
)  # fmt: skip
from sessgit.model.conversation.content import Call, Piece
from sessgit.model.conversation.message import Extent
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.turn import Cell, Gist, Tokens, Turn
from sessgit.model.line_list import Bytes
from sessgit.model.program_input import GivenTurn, Outcome, Part, Reason, Task


class Agent(Protocol):
    """One client. `name` is what states call it, `title` what people do."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...

    @property
    def protected_keys(self) -> frozenset[str]:
        """The keys of lines whose values are never changed, whatever they look like."""

    # Where its files are

    def is_home(self, folder: Path) -> bool:
        """Whether the folder is one in which the client keeps its files."""

    def is_own(self, path: Path) -> bool:
        """Whether a transcript has a name as the client gives it."""

    @property
    def home(self) -> Home: ...
    @property
    def hooks(self) -> Hooks: ...

    def wait(self, path: Path, offset: int, answer: str | None, since: float) -> bool:
        """Waits until the file holds the answer behind `offset`, or until it rests; False where time ran out first.

        `since` is the time, in seconds since 1970, at which the client began its hook.
        """

    # What its lines mean

    @property
    def lines(self) -> Lines: ...
    def cutter(self, history: History, *, session: str) -> Cutter:
        """Makes turns and branches of lines."""

    def facts(self, state: Session | None = None) -> Facts:
        """What is known of a session where its file is read from its beginning: what its state says of its birth."""

    def kept_facts(self, document: Mapping[str, Any]) -> Facts | None:
        """The facts that an earlier pass kept as a document, or None where a value is of another kind."""

    @property
    def cells(self) -> Cells: ...
    @property
    def content(self) -> Content: ...
    @property
    def tools(self) -> Tools: ...
    @property
    def comparison(self) -> Comparison: ...
    @property
    def sidecars(self) -> Sidecars: ...

    # What is written for it

    @property
    def writer(self) -> Writer: ...
    @property
    def grafting(self) -> Grafting: ...
    @property
    def programs(self) -> Programs: ...
    @property
    def stream(self) -> Stream: ...
    @property
    def repair(self) -> Repair: ...


class Home(Protocol):
    """Where the client keeps its files, below `config`, its own folder, and which clients are alive."""

    def is_cut(self, name: str, found: str) -> bool:
        """Whether a folder's name was too long for it to be computed, and begins as the one that was found."""

    def project_folder(self, config: Path, cwd: str) -> Path:
        """The client's folder for the transcripts of a working folder; it need not exist."""

    def transcripts(self, config: Path) -> Iterator[Path]:
        """Every session's transcript; subagents' are left out and no link is followed."""

    def transcripts_in(self, folder: Path) -> Iterator[Path]:
        """The sessions' transcripts that lie in one folder."""

    def transcript_place(self, config: Path, said: str, agent_id: str, cwd: str) -> Path | None:
        """Where the transcript of a session belongs, from what its state says; None where nothing says it."""

    def link_above(self, path: Path) -> Path | None:
        """The link among the folders that lead to a file of the client's, if there is one."""

    def is_transcript(self, config: Path, path: Path) -> bool:
        """Whether a path that someone else names lies where transcripts lie, links resolved."""

    def live_clients(self, config: Path) -> list[LiveClient]:
        """The clients that are alive."""

    def open_sessions(self, config: Path) -> frozenset[str]:
        """The client's ids of the sessions that clients which are alive have open."""

    def is_open(self, config: Path, agent_id: str) -> bool:
        """Whether a client that is alive has the session open."""

    def client_above(self, config: Path, pid: int) -> LiveClient | None:
        """The living client that is an ancestor of a process, the nearest one."""


class Hooks(Protocol):
    """The hooks in the client's settings that run the stub."""

    @property
    def HOOK_EVENTS(self) -> tuple[str, ...]: ...  # noqa: N802
    @property
    def CELL_EVENTS(self) -> tuple[str, ...]: ...  # noqa: N802
    def stub_command(self, stub: Path) -> str:
        """The command that runs the stub while it is there, and succeeds in any case."""

    def with_hooks(self, settings: Mapping[str, Any], command: str, events: Iterable[str] = ()) -> Document:
        """The settings with exactly one entry of ours for each of `events` and none for others."""

    def without_hooks(self, settings: Mapping[str, Any]) -> Document:
        """The settings without our entries, and without the lists and objects that were empty but for them."""

    def installed(self, settings: Mapping[str, Any]) -> Installation:
        """Where our entries are."""

    def cleanup_days(self, settings: Mapping[str, Any]) -> float:
        """After how many days without a change the client deletes a transcript."""

    def read(self, path: Path) -> Snapshot:
        """The settings, empty if there is no file; a file that cannot be written back unharmed is refused."""

    def replace(self, snapshot: Snapshot, document: Mapping[str, Any], *, keep_empty: bool = True) -> bool:
        """Puts the document in the place of the settings in one step; returns whether the file had to change."""


class Lines(Protocol):
    """Lines of a transcript, one by one."""

    def make(self, raw: bytes, extent: Extent, redact: Redact) -> Line:
        """The line as it is stored."""

    def parsed(self, lines: Iterable[bytes]) -> list[Line]:
        """Stored lines as `Line`s that do not say where they stood."""

    def said(self, line: Line) -> str:
        """All that the line's message says."""

    def opens_turn(self, text: str) -> bool:
        """Whether words of a person would be a prompt; the client's own begin otherwise."""

    def with_session(self, raw: bytes, old: Sequence[str], new: str) -> bytes:
        """The line with the session's id in the place of others, wherever one names its session."""

    def is_cut_short(self, lines: Iterable[Line]) -> bool:
        """Whether the lines of a transcript end in the middle of a turn."""

    def session_of(self, line: Line) -> str:
        """The id of the session that a line names as its own, or ``""``."""

    def forked_from(self, line: Line) -> str:
        """The session that a line says it was copied from, or ``""``."""

    def identity(self, raw: bytes, protected: Iterable[str]) -> tuple[object, ...]:
        """All ids and kinds on a line, those of `protected` keys too: what must stay when a value is removed."""

    def is_name(self, uuid: str) -> bool:
        """Whether a turn can be named so."""


class Cutter(Protocol):
    """Takes lines in the order of the file; the attributes are the state between two."""

    head: Node | None
    rewound: dict[str, Node]
    current: Node | None
    pending: list[Line]
    stuck: int
    finished: list[Node]
    is_behind: bool
    file_head: Node | None

    def resume(self, head: Node | None, rewound: dict[str, Node], current: Node | None, uuids: Iterable[str]) -> None:
        """Goes on where an earlier pass stopped; `uuids` are those of the current turn's body."""

    def await_prompt(self, pending: list[Line], stuck: int) -> None:
        """Takes the lines that belong to no body yet, the first `stuck` of them from before the last body line."""

    def keep(self, head: Node | None, rewound: dict[str, Node], *, has_grown: bool = False) -> None:
        """Keeps the recorded branches that a file which was cut shorter or written anew does not lead to any more."""

    def uuids(self) -> list[str]:
        """The ids of the lines of the current turn's body, for `resume`."""

    def feed(self, line: Line) -> None:
        """Puts the next line of the file where it belongs; turns that got their last line go to `finished`."""

    def is_open(self, node: Node) -> bool:
        """Whether no turn follows the node yet, so that it may still grow."""


class Facts(Protocol):
    """Collects what the lines say of the session as a whole."""

    born: str
    project: str
    title: str
    git_branch: str
    version: str
    slug: str
    headless: bool
    held: bool

    def note(self, line: Line) -> None:
        """Takes what the line says."""

    def learn(self, names: Iterable[str]) -> None:
        """Takes names that the session was given."""

    def apply(self, state: Session, **own: Any) -> Session:
        """The state with what the lines said; `own` are other fields of it that change in the same step."""

    def kept(self) -> dict[str, Any]:
        """The facts as a document, for `kept_facts`."""


class Cells(Protocol):
    """What the lines of one turn say: cells, tools, files, tokens, prompt and answer."""

    @property
    def FILE_TOOLS(self) -> tuple[str, ...]: ...  # noqa: N802
    @property
    def SUBAGENT_TOOLS(self) -> tuple[str, ...]: ...  # noqa: N802
    @property
    def SHELLS(self) -> tuple[str, ...]: ...  # noqa: N802
    def describe(self, body: Sequence[Line]) -> Turn:
        """The turn that a body says; the first line is its prompt."""

    def label(self, lines: Sequence[Line]) -> list[tuple[str, str]]:
        """For each line the tool, else the line's type, and the path of the file that it is about, or ``""``."""

    def is_program(self, body: Sequence[Line], cell: Cell) -> bool:
        """Whether a program made the cell itself, and no message of a model."""

    def uses(self, body: Sequence[bytes], cells: Sequence[Cell], key: str, folder: str) -> dict[int, Use]:
        """By the ordinals of cells what they are about, for those whose tool is known."""


class Content(Protocol):
    """A turn's lines as what was said and done, for people, exports and searches."""

    def texts(self, line: Line, number: int) -> Iterator[Said]:
        """The texts of the `number`th line of a turn's body, from 1, in their order; lines of subagents have none."""

    def told(self, body: Sequence[Line]) -> tuple[Turn, list[Piece]]:
        """The turn that a body says, and its pieces in order; a body has one line at least."""

    def tokens(self, body: Sequence[Line], cell: Cell) -> Tokens:
        """What a message of the model used; nothing for a tool call."""

    def content_after(self, call: Call, before: str | None) -> str | None:
        """The whole text of the call's file after the call, where the lines tell it; `before` is what it was before."""

    def left_by(self, call: Call) -> tuple[str | None, list[str]]:
        """The whole text of the call's file after the call, where its own lines tell it, and the lines that went out
        and came in as the client noted them."""


class Tools(Protocol):
    """The tools of the client: what kind they are, what their arguments name, and what those for files do."""

    def kind(self, tool: str) -> ToolKind | None:
        """What a tool does, or None where that cannot be done again."""

    def path(self, arguments: Mapping[str, Any]) -> str:
        """The file or folder that a call names, or ``""``."""

    def was_refused(self, call: Call) -> bool:
        """Whether the client did not let the call run."""

    def why_not(self, call: Call) -> str:
        """Why a call cannot be compared with what it does now, or ``""``."""

    def sources(self, tool: str, text: str) -> list[str] | None:
        """The cells of a file, where the tool reads these and not its lines."""

    def written(self, tool: str, arguments: Mapping[str, Any], before: str | None) -> str:
        """What a tool for writing makes of a file's text, None where there is none. Raises DeclinedError where it does
        not, FileNotFoundError where the file must be there."""


class Comparison(Protocol):
    """Whether two turns have the same lines, and in what they differ."""

    def relation(self, a: Sequence[Line], b: Sequence[Line]) -> Relation:
        """How the bodies of two turns with the same prompt are related."""

    def differences(self, a: Sequence[Line], b: Sequence[Line]) -> tuple[str, ...]:
        """Which of `prompt`, `answer` and `calls` differ, whatever the ids and times of the lines."""


class Subagents(Protocol):
    """The files of a session's subagents, and how much of each is recorded with which turn."""

    @property
    def done(self) -> dict[str, tuple[str, int, int]]: ...
    def resume(self, done: Mapping[str, tuple[str, int, int]]) -> None:
        """Goes on from what an earlier pass recorded."""

    def pass_over(self, key: str, recorded: Callable[[], Mapping[str, int]]) -> None:
        """Takes so many lines of each file, by its name, as recorded with the turn."""

    def has(self, path: str) -> bool:
        """Return whether a path in a turn's folder is that of a subagent's file that lies here."""

    def has_more(self) -> bool:
        """Whether a file that is known, or lies in the session's own folder, holds what is recorded with no turn."""

    def of_turn(self, key: str, lines: Sequence[Line], *, is_last: bool) -> dict[str, Bytes]:
        """The pieces that belong to the turn by path in its folder; to the last turn also what others left over."""


class SidecarPlace(Protocol):
    """Where the side files of one session lie."""

    def of(self, file: SideFile) -> Path | None:
        """Where the client looks for the file; None for a name that the client would not have given."""


class Sidecars(Protocol):
    """What the client keeps in files of their own: subagents, large tool results, plans, todos and tasks."""

    def place(self, config: Path, folder: Path, agent_id: str, version: str = "") -> SidecarPlace:
        """Where the side files of a session lie whose transcript is in `folder`; `version` is the client's."""

    def subagents(self, transcript: Path, agent_id: str, redact: Redact) -> Subagents:
        """The files of a session's subagents, of which nothing is recorded yet."""

    def is_subagent(self, name: str) -> bool:
        """Whether a subagent's file can have the name."""

    def complete(self, path: Path) -> Iterator[tuple[bytes, Extent]]:
        """The complete lines of a file, each with its place; none where the file is gone or no regular one."""

    def of_complete(self, found: Iterable[tuple[bytes, Extent]]) -> Bytes:
        """The file of these lines, the last one with a newline if it had one at its place."""

    def clean(self, name: str, data: Bytes, redact: Redact) -> Bytes:
        """The file, or a piece of it, as it is stored."""

    def prompt_of(self, piece: Bytes) -> str:
        """The id of the prompt that the first line of a subagent's file names, or ``""``."""

    def session_of(self, path: Path) -> str:
        """Return the session that the first line of a subagent's file names, or ``""``."""

    def results(
        self, transcript: Path, agent_id: str, lines: Sequence[Line], redact: Redact
    ) -> Iterator[tuple[str, bytes]]:
        """The large tool results that the lines name, by path in the turn's folder."""

    def live(self, config: Path, agent_id: str, slug: str, redact: Redact) -> Iterator[tuple[str, bytes]]:
        """Plan, todos and tasks as they are now, by path in `live/`."""

    def plan_name(self, name: str) -> str:
        """The file name of a plan in the client's form: its own where it has it, else made of it."""

    def mentions(self, lines: Iterable[bytes], name: str) -> bool:
        """Whether any of the lines names a subagent, by the name of its file."""

    def begun_by(self, lines: Iterable[Line]) -> set[str]:
        """The ids by which the files of subagents name one of these lines as what began them."""

    def may_be_inline(self, version: str) -> bool:
        """Whether a client of this version, or one before it, may have written subagents' lines into the transcript."""

    def goes_on(self, piece: Bytes) -> bool:
        """Whether a piece of a subagent's file has another one before it, or may have."""

    def messages(self, piece: Bytes) -> set[str]:
        """The ids of the model's messages in a piece of a subagent's file."""

    def gist(self, body: Sequence[Line], pieces: Iterable[Bytes], counted: Collection[str] = ()) -> Gist:
        """What subagents did in a turn's body and in the pieces of their files, each message counted once; `counted`
        are the ids of messages that are counted elsewhere."""

    def is_flat(self, file: SideFile, version: str) -> bool:
        """Whether a subagent's file lies beside the transcript, as the client left it that wrote its first line."""

    def as_own(self, file: SideFile, agent_id: str) -> SideFile:
        """The file, or a piece of it, with the session's id in the place of another's where its lines name one."""

    def links(self, config: Path, transcript: Path, agent_id: str) -> Iterator[Path]:
        """The links among the folders that a recording of the transcript would read below the client's folder."""

    @property
    def INDEX(self) -> str: ...  # noqa: N802
    def folder_name(self, said: str, project: str) -> str:
        """The name of a project's folder: as the session's own transcript had it, if it can be so."""

    def merged(self, index: bytes | None, states: Mapping[Path, Session], path: Path) -> bytes:
        """The client's index of a project's sessions with these transcripts in it; the same bytes where nothing
        changes. Raises SessgitError where it is none."""


class Writer(Protocol):
    """Turns as a transcript that the client resumes."""

    def resumable(self, turns: Iterable[Sequence[bytes]], agent_id: str, title: str = "") -> Written:
        """The turns, each given as its stored lines, as one transcript of the session `agent_id`."""

    def continued(
        self, shared: Sequence[Sequence[bytes]], more: Sequence[Sequence[bytes]], agent_id: str
    ) -> tuple[Written, bytes]:
        """The beginning that `resumable` makes of the shared turns, and the lines with which further ones go on."""

    def leads_back(self, body: Sequence[Line]) -> bool:
        """Whether the client finds its way from the last line of a turn back to the first one."""

    def cell_end(self, body: Sequence[Line], cells: Sequence[Cell], chosen: Cell) -> int:
        """The number of the line at which a turn can be cut behind a cell: every call up to there has its result."""

    def session_ids(self, line: Line) -> set[str]:
        """The sessions that a line names as its own."""

    def spoken(self, lines: Iterable[bytes]) -> list[bytes]:
        """The lines of a turn in which something was said, with all else left out."""

    def summary(self, lines: Iterable[Line]) -> str:
        """The text of the last summary that a compaction left in these lines, or ``""``."""

    def title_line(self, title: str, agent_id: str) -> bytes:
        """The line by which the client knows a session's title, without its newline."""

    def is_titles(self, data: bytes, agent_id: str) -> bool:
        """Whether the bytes are lines with titles of the session and nothing else."""

    def title_of(self, data: bytes) -> str:
        """The last title that a transcript gives by such a line, or ``""``."""


class Grafting(Protocol):
    """Lines that go on where a transcript ends: a turn of our own making, or turns of another conversation."""

    def seam(
        self,
        turns: Iterable[Sequence[Line]],
        left: Iterable[Sequence[Line]],
        last: Sequence[Line],
        pending: Sequence[Line],
    ) -> Seam:
        """The seam of a file where the head's turns have these lines, and those that rewinds left behind the other
        ones; `last` is the body of the head's last turn and `pending` what stands at the end of the file. Raises
        SessgitError where no client can go on there."""

    def told(self, at: Seam, key: Callable[[str], str], said: tuple[str, str], state: Session) -> NewTurn:
        """A prompt and an answer as one turn of the session; `key` makes an id of a word."""

    def grafted(
        self, at: Seam, bodies: Iterable[Sequence[bytes]], key: Callable[[str], str], agent_id: str
    ) -> list[NewTurn]:
        """The turns with these bodies, in their order, as turns of the session `agent_id` behind the seam."""

    def complete(self, body: Sequence[Line]) -> list[Line]:
        """The lines of a body that belong to the conversation, each call with its result and each result with its
        call."""


class Chain(Protocol):
    """Writes line after line of a session that a program holds."""

    def name_by(self, name: Callable[[str], str]) -> None:
        """Has the ids of lines from here on made by a function of a word that is unique within the session."""

    def prompt(self, text: str, at: float | None, key: str = "") -> list[bytes]:
        """What opens a turn, said `at` seconds since 1970; `key` is the prompt's id where it has one already."""

    def call(self, task: Task, at: float | None) -> list[bytes]:
        """What begins a cell; `task` has an id."""

    def outcome(self, cell_id: str, outcome: Outcome, at: float | None, operation: str = "") -> list[bytes]:
        """What ends a cell, which is of that operation."""

    def words(
        self, text: str, at: float | None, model: str = "", tokens: Mapping[str, int] | None = None
    ) -> list[bytes]:
        """Something said; without a model by the program itself."""

    def part(self, part: Part, model: str, at: float | None) -> list[bytes]:
        """The lines of one part of a turn."""

    def turn(self, turn: GivenTurn) -> list[bytes]:
        """The lines of a turn that is given as a whole."""

    def say_plan(self, name: str) -> None:
        """Has every line from here on say that the session has a plan of that name."""

    def follow(self, lines: Iterable[bytes]) -> None:
        """Goes on behind lines that it did not write."""


class End(Protocol):
    """Where a transcript ends, as a program that writes it has to know it."""

    path: Path
    size: int
    torn: int
    key: str
    begun: dict[str, Task]
    pending: dict[str, Task]
    called: set[str]

    @property
    def chain(self) -> Chain: ...
    def read(self) -> bool:
        """Reads what was written since the last time; returns whether the file is there."""

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Adds lines that the chain wrote; with `durable` they survive a loss of power. `read` came right before."""

    def forget(self) -> None:
        """Nothing of the file is known any more."""


class Programs(Protocol):
    """Sessions that a program holds: what it says on lines where the client's form has no place for it."""

    @property
    def GONE(self) -> str: ...  # noqa: N802
    def chain(self, agent_id: str, project: str) -> Chain:
        """Writes the lines of a session from its beginning on."""

    def end(self, path: Path, state: Session) -> End:
        """The end of a session's file, of which nothing is read yet."""

    def give_up(self, path: Path, state: Session) -> bool:
        """Ends the cells that a program which is gone left pending; returns whether there were any."""

    def call_id(self, cell_id: str) -> str:
        """The client's id for the call that is a program's cell."""

    def call_of(self, line: Line, key: str, cell: Cell) -> str:
        """The client's id for the call on a line that is the cell of the turn `key`, or ``""``."""

    def model_of(self, line: Line) -> str:
        """The model that wrote the line, or ``""`` where none did."""

    def reason(self, line: Line) -> Reason | None:
        """The reason that a line says, if a program said one there."""

    def goes_on(self, here: Sequence[bytes], new: Sequence[bytes]) -> bool:
        """Whether the new lines say what those here do, and perhaps more."""

    def grown(self, here: Sequence[bytes], new: Sequence[bytes]) -> bytes:
        """The lines here, and behind them what the new ones say more, as a transcript."""

    def same_prompts(self, here: Sequence[bytes], new: Sequence[bytes]) -> bool:
        """Whether the prompts that both have say the same, whatever was done about them."""

    def waiting(self, here: Sequence[bytes]) -> dict[str, bool]:
        """The cells that had no result when other lines were written behind them, by their ids, and whether each has
        got it since."""


class Repair(Protocol):
    """A broken chain of lines, repaired so that every version of the client resumes it."""

    def mend(self, turns: Iterable[tuple[int, Sequence[bytes]]], agent_id: str, known: Sequence[str] = ()) -> Mended:
        """The lines of the turns of a session, mended. `known` are ids of sessions that it was copied from."""

    def in_order(self, raw: Sequence[bytes]) -> tuple[list[bytes], int]:
        """The lines in the order of the conversation, and how many stood elsewhere."""


class Stream(Protocol):
    """The client as a partner that a program speaks to, with a JSON object a line."""

    @property
    def PROTOCOL(self) -> str: ...  # noqa: N802
    @property
    def PROGRAM(self) -> str: ...  # noqa: N802
    def command(self, typed: str) -> str:
        """The command with the options by which the client speaks so."""

    def question(self, prompt: str) -> dict[str, Any]:
        """The object that asks."""

    def model(self, said: Mapping[str, Any]) -> str:
        """The model that an object names, or ``""``."""

    def answer(self, said: Mapping[str, Any]) -> StreamAnswer | None:
        """The answer, where the object is the last one of it."""
