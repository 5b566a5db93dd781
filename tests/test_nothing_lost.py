"""What the files of another system say comes back with an export, or the report of the import names it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreigners import log, put, went
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from shell import Shell
from test_migrating import NOT_BACK, SYSTEMS, anonymous, dialectic, rows

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
        own = sorted(value.keys() - IDS) or [""]
        dropped, other = self.draw(st.lists(st.sampled_from(own), min_size=2, max_size=2))
        is_dropped, is_other = self.draw(st.tuples(st.booleans(), st.sampled_from([True, False, False])))
        out = {key: self.value(inner) for key, inner in value.items() if key != dropped or not is_dropped}
        if is_other and not isinstance(out.get(other, {}), dict | list):
            out[other] = self.mark()
        for key in sorted(self.draw(st.sets(st.sampled_from(["seq", "extra", "sha", "x y", "a.b"]), max_size=2))):
            out[key] = self.mark()
        return out

    def mark(self) -> Any:
        self.count += 1
        marks = [900_000 + self.count, f"mark {self.count}", {"inner": [f"mark {self.count}"]}]
        return self.draw(st.sampled_from(marks))


def is_named(file: dict[str, Any], field: str) -> bool:
    """Whether the report of an import says that a file, or a field of it, comes back in another form, and why."""
    why = file["reason"] or ""
    is_other = file["outcome"] in ("damaged", "left", "empty") or why.startswith(
        ("kept as it is", "derived from the cells")
    )
    return is_other or re.search(rf"(?<![\w.]){re.escape(field)}(?![\w.])", why) is not None


def whole(field: str) -> str:
    """The field of a value that is an object of ours."""
    return field.partition(".inner")[0]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_key_comes_back_or_is_named(
    sessgit: Shell, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:  # fmt: skip
    system, make = SYSTEMS[name]

    # An example takes a second: none is made smaller.
    @settings(
        max_examples=10,
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
        out.mkdir()
        if sessions:
            sessgit.out("export", system, *sessions, "--output", str(out))
        lost = [(file, field) for file, field, place in rows(source, out) if not place]
        silent = [
            (file, field, named[file])
            for file, field in lost
            if (anonymous(file), whole(field)) not in NOT_BACK and not is_named(named[file], whole(field))
        ]
        assert not silent, json.dumps(silent)

    law()


def only(sessgit: Shell) -> str:
    """The id of the only conversation."""
    (row,) = sessgit.json("ls", "--all")["sessions"]
    return str(row["id"])


def test_lines_of_a_log_come_back_with_empty_texts_and_keys_of_their_own(sessgit: Shell, tmp_path: Path) -> None:
    lines = [
        went("out", "", 1, seq=0), went("in", "one", 2, seq=1, extra={"a": 1}, sha="x"), went("out", "", 3, seq=2),
        went("out", "hi", 4), went("artifact", "a.md", 5, action="created", sha="y"), went("in", "two", 6),
        went("out", "", 7, seq=3),
    ]  # fmt: skip
    log(tmp_path, "A-1", *lines)
    sessgit.out("import", "--from", "io-log", str(tmp_path))
    sessgit.out("export", "io-log", only(sessgit), "--output", str(tmp_path / "out"))
    written = (tmp_path / "out/.claude-man/sessions/A-1/io.log").read_text().splitlines()
    assert list(map(json.loads, written)) == lines
    texts = [line for line in sessgit.out("show", "--raw", only(sessgit)).splitlines() if '"text":""' in line]
    assert texts == []  # the model's API accepts no empty text


def test_tokens_before_the_output_of_a_tool_are_counted_once(sessgit: Shell, tmp_path: Path) -> None:
    def told(*messages: dict[str, Any]) -> str:
        every = [{"id": str(n), "index": n, **one} for n, one in enumerate(messages)]
        put(tmp_path / ".apex/sessions/s.json", {"id": "s", "projectPath": "/p", "messages": every})
        return str(sessgit.json("import", "--from", "apex", str(tmp_path))["conversations"][0]["outcome"])

    def used() -> list[int]:
        tokens = json.loads(sessgit.out("show", "--json", only(sessgit)))["session"]["tokens"]
        return [tokens["input"], tokens["output"]]

    asked = {"role": "user", "content": "go", "timestamp": "2026-03-01T10:00:00Z"}
    ran = {"role": "assistant", "content": "running", "tokens": {"input": 11, "output": 7}, "agent": "m"}
    passed = {"role": "tool", "content": "3 passed"}
    done = {"role": "assistant", "content": "done", "tokens": {"input": 2, "output": 1}, "agent": "m"}
    assert (told(asked, ran, passed), used()) == ("new", [11, 7])
    assert (told(asked, ran, passed, done), used()) == ("grown", [13, 8])
    assert (told(asked, ran, passed, done), used()) == ("unchanged", [13, 8])


def test_notes_keep_their_own_keys_after_changes(sessgit: Shell, tmp_path: Path) -> None:
    source = dialectic(tmp_path / "source") / ".dialectic" / "sess_1762164000"
    before = json.loads((source / "session.json").read_text())
    sessgit.out("import", "--from", "dialectic", str(tmp_path / "source"))
    own = only(sessgit)
    (tension,) = [one for one in sessgit.json("pad", own)["entries"] if one["kind"] == "tension"]

    def exported(name: str) -> Path:
        sessgit.out("export", "dialectic", own, "--output", str(tmp_path / name))
        return tmp_path / name / ".dialectic" / "sess_1762164000"

    sessgit.out("pad", "insight", "One more.", "--into", own)
    now = json.loads((exported("noted") / "session.json").read_text())
    assert (now["tensions"], now["thesis"]) == (before["tensions"], before["thesis"])
    sessgit.out("pad", "resolve", tension["id"], "in turn", "--into", own)
    sessgit.out("pad", "thesis", "Neither leads.", "--into", own)
    folder = exported("changed")
    now = json.loads((folder / "session.json").read_text())
    assert now["tensions"][0]["status"] == "resolved"
    assert now["tensions"][0]["resolution"] == "in turn"
    assert (now["thesis"]["id"], now["thesis"]["content"]) == ("thesis_v2", "Neither leads.")
    assert {path.name: path.read_text() for path in (folder / "thesis").iterdir()} == {
        "thesis_v1.md": "They take turns.\n", "thesis_v2.md": "Neither leads.\n",
    }  # fmt: skip


def test_plans_that_no_conversation_names_are_reported(sessgit: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    sessgit.talk().turns("one").save(folder / "projects" / "-home-ada-shop")
    put(folder / "plans" / "bold-flowing-river.md", "# Plan\n")
    assert sessgit.json("import", "--from", "claude", str(folder))["plans"] == ["bold-flowing-river.md"]
    assert sessgit.out("import", "--from", "claude", str(folder)).endswith(
        "1 plan skipped, named in no conversation: bold-flowing-river.md\n"
    )
