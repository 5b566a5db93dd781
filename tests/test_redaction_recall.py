"""How many of the kinds that two public scanners know are replaced, with random values, in five contexts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from redacting import redact_line
from redaction_examples import filled

from sessgit.redact.replacer import redact_text

# Formats as the documentation of the services and of the scanners has them. Where a kind has no form of its own, it is
# known by the name of the service beside it.
GITLEAKS = {
    "1password-secret-key": "A3-<6 upper>-<11 upper>-<5 upper>-<5 upper>-<5 upper>",
    "1password-service-account-token": "ops_eyJ<250 base64>",
    "adobe-client-secret": "p8e-<32 lower>",
    "age-secret-key": "AGE-SECRET-KEY-1<58 upper>",
    "alibaba-access-key-id": "LTAI<20 lower>",
    "anthropic-admin-api-key": "sk-ant-admin01-<93 url>AA",
    "anthropic-api-key": "sk-ant-api03-<93 url>AA",
    "artifactory-api-key": "AKCp<69>",
    "artifactory-reference-token": "cmVmd<59>",
    "atlassian-api-token": "ATATT3<186 url>",
    "authress-service-client-access-key": "sc_<12 lower>.<5 lower>.acc_<12 lower>.<50>",
    "aws-access-token-akia": "AKIA<16 base32>",
    "aws-access-token-asia": "ASIA<16 base32>",
    "aws-access-token-abia": "ABIA<16 base32>",
    "aws-access-token-acca": "ACCA<16 base32>",
    "azure-ad-client-secret": "<3>8Q~<34 url>",
    "clickhouse-cloud-api-secret-key": "4b1d<38>",
    "clojars-api-token": "CLOJARS_<60 lower>",
    "cloudflare-origin-ca-key": "v1.0-<24 hex>-<146 hex>",
    "databricks-api-token": "dapi<32 hex>",
    "defined-networking-api-token": "dnkey-<26 lower>-<52 lower>",
    "digitalocean-access-token": "doo_v1_<64 hex>",
    "digitalocean-pat": "dop_v1_<64 hex>",
    "digitalocean-refresh-token": "dor_v1_<64 hex>",
    "doppler-api-token": "dp.pt.<43>",
    "duffel-api-token": "duffel_test_<43 url>",
    "dynatrace-api-token": "dt0c01.<24>.<64>",
    "easypost-api-token": "EZAK<54>",
    "easypost-test-api-token": "EZTK<54>",
    "facebook-access-token": "<15 digits>|<30 url>",
    "facebook-page-access-token": "EAAM<150>",
    "flutterwave-encryption-key": "FLWSECK_TEST-<12 hex>",
    "flutterwave-public-key": "FLWPUBK_TEST-<32 hex>-X",
    "flutterwave-secret-key": "FLWSECK_TEST-<32 hex>-X",
    "flyio-access-token": "fo1_<43 url>",
    "flyio-access-token-fm2": "fm2_<120 base64>",
    "frameio-api-token": "fio-u-<64 url>",
    "gcp-api-key": "AIza<35 url>",
    "github-app-token": "ghu_<36>",
    "github-fine-grained-pat": "github_pat_<82>",
    "github-oauth": "gho_<36>",
    "github-pat": "ghp_<36>",
    "github-refresh-token": "ghr_<36>",
    "gitlab-cicd-job-token": "glcbt-<4>_<20 url>",
    "gitlab-deploy-token": "gldt-<20 url>",
    "gitlab-feature-flag-client-token": "glffct-<20 url>",
    "gitlab-feed-token": "glft-<20 url>",
    "gitlab-incoming-mail-token": "glimt-<25 url>",
    "gitlab-kubernetes-agent-token": "glagent-<50 url>",
    "gitlab-oauth-app-secret": "gloas-<64 url>",
    "gitlab-pat": "glpat-<20 url>",
    "gitlab-pat-routable": "glpat-<27 url>.<9 lower>",
    "gitlab-ptt": "glptt-<40 hex>",
    "gitlab-rrt": "GR1348941<20 url>",
    "gitlab-runner-authentication-token": "glrt-<20 url>",
    "gitlab-runner-authentication-token-routable": "glrt-t1_<27 url>.<9 lower>",
    "gitlab-scim-token": "glsoat-<20 url>",
    "gitlab-session-cookie": "_gitlab_session=<32 lower>",
    "grafana-api-key": "eyJrIjoi<90>",
    "grafana-cloud-api-token": "glc_<60 base64>",
    "grafana-service-account-token": "glsa_<32>_<8 hex>",
    "harness-api-key": "pat.<22 url>.<24>.<20>",
    "hashicorp-tf-api-token": "<14 lower>.atlasv1.<66 url>",
    "heroku-api-key-v2": "HRKU-AA<58 url>",
    "huggingface-access-token": "hf_<34 letters>",
    "huggingface-organization-api-token": "api_org_<34 letters>",
    "infracost-api-token": "ico-<32>",
    "intra42-client-secret": "s-s4t2ud-<64 hex>",
    "jwt": "eyJ<30>.eyJ<60>.<43 url>",
    "jwt-base64": "ZXlKaGJHY2lPaU<80>",
    "linear-api-key": "lin_api_<40 lower>",
    "maxmind-license-key": "<6>_<29>_mmk",
    "microsoft-teams-webhook": "https://a.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/<32 hex>/<uuid>",
    "notion-api-token": "ntn_<11 digits><35>",
    "npm-access-token": "npm_<36 lower>",
    "octopus-deploy-api-key": "API-<26 upper>",
    "openai-api-key": "sk-<20>T3BlbkFJ<20>",
    "openai-api-key-project": "sk-proj-<74 url>T3BlbkFJ<74 url>",
    "openshift-user-token": "sha256~<43 url>",
    "perplexity-api-key": "pplx-<48>",
    "planetscale-api-token": "pscale_tkn_<43 url>",
    "planetscale-oauth-token": "pscale_oauth_<43 url>",
    "planetscale-password": "pscale_pw_<43 url>",
    "postman-api-token": "PMAK-<24 hex>-<34 hex>",
    "prefect-api-token": "pnu_<36>",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n<64 base64>\n<64 base64>\n-----END RSA PRIVATE KEY-----",
    "pulumi-api-token": "pul-<40 hex>",
    "pypi-upload-token": "pypi-AgEIcHlwaS5vcmc<100 url>",
    "readme-api-token": "rdme_<70 lower>",
    "rubygems-api-token": "rubygems_<48 hex>",
    "scalingo-api-token": "tk-us-<48 url>",
    "sendgrid-api-token": "SG.<22 url>.<43 url>",
    "sendinblue-api-token": "xkeysib-<64 hex>-<16 lower>",
    "sentry-org-token": "sntrys_eyJpYXQiO<60 base64>LCJyZWdpb25fdXJs<40 base64>_<43 base64>",
    "sentry-user-token": "sntryu_<64 hex>",
    "settlemint-application-access-token": "sm_aat_<16>",
    "settlemint-personal-access-token": "sm_pat_<16>",
    "settlemint-service-access-token": "sm_sat_<16>",
    "shippo-api-token": "shippo_live_<40 hex>",
    "shopify-access-token": "shpat_<32 hex>",
    "shopify-custom-access-token": "shpca_<32 hex>",
    "shopify-private-app-access-token": "shppa_<32 hex>",
    "shopify-shared-secret": "shpss_<32 hex>",
    "sidekiq-sensitive-url": "https://<8 hex>:<8 hex>@gems.contribsys.com/",
    "slack-app-token": "xapp-1-<10 upper>-<13 digits>-<64 hex>",
    "slack-bot-token": "xoxb-<12 digits>-<12 digits>-<24>",
    "slack-config-access-token": "xoxe.xoxb-1-<163 upper>",
    "slack-config-refresh-token": "xoxe-1-<146 upper>",
    "slack-legacy-bot-token": "xoxb-<12 digits>-<24>",
    "slack-legacy-token": "xoxo-<10 digits>-<10 digits>-<10 digits>-<10 hex>",
    "slack-legacy-workspace-token": "xoxa-2-<30>",
    "slack-user-token": "xoxp-<12 digits>-<12 digits>-<12 digits>-<32>",
    "slack-webhook-url": "https://hooks.slack.com/services/<44>",
    "sourcegraph-access-token": "sgp_<16 HEX>_<40 HEX>",
    "square-access-token": "sq0atp-<22 url>",
    "square-access-token-eaaa": "EAAA<40>",
    "stripe-access-token": "sk_live_<30>",
    "twilio-api-key": "SK<32 hex>",
    "vault-batch-token": "hvb.<160 url>",
    "vault-service-token": "hvs.<95 url>",
    "vault-service-token-old": "s.<24>",
}  # fmt: skip
GITLEAKS_NAMED = {
    "adafruit": "<32 lower>", "adobe": "<32 hex>", "airtable": "<17 lower>", "algolia": "<32 lower>",
    "alibaba": "<30 lower>", "asana": "<32 lower>", "asanaClient": "<16 digits>", "atlassian": "<20 lower><4 hex>",
    "beamer": "b_<44 lower>", "bitbucketClient": "<32 lower>", "bitbucket": "<64 lower>", "bittrexAccess": "<32 lower>",
    "bittrex": "<32 lower>", "meraki": "<40 hex>", "cloudflare": "<40 url>", "cloudflareGlobal": "<37 hex>",
    "codecov": "<32 lower>", "cohere": "<40>", "coinbase": "<64 lower>", "confluentAccess": "<16 lower>",
    "confluent": "<64 lower>", "contentful": "<43 lower>", "datadog": "<40 lower>", "discord": "<64 hex>",
    "discordClient": "<18 digits>", "discordOauth": "<32 lower>", "droneci": "<32 lower>", "dropbox": "<15 lower>",
    "dropboxLong": "<11 lower>AAAAAAAAAA<43 lower>", "dropboxShort": "sl.<135 url>", "etsy": "<24 lower>",
    "facebook": "<32 hex>", "fastly": "<32 url>", "finicity": "<32 hex>", "finicityClient": "<20 lower>",
    "finnhub": "<20 lower>", "flickr": "<32 lower>", "freshbooks": "<64 lower>", "gitter": "<40 lower>",
    "gocardless": "live_<40 url>", "heroku": "<uuid>", "hubspot": "<uuid>", "intercom": "<60 lower>",
    "jfrog": "<73 lower>", "jfrogIdentity": "<64 lower>", "kraken": "<84 base64>", "kucoinAccess": "<24 hex>",
    "kucoin": "<uuid>", "launchdarkly": "<40 lower>", "linear": "<32 hex>", "linkedinClient": "<14 lower>",
    "linkedin": "<16 lower>", "lob": "live_<35 hex>", "lobPub": "test_pub_<31 hex>", "mailchimp": "<32 hex>-us12",
    "mailgun": "key-<32 hex>", "mailgunPub": "pubkey-<32 hex>", "mailgunSigning": "<32 hex>-<8 hex>-<8 hex>",
    "mapbox": "pk.<60 lower>.<22 lower>", "mattermost": "<26 lower>", "messagebird": "<25 lower>",
    "messagebirdClient": "<uuid>", "netlify": "<43 url>", "newrelicBrowser": "NRJS-<19 hex>",
    "newrelicInsert": "NRII-<32 lower>", "newrelicUser": "<64 lower>", "newrelic": "NRAK-<27 lower>",
    "nytimes": "<32 url>", "okta": "00<40 url>", "plaid": "access-sandbox-<uuid>", "plaidClient": "<24 lower>",
    "plaidSecret": "<30 lower>", "privateai": "<32 lower>", "rapidapi": "<50 url>", "sendbirdAccess": "<uuid>",
    "sendbird": "<40 hex>", "sentry": "<64 hex>", "snyk": "<uuid>", "sonar": "<40 url>", "squarespace": "<uuid>",
    "sumologicAccess": "su<12>", "sumologic": "<64 lower>", "telegram": "<9 digits>:A<34 url>", "travis": "<22 lower>",
    "trello": "<32>", "twitch": "<30 lower>", "twitterAccess": "<45 lower>", "twitter": "<19 digits>-<30>",
    "twitterApi": "<25 lower>", "twitterSecret": "<50 lower>", "twitterBearer": "AAAAAAAAAAAAAAAAAAAAAA<90>",
    "typeform": "tfp_<59 url>", "yandex": "t1.<40 url>.<86 url>", "yandexApi": "AQVN<37 url>",
    "yandexAws": "YC<38 url>", "zendesk": "<40 lower>",
}  # fmt: skip
TRUFFLEHOG = {
    "adafruitio": "aio_<28>", "alchemy": "alcht_<30>", "apideck": "sk_live_<40>-<52>", "apify": "apify_api_<36>",
    "azure-refresh-token": "0.A<70 url>.AgABAA<400 url>", "azure-container-registry": "<42 base64>+ACR<6>",
    "azure-app-config": "Endpoint=https://a.azconfig.io;Id=<8>;Secret=<43 base64>=", "bannerbear": "bb_pr_<30 lower>",
    "bitbucket-data-center": "BBDC-<44>", "buildkite": "bkua_<40 lower>", "circleci": "CCIPAT_<22>_<40 hex>",
    "close": "api_<22>.<22>", "coinbase": "organizations/<uuid>/apiKeys/<uuid>", "confluent": "cflt<60 base64>",
    "contentful": "CFPAT-<43 url>", "databricks": "dapi<32 hex>-2", "deno": "ddp_<36>", "dfuse": "web_<32 lower>",
    "discord-bot": "M<25>.<6>.<38 url>", "discord-webhook": "https://discord.com/api/webhooks/<18 digits>/<68 url>",
    "dockerhub": "dckr_pat_<27 url>", "docker-oat": "dckr_oat_<32 url>", "dropbox": "sl.<140 url>",
    "elevenlabs": "sk_<48 hex>", "endorlabs": "endr+<16>", "figma": "figd_<40 url>", "finage": "API_KEY<32 upper>",
    "fleetbase": "flb_live_<20>", "flexport": "shltm_<40 url>", "flutterwave": "FLWSECK-<32 lower>-X",
    "ftp": "ftp://me:<password>@ftp.h.org/x", "gemini-exchange": "account-<20>", "gocardless": "live_<40 url>",
    "google-oauth": "ya29.<80 url>", "groq": "gsk_<52>", "huggingface": "hf_<34>", "hubspot": "pat-na1-<uuid>",
    "intra42": "u-s4t2ud-<64 hex>", "jumpcloud": "jca_<36>", "klaviyo": "pk_<34>", "langfuse": "sk-lf-<uuid>",
    "langsmith": "lsv2_pt_<32 hex>_<10 hex>", "launchdarkly": "api-<uuid>", "launchdarkly-sdk": "sdk-<uuid>",
    "locationiq": "pk.<32 hex>", "mailchimp": "<32 hex>-us12", "mailgun": "key-<32 lower>", "mandrill": "md-<22>",
    "mapbox": "sk.eyJ<60>.<22>", "mongodb": "mongodb+srv://me:<password>@c0.mongodb.net/x", "netlify": "nfp_<36>",
    "newrelic": "NRAK-<27 upper>", "nightfall": "NF-<32>", "ngc": "<26 lower>:<uuid>", "notion": "secret_<43>",
    "nvidia": "nvapi-<64 url>", "openrouter": "sk-or-v1-<64 hex>", "pagarme": "ak_live_<30>",
    "paystack": "sk_live_<40 hex>", "pinecone": "pcsk_<5>_<63>", "plaid": "access-production-<uuid>",
    "polar": "polar_oat_<43>", "portainer": "ptr_<44>", "postgres": "postgres://me:<password>@h:5432/x",
    "posthog": "phx_<43>", "pubnub-publish": "pub-c-<uuid>", "pubnub-subscribe": "sub-c-<uuid>",
    "rabbitmq": "amqp://me:<password>@mq/x", "ramp": "ramp_id_<40>", "ramp-secret": "ramp_sec_<48>",
    "rancher": "token-<5 lower>:<54 lower>", "razorpay": "rzp_live_<14>", "recharge": "sk_1x1_<64 hex>",
    "redis": "rediss://me:<password>@h/0", "redis-digits": "redis://me:<8 digits>@h/0", "replicate": "r8_<37>",
    "robinhood": "rh-api-<uuid>", "rootly": "rootly_<64 hex>", "salad": "salad_cloud_user_<40>",
    "salesforce": "00D<12>!<96>", "salesforce-consumer": "3MVG9<80>", "salesforce-refresh": "5AEP861<80>",
    "sanity": "sk<160>", "segment": "sgp_<64>",
    "slack-webhook": "https://hooks.slack.com/services/T<8 upper>/B<8 upper>/<24>",
    "sourcegraph": "sgp_<40 hex>", "sourcegraph-cody": "slk_<64 hex>", "spectral": "spu-<32 lower>",
    "square-app": "sq0idp-<22 url>", "square-secret": "sq0csp-<43 url>", "stripe": "rk_live_<60>",
    "stripe-intent": "pi_<24>_secret_<25>", "supabase": "sbp_<40 hex>", "tableau": "<22 base64>==:<32>",
    "tailscale": "tskey-api-<12>-<32>", "teamwork": "tkn.v1_<70 base64>==", "telegram": "<10 digits>:AA<33 url>",
    "terraform": "<14>.atlasv1.<67>", "tines": "https://a.tines.com/webhook/<32 hex>/<32 hex>",
    "trufflehog": "thog-key-<16 hex>", "trufflehog-secret": "thog-secret-<32 hex>", "ubidots": "BBFF-<30>",
    "url": "https://me:<password>@h.org/x", "url-digits": "https://me:<9 digits>@h.org/x",
    "vercel": "vcp_<56>", "voiceflow": "VF.DM.<24 hex>.<16>", "webex": "<64>_<4>_<uuid>", "xai": "xai-<80>",
    "zapier": "https://hooks.zapier.com/hooks/catch/<7 digits>/<7 lower>/", "zoho": "1000.<32 hex>.<32 hex>",
}  # fmt: skip


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


Context = Callable[[str, str], bytes]


def text(template: str) -> Context:
    return lambda name, value: template.format(
        name=name, snake=snake(name), upper=snake(name).upper(), v=value
    ).encode()


NAMED: dict[str, Context] = {
    "JSON": lambda name, value: json.dumps({"input": {f"{snake(name)}_token": value}}).encode(),
    ".env": text("A=1\n{upper}_TOKEN={v}\nB=2\n"),
    "text": text('then they set {name}Token="{v}" and it worked'),
    "prompt": text("Use my {name} api key: {v} for this, please."),
    "code": text('{name}Token = "{v}"\n'),
}
PLAIN: dict[str, Context] = {
    "JSON": lambda _, value: json.dumps({"message": {"content": value}}).encode(),
    ".env": text("A=1\nSOMETHING={v}\nB=2\n"),
    "text": text("then the log said {v} and it worked"),
    "prompt": text("Use {v} for this, please."),
    "code": text('fooToken = "{v}"\n'),
}


def missed(kinds: dict[str, str], contexts: dict[str, Context], seed: int) -> dict[str, set[str]]:
    """By the context the kinds whose value stayed, or the most of it."""
    rng, out = random.Random(seed), {context: set[str]() for context in contexts}
    for name, template in kinds.items():
        value = filled(template, rng)
        for context, made in contexts.items():
            data = made(name, value)
            clean = (redact_line if context == "JSON" else redact_text)(data)[0]
            lines = value.split("\n")
            end = lines[len(lines) // 2][-8:].encode()
            if b"[redacted:" not in clean or (end in clean and "://" not in template):
                out[context].add(name)
    return out


@pytest.mark.parametrize("seed", range(1, 6))
def test_nearly_all_of_what_gitleaks_knows_is_replaced(seed: int) -> None:
    named, plain = missed(GITLEAKS_NAMED, NAMED, seed), missed(GITLEAKS, PLAIN, seed)
    every = len(GITLEAKS_NAMED) + len(GITLEAKS)
    for context in NAMED:
        left = named[context] | plain[context]
        assert len(left) <= 0.05 * every, f"{context}: {sorted(left)}"


@pytest.mark.parametrize("seed", range(1, 6))
def test_nearly_all_of_what_trufflehog_knows_by_a_prefix_is_replaced(seed: int) -> None:
    for context, left in missed(TRUFFLEHOG, PLAIN, seed).items():
        assert len(left) <= 0.05 * len(TRUFFLEHOG), f"{context}: {sorted(left)}"
