"""A stress test: what each scenario put an agent under, and how the agent coped.

Every scenario applies one kind of pressure to an agent and then watches it recover. It returns
`Stretch`es, one for each load; from these a `ScenarioFinding` with a `ScenarioScore` is computed, and from all of them the
`StressFinding` of the agent. *Calm* is the time at the base rate, before the pressure: what fails there is not the pressure's fault.
The objective is the SLO that an answer must meet to count as good.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.model.figure import Figure
from assay.model.load import UNFINISHED, Distribution, Load, LoadResult, Moment

STRESS = "stress"
"""What stands as the experiment of its trials."""


OUR_CAUSES = ("generator", "in_flight")
"""Limits of the generator and of a scenario's own settings: not known then is what the agent sustains."""


@dataclass(frozen=True, slots=True)
class Breach:
    """The first time that the objective was broken, or more than 5 % failed, for long enough to count."""

    at: float
    """Seconds after the pressure began."""
    load: float
    unit: str
    cause: str
    """`errors`, `latency`, `saturation`; `generator` where it was us who could not keep up, `in_flight` where the scenario
    itself allowed no more requests in flight."""
    why: str
    is_in_calm: bool = False
    """Whether the same is seen in calm: then load is not the reason."""

    @property
    def is_theirs(self) -> bool:
        """Whether the agent is to blame, under pressure or in calm."""
        return self.cause not in OUR_CAUSES

    @property
    def is_by_pressure(self) -> bool:
        """Whether the pressure broke the agent: neither our own limit, nor what is seen in calm as well."""
        return self.is_theirs and not self.is_in_calm


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """One kind of failure with the agent's own words, redacted."""

    kind: str
    message: str
    count: int = 1
    first_at: float | None = None
    """Seconds after the load began."""
    place: str = ""
    """File and line of the agent's own code, where that is known."""
    exit_code: int | None = None
    """Negative for a signal."""
    stderr: str = ""
    """The last words of a program on standard error."""


@dataclass(frozen=True, slots=True)
class CalmErrors:
    """Errors at the base rate, before any pressure."""

    failed: int = 0
    ended: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    details: tuple[ErrorDetail, ...] = ()

    @property
    def rate(self) -> float:
        return self.failed / self.ended if self.ended else 0.0


@dataclass(frozen=True, slots=True)
class Band:
    """A time with a name, such as that of a fault or of a step; seconds on the axis of the moments."""

    begin: float
    end: float
    label: str
    is_fault: bool = True


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """What one step of a scenario showed: so many in flight, or inputs of this size."""

    load: float
    throughput: float
    latency_p50: float | None
    latency_p95: float | None
    error_rate: float
    is_broken: bool
    is_probe: bool = False
    """Whether it was only put to find the breaking point: then it does not count in the score."""


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU and memory of the agent's processes at one moment; CPU in cores since the previous sample."""

    at: float
    cpu: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU and memory of the agent's processes during a scenario."""

    process: str
    samples: tuple[Sample, ...]

    @property
    def peak_memory_bytes(self) -> int:
        return max((sample.memory_bytes for sample in self.samples), default=0)

    @property
    def peak_cpu(self) -> float:
        return max((sample.cpu for sample in self.samples), default=0.0)

    @property
    def mean_cpu(self) -> float:
        spans = [
            (after.at - before.at, after.cpu)
            for before, after in zip(self.samples, self.samples[1:], strict=False)
        ]
        total = sum(seconds for seconds, _ in spans)
        return sum(seconds * cpu for seconds, cpu in spans) / total if total > 0 else 0.0


@dataclass(frozen=True, slots=True)
class ScenarioJudgement:
    """What a scenario judges beyond latency, errors and throughput."""

    name: str
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    is_fine: bool | None = None
    """None where it is a figure and no verdict."""
    is_criterion: bool = False
    """Whether it counts in the score: only what no other factor of the score sees."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer that was held against the suite."""

    case: int
    """Its place among the cases that are asked in turn."""
    due: float
    """Seconds after the load began."""
    is_in_time: bool
    value: float | None
    """None where no scorer could tell."""
    is_right: bool
    """Whether that is enough to pass."""


@dataclass(frozen=True, slots=True)
class Correctness:
    """Answers of a scenario held against the suite. Scores are means over cases, each by its own mean."""

    score: Figure | None
    """Under pressure; None where nothing was answered then."""
    calm: Figure | None
    change: Figure | None
    """Under pressure less in calm, case by case; None where fewer than two cases were answered in both."""
    scored: int
    unscored: int
    right: int
    """Correct ones among those scored, on time or not."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One load that a scenario put on the agent."""

    load: Load
    result: LoadResult
    offered: int
    """Requests that were due, whether or not they could be sent."""
    good: int
    """Answered within the objective and, where there is a suite to tell, correctly."""
    breach: Breach | None
    latencies: tuple[float, ...] = ()
    """Latency of each answer, where the load was a fixed number of requests."""
    fairness: float | None = None
    """Jain's index of the answers of each place of a closed loop."""
    ends: tuple[float, ...] = ()
    """Seconds after the start at which answers came, of the first hundred thousand."""
    in_time: int | None = None
    """Answered within the objective, rightly or not; None where that is the same as `good`."""
    scored: tuple[Scored, ...] = ()
    """Where there is a suite: its answers, or an even choice of them where they are many."""
    held_up: float = 0.0
    """Seconds in which this machine did not let us work, of pauses long enough to break something."""
    details: tuple[ErrorDetail, ...] = ()
    samples: tuple[Sample, ...] = ()
    """CPU and memory of the agent's processes; seconds after the load began."""

    @property
    def punctual(self) -> int:
        """Answered within the objective, rightly or not."""
        return self.good if self.in_time is None else self.in_time

    @property
    def completed(self) -> int:
        return self.result.requests_completed

    @property
    def errors(self) -> dict[str, int]:
        """Count the errors without the requests that were still under way when the load ended."""
        return {kind: n for kind, n in self.result.errors.items() if kind not in UNFINISHED}

    @property
    def error_rate(self) -> float:
        failed = sum(self.errors.values())
        return failed / (failed + self.completed) if failed + self.completed else 0.0


@dataclass(frozen=True, slots=True)
class ScenarioFinding:
    """What one scenario showed. Where it does not apply, only `skipped` is filled in.

    Counts are over all of its loads. `load_asked` is the most pressure that the scenario meant to apply, `load_borne` how much of it the
    agent sustained before it broke; both are in `unit`. The names of the fields are those of stored findings.
    """

    scenario: str
    skipped: str = ""
    """Why it does not apply; empty where it was executed."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    offered: int = 0
    good: int = 0
    """Answered within the objective and, where `correctness` is told, correctly."""
    completed: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    throughput: Figure | None = None
    """Answers per second while the pressure lasted."""
    times: Mapping[str, Distribution] = field(default_factory=dict)
    load_asked: float = 0.0
    load_borne: float = 0.0
    unit: str = ""
    """Unit of both loads: `requests/s`, `at a time`, `bytes`, …"""
    breach: Breach | None = None
    recovery: float | None = None
    """Seconds from the end of the pressure until all was as before; None where there was nothing to recover from."""
    is_recovered: bool = True
    """False where it was not seen to recover: then `recovery` is only how long was watched."""
    is_dead: bool = False
    """Whether nothing at all was answered after the pressure."""
    judgements: tuple[ScenarioJudgement, ...] = ()
    resources: Resources | None = None
    moments: tuple[Moment, ...] = ()
    warnings: tuple[str, ...] = ()
    is_simulated: bool = False
    in_time: int | None = None
    """Answered within the objective, rightly or not; None where that is the same as `good`."""
    correctness: Correctness | None = None
    """None where nothing tells right from wrong."""
    details: tuple[ErrorDetail, ...] = ()
    """The most frequent failures, in the agent's own words."""
    points: tuple[LoadPoint, ...] = ()
    """Points of a scenario that increases the load step by step."""
    bands: tuple[Band, ...] = ()

    @property
    def is_broken(self) -> bool:
        """Whether the pressure broke it."""
        return self.breach is not None and self.breach.is_by_pressure

    @property
    def error_rate(self) -> float:
        failed = sum(self.errors.values())
        return failed / (failed + self.completed) if failed + self.completed else 0.0


@dataclass(frozen=True, slots=True)
class ScenarioScore:
    """The three factors of a scenario's score, and their product (`value`) with its 95 % interval; all are from 0 to 1."""

    scenario: str
    share: float
    """Share of the offered requests that were answered within the objective and, where a suite judges them, correctly."""
    sustained: float
    """1 if it did not break, else the load that it sustained ÷ the load that was offered."""
    recovering: float
    """1 / (1 + recovery time ÷ scenario time + faults)."""
    value: float
    low: float
    high: float
    criteria_met: int = 0
    criteria_judged: int = 0
    """What only this scenario judges, such as whether memory leaks."""

    @property
    def faults(self) -> int:
        """Criteria that were established not to be met."""
        return self.criteria_judged - self.criteria_met


@dataclass(frozen=True, slots=True)
class StressFinding:
    """An agent under stress, over all scenarios."""

    target: str
    base: float | None
    """The rate that it sustains comfortably, in requests per second."""
    base_text: str
    objective: str
    scenarios: tuple[ScenarioFinding, ...]
    scores: tuple[ScenarioScore, ...]
    resilience: Figure | None
    """None where no scenario applied."""
    limits: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    judged_by: str = ""
    """The suite that tells right from wrong, with its pass mark; empty where there was none."""
    calm_score: Figure | None = None
    """Score of the answers at the base rate, by that suite."""
    calm_errors: CalmErrors = field(default_factory=CalmErrors)
    calm_latency: Distribution | None = None

    @property
    def is_broken(self) -> bool:
        """Whether anything broke, by pressure or in calm already."""
        breaches = [scenario.breach for scenario in self.scenarios if scenario.breach is not None]
        return any(breach.is_theirs for breach in breaches)

    @property
    def is_simulated(self) -> bool:
        return any(scenario.is_simulated for scenario in self.scenarios)


def stress_metrics(found: ScenarioFinding, score: ScenarioScore) -> dict[str, float]:
    """What is stored with an execution and can be compared: base units."""
    if found.skipped:
        return {}
    quality = found.correctness.score if found.correctness else None
    metrics = {
        "seconds": found.seconds,
        "score": score.value,
        "error_rate": found.error_rate,
        "load_borne": found.load_borne,
        "throughput_rps": found.throughput.value if found.throughput else math.nan,
        "recovery_seconds": math.nan if found.recovery is None else found.recovery,
        "quality": math.nan if quality is None else quality.value,
        "rss_max_bytes": float(found.resources.peak_memory_bytes) if found.resources else math.nan,
        **{
            f"{name}_{statistic}_seconds": found.times[name].at(statistic)
            for name in ("ttft", "latency")
            if name in found.times
            for statistic in ("p50", "p95", "p99")
        },
    }
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
