"""Passwords in the lines of commands, and the other kinds that came with version 7 of the rules.

Most of these commands are told by a letter that a cue seeks anyway: so they cost hardly more time.
"""

_NEXT = r"(?: |[\"'\\]{1,64},)"
"""What follows a word of a command, in a line and in a list."""
_THEN = r"(?: |\\{0,16}[\"'],[ \t\n]{0,40}\\{0,16}[\"'])"
"""What stands between two words of a command that are no options, in a line and in a list in a text."""
_QUOTES = r"[\\\"']{0,8}"
_PASSWORD = r"(?![$\[<{%])[^\x00-\x20\x7f\"'\\`|<>]{4,128}"
"""A password, and no variable, template or mark: behind one of these another option may hold one."""
_SECRET = _QUOTES + "(?P<secret>" + _PASSWORD + ")"
_WITHIN = r"[^\n|;&]{0,200}?"
_WORD = r"(?: {1,4}[^\s|;&<>]{1,128})"
_OPTION = r"(?: {1,4}-[A-Za-z0-9]{1,8}(?: {1,4}[0-9]{1,6}(?= ))?)"
_COMMAND = r"(?<![._-])"
_STDIN = r"(?:(?:ch|smb|vnc|g)?passwd|kinit|cryptsetup)"
"""Commands that read passwords from what is piped to them."""

_LDAP, _SNMP, _PUTTY = (_NEXT + before for before in (r"[^\n]{0,300}?-w", r"[^\n]{0,200}?-[axc]", r"[^\n]{0,160}?-pw"))
# Few, and each with another letter first, which mostly does not stand there: a look back costs more.
_AFTER_P = (
    r"a(?:sswd(?:(?<=chpasswd)|(?:(?<=htpasswd)|(?<=lappasswd)|(?<=ldappasswd))" + _NEXT + r")"
    r"|ssw(?:or)?d[^\n]{0,40}?<<<|ss[ \"'\\](?:(?<=requirepass.)|(?<=storepass.)|(?<=keypass.))|ss:(?<=/pass:)"
    r"|dd(?<=ldapadd)" + _LDAP + ")",
    "s(?:earch(?<=ldapsearch)" + _LDAP + "|et(?<=snmpset)" + _SNMP + "|cp(?<=pscp)" + _PUTTY + ")",
    "w(?:hoami(?<=ldapwhoami)" + _LDAP + "|alk(?<=snmpwalk)" + _SNMP + ")",
    r"m(?:itool(?<=ipmitool)[^\n]{0,160}?-p|odify(?<=ldapmodify)" + _LDAP + ")",
    "get(?:next)?(?:(?<=snmpget)|(?<=snmpgetnext))" + _SNMP,
    "bulk(?<=snmpbulk)[a-z]{3,4}" + _SNMP,
    "delete(?<=ldapdelete)" + _LDAP,
    "link(?<=plink)" + _PUTTY,
    "enssl(?<=openssl)" + _NEXT + r"(?:passwd|[^\n]{0,160}?-(?:k|password))",
    r" (?<=rdp )[^\n]{0,200}?/p:",
)

FROM_7 = (
    (r"(?<=:A)A[A-Za-z0-9_-]{33}", r"(?:(?<=:A)|(?<=%3AA)|(?<=%3aA))A[A-Za-z0-9_-]{33}"),
    (r"|auth=|", r"|AUTH(?:(?<=REDISCLI_AUTH)|(?<=REDIS_AUTH))|auth=|"),
    (
        r"|p(?<=sshpass -p)",
        r"|p(?<=sshpass -p)|S <<<|u(?<= -u)[^\s:\"'\\]{1,64}:"
        r"|u [\\\"']{0,4}[^\s:\"'\\]{1,64}[\\\"']{0,4} [^\n]{0,80}?-p"
        r"|U(?:[ =]|[\"'\\]{1,64},)?[\\\"']{0,64}[^\s%\"']{1,64}%[^\s\"'\\]{4}",
    ),
    (r"B(?:(?:earer|", r"B(?:Y (?:(?<=IDENTIFIED BY )|(?<=password BY ))|(?:earer|"),
    (
        r"z(?<=authoriz)ation",
        r"z(?<=7z)[arz]?(?: [adeltux](?= )|[\"'\\]{1,64}, ?[\"'\\]{1,64}[adeltux](?=[\"'\\]))[^\n]{0,160}?[ \"'\\]-p"
        r"|zip" + _NEXT + r"[^\n]{0,160}?-p|z(?<=authoriz)ation",
    ),
    (r"k(?:(?:ey|en)", r"k(?:init |eychain[ \"'\\,]{1,66}-p|(?:ey|en)"),
    (r"\| ?(?:base64", r"\| ?(?:(?:sudo )?" + _STDIN + r"[ \n]|base64"),
    (
        r"q(?<=mysq)l[a-z]{0,6}(?: |[\"'\\]{1,64},)[^\n]{0,160}?-p",
        r"q(?:(?<=rabbitmq)ctl|(?:(?<=sq)lcmd|(?<=mosq)uitto_)[^\n]{0,160}?-P"
        r"|(?<=mysq)l[a-z]{0,6}(?: |[\"'\\]{1,64},)[^\n]{0,160}?-p)",
    ),
    (r"p(?:(?:assw(?:or)?d|wd)", "p(?:" + "|".join(_AFTER_P) + "|(?:assw(?:or)?d|wd?)"),
)
"""What version 7 has in the place of parts of the cues of version 5."""

CUES = (("cli", r"ne(?:t use(?:r |[^\n]{0,160}?/user:)|(?<=rclone) obscure )", b""),)
"""More cues: name, pattern and sign."""

INNER = (
    "command",
    "password",
    "p(?:"
    + "|".join(_AFTER_P)
    + "|w(?:(?<=bindpw)|(?<=rootpw))|assword (?:(?<=with password )|(?<=encrypted password )))",
)
"""A cue that is only looked for where another one hits, of which it is a part: its name, that of the other one, and
its pattern, for texts in lower case."""

_HTPASSWD = _COMMAND + r"htpasswd(?:\.exe)?(?=" + _OPTION + r"{0,5} {1,4}-[A-Za-z0-9]{0,7}b)"
_PRINTS = _OPTION + r"{0,5} {1,4}-[A-Za-z0-9]{0,7}n"

_COMMANDS = (
    ("command", b"htpasswd", _HTPASSWD + "(?=" + _PRINTS + ")" + _OPTION + "{1,6}" + _WORD + " {1,4}" + _SECRET),
    ("command", b"htpasswd", _HTPASSWD + "(?!" + _PRINTS + ")" + _OPTION + "{1,6}" + _WORD + "{2} {1,4}" + _SECRET),
    (
        "command",
        b"openssl",
        r"openssl" + _THEN + "(?:enc|aes|des|aria|camellia|chacha|sm4|rc)" + _WITHIN + " -[kK] " + _SECRET,
    ),
    ("command", b"openssl", r"openssl passwd(?: -salt \S{1,32}| -[a-z0-9]{1,8}){0,4} (?!-)" + _SECRET),
    ("command", b"openssl", r"openssl " + _WITHIN + " -password[ =]" + _QUOTES + "pass:" + _SECRET),
    (
        "command",
        b"chpasswd",
        r"chpasswd[^\n|;&<]{0,40}<<-?[ \"']{0,2}\w{2,16}[\"']?(?:\n|\\{1,8}n)[^\s:]{1,64}:" + _SECRET,
    ),
    (
        "command",
        b"chpasswd",
        r"(?:echo|printf)(?: -[a-zA-Z]{1,3})? "
        + _QUOTES
        + r"[^\s:\"'\\|$]{1,64}:"
        + _SECRET
        + r"(?:\\{1,8}n)?"
        + _QUOTES
        + r" ?\|[^\n|;&]{0,60}?chpasswd",
    ),
    (
        "cli",
        b"|",
        r"(?:echo|printf)(?: -[a-zA-Z]{1,3})? "
        + _QUOTES
        + "(?P<secret>"
        + _PASSWORD
        + r"(?:\\{1,8}n"
        + _PASSWORD
        + r")?)(?:\\{1,8}n)?"
        + _QUOTES
        + r" ?\| ?(?:sudo )?"
        + _STDIN
        + r"(?![\w-])",
    ),
    *(
        (
            cue,
            b"<<<",
            reads + r"[^\n|;&<]{0,80}<<< ?" + _QUOTES + r"(?:[^\s:\"'\\|$]{1,64}:)?" + _SECRET,
        )
        for cue, reads in (
            ("command", "(?:(?:ch|smb|vnc|g)?passwd|passw(?:or)?d-stdin)"),
            ("key", "kinit"),
            ("-", "sudo -S"),
        )
    ),
    ("cli", b"net user", r"net user /add" + _WORD + r" {1,4}(?!/)" + _SECRET),
    (
        "cli",
        b"net user",
        r"net user"
        + _WORD
        + r" {1,4}(?!/)"
        + _SECRET
        + r"(?=[\"'\\]{0,8}(?: /[a-zA-Z]|[\r\n`\x1b]|\Z)|[\"\\]{1,8}[nr}\],])",
    ),
    ("cli", b"net use ", r"net use [^\n|;&]{0,160}?/user:[^\s]{1,64} (?!/)" + _SECRET),
    ("cli", b"net use ", r"net use [^\n|;&]{0,160}?\\{2,8}[^\s]{1,128} (?!/)" + _SECRET + "(?= /user:)"),
    ("command", b"ldap", r"ldap(?:search|add|modify|delete|passwd|whoami)[^\n]{0,300}? -w ?" + _SECRET),
    ("command", b"appasswd", r"(?:ldap|slap)passwd" + _WITHIN + " -s " + _SECRET),
    (
        "-",
        b"-U",
        r"(?:smb(?:client|map|get|cacls|tree)|rpcclient|winexe|wmic|net (?:rpc|ads))"
        + _WITHIN
        + r" -U ?"
        + _QUOTES
        + r"[^\s%\"']{1,64}%"
        + _SECRET,
    ),
    ("B", b" -P", _COMMAND + r"(?:un)?zip " + _WITHIN + "(?<= )-P ?" + _SECRET),
    ("B", b"7z", _COMMAND + r"7z[arz]?" + _THEN + "[adeltux] " + _WITHIN + "(?<= )-p" + _SECRET),
    ("command", b"snmp", r"snmp(?:walk|get(?:next)?|bulk(?:get|walk)|set) " + _WITHIN + " -[AXc] " + _SECRET),
    ("command", b"ipmitool", "ipmitool " + _WITHIN + " -P " + _SECRET),
    ("cli", b"sqlcmd", "sqlcmd(?:[.]exe)? " + _WITHIN + "(?<= )-P ?" + _SECRET),
    ("cli", b"mosquitto_", "mosquitto_(?:pub|sub|rr) " + _WITHIN + "(?<= )-P " + _SECRET),
    ("cli", b"rabbitmqctl", "rabbitmqctl " + _WITHIN + "(?:add_user|change_password)" + _WORD + " {1,4}" + _SECRET),
    (
        "-",
        b"mongo",
        _COMMAND
        + r"mongo(?:sh|dump|restore|export|import|stat|top|files)? "
        + _WITHIN
        + r"-u "
        + _WITHIN
        + "(?<= )-p[ =]?"
        + _SECRET,
    ),
    ("-", b"cqlsh", "cqlsh " + _WITHIN + "-u " + _WITHIN + "(?<= )-p[ =]?" + _SECRET),
    ("-", b"curl", r"curl " + _WITHIN + r"(?:(?<= )-u|--proxy-user[ =])" + _QUOTES + r"[^\s:\"'\\]{1,64}:" + _SECRET),
    ("command", b"cmdkey", r"cmdkey[^\n|;&]{0,200}? /pass:" + _SECRET),
    ("command", b"rdp", r"(?:(?:x|w|s|wl|sdl-)?freerdp3?)[^\n|;&]{0,200}? /p:" + _SECRET),
    ("command", b"-pw ", r"(?:plink|pscp)(?:\.exe)? " + _WITHIN + "(?<= )-pw " + _SECRET),
    ("command", b"pass ", r"-(?:dest|src)?(?:store|key)pass " + _SECRET),
    ("password", b"mysqladmin", r"mysqladmin " + _WITHIN + " password " + _SECRET),
    ("key", b"-keychain -p", r"(?:unlock|create)-keychain -p " + _SECRET),
    ("cli", b"rclone obscure", r"rclone obscure " + _SECRET),
)

_IN_FILES = (
    ("_", b"REDIS", r"REDIS(?:CLI)?_AUTH[\"'\\]{0,8}(?:=|:[ \t]{0,2})" + _SECRET),
    ("command", b"requirepass", r"requirepass " + _SECRET),
    ("command", b"bindpw", r"bindpw[ \t]{1,8}" + _SECRET),
    ("command", b"rootpw", r"rootpw[ \t]{1,8}(?:--plaintext {1,4})?" + _SECRET),
    ("B", b"IDENTIFIED", r"IDENTIFIED (?:WITH \S{1,60} )?BY (?:PASSWORD )?[\\\"']{1,8}" + _SECRET + r"(?=[\\\"'])"),
    (
        "command",
        b" PASSWORD ",
        r" PASSWORD (?:(?<=WITH PASSWORD )|(?<=ENCRYPTED PASSWORD ))[\\\"']{1,8}" + _SECRET + r"(?=[\\\"'])",
    ),
    (
        "command",
        b" password ",
        r" password (?:(?<=with password )|(?<=encrypted password ))[\\\"']{1,8}" + _SECRET + r"(?=[\\\"'])",
    ),
)

KINDS = (
    (
        "telegram-bot-token",
        "A",
        b"AA",
        r"(?:[Bb]ot|BOT)?(?P<secret>[0-9]{8,10}(?::|%3[Aa])AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
        "token",
    ),
    (
        "password",
        "command",
        b"oot",
        r"(?:rootpw|olcRootPW:)[ \t]{1,8}(?:--iscrypted {1,4})?"
        r"(?P<secret>\{[A-Z0-9-]{3,16}\}[A-Za-z0-9+/=$.,-]{16,512}|\$[0-9a-z]{1,10}\$[A-Za-z0-9./$=,+-]{20,512})",
        "token",
    ),
    *(("password", cue, sign, pattern, "password") for cue, sign, pattern in _IN_FILES),
    *(("cli-password", cue, sign, pattern, "password") for cue, sign, pattern in _COMMANDS),
)
"""Kinds of version 7: kind, cue, sign, expression and check."""
