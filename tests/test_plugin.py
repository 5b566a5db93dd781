"""The plugin's hooks, and the commands that install, show and end the recording by it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from homes import claude_client
from shell import Shell

from sessgit import __version__
from sessgit.agents.hook_settings import CELL_EVENTS, HOOK_EVENTS
from sessgit.cli import answer, app
from sessgit.record.install import install, prepare, uninstall

HOOKS = Path(__file__).parents[1] / "hooks"
SESSION = "5e551011-0000-4000-8000-000000000001"
EVENT = json.dumps({"session_id": SESSION, "source": "startup"}).encode()
PROGRAM = str(Path(sys.executable).parent)
"""The folder of `sessgit`, if the tests run in the environment where it is installed."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the client's folder, of which a name needs quotes."""
    home = tmp_path / "an 'old' home"
    (home / ".claude").mkdir(parents=True)
    return home


def run(home: Path, event: str = "Stop", **env: str) -> None:
    """Run the plugin's hooks of an event as the client does: they print nothing and succeed."""
    plugin = home / "the plugin"
    if not plugin.exists():
        plugin.symlink_to(HOOKS)
    given = {"PATH": "/usr/bin:/bin", "HOME": str(home), "CLAUDE_PLUGIN_ROOT": str(plugin), **env}
    for group in json.loads((HOOKS / "hooks.json").read_text())["hooks"][event]:
        for hook in group["hooks"]:
            shell = ["/bin/sh", "-c", hook["command"]]
            done = subprocess.run(shell, input=EVENT, capture_output=True, env=given, check=True)
            assert (done.stdout, done.stderr) == (b"", b"")


def submit(home: Path, prompt: str, *, before: str = "") -> str:
    """Return what the plugin's hook of a submitted prompt prints; it prints no error, succeeds, and saves the event."""
    event = json.dumps({"session_id": SESSION, "cwd": str(home), "prompt": prompt}).encode()
    (hook,) = json.loads((HOOKS / "hooks.json").read_text())["hooks"]["UserPromptSubmit"][0]["hooks"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "CLAUDE_PLUGIN_ROOT": str(HOOKS)}
    command = ["/bin/sh", "-c", before + hook["command"]]
    done = subprocess.run(command, input=event, capture_output=True, env=env, check=True)
    (file,) = (home / ".claude" / "session-store" / "spool").glob("*.json")
    assert (file.read_bytes(), done.stderr) == (event, b"")
    file.unlink()
    return done.stdout.decode()


def saved(store: Path) -> int:
    events = list((store / "spool").glob("*.json"))
    assert all(event.read_bytes() == EVENT for event in events)
    return len(events)


@pytest.mark.parametrize("variable", ["SESSGIT_STORE", "CLAUDE_CONFIG_DIR", "HOME"])
def test_it_finds_the_store(home: Path, variable: str) -> None:
    """With each variable that may say where the store is."""
    store = home / ".claude" / "session-store"
    prepare(store, "/bin/true")
    places = {"SESSGIT_STORE": store, "CLAUDE_CONFIG_DIR": home / ".claude", "HOME": home}
    run(home, **{"HOME": "/nowhere", "CLAUDE_PLUGIN_ROOT": str(HOOKS), variable: str(places[variable])})
    run(home, HOME="/nowhere", CLAUDE_PLUGIN_ROOT=str(HOOKS))
    assert saved(store) == 1


def test_it_leaves_recording_to_the_settings(home: Path) -> None:
    config, store = home / ".claude", home / ".claude" / "session-store"
    install(store, claude_client(config), python="/bin/true")
    run(home, "SessionStart")
    run(home)
    assert saved(store) == 0
    uninstall(store, claude_client(config))
    prepare(store, "/bin/true")
    run(home, SESSGIT_OFF="1")
    assert saved(store) == 0
    run(home)
    assert saved(store) == 1


@pytest.fixture
def asked(home: Path) -> Path:
    """A home with a store whose hook starts, in place of the program, a recording of its arguments."""
    store, python = home / ".claude" / "session-store", home / "py"
    python.write_text(
        f'#!/bin/sh\n[ "$3" = sessgit.cli.answer ] || exit 0\necho >>"{home}/asked"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    prepare(store, str(python))
    (store / "spool" / "waiting").mkdir()  # so that no recorder reads the events
    return home


ANSWERED = ["/sessgit:log", "/sessgit:log nowhere -p", "/sessgit:search 'two words'", '/sessgit:search "open']
NOT_ANSWERED = ["/sessgit:show", "/sessgit:logs", "/sessgit:fork --at 1", "what does /sessgit:log do?", "hello", ""]


def test_the_setting_has_two_commands_answered(asked: Path) -> None:
    """And no other prompt; whatever the answer is, the event is saved, once."""
    config = asked / ".claude" / "session-store" / "config.toml"
    config.write_text("[plugin]\nanswer = true\n")
    assert [submit(asked, prompt) for prompt in NOT_ANSWERED] == [""] * len(NOT_ANSWERED)
    for prompt in ANSWERED:
        decision = json.loads(submit(asked, prompt))
        assert (sorted(decision), decision["decision"]) == (["decision", "reason"], "block")
        assert decision["reason"].startswith(("\nError: ", "\nNo "))
    assert submit(asked, "/sessgit:log", before="exec >&-; ") == ""
    config.write_text("[plugin]\nanswer = true\nmistake = 1\n")
    assert submit(asked, "/sessgit:log") == ""


@pytest.mark.parametrize("settings", ["", "[plugin]\n", "[plugin]\nanswer = false\n"])
def test_without_the_setting_nothing_is_answered(asked: Path, settings: str) -> None:
    if settings:
        (asked / ".claude" / "session-store" / "config.toml").write_text(settings)
    assert [submit(asked, prompt) for prompt in ANSWERED + NOT_ANSWERED] == [""] * len(ANSWERED + NOT_ANSWERED)
    assert (asked / "asked").exists() == ("answer" in settings)


def test_the_start_of_a_session_makes_the_store(home: Path) -> None:
    store = home / ".claude" / "session-store"
    run(home, "SessionStart")
    run(home, PATH=f"{PROGRAM}:/usr/bin:/bin")
    assert not store.exists()  # no program, or no start
    run(home, "SessionStart", PATH=f"{PROGRAM}:/usr/bin:/bin", SESSGIT_OFF="1")
    assert not store.exists()
    run(home, "SessionStart", PATH=f"{PROGRAM}:/usr/bin:/bin")
    assert (store / "hook").is_file()
    assert not (home / ".claude" / "settings.json").exists()


@pytest.mark.parametrize("program", ["exit 1", "exec /nowhere/python -m sessgit", "cat; echo words; exit 3"])
def test_a_program_that_is_half_removed_costs_nothing(home: Path, program: str) -> None:
    store, tools = home / ".claude" / "session-store", home / "bin"
    tools.mkdir()
    (tools / "sessgit").write_text(f"#!/bin/sh\n{program}\n")
    (tools / "sessgit").chmod(0o755)
    prepare(store, str(home / "gone" / "python"))
    for event in ("SessionStart", "Stop"):
        run(home, event, PATH=f"{tools}:/usr/bin:/bin")
    assert saved(store) == 0


def test_a_stub_whose_python_is_gone_is_replaced(home: Path) -> None:
    store = home / ".claude" / "session-store"
    prepare(store, str(home / "gone" / "python"))
    before = (store / "hook").read_bytes()
    run(home, "SessionStart", PATH=f"{PROGRAM}:/usr/bin:/bin")
    assert (store / "hook").read_bytes() != before
    current = (store / "hook").stat().st_mtime_ns
    run(home, "SessionStart", PATH=f"{PROGRAM}:/usr/bin:/bin")
    assert (store / "hook").stat().st_mtime_ns == current


def test_commands_of_an_old_client_are_told_their_session(home: Path) -> None:
    """2.0 sources a file before each command; this process is its client, and starts the command."""
    config = home / ".claude"
    run(home, "SessionStart", CLAUDE_CODE_SESSION_ID=SESSION)
    assert not (config / "session-env").exists()  # 2.1 names the session itself
    run(home, "SessionStart")
    file = config / "session-env" / SESSION / "hook-90.sh"
    command = ["/bin/sh", "-c", f'{file.read_text().strip()} && echo "$CLAUDE_CODE_SESSION_ID"']
    for text in (f"{SESSION}\n", "\n"):
        done = subprocess.run(command, env={"HOME": str(home), "PATH": os.defpath}, capture_output=True, check=True)
        assert (done.stdout.decode(), done.stderr) == (text, b"")
        (config / "session-env" / "sessgit" / str(os.getpid())).unlink(missing_ok=True)


def test_session_names_of_clients_that_ended_are_removed(home: Path) -> None:
    names = home / ".claude" / "session-env" / "sessgit"
    names.mkdir(parents=True)
    ended = subprocess.Popen(["true"])
    ended.wait()
    (names / str(ended.pid)).write_text("x\n")
    run(home, "SessionStart")
    assert [path.name for path in names.iterdir()] == [str(os.getpid())]


def files(kind: str) -> list[tuple[str, dict[str, str], str]]:
    """The name, the keys and the text of each command or skill."""
    found = []
    for path in sorted((HOOKS / kind).glob("**/*.md")):
        _, keys, text = path.read_text().split("---\n", 2)
        found.append((path.stem, dict(line.split(": ", 1) for line in keys.splitlines()), text))
    return found


def test_what_the_plugin_adds_to_the_client() -> None:
    commands = {name: keys for name, keys, _ in files("commands")}
    assert list(commands) == ["diff", "fork", "log", "merge", "recall", "search", "show", "tree", "undo"]
    changing = [name for name, keys in commands.items() if keys.get("disable-model-invocation") == "true"]
    assert changing == ["fork", "merge", "undo"]
    for name, keys, text in files("commands"):
        if name != "recall":
            assert keys["allowed-tools"] == f"Bash(sessgit --brief {name}:*)"
            assert f"!`sessgit --brief {name} $ARGUMENTS`\n" in text
    ((_, keys, _),) = files("skills")
    assert list(keys) == ["name", "description"]  # with allowed-tools, clients deny the skill to the model
    used = {word for _, _, text in files("commands") + files("skills") for word in re.findall(r"--brief (\w+)", text)}
    assert used <= set(app.COMMANDS)


def brief(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints with --brief, which never fails."""
    with pytest.raises(SystemExit) as left:
        answer.brief(words)
    said = capsys.readouterr()
    assert (left.value.code, said.err) == (0, "")
    return said.out


def test_brief_output_ends_with_the_command_for_the_rest(sessgit: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    sessgit.recorded(sessgit.talk().turns(*(f"prompt {number}" for number in range(60))))
    everything = sessgit.out("log", "5e55").splitlines()
    assert brief(capsys, "log", "5e55").splitlines() == [
        *everything[:40],
        f"… {len(everything) - 40} more lines: sessgit log 5e55",
    ]
    assert brief(capsys, "log").splitlines()[-1].endswith("more lines: sessgit log 5e551011")
    assert brief(capsys, "log", "@50").splitlines()[-1].endswith("more lines: sessgit log 5e551011@50")
    assert brief(capsys, "show", "5e55@1") == sessgit.out("show", "5e55@1")


def test_brief_output_has_errors_too(sessgit: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    sessgit.recorded(sessgit.talk().turns("one"))
    assert brief(capsys, "search", "zebra") == "Nothing found.\n"
    assert brief(capsys, "log", "nowhere") == (
        "Error: no conversation starts with “nowhere”.\nHint: `sessgit ls --all` lists all conversations.\n"
    )
    assert brief(capsys, "log", "--nothing").startswith("Error: No such option: --nothing")


# The commands


def enable(sessgit: Shell, *, version: str = __version__, market: Path | None = None) -> Path:
    """Enable the plugin as the client does; returns the marketplace's folder."""
    market = market or sessgit.home / "clone"
    manifest = market / "hooks" / ".claude-plugin" / "plugin.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"name": "sessgit", "version": version}))
    (sessgit.config / "plugins").mkdir(parents=True, exist_ok=True)
    known = {"sessgit": {"source": {"source": "directory"}, "installLocation": str(market)}}
    (sessgit.config / "plugins" / "known_marketplaces.json").write_text(json.dumps(known))
    (sessgit.config / "settings.json").write_text(json.dumps({"enabledPlugins": {"sessgit@sessgit": True}}))
    return market


def settings(sessgit: Shell) -> dict[str, object]:
    document = json.loads((sessgit.config / "settings.json").read_text())
    assert isinstance(document, dict)
    return document


def test_install_and_uninstall_with_the_plugin(sessgit: Shell) -> None:
    enable(sessgit)
    assert sessgit.out("status").splitlines()[0] == (
        "Recording   off · the plugin makes the store at the next start: sessgit install"
    )
    assert sessgit.out("install") == (
        "Recording is on: the hooks of the plugin sessgit@sessgit (undo: sessgit uninstall)\n"
        "Prompts, answers and tool output go to ~/.claude/session-store.\n"
        "Only you can read it. It is not encrypted; common secrets are redacted.\n"
        "To exclude a project: sessgit off\n"
    )
    assert settings(sessgit) == {"enabledPlugins": {"sessgit@sessgit": True}}
    assert sessgit.json("status")["recording"] == {"on": True, "reason": None, "plugin": "sessgit@sessgit"}
    assert sessgit.out("status").splitlines()[0] == "Recording   on · by the plugin sessgit@sessgit"
    assert sessgit.out("uninstall") == (
        "Recording is off: the plugin is disabled (undo: claude plugin enable sessgit@sessgit)\n"
        "The store stays in ~/.claude/session-store; delete that folder to remove all recordings.\n"
    )
    assert settings(sessgit) == {"enabledPlugins": {"sessgit@sessgit": False}}
    assert sessgit.json("status")["recording"]["on"] is False
    assert sessgit.json("install")["clients"][0]["added"] == list(HOOK_EVENTS)


def test_with_both_the_settings_record(sessgit: Shell) -> None:
    sessgit.out("install")
    hooks = settings(sessgit)["hooks"]
    enable(sessgit)
    (sessgit.config / "settings.json").write_text(json.dumps(settings(sessgit) | {"hooks": hooks}))
    assert sessgit.out("install").splitlines() == [
        "Recording is on already: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)",
        "The plugin sessgit@sessgit leaves recording to these hooks.",
    ]
    leaves = "the plugin sessgit@sessgit leaves it to the hooks in the settings"
    assert sessgit.json("status")["recording"] == {"on": True, "reason": leaves, "plugin": None}
    assert sessgit.json("uninstall") == {
        "store": str(sessgit.store),
        "clients": [
            {
                "agent": "claude",
                "settings": str(sessgit.config / "settings.json"),
                "removed": list(HOOK_EVENTS),
                "plugin": "sessgit@sessgit",
            }
        ],
    }
    assert settings(sessgit) == {"enabledPlugins": {"sessgit@sessgit": False}}


def test_a_commit_for_each_cell_needs_the_settings(sessgit: Shell) -> None:
    enable(sessgit)
    assert sessgit.json("install", "--granularity", "cell")["clients"][0]["added"] == list(CELL_EVENTS)
    assert sessgit.json("status")["recording"]["plugin"] is None


def test_what_the_plugin_needs_and_nothing_else(sessgit: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAM}:/usr/bin:/bin")
    assert sessgit.out("install", "--plugin") == (
        "The store in ~/.claude/session-store is ready for the plugin.\n"
        "Recording is off: no hooks are installed. To add the plugin:\n"
        "    claude plugin marketplace add REPOSITORY\n"
        "    claude plugin install sessgit@sessgit\n"
    )
    assert [path.name for path in sessgit.config.iterdir()] == ["session-store"]
    enable(sessgit)
    monkeypatch.setenv("PATH", "/nowhere")
    assert sessgit.out("install", "--plugin").splitlines()[1:] == [
        "Recording is on, by the plugin sessgit@sessgit (undo: sessgit uninstall)",
        "The plugin's commands need `sessgit` on the PATH, where it is not.",
    ]


def test_a_plugin_of_another_version_and_a_moved_marketplace(sessgit: Shell) -> None:
    market = enable(sessgit, version="0.1.0")
    sessgit.out("install")
    other = f"the plugin sessgit@sessgit is version 0.1.0, the program {__version__}"
    assert sessgit.json("status")["recording"] == {
        "on": True,
        "reason": f"{other}: claude plugin update sessgit@sessgit",
        "plugin": "sessgit@sessgit",
    }
    assert any(other in line for line in sessgit("doctor").out.splitlines())
    market.rename(market.with_name("moved"))
    assert sessgit.json("status")["recording"] == {
        "on": False,
        "reason": (
            f"the plugin's folder {market / 'hooks'} is gone: "
            "claude plugin marketplace remove sessgit, then add the moved folder"
        ),
        "plugin": None,
    }
    assert sessgit.out("install").splitlines()[0] == (
        "Recording is on: 6 hooks in ~/.claude/settings.json (undo: sessgit uninstall)"
    )
    sessgit.out("uninstall")
    enable(sessgit, version="9.1.0")
    assert sessgit.json("status")["recording"]["on"] is False  # the stub is gone
    sessgit.out("install")
    assert "is version 9.1.0" in (reason := sessgit.json("status")["recording"]["reason"])
    assert reason.endswith(": update sessgit, as in `uv tool upgrade sessgit`")
    (sessgit.config / "plugins" / "known_marketplaces.json").write_text('{"sessgit": 3')
    assert sessgit.json("status")["recording"]["on"] is True


def test_doctor_updates_the_stub_for_the_plugin(sessgit: Shell) -> None:
    enable(sessgit)
    sessgit.out("install")
    stub = sessgit.store / "hook"
    current = stub.read_text()
    stub.write_text(current + "# older\n")
    assert "hooks and stub updated to this version" in sessgit("doctor", "--fix").out
    assert stub.read_text() == current
    assert settings(sessgit) == {"enabledPlugins": {"sessgit@sessgit": True}}
