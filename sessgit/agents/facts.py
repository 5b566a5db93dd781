"""What the lines of a transcript say of the session as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sessgit.agents.line import CHOSEN, Line
from sessgit.model import canonical, ids
from sessgit.model.conversation import session as sessions
from sessgit.model.conversation.session import Session, Unified


@dataclass
class Facts:
    """Collects from line after line; the last wins, but for the birth and the project, where the first does.

    A pass that commits nothing still learns: so these go from pass to pass in the cursor.
    """

    created: str = ""
    project: str = ""
    title: str = ""
    title_rank: int = 0
    git_branch: str = ""
    version: str = ""
    slug: str = ""
    headless: bool = False
    had_person: bool = False
    """Whether a person held any part of it, so that it is not headless whatever a program added."""
    parent: str = ""
    """The agent's id of the session that began this one as a subagent, or empty."""
    names: list[str] = field(default_factory=list)
    """The names that the session was ever given here: a chosen title that is one of them may be our own line."""

    def note(self, line: Line) -> None:
        """Take what the line says."""
        if line.data is None:
            return
        self.created = self.created or line.time
        self.project = self.project or line.cwd
        self.git_branch = line.git_branch or self.git_branch
        self.version = line.version or self.version
        self.slug = line.slug or self.slug
        self.parent = self.parent or line.began_by
        if line.title is not None:
            self.note_title(*line.title)
        elif line.is_headless is not None:
            self.had_person = self.had_person or not line.is_headless
            self.headless = not self.had_person

    def note_title(self, text: str, rank: int) -> None:
        """Take a title of the session, unless it has one of a higher rank."""
        title = canonical.one_line(text, 200)
        if rank == CHOSEN and title in self.names:
            rank = 0
        if title and rank >= self.title_rank:
            self.title, self.title_rank = title, rank

    def learn(self, names: Iterable[str]) -> None:
        """Take names that the session was given."""
        self.names += [name for name in dict.fromkeys(names) if name and name not in self.names]

    def apply(self, state: Session, **own: Any) -> Session:
        """Return the state with what the lines said; `own` are other fields of it that change in the same step."""
        return replace(
            state,
            created=self.created or state.created,
            agent_version=self.version or state.agent_version,
            title=self.title if self.title_rank else state.title or self.title,
            project=self.project or state.project,
            git_branch=self.git_branch or state.git_branch,
            headless=self.headless,
            unified=self._unified(state),
            **own,
        )

    def _unified(self, state: Session) -> Unified:
        """Return what is set of the state, with the session that began this one if nothing else is said of it."""
        if not self.parent or state.unified.metadata.parent:
            return state.unified
        return sessions.with_values(state.unified, {"metadata.parent": ids.session_id(self.parent)})


def load(document: Mapping[str, Any]) -> Facts | None:
    """Return the facts of a document with these fields, or None if a value is of another kind."""
    kinds = {key: type(value) for key, value in vars(Facts()).items()}
    if any(kinds.get(key) is not type(value) for key, value in document.items()):
        return None
    return Facts(**document) if all(isinstance(name, str) for name in document.get("names", [])) else None


def begin(state: Session | None = None) -> Facts:
    """Return the facts before the first line: where the session began does not change."""
    return Facts(created=state.created, project=state.project, headless=state.headless) if state else Facts()
