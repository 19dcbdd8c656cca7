"""When requests are due, as seconds after the start: evenly or by chance, at a rate that stays, steps or ramps.

Arrivals are counted off against the area under the rate's curve: evenly, one at each whole number; by chance, at steps
that are exponentially distributed, which makes them a Poisson process whatever the curve is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, islice, takewhile
from typing import Any


@dataclass(frozen=True, slots=True)
class RateStage:
    """A stretch of time in which the rate goes in a straight line from one value to another."""

    seconds: float
    first: float
    last: float

    @property
    def arrivals(self) -> float:
        return self.seconds * (self.first + self.last) / 2

    def time_of(self, arrivals: float) -> float:
        """Seconds into the stage at which so many have arrived.

        >>> RateStage(10, 0, 20).time_of(25)
        5.0
        """
        if not arrivals:
            return 0.0
        slope = (self.last - self.first) / self.seconds
        if slope == 0:
            return arrivals / self.first
        root = math.sqrt(max(0.0, self.first**2 + 2 * slope * arrivals))
        return 2 * arrivals / (self.first + root)


def arrivals(stages: Sequence[RateStage], is_poisson: bool, seed: int) -> Iterator[float]:
    """When requests are due, in seconds after the start, over all stages.

    >>> list(arrivals([RateStage(1, 4, 4)], False, 0))
    [0.0, 0.25, 0.5, 0.75]
    """
    draw = random.Random(seed).expovariate
    reached = accumulate(draw(1.0) for _ in count()) if is_poisson else map(float, count())
    begin, before = 0.0, 0.0
    due = next(reached)
    for stage in stages:
        while due - before < stage.arrivals:
            yield begin + stage.time_of(due - before)
            due = next(reached)
        begin += stage.seconds
        before += stage.arrivals


def share(timetable: Iterable[float], worker: int, workers: int) -> Iterator[tuple[int, float]]:
    """Every worker goes through the same schedule and takes its turns: (number of the request, when it is due)."""
    return islice(enumerate(timetable), worker, None, workers)


def is_closed(order: dict[str, Any]) -> bool:
    return order["concurrency"] is not None and order["stages"] is None and order["rows"] is None


def timetable(order: dict[str, Any]) -> Iterator[tuple[int, float]]:
    """Numbers of requests and when they are due, in seconds from the start; of a closed loop the first of each place."""
    if order["rows"] is not None:
        # A worker is given no rows but its own.
        turns: Iterator[tuple[int, float]] = zip(count(order["worker"], order["workers"]), order["due"])
    elif order["stages"] is not None:
        moments = arrivals(
            [RateStage(*stage) for stage in order["stages"]], order["is_poisson"], order["seed"]
        )
        turns = share(moments, order["worker"], order["workers"])
    else:
        turns = share([0.0] * order["concurrency"], order["worker"], order["workers"])
    most = order["count"]
    return turns if most is None else takewhile(lambda turn: turn[0] < most, turns)


def pause_after(failures: int) -> float:
    """Seconds that a place of a closed loop waits after so many failures in a row: a server that is away is not hammered.

    >>> [pause_after(n) for n in (1, 2, 20)]
    [0.02, 0.04, 1.0]
    """
    return float(min(1.0, 0.01 * 2 ** min(failures, 10)))
