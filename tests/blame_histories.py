"""Histories of one file whose authors are known: agents in worktrees, people and a formatter, with merges, rebases,
squashes, amends, stashes, renames, re-typed lines and repeated text.

A line is an object with its author, and every operation works on lists of such lines, so the truth never depends on
what blame computes. An author is the time of a tool call, or None for everyone whose work is not recorded.
"""

from __future__ import annotations

import difflib
import json
import os
import random
import secrets
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pygit2
from transcripts import BIRTH, Talk

from sessgit.history.blame import blame
from sessgit.record.recording import record
from sessgit.record.source import TranscriptSource
from sessgit.store import store as stores
from sessgit.store.context import Context, Homes
from sessgit.store.index import Index
from sessgit.store.settings import Privacy, RecordConfig
from sessgit.store.store import Store

Lines = tuple["Line", ...]
_WORDS = (
    "amber basket cobalt delta ember forest granite harbor indigo jasper kettle lumen meadow nectar onyx pepper quartz"
    " ribbon saddle timber umbra velvet walnut xenon yonder zephyr"
)
_COMMON = (
    "", "", "}", "    }", "else:", "    return None", "    return result", "try:", "import os", "    pass", "    )",
    "    result = []", "    for item in items:", "        continue", "    if not items:", "# TODO: remove this again",
    "        raise ValueError(name)", "from pathlib import Path", "    assert result == expected",
)  # fmt: skip
_USER, _GUEST = "ada@example.org", "grace@example.org"


@dataclass(frozen=True, eq=False)
class Line:
    """A line that somebody wrote once; two with the same text are two lines."""

    text: str
    author: float | None


@dataclass
class Tree:
    """A worktree: its branch, the file's path and lines, and the commit that it is at."""

    folder: Path
    branch: str
    path: str
    lines: Lines
    commit: pygit2.Oid
    talk: Talk | None = None
    known: bool = True
    """Whether the client notes the text before an edit."""
    pending: list[pygit2.Oid] = field(default_factory=list)
    """The commits since the branch left the main one."""


class History:
    """A history made of so many steps; afterwards `main` is the worktree with the file, in `top`."""

    def __init__(self, top: Path, seed: int, steps: int, repeated: float) -> None:
        self.top, self.repeated = top, repeated
        self.random = random.Random(seed)
        self.clock = BIRTH.timestamp()
        self.repo = pygit2.init_repository(str(top), initial_head="main")
        self.states: dict[pygit2.Oid, tuple[str, Lines]] = {}
        self.parents: dict[pygit2.Oid, list[pygit2.Oid]] = {}
        self.once: list[str] = []
        self.names = 0
        lines = tuple(Line(self._text(), None) for _ in range(12))
        first = self._store("shop/lexer.py", lines, [], _USER, self.clock)
        self.main = Tree(top, "main", "shop/lexer.py", lines, first)
        self.trees = [self.main]
        self.talks: list[Talk] = []
        self._begin_talk(self.main)
        for _ in range(steps):
            self._step()
        self.repo.set_head("refs/heads/main")
        self.repo.references.create("refs/heads/main", self.main.commit, force=True)
        self.repo.reset(self.main.commit, pygit2.enums.ResetMode.HARD)
        (top / self.main.path).write_text("".join(f"{line.text}\n" for line in self.main.lines), "utf-8")

    def save(self, folder: Path) -> list[Path]:
        """Write the transcripts."""
        return [talk.save(folder) for talk in self.talks if talk.prompts]

    # Steps

    def _step(self) -> None:
        self.clock += self.random.choice((5, 30, 200, 900))
        tree = self.random.choice(self.trees)
        steps = {
            self._agent_edits: 40, self._person_edits: 14, self._commit: 22, self._merge: 8, self._worktree: 5,
            self._format: 2, self._amend: 3, self._rename: 2, self._write_all: 4, self._fail: 4, self._restore: 2,
            self._guest: 4, self._prompt: 8, self._stash: 2,
        }  # fmt: skip
        self.random.choices(list(steps), list(steps.values()))[0](tree)

    def _prompt(self, tree: Tree) -> None:
        if self.random.random() < 0.3 or tree.talk is None:
            self._begin_talk(tree)
        self._say(tree).prompt(f"change the {self.random.choice(_WORDS.split())}")

    def _agent_edits(self, tree: Tree) -> None:
        talk, before = self._say(tree), tree.lines
        now = self._result_time()
        after = self._changed(before, now)
        old, new = _shrunk(before, after, self.random.randrange(4))
        if not old or _text(before).count(_text(old).removesuffix("\n")) != 1 or _same(old, new):
            return
        given = {"old_string": _text(old).removesuffix("\n"), "new_string": _text(new).removesuffix("\n")}
        talk.tool("Edit", {"file_path": str(tree.folder / tree.path), **given}, "done")
        noted = {"filePath": str(tree.folder / tree.path), "originalFile": _text(before) if tree.known else None}
        _note(talk, noted)
        tree.lines = after

    def _write_all(self, tree: Tree) -> None:
        talk = self._say(tree)
        now, before = self._result_time(), tree.lines
        after = self._changed(self._changed(before, now), now)
        talk.tool("Write", {"file_path": str(tree.folder / tree.path), "content": _text(after)}, "done")
        is_noted = tree.known or self.random.random() < 0.5  # the client notes nothing of a subagent's call
        hunks = _hunks(before, after) if is_noted else []
        _note(talk, {"type": "update", "originalFile": _text(before) if tree.known else None, "structuredPatch": hunks})
        tree.lines = after

    def _fail(self, tree: Tree) -> None:
        talk = self._say(tree)
        old, new = _shrunk(tree.lines, self._changed(tree.lines, 0.0), 1)
        given = {"file_path": str(tree.folder / tree.path), "old_string": _text(old), "new_string": _text(new)}
        talk.tool("Edit", given, "The user doesn't want to proceed with this tool use.", error=True)
        if self.random.random() < 0.5:  # a person types it instead
            tree.lines = _typed(tree.lines, new)

    def _person_edits(self, tree: Tree) -> None:
        tree.lines = self._changed(tree.lines, None)

    def _format(self, tree: Tree) -> None:
        style = self.random.choice(
            (str.rstrip, lambda text: text.replace("    ", "  "), lambda text: text.replace("'", '"'))
        )
        tree.lines = tuple(line if (new := style(line.text)) == line.text else Line(new, None) for line in tree.lines)

    def _commit(self, tree: Tree) -> None:
        if not _same(self.states[tree.commit][1], tree.lines):
            self._advance(tree, self._store(tree.path, tree.lines, [tree.commit], _USER, self.clock))

    def _amend(self, tree: Tree) -> None:
        if tree.pending and tree is not self.main:
            old = self.repo[tree.commit]
            made = self._store(tree.path, tree.lines, self.parents[tree.commit], _USER, old.author.time)
            tree.pending[-1] = tree.commit = made

    def _guest(self, tree: Tree) -> None:
        """A colleague's commit, on the last commit of the main branch, which is then pulled."""
        path, base = self.states[self.main.commit]
        theirs = self._changed(base, None)
        made = self._store(path, theirs, [self.main.commit], _GUEST, self.clock - 20)
        self.main.lines = merged(base, self.main.lines, theirs)
        self._advance(self.main, made)

    def _worktree(self, tree: Tree) -> None:
        if len(self.trees) < 4:
            self.names += 1
            path, lines = self.states[self.main.commit]
            folder = self.top / ".claude" / "worktrees" / f"w{self.names}"
            made = Tree(folder, f"w{self.names}", path, lines, self.main.commit, known=self.random.random() < 0.6)
            self.trees.append(made)
            self._begin_talk(made)

    def _merge(self, tree: Tree) -> None:
        """Merge, rebase or squash a worktree's branch onto the main one, or merge the main one into it."""
        if tree is self.main:
            return
        self._commit(tree)
        self._commit(self.main)
        base = self._base(tree.commit)
        (_, base_lines), (main_path, ours), (_, theirs) = (
            self.states[c] for c in (base, self.main.commit, tree.commit)
        )
        both = merged(base_lines, ours, theirs)
        how = self.random.choice(("merge", "rebase", "squash", "update"))
        if how == "update":
            tree.lines, tree.path = both, main_path
            made = self._store(main_path, both, [tree.commit, self.main.commit], _USER, self.clock)
            tree.commit = made
            return
        if how == "rebase":
            at, lines, parent = self.main.commit, ours, base_lines
            for old in tree.pending:
                lines, parent = merged(parent, lines, self.states[old][1]), self.states[old][1]
                at = self._store(main_path, lines, [at], _USER, self.repo[old].author.time)
            self.main.commit, both = at, lines
        else:
            parents = [self.main.commit, *([tree.commit] if how == "merge" else [])]
            self.main.commit = self._store(main_path, both, parents, _USER, self.clock)
        self.main.lines = both
        self.trees.remove(tree)

    def _rename(self, tree: Tree) -> None:
        if tree is self.main:
            self._commit(tree)
            self.names += 1
            tree.path = f"shop/lexer{self.names}.py"
            self._advance(tree, self._store(tree.path, tree.lines, [tree.commit], _USER, self.clock + 1))

    def _restore(self, tree: Tree) -> None:
        """Some lines of an older commit come back, as `git checkout COMMIT -- FILE` or `git revert` brings them."""
        tree.lines = self.states[self.random.choice(list(self.states))][1]

    def _stash(self, tree: Tree) -> None:
        base = self.states[tree.commit][1]
        other = self._changed(base, None)
        mine, tree.lines = tree.lines, other
        self._commit(tree)
        tree.lines = merged(base, other, mine)

    # Lines

    def _changed(self, lines: Lines, author: float | None) -> Lines:
        """Return the lines with some replaced, added or deleted."""
        start = self.random.randrange(len(lines) + 1)
        removed = self.random.choice((0, 0, 1, 1, 2, 4))
        added = self.random.choice((0, 1, 2, 3, 5, 9)) if removed else self.random.choice((1, 2, 3, 5, 9))
        new = tuple(Line(self._text(author), author) for _ in range(added))
        return _kept(lines, (*lines[:start], *new, *lines[start + removed :]))

    def _text(self, author: float | None = None) -> str:
        kind = self.random.random()
        if kind < self.repeated:
            return self.random.choice(_COMMON)
        if kind < self.repeated + 0.02 and self.once:  # typed again
            return self.random.choice(self.once)
        words = self.random.sample(_WORDS.split(), 3)
        text = f"{'    ' * self.random.randrange(3)}{words[0]}.{words[1]}('{words[2]}', {self.random.randrange(99)})"
        self.once.append(text)
        return text

    # Commits and conversations

    def _base(self, commit: pygit2.Oid) -> pygit2.Oid:
        return self.repo.merge_base(self.main.commit, commit)

    def _advance(self, tree: Tree, commit: pygit2.Oid) -> None:
        tree.commit = commit
        tree.pending.append(commit)

    def _store(self, path: str, lines: Lines, parents: list[pygit2.Oid], email: str, author_time: float) -> pygit2.Oid:
        folder, name = path.split("/")
        inner, outer = self.repo.TreeBuilder(), self.repo.TreeBuilder()
        inner.insert(name, self.repo.create_blob(_text(lines).encode()), pygit2.enums.FileMode.BLOB)
        outer.insert(folder, inner.write(), pygit2.enums.FileMode.TREE)
        author = pygit2.Signature("Ada" if email == _USER else "Grace", email, int(author_time))
        committer = pygit2.Signature("Ada" if email == _USER else "Grace", email, int(self.clock))
        made = self.repo.create_commit(None, author, committer, "change", outer.write(), parents)
        self.states[made], self.parents[made] = (path, lines), parents
        return made

    def _begin_talk(self, tree: Tree) -> None:
        session = f"b1a3e000-0000-4000-8000-{len(self.talks):012d}"
        tree.talk = Talk(session, cwd=str(tree.folder))
        tree.talk.file.born = BIRTH
        tree.talk.file.counts["toolu"] = 1000 * len(self.talks)
        self.talks.append(tree.talk)
        self._say(tree).prompt("begin")

    def _say(self, tree: Tree) -> Talk:
        assert tree.talk is not None
        tree.talk.file.seconds = max(tree.talk.file.seconds, int(self.clock - BIRTH.timestamp()))
        if tree.talk.prompts == []:
            return tree.talk
        return tree.talk

    def _result_time(self) -> float:
        """Return the time that the result of the next call gets, and go on to after it."""
        self.clock += 3
        return float(int(self.clock) - 1)


def merged(base: Lines, ours: Lines, theirs: Lines) -> Lines:
    """Return what a merge of two versions makes; where both changed the same place, a person takes ours."""
    out: list[Line] = []
    a = _matches(base, ours)
    b = _matches(base, theirs)
    at = mine = other = 0
    while True:
        end = next((n for n in range(at, len(base)) if n in a and n in b), len(base))
        left = ours[mine : a.get(end, len(ours))]
        right = theirs[other : b.get(end, len(theirs))]
        out += right if [*left] == [*base[at:end]] else left
        if end == len(base):
            return tuple(out)
        out.append(base[end])
        at, mine, other = end + 1, a[end] + 1, b[end] + 1


def _matches(base: Lines, other: Lines) -> dict[int, int]:
    blocks = difflib.SequenceMatcher(None, [*map(id, base)], [*map(id, other)], autojunk=False).get_matching_blocks()
    return {a + n: b + n for a, b, size in blocks for n in range(size)}


def _kept(before: Lines, after: Lines) -> Lines:
    """Return the lines after a change in which those are the old ones that a diff does not show."""
    texts = [[line.text for line in lines] for lines in (before, after)]
    out = list(after)
    for a, b, size in difflib.SequenceMatcher(None, *texts, autojunk=False).get_matching_blocks():
        out[b : b + size] = before[a : a + size]
    return tuple(out)


def _typed(before: Lines, new: Sequence[Line]) -> Lines:
    return _kept(before, (*before, *(replace(line, author=None) for line in new[-3:])))


def _shrunk(before: Lines, after: Lines, context: int) -> tuple[Lines, Lines]:
    """Return the part of both that differs, with so many common lines around it."""
    shortest = min(len(before), len(after))
    first = next((n for n in range(shortest) if before[n] is not after[n]), shortest)
    last = next((n for n in range(shortest - first) if before[-1 - n] is not after[-1 - n]), shortest - first)
    first, last = max(0, first - context), max(0, last - context)
    return before[first : len(before) - last], after[first : len(after) - last]


def _hunks(before: Lines, after: Lines) -> list[dict[str, object]]:
    """Return a patch as the client notes it."""
    texts = [[line.text for line in lines] for lines in (before, after)]
    hunks = []
    for group in difflib.SequenceMatcher(None, *texts, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for kind, a, b, c, d in group:
            lines += (
                [f" {text}" for text in texts[0][a:b]] if kind == "equal" else [f"-{text}" for text in texts[0][a:b]]
            )
            lines += [] if kind == "equal" else [f"+{text}" for text in texts[1][c:d]]
        starts = {"oldStart": group[0][1] + 1, "newStart": group[0][3] + 1}
        hunks.append({**starts, "oldLines": 0, "newLines": 0, "lines": lines})
    return hunks


def _text(lines: Iterable[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _same(a: Sequence[Line], b: Sequence[Line]) -> bool:
    return [*a] == [*b]


def _note(talk: Talk, noted: dict[str, object]) -> None:
    line = json.loads(talk.lines[-1])
    line["toolUseResult"] = noted
    talk.lines[-1] = json.dumps(line, separators=(",", ":")).encode()


# Comparing


@dataclass(frozen=True)
class Figures:
    """How many lines there are and how many of them calls wrote; how many were named, rightly or not."""

    lines: int = 0
    recorded: int = 0
    exact: int = 0
    run: int = 0
    wrong_exact: int = 0
    wrong_run: int = 0
    mistakes: tuple[str, ...] = ()

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, name) + getattr(other, name) for name in Figures.__dataclass_fields__))

    @property
    def named(self) -> int:
        return self.exact + self.run

    @property
    def wrong(self) -> int:
        return self.wrong_exact + self.wrong_run

    @property
    def recall(self) -> float:
        return (self.named - self.wrong) / max(1, self.recorded)

    @property
    def summary(self) -> str:
        return (
            f"{self.lines:,} lines, {self.recorded:,} by calls; {self.named:,} named ({self.exact:,} exact),"
            f" {self.wrong} wrong ({self.wrong_exact} exact), {self.wrong / max(1, self.named):.2%};"
            f" found {self.recall:.1%}"
        )


def figures(folder: Path, seed: int, steps: int, repeated: float) -> Figures:
    """Make a history in a folder, record its conversations, and compare."""
    (folder / "shop").mkdir(parents=True)
    history = History(folder / "shop", seed, steps, repeated)
    stores.create_store(folder / "store")
    store = Store(folder / "store")
    index = Index(store.path, lambda: store)
    privacy = Privacy(RecordConfig("turn", redact=False))
    context = Context(index, Homes({}), privacy, env=os.environ, now=lambda: history.clock + 60)
    for path in history.save(folder / "claude" / "projects" / "-shop"):
        record(context, TranscriptSource(path, path.stem, folder / "claude"))
    index.sync()
    found = blame(context, str(folder / "shop" / history.main.path), "", os.environ)
    index.close()
    result = Figures(len(found.lines), sum(line.author is not None for line in history.main.lines))
    for line, truth in zip(found.lines, history.main.lines, strict=True):
        edit = line.edit
        if edit is None:
            continue
        is_wrong, is_exact = edit.time != truth.author, line.certainty == "exact"
        what = f"line {line.number} {truth.text!r} is of {truth.author}, not {edit.time} ({line.certainty})"
        result += Figures(
            0, 0, is_exact, not is_exact, is_wrong and is_exact, is_wrong and not is_exact, (what,) if is_wrong else ()
        )
    return result


def main(histories: int = 100, repeated: float = 0.2, first: int = 0) -> None:
    """Print the figures of so many histories, with fresh seeds by default; fail where they are worse than promised."""
    first = first or secrets.randbelow(1 << 30)
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    total = Figures()
    for seed in range(first, first + histories):
        with tempfile.TemporaryDirectory() as folder:
            one = figures(Path(folder), seed, 120, repeated)
        total += one
        print(*(f"  seed {seed}: {mistake}" for mistake in one.mistakes), sep="\n", end="\n" if one.mistakes else "")
    print(f"blame, seeds {first} to {first + histories - 1}, {repeated:.0%} repeated text: {total.summary}")
    assert total.wrong * 1000 <= total.named
    assert total.wrong_exact * 1000 < total.exact
    assert total.recall >= 0.85


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float, int), sys.argv[1:], strict=False)))
