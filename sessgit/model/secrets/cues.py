"""Fast searches over every line: what none of them hits holds no secret.

Expressions are for bytes and match ASCII only, so that a cut never falls inside a character. They are compiled on first
use: most sessions hold no secret.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from sessgit.model.secrets import commands, later
from sessgit.model.secrets.sieve import Sieve

_TAIL = later.TAIL.replace("?P<quote>", "?:")
# Every value that is taken for a secret has a digit or a sign, and most code after such a name has none.
_VALUE = (
    "(?:" + later.PAIR + "|" + later.TYPED + r"|=>|:=|={1,3}|:|,(?=[ \t]?[\"'\\])|>|\((?=[\"'\\])|%3a|%3d)[ \t]{0,8}"
    r"(?:%20)?(?:%22)?[rbfu]{0,2}\\{0,16}[\"'`]?[^\s\"'\\`]{0,120}?[0-9!@#$%^&*?+=~]"
)
_WORD = r"[ \t][\"']?(?=[^\s\"'\\]{0,64}[0-9])[a-z0-9_./+=-]{16}"


@dataclass(frozen=True, slots=True)
class Cue:
    """A fast search that has to succeed before the rules that name it are tried; several may share a name.

    It is run over every line, raw. So it begins with one rare literal character, which the expression engine seeks
    several times faster than it tries an alternation of prefixes, and looks back for what is before; or a `sign`
    that most lines lack is asked for first. It hits texts, and the JSON strings `JSON.stringify` makes of them.
    """

    name: str
    pattern: str
    sign: bytes = b""
    lower: bool = False
    since: int = 1
    """The version of the rules that it came with."""


CUES = (
    # An underscore and 16 letters or digits: most prefixed tokens, and few other things but the client's ids.
    Cue(
        "_",
        r"_(?:(?=[A-Za-z0-9]{16})(?<!toolu_)(?<!msg_)(?<!req_)|(?<=[po]at_|_v1_|fm2_|glc_)"
        r"|(?<=figd_|hsec_|cret_|waka_)(?=[A-Za-z0-9_+/-]{20})|(?<=scale_|ntrys_)|(?<=bb_live_)"
        r"|(?<=rzp_live_|rzp_test_)|(?<=duffel_test_|duffel_live_)|auth=|authToken=|key[ ,](?<=_access_key.)"
        r"|(?:pass|PASS)" + _TAIL + _VALUE + ")",
    ),
    Cue(
        "-",
        r"-(?:(?<=[abcekinoprstuxlyIKTUXY013]-)(?=[A-Za-z0-9_-]{20})(?:(?<=sk-)|(?<=fc-)[0-9a-f]{32}"
        r"|(?<=xai-|key-|pul-|KEY-)|(?<=xox[a-z]-|xapp-|pplx-|pypi-|tvly-|NRAK-|HRKU-|PMAK-|gldt-|glrt-|glft-|v1\.0-)"
        r"|(?<=glpat-|glptt-|glcbt-|glimt-|glrtr-|nvapi-|tskey-|CFPAT-)|(?<=glsoat-|glffct-|sq0[a-z]{3}-|GOCSPX-)"
        r"|(?<=glagent-)|(?<=pat-)(?:na|eu)[0-9]-|(?<=llx-)|(?<=sdk-)[0-9a-f]{8}-|(?<=xa[ap]t-)[0-9a-f]{8}-"
        r"|(?<=xkeysib-|signkey-|FLWSECK-)|(?<=FLWSECK_TEST-)|(?<=a[ks]-)[A-Za-z0-9]{22}(?![A-Za-z0-9_-])"
        r"|(?<=pa-)[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])|(?<=m0-)[A-Za-z0-9]{40}|(?<=scp-live-)|(?<=fio-u-|tk-us-)|(?<=A3-)[A-Z0-9]{6}-|(?<=API-)[A-Z0-9]{26}"
        r"|(?<=SWMTKN-1-)|(?<=access-production-))|Lines: [0-9]|(?<=xoxd-)[A-Za-z0-9%]{20}|us[0-9]"
        r"|u(?:ser)?[ =]{1,2}[\\\"']{0,4}[^\s:\"'\\]{1,64}:"
        r"|(?<=--)(?:[a-z0-9]+-){0,3}(?:password|passwd|token|secret|key)[ \\\"']"
        r"|p(?<=sshpass -p)|pass(?:in|out)?[ =][\\\"']{0,4}pass:|cli (?<=redis-cli )[^\n]{0,160}?-a"
        r"|(?:b|-cookie)[ =]{1,2}[\\\"']{0,4}[^\s=\"'\\]{1,64}=)",
    ),
    Cue(
        "A",
        r"A(?:KIA|SIA|Iza|TATT3|TCTT3|TBB|BSK|KCp|QVN|ZDO|(?<=EZA)K|ccountKey=|(?<=:A)A[A-Za-z0-9_-]{33}"
        r"|KID|Q\.Ab8|(?<=:A)PA91b|(?<=LTA)I[A-Za-z0-9]{12}|(?<=[0-9a-f]NRA)L|(?<=BSA)[A-Za-z0-9_-]{24,28}(?![A-Za-z0-9_-])"
        r"|(?<=EA)AA[A-Za-z0-9_-]{60}(?![A-Za-z0-9_-])|(?<=EAA)[A-Za-z0-9]{100})",
    ),
    Cue(
        ".",
        r"\.(?:eyJ|slack\.com/|atlasv1\.|com/api/webhooks/|(?<=SG\.)|(?<=dp\.)|(?<=hv[sbr]\.)|(?<=ya29\.)"
        r"|(?<=sl\.)(?=[A-Za-z0-9_.-]{100})|(?<=mlsn\.)|(?=[0-9a-f]{64})|(?<=dt0c01\.)|office\.com/webhookb2/"
        r"|(?<=amzn\.mws\.)|[a-z]{2,12}(?:\t|\\+t)TRUE(?:\t|\\+t)/"
        r"|(?=[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{16,8192}\.[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-]))"
        r"|(?=[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}))",
    ),
    Cue(
        "B",
        r"B(?:(?:earer|EARER|asic)[ \t\\]t?[A-Za-z0-9_.~+/=-]{8}|(?<=-----B)EGIN "
        r"|(?<=LS0tLS1CRUdJTiB)(?:SU0E|FQyB|PUEV|QUkl))",
    ),
    Cue("dapi", r"dapi[0-9a-f]{32}"),
    Cue("cio", r"cio[A-Za-z0-9]{32}"),
    Cue("@", r":\\{0,15}/\\{0,15}/[^\s/:@\"'<>\[\]{}\\]{0,64}:[^\s@\"'\\]{1,128}@", b"@"),
    Cue("%", r"sig=[A-Za-z0-9%+/]{40}", b"%"),
    Cue("~", r"~(?<=[0-9]Q~)", b"~"),
    Cue(
        "key",
        r"k(?:(?:ey|en)(?:" + _TAIL + _VALUE + "|" + _WORD + r")|ie[\"'\\]{0,9} ?[:=]|en\$|(?<=sk)[0-9a-f]{32}"
        r"|ty[\"'\\]{1,9} ?:)",
        lower=True,
    ),
    Cue(
        "password",
        r"p(?:(?:assw(?:or)?d|wd)"
        + _TAIL
        + "(?:"
        + _VALUE
        + r"|(?<=[ \t])[!-~]{4})|ass(?:phrase|=[\"'\\]{0,9}[^\s\"'\\]{0,64}?[0-9!@#$%^&*?+=~]))",
        lower=True,
    ),
    Cue(
        "secret",
        r"secret(?:"
        + _TAIL
        + _VALUE
        + "|"
        + _WORD
        + r"|(?<=kind: secret)|(?<=kind: .secret)|(?<=kind.:.secret)|(?<=kind.: .secret)"
        r"|(?<=kind..:..secret)|(?<=kind..: ..secret)|(?<=kind....:....secret)|(?<=kind....: ....secret))",
        lower=True,
    ),
    Cue(
        "B",
        r"z(?<=authoriz)ation[\"'\\\]]{0,8} {0,2}[:=] {0,2}[\"'\\]{0,4}(?:[a-z-]{3,9} {1,2})?[a-z0-9_.~+/=-]{8}",
        lower=True,
    ),
    Cue("auth", r"auth\\{0,15}\" ?: ?\\{0,15}\"[A-Za-z0-9+/]{12}", b"auths"),
    *(Cue(*one) for one in later.CUES),
    *(Cue(*one, since=7) for one in commands.CUES),
)

NAME_CUES = frozenset(("_", "-", "key", "password", "secret"))
"""The cues after which values are looked for by the names before them."""
NAME_CUES_4 = NAME_CUES | {"A"}
"""The same from version 4 on."""
NAME_CUES_5 = NAME_CUES_4 | {"salt"}
"""The same from version 5 on."""

_PARTS = ((4, later.FROM_4), (5, later.FROM_5), (7, commands.FROM_7))
_INNER = 7
"""The version of the rules with which there is a cue within another one."""
_WINDOW = 1 << 20
_OVERLAP = 1 << 14
_KEPT = 256
"""So many choices of cues are remembered."""
_SIEVE = Sieve()


def has_cue(text: bytes, version: int) -> bool:
    """False only if no rule of a version would change the text, or a string of the JSON line."""
    likely = _SIEVE.likely(text)
    if likely is not None and not likely:
        return False
    exact, folded = _searches(version, likely)
    for _, sign, search in exact:
        if (not sign or sign in text) and search(text):
            return True
    for lower in _lower(text) if folded else ():
        for _, sign, search in folded:
            if (not sign or sign in lower) and search(lower):
                return True
    return False


def prepare(made: bytes) -> None:
    """Gets ready to look through much, with what `sieve.made` made in another process."""
    _SIEVE.take(made)


def cues_of(text: bytes, version: int) -> set[str]:
    """The names of the cues of a version that a text holds."""
    exact, folded = _searches(version, _SIEVE.likely(text))
    found = {name for name, sign, search in exact if (not sign or sign in text) and search(text)}
    for lower in _lower(text) if folded else ():
        found |= {name for name, sign, search in folded if (not sign or sign in lower) and search(lower)}
    inner, outer, pattern = commands.INNER
    if version >= _INNER and outer in found and any(compiled(pattern).search(lower) for lower in _lower(text)):
        found.add(inner)
    return found


def _lower(text: bytes) -> Iterator[bytes]:
    """The text in lower case, a very long one in pieces that overlap: it may be as large as all else in memory."""
    if len(text) <= _WINDOW:
        yield text.lower()
        return
    for start in range(0, len(text), _WINDOW):
        yield text[start : start + _WINDOW + _OVERLAP].lower()


_Search = tuple[str, bytes, Callable[[bytes], object]]


@lru_cache(_KEPT)
def _searches(version: int, likely: frozenset[str] | None) -> tuple[tuple[_Search, ...], tuple[_Search, ...]]:
    """The cues of a version that are for texts as they are, and those for texts in lower case; of these names only,
    where names are given."""
    cues = [cue for cue in CUES if cue.since <= version and (likely is None or cue.name in likely)]
    found = [(cue.lower, (cue.name, cue.sign, compiled(_of(cue.pattern, version)).search)) for cue in cues]
    return tuple(one for lower, one in found if not lower), tuple(one for lower, one in found if lower)


def _of(pattern: str, version: int) -> str:
    for since, parts in _PARTS:
        for old, new in parts if version >= since else ():
            pattern = pattern.replace(old, new)
    return pattern


@cache
def compiled(pattern: str) -> re.Pattern[bytes]:
    """The bytes expression of a pattern."""
    return re.compile(pattern.encode("ascii"))
