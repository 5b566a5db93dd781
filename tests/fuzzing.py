"""Input of which nobody said that it is any good: documents changed at random, and words for the command line."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from transcripts import OTHER, SESSION, Talk

INPUTS = int(os.environ.get("SESSGIT_TEST_FUZZ") or 0)
"""So many inputs in the long form; 0 is the short one."""

CONTROL = set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F),
                        *range(0x2066, 0x206A)]))  # fmt: skip
"""What must never reach a terminal."""

EVIL = (
    "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x07link\x1b]8;;\x07", "\x1b]0;title\x07", "\x9b1m c1 \x9d8;;x\x9c",
    "\u202egnp.exe\u202c", "\u2066isolated\u2069", "a\nb", "a\r\nb", "\0", "nul\0in", "\u2028", "half \ud800",
    "../../../etc/passwd", "/etc/passwd", "..", ".", "", " ", "-", "--", "--help", "-rf", "--upload-pack=touch /tmp/x",
    "ext::sh -c touch% /tmp/x", "file:///etc", "ssh://-oProxyCommand=x/y", "';touch x;'", "\"$(touch x)\"", "`touch x`",
    "x;touch y", "~", "~root", "*", "@", "@-1", "@0", "@1.1", f"{SESSION}@99999999999999999999", "@{-1}", "a@b@c",
    "x" * 5000, "9" * 5000, "-" + "9" * 30, "1e999", "nan", "refs/heads/x", "x.lock", "a..b", "a.r-12345678", "HEAD",
    "{{7*7}}", "<script>alert(1)</script>", "%s%n", "日本語", "e\u0301" * 50, "\U0001f468\u200d\U0001f469", "(" * 100,
    "[" * 3000, "a.*(" * 5, "(a+)+$", "NEAR(x", "x AND", '"', "'", "\\",
)  # fmt: skip
"""Words that have done harm elsewhere."""

WEIRD = st.one_of(
    st.sampled_from([
        None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, -(2**63) - 1, 10**400, 1e308, -0.5, float("nan"),
        float("inf"), [], {}, [[]], [None], {"": {}}, [{}], ["x", 1], {"a": [1, {"b": None}]}, "", "0", SESSION, OTHER,
        "2026-03-01T10:00:00.000Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00",
    ]),
    st.sampled_from(EVIL),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.recursive(st.none() | st.integers(-5, 5) | st.text(max_size=4), lambda inner: st.lists(inner, max_size=3)),
)  # fmt: skip
"""Values that a document may have anywhere."""


PROPERTY = "inputs"
"""Under this name a test's report has how many inputs it took."""


class Taken:
    """How many inputs the running test has taken."""

    count = 0


def took(count: int = 1) -> None:
    """Notes that so many inputs were taken; the long form tells the sum of all tests."""
    Taken.count += count


def told(counts: Mapping[str, int]) -> list[str]:
    """The lines that say how many inputs each test took, and the sum; none in the short form."""
    if not INPUTS:
        return []
    lines = [f"{count:9,} inputs  {name}" for name, count in sorted(counts.items(), key=lambda one: -one[1]) if count]
    together = sum(counts.values())
    few = f", and {INPUTS:,} were wanted" if together < INPUTS else ""
    return [*lines, f"{together:9,} inputs together{few}"]


def runs(share: float, short: int, each: int = 1) -> settings:
    """How often a test is run: in the long form until it took its share of all inputs, in percent, `each` at a time.

    What fails there is told as it is: to make it smaller would take longer than all the rest.
    """
    if not INPUTS:
        return settings(max_examples=short, derandomize=True, database=None)
    examples = max(1, math.ceil(INPUTS * share / 100 / each))
    return settings(max_examples=examples, database=None, phases=(Phase.explicit, Phase.generate))


def batch(inputs: st.SearchStrategy[Any], size: int) -> st.SearchStrategy[list[Any]]:
    """Many inputs for one example: making an example costs more than most inputs do."""
    return st.lists(inputs, min_size=size, max_size=size)


def listing(top: Path, *without: Path) -> dict[str, tuple[object, ...]]:
    """All that lies below a folder, but in some of its folders: names, kinds, modes, and of files size, time of change
    and content, of links where they lead. Of folders the names in them say enough."""
    found = dict[str, tuple[object, ...]]()
    left = set(map(str, without))
    for at, folders, files in os.walk(top):
        folders[:] = [name for name in folders if f"{at}/{name}" not in left]
        for name in (*folders, *files):
            path = f"{at}/{name}"
            state = os.lstat(path)
            said: tuple[object, ...] = (stat.filemode(state.st_mode),)
            if stat.S_ISLNK(state.st_mode):
                said += (str(Path(path).readlink()),)
            elif stat.S_ISREG(state.st_mode):
                said += (state.st_size, state.st_mtime_ns, hashlib.sha256(Path(path).read_bytes()).digest())
            if path not in left:
                found[path] = said
    return found


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document, as the keys that lead there."""
    yield above
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield from places(below, (*above, key))


@st.composite
def changed(draw: st.DrawFn, documents: Sequence[Any]) -> Any:
    """One of the documents with something else in some places of it, or without them."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = ("top", *draw(st.sampled_from(list(places(document)))))
        around: Any = {"top": document}
        holder = around
        for key in way:
            holder = holder[key]
        match draw(st.integers(0, 5)):
            case 0 if last != "top":
                del holder[last]
            case 1 if isinstance(holder, dict) and last != "top":
                holder[draw(st.sampled_from(EVIL))] = holder.pop(last)
            case 2 if isinstance(holder[last], str):
                holder[last] += draw(st.sampled_from(EVIL))
            case _:
                holder[last] = copy.deepcopy(draw(WEIRD))  # one of them may be changed next
        document = around["top"]
    return document


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with some of them gone, doubled or others."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(out)))
        length = draw(st.integers(0, 40))
        junk = draw(
            st.sampled_from([b"", b"\0", b"\xff\xfe", b"\n", b'"', b"{", b"[" * 2000, b"9" * 4500, b"\\ud800", b"null"])
        )
        out[at : at + length] = junk or out[at : at + length] * 2
    return bytes(out)


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def talk(cwd: str = "/home/ada/shop", session: str = SESSION) -> Talk:
    """A conversation with most of what a line can hold, a program's cells too."""
    found = Talk(session, cwd=cwd).turns("one", "two")
    found.prompt("write it").tool("Write", {"file_path": f"{cwd}/a.py", "content": "x = 1\n"})
    found.tool("Edit", {"file_path": f"{cwd}/a.py", "old_string": "1", "new_string": "2"})
    found.parallel(("Read", {"file_path": f"{cwd}/a.py"}, "x"), ("Grep", {"pattern": "x"}, "none"))
    found.tool("Bash", {"command": "ls"}, "Exit code 1\nno", error=True).steer("quick").answer("done").stop_lines()
    found.compact().prompt("go on").call_only("Bash", {"command": "sleep 9"}).interrupt().title("A title")
    return found


def lines_of(found: Talk) -> list[Any]:
    """The lines of a conversation as documents."""
    return [json.loads(line) for line in found.lines]


def spoils(text: str) -> set[str]:
    """What of a text must not reach a terminal."""
    return set(text) & CONTROL
