"""Embeddings and OpenAI's Responses API: their own requests, and what is read of their answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.load.faulty import CHUNKED, END, JSON, SSE, always, chunk, faulty, head, with_length
from tests.load.loading import kinds, load

from assay.load.answer_text import text_of
from assay.model.load_document import load_document
from assay.simulator import SimOptions, SimServer


def event(kind: str, **more: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


USAGE = {"input_tokens": 31, "input_tokens_details": {"cached_tokens": 24}, "output_tokens": 3}
TEXT = "Welcome to our"
# As llama.cpp's server answers, which leaves more out than OpenAI does.
EVENTS = [
    event("response.created", response={"id": "r", "object": "response", "status": "in_progress", "output": []}),
    event("response.content_part.added", part={"type": "output_text", "text": ""}),
    event("response.output_text.delta", delta="Welcome"),
    event("response.output_text.delta", delta=" to"),
    event("response.output_text.delta", delta=" our"),
    event("response.output_text.done", text=TEXT),
    event("response.output_item.done", item={"content": [{"type": "output_text", "text": TEXT}]}),
    event("response.completed", response={"output": [{"content": [{"text": TEXT}]}], "usage": USAGE}),
]  # fmt: skip


def streamed(events: list[bytes]) -> bytes:
    return head(SSE, CHUNKED) + b"".join(chunk(one) for one in events) + END


@pytest.mark.parametrize("is_split", [False, True])
def test_only_deltas_are_tokens_of_a_response(is_split: bool) -> None:
    answer = streamed(EVENTS)

    def talk(guest: Any) -> None:
        half = len(answer) // 2
        guest.say(*([answer[:half], answer[half:]] if is_split else [answer]))

    with faulty(talk, path="/v1/responses") as server:
        found = load(server.url, requests=4, model="m", max_tokens=9, prompt="hello", prompt_cache="keep")
        body = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert body == {"model": "m", "input": "hello", "max_output_tokens": 9, "stream": True}
    assert found.errors == {}
    assert found.times["itl"].n == 4 * 2
    assert (found.input_tokens, found.cached_tokens) == (4 * 31, 4 * 24)
    assert found.output_tokens.value == pytest.approx(3 * found.throughput.value)


def test_what_a_response_says_is_read_once() -> None:
    assert text_of(b"".join(EVENTS).decode()) == TEXT
    whole = {"object": "response", "output": [{"content": [{"type": "output_text", "text": TEXT}]}]}
    assert text_of(json.dumps(whole)) == TEXT


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (EVENTS[:-1], "incomplete"),
        ([*EVENTS[:5], event("response.failed", response={"error": {"code": "x"}})], "error_in_stream"),
        ([*EVENTS[:5], event("error", message="x")], "error_in_stream"),
        (EVENTS[:2] + EVENTS[-1:], "empty"),
    ],
)
def test_responses_that_fail_are_errors(events: list[bytes], kind: str) -> None:
    with faulty(always(streamed(events)), path="/v1/responses") as server:
        assert kinds(server.url, requests=2) == {kind: 2}


def test_the_simulated_responses_api_is_measured_like_chat() -> None:
    with SimServer(SimOptions(ttft=0.2, itl=0.01, tokens=5), in_thread=True) as server:
        found = load(f"{server.url}/v1/responses", requests=4, input_tokens="50", output_tokens="4")
        plain = load(f"{server.url}/v1/responses", requests=2, stream=False)
    assert found.times["ttft"].p50 == pytest.approx(0.2, abs=0.06)
    assert found.times["itl"].n == 4 * 3
    assert found.input_tokens == 200
    assert "ttft" not in plain.times
    assert plain.times["latency"].p50 == pytest.approx(0.24, abs=0.06)


def test_embeddings_have_a_latency_and_input_tokens_but_no_first_token() -> None:
    with SimServer(SimOptions(ttft=0.1, itl=5.0, prefill=0.002), in_thread=True) as server:
        found = load(f"{server.url}/v1/embeddings", requests=6, model="m", input_tokens="100")
    assert found.errors == {}
    assert "ttft" not in found.times
    assert found.times["latency"].p50 == pytest.approx(0.1 + 100 * 0.002, abs=0.06)
    assert found.input_tokens == 600
    document = load_document(found)
    assert document["input_tokens_per_s"] == pytest.approx(100 * found.throughput.value)
    assert document["output_tokens_per_s"] == 0


def test_embeddings_are_asked_for_with_their_model_and_nothing_of_a_chat() -> None:
    answer = with_length(b'{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":2}}', JSON)
    with faulty(always(answer), path="/v1/embeddings") as server:
        load(server.url, requests=1, model="e5", prompt="hello", prompt_cache="keep", max_tokens=7)
        body = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert body == {"model": "e5", "input": "hello"}
    with faulty(always(with_length(b'{"object":"list","data":[]}', JSON)), path="/v1/embeddings") as server:
        assert kinds(server.url, requests=2) == {"empty": 2}
