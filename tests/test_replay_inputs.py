"""`sessgit replay --inputs`: prompts sent to a new process, its answers compared and kept as a fork at the start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest
from kept import begins
from plain import run_git
from replaying import alive, replayed, script, value
from shell import Shell
from strategies import SECRET
from test_cells_hostile import put
from transcripts import SESSION

from sessgit.replay import inputs
from sessgit.store import layout

EACH = """\
import sys
said = sys.stdin.read()
print(f"About {said}.")
"""
LINES = """\
import json, sys
count = 0
for line in sys.stdin:
    prompt, count = json.loads(line)["prompt"], count + 1
    print(json.dumps({"answer": f"About {prompt}." if prompt != "two" else f"Number {count}."}), flush=True)
"""
CLIENT = """\
import json, sys
assert {"-p", "--verbose"} < set(sys.argv), sys.argv
assert sys.argv.count("-p") == 1 and sys.argv.count("stream-json") == 2
print(json.dumps({"type": "system", "subtype": "init"}), flush=True)
for line in sys.stdin:
    said = json.loads(line)
    assert said["type"] == "user" and said["message"]["role"] == "user"
    text = f"About {said['message']['content'][0]['text']}."
    message = {"role": "assistant", "model": "claude-test-9", "content": [{"type": "text", "text": text}]}
    print(json.dumps({"type": "assistant", "message": message}), flush=True)
    usage = {"input_tokens": 7, "output_tokens": 5}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": usage}
    print(json.dumps(result), flush=True)
"""


@begins
def talked(shell: Shell) -> None:
    shell.recorded(shell.talk().turns("one", "two", "three"))


def answers(shell: Shell, *arguments: str, code: int = 6) -> list[tuple[int, str, str | None]]:
    found = value(shell, "5e55", "--inputs", *arguments, code=code)
    return [(one["turn"], one["outcome"], one["reason"]) for one in found["answers"]]


def test_each_prompt_to_a_process_of_its_own(talked: Shell, tmp_path: Path) -> None:
    done = replayed(talked, "5e55", "--inputs", "--to", script(tmp_path, "each.py", EACH))
    assert done.out == (
        """\
5e551011  one  ·  3 equal

1  one                                                                     equal
2  two                                                                     equal
3  three                                                                   equal

Kept: f0000001  inputs of 5e551011
Compare them:  sessgit diff 5e551011 f0000001
"""
    )
    log = talked.json("log", "f0000001")["turns"]
    assert [(one["prompt"], one["answer"]) for one in log] == [(w, f"About {w}.") for w in ("one", "two", "three")]
    assert [one["fork_turn"] for one in talked.json("ls")["sessions"]] == [None, 0]
    assert not list(talked.config.glob("projects/*/f0000001*"))


def test_who_is_stopped_before_an_answer_keeps_nothing(talked: Shell, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    command = ["replay", "5e55", "--inputs", "--to", f"touch {quote(str(asked))}; sleep 60"]
    with subprocess.Popen([sys.executable, "-m", "sessgit", *command]) as process:
        deadline = time.monotonic() + 60
        while not asked.exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert len(talked.json("ls")["sessions"]) == 1 and talked.json("ops")["operations"] == []


def test_one_process_for_all_by_lines(talked: Shell, tmp_path: Path) -> None:
    command = script(tmp_path, "lines.py", LINES)
    done = replayed(talked, "5e55", "--inputs", "--protocol", "lines", "--to", command, code=6)
    assert done.out.startswith(
        """\
5e551011  one  ·  2 equal, 1 differs

1  one                                                                     equal
2  two                                                                   differs
    − About two.
    + Number 2.
3  three                                                                   equal
"""
    )
    assert "Number 2." in talked.out("show", "f0000001@2")
    assert (
        talked.out("diff", "5e55", "f0000001")
        == """\
5e551011  one                            f0000001  inputs of 5e551011
═══ no common ancestor, 3 prompts in both ══════════════════════════════════════
same prompt, different answer: turn 2
− 2  two                                 + 2  two
  cost  − 1 turn  160                    + 1 turn  0  $0.00
Last answers
− “About two.”
+ “Number 2.”
"""
    )
    found = talked.json("diff", "5e55", "f0000001")
    assert (found["shared_turns"], found["changed"]) == (2, [{"a": 2, "b": 2, "differs": ["answer"]}])


def test_the_clients_own_way(talked: Shell, tmp_path: Path) -> None:
    claude = tmp_path / "claude"
    claude.write_text(f"#!{sys.executable}\n{CLIENT}")
    claude.chmod(0o755)
    found = value(talked, "5e55@2", "--inputs", "--to", f"X=1 {quote(str(claude))} -p")
    assert found["protocol"] == "stream-json"
    assert [one["outcome"] for one in found["answers"]] == ["equal", "equal"]
    turn = talked.json("log", "f0000001")["turns"][0]
    assert (turn["model"], turn["tokens"]["input"], turn["tokens"]["output"]) == ("claude-test-9", 7, 5)


def test_which_way_is_meant() -> None:
    assert inputs.guess_protocol("claude -p") == "stream-json"
    assert inputs.guess_protocol("A=1 /usr/bin/claude") == "stream-json"
    assert inputs.guess_protocol("python claude") == "each"
    assert inputs.guess_protocol("") == "each"


@pytest.mark.parametrize(
    ("protocol", "command", "why"),
    [
        ("each", "exit 3", "it exited with code 3"),
        ("each", "true", "it printed nothing"),
        ("each", "sleep 60", "it took longer than 1 s"),
        ("each", "yes", "it printed more than 8.4 MB"),
        ("each", "no-such-program 2>/dev/null", "it exited with code 127"),
        ("lines", "exit 3", "it exited with code 3 before it answered"),
        ("lines", "cat", 'it printed a line without an answer: {"prompt": "one"}'),
        ("lines", "echo hello; cat", "it printed a line that is not a JSON object: hello"),
        ("lines", "echo '[1]'; cat", "it printed a line that is not a JSON object: [1]"),
        ("lines", "echo '{\"answer\": 1}'; cat", 'it printed a line without an answer: {"answer": 1}'),
        ("lines", "printf '\\033[31m\\377\\n'; cat", "it printed a line that is not a JSON object:"),
        ("lines", "printf '{\"answer\"'; sleep 60", "it took longer than 1 s"),
        ("lines", "head -c 9000000 /dev/zero; sleep 60", "it printed a line of more than 8.4 MB"),
        ("lines", "exec <&- ; sleep 60", "it took longer than 1 s"),
        ("stream-json", f"echo '{json.dumps({'type': 'result', 'is_error': True, 'result': 'no key'})}';:",
         "it ended with an error: no key"),
        ("stream-json", f"echo '{json.dumps({'type': 'result', 'subtype': 'error_max_turns'})}';:",
         "it ended with an error: error_max_turns"),
        ("stream-json", "while echo '{}'; do sleep 0.01; done;:", "it took longer than 1 s"),
    ],
)  # fmt: skip
def test_who_does_not_answer_ends_it(talked: Shell, protocol: str, command: str, why: str) -> None:
    limit = "1" if why.endswith("longer than 1 s") else "60"
    found = value(talked, "5e55", "--inputs", "--to", command, "--protocol", protocol, "--timeout", limit, code=6)
    ((turn, outcome, said),) = [(one["turn"], one["outcome"], one["reason"]) for one in found["answers"]]
    assert (turn, outcome) == (1, "failed") and said.startswith(why), said
    assert not any(char in said for char in "\x1b\xff")
    assert found["not_sent"] == 2
    assert f"No answer: {why[:20]}" in talked.out("show", "f0000001@1")


def test_what_was_answered_before_it_died_stays(talked: Shell, tmp_path: Path) -> None:
    dying = LINES.replace("    print(", '    if prompt == "three": raise SystemExit(9)\n    print(')
    command = script(tmp_path, "dying.py", dying)
    found = answers(talked, "--protocol", "lines", "--to", command)
    assert found == [
        (1, "equal", None),
        (2, "differs", None),
        (3, "failed", "it exited with code 9 before it answered"),
    ]
    log = talked.json("log", "f0000001")["turns"]
    assert [one["answer"] for one in log] == [
        "About one.",
        "Number 2.",
        "No answer: it exited with code 9 before it answered",
    ]


def test_undo_takes_it_back_and_no_keep_keeps_nothing(talked: Shell) -> None:
    before = run_git(talked.store, "for-each-ref")
    assert "Kept" not in replayed(talked, "5e55", "--inputs", "--to", "cat", "--no-keep", code=6).out
    assert run_git(talked.store, "for-each-ref") == before
    replayed(talked, "5e55", "--inputs", "--to", "cat", code=6)
    assert talked.out("ops").count("\n") == 1
    talked.out("undo")
    assert [one["id"] for one in talked.json("ls")["sessions"]] == [SESSION]


def test_nothing_it_starts_is_recorded_or_left(talked: Shell, tmp_path: Path) -> None:
    out = tmp_path / "env"
    marker = f"61{os.getpid()}{time.monotonic_ns() % 10_000}"
    command = f"echo $SESSGIT_OFF > {quote(str(out))}; (setsid sleep {marker} >/dev/null 2>&1 &); cat"
    replayed(talked, "5e55@1", "--inputs", "--to", command, code=6)
    assert out.read_text() == "1\n"
    assert alive(marker) == []


def test_prompts_that_cannot_be_sent(talked: Shell) -> None:
    put(talked, 2, layout.BODY, None)
    found = answers(talked, "--to", "sed 's/.*/About &./'", code=0)
    assert [one[1] for one in found] == ["equal", "skipped", "equal"]
    assert str(found[1][2]).startswith("its turn is damaged")
    assert talked.json("log", "f0000001")["turns"][-1]["prompt"] == "three"


def test_secrets_in_answers_are_not_kept(talked: Shell) -> None:
    command = f"cat >/dev/null; echo {SECRET}"
    assert SECRET not in replayed(talked, "5e55", "--inputs", "--to", command, code=6).out
    assert SECRET not in json.dumps(value(talked, "5e55", "--inputs", "--to", command, code=6))
    assert SECRET not in talked.out("show", "f0000001@1")


def test_a_session_of_a_program_can_be_sent_again(talked: Shell) -> None:
    replayed(talked, "5e55", "--inputs", "--to", "cat", code=6)
    found = value(talked, "f0000001", "--inputs", "--to", "cat")
    assert [one["outcome"] for one in found["answers"]] == ["equal"] * 3
    assert found["kept"]["name"] == "inputs of f0000001"
