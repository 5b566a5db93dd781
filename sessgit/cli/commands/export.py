"""`sessgit export`: a conversation as a document to read and to share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sessgit.cli import frame, render, session_argument, text
from sessgit.cli.arguments import completion
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation
from sessgit.model import canonical

if TYPE_CHECKING:
    from sessgit.cli.invocation import Invocation
    from sessgit.history.export import ExportChoice
    from sessgit.history.resolve import ResolvedTarget
    from sessgit.model.progress import Progress
    from sessgit.store.sqlite.rows import Branch, Row

Format = Literal["markdown", "html", "json", "jsonl", "claude", "rlm", "dialectic", "apex", "io-log"]

_FOLDERS = ("claude", "rlm", "dialectic", "apex", "io-log")
"""The formats that are folders, of several conversations if wanted."""

_STDOUT = ("", "-")


@frame.command("export", reads=True)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    here: Invocation,
    format_: Annotated[
        Format,
        typer.Argument(
            metavar="FORMAT",
            help="The format.",
            show_default=False,
        ),
    ],
    addresses: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ADDRESS...",
            help="SESSION[@TURN] (default: the current session).",
            show_default=False,
            autocompletion=completion.addresses,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file, or into this folder.", show_default=False
        ),
    ] = "",
    turns: Annotated[
        str, typer.Option("--turns", metavar="TURNS", help="Only these turns: 3-9, 3-, -9, 2,4-6.", show_default=False)
    ] = "",
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Leave out tool calls.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten long texts (markdown, html).")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> Answer | None:
    """Export a conversation as a document.

    markdown and html are for reading: html is one page that opens without a network and runs no script. json is what
    `show --json` prints, with all turns. jsonl is the client's own format, which it resumes and trace viewers read.
    claude writes a folder like the client's, with one or more conversations. rlm, dialectic, apex and io-log write the
    formats of these systems. ADDRESS@N exports turns up to N.
    """
    from sessgit.errors import UsageError

    if format_ in _FOLDERS:
        if turns or no_tools or full:
            hint = "--turns, --no-tools and --full work with markdown, html, json and jsonl."
            raise UsageError(f"{format_} exports only whole conversations.", hint)
        if force:
            raise UsageError(
                f"{format_} never overwrites a file, so --force does not apply.",
                "Name a new or empty folder with `--output DIR`.",
            )
        return _folder(here, format_, addresses or [""], output)
    if len(addresses or ()) > 1:
        raise UsageError(
            f"{format_} exports one conversation at a time.", "`sessgit export claude` exports several into one folder."
        )
    if full and format_ not in ("markdown", "html"):
        raise UsageError(f"{format_} is never shortened.", "--full works with markdown and html.")
    to_stdout = output in _STDOUT
    if to_stdout and here.terminal and format_ in ("html", "jsonl"):
        raise UsageError(f"{format_} cannot be shown on a terminal.", "Use `--output FILE`, or a pipe.")
    if to_stdout and here.json and format_ != "json":
        raise UsageError("--json describes a written file, and needs --output.", "Name it with `--output FILE`.")
    found = _target(here, (addresses or [""])[0])
    from sessgit.history import export

    choice = export.ExportChoice(found.branch, found.turn, turns, not no_tools)
    job = _Job(format_, choice, export.chosen_rows(here.index, choice), full)
    if not to_stdout:
        return _write(here, job, output, force=force)
    _print(here, job)
    return None


def _target(here: Invocation, address: str) -> ResolvedTarget:
    from sessgit.errors import UsageError

    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "only whole turns can be exported.",
            f"`sessgit export … {here.ident(found.branch.name)}@{found.turn}` exports up to this turn.",
        )
    return found


@dataclass(frozen=True)
class _Job:
    """What is to be written: a format, and the turns that it is given."""

    format: str
    choice: ExportChoice
    rows: list[Row]
    full: bool


def _print(here: Invocation, job: _Job) -> None:
    with render.progress(here, "Exporting", unit="turns") as progress:
        data = _data(here, job, progress)
        if not here.terminal:
            render.data(data)
            return
        shown = b"".join(data).decode("utf-8", "replace")
    render.lines(here, canonical.printable(shown).removesuffix("\n").split("\n"))


def _write(here: Invocation, job: _Job, output: str, *, force: bool) -> Answer:
    from sessgit.history import export

    name = export.file_name(job.choice, job.rows, job.format)
    path = export.output_path(Path(output).absolute(), name, is_folder=output.endswith("/"))
    with render.progress(here, "Exporting", unit="turns") as progress:
        size = export.write_export(path, _data(here, job, progress), replacing=force)
    redacted = export.count_redacted(here.store, job.rows)
    document = {
        "format": job.format, "path": str(path), "bytes": size, "id": job.choice.branch.name,
        "turns": [row.turn for row in job.rows], "tools": job.choice.tools, "redacted": redacted,
    }  # fmt: skip
    lines = [f"Written: {here.shown(str(path))}, {text.counted(len(job.rows), 'turn')}, {text.size(size)}"]
    if job.choice.tools:
        lines.append("It contains what tools read and printed: check it before you share it.")
    if redacted:
        stand = "is" if redacted == 1 else "are"
        lines.append(f"{text.counted(redacted, 'secret')} {stand} redacted in it.")
    return Answer(lambda: document, lines)


def _data(here: Invocation, job: _Job, progress: Progress) -> Iterable[bytes]:
    """The document, piece by piece."""
    from sessgit.history import export

    if job.format == "jsonl":
        return [export.export_lines(here.store, job.choice, job.rows).data]
    common, prices = (here.store, here.index, job.choice, job.rows), here.settings.prices
    if job.format == "json":
        from sessgit.formats import document

        parts = document.render(*export.export_document(*common, prices, progress))
    else:
        from sessgit.formats import html, markdown

        write = html.render if job.format == "html" else markdown.render
        parts = write(
            export.export_story(*common, prices), export.read_story_turns(*common, prices, progress), full=job.full
        )
    return (part.encode("utf-8", "replace") for part in parts)


def _folder(here: Invocation, format_: str, addresses: list[str], output: str) -> Answer:
    """Whole conversations as a folder of the client, or of another system."""
    from sessgit.errors import UsageError

    if output in _STDOUT:
        raise UsageError(f"{format_} writes a folder, and needs --output.", "Name it with `--output DIR`.")
    found = [_target(here, address) for address in addresses]
    part = next((one for one in found if one.turn is not None), None)
    if part is not None:
        name = here.ident(part.session)
        raise UsageError(
            f"{format_} exports only whole conversations.", f"`sessgit export {format_} {name}` exports all of it."
        )
    folder = Path(output).absolute()
    sessions, files = _written(here, format_, [one.branch for one in found], folder)
    document = {"format": format_, "path": str(folder), "conversations": sessions, "files": files}
    counts = f"{text.counted(sessions, 'conversation')}, {text.counted(files, 'file')}"
    holds = "It contains what tools read and printed: check it before you share it."
    return Answer(lambda: document, [f"Written: {here.shown(str(folder))}, {counts}", holds])


def _written(here: Invocation, format_: str, branches: list[Branch], folder: Path) -> tuple[int, int]:
    """Writes the conversations, and returns how many of them and how many files the folder has."""
    if format_ == "claude":
        from sessgit.branch import client_folder

        done = client_folder.export_folder(here.store, here.index, branches, folder)
        return done.sessions, len(done.files)
    from sessgit.exchange import outgoing

    world = outgoing.ExportContext(here.store, here.index, here.settings.prices)
    with render.progress(here, "Exporting", unit="turns") as progress:
        told = outgoing.export_sessions(world, format_, branches, folder, progress)
    return told.sessions, told.files
