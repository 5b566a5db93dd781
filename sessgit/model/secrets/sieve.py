"""All cues at once: which of them a text may hit, in one pass over it.

The cues, one after another over every line, are most of what looking for secrets costs. Vectorscan seeks all of them
together, in an eighth of the time. It has no lookarounds and takes a while to get ready: so what it seeks hits
wherever a cue does, and at times where none does, and it is made once as much was looked through as it takes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final

_WORTH = 3 << 20
"""So many bytes are looked through by the cues in the time in which Vectorscan gets ready."""


def _other_than(*words: str) -> str:
    """An expression for the end of whatever does not end with one of the words."""
    ends = {word[start:] for word in words for start in range(len(word) + 1)}
    allowed = []
    for end in sorted(ends - set(words)):
        longer = "".join(sorted({one[0] for one in ends if one and one[1:] == end}))
        allowed.append(f"(?:^|[^{longer}]){end}")
    return "(?:" + "|".join(allowed) + ")"


_NAME_ENDS = (
    r"(?:[_-]?(?:[0-9]{1,2}|env|prod|production|dev|development|test|staging|live|value|base|base64|b64))?"
    r"[\"'`\\\] \t%2]*"
)
_SIGN = (
    r"(?:[,;]?[\s\\nrt0-9\"'{}\xe2\x86\x92|+-]*value|[:=>]|,[ \t]?[\"'\\]|\([\"'\\]|%3[ad]"
    r"|[ \t][\"']?[a-z0-9_./+=-]{16})"
)

_NEXT = r"(?: |[\"'\\]+,)"

Coarse = Mapping[str, tuple[str, ...]]

COARSE: Final[Coarse] = {
    "_": (
        _other_than("toolu", "msg", "req") + "_[A-Za-z0-9]{16}",
        "[po]at_|_v1_|fm2_|glc_|figd_|hsec_|cret_|waka_|scale_|ntrys_|bb_live_|rzp_live_|rzp_test_|duffel_test_",
        "duffel_live_|_auth=|_authToken=|_access_key[ ,]|_pass|_PASS|REDIS(?:CLI)?_AUTH",
    ),
    "-": (
        r"(?:sk|xai|key|pul|KEY|xox[a-z]|xapp|pplx|pypi|tvly|NRAK|HRKU|PMAK|gldt|glrt|glft|v1\.0|glpat|glptt|glcbt|glimt"
        r"|glrtr|nvapi|tskey|CFPAT|glsoat|glffct|sq0[a-z]{3}|GOCSPX|glagent|llx|xkeysib|signkey|FLWSECK|FLWSECK_TEST"
        r"|scp-live|fio-u|tk-us|SWMTKN-1|access-production)-[A-Za-z0-9_-]{8}",
        r"fc-[0-9a-f]{16}|pat-(?:na|eu)[0-9]-|sdk-[0-9a-f]{6}|xa[ap]t-[0-9a-f]{6}|a[ks]-[A-Za-z0-9]{16}"
        r"|pa-[A-Za-z0-9_-]{24}|m0-[A-Za-z0-9]{16}|A3-[A-Z0-9]{6}-|API-[A-Z0-9]{12}|-Lines: [0-9]"
        r"|xoxd-[A-Za-z0-9%]{8}|-us[0-9]|-u(?:ser)?[ =]{1,2}[\\\"']{0,4}[^\s:\"'\\]+:",
        r"--(?:[a-z0-9]+-){0,3}(?:password|passwd|token|secret|key)[ \\\"']|sshpass -p|-[apu][\"'\\]+,"
        r"|-pass(?:in|out)?[ =][\\\"']{0,4}pass:|redis-cli [^\n]*-a",
        r"-(?:b|-cookie)[ =]{1,2}[\\\"']{0,4}[^\s=\"'\\]+=|-S <<<| -u[^\s:\"'\\]+:",
        r"-u [\\\"']{0,4}[^\s:\"'\\]+[\\\"']{0,4} [^\n]*-p|-U(?:[ =]|[\"'\\]+,)?[\\\"']*[^\s%\"']+%",
    ),
    "A": (
        "(?:SALT|CREDENTIALS)" + _NAME_ENDS + "[:=]",
        r"ATE KEY(?:---| BLOCK---)|ktdjEAAAA|IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC)",
        r"A(?:KIA|SIA|Iza|TATT3|TCTT3|TBB|BSK|KCp|QVN|ZDO|KID|ccountKey=|Q\.Ab8)|EZAK|:AA[A-Za-z0-9_-]{33}|:APA91b"
        r"|LTAI[A-Za-z0-9]{12}|[0-9a-f]NRAL|BSA[A-Za-z0-9_-]{24}|EAAA[A-Za-z0-9_-]{60}|EAA[A-Za-z0-9]{100}"
        r"|%3[Aa]AA[A-Za-z0-9_-]{33}",
    ),
    ".": (
        r"\.(?:pem|p8|ppk|key)[\"\\:\n]|\.ssh/id_|\.eyJ|\.slack\.com/|\.atlasv1\.|\.com/api/webhooks/|SG\.|dp\."
        r"|hv[sbr]\.|ya29\.|sl\.[A-Za-z0-9_.-]{100}|mlsn\.|\.[0-9a-f]{64}|dt0c01\.|\.office\.com/webhookb2/|amzn\.mws\.",
        r"\.[a-z]{2,12}(?:\t|\\+t)TRUE(?:\t|\\+t)/",
        r"\.[A-Za-z0-9_-]{16}\.[A-Za-z0-9_-]{16}|\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    "B": (
        r"B(?:earer|EARER|asic)[ \t\\\r\n]|-----BEGIN |LS0tLS1CRUdJTiB(?:SU0E|FQyB|PUEV|QUkl)",
        r"(?i)authorization[\"'\\\]]{0,8} {0,2}[:=]|7z[arz]?[ \"'\\, ]+[adeltux][^\n]*[ \"'\\]-p"
        "|zip" + _NEXT + r"[^\n]*-p",
        "(?:IDENTIFIED|password) BY ",
    ),
    "dapi": ("dapi[0-9a-f]{32}",),
    "cio": ("cio[A-Za-z0-9]{32}",),
    "@": (r":\\*/\\*/[^\s/:@\"'<>\[\]{}\\]*:[^\s@\"'\\]+@",),
    "%": (r"sig=[A-Za-z0-9%+/]{40}",),
    "~": (r"[0-9]Q~",),
    "key": (
        "(?i)k(?:ey|en)" + _NAME_ENDS + _SIGN,
        r"(?i)kinit |keychain[ \"'\\,]+-p|kie[\"'\\]* ?[:=]|ken\$|sk[0-9a-f]{32}|kty[\"'\\]+ ?:",
    ),
    "password": (
        "(?i)password|passwd|pwd|passphrase|pass=|pw" + _NAME_ENDS + "(?:" + _SIGN + "|[ \t][!-~]{4})",
        r"(?i)(?:require|store|key)pass[ \"'\\]|/pass:|openssl" + _NEXT + r"[^\n]*-(?:k|password)"
        r"|ldap[a-z]{3,8}" + _NEXT + r"[^\n]*-w|snmp[a-z]{3,9}" + _NEXT + r"[^\n]*-[axc]|ipmitool[^\n]*-p"
        r"|rdp [^\n]*/p:|p(?:link|scp)" + _NEXT + r"[^\n]*-pw",
    ),
    "secret": ("(?i)secret",),
    "auth": (r"auth\\*\" ?: ?\\*\"[A-Za-z0-9+/]{12}",),
    "cli": (
        r"\| ?(?:base64|(?:[a-z]+ )?sudo -S|[a-z]+ [^\n|]*-stdin)",
        r"mysql[a-z]{0,6}[ \"'\\]|login [^\n\\|]* -p",
        r"\| ?(?:sudo )?(?:(?:ch|smb|vnc|g)?passwd|kinit|cryptsetup)[ \n]|rclone obscure |net use",
        r"rabbitmqctl|(?:sqlcmd|mosquitto_)[^\n]*-P",
    ),
    "salt": (r"(?i)salt[\"'\\]*[ \t]{0,8}[:=]",),
    "pgpass": (r":5432:[^\s:]+:[^\s:]+:",),
}
"""By the name of a cue expressions without lookarounds: one of them hits wherever the cue does, of any version."""

Scan = Callable[[bytes], frozenset[str] | None]
"""From a text to the names of the searches that may hit it, of which most are none; None where it cannot say."""


class Sieve:
    """Says which searches may hit, from the moment on at which that is faster than to try them all."""

    def __init__(self, coarse: Coarse = COARSE) -> None:
        self._coarse = coarse
        self._left = _WORTH
        self._scan: Scan | None = None

    def likely(self, text: bytes) -> frozenset[str] | None:
        """The names of the searches that may hit the text; None where all of them are to be tried."""
        if self._scan is not None:
            return self._scan(text)
        self._left -= len(text)
        if self._left < 0:
            self._left = _WORTH
            self._scan = ready(made(self._coarse), self._coarse)
        return None

    def take(self, database: bytes) -> None:
        """Is ready at once, with what `made` returned in another process on this machine."""
        self._scan = ready(database, self._coarse)


def made(coarse: Coarse = COARSE) -> bytes:
    """What Vectorscan seeks by, compiled for this machine; empty where it is not at hand."""
    try:
        import hyperscan
    except ImportError:  # there are machines that it is not made for
        return b""
    every = [pattern.encode("latin-1") for patterns in coarse.values() for pattern in patterns]
    database = hyperscan.Database()
    try:
        database.compile(
            expressions=every,
            ids=list(range(len(every))),
            elements=len(every),
            flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(every),
        )
        return hyperscan.dumpb(database)
    except hyperscan.error:
        return b""


def ready(database: bytes, coarse: Coarse = COARSE) -> Scan | None:
    """What looks through texts by what was `made`; None where that is empty."""
    if not database:
        return None
    import hyperscan

    names = [name for name, patterns in coarse.items() for _ in patterns]
    loaded = hyperscan.loadb(database, hyperscan.HS_MODE_BLOCK)
    loaded.scratch = hyperscan.Scratch(loaded)
    scan, failed, alone, none = loaded.scan, hyperscan.error, Lock(), frozenset[str]()

    def hit(number: int, _begin: int, _end: int, _flags: int, found: object) -> None:
        assert isinstance(found, list)
        found.append(names[number])

    def likely(text: bytes) -> frozenset[str] | None:
        if not alone.acquire(blocking=False):
            return None  # another thread is at it: with one scratch for both, Vectorscan may never come to an end
        try:
            found: list[str] = []
            scan(text, hit, 0, found)
        except failed:
            return None
        finally:
            alone.release()
        return frozenset(found) if found else none

    return likely
