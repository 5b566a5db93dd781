"""`sessgit why`: how a file came to be what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from sessgit.cli import invocation, render, session_argument
from sessgit.cli.arguments import completion, options


def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A path, or the end of one.", show_default=False, autocompletion=completion.files
        ),
    ],
    address: options.Address = "",
    limit: options.Limit = None,
    full: Annotated[bool, typer.Option("--full", help="Tell of all that was read, also before that.")] = False,
    as_json: options.Json = False,
) -> None:
    """Tell which calls wrote a file, what each had read before, and who read it then.

    Each write stands with the prompt that it came from. “had read” tells what was read since the file was written
    before: lexer.py (2.4, by 1.2) was read in 2.4 as the call 1.2 had written it. “had run” are calls of which nobody
    knows what they read or wrote; ? marks commands that name the file. With --full follows what those had read who
    wrote what was read.

    A path is absolute, or relative to here or to the project; its end will do. @N tells the story up to turn N.
    """
    from sessgit.cli.pages import why as page
    from sessgit.errors import UsageError
    from sessgit.history.cells import details, why
    from sessgit.history.cells import graph as graphs

    here = invocation.read()
    found = session_argument.target(here, address)
    if found.cell:
        raise UsageError(
            "why goes up to a whole turn.", f"sessgit deps {here.ident(found.branch.name)}@{found.turn}.{found.cell}"
        )
    branch = found.branch
    with render.progress(here, "Reading", unit="turns") as progress:
        whole = graphs.read(here.store, here.index, branch, found.turn, progress)
    for damage in whole.damage if not as_json else ():
        render.tell(f"({damage})")
    path = why.resolve(whole, file, (here.cwd, branch.state.project))
    story = why.story(whole, path, behind=full or as_json)
    steps = story.steps if limit is None else story.steps[max(0, len(story.steps) - limit) :]
    with render.progress(here, "Reading", unit="turns") as progress:
        some = [step.node for step in steps]
        known = details.details(here.store, branch, details.rows(here.index, branch, some), some, progress)
    if as_json:
        render.document("why/v1", page.as_json(branch, story, steps, known))
    else:
        render.lines(here, page.page(here, branch, story, steps, known, full=full))
