"""The program `sessgit`: its commands by name, and how it exits on an error."""

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
from typer.core import TyperGroup

from sessgit import __version__
from sessgit.cli import frame, render
from sessgit.cli.frame import Command, Light
from sessgit.errors import ROOM, SessgitError, StoreError, UnreadableError, UsageError

GROUPS = {
    "Everyday": {
        "install": "Record every conversation from now on",
        "status": "Show what is recorded and what needs attention",
        "ls": "List the conversations of this project",
        "log": "Show the turns of a conversation, newest first",
        "show": "Show a conversation, a turn or a cell",
        "search": "Search what was said and done",
        "diff": "Compare two conversations",
        "fork": "Fork a conversation at a turn",
        "resume": "Continue a conversation in the client",
        "restore": "Write back the client's files of a conversation",
        "merge": "Merge another conversation into this one",
        "undo": "Undo a command: the last one, or OP",
    },
    "Record": {
        "uninstall": "Stop recording",
        "on": "Record a project again after `sessgit off`",
        "off": "Stop recording a project",
        "import": "Import older conversations",
        "recover": "Find conversations whose client was killed",
    },
    "Find and share": {
        "tree": "Draw conversations, their forks and merges",
        "web": "Browse conversations in a web browser",
        "stats": "Show tokens, cost, model calls and tool calls",
        "watch": "Show changes as they happen, until Ctrl-C",
        "export": "Export a conversation as a document",
        "id": "Print the full id of a session",
        "prompt": "Print the last turn here, for a shell prompt",
    },
    "Branch and organize": {
        "new": "Start a conversation without turns",
        "pick": "Copy turns of other conversations into this one",
        "rename": "Give a conversation a name",
        "edit": "Edit a conversation's description and labels",
        "tag": "Tag a turn, or list the tags",
        "pad": "Show or edit the scratchpad of a conversation",
        "archive": "Hide conversations without deleting them",
        "unarchive": "Take conversations out of the archive",
        "delete": "Delete conversations",
        "ops": "List what commands did, newest first",
    },
    "Look inside turns": {
        "blame": "Show which turn wrote each line of a file",
        "cells": "List the cells of a conversation, oldest first",
        "deps": "Show all cells that a cell depends on",
        "why": "Show which calls wrote a file, and why",
        "replay": "Run cells again and compare the results",
        "bisect": "Find the turn in which something broke",
        "bridge": "Answer a program's questions about a session",
        "mcp": "Let a client's model search conversations",
    },
    "Synchronize": {
        "remote": "List, add or remove remotes",
        "push": "Send conversations to a remote",
        "pull": "Fetch conversations from a remote",
        "sync": "Pull, then push what sync.include selects",
    },
    "Maintain the store": {
        "config": "Show or change the settings",
        "verify": "Check the store for damage",
        "repair": "Repair a broken conversation",
        "doctor": "Check that recording works",
        "gc": "Pack the store",
        "purge": "Remove a value from the whole history, for good",
    },
}
"""The commands by task, those that most users need first, each with the first sentence of its help."""
COMMANDS = tuple(chain.from_iterable(GROUPS.values()))
_SHARED_MODULES = {
    "archive": "unarchive delete",
    "bridge": "mcp",
    "cells": "deps why",
    "check": "doctor repair verify",
    "edit": "new rename tag",
    "import_": "import",
    "install": "uninstall on off config",
    "merge": "pick",
    "restore": "recover resume",
    "sync": "remote pull push",
    "undo": "ops",
}
MODULES = {name: module for module, names in _SHARED_MODULES.items() for name in names.split()}
"""The modules of `sessgit.cli.commands` whose name is not that of the command."""
_ClickError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for arguments that a command does not have; typer does not export it."""
_SHORT_NAME, _SIMILARITY = 2, 0.75
"""A name of two letters is similar to many words: it is suggested for a similarity of 0.75 of 1 only."""

OTHER_WORDS = {
    "add": "Every turn is recorded automatically. `sessgit status` shows whether recording is on.",
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
    "redo": "`sessgit undo OP` of an undo does it again; `sessgit ops` lists the ids.",
    "remove": "`sessgit delete ADDRESS` deletes a conversation, `sessgit archive ADDRESS` hides it.",
    "reset": "`sessgit fork ID --at N` goes back to a turn and loses nothing.",
    "rm": "`sessgit delete ADDRESS` deletes a conversation, `sessgit archive ADDRESS` hides it.",
    "stash": "Nothing needs to be saved first: `sessgit fork ID --at N` starts again from a turn, and the rest stays.",
    "switch": "`sessgit resume` continues a conversation, `sessgit fork ID --at N` continues from turn N.",
    "view": "`sessgit show ADDRESS` shows a conversation, a turn or a cell; `sessgit log -p ADDRESS` the full text.",
}
"""What to type instead of the commands of other programs."""

EPILOG = """\
\b
ADDRESS is SESSION[@TURN[.CELL]]. SESSION is an id or its first four
letters, a name, a title or its beginning, or a tag. @7 is turn 7 of the
current session, A@-1 the last turn of A, A@7.3 the third cell of turn 7.
A cell is a tool call or a message of the model.

\b
Exit codes: 0 ok, 1 error, 2 usage, 3 conflict, 4 not found, 5 the store is
newer than this program, 6 a check found damage, 7 the store cannot be read
or written, 70 a bug.
"""

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)


class _BugError(SessgitError):
    """An error that no part of the program expected."""

    exit_code = 70


@functools.cache
def _command(name: str) -> Any:
    """Import a command and read its signature, once in a process: reading it takes 10 ms."""
    importlib.import_module(f"sessgit.cli.commands.{MODULES.get(name, name)}")
    program = typer.Typer(add_completion=False, rich_markup_mode=None)
    program.command(name, cls=Command)(frame.commands[name])
    return typer.main.get_command(program)


class _Commands(Light, TyperGroup):
    """The table of commands, each imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands group by group; none is imported for it."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])

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
            if words:
                return self.resolve_command(ctx, [*words, "--help"])
            render.write(f"{ctx.get_help()}\n")
            raise typer.Exit
        if name not in COMMANDS:
            import difflib

            longer = [command for command in COMMANDS if len(command) > _SHORT_NAME]
            near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=_SIMILARITY) or difflib.get_close_matches(
                name, longer, n=1
            )
            raise UsageError(
                f"sessgit has no command “{name}”.",
                f"Did you mean `sessgit {near[0]}`?" if near else "`sessgit --help` lists all commands.",
            )
        return super().resolve_command(ctx, args)


def _version(is_given: bool) -> None:
    if is_given:
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
    brief: bool = typer.Option(False, "--brief", help="Before a command: print at most 40 lines."),
) -> None:
    """Version control for conversations with coding agents: every turn a commit, every fork a branch."""
    if ctx.invoked_subcommand is None:
        from sessgit.cli.commands import status

        status.first()


@functools.cache
def _program() -> Any:
    """Return the program as one command, with the options that all commands share."""
    return typer.main.get_command(app)


def main() -> NoReturn:
    """Run the command that the arguments name, and exit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    render.begin()
    # A caller may have closed them: the command runs all the same, without output.
    sys.stdout, sys.stderr = sys.stdout or _null_stream(), sys.stderr or _null_stream()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")  # the user's terminal may have another encoding
    if os.environ.get("_SESSGIT_COMPLETE", "").startswith("complete_"):
        from sessgit.cli import completion

        completion.answer(_program())
        sys.exit(0)
    if any(word.endswith("-completion") for word in sys.argv[1:2]):
        from sessgit.cli import completion

        completion.use_own_scripts()
    try:
        _check_arguments(sys.argv)
        code = _program()(prog_name="sessgit", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except _ClickError as error:
        program = error.ctx.command_path if getattr(error, "ctx", None) else "sessgit"
        render.error(UsageError(error.format_message(), f"`{program} --help` explains it."))
        sys.exit(UsageError.exit_code)
    except typer.Abort:
        sys.stderr.write("Aborted!\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        problem = error if isinstance(error, SessgitError) else _explained(error)
        if isinstance(error, UnreadableError):
            from sessgit.cli import operands

            problem = UnreadableError(str(error), operands.repair_hint(error.hint))
        render.error(problem)
        sys.exit(problem.exit_code)
    finally:
        render.remove_progress()


def _null_stream() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open as long as the program runs


def _check_arguments(words: list[str]) -> None:
    """Raise UsageError for an argument that is not UTF-8: no name, path or id is."""
    for word in words:
        if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
            raise UsageError(f"{word!r} is not UTF-8.", "Arguments must be text.")


def _explained(error: Exception) -> SessgitError:
    """Return the error of the disk or of an index as a StoreError, and any other as a bug."""
    if os.environ.get("SESSGIT_DEBUG") == "1":
        raise error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
        render.forget_output()
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return StoreError(f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror}", ROOM)
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) or type(error).__module__ == "sqlite3":
        return StoreError(what, "Run it again with SESSGIT_DEBUG=1 to see where it happened.")
    hint = "Run it again with SESSGIT_DEBUG=1 and report the output."
    return _BugError(f"a bug in sessgit {__version__}: {what}", hint)
