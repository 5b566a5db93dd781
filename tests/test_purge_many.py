"""Ten values at once: gone in every form that the guide promises, and in no form that it does not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from textwrap import wrap
from urllib.parse import quote

from plain import objects
from purging import holders, whole
from shell import Shell

VALUES = [f'acct "{number}"/+é' + f"{number * 7919**4 % 16**12:012x}" for number in range(10)]
PATTERN = r'acct "\d"/\+é[0-9a-f]{12}'


def octal(value: str) -> str:
    """A form that the guide says is not looked for."""
    return "".join(f"\\{byte:03o}" for byte in value.encode())


def forms(value: str) -> list[str]:
    """The forms of a value in which a purge looks for it, each in a text of some other words."""
    data, nested = f"user: {value}!".encode(), value
    for _ in range(3):
        nested = json.dumps({"v": nested})
    codes = [base64.b64encode(data), base64.urlsafe_b64encode(data), data.hex().encode(), data.hex().upper().encode()]
    broken = ["\n".join(wrap(code.decode(), 16)) for code in codes]
    return [value, nested, json.dumps(nested, ensure_ascii=False), quote(value, safe=""), *broken]


def test_ten_values_in_every_form(sessgit: Shell) -> None:
    talk = sessgit.talk()
    for value in VALUES:
        talk.prompt(f"use {value}").tool("Bash", {"command": "cat"}, "\n--\n".join(forms(value))).answer(octal(value))
    sessgit.recorded(talk)
    done = sessgit.json("purge", "--regex", PATTERN, "--yes")
    assert (done["values"], done["found"], [one["turns"] for one in done["sessions"]]) == (
        10, True, [list(range(1, 11))]
    )  # fmt: skip
    assert done["objects"] == len(list(objects(sessgit.store)))
    assert len(sessgit.json("purge", "--list")["denied"]) == 10
    assert seen(sessgit.store) == []
    whole(sessgit)

    talk.prompt("and later").answer("\n--\n".join(form for value in VALUES for form in forms(value)))
    sessgit.recorded(talk)
    assert seen(sessgit.store) == []
    text = sessgit.out("show", f"{talk.session}@1")
    assert octal(VALUES[0]) in text.replace("\n", "").replace(" ", "")


def test_the_proof_names_these_forms_alone(sessgit: Shell) -> None:
    sessgit.recorded(sessgit.talk().turns(*VALUES))
    done = " ".join(sessgit.out("purge", "--regex", PATTERN, "--yes").split())
    count = len(list(objects(sessgit.store)))
    assert (
        f"Checked: none of {count} objects and no file of the store holds it, as it is, JSON-escaped, URL-encoded, or "
        "in base64 or hex"
    ) in done


def seen(store: Path) -> list[str]:
    """The values that the store holds in a form, found without the program's own code."""
    held = [value for value in VALUES if holders(store, value)]
    for _, _, data in objects(store):
        joined = data.decode("utf-8", "replace").replace("\\n", "").replace("\n", "").replace("\\", "")
        held += [
            value
            for value in VALUES
            if quote(value, safe="") in joined
            or value.encode()[6:-6].hex() in joined.lower()
            or base64.b64encode(f"user: {value}!".encode())[12:-12].decode() in joined
            or value.replace("é", "u00e9") in joined
        ]
    return held
