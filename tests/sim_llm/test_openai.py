from __future__ import annotations

import json
from typing import Any

from tests.sim_llm.asking import COMPLETIONS, OPENAI, events, get, post, quick, said

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
CALLING = 'Please [[call: add {"a": [1, [2]], "b": "ü"}]] now'


def chunks(server: Any, document: dict[str, Any], path: str = OPENAI) -> list[dict[str, Any]]:
    """The documents of a stream that ends as it should."""
    *found, done = events(server, path, document)
    assert done.data == "[DONE]"
    return [json.loads(event.data) for event in found]


def test_a_whole_answer_has_the_shape_and_the_usage_that_clients_read() -> None:
    with quick(tokens=3) as server:
        response = post(server, OPENAI, said("four words are here"))
    answer = response.json()

    assert response.headers["x-assay-simulated"] == "1"
    assert (answer["object"], answer["model"]) == ("chat.completion", "m")
    choice = answer["choices"][0]
    assert (choice["message"]["role"], choice["finish_reason"]) == ("assistant", "stop")
    assert len(choice["message"]["content"].split()) == 3
    usage = answer["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (4, 3, 7)


def test_a_stream_is_a_role_then_tokens_then_a_reason_and_the_usage_if_asked_for() -> None:
    with quick(tokens=3) as server:
        found = chunks(server, said("hello there", stream_options={"include_usage": True}))

    deltas = [chunk["choices"][0]["delta"] for chunk in found[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert [len(delta["content"].split()) for delta in deltas[1:-1]] == [1, 1, 1]
    assert deltas[-1] == {}
    assert [chunk["choices"][0]["finish_reason"] for chunk in found[:-1]] == [None] * 4 + ["stop"]
    assert [chunk["usage"] for chunk in found[:-1]] == [None] * 5
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["completion_tokens"] == 3
    assert {chunk["id"] for chunk in found} == {found[0]["id"]}
    assert {chunk["object"] for chunk in found} == {"chat.completion.chunk"}


def test_without_being_asked_a_stream_says_nothing_of_usage() -> None:
    with quick() as server:
        assert not any("usage" in chunk for chunk in chunks(server, said("hello")))


def test_streamed_or_not_the_same_question_gets_the_same_answer() -> None:
    question = said("Tell me about Zürich.", seed=5)
    with quick(tokens=9) as server:
        whole = post(server, OPENAI, question).json()["choices"][0]["message"]["content"]
        streamed = chunks(server, question)

    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in streamed) == whole


def test_max_tokens_cuts_the_answer_and_the_reason_says_so() -> None:
    with quick(tokens=10) as server:
        for name in ("max_tokens", "max_completion_tokens"):
            answer = post(server, OPENAI, said("hello", **{name: 2})).json()
            assert answer["usage"]["completion_tokens"] == 2
            assert answer["choices"][0]["finish_reason"] == "length"
        longer = post(server, OPENAI, said("hello", max_tokens=50)).json()
    assert longer["usage"]["completion_tokens"] == 10
    assert longer["choices"][0]["finish_reason"] == "stop"


def test_a_tool_is_called_when_the_prompt_asks_for_it_and_tools_are_offered() -> None:
    with quick() as server:
        answer = post(server, OPENAI, said(CALLING, tools=TOOLS)).json()["choices"][0]
        without_tools = post(server, OPENAI, said(CALLING)).json()["choices"][0]

    assert answer["finish_reason"] == "tool_calls"
    assert answer["message"]["content"] is None
    call = answer["message"]["tool_calls"][0]
    assert (call["type"], call["function"]["name"]) == ("function", "add")
    assert json.loads(call["function"]["arguments"]) == {"a": [1, [2]], "b": "ü"}
    assert "tool_calls" not in without_tools["message"]


def test_a_streamed_call_comes_as_a_name_and_then_arguments() -> None:
    with quick() as server:
        found = chunks(server, said(CALLING + ' [[call: add {"c": 3}]]', tools=TOOLS))

    parts = [part for chunk in found for part in chunk["choices"][0]["delta"].get("tool_calls", [])]
    names = {part["index"]: part["function"]["name"] for part in parts if "id" in part}
    arguments = dict.fromkeys(names, "")
    for part in parts:
        arguments[part["index"]] += part["function"]["arguments"]
    assert names == {0: "add", 1: "add"}
    assert json.loads(arguments[0]) == {"a": [1, [2]], "b": "ü"}
    assert json.loads(arguments[1]) == {"c": 3}
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_after_a_tool_has_answered_the_model_speaks() -> None:
    messages = [
        {"role": "user", "content": CALLING},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
    ]
    with quick() as server:
        answer = post(server, OPENAI, {"model": "m", "messages": messages, "tools": TOOLS}).json()

    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"]["content"]


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "What is 2 + 2?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    with quick(skill=1.0) as server:
        answer = post(server, OPENAI, {"messages": [{"role": "user", "content": parts}]}).json()

    assert answer["choices"][0]["message"]["content"] == "4"


def test_plain_completions_are_answered_too() -> None:
    with quick(tokens=3) as server:
        whole = post(server, COMPLETIONS, {"model": "m", "prompt": "Once upon", "seed": 1}).json()
        streamed = chunks(server, {"model": "m", "prompt": "Once upon", "seed": 1}, COMPLETIONS)

    assert whole["object"] == "text_completion"
    assert whole["usage"]["prompt_tokens"] == 2
    assert "".join(chunk["choices"][0]["text"] for chunk in streamed) == whole["choices"][0]["text"]


def test_the_models_are_listed() -> None:
    with quick() as server:
        assert [model["id"] for model in get(server, "/v1/models")["data"]] == ["sim-llm"]


def test_letters_that_cannot_be_encoded_do_no_harm() -> None:
    with quick() as server:
        response = post(server, OPENAI, {**said("lone \ud800 surrogate"), "model": "\ud800", "stream": True})

    assert response.status == 200
    assert b"[DONE]" in response.body
