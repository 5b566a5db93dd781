"""Redaction: every kind is found in every place, and nothing else is touched."""

import json
import random
import time

import pytest
from anchoring import NAMES, RULES
from hypothesis import given
from hypothesis import strategies as st
from redacting import PROTECTED_KEYS, redact_line
from redaction_examples import example, filled
from secret_samples import CASES, HEX, JWT, PASSWORD, TEMPLATES, UPPER, WORD, body, hidden, pem

from sessgit.redact.replacer import redact_text


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_every_rule_has_an_example() -> None:
    assert [rule for rule in (*RULES, *NAMES) if not rule["examples"]] == []
    assert len({kind for kind, _ in TEMPLATES}) >= 150


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(CASES)])
def test_a_secret_is_replaced_wherever_it_stands(number: int) -> None:
    kind, (before, secret, after) = CASES[number]
    text, clean = before + secret + after, f"{before}[redacted:{kind}]{after}"
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
    assert hidden(kind, secret) not in again.decode()
    assert redact_line(again) == (again, 0)


@pytest.mark.parametrize("seed", range(5))
def test_random_values_of_every_example_are_replaced(seed: int) -> None:
    """But few of those that happen to be no more random than a word."""
    rng, kept = random.Random(seed), list[str]()
    for kind, template in TEMPLATES:
        before, secret, after = example(template, rng)
        clean, _ = redact_text((before + secret + after).encode())
        if clean.decode() != f"{before}[redacted:{kind}]{after}":
            kept.append(template)
    assert len(kept) <= len(TEMPLATES) // 100, kept


@pytest.mark.parametrize("text", [text for rule in (*RULES, *NAMES) for text in rule.get("harmless", ())])
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    for seed in range(20):
        shown = filled(text, random.Random(seed))
        assert redact_text(shown.encode()) == (shown.encode(), 0)
        line = dump({"message": {"content": shown}})
        assert redact_line(line) == (line, 0)


@pytest.mark.parametrize(
    "name",
    [
        *("PAGERDUTY_API_KEY", "STATUSPAGE_API_KEY", "MINIO_ACCESS_KEY", "MAXMIND_LICENSE_KEY", "COSMOS_PRIMARY_KEY"),
        *("NPM_PUBLISH_TOKEN", "NEXTCLOUD_TOKEN", "OBJECT_STORAGE_ACCESS_KEY", "CACHE_AUTH_TOKEN", "ADMIN_TOKEN"),
        *("PAGESPEED_API_KEY", "MINT_SECRET", "TERMINAL_TOKEN", "GEMINI_API_KEY", "DOMINO_KEY", "MAXAR_TOKEN"),
        *("NUMVERIFY_KEY", "SYNCTHING_API_KEY", "SYNCFUSION_LICENSE_KEY", "RESORT_TOKEN", "SORTLY_API_KEY"),
        *("NEXTDNS_API_KEY", "ACCOUNT_KEY", "COUNTLY_APP_KEY", "DISCOUNT_TOKEN", "TOTALLY_SECRET", "INPUT_TOKEN"),
        *("PROMPTLAYER_API_KEY", "COMPLETION_API_KEY", "OUTPUT_SIGNING_KEY", "ANONADDY_TOKEN", "ETAGGER_KEY"),
        *("CURSOR_API_KEY", "CSRF_SECRET_KEY", "PARTITION_SECRET", "DEDUP_PASSWORD", "SYNC_TOKEN", "PAGE_TOKEN"),
    ],
)
def test_a_harmless_word_in_a_name_hides_no_secret(name: str) -> None:
    for seed in range(5):
        value = filled("<20>a1B2<16>", random.Random(seed))
        for text in (f"{name}={value}", f"export {name}='{value}'", f"{name}: {value}"):
            clean, count = redact_text(text.encode())
            assert (count, value.encode() in clean) == (1, False)
        clean, count = redact_line(dump({"env": {name: value}}))
        assert (count, value.encode() in clean) == (1, False)


@pytest.mark.parametrize(
    "text",
    [
        *("hf_servingcellpriorityparametersdescription", "fw_updateFirmwareImageDescriptor"),
        *("rnd_generateRandomNumbersForTesting", "r8_convertTextureFormatToLinearFloat"),
        *("gsk_constructTheSignedKeyOfThisServiceByItsName", "vci_configurationDescriptorHandle"),
        *("pk_selectThePrimaryKeyOfThisTableByName", "live_reloadTheApplicationWhenItsSourceChanges"),
        *("web_applicationframeworkconfigur", "api_gatewayIntegrationResp.onseHandlerFactoryName"),
        *("PWD: $envFlags.PWD", "--env PWD=$envFlags.PWD", "pwd = osc7", '"pwd": osc99,', "PWD=osc99", "pwd=osc7;"),
        "key: golangci-lint.cache-Linux-./src-2930-4f5c5b3f0a1d",
        "Cache restored from key: node-cache-Linux-x64-npm-2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362",
    ],
)
def test_identifiers_and_cache_keys_stay(text: str) -> None:
    assert redact_text(text.encode()) == (text.encode(), 0)
    line = dump({"message": {"content": f"see {text} there"}, "input": {"key": text, "token": text}})
    assert redact_line(line) == (line, 0)


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
    '{"password": "string?", "passphrase": "string?"}',
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
    # Hashes, ids and what tools print of them.
    "index 3f786850e3..89e6c98d92 100644  5d41402abc4b2a76b9719d911017c592  ./key.txt",
    "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904 parent 3f786850e387550fdab836ed7e6dc881de23001b",
    'ETag: W/"686897696a7c876b7e" x-request-id: 1b2c3d4e-5f60-4718-92a3-b4c5d6e7f809 digest: sha256:' + body(64, HEX),
    '"resolved": "https://npm.example.org/x/-/x-1.0.0.tgz", "integrity": "sha1-' + body(27, WORD + "+/") + '="',
    'name = "x"\nchecksum = "' + body(64, HEX) + '"\n[[package]]',
    "cryptography==42.0.5 --hash=sha256:" + body(64, HEX) + " h1:" + body(43, WORD + "+/") + "=",
    "go.sum: golang.org/x/crypto v0.21.0/go.mod h1:" + body(43, WORD + "+/") + "=",
    # Code that speaks of secrets and holds none.
    "!function(e,t){var n=t.apiKey,r=e.secret||{};e.token=n?r[1234567890]:void 0}(window,{apiKey:null});",
    "a.key===13&&b.preventDefault();var c={key:e.key,token:t.token2,secretKey:s.k1};d.password=f.value",
    '.token-2{color:#a1b2c3d4}.key-enter::before{content:"\\f0c4"}@font-face{src:url(data:font/woff2;base64,d09GMgAB)}',
    "SELECT password_hash, api_key_id FROM users WHERE secret_id = $1 AND token = :token2",
    "kubectl get secret my-secret-1 -o jsonpath='{.data.password}' | base64 -d",
    "def test_password_is_required(client1): assert 'password' in form1.errors",
    "passwordless=True password_min_length=12 tokens_per_second=123456.789 max_tokens: 128000",
    "AUTH_TOKEN_FILE=/run/secrets/auth1 API_KEY_HEADER=X-Api-Key-V2 SECRET_NAME=prod/app/db1",
    "xoxp tokens begin with xoxp-, keys with sk-ant- or sk-proj-, AKIA... for AWS, and ghp_ for GitHub",
    "pat-na1 sdk-28.0.1 llx-theme mlsn.org EZpass sl.wikipedia.org cu_dnn rdme_md e2b_example tr_prod_table",
    '{"auth": "required"} "auth": "oauth2-client-cred" auth: {"user": "me"}',
    # What stood in real text and was taken for secrets.
    '"AWS::IAM::AccessKey": "62d91b17309e76c8", "AWS::Route53GlobalResolver::AccessToken": "ebce066c0deb24b4"',
    '"ARN": "arn:aws:secretsmanager:us-west-2:123456789012:secret:MySecret1-a1b2c3"',
    '"encryptionKey": "arn:aws:kms:us-west-2:123456789012:key/c9fe2447-0795-4fda-afbe-8464574ae162"',
    '"S3Key": "867139942017-EntitiesDetection-ab9887877365fe70299089371c043b96/"',
    f"list --starting-token {body(40)} Next page token: {body(25)}",
    '"ClientToken": "' + body(40) + '"',
    "pip/version.py,sha256=qaN-fw_" + body(36) + ",160",
    "https://docs.google.com/document/d/x/edit?resourcekey=0-gwEhcUSwwMS7Lt2XmIWFNA&tab=t.0",
    'key: "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE' + body(60) + '"',
    "A.KAFKA_MESSAGE_KEY=K0Q.SEMATTRS_RABBITMQ_ROUTING_KEY=K0Q.SEMATTRS_MESSAGING_CONSUMER_ID2;",
    'LIB_KEY = "com.github.googlei18n.cu2qu.curve_type"; METADATA_KEY = "enable-oslogin-2fa"',
    "({'key1': '\"value1\"', 'key2': 'value2', 'key3': 'value3Index1,value3Index2', 'key4': 'value4'})",
    ":param passwd: **DEPRECATED** and\n    *all_children_pass = *all_children_are;",
    "wget --ask-password -user=foo http://foo.com",
    "DEPTH_PASS_DEPTH_PASS: 0x8803; DEPTH_PASS = 0x0b96,",
    '"verdaccio-htpasswd": "npm:13.0.0-next-8.29", "x-password": "^1.0.0-beta.2"',
    "setup (this=this@entry=0x311e1b0, ownerPassword=ownerPassword@entry=0x1165830)",
    "--passphrase= password= scmVersion= $(x)",
    "pkcs11:token=Root%20CA%20Certificates;serial=1%3AROOTS%3ADEFAULT",
    "{'secret': 'V1SecretProjection', 'privateKey': 'Ed25519PrivateKey'}",
    "mkdir -p build/x1 && docker run -p 8080:80 img && npm login --scope=@x1 && echo done1 | base64 -d",
    "kind: SecretStore\ndata:\n  conn: c29tZSB3b3Jkcw==",
    "known = [(\"password\", '5f4dcc3b5aa765d61d8327deb882cf99'), ('passphrase', '7f8fe03093cc84b267b109625f6bbf4b')]",
    'ht.set_hash("user1", hash_scheme("password","apr_md5_crypt")) ("OAUTH2_CLIENT_SECRET", "oauth2ClientSecret")',
    "src: url(data:font/woff;base64,AB/EAAAoB" + "AACMU" * 30 + "/x+y==)",
    "https://docs.google.com/spreadsheet/ccc?key=" + body(44) + "&usp=sharing",
    '"SubjectFromWebIdentityToken": "amzn1.account.AF6RHO7KZU5XRVQJGXK6HB56KR2A"',
    'vi "pluto""zay passwd""::RF10:<USER.ZAY.WORK>TEST.C;1"',
    "kind: Secret and image: 'cloudsql'",
    "task-" + body(22) + " alpaca-" + body(43) + " disk-" + body(22),
    "f('token', x1) g(\"key\", \"a1\") new Map([['secret', 'b2']]) <key>CFBundleVersion</key><string>1.2.3</string>",
    'Proxy-Authorization: Basic realm1 WWW-Authenticate: Basic realm="api", Bearer realm="api2"',
    # Near to what environment files hold.
    "PASSWORD=$(gen_pw 16) PASSWORD=md5(foo1) PASSWORD=getpass(x12345) DB_PASSWORD=get_secret('a1')",
    "PASSWORD='Enter the new value for user 2' NEW_PASSWORD=\"Mật khẩu mới 8 ký tự\"",
    "password: newUserPasswordHash2, client_secret: myClientSecretValue1, apiKey: someConfigValueX2Y",
    "BYPASS=a1b2c3d4 COMPASS=north12345 PASS=12 FAIL=0",
    "SALT='saltRounds10' ADMIN_SECRET=\"Ключ12\" API_KEY=testApiKey12345",
    "mysql -port3306 mysql -p app1 mysqldump -port 3306",
    "Authorization: Basic base64(user1:pass2) Authorization: Basic encoded-credentials-1",
    "MultiHostUrl('https://foo.com:123,foo:bar@bar.com/path')",
    "PASS: gdb.base/gdb1056.exp: print\nPASS: binutils-all/common-1a\nXPASS: a/b1c.py\nPASS=5/10a",
    # Names with something else on the line below, and lines that end where they end.
    "password:\n  minLength: 8\n  pattern: a1\nsecret:\n  secretName: db-secret-1\n  optional: true",
    "key:\n  - item1abc\ntoken:\n  v2beta1: true\nprivateKey:\n  algorithm: RSA2048\n  encoding: PKCS8",
    'key = (\n    "abc-def-1"\n) if token else (\n    "name_2"\n)\npassword =\n    getPassword2(x)',
    "API key:\nSee docs/api-key-2.md\nToken:\nhttps://example.com/t/1\nPassword:\nat least 8 characters",
    "use Bearer\ntokens-of-version-2-here, or Basic\nauth2-of-the-gateway",
    "-" * 70 + " and_some_long_identifier_16\nsha256_of_this_1 is next\n" + "=" * 70,
    'JSON: "{\\"a\\": \\"{\\\\\\"k\\\\\\": \\\\\\"v1\\\\\\"}\\"}" in \\\n lines \\\n  --key \\\n  --token \\\n  name1',
    "const SALT = 'pepper'; SALT_ROUNDS=10 CREDENTIALS: include, CREDENTIALS=/run/secrets/c1",
    'run(["docker", "run", "-p", "8080:80", "-u", "1000:1000"]), ["mkdir", "-p", "a1/b2"], ["claude", "-p", "do it 1"]',
    '["--key", "name1"], ["--token", "-v"], ["--password", "-x1"], ["-p", "test1234"], ["--secret", "my-app-secret-1"]',
    'salt=saltRounds10, salt: \'pepper12\', salt = os.urandom(16), "salt": "joserfc-v1", basalt=a1, salt_length=32',
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA" + body(60) + " MIIDXTCCAkWgAwIBAgIJ" + body(60) + " b3BlbnNzaC1",
    "the\nshort_lines_of_16_letters_and\nmore_of_them_1234 here\nsk-learn-and-more_1\nrest_of_it_2",
    # Near to commands that hold a password.
    f"bot1234:AA{body(33)} bot1234567890:AA{body(20)} bot1234567890:AA{body(34)} 12345678%3AAA{body(9)} robot:AA1",
    "htpasswd -b .htpasswd admin $PASS2 htpasswd -b f u ${PW1} htpasswd -cb f u <password1>",
    'htpasswd -b .htpasswd admin "$ADMIN_PASS2"; htpasswd -nb admin "$(cat /run/p1)"; htpasswd -D file1.a user22',
    "curl -k https://h1.org/x curl -fsSk https://h2 -o a1.tar; openssl s_client -connect h1:443 -showcerts",
    'openssl enc -aes-256-cbc -k "$KEY1" -in a1 -kfile k1.txt; openssl enc -k <key1> -K ${KEY2}',
    'echo \'root:\'$PASS1 | chpasswd; echo "u1:$P1" | chpasswd; chpasswd <<< "root:${P2}"; chpasswd < users1.txt',
    "net user; net user /domain; net user guest1; net users2; the net user count12 of it; net use * /delete /y",
    "ldapsearch -x -b dc=h1 -W -D cn=me; ldapsearch -w $LDAP_PW1 -y /run/p1; ldapsearch -w '%s' -w {pw1} -s sub1",
    "unzip -q a1.zip -d out22; zip -r a1.zip b2 -x c3; wget -P down1oads2 https://h/a1.zip -P down1oads2",
    "7z x a1.7z -oout12; 7z x -p$PASS1 a.7z; 7z a -p%PASS1% a.7z; at 10:57Z x -p1abcdef; docker login",
    "snmpwalk -v2c -c public h1; snmpget -a SHA256 -x AES128 -A $AUTH1; ipmitool -P $P1 -f p1; sqlcmd -P ${X1}",
    "docker run --name mongo -p 27017:27017 mongo:6.0.1; mongo -p 27017; docker run -u 1000 -p 127.0.0.1:80:80 mongo1",
    "smbclient -U user1 //h1/s2; date -u +%Y%m%d%H1; curl -U me1 x; git log -U3 --format=%H%an1; -Uroot%$PASS1",
    "xfreerdp /v:h1 /p:$PASS1; ls /p:abc123; cmdkey /list /pass: ; plink -pw $PW1 h1; scp -pw a1:b2 c3",
    "keytool -storepass $STORE1 -keypass:env KP1; storepass changeit; rclone obscure $PASS1; rclone obscure - < p1.txt",
    "requirepass foobared; requirepass <pw1>; redis requirepass: REDISCLI_AUTH=$REDIS_PW1 REDIS_AUTH= REDIS_AUTHOR=me1",
    "rootpw secret, rootpw {{ root1_pw }}, rootpw --lock, rootpw {SSHA}..., bindpw $PW1, bindpw <secret1>",
    "PW: see above, PW of page 12; PW=12.5us PW=1000us pw=300px PW=$PW1 PW=${DB_PW} DB_PW=<your-pw1> pw = getpw(u1)",
    "pwsh -File a1.ps1; pwd=/home/me1; npw: abc123x; httpw=a1b2c3; pw: string; {pw: 320, ph: 240};",
    "CREATE USER a IDENTIFIED BY '$PASS1'; IDENTIFIED BY 'changeme'; IDENTIFIED BY \"password\"; ORDER BY 'col1abc'",
    "log in with password 'secret'; WITH PASSWORD '${PW1}'; with password \"your-password1\"; ENCRYPTED PASSWORD NULL",
    "echo $P1 | sudo passwd u1 --stdin; echo done12 | tee a1; kinit -kt me1.keytab u1; sudo tee a <<< 'b=c123'",
    "curl -u me1: https://h1; curl -ume:$PASS1 h1; curl --proxy-user me:${P1} h; tool --use:abc123def",
    "security unlock-keychain -p $KP1; security unlock-keychain login.keychain1; rabbitmqctl list_users",
    "TOKEN_ENV=PROD_TOKEN_1 SECRET_ENV=MY_APP_SECRET_1 PASSWORD=abc12→def",
]


MIXED = "kR7pLq2v" + "Xz9wTb"


@pytest.mark.parametrize(
    "parts",
    [
        *(("DB_PASSWORD=", f"c00{mark}kR7p" + "Lq2v", "") for mark in "#$&()=!"),
        ("DB_PASSWORD=", "Tr0ub4dor" + "&iZp3xD", ""),
        *(("PASSWORD='", "d00 kR7p " + "Lq2vXz", "'"), ('export DB_PASS="', "kR7p " + "Lq2v", '"')),
        *(("DB_PASSWORD=", "zażółć" + "77kR", ""), ('ADMIN_SECRET="', "zażółć" + "gęślą77", '"')),
        *(
            (f"{name}=", MIXED, "")
            for name in ("PASSPHRASE", "MYPASS", "SECRET_ENV", "ANTHROPIC_API_KEY", "JWT_SECRET")
        ),
        *((f"{name}=", MIXED, "") for name in ("client_secret", "db_password")),
        *(
            ("client_secret: ", MIXED, ""),
            ("password: ", "ypFzwjj1" + "pFycgk", ""),
            ('"client_secret": "', MIXED, '"'),
        ),
        ("Server=db;User Id=sa;Password=", "ypFzwjj1" + "&$x", ";Encrypt=true"),
        *(("mysql -p", MIXED, " app"), ("mysql -u root -p", MIXED, ""), ("sshpass -p ", MIXED, " ssh a@b")),
        ("Authorization: Basic ", f"{MIXED}_{MIXED}", ""),
    ],
)
def test_values_of_environment_files_and_commands_go_as_a_whole(parts: tuple[str, str, str]) -> None:
    for frame in ("{}", "FOO=1\n{}\nBAR=2", "     1\u2192FOO=1\n     2\u2192{}\n", "1\tFOO=1\n2\t{}\n", "a/.env:2:{}"):
        text, head, tail = frame.format("".join(parts)), *frame.format("\0").split("\0")
        clean, count = redact_text(text.encode())
        before, _, after = clean.decode().removeprefix(head).removesuffix(tail).partition("[redacted:")
        assert (count, before, after.partition("]")[2]) == (1, parts[0], parts[2]), clean


@pytest.mark.parametrize("name", ["AWS_CREDENTIALS", "PASSWORD_SALT"])
def test_rare_names_count_beside_others(name: str) -> None:
    text = f"DB_PASSWORD=Tr0ub4dor-3\n{name}={MIXED}"
    assert redact_text(text.encode()) == (f"DB_PASSWORD=[redacted:password]\n{name}=[redacted:secret]".encode(), 2)


@pytest.mark.parametrize(("digits", "count"), [("48213", 1), ("4821", 0)])
def test_five_digits_are_a_password_in_a_url_and_four_may_be_a_port(digits: str, count: int) -> None:
    assert redact_text(f"https://me:{digits}@host/x".encode())[1] == count


TOKEN = "ghp" + "_" + body(36)
LONG = "sk-" + "ant-api03-" + body(95)
LINES = [body(64 + n, WORD + "+/")[n:] for n in range(9)]


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        *((f"{name}=", MIXED, "\n") for name in ("CREDENTIALS", "export AWS_CREDENTIALS", "SALT")),
        ("FOO=1\nHASH_SALT='", MIXED, "'\nBAR=2"),
        # A value on the line below its name.
        *((f"password:{sign}\n  ", MIXED, "\nb: 1") for sign in ("", " >-", " |")),
        ("   7\u2192client_secret:\n   8\u2192  ", MIXED, ""),
        ('"apiKey":\n    "', MIXED * 2, '",\n'),
        ('API_KEY = (\n    "', MIXED * 2, '"\n)'),
        ("X-Api-Key:\r\n  ", MIXED * 2, "\r\nHost: a"),
        ("Authorization: Bearer\n", MIXED * 3, "\n"),
        # A line that goes on after a backslash.
        ("export DB_PASSWORD=\\\n", MIXED, "\n"),
        ("tool --token \\\n  ", MIXED * 2, " \\\n  --x"),
        ("curl -H 'Authorization: Bearer \\\n", MIXED * 3, "'"),
        ("export GH=", f"{TOKEN[:24]}\\\n{TOKEN[24:]}", "\nnext"),
        # A line that a terminal broke.
        ("this is the key of the day: ", f"{LONG[:60]}\n{LONG[60:]}", " and so on"),
        ("x" * 40 + " ", f"{TOKEN[:30]}\n{TOKEN[30:]}", "\nnext"),
        *(("this is it: ", f"{TOKEN[:at]}\n{TOKEN[at:]}", "\nnext") for at in (20, 28)),
        ("key: ", "\n".join([LONG[:35], LONG[35:75], LONG[75:]]), "\nnext"),
        # A name that is a secret's only before what is random.
        *(
            (f"{sign[0]}salt{sign[1]}", MIXED * 2, sign[2])
            for sign in (("", "=", ""), ('"', '": "', '"'), ("h_", ": ", ""))
        ),
        # The beginning of a key without the words before it.
        *(
            ("$ tail -n +2 k\n", "\n".join([f"{head}{LINES[0][:40]}", *LINES[1:4], LINES[4][:22] + "=="]), "\n$ ")
            for head in ("MIIEpAIBAAKCAQEA", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "b3BlbnNzaC1rZXktdjEAAAAA")
        ),
        ("$ sed -n 2,5p ~/.ssh/id_rsa\n", "\n".join([*LINES[1:4], LINES[4][:22] + "=="]), "\n$ "),
    ],
)
def test_a_secret_goes_though_the_end_of_a_line_stands_in_it(before: str, secret: str, after: str) -> None:
    text = before + secret + after
    clean, count = redact_text(text.encode())
    assert count == 1
    assert clean.startswith(before.encode() + b"[redacted:")
    assert clean.endswith(b"]" + after.encode())
    line, found = redact_line(dump({"message": {"content": text}}))
    assert (json.loads(line), found) == ({"message": {"content": clean.decode()}}, 1)
    assert redact_line(line) == (line, 0)


@pytest.mark.parametrize("depth", range(1, 7))
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (json.dumps({"password": MIXED}), MIXED),
        (json.dumps({"name": "DB_PASSWORD", "value": MIXED}), MIXED),
        (json.dumps({"Cookie": f"sid={MIXED * 3}"}), MIXED),
        (json.dumps({"kty": "RSA", "d": MIXED * 3}), MIXED),
        (f'mysql -p"{MIXED}" app', MIXED),
        (json.dumps({"auths": {"h": {"auth": "bWU6czNj" + "cjN0LVBhIXcwcmQ="}}}), "bWU6czNj"),
    ],
)
def test_a_secret_goes_however_deep_its_document_is_nested(text: str, secret: str, depth: int) -> None:
    for _ in range(depth):
        text = json.dumps({"k": text})
    clean, count = redact_line(text.encode())
    assert (count, secret in clean.decode()) == (1, False)
    inner = clean.decode()
    for _ in range(depth):
        inner = json.loads(inner)["k"]
    assert "[redacted:" in inner
    assert not inner.startswith("{") or json.loads(inner)


def numbered(lines: list[str]) -> str:
    return "".join(f"{n:6d}\u2192{line}\n" for n, line in enumerate(lines, 5))


END = "-----END RSA " + "PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (numbered(LINES), "/home/ada/.ssh/id_rsa", "     5\u2192{}\n"),
        ("\n".join(LINES), "/srv/tls/server.key", "{}"),
        ("\n".join([*LINES, "aB3" * 7 + "=="]) + "\nbye", "/srv/deploy_key.pem", "{}\nbye"),
        ("\n".join(f".ssh/id_rsa:{n}:{line}" for n, line in enumerate(LINES)), "", ".ssh/id_rsa:0:{}"),
        ("\n".join(LINES) + f"\n{END}\nbye", "", f"{{}}\n{END}\nbye"),
        (numbered([*LINES, "aB3x", END]), "", f"     5\u2192{{}}\n    15\u2192{END}\n"),
    ],
)
def test_lines_from_the_middle_of_a_key_go_where_something_says_that_they_are(
    text: str, path: str, expected: str
) -> None:
    line = {"toolUseResult": {"file": {"filePath": path}}, "content": text}
    clean, count = redact_line(dump(line))
    assert (json.loads(clean)["content"], count) == (expected.format("[redacted:private-key]"), 1)
    assert redact_line(clean) == (clean, 0)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("\n".join(LINES), "/home/ada/pictures/cat.b64"),
        ("\n".join(LINES), "/home/ada/.ssh/id_rsa.pub"),
        ("\n".join(LINES), "/srv/tls/server-cert.pem"),
        ("\n".join(LINES), "/srv/app/event.keyboard"),
        ("-----BEGIN CERTIFICATE-----\n" + "\n".join(LINES), "/srv/tls/server.key"),
        ("\n".join(LINES) + "\n-----END CERTIFICATE-----", ""),
        ("\n".join(line[:60] for line in LINES), "/srv/tls/server.key"),
        ("\n".join(LINES[:2]), "/srv/tls/server.key"),
        ("\n".join(body(64, HEX) for _ in range(9)), "/srv/tls/server.key"),
        ("sample\n" + END, ""),
    ],
)
def test_other_lines_of_base64_stay(text: str, path: str) -> None:
    line = dump({"toolUseResult": {"file": {"filePath": path}}, "content": text})
    assert redact_line(line) == (line, 0)


@pytest.mark.parametrize("before", [(1 << 20) - 9, (1 << 20) - 1, 1 << 20, (1 << 20) + 20_000])
def test_a_secret_is_found_in_a_very_long_line_too(before: int) -> None:
    text = "x" * before + f" password: {PASSWORD}"
    assert redact_line(dump({"a": text})) == (dump({"a": text.replace(PASSWORD, "[redacted:password]")}), 1)


@pytest.mark.parametrize("before", [97, 98, 99, 100, 179, 180, 181, 1000])
@pytest.mark.parametrize("after", [0, 1, 19, 20, 21, 300])
def test_a_secret_goes_out_of_a_list_of_arguments_however_long_it_is(before: int, after: int) -> None:
    """Wherever it stands in the parts that are looked at together."""
    head, tail = ["tool", *(f"a{n}.py" for n in range(before))], [f"b{n}.py" for n in range(after)]
    for flag, kind in ((["--token"], "token"), (["redis-cli", "-h", "localhost", "-a"], "cli-password")):
        line = dump({"argv": [*head, *flag, MIXED * 2, *tail]})
        assert redact_line(line) == (dump({"argv": [*head, *flag, f"[redacted:{kind}]", *tail]}), 1)


@pytest.mark.parametrize(
    ("before", "secret", "after"),
    [
        (["tool", "--token"], MIXED * 2, []),
        (["tool", "-x", "--api-key"], MIXED * 2, ["--more"]),
        (["--db-password"], "kR7p" + "Lq", ["-y"]),
        (["sshpass", "-p"], MIXED, ["ssh", "a@b"]),
        (["redis-cli", "-h", "localhost", "-a"], MIXED, ["ping"]),
        (["docker", "login", "-u", "me", "-p"], MIXED, []),
        (["mysql", "-u", "root", "-p"], MIXED, ["app"]),
        (["curl", "-s", "-u", "me:"], MIXED, ["https://example.com"]),
        (["ldapsearch", "-x", "-w"], MIXED, ["-b", "dc=h"]),
        (["unzip", "-q", "-P"], MIXED, ["a.zip"]),
        (["snmpget", "-v3", "-u", "me", "-A"], MIXED, ["h"]),
        (["ipmitool", "-H", "h", "-P"], MIXED, ["power", "status"]),
        (["sqlcmd", "-U", "sa", "-P"], MIXED, ["-Q", "select 1"]),
        (["mongosh", "-u", "me", "-p"], MIXED, ["app"]),
        (["keytool", "-list", "-storepass"], MIXED, ["-v"]),
    ],
)
def test_a_secret_goes_out_of_the_arguments_in_a_list(before: list[str], secret: str, after: list[str]) -> None:
    """In a list of the document, in code, and in JSON within a string."""
    glued = [*before[:-1], before[-1] + secret] if before[-1] in ("me:",) or before[0] == "mysql" else [*before, secret]
    command = [*glued, *after]
    for line in (
        dump({"input": {"command": command, "cwd": "/"}}),
        dump({"text": f"run({json.dumps(command)})"}),
        dump({"text": f"run({command!r})"}),
        dump({"text": json.dumps({"mcp": {"x": {"args": command}}})}),
        dump({"text": "[\n" + ",\n".join(f'    "{word}"' for word in command) + "\n]"}),
    ):
        clean, count = redact_line(line)
        left, _, right = clean.decode().partition("[redacted:")
        assert count == 1, line
        assert left + secret + right.partition("]")[2] == line.decode()
        assert redact_line(clean) == (clean, 0)


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
        f'{{ "a":"\\u00e9\\/",\t"n" : 1.0e5, "t":"{MARK} é\\ud83d/", "z":"é\\u0041" }}'.encode(),
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
        "key:\n" * 50_000,
        ("key" + "\\" * 64) * 3_000,
        "CREDENTIALS=\n" * 20_000,
        (TOKEN[:24] + "\\\n" + TOKEN[24:] + " ") * 5_000,
        "id_rsa\n" + f"{LINES[0]}\n" * 3_000,
        '"-p", ' * 50_000,
        '"a", "--token", ' * 30_000,
        ("MIIEpAIBAAKCAQEA" + "aB1+" * 12 + "\n") * 4_000,
        "salt=" * 50_000,
        f"aB3=\n{END}\n" * 5_000,
        ("sk-" + "aB1" * 30 + "\n") * 2_000,
        "ldapsearch -x " * 15_000,
        "htpasswd -b -c " * 15_000,
        "mongo -u a " * 15_000,
        "zip -r a " * 20_000 + "-P",
        "net user a " * 20_000,
        "pw=" * 50_000,
        "echo a:b1c2d3 | " * 15_000,
        "snmpget -u a " * 15_000 + "\nopenssl enc " * 15_000,
        "-U a%b " * 30_000 + " -u b:c" * 30_000,
    ],
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    begun = time.process_time()
    redact_text(text.encode())
    assert time.process_time() - begun < 3


SHORT = [text for _, parts in CASES if len(text := "".join(parts)) < 200]
PIECES = st.integers(0, len(SHORT) - 1).map(lambda number: SHORT[number])
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


class Pairs(list):
    """The members of an object in order, also where two have one name."""


def agree(before: object, after: object, key: str = "") -> bool:
    """Whether two documents differ only in strings that hold a mark."""
    if isinstance(before, str) and isinstance(after, str):
        return before == after or ("[redacted:" in after and key not in PROTECTED_KEYS)
    if not isinstance(before, list) or not isinstance(after, list):
        return before == after and type(before) is type(after)
    if type(before) is not type(after) or len(before) != len(after):
        return False
    both = zip(before, after, strict=True)
    if isinstance(before, Pairs):
        return all(agree(k, j) and agree(v, w, k) for (k, v), (j, w) in both)
    return all(agree(a, b, key) for a, b in both)


def test_a_key_that_a_secret_made_too_long_for_a_name_stays_none() -> None:
    key = "-----BEGIN EC PRIVATE " + "KEY-----\n" + "aB1/" * 16 + "\n$ "
    clean, count = redact_line(json.dumps({key: "0" + "aB1cD2eF3gH4" * 4}).encode())
    assert count == 1
    assert redact_line(clean) == (clean, 0)


@given(JSON, st.booleans())
def test_any_document_stays_itself_but_for_its_secrets(value: object, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    clean, count = redact_line(raw)
    assert redact_line(clean) == (clean, 0)
    assert (count == 0) == (clean == raw)
    try:
        before = json.loads(raw.decode(), object_pairs_hook=Pairs)
    except ValueError:
        return
    after = json.loads(clean, object_pairs_hook=Pairs)
    assert agree(before, after)


@given(st.binary(max_size=200) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_redacting_twice_changes_nothing(text: bytes) -> None:
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, 0)
