"""The rules: what each kind of secret looks like, and the check that tells a match from what only looks like one.

Formats are public facts of the services that issue the tokens. Patterns are for bytes and match ASCII only, so that a
replacement never splits a character. What a rule may rely on: a match that begins with a letter or digit follows none
(`engine.py`), and rules are tried in the order of the table, so specific kinds come before general ones.

Examples are templates, so that no scanner takes this file for a leak: `<36>` is 36 random letters and digits,
`<32 hex>` and `<26 upper>` are of the named characters (`tests/redaction_examples.py` has all names), and `«…»` is the
part that is replaced where that is not the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sessgit.redact import checks


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `pattern` finds a secret of the kind, its group `secret`, if it has one, is what is replaced.

    `examples` must be replaced, texts in `harmless` must stay. `anchor` is the prefilter that is generated from the
    pattern; it is written by hand only where a pattern begins with what nearly every text has.
    """

    kind: str
    pattern: str
    check: Callable[[bytes], bool]
    examples: tuple[str, ...]
    harmless: tuple[str, ...]
    anchor: str
    near: str
    """A pattern that has to match somewhere in the same text."""


NEXT_LINE = (
    r"(?:\\{1,15}r)?(?:\\{1,15}n|\\?\r?\n)"
    r"(?:[ \t]{0,8}[0-9]{1,6}(?:\xe2\x86\x92|\\{0,15}\t|\\{1,15}t|\\{1,15}u2192))?(?:[ \t+]|\\{1,8}t){0,40}"
)
"""The end of a line and the beginning of the next one, with what a tool puts there."""

_PARTS: dict[str, str] = {
    "UUID": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "END": r"(?![A-Za-z0-9])",
    "BEGIN_KEY": r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----",
    # What a tool puts between two lines of a key: line numbers, marks of a diff, quotes.
    "KEY_LINE": (
        r"(?:(?:\\{1,8}[nr])+[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}(?:\\{1,8}(?:u2192|t)|[^A-Za-z0-9+/=]{0,6})"
        r"|[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}[^A-Za-z0-9+/=]{1,6})"
    ),
    "HOST": r"@(?=[A-Za-z0-9_.-]+(?:[:/?,\s\"'\\)\]>;&`\x1b]|\Z))",
    "URL": r":\\{0,15}/\\{0,15}/[^\s/:@\"'<>\[\]{}\\]{0,64}:",
    "GAP": r"(?:\s|\\+[nrt]|[0-9]{1,6}(?:\xe2\x86\x92|\\+u2192|\\*\t))",
    "NEXT_LINE": NEXT_LINE,
    "SESSION_COOKIE": (
        r"[^\s=;\"'\\]{0,32}(?:sess|sid|auth|token|jwt)[^\s=;\"'\\]{0,32}=(?P<secret>[A-Za-z0-9%._~+/=:-]{16,4096})"
    ),
    "HEADER": r"(?i)authorization[\"'\\\]]{0,9} {0,2}[:=,] {0,2}[\"'\\]{0,9}",
    # Between two words of a command that are no options, in a line and in a list in a text.
    "THEN": r"(?: |\\{0,16}[\"'],[ \t\n]{0,40}\\{0,16}[\"'])",
    "QUOTES": r"[\\\"']{0,8}",
    "ANY_PASSWORD": r"[^\x00-\x20\x7f\"'\\`|<>]{4,128}",
    "ANY_SECRET": r"{QUOTES}(?P<secret>{ANY_PASSWORD})",
    # No variable, template or mark: another option after one of these may hold a password.
    "PASSWORD": r"(?![$\[<{%]){ANY_PASSWORD}",
    "SECRET": r"{QUOTES}(?P<secret>{PASSWORD})",
    "WITHIN": r"[^\n|;&]{0,200}?",
    "WORD": r"(?: {1,4}[^\s|;&<>]{1,128})",
    "OPTION": r"(?: {1,4}-[A-Za-z0-9]{1,8}(?: {1,4}[0-9]{1,6}(?= ))?)",
    "COMMAND": r"(?<![._-])",
    # Commands that read passwords from what is piped to them.
    "STDIN": r"(?:(?:ch|smb|vnc|g)?passwd|kinit|cryptsetup)",
    "ECHO": r"(?:echo|printf)(?: -[a-zA-Z]{1,3})? {QUOTES}",
    "HTPASSWD": r"{COMMAND}htpasswd(?:\.exe)?(?={OPTION}{0,5} {1,4}-[A-Za-z0-9]{0,7}b)",
    "PRINTS": r"{OPTION}{0,5} {1,4}-[A-Za-z0-9]{0,7}n",
}
"""What patterns have in common: `{UUID}` in a pattern, or in another part, stands for the part of that name."""
_PART = re.compile(r"\{([A-Z_]+)\}")


def _rule(
    kind: str,
    pattern: str,
    *examples: str,
    check: Callable[[bytes], bool] = checks.is_issued,
    harmless: tuple[str, ...] = (),
    anchor: str = "",
    near: str = "",
) -> Rule:
    while _PART.search(pattern):
        pattern = _PART.sub(lambda part: _PARTS[part[1]], pattern)
    return Rule(kind, pattern, check, examples, harmless, anchor, near)


_random_rule = partial(_rule, check=checks.is_random_token)
"""A token whose prefix an identifier may have too."""
_command_rule = partial(_rule, "cli-password", check=checks.is_password)
_password_rule = partial(_rule, "password", check=checks.is_password)


KEYS = (
    _rule(
        "private-key",
        r"{BEGIN_KEY}(?P<secret>(?:(?!-----(?:BEGIN|END) )[\s\S]){40,20000}?)(?=-----END )",
        "-----BEGIN RSA PRIVATE KEY-----«\n<64 base64>\n<64 base64>\n»-----END RSA PRIVATE KEY-----",
        check=checks.is_armored,
        harmless=("if '-----BEGIN PRIVATE KEY-----' in text and '-----END PRIVATE KEY-----' in text: pass",),
        anchor="-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    _rule(  # a file that was cut, with what a tool puts before each of its lines
        "private-key",
        r"{BEGIN_KEY}(?P<secret>(?:{KEY_LINE}[A-Za-z0-9+/=]{40,76}(?![A-Za-z0-9+/=]))+"
        r"(?:{KEY_LINE}(?:[A-Za-z0-9+/]{16,76}|[A-Za-z0-9+/]{1,75}={1,2})(?![A-Za-z0-9+/=]))?)",
        "-----BEGIN EC PRIVATE KEY-----«\n   12\u2192<64 base64>\n   13\u2192<64 base64>»\n$ ",
        anchor="-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    _rule(
        "private-key",
        r"{BEGIN_KEY}(?P<secret>(?:\s|\\+[nr])*+"
        r"(?:[A-Za-z-]{4,20}: [^\r\n\\\[]{1,100}(?:\s|\\+[nr])++)*+(?:[A-Za-z0-9+/=]|[\r\n]\s*+|\\+[nr]\s*+){40,}+)",
        "-----BEGIN PRIVATE KEY-----«\\n<64 base64>\\n<40 base64>»!",
        anchor="-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    _rule(  # the first line of a key without the one before it, and what follows
        "private-key",
        r"(?P<secret>(?:b3BlbnNzaC1rZXktdjEA|MII[A-Za-z0-9+/]{2,5}IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC))[A-Za-z0-9+/]{24,}={0,2}(?![A-Za-z0-9+/=])"
        r"(?:{KEY_LINE}[A-Za-z0-9+/=]{40,76}(?![A-Za-z0-9+/=])){0,200}"
        r"(?:{KEY_LINE}[A-Za-z0-9+/]{1,75}={1,2}(?![A-Za-z0-9+/=]))?)",
        "$ tail -n +2 id_rsa\n«MIIEpAIBAAKCAQEA<48 base64>\n<64 base64>\n<22 base64>==»\n",
        harmless=("MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA<60> MIIDXTCCAkWgAwIBAgIJ<60> b3BlbnNzaC1",),
        anchor=r"b3BlbnNzaC1rZXktdjEA|IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC)",
    ),
    _rule(
        "putty-private-key",
        # No possessive groups: Python before 3.11.5 takes too much by them (python/cpython#106052).
        r"Private-Lines: [0-9]{1,3}(?:[\r\n]|\\+[nr])+(?P<secret>[A-Za-z0-9+/=]{16,64}"
        r"(?:(?:[\r\n]|\\+[nr])+(?:[A-Za-z0-9+/=]{16,64}|[A-Za-z0-9+/]{1,15}={1,2}))*)",
        "Private-Lines: 4\n«<64 base64>\n<64 base64>»",
    ),
    _rule(
        "encoded-private-key",
        r"LS0tLS1CRUdJTi(?:BSU0Eg|BFQyB|BPUEVOU1NI|BQUklW)[A-Za-z0-9+/=]{100,}",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt<300 base64>",
    ),
    _rule("age-secret-key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,64}", "AGE-SECRET-KEY-1<58 upper>"),
)

TOKENS = (
    _rule("onepassword-token", r"ops_eyJ[A-Za-z0-9_=+/-]{80,}", "ops_eyJ<250>"),
    _rule(
        "onepassword-secret-key",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){2,3}",
        "A3-<6 upper>-<11 upper>-<5 upper>-<5 upper>-<5 upper>",
        "A3-<6 upper>-<6 upper>-<5 upper>-<5 upper>-<5 upper>-<5 upper>",
    ),
    _rule("sentry-org-token", r"sntrys_[A-Za-z0-9+/=_-]{40,}", "sntrys_eyJ<80>_<43>"),
    _rule("sentry-user-token", r"sntryu_[a-f0-9]{64}", "sntryu_<64 hex>"),
    _rule("grafana-cloud-token", r"glc_[A-Za-z0-9+/=]{32,}", "glc_eyJ<80>", "glc_<40 base64>"),
    _rule("grafana-token", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", "glsa_<32>_<8 hex>"),
    _rule("grafana-api-key", r"eyJrIjoi[A-Za-z0-9]{70,400}={0,3}", "eyJrIjoi<90>=="),
    _rule("supabase-key", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})", "sbp_<40 hex>", "sb_secret_<31 url>"),
    _random_rule("supabase-key", r"sbp_[a-z0-9]{40}(?![A-Za-z0-9])", "sbp_<40 lower>"),
    # Told from the middle of a longer run by itself: any of thousands of starts in one would read on to its end.
    _rule(
        "jwt",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[0-9;\[]m))eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}",
        "eyJ<20>.eyJ<40>.<43 url>",
    ),
    _rule(
        "jwt",
        r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[0-9;\[]m))ey[A-Za-z0-9]{17,}\.ey[A-Za-z0-9/\\_-]{17,}\."
        r"[A-Za-z0-9/\\_-]{10,}={0,2}",
        "ey<20>.ey<40>.<43 url>",
    ),
    _rule(
        "jwt",
        r"eyJhbGciOi[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,1024}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{22}",
        "eyJhbGciOi<30>..<16>.<120 url>.<22>",
    ),
    _rule(
        "encoded-jwt",
        r"ZXlK(?:aGJHY2lPaU|aGNIVWlPaU|aGRXUWlPaU|amRIa2lPaU|bGJtTWlPaU|cGMzTWlPaU|cmFXUWlP|MGVYQWlPaUp|emRXSWlPaU"
        r"|clpYbGZiM0J6SWpwY|MlpYSWlPaU)[A-Za-z0-9/_+=-]{40,}",
        "ZXlKaGJHY2lPaU<80>",
    ),
    _rule(
        "aws-access-key",
        r"A(?:[KS]IA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        *(f"{prefix}<16 base32>" for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")),
        harmless=("AKIAIOSFODNN7EXAMPLE",),
    ),
    _random_rule("aws-access-key", r"A3T[A-Z0-9]{17}(?![A-Za-z0-9])", "A3TX<16 base32>"),
    _rule("bedrock-api-key", r"ABSK[A-Za-z0-9+/]{100,}={0,2}", "ABSK<120 base64>=="),
    _rule("amazon-mws-token", r"amzn\.mws\.{UUID}", "amzn.mws.<uuid>"),
    _rule("amazon-oauth-secret", r"amzn1\.oa2-cs\.v1\.[0-9a-f]{64}", "amzn1.oa2-cs.v1.<64 hex>"),
    _rule("google-api-key", r"AIza[A-Za-z0-9_-]{35}", "AIza<35 url>"),
    _rule("google-api-key", r"AQ\.Ab8[A-Za-z0-9_-]{40,}", "AQ.Ab8RN6<43 url>"),
    _rule("google-client-secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", "GOCSPX-<28>"),
    _rule("google-oauth-token", r"ya29\.[A-Za-z0-9_-]{20,}", "ya29.<60 url>"),
    _rule("azure-storage-key", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})", "AccountKey=«<86 base64>==»"),
    _rule(
        "azure-shared-key", r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})", "SharedAccessKey=«<43 base64>=»"
    ),
    _rule("azure-sas", r"sig=(?P<secret>[A-Za-z0-9%+/]{40,}%3[Dd])", "?sv=2024-01-01&sig=«<43>%3D»"),
    _rule("azure-client-secret", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}", "<3>8Q~<34 url>"),
    _rule(
        "azure-refresh-token",
        r"[01]\.A[A-Za-z0-9_-]{50,}(?:\.[0-9])?\.Ag[A-Za-z0-9_-]{100,}(?:\.A[A-Za-z0-9_-]{100,})?",
        "0.A<70 url>.AgABAA<400 url>",
        "1.A<70 url>.AgABAA<260 url>",
    ),
    _rule(
        "azure-key",
        r"[A-Za-z0-9+/]{42}(?:\+ACR[A-Za-z0-9]{6}|AzSe[A-D][A-Za-z0-9]{5})(?![A-Za-z0-9+/])",
        "<42 base64>+ACR<6>",
        "<42>AzSeB<5>",
    ),
    _rule("azure-key", r"[A-Za-z0-9_-]{44}AzFu[A-Za-z0-9_-]{6,10}={0,2}", "<44 url>AzFu<8 url>=="),
    _rule(
        "azure-app-configuration",
        r"\.azconfig\.io;Id=[^;\s]{1,64};Secret=(?P<secret>[A-Za-z0-9+/=]{32,})",
        "Endpoint=https://a.azconfig.io;Id=<8>;Secret=«<43 base64>=»",
    ),
    _rule("azure-devops-token", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}{END}", "<76>AZDO<4>"),
    _rule("github-fine-grained-token", r"github_pat_[A-Za-z0-9_]{22,}", "github_pat_<22>_<59>"),
    _rule(
        "github-token",
        r"gh[pousr]_[A-Za-z0-9]{30,}",
        *(f"gh{one}_<36>" for one in "pousr"),
        harmless=("ghp_" + "x" * 36,),
    ),
    _rule(
        "gitlab-token",
        r"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|soat|ffct|oas)-[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{9}(?![A-Za-z0-9]))?",
        *(f"gl{one}-<20 url>" for one in ("pat", "dt", "rt", "ptt", "cbt", "ft", "imt", "soat", "agent", "ffct")),
        "gloas-<64 url>",
        "glpat-<27 url>.<2 lower><7 lower>",
        "glcbt-<5>_<20 url>",
    ),
    _rule("gitlab-token", r"GR1348941[A-Za-z0-9_-]{20,}", "GR1348941<20 url>"),
    _rule("gitlab-session", r"_gitlab_session=(?P<secret>[0-9a-z]{32,})", "_gitlab_session=«<32 lower>»"),
    _rule("bitbucket-token", r"ATBB[A-Za-z0-9]{32}{END}", "ATBB<32>"),
    _random_rule("bitbucket-token", r"BBDC-[A-Za-z0-9+/@_-]{40,50}", "BBDC-<44>"),
    _rule("atlassian-token", r"AT[AC]TT3[A-Za-z0-9_=-]{50,}", "ATATT3<186 url>", "ATCTT3<186 url>"),
    _rule("anthropic-api-key", r"sk-ant-[A-Za-z0-9_-]{20,}", "sk-ant-api03-<93 url>AA", "sk-ant-admin01-<93 url>AA"),
    _rule("openrouter-api-key", r"sk-or-v[0-9]-[A-Za-z0-9]{32,}", "sk-or-v1-<64 hex>"),
    _rule("langfuse-secret-key", r"[sp]k-lf-[0-9a-f-]{30,}", "sk-lf-<uuid>"),
    _rule(
        "helicone-api-key",
        r"sk-helicone-[a-z0-9]{5,}(?:-[a-z0-9]{5,}){2,}",
        "sk-helicone-<7 hex>-<7 hex>-<7 hex>-<7 hex>",
    ),
    _random_rule(
        "openai-api-key",
        r"sk-(?:(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})",
        "sk-<20>T3BlbkFJ<20>",
        "sk-proj-<80 url>",
        "sk-svcacct-<74 url>T3BlbkFJ<74 url>",
        "sk-admin-<58 url>T3BlbkFJ<58 url>",
    ),
    _rule(
        "litellm-api-key",
        r"(?<![_-])sk-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])",
        "sk-<10>a1B2<8>",
        check=checks.is_mixed_token,
    ),
    _random_rule(
        "huggingface-token",
        r"(?:hf|api_org)_[A-Za-z0-9]{30,}",
        "hf_<34 letters>",
        "api_org_<34 letters>",
        "hf_<34>",
        harmless=("hf_servingcellpriorityparametersdescription hf_hub_download(repo_id)",),
    ),
    _random_rule(
        "replicate-token", r"r8_[A-Za-z0-9]{30,}", "r8_<37>", harmless=("r8_convertTextureFormatToLinearFloat",)
    ),
    _random_rule(
        "groq-api-key",
        r"gsk_[A-Za-z0-9]{40,}",
        "gsk_<52>",
        harmless=("gsk_constructTheSignedKeyOfThisServiceAndItsName",),
    ),
    _random_rule("xai-api-key", r"xai-[A-Za-z0-9_]{40,}", "xai-<80>"),
    _random_rule("perplexity-api-key", r"pplx-[A-Za-z0-9]{32,}", "pplx-<48>"),
    _random_rule("nvidia-api-key", r"nvapi-[A-Za-z0-9_-]{50,}", "nvapi-<64 url>"),
    _random_rule("together-api-key", r"tgp_v1_[A-Za-z0-9_-]{40,}", "tgp_v1_<43 url>"),
    _random_rule(
        "fireworks-api-key", r"fw_[A-Za-z0-9]{22,}", "fw_<24>", harmless=("fw_updateFirmwareImageDescriptor",)
    ),
    _random_rule("tavily-api-key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}", "tvly-<32>", "tvly-dev-<32>"),
    _rule("firecrawl-api-key", r"fc-[0-9a-f]{32}(?![A-Za-z0-9])", "fc-<32 hex>"),
    _rule("langsmith-api-key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_pt_<32 hex>_<10 hex>"),
    _random_rule("pinecone-api-key", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}", "pcsk_<5>_<63>"),
    _random_rule("jina-api-key", r"jina_[A-Za-z0-9]{32}[A-Za-z0-9_-]{10,}", "jina_<60>"),
    _random_rule("cerebras-api-key", r"csk-[a-z0-9]{40,}", "csk-<48 lower>"),
    _random_rule("runpod-api-key", r"rpa_[A-Z0-9]{30,}[A-Za-z0-9]*", "rpa_<40 upper>"),
    _rule("elevenlabs-api-key", r"sk_[0-9a-f]{48}(?![A-Za-z0-9])", "sk_<48 hex>"),
    _random_rule("llamacloud-api-key", r"llx-[A-Za-z0-9]{40,}", "llx-<48>"),
    _random_rule("e2b-api-key", r"e2b_[0-9a-f]{40}", "e2b_<40 hex>"),
    _rule("daytona-api-key", r"dtn_[0-9a-f]{64}", "dtn_<64 hex>"),
    _random_rule("trigger-api-key", r"tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{20,}", "tr_prod_<24>"),
    _rule("wandb-api-key", r"wandb_v1_[A-Za-z0-9_]{40,}", "wandb_v1_<27>_<41>"),
    _rule("cursor-api-key", r"(?:key|crsr)_[0-9a-f]{64}(?![A-Za-z0-9])", "key_<64 hex>", "crsr_<64 hex>"),
    _rule(
        "modal-token",
        r"(?<![_-])a[ks]-[A-Za-z0-9]{22}(?![A-Za-z0-9_-])",
        "ak-<10>a1B2<8>",
        check=checks.is_mixed_token,
        harmless=("task-<22>",),
    ),
    _rule(
        "voyage-api-key",
        r"(?<![_-])pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])",
        "pa-<43>",
        check=checks.is_mixed_token,
        harmless=("alpaca-<43>",),
    ),
    _random_rule("mem0-api-key", r"m0-[A-Za-z0-9]{40}(?![A-Za-z0-9])", "m0-<40>"),
    _random_rule("browserbase-api-key", r"bb_live_[A-Za-z0-9_-]{27}", "bb_live_<27 url>"),
    _rule(
        "brave-api-key",
        r"(?<![_-])BSA[A-Za-z0-9_-]{24,28}(?![A-Za-z0-9_-])",
        "BSA<24>a1B2",
        check=checks.is_mixed_token,
    ),
    _rule("scrapfly-api-key", r"scp-live-[0-9a-f]{32}", "scp-live-<32 hex>"),
    _random_rule("context7-api-key", r"ctx7sk[_-][0-9a-f-]{32,40}", "ctx7sk-<uuid>"),
    _random_rule("apify-token", r"apify_api_[A-Za-z0-9]{36}", "apify_api_<36>"),
    _random_rule("apideck-api-key", r"sk_live_[A-Za-z0-9]{1,60}-[A-Za-z0-9-]{20,}", "sk_live_<40>-<52>"),
    _random_rule(
        "stripe-key",
        r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}",
        "sk_live_<24>",
        "rk_live_<24>",
        "sk_test_<24>",
        "rk_prod_<99>",
    ),
    _random_rule("stripe-key", r"pi_[A-Za-z0-9]{24}_secret_(?P<secret>[A-Za-z0-9]{25})", "pi_<24>_secret_«<25>»"),
    _random_rule("webhook-secret", r"whsec_[A-Za-z0-9+/]{24,}={0,2}", "whsec_<32 base64>"),
    _random_rule("paystack-key", r"sk_[a-z]{3,8}_[A-Za-z0-9]{40}(?![A-Za-z0-9])", "sk_sbox_<40>"),
    _random_rule("pagarme-key", r"[as]k_live_[A-Za-z0-9]{30}", "ak_live_<30>"),
    _random_rule("recharge-api-key", r"sk(?:_test)?_(?:1|2|3|5|10)x[123]_[0-9a-fA-F]{64}", "sk_1x1_<64 hex>"),
    _random_rule("freemius-key", r"sk_[^\s\"'\\<>]{29}(?=[\"'\\])", "'secret_key' => '«sk_<29>»'"),
    _rule("square-token", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,}", "sq0atp-<22 url>", "sq0csp-<43 url>", "sq0idp-<22>"),
    _rule(
        "square-token",
        r"(?<![+/_-])EAAA[A-Za-z0-9_-]{22,60}(?![A-Za-z0-9+/=_-])",
        "EAAA<60 url>",
        "EAAA<40>",
        "SQUARE=«EAAA<60 url>»",
        check=checks.is_mixed_token,
    ),
    _rule("facebook-token", r"(?<![+/_-])EAA[A-Z][A-Za-z0-9]{100,}(?![A-Za-z0-9+/=])", "EAAM<150>", "FB=«EAAC<150>»"),
    _random_rule(
        "facebook-token",
        r"[0-9]{15,16}(?:\||%7[Cc])[0-9A-Za-z_-]{27,40}(?![0-9A-Za-z_-])",
        "<15 digits>|<27 url>",
        "<16 digits>%7C<30>",
    ),
    _rule(
        "braintree-token",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        "access_token$production$<16 hex>$<32 hex>",
    ),
    _rule(
        "shopify-token",
        r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}",
        *(f"shp{one}_<32 hex>" for one in ("at", "ca", "pa", "ss")),
    ),
    _rule(
        "slack-token",
        r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{20,}",
        *(f"xox{one}-<12 digits>-<24>" for one in "abprs"),
        "xoxe.xoxp-1-<163 upper>",
        "xoxe-1-<146 upper>",
        "xoxb-<12 digits>-<12 digits>-<24>",
    ),
    _random_rule("slack-token", r"xox[ar]-(?:[0-9]-)?[0-9A-Za-z]{16,48}", "xoxa-2-<16>"),
    _rule("slack-token", r"xox[cd]-[A-Za-z0-9%-]{20,}", "xoxc-<12 digits>-<64 hex>", "xoxd-<60>"),
    _rule("slack-app-token", r"xapp-[0-9]-[A-Za-z0-9-]{20,}", "xapp-1-<11 upper>-<13 digits>-<64 hex>"),
    _rule(
        "slack-webhook",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/+-]{30,})",
        "https://hooks.slack.com/services/«T<8 upper>/B<10 upper>/<24>»",
    ),
    _random_rule(
        "discord-bot-token",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
        "M<25>.<6>.<38 url>",
        anchor=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    _rule(
        "discord-webhook",
        r"/api/webhooks/(?P<secret>[0-9]{17,20}/[A-Za-z0-9_-]{60,80})",
        "https://discord.com/api/webhooks/«<18 digits>/<68 url>»",
    ),
    _rule(
        "teams-webhook",
        r"\.office\.com/webhookb2/(?P<secret>[0-9a-f@/A-Za-z-]{60,})",
        "https://x.webhook.office.com/webhookb2/«<uuid>@<uuid>/IncomingWebhook/<32 hex>/<uuid>»",
    ),
    _rule(
        "teams-webhook",
        r"\.(?:powerplatform\.com|logic\.azure\.com)[^\s\"'\\<>]{8,300}?[?&]sig=(?P<secret>[A-Za-z0-9_%-]{40,})",
        "https://prod-01.westus.logic.azure.com:443/workflows/<32 hex>/triggers/manual/paths/invoke?a=1&sig=«<43 url>»",
        "https://default<32 hex>.environment.api.powerplatform.com/powerautomate/w/<32 hex>?v=1&sig=«<43 url>»",
    ),
    _rule(
        "zapier-webhook",
        r"hooks\.zapier\.com/hooks/(?:catch|standard)/(?P<secret>[0-9]{5,10}/[A-Za-z0-9]{5,40})",
        "https://hooks.zapier.com/hooks/catch/«<7 digits>/<7 lower>»/",
    ),
    _rule(
        "tines-webhook",
        r"\.tines\.(?:com|io)/webhook/(?P<secret>[a-z0-9]{32}/[a-z0-9]{32})",
        "https://a.tines.com/webhook/«<32 hex>/<32 hex>»",
    ),
    _rule(
        "telegram-bot-token",
        r"(?:[Bb]ot|BOT)?(?P<secret>[0-9]{8,10}(?::|%3[Aa])AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
        "<10 digits>:AA<33 url>",
        "https://api.telegram.org/bot«<10 digits>:AA<33 url>»/getMe",
        harmless=("bot1234:AA<33> bot1234567890:AA<20> bot1234567890:AA<34>",),
    ),
    _rule(
        "telegram-bot-token",
        r"(?i:telegram[a-z_.-]{0,20})[\"'\\]{0,8}\s?[:=]{1,2}\s?[\"'\\]{0,8}(?P<secret>[0-9]{5,16}:A[A-Za-z0-9_-]{34})",
        'telegramToken = "«<9 digits>:A<34 url>»"',
    ),
    _random_rule("twilio-api-key", r"SK[0-9a-fA-F]{32}(?![A-Za-z0-9])", "SK<32 hex>"),
    _rule("sendgrid-api-key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "SG.<22 url>.<43 url>"),
    _random_rule("sendgrid-api-key", r"SG\.[A-Za-z0-9_=.-]{66}(?![A-Za-z0-9])", "SG.<66 url>"),
    _random_rule("mailgun-api-key", r"(?:pub)?key-[0-9a-z]{32}(?![A-Za-z0-9-])", "key-<32 hex>", "pubkey-<32 hex>"),
    _rule("mailgun-api-key", r"[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8}(?![A-Za-z0-9-])", "<32 hex>-<8 hex>-<8 hex>"),
    _rule("mailchimp-api-key", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9-])", "<32 hex>-us12"),
    _random_rule("mandrill-api-key", r"md-[A-Za-z0-9_]{22}(?![A-Za-z0-9_-])", "md-<22>"),
    _random_rule("resend-api-key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", "re_<8>_<24>"),
    _random_rule("npm-token", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])", "npm_<36>"),
    _rule("npm-token", r":_authToken=(?P<secret>[A-Za-z0-9_./+=-]{16,})", "//registry.npmjs.org/:_authToken=«<uuid>»"),
    _rule("pypi-token", r"pypi-[A-Za-z0-9_-]{50,}", "pypi-AgEIcHlwaS5vcmc<150 url>"),
    _random_rule("rubygems-api-key", r"rubygems_[A-Za-z0-9]{48}", "rubygems_<48 hex>"),
    _random_rule("crates-io-token", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", "cio<32>"),
    _random_rule("clojars-token", r"(?i:CLOJARS)_[0-9a-z]{60}", "CLOJARS_<60 lower>"),
    _random_rule("docker-token", r"dckr_[po]at_[A-Za-z0-9_-]{27,}", "dckr_pat_<27 url>", "dckr_oat_<32 url>"),
    _rule(
        "docker-auth",
        r"\"?auth\\{0,15}\" ?: ?\\{0,15}\"(?P<secret>[A-Za-z0-9+/]{12,512}={0,2})",
        '{"auths": {"h": {"auth": "«<basic>»"}}}',
        check=checks.is_user_and_password,
        harmless=('{"auth": "required"} "auth": "oauth2-client-cred"',),
    ),
    _rule("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", *(f"do{one}_v1_<64 hex>" for one in "opr")),
    _rule("heroku-api-key", r"HRKU-[A-Za-z0-9_-]{36,}", "HRKU-AA<58 url>", "HRKU-<uuid>"),
    _random_rule("netlify-token", r"nfp_[A-Za-z0-9]{36,}", "nfp_<36>"),
    _random_rule(
        "vercel-token", r"vc[piark]_[A-Za-z0-9]{24,}", "vcp_<56>", harmless=("vci_configurationDescriptorHandle",)
    ),
    _random_rule("vercel-blob-token", r"vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}", "vercel_blob_rw_<16>_<30>"),
    _random_rule(
        "render-api-key", r"rnd_[A-Za-z0-9]{28,}", "rnd_<32>", harmless=("rnd_generateRandomNumbersForTesting",)
    ),
    _rule("fly-token", r"fm(?:2|1[ar])_[A-Za-z0-9+/=]{60,}", "fm2_<200 base64>", "fm1r_<200 base64>"),
    _random_rule("fly-token", r"fo1_[A-Za-z0-9_-]{43}", "fo1_<43 url>"),
    _rule("cloudflare-ca-key", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}", "v1.0-<24 hex>-<146 hex>"),
    _random_rule("cloudflare-api-token", r"cf(?:ut|at|k)_[A-Za-z0-9_-]{40,}", "cfut_<48>"),
    _random_rule("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]{6,}-[A-Za-z0-9]{16,}", "tskey-auth-<17>-<32>"),
    _rule(
        "databricks-token", r"d(?:api|ose|kea)[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])", "dapi<32 hex>", "dapi<32 hex>-2"
    ),
    _random_rule("newrelic-key", r"NRAK-[A-Z0-9a-z]{27}", "NRAK-<27 upper>", "NRAK-<27 lower>"),
    _random_rule("newrelic-key", r"NRII-[A-Za-z0-9_-]{32}", "NRII-<32 lower>", "NRII-<32 url>"),
    _rule("newrelic-key", r"NRJS-[0-9a-f]{19}", "NRJS-<19 hex>"),
    _rule("newrelic-license", r"[0-9a-f]{36}(?:NRAL|FFFFNRAL)", "<36 hex>NRAL"),
    _random_rule("posthog-api-key", r"ph[xs]_[A-Za-z0-9_]{40,}", "phx_<48>"),
    _random_rule(
        "linear-api-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "lin_api_<40>", harmless=("lin_apiary_of_bees",)
    ),
    _random_rule(
        "notion-token",
        r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))",
        "ntn_<11 digits><35>",
        "secret_<43>",
    ),
    _random_rule("figma-token", r"fig[dour]_[A-Za-z0-9_-]{38,}", "figd_<40 url>"),
    _rule("airtable-token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat<14>.<64 hex>"),
    _rule(
        "airtable-token",
        r"oa[ar][A-Za-z0-9]{10,}\.v1\.[A-Za-z0-9_-]{32,}\.[a-f0-9]{32,}",
        "oaa<14>.v1.<40 url>.<64 hex>",
    ),
    _rule(
        "doppler-token",
        r"dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]{1,35}\.)?[A-Za-z0-9]{40,44}",
        "dp.pt.<43>",
        "dp.st.dev.<43>",
    ),
    _random_rule("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", "hvs.<90 url>", "hvb.<140 url>", "hvr.<90 url>"),
    _rule(
        "vault-token",
        r"(?:(?<![A-Za-z0-9_.$)\]-])|(?<=\\[nrt])|(?<=[0-9]m))s\.[A-Za-z0-9]{24}(?![A-Za-z0-9_.(-])",
        "s.<20>a1B2",
        check=checks.is_mixed_token,
        anchor=r"(?:^|[^A-Za-z0-9_.$)\]-]|\\[nrt]|[0-9]m)s\.[A-Za-z0-9]{24}",
    ),
    _rule("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", "<14>.atlasv1.<67 url>"),
    _rule("pulumi-token", r"pul-[a-f0-9]{40}", "pul-<40 hex>"),
    _rule("postman-api-key", r"PMAK-[A-Za-z0-9]{24}-[A-Za-z0-9]{34}", "PMAK-<24 hex>-<34 hex>"),
    _random_rule(
        "planetscale-token",
        r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}",
        "pscale_tkn_<43 url>",
        "pscale_pw_<43 url>",
        "pscale_oauth_<43 url>",
    ),
    _rule("circleci-token", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[a-f0-9]{40}", "CCIPAT_<22>_<40 hex>"),
    _random_rule("buildkite-token", r"bkua_[a-z0-9]{40}", "bkua_<40 hex>"),
    _random_rule("prefect-api-key", r"pn[ub]_[A-Za-z0-9]{36}", "pnu_<36>"),
    _rule(
        "sourcegraph-token",
        r"sgp_(?:(?:[A-Fa-f0-9]{16}|local)_)?[A-Fa-f0-9]{40}(?![A-Za-z0-9])",
        "sgp_<16 hex>_<40 hex>",
        "sgp_local_<40 hex>",
        "sgp_<40 HEX>",
        "sgp_<16 HEX>_<40 HEX>",
    ),
    _random_rule("sourcegraph-token", r"slk_[A-Fa-f0-9]{64}", "slk_<64 hex>"),
    _random_rule("segment-token", r"sgp_[A-Za-z0-9]{64}", "sgp_<64>"),
    _rule("wakatime-api-key", r"waka_[0-9a-f]{8}-[0-9a-f-]{27}", "waka_<uuid>"),
    _random_rule("contentful-token", r"CFPAT-[A-Za-z0-9_-]{43}", "CFPAT-<43 url>"),
    _rule("artifactory-token", r"AKCp[A-Za-z0-9]{60,}", "AKCp<69>"),
    _rule("artifactory-token", r"cmVmd[A-Za-z0-9]{59}(?![A-Za-z0-9+/=])", "cmVmdGtu<56>"),
    _random_rule("yandex-api-key", r"AQVN[A-Za-z0-9_-]{35,40}", "AQVN<38 url>"),
    _rule(
        "yandex-api-key",
        r"t1\.[A-Za-z0-9_-]{16,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}",
        "t1.<120 url>.<86 url>==",
        "t1.<20 url>.<86 url>",
    ),
    _rule("easypost-api-key", r"EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9])", "EZAK<54>", "EZTK<54>"),
    _rule(
        "flutterwave-key",
        r"FLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?",
        "FLWSECK-<32 hex>-X",
        "FLWSECK_TEST-<32 hex>-X",
        "FLWSECK_TEST-<12 hex>",
        "FLWPUBK_TEST-<32 hex>-X",
    ),
    _rule("hubspot-token", r"pat-(?:na|eu)[0-9]-{UUID}", "pat-na1-<uuid>"),
    _rule("brevo-api-key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}", "xkeysib-<64 hex>-<16>"),
    _rule("inngest-signing-key", r"signkey-[a-z]{4,8}-[0-9a-f]{64}", "signkey-prod-<64 hex>"),
    _rule("axiom-token", r"xa[ap]t-{UUID}", "xaat-<uuid>"),
    _rule("robinhood-key", r"rh-api-{UUID}", "rh-api-<uuid>"),
    _rule(
        "launchdarkly-key",
        r"(?:sdk|api|mob)-[0-9a-z]{8}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}",
        "sdk-<uuid>",
        "api-<uuid>",
    ),
    _random_rule("dropbox-token", r"sl\.(?:u\.)?[A-Za-z0-9_=-]{100,}", "sl.u.<140 url>", "sl.<136 url>"),
    _rule("mailersend-token", r"mlsn\.[0-9a-f]{64}", "mlsn.<64 hex>"),
    _rule("mapbox-token", r"[sp]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}", "sk.eyJ<60>.<22>"),
    _random_rule("mapbox-token", r"[sp]k\.[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}", "pk.<60 lower>.<22 lower>"),
    _random_rule("locationiq-token", r"pk\.[A-Za-z0-9-]{32}(?![A-Za-z0-9.])", "pk.<32 hex>"),
    _rule("shippo-token", r"shippo_(?:live|test)_[0-9a-fA-F]{40}", "shippo_live_<40 hex>", "shippo_test_<40 hex>"),
    _random_rule("readme-api-key", r"rdme_[a-z0-9]{60,}", "rdme_<70 lower>"),
    _random_rule("neon-api-key", r"napi_[a-z0-9]{60,}", "napi_<64 lower>"),
    _random_rule("honeycomb-api-key", r"hc[abx]i[ck]_[a-z0-9]{58}", "hcaik_<58 lower>"),
    _rule("checkly-api-key", r"cu_[0-9a-f]{32}(?![A-Za-z0-9])", "cu_<32 hex>"),
    _random_rule(
        "paddle-api-key",
        r"pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}",
        "pdl_live_apikey_<26 lower>_<22>_<3>",
    ),
    _random_rule("polar-token", r"polar_(?:oat|pat)_[A-Za-z0-9]{40,}", "polar_oat_<43>"),
    _random_rule("typeform-token", r"tfp_[A-Za-z0-9][A-Za-z0-9_.=-]{40,}", "tfp_<59>", "tfp_<1><58 url>"),
    _random_rule("alibaba-access-key", r"LTAI[A-Za-z0-9]{12,20}(?![A-Za-z0-9])", "LTAI<20>"),
    _random_rule("tencent-secret-id", r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])", "AKID<32>"),
    _rule("firebase-server-key", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}", "AAAA<7>:APA91b<134 url>"),
    _random_rule("adafruit-key", r"aio_[A-Za-z0-9]{28}", "aio_<28>"),
    _random_rule("adobe-client-secret", r"p8e-[A-Za-z0-9]{32}(?![A-Za-z0-9])", "p8e-<32 lower>"),
    _random_rule("alchemy-key", r"alcht_[A-Za-z0-9]{30}", "alcht_<30>"),
    _random_rule(
        "authress-key",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
        "sc_<12>.<5>.acc_<12>.<50>",
    ),
    _random_rule("bannerbear-key", r"bb_(?:pr|ma)_[a-z0-9]{28,32}", "bb_pr_<30 lower>"),
    _rule("clickhouse-key", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])", "4b1d<38>", check=checks.is_mixed_token),
    _random_rule("close-api-key", r"api_[A-Za-z0-9]{20,23}\.[A-Za-z0-9]{20,23}", "api_<22>.<22>"),
    _rule("coinbase-key", r"organizations/{UUID}/apiKeys/{UUID}", "organizations/<uuid>/apiKeys/<uuid>"),
    _random_rule("confluent-secret", r"cflt[A-Za-z0-9+/]{60}", "cflt<60 base64>"),
    _random_rule("defined-networking-token", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}", "dnkey-<26 url>-<52 url>"),
    _random_rule("deno-token", r"dd[pw]_[A-Za-z0-9]{36}", "ddp_<36>"),
    _random_rule("dfuse-key", r"(?:web|server|mobile)_[0-9a-z]{32}(?![A-Za-z0-9])", "web_<32 hex>"),
    _random_rule(
        "duffel-token", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}", "duffel_test_<43 url>", "duffel_live_<43 url>"
    ),
    _random_rule(
        "dynatrace-token",
        r"dt0[cs]01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
        "dt0c01.<24 upper>.<64 upper>",
        "dt0c01.<24 lower>.<64 lower>",
    ),
    _random_rule("endorlabs-key", r"endr\+[A-Za-z0-9-]{16}", "endr+<16>"),
    _random_rule("finage-key", r"API_KEY[0-9A-Z]{32}", "API_KEY<32 upper>"),
    _random_rule("fleetbase-key", r"flb_live_[0-9A-Za-z]{20}", "flb_live_<20>"),
    _random_rule("flexport-key", r"shltm_[0-9A-Za-z_-]{40}", "shltm_<40 url>"),
    _random_rule("frameio-token", r"fio-u-[A-Za-z0-9_=-]{64}", "fio-u-<64 url>"),
    _random_rule("gemini-exchange-key", r"(?:master|account)-[0-9A-Za-z]{20}(?![A-Za-z0-9-])", "account-<20>"),
    _random_rule("gocardless-token", r"live_[A-Za-z0-9_=-]{40}(?![A-Za-z0-9_-])", "live_<40 url>"),
    _random_rule(
        "harness-api-key", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", "pat.<22 url>.<24>.<20>"
    ),
    _random_rule("infracost-key", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])", "ico-<32>"),
    _rule("intra42-secret", r"[su]-s4t2(?:ud|af)-[0-9a-fA-F]{64}", "s-s4t2ud-<64 hex>"),
    _random_rule("jumpcloud-key", r"jca_[A-Za-z0-9]{36}", "jca_<36>"),
    _random_rule("klaviyo-key", r"pk_[A-Za-z0-9]{34}(?![A-Za-z0-9])", "pk_<34>"),
    _rule(
        "lob-api-key",
        r"(?:live|test)_(?:pub_[0-9a-f]{31}|[0-9a-f]{35})(?![0-9a-zA-Z])",
        "live_<35 hex>",
        "test_<35 hex>",
        "live_pub_<31 hex>",
    ),
    _rule("maxmind-key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", "<6>_<29>_mmk"),
    _random_rule("nightfall-key", r"NF-[A-Za-z0-9]{32}(?![A-Za-z0-9])", "NF-<32>"),
    _rule("ngc-key", r"[A-Za-z0-9]{26}:{UUID}", "<26>:<uuid>", check=checks.is_random_with_uuid),
    _random_rule("octopus-api-key", r"API-[A-Z0-9]{25,26}(?![A-Za-z0-9])", "API-<26 upper>"),
    _rule("openshift-token", r"sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", "sha256~<43 url>"),
    _random_rule("onelogin-pgar", r"pgar_[A-Za-z0-9_-]{20,}", "pgar_<40>"),
    _rule(
        "plaid-token",
        r"access-(?:production|sandbox|development)-{UUID}",
        "access-production-<uuid>",
        "access-sandbox-<uuid>",
        "access-development-<uuid>",
    ),
    _random_rule("portainer-token", r"ptr_[A-Za-z0-9/_+=-]{40,60}", "ptr_<44>"),
    _rule(
        "pubnub-key",
        r"(?:pub|sub|sec)-c-[0-9a-z]{8}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{4}-[0-9a-z]{12}",
        "pub-c-<uuid>",
        "sub-c-<uuid>",
    ),
    _random_rule("ramp-key", r"ramp_(?:id|sec)_[A-Za-z0-9]{40,48}", "ramp_id_<40>", "ramp_sec_<48>"),
    _random_rule("rancher-token", r"token-[a-z0-9]{5}:[a-z0-9]{54}", "token-<5 lower>:<54 lower>"),
    _random_rule("razorpay-key", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}", "rzp_live_<14>"),
    _rule("rootly-token", r"rootly_[a-f0-9]{64}", "rootly_<64 hex>"),
    _random_rule("salad-key", r"salad_cloud_[0-9A-Za-z]{1,7}_[0-9A-Za-z]{20,235}", "salad_cloud_user_<40>"),
    _random_rule("salesforce-token", r"00[A-Za-z0-9]{13}!(?P<rest>[A-Za-z0-9_.]{80,120})", "00D<12>!<96>"),
    _random_rule("salesforce-token", r"3MVG9[0-9A-Za-z._+/=]{80,251}", "3MVG9<80>"),
    _random_rule("salesforce-token", r"5A[Ee][Pp]861[A-Za-z0-9._=]{80,}", "5Aep861<80>"),
    _random_rule(
        "sanity-token",
        r"(?:(?<![A-Za-z0-9+/])|(?<=\\[nrt])|(?<=[0-9]m))sk[A-Za-z0-9]{79,180}(?![A-Za-z0-9])",
        "sk<160>",
        anchor=r"(?:^|[^A-Za-z0-9+/]|\\[nrt]|[0-9]m)sk[A-Za-z0-9]{79}",
    ),
    _random_rule("scalingo-token", r"tk-us-[A-Za-z0-9_-]{48}", "tk-us-<48 url>"),
    _random_rule(
        "settlemint-token", r"sm_[aps]at_[A-Za-z0-9]{16}(?![A-Za-z0-9])", "sm_aat_<16>", "sm_pat_<16>", "sm_sat_<16>"
    ),
    _rule(
        "snyk-token",
        r"snyk_[us]at\.[0-9a-f]{8}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
        "snyk_uat.<8 hex>.eyJ<60>.<60>",
    ),
    _rule("sonar-token", r"sq[pau]_[0-9a-f]{40}", "sqp_<40 hex>", "squ_<40 hex>"),
    _random_rule("spectral-key", r"spu-[a-z0-9]{32}(?![A-Za-z0-9])", "spu-<32 lower>"),
    _random_rule("swarm-token", r"SWMTKN-1-[a-z0-9]{40,}-[a-z0-9]{20,}", "SWMTKN-1-<50 lower>-<25 lower>"),
    _random_rule("tableau-token", r"[A-Za-z0-9+/]{22}==:[A-Za-z0-9]{32}(?![A-Za-z0-9])", "<22 base64>==:<32>"),
    _random_rule("teamwork-token", r"tkn\.v1_[A-Za-z0-9+/]{60,}={0,2}", "tkn.v1_<70 base64>=="),
    _rule(
        "trufflehog-key", r"thog-(?:key-[0-9a-f]{16}|secret-[0-9a-f]{32})", "thog-key-<16 hex>", "thog-secret-<32 hex>"
    ),
    _random_rule("ubidots-key", r"BBFF-[0-9A-Za-z]{30}", "BBFF-<30>"),
    _rule(
        "voiceflow-key",
        r"VF\.(?:(?:DM|WS)\.)?[a-fA-F0-9]{24}\.[A-Za-z0-9]{16}",
        "VF.DM.<24 hex>.<16>",
        "VF.<24 hex>.<16>",
    ),
    _random_rule("webex-token", r"[A-Za-z0-9]{64}_[A-Za-z0-9]{4}_{UUID}", "<64>_<4>_<uuid>"),
    _random_rule("xata-key", r"xau_[A-Za-z0-9]{30,}", "xau_<40>"),
    _rule("zoho-token", r"1000\.[a-f0-9]{32}\.[a-f0-9]{32}", "1000.<32 hex>.<32 hex>"),
    _rule(
        "sidekiq-secret",
        r"(?i:BUNDLE_(?:ENTERPRISE|GEMS)__CONTRIBSYS__COM)[\"'\\]{0,8}\s?[:=]\s?[\"'\\]{0,8}(?P<secret>[a-f0-9]{8}:[a-f0-9]{8})",
        "BUNDLE_ENTERPRISE__CONTRIBSYS__COM=«<8 hex>:<8 hex>»",
    ),
)

_DATABASES = (
    ("postgres-password", r"postgres(?:ql)?", "postgresql+asyncpg"),
    ("mysql-password", r"(?:mysql|mariadb)", "mysql"),
    ("mongodb-password", r"mongodb", "mongodb+srv"),
    ("redis-password", r"rediss?", "rediss"),
    ("amqp-password", r"amqps?", "amqp"),
    ("database-password", r"(?:mssql|sqlserver|clickhouse|cassandra|neo4j|ldaps?|ftps?|sftp|smtps?)", "clickhouse"),
)

TEXTS = (
    _rule(
        "aws-secret-key",
        r"\[redacted:aws-access-key\][\"']?[,;\t ][ \t\"']{0,3}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "[redacted:aws-access-key],«<40 base64>»",
        anchor=r"A(?:[KS]IA|BIA|CCA)[A-Z0-9]{16}|\[redacted:aws-access-key\]",
    ),
    _rule(
        "aws-secret-key",
        r"aws_secret_access_key[ ,][ \"']{0,3}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "aws configure set aws_secret_access_key «<40 base64>»",
    ),
    _rule(
        "basic-auth",
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))_auth=[\"']?(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})",
        "\n_auth=«<basic>»",
        check=checks.is_user_and_password,
    ),
    _rule(
        "kubernetes-secret",
        r":[ \t]{0,2}[\"'\\]{0,16}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})(?=[\"'\\\s,}]|\Z)",
        "kind: Secret\ndata:\n  conn: «c29tZSB3b3JkcyAx»\n",
        check=checks.is_base64_text,
        harmless=("kind: SecretStore\ndata:\n  conn: c29tZSB3b3Jkcw==", "kind: Secret and image: 'cloudsql'"),
        near=r"(?i)kind[\"'\\]{0,16}: ?[\"'\\]{0,16}Secret(?![A-Za-z])",
    ),
    _rule(
        "jwk",
        r"(?<![A-Za-z0-9])(?:d|k|p|q|dp|dq|qi)[\"'\\]{1,9} ?: ?[\"'\\]{1,9}(?P<secret>[A-Za-z0-9_-]{22,})",
        '{"kty": "EC", "x": "a1", "d": "«<43 url>»"}',
        check=checks.is_random_word,
        near=r"kty[\"'\\]{1,64} ?:",
    ),
    *(
        _rule(
            kind,
            scheme + r"(?:\+[a-z0-9]+)?{URL}(?P<secret>(?![0-9]{2,5}/)[^\x00-\x20\x7f\"'\\<>{}`\[]{3,128}){HOST}",
            f"{name}://app:«<password>»@db.host:5432/x",
            f"{name}://app:«<8 digits>»@h/x",
            check=checks.is_url_password,
            harmless=(
                f"{name}://user:password@localhost/db {name}://${{USER}}:${{PASS}}@host/db {name}://{{user}}:{{password}}@h",
            ),
        )
        for kind, scheme, name in _DATABASES
    ),
    _rule(
        "url-password",
        r"{URL}(?P<secret>[^\x00-\x20\x7f/\"'\\<>{}`\[]{3,128}){HOST}",
        "https://me:«<password>»@example.org/r.git",
        "http://me:«<9 digits>»@h/",
        check=checks.is_url_password,
        harmless=(
            "redis://localhost:6379 https://host:8080/@scope/pkg",
            "MultiHostUrl('https://foo.com:123,foo:bar@bar.com/path')",
        ),
    ),
    _rule(
        "netrc-password",
        r"machine{GAP}+\S{1,128}{GAP}+login{GAP}+\S{1,128}{GAP}+password{GAP}+(?P<secret>[^\x00-\x20\x7f\"'\\`<>\[]{4,128})",
        "machine h.org login me password «<password>»",
        "machine h.org\n  login me\n  password «<password>»\n",
        check=checks.is_password,
    ),
    _rule(
        "pgpass",
        r":5432:[^\s:]{1,64}:[^\s:]{1,64}:(?P<secret>[^\x00-\x20\x7f\"'\\`|<>]{4,128})",
        "db.host:5432:app:me:«<password>»\n",
        check=checks.is_password,
    ),
    _rule(
        "authorization",
        r"{HEADER}(?:(?:token|api-?key|key|genie-?key) {1,2})?(?:token=)?"
        r"(?P<secret>[A-Za-z0-9_.~+/=-]{20,4096})(?![A-Za-z0-9_(\[])",
        "Authorization: Token «<40 hex>»",
        "'Authorization': '«<40>»'",
        check=checks.is_random_word,
    ),
    _rule(
        "basic-auth",
        r"{HEADER}basic {1,2}(?P<secret>[A-Za-z0-9_.~+/=-]{10,512})(?![A-Za-z0-9_(\[])",
        "Authorization: Basic «<16>a1B2_<12>»",
        check=checks.is_mixed_token,
        harmless=(
            "Authorization: Basic base64(user1:pass2) Authorization: Basic encoded-credentials-1",
            'Proxy-Authorization: Basic realm1 WWW-Authenticate: Basic realm="api", Bearer realm="api2"',
        ),
    ),
    _rule(
        "session-cookie",
        r"(?:-b|--cookie)[ =]{1,2}[\\\"']{0,4}(?:[^\s=;\"'\\]{1,64}=[^;\s\"'\\]{0,4096};\s?){0,20}?{SESSION_COOKIE}",
        "curl -b a=b;sessionid=«<32>» https://h",
        check=checks.is_random_word,
    ),
    _rule(
        "session-cookie",
        r"(?i)(?:sess|sid|auth|token|jwt)[\w.-]{0,32}(?:\t|\\+t)(?P<secret>[A-Za-z0-9%._~+/=:-]{16,4096})",
        "#HttpOnly_h.org\tTRUE\t/\tTRUE\t0\tsessionid\t«<40>»",
        check=checks.is_random_word,
        near=r"\.[a-z]{2,12}(?:\t|\\+t)TRUE(?:\t|\\+t)/",
    ),
    _rule(
        "session-cookie",
        r"(?i)cookie[\"'\\]{0,3}\s?[:=]\s?[\"'\\]{0,2}(?:[^\s=;\"'\\]{1,64}=[^;\s\"'\\]{0,4096};\s?){0,50}?{SESSION_COOKIE}",
        "Cookie: theme=dark; sessionid=«<32>»",
        "Set-Cookie: connect.sid=«s%3A<40>»; Path=/",
        check=checks.is_random_word,
        harmless=("Cookie: theme=dark; lang=en  Set-Cookie: a=b; Path=/",),
    ),
    _rule(
        "bearer-token",
        r"(?i)bearer[ \t]{1,4}(?P<secret>[A-Za-z0-9_.~+/=-]{16,4096})",
        "Authorization: Bearer «<40>»",
        "authorization: bearer «<32 hex>»",
        check=checks.is_random_word,
        harmless=(
            "Authorization: Bearer ${token} and Authorization: Bearer <token> and Bearer authentication",
            "headers['Authorization'] = `Bearer ${accessToken2}`",
        ),
    ),
    _rule(
        "bearer-token",
        r"B(?:earer|EARER)[ \t]{0,2}{NEXT_LINE}(?P<secret>[A-Za-z0-9_.~+/=-]{16,4096})(?![A-Za-z0-9_(\[:])",
        "Authorization: Bearer\n«<20>a1B2<20>»\n",
        check=checks.is_mixed_token,
        harmless=("use Bearer\ntokens-of-version-2-here, or Basic\nauth2-of-the-gateway",),
    ),
    _rule(
        "basic-auth",
        r"(?i)basic {1,2}(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})",
        "Authorization: Basic «<basic>»",
        check=checks.is_user_and_password,
        anchor=r"(?i:basic)(?: |\\+[nrt])+[A-Za-z0-9+/]*[a-z0-9+/][A-Z0-9+/=]",
    ),
    _rule(  # what a person writes in a prompt
        "secret",
        r"(?i)(?:key|token|secret) is:? {0,2}[\"'`]?(?P<secret>[A-Za-z0-9_+/=.~-]{14,512})(?![A-Za-z0-9_(])",
        "the api key is «<32 lower>», use it",
        "my token is `«<40>»`",
        check=checks.is_said_secret,
        harmless=("the token is authentication-required-2024, the key is user_profile_cache_key_v2",),
    ),
    _rule(
        "password",
        r"(?i)(?:password|passphrase|passwd) is:? {0,2}[\"'`]?(?P<secret>[!-&(-\[\]-_a-~]{7,128})(?![A-Za-z0-9_(])",
        "the password is «Zk<4>9#<3>vL»",
        check=checks.is_said_password,
        harmless=("the password is base64-encoded, the password is sha256-hashed; password is REQUIRED2",),
    ),
)

COMMANDS = (
    _rule(
        "curl-password",
        r"(?:-u|--user)[ =]{1,2}[\\\"']{0,2}[^\s:\"'\\]{1,64}:"
        r"(?P<secret>[^\s\"'\\\[\]<>{}`\x00-\x20\x7f-\xff]{4,128})",
        "curl -u me:«<password>» https://h",
        "curl --user me:«<password>» x",
        check=checks.is_password,
        harmless=("docker run -u 1000:1000 image; git push -u origin main:main2; chown -R user:group1",),
    ),
    _command_rule(
        r"mysql[a-z]{0,6}(?: [^\n]{0,160}?)? -p(?!ort[0-9= ]){ANY_SECRET}",
        "mysql -h db -uroot -p«<password>» app",
        harmless=("mysql -port3306 mysql -p app1 mysqldump -port 3306",),
    ),
    _command_rule(
        r"login [^\n]{0,160}? -p[ =]?{ANY_SECRET}",
        "docker login -u me -p «<password>» reg.io",
        harmless=("npm login --scope=@x1",),
    ),
    _command_rule(
        r"echo (?:-n )?{QUOTES}(?:[^\s:\"'\\|]{1,64}:)?(?P<secret>{ANY_PASSWORD}){QUOTES}"
        r" ?\| ?(?:base64(?! ?-[dD])|(?:[a-z]+ )?sudo -S|[a-z]+ [^\n|]{0,160}-stdin)",
        "echo -n me:«<password>» | base64",
        "echo «<password>» | docker login -u me --password-stdin",
        "echo «<password>» | sudo -S apt update",
        harmless=("echo done1 | base64 -d", "echo done12 | tee a1"),
    ),
    _command_rule(r"sshpass -p[ =]?{ANY_SECRET}", "sshpass -p «<password>» ssh me@h"),
    _command_rule(r"redis-cli [^\n]{0,160}?-a[ =]?{ANY_SECRET}", "redis-cli -h h -a «<password>» ping"),
    _command_rule(
        r"-pass(?:in|out)?[ =]{QUOTES}pass:(?P<secret>{ANY_PASSWORD})", "openssl rsa -passin pass:«<password>» -in k"
    ),
    _command_rule(
        r"{HTPASSWD}(?={PRINTS}){OPTION}{1,6}{WORD} {1,4}{SECRET}",
        "htpasswd -nb admin «<password>» > users",
        "htpasswd -nbBC 10 admin «<password>»",
        harmless=('htpasswd -nb admin "$(cat /run/p1)"; htpasswd -D file1.a user22',),
    ),
    _command_rule(
        r"{HTPASSWD}(?!{PRINTS}){OPTION}{1,6}{WORD}{2} {1,4}{SECRET}",
        "htpasswd -b .htpasswd admin «<password>»",
        "htpasswd -c -b -C 10 users 'admin' «<password>»",
        harmless=("htpasswd -b .htpasswd admin $PASS2 htpasswd -b f u ${PW1} htpasswd -cb f u <password1>",),
    ),
    _command_rule(
        r"openssl{THEN}(?:enc|aes|des|aria|camellia|chacha|sm4|rc){WITHIN} -[kK] {SECRET}",
        "openssl enc -aes-256-cbc -pbkdf2 -in a -out b -k «<password>»",
        harmless=('openssl enc -aes-256-cbc -k "$KEY1" -in a1 -kfile k1.txt; openssl enc -k <key1> -K ${KEY2}',),
    ),
    _command_rule(
        r"openssl passwd(?: -salt \S{1,32}| -[a-z0-9]{1,8}){0,4} (?!-){SECRET}",
        "openssl passwd -6 -salt ab1 «<password>»",
    ),
    _command_rule(
        r"openssl {WITHIN} -password[ =]{QUOTES}pass:{SECRET}",
        "openssl pkcs12 -export -password pass:«<password>» -in a",
    ),
    _command_rule(
        r"chpasswd[^\n|;&<]{0,40}<<-?[ \"']{0,2}\w{2,16}[\"']?(?:\n|\\{1,8}n)[^\s:]{1,64}:{SECRET}",
        "sudo chpasswd <<EOF\nroot:«<password>»\nEOF",
    ),
    _command_rule(
        r"{ECHO}[^\s:\"'\\|$]{1,64}:{SECRET}(?:\\{1,8}n)?{QUOTES} ?\|[^\n|;&]{0,60}?chpasswd",
        "echo 'root:«<password>»' | chpasswd",
        harmless=("echo 'root:'$PASS1 | chpasswd; echo \"u1:$P1\" | chpasswd",),
    ),
    _command_rule(
        r"{ECHO}(?![^\s:\"'\\|]{1,64}:[$<{%])(?P<secret>{PASSWORD}(?:\\{1,8}n{PASSWORD})?)"
        r"(?:\\{1,8}n)?{QUOTES} ?\| ?(?:sudo )?{STDIN}(?![\w-])",
        "echo «<password>» | kinit me@EXAMPLE.ORG",
        'echo -e "«<password>»" | sudo passwd me',
        harmless=("echo $P1 | sudo passwd u1 --stdin",),
    ),
    _command_rule(
        r"(?:(?:ch|smb|vnc|g)?passwd|passw(?:or)?d-stdin|kinit|sudo -S)[^\n|;&<]{0,80}<<< ?"
        r"{QUOTES}(?:[^\s:\"'\\|$]{1,64}:)?{SECRET}",
        "chpasswd <<< 'root:«<password>»'",
        "kinit me@EXAMPLE.ORG <<< '«<password>»'",
        "sudo -S <<< «<password>» apt update",
        harmless=("chpasswd <<< \"root:${P2}\"; chpasswd < users1.txt; sudo tee a <<< 'b=c123'",),
    ),
    _command_rule(r"net user /add{WORD} {1,4}(?!/){SECRET}", "net user /add me «<password>»"),
    _command_rule(
        r"net user{WORD} {1,4}(?!/){SECRET}(?=[\"'\\]{0,8}(?: /[a-zA-Z]|[\r\n`\x1b]|\Z)|[\"\\]{1,8}[nr}\],])",
        "net user me «<password>» /add",
        harmless=("net user; net user /domain; net user guest1; net users2; the net user count12 of it",),
    ),
    _command_rule(
        r"net use [^\n|;&]{0,160}?/user:[^\s]{1,64} (?!/){SECRET}", "net use Z: \\\\h\\s /user:me «<password>»"
    ),
    _command_rule(
        r"net use [^\n|;&]{0,160}?\\{2,8}[^\s]{1,128} (?!/){SECRET}(?= /user:)",
        "net use Z: \\\\h\\s «<password>» /user:me",
    ),
    _command_rule(
        r"ldap(?:search|add|modify|delete|passwd|whoami)[^\n]{0,300}? -w ?{SECRET}",
        "ldapsearch -x -D cn=me,dc=h -w «<password>» -b dc=h '(&(cn=a)(uid=b))'",
        harmless=(
            "ldapsearch -x -b dc=h1 -W -D cn=me; ldapsearch -w $LDAP_PW1 -y /run/p1; ldapsearch -w '%s' -w {pw1}",
        ),
    ),
    _command_rule(r"(?:ldap|slap)passwd{WITHIN} -s {SECRET}", "slappasswd -h {SSHA} -s «<password>»"),
    _command_rule(
        r"(?:smb(?:client|map|get|cacls|tree)|rpcclient|winexe|wmic|net (?:rpc|ads))"
        r"{WITHIN} -U ?{QUOTES}[^\s%\"']{1,64}%{SECRET}",
        "smbclient //h/s -U me%«<password>» -c ls",
        harmless=("smbclient -U user1 //h1/s2; date -u +%Y%m%d%H1; curl -U me1 x; git log -U3 --format=%H%an1",),
    ),
    _command_rule(
        r"{COMMAND}(?:un)?zip {WITHIN}(?<= )-P ?{SECRET}",
        "unzip -q -P «<password>» a.zip",
        harmless=(
            "unzip -q a1.zip -d out22; zip -r a1.zip b2 -x c3; wget -P down1oads2 https://h/a1.zip -P down1oads2",
        ),
    ),
    _command_rule(
        r"{COMMAND}7z[arz]?{THEN}[adeltux] {WITHIN}(?<= )-p{SECRET}",
        "7z x -p«<password>» a.7z",
        harmless=("7z x a1.7z -oout12; 7z x -p$PASS1 a.7z; 7z a -p%PASS1% a.7z; at 10:57Z x -p1abcdef",),
    ),
    _command_rule(
        r"snmp(?:walk|get(?:next)?|bulk(?:get|walk)|set) {WITHIN} -[AXc] {SECRET}",
        "snmpwalk -v3 -l authPriv -u me -a SHA -A «<password>» h",
        harmless=("snmpwalk -v2c -c public h1; snmpget -a SHA256 -x AES128 -A $AUTH1",),
    ),
    _command_rule(r"ipmitool {WITHIN} -P {SECRET}", "ipmitool -I lanplus -H h -U me -P «<password>» chassis status"),
    _command_rule(r"sqlcmd(?:[.]exe)? {WITHIN}(?<= )-P ?{SECRET}", "sqlcmd -S h -U sa -P '«<password>»' -Q 'select 1'"),
    _command_rule(
        r"mosquitto_(?:pub|sub|rr) {WITHIN}(?<= )-P {SECRET}", "mosquitto_pub -u me -P «<password>» -t a -m b"
    ),
    _command_rule(
        r"rabbitmqctl {WITHIN}(?:add_user|change_password){WORD} {1,4}{SECRET}", "rabbitmqctl add_user me «<password>»"
    ),
    _command_rule(
        r"{COMMAND}mongo(?:sh|dump|restore|export|import|stat|top|files)? {WITHIN}-u {WITHIN}(?<= )-p[ =]?{SECRET}",
        "mongodump --host h -u 'me' -p '«<password>»'",
        harmless=("docker run --name mongo -p 27017:27017 mongo:6.0.1; docker run -u 1000 -p 127.0.0.1:80:80 mongo1",),
    ),
    _command_rule(r"cqlsh {WITHIN}-u {WITHIN}(?<= )-p[ =]?{SECRET}", "cqlsh -u me -p «<password>» h"),
    _command_rule(
        r"curl {WITHIN}(?:(?<= )-u|--proxy-user[ =]){QUOTES}[^\s:\"'\\]{1,64}:{SECRET}",
        "curl -s -ume:«<password>» https://h",
        "curl --proxy-user me:«<password>» https://h",
        harmless=("curl -u me1: https://h1; curl -ume:$PASS1 h1; curl --proxy-user me:${P1} h; tool --use:abc123def",),
    ),
    _command_rule(r"cmdkey[^\n|;&]{0,200}? /pass:{SECRET}", "cmdkey /add:h /user:me /pass:«<password>»"),
    _command_rule(
        r"(?:(?:x|w|s|wl|sdl-)?freerdp3?)[^\n|;&]{0,200}? /p:{SECRET}", "xfreerdp /v:h /u:me /p:«<password>» /f"
    ),
    _command_rule(r"(?:plink|pscp)(?:\.exe)? {WITHIN}(?<= )-pw {SECRET}", "plink -ssh me@h -pw «<password>» ls"),
    _command_rule(r"-(?:dest|src)?(?:store|key)pass {SECRET}", "keytool -list -keystore k -storepass «<password>» -v"),
    _command_rule(r"mysqladmin {WITHIN} password {SECRET}", "mysqladmin -u root password «<password>»"),
    _command_rule(r"(?:unlock|create)-keychain -p {SECRET}", "security unlock-keychain -p «<password>» login.keychain"),
    _command_rule(r"rclone obscure {SECRET}", "rclone obscure «<password>»"),
    _password_rule(
        r"(?i:REDIS(?:CLI)?_AUTH)[\"'\\]{0,8}(?:=|:[ \t]{0,2}){SECRET}", "export REDISCLI_AUTH='«<password>»'"
    ),
    _password_rule(r"requirepass {SECRET}", "requirepass «<password>»"),
    _password_rule(r"bindpw[ \t]{1,8}{SECRET}", "bindpw «<password>»"),
    _password_rule(r"rootpw[ \t]{1,8}(?:--plaintext {1,4})?{SECRET}", "rootpw --plaintext «<password>»"),
    _rule(
        "password",
        r"(?:rootpw|olcRootPW:)[ \t]{1,8}(?:--iscrypted {1,4})?"
        r"(?P<secret>\{[A-Z0-9-]{3,16}\}[A-Za-z0-9+/=$.,-]{16,512}|\$[0-9a-z]{1,10}\$[A-Za-z0-9./$=,+-]{20,512})",
        "olcRootPW: «{SSHA}<32 base64>»",
        "rootpw --iscrypted «$6$<8>$<86>»",
    ),
    _password_rule(
        r"IDENTIFIED (?:WITH \S{1,60} )?BY (?:PASSWORD )?[\\\"']{1,8}{SECRET}(?=[\\\"'])",
        "CREATE USER 'app'@'h' IDENTIFIED BY '«<password>»';",
        harmless=("CREATE USER a IDENTIFIED BY '$PASS1'; IDENTIFIED BY 'changeme'; ORDER BY 'col1abc'",),
    ),
    _password_rule(
        r"(?:WITH|ENCRYPTED) PASSWORD [\\\"']{1,8}{SECRET}(?=[\\\"'])", "ALTER USER app WITH PASSWORD '«<password>»';"
    ),
    _password_rule(
        r"(?:with|encrypted) password [\\\"']{1,8}{SECRET}(?=[\\\"'])",
        "create role app with password '«<password>»';",
        harmless=("log in with password 'secret'; WITH PASSWORD '${PW1}'; with password \"your-password1\"",),
    ),
)

RULES = (*KEYS, *TOKENS, *TEXTS, *COMMANDS)


@dataclass(frozen=True, slots=True)
class Name:
    """What a name says of the value that is assigned to it: a secret of the kind, if it ends with one of `endings`.

    Names are compared in lower case and without separators. The value of a `weak` name has to look random, unless the
    name is that of an environment variable.
    """

    kind: str
    endings: tuple[str, ...]
    weak: bool = False
    examples: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()


NAMES = (
    Name(
        "password",
        ("password", "passwd", "pwd", "passphrase"),
        examples=(
            "DB_PASSWORD=«<password>»",
            "SMTP_PASS=«<password>»",
            "export PGPASSWORD='«<password>»'",
            'password = "«<password>»"',
            "{'passwd': '«<password>»'}",
            "mysql --password «<password>» x",
            "Server=x;Password=«<password>»;",
            "<Password>«<password>»</Password>",
            "name: DB_PASSWORD\n    value: «<password>»",
            '"name": "DB_PASSWORD", "value": "«<password>»"',
            "define('DB_PASSWORD', '«<password>»');",
            "$config['db']['password'] = '«<password>»';",
            "password: string = '«<password>»'",
            'ds.setPassword("«<password>»")',
            "SSH_PASSPHRASE='«<password>»'",
            "%22password%22%3A%20%22«hV7-quartz-81»%22",
            "jdbc:mysql://h/db?user=me&password=«hV7quartz1»&ssl=1",
            '<add key="ClearTextPassword" value="«<password>»" />',
            'administrator_login_password = "«<password>»"',
            "password:\n  «<6>a1B2#<3>»\nb: 1",
            *(f"{name}=«<password>»" for name in ("PW", "DB_PW", "export DB_PW", "LDAP_BINDPW")),
            *(f"{name} = '«<password>»'" for name in ("pw", "db_pw", "$dbPw")),
            "bindpw: «<password>»",
        ),
        harmless=(
            "const password = process.env.DB_PASSWORD2; password: hashedPassword2, passwordHash",
            'label: "Password:", "password": "Enter your password", name="password"',
            "PASSWORD=$(gen_pw 16) PASSWORD=md5(foo1) PASSWORD=getpass(x12345) DB_PASSWORD=get_secret('a1')",
            "PWD: $envFlags.PWD, pwd=osc7, pwd: osc99; PWD=$envFlags.PWD; pwd = osc99",
            "password=$envFlags.PWD password: $envFlags.PWD",
            "PW: see above, PW of page 12; PW=12.5us PW=1000us pw=300px PW=$PW1 PW=${DB_PW} DB_PW=<your-pw1>",
        ),
    ),
    Name("private-key", ("privatekey",), examples=('"private_key": "«<48 base64>»"',)),
    Name(
        "client-secret",
        ("clientsecret",),
        examples=('"client_secret": "«<30>»"', "x&client_secret%3D«<30>»%26"),
        harmless=("client_secret: myClientSecretValue1",),
    ),
    Name(
        "secret",
        (
            *("secret", "secretkey", "secrettoken", "signingkey", "encryptionkey", "masterkey", "hmackey", "jwtkey"),
            "sharedkey",
        ),
        examples=("SECRET_KEY=«<50>»", 'jwt_secret: "«<32 hex>»"', "STRIPE_SIGNING_SECRET=«<32>»"),
        harmless=(
            '"encryptionKey": "arn:aws:kms:us-west-2:123456789012:key/c9fe2447-0795-4fda-afbe-8464574ae162"',
            "SECRET_KEY=${SECRET_KEY} secret=self.secret_value2",
        ),
    ),
    Name(
        "api-key",
        (
            *("apikey", "apitoken", "appkey", "applicationkey", "accesskey", "authkey", "servicekey", "rolekey"),
            *("accountkey", "storagekey", "adminkey", "licensekey", "subscriptionkey"),
        ),
        examples=(
            "OTHER_API_KEY=«<32>»",
            "?x=1&api_key=«<32>»&y=2",
            "x-api-key: «<32>»",
            "os.environ['MY_API_KEY'] = '«<32>»'",
            '<add key="ApiKey" value="«<32>»"/>',
            'const API_KEY: &str = "«<32>»"',
            'setHeader("X-Api-Key", "«<32>»")',
            "set -gx API_KEY «<32>»",
            "ENV API_KEY «<32>»",
            *(
                f"{name}=«<40>»"
                for name in (
                    *("PAGERDUTY_API_KEY", "STATUSPAGE_API_KEY", "MINIO_ACCESS_KEY", "MAXMIND_LICENSE_KEY"),
                    *("OBJECT_STORAGE_ACCESS_KEY", "ADMIN_API_KEY", "NUMVERIFY_API_KEY", "COUNTLY_APP_KEY"),
                    *("GEMINI_API_KEY", "SORTLY_API_KEY", "SYNCFUSION_LICENSE_KEY", "PROMPTLAYER_API_KEY"),
                )
            ),
        ),
        harmless=(
            "OPENAI_API_KEY=<your-key> API_KEY=your-api-key-here TOKEN=$TOKEN",
            "const key = process.env.MY_API_KEY; apiKey: process.env.OPENAI_API_KEY_2,",
            'api_key = os.environ["API_KEY"]; token = os.getenv("TOKEN2"); api_key: settings.api_key_2',
            "test-api-key-12345678 in API_KEY=test-api-key-12345678",
        ),
    ),
    Name(
        "token",
        (
            *("accesstoken", "authtoken", "refreshtoken", "bearertoken", "bottoken", "sessiontoken", "idtoken"),
            *("registrytoken", "deploytoken"),
        ),
        examples=(
            "NPM_REGISTRY_TOKEN=«<40>»",
            '"access_token":"«<40>»"',
            "CACHE_AUTH_TOKEN=«<40>»",
        ),
        harmless=("connect(token=token, password=password)", "AUTH_TOKEN_FILE=/run/secrets/auth1"),
    ),
    Name(
        "token",
        ("token",),
        weak=True,
        examples=(
            "tool --token «<40>»",
            *(f"{name}=«<40>»" for name in ("NPM_PUBLISH_TOKEN", "NEXTCLOUD_TOKEN", "SYNCTHING_TOKEN", "ADMIN_TOKEN")),
            'fooToken="«<32 lower>»"',
            'fooToken = "«<40 hex>»"',
            'var fooToken string = "«<32 lower>»"',
            "foo_token: «<32 lower>»",
            '"foo_token": "«<24 lower>»"',
            "<fooToken>«<32 lower>»</fooToken>",
        ),
        harmless=(
            "nextPageToken=<40>",
            "list --starting-token <40> Next page token: <25>",
            '"ClientToken": "<40>"',
            '"SubjectFromWebIdentityToken": "amzn1.account.AF6RHO7KZU5XRVQJGXK6HB56KR2A"',
        ),
    ),
    Name(
        "api-key",
        ("key",),
        weak=True,
        examples=(
            "setx OPENAI_KEY «<32>»",
            "COSMOS_PRIMARY_KEY=«<86 base64>==»",
            'stripe_key = "«<32 lower>»"',
            "DEEPSOURCE_KEY=«<40 hex>»",
        ),
        harmless=(
            "cache_key: 2cf24dba5fb0a30e26e83b2ac5b9e29e",
            "Cache saved with the key: golangci-lint.cache-Linux-./src-2930-1f2e3d4c5b6a79881726354453627180a1b2c3d4",
            "key: node-modules-Linux-x64-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            '"S3Key": "867139942017-EntitiesDetection-ab9887877365fe70299089371c043b96/"',
            "PRIVATE_KEY=/etc/ssl/private/key1.pem; STRIPE_PUBLIC_KEY=<32>",
            'key: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE<60>"',
        ),
    ),
    Name(
        "secret",
        ("salt",),
        weak=True,
        examples=('"salt": "«<20>a1B2c3»"', "PASSWORD_SALT=«<20>a1B2»"),
        harmless=('salt=saltRounds10, salt: \'pepper12\', salt = os.urandom(16), "salt": "joserfc-v1", basalt=a1',),
    ),
)

VENDORS = (
    ("awssecret", "aws-secret-key", "aws_secret_access_key = «<40 base64>»"),
    ("secretaccesskey", "aws-secret-key", "SECRET_ACCESS_KEY=«<40 base64>»"),
    ("awssession", "aws-session-token", "AWS_SESSION_TOKEN=«<200 base64>»"),
    ("mistral", "mistral-api-key", "MISTRAL_API_KEY=«<32>»"),
    ("cohere", "cohere-api-key", 'cohere_key="«<40>»"'),
    ("vercel", "vercel-token", "export VERCEL_TOKEN=«<24>»"),
    ("cloudflare", "cloudflare-api-token", "CLOUDFLARE_API_TOKEN: «<40 url>»"),
    ("datadog", "datadog-api-key", '"datadog_app_key": "«<40 hex>»"'),
    ("ddapi", "datadog-api-key", "DD_API_KEY=«<32 hex>»"),
    ("ddapp", "datadog-api-key", "DD_APP_KEY=«<40 hex>»"),
    ("fastly", "fastly-api-token", "FASTLY_API_TOKEN=«<32 url>»"),
    ("snowflake", "snowflake-token", "SNOWFLAKE_TOKEN=«<40>»"),
    ("azureclient", "azure-client-secret", "AZURE_CLIENT_SECRET=«<34>»"),
    ("twilio", "twilio-auth-token", "TWILIO_AUTH_TOKEN=«<32 hex>»"),
    ("asana", "asana-token", "ASANA_ACCESS_TOKEN=«1/<16 digits>:<32 hex>»"),
    ("heroku", "heroku-api-key", "HEROKU_API_KEY=«<uuid>»"),
    ("algolia", "algolia-api-key", "ALGOLIA_ADMIN_KEY=«<32 hex>»"),
    ("okta", "okta-token", "OKTA_API_TOKEN=«00<40>»"),
    ("auth0", "auth0-client-secret", "AUTH0_CLIENT_SECRET=«<64>»"),
    ("deepseek", "deepseek-api-key", "DEEPSEEK_KEY=«<40>»"),
    ("wandb", "wandb-api-key", "WANDB_API_KEY=«<40 hex>»"),
    ("elastic", "elastic-api-key", "ELASTIC_API_KEY=«<60>»"),
    ("codecov", "codecov-token", "CODECOV_TOKEN=«<32 hex>»"),
    ("bitbucket", "bitbucket-token", "BITBUCKET_TOKEN=«<40>»"),
    ("plaid", "plaid-secret", "PLAID_SECRET=«<30 hex>»"),
    ("twitter", "twitter-secret", "TWITTER_API_SECRET=«<50>»"),
    ("facebook", "facebook-secret", "FACEBOOK_APP_SECRET=«<32 hex>»"),
    ("hubspot", "hubspot-token", 'hubspotToken = "«<uuid>»"'),
    ("snyk", "snyk-token", 'snykToken = "«<uuid>»"'),
    ("squarespace", "squarespace-token", 'squarespaceToken = "«<uuid>»"'),
    ("sendbird", "sendbird-token", 'sendbirdToken = "«<uuid>»"'),
    ("messagebird", "messagebird-token", 'messagebirdToken = "«<uuid>»"'),
    ("kucoin", "kucoin-key", 'kucoinToken = "«<uuid>»"'),
)
"""A part of a name that has a secret's ending, without its separators; the kind of the value; an example."""

HARMLESS_WORDS = frozenset(
    (
        *("public", "pub", "publishable", "cache", "cached", "primary", "foreign", "sort", "partition", "next", "page"),
        *("continuation", "cursor", "sync", "csrf", "xsrf", "cancel", "cancellation", "max", "min", "total", "num"),
        *("count", "input", "output", "prompt", "completion", "idempotency", "dedup", "dedupe", "object", "etag"),
        *("anon", "starting", "change", "s3", "bucket", "resource", "update", "start", "end", "eos", "bos", "pad"),
    )
)
"""Words that make `key` and `token` harmless: the values of such names are no secrets. They count only as whole words,
and neither in names with an ending that is not weak nor in the names of environment variables."""
PUBLIC_WORDS = frozenset(("public", "publishable", "pub"))
"""Those of them that count in the name of an environment variable, too."""
