"""The program `sessgit`: its commands by name, and what becomes of an error."""

from __future__ import annotations

import errno
import functools
import importlib
import io
import os
import signal
import sys
from itertools import chain
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from sessgit import __version__
from sessgit.cli import render
from sessgit.cli.arguments import completion, options
from sessgit.cli.arguments.light_parser import Light
from sessgit.errors import ROOM, SessgitError, StoreError, UnreadableError, UsageError

GROUPS = {
    "Everyday": (
        "install", "status", "ls", "log", "show", "search", "diff", "fork", "resume", "restore", "merge", "undo",
    ),
    "Record": ("uninstall", "on", "off", "import", "recover"),
    "Find and share": ("tree", "stats", "watch", "export", "id"),
    "Branch and organize": ("pick", "rename", "edit", "tag", "pad", "archive", "unarchive", "delete", "ops"),
    "Look inside turns": ("cells", "deps", "why", "replay", "bisect", "bridge"),
    "Synchronize": ("remote", "push", "pull", "sync"),
    "Maintain the store": ("config", "verify", "repair", "doctor", "gc", "purge"),
}  # fmt: skip
"""The commands by task, those that everybody needs first."""
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
MODULES = {
    "import": "import_", "on": "switch", "off": "switch", "unarchive": "archive", "uninstall": "install",
    "pick": "merge", "pull": "sync", "push": "sync",
}  # fmt: skip
"""The modules of `sessgit.cli.commands` whose name is not that of the command."""
_NotUnderstood: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for words that no command understands; it has no name of its own there."""
_SHORT, _LIKE = 2, 0.75
"""Commands of so many letters are like many words: from which likeness on, of 1, one of them is meant."""
_WHOLE = 1000
"""More characters than the first sentence of any help text has."""

OTHER_WORDS = {
    "add": "Every turn is recorded automatically. `sessgit status` shows whether recording is on.",
    "blame": "`sessgit why FILE` shows which calls wrote a file, and what they had read.",
    "branch": "`sessgit fork` branches a conversation, `sessgit ls` lists all of them.",
    "cat": "`sessgit show ADDRESS` shows a conversation, a turn or a cell; `sessgit log -p ADDRESS` the full text.",
    "checkout": "`sessgit resume` continues a conversation, `sessgit fork ID --at N` continues from turn N.",
    "cherry-pick": "`sessgit pick ID@N` copies single turns into the current conversation.",
    "clone": "`sessgit remote add NAME URL`, then `sessgit pull`. `sessgit import` imports a client's conversations.",
    "commit": "Every turn is committed automatically. `sessgit status` shows whether recording is on.",
    "continue": "`sessgit resume ADDRESS` continues a conversation in the client.",
    "fetch": "`sessgit pull` fetches conversations from a remote; `sessgit pull -n` is a dry run.",
    "find": "`sessgit search WORDS` searches all turns, and conversations by name, title and label.",
    "grep": "`sessgit search WORDS` searches what was said and done in all conversations.",
    "history": "`sessgit log ADDRESS` shows the turns of a conversation, `sessgit ops` what commands did.",
    "init": "`sessgit install` creates the store and starts recording.",
    "label": "`sessgit edit ADDRESS --label LABEL` adds a label, `sessgit ls --label LABEL` finds it.",
    "list": "`sessgit ls` lists the conversations of this project, `sessgit ls --all` those of all projects.",
    "mv": "`sessgit rename ADDRESS NAME` names a conversation. The client decides where its file is.",
    "name": "`sessgit rename ADDRESS NAME` names a conversation.",
    "notes": "`sessgit edit --description TEXT` describes a conversation, `sessgit tag NAME` marks a turn.",
    "open": "`sessgit resume ADDRESS` continues a conversation in the client, `sessgit show ADDRESS` shows it.",
    "rebase": "Recorded turns are never rewritten. `sessgit fork ID --at N` starts again from a turn.",
    "remove": "`sessgit delete ADDRESS` deletes a conversation, `sessgit archive ADDRESS` hides it.",
    "reset": "`sessgit fork ID --at N` goes back to a turn and loses nothing.",
    "rm": "`sessgit delete ADDRESS` deletes a conversation, `sessgit archive ADDRESS` hides it.",
    "stash": "Nothing needs to be put aside: `sessgit fork ID --at N` starts again from a turn, and the rest stays.",
    "switch": "`sessgit resume` continues a conversation, `sessgit fork ID --at N` continues from turn N.",
    "view": "`sessgit show ADDRESS` shows a conversation, a turn or a cell; `sessgit log -p ADDRESS` the full text.",
}
"""What to type for words that other programs have as commands."""

EPILOG = """\
\b
ADDRESS is SESSION[@TURN[.CELL]]. SESSION is an id or its first four
letters, a name, a title or its beginning, or a tag. @7 is turn 7 of the
current session, A@-1 the last turn of A.

\b
Exit codes: 0 ok, 1 error, 2 usage, 3 conflict, 4 not found, 5 the store is
newer than this program, 6 a check found damage, 7 the store cannot be read
or written, 70 a bug.
"""

_BUG = 70
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class _Command(Light, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keeps for `log` what stands behind `--` apart: without an address before it, it would be taken for one."""
        if self.name == "log" and "--" in args:
            place = args.index("--")
            args, ctx.meta[options.PATHS] = args[:place], args[place + 1 :]
        elif self.name in ("merge", "pick"):
            args = options.with_value(args, "--new")
        elif self.name == "fork":
            args = options.with_value(args, "--worktree")
        return list(super().parse_args(ctx, args))


@functools.cache
def _command(name: str) -> Any:
    """Import a command and read its signature, once in a process: reading it takes 10 ms."""
    module = importlib.import_module(f"sessgit.cli.commands.{MODULES.get(name, name)}")
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    one.command(name, cls=_Command)(getattr(module, name, None) or module.run)
    return typer.main.get_command(one)


class _Commands(Light, TyperGroup):
    """The table of commands, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists the commands group by group, each with the first sentence of its help."""
        wide = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                rows = [(name, self.get_command(ctx, name).get_short_help_str(_WHOLE).rstrip(".")) for name in names]
                formatter.write_dl([(name.ljust(wide), said) for name, said in rows])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in OTHER_WORDS:
            raise UsageError(f"sessgit has no command “{name}”.", OTHER_WORDS[name])
        if name == "version" and len(args) == 1:
            _version(True)
        if name == "help":
            words = [word for word in args[1:] if not word.startswith("-")][:1]
            return self.resolve_command(ctx, [*words, "--help"]) if words else self._help(ctx)
        if name not in COMMANDS:
            import difflib

            longer = [command for command in COMMANDS if len(command) > _SHORT]
            near = difflib.get_close_matches(name, longer, n=1) or difflib.get_close_matches(
                name, COMMANDS, n=1, cutoff=_LIKE
            )
            raise UsageError(
                f"sessgit has no command “{name}”.",
                f"Did you mean `sessgit {near[0]}`?" if near else "`sessgit --help` lists all commands.",
            )
        return super().resolve_command(ctx, args)

    def _help(self, ctx: Any) -> NoReturn:
        render.write(f"{ctx.get_help()}\n")
        raise typer.Exit


def _version(wanted: bool) -> None:
    if wanted:
        render.write(f"sessgit {__version__}\n")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    no_args_is_help=False,
    epilog=EPILOG,
)


@app.callback(invoke_without_command=True)
def _start(
    ctx: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Version control for conversations with Claude Code: every turn a commit, every fork a branch."""
    if ctx.invoked_subcommand is None:
        from sessgit.cli.commands import status

        status.first()


@functools.cache
def _program() -> Any:
    """Return the program as one command, with the options that all commands share."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    render.begin()
    # A caller may have closed them: then what is said goes nowhere, and the work is done all the same.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # a person is asked there, whose terminal may speak another encoding
    if os.environ.get("_SESSGIT_COMPLETE", "").startswith("complete_"):
        completion.answer(_program())
        sys.exit(0)
    try:
        _check_words(sys.argv)
        code = _program()(prog_name="sessgit", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except _NotUnderstood as error:
        _not_understood(error)
    except typer.Abort:
        sys.stderr.write("Aborted!\n")
        sys.exit(1)
    except UnreadableError as error:
        from sessgit.cli import session_argument

        render.error(UnreadableError(str(error), session_argument.mending(error.hint)))
        sys.exit(error.exit_code)
    except SessgitError as error:
        render.error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _unexpected(error)


def _not_understood(error: Any) -> NoReturn:
    """Says how a command goes; the words that were typed may hold what no terminal should see."""
    said = io.StringIO()
    error.show(said)
    render.usage_error(said.getvalue(), error.format_message(), error.exit_code)
    sys.exit(error.exit_code)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open as long as the program runs


def _check_words(words: list[str]) -> None:
    """Raises UsageError for a word that is no text: no name, no path and no id is one here."""
    for word in words:
        if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
            raise UsageError(f"{word!r} is not UTF-8.", "Arguments must be text.")


def _unexpected(error: Exception) -> NoReturn:
    """What no part of the program expected: the disk's fault, the index's, or a bug."""
    if os.environ.get("SESSGIT_DEBUG") == "1":
        raise error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        render.forget_output()
    if isinstance(error, OSError) or type(error).__module__ == "sqlite3":
        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            where = f"{error.filename}: " if error.filename else ""
            render.error(StoreError(f"{where}{error.strerror}", ROOM))
        else:
            render.error(
                StoreError(
                    f"{type(error).__name__}: {error}", "Run it again with SESSGIT_DEBUG=1 to see where it happened."
                )
            )
        sys.exit(StoreError.exit_code)
    problem = SessgitError(
        f"a bug in sessgit {__version__}: {type(error).__name__}: {error}",
        "Run it again with SESSGIT_DEBUG=1 and report the output.",
    )
    render.error(problem, _BUG)
    sys.exit(_BUG)
