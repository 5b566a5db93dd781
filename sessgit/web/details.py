"""What the page reads of turns in full, of two conversations, and of all: what takes long to import."""

from __future__ import annotations

import base64
import time
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlencode

from sessgit.errors import NotFoundError
from sessgit.formats import html
from sessgit.history import cells, diff, export, search, show, turn_log
from sessgit.history.code_comparison import code_json, compare_code
from sessgit.history.export import ExportChoice
from sessgit.model.progress import no_progress
from sessgit.web.reads import Json, Reader

_MOST_HITS = 40
_SNIPPET_LENGTH = 200
_DAY = 86_400


class Details:
    """Answers questions of the page in the reader's thread."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._context = reader.context

    def turn_html(self, address: str, number: int) -> Json:
        """Return a turn as an exported page has it."""
        branch = self._reader.target(address).branch
        choice = ExportChoice(branch, turns=str(number))
        rows = export.chosen_rows(self._context.index, choice)
        (turn,) = export.read_story_turns(self._context, choice, rows, self._context.prices, no_progress)
        turn = replace(turn, subagents=tuple(show.read_subagents(self._context.store, rows[0], turn.pieces)))
        source = f"/api/image?{urlencode({'address': branch.name, 'turn': number})}&number="
        return {"html": html.render_turn(turn, branch.state.project, lambda image: f"{source}{image}")}

    def image(self, address: str, number: int, image: int) -> tuple[bytes, str]:
        """Return an image of a turn with its media type; raises NotFoundError for one that a browser may not show."""
        branch = self._reader.target(address).branch
        for row in self._context.index.turns(branch.name, number, number):
            data = html.turn_images(turn_log.read_pieces(self._context.store, branch, row)[1])[image : image + 1]
            with suppress(ValueError):
                if data and (kind := html.media_type(data[0])):
                    return base64.b64decode(data[0]), kind
        raise NotFoundError(f"turn {number} has no image {image} to show.", "")

    def diff(self, a: str, b: str) -> Json:
        """Return what `diff --code --json` prints, both titles, and the last answers in HTML."""
        left, right = self._reader.target(a), self._reader.target(b)
        context = self._context
        found = diff.diff_branches(context, (left.branch, left.turn), (right.branch, right.turn))
        ends = [(one.branch, one.end) for one in (left, right)]
        document = diff.diff_json(context.store, found, context.prices)
        document["code"] = code_json(compare_code(context, ends[0], ends[1], context.env))
        for side in ("a", "b"):
            turns = document[f"only_{side}"]
            document[f"last_{side}"] = html.render_answer(turns[-1]["answer"]) if turns else ""
        return {**document, "titles": {"a": self._reader.title(left.branch), "b": self._reader.title(right.branch)}}

    def search(self, query: str, project: str, place: str, label: str, file: str, days: str) -> Json:
        """Return what `search --json` prints; `days` is how many back from now, or "". Without a query, the turns that
        read or changed the file."""
        context = self._context
        paths = [file] if file.startswith("/") else [file, f"*/{file}"]
        where = search.SearchScope(
            folder=project,
            place=place if place in search.COLUMNS_BY_PLACE else "",
            label=label,
            since=time.time() - int(days) * _DAY if days.isascii() and days.isdecimal() and len(days) < 6 else None,
            commits=turn_log.commits_touching(context, paths, self._reader.place.cwd, no_progress) if file else None,
        )
        if file and not query.strip():
            found = search.turns_at(context.index, where, _MOST_HITS, _SNIPPET_LENGTH)
        else:
            found = search.search(context.index, query, where, _MOST_HITS, _SNIPPET_LENGTH, no_progress)
        return search.results_json(query, found)

    def files(self, address: str) -> Json:
        """Return the files that a conversation wrote, by absolute path."""
        branch = self._reader.target(address).branch
        gists = turn_log.turn_gists(self._context, branch, self._context.index.turns(branch.name), no_progress)
        written = {cells.absolute_path(file, branch.state.project) for gist in gists for file in gist.files_changed}
        return {"written": sorted(written)}
