"""Which projects are recorded: what the settings and the environment say of a folder, and how a person changes it."""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path, PurePosixPath

from sessgit import agents
from sessgit.agents.line import Reader, opened
from sessgit.errors import ConflictError, NotFoundError, SessgitError, UsageError
from sessgit.model.frozen import frozen
from sessgit.store import project, settings
from sessgit.store.index import Index
from sessgit.store.layout import StorePaths
from sessgit.store.settings import Privacy, RecordConfig


@frozen
class Verdict:
    """Whether a project is recorded. If not, `glob` is the one of `record.exclude` that it fits, or ``""``: then it
    fits none of `record.include`."""

    recorded: bool
    glob: str = ""

    @property
    def why(self) -> str:
        """Why it is not recorded, in words for a person; ``""`` where it is."""
        if self.recorded:
            return ""
        return f"record.exclude has “{self.glob}”" if self.glob else "record.include does not include it"


def check_on(privacy: Privacy) -> None:
    """Raise UsageError if the environment says that nothing is recorded."""
    if privacy.off:
        raise UsageError("SESSGIT_OFF=1 is set, so nothing is recorded", "Unset it to record.")


def verdict(privacy: Privacy, folder: str) -> Verdict:
    """Return whether what is done in a folder is recorded."""
    if privacy.is_everything:
        return Verdict(True)
    names = project.project_paths(folder)
    glob = _first_matching_glob(privacy.rules.exclude, names, privacy.home)
    if glob:
        return Verdict(False, glob)
    include = privacy.rules.include
    return Verdict(not include or bool(_first_matching_glob(include, names, privacy.home)))


def transcript_verdict(privacy: Privacy, path: Path, recorded: str = "", event_folder: str = "") -> Verdict:
    """Return whether a transcript is recorded. Its project is the one that its session's state names (`recorded`), else
    the first folder that its lines name, else that of an event (`event_folder`)."""
    if privacy.is_everything:
        return Verdict(True)
    return verdict(privacy, recorded or _first_folder(path) or event_folder)


def recorded_filter(privacy: Privacy, projects: Mapping[str, str]) -> Callable[[Path, str], bool]:
    """Return a function that tells whether a transcript, by its path and its session's id, is recorded. It judges each
    project once.

    `projects` are those of the sessions that are recorded already.
    """
    judge = cache(partial(verdict, privacy))
    return lambda path, session: (
        privacy.is_everything or judge(projects.get(session) or _first_folder(path)).recorded
    )  # fmt: skip


@frozen
class SwitchResult:
    """The project that was meant, and whether the settings changed; `glob` is the one that excluded it already."""

    project: str
    changed: bool
    glob: str = ""


def switch_off(paths: StorePaths, folder: str, home: str) -> SwitchResult:
    """Record nothing of the folder's project from now on. Raises NotFoundError if there is no such folder."""
    if not Path(folder).is_dir():
        raise NotFoundError(
            f"there is no folder {folder}",
            "To exclude a folder that does not exist yet, add it to record.exclude: `sessgit config record.exclude`",
        )
    root = _project_path(folder)
    there: list[str] = []

    def change(rules: RecordConfig) -> Mapping[str, Sequence[str]]:
        if glob := _first_matching_glob(rules.exclude, project.project_paths(root), home):
            there.append(glob)
            return {}
        return {"record.exclude": [*rules.exclude, escape_glob(root)]}

    settings.update_lists(paths, change)
    return SwitchResult(root, not there, *there)


def switch_on(paths: StorePaths, folder: str, home: str) -> SwitchResult:
    """Record the folder's project from now on, if anything is recorded.

    Raises ConflictError, and changes nothing, if a glob that was not made for this project excludes it.
    """
    root = _project_path(folder)
    changed = False

    def change(rules: RecordConfig) -> Mapping[str, Sequence[str]]:
        nonlocal changed
        exclude = [glob for glob in rules.exclude if not _is_project_glob(glob, root, home)]
        names = project.project_paths(folder)
        if glob := _first_matching_glob(exclude, names, home):
            raise _still_off_error(root, glob, exclude, home)
        include = list(rules.include)
        if include and not _first_matching_glob(include, names, home):
            include.append(escape_glob(root))
        changed = (len(exclude), len(include)) != (len(rules.exclude), len(rules.include))
        return {"record.exclude": exclude, "record.include": include} if changed else {}

    settings.update_lists(paths, change)
    return SwitchResult(root, changed)


def recorded_sessions(index: Index, root: str) -> list[str]:
    """Return the recorded sessions of the project at a folder."""
    own = escape_glob(root)
    is_own = cache(lambda folder: any(matches_glob(own, name) for name in project.project_paths(folder)))
    return [outline.name for outline in index.outlines() if outline.project and is_own(outline.project)]


def _still_off_error(root: str, glob: str, exclude: Sequence[str], home: str) -> ConflictError:
    above = literal_path(_glob_variants(glob, home)[0])
    if above is not None:
        hint = f"To turn it on with all its subfolders: `sessgit on {shlex.quote(above)}`"
        return ConflictError(f"{root} is still off, because {above} is off", hint)
    rest = ", ".join(settings.toml_value(other) for other in exclude if other != glob)
    return ConflictError(
        f"{root} is still off: record.exclude has “{glob}”",
        f"Remove the glob, for all folders it matches: `sessgit config record.exclude {shlex.quote(f'[{rest}]')}`",
    )


def _first_matching_glob(patterns: Sequence[str], names: Sequence[str], home: str) -> str:
    """Return the first glob that matches one of the paths, as the settings have it, or ``""``."""
    for glob in patterns:
        if any(matches_glob(form, name) for form in _glob_variants(glob, home) for name in names):
            return glob
    return ""


def _is_project_glob(glob: str, root: str, home: str) -> bool:
    """Return whether the glob was made for this project alone."""
    return any(literal_path(form.rstrip("/") or "/") == root for form in _glob_variants(glob, home))


def _glob_variants(glob: str, home: str) -> tuple[str, ...]:
    """Return the glob with its home, as it is and with the links in its beginning resolved.

    The client names real paths; users write the one that they know.
    """
    if glob == "~" or glob.startswith("~/"):
        glob = escape_glob(home.rstrip("/")) + glob[1:] or "/"
    if not glob.startswith("/"):
        return (glob,)
    plain, rest = "/", glob.strip("/").split("/")
    while rest and (part := literal_path(rest[0])) is not None:
        plain, rest = os.path.join(plain, part), rest[1:]  # noqa: PTH118 - text, until it is looked up
    try:
        real = os.path.realpath(plain)
    except (OSError, ValueError):
        return (glob,)
    return (glob, "/".join((escape_glob(real).rstrip("/"), *rest)) or "/")


def _first_folder(path: Path) -> str:
    """Return the first folder that the lines of a transcript name, or ``""``."""
    with suppress(SessgitError, OSError), opened(path) as source:
        return next((line.cwd for line in Reader(source, agents.of_file(path).lines.make).head() if line.cwd), "")
    return ""


def _project_path(folder: str) -> str:
    root = project.project_root(folder)
    try:
        root.encode()
    except UnicodeEncodeError as error:
        raise SessgitError(
            "the name of this folder is not UTF-8, so the settings cannot hold it",
            "Use a glob with ? for those characters: `sessgit config record.exclude`",
        ) from error
    return root


def check_project(privacy: Privacy, project: str) -> None:
    """Raise ConflictError if nothing of the project is recorded, for a program that wants to write its state."""
    check_on(privacy)
    decision = verdict(privacy, project)
    if not decision.recorded:
        raise ConflictError(f"{project} is not recorded: it is off ({decision.why})", "To record it: `sessgit on`")


# Globs of paths: `*` stands for any characters, `/` too, and what fits a folder fits everything below it

_MAGIC = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")


def escape_glob(path: str) -> str:
    """Return the glob that fits this path, and no other but those below it."""
    return _MAGIC.sub(r"[\g<0>]", path)


def literal_path(glob: str) -> str | None:
    """Return the one path that a glob was made from, or None where it may fit several."""
    return None if _MAGIC.search(_ESCAPED.sub("", glob)) else _ESCAPED.sub(r"\1", glob)


def matches_glob(glob: str, path: str) -> bool:
    """Return whether the absolute path, or a folder above it, fits the glob."""
    fit = _compile_glob(glob.rstrip("/") or "/")
    return any(fit(str(above)) for above in (PurePosixPath(path), *PurePosixPath(path).parents))


@lru_cache(maxsize=256)
def _compile_glob(glob: str) -> Callable[[str], object]:
    return re.compile(fnmatch.translate(glob)).match
