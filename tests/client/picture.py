"""Makes docs/pictures/plugin.svg, the plugin in the real client: `.venv/bin/python tests/client/picture.py`.

A model of our own answers, in a home and a project of their own.
"""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import clients
import model_server
import terminal
from model_server import ModelServer, Request
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text
from world import World

REPOSITORY = Path(__file__).parents[2]
PICTURE = REPOSITORY / "docs" / "pictures" / "plugin.svg"
ROWS, COLUMNS = 46, 92
ANSWERS = {
    "write the tokenizer": "It splits numbers, names and operators.",
    "the grammar is ambiguous, why?": "`1 - 2 - 3` has two trees: the rule for `expr` recurses on both sides.",
    "ok": "I will write a Pratt parser: binding powers settle it.",
}
"""What the model says to each prompt. It repeats what the commands of the plugin print, as they ask it to."""
COMMANDS = ("/sessgit:log", "/sessgit:fork --at 2 --name 'tokens as a trie'")
COLOURS = {"brown": "yellow"}
"""What pyte calls otherwise than rich."""
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>/sessgit:log and /sessgit:fork in Claude Code</title>
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace }}
{styles}
</style>
<rect width="100%" height="100%" rx="8" fill="#0c0c0c"/>
<g transform="translate({terminal_x}, 12)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def answer(request: Request) -> list[dict[str, Any]]:
    """Return what the model replies."""
    if request.kind != "main":
        return [{"type": "text", "text": "Nothing."}]
    *_, prompt = model_server.prompts(request)
    text = ANSWERS.get(prompt) or f"```\n{prompt.partition('Show these lines as they are')[0].strip()}\n```"
    return [{"type": "text", "text": text}]


def main() -> None:
    """Make the picture."""
    terminal.ROWS, terminal.COLUMNS = ROWS, COLUMNS
    model_server.answer = answer
    client = clients.install("latest")
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        world = World(client, model, Path(folder) / "ada", Path(folder) / "ada" / "code" / "calc")
        world.project.mkdir(parents=True)
        clients.seal_home(world.home, world.project)
        env = clients.environment(world.home, model.url)
        plugin = [*client.command, "plugin"]
        for command in (
            [*plugin, "marketplace", "add", str(REPOSITORY)],
            [*plugin, "install", "sessgit@sessgit"],
            ["sessgit", "install", "--plugin"],
        ):
            subprocess.run(command, cwd=world.project, env=env, stdin=subprocess.DEVNULL, check=True)
        try:
            screen = play(world)
        finally:
            world.close()
    PICTURE.write_text(drawn(screen))
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


def play(world: World) -> list[Text]:
    """Type the prompts and the commands; return the screen from the first of these on."""
    tui = world.terminal()
    for prompt, said in ANSWERS.items():
        tui.submit(prompt)
        tui.wait_for(said.split("`")[0][:20])
        tui.wait_ready()
        time.sleep(2)  # the turn is recorded
    for command, wanted in zip(COMMANDS, (r"● 1 ", "Continue it:"), strict=True):
        tui.submit(command)
        tui.wait_for(wanted)
        tui.wait_ready()
    lines = [_line(cells) for cells in tui.cells()]
    first = next(number for number, line in enumerate(lines) if line.plain.startswith(f"❯ {list(ANSWERS)[-1]}"))
    last = next(number for number, line in enumerate(lines) if line.plain.startswith("────"))
    return lines[first:last]


def drawn(lines: Sequence[Text]) -> str:
    """Return an SVG of the lines, without empty ones at the end."""
    while not lines[-1].plain.strip():
        lines = lines[:-1]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for line in lines:
        console.print(line, overflow="crop", no_wrap=True, soft_wrap=True)
    svg = console.export_svg(title="", theme=MONOKAI, code_format=SVG, unique_id="t")
    svg = re.sub(r' clip-path="[^"]*"', "", svg)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines() if line.strip())


def _line(cells: Sequence[Any]) -> Text:
    """Return a line of the screen."""
    text = Text()
    for (colour, ground, bold, italic), run in groupby(cells, lambda cell: (cell.fg, cell.bg, cell.bold, cell.italics)):
        style = Style(color=_colour(colour), bgcolor=_colour(ground), bold=bold, italic=italic)
        text.append("".join(cell.data for cell in run), style)
    return text


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    if len(name) == 6 and all(digit in "0123456789abcdef" for digit in name):
        return f"#{name}"
    return COLOURS.get(name, name.replace("bright", "bright_"))


if __name__ == "__main__":
    main()
