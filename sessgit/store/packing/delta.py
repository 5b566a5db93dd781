"""What sets an object apart from another one, in git's form (gitformat-pack(5), "Deltified representation").

A delta is the lengths of both, and then what to do in order: copy so many bytes of the other one, or take those that
stand here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import compress
from typing import Literal, NamedTuple

_BLOCK = 12
"""So many bytes in common are found wherever they stand, if they begin at the right place of the base."""
_STRIDE = 4
_SMALL = 4 << 10
_FINE = 8
"""In a base up to that size so many are enough, and of several places the one where most follows is taken."""
_MOST_OTHERS = 3
_KEPT = 64
"""Of so many small bases it is remembered what stands where, since the next objects are compared with them too."""
_LARGE = 256 << 10
_STRIDE_LARGE = 16
"""Above that size, to spare memory."""
_WORTH = 48
"""Fewer bytes are not sought in a base that is not small, as a large folder that has one entry more."""
_LEASTS = (5, 24)
"""Shorter copies than this are left out: zlib may say more shortly what stands there. Either is tried."""
_STEP = 32
_FAR = 1 << 16
_MOST_COPIED = 0xFFFF
_MOST_GIVEN = 127
_BITS = (1, 2, 4, 8, 16, 32)


class Copy(NamedTuple):
    """So many bytes at `at` are those of the base at `place`."""

    at: int
    place: int
    length: int


def between(base: bytes, target: bytes) -> list[bytes]:
    """Deltas that make the one of the other; which is the shortest when compressed nobody knows before."""
    found = list(copies(base, target))
    return [encoded(len(base), target, [copy for copy in found if copy.length >= least]) for least in _LEASTS]


def copies(base: bytes, target: bytes) -> Iterator[Copy]:
    """What both have in common, in the order of the target; none overlaps another one there."""
    before = _common(base, 0, target, 0)
    if before:
        yield Copy(0, 0, before)
    end = len(target) - _common_end(base, target, min(len(base), len(target)) - before)
    yield from _found(base, target, before, end)
    if end < len(target):
        yield Copy(end, len(base) - len(target) + end, len(target) - end)


def _found(base: bytes, target: bytes, done: int, end: int) -> Iterator[Copy]:
    """What is found of so much of the target, wherever it stands in the base."""
    is_small = len(base) <= _SMALL
    block = _FINE if is_small else _BLOCK
    if end - done < (block if is_small else _WORTH):
        return
    others: Mapping[bytes, list[int]]
    first, others = _all_places(base) if is_small else (_places(base), {})
    while True:
        for at in range(done, end - block + 1):
            if (key := target[at : at + block]) in first:
                break
        else:
            return
        place = first[key]
        length = _common(base, place, target, at)
        for other in others.get(key, ()):
            if (more := _common(base, other, target, at)) > length:
                place, length = other, more
        length = min(length, end - at)
        while at > done and place and base[place - 1] == target[at - 1]:
            at, place, length = at - 1, place - 1, length + 1
        yield Copy(at, place, length)
        done = at + length


def _places(base: bytes) -> dict[bytes, int]:
    """Where in a base what stands there first."""
    stride = _STRIDE if len(base) <= _LARGE else _STRIDE_LARGE
    last = (len(base) - _BLOCK) // stride * stride
    return {base[place : place + _BLOCK]: place for place in range(last, -1, -stride)}


@lru_cache(_KEPT)
def _all_places(base: bytes) -> tuple[dict[bytes, int], dict[bytes, list[int]]]:
    """Where in a small base what stands first, and the next few places of what stands there more than once."""
    first: dict[bytes, int] = {}
    others: dict[bytes, list[int]] = {}
    for place in range(len(base) - _FINE + 1):
        key = base[place : place + _FINE]
        if first.setdefault(key, place) != place and len(more := others.setdefault(key, [])) < _MOST_OTHERS:
            more.append(place)
    return first, others


def _common(base: bytes, place: int, target: bytes, at: int) -> int:
    """How many bytes are the same from there on."""
    most, step, length = min(len(base) - place, len(target) - at), _STEP, 0
    while length < most:
        some = min(step, most - length)
        one = base[place + length : place + length + some]
        other = target[at + length : at + length + some]
        if one != other:
            return length + _same(one, other, "little")
        length, step = length + some, min(step * 2, _FAR)
    return length


def _common_end(base: bytes, target: bytes, most: int) -> int:
    """How many bytes are the same at the end of both, up to so many."""
    step, length = _STEP, 0
    while length < most:
        some = min(step, most - length)
        place, at = len(base) - length, len(target) - length
        one, other = base[place - some : place], target[at - some : at]
        if one != other:
            return length + _same(one, other, "big")
        length, step = length + some, min(step * 2, _FAR)
    return length


def _same(one: bytes, other: bytes, order: Literal["little", "big"]) -> int:
    """Of so many bytes, which are not all the same, how many are: at the beginning, or at the end where it is `big`."""
    differing = int.from_bytes(one, order) ^ int.from_bytes(other, order)
    return ((differing & -differing).bit_length() - 1) // 8


def encoded(length: int, target: bytes, found: Iterable[Copy]) -> bytes:
    """The delta of a target over a base of so many bytes, that copies just this."""
    out, done = [_size(length), _size(len(target))], 0
    for at, place, same in found:
        out += _given(target[done:at])
        out += _copied(place, same)
        done = at + same
    out += _given(target[done:])
    return b"".join(out)


def _size(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _copied(place: int, length: int) -> Iterator[bytes]:
    while length:
        some = min(length, _MOST_COPIED)
        numbers = (place | some << 32).to_bytes(6, "little")
        yield bytes((0x80 | sum(compress(_BITS, numbers)),)) + numbers.replace(b"\0", b"")
        place, length = place + some, length - some


def _given(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _MOST_GIVEN):
        some = data[start : start + _MOST_GIVEN]
        yield bytes((len(some),)) + some
