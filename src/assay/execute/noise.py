"""Measures how steady the machine is at the moment, and the resolution of its clock.

The probe does one fixed piece of work over and over for a moment and looks at the times. Three things disturb such
times: other programs that take the processor away (`lost`), a pace that changes because of frequency or neighbours on
the same core (`spread`), and single interruptions (`worst`). The first two decide whether the machine is called noisy.

The thresholds come from 60 probes in each state of a 2-core virtual machine. Quiet, none was called noisy: the spread
reached 0.95, as a core that changes its pace twofold gives a spread of 1 at the most, and `lost` stayed below 0.1. With
twice as many busy programs as cores all 60 were called noisy, by `lost`, which was 0.4 to 0.7. With one busy program for each
core 1 to 3 of 60 were (59 when this was first measured); the load average tells of those. Probes of 20, 30, 40 and 60 ms agree in all
of this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.model import Batch, Job
    from assay.plugin.executor import Attempt, Executor

LOST_WHEN_NOISY = 0.2
SPREAD_WHEN_NOISY = 1.5

_CHUNK = range(40_000)
_WARMUPS = 2

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Noise:
    """What the probe saw; every share is relative, so that machines of any speed compare."""

    spread: float
    """90th less 10th percentile of the chunk times, as a share of their median."""
    worst: float
    """Longest chunk ÷ median chunk."""
    cv: float
    """Coefficient of variation of the chunk times."""
    lost: float
    """Share of the probe's time in which it was not on a processor."""
    chunks: int
    seconds: float

    @property
    def is_noisy(self) -> bool:
        return self.lost > LOST_WHEN_NOISY or self.spread > SPREAD_WHEN_NOISY


PROBE_SECONDS = 0.02


def probe(
    seconds: float = PROBE_SECONDS,
    clock: Clock = time.perf_counter_ns,
    on_processor: Clock = time.thread_time_ns,
) -> Noise:
    """Time equal chunks of work until the time is up; at least two chunks are made."""
    for _ in repeat(None, _WARMUPS):
        sum(_CHUNK)
    times: list[int] = []
    worked = on_processor()
    begin = now = clock()
    while now - begin < seconds * 1e9 or len(times) < 2:
        before = now
        sum(_CHUNK)
        now = clock()
        times.append(now - before)
    return noise_of(times, on_processor() - worked)


def noise_of(times: Sequence[int], worked: int) -> Noise:
    """`times` of consecutive chunks and the time that their thread was on a processor, both in nanoseconds."""
    ordered = sorted(times)
    n, total = len(ordered), sum(ordered)
    mean, median = total / n, ordered[n // 2]
    deviation = math.sqrt(sum((value - mean) ** 2 for value in ordered) / n)
    return Noise(
        spread=(ordered[int(n * 0.9)] - ordered[int(n * 0.1)]) / median,
        worst=ordered[-1] / median,
        cv=deviation / mean,
        lost=max(0.0, 1 - worked / total),
        chunks=n,
        seconds=total / 1e9,
    )


_SAMPLE = 4
"""Chunks of one look at the pace, between jobs; a few milliseconds."""
_MOST_OF_TIME = 0.01
"""The share of a run's time that all looks together may take."""


@dataclass(frozen=True, slots=True)
class PaceSummary:
    """How fast the machine was during a run, by the same piece of work as the probe's."""

    samples: int
    chunk_seconds: float
    """What a chunk took, waiting for a processor included; geometric mean over the samples."""
    spread: float
    """Standard deviation of the samples' logarithms."""
    lost: float
    """Share of the time in which the runner was not on a processor, mean over the samples."""

    @property
    def is_noisy(self) -> bool:
        return self.lost > LOST_WHEN_NOISY


class PaceSampler:
    """Looks at the machine's pace whenever an executor asks for its next job: then no worker is busy, or one fewer.

    It takes at most a hundredth of the run's time, so jobs of less than half a second are not all preceded by a look.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Clock = time.perf_counter_ns,
        on_processor: Clock = time.thread_time_ns,
    ) -> None:
        self._executor, self._clock, self._on_processor = executor, clock, on_processor
        self._began, self._spent = clock(), 0
        self._logs: list[float] = []
        self._lost: list[float] = []

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        yield from self._executor.map(attempt, self._sample_before_each(jobs), stop)
        self._look()

    def _sample_before_each(self, jobs: Iterable[Job]) -> Iterator[Job]:
        for job in jobs:
            self._look()
            yield job

    def _look(self) -> None:
        begin = self._clock()
        if self._spent > _MOST_OF_TIME * (begin - self._began):
            return
        sum(_CHUNK)  # what another process left in the caches is gone by then
        worked, before = self._on_processor(), self._clock()
        for _ in repeat(None, _SAMPLE):
            sum(_CHUNK)
        now = self._clock()
        taken = max(1, now - before)
        self._logs.append(math.log(taken / _SAMPLE / 1e9))
        self._lost.append(max(0.0, 1 - (self._on_processor() - worked) / taken))
        self._spent += now - begin

    def summary(self) -> PaceSummary | None:
        """Summarise how much equal work varied; None before two measurements."""
        n = len(self._logs)
        if n < 2:
            return None
        mean = sum(self._logs) / n
        spread = math.sqrt(sum((value - mean) ** 2 for value in self._logs) / (n - 1))
        return PaceSummary(n, math.exp(mean), spread, sum(self._lost) / n)


def clock_facts(clock: Clock = time.perf_counter_ns, readings: int = 1000) -> dict[str, object]:
    """The clock that times executions: what the system says about it, its smallest step and the time that a reading takes.

    Step and cost are measured, in seconds; the cost is the best of three means over so many readings.
    """
    known = time.get_clock_info("perf_counter")
    clock_readings = [clock() for _ in range(readings)]
    steps = [after - before for before, after in pairwise(clock_readings) if after > before]
    costs: list[float] = []
    for _ in range(3):
        begin = clock()
        for _ in repeat(None, readings):
            clock()
        costs.append((clock() - begin) / readings)
    return {
        "name": known.implementation,
        "resolution_s": known.resolution,
        "monotonic": known.monotonic,
        "step_s": min(steps, default=0) / 1e9 or None,
        "cost_s": min(costs) / 1e9,
    }
