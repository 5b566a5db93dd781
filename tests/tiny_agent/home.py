from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sessgit.agents.processes import LiveClient
from sessgit.model.conversation.session import Session

_NAME = re.compile(r"chat-([0-9a-f-]+)\.jsonl")


def resume(state: Session) -> list[str]:
    return ["tiny", "continue", state.agent_id]


def is_home(folder: Path) -> bool:
    return (folder / "chats").is_dir()


def agent_id(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match[1] if match else ""


def title(config: Path, transcript: Path) -> str:
    return ""


def is_cut(name: str, other: str) -> bool:
    return False


def new_place(config: Path, agent_id: str, cwd: str, sibling: Path | None = None) -> Path:
    return config / "chats" / "today" / f"chat-{agent_id}.jsonl"


def copies(config: Path, agent_id: str) -> list[Path]:
    return sorted(config.glob(f"chats/*/chat-{agent_id}.jsonl"))


def transcript_folders(config: Path) -> list[Path]:
    return sorted(config.glob("chats/*/"))


def transcripts(config: Path) -> Iterator[Path]:
    for folder in transcript_folders(config):
        yield from transcripts_in(folder)


def transcripts_in(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("chat-*.jsonl"))


def transcript_place(config: Path, recorded: str, agent_id: str, cwd: str) -> Path | None:
    path = Path(recorded)
    if path.name == f"chat-{agent_id}.jsonl" and path.parent.parent == config / "chats":
        return path
    return next(iter(copies(config, agent_id)), new_place(config, agent_id, cwd)) if cwd else None


def link_above(path: Path) -> Path | None:
    return None


def is_transcript(config: Path, path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and transcript_place(config, str(path), agent_id(path), "") == path


def live_clients(config: Path) -> list[LiveClient]:
    return []
