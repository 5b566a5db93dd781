"""`sessgit repair` and the real client: what a mended conversation says to the model when it is gone on with."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from clients import ENDS
from test_recording import Kept, talk
from world import World

pytestmark = [pytest.mark.client, ENDS]

Lines = list[dict[str, Any]]
PROMPTS = ["bash: echo one", "bash: echo two", "bash: echo three"]


def dangling(lines: list[bytes]) -> list[bytes]:
    """The second prompt hangs on nothing, and so does an answer in the third turn."""
    second = prompts(lines)[1]
    lines[second] = with_parent(lines[second], "00000000-dead-4000-8000-000000000000")
    third = next(n for n in range(prompts(lines)[2] + 1, len(lines)) if b'"type":"assistant"' in lines[n])
    lines[third] = with_parent(lines[third], "00000000-beef-4000-8000-000000000000")
    return lines


def glued(lines: list[bytes]) -> list[bytes]:
    """Each prompt stands on one line with what came before it, torn or whole."""
    second, third = prompts(lines)[1:3]
    return [
        *lines[: second - 1], lines[second - 1] + lines[second], *lines[second + 1 : third],
        b'{"type":"user","message":{"role":"us' + lines[third], *lines[third + 1 :],
    ]  # fmt: skip


def without_results(lines: list[bytes]) -> list[bytes]:
    """The results of the first two turns are lost; who hung on them hangs on nothing."""
    kept = lines[: prompts(lines)[2]]
    return [line for line in kept if b'"tool_result"' not in line] + lines[prompts(lines)[2] :]


def without_calls(lines: list[bytes]) -> list[bytes]:
    """The call of the second turn is lost, its result is there."""
    second, third = prompts(lines)[1:3]
    turn = [line for line in lines[second:third] if b'"tool_use"' not in line]
    return [*lines[:second], *turn, *lines[third:]]


def circle(lines: list[bytes]) -> list[bytes]:
    """The first line hangs on the last one."""
    first = next(n for n, line in enumerate(lines) if b'"uuid"' in line)
    last = [json.loads(line) for line in lines if b'"uuid"' in line][-1]
    lines[first] = with_parent(lines[first], last["uuid"])
    return lines


def doubled(lines: list[bytes]) -> list[bytes]:
    """All stands there twice, and the clock fell back before the last turn."""
    third = prompts(lines)[2]
    old = [fallen(line) for line in lines[third:]]
    return [*lines[:third], *lines[: third - 1], *old]


def woven(lines: list[bytes]) -> list[bytes]:
    """The same without their prompt: lines that hang on nothing."""
    return [
        line
        for line in spliced(lines)
        if not (b"99999999-" in line and b'"type": "user"' in line and b"bash: " in line)
    ]


def spliced(lines: list[bytes]) -> list[bytes]:
    """Another session's lines between the second turn's."""
    strange = []
    for line in lines[: prompts(lines)[1]]:
        data = json.loads(line)
        for key in ("uuid", "parentUuid"):
            if data.get(key):
                data[key] = "99" + data[key][2:]
        data["sessionId"] = "99999999-0000-4000-8000-000000000000"
        text = json.dumps(data).replace("toolu_", "toolu_9").replace("echo one", "echo strange")
        strange.append(text.replace('"id": "msg_', '"id": "msg_9').encode())
    at = prompts(lines)[1] + 1
    return [*lines[:at], *strange, *lines[at:]]


BROKEN: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "dangling": dangling, "glued": glued, "without results": without_results, "without calls": without_calls,
    "circle": circle, "doubled": doubled, "spliced": spliced, "woven": woven,
}  # fmt: skip


@pytest.mark.parametrize("how", BROKEN)
def test_a_mended_conversation_is_sent_whole(world: World, how: str) -> None:
    session = talk(world, PROMPTS)
    path = world.transcript(session)
    path.write_bytes(b"".join(line + b"\n" for line in BROKEN[how](path.read_bytes().split(b"\n")[:-1])))
    broken = path.read_bytes()
    kept = Kept(world)
    kept.run("import")
    done = kept.json("repair", session)
    assert not done["sound"]
    assert done["repairs"]
    assert path.read_bytes() == broken
    mended = done["id"]
    again = kept.json("repair", mended)
    assert again["sound"], (done, again)
    assert kept.json("verify", "--deep")["sound"]
    world.model.clear()
    assert world.run("bash: echo four", resume=mended).session_id == mended
    messages = world.model.main(mended)[0].body["messages"]
    sent = json.dumps(messages)
    assert [prompt for prompt in (*PROMPTS, "bash: echo four") if prompt not in sent] == []
    assert "strange" not in sent
    check_pairs(messages)


def check_pairs(messages: Lines) -> None:
    """Each call is answered in the next message, and nothing else is: so the model's service wants it."""
    for before, after in zip(messages, [*messages[1:], {"role": "user", "content": []}], strict=True):
        asked = [b["id"] for b in blocks(before) if b.get("type") == "tool_use"]
        answered = [b["tool_use_id"] for b in blocks(after) if b.get("type") == "tool_result"]
        assert sorted(asked) == sorted(answered), (before, after)


def blocks(message: dict[str, Any]) -> Lines:
    content = message["content"]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def prompts(lines: list[bytes]) -> list[int]:
    """Where the prompts stand."""
    found = []
    for number, line in enumerate(lines):
        data = json.loads(line)
        content = data.get("message", {}).get("content") if isinstance(data.get("message"), dict) else None
        text = content if isinstance(content, str) else json.dumps(content)
        if data["type"] == "user" and "tool_result" not in text and "bash: echo" in text and not data.get("isMeta"):
            found.append(number)
    return found


def with_parent(line: bytes, parent: str) -> bytes:
    return json.dumps(json.loads(line) | {"parentUuid": parent}, separators=(",", ":")).encode()


def fallen(line: bytes) -> bytes:
    data = json.loads(line)
    return json.dumps(data | ({"timestamp": "2020-01-01T00:00:00.000Z"} if "timestamp" in data else {})).encode()
