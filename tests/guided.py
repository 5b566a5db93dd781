"""Inputs that look for new ways through the code: atheris changes them by what they reach (`make fuzz`).

    python tests/guided.py [HOW MANY]

Where atheris is not installed it says so, and that is all. An input at which something is wrong is left in a file
`crash-…` in the working folder, and `python tests/guided.py FILE` runs it again.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
FOUND = importlib.util.find_spec("atheris") is not None
if FOUND:
    import atheris

with atheris.instrument_imports(include=["sessgit"]) if FOUND else nullcontext():
    from redacting import redact_line

    from sessgit.agents.claude import content, lines
    from sessgit.agents.claude.lines import make
    from sessgit.agents.cutter import Cutter, Node, Place
    from sessgit.agents.line import Line, split
    from sessgit.cli import text
    from sessgit.errors import SessgitError
    from sessgit.exchange import files
    from sessgit.model import canonical, humanize, ids, json_strings, search_query, stored_fields
    from sessgit.model import pad as pads
    from sessgit.model.conversation import message, session
    from sessgit.model.conversation.turn import Cell
    from sessgit.record import privacy
    from sessgit.store import spool
    from sessgit.store.spool import Event, UnreadableEvent

from fuzzing import EVIL, dumped, lines_of, spoils, talk  # noqa: E402
from transcripts import SESSION  # noqa: E402

LONGEST = 1 << 13
EVENT = {"hook_event_name": "Stop", "session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/", "reason": "exit"}
STATE = {"metadata": {"session_id": "s", "title": "x"}, "trajectory": {"turns": 3}, "authored": {"labels": ["a"]}}
FOLDER = Path(tempfile.mkdtemp(prefix="guided-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
json_strings.LIMIT = 16  # so that strings of a short input are cut out of its lines


class Nothing:
    """A history in which nothing is recorded."""

    def turn(self, key: str) -> Node | None:
        return None

    def find(self, uuid: str) -> Place | None:
        return None

    def is_closed(self, node: Node, line: Line) -> bool:
        return False


def payload(data: bytes) -> None:
    """What a hook is given: an event that can be recorded, or a reason that quotes nothing of it."""
    (FOLDER / "1-0.json").write_bytes(data)
    (event,) = spool.waiting_events(FOLDER, 1e9)
    assert isinstance(event, Event | UnreadableEvent)
    if isinstance(event, Event):
        assert event.transcript_path.startswith("/")
        os.fsencode(event.cwd)
    else:
        assert event.why.isprintable()
        assert len(event.why) < 80


def transcript(data: bytes) -> None:
    """The lines of a transcript: each byte is in one of them, and they can be cut into turns and told."""
    found = [make(raw, extent, redact_line) for raw, extent in split(data, 0)]
    assert b"".join(line.written + b"\n" for line in found) == data[: found[-1].extent.end if found else 0]
    cutter = Cutter(Nothing(), session=SESSION)
    for line in found:
        cutter.feed(line)
        line.is_prompt, line.message_text, lines.tool_results(line)
        lines.mark_of(line), lines.noted_outcome(line), lines.is_stand_in(line)
    if found:
        content.parse_turn(found)


def strings(data: bytes) -> None:
    """Long strings cut out of lines and filled in again: the very same lines."""
    rows = data.split(b"\n")
    for version in (1, 2):
        cut, kept = json_strings.cut_long_strings(rows, lambda _index, _key: ("Read", "/a.py"), version)
        assert json_strings.fill_long_strings(cut, kept) == rows
    for row in rows:
        clean, count = redact_line(row)
        assert count or clean == row
        assert redact_line(clean)[0] == clean, row
        assert is_json(clean) or not is_json(row), row


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def state(data: bytes) -> None:
    """The state of a session: what can be read is written the same again and again."""
    with suppress(ValueError, RecursionError, SessgitError):
        found = session.loads(json.loads(data))
        once = session.dumps(found)
        assert session.dumps(session.loads(json.loads(once))) == once


def shown(data: bytes) -> None:
    """Texts on their way to a terminal."""
    word = data.decode("utf-8", "surrogateescape" if data[:1] < b"\x80" else "replace")
    for made in (
        text.clean(word),
        canonical.one_line(word, 80),
        humanize.quote_for_shell(word),
        canonical.printable(word),
    ):
        assert not spoils(made), word
    assert text.width(text.fit(text.clean(word), 20)) == 20
    assert all(text.width(line) <= 30 for line in text.fold(text.clean(word).split(" "), 30, " "))


def typed(data: bytes) -> None:
    """Addresses, names, queries, globs, messages, entries and cells."""
    word = data.decode("utf-8", "replace")
    for read in (
        ids.parse_address,
        ids.check_name,
        ids.check_tag,
        search_query.parse_query,
        message.parse_message,
        files.storable_path,
    ):
        with suppress(SessgitError):
            read(word)
    privacy.matches_glob(word, "/home/ada/x.py")
    found = pads.parse_entry("insights", data)
    assert found is None or not spoils(found.id)
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        stored_fields.load(Cell, json.loads(data))
    with suppress(files.DamagedFileError):
        files.gunzip(data, 1 << 20)
    files.parse_lines(data)


TARGETS: tuple[Callable[[bytes], None], ...] = (payload, transcript, strings, state, shown, typed)


def seeds() -> list[list[bytes]]:
    """What each of them begins with."""
    rows = [json.dumps(line, separators=(",", ":")).encode() for line in lines_of(talk())]
    whole = [b"\n".join(rows[at : at + 6]) + b"\n" for at in range(0, len(rows), 3)]
    evil = [word.encode("utf-8", "surrogatepass") for word in EVIL]
    shown = "".join(f"{number:6}→x = {number}\n" for number in range(1, 9))
    numbered = dumped({"a": shown, "b": "y" * 40})
    secret = b'{"token":"ghp_' + b"a1B2" * 9 + b'","u":"https://ada:pa55w0rd@x.org/"}'
    entry = {"id": "e1", "text": "x", "time": "2026-03-01T10:00:00.000Z", "turn": 3, "between": ["a", "b"]}
    cell: dict[str, Any] = {"depends": ["cell_a"], "id": "cell_b", "lines": [2, 3], "ok": True, "type": "tool"}
    commit = b"turn 3: do it\n\nSession: s\nTurn: 3\nExtent: 0+120/3\nTools: Bash=2\n"
    odd = [*evil, dumped(entry), dumped(cell), commit, b"a41f@7.3", b'tool:Bash since:2d "x y" -z', b"~/[a-c]*"]
    return [[dumped(EVENT)], whole, [*whole, numbered, secret], [dumped(STATE)], evil, odd]


def one(data: bytes) -> None:
    if data and len(data) <= LONGEST:
        TARGETS[data[0] % len(TARGETS)](data[1:])


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "100000"
    if Path(given).is_file():
        one(Path(given).read_bytes())
        return
    if not FOUND:
        print("atheris is not installed: no inputs that look for new ways through the code.")
        return
    corpus = FOLDER / "seeds"
    corpus.mkdir()
    for number, each in enumerate(seeds()):
        for place, data in enumerate(each):
            (corpus / f"{number}-{place}").write_bytes(bytes([number]) + data)
    print(f"{int(given):,} inputs that look for new ways through {len(TARGETS)} readers", flush=True)
    atheris.Setup([sys.argv[0], f"-runs={int(given)}", f"-max_len={LONGEST}", "-timeout=30", "-rss_limit_mb=2048",
                   "-print_final_stats=1", "-verbosity=1", "-reload=0", str(corpus)], one)  # fmt: skip
    atheris.Fuzz()


if __name__ == "__main__":
    main()
