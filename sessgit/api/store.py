"""A store as a program uses it."""

from __future__ import annotations

import json
import os
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from sessgit import agents, environment
from sessgit.api.opened import OpenStore
from sessgit.api.values import Merge, SessionImport, Summary, check_several, check_word
from sessgit.errors import StoreError, UsageError
from sessgit.model.progress import Progress, no_progress

if TYPE_CHECKING:
    from sessgit.api.session import Session
    from sessgit.model.foreign_session import ForeignSession
    from sessgit.store.context import Context

Mode = Literal["summary", "graft", "pick"]


class Store(OpenStore):
    """The sessions of a machine. Threads and children of `os.fork` may share an object; other processes open their own.

    An address is a session, or text as on the command line: an id, the beginning of one, a name, `NAME@7` for turn 7.
    Every error is a `SessgitError` with a `hint`. Modules are loaded when a method first needs them.
    """

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None) -> Self:
        """Open the store at `path`, or create it. The default is that of the command line: `SESSGIT_STORE`, else in
        `CLAUDE_CONFIG_DIR`, else `~/.claude/session-store`. `config` is the client's folder with the transcripts.

        Raises ConflictError if the folder is another repository, NewerStoreError, StoreError.
        """
        from sessgit.store import owner
        from sessgit.store import store as stores

        env = environment.read(os.environ)
        homes, default = env.homes, env.store
        if config is not None:
            folder = Path(config).absolute()
            homes, default = homes.at(agents.at(folder).name, folder), folder / "session-store"
        place = Path(path).absolute() if path else default
        try:
            is_there = owner.store_exists(place)
        except OSError as error:
            raise StoreError(f"cannot read the store at {place}: {error.strerror}", "Is it yours?") from error
        if not is_there:
            stores.create_store(place)
        return cls(place, homes, env.home, off=env.off)

    @classmethod
    @contextmanager
    def temporary(cls) -> Iterator[Self]:
        """Open a new store with a client's folder of its own, for a `with` block, which deletes both at its end.

        For tests of tools around the client: nothing in the user's home is read or written. `config` of the store is
        the client's folder, as `CLAUDE_CONFIG_DIR` names it to the tools.
        """
        with tempfile.TemporaryDirectory(prefix="sessgit-fixture-") as folder:
            config = Path(folder).resolve() / ".claude"
            (config / "projects").mkdir(mode=0o700, parents=True)
            with cls.open(config / "session-store", config=config) as store:
                store.home, store.keeps_index = config.parent, True
                yield store

    @property
    def config(self) -> Path:
        """The folder of the client, in which it keeps its transcripts."""
        return agents.client(self.homes).folder

    # Sessions

    def create_session(  # noqa: PLR0913 - what a session is given
        self, cwd: str | os.PathLike[str] | None = None, name: str = "", *, id: str = "", description: str = "",
        labels: Collection[str] = (), title: str = "", parent: Session | str = "", role: str = "",
        inherit: bool = False,
    ) -> Session:  # fmt: skip
        """Create a session of the project at `cwd`, by default the working folder, with its first commit.

        `name` is unique in a project. `id` is a uuid, by default a new one: the client finds sessions only by uuid.
        With `parent` it is a child of that session: they share no turns, but belong together; with `inherit` it takes
        over the parent's thesis, claims and open tensions. A session with children, or with the role `manager`, is
        never archived because of its age.

        Raises ConflictError if id or name are used or the project is off, UsageError if the folder does not exist,
        NotFoundError if there is no such parent.
        """
        from sessgit.api import new_session

        try:  # texts, as the client has them
            folder = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())  # noqa: PTH100, PTH109
        except OSError as error:
            raise UsageError("the working folder is gone", "Pass cwd, the project folder of the session.") from error
        own = id or str(uuid.uuid4())
        above = self.target(str(parent)).session if parent else ""
        with self.lock:
            new_session.create_session(
                self.context, own, folder, title=title, parent=above, role=role, inherits=inherit, name=name,
                description=description, labels=check_several("labels", labels),
            )  # fmt: skip
        return self._session(own)

    def load_session(self, address: str) -> Session:
        """Return the session of an address, after recording new lines of its transcript.

        Raises NotFoundError, AmbiguousError.
        """
        return self._session(self.target(address).session)

    def sessions(self, *, archived: bool = False, label: str = "", project: str = "") -> list[Summary]:
        """Return all live sessions, or all archived ones, most recent first; optionally only of a label or project."""
        from sessgit.history import resolve

        with self.lock:
            self.context.index.sync()
            every = self.context.index.outlines()
            outlines = resolve.outlines_in_project(every, project) if project else every
            return [
                Summary(
                    one.name, one.authored_name, one.title, one.project, one.turns, one.created, one.updated,
                    tuple(json.loads(one.labels)), one.archived,
                )
                for one in outlines
                if one.archived == archived and (not label or label in json.loads(one.labels))
            ]  # fmt: skip

    def __iter__(self) -> Iterator[Session]:
        """Yield the live sessions, most recent first."""
        return (self._session(one.id) for one in self.sessions())

    def fork(self, address: Session | str, at: int | str | None = None, name: str = "") -> Session:
        """Return a new session with the turns up to `at`: a turn's number, -1 for the last, or a cell as `"7.3"`; by
        default all turns. Writes its transcript for the client.

        Raises NotFoundError if there is no such turn, ConflictError if the name is used.
        """
        from sessgit.api.session import fork_session

        return fork_session(self, str(address), at, name)

    def diff(self, a: Session | str, b: Session | str) -> dict[str, Any]:
        """Return what two conversations have in common and what only one of them has, as `diff --json` prints it."""
        from sessgit.history import diff

        with self.lock:
            left, right = self.target(str(a)), self.target(str(b))
            difference = diff.diff_branches(self.context, (left.branch, left.turn), (right.branch, right.turn))
            return diff.diff_json(self.context.store, difference, self.context.prices)

    def merge(
        self, theirs: Session | str, into: Session | str, *, mode: Mode | None = None, turns: Collection[int] = (),
        favour: Literal["", "ours", "theirs"] = "", new: str | None = None,
    ) -> Merge:  # fmt: skip
        """Merge `theirs` `into` a session: as one turn that summarizes it (`summary`, the default), all its turns
        (`graft`), or some of them (`pick`, with their numbers).

        `favour` resolves conflicts. `new` names a new session for the result, ``""`` for one without a name. Raises
        ConflictError, and changes nothing, if both changed the same, or a client has the session open.
        """
        from sessgit.branch import merge as merges
        from sessgit.branch.edit import check_name_free
        from sessgit.branch.merge_plan import MergeRequest
        from sessgit.model.ids import check_name
        from sessgit.model.merge_decisions import Choice

        if mode:
            check_word("mode of a merge", mode, get_args(Mode))
        if favour:
            check_word("side of a merge", favour, ("ours", "theirs"))
        mode = mode or ("pick" if turns else None)
        if (mode == "pick") != bool(turns):
            hint = 'Use mode="pick", turns=(4, 6). Nothing was changed.'
            raise UsageError(f"a {mode} takes no turns" if turns else "a pick needs turns", hint)
        with self.lock:
            ours, other = self.target(str(into)), self.target(str(theirs))
            if new:
                check_name_free(self.context.index, check_name(new), "", ours.state.project)
            request = MergeRequest(mode, tuple(turns), Choice(favour))
            target = None if new is None else merges.NewSession(str(uuid.uuid4()), new)
            context = self.context
            result = merges.merge_sessions(context, ours, other, request, target)
            context.index.sync(result.state.id)
        decisions = tuple(one.as_json() for one in result.plan.decisions) if result.plan else ()
        return Merge(result.state.id, result.commit, result.turns, decisions)

    def import_sessions(
        self, sessions: Sequence[ForeignSession], system: str, *, dry_run: bool = False,
        progress: Progress = no_progress,
    ) -> SessionImport:  # fmt: skip
        """Import sessions of another system, parents first, in one operation, which `sessgit undo` reverts.

        Importing again changes nothing, except that a session that has grown gets its new turns, and that a field that
        the source has changed is changed here. `SessionImport` says what became of each session. A dry run changes
        nothing. Raises ConflictError, and changes nothing, if the store was changed meanwhile.
        """
        from sessgit.api import foreign_sessions

        with self.lock:
            return foreign_sessions.import_sessions(self, system, sessions, progress, dry_run=dry_run)

    def archive(self, *addresses: Session | str) -> None:
        """Archive sessions; everything recorded of them is kept."""
        from sessgit.branch.archive import archive

        self._move(addresses, archive)

    def unarchive(self, *addresses: Session | str) -> None:
        """Make archived sessions live again."""
        from sessgit.branch.archive import unarchive

        self._move(addresses, unarchive)

    def _move(self, addresses: Sequence[Session | str], move: Callable[[Context, Sequence[str]], object]) -> None:
        ids = [self.target(str(one)).session for one in addresses]
        with self.lock:
            move(self.context, ids)

    def _session(self, id: str) -> Session:
        from sessgit.api.session import Session

        return Session(self, id)
