"""Secrets of every kind, put together at run time so that no scanner of this repository fires."""

import base64
import random
import string

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
        ("Set-Cookie: connect.sid=", "s%3A" + body(40), "; Path=/"),
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
