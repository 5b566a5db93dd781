"""Redaction: every kind is found in every place, and nothing else is touched.

Secrets are put together at run time, so that no scanner of this repository fires.
"""

import base64
import json
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit.model.secret_rules import RULES, VENDORS
from sessgit.model.secrets import PROTECTED_KEYS, redact_line, redact_text

HEX = "0123456789abcdef"
WORD = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits


def body(length: int, alphabet: str = WORD) -> str:
    """A random text, the same in every run, with a letter and a digit at its start."""
    made = random.Random(length * 31 + len(alphabet))
    head = [next(c for c in alphabet if c.isalpha()), next((c for c in alphabet[::-1] if c.isdigit()), "x")]
    return "".join(head + [made.choice(alphabet) for _ in range(length - 2)])


def pem(name: str) -> str:
    lines = "\n".join(body(64, WORD + "+/") for _ in range(4))
    return f"-----BEGIN {name}-----" + f"\n{lines}\n" + f"-----END {name}-----"


PASSWORD = "s3" + "cr3t-Pa!" + "w0rd"
JWT = "eyJ" + body(20) + ".eyJ" + body(40) + "." + body(43, WORD + "-_")

SAMPLES = {
    "private-key": [pem("RSA PRIVATE KEY"), pem("OPENSSH PRIVATE KEY"), pem("PRIVATE KEY"), pem("EC PRIVATE KEY")],
    "age-secret-key": ["AGE-SECRET-" + "KEY-1" + body(58, UPPER)],
    "onepassword-token": ["ops_" + "eyJ" + body(200)],
    "sentry-org-token": ["sntrys_" + "eyJ" + body(80) + "_" + body(43)],
    "grafana-cloud-token": ["glc_" + "eyJ" + body(80)],
    "supabase-key": ["sbp_" + body(40, HEX), "sb_secret_" + body(31, WORD + "-_")],
    "jwt": [JWT],
    "aws-access-key": ["AKIA" + body(16, UPPER), "ASIA" + body(16, UPPER)],
    "google-api-key": ["AIza" + body(35, WORD + "-_")],
    "google-client-secret": ["GOCSPX" + "-" + body(28)],
    "google-oauth-token": ["ya29" + "." + body(60, WORD + "-_")],
    "azure-storage-key": [("AccountKey=", body(86) + "==")],
    "azure-shared-key": [("SharedAccessKey=", body(43) + "=")],
    "azure-sas": [("?sv=2024-01-01&se=2030&sig=", body(43) + "%3D")],
    "azure-client-secret": [body(3) + "8Q" + "~" + body(34, WORD + "-._")],
    "github-fine-grained-token": ["github_" + "pat_" + body(22) + "_" + body(59)],
    "github-token": ["gh" + kind + "_" + body(36) for kind in "pousr"] + ["ghp_" + "a1B2" * 9],
    "gitlab-token": ["gl" + kind + "-" + body(20) for kind in ("pat", "dt", "rt", "ptt", "cbt", "soat", "agent")],
    "anthropic-api-key": ["sk-" + "ant-api03-" + body(95, WORD + "-_")],
    "openrouter-api-key": ["sk-" + "or-v1-" + body(64, HEX)],
    "langfuse-secret-key": ["sk-" + "lf-" + "1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809"],
    "openai-api-key": ["sk-" + body(48), "sk-" + "proj-" + body(80, WORD + "-_")],
    "huggingface-token": ["hf" + "_" + body(34)],
    "replicate-token": ["r8" + "_" + body(37)],
    "groq-api-key": ["gsk" + "_" + body(52)],
    "xai-api-key": ["xai" + "-" + body(80)],
    "perplexity-api-key": ["pplx" + "-" + body(48)],
    "nvidia-api-key": ["nvapi" + "-" + body(64, WORD + "-_")],
    "together-api-key": ["tgp" + "_v1_" + body(43, WORD + "-_")],
    "fireworks-api-key": ["fw" + "_" + body(24)],
    "tavily-api-key": ["tvly" + "-" + body(32), "tvly" + "-dev-" + body(32)],
    "firecrawl-api-key": ["fc" + "-" + body(32, HEX)],
    "langsmith-api-key": ["lsv2" + "_pt_" + body(32, HEX) + "_" + body(10, HEX)],
    "pinecone-api-key": ["pcsk" + "_" + body(5) + "_" + body(63)],
    "jina-api-key": ["jina" + "_" + body(60)],
    "cerebras-api-key": ["csk" + "-" + body(48, string.ascii_lowercase + string.digits)],
    "runpod-api-key": ["rpa" + "_" + body(40, UPPER)],
    "elevenlabs-api-key": ["sk" + "_" + body(48, HEX)],
    "stripe-key": [a + "_" + b + "_" + body(24) for a in ("sk", "rk") for b in ("live", "test")],
    "webhook-secret": ["whsec" + "_" + body(32, WORD + "+/")],
    "square-token": ["sq0" + "atp-" + body(22, WORD + "-_"), "sq0" + "csp-" + body(43, WORD + "-_")],
    "braintree-token": ["access_token$" + "production$" + body(16, HEX) + "$" + body(32, HEX)],
    "shopify-token": ["shp" + kind + "_" + body(32, HEX) for kind in ("at", "ca", "pa", "ss")],
    "slack-token": ["xox" + kind + "-" + "123456789012-" + body(24) for kind in "abprs"]
    + ["xoxe.xoxp" + "-1-" + body(90)],
    "slack-app-token": ["xapp" + "-1-" + body(11, UPPER) + "-1234567890123-" + body(64, HEX)],
    "slack-webhook": [("https://hooks.slack.com/services/", body(9, UPPER) + "/" + body(9, UPPER) + "/" + body(24))],
    "discord-bot-token": ["M" + body(25) + "." + body(6) + "." + body(38, WORD + "-_")],
    "discord-webhook": [("https://discord.com/api/webhooks/", "123456789012345678" + "/" + body(68, WORD + "-_"))],
    "telegram-bot-token": ["1234567890" + ":AA" + body(33, WORD + "-_")],
    "twilio-api-key": ["SK" + body(32, HEX)],
    "sendgrid-api-key": ["SG" + "." + body(22, WORD + "-_") + "." + body(43, WORD + "-_")],
    "mailgun-api-key": ["key" + "-" + body(32, HEX)],
    "mailchimp-api-key": [body(32, HEX) + "-us" + "12"],
    "resend-api-key": ["re" + "_" + body(8) + "_" + body(24)],
    "npm-token": ["npm" + "_" + body(36)],
    "pypi-token": ["pypi" + "-AgEIcHlwaS5vcmc" + body(150, WORD + "-_")],
    "rubygems-api-key": ["rubygems" + "_" + body(48, HEX)],
    "crates-io-token": ["cio" + body(32)],
    "docker-token": ["dckr" + "_pat_" + body(27, WORD + "-_"), "dckr" + "_oat_" + "a1-" * 10],
    "digitalocean-token": ["do" + kind + "_v1_" + body(64, HEX) for kind in "opr"],
    "heroku-api-key": ["HRKU" + "-" + body(60, WORD + "-_")],
    "netlify-token": ["nfp" + "_" + body(36)],
    "vercel-token": ["vcp" + "_" + body(56)],
    "render-api-key": ["rnd" + "_" + body(32)],
    "fly-token": ["fm2" + "_" + body(200, WORD + "+/")],
    "cloudflare-ca-key": ["v1.0" + "-" + body(24, HEX) + "-" + body(146, HEX)],
    "tailscale-key": ["tskey" + "-auth-" + body(17) + "-" + body(32)],
    "databricks-token": ["dapi" + body(32, HEX), "dapi" + body(32, HEX) + "-2"],
    "newrelic-key": ["NRAK" + "-" + body(27, UPPER)],
    "sentry-user-token": ["sntryu" + "_" + body(64, HEX)],
    "grafana-token": ["glsa" + "_" + body(32) + "_" + body(8, HEX)],
    "posthog-api-key": ["phx" + "_" + body(48)],
    "linear-api-key": ["lin" + "_api_" + body(40)],
    "notion-token": ["ntn" + "_" + body(46), "secret" + "_" + body(43)],
    "figma-token": ["figd" + "_" + body(40, WORD + "-_")],
    "atlassian-token": ["ATATT3" + body(180, WORD + "_-")],
    "airtable-token": ["pat" + body(14) + "." + body(64, HEX)],
    "doppler-token": ["dp" + ".pt." + body(43)],
    "vault-token": ["hvs" + "." + body(90, WORD + "-_"), "hvb" + "." + body(90, WORD + "-_")],
    "terraform-token": [body(14) + ".atlasv1" + "." + body(67, WORD + "-_")],
    "pulumi-token": ["pul" + "-" + body(40, HEX)],
    "postman-api-key": ["PMAK" + "-" + body(24, HEX) + "-" + body(34, HEX)],
    "planetscale-token": ["pscale" + "_tkn_" + body(43, WORD + "-_")],
    "circleci-token": ["CCIPAT" + "_" + body(22) + "_" + body(40, HEX)],
    "buildkite-token": ["bkua" + "_" + body(40, HEX)],
    "prefect-api-key": ["pnu" + "_" + body(36)],
    "sourcegraph-token": ["sgp" + "_" + body(16, HEX) + "_" + body(40, HEX)],
    "wakatime-api-key": ["waka" + "_" + "1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809"],
    "contentful-token": ["CFPAT" + "-" + body(43, WORD + "-_")],
    "postgres-password": [
        ("postgres://app:", PASSWORD, "@db.host:5432/x"),
        ("postgresql+asyncpg://u:", PASSWORD, "@h/x"),
    ],
    "mysql-password": [("mysql://app:", PASSWORD, "@db/x"), ("mariadb://app:", PASSWORD, "@db/x")],
    "mongodb-password": [("mongodb+srv://app:", PASSWORD, "@c0.mongodb.net"), ("mongodb://app:", PASSWORD, "@h")],
    "redis-password": [("redis://:", PASSWORD, "@cache:6379/0"), ("rediss://default:", PASSWORD, "@h")],
    "amqp-password": [("amqp://app:", PASSWORD, "@mq//")],
    "url-password": [("https://me:", PASSWORD, "@example.org/r.git")],
    "bearer-token": [("Authorization: Bearer ", body(40)), ("authorization: bearer ", body(32, HEX))],
    "basic-auth": [("Authorization: Basic ", base64.b64encode(b"me:" + PASSWORD.encode()).decode())],
    "session-cookie": [
        ("Cookie: theme=dark; sessionid=", body(32)),
        ("Set-Cookie: connect.sid=s%3A", body(40), "; Path=/"),
    ],
    "netrc-password": [("machine h.org login me password ", PASSWORD)],
    "curl-password": [("curl -u me:", PASSWORD, " https://h"), ("curl --user me:", PASSWORD, " x")],
    "aws-secret-key": [("aws_secret_access_key = ", "wJalr" + body(35, WORD + "/+"))],
    "aws-session-token": [("AWS_SESSION_TOKEN=", body(200, WORD + "/+"))],
    "mistral-api-key": [("MISTRAL_API_KEY=", body(32))],
    "cohere-api-key": [("COHERE_API_KEY=", body(40)), ('cohere_key="', body(40), '"')],
    "vercel-api-token": [("export VERCEL_TOKEN=", body(24))],
    "cloudflare-api-token": [("CLOUDFLARE_API_TOKEN: ", body(40, WORD + "-_"))],
    "datadog-api-key": [("DD_API_KEY=", body(32, HEX)), ('"datadog_app_key": "', body(40, HEX), '"')],
    "fastly-api-token": [("FASTLY_API_TOKEN=", body(32, WORD + "-_"))],
    "snowflake-token": [("SNOWFLAKE_TOKEN=", body(40))],
    "azure-tenant-secret": [("AZURE_CLIENT_SECRET=", body(34))],
    "twilio-auth-token": [("TWILIO_AUTH_TOKEN=", body(32, HEX))],
    "asana-token": [("ASANA_ACCESS_TOKEN=", "1/1200000000000000:" + body(32, HEX))],
    "heroku-legacy-key": [("HEROKU_API_KEY=", "1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809")],
    "algolia-api-key": [("ALGOLIA_ADMIN_KEY=", body(32, HEX))],
    "okta-token": [("OKTA_API_TOKEN=", "00" + body(40))],
    "auth0-client-secret": [("AUTH0_CLIENT_SECRET=", body(64))],
    "deepseek-api-key": [("DEEPSEEK_KEY=", body(40))],
    "wandb-api-key": [("WANDB_API_KEY=", body(40, HEX))],
    "elastic-api-key": [("ELASTIC_API_KEY=", body(60))],
    "codecov-token": [("CODECOV_TOKEN=", body(32, HEX))],
    "bitbucket-token": [("BITBUCKET_TOKEN=", body(40))],
    "plaid-secret": [("PLAID_SECRET=", body(30, HEX))],
    "twitter-secret": [("TWITTER_API_SECRET=", body(50))],
    "facebook-secret": [("FACEBOOK_APP_SECRET=", body(32, HEX))],
    "password": [
        ("DB_PASSWORD=", PASSWORD),
        ("SMTP_PASS=", PASSWORD),
        ("export PGPASSWORD='", PASSWORD, "'"),
        ('password = "', PASSWORD, '"'),
        ("{'passwd': '", PASSWORD, "'}"),
        ("mysql --password ", PASSWORD, " x"),
        ("Server=x;Password=", PASSWORD, ";"),
    ],
    "secret": [("SECRET_KEY=", body(50)), ('jwt_secret: "', body(32, HEX), '"'), ("STRIPE_SIGNING_SECRET=", body(32))],
    "client-secret": [('"client_secret": "', body(30), '"')],
    "api-key": [("OTHER_API_KEY=", body(32)), ("?x=1&api_key=", body(32), "&y=2"), ("x-api-key: ", body(32))],
    "token": [("NPM_REGISTRY_TOKEN=", body(40)), ('"access_token":"', body(40), '"'), ("tool --token ", body(40))],
}
ALIASES = {
    "vercel-api-token": "vercel-token",
    "azure-tenant-secret": "azure-client-secret",
    "heroku-legacy-key": "heroku-api-key",
}
CASES = [
    (ALIASES.get(name, name), (sample if isinstance(sample, tuple) else ("", sample)))
    for name, samples in SAMPLES.items()
    for sample in samples
]


def expected(kind: str, parts: tuple[str, ...]) -> str:
    before, secret, *after = parts
    if kind == "private-key":
        begin, end = secret.split("\n")[0], secret.split("\n")[-1]
        return f"{before}{begin}[redacted:{kind}]{end}"
    return f"{before}[redacted:{kind}]{''.join(after)}"


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_every_kind_has_a_sample() -> None:
    kinds = {rule.kind for rule in RULES} | {kind for _, kind in VENDORS}
    assert kinds - {kind for kind, _ in CASES} == set()
    assert len(kinds) >= 60


@pytest.mark.parametrize(("kind", "parts"), CASES)
def test_a_secret_is_replaced_wherever_it_stands(kind: str, parts: tuple[str, ...]) -> None:
    text, clean = "".join(parts), expected(kind, parts)
    assert redact_text(text.encode()) == (clean.encode(), 1)
    for frame in ("{}", "é {}\nnext", "first\n{}\n", "see `{}` there", "\tx\n\t{}\n", "\x1b[32m{}\x1b[0m"):
        framed, redacted = frame.format(text), frame.format(clean)
        line = dump({"uuid": "u", "message": {"content": [{"type": "text", "text": framed}]}, "n": 1.50})
        assert redact_line(line) == (
            dump({"uuid": "u", "message": {"content": [{"type": "text", "text": redacted}]}, "n": 1.50}),
            1,
        )
    # Twice in a line, once as an input, once quoted in JSON within a string.
    inner = json.dumps({"stdout": text})
    line = dump({"input": {"command": text + "\n"}, "toolUseResult": [inner, {"k": 2}]})
    again, count = redact_line(line)
    assert count == 2
    assert json.loads(again)["input"]["command"] == clean + "\n"
    assert parts[1].split("\n")[-2 if kind == "private-key" else 0] not in again.decode()
    assert redact_line(again) == (again, 0)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("password", PASSWORD, "password"),
        ("apiKey", body(32), "api-key"),
        ("OPENAI_API_KEY", body(32), "api-key"),
        ("clientSecret", body(24), "client-secret"),
        ("AWS_SECRET_ACCESS_KEY", body(40, WORD + "/+"), "aws-secret-key"),
        ("token", body(40), "token"),
    ],
)
def test_a_key_of_the_document_names_a_secret(key: str, value: str, kind: str) -> None:
    line = dump({"input": {"env": {key: value, "other": value}}})
    clean = dump({"input": {"env": {key: f"[redacted:{kind}]", "other": value}}})
    assert redact_line(line) == (clean, 1)
    assert redact_line(clean) == (clean, 0)


HARMLESS = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    '"integrity": "sha512-' + body(86, WORD + "+/") + '=="',
    "sessionId=1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809 key: 1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809",
    "toolu_01" + body(22) + " msg_01" + body(22) + " req_011" + body(22),
    "sk-ant-... or sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx or ghp_" + "x" * 36,
    "OPENAI_API_KEY=<your-key> API_KEY=your-api-key-here SECRET_KEY=${SECRET_KEY} TOKEN=$TOKEN",
    "API_KEY=xxxxxxxxxxxxxxxxxxxx PASSWORD=******** TOKEN=...",
    "const key = process.env.MY_API_KEY; apiKey: process.env.OPENAI_API_KEY_2,",
    'api_key = os.environ["API_KEY"]; token = os.getenv("TOKEN2")',
    "connect(token=token, password=password, secret=self.secret_value2)",
    "interface A { password: string; token?: string; apiKey: string | undefined }",
    "password: hashedPassword2, passwordHash, api_key: settings.api_key_2",
    'label: "Password:", "password": "Enter your password", name="password"',
    "Authorization: Bearer ${token} and Authorization: Bearer <token> and Bearer authentication",
    "headers['Authorization'] = `Bearer ${accessToken2}`",
    "postgres://user:password@localhost/db redis://localhost:6379 https://host:8080/@scope/pkg",
    "postgres://${USER}:${PASS}@host/db and postgresql://{user}:{password}@{host}",
    '"input_tokens":12345678,"cache_read_input_tokens":99999999,"output_tokens":1',
    "docker run -u 1000:1000 image; git push -u origin main:main2; chown -R user:group1",
    "function t(e){var n=e.key;return n.token=r(1234567890),t.secret=a1?b2:c3}",
    "the task-notification-service-for-everybody and disk-usage-of-something-long-1234567890",
    "test-api-key-12345678 in API_KEY=test-api-key-12345678",
    "-----BEGIN CERTIFICATE-----\n" + body(64) + "\n-----END CERTIFICATE-----",
    "if '-----BEGIN PRIVATE KEY-----' in text and '-----END PRIVATE KEY-----' in text: pass",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + body(40) + " me@host",
    "cache_key: 2cf24dba5fb0a30e26e83b2ac5b9e29e nextPageToken=" + body(40),
    "PRIVATE_KEY=/etc/ssl/private/key1.pem TOKEN_FILE=/run/secrets/token1",
    "import { npm_config_registry } from 'x'; lin_apiary_of_bees; hf_hub_download(repo_id)",
    "data:image/png;base64," + body(400, WORD + "+/"),
    "Cookie: theme=dark; lang=en  Set-Cookie: a=b; Path=/",
    "keyboard: qwertz1234, monkey=banana12345, tokenizer: cl100k_base_12345",
    "[redacted:password] PASSWORD=[redacted:password] x",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text.encode()) == (text.encode(), 0)
    line = dump({"message": {"content": text, "input": {"cmd": json.dumps({"v": text})}}})
    assert redact_line(line) == (line, 0)


SECRET = "ghp" + "_" + body(36)
MARK = "[redacted:github-token]"


@pytest.mark.parametrize("key", sorted(PROTECTED_KEYS))
def test_identities_and_signatures_are_never_touched(key: str) -> None:
    line = dump({key: SECRET, "nested": [{key: [SECRET]}], "text": SECRET})
    assert redact_line(line) == (dump({key: SECRET, "nested": [{key: [SECRET]}], "text": MARK}), 1)


def test_images_are_never_touched() -> None:
    image = body(300) + "/" + "AKIA" + body(16, UPPER) + "/" + body(300)
    source = {"type": "base64", "media_type": "image/png", "data": image}
    line = dump({"content": [{"type": "image", "source": source}], "file": {"base64": image}, "text": SECRET})
    assert redact_line(line) == (line.replace(SECRET.encode(), MARK.encode()), 1)
    assert redact_line(dump({"data": "AKIA" + body(16, UPPER)}))[1] == 1
    assert redact_line(dump({"data": image + " " + SECRET}))[1] == 2


def test_keys_of_the_document_are_redacted() -> None:
    assert redact_line(dump({"hits": {SECRET: [1, 2]}})) == (dump({"hits": {MARK: [1, 2]}}), 1)


def test_all_other_bytes_stay() -> None:
    raw = '{ "a":"\\u00e9\\/",\t"n" : 1.0e5, "t":"%s \\u00e9\\ud83d\\/", "z":"é\\u0041" }'
    assert redact_line((raw % SECRET).encode()) == (
        '{{ "a":"\\u00e9\\/",\t"n" : 1.0e5, "t":"{} é\\ud83d/", "z":"é\\u0041" }}'.format(MARK).encode(),
        1,
    )


@pytest.mark.parametrize(
    "frame",
    [
        b'{"text":"cut \\n%s',
        b'{"a":"%s"}{"b":1}',
        b'0{"a":"x\\n%s"}',
        b"\xff\xfe %s \x80",
        b'{"a":"\xff%s"}',
    ],
)
def test_a_line_that_is_not_json_is_text(frame: bytes) -> None:
    assert redact_line(frame % SECRET.encode()) == (frame % MARK.encode(), 1)


def test_a_key_cut_off_in_a_torn_line() -> None:
    torn = b'{"text":"' + pem("RSA PRIVATE KEY").replace("\n", "\\n").encode()[:200]
    assert redact_line(torn) == (b'{"text":"-----BEGIN RSA PRIVATE KEY-----[redacted:private-key]', 1)


def test_several_secrets_of_one_string_are_counted() -> None:
    both = f"{SECRET} and {JWT}\nDB_PASSWORD={PASSWORD}\nCookie: sid={body(32)}; auth_token={body(40)}"
    clean, count = redact_text(both.encode())
    assert count == 5
    assert clean.count(b"[redacted:") == 5


def test_clean_input_comes_back_as_itself() -> None:
    line = dump({"type": "user", "message": {"content": "nothing here"}})
    assert redact_line(line)[0] is line
    assert redact_text(line)[0] is line


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 100_000,
        "key=" * 50_000,
        "cookie: " + "a=b; " * 50_000,
        "-----BEGIN PRIVATE KEY-----" * 10_000,
        "://a:" * 50_000 + "@",
        "--token " * 50_000,
        "-u a:" * 50_000,
        "A" * 200_000,
        "a_" * 100_000 + "0" * 20,
        "pass " * 50_000,
        "ghp_" + "a1" * 100_000,
    ],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    begun = time.perf_counter()
    redact_text(text.encode())
    assert time.perf_counter() - begun < 3


PIECES = st.sampled_from(["".join(parts) for _, parts in CASES])
TEXT = st.lists(st.text(max_size=8) | PIECES | st.sampled_from(["\n", '"', " ", "\\", "\ud800"]), max_size=4).map(
    "".join
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT | st.sampled_from(["password", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def agree(before: object, after: object, key: str = "") -> bool:
    """Whether two documents differ only in strings that hold a mark."""
    if isinstance(before, str) and isinstance(after, str):
        return before == after or ("[redacted:" in after and key not in PROTECTED_KEYS)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(agree(a, b, key) for a, b in zip(before, after, strict=True))
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = list(zip(before.items(), after.items(), strict=True)) if len(before) == len(after) else []
        return len(pairs) == len(before) and all(agree(k, j) and agree(v, w, k) for (k, v), (j, w) in pairs)
    return before == after


@given(JSON, st.booleans())
def test_any_document_stays_itself_but_for_its_secrets(value: object, ascii_only: bool) -> None:
    pairs = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    clean, count = redact_line(pairs)
    assert redact_line(clean) == (clean, 0)
    assert (count == 0) == (clean == pairs)
    try:
        before = json.loads(pairs.decode(), object_pairs_hook=list)
    except ValueError:
        return
    after = json.loads(clean, object_pairs_hook=list)
    assert agree(before, after)


@given(st.binary(max_size=200) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_redacting_twice_changes_nothing(text: bytes) -> None:
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, 0)
