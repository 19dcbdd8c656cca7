"""Timing one call: the timer is innermost, and its own cost is measured and taken off.

Where a single call is too short for the clock, a loop of many calls is timed and divided by their number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import cache
from itertools import repeat
from time import perf_counter_ns
from typing import Any, NamedTuple

TARGET_NS = 1_000_000
"""An execution of an autoranged function lasts about this long: 20,000 steps of the clock."""

MAX_LOOPS = 10_000_000
QUICK_SECONDS = 0.1


class Timed(NamedTuple):
    """Seconds of one call, and what the last call returned."""

    seconds: float
    result: Any


def time_call(call: Callable[[], Any], loops: int) -> Timed:
    """Time so many calls; one call has a path of its own, without the loop, whose cost would be as large as that of a quick call.

    The last call stands behind the loop, so that the loop need not store a result.
    """
    if loops == 1:
        start = perf_counter_ns()
        result = call()
        elapsed = perf_counter_ns() - start
        return Timed(max(0, elapsed - timer_cost_ns()) * 1e-9, result)
    start = perf_counter_ns()
    for _ in repeat(None, loops - 1):
        call()
    result = call()
    elapsed = perf_counter_ns() - start
    return Timed(max(0.0, elapsed - timer_cost_ns() - (loops - 1) * loop_cost_ns()) / loops * 1e-9, result)


async def time_await(call: Callable[[], Awaitable[Any]], loops: int) -> Timed:
    start = perf_counter_ns()
    for _ in repeat(None, loops - 1):
        await call()
    result = await call()
    elapsed = perf_counter_ns() - start
    return Timed(max(0.0, elapsed - timer_cost_ns() - (loops - 1) * loop_cost_ns()) / loops * 1e-9, result)


@cache
def timer_cost_ns() -> int:
    """Two readings of the clock with nothing between: the median of many."""
    gaps = []
    for _ in range(501):
        start = perf_counter_ns()
        gaps.append(perf_counter_ns() - start)
    return sorted(gaps)[250]


@cache
def loop_cost_ns() -> float:
    """One turn of the loop around a call, without the call: the median of several, like what it is taken off."""
    turns = 2000
    costs = []
    for _ in range(25):
        start = perf_counter_ns()
        for _ in repeat(None, turns):
            pass
        costs.append((perf_counter_ns() - start - timer_cost_ns()) / turns)
    return max(0.0, sorted(costs)[12])


def loops_for(seconds_of_one: float) -> int:
    """As many calls as fill the target, as 1, 2 or 5 times a power of ten; slow calls stay single.

    >>> loops_for(1e-7), loops_for(0.5)
    (10000, 1)
    """
    wanted = TARGET_NS * 1e-9 / max(seconds_of_one, 1e-9)
    if wanted < 2:
        return 1
    power: int = 1
    while power * 10 <= wanted:
        power *= 10
    return next(step * power for step in (10, 5, 2, 1) if step * power <= wanted)


def autorange() -> Generator[int, float, int]:
    """Find how many calls an execution needs so that the clock's grain does not show.

    Yields how many calls to time next and is sent the seconds of one of them; returns the number found.
    """
    loops = 1
    seconds = yield loops
    if seconds < QUICK_SECONDS:
        # The first call of all may have had to import something or to fill a cache.
        seconds = min(seconds, (yield loops))
    while (wanted := loops_for(seconds)) > 2 * loops and loops < MAX_LOOPS:
        loops = min(wanted, loops * 100, MAX_LOOPS)
        seconds = yield loops
    return max(loops, wanted)


def find_loop_count(time_of: Callable[[int], Timed]) -> int:
    """The number that `autorange` finds when it asks a function for the times."""
    ranging = autorange()
    loops = next(ranging)
    while True:
        try:
            loops = ranging.send(time_of(loops).seconds)
        except StopIteration as found:
            return int(found.value)
