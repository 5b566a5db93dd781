"""Compares the code of two conversations: the project's commit in one with that in the other."""

from __future__ import annotations

from dataclasses import replace

from sessgit.errors import NotFoundError, SessgitError
from sessgit.history import project_git
from sessgit.history.project_git import Env, Head
from sessgit.model.frozen import frozen
from sessgit.store import layout, project
from sessgit.store.context import Context
from sessgit.store.index import Branch

MOST_COMMITS = 200
"""The newest commits of a side that are read; all are counted."""
_SUBMODULE_MODE = "160000"
_MODIFIED_STATUS = "M"
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv")
"""Options that keep git from running the project's own diff programs."""


@frozen
class Commit:
    """A commit of the project, and its subject."""

    id: str
    subject: str


@frozen
class ChangedFile:
    """A file that differs: git's letter (A, D, M, R, C, T) and the number of lines added and removed, None for a binary
    file; `old` is its former path if it was renamed."""

    path: str
    status: str
    added: int | None
    removed: int | None
    old: str = ""
    is_submodule: bool = False


@frozen
class CodeSide:
    """One side: the last turn of a branch, the project's head after it, and its commits since the merge base.

    `ahead` counts them all, `commits` are the newest.
    """

    branch: str
    project: str
    turn: int
    head: Head | None
    ahead: int = 0
    commits: tuple[Commit, ...] = ()

    @property
    def commit(self) -> str:
        """The commit of the head, or ``""``."""
        return self.head.commit if self.head else ""


@frozen
class CodeDiff:
    """The difference in the code. `folder` is the checkout in which it was read, empty if nothing could be compared,
    and then `problem` says why; `base` is the merge base, or ``""``."""

    a: CodeSide
    b: CodeSide
    folder: str = ""
    base: str = ""
    files: tuple[ChangedFile, ...] = ()
    problem: str = ""

    @property
    def added(self) -> int:
        return sum(file.added or 0 for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed or 0 for file in self.files)


def compare_code(context: Context, a: tuple[Branch, int], b: tuple[Branch, int], env: Env) -> CodeDiff:
    """Compare the code of two branches, each after a turn. Errors are not raised but returned as the `problem`."""
    sides, why = [], list[SessgitError]()
    for branch, turn in (a, b):
        try:
            head = project_git.head_at(context, branch, turn)
        except NotFoundError as error:
            head, why = None, [*why, error]
        sides.append(CodeSide(branch.name, branch.state.project, turn, head))
    left, right = sides
    if why:
        return CodeDiff(left, right, problem=_error_text(*why))
    try:
        return _compare_sides(left, right, env)
    except SessgitError as error:
        return CodeDiff(left, right, problem=_error_text(error))


def code_patch(found: CodeDiff, env: Env) -> str:
    """Return the patch from a to b as git prints it without colours; ``""`` if nothing was compared."""
    if not found.folder:
        return ""
    settings = ("-c", "core.quotePath=false")
    arguments = (
        "diff",
        *_PLAIN_DIFF,
        "--no-color",
        "--submodule=short",
        "-M",
        found.a.commit,
        found.b.commit,
        "--",
    )
    return project_git.read_output(found.folder, env, *settings, *arguments).decode("utf-8", "replace")


def code_json(found: CodeDiff) -> dict[str, object]:
    """Return what `diff --code --json` prints of the code."""
    sides = {"a": found.a, "b": found.b}
    return {
        "folder": found.folder or None,
        "a": _head_json(found.a),
        "b": _head_json(found.b),
        "base": found.base or None,
        "ahead": {name: side.ahead for name, side in sides.items()},
        "commits": {
            name: [{"commit": one.id, "subject": one.subject} for one in side.commits] for name, side in sides.items()
        },
        "files": [
            {
                "path": file.path, "old_path": file.old or None, "status": file.status, "added": file.added,
                "removed": file.removed, "submodule": file.is_submodule,
            }
            for file in found.files
        ],
        "added": found.added,
        "removed": found.removed,
        "problem": found.problem,
    }  # fmt: skip


def _compare_sides(a: CodeSide, b: CodeSide, env: Env) -> CodeDiff:
    old, new = a.commit, b.commit
    folder = _common_repository(a, b, env)
    if old == new:
        return CodeDiff(a, b, folder, old)
    base = project_git.decode_name(project_git.read_output(folder, env, "merge-base", old, new, ok=(0, 1))).strip()
    counts = project_git.read_output(folder, env, "rev-list", "--count", "--left-right", f"{old}...{new}").split()
    left, right = (
        replace(side, ahead=int(count), commits=_new_commits(folder, env, which, f"{old}...{new}"))
        for side, count, which in zip((a, b), counts, ("--left-only", "--right-only"), strict=True)
    )
    return CodeDiff(left, right, folder, base, _changed_files(folder, env, old, new))


def _common_repository(a: CodeSide, b: CodeSide, env: Env) -> str:
    """Return the checkout of either side that has both commits; raises NotFoundError with what is missing."""
    tops, why = dict[str, str](), list[NotFoundError]()
    for folder in dict.fromkeys((a.project, b.project)):
        try:
            tops[folder] = project_git.find_checkout(folder, env).top
        except NotFoundError as error:
            why.append(error)
    missing = dict[str, list[CodeSide]]()
    for top in tops.values():
        missing[top] = [side for side in (a, b) if not project_git.has_object(top, env, f"{side.commit}^{{commit}}")]
        if not missing[top]:
            return top
    if not tops:
        raise why[0]
    if len({project.project_key(folder) for folder in tops}) > 1:
        raise NotFoundError(f"the conversations belong to different repositories: {' and '.join(tops)}")
    top, gone = next(iter(missing.items()))
    raise NotFoundError(
        " and ".join(f"commit {side.commit[:8]} of {layout.short_name(side.branch)}" for side in gone)
        + f" {'is' if len(gone) == 1 else 'are'} not in {top}",
        "`git fetch` brings it if another clone still has it.",
    )


def _new_commits(folder: str, env: Env, side: str, span: str) -> tuple[Commit, ...]:
    """Return the newest commits of one side, by `rev-list`, which ignores the user's settings for `log`."""
    out = project_git.read_output(
        folder, env, "rev-list", f"--max-count={MOST_COMMITS}", side, "--encoding=UTF-8", "--format=%H %s", span, "--"
    )  # fmt: skip
    lines = out.decode("utf-8", "replace").split("\n")
    return tuple(Commit(*line.split(" ", 1)) for line in lines[1::2])


def _changed_files(folder: str, env: Env, old: str, new: str) -> tuple[ChangedFile, ...]:
    """Return the files that differ; git prints the modes and status of all, and then the numbers of lines."""
    out = project_git.read_output(
        folder, env, "diff-tree", "-r", "-M", "-z", "--raw", "--numstat", *_PLAIN_DIFF, old, new, "--"
    )
    words = iter(project_git.decode_name(out).split("\0"))
    kinds = dict[str, tuple[str, bool]]()
    files = []
    for word in words:
        if word.startswith(":"):
            modes, status = word[1:].split(" ")[:2], word.rpartition(" ")[2][:1]
            path = next(words)
            path = next(words) if status in "RC" else path
            kinds[path] = (status, _SUBMODULE_MODE in modes)
        elif word:
            added, removed, path = word.split("\t", 2)
            before, path = ("", path) if path else (next(words), next(words))
            status, is_submodule = kinds.get(path, (_MODIFIED_STATUS, False))
            files.append(ChangedFile(path, status, _parse_count(added), _parse_count(removed), before, is_submodule))
    return tuple(files)


def _parse_count(shown: str) -> int | None:
    """Return the number of lines; None for `-`, which git prints for a binary file."""
    return int(shown) if shown.isdecimal() else None


def _head_json(side: CodeSide) -> dict[str, object] | None:
    return {"turn": side.turn, **side.head.as_json()} if side.head else None


def _error_text(*errors: SessgitError) -> str:
    """Return the messages of the errors, and then their hints."""
    said = "; ".join(str(error) for error in errors)
    hints = dict.fromkeys(error.hint for error in errors if error.hint)
    return " ".join((f"{said}." if hints else said, *hints))
