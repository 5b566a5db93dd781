"""Secrets known by the name they are assigned to: `API_KEY=…`, `"password": "…"`, `fooToken = "…"`, `--token …`.

A name alone is weak evidence, since code is full of `token = token` and `password: string`. The value has to
look like a secret too, and the less its place says (a quoted literal, an environment variable, plain code), the
more random it has to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from sessgit.redact.checks import count_classes, entropy, is_made_up, is_password, is_path, is_random, is_words
from sessgit.redact.engine import HARMLESS_WORDS, NAME_END, NAMES, PUBLIC_WORDS, VENDORS

_NAME_END = re.compile(NAME_END.encode("ascii"))
_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_LITERAL = re.compile(rb"[!-~]{6,512}")
# Letters of two bytes: what is drawn around values, and cuts them short, has three.
_FOREIGN = re.compile(rb"(?:[!-~]|[\xc3-\xd1][\x80-\xbf]){6,512}")
_QUOTED = re.compile(
    rb"[rbfuRBFU]{0,2}(?:%20)?(?P<quote>\\{0,16}[\"'`]|%22)(?P<value>(?:(?!%22)[!#-&(-\[\]-_a-~]){6,512})(?P=quote)"
)
_IS_LITERAL = re.compile(rb"[rbfuRBFU]{0,2}\\{0,16}[\"'`]")
_PHRASE = re.compile(
    rb"(?P<quote>\\{0,16}[\"'])(?P<value>(?:[ !#-&(-\[\]-_a-~]|[\xc3-\xd1][\x80-\xbf]){6,128}?)(?P=quote)"
)
_BARE = re.compile(rb"(?P<value>[!%*+./0-9:=?@A-Z^_a-z~-]{6,512})(?=[\x00-\x20\"'\\,;&)}\]`|#<]|\Z)")
_IN_LINE = re.compile(
    rb"(?P<value>[!#-&*-;<-Z^_a-z|~]{5,511}[!#-&*+./-:<-Z^_a-z|~-])(?=[,;]{0,2}(?:[\x00-\x20\\\"'`]|\Z))"
)
_IN_CONNECTION = re.compile(rb"(?P<value>[!#-&(-:<-Z^_a-z|~]{6,512})(?=[;\x00-\x20\\\"'`]|\Z)")
_IN_ELEMENT = re.compile(rb"(?P<value>[!-;=-~]{6,512})(?=\\{0,3}</)")
_IN_URL = re.compile(
    rb"(?P<value>[!*.0-9A-Z_a-z~-][!%*.0-9A-Z_a-z~-]{5,512}?)(?=%2[26C]|%7D|%0|[^!%*.0-9A-Z_a-z~-]|\Z)"
)
_CALL = rb"(?!(?:[A-Za-z_][A-Za-z_.]{0,99}|[A-Za-z_][\w.]{0,60}?[A-Za-z_]{3}[\w.]{0,60}|md5)\()"
_IN_ENVIRONMENT = re.compile(
    _CALL + rb"(?P<value>(?:[!#-&(-\[\]-_a-~]|[\xc3-\xd1][\x80-\xbf]){5,511}"
    rb"(?:[!#-&(-+./-:<-\[\]-_a-~-]|[\xc3-\xd1][\x80-\xbf]))(?=[,;]{0,2}(?:[\x00-\x20\\\"'`]|\Z))"
)
_GLUED = re.compile(rb"\A(?:\\[nrtbf]|[\[;][0-9;]*m|[^A-Za-z0-9_.-])")
_GLUED_WORDS = re.compile(rb"\A(?:\\?u[0-9A-Fa-f]{4}|[\w.]{0,40}-[0-9]{1,6}-)(?=[A-Za-z_])")
_NOT_NAMED = re.compile(rb"[A-Z]\w*::[A-Z]\w*::\Z|:[0-9]{12}:\Z|page \Z|docs\.google\.com/\S*\Z")
_COMPOSED = re.compile(rb"[A-Za-z0-9]+[_.-][A-Za-z0-9]|[a-z]+[A-Z]")
_CALLED = re.compile(rb"\w\(\s{0,2}\\{0,16}[\"'`]\Z")
_SETTER = re.compile(rb"(?i)(?:.*\.)?(?:set|with)_?\w*pass")
_SET = re.compile(rb"(?:setx|set (?:-g?x|-x -g)|setenv|ENV) +\Z")
_LINE_STARTS = re.compile(rb"(?:\A|[0-9;\[]m|\\[nrt]|\\u2192|(?:\A|\n|\\n)[+-]|[\w.]:[0-9]{1,6}:)\Z")
_ALONE = (b"\n", b" ", b"\t", b"\x92", b"`", b"'", b'"', b"+", b"-", b".", b":")
_MARKED = (b"?", b"&", b">", b"%", b";")
_ALONE_ON_LINE = re.compile(rb"[,;)]{0,2}[ \t]*(?:\\{0,15}[rn\"']|[\r\n\"'`]|\Z)")
_CHAIN = re.compile(rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+=|.*@entry=0x")
_NO_BARE = re.compile(rb":.*|-[a-z-]+(?:=\w*)?|[A-Za-z]+=|\*+\w+\**")
_MEMBER = re.compile(rb"\$?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AWS_SECRET = re.compile(rb"[A-Za-z0-9/+]{40}")
_KNOWN_PLAIN = re.compile(
    rb"arn:aws|amzn1\.|(?:npm:|workspace:|[~^<>=]{1,2})?v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+.][\w.+-]*)?\Z|0x[0-9a-fA-F]{1,8}\Z"
    rb"|MFkwEwYH|MIIBIjAN|MIGfMA0G|MCowBQYD|AAAA[BCE]3Nza|(?:[a-z]\w*\.){2,}[a-z_]\w*\Z|ssh-|urn:|sha(?:1|256|512)[-:]"
)
_MARKUP = re.compile(rb"[*_~`]*[A-Za-z]+[*_~`]*")
_MEASURE = re.compile(rb"[0-9][0-9.,]*[A-Za-z%/]{1,8}")
_GROUPS = re.compile(rb"(?:[A-Za-z]{3,}[0-9]{0,4}){0,3}|[0-9]{1,2}[a-z]{1,3}|[0-9]+")
_WORD = re.compile(rb"[A-Za-z]*[0-9]{0,4}|[0-9]+")
_SHORT = re.compile(rb"[0-9]{1,2}[a-z]{1,3}")
_TYPE = re.compile(rb"(?:[A-Z][a-z]?[0-9]{1,5}|[a-z]{2,}[0-9]{0,3})?(?:[A-Z][a-z]{2,}[0-9]{0,5}){1,6}")
_SAID = re.compile(
    rb"(?i)(?<![\w.-])(api|access|secret|auth|app|service|admin|master|client|bot|bearer|refresh|deploy) \Z"
)
_SEPARATORS = re.compile(rb"[^A-Za-z0-9]+")
_COMPOUND = re.compile(rb"[-_./:+~@]+")
_LONG_WORD = re.compile(rb"[A-Za-z]{4,}")
_MIXED_RUNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+")
_CAMEL = re.compile(rb"(?:[A-Z]?[a-z]{2,}|[A-Z]{1,4}(?![a-z])|[0-9]+|[_-])+")
_NAME_WORDS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")
_ABOUT_SECRETS = re.compile(rb"(?i)passw|secret|token|key|field|input|label")
_PASS = re.compile(rb"(?i)_pass\Z")
_SHELL_PASS = re.compile(r"[a-z0-9]{2,}(?<!by)(?<!com)(?<!sur)pass")  # tests end with PASS, XPASS and KPASS
_SHELL_ENDINGS = ("salt", "credentials", "secretenv")
_SHELL_PASSWORDS = ("redisauth", "rediscliauth")
_PW = re.compile(rb"(?:(?:\A|[_.-])(?i:pw)|[a-z]P[Ww]|(?i:bind|root|admin|db|user|login|ssh|ftp|smtp|sudo)(?i:pw))\Z")
_DIRECTORY = re.compile(rb"(?i)(?:\A|[_.-])(?:old)?pwd?\Z")
_LONG = 16
"""From so many bytes on a value of letters and digits may be random, and no words."""
_HARMLESS_NAMES = frozenset(("resourcekey", "s3key", "bucketkey", "clienttoken", "updatetoken", "startingtoken"))
_STRONG = tuple((ending, name.kind) for name in NAMES if not name.weak for ending in name.endings)
_WEAK = tuple((ending, name.kind) for name in NAMES if name.weak for ending in name.endings)


class Assigned(NamedTuple):
    """The value at `start` to `end`: a secret of a kind, as its name says and its looks confirm."""

    start: int
    end: int
    kind: str


class Naming(NamedTuple):
    """What a name says of its value.

    `password`: people chose it. `weak`: it has to look random. `shell`: the name is an environment variable's.
    `strong`: the name is always a secret's. `composed`: it has more words than the ending. `directory`: it is `pw` or
    `pwd`, which mostly name something else.
    """

    kind: str
    password: bool = False
    weak: bool = False
    shell: bool = False
    strong: bool = False
    composed: bool = False
    directory: bool = False


class _Place(NamedTuple):
    """Where a value is looked for: behind a `name`, and maybe behind a `flag`, as an element that only a literal can be
    (`quoted`), or from a mark of `before` on up to the next one, or on the line `below`."""

    name: bytes
    flag: bool = False
    quoted: bool = False
    before: bytes = b""
    below: bool = False


def find_assigned(data: bytes) -> Iterator[Assigned]:
    """Return the secrets of a text that are assigned to a name, in order, never overlapping."""
    done = 0
    for match in _NAME_END.finditer(data.lower()):
        if match.start() < done:
            continue
        name = _full_name(data, match.start(), match.end("word"))
        place = _find_place(data, match, name)
        if place is None or not (match["sign"] or place.flag):
            continue
        if match["below"] is not None:
            place = place._replace(below=True)
            if not match["sign"]:
                continue
        naming = naming_of(place.name)
        value = None if naming is None else _match_value(data, match.end(), naming, place)
        if naming is None or value is None or (match["word"] == b"pw" and _MEASURE.fullmatch(value["value"])):
            continue
        done = value.end("value")
        yield Assigned(value.start("value"), done, naming.kind)


@lru_cache(maxsize=1024)
def naming_of(name: bytes) -> Naming | None:
    """Return what a name says of its value, or None where it promises no secret."""
    plain = _SEPARATORS.sub(b"", name.lower()).decode("ascii", "replace")
    shell = name.isupper()
    strong = next((kind for ending, kind in _STRONG if plain.endswith(ending)), None)
    is_shell_password = shell and (_SHELL_PASS.fullmatch(plain) or plain.endswith(_SHELL_PASSWORDS))
    if is_shell_password or _PW.search(name) or _PASS.search(name):
        strong = "password"
    elif strong is None and shell and plain.endswith(_SHELL_ENDINGS):
        strong = "secret"
    if strong == "password":
        return Naming(strong, password=True, shell=shell, directory=_DIRECTORY.search(name) is not None)
    weak = next((kind for ending, kind in _WEAK if plain.endswith(ending)), None)
    kind = strong or weak
    words = [word.lower().decode("ascii", "replace") for word in _NAME_WORDS.findall(name)]
    if kind is None or plain in _HARMLESS_NAMES:
        return None
    if strong is None and not (PUBLIC_WORDS if shell else HARMLESS_WORDS).isdisjoint(words):
        return None
    vendor = next((kind for part, kind in VENDORS.items() if part in plain), None)
    known = strong is not None or vendor is not None
    return Naming(vendor or kind, weak=not (known or shell), shell=shell, strong=known, composed=len(words) > 1)


def is_secret_literal(value: bytes, naming: Naming) -> bool:
    """Return whether a whole literal, such as a string of a JSON document, is the secret its name promises."""
    literal = _FOREIGN if naming.shell else _LITERAL
    if not literal.fullmatch(value) or (value.isascii() and _is_plain(value, naming)):
        return False
    if naming.strong and not value.isascii():
        return min(count_classes(value)[:2]) > 0 and not is_made_up(value)
    if naming.password:
        return is_password(value) and not (naming.directory and not _is_chosen(value))
    return _is_token(value, naming)


def _full_name(data: bytes, start: int, end: int) -> bytes:
    """Return the name whose last word is at `start`, without the rest of an escape or of a terminal colour before it.

    In a sentence it may be two words: `api key`.
    """
    before = data[max(0, start - 48) : start]
    stem = before.rstrip(_NAME_BYTES)
    name = _GLUED.sub(b"", stem[-1:] + before[len(stem) :] + data[start:end])
    said = _SAID.search(before) if len(stem) == len(before) else None
    return said[1] + b"_" + name if said else name


def _find_place(data: bytes, match: re.Match[bytes], name: bytes) -> _Place | None:
    """Return the place of a value, or None if there can be none."""
    name = _GLUED_WORDS.sub(b"", name)
    head = data[max(0, match.end("word") - len(name) - 64) : match.end("word") - len(name)]
    sign = match["sign"]
    if _NOT_NAMED.search(head):
        return None
    if sign == b",":
        called = (
            match["quote"] and _CALLED.search(head) and _COMPOSED.match(name) and _IS_LITERAL.match(data, match.end())
        )
        return _Place(name, quoted=True) if called else None
    if sign == b">":
        return _Place(name, before=b">") if head.endswith(b"<") else None
    if sign == b"(":
        return _Place(name, quoted=True) if _SETTER.match(name) else None
    if not sign:
        return _Place(name, flag=name.startswith(b"--") or _SET.search(head) is not None)
    if sign in (b"%3a", b"%3d"):
        return _Place(name, before=b"%")
    before = b"\n" if _LINE_STARTS.search(head) else head[-1:]
    return _Place(name, flag=name.startswith(b"--"), before=before)


def _match_value(data: bytes, start: int, naming: Naming, place: _Place) -> re.Match[bytes] | None:
    """Return the value at an offset if it is a secret: the less it looks like a literal, the more random it must be."""
    quoted = _QUOTED.match(data, start)
    if quoted is not None:
        return quoted if is_secret_literal(quoted["value"], naming) else None
    if naming.shell and (phrase := _PHRASE.match(data, start)) is not None:
        return phrase if _is_phrase(phrase["value"], naming) else None
    if place.quoted:
        return None
    bare = _match_bare_value(data, start, naming, place)
    if bare is None or not is_secret_literal(bare["value"], naming) or _MEMBER.fullmatch(bare["value"]):
        return None
    if _CHAIN.match(bare["value"]) or _NO_BARE.fullmatch(bare["value"]):
        return None
    if place.below:
        return bare if _is_alone(data, bare, naming) else None
    if naming.shell or place.flag or place.before in _MARKED:
        return bare
    _, digits, special = count_classes(bare["value"])
    random = digits >= 3 or (naming.password and special > 0) or _is_mixed(bare["value"])
    return bare if random and len(set(bare["value"])) >= 8 else None


def _match_bare_value(data: bytes, start: int, naming: Naming, place: _Place) -> re.Match[bytes] | None:
    """Return a value without quotes, up to the end of its place."""
    if place.before == b">":
        return _IN_ELEMENT.match(data, start)
    if place.before == b"%":
        return _IN_URL.match(data, start)
    if naming.password and place.before == b";":
        return _IN_CONNECTION.match(data, start) or _BARE.match(data, start)
    if naming.shell and place.before in _ALONE[:7]:
        return _IN_ENVIRONMENT.match(data, start) or _BARE.match(data, start)
    if naming.password and (place.flag or place.before in _ALONE):
        return _IN_LINE.match(data, start) or _BARE.match(data, start)
    return _BARE.match(data, start)


def _is_token(value: bytes, naming: Naming) -> bool:
    if naming.kind == "aws-secret-key" and _AWS_SECRET.fullmatch(value):
        return not is_words(value) and not is_made_up(value)
    letters, digits, _ = count_classes(value)
    looks_random = digits >= 2 and letters > 1 and is_random(value)
    shortest = 10 if naming.kind == "secret" else 16
    if looks_random or (naming.strong and _is_mixed(value)):
        shortest = min(shortest, 12)
    if len(value) < shortest or is_made_up(value) or b"://" in value or is_path(value) or is_words(value):
        return False
    if _UUID.fullmatch(value):
        return not naming.weak and naming.kind != "token"
    if _is_compound(value) and not naming.shell:
        return False
    if naming.weak:
        mixed = value.lower() != value and value.upper() != value
        if len(value) >= 20 and mixed and digits >= 3 and entropy(value) >= 3.5:
            return True
        return looks_random and len(value) >= 14 and (naming.composed or naming.kind == "token")
    if digits == 0:
        return len(value) >= 24 and value.lower() != value != value.upper() and is_random(value)
    return letters > 0 and len(set(value)) >= 4


def _is_compound(value: bytes) -> bool:
    """Return whether a value has two or more words between separators, as keys of caches and names of images do."""
    words = [part for part in _COMPOUND.split(value) if _LONG_WORD.fullmatch(part) and not is_random(part)]
    return len(words) >= 2


def _is_chosen(value: bytes) -> bool:
    """Return whether a value is no folder or name, but a password: digits with marks, or with letters of both cases."""
    _, digits, special = count_classes(value)
    mixed = value.lower() != value and value.upper() != value
    return digits > 0 and (special > 0 or mixed) and not is_words(value)


def _is_alone(data: bytes, bare: re.Match[bytes], naming: Naming) -> bool:
    """Return whether a value on a line of its own is random, and not the key of a document or a word of a text."""
    value = bare["value"]
    if not _ALONE_ON_LINE.match(data, bare.end("value")) or value[:1] in b"-:" or value[-1:] in b":=(":
        return False
    return _is_mixed(value) or (naming.password and min(count_classes(value)) > 0 and not set(value) & set(b":=("))


def _is_mixed(value: bytes) -> bool:
    """Return whether letters of both cases and digits alternate in a value more than in any that is made of words."""
    runs = [run[:1] for run in _MIXED_RUNS.findall(value)]
    kinds = {(run.isdigit(), run.isupper()) for run in runs}
    return len(kinds) == 3 and len(runs) >= 7 and not _CAMEL.fullmatch(value)


def _is_phrase(value: bytes, naming: Naming) -> bool:
    """Return whether a value in quotes, with spaces or letters that are not ASCII, is a secret and not a message."""
    if b" " not in value:
        return is_secret_literal(value, naming)
    if not naming.password or b"$" in value or _ABOUT_SECRETS.search(value) or not is_password(value):
        return False
    return any(not _WORD.fullmatch(part) and min(count_classes(part)[:2]) > 0 for part in value.split(b" "))


def _is_plain(value: bytes, naming: Naming) -> bool:
    """Return whether a value is known not to be a secret: a name, a version, a public key."""
    if _KNOWN_PLAIN.match(value):
        return True
    if naming.password:
        return _MARKUP.fullmatch(value) is not None
    if naming.weak and all(_GROUPS.fullmatch(part) for part in _SEPARATORS.split(value)):
        return not (len(value) >= _LONG and is_random(value))
    parts = _SEPARATORS.split(value.replace(b"%20", b" "))
    if all(_WORD.fullmatch(part) or _SHORT.fullmatch(part) for part in parts) or _TYPE.fullmatch(value):
        return not (len(value) >= _LONG and is_random(value))
    return False
