"""`sessgit config`: the settings of a store."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kept import begins
from shell import Shell
from strategies import SECRET
from transcripts import SESSION

from sessgit.errors import SessgitError
from sessgit.store.settings import Config, parse_config


@begins
def sessgit(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one"))


KEYS = "`sessgit config` lists keys and values."


def test_the_defaults(sessgit: Shell) -> None:
    assert (
        sessgit.out("config")
        == """\
record.granularity  turn  (default)
record.redact       true  (default)
record.fsync        true  (default)
record.exclude      []  (default)
record.include      []  (default)
archive.after       ""  (default)
undo.keep           90d  (default)
sync.include        []  (default)
plugin.answer       false  (default)
"""
    )


def test_the_help_names_every_setting(sessgit: Shell) -> None:
    told = sessgit.out("config", "--help")
    tables = {table.name: table.default_factory() for table in fields(Config)}  # type: ignore[misc]
    every = [f"{name}.{key.name}" for name, table in tables.items() if name != "prices" for key in fields(table)]
    assert len(every) == 10
    assert [key for key in [*every, "prices.MODEL"] if key not in told] == []


def test_set_and_unset(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text("# mine\n")
    assert sessgit.out("config", "record.fsync", "false") == ""
    assert sessgit.out("config", "record.fsync") == "false\n"
    assert sessgit.out("config").splitlines()[2] == "record.fsync        false"
    assert (sessgit.store / "config.toml").read_text().startswith("# mine\n")
    assert sessgit.json("config")["settings"]["record.fsync"] == {"value": False, "default": False}
    assert sessgit.out("config", "--unset", "record.fsync") == ""
    assert sessgit.out("config", "record.fsync") == "true\n"


def test_cells_need_a_hook_more(sessgit: Shell) -> None:
    done = sessgit("config", "record.granularity", "cell")
    assert (done.code, done.err) == (
        0,
        "Run sessgit install again: a commit for each cell needs one more hook.\n",
    )
    assert sessgit.out("install").splitlines()[0] == (
        "Recording is on: 7 hooks in ~/.claude/settings.json (undo: sessgit uninstall)"
    )


def test_secrets_that_are_stored_are_told(sessgit: Shell) -> None:
    done = sessgit("config", "record.redact", "false")
    assert done.err == "From now on secrets are stored unredacted (undo: sessgit config --unset record.redact).\n"
    remark = "Attention   secrets are stored unredacted: record.redact is false"
    assert remark in sessgit.out("status").splitlines()
    assert sessgit.json("status")["redact"] is False
    assert sessgit("config", "record.redact", "true").err == ""
    assert remark not in sessgit.out("status").splitlines()


def test_prices(sessgit: Shell) -> None:
    price = "{input = 5, output = 25, cache_read = 0.5, cache_write = 6.25}"
    assert sessgit.out("config", "prices.claude-next", price) == ""
    assert sessgit.out("config", "prices.claude-next.output") == "25.0\n"


@pytest.mark.parametrize(
    "arguments",
    [("record.granularity", "line"), ("record.nothing", "1"), ("prices.x.input", "1"), ("undo.keep", "9" * 5000),
     ("record.exclude", "[" * 50_000)],
)  # fmt: skip
def test_nonsense_changes_nothing(sessgit: Shell, arguments: tuple[str, str]) -> None:
    before = sessgit.out("config")
    done = sessgit("config", *arguments)
    assert done.code == 2
    assert done.err.startswith(f"Error: {sessgit.store}/config.toml: ")
    assert sessgit.out("config") == before


def test_a_value_of_any_depth_changes_nothing(sessgit: Shell) -> None:
    before = sessgit.out("config")
    for depth in range(100, 600, 50):
        assert sessgit("config", "record.exclude", "[" * depth + "]" * depth).code == 2
    assert sessgit.out("config") == before


def test_an_unknown_key(sessgit: Shell) -> None:
    done = sessgit("config", "record.nothing")
    assert (done.code, done.err) == (
        2,
        "Error: there is no setting “record.nothing”.\nHint: `sessgit config` lists all settings.\n",
    )


def test_unset_of_a_name_that_nothing_has(sessgit: Shell) -> None:
    for key in ("zzz", "record.nothing", "prices.claude-next", "record.fsync.x"):
        done = sessgit("config", "--unset", key)
        assert (done.code, done.err) == (
            2,
            f"Error: there is no setting “{key}”.\nHint: `sessgit config` lists all settings.\n",
        )
    assert not (sessgit.store / "config.toml").exists()
    for key in ("record.fsync", "record", "prices"):
        assert sessgit.out("config", "--unset", key) == ""


def test_unset_takes_a_mistake_out(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text("[record]\nnothing = 1\nfsync = false\n")
    assert sessgit.out("config", "--unset", "record.nothing") == ""
    assert (sessgit.store / "config.toml").read_text() == "[record]\nfsync = false\n"


def test_lists(sessgit: Shell) -> None:
    globs = '["~/private/*", "/srv/\\"a\\"/\\u0009\\U0001F600é"]'
    assert sessgit.out("config", "record.exclude", globs) == ""
    shown = sessgit.out("config", "record.exclude")
    assert shown == '["~/private/*", "/srv/\\"a\\"/\\t\U0001f600é"]\n'
    assert sessgit.out("config", "record.exclude", shown.strip()) == ""
    assert sessgit.out("config", "record.exclude") == shown
    assert sessgit.json("config", "record.exclude")["settings"] == {
        "record.exclude": {"value": ["~/private/*", '/srv/"a"/\t\U0001f600é'], "default": False}
    }


def test_control_characters_of_a_list_are_shown_as_toml_spells_them(sessgit: Shell) -> None:
    sessgit.out("config", "record.exclude", '["/a\\u001b[31m\\u009b"]')
    assert sessgit.out("config", "record.exclude") == '["/a\\u001b[31m\\U0000009B"]\n'


def test_comments_in_a_list_stay(sessgit: Shell) -> None:
    path = sessgit.store / "config.toml"
    path.write_text('[record]\nexclude = [\n    "/a", # of mine\n    "/b",\n]\n')
    assert sessgit.out("config", "record.exclude", '["/a", "/c"]') == ""
    assert "# of mine" in path.read_text()
    assert sessgit.out("config", "record.exclude") == '["/a", "/c"]\n'
    assert sessgit.out("config", "record.exclude", '["/c", "/a"]') == ""
    assert sessgit.out("config", "record.exclude") == '["/c", "/a"]\n'


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("~/private", 'record.exclude: “~/private” is not a list of globs, such as ["~/private/*"]'),
        ("[1]", "record.exclude: 1 is not a glob of paths: start it with /, ~/ or *"),
        ('["private"]', "record.exclude: “private” is not a glob of paths: start it with /, ~/ or *"),
        ('["~ada/x"]', "record.exclude: “~ada/x” is not a glob of paths: start it with /, ~/ or *"),
        ('[""]', "record.exclude: “” is not a glob of paths: start it with /, ~/ or *"),
    ],
)
def test_lists_that_mean_nothing(sessgit: Shell, value: str, wrong: str) -> None:
    done = sessgit("config", "record.exclude", value)
    assert (done.code, done.err) == (
        2,
        f"Error: {sessgit.store}/config.toml: {wrong}.\n"
        "Hint: Nothing was changed. `sessgit config` lists keys and values.\n",
    )
    assert sessgit.out("config", "record.exclude") == "[]\n"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("5", "prices.claude-x: a table is needed, such as {input = 5, output = 25} for a price"),
        ("{input = 5}", "prices.claude-x.output: a value is needed"),
    ],
)
def test_prices_that_mean_nothing(sessgit: Shell, value: str, wrong: str) -> None:
    said = sessgit("config", "prices.claude-x", value).err
    assert said.splitlines()[0] == f"Error: {sessgit.store}/config.toml: {wrong}."


def test_a_file_that_is_no_toml(sessgit: Shell) -> None:
    (sessgit.store / "config.toml").write_text("record = [")
    for arguments in (("record.fsync", "false"), ("--unset", "record.fsync"), ()):
        done = sessgit("config", *arguments)
        assert (done.code, done.err.splitlines()[1]) == (
            1,
            "Hint: Correct the file, or delete it: all settings have defaults.",
        )
    assert (sessgit.store / "config.toml").read_text() == "record = ["


_VALUES = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.sampled_from(["/a", "~/b", "c", 1])),
    st.sampled_from(["turn", "cell"]), st.none(),
)  # fmt: skip
_RECORD = st.dictionaries(
    st.sampled_from(["granularity", "redact", "fsync", "exclude", "include", "x"]), _VALUES, max_size=3
)
_PRICES = st.dictionaries(
    st.sampled_from(["m", "n"]),
    st.dictionaries(st.sampled_from(["input", "output", "cache_read", "cache_write", "x"]), _VALUES, min_size=3),
    max_size=2,
)


_SPANS = st.sampled_from(["", "90d", "12w", "48h", "0d", "90", "-1d", "1 d", "٣d", "1000000d", 90, None, []])
_ARCHIVE = st.dictionaries(st.sampled_from(["after", "x"]), _SPANS, max_size=2)
_UNDO = st.dictionaries(st.sampled_from(["keep", "x"]), _SPANS, max_size=2)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "record": _RECORD | _VALUES, "archive": _ARCHIVE | _VALUES, "undo": _UNDO, "prices": _PRICES, "x": _VALUES,
        },
    )
)  # fmt: skip
def test_a_document_is_read_as_it_is_or_refused(document: dict[str, Any]) -> None:
    try:
        config = parse_config(document, "x")
    except SessgitError as error:
        assert str(error).startswith("x: ")
        assert document
        return
    for name, table in document.items():
        for key, value in table.items():
            if name == "prices":
                assert asdict(config.prices[key]) == value
            else:
                assert getattr(getattr(config, name), key) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_a_price_is_a_number(sessgit: Shell, number: str) -> None:
    price = f"{{input = {number}, output = 1, cache_read = 0, cache_write = 0}}"
    assert sessgit("config", "prices.m", price).code == 2
    assert not any(key.startswith("prices") for key in sessgit.json("config")["settings"])


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"record": {"granularity": "cell", "redact": False, "fsync": True, "exclude": ["~/a", "/b/*"], "include": []}},
        {"archive": {"after": "90d"}, "undo": {"keep": ""}},
        {"prices": {"m": {"input": 1, "output": 2.5, "cache_read": 0, "cache_write": 0}}},
    ],
)
def test_what_is_right_is_read(document: dict[str, Any]) -> None:
    assert set(document) <= set(asdict(parse_config(document, "x")))


@pytest.mark.parametrize("span", ["90", "0d", "three days", "-1d", "1.5d", "1m"])
def test_a_span_is_a_number_of_hours_days_or_weeks(sessgit: Shell, span: str) -> None:
    done = sessgit("config", "archive.after", f'"{span}"')
    hint = "Use `sessgit config archive.after 90d`." if span == "90" else KEYS
    assert (done.code, done.err) == (
        2,
        f"Error: {sessgit.store}/config.toml: archive.after: “{span}” is not a time span: use a number and a unit, "
        "such as 30d, 12w or 48h.\n"
        f"Hint: Nothing was changed. {hint}\n",
    )
    assert sessgit("config", "undo.keep", "12w").code == 0
    assert sessgit.out("config", "undo.keep") == "12w\n"


def test_before_there_is_a_store(sessgit: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are replaced as they are recorded, so what is to be kept as it is must be said before."""
    store = tmp_path / "new" / "store"
    monkeypatch.setenv("SESSGIT_STORE", str(store))
    assert sessgit.out("config", "record.redact") == "true\n"
    for words in (("no.such", "1"), ("record.redact", "perhaps"), ("--unset", "no.such")):
        assert sessgit("config", *words).code == 2
    assert not store.parent.exists()
    done = sessgit("config", "record.redact", "false")
    assert (done.code, done.out, done.err) == (
        0,
        "",
        "From now on secrets are stored unredacted (undo: sessgit config --unset record.redact).\n",
    )
    sessgit.recorded(sessgit.talk().turns(f"the key is {SECRET}"))
    assert SECRET in sessgit.out("show", f"{SESSION}@1")
    assert store.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("key", ["archive.after", "undo.keep"])
@pytest.mark.parametrize(("value", "hint"), [("30", "Use `sessgit config {} 30d`."), ("0", KEYS), ("true", KEYS)])
def test_a_number_without_its_unit(sessgit: Shell, key: str, value: str, hint: str) -> None:
    error, said = sessgit("config", key, value).err.splitlines()
    assert error.endswith(" is not a time span: use a number and a unit, such as 30d, 12w or 48h.")
    assert said == f"Hint: Nothing was changed. {hint.format(key)}"
    assert sessgit.out("config", key, "30d") == ""
    assert sessgit.out("config", key) == "30d\n"
