"""A story as Markdown, as a code host shows it.

What a person typed is shown as it was typed. What a model wrote stays Markdown, but without HTML, and without images
that would be loaded. Nothing in a transcript ends the block that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import escape

from sessgit import __version__
from sessgit.formats import calls, phrases, prose, template
from sessgit.formats.texts import ALL, OUTPUT, WORDS, Bound, Cut, clean, cut, longest_run, one_line
from sessgit.model import humanize
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.story import Story, Told

_ABOUT = 120
_DEEPEST_HEADING = 6
_TRIES = 8
_UNDERLINE = re.compile(r"^([ >\t]*)(-+|=+)(?=[ \t]*$)", re.MULTILINE)
"""What a line under a heading looks like, in a quotation too."""
_BELOW = 2
_NO_BREAK = "&nbsp;"
_END_OF_LIST = "<!-- -->"
"""Between two answers: the code at the beginning of one would be a part of the list at the end of the other."""

_INLINE = re.compile(r"([\\`*\[\]<]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~)|(?<=~)~|\$|&(?=[#A-Za-z]))")
"""What would be taken for Markdown anywhere in a line."""
_AT_START = re.compile(r"(#{1,6}(?=\s|$)|[-+](?=\s|$)|[-=]+\s*$|>)")
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_STEPS = re.compile(r"\\.|`+|<|!\[", re.DOTALL)
_LINE_OF_HTML = re.compile(r"(\n[ \t>]*)<")
"""What begins a block of HTML even between backticks."""
_CELL_END = re.compile(r"(?<!\\)\|")
_UNCLEAR_END = "\\\\|"
"""For some it ends a cell of a table, and for others it does not."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A turn as the page shows it: its pieces as blocks of Markdown."""

    told: Told
    blocks: tuple[str, ...]
    missing: str
    summary: str


def render(story: Story, turns: Iterable[Told], *, full: bool = False) -> Iterator[str]:
    """The page, piece by piece; without `full` long texts are cut in the middle, and say so."""
    filters: dict[str, Callable[..., object]] = {
        "short": lambda name: str(name)[: phrases.SHORT],
        "relative": phrases.relative,
        "moment": phrases.moment,
        "about_turn": phrases.about_turn,
        "counted": humanize.counted,
        "typed": line,
        "cell": lambda text: line(text).replace("|", "\\|"),
        "quoted": quoted,
    }
    return template.render(
        "page.md.j2",
        filters,
        story=story,
        title=phrases.title(story),
        facts=phrases.facts(story),
        turns=_shown(story, turns, full=full),
        version=__version__,
    )


def _shown(story: Story, turns: Iterable[Told], *, full: bool) -> Iterator[Shown]:
    said, output = (ALL, ALL) if full else (WORDS, OUTPUT)
    before = 0
    for told in turns:
        blocks = tuple(_blocks(told, story.state.project, said, output))
        summary = folded("Summary", "", _cut(told.summary, said, quoted)) if told.summary else ""
        yield Shown(told, blocks, phrases.missing(before, told.number), summary)
        before = told.number


def _blocks(told: Told, project: str, said: Bound, output: Bound) -> Iterator[str]:
    answered = False
    for piece in told.pieces:
        is_answer = isinstance(piece, Words) and piece.by == "model" and not piece.thinking
        if is_answer and answered:
            yield _END_OF_LIST
        yield _block(told, piece, project, said, output)
        answered = is_answer


def _block(told: Told, piece: Piece, project: str, said: Bound, output: Bound) -> str:
    if isinstance(piece, Call):
        return _call(told, piece, project, output)
    if piece.by == "client" and phrases.is_remark(piece.text):
        return f"*{line(piece.text)}*"
    text = piece.text + (f"\n\n[{phrases.images(piece.images)}]" if piece.images else "")
    if piece.thinking or piece.by == "client":
        head = "Thinking" if piece.thinking else "Notice"
        return folded(head, one_line(text, _ABOUT), _cut(text, said, quoted))
    return _cut(text, said, quoted if piece.by == "person" else answer)


def _call(told: Told, call: Call, project: str, bound: Bound) -> str:
    about = phrases.place(told.about.get(call.ordinal, ""), project)
    outcome, _ = phrases.outcome(call)
    parts = [_call_block(block, bound) for block in calls.blocks(call, about)]
    told_about = " · ".join(part for part in (one_line(about, _ABOUT), outcome) if part)
    return folded(phrases.tool(call.tool), told_about, "\n\n".join(parts))


def _call_block(block: calls.Block, bound: Bound) -> str:
    if block.short:
        return f"{line(block.name)}: {span(block.text)}"
    found = cut(block.text, bound)
    text = "\n".join(part for part in (found.head, f"… {found.note} …" if found.note else "", found.tail) if part)
    return (f"{line(block.name)}:\n\n" if block.name else "") + fence(text, block.language)


# Blocks that nothing breaks out of


def folded(head: str, about: str, inside: str) -> str:
    """A block that is opened by a click; `head` and `about` are shown as they are, on one line."""
    summary = f"<b>{escape(clean(head))}</b> {escape(one_line(about, 1_000))}".rstrip()
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def fence(text: str, language: str = "") -> str:
    """A harmless text as a block of code, between fences that are longer than any in it."""
    mark = "`" * max(3, longest_run(text, "`") + 1)
    return f"{mark}{language or 'text'}\n{text}\n{mark}"


def span(text: str) -> str:
    """A text on one line, as code."""
    shown = one_line(text, 1_000)
    mark = "`" * (longest_run(shown, "`") + 1)
    pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    return f"{mark}{pad}{shown or ' '}{pad}{mark}"


def line(text: str) -> str:
    """The text's first line as it was typed: what Markdown would make of it is escaped."""
    return _typed_line(one_line(text, 1_000))


def quoted(text: str) -> str:
    """A harmless text as it was typed, line by line, as a quotation; its fenced code as code."""
    out: list[str] = []
    for part, language in prose.parts(text):
        if language is not None:
            out += [*fence(part, language).split("\n"), ""]
        else:
            out += [*_typed(part.strip("\n").split("\n")), ""]
    while out and not out[-1]:
        out.pop()
    return "\n".join(f"> {shown}".rstrip() for shown in out) or ">"


def _typed(lines: Sequence[str]) -> Iterator[str]:
    """Lines as they were typed, each ended as a line where another one follows it."""
    for own, after in zip(lines, [*lines[1:], ""], strict=True):
        yield _typed_line(own) + ("\\" if own.strip() and after.strip() else "")


def _typed_line(text: str) -> str:
    bare = text.lstrip(" \t")
    indent = text[: len(text) - len(bare)].expandtabs(4)
    escaped = _INLINE.sub(r"\\\1", bare.rstrip())
    escaped = re.sub(r"[|:]", r"\\\g<0>", escaped) if _heads_cells(escaped) else escaped
    escaped = _AT_START.sub(r"\\\1", escaped, count=1) if _AT_START.match(escaped) else escaped
    escaped = _NUMBERED.sub(r"\1\\\2", escaped, count=1) if _NUMBERED.match(escaped) else escaped
    return _NO_BREAK * len(indent) + escaped if escaped else ""


def answer(text: str) -> str:
    """The Markdown of a harmless text with its HTML shown as text, its images as links, its headings below ours."""
    text = _not_underlined(text)
    lines = text.split("\n")
    code: set[int] = set()
    rows: set[int] = set()
    inline: dict[int, int] = {}
    unclosed = ""
    for block in prose.blocks(text):
        if block.kind in ("fence", "code_block"):
            code.update(range(block.first, block.end))
            unclosed = _unclosed(lines, block) if block.kind == "fence" and not block.level else ""
        elif block.kind == "heading_open":
            _deepen(lines, block)
        elif block.kind == "tr_open":
            rows.update(range(block.first, block.end))
        elif block.kind == "inline":
            inline.setdefault(block.first, block.end)
    out: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1 if at in code or at in rows else max(at + 1, inline.get(at, at + 1))
        part = "\n".join(lines[at:end])
        out.append(part if at in code else _row(part) if at in rows else _paragraph(part))
        at = end
    return "\n".join([*out, unclosed] if unclosed else out)


def _deepen(lines: list[str], heading: prose.Block) -> None:
    """Puts a heading below the page's own, with its mark before it."""
    mark = "#" * min(_DEEPEST_HEADING, int(heading.tag[1:]) + _BELOW)
    first = heading.first
    if heading.mark.startswith("#"):
        lines[first] = lines[first].replace(heading.mark, mark, 1)
    else:
        lines[first], lines[first + 1] = f"{mark} {lines[first].lstrip()}", ""


def _not_underlined(text: str) -> str:
    """The text where headings of several lines, and those within other blocks, have no line under them any more.

    What follows such a line may stand under the heading's words then: so it is looked at again, and after a few times
    no line is left that could.
    """
    for _ in range(_TRIES):
        lines = text.split("\n")
        wrong = [block for block in prose.blocks(text) if _is_underlined(block)]
        if not wrong:
            return text
        for heading in wrong:
            lines[heading.end - 1] = lines[heading.end - 1].replace(heading.mark, f"\\{heading.mark}", 1)
        text = "\n".join(lines)
    return _UNDERLINE.sub(r"\1\\\2", text)


def _is_underlined(block: prose.Block) -> bool:
    """Whether it is a heading with a line under it that cannot be written with a mark before it."""
    is_line = block.kind == "heading_open" and not block.mark.startswith("#")
    return is_line and (block.level > 0 or block.end - block.first != 2)


def _unclosed(lines: Sequence[str], fence: prose.Block) -> str:
    """The fence that ends a block of code, where the text itself does not end it."""
    last = lines[fence.end - 1].strip() if fence.end - fence.first > 1 else ""
    closed = last.startswith(fence.mark) and not last.strip(fence.mark[0])
    return "" if closed else fence.mark


def _row(text: str) -> str:
    """A row of a table without HTML: code ends with its cell."""
    if _UNCLEAR_END in text:
        return _without_any_html(text)
    return "|".join(map(_without_html, _CELL_END.split(text)))


def _paragraph(text: str) -> str:
    """What stands in a paragraph without HTML, also for who takes its lines for a table."""
    return _without_any_html(text) if any(map(_heads_cells, text.split("\n"))) else _without_html(text)


def _heads_cells(line: str) -> bool:
    """Whether a line would make a table of the one above it, for some who read Markdown."""
    marks = line.strip(" \t>")
    return "-" in marks and ("|" in marks or ":" in marks) and not marks.strip("-|: \t")


def _without_any_html(text: str) -> str:
    """The text with what begins HTML or an image escaped, in code too."""
    return text.replace("<", "&lt;").replace("![", "!\\[")


def _without_html(text: str) -> str:
    """The text with what begins HTML or an image escaped, but for what stands in code."""
    out: list[str] = []
    at, lonely = 0, set[int]()
    while match := _STEPS.search(text, at):
        out.append(text[at : match.start()])
        found, at = match.group(), match.end()
        if found.startswith("`"):
            end = -1 if len(found) in lonely else _closing(text, at, len(found))
            if end < 0:
                lonely.add(len(found))
            else:
                found, at = _LINE_OF_HTML.sub(r"\1&lt;", text[match.start() : end]), end
        out.append({"<": "&lt;", "![": "\\!["}.get(found, found))
    return "".join([*out, text[at:]])


def _closing(text: str, start: int, length: int) -> int:
    """Where the code ends that a run of so many backticks began, or -1."""
    run = re.compile(rf"(?<!`)`{{{length}}}(?!`)").search(text, start)
    return run.end() if run else -1


def _cut(text: str, bound: Bound, paint: Callable[[str], str]) -> str:
    """The text, cut in the middle where it is too long, each part painted by itself."""
    found: Cut = cut(text, bound)
    parts = (paint(found.head), f"*… {found.note} …*" if found.note else "", paint(found.tail) if found.tail else "")
    return "\n\n".join(part for part in parts if part)
