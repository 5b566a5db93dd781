"""Made-up transcripts: conversations as the client writes them, and what else has been seen in such files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from transcripts import Talk

from sessgit.agents.claude import lines

_LONG = "x = 1  # naïve\n" * 400
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
REDACTED = "[redacted:github-token]"


@dataclass(frozen=True)
class Transcript:
    """A file's bytes and the places where its lines end; the last line may have no newline, or be torn."""

    data: bytes

    @property
    def ends(self) -> list[int]:
        return [i + 1 for i, byte in enumerate(self.data) if byte == 10]


@dataclass
class _Stage:
    """The writers of one file, of which `talk` writes now."""

    draw: st.DrawFn
    talk: Talk
    writers: list[Talk]

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def earlier_line(self) -> bytes:
        return self.talk.lines[self.number(0, len(self.talk.lines) - 1)]


Move = Callable[[_Stage], object]


def _plain(s: _Stage) -> object:
    return s.talk.prompt(f"do {len(s.talk.lines)}").answer("Well.").stop_lines()


def _rewind(s: _Stage) -> object:
    return s.talk.rewind(s.number(0, len(s.talk.prompts))).prompt("otherwise").answer("Else.")


def _second_writer(s: _Stage) -> object:
    if len(s.writers) == 1:
        s.writers.append(s.talk.writer())
    s.talk = s.writers[1 - s.writers.index(s.talk)]
    return s.talk


def _dangling(s: _Stage) -> object:
    s.talk.leaf = "dddddddd-0000-4000-8000-000000000000"
    return s.talk


def _duplicate(s: _Stage) -> object:
    return s.talk.raw(s.earlier_line()) if s.talk.lines else None


def _hang_on_any(s: _Stage) -> object:
    """The next line hangs on any earlier one, as after a crash of the client."""
    uuids = re.findall(rb'"uuid":"([^"\\]+)"', b"".join(s.talk.lines))
    if uuids:
        s.talk.leaf = uuids[s.number(0, len(uuids) - 1)].decode()
    return s.talk


def _cycle(s: _Stage) -> object:
    s.talk.chain("system", subtype="x", uuid="cccc-1", parentUuid="cccc-2")
    return s.talk.chain("system", subtype="x", uuid="cccc-2", parentUuid="cccc-1")


def _on_last_line(change: Callable[[bytes], bytes]) -> Move:
    def move(s: _Stage) -> object:
        if s.talk.lines:
            s.talk.lines[-1] = change(s.talk.lines[-1])
        return s.talk

    return move


HELD: tuple[Move, ...] = (
    _plain,
    _plain,
    lambda s: s.talk.prompt(f"go on {len(s.talk.lines)}"),
    lambda s: s.talk.answer("One.", "Two."),
    lambda s: s.talk.stop_lines(),
    lambda s: s.talk.tool("Bash", {"command": "ls"}, "a.py", error=s.draw(st.booleans())),
    lambda s: s.talk.parallel(("Read", {"file_path": "/p/a.py"}, _LONG), ("Grep", {"pattern": "x"}, "none")),
    lambda s: s.talk.tool("Write", {"file_path": "/p/b.py", "content": _LONG + str(s.number(0, 3))}),
    lambda s: s.talk.call_only("Bash", {"command": "sleep 9"}),
    lambda s: s.talk.interrupt(),
    lambda s: s.talk.queue("next, please"),
    lambda s: s.talk.steer("and be quick"),
    lambda s: s.talk.attachment(),
    lambda s: s.talk.title("A title", s.draw(st.sampled_from(["custom-title", "ai-title", "summary"]))),
    lambda s: s.talk.compact(),
    lambda s: s.talk.compact(auto=True).answer("On we go."),
    _rewind,
    _rewind,
    _second_writer,
    _second_writer,
)
"""What clients do."""

BROKEN: tuple[Move, ...] = (
    _dangling,
    _duplicate,
    _duplicate,
    _hang_on_any,
    _cycle,
    lambda s: s.talk.prompt_without_uuid("who am I"),
    lambda s: s.talk.raw(b'{"type":"user","torn'),
    lambda s: s.talk.raw(b""),
    lambda s: s.talk.raw(b"\x00\x00"),
    lambda s: s.talk.raw(b'"\xff\xfe"'),
    lambda s: s.talk.chain("user", message={"role": "user", "content": "odd"}, uuid="not\na uuid"),
    _on_last_line(lambda line: line + b"\r"),
    _on_last_line(lambda line: line + line),
    _on_last_line(lambda line: b"\xef\xbb\xbf" + line),
    _on_last_line(lambda line: line.replace(b'"text":"', b'"text":"\\ud800\\u2028')),
)
"""What has been seen in files all the same."""


@st.composite
def transcripts(draw: st.DrawFn, *, broken: bool = True, secrets: bool = False, most: int = 16) -> Transcript:
    first = Talk(style=draw(st.sampled_from(["2.1", "2.1", "2.0"])))
    stage = _Stage(draw, first, [first])
    moves = list(HELD)
    if broken:
        moves += BROKEN
    if secrets:
        moves += [lambda s: s.talk.answer(f"The token is {SECRET}."), lambda s: s.talk.prompt(f"use {SECRET}")]
    for _ in range(draw(st.integers(1, most))):
        draw(st.sampled_from(moves))(stage)
    data = first.data
    if broken and data and draw(st.booleans()):
        data = data[: -draw(st.just(1) | st.integers(1, min(40, len(data))))]
    return Transcript(data)


@st.composite
def pieces(draw: st.DrawFn, transcript: Transcript, *, most: int = 8) -> list[int]:
    """Rising lengths of the file at which someone looks at it, the whole of it last: ends of lines, with their newlines
    or before them, or in mid-line."""
    end = len(transcript.data)
    places = st.sampled_from([at - n for at in transcript.ends for n in (0, 0, 1)]) if transcript.ends else st.just(end)
    cuts = draw(st.lists((places | st.integers(0, end)).filter(lambda at: not _goes_on(transcript, at)), max_size=most))
    return [*sorted(set(cuts) - {end}), end]


def _goes_on(transcript: Transcript, at: int) -> bool:
    """Whether a complete object ends there and its line goes on: as a line that was whole, it is gone then."""
    line = transcript.data[transcript.data.rfind(b"\n", 0, at) + 1 : at]
    return transcript.data[at : at + 1] not in (b"", b"\n") and lines.parse(line) is not None
