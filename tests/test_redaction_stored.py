"""Every kind of secret in every place where conversations carry them: none of them is stored anywhere."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from secret_samples import CASES, hidden
from shell import Shell
from transcripts import SESSION, Talk

from sessgit.agents.claude import home
from sessgit.store import object_scan

KINDS_AT_LEAST = 60


def texts() -> list[str]:
    """All samples, each as it stands in a text."""
    return ["".join(parts) for _, parts in CASES]


def conversation(sessgit: Shell) -> Talk:
    """A turn for each place, with all samples in it."""
    every = texts()
    whole = "\n".join(every)
    nested = json.dumps({"result": json.dumps({"stdout": whole})})
    talk = sessgit.talk().prompt(f"here they are:\n{whole}", slug="quiet-gray-fox").answer(whole).stop_lines()
    for text in every:
        talk.prompt(text).answer(f"I see {text} there.").stop_lines()
    talk.prompt("tools").tool("Bash", {"command": whole, "env": {"X": whole}, whole[:80]: 1}, whole)
    talk.tool("Write", {"file_path": "/p/.env", "content": whole}, [{"type": "text", "text": nested}])
    talk.parallel(*(("Bash", {"command": f"echo '{text}'"}, json.dumps({"out": text})) for text in every[:40]))
    talk.tool("Bash", {"command": f"git commit -m '{every[60]}'"}, f"[main 3f78685] {every[60]}", error=True)
    talk.stop_lines().prompt("a program").call_only("lookup", {"query": whole})
    call = json.loads(talk.lines[-1])
    call["sessgit"] = {"cell": {"id": "cell_abcd1234", "type": "repl", "source": whole, "dependencies": []}}
    talk.lines[-1] = json.dumps(call).encode()
    ident = call["message"]["content"][0]["id"]
    talk.result(ident, whole, sessgit={"outcome": {"json": True, "error": whole}}).answer("so").stop_lines()
    talk.queue(whole).title(every[20]).title(every[30], "ai-title").title(every[40], "summary")
    talk.compact(summary=whole).bare("last-prompt", lastPrompt=whole)
    return talk


def beside(sessgit: Shell, talk: Talk) -> None:
    """The same in what lies beside the transcript."""
    whole = "\n".join(texts())
    folder = home.project_folder(sessgit.config, str(sessgit.project)) / SESSION
    line = {"isSidechain": True, "promptId": talk.prompt_id, "agentId": "ab12", "type": "assistant", "uuid": "s1"}
    files = {
        folder / "subagents" / "agent-ab12.jsonl": json.dumps({**line, "message": {"content": whole}}) + "\n",
        folder / "subagents" / "agent-ab12.meta.json": json.dumps({"description": whole}),
        folder / "tool-results" / "toolu_big.txt": whole,
        sessgit.config / "todos" / f"{SESSION}-agent-{SESSION}.json": json.dumps([{"content": whole}]),
        sessgit.config / "tasks" / SESSION / "1.json": json.dumps({"subject": whole, "description": whole}),
        sessgit.config / "plans" / "quiet-gray-fox.md": f"# Plan\n\n{whole}\n",
    }
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data)


@pytest.fixture
def stored(sessgit: Shell) -> Shell:
    """A store in which all of that was recorded, and said of it."""
    talk = conversation(sessgit)
    talk.prompt("see toolu_big.txt").answer("ok").stop_lines()
    beside(sessgit, talk)
    sessgit.keep(talk)
    assert sessgit("import", "--from", "claude", str(sessgit.config)).code == 0
    some = texts()
    for words in (f"say {some[5]}", f"so {some[25]}", f"it is {some[45]}"):
        short = words.replace("\n", " ")[:400]
        assert sessgit("edit", SESSION, "--description", short).code == 0
        assert sessgit("pad", "insight", short, "--json").code == 0
    assert sessgit("search", "here").code == 0
    return sessgit


def test_nothing_of_them_is_in_the_store(stored: Shell) -> None:
    secrets = {hidden(kind, parts[1]).encode(): kind for kind, parts in CASES}
    found = {(secrets[one], place) for place, data in everything(stored.store) for one in secrets if one in data}
    assert found == set()
    kept = subprocess.run(
        ["git", "-C", stored.store, "ls-tree", "-r", "--name-only", SESSION], capture_output=True, check=True, text=True
    ).stdout
    for place in ("subagents/agent-ab12.jsonl", "tool-results/toolu_big.txt", "live/plans", "live/todos", "live/tasks"):
        assert place in kept, place
    state = json.loads(subprocess.check_output(["git", "-C", stored.store, "show", f"{SESSION}:session.json"]))
    # All samples stand in at least so many places of the lines alone.
    assert state["rules"]["redacted"] > 12 * len(CASES)


def test_there_are_as_many_kinds_as_promised() -> None:
    assert len({kind for kind, _ in CASES}) >= KINDS_AT_LEAST


def everything(store: Path) -> Iterator[tuple[str, bytes]]:
    """All objects and files of a store."""
    for one in object_scan.all_objects(store, lambda done, total: None):
        yield f"{one.kind} {one.id}", one.data
    for path in store.rglob("*"):
        if path.is_file() and "objects" not in path.relative_to(store).parts:
            yield str(path.relative_to(store)), path.read_bytes()
