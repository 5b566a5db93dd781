"""`sessgit why`: how a file came to be what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import frame, render, session_argument
from sessgit.cli.arguments import completion, options
from sessgit.cli.frame import Answer
from sessgit.cli.invocation import Invocation


@frame.command("why", reads=True)
def run(
    here: Invocation,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A path, or the end of one.", show_default=False, autocompletion=completion.files
        ),
    ],
    address: options.Address = "",
    limit: options.Limit = None,
    full: Annotated[bool, typer.Option("--full", help="Also follow the reads behind each read.")] = False,
) -> Answer:
    """Show which calls wrote a file, and why.

    Each write is shown with the prompt it came from. “had read” lists what was read since the file was last written:
    lexer.py (2.4, by 1.2) was read in 2.4 as call 1.2 had written it. “had run” lists calls whose reads and writes are
    unknown; ? marks commands that mention the file. “read by” lists who read the file afterwards. --full also follows
    the reads behind each read.

    FILE is an absolute path, a path relative to this folder or to the project, or the end of a path. @N stops at turn
    N.
    """
    from sessgit.cli.pages import why as page
    from sessgit.errors import UsageError
    from sessgit.history.cells import details, why
    from sessgit.history.cells import graph as graphs

    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "why needs a whole turn.", f"`sessgit deps {here.ident(found.branch.name)}@{found.turn}.{found.cell}`"
        )
    branch = found.branch
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read_graph(here.store, here.index, branch, found.turn, progress)
    path = why.resolve_file(whole, file, (here.cwd, branch.state.project))
    story = why.file_history(whole, path, behind=full or here.json)
    steps = story.steps if limit is None else story.steps[max(0, len(story.steps) - limit) :]
    with render.progress(here, "Reading", unit="turns") as progress:
        some = [step.node for step in steps]
        known = details.cell_details(here.store, branch, details.turn_rows(here.index, branch, some), some, progress)
    lines = page.page(here, branch, story, steps, known, full=full)
    return Answer(lambda: page.as_json(branch, story, steps, known), lines, frame.damage(here, whole.damage))
