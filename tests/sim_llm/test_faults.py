from __future__ import annotations

import asyncio
import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.sim_llm.asking import ANTHROPIC, GENERATE, OLLAMA, OPENAI, get, post, posts, quick, said

from assay.http.client import HttpClient
from assay.http.errors import Disconnected
from assay.simulator import SimServer
from assay.simulator.simulation import Bucket

BODY = json.dumps(said("hello")).encode()


def conversation(server: SimServer, message: bytes, last: bytes | None = None) -> bytes:
    """What comes back for these bytes until the server closes, or has said the `last` of it."""
    place = urlsplit(server.url)
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=60) as client:
        client.sendall(message)
        heard = b""
        while (last is None or last not in heard) and (piece := client.recv(65536)):
            heard += piece
        return heard


def test_errors_come_at_their_rate_and_the_same_for_the_same_seed() -> None:
    def statuses(seed: int) -> list[int]:
        with quick(error_rate=0.3, seed=seed) as server:
            found = [response.status for response in posts(server, OPENAI, [said("hello")] * 200)]
            assert get(server, "/stats")["errors"]["injected_errors"] == found.count(500)
        return found

    first = statuses(1)
    assert set(first) == {200, 500}
    assert 40 <= first.count(500) <= 80
    assert statuses(1) == first
    assert statuses(2) != first


def test_an_error_has_the_shape_of_its_protocol() -> None:
    with quick(error_rate=1.0) as server:
        openai = post(server, OPENAI, said("hello"))
        anthropic = post(server, ANTHROPIC, said("hello", max_tokens=5))
        ollama = post(server, OLLAMA, said("hello"))

    assert openai.json()["error"]["type"] == "server_error"
    assert anthropic.json()["error"]["type"] == "api_error"
    assert isinstance(ollama.json()["error"], str)
    assert {one.status for one in (openai, anthropic, ollama)} == {500}
    assert {one.headers["x-assay-simulated"] for one in (openai, anthropic, ollama)} == {"1"}


def test_above_the_rate_limit_requests_are_told_when_to_come_again() -> None:
    with quick(rate_limit=2.0) as server:
        first, second = posts(server, OPENAI, [said("hello")] * 2)

    assert first.status == 200
    assert second.status == 429
    assert second.headers["retry-after"] == "1"
    assert second.json()["error"]["type"] == "rate_limit_error"


def test_the_rate_limit_lets_its_rate_through_and_a_tenth_of_a_second_at_once() -> None:
    bucket = Bucket(40.0, now=0.0)
    passed = [number / 100 for number in range(1000) if bucket.wait(number / 100) == 0]

    assert passed[:5] == [0.0, 0.01, 0.02, 0.03, 0.04]
    assert len(passed) == pytest.approx(4 + 40 * 10, abs=1)


def test_a_stream_is_cut_in_the_middle_and_its_beginning_arrives() -> None:
    async def scene(url: str) -> Disconnected:
        async with HttpClient() as client:
            body = json.dumps(said("hello", stream=True)).encode()
            with pytest.raises(Disconnected) as cut:
                await client.request("POST", url + OPENAI, body)
        return cut.value

    with quick(disconnect_rate=1.0, tokens=10) as server:
        cut = asyncio.run(scene(server.url))
        assert get(server, "/stats")["errors"]["disconnects"] == 1

    assert cut.status == 200
    assert b'"content":' in cut.received
    assert b"[DONE]" not in cut.received


def test_a_whole_answer_is_cut_in_the_middle_too() -> None:
    with quick(disconnect_rate=1.0) as server, pytest.raises(Disconnected) as cut:
        post(server, OPENAI, said("hello"))

    assert cut.value.status == 200
    assert cut.value.received.startswith(b'{"id"')


def test_a_client_that_leaves_frees_its_slot() -> None:
    async def scene(url: str) -> float:
        async with HttpClient() as client:
            for _ in range(2):
                asking = asyncio.create_task(client.request("POST", url + OPENAI, BODY))
                await until(client, url, in_flight=1)
                asking.cancel()
                stats = await until(client, url, in_flight=0)
            return float(stats["errors"]["abandoned"])

    async def until(client: HttpClient, url: str, in_flight: int) -> dict[str, Any]:
        while (stats := (await client.request("GET", url + "/stats")).json())["in_flight"] != in_flight:
            await asyncio.sleep(0.01)
        return dict(stats)

    with quick(ttft=600.0, slots=1) as server:
        assert asyncio.run(asyncio.wait_for(scene(server.url), 60)) == 2


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC, GENERATE])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_not_a_json_mapping_is_refused(path: str, body: bytes) -> None:
    async def scene(url: str) -> int:
        async with HttpClient() as client:
            response = await client.request("POST", url + path, body)
            assert "error" in response.json()
            return response.status

    with quick() as server:
        assert asyncio.run(scene(server.url)) == 400


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [{"content": "no role"}]},
        {"messages": [{"role": "user", "content": 5}]},
        said("hello", max_tokens=0),
        said("hello", max_tokens="many"),
        said("hello", stream="yes"),
        said("hello", n=2),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(document: object) -> None:
    with quick() as server:
        response = post(server, OPENAI, document)
        assert get(server, "/stats")["errors"]["bad_requests"] == 1

    assert response.status == 400
    assert response.json()["error"]["message"]


def test_an_unknown_path_and_a_wrong_method_are_reported() -> None:
    with quick() as server:
        assert post(server, "/v2/anything", {}).status == 404
        wrong = post(server, "/v1/models", {})
        assert (wrong.status, wrong.headers["allow"]) == (405, "GET")
        refused = b"405 Method Not Allowed"
        assert refused in conversation(server, b"GET /v1/messages HTTP/1.1\r\n\r\n", refused)


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/3\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: x\r\n\r\n", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000, b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 999999999\r\n\r\n", b"413"),
    ],
)
def test_what_is_not_http_is_refused_and_hung_up_on(message: bytes, status: bytes) -> None:
    with quick() as server:
        heard = conversation(server, message)

    assert heard.startswith(b"HTTP/1.1 " + status)
    assert b"connection: close" in heard


def test_a_request_may_come_in_chunks_and_after_a_continue() -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n"
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (10, BODY[:10], len(BODY) - 10, BODY[10:])
    with quick() as server:
        assert conversation(server, head, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert b"200 OK" in conversation(server, head + chunks, b"200 OK")


def test_requests_sent_ahead_are_answered_in_turn() -> None:
    one = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
    with quick(ttft=0.005) as server:
        heard = conversation(server, one * 3 + b"GET /stats HTTP/1.1\r\n\r\n", b'"completed":3')

    assert heard.count(b"HTTP/1.1 200 OK") == 4
    numbers = [heard.find(b'"chatcmpl-sim-%d"' % number) for number in (1, 2, 3)]
    assert numbers == sorted(numbers)
    assert -1 not in numbers
    assert b'"completed":3' in heard


def test_an_old_client_gets_a_stream_that_ends_with_the_connection() -> None:
    body = json.dumps(said("hello", stream=True)).encode()
    head = b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: %d\r\n\r\n" % len(body)
    with quick() as server:
        heard = conversation(server, head + body)

    assert b"chunked" not in heard
    assert heard.endswith(b"data: [DONE]\n\n")
