"""Drives a function that asks once, by a closed loop or a timetable, and prints as JSON what it saw."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

BODY = {
    "model": "m",
    "messages": [{"role": "user", "content": "Say in one sentence what a benchmark is."}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


@dataclass
class Seen:
    """Seconds, of all requests together."""

    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)


Ask = Callable[[Seen, float], Awaitable[None]]
"""Asks once; the second argument is when the request was due, on the clock of `time.perf_counter`."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seconds", type=float, required=True)
    return parser.parse_args()


async def drive(ask: Ask, asked: argparse.Namespace) -> None:
    seen = Seen()
    if asked.rate:
        await _by_timetable(ask, seen, asked.rate, asked.seconds)
    else:
        end = time.perf_counter() + asked.seconds
        await asyncio.gather(*(_place(ask, seen, end) for _ in range(asked.concurrency)))
    print(json.dumps({"requests": len(seen.first), **_quantiles(seen)}))


async def _place(ask: Ask, seen: Seen, end: float) -> None:
    while (now := time.perf_counter()) < end:
        await ask(seen, now)


async def _by_timetable(ask: Ask, seen: Seen, rate: float, seconds: float) -> None:
    begin = time.perf_counter()
    tasks = []
    for number in range(int(rate * seconds)):
        due = begin + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(seen, due)))
    await asyncio.gather(*tasks)


def _quantiles(seen: Seen) -> dict[str, float | None]:
    return {
        "ttft_p50": _at(seen.first, 0.5),
        "ttft_p99": _at(seen.first, 0.99),
        "itl_p99": _at(seen.gaps, 0.99),
    }


def _at(values: list[float], share: float) -> float | None:
    return sorted(values)[int(len(values) * share)] if values else None
