"""`sessgit export html --project`: the index of a project, and its pages."""

from __future__ import annotations

import hostile
import pytest
from browser import Elements
from kept import begins
from shell import Done, Shell
from test_tree import LEFT, LEXER, PARSER, PRICE, TRIE, UPLOAD, beginning
from transcripts import OTHER, SESSION

from sessgit.history import turn_log
from sessgit.store.index import Branch, Index

SHARE = "It contains what tools read and printed: check it before you share it.\n"
NEEDED = "needs --output.\nHint: Name it with `--output DIR`."


@begins
def family(shell: Shell) -> None:
    """A conversation with a rewind, a fork and a fork of that, and an archived one."""
    parser = beginning(shell).turns("try recursion").rewind(2).turns("try a Pratt parser")
    lexer = beginning(shell).branch(LEXER).turns("write the lexer by hand")
    trie = beginning(shell).branch(LEXER).turns("write the lexer by hand").branch(TRIE).turns("put them into a trie")
    upload = shell.talk(UPLOAD).turns("fix flaky upload")
    shell.recorded(parser.title("parser <rewrite>"), lexer.title("with a hand lexer"), trie.title(""), upload)
    shell.out("config", "prices.claude-test", PRICE)
    shell.out("archive", UPLOAD)


def entry(name: str, title: str, facts: str) -> str:
    page = f'<a href="conversations/{name}.html"><code title="{name}">{name[:8]}</code> <bdi>{title}</bdi></a>'
    return f"<span>{page} <small>{facts}</small></span>"


def test_the_index_and_its_pages(family: Shell) -> None:
    assert family.out("export", "html", "--project", "-o", "pages") == (
        f"Written: ~/shop/pages, 4 conversations, 6 files\n{SHARE}"
    )
    pages = family.project / "pages"
    _, body, index = (pages / "index.html").read_text("utf-8").partition("<body>\n")
    assert body
    assert (
        index
        == f"""\
<header>
<h1 dir="auto">Conversations in {family.project}</h1>
</header>
<main>
<section class="family">
<ul><li>{entry(PARSER, "parser &lt;rewrite&gt;", "3 turns · 2026-03-01 10:00 · $0.45 · “write the tokenizer”")}
<ul><li>{entry(LEFT, "left behind: 1 turn", "3 turns, forked at turn 2 · 2026-03-01 10:00 · $0.11 · “try recursion”")}
</li><li>{entry(LEXER, "with a hand lexer", "3 turns, forked at turn 2 · 2026-03-01 11:00 · $0.11 · “write the lexer by hand”")}
<ul><li>{entry(TRIE, "Branched", "4 turns, forked at turn 3 · 2026-03-01 12:00 · $0.11 · “put them into a trie”")}
</li></ul></li></ul></li></ul></section>
<section class="family">
<ul><li>{entry(UPLOAD, "fix flaky upload", "1 turn · 2026-03-01 10:00 · $0.11 · archived")}
</li></ul></section>
</main>
<footer>
<p>Written by sessgit 0.2.0. Times are UTC.</p>
</footer>
</body>
</html>
"""  # noqa: E501
    )


def test_links_lead_to_pages_and_back(family: Shell) -> None:
    family.out("export", "html", "--project", "-o", "pages")
    pages = family.project / "pages"
    linked = {}
    for path in pages.rglob("*.html"):
        links = Elements(path.read_text("utf-8")).all("a")
        linked[path] = {(path.parent / link["href"]).resolve() for link in links if not link["href"].startswith("#")}
        assert all(target.is_file() for target in linked[path])
    index = linked.pop(pages / "index.html")
    assert index == set(linked)
    assert all(pages / "index.html" in targets for targets in linked.values())
    names = {target.stem for target in linked[pages / "conversations" / f"{LEXER}.html"]}
    assert names == {"index", PARSER, TRIE}


def test_a_page_is_that_of_the_conversation(family: Shell) -> None:
    """But for its links."""
    family.out("export", "html", "--project", "-o", "pages", "--no-tools")
    page = (family.project / "pages" / "conversations" / f"{UPLOAD}.html").read_text("utf-8")
    link = '<p class="remark"><a href="../index.html">All conversations</a></p>\n'
    assert page.replace(link, "", 1) == family.out("export", "html", UPLOAD, "--no-tools")


def test_an_index_of_hostile_titles(sessgit: Shell) -> None:
    talk = hostile.talk(1)
    sessgit.recorded(talk, talk.fork_session(OTHER).turns(hostile.ONE_LINE).title(hostile.ONE_LINE))
    sessgit.out("export", "html", "--project", talk.file.cwd.replace("PORT", "1"), "-o", "pages")
    index = Elements((sessgit.project / "pages" / "index.html").read_text("utf-8"))
    assert {tag for tag, _ in index.found} <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "main", "section", "ul", "li", "span", "a",
        "code", "bdi", "small", "footer", "p",
    }  # fmt: skip
    assert {name for _, attributes in index.found for name in attributes} <= {
        "lang", "charset", "http-equiv", "content", "name", "dir", "class", "href", "title",
    }  # fmt: skip
    assert [link["href"] for link in index.all("a")] == [f"conversations/{name}.html" for name in (SESSION, OTHER)]
    assert not set(index.text) & set("\0\x1b\x9b\u202e\u2066")


def test_never_over_files_without_force(family: Shell) -> None:
    folder = family.project / "pages"
    folder.mkdir()
    (folder / "index.html").write_text("mine")
    assert family("export", "html", "--project", "-o", "pages") == Done(
        3, "", f"Error: {folder} is not empty.\nHint: It was not changed. Write into it with `--force`.\n"
    )
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    done = family.json("export", "html", "--project", "-o", "pages", "--force")
    assert done == {"format": "html", "path": str(folder), "conversations": 4, "files": 6}
    assert (folder / "index.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("html", "--project"), 2, f"--project writes a folder, and {NEEDED}"),
        (("html", "--project", "-o", "-"), 2, f"--project writes a folder, and {NEEDED}"),
        (
            ("json", "--project", "-o", "pages"), 2,
            "json exports no project.\nHint: `sessgit export html --project --output DIR` does.",
        ),
        (
            ("html", "--turns", "1", "--project", "-o", "pages"), 2,
            "--project and --turns cannot be combined.\nHint: Use one of the two.",
        ),
        (
            ("html", "--project", "/nowhere", "-o", "pages"), 4,
            "no conversations in /nowhere.\nHint: `sessgit ls --all` lists those of all projects.",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_exported(family: Shell, arguments: tuple[str, ...], code: int, error: str) -> None:
    assert family("export", *arguments) == Done(code, "", f"Error: {error}\n")
    assert not (family.project / "pages").exists()


def test_the_pages_of_a_family_read_it_once(family: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time for hundreds of forks would grow with their square."""
    read = list[str]()
    session_family = turn_log.session_family

    def counted(index: Index, branch: Branch) -> list[tuple[Branch, int]]:
        read.append(branch.name)
        return session_family(index, branch)

    monkeypatch.setattr(turn_log, "session_family", counted)
    family.out("export", "html", "--project", "-o", "pages")
    assert sorted(read) == sorted([UPLOAD, PARSER])
