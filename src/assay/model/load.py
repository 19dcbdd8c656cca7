"""A load test: what was asked for (`Load`), what was measured (`LoadResult`), and the search for the capacity (`Capacity`).

Times are in seconds from the start of the load, rates in requests per second, shares from 0 to 1. A request of an open loop has a time
at which it is *due*; its latency counts from then and not from when it was sent, so that a generator or server that falls behind does
not hide the wait (coordinated omission).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from assay.model.conversation import UserSession
from assay.model.figure import Figure
from assay.model.load_generator import GeneratorResult
from assay.model.server_metrics import ServerMetrics
from assay.model.variate import Variate

UNFINISHED = ("cut_off", "worker_lost")
"""Kinds of errors of requests that were under way when the load or its worker ended: it is unknown how they would have ended."""
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""By the names of statistics."""


class Arrivals(StrEnum):
    """When requests are sent.

    `closed` is a closed loop: each virtual user waits for an answer before it sends the next request. The others are open loops, which
    send on a schedule whatever the server does: at constant distances, at random ones (Poisson), or as recorded in a trace.
    """

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
        """Whether a value meets the limit. A value at the limit itself meets `<=` and `>=` only."""
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
    block_ends: array[int] = field(default_factory=lambda: array("q"))
    """Where the blocks of each row end among all `blocks`; empty when no row has any."""
    blocks: array[int] = field(default_factory=lambda: array("q"))
    """Ids of blocks of 512 tokens (`hash_ids`): prompts whose ids begin alike begin with the same text."""
    sessions: tuple[UserSession, ...] = ()
    """Where rows are the starts of sessions: what follows each of them."""

    def __len__(self) -> int:
        return len(self.due)

    def part(self, rows: slice) -> Trace:
        """The rows of a slice, with their own blocks; times are not shifted."""
        plain = (self.due[rows], self.input_tokens[rows], self.output_tokens[rows])
        sessions = self.sessions[rows]
        if not self.block_ends:
            return Trace(*plain, sessions=sessions)
        ends, blocks = array("q"), array("q")
        for row in range(*rows.indices(len(self))):
            blocks.extend(self.blocks[self.block_ends[row - 1] if row else 0 : self.block_ends[row]])
            ends.append(len(blocks))
        return Trace(*plain, ends, blocks, sessions)

    def window(self, begin: float, end: float) -> Trace:
        """The part between two times, which begins at 0 again."""
        part = self.part(slice(bisect_left(self.due, begin), bisect_left(self.due, end)))
        return replace(part, due=array("d", [due - begin for due in part.due]))

    def faster(self, times: float) -> Trace:
        """Return the load at `times` the rate: all times and delays are divided by it."""
        sessions = tuple(
            UserSession(
                tuple(
                    replace(
                        turn, at=turn.at / times, delay=None if turn.delay is None else turn.delay / times
                    )
                    for turn in session.turns
                )
            )
            for session in self.sessions
        )
        return replace(self, due=array("d", [due / times for due in self.due]), sessions=sessions)

    def before(self, seconds: float) -> Trace:
        return self.part(slice(bisect_left(self.due, seconds)))


@dataclass(frozen=True, slots=True)
class Load:
    """How requests are sent, for how long, and what they are held against; seconds and requests per second.

    A closed loop has `concurrency` and no stages; a constant or Poisson load has `stages`; a replay has a `trace`. It ends
    after `seconds`, or after `count` requests.
    """

    arrivals: Arrivals
    concurrency: int | None = None
    """Maximum requests in flight; in a closed loop, always this many."""
    stages: tuple[tuple[float, float, float], ...] = ()
    """Seconds, and the rate at the beginning and at the end of them."""
    trace: Trace | None = None
    seconds: float = 10.0
    count: int | None = None
    warmup: float | None = None
    """Seconds at the beginning that do not count; None when they are to be found."""
    think_seconds: float = 0.0
    """On average."""
    think: Variate | None = None
    """Where think times differ: how."""
    has_sessions: bool = False
    """Whether what is begun are sessions of several requests."""
    cancel_after: float | None = None
    """Seconds after which the client gives a request up, of the share that it is to give up."""
    cancel_share: float = 1.0
    seconds_each: float = 60.0
    """A request that takes longer has failed."""
    workers: int = 1
    seed: int = 1
    objectives: tuple[Objective, ...] = ()
    abort_on: tuple[Objective, ...] = ()
    """Conditions that end it early as soon as one of them holds."""

    @property
    def is_open(self) -> bool:
        return self.arrivals is not Arrivals.CLOSED

    @property
    def is_level(self) -> bool:
        """Whether its rate is meant to stay the same all the time."""
        return len(self.stages) < 2 and self.arrivals is not Arrivals.TRACE

    @property
    def offered(self) -> float | None:
        """Requests per second on average, where that is known beforehand."""
        if self.has_sessions:
            return None
        if self.trace is not None:
            return len(self.trace) / self.seconds if self.seconds else None
        if not self.stages:
            return None
        total = sum(seconds for seconds, _, _ in self.stages)
        return sum(seconds * (first + last) / 2 for seconds, first, last in self.stages) / total


@dataclass(frozen=True, slots=True)
class Distribution:
    """The distribution of a time, in seconds, over the `n` answers of the measured part."""

    n: int
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    p999: float
    max: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """95 % of each percentile, by the ranks around it, of those for which there are enough values."""

    def at(self, statistic: str) -> float:
        """Return a statistic by its name: `mean`, `p95`, `max`."""
        value: float = getattr(self, statistic)
        return value


@dataclass(frozen=True, slots=True)
class Moment:
    """A short stretch of the load, for charts over time; `begin` and `seconds` say which."""

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
    itl_p50: float | None = None
    itl_p99: float | None = None
    schedule_delay_p99: float | None = None
    lag_p99: float | None = None
    """Seconds that answers waited to be read on this machine."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Requests that ended in it, by kind of error."""
    answered: int = 0
    """Requests that were due in it and were answered, whenever that was."""
    unanswered: int = 0
    """Requests that were due in it and failed."""


@dataclass(frozen=True, slots=True)
class TimeHistogram:
    """How often times fell between two edges, in seconds; the edges are evenly spaced, on a logarithmic scale where `is_log`."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    beyond: int = 0
    """Longer than the last edge."""
    is_log: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """A stretch in which the server answered none of the requests that were due."""

    begin: float
    seconds: float
    failed: int


@dataclass(frozen=True, slots=True)
class ObjectiveResult:
    """Whether an objective was met, with the figure and its interval."""

    objective: Objective
    figure: Figure | None
    is_met: bool | None
    """None when nothing was measured that it could be held against."""

    @property
    def is_certain(self) -> bool | None:
        """Whether the whole interval is on the same side of the limit as the figure; None without an interval."""
        if self.figure is None or self.figure.low is None or self.figure.high is None:
            return None
        ends = (self.figure.low, self.figure.high)
        return all(self.objective.is_met_by(end) == self.is_met for end in ends)


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
    """What a load showed.

    The measured part begins when the warm-up ends (`measured_from`). Distributions are those of answers in the measured part. `ttft` and `latency` count from when a request was due, `ttft_from_send` and
    `latency_from_send` from when it was sent. A result that is not valid (`is_valid`) was limited by this machine and not by the
    server, and says why in `doubts`.
    """

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
    held: tuple[ObjectiveResult, ...]
    moments: tuple[Moment, ...]
    curve: tuple[tuple[float, float], ...]
    """Latency and the share of requests that it was not exceeded by."""
    lag_p99: float
    cpu_share: float
    """Share of one core that the busiest worker used."""
    is_valid: bool
    is_saturated: bool
    is_simulated: bool
    counts_pieces: bool
    """Whether tokens had to be counted by pieces, as the server did not tell them."""
    warnings: tuple[str, ...]
    quality: Quality | None = None
    too_long: int = 0
    """Answers that were not judged, because that many are not kept."""
    workers_lost: int = 0
    """Workers of the generator that ended before their time."""
    is_cut: bool = False
    """Whether it was broken off."""
    latency_growth: float = 0.0
    """Open loop only: latency growth per second of load; 0 if not significant."""
    ttft_censored: int = 0
    """Answers whose first token cannot be timed, as it was read together with later ones."""
    error_reasons: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Why requests failed, by kind of error, where more is known than the kind."""
    histograms: Mapping[str, TimeHistogram] = field(default_factory=dict)
    """Histograms of `ttft`, `itl` and `latency` in the measured part."""
    outages: tuple[Outage, ...] = ()
    is_unavailable: bool = False
    """Whether more than half of the requests failed, or none was answered for a tenth of the load."""
    doubts: tuple[str, ...] = ()
    """Why its figures should not be used, where it is not valid; they are among the warnings, too."""
    aborted: str | None = None
    """The condition of `abort_on` that ended the load early, with its figure."""
    server: ServerMetrics | None = None
    """What the server told of itself meanwhile, where it was asked."""
    input_tokens: int | None = None
    """Input tokens of all answered requests, as the server counted them; None where it does not report them."""
    cached_tokens: int | None = None
    """How many of those the server took from its prompt cache."""
    counted_requests: int = 0
    """Answered requests of which the server told the input tokens."""
    prompt_seed: int | None = None
    """With it the same prompts are sent again; None where prompts were sent as written."""
    cancelled: int = 0
    """Requests that the client gave up, as it was asked to: neither answered nor failed."""
    targets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Where there are several: how many requests to each were answered (`ok`), cancelled, and failed by kind."""
    generators: tuple[GeneratorResult, ...] = ()
    """Where there were several: the share of each."""


@dataclass(frozen=True, slots=True)
class Step:
    """One load of a search for the capacity: closed loops first, then open loops at rates around the limit."""

    concurrency: int | None
    rate: float | None
    """Offered; None in a closed loop."""
    result: LoadResult
    broken_by: str | None
    """Why it was too much: `errors`, `latency`, `saturation` or `generator`; None when it held."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The rate that a server sustains, and where it breaks; both are None where the search found none."""

    sustained: float | None
    """Requests per second."""
    broken: float | None
    """The lowest rate above it that was tried and broke."""
    confirmed: bool
    """Whether an open loop below it held and one above it broke."""
    cause: str | None
    why: str
    knee: int | None
    """Requests in flight beyond which the throughput hardly grows."""
    highest_throughput: float
    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()
    is_simulated: bool = False
    highest_held: float | None = None
    """The highest rate that held in any step."""
    interval: tuple[float | None, float | None] = (None, None)
    """95 % confidence interval of `sustained`; an end is None where nothing bounds it."""
    is_cut: bool = False
    """Whether the search was interrupted."""
