"""The mock of the Messages API, without a client: these run always."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from model_server import SUMMARY, ModelServer, conversation, prompts

TOOLS = [{"name": "Bash"}, {"name": "Agent"}, {"name": "TaskCreate"}]


def post(server: ModelServer, body: dict[str, Any], session: str = "s1") -> str:
    request = urllib.request.Request(
        f"{server.url}/v1/messages?beta=true",
        json.dumps({"model": "mock", "tools": TOOLS, **body}).encode(),
        {"content-type": "application/json", "x-claude-code-session-id": session},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def test_a_script_is_played_step_by_step(model: ModelServer) -> None:
    messages = [user("<system-reminder>Today is Monday.</system-reminder>", "bash: echo hi ;; tasks: one, two")]
    first = json.loads(post(model, {"messages": messages}))
    assert first["stop_reason"] == "tool_use"
    assert first["content"][1]["input"]["command"] == "echo hi"

    call = first["content"][1]
    messages += [
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "hi"}]},
    ]
    second = json.loads(post(model, {"messages": messages}))
    assert [block["name"] for block in second["content"][1:]] == ["TaskCreate", "TaskCreate"]

    messages += [
        {"role": "assistant", "content": second["content"]},
        user("<system-reminder>x</system-reminder>"),
    ]
    third = json.loads(post(model, {"messages": messages}))
    assert third["content"] == [{"type": "text", "text": "Echo: bash: echo hi ;; tasks: one, two"}]
    assert third["stop_reason"] == "end_turn"

    assert model.conversation() == [
        ("user", "bash: echo hi ;; tasks: one, two"),
        ("assistant", "Step 1."),
        ("assistant", "[Bash echo hi]"),
        ("user", "[Bash: hi]"),
        ("assistant", "Step 2."),
        ("assistant", "[Tasks one]"),
        ("assistant", "[Tasks two]"),
    ]
    assert prompts(model.main()[-1]) == ["bash: echo hi ;; tasks: one, two"]


def test_a_stream_carries_the_same(model: ModelServer) -> None:
    text = post(model, {"messages": [user("think: deep")], "stream": True})
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Echo: think: deep"
    assert [delta["thinking"] for delta in deltas if "thinking" in delta] == ["deep"]
    assert events[0]["type"] == "message_start"
    assert events[-1] == {"type": "message_stop"}


def test_side_requests_are_not_the_conversation(model: ModelServer) -> None:
    post(model, {"messages": [user("a title, please")], "tools": []})
    post(model, {"messages": [user("bash: ls")], "system": "x; cc_is_subagent=true;"})
    post(
        model,
        {"messages": [user("one"), user("Your task is to create a detailed summary of the conversation")]},
    )
    post(model, {"messages": [user("one")]}, session="s2")
    assert [request.kind for request in model.requests] == ["side", "subagent", "compact", "main"]
    assert SUMMARY in model.requests[2].reply[0]["text"]
    assert [request.session_id for request in model.main()] == ["s2"]
    assert model.main("s1") == []


def test_held_until_released(model: ModelServer) -> None:
    answers: list[str] = []
    body = {"messages": [user("hold: it")], "stream": True}
    thread = threading.Thread(target=lambda: answers.append(post(model, body)))
    thread.start()
    model.wait_for_prompt("hold: it")
    assert not answers
    model.release()
    thread.join(10)
    assert "message_stop" in answers[0]


def test_errors(model: ModelServer) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(model, {"messages": [user("fail: 529")]})
    assert caught.value.code == 529
    caught.value.close()
    with pytest.raises(TimeoutError, match="no such request"):
        model.wait_for_prompt("never", timeout=0.01)


def test_what_the_client_says_for_itself_is_left_out() -> None:
    messages = [
        user("This session is being continued from a previous conversation that ran out.\n" + SUMMARY),
        user("Caveat: The messages below were generated", "<command-name>/compact</command-name>"),
        {"role": "assistant", "content": "No response requested."},
        {"role": "system", "content": "# Environment"},
        user("<task-notification>done</task-notification>", "go on"),
    ]
    assert conversation({"messages": messages}) == [
        ("user", f"[summary: {SUMMARY}]"),
        ("user", "[command /compact]"),
        ("user", "[task notification]"),
        ("user", "go on"),
    ]
