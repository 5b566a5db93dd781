"""Codex's hooks: installed beside its settings, trusted in its configuration, and recorded by the same stub."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import tomllib
from pathlib import Path

import pytest
from rollouts import THREAD, Rollout
from shell import Shell

from sessgit import agents
from sessgit.agents import hook_settings
from sessgit.agents.codex import hooks
from sessgit.recorder.drain import wait_for_answer

CONFIG = """\
# mine
model = "gpt-5.1-codex"   # the small one

[features]
web_search = true

[hooks.state."/other/hooks.json:stop:0:0"]
trusted_hash = "sha256:0000"
"""
UNTRUSTED = "you have not trusted the hooks in Codex"
MINE = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}, "x": 1}


@pytest.fixture
def codex(sessgit: Shell) -> Path:
    folder = sessgit.home / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text(CONFIG)
    return folder


def test_the_hash_of_a_hook_is_the_clients(tmp_path: Path) -> None:
    """The hashes are those that `hooks/list` of version 0.169.0 answered."""
    entry = {"type": "command", "command": hook_settings.stub_command(Path("/s/hook"))}
    settings = {
        "hooks": {"UserPromptSubmit": [{"hooks": [{**entry, "timeout": 5}]}], "SessionEnd": [{"hooks": [entry]}]}
    }
    hashes = {
        "user_prompt_submit": "57c421a9233ba5f98701781fddd9d2f1362a64ea4f4352ed413c0421659c343a",
        "session_end": "4213f3743c362ffcf01132c9ea31ab78a2e8eb690fd107fe8131986e745f663a",
    }
    assert hooks.untrusted(settings, tmp_path) == ("UserPromptSubmit", "SessionEnd")
    state = (
        f'[hooks.state."{tmp_path}/hooks.json:{event}:0:0"]\ntrusted_hash = "sha256:{digest}"\n'
        for event, digest in hashes.items()
    )
    (tmp_path / "config.toml").write_text("".join(state))
    assert hooks.untrusted(settings, tmp_path) == ()


def test_every_client_on_the_machine_gets_hooks(sessgit: Shell, codex: Path) -> None:
    sessgit.config.mkdir()
    assert sessgit.out("install").splitlines() == [
        f"Codex is not recorded yet: {UNTRUSTED} (6 hooks in ~/.codex/hooks.json).",
        "To trust them: sessgit install --agent codex --trust",
        "Recording is on: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)",
        "Prompts, answers and tool output go to ~/.claude/session-store.",
        "Only you can read it. It is not encrypted; common secrets are redacted.",
        "To exclude a project: sessgit off",
        "Restart Codex where it is running.",
        "If Claude Code is running: 2.1 is recorded from its next prompt, 2.0 after a restart.",
    ]
    assert (codex / "config.toml").read_text() == CONFIG
    reason = f"Codex is not recorded: {UNTRUSTED}: sessgit install --agent codex --trust"
    assert sessgit.json("status")["recording"] == {"on": True, "reason": reason, "plugin": None}
    assert f"Codex is not recorded: {UNTRUSTED}" in " ".join(sessgit("doctor").out.split())


def test_trusted_hooks(sessgit: Shell, codex: Path) -> None:
    assert sessgit.out("install", "--agent", "codex", "--trust").splitlines()[0] == (
        "Recording is on: 6 hooks in ~/.codex/hooks.json (undo: sessgit uninstall)"
    )
    text = (codex / "config.toml").read_text()
    assert text.startswith(CONFIG) and text.count("trusted_hash") == 7
    assert sessgit.json("status")["recording"] == {"on": True, "reason": None, "plugin": None}
    again = sessgit.json("install", "--agent", "codex")
    assert (again["clients"][0]["untrusted"], again["clients"][0]["already_there"]) == (
        [],
        list(hook_settings.HOOK_EVENTS),
    )
    assert (codex / "config.toml").read_text() == text
    assert not sessgit.config.joinpath("settings.json").exists()


def test_uninstalling_leaves_codexs_files_as_they_were(sessgit: Shell, codex: Path) -> None:
    mine = json.dumps(MINE, indent=4)
    (codex / "hooks.json").write_text(mine)
    sessgit.out("install", "--agent", "codex", "--trust")
    document = json.loads((codex / "hooks.json").read_text())
    assert document["hooks"]["Stop"][0] == MINE["hooks"]["Stop"][0]  # type: ignore[index]
    assert ":stop:1:0" in (codex / "config.toml").read_text()  # the place after theirs
    assert sessgit.json("uninstall")["clients"][0]["removed"] == [
        "Stop",
        *(each for each in hook_settings.HOOK_EVENTS if each != "Stop"),
    ]
    assert (codex / "hooks.json").read_text() == mine
    assert (codex / "config.toml").read_text() == CONFIG


def test_a_file_that_was_not_there_goes_again(sessgit: Shell, codex: Path) -> None:
    (codex / "config.toml").unlink()
    sessgit.out("install", "--agent", "codex", "--trust")
    assert "trusted_hash" in (codex / "config.toml").read_text()
    sessgit.out("uninstall")
    assert list(codex.iterdir()) == []


def test_doctor_does_not_offer_to_trust(sessgit: Shell, codex: Path) -> None:
    sessgit.out("install", "--agent", "codex")
    (found,) = (one for one in json.loads(sessgit("doctor", "--json").out)["findings"] if one["kind"] == "hooks")
    assert (found["severity"], found["fixable"], found["hint"]) == (
        "wrong", False, "sessgit install --agent codex --trust",
    )  # fmt: skip


def test_a_changed_hook_is_not_trusted(sessgit: Shell, codex: Path) -> None:
    sessgit.out("install", "--agent", "codex", "--trust")
    text = (codex / "hooks.json").read_text()
    (codex / "hooks.json").write_text(text.replace('"timeout": 5', '"timeout": 6', 1))
    assert sessgit.json("install", "--agent", "codex")["clients"][0]["untrusted"] == ["SessionStart"]


def test_hooks_that_are_turned_off(sessgit: Shell, codex: Path) -> None:
    (codex / "config.toml").write_text("[features]\nhooks = false\n")
    assert "turns all hooks off ([features]) (6 hooks in ~/.codex/hooks.json)." in sessgit.out(
        "install", "--agent", "codex", "--trust"
    )


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that has hooks only as a feature."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'codex_hooks                      under development  false'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


FLAG = "codex_hooks = true # added by sessgit"


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize(
    ("mine", "flag"),
    [
        (CONFIG, f"web_search = true\n{FLAG}\n"),
        ('model = "x"\n', f"\n[features]\n{FLAG}, with its table\n"),
        ("# mine\n[features] # also\n\n[zzz]\na = 1\n", f"{FLAG}\n"),
        ("features.web = true # mine\n\n[zzz]\na = 1\n", f"features.{FLAG}\n"),
        ("[features]\ncodex_hooks = true  # mine\n", "codex_hooks = true  # mine\n"),
        ("[features]\ncodex_hooks = false\n", "codex_hooks = false\n"),
        ("[features]\r\nweb = true\r\n", FLAG),
        ('model = "x"', f"\n[features]\n{FLAG}, with its table"),
    ],
)
def test_an_older_version_gets_its_feature_flag(sessgit: Shell, codex: Path, mine: str, flag: str) -> None:
    """And loses it again, if we added it."""
    config = codex / "config.toml"
    config.write_bytes(mine.encode())
    for _ in range(2):
        sessgit.out("install", "--agent", "codex", "--trust")
        assert flag in config.read_bytes().decode()
    sessgit.out("uninstall")
    assert config.read_bytes() == mine.encode()


@pytest.mark.usefixtures("older")
def test_a_file_with_only_our_feature_flag_goes(sessgit: Shell, codex: Path) -> None:
    (codex / "config.toml").unlink()
    sessgit.out("install", "--agent", "codex", "--trust")
    (codex / "config.toml").write_text((codex / "config.toml").read_text() + "\n[mine]\na = 1\n")
    sessgit.out("uninstall")
    assert (codex / "config.toml").read_text().strip() == "[mine]\na = 1"


@pytest.mark.parametrize(
    "odd",
    [
        '# mine\r\nmodel = "x"\r\n\r\n',
        'model = "x"',
        "[tui]\nx = 1\n\n# mine\n   \n\n",
        "",
        'hooks = { state = { "x" = { trusted_hash = "a" } } }  # mine\n',
        "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = 'command'\n\n[zzz]\na = [1, # one\n 2]\n",
        "x = '''\n[hooks.state]\n'''\n[ hooks . state ]\n\t'y' = { trusted_hash='a' }\n",
    ],
)
def test_an_oddly_formatted_configuration_is_edited(sessgit: Shell, codex: Path, odd: str) -> None:
    (codex / "config.toml").write_bytes(odd.encode())
    sessgit.out("install", "--agent", "codex", "--trust")
    trusted = tomllib.loads((codex / "config.toml").read_text())
    assert len([key for key in trusted["hooks"]["state"] if key.startswith(str(codex))]) == len(
        hook_settings.HOOK_EVENTS
    )
    sessgit.out("uninstall")
    assert (codex / "config.toml").read_bytes() == odd.encode()


@pytest.mark.parametrize("odd", ["not = [toml", "hooks = 1\n", 'hooks.state.x.trusted_hash = "a"\nmodel = "x"\n'])
def test_a_configuration_that_cannot_be_edited_stays(sessgit: Shell, codex: Path, odd: str) -> None:
    (codex / "config.toml").write_text(odd)
    done = sessgit("install", "--agent", "codex", "--trust")
    assert done.code == 3 and "config.toml" in done.err
    assert (codex / "config.toml").read_text() == odd


def test_broken_settings_of_one_client_do_not_stop_the_other(sessgit: Shell, codex: Path) -> None:
    """Nor does uninstalling."""
    sessgit.config.mkdir()
    (codex / "hooks.json").write_text("{")
    settings = sessgit.config / "settings.json"
    for command, line, hooked in (
        ("install", "Recording is on: 6 hooks in ~/.claude/settings.json", True),
        ("uninstall", "Recording is off: 6 hooks removed from ~/.claude/settings.json", False),
    ):
        done = sessgit(command)
        assert (done.code, line in done.out) == (3, True), done
        assert f"Error: {codex / 'hooks.json'} is not valid JSON" in done.err.replace("~", str(sessgit.home))
        assert settings.exists() == hooked
    assert (codex / "hooks.json").read_text() == "{"


def test_an_agent_that_does_not_exist(sessgit: Shell) -> None:
    done = sessgit("install", "--agent", "gemini")
    assert (done.code, done.err) == (
        2, "Error: there is no agent “gemini”.\nHint: The agents are claude, codex.\n",
    )  # fmt: skip


@pytest.mark.parametrize("paginated", [False, True], ids=["older", "paginated"])
def test_an_event_is_recorded(sessgit: Shell, codex: Path, *, paginated: bool) -> None:
    """With the command that the client runs, and a payload as it passes it."""
    sessgit.out("install", "--agent", "codex", "--trust")
    path = (
        Rollout(THREAD, cwd=str(sessgit.project), paginated=paginated)
        .turns("write the parser", "and test it")
        .save(codex)
    )
    payload = {
        "session_id": THREAD, "turn_id": "x", "transcript_path": str(path), "cwd": str(sessgit.project),
        "hook_event_name": "Stop", "model": "gpt-5.1-codex", "permission_mode": "never",
        "stop_hook_active": False, "last_assistant_message": "done",
    }  # fmt: skip
    entry = json.loads((codex / "hooks.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    done = subprocess.run(["sh", "-c", entry], input=json.dumps(payload).encode(), capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    refs = sessgit.store / "refs" / "heads" / THREAD
    deadline = time.monotonic() + 30
    while not refs.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert refs.exists()
    assert [turn["prompt"] for turn in sessgit.json("log", THREAD)["turns"]] == ["write the parser", "and test it"]


def test_the_end_of_a_turn_is_waited_for(tmp_path: Path) -> None:
    """The client writes it after its hook has returned."""
    whole = Rollout(THREAD, cwd="/p").turns("one").save(tmp_path).read_bytes()
    *lines, end = whole.splitlines(keepends=True)
    path = tmp_path / "growing.jsonl"
    path.write_bytes(b"".join(lines))
    assert b"task_complete" in end
    writer = threading.Timer(0.1, lambda: path.write_bytes(whole))
    writer.start()
    assert wait_for_answer(agents.named("codex"), path, 0, "done", time.time())
    assert path.read_bytes() == whole
    writer.join()
