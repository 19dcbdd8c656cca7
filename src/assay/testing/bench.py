"""A bench that puts no load on anything: an agent that answers a fixed share of the requests, in a fixed time.

Scenarios of plug-ins are tested on it in milliseconds. It has the attributes and the method `put` of the real bench
(`plugin/scenario.py` has the Protocol), and computes the result of a load from its stages instead of measuring it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.model import AgentUse
from assay.model.figure import Figure
from assay.model.load import Distribution, Load, LoadResult, Moment, Objective, Quality
from assay.model.stress import Breach, CalmErrors, Sample, Stretch

LATENCY = 0.1


@dataclass(frozen=True, slots=True)
class SampleSubject:
    """A server at an address where no process listens."""

    is_server: bool = True
    is_command: bool = False
    takes_input: bool = True
    most_at_once: int | None = None
    most_in_flight: int = 1000
    use: AgentUse | None = None


@dataclass(slots=True)
class SampleBench:
    """Answers the share `answers` of what is put on it, each after a tenth of a second, and remembers each load."""

    answers: float = 1.0
    base: float = 10.0
    loads: list[Load] = field(default_factory=list)
    calm: Distribution = field(default_factory=lambda: _distribute(1000))
    calm_quality: Quality | None = None
    calm_errors: CalmErrors = field(default_factory=CalmErrors)
    objectives: Sequence[Objective] = (Objective("latency_p95<500ms", "latency", "p95", True, 5 * LATENCY),)
    is_derived: bool = True
    sustain: float = 0.5
    subject: Any = field(default_factory=SampleSubject)

    def put(
        self,
        load: Load,
        *,
        prompts: Sequence[str] = (),
        asked: Any = None,
        during: Callable[[float], None] = lambda seconds: None,
        objectives: Sequence[Objective] | None = None,
        grace: float | None = None,
        limit: float | None = None,
    ) -> Stretch:
        """A load with a breach where more than a twentieth of it fails; `during` is called once, at its beginning."""
        self.loads.append(load)
        during(0.0)
        if load.count is not None:
            offered = load.count
        elif load.stages:
            offered = round(sum(seconds * (begin + end) / 2 for seconds, begin, end in load.stages))
        else:
            offered = round((load.concurrency or 1) * load.seconds / LATENCY)
        completed = round(offered * self.answers)
        failed = offered - completed
        breach = None
        if failed > 0.05 * offered:
            rate = max((max(begin, end) for _, begin, end in load.stages), default=offered / load.seconds)
            breach = Breach(0.0, rate, "requests/s", "errors", f"{failed} of {offered} requests failed")
        return Stretch(load, _build_result(load, completed, failed), offered, completed, breach)

    def samples(self) -> Sequence[Sample]:
        return ()


def _distribute(answers: int) -> Distribution:
    """Latencies that are all the same."""
    mean = p50 = p90 = p95 = p99 = p999 = most = LATENCY
    return Distribution(answers, mean, p50, p90, p95, p99, p999, most)


def _build_result(load: Load, completed: int, failed: int) -> LoadResult:
    """A result without chance: intervals have no width, and this machine was never the limit."""
    rate, share = completed / load.seconds, completed / max(1, completed + failed)
    times = {"latency": _distribute(completed)} if completed else {}
    return LoadResult(
        requests_sent=completed + failed,
        requests_completed=completed,
        errors={"failed": failed} if failed else {},
        duration=load.seconds,
        measured_from=0.0,
        measured_seconds=load.seconds,
        is_steady=True,
        throughput=Figure(rate, rate, rate),
        output_tokens=Figure(0.0),
        error_rate=Figure(1 - share),
        goodput=Figure(rate),
        offered_rate=load.offered,
        achieved_rate=rate,
        concurrency=rate * LATENCY,
        times=times,
        held=(),
        moments=tuple(_list_moments(load, share)),
        curve=(),
        lag_p99=0.0,
        cpu_share=0.1,
        is_valid=True,
        is_saturated=False,
        is_simulated=True,
        counts_pieces=False,
        warnings=(),
    )


def _list_moments(load: Load, share: float) -> Iterator[Moment]:
    """One moment for each stage of the load."""
    at = 0.0
    for seconds, first, last in load.stages:
        sent = round(seconds * (first + last) / 2)
        completed = round(sent * share)
        latency = LATENCY if completed else None
        yield Moment(
            at, seconds, sent, completed, sent - completed, 0.0, first * LATENCY, latency, latency, None, None
        )
        at += seconds
