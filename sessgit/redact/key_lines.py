"""Lines of private keys without the words before and after them, as tools print a part of a file.

Nothing in them says what they are: signatures, certificates and pictures look the same. So they are taken for a key
only above the end of one, or if a file that holds one is named in the same text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

_PREFIX = rb"(?:[ \t]*[0-9]{1,6}(?:\xe2\x86\x92|[\t:-])[ \t]*|[\w./~-]{1,200}[:-][0-9]{1,6}[:-]|[ \t>+|#-]{1,8})?"
_FULL = re.compile(rb"(?m)^" + _PREFIX + rb"(?P<line>[A-Za-z0-9+/]{70}|[A-Za-z0-9+/]{64})\r?$")
_ANY = re.compile(_PREFIX + rb"(?P<line>[A-Za-z0-9+/]{1,76}={0,2})\r?")
_END = re.compile(rb"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_ARMOR = re.compile(rb"-----(BEGIN|END) ")
# Each begins with one literal character, which the expression engine seeks several times faster than two.
_FILES = (
    re.compile(rb"\.(?:pem|key|p8|ppk)(?![\w.-])"),
    re.compile(rb"_(?<=id_)(?:rsa|dsa|ecdsa|ed25519)(?![\w.-])"),
)
_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_LONGEST_NAME = 64
_PUBLIC = re.compile(rb"(?i)pub|cert|crt|chain|csr")
_PRIVATE = re.compile(rb"(?i)priv|key")
_SHORTEST_STEM = 3
_FEWEST = 3
_SHORTEST = 16


def names_key_file(data: bytes) -> bool:
    """Return whether a text names a file that holds a private key."""
    return any(_is_key_file(data, match) for files in _FILES for match in files.finditer(data))


def key_lines(data: bytes, *, named: bool) -> list[tuple[int, int]]:
    """Return the spans of lines of private keys in a text, one for each run; `named` says that the text is about a file
    of one."""
    out = list[tuple[int, int]]()
    for span in sorted([*_lines_before_end(data), *(_line_runs(data) if named else ())]):
        if not out or span[0] >= out[-1][1]:
            out.append(span)
    return out


def _is_key_file(data: bytes, match: re.Match[bytes]) -> bool:
    before = data[max(0, match.start() - _LONGEST_NAME) : match.start()]
    stem = before[len(before.rstrip(_NAME_BYTES)) :]
    if _PUBLIC.search(stem):
        return False
    if not match[0].startswith(b"."):
        return True
    return len(stem) >= _SHORTEST_STEM and (match[0] != b".pem" or _PRIVATE.search(stem) is not None)


def _lines_before_end(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines right above the end of a key whose beginning is missing."""
    for match in _END.finditer(data):
        lines: list[re.Match[bytes]] = []
        start = data.rfind(b"\n", 0, match.start()) + 1
        while start:
            above = data.rfind(b"\n", 0, start - 1) + 1
            line = _ANY.fullmatch(data, above, start - 1)
            # The last line of a key may be short, and the others are as long as each other.
            if line is None or (lines and len(line["line"]) < len(lines[-1]["line"])):
                break
            lines.append(line)
            start = above
        if lines and len(lines[-1]["line"]) >= _SHORTEST and _is_random(lines[-1]["line"]):
            yield lines[-1].start("line"), lines[0].end("line")


def _line_runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of runs of full lines, with the short line that may end each."""
    armor = [(match.start(), match[1] == b"BEGIN") for match in _ARMOR.finditer(data)]
    run: list[re.Match[bytes]] = []
    for match in [*_FULL.finditer(data), None]:
        if run and (match is None or not _is_next_line(run[-1], match)):
            if (
                len(run) >= _FEWEST
                and all(_is_random(one["line"]) for one in run)
                and not _is_armored(armor, run[0].start())
            ):
                last = _ANY.fullmatch(data, run[-1].end() + 1, _line_end(data, run[-1].end() + 1))
                short = last is not None and (last["line"].endswith(b"=") or len(last["line"]) >= _SHORTEST)
                yield run[0].start("line"), last.end("line") if last and short else run[-1].end("line")
            run = []
        if match is not None:
            run.append(match)


def _is_next_line(one: re.Match[bytes], other: re.Match[bytes]) -> bool:
    return other.start() == one.end() + 1 and len(other["line"]) == len(one["line"])


def _is_armored(armor: list[tuple[int, bool]], at: int) -> bool:
    """Return whether the place is within a block whose first line says what it holds, such as a certificate."""
    before = bisect_left(armor, (at, False))
    return before > 0 and armor[before - 1][1]


def _is_random(line: bytes) -> bool:
    return any(48 <= byte <= 57 for byte in line) and line.upper() != line != line.lower()


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end
