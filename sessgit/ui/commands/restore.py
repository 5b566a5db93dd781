"""`sessgit restore`: a conversation back as the file that the client wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessgit.ui import context, named, options, render, text

if TYPE_CHECKING:
    from sessgit.ops.restore import Restored, Verified


def run(
    address: options.Address = "",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Write nothing; check what is stored.")] = False,
    as_json: options.Json = False,
) -> None:
    """Write a conversation back as the client's file.

    Byte for byte as the client wrote it, save what was redacted; never over a file that holds anything else.
    --verify rebuilds the file, proves every hash that was taken when it was recorded, and compares it with the
    client's own if that is still there.
    """
    from sessgit.errors import UsageError
    from sessgit.ops import restore as restores

    if output and verify:
        raise UsageError("--verify writes nothing, --output names a file to write.", "Give one of the two.")
    here = context.read()
    found = named.target(here, address)
    if found.turn not in (None, found.state.turns):
        raise UsageError(
            "a conversation is restored as a whole.",
            f"sessgit fork {found.session[:8]} --at {found.turn} writes its first turns as one of its own.",
        )
    if verify:
        checked = restores.verify(here.store, found.session)
        if as_json:
            render.document("restore/v1", _json(found.session, None, checked.restored) | _verified(checked))
        else:
            render.lines(here, _proof(here, found.session, checked))
        return
    done = restores.restore(here.store, found.session, here.config, output.absolute() if output else None)
    if as_json:
        render.document("restore/v1", _json(found.session, done.path, done.restored) | {"already": done.already})
        return
    what = "is already there" if done.already else "is written"
    render.write(f"{here.short(done.path)} {what}: {_quality(done.restored)}\n")


def _quality(done: Restored) -> str:
    size = text.size(len(done.data))
    if done.exact:
        return f"{size}, byte for byte as the client wrote it."
    lacks = []
    if done.redacted:
        lacks.append(f"{text.counted(done.redacted, 'secret')} replaced when it was recorded")
    if done.missing:
        lacks.append(f"{text.size(done.missing)} never recorded")
    if done.rewritten:
        lacks.append("the beginning that it has from another conversation written anew")
    return f"{size}, but for {', '.join(lacks)}."


def _json(session: str, path: Path | None, done: Restored) -> dict[str, object]:
    return {
        "id": session, "path": str(path) if path else None, "bytes": len(done.data), "exact": done.exact,
        "redacted": done.redacted, "missing": done.missing, "rewritten": done.rewritten, "proved": done.checked,
    }  # fmt: skip


def _verified(checked: Verified) -> dict[str, object]:
    return {"turns": checked.turns, "file": str(checked.file) if checked.file else None, "same": checked.same}


def _proof(here: context.Context, session: str, checked: Verified) -> list[str]:
    done = checked.restored
    lines = [
        f"{session}: {text.counted(checked.turns, 'turn')}, nothing damaged.",
        f"Proved     {text.counted(done.checked, 'hash', 'hashes')} of lines (Lines-SHA256), "
        "taken when they were recorded",
        f"The file   {_quality(done)}",
    ]
    if checked.file is None:
        lines.append("The client has deleted its own file: this store is the only place.")
    elif checked.same:
        lines.append(f"Compared   equal to {here.short(checked.file)}")
    elif done.redacted:
        lines.append(f"Compared   {here.short(checked.file)} differs, as it must: it holds what was replaced here")
    else:
        lines.append(f"Compared   {here.short(checked.file)} differs: it has changed since it was recorded")
    return lines
