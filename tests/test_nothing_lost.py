"""What the files of another system say comes back with an export, or the report of the import names it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from shell import Shell
from test_migrating import NOT_BACK, SYSTEMS, anonymous, rows

IDS = {"session_id", "id", "cell_id", "sessionId", "messages", "index"}
"""Keys without which a file is not one of its system."""


class Edit:
    """Changes documents of a system at random: each object may get keys that no system has, and lose some of its own.

    Every value that it adds is one that nothing else has, so that it can be looked for.
    """

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw, self.count = draw, 0

    def file(self, path: Path) -> None:
        if path.suffix == ".json":
            path.write_text(json.dumps(self.value(json.loads(path.read_text()))))
        elif path.suffix in (".jsonl", ".log"):
            lines = [self.value(json.loads(line)) for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        dropped = self.draw(st.sets(st.sampled_from(sorted(value)), max_size=1)) if value else set()
        out = {key: self.value(inner) for key, inner in value.items() if key in IDS or key not in dropped}
        for key in sorted(self.draw(st.sets(st.sampled_from(["seq", "extra", "sha", "x y", "a.b"]), max_size=2))):
            self.count += 1
            marks = [900_000 + self.count, f"mark {self.count}", {"inner": [f"mark {self.count}"]}]
            out[key] = self.draw(st.sampled_from(marks))
        return out


def is_named(file: dict[str, Any], field: str) -> bool:
    """Whether the report of an import says that a file, or a field of it, comes back in another form, and why."""
    why = file["reason"] or ""
    is_other = file["outcome"] == "damaged" or why.startswith(("kept as it is", "derived from the cells"))
    return is_other or re.split(r"\.(?=inner)", field)[0] in why.partition("belong to no session: ")[2].split(", ")


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "rlm, flat files"])
def test_every_key_comes_back_or_is_named(
    sessgit: Shell, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:  # fmt: skip
    system, make = SYSTEMS[name]

    # An example takes a second: none is made smaller.
    @settings(
        max_examples=8,
        phases=[Phase.reuse, Phase.generate],
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(data=st.data())
    def law(data: st.DataObject) -> None:
        folder = tmp_path_factory.mktemp("law")
        source, out, edit = make(folder / "source"), folder / "out", Edit(data.draw)
        for path in sorted(source.rglob("*")):
            edit.file(path)
        shutil.rmtree(sessgit.store, ignore_errors=True)
        report = json.loads(sessgit("import", "--json", "--from", system, str(source)).out)
        named = {file["path"]: file for file in report["files"]}
        sessions = [row["id"] for row in sessgit.json("ls", "--all")["sessions"]]
        sessgit.out("export", system, *sessions, "--output", str(out))
        lost = [(file, field) for file, field, place in rows(source, out) if not place]
        silent = [
            (file, field, named[file])
            for file, field in lost
            if (anonymous(file), field) not in NOT_BACK and not is_named(named[file], field)
        ]
        assert not silent, json.dumps(silent)

    law()
