"""Measures how fast and how punctual the simulated server is, through plain sockets and our own load engine.

Figures of a load test can be no better than the server that it was checked against, so this is part of the benchmarks.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import urlsplit

from assay.load.engine import generate_load, order_for
from assay.load.request import LoadPrompt, requests_for, target_of
from assay.model.load import Arrivals, Load

_WARM_UP = 0.5


@dataclass(frozen=True, slots=True)
class Punctuality:
    """Seconds by which what the client saw was later than what was asked for; and the rate really driven."""

    ttft_p50: float
    ttft_p99: float
    itl_p50: float
    itl_p99: float
    streams_per_second: float


def measure_throughput(url: str, *, connections: int = 64, seconds: float = 2.0) -> float:
    """How many answers a second the server gives: by blocking sockets, as a client that parses would be the slower side."""
    place = urlsplit(url)
    # The same each time, so that the server's cache of questions works as in a load test.
    document = {"model": "sim-llm", "messages": [{"role": "user", "content": "Say something."}]}
    body = json.dumps(document).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {len(body)}\r\n\r\n"
    message = head.encode() + body
    sockets = [socket.create_connection((str(place.hostname), place.port or 80)) for _ in range(connections)]
    try:
        done = 0
        started = perf_counter()
        # All requests are written before the first answer is read, so the server always has work waiting.
        while perf_counter() - started < seconds:
            for connection in sockets:
                connection.sendall(message)
            for connection in sockets:
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            done += connections
        return done / (perf_counter() - started)
    finally:
        for connection in sockets:
            connection.close()


def punctuality(url: str, *, ttft: float, itl: float, rate: float, seconds: float = 3.0) -> Punctuality:
    """Streams at a constant rate, whether or not earlier ones have ended; those of the first moments do not count.

    Seen by the load engine: in a process of its own, by the kernel's time of each arrival, so that a client that is late to
    look does not make the server late. Choose a rate whose interval is no simple multiple of the ITL: at 200/s and 5 ms
    every stream's tokens fall due at the same instants, and all but one of them wait for the others.
    """
    # The first moments are left out, in which connections are made and both processes fill their caches.
    total = _WARM_UP + seconds
    target = target_of(f"{url}/v1", "sim-llm", streams=True)
    requests = requests_for(target, [LoadPrompt("Say something.")], None)
    load = Load(Arrivals.CONSTANT, stages=((total, rate, rate),), seconds=total)
    tally = generate_load(load, order_for(target, requests), lambda progress, so_far: None)
    seen = tally.between(_WARM_UP, total).times
    first, gaps = seen["ttft_from_send"], seen["itl"]
    return Punctuality(
        first.quantile(0.5) - ttft,
        first.quantile(0.99) - ttft,
        gaps.quantile(0.5) - itl,
        gaps.quantile(0.99) - itl,
        tally.completed / total,
    )
