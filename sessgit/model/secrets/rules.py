"""What a secret looks like: the formats of tokens, and the names whose values are secrets.

Formats are public facts of the services that issue the tokens. Expressions are for bytes and match ASCII only,
so that a cut never falls inside a character. They are compiled on first use: most sessions hold no secret.
"""

import re
from dataclasses import dataclass

from sessgit.model.secrets import commands, later

RULES_VERSION = 7
"""Stored with every session; it rises with any change that makes another text come out."""


NAME_TAIL = (
    r"(?:[_-]?(?:[0-9]{1,2}|prod|production|dev|development|test|staging|live|value|base64|b64))?"
    r"(?P<quote>[\"'`\\]{0,10})[ \t]{0,8}"
)
"""What may stand between the last word of a name and the sign of an assignment."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: `pattern` finds it in texts that hold the `cue`.

    The group `secret`, where there is one, is what is replaced. `check` names how a find is told from an
    example: "token" (machine-made, only a row of x is one), "password" (made by people), "word" or "basic".
    """

    kind: str
    cue: str
    pattern: str
    check: str = "token"
    since: int = 1
    """The version of the rules that it came with: a session keeps to those that it began with."""
    sign: bytes = b""
    """What every match has, where that is sought much faster than the pattern."""


_PRIVATE_KEY = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?P<secret>(?:\s|\\+[nr])*+"
    r"(?:[A-Za-z-]{4,20}: [^\r\n\\\[]{1,100}(?:\s|\\+[nr])++)*+(?:[A-Za-z0-9+/=]|[\r\n]\s*+|\\+[nr]\s*+){40,}+)"
)
# Told from the middle of a longer run by itself: any of thousands of starts in one would read on to its end.
_JWT = (
    r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|(?<=[0-9;\[]m))eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{10,}"
)
_URL = r"://[^\s/:@\"'<>\[\]{}\\]{0,64}:(?P<secret>[!#$%&()*+,.0-9:;=?A-Z^_a-z|~-]{3,128})@(?=[A-Za-z0-9_.-])"
_COOKIE = (
    r"(?i)cookie[\"'\\]{0,3}\s?[:=]\s?[\"'\\]{0,2}(?:[^\s=;\"'\\]{1,64}=[^;\s\"'\\]{0,4096};\s?){0,50}?"
    r"[^\s=;\"'\\]{0,32}(?:sess|sid|auth|token|jwt)[^\s=;\"'\\]{0,32}=(?P<secret>[A-Za-z0-9%._~+/=:-]{16,4096})"
)
_CURL = r"(?:-u|--user)[ =]{1,2}[\\\"']{0,2}[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\\[\]<>{}`\x00-\x20\x7f-\xff]{4,128})"
_NETRC = (
    r"machine\s+\S{1,128}\s+login\s+\S{1,128}\s+password\s+(?P<secret>[^\s\"'\\\[\]<>{}`\x00-\x20\x7f-\xff]{4,128})"
)

# Specific kinds stand before the general ones that would match the same text.
RULES = (
    *(Rule(kind, cue, pattern, check, 3) for kind, cue, pattern, check in later.BEFORE),
    Rule("private-key", "B", _PRIVATE_KEY),
    Rule("age-secret-key", "-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,64}"),
    Rule("onepassword-token", "_", r"ops_eyJ[A-Za-z0-9_=-]{80,}"),
    Rule("sentry-org-token", "_", r"sntrys_[A-Za-z0-9+/=_-]{40,}"),
    Rule("grafana-cloud-token", "_", r"glc_[A-Za-z0-9+/=]{32,}"),
    Rule("supabase-key", "_", r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    Rule("jwt", ".", _JWT, sign=b"eyJ"),
    Rule("aws-access-key", "A", r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    Rule("google-api-key", "A", r"AIza[A-Za-z0-9_-]{35}"),
    Rule("google-client-secret", "-", r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Rule("google-oauth-token", ".", r"ya29\.[A-Za-z0-9_-]{20,}"),
    Rule("azure-storage-key", "A", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})"),
    Rule("azure-shared-key", "key", r"SharedAccessKey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    Rule("azure-sas", "%", r"sig=(?P<secret>[A-Za-z0-9%+/]{40,}%3[Dd])"),
    Rule("azure-client-secret", "~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    Rule("github-fine-grained-token", "_", r"github_pat_[A-Za-z0-9_]{22,}"),
    Rule("github-token", "_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    Rule("gitlab-token", "-", r"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_-]{20,}"),
    Rule("anthropic-api-key", "-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    Rule("openrouter-api-key", "-", r"sk-or-v[0-9]-[A-Za-z0-9]{32,}"),
    Rule("langfuse-secret-key", "-", r"sk-lf-[0-9a-f-]{30,}"),
    Rule("openai-api-key", "-", r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{32,})"),
    Rule("huggingface-token", "_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    Rule("replicate-token", "_", r"r8_[A-Za-z0-9]{30,}"),
    Rule("groq-api-key", "_", r"gsk_[A-Za-z0-9]{40,}"),
    Rule("xai-api-key", "-", r"xai-[A-Za-z0-9]{40,}"),
    Rule("perplexity-api-key", "-", r"pplx-[A-Za-z0-9]{32,}"),
    Rule("nvidia-api-key", "-", r"nvapi-[A-Za-z0-9_-]{50,}"),
    Rule("together-api-key", "_", r"tgp_v1_[A-Za-z0-9_-]{40,}"),
    Rule("fireworks-api-key", "_", r"fw_[A-Za-z0-9]{22,}"),
    Rule("tavily-api-key", "-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{24,}"),
    Rule("firecrawl-api-key", "-", r"fc-[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule("langsmith-api-key", "_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    Rule("pinecone-api-key", "_", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}"),
    Rule("jina-api-key", "_", r"jina_[A-Za-z0-9]{32}[A-Za-z0-9_-]{10,}"),
    Rule("cerebras-api-key", "-", r"csk-[a-z0-9]{40,}"),
    Rule("runpod-api-key", "_", r"rpa_[A-Z0-9]{30,}[A-Za-z0-9]*"),
    Rule("elevenlabs-api-key", "_", r"sk_[0-9a-f]{48}(?![A-Za-z0-9])"),
    Rule("stripe-key", "_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    Rule("webhook-secret", "_", r"whsec_[A-Za-z0-9+/]{24,}={0,2}"),
    Rule("square-token", "-", r"sq0[a-z]{3}-[A-Za-z0-9_-]{22,}"),
    Rule(
        "braintree-token",
        "key",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    Rule("shopify-token", "_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Rule("slack-token", "-", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{20,}"),
    Rule("slack-app-token", "-", r"xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    Rule(
        "slack-webhook",
        ".",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9_/+-]{30,})",
    ),
    Rule("discord-bot-token", ".", r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    Rule("discord-webhook", ".", r"/api/webhooks/(?P<secret>[0-9]{17,20}/[A-Za-z0-9_-]{60,80})"),
    Rule("telegram-bot-token", "A", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    Rule("twilio-api-key", "key", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    Rule("sendgrid-api-key", ".", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    Rule("mailgun-api-key", "-", r"key-[0-9a-z]{32}(?![A-Za-z0-9-])"),
    Rule("mailchimp-api-key", "-", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9-])"),
    Rule("resend-api-key", "_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    Rule("npm-token", "_", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    Rule("pypi-token", "-", r"pypi-[A-Za-z0-9_-]{50,}"),
    Rule("rubygems-api-key", "_", r"rubygems_[a-f0-9]{48}"),
    Rule("crates-io-token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    Rule("docker-token", "_", r"dckr_[po]at_[A-Za-z0-9_-]{27,}"),
    Rule("digitalocean-token", "_", r"do[opr]_v1_[a-f0-9]{64}"),
    Rule("heroku-api-key", "-", r"HRKU-[A-Za-z0-9_-]{36,}"),
    Rule("netlify-token", "_", r"nfp_[A-Za-z0-9]{36,}"),
    Rule("vercel-token", "_", r"vc[piark]_[A-Za-z0-9]{24,}"),
    Rule("render-api-key", "_", r"rnd_[A-Za-z0-9]{28,}"),
    Rule("fly-token", "_", r"fm2_[A-Za-z0-9+/=]{60,}"),
    Rule("cloudflare-ca-key", "-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    Rule("tailscale-key", "-", r"tskey-[a-z]+-[A-Za-z0-9]{6,}-[A-Za-z0-9]{16,}"),
    Rule("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?(?![A-Za-z0-9])"),
    Rule("newrelic-key", "-", r"NRAK-[A-Z0-9]{27}"),
    Rule("sentry-user-token", "_", r"sntryu_[a-f0-9]{64}"),
    Rule("grafana-token", "_", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    Rule("posthog-api-key", "_", r"phx_[A-Za-z0-9]{40,}"),
    Rule("linear-api-key", "_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    Rule("notion-token", "_", r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9]))"),
    Rule("figma-token", "_", r"figd_[A-Za-z0-9_-]{38,}"),
    Rule("atlassian-token", "A", r"AT[AC]TT3[A-Za-z0-9_=-]{50,}"),
    Rule("airtable-token", ".", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    Rule(
        "doppler-token",
        ".",
        r"dp\.(?:pt|ct|st|sa|scim|audit)\.(?:[a-z0-9_-]{1,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    Rule("vault-token", ".", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    Rule("terraform-token", ".", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}", sign=b".atlasv1."),
    Rule("pulumi-token", "-", r"pul-[a-f0-9]{40}"),
    Rule("postman-api-key", "-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    Rule("planetscale-token", "_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}"),
    Rule("circleci-token", "_", r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[a-f0-9]{40}"),
    Rule("buildkite-token", "_", r"bkua_[a-z0-9]{40}"),
    Rule("prefect-api-key", "_", r"pnu_[A-Za-z0-9]{36}"),
    Rule("sourcegraph-token", "_", r"sgp_(?:[A-Za-z0-9]{16}_|local_)?[a-f0-9]{40}"),
    Rule("wakatime-api-key", "_", r"waka_[0-9a-f]{8}-[0-9a-f-]{27}"),
    Rule("contentful-token", "-", r"CFPAT-[A-Za-z0-9_-]{43}"),
    *(
        Rule(kind, cue, pattern, later.CHECKS.get(kind, "token"), since, later.SIGNS.get(kind, b""))
        for since, kind, cue, pattern in later.KINDS
    ),
    *(Rule(kind, cue, pattern, check, 3, later.SIGNS.get(kind, b"")) for kind, cue, pattern, check in later.AFTER),
    *(Rule(kind, cue, pattern, check, 4) for kind, cue, pattern, check in later.AFTER_4),
    *(Rule(kind, cue, pattern, check, 5) for kind, cue, pattern, check in later.AFTER_5),
    *(Rule(kind, cue, pattern, check, 7, sign) for kind, cue, sign, pattern, check in commands.KINDS),
    Rule("postgres-password", "@", r"postgres(?:ql)?(?:\+[a-z0-9]+)?" + _URL, "password"),
    Rule("mysql-password", "@", r"(?:mysql|mariadb)(?:\+[a-z0-9]+)?" + _URL, "password"),
    Rule("mongodb-password", "@", r"mongodb(?:\+srv)?" + _URL, "password"),
    Rule("redis-password", "@", r"rediss?" + _URL, "password"),
    Rule("amqp-password", "@", r"amqps?" + _URL, "password"),
    Rule("url-password", "@", _URL, "password"),
    Rule(
        "bearer-token",
        "B",
        r"(?i)bearer[ \t]{1,4}(?P<secret>[A-Za-z0-9_.~+/=-]{16,4096})",
        "word",
    ),
    Rule("basic-auth", "B", r"(?i)basic {1,2}(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})", "basic"),
    Rule("session-cookie", "key", _COOKIE, "word"),
    Rule("netrc-password", "password", _NETRC, "password"),
    Rule("curl-password", "-", _CURL, "password"),
)

VENDORS = (
    ("awssecret", "aws-secret-key"),
    ("secretaccesskey", "aws-secret-key"),
    ("awssession", "aws-session-token"),
    ("mistral", "mistral-api-key"),
    ("cohere", "cohere-api-key"),
    ("vercel", "vercel-token"),
    ("cloudflare", "cloudflare-api-token"),
    ("datadog", "datadog-api-key"),
    ("ddapi", "datadog-api-key"),
    ("ddapp", "datadog-api-key"),
    ("fastly", "fastly-api-token"),
    ("snowflake", "snowflake-token"),
    ("azureclient", "azure-client-secret"),
    ("twilio", "twilio-auth-token"),
    ("asana", "asana-token"),
    ("heroku", "heroku-api-key"),
    ("algolia", "algolia-api-key"),
    ("okta", "okta-token"),
    ("auth0", "auth0-client-secret"),
    ("deepseek", "deepseek-api-key"),
    ("wandb", "wandb-api-key"),
    ("elastic", "elastic-api-key"),
    ("codecov", "codecov-token"),
    ("bitbucket", "bitbucket-token"),
    ("plaid", "plaid-secret"),
    ("twitter", "twitter-secret"),
    ("facebook", "facebook-secret"),
)
"""What a name with a secret's ending holds, told by a part of the name without its separators."""

STRONG_ENDINGS = (
    ("password", "password"),
    ("passwd", "password"),
    ("pwd", "password"),
    ("privatekey", "private-key"),
    ("clientsecret", "client-secret"),
    ("secret", "secret"),
    ("secretkey", "secret"),
    ("secrettoken", "secret"),
    ("signingkey", "secret"),
    ("encryptionkey", "secret"),
    ("masterkey", "secret"),
    ("hmackey", "secret"),
    ("jwtkey", "secret"),
    ("sharedkey", "secret"),
    ("apikey", "api-key"),
    ("apitoken", "api-key"),
    ("appkey", "api-key"),
    ("applicationkey", "api-key"),
    ("accesskey", "api-key"),
    ("authkey", "api-key"),
    ("servicekey", "api-key"),
    ("rolekey", "api-key"),
    ("accountkey", "api-key"),
    ("storagekey", "api-key"),
    ("adminkey", "api-key"),
    ("licensekey", "api-key"),
    ("subscriptionkey", "api-key"),
    ("accesstoken", "token"),
    ("authtoken", "token"),
    ("refreshtoken", "token"),
    ("bearertoken", "token"),
    ("bottoken", "token"),
    ("sessiontoken", "token"),
    ("idtoken", "token"),
    ("registrytoken", "token"),
    ("deploytoken", "token"),
)
"""Endings of names (lower case, without separators) whose values are secrets wherever they stand."""

WEAK_ENDINGS = (("token", "token"), ("key", "api-key"))
"""Endings that only mean a secret in an environment variable, or before a value that looks random."""

HARMLESS_NAMES = re.compile(
    r"public|publish|cache|primary|foreign|sort|partition|next(?!auth)|page|continuation|cursor|sync|csrf|xsrf|cancel"
    r"|^max|^min|total|num|(?<!ac)count|input|output|prompt|completion|idempot|dedup|object|etag|anon"
)
"""Names that end like a secret's and hold none."""
