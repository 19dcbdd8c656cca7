from __future__ import annotations

import json
from typing import Any

from tests.sim_llm.asking import ANTHROPIC, events, post, quick, said

TOOLS = [{"name": "add", "input_schema": {"type": "object"}}]


def asked(text: str, **more: Any) -> dict[str, Any]:
    return said(text, max_tokens=100, **more)


def test_a_whole_message_has_the_shape_and_the_usage_that_clients_read() -> None:
    with quick(tokens=3) as server:
        message = post(server, ANTHROPIC, asked("two words", system="be brief please")).json()

    assert (message["type"], message["role"], message["model"]) == ("message", "assistant", "m")
    assert message["content"][0]["type"] == "text"
    assert len(message["content"][0]["text"].split()) == 3
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["input_tokens"] == 5
    assert message["usage"]["output_tokens"] == 3


def test_a_stream_has_the_right_events_in_the_right_order() -> None:
    with quick(tokens=2) as server:
        found = events(server, ANTHROPIC, asked("hello there"))

    assert [event.event for event in found] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    documents = [json.loads(event.data) for event in found]
    assert [document["type"] for document in documents] == [event.event for event in found]
    assert documents[0]["message"]["usage"]["input_tokens"] == 2
    assert all(document["delta"]["type"] == "text_delta" for document in documents[3:5])
    assert documents[6]["delta"]["stop_reason"] == "end_turn"
    assert documents[6]["usage"]["output_tokens"] == 2


def test_max_tokens_is_a_must_and_a_limit() -> None:
    with quick(tokens=10) as server:
        cut = post(server, ANTHROPIC, said("hello", max_tokens=2)).json()
        refused = post(server, ANTHROPIC, said("hello"))

    assert (cut["stop_reason"], cut["usage"]["output_tokens"]) == ("max_tokens", 2)
    assert refused.status == 400
    assert refused.json() == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "'max_tokens' is missing."},
    }


def test_a_tool_call_is_a_block_with_its_input() -> None:
    with quick() as server:
        message = post(server, ANTHROPIC, asked('[[call: add {"a": 1}]]', tools=TOOLS)).json()

    assert message["stop_reason"] == "tool_use"
    block = message["content"][0]
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "add", {"a": 1})


def test_a_streamed_tool_call_brings_its_input_as_json_text() -> None:
    with quick() as server:
        found = events(server, ANTHROPIC, asked('[[call: add {"a": 1}]]', tools=TOOLS))

    documents = [json.loads(event.data) for event in found]
    start = next(document for document in documents if document["type"] == "content_block_start")
    text = "".join(
        document["delta"]["partial_json"]
        for document in documents
        if document["type"] == "content_block_delta"
    )
    assert (start["content_block"]["type"], start["content_block"]["input"]) == ("tool_use", {})
    assert json.loads(text) == {"a": 1}
    assert documents[-2]["delta"]["stop_reason"] == "tool_use"


def test_after_a_tool_result_the_model_answers_what_the_user_had_asked() -> None:
    messages = [
        {"role": "user", "content": 'What is 2 + 3? [[call: add {"a": 2, "b": 3}]]'},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "add", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "5"}]},
    ]
    with quick(skill=1.0) as server:
        answer = post(server, ANTHROPIC, {"max_tokens": 9, "messages": messages, "tools": TOOLS}).json()

    assert answer["content"] == [{"type": "text", "text": "5"}]
