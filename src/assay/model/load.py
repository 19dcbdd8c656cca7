"""A load: what was asked for, and what was found."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.figure import Figure


class Arrivals(StrEnum):
    """`closed`: so many at a time, each followed by the next; the others: by a timetable, whatever comes back."""

    CLOSED = "closed"
    CONSTANT = "constant"
    POISSON = "poisson"
    TRACE = "trace"


@dataclass(frozen=True, slots=True)
class Objective:
    """One condition of a service-level objective: `ttft_p95<200ms`."""

    text: str
    metric: str
    """`ttft`, `itl`, `tpot`, `latency`, `schedule_delay`, or a rate: `error_rate`, `throughput`, `tokens`."""
    statistic: str | None
    """`mean`, `max` or a percentile as in `p95`; None for rates."""
    is_upper: bool
    """Whether the figure must stay below the limit."""
    limit: float
    """In base units."""
    is_inclusive: bool = False
    """Whether the limit itself is still within it: `<=`."""

    def is_met_by(self, value: float) -> bool:
        if value == self.limit:
            return self.is_inclusive
        return value < self.limit if self.is_upper else value > self.limit


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests that somebody once recorded, in columns of numbers: there may be millions of them."""

    due: array[float]
    """Seconds after the first."""
    input_tokens: array[int]
    """How long each prompt is; -1 where it was not recorded."""
    output_tokens: array[int]

    def __len__(self) -> int:
        return len(self.due)

    def part(self, rows: slice) -> Trace:
        return Trace(self.due[rows], self.input_tokens[rows], self.output_tokens[rows])

    def before(self, seconds: float) -> Trace:
        return self.part(slice(bisect_left(self.due, seconds)))


@dataclass(frozen=True, slots=True)
class Load:
    """How requests are put; seconds and requests per second."""

    arrivals: Arrivals
    concurrency: int | None = None
    """At most so many at a time; of a closed loop, always so many."""
    stages: tuple[tuple[float, float, float], ...] = ()
    """Seconds, and the rate at the beginning and at the end of them."""
    trace: Trace | None = None
    seconds: float = 10.0
    count: int | None = None
    warmup: float | None = None
    """Seconds at the beginning that do not count; None when they are to be found."""
    think_seconds: float = 0.0
    seconds_each: float = 60.0
    """A request that takes longer has failed."""
    workers: int = 1
    seed: int = 1
    objectives: tuple[Objective, ...] = ()

    @property
    def is_open(self) -> bool:
        return self.arrivals is not Arrivals.CLOSED

    @property
    def offered(self) -> float | None:
        """Requests per second on average, where that is known beforehand."""
        if self.trace is not None:
            return len(self.trace) / self.seconds if self.seconds else None
        if not self.stages:
            return None
        total = sum(seconds for seconds, _, _ in self.stages)
        return sum(seconds * (first + last) / 2 for seconds, first, last in self.stages) / total


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of a time in seconds."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """95 % of each percentile, by the ranks around it."""

    def at(self, statistic: str) -> float:
        """By its name: `mean`, `p95`, `max`."""
        value: float = getattr(self, statistic)
        return value


@dataclass(frozen=True, slots=True)
class Moment:
    """A stretch of the load, for pictures."""

    begin: float
    seconds: float
    sent: int
    completed: int
    failed: int
    tokens: float
    in_flight: float
    latency_p50: float | None
    latency_p99: float | None
    ttft_p50: float | None
    ttft_p99: float | None


@dataclass(frozen=True, slots=True)
class Held:
    """Whether an objective was met, with the figure and its interval."""

    objective: Objective
    figure: Figure | None
    is_met: bool | None
    """None when nothing was measured that it could be held against."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the answers were that came back under the load."""

    score: Figure
    scored: int
    unscored: int
    by_case: Mapping[int, float] = field(default_factory=dict)
    """Mean score of each case, by its place among those that are asked in turn."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load showed. Distributions are those of answers in the measured part; `due` counts from when a request was due."""

    requests_sent: int
    requests_completed: int
    errors: Mapping[str, int]
    duration: float
    measured_from: float
    measured_seconds: float
    is_steady: bool
    throughput: Figure
    output_tokens: Figure
    error_rate: Figure
    goodput: Figure | None
    offered_rate: float | None
    achieved_rate: float
    concurrency: float
    """Requests in flight on average, by Little's law."""
    times: Mapping[str, Distribution]
    """`ttft`, `itl`, `tpot`, `latency`, `schedule_delay`, `ttft_from_send`, `latency_from_send`."""
    held: tuple[Held, ...]
    moments: tuple[Moment, ...]
    curve: tuple[tuple[float, float], ...]
    """Latency and the share of requests that it was not exceeded by."""
    lag_p99: float
    cpu_share: float
    """Of one core, the busiest worker."""
    is_valid: bool
    is_saturated: bool
    is_simulated: bool
    counts_pieces: bool
    """Whether tokens had to be counted by pieces, as the server did not tell them."""
    warnings: tuple[str, ...]
    quality: Quality | None = None
    too_long: int = 0
    """Answers that were not judged, because nobody keeps so much of them."""
    workers_lost: int = 0
    """Workers of the generator that ended before their time."""
    is_cut: bool = False
    """Whether it was broken off."""


@dataclass(frozen=True, slots=True)
class Step:
    """One load of a search for the capacity."""

    concurrency: int | None
    rate: float | None
    """Offered; None in a closed loop."""
    result: LoadResult
    broken_by: str | None
    """Why it was too much: `errors`, `latency`, `saturation` or `generator`; None when it was borne."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much a server bears."""

    sustained: float | None
    """The highest rate that was borne below every rate that was not, in requests per second."""
    broken: float | None
    """The lowest that was not."""
    confirmed: bool
    """Whether, tried again, 0.95 of the rate was borne and 1.05 of it was not."""
    cause: str | None
    why: str
    knee: int | None
    """Requests at a time beyond which the throughput hardly grows."""
    highest_throughput: float
    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()
    is_simulated: bool = False
    highest_borne: float | None = None
    """The highest rate that any step bore: beyond `broken` where the limit moves."""
