"""Installing and uninstalling, with a store and a client's folder of their own."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from homes import claude_client

from sessgit import agents
from sessgit.agents import hook_settings
from sessgit.agents.claude.hooks import installed
from sessgit.agents.hook_settings import CELL_EVENTS, HOOK_EVENTS
from sessgit.errors import ConflictError, UsageError
from sessgit.record.install import InstallResult, UninstallResult, install, uninstall


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / ".claude"
    folder.mkdir()
    return folder


@pytest.fixture
def store(config: Path) -> Path:
    return config / "session-store"


def run(store: Path, config: Path, **more: object) -> InstallResult:
    return install(store, claude_client(config), python=sys.executable, **more)  # type: ignore[arg-type]


def document(config: Path) -> dict[str, object]:
    loaded = json.loads((config / "settings.json").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_the_first_time(store: Path, config: Path) -> None:
    assert run(store, config) == InstallResult(
        agent=agents.named("claude"),
        store=store,
        settings=config / "settings.json",
        added=HOOK_EVENTS,
        already_there=(),
        other_stubs=(),
        plugin="",
        refusal="",
        untrusted=(),
        older_conversations=0,
    )
    assert (store / "hook").exists()
    assert document(config) == hook_settings.with_hooks({}, hook_settings.stub_command(store / "hook"), HOOK_EVENTS)
    assert (store / "spool").is_dir()
    assert os.access(store / "hook", os.X_OK)


def test_again(store: Path, config: Path) -> None:
    run(store, config)
    before = {path: path.stat().st_mtime_ns for path in (config / "settings.json", store / "hook")}
    result = run(store, config)
    assert (result.added, result.already_there) == ((), HOOK_EVENTS)
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_an_entry_of_an_older_version_is_replaced(store: Path, config: Path) -> None:
    run(store, config)
    new = (config / "settings.json").read_text()
    older = new.replace(" || cat >/dev/null; exit 0", "; exit 0")
    assert older.count("; exit 0") == len(HOOK_EVENTS) and "cat" not in older
    (config / "settings.json").write_text(older)
    assert run(store, config).already_there == HOOK_EVENTS
    assert (config / "settings.json").read_text() == new
    (config / "settings.json").write_text(older)
    assert uninstall(store, claude_client(config)).removed == HOOK_EVENTS
    assert not (config / "settings.json").exists()


def test_the_granularity_can_change(store: Path, config: Path) -> None:
    run(store, config)
    assert run(store, config, granularity="cell").added == ("PostToolUse",)
    assert installed(document(config)).events == set(CELL_EVENTS)
    assert run(store, config).already_there == HOOK_EVENTS
    assert installed(document(config)).events == set(HOOK_EVENTS)
    with pytest.raises(UsageError):
        run(store, config, granularity="line")


def test_another_store_takes_over(store: Path, config: Path, tmp_path: Path) -> None:
    run(store, config)
    result = run(tmp_path / "other", config)
    assert (result.added, result.other_stubs) == ((), (store / "hook",))
    assert installed(document(config)).stubs == {str(tmp_path / "other" / "hook")}


def test_what_a_person_should_know(store: Path, config: Path) -> None:
    told = {"disableAllHooks": True, "enabledPlugins": {"sessgit@home": True}}
    (config / "settings.json").write_text(json.dumps(told))
    for name in ("a/one.jsonl", "a/two.jsonl", "b/two.jsonl", "b/agent-3.jsonl", "b/four.txt", "b/four/agent-5.jsonl"):
        (config / "projects" / name).parent.mkdir(parents=True, exist_ok=True)
        (config / "projects" / name).write_text('{"type":"user","message":{"role":"user"}}\n')
    result = run(store, config, known={"one", "seven"})
    refusal = "the client's settings disable all hooks (disableAllHooks)"
    assert (result.refusal, result.plugin, result.older_conversations) == (refusal, "sessgit@home", 1)
    assert document(config) == told  # the plugin runs the hooks
    assert uninstall(store, claude_client(config)).plugin == "sessgit@home"
    assert document(config) == told | {"enabledPlugins": {"sessgit@home": False}}


def test_uninstalling_leaves_the_store_and_nothing_else(store: Path, config: Path) -> None:
    run(store, config)
    (store / "spool" / "1-0.json").write_text("{}")
    assert uninstall(store, claude_client(config)) == UninstallResult(
        agent=agents.named("claude"),
        store=store,
        settings=config / "settings.json",
        removed=HOOK_EVENTS,
        plugin="",
        status_line=False,
    )
    assert [path.name for path in config.iterdir()] == ["session-store"]
    assert not (store / "hook").exists()
    assert [path.name for path in (store / "spool").iterdir()] == ["1-0.json"]
    again = uninstall(store, claude_client(config))
    assert again.removed == ()


def test_uninstalling_gives_the_settings_back_byte_for_byte(store: Path, config: Path) -> None:
    before = '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}'
    (config / "settings.json").write_text(before)
    run(store, config, granularity="cell")
    shutil.rmtree(store)
    assert uninstall(store, claude_client(config)).removed[0] == "Stop"
    assert (config / "settings.json").read_text() == before


def test_uninstalling_keeps_what_a_person_has_laid_out(store: Path, config: Path) -> None:
    path = config / "settings.json"
    command = json.dumps(hook_settings.stub_command(store / "hook"))
    groups = ", ".join(
        f'"{event}": [{{"hooks": [{{"type": "command", "command": {command}, "timeout": 5}}]}}]'
        for event in HOOK_EVENTS
    )
    head = '{ "permissions": { "allow": ["Bash(ls:*)",   "Read"], "deny": [] },\n'
    own = '"Notification": [{"matcher": "", "hooks": [{"type": "command", "command": "say done"}]}]'
    before = f'{head}  "hooks": {{ {own}, {groups} }},\n\n  "model": "opus" }}'
    path.write_text(before)
    assert run(store, config).added == ()
    assert path.read_text() == before
    assert uninstall(store, claude_client(config)).removed == HOOK_EVENTS
    assert path.read_text() == f'{head}  "hooks": {{ {own} }},\n\n  "model": "opus" }}'


def test_settings_that_cannot_be_edited_are_named(store: Path, config: Path) -> None:
    path = config / "settings.json"
    for content in ('{"hooks": []}', "{ // x\n}"):
        path.write_text(content)
        with pytest.raises(ConflictError, match=r"settings\.json"):
            run(store, config)
        assert path.read_text() == content


def disturbed(monkeypatch: pytest.MonkeyPatch, path: Path, times: int) -> None:
    """Another program changes the file just before it is replaced, so many times."""
    real: Callable[..., bool] = hook_settings.replace
    left = iter(range(times))

    def replace(snapshot: hook_settings.Snapshot, new: dict[str, object], **more: bool) -> bool:
        if (number := next(left, None)) is not None:
            path.write_text(json.dumps({"theirs": number}))
        return real(snapshot, new, **more)

    monkeypatch.setattr(hook_settings, "replace", replace)


def test_a_change_in_between_is_kept(store: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, config / "settings.json", 2)
    assert run(store, config).added == HOOK_EVENTS
    assert document(config)["theirs"] == 1
    assert installed(document(config)).events == set(HOOK_EVENTS)


def test_changes_without_end_are_told(store: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, config / "settings.json", 9)
    with pytest.raises(ConflictError, match=r"settings\.json"):
        run(store, config)
    assert document(config) == {"theirs": 2}
