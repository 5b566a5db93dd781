"""The examples for programs run, and print what they shall."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b")

REPL_AGENT = """\
The balance of the five days is 602 euros.

It stands on:
  1  repl        peek
  2  repl        split   after 1
  3  llm_call    ask     after 2
  4  llm_call    ask     after 2

The small model read 80 tokens and wrote 6.

The same steps, run again:
  1  peek    equal
  2  split   equal
  3  ask     equal
  4  ask     equal
  5  add     equal

A step that waits for itself is refused:
  the cells depend on each other in a cycle: cell_aaaaaaaa → cell_bbbbbbbb → cell_aaaaaaaa
"""

NOTEBOOK = """\
The first run stopped: name 'limit' is not defined

numbers
  1  run                     numbers ✓  mean ✓  far ✗
     Ended by NameError: name 'limit' is not defined
  2  run with {'limit': 3}   numbers ✓  mean ✓  far ✓
     numbers = [3, 1, 4, 1, 5, 9, 2, 6], mean = 3.875, far = [9]

by the median
  1  run                     numbers ✓  mean ✓  far ✗
     Ended by NameError: name 'limit' is not defined
  2  run with {'limit': 3}   numbers ✓  mean ✓  far ✓
     numbers = [3, 1, 4, 1, 5, 9, 2, 6], mean = 4, far = [9]

They share 1 run; since then there is 1 here and 1 there.
Brought back as run 3: numbers = [3, 1, 4, 1, 5, 9, 2, 6], mean = 4, far = [9]

From any of them it goes on in the client:
  cd FOLDER && claude --resume <id>
"""

DIALECTIC = """\
by hand     A parser by hand is the better one to use. I am sure to 70%.
            turn 2, evidence: 1 cell of 1
generated   A generated parser is the better one to change. I am sure to 60%.
            turn 2, evidence: 1 cell of 1

Should the parser be written by hand?  (synthesized, 80% sure)
  insight   Its errors say what a person did wrong.
  insight   It needs no tool to build.
  insight   The grammar is the documentation.
  insight   A change of the grammar takes minutes.
  claim     A parser by hand is the better one to use.
  claim     A generated parser is the better one to change.
  tension   Better to use or better to change?
  counter   The grammar has not changed for two years.
  thesis    Write it by hand, and keep the grammar beside it as its documentation.

Next: Nothing left to do

The turns that led there:
  1  Should the parser be written by hand?
  2  Merged from <id>, “by hand”: 1 turn since turn 1
  3  Merged from <id>, “generated”: 1 turn since turn 1
  4  So?
"""


HOOKS_AND_BRIDGE = """\
Active: False  tokens: 0
Working memory: {'kiln.txt': 6, 'market.txt': 7}
Lines with “cups”: 1
Steps of the REPL: 2

The last one stands on: 1 other
Reasons: ['kiln.txt is read', 'market.txt is read']

For RLM: index.json session.json traces.jsonl transcript.jsonl
"""


MANAGER = """\
Recovered: Write it, 1 turn, interrupted in a call
Run again: strength: equal
Run again: deploy: skipped

The manager's children:
  Write it   developer  ended  turns: 2
  Design it  architect  ended  turns: 1

Imported: Test the old login, as <id>
Deleted, because it failed long ago: 1

For claude-man: DEVELOPER, completed, child of the manager: True
"""

BRANCHES = """\
Found by what was said: True
Branch with slices: turns 2, shared 1
Branch more tests: turns 2, shared 2
Only in one of them: 1 turn and 1 turn

By name, with the archive:
  faster scanner
  more tests      archived
  with slices

Apex finds its messages: ['m0', 'm1', 'm2', 'm3']
and the new branches: True
with slices: branch at message 1, tokens {'input': 1811, 'output': 127},
  cost $0.0367, tasks ['task-9']
"""

FIXTURES = """\
Nothing yet: []
Two turns: ['claude-haiku-4-5: 7 tokens', 'claude-opus-4-8: 40 tokens', 'open: Ship']
A fork has its turns too: ['claude-haiku-4-5: 7 tokens', 'claude-opus-4-8: 80 tokens', 'open: Ship']
Nothing is left: True
"""


@pytest.mark.parametrize(
    ("name", "shown"),
    [("repl_agent", REPL_AGENT), ("notebook", NOTEBOOK), ("dialectic", DIALECTIC), ("manager", MANAGER),
     ("branches", BRANCHES), ("hooks_and_bridge", HOOKS_AND_BRIDGE)],
)  # fmt: skip
def test_it_prints_what_it_shall(seal: Path, name: str, shown: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    env = {**os.environ, "TMPDIR": str(seal)}  # no link leads there, as to the system's there may
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, cwd=seal)
    assert (done.returncode, done.stderr) == (0, "")
    assert UUID.sub("<id>", done.stdout).replace("'FOLDER'", "FOLDER") == shown
    assert not (seal / ".claude").exists()
    assert len((EXAMPLES / f"{name}.py").read_text("utf-8").splitlines()) < 120
