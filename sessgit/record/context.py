"""What a program works on: a store and its index, the client's folder, and what may be recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sessgit.errors import ConflictError, NotFoundError
from sessgit.record import privacy as private
from sessgit.record.privacy import Privacy
from sessgit.record.source import RecordRules, rules_from_settings
from sessgit.store.index import Index
from sessgit.store.sqlite.rows import Branch
from sessgit.store.store import Store


@dataclass(frozen=True, slots=True)
class RecordContext:
    """`env` is the environment for git in the project; `now` gives seconds since 1970."""

    store: Store
    index: Index
    config: Path
    privacy: Privacy
    env: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.time

    @property
    def rules(self) -> RecordRules:
        """How a new session is recorded."""
        return rules_from_settings(self.privacy.rules)

    def branch(self, session: str) -> Branch:
        """The branch of a session as it is now; raises NotFoundError where it is gone, and where it cannot be read
        the error that says why."""
        self.index.sync(session)
        found = self.index.branch(session)
        if found is None:
            gone = NotFoundError(f"{session[:8]} no longer exists", "`sessgit ls --all` lists all conversations.")
            raise self.index.damaged.get(session, gone)
        return found

    def check_on(self, project: str) -> None:
        """Raises ConflictError where nothing of the project may be recorded: a program wants its state kept."""
        private.check_on(off=self.privacy.off)
        verdict = private.verdict(self.privacy, project)
        if not verdict.recorded:
            raise ConflictError(f"{project} is not recorded: it is off ({verdict.why})", "To record it: `sessgit on`")
