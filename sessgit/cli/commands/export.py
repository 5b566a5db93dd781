"""`sessgit export`: a conversation as a document to read and to share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sessgit.cli import client_notes, frame, operands, render, text
from sessgit.cli.frame import Answer, argument, option
from sessgit.cli.invocation import Invocation
from sessgit.errors import NotFoundError, UsageError
from sessgit.history import export, tree
from sessgit.history.export import ExportChoice, Families
from sessgit.history.tree import TreeFilter
from sessgit.model import canonical
from sessgit.model.progress import Progress, no_progress
from sessgit.store.index import Branch, Row

Format = Literal["markdown", "html", "json", "jsonl", "claude", "rlm", "dialectic", "apex", "io-log"]

_DOCUMENTS = ("markdown", "html", "json", "jsonl")
"""The formats that are one file; the others are folders, of one or more conversations."""
_TO_READ = ("markdown", "html")
_SHARE = "It contains what tools read and printed: check it before you share it."


@frame.command("export", reads=True, excludes={"--project": "ADDRESS --turns"})
def run(
    cli: Invocation,
    format_: Format = argument("FORMAT", "The format.", required=True),
    addresses: list[str] = argument("ADDRESS...", "SESSION[@TURN] (default: the current session)."),
    output: str = option("-o, --output FILE", "Write to this file, or into this folder."),
    project: str | None = option("--project [DIR]", "All in the project at DIR (default: this folder)."),
    turns: str = option("--turns TURNS", "Only these turns: 3-9, 3-, -9, 2,4-6."),
    no_tools: bool = option("--no-tools", "Leave out tool calls."),
    full: bool = option("--full", "Do not shorten long texts (markdown, html)."),
    force: bool = option("--force", "Overwrite existing files."),
) -> Answer | None:
    """Export a conversation as a document.

    markdown and html are for reading: html is one page that opens without a network and runs no script. json is what
    `show --json` prints, with all turns. jsonl is the client's own format, which it resumes and trace viewers read,
    without the client's bookkeeping (queued prompts, costs, API requests). claude writes a folder like the client's,
    with one or more conversations. rlm, dialectic, apex and io-log write the formats of these systems. ADDRESS@N
    exports turns up to N.

    `export html --project` writes index.html, with the families as `sessgit tree` draws them, archived ones too, and a
    page of each conversation.
    """
    if project is not None:
        return _export_project(cli, format_, project, output, full=full, tools=not no_tools, replace=force)
    addresses = addresses or [""]
    is_folder, to_stdout = format_ not in _DOCUMENTS, output in ("", "-")
    problems = (
        (
            is_folder and (turns or no_tools or full), f"{format_} exports only whole conversations.",
            "--turns, --no-tools and --full work with markdown, html, json and jsonl.",
        ),
        (
            is_folder and force, f"{format_} never overwrites a file, so --force does not apply.",
            "Name a new or empty folder with `--output DIR`.",
        ),
        (is_folder and to_stdout, f"{format_} writes a folder, and needs --output.", "Name it with `--output DIR`."),
        (
            not is_folder and len(addresses) > 1, f"{format_} exports one conversation at a time.",
            "`sessgit export claude` exports several into one folder.",
        ),
        (full and format_ not in _TO_READ, f"{format_} is never shortened.", "--full works with markdown and html."),
        (
            to_stdout and cli.terminal.shows_output and format_ in ("html", "jsonl"),
            f"{format_} cannot be shown on a terminal.", "Use `--output FILE`, or a pipe.",
        ),
        (
            to_stdout and cli.json and format_ != "json",
            "--json describes a written file, and needs --output.", "Name it with `--output FILE`.",
        ),
    )  # fmt: skip
    for is_wrong, what, hint in problems:
        if is_wrong:
            raise UsageError(what, hint)
    targets = [operands.whole_turn(cli, address, f"export {format_}") for address in addresses]
    if is_folder:
        for target in targets:
            if target.turn is not None:
                hint = f"`sessgit export {format_} {cli.ident(target.session)}` exports all of it."
                raise UsageError(f"{format_} exports only whole conversations.", hint)
        return _export_folder(cli, format_, [target.branch for target in targets], Path(output).absolute())
    choice = ExportChoice(targets[0].branch, targets[0].turn, turns, not no_tools)
    task = _Task(format_, choice, export.chosen_rows(cli.index, choice), full)
    if to_stdout:
        _print(cli, task)
        return None
    return _export_file(cli, task, output, replace=force)


@dataclass(frozen=True)
class _Task:
    """A format, and the turns to export."""

    format: str
    choice: ExportChoice
    rows: list[Row]
    full: bool
    pages: Collection[str] = ()
    """The branches whose pages an HTML page links."""
    families: Families | None = None
    """What the pages of a project share."""


def _print(cli: Invocation, task: _Task) -> None:
    data = _data(cli, task, render.progress(cli, "Exporting"))
    if not cli.terminal.shows_output:
        render.data(data)
        return
    page = b"".join(data).decode("utf-8", "replace")
    render.lines(cli, canonical.printable(page).removesuffix("\n").split("\n"))


def _export_file(cli: Invocation, task: _Task, output: str, *, replace: bool) -> Answer:
    name = export.file_name(task.choice, task.rows, task.format)
    path = export.output_path(Path(output).absolute(), name, is_folder=output.endswith("/"))
    size = export.write_export(path, _data(cli, task, render.progress(cli, "Exporting")), replacing=replace)
    redacted = export.count_redacted(cli.store, task.rows)
    document = {
        "format": task.format,
        "path": str(path),
        "bytes": size,
        "id": task.choice.branch.name,
        "turns": [row.turn for row in task.rows],
        "tools": task.choice.tools,
        "redacted": redacted,
    }
    lines = [f"Written: {cli.shown(path)}, {text.counted(len(task.rows), 'turn')}, {text.size(size)}"]
    lines += [_SHARE] * task.choice.tools
    return Answer(document, lines + client_notes.redacted(redacted, "it"))


def _data(cli: Invocation, task: _Task, progress: Progress) -> Iterable[bytes]:
    """Return the document, piece by piece."""
    if task.format == "jsonl":
        lines = export.export_lines(cli.store, task.choice, task.rows)
        for part in lines.left_out:
            render.tell(f"Left out: {part}.")
        return [lines.data]
    source, prices = (cli.context, task.choice, task.rows), cli.prices
    if task.format == "json":
        parts = export.render_json(*export.export_document(*source, prices, progress))
    else:
        from sessgit.formats import html, markdown

        story = export.export_story(*source, prices, task.families)
        turns = export.read_story_turns(*source, prices, progress)
        if task.format == "html":
            parts = html.render(story, turns, full=task.full, pages=task.pages)
        else:
            parts = markdown.render(story, turns, full=task.full)
    return _encoded(parts)


def _encoded(parts: Iterable[str]) -> Iterable[bytes]:
    return (part.encode("utf-8", "replace") for part in parts)


def _export_project(
    cli: Invocation, format_: Format, project: str, output: str, *, full: bool, tools: bool, replace: bool
) -> Answer:
    """Write a page for each branch of a project, and the index last, so that what it links is there."""
    if format_ != "html":
        raise UsageError(f"{format_} exports no project.", "`sessgit export html --project --output DIR` does.")
    if output in ("", "-"):
        raise UsageError("--project writes a folder, and needs --output.", "Name it with `--output DIR`.")
    from sessgit.formats import html

    cli.check_recorded()
    project, folder = cli.folder(project), Path(output).absolute()
    choice = TreeFilter(folder=project, archived=True, fold=False)
    forest = tree.build_forest(cli.index, choice, cli.prices)
    branches = [node.branch for family in forest.families for node in family.nodes if node.branch.state.turns]
    if not branches:
        raise NotFoundError(f"no conversations in {project}", "`sessgit ls --all` lists those of all projects.")
    pages, families = {branch.name for branch in branches}, Families(cli.index)
    export.create_folder(folder, replacing=replace)
    export.create_folder(folder / html.PAGES, replacing=replace)
    progress = render.progress(cli, "Exporting", "conversations")
    for done, branch in enumerate(branches):
        progress(done, len(branches))
        part = ExportChoice(branch, tools=tools)
        task = _Task(format_, part, export.chosen_rows(cli.index, part), full, pages, families)
        path = folder / html.PAGES / f"{branch.name}.html"
        export.write_export(path, _data(cli, task, no_progress), replacing=replace)
    progress(len(branches), len(branches))
    entries = [list(export.index_entries(family)) for family in forest.families]
    index = _encoded(html.render_index(project, entries, pages))
    export.write_export(folder / "index.html", index, replacing=replace)
    return _folder_answer(cli, format_, folder, forest.sessions, len(branches) + 1, share=tools)


def _export_folder(cli: Invocation, format_: Format, branches: list[Branch], folder: Path) -> Answer:
    """Export whole conversations as a folder of the client, or of another system."""
    if format_ == "claude":
        from sessgit.branch import restore

        result = restore.export_folder(cli.context, branches, folder)
        conversations, files = result.sessions, len(result.files)
    else:
        from sessgit import Session
        from sessgit.exchange import systems
        from sessgit.store.layout import session_of

        store = cli.library()
        sessions = [Session(store, name) for name in dict.fromkeys(session_of(branch.name) for branch in branches)]
        conversations = len(sessions)
        with store:
            files = systems.export_sessions(format_, sessions, folder, render.progress(cli, "Exporting"))
    return _folder_answer(cli, format_, folder, conversations, files)


def _folder_answer(
    cli: Invocation, format_: Format, folder: Path, conversations: int, files: int, *, share: bool = True
) -> Answer:
    document = {"format": format_, "path": str(folder), "conversations": conversations, "files": files}
    counts = f"{text.counted(conversations, 'conversation')}, {text.counted(files, 'file')}"
    return Answer(document, [f"Written: {cli.shown(folder)}, {counts}", *[_SHARE] * share])
