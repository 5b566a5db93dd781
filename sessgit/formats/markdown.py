"""A story as Markdown, as a code host shows it.

Prompts are shown as they were typed. What a model wrote stays Markdown, but without HTML, and without images that would
be loaded. No text of a transcript can end the block that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import escape

from sessgit import __version__
from sessgit.formats import markup, phrases, template
from sessgit.formats.texts import Bound, clean_text, cut_text, one_line, text_bounds
from sessgit.model.conversation.content import Call, Words
from sessgit.model.conversation.story import Story, StoryTurn

_LONGEST_ABOUT = 120
_DEEPEST_HEADING = 6
_TRIES = 8
_UNDERLINE = re.compile(r"^([ >\t]*)(-+|=+)(?=[ \t]*$)", re.MULTILINE)
"""The line under a heading, also in a quotation."""
_HEADING_OFFSET = 2
_NO_BREAK = "&nbsp;"
_END_OF_LIST = "<!-- -->"
"""Between two answers: code at the start of the second would be a part of a list at the end of the first."""

_INLINE = re.compile(r"([\\`*\[\]<]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~)|(?<=~)~|\$|&(?=[#A-Za-z]))")
"""Markup anywhere in a line."""
_LINE_START = re.compile(r"(#{1,6}(?=\s|$)|[-+](?=\s|$)|[-=]+\s*$|>)")
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_INLINE_TOKENS = re.compile(r"\\.|`+|<|!\[", re.DOTALL)
_LINE_OF_HTML = re.compile(r"(\n[ \t>]*)<")
"""The start of a block of HTML, even between backticks."""
_CELL_END = re.compile(r"(?<!\\)\|")
_UNCLEAR_END = "\\\\|"
"""It ends a cell of a table for some renderers, but not for others."""


def render(story: Story, turns: Iterable[StoryTurn], *, full: bool = False) -> Iterator[str]:
    """Yield the page piece by piece; without `full` long texts are cut in the middle, and say so."""
    words, output = text_bounds(full=full)
    filters: dict[str, Callable[..., object]] = {
        **phrases.FILTERS,
        "typed": escaped_line,
        "cell": lambda text: escaped_line(text).replace("|", "\\|"),
        "quoted": quoted_text,
        "summary": lambda text: folded_block("Summary", "", _cut_and_paint(text, words, quoted_text)),
        "blocks": lambda turn: _turn_blocks(turn, story.state.project, words, output),
    }
    return template.render("page.md.j2", filters, **phrases.page_values(story, turns), version=__version__)


def _turn_blocks(turn: StoryTurn, project: str, words: Bound, output: Bound) -> Iterator[str]:
    was_answer = False
    for piece in turn.pieces:
        is_answer = isinstance(piece, Words) and piece.by == "model" and not piece.thinking
        if is_answer and was_answer:
            yield _END_OF_LIST
        yield _call(turn, piece, project, output) if isinstance(piece, Call) else _words(piece, words)
        was_answer = is_answer


def _words(piece: Words, bound: Bound) -> str:
    if piece.by == "client" and phrases.is_remark(piece.text):
        return f"*{escaped_line(piece.text)}*"
    text = "\n\n".join([piece.text, *_images(piece)])
    is_folded = piece.thinking or piece.by == "client"
    shown = _cut_and_paint(text, bound, quoted_text if is_folded or piece.by == "person" else answer)
    if not is_folded:
        return shown
    return folded_block("Thinking" if piece.thinking else "Notice", one_line(text, _LONGEST_ABOUT), shown)


def _call(turn: StoryTurn, call: Call, project: str, bound: Bound) -> str:
    about = phrases.short_place(call.about, project)
    outcome, _ = phrases.call_outcome(call)
    head = " · ".join(filter(None, (one_line(about, _LONGEST_ABOUT), outcome)))
    blocks = [_call_block(block, bound) for block in phrases.call_blocks(call, about)]
    return folded_block(phrases.tool_name(call.tool), head, "\n\n".join([*blocks, *_images(call)]))


def _images(piece: Words | Call) -> list[str]:
    return [f"[{phrases.images_note(len(piece.images))}]"] if piece.images else []


def _call_block(block: phrases.CallBlock, bound: Bound) -> str:
    if block.short:
        return f"{escaped_line(block.name)}: {code_span(block.text)}"
    cut = cut_text(block.text, bound)
    text = "\n".join(filter(None, (cut.head, f"… {cut.note} …" if cut.note else "", cut.tail)))
    return (f"{escaped_line(block.name)}:\n\n" if block.name else "") + fenced_code(text, block.language)


# Blocks that nothing breaks out of


def folded_block(head: str, about: str, inside: str) -> str:
    """Return a block that a click unfolds; `head` and `about` are plain text, on one line."""
    summary = f"<b>{escape(clean_text(head))}</b> {escape(one_line(about, 1_000))}".rstrip()
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def fenced_code(text: str, language: str = "") -> str:
    """Return a clean text as a block of code, between fences that are longer than any in it."""
    mark = "`" * max(3, _longest_run_of_backticks(text) + 1)
    return f"{mark}{language or 'text'}\n{text}\n{mark}"


def code_span(text: str) -> str:
    """Return a text on one line, as code."""
    shown = one_line(text, 1_000)
    mark = "`" * (_longest_run_of_backticks(shown) + 1)
    pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    return f"{mark}{pad}{shown or ' '}{pad}{mark}"


def _longest_run_of_backticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def escaped_line(text: str) -> str:
    """Return the text's first line as it was typed: what Markdown would make of it is escaped."""
    return _escape_line(one_line(text, 1_000))


def quoted_text(text: str) -> str:
    """Return a clean text as a quotation, line by line as it was typed; its fenced code stays code."""
    out: list[str] = []
    for part, language in markup.split_fences(text):
        if language is not None:
            out += [*fenced_code(part, language).split("\n"), ""]
        else:
            lines = part.strip("\n").split("\n")
            for own, after in zip(lines, [*lines[1:], ""], strict=True):
                out.append(_escape_line(own) + ("\\" if own.strip() and after.strip() else ""))  # a line break
            out.append("")
    while out and not out[-1]:
        out.pop()
    return "\n".join(f"> {shown}".rstrip() for shown in out) or ">"


def _escape_line(text: str) -> str:
    bare = text.lstrip(" \t")
    indent = text[: len(text) - len(bare)].expandtabs(4)
    escaped = _INLINE.sub(r"\\\1", bare.rstrip())
    escaped = re.sub(r"[|:]", r"\\\g<0>", escaped) if _is_table_delimiter(escaped) else escaped
    escaped = _LINE_START.sub(r"\\\1", escaped, count=1) if _LINE_START.match(escaped) else escaped
    escaped = _NUMBERED.sub(r"\1\\\2", escaped, count=1) if _NUMBERED.match(escaped) else escaped
    return _NO_BREAK * len(indent) + escaped if escaped else ""


def answer(text: str) -> str:
    """Return the Markdown of a clean text with HTML as text, images as links, and headings below the page's own."""
    text = _without_underlined_headings(text)
    lines = text.split("\n")
    code: set[int] = set()
    rows: set[int] = set()
    inline: dict[int, int] = {}
    unclosed = ""
    for block in markup.markdown_blocks(text):
        if block.kind in ("fence", "code_block"):
            code.update(range(block.first, block.end))
            unclosed = _missing_fence(lines, block) if block.kind == "fence" and not block.level else ""
        elif block.kind == "heading_open":
            _demote_heading(lines, block)
        elif block.kind == "tr_open":
            rows.update(range(block.first, block.end))
        elif block.kind == "inline":
            inline.setdefault(block.first, block.end)
    out: list[str] = []
    at = 0
    while at < len(lines):
        end = at + 1 if at in code or at in rows else max(at + 1, inline.get(at, at + 1))
        part = "\n".join(lines[at:end])
        out.append(
            part
            if at in code
            else _escape_row(part)
            if at in rows
            else _without_any_html(part)
            if any(map(_is_table_delimiter, lines[at:end]))
            else _without_html(part)
        )
        at = end
    return "\n".join([*out, unclosed] if unclosed else out)


def _demote_heading(lines: list[str], heading: markup.MarkdownBlock) -> None:
    """Move a heading below the page's own, with `#` marks."""
    mark = "#" * min(_DEEPEST_HEADING, int(heading.tag[1:]) + _HEADING_OFFSET)
    first = heading.first
    if heading.mark.startswith("#"):
        lines[first] = lines[first].replace(heading.mark, mark, 1)
    else:
        lines[first], lines[first + 1] = f"{mark} {lines[first].lstrip()}", ""


def _without_underlined_headings(text: str) -> str:
    """Return the text without underlines of headings that have several lines or are inside other blocks.

    The line after such an underline may then underline the same words, so the text is parsed again; after a few times
    every underline is escaped.
    """
    for _ in range(_TRIES):
        lines = text.split("\n")
        headings = [one for one in markup.markdown_blocks(text) if one.kind == "heading_open" and one.mark[:1] != "#"]
        wrong = [one for one in headings if one.level > 0 or one.end - one.first != 2]
        if not wrong:
            return text
        for heading in wrong:
            lines[heading.end - 1] = lines[heading.end - 1].replace(heading.mark, f"\\{heading.mark}", 1)
        text = "\n".join(lines)
    return _UNDERLINE.sub(r"\1\\\2", text)


def _missing_fence(lines: Sequence[str], fence: markup.MarkdownBlock) -> str:
    """Return the fence that ends a block of code, or ``""`` if the text has it."""
    last = lines[fence.end - 1].strip() if fence.end - fence.first > 1 else ""
    closed = last.startswith(fence.mark) and not last.strip(fence.mark[0])
    return "" if closed else fence.mark


def _escape_row(text: str) -> str:
    """Return a row of a table without HTML: code ends with its cell."""
    if _UNCLEAR_END in text:
        return _without_any_html(text)
    return "|".join(map(_without_html, _CELL_END.split(text)))


def _is_table_delimiter(line: str) -> bool:
    """Return whether some renderers would see a table in this line and the one above it."""
    marks = line.strip(" \t>")
    return "-" in marks and ("|" in marks or ":" in marks) and not marks.strip("-|: \t")


def _without_any_html(text: str) -> str:
    """Return the text with the start of HTML and of images escaped, in code too."""
    return text.replace("<", "&lt;").replace("![", "!\\[")


def _without_html(text: str) -> str:
    """Return the text with the start of HTML and of images escaped, except in code."""
    out: list[str] = []
    at, unclosed = 0, set[int]()
    while match := _INLINE_TOKENS.search(text, at):
        out.append(text[at : match.start()])
        token, at = match.group(), match.end()
        if token.startswith("`"):
            run = re.compile(rf"(?<!`){token}(?!`)")
            end = None if len(token) in unclosed else run.search(text, at)
            if end is None:
                unclosed.add(len(token))
            else:
                token, at = _LINE_OF_HTML.sub(r"\1&lt;", text[match.start() : end.end()]), end.end()
        out.append({"<": "&lt;", "![": "\\!["}.get(token, token))
    return "".join([*out, text[at:]])


def _cut_and_paint(text: str, bound: Bound, paint: Callable[[str], str]) -> str:
    """Return the text, cut in the middle if it is too long, each part painted by itself."""
    cut = cut_text(text, bound)
    parts = (paint(cut.head), f"*… {cut.note} …*" if cut.note else "", paint(cut.tail) if cut.tail else "")
    return "\n\n".join(filter(None, parts))
