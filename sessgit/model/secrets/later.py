"""The kinds of secrets that came with later versions of the rules.

A session keeps to the rules that it began with: so what is recorded stays, and what goes on comes out the same.
"""

TAIL = (
    r"(?:[_-]?(?:[0-9]{1,2}|env|prod|production|dev|development|test|staging|live|value|base|base64|b64))?"
    r"(?P<quote>(?:[\"'`\\\]]|%22){0,16})[ \t]{0,8}"
)
"""What may stand between the last word of a name and what follows it."""

PAIR = r"[,;]?[\s\\nrt0-9\"'{}\xe2\x86\x92|+-]{0,48}?value[\"'\\]{0,16}[ \t]?[:=]"
"""What stands between a name and its value where both are named: `name: DB_PASSWORD` and then `value: …`."""

TYPED = (
    r":[ \t]?(?:&(?:'?static )?str|str(?:ing)?|text|bytes|any|secretstr|optional\[str\])"
    r"(?: ?\| ?(?:none|null|undefined))?[ \t]?=(?!=)"
)
"""The sign between a name with a type and its value."""

NEXT_LINE = (
    r"(?:\\{1,15}r)?(?:\\{1,15}n|\\?\r?\n)"
    r"(?:[ \t]{0,8}[0-9]{1,6}(?:\xe2\x86\x92|\\{0,15}\t|\\{1,15}t|\\{1,15}u2192))?(?:[ \t+]|\\{1,8}t){0,40}"
)
"""The end of a line and the beginning of the next one, with what a tool puts there."""

BELOW = r"[ \t]{0,3}(?:[>|][+-]?|\()?[ \t]{0,2}" + NEXT_LINE
"""What stands between a sign and a value on the line below."""

FROM_4 = (
    (r"\\\]]|%22){0,16}", r"\\\]]|%22){0,64}"),
    (
        r"[ \t]{0,8}(?:%20)?(?:%22)?[rbfu]{0,2}\\{0,16}",
        r"(?:[ \t]{0,8}(?:%20)?(?:%22)?|" + BELOW + r")[rbfu]{0,2}\\{0,64}",
    ),
    (r"|+-]{0,48}?value[\"'\\]{0,16}", r"|+-]{0,80}?value[\"'\\]{0,64}"),
    (r"ie[\"'\\]{0,9} ?[:=]", r"ie[\"'\\]{0,64} ?[:=]"),
    (r"ty[\"'\\]{1,9} ?:", r"ty[\"'\\]{1,64} ?:"),
    (r"auth\\{0,15}\" ?: ?\\{0,15}", r"auth\\{0,64}\" ?: ?\\{0,64}"),
    (r"[ \t\\]t?[A-Za-z0-9_.~+/=-]{8}", r"(?:[ \t\\]t?|[ \t]{0,2}" + NEXT_LINE + ")[A-Za-z0-9_.~+/=-]{8}"),
    (r"\.(?:eyJ", r"\.(?:pem[\"\\:\n]|p8[\"\\:\n]|ppk[\"\\:\n]|key[\"\\:\n]|ssh/id_|eyJ"),
    (
        r"A(?:KIA",
        r"A(?:(?:LT(?<=SALT)|LS(?<=CREDENTIALS))" + TAIL.replace("?P<quote>", "?:") + r"(?:=>|:=|={1,3}|:)"
        r"|TE KEY(?:---| BLOCK---)|KIA",
    ),
)
"""What version 4 has in the place of parts of the cues."""

FROM_5 = (
    (r"|p(?<=sshpass -p)", r"|p(?<=sshpass -p)|[apu][\"'\\]{1,64},"),
    (r"l[a-z]{0,6} [^\n]", r"l[a-z]{0,6}(?: |[\"'\\]{1,64},)[^\n]"),
    (r"|KIA|SIA", r"|(?<=ktdjEA)AAA|(?<=IBA)(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC)|KIA|SIA"),
)
"""What version 5 has in the place of parts of those of version 4."""

CUES = (
    ("cli", r"\| ?(?:base64(?![A-Za-z0-9_;'])|(?:[a-z]+ )?sudo -S|[a-z]+ [^\n|]{0,160}-stdin)", b"", False),
    ("cli", r"q(?<=mysq)l[a-z]{0,6} [^\n]{0,160}?-p", b"", False),
    ("cli", r"login [^\n\\|]{0,160}? -p", b"", False),
    ("salt", r"salt[\"'\\]{0,64}[ \t]{0,8}[:=]", b"salt", True),
    ("pgpass", r":5432:[^\s:]{1,64}:[^\s:]{1,64}:[^\s:]{6}", b"", False),
)
"""More cues: name, pattern, sign and whether it is for texts in lower case."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"

KINDS = (
    (2, "slack-token", "-", r"xox[cd]-[A-Za-z0-9%-]{20,}"),
    (
        2,
        "encoded-private-key",
        "B",
        r"LS0tLS1CRUdJTi(?:BSU0Eg|BFQyB|BPUEVOU1NI|BQUklW)[A-Za-z0-9+/=]{100,}",
    ),
    (
        2,
        "putty-private-key",
        "-",
        # No possessive groups: Python before 3.11.5 takes too much by them (python/cpython#106052).
        r"Private-Lines: [0-9]{1,3}(?:[\r\n]|\\+[nr])+(?P<secret>[A-Za-z0-9+/=]{16,64}"
        r"(?:(?:[\r\n]|\\+[nr])+(?:[A-Za-z0-9+/=]{16,64}|[A-Za-z0-9+/]{1,15}={1,2}))*)",
    ),
    (2, "docker-auth", "auth", r"\"auth\\{0,3}\" ?: ?\\{0,3}\"(?P<secret>[A-Za-z0-9+/]{12,512}={0,2})"),
    (2, "bitbucket-token", "A", r"ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    (2, "bedrock-api-key", "A", r"ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    (2, "artifactory-token", "A", r"AKCp[A-Za-z0-9]{60,}"),
    (2, "yandex-api-key", "A", r"AQVN[A-Za-z0-9_-]{35,40}"),
    (2, "azure-devops-token", "A", r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    (2, "easypost-api-key", "A", r"EZAK[A-Za-z0-9]{54}(?![A-Za-z0-9])"),
    (2, "flutterwave-key", "-", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?"),
    (2, "hubspot-token", "-", r"pat-(?:na|eu)[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (2, "brevo-api-key", "-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    (2, "llamacloud-api-key", "-", r"llx-[A-Za-z0-9]{40,}"),
    (2, "inngest-signing-key", "-", r"signkey-[a-z]{4,8}-[0-9a-f]{64}"),
    (2, "axiom-token", "-", r"xa[ap]t-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (2, "launchdarkly-key", "-", r"sdk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    (2, "dropbox-token", ".", r"sl\.(?:u\.)?[A-Za-z0-9_-]{100,}"),
    (2, "mailersend-token", ".", r"mlsn\.[0-9a-f]{64}"),
    (2, "mapbox-token", ".", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    (2, "shippo-token", "_", r"shippo_live_[0-9a-f]{40}"),
    (2, "readme-api-key", "_", r"rdme_[a-z0-9]{60,}"),
    (2, "clojars-token", "_", r"CLOJARS_[0-9a-f]{60}"),
    (2, "neon-api-key", "_", r"napi_[a-z0-9]{60,}"),
    (2, "e2b-api-key", "_", r"e2b_[0-9a-f]{40}"),
    (2, "daytona-api-key", "_", r"dtn_[0-9a-f]{64}"),
    (2, "honeycomb-api-key", "_", r"hc[abx]i[ck]_[a-z0-9]{58}"),
    (2, "checkly-api-key", "_", r"cu_[0-9a-f]{32}(?![A-Za-z0-9])"),
    (2, "trigger-api-key", "_", r"tr_(?:dev|prod|stg|pat)_[A-Za-z0-9]{20,}"),
    (2, "paddle-api-key", "_", r"pdl_(?:live|sdbx)_apikey_[a-z0-9]{26}_[A-Za-z0-9]{22}_[A-Za-z0-9]{3}"),
    (2, "polar-token", "_", r"polar_(?:oat|pat)_[A-Za-z0-9]{40,}"),
    (2, "typeform-token", "_", r"tfp_[A-Za-z0-9]{16}[A-Za-z0-9_-]{24,}"),
    (3, "docker-auth", "auth", r"\"?auth\\{0,15}\" ?: ?\\{0,15}\"(?P<secret>[A-Za-z0-9+/]{12,512}={0,2})"),
    (3, "google-api-key", "A", r"AQ\.Ab8[A-Za-z0-9_-]{40,}"),
    (3, "wandb-api-key", "_", r"wandb_v1_[A-Za-z0-9_]{40,}"),
    (3, "cursor-api-key", "_", r"(?:key|crsr)_[0-9a-f]{64}(?![A-Za-z0-9])"),
    (3, "modal-token", "-", r"(?<![_-])a[ks]-[A-Za-z0-9]{22}(?![A-Za-z0-9_-])"),
    (3, "voyage-api-key", "-", r"(?<![_-])pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    (3, "mem0-api-key", "-", r"m0-[A-Za-z0-9]{40}(?![A-Za-z0-9])"),
    (3, "helicone-api-key", "-", r"sk-helicone-[a-z0-9]{5,}(?:-[a-z0-9]{5,}){2,}"),
    (3, "litellm-api-key", "-", r"(?<![_-])sk-[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])"),
    (3, "browserbase-api-key", "_", r"bb_live_[A-Za-z0-9_-]{27}"),
    (3, "brave-api-key", "A", r"(?<![_-])BSA[A-Za-z0-9_-]{24,28}(?![A-Za-z0-9_-])"),
    (3, "scrapfly-api-key", "-", r"scp-live-[0-9a-f]{32}"),
    (3, "apify-token", "_", r"apify_api_[A-Za-z0-9]{36}"),
    (3, "vercel-blob-token", "_", r"vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}"),
    (3, "alibaba-access-key", "A", r"LTAI[A-Za-z0-9]{12,20}(?![A-Za-z0-9])"),
    (3, "tencent-secret-id", "A", r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    (3, "facebook-token", "A", r"(?<![+/=_-])EAA[A-Z][A-Za-z0-9]{100,}(?![A-Za-z0-9+/=])"),
    (3, "square-token", "A", r"(?<![+/=_-])EAAA[A-Za-z0-9_-]{60}(?![A-Za-z0-9+/=_-])"),
    (3, "firebase-server-key", "A", r"AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,}"),
    (3, "newrelic-license", "A", r"[0-9a-f]{36}NRAL"),
    (3, "adafruit-key", "_", r"aio_[A-Za-z0-9]{28}"),
    (3, "duffel-token", "_", r"duffel_(?:test|live)_[A-Za-z0-9_-]{43}"),
    (3, "dynatrace-token", ".", r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    (3, "sonar-token", "_", r"sq[pau]_[0-9a-f]{40}"),
    (3, "octopus-api-key", "-", r"API-[A-Z0-9]{26}(?![A-Za-z0-9])"),
    (3, "snyk-token", ".", r"snyk_[us]at\.[0-9a-f]{8}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
    (3, "swarm-token", "-", r"SWMTKN-1-[a-z0-9]{40,}-[a-z0-9]{20,}"),
    (3, "razorpay-key", "_", r"rzp_(?:live|test)_[A-Za-z0-9]{14}"),
    (3, "plaid-token", "-", "access-production-" + _UUID),
    (3, "frameio-token", "-", r"fio-u-[A-Za-z0-9_-]{64}"),
    (3, "scalingo-token", "-", r"tk-us-[A-Za-z0-9_-]{48}"),
    (3, "onepassword-secret-key", "-", r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){2,3}"),
    (3, "lob-api-key", "_", r"live_[0-9a-f]{35}(?![0-9a-z])"),
    (3, "maxmind-key", "_", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    (3, "amazon-mws-token", ".", r"amzn\.mws\." + _UUID),
    (3, "teams-webhook", ".", r"webhook\.office\.com/webhookb2/(?P<secret>[0-9a-f@/A-Za-z-]{60,})"),
    (
        3,
        "jwt",
        ".",
        r"eyJhbGciOi[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,1024}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{22}",
    ),
)
"""With the version, the kind, the cue and the expression."""

CHECKS = {
    "docker-auth": "basic",
    "litellm-api-key": "mixed",
    "voyage-api-key": "mixed",
    "modal-token": "mixed",
    "brave-api-key": "mixed",
    "octopus-api-key": "mixed",
}
"""How finds of some of them are told from what only looks so."""

SIGNS = {"jwt": b"eyJ", "jwk": b"kty", "maxmind-key": b"_mmk"}
"""What every match of some of them has."""

_PASSWORD = r"[^\x00-\x20\x7f\"'\\`|<>]{4,128}"
_QUOTES = r"[\\\"']{0,8}"
_ARMOR = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:(?!-----(?:BEGIN|END) )[\s\S]){40,20000}?)(?=-----END )"
)
# A file that was cut, with what a tool puts before each of its lines.
_TORN = (
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}[^A-Za-z0-9+/=]{1,6}[A-Za-z0-9+/=]{40,76}(?![A-Za-z0-9+/=]))+"
    r"(?:[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}[^A-Za-z0-9+/=]{1,6}[A-Za-z0-9+/=]{1,76}(?![A-Za-z0-9+/=]))?)"
)
_GAP = r"(?:\s|\\+[nrt]|[0-9]{1,6}(?:\xe2\x86\x92|\\+u2192|\\*\t))"
_DATABASES = (
    ("postgres-password", "postgres(?:ql)?"),
    ("mysql-password", "(?:mysql|mariadb)"),
    ("mongodb-password", "mongodb"),
    ("redis-password", "rediss?"),
    ("amqp-password", "amqps?"),
    ("database-password", "(?:mssql|sqlserver|clickhouse|cassandra|neo4j)"),
)
_URL = r":\\{0,15}/\\{0,15}/[^\s/:@\"'<>\[\]{}\\]{0,64}:"
_HOST = r"@(?=[A-Za-z0-9_.-]+(?:[:/?,\s\"'\\)\]>;&`]|\Z))"

BEFORE = (
    ("private-key", "B", _ARMOR, "armor"),
    ("private-key", "B", _TORN, "token"),
)
"""Kinds of version 3 that go before all others, each with its cue, expression and check."""

AFTER = (
    (
        "aws-secret-key",
        "A",
        r"A[KS]IA[A-Z0-9]{16}[\"']?[,;\t ][ \t\"']{0,3}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "token",
    ),
    (
        "aws-secret-key",
        "A",
        r"\[redacted:aws-access-key\][\"']?[,;\t ][ \t\"']{0,3}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "token",
    ),
    (
        "aws-secret-key",
        "_",
        r"aws_secret_access_key[ ,][ \"']{0,3}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "token",
    ),
    ("npm-token", "_", r":_authToken=(?P<secret>[A-Za-z0-9_./+=-]{16,})", "token"),
    (
        "basic-auth",
        "_",
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))_auth=[\"']?(?P<secret>[A-Za-z0-9+/]{8,512}={0,2})",
        "basic",
    ),
    (
        "kubernetes-secret",
        "secret",
        r":[ \t]{0,2}[\"'\\]{0,16}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})(?=[\"'\\\s,}]|\Z)",
        "manifest",
    ),
    (
        "jwk",
        "key",
        r"(?<![A-Za-z0-9])(?:d|k|p|q|dp|dq|qi)[\"'\\]{1,9} ?: ?[\"'\\]{1,9}(?P<secret>[A-Za-z0-9_-]{22,})",
        "jwk",
    ),
    *(
        (
            kind,
            "@",
            scheme
            + r"(?:\+[a-z0-9]+)?"
            + _URL
            + r"(?P<secret>(?![0-9]{2,5}/)[^\x00-\x20\x7f\"'\\<>{}`\[]{3,128})"
            + _HOST,
            "password",
        )
        for kind, scheme in _DATABASES
    ),
    ("url-password", "@", _URL + r"(?P<secret>[^\x00-\x20\x7f/\"'\\<>{}`\[]{3,128})" + _HOST, "password"),
    (
        "netrc-password",
        "password",
        r"machine"
        + _GAP
        + r"+\S{1,128}"
        + _GAP
        + r"+login"
        + _GAP
        + r"+\S{1,128}"
        + _GAP
        + r"+password"
        + _GAP
        + r"+(?P<secret>[^\x00-\x20\x7f\"'\\`<>]{4,128})",
        "password",
    ),
    ("pgpass", "pgpass", r":5432:[^\s:]{1,64}:[^\s:]{1,64}:(?P<secret>" + _PASSWORD + ")", "password"),
    (
        "cli-password",
        "cli",
        r"mysql[a-z]{0,6}(?: [^\n]{0,160}?)? -p(?!ort[0-9= ])" + _QUOTES + "(?P<secret>" + _PASSWORD + ")",
        "password",
    ),
    ("cli-password", "cli", r"login [^\n]{0,160}? -p[ =]?" + _QUOTES + "(?P<secret>" + _PASSWORD + ")", "password"),
    (
        "cli-password",
        "cli",
        r"echo (?:-n )?"
        + _QUOTES
        + "(?:[^\\s:\"'\\\\|]{1,64}:)?(?P<secret>"
        + _PASSWORD
        + ")"
        + _QUOTES
        + r" ?\| ?(?:base64(?! ?-[dD])|(?:[a-z]+ )?sudo -S|[a-z]+ [^\n|]{0,160}-stdin)",
        "password",
    ),
    ("cli-password", "-", r"sshpass -p[ =]?" + _QUOTES + "(?P<secret>" + _PASSWORD + ")", "password"),
    ("cli-password", "-", r"redis-cli [^\n]{0,160}?-a[ =]?" + _QUOTES + "(?P<secret>" + _PASSWORD + ")", "password"),
    ("cli-password", "-", r"-pass(?:in|out)?[ =]" + _QUOTES + "pass:(?P<secret>" + _PASSWORD + ")", "password"),
    (
        "authorization",
        "B",
        r"(?i)authorization[\"'\\\]]{0,9} {0,2}[:=,] {0,2}[\"'\\]{0,9}(?:(?:token|api-?key|key|genie-?key) {1,2})?"
        r"(?:token=)?(?P<secret>[A-Za-z0-9_.~+/=-]{20,4096})(?![A-Za-z0-9_(\[])",
        "word",
    ),
    (
        "basic-auth",
        "B",
        r"(?i)authorization[\"'\\\]]{0,9} {0,2}[:=,] {0,2}[\"'\\]{0,9}basic {1,2}"
        r"(?P<secret>[A-Za-z0-9_.~+/=-]{10,512})(?![A-Za-z0-9_(\[])",
        "mixed",
    ),
    (
        "session-cookie",
        "-",
        r"(?:-b|--cookie)[ =]{1,2}[\\\"']{0,4}(?:[^\s=;\"'\\]{1,64}=[^;\s\"'\\]{0,4096};\s?){0,20}?"
        r"[^\s=;\"'\\]{0,32}(?:sess|sid|auth|token|jwt)[^\s=;\"'\\]{0,32}=(?P<secret>[A-Za-z0-9%._~+/=:-]{16,4096})",
        "word",
    ),
    (
        "session-cookie",
        ".",
        r"(?i)(?:sess|sid|auth|token|jwt)[\w.-]{0,32}(?:\t|\\+t)(?P<secret>[A-Za-z0-9%._~+/=:-]{16,4096})",
        "word",
    ),
)
"""Kinds of version 3 that go before those that are known by their names."""

AFTER_4 = (
    (
        "bearer-token",
        "B",
        r"B(?:earer|EARER)[ \t]{0,2}" + NEXT_LINE + r"(?P<secret>[A-Za-z0-9_.~+/=-]{16,4096})(?![A-Za-z0-9_(\[:])",
        "mixed",
    ),
)
"""Kinds of version 4."""

AFTER_5 = (
    (
        "private-key",
        "A",
        # The first line of a key without the one before it, and what follows.
        r"(?P<secret>(?:b3BlbnNzaC1rZXktdjEA|MII[A-Za-z0-9+/]{2,5}IBA(?:AK[BC]|DANBgkqhkiG9w0BAQEFAASC))"
        r"[A-Za-z0-9+/]{24,}={0,2}(?![A-Za-z0-9+/=])"
        r"(?:[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}[^A-Za-z0-9+/=]{1,6}[A-Za-z0-9+/=]{40,76}(?![A-Za-z0-9+/=])){0,200}"
        r"(?:[^A-Za-z0-9+/=]{0,12}[0-9]{0,6}[^A-Za-z0-9+/=]{1,6}[A-Za-z0-9+/]{1,75}={1,2}(?![A-Za-z0-9+/=]))?)",
        "token",
    ),
)
"""Kinds of version 5."""
