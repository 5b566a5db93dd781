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
from sessgit.formats.texts import (
    NO_BOUND,
    OUTPUT_BOUND,
    WORDS_BOUND,
    Bound,
    CutText,
    clean_text,
    cut_text,
    longest_run,
    one_line,
)
from sessgit.model import humanize
from sessgit.model.conversation.content import Call, Piece, Words
from sessgit.model.conversation.story import Story, StoryTurn

_LONGEST_ABOUT = 120
_DEEPEST_HEADING = 6
_TRIES = 8
_UNDERLINE = re.compile(r"^([ >\t]*)(-+|=+)(?=[ \t]*$)", re.MULTILINE)
"""What a line under a heading looks like, in a quotation too."""
_HEADING_OFFSET = 2
_NO_BREAK = "&nbsp;"
_END_OF_LIST = "<!-- -->"
"""Between two answers: the code at the beginning of one would be a part of the list at the end of the other."""

_INLINE = re.compile(r"([\\`*\[\]<]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~)|(?<=~)~|\$|&(?=[#A-Za-z]))")
"""What would be taken for Markdown anywhere in a line."""
_LINE_START = re.compile(r"(#{1,6}(?=\s|$)|[-+](?=\s|$)|[-=]+\s*$|>)")
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_INLINE_TOKENS = re.compile(r"\\.|`+|<|!\[", re.DOTALL)
_LINE_OF_HTML = re.compile(r"(\n[ \t>]*)<")
"""What begins a block of HTML even between backticks."""
_CELL_END = re.compile(r"(?<!\\)\|")
_UNCLEAR_END = "\\\\|"
"""For some it ends a cell of a table, and for others it does not."""


@dataclass(frozen=True, slots=True)
class PageTurn:
    """A turn as the page shows it: its pieces as blocks of Markdown."""

    told: StoryTurn
    blocks: tuple[str, ...]
    missing: str
    summary: str


def render(story: Story, turns: Iterable[StoryTurn], *, full: bool = False) -> Iterator[str]:
    """The page, piece by piece; without `full` long texts are cut in the middle, and say so."""
    filters: dict[str, Callable[..., object]] = {
        "short": lambda name: str(name)[: phrases.SHORT_ID],
        "relative": phrases.relative_phrase,
        "moment": phrases.format_moment,
        "about_turn": phrases.turn_facts,
        "counted": humanize.format_count,
        "typed": escaped_line,
        "cell": lambda text: escaped_line(text).replace("|", "\\|"),
        "quoted": quoted_text,
    }
    return template.render(
        "page.md.j2",
        filters,
        story=story,
        title=phrases.page_title(story),
        facts=phrases.session_facts(story),
        turns=_page_turns(story, turns, full=full),
        version=__version__,
    )


def _page_turns(story: Story, turns: Iterable[StoryTurn], *, full: bool) -> Iterator[PageTurn]:
    said, output = (NO_BOUND, NO_BOUND) if full else (WORDS_BOUND, OUTPUT_BOUND)
    before = 0
    for told in turns:
        blocks = tuple(_turn_blocks(told, story.state.project, said, output))
        summary = folded_block("Summary", "", _cut_and_paint(told.summary, said, quoted_text)) if told.summary else ""
        yield PageTurn(told, blocks, phrases.missing_turns(before, told.number), summary)
        before = told.number


def _turn_blocks(told: StoryTurn, project: str, said: Bound, output: Bound) -> Iterator[str]:
    answered = False
    for piece in told.pieces:
        is_answer = isinstance(piece, Words) and piece.by == "model" and not piece.thinking
        if is_answer and answered:
            yield _END_OF_LIST
        yield _words_block(told, piece, project, said, output)
        answered = is_answer


def _words_block(told: StoryTurn, piece: Piece, project: str, said: Bound, output: Bound) -> str:
    if isinstance(piece, Call):
        return _call(told, piece, project, output)
    if piece.by == "client" and phrases.is_remark(piece.text):
        return f"*{escaped_line(piece.text)}*"
    text = piece.text + (f"\n\n[{phrases.images_note(piece.images)}]" if piece.images else "")
    if piece.thinking or piece.by == "client":
        head = "Thinking" if piece.thinking else "Notice"
        return folded_block(head, one_line(text, _LONGEST_ABOUT), _cut_and_paint(text, said, quoted_text))
    return _cut_and_paint(text, said, quoted_text if piece.by == "person" else answer)


def _call(told: StoryTurn, call: Call, project: str, bound: Bound) -> str:
    about = phrases.short_place(told.about.get(call.ordinal, ""), project)
    outcome, _ = phrases.call_outcome(call)
    parts = [_call_block(block, bound) for block in calls.call_blocks(call, about)]
    told_about = " · ".join(part for part in (one_line(about, _LONGEST_ABOUT), outcome) if part)
    return folded_block(phrases.tool_name(call.tool), told_about, "\n\n".join(parts))


def _call_block(block: calls.CallBlock, bound: Bound) -> str:
    if block.short:
        return f"{escaped_line(block.name)}: {code_span(block.text)}"
    found = cut_text(block.text, bound)
    text = "\n".join(part for part in (found.head, f"… {found.note} …" if found.note else "", found.tail) if part)
    return (f"{escaped_line(block.name)}:\n\n" if block.name else "") + fenced_code(text, block.language)


# Blocks that nothing breaks out of


def folded_block(head: str, about: str, inside: str) -> str:
    """A block that is opened by a click; `head` and `about` are shown as they are, on one line."""
    summary = f"<b>{escape(clean_text(head))}</b> {escape(one_line(about, 1_000))}".rstrip()
    return f"<details>\n<summary>{summary}</summary>\n\n{inside}\n\n</details>"


def fenced_code(text: str, language: str = "") -> str:
    """A harmless text as a block of code, between fences that are longer than any in it."""
    mark = "`" * max(3, longest_run(text, "`") + 1)
    return f"{mark}{language or 'text'}\n{text}\n{mark}"


def code_span(text: str) -> str:
    """A text on one line, as code."""
    shown = one_line(text, 1_000)
    mark = "`" * (longest_run(shown, "`") + 1)
    pad = " " if shown[:1] in ("`", " ", "") or shown[-1:] in ("`", " ") else ""
    return f"{mark}{pad}{shown or ' '}{pad}{mark}"


def escaped_line(text: str) -> str:
    """The text's first line as it was typed: what Markdown would make of it is escaped."""
    return _escape_line(one_line(text, 1_000))


def quoted_text(text: str) -> str:
    """A harmless text as it was typed, line by line, as a quotation; its fenced code as code."""
    out: list[str] = []
    for part, language in prose.split_fences(text):
        if language is not None:
            out += [*fenced_code(part, language).split("\n"), ""]
        else:
            out += [*_escape_lines(part.strip("\n").split("\n")), ""]
    while out and not out[-1]:
        out.pop()
    return "\n".join(f"> {shown}".rstrip() for shown in out) or ">"


def _escape_lines(lines: Sequence[str]) -> Iterator[str]:
    """Lines as they were typed, each ended as a line where another one follows it."""
    for own, after in zip(lines, [*lines[1:], ""], strict=True):
        yield _escape_line(own) + ("\\" if own.strip() and after.strip() else "")


def _escape_line(text: str) -> str:
    bare = text.lstrip(" \t")
    indent = text[: len(text) - len(bare)].expandtabs(4)
    escaped = _INLINE.sub(r"\\\1", bare.rstrip())
    escaped = re.sub(r"[|:]", r"\\\g<0>", escaped) if _is_table_delimiter(escaped) else escaped
    escaped = _LINE_START.sub(r"\\\1", escaped, count=1) if _LINE_START.match(escaped) else escaped
    escaped = _NUMBERED.sub(r"\1\\\2", escaped, count=1) if _NUMBERED.match(escaped) else escaped
    return _NO_BREAK * len(indent) + escaped if escaped else ""


def answer(text: str) -> str:
    """The Markdown of a harmless text with its HTML shown as text, its images as links, its headings below ours."""
    text = _without_underlined_headings(text)
    lines = text.split("\n")
    code: set[int] = set()
    rows: set[int] = set()
    inline: dict[int, int] = {}
    unclosed = ""
    for block in prose.markdown_blocks(text):
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
        out.append(part if at in code else _escape_row(part) if at in rows else _escape_paragraph(part))
        at = end
    return "\n".join([*out, unclosed] if unclosed else out)


def _demote_heading(lines: list[str], heading: prose.MarkdownBlock) -> None:
    """Puts a heading below the page's own, with its mark before it."""
    mark = "#" * min(_DEEPEST_HEADING, int(heading.tag[1:]) + _HEADING_OFFSET)
    first = heading.first
    if heading.mark.startswith("#"):
        lines[first] = lines[first].replace(heading.mark, mark, 1)
    else:
        lines[first], lines[first + 1] = f"{mark} {lines[first].lstrip()}", ""


def _without_underlined_headings(text: str) -> str:
    """The text where headings of several lines, and those within other blocks, have no line under them any more.

    What follows such a line may stand under the heading's words then: so it is looked at again, and after a few times
    no line is left that could.
    """
    for _ in range(_TRIES):
        lines = text.split("\n")
        wrong = [block for block in prose.markdown_blocks(text) if _is_underlined(block)]
        if not wrong:
            return text
        for heading in wrong:
            lines[heading.end - 1] = lines[heading.end - 1].replace(heading.mark, f"\\{heading.mark}", 1)
        text = "\n".join(lines)
    return _UNDERLINE.sub(r"\1\\\2", text)


def _is_underlined(block: prose.MarkdownBlock) -> bool:
    """Whether it is a heading with a line under it that cannot be written with a mark before it."""
    is_line = block.kind == "heading_open" and not block.mark.startswith("#")
    return is_line and (block.level > 0 or block.end - block.first != 2)


def _missing_fence(lines: Sequence[str], fence: prose.MarkdownBlock) -> str:
    """The fence that ends a block of code, where the text itself does not end it."""
    last = lines[fence.end - 1].strip() if fence.end - fence.first > 1 else ""
    closed = last.startswith(fence.mark) and not last.strip(fence.mark[0])
    return "" if closed else fence.mark


def _escape_row(text: str) -> str:
    """A row of a table without HTML: code ends with its cell."""
    if _UNCLEAR_END in text:
        return _without_any_html(text)
    return "|".join(map(_without_html, _CELL_END.split(text)))


def _escape_paragraph(text: str) -> str:
    """What stands in a paragraph without HTML, also for who takes its lines for a table."""
    return _without_any_html(text) if any(map(_is_table_delimiter, text.split("\n"))) else _without_html(text)


def _is_table_delimiter(line: str) -> bool:
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
    while match := _INLINE_TOKENS.search(text, at):
        out.append(text[at : match.start()])
        found, at = match.group(), match.end()
        if found.startswith("`"):
            end = -1 if len(found) in lonely else _code_span_end(text, at, len(found))
            if end < 0:
                lonely.add(len(found))
            else:
                found, at = _LINE_OF_HTML.sub(r"\1&lt;", text[match.start() : end]), end
        out.append({"<": "&lt;", "![": "\\!["}.get(found, found))
    return "".join([*out, text[at:]])


def _code_span_end(text: str, start: int, length: int) -> int:
    """Where the code ends that a run of so many backticks began, or -1."""
    run = re.compile(rf"(?<!`)`{{{length}}}(?!`)").search(text, start)
    return run.end() if run else -1


def _cut_and_paint(text: str, bound: Bound, paint: Callable[[str], str]) -> str:
    """The text, cut in the middle where it is too long, each part painted by itself."""
    found: CutText = cut_text(text, bound)
    parts = (paint(found.head), f"*… {found.note} …*" if found.note else "", paint(found.tail) if found.tail else "")
    return "\n\n".join(part for part in parts if part)
