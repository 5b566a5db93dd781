"""A store, as a program uses it."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal, Self, get_args

from sessgit import environment
from sessgit.api import new_session
from sessgit.api import session as sessions
from sessgit.api.new_session import NewSession
from sessgit.api.opened import OpenStore
from sessgit.api.session import Session
from sessgit.api.values import Merge, Summary, check_several
from sessgit.branch import archive as archives
from sessgit.branch.edit import check_name_free
from sessgit.branch.merging import merge as merges
from sessgit.branch.merging.plan import MergeRequest
from sessgit.errors import StoreError, UsageError
from sessgit.history import diff as diffs
from sessgit.history import resolve
from sessgit.model.address import check_name
from sessgit.model.merge_decisions import Choice
from sessgit.store import store as stores

Mode = Literal["summary", "graft", "pick"]


class Store(OpenStore):
    """The sessions of a machine. One object may be used by several threads, and by children of `os.fork` too; several
    processes may have one each.

    An address is a session, or a text as on the command line: an id, a name, the beginning of an id, `NAME@7` for
    turn 7 of it. Every error is a `SessgitError` with a `hint` that says what to do.
    """

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None) -> Self:
        """The store at `path`, made where there is none; where that is None or ``""`` that of the command line:
        `SESSGIT_STORE`, else in `CLAUDE_CONFIG_DIR`, else `~/.claude/session-store`. `config` is the client's folder,
        in which the transcripts of sessions lie.

        Raises ConflictError where a folder is another repository, NewerStoreError, StoreError.
        """
        said = environment.read(os.environ)
        folder = Path(config).absolute() if config is not None else said.config
        default = said.store if config is None else folder / "session-store"
        place = Path(path).absolute() if path else default
        try:
            is_there = stores.store_exists(place)
        except OSError as error:
            raise StoreError(f"cannot read the store at {place}: {error.strerror}", "Is it yours?") from error
        if not is_there:
            stores.create_store(place)
        return cls(place, folder, said.home, off=said.off)

    # Sessions

    def create_session(
        self, cwd: str | os.PathLike[str] | None = None, name: str = "", *, id: str = "", description: str = "",
        labels: Collection[str] = (),
    ) -> Session:  # fmt: skip
        """A new session of the project at `cwd`, by default the working folder, and its first commit.

        `name` is unique in a project. Without an `id` it gets a uuid; the client finds no session by anything else.
        Raises ConflictError where id or name are taken or the project is off, UsageError where the folder is none.
        """
        try:  # texts, as the client has them
            folder = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())  # noqa: PTH100, PTH109
        except OSError as error:
            raise UsageError("the working folder is gone", "Pass cwd, the project folder of the session.") from error
        new = NewSession(id or str(uuid.uuid4()), folder, name, description, tuple(check_several("labels", labels)))
        with self.lock:
            branch = new_session.create_session(self.world, new)
        return Session(self, branch.name)

    def load_session(self, address: str) -> Session:
        """The session of an address. What its transcript holds and the store does not is recorded first.

        Raises NotFoundError, AmbiguousError.
        """
        return Session(self, self.target(address).session)

    def sessions(self, *, archived: bool = False, label: str = "", project: str = "") -> list[Summary]:
        """All live sessions, or all that are archived, the one written last first; of one label or project only."""
        with self.lock:
            self.world.index.sync()
            every = self.world.index.outlines()
            found = resolve.outlines_in_project(every, project) if project else every
            return [
                Summary(
                    one.name, one.authored_name, one.title, one.project, one.turns, one.created, one.updated,
                    tuple(json.loads(one.labels)), one.archived,
                )
                for one in found
                if one.archived == archived and (not label or label in json.loads(one.labels))
            ]  # fmt: skip

    def __iter__(self) -> Iterator[Session]:
        """The live sessions, the one written last first."""
        return (Session(self, one.id) for one in self.sessions())

    def fork(self, address: Session | str, at: int | str | None = None, name: str = "") -> Session:
        """A new session with the turns of another one up to `at`: a turn's number, -1 for the last, or a cell as
        `"7.3"`; all turns by default. Its transcript is written for the client.

        Raises NotFoundError for a turn that is not there, ConflictError where the name is taken.
        """
        return sessions.fork_session(self, _text(address), at, name)

    def diff(self, a: Session | str, b: Session | str) -> dict[str, Any]:
        """What two conversations have in common and what each did on its own, as `diff --json` prints it."""
        with self.lock:
            left, right = self.target(_text(a)), self.target(_text(b))
            found = diffs.diff_branches(
                self.world.store, self.world.index, (left.branch, left.turn), (right.branch, right.turn)
            )
            return diffs.diff_json(self.world.store, found, self.prices)

    def merge(
        self, theirs: Session | str, into: Session | str, *, mode: Mode | None = None, turns: Collection[int] = (),
        favour: Literal["", "ours", "theirs"] = "", new: str | None = None,
    ) -> Merge:  # fmt: skip
        """Brings what `theirs` found back `into` a session: as one turn that tells of it (`summary`, the default), all
        its turns (`graft`), or some of them (`pick`, with their numbers).

        `favour` decides conflicts; `new` names a new session for the result, ``""`` for one without a name. Raises
        ConflictError, with nothing changed, where both changed the same, or a client has the session open.
        """
        for what, word, known in (
            ("mode", mode or "", ("", *get_args(Mode))),
            ("side", favour, ("", "ours", "theirs")),
        ):
            if word not in known:
                hint = f"Use one of {', '.join(filter(None, known))}. Nothing was changed."
                raise UsageError(f"“{word}” is not a {what} of a merge", hint)
        mode = mode or ("pick" if turns else None)
        if (mode == "pick") != bool(turns):
            hint = 'Use mode="pick", turns=(4, 6). Nothing was changed.'
            raise UsageError(f"a {mode} takes no turns" if turns else "a pick needs turns", hint)
        with self.lock:
            ours, other = self.target(_text(into)), self.target(_text(theirs))
            if new:
                check_name_free(self.world.index, check_name(new), "", ours.state.project)
            wish = MergeRequest(mode, tuple(turns), Choice(favour))
            made = None if new is None else merges.NewSession(str(uuid.uuid4()), new)
            own = self.world
            at = merges.MergeContext(own.store, own.index, self.config, own.privacy, own.now(), self.prices)
            done = merges.merge_sessions(at, ours, other, wish, made)
            own.index.sync(done.state.id)
        decisions = tuple(one.as_json() for one in done.plan.decisions) if done.plan else ()
        return Merge(done.state.id, done.commit, done.turns, decisions)

    def archive(self, *addresses: Session | str) -> None:
        """Puts sessions out of the way, with all that is recorded of them."""
        ids = [self.target(_text(one)).session for one in addresses]
        with self.lock:
            world = self.world
            archives.archive(world.store, world.index, ids, self.config, world.privacy, world.now())

    def unarchive(self, *addresses: Session | str) -> None:
        """Brings archived sessions back."""
        ids = [self.target(_text(one)).session for one in addresses]
        with self.lock:
            archives.unarchive(self.world.store, self.world.index, ids, self.world.now())


def _text(address: Session | str) -> str:
    return address.id if isinstance(address, Session) else address
