"""What the lines of a transcript say of the session as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sessgit.agents.claude.cells import time_of
from sessgit.agents.line import Line
from sessgit.model import canonical
from sessgit.model.conversation.session import Session

_TITLES = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
"""By line type the key of the title and its rank: what a person chose wins over what the client made up."""


@dataclass
class Facts:
    """Collects from line after line; the last wins, but for the birth and the project, where the first does.

    A pass that commits nothing still learns: so these go from pass to pass in the cursor.
    """

    born: str = ""
    project: str = ""
    title: str = ""
    title_rank: int = 0
    git_branch: str = ""
    version: str = ""
    slug: str = ""
    headless: bool = False
    held: bool = False
    """Whether a person held any part of it, so that it is not headless whatever a program added."""
    names: list[str] = field(default_factory=list)
    """The names that the session was ever given here: a `custom-title` that is one of them may be our own line."""

    @classmethod
    def loads(cls, document: Mapping[str, Any]) -> Facts | None:
        """The facts that were kept, or None where a value is of another kind."""
        plain = {key: type(value) for key, value in vars(cls()).items()}
        names = document.get("names", [])
        if any(plain.get(key) is not type(value) for key, value in document.items()):
            return None
        return cls(**document) if all(isinstance(name, str) for name in names) else None

    def note(self, line: Line) -> None:
        """Takes what the line says."""
        if line.data is None:
            return
        self.born = self.born or time_of(line)
        self.project = self.project or line.text("cwd")
        self.git_branch = line.text("gitBranch") or self.git_branch
        self.version = line.text("version") or self.version
        self.slug = line.text("slug") or self.slug
        if line.type in _TITLES:
            key, rank = _TITLES[line.type]
            title = canonical.one_line(line.text(key), 200)
            if line.type == "custom-title" and title in self.names:
                rank = 0
            if title and rank >= self.title_rank:
                self.title, self.title_rank = title, rank
        elif line.type == "user" and line.text("entrypoint"):
            self.held = self.held or not line.text("entrypoint").startswith("sdk")
            self.headless = not self.held

    def kept(self) -> dict[str, Any]:
        """The facts as a document."""
        return asdict(self)

    def learn(self, names: Iterable[str]) -> None:
        """Takes names that the session was given."""
        self.names += [name for name in dict.fromkeys(names) if name and name not in self.names]

    def apply(self, state: Session, **own: Any) -> Session:
        """The state with what the lines said; `own` are other fields of it that change in the same step."""
        return replace(
            state,
            created=self.born or state.created,
            agent_version=self.version or state.agent_version,
            title=self.title if self.title_rank else state.title or self.title,
            project=self.project or state.project,
            git_branch=self.git_branch or state.git_branch,
            headless=self.headless,
            **own,
        )


def of(state: Session | None) -> Facts:
    """What is known where the file is read from its beginning: where the session was born does not change."""
    return Facts(born=state.created, project=state.project, headless=state.headless) if state else Facts()
