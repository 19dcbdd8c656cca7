"""Searches for the capacity of servers that exist only as arithmetic: slots with one queue, whose capacity is known exactly.

They go through the load engine's own tally, judgement and search, a thousand times faster than against a real server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.load.queueing import Server, Service, constantly, exponentially

from assay.analysis.load.judgement import judge_load
from assay.load.capacity import Search
from assay.model.load import Arrivals, Capacity, Load, LoadResult
from assay.spec.load_settings import objectives_of

STEP_SECONDS = 4.0


@dataclass(frozen=True)
class Cell:
    """`truth` is the sustained rate: slots ÷ mean service time, or less where an objective breaks before."""

    name: str
    service: Service
    slots: int
    truth: float
    slo: str = ""
    arrivals: Arrivals = Arrivals.CLOSED


CELLS = (
    Cell("M/M/4, 0.1 s", exponentially(0.1), 4, 40.0),
    Cell("M/M/16, 0.1 s", exponentially(0.1), 16, 160.0),
    Cell("M/D/4, 0.1 s", constantly(0.1), 4, 40.0),
    Cell("M/D/16, 0.25 s", constantly(0.25), 16, 64.0),
    Cell("M/D/4, 6 s", constantly(6.0), 4, 4 / 6),
)
SLOW = Cell("M/M/8, 1 s", exponentially(1.0), 8, 8.0)
"""Too few answers in the time of a search for an interval as narrow as that of the others."""
WITH_OBJECTIVE = (
    # Of the capacity, as 60,000 requests of the same server at a constant rate show.
    Cell("M/M/4, latency P95 < 0.5 s, Poisson", exponentially(0.1), 4, 0.808 * 40, "latency_p95<500ms", Arrivals.POISSON),
    Cell("M/M/16, latency P95 < 0.4 s, Poisson", exponentially(0.1), 16, 0.922 * 160, "latency_p95<400ms", Arrivals.POISSON),
    Cell("M/D/8, latency P95 < 0.3 s, Poisson", constantly(0.2), 8, 0.754 * 40, "latency_p95<300ms", Arrivals.POISSON),
)  # fmt: skip


@dataclass
class Probe:
    """Stands where the load generator does."""

    server: Server
    seed: int
    seconds: float = 0.0
    loads: list[Load] = field(default_factory=list)

    def __call__(self, load: Load) -> LoadResult:
        self.loads.append(load)
        result = judge_load(self.server.put_under(load, self.seed * 1000 + len(self.loads)), load)
        self.seconds += max(load.seconds, result.duration)
        return result


@dataclass(frozen=True)
class Found:
    """What one search said, as shares of the truth."""

    rate: float
    low: float
    high: float
    seconds: float
    is_confirmed: bool

    @property
    def is_covered(self) -> bool:
        return self.low <= 1 <= self.high


def search(cell: Cell, seed: int) -> Found:
    probe = Probe(Server(cell.service, cell.slots), seed)
    base = Load(cell.arrivals, objectives=objectives_of(cell.slo) if cell.slo else ())
    found: Capacity = Search(base, STEP_SECONDS, probe).run()
    low, high = found.interval
    return Found(
        (found.sustained or 0.0) / cell.truth,
        (low or 0.0) / cell.truth,
        float("inf") if high is None else high / cell.truth,
        probe.seconds,
        found.confirmed,
    )


def searches(name: str, number: int) -> Sequence[Found]:
    cell = next(one for one in (*CELLS, SLOW, *WITH_OBJECTIVE) if one.name == name)
    return [search(cell, seed) for seed in range(number)]
