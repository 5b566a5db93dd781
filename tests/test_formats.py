"""The documents for people: what is in them, and that nothing in a transcript becomes a part of the document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import hostile
import pytest
from browser import Elements
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sessgit.formats import html, markdown, markup, phrases, texts
from sessgit.formats.template_files import read_template_file
from sessgit.history import export
from sessgit.model.conversation.content import Call, Change, Piece, Words
from sessgit.model.conversation.session import Session
from sessgit.model.conversation.story import Heading, Relative, Story, StoryTurn
from sessgit.model.conversation.turn import Cell, Tokens, Turn

STATE = Session(
    "a41f9c02-5b7e", "a41f9c02-5b7e", title="parser rewrite", project="/home/ada/calc", turns=3, git_branch="main",
    created="2026-03-02T11:40:00.000Z", updated="2026-03-02T12:10:00.000Z", labels=("parser",),
)  # fmt: skip
TOKENS = {"claude-opus-4-8": Tokens(100, 20, 9000, 50)}


def call(tool: str, arguments: dict[str, object], output: str = "done", ordinal: int = 1, **more: object) -> Call:
    """A call that went well, unless `ok` says otherwise."""
    ok = bool(more.pop("ok", True))
    more = {"about": str(arguments.get("command", "")), **more}
    return Call(Cell("cell_00000001", "tool", tool, (2,), (), ok), ordinal, arguments, output, **more)  # type: ignore[arg-type]


def story(*numbers: int, **more: object) -> Story:
    headings = tuple(Heading(number, f"prompt {number}") for number in numbers or (1, 2, 3))
    return Story("a41f9c02-5b7e", "c0ffee" * 6, "parser rewrite", STATE, headings, tokens=TOKENS, **more)  # type: ignore[arg-type]


def told(number: int, *pieces: Piece, **more: object) -> StoryTurn:
    turn = Turn(f"p{number}", f"prompt {number}", time="2026-03-02T11:40:00.000Z", model="claude-opus-4-8")
    return StoryTurn(number, turn, pieces, **more)  # type: ignore[arg-type]


def page(whole: Story, turns: Iterable[StoryTurn], *, full: bool = False) -> str:
    return "".join(html.render(whole, turns, full=full))


def source(whole: Story, turns: Iterable[StoryTurn], *, full: bool = False) -> str:
    return "".join(markdown.render(whole, turns, full=full))


def body(text: str) -> str:
    """What a page of Markdown says of its turns."""
    return text.partition("## Turn 1\n")[2].rpartition("\n---\n")[0]


# Markdown


def test_a_turn_in_markdown() -> None:
    pieces = (
        Words("person", "now add\nthe *error* recovery"),
        Words("model", "It `skip`s.", thinking=True),
        call("Bash", {"command": "make test"}, "FAILED", ok=False, exit_code=2),
        call(
            "Edit", {"file_path": "/x/a.py"}, ordinal=2, changes=(Change("/x/a.py", ("@@ -1,1 +1,1 @@", "-a", "+b")),)
        ),
        Words("client", "[Request interrupted by user]"),
        Words("model", "Done:\n\n```py\nx < 1\n```"),
    )
    fork = Relative("e155c502-0000", "tokens as a trie", 3, 1, 1)
    shown = source(story(), [told(1, *pieces, forks=(fork,), left={"a41f9c02-5b7e.r-1": 2})])
    assert (
        body(shown)
        == """
*2026-03-02 11:40 · claude-opus-4-8*

> now add\\
> the \\*error\\* recovery

<details>
<summary><b>Thinking</b> It `skip`s.</summary>

> It \\`skip\\`s.

</details>

<details>
<summary><b>Bash</b> make test · exit 2</summary>

```bash
make test
```

result:

```text
FAILED
```

</details>

<details>
<summary><b>Edit</b></summary>

file_path: `/x/a.py`

```diff
@@ -1,1 +1,1 @@
-a
+b
```

</details>

*\\[Request interrupted by user\\]*

Done:

```py
x < 1
```

*↳ `e155c502` tokens as a trie was forked here, 3 turns*

*2 turns left behind by a rewind*
"""
    )


def test_the_head_of_a_markdown_page() -> None:
    family = (Relative("a41f9c02-5b7e", "parser | rewrite", 3, own=True), Relative("e155c502-1", "a *trie*", 2, 1, 1))
    whole = story(1, 3, family=family, redacted=1, cost=0.194, rewound=2, tools=False)
    assert (
        source(whole, []).partition("---\n\n*Written")[0]
        == """\
# parser rewrite

| | |
| --- | --- |
| Session | a41f9c02-5b7e |
| Project | /home/ada/calc |
| Git branch | main |
| When | 2026-03-02 11:40–12:10 UTC |
| Model | claude-opus-4-8 |
| Turns | 1, 3 of 3 |
| Tokens | 170 new, 9k from the cache |
| Cost | \\$0.19 |
| Labels | #parser |
| Left behind | 2 turns, by rewinds |

1 secret in this conversation is redacted as `[redacted:…]`. Tool calls are not included. Times are UTC.

## Family

- `a41f9c02` **parser | rewrite**, 3 turns (this one)
  - `e155c502` a \\*trie\\*, 2 turns, forked at turn 1

"""
    )


def test_an_answer_stays_markdown_below_the_page_s_headings() -> None:
    text = "# A\n\n###### B\n\n1 < 2 `a < b` ``c ` <i>`` <b>x</b> \\<i> ![i](http://x/y)\n\n    <code>\n\n> # <C>\n"
    assert markdown.answer(text) == (
        "### A\n\n###### B\n\n1 &lt; 2 `a < b` ``c ` <i>`` &lt;b>x&lt;/b> \\<i> \\![i](http://x/y)\n\n"
        "    <code>\n\n> ### &lt;C>\n"
    )


def test_underlined_headings_too() -> None:
    assert markdown.answer("A `b`\n===\n\nC\n-\n\n> D\n> ---\n\nE\nF\n--") == (
        "### A `b`\n\n\n#### C\n\n\n> D\n> \\---\n\nE\nF\n\\--"
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [("```\nx", "\n```"), ("~~~~py\nx\n~~~", "\n~~~~"), ("```\nx\n```", ""), ("- a\n  ```\n  x", ""), ("`x", "")],
)
def test_a_fence_that_is_open_at_the_end_is_closed(text: str, end: str) -> None:
    assert markdown.answer(text) == text + end


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("# no heading", "> \\# no heading"),
        ("#5 and a#b", "> #5 and a#b"),
        ("- a\n+ b\n1. c\n2) d", "> \\- a\\\n> \\+ b\\\n> 1\\. c\\\n> 2\\) d"),
        ("a\n===\n---", "> a\\\n> \\===\\\n> \\---"),
        (
            "snake_case and _this_ $x$ ~~y~~ a & b &lt;",
            "> snake_case and \\_this\\_ \\$x\\$ \\~\\~y\\~\\~ a & b \\&lt;",
        ),
        ("  two\n\n\tone", "> &nbsp;&nbsp;two\n>\n> &nbsp;&nbsp;&nbsp;&nbsp;one"),
        ("see:\n```py\nx = '```'\n```\nend", "> see:\n>\n> ```py\n> x = '```'\n> ```\n>\n> end"),
        ("```sh\nls\n```\n```sh\nps\n```", "> ```sh\n> ls\n> ```\n>\n> ```sh\n> ps\n> ```"),
        ("> quoted", "> \\> quoted"),
        ("", ">"),
    ],
)
def test_a_prompt_is_shown_as_it_was_typed(text: str, typed: str) -> None:
    if "'```'" in text:
        typed = typed.replace("> ```py", "> ````py").replace("> ```\n", "> ````\n")
    assert markdown.quoted_text(text) == typed


def test_code_in_markdown() -> None:
    assert markdown.fenced_code("a ```` b", "py") == "`````py\na ```` b\n`````"
    assert markdown.code_span("a`b``c") == "```a`b``c```"
    assert markdown.code_span("`a") == "`` `a ``"
    assert MarkdownIt().renderInline(markdown.code_span("`a")) == "<code>`a</code>"


NASTY = st.lists(
    st.sampled_from(
        [*"`~<>*_[]()!#|&\\-=:/\"' \n\t1.ax", "```", "~~~", "\n\n", "    ", "  ", "\n- ", "\n> ", "\n1. ", "</details>",
         "<script>", "<!--", "-->", "![", "](", "http://x/", "javascript:", "<http://x>", "&lt;", "\n```\n", "\n~~~\n",
         "\n| a | b |\n| - | - |\n", "\n# ", "\n===\n", "\r", "\x1b[0m", "\x00", "\u202e", "\ud800"]
    ),
    max_size=30,
).map("".join)  # fmt: skip
PIECES = st.lists(
    st.one_of(
        st.builds(lambda text: Words("person", text), NASTY),
        st.builds(lambda text: Words("model", text), NASTY),
        st.builds(lambda text: Words("model", text, thinking=True), NASTY),
        st.builds(lambda text: Words("client", text), NASTY),
        st.builds(lambda a, b, c: call(a, {"command": b, c: [b], "x": c}, a), NASTY, NASTY, NASTY),
        st.builds(
            lambda a, b: call("Edit", {"new_string": a}, changes=(Change(a, tuple(b.split("\n"))),)), NASTY, NASTY
        ),
    ),
    max_size=4,
)
_OF_MARKDOWN = {
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "pre",
    "code", "strong", "em", "a", "br", "hr", "blockquote", "details", "summary", "b",
}  # fmt: skip


def is_folded(piece: Piece) -> bool:
    if isinstance(piece, Call) or piece.thinking:
        return True
    return piece.by == "client" and not phrases.is_remark(piece.text)


@given(PIECES)
@example([Words("model", "`\n`\n- \n- ")])
@example([Words("model", "a\n`\n" + "- \nb\n" * 40)])
def test_nothing_breaks_out_of_its_block_in_markdown(pieces: list[Piece]) -> None:
    """Rendered by a program that lets HTML through, the page has the blocks that we made, and no other HTML."""
    made = source(story(1), [told(1, *pieces), told(2, Words("person", "the next"))])
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(made)
    found = Elements(rendered)
    assert {tag for tag, _ in found.found} <= _OF_MARKDOWN
    folded = sum(
        isinstance(p, Call) or p.thinking or (p.by == "client" and not phrases.is_remark(p.text)) for p in pieces
    )
    assert len(found.all("details")) == len(found.all("summary")) == folded == rendered.count("</details>")
    assert [line for line in rendered.split("\n") if line.startswith("<h2>")] == ["<h2>Turn 1</h2>", "<h2>Turn 2</h2>"]
    assert rendered.endswith("</em></p>\n")


# HTML


@given(PIECES)
def test_nothing_breaks_out_of_its_block_in_html(pieces: list[Piece]) -> None:
    made = page(story(1), [told(1, *pieces), told(2, Words("person", "the next"))])
    found = Elements(made)
    assert len(found.all("article")) == made.count("</article>") == 2
    assert {"script", "img", "style", "iframe"} & {tag for tag, _ in found.found} == {"style"}
    assert all(name in ("href", "rel") for link in found.all("a")[1:] for name in link if name not in ("class",))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", made.replace("\t", ""))


def test_a_turn_in_html() -> None:
    pieces = (
        Words("person", "now <add>\nit", images=("", "")),
        call("Bash", {"command": "ls | wc"}, "3 < 4", ok=False, exit_code=2),
        call("mcp__linear__new", {"title": "x", "nested": {"a": 1}}, '{"id": 7}', ordinal=2, images=("",)),
    )
    shown = page(story(1), [told(1, *pieces)])
    assert '<div class="typed">now &lt;add&gt;\nit</div>' in shown
    assert "[2 images, not shown]" in shown
    assert '<details class="part call" id="turn-1.1">' in shown
    assert '<b>Bash</b> <span class="about">ls | wc</span> <span class="outcome wrong">exit 2</span>' in shown
    assert "<pre><code>3 &lt; 4</code></pre>" in shown
    assert "<b>linear: new</b>" in shown
    assert '<p class="name">title <code>x</code></p>' in shown
    assert "<p>[1 image, not shown]</p>\n</div>" in shown


def test_the_family_is_a_tree() -> None:
    names = (("a", 0), ("b", 1), ("c", 2), ("d", 1))
    family = tuple(Relative(name * 8, name, 2, depth, depth or None, name == "c") for name, depth in names)
    tree = page(story(family=family, relatives=7), []).partition('<h2 id="family">')[2].partition("</section>")[0]
    shape = re.sub(r"\s+", "", re.sub(r"<(?!/?(?:ul|li)>)[^>]+>", "", tree))
    assert shape == (
        "Family<ul><li>aaaaaaaaa2turns<ul><li>bbbbbbbbb2turns,forkedatturn1<ul><li>ccccccccc2turns,forkedatturn2·thisone"
        "</li></ul></li><li>ddddddddd2turns,forkedatturn1</li></ul></li></ul>and7more"
    )


def test_a_family_of_many_generations_stays_a_tree() -> None:
    family = tuple(Relative(f"{n:08d}", str(n), 1, n, n) for n in range(60))
    shown = page(story(family=family), [])
    assert shown.count("<ul>") == shown.count("</ul>") <= 10
    assert shown.count("<li>") == shown.count("</li>")


def test_what_is_left_out_between_turns_is_told() -> None:
    shown = page(story(2, 5), [told(2), told(5)])
    events = re.findall(r'<p class="event">(.*?)</p>', shown)
    assert events == ["Turn 1 is not included.", "Turns 3 to 4 are not included."]
    assert "*Turn 1 is not included.*\n" in source(story(2, 5), [told(2), told(5)])


def test_a_compaction_stands_before_its_turn() -> None:
    turn = told(1, compacted=True, summary="So **far**")
    assert "The conversation so far was compacted to a summary here." in page(story(1), [turn])
    assert "<strong>far</strong>" in page(story(1), [turn])
    assert "> So \\*\\*far\\*\\*" in source(story(1), [turn])


REL = 'rel="noopener noreferrer nofollow"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[a](https://x/?a=1&b)", f'<p><a href="https://x/?a=1&amp;b" {REL}>a</a></p>\n'),
        ("[a](src/a.py)", '<p><span class="place" title="src/a.py">a</span></p>\n'),
        ("[a](HTTPS://x/y)", f'<p><a href="HTTPS://x/y" {REL}>a</a></p>\n'),
        ("[a](//x/y)", '<p><span class="place" title="//x/y">a</span></p>\n'),
        ("[a](javascript:x)", "<p>[a](javascript:x)</p>\n"),
        ("[a](ftp://x/y)", '<p><span class="place" title="ftp://x/y">a</span></p>\n'),
        ("![a *b*](http://x/y.png)", f'<p><a href="http://x/y.png" {REL}>[image: a b]</a></p>\n'),
        ("![a](y.png)", '<p><span class="place" title="y.png">[image: a]</span></p>\n'),
        (
            "[![a](http://i)](src)",
            '<p><span class="place" title="src"><span class="place" title="http://i">[image: a]</span></span></p>\n',
        ),
        ("# A", "<h3>A</h3>\n"),
        ("###### A", "<h6>A</h6>\n"),
        ("```py\nx = 1\n```", '<pre><code>x = <span class="m">1</span></code></pre>\n'),
        ("```<b>\n<i>\n```", "<pre><code>&lt;i&gt;</code></pre>\n"),
        ("<b onclick=x>", "<p>&lt;b onclick=x&gt;</p>\n"),
    ],
)  # fmt: skip
def test_prose(text: str, shown: str) -> None:
    assert markup.markdown_html(text) == shown


def test_a_prompt_keeps_its_lines_and_its_code() -> None:
    assert markup.plain_html("a *b*\n  <c>\n```sh\nls  # x\n```\nd") == (
        '<div class="typed">a *b*\n  &lt;c&gt;</div>\n'
        '<pre><code>ls  <span class="c"># x</span></code></pre>\n'
        '<div class="typed">d</div>\n'
    )


@given(st.text(max_size=200), st.sampled_from(["py", "json", "bash", "html", "diff", "", "nothing"]))
def test_highlighting_changes_no_character(text: str, language: str) -> None:
    clean = texts.clean_text(text)
    assert Elements(f"<pre>{markup.highlight(clean, language)}</pre>").text == clean


@pytest.mark.parametrize(
    ("path", "language"),
    [("/x/A.PY", "python"), ("C:\\x\\a.ts", "typescript"), ("Dockerfile", "docker"), ("a.unknown", ""), ("", "")],
)
def test_the_language_of_a_file(path: str, language: str) -> None:
    assert markup.language_of(path) == language


# Texts


@given(st.text(alphabet="ab\n<", max_size=400), st.integers(3, 40), st.integers(3, 200))
def test_a_cut_keeps_both_ends(text: str, lines: int, chars: int) -> None:
    bound = texts.Bound(lines, chars)
    whole = text.strip("\n")
    found = texts.cut_text(text, bound)
    assert whole.startswith(found.head)
    assert whole.endswith(found.tail)
    if found.note:
        assert len(found.head) + len(found.tail) <= max(chars, 0)
        assert found.head.count("\n") + found.tail.count("\n") < lines
        assert len(found.head) + len(found.tail) < len(whole)
    else:
        assert found.head == whole
    assert texts.cut_text(text, texts.NO_BOUND).head == whole


def test_what_a_cut_says() -> None:
    assert texts.cut_text("\n".join(map(str, range(100))), texts.Bound(6, 1000)) == texts.CutText(
        "0\n1\n2\n3", "94 lines left out (277 B)", "98\n99"
    )
    assert texts.cut_text("x" * 3000, texts.Bound(6, 300)) == texts.CutText("x" * 200, "2.7 kB left out", "x" * 100)


def test_full_cuts_nothing() -> None:
    long = "\n".join(map(str, range(5000)))
    turn = told(1, call("Bash", {"command": "seq"}, long))
    for make in (page, source):
        assert "lines left out" in make(story(1), [turn])
        assert "\n2500\n" not in make(story(1), [turn])
        assert "\n4999" in make(story(1), [turn])
        assert "\n2500\n" in make(story(1), [turn], full=True)


def test_what_steers_a_terminal_is_gone() -> None:
    assert texts.clean_text("a\x1b[31mred\x1b[0m\r\nb\x1b]0;t\x07c\rd\x00\u202e") == "ared\nbc\nd\ufffd\ufffd"


# JSON


def test_the_json_has_a_line_for_each_turn() -> None:
    shown = "".join(export.render_json({"a": [], "b": "\ud800"}, iter([{"turn": 1}, {"turn": 2}])))
    assert shown == (
        '{\n  "schema": "sessgit.export/v1",\n  "session": {\n    "a": [],\n    "b": "\\ud800"\n  },\n  "turns": [\n'
        '{"turn": 1},\n{"turn": 2}\n  ]\n}\n'
    )


# The page as a whole


def test_the_page_asks_for_nothing() -> None:
    shown = page(story(), [told(1, Words("model", hostile.MARKDOWN))])
    assert "url(" not in read_template_file("turn.css")
    assert "@import" not in read_template_file("turn.css")
    policy = Elements(shown).all("meta")[1]["content"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'", policy
    )
    assert {link["href"][:4] for link in Elements(shown).all("a") if not link["href"].startswith("#")} == {"http"}


def test_the_colours_can_be_read() -> None:
    """WCAG's contrast, 4.5 at least, in both schemes, of every colour of text on every ground that it stands on."""
    light, dark = re.findall(r":root \{(.*?)\n *\}", read_template_file("turn.css"), re.DOTALL)[:2]
    grounds = {
        "text": ("page", "raised", "prompt", "mark"), "muted": ("page", "raised", "prompt"),
        "accent": ("page", "prompt"),
        "wrong": ("page", "raised"), "comment": ("raised", "page"), "keyword": ("raised", "page"),
        "string": ("raised", "page"), "number": ("raised", "page"), "function": ("raised", "page"),
        "attribute": ("raised", "page"), "builtin": ("raised", "page"), "added-text": ("added", "raised"),
        "removed-text": ("removed", "raised"), "hunk": ("raised",),
    }  # fmt: skip
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        for text, behind in grounds.items():
            for ground in behind:
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def contrast(a: str, b: str) -> float:
    darker, lighter = sorted(map(luminance, (a, b)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def test_titles_are_shown_as_they_are() -> None:
    whole = replace(story(), title="</title><b>{{7*7}}")
    assert "<title>&lt;/title&gt;&lt;b&gt;{{7*7}}</title>" in page(whole, [])
    assert source(whole, []).startswith("# \\</title>\\<b>{{7\\*7}}\n")
