"""The HTML page in a real browser: nothing that a transcript holds runs, and nothing is asked of anybody."""

from __future__ import annotations

from pathlib import Path

import browser
import hostile
import pytest
from shell import Shell
from transcripts import OTHER

pytestmark = browser.needed

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "h5", "h6", "p", "dl",
    "div", "dt", "dd", "section", "ul", "ol", "li", "span", "code", "bdi", "small", "nav", "details", "summary", "main",
    "article", "time", "b", "pre", "strong", "em", "s", "hr", "br", "blockquote", "table", "thead", "tbody", "tr", "th",
    "td", "footer",
}  # fmt: skip
ATTRIBUTES = {
    "id", "class", "lang", "dir", "href", "rel", "title", "charset", "http-equiv", "content", "name", "datetime",
    "aria-label", "aria-labelledby", "aria-current", "tabindex", "start", "open",
}  # fmt: skip


def test_a_browser_shows_what_runs_and_what_is_asked(tmp_path: Path) -> None:
    """The marks work: written into a page as they are, they run and ask."""
    with browser.server() as asked:
        page = tmp_path / "page.html"
        body = hostile.ALL.replace("PORT", str(asked.port)).replace("<plaintext>", "").replace("<math>", "")
        page.write_text(f"<!DOCTYPE html><title>x</title>{body}", "utf-8", "replace")
        seen = browser.opened(page, tmp_path / "profile")
    assert 'data-ran="1"' in seen.dom
    assert {"/script", "/img"} <= set(asked.paths)


@pytest.mark.parametrize("options", [(), ("--full",), ("--no-tools",)])
def test_nothing_runs_and_nothing_is_asked(sessgit: Shell, tmp_path: Path, options: tuple[str, ...]) -> None:
    page = tmp_path / "page.html"
    with browser.server() as asked:
        fork = hostile.talk(asked.port).fork_session(OTHER)
        sessgit.recorded(hostile.talk(asked.port), fork.turns(hostile.ONE_LINE))
        sessgit("edit", "5e551011-0000-4000-8000-000000000001", "--description", hostile.ALL.replace("\0", ""))
        sessgit("edit", "5e551011-0000-4000-8000-000000000001", "--label", hostile.MARKS[3])
        assert sessgit("export", "html", "5e551011-0000-4000-8000-000000000001", "-o", str(page), *options).code == 0
        seen = browser.opened(page, tmp_path / "profile")
    assert asked.paths == []
    assert [line for line in seen.console if "Refused" in line or "violates" in line] == []
    found = browser.Elements(seen.dom)
    assert {tag for tag, _ in found.found} <= ALLOWED
    assert {name for _, attributes in found.found for name in attributes} <= ATTRIBUTES
    assert "data-ran" not in found.found[0][1]
    assert len(found.all("style")) == len(found.all("title")) == len(found.all("main")) == 1
    assert len(found.all("article")) == 2
    schemes = {link["href"].partition(":")[0] for link in found.all("a") if not link["href"].startswith("#")}
    assert schemes <= {"http", "https", "mailto"}
    targets = {attributes["id"] for _, attributes in found.found if "id" in attributes}
    assert {link["href"][1:] for link in found.all("a") if link["href"].startswith("#")} <= targets
    assert "<script>document.documentElement.dataset.ran" in found.text
    assert "{{7*7}}" in found.text
    assert not set(found.text) & set("\0\x1b\x9b\u202e\u2066")


def test_the_style_is_the_one_that_the_policy_names(sessgit: Shell, tmp_path: Path) -> None:
    """The browser says so where it refuses a style; it says nothing of ours."""
    sessgit.recorded(sessgit.talk().turns("one"))
    page = tmp_path / "page.html"
    sessgit.out("export", "html", "5e55", "-o", str(page))
    assert browser.opened(page, tmp_path / "a").console == []
    page.write_text(page.read_text("utf-8").replace("<style>", "<style> "), "utf-8")
    assert any("style" in line for line in browser.opened(page, tmp_path / "b").console)


def test_what_is_folded_is_printed(sessgit: Shell, tmp_path: Path) -> None:
    lines = "\n".join(map(str, range(200)))
    sessgit.recorded(sessgit.talk().prompt("count").tool("Bash", {"command": "seq 200"}, lines).answer("Done."))
    for name, more in (("words.html", "--no-tools"), ("all.html", "--full")):
        sessgit.out("export", "html", "5e55", "-o", str(tmp_path / name), more)
    assert browser.printed_pages(tmp_path / "words.html", tmp_path / "a") == 1
    assert browser.printed_pages(tmp_path / "all.html", tmp_path / "b") >= 3
