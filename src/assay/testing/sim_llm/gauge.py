"""How fast and how punctual the simulated server is, seen through our own client and our own load engine."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import urlsplit

from assay.execute.http import HttpClient, SseParser, parsed
from assay.execute.load.engine import carry_out, order_for
from assay.execute.load.request import LoadPrompt, requests_for, target_of
from assay.model.load import Arrivals, Load

_HEADERS = {"content-type": "application/json"}
_WARM_UP = 0.5


@dataclass(frozen=True, slots=True)
class Punctuality:
    """Seconds by which what the client saw was later than what was asked for; and the rate really driven."""

    ttft_p50: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float
    streams_per_second: float


def question(is_streamed: bool, max_tokens: int | None = None) -> bytes:
    document = {"model": "sim-llm", "messages": [{"role": "user", "content": "Say something."}]}
    return json.dumps({**document, "stream": is_streamed, "max_tokens": max_tokens}).encode()


async def answers_per_second(
    url: str, *, is_streamed: bool, concurrency: int = 64, seconds: float = 2.0
) -> float:
    """What our client gets done in a closed loop."""
    body = question(is_streamed)
    done = 0

    async with HttpClient(max_connections=concurrency) as client:
        ask = _stream_once if is_streamed else _post_once
        end = perf_counter() + seconds

        async def work() -> None:
            nonlocal done
            while perf_counter() < end:
                await ask(client, f"{url}/v1/chat/completions", body)
                done += 1

        started = perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return done / (perf_counter() - started)


async def _post_once(client: HttpClient, url: str, body: bytes) -> None:
    response = await client.post(url, body, _HEADERS)
    assert response.status == 200


async def _stream_once(client: HttpClient, url: str, body: bytes) -> None:
    async with client.stream("POST", url, body, _HEADERS) as stream:
        assert stream.status == 200
        assert parsed(await stream.end(), SseParser())[-1].data == "[DONE]"


def served_per_second(url: str, *, connections: int = 64, seconds: float = 2.0) -> float:
    """What the server gets done: blocking sockets, because a client that parses would be the slower side."""
    place = urlsplit(url)
    body = question(is_streamed=False)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {len(body)}\r\n\r\n"
    message = head.encode() + body
    sockets = [socket.create_connection((str(place.hostname), place.port or 80)) for _ in range(connections)]
    try:
        done = 0
        started = perf_counter()
        while perf_counter() - started < seconds:
            for one in sockets:
                one.sendall(message)
            for one in sockets:
                assert one.recv(65536).startswith(b"HTTP/1.1 200")
            done += connections
        return done / (perf_counter() - started)
    finally:
        for one in sockets:
            one.close()


def punctuality(url: str, *, ttft: float, itl: float, rate: float, seconds: float = 3.0) -> Punctuality:
    """Streams at a constant rate, whether or not earlier ones have ended; those of the first moments do not count.

    Seen by the load engine: in a process of its own, by the kernel's time of each arrival, so that a client that is late to
    look does not make the server late. Choose a rate whose interval is no simple multiple of the ITL: at 200/s and 5 ms
    every stream's tokens fall due at the same instants, and all but one of them wait for the others.
    """
    total = _WARM_UP + seconds
    target = target_of(f"{url}/v1", "sim-llm", streams=True)
    requests = requests_for(target, [LoadPrompt("Say something.")], None)
    load = Load(Arrivals.CONSTANT, stages=((total, rate, rate),), seconds=total)
    tally = carry_out(load, order_for(target, requests), lambda pulse, so_far: None)
    seen = tally.between(_WARM_UP, total).times
    first, gaps = seen["ttft_from_send"], seen["itl"]
    return Punctuality(
        first.quantile(0.5) - ttft,
        first.quantile(0.99) - ttft,
        gaps.quantile(0.5) - itl,
        gaps.quantile(0.99) - itl,
        tally.completed / total,
    )
