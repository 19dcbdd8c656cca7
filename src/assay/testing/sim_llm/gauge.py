"""How fast and how punctual the simulated server is, seen through our own client."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic, perf_counter
from urllib.parse import urlsplit

from assay.execute.http import HttpClient, Piece, SseParser, parsed
from assay.execute.http.deadlines import Deadlines

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


async def punctuality(url: str, *, ttft: float, itl: float, rate: float, seconds: float = 3.0) -> Punctuality:
    """Streams at a constant rate, whether or not earlier ones have ended; those that open connections do not count.

    Choose a rate whose interval is no simple multiple of the ITL: at 200/s and 5 ms every stream's tokens fall due at
    the same instants, and all but one of them wait for the others.
    """
    seen: list[tuple[float, Sequence[Piece]]] = []
    body = question(is_streamed=True)
    async with HttpClient(max_connections=10_000) as client:
        warm = perf_counter() + _WARM_UP

        async def one() -> None:
            async with client.stream("POST", f"{url}/v1/chat/completions", body, _HEADERS) as stream:
                await stream.end()
            if stream.sent >= warm:
                seen.append((stream.sent, stream.arrived))

        with _no_collection():
            taken = await _at_rate(one, rate, _WARM_UP + seconds)
    return _judged(seen, ttft, itl, rate * (_WARM_UP + seconds) / taken)


def _judged(seen: list[tuple[float, Sequence[Piece]]], ttft: float, itl: float, rate: float) -> Punctuality:
    first_tokens: list[float] = []
    gaps: list[float] = []
    for sent, pieces in seen:
        events = parsed(pieces, SseParser())
        tokens = [event.at for event in events if '"delta":{"content":' in event.data]
        first_tokens.append(tokens[0] - sent - ttft)
        gaps.extend(later - earlier - itl for earlier, later in pairwise(tokens))
    return Punctuality(
        _quantile(first_tokens, 0.5),
        _quantile(first_tokens, 0.99),
        _quantile(gaps, 0.5),
        _quantile(gaps, 0.99),
        rate,
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """A collection of garbage holds the clock still for milliseconds."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def _at_rate(one: Callable[[], Awaitable[None]], rate: float, seconds: float) -> float:
    """Start one after the other on schedule; the seconds from the first start to the last."""
    loop = asyncio.get_running_loop()
    deadlines = Deadlines(loop)
    tasks: list[asyncio.Future[None]] = []
    total = round(rate * seconds)
    started = monotonic() + 0.05
    for number in range(total):
        deadlines.at(started + number / rate, lambda: tasks.append(asyncio.ensure_future(one())))
    while len(tasks) < total:
        await asyncio.sleep(0.02)
    taken = monotonic() - started
    await asyncio.gather(*tasks)
    deadlines.close()
    return taken


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
