"""Secrets known by the name they are given: `API_KEY=…`, `"password": "…"`, `--token …`.

A name alone is weak evidence, since code is full of `token = token` and `password: string`. The value has to
look like a secret too, and the less its place says (a quoted literal, an environment variable, plain code), the
more random it has to look.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from math import log2
from typing import NamedTuple

from sessgit.model.secrets import later
from sessgit.model.secrets.rules import HARMLESS_NAMES, NAME_TAIL, STRONG_ENDINGS, VENDORS, WEAK_ENDINGS

_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
_NAME_END = re.compile(
    rb"(?P<word>passw(?:or)?d|pwd|pass|secret|token|key)"
    + NAME_TAIL.encode("ascii")
    + rb"(?P<sign>=>|:=|={1,3}|:|(?=[ \t\"']))[ \t]{0,8}"
)
_NAME_END_3 = re.compile(
    rb"(?P<word>passphrase|passw(?:or)?d|pwd|pass|secret|token|key)"
    + later.TAIL.encode("ascii")
    + b"(?P<sign>(?P<pair>"
    + later.PAIR.encode("ascii")
    + b")|"
    + later.TYPED.encode("ascii")
    + rb"|=>|:=|={1,3}|:|,|>|\(|%3a|%3d|(?=[ \t\"']))[ \t]{0,8}"
)
# What came with version 4: a value on the line below its name.
_NAME_END_4 = re.compile(
    _NAME_END_3.pattern.removesuffix(rb"[ \t]{0,8}")
    + b"(?:(?P<below>"
    + later.BELOW.encode("ascii")
    + rb")|[ \t]{0,8})"
)
_RARE_NAMES = (b"CREDENTIALS", b"SALT")
_NAME_END_RARE = {
    version: re.compile(ends.pattern.replace(rb"|key)", rb"|key|credentials|salt)"))
    for version, ends in ((3, _NAME_END_3), (4, _NAME_END_4))
}
# What came with version 7: a shorter word, in texts without and with rare names.
_NAME_END_7 = tuple(re.compile(ends.pattern.replace(b"|pwd|", b"|pwd?|")) for ends in (_NAME_END_4, _NAME_END_RARE[4]))
_QUOTED = re.compile(rb"[rbfuRBFU]{0,2}(?P<quote>\\{0,8}[\"'`])(?P<value>[!#-&(-\[\]-_a-~]{6,512})(?P=quote)")
_BARE = re.compile(rb"(?P<value>[!%*+./0-9:=?@A-Z^_a-z~-]{6,512})(?=[\x00-\x20\"'\\,;&)}\]`|#]|\Z)")
_LITERAL = re.compile(rb"[!-~]{6,512}")
# Letters of two bytes: what is drawn around values, and cuts them short, has three.
_FOREIGN = re.compile(rb"(?:[!-~]|[\xc3-\xd1][\x80-\xbf]){6,512}")
# What came with version 3.
_WIDER = 3
_BELOW = 4
_LISTED = 5
_SHORT_NAMED = 7
_QUOTED_3 = re.compile(
    rb"[rbfuRBFU]{0,2}(?:%20)?(?P<quote>\\{0,16}[\"'`]|%22)(?P<value>(?:(?!%22)[!#-&(-\[\]-_a-~]){6,512})(?P=quote)"
)
_IN_LINE = re.compile(
    rb"(?P<value>[!#-&*-;<-Z^_a-z|~]{5,511}[!#-&*+./-:<-Z^_a-z|~-])(?=[,;]{0,2}(?:[\x00-\x20\\\"'`]|\Z))"
)
_IN_CONNECTION = re.compile(rb"(?P<value>[!#-&(-:<-Z^_a-z|~]{6,512})(?=[;\x00-\x20\\\"'`]|\Z)")
_IN_ELEMENT = re.compile(rb"(?P<value>[!-;=-~]{6,512})(?=\\{0,3}</)")
_IN_URL = re.compile(
    rb"(?P<value>[!*.0-9A-Z_a-z~-][!%*.0-9A-Z_a-z~-]{5,512}?)(?=%2[26C]|%7D|%0|[^!%*.0-9A-Z_a-z~-]|\Z)"
)
_IS_LITERAL = re.compile(rb"[rbfuRBFU]{0,2}\\{0,16}[\"'`]")
_GLUED_3 = re.compile(rb"\A(?:\\?u[0-9A-Fa-f]{4}|[\w.]{0,40}-[0-9]{1,6}-)(?=[A-Za-z_])")
_NOT_NAMED = re.compile(rb"[A-Z]\w*::[A-Z]\w*::\Z|:[0-9]{12}:\Z|page \Z|docs\.google\.com/\S*\Z")
_COMPOSED = re.compile(rb"[A-Za-z0-9]+[_.-][A-Za-z0-9]|[a-z]+[A-Z]")
_CALLED = re.compile(rb"\w\(\s{0,2}\\{0,16}[\"'`]\Z")
_SETTER = re.compile(rb"(?i)(?:.*\.)?(?:set|with)_?\w*pass")
_SET = re.compile(rb"(?:setx|set (?:-g?x|-x -g)|setenv|ENV) +\Z")
_LINE_STARTS = re.compile(rb"(?:\A|[0-9;\[]m|\\[nrt]|\\u2192|(?:\A|\n|\\n)[+-]|[\w.]:[0-9]{1,6}:)\Z")
_CALL = rb"(?!(?:[A-Za-z_][A-Za-z_.]{0,99}|[A-Za-z_][\w.]{0,60}?[A-Za-z_]{3}[\w.]{0,60}|md5)\()"
_IN_ENVIRONMENT = re.compile(
    _CALL + rb"(?P<value>(?:[!#-&(-\[\]-_a-~]|[\xc3-\xd1][\x80-\xbf]){5,511}"
    rb"(?:[!#-&(-+./-:<-\[\]-_a-~-]|[\xc3-\xd1][\x80-\xbf]))(?=[,;]{0,2}(?:[\x00-\x20\\\"'`]|\Z))"
)
_PHRASE = re.compile(
    rb"(?P<quote>\\{0,16}[\"'])(?P<value>(?:[ !#-&(-\[\]-_a-~]|[\xc3-\xd1][\x80-\xbf]){6,128}?)(?P=quote)"
)
_MIXED_RUNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+")
_CAMEL = re.compile(rb"(?:[A-Z]?[a-z]{2,}|[A-Z]{1,4}(?![a-z])|[0-9]+|[_-])+")
_ALONE = (b"\n", b" ", b"\t", b"\x92", b"`", b"'", b'"', b"+", b"-", b".", b":")
_MARKED = (b"?", b"&", b">", b"%", b";")
_HARMLESS_3 = re.compile(r"starting|clienttoken|s3key|bucketkey|resourcekey|updatetoken")
_ALONE_ON_LINE = re.compile(rb"[,;)]{0,2}[ \t]*(?:\\{0,15}[rn\"']|[\r\n\"'`]|\Z)")
_CHAIN = re.compile(rb"[A-Za-z_$][\w$]*(?:\.[\w$]+)+=|.*@entry=0x")
_NO_BARE = re.compile(rb":.*|-[a-z-]+(?:=\w*)?|[A-Za-z]+=|\*+\w+\**")
_KNOWN_PLAIN = re.compile(
    rb"arn:aws|amzn1\.|(?:npm:|workspace:|[~^<>=]{1,2})?v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+.][\w.+-]*)?\Z|0x[0-9a-fA-F]{1,8}\Z"
    rb"|MFkwEwYH|MIIBIjAN|MIGfMA0G|MCowBQYD|AAAA[BCE]3Nza|(?:[a-z]\w*\.){2,}[a-z_]\w*\Z"
)
_MARKUP = re.compile(rb"[*_~`]*[A-Za-z]+[*_~`]*")
_GROUPS = re.compile(rb"(?:[A-Za-z]{3,}[0-9]{0,4}){0,3}|[0-9]{1,2}[a-z]{1,3}|[0-9]+")
_SHORT = re.compile(rb"[0-9]{1,2}[a-z]{1,3}")
_TYPE = re.compile(rb"(?:[A-Z][a-z]?[0-9]{1,5}|[a-z]{2,}[0-9]{0,3})?(?:[A-Z][a-z]{2,}[0-9]{0,5}){1,6}")
_SEPARATORS = re.compile(rb"[^A-Za-z0-9]+")
_GLUED = re.compile(rb"\A(?:\\[nrtbf]|[\[;][0-9;]*m|[^A-Za-z0-9_.-])")
_PASS = re.compile(rb"(?i)_pass\Z")
_SHELL_PASS = re.compile(r"[a-z0-9]{2,}(?<!by)(?<!com)(?<!sur)pass")  # tests end with PASS, XPASS and KPASS
_SHELL_ENDINGS = ("salt", "credentials", "secretenv")
_SHELL_PASSWORDS = ("redisauth", "rediscliauth")
_PW = re.compile(rb"(?:(?:\A|[_.-])(?i:pw)|[a-z]P[Ww]|(?i:bind|root|admin|db|user|login|ssh|ftp|smtp|sudo)(?i:pw))\Z")
_MEASURE = re.compile(rb"[0-9][0-9.,]*[A-Za-z%/]{1,8}")
_WORD = re.compile(rb"[A-Za-z]*[0-9]{0,4}|[0-9]+")
_MEMBER = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_AWS_SECRET = re.compile(rb"[A-Za-z0-9/+]{40}")
_PATH = re.compile(rb"[~.]{0,2}(?:/[\w.@+-]+)+/?|[\w.@+-]+(?:/[\w.@+-]+)*\.[a-z]{2,5}")
_MADE_UP = re.compile(
    rb"(?i)x{4}|\*{3}|\.{3}|\$\{|\{\{|\$\(|%[sd]\b|^[<\[{$]|redacted|placeholder|changeme|process\.env|os\.environ"
    rb"|getenv|(?:^|[^a-z])(?:your|example|change[-_]me|dummy|insert|replace|todo)(?:[^a-z]|$)"
)
_COMMON_PASSWORDS = frozenset(
    b"password pass passwd pwd secret user username root admin guest token test example postgres mysql mongo redis "
    b"rabbitmq localhost hunter changeme string null none true false undefined".split()
)
_ABOUT_SECRETS = re.compile(rb"(?i)passw|secret|token|key|field|input|label")
_SPECIAL = frozenset(b"!@#$%^&*?+=~")


class Assigned(NamedTuple):
    """The value at `start` to `end`: a secret of a kind, as its name says and its looks confirm."""

    start: int
    end: int
    kind: str


class Naming(NamedTuple):
    """What a name says of its value; a `weak` name needs a value that looks random."""

    kind: str
    password: bool = False
    weak: bool = False
    shell: bool = False
    strong: bool = False


def find_assigned(data: bytes, version: int) -> Iterator[Assigned]:
    """The secrets of a text that stand after a name, in order, never overlapping, by the rules of a version."""
    done = 0
    ends = _NAME_END_4 if version >= _BELOW else _NAME_END_3 if version >= _WIDER else _NAME_END
    lower = data.lower()
    rare = any(name in data for name in _RARE_NAMES) or (version >= _LISTED and b"salt" in lower)
    if version >= _WIDER and rare:
        ends = _NAME_END_RARE[min(version, _BELOW)]
    if version >= _SHORT_NAMED:
        ends = _NAME_END_7[rare]
    for found in ends.finditer(lower):
        if found.start() < done:
            continue
        name = _whole_name(data, found.start(), found.end("word"))
        place = _place(data, found, name) if version >= _WIDER else _Place(name, flag=name.startswith(b"--"))
        if place is None or not (found["sign"] or place.flag):
            continue
        if version >= _BELOW and found["below"] is not None:
            place = place._replace(below=True)
            if not found["sign"]:
                continue
        naming = naming_of(place.name, version)
        value = None if naming is None else _value(data, found.end(), naming, place, version)
        if value is not None and found["word"] == b"pw" and _MEASURE.fullmatch(value["value"]):
            continue
        if naming is not None and value is not None:
            done = value.end("value")
            yield Assigned(value.start("value"), done, naming.kind)


class _Place(NamedTuple):
    """Where a value is looked for: behind a `name`, and maybe behind a `flag`, as an element that only a literal can be
    (`quoted`), or from a mark of `before` on up to the next one, or on the line `below`."""

    name: bytes
    flag: bool = False
    quoted: bool = False
    before: bytes = b""
    below: bool = False


def _place(data: bytes, found: re.Match[bytes], name: bytes) -> _Place | None:
    """The place of a value in the forms that came with version 3, or None where there can be none."""
    name = _GLUED_3.sub(b"", name)
    head = data[max(0, found.end("word") - len(name) - 64) : found.end("word") - len(name)]
    sign = found["sign"]
    if _NOT_NAMED.search(head):
        return None
    if sign == b",":
        called = (
            found["quote"] and _CALLED.search(head) and _COMPOSED.match(name) and _IS_LITERAL.match(data, found.end())
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


@lru_cache(maxsize=1024)
def naming_of(name: bytes, version: int) -> Naming | None:
    """What a name says of its value, or None where it promises no secret."""
    plain = _SEPARATORS.sub(b"", name.lower()).decode("ascii", "replace")
    shell = name.isupper()
    strong = next((kind for ending, kind in STRONG_ENDINGS if plain.endswith(ending)), None)
    if version >= _WIDER:
        strong = "password" if plain.endswith("passphrase") or (shell and _SHELL_PASS.fullmatch(plain)) else strong
        strong = "secret" if shell and plain.endswith(_SHELL_ENDINGS) else strong
        if version >= _SHORT_NAMED and (_PW.search(name) or (shell and plain.endswith(_SHELL_PASSWORDS))):
            strong = "password"
        if strong != "password" and _HARMLESS_3.search(plain):
            return None
    if strong is None and _PASS.search(name):
        strong = "password"
    if strong == "password":
        return Naming(strong, password=True, shell=shell)
    weak = next((kind for ending, kind in WEAK_ENDINGS if plain.endswith(ending)), None)
    weak = weak or ("secret" if version >= _LISTED and plain.endswith("salt") else None)
    kind = strong or weak
    if kind is None or ("secret" not in kind and HARMLESS_NAMES.search(plain)):
        return None
    vendor = next((kind for part, kind in VENDORS if part in plain), None)
    known = strong is not None or vendor is not None
    return Naming(vendor or kind, weak=not (known or shell), shell=shell, strong=known)


def is_secret_literal(value: bytes, naming: Naming, version: int) -> bool:
    """Whether a whole literal, such as a string of a JSON document, is the secret its name promises."""
    literal = _FOREIGN if version >= _WIDER and naming.shell else _LITERAL
    if not literal.fullmatch(value) or (version >= _WIDER and value.isascii() and _is_plain(value, naming)):
        return False
    if naming.strong and not value.isascii():
        return min(_classes(value)[:2]) > 0 and not is_made_up(value)
    return is_password(value) if naming.password else _is_token(value, naming, version)


def is_made_up(value: bytes) -> bool:
    """Whether a value is a placeholder or a template, and not something anybody could use."""
    return _MADE_UP.search(value) is not None or value.lower() in _COMMON_PASSWORDS


def is_words(value: bytes) -> bool:
    """Whether a value is words, perhaps with short numbers after them: a name, and nothing random."""
    return all(_WORD.fullmatch(part) for part in _SEPARATORS.split(value))


def is_password(value: bytes) -> bool:
    """Whether a value in the place of a password is likely to be one."""
    if len(value) < 6 or is_made_up(value) or b"://" in value or _PATH.fullmatch(value):
        return False
    if is_words(value) and _ABOUT_SECRETS.search(value):
        return False
    letters, digits, special = _classes(value)
    return letters > 0 and (digits > 0 or special > 0)


def _whole_name(data: bytes, start: int, end: int) -> bytes:
    """The name whose last word is given, without what an escape or a terminal colour glued to its front."""
    before = data[max(0, start - 48) : start]
    stem = before.rstrip(_NAME_BYTES)
    return _GLUED.sub(b"", stem[-1:] + before[len(stem) :] + data[start:end])


def _is_token(value: bytes, naming: Naming, version: int) -> bool:
    if naming.kind == "aws-secret-key" and _AWS_SECRET.fullmatch(value):
        return not is_words(value)
    shortest = 10 if naming.kind == "secret" else 16
    if version >= _WIDER and naming.strong and _is_mixed(value):
        shortest = 12
    if len(value) < shortest or is_made_up(value) or b"://" in value or _PATH.fullmatch(value) or is_words(value):
        return False
    letters, digits, _ = _classes(value)
    if naming.weak:
        mixed = value.lower() != value and value.upper() != value
        return len(value) >= 20 and mixed and digits >= 3 and _entropy(value) >= 3.5
    if naming.kind == "token" and _UUID.fullmatch(value):
        return False
    return letters > 0 and digits > 0 and len(set(value)) >= 4


def _value(data: bytes, start: int, naming: Naming, place: _Place, version: int) -> re.Match[bytes] | None:
    """The value at an offset, if it looks the more like a secret the less it is marked as a literal."""
    quoted = (_QUOTED_3 if version >= _WIDER else _QUOTED).match(data, start)
    if quoted is not None:
        return quoted if is_secret_literal(quoted["value"], naming, version) else None
    if version >= _WIDER and naming.shell and (phrase := _PHRASE.match(data, start)) is not None:
        return phrase if _is_phrase(phrase["value"], naming, version) else None
    if place.quoted:
        return None
    bare = _bare(data, start, naming, place) if version >= _WIDER else _BARE.match(data, start)
    if bare is None or not is_secret_literal(bare["value"], naming, version) or _MEMBER.fullmatch(bare["value"]):
        return None
    if version >= _WIDER and (_CHAIN.match(bare["value"]) or _NO_BARE.fullmatch(bare["value"])):
        return None
    if place.below:
        return bare if _is_alone(data, bare, naming) else None
    if naming.shell or place.flag or place.before in _MARKED:
        return bare
    _, digits, special = _classes(bare["value"])
    random = digits >= 3 or (naming.password and special > 0) or (version >= _WIDER and _is_mixed(bare["value"]))
    return bare if random and len(set(bare["value"])) >= 8 else None


def _is_alone(data: bytes, bare: re.Match[bytes], naming: Naming) -> bool:
    """Whether a value on a line of its own is random, and no key of a document or word of a text."""
    value = bare["value"]
    if not _ALONE_ON_LINE.match(data, bare.end("value")) or value[:1] in b"-:" or value[-1:] in b":=(":
        return False
    return _is_mixed(value) or (naming.password and min(_classes(value)) > 0 and not set(value) & set(b":=("))


def _bare(data: bytes, start: int, naming: Naming, place: _Place) -> re.Match[bytes] | None:
    """A value without quotes, up to where its place ends."""
    if place.before == b">":
        return _IN_ELEMENT.match(data, start)
    if place.before == b"%":
        return _IN_URL.match(data, start)
    if naming.password and place.before == b";":
        return _IN_CONNECTION.match(data, start) or _BARE.match(data, start)
    if naming.shell and place.before in _ALONE[:7]:
        return _IN_ENVIRONMENT.match(data, start) or _BARE.match(data, start)
    if naming.password and place.before in _ALONE:
        return _IN_LINE.match(data, start) or _BARE.match(data, start)
    return _BARE.match(data, start)


def _is_mixed(value: bytes) -> bool:
    """Whether letters of both cases and digits take turns in a value as in none that is made of words."""
    runs = [run[:1] for run in _MIXED_RUNS.findall(value)]
    kinds = {(run.isdigit(), run.isupper()) for run in runs}
    return len(kinds) == 3 and len(runs) >= 7 and not _CAMEL.fullmatch(value)


def _is_phrase(value: bytes, naming: Naming, version: int) -> bool:
    """Whether a value in quotes, with spaces or letters that are not ASCII, is a secret and not what people read."""
    if b" " not in value:
        return is_secret_literal(value, naming, version)
    if not naming.password or b"$" in value or _ABOUT_SECRETS.search(value) or not is_password(value):
        return False
    return any(not _WORD.fullmatch(part) and min(_classes(part)[:2]) > 0 for part in value.split(b" "))


def _is_plain(value: bytes, naming: Naming) -> bool:
    """Whether a value is one of those that are known for being no secret: names, versions, public keys."""
    if _KNOWN_PLAIN.match(value):
        return True
    if naming.password:
        return _MARKUP.fullmatch(value) is not None
    if naming.weak and all(_GROUPS.fullmatch(part) for part in _SEPARATORS.split(value)):
        return True
    parts = _SEPARATORS.split(value.replace(b"%20", b" "))
    return all(_WORD.fullmatch(part) or _SHORT.fullmatch(part) for part in parts) or _TYPE.fullmatch(value) is not None


def _classes(value: bytes) -> tuple[int, int, int]:
    """How many letters, digits and marks that no identifier has a value holds."""
    digits = sum(48 <= byte <= 57 for byte in value)
    letters = sum(65 <= byte & 0xDF <= 90 for byte in value)
    return letters, digits, sum(byte in _SPECIAL for byte in value)


def _entropy(value: bytes) -> float:
    """Bits for a byte of the value, by its own frequencies."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())
