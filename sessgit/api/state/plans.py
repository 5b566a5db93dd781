"""Todo lists and plans that a program writes, where the client keeps its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sessgit.api.writer import Writer
from sessgit.errors import ROOM, SessgitError, UsageError
from sessgit.model.program_input import GivenTurn, ToolCall
from sessgit.store.files import private
from sessgit.store.store import write_private

STATUSES = ("pending", "in_progress", "completed")


def write_todos(held: Writer, todos: Sequence[Mapping[str, Any]]) -> None:
    """Writes the todo list of the session and notes in its transcript that it was; raises UsageError."""
    found = [_check_todo(todo) for todo in todos]
    folder = held.world.config / "todos"
    _write_new_file(
        folder, f"{held.log.agent_id}-agent-{held.log.agent_id}.json", json.dumps(found, ensure_ascii=False, indent=2)
    )
    _note_call(held, ToolCall("TodoWrite", {"todos": found}, "Todos have been modified successfully."), "todos")


def create_plan(held: Writer, content: str) -> str:
    """Writes a plan under a new name of three words, which the session's lines name from now on; returns the name."""
    if not content.strip():
        raise UsageError("a plan needs words", "Nothing was written.")
    folder = held.world.config / "plans"
    name = held.log.agent.sidecars.plan_name(str(uuid.uuid4()))
    while (folder / name).exists():
        name = held.log.agent.sidecars.plan_name(str(uuid.uuid4()))
    _write_new_file(folder, name, content)
    held.slug(name.removesuffix(".md"))
    _note_call(held, ToolCall("ExitPlanMode", {"plan": content}, f"The plan is in {name}."), "plan")
    return name


def _check_todo(todo: Mapping[str, Any]) -> dict[str, Any]:
    given = todo if isinstance(todo, Mapping) else {}
    content, status, doing = given.get("content"), given.get("status", "pending"), given.get("activeForm")
    if not isinstance(content, str) or not content.strip() or status not in STATUSES:
        raise UsageError(
            "a todo has a content and a status", f"The statuses are {', '.join(STATUSES)}. Nothing was written."
        )
    return {"content": content, "status": status, "activeForm": doing if isinstance(doing, str) and doing else content}


def _note_call(held: Writer, call: ToolCall, what: str) -> None:
    held.log.beside_changed = True
    held.note(GivenTurn(what, (call,)))


def _write_new_file(folder: Path, name: str, text: str) -> None:
    try:
        private.folder(folder)
        write_private(folder / name, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SessgitError(f"cannot write {folder / name}: {error.strerror or error}", ROOM) from error
