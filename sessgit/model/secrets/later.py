"""The kinds of secrets that came with later versions of the rules.

A session keeps to the rules that it began with: so what is recorded stays, and what goes on comes out the same.
"""

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
)
"""With the version, the kind, the cue and the expression. What a `docker-auth` is, is checked besides."""
