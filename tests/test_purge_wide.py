"""A purge looks where a value is not to be seen: in broken lines of code, in hex, and in what waits beside."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

from purging import SESSION, git
from shell import Shell

from sessgit.store import object_scan

SECRET = "ghp" + "_" + "a1B2c3" * 6


def lines(code: str, width: int = 60) -> str:
    return "\n".join(code[at : at + width] for at in range(0, len(code), width))


def holders(sessgit: Shell, code: str) -> list[str]:
    """The objects in which a part of the code stands that only the secret makes."""
    part = code.split("\n")[1][4:24].encode()
    return [one.id for one in object_scan.all_objects(sessgit.store, lambda done, total: None) if part in one.data]


def test_a_likely_secret_in_base64_and_hex_is_found_and_taken_out(sessgit: Shell) -> None:
    data = f"# settings\nexport GH_TOKEN={SECRET}\nexport MORE=yes\n".encode()
    coded, in_hex = lines(base64.b64encode(data).decode()), lines(data.hex())
    sessgit.recorded(sessgit.talk().turns(f"see\n{coded}\n", f"and\n{in_hex}\n"))
    assert holders(sessgit, coded)
    (found,) = json.loads(sessgit.out("purge", "--find", "--json"))["secrets"]
    assert (found["kind"], found["addresses"]) == ("github-token", [f"{SESSION}@1", f"{SESSION}@2"])
    done = sessgit.json("purge", "--secret", found["id"], "--yes")
    assert [(one["id"], one["turns"]) for one in done["sessions"]] == [(SESSION, [1, 2])]
    assert [holders(sessgit, code) for code in (coded, in_hex)] == [[], []]
    assert len(done["client_files"]) == 1
    assert sessgit.out("purge", "--find") == "No likely secrets found\n"
    sessgit.talk().turns(f"see\n{coded}\n", f"and\n{in_hex}\n", f"again {in_hex}")
    assert sessgit("verify").code == 0


def test_a_value_in_short_last_lines_of_code_and_of_code_in_json(sessgit: Shell) -> None:
    """Also where a text is long enough to be a file of its own, and where the client has it again later."""
    value = "".join(chr(0x61 + n * 7 % 26) for n in range(58))
    ends, in_hex = lines(base64.b64encode(value.encode()).decode(), 76), lines(value.encode().hex(), 114)
    coded = lines(base64.b64encode(b"# settings of the shop\nexport PASS=" + value.encode() + b" # here").decode(), 9)
    talk = sessgit.talk().prompt("see").tool("Bash", {"command": "base64 x"}, f"{ends}\n" + "so be it\n" * 600)
    talk.tool("Bash", {"command": "xxd -p x"}, f"{in_hex}\n")
    talk.tool("Bash", {"command": "api"}, json.dumps({"files": {"x": coded}})).answer("Done.").stop_lines()
    sessgit.recorded(talk)
    parts = [ends.split("\n")[0][4:40].encode(), in_hex.split("\n")[0].encode(), coded.split("\n")[7].encode()]

    def held() -> list[bool]:
        found = [one.data for one in object_scan.all_objects(sessgit.store, lambda done, total: None)]
        return [any(part in data for data in found) for part in parts]

    assert held() == [True, True, True]
    done = sessgit.json("purge", value, "--yes")
    assert [(one["id"], one["turns"]) for one in done["sessions"]] == [(SESSION, [1])]
    assert held() == [False, False, False]
    sessgit.recorded(talk.prompt("again").tool("Bash", {"command": "base64 x"}, ends).answer("Again.").stop_lines())
    assert held() == [False, False, False]
    assert sessgit("verify", "--deep").code == 0


def test_a_regular_expression_is_looked_for_where_a_value_is(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    told, waits, logged, named = (f"acct-1000000{n}" for n in range(4))
    history = sessgit.config / "history.jsonl"
    history.write_text(json.dumps({"display": f"pay {told}"}) + "\n")
    (sessgit.config / "picture.png").write_bytes(b"\0acct-99999999")
    sessgit.out("tag", f"v-{named}", f"{SESSION}@1")
    (sessgit.store / "log").write_text(f"2026-03-01T10:00:00.000Z 0 {logged}\n")
    spool = sessgit.store / "spool"
    spool.mkdir(exist_ok=True)
    (spool / "1.json").write_text(json.dumps({"session_id": SESSION, "prompt": waits}))
    done = sessgit.json("purge", "--regex", "acct-[0-9]{8}", "--yes")
    assert (done["values"], done["client_files"], done["tags"]) == (4, [str(history)], ["v-purged"])
    assert "acct-" not in (sessgit.store / "log").read_text()
    with suppress(FileNotFoundError):  # a recorder that a command started may have taken the event
        assert "acct-" not in (spool / "1.json").read_text()
    assert "acct-" not in git(sessgit.store, "tag")


def test_what_nothing_holds_is_told_by_the_operations(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    done = sessgit.json("purge", SECRET, "--yes")
    (one,) = json.loads(sessgit.out("ops", "--json"))["operations"]
    assert (one["id"], one["command"], one["summary"]) == (
        done["operation_id"],
        "purge",
        "1 value blocked, which nothing held",
    )
    assert sessgit.json("purge", SECRET, "--yes")["operation_id"] is None
    (sessgit.store / "state" / "forbidden").unlink()
    assert "the list of purged values is gone" in " ".join(sessgit("doctor").out.split())
