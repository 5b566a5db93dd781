"""The hooks in the client's settings file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessgit import __version__
from sessgit.agents import hook_settings
from sessgit.agents.claude.hooks import PLUGIN, installed, refusal
from sessgit.agents.hook_settings import CELL_EVENTS, HOOK_EVENTS, stub_command, with_hooks, without_hooks
from sessgit.errors import ConflictError, SessgitError, StoreError, UsageError

COMMAND = "[ -r /s/hook ] && sh /s/hook || cat >/dev/null; exit 0"
OLDER = "[ -r /s/hook ] && sh /s/hook; exit 0"
OURS = {"type": "command", "command": COMMAND, "timeout": 5}
OURS_AT_END = {"type": "command", "command": COMMAND}
FOREIGN = {"type": "command", "command": "say done", "timeout": 90, "x": 1}
HOOKS_FILE = Path(__file__).parents[1] / "hooks" / "hooks.json"

WHOLE = {
    "SessionStart": [{"hooks": [OURS]}],
    "UserPromptSubmit": [{"hooks": [OURS]}],
    "Stop": [{"hooks": [OURS]}],
    "SubagentStop": [{"hooks": [OURS]}],
    "PreCompact": [{"hooks": [OURS]}],
    "SessionEnd": [{"hooks": [OURS_AT_END]}],
}


def ordered(document: object) -> str:
    """Equal only if the order of the keys is."""
    return json.dumps(document)


# The command


@pytest.mark.parametrize("path", ["/s/hook", "/a b/hook", "/it's/hook", '/"$(id)`/hook', "/ä\n&& sh/hook", "/hook"])
def test_a_command_names_its_stub(path: str) -> None:
    assert hook_settings.stub_of({"command": stub_command(Path(path))}) == path


def test_the_command_is_the_one_of_the_contract() -> None:
    assert stub_command(Path("/s/hook")) == COMMAND
    assert stub_command(Path("/it's/hook")) == (
        """[ -r '/it'"'"'s/hook' ] && sh '/it'"'"'s/hook' || cat >/dev/null; exit 0"""
    )
    assert hook_settings.stub_of({"command": OLDER}) == "/s/hook"
    with pytest.raises(UsageError):
        stub_command(Path("s/hook"))


@pytest.mark.parametrize(
    "command",
    [
        None,
        7,
        "",
        "sh /s/hook",
        "[ -r /s/hook ] && sh /s/other; exit 0",
        "[ -r /s/hook ] && sh /s/hook; exit 0; rm x",
        "[ -r /s/hook ] && sh /s/hook || rm x; exit 0",
        "[ -r /s/my-hook ] && sh /s/my-hook; exit 0",
        "[ -r s/hook ] && sh s/hook; exit 0",
        "[ -r /a /s/hook ] && sh /a /s/hook; exit 0",
        "[ -r '/s/hook ] && sh '/s/hook; exit 0",
    ],
)
def test_other_commands_are_not_ours(command: object) -> None:
    assert hook_settings.stub_of({"command": command}) is None


# Documents


def test_hooks_for_empty_settings() -> None:
    assert ordered(with_hooks({}, COMMAND, HOOK_EVENTS)) == ordered({"hooks": WHOLE})
    assert ordered(with_hooks({}, COMMAND, CELL_EVENTS)) == ordered(
        {"hooks": {**WHOLE, "PostToolUse": [{"hooks": [OURS]}]}}
    )
    assert tuple(WHOLE) == HOOK_EVENTS


def test_what_is_not_ours_stays_where_it_is() -> None:
    before = {
        "model": "opus",
        "hooks": {
            "Notification": [{"matcher": "", "hooks": [FOREIGN]}],
            "Stop": [{"hooks": [FOREIGN]}, "odd", {"hooks": "odd"}, {"hooks": []}],
            "NoSuchEvent": [],
        },
        "future": {"b": [1, None], "a": 1.5},
    }
    kept = json.loads(json.dumps(before))
    after = with_hooks(before, COMMAND, ("Stop", "SessionEnd"))
    assert ordered(after) == ordered(
        {
            "model": "opus",
            "hooks": {
                "Notification": [{"matcher": "", "hooks": [FOREIGN]}],
                "Stop": [{"hooks": [FOREIGN]}, "odd", {"hooks": "odd"}, {"hooks": []}, {"hooks": [OURS]}],
                "NoSuchEvent": [],
                "SessionEnd": [{"hooks": [OURS_AT_END]}],
            },
            "future": {"b": [1, None], "a": 1.5},
        }
    )
    assert before == kept
    assert ordered(without_hooks(after)) == ordered(before)


def test_an_entry_that_is_there_is_turned_to_the_new_stub_in_its_place() -> None:
    old = {"type": "command", "command": stub_command(Path("/old/hook")), "timeout": 60}
    before = {
        "hooks": {
            "PostToolUse": [{"matcher": "Bash", "hooks": [old]}],
            "Stop": [{"hooks": [old, FOREIGN]}, {"hooks": [OURS]}, {"hooks": [OURS, FOREIGN]}],
        }
    }
    assert ordered(with_hooks(before, COMMAND, ("Stop",))) == ordered(
        {"hooks": {"Stop": [{"hooks": [{**old, "command": COMMAND}, FOREIGN]}, {"hooks": [FOREIGN]}]}}
    )


def test_only_what_was_emptied_goes() -> None:
    assert without_hooks({"hooks": WHOLE, "a": 1}) == {"a": 1}
    assert without_hooks({"hooks": {}}) == {"hooks": {}}
    assert without_hooks({"hooks": {"Stop": [], "PreCompact": [{"hooks": [OURS]}]}}) == {"hooks": {"Stop": []}}
    assert without_hooks({"hooks": {"Stop": [{"matcher": "", "hooks": [FOREIGN, OURS]}]}}) == {
        "hooks": {"Stop": [{"matcher": "", "hooks": [FOREIGN]}]}
    }


@pytest.mark.parametrize("odd", [None, [], "x", {"Stop": {"hooks": [OURS]}}, {"Stop": None}])
def test_odd_hooks_are_neither_edited_nor_removed(odd: object) -> None:
    with pytest.raises(ConflictError):
        with_hooks({"hooks": odd}, COMMAND, HOOK_EVENTS)
    assert without_hooks({"hooks": odd}) == {"hooks": odd}
    assert installed({"hooks": odd}).entries == ()


def test_what_is_installed() -> None:
    old = {"type": "command", "command": stub_command(Path("/old/hook"))}
    found = installed(
        {
            "hooks": {"Stop": [{"hooks": [OURS, FOREIGN, old]}], "PreCompact": [{"hooks": [OURS]}]},
            "enabledPlugins": {"sessgit-extras@x": True, "sessgit@away": False, "sessgit@home": True},
        }
    )
    assert found.entries == (("Stop", "/s/hook"), ("Stop", "/old/hook"), ("PreCompact", "/s/hook"))
    assert found.events == {"Stop", "PreCompact"}
    assert found.stubs == {"/s/hook", "/old/hook"}
    assert refusal({"disableAllHooks": True}, Path("/")) == "the client's settings disable all hooks (disableAllHooks)"
    assert found.plugin == "sessgit@home"


@pytest.mark.parametrize("plugins", [None, {}, ["sessgit"], {"sessgit@a": False}])
def test_nothing_is_installed(plugins: object) -> None:
    found = installed({"enabledPlugins": plugins})
    assert (found.entries, found.plugin, refusal({"disableAllHooks": "yes"}, Path("/"))) == ((), "", "")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
foreign_hooks = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
groups = st.fixed_dictionaries(
    {"hooks": st.lists(foreign_hooks | values, max_size=3) | values}, optional={"matcher": st.text(max_size=3)}
)
# Empty lists and objects are what a removal cannot tell from ones that it emptied.
hooks = st.dictionaries(
    st.sampled_from([*CELL_EVENTS, "Notification", "x"]), st.lists(groups | values, min_size=1, max_size=3), min_size=1
)
documents = st.builds(
    lambda rest, ours: rest | ours,
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), values, max_size=4),
    st.fixed_dictionaries({}, optional={"hooks": hooks}),
)


@given(documents, st.sampled_from([HOOK_EVENTS, CELL_EVENTS, ("Stop",)]))
def test_taking_the_hooks_out_again_gives_what_was(document: dict[str, Any], events: tuple[str, ...]) -> None:
    once = with_hooks(document, COMMAND, events)
    assert installed(once).entries == tuple((event, "/s/hook") for event in once["hooks"] if event in events)
    assert ordered(with_hooks(once, COMMAND, events)) == ordered(once)
    assert ordered(without_hooks(once)) == ordered(document)
    assert ordered(without_hooks(document)) == ordered(document)


# The text


def laid_out(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any, newline: str) -> str:
    """A JSON text of the value with blanks wherever JSON takes them."""
    blank = lambda: draw(st.sampled_from(["", " ", "  ", "\t", newline, f"{newline}   "]))  # noqa: E731
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}{blank()}:{blank()}{laid_out(draw, one, newline)}" for key, one in value.items()]
    elif isinstance(value, list):
        parts = [laid_out(draw, one, newline) for one in value]
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    inner = ",".join(f"{blank()}{part}{blank()}" for part in parts) or blank()
    return f"{{{inner}}}" if isinstance(value, dict) else f"[{inner}]"


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    document = draw(documents)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return laid_out(draw, document, newline) + draw(st.sampled_from(["", newline])), document


@given(texts(), st.sampled_from([HOOK_EVENTS, CELL_EVENTS, ("Stop",)]))
def test_a_text_is_the_same_again_once_the_hooks_are_out(
    laid: tuple[str, dict[str, Any]], events: tuple[str, ...]
) -> None:
    text, document = laid
    once = with_hooks(document, COMMAND, events)
    there = hook_settings.edited_json(text, document, once)
    assert ordered(json.loads(there)) == ordered(once)
    back = hook_settings.edited_json(there, once, without_hooks(once))
    assert ordered(json.loads(back)) == ordered(document)
    if document:
        assert back == text


@given(texts(), st.data())
def test_hooks_that_a_person_laid_out_go_and_nothing_else(
    laid: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    """Every other member stands in the text as it stood."""
    document = with_hooks(laid[1], COMMAND, HOOK_EVENTS)
    text = laid_out(data.draw, document, "\n")
    left = without_hooks(document)
    after = hook_settings.edited_json(text, document, left)
    assert ordered(json.loads(after)) == ordered(left)
    assert len(after) < len(text)
    at = 0
    for char in after:  # nothing is new in it
        at = text.index(char, at) + 1


@given(values, values, st.data())
def test_any_change_of_a_text(before: Any, after: Any, data: st.DataObject) -> None:
    text = laid_out(data.draw, before, "\n")
    try:
        found = hook_settings.edited_json(text, before, after)
    except ValueError:  # keys have changed places
        assert isinstance(before, dict | list) and isinstance(after, dict | list)
        return
    assert ordered(json.loads(found)) == ordered(after)


# The file


def change(path: Path, document: dict[str, Any]) -> bool:
    return hook_settings.replace(hook_settings.read(path), document)


def test_a_file_that_is_not_there_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    assert hook_settings.read(path).document == {}
    assert change(path, {"ä": [1]})
    assert path.read_bytes() == '{\n  "ä": [\n    1\n  ]\n}\n'.encode()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{\n  "a": "\xc3\xa9"\n}\n', b'{\n  "a": "\xc3\xa9",\n  "b": []\n}\n'),
        (b'{\n  "a": 1\n}', b'{\n  "a": 1,\n  "b": []\n}'),
        (b'{"a": 1}', b'{"a": 1, "b": []}'),
        (b'{"a":1}', b'{"a":1, "b": []}'),
        (b'{ "a": {"x": [1, 2]},\n  "c" : 1 }\n', b'{ "a": {"x": [1, 2]},\n  "c" : 1, "b": [] }\n'),
        (b'{\n    "a": 1\n}\n', b'{\n    "a": 1,\n    "b": []\n}\n'),
        (b'{\n\t"a": 1\n}\n', b'{\n\t"a": 1,\n\t"b": []\n}\n'),
        (b'\xef\xbb\xbf{\r\n  "a": "\\r\\n"\r\n}\r\n', b'\xef\xbb\xbf{\r\n  "a": "\\r\\n",\r\n  "b": []\r\n}\r\n'),
        (b'{\n  "a": "\\ud83d"\n}\n', b'{\n  "a": "\\ud83d",\n  "b": []\n}\n'),
        (b"", b'{\n  "b": []\n}\n'),
        (b" \n", b'{\n  "b": []\n}\n'),
    ],
)
def test_the_layout_of_a_file_is_kept(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(before)
    assert change(path, hook_settings.read(path).document | {"b": []})
    assert path.read_bytes() == after


def test_equal_settings_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"b":1,   "a":2}')
    inode = path.stat().st_ino
    assert not change(path, {"a": 2, "b": 1})
    assert (path.read_text(), path.stat().st_ino) == ('{"b":1,   "a":2}', inode)


def test_mode_and_symlink_are_kept(tmp_path: Path) -> None:
    (tmp_path / "dot").mkdir()
    real = tmp_path / "dot" / "claude.json"
    real.write_text("{}\n")
    real.chmod(0o640)
    path = tmp_path / "settings.json"
    path.symlink_to("dot/claude.json")
    assert change(path, {"a": 1})
    assert path.is_symlink()
    assert real.read_text() == '{\n  "a": 1\n}\n'
    assert real.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in real.parent.iterdir()] == ["claude.json"]


def test_a_symlink_to_nothing_gets_its_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.symlink_to("dot/claude.json")
    assert change(path, {"a": 1})
    assert (tmp_path / "dot" / "claude.json").read_text() == '{\n  "a": 1\n}\n'


def test_the_owner_is_kept(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root gives files away")
    path = tmp_path / "settings.json"
    path.write_text("{}")
    os.chown(path, 1234, 1234)
    assert change(path, {"a": 1})
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1234)


@pytest.mark.parametrize("later", [b'{"a": 1}', b"", None], ids=["changed", "emptied", "removed"])
@pytest.mark.parametrize("keep_empty", [True, False])
def test_whoever_wrote_in_between_wins(tmp_path: Path, later: bytes | None, keep_empty: bool) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": 0}')
    snapshot = hook_settings.read(path)
    path.unlink()
    if later is not None:
        path.write_bytes(later)
    with pytest.raises(ConflictError, match=r"just changed .*settings\.json$|settings\.json was just removed"):
        hook_settings.replace(snapshot, {}, keep_empty=keep_empty)
    assert (path.read_bytes() if path.exists() else None) == later
    assert len(list(tmp_path.iterdir())) == (later is not None)


def test_a_file_that_came_in_between_wins(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    snapshot = hook_settings.read(path)
    path.write_text("{}")
    with pytest.raises(ConflictError):
        hook_settings.replace(snapshot, {"a": 1})
    assert path.read_text() == "{}"


def test_a_file_that_would_be_empty_is_removed_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"a": 0}')
    assert hook_settings.replace(hook_settings.read(path), {}, keep_empty=False)
    assert not path.exists()
    real = tmp_path / "dot.json"
    real.write_text('{"a": 0}')
    path.symlink_to(real)
    assert hook_settings.replace(hook_settings.read(path), {}, keep_empty=False)
    assert real.read_text() == "{}"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b'{"a": 1,}',
        b'{\n  // why\n  "a": 1\n}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\xff"}',
        b'{"a":' * 100_000,
    ],
)
def test_what_cannot_be_written_back_unharmed_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    with pytest.raises(ConflictError) as caught:
        hook_settings.read(path)
    assert str(path) in str(caught.value)
    assert "by hand" in caught.value.hint
    assert path.read_bytes() == content


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.mkdir()
    with pytest.raises(ConflictError):
        hook_settings.read(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ConflictError):
        hook_settings.read(path)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(SessgitError, match="cannot read"):
        hook_settings.read(path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "settings.json"
    with pytest.raises(StoreError, match=r"cannot write .*settings\.json"):
        change(path, {"a": 1})


# The plugin


def test_the_plugin_runs_its_script_on_the_same_events() -> None:
    script = '"${CLAUDE_PLUGIN_ROOT}/event"'
    command = f"[ -r {script} ] && sh {script} || cat >/dev/null; exit 0"
    text = HOOKS_FILE.read_text()
    plugin = json.loads(text.replace('event\\" $PPID ||', 'event\\" ||').replace('event\\" prompt ||', 'event\\" ||'))
    expected = json.loads(json.dumps(WHOLE).replace(json.dumps(COMMAND), json.dumps(command)))
    assert ordered(plugin["hooks"]) == ordered(expected)
    assert text.count("$PPID") == text.count('event\\" prompt') == 1
    manifest = json.loads((HOOKS_FILE.parent / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["name"] == PLUGIN
    assert manifest["version"] == __version__
    assert (HOOKS_FILE.parent / manifest["hooks"]).samefile(HOOKS_FILE)
    root = HOOKS_FILE.parents[1]
    (listed,) = json.loads((root / ".claude-plugin" / "marketplace.json").read_text())["plugins"]
    assert listed["name"] == manifest["name"]
    assert (root / listed["source"]).samefile(HOOKS_FILE.parent)
