"""Exports sessions as a folder of the client, as it would find them in its own.

All files are made and compared with those in the folder before anything is written: a file with other contents stops
the export with nothing changed. No file is overwritten, except the index of a project's sessions, in which entries are
added or updated.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sessgit import agents
from sessgit.agents.base import Agent
from sessgit.agents.line import opened
from sessgit.agents.values import PLAN, SideFile
from sessgit.branch import restore, sidecars
from sessgit.branch.sidecars import ALREADY, LEFT, WRITTEN, WrittenFile
from sessgit.errors import ConflictError, NotFoundError, SessgitError, StoreError
from sessgit.history import reassemble
from sessgit.model.conversation.session import Session
from sessgit.model.frozen import frozen
from sessgit.model.line_list import file_lines, split_lines
from sessgit.store.context import Context
from sessgit.store.index import Branch
from sessgit.store.private_files import write_private
from sessgit.store.store import Store

TRANSCRIPT, INDEX = "transcript", "index"


@frozen
class FolderExport:
    """The files of the exported folder with their outcomes, and the number of sessions in it."""

    files: list[WrittenFile]
    sessions: int


def export_folder(context: Context, branches: Sequence[Branch], folder: Path) -> FolderExport:
    """Write the sessions of these branches as a folder of the client, each whole, with its sidecar files.

    Raises ConflictError, with nothing written, where a file in the folder holds something else; SessgitError for a
    session of a client whose folder has another form.
    """
    folder = folder.absolute()
    files, transcripts = dict[Path, SideFile](), dict[Path, Session]()
    names = dict.fromkeys(branch.session for branch in branches)
    heads = sorted(
        (b for name in names if (b := context.index.branch(name)) is not None), key=lambda b: b.state.updated
    )
    for head in heads:
        if not (agent := agents.of(head.state)).has("sidecars"):
            raise SessgitError(
                f"{head.name} is a conversation with {agent.title}. Nothing was written.",
                f"`sessgit restore {head.name} --output FILE` writes its transcript.",
            )
        _lay_out(context.store, head, folder, files, transcripts)
    outcomes = {
        path: (ALREADY if sidecars.has_bytes(path, file.data) else LEFT) if os.path.lexists(path) else WRITTEN
        for path, file in files.items()
    }
    taken = [path for path, outcome in outcomes.items() if outcome == LEFT]
    if taken:
        raise ConflictError(
            f"{taken[0]} already exists with other contents",
            "Nothing was written. Name another folder.",
        )
    indexes = {path.parent / agents.of(state).sidecars.INDEX: agents.of(state) for path, state in transcripts.items()}
    old = {path: _existing_index(agent, path) for path, agent in sorted(indexes.items(), key=lambda item: item[0])}
    written = list[WrittenFile]()
    for path, file in files.items():
        if outcomes[path] == WRITTEN and sidecars.put_file(path, file.data) == LEFT:
            raise ConflictError(f"{path} now exists with other contents", "It was not changed.")
        secrets = sidecars.count_secrets(file.data)
        written.append(WrittenFile(path, file.kind, outcomes[path], secrets, file.counts))
    return FolderExport(
        [*written, *(_write_index(indexes[path], path, data, transcripts) for path, data in old.items())], len(heads)
    )


def _lay_out(
    store: Store, head: Branch, folder: Path, files: dict[Path, SideFile], transcripts: dict[Path, Session]
) -> None:
    """Add a session's files, and its state by the path of its transcript. If two sessions have a file in common, a plan
    or a subagent's, the one written later is taken."""
    state = head.state
    agent = agents.of(state)
    project = folder / "projects" / agent.sidecars.folder_name(state.transcript, state.project)
    path = agent.home.transcript_place(folder, str(project / f"{state.agent_id}.jsonl"), state.agent_id, "")
    if path is None:
        raise SessgitError(f"the id of {head.name} cannot be a file name: {state.agent_id!r}")
    kept = sidecars.session_sidecars(store, head.name, reassemble.session_branches(store, head.name))
    place = agent.sidecars.place(folder, project, state.agent_id, state.agent_version)
    for file in kept:
        is_plan = file.kind == PLAN
        where = place.of(SideFile(PLAN, agent.sidecars.plan_name(file.name), file.data) if is_plan else file)
        if where is not None:
            files[where] = _later_version(files.get(where), file)
    files[path] = SideFile(TRANSCRIPT, path.name, restore.rebuild_file(store, head.name).file)
    transcripts[path] = state


def _later_version(known: SideFile | None, file: SideFile) -> SideFile:
    """Return the later version of a file: of files of lines, which only grow, the longer one."""
    if known is None or not known.name.endswith(".jsonl"):
        return file
    ours = file_lines(split_lines(file.data))
    return known if split_lines(known.data)[: len(ours)] == ours else file


def _existing_index(agent: Agent, path: Path) -> bytes | None:
    """Return the bytes of the existing index, or None; raises SessgitError if it is not an index."""
    try:
        with opened(path) as source:
            data = source.file.read()
    except NotFoundError:
        return None
    agent.sidecars.merged(data, {}, path)
    return data


def _write_index(agent: Agent, path: Path, old: bytes | None, transcripts: dict[Path, Session]) -> WrittenFile:
    states = {file: state for file, state in transcripts.items() if file.parent == path.parent}
    data = agent.sidecars.merged(old, states, path)
    if data == old:
        return WrittenFile(path, INDEX, ALREADY, counts=False)
    try:
        write_private(path, data)
    except StoreError as error:
        raise SessgitError(str(error)) from error
    return WrittenFile(path, INDEX, WRITTEN, counts=False)
