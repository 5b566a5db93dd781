"""Commands with a password in their line."""


def commands(password: str, key: str) -> list[tuple[str, ...]]:
    """Each as what stands before the secret, the secret, and what stands behind it."""
    return [
        *(
            (f"htpasswd {options} ", password, after)
            for options, after in (
                ("-b .htpasswd admin", ""),
                ("-cb /etc/nginx/.htpasswd admin", " && ls"),
                ("-c -b -C 10 users 'admin'", ""),
                ("-nb admin", " > users"),
                ("-nbBC 10 admin", ""),
                ("-Bbn 'admin'", ""),
            )
        ),
        ("openssl enc -aes-256-cbc -pbkdf2 -in a -out b -k ", password, ""),
        ("openssl aes-256-cbc -d -k '", password, "' -in b"),
        ("openssl enc -aes-128-cbc -K ", key, " -iv 0"),
        ("openssl enc -aes-256-cbc -pass pass:", password, " -in a"),
        ("openssl pkcs12 -export -password pass:", password, " -in a"),
        ("openssl passwd -6 -salt ab1 ", password, ""),
        ("echo 'root:", password, "' | chpasswd"),
        ('echo "root:', password, '" | sudo chpasswd -e'),
        ("printf 'root:", password, "\\n' | chpasswd"),
        ("chpasswd <<< 'root:", password, "'"),
        ("sudo chpasswd <<EOF\nroot:", password, "\nEOF"),
        ('echo -e "', password, '" | sudo passwd me'),
        ("echo ", password, " | kinit me@EXAMPLE.ORG"),
        ("kinit me@EXAMPLE.ORG <<< '", password, "'"),
        ("sudo -S <<< ", password, " apt update"),
        ("docker login -u me --password-stdin <<< ", password, ""),
        ("net user me ", password, " /add"),
        ("net user /add me ", password, ""),
        ("net use Z: \\\\h\\s /user:me ", password, ""),
        ("ldapsearch -x -D cn=me,dc=h -w ", password, " -b dc=h '(&(cn=a)(uid=b))'"),
        ("ldapsearch -b dc=h '(&(cn=a)(uid=b))' -w '", password, "'"),
        *(
            (f"ldap{verb} -x -D cn=me -w ", password, " -f a")
            for verb in ("add", "modify", "delete", "whoami", "passwd")
        ),
        ("slappasswd -h {SSHA} -s ", password, ""),
        ("smbclient //h/s -U me%", password, " -c ls"),
        ("rpcclient -U 'DOM\\me%", password, "' h"),
        ("unzip -q -P ", password, " a.zip"),
        ("zip -r -P '", password, "' a.zip b"),
        ("7z x -p", password, " a.7z"),
        ("7za a a.7z -p'", password, "' -mhe=on b"),
        ("snmpwalk -v3 -l authPriv -u me -a SHA -A ", password, " h"),
        ("snmpget -v3 -u me -A $AUTH -x AES -X ", password, " h"),
        ("snmpbulkwalk -v2c -c '", password, "' h"),
        ("ipmitool -I lanplus -H h -U me -P ", password, " chassis status"),
        ("mongo -u me -p ", password, " app"),
        ("mongodump --host h -u 'me' -p '", password, "'"),
        ("cqlsh -u me -p ", password, " h"),
        ("/opt/mssql-tools/bin/sqlcmd -S h -U sa -P '", password, "' -Q 'select 1'"),
        ("mosquitto_pub -u me -P ", password, " -t a -m b"),
        ("rabbitmqctl add_user me ", password, ""),
        ("xfreerdp /v:h /u:me /p:", password, " /f"),
        ("cmdkey /add:h /user:me /pass:", password, ""),
        ("plink -ssh me@h -pw ", password, " ls"),
        ("keytool -list -keystore k -storepass ", password, " -v"),
        ("security unlock-keychain -p ", password, " login.keychain"),
        ("mysqladmin -u root password ", password, ""),
        ("rclone obscure ", password, ""),
        ("curl -s -ume:", password, " https://h"),
        ("curl --proxy-user me:", password, " https://h"),
    ]
